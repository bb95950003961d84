#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first view of a window and further viewports, here and in Perfetto's trace processor.

    build/release/bench/view_bench --fill 10000000:1000 --store /var/tmp/made
    tests/bench/compare_trace_processor.py --store /var/tmp/made --trace-processor ./trace_processor_shell
    tests/bench/compare_trace_processor.py --store /var/tmp/made --from 10 --to 20 --json compared.json

Ours is `neurontrace view --store`: each round starts it, then asks its API as a browser does. The peer imports the
Perfetto trace that we export of the window, in a new process each round, then answers SQL by the protocol of Perfetto's
page. "Its page" are that page's statements for each row: tables of slices at all zooms, then what a window needs. "One
query" groups slices by pixel without tables. Both show the same rows, those of --streams without derived ones. Drawing
is not measured, nor is WebAssembly, in which Perfetto's page usually runs. No aggregator may run on the store.

Prints a table and asserts nothing. The exit code is 0 when both were measured, 1 when not, 2 on wrong usage.
"""

import argparse
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from fleet import FleetError  # noqa: E402
from stored_page import StoredPage, peak_mib, seconds_of  # noqa: E402
from trace_processor_peer import PeerError, TracePeer  # noqa: E402

BUILD = Path(__file__).resolve().parents[2] / "build" / "release"
MISSING = ("no trace processor at '{}', so only ours is measured. Download Perfetto's trace_processor_shell from "
           "https://github.com/google/perfetto/releases, or build it as tests/bench/README.md says")
PIXELS = 1_600
ROWS = (("start, peer: with import, s", "start_s", 1), ("first view, ms", "first_ms", 1),
        ("from the start to the first view, s", "total_s", 1), ("viewport p50, ms", "viewport_p50_ms", 1),
        ("viewport p99, ms", "viewport_p99_ms", 1), ("peak memory, MiB", "peak_mib", 1),
        ("items of the first view", "items", 0), ("spans in the first view", "spans", 0))


def choose(options, work):
    """Decides by the capture's layout what is shown, and exports it unless there is a file."""
    page = StoredPage(options.build, options.store, options.capture, work)
    try:
        layout = page.header(page.get(f"{page.path}/layout"))
        begin, end = int(layout["begin_ns"]), int(layout["end_ns"]) + 1
        to = min(end, begin + round(options.end * 1e9)) if options.end else end
        window = (begin + round(options.begin * 1e9), to)
        streams = [stream["number"] for stream in layout["streams"]]
        shown = ",".join(map(str, streams[:options.streams]))
        chances = random.Random(1)
        viewports = []
        for _ in range(options.viewports):  # each factor of two of the length as often as any other
            length = int(1e6 * (max(window[1] - window[0], 1_000_000) / 1e6) ** chances.random())
            first = chances.randint(window[0], max(window[0], window[1] - length))
            viewports.append((first, first + length))
        header = page.header(page.spans(shown, window, PIXELS))
        rows = {row["name"] for row in header["rows"] if row["source"] != "counter"}
        plan = {"capture": page.path[1:], "window_ns": window, "streams": len(streams),
                "streams_shown": shown.count(",") + 1, "rows": sorted(rows), "cut": header["cut"]}
        trace = options.pftrace or work / "window.pftrace"
        if not options.pftrace and options.trace_processor:
            exported = shown if options.export_shown else ",".join(map(str, streams))
            plan["export_s"] = seconds_of(page.export, exported, window, trace)[1]
    finally:
        page.close()
    return plan, shown, viewports, trace


