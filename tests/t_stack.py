#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our host against the kernel's: through a tap, both ways, both versions, MTUs and offloads; through a network, read
back by tshark; against the kernel of a guest."""
import contextlib
import hashlib
import json
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                       # noqa: E402
from guest import Missing, Nic, UmlGuest, _die_with_parent  # noqa: E402
from peers import KERNEL, MIB, OFFLOADS, OURS, Relay, matrix, pattern, tap_words   # noqa: E402
from t import check, equal, need_netns                  # noqa: E402
from weft import Weft, call, heard_hash, listen_hash, program, xfer     # noqa: E402

PORT, MAGIC = 5199, 0x57620100                          # src/app/bench_flow.h
SINK, SOURCE = 1, 2
RETRANSMITTED = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order || " \
    "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.analysis.duplicate_ack"
PROBES = 20     # of some 1400 packets


def digest(data):
    return hashlib.sha256(data).hexdigest()


def receive(s):
    """Everything until the other side ends."""
    parts = []
    while True:
        data = s.recv(MIB)
        if not data:
            return b"".join(parts)
        parts.append(data)


def head(kind, size):
    return struct.pack(">IIIIQQ", MAGIC, kind, 0, 0, size, 0)


class KernelServer:
    """The other side of `weft bench tcp_stream` and `tcp_maerts`, on the kernel's sockets; remembers what came."""

    def __init__(self, data):
        self.data, self.got, self.problem = data, None, None
        self.s = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                c, _ = self.s.accept()
                with c:
                    self.session(c)

    def session(self, c):
        c.settimeout(60)
        words = struct.unpack(">IIIIQQ", c.recv(32, socket.MSG_WAITALL))
        if words[1] == SINK:
            self.got = receive(c)
            c.sendall(struct.pack(">IIQQQ", MAGIC, 0, len(self.got), 0, 0))
        else:
            c.sendall(self.data[:words[4]])
            c.shutdown(socket.SHUT_WR)
            receive(c)

    def close(self):
        self.s.shutdown(socket.SHUT_RDWR)
        self.s.close()
        self.thread.join(5)


@contextlib.contextmanager
def our_server(via, mtu, rundir=None):
    """weft bench server, ready."""
    p = subprocess.Popen([program(), "bench", "server", "--via", via, "--mtu", str(mtu)],
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_die_with_parent,
                         env=dict(os.environ, **({"XDG_RUNTIME_DIR": str(rundir)} if rundir else {})))
    try:
        check(select.select([p.stdout], [], [], 10)[0] and p.stdout.readline() == b"ready\n", "no ready line")
        yield p
        time.sleep(0.1)     # its last acknowledgements
        check(p.poll() is None, "the server ended")
    finally:
        p.kill()
        p.communicate()


def kernel_sends(version, data):
    with socket.create_connection((OURS[version], PORT), timeout=60) as s:
        s.sendall(head(SINK, 0))
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        report = struct.unpack(">IIQQQ", receive(s))
        equal(report[:3], (MAGIC, 0, len(data)), "magic, wrong pieces and bytes in the report")


def kernel_receives(version, data):
    with socket.create_connection((OURS[version], PORT), timeout=60) as s:
        s.sendall(head(SOURCE, len(data)))
        equal(digest(receive(s)), digest(data), "hash of what the kernel received")


def our_client(server, word, via, version, size, mtu, rundir=None):
    p = call("bench", word, "--via", via, "--host", KERNEL[version], "--count", str(size), "--mtu", str(mtu), "--json",
             "-t", "60", timeout=90, rundir=rundir)
    check(p.returncode == 0, f"weft bench {word}: status {p.returncode}: {p.stderr.strip()}")
    r = json.loads(p.stdout)
    equal((r["bytes"], r["wrong"], r["failed"]), (size, 0, 0), "bytes, wrong, failed")
    if word == "tcp_stream":
        equal(digest(server.got), digest(server.data[:size]), "hash of what the kernel received")
    return r


