#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A guest and a host outside, in another network namespace behind a veth: through a macvtap on its near end.

Then taps that were opened before weft started, and what is said where something is missing.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pwd
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                                       # noqa: E402
from guest import Missing, Nic, UmlGuest, _die_with_parent              # noqa: E402
from t import check, equal, until                                       # noqa: E402
from weft import Weft, call, heard_hash, iperf_server, listen_hash, program, xfer     # noqa: E402

MAC = "02:00:00:00:00:0a"
MIB = 8
IPERF = ("", "off=csum+guest_csum")
TUNSETIFF, IFF_TUN, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 1, 2, 0x1000, 0x4000


def ip(*words):
    p = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=10)
    check(p.returncode == 0, f"ip {' '.join(words)}: {p.stderr.strip()}")
    return p.stdout


def interfaces():
    return {line.split()[0].partition("@")[0] for line in ip("-br", "link").splitlines()}


def need_macvtap():
    """Root of the machine, with the kernel's part: what the program says where it is not so is the reason."""
    frame.need_netns()
    ip("link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
    try:
        with Weft("macvtap:probe0"):
            pass
    except frame.Failure as e:
        if any(word in str(e) for word in ("run as root", "no macvtap", "is not there")):
            raise Missing(str(e).strip().splitlines()[-1])
        raise
    finally:
        with contextlib.suppress(frame.Failure):
            ip("link", "del", "probe0")


class Outside:
    """A network namespace at the far end of a veth: 10.0.0.9, fd00::9."""

    def __init__(self):
        ip("link", "add", "near", "type", "veth", "peer", "name", "far")
        self.proc = subprocess.Popen(["unshare", "-n", "sleep", "600"], preexec_fn=_die_with_parent)
        here = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(f"/proc/{self.proc.pid}/ns/net") != here, "no namespace")
        ip("link", "set", "far", "netns", str(self.proc.pid))
        ip("link", "set", "near", "up")
        self.run("sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad; ip link set lo up; ip link set far up; "
                 "ip addr add 10.0.0.9/24 dev far; ip addr add fd00::9/64 dev far nodad; "
                 "echo reno >/proc/sys/net/ipv4/tcp_congestion_control || true")

    def argv(self, *words):
        return ["nsenter", "-t", str(self.proc.pid), "-n", *words]

    def run(self, *words, timeout=90):
        p = subprocess.run(self.argv(*words), capture_output=True, text=True, timeout=timeout)
        check(p.returncode == 0, f"{' '.join(words)}: {(p.stdout + p.stderr)[-500:]}")
        return p.stdout

    def hears(self, g, address, seed, mib=MIB):
        """The guest sends; both hashes must agree."""
        p = subprocess.Popen(self.argv(xfer(), "recv", "7001"), stdout=subprocess.PIPE, text=True,
                             preexec_fn=_die_with_parent)
        try:
            until(lambda: ":1B59 " in self.run("cat", "/proc/net/tcp6"), "xfer does not listen")
            sent = g.run(f"xfer send {address} 7001 {mib} {seed}", timeout=90).out.strip()
            equal(p.communicate(timeout=30)[0].split(), [sent, str(mib << 20)], "SHA-256 and length, outwards")
        finally:
            p.kill()
            p.wait()

    def tells(self, g, address, seed, mib=MIB):
        listen_hash(g)
        sent = self.run(xfer(), "send", address, "7000", str(mib), str(seed)).strip()
        equal(heard_hash(g), [sent, str(mib << 20)], "SHA-256 and length, inwards")

    def iperf(self, to):
        """To the guest, and from it."""
        for options in ((), ("-R",)):
            for _ in range(20):     # the server listens again a moment after the last one
                told = json.loads(self.run("iperf3", "-J", "-c", to, "-t", "1", *options))
                if "error" not in told:
                    break
                time.sleep(0.2)
            check("error" not in told, f"iperf3 {options}: {told.get('error')}")
            end = told["end"]["sum_received"]
            check(end["bytes"] > 0, f"iperf3 {options}: nothing came")

    def close(self):
        self.proc.kill()
        self.proc.wait()
        with contextlib.suppress(frame.Failure):
            ip("link", "del", "near")


def stats(w, name):
    return next(s for s in w.show()["stats"] if s["name"] == name)


