# SPDX-License-Identifier: Apache-2.0
"""What every former release left behind opens in this one, with nothing lost and nothing twice.

Its store has a capture that had ended and one that continued; its spool has the rest of that one. They were made by
scripts/make_upgrade_fixture with the programs of that release, on a host that has been restarted since.
"""
import json
import re
import unittest
from pathlib import Path

import suite
from fleet_case import FleetCase
from upgrade import (FIXTURES, FULL, INSTANCE, chunks_in, deliver_spool, events_of, faults_of_versions, full_releases,
                     releases, spool_check, store_check, unpack)

ROOT = Path(__file__).resolve().parents[2]


class UpgradeTest(FleetCase):
    def check_release(self, fixture):
        facts = json.loads((fixture / "facts.json").read_text())
        unpack(fixture, self.fleet)
        aggregator, agent = self.fleet.program("neurontrace-aggregator"), self.fleet.program("neurontrace-agent")
        store, spool = self.fleet.dir / "store", self.fleet.spool_of(INSTANCE)
        store_check(aggregator, store)
        report = spool_check(agent, spool)
        self.assertEqual(chunks_in(report), facts["spooled_chunks"])

        # Before the spool is delivered: what had ended is whole, of the other the part that the store has.
        self.fleet.start_aggregator()
        stored, spooled = facts["captures"]["stored"], facts["captures"]["spooled"]
        self.assertEqual(events_of(self.fleet, stored["id"]), stored)
        self.assertLess(events_of(self.fleet, spooled["id"])["events"], spooled["events"])
        self.fleet.aggregator.stop()

        deliver_spool(self.fleet, spooled["id"])
        self.assertEqual(events_of(self.fleet, spooled["id"]), spooled, "each event once")
        self.assertEqual(events_of(self.fleet, stored["id"]), stored)
        self.assertEqual(self.fleet.agents[INSTANCE].metric("neurontrace_agent_events_lost_total"), 0)
        self.fleet.agents[INSTANCE].stop()
        self.fleet.aggregator.stop()
        store_check(aggregator, store)


class VersionsTest(unittest.TestCase):
    def test_there_is_a_fixture_of_every_version_before(self):
        """Of either kind; the project's own version is the last of the list."""
        version = re.search(r"^project\(neurontrace VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        plain, full = ({path.relative_to(FIXTURES).parts[0] for path in paths} for paths in (releases(), full_releases()))
        listed = (FIXTURES / "versions.txt").read_text().split()
        self.assertEqual(faults_of_versions(version, listed, plain & full), [])
        self.assertTrue(plain & full, f"there is no release to upgrade from: */facts.json and */{FULL}/facts.json")

    def test_a_new_version_asks_for_a_fixture_of_the_one_before(self):
        self.assertEqual(faults_of_versions("0.1.0", ["0.1.0"], {"0.1.0"}), [])
        self.assertEqual(faults_of_versions("0.2.0", ["0.1.0", "0.2.0"], {"0.1.0"}), [])
        self.assertEqual(faults_of_versions("0.10.0", ["0.9.0", "0.10.0"], {"0.9.0", "0.10.0"}), [])
        for project, listed, fixtures, word in (
                ("0.2.0", ["0.1.0"], {"0.1.0"}, "the version is 0.2.0"),
                ("0.1.0", [], {"0.1.0"}, "the version is 0.1.0"),
                ("0.2.0", ["0.1.0", "0.2.0"], set(), "has not all of 0.1.0"),
                ("0.3.0", ["0.1.0", "0.2.0", "0.3.0"], {"0.1.0", "0.3.0"}, "has not all of 0.2.0"),
                ("0.2.0", ["0.3.0", "0.2.0"], {"0.3.0"}, "not in order")):
            fault, = faults_of_versions(project, listed, fixtures)
            self.assertIn(word, fault)


def add_tests():
    for fixture in releases():
        name = "test_from_" + fixture.name.replace(".", "_")
        setattr(UpgradeTest, name, lambda self, fixture=fixture: self.check_release(fixture))


add_tests()

if __name__ == "__main__":
    suite.main()
