#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""io_deepspeed.py FILE BYTES write|read: time DeepSpeed's async_io, for tests/bench/io.c.

The ops of the checkout that DEEPSPEED names are compiled with the arguments of their own builders
into DEEPSPEED_BUILD. FILE, of BYTES bytes, is written or read from its beginning to its end, in
blocks of 1 MiB, 32 in flight, from one locked tensor of up to 256 MiB: requests of one handle run
one after the other. Print GB/s, or "missing REASON" if the ops cannot be used.
"""
import ctypes
import os
import sys
import time
import types

from extension import compile_extension

MIB = 1 << 20
REQUEST = 256 * MIB
AIO = ["py_lib/deepspeed_py_io_handle.cpp", "py_lib/deepspeed_py_aio.cpp",
       "py_lib/deepspeed_py_aio_handle.cpp", "py_lib/deepspeed_aio_thread.cpp",
       "common/deepspeed_aio_utils.cpp", "common/deepspeed_aio_common.cpp",
       "common/deepspeed_aio_types.cpp", "py_lib/deepspeed_cpu_op.cpp",
       "py_lib/deepspeed_aio_op_desc.cpp", "py_lib/deepspeed_py_copy.cpp",
       "py_lib/deepspeed_pin_tensor_client.cpp", "py_lib/py_ds_aio.cpp"]
PIN = ["page_alloc.cpp", "deepspeed_pin_tensor.cpp", "py_ds_pin_memory.cpp"]


def have_warned():
    """Before its first write, the op imports DeepSpeed's package to warn about worn disks, unless this
    attribute is there."""
    utils = types.ModuleType("deepspeed.utils")
    utils._deepspeed_nvme_write_warning_emitted = True
    sys.modules["deepspeed"] = types.ModuleType("deepspeed")
    sys.modules["deepspeed.utils"] = utils


def load():
    checkout = os.path.join(os.path.abspath(os.environ["DEEPSPEED"]), "csrc")
    build = os.path.abspath(os.environ["DEEPSPEED_BUILD"])

    def paths(place, names):
        return [os.path.join(checkout, place, name) for name in names]

    pin = compile_extension("pin_memory", os.path.join(build, "pin_memory"),
                            paths("pin_memory", PIN), paths("", ["pin_memory"]), [], [])
    ctypes.CDLL(pin.__file__, mode=ctypes.RTLD_GLOBAL)  # has symbols that async_io looks up
    return compile_extension(
        "async_io", os.path.join(build, "async_io"), paths("aio", AIO),
        paths("", ["aio/py_lib", "aio/common", "pin_memory"]),
        ["-Wall", "-O0", "-fPIC", "-Wno-reorder", "-fopenmp"], ["-laio", "-fopenmp"])


def main():
    path, size, writes = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "write"
    try:
        import torch
        module = load()
    except Exception as error:  # an installation and a compiler can fail in many ways
        print("missing", " ".join(str(error).split())[:180] or type(error).__name__)
        return
    have_warned()
    handle = module.aio_handle(block_size=MIB, queue_depth=32, single_submit=False,
                               overlap_events=True, intra_op_parallelism=1)
    data = handle.new_cpu_locked_tensor(min(size, REQUEST), torch.empty(0, dtype=torch.uint8))
    data.fill_(1)
    words = data.view(torch.int64)[:: MIB // 8]
    transfer = handle.sync_pwrite if writes else handle.sync_pread
    elapsed = 0
    for offset in range(0, size, REQUEST):
        part = data[:min(REQUEST, size - offset)]
        if writes:
            words.copy_(torch.arange(len(words)) * MIB + offset)
        start = time.perf_counter()
        transfer(part, path, offset)
        elapsed += time.perf_counter() - start
        if not writes:
            assert words[-1] != words[0] or len(words) == 1, "other blocks were read"
    print("%.6g" % (size / elapsed / 1e9))
    handle.free_cpu_locked_tensor(data)


main()