def guest_and_outside(t):
    """Offloads on and off, header sizes, copies in chunks of every order."""
    need_macvtap()
    out = Outside()
    try:
        with Weft(f"vhost-user:a,mac={MAC}") as w:
            g = UmlGuest("a", [Nic(w.socket("a"), ip="10.0.0.1/24+fd00::1/64")], extra=[xfer()]).boot()
            g.ready()
            iperf_server(g)
            copies = {}
            for words in ("", "off=csum+guest_csum", "off=guest_tso4+guest_tso6,mode=private", "vnet_hdr=10",
                          "vnet_hdr=20,mode=vepa", "mode=passthru", "queues=4", "copy=on,order=0", "copy=on,order=1",
                          "copy=on,order=3"):
                with t.case(f"{MIB} MiB each way, equal: {words or 'all on'}"):
                    p = w.call("add", f"macvtap:near,name=m,mac={MAC}" + ("," + words if words else ""))
                    equal((p.returncode, p.stderr), (0, ""), "weft add")
                    try:
                        name = w.port("m")["interface"]
                        check(name in interfaces(), f"no {name}")
                        g.run("ping -c 2 -i 0.2 -W 3 10.0.0.9 && ping -c 2 -i 0.2 -W 3 fd00::9")
                        out.hears(g, "10.0.0.9", t.seed)
                        out.tells(g, "fd00::1", t.seed + 1)
                        if words in IPERF:
                            out.iperf("10.0.0.1")
                        # two looks, and a frame may come between them
                        until(lambda: sum(q["frames_out"] for q in w.port("m")["queues"]) ==
                              stats(w, "m")["out"]["frames"], "the frames of the queues are not those of the port")
                        s, port = stats(w, "m"), w.port("m")
                        equal(len(port["queues"]), 4 if "queues" in words else 1, "queues")
                        if "csum" in words:
                            equal((s["in"]["gso"], s["out"]["gso"], port["accepts"]), (0, 0, []), "super-packets")
                            check(s["fit_segments"] > 0 and s["fit_csum"] > 0, f"nothing done in software: {s}")
                        else:
                            check(s["in"]["gso"] > 0, f"no super-packet came in: {s['in']}")
                        if "copy" in words:
                            copies[words[-1]] = port["copy"]
                            check(port["copy"]["packets"] >= s["in"]["frames"], f"not all were kept: {port['copy']}")
                            equal((port["copy"]["fallbacks"], port["copy"]["failures"]), (0, 0), "lack of memory")
                    finally:
                        p = w.call("del", "m")
                        equal(p.returncode, 0, f"weft del: {p.stderr}")
                    check(name not in interfaces(), f"{name} is still there")
            with t.case("copies: no chunk above the order, fewer of a higher one"):
                equal(sorted(copies), ["0", "1", "3"], "runs with copy=on")
                for order, c in copies.items():
                    equal(sum(c["chunks_by_order"][int(order) + 1:]), 0, f"chunks above order {order}")
                    check(c["chunks_by_order"][int(order)] > 0, f"no chunk of order {order}: {c}")
                per = [copies[o]["chunks_per_packet"] for o in "013"]
                check(per[0] > 1.5 * per[1] > 1.5 * per[2], f"chunks a packet at orders 0, 1, 3: {per}")
            with t.case("the interface below goes: the link is down, and says why"):
                equal(w.call("add", f"macvtap:near,name=m,mac={MAC}").returncode, 0, "weft add")
                ip("link", "del", "near")
                until(lambda: not w.port("m")["link"], "the link stays up")
                check("deleted" in w.port("m")["missing"], w.port("m")["missing"])
            g.stop()
    finally:
        out.close()


def tap_open(name, flags=IFF_TAP | IFF_NO_PI | IFF_VNET_HDR):
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    return fd


def run_with(fd, *ports):
    return subprocess.Popen([program(), "run", *ports], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, pass_fds=[fd] if fd else [], preexec_fn=_die_with_parent,
                            env=dict(os.environ, XDG_RUNTIME_DIR=str(frame.workdir("weft-t"))))


