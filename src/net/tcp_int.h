/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_int: what the files of the TCP engine share: the host, the connection, their queues. Nobody
 * else includes it.
 *
 *	send queue, in sequence order; `unsent` is the first never sent (NULL: all was):
 *
 *	  snd_una                           snd_nxt            write_seq
 *	  |[txseg 45 mss][txseg 45][txseg 3]|[txseg 45][txseg 7]|
 *	      sacked/lost/rtx: one bit per granule (the mss at first transmission), never split
 *
 * A FIN is a txseg without bytes that counts one number. A SYN is none: `need_syn` and the timer.
 */
#ifndef NET_TCP_INT_H
#define NET_TCP_INT_H

#include <sys/queue.h>

#include "base/rand.h"
#include "net/bucket.h"
#include "net/ranges.h"
#include "net/tcp.h"

#define TCP_MSS_DEFAULT4  536 /* the peer names none [RFC 9293 3.7.1] */
#define TCP_MSS_DEFAULT6  1220
#define TCP_MSS_MIN       88 /* smaller ones are taken for this: 5.3 of the threat list */
#define TCP_GRANULES      64
#define TCP_QUICKACKS     16
#define TCP_HDR           20
#define TCP_RTO_MAX       (120 * NSEC_PER_SEC)
#define TCP_RTO_INIT      (1 * NSEC_PER_SEC)
#define TCP_TS_OPT        12 /* bytes of timestamps with padding */
#define TCP_REPLIES       64
#define TCP_SYN_LEVELS    6
#define TCP_RST_BUCKETS   256
#define TCP_RST_BURST     64            /* resets to strangers of one source at once ... */
#define TCP_RST_REFILL    NSEC_PER_MSEC /* ... then one each 1 to 3 ms */
#define TCP_TIMEWAIT_PAWS 1             /* s: a newer timestamp must differ so much */

static inline bool seq_lt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}
static inline bool seq_le(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) <= 0;
}
static inline uint32_t seq_max(uint32_t a, uint32_t b)
{
	return seq_lt(a, b) ? b : a;
}
static inline uint32_t u32_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}
static inline uint32_t u32_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Options of one segment, parsed. */
struct tcp_opts {
	bool mss_ok, ws_ok, sack_ok, ts_ok;
	uint16_t mss;
	uint8_t ws;
	uint32_t tsval, tsecr;
	unsigned nsack;
	uint32_t sack[4][2];
};

enum tcp_kind { TCP_NODE_CONN, TCP_NODE_SYN, TCP_NODE_TW };

struct tcp_node { /* in the one table of tuples */
	struct tcp_node *next;
	uint32_t hash;
	uint8_t kind;
	bool hashed;
	uint32_t flow; /* label: says nothing of the hash, which would tell what collides */
	struct tcp_tuple tuple;
};

struct tcp_txseg {
	TAILQ_ENTRY(tcp_txseg) q;
	uint32_t seq, len;
	uint32_t gran; /* bytes of a granule; 0: never sent */
	uint8_t ngran;
	bool psh, fin, closed;      /* closed: nothing is appended */
	uint64_t sacked, lost, rtx; /* rtx: of the lost, those sent again and not lost again */
	uint64_t again;             /* those ever sent more than once */
	nsec_t xmit, rxmit;
	unsigned nfrag;
	struct pkt_frag frag[PKT_FRAGS];
};
TAILQ_HEAD(tcp_txq, tcp_txseg);

struct tcp_rx { /* received bytes: [off, off + len) of pkt are [seq, seq + len) */
	STAILQ_ENTRY(tcp_rx) q;
	struct pkt *pkt;
	uint32_t seq, off, len;
};
STAILQ_HEAD(tcp_rxq, tcp_rx);

struct tcp_ooo { /* the bytes behind gaps: the intervals and, in sequence order, their buffers */
	STAILQ_ENTRY(tcp_ooo) q;
	struct ranges iv;
	uint32_t recent[4];              /* where intervals begin, the newest first */
	uint32_t acks;                   /* sent or saved since the front last moved */
	struct tcp_rx *last[RANGES_MAX]; /* the last buffer of each interval */
	struct tcp_rxq rx;
};

