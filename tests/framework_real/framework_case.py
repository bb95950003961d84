# SPDX-License-Identifier: Apache-2.0
"""A test with real frameworks on one instance, and what it reads of captures."""

import json

from fleet_case import FleetCase
from real_workers import RealJobs


class FrameworkCase(FleetCase):
    OPTION = "--framework"  # of `capture`
    PYTHONS = {}  # see RealJobs

    def setUp(self):
        super().setUp()
        self.fleet.start_aggregator()
        self.jobs = RealJobs(self.fleet, self.PYTHONS)
        self.jobs.start_instance("i-1")
        self.fleet.wait_for_planning(1)

    def capture(self, *options, code=0):
        done = self.fleet.cli("--output", "json", "capture", self.OPTION, *options, check=False, seconds=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def traces_by_pid(self, capture):
        return {trace["worker"]["pid"]: trace for status in capture["workers"] for trace in status.get("framework_traces", [])}

    def states(self, capture):
        return {pid: trace["state"].removeprefix("FRAMEWORK_TRACE_STATE_")
                for pid, trace in self.traces_by_pid(capture).items()}

    def stop(self, worker):
        self.assertEqual(worker.stop(), 0, worker.log.read_text())
        return worker.steps()
