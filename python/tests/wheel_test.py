# SPDX-License-Identifier: Apache-2.0
"""The wheels: what is in them, that a build can be repeated, and that pip's records are right."""

import base64
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

from built_package import WHEEL, suite, wheel_backend


class Wheels(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check_record(self, wheel):
        """Every file is in RECORD with its digest and size."""
        with zipfile.ZipFile(wheel) as archive:
            record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
            rows = {row[0]: row[1:] for row in csv.reader(archive.read(record).decode().splitlines())}
            self.assertEqual(sorted(rows), sorted(archive.namelist()))
            for name in archive.namelist():
                data = archive.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                if name != record:
                    self.assertEqual(rows[name], [f"sha256={digest}", str(len(data))])

    def test_the_client(self):
        self.check_record(WHEEL)
        with zipfile.ZipFile(WHEEL) as archive:
            names = set(archive.namelist())
            metadata = archive.read(f"neurontrace-{wheel_backend.version()}.dist-info/METADATA").decode()
        self.assertLessEqual({"neurontrace/py.typed", "neurontrace/v1/operator_service_pb2.py",
                              "neurontrace/v1/operator_service_pb2.pyi",
                              "neurontrace/v1/operator_service_pb2_grpc.py"}, names)
        self.assertFalse([name for name in names if "test" in name])
        for line in ("Name: neurontrace", "Requires-Dist: grpcio>=1.50", "Requires-Dist: protobuf>=3.20",
                     'Requires-Dist: duckdb>=0.9; extra == "sql"'):
            self.assertIn(line, metadata.splitlines())

    def test_a_build_can_be_repeated(self):
        made = []
        for number in range(2):
            folder = self.directory / str(number)
            folder.mkdir()
            with unittest.mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="1700000000"):
                made.append((folder / wheel_backend.build_wheel(folder)).read_bytes())
        self.assertEqual(made[0], made[1])

    def test_another_protoc_is_refused(self):
        fake = self.directory / "protoc"
        fake.write_text("#!/bin/sh\necho libprotoc 30.2\n")
        fake.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.directory}:{os.environ['PATH']}"):
            with self.assertRaisesRegex(wheel_backend.BuildError, "protoc is 30.2; only 3.21"):
                wheel_backend.build_client(self.directory)

    def library(self, name):
        path = self.directory / name
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-x", "c", "-o", path, os.devnull], check=True)
        return str(path)

    def environment_of(self, wheel, **variables):
        """What `python -m neurontrace_tap` prints where the wheel is installed."""
        with tempfile.TemporaryDirectory() as site:
            zipfile.ZipFile(wheel).extractall(site)
            clean = {name: value for name, value in os.environ.items()
                     if name not in ("LD_PRELOAD", "NVTX_INJECTION64_PATH")}
            done = subprocess.run([sys.executable, "-B", "-m", "neurontrace_tap"], check=True, capture_output=True, text=True,
                                  env={**clean, "PYTHONPATH": site, **variables})
            return done.stdout.replace(os.path.realpath(site), "SITE").splitlines()

    def test_the_tap(self):
        with self.assertRaisesRegex(wheel_backend.BuildError, "name libneurontrace_tap.so"):
            wheel_backend.build_tap(self.directory, [])
        tap, annotate = self.library("libneurontrace_tap.so"), self.library("libneurontrace_annotate.so")
        alone = wheel_backend.build_tap(self.directory, [tap])
        self.check_record(alone)
        self.assertRegex(alone.name, r"^neurontrace_tap-[0-9.]+-py3-none-manylinux_2_17_(x86_64|aarch64)\.whl$")
        line = "export LD_PRELOAD=SITE/neurontrace_tap/libneurontrace_tap.so"
        self.assertEqual(self.environment_of(alone), [line])
        both = wheel_backend.build_tap(self.directory, [tap, annotate])
        self.assertEqual(self.environment_of(both, NVTX_INJECTION64_PATH="/other.so"), [line])
        self.assertEqual(self.environment_of(both),
                         [line, "export NVTX_INJECTION64_PATH=SITE/neurontrace_tap/libneurontrace_annotate.so"])


if __name__ == "__main__":
    suite.main()
