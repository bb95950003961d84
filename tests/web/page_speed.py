#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the page is in Debian's chromium, without a graphics card: first paint, frames while a person pans and zooms, and
what is left in memory after some minutes of use.

    tests/web/page_speed.py [--ranks 10000] [--minutes 10] [--json FILE]
    tests/web/page_speed.py --url 'http://127.0.0.1:9403/capture/ID?token=…'

Without --url it bundles the page and serves it by web/mock_server.py. That answers in Python, so it is part of first paint;
frames, heap and nodes are the page's own. Prints a table and asserts nothing: run it on a machine that does nothing else.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from web_driver import MISSING, WebDriver

ROOT = Path(__file__).resolve().parents[2]
SLICE_S = 10  # of random use in one call of the driver

# Runs in each new document before the page: when the first rank is listed, and when the first spans are drawn.
WATCH_FIRST_PAINT = """window.ntFirst = {};
(function watch() {
  const {ntFirst} = window, now = performance.now();
  if (ntFirst.listed === undefined && document.querySelector('.tree-line:not([hidden])')) ntFirst.listed = now;
  const isAnswered = document.querySelector('.load-status')?.hidden === true;
  if (ntFirst.listed !== undefined && isAnswered) {
    // The message comes after the frame in which the answer is painted.
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { ntFirst.drawn = performance.now(); };
    requestAnimationFrame(() => channel.port2.postMessage(0));
    return;
  }
  requestAnimationFrame(watch);
})();"""

# What a person does with mouse and keyboard, by the events that it gives. `step` is a number from 0 to 1.
INPUTS = """const box = document.querySelector('.canvas-box'), area = box.getBoundingClientRect();
const wheel = (deltaY, keys, x = 0.5) => box.querySelector('canvas').dispatchEvent(new WheelEvent('wheel', {deltaY, bubbles: true,
  cancelable: true, clientX: area.left + area.width * x, clientY: area.top + area.height / 2, ...keys}));
const key = name => document.body.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
const frame = () => new Promise(done => requestAnimationFrame(done));"""

# One input a frame; returns for each frame its length, and the time from its begin until it is painted.
FRAMES = INPUTS + """const [kind, count] = arguments, lengths = [], painted = [];
const channel = new MessageChannel();
let last = await frame();
for (let i = 0; i < count; ++i) {
  const up = Math.floor(i / 30) % 2 === 0 ? 1 : -1;
  if (kind === 'pan') wheel(up * 60, {shiftKey: true});
  if (kind === 'zoom') wheel(up * -60, {}, 0.3 + 0.4 * (i % 7) / 6);
  if (kind === 'scroll') wheel(up * 60, {altKey: true});
  const begin = await frame();
  await new Promise(done => { channel.port1.onmessage = done; channel.port2.postMessage(0); });
  painted.push(performance.now() - begin);
  lengths.push(begin - last);
  last = begin;
}
return {lengths, painted};"""

# Random use for some milliseconds, with numbers from Python so that two runs do the same.
WANDER = INPUTS + """const [numbers, ms] = arguments, until = performance.now() + ms;
const keys = ['w', 's', 'a', 'd', 'PageDown', 'PageUp', 'ArrowDown', '.', 'm', '0', 'Escape'];
let actions = 0;
for (const number of numbers) {
  if (performance.now() > until) break;
  const what = Math.floor(number * 16);
  if (what < keys.length) key(keys[what]);
  else if (what < 13) wheel((number * 16 - what - 0.6) * 400, {}, 0.2 + 0.6 * number);
  else if (what < 14) wheel(200, {altKey: true});
  else {
    const lines = [...document.querySelectorAll('.tree-line:not([hidden])')];
    lines[Math.floor((number * 160) % 1 * lines.length)]?.click();
  }
  ++actions;
  for (let i = 0; i < 6; ++i) await frame();
}
return actions;"""


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(values):
    return {"p50": quantile(values, 0.5), "p95": quantile(values, 0.95), "p99": quantile(values, 0.99), "max": max(values),
            "values": len(values)}


class Page:
    """A page that is measured."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url
        browser.devtools("Performance.enable")
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=WATCH_FIRST_PAINT)

    def open(self):
        """Returns milliseconds from the navigation to the list of ranks, and to the first spans."""
        self.browser.open("about:blank")
        self.browser.open(self.url)
        self.browser.wait_for("return window.ntFirst?.drawn !== undefined", seconds=120)
        return self.browser.run("return window.ntFirst")

    def metrics(self):
        """Chromium's counters of the page: seconds of its thread, bytes of its heap, nodes."""
        return {entry["name"]: entry["value"] for entry in self.browser.devtools("Performance.getMetrics")["metrics"]}

    def frames(self, kind, count):
        before = self.metrics()
        lengths, painted = [], []
        for begin in range(0, count, 100):  # a call of the driver has 20 s
            found = self.browser.run("return (async (...arguments) => {" + FRAMES + "})(...arguments)", kind, min(100, count - begin))
            lengths += found["lengths"]
            painted += found["painted"]
        after = self.metrics()
        spent = {name: (after[name] - before[name]) * 1000 / count for name in ("ScriptDuration", "TaskDuration")}
        return {"frame_ms": summary(lengths), "painted_ms": summary(painted), "script_ms_a_frame": spent["ScriptDuration"],
                "thread_ms_a_frame": spent["TaskDuration"]}

    def wander(self, minutes, seed):
        """Uses the page at random; returns what is in memory afterwards, after a collection of garbage."""
        numbers, until, actions = random.Random(seed), time.monotonic() + 60 * minutes, 0
        while time.monotonic() < until:
            seconds = min(SLICE_S, max(0.1, until - time.monotonic()))
            actions += self.browser.run("return (async (...arguments) => {" + WANDER + "})(...arguments)",
                                        [numbers.random() for _ in range(1000)], seconds * 1000)
        self.browser.devtools("HeapProfiler.collectGarbage")
        found, heap = self.metrics(), self.browser.devtools("Runtime.getHeapUsage")
        # Objects of JavaScript, of the document, and the bytes of typed arrays, in which the page keeps spans.
        kinds = {kind: heap.get(kind, 0) / 1e6 for kind in ("usedSize", "embedderHeapUsedSize", "backingStorageSize")}
        return {"minutes": minutes, "actions": actions, "heap_mb": sum(kinds.values()), "heap_mb_by_kind": kinds,
                "nodes_in_page": self.browser.run("return document.querySelectorAll('*').length"),
                "nodes_in_memory": found["Nodes"], "listeners": found["JSEventListeners"]}


