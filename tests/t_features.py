#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Guests that negotiated different features talk to each other, through what weft does in software.

`make check`: each feature off at one side, then some that belong together; the other guest is booted
once and has everything. `make check-full`: every pair of variants, at two MTUs.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                               # noqa: E402
from guest import Nic, UmlGuest                                 # noqa: E402
from t import check, equal                                      # noqa: E402
from weft import Weft, transfer, xfer                           # noqa: E402

TSO_IN = "guest_tso4+guest_tso6"
SINGLE = ("csum", "guest_csum", "mtu", "mac", "guest_tso4", "guest_tso6", "guest_ecn", "host_tso4",
          "host_tso6", "host_ecn", "mrg_rxbuf", "status", "any_layout", "indirect_desc", "event_idx",
          "host_uso")
GROUPS = (TSO_IN, "host_tso4+host_tso6", "guest_uso4+guest_uso6", "csum+guest_csum", "mrg_rxbuf+" + TSO_IN,
          "indirect_desc+event_idx",
          "csum+guest_csum+mtu+mac+mrg_rxbuf+status+any_layout+indirect_desc+event_idx")
MATRIX = ("", "csum", "guest_csum", TSO_IN, "host_tso4+host_tso6", "mrg_rxbuf", "mrg_rxbuf+" + TSO_IN,
          "indirect_desc", "event_idx", GROUPS[-1])


def stats(w, name):
    return next(s for s in w.show()["stats"] if s["name"] == name)


class Side:
    """One guest on a port that is added for it and taken away after it."""

    def __init__(self, w, name, number, off="", mtu=1500):
        self.w, self.name, self.number = w, name, number
        if mtu != 1500:
            # Linux without mrg_rxbuf sizes its buffers by the MTU it is told: told none, it has room for 1500 bytes
            off = off.replace("+mtu+", "+")
        spec = f"vhost-user:{name}" + (f",mtu={mtu}" if mtu != 1500 else "") + (f",off={off}" if off else "")
        p = w.call("add", spec)
        equal(p.returncode, 0, f"weft add {spec}: {p.stderr.strip()}")
        self.v4, self.v6 = f"10.0.0.{number}", f"fd00::{number}"
        nic = Nic(w.socket(name), ip=f"{self.v4}/24+{self.v6}/64", mtu=mtu if mtu != 1500 else 0)
        self.guest = UmlGuest(name, [nic], extra=[xfer()]).boot()

    def ready(self):
        self.guest.ready()
        return self

    def close(self):
        self.guest.stop()
        p = self.w.call("del", self.name)
        equal(p.returncode, 0, f"weft del {self.name}: {p.stderr.strip()}")


def exchange(t, one, two, mib=16):
    """Bytes both ways over both versions of IP, and a datagram each way that takes several frames."""
    transfer(one.guest, two.guest, two.v4, mib, seed=t.seed)
    transfer(two.guest, one.guest, one.v4, mib, seed=t.seed + 1)
    transfer(one.guest, two.guest, two.v6, 4, seed=t.seed + 2)
    transfer(two.guest, one.guest, one.v6, 4, seed=t.seed + 3)
    one.guest.run(f"ping -c 1 -W 3 -s 4000 {two.v4} && ping -c 1 -W 3 -s 4000 {two.v6}")


def one_off(t):
    with Weft() as w:
        b = Side(w, "b", 2).ready()
        for off in SINGLE + GROUPS:
            with t.case(f"off={off}"):
                a = Side(w, "a", 1, off).ready()
                try:
                    p = w.port("a")
                    for f in off.split("+"):
                        check(f not in p["features"].split(), f"{f} is negotiated: {p['features']}")
                    exchange(t, a, b)
                    s = stats(w, "a")
                    if off in (TSO_IN, GROUPS[-1]):
                        check(s["fit_segments"] > 0, "nothing was segmented for a")
                    if off == "guest_csum":
                        check(s["fit_csum"] > 0, "no checksum was finished for a")
                    if "mrg_rxbuf" in off:
                        equal(s["out"]["buffers_per_packet"], 1.0, "buffers a packet without mrg_rxbuf")
                    equal(p["broken"], "", "a is broken")
                finally:
                    a.close()
        b.close()


def matrix(t):
    """Every variant against every variant; only with --full."""
    if not t.full:
        return
    for mtu in (1500, 9000):
        with Weft() as w:
            for off_b in MATRIX:
                b = Side(w, "b", 2, off_b, mtu).ready()
                for off_a in MATRIX:
                    with t.case(f"mtu={mtu} off={off_a or '-'} against off={off_b or '-'}"):
                        a = Side(w, "a", 1, off_a, mtu).ready()
                        try:
                            exchange(t, a, b)
                        finally:
                            a.close()
                b.close()


if __name__ == "__main__":
    frame.main(one_off, matrix)
