# SPDX-License-Identifier: Apache-2.0
"""Framework trace files of several ranks, one rank an instance, into one capture and out as .pftrace, JSON, trace-event
JSON and XSpace: every name, start and duration comes out as it went in, to the nanosecond.

Input and output are read by readers of the tests' own (framework_input.py, pftrace_reader.py, xspace_reader.py). The
files of a real job are found in NEURONTRACE_TEST_DATA, or in ../shared/data beside the source tree; a fixture is always there.
"""

import collections
import gzip
import json
import os
import tarfile
import unittest
from decimal import Decimal
from pathlib import Path

from fleet_case import FleetCase
from framework_input import exact_ns, matched_flow_ends, read_framework_file, write_fixture
from ground_truth import read_events
from pftrace_reader import Pftrace
from xspace_reader import XSpace

# What an event's "ph" is called in the store.
PHASES = {"complete": "X", "instant": "i", "flow_start": "s", "flow_end": "f", "metadata": "M"}
ARCHIVE = "kineto-dlrm-8-ranks.tar.gz"
SOURCE_ROOT = Path(__file__).resolve().parents[2]


def real_archive():
    folder = os.environ.get("NEURONTRACE_TEST_DATA", SOURCE_ROOT.parent / "shared" / "data")
    return Path(folder) / ARCHIVE


# Arrows of executions and collectives, which no file of a framework has.
FIRST_DERIVED_FLOW = 1 << 48


class FrameworkCase(FleetCase):
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
            expected = collections.Counter((name, start, duration) for name, _, _, start, duration in file.complete)
            expected.update((name, time, 0) for name, _, _, time in file.instants)
            self.assert_same(spans[instance], expected, instance)

    def check_pftrace(self, capture_id):
        out = self.fleet.dir / "trace.pftrace"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        self.check_sound(out)
        trace = Pftrace(out)
        slices, instants = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        flows = collections.defaultdict(list)  # of each arrow, the instances that its ends lie on
        for entry in trace.events():
            process, _ = trace.process_of(entry.track)
            instance = next(name for name in self.files if process.startswith(name))
            if entry.instant:
                instants[instance][(entry.name, entry.start_ns)] += 1
            else:
                self.assertIsNotNone(entry.end_ns, entry)
                slices[instance][(entry.name, entry.start_ns, entry.end_ns - entry.start_ns)] += 1
            for flow in entry.flows + entry.flows_ended:
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
            if event["ph"] == "M" or event["cat"] == "neurontrace":
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
            expected = collections.Counter((name, start, duration) for name, _, _, start, duration in file.complete)
            expected.update((name, time, 0) for name, _, _, time in file.instants)
            # Ends of arrows that touch no slice are events of their own.
            flows = {flow[1] for flow in file.flow_starts + file.flow_ends}
            own = collections.Counter({key: n for key, n in (found - expected).items() if key[0] in flows and key[2] == 0})
            self.assert_same(found - own, expected, instance)

    def assert_same(self, found, expected, where):
        self.assertGreater(sum(expected.values()), 0)
        self.assertEqual(list((expected - found).items())[:3], [], f"missing of {where}")
        self.assertEqual(list((found - expected).items())[:3], [], f"not expected of {where}")


class Fixture(FrameworkCase):
    def test_both_time_forms_and_everything_odd(self):
        paths = [self.fleet.dir / "worker0.pt.trace.json", self.fleet.dir / "worker1.pt.trace.json.gz"]
        write_fixture(paths[0], rank=0)
        write_fixture(paths[1], rank=1, base_time_ns=1_763_699_000_123_456_789)
        self.check(paths)

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


@unittest.skipUnless(real_archive().exists(),
                     f"no {ARCHIVE} in {real_archive().parent}: name its folder in NEURONTRACE_TEST_DATA")
class RealJob(FrameworkCase):
    def test_eight_ranks_of_a_dlrm_training(self):
        paths = []
        with tarfile.open(real_archive()) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".pt.trace.json"):
                    paths.append(self.fleet.dir / Path(member.name).name)
                    paths[-1].write_bytes(archive.extractfile(member).read())
        paths.sort()
        self.assertEqual(len(paths), 8)
        self.check(paths)
        self.assertEqual(sorted(file.rank for file in self.files.values()), list(range(8)))


if __name__ == "__main__":
    unittest.main()
