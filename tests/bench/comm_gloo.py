#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""comm_gloo.py RANKS FILE SCALE BYTES...: time the all-reduce of gloo, for tests/bench/comm.c.

Print "version V", then a line "BYTES NANOSECONDS" for each size, the median of several calls. Each
call has other input, and one element of its result is checked. FILE is where the ranks meet. Print
"missing REASON" if torch or its gloo cannot be used.
"""
import os
import statistics
import sys
import time


def measure(torch, distributed, rank, size, scale, count):
    base = torch.arange(count, dtype=torch.float32) % 1021
    times = []
    calls = max(5, min(2000 // scale, (96 << 20) // (4 * count) // scale))
    for call in range(calls + 2):
        data = base + (call + rank)
        distributed.barrier()
        start = time.perf_counter_ns()
        distributed.all_reduce(data)
        times.append(time.perf_counter_ns() - start)
        place = call * 7919 % count
        wanted = size * (place % 1021 + call) + size * (size - 1) // 2
        assert data[place] == wanted, (data[place], wanted)
    return statistics.median(times[2:])  # the first calls prepare


def run(torch, distributed, rank, size, path, scale, sizes):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=size)
    for count in (bytes_ // 4 for bytes_ in sizes):
        figure = measure(torch, distributed, rank, size, scale, count)
        if rank == 0:
            print(4 * count, "%.1f" % figure, flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


def main():
    size, path, scale = int(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
    try:
        import torch
        from torch import distributed
        if not distributed.is_gloo_available():
            raise ImportError("torch has no gloo")
    except Exception as error:  # an installation can fail in many ways
        print("missing", " ".join(str(error).split()) or type(error).__name__)
        return
    print("version", torch.__version__, flush=True)
    if os.path.exists(path):
        os.unlink(path)  # gloo wants to create it
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            run(torch, distributed, rank, size, path, scale, list(map(int, sys.argv[4:])))
            os._exit(0)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    sys.exit(1 if failed else 0)


main()
