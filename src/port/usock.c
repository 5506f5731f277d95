/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usock: see usock.h. The mode is put on the socket before bind, so that the file is born with it
 * (the kernel takes the process's umask off, but nothing can be added); what the umask took is put
 * back before listen, while every connection is still refused. umask() itself is not touched: it
 * belongs to the whole process, and this is a library.
 */
#include "port/usock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16 /* connections not yet accepted: all but one will be turned away */

static int address_make(struct sockaddr_un *addr, const char *path, struct err *err)
{
	size_t len = strlen(path);

	_Static_assert(sizeof(addr->sun_path) == USOCK_PATH_MAX + 1, "length of a socket path");
	if (!len)
		return err_set(err, EINVAL, "the path of the socket is empty");
	if (len > USOCK_PATH_MAX)
		return err_set(err, ENAMETOOLONG,
			"path of a socket has %zu bytes, at most %d fit: %s", len, USOCK_PATH_MAX,
			path);
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	memcpy(addr->sun_path, path, len);
	return 0;
}

static int socket_make(struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd >= 0 ? fd : err_set(err, errno, "cannot make a socket: %s", strerror(errno));
}

static int socket_reach(int fd, const struct sockaddr_un *addr)
{
	return connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno : 0;
}

/* 0: the file at `addr` was nobody's and is gone, bind again. */
static int stale_remove(const struct sockaddr_un *addr, struct err *err)
{
	const char *path = addr->sun_path;
	struct stat before, now;
	int fd, r;

	if (lstat(path, &before))
		return errno == ENOENT ? 0 : err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(before.st_mode))
		return err_set(err, EEXIST,
			"%s exists and is not a socket: choose another path, or remove it", path);
	fd = socket_make(err);
	if (fd < 0)
		return fd;
	r = socket_reach(fd, addr);
	close(fd);
	if (r == -ENOENT)
		return 0;
	if (r == 0 || r == -EAGAIN || r == -EPROTOTYPE)
		return err_set(err, EADDRINUSE,
			"%s is in use: a live process listens on it; stop it, or choose another "
			"path",
			path);
	if (r != -ECONNREFUSED)
		return err_set(err, -r, "%s is in use, and cannot be asked by whom: %s", path,
			strerror(-r));
	/* Whoever took it over in the meantime keeps it. */
	if (lstat(path, &now) == 0 && now.st_dev == before.st_dev && now.st_ino == before.st_ino &&
		unlink(path))
		return err_set(
			err, errno, "cannot remove the stale socket %s: %s", path, strerror(errno));
	return 0;
}

static int path_bind(int fd, const struct sockaddr_un *addr, struct err *err)
{
	for (int tries = 0; tries < 2; tries++) {
		int r;

		if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
			return 0;
		if (errno == ENOENT)
			return err_set(err, ENOENT,
				"cannot listen on %s: no such folder; make it first",
				addr->sun_path);
		if (errno == EACCES)
			return err_set(err, EACCES,
				"cannot listen on %s: you may not write to that folder; choose "
				"another",
				addr->sun_path);
		if (errno != EADDRINUSE)
			return err_set(err, errno, "cannot listen on %s: %s", addr->sun_path,
				strerror(errno));
		r = stale_remove(addr, err);
		if (r)
			return r;
	}
	return err_set(err, EADDRINUSE, "%s is in use: another process takes it over, too",
		addr->sun_path);
}

/* Group and mode of the file that `fd` (O_PATH) is, whatever its name leads to by now. */
static int rights_set(
	int fd, const struct stat *st, const char *path, mode_t mode, gid_t group, struct err *err)
{
	const struct group *g;
	char self[32];

	if (group != (gid_t)-1 && group != st->st_gid &&
		fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH)) {
		int e = errno;

		g = getgrgid(group);
		return err_set(err, e,
			"cannot give %s to group %u (%s): %s; only root, or who is in that group, "
			"may",
			path, (unsigned)group, g ? g->gr_name : "no name", strerror(e));
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if ((st->st_mode & 07777) != mode && chmod(self, mode))
		return err_set(err, errno, "cannot set mode %04o on %s: %s", (unsigned)mode, path,
			strerror(errno));
	return 0;
}

/*
 * Between bind and listen: nobody can connect yet. In a folder that others may write to, the name may
 * be somebody's link already: what is opened is looked at, and only that is changed.
 */
static int file_prepare(
	struct usock_file *file, const char *path, mode_t mode, gid_t group, struct err *err)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), r;
	struct stat st;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		r = err_set(err, errno, "%s: %s", path, strerror(errno));
	else if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		r = err_set(err, EADDRINUSE, "%s is in use: another process took it over", path);
	else {
		*file = (struct usock_file){.dev = st.st_dev, .ino = st.st_ino};
		r = rights_set(fd, &st, path, mode, group, err);
	}
	close(fd);
	return r;
}

static bool file_is_ours(const struct usock_file *file, const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino;
}

int usock_listen(
	struct usock_file *file, const char *path, mode_t mode, gid_t group, struct err *err)
{
	struct sockaddr_un addr;
	int fd, r;

	r = address_make(&addr, path, err);
	if (r)
		return r;
	fd = socket_make(err);
	if (fd < 0)
		return fd;
	if (fchmod(fd, mode)) {
		r = err_set(
			err, errno, "cannot set mode %04o: %s", (unsigned)mode, strerror(errno));
		goto close_fd;
	}
	r = path_bind(fd, &addr, err);
	if (r)
		goto close_fd;
	*file = (struct usock_file){0};
	r = file_prepare(file, path, mode, group, err);
	if (r)
		goto remove_file;
	if (listen(fd, BACKLOG)) {
		r = err_set(err, errno, "cannot listen on %s: %s", path, strerror(errno));
		goto remove_file;
	}
	/* One that started at the same instant may have thought ours stale. */
	if (file_is_ours(file, path))
		return fd;
	r = err_set(err, EADDRINUSE, "%s is in use: another process took it over", path);
	goto close_fd;

remove_file:
	usock_remove(file, path);
close_fd:
	close(fd);
	return r;
}

void usock_remove(const struct usock_file *file, const char *path)
{
	if (file_is_ours(file, path))
		unlink(path);
}

int usock_connect(const char *path, struct err *err)
{
	struct sockaddr_un addr;
	int fd, r;

	r = address_make(&addr, path, err);
	if (r)
		return r;
	fd = socket_make(err);
	if (fd < 0)
		return fd;
	r = socket_reach(fd, &addr);
	if (!r)
		return fd;
	close(fd);
	return err_set(err, -r, "cannot connect to %s: %s", path, strerror(-r));
}
