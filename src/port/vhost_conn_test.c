/* SPDX-License-Identifier: BSD-2-Clause */
/* Where front-ends come from: listening, taking over, turning away, connecting, reconnecting. */
#include "port/vhost_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/un.h>

#include "port/usock.h"

struct place {
	struct rig r;
	char dir[32], path[64];
	unsigned fds; /* open before anything */
};

static int place_setup(void **state)
{
	static struct place place;
	struct place *p = &place;

	memset(p, 0, sizeof(*p));
	strcpy(p->dir, "/tmp/weft-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/a.sock", p->dir);
	assert_int_equal(loop_init(&p->r.loop, NULL), 0);
	evfd_prepare(&p->r.loop.evfd); /* has a descriptor, which stays */
	p->r.now = NSEC_PER_SEC;
	p->r.loop.virtual_now = &p->r.now;
	loop_refresh(&p->r.loop);
	assert_int_equal(vhost_sim_init(&p->r.fe, -1), 0);
	p->fds = fds_open();
	*state = p;
	return 0;
}

static int place_teardown(void **state)
{
	struct place *p = *state;

	vhost_be_free(p->r.port);
	vhost_sim_hang_up(&p->r.fe);
	fds_become(p->fds);
	vhost_sim_fini(&p->r.fe);
	loop_fini(&p->r.loop);
	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0); /* nothing else was left behind */
	return 0;
}

static int open_at(struct place *p, struct port **port, const char *path, bool server, mode_t mode,
	struct err *err)
{
	struct vhost_be_config c = {.path = path,
		.server = server,
		.mode = mode,
		.group = (gid_t)-1,
		.call_us = 200,
		.dev = device};

	return vhost_be_open(port, "vm", &c, &p->r.loop, NULL, err);
}

static void serve(struct place *p)
{
	struct err err;

	assert_int_equal(open_at(p, &p->r.port, p->path, true, 0600, &err), 0);
	p->r.port->events = &events;
	p->r.port->events_ctx = &p->r;
}

static int dial(struct place *p)
{
	int fd = usock_connect(p->path, NULL);

	assert_true(fd >= 0);
	spin(&p->r);
	return fd;
}

