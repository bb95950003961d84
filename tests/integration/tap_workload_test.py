# SPDX-License-Identifier: Apache-2.0
"""The tap under a workload that never pauses: what is captured is compared with the ground truth."""

import collections
import csv
import json
import os
import threading
import unittest

from tap_agent import DOCUMENT, STARTED, STOPPED, Agent, wait_for
from tap_worker import CAPTURE, TapTestCase

SIM_WORKER = os.environ["NT_SIM_WORKER"]


class Reader(threading.Thread):
    """Reads and commits all the time, as an agent does."""

    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection = connection
        self.records = []
        self.ending = threading.Event()
        self.start()

    def run(self):
        while not self.ending.wait(0.01):
            self.records.extend(self.connection.buffer.read(check=False))

    def finish(self):
        self.ending.set()
        self.join()
        self.records.extend(self.connection.buffer.read(check=False))
        return self.records


def events_by_trace(records):
    """One {core: [event, …]} for each TRACE_STARTED."""
    traces = []
    for record in records:
        if record.type == STARTED:
            traces.append(collections.defaultdict(list))
        elif record.type == DOCUMENT:
            for event in json.loads(record.payload)["events"]:
                traces[-1][event["nc_idx"]].append(event)
    return traces


class Workload(TapTestCase):
    def start_worker(self, *options):
        self.truth_path = os.path.join(self.directory, "truth.tsv")
        return self.worker(NEURON_RT_NUM_CORES="4", command=[
            SIM_WORKER, "--cores", "4", "--rank-start", "8", "--world-size", "12", "--seed", "5",
            "--events-per-second", "10000", "--ground-truth", self.truth_path, *options])

    def finish(self, worker):
        summary = json.loads(worker.process.communicate(timeout=60)[0])
        self.assertEqual((worker.process.returncode, summary["misuse"]), (0, 0))
        return summary

    def truth(self):
        """{capture: {core: {(nc_local_id, event_type, phase, timestamp_ns)}}}"""
        truth = collections.defaultdict(lambda: collections.defaultdict(set))
        with open(self.truth_path, encoding="ascii") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                truth[int(row["capture"])][int(row["nc_idx"])].add(
                    (int(row["nc_local_id"]), row["event_type"], row["phase"], int(row["timestamp_ns"])))
        return truth

    def assert_in_order(self, events):
        """No hole, nothing twice."""
        numbers = [event["nc_local_id"] for event in events]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))

    def test_what_is_captured_up_to_close_is_what_happened(self):
        agent = self.agent()
        worker = self.start_worker("--duration", "2")
        connection = agent.accept()
        connection.start(CAPTURE)
        self.assertEqual(connection.answer(2)["result"], "ok")
        reader = Reader(connection)
        self.finish(worker)
        [trace] = events_by_trace(reader.finish())
        truth = self.truth()
        self.assertEqual(len(truth), 1)
        [expected] = truth.values()
        self.assertGreater(sum(map(len, trace.values())), 20000)
        for core in range(4):
            self.assert_in_order(trace[core])
            self.assertEqual({(e["nc_local_id"], e["event_type"], e["phase"], e["timestamp_ns"])
                              for e in trace[core]}, expected[core])
        self.assertEqual(connection.buffer.counters["refused_documents"], 0)
        self.assertEqual(connection.buffer.facts()["communicator.2"].split()[:2], ["10", "12"])

    def test_captures_come_and_go_while_the_workload_runs(self):
        agent = self.agent()
        worker = self.start_worker("--duration", "4")
        connection = agent.accept()
        reader = Reader(connection)
        captures = [bytes([n] * 16) for n in range(1, 9)]
        for capture in captures:
            documents = connection.buffer.counters["documents"]
            connection.start(capture)
            self.assertEqual(connection.answer(2)["result"], "ok")
            wait_for(lambda: connection.buffer.counters["documents"] > documents + 8, "documents")
            connection.stop(capture)
            self.assertEqual(connection.answer(3)["result"], "ok")
        self.finish(worker)
        records = reader.finish()
        self.assertEqual([r.capture_id for r in records if r.type == STARTED], captures)
        self.assertEqual([r.capture_id for r in records if r.type == STOPPED], captures)
        for trace, expected in zip(events_by_trace(records), self.truth().values()):
            for core in range(4):
                self.assert_in_order(trace[core])
                # Only what happened between the last fetch and the stop can be missing.
                missing = {number for number, *_ in expected[core]} - {e["nc_local_id"] for e in trace[core]}
                last = trace[core][-1]["nc_local_id"]
                self.assertFalse([number for number in missing if number <= last])

    def test_a_profiler_of_the_workers_own_gets_all_of_its_events(self):
        agent = self.agent()
        documents_path = os.path.join(self.directory, "documents")
        worker = self.start_worker("--duration", "3", "--profiler", "sys-trace", "--profiler-delay", "0.7",
                                   "--profiler-duration", "0.7", "--profiler-documents", documents_path)
        connection = agent.accept()
        connection.start(CAPTURE)
        self.assertEqual(connection.answer(2)["result"], "ok")
        reader = Reader(connection)
        connection.wait_state("busy")
        connection.wait_state("streaming")
        summary = self.finish(worker)
        self.assertFalse(summary["profiler_refused"])
        traces = events_by_trace(reader.finish())
        self.assertEqual(len(traces), 2)
        captures = sorted(self.truth().items())
        self.assertEqual(len(captures), 3)
        for trace in traces:
            for core in range(4):
                self.assert_in_order(trace[core])
        with open(documents_path, encoding="utf-8") as file:
            theirs = collections.Counter(e["nc_idx"] for line in file for e in json.loads(line)["events"])
        self.assertEqual(sum(theirs.values()), summary["profiler_fetched"])
        # All that was theirs, but for what happened after their own last fetch.
        for core in range(4):
            self.assertGreater(theirs[core], len(captures[1][1][core]) * 0.9)

    def test_an_agent_restarts_every_quarter_of_a_second(self):
        agent = self.agent()
        worker = self.start_worker("--duration", "3")
        connection = agent.accept()
        connection.start(CAPTURE)
        self.assertEqual(connection.answer(2)["result"], "ok")
        records = []
        for _ in range(4):
            position = connection.buffer.write_pos
            wait_for(lambda: connection.buffer.write_pos > position + 100000, "data")
            records.extend(connection.buffer.read(check=False))
            agent.stop()
            agent = Agent(self.socket_path)
            self.addCleanup(agent.stop)
            connection = agent.accept()
        reader = Reader(connection)
        self.finish(worker)
        [trace] = events_by_trace(records + reader.finish())
        [expected] = self.truth().values()
        for core in range(4):
            self.assert_in_order(trace[core])
            self.assertEqual(len(trace[core]), len(expected[core]))


if __name__ == "__main__":
    unittest.main()
