# SPDX-License-Identifier: Apache-2.0
"""Framework trace files of several ranks, one rank an instance, into one capture and out as .pftrace, JSON, trace-event
JSON and XSpace: every name, start and duration comes out as it went in, to the nanosecond.

Input and output are read by readers of the tests' own (framework_input.py, pftrace_reader.py, xspace_reader.py).
"""

import collections
import gzip
import json
import time
from decimal import Decimal

import suite
from format_case import REAL_RANKS, FormatCase, expected_spans, needs_real_archive
from framework_input import (MAPPING_NAME, exact_ns, matched_flow_ends, read_framework_file, write_fixture,
                             write_mapped_operations, write_mapping, write_operations)
from ground_truth import read_events
from pftrace_reader import Pftrace
from xspace_reader import XSpace

# What an event's "ph" is called in the store.
PHASES = {"complete": "X", "instant": "i", "flow_start": "s", "flow_end": "f", "metadata": "M"}
# Arrows of executions and collectives, which no file of a framework has.
FIRST_DERIVED_FLOW = 1 << 48


class FrameworkCase(FormatCase):
    def check(self, files):
        capture = self.record(files)
        self.check_capture(capture)
        self.check_events(capture["capture_id"])
        self.check_json(capture["capture_id"])
        self.check_pftrace(capture["capture_id"])
        self.check_chrome_json(capture["capture_id"])
        self.check_xspace(capture["capture_id"])

    def check_capture(self, capture):
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE")
        self.assertEqual(capture["events_lost"], "0")
        self.assertEqual(capture["warnings"], [])
        self.assertEqual(len(capture["streams"]), len(self.files))
        for stream in capture["streams"]:
            instance = stream["identity"]["worker"]["instance_id"]
            self.assertEqual(stream["identity"]["kind"], "STREAM_KIND_FRAMEWORK")
            self.assertEqual(int(stream["worker_gid"]), self.files[instance].rank)

    def check_events(self, capture_id):
        """Every event is in the store, metadata and orphan flow ends among them."""
        stored = collections.defaultdict(collections.Counter)
        for row in read_events(self.fleet.export_events(capture_id)):
            stored[row["instance_id"]][PHASES[row["event"]["phase"]]] += 1
        for instance, file in self.files.items():
            self.assertEqual(dict(stored[instance]), dict(file.phases), instance)

    def check_json(self, capture_id):
        out = self.fleet.dir / "trace.json"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        spans = collections.defaultdict(collections.Counter)
        with open(out, encoding="utf-8") as file:
            for span in json.load(file)["trace_event"]:
                self.assertEqual(span["trace_event_source"], "framework")
                self.assertEqual(span["timestamp_unit"], "ns")
                spans[span["instance_id"]][(span["name"], span["timestamp"], span["duration"])] += 1
        for instance, file in self.files.items():
            self.assert_same(spans[instance], expected_spans(file), instance)

    def check_pftrace(self, capture_id):
        out = self.fleet.dir / "trace.pftrace"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        trace = Pftrace(out)
        slices, instants = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        flows = collections.defaultdict(list)  # of each arrow, the instances that its ends lie on
        for entry in trace.events():
            instance = next(name for name in self.files if entry.track.process.startswith(name))
            if entry.instant:
                instants[instance][(entry.name, entry.start_ns)] += 1
            else:
                slices[instance][(entry.name, entry.start_ns, entry.end_ns - entry.start_ns)] += 1
            for flow in entry.flows:
                if flow < FIRST_DERIVED_FLOW:
                    flows[flow].append(instance)
        arrows = collections.Counter()
        for instances in flows.values():
            self.assertEqual(len(set(instances)), 1, "an arrow ends where it began")
            arrows[instances[0]] += len(instances) - 1
        for instance, file in self.files.items():
            self.assert_same(slices[instance], collections.Counter(
                (name, start, duration) for name, _, _, start, duration in file.complete), instance)
            self.assert_same(instants[instance], collections.Counter(
                (name, time) for name, _, _, time in file.instants), instance)
            self.assertEqual(arrows[instance], len(matched_flow_ends(file)), f"arrows of {instance}")

    def check_chrome_json(self, capture_id):
        out = self.fleet.dir / "packed.trace.json.gz"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        with gzip.open(out, "rt", encoding="utf-8") as file:
            document = json.load(file, parse_float=Decimal)
        base_ns = document["baseTimeNanoseconds"]
        instances = {}  # by pid
        spans, instants = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        starts, ends = collections.Counter(), collections.defaultdict(list)
        for event in document["traceEvents"]:
            if event["name"] == "process_name" and event["ph"] == "M":
                label = event["args"]["name"]
                instances[event["pid"]] = next((name for name in self.files if label.startswith(name)), None)
            if event["ph"] == "M" or event.get("cat") == "neurontrace":
                continue
            instance, time_ns = instances[event["pid"]], base_ns + exact_ns(event["ts"])
            if event["ph"] == "X":
                spans[instance][(event["name"], time_ns, exact_ns(event["dur"]))] += 1
            elif event["ph"] == "i":
                instants[instance][(event["name"], time_ns)] += 1
            elif event["ph"] == "s":
                starts[(event["cat"], event["name"], event["id"])] += 1
            elif event["ph"] == "f":
                ends[instance].append((event["cat"], event["name"], event["id"]))
        self.assertEqual(set(starts.values()), {1}, "an id names one arrow")
        for instance, file in self.files.items():
            self.assert_same(spans[instance], collections.Counter(
                (name, start, duration) for name, _, _, start, duration in file.complete), instance)
            self.assert_same(instants[instance], collections.Counter(
                (name, time) for name, _, _, time in file.instants), instance)
            self.assertEqual(sum(end in starts for end in ends[instance]), len(matched_flow_ends(file)),
                             f"arrows of {instance}")

    def check_xspace(self, capture_id):
        out = self.fleet.dir / "xspace"
        self.fleet.cli("export", capture_id, "--format", "xspace", "-o", out, codes=(0, 3))
        spaces = {path.name.removesuffix(".xplane.pb"): XSpace(path)
                  for path in out.glob("plugins/profile/*/*.xplane.pb")}
        self.assertEqual(set(spaces), set(self.files))
        for instance, space in spaces.items():
            file = self.files[instance]
            self.assertEqual(space.hostnames, [instance])
            found = collections.Counter((event.name, event.start_ns, event.duration_ns) for event in space.events
                                        if event.line not in ("_counters_", "losses"))
            expected = expected_spans(file)
            # Ends of arrows that touch no slice are events of their own.
            flows = {flow[1] for flow in file.flow_starts + file.flow_ends}
            own = collections.Counter({key: n for key, n in (found - expected).items() if key[0] in flows and key[2] == 0})
            self.assert_same(found - own, expected, instance)


