# SPDX-License-Identifier: Apache-2.0
"""What the tests of clocks have in common: a fleet whose instances disagree about the time, and its result."""

import time

from alignment import align, percentile, report_barriers, seconds
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import read_truth
from host_clock import HostClock, TrueTime

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
INSTANCES = ["i-0001", "i-0002", "i-0003"]
EXECUTIONS_PER_SECOND = 20
PERIOD_NS = SECOND // EXECUTIONS_PER_SECOND


class ClockCase(FleetCase):
    """One job on three instances, one worker each, whose clocks are seconds apart and drift by tens of ppm."""

    def setUp(self):
        super().setUp()
        self.fleet.true_time = TrueTime()
        self.origin_ns = self.fleet.true_time.now_ns()
        errors = {"i-0001": (0, 0.0, 11.0), "i-0002": (3_200_000_000, 37.0, -18.0),
                  "i-0003": (-2_700_000_000, -52.0, 24.0)}  # ns, ppm, ppm
        for number, (instance, (offset, drift, raw_drift)) in enumerate(errors.items()):
            # A counter of each boot's own: some hours to some days.
            self.fleet.host_clocks[instance] = HostClock(
                offset_ns=offset, drift_ppm=drift, raw_drift_ppm=raw_drift, origin_ns=self.origin_ns,
                raw_offset_ns=number * 123_456 * SECOND)

    def true_after(self, seconds_from_now):
        return self.fleet.true_time.now_ns() + int(seconds_from_now * SECOND)

    def start_job(self):
        """A worker of two cores on each instance, all of one job. Returns when all are known."""
        start_at = self.true_after(0.5)
        for number, instance in enumerate(INSTANCES):
            self.fleet.start_worker(
                instance, "--cores", 2, "--rank-start", 2 * number, "--world-size", 2 * len(INSTANCES), "--mix",
                "bare", "--executions-per-second", EXECUTIONS_PER_SECOND, "--start-at", start_at, "--seed", 5,
                ready=False)
        for worker in self.fleet.workers:
            worker.wait_for_line("ready")
        self.fleet.wait_for_workers(len(INSTANCES))

    def pass_true_time(self, seconds_from_now):
        """Lets agents continue to measure."""
        end_ns = self.true_after(seconds_from_now)
        wait_until(lambda: self.fleet.true_time.now_ns() > end_ns, "true time", seconds_from_now + 5)

    def work_until(self, true_ns):
        """Until every worker has worked beyond this true time."""
        def newest(worker):
            return max((row["true_ns"] for row in read_truth(worker.truth)), default=0)
        self.pass_true_time(max(0.0, (true_ns - self.fleet.true_time.now_ns()) / SECOND))
        for worker in self.fleet.workers:
            wait_until(lambda w=worker: newest(w) > true_ns, f"{worker.name} to work on")

    def end_job(self, capture_id):
        capture = self.stop_capture(capture_id)
        for worker in self.fleet.workers:
            self.assertEqual(worker.stop(), 0, worker.log.read_text())
        return capture

    def aligned(self, capture_id, *options):
        result = align(self.fleet.workers, self.fleet.export_events(capture_id, *options))
        self.assertEqual(result.unknown, 0)
        self.assertGreater(len(result.events), 1000)
        return result

    def check_within_bounds(self, alignment, what="", bound_usual_ns=MILLISECOND):
        """Every stamp of a host is within what is stated of it."""
        bounded = alignment.bounded()
        beyond = alignment.beyond_bounds()
        errors = [abs(event.error_ns) for event in bounded]
        bounds = [event.eps_ns for event in bounded]
        print(f"{self.id().rsplit('.', 1)[-1]}{what}: {len(bounded)} events; error half {seconds(percentile(errors, .5))}, "
              f"worst {seconds(max(errors))}; bound half {seconds(percentile(bounds, .5))}, widest "
              f"{seconds(max(bounds))}", flush=True)
        self.assertEqual(beyond[:3], [], f"{len(beyond)} of {len(bounded)} events")
        # Loopback and short links are fast; half of all is not measured in the worst moments.
        self.assertLess(percentile(bounds, .5), bound_usual_ns)
        return errors, bounds

    def check_barriers(self, alignment, what=""):
        report = report_barriers(alignment.barriers(PERIOD_NS))
        print(f"{self.id().rsplit('.', 1)[-1]}{what}: {report.words()}", flush=True)
        self.assertGreater(report.barriers, 10)
        self.assertEqual(report.beyond, 0, report)
        return report
