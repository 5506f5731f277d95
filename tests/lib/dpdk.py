# SPDX-License-Identifier: BSD-2-Clause
"""dpdk - testpmd as the other side of a vhost-user socket, driven line by line at its prompt.

    d = Testpmd.driver(["/run/x/a.sock"])           # virtio-user: a driver, weft is the device
    d = Testpmd.device(["/run/x/a.sock", ...])      # vhost: a device, the reference back-end
    d.ask("start"); d.ask("show port stats all"); d.quit()

No huge pages, no PCI, no root. testpmd polls, so each instance takes a core while it forwards.
"""
import atexit
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import initrd
from guest import GuestError, Missing, _die_with_parent

PROMPT = b"testpmd> "


class Testpmd:
    def __init__(self, vdevs, cores=None, queues=1, mem_mib=192, options=()):
        if not initrd.find_program("dpdk-testpmd"):
            raise Missing("no dpdk-testpmd (package dpdk)")
        mine = sorted(os.sched_getaffinity(0))
        console, worker = cores or (mine[0], mine[-1])
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="weft-dpdk."))
        argv = ["stdbuf", "-oL", "dpdk-testpmd", "--lcores", f"0@{console},1@{worker}", "--no-huge", "-m", str(mem_mib),
                "--no-pci", "--no-shconf", "--no-telemetry"]
        for v in vdevs:
            argv += ["--vdev", v]
        argv += ["--", "-i", "--no-mlockall", "--total-num-mbufs=8192", f"--rxq={queues}",
                 f"--txq={queues}", "--nb-cores=1", "--no-flush-rx", *options]
        self.proc = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=_die_with_parent,
            env=dict(os.environ, XDG_RUNTIME_DIR=str(self.work), PATH=initrd.PATHS))
        self.log = b""
        atexit.register(self.kill)
        self._until_prompt(30)

    @classmethod
    def driver(cls, sockets, vdevs=(), **kw):
        """virtio-user on the sockets, each "PATH[,key=value...]"; `vdevs` are further devices."""
        queues = kw.get("queues", 1)
        return cls(list(vdevs) + [f"net_virtio_user{i},path={s.partition(',')[0]},queues={queues}"
                    + (s[s.index(","):] if "," in s else "") for i, s in enumerate(sockets)], **kw)

    @classmethod
    def device(cls, sockets, **kw):
        """vhost on the sockets."""
        queues = kw.get("queues", 1)
        return cls([f"net_vhost{i},iface={s.partition(',')[0]},queues={queues}"
                    + (s[s.index(","):] if "," in s else "") for i, s in enumerate(sockets)], **kw)

    def _until_prompt(self, timeout):
        end, out = time.monotonic() + timeout, b""
        while not out.endswith(PROMPT):
            left = end - time.monotonic()
            if left <= 0 or self.proc.poll() is not None and not select.select([self.proc.stdout], [], [], 0)[0]:
                raise GuestError("testpmd: no prompt; it said:\n" + (self.log + out)[-1500:].decode(errors="replace"))
            if select.select([self.proc.stdout], [], [], left)[0]:
                data = os.read(self.proc.stdout.fileno(), 65536)
                if not data:
                    raise GuestError("testpmd ended; it said:\n" + (self.log + out)[-1500:].decode(errors="replace"))
                out += data
        self.log += out
        return out.decode(errors="replace")

    def ask(self, line, timeout=10):
        """Type a line, return what it answered."""
        while select.select([self.proc.stdout], [], [], 0)[0]:      # events since the last prompt
            data = os.read(self.proc.stdout.fileno(), 65536)
            if not data:
                break
            self.log += data
        self.proc.stdin.write(line.encode() + b"\n")
        self.proc.stdin.flush()
        return self._until_prompt(timeout)

    def stats(self, port=0):
        """{"RX-packets": ..., "TX-packets": ..., ...} of one port."""
        for _ in range(5):      # an event may have answered in its place
            out = self.ask(f"show port stats {port}")
            found = {k: int(v) for k, v in re.findall(r"([A-Z][\w-]+): +(\d+)", out)}
            if "RX-packets" in found:
                return found
        raise GuestError(f"testpmd shows no counters of port {port}: {out}")

    def quit(self):
        if self.proc.poll() is None:
            try:
                self.proc.stdin.write(b"stop\nquit\n")
                self.proc.stdin.flush()
                self.proc.communicate(timeout=10)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def kill(self):
        if self.proc.poll() is None:
            try:
                os.killpg(self.proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.proc.wait()
        for pipe in (self.proc.stdin, self.proc.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        shutil.rmtree(self.work, ignore_errors=True)
