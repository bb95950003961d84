# SPDX-License-Identifier: Apache-2.0
"""docs/operator/backup.md: a copy of the store made while the aggregator is stopped, and one of a single moment of its files, are
sound, and take its place while agents keep recording."""

import json
import shutil
import signal
import subprocess

import suite
from fleet_case import FleetCase
from ground_truth import compare, read_truth


class Backup(FleetCase):
    def setUp(self):
        super().setUp()
        self.store, self.copy = self.fleet.dir / "store", self.fleet.dir / "backup"

    def record_two(self):
        """A capture that has ended, as it is exported, and one that continues."""
        self.workers = self.start_fleet()
        ended = self.start_capture()
        self.wait_for_events(ended, 500)
        self.stop_capture(ended)
        before = self.fleet.export_events(ended, "--clock", "raw").read_bytes()
        self.assertTrue(before)
        running = self.start_capture()
        self.wait_for_events(running, 500)
        return ended, before, running

    def check(self, store):
        """That the check calls it sound; returns its output."""
        done = subprocess.run([self.fleet.program("neurontrace-aggregator"), "--store-check", "--store", store,
                               "--output", "json"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertTrue(found["sound"])
        return found

    def restore(self):
        self.store.rename(self.fleet.dir / "store.old")
        shutil.copytree(self.copy, self.store)
        self.check(self.store)
        self.fleet.start_aggregator()
        self.fleet.wait_for_status(1)

    def newest_trace(self):
        """That of the second capture, by the numbers of the runtime."""
        return {max(row["capture"] for worker in self.workers for row in read_truth(worker.truth))}

    def check_unchanged(self, capture, before):
        self.assertEqual(self.fleet.export_events(capture, "--clock", "raw").read_bytes(), before)

    def test_a_copy_of_a_stopped_store_lacks_nothing(self):
        ended, before, running = self.record_two()
        self.assertEqual(self.fleet.aggregator.stop(), 0)
        shutil.copytree(self.store, self.copy)
        self.assertGreater(self.check(self.copy)["events"], 500)
        self.restore()
        self.wait_for_more_work(self.workers)
        self.stop_capture(running)
        self.check_whole(running, traces=self.newest_trace())
        self.check_unchanged(ended, before)

    def test_snapshot_copy_lacks_and_reports_later_data(self):
        ended, before, running = self.record_two()
        self.fleet.aggregator.signal(signal.SIGSTOP)
        shutil.copytree(self.store, self.copy)
        self.fleet.aggregator.signal(signal.SIGCONT)
        self.assertGreater(self.check(self.copy)["events"], 500)
        later = int(self.fleet.show_capture(running)["events"]) + 1000
        self.wait_for_events(running, later)
        self.fleet.aggregator.kill()
        self.restore()
        self.wait_for_more_work(self.workers)
        capture = self.stop_capture(running, code=3)
        for worker in self.workers:
            self.assertEqual(worker.stop(), 0)
        found = compare(self.workers, self.fleet.export_events(running), traces=self.newest_trace())
        account = capture["certificate"]["account"]
        self.assertGreater(found.missing, 0)
        self.assertEqual((found.missing, found.extra, found.twice), (int(account["lost"]), 0, 0), found)
        self.assertEqual({loss["place"] for loss in account["losses"]}, {"LOSS_PLACE_STORE"})
        self.assertEqual((account["conserved"], account["lost_unknown"]), ("CONSERVATION_YES", False))
        self.check_unchanged(ended, before)


if __name__ == "__main__":
    suite.main()
