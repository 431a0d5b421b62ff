# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""DLPack between the library and numpy and torch: dlpack.py LIBRARY BACKEND...

Prints "ok NAME" or "FAILED NAME" for each check, and exits 1 if a check failed. The backends'
memory must be host memory.
"""
import ctypes
import gc
import os
import sys
import warnings
import weakref
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32,
                    c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, cast,
                    py_object)

import numpy
import torch
import torch.utils.dlpack

warnings.filterwarnings("ignore", message="ComplexHalf support is experimental")
library = ctypes.CDLL(sys.argv[1])
FLOAT32, FLOAT16, BFLOAT16, FLOAT64, INT8, UINT8, INT16, INT32, INT64, BOOL = range(1, 11)
COMPLEX32, COMPLEX64, COMPLEX128 = range(15, 18)
HOST, PINNED, DEVICE = 1, 2, 3
READ_ONLY = 1
failures = 0


def check(name, good):
    global failures
    print(("ok " if good else "FAILED ") + name, flush=True)
    failures += not good


# ---- the library's functions ---------------------------------------------------------------------

class Info(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_uint32), ("place", c_uint32),
                ("flags", c_uint32), ("ndim", c_uint32), ("device_index", c_int32),
                ("element_bytes", c_uint64), ("element_count", c_uint64), ("data", c_void_p),
                ("device", c_void_p), ("storage", c_void_p), ("storage_bytes", c_uint64),
                ("shape", c_int64 * 32), ("strides", c_int64 * 32)]


class Memory(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_uint32), ("ndim", c_uint32),
                ("flags", c_uint32), ("data", c_void_p), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("deleter", c_void_p), ("user_data", c_void_p)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int), ("device_id", c_int), ("ndim", c_int),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


DELETER = CFUNCTYPE(None, c_void_p)


class DLManaged(Structure):
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


def must(status):
    if status != 0:
        library.ds_accel_last_error.restype = c_char_p
        raise RuntimeError("%d: %s" % (status, library.ds_accel_last_error().decode()))


def sizes(numbers):
    return (c_int64 * max(len(numbers), 1))(*numbers)


library.ds_accel_tensor_put.argtypes = [c_void_p]
library.ds_accel_destroy.argtypes = [c_void_p]
library.ds_accel_device_close.argtypes = [c_void_p]
library.ds_accel_tensor_info.argtypes = [c_void_p, POINTER(Info)]
library.ds_accel_tensor_from_dlpack.argtypes = [c_void_p, c_void_p, c_uint32, POINTER(c_void_p)]
library.ds_accel_tensor_to_dlpack.argtypes = [c_void_p, c_uint32, c_int64, POINTER(c_void_p)]
library.ds_accel_tensor_slice.argtypes = [c_void_p, c_uint32, c_int64, c_int64, c_int64,
                                          POINTER(c_void_p)]
library.ds_accel_tensor_transpose.argtypes = [c_void_p, c_uint32, c_uint32, POINTER(c_void_p)]
library.ds_accel_tensor_zero.argtypes = [c_void_p, c_void_p]
library.ds_accel_tensor_create.argtypes = [c_void_p, c_uint32, c_uint32, POINTER(c_int64),
                                           POINTER(c_void_p)]
library.ds_accel_tensor_create_pinned.argtypes = [c_void_p, c_uint32, c_uint32, POINTER(c_int64),
                                                  c_uint64, POINTER(c_void_p)]
library.ds_accel_tensor_create_host.argtypes = [c_uint32, c_uint32, POINTER(c_int64),
                                                POINTER(c_void_p)]
library.ds_accel_tensor_from_memory.argtypes = [c_void_p, POINTER(Memory), POINTER(c_void_p)]
library.ds_accel_tensor_copy.argtypes = [c_void_p, c_void_p, c_void_p]
library.ds_accel_device_synchronize.argtypes = [c_void_p]
library.ds_accel_create.argtypes = [c_void_p, POINTER(c_void_p)]
library.ds_accel_detect.argtypes = [c_void_p]
library.ds_accel_device_open.argtypes = [c_void_p, c_uint32, POINTER(c_void_p)]
api = ctypes.pythonapi
api.PyCapsule_New.restype = py_object
api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
api.PyCapsule_GetPointer.restype = c_void_p
api.PyCapsule_GetPointer.argtypes = [py_object, c_char_p]
api.PyCapsule_SetName.argtypes = [py_object, c_char_p]
api.PyCapsule_IsValid.argtypes = [py_object, c_char_p]
# The destructor receives a dying capsule, which must not become a Python object again: these
# functions take its address.
raw = ctypes.PyDLL(None)
raw.PyCapsule_IsValid.argtypes = [c_void_p, c_char_p]
raw.PyCapsule_GetPointer.argtypes = [c_void_p, c_char_p]
raw.PyCapsule_GetPointer.restype = c_void_p
ended = []


@DELETER
def end_capsule(capsule):
    """Release the tensor of an unconsumed capsule, as the protocol requires."""
    if raw.PyCapsule_IsValid(capsule, b"dltensor"):
        managed = raw.PyCapsule_GetPointer(capsule, b"dltensor")
        ended.append(managed)
        DELETER(cast(managed, POINTER(DLManaged)).contents.deleter)(managed)


class Tensor:
    """A tensor of the library, with the two methods that consumers call."""

    def __init__(self, handle):
        self.handle = handle
        self.keeps = False
        self.kept = None

    @classmethod
    def create(cls, dtype, shape, place=DEVICE):
        handle = c_void_p()
        if place == DEVICE:
            must(library.ds_accel_tensor_create(device, dtype, len(shape), sizes(shape),
                                                byref(handle)))
        elif place == PINNED:
            must(library.ds_accel_tensor_create_pinned(device, dtype, len(shape), sizes(shape), 1,
                                                       byref(handle)))
        else:
            must(library.ds_accel_tensor_create_host(dtype, len(shape), sizes(shape),
                                                     byref(handle)))
        return cls(handle)

    @classmethod
    def take(cls, producer, give=None):
        """Consume the capsule of an object."""
        capsule = give(producer) if give else producer.__dlpack__()
        handle = c_void_p()
        if not api.PyCapsule_IsValid(capsule, b"dltensor"):
            raise ValueError("this capsule was used")
        managed = api.PyCapsule_GetPointer(capsule, b"dltensor")
        must(library.ds_accel_tensor_from_dlpack(context, managed, 0, byref(handle)))
        api.PyCapsule_SetName(capsule, b"used_dltensor")
        return cls(handle)

    def info(self):
        info = Info(struct_size=ctypes.sizeof(Info))
        must(library.ds_accel_tensor_info(self.handle, byref(info)))
        return info

    def put(self):
        library.ds_accel_tensor_put(self.handle)

    def managed(self, flags=0):
        managed = c_void_p()
        must(library.ds_accel_tensor_to_dlpack(self.handle, flags, 0, byref(managed)))
        return managed.value

    def __dlpack__(self, stream=None):
        capsule = api.PyCapsule_New(self.managed(), b"dltensor", cast(end_capsule, c_void_p))
        if self.keeps:
            self.kept = capsule
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


kept = []  # callbacks that the library may still call


def counted(dtype, shape, place=DEVICE):
    """A tensor on another tensor's memory, and a list that grows with each release of it."""
    owner = Tensor.create(dtype, shape, place)
    releases = []

    @DELETER
    def release(_):
        releases.append(owner)
        owner.put()

    kept.append(release)
    memory = Memory(struct_size=ctypes.sizeof(Memory), dtype=dtype, ndim=len(shape),
                    data=owner.info().data, shape=sizes(shape), deleter=cast(release, c_void_p))
    handle = c_void_p()
    must(library.ds_accel_tensor_from_memory(None if place == HOST else device, byref(memory),
                                             byref(handle)))
    return Tensor(handle), releases


