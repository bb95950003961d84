# SPDX-License-Identifier: Apache-2.0
"""In the midst of a capture somebody sets the clock of one instance and sets it back, that of another is slewed as
adjtimex(2) says and that of a third as adjtime(3) does it; or the aggregator is restarted. No event is farther from the
truth than is said of it, and what happened is told."""

import suite
from alignment import between, by_instance, percentile
from clock_case import INSTANCES, MILLISECOND, SECOND, ClockCase

SETTLED_S = (9, 30, 90)  # from the start of the first process until the clocks are known and a capture runs
STEP_NS = 300 * MILLISECOND


class Breaks(ClockCase):
    def start_capture_of_job(self):
        self.start_instances(*INSTANCES)
        self.start_job()
        self.fleet.wait_for_clocks(len(INSTANCES))
        return self.start_capture("--name", "breaks")

    def test_set_and_slewed(self):
        # The moments are fixed before the processes start: on a machine that is too slow they begin again with more time.
        for settled_s in SETTLED_S:
            first = self.true_after(settled_s)
            capture_id = self.start_with_breaks_at(first)
            if self.fleet.true_time.now_ns() < first:
                break
            self.doCleanups()
            self.setUp()
        else:
            self.fail(f"no capture ran {settled_s} s after the first process was started")
        then, last = first + 2 * SECOND, first + 4 * SECOND
        self.work_until(last)
        self.end_job(capture_id)
        alignment = self.aligned(capture_id)
        self.check_within_bounds(alignment)
        self.check_barriers(alignment)
        breaks = self.breaks_of(capture_id)
        self.assertEqual((breaks["i-0001"], breaks["i-0003"]), ([], []))
        self.assertEqual([round(amount / MILLISECOND) for amount, _ in breaks["i-0002"]], [300, -300])
        for (_, at_ns), true_ns in zip(breaks["i-0002"], (first, then)):
            self.assertLess(abs(at_ns - true_ns), SECOND // 2)
        self.check_doubt_is_short(by_instance(alignment.events)["i-0002"], first, then)

    def start_with_breaks_at(self, first):
        then = first + 2 * SECOND
        clocks = self.fleet.host_clocks
        clocks["i-0001"].hidden_slews = [(first, then, 500.0)]
        clocks["i-0002"].steps = [(first, STEP_NS), (then, -STEP_NS)]
        clocks["i-0003"].slews = [(first, then, 300.0)]
        return self.start_capture_of_job()

    def check_doubt_is_short(self, events, ahead_ns, back_ns):
        """Only stamps that the instance gave twice, before and after it was set back, are known badly."""
        margin = SECOND // 10
        for begin, end in ((0, ahead_ns - margin), (ahead_ns + margin, back_ns - STEP_NS - margin),
                           (back_ns + STEP_NS + margin, back_ns + 10 * SECOND)):
            bounds = [event.eps_ns for event in between(events, begin, end) if event.eps_ns is not None]
            self.assertLess(percentile(bounds, 0.5), MILLISECOND)
        twice = between(events, back_ns - STEP_NS + margin, back_ns - margin)
        self.assertGreater(percentile([event.eps_ns for event in twice if event.eps_ns is not None], 0.5), STEP_NS // 3)

    def test_aggregator_restarts(self):
        capture_id = self.start_capture_of_job()
        self.work_until(self.true_after(2))
        self.fleet.aggregator.kill()
        self.work_until(self.true_after(1))
        self.fleet.start_aggregator()
        self.fleet.wait_for_workers(len(INSTANCES), "WORKER_STATE_STREAMING")
        probes = self.probes_of(capture_id)
        self.fleet.wait_for_capture(
            capture_id, lambda _: all(count > probes[i] for i, count in self.probes_of(capture_id).items()),
            "probes of all instances")
        self.work_until(self.true_after(1))
        self.end_job(capture_id)
        alignment = self.aligned(capture_id)
        self.check_within_bounds(alignment)
        self.check_barriers(alignment)
        self.assertEqual(self.breaks_of(capture_id), {instance: [] for instance in INSTANCES})

    def clocks_of(self, capture_id):
        return {c["instance_id"]: c for c in self.fleet.cli_json("clocks", "--capture", capture_id)["clocks"]}

    def probes_of(self, capture_id):
        return {instance: int(clock["exchanges"]) for instance, clock in self.clocks_of(capture_id).items()}

    def breaks_of(self, capture_id):
        """(amount, time) of each by instance."""
        return {instance: [(int(f["amount_ns"]), int(f["begin_ns"])) for f in clock.get("findings", [])
                           if f["kind"] == "CLOCK_FINDING_KIND_BREAK"]
                for instance, clock in self.clocks_of(capture_id).items()}


if __name__ == "__main__":
    suite.main()
