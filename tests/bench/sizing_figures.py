#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures that docs/operator/sizing.md and tools/size_fleet.py count with: a real aggregator and agent, and a simulated worker at
several rates.

    tests/bench/sizing_figures.py build/release [--rates 0,100,1000,10000] [--cores 4] [--seconds 20]

Prints a row for each rate (events a second of a core; 0: nothing is recorded) and asserts nothing. Processor time is from /proc,
resident memory the highest since the daemon started, bytes are those of the daemons' own metrics.
"""

import argparse
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from fleet import Fleet  # noqa: E402

INSTANCE = "i-0001"
TICKS = os.sysconf("SC_CLK_TCK")


def counters(process):
    """{name: the sum over its labels}"""
    sums = {}
    for name, value in re.findall(r"^neurontrace_(\w+)(?:\{.*\})? (\S+)$", process.ask("/metrics")[1], re.MULTILINE):
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def written_bytes(pid):
    with open(f"/proc/{pid}/io", encoding="ascii") as io:
        return int(re.search(r"^write_bytes: (\d+)$", io.read(), re.MULTILINE).group(1))


def highest_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read(), re.MULTILINE).group(1)) / 1024


def look(agent, aggregator):
    """Everything that is measured, at one moment."""
    seen = counters(agent)
    seen["moment"] = time.monotonic()
    for name, process in (("agent", agent), ("aggregator", aggregator)):
        seen[f"{name}_cpu"], seen[f"{name}_written"] = cpu_s(process.pid), written_bytes(process.pid)
    return seen


def measure(build, rate, cores, seconds):
    """One row, of a fleet of its own."""
    with Fleet(build) as fleet:
        aggregator = fleet.start_aggregator()
        agent = fleet.start_agent(INSTANCE, host_samples=True, process_scan=True)
        if rate:
            fleet.start_worker(INSTANCE, "--cores", cores, "--rank-start", 0, "--world-size", cores, "--mix", "graph",
                               "--events-per-second", rate)
            fleet.wait_for_workers(1)
            capture = fleet.cli("capture", "start").stdout.strip()
            fleet.wait_for_capture(capture, lambda c: int(c["events"]) > 0, "events")
        time.sleep(3)  # tidy: allow(sleep) what beginning costs is over
        before = look(agent, aggregator)
        time.sleep(seconds)  # tidy: allow(sleep) the time that is measured
        after = look(agent, aggregator)
        memory = highest_mib(agent.pid), highest_mib(aggregator.pid)
        if rate:
            fleet.cli("capture", "stop", capture, codes=(0, 3))
    grown = {name: after[name] - before.get(name, 0.0) for name in after}
    return grown, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--rates", default="0,100,1000,10000")
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    print("events/s  chunks/s  B/event  wire B/event  spool B/event  agent CPU us/s  aggregator CPU us/s  "
          "agent wrote kB/s  aggregator wrote kB/s  agent MiB  aggregator MiB")
    for rate in (float(word) for word in options.rates.split(",")):
        grown, memory = measure(options.build, rate, options.cores, options.seconds)
        took = grown["moment"]
        events = max(grown.get("agent_events_stored_total", 0.0), 1.0)
        print(f"{grown.get('agent_events_stored_total', 0) / took:8.0f} {grown['agent_chunks_total'] / took:9.1f} "
              f"{grown['agent_chunk_bytes_total'] / events:8.2f} {grown['agent_bytes_sent_total'] / events:13.2f} "
              f"{grown['agent_spool_bytes_kept_total'] / events:14.2f} {grown['agent_cpu'] / took * 1e6:15.0f} "
              f"{grown['aggregator_cpu'] / took * 1e6:20.0f} {grown['agent_written'] / took / 1e3:17.1f} "
              f"{grown['aggregator_written'] / took / 1e3:22.1f} {memory[0]:10.1f} {memory[1]:15.1f}", flush=True)


if __name__ == "__main__":
    main()
