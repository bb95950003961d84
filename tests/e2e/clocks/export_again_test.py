# SPDX-License-Identifier: Apache-2.0
"""A capture is exported as soon as it has ended, and again when all is measured that helps to know its clocks: both are
true, the second is not worse, and it stays what it is."""

import suite
from clock_case import INSTANCES, SECOND, ClockCase
from host_clock import HostClock

LATER_NS = 60 * SECOND  # beyond the time after a capture in which evidence still helps


class ExportAgain(ClockCase):
    def version_of(self, capture_id):
        reply = self.fleet.cli_json("clocks", "--capture", capture_id)
        return reply["version"], reply.get("final", False)

    def let_time_pass(self):
        """A minute, without waiting for it: the aggregator begins again with a clock that is set ahead."""
        self.assertEqual(self.fleet.aggregator.stop(), 0)
        self.fleet.host_clocks[None] = HostClock(offset_ns=LATER_NS)
        self.fleet.start_aggregator()

    def test_later_evidence_does_not_widen_bounds(self):
        self.start_instances(*INSTANCES)
        self.start_job()
        self.fleet.wait_for_clocks(len(INSTANCES))
        capture_id = self.start_capture("--name", "again")
        self.work_until(self.true_after(2))
        self.end_job(capture_id)
        at_once = self.aligned(capture_id)
        self.assertEqual(self.version_of(capture_id), (1, False))
        _, bounds_at_once = self.check_within_bounds(at_once, " at once")
        self.check_barriers(at_once, " at once")

        self.pass_true_time(3)
        self.let_time_pass()
        later = self.aligned(capture_id)
        self.assertEqual(self.version_of(capture_id), (2, True))
        _, bounds_later = self.check_within_bounds(later, " later")
        self.check_barriers(later, " later")
        # A bound reaches to the far end of what is possible, so it can grow a little where the estimate moves.
        self.assertLessEqual(max(bounds_later), max(bounds_at_once) * 1.5)
        self.assertLessEqual(sum(bounds_later), sum(bounds_at_once) * 1.5)

        again = self.aligned(capture_id)
        self.assertEqual(self.version_of(capture_id), (2, True))
        self.assertEqual(again, later, "the same version is the same export")


if __name__ == "__main__":
    suite.main()
