#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a public trace of ByteDance-Seed/StragglerAnalysis into the text that insight_accuracy --events reads.

    straggler_traces.py TRACE.parquet > EVENTS.txt

Each forward or backward computation becomes an execution of its stage's model: it runs from the start of the computation
to the end of the last operation before the next computation, and operations between ranks in it are collectives. Needs
pyarrow.
"""

import sys
from collections import defaultdict

import pyarrow.parquet

COMPUTE = {"forward-compute": 1, "backward-compute": 2}
# Operations of data parallelism meet all replicas of a stage; sends and receives meet the neighbouring stage.
PAIRS = {"forward-send": 1, "backward-recv": 1, "forward-recv": -1, "backward-send": -1}
REPLICAS = {"grads-reduce-scatter", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "params-all-gather"}
OPS = {name: number for number, name in enumerate(sorted(PAIRS.keys() | REPLICAS), 1)}
START_NS = 1_000_000_000_000


def nanoseconds(seconds):
    return START_NS + round(seconds * 1e9)


def group_of(row):
    """The number of the group in which an operation of this row meets."""
    if row["optype"] in REPLICAS:
        return 1 + row["stage"]
    earlier = min(row["stage"], row["stage"] + PAIRS[row["optype"]])
    return 1_000 + earlier * 10_000 + row["dp_rank"]


def steps_of(rows):
    """Rows by step, each with its start moved behind the end of the step before where times restart in each."""
    by_step = defaultdict(list)
    for row in rows:
        by_step[row["step"]].append(row)
    reached, moved = 0.0, 0.0
    for number, step in enumerate(sorted(by_step)):
        part = by_step[step]
        begin = min(row["start_ts"] for row in part)
        moved = reached - begin + 0.001 if begin + moved < reached else moved
        for row in part:
            row["start_ts"] += moved
        reached = max(row["start_ts"] + row["duration"] for row in part)
        yield number, part


def executions(rows):
    """Of one rank and step: lists of rows, each beginning with a computation."""
    found = []
    for row in sorted(rows, key=lambda row: row["start_ts"]):
        if row["optype"] in COMPUTE:
            found.append([])
        if found:  # what comes before the first computation belongs to no execution
            found[-1].append(row)
    return found


def write_execution(core, exec_id, rows):
    first = rows[0]
    model = 1 + first["stage"] * 2 + COMPUTE[first["optype"]]
    start = nanoseconds(first["start_ts"])
    end = max(nanoseconds(row["start_ts"] + row["duration"]) for row in rows)
    for row in sorted(rows[1:], key=lambda row: row["start_ts"] + row["duration"]):
        if row["optype"] in OPS:
            begin = nanoseconds(row["start_ts"])
            print("event", core, "collective", begin, max(begin, nanoseconds(row["start_ts"] + row["duration"])), exec_id,
                  OPS[row["optype"]], 0, group_of(row))
    print("event", core, "run", start, end, exec_id, 0, model, 0)
    print("event", core, "execute", start, end, 0, 0, model, 0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = pyarrow.parquet.read_table(sys.argv[1]).to_pylist()
    ranks = sorted({(row["rank"], row["stage"]) for row in rows})
    cores = {rank: core for core, (rank, _) in enumerate(ranks)}
    for rank, _ in ranks:
        print("core", "public", f"rank-{rank}", rank, rank, 0)
    for stage in sorted({stage for _, stage in ranks}):
        for name, number in COMPUTE.items():
            print("model", 1 + stage * 2 + number, f"stage{stage}/{name}")
    done = 0
    for _, step in steps_of(rows):
        by_rank = defaultdict(list)
        for row in step:
            by_rank[row["rank"]].append(row)
        longest = 0
        for rank, part in by_rank.items():
            parts = executions(part)
            longest = max(longest, len(parts))
            for number, execution in enumerate(parts):
                write_execution(cores[rank], 1 + done + number, execution)
        done += longest


if __name__ == "__main__":
    main()
