#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A guest that takes nothing, or little, and another one that floods it: what the neighbours notice.

Guest a floods guest b, which is stopped, or runs a moment in every few. Meanwhile a sends to the host's tap
t2, and another tap t1 does. Nothing is timed: datagrams and frames are counted, sent and delivered.
"""
import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                               # noqa: E402
from t import check                                      # noqa: E402
from weft import Weft, pair                                     # noqa: E402

COUNT, GAP_US = 1500, 500
PORT = 9009
EXPERIMENTAL = 0x88B5           # an EtherType for local use [IEEE 802]
SIOCGIFHWADDR = 0x8927
KEPT = 0.9                      # of what is delivered without the flood


def stats(w, name):
    return next(s for s in w.show()["stats"] if s["name"] == name)


def drops_out(w, name):
    return next(d for d in w.show()["drops"] if d["name"] == name)["out"]


class Ears:
    """What reaches the host by t2: numbers of datagrams, numbers of frames."""

    def __init__(self):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("10.0.0.253", PORT))
        self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EXPERIMENTAL))
        self.raw.bind(("t2", EXPERIMENTAL))
        self.heard = {"a": set(), "t1": set()}
        self.threads = []
        for s, name, at in ((self.udp, "a", 0), (self.raw, "t1", 14)):
            with contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)    # SO_RCVBUFFORCE
            s.settimeout(1.0)
            self.threads.append(threading.Thread(target=self.listen, args=(s, name, at), daemon=True))
        self.ended = False
        for thread in self.threads:
            thread.start()

    def listen(self, s, name, at):
        while True:
            try:
                data = s.recv(2048)
            except TimeoutError:
                if self.ended:
                    return
                continue
            self.heard[name].add(struct.unpack_from("!I", data, at)[0])

    def close(self):
        """Until nothing has come for a second."""
        self.ended = True
        for thread in self.threads:
            thread.join()
        self.udp.close()
        self.raw.close()
        return {name: len(numbers) for name, numbers in self.heard.items()}


def mac_of(name):
    """Asked for by ioctl: /sys is that of another network namespace."""
    with socket.socket() as s:
        return fcntl.ioctl(s, SIOCGIFHWADDR, struct.pack("16s24x", name.encode()))[18:24]


def frames_from_t1():
    """COUNT frames to t2's address, by way of the network."""
    head = mac_of("t2") + mac_of("t1") + struct.pack("!H", EXPERIMENTAL)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("t1", 0))
        pause = threading.Event()
        for number in range(COUNT):
            s.send(head + struct.pack("!I", number) + bytes(1000))
            pause.wait(GAP_US / 1e6)


def delivered(a):
    """The parts of what guest a and t1 send that reach t2."""
    ears = Ears()
    sender = threading.Thread(target=frames_from_t1)
    sender.start()
    sent = int(a.run(f"xfer blast 10.0.0.253 {PORT} {COUNT} 1000 {GAP_US}", timeout=120).out)
    sender.join()
    heard = ears.close()
    check(sent > COUNT / 2, f"guest a could send only {sent} of {COUNT}")
    return {"a": heard["a"] / sent, "t1": heard["t1"] / COUNT}


@contextlib.contextmanager
def stopped(guest):
    os.killpg(guest.proc.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(guest.proc.pid, signal.SIGCONT)


@contextlib.contextmanager
def trickling(guest):
    """It runs 2 ms of every 40."""
    end = threading.Event()

    def alternate():
        while not end.is_set():
            os.killpg(guest.proc.pid, signal.SIGSTOP)
            end.wait(0.038)
            os.killpg(guest.proc.pid, signal.SIGCONT)
            end.wait(0.002)
    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def flood(t):
    frame.need_netns()
    with Weft("vhost-user:a", "vhost-user:b", "tap:t1", "tap:t2,ip=10.0.0.253/24") as w:
        a, b = pair(w)
        a.run("ping -c 1 -W 3 10.0.0.2 && ping -c 1 -W 3 10.0.0.253")
        # who is stopped does not answer, and is to be sent to all the same
        a.run(f"ip neigh replace 10.0.0.2 lladdr {w.port('b')['mac']} dev eth0 nud permanent")
        alone = delivered(a)
        with t.case("without a flood everything arrives"):
            check(min(alone.values()) > 0.98, f"parts delivered: {alone}")
        for what, how in (("takes nothing", stopped), ("trickles room", trickling)):
            with t.case(f"flood of a guest that {what}: the others keep {KEPT:.0%}"):
                before, lost = stats(w, "a")["in"]["frames"], sum(drops_out(w, "b").values())
                with how(b):
                    a.background("exec xfer blast 10.0.0.2 9 0 1400 0")
                    now = delivered(a)
                    a.run("killall xfer")
                frames = stats(w, "a")["in"]["frames"] - before
                lost = sum(drops_out(w, "b").values()) - lost
                check(frames > 3 * COUNT, f"no flood: {frames} frames came from a")
                check(lost > COUNT, f"only {lost} of {frames} frames were lost at b: it had room")
                for name in alone:
                    check(now[name] >= KEPT * alone[name], f"{name} to t2: {now[name]:.1%} delivered, {lost} of "
                          f"{frames} frames of the flood lost; without it {alone[name]:.1%}")
            with t.case(f"and who {what} is served again"):
                a.run("for i in 1 2 3 4 5; do ping -c 1 -W 2 10.0.0.2 && exit 0; done; exit 1")
        a.stop()
        b.stop()


if __name__ == "__main__":
    frame.main(flood)
