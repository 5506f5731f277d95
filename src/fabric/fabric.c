/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric: the network of ports. It owns who is on the network, whose turn it is, where a frame goes
 * and who waits for whom. It must not know a concrete port, a ring or a socket.
 *
 * A queue is in one of three states:
 *
 *	            ready event, link up                       no room at its only receiver
 *	  armed  ------------------------->  on the ready list  -------------------------->  waiting
 *	         <-------------------------                     <--------------------------
 *	           pulled nothing for poll_us                    room, wait_until, link lost
 *
 * Armed queues cost nothing: no task, no timer. The ready list is served round robin by a task of
 * the loop, some bursts a run, so that descriptors and timers get their turn, too.
 *
 * Waiting. A run whose only receiver takes k of n frames ends the burst: what was not taken goes
 * back on the sender's ring, in order, and with it everything behind it. The sender remembers the
 * receiver and how many segments of the first frame are delivered there (`resume`), and is woken
 * when there is room, or at wait_until. Then the frame at the head is given up; so are its
 * neighbours of the same run if frames for somebody else stand behind them, for those have waited
 * enough. While the budget of the pair is used up (pause.h), frames that find no room are dropped
 * and the burst goes on at once. A sender that has had frames for nobody else for a while keeps nobody
 * by waiting: it may wait longer, in pieces of wait_us, looking each time whether somebody's frames
 * have come up behind; and again and again, while the receiver takes a fair rate. Of many that wait for one receiver the one that got nothing for
 * longest is served first.
 */
#include "fabric/fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fdb.h"
#include "fabric/pause.h"
#include "wire/eth.h"

#define BURSTS_A_RUN 16 /* some 100 us of 64-byte frames until descriptors are looked at */
#define POLL_PULL    4  /* frames to try with, while room is polled for */
#define ALONE_AFTER  (WAIT_WINDOW_MS * NSEC_PER_MSEC) /* without a frame for anybody else */
#define RETRIES      4 /* how often "there is room" is believed without anything being taken */

/* Segments a turn cuts before others have theirs; an honest burst makes 360 (64 KiB at 1448 bytes). */
#define SEGMENTS_A_TURN 1024

#define TARGET_FLOOD (-1)
#define TARGET_NONE  (-2) /* f->drop is set */

/* 01-80-C2-00-00-00 to -0F are for the nearest bridge only, as in Linux. [IEEE 802.1Q 8.6.3] */
#define RESERVED_MACS UINT64_C(0x0180c2000000)

struct fabric {
	struct loop *loop;
	struct log *log;
	nsec_t poll_ns, wait_ns;
	struct fdb *fdb;
	struct loop_task task;
	TAILQ_HEAD(, portq) ready, touched;
	unsigned nready;
	TAILQ_HEAD(, port) ports;
	struct port *port[PORTS_MAX];
	uint64_t ticket;
	void (*on_link)(void *ctx, struct port *);
	void *on_link_ctx;
	struct fabric_stats stats;

	/* of the running burst */
	unsigned n;    /* frames of it that have their turn */
	uint32_t need; /* bytes that found no room */
	int16_t target[BURST_FRAMES];
	struct fit fit;
	struct burst burst;
};

/* the ready list */

static void ready_add(struct fabric *f, struct portq *q)
{
	if (q->fab.ready || q->fab.waiting || !q->port->link)
		return;
	q->fab.ready = true;
	f->nready++;
	TAILQ_INSERT_TAIL(&f->ready, q, fab.ready_entry);
	loop_defer(f->loop, &f->task);
}

static void ready_remove(struct fabric *f, struct portq *q)
{
	if (!q->fab.ready)
		return;
	q->fab.ready = false;
	f->nready--;
	TAILQ_REMOVE(&f->ready, q, fab.ready_entry);
}

/* waiting */

static void wait_forget(struct portq *q)
{
	q->fab.wait_for = NULL;
	q->fab.resume = 0;
	q->fab.retries = 0;
}

/* Off the receiver's list; whether the frame at the head is the same the next turn will see. */
static void wait_end(struct portq *q)
{
	if (!q->fab.waiting)
		return;
	q->fab.waiting = false;
	TAILQ_REMOVE(&q->fab.wait_for->fab.waiters, q, fab.wait_entry);
	loop_timer_cancel(q->port->loop, &q->fab.wait_timer);
}

