/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xfer: move bytes between guests over TCP and hash both ends, in large pieces, because each system
 * call of a User-Mode Linux guest costs tens of microseconds.
 *
 *	xfer send ADDRESS PORT MIB SEED		bytes of a generator; prints their SHA-256
 *	xfer recv PORT				one connection; prints "SHA-256 BYTES"
 *	xfer copy MIB				memcpy of MIB MiB in 64 KiB blocks: seconds, Gbit/s
 *	xfer blast ADDRESS PORT COUNT BYTES GAP	COUNT datagrams, GAP microseconds apart, that begin with their number in
 *						network order; COUNT 0: until it is killed. Prints how many were sent
 *	xfer echo INTERFACE COUNT		so many frames to its address go back as they are, headers of
 *						virtio and all; prints "FRAMES BYTES"
 *
 * It knows nothing of weft. [FIPS 180-4] for the hash.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE (256u << 10)

struct sha {
	uint32_t h[8];
	uint64_t bytes;
	uint8_t block[64];
};

/* the first 32 bits of the fractional parts of square and cube roots of primes */
static const uint32_t sha_start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
	0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint32_t sha_round[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/* One round, where v[first] is the letter a of the standard. */
static inline void sha_step(uint32_t v[8], unsigned first, uint32_t in)
{
	uint32_t a = v[first], b = v[(first + 1) & 7], c = v[(first + 2) & 7];
	uint32_t e = v[(first + 4) & 7], f = v[(first + 5) & 7], g = v[(first + 6) & 7];
	uint32_t t = v[(first + 7) & 7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
		     ((e & f) ^ (~e & g)) + in;

	v[(first + 3) & 7] += t;
	v[(first + 7) & 7] =
		t + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void sha_block(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[64], v[8];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (unsigned i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
		       (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
	}
	memcpy(v, h, sizeof(v));
	/* eight rounds a turn: the names move round by one, and after eight are home again */
	for (unsigned i = 0; i < 64; i += 8) {
		for (unsigned j = 0; j < 8; j++)
			sha_step(v, (8 - j) & 7, sha_round[i + j] + w[i + j]);
	}
	for (unsigned i = 0; i < 8; i++)
		h[i] += v[i];
}

static void sha_add(struct sha *s, const uint8_t *p, size_t n)
{
	size_t have = s->bytes % 64;

	s->bytes += n;
	if (have) {
		size_t take = n < 64 - have ? n : 64 - have;

		memcpy(s->block + have, p, take);
		p += take;
		n -= take;
		if (have + take < 64)
			return;
		sha_block(s->h, s->block);
	}
	for (; n >= 64; p += 64, n -= 64)
		sha_block(s->h, p);
	memcpy(s->block, p, n);
}

static void sha_print(struct sha *s)
{
	uint64_t bits = s->bytes * 8;
	uint8_t end[72] = {0x80};
	size_t pad = (s->bytes % 64 < 56 ? 56 : 120) - s->bytes % 64;

	for (unsigned i = 0; i < 8; i++)
		end[pad + i] = (uint8_t)(bits >> (56 - 8 * i));
	sha_add(s, end, pad + 8);
	for (unsigned i = 0; i < 8; i++)
		printf("%08x", s->h[i]);
}

static int fail(const char *what)
{
	fprintf(stderr, "xfer: %s: %s\n", what, strerror(errno));
	return 1;
}

/* A generator whose period no test reaches, so that no piece repeats. */
static void fill(uint64_t *state, uint8_t *p, size_t n)
{
	uint64_t x = *state;

	for (size_t i = 0; i < n; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, 8);
	}
	*state = x;
}

static int send_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0)
			return fail("write");
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

static int do_send(const char *host, const char *port, uint64_t mib, uint64_t seed)
{
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *to;
	static uint8_t buf[PIECE];
	struct sha sha = {0};
	int fd;

	memcpy(sha.h, sha_start, sizeof(sha.h));
	if (getaddrinfo(host, port, &hint, &to))
		return fail(host);
	fd = socket(to->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen))
		return fail("connect");
	freeaddrinfo(to);
	seed = seed * 0x9e3779b97f4a7c15 + 1;
	for (uint64_t left = mib << 20; left; left -= PIECE) {
		fill(&seed, buf, PIECE);
		sha_add(&sha, buf, PIECE);
		if (send_all(fd, buf, PIECE))
			return 1;
	}
	close(fd);
	sha_print(&sha);
	printf("\n");
	return 0;
}

static int do_recv(const char *port)
{
	struct sockaddr_in6 here = {
		.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
	static uint8_t buf[PIECE];
	struct sha sha = {0};
	int on = 1, fd, from;
	uint64_t total;
	ssize_t r;

	memcpy(sha.h, sha_start, sizeof(sha.h));
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		bind(fd, (struct sockaddr *)&here, sizeof(here)) || listen(fd, 1))
		return fail("listen");
	from = accept(fd, NULL, NULL);
	if (from < 0)
		return fail("accept");
	while ((r = recv(from, buf, PIECE, 0)) > 0)
		sha_add(&sha, buf, (size_t)r);
	if (r < 0)
		return fail("recv");
	total = sha.bytes;
	sha_print(&sha);
	printf(" %llu\n", (unsigned long long)total);
	return 0;
}

static void pause_us(uint64_t us)
{
	struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

	while (us && nanosleep(&t, &t))
		;
}

static int do_blast(const char *host, const char *port, uint64_t count, size_t len, uint64_t gap_us)
{
	struct addrinfo want = {.ai_socktype = SOCK_DGRAM}, *to;
	static uint8_t buf[65507];
	uint64_t sent = 0;
	int fd;

	if (len < 4 || len > sizeof(buf) || getaddrinfo(host, port, &want, &to))
		return fail(host);
	fd = socket(to->ai_family, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen))
		return fail("connect");
	freeaddrinfo(to);
	for (uint64_t i = 0; !count || i < count; i++) {
		uint32_t number = htonl((uint32_t)i);

		memcpy(buf, &number, sizeof(number));
		sent += send(fd, buf, len, 0) == (ssize_t)len;
		pause_us(gap_us);
	}
	printf("%llu\n", (unsigned long long)sent);
	return 0;
}

