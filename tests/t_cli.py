#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The words: every mistake has status 2 and one line with the value and the remedy; sockets come and go."""
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                       # noqa: E402
import weft as weft_lib                                 # noqa: E402
from guest import Missing                               # noqa: E402
from t import check, equal, until                       # noqa: E402
from weft import Weft, call, program                    # noqa: E402

LONG = "/tmp/" + "x" * 120 + ".sock"

# words, and what the one line must contain: the value, and what would be right
MISTAKES = [
    ("bogus", "bogus", "known: run"),
    ("rum", "rum", "run"),
    ("run --bogus", "--bogus", "known"),
    ("run -n", "-n", "NET"),
    ("run -n .hidden vhost-user:a", ".hidden", ""),
    ("run foo:bar", "foo", "vhost-user"),
    ("run vhost-user:", "vhost-user:", "NAME"),
    ("run vhost-user:a,bogus=1", "bogus", "mtu"),
    ("run vhost-user:a,mtu=1", "mtu=1", "68"),
    ("run vhost-user:a,mtu=99999", "mtu=99999", "65535"),
    ("run vhost-user:a,off=tso", "tso", "guest_tso4"),
    ("run vhost-user:a,server=maybe", "maybe", "on or off"),
    ("run vhost-user:a,mode=9", "mode=9", "octal"),
    ("run vhost-user:a,group=nosuchgroup", "nosuchgroup", "group"),
    ("run vhost-user:a,mac=xx", "xx", "52:54:00"),
    ("run vhost-user:a,mac=01:00:00:00:00:00", "01:00:00:00:00:00", "multicast"),
    ("run vhost-user:a vhost-user:a", "'a'", "name="),
    ("run vhost-user:a,mac=02:00:00:00:00:01 vhost-user:b,mac=02:00:00:00:00:01", "02:00:00:00:00:01", "mac="),
    (f"run vhost-user:{LONG}", "x" * 90, "107"),
    ("run vhost-user:/nonexistent/folder/a.sock", "/nonexistent/folder", "folder"),
    ("run vhost-user:a,pcap=/nonexistent/folder/a.pcapng", "/nonexistent/folder", "folder first"),
    ("run tap:a_name_that_is_too_long", "a_name_that_is_too_long", "15"),
    ("run tap:t0,ip=10.0.0.1", "10.0.0.1", "/24"),
    ("run tap:t0,ip=10.0.0.300/24", "10.0.0.300", ""),
    ("run tap:t0,netns=nosuchns", "nosuchns", "ip netns add"),
    ("run tap:t0,impair=delay=5", "delay=5", "20ms"),
    ("run tap:t0,impair=los=1%", "los", "loss"),
    ("run vhost-user:a,pages=2020", "2020", "2015"),
    ("bench tables S9", "S9", "S0"),
    ("bench tables --size 64", "--size", "--quick"),
    ("bench tables --quick -t 1", "--quick", "-t"),
    ("bench tables x.json", "x.json", "--json"),
    ("bench tables --json /nonexistent/x.json", "/nonexistent/x.json", "No such"),
    ("bench pktgen S0", "S0", "one benchmark"),
    ("-n", "-n", "NET"),
    ("show", "default", "weft run"),
    ("-n nosuchnet show", "", ""),
    ("show -n nosuchnet", "nosuchnet", "weft run"),
    ("add vhost-user:x", "default", "weft run"),
    ("help bogus", "bogus", "known"),
    ("--version x", "'x'", "weft version"),
]
# the same with a network that runs and has a port a
MISTAKES_RUNNING = [
    ("show bogus", "bogus", "ports"),
    ("add vhost-user:a", "'a'", "name="),
    ("add foo:a", "foo", "vhost-user"),
    ("add vhost-user:b,mtu=1", "mtu=1", "68"),
    ("del bogus", "bogus", "a"),
    ("del", "del", ""),
    ("wait bogus", "bogus", "a"),
    ("why a bogus", "bogus", "a"),
    ("why a", "why", ""),
    ("trace bogus", "bogus", "a"),
    ("trace a -c 1001", "1001", "1000"),
    ("trace a -t 0", "-t 0", "at least 1"),
    ("args bogus a", "bogus", "qemu"),
    ("args qemu bogus", "bogus", "a"),
    ("run vhost-user:b", "default", "-n"),
    ("run vhost-user:b,bogus=1", "bogus", "mtu"),
    ("add vhost-user:b vhost-user:c,mtu=1", "mtu=1", "68"),
    ("del a bogus", "bogus", "a"),
    ("del a a", "'a'", "once"),
]


