# SPDX-License-Identifier: Apache-2.0
"""A training job of real PyTorch on the CPU, whose process also has the simulated runtime: see training_program.py."""

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from training_program import option_parser, train

LAYERS, WIDTH, BATCH = 4, 64, 32


def main():
    options = option_parser().parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(BATCH, WIDTH)

    def step(number, runtime):
        with record_function(f"train step {number}"):
            with record_function(f"forward {number}"), runtime.execution():
                loss = model(batch).square().mean()
            with record_function(f"backward {number}"), runtime.execution():
                optimizer.zero_grad()
                loss.backward()
            with record_function(f"optimizer {number}"):
                optimizer.step()

    train(options, step, lambda: profile(activities=[ProfilerActivity.CPU]))


if __name__ == "__main__":
    main()
