# SPDX-License-Identifier: Apache-2.0
"""The wheels of a release build: the client can be imported, and the tap's wheel runs wherever the tap does."""

import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import suite

PACKAGES = Path(os.environ["NT_PACKAGES_DIR"])


class WheelsTest(unittest.TestCase):
    def run_python(self, *arguments, path):
        return subprocess.run([sys.executable, "-B", *arguments], capture_output=True, text=True, check=True,
                              env={"PATH": os.environ["PATH"], "PYTHONPATH": str(path)}).stdout

    def test_the_client(self):
        wheel, = PACKAGES.glob("neurontrace-*-py3-none-any.whl")
        self.assertEqual(self.run_python("-c", "import neurontrace; print(neurontrace.Client.__name__)", path=wheel), "Client\n")

    def test_the_tap(self):
        # The tag names the glibc that the tap needs: docs/user/tap.md promises 2.17.
        wheel, = PACKAGES.glob("neurontrace_tap-*-py3-none-manylinux_2_17_*.whl")
        with tempfile.TemporaryDirectory() as site:
            zipfile.ZipFile(wheel).extractall(site)
            shell = self.run_python("-m", "neurontrace_tap", path=site)
            self.assertIn(f"export LD_PRELOAD={os.path.realpath(site)}/neurontrace_tap/libneurontrace_tap.so", shell.splitlines())
            maps = subprocess.run(["bash", "-ec", shell + "exec cat /proc/self/maps"], capture_output=True, text=True,
                                  check=True).stdout
        self.assertIn("neurontrace_tap/libneurontrace_tap.so", maps)
        self.assertIn(f"export NVTX_INJECTION64_PATH={os.path.realpath(site)}/neurontrace_tap/libneurontrace_annotate.so",
                      shell.splitlines())


if __name__ == "__main__":
    suite.main()
