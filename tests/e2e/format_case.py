# SPDX-License-Identifier: Apache-2.0
"""What the tests of export formats have in common: captures of simulated fleets and of framework trace files, and what
must come out of the latter.

The files of a real job are found in NEURONTRACE_TEST_DATA, or in ../shared/data beside the source tree; a fixture is
always there.
"""

import collections
import os
import tarfile
import time
import unittest
from pathlib import Path

from fleet_case import FleetCase
from framework_input import read_framework_file, write_fixture

ARCHIVE = "kineto-dlrm-8-ranks.tar.gz"
SOURCE_ROOT = Path(__file__).resolve().parents[2]
REAL_RANKS = 8


def real_archive():
    folder = os.environ.get("NEURONTRACE_TEST_DATA", SOURCE_ROOT.parent / "shared" / "data")
    return Path(folder) / ARCHIVE


needs_real_archive = unittest.skipUnless(
    real_archive().exists(), f"no {ARCHIVE} in {real_archive().parent}: name its folder in NEURONTRACE_TEST_DATA")


def expected_spans(file):
    """Of a FrameworkFile: (name, start, duration) of its spans, and of its instants with a duration of 0."""
    spans = collections.Counter((name, start, duration) for name, _, _, start, duration in file.complete)
    spans.update((name, time, 0) for name, _, _, time in file.instants)
    return spans


class FormatCase(FleetCase):
    # -- framework files, one rank an instance -------------------------------------------------------------------

    def record(self, files):
        """One instance for each file, in order; returns the capture."""
        self.files = {}
        self.fleet.start_aggregator()
        for number, path in enumerate(files):
            instance = f"i-{number:04x}"
            self.files[instance] = read_framework_file(path)
            self.fleet.start_agent(instance, "--framework-file", path)
        self.fleet.wait_for_status(agents=len(files))
        done = self.fleet.cli("capture", "--duration", "300ms", "--no-neuron", "--name", "framework")
        self.assertIn("complete", done.stdout)
        capture_id = self.fleet.cli_json("captures")["captures"][-1]["capture_id"]
        return self.fleet.show_capture(capture_id)

    def fixture_files(self):
        """Both forms of times, and everything odd."""
        paths = [self.fleet.dir / "worker0.pt.trace.json", self.fleet.dir / "worker1.pt.trace.json.gz"]
        write_fixture(paths[0], rank=0)
        write_fixture(paths[1], rank=1, base_time_ns=1_763_699_000_123_456_789)
        return paths

    def real_files(self):
        """The ranks of a real training, in order."""
        paths = []
        with tarfile.open(real_archive()) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".pt.trace.json"):
                    paths.append(self.fleet.dir / Path(member.name).name)
                    paths[-1].write_bytes(archive.extractfile(member).read())
        self.assertEqual(len(paths), REAL_RANKS)
        return sorted(paths)

    def assert_same(self, found, expected, where):
        self.assertGreater(sum(expected.values()), 0)
        self.assertEqual(list((expected - found).items())[:3], [], f"missing of {where}")
        self.assertEqual(list((found - expected).items())[:3], [], f"not expected of {where}")

    # -- simulated workers ---------------------------------------------------------------------------------------

    def record_fleet(self, *simulation):
        """Two instances of two cores, with what their hosts do; returns the capture's id. `simulation` are further options
        of the workers."""
        self.fleet.start_aggregator()
        workers = []
        start_at = time.time_ns()  # of the job: ranks that begin at times of their own have no collectives in common
        for number in range(2):
            self.fleet.start_agent(f"i-{number:04x}", host_samples=True)
            workers.append(self.fleet.start_worker(
                f"i-{number:04x}", "--cores", 2, "--rank-start", number * 2, "--world-size", 4, "--mix", "graph",
                "--executions-per-second", 20, "--start-at", start_at, *simulation))
        self.fleet.wait_for_workers(len(workers))
        capture_id = self.start_capture("--all-events")
        self.wait_for_events(capture_id, 20_000)
        self.fleet.wait_for_capture(capture_id, lambda capture: sum(
            stream["identity"]["kind"] == "STREAM_KIND_HOST" and int(stream["events"]) > 0
            for stream in capture["streams"]) == 2, "samples of both hosts")
        self.stop_capture(capture_id)
        for worker in workers:
            self.assertEqual(worker.stop(), 0)
        return capture_id
