# SPDX-License-Identifier: Apache-2.0
"""Somebody sets the clock of one host in the midst of a capture, forwards or backwards by far. Every event is stored
once under the time its host gave it; nothing that waits waits for ever, and nothing is given up early."""

import time
from pathlib import Path

import suite
from fault_case import FaultCase

LIBFAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
HOUR = 3600


class ClockStep(FaultCase):
    def step(self, seconds):
        """The agent's clock is libfaketime's, the worker's its own option; both are set at the same moment."""
        setting = self.fleet.dir / "clock"
        setting.write_text("+0", encoding="ascii")
        self.fleet.start_aggregator()
        self.fleet.start_agent("i-0001", wrapped=False, prefix=(
            "env", f"LD_PRELOAD={LIBFAKETIME}", f"FAKETIME_TIMESTAMP_FILE={setting}", "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1"))
        self.fleet.start_agent("i-0002")
        step_at = time.time_ns() + 4_000_000_000
        self.start_workers("i-0001", options=("--clock-step-ns", seconds * 1_000_000_000, "--clock-step-at", step_at))
        self.start_workers("i-0002")
        self.fleet.wait_for_workers(2)
        capture_id = self.start_capture()
        self.wait_for_flow(capture_id, self.fleet.agents)
        self.pass_time((step_at - time.time_ns()) / 1e9)
        setting.write_text(f"{seconds:+d}", encoding="ascii")
        for _ in range(2):
            self.wait_for_flow(capture_id, self.fleet.agents)
        # Around the step the clock may not be known, which is said, and ends with exit code 3.
        capture = self.stop_capture(capture_id, code=None)
        self.assertEqual({worker["state"] for worker in capture["workers"]}, {"CAPTURE_WORKER_STATE_COMPLETE"})
        spans = [int(s["last_timestamp_ns"]) - int(s["first_timestamp_ns"]) for s in capture["streams"]]
        self.assertGreater(max(spans), (abs(seconds) - 60) * 1_000_000_000, "the step is in the capture")
        self.check_account(capture_id)

    @suite.needs_of_setup(not LIBFAKETIME.exists(), "needs libfaketime: ./scripts/setup")
    def test_forwards(self):
        self.step(2 * HOUR)

    @suite.needs_of_setup(not LIBFAKETIME.exists(), "needs libfaketime: ./scripts/setup")
    def test_backwards(self):
        self.step(-2 * HOUR)


class AggregatorClockStep(FaultCase):
    """Somebody sets the aggregator's clock. Durations, clocks and retention stay right, and it is said."""

    def setUp(self):
        super().setUp()
        self.setting = self.fleet.dir / "clock"
        self.set_clock(0)

    def set_clock(self, seconds):
        self.setting.write_text(f"{seconds:+d}", encoding="ascii")

    def start_aggregator(self):
        return self.fleet.start_aggregator(prefix=(
            "env", f"LD_PRELOAD={LIBFAKETIME}", f"FAKETIME_TIMESTAMP_FILE={self.setting}", "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1"))

    def step(self, seconds):
        aggregator = self.start_aggregator()
        self.fleet.start_agent("i-0001")
        self.fleet.start_agent("i-0002")
        self.start_workers("i-0001")
        self.start_workers("i-0002")
        self.fleet.wait_for_workers(2)
        capture_id = self.start_capture("--keep-for", "1h")
        self.wait_for_flow(capture_id, self.fleet.agents)
        self.set_clock(seconds)
        aggregator.wait_for_line("the machine's clock was set")
        for _ in range(2):
            self.wait_for_flow(capture_id, self.fleet.agents)
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.assertTrue(any("clock was set" in warning for warning in capture["warnings"]), capture["warnings"])
        self.check_account(capture_id)
        shown = self.fleet.cli("captures", "show", capture_id)
        self.assertEqual(shown.returncode, 0, shown.stdout)
        for anomalous in ("18446744", "within nothing", "not known"):
            self.assertNotIn(anomalous, shown.stdout)
        lasted = int(capture["stopped_realtime_ns"]) - int(capture["started_realtime_ns"])
        self.assertTrue(0 < lasted < 600_000_000_000, lasted)
        return capture_id

    def check_kept(self, capture_id):
        """Retention looks once a second."""
        self.pass_time(5)
        self.assertIn(capture_id, self.fleet.cli("captures", "list", "--all").stdout)

    @suite.needs_of_setup(not LIBFAKETIME.exists(), "needs libfaketime: ./scripts/setup")
    def test_back(self):
        self.check_kept(self.step(-2 * HOUR))

    @suite.needs_of_setup(not LIBFAKETIME.exists(), "needs libfaketime: ./scripts/setup")
    def test_forward_also_over_a_restart(self):
        capture_id = self.step(240 * HOUR)
        self.check_kept(capture_id)
        self.assertEqual(self.fleet.aggregator.stop(), 0)
        again = self.start_aggregator()
        again.wait_for_line("the aggregator adopts the new time")
        self.check_kept(capture_id)


if __name__ == "__main__":
    suite.main()
