# SPDX-License-Identifier: Apache-2.0
"""The page of `neurontrace view` over the fleet of the demo, in a real browser, and what a person sees there."""

import http.cookiejar
import json
import os
import re
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import demo
import suite
from fleet import Fleet, wait_until
from web_driver import MISSING, WebDriver

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build" / "web"
HOSTILE_NAME = '<img src=x onerror="document.title=1"> \u202egnp.exe & <b>bold</b>'
HOSTILE_SHOWN = '<img src=x onerror="document.title=1"> \\u202egnp.exe & <b>bold</b>'  # a hidden character is written out
UNITS_NS = {"ns": 1, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}

# Runs in each new document before the page: counts the frames, requests and short timers that it waits for. There always
# is a longer timer, of what asks again.
COUNT_WAITING = """const waiting = new Set();
const count = (begin, end, isCounted) => {
  const set = window[begin].bind(window), clear = window[end].bind(window), keys = new Map();
  const forget = id => { waiting.delete(keys.get(id)); keys.delete(id); };
  window[begin] = (action, ms) => {
    const id = set((...given) => { forget(id); action(...given); }, ms);
    if (isCounted(ms)) waiting.add(keys.set(id, {}).get(id));
    return id;
  };
  window[end] = id => { forget(id); clear(id); };
};
count('setTimeout', 'clearTimeout', (ms = 0) => ms < 1000);
count('requestAnimationFrame', 'cancelAnimationFrame', () => true);
const request = window.fetch.bind(window);
window.fetch = (...given) => {
  const answer = request(...given), forget = () => waiting.delete(answer);
  waiting.add(answer);
  answer.then(forget, forget);
  return answer;
};
window.isWaiting = () => waiting.size > 0;"""

# Answered and drawn, and the address has caught up with the view: at once if the page waits for nothing, else it follows
# within less than 600 ms. What is shown of a window is complete although the status says that spans of long before it are cut.
SETTLED = """const seen = window.lastAddress ??= {href: '', since: 0}, now = performance.now();
const status = document.querySelector('.load-status:not(.error)');
const isShown = document.querySelector('.tree-line:not([hidden])') !== null && status !== null &&
  (status.hidden || status.querySelector('details p')?.textContent.startsWith('Spans that began')) &&
  new URLSearchParams(location.search).has('from');
if (!isShown || seen.href !== location.href) Object.assign(seen, {href: location.href, since: now, rest: now});
if (window.isWaiting()) seen.rest = now;
return isShown && (now - seen.since > 600 || now - seen.rest > 100);"""

LINES = """return [...document.querySelectorAll('.tree-line:not([hidden])')].map(line => {
  const box = line.getBoundingClientRect();
  return {label: line.querySelector('.tree-label').textContent, meta: line.querySelector('.tree-meta').textContent,
          kind: ['group', 'rank', 'section', 'row'].find(name => line.classList.contains(name)),
          level: Number(line.getAttribute('aria-level')), top: box.top, height: box.height};
}).sort((a, b) => a.top - b.top);"""

# How many pixels of a stretch of the canvas have another colour than a lane that is empty or not loaded, and how many
# colours there are.
PIXELS = """const [x, y, width, height] = arguments, canvas = document.querySelector('canvas.spans');
const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
// A worker may own the canvas, which then can only be copied.
const copy = document.createElement('canvas');
copy.width = Math.max(1, Math.round(width * scale));
copy.height = Math.max(1, Math.round(height * scale));
copy.getContext('2d').drawImage(canvas, -Math.round((x - box.left) * scale), -Math.round((y - box.top) * scale));
const data = copy.getContext('2d').getImageData(0, 0, copy.width, copy.height).data;
const probe = document.createElement('canvas').getContext('2d');
const lanes = ['--lane', '--lane-band', '--lane-header', '--lane-line', '--lane-grid', '--lane-unknown'].map(name => {
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data.slice(0, 3).join();
});
const seen = new Set();
let drawn = 0;
for (let i = 0; i < data.length; i += 4) {
  const colour = data.slice(i, i + 3).join();
  if (lanes.includes(colour)) continue;
  seen.add(colour);
  ++drawn;
}
return {drawn, pixels: data.length / 4, colours: seen.size};"""

