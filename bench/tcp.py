# SPDX-License-Identifier: BSD-2-Clause
"""tcp - our hosts, their drivers and the network between them on one core, beside one iperf3 stream between two
network namespaces of the kernel over veth (Reno, TSO, MTU 1500) on the same core, in turn; then transactions."""
import json
import os
import shutil
import statistics
import subprocess

# two namespaces in one that goes with the shell; $1 is the time
VETH = r"""
mount -t tmpfs none /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs none /run/netns; }
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
ip netns add b && ip link add v0 mtu 1500 type veth peer name v1 netns b
ip addr add 10.98.0.1/24 dev v0 && ip link set lo up && ip link set v0 up
ip -n b addr add 10.98.0.2/24 dev v1 && ip -n b link set lo up && ip -n b link set v1 up
ip netns exec b sh -c 'echo reno > /proc/sys/net/ipv4/tcp_congestion_control'
ip netns exec b iperf3 -s -1 >/dev/null & s=$!
sleep 0.5
iperf3 -c 10.98.0.2 -t "$1" -J
wait $s
"""


def ours(run, core, word, *words):
    out = subprocess.run(["taskset", "-c", str(core), str(run.WEFT), "bench", word, "--json", *words],
                         stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout)


def veth(core, seconds):
    """Gbit/s received, or None: it cannot be made here."""
    p = subprocess.run(["unshare", "-nm", "taskset", "-c", str(core), "sh", "-c", VETH, "sh", str(seconds)],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        return json.loads(p.stdout)["end"]["sum_received"]["bits_per_second"] / 1e9
    except (ValueError, KeyError):
        return None


def streams(run, quick):
    core, seconds = run.cores()[0], "2" if quick else "5"
    weft, kernel, units = {"tcp_stream": [], "tcp_maerts": []}, [], []
    have = os.geteuid() == 0 and shutil.which("iperf3")
    for _ in range(2 if quick else 5):
        if have:
            kernel.append(veth(core, seconds))
        for word, into in weft.items():
            r = ours(run, core, word, "-t", seconds)
            into.append(r)
            units.append(r["mean_unit"])
    kernel = [k for k in kernel if k]
    base = statistics.median(kernel) if kernel else None
    rows = [["kernel, iperf3 over veth", f"{base:.1f}" if base else "not measured", "", "", "", ""]]
    for word, rs in weft.items():
        gbit = statistics.median(r["gbit_per_second"] for r in rs)
        rows.append([f"weft bench {word}", f"{gbit:.1f}", f"{gbit / base:.2f}" if base else "",
                     f"{statistics.median(r['cpu_seconds_per_gb'] for r in rs):.3f}",
                     f"{statistics.median(r['mean_unit'] for r in rs):.0f}",
                     sum(r["retransmissions"] for r in rs)])
    run.table(["one stream, one core, MTU 1500", "Gbit/s", "ratio", "CPU s/GB", "mean unit, B", "retransmissions"], rows)


def transactions(run, quick):
    core, seconds = run.cores()[0], "2" if quick else "5"
    rows = []
    for word, *more in [("tcp_rr",), ("udp_rr",), ("tcp_crr",), ("tcp_crr", "-P", "32")]:
        r = ours(run, core, word, "-t", seconds, *more)
        us = r["latency_us"]
        rows.append([" ".join([word, *more]), f"{r['transactions_per_second']:.0f}", f"{us['p50']:.1f}", f"{us['p99']:.1f}",
                     r["failed"], r["knobs"]["timewait"], r["server"]["tcp"].get("tw_evicted", 0)])
    run.table(["one byte each way", "transactions/s", "p50, us", "p99, us", "failed", "TIME-WAIT, s", "of it cut short"], rows)


def idle(run, quick):
    """100 000 connections that are silent: what each end's process has of memory."""
    words = ["10000", "4"] if quick else []
    out = subprocess.run([str(run.BUILD / "bench" / "bench_idle"), *words], stdout=subprocess.PIPE, text=True, check=True)
    for line in out.stdout.splitlines():
        run.say(f"{line}  ")


def part_tcp(run, quick):
    run.say("\n### Two hosts of ours, drivers and network on one core; every byte compared\n")
    streams(run, quick)
    run.say()
    transactions(run, quick)
    run.say()
    idle(run, quick)
