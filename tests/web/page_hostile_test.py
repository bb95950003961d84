# SPDX-License-Identifier: Apache-2.0
"""Names that attack whoever reads them, in captures, jobs and events: on the page they are texts, visible and of a bounded
length, and nothing else."""

import json
import time
import urllib.error
import urllib.request

import framework_cases
import suite
from fleet import wait_until
from page_case import PageCase

HTML = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
ANSI = "\x1b[31mred\x1b[0m\x07\x9b2J"
RTL = "\u202egnp.exe\u2066\u200b"
LONG = "L" * 65_536
# A name and what the page shows of it at least.
EVENTS = {"html": (HTML, HTML), "ansi": (ANSI, "\\u001b[31mred"), "rtl": (RTL, "\\u202egnp.exe"), "long": (LONG, "L" * 100)}
INSTANCE = "i-0badbadbadbad0001"

# Texts, titles and names for screen readers in which a character is hidden or turns the text around it.
HIDDEN_CHARACTERS = r"""const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069]/;
const texts = [document.title];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
  else for (const name of ['title', 'aria-label']) texts.push(node.getAttribute(name) ?? '');
}
return texts.filter(text => hidden.test(text)).map(text => text.slice(0, 200));"""


class HostilePage(PageCase):
    duration = "500ms"

    @classmethod
    def start_fleet(cls):
        """One worker whose job has a hostile name, and a file of a framework whose events have them."""
        begin_us = time.time_ns() // 1000 - framework_cases.T_US  # beside the worker's events
        events = []
        for number, (kind, (name, _)) in enumerate(EVENTS.items()):
            events.append(framework_cases.complete(name, begin_us + number * 1000, 900,
                                                   args={"kind": kind, "value": name, name[:200]: 1}))
        path = framework_cases.write(cls.fleet.dir / "worker0.pt.trace.json", framework_cases.document(events))
        cls.fleet.start_aggregator()
        cls.fleet.start_agent(INSTANCE, "--framework-file", path)
        cls.fleet.start_worker(INSTANCE, "--cores", 2, "--executions-per-second", 20, env={"NEURONTRACE_JOB": HTML + RTL + ANSI})
        cls.fleet.start_worker(INSTANCE, "--cores", 2, "--executions-per-second", 20, env={"NEURONTRACE_JOB": LONG})
        cls.fleet.wait_for_workers(2)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.events_id = cls.capture("events of a framework", "300ms", "--no-neuron")

    def check_texts(self):
        """Nothing of a name became an element, a hidden character or more than a line of the window."""
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, script:not([src])').length"), 0)
        self.assertEqual(self.browser.run(HIDDEN_CHARACTERS), [])
        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth"), 1280, "no wider than the window")
        self.assertIn("neurontrace", self.browser.title)
        self.assertEqual(self.browser.console_errors(), [])

    # -- captures -------------------------------------------------------------------------------------------------

    def refused(self, name):
        """The error of starting a capture of this name by the API."""
        body = json.dumps({"spec": {"name": name, "duration_ns": "100000000"}}).encode()
        request = urllib.request.Request(self.api.origin + "/api/v1/captures", body, {"Content-Type": "application/json"})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.api._opener.open(request, timeout=20).close()  # pylint: disable=protected-access
        with caught.exception as error:
            return error.code, json.load(error)["error"]

    def test_names_of_captures_with_control_characters_or_without_end_are_refused(self):
        for name in (ANSI, LONG):
            status, error = self.refused(name)
            self.assertEqual((status, error["code"]), (400, "INVALID_ARGUMENT"), name[:20])
            self.assertIn("name", error["message"])
            self.assertNotRegex(error["message"], "[\x00-\x1f\x7f]", "the message does not repeat them")
            self.assertLess(len(error["message"]), 2000)

    def test_dialog_shows_why_a_name_is_refused(self):
        self.sign_in()
        self.browser.click(".top-bar .primary")
        self.browser.run("document.getElementById('start-name').value = arguments[0]", LONG)
        self.browser.run("[...document.querySelectorAll('dialog button')].find(b => b.innerText === 'Start').click()")
        self.wait_for_text("dialog .notice.error", "(?i)name")
        self.browser.console_errors()  # the browser's line about the refused request
        self.check_texts()

    def test_name_of_a_capture_is_a_text_everywhere(self):
        name = HTML + RTL
        capture_id = self.capture(name, "300ms")
        self.sign_in()
        self.assertIn(f"{HTML}\\u202egnp.exe", "".join(row[1] for row in self.table_of(".manager")))
        self.check_texts()
        self.open_timeline(capture_id=capture_id)
        self.assertIn(f"{HTML}\\u202egnp.exe", self.text_of("h1"))
        self.check_texts()
        self.browser.open(f"{self.api.origin}/capture/{capture_id}/certificate")
        self.wait_for_text(".verdict", "omplete")
        self.check_texts()
        self.sign_in()
        self.browser.run("[...document.querySelectorAll('[title^=\"More actions\"]')].find(b => b.title.includes('img')).click()")
        self.browser.run("[...document.querySelectorAll('[role=menuitem]')].find(b => b.innerText.startsWith('Delete')).click()")
        self.browser.wait_for("return document.querySelector('dialog[open]') !== null")
        self.check_texts()
        # The aggregator has stored the name as it is shown, so that it can be typed.
        shown = HTML + RTL.encode("unicode_escape").decode()
        self.assertIn(f"Type {shown} to confirm", self.text_of("dialog"))
        self.browser.type("#ask-text", shown)
        self.browser.press("Enter")
        wait_until(lambda: not any("img src" in row[1] for row in self.table_of(".manager")), "the row to disappear")
        self.assertNotIn(capture_id, [capture["capture_id"] for capture in self.fleet.cli_json("captures")["captures"]])

    # -- jobs -----------------------------------------------------------------------------------------------------

    def test_names_of_jobs_are_texts_of_a_bounded_length(self):
        workers = self.api.get("/workers")["workers"]
        self.assertEqual([worker["job"][:4] for worker in workers if "job" in worker], ["<img"])
        # The other worker's is longer than the tap reads: it has none, and says so.
        self.assertRegex([worker["warnings"] for worker in workers if "job" not in worker][0][0], "exceed the tap's limit")
        self.sign_in()
        self.browser.click("#tab-workers")
        self.browser.wait_for("return document.querySelector('#manager-body tbody tr') !== null")
        self.assertIn("<img src=x", self.text_of("#manager-body"))
        self.check_texts()
        self.browser.click(".top-bar .primary")  # the dialog offers the jobs
        self.browser.wait_for("return document.querySelectorAll('#start-jobs option').length > 0")
        self.check_texts()
        self.browser.press("Escape")
        self.open_timeline()
        self.check_texts()
        self.browser.open(f"{self.api.origin}/capture/{self.capture_id}/certificate")
        self.wait_for_text(".verdict", "omplete")
        self.check_texts()

    # -- events ---------------------------------------------------------------------------------------------------

    def test_names_of_events_are_texts_in_every_panel(self):
        self.open_timeline(capture_id=self.events_id, panel="table")
        layout = self.api.get(f"/captures/{self.events_id}/layout")
        stream = next(s["number"] for s in layout["streams"] if s["kind"] == "framework")
        self.open_timeline(capture_id=self.events_id, open=stream, panel="table")
        shown = "\n".join(cell for row in self.table_of(".dock-body") for cell in row)
        for kind, (_, expected) in EVENTS.items():
            self.assertIn(expected, shown, kind)
        self.check_texts()
        events = self.api.get(f"/captures/{self.events_id}/events", streams=stream)["events"]
        self.assertEqual(len(events), len(EVENTS), [event["name"][:40] for event in events])
        for event in events:
            with self.subTest(event=event["name"][:20]):
                self.check_one(event)

    def check_one(self, hit):
        """The details of an event, what the mouse shows over it, its label on the canvas, and the sum by name."""
        start, length = int(hit["start_ns"]), int(hit["duration_ns"])
        view = {"from": start - length, "to": start + 2 * length, "open": hit["stream"]}
        self.open_timeline(capture_id=self.events_id, **view, panel="details", span=f"{hit['stream']}.{hit['row']}.{start}")
        self.browser.wait_for("return document.querySelector('.details-head h2') !== null")
        self.check_texts()
        box = self.canvas()
        for y in range(int(box["top"]) + 8, int(box["top"] + box["height"]), 17):
            self.browser.move_to(box["left"] + box["width"] / 2, y)
        self.check_texts()
        self.open_timeline(capture_id=self.events_id, **view, panel="selection",
                           box=f"{start}.{start + length}.{hit['stream']}")
        self.browser.wait_for("return document.querySelector('.dock-body tbody tr') !== null")
        self.check_texts()

    def test_hostile_search_is_a_text(self):
        self.open_timeline(capture_id=self.events_id, q=f"{RTL} <img src=x onerror=1>", panel="search")
        wait_until(lambda: "img src" in (self.text_of(".dock-body") or ""), "the search to be named")
        self.check_texts()


if __name__ == "__main__":
    suite.main()
