# SPDX-License-Identifier: BSD-2-Clause
"""peers - what a host of ours meets: the addresses of a tap and its two ends, the settings to go through, and
programs of the kernel's world on its other side: nginx, sshd, iperf3, and examples/relay, which puts a host of
ours between two of them.

    with Nginx(work) as web, Relay(via, "ip=10.99.0.2/24", "stack::80", f"host:127.0.0.1:{web.port}") as r:
        curl("http://10.99.0.2/...")
"""
import contextlib
import hashlib
import json
import os
import pathlib
import pwd
import select
import shutil
import signal
import struct
import subprocess
import threading

import t as frame
from guest import Missing, _die_with_parent
from t import check, equal, until
from weft import program

KERNEL = {4: "10.99.0.254", 6: "fd99::fe"}
OURS = {4: "10.99.0.2", 6: "fd99::2"}
TO_KERNEL, FROM_KERNEL = "guest_csum+guest_tso4+guest_tso6", "csum+host_tso4+host_tso6"
OFFLOADS = {"all": "", "none": f"{TO_KERNEL}+{FROM_KERNEL}", "only from the kernel": TO_KERNEL,
            "only to the kernel": FROM_KERNEL}
MTUS = (576, 1280, 1500, 9000, 65520)
MIB = 1 << 20
PATTERN = 65521         # src/app/bench_flow.h


def tap_words(mtu, off, more=""):
    ip = f"{KERNEL[4]}/24" + (f"+{KERNEL[6]}/64" if mtu >= 1280 else "")
    return f"tap:ts0,mtu={mtu},ip={ip}" + (f",off={off}" if off else "") + more


