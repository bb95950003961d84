#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the page, in a real browser: the panel Why of a fleet with a planted straggler and of one without, marks
on the timeline and the heat map, a capture's page, and the watch above the list of captures."""

import re

import demo
import suite
from fleet import wait_until
from page_case import PageCase

CARDS = ".verdict-card"
HEALTHY_RANKS = 8


class PageWhy(PageCase):
    duration = "4s"

    def open_why(self, **query):
        self.open_timeline(panel="why", **query)
        self.browser.wait_for("return document.querySelector('.why-answer') !== null")

    def report(self, **query):
        return self.view("why", **query)

    def straggler_verdict(self, report):
        """The number of the verdict that names the planted straggler, and the verdict."""
        for number, verdict in enumerate(report.get("verdicts", [])):
            if any(int(core.get("worker_gid", 0)) == demo.STRAGGLER for core in verdict.get("suspects", [])):
                return number, verdict
        return self.fail(f"no verdict names gid {demo.STRAGGLER}: {report}")

    def card(self, number):
        return self.browser.run(f"return document.querySelectorAll('{CARDS}')[arguments[0]].innerText", number)

    def cards(self):
        return self.browser.run(f"return document.querySelectorAll('{CARDS}').length")

    def press_in_card(self, number, label):
        self.browser.run(f"[...document.querySelectorAll('{CARDS}')[arguments[0]].querySelectorAll('button')]"
                         ".find(button => button.innerText === arguments[1]).click()", number, label)
        self.settle()

    def press_button(self, panel, label):
        self.browser.run("[...document.querySelectorAll(arguments[0] + ' button')]"
                         ".find(button => button.innerText === arguments[1]).click()", panel, label)

    def label_of_straggler(self):
        return self.ranks()[demo.STRAGGLER]["label"]

    def bands_of(self, line):
        """How many pixels of a line have the colour of verdicts."""
        box = self.canvas()
        return self.overlay_pixels("--verdict", box["left"], line["top"], box["width"], line["height"])

    def wait_for_bands(self, condition, what):
        wait_until(lambda: condition(self.bands_of(self.line_of(self.label_of_straggler()))), what)

    def test_key_opens_the_verdicts_with_the_keyboard_on_the_first(self):
        self.open_timeline()
        self.browser.press("y")
        report = self.report()
        number, verdict = self.straggler_verdict(report)
        self.browser.wait_for("return document.querySelector('.why-answer') !== null")
        self.assertEqual(self.cards(), len(report["verdicts"]))
        shown = self.card(number)
        self.assertIn(verdict["text"], shown)
        self.assertIn(verdict["kind"].removeprefix("VERDICT_KIND_").lower().replace("_", "-"), shown)
        for entry in verdict.get("ruled_out", []):
            self.assertRegex(shown, rf"(?m)^{entry['what']}\s+\S")
        self.assertIn(verdict.get("look", ""), shown)
        self.assertIn(f"{report['cores_judged']} of {report['cores']} cores judged", self.text_of(".why-answer"))
        self.assertIn(str(len(report["verdicts"])), self.text_of("#tab-why"))
        self.browser.press("y")
        self.assertEqual(self.browser.run("return document.activeElement.innerText"), "Show ranks and time")

    def test_verdict_leads_to_its_rank_and_time(self):
        number, verdict = self.straggler_verdict(self.report())
        self.open_why()
        self.press_in_card(number, "Show ranks and time")
        first = self.lines()[0]
        self.assertEqual((first["label"], first["kind"]), (self.label_of_straggler(), "rank"))
        self.assertIn(self.lines()[1]["kind"], ("section", "row"), "the rank is open")
        begin, end = self.window()
        since, until = int(verdict["since_ns"]), int(verdict["until_ns"])
        self.assertTrue(begin <= since < until <= end, (begin, since, until, end))
        self.assertLess(end - begin, 1.2 * (until - since))
        self.assertEqual(self.state_of_url()["verdict"], str(number))
        self.assertEqual(self.browser.run("return document.querySelectorAll('.chosen[aria-current]').length"), 1)
        self.assertIn("Why", self.text_of("[role=tab][aria-selected=true]"), "the panel stays")
        # A colleague who opens the link sees the same.
        address = self.browser.url
        self.browser.open(address)
        self.settle()
        self.browser.wait_for(f"return document.querySelector('{CARDS}.chosen') !== null")
        self.assertEqual(self.lines()[0]["label"], self.label_of_straggler())
        self.assertEqual(self.browser.console_errors(), [])

    def test_verdict_leads_to_an_execution_that_shows_it(self):
        number, verdict = self.straggler_verdict(self.report())
        self.open_why()
        self.press_in_card(number, "Zoom to one execution")
        self.check_execution(verdict)

    def test_link_that_names_a_verdict_opens_at_its_execution(self):
        """What the demo prints."""
        number, verdict = self.straggler_verdict(self.report())
        self.open_timeline(panel="why", why="all", verdict=number)
        self.check_execution(verdict)
        self.assertEqual(self.lines()[0]["label"], self.label_of_straggler(), "open above its peers")
        self.assertGreater(sum(line["kind"] == "rank" for line in self.lines()), 4)
        self.browser.wait_for(f"return document.querySelectorAll('{CARDS}')[arguments[0]].classList.contains('chosen')",
                              number)

    def check_execution(self, verdict):
        """The window has the execution that the verdict names, and its run on the device is chosen."""
        self.assertGreater(int(verdict.get("exec_id", 0)), 0, f"the verdict names an execution: {verdict}")
        stream = self.ranks()[demo.STRAGGLER]["number"]
        found = self.view("events", q=f"arg:exec_id={verdict['exec_id']} type:nc_exec_running", streams=stream, **{
            "from": verdict["since_ns"], "to": int(verdict["until_ns"]) + 1})["events"]
        self.assertTrue(found, "the run of the execution")
        run = max(found, key=lambda event: int(event["duration_ns"]))
        self.browser.wait_for("return location.search.includes(arguments[0])",
                              f"span={stream}.{run['row']}.{run['start_ns']}")
        self.settle()
        begin, end = self.window()
        self.assertTrue(begin <= int(run["start_ns"]) <= int(run["end_ns"]) <= end, (begin, run, end))
        self.assertLess(end - begin, 3 * int(verdict["step_ns"]))

    def test_band_marks_the_rank_and_is_switched_off(self):
        number, verdict = self.straggler_verdict(self.report())
        self.open_why(top=12)  # the panel leaves room for about twenty rows
        self.wait_for_bands(lambda pixels: pixels > 200, "a band at the straggler")
        named = {int(core.get("worker_gid", 0))
                 for entry in self.report()["verdicts"] for core in entry.get("suspects", [])}
        innocent = self.ranks()[max(gid for gid in range(demo.STRAGGLER) if gid not in named)]
        self.assertEqual(self.bands_of(self.line_of(innocent["label"])), 0)
        self.browser.press("v")
        self.wait_for_bands(lambda pixels: pixels == 0, "no band")
        self.settle()
        self.assertEqual(self.state_of_url()["bands"], "0")
        self.browser.press("v")
        self.wait_for_bands(lambda pixels: pixels > 200, "the band again")
        self.assertIn(verdict["text"], self.card(number))

    def test_window_is_judged_on_request(self):
        layout = self.layout()
        begin, end = int(layout["begin_ns"]), int(layout["end_ns"])
        middle = {"from": begin + (end - begin) // 4, "to": begin + (end - begin) // 2}
        self.open_why(**middle)
        self.press_button(".why", "Why in this window")
        self.settle()
        asked = self.browser.wait_for(
            r"return new URLSearchParams(location.search).get('why').match(/^\d+\.\d+$/)?.[0]")
        window = dict(zip(("from", "to"), asked.split(".")))
        self.assertAlmostEqual(int(window["from"]), middle["from"], delta=1000)
        self.assertAlmostEqual(int(window["to"]), middle["to"], delta=1000)
        report = self.report(**window)
        self.wait_for_text(".why-answer", f"{report.get('cores_judged', 0)} of {report['cores']} cores judged, "
                                          f"{int(report['executions']):,} executions")
        self.assertEqual(self.cards(), len(report.get("verdicts", [])))

    def test_selection_is_judged_on_request(self):
        layout = self.layout()
        begin, end = int(layout["begin_ns"]), int(layout["end_ns"])
        stream = self.ranks()[demo.STRAGGLER]["number"]
        box = f"{begin + (end - begin) // 4}.{begin + (end - begin) // 2}.{stream}"
        self.open_why(box=box)
        self.press_button(".why", "Why in the selection")
        self.settle()
        self.browser.wait_for("return new URLSearchParams(location.search).get('why') === arguments[0]",
                              box.rsplit(".", 1)[0])

    def test_heat_map_marks_the_suspect_with_the_verdict(self):
        number, verdict = self.straggler_verdict(self.report())
        self.open_why()
        self.press_in_card(number, "Heat map")
        self.browser.wait_for("return document.querySelector('.heat-canvas') !== null")
        self.wait_for_text(".heat-legend", "framed: named by a verdict")
        ranks = sorted(self.ranks())
        box = self.browser.run("const box = document.querySelector('.heat-canvas').getBoundingClientRect();"
                               "return {left: box.left, top: box.top, width: box.width, height: box.height}")
        layout = self.layout()
        begin, end = int(layout["begin_ns"]), int(layout["end_ns"])
        share = ((int(verdict["since_ns"]) + int(verdict["until_ns"])) / 2 - begin) / (end - begin)
        y = box["top"] + (box["height"] - 18) * (ranks.index(demo.STRAGGLER) + 0.5) / len(ranks)
        self.browser.move_to(box["left"] + 46 + (box["width"] - 46) * share, y)
        self.wait_for_text(".heat-tip", re.escape(verdict["text"]))
        self.wait_for_text(".heat-readout", "^" + re.escape(self.label_of_straggler()))
        self.press_button(".heat", "Verdicts")
        self.assertNotIn("framed", self.text_of(".heat-legend"))

    def test_page_of_the_capture_counts_the_verdicts_and_leads_to_them(self):
        report = self.report()
        number, verdict = self.straggler_verdict(report)
        self.sign_in()
        self.browser.open(f"{self.api.origin}/capture/{self.capture_id}/about")
        self.wait_for_text("#why-title", rf"^Why\s+{len(report['verdicts'])}$")
        self.assertIn(verdict["text"], self.card(number))
        self.browser.run(f"document.querySelectorAll('{CARDS}')[arguments[0]].querySelector('a').click()", number)
        self.settle()
        self.browser.wait_for(
            f"return document.querySelectorAll('{CARDS}')[arguments[0]]?.classList.contains('chosen')", number)
        self.check_execution(verdict)

    def test_watch_is_above_the_captures(self):
        self.sign_in()
        self.wait_for_text(".now", r"No watch is on:\s*neurontrace watch on")
        self.fleet.cli("watch", "on")
        self.addCleanup(self.fleet.cli, "watch", "off", check=False)
        self.sign_in()
        self.wait_for_text(".now", r"(?s)^Now: .*\d+ of \d+ cores judged")
        # The watch sees the straggler as soon as it has enough executions.
        wait_until(lambda: re.search(rf"\b{demo.STRAGGLER}\b", self.text_of(".now li") or ""),
                   "the watch to name the straggler", 60)
        self.fleet.cli("watch", "off")
        self.wait_for_text(".now", "No watch is on")

    def test_failure_is_shown_and_tried_again(self):
        self.open_timeline()
        self.browser.run("""const real = window.fetch;
            window.fetch = (address, ...rest) => String(address).includes('/why')
                ? Promise.reject(new TypeError('no network')) : real(address, ...rest);
            window.repair = () => window.fetch = real;""")
        self.browser.press("y")
        self.wait_for_text(".why [role=alert]", "The ranks cannot be judged: the aggregator does not answer")
        self.browser.run("window.repair()")
        self.press_button(".why", "Try again")
        self.browser.wait_for(f"return document.querySelector('{CARDS}') !== null")


class PageWhyHealthy(PageCase):
    """A job whose ranks are all alike: nobody is named."""

    duration = "4s"

    @classmethod
    def start_fleet(cls):
        instance = demo.INSTANCES[0]
        cls.fleet.start_aggregator()
        cls.fleet.start_agent(instance)
        cls.fleet.start_worker(instance, "--rank-start", 0, "--world-size", HEALTHY_RANKS, "--cores", HEALTHY_RANKS,
                               "--seed", 7, "--mix", "graph", "--executions-per-second", demo.EXECUTIONS_PER_SECOND)
        cls.fleet.wait_for_workers(1)
        cls.fleet.wait_for_ranks(HEALTHY_RANKS)
        cls.fleet.wait_for_clocks(1)

    def test_nobody_is_named_of_those_that_were_judged(self):
        report = self.view("why")
        self.assertEqual(report.get("verdicts", []), [])
        self.open_timeline(panel="why")
        self.wait_for_text(".why-answer", "Nobody to name" if report.get("cores_judged") else "Nothing was judged")
        self.assertIn(f"{report.get('cores_judged', 0)} of {report['cores']} cores judged", self.text_of(".why-answer"))
        self.assertEqual(len(self.table_of(".refusals")), len(report.get("refusals", [])))
        for row, refusal in zip(self.table_of(".refusals"), report.get("refusals", [])):
            self.assertIn(refusal["missing"], row)
        self.assertIsNone(self.text_of(CARDS))


if __name__ == "__main__":
    suite.main()