context = c_void_p()
device = c_void_p()


def start(backend):
    global context, device
    context = c_void_p()
    device = c_void_p()
    os.environ["DS_ACCELERATOR"] = backend
    must(library.ds_accel_create(None, byref(context)))
    must(library.ds_accel_detect(context))
    must(library.ds_accel_device_open(context, 0, byref(device)))


numpy_dtypes = {FLOAT32: "f4", FLOAT16: "f2", FLOAT64: "f8", INT8: "i1", UINT8: "u1", INT16: "i2",
                INT32: "i4", INT64: "i8", COMPLEX64: "c8", COMPLEX128: "c16"}
torch_dtypes = {FLOAT32: torch.float32, FLOAT16: torch.float16, FLOAT64: torch.float64,
                BFLOAT16: torch.bfloat16, INT8: torch.int8, UINT8: torch.uint8,
                INT16: torch.int16, INT32: torch.int32, INT64: torch.int64,
                COMPLEX32: torch.complex32, COMPLEX64: torch.complex64,
                COMPLEX128: torch.complex128}
PARTS = {COMPLEX32: "f2", COMPLEX64: "f4", COMPLEX128: "f8"}


def to_numpy(tensor):
    return numpy.from_dlpack(tensor)


def to_torch(tensor):
    return torch.utils.dlpack.from_dlpack(tensor.__dlpack__())


