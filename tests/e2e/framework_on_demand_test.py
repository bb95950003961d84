# SPDX-License-Identifier: Apache-2.0
"""Framework traces on demand: stand-ins for PyTorch's processes (kineto_worker.py) under the real agent. Two record,
one is busy, one never asks; the outcomes are told apart in table, JSON, certificate and exit code."""

import json

import suite
from fleet_case import FleetCase
from ground_truth import read_events
from kineto_job import KinetoJob


class FrameworkOnDemandTest(FleetCase):
    def capture(self, *options, code):
        done = self.fleet.cli("--output", "json", "capture", *options, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def outcomes_by_pid(self, capture):
        return {trace["worker"]["pid"]: trace["state"].removeprefix("FRAMEWORK_TRACE_STATE_")
                for status in capture["workers"] for trace in status.get("framework_traces", [])}

    def test_each_outcome_is_reported_and_a_capture_of_the_good_is_complete(self):
        """In one test, as each capture with frameworks is planned seven seconds ahead."""
        self.fleet.start_aggregator()
        job = KinetoJob(self.fleet, "i-1")
        job.start_agent()
        self.start_instances("i-2")  # whose agent does not ask
        self.fleet.wait_for_planning(2)
        good = [job.start_worker("record", KINETO_USE_DAEMON="1", NEURONTRACE_JOB="good", RANK=str(rank), WORLD_SIZE="2")
                for rank in range(2)]
        busy = job.start_worker("busy", KINETO_USE_DAEMON="1")
        silent = job.start_worker("record")
        unasked = self.fleet.start_worker("i-2", "--cores", 1)
        self.fleet.wait_for_workers(5)
        capture = self.capture("--duration", "2s", "--framework", code=3)
        self.assertEqual(self.outcomes_by_pid(capture),
                         {good[0].pid: "FILE_SEEN", good[1].pid: "FILE_SEEN", busy.pid: "BUSY", silent.pid: "NOT_LISTENING",
                          unasked.pid: "FAILED"})
        self.assertIn("--kineto-dir", json.dumps(capture))
        self.check_files(job, capture, good)
        self.check_table(capture, {busy: "busy", silent: "not listening", unasked: "failed"})

        complete = self.capture("--duration", "1s", "--framework=pytorch", "--job", "good", code=0)
        self.assertEqual(self.outcomes_by_pid(complete), {worker.pid: "FILE_SEEN" for worker in good})

    def check_files(self, job, capture, good):
        capture_id = capture["capture_id"]
        files = {file.name: file for file in job.traces.iterdir()}
        self.assertEqual(set(files), {f"neurontrace-{capture_id}-{worker.pid}_{worker.pid}.pt.trace.json" for worker in good})
        for file in files.values():
            trace = json.loads(file.read_text(encoding="utf-8"))
            self.assertEqual(trace["trace_id"], capture_id)
            # The frameworks are asked for the millisecond after the planned moment; one machine has one clock.
            asked_ns = min(event["ts"] for event in trace["traceEvents"]) * 1000
            self.assertLess(abs(asked_ns - int(capture["begin"]["reference_ns"])), 2_000_000)
        operators = sum("aten::mm" in json.dumps(row["event"])
                        for row in read_events(self.fleet.export_events(capture_id)))
        self.assertEqual(operators, 2 * 20, "two seconds of operators of 100 ms")

    def check_table(self, capture, outcomes):
        table = self.fleet.cli("captures", "show", capture["capture_id"], check=False).stdout
        for worker, outcome in outcomes.items():
            rows = [line for line in table.splitlines() if str(worker.pid) in line.split()]
            self.assertTrue(any(outcome in row for row in rows), f"{worker.pid}: {outcome} in\n{table}")
        self.assertIn("2 of 5 framework traces seen", table)
        self.assertIn("3 requested framework traces are missing", table)

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