# How many pixels of a stretch of what lies over the spans have a colour of the style sheet.
OVERLAY_PIXELS = """const [name, x, y, width, height] = arguments, canvas = document.querySelector('canvas.over');
const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
const data = canvas.getContext('2d').getImageData(Math.round((x - box.left) * scale), Math.round((y - box.top) * scale),
                                                  Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))).data;
const probe = document.createElement('canvas').getContext('2d');
probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
probe.fillRect(0, 0, 1, 1);
const wanted = probe.getImageData(0, 0, 1, 1).data.join();
let drawn = 0;
for (let i = 0; i < data.length; i += 4) drawn += data.slice(i, i + 4).join() === wanted;
return drawn;"""


def shown_ns(text):
    """Parses a length as the page writes it, such as "1.523 ms"."""
    match = re.fullmatch(r"(-?[\d.,]+)\s*(ns|µs|ms|s|min)", text.strip())
    if match is None:
        raise AssertionError(f"'{text}' is no length of time")
    return float(match[1].replace(",", "")) * UNITS_NS[match[2]]


# Every pixel of the spans' canvas, whoever draws it, as a PNG.
PICTURE = """const canvas = document.querySelector('canvas.spans'), copy = document.createElement('canvas');
copy.width = canvas.width;
copy.height = canvas.height;
copy.getContext('2d').drawImage(canvas, 0, 0);
return copy.toDataURL();"""