def tap(t):
    """Our host on a tap; the kernel is client and server."""
    need_netns()
    data = pattern(16 * MIB)
    server = KernelServer(data)
    try:
        for mtu, name, version in matrix(t.full):
            via = tap_words(mtu, OFFLOADS[name])
            size = 16 * MIB if mtu > 1280 or t.full else 4 * MIB
            with t.case(f"MTU {mtu}, offloads: {name}, IPv{version}: the kernel connects"):
                with our_server(via, mtu):
                    kernel_sends(version, data[:size])
                    kernel_receives(version, data[:size])
            with t.case(f"MTU {mtu}, offloads: {name}, IPv{version}: we connect"):
                for word in ("tcp_stream", "tcp_maerts"):
                    our_client(server, word, via, version, size, mtu)
    finally:
        server.close()


def network(t):
    """Our host, its driver, a network and a tap; what tshark says of the capture."""
    need_netns()
    data = pattern(16 * MIB)
    server = KernelServer(data)
    rundir = frame.workdir("weft-s")
    try:
        for version in (4, 6):
            pcap = rundir / f"{version}.pcapng"
            with Weft("vhost-user:h", tap_words(1500, "") + f",pcap={pcap}", rundir=rundir / str(version),
                      start=False) as w:
                w.rundir.mkdir()
                w.start()
                via = f"virtio-user:{w.socket('h')}"
                with t.case(f"IPv{version}: the kernel connects"):
                    with our_server(via, 1500, w.rundir):
                        kernel_sends(version, data)
                        kernel_receives(version, data)
                with t.case(f"IPv{version}: we connect"):
                    for word in ("tcp_stream", "tcp_maerts"):
                        our_client(server, word, via, version, len(data), 1500, w.rundir)
            # a processor that is taken away for a moment makes a tail loss probe, which is right; losses make hundreds
            with t.case(f"IPv{version}: tshark finds hardly a segment twice, lost or out of order"):
                if not shutil.which("tshark"):
                    raise Missing("no tshark (package tshark)")
                p = subprocess.run(["tshark", "-r", pcap, "-Y", RETRANSMITTED], capture_output=True, text=True)
                equal(p.returncode, 0, f"tshark: {p.stderr}")
                flagged = p.stdout.splitlines()
                check(len(flagged) <= PROBES, f"tshark flags {len(flagged)} segments: {flagged[:5]}")
    finally:
        server.close()


def guest_listens(t, w, g):
    """We connect: what we send is what the guest got."""
    data = pattern(16 * MIB)
    via = f"virtio-user:{w.socket('h')}"
    work = frame.workdir("weft-s")
    with Relay(work, via, "ip=10.99.0.3/24,ip=fd99::3/64,noauto", "host::7104", "stack:10.99.0.9:7000",
               "host::7106", "stack:[fd99::9]:7000", address="fd99::3", rundir=w.rundir):
        for version in (4, 6):
            with t.case(f"IPv{version}: 16 MiB to the guest, where we connect to"):
                listen_hash(g)
                with socket.create_connection(("127.0.0.1", 7100 + version), timeout=60) as s:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                    receive(s)
                equal(heard_hash(g), [digest(data), str(len(data))], "hash and length that the guest heard")


def guest(t):
    """The kernel of a guest: what it sends to our echo comes back, and it gets what we send."""
    with Weft("vhost-user:h", "vhost-user:g") as w:
        g = UmlGuest("g", [Nic(w.socket("g"), ip="10.99.0.9/24+fd99::9/64")], extra=[xfer()]).boot().ready()
        try:
            guest_listens(t, w, g)
            with our_server(f"virtio-user:{w.socket('h')}", 1500, w.rundir):
                for version in (4, 6):
                    with t.case(f"IPv{version}: ping"):
                        g.run(f"ping -c 3 {OURS[version]}")
                    with t.case(f"IPv{version}: 16 MiB to the echo and back"):
                        g.run("head -c 16777216 /dev/urandom > /tmp/f")
                        sums = g.run(f"sha256sum < /tmp/f; nc {OURS[version]} 7 < /tmp/f | sha256sum", timeout=120).out
                        got = [line.split()[0] for line in sums.splitlines() if len(line.split()) == 2]
                        equal(len(got), 2, f"sums in {sums!r}")
                        equal(got[0], got[1], "hash of what came back")
        finally:
            g.stop()


if __name__ == "__main__":
    frame.main(tap, network, guest)
