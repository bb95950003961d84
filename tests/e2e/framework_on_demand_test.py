# SPDX-License-Identifier: Apache-2.0
"""Framework traces on demand: stand-ins for PyTorch's processes (kineto_worker.py) under the real agent. One records,
one is busy, one never asks; the outcomes are told apart in table, JSON, certificate and exit code."""

import json

import suite
from fleet_case import FleetCase
from ground_truth import read_events
from kineto_job import KinetoJob


class FrameworkOnDemandTest(FleetCase):

    def start_kineto_agent(self):
        self.fleet.start_aggregator()
        self.job = KinetoJob(self.fleet, "i-1")
        self.job.start_agent()
        self.fleet.wait_for_planning(1)
        self.traces = self.job.traces

    def capture(self, *options, code):
        done = self.fleet.cli("--output", "json", "capture", *options, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def outcomes_by_pid(self, capture):
        return {trace["worker"]["pid"]: trace["state"].removeprefix("FRAMEWORK_TRACE_STATE_")
                for status in capture["workers"] for trace in status.get("framework_traces", [])}

    def test_one_records_one_is_busy_and_one_never_asks(self):
        self.start_kineto_agent()
        good = self.job.start_worker("record", KINETO_USE_DAEMON="1")
        busy = self.job.start_worker("busy", KINETO_USE_DAEMON="1")
        silent = self.job.start_worker("record")
        self.fleet.wait_for_workers(3)
        capture = self.capture("--duration", "2s", "--framework", code=3)
        self.assertEqual(self.outcomes_by_pid(capture),
                         {good.pid: "FILE_SEEN", busy.pid: "BUSY", silent.pid: "NOT_LISTENING"})

        capture_id = capture["capture_id"]
        begin_ns = min(int(w["begun_realtime_ns"]) for w in capture["workers"] if int(w["begun_realtime_ns"]))
        files = list(self.traces.iterdir())
        self.assertEqual([file.name for file in files], [f"neurontrace-{capture_id}-{good.pid}_{good.pid}.pt.trace.json"])
        trace = json.loads(files[0].read_text(encoding="utf-8"))
        self.assertEqual(trace["trace_id"], capture_id)
        # The runtime begins at the planned moment, and the framework in the millisecond after it.
        asked_ns = min(event["ts"] for event in trace["traceEvents"]) * 1000
        self.assertLess(abs(asked_ns - begin_ns), 100_000_000)
        operators = sum("aten::mm" in json.dumps(row["event"])
                        for row in read_events(self.fleet.export_events(capture_id)))
        self.assertEqual(operators, 20, "two seconds of operators of 100 ms")

        table = self.fleet.cli("captures", "show", capture_id, check=False).stdout
        for pid, word in ((busy.pid, "busy"), (silent.pid, "not listening")):
            rows = [line for line in table.splitlines() if str(pid) in line.split()]
            self.assertTrue(any(word in row for row in rows), f"{pid}: {word} in\n{table}")
        self.assertIn("1 of 3 framework traces seen", table)
        self.assertIn("2 requested framework traces are missing", table)

    def test_all_record_and_the_capture_is_complete(self):
        self.start_kineto_agent()
        workers = [self.job.start_worker("record", KINETO_USE_DAEMON="1") for _ in range(2)]
        self.fleet.wait_for_workers(2)
        capture = self.capture("--duration", "1s", "--framework=pytorch", code=0)
        self.assertEqual(self.outcomes_by_pid(capture), {worker.pid: "FILE_SEEN" for worker in workers})

    def test_an_agent_that_does_not_ask_reports_it(self):
        self.start_instances("i-1")
        self.fleet.start_worker("i-1", "--cores", 1)
        self.fleet.wait_for_workers(1)
        capture = self.capture("--duration", "500ms", "--framework", code=3)
        self.assertEqual(list(self.outcomes_by_pid(capture).values()), ["FAILED"])
        self.assertIn("--kineto-dir", json.dumps(capture))

    def test_unknown_frameworks_and_endless_traces_are_refused(self):
        self.start_instances()
        for options, words in ((("--duration", "1s", "--framework=tensorflow"), "known are pytorch, xla"),
                               (("--framework",), "--duration"),
                               (("--duration", "1s", "--at-step", "next"), "--framework")):
            done = self.fleet.cli("capture", *options, check=False)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    suite.main()
