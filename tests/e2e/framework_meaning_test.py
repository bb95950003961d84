# SPDX-License-Identifier: Apache-2.0
"""The contents of framework trace files are exported with their meaning: spans of two elements, odd times and
durations, counters and ranks; what cannot be meant is reported, and moves nothing else."""

import collections
import json

import suite
from framework_case import FrameworkCases, directory_case, file_case
from framework_cases import T_NS, T_US, complete, document, operations, write
from pftrace_reader import Pftrace


def element(phase, name, at_us, pid=5, tid=11, **more):
    """An element without a duration. `name`, `at_us`, `pid` or `tid` None: without it."""
    parts = {"ph": phase, "name": name, "cat": "step", "pid": pid, "tid": tid,
             "ts": None if at_us is None else T_US + at_us}
    return {**{key: value for key, value in parts.items() if value is not None}, **more}


def begin_end(folder):
    """Ends without a name, threads without a number, spans that lack an end; a comma before the first element."""
    events = [
        element("B", "outer", 0, args={"n": 1}),
        element("B", "inner", 10),
        element("E", None, 40, args={"bytes": 512}),
        element("E", "outer", 100),
        element("B", "NEGOTIATE_ALLREDUCE", 5, pid=6, tid=None),
        element("X", "0", 7, pid=6, tid=None, dur=0),
        element("E", None, 25, pid=6, tid=None),
        element("B", "never_ends", 30, tid=12),
        element("E", "never_began", 35, tid=13),
        element("I", "mark", 50, s="t"),
    ]
    text = "\n".join("," + json.dumps(event) for event in events)
    return write(folder / "begin_end.trace.json", f"[\n{text}\n]")


def asynchronous(folder):
    """Spans that belong to an id: two of one id that begin at one time, and an instant in them."""
    def at(phase, name, at_us, number):
        return element(phase, name, at_us, pid=4100, tid=0, id=number)
    return write(folder / "async.trace.json", document([
        at("b", "request", 0, "0x31"), at("b", "prefill", 0, "0x31"), at("e", "prefill", 40, "0x31"),
        at("b", "decode", 40, "0x31"), at("n", "first_token", 41, "0x31"), at("e", "decode", 90, "0x31"),
        at("e", "request", 90, "0x31"), at("b", "request", 10, "0x32"), at("e", "request", 70, "0x32")]))


def time_zero(folder):
    """Half of the device's events were never completed: they have the time 0."""
    events = []
    for i in range(4):
        events.append(complete(f"launch_{i}", 100 * i, 20))
        events.append({"ph": "s", "id": i, "pid": 4100, "tid": 4100, "cat": "ac2g", "name": "ac2g",
                       "ts": T_US + 100 * i})
        at = {"ts": T_US + 100 * i + 50} if i < 2 else {"ts": 0.0}
        events.append({**complete(f"kernel_{i}", 0, 30 if i < 2 else 0.0, pid=0, tid=7, category="kernel"), **at})
        events.append({"ph": "f", "id": i, "pid": 0, "tid": 7, "cat": "ac2g", "name": "ac2g", "bp": "e", **at})
    return write(folder / "zero.pt.trace.json", document(events))


def invalid_durations(folder):
    kernels = [("minus_one", 20, -1), ("getrandbits", 30, -0.02), ("end_was_zero", 40, -(T_US + 40)),
               ("century", 50, 4e15), ("no_number", 60, "soon")]
    return write(folder / "durations.pt.trace.json", document([
        complete("before", 0, 10),
        *(complete(name, at, duration, category="kernel") for name, at, duration in kernels),
        {**complete("absent", 70, category="kernel"), "dur": None},
        {"ph": "X", "cat": "kernel", "name": "tiny", "pid": 0, "tid": 7, "ts": T_US + 100.5, "dur": 0.25},
        complete("after", 120, 10)]))


def missing_members(folder):
    def without(member, name, at_us=0):
        return {key: value for key, value in complete(name, at_us).items() if key != member}
    return write(folder / "missing.pt.trace.json", document([
        complete("first", 0, 10), without("ts", "no_ts"), {**complete("ts_null", 0), "ts": None},
        {**complete("ts_empty", 0), "ts": ""}, without("dur", "no_dur", 100), without("ph", "no_ph", 300),
        {"ph": "X", "cat": "cpu_op", "name": "no_pid_no_tid", "ts": T_US + 200, "dur": 10},
        {"ph": "M", "name": "process_name", "pid": 4100, "tid": 0, "args": {"name": "python"}},
        {**complete("huge_ts", 0), "ts": 18446744073709551}, {**complete("negative_ts", 0), "ts": -5.5},
        complete("last", 500, 10)]))


