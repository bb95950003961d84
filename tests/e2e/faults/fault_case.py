# SPDX-License-Identifier: Apache-2.0
"""What the fault tests have in common: a fleet, and the account of a capture."""

import time

from account import check_account
from fleet import wait_until
from fleet_case import FleetCase


class FaultCase(FleetCase):
    """Workers of one core each with a set pace, so that a test knows how much comes."""

    events_per_second = 1000

    def start_workers(self, instance, count=1, events_per_second=None, cores=1, options=()):
        first = len(self.fleet.workers)
        return [self.fleet.start_worker(
            instance, "--cores", cores, "--rank-start", (first + i) * cores, "--world-size", 1024, "--mix", "bare",
            "--events-per-second", events_per_second or self.events_per_second, *options) for i in range(count)]

    def pass_time(self, seconds, meanwhile=lambda: None):
        """Lets a fault last. Not a wait for something: nothing would tell its end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            meanwhile()
            time.sleep(0.02)  # tidy: poll

    def stored_of(self, capture_id):
        """Events stored by instance."""
        events = {}
        for stream in self.fleet.show_capture(capture_id)["streams"]:
            instance = stream["identity"]["worker"]["instance_id"]
            events[instance] = events.get(instance, 0) + int(stream["events"])
        return events

    def wait_for_flow(self, capture_id, instances, seconds=30):
        """Until new events of all these instances are stored."""
        before = self.stored_of(capture_id)

        def flows():
            now = self.stored_of(capture_id)
            return all(now.get(i, 0) > before.get(i, 0) for i in instances)
        wait_until(flows, f"events of {', '.join(instances)}", seconds)

    def check_account(self, capture_id, killed=(), may_be_unknown=lambda core: False, lossless=True):
        """Ends the workers and holds the capture against their accounts."""
        for worker in self.fleet.workers:
            if worker.running():
                self.assertEqual(worker.stop(), 0, worker.log.read_text())
        account = check_account(self.fleet.workers, self.fleet.export_events(capture_id),
                                self.fleet.show_capture(capture_id), killed, may_be_unknown)
        print(f"{self.id().rsplit('.', 1)[-1]}: {account.summary()}", flush=True)
        self.assertEqual(account.violations, [])
        self.assertGreater(account.stored, 0)
        if lossless:
            self.assertEqual(sum(account.lost.values()), 0, account.summary())
        return account
