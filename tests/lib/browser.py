# SPDX-License-Identifier: BSD-2-Clause
"""browser - a page as a reader would see it: headless Chromium, spoken to by its DevTools protocol over two pipes.

    with Page(path, width=400, dark=True) as p:
        p.js("document.title")          # what an expression is, as JSON
        p.requests                      # every address it asked for
        p.shot("page.png")
"""
import base64
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

from guest import Missing


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise Missing("no chromium (package chromium)")


class Browser:
    def __init__(self):
        program = chromium()
        self.home = tempfile.mkdtemp(prefix="weft-browser.")
        to_it, self.to = os.pipe()
        self.back, from_it = os.pipe()

        def pipes():    # DevTools wants descriptors 3 and 4
            a, b = os.dup(to_it), os.dup(from_it)
            for fd in (a, b):
                if fd in (3, 4):
                    raise OSError("descriptor in the way")
            os.dup2(a, 3)
            os.dup2(b, 4)
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                   "--disable-extensions", "--disable-sync", "--no-default-browser-check", "--remote-debugging-pipe",
                   f"--user-data-dir={self.home}", "about:blank"]
        # descriptors above 4, so that nothing is overwritten on the way
        to_it, from_it = self._above(to_it), self._above(from_it)
        self.proc = subprocess.Popen([program, *options], preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                     env=dict(os.environ, HOME=self.home))
        os.close(to_it)
        os.close(from_it)
        self.n, self.text, self.events = 0, b"", []

    @staticmethod
    def _above(fd):
        import fcntl
        high = fcntl.fcntl(fd, fcntl.F_DUPFD, 20)
        os.close(fd)
        return high

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in (self.to, self.back):
            with contextlib.suppress(OSError):
                os.close(fd)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.wait()
        for _ in range(20):     # its helpers may still be writing
            shutil.rmtree(self.home, ignore_errors=True)
            if not pathlib.Path(self.home).exists():
                break
            time.sleep(0.05)

    def _message(self, until):
        while b"\0" not in self.text:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("chromium does not answer")
            got = os.read(self.back, 1 << 16)
            if not got:
                raise RuntimeError("chromium ended")
            self.text += got
        line, _, self.text = self.text.partition(b"\0")
        return json.loads(line)

    def ask(self, method, session=None, timeout=60, **params):
        self.n += 1
        m = {"id": self.n, "method": method, "params": params}
        if session:
            m["sessionId"] = session
        data = json.dumps(m).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + timeout
        while True:
            m = self._message(until)
            if m.get("id") == self.n:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']['message']}")
                return m["result"]
            self.events.append(m)

    def wait(self, method, timeout=60):
        until = time.monotonic() + timeout
        while True:
            for m in self.events:
                if m.get("method") == method:
                    self.events.remove(m)
                    return m["params"]
            self.events.append(self._message(until))

    def page(self, path, width=1200, height=900, dark=False, media="screen"):
        return Page(self, path, width, height, dark, media)


class Page:
    def __init__(self, browser, path, width, height, dark, media):
        self.b = browser
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")
        self.look(width, height, dark, media)
        browser.events.clear()
        self.url = pathlib.Path(path).resolve().as_uri()
        self.ask("Page.navigate", url=self.url)
        browser.wait("Page.loadEventFired")

    def ask(self, method, **params):
        return self.b.ask(method, self.session, **params)

    def look(self, width, height=900, dark=False, media="screen"):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def js(self, expression):
        r = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return r["result"].get("value")

    @property
    def requests(self):
        self.js("0")
        return [m["params"]["request"]["url"] for m in self.b.events if m.get("method") == "Network.requestWillBeSent"]

    @property
    def complaints(self):
        self.js("0")
        return [m["params"]["entry"]["text"] for m in self.b.events if m.get("method") == "Log.entryAdded"]

    def shot(self, path, full=True):
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=full)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
