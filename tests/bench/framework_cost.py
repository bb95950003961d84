# SPDX-License-Identifier: Apache-2.0
"""What recording costs a step of real PyTorch or JAX on the CPU: tap and profiler idle, the runtime's capture alone, with
framework traces, and with stacks.

    tests/bench/framework_cost.py build/release [torch | jax]

Needs scripts/setup_frameworks. Prints medians of the program's own stamps and asserts nothing. The steps are small, so that
what an operator costs is seen: four layers of 64 with SGD, or one product of two matrices of 256.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "framework_real")]

from fleet import Fleet, wait_until  # noqa: E402
from real_workers import RealJobs  # noqa: E402

IDLE_NS = 3_000_000_000
OPTIONS = {"torch": "--framework", "jax": "--framework=xla"}


def captures(option):
    return (("runtime", ()), ("runtime and framework", (option,)),
            ("runtime and framework, with stacks", (option, "--framework-stacks")))


def lengths(steps, begin_ns, end_ns):
    """Of the steps in a window, in us; pauses between them are not counted."""
    found = sorted((step.end_ns - step.begin_ns) / 1000 for step in steps if begin_ns <= step.begin_ns and step.end_ns <= end_ns)
    return found or [float("nan")]


def print_row(what, found, idle_us):
    median = statistics.median(found)
    print(f"| {what} | {len(found)} | {median:.0f} | {median / idle_us:.2f} | {found[len(found) * 99 // 100]:.0f} |", flush=True)


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    framework = sys.argv[2] if len(sys.argv) > 2 else "torch"
    python = subprocess.run([ROOT / "scripts" / "setup_frameworks", framework, "--built"], capture_output=True, text=True,
                            check=False)
    if python.returncode != 0:
        sys.exit(f"framework_cost: {python.stderr.strip()}")
    os.environ["NEURONTRACE_CONFIG"] = ""
    with contextlib.ExitStack() as stack:
        fleet = stack.enter_context(Fleet(build))
        fleet.start_aggregator()
        jobs = RealJobs(fleet, {framework: python.stdout.strip()})
        jobs.start_instance("i-1")
        worker = jobs.start_worker(framework, "i-1")
        fleet.wait_for_workers(1)
        fleet.wait_for_planning(1)
        first_ns = wait_until(worker.newest_ns, "stamps of steps", 120)
        wait_until(lambda: worker.newest_ns() > first_ns + IDLE_NS, "idle steps", 120)
        windows = []
        for what, options in captures(OPTIONS[framework]):
            done = fleet.cli("--output", "json", "capture", "--duration", "3s", *options, codes=(0, 3))
            capture = json.loads(done.stdout)
            begin_ns = int(capture["begin"]["reference_ns"])
            windows.append((what, begin_ns, begin_ns + 3_000_000_000))
        end_ns = windows[-1][2] + 15_000_000_000  # the last file is written meanwhile
        wait_until(lambda: worker.newest_ns() > end_ns, "steps after the last capture", 120)
        worker.stop()
        steps = list(worker.steps().values())
        print("| recorded | steps | median us | to idle | p99 us |\n| --- | --- | --- | --- | --- |")
        idle = lengths(steps, windows[0][1] - IDLE_NS, windows[0][1])
        print_row("nothing, tap and profiler idle", idle, statistics.median(idle))
        for what, begin_ns, end_ns in windows:
            print_row(what, lengths(steps, begin_ns, end_ns), statistics.median(idle))
        # The profiler processes and hands over what it has recorded.
        print_row("nothing, in the 5 s after a framework trace",
                  lengths(steps, windows[1][2], windows[1][2] + 5_000_000_000), statistics.median(idle))


if __name__ == "__main__":
    main()
