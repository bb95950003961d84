# SPDX-License-Identifier: Apache-2.0
"""The processes that produce the events, and the figures of /proc for any process."""

import json
import os
import subprocess

from fleet import FleetError

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """Processor time of a process, its threads that ended included; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def thread_cpu_seconds(pid, name):
    """Processor time of a process's threads of that name."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        base = f"/proc/{pid}/task/{task}"
        with open(f"{base}/comm", encoding="ascii", errors="replace") as comm:
            if comm.read().strip() != name:
                continue
        with open(f"{base}/schedstat", encoding="ascii") as schedstat:
            total += int(schedstat.read().split()[0])
    return total / 1e9


def directory_bytes(path):
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.path.getsize(os.path.join(folder, name))
            except FileNotFoundError:
                pass  # a database tidies up while we look
    return total


class Producers:
    """As many processes as asked for, each with its own seed, kept from one run to the next."""

    def __init__(self, count, command, log, **options):
        self._log = open(log, "ab")
        self.processes = [
            subprocess.Popen([str(part) for part in command(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=self._log, text=True, bufsize=1, **options)
            for number in range(count)]
        for process in self.processes:
            if process.stdout.readline().strip() != "ready":
                raise FleetError(f"a producer did not become ready; see {log}")

    @property
    def pids(self):
        return [process.pid for process in self.processes]

    def begin(self, rate, seconds):
        """Starts to emit at `rate` over all; returns how many events will come."""
        share = rate / len(self.processes)
        events = int(share * seconds)
        for process in self.processes:
            process.stdin.write(f"run {events} {share}\n")
            process.stdin.flush()
        return events * len(self.processes)

    def finish(self):
        """Waits for the end of what `begin` started; the sums."""
        reports = [json.loads(process.stdout.readline()) for process in self.processes]
        return {"produced": sum(report["taken"] for report in reports),
                "emitted": sum(report["emitted"] for report in reports),
                "seconds": max(report["seconds"] for report in reports),
                "cpu_seconds": sum(report["cpu_seconds"] for report in reports)}

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self._log.close()
