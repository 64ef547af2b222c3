"""Headless Chromium over the DevTools protocol, through pipes: enough to open a page, act on it, and see what went wrong."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import PATIENCE_S

EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
)
_LOUD = frozenset({"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"})


_KEY_CODES = {
    "Enter": 13, "Tab": 9, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35,
    "PageUp": 33, "PageDown": 34, "Escape": 27,
}  # fmt: skip


class Browser:
    """A browser with one tab; what the tab complained about and asked for is kept in `complaints` and `requests`."""

    def __init__(self):
        self.complaints = []
        self.requests = []
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = None
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        # The protocol's pipes are descriptors 3 and 4 of the browser; its own output goes nowhere.
        command = ["sh", "-c", 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1', EXECUTABLE, *_OPTIONS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile.name}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Return the answer to a command; events that come before it are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._keep(answer)

    def open(self, path, fragment="", *, width=1400, height=1000, scheme="light"):
        """Open a file, wait until it is loaded and its chart (if any) is drawn."""
        self.complaints.clear()
        self.requests.clear()
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=Path(path).resolve().as_uri() + fragment)
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, expression):
        """Return the value of an expression in the page; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=120):
        """Wait until an expression in the page holds."""
        end = time.monotonic() + seconds
        while not self.run(expression):
            assert time.monotonic() < end, f"{expression} did not come true in {seconds} s"
            time.sleep(0.02)

    @contextmanager
    def within_frame(self):
        """Act within the sandboxed frame of the page, which is a target of its own."""
        end, outer = time.monotonic() + 20, self._session
        while not (frames := [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "iframe"]):
            assert time.monotonic() < end, "there is no sandboxed frame"
        self._session = self.call("Target.attachToTarget", targetId=frames[0]["targetId"], flatten=True)["sessionId"]
        try:
            yield
        finally:
            self._session = outer

    def press(self, key):
        """Press and release a key."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            code = _KEY_CODES[key]
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)

    def screenshot(self, path, *, whole=False):
        """Save what is in view, or the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        """End the browser."""
        try:
            self._session = None
            self.call("Browser.close")
        finally:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait(timeout=PATIENCE_S)
            self._profile.cleanup()

    def _read(self):
        while b"\0" not in self._buffer:
            part = self._process.stdout.read1(1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _keep(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method in _LOUD:
            self.complaints.append(parameters)
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
