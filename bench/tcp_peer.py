# SPDX-License-Identifier: BSD-2-Clause
"""tcp_peer - one stream between a host of ours on a tap and the kernel's, each way, in a network namespace of its own
with Reno: `unshare -n python3 tcp_peer.py WEFT SECONDS`. The kernel's end is this program with writes and reads of
128 KiB, as iperf3 does. Prints JSON."""
import json
import os
import pathlib
import resource
import select
import socket
import struct
import subprocess
import sys

PORT, MAGIC, SINK = 5199, 0x57620100, 1         # src/app/bench_flow.h
SIZE = 128 << 10
MTU = 1500


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def sink(c):
    got, room = 0, bytearray(SIZE)
    while n := c.recv_into(room):
        got += n
    c.sendall(struct.pack(">IIQQQ", MAGIC, 0, got, 0, 0))


def source(c, pattern):
    """The pattern over and over until the other side has enough."""
    c.setblocking(False)
    at = 0
    while True:
        try:
            at = (at + c.send(pattern[at:at + SIZE])) % len(pattern)
        except BlockingIOError:
            if select.select([c], [c], [])[0]:
                return
        except (ConnectionResetError, BrokenPipeError):
            return


def one(weft, word, seconds, server, pattern):
    p = subprocess.Popen([weft, "bench", word, "--json", "-t", seconds, "--mtu", str(MTU), "--host", "10.99.0.254",
                          "--via", f"tap:bench0,mtu={MTU},ip=10.99.0.254/24"], stdout=subprocess.PIPE, text=True)
    c = server.accept()[0]
    begun = cpu()
    with c:
        kind = struct.unpack(">IIIIQQ", c.recv(32, socket.MSG_WAITALL))[1]
        sink(c) if kind == SINK else source(c, pattern)
    used = cpu() - begun
    r = json.loads(p.communicate()[0])
    r["kernel_cpu_seconds_per_gb"] = used / r["bytes"] * 1e9
    return r


def main():
    weft, seconds = sys.argv[1:3]
    pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/lib"))
    from peers import pattern
    bytes_ = memoryview(pattern(65521 * 16))    # whole patterns
    with socket.create_server(("", PORT)) as server:
        json.dump({word: one(weft, word, seconds, server, bytes_) for word in ("tcp_stream", "tcp_maerts")}, sys.stdout)


if __name__ == "__main__":
    os.chdir("/")
    main()