def take_writable(tensor):
    return to_torch(tensor).numpy()


consumers = {"numpy": (to_numpy, numpy_dtypes, lambda array: array.ctypes.data),
             "torch": (to_torch, torch_dtypes, lambda tensor: tensor.data_ptr())}


# ---- other libraries import our tensors ----------------------------------------------------------

def fill(tensor, count, dtype):
    """Write 0, 1, 2 ... through the address; our memory is host memory. The imaginary part of a
    complex number is half of its real part."""
    address = tensor.info().data
    if dtype in PARTS:
        bits = (numpy.arange(2 * count) // 2 / (1 + numpy.arange(2 * count) % 2)).astype(
            PARTS[dtype])
    elif dtype == BFLOAT16:
        bits = (numpy.arange(count, dtype="f4").view("u4") >> 16).astype("u2")
    else:
        bits = numpy.arange(count).astype(numpy_dtypes[dtype])
    ctypes.memmove(address, bits.ctypes.data, bits.nbytes)


def they_take_ours(name):
    take, dtypes, address_of = consumers[name]
    for place, what in ((DEVICE, "device"), (PINNED, "pinned"), (HOST, "host")):
        for dtype in dtypes:
            ours, releases = counted(dtype, (3, 4), place)
            check("counted tensor's place", ours.info().place == place)
            fill(ours, 12, dtype)
            address = ours.info().data
            theirs = take(ours)
            ours.put()
            label = "%s takes our %s dtype %d" % (name, what, dtype)
            check(label + ": address", address_of(theirs) == address)
            check(label + ": shape", tuple(theirs.shape) == (3, 4))
            check(label + ": values", [complex(x) for x in theirs.reshape(-1)] ==
                  [complex(x, x / 2 if dtype in PARTS else 0) for x in range(12)])
            check(label + ": still there", len(releases) == 0)
            del theirs
            gc.collect()
            check(label + ": given back once", len(releases) == 1)


def writes_are_seen(name):
    take, _, _ = consumers[name]
    ours = Tensor.create(FLOAT32, (2, 3))
    must(library.ds_accel_tensor_zero(ours.handle, None))
    theirs = take(ours)
    at = cast(ours.info().data, POINTER(ctypes.c_float))
    at[0] = 2.25
    check(name + ": our write is theirs", float(theirs[0, 0]) == 2.25)
    if name == "numpy" and not theirs.flags.writeable:  # numpy 1 imports every array as read-only
        theirs = take_writable(ours)
    theirs[1, 2] = 7.5
    check(name + ": their write is ours", at[5] == 7.5)
    ours.put()
    theirs[0, 1] = 1
    check(name + ": theirs after ours has gone", float(theirs[0, 1]) == 1)


