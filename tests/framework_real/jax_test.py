# SPDX-License-Identifier: Apache-2.0
"""Framework traces on demand of real JAX, as torch_test.py.

Nightly. Skips where scripts/setup_frameworks could not bring JAX.
"""

import bisect
import json

import suite
from fleet import wait_until
from framework_case import FrameworkCase

PYTHON, MISSING = suite.built_by("setup_frameworks", "jax")
# Between the clock that XLA reads and CLOCK_REALTIME: 0.5 us were measured.
CLOCKS_APART_NS = 20_000
OUTCOME_SECONDS = 60


@suite.needs_of_nightly(MISSING)
class JaxTest(FrameworkCase):
    OPTION = "--framework=xla"
    PYTHONS = {"jax": PYTHON}

    def test_by_time_from_the_planned_moment(self):
        worker = self.jobs.start_worker("jax", "i-1", "--pause-ms", 2)
        self.fleet.wait_for_workers(1)
        capture = self.capture("--duration", "2s")
        self.assertEqual(self.states(capture), {worker.pid: "FILE_SEEN"})
        # The threads of the file are those of the process only while it runs.
        steps = self.stop(worker)

        path = self.fleet.dir / "raw.json"
        self.fleet.cli("export", capture["capture_id"], "--clock", "raw", "-o", path, codes=(0, 3))
        rows = json.loads(path.read_text(encoding="utf-8"))["trace_event"]
        found = self.step_spans(rows, worker.pid)
        # One machine, so that the reference clock is CLOCK_REALTIME.
        planned_ns = int(capture["begin"]["reference_ns"])
        runtime_ns = int(capture["workers"][0]["begun_realtime_ns"])
        first_ns = min(int(row["timestamp"]) for row in rows
                       if row["trace_event_source"] == "framework" and int(row["duration"]) > 0)
        print(f"jax: the first event begins {(first_ns - planned_ns) / 1e6:.3f} ms after the plan, the first step "
              f"{(min(found.values())[0] - planned_ns) / 1e6:.3f} ms, the runtime's capture "
              f"{(runtime_ns - planned_ns) / 1e6:.3f} ms; {len(found)} steps")
        self.assertGreater(first_ns, planned_ns - CLOCKS_APART_NS)
        self.assertEqual(sorted(found), list(range(min(found), max(found) + 1)))
        apart_ns = 0
        for number, (begin_ns, end_ns) in found.items():
            outside_ns = max(steps[number].begin_ns - begin_ns, end_ns - steps[number].end_ns)
            apart_ns = max(apart_ns, outside_ns)
            self.assertLessEqual(outside_ns, CLOCKS_APART_NS, number)
        print(f"jax: annotations are at most {apart_ns} ns outside their steps")
        self.check_runtime(rows, found)

    def step_spans(self, rows, thread_id):
        """{step_num: (begin_ns, end_ns)} of StepTraceAnnotation("train"), all of them on this thread."""
        found = {}
        for row in rows:
            if row["name"] == "train" and "step_num" in row:
                self.assertEqual(int(row["thread_id"]), thread_id, "the kernel's id")
                begin_ns = int(row["timestamp"])
                found[int(row["step_num"])] = begin_ns, begin_ns + int(row["duration"])
        return found

    def check_runtime(self, rows, found):
        """Of the time that both recorded: each step has its call of the runtime, and no other."""
        calls = sorted(int(row["timestamp"]) for row in rows if row["name"] == "nrt_execute")
        both = [span for span in found.values() if calls[0] < span[0] and span[1] < calls[-1]]
        self.assertTrue(both)
        for begin_ns, end_ns in both:
            self.assertEqual(bisect.bisect(calls, end_ns) - bisect.bisect_left(calls, begin_ns), 1, begin_ns)

    def test_one_profiles_itself_one_dies_and_one_has_no_server(self):
        good = self.jobs.start_worker("jax", "i-1", "--pause-ms", 20)
        own = self.jobs.start_worker("jax", "i-1", "--pause-ms", 200, "--own-profiler")
        victim = self.jobs.start_worker("jax", "i-1", "--pause-ms", 20)
        silent = self.jobs.start_worker("jax", "i-1", "--pause-ms", 20, listens=False)
        self.fleet.wait_for_workers(4)
        command = self.fleet.start_command("capture", self.OPTION, "--duration", "20s", "--name", "outcomes")
        capture_id = wait_until(lambda: self.fleet.cli_json("captures")["captures"], "the capture")[-1]["capture_id"]

        def planned_ns():
            return int(self.fleet.show_capture(capture_id).get("begin", {}).get("reference_ns", 0))

        begin_ns = wait_until(planned_ns, "the plan", OUTCOME_SECONDS)
        wait_until(lambda: victim.newest_ns() > begin_ns, "the victim's steps after the beginning", OUTCOME_SECONDS)
        victim.kill()
        self.assertEqual(command.wait(120), 3, command.log.read_text())
        capture = self.fleet.show_capture(capture_id)
        self.assertEqual(self.states(capture), {
            good.pid: "FILE_SEEN", own.pid: "BUSY", victim.pid: "NOT_SEEN", silent.pid: "NOT_LISTENING"})
        self.assertIn("ended", self.traces_by_pid(capture)[victim.pid]["detail"])
        for worker in (good, own, silent):
            self.stop(worker)


if __name__ == "__main__":
    suite.main()
