# SPDX-License-Identifier: Apache-2.0
"""Exports that the aggregator writes into directories of a shared volume."""
import json
import pathlib
import shutil
import time

import suite
from delivery_case import DeliveryCase
from fleet import wait_until


class DeliveryTest(DeliveryCase):
    def test_exports_on_request_and_standing_ones_survive_a_restart(self):
        """One capture for both: a standing export waits until its clocks are final, as does what resumes."""
        rule = f'{{name = "all", to = "{self.root}/standing", formats = ["perfetto", "summary-json"]}}'
        self.start("--standing-export", rule)
        capture_id = self.capture({"neff_ab_vnc_0.neff": bytes(range(256)) * 5000, "trace_info.pb": b"info"})
        self.fleet.aggregator.stop()  # before its clocks are final
        self.start("--standing-export", rule)
        destination = self.check_vendor_directories(capture_id)
        manifest = self.root / "standing" / f"neurontrace_{capture_id}" / "manifest.json"
        wait_until(manifest.exists, "the standing export", 120)
        self.check_whole(self.root / "standing", capture_id)
        self.check_resumes(capture_id, destination)

    def check_vendor_directories(self, capture_id):
        """Exports the capture with a manifest into directories named as the vendor's tools do; returns the destination."""
        destination = self.root / "runs" / "7"
        done = self.fleet.cli("export", capture_id, "--to", destination, "--format", "perfetto", "--format", "json")
        self.assertIn(f"{destination}/neurontrace_{capture_id}/manifest.json", done.stdout)
        manifest = self.check_whole(destination, capture_id)
        self.assertEqual({step["name"] for step in manifest["steps"]}, {"perfetto", "json", "workers"} |
                         {f"artifact {path}" for path in self.artifacts})
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
        return destination

    def check_resumes(self, capture_id, destination):
        """The same again writes what is not there, and no more."""
        wait_until(lambda: not self.fleet.cli_json("export", capture_id, "--to", destination).get("notes"),
                   "final clocks", 90, every=1)
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
        self.assertEqual([path.name for path in self.root.iterdir()], ["link"], "nor is anything made on the way there")
        twice = self.fleet.cli("export", capture_id, "--to", self.root, "-o", "x", check=False)
        self.assertEqual(twice.returncode, 2)

    def test_second_writer_learns_owner(self):
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
        self.assertNotIn("Check that neurontrace-aggregator runs there", refused.stderr)
        claim.write_text(json.dumps({"owner": "dead", "lease_until_realtime_ns": time.time_ns() - 40_000_000_000}))
        self.fleet.cli("export", capture_id, "--to", self.root)
        self.check_whole(self.root, capture_id)

    def test_a_root_may_itself_be_a_link(self):
        link = pathlib.Path(self.fleet.dir, "link")
        link.symlink_to(self.root)
        self.fleet.start_aggregator("--export-root", link)
        capture_id = self.capture()
        self.fleet.cli("export", capture_id, "--to", link / "a", "--format", "summary-json")
        self.check_whole(self.root / "a", capture_id)

    def test_omits_and_reports_damaged_artifact(self):
        self.start()
        capture_id = self.capture({"neff_ab_vnc_0.neff": b"x" * 5000, "trace_info.pb": b"info"})
        name, content = next(item for item in self.artifacts.items() if item[0].endswith(".neff"))
        kept = next(path for path in (self.fleet.dir / "store" / "artifacts").glob("??/*")
                    if path.stat().st_size == len(content))
        kept.write_bytes(b"y" * 5000)
        del self.artifacts[name]
        export = ("export", capture_id, "--to", self.root, "--format", "summary-json")
        for _ in range(2):
            done = self.fleet.cli(*export, codes=(3,))
            self.assertIn(f"artifact {name} is damaged", done.stdout + done.stderr)
            self.check_whole(self.root, capture_id)
        kept.unlink()
        done = self.fleet.cli(*export, codes=(3,))
        self.assertIn(f"artifact {name} is damaged", done.stdout + done.stderr)
        self.check_whole(self.root, capture_id)


if __name__ == "__main__":
    suite.main()
