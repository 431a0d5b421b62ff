/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Tensors exchanged with other libraries by DLPack. */
#include "far.h"
#include "tensor.h"

#include <dlpack/dlpack.h>

/* ---- DLPack --------------------------------------------------------------------------------- */

/* DLManagedTensorVersioned of the DLPack specification; Debian's header is older. */
struct versioned {
    uint32_t major;
    uint32_t minor;
    void *manager_ctx;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
};

Test(core_tensor, exports_and_imports_both_structures_of_dlpack)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    struct ds_accel_tensor_info info;
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *turned;
    ds_accel_tensor_t *back;
    struct versioned *versioned;
    DLManagedTensor *plain;
    void *managed = NULL;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_BFLOAT16, 2, SHAPE(3, 5), &tensor));
    MUST(ds_accel_tensor_transpose(tensor, 0, 1, &turned));
    MUST(ds_accel_tensor_to_dlpack(turned, 0, 0, &managed));
    plain = managed;
    cr_expect_eq(plain->dl_tensor.data, info_of(tensor).data);
    cr_expect_eq(plain->dl_tensor.device.device_type, kDLCPU, "the host reaches a mock's memory");
    cr_expect_eq(plain->dl_tensor.dtype.code, kDLBfloat);
    cr_expect_eq(plain->dl_tensor.dtype.bits, 16);
    cr_expect_eq(plain->dl_tensor.dtype.lanes, 1);
    cr_expect_eq(plain->dl_tensor.ndim, 2);
    cr_expect_arr_eq(plain->dl_tensor.shape, SHAPE(5, 3), 16);
    cr_expect_arr_eq(plain->dl_tensor.strides, SHAPE(1, 5), 16);
    MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
    info = info_of(back);
    cr_expect_eq(info.place, DS_ACCEL_PLACE_DEVICE, "found to be the device's own");
    cr_expect_eq(info.device, device);
    cr_expect_eq(info.data, info_of(tensor).data);
    ds_accel_tensor_put(tensor);
    ds_accel_tensor_put(turned);
    MUST(ds_accel_tensor_zero(back, NULL));

    MUST(ds_accel_tensor_to_dlpack(back, DS_ACCEL_DLPACK_VERSIONED, -1, &managed));
    versioned = managed;
    cr_expect_eq(versioned->major, 1);
    cr_expect_eq(versioned->flags, 0);
    versioned->flags = 1; /* read-only */
    ds_accel_tensor_put(back);
    MUST(ds_accel_tensor_from_dlpack(NULL, managed, 1, &tensor));
    info = info_of(tensor);
    cr_expect_eq(info.place, DS_ACCEL_PLACE_HOST, "without a context");
    cr_expect_eq(info.flags, DS_ACCEL_TENSOR_READ_ONLY);
    EXPECT_REFUSED(ds_accel_tensor_zero(tensor, NULL), DS_ACCEL_ERR_INVALID, "read-only");
    EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed), DS_ACCEL_ERR_UNSUPPORTED,
                   "read-only");
    MUST(ds_accel_tensor_to_dlpack(tensor, DS_ACCEL_DLPACK_VERSIONED, 0, &managed));
    versioned = managed;
    cr_expect_eq(versioned->flags, 1);
    versioned->deleter(versioned);
    MUST(ds_accel_tensor_to_dlpack(tensor, DS_ACCEL_DLPACK_COPY | DS_ACCEL_DLPACK_VERSIONED, 0,
                                   &managed));
    versioned = managed;
    cr_expect_eq(versioned->flags, 2);
    cr_expect_neq(versioned->dl_tensor.data, info.data);
    MUST(ds_accel_tensor_from_dlpack(NULL, managed, 1, &back));
    cr_expect_eq(info_of(back).flags, DS_ACCEL_TENSOR_COPIED | DS_ACCEL_TENSOR_CONTIGUOUS);
    ds_accel_tensor_put(back);
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
    EXPECT_REFUSED(ds_accel_device_synchronize(device), DS_ACCEL_ERR_INVALID, "destroyed");
}

/* Elements of up to 16 bytes, with a real and an imaginary part, on each path that moves
   elements. */
