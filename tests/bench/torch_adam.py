#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""torch_adam.py THREADS SIZE...: measure torch's AdamW on float32 tensors, for tests/bench/ops.c.

Print "version V", then a line "NAME SIZE THREADS FIGURE" for each combination: NAME is "foreach" or
"single", FIGURE millions of elements a second, the median of several steps. Print "missing REASON"
if torch cannot be imported.
"""
import statistics
import sys
import time


def figure(torch, foreach, size):
    parameter = torch.nn.Parameter(torch.full((size,), 0.5))
    parameter.grad = torch.full((size,), 0.25)
    optimizer = torch.optim.AdamW([parameter], lr=1e-5, foreach=foreach)
    optimizer.step()  # allocates the states
    start = time.perf_counter()
    optimizer.step()
    seconds = time.perf_counter() - start
    repeats = max(1, int(0.005 / seconds))
    rounds = 3 if seconds > 0.1 else 7
    figures = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            optimizer.step()
        figures.append(size * repeats / (time.perf_counter() - start) / 1e6)
    return statistics.median(figures)


def main():
    try:
        import torch
    except Exception as error:  # an installation can fail in many ways
        print("missing", " ".join(str(error).split()) or type(error).__name__)
        return
    print("version", torch.__version__)
    for size in map(int, sys.argv[2:]):
        for threads in range(1, int(sys.argv[1]) + 1):
            torch.set_num_threads(threads)
            for name, foreach in ("foreach", True), ("single", False):
                print(name, size, threads, "%.6g" % figure(torch, foreach, size), flush=True)


main()
