# SPDX-License-Identifier: Apache-2.0
"""Framework traces on demand of real JAX, as torch_test.py.

Nightly. Skips where scripts/setup_frameworks could not bring JAX, and where the programs cannot ask XLA's profilers.
"""

import json
import os
import subprocess
from pathlib import Path

import suite
from fleet_case import FleetCase
from real_workers import RealJobs

PYTHON, MISSING = suite.built_by("setup_frameworks", "jax")
# Between the clock that XLA reads and CLOCK_REALTIME: 0.5 us were measured.
CLOCKS_APART_NS = 20_000


def knows_xla():
    """Whether `capture` names it among the frameworks that record on demand."""
    command = Path(os.environ["NT_BUILD_DIR"]) / "bin" / "neurontrace"
    text = subprocess.run([command, "capture", "--help"], capture_output=True, text=True, check=True)
    return "xla" in text.stdout


@suite.needs_of_nightly(MISSING or ("" if knows_xla() else "this build cannot ask XLA's profilers (capture --framework=xla)"))
class JaxTest(FleetCase):
    def test_by_time_from_the_planned_moment(self):
        self.fleet.start_aggregator()
        jobs = RealJobs(self.fleet, {"jax": PYTHON})
        jobs.start_instance("i-1")
        self.fleet.wait_for_planning(1)
        worker = jobs.start_worker("jax", "i-1", "--pause-ms", 2)
        self.fleet.wait_for_workers(1)
        done = self.fleet.cli("--output", "json", "capture", "--framework=xla", "--duration", "2s", check=False, seconds=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        capture = json.loads(done.stdout)
        self.assertEqual(worker.stop(), 0, worker.log.read_text())
        steps = worker.steps()

        path = self.fleet.dir / "raw.json"
        self.fleet.cli("export", capture["capture_id"], "--clock", "raw", "-o", path, codes=(0, 3))
        found = self.step_spans(json.loads(path.read_text(encoding="utf-8"))["trace_event"])
        planned_ns = int(capture["begin"]["reference_ns"])
        print(f"jax: the first step begins {(min(found.values())[0] - planned_ns) / 1e6:.3f} ms after the plan; "
              f"{len(found)} steps")
        self.assertGreater(min(found.values())[0], planned_ns - CLOCKS_APART_NS)
        self.assertEqual(sorted(found), list(range(min(found), max(found) + 1)))
        for number, (begin_ns, end_ns) in found.items():
            self.assertGreaterEqual(begin_ns, steps[number].begin_ns - CLOCKS_APART_NS)
            self.assertLessEqual(end_ns, steps[number].end_ns + CLOCKS_APART_NS)
        # Whole steps between the first and the last of the trace are in the runtime's capture, too.
        self.assertIn("nrt_execute", {row["name"] for row in json.loads(path.read_text(encoding="utf-8"))["trace_event"]})

    def step_spans(self, rows):
        """{step_num: (begin_ns, end_ns)} of StepTraceAnnotation("train")."""
        found = {}
        for row in rows:
            if row["name"] == "train" and "step_num" in row:
                begin_ns = int(row["timestamp"])
                found[int(row["step_num"])] = begin_ns, begin_ns + int(row["duration"])
        return found


if __name__ == "__main__":
    suite.main()
