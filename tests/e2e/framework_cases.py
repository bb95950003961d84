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


# -- times from the file's own start ---------------------------------------------------------------------------------

def relative_steps(folder, name="host.trace.json"):
    """As JAX, VizTracer and Horovod write: three steps, 1 ms after a moment that the file does not name."""
    steps = [{"ph": "X", "pid": 701, "tid": 1, "ts": 1000.0 + 500 * step, "dur": 400, "name": f"train_step {step}",
              "args": {"step_num": str(step)}} for step in range(3)]
    return write(folder / name, json.dumps({"displayTimeUnit": "ns", "traceEvents": [*steps, {}]}))


def jax_session(run):
    """The files of one session of JAX's profiler, in the folder that it makes."""
    folder = run.folder / "plugins/profile/2026_09_21_14_13_20"
    write(folder / "vm.xplane.pb", xspace(T_NS))
    relative_steps(folder, "vm.trace.json")
    run.wait_for_events(5)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def part(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def names(field, **ids):
    return b"".join(part(field, number(1, i) + part(2, number(1, i) + part(2, name.encode())))
                    for name, i in ids.items())


def xspace(begin_ns):
    """The same steps as an XSpace, which says when its session began."""
    events = b"".join(part(4, number(1, 1) + number(2, 500_000_000 * step) + number(3, 400_000_000) +
                           part(4, number(1, 7) + number(3, step))) for step in range(3))
    line = number(1, 1) + part(2, b"python") + number(3, 1_000_000) + events
    host = part(2, b"/host:CPU") + part(3, line) + names(4, train_step=1) + names(5, step_num=7)
    environment = (part(2, b"Task Environment") + names(5, profile_start_time=1) +
                   part(6, number(1, 1) + number(3, begin_ns)))
    return part(1, host) + part(1, environment)
