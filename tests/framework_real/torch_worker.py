# SPDX-License-Identifier: Apache-2.0
"""A training job of real PyTorch on the CPU, whose process also has the simulated runtime.

Nothing in it knows of neurontrace: no profiler, no import, as a user's program. It keeps stamps of its own (CLOCK_REALTIME)
of each step, which tests compare with what was recorded: a line `number begin_ns end_ns` a step, written when it ends.

usage: torch_worker.py --stamps FILE [--steps N] [--pause-ms MS] [--own-profiler]

It trains until SIGTERM, or for N steps. `--own-profiler`: the program profiles itself, all the time.
"""

import argparse
import signal
import time

import torch
from simulated_runtime import runtime_of_environment
from torch.profiler import ProfilerActivity, profile, record_function

LAYERS, WIDTH, BATCH = 4, 64, 32


def train_step(number, model, optimizer, batch, runtime):
    with record_function(f"train step {number}"):
        with record_function(f"forward {number}"), runtime.execution():
            loss = model(batch).square().mean()
        with record_function(f"backward {number}"), runtime.execution():
            optimizer.zero_grad()
            loss.backward()
        with record_function(f"optimizer {number}"):
            optimizer.step()


def train(arguments, stamps, runtime, ends):
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(BATCH, WIDTH)
    number = 0
    while not ends and (arguments.steps is None or number < arguments.steps):
        begin_ns = time.time_ns()
        train_step(number, model, optimizer, batch, runtime)
        stamps.write(f"{number} {begin_ns} {time.time_ns()}\n")
        number += 1
        if number == 1:
            print("ready", flush=True)
        time.sleep(arguments.pause_ms / 1000)  # tidy: allow(sleep) keeps the rate of the load


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stamps", required=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--pause-ms", type=float, default=0)
    parser.add_argument("--own-profiler", action="store_true")
    arguments = parser.parse_args()
    ends = []
    signal.signal(signal.SIGTERM, lambda number, frame: ends.append(number))
    torch.set_num_threads(1)
    runtime = runtime_of_environment()
    own = profile(activities=[ProfilerActivity.CPU]) if arguments.own_profiler else None
    if own is not None:
        own.start()
    with open(arguments.stamps, "w", encoding="ascii") as stamps:
        train(arguments, stamps, runtime, ends)
    if own is not None:
        own.stop()
    runtime.close()


if __name__ == "__main__":
    main()
