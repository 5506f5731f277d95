#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`make demo` itself, as whoever runs this and as an ordinary user: it shows all, and leaves nothing."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                               # noqa: E402
from guest import Missing                       # noqa: E402
from t import check, equal                      # noqa: E402
from t_cli import nobody                        # noqa: E402

SHOWN = ("a pings fd00::2: 3 of 3", "b pings 10.0.0.1: 3 of 3", "a -> b, TSO on", "b -> a, TSO off", "a -> host",
         "host -> a", "memcpy", "frames/GiB", "wake-ups, idle     0 in 3 s", "equal at both ends",
         "nothing is left behind", "weft run vhost-user:a", "$(weft args qemu a)")


def run_demo(prefix, uid, **more):
    """All its files go to a folder of its own, which must be empty after it."""
    folder = frame.workdir("wd")
    os.chown(folder, uid, -1)
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", frame.NETNS, "WEFT_TEST_CACHE")}
    env.update(DEMO_SECONDS="1", PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(folder), **more)
    p = subprocess.run(prefix + [str(frame.ROOT / "tests/demo")], capture_output=True, text=True, timeout=150,
                       env=env, stdin=subprocess.DEVNULL)
    equal(p.returncode, 0, f"status; it said\n{p.stdout[-3000:]}{p.stderr[-1000:]}")
    equal(p.stderr, "", "standard error")
    equal(list(folder.iterdir()), [], "files left behind")
    equal(subprocess.run(["ip", "link", "show", "host0"], capture_output=True).returncode, 1, "status of looking for host0")
    without = [line for line in p.stdout.splitlines() if " without " in line]
    if not without:
        for text in SHOWN:
            check(text in p.stdout, f"it does not show {text!r}:\n{p.stdout[-3000:]}")
    if without:
        raise Missing("; ".join(without))


def as_oneself(t):
    with t.case("the demo"):
        run_demo([], os.geteuid())


def as_nobody(t):
    prefix, uid = nobody()
    with t.case("the demo as an ordinary user"):
        run_demo(prefix, uid, HOME="/nonexistent")


if __name__ == "__main__":
    frame.main(as_oneself, as_nobody, netns=False)
