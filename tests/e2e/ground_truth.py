# SPDX-License-Identifier: Apache-2.0
"""Compares what simulated workers say they recorded with what a capture holds, event by event.

Three independent accounts meet here: the worker's own list of every event that entered a ring (`Worker.truth`), the
runtime's sums for each core when its trace ended (`Worker.capture_log`), and the capture, exported in the `events`
format. An event between the last fetch and the end of a trace never left the runtime: such a tail is no loss of
neurontrace's, and its length is checked against the runtime's own sum.
"""

import collections
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Comparison:
    expected: int = 0     # events that left the runtime, or should have
    stored: int = 0
    missing: int = 0
    extra: int = 0        # stored, but no such event was ever recorded
    twice: int = 0
    wrong_rank: int = 0   # stored under a worker_gid that is not the core's
    after_end: int = 0    # recorded between the last fetch and the end of a trace
    first_difference: str = ""
    cores: set = field(default_factory=set)  # (instance, pid, nc_idx) with events

    def ok(self):
        return self.expected > 0 and not (self.missing or self.extra or self.twice or self.wrong_rank)

    def differ(self, kind, what):
        if not self.first_difference:
            self.first_difference = f"{kind}: {what}"


def read_truth(path):
    """Rows of a worker's own list, with numbers as numbers."""
    with open(path, encoding="utf-8", newline="") as file:
        names = file.readline().split()
        texts = [name in ("event_type", "phase") for name in names]
        for line in file:
            values = line.split("\t")
            if len(values) < len(names):
                return  # a killed worker leaves its last line unfinished
            yield {name: value if text else int(value) for name, text, value in zip(names, texts, values)}


def read_capture_log(path):
    """Sums of the runtime, by (capture, nc_idx); nothing for traces that never ended."""
    names = "pid capture nc_idx accepted overwritten fetched lost_at_stop".split()
    sums = {}
    if Path(path).exists():
        for line in Path(path).read_text(encoding="ascii").splitlines():
            row = dict(zip(names, map(int, line.split("\t"))))
            sums[(row["capture"], row["nc_idx"])] = row
    return sums


def read_events(path):
    """The events of workers in an export in the `events` format, without the certificate that precedes them and
    without the samples of hosts."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if "event" in row and not row.get("host"):
                yield row


def key_of(event):
    """What makes an event of one core: its number starts again with every trace, its time does not."""
    return (event["nc_local_id"], event["event_type"], event["phase"], event["timestamp_ns"], event["tracking_id"])


def read_store(path):
    """Events by (instance, pid, nc_idx) as counters of keys, and the ranks seen."""
    events = collections.defaultdict(collections.Counter)
    ranks = collections.defaultdict(set)
    for row in read_events(path):
        core = (row["instance_id"], row["pid"], row["nc_idx"])
        events[core][key_of(row["event"])] += 1
        ranks[core].add(row["worker_gid"])
    return events, ranks


def compare(workers, events_path, traces=None, selects=lambda row: True, killed=(), check_ranks=True):
    """Compares the capture in `events_path` with the workers' accounts.

    `traces` names the runtime's traces of these workers that belong to the capture, counted from 1 in each process
    (default: all). `selects` returns whether an export's filter lets a row of the truth through: a capture that
    was filtered needs none, because the runtime then never recorded the rest. Of `killed` workers the last events may
    be missing and the truth itself may lack them.
    """
    stored, ranks = read_store(events_path)
    result = Comparison(stored=sum(sum(counter.values()) for counter in stored.values()))
    for worker in workers:
        truth = collections.defaultdict(dict)  # (trace, nc_idx) -> key -> row
        for row in read_truth(worker.truth):
            if traces is None or row["capture"] in traces:
                truth[(row["capture"], row["nc_idx"])][key_of(row)] = row
        sums = read_capture_log(worker.capture_log)
        for (trace, nc_idx), rows in truth.items():
            core = (worker.instance_id, worker.reported_pid, nc_idx)
            _compare_core(result, core, rows, stored.get(core, collections.Counter()), sums.get((trace, nc_idx)),
                          selects, worker in killed)
            if check_ranks and core in ranks:
                expected = {row["rank"] for row in rows.values()}
                if ranks[core] != expected:
                    result.wrong_rank += sum(stored[core].values())
                    result.differ("wrong rank", f"{core} is {ranks[core]}, not {expected}")
    for core, left in stored.items():
        for key, count in left.items():
            if count > 0:
                result.extra += count
                result.differ("not expected", f"{core} {key}")
    return result


def _compare_core(result, core, rows, stored, sums, selects, killed):
    """One core in one trace; what is found is taken out of `stored`."""
    found = {key for key in rows if stored.get(key, 0) > 0}
    if found:
        result.cores.add(core)
    for key in found:
        if stored[key] > 1:
            result.twice += stored[key] - 1
            result.differ("twice", f"{core} {key}")
        stored[key] = 0
    last = max((key[0] for key in found), default=-1)
    missing = sorted(key for key in rows if key not in found and key[0] <= last and selects(rows[key]))
    tail = sorted(key for key in rows if key[0] > last and selects(rows[key]))
    if killed and stored:
        # The truth is written at the end of an execution: what was drained of the last one is not in it.
        newest = max(key[0] for key in rows)
        for key in [key for key in stored if stored[key] == 1 and key[0] > newest]:
            stored[key] = 0
    excused = len(tail) if killed else min(len(tail), sums["lost_at_stop"] if sums else 0)
    result.after_end += excused
    missing += tail[:len(tail) - excused]
    result.missing += len(missing)
    result.expected += len(found) + len(missing)
    if missing:
        result.differ("missing", f"{core} {missing[0]}, {len(missing)} in all")
