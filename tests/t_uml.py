#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two User-Mode Linux guests and the host's kernel on a tap port, one network."""
import hashlib
import pathlib
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                                       # noqa: E402
from guest import Nic, UmlGuest                                         # noqa: E402
from t import check, equal, until                                       # noqa: E402
from weft import (Weft, iperf, iperf_server, pair, transfer, xfer)      # noqa: E402

TAP = "tap:t0,ip=10.0.0.254/24+fd00::fe/64"


def stats(w, name):
    return next(s for s in w.show()["stats"] if s["name"] == name)


def drops(w, name):
    return next(d for d in w.show()["drops"] if d["name"] == name)


def host(*words, timeout=30):
    p = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    check(p.returncode == 0, f"{' '.join(words)}: status {p.returncode}: {(p.stdout + p.stderr)[-800:]}")
    return p.stdout


def pings(g, *addresses, options=""):
    for a in addresses:
        g.run(f"ping -c 3 -i 0.2 -W 3 {options} {a}")


def pair_and_host(t):
    """MTU 1500, everything negotiated."""
    ports = ["vhost-user:a", "vhost-user:b"]
    if frame.have_netns():
        ports.append(TAP)
    with Weft(*ports) as w:
        a, b = pair(w)
        with t.case("links are up, features negotiated"):
            for name in "ab":
                p = w.port(name)
                check(p["link"], f"{name}: no link: {p['missing']}")
                for f in ("csum", "guest_csum", "mac", "guest_tso4", "guest_tso6", "host_tso4",
                          "host_tso6", "mrg_rxbuf", "status", "indirect_desc", "event_idx", "version_1"):
                    check(f in p["features"].split(), f"{name}: no {f} in {p['features']}")
        with t.case("the guest has the address that was offered"):
            equal(a.run("cat /sys/class/net/eth0/address").out.strip(), w.port("a")["mac"], "MAC")
        with t.case("ping v4 and v6"):
            pings(a, "10.0.0.2", "fd00::2")
            pings(b, "10.0.0.1", "fd00::1")
        with t.case("ping, fragments"):
            pings(a, "10.0.0.2", "fd00::2", options="-s 20000")
        with t.case("VLAN tags pass"):
            for g, n in ((a, 1), (b, 2)):
                g.run(f"ip link add link eth0 name v7 type vlan id 7; ip link set v7 up; "
                      f"ip addr add 10.7.0.{n}/24 dev v7")
            pings(a, "10.7.0.2")
        with t.case("16 MiB over a VLAN, equal"):
            transfer(a, b, "10.7.0.2", 16, seed=t.seed)
        with t.case("1 GiB v4, equal"):
            before = stats(w, "b")
            transfer(a, b, "10.0.0.2", 1024, seed=t.seed, timeout=280)
            after = stats(w, "b")
            n, size = (after["out"][k] - before["out"][k] for k in ("frames", "bytes"))
            check(size >= 1 << 30, f"{size} bytes came out of port b")
            check(size / n > 8000, f"{size / n:.0f} bytes a frame; super-packets should come whole")
            equal(after["fit_segments"] - before["fit_segments"], 0, "segments made in software")
        with t.case("16 MiB v6, equal"):
            transfer(b, a, "fd00::1", 16, seed=t.seed)
        with t.case("iperf3 both ways"):
            iperf_server(b)
            for options in ("", "-R", "-u -b 50M -l 1400"):
                check(iperf(a, "10.0.0.2", 1, options) > 0.001, f"iperf3 {options}: nothing came")
        for who, why in ((a, "sender"), (b, "receiver")):
            with t.case(f"16 MiB, segmentation off at the {why}"):
                who.run("ethtool -K eth0 tso off gso off gro off")
                transfer(a, b, "10.0.0.2", 16, seed=t.seed)
                who.run("ethtool -K eth0 tso on gso on gro on")
        with t.case("16 MiB, checksum offload off at the sender"):
            a.run("ethtool -K eth0 tx off")
            transfer(a, b, "10.0.0.2", 16, seed=t.seed)
            a.run("ethtool -K eth0 tx on tso on")
        if frame.have_netns():
            with_host(t, w, a, b)
        else:
            with t.case("the host's tap"):
                frame.need_netns()
        with t.case("a port's traffic goes to its owner only"):
            c0 = stats(w, "t0" if frame.have_netns() else "b")["out"]["frames"]
            b0 = stats(w, "b")["out"]["frames"]
            pings(a, "10.0.0.2")
            c1 = stats(w, "t0" if frame.have_netns() else "b")["out"]["frames"]
            check(stats(w, "b")["out"]["frames"] - b0 >= 3, "pings did not come out of b")
            if frame.have_netns():
                check(c1 - c0 < 3, f"{c1 - c0} frames for b came out of t0, too")
        with t.case("memory under 16 MiB"):
            check(w.rss_kib() < 16 << 10, f"RssAnon + RssFile {w.rss_kib()} KiB")
        idle(t, w, a, b)
        with t.case("SIGTERM: ends at once, sockets removed"):
            sockets = [pathlib.Path(w.socket(n)) for n in "ab"]
            took = w.stop()
            # 100 ms when it gets a processor: the guests, and what else runs, want the same ones now
            check(took < 0.3, f"it took {took * 1000:.0f} ms")
            equal(w.proc.returncode, 0, "exit status")
            check(not any(s.exists() for s in sockets), "a socket is still there")
        a.stop()
        b.stop()