def one_line(p, words, *contain):
    equal(p.returncode, 2, f"status of weft {words}; it said {p.stderr.strip()!r}")
    equal(p.stdout, "", f"standard output of weft {words}")
    check(p.stderr.count("\n") == 1 and p.stderr.startswith("weft: "), f"weft {words} said {p.stderr!r}")
    for c in contain:
        check(c in p.stderr, f"weft {words} does not say {c!r}: {p.stderr.strip()}")


def mistakes(t):
    rundir = frame.workdir("weft-t")
    for words, *contain in MISTAKES:
        with t.case(words[:60]):
            one_line(call(*words.split(), rundir=rundir, timeout=5), words, *contain)
            check(not list(rundir.glob("weft/*/*.sock")), "a socket was left behind")
    with Weft("vhost-user:a", rundir=rundir) as w:
        for words, *contain in MISTAKES_RUNNING:
            with t.case(f"running: {words}"):
                one_line(w.call(*words.split(), timeout=5), words, *contain)
        check(w.alive(), "weft is gone")
        equal([p["name"] for p in w.show()["ports"]], ["a"], "ports after nothing but mistakes")


def words(t):
    rundir = frame.workdir("weft-t")
    with t.case("no arguments: ten lines or so"):
        p = call(rundir=rundir)
        equal(p.returncode, 0, "status")
        check(5 <= p.stdout.count("\n") <= 14, p.stdout)
    with t.case("version, help, help of every word"):
        check(re.match(r"weft \d+\.\d+", call("version").stdout), call("version").stdout)
        check("vhost-user" in call("help").stdout, "help does not explain ports")
        for word in ("run", "add", "del", "show", "wait", "args", "why", "trace", "stop"):
            p = call("help", word)
            check(p.returncode == 0 and f"weft {word}" in p.stdout, f"help {word}: {p.stdout}{p.stderr}")
    with t.case("a full disk is no success"):
        with open("/dev/full", "w") as full:
            p = subprocess.run([program(), "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        check(p.returncode == 1 and "No space left" in p.stderr, f"{p.returncode}: {p.stderr}")
    with Weft("vhost-user:a", f"vhost-user:{rundir}/b.sock,name=b,mtu=9000,off=mrg_rxbuf+guest_tso4,mode=0660",
              rundir=rundir) as w:
        with t.case("one ready line that names the sockets"):
            check("ready" in w.ready_line and f"{rundir}/b.sock" in w.ready_line, w.ready_line)
        with t.case("modes of sockets and folder"):
            a = pathlib.Path(w.socket("a"))
            equal(stat.S_IMODE(a.stat().st_mode), 0o600, "mode of a")
            equal(stat.S_IMODE((rundir / "b.sock").stat().st_mode), 0o660, "mode of b")
            equal(stat.S_IMODE(a.parent.stat().st_mode), 0o700, "mode of the folder")
            for s in a.parent.glob("*"):
                if s.is_socket():
                    equal(stat.S_IMODE(s.stat().st_mode) & 0o077, 0, f"mode of {s.name} for others")
        with t.case("show, in words and as JSON"):
            for what in ("", "ports", "fdb", "drops", "stats"):
                p = w.call(*["show", what][:2 if what else 1])
                equal(p.returncode, 0, f"show {what}: {p.stderr}")
            s = w.show()
            equal([p["name"] for p in s["ports"]], ["a", "b"], "ports")
            check("mrg_rxbuf" not in w.port("b")["offered"].split(), "off= had no effect")
            equal(w.port("b")["mtu"], 9000, "mtu=")
            for what in ("ports", "stats", "drops", "fdb"):
                json.loads(w.call("show", what, "--json").stdout)
        with t.case("args for every VMM"):
            for vmm, need in (("qemu", "share=on"), ("uml", "virtio_uml.device="), ("cloud-hypervisor", "shared=on"),
                              ("libvirt", "<interface")):
                p = w.call("args", vmm, "a")
                check(p.returncode == 0 and need in p.stdout and w.socket("a") in p.stdout,
                      f"args {vmm}: {p.stdout}{p.stderr}")
        with t.case("wait does not return before there is a link"):
            try:
                p = w.call("wait", "a", timeout=0.5)
                raise frame.Failure(f"it returned {p.returncode}: {p.stdout}{p.stderr}")
            except subprocess.TimeoutExpired:
                pass
        with t.case("why says what is missing, and claims nothing that is not known yet"):
            text = w.call("why", "a", "b").stdout
            check("front-end" in text and text.count("not known before both have a link") == 2, text)
            check("dropped" not in text, text)
        with t.case("add and del"):
            equal(w.call("add", "vhost-user:c,mac=02:00:00:00:00:0c").returncode, 0, "add")
            equal(w.port("c")["mac"], "02:00:00:00:00:0c", "mac=")
            path = pathlib.Path(w.socket("c"))
            check(path.is_socket(), f"no socket at {path}")
            equal(w.call("del", "c").returncode, 0, "del")
            check(not path.exists(), f"{path} is still there")
        mac = w.port("a")["mac"]
        with t.case("a second network beside it"):
            with Weft("vhost-user:a", options=["-n", "other"], rundir=rundir) as v:
                check(json.loads(v.call("show", "-n", "other", "--json").stdout)["network"] == "other", "show -n other")
                equal(sorted(call("ls", rundir=rundir).stdout.split()), ["default", "other"], "weft ls")
                one_line(w.call("show", "-n", "nosuch"), "show -n nosuch", "nosuch", "default", "other")
                check(json.loads(v.call("show", "-n", "other", "--json").stdout)["ports"][0]["mac"] != mac,
                      "two networks offer the same address")
                v.stop()
            equal(call("ls", rundir=rundir).stdout, "default\n", "weft ls")
            check(w.alive(), "the first network ended with the second")
        with t.case("stop"):
            equal(w.call("stop").returncode, 0, "status of weft stop")
            until(lambda: not w.alive(), "weft still runs")
    with t.case("addresses are the same the next time"):
        with Weft("vhost-user:a", rundir=rundir) as w:
            equal(w.port("a")["mac"], mac, "MAC of a")


def spoil(c, data):
    """Say `data` and listen to the end, which may be a reset."""
    c.settimeout(3)
    try:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        while c.recv(4096):
            pass
    except ConnectionError:
        pass
    c.close()


def sockets(t):
    rundir = frame.workdir("weft-t")
    path = rundir / "x.sock"
    with t.case("a socket that a live process has is refused"):
        s = socket.socket(socket.AF_UNIX)
        s.bind(str(path))
        s.listen()
        one_line(call("run", f"vhost-user:{path}", rundir=rundir), "run", str(path), "in use")
        check(path.exists(), "the other's socket is gone")
    with t.case("a stale socket is taken over"):
        s.close()       # its file stays
        with Weft(f"vhost-user:{path}", rundir=rundir) as w:
            socket.socket(socket.AF_UNIX).connect(str(path))
            w.stop()
        check(not path.exists(), "socket left behind")
    with t.case("a file that is no socket is not touched"):
        path.write_text("mine")
        one_line(call("run", f"vhost-user:{path}", rundir=rundir), "run", str(path))
        equal(path.read_text(), "mine", "content of the file")
        path.unlink()
    for sig in (signal.SIGTERM, signal.SIGINT):
        with t.case(f"{sig.name}: ends with status 0 in 100 ms and leaves no file"):
            quickest = 1000.0
            for _ in range(5):      # the machine may be busy with something else: not five times
                w = Weft("vhost-user:a", f"vhost-user:{path}", rundir=rundir)
                front = socket.socket(socket.AF_UNIX)
                front.connect(str(path))
                begun = time.monotonic()
                w.proc.send_signal(sig)
                w.proc.wait(5)
                quickest = min(quickest, time.monotonic() - begun)
                equal(w.proc.returncode, 0, "status")
                check(not path.exists() and not list(rundir.glob("weft/*")), f"left: {list(rundir.rglob('*'))}")
                front.close()
                if quickest < 0.1:
                    break
            check(quickest < 0.1, f"it took {1000 * quickest:.0f} ms")
    with t.case("killed, started again: takes over what was left"):
        w = Weft("vhost-user:a", rundir=rundir)
        w.kill()
        with Weft("vhost-user:a", rundir=rundir) as w:
            socket.socket(socket.AF_UNIX).connect(w.socket("a"))
    with t.case("a client that says nonsense to a guest's socket loses only its session"):
        with Weft("vhost-user:a", rundir=rundir) as w:
            for data in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"\0" * 12, b""):
                c = socket.socket(socket.AF_UNIX)
                c.connect(w.socket("a"))
                spoil(c, data)
            check(w.alive() and w.show(), "weft is gone: " + w.errors())
    with t.case("a client that says nonsense to the control socket loses only its connection"):
        with Weft("vhost-user:a", rundir=rundir) as w:
            control = [p for p in pathlib.Path(w.socket("a")).parent.iterdir()
                       if p.is_socket() and p.name != "a.sock"]
            equal(len(control), 1, f"control sockets: {control}")
            for data in (b"bogus\n", b"{" * 100000, os.urandom(4096), b'["show"]\n', b"\n"):
                c = socket.socket(socket.AF_UNIX)
                c.connect(str(control[0]))
                spoil(c, data)
            check(w.alive() and w.show(), "weft is gone: " + w.errors())


def tap(t):
    frame.need_netns()
    with Weft("tap:t0,ip=10.9.0.1/24+fd09::1/64,mtu=9000") as w:
        with t.case("a tap is made, up, with its addresses and MTU"):
            out = subprocess.run(["ip", "addr", "show", "t0"], capture_output=True, text=True).stdout
            for need in ("UP", "10.9.0.1/24", "fd09::1/64", "mtu 9000"):
                check(need in out, f"no {need} in {out}")
        with t.case("eight of them go with it"):
            v = Weft(*[f"tap:many{i}" for i in range(8)], options=["-n", "many"], rundir=w.rundir)
            v.proc.send_signal(signal.SIGTERM)
            equal(v.proc.wait(5), 0, "status")
            out = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout
            check("many" not in out, out)
        with t.case("the same interface twice"):
            one_line(w.call("add", "tap:t0,name=again"), "add tap:t0,name=again", "port 't0'", "t0", "IFNAME")
        with t.case("deleted: said so, and what to do"):
            with Weft("tap:t1", options=["-n", "gone"], rundir=w.rundir) as v:
                subprocess.run(["ip", "link", "delete", "t1"], check=True)
                until(lambda: not json.loads(v.call("show", "-n", "gone", "--json").stdout)["ports"][0]["link"], "the link is up")
                check("deleted" in v.call("show", "-n", "gone").stdout, v.call("show", "-n", "gone").stdout)
        with t.case("it goes when weft ends"):
            w.stop()
            out = subprocess.run(["ip", "link", "show", "t0"], capture_output=True, text=True)
            check(out.returncode != 0, out.stdout)


def nobody():
    """argv prefix and environment of an ordinary user."""
    if os.geteuid() != 0 or os.environ.get(frame.NETNS) != "yes" and os.getuid() != 0:
        raise Missing("only root can become somebody else")
    uid_map = pathlib.Path("/proc/self/uid_map").read_text().split()
    if uid_map[2] == "1":
        raise Missing("only root can become somebody else; this is a user namespace of one user")
    if not shutil.which("setpriv"):
        raise Missing("no setpriv (package util-linux)")
    user = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"], user.pw_uid


def rights(t):
    """What an ordinary user is told, and what he can do all the same."""
    prefix, uid = nobody()
    home = frame.workdir("weft-t")
    os.chown(home, uid, -1)
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home), HOME=str(home))

    def run(*words, more=(), timeout=10):
        return subprocess.run([*prefix, *more, program(), *words], capture_output=True, text=True, env=env,
                              timeout=timeout, stdin=subprocess.DEVNULL)
    with t.case("a folder that is not his"):
        one_line(run("run", "vhost-user:/usr/x.sock"), "run", "/usr/x.sock", "choose another")
    with t.case("a tap without the right to it: told of unshare"):
        one_line(run("run", "tap:t0"), "run", "t0", "unshare -Urn")
    with t.case("a runtime folder that cannot be made"):
        p = subprocess.run([*prefix, program(), "run", "vhost-user:a"], capture_output=True, text=True,
                           env=dict(env, XDG_RUNTIME_DIR="/nonexistent"), timeout=10)
        one_line(p, "run", "/nonexistent", "XDG_RUNTIME_DIR")
    with t.case("another user's network is not his to control"):
        with Weft("vhost-user:a") as w:
            os.chmod(w.rundir, 0o755)
            p = subprocess.run([*prefix, program(), "stop"], capture_output=True, text=True, timeout=10,
                               env=dict(env, XDG_RUNTIME_DIR=str(w.rundir)))
            equal(p.returncode, 2, f"status; it said {p.stderr}{p.stdout}")
            check(w.alive(), "weft is gone")
    with t.case("user namespaces forbidden: said so"):
        # nobody makes a namespace, forbids further ones in it, and gives up its rights there
        script = ("echo 0 >/proc/sys/user/max_user_namespaces || exit 77; "
                  f"exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs {program()} run tap:t0")
        p = subprocess.run([*prefix, "unshare", "-Ur", "sh", "-c", script], capture_output=True, text=True, env=env,
                           timeout=10)
        if p.returncode == 77:
            raise Missing("max_user_namespaces cannot be set here: " + p.stderr.strip())
        one_line(p, "run tap:t0", "t0")
    with t.case("two sockets as nobody"):
        p = subprocess.Popen([*prefix, program(), "run", "vhost-user:a", "vhost-user:b"], stdout=subprocess.PIPE,
                             env=env, text=True, preexec_fn=weft_lib._die_with_parent)
        check("ready" in p.stdout.readline(), "no ready line")
        equal(run("show").returncode, 0, "status of weft show")
        p.terminate()
        equal(p.wait(5), 0, "status")
    with t.case("a tap as nobody, in a user namespace"):
        script = f"{program()} run tap:t0,ip=10.9.0.1/24 & p=$!; sleep 1; ip addr show t0; kill $p; wait $p"
        p = subprocess.run([*prefix, "unshare", "-Urn", "sh", "-c", script], capture_output=True, text=True, env=env,
                           timeout=15)
        if "unshare" in p.stderr:
            raise Missing("user namespaces are forbidden here: " + p.stderr.strip())
        check(p.returncode == 0 and "10.9.0.1/24" in p.stdout, f"status {p.returncode}: {p.stdout}{p.stderr}")


