# SPDX-License-Identifier: BSD-2-Clause
"""tcp - our hosts, their drivers and the network between them on one core, beside one iperf3 stream between two
network namespaces of the kernel over veth (Reno, TSO, MTU 1500) on the same core, in turn; a host of ours and the
kernel with a tap between them; then transactions, on one core and across threads."""
import json
import os
import pathlib
import resource
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


def children_cpu():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def veth(core, seconds):
    """Gbit/s received and CPU seconds per GB of both ends, or None: it cannot be made here."""
    begun = children_cpu()
    p = subprocess.run(["unshare", "-nm", "taskset", "-c", str(core), "sh", "-c", VETH, "sh", str(seconds)],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        got = json.loads(p.stdout)["end"]["sum_received"]
        return got["bits_per_second"] / 1e9, (children_cpu() - begun) / got["bytes"] * 1e9
    except (ValueError, KeyError):
        return None


def tap(run, core, seconds):
    """A host of ours and the kernel, each way."""
    p = subprocess.run(["unshare", "-n", "taskset", "-c", str(core), "python3",
                        str(pathlib.Path(__file__).with_name("tcp_peer.py")), str(run.WEFT), seconds],
                       stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(p.stdout)


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
    kernel = [k[0] for k in kernel if k]
    base = statistics.median(kernel) if kernel else None
    rows = [["kernel, iperf3 over veth", f"{base:.1f}" if base else "not measured", "", "", "", ""]]
    for word, rs in weft.items():
        gbit = statistics.median(r["gbit_per_second"] for r in rs)
        rows.append([f"weft bench {word}", f"{gbit:.1f}", f"{gbit / base:.2f}" if base else "",
                     f"{statistics.median(r['cpu_seconds_per_gb'] for r in rs):.3f}",
                     f"{statistics.median(r['mean_unit'] for r in rs):.0f}",
                     sum(r["retransmissions"] for r in rs)])
    run.table(["one stream, one core, MTU 1500", "Gbit/s", "ratio", "CPU s/GB", "mean unit, B", "retransmissions"], rows)


def kernel_streams(run, quick):
    core, seconds = run.cores()[0], "2" if quick else "5"
    if os.geteuid() or not shutil.which("iperf3"):
        run.say("stack and kernel: skipped, needs root and iperf3")
        return
    base, ours_ = [], {"tcp_stream": [], "tcp_maerts": []}
    for _ in range(3 if quick else 5):
        base.append(veth(core, seconds))
        for word, r in tap(run, core, seconds).items():
            ours_[word].append((r["gbit_per_second"], r["cpu_seconds_per_gb"] + r["kernel_cpu_seconds_per_gb"], r))
    base = [b for b in base if b]
    if not base:
        run.say("stack and kernel: skipped, no veth")
        return
    gbit, cpu = (statistics.median(b[i] for b in base) for i in (0, 1))
    rows = [["kernel to kernel, iperf3 over veth", f"{gbit:.1f}", "", f"{cpu:.3f}", "", ""]]
    for word, name in (("tcp_stream", "stack to kernel"), ("tcp_maerts", "kernel to stack")):
        g, c = (statistics.median(x[i] for x in ours_[word]) for i in (0, 1))
        rows.append([f"{name}, {word}", f"{g:.1f}", f"{g / gbit:.2f}", f"{c:.3f}", f"{cpu / c:.2f}",
                     sum(x[2]["client"]["tcp"].get("retrans", 0) for x in ours_[word])])
    run.table(["one stream, one core, MTU 1500, a tap between", "Gbit/s", "ratio", "CPU s/GB, both ends", "ratio",
               "retransmissions"], rows)


def threads(run, quick):
    rows = []
    for word in ("tcp_rr", "udp_rr"):
        out = subprocess.run([str(run.WEFT), "bench", word, "--json", "--threads", "3", "-t", "2" if quick else "5"],
                             stdout=subprocess.PIPE, text=True, check=True)
        r = json.loads(out.stdout)
        rows.append([word, r["placement"], f"{r['pingpong_us']['p50']:.1f}", f"{r['latency_us']['p50']:.1f}",
                     f"{r['latency_us']['p99']:.1f}", f"{r['of_pingpong']:.2f}"])
    run.table(["one byte each way, three threads", "where", "bare eventfd, p50, us", "p50, us", "p99, us",
               "ratio of p50"], rows)


def transactions(run, quick):
    core, seconds = run.cores()[0], "2" if quick else "5"
    rows = []
    for word, *more in [("tcp_rr",), ("udp_rr",), ("tcp_crr",), ("tcp_crr", "-P", "32")]:
        r = ours(run, core, word, "-t", seconds, *more)
        us = r["latency_us"]
        rows.append([" ".join([word, *more]), f"{r['transactions_per_second']:.0f}", f"{us['p50']:.1f}", f"{us['p99']:.1f}",
                     r["failed"], r["knobs"]["timewait"], r["knobs"]["timewaits_max"], r["server"]["tcp"].get("tw_evicted", 0)])
    run.table(["one byte each way", "transactions/s", "p50, us", "p99, us", "failed", "TIME-WAIT, s", "at most", "cut short"], rows)


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
    kernel_streams(run, quick)
    run.say()
    transactions(run, quick)
    run.say()
    threads(run, quick)
    run.say()
    idle(run, quick)