def counters(folder):
    def counter(name, at_us, arguments, **more):
        return {"ph": "C", "name": name, "pid": 4100, "ts": T_US + at_us, "args": arguments, **more}
    return write(folder / "counters.pt.trace.json", document([
        counter("bytes", 0, {"v": 719201510900040202}), counter("bytes", 10, {"v": "719201510900040203"}),
        counter("queue", 0, {"AIC": 3, "AIV": 0, "MIX": 1}), counter("queue", 0, {"AIC": 9}, id="second"),
        counter("texts", 0, {"v": "25.7"}), counter("whole", 0, {"v": 1.0}), counter("state", 0, {"v": "idle", "n": 2}),
        counter("none", 0, {}), counter("signed", 0, {"v": -50})]))


def ranks(folder, info):
    """Ten operations under this distributedInfo; None: without one."""
    head = {"schemaVersion": 1, **({} if info is None else {"distributedInfo": info})}
    return write(folder / "ranks.pt.trace.json", json.dumps({**head, "traceEvents": operations(10)}))


class MeaningCases(FrameworkCases):
    def check_spans(self, result, spans, instants=()):
        """(name, ns after T, length) of all spans and (name, ns after T) of instants: in JSON, Perfetto's, Chrome's."""
        expected = collections.Counter((name, T_NS + at, length) for name, at, length in spans)
        points = collections.Counter((name, T_NS + at) for name, at in instants)
        rows = result.json["trace_event"]
        self.assertEqual(collections.Counter((row["name"], row["timestamp"], row["duration"]) for row in rows
                                             if row.get("phase") != "instant"), expected)
        self.assertEqual(collections.Counter((row["name"], row["timestamp"]) for row in rows
                                             if row.get("phase") == "instant"), points)
        drawn = collections.Counter((entry.name, entry.start_ns, entry.end_ns - entry.start_ns)
                                    for entry in Pftrace(result.pftrace).slices)
        self.assertFalse(expected - drawn, "missing in Perfetto's")
        base_ns = result.chrome_json["baseTimeNanoseconds"]
        self.assertEqual(collections.Counter(
            (event["name"], base_ns + round(event["ts"] * 1000), round(event["dur"] * 1000))
            for event in result.chrome_json["traceEvents"] if event["ph"] == "X"), expected)


class Spans(MeaningCases):
    """Spans that a file writes as two elements."""

    @file_case(begin_end)
    def test_begins_and_ends(self, result):
        self.check_whole(result, 10)
        for sentence in ("1 span begins and does not end (begin_end.trace.json: element 7 (never_ends))",
                         "1 span ends and does not begin (begin_end.trace.json: element 8 (never_began))"):
            self.assertIn(sentence, result.shown)
        # An open one ends with its file.
        spans = [("outer", 0, 100_000), ("inner", 10_000, 30_000), ("NEGOTIATE_ALLREDUCE", 5_000, 20_000),
                 ("0", 7_000, 0), ("never_ends", 30_000, 70_000), ("never_began", 35_000, 0)]
        self.check_spans(result, spans, instants=[("mark", 50_000)])
        entries = {entry["name"]: entry for entry in result.json["trace_event"]}
        self.assertTrue(entries["never_ends"]["open"])
        self.assertTrue(entries["never_began"]["start_lost"])
        self.assertEqual((entries["outer"]["n"], entries["inner"]["bytes"]), (1, 512))
        self.assertFalse([key for key in entries["inner"] if key.startswith("stop_")])
        self.check_exports(result)

    @file_case(asynchronous)
    def test_spans_of_an_id(self, result):
        self.check_whole(result, 9)
        self.check_spans(result, [("request", 0, 90_000), ("prefill", 0, 40_000), ("decode", 40_000, 50_000),
                                  ("request", 10_000, 60_000)], instants=[("first_token", 41_000)])
        self.check_exports(result)


