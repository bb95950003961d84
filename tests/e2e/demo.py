#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job on one machine: three simulated instances, one capture, one merged trace, and a check of it all.

scripts/demo builds what this needs and runs it. What it plants (a straggler, clock errors, an LNC2 worker) and what it
finds again in the files is in the summary; the exit code is 0 only if every event of the simulation's own record is
in the store exactly once, and `neurontrace why` names the straggler and nobody else.
"""

import argparse
import contextlib
import dataclasses
import json
import shutil
import signal
import sys
import urllib.parse
from pathlib import Path

from alignment import align, report_barriers, seconds
from fleet import Fleet, FleetError
from ground_truth import compare
from host_clock import HostClock, TrueTime

INSTANCES = ["i-0a11ce00000000001", "i-0b0b0000000000002", "i-0ca40100000000003"]
# What the simulated hosts' clocks are wrong by, besides tens of ppm of drift.
CLOCK_OFFSETS_NS = dict(zip(INSTANCES, (0, 1_900_000_000, -1_300_000_000)))
CLOCK_DRIFTS_PPM = dict(zip(INSTANCES, (3.0, 24.0, -31.0)))
EXECUTIONS_PER_SECOND = 20
WORKERS_PER_INSTANCE = 2
CORES_PER_WORKER = 4
EXPORTED = ("system_profile.pftrace", "system_profile.json", "figures.txt")
WORLD = len(INSTANCES) * WORKERS_PER_INSTANCE * CORES_PER_WORKER
BARRIER = "enc_barrier"
STRAGGLER, STRAGGLER_US = 13, 1500


def start_fleet(fleet, *agent_options, straggler=STRAGGLER, aggregator_options=()):
    """Aggregator, agents and workers, on clocks that disagree; `straggler` None: no rank is slow."""
    slow = () if straggler is None else ("--straggler-rank", straggler, "--straggler-extra-us", STRAGGLER_US)
    fleet.true_time = TrueTime()
    now_ns = fleet.true_time.now_ns()
    for instance in INSTANCES:
        fleet.host_clocks[instance] = HostClock(
            offset_ns=CLOCK_OFFSETS_NS[instance], drift_ppm=CLOCK_DRIFTS_PPM[instance], origin_ns=now_ns)
    fleet.start_aggregator(*aggregator_options)
    for instance in INSTANCES:
        fleet.start_agent(instance, *agent_options, host_samples=True)
    start_at = fleet.true_time.now_ns() + 500_000_000
    for number in range(len(INSTANCES) * WORKERS_PER_INSTANCE):
        instance = INSTANCES[number // WORKERS_PER_INSTANCE]
        fleet.start_worker(
            instance, "--rank-start", number * CORES_PER_WORKER, "--world-size", WORLD, "--cores", CORES_PER_WORKER,
            "--lnc", 2 if number == 0 else 1, "--seed", 7, "--mix", "graph", "--executions-per-second",
            EXECUTIONS_PER_SECOND,
            "--start-at", start_at, *slow, ready=False)
    for worker in fleet.workers:
        worker.wait_for_line("ready")
    fleet.wait_for_workers(len(fleet.workers))
    fleet.wait_for_ranks(WORLD)
    fleet.wait_for_clocks(len(INSTANCES))


def explain(fleet, capture_id):
    """What `neurontrace why` answers, and of it whom it names: [{worker_gid, kind, phase, text}]."""
    answer = json.loads(fleet.cli("why", capture_id, "--json", codes=(0, 3)).stdout)
    named = [{"worker_gid": int(suspect["worker_gid"]),
              "kind": verdict["kind"].removeprefix("VERDICT_KIND_").lower().replace("_", "-"),
              "phase": verdict["phase"], "text": verdict["text"]}
             for verdict in answer.get("verdicts", []) for suspect in verdict.get("suspects", [])
             if verdict["kind"] != "VERDICT_KIND_UNEVEN_ROLE"]  # of a role, and not of a rank
    return answer, named


def barrier_order(fleet, capture_id):
    """How far the ranks of barriers are from where they truly stood to each other: in what was merged, and without."""
    events = fleet.export_events(capture_id, "--event-type", BARRIER)
    alignment = align(fleet.workers, events, {BARRIER})
    report = report_barriers(alignment.barriers(1_000_000_000 // EXECUTIONS_PER_SECOND))
    return {"events_beyond_their_bound": len(alignment.beyond_bounds()), **dataclasses.asdict(report)}


def verdict_page(capture_id, answer, gid):
    """Returns the path of the page that opens at the execution of a rank that a verdict is about, above its peers;
    web/model/view_state.ts has the parameters. Without such a verdict it is that of the whole capture."""
    for number, verdict in enumerate(answer.get("verdicts", [])):
        if gid in {int(suspect["worker_gid"]) for suspect in verdict.get("suspects", [])}:
            view = {"panel": "why", "why": "all", "verdict": number}
            return f"/capture/{capture_id}?{urllib.parse.urlencode(view)}"
    return f"/capture/{capture_id}"


def summarise(capture, check, trace, clocks, insight, straggler, out):
    gids = sorted(int(s["worker_gid"]) for s in capture["streams"] if int(s["worker_gid"]) >= 0)
    answer, named = insight
    found = sorted({suspect["worker_gid"] for suspect in named})
    cores = [s for s in capture["streams"] if s["identity"]["kind"] == "STREAM_KIND_NEURON_CORE"]
    stored_bytes = sum(int(s["bytes"]) for s in cores)
    return {
        "capture_id": capture["capture_id"],
        "state": capture["state"],
        "instances": len({s["identity"]["worker"]["instance_id"] for s in capture["streams"]}),
        "workers": len(capture["workers"]),
        "cores": len(cores),
        "hosts_sampled": len({sample["instance_id"] for sample in trace["cpu_util"]}),
        "host_memory_samples": len(trace["mem_usage"]),
        "worker_gids": gids,
        "events": int(capture["events"]),
        "events_lost": int(capture["events_lost"]),
        "bytes": stored_bytes,
        "bytes_per_event": round(stored_bytes / max(1, int(capture["events"])), 2),
        "ground_truth_events": check.expected,
        "ground_truth_missing": check.missing,
        "ground_truth_extra": check.extra,
        "ground_truth_twice": check.twice,
        "ground_truth_after_the_last_fetch": check.after_end,
        "spans": len(trace["trace_event"]),
        "clocks": clocks,
        "planted_stragglers": [] if straggler is None else [straggler],
        "stragglers_found": found,
        "named": named,
        "cores_judged": int(answer.get("cores_judged", 0)),
        "refusals": len(answer.get("refusals", [])),
        "straggler_page": verdict_page(capture["capture_id"], answer, found[0] if found else None),
        "files": {name: str(out / name) for name in
                  (*EXPORTED, "own_clocks.pftrace", "summary.json")},
    }


def after_end(summary):
    count = summary["ground_truth_after_the_last_fetch"]
    return f"""
                   ({count} more came between a core's last fetch and the end of its trace)""" if count else ""


def who_is_slow(summary):
    """Whom `neurontrace why` names, with its own line."""
    planted = ", ".join(f"worker_gid {gid}" for gid in summary["planted_stragglers"]) or "nobody"
    if not summary["named"]:
        return f"nobody is named (planted: {planted}); {summary['cores_judged']} of {summary['cores']} cores were judged"
    lines = []
    for suspect in summary["named"]:
        lines.append(f"worker_gid {suspect['worker_gid']}: {suspect['kind']}, phase {suspect['phase']} "
                     f"(planted: {planted})")
        lines.append(suspect["text"])
    return "\n                   ".join(lines)


def straggler_link(summary, address):
    """Returns the address that signs in and opens at the straggler."""
    at = urllib.parse.urlsplit(address)
    path = summary["straggler_page"]
    return f"{at.scheme}://{at.netloc}{path}{'&' if '?' in path else '?'}{at.query}"


def print_page_command(arguments, capture_id, out):
    """Prints what shows the page later: the store stays."""
    programs = Path(arguments.build) / "bin"
    print(f"""
To see the timeline in a browser, run this, or the demo in a terminal without --no-view:
  {programs}/neurontrace view {capture_id} --store {out / 'run' / 'store'}""")


def serve_page(summary, address):
    """Keeps the fleet and its page until an interrupt. The last address is the one to open first."""
    slow = f"\nrank {summary['stragglers_found'][0]} is slow  {straggler_link(summary, address)}" \
        if summary["stragglers_found"] else ""
    print(f"""
The aggregator keeps running, and serves the timeline to browsers on this machine. Ctrl-C ends both.
whole capture    {address}{slow}""", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.pause()


def print_summary(summary):
    gids = summary["worker_gids"]
    clocks = summary["clocks"]
    print(f"""
Summary
  instances        {summary['instances']}, {summary['workers']} workers, {summary['cores']} cores
  worker_gids      {gids[0]} to {gids[-1]}, {len(set(gids))} of {WORLD}, each once
  events stored    {summary['events']:,} in {summary['bytes'] / 1024:,.0f} KiB \
({summary['bytes_per_event']} bytes an event)
  events lost      {summary['events_lost']:,}
  host samples     processors and memory of {summary['hosts_sampled']} hosts, once a second
  checked          {summary['ground_truth_events']:,} events of the simulation's own record: \
{summary['ground_truth_missing']} missing, {summary['ground_truth_twice']} twice, \
{summary['ground_truth_extra']} that it does not know{after_end(summary)}
  clocks, before   the ranks of a barrier are up to {seconds(clocks['raw_apart_ns'])} apart by their instances' own clocks
  clocks, merged   they line up within {seconds(clocks['aligned_apart_ns'])} of the truth, half of {clocks['barriers']} barriers within {seconds(clocks['aligned_usual_ns'])}
                   (stated bound: {seconds(clocks['bound_ns'])}; {clocks['events_beyond_their_bound']} of their events are beyond it)
  who is slow      {who_is_slow(summary)}
  files            {summary['files']['system_profile.pftrace']}
                   {summary['files']['own_clocks.pftrace']} (what it would be without)
                   {summary['files']['system_profile.json']}
                   {summary['files']['figures.txt']} (who is slow, durations, busy shares, collectives)
                   {summary['files']['summary.json']}

Open the .pftrace at https://ui.perfetto.dev (it stays on this machine: the page reads it locally).""")


def run(arguments):
    out = Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / "run", ignore_errors=True)  # of an earlier demo
    with Fleet(arguments.build, out / "run") as fleet:
        print(f"Starting an aggregator, {len(INSTANCES)} simulated instances with an agent each, "
              f"{WORKERS_PER_INSTANCE} workers with {CORES_PER_WORKER} cores on each …", flush=True)
        straggler = None if arguments.no_straggler else STRAGGLER
        start_fleet(fleet, straggler=straggler)
        print(fleet.cli("workers").stdout, flush=True)
        command = ["capture", "--duration", f"{arguments.duration:g}s", "--name", "demo"]
        print(f"$ neurontrace {' '.join(command)}", flush=True)
        print(fleet.cli(*command, codes=(0, 3)).stdout, flush=True)
        capture_id = fleet.cli_json("captures")["captures"][-1]["capture_id"]
        for worker in fleet.workers:  # a stopped worker has written its whole record
            worker.stop()
        capture = fleet.show_capture(capture_id)
        for name in EXPORTED:
            print(f"$ neurontrace export {capture_id} -o {name}", flush=True)
            print(fleet.cli("export", capture_id, "-o", out / name, codes=(0, 3)).stdout.splitlines()[0], flush=True)
        print("$ neurontrace validate --strict system_profile.pftrace", flush=True)
        print(fleet.cli("validate", "--strict", out / "system_profile.pftrace").stdout, flush=True)
        command = ["export", capture_id, "--clock", "raw", "-o"]
        fleet.cli(*command, out / "own_clocks.pftrace", codes=(0, 3))
        print(f"$ neurontrace {' '.join(command)} own_clocks.pftrace", flush=True)
        print(f"$ neurontrace clocks --capture {capture_id}", flush=True)
        print(fleet.cli("clocks", "--capture", capture_id).stdout, flush=True)
        print(f"$ neurontrace why {capture_id}", flush=True)
        print(fleet.cli("why", capture_id, codes=(0, 3)).stdout, flush=True)
        check = compare(fleet.workers, fleet.export_events(capture_id))
        with open(out / "system_profile.json", encoding="utf-8") as file:
            trace = json.load(file)
        summary = summarise(capture, check, trace, barrier_order(fleet, capture_id), explain(fleet, capture_id),
                            straggler, out)
        with open(out / "summary.json", "w", encoding="utf-8") as file:
            json.dump(summary, file, indent=2)
            file.write("\n")
        address = None if arguments.no_view else fleet.start_page(capture_id)[1]
        print_summary(summary)
        code = verdict(summary, check, capture)
        if address is None:
            print_page_command(arguments, capture_id, out)
        else:
            serve_page(summary, address)
    return code


def verdict(summary, check, capture):
    """Returns the exit code: 0 only if all that was planted was found, and nothing is missing."""
    clocks = summary["clocks"]
    true = clocks["events_beyond_their_bound"] == 0 and clocks["beyond"] == 0
    whole = check.ok() and true and summary["worker_gids"] == list(range(WORLD))
    if not whole:
        print("\nThe check failed: " + (check.first_difference or f"clocks: {clocks}"), file=sys.stderr)
    is_named = summary["stragglers_found"] == summary["planted_stragglers"]
    if not is_named:
        print(f"\nThe check failed: neurontrace why names {summary['stragglers_found']} instead of "
              f"{summary['planted_stragglers']}", file=sys.stderr)
    return 0 if whole and is_named and capture["state"] == "CAPTURE_STATE_COMPLETE" else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory with bin/ and lib/")
    parser.add_argument("--out", default="out/demo", help="output directory (default %(default)s)")
    parser.add_argument("--duration", type=float, default=5, help="seconds to capture (default 5)")
    parser.add_argument("--no-straggler", action="store_true", help="run without a slow rank: nobody is named then")
    parser.add_argument("--no-view", action="store_true", default=not sys.stdout.isatty(),
                        help="end with the summary; otherwise, in a terminal, serve the timeline to a browser until Ctrl-C")
    try:
        return run(parser.parse_args())
    except FleetError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
