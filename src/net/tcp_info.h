/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp_info: what an engine tells of itself; included by net/tcp.h. */
#ifndef NET_TCP_INFO_H
#define NET_TCP_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct tcp;
struct tcp_host;

enum tcp_state {
	TCPS_CLOSED,
	TCPS_LISTEN, /* of listeners, and in traces */
	TCPS_SYN_SENT,
	TCPS_SYN_RCVD,
	TCPS_ESTABLISHED,
	TCPS_FIN_WAIT_1,
	TCPS_FIN_WAIT_2,
	TCPS_CLOSE_WAIT,
	TCPS_CLOSING,
	TCPS_LAST_ACK,
	TCPS_TIME_WAIT,
};
const char *tcp_state_name(enum tcp_state);

/* Of one connection; the names of Linux's tcp_info where there is one. */
struct tcp_stat {
	enum tcp_state state;
	uint8_t ca_state; /* 0 open, 1 recovery, 2 loss */
	uint8_t snd_wscale, rcv_wscale;
	bool sack, timestamps, ecn;
	uint32_t rto_us, rtt_us, rttvar_us, min_rtt_us;
	uint32_t snd_mss, rcv_mss, advmss, pmtu;
	uint32_t cwnd, ssthresh; /* bytes */
	uint32_t snd_wnd, rcv_wnd;
	uint32_t inflight, unacked, notsent; /* bytes */
	uint32_t rcvbuf, sndbuf;
	uint64_t pacing_rate; /* bytes/s */
	uint64_t bytes_sent, bytes_acked, bytes_received, bytes_retrans;
	uint64_t segs_in, segs_out, retrans; /* wire segments */
	uint32_t reord_seen, dsack_dups, tlp, rto_count;
};
void tcp_stat(const struct tcp *, struct tcp_stat *);

/* Counters of a host: one list, one name table. */
#define TCP_COUNTERS(X)                                                                            \
	X(in_segs)                                                                                 \
	X(out_segs)                                                                                \
	X(in_bad_opt)                                                                              \
	X(in_no_conn)                                                                              \
	X(in_land)                                                                                 \
	X(in_bad_addr)                                                                             \
	X(rst_limited)                                                                             \
	X(pressed)                                                                                 \
	X(rst_sent)                                                                                \
	X(rst_in)                                                                                  \
	X(challenge_acks)                                                                          \
	X(challenge_limited)                                                                       \
	X(dup_ack_limited)                                                                         \
	X(connects)                                                                                \
	X(accepts)                                                                                 \
	X(est_resets)                                                                              \
	X(attempt_fails)                                                                           \
	X(no_conn_room)                                                                            \
	X(syn_queued)                                                                              \
	X(syn_dropped)                                                                             \
	X(cookies_sent)                                                                            \
	X(cookies_ok)                                                                              \
	X(cookies_bad)                                                                             \
	X(accept_full)                                                                             \
	X(tw_made)                                                                                 \
	X(tw_evicted)                                                                              \
	X(tw_reused)                                                                               \
	X(paws_drop)                                                                               \
	X(ooo_queued)                                                                              \
	X(ooo_pruned)                                                                              \
	X(dup_data)                                                                                \
	X(out_of_window)                                                                           \
	X(rcv_nobuf)                                                                               \
	X(rcv_compact)                                                                             \
	X(retrans)                                                                                 \
	X(fast_recoveries)                                                                         \
	X(rto)                                                                                     \
	X(tlp)                                                                                     \
	X(spurious)                                                                                \
	X(reneged)                                                                                 \
	X(sack_ignored)                                                                            \
	X(dsack_in)                                                                                \
	X(dsack_out)                                                                               \
	X(frto_spurious)                                                                           \
	X(hystart_css)                                                                             \
	X(hystart_exits)                                                                           \
	X(paced)                                                                                   \
	X(acks_compressed)                                                                         \
	X(persist)                                                                                 \
	X(keepalive)                                                                               \
	X(timeouts)                                                                                \
	X(pmtu_changes)                                                                            \
	X(pmtu_ignored)                                                                            \
	X(black_holes)                                                                             \
	X(icmp_ignored)                                                                            \
	X(autocorked)                                                                              \
	X(tsq_throttled)                                                                           \
	X(tso_deferred)                                                                            \
	X(nagle_held)                                                                              \
	X(snd_nobuf)                                                                               \
	X(pushed_full)                                                                             \
	X(pushed_end)                                                                              \
	X(pushed_window)                                                                           \
	X(acks_delayed)                                                                            \
	X(acks_sent)                                                                               \
	X(ecn_ce)                                                                                  \
	X(reply_dropped)

#define TCP_UNITS 18 /* log2 buckets of payload bytes: units[i] counts [2^(i-1), 2^i) */

struct tcp_counters {
#define X(name) uint64_t name;
	TCP_COUNTERS(X)
#undef X
	uint64_t units[TCP_UNITS]; /* unit sizes sent: super-segments as one */
	uint64_t unit_bytes, unit_count;
};
const struct tcp_counters *tcp_host_counters(const struct tcp_host *);

/* For tests: NULL, or which invariant of the host is broken. Walks everything. */
const char *tcp_host_check(const struct tcp_host *);

#endif
