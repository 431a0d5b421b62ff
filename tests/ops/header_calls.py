# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Call ops by ctypes, with structures written from the installed headers: header_calls.py OPS

OPS is the directory of the ops. The errors that are passed have the sizes of earlier and later
versions."""
import ctypes
import sys

OK, INVALID = 0, -1
FLOAT32 = 1


class Op(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi_major", ctypes.c_uint16),
                ("abi_minor", ctypes.c_uint16), ("name", ctypes.c_char_p),
                ("paths", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_char_p))),
                ("path", ctypes.CFUNCTYPE(ctypes.c_char_p))]


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("code", ctypes.c_int32),
                ("vendor_code", ctypes.c_int64), ("vendor_text", ctypes.c_char * 64),
                ("message", ctypes.c_char * 256)]


class Tensor(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint64), ("first_element", ctypes.c_uint64),
                ("parameter", ctypes.c_void_p), ("gradient", ctypes.c_void_p),
                ("state", ctypes.c_void_p * 2), ("copy", ctypes.c_void_p),
                ("parameter_dtype", ctypes.c_uint32), ("gradient_dtype", ctypes.c_uint32),
                ("state_dtype", ctypes.c_uint32), ("copy_dtype", ctypes.c_uint32)]


class AdamOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("tensors", ctypes.POINTER(Tensor)), ("tensor_count", ctypes.c_uint64),
                ("tensor_bytes", ctypes.c_uint32), ("threads", ctypes.c_uint32),
                ("step", ctypes.c_uint64), ("learning_rate", ctypes.c_double),
                ("weight_decay", ctypes.c_double), ("gradient_scale", ctypes.c_double),
                ("seed", ctypes.c_uint64), ("found_infinite", ctypes.POINTER(ctypes.c_uint32)),
                ("max_norm", ctypes.c_double), ("gradient_norm", ctypes.POINTER(ctypes.c_double)),
                ("gradient_sum", ctypes.c_void_p), ("beta1", ctypes.c_double),
                ("beta2", ctypes.c_double), ("epsilon", ctypes.c_double)]


class Adam(ctypes.Structure):
    _step = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(AdamOptions), ctypes.c_void_p)
    _fields_ = [("op", Op), ("step", _step), ("rollback", _step), ("sum_gradients", ctypes.c_void_p)]


passed = failed = 0


def check(good, what, detail=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED:", what, detail)


def load(directory, name, table):
    library = ctypes.CDLL("%s/%s.so" % (directory, name))
    library.ds_accel_op_entry_v1.restype = ctypes.POINTER(table)
    op = library.ds_accel_op_entry_v1().contents
    check(op.op.abi_major == 1 and op.op.name.decode() == name, "the table's head", op.op.name)
    check(op.op.struct_size >= ctypes.sizeof(table), "the table's size", op.op.struct_size)
    return op


def make_options(values, gradients, states):
    tensor = Tensor(count=len(values), parameter=ctypes.addressof(values),
                    gradient=ctypes.addressof(gradients), parameter_dtype=FLOAT32,
                    gradient_dtype=FLOAT32, state_dtype=FLOAT32)
    tensor.state[0], tensor.state[1] = (ctypes.addressof(state) for state in states)
    return AdamOptions(struct_size=ctypes.sizeof(AdamOptions), tensors=ctypes.pointer(tensor),
                       tensor_count=1, tensor_bytes=ctypes.sizeof(Tensor), step=1,
                       learning_rate=0.5, gradient_scale=1, beta1=0.9, beta2=0.999)


def check_step(adam):
    floats = ctypes.c_float * 3
    values, gradients, states = floats(1, 2, 3), floats(1, -1, 0), (floats(), floats())
    options = make_options(values, gradients, states)
    norm = ctypes.c_double()
    options.gradient_norm = ctypes.pointer(norm)
    error = Error(struct_size=ctypes.sizeof(Error), code=77)
    status = adam.step(ctypes.byref(options), ctypes.byref(error))
    check(status == OK and error.code == 77, "a step", (status, error.message))
    # The first step moves each parameter by the learning rate; 0 / 0 is NaN without epsilon.
    check(abs(values[0] - 0.5) < 1e-6 and abs(values[1] - 2.5) < 1e-6 and values[2] != values[2],
          "its numbers", list(values))
    check(abs(norm.value - 2 ** 0.5) < 1e-15, "the norm", norm.value)


def check_error(adam, size):
    """A failing call with an error of this size."""
    options = AdamOptions(struct_size=8)
    memory = ctypes.create_string_buffer(b"Z" * 400, 400)
    error = Error.from_buffer(memory)
    error.struct_size = size
    status = adam.step(ctypes.byref(options), ctypes.byref(memory))
    end = max(4, min(size, ctypes.sizeof(Error)))
    check(status == INVALID, "a refused step", status)
    check(memory.raw[end:] == b"Z" * (400 - end), "size %d: bytes behind it were written" % size)
    check(error.struct_size == size, "size %d became %d" % (size, error.struct_size))
    check(size < 8 or error.code == INVALID, "size %d: code" % size, error.code)
    check(size < ctypes.sizeof(Error) or b"struct_size is 8" in error.message,
          "size %d: message" % size, error.message)


def main():
    adam = load(sys.argv[1], "cpu_adam", Adam)
    check_step(adam)
    for size in (0, 4, 8, 16, 80, ctypes.sizeof(Error), ctypes.sizeof(Error) + 64):
        check_error(adam, size)
    print("header_calls: %d passed, %d failed" % (passed, failed))
    return failed != 0


sys.exit(main())
