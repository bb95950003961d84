# SPDX-License-Identifier: Apache-2.0
"""Exports into directories while something goes wrong: kills, interrupts, several exports and aggregators at once."""
import os
import shutil
import signal

import suite
from delivery_case import DeliveryCase
from fleet import Fleet, wait_until

MIB = 1 << 20
ARTIFACT_MIB = 160


class DeliveryFaultsTest(DeliveryCase):
    def capture_of(self, mebibytes):
        return self.capture({"profile_nc_0_session_1.ntff": os.urandom(MIB) * mebibytes}, instances=1)

    def export(self, capture_id, to=None):
        return "export", capture_id, "--to", to or self.root, "--format", "perfetto"

    def wait_for_middle(self, process, pattern):
        """Until the artifact's file of that name has begun and is not whole."""
        def has_begun(path):
            try:
                return path.stat().st_size > MIB
            except FileNotFoundError:
                return False  # renamed, or given up, since it was listed

        def is_there():
            self.assertIsNone(process.poll(), "it ended before it was in the midst of it")
            return any(has_begun(path) for path in self.root.rglob(pattern))
        wait_until(is_there, "a part of the artifact", 60)

    def check_resumes(self, capture_id):
        self.assertFalse((self.root / f"neurontrace_{capture_id}" / "manifest.json").exists())
        self.fleet.cli(*self.export(capture_id))
        self.check_whole(self.root, capture_id)

    def test_killed_aggregator_resumes_after_restart(self):
        self.start()
        capture_id = self.capture_of(ARTIFACT_MIB)
        first = self.begin(*self.export(capture_id))
        self.wait_for_middle(first, ".*.ntff.*.part")
        self.fleet.aggregator.kill()
        self.assertEqual(first.wait(60), 1)
        self.assertTrue(list(self.root.rglob("claim.*")), "killed while it had the claim")
        self.assertTrue(list(self.root.rglob(".*.part")))
        self.assertFalse(list(self.root.rglob("*.ntff")), "what stands under its name is whole")
        self.start()
        self.check_resumes(capture_id)

    def test_killed_aggregator_resumes_on_volume_without_rename(self):
        self.fleet.start_aggregator("--export-root-without-rename", self.root)
        capture_id = self.capture_of(ARTIFACT_MIB)
        first = self.begin(*self.export(capture_id))
        self.wait_for_middle(first, "*.ntff")
        self.fleet.aggregator.kill()
        self.assertEqual(first.wait(60), 1)
        self.fleet.start_aggregator("--export-root-without-rename", self.root)
        self.check_resumes(capture_id)

    def test_interrupted_export_resumes_with_same_command(self):
        self.start()
        capture_id = self.capture_of(ARTIFACT_MIB)
        first = self.begin(*self.export(capture_id))
        self.wait_for_middle(first, ".*.ntff.*.part")
        first.send_signal(signal.SIGINT)
        _, error = first.communicate(timeout=60)
        self.assertEqual(first.returncode, 1, error)
        self.assertIn("run the same command to resume", error)
        wait_until(lambda: not list(self.root.rglob("claim.*")), "the aggregator to give it up", 60)
        self.assertFalse(list(self.root.rglob(".*.part")))
        self.check_resumes(capture_id)

    def test_one_concurrent_export_writes_and_others_report_it(self):
        self.start()
        capture_id = self.capture_of(30)
        self.check_one_or_both([self.begin(*self.export(capture_id)) for _ in range(4)])
        self.check_whole(self.root, capture_id)

    def test_one_of_two_aggregators_writes(self):
        self.start()
        capture_id = self.capture_of(30)
        self.fleet.aggregator.stop()
        other = Fleet(self.fleet.build)
        self.addCleanup(other.shut_down)
        shutil.copytree(self.fleet.dir / "store", other.dir / "store")  # with the same name and captures
        self.start()
        other.start_aggregator("--export-root", self.root)
        export = self.export(capture_id)
        self.check_one_or_both([self.begin(*export), self.begin(*export, fleet=other)])
        self.check_whole(self.root, capture_id)

    def test_exports_of_two_captures_into_one_destination_leave_each_other_alone(self):
        self.start()
        first = self.capture_of(30)
        second = self.start_capture()
        self.wait_for_events(second, 200)
        self.stop_capture(second)
        commands = [self.begin(*self.export(capture_id)) for capture_id in (first, second)]
        for command in commands:
            _, error = command.communicate(timeout=120)
            self.assertEqual(command.returncode, 0, error)
        for capture_id in (first, second):
            self.check_steps(self.root, capture_id)
        self.assertFalse(list(self.root.rglob(".*.part")) + list(self.root.rglob("claim.*")))


if __name__ == "__main__":
    suite.main()
