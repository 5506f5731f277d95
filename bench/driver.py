# SPDX-License-Identifier: BSD-2-Clause
"""driver - our driver beside DPDK's virtio-user, each with its own device: the drivers of both ends on one
core, the device on the other, both polling, in turn; then everything on one core, and the mechanisms one by one."""
import json
import pathlib
import statistics
import subprocess
import tempfile


def pktgen(run, core, *words):
    out = subprocess.run(["taskset", "-c", str(core), str(run.WEFT), "bench", "pktgen", "--json", *words],
                         stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout)


def through_weft(run, work, device_core, driver_core, seconds, size):
    socks = [str(work / f"p{i}.sock") for i in (0, 1)]
    # testpmd always polls: so does this network, as long as there is traffic
    p = subprocess.Popen(["taskset", "-c", str(device_core), str(run.WEFT), "run", "-n", "bench-driver", "--poll-us", "1000"] +
                         [f"vhost-user:{s}" for s in socks], stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        r = pktgen(run, driver_core, "--via", f"virtio-user:{socks[0]}", "--to", f"virtio-user:{socks[1]}",
                   "--size", str(size), "-t", str(seconds))
        return r["packets_per_second"]
    finally:
        run.end(p)


def beside_dpdk(run, quick):
    device_core, driver_core = run.cores()
    pairs, seconds = (2, 2) if quick else (5, 4)
    rows = []
    for size in (64, 1514):
        weft, dpdk = [], []
        with tempfile.TemporaryDirectory(prefix="weft-bench.") as d:
            work = pathlib.Path(d)

            def ours():
                weft.append(through_weft(run, work, device_core, driver_core, seconds, size))

            def theirs():
                dpdk.append(run.with_testpmd(work, device_core, seconds, size + 4, driver_core))

            for i in range(pairs):
                for arm in (ours, theirs) if i % 2 == 0 else (theirs, ours):
                    arm()
        ratio = [a / b for a, b in zip(weft, dpdk)]
        rows.append([size, f"{statistics.median(weft) / 1e6:.2f}", f"{statistics.median(dpdk) / 1e6:.2f}",
                     f"{statistics.median(ratio):.2f} ({min(ratio):.2f} .. {max(ratio):.2f})"])
    run.table(["frame, B", "weft both sides, Mpps", "DPDK both sides, Mpps", "ratio (min .. max)"], rows)


def one_core(run, quick):
    rows = []
    for size in (64, 1514, 65535):
        r = pktgen(run, run.cores()[0], "--size", str(size), "-t", "2" if quick else "5")
        rows.append([size, f"{r['packets_per_second'] / 1e6:.3f}", f"{r['gbit_per_second']:.1f}",
                     f"{r['ns_per_packet']:.0f}", r["lost"]])
    run.table(["frame, B", "Mpps", "Gbit/s", "ns/packet", "lost"], rows)


KNOBS = [       # what, size, the knob off, the knob on, the counter that it is about
    ("S0 rxbuf", 1514, ["--rxbuf", "mtu"], ["--rxbuf", "mtu+hdr"], "receiver", "rx_buffers_per_packet"),
    ("S1 coalesce", 65535, ["--rxbuf", "mtu+hdr", "--coalesce", "off"], ["--rxbuf", "mtu+hdr", "--coalesce", "on"],
     "receiver", "rx_fragments_per_packet"),
    ("S2 inline", 64, ["--inline", "off", "--indirect", "always"], ["--inline", "on", "--indirect", "always"],
     "sender", "tx_descriptors_per_packet"),
    ("S3 order", 65535, ["--order", "0"], ["--order", "3"], "sender", "tx_descriptors_per_packet"),
]


def mechanisms(run, quick):
    rows = []
    for name, size, before, after, side, counter in KNOBS:
        got = [[], []]
        for i in range(2 if quick else 5):
            for arm in (0, 1) if i % 2 == 0 else (1, 0):
                got[arm].append(pktgen(run, run.cores()[0], "--size", str(size), "-t", "1" if quick else "3",
                                       *(before, after)[arm]))
        ns = [statistics.median(r["ns_per_packet"] for r in arm) for arm in got]
        count = [arm[0][side][counter] for arm in got]
        rows.append([name, size, " ".join(before), " ".join(after), counter, f"{count[0]:.2f} -> {count[1]:.2f}",
                     f"{ns[0]:.0f} -> {ns[1]:.0f}", f"{ns[0] / ns[1]:.2f}"])
    run.table(["mechanism", "frame, B", "before", "after", "counter", "moves", "ns/packet", "faster by"], rows)


def part_driver(run, quick):
    run.say("\n### The drivers of both ends on one core, the device on the other\n")
    if run.shutil.which(run.TESTPMD):
        beside_dpdk(run, quick)
    else:
        run.say("no dpdk-testpmd: skipped")
    run.say("\n### Driver, network and driver on one core\n")
    one_core(run, quick)
    run.say("\n### The mechanisms: one knob each\n")
    mechanisms(run, quick)