static bool hung_up(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* server */

static void one_after_the_other(void **state)
{
	struct place *p = *state;

	serve(p);
	assert_string_equal(vhost_be_path(p->r.port), p->path);
	assert_true(vhost_be_server(p->r.port));
	assert_string_equal(vhost_be_last_end(p->r.port), "");
	for (unsigned i = 0; i < 5; i++) {
		assert_false(vhost_be_connected(p->r.port));
		p->r.fe.fd = dial(p);
		assert_true(vhost_be_connected(p->r.port));
		steps(&p->r, 0, VHOST_SIM_ENABLE1);
		traffic(&p->r, 1);
		vhost_sim_hang_up(&p->r.fe);
		spin(&p->r);
		assert_false(p->r.port->link);
		assert_string_equal(vhost_be_last_end(p->r.port), "the front-end hung up");
		assert_int_equal(
			vhost_sim_ring(&p->r.fe, 0, 0) | vhost_sim_ring(&p->r.fe, 1, 0), 0);
	}
}

static void second_waits_for_its_turn(void **state)
{
	struct place *p = *state;
	int second, third;

	serve(p);
	p->r.fe.fd = dial(p);
	steps(&p->r, 0, VHOST_SIM_ENABLE1);
	assert_false(vhost_be_awaited(p->r.port));
	second = dial(p);
	assert_false(hung_up(second));
	assert_true(vhost_be_awaited(p->r.port));
	close(second); /* it did not wait: the next one may */
	spin(&p->r);
	assert_false(vhost_be_awaited(p->r.port));
	second = dial(p);
	third = dial(p);
	assert_true(vhost_be_awaited(p->r.port));
	traffic(&p->r, 1);
	for (int *turn = &second; turn; turn = turn == &second ? &third : NULL) {
		vhost_sim_hang_up(&p->r.fe);
		p->r.fe.fd = *turn;
		spin(&p->r);
		assert_true(vhost_be_connected(p->r.port));
		assert_int_equal(vhost_be_awaited(p->r.port), turn == &second);
		assert_int_equal(
			vhost_sim_ring(&p->r.fe, 0, 0) | vhost_sim_ring(&p->r.fe, 1, 0), 0);
		steps(&p->r, 0, VHOST_SIM_ENABLE1);
		traffic(&p->r, 2);
	}
}

/* Who waits does not keep the loop busy, and closing the port sends it away. */
static void waiting_costs_nothing(void **state)
{
	struct place *p = *state;
	struct epoll_event ev;
	int second, third;

	serve(p);
	p->r.fe.fd = dial(p);
	steps(&p->r, 0, VHOST_SIM_ENABLE1);
	second = dial(p);
	third = dial(p);
	assert_int_equal(send(second, "1", 1, 0), 1);
	spin(&p->r);
	assert_int_equal(epoll_wait(p->r.loop.epfd, &ev, 1, 0), 0);
	p->r.port->ops->close(p->r.port);
	while (!hung_up(second)) /* what it said was not read: closed by a thread */
		poll(NULL, 0, 1);
	close(second);
	close(third);
}

/* As whoever looks whether a live process listens does. */
static void silence_is_no_session(void **state)
{
	struct place *p = *state;

	serve(p);
	close(dial(p));
	spin(&p->r);
	assert_false(vhost_be_connected(p->r.port));
	assert_string_equal(vhost_be_last_end(p->r.port), "");
}

static void hint_if_it_leaves_over_features(void **state)
{
	struct place *p = *state;

	serve(p);
	for (unsigned i = 0; i < 2; i++) {
		p->r.fe.fd = dial(p);
		get_u64(&p->r, VHOST_USER_GET_FEATURES);
		if (i)
			steps(&p->r, VHOST_SIM_FEATURES, VHOST_SIM_FEATURES);
		vhost_sim_hang_up(&p->r.fe);
		spin(&p->r);
		assert_int_equal(
			strstr(vhost_be_last_end(p->r.port), "restart the guest") != NULL, !i);
	}
}

/* The end of the old one and the new connection are there in the same round. */
static void dead_one_makes_place(void **state)
{
	struct place *p = *state;
	int fresh;

	for (unsigned i = 0; i < 2; i++) {
		serve(p);
		p->r.fe.fd = dial(p);
		steps(&p->r, 0, VHOST_SIM_ENABLE1);
		if (i) /* one that dies with a message half said */
			assert_int_equal(send(p->r.fe.fd, "1", 1, 0), 1);
		fresh = usock_connect(p->path, NULL); /* first, so that it is delivered first */
		assert_true(fresh >= 0);
		vhost_sim_hang_up(&p->r.fe);
		p->r.fe.fd = fresh;
		spin(&p->r);
		assert_true(vhost_be_connected(p->r.port));
		assert_false(hung_up(p->r.fe.fd));
		assert_int_equal(
			vhost_sim_ring(&p->r.fe, 0, 0) | vhost_sim_ring(&p->r.fe, 1, 0), 0);
		steps(&p->r, 0, VHOST_SIM_ENABLE1);
		traffic(&p->r, 2);
		vhost_be_free(p->r.port);
		p->r.port = NULL;
		vhost_sim_hang_up(&p->r.fe);
	}
}

static void mode_and_umask(void **state)
{
	struct place *p = *state;
	static const mode_t modes[] = {0600, 0660, 0666};
	mode_t old = umask(077);
	struct stat st;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(open_at(p, &p->r.port, p->path, true, modes[i], NULL), 0);
		assert_int_equal(stat(p->path, &st), 0);
		assert_int_equal(st.st_mode & 07777, modes[i]);
		vhost_be_free(p->r.port);
		assert_false(exists(p->path));
	}
	p->r.port = NULL;
	umask(old);
}

static void stale_socket_is_taken_over(void **state)
{
	struct place *p = *state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, p->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	assert_true(exists(p->path));
	serve(p);
	close(dial(p));
}

static void live_socket_is_not(void **state)
{
	struct place *p = *state;
	struct port *other = NULL;
	struct err err;

	serve(p);
	assert_int_equal(open_at(p, &other, p->path, true, 0600, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, p->path));
	assert_null(other);
	spin(&p->r);
	p->r.fe.fd = dial(p);
	steps(&p->r, 0, VHOST_SIM_ENABLE1);
	traffic(&p->r, 1);
}

