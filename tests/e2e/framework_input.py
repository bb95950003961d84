# SPDX-License-Identifier: Apache-2.0
"""Reads a Kineto or JAX trace file with Python's own JSON reader and exact decimals: what an export must say again.

Also makes the fixture: a small file with everything in it that such files are known to hold.
"""

import collections
import dataclasses
import gzip
import json
import re
from decimal import ROUND_DOWN, Decimal

MICROSECOND_NS = 1000


@dataclasses.dataclass
class FrameworkFile:
    """Times in epoch ns. A pid or tid is the text of what the file has there."""
    complete: list  # (name, pid, tid, start_ns, duration_ns)
    instants: list  # (name, pid, tid, time_ns)
    flow_starts: list  # (id, category, pid, tid, time_ns)
    flow_ends: list
    rank: int
    process_names: dict  # pid -> name
    phases: collections.Counter  # of all events


def exact_ns(number):
    """Microseconds as nanoseconds; digits below one are cut."""
    return int((Decimal(number) * MICROSECOND_NS).to_integral_value(rounding=ROUND_DOWN))


def read_framework_file(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        document = json.load(file, parse_float=Decimal)
    base_ns = int(document.get("baseTimeNanoseconds", 0))
    result = FrameworkFile([], [], [], [], document.get("distributedInfo", {}).get("rank", -1), {},
                           collections.Counter(event["ph"] for event in document["traceEvents"]))
    for event in document["traceEvents"]:
        phase = event["ph"]
        row = (str(event.get("pid", "")), str(event.get("tid", "")))
        if phase == "M":
            if event["name"] == "process_name":
                result.process_names[row[0]] = event["args"]["name"]
            continue
        time_ns = base_ns + exact_ns(event["ts"])
        if phase == "X":
            result.complete.append((event["name"], *row, time_ns, exact_ns(event.get("dur", 0))))
        elif phase == "i":
            result.instants.append((event["name"], *row, time_ns))
        elif phase == "s":
            result.flow_starts.append((event["id"], event["cat"], *row, time_ns))
        elif phase == "f":
            result.flow_ends.append((event["id"], event["cat"], *row, time_ns))
    return result


def matched_flow_ends(file):
    """Ends whose start is in the file; the others are orphans, which real files have by the hundred."""
    starts = {flow[:2] for flow in file.flow_starts}
    return [flow for flow in file.flow_ends if flow[:2] in starts]


def matched_flows(file):
    """(start, end) of each arrow with both ends in the file."""
    starts = {flow[:2]: flow for flow in file.flow_starts}
    return [(starts[flow[:2]], flow) for flow in matched_flow_ends(file)]


# --- The fixture ------------------------------------------------------------------------------------------------------

EPOCH_US = 1_763_700_000_000_000


def fixture_events(time, anomalous=True):
    """Events of one rank; `time` turns microseconds since the beginning (as text) into what is in "ts"."""
    def complete(name, pid, tid, start, duration, **more):
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": tid, "ts": time(start),
                "dur": Decimal(duration), **more}

    events = [
        {"ph": "M", "name": "process_name", "pid": 4711, "tid": 0, "ts": time("0"), "args": {"name": "python3"}},
        {"ph": "M", "name": "process_labels", "pid": 4711, "tid": 0, "ts": time("0"), "args": {"labels": "CPU"}},
        {"ph": "M", "name": "thread_name", "pid": 4711, "tid": 4711, "ts": time("0"),
         "args": {"name": "thread 4711 (python3)"}},
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": time("0"), "args": {"name": "python3"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": time("0"), "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0, "args": {"name": "Spans"}},  # without a time
    ]
    for step in range(40):
        at = step * 100
        events += [
            complete(f"ProfilerStep#{step}", 4711, 4711, f"{at}.001", "99.998", args={"External id": step * 4}),
            complete("aten::mm", 4711, 4711, f"{at + 1}.125", "40.5",
                     args={"External id": step * 4 + 1, "Input Dims": [[3, 4], [4, 5], []], "Concrete Inputs": ["", ""]}),
            complete("cudaLaunchKernel", 4711, 4711, f"{at + 2}.25", "3", cat="cuda_runtime",
                     args={"correlation": step}),
            complete("void gemm<float, 128, true>(float const*, \"β\")", 0, 7, f"{at + 10}.003", "20.999", cat="kernel",
                     args={"correlation": step, "stream": 7, "grid": [8, 1, 1], "est. achieved occupancy %": Decimal("37.5")}),
            {"ph": "s", "id": step, "pid": 4711, "tid": 4711, "ts": time(f"{at + 2}.25"), "cat": "ac2g", "name": "ac2g"},
            {"ph": "f", "id": step, "pid": 0, "tid": 7, "ts": time(f"{at + 10}.003"), "cat": "ac2g", "name": "ac2g",
             "bp": "e"},
            {"ph": "f", "id": 100_000 + step, "pid": 4711, "tid": 4711, "ts": time(f"{at + 3}"), "cat": "ac2g",
             "name": "ac2g", "bp": "e"},
        ]
    events += [
        complete("PyTorch Profiler (0)", "Spans", "PyTorch Profiler", "0", "4000", cat="Trace", args={"Op count": 160}),
        {"ph": "i", "name": "Iteration Start: PyTorch Profiler", "s": "g", "pid": "Traces",
         "tid": "Trace PyTorch Profiler", "ts": time("0")},
        complete("zero", 4711, 4711, "4000", "0"),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 4711, "tid": 4711,
         "ts": time("50.750"), "args": {"Addr": 2**63 + 1, "Bytes": -512, "Total Allocated": 0}},
    ]
    if anomalous:
        events += [
            complete("overlap a", 4711, 5000, "10", "5"),
            complete("overlap b", 4711, 5000, "13", "5"),  # neither inside nor beside the one before
            complete("a thread with a negative id", 4711, -5000, "20.000", "1.001"),
            complete("Überschrift ☃ 𝄞 \\ \" \n", 4711, 5001, "30", "2"),
            complete("overhead", -1, 0, "60", "1"),
            complete("finer than a nanosecond", 4711, 5001, "80.0004", "1.9999"),
            complete("without a duration", 4711, 5001, "70", "0"),
        ]
        del events[-1]["dur"]
    return events


