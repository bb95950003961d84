# SPDX-License-Identifier: Apache-2.0
"""Framework traces on demand of real PyTorch, beside the simulated runtime in the same processes, compared with what the
programs themselves know of their steps.

Nightly. Skips where scripts/setup_frameworks could not bring PyTorch. Times are printed and not judged, because a busy
machine is late; what is judged is the order of moments and what the traces hold.
"""

import bisect
import json
import re
import unittest

import suite
from fleet import wait_until
from framework_case import FrameworkCase
from ground_truth import read_events

PYTHON, MISSING = suite.built_by("setup_frameworks", "torch")
ANNOTATION = re.compile(r"(train step|forward|backward|optimizer) (\d+)")
# Between the clock that Kineto reads and CLOCK_REALTIME: 2 us were measured.
CLOCKS_APART_NS = 20_000
MILLISECOND_NS = 1_000_000
OUTCOME_SECONDS = 60


def spans_of(path):
    """{kind: {step: (begin_ns, end_ns)}} of a file that Kineto wrote; of its operators under "operator" [(begin_ns, end_ns)]."""
    trace = json.loads(path.read_text(encoding="utf-8"))
    found = {"operator": []}
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        begin_ns = trace["baseTimeNanoseconds"] + round(event["ts"] * 1000)
        span = begin_ns, begin_ns + round(event["dur"] * 1000)
        match = ANNOTATION.fullmatch(event["name"])
        if match:
            found.setdefault(match[1], {})[int(match[2])] = span
        elif event.get("cat") == "cpu_op":
            found["operator"].append(span)
        elif event["name"].startswith("Optimizer.step"):
            found.setdefault("torch step", []).append(span)
    return trace, found


@suite.needs_of_nightly(MISSING)
class TorchTest(FrameworkCase):
    PYTHONS = {"torch": PYTHON}

    def file_of(self, capture, worker):
        files = list(self.jobs.traces_of("i-1").glob(f"neurontrace-{capture['capture_id']}-{worker.pid}_*"))
        self.assertEqual(len(files), 1)
        return files[0]

    def check_annotations(self, found, steps):
        """Every annotation is inside its step, by the program's own stamps; returns how far the clocks were apart."""
        apart_ns = 0
        for kind in ("train step", "forward", "backward", "optimizer"):
            self.assertTrue(found.get(kind), kind)
            for number, (begin_ns, end_ns) in found[kind].items():
                outside_ns = max(steps[number].begin_ns - begin_ns, end_ns - steps[number].end_ns)
                apart_ns = max(apart_ns, outside_ns)
                self.assertLessEqual(outside_ns, CLOCKS_APART_NS, f"{kind} {number}")
        return apart_ns

    def test_by_time_from_the_planned_moment(self):
        worker = self.jobs.start_worker("torch", "i-1")
        self.fleet.wait_for_workers(1)
        capture = self.capture("--duration", "2s")
        steps = self.stop(worker)
        self.assertEqual(self.states(capture), {worker.pid: "FILE_SEEN"})
        trace, found = spans_of(self.file_of(capture, worker))
        self.assertEqual(trace["trace_id"], capture["capture_id"])

        # One machine, so that the reference clock is CLOCK_REALTIME.
        planned_ns = int(capture["begin"]["reference_ns"])
        runtime_ns = int(capture["workers"][0]["begun_realtime_ns"])
        first_ns = min(begin_ns for begin_ns, _ in found["operator"])
        print(f"torch: the first operator begins {(first_ns - planned_ns) / 1e6:.3f} ms after the plan, the runtime's "
              f"capture {(runtime_ns - planned_ns) / 1e6:.3f} ms")
        self.assertGreater(first_ns - planned_ns, -MILLISECOND_NS)
        apart_ns = self.check_annotations(found, steps)
        print(f"torch: annotations are at most {apart_ns} ns outside their steps, of {len(found['train step'])} steps")
        # Without a gap: each step that began after the first recorded one and ended before the last.
        numbers = sorted(found["train step"])
        self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
        self.check_export(capture, found)

    def check_export(self, capture, found):
        """Operators, annotations, the runtime's calls and the core are in one capture, on one clock."""
        path = self.fleet.export_events(capture["capture_id"], "--clock", "raw")
        names, runtime = {}, []
        for row in read_events(path):
            event = row["event"]
            if event["event_type"] == "nrt_execute" and event["phase"] == "start":
                runtime.append(int(event["timestamp_ns"]))
            names.setdefault(event.get("name", event["event_type"]), []).append(int(event["timestamp_ns"]))
        for number, (begin_ns, _) in found["forward"].items():
            self.assertEqual(names.get(f"forward {number}"), [begin_ns])
        self.assertIn("nc_exec_running", names)
        # Of the time that both recorded: every forward has its call of the runtime, and no other.
        both = [(begin_ns, end_ns) for begin_ns, end_ns in found["forward"].values()
                if min(runtime) < begin_ns and end_ns < max(runtime)]
        self.assertTrue(both)
        runtime.sort()
        for begin_ns, end_ns in both:
            calls = bisect.bisect(runtime, end_ns) - bisect.bisect_left(runtime, begin_ns)
            self.assertEqual(calls, 1, begin_ns)

    def test_by_step(self):
        worker = self.jobs.start_worker("torch", "i-1", "--pause-ms", 5)
        self.fleet.wait_for_workers(1)
        capture = self.capture("--duration", "20s", "--at-step", "next", "--steps", "5")
        steps = self.stop(worker)
        _, found = spans_of(self.file_of(capture, worker))
        self.assertEqual(len(found["torch step"]), 5, sorted(found["train step"]))
        numbers = sorted(found["train step"])
        # Kineto begins and ends inside of the optimizer's step: the annotation around it is of the one after.
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 5)))
        self.assertEqual(sorted(found["optimizer"]), numbers)
        self.check_annotations(found, steps)

    def test_one_profiles_itself_one_dies_and_one_never_asks(self):
        good = self.jobs.start_worker("torch", "i-1", "--pause-ms", 20)
        own = self.jobs.start_worker("torch", "i-1", "--pause-ms", 200, "--own-profiler")
        victim = self.jobs.start_worker("torch", "i-1", "--pause-ms", 20)
        silent = self.jobs.start_worker("torch", "i-1", "--pause-ms", 20, listens=False)
        self.fleet.wait_for_workers(4)
        command = self.fleet.start_command("capture", "--framework", "--duration", "20s", "--name", "outcomes")
        capture_id = wait_until(lambda: self.fleet.cli_json("captures")["captures"], "the capture")[-1]["capture_id"]
        wait_until(lambda: self.states(self.fleet.show_capture(capture_id)).get(victim.pid) == "RECORDING",
                   "the victim's profiler to begin", OUTCOME_SECONDS)
        victim.kill()
        self.assertEqual(command.wait(120), 3, command.log.read_text())
        capture = self.fleet.show_capture(capture_id)
        self.assertEqual(self.states(capture), {
            good.pid: "FILE_SEEN", own.pid: "BUSY", victim.pid: "NOT_SEEN", silent.pid: "NOT_LISTENING"})
        traces = self.traces_by_pid(capture)
        self.assertIn("ended", traces[victim.pid]["detail"])
        for worker in (good, own, silent):
            self.stop(worker)


if __name__ == "__main__":
    suite.main()