def capture(t):
    """What pcap= writes is a pcapng that others can read."""
    if not shutil.which("tshark"):
        raise Missing("no tshark (package tshark)")
    frame.need_netns()
    rundir = frame.workdir("weft-t")
    with Weft(f"tap:t0,ip=10.9.0.1/24,pcap={rundir}/t0.pcapng", "tap:t1", rundir=rundir) as w:
        subprocess.run(["busybox", "ping", "-c", "2", "-W", "1", "10.9.0.2"], capture_output=True)
        w.stop()
    with t.case("tshark reads the capture, and finds the ARP requests"):
        p = subprocess.run(["tshark", "-r", f"{rundir}/t0.pcapng", "-T", "fields", "-e", "_ws.col.Protocol"],
                           capture_output=True, text=True, env=dict(os.environ, HOME=str(rundir)))
        equal(p.returncode, 0, f"tshark: {p.stderr}")
        check("ARP" in p.stdout, f"protocols seen: {p.stdout.split()}")


def trace(t):
    """One frame of a tap, followed: a broadcast that goes to the other two, one of which is behind a bad network."""
    frame.need_netns()
    with Weft("tap:t0,ip=10.9.0.1/24", "tap:t1", "tap:t2,impair=loss=100%") as w:
        def traced(*words):
            p = subprocess.Popen([program(), "trace", "t0", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, env=dict(os.environ, XDG_RUNTIME_DIR=str(w.rundir)))
            while p.poll() is None:                 # an ARP request a second, and more
                subprocess.run(["busybox", "arping", "-q", "-c", "1", "-w", "1", "-I", "t0", "10.9.0.2"])
            return p.returncode, *p.communicate()
        with t.case("in words"):
            for _ in range(20):                     # the kernel has more to say on a new interface
                status, out, err = traced("-c", "1")
                equal(status, 0, f"status: {err}")
                if "0x0806" in out:
                    break
            for need in ("frame 1: ", " > ff:ff:ff:ff:ff:ff, type 0x0806", "to all: a group address", "to t1", "1 frame",
                         "1 dropped: impaired", "ns"):
                check(need in out, f"no {need!r} in {out}")
        with t.case("as JSON, three of them"):
            status, out, err = traced("-c", "3", "--json")
            equal(status, 0, f"status: {err}")
            frames = json.loads(out)["frames"]
            equal([f["number"] for f in frames], [1, 2, 3], "numbers")
            for f in frames:
                equal([(x["port"], x["frames"], x["drop"]) for x in f["to"]], [("t1", 1, "none"), ("t2", 0, "impaired")],
                      f"receivers of {f}")
                check(f["ns"]["pull"] > 0 and f["chain"] is None, str(f))
        with t.case("the network is as it was"):
            def came():
                return [s["in"]["frames"] for s in w.show()["stats"] if s["name"] == "t0"][0]
            before = came()
            subprocess.run(["busybox", "arping", "-q", "-c", "1", "-w", "1", "-I", "t0", "10.9.0.2"])
            until(lambda: came() > before, "no frame comes any more")
        with t.case("nothing comes: status 1, and said so"):
            p = w.call("trace", "t2", "-t", "1")
            equal((p.returncode, p.stdout), (1, ""), "status and output")
            check("0 of 1 frames of port 't2': the time is over" in p.stderr, p.stderr)


def trace_rings(t):
    """Super-packets between two drivers, to one that takes none: the chain, the cuts, the buffers."""
    with Weft("vhost-user:a", "vhost-user:b,off=guest_tso4+guest_csum") as w:
        ends = [subprocess.Popen([program(), "bench", *words], stdout=subprocess.DEVNULL)
                for words in (["rx", "--via", f"virtio-user:{w.socket('b')}", "-t", "8"],
                              ["pktgen", "--via", f"virtio-user:{w.socket('a')}", "-t", "8", "--size", "9000"])]
        try:
            for port in "ab":
                equal(w.call("wait", port, "-t", "5").returncode, 0, f"status of wait {port}")
            with t.case("chain, header, segments, buffers"):
                p = w.call("trace", "a", "-c", "200", "--json", timeout=15)
                equal(p.returncode, 0, f"status: {p.stderr}")
                frames = [f for f in json.loads(p.stdout)["frames"] if f["to"] and f["to"][0]["frames"]]
                check(frames, f"nothing arrived: {p.stdout[:2000]}")
                f = frames[-1]
                equal((f["bytes"], f["chain"]["bytes"], f["chain"]["pieces"]), (9000, 9012, 2), "frame and chain")
                equal(f["chain"]["descriptors"], 3 if f["chain"]["indirect"] else 2, "descriptors")
                equal((f["header"]["gso"], f["header"]["gso_size"]), ("tcpv4", 1448), "header")
                for f in frames:
                    to = f["to"][0]
                    if to["drops"]:
                        continue                    # given up in the middle
                    here = 7 - f["segments_before"]
                    equal((to["port"], to["frames"], to["fit_segments"], to["buffers"]), ("b", here, here, here),
                          f"receiver of {f}")
                    check(sum(to["notify"][k] for k in ("wanted", "unwanted")) >= 1, f"publications of {f}")
        finally:
            for p in ends:
                p.kill()
                p.wait()


def tables(t):
    """Two of the published experiments by their counters: the step of S0, the descriptors of S2."""
    result = frame.workdir("weft-t") / "tables.json"
    p = call("bench", "tables", "S0", "S2", "--quick", "--json", str(result), timeout=100)
    with t.case("counters are as predicted, and the status says so"):
        equal(p.returncode, 0, f"status: {p.stderr}{p.stdout}")
        check("MISSES" not in p.stdout and "S2.udp" in p.stdout, p.stdout)
    with t.case("the result is JSON with every run"):
        o = json.loads(result.read_text())
        equal((o["format"], o["version"], o["quick"], o["ok"]), ("weft-tables", 1, True, True), "head")
        equal([e["id"] for e in o["experiments"]], ["S0", "S2"], "experiments")
        check(all(e["runs"] for e in o["experiments"]) and "CPU" in o["machine"]["placement"], str(o["machine"]))
    with t.case("the step lies between MTU 1492 and 1493, and only without the header"):
        step = next(x for x in o["experiments"][0]["tables"] if x["id"] == "S0.step")
        buffers = {(c["arm"], r["x"]): round(c["measured"], 1) for r in step["rows"] for c in r["counters"]}
        equal([buffers["mtu", x] for x in (1480, 1492, 1493, 1500)], [1, 1, 2, 2], "buffers per packet with rxbuf=mtu")
        equal({n for (arm, _), n in buffers.items() if arm == "mtu+hdr"}, {1}, "with rxbuf=mtu+hdr")


if __name__ == "__main__":
    frame.main(mistakes, words, sockets, tap, rights, capture, trace, trace_rings, tables)
