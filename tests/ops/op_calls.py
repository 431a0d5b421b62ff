# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Call the optimizers' ops with torch's tensors. tests/ops/layout.sh prints the layout of their
structures."""
import ctypes
import os
import struct

import torch
import torch.utils.dlpack

FLOAT32, FLOAT16, BFLOAT16 = 1, 2, 3
TYPES = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}

capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Ops:
    def __init__(self, directory, layout_file):
        """directory: of the ops. layout_file: lines "STRUCT MEMBER OFFSET SIZE"."""
        self.directory = directory
        self.layouts = {}
        with open(layout_file) as lines:
            for line in lines:
                name, member, offset, size = line.split()
                self.layouts.setdefault(name, {})[member] = (int(offset), int(size))

    def size(self, name):
        return self.layouts[name]["."][1]

    def fill(self, name, memory, at, **members):
        """Set members of a structure that begins at an offset of the memory."""
        layout = self.layouts[name]
        for member, values in members.items():
            offset, size = layout[member if member in layout else "common." + member]
            values = values if isinstance(values, (list, tuple)) else [values]
            for index, value in enumerate(values):
                each = size // len(values)
                code = "<d" if isinstance(value, float) else {4: "<I", 8: "<Q"}[each]
                struct.pack_into(code, memory, at + offset + index * each, value)

    def must(self, call, *arguments):
        """Call a function whose last argument is an error; raise a RuntimeError with its message."""
        error = ctypes.create_string_buffer(self.size("ds_accel_error"))
        self.fill("ds_accel_error", error, 0, struct_size=len(error))
        status = call(*arguments, error)
        if status != 0:
            text = error.raw[self.layouts["ds_accel_error"]["message"][0]:]
            raise RuntimeError("%d: %s" % (status, text.split(b"\0")[0].decode()))

    def describe(self, memory, at, arrays):
        """Describe the tensors of one parameter: parameter, gradient, states."""
        assert all(array.is_contiguous() for array in arrays)
        self.fill("ds_accel_optimizer_tensor", memory, at, count=arrays[0].numel(),
                  parameter=arrays[0].data_ptr(), gradient=arrays[1].data_ptr(),
                  state=[array.data_ptr() for array in arrays[2:]] + [0] * (4 - len(arrays)),
                  parameter_dtype=TYPES[arrays[0].dtype], gradient_dtype=TYPES[arrays[1].dtype],
                  state_dtype=TYPES[arrays[2].dtype])

    def by_dlpack(self, from_dlpack):
        """Return a function like describe() that gives torch's DLPack tensors to from_dlpack(), the
        inline function of <ds-accel/ops/dlpack.h>."""
        def describe(memory, at, arrays):
            capsules = [torch.utils.dlpack.to_dlpack(array) for array in arrays]
            pointers = [capsule_pointer(capsule, b"dltensor") for capsule in capsules]
            tensors = ctypes.create_string_buffer(self.size("ds_accel_op_dlpack"))
            self.fill("ds_accel_op_dlpack", tensors, 0, parameter=pointers[0],
                      gradient=pointers[1], state=pointers[2:] + [0] * (4 - len(arrays)))
            self.must(from_dlpack, tensors, ctypes.byref(memory, at))
        return describe

    def load(self, name, place="", describe=None):
        """Return a function that prepares a step of the op: it returns the function that takes the
        step, which may be called again."""
        describe = describe or self.describe
        library = ctypes.CDLL(os.path.join(self.directory, place, name + ".so"))
        library.ds_accel_op_entry_v1.restype = ctypes.c_void_p
        table = library.ds_accel_op_entry_v1()
        offset = self.layouts["ds_accel_" + name]["step"][0]
        call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(
            ctypes.c_void_p.from_address(table + offset).value)
        options_name = "ds_accel_" + name + "_options"
        one = self.size("ds_accel_optimizer_tensor")

        def prepare(parameters, gradients, states, **options):
            tensors = ctypes.create_string_buffer(one * len(parameters))
            for index, parameter in enumerate(parameters):
                describe(tensors, index * one,
                         [parameter, gradients[index]] + [state[index] for state in states])
            memory = ctypes.create_string_buffer(self.size(options_name))
            self.fill(options_name, memory, 0, struct_size=len(memory),
                      tensors=ctypes.addressof(tensors), tensor_count=len(parameters),
                      tensor_bytes=one, **options)
            arguments = (parameters, gradients, states, tensors)  # must outlive the step
            return lambda: arguments and self.must(call, memory)
        return prepare


def ulp(numbers, dtype):
    """Return the ulps (units in the last place), as doubles, of numbers of this type."""
    digits, least = {torch.float32: (24, -149), torch.float16: (11, -24),
                     torch.bfloat16: (8, -133)}[dtype]
    exponents = torch.frexp(numbers.double().abs())[1]
    exponents = torch.clamp(exponents - digits, min=least)
    return torch.ldexp(torch.ones(numbers.shape, dtype=torch.float64), exponents)