struct tcp_syn { /* SYN-RECEIVED of a listener: the small block */
	struct tcp_node node;
	TAILQ_ENTRY(tcp_syn) q;    /* of the host, by age of the last transmission */
	TAILQ_ENTRY(tcp_syn) lq;   /* of the listener */
	TAILQ_ENTRY(tcp_syn) outq; /* wants its SYN-ACK sent */
	struct tcp_listener *listener;
	uint32_t irs, iss, ts_recent, rcv_wnd;
	uint16_t mss, wnd;
	uint8_t ws, retries;
	bool ws_ok, sack_ok, ts_ok, ecn, out, ack; /* ack: not the SYN-ACK, a (challenge) ACK */
	nsec_t deadline, sent, challenge;
};
TAILQ_HEAD(tcp_synq, tcp_syn);

struct tcp_tw { /* TIME-WAIT, compressed */
	struct tcp_node node;
	TAILQ_ENTRY(tcp_tw) q;
	uint32_t snd_nxt, rcv_nxt, rcv_wnd, ts_recent, ts_off;
	uint16_t wnd;
	bool ts_ok;
	nsec_t expires, limited;
};
TAILQ_HEAD(tcp_twq, tcp_tw);

struct tcp_listener {
	LIST_ENTRY(tcp_listener) q;
	struct tcp_host *host;
	struct ip_addr addr;
	uint16_t port;
	unsigned backlog, nsyn, naccept;
	void *user;
	bool event_queued;
	STAILQ_HEAD(, tcp) accept;
	struct tcp_synq syns;
	STAILQ_ENTRY(tcp_listener) eventq;
};

/* Congestion control and loss recovery of a connection. Sizes in bytes. */
enum tcp_ca { TCP_CA_OPEN, TCP_CA_RECOVERY, TCP_CA_LOSS };

/* Was the timer right? [RFC 5682 3] */
enum tcp_frto {
	FRTO_OFF,
	FRTO_FIRST, /* its retransmission is out, no ACK has moved on yet */
	FRTO_NEW,   /* one has: new data is sent, and the next ACK tells */
};

struct tcp_hystart {  /* [RFC 9406] */
	uint32_t end; /* of the round: its last number */
	uint8_t samples, css_rounds;
	bool started, css;
	nsec_t last_min, min, css_base; /* round-trip times; NSEC_NEVER: none */
};

struct tcp_cubic {
	nsec_t epoch; /* 0: none */
	double w_max, w_last_max, k, origin, w_est;
};

struct tcp_cong {
	uint32_t cwnd, ssthresh;
	uint32_t acked_ca; /* NewReno: bytes acknowledged since the last growth */
	bool limited;      /* cwnd was what held us back since the last ACK [RFC 7661] */
};

struct tcp_loss {
	enum tcp_ca ca;
	uint32_t high_seq;          /* recovery ends when it is acknowledged */
	uint32_t sacked, lost, rtx; /* bytes of granules marked so */
	uint32_t high_sacked;       /* highest sequence number selectively acknowledged */
	uint32_t dupacks;
	/* RACK [RFC 8985] */
	nsec_t rack_xmit, rack_rtt;
	uint32_t rack_end, dsack_round;
	uint8_t reo_mult, reo_persist;
	bool reord_seen, dsack_seen, dsack_wait, ecn_round; /* until high_seq, dsack_round */
	/* PRR [RFC 6937] */
	uint32_t prr_delivered, prr_out, recover_fs;
	/* TLP */
	uint32_t tlp_end;
	bool tlp_open, tlp_rtx, tlp_now;
	uint8_t frto; /* enum tcp_frto */
	/* undo [RFC 3708, 4015] */
	uint32_t prior_cwnd, prior_ssthresh, undo_una, undo_rtx, undo_ts;
	bool undo_ok;
};

