# SPDX-License-Identifier: Apache-2.0
"""A job of real JAX on the CPU, whose process also has the simulated runtime, and the profiler's server that JAX offers: see
training_program.py. Its steps are JAX's StepTraceAnnotation."""

import tempfile

import jax
import jax.numpy as jnp
from training_program import option_parser, train


def main():
    parser = option_parser()
    parser.add_argument("--port", type=int, help="port of the profiler's server (default: none)")
    options = parser.parse_args()
    compiled = jax.jit(lambda x: (x @ x).sum())
    batch = jnp.ones((256, 256))
    compiled(batch).block_until_ready()
    if options.port is not None:
        jax.profiler.start_server(options.port)

    def step(number, runtime):
        with jax.profiler.StepTraceAnnotation("train", step_num=number), runtime.execution():
            compiled(batch).block_until_ready()

    with tempfile.TemporaryDirectory() as own_traces:
        train(options, step, lambda: jax.profiler.trace(own_traces))


if __name__ == "__main__":
    main()
