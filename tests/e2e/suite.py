# SPDX-License-Identifier: Apache-2.0
"""How a file of tests ends, so that nothing is left out unseen.

`main` stands for unittest.main: it prints each test that was skipped and why, and ends with the code that CTest counts as
skipped where no other was run. What ./scripts/setup installs is there in continuous integration (CI=true): a test that
does not find it is skipped on a machine of a person, and fails there.
"""

import collections
import os
import subprocess
import sys
import unittest
from pathlib import Path

SKIPPED = 77  # tests/e2e/CMakeLists.txt tells CTest
LONG = os.environ.get("NT_LONG") == "1"  # also what takes too long for every change: the step long of scripts/test


class _Result(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = 0

    def addSuccess(self, test):  # unittest's name
        super().addSuccess(test)
        self.passed += 1

    def print_skipped(self):
        """A line for each test; for each reason if nothing else in the file ran."""
        file = Path(sys.argv[0]).stem
        skipped = [(test.id().replace("__main__", file), " ".join(why.split())) for test, why in self.skipped]
        if not self.passed and self.wasSuccessful():
            skipped = [(f"{file}, {count} of {len(skipped)}", why)
                       for why, count in collections.Counter(why for _, why in skipped).items()]
        for what, why in skipped:
            print(f"SKIPPED: {what}: {why}", flush=True)


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


def main(**options):
    """Runs the tests of the file that calls it, with unittest's options, and ends the process."""
    result = unittest.main(exit=False, testRunner=_Runner, **options).result
    result.print_skipped()
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and not result.passed else 0)


def built_by(script, *arguments):
    """What `scripts/SCRIPT ARGUMENTS --built` prints where it has built its programs, else ""; and why there is nothing."""
    done = subprocess.run([Path(__file__).resolve().parents[2] / "scripts" / script, *arguments, "--built"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "", done.stderr.strip()


def skip_without_setup(why):
    """In a test, or what sets one up: something is not there that ./scripts/setup brings."""
    if os.environ.get("CI") == "true":
        raise AssertionError(f"{why}; with CI=true nothing may be missing that scripts/setup brings")
    raise unittest.SkipTest(why)


def needs_of_nightly(missing):
    """Decorates a class of tests that the nightly tests alone prepare. `missing`: why they cannot run, or ""."""
    def decorate(test):
        if missing:
            def skip(cls):
                raise unittest.SkipTest(missing)
            test.setUpClass = classmethod(skip)
        return test
    return decorate


def needs_of_setup(missing, why):
    """Decorates a test, or a class of them, that cannot run where `missing` is true: see skip_without_setup."""
    def decorate(test):
        if not missing:
            return test
        if isinstance(test, type):
            test.setUpClass = classmethod(lambda cls: skip_without_setup(why))
            return test
        return lambda self: skip_without_setup(why)
    return decorate
