# SPDX-License-Identifier: Apache-2.0
"""The page's TypeScript without a browser: its types, the tests of its pure modules, and its size."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite

WEB = Path(__file__).resolve().parents[2] / "web"
SHELL_BYTES_MAX = 100_000  # gzip, of all files: what a browser loads before the first answer of the API


def missing(*programs):
    return [program for program in programs if shutil.which(program) is None]


def needs(*programs):
    gone = missing(*programs)
    return suite.needs_of_setup(gone, f"{' and '.join(gone)} not found")


class WebUnit(unittest.TestCase):
    def run_checked(self, *command):
        done = subprocess.run(list(map(str, command)), cwd=WEB, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @needs("tsc")
    def test_types(self):
        self.run_checked("tsc", "--noEmit", "-p", ".")

    @needs("esbuild", "node")
    def test_modules(self):
        tests = sorted(WEB.glob("**/*.test.ts"))
        self.assertTrue(tests, "there are tests")
        with tempfile.TemporaryDirectory(prefix="nt-web-") as out:
            self.run_checked("esbuild", *tests, "--bundle", "--platform=node", "--target=node18", "--format=cjs",
                             f"--outdir={out}", f"--outbase={WEB}", "--log-level=warning")
            bundles = sorted(Path(out).glob("**/*.test.js"))
            self.assertEqual(len(bundles), len(tests))
            report = self.run_checked("node", "--test", *bundles)
        self.assertRegex(report, r"# pass [1-9]")
        self.assertRegex(report, r"# fail 0")

    @needs("esbuild")
    def test_size(self):
        with tempfile.TemporaryDirectory(prefix="nt-web-") as out:
            self.run_checked("./build.sh", out)
            sizes = {path.name: path.stat().st_size for path in Path(out).glob("*.gz")}
        self.assertEqual(set(sizes), {"index.html.gz", "page.js.gz", "style.css.gz"})
        self.assertLess(sum(sizes.values()), SHELL_BYTES_MAX, sizes)


if __name__ == "__main__":
    suite.main()
