#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the command to all recording, of real agents and taps: the command line, an aggregator, and as many agents as are
asked for, each a process with a simulated worker of its own, all on this machine.

    tests/bench/arming_cost.py build/release [--agents 4 16 32] [--repetitions 5]

Prints figures and asserts nothing. "all record" is from before the command's process is made until the last runtime has
begun its trace; "apart" is how far the first and the last are apart, by the machine's one clock; "off the plan" is the
furthest of them from the moment that the aggregator named, by the agents' own report. "bound" is the widest of the
agents' clocks.
"""

import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from fleet import Fleet, wait_until  # noqa: E402


def start_fleet(fleet, agents, probes):
    fleet.start_aggregator()
    names = [f"i-{number:04x}" for number in range(1, agents + 1)]
    for name in names:
        fleet.start_agent(name, "--clock-probes", probes)
    for number, name in enumerate(names):
        fleet.start_worker(name, "--cores", 1, "--rank-start", number, "--world-size", agents, "--mix", "graph",
                           "--executions-per-second", 1)
    fleet.wait_for_workers(agents, seconds=120)
    fleet.wait_for_clocks(agents, seconds=120)


def arm_and_begin(fleet, agents):
    """One capture; its milliseconds until all record, apart and off the plan."""
    asked_ns = time.time_ns()
    capture_id = fleet.cli("capture", "start", "--require", "all").stdout.strip()
    reported_ns = time.time_ns()
    time.sleep(1)  # tidy: allow(sleep) looking at it would take the processors away from it

    def recording():
        workers = fleet.show_capture(capture_id)["workers"]
        begun = [int(worker["begun_realtime_ns"]) for worker in workers]
        return workers if len(begun) == agents and all(begun) else None
    workers = wait_until(recording, "all to record", 30)
    fleet.cli("capture", "stop", capture_id, codes=(0, 3))
    begun = [int(worker["begun_realtime_ns"]) for worker in workers]
    offsets = [abs(int(worker["begin_offset_ns"])) for worker in workers]
    planned = sum(worker["begun_as_planned"] for worker in workers)
    return ((max(begun) - asked_ns) / 1e6, (max(begun) - min(begun)) / 1e6, max(offsets) / 1e6,
            (reported_ns - asked_ns) / 1e6, planned)


def widest_bound_ms(fleet):
    return max(int(clock["bound_ns"]) for clock in fleet.cli_json("clocks")["clocks"] if clock.get("aligned")) / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--agents", type=int, nargs="+", default=[4, 16, 32])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--clock-probes", default="auto", help="auto, udp or grpc, as the agent has it")
    options = parser.parse_args()
    print(f"{'agents':>6} {'all record':>11} {'apart':>9} {'off the plan':>13} {'command':>9} {'bound':>9} as planned, load")
    for agents in options.agents:
        with Fleet(options.build) as fleet:
            start_fleet(fleet, agents, options.clock_probes)
            rows = [arm_and_begin(fleet, agents) for _ in range(options.repetitions)]
            for row in rows:
                print(f"{'':6} {row[0]:8.0f} ms {row[1]:6.2f} ms {row[2]:10.2f} ms {row[3]:6.0f} ms")
            medians = [statistics.median(column) for column in zip(*rows)]
            print(f"{agents:6} {medians[0]:8.0f} ms {medians[1]:6.2f} ms {medians[2]:10.2f} ms {medians[3]:6.0f} ms "
                  f"{widest_bound_ms(fleet):6.3f} ms {min(row[4] for row in rows)} of {agents}, {os.getloadavg()[0]:.1f}",
                  flush=True)


if __name__ == "__main__":
    main()
