# SPDX-License-Identifier: BSD-2-Clause
"""guest - boot a real Linux guest on vhost-user sockets once, then run many commands in it.

    a = UmlGuest("a", [Nic("/run/x/a.sock", ip="10.0.0.1/24")])
    a.boot()                      # starts; returns at once
    a.ready()                     # until its control line answers and its cards are set up
    a.run("ping -c 1 10.0.0.2")   # -> Result(out, status); raises GuestError unless status is 0
    a.kill(); a.stop()

User-Mode Linux (about 3 s, no root, no KVM; its memory is a file on /dev/shm) and QEMU with its
software processor (about 8 s). Commands travel over a serial line of their own (initrd.py has the
other end), so kernel messages never mix with their output. One thread per guest at a time.
"""
import atexit
import ctypes
import dataclasses
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

import initrd

COMMAND_MAX = 3500      # bytes; a tty buffers 4095


class GuestError(Exception):
    pass


class Missing(Exception):
    """A package or a right is missing: the test is skipped and says so."""


@dataclasses.dataclass
class Result:
    out: str
    status: int


@dataclasses.dataclass
class Nic:
    """One card: the back-end's socket and how to set the card up in the guest."""
    socket: str
    ip: str = ""                # ADDR/LEN[+ADDR/LEN...]
    mtu: int = 0
    mac: str = ""               # set in the guest (UML) or by the front-end (QEMU)
    off: str = ""               # ethtool -K words, "tso gro"
    device: str = ""            # QEMU: more properties of the device, "packed=on,mrg_rxbuf=off"
    chardev: str = ""           # QEMU: "reconnect=1", "server=on,wait=off"

    def setup(self, name):
        lines = [f"n={name}"]
        if self.mac:
            lines.append(f"ip link set $n address {self.mac}")
        if self.mtu:
            lines.append(f"ip link set $n mtu {self.mtu}")
        for word in self.off.split():
            lines.append(f"ethtool -K $n {word} off")
        lines.append("ip link set $n up")
        lines.append("for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do "
                     "case $(cat /sys/class/net/$n/operstate) in up|unknown) break ;; esac; "
                     "sleep 0.1; done")
        for a in self.ip.split("+") if self.ip else []:
            lines.append(f"ip addr add {a} dev $n" + (" nodad" if ":" in a else ""))
        return "\n".join(lines) + "\n"


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG


def _cache():
    """Where images are kept: of the whole run if tests/run says so, else of this process."""
    path = os.environ.get("WEFT_TEST_CACHE")
    if not path:
        path = tempfile.mkdtemp(prefix="weft-guest.")
        os.environ["WEFT_TEST_CACHE"] = path
        owner = os.getpid()
        atexit.register(lambda: os.getpid() == owner and shutil.rmtree(path, ignore_errors=True))
    return pathlib.Path(path)