def with_host(t, w, a, b):
    with t.case("host: ping v4 and v6, each way"):
        pings(a, "10.0.0.254", "fd00::fe")
        host("busybox", "ping", "-c", "3", "-W", "3", "10.0.0.2")
        host("busybox", "ping", "-c", "3", "-W", "3", "fd00::2")
    with t.case("host: 16 MiB from a guest, equal"):
        heard = {}

        def listen():
            p = subprocess.run([xfer(), "recv", "7001"], capture_output=True, text=True, timeout=90)
            heard["out"] = p.stdout.split()
        thread = threading.Thread(target=listen)
        thread.start()
        time.sleep(0.3)
        sent = a.run(f"xfer send 10.0.0.254 7001 16 {t.seed}").out.strip()
        thread.join()
        equal(heard["out"], [sent, str(16 << 20)], "SHA-256 and length")
    with t.case("host: 16 MiB to a guest, equal"):
        from weft import heard_hash, listen_hash
        listen_hash(b)
        sent = host(xfer(), "send", "10.0.0.2", "7000", "16", str(t.seed), timeout=90).strip()
        equal(heard_hash(b), [sent, str(16 << 20)], "SHA-256 and length")
    with t.case("host: super-packets pass whole, each way"):
        for direction in ("in", "out"):
            s = stats(w, "t0")[direction]
            check(s["gso"] > 0, f"no super-packet went {direction} at the tap: {s}")


def idle(t, w, a, b):
    with t.case("idle: no wake-ups in 3 s with two guests attached"):
        for g in (a, b):        # guests that say nothing by themselves
            g.run("killall -q -9 iperf3; ip -6 addr flush dev eth0; sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1; true",
                  check=False)
        if frame.have_netns():
            host("sysctl", "-qw", "net.ipv6.conf.t0.disable_ipv6=1")

        def quiet():
            one = w.show()["process"]
            slept = w.switches()
            time.sleep(3)
            slept = w.switches() - slept
            two = w.show()["process"]
            # asking costs a few itself: the connection, the request, its end
            return slept <= 1 and two["wakeups"] - one["wakeups"] <= 6, (slept, one, two)
        for _ in range(3):      # ARP and neighbour timers of the guests may still be running
            good, seen = quiet()
            if good:
                break
        check(good, f"{seen[0]} times asleep; {seen[1]['wakeups']} -> {seen[2]['wakeups']} wake-ups")
        check(seen[2]["cpu_sec"] - seen[1]["cpu_sec"] < 0.02, f"processor time while idle: {seen}")


def jumbo(t):
    """MTU 9000 on both, then on one side."""
    with Weft("vhost-user:a,mtu=9000", "vhost-user:b,mtu=9000") as w:
        a, b = pair(w, mtu=9000)
        with t.case("the guest knows the MTU that was offered"):
            check("mtu 9000" in a.run("ip link show eth0").out, a.run("ip link show eth0").out)
        with t.case("ping of 8900 bytes, unfragmented"):
            pings(a, "10.0.0.2", "fd00::2", options="-s 8900")
        with t.case("16 MiB, equal"):
            transfer(a, b, "10.0.0.2", 16, seed=t.seed)
            transfer(b, a, "fd00::1", 16, seed=t.seed)
        with t.case("16 MiB without segmentation offload, equal"):
            a.run("ethtool -K eth0 tso off gso off")
            transfer(a, b, "10.0.0.2", 16, seed=t.seed)
        with t.case("MTU 1500 at one side"):
            b.run("ip link set eth0 mtu 1500")
            transfer(a, b, "10.0.0.2", 16, seed=t.seed)
            transfer(b, a, "10.0.0.1", 16, seed=t.seed)
        a.stop()
        b.stop()


def reboot_and_kill(t):
    """A guest that reboots, and one that dies, under load; the others go on."""
    with Weft("vhost-user:a", "vhost-user:b", "vhost-user:c") as w:
        a, b = pair(w)
        c = UmlGuest("c", [Nic(w.socket("c"), ip="10.0.0.3/24+fd00::3/64")], extra=[xfer()]).boot()
        c.ready()
        iperf_server(a)
        with t.case("reboot under load"):
            b.background("iperf3 -c 10.0.0.1 -t 60")
            until(lambda: stats(w, "a")["out"]["bytes"] > 10 << 20, "load before the reboot", 20)
            b.reboot()
            pings(c, "10.0.0.1")
            b.ready()
            check(w.port("b")["link"], "no link after the reboot")
            transfer(b, a, "10.0.0.1", 16, seed=t.seed)
        with t.case("killed under load, others go on, the port is free again"):
            iperf_server(a)
            before = stats(w, "a")["out"]["bytes"]
            b.background("iperf3 -c 10.0.0.1 -t 60")
            until(lambda: stats(w, "a")["out"]["bytes"] > before + (10 << 20), "load before the kill", 20)
            b.kill()
            transfer(c, a, "10.0.0.1", 16, seed=t.seed)
            until(lambda: not w.port("b")["link"], "link of b still up")
            check(w.alive(), "weft is gone: " + w.errors())
            b.boot().ready()
            transfer(b, c, "10.0.0.3", 16, seed=t.seed)
        with t.case("driver unloaded and loaded again"):
            b.run("rmmod virtio_net && sleep 0.2 && insmod /mods/virtio_net.ko && sleep 0.3")
            b.setup()
            pings(b, "10.0.0.3")
            transfer(b, c, "10.0.0.3", 16, seed=t.seed)
        with t.case("a port taken away and added again, the guest of it started anew"):
            p = w.call("del", "b")
            equal(p.returncode, 0, f"weft del b: {p.stderr}")
            pings(c, "10.0.0.1")
            b.kill()
            p = w.call("add", "vhost-user:b")
            equal(p.returncode, 0, f"weft add: {p.stderr}")
            b.boot().ready()
            pings(b, "10.0.0.3")
        for g in (a, b, c):
            g.stop()


if __name__ == "__main__":
    frame.main(pair_and_host, jumbo, reboot_and_kill)
