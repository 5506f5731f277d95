#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""DPDK's virtio-user as the driver on both ends: frames counted, then contents compared one by one."""
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                           # noqa: E402
from dpdk import Testpmd                    # noqa: E402
from t import check, equal, until           # noqa: E402
from weft import Weft                       # noqa: E402

MAC_A, MAC_B = "02:00:00:00:0a:01", "02:00:00:00:0b:01"
# what the driver is told: rings and receive buffers of every make
DRIVERS = ("", ",mrg_rxbuf=0", ",in_order=0,queue_size=1024", ",vectorized=1", ",mrg_rxbuf=0,queue_size=64")


def show(w, name, what="stats"):
    return next(s for s in w.show()[what] if s["name"] == name)


def sums(w):
    """Frames lent by a, delivered to b, and lost between."""
    a, b = show(w, "a"), show(w, "b")
    lost = sum(show(w, "b", "drops")["out"].values()) + sum(show(w, "a", "drops")["in"].values())
    return a["in"]["frames"], b["out"]["frames"], lost


def counted(t):
    for i, keys in enumerate(DRIVERS):
        size = (64, 1518, 128, 64, 512)[i]
        with t.case(f"frames of {size} bytes, every one accounted for; driver{keys or ' as it comes'}"):
            with Weft("vhost-user:a", "vhost-user:b") as w:
                rx = Testpmd.driver([f"{w.socket('b')},mac={MAC_B}{keys}"])
                tx = Testpmd.driver([f"{w.socket('a')},mac={MAC_A}{keys}"])
                until(lambda: w.port("a")["link"] and w.port("b")["link"], "links")
                rx.ask("set fwd rxonly")
                rx.ask("start")
                tx.ask("set fwd txonly")
                tx.ask(f"set txpkts {size - 4}")
                tx.ask(f"set eth-peer 0 {MAC_B}")
                tx.ask("start")
                time.sleep(1)
                tx.ask("stop")
                until(lambda: sums(w)[0] == sum(sums(w)[1:]), "sum of what came out and what was dropped")
                came, went, lost = sums(w)
                until(lambda: rx.stats()["RX-packets"] == went, f"the receiver counts {went}")
                equal(tx.stats()["TX-packets"], came, "frames sent and frames lent")
                check(went > 1000, f"only {went} frames came through")
                equal(show(w, "b")["out"]["bytes"], went * (size - 4), "bytes")
                for name in "ab":
                    equal(w.port(name)["broken"], "", f"port {name} broken")
                tx.quit()
                rx.quit()


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for data in frames:
            f.write(struct.pack("<IIII", 0, 0, len(data), len(data)) + data)


def read_pcap(path):
    data, frames = path.read_bytes(), []
    at = 24
    while at + 16 <= len(data):
        n = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + n])
        at += 16 + n
    return frames


def raw(mac):
    return bytes(int(x, 16) for x in mac.split(":"))


def contents(t):
    """A capture file is played into a and recorded at b: same frames, same order."""
    r = t.random
    many = [raw(MAC_B) + raw(MAC_A) + r.choice((b"\x08\x00", b"\x86\xdd", b"\x88\xb5")) +
            r.randbytes(r.choice((46, 47, 100, 500, 1000, 1499, 1500))) for _ in range(200)]
    hello = raw("ff:ff:ff:ff:ff:ff") + raw(MAC_B) + b"\x88\xb5" + bytes(46)
    for keys in DRIVERS:
        # no more than a ring takes at once: testpmd itself drops what finds no room
        sent = many[:60] if "queue_size=64" in keys else many
        with t.case(f"{len(sent)} frames, equal and in order; driver{keys or ' as it comes'}; seed {t.seed}"):
            with Weft("vhost-user:a", "vhost-user:b") as w:
                d = w.rundir
                write_pcap(d / "in.pcap", sent)
                write_pcap(d / "hello.pcap", [hello])
                write_pcap(d / "none.pcap", [])
                rx = Testpmd.driver([f"{w.socket('b')},mac={MAC_B}{keys}"],
                                    vdevs=[f"net_pcap0,rx_pcap={d}/hello.pcap,tx_pcap={d}/out.pcap"])
                tx = Testpmd.driver([f"{w.socket('a')},mac={MAC_A}{keys}"],
                                    vdevs=[f"net_pcap0,rx_pcap={d}/in.pcap,tx_pcap={d}/back.pcap"])
                until(lambda: w.port("a")["link"] and w.port("b")["link"], "links")
                rx.ask("set fwd io")
                rx.ask("start")         # b says hello, so that its address is known
                until(lambda: show(w, "b")["in"]["frames"] >= 1, "hello of b")
                tx.ask("set fwd io")
                tx.ask("start")
                until(lambda: show(w, "b")["out"]["frames"] >= len(sent), f"frames out of b: {show(w, 'b')}, "
                      f"{show(w, 'b', 'drops')}")
                time.sleep(0.3)
                tx.quit()
                rx.quit()
                got = read_pcap(d / "out.pcap")
                equal(len(got), len(sent), "frames recorded")
                for n, (one, two) in enumerate(zip(sent, got)):
                    check(one == two, f"frame {n} of {len(one)} bytes came with {len(two)} and is not the same")


def comes_and_goes(t):
    """Drivers that die and come again while the other side sends."""
    with Weft("vhost-user:a", "vhost-user:b") as w:
        tx = Testpmd.driver([f"{w.socket('a')},mac={MAC_A}"])
        tx.ask("set fwd txonly")
        tx.ask("start")
        for i in range(3):
            with t.case(f"receiver killed while frames flow, {i + 1}"):
                rx = Testpmd.driver([f"{w.socket('b')},mac={MAC_B}"])
                rx.ask("set fwd rxonly")
                rx.ask("start")
                until(lambda: rx.stats()["RX-packets"] > 1000, "frames at the receiver")
                rx.kill()
                until(lambda: not w.port("b")["link"], "link of b still up")
                check(w.alive(), "weft is gone: " + w.errors())
        with t.case("sender killed in the middle"):
            tx.kill()
            until(lambda: not w.port("a")["link"], "link of a still up")
            check(w.alive(), "weft is gone: " + w.errors())


if __name__ == "__main__":
    frame.main(counted, contents, comes_and_goes)
