# SPDX-License-Identifier: BSD-2-Clause
"""uml - TCP between two User-Mode Linux guests, through weft and through DPDK's testpmd in turn.

Each guest has a core of its own, as one would give it to a virtual CPU, and the device, weft or
testpmd, runs where the scheduler puts it; then the same with nothing pinned at all.

testpmd serves no back-end request channel, which User-Mode Linux needs for its interrupts, so for it
(and only for it) vu-filter stands between the two sockets; messages pass it, frames do not.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from guest import Missing, Nic, UmlGuest

HERE = pathlib.Path(__file__).resolve().parent


def boot_on(core, guest):
    """Boot it, with all that it starts, on one core, or on any."""
    mine = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        guest.boot()
    finally:
        os.sched_setaffinity(0, mine)


def stream(socks, seconds, cores):
    """Gbit/s received, a to b and b to a, and the bytes carried."""
    a = UmlGuest("a", [Nic(socks[0], ip="10.0.0.1/24")])
    b = UmlGuest("b", [Nic(socks[1], ip="10.0.0.2/24")])
    try:
        boot_on(cores[0], a)
        boot_on(cores[1], b)
        a.ready()
        b.ready()
        b.run("iperf3 -s -D; sleep 0.5")
        out = []
        for way in ("", "-R"):
            text = a.run(f"iperf3 -J -c 10.0.0.2 -t {seconds} {way}", timeout=seconds + 30).out
            out.append(json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9)
        return out
    finally:
        a.stop()
        b.stop()


def through_weft(run, work, seconds, cores, keys=""):
    socks = [str(work / f"w{i}.sock") for i in (0, 1)]
    p = subprocess.Popen([str(run.WEFT), "run", "-n", f"bench{time.monotonic_ns()}"] +
                         [f"vhost-user:{s}{keys}" for s in socks], stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        return stream(socks, seconds, cores)
    finally:
        run.end(p)


def through_testpmd(run, work, seconds, cores):
    tag = time.monotonic_ns()
    socks = [str(work / f"d{tag}{i}.sock") for i in (0, 1)]
    dev = run.Testpmd(work, f"dev{tag}", "{},{}".format(*run.cores()),
                      [a for i, s in enumerate(socks) for a in ("--vdev", f"net_vhost{i},iface={s},tso=1")])
    filters = []
    try:
        dev.line("set fwd io")
        dev.line("start")
        for s in socks:
            filters.append(subprocess.Popen([str(HERE / "vu-filter"), "--uml", s + ".f", s]))
        time.sleep(1)
        return stream([s + ".f" for s in socks], seconds, cores)
    finally:
        for f in filters:
            run.end(f)
        dev.close()


def part_uml(run, quick):
    run.say("\n### TCP between two User-Mode Linux guests, MTU 1500, TSO on: weft and testpmd in turn\n")
    if not shutil.which(run.TESTPMD):
        run.say("no dpdk-testpmd: skipped")
        return
    pairs, seconds = (1, 3) if quick else (3, 5)
    arms = {"weft": through_weft, "testpmd": through_testpmd,
            "call_us=0": lambda *args: through_weft(*args, ",call_us=0")}
    rows = []
    for placed, cores in (("each guest on a core", run.cores()), ("nothing pinned", (None, None))):
        got = {arm: [] for arm in arms}
        try:
            for _ in range(pairs):
                for arm, through in arms.items():
                    with tempfile.TemporaryDirectory(prefix="weft-bench.") as d:
                        got[arm].append(through(run, pathlib.Path(d), seconds, cores))
        except Missing as e:
            run.say(f"skipped: {e}")
            return
        for i, way in enumerate(("a to b", "b to a")):
            each = {arm: [x[i] for x in got[arm]] for arm in arms}
            row = [placed, way] + [f"{statistics.median(x):.2f}" for x in each.values()]
            for arm in ("testpmd", "call_us=0"):
                ratio = [x / y for x, y in zip(each["weft"], each[arm])]
                row.append(f"{statistics.median(ratio):.2f} ({min(ratio):.2f} .. {max(ratio):.2f})")
            rows.append(row)
    run.table(["placement", "direction", *(f"{arm}, Gbit/s" for arm in arms),
               "over testpmd (min .. max)", "over call_us=0"], rows)
