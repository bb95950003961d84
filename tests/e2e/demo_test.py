# SPDX-License-Identifier: Apache-2.0
"""The demo as a test: every event of the simulation is in the capture once, every rank is there once, and `neurontrace
why` names the planted straggler, or nobody if none is planted. In a terminal, the demo serves the page until Ctrl-C."""

import contextlib
import gzip
import http.cookiejar
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

import suite
from demo import STRAGGLER
from pftrace_reader import Pftrace


class Demo(unittest.TestCase):
    def run_demo(self, out, *options):
        """Returns what the demo prints, and its summary."""
        done = subprocess.run(
            [sys.executable, "-B", Path(__file__).with_name("demo.py"), "--build", os.environ["NT_BUILD_DIR"],
             "--out", out, *options], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, json.loads((Path(out) / "summary.json").read_text())

    def test_demo(self):
        with tempfile.TemporaryDirectory(prefix="neurontrace-demo-") as out:
            shown, summary = self.run_demo(out, "--duration", "2")
            self.check_summary(summary)
            self.check_named(Path(out), shown, summary)
            self.check_files(Path(out), summary)
            for line in ("Summary", "https://ui.perfetto.dev", f"neurontrace view {summary['capture_id']}"):
                self.assertIn(line, shown)
            self.assertEqual(summary["straggler_page"], f"/capture/{summary['capture_id']}?panel=why&why=all&verdict=0")

    def test_without_a_straggler_nobody_is_named(self):
        with tempfile.TemporaryDirectory(prefix="neurontrace-demo-") as out:
            shown, summary = self.run_demo(out, "--duration", "1", "--no-straggler")
            self.assertEqual((summary["planted_stragglers"], summary["stragglers_found"], summary["named"]), ([], [], []))
            self.assertEqual(summary["cores_judged"], 24)
            self.assertIn("who is slow      nobody is named (planted: nobody); 24 of 24 cores were judged", shown)
            self.assertEqual([track.name for track in Pftrace(Path(out) / "system_profile.pftrace").tracks
                              if track.name.endswith(" verdicts (derived)")], [])

    def test_demo_in_a_terminal_serves_the_page_until_an_interrupt(self):
        ours, theirs = pty.openpty()
        with tempfile.TemporaryDirectory(prefix="neurontrace-demo-") as out, os.fdopen(ours, "rb", buffering=0) as screen:
            demo = subprocess.Popen(
                [sys.executable, "-B", Path(__file__).with_name("demo.py"), "--build", os.environ["NT_BUILD_DIR"],
                 "--out", out, "--duration", "1"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
            os.close(theirs)
            self.addCleanup(self.end, demo)
            # The straggler's is the last: it is the one to open first.
            shown = self.read_screen(screen, rf"(?m)^rank {STRAGGLER} is slow  http://127\.0\.0\.1:\d+/capture/\S+\r$")
            straggler = re.search(r"is slow  (http\S+)\r", shown)[1]
            page = re.search(r"(?m)^whole capture +(http://127\.0\.0\.1:\d+/capture/\w+\?token=\w+)\r$", shown)[1]
            # Each link alone signs in, and the view stays in the address.
            self.assertRegex(self.open_page(page), r"/capture/\w+$")
            self.assertRegex(self.open_page(straggler), r"/capture/\w+\?panel=why&why=all&verdict=0$")
            os.killpg(demo.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
            self.assertEqual(demo.wait(30), 0, shown)

    def read_screen(self, screen, pattern):
        """Reads until the pattern is on the screen; the demo's own waits have deadlines."""
        shown = ""
        with contextlib.suppress(OSError):  # the demo ended
            while not re.search(pattern, shown):
                shown += screen.read(4096).decode(errors="replace")
        self.assertRegex(shown, pattern)
        return shown

    def open_page(self, address):
        """Returns where an address leads to in a fresh browser."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        with opener.open(address, timeout=20) as answer:
            body = answer.read()
            self.assertIn(b"neurontrace", gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body)
            final = answer.geturl()
        with opener.open("/".join(address.split("/")[:3]) + "/api/v1/captures", timeout=20) as answer:
            self.assertEqual(len(json.load(answer)["captures"]), 1)
        return final

    def end(self, demo):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)
        demo.wait()

    def check_summary(self, summary):
        self.assertEqual(summary["state"], "CAPTURE_STATE_COMPLETE")
        self.assertEqual((summary["instances"], summary["workers"], summary["cores"]), (3, 6, 24))
        self.assertEqual(summary["hosts_sampled"], 3)
        # One a second and one at the end.
        self.assertGreaterEqual(summary["host_memory_samples"], 3 * 2)
        self.assertEqual(summary["worker_gids"], list(range(24)), "each rank once")
        self.assertEqual(summary["events_lost"], 0)
        self.assertGreater(summary["events"], 24 * 2 * 1000)
        self.assertEqual(summary["events"], summary["ground_truth_events"])
        for name in ("ground_truth_missing", "ground_truth_extra", "ground_truth_twice"):
            self.assertEqual(summary[name], 0, name)
        self.assertEqual(summary["planted_stragglers"], [STRAGGLER])
        self.assertEqual(summary["stragglers_found"], [STRAGGLER])
        self.assertLess(summary["bytes_per_event"], 20)
        clocks = summary["clocks"]
        self.assertGreater(clocks["barriers"], 20)
        self.assertGreater(clocks["raw_apart_ns"], 3_000_000_000, "as they were planted")
        self.assertLessEqual(clocks["aligned_apart_ns"], clocks["bound_ns"])
        self.assertLess(clocks["aligned_usual_ns"], 1_000_000)
        self.assertEqual((clocks["beyond"], clocks["events_beyond_their_bound"]), (0, 0))

    def check_named(self, out, shown, summary):
        """The planted rank with its phase, in the demo's summary, in the summary of the capture and in the trace."""
        self.assertEqual(len(summary["named"]), 1, summary["named"])
        suspect = summary["named"][0]
        self.assertEqual((suspect["worker_gid"], suspect["phase"]), (STRAGGLER, "device"))
        self.assertIn(f"who is slow      worker_gid {STRAGGLER}: {suspect['kind']}, phase device "
                      f"(planted: worker_gid {STRAGGLER})", shown)
        self.assertGreaterEqual(" ".join(shown.split()).count(suspect["text"]), 2,
                                "by `neurontrace why`, which breaks lines, and in the summary")
        figures = (out / "figures.txt").read_text()
        self.assertTrue(figures.startswith("Answer\n"), figures[:200])
        self.assertIn(suspect["text"], " ".join(figures.split()))
        tracks = [track for track in Pftrace(out / "system_profile.pftrace").tracks
                  if track.name.endswith(" verdicts (derived)")]
        self.assertEqual([track.name.split("-")[0] for track in tracks], [f"gid{STRAGGLER}"])

    def check_files(self, out, summary):
        trace = Pftrace(out / "system_profile.pftrace")
        # Of each host's processors, beside the clocks.
        self.assertEqual(sum(track.name == "CPU average" for track in trace.tracks), 3)
        for counter in ("clock bound", "clock correction"):
            self.assertEqual(sum(track.name.startswith(counter) for track in trace.tracks), 3, counter)
        self.assertEqual(len(trace.events()), summary["spans"])
        processes = {entry.track.process for entry in trace.events()}
        self.assertEqual(len(processes), 6, processes)
        with open(out / "system_profile.json", encoding="utf-8") as file:
            spans = json.load(file)["trace_event"]
        gids = {int(span["worker_gid"]) for span in spans}
        self.assertEqual(gids, set(range(24)))
        # One core is of two physical ones, whose executions stand on rows of their own.
        physical = {}
        for span in spans:
            # What began before the capture did has lost its start, and with it its core.
            if span["name"].startswith("nc_exec_running") and "device_core_idx" in span:
                physical.setdefault(int(span["worker_gid"]), set()).add(span["device_core_idx"])
        self.assertEqual({gid: len(cores) for gid, cores in physical.items()},
                         {gid: 2 if gid < 4 else 1 for gid in range(24)})


if __name__ == "__main__":
    suite.main()