EXACT = re.compile(r'"@exact ([^"]+)@"')


def write_fixture(path, rank, base_time_ns=None):
    """With `base_time_ns` in the newer form: fractional microseconds since that time. Without: epoch microseconds."""
    if base_time_ns is None:
        def time(since):
            return EPOCH_US + Decimal(since)
    else:
        def time(since):
            return EPOCH_US - Decimal(base_time_ns) / MICROSECOND_NS + Decimal(since)
    document = {"schemaVersion": 1, "deviceProperties": [],
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 8},
                "displayTimeUnit": "ms", "traceName": f"worker{rank}.pt.trace.json"}
    if base_time_ns is not None:
        document["baseTimeNanoseconds"] = base_time_ns
    document["traceEvents"] = fixture_events(time)

    # Python writes decimals as floats, which lose digits: they pass through as marked text.
    marked = json.dumps(document, indent=1, ensure_ascii=bool(rank % 2), default=lambda number: f"@exact {number}@")
    text = EXACT.sub(lambda match: match[1], marked)
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text + "\n")


def write_operations(path, pid, threads, begin_ns, end_ns, length_ns):
    """A file in which each thread of a process does one operation `aten::mm` after the other."""
    def microseconds(ns):
        return f"{ns // MICROSECOND_NS}.{ns % MICROSECOND_NS:03}"

    events = ",\n".join(
        f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": {pid}, "tid": {tid}, "ts": {microseconds(start_ns)}, '
        f'"dur": {microseconds(length_ns)}}}'
        for tid in threads for start_ns in range(begin_ns, end_ns, length_ns))
    path.write_text(f'{{"schemaVersion": 1, "traceEvents": [\n{events}\n]}}\n', encoding="utf-8")


MAPPING_NAME = "framework_mapping_20251121_101530_042.json"


def write_mapped_operations(path, pid, thread, begin_ns, names):
    """A file with one short operation after the other on one thread, numbered from 1 as autograd does."""
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": thread, "ts": begin_ns // MICROSECOND_NS + number,
               "dur": 1, "args": {"Sequence number": number}} for number, name in enumerate(names, 1)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")


def write_mapping(path, numbers_by_id):
    """A mapping file; `numbers_by_id`: the numbers of the operations that each nrta_seq_id was submitted for."""
    path.write_text(json.dumps({"version": 1, "data": [
        {"nrta_seq_id": sequence_id,
         "framework_op_exec_ids": [{"seq_nr": number, "th_id": 1, "stream_id": 0} for number in numbers]}
        for sequence_id, numbers in numbers_by_id.items()]}), encoding="utf-8")