enum tcp_timer { TCP_T_RTX, TCP_T_REO, TCP_T_DELACK, TCP_T_PACE, TCP_T_USER, TCP_TIMERS };

/*
 * What a connection needs only while something is under way. An idle one (nothing to send, to read or
 * to repeat, and no loss so far) has none: its `busy` is then the host's `idle`, which is as new,
 * is read by everybody and written by nobody. tcp_wake() before, tcp_rest() after.
 */
struct tcp_busy {
	SLIST_ENTRY(tcp_busy) q;
	TAILQ_ENTRY(tcp_busy) warmq;
	struct tcp *owner;
	bool warm; /* in the queue of those that had nothing to do */
	struct tcp_txq txq;
	struct tcp_txseg *unsent;
	struct tcp_rxq rxq;
	struct tcp_loss loss;
	struct tcp_cubic cubic;
	struct tcp_hystart hystart;
	nsec_t pace_at; /* when the next unit may leave */
	bool pace_held; /* it is all that data waits for */
	nsec_t timer[TCP_TIMERS], first_rtx;
	uint64_t bytes_retrans, retrans;
	uint32_t dsack_dups, tlp_count, rto_count;
};

enum tcp_rtx_mode { TCP_RTX_RTO, TCP_RTX_TLP, TCP_RTX_PERSIST };

struct tcp {
	struct tcp_node node;
	struct tcp_host *host;
	struct tcp_busy *busy;
	/* --- send --- */
	uint32_t snd_una, snd_nxt, snd_wl1, snd_wl2, snd_wnd, max_snd_wnd;
	uint32_t write_seq, pushed_seq, iss, snd_sml; /* snd_sml: end of the last small segment */
	uint32_t mss; /* payload of a full segment with the usual options */
	uint16_t peer_mss, mtu, user_mss;
	uint32_t sndbuf, queued; /* bytes: limit, in txq */
	/* --- receive --- */
	uint32_t rcv_nxt, rcv_adv, last_ack_sent, irs; /* rcv_adv: right edge promised */
	uint32_t rcv_fin_seq, rcv_mss, rcvbuf, rcv_ssthresh;
	uint32_t rx_bytes, rx_true; /* in rxq; truesize of rxq and ooo */
	struct tcp_ooo *ooo;
	uint32_t ratio; /* payload share of truesize, of 256 */
	uint32_t dsack[2];
	/* --- options --- */
	uint8_t state, snd_ws, rcv_ws;
	bool ws_ok : 1, sack_ok : 1, ts_ok : 1, ecn_ok : 1;
	uint32_t ts_recent, ts_off;
	nsec_t ts_recent_at;
	/* --- flags --- */
	bool need_syn : 1, fin_queued : 1, rcv_fin : 1,
		fin_seen : 1; /* rcv_fin: its place is known; fin_seen: taken */
	bool ack_now : 1, fin_again : 1, probe_now : 1, orphan : 1, dead : 1;
	bool nodelay : 1, cork : 1, more : 1, quick : 1, keepalive : 1, snd_fixed : 1,
		rcv_fixed : 1;
	bool cwr : 1, ece : 1, ecn_tried : 1, late : 1, throttled : 1, from_listener : 1,
		keep_now : 1, ready : 1, event_queued : 1;
	uint8_t quickacks, retries, backoff, rtx_mode, ev_last, keep_probes, persist_n;
	int error;
	union {
		void *user;
		struct tcp_listener *listener; /* until it is accepted: from_listener */
	};
	/* --- time --- */
	nsec_t srtt, rttvar, rto, min_rtt, min_rtt_at, last_snd, last_rcv;
	nsec_t keep_at;    /* keepalive, or the end of FIN-WAIT-2 */
	uint32_t heap_pos; /* 0: not in it */
	nsec_t heap_key;
	nsec_t challenge_at;
	uint8_t challenge_n;
	uint16_t keepidle, keepintvl, keepcnt; /* s, s */
	uint32_t user_timeout_ms;
	struct tcp_cong cc;
	/* --- receive auto-tuning --- */
	nsec_t rcvq_at, rcv_rtt;
	uint32_t rcvq_seq, rcvq_space, rtt_seq, copied_seq;
	nsec_t rtt_at;
	/* --- lists --- */
	TAILQ_ENTRY(tcp) readyq;
	STAILQ_ENTRY(tcp) eventq, acceptq; /* acceptq: or of the free ones */
	struct pkt_account account;
	uint64_t bytes_sent, bytes_acked, bytes_received, sent_total;
	uint64_t segs_in, segs_out;
};

