# SPDX-License-Identifier: Apache-2.0
"""An upgrade with nothing left: a spool that drops its oldest, a store that is over its quota, and a capture that continued.

Both were left by scripts/make_upgrade_fixture with the programs of a former release. This one's packages come over them,
by a real dpkg, and its daemons continue under the same limits: what was held is there, what was dropped is counted, and
nothing more is lost.
"""
import json
import os
import tempfile
import unittest
from pathlib import Path

import suite
from account import check_account
from fleet import Fleet, wait_until
from fleet_case import FleetCase
from package_root import PackageRoot, container_base
from upgrade import (ENDED, INSTANCE, STORE_FULL, agent_limits, aggregator_limits, chunks_in, deliver_full,
                     events_of, full_releases, losses_of, refusal_of, spool_check, store_check, unpack)

PACKAGES = ("neurontrace", "neurontrace-tap", "neurontrace-agent", "neurontrace-aggregator")
RAISED_BYTES = 50_000_000


class Unpacked(Fleet):
    """Of the packages' programs, with the folders that the packages have for what is stored."""

    def __init__(self, root, work_dir):
        super().__init__(root / "usr", work_dir)
        (root / "usr/tests").symlink_to(Path(os.environ["NT_BUILD_DIR"]) / "tests")  # workers
        for name, place in (("aggregator", self.dir / "store"), ("spool", self.spool_of(INSTANCE))):
            place.symlink_to(root / "var/lib/neurontrace" / name)


def contents(folder):
    """{name: (bytes, owner and mode)} of the files in it."""
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_uid, path.stat().st_mode)
            for path in sorted(folder.rglob("*")) if path.is_file()}


@unittest.skipIf(os.geteuid() != 0, "only root installs packages into a root")
class FullUpgradeTest(FleetCase):
    @classmethod
    def setUpClass(cls):
        cls.base = container_base()[3]

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="nt-upgrade-")
        self.addCleanup(scratch.cleanup)
        self.packages = PackageRoot(self.base, Path(scratch.name))
        self.packages.install_former(*PACKAGES)
        self.fleet = Unpacked(self.packages.root, Path(scratch.name) / "fleet")
        self.addCleanup(self.fleet.shut_down)
        self.addCleanup(self._show_logs_of_failure)

    def install_over(self, fixture):
        """This version's packages over the former ones, and over what was left."""
        unpack(fixture, self.fleet)
        state = self.packages.root / "var/lib/neurontrace"
        before = contents(state)
        self.assertGreater(len(before), 4)
        self.packages.install(*PACKAGES)
        self.assertEqual(contents(state), before, "packages leave what is stored alone")

    def check_release(self, fixture):
        facts = json.loads((fixture / "facts.json").read_text())
        self.install_over(fixture)
        limits, filled, spooled = facts["limits"], facts["captures"]["filled"], facts["captures"]["spooled"]
        agent, aggregator = (self.fleet.program(f"neurontrace-{name}") for name in ("agent", "aggregator"))
        store, spool = self.fleet.dir / "store", self.fleet.spool_of(INSTANCE)
        store_check(aggregator, store)
        self.assertEqual(chunks_in(spool_check(agent, spool)), facts["spooled_chunks"])

        # The agent comes up first: its full spool stays as it is.
        self.fleet.address = "127.0.0.1:1"
        started = self.fleet.start_agent(INSTANCE, *agent_limits(limits))
        started.wait_for_line(f"spool: {facts['spooled_chunks']} chunks")
        # The line is written before the metrics' next turn.
        wait_until(lambda: started.metric("neurontrace_agent_spool_bytes_max") != 0, "the metrics of the spool")
        self.assertEqual(started.metric("neurontrace_agent_spool_bytes_max"), limits["spool_bytes"])
        self.assertLessEqual(started.metric("neurontrace_agent_spool_bytes{"), limits["spool_bytes"])
        self.assertEqual(started.metric("neurontrace_agent_spool_segments_dropped_total"), 0)
        started.stop()
        self.fleet.address = None

        # So does the store, in which nothing may begin; the capture that continued is told to end, and waits for its agent.
        self.fleet.start_aggregator(*aggregator_limits(limits))
        self.assertIn(STORE_FULL, refusal_of(self.fleet))
        self.assertEqual(events_of(self.fleet, filled["id"]), filled)
        self.assertLess(events_of(self.fleet, spooled["id"])["events"], spooled["events"])
        self.fleet.aggregator.stop()

        deliver_full(self.fleet, limits, spooled["id"])
        for name, capture in facts["captures"].items():
            self.assertEqual(events_of(self.fleet, capture["id"]), capture, name)
            self.assertEqual(losses_of(self.fleet, capture["id"]), facts["losses"][name], name)
            self.assertIn(self.fleet.show_capture(capture["id"])["state"], ENDED, name)
        self.assertGreater(facts["losses"]["spooled"]["spool/overwritten"], 0)
        self.assertEqual(self.fleet.agents[INSTANCE].metric("neurontrace_agent_events_lost_total"), 0)
        self.assertFalse(list(spool.glob("quarantine/*")))
        self.assertIn(STORE_FULL, refusal_of(self.fleet))
        self.check_limits_act(limits)
        self.fleet.agents[INSTANCE].stop()
        self.fleet.aggregator.stop()
        store_check(aggregator, store)

    def check_limits_act(self, limits):
        """The quota is raised, as its refusal says; what is recorded then fills the spool again, and every event of it is
        stored or counted."""
        raised = {**limits, "quota_store_bytes": RAISED_BYTES}
        agent = self.fleet.agents[INSTANCE]
        self.fleet.aggregator.stop()
        self.fleet.start_aggregator(*aggregator_limits(raised))
        worker = self.fleet.start_worker(INSTANCE, "--cores", 64, "--rank-start", 0, "--world-size", 64, "--mix", "bare",
                                         "--executions-per-second", 2)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture("--name", "after")
        self.wait_for_events(capture_id, 300)
        self.fleet.aggregator.kill()
        wait_until(lambda: agent.metric("neurontrace_agent_spool_segments_dropped_total") >= 1, "a dropped segment", 90)
        self.assertLessEqual(agent.metric("neurontrace_agent_spool_bytes{"), limits["spool_bytes"])
        self.fleet.start_aggregator(*aggregator_limits(raised))
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        capture = self.stop_capture(capture_id, code=None)
        self.assertEqual(worker.stop(), 0)
        account = check_account([worker], self.fleet.export_events(capture_id), capture)
        self.assertEqual(account.violations, [])
        self.assertEqual(set(account.lost), {("spool", "overwritten")}, account.summary())


def add_tests():
    for fixture in full_releases():
        name = "test_from_" + fixture.parent.name.replace(".", "_")
        setattr(FullUpgradeTest, name, lambda self, fixture=fixture: self.check_release(fixture))


add_tests()

if __name__ == "__main__":
    suite.main()
