# SPDX-License-Identifier: Apache-2.0
"""What a person does on the page, in a real browser over a real fleet: the list, the timeline, search, selection, heat map."""

import json
import re
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import demo
import suite
from page_case import HOSTILE_NAME, HOSTILE_SHOWN, PICTURE, PageCase, shown_ns
from fleet import wait_until

TOLERANCE = 0.002  # of lengths that are shown with four digits


class Page(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hostile_id = cls.capture(HOSTILE_NAME, "300ms")

    # -- the list ------------------------------------------------------------------------------------------------

    def test_manager_lists_the_capture_and_opens_its_timeline(self):
        self.sign_in()
        row = self.row_of("demo")
        capture = self.api.get(f"/captures/{self.capture_id}")
        self.assertIn("complete", row["State"])
        self.assertEqual((row["Ranks"], row["Lost"]), (str(demo.WORLD), "0"))
        events = self.browser.run("return [...document.querySelectorAll('td span[title]')].map(span => span.title)")
        self.assertIn(f"{int(capture['events']):,}", events, "the exact count of events, at the rounded one")
        self.assertNotIn("token", self.browser.url, "the token left the address")
        self.browser.click(f"td.name a[title='{self.capture_id}']")
        self.settle()
        self.assertIn(f"/capture/{self.capture_id}?", self.browser.url)
        self.assertEqual(self.text_of("h1"), "demo")
        self.assertEqual(self.browser.console_errors(), [])

    def row_of(self, name):
        """A capture's cells by the titles of the columns."""
        titles = self.browser.run("return [...document.querySelectorAll('th')].map(cell => cell.innerText.trim().replace(/[▾▴]/, ''))")
        rows = [dict(zip(titles, row)) for row in self.table_of(".manager")]
        found = [row for row in rows if row["Name"] == name]
        self.assertEqual(len(found), 1, rows)
        return found[0]

    def test_list_is_filtered_by_words(self):
        self.sign_in()
        self.browser.type(".table-head input", "demo")
        self.wait_for_text(".table-head", r"1 of \d captures")
        self.assertEqual([row[1] for row in self.table_of(".manager")], ["demo"])
        self.assertIn("filter=demo", self.browser.url)

    def test_fleet_is_in_the_tabs_beside_the_captures(self):
        self.sign_in()
        for tab, texts in {"agents": demo.INSTANCES, "clocks": demo.INSTANCES, "workers": demo.INSTANCES}.items():
            self.browser.click(f"#tab-{tab}")
            self.browser.wait_for("return document.querySelector('#manager-body tbody tr') !== null")
            for text in texts:
                self.assertIn(text, self.text_of("#manager-body"), tab)
        self.browser.click("#tab-triggers")
        self.wait_for_text("#manager-body", "There are no triggers")
        self.browser.click("#tab-exports")
        self.wait_for_text("#manager-body", "No capture is exported by itself")

    def test_certificate_shows_how_complete_the_capture_is(self):
        self.sign_in()
        self.browser.open(f"{self.api.origin}/capture/{self.capture_id}/certificate")
        self.wait_for_text(".verdict", "Complete")
        certificate = self.api.get(f"/captures/{self.capture_id}/certificate")
        stored = int(certificate["account"]["stored"])
        self.assertRegex(self.text_of(".numbers"), rf"Stored\s+{stored:,}")
        self.assertEqual(len(self.table_of(".certificate")), len(certificate["workers"]))
        # The timeline has the same state as the list, and the certificate's sentence.
        self.open_timeline()
        self.wait_for_text(".top-bar .state", "^complete$")
        self.assertEqual(self.browser.run("return document.querySelector('.top-bar .state').title"),
                         certificate["verdict"])

    def test_hostile_name_is_shown_as_text(self):
        self.sign_in()
        self.assertIn(HOSTILE_SHOWN, [row[1] for row in self.table_of(".manager")])
        self.open_timeline(capture_id=self.hostile_id)
        self.assertEqual(self.text_of("h1"), HOSTILE_SHOWN)
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, b, script:not([src])').length"), 0)
        self.assertIn("neurontrace", self.browser.title)
        self.assertEqual(self.browser.console_errors(), [])

    # -- who may look ---------------------------------------------------------------------------------------------

    def refused(self, path, **headers):
        """The status and the error of a request without a session."""
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(self.api.origin + path, headers=headers), timeout=20).close()
        with caught.exception as error:
            return error.code, json.load(error)["error"]["code"]

    def test_api_asks_for_the_token(self):
        for path in ("/api/v1/captures", f"/api/v1/captures/{self.capture_id}/layout", "/api/v1/session"):
            self.assertEqual(self.refused(path), (401, "UNAUTHENTICATED"), path)
            self.assertEqual(self.refused(path, Cookie="neurontrace=" + "0" * 64), (401, "UNAUTHENTICATED"), path)
        self.assertEqual(self.refused("/api/v1/captures", Host="attacker.example"), (403, "PERMISSION_DENIED"))
        self.browser.open(self.api.origin)
        self.wait_for_text("#root", "(?i)token")
        self.assertEqual(self.browser.run("return document.querySelectorAll('table').length"), 0)

    # -- the timeline --------------------------------------------------------------------------------------------

    def test_timeline_has_a_line_for_each_rank_and_host(self):
        self.open_timeline()
        labels = [line["label"] for line in self.lines()]
        for gid in range(demo.WORLD):
            self.assertEqual(sum(label.startswith(f"gid{gid} ") for label in labels), 1, labels)
        self.assertEqual([line["label"] for line in self.lines() if line["level"] == 1], demo.INSTANCES)
        self.assertTrue(all("±" in line["meta"] for line in self.lines() if line["level"] == 1), "the clocks' bounds")
        self.assertEqual(self.browser.console_errors(), [])

    def test_spans_are_drawn_where_the_events_are(self):
        self.open_timeline()
        box = self.canvas()
        for line in self.lines():
            if line["label"].startswith("gid"):
                strip = self.pixels(box["left"], line["top"] + 1, box["width"], 13)
                self.assertGreater(strip["drawn"] / strip["pixels"], 0.1, line)
        # One barrier of the rank that is late, large: its pixels have a colour, and what lies before the capture has none.
        hit = self.barrier_of(demo.STRAGGLER)
        start, length = int(hit["start_ns"]), int(hit["duration_ns"])
        self.open_timeline(**{"from": start - 2 * length, "to": start + 3 * length, "open": hit["stream"]})
        top = self.row_line(hit)["top"] + 17 * self.depth_of(hit)
        inside = self.pixels(self.x_of(start + length * 0.2), top + 2, 0.1 * box["width"], 12)
        self.assertGreater(inside["drawn"] / inside["pixels"], 0.9, inside)
        begin = int(self.layout()["begin_ns"])
        self.open_timeline(**{"from": begin - 10**8, "to": begin + 10**8})
        before = self.pixels(box["left"] + 5, self.line_of("gid3 ")["top"] + 1, box["width"] * 0.4, 13)
        self.assertLess(before["drawn"] / before["pixels"], 0.01, "nothing but the lines of the ruler")

    def row_line(self, hit):
        """The line of a hit's row below its rank, which has to be open."""
        lines = self.lines()
        label = next(s["label"] for s in self.layout()["streams"] if s["number"] == hit["stream"])
        at = next(i for i, line in enumerate(lines) if line["label"] == label)
        rows = {row["row"]: row["name"] for row in self.rows_of(hit)}
        for line in lines[at + 1:]:
            if line["kind"] not in ("section", "row"):
                break
            if line["kind"] == "row" and rows[hit["row"]].endswith(line["label"]):
                return line
        self.fail(f"{rows[hit['row']]} is not below {label}: {lines}")
        return None

    def depth_of(self, hit):
        """How many events of its row are around it."""
        start = int(hit["start_ns"])
        events = self.view("events", streams=hit["stream"], **{"from": start, "to": start + 1})["events"]
        return sum(event["row"] == hit["row"] and int(event["start_ns"]) < start for event in events)

    def rows_of(self, hit):
        """The rows of a stream, from the header of an answer to /spans."""
        start = int(hit["start_ns"])
        return self.spans_header(start - 10**6, start + 10**7, hit["stream"])["rows"]

    def spans_header(self, begin, end, stream):
        # pylint: disable-next=protected-access
        with self.api._opener.open(f"{self.api.origin}/api/v1/captures/{self.capture_id}/spans?from={begin}&to={end}"
                                   f"&px=1600&streams={stream}", timeout=60) as answer:
            body = answer.read()
        self.assertEqual(body[:4], b"NTV1")
        return json.loads(body[8:8 + int.from_bytes(body[4:8], "little")])

    def test_click_on_a_span_shows_its_name_and_duration(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start, length = int(hit["start_ns"]), int(hit["duration_ns"])
        self.open_timeline(**{"from": start - 2 * length, "to": start + 3 * length, "open": hit["stream"]})
        self.browser.click_at(self.x_of(start + length / 2), self.row_line(hit)["top"] + 17 * self.depth_of(hit) + 8)
        self.wait_for_text(".details-head h2", demo.BARRIER)
        details = self.browser.run("return Object.fromEntries([...document.querySelectorAll('.details dt')]"
                                   ".map(term => [term.innerText.trim(), term.nextElementSibling.innerText.trim()]))")
        self.assertAlmostEqual(shown_ns(details["Duration"]), length, delta=length * TOLERANCE + 1)
        self.assertIn(f"gid{demo.STRAGGLER} ", details["Rank"])
        self.assertIn("±", details["Clock bound"])
        self.assertIn(f"{hit['start_ns']} ns", self.text_of(".details"))
        self.browser.wait_for("return location.search.includes('span=')")
        self.browser.press("Escape", "Escape")
        self.browser.wait_for("return !location.search.includes('span=')")

    def head_of_arrow(self, event):
        """Pixels of an arrow's head at the begin of an event, left of its row's span."""
        x, y = self.x_of(event["start_ns"]), self.row_line(event)["top"] + 17 * self.depth_of(event) + 8
        return self.link_pixels(x - 7, y - 3, 5, 7)

    def test_link_leads_from_a_runtime_call_to_its_execution_with_an_arrow(self):
        hits = self.view("search", q=f"name:nrt_execute rank:{demo.STRAGGLER}")["hits"]
        call = sorted(hits, key=lambda hit: int(hit["start_ns"]))[len(hits) // 2]
        links = self.view("links", event=call["id"])
        run = next(link for link in links["links"] if link["name"] == "nc_exec_running")
        self.assertEqual((run["kind"], run["direction"]), ("exec_id", "downstream"))
        start, end = int(call["start_ns"]), max(int(links["event"]["end_ns"]), int(run["end_ns"]))
        self.open_timeline(**{"from": start - (end - start) // 4, "to": end + (end - start) // 4,
                              "open": call["stream"], "filter": f"rank:{demo.STRAGGLER}"})
        self.assertEqual(self.head_of_arrow(run), 0, "nothing is chosen")
        middle = (start + int(links["event"]["end_ns"])) / 2
        self.browser.click_at(self.x_of(middle), self.row_line(call)["top"] + 17 * self.depth_of(call) + 8)
        self.wait_for_text(".details-head h2", "nrt_execute")
        self.wait_for_text(".links-section h3", rf"Links \({len(links['links'])}\)")
        self.browser.move_to(300, 10)  # the line at the pointer must not be taken for an arrow
        self.settle()
        wait_until(lambda: self.head_of_arrow(run) > 4, "the arrow's head at the execution")
        self.browser.run("[...document.querySelectorAll('.links button.link')]"
                         ".find(button => button.innerText === 'nc_exec_running').click()")
        self.wait_for_text(".details-head h2", "nc_exec_running")
        # Clocks that are not final yet move times by far less than their bound between two answers.
        shown = int(re.search(r"Unix time\s+(\d+) ns", self.text_of(".details"))[1])
        self.assertLess(abs(shown - int(run["start_ns"])), 10_000)
        self.browser.wait_for("return location.search.includes(arguments[0])", run["id"])
        self.wait_for_text(".links-section .links", "nrt_execute")
        self.browser.press("u")
        self.wait_for_text(".chain", "(?s)kbl_exec_pre.*nrt_execute")
        # And what depends on the call, the other way.
        self.browser.run("[...document.querySelectorAll('.links button.link')]"
                         ".find(button => button.innerText === 'nrt_execute').click()")
        self.wait_for_text(".details-head h2", "nrt_execute")
        self.browser.press("j")
        self.wait_for_text(".chain", "nc_exec_running")
        self.assertEqual(self.browser.console_errors(), [])

    def test_search_finds_the_barriers_and_jumps_to_one(self):
        self.open_timeline()
        expected = self.view("search", q=f"name:{demo.BARRIER}")
        self.browser.press("/")
        self.browser.type(".search-input", f"name:{demo.BARRIER}")
        self.browser.press("Enter")
        self.wait_for_text(".dock-body", rf"{int(expected['total']):,} events")
        self.wait_for_text(".dock-body", rf"on {demo.WORLD} ranks")
        self.assertTrue(all(row[0] == demo.BARRIER for row in self.table_of(".dock-body")))
        before = self.window()
        self.browser.press("Enter")  # the first hit
        self.wait_for_text(".search-count", r"^1 / \d+")
        self.browser.press("Enter")
        self.wait_for_text(".search-count", r"^2 / \d+")
        self.browser.wait_for("return location.search.includes('span=')")
        self.settle()
        begin, end = self.window()
        self.assertLess(end - begin, before[1] - before[0], "zoomed in")
        second = sorted(expected["hits"], key=lambda hit: int(hit["start_ns"]))[1]
        self.assertTrue(begin <= int(second["start_ns"]) <= end, (begin, second, end))

    def test_search_without_a_hit_is_explained(self):
        self.open_timeline(q="nothing-has-this-name", panel="search")
        self.wait_for_text(".dock-body", "No event matches nothing-has-this-name")

    def test_keys_zoom_and_pan_and_the_address_follows(self):
        self.open_timeline()
        box = self.canvas()
        begin, end = self.window()
        self.browser.move_to(box["left"] + box["width"] / 2, box["top"] + 200)
        self.browser.press("w")
        self.settle()
        zoomed = self.window()
        self.assertAlmostEqual((end - begin) / (zoomed[1] - zoomed[0]), 1.35, delta=0.01)
        self.assertTrue(begin < zoomed[0] < zoomed[1] < end)
        self.browser.press("d")
        self.settle()
        self.assertGreater(self.window()[0], zoomed[0])
        self.browser.press("a", "s")
        self.settle()
        self.assertAlmostEqual(self.window()[1] - self.window()[0], end - begin, delta=(end - begin) * 0.01)
        self.browser.press("w", "w", "0")
        self.settle()
        self.assertEqual(self.window(), (begin, end))

    def test_tools_pan_zoom_and_measure(self):
        middle = int(self.barrier_of(demo.STRAGGLER)["start_ns"])
        self.open_timeline(**{"from": middle - 10**8, "to": middle + 10**8})
        box, y = self.canvas(), self.line_of("gid12 ")["top"] + 8
        begin, end = self.window()
        length = end - begin

        def drag(tool, from_share, to_share):
            self.browser.press(tool)
            self.browser.drag(box["left"] + box["width"] * from_share, y, box["left"] + box["width"] * to_share, y)

        drag("2", 0.6, 0.35)
        self.settle()
        panned = self.window()
        self.assertAlmostEqual(panned[0] - begin, length * 0.25, delta=length * 0.01)
        self.assertAlmostEqual(panned[1] - panned[0], length, delta=length * 0.01)
        drag("3", 0.25, 0.75)
        self.settle()
        zoomed = self.window()
        self.assertAlmostEqual(zoomed[0], panned[0] + length * 0.25, delta=length * 0.01)
        self.assertAlmostEqual(zoomed[1], panned[0] + length * 0.75, delta=length * 0.01)
        drag("4", 0.2, 0.4)
        self.assertEqual(self.browser.run("return document.querySelector('.segments [aria-pressed=true]').title"),
                         "Measure time (4)")
        self.browser.wait_for("return location.search.includes('box=')")
        measured = [int(part) for part in self.state_of_url()["box"].split(".")[:2]]
        self.assertAlmostEqual(measured[1] - measured[0], length * 0.1, delta=length * 0.01)
        self.wait_for_text(".dock-body", r"[\d,]+ events")
        # The wheel zooms at the pointer.
        self.browser.run("""const [x, y] = arguments;
            document.elementFromPoint(x, y).dispatchEvent(new WheelEvent('wheel', {
                deltaY: -240, clientX: x, clientY: y, bubbles: true, cancelable: true}));""",
                         box["left"] + box["width"] / 2, y)
        self.settle()
        self.assertLess(self.window()[1] - self.window()[0], (zoomed[1] - zoomed[0]) * 0.95)

    def test_comma_and_full_stop_step_along_a_row(self):
        hit = self.barrier_of(demo.STRAGGLER)
        first = f"{hit['stream']}.{hit['row']}.{hit['start_ns']}"
        start = int(hit["start_ns"])
        # Near enough that no span is merged with others.
        self.open_timeline(**{"from": start - 3 * 10**6, "to": start + 3 * 10**6, "open": hit["stream"],
                              "panel": "details", "span": first})
        self.wait_for_text(".details-head h2", demo.BARRIER)
        begin_of_chosen = "return Number(new URLSearchParams(location.search).get('span')?.split('.')[2] ?? 0)"
        self.browser.press(".")
        self.browser.wait_for(f"{begin_of_chosen} > arguments[0]", start + 1000)
        self.browser.press(",")
        self.browser.wait_for(f"{begin_of_chosen} < arguments[0]", start + 1000)
        self.wait_for_text(".details-head h2", demo.BARRIER)

    def test_overview_moves_the_window(self):
        layout = self.layout()
        begin, end = int(layout["begin_ns"]), int(layout["end_ns"])
        length = end - begin
        self.open_timeline(**{"from": begin, "to": begin + length // 10})
        place = self.browser.run("const box = document.querySelector('canvas.minimap').getBoundingClientRect();"
                                 "return {left: box.left, top: box.top, width: box.width, height: box.height}")
        self.browser.click_at(place["left"] + place["width"] * 0.75, place["top"] + place["height"] / 2)
        self.settle()
        shown = self.window()
        self.assertAlmostEqual(sum(shown) / 2, begin + length * 0.75, delta=length * 0.02)
        self.assertAlmostEqual(shown[1] - shown[0], length / 10, delta=length * 0.01)

    def test_box_adds_up_what_lies_in_it(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start = int(hit["start_ns"])
        self.open_timeline(**{"from": start - 10**8, "to": start + 10**8})
        box, first, last = self.canvas(), self.line_of("gid12 "), self.line_of("gid14 ")
        self.browser.drag(box["left"] + box["width"] * 0.3, first["top"] + 8, box["left"] + box["width"] * 0.7, last["top"] + 8)
        self.browser.wait_for("return document.querySelector('.dock-body tbody tr') !== null")
        self.browser.wait_for("return location.search.includes('box=')")
        begin, end, streams = self.state_of_url()["box"].split(".")
        chosen = {self.ranks()[gid]["number"] for gid in (12, 13, 14)}
        first_number, last_number = (int(part) for part in streams.split("-"))
        self.assertEqual(set(range(first_number, last_number + 1)), chosen)
        query = {"streams": ",".join(map(str, sorted(chosen))), "from": begin, "to": end}
        summary = self.view("summary", by="name", **query)
        self.assertTrue(summary["complete"])
        shown = {row[0]: int(row[1].replace(",", "")) for row in self.table_of(".dock-body")}
        self.assertEqual(shown, {row["name"]: int(row["count"]) for row in summary["rows"]})
        self.assertGreater(shown[demo.BARRIER], 0)
        self.assertIn(f"{int(summary['events']):,} events", self.text_of(".dock-body"))
        self.browser.run("[...document.querySelectorAll('.dock-body button')].find(b => b.innerText === 'By rank').click()")
        self.wait_for_text(".dock-body thead", "Rank")
        by_rank = {row[0]: int(row[1].replace(",", "")) for row in self.table_of(".dock-body")}
        self.assertEqual(len(by_rank), 3)
        self.assertEqual(sum(by_rank.values()), int(summary["events"]))

    def test_ctrl_adds_spans_to_a_selection_and_removes_them(self):
        gid = demo.STRAGGLER - 1  # which waits long for the straggler, so that both spans are wide enough for a click
        hits = self.view("search", q=f"name:{demo.BARRIER} rank:{gid}")["hits"]
        first, second = sorted(hits, key=lambda hit: int(hit["start_ns"]))[len(hits) // 2:][:2]
        lengths = [int(hit["duration_ns"]) for hit in (first, second)]
        self.open_timeline(**{"from": int(first["start_ns"]) - lengths[0],
                              "to": int(second["start_ns"]) + 2 * lengths[1], "open": first["stream"],
                              "filter": f"rank:{gid}"})
        y = self.row_line(first)["top"] + 17 * self.depth_of(first) + 8
        places = [self.x_of(int(hit["start_ns"]) + length / 2) for hit, length in zip((first, second), lengths)]
        self.browser.click_at(places[0], y)
        self.wait_for_text(".details-head h2", demo.BARRIER)
        self.browser.click_with("Control", places[1], y)
        self.wait_for_text(".dock-body", "2 picked spans")
        row = self.table_of(".dock-body")[0]
        self.assertEqual(row[:2], [demo.BARRIER, "2"])
        self.assertAlmostEqual(shown_ns(row[2]), sum(lengths), delta=sum(lengths) * TOLERANCE + 2)
        self.browser.wait_for("return location.search.match(/[?&]pick=/g)?.length === 2")
        self.browser.click_with("Control", places[1], y)
        self.wait_for_text(".dock-body", r"1 picked span\b")

    def test_heat_map_shows_the_rank_that_is_late(self):
        self.open_timeline(panel="heat", metric="wait")
        self.browser.wait_for("return document.querySelector('.heat-canvas') !== null")
        self.settle()
        self.assertGreater(self.browser.run("""const canvas = document.querySelector('.heat-canvas');
            const data = canvas.getContext('2d').getImageData(60, 0, canvas.width - 60, canvas.height - 20).data, seen = new Set();
            for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());
            return seen.size;"""), 5, "colours")
        box = self.browser.run("const box = document.querySelector('.heat-canvas').getBoundingClientRect();"
                               "return {left: box.left, top: box.top, width: box.width, height: box.height}")
        self.browser.click_at(box["left"] + 46 + (box["width"] - 46) * 0.5, box["top"] + (box["height"] - 18) * (13.5 / 24))
        self.wait_for_text(".heat-readout", "gid13 ")
        self.settle()
        self.assertIn("open", self.state_of_url(), "the rank of the cell is open")
        begin, end = self.window()
        layout = self.layout()
        self.assertLess(end - begin, (int(layout["end_ns"]) - int(layout["begin_ns"])) / 10, "near the cell's time")

    def heat_box(self):
        return self.browser.run("const box = document.querySelector('.heat-canvas').getBoundingClientRect();"
                                "return {left: box.left, top: box.top, width: box.width, height: box.height}")

    def open_heat_map(self, **query):
        self.open_timeline(panel="heat", **query)
        self.browser.wait_for("return document.querySelector('.heat-canvas') !== null")
        self.settle()

    def strongest_of_lines(self, lines):
        """For each line of the heat map how orange its strongest cell is, and where that is on the screen."""
        return self.browser.run("""const canvas = document.querySelector('.heat-canvas'), lines = arguments[0];
            const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width, found = [];
            for (let line = 0; line < lines; ++line) {
              const y = (line + 0.5) / lines * (box.height - 18);
              const data = canvas.getContext('2d').getImageData(0, Math.floor(y * scale), canvas.width, 1).data;
              let best = [-256, 0];
              for (let x = Math.ceil(48 * scale); x < canvas.width; ++x) {
                const orange = data[x * 4] - data[x * 4 + 2];
                if (orange > best[0]) best = [orange, box.left + (x + 0.5) / scale];
              }
              found.push([...best, box.top + y]);
            }
            return found;""", lines)

    def test_heat_maps_of_lateness_and_steps_have_their_worst_cell_at_the_late_rank(self):
        layout, rank = self.layout(), self.ranks()[demo.STRAGGLER]
        begin, end = int(layout["begin_ns"]), int(layout["end_ns"])
        for metric, by in (("late", "time"), ("late", "step"), ("step", "time"), ("step", "step")):
            with self.subTest(metric=metric, by=by):
                self.open_heat_map(metric=metric, by=by)
                found = self.strongest_of_lines(demo.WORLD)
                strengths = [strength for strength, _, _ in found]
                late = strengths.pop(demo.STRAGGLER)
                self.assertGreater(late, max(strengths), "no other rank is as late")
                _, x, y = found[demo.STRAGGLER]
                box = self.heat_box()
                self.browser.move_to(x, y)
                self.wait_for_text(".heat-tip", "^gid13 ")
                difference = re.search(r"\+([\d.,]+ (?:ns|µs|ms)) against the median", self.text_of(".heat-tip"))
                self.assertGreater(shown_ns(difference[1]), demo.STRAGGLER_US * 500)
                self.assertIn("bound ±", self.text_of(".heat-tip"))
                self.browser.click_at(x, y)
                self.settle()
                self.assertEqual(self.state_of_url()["open"], str(rank["number"]), "the rank of the cell is open")
                first, last = self.window()
                self.assertLess(last - first, (end - begin) / 5, "near the cell's time")
                if by == "time":
                    at = begin + (x - box["left"] - 46) / (box["width"] - 46) * (end - begin)
                    self.assertTrue(first <= at <= last, (first, at, last))

    def test_heat_map_sorts_by_the_worst_rank_and_finds_it_by_a_key(self):
        self.open_heat_map(metric="late", sort="worst")
        self.assertIn("median", self.text_of(".heat-legend"))
        self.assertIn("not why", self.text_of(".heat-legend"))
        self.assertEqual(self.state_of_url()["sort"], "worst")
        box = self.heat_box()
        self.browser.move_to(box["left"] + box["width"] / 2, box["top"] + (box["height"] - 18) / demo.WORLD / 2)
        self.wait_for_text(".heat-tip", "^gid13 ")
        self.browser.run("document.querySelector('.heat-canvas').focus()")
        self.browser.press("w")
        self.wait_for_text(".heat-readout", r"^gid13 .*\+.* against the median")

    def test_tree_opens_pins_hides_and_filters(self):
        self.open_timeline()
        line = self.line_of("gid13 ")
        self.browser.click_at(60, line["top"] + 8)
        self.settle()
        self.assertGreater(sum(line["kind"] == "row" for line in self.lines()), 0, "rows of the rank")
        self.browser.press("p")
        self.settle()
        self.assertEqual(self.lines()[0]["label"], line["label"], "at the top")
        self.browser.press("h")
        self.settle()
        self.assertNotIn(line["label"], [other["label"] for other in self.lines()])
        self.browser.type(".filter-box input", demo.INSTANCES[2])
        self.settle()
        self.assertEqual([line["label"] for line in self.lines() if line["level"] == 1], demo.INSTANCES[2:])
        self.assertIn("filter=", self.browser.url)

    def test_grouping_by_row_name_puts_the_rows_of_all_ranks_together(self):
        self.open_timeline(group="name")
        wait_until(lambda: any(line["kind"] == "group" and line["label"] == "neuron_rt" for line in self.lines()),
                   "the rows to be known")
        lines = self.lines()
        at = next(i for i, line in enumerate(lines) if line["label"] == "neuron_rt")
        members = [line["label"] for line in lines[at + 1:at + 4]]
        self.assertEqual([label.split(" ")[0] for label in members], ["gid0", "gid1", "gid2"])
        self.browser.click(".group-menu")
        self.browser.run("[...document.querySelectorAll('[role=menuitem]')].find(b => b.innerText.startsWith('By Rank')).click()")
        self.settle()
        self.assertEqual(self.state_of_url()["group"], "rank")
        first = [line["label"].split(" ")[0] for line in self.lines()[:demo.WORLD]]
        self.assertEqual(first, [f"gid{gid}" for gid in range(demo.WORLD)])

    def test_ranks_are_below_their_process(self):
        self.open_timeline()
        processes = {stream["process"] for stream in self.layout()["streams"] if stream["gid"] is not None}
        shown = [line["label"] for line in self.lines() if line["kind"] == "group" and line["level"] == 2]
        self.assertEqual(len(shown), len(demo.INSTANCES) * demo.WORKERS_PER_INSTANCE)
        self.assertEqual(set(shown), processes)

    def test_single_row_is_hidden_restored_and_pinned(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start = int(hit["start_ns"])
        self.open_timeline(**{"from": start - 10**7, "to": start + 10**7, "open": hit["stream"]})
        line = self.row_line(hit)
        self.browser.click_at(80, line["top"] + 8)
        self.browser.press("h")
        self.settle()
        self.assertNotIn(line["label"], [other["label"] for other in self.lines() if other["kind"] == "row"])
        self.assertEqual(self.state_of_url()["hiderow"], f"{hit['stream']}.{hit['row']}")
        self.browser.open(self.browser.url)  # a link has it too
        self.settle()
        self.assertNotIn(line["label"], [other["label"] for other in self.lines() if other["kind"] == "row"])
        self.browser.run("[...document.querySelectorAll('.filter-box button')].find(b => b.innerText.includes('hidden')).click()")
        self.browser.run("[...document.querySelectorAll('[role=menuitem]')]"
                         ".find(b => b.innerText.includes(arguments[0])).click()", line["label"])
        self.settle()
        self.assertNotIn("hiderow", self.state_of_url())
        self.browser.click_at(80, self.row_line(hit)["top"] + 8)
        self.browser.press("p")
        self.settle()
        self.assertTrue(self.lines()[0]["label"].endswith(line["label"]), self.lines()[0])
        self.assertIn(f"gid{demo.STRAGGLER} ", self.lines()[0]["label"])

    def test_sections_of_a_rank_collapse_on_all_ranks(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start = int(hit["start_ns"])
        self.open_timeline(**{"from": start - 10**7, "to": start + 10**7, "open": hit["stream"]})
        titles = [line["label"] for line in self.lines() if line["kind"] == "section"]
        self.assertEqual(titles[:2], ["Runtime threads", "Hardware"])
        before = sum(line["kind"] == "row" for line in self.lines())
        self.browser.click(".group-menu")
        self.browser.run("[...document.querySelectorAll('[role=menuitem]')]"
                         ".find(b => b.innerText.startsWith('Collapse Hardware')).click()")
        self.settle()
        self.assertEqual(self.state_of_url()["sections"], "hardware")
        self.assertLess(sum(line["kind"] == "row" for line in self.lines()), before)

    def test_worker_draws_the_same_pixels_as_the_page(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start, length = int(hit["start_ns"]), int(hit["duration_ns"])
        view = {"from": start - 2 * length, "to": start + 3 * length, "open": hit["stream"], "filter": f"rank:{demo.STRAGGLER}"}
        self.open_timeline(**view)
        self.browser.wait_for("return document.querySelector('canvas.spans').dataset.painter === 'worker'"
                              " && document.querySelectorAll('canvas.spans').length === 1")
        top = self.row_line(hit)["top"] + 17 * self.depth_of(hit)
        inside = self.pixels(self.x_of(start + length * 0.2), top + 2, 0.1 * self.canvas()["width"], 12)
        self.assertGreater(inside["drawn"] / inside["pixels"], 0.9, "the barrier")
        other = self.start_browser()
        other.devtools("Page.addScriptToEvaluateOnNewDocument",
                       source="delete HTMLCanvasElement.prototype.transferControlToOffscreen")
        self.sign_in(other)
        other.open(self.browser.url)
        self.settle(other)
        self.assertEqual(other.run("return document.querySelector('canvas.spans').dataset.painter"), "page")
        self.assertEqual(self.browser.run(PICTURE), other.run(PICTURE))
        self.assertEqual(self.browser.console_errors() + other.console_errors(), [])

    def test_markers_have_names_and_differences(self):
        self.open_timeline()
        box = self.canvas()
        for share in (0.3, 0.6):
            self.browser.move_to(box["left"] + box["width"] * share, box["top"] + 100)
            self.browser.press("m")
        self.browser.wait_for("return location.search.match(/[?&]m=/g)?.length === 2")
        begin, end = self.window()
        self.assertTrue(any(abs(float(n) - 0.3 * (end - begin)) < 0.01 * (end - begin) for n in self.differences()), self.differences())

    def differences(self):
        """Every length of time in the table of markers, in nanoseconds."""
        found = []
        for row in self.table_of(".dock-body"):
            for cell in row:
                try:
                    found.append(abs(shown_ns(cell)))
                except AssertionError:
                    continue
        return found

    def test_two_people_see_the_same_view_by_a_link_and_move_on_their_own(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start = int(hit["start_ns"])
        other = self.start_browser()
        self.sign_in(other)
        self.open_timeline(**{"from": start - 10**7, "to": start + 10**7, "open": hit["stream"], "panel": "table"})
        other.open(self.browser.url)
        self.settle(other)
        self.assertEqual(self.lines(), self.lines(other))
        self.assertEqual(self.window(), self.window(other))
        pictures = [browser.run(PICTURE) for browser in (self.browser, other)]
        self.assertEqual(*pictures)
        other.press("w", "w")
        self.settle(other)
        self.browser.press("d")
        self.settle()
        self.assertNotEqual(self.window(), self.window(other))
        self.assertEqual(self.browser.console_errors() + other.console_errors(), [])

    # -- a capture's life ----------------------------------------------------------------------------------------

    def choose(self, capture_id, label):
        """Chooses an entry of a capture's menu."""
        self.browser.run("document.querySelector(`td.name a[title='${arguments[0]}']`).closest('tr')"
                         ".querySelector('.menu button').click()", capture_id)
        self.browser.run("[...document.querySelectorAll('[role=menuitem]')]"
                         ".find(item => item.innerText.startsWith(arguments[0])).click()", label)

    def press_star(self, capture_id):
        self.browser.run("document.querySelector(`td.name a[title='${arguments[0]}']`).closest('tr')"
                         ".querySelector('td.star button').click()", capture_id)

    def stored(self, capture_id):
        capture = self.fleet.show_capture(capture_id)
        return capture["spec"]["name"], capture["starred"], capture["tags"]

    def test_capture_is_renamed_starred_and_tagged(self):
        capture_id = self.capture("draft", "300ms")
        self.assertEqual(self.api.get(f"/captures/{capture_id}/layout")["capture"]["name"], "draft")
        self.sign_in()
        self.choose(capture_id, "Rename")
        self.browser.press(*"night run", "Enter")  # the old name is selected
        wait_until(lambda: "night run" in [row[1] for row in self.table_of(".manager")], "the new name")
        self.assertEqual(self.api.get(f"/captures/{capture_id}/layout")["capture"]["name"], "night run")
        self.press_star(capture_id)
        self.browser.wait_for("return document.querySelector('td.star button[aria-pressed=true]') !== null")
        self.choose(capture_id, "Tags")
        self.browser.press(*"needs review, <b>x</b>", "Enter")
        wait_until(lambda: "needs review" in self.row_of("night run")["Tags"], "the tags")
        self.assertEqual(self.stored(capture_id), ("night run", True, ["<b>x</b>", "needs review"]))
        self.assertEqual(self.browser.run("return document.querySelectorAll('td b').length"), 0)
        # What somebody else adds while the dialog is open stays.
        self.choose(capture_id, "Tags")
        self.fleet.cli("captures", "tag", capture_id, "from elsewhere")
        self.browser.press(*"needs review", "Enter")
        wait_until(lambda: "<b>x</b>" not in self.row_of("night run")["Tags"], "the tag to disappear")
        self.assertEqual(self.stored(capture_id)[2], ["from elsewhere", "needs review"])
        self.browser.run("[...document.querySelectorAll('button.tag')].find(tag => tag.innerText === 'needs review').click()")
        self.wait_for_text(".table-head", r"1 of \d+ captures")
        self.assertEqual(self.state_of_url()["filter"], 'tag:"needs review"')
        # Refusals are shown, and the list stays as it is.
        self.choose(capture_id, "Tags")
        self.browser.press(*"trigger=x", "Enter")
        self.wait_for_text(".toast.error", "The tags were not changed: .*trigger.* is reserved")
        self.assertEqual(self.stored(capture_id)[2], ["from elsewhere", "needs review"])
        self.browser.run("document.querySelector('.toast.error button').click()")
        self.choose(capture_id, "Rename")
        self.fleet.cli("captures", "delete", capture_id)
        self.browser.press(*"too late", "Enter")
        self.wait_for_text(".toast.error", f"The capture was not renamed: no capture has an id that begins with .{capture_id}")

    def test_export_menu_saves_files_of_the_window(self):
        hit = self.barrier_of(demo.STRAGGLER)
        start = int(hit["start_ns"])
        self.open_timeline(**{"from": start - 10**8, "to": start + 10**8})
        with tempfile.TemporaryDirectory(prefix="nt-downloads-") as name:
            folder = Path(name)
            self.browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=name)
            for label, pattern in {"Window as Perfetto trace": "*.pftrace", "Summary": "*.summary.txt",
                                   "Table of the view": "*.csv", "Picture of the view": "*.png"}.items():
                self.browser.click(".top-bar .menu button")
                self.browser.run("[...document.querySelectorAll('[role=menuitem]')]"
                                 ".find(item => item.innerText.startsWith(arguments[0])).click()", label)
                wait_until(lambda wanted=pattern: list(folder.glob(wanted)), f"{label} to be saved")
            self.fleet.cli("validate", next(folder.glob("*.pftrace")))
            self.assertIn(f"gid{demo.STRAGGLER}", next(folder.glob("*.summary.txt")).read_text().replace(" ", ""))
            self.assertIn(demo.BARRIER, next(folder.glob("*.csv")).read_text(encoding="utf-8"))
            self.assertEqual(next(folder.glob("*.png")).read_bytes()[1:4], b"PNG")
        self.assertEqual(self.text_of("h1"), "demo", "the page is still there")


if __name__ == "__main__":
    suite.main()
