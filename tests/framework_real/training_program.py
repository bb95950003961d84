# SPDX-License-Identifier: Apache-2.0
"""What the jobs torch_worker.py and jax_worker.py share: options, the loop of steps, and stamps of each step.

Nothing in the jobs knows of neurontrace, as in a user's program. For each step that has ended, a line
`number begin_ns end_ns` (CLOCK_REALTIME) is written to the file of --stamps; tests compare them with what was recorded.
"""

import argparse
import contextlib
import signal
import time

from simulated_runtime import runtime_of_environment


def option_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stamps", required=True, help="file for the stamps of steps")
    parser.add_argument("--steps", type=int, help="train for this many steps (default: until SIGTERM)")
    parser.add_argument("--pause-ms", type=float, default=0, help="pause after each step")
    parser.add_argument("--own-profiler", action="store_true", help="the program profiles itself, all the time")
    return parser


def train(options, step, own_profiler):
    """Calls step(number, runtime) until the end, with the simulated runtime in this process. `own_profiler()` returns the
    context manager of --own-profiler."""
    ends = []
    signal.signal(signal.SIGTERM, lambda number, frame: ends.append(number))
    runtime = runtime_of_environment()
    with own_profiler() if options.own_profiler else contextlib.nullcontext(), \
            open(options.stamps, "w", encoding="ascii") as stamps:
        number = 0
        while not ends and (options.steps is None or number < options.steps):
            begin_ns = time.time_ns()
            step(number, runtime)
            stamps.write(f"{number} {begin_ns} {time.time_ns()}\n")
            number += 1
            if number == 1:
                print("ready", flush=True)
            time.sleep(options.pause_ms / 1000)  # tidy: allow(sleep) keeps the rate of the load
    runtime.close()
