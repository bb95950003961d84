# SPDX-License-Identifier: Apache-2.0
"""Exports that the aggregator writes: into directories of a shared volume, and into a bucket."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

from fleet import wait_until
from fleet_case import FleetCase

ROOT = pathlib.Path(__file__).resolve().parents[2]


class DeliveryTest(FleetCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.fleet.dir, "volume")
        self.root.mkdir()

    def start(self, *options):
        self.fleet.start_aggregator("--export-root", self.root, *options)

    def capture(self):
        """The id of a capture of two instances that has ended."""
        self.start_fleet(instances=2)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 200)
        self.assertEqual(self.stop_capture(capture_id)["state"], "CAPTURE_STATE_COMPLETE")
        return capture_id

    def check_whole(self, destination, capture_id):
        """What a reader of the destination checks; returns the manifest."""
        directory = destination / f"neurontrace_{capture_id}"
        manifest = json.loads((directory / "manifest.json").read_text())
        self.assertTrue(manifest["complete"])
        named = set()
        for step in manifest["steps"]:
            self.assertTrue(step["done"], step["name"])
            for file in step["files"]:
                content = (destination / file["name"]).read_bytes()
                self.assertEqual(len(content), file["bytes"], file["name"])
                self.assertEqual(hashlib.sha256(content).hexdigest(), file["sha256"], file["name"])
                named.add(file["name"])
        subprocess.run(["sha256sum", "--check", "--quiet", f"neurontrace_{capture_id}/SHA256SUMS"], cwd=destination,
                       check=True)
        there = {str(path.relative_to(destination)) for path in destination.rglob("*") if path.is_file()}
        about = {f"neurontrace_{capture_id}/manifest.json", f"neurontrace_{capture_id}/SHA256SUMS"}
        self.assertEqual(there, named | about, "nothing temporary is left, no claim either")
        return manifest

    def test_an_export_stands_in_the_vendors_directories_with_a_manifest(self):
        self.start()
        capture_id = self.capture()
        destination = self.root / "runs" / "7"
        done = self.fleet.cli("export", capture_id, "--to", destination, "--format", "perfetto", "--format", "json")
        self.assertIn(f"{destination}/neurontrace_{capture_id}/manifest.json", done.stdout)
        manifest = self.check_whole(destination, capture_id)
        self.assertEqual({step["name"] for step in manifest["steps"]}, {"perfetto", "json", "workers"})
        workers = sorted(destination.glob("i-*_pid_*/*/neurontrace.json"))
        self.assertEqual(len(workers), 2)
        self.assertTrue(all(len(path.parent.name) == 19 for path in workers))
        about = json.loads(workers[0].read_text())
        self.assertEqual(about["capture_id"], capture_id)
        self.assertTrue(all((workers[0].parent / name).resolve().is_file() for name in about["files"]))
        self.assertEqual(len(about["files"]), 2)
        # The bytes are those of a file that the command line writes.
        own = self.fleet.dir / "own.json"
        self.fleet.cli("export", capture_id, "--format", "json", "-o", own)
        delivered = destination / f"neurontrace_{capture_id}" / "system_profile.json"
        self.assertEqual(len(json.loads(own.read_text())["trace_event"]),
                         len(json.loads(delivered.read_text())["trace_event"]))
        self.check_goes_on(capture_id, destination)

    def check_goes_on(self, capture_id, destination):
        """The same again writes what is not there, and no more."""
        wait_until(lambda: not self.fleet.cli_json("export", capture_id, "--to", destination).get("notes"),
                   "final clocks", 90)
        before = {path: path.stat().st_mtime_ns for path in destination.rglob("*.pftrace")}
        again = self.fleet.cli_json("export", capture_id, "--to", destination)
        self.assertEqual(int(again.get("files_written", 0)), 0)
        self.assertGreater(int(again["files_there"]), 0)
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in destination.rglob("*.pftrace")})
        shutil.rmtree(next(destination.glob("i-*_pid_*")))
        self.fleet.cli("export", capture_id, "--to", destination)
        self.check_whole(destination, capture_id)

    def test_nothing_is_written_outside_the_roots(self):
        self.start()
        capture_id = self.capture()
        outside = pathlib.Path(self.fleet.dir, "outside")
        outside.mkdir()
        (self.root / "link").symlink_to(outside)
        for destination in (outside, f"{self.root}/../outside", self.root / "link", self.root / "link" / "deep",
                            f"{self.root}x", "s3://bucket/prefix"):
            failed = self.fleet.cli("export", capture_id, "--to", destination, check=False)
            self.assertEqual(failed.returncode, 1, failed.stdout)
        self.assertIn("export roots", self.fleet.cli("export", capture_id, "--to", outside, check=False).stderr)
        self.assertEqual(list(outside.iterdir()), [])
        twice = self.fleet.cli("export", capture_id, "--to", self.root, "-o", "x", check=False)
        self.assertEqual(twice.returncode, 2)

    def test_who_comes_second_is_told_who_writes(self):
        self.start()
        capture_id = self.capture()
        directory = self.root / f"neurontrace_{capture_id}"
        directory.mkdir()
        claim = directory / "claim.4.json"
        lease_ns = time.time_ns() + 100_000_000_000
        claim.write_text(json.dumps({"owner": "export 5 of aggregator agg-2", "lease_until_realtime_ns": lease_ns}))
        refused = self.fleet.cli("export", capture_id, "--to", self.root, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("being written by export 5 of aggregator agg-2", refused.stderr)
        claim.write_text(json.dumps({"owner": "dead", "lease_until_realtime_ns": time.time_ns() - 40_000_000_000}))
        self.fleet.cli("export", capture_id, "--to", self.root)
        self.check_whole(self.root, capture_id)

    def test_a_volume_without_rename_has_the_same(self):
        plain = pathlib.Path(self.fleet.dir, "plain")
        plain.mkdir()
        self.start("--export-root-without-rename", plain)
        capture_id = self.capture()
        self.fleet.cli("export", capture_id, "--to", plain / "a", "--format", "perfetto")
        manifest = self.check_whole(plain / "a", capture_id)
        self.assertEqual({step["name"] for step in manifest["steps"]}, {"perfetto", "workers"})

    def test_a_standing_export_writes_what_ends_and_survives_a_restart(self):
        rule = f"name=all to={self.root}/standing formats=perfetto,summary-json"
        self.start("--standing-export", rule)
        capture_id = self.capture()
        self.fleet.aggregator.stop()  # before its clocks are final
        self.start("--standing-export", rule)
        manifest = self.root / "standing" / f"neurontrace_{capture_id}" / "manifest.json"
        wait_until(manifest.exists, "the standing export", 120)
        self.check_whole(self.root / "standing", capture_id)


class BucketTest(FleetCase):
    """A real S3 server over a directory; left out, with words, where it cannot be built."""

    def setUp(self):
        super().setUp()
        built = subprocess.run([ROOT / "scripts" / "setup_s3_server"], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            self.skipTest(f"no S3 server here: {built.stderr[-300:]}")
        self.disk = pathlib.Path(self.fleet.dir, "s3")
        (self.disk / "traces").mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.endpoint = f"127.0.0.1:{free.getsockname()[1]}"
        self.server = None
        self.start_server(built.stdout.strip())
        os.environ.update({"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "secret"})
        self.fleet.start_aggregator("--export-root", "s3://traces/prod", "--s3-endpoint", f"http://{self.endpoint}",
                                    "--s3-region", "us-east-1")

    def start_server(self, program):
        environment = {**os.environ, "ROOT_ACCESS_KEY": "test", "ROOT_SECRET_KEY": "secret"}
        log = open(self.fleet.logs / "s3.log", "wb")
        self.addCleanup(log.close)
        self.server = subprocess.Popen([program, "--port", self.endpoint, "posix", self.disk], env=environment,
                                       stdout=log, stderr=log)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        host, port = self.endpoint.split(":")
        wait_until(lambda: socket.socket().connect_ex((host, int(port))) == 0, "the S3 server")

    def record(self, events):
        self.start_fleet(instances=1, options=("--executions-per-second", 2000))
        capture_id = self.start_capture()
        self.fleet.wait_for_capture(capture_id, lambda c: int(c["events"]) >= events, f"{events} events", 90)
        self.stop_capture(capture_id, code=None)
        return capture_id

    def check_objects(self, capture_id):
        top = self.disk / "traces" / "prod"
        manifest = json.loads((top / f"neurontrace_{capture_id}" / "manifest.json").read_text())
        self.assertTrue(manifest["complete"])
        files = [file for step in manifest["steps"] for file in step["files"]]
        for file in files:
            content = (top / file["name"]).read_bytes()
            self.assertEqual(hashlib.sha256(content).hexdigest(), file["sha256"], file["name"])
        self.assertFalse(list((top / f"neurontrace_{capture_id}").glob("claim.*")))
        self.assertFalse(list((top / f"neurontrace_{capture_id}").glob("manifest.partial.json")))
        return files

    def test_a_bucket_gets_the_same_in_parts_and_goes_on(self):
        capture_id = self.record(150_000)
        export = ("export", capture_id, "--to", "s3://traces/prod", "--format", "events")
        # An interrupt while the first parts are there.
        command = [str(self.fleet.program("neurontrace")), "--aggregator", self.fleet.address, *export]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        partial = self.disk / "traces" / "prod" / f"neurontrace_{capture_id}" / "manifest.partial.json"
        wait_until(lambda: first.poll() is not None or (partial.exists() and '"token"' in partial.read_text()),
                   "the first part", 60)
        first.send_signal(signal.SIGINT)
        out, error = first.communicate(timeout=60)
        if first.returncode == 1:
            self.assertIn("the same command goes on with it", error)
            self.assertFalse((partial.parent / "manifest.json").exists())
        done = self.fleet.cli(*export, codes=(0, 3))
        self.assertIn(f"s3://traces/prod/neurontrace_{capture_id}/manifest.json", done.stdout + out)
        files = self.check_objects(capture_id)
        self.assertGreater(max(file["bytes"] for file in files), 16 << 20, "of more than one part")

    def test_a_second_writer_is_refused_there_too(self):
        capture_id = self.record(100)
        directory = self.disk / "traces" / "prod" / f"neurontrace_{capture_id}"
        directory.mkdir(parents=True)
        lease_ns = time.time_ns() + 100_000_000_000
        (directory / "claim.1.json").write_text(json.dumps({"owner": "agg-2", "lease_until_realtime_ns": lease_ns}))
        refused = self.fleet.cli("export", capture_id, "--to", "s3://traces/prod", check=False)
        self.assertIn("being written by agg-2", refused.stderr)
        outside = self.fleet.cli("export", capture_id, "--to", "s3://traces/other", check=False)
        self.assertIn("export roots", outside.stderr)


if __name__ == "__main__":
    unittest.main()
