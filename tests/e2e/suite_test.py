# SPDX-License-Identifier: Apache-2.0
"""Files of tests end with what happened in them: what was skipped is said, and counted where nothing else ran."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import suite

TESTS = Path(__file__).resolve().parents[1]
# Which the fleet's modules are not in reach of; they skip nothing.
APART = ("tests/fake_nrt/", "tests/integration/tap_", "tests/operations/size_fleet_test.py")
HEAD = "import unittest, suite\n"
PASSES = "class Passes(unittest.TestCase):\n    def test_it(self): pass\n"
SKIPS = "class Skips(unittest.TestCase):\n    @unittest.skip('no\\n root')\n    def test_it(self): pass\n"
FAILS = "class Fails(unittest.TestCase):\n    def test_it(self): self.fail()\n"
NEEDS = "@suite.needs_of_setup({}, 'no helm')\nclass Needs(unittest.TestCase):\n    def test_it(self): pass\n"
NEEDS_ONE = "class Needs(unittest.TestCase):\n    @suite.needs_of_setup({}, 'no helm')\n    def test_it(self): pass\n"
NEEDS_IN_SET_UP = "class Needs(unittest.TestCase):\n    def setUp(self): suite.skip_without_setup('no helm')\n    def test_it(self): pass\n"


class SuiteTest(unittest.TestCase):
    def run_file(self, *parts, ci=""):
        """(exit code, lines that say what was skipped) of a file called some_test.py."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "some_test.py")
            file.write_text(HEAD + "".join(parts) + "suite.main()\n", encoding="utf-8")
            environment = {**os.environ, "CI": ci, "PYTHONPATH": str(Path(suite.__file__).parent)}
            done = subprocess.run([sys.executable, "-B", file], capture_output=True, text=True, check=False, env=environment)
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("SKIPPED: ")]

    def test_a_file_that_ran_nothing_is_skipped(self):
        printed = ["SKIPPED: some_test.Skips.test_it: no root"]
        self.assertEqual(self.run_file(PASSES), (0, []))
        self.assertEqual(self.run_file(SKIPS), (suite.SKIPPED, ["SKIPPED: some_test, 1 of 1: no root"]))
        self.assertEqual(self.run_file(SKIPS, PASSES), (0, printed))
        self.assertEqual(self.run_file(SKIPS, FAILS), (1, printed))
        self.assertEqual(self.run_file("def setUpModule(): raise unittest.SkipTest('no cluster')\n", PASSES),
                         (suite.SKIPPED, ["SKIPPED: some_test, 1 of 1: no cluster"]))

    def test_setup_installs_missing_tools(self):
        for needs in (NEEDS, NEEDS_ONE):
            self.assertEqual(self.run_file(needs.format(False), ci="true"), (0, []))
            self.assertEqual(self.run_file(needs.format(True), PASSES)[0], 0)
        for needs in (NEEDS.format(True), NEEDS_ONE.format(True), NEEDS_IN_SET_UP):
            code, printed = self.run_file(needs)
            self.assertEqual((code, len(printed)), (suite.SKIPPED, 1), needs)
            self.assertTrue(printed[0].endswith("no helm"), printed)
            self.assertEqual(self.run_file(needs, PASSES, ci="true"), (1, []), needs)

    def test_every_file_ends_so(self):
        for file in sorted(TESTS.rglob("*_test.py")):
            if not str(file.relative_to(TESTS.parent)).startswith(APART):
                last = file.read_text(encoding="utf-8").rstrip().splitlines()[-1]
                self.assertIn("suite.main(", last, file)


if __name__ == "__main__":
    suite.main()
