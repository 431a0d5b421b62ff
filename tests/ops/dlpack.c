/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of <ds-accel/ops/dlpack.h>: dlpack UTILS.so. The header of libdlpack-dev makes the
 * tensors, so both declarations are compared too. Compiled as C and as C++.
 */
#include <ds-accel/ops/dlpack.h>
#include <ds-accel/ops/utils.h>

#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <stdio.h>
#include <string.h>

#define COUNT 24

/* DLManagedTensorVersioned, which Debian's header does not have. */
struct versioned {
    uint32_t version[2];
    void *manager_ctx;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    DLTensor tensor;
};

static unsigned checks;
static unsigned failures;
static float memory[5][COUNT + 1];
static int64_t shape[3];
static int64_t strides[3];

static void check(int good, const char *what, const char *detail)
{
    checks++;
    if (!good) {
        failures++;
        fprintf(stderr, "dlpack: %s: %s\n", what, detail);
    }
}

static DLTensor make(unsigned number)
{
    DLTensor tensor;

    memset(&tensor, 0, sizeof(tensor));
    shape[0] = 2;
    shape[1] = 3;
    shape[2] = 4;
    strides[0] = 12;
    strides[1] = 4;
    strides[2] = 1;
    tensor.data = memory[number];
    tensor.device.device_type = kDLCPU;
    tensor.ndim = 3;
    tensor.dtype.code = kDLFloat;
    tensor.dtype.bits = 32;
    tensor.dtype.lanes = 1;
    tensor.shape = shape;
    return tensor;
}

static struct ds_accel_error no_error(void)
{
    struct ds_accel_error error;

    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    return error;
}

/* An error of another size than that of this header: no byte behind it is written. */
static void check_error_sizes(void)
{
    static const uint32_t sizes[] = {0, 4, 8, 16, 24, 80, 100, sizeof(struct ds_accel_error)};
    union {
        struct ds_accel_error error;
        unsigned char bytes[sizeof(struct ds_accel_error)];
    } given;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct ds_accel_op_array array;
        size_t end = sizes[i] > 4 ? sizes[i] : 4;
        int is_kept = 1;

        memset(&given, 0x5A, sizeof(given));
        given.error.struct_size = sizes[i];
        check(ds_accel_op_array_from_dlpack(NULL, 0, &array, &given.error) == DS_ACCEL_ERR_INVALID,
              "an error's size", "another status");
        for (; end < sizeof(given); end++)
            is_kept = is_kept && given.bytes[end] == 0x5A;
        check(is_kept && given.error.struct_size == sizes[i], "an error's size",
              "bytes behind it were written");
        check(sizes[i] < 8 || given.error.code == DS_ACCEL_ERR_INVALID, "an error's size",
              "no code");
        check(sizes[i] <= offsetof(struct ds_accel_error, vendor_text) ||
                  given.bytes[sizes[i] - 1] == '\0',
              "an error's size", "a text has no end");
    }
}

static void accepted(const char *what, const void *managed, uint32_t flags, const void *data,
                     uint64_t count, uint64_t bytes, uint32_t dtype, int32_t device)
{
    struct ds_accel_error error = no_error();
    struct ds_accel_op_array array;
    int32_t status;

    memset(&array, 0, sizeof(array));
    status = ds_accel_op_array_from_dlpack(managed, flags, &array, &error);
    check(status == DS_ACCEL_OK, what, error.message);
    if (status == DS_ACCEL_OK)
        check(array.data == data && array.count == count && array.bytes == bytes &&
                  array.dtype == dtype && array.device == device,
              what, "another array");
}

