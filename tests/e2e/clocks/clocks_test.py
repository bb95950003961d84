# SPDX-License-Identifier: Apache-2.0
"""Instances whose clocks are seconds apart and drift by tens of ppm, merged: every event is where it truly happened, to
within what is said of it, and barriers that no instance's own clock shows stand upright."""

import suite
from clock_case import INSTANCES, SECOND, ClockCase


class Clocks(ClockCase):
    def merge(self, path):
        """`path`: the way that probes take, as `neurontrace clocks` calls it."""
        self.start_instances(*INSTANCES)
        self.start_job()
        self.fleet.wait_for_clocks(len(INSTANCES))
        capture_id = self.start_capture("--name", "apart")
        self.work_until(self.true_after(4))
        self.end_job(capture_id)
        alignment = self.aligned(capture_id)
        self.check_within_bounds(alignment)
        report = self.check_barriers(alignment)
        self.assertGreater(report.raw_apart_ns, 5 * SECOND)
        for clock in self.fleet.cli_json("clocks", "--capture", capture_id)["clocks"]:
            self.assertIn(path, clock["sources"])
        for agent in self.fleet.agents.values():
            self.assertEqual(agent.metric("neurontrace_agent_clock_batches_dropped_total"), 0)
            self.assertEqual(agent.metric("neurontrace_agent_clock_probes_in_call"), path == "grpc")

    def test_seconds_apart(self):
        self.merge("udp")

    def test_seconds_apart_with_probes_in_calls(self):
        self.fleet.start_aggregator("--no-udp-probes")
        self.merge("grpc")


if __name__ == "__main__":
    suite.main()
