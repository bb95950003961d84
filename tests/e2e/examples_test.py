# SPDX-License-Identifier: Apache-2.0
"""examples/laptop runs as it is written, and leaves a trace of every rank with nothing lost."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from pftrace_reader import Pftrace

ROOT = Path(__file__).resolve().parents[2]


class Laptop(unittest.TestCase):
    def test_run(self):
        with tempfile.TemporaryDirectory(prefix="neurontrace-laptop-") as out:
            done = subprocess.run([ROOT / "examples" / "laptop" / "run", out], capture_output=True, text=True, timeout=120,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for line in ("4 of 4 workers recorded", "16 of 16", "no problems", "every event the runtime produced is stored"):
                self.assertIn(line, done.stdout)
            workers = {entry.track.process for entry in Pftrace(Path(out) / "trace.pftrace").events()}
            self.assertEqual(len(workers), 4, workers)


if __name__ == "__main__":
    suite.main()