class Api:
    """The page's API as a client without a browser uses it, after it opened the address with the token."""

    def __init__(self, address):
        self.origin = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(address))
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self._opener.open(address, timeout=20).close()

    def get(self, path, **query):
        text = urllib.parse.urlencode(query)
        with self._opener.open(f"{self.origin}/api/v1{path}{'?' + text if text else ''}", timeout=60) as answer:
            return json.load(answer)

    def send(self, method, path, body):
        """A request that changes something; returns the answer's JSON."""
        request = urllib.request.Request(f"{self.origin}/api/v1{path}", method=method, data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with self._opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def read(self, path):
        """The bytes of a file."""
        with self._opener.open(f"{self.origin}/api/v1{path}", timeout=60) as answer:
            return answer.read()


@suite.needs_of_setup(MISSING, f"{' and '.join(MISSING)} not found")
class PageCase(unittest.TestCase):
    """One fleet, one capture, one page and one browser for all tests of a class. Each test begins with a browser that
    remembers nothing, and the test after one that failed with a new one."""

    maxDiff = 4000
    duration = "2s"

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(os.environ["NT_BUILD_DIR"])
        cls.addClassCleanup(cls.fleet.shut_down)
        cls.start_fleet()
        cls.capture_id = cls.capture("demo", cls.duration)
        cls.address = cls.fleet.start_page()[1]
        cls.api = Api(cls.address)
        cls.shared_browser = None
        cls.addClassCleanup(cls.quit_browser)

    @classmethod
    def quit_browser(cls):
        if cls.shared_browser:
            cls.shared_browser.quit()
        cls.shared_browser = None

    @classmethod
    def start_fleet(cls):
        demo.start_fleet(cls.fleet)

    @classmethod
    def capture(cls, name, duration, *options):
        cls.fleet.cli("capture", "--duration", duration, "--name", name, *options, codes=(0, 3))
        return cls.fleet.cli_json("captures")["captures"][-1]["capture_id"]

    def setUp(self):
        if not self.shared_browser:
            type(self).shared_browser = self._new_browser()
        self.browser = self.shared_browser
        self.addCleanup(self._forget)

    def _new_browser(self, **options):
        browser = WebDriver(**options)
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=COUNT_WAITING)
        return browser

    def start_browser(self, **options):
        """A further browser, of another person."""
        browser = self._new_browser(**options)
        self.addCleanup(browser.quit)
        self.addCleanup(self._keep_picture_of_failure, browser)
        return browser

    def _forget(self):
        try:
            if self._keep_picture_of_failure(self.browser):
                self.quit_browser()
            else:
                self.browser.forget(self.api.origin)
        except Exception:
            self.quit_browser()
            raise

    def _keep_picture_of_failure(self, browser):
        result = self._outcome.result  # as in tests/e2e/fleet_case.py
        has_failed = any(getattr(test, "test_case", test) is self for test, _ in result.errors + result.failures)
        if has_failed:
            path = PICTURES / f"failed-{self.id().split('.')[-1]}.png"
            browser.screenshot(path)
            print(f"--- {self.id()}: see {path}; console: {browser.console_errors()}", flush=True)
        return has_failed

    # -- going places --------------------------------------------------------------------------------------------

    def sign_in(self, browser=None):
        """Opens the address that was printed: the list of captures."""
        browser = browser or self.browser
        browser.open(self.address)
        browser.wait_for("return document.querySelector('tbody tr') !== null")

    def open_timeline(self, browser=None, capture_id=None, **query):
        browser = browser or self.browser
        if "127.0.0.1" not in browser.url:
            self.sign_in(browser)
        text = urllib.parse.urlencode(query)
        browser.open(f"{self.api.origin}/capture/{capture_id or self.capture_id}{'?' + text if text else ''}")
        self.settle(browser)

    def settle(self, browser=None):
        browser = browser or self.browser
        # From now on: what was settled before the last click or key says nothing.
        browser.run("window.lastAddress = undefined")
        browser.wait_for(SETTLED, seconds=60)

    def open_panel(self, name):
        self.browser.click(f"#tab-{name}")
        self.browser.wait_for("return document.querySelector('.dock-body .panel') !== null")

    # -- what is seen --------------------------------------------------------------------------------------------

    def text_of(self, selector, browser=None):
        return (browser or self.browser).run("const found = document.querySelector(arguments[0]); return found && found.innerText", selector)

    def table_of(self, selector):
        """The texts of a table's cells, row by row."""
        return self.browser.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
                                ".map(row => [...row.cells].map(cell => cell.innerText.trim()))", selector)

    def state_of_url(self, browser=None):
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit((browser or self.browser).url).query))

    def window(self, browser=None):
        """First and last nanosecond on the screen, from the address."""
        state = self.state_of_url(browser)
        return int(state["from"]), int(state["to"])

    def canvas(self):
        return self.browser.run("const box = document.querySelector('.canvas-box').getBoundingClientRect();"
                                "return {left: box.left, top: box.top, width: box.width, height: box.height}")

    def lines(self, browser=None):
        return (browser or self.browser).run(LINES)

    def line_of(self, beginning):
        found = [line for line in self.lines() if line["label"].startswith(beginning)]
        self.assertEqual(len(found), 1, f"{beginning}: {[line['label'] for line in self.lines()]}")
        return found[0]

    def x_of(self, ns):
        """Where a moment is on the screen, in CSS pixels."""
        begin, end = self.window()
        box = self.canvas()
        return box["left"] + (int(ns) - begin) / (end - begin) * box["width"]

    def pixels(self, x, y, width, height):
        return self.browser.run(PIXELS, x, y, width, height)

    def link_pixels(self, x, y, width, height):
        return self.overlay_pixels("--accent", x, y, width, height)

    def overlay_pixels(self, colour, x, y, width, height):
        return self.browser.run(OVERLAY_PIXELS, colour, x, y, width, height)

    # -- what there is -------------------------------------------------------------------------------------------

    def view(self, what, **query):
        return self.api.get(f"/captures/{self.capture_id}/{what}", **query)

    def layout(self):
        return self.view("layout")

    def ranks(self):
        """The streams of cores by their rank."""
        return {stream["gid"]: stream for stream in self.layout()["streams"] if stream["gid"] is not None}

    def barrier_of(self, gid):
        """One barrier of a rank near the middle of the capture, as a hit of the search."""
        hits = self.view("search", q=f"name:{demo.BARRIER} rank:{gid}")["hits"]
        self.assertGreater(len(hits), 5, "barriers of this rank")
        return sorted(hits, key=lambda hit: int(hit["start_ns"]))[len(hits) // 2]

    def wait_for_text(self, selector, pattern):
        return wait_until(lambda: re.search(pattern, self.text_of(selector) or ""), f"{selector} to show {pattern}")
