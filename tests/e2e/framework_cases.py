# SPDX-License-Identifier: Apache-2.0
"""Inputs of the cases in framework_cases_test.py: trace files as real writers leave them, sound and damaged.

Each function writes into a folder and returns the path of the file, or of the folder. T is the time at which the events
of most cases begin.
"""

import gzip
import json

T_US = 1_790_000_000_000_000
T_NS = T_US * 1000


def complete(name, at_us, duration_us=5, pid=4100, tid=4100, category="cpu_op", **more):
    """A span that begins `at_us` after T."""
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": T_US + at_us, "dur": duration_us,
            "args": {}, **more}


def operations(count, prefix="op_", **options):
    return [complete(f"{prefix}{i}", 10 * i, **options) for i in range(count)]


def document(events, rank=0, world_size=1):
    """A trace as Kineto writes it, as text. `rank` None: without ranks."""
    head = {"schemaVersion": 1}
    if rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    return json.dumps({**head, "traceEvents": events}, indent=1)


def lines(elements, rank=0):
    """The same with one element a line; `elements` are texts, sound JSON or not."""
    head = json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 1}})
    return head[:-1] + ',"traceEvents":[\n' + ",\n".join(elements) + "\n]}\n"


def write(path, content):
    """Text or bytes; what ends in .gz is packed."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)
    return path


# -- damage ----------------------------------------------------------------------------------------------------------

def damaged_name(name, at_us=20):
    """An element whose name is put between quotation marks as it is."""
    return json.dumps(complete("@", at_us, 10, category="python_function")).replace('"@"', f'"{name}"')


def control_characters(folder):
    return write(folder / "control.pt.trace.json", lines([
        json.dumps(complete("load_batch", 0, 10)), damaged_name("\x01S(1): <module>"), damaged_name("tab\there", 40),
        json.dumps(complete("forward", 60, 10)), json.dumps(complete("backward", 80, 10))]))


def quotes_in_a_name(folder, name):
    """52 elements; the second one's name is `name` as it is."""
    good = [json.dumps(complete(f"op_{i:02}", 40 + 20 * i, 10)) for i in range(50)]
    return write(folder / "quotes.pt.trace.json",
                 lines([json.dumps(complete("load_batch", 0, 10)), damaged_name(name), *good]))


# -- files that are not whole -----------------------------------------------------------------------------------------

def thousand(folder, name, change=lambda data: data):
    """1,000 operations, changed on the way to the disk: `change` is given the text's bytes."""
    path = folder / name
    path.write_bytes(change(document(operations(1000)).encode()))
    return path


def plain_cut(data):
    return data[:len(data) // 2]


def packed_cut(data):
    packed = gzip.compress(data, mtime=0)
    return packed[:len(packed) // 2]


def second_member_cut(data):
    half = len(data) // 2
    second = gzip.compress(data[half:], mtime=0)
    return gzip.compress(data[:half], mtime=0) + second[:len(second) - 200]


def garbage_behind(data):
    return gzip.compress(data, mtime=0) + bytes(512)


def packed_twice(data):
    return gzip.compress(gzip.compress(data, mtime=0), mtime=0)


def text_file(folder, name, text):
    return write(folder / name, text)


# -- names -----------------------------------------------------------------------------------------------------------

# That profilers, launchers and frameworks give: one file of each rank, with one span file_RANK.
NAMES = ("rank-0.json.gz", "trace-rank-1.json", "libkineto_activities_4100.json", "prof_2.json.gz",
         "perfetto_trace.json.gz", "trace_view.json", "1790000000-TP-3.trace.json.gz",
         "worker0.1790000000000.pt.trace.json", "chrome_trace.json",
         "actor_train_step1_rank0-of-2_pid4100_20260921.json.gz")


def named_by_others(folder):
    for rank, name in enumerate(NAMES):
        write(folder / name, document([complete(f"file_{rank}", 10 * rank)], rank, len(NAMES)))