def shapes_of_all_kinds(name):
    take, _, address_of = consumers[name]
    whole = Tensor.create(INT32, (4, 6))
    fill(whole, 24, INT32)
    turned = c_void_p()
    part = c_void_p()
    must(library.ds_accel_tensor_transpose(whole.handle, 0, 1, byref(turned)))
    must(library.ds_accel_tensor_slice(turned, 0, 1, 6, 2, byref(part)))
    want = numpy.arange(24).reshape(4, 6).T[1:6:2]
    theirs = take(Tensor(part))
    check(name + ": strided", numpy.array(theirs).tolist() == want.tolist())
    check(name + ": strided, same address", address_of(theirs) == whole.info().data + 4)
    for tensor in (whole.handle, turned, part):
        library.ds_accel_tensor_put(tensor)
    check(name + ": strided, after ours has gone", int(theirs[2, 3]) == 23)
    scalar = Tensor.create(FLOAT64, ())
    fill(scalar, 1, FLOAT64)
    theirs = take(scalar)
    scalar.put()
    check(name + ": no dimensions", tuple(theirs.shape) == () and float(theirs) == 0)
    empty, releases = counted(INT16, (3, 0, 2))
    theirs = take(empty)
    empty.put()
    check(name + ": empty", tuple(theirs.shape) == (3, 0, 2))
    check(name + ": empty, holds nothing", len(releases) == 1)


# ---- we import tensors of other libraries --------------------------------------------------------

def count_up(name, dtype):
    if name == "numpy":
        whole = numpy.arange(12) * (1 + 0.5j if dtype in PARTS else 1)
        return whole.astype(numpy_dtypes[dtype]).reshape(3, 4)
    whole = torch.arange(12)
    if dtype in PARTS:
        return torch.complex(whole.double(), whole.double() / 2).to(torch_dtypes[dtype]).reshape(
            3, 4)
    return whole.to(torch_dtypes[dtype]).reshape(3, 4)


def bits_of(array):
    if isinstance(array, torch.Tensor):
        if array.is_complex():
            array = torch.view_as_real(array)
        array = array.contiguous().view(torch.uint8 if array.element_size() == 1 else {
            2: torch.int16, 4: torch.int32, 8: torch.int64}[array.element_size()]).numpy()
    return numpy.ascontiguousarray(array).tobytes()


def we_take_theirs(name):
    _, dtypes, address_of = consumers[name]
    for dtype in dtypes:
        theirs = count_up(name, dtype)
        gone = weakref.ref(theirs)
        want = bits_of(theirs)
        ours = Tensor.take(theirs)
        info = ours.info()
        label = "we take dtype %d of %s" % (dtype, name)
        check(label + ": dtype", info.dtype == dtype)
        check(label + ": address", info.data == address_of(theirs))
        check(label + ": shape", list(info.shape[:2]) == [3, 4] and info.ndim == 2)
        check(label + ": values", ctypes.string_at(info.data, len(want)) == want)
        check(label + ": host memory", info.place == HOST)
        del theirs
        gc.collect()
        if name == "numpy":  # a torch.Tensor is only a view of its storage
            check(label + ": held", gone() is not None)
        check(label + ": values held", ctypes.string_at(info.data, len(want)) == want)
        ours.put()
        gc.collect()
        check(label + ": let go", gone() is None)


def storage_is_let_go():
    """torch's storage is released, too: its memory is an array with a weak reference."""
    class Watched(numpy.ndarray):
        pass

    array = numpy.zeros(1000).view(Watched)
    gone = weakref.ref(array)
    theirs = torch.from_numpy(array)
    del array
    ours = Tensor.take(theirs, torch.utils.dlpack.to_dlpack)
    del theirs
    gc.collect()
    check("torch's storage is held by our tensor", gone() is not None)
    view = c_void_p()
    must(library.ds_accel_tensor_slice(ours.handle, 0, 5, 10, 1, byref(view)))
    ours.put()
    gc.collect()
    check("torch's storage is held by our view", gone() is not None)
    library.ds_accel_tensor_put(view)
    gc.collect()
    check("torch's storage is let go", gone() is None)


def reference_counts():
    array = numpy.zeros(8)
    before = sys.getrefcount(array)
    for _ in range(100):
        Tensor.take(array).put()
    check("numpy's reference count is as it was", sys.getrefcount(array) == before)