static void wake_waiters(struct fabric *f, struct portq *to)
{
	struct portq *q;

	while ((q = TAILQ_FIRST(&to->fab.waiters))) {
		wait_end(q);
		ready_add(f, q);
	}
}

static void wait_expired(struct loop_timer *t)
{
	struct portq *q = (struct portq *)((char *)t - offsetof(struct portq, fab.wait_timer));
	struct fabric *f = q->port->events_ctx;

	wait_end(q);
	q->fab.pull_max = 0; /* see whose frames stand behind by now */
	ready_add(f, q);
}

/* Sorted by ticket; newcomers have the highest, so the search from the end is short. */
static void wait_insert(struct portq *q, struct portq *to)
{
	struct portq *w = TAILQ_LAST(&to->fab.waiters, portq_waiters);

	while (w && w->fab.wait_ticket > q->fab.wait_ticket)
		w = TAILQ_PREV(w, portq_waiters, fab.wait_entry);
	if (w)
		TAILQ_INSERT_AFTER(&to->fab.waiters, w, q, fab.wait_entry);
	else
		TAILQ_INSERT_HEAD(&to->fab.waiters, q, fab.wait_entry);
}

/* The burst is settled, `back` frames went back: wait for q->fab.wait_for. */
static void wait_begin(struct fabric *f, struct portq *q, unsigned back)
{
	struct portq *to = q->fab.wait_for;

	if (loop_now(f->loop) < q->fab.wait_poll) {
		q->fab.pull_max = back < POLL_PULL ? back : POLL_PULL;
		ready_add(f, q);
		return;
	}
	if (TAILQ_EMPTY(&to->fab.waiters) || f->need < to->fab.room_need)
		to->fab.room_need = f->need;
	q->fab.pull_max = back;
	q->fab.waiting = true;
	wait_insert(q, to);
	loop_listen(f->loop);
	loop_timer_set(f->loop, &q->fab.wait_timer, q->fab.wait_until);
	if (q->fab.retries < RETRIES && to->port->ops->arm_room(to, to->fab.room_need)) {
		q->fab.retries++;
		wake_waiters(f, to);
	}
}

enum wait_answer {
	WAIT,    /* what is left of the burst goes back */
	GIVE_UP, /* the head waited long enough */
	BROKE,   /* no budget, or waiting is off */
};

/* Does anybody but the receiver `target` have a frame from `i` on? */
static bool others_follow(const struct fabric *f, unsigned i, int16_t target)
{
	for (; i < f->n; i++) {
		if (f->target[i] != target && f->target[i] != TARGET_NONE)
			return true;
	}
	return false;
}

/*
 * A pause keeps nobody else if the sender has had frames for nobody else for a while, nor has any in
 * this burst from `end` on; and if the receiver does not wait for the sender in its turn.
 */
static bool wait_alone(const struct fabric *f, const struct portq *q, const struct portq *to,
	unsigned end, nsec_t now)
{
	int16_t target = (int16_t)to->port->index;

	return q->fab.only == target && now - q->fab.other_at >= ALONE_AFTER &&
	       to->fab.wait_for != q && !others_follow(f, end, target);
}

/*
 * The frame at the head found no room; `same`: it is the one that the last pause was for. Its run
 * ends at `end`.
 */
static enum wait_answer wait_ask(
	struct fabric *f, struct portq *q, struct portq *to, bool same, unsigned end)
{
	nsec_t now = loop_now(f->loop), grant = 0;
	bool alone;

	if (same && now < q->fab.wait_until)
		return WAIT;
	alone = wait_alone(f, q, to, end, now);
	if (f->wait_ns && (alone || !same))
		grant = pause_grant(&q->fab.pause[to->port->index], now, f->wait_ns, alone);
	if (!grant) {
		f->stats.wait_timeouts += same;
		return same ? GIVE_UP : BROKE;
	}
	q->fab.wait_alone = alone;
	q->fab.wait_until = now + grant;
	q->fab.retries = 0;
	if (!same) {
		f->stats.waits++;
		q->fab.wait_poll = now + f->poll_ns;
		q->fab.wait_ticket = ++f->ticket;
	}
	return WAIT;
}

