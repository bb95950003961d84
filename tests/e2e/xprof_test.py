# SPDX-License-Identifier: Apache-2.0
"""Captures out as XSpace, opened by the program that such files are for: XProf's own conversion to what its trace viewer
draws. Every event, row and arrow of the viewer is compared with the files as read by a reader of our own
(xspace_reader.py), and with what went in.

Runs where scripts/setup has put xprof into build/python (PYTHONPATH names it).
"""

import collections
import contextlib
import json
import os
import tempfile
import unittest
from decimal import ROUND_HALF_EVEN, Decimal

import suite
from format_case import FormatCase, expected_spans, needs_real_archive
from framework_input import matched_flows
from xspace_reader import XSpace

try:
    from xprof.convert import raw_to_tool_data
except ImportError as error:
    raw_to_tool_data = None
    WHY_NOT = f"no xprof here ({error}): ./scripts/setup installs it into build/python"
else:
    WHY_NOT = ""

TOOL = "trace_viewer@"
# Of one event each, whatever is drawn of them: 0 leaves nothing out.
ALL = {"resolution": 0, "start_time_ms": None, "end_time_ms": None}
# What the viewer gives an event without a length, so that it can be seen: a picosecond.
INSTANT_US = Decimal("0.000001")
COUNTERS = "_counters_"
FLOW_IN, FLOW_OUT = 1, 2


@contextlib.contextmanager
def quiet():
    """XProf tells its log of every step; it is shown where that is of use."""
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            os.write(stderr, log.read()[-4000:])
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def nearest_ns(microseconds):
    """The viewer's numbers are binary fractions, written in full."""
    return int((Decimal(microseconds) * 1000).to_integral_value(ROUND_HALF_EVEN))


class Viewed:
    """What the trace viewer draws of the files of a run; times in ns since the beginning of the profile."""

    def __init__(self, paths):
        with quiet():
            data, _ = raw_to_tool_data.xspace_to_tool_data(
                [str(path) for path in paths], TOOL, {"trace_viewer_options": ALL, "use_saved_result": False})
        document = json.loads(data, parse_float=Decimal)
        self.events = collections.Counter()  # (plane, line, name, start, duration)
        self.flows = collections.Counter()  # (plane, line, name, start, id, whether in, whether out)
        self.counters = collections.Counter()  # (plane, name, stat, time, value)
        planes, lines = {}, {}
        for event in document["traceEvents"]:
            if event["ph"] == "M" and event["name"] == "process_name":
                planes[event["pid"]] = event["args"]["name"]
            elif event["ph"] == "M" and event["name"] == "thread_name":
                lines[event["pid"], event["tid"]] = event["args"]["name"]
        for event in document["traceEvents"]:
            if event["ph"] == "M":
                continue
            plane = planes[event["pid"]]
            if event["ph"] == "C":
                for time, value in event["entries"]:  # one series: more would be stacked
                    self.counters[plane, event["name"], event["event_stats"], nearest_ns(time), float(value)] += 1
                continue
            assert event["ph"] == "X", event
            row = (plane, lines[event["pid"], event["tid"]], event["name"], nearest_ns(event["ts"]))
            duration_us = Decimal(event["dur"])
            self.events[(*row, 0 if duration_us == INSTANT_US else nearest_ns(duration_us))] += 1
            if "bind_id" in event:
                self.flows[(*row, event["bind_id"], event.get("flow_in", False), event.get("flow_out", False))] += 1

    def arrows(self):
        """From how many events to how many there are arrows that arrive, by (instance, start, end)."""
        starts, arrows = {}, collections.Counter()
        for plane, _, _, time, flow, _, is_out in self.flows:
            if is_out:
                starts[plane.split(" ")[0], flow] = time
        for (plane, _, _, time, flow, is_in, _), count in self.flows.items():
            begin = starts.get((plane.split(" ")[0], flow))
            if is_in and begin is not None:
                arrows[plane.split(" ")[0], begin, time] += count
        return arrows


