# SPDX-License-Identifier: Apache-2.0
"""scripts/demo_frameworks gives one timeline of every worker, with nothing lost."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from pftrace_reader import Pftrace

ROOT = Path(__file__).resolve().parents[2]
MISSING = suite.built_by("setup_frameworks", "torch")[1]


@suite.needs_of_nightly(MISSING)
class DemoTest(unittest.TestCase):
    def test_demo(self):
        with tempfile.TemporaryDirectory(prefix="neurontrace-frameworks-") as out:
            done = subprocess.run([ROOT / "scripts" / "demo_frameworks", "--out", out, "--duration", "1"], text=True,
                                  capture_output=True, timeout=600, check=False, env={**os.environ, "NEURONTRACE_CONFIG": ""})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for line in ("framework traces seen", "no problems", "aten::addmm", "every event the runtime produced is stored"):
                self.assertIn(line, done.stdout)
            # The hardware's spans have the model in their names.
            names = {entry.name.split()[0] for entry in Pftrace(Path(out) / "frameworks.pftrace").slices if entry.name}
            self.assertEqual({"aten::addmm", "nrt_execute", "nc_exec_running"} - names, set())


if __name__ == "__main__":
    suite.main()
