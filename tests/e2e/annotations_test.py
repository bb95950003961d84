# SPDX-License-Identifier: Apache-2.0
"""Annotations of a process, from NVTX to every export: each range has the name and the times that the program knows."""
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import suite
from fleet import Process
from fleet_case import FleetCase

HERE = Path(__file__).parent


class AnnotationsTest(FleetCase):
    def start_annotated(self, kind):
        """Starts a worker that annotates; returns the process and the file with its own times."""
        truth = self.fleet.dir / f"annotated-{kind}.tsv"
        runtime = self.fleet.build / "tests" / "fake_nrt" / "libnrt.so.1"
        worker = Process(
            f"annotated-{kind}",
            ["env", f"LD_PRELOAD={self.fleet.build / 'lib' / 'libneurontrace_tap.so'}", sys.executable, "-B",
             HERE / "annotated_worker.py", kind, truth, runtime], self.fleet.logs,
            env={"NEURONTRACE_AGENT_SOCKET": str(self.fleet.socket_of("i-0001")),
                 "NVTX_INJECTION64_PATH": str(self.fleet.build / "lib" / "libneurontrace_annotate.so")},
            stdin=subprocess.PIPE)
        self.addCleanup(lambda: (worker.popen.kill(), worker.popen.wait()))
        worker.wait_for_line("ready")
        return worker, truth

    def record(self, kind):
        """Records a worker that annotates; returns its pid, the capture and the events of the JSON export."""
        self.start_instances("i-0001")
        worker, truth = self.start_annotated(kind)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        self.fleet.wait_for_capture(capture_id, lambda c: self.annotations(c) > 100, "annotations in the store", 60)
        capture = self.stop_capture(capture_id)
        pid = worker.popen.pid
        worker.popen.stdin.close()
        self.assertEqual(worker.popen.wait(30), 0)
        events = [e for e in self.read_json(capture_id) if e.get("trace_event_source") == "annotation"]
        self.assertTrue(all(e["process_id"] == str(pid) for e in events), "of this process")
        steps = [[int(text) for text in line.split()] for line in truth.read_text().splitlines()]
        return capture_id, capture, events, steps

    @staticmethod
    def annotations(capture):
        return sum(int(s["events"]) for s in capture["streams"] if s["identity"]["kind"] == "STREAM_KIND_ANNOTATION")

    def read_json(self, capture_id, name="annotated"):
        path = self.fleet.dir / f"{name}.json"
        self.fleet.cli("export", capture_id, "--format", "json", "--clock", "raw", "-o", path)
        document = json.loads(path.read_text())
        return next(value for value in document.values() if isinstance(value, list) and value)

    def check(self, kind):
        capture_id, capture, events, steps = self.record(kind)
        self.assertNotIn("annotations that found no room", json.dumps(capture["certificate"]))
        by_name = {e["name"]: e for e in events if e["name"].startswith("step ")}
        inside = [s for s in steps if f"step {s[0]}" in by_name]
        self.assertGreater(len(inside), 20)
        self.assertEqual([s[0] for s in inside], list(range(inside[0][0], inside[-1][0] + 1)), "none is missing")
        for number, before_begin, after_begin, before_end, after_end in inside:
            event = by_name[f"step {number}"]
            begin = event["timestamp"]
            self.assertTrue(before_begin <= begin <= after_begin, event)
            if not event.get("open"):
                self.assertTrue(before_end <= begin + event["duration"] <= after_end, event)
        forward = [e for e in events if e["name"] == "forward" and not e.get("open")]
        self.assertGreater(len(forward), 20)
        for event in forward:
            self.assertEqual((event["category"], event["domain"]), ("phase", "train"))
            step = by_name[f"step {event['payload']}"]
            self.assertLessEqual(step["timestamp"], event["timestamp"], "inside its step")
        self.assertTrue(any(e["name"] == "half" and e.get("phase") == "instant" for e in events))
        self.check_other_formats(capture_id, len(inside))

    def check_other_formats(self, capture_id, steps):
        for form in ("perfetto", "chrome-json", "xspace", "events"):
            path = self.fleet.dir / f"annotated.{form}"
            self.fleet.cli("export", capture_id, "--format", form, "-o", path)
            files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
            self.assertTrue(any(b"forward" in file.read_bytes() for file in files), form)
        summary = self.fleet.dir / "annotated-summary.json"
        self.fleet.cli("export", capture_id, "--format", "summary-json", "-o", summary)
        self.assertIn('"framework"', summary.read_text(), f"{steps} steps of the worker")

    def test_ranges_by_the_tables_of_callbacks(self):
        self.check("stand-in")

    def test_ranges_by_the_package_nvtx(self):
        if importlib.util.find_spec("nvtx") is None:
            self.skipTest("the package nvtx is not installed: see scripts/setup")
        self.check("package")


if __name__ == "__main__":
    suite.main()
