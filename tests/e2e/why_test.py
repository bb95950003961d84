# SPDX-License-Identifier: Apache-2.0
"""`neurontrace why` on stored captures of a fleet: it names the rank that was made slow and nobody else, names nobody
without one, and refuses what it did not see."""

import json
import re
import time

import suite
from fleet_case import FleetCase

STRAGGLER = 5
STRAGGLER_US = 4_000
RANKS = 8
CORES = 4  # of a worker
EXECUTIONS_PER_SECOND = 20
EXECUTIONS = 40  # that each rank makes while a capture runs; some more come until it stops, but not 96


class InsightTest(FleetCase):
    def record(self, *options, capture=(), code=0, mix="graph", rate=EXECUTIONS_PER_SECOND, until_lost=False):
        """Two instances of one job; records some executions, or until events are lost, and returns the ended capture's
        id."""
        start_at = time.time_ns() + 2_000_000_000
        self.start_instances("i-0001", "i-0002")
        workers = []
        for number, instance in enumerate(("i-0001", "i-0002")):
            workers.append(self.fleet.start_worker(
                instance, "--cores", CORES, "--rank-start", number * CORES, "--world-size", RANKS, "--mix", mix,
                "--executions-per-second", rate, "--start-at", start_at, *options, ready=False))
        self.fleet.wait_for_workers(len(workers))
        self.fleet.wait_for_ranks(RANKS)
        capture_id = self.start_capture(*capture)
        if until_lost:
            self.fleet.wait_for_capture(capture_id, lambda c: int(c["events_lost"]) > 0, "losses", seconds=60)
        else:
            self.wait_for_more_work(workers, EXECUTIONS)
        self.stop_capture(capture_id, code)
        return capture_id

    def why(self, *arguments, codes=(0,)):
        return json.loads(self.fleet.cli("why", *arguments, "--json", codes=codes).stdout)

    def suspects(self, report):
        return {int(core["worker_gid"]) for verdict in report["verdicts"] for core in verdict["suspects"]}

    def test_names_the_planted_straggler(self):
        capture_id = self.record("--straggler-rank", STRAGGLER, "--straggler-extra-us", STRAGGLER_US)
        report = self.why(capture_id)
        self.assertEqual(self.suspects(report), {STRAGGLER}, report)
        verdict = report["verdicts"][0]
        self.assertRegex(verdict["kind"], "^VERDICT_KIND_(SLOW_|INPUT_STALL|HOST_CODE)")
        self.assertGreater(int(verdict["cost_ns"]), STRAGGLER_US * 1000 // 2)
        self.assertEqual((report["cores"], report["cores_judged"]), (RANKS, RANKS))

        text = self.fleet.cli("why", capture_id[:12]).stdout
        self.assertRegex(text, rf"^SLOW .*rank {STRAGGLER} ")
        self.assertIn("since ", text)
        # The command that it advises works, and shows the rank.
        look = re.search(r"look: neurontrace (export .*)", text)[1].split()
        done = self.fleet.cli(*look, "-o", self.fleet.dir / "look.pftrace", codes=(0, 3))
        self.assertNotIn("nothing was selected", done.stdout + done.stderr)

        # A part of the capture, and a part that has too little for a verdict.
        part = self.why(capture_id, "--window", "1s..3s", codes=(0, 3))
        self.assertLessEqual(self.suspects(part), {STRAGGLER}, part)
        self.assertLess(int(part["executions"]), int(report["executions"]))
        short = self.why(capture_id, "--window", "1s..1.05s", codes=(3,))
        self.assertEqual(short["verdicts"], [])

        unknown = self.fleet.cli("why", "01UNKNOWN", codes=(1,))
        self.assertIn("01UNKNOWN", unknown.stderr)
        nobody = self.fleet.cli("why", capture_id, "--job", "no-such-job", codes=(1,))
        self.assertIn("no-such-job", nobody.stderr)
        live = self.fleet.cli("why", "--live", codes=(1,))
        self.assertIn("neurontrace watch on", live.stderr)

        # The store of an aggregator that has ended answers, too.
        self.fleet.aggregator.stop()
        stored = self.why(capture_id, "--store", self.fleet.dir / "store")
        self.assertEqual(self.suspects(stored), {STRAGGLER}, stored)

    def test_names_nobody_without_one(self):
        capture_id = self.record()
        report = self.why(capture_id)
        self.assertEqual(report["verdicts"], [])
        self.assertEqual(report["cores_judged"], RANKS)
        self.assertIn("Nobody to name", self.fleet.cli("why", capture_id).stdout)

    def test_refuses_what_was_lost(self):
        # An execution has some 960 events: at this rate the smallest rings last for a few milliseconds.
        capture_id = self.record(mix="eager", rate=300, capture=("--ring-events", 1024), code=None, until_lost=True)
        certificate = self.fleet.show_capture(capture_id)["certificate"]
        self.assertGreater(int(certificate["account"]["lost"]), 0, "the capture is to lose events")
        report = self.why(capture_id, codes=(3,))
        self.assertIn("losses", {refusal["reason"] for refusal in report["refusals"]}, report)
        self.assertEqual(self.suspects(report), set(), report)
        self.assertIn("REFUSED losses", self.fleet.cli("why", capture_id, codes=(3,)).stdout)


if __name__ == "__main__":
    suite.main()
