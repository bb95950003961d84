#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole picture in one command: simulated instances whose workers are real PyTorch and JAX processes, with the simulated
runtime in each; one capture of frameworks, runtime and hardware; one trace; and the slowest operators of each rank.

scripts/demo_frameworks installs and builds what this needs, and runs it. The exit code is 0 only if every worker's framework
trace is there and nothing is lost.
"""

import argparse
import collections
import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from fleet import Fleet, FleetError  # noqa: E402
from ground_truth import read_events  # noqa: E402
from real_workers import RealJobs  # noqa: E402

INSTANCES = ["i-0a11ce00000000001", "i-0b0b0000000000002"]
WORKERS_PER_INSTANCE = 2
PAUSE_MS = 5  # so that four processes do not fill a small machine
OPERATORS_SHOWN = 5


def start(fleet, pythons):
    """Returns the number of workers. The ranks of each framework are a job of their own."""
    jobs = RealJobs(fleet, pythons)
    fleet.start_aggregator()
    for instance in INSTANCES:
        jobs.start_instance(instance)
    world = len(INSTANCES) * WORKERS_PER_INSTANCE
    for framework in pythons:
        for rank in range(world):
            jobs.start_worker(framework, INSTANCES[rank // WORKERS_PER_INSTANCE], "--pause-ms", PAUSE_MS, rank=rank,
                              world_size=world, ready=False, env={"NEURONTRACE_JOB": framework})
    for worker in jobs.workers:
        worker.wait_for_line("ready", 300)
    fleet.wait_for_workers(len(jobs.workers))
    fleet.wait_for_ranks(len(jobs.workers))
    fleet.wait_for_planning(len(INSTANCES))
    return len(jobs.workers)


def slowest_operators(fleet, capture_id):
    """{(job, rank): [(name, calls, total_ns)]} of PyTorch's operators and XLA's operations, the slowest first."""
    ranks = {(worker["identity"]["instance_id"], worker["identity"]["pid"]):
             (worker["job"], int(worker["cores"][0]["rank_evidence"][0]["worker_gid"])) for worker in fleet.list_workers()}
    totals = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for row in read_events(fleet.export_events(capture_id)):
        event = row["event"]
        is_operator = event.get("name", "").startswith("aten::") or "hlo_op" in event.get("data", {})
        if is_operator and "dur_ns" in event:
            total = totals[ranks[row["instance_id"], event["pid"]]][event["name"]]
            total[0] += 1
            total[1] += int(event["dur_ns"])
    return {rank: sorted(((name, *sums) for name, sums in its.items()), key=lambda one: -one[2])
            for rank, its in sorted(totals.items())}


def print_operators(operators):
    print(f"\n{'job':5}  {'rank':>4}  {'operator':28} {'calls':>7} {'total ms':>9}")
    for (job, rank), its in operators.items():
        for name, calls, total_ns in its[:OPERATORS_SHOWN]:
            print(f"{job:5}  {rank:>4}  {name:28} {calls:>7} {total_ns / 1e6:>9.2f}")


def run(arguments):
    out = Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / "run", ignore_errors=True)  # of an earlier demo
    pythons = dict(pair.split("=", 1) for pair in arguments.python)
    with Fleet(arguments.build, out / "run") as fleet:
        print(f"Starting an aggregator, {len(INSTANCES)} simulated instances, and real processes of "
              f"{' and '.join(pythons)} with the simulated runtime on each …", flush=True)
        count = start(fleet, pythons)
        frameworks = ",".join({"torch": "pytorch", "jax": "xla"}[name] for name in pythons)
        trace = out / "frameworks.pftrace"
        command = ["capture", f"--framework={frameworks}", "--duration", f"{arguments.duration:g}s", "-o", trace]
        print(f"$ neurontrace {' '.join(map(str, command))}", flush=True)
        done = fleet.cli(*command, check=False, seconds=300)
        print(done.stdout + done.stderr, flush=True)
        capture_id = fleet.cli_json("captures")["captures"][-1]["capture_id"]
        print(fleet.cli("validate", trace).stdout, flush=True)
        print_operators(slowest_operators(fleet, capture_id))
    print(f"\n{count} workers; open {trace} at https://ui.perfetto.dev (it stays on this machine).")
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory with bin/ and lib/")
    parser.add_argument("--python", required=True, action="append", metavar="torch|jax=FILE",
                        help="a framework and the Python that has it; may be repeated")
    parser.add_argument("--out", default="out/frameworks", help="output directory (default %(default)s)")
    parser.add_argument("--duration", type=float, default=3, help="seconds to capture (default 3)")
    try:
        return run(parser.parse_args())
    except FleetError as error:
        print(f"demo_frameworks: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