def strides_of_theirs():
    base = numpy.arange(24, dtype="i4").reshape(4, 6)
    for label, array in (("transposed", base.T), ("every second", base[::2, 1::2]),
                         ("backwards", base[::-1, ::-2]), ("broadcast", numpy.broadcast_to(
                             base[0].copy(), (3, 6)).copy()), ("no dimensions", numpy.array(5.0)),
                         ("empty", numpy.zeros((2, 0, 3)))):
        ours = Tensor.take(array)
        dense = Tensor.create(ours.info().dtype, array.shape)
        must(library.ds_accel_tensor_copy(dense.handle, ours.handle, None))
        must(library.ds_accel_device_synchronize(device))
        check("numpy, %s: copied to the device" % label,
              ctypes.string_at(dense.info().data or 0, array.nbytes) == array.tobytes()
              if array.size else dense.info().element_count == 0)
        ours.put()
        dense.put()
    theirs = torch.arange(24).reshape(4, 6).t()[1:5:2]
    ours = Tensor.take(theirs)
    check("torch, strided: strides", list(ours.info().strides[:2]) == list(theirs.stride()))
    ours.put()


def conjugates():
    """torch only marks a tensor as conjugated; DLPack cannot express that mark."""
    theirs = torch.tensor([1 + 2j, 3 - 4j])
    try:
        Tensor.take(theirs.conj())
        check("torch does not give a noted conjugate away", False)
    except (RuntimeError, BufferError):
        check("torch does not give a noted conjugate away", True)
    ours = Tensor.take(theirs.conj().resolve_conj())
    check("a resolved one is given", ctypes.string_at(ours.info().data, 16) ==
          numpy.array([1 - 2j, 3 + 4j], "c8").tobytes())
    ours.put()


def write_to_theirs(name):
    theirs = count_up(name, FLOAT32)
    ours = Tensor.take(theirs)
    must(library.ds_accel_tensor_zero(ours.handle, None))
    check(name + ": our write is theirs at once", float(abs(theirs).sum()) == 0)
    theirs[2, 3] = 9
    check(name + ": their write is ours",
          cast(ours.info().data, POINTER(ctypes.c_float))[11] == 9)
    ours.put()


# ---- round trips, rejected exchanges, releases ---------------------------------------------------

def there_and_back(name):
    take, _, _ = consumers[name]
    ours, releases = counted(FLOAT32, (5,))
    address = ours.info().data
    theirs = take(ours)
    if name == "numpy" and not theirs.flags.writeable:
        theirs = take_writable(ours)
    again = Tensor.take(theirs)
    check(name + ": our own memory is known again", again.info().place == DEVICE)
    check(name + ": and at its address", again.info().data == address)
    ours.put()
    del theirs
    gc.collect()
    check(name + ": held by who came back", len(releases) == 0)
    again.put()
    gc.collect()
    check(name + ": released once, when all have gone", len(releases) == 1)


def used_capsules():
    ours, releases = counted(FLOAT32, (5,))
    capsule = ours.__dlpack__()
    theirs = torch.utils.dlpack.from_dlpack(capsule)
    try:
        torch.utils.dlpack.from_dlpack(capsule)
        check("torch refuses a capsule of ours that was used", False)
    except RuntimeError:
        check("torch refuses a capsule of ours that was used", True)
    capsule = torch.utils.dlpack.to_dlpack(torch.zeros(3))
    taken = Tensor.take(None, lambda _: capsule)
    try:
        Tensor.take(None, lambda _: capsule)
        check("we refuse a capsule that was used", False)
    except ValueError:
        check("we refuse a capsule that was used", True)
    taken.put()
    del capsule
    before = len(ended)
    capsule = ours.__dlpack__()
    del capsule
    check("a capsule that nobody used ends its tensor", len(ended) == before + 1)
    ours.put()
    del theirs
    gc.collect()
    check("and all of it is released once", len(releases) == 1)