static void refused(const char *what, const void *managed, uint32_t flags, int32_t wanted,
                    const char *text)
{
    struct ds_accel_error error = no_error();
    struct ds_accel_op_array array;
    struct ds_accel_op_array before;

    memset(&array, 0x5A, sizeof(array));
    before = array;
    check(ds_accel_op_array_from_dlpack(managed, flags, &array, &error) == wanted &&
              error.code == wanted,
          what, "another status");
    check(strstr(error.message, text) != NULL, what, error.message);
    check(memcmp(&array, &before, sizeof(array)) == 0, what, "the array was written");
    check(ds_accel_op_array_from_dlpack(managed, flags, &array, NULL) == wanted, what, "no error");
}

static void check_shapes(void)
{
    DLTensor tensor = make(0);
    DLManagedTensor managed;
    int64_t other[3];

    accepted("no strides", &tensor, 0, memory[0], COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
    tensor.strides = strides;
    accepted("strides", &tensor, 0, memory[0], COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
    memset(&managed, 0, sizeof(managed));
    managed.dl_tensor = tensor;
    accepted("managed", &managed, 0, memory[0], COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
    tensor.byte_offset = 4;
    accepted("offset", &tensor, 0, memory[0] + 1, COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
    tensor.byte_offset = 0;
    strides[2] = 2;
    refused("last stride", &tensor, 0, DS_ACCEL_ERR_INVALID,
            "the tensor is not contiguous: dimension 2 has the stride 2, wanted 1");
    strides[2] = 1;
    strides[0] = 4; /* the transpose of the first two */
    strides[1] = 8;
    refused("transposed", &tensor, 0, DS_ACCEL_ERR_INVALID,
            "dimension 1 has the stride 8, wanted 4");
    strides[1] = 4;
    strides[0] = 0; /* expanded */
    refused("expanded", &tensor, 0, DS_ACCEL_ERR_INVALID,
            "dimension 0 has the stride 0, wanted 12");
    strides[0] = -12;
    refused("backward", &tensor, 0, DS_ACCEL_ERR_INVALID, "stride -12, wanted 12");
    tensor = make(0);
    tensor.strides = strides;
    other[0] = 1; /* a dimension of one element may have any stride */
    other[1] = COUNT;
    other[2] = 1;
    strides[0] = 77;
    strides[1] = 1;
    strides[2] = -5;
    tensor.shape = other;
    accepted("ones", &tensor, 0, memory[0], COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
    tensor.ndim = 0;
    tensor.shape = NULL;
    accepted("a number", &tensor, 0, memory[0], 1, 4, DS_ACCEL_DTYPE_FLOAT32, -1);
    tensor.ndim = 3;
    refused("no shape", &tensor, 0, DS_ACCEL_ERR_INVALID,
            "has 3 dimensions, and its shape is NULL");
    tensor.ndim = -1;
    refused("dimensions", &tensor, 0, DS_ACCEL_ERR_INVALID, "has -1 dimensions");
    tensor = make(0);
    shape[1] = -3;
    refused("dimension", &tensor, 0, DS_ACCEL_ERR_INVALID, "has dimension 1 of -3");
    shape[1] = INT64_MAX;
    refused("overflow", &tensor, 0, DS_ACCEL_ERR_INVALID, "has too many elements");
    shape[2] = 0;
    tensor.data = NULL;
    tensor.byte_offset = 8;
    accepted("empty", &tensor, 0, NULL, 0, 0, DS_ACCEL_DTYPE_FLOAT32, -1);
    tensor = make(0);
    tensor.data = NULL;
    refused("no data", &tensor, 0, DS_ACCEL_ERR_INVALID, "has 24 elements, and its data is NULL");
    refused("no tensor", NULL, 0, DS_ACCEL_ERR_INVALID, "dlpack: the tensor is NULL");
}

static void check_types(void)
{
    static const struct {
        uint8_t code;
        uint8_t bits;
        uint32_t dtype;
    } known[] = {
        {kDLFloat, 32, DS_ACCEL_DTYPE_FLOAT32},
        {kDLFloat, 16, DS_ACCEL_DTYPE_FLOAT16},
        {kDLBfloat, 16, DS_ACCEL_DTYPE_BFLOAT16},
        {kDLFloat, 64, DS_ACCEL_DTYPE_FLOAT64},
        {kDLInt, 8, DS_ACCEL_DTYPE_INT8},
        {kDLUInt, 8, DS_ACCEL_DTYPE_UINT8},
        {kDLInt, 16, DS_ACCEL_DTYPE_INT16},
        {kDLInt, 32, DS_ACCEL_DTYPE_INT32},
        {kDLInt, 64, DS_ACCEL_DTYPE_INT64},
        {6, 8, DS_ACCEL_DTYPE_BOOL},
        {10, 8, DS_ACCEL_DTYPE_FLOAT8_E4M3FN},
        {11, 8, DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ},
        {12, 8, DS_ACCEL_DTYPE_FLOAT8_E5M2},
        {13, 8, DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ},
        {kDLComplex, 32, DS_ACCEL_DTYPE_COMPLEX32},
        {kDLComplex, 64, DS_ACCEL_DTYPE_COMPLEX64},
        {kDLComplex, 128, DS_ACCEL_DTYPE_COMPLEX128},
    };
    DLTensor tensor = make(0);

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        tensor.dtype.code = known[i].code;
        tensor.dtype.bits = known[i].bits;
        accepted("type", &tensor, 0, memory[0], COUNT, COUNT * known[i].bits / 8u, known[i].dtype,
                 -1);
    }
    tensor = make(0);
    tensor.dtype.lanes = 4;
    refused("lanes", &tensor, 0, DS_ACCEL_ERR_UNSUPPORTED,
            "has type code 2 with 32 bits and 4 lanes");
    tensor.dtype.lanes = 1;
    tensor.dtype.bits = 8;
    refused("bits", &tensor, 0, DS_ACCEL_ERR_UNSUPPORTED, "code 2 with 8 bits and 1 lanes");
    tensor.dtype.code = kDLOpaqueHandle;
    refused("code", &tensor, 0, DS_ACCEL_ERR_UNSUPPORTED, "code 3 with 8 bits and 1 lanes");
}

static void check_devices(void)
{
    /* DLDeviceType: for the host? for CUDA? */
    static const int types[][3] = {{1, 1, 0},  {2, 0, 1},  {3, 1, 1},  {4, 0, 0},
                                   {7, 0, 0},  {8, 0, 0},  {10, 0, 0}, {11, 1, 0},
                                   {12, 0, 0}, {13, 1, 1}, {14, 0, 0}, {0, 0, 0}};
    DLTensor tensor = make(0);

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char text[80];

        memcpy(&tensor.device.device_type, &types[i][0], sizeof(types[i][0]));
        tensor.device.device_id = 2;
        snprintf(text, sizeof(text), "is on a device of type %d; wanted memory for the host",
                 types[i][0]);
        if (types[i][1])
            accepted("host", &tensor, 0, memory[0], COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
        else
            refused("host", &tensor, 0, DS_ACCEL_ERR_INVALID, text);
        if (types[i][2])
            accepted("cuda", &tensor, DS_ACCEL_OP_DLPACK_CUDA, memory[0], COUNT, 96,
                     DS_ACCEL_DTYPE_FLOAT32, types[i][0] == 2 ? 2 : -1);
        else
            refused("cuda", &tensor, DS_ACCEL_OP_DLPACK_CUDA, DS_ACCEL_ERR_INVALID,
                    "wanted memory for CUDA (2, 3 or 13)");
    }
}

static void check_versions(void)
{
    struct versioned versioned;

    memset(&versioned, 0, sizeof(versioned));
    versioned.version[0] = 1;
    versioned.version[1] = 7; /* later minor versions only add */
    versioned.flags = 1;
    versioned.tensor = make(3);
    accepted("read", &versioned, DS_ACCEL_OP_DLPACK_VERSIONED, memory[3], COUNT, 96,
             DS_ACCEL_DTYPE_FLOAT32, -1);
    refused("written", &versioned, DS_ACCEL_OP_DLPACK_VERSIONED | DS_ACCEL_OP_DLPACK_WRITTEN,
            DS_ACCEL_ERR_INVALID, "is read-only");
    versioned.flags = 6; /* copied, and one of the future */
    accepted("written", &versioned, DS_ACCEL_OP_DLPACK_VERSIONED | DS_ACCEL_OP_DLPACK_WRITTEN,
             memory[3], COUNT, 96, DS_ACCEL_DTYPE_FLOAT32, -1);
    versioned.version[0] = 2;
    refused("version", &versioned, DS_ACCEL_OP_DLPACK_VERSIONED, DS_ACCEL_ERR_ABI,
            "is of DLPack 2.7; wanted 1.x");
}

/* ---- tensors of an optimizer ---------------------------------------------------------------- */

static DLTensor parts[5]; /* parameter, gradient, two states, copy */
static struct ds_accel_op_dlpack all;

static void make_all(void)
{
    for (unsigned i = 0; i < 5; i++)
        parts[i] = make(i);
    memset(&all, 0, sizeof(all));
    all.parameter = &parts[0];
    all.gradient = &parts[1];
    all.state[0] = &parts[2];
    all.state[1] = &parts[3];
    all.copy = &parts[4];
    all.first_element = 1000;
}

static void all_refused(const char *text)
{
    struct ds_accel_error error = no_error();
    struct ds_accel_optimizer_tensor tensor;
    struct ds_accel_optimizer_tensor before;

    memset(&tensor, 0x5A, sizeof(tensor));
    before = tensor;
    check(ds_accel_optimizer_tensor_from_dlpack(&all, &tensor, &error) == DS_ACCEL_ERR_INVALID,
          text, "accepted");
    check(strstr(error.message, text) != NULL, text, error.message);
    check(memcmp(&tensor, &before, sizeof(tensor)) == 0, text, "the tensor was written");
    make_all();
}

static void check_optimizer(void)
{
    static const char *const names[5] = {"parameter", "gradient", "state[0]", "state[1]", "copy"};
    struct ds_accel_error error = no_error();
    struct ds_accel_optimizer_tensor tensor;
    struct versioned versioned[5];
    int64_t short_shape[1] = {COUNT - 1};
    int64_t flat_shape[1] = {COUNT};
    char text[80];

    make_all();
    parts[0].dtype.bits = 16;
    parts[1].dtype.code = kDLBfloat;
    parts[1].dtype.bits = 16;
    parts[4].dtype.bits = 16;
    parts[1].shape = flat_shape; /* equally many elements in another shape */
    parts[1].ndim = 1;
    check(ds_accel_optimizer_tensor_from_dlpack(&all, &tensor, &error) == DS_ACCEL_OK, "all",
          error.message);
    check(tensor.count == COUNT && tensor.first_element == 1000 && tensor.parameter == memory[0] &&
              tensor.gradient == memory[1] && tensor.state[0] == memory[2] &&
              tensor.state[1] == memory[3] && tensor.copy == memory[4] &&
              tensor.parameter_dtype == DS_ACCEL_DTYPE_FLOAT16 &&
              tensor.gradient_dtype == DS_ACCEL_DTYPE_BFLOAT16 &&
              tensor.state_dtype == DS_ACCEL_DTYPE_FLOAT32 &&
              tensor.copy_dtype == DS_ACCEL_DTYPE_FLOAT16,
          "all", "another tensor");
    make_all();
    all.state[0] = all.state[1] = all.copy = NULL;
    check(ds_accel_optimizer_tensor_from_dlpack(&all, &tensor, NULL) == DS_ACCEL_OK &&
              !tensor.state[0] && !tensor.state[1] && !tensor.copy &&
              tensor.state_dtype == tensor.parameter_dtype,
          "two", "another tensor");
    make_all();
    all.parameter = NULL;
    all_refused("dlpack: parameter is NULL");
    all.gradient = NULL;
    all_refused("dlpack: gradient is NULL");
    for (unsigned i = 0; i < 5; i++) {
        if (i > 0) {
            parts[i].ndim = 1;
            parts[i].shape = short_shape;
            snprintf(text, sizeof(text), "%s has 23 elements, the parameter 24", names[i]);
            all_refused(text);
        }
        parts[i].byte_offset = 2;
        snprintf(text, sizeof(text), "dlpack: %s begins at ", names[i]);
        all_refused(text);
        parts[i].device.device_type = kDLCUDA;
        snprintf(text, sizeof(text), "dlpack: %s is on a device of type 2", names[i]);
        all_refused(text);
    }
    parts[3].dtype.bits = 16;
    all_refused("state[1] is of another type than state[0]");
    for (unsigned i = 0; i < 5; i++)
        parts[i].device.device_type = kDLCUDA;
    parts[3].device.device_id = 1;
    all.flags = DS_ACCEL_OP_DLPACK_CUDA;
    all_refused("state[1] is on device 1, the parameter on 0");
    /* Only the gradient may be read-only. */
    memset(versioned, 0, sizeof(versioned));
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned j = 0; j < 5; j++) {
            versioned[j].version[0] = 1;
            versioned[j].flags = i == j;
            versioned[j].tensor = parts[j];
        }
        all.flags = DS_ACCEL_OP_DLPACK_VERSIONED;
        all.parameter = &versioned[0];
        all.gradient = &versioned[1];
        all.state[0] = &versioned[2];
        all.state[1] = &versioned[3];
        all.copy = &versioned[4];
        snprintf(text, sizeof(text), "dlpack: %s is read-only", names[i]);
        if (i == 1)
            check(ds_accel_optimizer_tensor_from_dlpack(&all, &tensor, NULL) == DS_ACCEL_OK, text,
                  "refused");
        else
            all_refused(text);
    }
}

/* Two tensors flattened by the op. */
static void check_utils(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, DS_ACCEL_OP_ENTRY) : NULL;
    ds_accel_op_entry_v1_fn entry;
    const struct ds_accel_op *op;
    struct ds_accel_utils utils;
    struct ds_accel_utils_tensor tensors[2];
    struct ds_accel_utils_options options;
    float flat[2 * COUNT];

    check(symbol != NULL, file, "not loaded");
    if (!symbol)
        return;
    memcpy(&entry, &symbol, sizeof(entry));
    op = entry();
    memcpy(&utils, op, sizeof(utils));
    for (unsigned i = 0; i < 2; i++) {
        DLTensor tensor = make(i);
        struct ds_accel_op_array array;

        for (unsigned j = 0; j < COUNT; j++)
            memory[i][j] = 100.0f * (float)i + (float)j;
        check(ds_accel_op_array_from_dlpack(&tensor, 0, &array, NULL) == DS_ACCEL_OK, "flatten",
              "refused");
        tensors[i].data = array.data;
        tensors[i].bytes = array.bytes;
    }
    memset(&options, 0, sizeof(options));
    options.struct_size = sizeof(options);
    options.tensors = tensors;
    options.tensor_count = 2;
    options.tensor_bytes = sizeof(tensors[0]);
    options.flat = flat;
    options.flat_bytes = sizeof(flat);
    check(utils.flatten(&options, NULL) == DS_ACCEL_OK &&
              memcmp(flat, memory[0], COUNT * sizeof(float)) == 0 &&
              memcmp(flat + COUNT, memory[1], COUNT * sizeof(float)) == 0,
          "flatten", "another result");
}

int main(int argc, char **argv)
{
    check_shapes();
    check_types();
    check_devices();
    check_versions();
    check_error_sizes();
    check_optimizer();
    check_utils(argc > 1 ? argv[1] : "");
    printf("dlpack: %u passed, %u failed\n", checks - failures, failures);
    return failures > 0;
}