def matrix(full):
    """Every MTU with every setting of offloads, or so that each pair with a version of IP comes."""
    for i, mtu in enumerate(MTUS):
        for j, name in enumerate(OFFLOADS):
            for version in (4, 6) if mtu >= 1280 else (4,):
                if full or (i + j + version // 2) % 2 == 0:
                    yield mtu, name, version


def pattern(size):
    """The bytes that both sides know: xoshiro256**, seed 1."""
    mask, x, s, out = (1 << 64) - 1, 1, [], b""
    for _ in range(4):
        x = (x + 0x9e3779b97f4a7c15) & mask
        z = x
        z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & mask
        z = ((z ^ z >> 27) * 0x94d049bb133111eb) & mask
        s.append(z ^ z >> 31)

    def left(v, k):
        return (v << k | v >> 64 - k) & mask
    words = []
    for _ in range(PATTERN // 8 + 1):
        words.append(left(s[1] * 5 & mask, 7) * 9 & mask)
        b = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= b
        s[3] = left(s[3], 45)
    out = struct.pack(f"<{len(words)}Q", *words)[:PATTERN]
    return (out * (size // PATTERN + 1))[:size]


def need(*programs):
    """Packages of tools/packages that may be missing: (program, package)."""
    for name, package in programs:
        if not tool(name):
            raise Missing(f"no {name} (package {package})")


def tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def url_host(address):
    return f"[{address}]" if ":" in address else address


def listening(port, where="0A"):
    """Does anybody in this namespace listen on the TCP port?"""
    want = f":{port:04X} "
    return any(want in line.split(None, 1)[1][:46] and f" {where} " in line
               for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:])


class Program:
    """A program in the background that ends with its block."""

    def __init__(self, argv, log, ready=None, timeout=10, **kw):
        self.argv, self.log = argv, pathlib.Path(log)
        with open(self.log, "ab") as f:
            self.p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=kw.pop("stdout", f), stderr=f,
                                      preexec_fn=_die_with_parent, **kw)
        if ready:
            try:
                until(lambda: self.p.poll() is not None or ready(), f"{argv[0]} is not ready", timeout)
                check(self.p.poll() is None, f"{argv[0]} ended: {self.said()}")
            except BaseException:
                self.end()
                raise

    def said(self):
        return self.log.read_text(errors="replace")[-800:].strip()

    def end(self):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.p.wait(3)
            self.p.kill()
        self.p.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Relay(Program):
    """examples/relay: a host of ours with programs of the kernel's world behind it. Ready when it has `address`."""

    def __init__(self, work, via, options, *forwards, address=None, rundir=None):
        binary = pathlib.Path(program()).resolve().parents[2] / "examples/relay"
        check(binary.exists(), f"no {binary}; run make")
        self.lines, self.news = [], threading.Condition()
        super().__init__([str(binary), via, options, *forwards], work / "relay.log", stdout=subprocess.PIPE,
                         env=dict(os.environ, **({"XDG_RUNTIME_DIR": str(rundir)} if rundir else {})))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.wait("ready")
        if address:
            self.wait(f"address {address}")

    def read(self):
        for line in self.p.stdout:
            with self.news:
                self.lines.append(line.decode().strip())
                self.news.notify_all()

    def wait(self, start, timeout=10):
        """The first line that begins so."""
        with self.news:
            got = self.news.wait_for(lambda: [x for x in self.lines if x.startswith(start)] or self.p.poll() is not None,
                                     timeout)
            check(isinstance(got, list) and got, f"relay never said {start!r} but {self.lines}: {self.said()}")
            return got[0]

    def end(self):
        super().end()
        self.p.stdout.close()


def me():
    return pwd.getpwuid(os.getuid()).pw_name


class Nginx(Program):
    """Serves files of known sizes at :8000: /16 is 16 MiB of random bytes, "/small" a few."""
    port = 8000

    def __init__(self, work, mib):
        need(("nginx", "nginx-light"))
        root = work / "web"
        root.mkdir()
        self.sums = {}
        for n in mib:
            self.sums[n] = random_file(root / str(n), n * MIB)
        (root / "small").write_text("a few bytes\n")
        conf = work / "nginx.conf"
        temp = "".join(f"{k}_temp_path {work}/tmp;" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf.write_text(f"""daemon off; pid {work}/nginx.pid; error_log stderr error; user {me()};
events {{ worker_connections 1000; }}
http {{ access_log off; keepalive_requests 1000000; sendfile on; {temp}
server {{ listen [::]:{self.port} ipv6only=off backlog=1024; root {root}; }} }}
""")
        super().__init__([tool("nginx"), "-p", str(work), "-e", "stderr", "-c", str(conf)], work / "nginx.log",
                         lambda: listening(self.port))


class Sshd(Program):
    """One user, one key, no PAM, at :2200."""
    port = 2200

    def __init__(self, work):
        need(("sshd", "openssh-server"), ("ssh", "openssh-client"))
        self.key = work / "key"
        for name in ("key", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(work / name)], check=True)
        conf = work / "sshd.conf"
        conf.write_text(f"""ListenAddress [::]:{self.port}
ListenAddress 0.0.0.0:{self.port}
HostKey {work}/host
AuthorizedKeysFile {work}/key.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
""")
        with contextlib.suppress(OSError):      # where it locks itself in; a service makes it at its start
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
        if not os.path.isdir("/run/sshd"):
            raise Missing("sshd needs /run/sshd, which only root can make")
        super().__init__([tool("sshd"), "-D", "-e", "-f", str(conf)], work / "sshd.log", lambda: listening(self.port))


class Iperf:
    """A server for each run: one that has done its part is busy for a while."""
    port = 5201

    def __init__(self, work):
        need(("iperf3", "iperf3"))
        self.log = work / "iperf.log"

    def run(self, host, port, mib, *options):
        """A run with a number of bytes. Its client goes when it has written them: the rest is under way still, in
        buffers of the relay, too, and the server no longer listens."""
        with Program(["iperf3", "-s", "-1"], self.log, lambda: listening(self.port)):
            out = json.loads(run(["iperf3", "-J", "-c", host, "-p", str(port), "-n", f"{mib}M", *options], 90))
        check("error" not in out, f"iperf3: {out.get('error')}")
        end = out["end"]
        check(end["sum_sent"]["bytes"] >= mib * MIB, f"iperf3: {end['sum_sent']['bytes']} bytes of {mib} MiB sent")
        check(end["sum_received"]["bytes"] > 0, "iperf3: nothing was received")
        return end

    def end(self):
        pass


# -- clients --

def random_file(path, size):
    """Random bytes, 16 MiB of them over and over, with a number before each; their SHA-256."""
    block, sha = os.urandom(min(size, 16 * MIB)), hashlib.sha256()
    with open(path, "wb") as f:
        for at in range(0, size, len(block)):
            part = at.to_bytes(8, "big") + block[8:]
            f.write(part)
            sha.update(part)
    return sha.hexdigest()


def run(argv, timeout, data=None):
    try:
        p = subprocess.run(argv, input=data, stdin=None if data is not None else subprocess.DEVNULL,
                           capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise frame.Failure(f"{' '.join(map(str, argv))}: not done after {timeout} s")
    check(p.returncode == 0, f"{' '.join(map(str, argv))}: status {p.returncode}: "
          f"{(p.stderr or p.stdout[-500:]).decode(errors='replace')[-500:].strip()}")
    return p.stdout


def curl_hash(host, port, name, timeout=60):
    """SHA-256 of what curl got."""
    need(("curl", "curl"))
    c = subprocess.Popen(["curl", "-sS", "--fail", "--noproxy", "*", "-m", str(timeout),
                          f"http://{url_host(host)}:{port}/{name}"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         preexec_fn=_die_with_parent)
    sha = hashlib.sha256()
    for part in iter(lambda: c.stdout.read1(MIB), b""):
        sha.update(part)
    errors = c.stderr.read().decode(errors="replace").strip()
    check(c.wait() == 0, f"curl: {errors}")
    return sha.hexdigest()


def ssh(key, host, port, command, data):
    return run(["ssh", "-F", "none", "-i", str(key), "-p", str(port), "-o", "BatchMode=yes",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                f"{me()}@{host}", command], 60, data)


def wrk(host, port, seconds, *options):
    """Requests that were answered; not one failed."""
    need(("wrk", "wrk"))
    out = run(["wrk", "-t", "1", "-c", "20", "-d", f"{seconds}s", *options,
               f"http://{url_host(host)}:{port}/small"], seconds + 30).decode()
    check("Socket errors" not in out and "Non-2xx" not in out, f"wrk: {out}")
    n = [int(line.split()[0]) for line in out.splitlines() if "requests in" in line]
    check(n and n[0] > 0, f"wrk: {out}")
    return n[0]
