# SPDX-License-Identifier: Apache-2.0
"""A run that neurontrace-simulate writes or streams is a capture for the product, and its scorer tells right from wrong."""

import json
import os
import re
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from fleet_case import FleetCase

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

    def test_a_late_agent_is_no_dead_worker(self):
        facts = self.plan("--fault", "hang-not-entered@17+80-100", "--hole", "late-agent@17-17+50-100")
        done = run("neurontrace", "why", facts["capture"].strip(), "--store", self.out / "store", "--json")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        answers = self.out / "answers.json"
        answers.write_text(done.stdout)
        score = run("neurontrace-simulate", "score", self.out / "golden.json", answers)
        self.assertEqual(score.returncode, 3, score.stdout + done.stdout)
        self.assertIn("0 wrong", score.stdout)

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


class StreamTest(FleetCase):
    """Two instances of eight cores."""

    def setUp(self):
        super().setUp()
        self.fleet.start_aggregator()

    SHAPE = ("--dp", 8, "--pp", 1, "--tp", 2, "--cores-per-process", 2, "--processes-per-instance", 4, "--quiet")

    def command(self, *options):
        return [str(word) for word in (BIN / "neurontrace-simulate", "stream", "--out", self.fleet.dir / "run", "--aggregator",
                                       self.fleet.address, *self.SHAPE, *options)]

    def stream(self, *options, code=0):
        done = subprocess.run(self.command(*options), capture_output=True, text=True, check=False, timeout=180)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return dict(line.split(":", 1) for line in done.stdout.splitlines())

    def test_the_product_finds_what_was_planted(self):
        facts = self.stream("--speed", 20, "--fault", "slow-core@5:50", "--fault", "hang-not-entered@9+85-100", "--hole",
                            "losses@14-14+20-30", "--clock", "1:250,15,-40000@60")
        played, acknowledged, *missing = map(int, re.findall(r"(\d+) (?:played|ack|refused|lost|not)", facts["events"]))
        self.assertGreater(played, 16 * 34 * 5 * 2 * 5)
        self.assertEqual((acknowledged, missing), (played, [0, 0, 0]))
        lost = int(facts["losses"].split()[0])
        self.assertGreater(lost, 0)

        capture_id = facts["capture"].strip()
        capture = self.fleet.show_capture(capture_id)
        self.assertEqual(int(capture["events"]), played)
        self.assertEqual(int(capture["events_lost"]), lost)
        golden = json.loads((self.fleet.dir / "run" / "golden.json").read_text())
        self.assertEqual([fault["ranks"] for fault in golden["faults"]], [[5], [9]])
        answers = self.fleet.dir / "answers.json"
        answers.write_text(self.fleet.cli("why", capture_id, "--json", codes=(0, 3)).stdout)
        score = run("neurontrace-simulate", "score", self.fleet.dir / "run" / "golden.json", answers)
        self.assertEqual(score.returncode, 0, score.stdout + score.stderr + answers.read_text())
        self.assertIn("2 exact", score.stdout)

        self.assertFalse((self.fleet.dir / "run" / "spool").exists())
        # The evidence aligns both instances, although the clock of one was off and was set.
        clocks = self.fleet.cli_json("clocks", "--capture", capture_id)["clocks"]
        self.assertEqual([bool(clock.get("aligned")) for clock in clocks if clock["instance_id"].startswith("i-0")],
                         [True, True], clocks)

    def test_an_interrupt_ends_it_orderly(self):
        process = subprocess.Popen(self.command("--wait-for-capture"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.fleet.wait_for_workers(8)
        capture_id = self.start_capture("--all-events")
        self.fleet.wait_for_capture(capture_id, lambda capture: int(capture["events"]) > 0, "events", seconds=60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 3, out + err)
        self.assertIn("interrupted at step", out)
        self.assertIn(" 0 not acknowledged", out)
        self.assertRegex(out, r"job: +simulated-")
        self.assertFalse((self.fleet.dir / "run" / "golden.json").exists())

    def test_an_aggregator_that_is_not_there(self):
        self.fleet.aggregator.stop()
        done = subprocess.run(self.command(), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(self.fleet.address, done.stderr)


if __name__ == "__main__":
    suite.main()
