# SPDX-License-Identifier: Apache-2.0
"""Compares what simulated workers say they recorded with what a capture holds, event by event."""

import collections
import csv
import json
from dataclasses import dataclass


@dataclass
class Comparison:
    expected: int = 0
    stored: int = 0
    missing: int = 0
    extra: int = 0
    twice: int = 0
    first_difference: str = ""

    def ok(self):
        return self.expected > 0 and not (self.missing or self.extra or self.twice)


def read_truth(paths, capture=None):
    """Every event that entered a ring, as (rank, nc_local_id, type, phase, timestamp); `capture` picks one of the
    simulated runtime's own captures, counted from 1."""
    events = collections.Counter()
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if capture is None or int(row["capture"]) == capture:
                    events[(int(row["rank"]), int(row["nc_local_id"]), row["event_type"], row["phase"],
                            int(row["timestamp_ns"]))] += 1
    return events


def read_store(path):
    """The same of an export in the `events` format; the rank is the binding of the stream."""
    events = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            event = row["event"]
            events[(row["worker_gid"], event["nc_local_id"], event["event_type"], event["phase"],
                    event["timestamp_ns"])] += 1
    return events


def compare_with_store(truth_paths, events_path, capture=None):
    truth = read_truth(truth_paths, capture)
    stored = read_store(events_path)
    missing = truth - stored
    extra = stored - truth
    twice = sum(count - 1 for key, count in stored.items() if count > 1 and key in truth)
    result = Comparison(expected=sum(truth.values()), stored=sum(stored.values()),
                        missing=sum(missing.values()),
                        extra=sum(count for key, count in extra.items() if key not in truth),
                        twice=twice)
    for kind, difference in (("missing", missing), ("not expected", extra)):
        if difference and not result.first_difference:
            result.first_difference = f"{kind}: {min(difference)}"
    return result