Test(core_tensor, holds_complex_numbers)
{
    static const uint32_t dtypes[] = {DS_ACCEL_DTYPE_COMPLEX32, DS_ACCEL_DTYPE_COMPLEX64,
                                      DS_ACCEL_DTYPE_COMPLEX128};
    static const char *const accelerators[] = {"mock", "cpu"};
    unsigned char value[16];
    unsigned char wanted[6 * 16];
    unsigned char zero[6 * 16] = {0};

    for (size_t i = 0; i < sizeof(value); i++) {
        value[i] = (unsigned char)(i + 1);
    }
    for (size_t run = 0; run < 6; run++) {
        ds_accel_device_t *device;
        ds_accel_t *context = test_start(accelerators[run % 2], &device);
        uint32_t dtype = dtypes[run / 2];
        const size_t bytes = 4u << (run / 2);
        ds_accel_rng_t *rng = NULL;
        ds_accel_tensor_t *tensor;
        ds_accel_tensor_t *turned;
        ds_accel_tensor_t *whole;
        ds_accel_tensor_t *host;

        for (size_t i = 0; i < 6; i++) {
            memcpy(wanted + i * bytes, value, bytes);
        }
        MUST(ds_accel_tensor_create(device, dtype, 2, SHAPE(2, 3), &tensor));
        cr_expect_eq(info_of(tensor).element_bytes, bytes);
        MUST(ds_accel_tensor_fill(tensor, value, NULL));
        MUST(ds_accel_tensor_transpose(tensor, 0, 1, &turned));
        MUST(ds_accel_tensor_contiguous(turned, NULL, &whole));
        cr_expect_neq(info_of(whole).data, info_of(tensor).data);
        MUST(ds_accel_tensor_create_host(dtype, 2, SHAPE(3, 2), &host));
        MUST(ds_accel_tensor_copy(host, whole, NULL));
        MUST(ds_accel_device_synchronize(device));
        cr_expect_arr_eq(info_of(host).data, wanted, 6 * bytes);
        MUST(ds_accel_tensor_zero(turned, NULL));
        MUST(ds_accel_tensor_copy(host, turned, NULL));
        MUST(ds_accel_device_synchronize(device));
        cr_expect_arr_eq(info_of(host).data, zero, 6 * bytes);
        MUST(ds_accel_rng_create(device, 0, 0, &rng));
        EXPECT_STATUS(ds_accel_rng_uniform(rng, NULL, info_of(tensor).data, 6, dtype, 0, 1),
                      DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(ds_accel_rng_normal(rng, NULL, info_of(tensor).data, 6, dtype, 0, 1),
                      DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, info_of(tensor).data, 6, dtype),
                      DS_ACCEL_ERR_INVALID);
        ds_accel_rng_destroy(rng);
        ds_accel_tensor_put(host);
        ds_accel_tensor_put(whole);
        ds_accel_tensor_put(turned);
        ds_accel_tensor_put(tensor);
        test_finish(context, device);
    }
}

Test(core_tensor, maps_every_dtype_to_dlpack_and_back)
{
    for (uint32_t dtype = DS_ACCEL_DTYPE_FLOAT32; dtype <= DS_ACCEL_DTYPE_COMPLEX128; dtype++) {
        ds_accel_tensor_t *tensor;
        ds_accel_tensor_t *back;
        void *managed = NULL;
        bool is_new = dtype >= DS_ACCEL_DTYPE_FLOAT8_E4M3FN &&
                      dtype <= DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ;

        MUST(ds_accel_tensor_create_host(dtype, 1, SHAPE(2), &tensor));
        if (is_new) {
            EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed),
                           DS_ACCEL_ERR_UNSUPPORTED, "dtype");
        }
        MUST(
            ds_accel_tensor_to_dlpack(tensor, is_new ? DS_ACCEL_DLPACK_VERSIONED : 0, 0, &managed));
        MUST(ds_accel_tensor_from_dlpack(NULL, managed, is_new, &back));
        cr_expect_eq(info_of(back).dtype, dtype);
        cr_expect_eq(info_of(back).data, info_of(tensor).data);
        ds_accel_tensor_put(back);
        ds_accel_tensor_put(tensor);
    }
}

static int plain_deletions;

static void delete_plain(DLManagedTensor *self)
{
    (void)self;
    plain_deletions++;
}

