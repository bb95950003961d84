# SPDX-License-Identifier: Apache-2.0
"""The page while things change below it: a capture that grows or is deleted, an aggregator that restarts, two people with
commands of their own, and links that lead nowhere."""

import urllib.error

import demo
import suite
from fleet import wait_until
from page_case import Api, PageCase

SOON_S = 30  # for what takes about three seconds, on a machine that does other things


class PageLife(PageCase):
    duration = "1s"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.stop_captures)

    def stop_captures(self):
        """What a failed test leaves running would have the workers of the next one."""
        for capture in self.fleet.cli_json("captures", "list", "--running")["captures"]:
            self.fleet.cli("capture", "stop", capture["capture_id"], codes=(0, 3))

    def test_suspended_stretch_is_drawn_with_its_reason(self):
        continuous = self.fleet.cli("capture", "start", "--continuous", "--keep", "5m", "--name", "continuous").stdout.strip()
        wait_until(lambda: self.end_of(continuous) > 0, "events of the continuous capture")
        self.capture("in between", "1s")

        def gap():
            """A suspension that has ended, and its stream: that of the worker's events without a core."""
            layout = self.api.get(f"/captures/{continuous}/layout")
            found = ((stream, gap) for stream in layout["streams"] for gap in stream["gaps"]
                     if gap["kind"] == "suspension" and int(gap["end_ns"]) < int(layout["end_ns"]))
            return next(found, None)
        wait_until(gap, "a suspension that has ended")
        self.fleet.cli("capture", "stop", continuous)
        self.fleet.wait_for_capture(continuous, lambda shown: "STOP" not in shown["state"] and
                                    "RECORD" not in shown["state"], "its end")
        stream, suspension = gap()
        begin, end = int(suspension["begin_ns"]), int(suspension["end_ns"])
        self.open_timeline(capture_id=continuous, **{"from": begin - (end - begin) // 4, "to": end + (end - begin) // 4})
        # The line above its ranks has the process's name too.
        line = next(line for line in self.lines() if (line["label"], line["kind"]) == (stream["label"], "rank"))
        middle = self.x_of((begin + end) / 2)
        hatched = self.pixels(middle - 40, line["top"] + 1, 80, 13)
        self.assertGreater(hatched["drawn"], 0, "nothing was recorded there, so that all that is drawn is the hatching")
        self.browser.move_to(middle, line["top"] + 8)
        self.wait_for_text(".tooltip", "suspended for")

    # -- a capture that runs --------------------------------------------------------------------------------------

    def start_capture(self, name):
        """Starts a capture and waits until the page would show something of it."""
        capture_id = self.fleet.cli("capture", "start", "--name", name).stdout.strip()
        wait_until(lambda: self.end_of(capture_id) > 0, f"events of {name}")
        return capture_id

    def end_of(self, capture_id):
        """The capture's last event so far; 0 where there is none, or nobody who answers."""
        try:
            return int(self.api.get(f"/captures/{capture_id}/layout")["end_ns"])
        except urllib.error.HTTPError as error:
            with error:
                self.assertEqual(error.code, 503)
            return 0

    def follow(self, capture_id):
        """Opens the timeline of a running capture, which never settles, and follows it."""
        self.sign_in()
        self.browser.open(f"{self.api.origin}/capture/{capture_id}")
        self.wait_for_text(".top-bar .state", "recording")
        self.browser.click(".follow")
        self.browser.wait_for("return new URLSearchParams(location.search).has('from')")

    def wait_for_later_events(self, moment):
        """Until everything on the screen is later than a moment, and each rank has drawn events there."""
        wait_until(lambda: self.window()[0] > moment, "the view to move past what was there before", SOON_S)
        wait_until(lambda: self.share_drawn() > 0.05, "events to be drawn there", SOON_S)

    def share_drawn(self):
        """The least share of a rank's line, left of the newest event, that has another colour than an empty lane."""
        box = self.canvas()
        shares = []
        for line in self.lines():
            if line["label"].startswith("gid"):
                strip = self.pixels(box["left"], line["top"] + 1, box["width"] * 0.7, 13)
                shares.append(strip["drawn"] / strip["pixels"])
        return min(shares, default=0)

    def test_new_events_appear_while_the_capture_runs(self):
        capture_id = self.start_capture("growing")
        self.follow(capture_id)
        opened = self.end_of(capture_id)
        self.wait_for_later_events(opened)
        self.fleet.cli("capture", "stop", capture_id)
        wait_until(lambda: "recording" not in self.text_of(".top-bar .state"), "the page to see the end", SOON_S)
        self.settle()
        self.assertFalse(self.browser.run("return document.querySelector('.follow').checkVisibility()"), "nothing to follow")
        self.browser.press("0")
        self.settle()
        begin, end = self.window()
        layout = self.api.get(f"/captures/{capture_id}/layout")
        self.assertTrue(begin < int(layout["begin_ns"]) and int(layout["end_ns"]) < end, "the whole of it, up to its last event")
        self.assertEqual(self.browser.console_errors(), [])

    def test_running_capture_is_followed_again_after_the_aggregator_restarted(self):
        capture_id = self.start_capture("through a restart")
        self.follow(capture_id)
        self.wait_for_later_events(self.end_of(capture_id))
        self.assertEqual(self.fleet.aggregator.stop(), 0)
        self.browser.wait_for("return document.querySelector('.load-status.error:not([hidden])') !== null")
        self.assertRegex(self.text_of(".load-status"), "(?i)(not|no) .*(answer|shown|connect)")
        self.fleet.start_aggregator()
        self.fleet.wait_for_status(agents=len(demo.INSTANCES))
        restarted = wait_until(lambda: self.end_of(capture_id), "the page's command to reach the aggregator again", SOON_S)
        self.wait_for_later_events(restarted)
        self.browser.wait_for("return document.querySelector('.load-status.error:not([hidden])') === null")

    # -- a capture that is deleted --------------------------------------------------------------------------------

    def test_capture_that_is_deleted_while_it_is_open_is_reported(self):
        capture_id = self.capture("short-lived", "300ms")
        self.open_timeline(capture_id=capture_id)
        self.fleet.cli("captures", "delete", capture_id)
        box = self.canvas()
        self.browser.move_to(box["left"] + box["width"] / 2, box["top"] + 100)
        self.browser.press(*"wwwwwwww")  # finer than what was loaded
        self.browser.wait_for("return document.querySelector('.load-status.error:not([hidden])') !== null")
        self.assertIn(capture_id, self.text_of(".load-status"), "which capture is gone")
        self.browser.press("/")
        self.browser.press(*demo.BARRIER, "Enter")
        self.wait_for_text(".dock-body .notice.error", capture_id)
        self.browser.click(".top-bar .back")
        self.browser.wait_for("return document.querySelector('tbody tr') !== null")
        self.assertNotIn("short-lived", [row[1] for row in self.table_of(".manager")])
        self.browser.open(f"{self.api.origin}/capture/{capture_id}")
        self.wait_for_text("[role=alert]", capture_id)

    def test_capture_that_somebody_else_deletes_leaves_the_list(self):
        self.sign_in()
        capture_id = self.capture("for a moment", "300ms")
        wait_until(lambda: "for a moment" in [row[1] for row in self.table_of(".manager")], "the list to show it", SOON_S)
        self.fleet.cli("captures", "delete", capture_id)
        wait_until(lambda: "for a moment" not in [row[1] for row in self.table_of(".manager")], "the row to disappear", SOON_S)
        self.assertEqual(self.browser.console_errors(), [])

    # -- two people ------------------------------------------------------------------------------------------------

    def test_two_people_with_commands_of_their_own_work_on_one_fleet(self):
        page, address = self.fleet.start_page()
        self.addCleanup(page.stop)
        other, other_api = self.start_browser(), Api(address)
        self.assertNotEqual(other_api.origin, self.api.origin)
        other.open(address)
        other.wait_for("return document.querySelector('tbody tr') !== null")
        # One starts a capture on the page …
        self.sign_in()
        self.browser.click(".top-bar .primary")
        self.browser.type("#start-name", "of the first")
        self.browser.run("const box = document.getElementById('start-duration'); box.value = ''; box.focus()")
        self.browser.run("[...document.querySelectorAll('dialog button')].find(b => b.innerText === 'Start').click()")
        # … the other one sees it, and stops it …
        other.wait_for("return [...document.querySelectorAll('td.name')].some(cell => cell.innerText === 'of the first')")
        other.run("document.querySelector('[title=\"More actions for of the first\"]').click()")
        other.run("[...document.querySelectorAll('[role=menuitem]')].find(item => item.innerText.startsWith('Stop')).click()")
        # … and the first one sees that.
        state = ("return [...document.querySelectorAll('.manager tbody tr')].find(row => row.innerText.includes('of the first'))"
                 "?.innerText.includes('complete')")
        self.browser.wait_for(state)
        self.assertEqual(self.browser.console_errors() + other.console_errors(), [])

    def test_pages_of_two_commands_stay_signed_in_in_one_browser(self):
        page, address = self.fleet.start_page()
        self.addCleanup(page.stop)
        self.sign_in()
        self.browser.open(address)  # browsers send the cookies of a host to all of its ports
        self.browser.wait_for("return document.querySelector('tbody tr') !== null")
        self.browser.open(self.api.origin)
        self.browser.wait_for("return document.querySelector('tbody tr') !== null")
        # The session of one page is none of the other's.
        other = Api(address)
        other.origin = self.api.origin
        with self.assertRaises(urllib.error.HTTPError) as refused:
            other.get("/captures")
        refused.exception.close()
        self.assertEqual(refused.exception.code, 401)

    # -- links that lead nowhere -----------------------------------------------------------------------------------

    def test_links_with_nonsense_open_the_capture(self):
        self.open_timeline()
        whole = self.window()
        links = {
            "no times": {"from": "abc", "to": "-1"},
            "backwards": {"from": whole[1], "to": whole[0]},
            "long ago": {"from": 1, "to": 2},
            "beyond 64 bits": {"from": "9" * 20, "to": "9" * 20},
            "streams that are not there": {"open": "99999", "pin": "77777", "hide": "88888-88890", "span": "9999.1.1"},
            "wrong words": {"panel": "<b>", "metric": "<b>", "by": "colour", "tool": "99", "top": "1e99", "follow": "yes"},
            "ranges without an end": {"open": "1-999999999", "box": f"{whole[0]}.{whole[1]}.0-999999999"},
            "a search that is none": {"q": "rank:x dur>soon", "panel": "search"},
            "a long search": {"q": "x" * 5000, "panel": "search"},
            "markers": {"m": f"{whole[0]}.<img src=x onerror=alert(1)>"},
        }
        for name, query in links.items():
            with self.subTest(link=name):
                self.open_timeline(**query)
                self.assertGreater(len(self.lines()), 0)
                self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
                self.browser.press("Escape", "0")
                self.settle()
                for shown, expected in zip(self.window(), whole):
                    self.assertAlmostEqual(shown, expected, delta=(whole[1] - whole[0]) * 0.001)
                # A search that the aggregator refuses is logged by the browser as a failed request.
                errors = [error for error in self.browser.console_errors() if "/search?" not in error]
                self.assertEqual(errors, [])

    def test_captures_that_are_not_there_are_named(self):
        self.sign_in()
        unknown = self.capture_id[:-6] + "ZZZZZZ"
        for path, shown in {f"/capture/{unknown}": unknown, f"/capture/{unknown}/certificate": unknown,
                            "/capture/%3Cimg%20src=x%3E": "img", "/capture/%E0%A4%A": "E0%"}.items():
            with self.subTest(path=path):
                self.browser.open(self.api.origin + path)
                self.browser.wait_for("return document.querySelector('[role=alert]') !== null")
                self.assertIn(shown, self.text_of("#root"))
                self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
                self.browser.run("[...document.querySelectorAll('button')].find(b => b.innerText === 'All captures').click()")
                self.browser.wait_for("return document.querySelector('tbody tr') !== null")

    def test_other_paths_lead_to_the_list(self):
        self.sign_in()
        for path in ("/nowhere", f"/capture/{self.capture_id}/nothing", "/?tab=nothing&sort=%00&filter="):
            with self.subTest(path=path):
                self.browser.open(self.api.origin + path)
                self.browser.wait_for("return document.querySelector('.manager tbody tr') !== null")
                self.assertIn("demo", [row[1] for row in self.table_of(".manager")])
        self.assertEqual(self.browser.console_errors(), [])

    def test_running_capture_is_followed_stopped_and_deleted(self):
        capture_id = self.fleet.cli("capture", "start", "--name", "running").stdout.strip()
        self.sign_in()
        wait_until(lambda: "recording" in self.text_of("#manager-body"), "the list to show it")
        self.open_timeline(capture_id=capture_id)
        self.wait_for_text(".top-bar .state", "recording")
        self.browser.click(".follow")
        before = self.window()[1]
        wait_until(lambda: self.window()[1] > before, "the view to follow")
        self.fleet.cli("capture", "stop", capture_id)
        self.browser.wait_for("return !document.querySelector('.top-bar .state').innerText.includes('recording')")
        self.sign_in()
        self.browser.run("document.querySelector(`[title=\"More actions for running\"]`).click()")
        self.browser.run("[...document.querySelectorAll('[role=menuitem]')].find(b => b.innerText.startsWith('Delete')).click()")
        self.browser.type("#ask-text", "running")
        self.browser.press("Enter")
        wait_until(lambda: "running" not in [row[1] for row in self.table_of(".manager")], "the row to disappear")
        self.assertNotIn(capture_id, [c["capture_id"] for c in self.fleet.cli_json("captures")["captures"]])
        self.open_gone(capture_id)

    def open_gone(self, capture_id):
        self.browser.open(f"{self.api.origin}/capture/{capture_id}")
        self.wait_for_text("[role=alert]", capture_id)

    def test_page_returns_when_the_aggregator_does(self):
        self.sign_in()
        other = self.start_browser()
        self.open_timeline(other)
        self.assertEqual(self.fleet.aggregator.stop(), 0)
        self.wait_for_text("#manager-body .notice.error", "Try again")
        box = other.run("const box = document.querySelector('.canvas-box').getBoundingClientRect(); return [box.left, box.top]")
        other.move_to(box[0] + 300, box[1] + 200)
        other.press(*"wwwwwwwwww")
        other.wait_for("return document.querySelector('.load-status.error') !== null")
        self.fleet.start_aggregator()
        self.browser.wait_for("return document.querySelector('tbody tr') !== null")
        other.press("w")
        self.settle(other)
        self.fleet.wait_for_workers(len(self.fleet.workers))


if __name__ == "__main__":
    suite.main()
