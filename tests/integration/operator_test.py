# SPDX-License-Identifier: Apache-2.0
"""What operators do to a running fleet: captures by id, side by side, filtered, of nothing, deleted."""

import threading

import suite
from fleet_case import FleetCase
from ground_truth import read_events

HARDWARE = {"nc_exec_running", "cc_running", "cc_exec_barrier", "numerical_err", "nrt_model_switch",
            "nc_model_switch", "timestamp_sync_point", "hw_notify"}


class Captures(FleetCase):
    def test_start_and_stop_by_id(self):
        self.start_fleet()
        capture_id = self.start_capture("--name", "by hand")
        self.assertRegex(capture_id, "^[0-9A-HJKMNP-TV-Z]{26}$")
        self.wait_for_events(capture_id, 500)
        running = self.fleet.show_capture(capture_id[:10])
        self.assertEqual((running["capture_id"], running["state"]), (capture_id, "CAPTURE_STATE_RECORDING"))
        self.assertEqual(running["spec"]["name"], "by hand")
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        out = self.fleet.dir / "by-hand.jsonl"
        done = self.fleet.cli("capture", "stop", capture_id, "-o", out)
        self.assertIn("complete", done.stdout)
        self.fleet.wait_for_workers(1)
        self.assertGreater(sum(1 for _ in read_events(out)), 500)
        again = self.fleet.cli("capture", "stop", capture_id, check=False)
        self.assertEqual(again.returncode, 0, "stopping what has ended is no failure: " + again.stderr)
        self.check_whole(capture_id)

    def test_a_capture_ends_after_its_duration(self):
        self.start_fleet()
        done = self.fleet.cli("capture", "--duration", "700ms", "--name", "timed")
        self.assertIn("complete", done.stdout)
        capture, = self.fleet.cli_json("captures")["captures"]
        seconds = (int(capture["stopped_realtime_ns"]) - int(capture["started_realtime_ns"])) / 1e9
        self.assertGreaterEqual(seconds, 0.7)
        self.check_whole(capture["capture_id"])

    def test_one_after_the_other(self):
        """Each capture is a trace of its own in the runtime; nothing of one is in the other."""
        self.start_fleet()
        ids = []
        for _ in range(3):
            self.fleet.cli("capture", "--duration", "400ms")
            ids.append(self.fleet.cli_json("captures")["captures"][-1]["capture_id"])
        self.assertEqual(ids, sorted(set(ids)))
        for trace, capture_id in enumerate(ids, 1):
            self.check_whole(capture_id, traces={trace})

    def test_delete(self):
        self.start_fleet()
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 200)
        refused = self.fleet.cli("captures", "delete", capture_id, check=False)
        self.assertEqual(refused.returncode, 1, "it is still running")
        self.stop_capture(capture_id)
        deleted = self.fleet.cli_json("captures", "delete", capture_id)
        self.assertGreater(int(deleted["chunks"]), 0)
        self.assertEqual(self.fleet.cli_json("captures").get("captures", []), [])
        for command in (["captures", "show", capture_id], ["captures", "delete", capture_id],
                        ["export", capture_id, "-o", self.fleet.dir / "gone.json"], ["capture", "stop", capture_id]):
            done = self.fleet.cli(*command, check=False)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn(capture_id, done.stderr)
        self.assertFalse((self.fleet.dir / "gone.json").exists())
        self.fleet.aggregator.stop()
        self.fleet.start_aggregator()
        self.assertEqual(self.fleet.cli_json("captures").get("captures", []), [])

    def test_no_agent_at_all(self):
        self.fleet.start_aggregator()
        done = self.fleet.cli("capture", "--duration", "200ms", check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("no worker", (done.stdout + done.stderr).lower())


class SideBySide(FleetCase):
    def test_two_operators_on_two_instances(self):
        self.start_fleet(instances=2)
        results = {}

        def operator(instance):
            results[instance] = self.fleet.cli("capture", "--duration", "1s", "--instance", instance, "--name", instance)
        threads = [threading.Thread(target=operator, args=(name,)) for name in ("i-0001", "i-0002")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        captures = self.fleet.cli_json("captures")["captures"]
        self.assertEqual(len(captures), 2)
        for capture in captures:
            name = capture["spec"]["name"]
            self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE")
            self.assertEqual({w["worker"]["instance_id"] for w in capture["workers"]}, {name})
            self.check_whole(capture["capture_id"], [w for w in self.fleet.workers if w.instance_id == name])


class Filters(FleetCase):
    def record(self, *options):
        """A capture with such filters, its rows as (instance, nc_idx, event type); compared with the truth."""
        capture_id = self.start_capture(*options)
        self.wait_for_events(capture_id, 300)
        self.stop_capture(capture_id)
        return capture_id, self.rows(capture_id)

    def rows(self, capture_id, *options):
        return [(row["instance_id"], row["nc_idx"], row["event"]["event_type"])
                for row in read_events(self.fleet.export_events(capture_id, *options))]

    def test_in_the_capture(self):
        """What a filter leaves out the runtime never records, so the truth lacks it too. Types that the runtime has and
        does not list it cannot leave out: the agent does."""
        wanted = (HARDWARE | {"nrt_execute"}) - {"cc_running"}
        self.start_fleet(instances=2)
        captures = {}
        captures["core"], rows = self.record("--core", "1")
        self.assertEqual({row[1] for row in rows}, {1})
        captures["instance"], rows = self.record("--instance", "i-0002")
        self.assertEqual({row[0] for row in rows}, {"i-0002"})
        captures["types"], rows = self.record("--event-type", "hardware,nrt_execute,^cc_running")
        types = {row[2] for row in rows}
        self.assertIn("nrt_execute", types)
        self.assertIn("nc_exec_running", types)
        self.assertLessEqual(types, wanted)
        captures["without"], rows = self.record("--event-type", "^kbl_exec_wait,^enc_barrier")
        types = {row[2] for row in rows}
        self.assertNotIn("kbl_exec_wait", types)
        self.assertNotIn("enc_barrier", types)
        self.assertIn("kbl_exec_core", types)
        first, second = self.fleet.workers
        self.check_whole(captures["core"], traces={1})
        self.check_whole(captures["instance"], [second], traces={2})
        for worker, trace in ((first, 2), (second, 3)):
            self.check_whole(captures["types"], [worker], ("--instance", worker.instance_id), traces={trace},
                             selects=lambda row: row["event_type"] in wanted)

    def test_in_the_export(self):
        """A part of the capture, and all of that part."""
        self.start_fleet(instances=2)
        capture_id, rows = self.record()
        first, second = self.fleet.workers
        self.check_whole(capture_id)
        self.assertEqual({row[0] for row in rows}, {"i-0001", "i-0002"})
        self.check_whole(capture_id, [first], ("--instance", "i-0001"))
        self.check_whole(capture_id, options=("--core", "0"), selects=lambda row: row["nc_idx"] == 0)
        self.check_whole(capture_id, [second], ("--instance", "i-0002", "--core", "1", "--event-type", "nrt_execute"),
                         selects=lambda row: row["nc_idx"] == 1 and row["event_type"] == "nrt_execute")
        self.check_whole(capture_id, options=("--event-type", "^enc_barrier"),
                         selects=lambda row: row["event_type"] != "enc_barrier")
        for wrong in (["--core", "x"], ["--event-type", "^"], ["--from", "soon"]):
            done = self.fleet.cli("export", capture_id, *wrong, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_window_of_an_export(self):
        self.start_fleet()
        capture_id, _ = self.record()
        everything = [row["event"]["timestamp_ns"] for row in read_events(self.fleet.export_events(capture_id))]
        first = min(everything)
        start, end = first + 100_000_000, first + 200_000_000
        for options in (("--from", "100ms", "--to", "200ms"), ("--from", start, "--to", end)):
            window = [row["event"]["timestamp_ns"]
                      for row in read_events(self.fleet.export_events(capture_id, *options))]
            self.assertCountEqual(window, [t for t in everything if start <= t < end])


if __name__ == "__main__":
    suite.main()
