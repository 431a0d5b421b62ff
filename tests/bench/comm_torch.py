#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""comm_torch.py gloo|deepspeed RANKS FILE SCALE BYTES...: time an all-reduce for comm.c.

gloo is that of torch. deepspeed is shm_comm of the checkout that DEEPSPEED names, compiled with the
arguments of its own builder into DEEPSPEED_BUILD; what it leaves in /dev/shm is removed.

Print "version V", then a line "BYTES NANOSECONDS" for each size, the median of several calls. Each
call has other input, and one element of its result is checked. Small calls are timed in batches,
less the time of batches that only write the input. FILE is where the ranks meet. Print
"missing REASON" if an implementation cannot be used.
"""
import contextlib
import os
import statistics
import sys
import time

from extension import compile_extension

SMALL = 4096
BATCH = 20
MASTER = ("127.0.0.1", str(os.getpid()))  # make the names of DeepSpeed's segments


def batch(distributed, data, call, calls):
    """Return nanoseconds of a call: each is given other input."""
    distributed.barrier()
    start = time.perf_counter_ns()
    for number in range(calls):
        data.fill_(number)
        call(data)
    return (time.perf_counter_ns() - start) / calls


def measure_small(torch, distributed, call, size, scale, count):
    data = torch.empty(count, dtype=torch.float32)
    calls = max(2, BATCH * 1000 // scale)
    times = []
    for _ in range(7):
        times.append(batch(distributed, data, call, calls))
        assert data[count - 1] == size * (calls - 1), (data[count - 1], calls)
        times[-1] -= batch(distributed, data, lambda data: None, calls)
    return max(statistics.median(times[2:]), 1)


def measure_large(torch, distributed, call, rank, size, scale, count):
    base = torch.arange(count, dtype=torch.float32) % 1021
    times = []
    calls = max(5, min(2000 // scale, (96 << 20) // (4 * count) // scale))
    for number in range(calls + 2):
        data = base + (number + rank)
        distributed.barrier()
        start = time.perf_counter_ns()
        call(data)
        times.append(time.perf_counter_ns() - start)
        place = number * 7919 % count
        wanted = size * (place % 1021 + number) + size * (size - 1) // 2
        assert data[place] == wanted, (data[place], wanted)
    return statistics.median(times[2:])  # the first calls prepare


def run(torch, distributed, prepare, rank, size, path, scale, sizes):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=size)
    call = prepare(rank, size)
    for count in (bytes_ // 4 for bytes_ in sizes):
        if 4 * count <= SMALL:
            figure = measure_small(torch, distributed, call, size, scale, count)
        else:
            figure = measure_large(torch, distributed, call, rank, size, scale, count)
        if rank == 0:
            print(4 * count, "%.1f" % figure, flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


def load_gloo():
    from torch import distributed
    if not distributed.is_gloo_available():
        raise ImportError("torch has no gloo")
    return lambda rank, size: distributed.all_reduce


def load_deepspeed():
    import torch
    checkout = os.path.join(os.path.abspath(os.environ["DEEPSPEED"]), "csrc/cpu")
    module = compile_extension(
        "shm_comm", os.path.abspath(os.environ["DEEPSPEED_BUILD"]),
        [os.path.join(checkout, "comm", name) for name in ("shm_interface.cpp", "shm.cpp")],
        [os.path.join(checkout, "includes")], ["-O2", "-fopenmp"], ["-fopenmp"])

    def prepare(rank, size):
        os.environ.update(LOCAL_SIZE=str(size), MASTER_ADDR=MASTER[0], MASTER_PORT=MASTER[1],
                          OMP_NUM_THREADS="1")
        module.initialize(size, rank)
        return torch.ops.deepspeed.inference_all_reduce_
    return prepare


def remove_segments(size):
    """Remove what DeepSpeed's ranks leave."""
    for rank in range(size):
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/dev/shm/deepspeed_allreduce_buffer_%d_%s_%s_%d" % (
                os.getuid(), *MASTER, rank))


def main():
    name, size, scale = sys.argv[1], int(sys.argv[2]), int(sys.argv[4])
    path = os.path.abspath(sys.argv[3])
    try:
        import torch
        from torch import distributed
        prepare = {"gloo": load_gloo, "deepspeed": load_deepspeed}[name]()
    except Exception as error:  # an installation and a compiler can fail in many ways
        print("missing", " ".join(str(error).split())[:180] or type(error).__name__)
        return
    print("version", torch.__version__, flush=True)
    if os.path.exists(path):
        os.unlink(path)  # gloo wants to create it
    if name == "deepspeed":
        remove_segments(size)
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            run(torch, distributed, prepare, rank, size, path, scale, list(map(int, sys.argv[5:])))
            os._exit(0)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    if name == "deepspeed":
        remove_segments(size)
    sys.exit(1 if failed else 0)


main()
