# SPDX-License-Identifier: Apache-2.0
"""Exports that are interrupted on their way to the command line: the aggregator killed in the middle, the command
killed, an interrupt. What has the real name in the end is, byte for byte, an export that nothing disturbed."""
import signal
import subprocess

import suite
from fleet import wait_until
from fleet_case import FleetCase

RECEIVED_BYTES = 1 << 20  # by then the export is on its way, and most of it is not there
EVENTS = 150_000


class ExportResumeTest(FleetCase):
    def setUp(self):
        super().setUp()
        self.out = self.fleet.dir / "out"
        self.out.mkdir()
        self.path = self.out / "events.jsonl"
        self.part = self.out / "events.jsonl.part"
        self.request = self.out / "events.jsonl.part.request"

    def record(self):
        """The id of a capture whose clocks are final: it exports alike from then on."""
        self.start_instances("i-0001")
        self.fleet.start_worker("i-0001", "--cores", 2, "--mix", "graph", "--executions-per-second", 2000)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        self.fleet.wait_for_capture(capture_id, lambda c: int(c["events"]) >= EVENTS, f"{EVENTS} events", 90)
        self.stop_capture(capture_id, code=None)
        for worker in self.fleet.workers:
            worker.stop()
        whole = self.fleet.dir / "whole.jsonl"
        wait_until(lambda: not self.fleet.cli_json("export", capture_id, "--format", "events", "-o", whole,
                                                   codes=(0, 3)).get("notes"), "final clocks", 120, every=1)
        self.whole = whole.read_bytes()
        self.assertGreater(len(self.whole), 16 * RECEIVED_BYTES, "more than the network holds at once")
        return capture_id

    def begin(self, capture_id):
        """An export that has received something and is held there: nothing further reaches its disk."""
        command = [str(self.fleet.program("neurontrace")), "--aggregator", self.fleet.address, "export", capture_id,
                   "-o", str(self.path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: process.poll() is not None or
                   (self.part.exists() and self.part.stat().st_size > RECEIVED_BYTES), "the first bytes", 60)
        process.send_signal(signal.SIGSTOP)
        self.assertIsNone(process.poll(), "it has not ended")
        self.assertFalse(self.path.exists(), "nor is it whole")
        return process

    def end(self, process):
        process.send_signal(signal.SIGCONT)
        out, error = process.communicate(timeout=120)
        return process.returncode, out, error

    def check_whole(self):
        self.assertEqual(self.path.read_bytes(), self.whole)
        self.assertEqual(list(self.out.iterdir()), [self.path], "nothing temporary is left")
        self.path.unlink()

    def export(self, capture_id, *options):
        return self.fleet.cli("export", capture_id, "-o", self.path, *options, codes=(0, 3))

    def test_resumes_interrupted_transfer(self):
        capture_id = self.record()
        self.check_aggregator_killed(capture_id)
        self.check_command_killed(capture_id)
        self.check_interrupted(capture_id)
        self.check_changed(capture_id)
        self.check_aggregator_stays_away(capture_id)

    def check_aggregator_killed(self, capture_id):
        """The command continues by itself when it is there again."""
        process = self.begin(capture_id)
        self.fleet.aggregator.kill()
        self.fleet.start_aggregator()
        code, out, error = self.end(process)
        self.assertIn(code, (0, 3), error)
        self.assertIn("retrying", error)
        self.assertNotIn("starts over", error)
        self.assertIn(f"wrote {self.path}", out)
        self.check_whole()

    def check_command_killed(self, capture_id):
        """The same command continues with what it left."""
        process = self.begin(capture_id)
        process.kill()
        process.wait()
        self.assertTrue(self.part.exists() and self.request.exists())
        done = self.export(capture_id)
        self.assertIn(f"resuming {self.part}", done.stderr)
        self.assertNotIn("starts over", done.stderr)
        self.check_whole()

    def check_interrupted(self, capture_id):
        process = self.begin(capture_id)
        process.send_signal(signal.SIGINT)
        code, _, error = self.end(process)
        self.assertEqual(code, 1)
        self.assertIn(f"is kept in {self.part}: the same command resumes it", error)
        # Of another request it is not taken, and does not stay either.
        plain = self.out / "other.jsonl"
        other = self.fleet.cli("export", capture_id, "--clock", "raw", "-o", self.path, codes=(0, 3))
        self.assertNotIn("resuming", other.stderr)
        self.fleet.cli("export", capture_id, "--clock", "raw", "-o", plain, codes=(0, 3))
        self.assertEqual(self.path.read_bytes(), plain.read_bytes())
        self.assertEqual(sorted(self.out.iterdir()), [self.path, plain])
        plain.unlink()
        self.path.unlink()

    def check_changed(self, capture_id):
        """Another beginning is not joined."""
        process = self.begin(capture_id)
        process.kill()
        process.wait()
        with open(self.part, "r+b") as part:
            part.write(b"another beginning")
        done = self.export(capture_id)
        self.assertIn("the export starts over", done.stderr)
        self.check_whole()
        process = self.begin(capture_id)
        process.kill()
        process.wait()
        done = self.export(capture_id, "--no-resume")
        self.assertNotIn("resuming", done.stderr)
        self.check_whole()

    def check_aggregator_stays_away(self, capture_id):
        """An interrupt while it is waited for leaves what is there, too."""
        process = self.begin(capture_id)
        self.fleet.aggregator.kill()
        process.send_signal(signal.SIGCONT)
        first = process.stderr.readline()
        self.assertIn("retrying", first)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the same command resumes it", error)
        self.fleet.start_aggregator()
        self.assertIn("resuming ", self.export(capture_id).stderr)
        self.check_whole()


if __name__ == "__main__":
    suite.main()
