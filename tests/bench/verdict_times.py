#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long it takes from a fault to the line in which `neurontrace why --watch` names it: a real aggregator, agents and
taps, and the simulated runtime in four processes of two ranks.

    tests/bench/verdict_times.py build/release [--trials 20] [--faults slow,quota,not-entered,inside,killed]
        [--executions-per-second 10] [--json FILE]

Each trial has a fleet of its own, in which the watch has judged all cores before the fault. Times count from

- slow: the beginning of the first execution in which rank 5 is late;
- quota: the moment from which a control group leaves a tenth of a processor to the process of ranks 4 and 5. Its work
  between executions is real, and needs four times that; that of the others is scheduled. Left out without such groups;
- not-entered: SIGSTOP of the process of ranks 4 and 5, half a step before all others wait for them;
- killed: SIGKILL of that process, at that moment;
- inside: the beginning of the execution in whose barrier all ranks wait.

Prints a table, and asserts nothing about time. The exit code is 1 if a fault was not named, or somebody else was.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from fleet import Fleet, FleetError, wait_until  # noqa: E402
from processor_share import NoProcessorShare, ProcessorShare  # noqa: E402

RANKS = 8
STRAGGLER = 5
VICTIM = 2  # the process of ranks 4 and 5
START_AHEAD_S = 4.0
SLOW_AFTER_S = 20.0   # by then the watch is on and has judged for a while
BARRIER_AHEAD_S = 3.0  # until all have read which execution they wait in
CEILING_S = 60.0
HOST_WORK_US = 20_000  # of each core and execution, where the host's work is real
QUOTA_US, QUOTA_PERIOD_US = 5_000, 50_000
# Ranks that a fault has, and kinds that name it.
FAULTS = {
    "slow": ({STRAGGLER}, ("SLOW_CORE", "SLOW_PROCESS", "SLOW_HOST", "HOST_CODE", "INPUT_STALL", "MEMORY_STALL")),
    "quota": ({4, 5}, ("SLOW_PROCESS", "SLOW_HOST", "HOST_CODE")),
    "not-entered": ({4, 5}, ("HANG_NOT_ENTERED",)),
    "inside": (set(range(RANKS)), ("HANG_INSIDE",)),
    "killed": ({4, 5}, ("DEAD_WORKER",)),
}


class Follower:
    """`why --watch`, with the time at which each of its lines was read."""

    def __init__(self, fleet):
        self._changed = threading.Condition()
        self._verdicts = []  # (time, kind, ranks)
        self._popen = subprocess.Popen(fleet.cli_command("--output", "json", "why", "--watch"), text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       env={**os.environ, "NEURONTRACE_CONFIG": ""})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._popen.stdout:
            now = time.time()
            with self._changed:
                for verdict in json.loads(line).get("verdicts", []):
                    ranks = {int(core["worker_gid"]) for core in verdict["suspects"]}
                    self._verdicts.append((now, verdict["kind"].removeprefix("VERDICT_KIND_"), ranks))
                self._changed.notify_all()

    def wait_for(self, ranks, kinds, since):
        """Seconds until the fault was named, None if it was not; and the verdicts that name somebody else."""
        def named():
            return next((at for at, kind, suspects in self._verdicts if kind in kinds and suspects == ranks), None)
        with self._changed:
            self._changed.wait_for(lambda: named() is not None, since + CEILING_S - time.time())
            others = [f"{kind} {sorted(suspects)}" for _, kind, suspects in self._verdicts if not suspects <= ranks]
            return None if named() is None else named() - since, others

    def end(self):
        self._popen.send_signal(signal.SIGINT)
        self._popen.wait(20)
        self._reader.join(20)
        self._popen.stdout.close()