def figures(start_s, first_s, viewports_s, items, spans):
    ordered = sorted(viewports_s) or [0]
    return {"start_s": start_s, "first_ms": first_s * 1e3, "total_s": start_s + first_s, "items": items, "spans": spans,
            "viewport_p50_ms": ordered[len(ordered) // 2] * 1e3,
            "viewport_p99_ms": ordered[int(len(ordered) * 0.99)] * 1e3}


def measure_ours(options, work, plan, shown, viewports):
    page, start_s = seconds_of(StoredPage, options.build, options.store, options.capture, work)
    try:
        layout_s = seconds_of(page.get, f"{page.path}/layout")[1]
        body, first_s = seconds_of(page.spans, shown, plan["window_ns"], PIXELS)
        rows = [row for row in page.header(body)["rows"] if row["source"] != "counter"]
        times = [seconds_of(page.spans, shown, window, PIXELS)[1] for window in viewports]
    finally:
        peak = page.close()
    return {"neurontrace": {**figures(start_s, layout_s + first_s, times, sum(row["items"] for row in rows),
                                      sum(int(row["events"]) for row in rows)), "peak_mib": peak}}


def measure_peer(options, work, plan, trace, viewports):
    peer = TracePeer(options.trace_processor, trace, work / "peer.log")
    try:
        found, list_s = seconds_of(peer.tracks)
        tracks = [number for number, name in found if re.sub(r" \(lane \d+\)$", "", name) in plan["rows"]]
        if not tracks:
            raise PeerError(f"{trace} has none of the rows shown: is it of this capture?")
        spans = peer.spans_in(tracks, plan["window_ns"])
        results = {}
        # Without tables first, so that its memory has none.
        for name, make, view in (("peer, one query", lambda _: None, peer.view_by_one_query),
                                 ("peer, its page", peer.make_tables, peer.view_by_tables)):
            made_s = seconds_of(make, tracks)[1]
            items, first_s = seconds_of(view, tracks, plan["window_ns"], PIXELS)
            times = [seconds_of(view, tracks, window, PIXELS)[1] for window in viewports]
            results[name] = {**figures(peer.import_s, list_s + made_s + first_s, times, items, spans),
                             "peak_mib": peak_mib(peer.pid)}
    finally:
        peer.close()
    return results


def version_of(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return " ".join((done.stdout or done.stderr).split())


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))[1]) / 2**20
    return f"{os.cpu_count()} x {model[1] if model else platform.machine()}, {memory:.0f} GiB, {platform.release()}"


def print_table(report):
    print(f"{report['machine']}; load {report['load'][0]:.1f} to {report['load'][1]:.1f}; median of {report['rounds']}")
    print(*report["versions"], sep="; ")
    print(", ".join(f"{name} {value}" for name, value in report["plan"].items() if name != "rows"), end="\n\n")
    columns = report["medians"]
    print("| what |", " | ".join(columns), "|\n| --- |" + " --- |" * len(columns))
    for what, key, decimals in ROWS:
        print(f"| {what} |", " | ".join(f"{column[key]:,.{decimals}f}" for column in columns.values()), "|")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="directory of an aggregator's store")
    parser.add_argument("--capture", default="", help="its id or the begin of it (default: the first of the store)")
    parser.add_argument("--from", dest="begin", type=float, default=0,
                        help="begin of the window, s after the first event")
    parser.add_argument("--to", dest="end", type=float,
                        help="end of the window, s after the first event (default: the capture's)")
    parser.add_argument("--streams", type=int, default=60, help="how many streams are shown (default 60)")
    parser.add_argument("--export-shown", action="store_true", help="export only these streams: the peer's best case")
    parser.add_argument("--pftrace", type=Path, help="import this file, which was exported for the window")
    parser.add_argument("--viewports", type=int, default=50, help="random windows after the first view (default 50)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trace-processor", default="trace_processor_shell", help="Perfetto's program, or its path")
    parser.add_argument("--build", type=Path, default=BUILD, help="where neurontrace was built (default build/release)")
    parser.add_argument("--json", type=Path, help="write all figures, of each round, to this file")
    return parser.parse_args()


def main():
    options = parse()
    asked, options.trace_processor = options.trace_processor, shutil.which(options.trace_processor)
    load, rounds = [os.getloadavg()[0]], []
    with tempfile.TemporaryDirectory(prefix="compare-", dir=os.environ.get("TMPDIR", "/var/tmp")) as work:
        plan, shown, viewports, trace = choose(options, Path(work))
        for _ in range(options.rounds):  # in turns, so that what else the machine does meets both
            rounds.append(measure_ours(options, Path(work), plan, shown, viewports))
            if options.trace_processor:
                rounds[-1] |= measure_peer(options, Path(work), plan, trace, viewports)
        if options.trace_processor:
            plan["pftrace_mib"] = round(trace.stat().st_size / 2**20, 1)
    medians = {name: {key: statistics.median(each[name][key] for each in rounds) for _, key, _ in ROWS}
               for name in rounds[0]}
    programs = [options.build / "bin" / "neurontrace", *filter(None, [options.trace_processor])]
    report = {"machine": machine(), "load": [*load, os.getloadavg()[0]], "plan": plan,
              "versions": [version_of(each) for each in programs], "rounds": options.rounds,
              "medians": medians, "each_round": rounds}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print_table(report)
    if not options.trace_processor:
        print(MISSING.format(asked), file=sys.stderr)
    return 0 if options.trace_processor else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FleetError, PeerError, OSError) as failure:
        sys.exit(f"compare_trace_processor.py: {failure}")
