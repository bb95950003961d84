# SPDX-License-Identifier: Apache-2.0
"""scripts/demo_frameworks gives one timeline of every worker, with nothing lost."""

import collections
import itertools
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from pftrace_reader import Pftrace

ROOT = Path(__file__).resolve().parents[2]
MISSING = " ".join(filter(None, (suite.built_by("setup_frameworks", name)[1] for name in ("torch", "jax"))))
FRAMEWORKS = ("torch", "jax")
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


if __name__ == "__main__":
    suite.main()