_Static_assert(sizeof(struct tcp) <= 512, "100 000 idle connections and their sockets are 64 MiB");

struct tcp_reply {
	struct tcp_tuple tuple;
	uint32_t seq, ack, tsval, tsecr;
	uint16_t wnd, mss;
	uint8_t flags, ws;
	bool ts_ok, ws_ok, sack_ok;
};

struct tcp_host {
	struct tcp_conf conf;
	struct rand rand;
	nsec_t now;
	nsec_t cookie_sent; /* the last one; 0: none */
	uint32_t next_iss;  /* above what TIME-WAIT had, for its successor; valid if set */
	bool next_iss_set;
	struct tcp_node **bucket;
	uint32_t bucket_mask;
	struct tcp *conns;
	struct tcp_txseg *txsegs;
	struct tcp_rx *rxs;
	struct tcp_syn *syns;
	struct tcp_tw *tws;
	struct tcp_ooo *ooos;
	struct tcp_busy *busys, idle;
	/* of the pools, so many were ever used: memory is touched when it is needed */
	uint32_t conn_used, txseg_used, ooo_used, busy_used;
	STAILQ_HEAD(, tcp) conn_free;
	SLIST_HEAD(, tcp_busy) busy_free;
	TAILQ_HEAD(, tcp_busy) warmq; /* may rest: the last few do not yet */
	unsigned warm, warm_max;
	struct tcp_txq txseg_free;
	struct tcp_rxq rx_free;
	struct tcp_synq syn_free, synq[TCP_SYN_LEVELS],
		synoutq; /* synq by retries: each in order */
	struct tcp_twq tw_free, twq;
	STAILQ_HEAD(, tcp_ooo) ooo_free;
	LIST_HEAD(, tcp_listener) listeners;
	TAILQ_HEAD(, tcp) readyq;
	STAILQ_HEAD(, tcp) eventq;
	STAILQ_HEAD(, tcp_listener) leventq;
	struct tcp **heap; /* 1-based */
	uint32_t heap_n;
	struct tcp_reply reply[TCP_REPLIES];
	unsigned reply_head, reply_n;
	struct bucket rst[TCP_RST_BUCKETS]; /* by source */
	struct page_frag send;
	struct tcp_counters c;
	uint32_t live, txseg_live, rx_live;
};

/* A segment while it is taken through the steps: trimmed as it goes. */
struct tcp_in {
	const struct tcp_seg *s;
	struct tcp_opts o;
	uint32_t seq, ack, off, len, wnd;
	uint8_t flags;
	/* what the ACK step found, for loss recovery */
	uint32_t una_before, sacked_new, acked;
	bool dsack, is_dup, wnd_update;
	bool first_try;  /* lost, it was thought, and never sent again, but it has arrived */
	bool second_try; /* of what was sent again some is acknowledged, too */
};

static inline uint32_t tcp_ip_hdr(const struct tcp_tuple *tu)
{
	return ip_addr_is4(&tu->raddr) ? 20 : 40;
}
static inline bool tcp_synced(const struct tcp *t)
{
	return t->state >= TCPS_ESTABLISHED;
}
static inline bool tcp_resting(const struct tcp *t)
{
	return t->busy == &t->host->idle;
}
static inline uint32_t tcp_ts_now(const struct tcp_host *h, uint32_t off)
{
	return (uint32_t)(h->now / NSEC_PER_MSEC) + off;
}

