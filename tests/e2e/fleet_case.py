# SPDX-License-Identifier: Apache-2.0
"""What the tests of a whole fleet have in common. CTest says where things were built in NT_BUILD_DIR."""

import os
import unittest

from fleet import Fleet, wait_until
from ground_truth import compare, read_truth

LOG_LINES_SHOWN = 30


class FleetCase(unittest.TestCase):
    """A fresh fleet for each test; where one fails, the ends of all logs are shown."""

    maxDiff = 4000

    def setUp(self):
        self.fleet = Fleet(os.environ["NT_BUILD_DIR"])
        self.addCleanup(self.fleet.shut_down)
        self.addCleanup(self._show_logs_of_failure)

    def _show_logs_of_failure(self):
        # While a cleanup runs, what unittest itself thinks of the test is hidden from it.
        result = self._outcome.result
        failed = [getattr(test, "test_case", test) for test, _ in result.errors + result.failures]
        if self not in failed:
            return
        for log in sorted(self.fleet.logs.iterdir()):
            lines = log.read_text(errors="replace").splitlines()
            print(f"--- {self.id()}: {log.name}, {len(lines)} lines")
            print("\n".join(lines[-LOG_LINES_SHOWN:]), flush=True)

    # -- a usual fleet -------------------------------------------------------------------------------------------

    def start_instances(self, *instances, agent_options=()):
        if self.fleet.aggregator is None:
            self.fleet.start_aggregator()
        for instance in instances:
            self.fleet.start_agent(instance, *agent_options)

    def start_fleet(self, instances=1, workers=1, cores=2, options=()):
        """Everything up and idle; worker w of all has the global ranks from w * cores on. Returns the workers."""
        names = [f"i-{i:04x}" for i in range(1, instances + 1)]
        self.start_instances(*names)
        world = instances * workers * cores
        started = []
        for instance in names:
            for _ in range(workers):
                started.append(self.fleet.start_worker(
                    instance, "--cores", cores, "--rank-start", len(started) * cores, "--world-size", world,
                    "--mix", "graph", "--executions-per-second", 20, *options))
        self.fleet.wait_for_workers(len(started))
        return started

    # -- captures ------------------------------------------------------------------------------------------------

    def start_capture(self, *options):
        """Also one that has nobody to record yet."""
        return self.fleet.cli("capture", "start", *options, codes=(0, 3)).stdout.strip()

    def stop_capture(self, capture_id, code=0):
        """Stops it, waits until it has ended and returns it; `code` is the exit code that this must have (None: any
        of an ended capture)."""
        done = self.fleet.cli("capture", "stop", capture_id, check=False)
        self.assertIn(done.returncode, (0, 3) if code is None else (code,), done.stdout + done.stderr)
        return self.fleet.show_capture(capture_id)

    def wait_for_events(self, capture_id, count):
        return self.fleet.wait_for_capture(capture_id, lambda c: int(c["events"]) >= count, f"{count} events stored")

    def wait_for_more_work(self, workers, executions=10):
        """Until each worker has gone on working for a while."""
        def newest(worker):
            return max((row["exec_id"] for row in read_truth(worker.truth)), default=-1)
        goals = {worker: newest(worker) + executions for worker in workers}
        for worker, goal in goals.items():
            wait_until(lambda w=worker, g=goal: newest(w) >= g, f"{worker.name} to work on")

    # -- checks --------------------------------------------------------------------------------------------------

    def check_whole(self, capture_id, workers=None, options=(), **arguments):
        """Every event that left the runtimes is in the capture once, under its rank. Ends the workers, because a
        worker's account is complete only then. Returns the comparison."""
        workers = self.fleet.workers if workers is None else workers
        for worker in self.fleet.workers:
            if worker.running():
                self.assertEqual(worker.stop(), 0, worker.log.read_text())
        result = compare(workers, self.fleet.export_events(capture_id, *options), **arguments)
        self.assertTrue(result.ok(), result)
        return result

    def outcomes(self, capture):
        """The outcome of each worker by (instance, pid), in the text of the state's name."""
        return {(w["worker"]["instance_id"], w["worker"]["pid"]): w["state"].removeprefix("CAPTURE_WORKER_STATE_")
                for w in capture["workers"]}
