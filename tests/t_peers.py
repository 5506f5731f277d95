#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs as they come, with our host between them: iperf3, curl and nginx, ssh, wrk. Our host is the server when
they come to its address on a tap, and the client when they come to the relay, which then connects from there. And
our host in networks that give it its addresses."""
import hashlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                       # noqa: E402
from guest import Missing                               # noqa: E402
from peers import (KERNEL, MIB, OFFLOADS, OURS, Iperf, Nginx, Program, Relay, Sshd, curl_hash, matrix,   # noqa: E402
                   need, ssh, tap_words, tool, wrk)
from t import check, equal, need_netns                  # noqa: E402

BESIDE = 1000   # added to the port of a program: the relay's, from where our host connects to it
LOSSES = "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.analysis.fast_retransmission"
AGAIN = "tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.duplicate_ack"
# a processor that is taken away for a moment makes a tail loss probe, which is right; a loss makes many
PROBES = 20


def relay(work, mtu, off, version, *programs):
    """Our host on the tap, with these programs behind it, and before it."""
    forwards = []
    for p in programs:
        at = KERNEL[version] if version == 4 else f"[{KERNEL[version]}]"
        forwards += [f"stack::{p.port}", f"host:127.0.0.1:{p.port}",
                     f"host::{p.port + BESIDE}", f"stack:{at}:{p.port}"]
    ip = f"ip={OURS[4]}/24" + (f",ip={OURS[6]}/64" if mtu >= 1280 else "")
    return Relay(work, tap_words(mtu, off), ip + ",noauto", *forwards, address=OURS[version])


def ways(version):
    """What our host is, where programs find it, and what to add to their port."""
    return ("server", OURS[version], 0), ("client", "127.0.0.1", BESIDE)


class World:
    """The programs of one scene, those that are there."""

    def __init__(self, work, mib=(16,)):
        self.missing, self.made = {}, []
        self.work = work
        self.web = self.start("nginx", lambda: Nginx(work, mib))
        self.sshd = self.start("ssh", lambda: Sshd(work))
        self.iperf = self.start("iperf3", lambda: Iperf(work))

    def start(self, name, make):
        try:
            self.made.append(make())
            return self.made[-1]
        except Missing as e:
            self.missing[name] = str(e)
            return None

    def need(self, name, program):
        if not program:
            raise Missing(self.missing[name])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.made:
            p.end()


def ask_web(w, host, more):
    w.need("nginx", w.web)
    equal(curl_hash(host, w.web.port + more, "16"), w.web.sums[16], "hash of 16 MiB from nginx by curl")


def ask_iperf(w, host, more, mib, *options):
    w.need("iperf3", w.iperf)
    w.iperf.run(host, w.iperf.port + more, mib, *options)


def ask_ssh(w, host, more, mib):
    w.need("ssh", w.sshd)
    data = os.urandom(mib * MIB)
    came = ssh(w.sshd.key, host, w.sshd.port + more, "cat", data)
    equal(hashlib.sha256(came).hexdigest(), hashlib.sha256(data).hexdigest(), f"hash of {mib} MiB there and back by ssh")


def programs(t):
    """Client and server, both versions, offloads on and off on either side, every MTU; pairwise or all of it."""
    need_netns()
    work = frame.workdir("weft-p")
    with World(work) as w:
        for mtu, name, version in matrix(t.full):
            what = f"MTU {mtu}, offloads: {name}, IPv{version}: "
            every = t.full or mtu == 1500
            mib = 32 if mtu >= 1500 else 16
            with relay(work, mtu, OFFLOADS[name], version, *w.made):
                for role, host, more in ways(version):
                    with t.case(what + f"we are the {role}: iperf3, both directions"):
                        ask_iperf(w, host, more, mib)
                        ask_iperf(w, host, more, mib, "-R")
                    with t.case(what + f"we are the {role}: curl from nginx"):
                        ask_web(w, host, more)
                    if not every:
                        continue
                    with t.case(what + f"we are the {role}: ssh"):
                        ask_ssh(w, host, more, 16 if t.full else 4)
                    with t.case(what + f"we are the {role}: wrk, connections that stay and that do not"):
                        w.need("nginx", w.web)
                        wrk(host, w.web.port + more, 1)
                        wrk(host, w.web.port + more, 1, "-H", "Connection: close")


def big(t):
    """1 GiB once per direction, and many streams at once."""
    need_netns()
    work = frame.workdir("weft-p")
    with World(work, (1024,)) as w, relay(work, 1500, "", 4, *w.made):
        for role, host, more in ways(4):
            with t.case(f"1 GiB from nginx by curl; we are the {role}, and " +
                        ("send" if role == "server" else "receive")):
                w.need("nginx", w.web)
                equal(curl_hash(host, w.web.port + more, "1024"), w.web.sums[1024], "hash of 1 GiB")
            with t.case(f"iperf3, 8 streams; we are the {role}"):
                ask_iperf(w, host, more, 64, "-P", "8")
                ask_iperf(w, host, more, 64, "-P", "8", "-R")


def captured(path, display_filter):
    p = subprocess.run(["tshark", "-n", "-r", str(path), "-Y", display_filter], capture_output=True, text=True)
    equal(p.returncode, 0, f"tshark: {p.stderr[-500:]}")
    return p.stdout.splitlines()


def analysis(t):
    """What tshark thinks of a clean path, seen on the tap."""
    need_netns()
    need(("tshark", "tshark"), ("dumpcap", "tshark"))
    work = frame.workdir("weft-p")
    with World(work) as w:
        for version in (4, 6):
            with relay(work, 1500, "", version, *w.made):
                pcap = work / f"{version}.pcap"
                dump = Program([tool("dumpcap"), "-q", "-i", "ts0", "-f", "tcp", "-s", "128", "-B", "64", "-P", "-w",
                                str(pcap)], work / "dumpcap.log", lambda: pcap.exists() and pcap.stat().st_size >= 24)
                with dump:
                    for _, host, more in ways(version):
                        ask_iperf(w, host, more, 32)
                        ask_iperf(w, host, more, 32, "-R")
                        ask_web(w, host, more)
            with t.case(f"IPv{version}: tshark finds no loss"):
                # "Packets received/dropped on interface 'ts0': 1234/0 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0)"
                check("/0 (pcap:0/" in dump.said(), f"dumpcap missed some: {dump.said()}")
                check(len(captured(pcap, "tcp")) > 1000, "the capture is short")
                equal(captured(pcap, LOSSES)[:5], [], "what tshark flags as lost")
                again = captured(pcap, AGAIN)
                check(len(again) <= PROBES, f"tshark flags {len(again)} segments: {again[:5]}")


def automatic(t):
    """A network that gives addresses: DHCP and router advertisements by dnsmasq, advertisements by radvd."""
    need_netns()
    work = frame.workdir("weft-p")
    tap = tap_words(1500, "")
    # the tap stays when a host goes, so that the servers find it
    subprocess.run(["ip", "tuntap", "add", "ts0", "mode", "tap", "vnet_hdr"], check=True)
    for word in (["link", "set", "ts0", "up"], ["addr", "add", f"{KERNEL[4]}/24", "dev", "ts0"],
                 ["addr", "add", f"{KERNEL[6]}/64", "dev", "ts0", "nodad"],
                 ["addr", "add", "fe80::fe/64", "dev", "ts0", "nodad"]):
        subprocess.run(["ip", *word], check=True)
    pathlib.Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
    with World(work) as w:
        behind = ("stack::8000", "host:127.0.0.1:8000", "host::9000", f"stack:{KERNEL[4]}:8000",
                  "host::9006", f"stack:[{KERNEL[6]}]:8000")
        with t.case("dnsmasq: an IPv4 address by DHCP, an IPv6 address by its advertisement"):
            need(("dnsmasq", "dnsmasq-base"))
            leases = work / "leases"
            argv = [tool("dnsmasq"), "-k", "-C", "/dev/null", "-p", "0", "-i", "ts0", "--bind-interfaces", "-u", "root", "-g", "root",
                    "--dhcp-range=10.99.0.50,10.99.0.60,255.255.255.0,1h", "--dhcp-range=fd99::,ra-only,64,1h",
                    "--enable-ra", f"--dhcp-leasefile={leases}", "--no-ping", "-x", str(work / "dnsmasq.pid"),
                    "--log-facility=-"]
            with Program(argv, work / "dnsmasq.log", lambda: (work / "dnsmasq.pid").exists()):
                with Relay(work, "tap:ts0", "dhcp,mac=02:00:00:00:00:77", *behind) as r:
                    four = r.wait("address 10.").split()[1]
                    six = r.wait("address fd99:").split()[1]
                    check(50 <= int(four.split(".")[3]) <= 60, f"{four} is not of the range")
                    check("02:00:00:00:00:77 " + four in leases.read_text(), f"no lease of {four}: {leases.read_text()}")
                    w.need("nginx", w.web)
                    for host, port in ((four, 8000), (six, 8000), ("127.0.0.1", 9000), ("127.0.0.1", 9006)):
                        equal(curl_hash(host, port, "16"), w.web.sums[16], f"hash of 16 MiB by {host}:{port}")
        with t.case("radvd: an IPv6 address and a router"):
            need(("radvd", "radvd"))
            conf = work / "radvd.conf"
            conf.write_text("interface ts0 { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; "
                            "prefix fd98::/64 { AdvOnLink on; AdvAutonomous on; }; };\n")
            subprocess.run(["ip", "addr", "add", "fd98::fe/64", "dev", "ts0", "nodad"], check=True)
            # its folder in /run comes with the service
            argv = [tool("radvd"), "-n", "-C", str(conf), "-p", str(work / "radvd.pid"), "-m", "stderr"]
            with Program(argv, work / "radvd.log", lambda: (work / "radvd.pid").exists()):
                with Relay(work, "tap:ts0", "mac=02:00:00:00:00:78", *behind) as r:
                    six = r.wait("address fd98:").split()[1]
                    w.need("nginx", w.web)
                    # beyond the link: only by the router
                    subprocess.run(["ip", "addr", "add", "fd97::1/128", "dev", "lo"], check=True)
                    for host, port in ((six, 8000), ("127.0.0.1", 9006)):
                        equal(curl_hash(host, port, "16"), w.web.sums[16], f"hash of 16 MiB by {host}:{port}")


if __name__ == "__main__":
    frame.main(programs, big, analysis, automatic)