Test(core_tensor, refuses_what_it_cannot_take_and_leaves_it_alone)
{
    static float memory[6];
    int64_t shape[] = {2, 3};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    DLManagedTensor plain = {.dl_tensor = {.data = memory,
                                           .device = {kDLCPU, 0},
                                           .ndim = 2,
                                           .dtype = {kDLFloat, 32, 1},
                                           .shape = shape,
                                           .byte_offset = 4},
                             .deleter = delete_plain};
    DLManagedTensor bad = plain;
    struct versioned future = {.major = 2};
    ds_accel_tensor_t *tensor = NULL;

    bad.dl_tensor.dtype.lanes = 4;
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_UNSUPPORTED,
                   "4 lanes");
    bad = plain;
    bad.dl_tensor.dtype = (DLDataType){kDLUInt, 32, 1};
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_UNSUPPORTED);
    bad = plain;
    bad.dl_tensor.device.device_type = kDLCUDA;
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID,
                   "accelerator in use");
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(NULL, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID,
                   "without a context");
    bad = plain;
    bad.dl_tensor.ndim = -1;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    bad.dl_tensor.ndim = 40;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    bad = plain;
    bad.dl_tensor.shape = NULL;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    bad = plain;
    bad.dl_tensor.data = NULL;
    bad.dl_tensor.byte_offset = 0;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(context, &future, 1, &tensor), DS_ACCEL_ERR_ABI,
                   "2.0");
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, NULL, 0, &tensor), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &plain, 2, &tensor), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &plain, 0, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_null(tensor);
    cr_expect_eq(plain_deletions, 0);
    MUST(ds_accel_tensor_from_dlpack(context, &plain, 0, &tensor));
    cr_expect_eq(info_of(tensor).data, memory + 1);
    cr_expect_arr_eq(info_of(tensor).strides, SHAPE(3, 1), 16);
    cr_expect_eq(info_of(tensor).place, DS_ACCEL_PLACE_HOST);
    ds_accel_tensor_put(tensor);
    cr_expect_eq(plain_deletions, 1);
    plain.deleter = NULL;
    MUST(ds_accel_tensor_from_dlpack(context, &plain, 0, &tensor));
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
}

static DLDevice exported_as(ds_accel_tensor_t *tensor)
{
    void *managed = NULL;
    DLManagedTensor *plain;
    DLDevice device;

    MUST(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed));
    plain = managed;
    device = plain->dl_tensor.device;
    plain->deleter(plain);
    return device;
}

/* The mock runs under the names of other backends. */
Test(core_tensor, tells_dlpack_which_device_it_is)
{
    static const struct {
        const char *name;
        int device_type;
        int pinned_type;
    } backends[] = {{"cuda", 2, 3}, {"rocm", 10, 11}, {"xpu", 14, 1}, {"xpu.external", 14, 1},
                    {"mps", 8, 1},  {"npu", 1, 1},    {"mock", 1, 1}};

    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        ds_accel_device_t *first;
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_tensor_t *tensor;
        ds_accel_tensor_t *back;
        DLDevice theirs;
        void *managed = NULL;

        if (strcmp(backends[i].name, "mock") != 0) {
            test_add_mock(backends[i].name);
        }
        context = test_start(backends[i].name, &first);
        MUST(ds_accel_device_open(context, 1, &device));
        MUST(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_INT8, 0, NULL, 1, &tensor));
        theirs = exported_as(tensor);
        cr_expect_eq((int)theirs.device_type, backends[i].pinned_type, "%s", backends[i].name);
        ds_accel_tensor_put(tensor);
        MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 0, NULL, &tensor));
        theirs = exported_as(tensor);
        cr_expect_eq((int)theirs.device_type, backends[i].device_type, "%s", backends[i].name);
        cr_expect_eq(theirs.device_id, backends[i].device_type == kDLCPU ? 0 : 1);
        MUST(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed));
        MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
        cr_expect_eq(info_of(back).device, device, "%s", backends[i].name);
        ds_accel_tensor_put(back);
        ds_accel_tensor_put(tensor);
        ds_accel_device_close(device);
        test_finish(context, first);
    }
}