class Guest:
    kind = ""
    boots_in = 60       # seconds until the control line must answer, on a busy machine
    control_line = "ttyS0"
    modules = ("virtio_net", "af_packet", "ipv6", "tun", "8021q")
    extra = ()

    def __init__(self, name, nics=(), mem_mib=160, extra=()):
        self.name, self.nics, self.mem_mib = name, list(nics), mem_mib
        self.extra = tuple(extra)
        self.proc = None
        self.serial = 0
        self.pending = None
        self.buffer = b""
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"weft-{self.kind}-{name}."))
        self.log = self.work / "kernel.log"
        atexit.register(self.stop)

    # -- life --

    def image(self):
        tag = "".join("-" + os.path.basename(p) for p in self.extra)
        path = _cache() / f"{self.kind}{tag}.initrd"
        if not path.exists():
            initrd.build(str(path), self.module_folder(), self.modules, self.control_line, self.extra)
        return str(path)

    def boot(self):
        """Start the virtual machine; ready() waits for it."""
        with open(self.log, "ab") as log:
            in_r, self.to = os.pipe()
            self.fr, out_w = os.pipe()
            self.proc = self.spawn(in_r, out_w, log)
            os.close(in_r)
            os.close(out_w)
        self.buffer = b""
        self.pending = None
        return self

    def popen(self, argv, **kw):
        return subprocess.Popen(argv, start_new_session=True, preexec_fn=_die_with_parent, **kw)

    def ready(self, timeout=None):
        end = time.monotonic() + (timeout or self.boots_in)
        while self.line(end) != b"@@ready":
            pass
        self.setup()
        return self

    def setup(self):
        for i, nic in enumerate(self.nics):
            self.run(nic.setup(f"eth{i}"))

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def kill(self):
        """Dead at once, at whatever byte it is."""
        if self.proc:
            try:
                os.killpg(self.proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.proc.wait()
            for fd in (self.to, self.fr):
                os.close(fd)
            self.proc = None

    def off(self, timeout=10):
        """Power off in order; what does not end by itself is killed."""
        if self.alive():
            try:
                os.write(self.to, b"off\n")
                self.proc.wait(timeout)
            except (subprocess.TimeoutExpired, BrokenPipeError):
                pass
        self.kill()

    def reboot(self):
        """Restart the guest's kernel; ready() waits for it again."""
        os.write(self.to, b"reboot\n")

    def stop(self):
        if os.path.isdir(self.work):
            self.kill()
            shutil.rmtree(self.work, ignore_errors=True)

    # -- commands --

    def fail(self, what):
        tail = b"\n".join(self.log.read_bytes().splitlines()[-15:]).decode(errors="replace")
        raise GuestError(f"guest {self.name} ({self.kind}): {what}; end of its kernel log:\n{tail}")

    def line(self, end):
        """The next line of the control line, without its newline."""
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0:
                self.fail("no answer in time" if self.alive() else "it is gone")
            if select.select([self.fr], [], [], left)[0]:
                data = os.read(self.fr, 65536)
                if not data:
                    self.fail(f"it ended (status {self.proc.wait()})")
                self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def start(self, script, timeout=60):
        """Begin a command; finish() brings its result."""
        assert self.pending is None, "one command at a time"
        data = script.encode()
        assert len(data) <= COMMAND_MAX, "script too long"
        self.serial += 1
        self.pending = (self.serial, time.monotonic() + timeout + 10, script)
        os.write(self.to, b"run %d %d %d\n%s" % (self.serial, len(data), timeout, data))

    def finish(self, check=True):
        serial, end, script = self.pending
        begun, out = False, []
        while True:
            line = self.line(end)
            if line == b"@@begin %d" % serial:
                begun = True
            elif line.startswith(b"@@exit %d " % serial):
                break
            elif begun:
                out.append(line)
        self.pending = None
        # the newline in front of @@exit is ours
        if out and out[-1] == b"":
            out.pop()
        result = Result(b"\n".join(out).decode(errors="replace"), int(line.split()[2]))
        if check and result.status != 0:
            raise GuestError(f"guest {self.name}: status {result.status} of: {script.strip()}\n"
                             f"{result.out[-2000:]}")
        return result

    def run(self, script, timeout=60, check=True):
        self.start(script, timeout)
        return self.finish(check)

    def background(self, script):
        """Start something that goes on; its output is in the guest's /tmp/background."""
        self.run(f"{{ {script}\n}} >/tmp/background 2>&1 </dev/null &")


class UmlGuest(Guest):
    kind = "uml"

    def __init__(self, *args, **kw):
        for program in ("linux.uml", "busybox"):
            if not initrd.find_program(program):
                raise Missing(f"no {program} (package user-mode-linux, busybox-static)")
        if not os.access("/dev/shm", os.W_OK):
            raise Missing("no /dev/shm to write to, where the memory of UML guests is kept")
        super().__init__(*args, **kw)

    def module_folder(self):
        folders = sorted(pathlib.Path("/usr/lib/uml/modules").glob("*/modules.dep"))
        if not folders:
            raise Missing("no UML modules (package user-mode-linux)")
        return folders[-1].parent

    def spawn(self, in_fd, out_fd, log):
        (self.work / "uml").mkdir(exist_ok=True)
        devices = [f"virtio_uml.device={n.socket}:1:{i}" for i, n in enumerate(self.nics, 1)]
        # Without address randomisation the memory layout is the same on each run; UML's memory is
        # an unlinked file in TMPDIR, which must be a tmpfs that allows executable mappings.
        argv = ["setarch", "-R"] if self.can_fix_layout() else []
        argv += ["linux.uml", f"mem={self.mem_mib}M", f"initrd={self.image()}",
                 f"uml_dir={self.work}/uml", "umid=guest", *devices,
                 "con=null", "con0=null,fd:1", "ssl=null", f"ssl0=fd:{in_fd},fd:{out_fd}", "panic=1"]
        env = dict(os.environ, TMPDIR=os.environ.get("UML_TMPDIR", "/dev/shm"), HOME=str(self.work),
                   PATH=initrd.PATHS)
        return self.popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                          pass_fds=(in_fd, out_fd))

    @staticmethod
    def can_fix_layout():
        return subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0


