# SPDX-License-Identifier: BSD-2-Clause
"""poll - what busy polling (`weft run --poll-us`) is worth: TCP between two guests, its processor time,
and the round trip of a one-byte request through the switch, for several lengths, in turn."""
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from guest import Missing, Nic, UmlGuest

LENGTHS = (0, 10, 20, 50, 100)


def cpu_seconds(pid):
    f = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")


def once(run, work, poll_us, seconds):
    """Gbit/s, weft's processor seconds per GiB, round trip in us."""
    socks = [str(work / f"p{time.monotonic_ns()}{i}.sock") for i in (0, 1)]
    p = subprocess.Popen([str(run.WEFT), "run", "-n", f"poll{time.monotonic_ns()}", "--poll-us", str(poll_us)] +
                         [f"vhost-user:{s},name=p{i}" for i, s in enumerate(socks)], stdout=subprocess.PIPE, text=True)
    a = UmlGuest("a", [Nic(socks[0], ip="10.0.0.1/24")])
    b = UmlGuest("b", [Nic(socks[1], ip="10.0.0.2/24")])
    try:
        p.stdout.readline()
        a.boot()
        b.boot()
        a.ready()
        b.ready()
        b.run("iperf3 -s -D; sleep 0.5")
        before = cpu_seconds(p.pid)
        end = json.loads(a.run(f"iperf3 -J -c 10.0.0.2 -t {seconds}", timeout=seconds + 30).out)["end"]
        spent = cpu_seconds(p.pid) - before
        got = end["sum_received"]
        ping = a.run(f"ping -q -i 0.002 -c 1000 10.0.0.2 || ping -q -c {seconds} 10.0.0.2", timeout=60).out
        rtt = float(ping.rsplit("=", 1)[1].split("/")[1]) * 1e3
        return got["bits_per_second"] / 1e9, spent / (got["bytes"] / 2**30), rtt
    finally:
        a.stop()
        b.stop()
        run.end(p)


def part_poll(run, quick):
    run.say("\n### Busy polling: two User-Mode Linux guests on two cores, medians\n")
    rounds, seconds = (1, 3) if quick else (3, 5)
    results = {n: [] for n in LENGTHS}
    try:
        for i in range(rounds):
            for n in LENGTHS if i % 2 == 0 else reversed(LENGTHS):
                with tempfile.TemporaryDirectory(prefix="weft-bench.") as d:
                    results[n].append(once(run, pathlib.Path(d), n, seconds))
    except Missing as e:
        run.say(f"skipped: {e}")
        return
    rows = [[n] + [f"{statistics.median(x[i] for x in results[n]):.{d}f}" for i, d in ((0, 2), (1, 3), (2, 0))]
            for n in LENGTHS]
    run.table(["poll_us", "TCP, Gbit/s", "weft CPU s/GiB", "ping, us"], rows)
