#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The driver: through a network in another process, through two networks, through DPDK; the knobs and their counters."""
import contextlib
import json
import os
import pathlib
import select
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                       # noqa: E402
from dpdk import Testpmd                                # noqa: E402
from t import check, equal, until                       # noqa: E402
from guest import Nic, UmlGuest                         # noqa: E402
from weft import Weft, call, program, xfer              # noqa: E402

SIZES = (64, 1514, 65535)
ECHOES = 2000
ARRIVE = 200    # at least so many frames of a second's sending; how many more is a matter of processors


def bench(*words, **kw):
    p = call("bench", *words, "--json", timeout=120, **kw)
    check(p.returncode == 0, f"weft bench {' '.join(words)}: status {p.returncode}: {p.stderr.strip()}")
    return json.loads(p.stdout)


@contextlib.contextmanager
def receiver(path, *words):
    """weft bench rx on the socket; yields a function that waits for its result."""
    p = subprocess.Popen([program(), "bench", "rx", "--via", f"virtio-user:{path}", "--json", *words],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result():
        out, err = p.communicate(timeout=60)
        check(p.returncode == 0, f"weft bench rx: status {p.returncode}: {err.strip()}")
        return json.loads(out)

    try:
        yield result
    finally:
        p.kill()
        p.communicate()


def whole(v, lost):
    """Whatever arrived is as it was sent, in order and once; what did not is among what is missing."""
    wrong = {k: v[k] for k in ("corrupt", "duplicated", "reordered", "segments", "missing_bytes") if v[k]}
    equal(wrong, {}, "frames that arrived and are not as they were sent")
    check(v["foreign"] < 20, f"{v['foreign']} frames that are not of the run: more than a few announcements")
    check(v["missing"] <= lost, f"{v['missing']} frames are missing between others, {lost} in all: {v}")


def across(send, receive, size, *knobs):
    """Stamped frames from one socket to another for a second: (sent, received), each byte of payload compared."""
    with receiver(receive, "-t", "1.5", "--verify") as result:
        sent = bench("pktgen", "--via", f"virtio-user:{send}", "--size", str(size), "-t", "1", "--verify", *knobs)
        got = result()
    rx = got["receiver"]
    check(got["received"] >= min(ARRIVE, sent["sent"]), f"{got['received']} of {sent['sent']} frames arrived")
    whole(got["verified"], sent["sent"] - got["received"])
    check(0 <= rx["rx_bytes"] - size * got["received"] < 1000,
          f"{rx['rx_bytes']} bytes in {got['received']} frames of {size}, but for an announcement or two")
    wrong = {k: v for k, v in rx.items() if k.startswith("rx_error") and v}
    equal(wrong, {}, "errors of the receiving driver")
    equal(sent["sender"]["tx_dropped"], 0, "dropped by the sending driver")
    return sent, got


def bench_folders():
    return {p.name for p in pathlib.Path("/tmp").glob("weft-bench-*")}


def one_process(t):
    """Both ends and the network in one process."""
    before = bench_folders()
    with t.case("ten million frames of 64 bytes, none lost"):
        r = bench("pktgen", "--packets", "10000000")
        equal((r["sent"], r["received"], r["lost"]), (10000000, 10000000, 0), "frames")
        equal(r["receiver"]["rx_buffers"], 10000000, "buffers")
        check(sum(r["sender"]["chunks_by_order"]) < 10000000 / 100, "an allocation for each packet")
    for size in SIZES:
        with t.case(f"{size} bytes, none lost"):
            r = bench("pktgen", "--packets", "20000", "--size", str(size), "--verify")
            equal((r["sent"], r["received"]), (20000, 20000), "frames")
            equal(r["verified"]["good"], 20000, "frames whose bytes were compared")
            equal(r["receiver"]["rx_bytes"], 20000 * size, "bytes")
    with t.case("every knob is printed with the result"):
        words = ["--rxbuf", "mtu+hdr", "--coalesce", "off", "--copybreak", "0", "--inline", "off", "--headroom", "32",
                 "--indirect", "always", "--order", "0", "--rxorder", "1", "--ring", "512", "--memory", "8M",
                 "--refuse", "500"]
        r = bench("pktgen", "--packets", "1000", "--size", "1000", *words)
        equal(r["knobs"], {"rxbuf": "mtu+hdr", "coalesce": "off", "copybreak": "0", "inline": "off", "headroom": "32",
                           "indirect": "always", "order": "0", "rxorder": "1", "ring": "512",
                           "memory": str(8 << 20), "refuse": "500", "charge": "0"}, "knobs")
        text = call("bench", "pktgen", "--packets", "1000", *words).stdout
        check("rxbuf=mtu+hdr" in text and "descriptors_per_packet 2.000" in text, text)
    with t.case("nothing stays behind"):
        equal(bench_folders() - before, set(), "folders in /tmp")


def networks(t):
    """Processes on one network, and on two that are joined by a virtio-user port."""
    with Weft("vhost-user:a", "vhost-user:b") as w:
        for size in SIZES:
            with t.case(f"{size} bytes through weft"):
                across(w.socket("a"), w.socket("b"), size)
        for size in SIZES:
            with t.case(f"{size} bytes through weft, both ends in one process, none lost"):
                r = bench("pktgen", "--via", "virtio-user:a", "--to", "virtio-user:b", "--size", str(size),
                          "--packets", "10000", env={"XDG_RUNTIME_DIR": str(w.rundir)})
                equal((r["sent"], r["received"]), (10000, 10000), "frames")
    with Weft("vhost-user:a", "vhost-user:x") as left, \
            Weft(f"virtio-user:{left.socket('x')},rxbuf=page", "vhost-user:c") as right:
        with t.case("the link comes up"):
            until(lambda: right.port("x")["link"], "virtio-user:x has no link")
            equal(right.port("x")["knobs"]["rxbuf"], "page", "knob")
        for size in SIZES:
            with t.case(f"{size} bytes through two networks"):
                across(left.socket("a"), right.socket("c"), size)
        with t.case("the first network ends and comes back"):
            left.stop()
            until(lambda: not right.port("x")["link"], "the link stays up")
            left.start()
            until(lambda: right.port("x")["link"], "the link stays down")
            across(left.socket("a"), right.socket("c"), 64)


def guest(t):
    """A guest's kernel gets every frame and sends it back: there and back, each byte of payload compared."""
    with Weft("vhost-user:g", "vhost-user:p") as w:
        g = UmlGuest("g", [Nic(w.socket("g"), mac="02:00:00:00:00:02")], extra=[xfer()]).boot().ready()
        for size in SIZES:
            for knobs in ((), ("--off", "mrg_rxbuf")):
                with t.case(f"{size} bytes to a guest and back; {' '.join(knobs) or 'as it comes'}"):
                    g.run(f"killall -q xfer; rm -f /tmp/ready /tmp/echo; (xfer echo eth0 {ECHOES} >/tmp/echo 2>/tmp/ready; echo done >>/tmp/ready) >/dev/null 2>&1 & "
                          "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do grep -qs ready /tmp/ready && break; sleep 0.1; done")
                    r = bench("pktgen", "--via", f"virtio-user:{w.socket('p')}", "--echo", "--size", str(size),
                              "--packets", str(ECHOES), "-t", "60", *knobs)
                    equal((r["sent"], r["received"], r["lost"]), (ECHOES, ECHOES, 0), "frames")
                    equal(r["verified"]["good"], ECHOES, "frames whose bytes were compared")
                    whole(r["verified"], 0)
                    equal(g.run("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do grep -qs done /tmp/ready && break; sleep 0.1; done; "
                                "cat /tmp/echo").out.split(), [str(ECHOES), str(ECHOES * size)], "frames and bytes that the guest counts")
        g.stop()


def hear(d):
    """It tells every message it gets, and stops when nobody reads that."""
    while select.select([d.proc.stdout], [], [], 0.2)[0] and os.read(d.proc.stdout.fileno(), 65536):
        pass


def dpdk(t):
    """testpmd's vhost as the device."""
    work = frame.workdir("weft-t")
    d = Testpmd.device([f"{work}/a.sock,tso=1", f"{work}/b.sock,tso=1"])
    try:
        d.ask("start")
        for size in SIZES:
            for one, other in ("ab", "ba"):
                with t.case(f"{size} bytes through testpmd, {one} to {other}"):
                    hear(d)
                    across(f"{work}/{one}.sock", f"{work}/{other}.sock", size)
        with t.case("without indirect tables and without event indices"):
            across(f"{work}/a.sock", f"{work}/b.sock", 1514, "--off", "indirect_desc+event_idx")
        with t.case("without mergeable buffers"):
            hear(d)
            across(f"{work}/a.sock", f"{work}/b.sock", 64, "--off", "mrg_rxbuf")
    finally:
        d.quit()


def mistakes(t):
    for words, value, remedy in [
            ("bench", "pktgen|rx", "weft bench"),
            ("bench pktgn", "pktgn", "pktgen"),
            ("bench rx", "--via", "virtio-user:PATH"),
            ("bench pktgen --to virtio-user:/b", "/b", "--via"),
            ("bench pktgen --echo", "--echo", "--via"),
            ("bench pktgen --size 63", "63", "64 to 65535"),
            ("bench pktgen -t soon", "soon", "0.5"),
            ("bench pktgen --ring 3", "ring=3", "power of two"),
            ("bench pktgen --via tap:t0", "tap", "virtio-user"),
            ("bench pktgen --size 9000 --off host_tso4", "9000", "host_tso4")]:
        with t.case(words):
            p = call(*words.split())
            equal(p.returncode, 2, "status")
            check(value in p.stderr and remedy in p.stderr and p.stderr.count("\n") == 1, p.stderr)
    with t.case("nobody answers"):
        p = call("bench", "rx", "--via", "virtio-user:/tmp/nobody-listens-here.sock", timeout=30)
        equal(p.returncode, 1, "status")
        check("nobody-listens-here" in p.stderr, p.stderr)


if __name__ == "__main__":
    frame.main(one_process, networks, guest, dpdk, mistakes, netns=False)