def read_only():
    array = numpy.arange(4.0)
    array.setflags(write=False)
    try:
        Tensor.take(array)
        check("numpy does not give read-only arrays away without versions", False)
    except (TypeError, BufferError):
        check("numpy does not give read-only arrays away without versions", True)
    memory = Memory(struct_size=ctypes.sizeof(Memory), dtype=FLOAT64, ndim=1, flags=READ_ONLY,
                    data=array.ctypes.data, shape=sizes((4,)))
    handle = c_void_p()
    must(library.ds_accel_tensor_from_memory(None, byref(memory), byref(handle)))
    managed = c_void_p()
    check("nor do we", library.ds_accel_tensor_to_dlpack(handle, 0, 0, byref(managed)) == -3)
    must(library.ds_accel_tensor_to_dlpack(handle, 2, 0, byref(managed)))
    capsule = api.PyCapsule_New(managed, b"dltensor", cast(end_capsule, c_void_p))
    copy = torch.utils.dlpack.from_dlpack(capsule)
    copy[0] = 5
    check("but a copy of it", copy.tolist() == [5, 1, 2, 3] and array[0] == 0)
    library.ds_accel_tensor_put(handle)
    wide = numpy.zeros(3, dtype="u2")
    try:
        Tensor.take(wide)
        check("a dtype that we don't have is refused", False)
    except RuntimeError as problem:
        check("a dtype that we don't have is refused", "type code 1 with 16 bits" in str(problem))
    flags, releases = counted(BOOL, (4,))
    flags.keeps = True  # released while an exception is set, when no Python code may run
    must(library.ds_accel_tensor_zero(flags.handle, None))
    try:
        to_numpy(flags)
        check("numpy 1.24 does not know bool", numpy.__version__ >= "1.25")
    except (RuntimeError, TypeError, BufferError):
        check("numpy 1.24 does not know bool", True)
    flags.kept = None
    flags.put()
    gc.collect()
    check("what a consumer refused is released once", len(releases) == 1)
    try:
        taken = Tensor.take(torch.tensor([True, False]))
        check("torch's bool comes as bytes of 0 and 1", taken.info().dtype in (UINT8, BOOL) and
              ctypes.string_at(taken.info().data, 2) == b"\1\0")
        taken.put()
    except RuntimeError as problem:
        check("torch 1.13 does not give bool away", "Bool" in str(problem))


def deleters():
    calls = []

    @DELETER
    def deleter(user_data):
        calls.append(user_data)

    numbers = (c_double * 4)(1, 2, 3, 4)
    memory = Memory(struct_size=ctypes.sizeof(Memory), dtype=FLOAT64, ndim=1,
                    data=ctypes.addressof(numbers), shape=sizes((4,)),
                    deleter=cast(deleter, c_void_p), user_data=77)
    handle = c_void_p()
    must(library.ds_accel_tensor_from_memory(None, byref(memory), byref(handle)))
    ours = Tensor(handle)
    arrays = [to_numpy(ours), to_torch(ours), to_numpy(ours)]
    ours.put()
    arrays.append(Tensor.take(arrays[1]))
    arrays.pop().put()
    arrays.append(arrays[1][1:3])
    while arrays:
        check("no deleter while %d use it" % len(arrays), not calls)
        arrays.pop()
        gc.collect()
    check("the deleter was called once", calls == [77])


def outlives_the_context():
    """Runs last: consumers keep their memory after our context is destroyed."""
    ours = Tensor.create(FLOAT32, (1000,))
    fill(ours, 1000, FLOAT32)
    array = to_numpy(ours)
    tensor = to_torch(ours)
    ours.put()
    library.ds_accel_device_close(device)
    library.ds_accel_destroy(context)
    check("numpy still has it", float(array.sum()) == 499500)
    tensor[0] = 3
    check("and shares it with torch", array[0] == 3)
    del array
    gc.collect()
    check("torch still has it", float(tensor.sum()) == 499503)
    del tensor
    gc.collect()
    check("and the last one ends the context",
          library.ds_accel_device_synchronize(device) == -1)


for backend in sys.argv[2:]:
    start(backend)
    for consumer in consumers:
        they_take_ours(consumer)
        writes_are_seen(consumer)
        shapes_of_all_kinds(consumer)
        we_take_theirs(consumer)
        write_to_theirs(consumer)
        there_and_back(consumer)
    storage_is_let_go()
    reference_counts()
    strides_of_theirs()
    conjugates()
    used_capsules()
    read_only()
    deleters()
    outlives_the_context()
    print("end: %s with %s" % (backend, " ".join(sorted(consumers))))
sys.exit(failures != 0)