static void what_is_no_socket_stays(void **state)
{
	struct place *p = *state;
	int fd = open(p->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	struct port *port;
	struct err err;

	close(fd);
	assert_int_equal(open_at(p, &port, p->path, true, 0600, &err), -EEXIST);
	assert_non_null(strstr(err.text, "not a socket"));
	assert_true(exists(p->path));
	unlink(p->path);
	assert_int_equal(symlink("nowhere", p->path), 0);
	assert_int_equal(open_at(p, &port, p->path, true, 0600, &err), -EEXIST);
	assert_true(exists(p->path));
}

static void bad_paths(void **state)
{
	struct place *p = *state;
	char path[140];
	struct port *port;
	struct err err;

	memset(path, 'x', sizeof(path));
	memcpy(path, p->dir, strlen(p->dir));
	path[strlen(p->dir)] = '/';
	path[108] = '\0';
	for (int server = 0; server < 2; server++) {
		assert_int_equal(open_at(p, &port, path, server, 0600, &err), -ENAMETOOLONG);
		assert_non_null(strstr(err.text, "108"));
		assert_non_null(strstr(err.text, "107"));
		assert_non_null(strstr(err.text, path));
		assert_int_equal(open_at(p, &port, "", server, 0600, &err), -EINVAL);
	}
	path[107] = '\0';
	assert_int_equal(open_at(p, &port, path, true, 0600, &err), 0);
	vhost_be_free(port);
	snprintf(path, sizeof(path), "%s/none/a.sock", p->dir);
	assert_int_equal(open_at(p, &port, path, true, 0600, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

static void only_our_own_file_is_removed(void **state)
{
	struct place *p = *state;
	int fd;

	serve(p);
	unlink(p->path);
	fd = open(p->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	vhost_be_free(p->r.port);
	p->r.port = NULL;
	assert_true(exists(p->path));
}

/* What cannot be given the group it shall have is not left behind. */
static void group_that_is_not_ours(void **state)
{
	struct place *p = *state;
	struct vhost_be_config c = {
		.path = p->path, .server = true, .mode = 0660, .group = 1, .dev = device};
	struct port *port;
	struct err err;
	pid_t pid;
	int status;

	if (geteuid()) {
		assert_int_equal(vhost_be_open(&port, "vm", &c, &p->r.loop, NULL, &err), -EPERM);
		assert_false(exists(p->path));
		return;
	}
	assert_int_equal(chmod(p->dir, 0777), 0);
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setgroups(0, NULL) || setuid(65534))
			_exit(1);
		_exit(vhost_be_open(&port, "vm", &c, &p->r.loop, NULL, &err) != -EPERM ||
			exists(p->path) || !strstr(err.text, "group 1"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void group(void **state)
{
	struct place *p = *state;
	struct vhost_be_config c = {
		.path = p->path, .server = true, .mode = 0660, .group = 65534, .dev = device};
	struct stat st;

	if (geteuid()) {
		print_message("giving a socket to another group needs root\n");
		skip();
	}
	assert_int_equal(vhost_be_open(&p->r.port, "vm", &c, &p->r.loop, NULL, NULL), 0);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_gid, 65534);
	assert_int_equal(st.st_mode & 07777, 0660);
}

/* A connection that cannot be accepted must not wake us for ever. */
static void out_of_descriptors(void **state)
{
	struct place *p = *state;
	struct rlimit old, now;
	int free_fd;

	serve(p);
	p->r.fe.fd = usock_connect(p->path, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	free_fd = dup(0);
	close(free_fd);
	now = (struct rlimit){(rlim_t)free_fd, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	spin(&p->r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	spin(&p->r);
	assert_false(vhost_be_connected(p->r.port)); /* it rests */
	assert_int_equal(loop_deadline(&p->r.loop), p->r.now + NSEC_PER_SEC);
	p->r.now += NSEC_PER_SEC;
	spin(&p->r);
	assert_true(vhost_be_connected(p->r.port));
}

/* Then no peer can take from us what keeps it from stopping us. */
static void signals_are_prepared_before_anybody_comes(void **state)
{
	struct place *p = *state;

	if (!p->r.loop.evfd.aio)
		skip(); /* this system has none */
	evfd_fini(&p->r.loop.evfd);
	serve(p);
	assert_true(p->r.loop.evfd.aio != 0);
}

/* One of a bulk stream: of 64 KiB, but for the guest's memory. */
static void bulk(struct rig *r)
{
	r->port->q.out.frames++;
	r->port->q.out.bytes += 65536;
	receive(r, 1);
}

static void a_held_notification_comes_but_not_after_a_reset(void **state)
{
	struct place *p = *state;
	struct rig *r = &p->r;

	for (unsigned reset = 0; reset < 2; reset++) {
		serve(p);
		r->fe.fd = dial(p);
		steps(r, 0, VHOST_SIM_ENABLE1);
		r->now += 10 * NSEC_PER_MSEC;
		spin(r);
		bulk(r);
		assert_true(signalled(r->fe.call[VDEV_RX]));
		bulk(r);
		assert_false(signalled(r->fe.call[VDEV_RX]));
		if (reset)
			send_u64(r, VHOST_USER_SET_STATUS, 0, 0);
		r->now += NSEC_PER_MSEC;
		spin(r);
		assert_int_equal(signalled(r->fe.call[VDEV_RX]), !reset);
		vhost_be_free(r->port);
		r->port = NULL;
		vhost_sim_hang_up(&r->fe);
	}
}

static void close_then_free(void **state)
{
	struct place *p = *state;

	serve(p);
	p->r.fe.fd = dial(p);
	steps(&p->r, 0, VHOST_SIM_ENABLE1);
	p->r.n_link = 0;
	p->r.port->ops->close(p->r.port);
	assert_int_equal(p->r.n_link, 0); /* no event any more */
	assert_false(exists(p->path));
	assert_true(hung_up(p->r.fe.fd));
	assert_int_equal(maps_of_guest(), 1);
	spin(&p->r);
}

/* client */

static void dial_out(struct place *p)
{
	struct err err;

	assert_int_equal(open_at(p, &p->r.port, p->path, false, 0, &err), 0);
	p->r.port->events = &events;
	p->r.port->events_ctx = &p->r;
}

static nsec_t patience(struct place *p)
{
	nsec_t at = loop_deadline(&p->r.loop);

	return at == NSEC_NEVER ? NSEC_NEVER : at - p->r.now;
}

static void tick(struct place *p)
{
	p->r.now = loop_deadline(&p->r.loop);
	assert_int_equal(loop_dispatch(&p->r.loop, false), 0);
}

static int answer(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void back_off(struct place *p)
{
	for (nsec_t want = 100 * NSEC_PER_MSEC; want < 5 * NSEC_PER_SEC; want *= 2) {
		assert_int_equal(patience(p), want);
		tick(p);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(patience(p), 5 * NSEC_PER_SEC);
		tick(p);
	}
}

static void connects_and_reconnects(void **state)
{
	struct place *p = *state;
	struct usock_file file;
	int listener;

	dial_out(p);
	assert_false(vhost_be_server(p->r.port));
	back_off(p);
	listener = usock_listen(&file, p->path, 0600, (gid_t)-1, NULL);
	assert_true(listener >= 0);
	for (unsigned i = 0; i < 3; i++) {
		tick(p);
		assert_true(vhost_be_connected(p->r.port));
		assert_int_equal(patience(p), NSEC_NEVER);
		p->r.fe.fd = answer(listener);
		assert_true(p->r.fe.fd >= 0);
		steps(&p->r, 0, VHOST_SIM_ENABLE1);
		traffic(&p->r, 1);
		vhost_sim_hang_up(&p->r.fe);
		spin(&p->r);
		assert_int_equal(patience(p), 100 * NSEC_PER_MSEC);
		assert_int_equal(
			vhost_sim_ring(&p->r.fe, 0, 0) | vhost_sim_ring(&p->r.fe, 1, 0), 0);
	}
	close(listener);
}

/* One that accepts and hangs up at once must not be asked all the time. */
static void back_off_from_a_bad_server(void **state)
{
	struct place *p = *state;
	struct usock_file file;
	int listener = usock_listen(&file, p->path, 0600, (gid_t)-1, NULL);
	nsec_t last = 0;

	dial_out(p);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(vhost_be_connected(p->r.port));
		close(answer(listener));
		spin(&p->r);
		assert_false(vhost_be_connected(p->r.port));
		assert_true(patience(p) > last);
		last = patience(p);
		tick(p);
	}
	close(listener);
}

static void client_that_cannot(void **state)
{
	struct place *p = *state;
	struct port *port;
	struct err err;
	char path[100];
	int fd = open(p->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	close(fd);
	snprintf(path, sizeof(path), "%s/under", p->path); /* below what is no folder */
	assert_int_equal(open_at(p, &port, path, false, 0, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(loop_deadline(&p->r.loop), NSEC_NEVER);
}

#define P(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(one_after_the_other),
		P(second_waits_for_its_turn),
		P(waiting_costs_nothing),
		P(silence_is_no_session),
		P(hint_if_it_leaves_over_features),
		P(dead_one_makes_place),
		P(mode_and_umask),
		P(stale_socket_is_taken_over),
		P(live_socket_is_not),
		P(what_is_no_socket_stays),
		P(bad_paths),
		P(only_our_own_file_is_removed),
		P(group),
		P(group_that_is_not_ours),
		P(out_of_descriptors),
		P(signals_are_prepared_before_anybody_comes),
		P(a_held_notification_comes_but_not_after_a_reset),
		P(close_then_free),
		P(connects_and_reconnects),
		P(back_off_from_a_bad_server),
		P(client_that_cannot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