/* Enough of a frame to tell it from another one. */
static uint64_t print_of(const struct frame *fr)
{
	uint64_t h = frame_len(fr), w;

	for (unsigned i = 0; i + 8 <= fr->head_len && i < 64; i += 8) {
		memcpy(&w, fr->head + i, 8);
		h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	return h;
}

/* The pause lasted until this turn. */
static void wait_charge(struct fabric *f, struct portq *q)
{
	if (q->fab.wait_for)
		pause_charge(&q->fab.pause[q->fab.wait_for->port->index],
			loop_now(f->loop) - q->fab.wait_since, q->fab.wait_alone);
	q->fab.wait_owes |= q->fab.wait_for && q->fab.wait_alone;
}

/* The receiver took these: it does not stand still. */
static void wait_earn(
	struct fabric *f, struct portq *q, const struct portq *to, unsigned i, unsigned end)
{
	uint64_t bytes = 0;

	for (; i < end; i++)
		bytes += frame_len(&f->burst.f[i]);
	q->fab.wait_owes = pause_earn(&q->fab.pause[to->port->index], bytes);
}

/* where frames go */

static inline uint16_t vlan_of(const struct frame *fr)
{
	if (__builtin_expect(!eth_tagged(fr->head), 1))
		return 0;
	return fr->head_len >= ETH_HLEN + VLAN_HLEN ? get_be16(fr->head + ETH_HLEN) & 0xfff : 0;
}

/* What the last frame of the burst was, and what became of it. */
struct memo {
	struct eth_raw raw;
	uint64_t src, dst;
	uint16_t vlan;
	bool tagged; /* equal headers do not mean equal tags */
	int16_t target;
	uint8_t drop;
};

static int16_t lookup(struct fabric *f, struct portq *q, struct memo *m)
{
	int port;

	if (m->dst >> 4 == RESERVED_MACS >> 4) {
		m->drop = DROP_RESERVED;
		return TARGET_NONE;
	}
	if (m->dst >> 40 & 1)
		return TARGET_FLOOD;
	port = fdb_find(f->fdb, m->dst, m->vlan, loop_now(f->loop));
	if (port < 0)
		return TARGET_FLOOD;
	if ((unsigned)port == q->port->index) {
		m->drop = DROP_LOOP;
		return TARGET_NONE;
	}
	return (int16_t)port;
}

static void decide(struct fabric *f, struct portq *q, const struct memo *last, struct memo *m)
{
	m->drop = DROP_NONE;
	if (!m->src || m->src >> 40 & 1) {
		m->drop = DROP_BAD_SRC;
		m->target = TARGET_NONE;
		return;
	}
	if (m->src != last->src || m->vlan != last->vlan)
		fdb_learn(f->fdb, m->src, m->vlan, q->port->index, loop_now(f->loop));
	m->target = lookup(f, q, m);
}

/* Where the addresses of a burst are in the table; one flow's will be there after its first frame. */
static void prefetch(const struct fabric *f, const struct burst *b)
{
	const struct frame *first = &b->f[0], *end = &b->f[b->n - 1];
	struct eth_raw last = {0}, raw;

	if (!first->drop && !end->drop &&
		eth_raw_same(eth_raw_of(first->head), eth_raw_of(end->head)))
		return;
	for (unsigned i = 0; i < b->n; i++) {
		const struct frame *fr = &b->f[i];

		if (fr->drop)
			continue;
		raw = eth_raw_of(fr->head);
		if (eth_raw_same(raw, last))
			continue;
		last = raw;
		fdb_prefetch(f->fdb, eth_u48(fr->head + ETH_ALEN), vlan_of(fr));
		fdb_prefetch(f->fdb, eth_u48(fr->head), vlan_of(fr));
	}
}

/* The frame does not look like the last one. */
static void classify_one(struct fabric *f, struct portq *q, const struct frame *fr,
	struct eth_raw raw, struct memo *last)
{
	struct memo m = {.raw = raw,
		.dst = eth_u48(fr->head),
		.src = eth_u48(fr->head + ETH_ALEN),
		.vlan = vlan_of(fr),
		.tagged = eth_tagged(fr->head)};

	if (m.dst != last->dst || m.src != last->src || m.vlan != last->vlan) {
		decide(f, q, last, &m);
	} else {
		m.target = last->target;
		m.drop = last->drop;
	}
	*last = m;
}

/*
 * Learn each source; find each frame's target or the reason why it has none. Super-packets of tiny
 * segments end the turn early.
 */
static void classify(struct fabric *f, struct portq *q, struct burst *b)
{
	struct memo last = {.target = TARGET_NONE, .drop = DROP_BAD_SRC};
	unsigned segments = 0;

	if (b->n > 2)
		prefetch(f, b);
	for (unsigned i = 0; i < b->n; i++) {
		struct frame *fr = &b->f[i];
		struct eth_raw raw;

		f->target[i] = TARGET_NONE;
		if (fr->drop)
			continue;
		raw = eth_raw_of(fr->head);
		if (!eth_raw_same(raw, last.raw) || last.tagged)
			classify_one(f, q, fr, raw, &last);
		fr->drop = last.drop;
		f->target[i] = last.target;
		if (fr->off.gso && (segments += fit_segments(fr)) > SEGMENTS_A_TURN) {
			f->n = i ? i : 1;
			return;
		}
	}
	f->n = b->n;
}

/* delivery */

static void touch(struct fabric *f, struct portq *to)
{
	if (to->fab.touched)
		return;
	to->fab.touched = true;
	TAILQ_INSERT_TAIL(&f->touched, to, fab.flush_entry);
}

static void flush_touched(struct fabric *f)
{
	struct portq *to;

	while ((to = TAILQ_FIRST(&f->touched))) {
		TAILQ_REMOVE(&f->touched, to, fab.flush_entry);
		to->fab.touched = false;
		to->port->ops->flush(to);
	}
}

static void drop_no_room(struct fabric *f, struct portq *to, unsigned i, unsigned end)
{
	for (; i < end; i++) {
		if (!f->burst.f[i].drop)
			port_drop_out(to, &f->burst.f[i], DROP_NO_ROOM);
	}
}

static void flood(struct fabric *f, struct portq *q, unsigned i, unsigned end)
{
	bool nobody = true;
	struct port *p;

	TAILQ_FOREACH (p, &f->ports, entry) {
		uint32_t resume = 0;

		if (p == q->port || !p->link)
			continue;
		nobody = false;
		touch(f, &p->q);
		drop_no_room(f, &p->q,
			i + port_push(&p->q, &f->burst.f[i], end - i, &resume, &f->fit), end);
	}
	f->stats.floods += end - i;
	for (; nobody && i < end; i++) {
		if (!f->burst.f[i].drop)
			f->burst.f[i].drop = DROP_NO_DEST;
	}
}

/* [i, end) found no room at `to`: remember what for, to wait when the burst is settled. */
static void wait_note(struct fabric *f, struct portq *q, struct portq *to, uint32_t resume,
	unsigned i, unsigned end)
{
	q->fab.wait_for = to;
	q->fab.resume = resume;
	q->fab.head_print = print_of(&f->burst.f[i]);
	q->fab.wait_since = loop_now(f->loop);
	f->need = 0;
	for (; i < end; i++)
		f->need += frame_len(&f->burst.f[i]);
}

/* A run with one receiver. Returns where it stopped: `end`, or the first frame that waits. */
static unsigned unicast(
	struct fabric *f, struct portq *q, struct portq *to, unsigned i, unsigned end)
{
	bool same = i == 0 && q->fab.wait_for == to;
	uint32_t resume = same ? q->fab.resume : 0;

	touch(f, to);
	while (i < end) {
		uint32_t before = resume;
		unsigned took = port_push(to, &f->burst.f[i], end - i, &resume, &f->fit);
		enum wait_answer answer;

		if (q->fab.wait_owes)
			wait_earn(f, q, to, i, i + took);
		i += took;
		if (i == end)
			break;
		same = same && !took && resume == before;
		answer = wait_ask(f, q, to, same, end);
		if (answer == WAIT) {
			wait_note(f, q, to, resume, i, end);
			return i;
		}
		if (answer == BROKE || others_follow(f, end, (int16_t)to->port->index)) {
			drop_no_room(f, to, i, end);
			break;
		}
		drop_no_room(f, to, i, i + 1);
		i++;
		resume = 0;
		same = false;
	}
	return end;
}

/* Cut the burst into runs of neighbours with the same target. Returns how many frames are done. */
static unsigned forward(struct fabric *f, struct portq *q)
{
	unsigned n = f->n, end;

	for (unsigned i = 0; i < n; i = end) {
		int16_t target = f->target[i];

		for (end = i + 1; end < n; end++) {
			if (f->target[end] != target && f->target[end] != TARGET_NONE)
				break;
		}
		if (target >= 0 && target != q->fab.only) {
			if (q->fab.only >= 0)
				q->fab.other_at = loop_now(f->loop);
			q->fab.only = target;
		}
		if (target == TARGET_FLOOD) {
			flood(f, q, i, end);
		} else if (target != TARGET_NONE) {
			struct port *to = f->port[target];
			unsigned done;

			assert(to); /* a port that goes is forgotten with its addresses */
			done = unicast(f, q, &to->q, i, end);
			if (done < end)
				return done;
		}
	}
	return n;
}

/* turns */

static void turn_empty(struct fabric *f, struct portq *q)
{
	wait_forget(q);
	if (loop_now(f->loop) < q->fab.busy_until) {
		f->stats.polls_empty++;
		loop_listen(f->loop);
		ready_add(f, q);
	} else if (q->port->ops->arm(q)) {
		ready_add(f, q);
	}
}

/* One burst of one queue. False: it got nowhere. */
static bool turn(struct fabric *f, struct portq *q)
{
	unsigned max = q->fab.pull_max ? q->fab.pull_max : BURST_FRAMES;
	unsigned n = port_pull(q, &f->burst, max), done;

	f->stats.turns++;
	q->fab.pull_max = 0;
	wait_charge(f, q);
	if (!n) {
		turn_empty(f, q);
		return false;
	}
	if (q->fab.wait_for && print_of(&f->burst.f[0]) != q->fab.head_print)
		wait_forget(q);
	f->stats.bursts++;
	q->fab.busy_until = loop_now(f->loop) + f->poll_ns;
	classify(f, q, &f->burst);
	done = forward(f, q);
	flush_touched(f);
	port_settle(q, &f->burst, done);
	f->stats.frames += done;
	if (done < f->n) {
		wait_begin(f, q, n - done);
	} else {
		wait_forget(q);
		ready_add(f, q);
	}
	return done > 0;
}

/* Some bursts, or until nobody on the ready list got anywhere. */
static void fabric_run(struct loop_task *task)
{
	struct fabric *f = (struct fabric *)((char *)task - offsetof(struct fabric, task));
	unsigned empty = 0;
	struct portq *q;

	loop_refresh(f->loop);
	for (unsigned i = 0; i < BURSTS_A_RUN && empty <= f->nready; i++) {
		q = TAILQ_FIRST(&f->ready);
		if (!q)
			return;
		ready_remove(f, q);
		empty = turn(f, q) ? 0 : empty + 1;
	}
	if (f->nready)
		loop_defer(f->loop, task);
}

/* what ports tell */

static void on_ready(void *ctx, struct portq *q)
{
	ready_add(ctx, q);
}

static void on_room(void *ctx, struct portq *to)
{
	wake_waiters(ctx, to);
}

/* Nobody waits for it or resumes there, it waits for nobody, and its addresses are forgotten. */
static void port_gone(struct fabric *f, struct port *gone)
{
	struct port *p;

	wake_waiters(f, &gone->q);
	TAILQ_FOREACH (p, &f->ports, entry) {
		if (p->q.fab.wait_for == &gone->q) {
			wait_charge(f, &p->q);
			wait_forget(&p->q);
		}
	}
	wait_end(&gone->q);
	wait_forget(&gone->q);
	gone->q.fab.pull_max = 0;
	ready_remove(f, &gone->q);
	fdb_forget_port(f->fdb, gone->index);
}

static void on_link_change(void *ctx, struct port *p)
{
	struct fabric *f = ctx;

	if (p->link)
		ready_add(f, &p->q);
	else
		port_gone(f, p);
	if (f->on_link)
		f->on_link(f->on_link_ctx, p);
}

static const struct port_events fabric_events = {
	.ready = on_ready,
	.room = on_room,
	.link = on_link_change,
};

/* coming and going */

static int attach_check(struct fabric *f, const struct port *p, struct err *err)
{
	static const uint8_t none[ETH_ALEN];
	const struct port *other;
	char mac[ETH_TEXT];
	int r = port_name_check(p->name, err);

	if (r)
		return r;
	TAILQ_FOREACH (other, &f->ports, entry) {
		if (!strcmp(other->name, p->name))
			return err_set(err, EEXIST,
				"there is a port \"%s\" (%s) already: give the new %s port another "
				"name=",
				p->name, other->ops->kind, p->ops->kind);
		if (!memcmp(p->mac, none, ETH_ALEN) || memcmp(p->mac, other->mac, ETH_ALEN) != 0)
			continue;
		eth_build_text(p->mac, mac);
		return err_set(err, EEXIST,
			"port \"%s\" cannot have the MAC address %s, port \"%s\" has it: give one "
			"of them "
			"another mac=",
			p->name, mac, other->name);
	}
	return 0;
}

int fabric_attach(struct fabric *f, struct port *p, struct err *err)
{
	struct fabric_q *fq = &p->q.fab;
	struct port *other;
	unsigned index = 0;
	int r = attach_check(f, p, err);

	if (r)
		return r;
	while (index < PORTS_MAX && f->port[index])
		index++;
	if (index == PORTS_MAX)
		return err_set(err, ENOSPC, "port \"%s\" is one too many: a network has at most %d",
			p->name, PORTS_MAX);
	memset(fq, 0, sizeof(*fq));
	fq->only = -1;
	fq->other_at = loop_now(f->loop) - ALONE_AFTER;
	TAILQ_INIT(&fq->waiters);
	fq->pause = calloc(PORTS_MAX, sizeof(*fq->pause));
	if (!fq->pause)
		return err_set(err, ENOMEM, "no memory for port \"%s\"", p->name);
	r = loop_timer_reserve(f->loop, &fq->wait_timer, wait_expired);
	if (r) {
		free(fq->pause);
		fq->pause = NULL;
		return err_set(err, -r, "no memory for port \"%s\"", p->name);
	}
	p->index = index;
	f->port[index] = p;
	TAILQ_INSERT_TAIL(&f->ports, p, entry);
	for (unsigned i = 0; i < PORTS_MAX; i++)
		pause_init(&fq->pause[i], loop_now(f->loop));
	TAILQ_FOREACH (other, &f->ports, entry)
		pause_init(&other->q.fab.pause[index], loop_now(f->loop));
	p->events = &fabric_events;
	p->events_ctx = f;
	ready_add(f, &p->q);
	return 0;
}

void fabric_detach(struct fabric *f, struct port *p)
{
	port_gone(f, p);
	TAILQ_REMOVE(&f->ports, p, entry);
	f->port[p->index] = NULL;
	loop_timer_release(f->loop, &p->q.fab.wait_timer);
	free(p->q.fab.pause);
	p->q.fab.pause = NULL;
	p->events = NULL;
	p->events_ctx = NULL;
}

int fabric_new(struct fabric **out, const struct fabric_config *cfg, struct loop *loop,
	struct log *log, struct err *err)
{
	struct fabric *f = calloc(1, sizeof(*f));

	*out = NULL;
	if (!f)
		return err_set(err, ENOMEM, "no memory for a network");
	f->fdb = fdb_new(cfg->seed, cfg->age_sec);
	if (!f->fdb) {
		free(f);
		return err_set(err, ENOMEM, "no memory for a network's address table");
	}
	f->loop = loop;
	f->log = log;
	f->poll_ns = cfg->poll_us * NSEC_PER_USEC;
	f->wait_ns = cfg->wait_us * NSEC_PER_USEC;
	f->task.run = fabric_run;
	TAILQ_INIT(&f->ready);
	TAILQ_INIT(&f->touched);
	TAILQ_INIT(&f->ports);
	*out = f;
	return 0;
}

void fabric_free(struct fabric *f)
{
	if (!f)
		return;
	assert(TAILQ_EMPTY(&f->ports));
	loop_undefer(f->loop, &f->task);
	fdb_free(f->fdb);
	free(f);
}

/* questions */

struct port *fabric_find(struct fabric *f, const char *name)
{
	struct port *p;

	TAILQ_FOREACH (p, &f->ports, entry) {
		if (!strcmp(p->name, name))
			return p;
	}
	return NULL;
}

struct port *fabric_first(struct fabric *f)
{
	return TAILQ_FIRST(&f->ports);
}

struct port *fabric_port(struct fabric *f, unsigned index)
{
	return index < PORTS_MAX ? f->port[index] : NULL;
}

const struct fdb *fabric_fdb(const struct fabric *f)
{
	return f->fdb;
}

void fabric_on_link(struct fabric *f, void (*fn)(void *ctx, struct port *), void *ctx)
{
	f->on_link = fn;
	f->on_link_ctx = ctx;
}

void fabric_get_stats(const struct fabric *f, struct fabric_stats *s)
{
	*s = f->stats;
}
