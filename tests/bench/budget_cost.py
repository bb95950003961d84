#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording a worker costs without a budget, and with one: a real aggregator, agent and tap, and the simulated
runtime at a high rate.

    tests/bench/budget_cost.py build/release [--budget 1] [--rate 60] [--mix graph] [--seconds 15]

Prints figures and asserts nothing. "counted" is what the agent holds against the budget; "used" is the processor time
of the tap's thread and of the agent's process, from /proc, as a check: it has the spool and the network in it.
"""

import argparse
import json
import os
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from fleet import Fleet  # noqa: E402

INSTANCE = "i-0001"


def gauge(port, name):
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    values = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + "{")]
    return values[0] if values else None


def used_ns(agent_pid, worker_pid):
    """Processor time of the agent's process and of the tap's thread."""
    total = 0
    for pid, wanted in ((agent_pid, None), (worker_pid, "neurontrace")):
        for task in os.listdir(f"/proc/{pid}/task"):
            base = f"/proc/{pid}/task/{task}"
            with open(f"{base}/comm", encoding="ascii") as comm:
                if wanted is not None and comm.read().strip() != wanted:
                    continue
            with open(f"{base}/schedstat", encoding="ascii") as schedstat:
                total += int(schedstat.read().split()[0])
    return total


def watch(fleet, port, worker, seconds, *options):
    """Records for so long and gives a row for each second: counted and used ppm, bytes/s, level."""
    capture_id = fleet.cli("capture", "start", "--all-events", *options).stdout.strip()
    agent = fleet.agents[INSTANCE]
    rows = []
    begin, before, then = time.monotonic(), used_ns(agent.pid, worker.pid), time.monotonic()
    for second in range(1, seconds + 1):
        time.sleep(max(0.0, begin + second - time.monotonic()))  # tidy: allow(sleep) the time that is measured
        now, used = time.monotonic(), used_ns(agent.pid, worker.pid)
        rows.append((gauge(port, "neurontrace_agent_worker_core_ppm"), (used - before) / (now - then) / 1e3,
                     gauge(port, "neurontrace_agent_worker_bytes_per_second"),
                     gauge(port, "neurontrace_agent_worker_fidelity_level")))
        before, then = used, now
    fleet.cli("capture", "stop", capture_id, codes=(0, 3))
    return rows, fleet.show_capture(capture_id)


def table(title, rows):
    print(f"\n{title}\n{'s':>4} {'counted':>9} {'used':>9} {'KB/s':>8} level")
    for second, (counted, used, rate, level) in enumerate(rows, 1):
        print(f"{second:4} {(counted or 0) / 1e4:8.2f}% {used / 1e4:8.2f}% {(rate or 0) / 1e3:8.0f} "
              f"{'-' if level is None else int(level)}")


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--budget", type=float, default=1.0, help="percent of a processor")
    parser.add_argument("--rate", type=float, default=60, help="executions a second")
    parser.add_argument("--mix", default="eager")
    parser.add_argument("--seconds", type=int, default=15)
    options = parser.parse_args()
    with Fleet(options.build) as fleet:
        fleet.start_aggregator()
        agent = fleet.start_agent(INSTANCE)
        port = int(agent.wait_for_line("health on port").rsplit(" ", 1)[1])
        worker = fleet.start_worker(INSTANCE, "--cores", 1, "--rank-start", 0, "--world-size", 1, "--mix", options.mix,
                                    "--executions-per-second", options.rate)
        fleet.wait_for_workers(1)
        print(f"load {os.getloadavg()[0]:.1f}; {options.mix} at {options.rate:g} executions/s")
        free, _ = watch(fleet, port, worker, options.seconds)
        table("without a budget", free)
        kept, capture = watch(fleet, port, worker, options.seconds, "--budget-core", f"{options.budget:g}%")
        table(f"with a budget of {options.budget:g} %", kept)
        settled = [counted or 0 for counted, *_ in kept[6:]]
        print(f"\nmedian of the seconds: {median([c or 0 for c, *_ in free]) / 1e4:.2f} % without, from the sixth second "
              f"on {median(settled) / 1e4:.2f} % (least {min(settled) / 1e4:.2f}, greatest {max(settled) / 1e4:.2f}) with "
              f"a budget of {options.budget:g} %")
        print(json.dumps(capture["certificate"].get("notes", []), indent=1))
        print(capture["certificate"]["verdict"])


if __name__ == "__main__":
    main()
