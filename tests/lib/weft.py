# SPDX-License-Identifier: BSD-2-Clause
"""weft - one `weft run` under test, with a runtime folder of its own.

    with Weft("vhost-user:a", "tap:t0,ip=10.0.0.254/24") as w:
        w.socket("a"); w.show()["ports"]; w.port("a"); w.cpu(); w.rss_kib()
"""
import json
import os
import pathlib
import select
import signal
import subprocess
import time

import t as frame
from guest import Nic, QemuGuest, UmlGuest, _die_with_parent

HZ = os.sysconf("SC_CLK_TCK")


def program():
    """The weft under test: $WEFT, else the optimised build."""
    path = os.environ.get("WEFT") or str(frame.ROOT / "build/weft")
    if not os.access(path, os.X_OK):
        raise frame.Failure(f"no program at {path}; run make")
    return path


def call(*words, rundir=None, timeout=10, **kw):
    """Run weft to its end: CompletedProcess with text."""
    env = dict(os.environ, **kw.pop("env", {}))
    if rundir:
        env["XDG_RUNTIME_DIR"] = str(rundir)
    return subprocess.run([program(), *words], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env=env, **kw)


class Weft:
    """weft run, from its start to its ready line."""

    def __init__(self, *ports, rundir=None, options=(), start=True):
        self.ports, self.options = list(ports), list(options)
        self.rundir = pathlib.Path(rundir) if rundir else frame.workdir("weft-t")
        self.proc = None
        if start:
            self.start()

    def start(self, timeout=10):
        self.log = open(self.rundir / "weft.log", "ab")
        self.proc = subprocess.Popen(
            [program(), "run", *self.options, *self.ports], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.log, preexec_fn=_die_with_parent,
            env=dict(os.environ, XDG_RUNTIME_DIR=str(self.rundir)))
        self.ready_line = self._line(timeout)
        return self

    def _line(self, timeout):
        end, out = time.monotonic() + timeout, b""
        while not out.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0:
                raise frame.Failure("weft run: no ready line; it said: " + self.errors())
            if select.select([self.proc.stdout], [], [], left)[0]:
                data = os.read(self.proc.stdout.fileno(), 4096)
                if not data:
                    raise frame.Failure(f"weft run ended with {self.proc.wait()}: " + self.errors())
                out += data
        return out.decode()

    def errors(self):
        return (self.rundir / "weft.log").read_text(errors="replace")[-1500:].strip()

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def call(self, *words, **kw):
        return call(*words, rundir=self.rundir, **kw)

    def socket(self, name, net="default"):
        """The path of a vhost-user port's socket."""
        for port in self.show()["ports"]:
            if port["name"] == name:
                return port["socket"]
        raise frame.Failure(f"weft shows no port {name}")

    def show(self):
        p = self.call("show", "--json")
        frame.check(p.returncode == 0, f"weft show --json: status {p.returncode}: {p.stderr}{p.stdout}")
        return json.loads(p.stdout)

    def port(self, name):
        for p in self.show()["ports"]:
            if p["name"] == name:
                return p
        raise frame.Failure(f"weft shows no port {name}")

    def cpu(self):
        """Seconds of processor time it has used."""
        words = pathlib.Path(f"/proc/{self.proc.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / HZ

    def status(self, *keys):
        out = {}
        for line in pathlib.Path(f"/proc/{self.proc.pid}/status").read_text().splitlines():
            k, _, v = line.partition(":")
            if k in keys:
                out[k] = int(v.split()[0])
        return out

    def rss_kib(self):
        """Memory of its own: guests' memory is RssShmem and theirs."""
        return sum(self.status("RssAnon", "RssFile").values())

    def switches(self):
        """How often it went to sleep: voluntary context switches."""
        return self.status("voluntary_ctxt_switches")["voluntary_ctxt_switches"]

    def stop(self, timeout=5):
        """SIGTERM; returns the seconds it took."""
        if not self.alive():
            return 0.0
        begun = time.monotonic()
        self.proc.send_signal(signal.SIGTERM)
        try:
            self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise frame.Failure(f"weft did not end within {timeout} s of SIGTERM")
        finally:
            self.proc.stdout.close()
            self.log.close()
        return time.monotonic() - begun

    def kill(self):
        if self.alive():
            self.proc.kill()
            self.proc.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


# -- what tests do with a pair --

def pair(w, kinds=("uml", "uml"), names=("a", "b"), **kw):
    """Two guests on the ports `names`, 10.0.0.1 and .2, fd00::1 and ::2, booted together."""
    made = []
    for i, (kind, name) in enumerate(zip(kinds, names), 1):
        per = {k: (v[i - 1] if isinstance(v, (tuple, list)) else v) for k, v in kw.items()}
        cls = UmlGuest if kind == "uml" else QemuGuest
        made.append(cls(name, [Nic(w.socket(name), ip=f"10.0.0.{i}/24+fd00::{i}/64", **per)],
                        extra=[xfer()]).boot())
    for g in made:
        g.ready()
    return made


def xfer():
    """The helper that moves and hashes bytes (tests/guest/xfer.c)."""
    path = frame.ROOT / "build/tests/xfer"
    frame.check(path.exists(), f"no {path}; run make")
    return str(path)


def listen_hash(g, port=7000):
    """The guest takes one TCP connection and hashes what comes."""
    g.run(f"""rm -f /tmp/got; (xfer recv {port} >/tmp/part 2>&1; mv /tmp/part /tmp/got) >/dev/null 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do grep -qi ":{port:04X} [0:]* 0A " /proc/net/tcp6 && break; sleep 0.1; done""")


def heard_hash(g):
    """What listen_hash()'s connection brought: ["SHA-256", "bytes"]."""
    return g.run("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do [ -s /tmp/got ] && break; sleep 0.1; done; "
                 "cat /tmp/got").out.split()


def transfer(a, b, to, mib, port=7000, seed=1, timeout=120):
    """Send `mib` MiB over TCP from guest a to guest b at address `to`; both hashes must agree."""
    listen_hash(b, port)
    sent = a.run(f"xfer send {to} {port} {mib} {seed}", timeout=timeout).out.strip()
    frame.equal(heard_hash(b), [sent, str(mib << 20)], f"SHA-256 and length of {mib} MiB")
    return sent


def iperf(client, to, seconds=2, options="", timeout=None):
    """Gbit/s at the receiver, by iperf3 against a server that runs already."""
    out = client.run(f"iperf3 -J -c {to} -t {seconds} {options}", timeout=timeout or seconds + 30).out
    end = json.loads(out)["end"]
    return (end.get("sum_received") or end["sum"])["bits_per_second"] / 1e9


def iperf_server(g):
    """A fresh server; an old one may still be busy with a client that is gone."""
    g.run("killall -q -9 iperf3; sleep 0.1; iperf3 -s -D >/dev/null 2>&1; for i in 1 2 3 4 5 6 7 8 9 10; do "
          "grep -q ':1451 [0:]* 0A ' /proc/net/tcp6 /proc/net/tcp && break; sleep 0.1; done")
