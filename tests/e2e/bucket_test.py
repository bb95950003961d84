# SPDX-License-Identifier: Apache-2.0
"""Exports into a bucket of a real S3 server: the layout, large objects, names, who may write, and the texts of
refusals."""
import json
import time

import suite
from bucket_case import BucketCase
from s3_server import KEY_ID


class BucketTest(BucketCase):
    def test_a_bucket_gets_the_vendors_layout_with_large_objects_in_parts(self):
        self.start()
        # Every character that such names may have: a service signs them as it reads them.
        capture_id = self.capture({"profile_nc_0_session_1.ntff": bytes(range(256)) * (40 << 12),
                                   "neff_a+b=c@d,e:f-g_vnc_0.neff": b"model", "trace_info.pb": b""})
        done = self.fleet.cli("export", capture_id, "--to", "s3://traces/prod", "--format", "perfetto", "--format",
                              "summary-json")
        self.assertIn(f"s3://traces/prod/neurontrace_{capture_id}/manifest.json", done.stdout)
        files = self.check_objects(capture_id)
        self.assertGreater(max(file["bytes"] for file in files), 32 << 20)
        self.assertEqual(self.proxy.seen(lambda r: r.is_part()), 3, "40 MiB in parts of 16")
        self.assertEqual(len(list(self.top.glob("i-*_pid_*/*/neurontrace.json"))), 2)
        again = self.fleet.cli_json("export", capture_id, "--to", "s3://traces/prod", "--format", "summary-json")
        self.assertGreater(int(again["files_there"]), 0)
        self.assertEqual(self.proxy.seen(lambda r: r.is_part()), 3, "what is there is not sent again")

    def test_second_writer_learns_holder(self):
        self.start()
        capture_id = self.capture(instances=1)
        directory = self.top / f"neurontrace_{capture_id}"
        directory.mkdir(parents=True)
        lease_ns = time.time_ns() + 100_000_000_000
        (directory / "claim.1.json").write_text(json.dumps({"owner": "agg-2", "lease_until_realtime_ns": lease_ns}))
        refused = self.fleet.cli(*self.export(capture_id), check=False)
        self.assertIn("being written by agg-2", refused.stderr)
        outside = self.fleet.cli(*self.export(capture_id, "s3://traces/other"), check=False)
        self.assertIn("export roots", outside.stderr)
        self.assertFalse((self.disk / "traces" / "other").exists())

    def test_refusals_suggest_remedy(self):
        for key_id, secret in ((KEY_ID, "not the secret"), ("nobody", "secret")):
            self.use_keys(key_id, secret)
            self.start()
            if not self.fleet.workers:
                capture_id = self.capture(instances=1)
            failed = self.fleet.cli(*self.export(capture_id), check=False)
            self.assertEqual(failed.returncode, 1)
            self.assertRegex(failed.stderr, "HTTP 40[34], ")
            self.assertIn("check that the aggregator's AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", failed.stderr)
            self.assertNotIn(secret, failed.stderr)
            self.fleet.aggregator.stop()
        self.use_keys("", "")
        self.start()
        failed = self.fleet.cli(*self.export(capture_id), check=False)
        self.assertIn("the aggregator has no credentials for S3: set AWS_ACCESS_KEY_ID", failed.stderr)
        self.assertFalse(self.top.exists())

    def test_reports_missing_bucket_or_service(self):
        self.start(root="s3://nowhere/x")
        capture_id = self.capture(instances=1)
        failed = self.fleet.cli(*self.export(capture_id, "s3://nowhere/x"), check=False)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("NoSuchBucket", failed.stderr)
        self.assertIn("create the bucket", failed.stderr)
        self.proxy.stop()
        failed = self.fleet.cli(*self.export(capture_id, "s3://nowhere/x"), check=False)
        self.assertIn(self.proxy.endpoint, failed.stderr)
        self.assertNotIn("Check that neurontrace-aggregator runs there", failed.stderr)


if __name__ == "__main__":
    suite.main()
