#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Allocate, and write snapshots of the allocator: snapshot.py LIBRARY DIRECTORY

Writes live.json, live.svg, live.text, live.pickle and live.segments, of two devices of the mock.
"""
import ctypes
import os
import sys

FORMATS = {"json": 1, "svg": 2, "pickle": 3, "text": 4, "segments": 5}


def main(library, directory):
    os.environ["DS_ACCELERATOR"] = "mock"
    api = ctypes.CDLL(library)
    api.ds_accel_get.restype = ctypes.c_void_p
    api.ds_accel_last_error.restype = ctypes.c_char_p
    context = ctypes.c_void_p(api.ds_accel_get())

    def must(status):
        if status < 0:
            raise RuntimeError(api.ds_accel_last_error().decode())

    def allocate(device, stream, size):
        pointer = ctypes.c_void_p()
        must(api.ds_accel_mem_alloc(device, stream, ctypes.c_uint64(size), ctypes.byref(pointer)))
        return pointer

    for index in range(2):
        device = ctypes.c_void_p()
        stream = ctypes.c_void_p()
        must(api.ds_accel_device_get(context, index, ctypes.byref(device)))
        must(api.ds_accel_stream_create(device, 0, 0, ctypes.byref(stream)))
        must(api.ds_accel_memory_record_history(device, 2, ctypes.c_uint64(1000)))
        blocks = [allocate(device, stream if i % 3 else None, 700 << i) for i in range(15)]
        for block in blocks[::2]:
            must(api.ds_accel_mem_free(device, None, block))
        must(api.ds_accel_mem_record_stream(device, blocks[1], None))
        must(api.ds_accel_mem_free(device, None, blocks[1]))
        allocate(device, None, 5 << 20)
    for name, number in FORMATS.items():
        data = ctypes.c_void_p()
        size = ctypes.c_size_t()
        must(api.ds_accel_memory_snapshot(context, None, number, ctypes.byref(data), ctypes.byref(size)))
        with open(os.path.join(directory, "live." + name), "wb") as file:
            file.write(ctypes.string_at(data, size.value))
        api.ds_accel_free_data(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
