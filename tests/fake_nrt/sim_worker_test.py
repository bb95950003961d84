#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs sim_worker processes, without any tap, and checks what they say against each other: the documents
that the runtime returned, the ground truth, the log of captures.

usage: sim_worker_test.py PATH_OF_SIM_WORKER [unittest arguments]
"""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SIM_WORKER = ""
DEADLINE_S = 60


def read_truth(path):
    with open(path, encoding="ascii") as file:
        names = file.readline().rstrip("\n").split("\t")
        rows = [dict(zip(names, line.rstrip("\n").split("\t"))) for line in file]
    texts = ("event_type", "phase")
    return [{k: v if k in texts else int(v) for k, v in row.items()} for row in rows]


class SimWorkerTest(unittest.TestCase):
    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.log = self.path("captures.tsv")
        self.env = dict(os.environ, FAKE_NRT_CAPTURE_LOG=self.log)
        for name in list(self.env):
            if name.startswith("NEURON_"):
                del self.env[name]

    def path(self, name):
        return os.path.join(self._dir.name, name)

    def start(self, *arguments):
        process = subprocess.Popen([SIM_WORKER, *map(str, arguments)], env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, code=0):
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, code, err)
        return json.loads(out.splitlines()[-1])

    def captures(self):
        with open(self.log, encoding="ascii") as file:
            names = "pid capture nc_idx accepted overwritten fetched lost_at_stop".split()
            return [dict(zip(names, map(int, line.split("\t")))) for line in file]

    def test_documents_equal_the_truth(self):
        documents = self.path("documents")
        report = self.finish(self.start(
            "--cores", 3, "--lnc", 2, "--mix", "eager", "--executions", 40, "--executions-per-second", 40,
            "--rank-start", 6, "--world-size", 12, "--communicator", "late", "--profiler", "sys-trace",
            "--clock-offset-ns", -3_000_000, "--clock-drift-ppm", 25,
            "--profiler-documents", documents, "--ground-truth", self.path("truth")))
        truth = {(row["nc_idx"], row["nc_local_id"]): row for row in read_truth(self.path("truth"))}
        self.assertEqual(len(truth), report["accepted"])
        keys = ("event_type phase id nc_idx nc_local_id tracking_id thread_id worker_gid data "
                "timestamp_ns").split()
        gids, types, sequence = set(), collections.Counter(), collections.Counter()
        with open(documents, encoding="ascii") as file:
            for line in file:
                document = json.loads(line)
                self.assertEqual(list(document), ["events", "data_version"])
                for event in document["events"]:
                    self.assertEqual([k for k in event if k != "nrta_seq_id"], keys)
                    row = truth.pop((event["nc_idx"], event["nc_local_id"]))
                    for key in ("event_type", "phase", "timestamp_ns", "tracking_id"):
                        self.assertEqual(event[key], row[key])
                    self.assertEqual(event["nc_local_id"], sequence[event["nc_idx"]])
                    sequence[event["nc_idx"]] += 1
                    self.assertEqual(event["id"], event["nc_idx"] << 50 | event["nc_local_id"])
                    gids.add((event["nc_idx"], event["worker_gid"]))
                    types[event["event_type"]] += 1
        self.assertEqual(truth, {})
        self.assertEqual(gids, {(nc, gid) for nc in range(3) for gid in (-1, 6 + nc)})
        self.assertGreater(types["some_future_event"], 0)
        self.assertGreater(types["hw_notify"], 0)
        self.assertEqual(types["nc_exec_running"], 2 * 2 * 3 * 40)
        self.assertEqual(sum(c["fetched"] for c in self.captures()), report["accepted"])
        self.assertEqual(sum(c["lost_at_stop"] for c in self.captures()), 0)

    def test_barriers_hold_across_processes(self):
        start = time.time_ns() + 300_000_000
        job = ["--seed", 5, "--world-size", 6, "--start-at", start, "--executions", 15,
               "--executions-per-second", 30, "--straggler-rank", 4, "--straggler-extra-us", 500,
               "--profiler", "sys-trace"]
        workers = [self.start(*job, "--rank-start", rank, "--cores", 2, "--clock-offset-ns", rank * 1_000_000,
                              "--ground-truth", self.path(f"truth{rank}")) for rank in (0, 2, 4)]
        for worker in workers:
            self.finish(worker)
        spans = collections.defaultdict(dict)  # (exec_id, how-manyth collective) -> rank -> times
        for rank in (0, 2, 4):
            opened, count = {}, collections.Counter()
            for row in read_truth(self.path(f"truth{rank}")):
                if row["event_type"] not in ("cc_running", "enc_barrier", "cc_exec_barrier"):
                    continue
                if row["phase"] == "start":
                    opened[row["tracking_id"]] = row
                    continue
                first = opened.pop(row["tracking_id"])
                kind = (row["rank"], row["event_type"], row["exec_id"])
                spans[(row["event_type"], row["exec_id"], count[kind])][row["rank"]] = (
                    first["true_ns"], row["true_ns"])
                count[kind] += 1
        self.assertEqual(len(spans), 15 * (12 + 2))
        for barrier, ranks in spans.items():
            self.assertEqual(set(ranks), set(range(6)), barrier)
            last = max(ranks, key=lambda rank: ranks[rank][0])
            self.assertEqual(last, 4, barrier)
            self.assertLess(ranks[last][0], min(leave for _, leave in ranks.values()), barrier)

    def test_small_rings_overwrite_and_all_is_accounted_for(self):
        report = self.finish(self.start("--cores", 1, "--mix", "eager", "--duration", 1,
                                        "--events-per-second", 300_000, "--profiler", "sys-trace",
                                        "--profiler-max-events", 1024))
        capture, = self.captures()
        self.assertGreater(capture["overwritten"], 0)
        self.assertEqual(capture["fetched"], report["profiler_fetched"])
        self.assertEqual(capture["accepted"], capture["overwritten"] + capture["fetched"])

    def test_a_signal_ends_it_with_the_truth_complete(self):
        truth = self.path("truth")
        worker = self.start("--cores", 2, "--profiler", "sys-trace", "--print-ready", "--ground-truth", truth)
        self.assertEqual(worker.stdout.readline(), f"ready pid={worker.pid}\n")
        deadline = time.monotonic() + DEADLINE_S
        while len(read_truth(truth)) < 500:
            self.assertLess(time.monotonic(), deadline)
        worker.send_signal(signal.SIGTERM)
        report = self.finish(worker)
        self.assertEqual(len(read_truth(truth)), report["accepted"])
        self.assertEqual(report["profiler_fetched"], report["accepted"])


if __name__ == "__main__":
    SIM_WORKER = os.path.abspath(sys.argv.pop(1))
    unittest.main()