class QemuGuest(Guest):
    kind = "qemu"
    boots_in = 120
    control_line = "ttyS1"
    modules = ("virtio_pci",) + Guest.modules

    def __init__(self, *args, **kw):
        for program in ("qemu-system-x86_64", "busybox"):
            if not initrd.find_program(program):
                raise Missing(f"no {program} (package qemu-system-x86, busybox-static)")
        kw.setdefault("mem_mib", 256)
        super().__init__(*args, **kw)

    def kernel(self):
        def version(p):
            return [int(w) if w.isdigit() else 0 for w in p.name.replace("-", ".").split(".")]
        found = sorted(pathlib.Path("/boot").glob("vmlinuz-*-amd64"), key=version)
        found = [p for p in found if os.access(p, os.R_OK)]
        if not found:
            raise Missing("no readable kernel in /boot (package linux-image-amd64)")
        return found[-1]

    def module_folder(self):
        return pathlib.Path("/lib/modules") / self.kernel().name.removeprefix("vmlinuz-")

    def arguments(self):
        """-chardev, -netdev and -device of every card."""
        out = []
        for i, nic in enumerate(self.nics):
            mac = nic.mac or f"52:54:00:{os.getpid() >> 8 & 255:02x}:{os.getpid() & 255:02x}:" \
                             f"{(ord(self.name[0]) + i) & 255:02x}"
            chardev = f"socket,id=chr{i},path={nic.socket}" + ("," + nic.chardev if nic.chardev else "")
            # Without KVM, QEMU 7.2 crashes when a vhost-user card starts with MSI-X.
            device = f"virtio-net-pci,netdev=net{i},mac={mac},romfile=,vectors=0"
            out += ["-chardev", chardev, "-netdev", f"vhost-user,id=net{i},chardev=chr{i}",
                    "-device", device + ("," + nic.device if nic.device else "")]
        return out

    def spawn(self, in_fd, out_fd, log):
        argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
                "-machine", "q35,memory-backend=ram", "-accel", "tcg,thread=multi,tb-size=128",
                "-cpu", "max", "-smp", "1", "-m", str(self.mem_mib),
                "-object", f"memory-backend-memfd,id=ram,size={self.mem_mib}M,share=on",
                "-kernel", str(self.kernel()), "-initrd", self.image(),
                "-append", "console=ttyS0 panic=-1 mitigations=off nokaslr tsc=reliable quiet loglevel=4",
                "-serial", f"file:{self.log}",
                "-chardev", "stdio,id=control,signal=off", "-serial", "chardev:control",
                *self.arguments()]
        return self.popen(argv, stdin=in_fd, stdout=out_fd, stderr=log,
                          env=dict(os.environ, PATH=initrd.PATHS))
