# SPDX-License-Identifier: BSD-2-Clause
"""t - the frame of a whole-program test: tests/t_NAME.py.

    def two_guests(t):                      # a scene: build a world once, ask it many things
        with world() as w:
            with t.case("ping v4"):         # a case: ok, FAIL with its reason, or skip with its
                w.a.run("ping ...")

    if __name__ == "__main__":
        t.main(two_guests, ...)

A failed case does not end its scene; an exception outside a case fails the scene. Each line of
result is "ok NAME (1.2 s)", "FAIL NAME (1.2 s)" with indented detail, or "skip NAME: why", which
tests/run counts. A program runs inside a network namespace of its own (`netns=True`), made without
root where user namespaces are allowed, so that no interface or setting of the host is touched and
nothing stays behind. Arguments pick scenes by name; --full sets t.full.
"""
import atexit
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from guest import Missing       # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NETNS = "WEFT_TEST_NETNS"       # "yes", or why there is none


class Failure(Exception):
    pass


def check(truth, text):
    if not truth:
        raise Failure(text)


def equal(got, want, what):
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def until(probe, what, timeout=10.0, step=0.05):
    """Wait until probe() is true (its value is returned), or fail with `what`."""
    end = time.monotonic() + timeout
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {timeout:g} s: {what}")
        time.sleep(step)


def say(text):
    print(text, flush=True)


class T:
    def __init__(self, program, full=False):
        self.program, self.full = program, full
        self.failed = 0
        self.scene = ""
        self.seed = int(os.environ.get("SEED") or random.randrange(1 << 31))
        self.random = random.Random(self.seed)

    @contextlib.contextmanager
    def case(self, name):
        name = f"{self.program}/{self.scene}: {name}"
        begun = time.monotonic()
        try:
            yield
        except Missing as e:
            say(f"skip {name}: {e}")
        except Exception as e:
            self.failed += 1
            say(f"FAIL {name} ({time.monotonic() - begun:.1f} s)")
            where = traceback.extract_tb(e.__traceback__)[-1]
            text = str(e) if isinstance(e, (Failure,)) else f"{type(e).__name__}: {e}"
            for line in (text + f"\nat {os.path.basename(where.filename)}:{where.lineno}").splitlines():
                say("    " + line)
        else:
            say(f"ok {name} ({time.monotonic() - begun:.1f} s)")

    def run(self, scenes):
        for scene in scenes:
            self.scene = scene.__name__
            begun = time.monotonic()
            try:
                scene(self)
            except Missing as e:
                say(f"skip {self.program}/{self.scene}: {e}")
            except Exception:
                self.failed += 1
                say(f"FAIL {self.program}/{self.scene} ({time.monotonic() - begun:.1f} s)")
                for line in traceback.format_exc().splitlines()[-25:]:
                    say("    " + line)


def enter_netns():
    """Start this program again in a network namespace of its own; returns inside it."""
    if NETNS in os.environ:
        return
    how = [["unshare", "-n"]] if os.geteuid() == 0 else []
    how.append(["unshare", "-Urn"])
    why = ""
    for words in how:
        probe = subprocess.run(words + ["ip", "link", "set", "lo", "up"], capture_output=True, text=True)
        if probe.returncode == 0:
            os.environ[NETNS] = "yes"
            os.execvp(words[0], words + [sys.executable] + sys.argv)
        why = probe.stderr.strip().replace("\n", " ")
    os.environ[NETNS] = why or "unshare failed"


def have_netns():
    return os.environ.get(NETNS) == "yes"


def need_netns():
    if not have_netns():
        raise Missing(f"no network namespace of our own: {os.environ.get(NETNS)}")


def netns_setup():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # BBR without a pacing qdisc measures its own timers
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")
    for name in ("all", "default"):
        with contextlib.suppress(OSError):
            pathlib.Path(f"/proc/sys/net/ipv6/conf/{name}/accept_dad").write_text("0")
            pathlib.Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("0")


def end_in_order():
    """SIGTERM, SIGHUP and SIGINT run the clean-ups."""
    def out(signum, _):
        sys.exit(128 + signum)
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, out)


def workdir(prefix):
    """A folder that goes with the process; short enough for socket paths."""
    top = tempfile.gettempdir()
    path = tempfile.mkdtemp(prefix=prefix + ".", dir=top if len(top) <= 40 else "/tmp")
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(path, ignore_errors=True))
    return pathlib.Path(path)


def main(*scenes, netns=True):
    program = re.sub(r"^t_|\.py$", "", os.path.basename(sys.argv[0]))
    if netns:
        enter_netns()
        if have_netns():
            netns_setup()
    end_in_order()
    words = sys.argv[1:]
    t = T(program, full="--full" in words)
    names = [w for w in words if not w.startswith("-")]
    if "--list" in words:
        for s in scenes:
            print(s.__name__)
        return
    unknown = set(names) - {s.__name__ for s in scenes}
    if unknown:
        sys.exit(f"{program}: no scene {', '.join(sorted(unknown))}")
    t.run([s for s in scenes if not names or s.__name__ in names])
    sys.exit(1 if t.failed else 0)