/* What the processor can do: the copy itself, nothing else, in a working set of 8 MiB. */
static int do_copy(uint64_t mib)
{
	const size_t block = 64 << 10, set = 4 << 20;
	uint8_t *from = aligned_alloc(4096, set), *to = aligned_alloc(4096, set);
	struct timespec a, b;
	double seconds;

	if (!from || !to)
		return fail("memory");
	memset(from, 1, set);
	memset(to, 2, set);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (uint64_t done = 0; done < mib << 20; done += block) {
		memcpy(to + done % set, from + done % set, block);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	printf("%.4f %.1f\n", seconds, (double)(mib << 20) * 8 / seconds / 1e9);
	free(from);
	free(to);
	return 0;
}

struct wire {
	struct virtio_net_hdr virtio;
	uint8_t frame[70000];
};

/* A socket for whole frames of the interface, and what the kernel has to say of their offloads. */
static int wire_open(const char *name, uint8_t mac[6])
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct ifreq req = {0};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, room = 16 << 20;

	if (fd < 0)
		return fail("packet socket");
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFHWADDR, &req))
		return fail(name);
	memcpy(mac, req.ifr_hwaddr.sa_data, 6);
	at.sll_ifindex = (int)if_nametoindex(name);
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
		bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return fail("packet socket");
	return fd;
}

static int do_echo(const char *name, uint64_t count)
{
	static struct wire w;
	const size_t hdr = sizeof(w.virtio);
	uint64_t frames = 0, bytes = 0;
	uint8_t mac[6];
	int fd = wire_open(name, mac);

	if (fd < 0 || fd == 1)
		return 1;
	fprintf(stderr, "ready\n");
	while (frames < count) {
		ssize_t n = read(fd, &w, sizeof(w));

		if (n < 0)
			return fail("read");
		if ((size_t)n < hdr + 14 || memcmp(w.frame, mac, 6) != 0)
			continue;
		memcpy(w.frame, w.frame + 6, 6);
		memcpy(w.frame + 6, mac, 6);
		if (write(fd, &w, (size_t)n) != n)
			return fail("write");
		frames++;
		bytes += (size_t)n - hdr;
	}
	printf("%llu %llu\n", (unsigned long long)frames, (unsigned long long)bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "send"))
		return do_send(
			argv[2], argv[3], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "recv"))
		return do_recv(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "copy"))
		return do_copy(strtoull(argv[2], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "echo"))
		return do_echo(argv[2], strtoull(argv[3], NULL, 10));
	if (argc == 7 && !strcmp(argv[1], "blast"))
		return do_blast(argv[2], argv[3], strtoull(argv[4], NULL, 10),
			strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10));
	fprintf(stderr, "usage: xfer send ADDRESS PORT MIB SEED | recv PORT | copy MIB | "
			"blast ADDRESS PORT COUNT BYTES GAP | echo INTERFACE COUNT\n");
	return 2;
}
