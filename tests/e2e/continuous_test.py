# SPDX-License-Identifier: Apache-2.0
"""A fleet that is recorded for several times as long as its capture keeps: what is stored stays of one size, the last
seconds come out whole, and certificates say what has expired, also when the aggregator is killed in the middle."""

import signal
import time
from collections import Counter

import suite
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import key_of, read_store, read_truth

KEEP_SECONDS = 5
WINDOW_SECONDS = 3
SECOND = 1_000_000_000


class ContinuousTest(FleetCase):
    def show(self, capture_id):
        capture = self.fleet.show_capture(capture_id)
        return {"events": int(capture["events"]), "expired": int(capture["events_expired"]),
                "lost": int(capture["events_lost"]), "bytes": int(capture["bytes"])}

    def wait_for(self, capture_id, condition, what, seconds=60):
        seen = {}

        def there():
            seen.update(self.show(capture_id))
            return condition(seen)
        wait_until(there, f"{what}, and not {seen}", seconds)
        return seen

    def check_window(self, capture_id, workers):
        """Every event of the last seconds is in an export of them, once."""
        wait_until(lambda: self.is_window_whole(capture_id, workers), "an export that ends within its window", 60)

    def is_window_whole(self, capture_id, workers):
        """Fails if an event is missing or exported twice; false if the export took so long that nothing was surely in it."""
        file = self.fleet.dir / "window.jsonl"
        done = self.fleet.cli_json("export", capture_id, "--format", "events", "--from", f"-{WINDOW_SECONDS}s", "--to", "now",
                                   "-o", file, codes=(0, 3))
        end = time.time_ns()
        self.assertIn("provisional", done["verdict"])
        self.assertTrue(any("known" in note for note in done["notes"]), done)
        stored, _ = read_store(file)
        self.assertGreater(sum(map(len, stored.values())), 0, done)
        for worker in workers:
            # Between the two moments the window's ends lie somewhere; what is surely in it has to be there.
            truth = {}
            for row in read_truth(worker.truth):
                truth.setdefault(row["nc_idx"], {})[key_of(row)] = row["timestamp_ns"]
            for nc_idx, rows in truth.items():
                found = stored.get((worker.instance_id, worker.reported_pid, nc_idx), Counter())
                self.assertEqual([key for key, count in found.items() if count != 1], [])
                newest = max((key[3] for key in found), default=0)
                surely = {key for key, stamp in rows.items() if end - WINDOW_SECONDS * SECOND <= stamp < newest}
                if not surely:
                    return False
                self.assertEqual(surely - set(found), set())
                extra = {key for key in found if key not in rows and key[3] < max(rows.values())}
                self.assertEqual(extra, set())
        return True

    def test_retained_data_is_bounded_and_complete(self):
        workers = self.start_fleet(instances=2, workers=1, cores=2)
        capture_id = self.start_capture("--continuous", "--keep", f"{KEEP_SECONDS}s", "--all-events")
        first = self.wait_for(capture_id, lambda c: c["expired"] > c["events"] > 0, "as much to expire as is kept")
        self.check_window(capture_id, workers)

        self.fleet.aggregator.signal(signal.SIGKILL)
        self.fleet.aggregator.wait()
        self.fleet.start_aggregator()
        self.fleet.wait_for_status(agents=2)

        later = self.wait_for(capture_id, lambda c: c["expired"] > 3 * first["events"], "three times as much to expire")
        self.assertLess(later["bytes"], 2 * first["bytes"])
        self.assertEqual(later["lost"], 0)
        self.check_window(capture_id, workers)

        # A longer age takes effect without a restart of the capture.
        self.fleet.cli("captures", "keep", capture_id, "--for", f"{4 * KEEP_SECONDS}s")
        self.wait_for(capture_id, lambda c: c["events"] > 2 * later["events"], "twice as much to be kept")

        verdict = self.stop_capture(capture_id)["certificate"]["verdict"]
        self.assertIn("complete: ", verdict)
        self.assertNotIn("incomplete", verdict)
        self.assertRegex(verdict, r"expired: \d+ events before \d{4}-")
        done = self.show(capture_id)
        self.assertEqual(done["lost"], 0)
        for worker in workers:
            self.assertEqual(worker.stop(), 0)
        produced = sum(1 for worker in workers for _ in read_truth(worker.truth))
        self.assertLessEqual(done["events"] + done["expired"], produced)


if __name__ == "__main__":
    suite.main()