class Trial:
    def __init__(self, fleet, fault, rate):
        self.fleet = fleet
        self.fault = fault
        self.period_s = 1 / rate
        self.start_s = 0.0
        self.workers = []
        self.share = ProcessorShare(QUOTA_US, QUOTA_PERIOD_US) if fault == "quota" else None

    def run(self, options):
        """Seconds, or None; and who else was named."""
        self.start_job(options)
        self.fleet.cli("watch", "on")
        wait_until(self.judges_all, "judgements of all cores", CEILING_S)
        follower = Follower(self.fleet)
        try:
            since = self.plant()
            return follower.wait_for(*FAULTS[self.fault], since)
        finally:
            follower.end()

    def end(self):
        """Takes the fault away, so that the fleet can be shut down."""
        if self.share is not None:
            self.share.close()
        if self.fault == "not-entered" and self.workers:
            self.workers[VICTIM].signal(signal.SIGCONT)

    def start_job(self, options):
        self.fleet.start_aggregator()
        names = [f"i-{i:04x}" for i in range(1, 5)]
        for name in names:
            self.fleet.start_agent(name)
        self.start_s = time.time() + START_AHEAD_S
        job = {"slow": ("--straggler-rank", STRAGGLER, "--straggler-extra-us", options.straggler_extra_us,
                        "--straggler-after", SLOW_AFTER_S),
               "quota": ("--host-work-us", HOST_WORK_US, "--meeting-file", self.fleet.dir / "meeting"),
               }.get(self.fault, ())
        self.workers = [self.fleet.start_worker(
            name, "--cores", 2, "--rank-start", 2 * i, "--world-size", RANKS, "--start-at", int(self.start_s * 1e9),
            "--mix", "graph", "--executions-per-second", 1 / self.period_s, "--wait-file", self.fleet.dir / "wait",
            *job, *(("--do-host-work",) if self.fault == "quota" and i == VICTIM else ()))
            for i, name in enumerate(names)]
        self.fleet.wait_for_workers(len(names))
        if time.time() > self.start_s:
            raise FleetError("the workers were not there at their first execution; the machine is too slow")

    def judges_all(self):
        done = self.fleet.cli("why", "--live", "--json", codes=(0, 1, 3))
        return done.returncode != 1 and int(json.loads(done.stdout).get("cores_judged", 0)) == RANKS

    def plant(self):
        """Returns when the fault was or will be there."""
        if self.fault == "slow":
            since = self.start_s + SLOW_AFTER_S
            if time.time() > since:
                raise FleetError("the watch did not judge all cores before rank 5 was late; the machine is too slow")
            return since
        if self.share is not None:
            self.share.add(self.workers[VICTIM].pid)
            return time.time()
        # Executions are counted from the first one, and begin at their times.
        execution = int((time.time() + BARRIER_AHEAD_S - self.start_s) / self.period_s)
        scratch = self.fleet.dir / "wait.new"
        scratch.write_text(str(execution))
        scratch.rename(self.fleet.dir / "wait")
        barrier_s = self.start_s + execution * self.period_s
        if self.fault == "inside":
            return barrier_s
        wait_until(lambda: time.time() >= barrier_s - self.period_s / 2, "the last execution", CEILING_S)
        since = time.time()
        if self.fault == "killed":
            self.workers[VICTIM].kill()  # and reaps it: to the agent a zombie is a process that lives
        else:
            self.workers[VICTIM].signal(signal.SIGSTOP)
        return since


def run_trial(options, fault):
    with Fleet(options.build) as fleet:
        trial = Trial(fleet, fault, options.executions_per_second)
        try:
            return trial.run(options)
        finally:
            trial.end()


def quantile(values, share):
    """The nearest value above, as a bound that so many of the trials kept."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else None


def measure(options, fault):
    seconds, missed, others = [], 0, []
    for trial in range(options.trials):
        took, named = run_trial(options, fault)
        others += named
        if took is None:
            missed += 1
        else:
            seconds.append(took)
        print(f"{fault} {trial + 1}/{options.trials}: {'not named' if took is None else f'{took:.2f} s'}"
              f"{'; also ' + ', '.join(named) if named else ''}", file=sys.stderr, flush=True)
    return {"fault": fault, "trials": options.trials, "p50_s": quantile(seconds, 0.5), "p95_s": quantile(seconds, 0.95),
            "max_s": max(seconds, default=None), "not_named": missed, "others_named": others, "seconds": seconds}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--executions-per-second", type=float, default=10)
    parser.add_argument("--straggler-extra-us", type=int, default=8000, help="how late rank 5 enters each barrier")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    faults = options.faults.split(",")
    for fault in faults:
        if fault not in FAULTS:
            parser.error(f"--faults {fault}: choose from {', '.join(FAULTS)}")
    if "quota" in faults:
        try:
            ProcessorShare(QUOTA_US, QUOTA_PERIOD_US).close()
        except NoProcessorShare as error:
            print(f"quota is left out: {error}", file=sys.stderr)
            faults.remove("quota")
    rows = [measure(options, fault) for fault in faults]
    print(f"load {os.getloadavg()[0]:.1f}; {options.executions_per_second:g} executions/s\n\n"
          "| fault | trials | p50 s | p95 s | longest s | not named | others named |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        figures = " | ".join("-" if row[name] is None else f"{row[name]:.1f}" for name in ("p50_s", "p95_s", "max_s"))
        print(f"| {row['fault']} | {row['trials']} | {figures} | {row['not_named']} | {len(row['others_named'])} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"executions_per_second": options.executions_per_second, "faults": rows}, file, indent=1)
    return 1 if any(row["not_named"] or row["others_named"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
