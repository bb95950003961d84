# SPDX-License-Identifier: Apache-2.0
"""docs/operator/sizing.md shows what tools/size_fleet.py prints, and both count with the same figures."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "size_fleet.py"
PAGE = (ROOT / "docs" / "operator" / "sizing.md").read_text()


def run(*arguments):
    return subprocess.run([sys.executable, "-B", TOOL, *arguments], capture_output=True, text=True, check=False)


def sized(*arguments):
    done = run(*arguments, "--output", "json")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class SizeFleet(unittest.TestCase):
    def test_the_page_shows_what_it_prints(self):
        shown = re.findall(r"^\$ tools/size_fleet\.py ([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(shown), 3)
        for arguments, text in shown:
            done = run(*arguments.split())
            self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", text), arguments)

    def test_the_formulas_of_the_page(self):
        nodes, cores, rate = 10, 8, 8192.0
        events, chunks = cores * rate, cores * rate / 4096
        stored = 4.7 * 2 * events + 1200 * chunks
        found = sized("--nodes", str(nodes), "--cores", str(cores), "--events", str(rate), "--hours", "1")
        node, service = found["node"], found["aggregator"]
        self.assertAlmostEqual(node["bytes_per_second"], stored)
        self.assertAlmostEqual(node["agent_processors"], 0.008 + 0.95e-6 * events + 300e-6 * chunks)
        self.assertAlmostEqual(node["spool_hours"], 2 * 2**30 / stored / 3600)
        self.assertAlmostEqual(service["processors"],
                               0.006 + 0.001 * nodes + nodes * (0.12e-6 * events + 250e-6 * chunks))
        self.assertAlmostEqual(service["disk_write_bytes_per_second"], 2 * nodes * stored)
        for figure in ("0.008 + 0.95 us x E + 300 us x K", "0.006 + 0.001 N + 0.12 us x N E + 250 us x N K",
                       "4.7 f E + 1200 K", "C max(1.2, r / 4096)"):
            self.assertIn(figure, PAGE)

    def test_what_the_page_counts_out_in_its_text(self):
        found = sized("--nodes", "1", "--cores", "64", "--events", str(15e6 / 64))["aggregator"]["processors"]
        self.assertIn(f"For 15 M events/s in full chunks from one agent the formula gives {found:.1f} processors", PAGE)

    def test_more_of_anything_needs_no_less(self):
        base = sized("--nodes", "4", "--cores", "8", "--events", "100")
        for more in (("--nodes", "8"), ("--cores", "16"), ("--events", "5000"), ("--hours", "48"), ("--factor", "3"),
                     ("--continuous",)):
            grown = sized("--nodes", "4", "--cores", "8", "--events", "100", *more)
            for name in ("processors", "disk_advised_bytes", "network_bytes_per_second"):
                self.assertGreaterEqual(grown["aggregator"][name], base["aggregator"][name], f"{more}: {name}")

    def test_many_slow_cores_fill_the_spool_by_their_chunks(self):
        self.assertEqual(sized("--nodes", "1", "--cores", "64", "--events", "10")["node"]["spool_bound_by"], "chunks")

    def test_rejects_invalid_and_reports_excess(self):
        for arguments in (("--nodes", "0"), ("--nodes", "4", "--events", "-1"), ("--nodes", "4", "--events", "nan"), ()):
            self.assertEqual(run(*arguments).returncode, 2, arguments)
        self.assertEqual(len(sized("--nodes", "20000")["warnings"]), 2)


if __name__ == "__main__":
    unittest.main()