/* tcp_host.c: table, pools, isn, ports */
struct tcp_node *tcp_find(struct tcp_host *, const struct tcp_tuple *);
void tcp_node_add(struct tcp_host *, struct tcp_node *, enum tcp_kind, const struct tcp_tuple *);
void tcp_node_del(struct tcp_host *, struct tcp_node *);
uint32_t tcp_isn(struct tcp_host *, const struct tcp_tuple *);
uint32_t tcp_ts_offset(struct tcp_host *, const struct tcp_tuple *);
uint16_t tcp_pick_port(struct tcp_host *, const struct tcp_tuple *); /* 0: none free */
struct tcp *tcp_alloc(struct tcp_host *);
void tcp_free(struct tcp *); /* queues, timers, lists; the block when nobody holds it */
struct tcp_txseg *txseg_new(struct tcp_host *);
void txseg_free(struct tcp_host *, struct tcp_txseg *);
void tcp_rx_free(struct tcp_host *, struct tcp_rx *);
struct tcp_ooo *tcp_ooo_new(struct tcp_host *);
void tcp_wake_up(struct tcp *);
void tcp_rest(struct tcp *); /* gives back what an idle connection does not need */
void tcp_make_ready(struct tcp *);
void tcp_notify(struct tcp *); /* the level may have changed */
void tcp_listener_notify(struct tcp_listener *);
void tcp_reply(struct tcp_host *, const struct tcp_reply *);

/* tcp.c: life of a connection */
void tcp_set_state(struct tcp *, enum tcp_state);
void tcp_established(struct tcp *);  /* windows, congestion window, timers */
void tcp_die(struct tcp *, int err); /* to CLOSED; the user is told err */
void tcp_enter_timewait(struct tcp *);
void tcp_set_mss(struct tcp *);
uint32_t tcp_mss_offer(const struct tcp_host *, const struct tcp_tuple *, uint32_t mtu);
bool tcp_challenge_ok(struct tcp *); /* the budget of challenge ACKs [RFC 5961 7] */
void tcp_challenge(struct tcp *);
void tcp_send_rst(struct tcp *);                            /* a reset from the state as it is */
void tcp_rst_for(struct tcp_host *, const struct tcp_in *); /* to a segment of no connection */

/* tcp_in*.c */
void tcp_in(struct tcp *, struct tcp_in *);
void tcp_in_syn_sent(struct tcp *, struct tcp_in *);
bool tcp_in_ack(struct tcp *, struct tcp_in *);
void tcp_in_data(struct tcp *, struct tcp_in *);
void tcp_in_fin(struct tcp *, struct tcp_in *);
uint32_t tcp_rcv_window(const struct tcp *); /* offered if a segment went out now, bytes */
void tcp_rcv_tune(struct tcp *);             /* after the user has read */

/* tcp_listen.c, tcp_tw.c */
struct tcp_listener *tcp_listener_find(struct tcp_host *, const struct tcp_tuple *);
void tcp_listen_in(struct tcp_listener *, struct tcp_in *);
void tcp_syn_in(struct tcp_host *, struct tcp_syn *, struct tcp_in *);
bool tcp_syn_out(struct tcp_host *, struct tcp_out *);
struct tcp *tcp_syn_accept(struct tcp_host *, const struct tcp_syn *); /* NULL: no room */
uint32_t tcp_cookie_make(struct tcp_host *, const struct tcp_in *);
bool tcp_cookie_check(struct tcp_host *, const struct tcp_in *, struct tcp_syn *);
uint32_t tcp_cookie_ts(struct tcp_host *, const struct tcp_in *);
void tcp_syn_timer(struct tcp_host *);
void tcp_syn_free(struct tcp_host *, struct tcp_syn *);
void tcp_accept_leave(struct tcp *);                                 /* off the accept queue */
bool tcp_tw_in(struct tcp_host *, struct tcp_tw *, struct tcp_in *); /* true: it made room */
void tcp_tw_timer(struct tcp_host *);
void tcp_tw_free(struct tcp_host *, struct tcp_tw *);

