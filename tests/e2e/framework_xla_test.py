# SPDX-License-Identifier: Apache-2.0
"""Traces of jax and torch_xla on demand: stand-ins for their processes (xla_worker.cc) under the real agent. One
records, one is busy, one answers nonsense, one ends while it records, one serves nothing; the outcomes are told apart,
and the steps of the trace are those of the worker, on its clock."""

import json
import socket
import subprocess

import suite
from fleet import Process
from fleet_case import FleetCase
from ground_truth import read_events


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class FrameworkXlaTest(FleetCase):

    def start_agent_with_traces(self):
        self.traces = self.fleet.dir / "traces"
        self.traces.mkdir()
        self.start_instances("i-1", agent_options=("--framework-dir", self.traces))
        self.fleet.wait_for_planning(1)

    def start_xla(self, kind):
        tests = self.fleet.build / "tests"
        libraries = [self.fleet.build / "lib" / "libneurontrace_tap.so", tests / "fake_nrt" / "libnrt.so.1"]
        environment = {"NEURONTRACE_AGENT_SOCKET": str(self.fleet.socket_of("i-1")),
                       "NEURONTRACE_XLA_PORT": str(free_port())}
        command = ["env", "LD_PRELOAD=" + ":".join(map(str, libraries)), tests / "xla_worker", kind]
        worker = self.fleet._start(Process(f"xla-{kind}", command, self.fleet.logs, environment,
                                           stdin=subprocess.PIPE))
        worker.wait_for_line("ready")
        return worker

    def capture(self, *options, code):
        done = self.fleet.cli("--output", "json", "capture", *options, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def outcomes_by_pid(self, capture):
        traces = [trace for status in capture["workers"] for trace in status.get("framework_traces", [])]
        self.assertEqual({trace["framework"] for trace in traces}, {"xla"})
        return {trace["worker"]["pid"]: trace["state"].removeprefix("FRAMEWORK_TRACE_STATE_") for trace in traces}

    def test_each_worker_has_its_outcome(self):
        self.start_agent_with_traces()
        workers = {kind: self.start_xla(kind) for kind in ("record", "busy", "hostile", "dying", "silent")}
        self.fleet.wait_for_workers(5)
        capture = self.capture("--duration", "2s", "--framework=xla", code=3)
        expected = {"record": "FILE_SEEN", "busy": "BUSY", "hostile": "FAILED", "dying": "NOT_SEEN",
                    "silent": "NOT_LISTENING"}
        self.assertEqual(self.outcomes_by_pid(capture), {workers[kind].pid: state for kind, state in expected.items()})
        capture_id = capture["capture_id"]
        session = f"neurontrace-xla-{capture_id}_pid_{workers['record'].pid}"
        self.assertEqual([str(path.relative_to(self.traces)) for path in self.traces.rglob("*.pb")],
                         [f"{session}/worker.xplane.pb"])
        table = self.fleet.cli("captures", "show", capture_id, check=False).stdout
        for kind, word in (("busy", "busy"), ("silent", "not listening")):
            rows = [line for line in table.splitlines() if str(workers[kind].pid) in line.split()]
            self.assertTrue(any(word in row for row in rows), f"{kind}: {word} in\n{table}")
        self.assertIn("1 of 5 framework traces seen", table)

    def test_steps_are_those_of_the_worker_from_the_planned_moment(self):
        self.start_agent_with_traces()
        worker = self.start_xla("record")
        self.fleet.wait_for_workers(1)
        capture = self.capture("--duration", "2s", "--framework=xla", code=0)
        self.assertEqual(self.outcomes_by_pid(capture), {worker.pid: "FILE_SEEN"})
        begin_ns = min(int(w["begun_realtime_ns"]) for w in capture["workers"] if int(w["begun_realtime_ns"]))
        steps = [row for row in read_events(self.fleet.export_events(capture["capture_id"]))
                 if "step_num" in json.dumps(row["event"])]
        self.assertEqual(len(steps), 20, "two seconds of steps of 100 ms")
        # The process's own id in the file is 1: the folder assigns the file.
        self.assertEqual({row["pid"] for row in steps}, {worker.pid})
        first_ns = min(int(row["event"]["timestamp_ns"]) for row in steps)
        self.assertLess(abs(first_ns - begin_ns), 100_000_000)

    def test_an_agent_without_a_directory_reports_it(self):
        self.start_instances("i-1")
        self.fleet.start_worker("i-1", "--cores", 1)
        self.fleet.wait_for_workers(1)
        capture = self.capture("--duration", "500ms", "--framework=xla", code=3)
        self.assertEqual(list(self.outcomes_by_pid(capture).values()), ["FAILED"])
        self.assertIn("--framework-dir", json.dumps(capture))

    def test_steps_and_long_traces_are_refused(self):
        self.start_instances()
        for options, words in ((("--framework=xla", "--steps", "5"), "xla records by time"),
                               (("--framework=xla", "--duration", "2m"), "at most 60 s")):
            done = self.fleet.cli("capture", *options, check=False)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    suite.main()
