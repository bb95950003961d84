#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions the tap executes in a worker: while idle, while it holds the runtime's rings for a flight recorder,
and while it streams. Counted by valgrind's callgrind, thread by thread, so that no counter of the processor is needed.

    tests/bench/tap_instructions.py build/release [--seconds 5] [--rate 2000]

Prints figures and asserts nothing. Needs valgrind (Debian's package `valgrind`). The worker's own thread emits events
meanwhile, `--rate` a second as far as the simulated processor can; what it executes is the simulated runtime's.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BURSTS_A_SECOND = 20


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=int, default=2000, help="events a second, of one core")
    return parser.parse_args()


OPTIONS = parse()
BUILD = os.path.abspath(OPTIONS.build)
os.environ.update(NT_TAP_LIBRARY=f"{BUILD}/lib/libneurontrace_tap.so",
                  NT_TAP_HOST=f"{BUILD}/tests/integration/tap_host",
                  NT_FAKE_NRT_DIR=f"{BUILD}/tests/fake_nrt")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from tap_agent import Agent  # noqa: E402
from tap_worker import CAPTURE, HOST, Worker  # noqa: E402


def control(worker, option):
    done = subprocess.run(["callgrind_control", option, str(worker.pid)], capture_output=True, text=True, check=False)
    if done.returncode != 0 or "OK" not in done.stdout:
        raise AssertionError(f"callgrind_control {option}: {done.stdout}{done.stderr}")


def instructions(directory):
    """Of the newest dump, by thread."""
    dumps = {}
    for path in Path(directory).glob("out.*"):
        text = path.read_text(errors="replace")
        part, thread = re.search(r"^part: (\d+)", text, re.M), re.search(r"^thread: (\d+)", text, re.M)
        if part and thread:
            total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
            dumps.setdefault(int(part[1]), {})[int(thread[1])] = int(total[1])
    return dumps[max(dumps)]


def measure(what, begin):
    with tempfile.TemporaryDirectory() as directory:
        agent = Agent(f"{directory}/sock")
        worker = Worker(agent.path, command=["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes",
                                             f"--callgrind-out-file={directory}/out", HOST])
        worker.ask("init")
        connection = agent.accept()
        connection.wait_state("idle")
        begin(connection)
        worker.emit(0, 100)
        time.sleep(3)  # tidy: allow(sleep) memory that the beginning needed is given back meanwhile
        control(worker, "-z")
        events, started = 0, time.monotonic()
        while (elapsed := time.monotonic() - started) < OPTIONS.seconds:
            events += worker.emit(0, OPTIONS.rate // BURSTS_A_SECOND)[0]
            connection.buffer.read_pos = connection.buffer.write_pos
            time.sleep(1 / BURSTS_A_SECOND)  # tidy: allow(sleep) keeps the rate of the load
        control(worker, "-d")
        threads = instructions(directory)
        # The worker's own thread is the first; the tap's is the only other one.
        tap = sum(count for thread, count in threads.items() if thread != 1)
        print(f"{what}: {tap:,} instructions of the tap in {elapsed:.1f} s ({tap / elapsed:,.0f} a second), while "
              f"{events:,} events were recorded by {threads.get(1, 0):,} instructions of the worker's own thread", flush=True)
        worker.close()
        agent.stop()


def main():
    measure("idle", lambda connection: None)

    def hold(connection):
        connection.hold(CAPTURE)
        connection.wait_state("holding")
        connection.buffer.read()
    measure("armed flight recorder", hold)

    def stream(connection):
        connection.start(CAPTURE)
        connection.answer(2)
    measure("streaming", stream)


if __name__ == "__main__":
    main()