/* tcp_press.c: a pool is empty. True: somebody else than `not` had to go; there may be room now. */
enum tcp_pool { TCP_POOL_CONNS, TCP_POOL_SEGS };
bool tcp_press(struct tcp_host *, enum tcp_pool, const struct tcp * not );

/* tcp_opt.c */
bool tcp_opt_parse(const uint8_t *opt, unsigned len, struct tcp_opts *);
unsigned tcp_opt_syn(
	uint8_t *opt, uint16_t mss, int ws, bool sack, bool ts, uint32_t tsval, uint32_t tsecr);
unsigned tcp_opt_ts(uint8_t *opt, uint32_t tsval, uint32_t tsecr);
unsigned tcp_opt_sack(uint8_t *opt, unsigned at, const uint32_t (*block)[2], unsigned n);

/* tcp_out.c, tcp_send.c */
bool tcp_out_next(struct tcp *, struct tcp_out *);
void tcp_push_check(struct tcp *); /* something opened: is there anything to send now? */
uint32_t tcp_size_goal(const struct tcp *);
unsigned tcp_gather(const struct tcp_txseg *, uint32_t from, uint32_t len, struct pkt_frag *out);
void tcp_txq_free(struct tcp *);

/* tcp_loss.c, tcp_rack.c */
uint32_t txseg_bytes(const struct tcp_txseg *, uint64_t mask);
uint64_t txseg_all(const struct tcp_txseg *);
uint32_t tcp_inflight(const struct tcp *);
void tcp_loss_sack(struct tcp *, struct tcp_in *);  /* mark the scoreboard */
void tcp_loss_acked(struct tcp *, struct tcp_in *); /* cumulative: drop what is done */
void tcp_loss_after_ack(struct tcp *, struct tcp_in *);
void tcp_loss_sent(struct tcp *, struct tcp_txseg *, uint64_t mask, bool again);
void tcp_loss_rto(struct tcp *);
void tcp_loss_undo(struct tcp *); /* nothing was lost: take all of it back */
void tcp_frto_start(struct tcp *);
bool tcp_frto_ack(struct tcp *, const struct tcp_in *); /* true: it was no loss, all is undone */
void tcp_rtt_sample(struct tcp *, nsec_t rtt);
void tcp_rack_update(struct tcp *, const struct tcp_txseg *, unsigned gran);
void tcp_rack_detect(struct tcp *);
void tcp_mark_lost(struct tcp *, struct tcp_txseg *, uint64_t mask);
uint32_t tcp_loss_quota(const struct tcp *); /* bytes that may be sent now */

/* tcp_cc.c */
void tcp_cc_init(struct tcp *);
void tcp_cc_acked(struct tcp *, uint32_t bytes);
uint32_t tcp_cc_ssthresh(struct tcp *); /* after a loss; tells the algorithm */
void tcp_cc_rto(struct tcp *);
void tcp_cc_idle(struct tcp *); /* before sending after a pause */
void tcp_cc_undo(struct tcp *);
void tcp_cubic_acked(struct tcp *, uint32_t bytes);
uint32_t tcp_cubic_ssthresh(struct tcp *);
void tcp_hystart_ack(struct tcp *, nsec_t rtt); /* una has moved; rtt 0: no sample */

/* tcp_pace.c */
uint64_t tcp_pacing_rate(const struct tcp *); /* bytes/s, 0: unknown yet */
bool tcp_pace_holds(struct tcp *);            /* not now: a timer will call */
void tcp_pace_sent(struct tcp *, uint32_t len);

void tcp_path_mtu(struct tcp *, uint32_t mtu); /* tcp_icmp.c */

/* tcp_timer.c */
void tcp_timer_set(struct tcp *, enum tcp_timer, nsec_t at); /* NSEC_NEVER: off */
void tcp_timer_keep(struct tcp *, nsec_t at);
void tcp_timer_off(struct tcp *);
void tcp_timer_rtx(struct tcp *); /* (re)arm the retransmission class by what is outstanding */

#endif
