# SPDX-License-Identifier: Apache-2.0
"""What every former release left behind opens in this one, with nothing lost and nothing twice.

Its store has a capture that had ended and one that went on; its spool has the rest of that one. They were made by
scripts/make_upgrade_fixture with the programs of that release, on a host that has been started anew since.
"""
import json

import suite
from fleet_case import FleetCase
from upgrade import (INSTANCE, deliver_spool, events_of, releases, spool_check, store_check, unpack)


class UpgradeTest(FleetCase):
    def check_release(self, fixture):
        facts = json.loads((fixture / "facts.json").read_text())
        unpack(fixture, self.fleet)
        aggregator, agent = self.fleet.program("neurontrace-aggregator"), self.fleet.program("neurontrace-agent")
        store, spool = self.fleet.dir / "store", self.fleet.spool_of(INSTANCE)
        store_check(aggregator, store)
        report = spool_check(agent, spool)
        self.assertEqual(sum(segment["chunks"] for segment in report["segments"]), facts["spooled_chunks"])

        # Before the spool is delivered: what had ended is whole, of the other the part that the store has.
        self.fleet.start_aggregator()
        stored, spooled = facts["captures"]["stored"], facts["captures"]["spooled"]
        self.assertEqual(events_of(self.fleet, stored["id"]), stored)
        self.assertLess(events_of(self.fleet, spooled["id"])["events"], spooled["events"])
        self.fleet.aggregator.stop()

        deliver_spool(self.fleet, spooled["id"])
        self.assertEqual(events_of(self.fleet, spooled["id"]), spooled, "each event once")
        self.assertEqual(events_of(self.fleet, stored["id"]), stored)
        self.assertEqual(self.metric(self.fleet.agents[INSTANCE], "neurontrace_agent_events_lost_total"), 0)
        self.fleet.agents[INSTANCE].stop()
        self.fleet.aggregator.stop()
        store_check(aggregator, store)

    def test_there_is_a_release_to_upgrade_from(self):
        self.assertTrue(releases())


def add_tests():
    for fixture in releases():
        name = "test_from_" + fixture.name.replace(".", "_")
        setattr(UpgradeTest, name, lambda self, fixture=fixture: self.check_release(fixture))


add_tests()

if __name__ == "__main__":
    suite.main()
