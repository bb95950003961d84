# SPDX-License-Identifier: Apache-2.0
"""A job of real JAX on the CPU, whose process also has the simulated runtime, and the profiler's server that JAX offers.

As torch_worker.py; its steps are JAX's StepTraceAnnotation.

usage: jax_worker.py --stamps FILE --port PORT [--pause-ms MS]
"""

import argparse
import signal
import time

import jax
import jax.numpy as jnp
from simulated_runtime import runtime_of_environment


def train(arguments, stamps, runtime, ends):
    compiled = jax.jit(lambda x: (x @ x).sum())
    batch = jnp.ones((256, 256))
    compiled(batch).block_until_ready()
    number = 0
    while not ends:
        begin_ns = time.time_ns()
        with jax.profiler.StepTraceAnnotation("train", step_num=number), runtime.execution():
            compiled(batch).block_until_ready()
        stamps.write(f"{number} {begin_ns} {time.time_ns()}\n")
        number += 1
        if number == 1:
            print("ready", flush=True)
        time.sleep(arguments.pause_ms / 1000)  # tidy: allow(sleep) keeps the rate of the load


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stamps", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pause-ms", type=float, default=0)
    arguments = parser.parse_args()
    ends = []
    signal.signal(signal.SIGTERM, lambda number, frame: ends.append(number))
    runtime = runtime_of_environment()
    jax.profiler.start_server(arguments.port)
    with open(arguments.stamps, "w", encoding="ascii") as stamps:
        train(arguments, stamps, runtime, ends)
    runtime.close()


if __name__ == "__main__":
    main()