def measure(url, options):
    with WebDriver(options.width, options.height) as browser:
        page = Page(browser, url)
        # The first time, with the token if there is one, also fills the browser's caches.
        page.open()
        opened = [page.open() for _ in range(options.repetitions)]
        result = {"url": url.split("?")[0], "width": options.width, "height": options.height,
                  "chromium": browser.devtools("Browser.getVersion")["product"],
                  "first_ranks_ms": summary([entry["listed"] for entry in opened]),
                  "first_spans_ms": summary([entry["drawn"] for entry in opened])}
        for kind in ("pan", "zoom", "scroll"):
            result[kind] = page.frames(kind, options.frames)
        result["nodes_at_first"] = browser.run("return document.querySelectorAll('*').length")
        result["after_use"] = page.wander(options.minutes, options.seed)
        result["errors"] = browser.console_errors()
        return result


def rows_of(result):
    """What, its goal, and the figure: the rows of the table."""
    def three(values):
        return f"{values['p50']:.1f} / {values['p95']:.1f} / {values['p99']:.1f}"
    rows = [("first ranks, ms, p50 / p95 / p99", "", three(result["first_ranks_ms"])),
            ("first spans, ms", "p95 1,000", three(result["first_spans_ms"]))]
    for kind in ("pan", "zoom", "scroll"):
        found = result[kind]
        rows += [(f"{kind}: frame, ms", "p99 16.7", three(found["frame_ms"])),
                 (f"{kind}: begin of the frame to painted, ms", "p99 20", three(found["painted_ms"])),
                 (f"{kind}: script on the page's thread, ms a frame", "8", f"{found['script_ms_a_frame']:.1f}"),
                 (f"{kind}: the page's thread in all, ms a frame", "", f"{found['thread_ms_a_frame']:.1f}")]
    used = result["after_use"]
    rows += [("elements in the page", "500", f"{result['nodes_at_first']:,}"),
             (f"elements in the page after {used['minutes']:g} min of use", "", f"{used['nodes_in_page']:,}"),
             (f"heap after {used['minutes']:g} min and {used['actions']:,} actions, MB", "200", f"{used['heap_mb']:.1f}"),
             ("nodes in memory, listeners", "", f"{used['nodes_in_memory']:,.0f}, {used['listeners']:,.0f}")]
    return rows


def serve_mock(folder, ranks):
    """Bundles the page and serves a made capture; returns the process and the capture's address."""
    subprocess.run([ROOT / "web" / "build.sh", folder], check=True, stdout=subprocess.DEVNULL)
    # pylint: disable-next=consider-using-with
    server = subprocess.Popen([sys.executable, ROOT / "web" / "mock_server.py", "--assets", folder, "--port", "0", "--ranks",
                               str(ranks)], stdout=subprocess.PIPE, text=True)
    addresses = [server.stdout.readline().strip() for _ in range(2)]
    if not addresses[1]:
        raise SystemExit("page_speed: web/mock_server.py did not start")
    return server, addresses[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--url", help="a capture's page, with the token; default: a made capture")
    parser.add_argument("--ranks", type=int, default=10_000, help="of the made capture")
    parser.add_argument("--minutes", type=float, default=10, help="of random use")
    parser.add_argument("--frames", type=int, default=600, help="of each kind of movement")
    parser.add_argument("--repetitions", type=int, default=10, help="of opening the page")
    parser.add_argument("--seed", type=int, default=1, help="of the random use")
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--height", type=int, default=1050)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    if MISSING:
        raise SystemExit(f"page_speed: {' and '.join(MISSING)} not found; ./scripts/setup installs them")
    with tempfile.TemporaryDirectory(prefix="nt-page-speed-") as folder:
        server, url = (None, options.url) if options.url else serve_mock(folder, options.ranks)
        try:
            result = measure(url, options)
        finally:
            if server is not None:
                server.terminate()
                server.wait()
                server.stdout.close()
    result["ranks"] = None if options.url else options.ranks
    rows = rows_of(result)
    width = max(len(row[0]) for row in rows)
    for what, goal, figure in [("what", "goal", "measured"), *rows]:
        print(f"{what:{width}}  {goal:>10}  {figure}")
    print(json.dumps(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
