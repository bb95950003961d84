# SPDX-License-Identifier: Apache-2.0
"""The demo as a test: every event of the simulation is in the capture once, every rank is there once, and the planted
straggler is found in the exported file."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import suite
from pftrace_reader import Pftrace


class Demo(unittest.TestCase):
    def test_demo(self):
        with tempfile.TemporaryDirectory(prefix="neurontrace-demo-") as out:
            done = subprocess.run(
                [sys.executable, "-B", Path(__file__).with_name("demo.py"), "--build", os.environ["NT_BUILD_DIR"],
                 "--out", out, "--duration", "2"], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            summary = json.loads((Path(out) / "summary.json").read_text())
            self.check_summary(summary)
            self.check_files(Path(out), summary)
            for line in ("Summary", "straggler", "https://ui.perfetto.dev"):
                self.assertIn(line, done.stdout)

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
        self.assertEqual(summary["straggler_found"], summary["planted_straggler"])
        self.assertLess(summary["bytes_per_event"], 20)
        clocks = summary["clocks"]
        self.assertGreater(clocks["barriers"], 20)
        self.assertGreater(clocks["raw_apart_ns"], 3_000_000_000, "as they were planted")
        self.assertLessEqual(clocks["aligned_apart_ns"], clocks["bound_ns"])
        self.assertLess(clocks["aligned_usual_ns"], 1_000_000)
        self.assertEqual((clocks["beyond"], clocks["events_beyond_their_bound"]), (0, 0))

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
