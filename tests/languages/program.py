# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# A program that uses the library through its headers alone: cffi parses them, and no compiler is
# needed at run time.
# Usage: program.py HEADERS LIBRARY, where HEADERS has the declarations and constants of ds_accel.h
# and LIBRARY is libds_accel.so.
import sys

import cffi

ffi = cffi.FFI()
with open(sys.argv[1], encoding="utf-8") as headers:
    ffi.cdef(headers.read())
lib = ffi.dlopen(sys.argv[2])


def text(pointer):
    return ffi.string(pointer).decode()


def check(status):
    if status < 0:
        sys.exit(f"{text(lib.ds_accel_status_name(status))}: {text(lib.ds_accel_last_error())}")


def struct(name):
    made = ffi.new(f"struct {name} *")
    made.struct_size = ffi.sizeof(made[0])
    return made


assert lib.DS_ACCEL_OK == 0 and lib.DS_ACCEL_NOT_READY == 1 and lib.DS_ACCEL_ERR_INTERNAL == -18
assert text(lib.ds_accel_status_name(lib.DS_ACCEL_ERR_NO_MEMORY)) == "DS_ACCEL_ERR_NO_MEMORY"
assert lib.DS_ACCEL_FLAG_DMABUF == 1 << 15 and lib.DS_ACCEL_DLPACK_NO_STREAM == -1

options = struct("ds_accel_options")
options.flags = lib.DS_ACCEL_OPTION_NO_ENVIRONMENT
name = ffi.new("char[]", b"cpu")
options.accelerator = name
context = ffi.new("ds_accel_t **")
check(lib.ds_accel_create(options, context))
check(lib.ds_accel_detect(context[0]))
device = ffi.new("ds_accel_device_t **")
check(lib.ds_accel_device_open(context[0], 0, device))

# C's inline functions are called by name.
info = struct("ds_accel_device_info")
check(lib.ds_accel_device_info(device[0], info))
assert info.total_memory_bytes > 0
pointer = ffi.new("void **")
check(lib.ds_accel_mem_alloc(device[0], ffi.NULL, 4096, pointer))
stream = ffi.new("ds_accel_stream_t **")
check(lib.ds_accel_default_stream(device[0], stream))
check(lib.ds_accel_mem_set_async(stream[0], pointer[0], 42, 4096))
check(lib.ds_accel_note_access(device[0], stream[0], pointer[0], 4096, lib.DS_ACCEL_ACCESS_WRITE))
back = ffi.new("char[4096]")
check(lib.ds_accel_mem_copy_async(stream[0], back, pointer[0], 4096, lib.DS_ACCEL_COPY_DEVICE_TO_HOST))
check(lib.ds_accel_stream_synchronize(stream[0]))
assert ffi.buffer(back)[:] == bytes([42]) * 4096
check(lib.ds_accel_mem_free(device[0], ffi.NULL, pointer[0]))
assert lib.ds_accel_stream_query(ffi.NULL) == lib.DS_ACCEL_ERR_INVALID
print(text(lib.ds_accel_name(context[0])), text(lib.ds_accel_version()))

# The library also exports the two functions that plugins call.
verdict, known = struct("ds_accel_verdict"), struct("ds_accel_verdict")
verdict.struct_size = 12
known.state, known.device_count, known.reason = 1, 2, 3
lib.ds_accel_write(verdict, known, known.struct_size)
assert (verdict.struct_size, verdict.state, verdict.device_count, verdict.reason) == (12, 1, 2, 0)

lib.ds_accel_device_close(device[0])
lib.ds_accel_destroy(context[0])