def passed(t):
    """A descriptor that weft run inherits."""
    frame.need_netns()
    with t.case("a tap that is passed in is used, and gone with weft"):
        fd = tap_open("given0")
        p = run_with(fd, f"tap:given0,fd={fd},ip=10.8.0.1/24", "tap:t8")
        os.close(fd)
        try:
            check("ready" in p.stdout.readline(), "not ready")
            check("10.8.0.1/24" in ip("addr", "show", "given0"), "no address")
            check("LOWER_UP" in ip("link", "show", "given0"), "no carrier")
        finally:
            p.terminate()
            p.communicate(timeout=10)
        until(lambda: "given0" not in interfaces(), "given0 stays")
    for name, flags, want in (("given1", IFF_TAP | IFF_NO_PI, "without IFF_VNET_HDR"),
                              ("given2", IFF_TUN | IFF_NO_PI | IFF_VNET_HDR, "without IFF_TAP")):
        with t.case(f"a tap opened {want}: refused"):
            fd = tap_open(name, flags)
            said = run_with(fd, f"tap:{name},fd={fd}").communicate(timeout=10)[1]
            os.close(fd)
            check(want in said and said.count("\n") == 1, said)


def mistakes(t):
    """One line, the value, and what would be right."""
    frame.need_netns()

    def told(p, *words):
        equal(p.returncode, 2, f"status; it said {p.stderr}")
        check(p.stderr.count("\n") == 1 and all(w in p.stderr for w in words), p.stderr)
    with t.case("a descriptor that is none"):
        told(call("run", "tap:x,fd=99"), "fd=99", "99<>FILE")
    with t.case("a descriptor of something else"):
        p = run_with(0, "tap:x,fd=3")
        said = p.communicate(timeout=10)[1]
        check("fd=3" in said and said.count("\n") == 1, said)
    with t.case("no such interface"):
        told(call("run", "macvtap:nowhere"), "nowhere", "ip link")
    with t.case("a tap in use"):
        with Weft("tap:t0"):
            told(call("run", "-n", "other", "tap:t0"), "t0", "in use")
    with t.case("more queues than there may be"):
        told(call("run", "tap:x,queues=17"), "queues=17", "16")
    with t.case("a tap with one queue, and several asked for"):
        ip("tuntap", "add", "one0", "mode", "tap")
        told(call("run", "tap:one0,queues=2"), "one0", "multi_queue")
    with t.case("a second port on one tap, under another name of the namespace"):
        with Weft("tap:many0,queues=2") as w:
            p = w.call("add", "tap:many0,queues=2,name=n,netns=/proc/self/ns/net")
            told(p, "many0", "beside 'many0'", "round")
            equal(w.port("many0")["link"], True, "the first one's link")
    with t.case("no rights"):
        one_user = pathlib.Path("/proc/self/uid_map").read_text().split()[2] == "1"
        if os.geteuid() or one_user or not shutil.which("setpriv"):
            raise Missing("only root can become somebody else")
        user = pwd.getpwnam("nobody")
        home = frame.workdir("weft-t")
        os.chown(home, user.pw_uid, -1)
        told(subprocess.run(["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", program(),
                             "run", "macvtap:lo"], capture_output=True, text=True, timeout=10,
                            env=dict(os.environ, XDG_RUNTIME_DIR=str(home))), "macvtap:lo", "root")
    need_macvtap()
    with t.case("an interface that a bridge has"):
        ip("link", "add", "br0", "type", "bridge")
        ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
        ip("link", "set", "v0", "master", "br0")
        told(call("run", "macvtap:v0"), "v0", "bridge")
    with t.case("two macvtaps of one interface: a loop"):
        with Weft("macvtap:v1,name=m") as w:
            for words in ("name=n", "name=n,mode=private", "name=n,netns=/proc/self/ns/net"):
                told(w.call("add", f"macvtap:v1,{words}"), "macvtap:v1", "beside 'm'", "round")
            equal(len([n for n in interfaces() if n.startswith("macvtap")]), 1, "macvtaps")
            w.stop()
    with t.case("a macvtap on the network's own tap: a loop"):
        with Weft("tap:t1") as w:
            told(w.call("add", "macvtap:t1,name=n"), "macvtap:t1", "beside 't1'", "round")
            w.stop()
    with t.case("an address in use"):
        ip("link", "set", "v1", "up")
        with Weft(f"macvtap:v1,mac={MAC}") as w:
            told(call("run", "-n", "other", f"macvtap:v1,mac={MAC}"), "v1", "mac=")
            w.stop()
    with t.case("nothing stays behind"):
        until(lambda: not any(n.startswith("macvtap") for n in interfaces()), "a macvtap stays")


if __name__ == "__main__":
    frame.main(guest_and_outside, passed, mistakes)
