# SPDX-License-Identifier: Apache-2.0
"""A browser that tests drive: Debian's chromium through its chromedriver, by the W3C WebDriver protocol.

https://www.w3.org/TR/webdriver2/ has the commands. chromedriver and every process of the browser are in one process
group, which ends with the driver.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id in the protocol
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Shift": "\ue008", "Left": "\ue012", "Up": "\ue013",
        "Right": "\ue014", "Down": "\ue015", "Control": "\ue009", "Backspace": "\ue003"}
MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


class WebDriverError(Exception):
    """The browser refused a command, or did not show what was waited for."""


class WebDriver:
    """One browser with a profile of its own. Use it as a context manager, or call `quit`."""

    def __init__(self, width=1280, height=800, dark=False):
        self._width, self._height, self._dark = width, height, dark
        self._dir = tempfile.TemporaryDirectory(prefix="nt-browser-")
        environment = {**os.environ, "HOME": self._dir.name, "TMPDIR": self._dir.name}
        # A file, since nobody would read a pipe once the port is known.
        with open(f"{self._dir.name}/driver.log", "wb") as log:
            # pylint: disable-next=consider-using-with
            self._process = subprocess.Popen(["chromedriver", "--port=0"], stdout=log, stderr=subprocess.STDOUT,
                                             env=environment, start_new_session=True)
        try:
            self._root = f"http://127.0.0.1:{self._find_port()}"
            arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
                         "--hide-scrollbars", "--no-first-run", f"--user-data-dir={self._dir.name}/profile"]
            options = {"binary": shutil.which("chromium"), "args": arguments}
            reply = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
            self._root += "/session/" + reply["sessionId"]
            self._call("POST", "/timeouts", {"script": 20000, "pageLoad": 30000})
            self.resize(width, height)
            self.set_dark(dark)
        except BaseException:
            self.quit()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.quit()

    def quit(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):  # a dying browser may still write into its profile
            self._dir.cleanup()

    def _find_port(self):
        deadline = time.monotonic() + 60
        while True:
            is_running = self._process.poll() is None
            with open(f"{self._dir.name}/driver.log", encoding="utf-8", errors="replace") as log:
                text = log.read()
            match = re.search(r"started successfully on port (\d+)\.", text)
            if match:
                return int(match[1])
            if not is_running or time.monotonic() > deadline:
                raise WebDriverError(f"chromedriver {'does not listen' if is_running else 'ended'}: {text}")
            time.sleep(0.02)  # tidy: poll

    def _call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                value = json.load(error)["value"]
            raise WebDriverError(f"{path}: {value['error']}: {value['message'].splitlines()[0]}") from None

    # -- the window ----------------------------------------------------------------------------------------------

    def devtools(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, scale=1):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def set_dark(self, dark):
        """Sets what the operating system of the person prefers."""
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def forget(self, origin):
        """Leaves the page and removes what it kept: cookies, stored values, messages of the console, and the look of the
        window."""
        self.open("about:blank")
        self._call("DELETE", "/actions")
        self.devtools("Network.clearBrowserCookies")
        self.devtools("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        self.resize(self._width, self._height)
        self.set_dark(self._dark)
        self.console_errors()

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    @property
    def url(self):
        return self._call("GET", "/url")

    @property
    def title(self):
        return self._call("GET", "/title")

    def screenshot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def console_errors(self):
        """Returns the errors that the page logged since the last call, without the answer that no watch is on: the browser
        logs every status above 400."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries
                if entry["level"] == "SEVERE" and not re.search(r"/api/v1/why - .* status of 409", entry["message"])]

    # -- the page ------------------------------------------------------------------------------------------------

    def run(self, script, *arguments):
        """Runs the body of a function in the page and returns its result. A promise is awaited."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script, *arguments, seconds=60.0):
        """Polls a script until it returns something true and returns that."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > deadline:
                shown = self.run("return document.body.innerText.slice(0, 1500)")
                raise WebDriverError(f"waited {seconds:.0f} s in vain for `{script}` {arguments}; the page shows:\n{shown}")
            time.sleep(0.05)  # tidy: poll

    def find(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._call("POST", f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self._call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    # -- keyboard and mouse --------------------------------------------------------------------------------------

    def _perform(self, source):
        self._call("POST", "/actions", {"actions": [source]})

    def press(self, *keys):
        """Presses keys one after the other, at what has the focus: characters, or names of KEYS."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._perform({"type": "key", "id": "keyboard", "actions": actions})

    def _point(self, *actions):
        self._perform({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(actions)})

    def move_to(self, x, y):
        """Moves the mouse to a place of the window, in CSS pixels."""
        self._point({"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0})

    def click_at(self, x, y):
        self.move_to(x, y)
        self._point({"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def click_with(self, key, x, y):
        """Clicks while a key of KEYS is held."""
        self._perform({"type": "key", "id": "keyboard", "actions": [{"type": "keyDown", "value": KEYS[key]}]})
        self.click_at(x, y)
        self._perform({"type": "key", "id": "keyboard", "actions": [{"type": "keyUp", "value": KEYS[key]}]})

    def drag(self, from_x, from_y, to_x, to_y):
        self.move_to(from_x, from_y)
        self._point({"type": "pointerDown", "button": 0},
                    {"type": "pointerMove", "x": round((from_x + to_x) / 2), "y": round((from_y + to_y) / 2), "duration": 40},
                    {"type": "pointerMove", "x": round(to_x), "y": round(to_y), "duration": 40},
                    {"type": "pointerUp", "button": 0})
