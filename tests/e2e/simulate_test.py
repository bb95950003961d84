# SPDX-License-Identifier: Apache-2.0
"""A run that neurontrace-simulate writes is a capture for the product, and its scorer tells right from wrong."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite

BIN = Path(os.environ["NT_BUILD_DIR"]) / "bin"


def run(program, *arguments):
    return subprocess.run([BIN / program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)


class SimulateTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = Path(directory.name) / "run"

    def plan(self, *options):
        done = run("neurontrace-simulate", "plan", "--out", self.out, "--dp", 8, "--pp", 2, "--tp", 4, "--steps", 8, "--quiet",
                   *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(line.split(":", 1) for line in done.stdout.splitlines())

    def test_the_product_reads_the_store(self):
        facts = self.plan("--fault", "slow-core@17:50")
        aggregator = subprocess.Popen([BIN / "neurontrace-aggregator", "--store", self.out / "store", "--listen", "127.0.0.1:0",
                                       "--health-address", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(aggregator.stdout.close)
        self.addCleanup(aggregator.wait)
        self.addCleanup(aggregator.terminate)
        lines = iter(aggregator.stdout.readline, "")
        address = next(line.split()[-1] for line in lines if line.startswith("listening on "))
        shown = run("neurontrace", "--aggregator", address, "captures", "show", facts["capture"].strip())
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("64 of 64", shown.stdout)
        self.assertIn("16 of 16 workers recorded", shown.stdout)

    def test_scores(self):
        self.plan("--kineto", "--fault", "slow-core@17:50")
        golden = self.out / "golden.json"
        self.assertEqual(json.loads(golden.read_text())["faults"][0]["ranks"], [17])
        self.assertEqual(len(list((self.out / "kineto").glob("rank_*.json"))), 64)
        trace = json.loads((self.out / "kineto" / "rank_00017.json").read_text())
        self.assertEqual(trace["distributedInfo"]["rank"], 17)
        for text, code in (("slow-core,17,device\n", 0), ("slow-core,18,device\n", 1), ("", 3), ("nonsense\n", 1)):
            answers = self.out / "answers.csv"
            answers.write_text(text)
            done = run("neurontrace-simulate", "score", golden, answers)
            self.assertEqual(done.returncode, code, text + done.stdout + done.stderr)

    def test_wrong_plans_are_refused(self):
        for options in (["--dp", "10001"], ["--fault", "what@1"], ["--fault", "slow-core@99999"], ["--hole", "losses"]):
            done = run("neurontrace-simulate", "plan", "--out", self.out, *options)
            self.assertEqual(done.returncode, 2, options)
            self.assertTrue(done.stderr)


if __name__ == "__main__":
    suite.main()
