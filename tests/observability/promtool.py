# SPDX-License-Identifier: Apache-2.0
"""promtool, and the page of metrics, docs/operator/metrics.md, as names, types and labels."""

import pathlib
import re
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operator" / "metrics.md"
ROW = re.compile(r"^\| `((?:neurontrace|process)_\w+)` \| (\w+) \| [^|]+ \| ([^|]+) \| (\w+) \| .+ \|$", re.MULTILINE)
THERE = ("always", "spool", "capture", "event")


class Metric(typing.NamedTuple):
    type: str
    labels: frozenset
    there: str


def documented():
    """{name: Metric} of docs/operator/metrics.md."""
    text = PAGE.read_text()
    rows = {name: Metric(kind, frozenset(re.findall(r"`(\w+)`", labels)), there)
            for name, kind, labels, there in ROW.findall(text)}
    lines = [line for line in text.splitlines() if line.startswith(("| `neurontrace_", "| `process_"))]
    if len(lines) != len(rows):  # a row that is not understood, or is there twice
        raise ValueError(f"{PAGE}: {len(lines)} rows of metrics; {len(rows)} are understood and different")
    return rows


def series_of(metrics):
    """What PromQL may name: histograms have three series each."""
    known = {}
    for name, metric in metrics.items():
        if metric.type == "histogram":
            known[f"{name}_bucket"] = metric.labels | {"le"}
            known[f"{name}_sum"] = known[f"{name}_count"] = metric.labels
        else:
            known[name] = metric.labels
    return known