class XprofCase(FormatCase):
    def view(self, capture_id):
        """Exports, opens, holds one against the other; returns what is drawn and our readers of the files."""
        out = self.fleet.dir / "xspace"
        self.fleet.cli("export", capture_id, "--format", "xspace", "-o", out, codes=(0, 3))
        paths = sorted(out.glob("plugins/profile/*/*.xplane.pb"))
        with quiet():
            self.assertIn(TOOL, raw_to_tool_data.xspace_to_tool_names([str(path) for path in paths]))
        viewed = Viewed(paths)
        spaces = {path.name.removesuffix(".xplane.pb"): XSpace(path) for path in paths}
        events, flows, counters = collections.Counter(), collections.Counter(), collections.Counter()
        for instance, space in spaces.items():
            self.assertEqual(space.hostnames, [instance])
            for event in space.events:
                plane, time = f"{instance} {event.plane}", event.start_ns - space.origin_ns
                if event.line == COUNTERS:
                    for stat, value in event.stats.items():
                        counters[plane, event.name, stat, time, float(value)] += 1
                    continue
                row = (plane, event.line, event.name, time)
                events[(*row, event.duration_ns)] += 1
                if "flow" in event.stats:
                    flow = event.stats["flow"]
                    flows[(*row, flow >> 2, bool(flow & FLOW_IN), bool(flow & FLOW_OUT))] += 1
        self.assert_same(viewed.events, events, "events")
        if flows:
            self.assert_same(viewed.flows, flows, "ends of arrows")
        self.assert_same_or_none(viewed.counters, counters, "counters")
        return viewed, spaces

    def assert_same_or_none(self, found, expected, where):
        if expected:
            self.assert_same(found, expected, where)
        else:
            self.assertEqual(found, expected, where)


@unittest.skipIf(raw_to_tool_data is None, WHY_NOT)
class Neuron(XprofCase):
    def test_events_arrows_and_counters_of_a_fleet(self):
        capture_id = self.record_fleet()
        viewed, spaces = self.view(capture_id)
        self.assertEqual(set(spaces), {"i-0000", "i-0001"})
        out = self.fleet.dir / "trace.json"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        origin_ns = {instance: space.origin_ns for instance, space in spaces.items()}
        self.assertEqual(len(set(origin_ns.values())), 1, "one origin for all files of a run")
        expected = collections.Counter(
            (span["instance_id"], span["timestamp"] - origin_ns[span["instance_id"]], span["duration"])
            for span in document["trace_event"])
        found = collections.Counter()
        for (plane, line, _, time, duration), count in viewed.events.items():
            self.assertIn("/device:CUSTOM:", plane)
            if line != "losses":
                found[plane.split(" ")[0], time, duration] += count
        self.assertGreater(sum(expected.values()), 5_000)
        self.assert_same(found, expected, "what the JSON has")
        # From preparations to the device, for one.
        self.assertGreater(sum(viewed.arrows().values()), 100)
        hosts = {plane.split(" ")[0] for plane, *_ in viewed.counters}
        self.assertEqual(hosts, set(spaces))


@unittest.skipIf(raw_to_tool_data is None, WHY_NOT)
class Framework(XprofCase):
    def check(self, files):
        viewed, spaces = self.view(self.record(files)["capture_id"])
        self.assertEqual(set(spaces), set(self.files))
        arrows = viewed.arrows()
        for instance, file in self.files.items():
            origin_ns = spaces[instance].origin_ns
            found = collections.Counter()
            for (plane, _, name, time, duration), count in viewed.events.items():
                if plane.startswith(instance + " "):
                    found[name, origin_ns + time, duration] += count
            expected = expected_spans(file)
            # Ends of arrows that touch no slice are events of their own.
            flows = {flow[1] for flow in file.flow_starts + file.flow_ends}
            own = collections.Counter({key: n for key, n in (found - expected).items() if key[0] in flows and key[2] == 0})
            self.assert_same(found - own, expected, instance)
            self.assert_same(
                collections.Counter({(begin, end): n for (name, begin, end), n in arrows.items() if name == instance}),
                collections.Counter((begin[-1] - origin_ns, end[-1] - origin_ns) for begin, end in matched_flows(file)),
                f"arrows of {instance}")

    def test_fixture(self):
        self.check(self.fixture_files())

    @needs_real_archive
    def test_eight_ranks_of_a_dlrm_training(self):
        self.check(self.real_files())


if __name__ == "__main__":
    suite.main()