Test(core_tensor, orders_a_consumers_stream_behind_ours)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *ours;
    ds_accel_stream_t *theirs;
    ds_accel_stream_t *standard;
    ds_accel_tensor_t *tensor;
    DLManagedTensor *plain;
    void *managed = NULL;
    uint64_t native = 0;

    /* A fill takes half a second on this mock's simulated clock. */
    setenv("DS_ACCEL_CUDA_COPY_LATENCY_NS", "500000000", 1);
    test_add_mock("cuda");
    context = test_start("cuda", &device);
    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &ours));
    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &theirs));
    MUST(ds_accel_stream_native(theirs, &native));
    MUST(ds_accel_default_stream(device, &standard));
    MUST(ds_accel_set_current_stream(ours));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(64), &tensor));
    MUST(ds_accel_tensor_zero(tensor, NULL));
    EXPECT_STATUS(ds_accel_stream_query(ours), DS_ACCEL_NOT_READY);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_NO_STREAM, &managed));
    EXPECT_STATUS(ds_accel_stream_query(theirs), DS_ACCEL_OK);
    plain = managed;
    plain->deleter(plain);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, (int64_t)native, &managed));
    EXPECT_STATUS(ds_accel_stream_query(theirs), DS_ACCEL_NOT_READY);
    EXPECT_STATUS(ds_accel_stream_query(standard), DS_ACCEL_OK);
    plain = managed;
    plain->deleter(plain);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_DEFAULT_STREAM, &managed));
    EXPECT_STATUS(ds_accel_stream_query(standard), DS_ACCEL_NOT_READY);
    plain = managed;
    plain->deleter(plain);
    EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, -2, &managed), DS_ACCEL_ERR_INVALID,
                   "stream -2");
    EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 4, 0, &managed), DS_ACCEL_ERR_INVALID,
                   "flags");
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
}

Test(core_tensor, is_an_extension_device_where_the_host_cannot_reach)
{
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *back;
    void *managed = NULL;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(3), &tensor));
    cr_expect_eq(exported_as(tensor).device_type, kDLExtDev);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed));
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(NULL, managed, 0, &back), DS_ACCEL_ERR_INVALID);
    MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
    cr_expect_eq(info_of(back).device, device);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
    ds_accel_tensor_put(tensor);
    MUST(ds_accel_tensor_zero(back, NULL));
    ds_accel_tensor_put(back);
}

Test(core_tensor, is_an_object_and_an_offset_for_opencl)
{
    ds_accel_device_t *device;
    ds_accel_t *context = far_start_opencl(&device);
    struct ds_accel_tensor_info info;
    ds_accel_tensor_t *whole;
    ds_accel_tensor_t *part;
    ds_accel_tensor_t *back;
    DLManagedTensor *plain;
    void *managed = NULL;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT32, 1, SHAPE(10), &whole));
    MUST(ds_accel_tensor_slice(whole, 0, 3, 8, 1, &part));
    info = info_of(part);
    MUST(ds_accel_tensor_to_dlpack(part, 0, 0, &managed));
    plain = managed;
    cr_expect_eq(plain->dl_tensor.device.device_type, kDLOpenCL);
    cr_expect_eq((uintptr_t)plain->dl_tensor.data, (uintptr_t)info.storage ^ FAR_OBJECT_BITS);
    cr_expect_eq(plain->dl_tensor.byte_offset, 12);
    plain->dl_tensor.dtype.lanes = 2;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, managed, 0, &back),
                  DS_ACCEL_ERR_UNSUPPORTED);
    plain->dl_tensor.dtype.lanes = 1;
    plain->dl_tensor.ndim = 33; /* detected only after the object was wrapped */
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, managed, 0, &back), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(far_wrapped_count, 0);
    plain->dl_tensor.ndim = 1;
    MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
    cr_expect_eq(far_wrapped_count, 1);
    cr_expect_eq(info_of(back).data, info.data);
    ds_accel_tensor_put(part);
    ds_accel_tensor_put(whole);
    ds_accel_tensor_put(back);
    cr_expect_eq(far_wrapped_count, 0);
    test_finish(context, device);
}

/* No earlier call has used the default stream. */
Test(core_tensor, is_exported_to_a_default_stream_that_was_never_used)
{
    const int64_t shape = 16;
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    ds_accel_stream_t *stream = NULL;
    ds_accel_tensor_t *tensor = NULL;
    void *managed = NULL;

    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_set_current_stream(stream));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, &tensor));
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_DEFAULT_STREAM, &managed));
    ((DLManagedTensor *)managed)->deleter(managed);
    ds_accel_tensor_put(tensor);
    ds_accel_stream_destroy(stream);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}