class Times(MeaningCases):
    """Times and durations that cannot be."""

    @file_case(time_zero)
    def test_events_at_zero(self, result):
        self.check_lost(result, stored=12, lost=4)
        self.assertIn("4 events have no usable time (zero.pt.trace.json: element 10 (kernel_2)", result.shown)
        self.assertIn("4 in the decode (no time)", result.shown)
        spans = [(f"launch_{i}", 100_000 * i, 20_000) for i in range(4)]
        spans += [(f"kernel_{i}", 100_000 * i + 50_000, 30_000) for i in range(2)]
        self.check_spans(result, spans)
        self.check_exports(result)
        first = json.loads(result.export("json", "from.json", "--from", "0s", "--to", "1s").read_text(encoding="utf-8"))
        self.assertEqual(len(first["trace_event"]), 6, "the capture begins with its first event")
        summary = json.loads(result.export("summary-json", "summary.json").read_text(encoding="utf-8"))["summary"]
        self.assertLess(int(summary["end_ns"]) - int(summary["begin_ns"]), 1_000_000)

    @file_case(invalid_durations)
    def test_durations(self, result):
        self.assertEqual((result.stored, result.lost, result.exit_code), (9, 0, 3), result.printed)
        self.assertIn("6 events have impossible durations", result.shown)
        anomalous = [("minus_one", 20), ("getrandbits", 30), ("end_was_zero", 40), ("century", 50), ("no_number", 60),
               ("absent", 70)]
        self.check_spans(result, [("before", 0, 10_000), ("after", 120_000, 10_000), ("tiny", 100_500, 250),
                                  *((name, at * 1000, 0) for name, at in anomalous)])
        self.check_exports(result)
        for entry in result.json["trace_event"]:
            self.assertEqual("neurontrace.duration" in entry, entry["name"] in dict(anomalous), entry)
        summary = json.loads(result.export("summary-json", "summary.json").read_text(encoding="utf-8"))["summary"]
        kernel = next(row for row in summary["event_types"] if row["event_type"] == "kernel")
        self.assertEqual((kernel["count"], kernel["odd_length"], kernel["spans"]["count"]), (7, 6, 1))
        self.assertEqual((kernel["spans"]["sum_ns"], kernel["spans"]["min_ns"]), (250, 250))

    @file_case(missing_members)
    def test_members_that_are_missing(self, result):
        self.check_lost(result, stored=6, lost=5)
        self.check_spans(result, [("first", 0, 10_000), ("no_dur", 100_000, 0), ("no_pid_no_tid", 200_000, 10_000),
                                  ("last", 500_000, 10_000)], instants=[("no_ph", 300_000)])
        for name in ("no_ts", "ts_null", "ts_empty", "huge_ts", "negative_ts"):
            self.assertIn(f"({name})", result.printed)
        self.check_exports(result)


class Values(MeaningCases):
    """Counters, and ranks."""

    @file_case(counters)
    def test_counters(self, result):
        self.check_whole(result, 9)
        stored = [(row["event"]["name"], row["event"].get("id"), row["event"]["data"]) for row in result.events]
        for expected in (("bytes", None, {"v": 719201510900040202}), ("bytes", None, {"v": 719201510900040203}),
                         ("queue", "second", {"AIC": 9}), ("texts", None, {"v": 25.7}), ("whole", None, {"v": 1}),
                         ("state", None, {"v": "idle", "n": 2}), ("none", None, {}), ("signed", None, {"v": -50})):
            self.assertIn(expected, stored)
        self.assertIn("1 counter value is not a number", result.shown)
        self.check_exports(result)

    def check_rank(self, result, rank, printed=None):
        self.assertEqual((result.stored, result.lost), (10, 0), result.printed)
        gid = next(iter(result.streams().values())).get("worker_gid", -1)
        self.assertEqual(int(gid), -1 if rank is None else rank, result.printed)
        self.assertEqual(result.exit_code, 3 if printed else 0, result.output)
        if printed:
            self.assertIn(printed, result.shown)

    @file_case(ranks, {"rank": "3", "world_size": "8"})
    def test_a_rank_as_text(self, result):
        self.check_rank(result, 3)

    @file_case(ranks, {"rank": "three", "world_size": 8})
    def test_a_rank_that_is_none(self, result):
        self.check_rank(result, None, 'rank is "three"')


def copy_replicas(run):
    for engine in range(2):
        for rank in range(2):
            write(run.folder / f"engine{engine}-rank{rank}.pt.trace.json", document(
                operations(5, f"engine{engine}_rank{rank}_", pid=5300 + 10 * engine + rank), rank=rank, world_size=2))
    run.wait_for_events(20)


class Replicas(MeaningCases):
    @directory_case(copy_replicas)
    def test_ranks_that_are_claimed_twice(self, result):
        self.assertEqual((result.stored, result.lost, result.exit_code), (20, 0, 3), result.printed)
        self.assertIn("2 ranks are contradicted (rank 0 is claimed by 2 files at the same time", result.shown)
        for name in result.streams():
            self.assertIn(name, result.shown)
        rows = collections.defaultdict(set)
        for event in result.chrome_json["traceEvents"]:
            if event["ph"] == "X":
                rows[event["pid"], event["tid"]].add(event["name"][:len("engine0_rank0")])
        self.assertEqual(sorted(rows.values(), key=str), sorted(
            ({f"engine{engine}_rank{rank}"} for engine in range(2) for rank in range(2)), key=str))


if __name__ == "__main__":
    suite.main()
