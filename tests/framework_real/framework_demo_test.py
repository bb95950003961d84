# SPDX-License-Identifier: Apache-2.0
"""PyTorch and JAX in one capture: scripts/demo_frameworks gives one timeline of every worker, with nothing lost, and the
notebook of examples/ does the same from Python."""

import collections
import contextlib
import itertools
import os
import subprocess
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import suite
from framework_case import FrameworkCase
from pftrace_reader import Pftrace
from python_package_test import MISSING as NO_PACKAGE
from python_package_test import NOTEBOOKS, run_notebook

ROOT = Path(__file__).resolve().parents[2]
FRAMEWORKS = ("torch", "jax")
BUILT = {name: suite.built_by("setup_frameworks", name) for name in FRAMEWORKS}
MISSING = " ".join(why for _, why in BUILT.values() if why)
RANKS = 4


def kind_of(entry):
    if entry.category in ("cpu_op", "user_annotation"):
        return "torch"
    if entry.category == "xla_host":
        return "jax"
    # The hardware's spans have the model in their names.
    return {"nrt_execute": "runtime", "nc_exec_running": "hardware"}.get(entry.name.split(" ")[0], "other")


@suite.needs_of_nightly(MISSING)
class DemoTest(unittest.TestCase):
    def test_demo(self):
        with tempfile.TemporaryDirectory(prefix="neurontrace-frameworks-") as out:
            done = subprocess.run([ROOT / "scripts" / "demo_frameworks", "--out", out, "--duration", "1"], text=True,
                                  capture_output=True, timeout=600, check=False, env={**os.environ, "NEURONTRACE_CONFIG": ""})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for line in ("8 of 8 framework traces seen", "no problems", "every event the runtime produced is stored"):
                self.assertIn(line, done.stdout)
            # Each rank of both frameworks has its operators.
            rows = {tuple(line.split()[:2]) for line in done.stdout.splitlines()}
            wanted = {(framework, str(rank)) for framework in FRAMEWORKS for rank in range(RANKS)}
            self.assertEqual(wanted - rows, set(), done.stdout)
            self.check_trace(Pftrace(Path(out) / "frameworks.pftrace"))

    def check_trace(self, trace):
        """Arrows lead from the operations of both frameworks to the runtime's calls, and from those to the hardware."""
        ends = collections.defaultdict(set)  # of each arrow
        for entry in trace.slices:
            for flow in entry.flows:
                ends[flow].add(kind_of(entry))
        joined = collections.Counter(frozenset(pair) for kinds in ends.values() for pair in itertools.combinations(kinds, 2))
        for pair in ({"torch", "runtime"}, {"jax", "runtime"}, {"runtime", "hardware"}):
            self.assertTrue(joined[frozenset(pair)], (pair, joined))


@suite.needs_of_nightly(MISSING)
class NotebookTest(FrameworkCase):
    PYTHONS = {name: python for name, (python, _) in BUILT.items()}

    @unittest.skipIf(NO_PACKAGE, NO_PACKAGE)
    def test_the_notebook(self):
        """As python_package_test runs it with stand-ins."""
        for framework, rank in itertools.product(FRAMEWORKS, range(2)):
            self.jobs.start_worker(framework, "i-1", "--pause-ms", 10, rank=rank, world_size=2,
                                   env={"NEURONTRACE_JOB": framework})
        self.fleet.wait_for_workers(4)
        self.fleet.wait_for_ranks(4)
        namespace = {}
        with unittest.mock.patch.dict(os.environ, NEURONTRACE_AGGREGATOR=self.fleet.address, NEURONTRACE_CONFIG=""), \
                contextlib.chdir(self.fleet.dir):
            shown = run_notebook(NOTEBOOKS / "framework_operators.ipynb", namespace)
        self.assertTrue(any("complete" in text for text in shown), shown)
        print(namespace["slowest"])
        ranks = namespace["operators"].groupby("name")["rank"].agg(set)
        self.assertEqual(ranks["aten::addmm"], {0, 1})
        of_xla = {name for name in ranks.index if not name.startswith("aten::")}
        self.assertTrue(any(ranks[name] == {0, 1} for name in of_xla), ranks)


if __name__ == "__main__":
    suite.main()
