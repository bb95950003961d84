# SPDX-License-Identifier: Apache-2.0
"""Exports whose reader does not read: they keep nobody else from theirs, and end with their reader."""

import subprocess

import suite
from fleet import wait_until
from secure_case import SecureCase

EXPORTS_OF_CALLER_MAX = 6  # kExportsOfCallerMax


class SlowReaderTest(SecureCase):
    def running(self):
        return self.fleet.aggregator.metric("neurontrace_aggregator_exports_running")

    def begin_unread(self, security, capture):
        """A command whose output nobody takes, so that it soon takes nothing either."""
        before, self.fleet.client_security = self.fleet.client_security, security
        try:
            command = self.fleet.cli_command("export", capture, "--format", "json", "-o", "-")
        finally:
            self.fleet.client_security = before
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def test_one_caller_cannot_take_all_places(self):
        viewer = self.ca.issue("eve", "URI:neurontrace:viewer")
        self.start_secure_fleet(options=("--events-per-second", 20_000))
        capture = self.start_capture()
        self.wait_for_events(capture, 100_000)
        self.stop_capture(capture)
        unread = [self.begin_unread(viewer, capture) for _ in range(EXPORTS_OF_CALLER_MAX)]
        wait_until(lambda: self.running() == EXPORTS_OF_CALLER_MAX, "all of them to begin", 60)
        self.check_refused(self.cli_as(viewer, "export", capture, "-o", self.fleet.dir / "eve.pftrace"),
                           f"eve has reached the limit of {EXPORTS_OF_CALLER_MAX} exports per caller")
        self.fleet.cli("export", capture, "-o", self.fleet.dir / "root.pftrace")
        self.assertEqual(self.running(), EXPORTS_OF_CALLER_MAX, "nobody read them meanwhile")
        self.check_refused(self.cli_as(self.admin, "captures", "delete", capture), "is being exported")
        for process in unread:
            process.kill()
        wait_until(lambda: self.running() == 0, "them to end with their readers", 60)
        self.fleet.cli("captures", "delete", capture)


if __name__ == "__main__":
    suite.main()
