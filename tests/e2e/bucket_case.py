# SPDX-License-Identifier: Apache-2.0
"""What the tests of exports into a bucket have in common: a real S3 server, and a proxy before it."""
import os
import pathlib
import unittest.mock

import suite
from delivery_case import DeliveryCase
from s3_server import KEY_ID, SECRET, Proxy, S3Server

MIB = 1 << 20


class BucketCase(DeliveryCase):
    """The bucket `traces`, into which the aggregator may write below `prod`; left out, with words, without a server."""

    def setUp(self):
        super().setUp()
        program, why = suite.built_by("setup_s3_server")
        if not program:
            suite.skip_without_setup(why)
        self.disk = pathlib.Path(self.fleet.dir, "s3")
        self.top = self.disk / "traces" / "prod"
        (self.disk / "traces").mkdir(parents=True)
        self.server = S3Server(program, self.disk, self.fleet.logs / "s3.log")
        self.addCleanup(self.server.stop)
        self.proxy = Proxy(self.server.port)
        self.addCleanup(self.proxy.stop)
        # Nobody asks AWS's own address for a role.
        self.use(AWS_EC2_METADATA_DISABLED="true")
        self.use_keys(KEY_ID, SECRET)

    def use(self, **variables):
        """In the environment of aggregators that are started from now on."""
        change = unittest.mock.patch.dict(os.environ, {name: str(value) for name, value in variables.items()})
        change.start()
        self.addCleanup(change.stop)

    def use_keys(self, key_id, secret):
        """Of aggregators that are started from now on."""
        self.use(AWS_ACCESS_KEY_ID=key_id, AWS_SECRET_ACCESS_KEY=secret)

    def start(self, *options, root="s3://traces/prod"):
        self.fleet.start_aggregator("--export-root", root, "--s3-endpoint", f"http://{self.proxy.endpoint}",
                                    "--s3-region", "us-east-1", *options)

    def capture_of(self, mebibytes, instances=1):
        """The id of a capture with one artifact of so many MiB. No two of its parts are equal."""
        content = b"".join(os.urandom(MIB // 2) * 2 for _ in range(mebibytes))
        return self.capture({"profile_nc_0_session_1.ntff": content}, instances)

    def export(self, capture_id, to="s3://traces/prod"):
        return "export", capture_id, "--to", to, "--format", "summary-json"

    def check_objects(self, capture_id, below=""):
        """As check_steps, and neither a claim nor a part of an object is left."""
        top = self.top / below
        manifest = self.check_steps(top, capture_id)
        about = top / f"neurontrace_{capture_id}"
        self.assertFalse(list(about.glob("claim.*")))
        self.assertFalse((about / "manifest.partial.json").exists())
        return [file for step in manifest["steps"] for file in step["files"]]