class Fixture(FrameworkCase):
    def test_both_time_forms_and_invalid_values(self):
        self.check(self.fixture_files())

    def test_beside_neuron_workers(self):
        """One capture holds the runtime's events and the framework's, each in its own process row."""
        path = self.fleet.dir / "worker3.pt.trace.json"
        write_fixture(path, rank=3)
        self.fleet.start_aggregator()
        self.fleet.start_agent("i-0001", "--framework-file", path)
        worker = self.fleet.start_worker("i-0001", "--cores", 2)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 1500)
        capture = self.stop_capture(capture_id)
        kinds = collections.Counter(s["identity"]["kind"] for s in capture["streams"])
        self.assertEqual(kinds, {"STREAM_KIND_NEURON_CORE": 2, "STREAM_KIND_FRAMEWORK": 1})
        out = self.fleet.dir / "both.json"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        sources = collections.Counter(span["trace_event_source"] for span in json.loads(out.read_text())["trace_event"])
        file = read_framework_file(path)
        self.assertEqual(sources["framework"], len(file.complete) + len(file.instants))
        self.assertGreater(sources["neuron_rt"], 100)
        self.assertGreater(sources["neuron_hw"], 10)
        self.assertEqual(worker.stop(), 0)

    def test_arrows_from_operations_over_calls_to_the_device(self):
        """Operations of a worker's threads, by the ids that a first capture tells, around the calls of a second one."""
        path = self.fleet.dir / "worker0.pt.trace.json"
        write_fixture(path, rank=0)
        self.fleet.start_aggregator()
        self.fleet.start_agent("i-0001", "--framework-file", path)
        worker = self.fleet.start_worker("i-0001", "--cores", 2)
        self.fleet.wait_for_workers(1)
        first = self.start_capture()
        self.wait_for_events(first, 1500)
        workers = {s["identity"]["worker"]["pid"] for s in self.stop_capture(first)["streams"]
                   if s["identity"]["kind"] == "STREAM_KIND_NEURON_CORE"}
        self.assertEqual(len(workers), 1)
        threads = {row["event"]["thread_id"] for row in read_events(self.fleet.export_events(first))
                   if row["event"]["event_type"] == "nrt_execute"}
        self.assertEqual(len(threads), 2)

        begin_ns = time.time_ns()
        write_operations(path, *workers, threads, begin_ns, begin_ns + 60 * 10**9, 250 * 10**6)
        second = self.start_capture()
        self.wait_for_events(second, 8000)  # some 25 executions
        self.stop_capture(second)
        self.assertEqual(worker.stop(), 0)
        out = self.fleet.dir / "arrows.pftrace"
        self.fleet.cli("export", second, "-o", out, codes=(0, 3))
        by_flow = collections.defaultdict(list)
        for entry in Pftrace(out).slices:
            for flow in entry.flows:
                by_flow[flow].append(entry)
        calls, reached = 0, 0
        for entries in by_flow.values():
            operation = entries[0]
            if operation.name != "aten::mm":
                continue
            for call in entries[1:]:
                self.assertLessEqual(operation.start_ns, call.start_ns)
                # A call that the capture's stop cut off is drawn to its stream's end, wherever that is.
                if not call.args.get("open"):
                    self.assertLessEqual(call.end_ns, operation.end_ns)
                self.assertEqual(call.args["thread_id"], operation.args["thread_id"])
                if call.name == "nrt_execute":
                    calls += 1
                    reached += any(e.name.startswith("nc_exec_running") for flow in call.flows for e in by_flow[flow])
        self.assertGreater(calls, 10)
        self.assertGreater(reached, 10)
        self.fleet.cli("export", second, "--no-flows", "-o", out, codes=(0, 3))
        self.assertFalse(any(entry.flows for entry in Pftrace(out).slices))

    def test_arrows_by_the_mapping_file(self):
        """The calls are made on threads without an operation: only the mapping file can say whose they are. It names ids
        ahead, by those that a first capture tells."""
        folder = self.fleet.dir / "profiles"
        folder.mkdir()
        self.fleet.start_aggregator()
        self.fleet.start_agent("i-0001", "--framework-dir", folder)
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--executions-per-second", 40)
        self.fleet.wait_for_workers(1)
        first = self.start_capture()
        self.wait_for_events(first, 1500)
        pid = {s["identity"]["worker"]["pid"] for s in self.stop_capture(first)["streams"]}.pop()
        ids = {int(row["event"]["nrta_seq_id"]) for row in read_events(self.fleet.export_events(first))
               if "nrta_seq_id" in row["event"]}
        self.assertGreater(len(ids), 0)

        begin_ns = time.time_ns()
        names = ["aten::linear", "aten::relu", "aten::mm"]
        second = self.start_capture()
        self.wait_for_events(second, 500)  # files that are there when it begins are no part of it
        run = folder / f"i-0001_pid_{pid}"
        run.mkdir()
        write_mapped_operations(run / "rank0.pt.trace.json", pid, 1, begin_ns, names)
        # Of each id the operation that its number says, and of every fifth all three.
        mapping = {i: [1, 2, 3] if i % 5 == 0 else [i % 3 + 1] for i in range(min(ids), min(ids) + 9_000) if i % 7}
        write_mapping(run / MAPPING_NAME, mapping)
        self.wait_for_events(second, 8000)
        self.fleet.wait_for_capture(second, lambda capture: sum(
            int(s["events"]) for s in capture["streams"] if s["identity"]["name"].endswith(MAPPING_NAME)) == len(mapping),
            "the entries of the mapping file")
        capture = self.stop_capture(second)
        self.assertEqual(capture["events_lost"], "0")
        self.assertEqual(worker.stop(), 0)
        self.check_mapping(second, names, mapping)

    def check_mapping(self, capture_id, names, mapping):
        stored = {}
        for row in read_events(self.fleet.export_events(capture_id)):
            event = row["event"]
            if event["event_type"] == "neurontrace.framework_mapping":
                stored[int(event["nrta_seq_id"])] = event["data"]["seq_nr"]
        self.assertEqual(stored, mapping, "every entry is in the store")

        out = self.fleet.dir / "mapped.pftrace"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        entries = Pftrace(out).slices
        self.assertFalse([entry.name for entry in entries if "mapping" in entry.name])
        operations = {flow: entry for entry in entries if entry.name in names for flow in entry.flows}
        self.assertEqual(collections.Counter(entry.name for entry in operations.values()), dict.fromkeys(names, 1))
        checked = 0
        for entry in entries:
            sequence_id = entry.args.get("nrta_seq_id")
            # A call that was under way when the capture began has no beginning, and so no cause.
            if entry.name != "nrt_execute" or sequence_id is None or entry.args.get("start_lost"):
                continue
            causes = [operations[flow] for flow in entry.flows if flow in operations]
            self.assertEqual(sorted(cause.name for cause in causes),
                             sorted(names[number - 1] for number in mapping.get(int(sequence_id), [])), entry)
            for cause in causes:
                self.assertLess(cause.start_ns, entry.start_ns)
            checked += bool(causes)
        self.assertGreater(checked, 5)


@needs_real_archive
class RealJob(FrameworkCase):
    def test_eight_ranks_of_a_dlrm_training(self):
        self.check(self.real_files())
        self.assertEqual(sorted(file.rank for file in self.files.values()), list(range(REAL_RANKS)))


if __name__ == "__main__":
    suite.main()
