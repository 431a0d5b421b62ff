/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of fused_adam for CUDA without a device: fused_adam DIRECTORY CPU.so [CUDA.so]
 *
 * DIRECTORY has the op with a simulated driver, libcuda.so.1. CUDA.so is the op as it is installed.
 */
#include "ds-accel/ops/fused_adam.h"
#include "ops/checks.h"
#include "ops/cuda/driver.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define MOST 1100u
#define EACH 9u

static const struct ds_accel_fused_adam *cpu;
static const struct ds_accel_fused_adam *cuda;
static struct driver *driver;

static struct ds_accel_fused_adam_options
options_for(const struct ds_accel_optimizer_tensor *tensors, uint64_t count)
{
    return (struct ds_accel_fused_adam_options){
        .common =
            {
                .struct_size = sizeof(struct ds_accel_fused_adam_options),
                .tensors = tensors,
                .tensor_count = count,
                .tensor_bytes = sizeof(*tensors),
                .step = 3,
                .learning_rate = 0.01,
                .gradient_scale = 1,
            },
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
    };
}

/* The installed op: its table without a driver, and the error of a step. */
static void check_without_driver(const char *file)
{
    const struct ds_accel_fused_adam *op =
        (const struct ds_accel_fused_adam *)open_op(file, "fused_adam");
    struct ds_accel_fused_adam_options options = options_for(NULL, 0);

    CHECK(op->op.struct_size == sizeof(*op), "struct_size");
    CHECK(strcmp(op->op.path(), "cuda") == 0, "path %s", op->op.path());
    CHECK(strcmp(op->op.paths()[0], "cuda") == 0 && !op->op.paths()[1], "paths");
    options.common.step = 0;
    REFUSED(op->step(&options, failed), DS_ACCEL_ERR_INVALID, "step is 0");
    options.common.step = 1;
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        REFUSED(op->step(&options, failed), DS_ACCEL_ERR_NO_DEVICE,
                "fused_adam: step: no driver of CUDA: libcuda.so.1: ");
}

static float memory[2][4][MOST * EACH]; /* of the CPU's and the device's step */
static struct ds_accel_optimizer_tensor tensors[2][MOST];

/* Make lists of tensors with the same contents; every seventh one is empty. */
static void make_lists(unsigned count)
{
    for (unsigned list = 0; list < 2; list++) {
        for (unsigned i = 0; i < MOST * EACH; i++) {
            memory[list][0][i] = (float)i / 100;
            memory[list][1][i] = (float)(i % 13) - 6;
            memory[list][2][i] = 0.1f;
            memory[list][3][i] = 0.2f;
        }
        for (unsigned i = 0; i < count; i++)
            tensors[list][i] = (struct ds_accel_optimizer_tensor){
                .count = i % 7 == 6 ? 0 : EACH,
                .parameter = memory[list][0] + i * EACH,
                .gradient = memory[list][1] + i * EACH,
                .state = {memory[list][2] + i * EACH, memory[list][3] + i * EACH},
                .parameter_dtype = DS_ACCEL_DTYPE_FLOAT32,
                .gradient_dtype = DS_ACCEL_DTYPE_FLOAT32,
                .state_dtype = DS_ACCEL_DTYPE_FLOAT32,
            };
    }
}

static bool same_bits(void)
{
    const void *of_cpu = memory[0];
    const void *of_cuda = memory[1];

    return memcmp(of_cpu, of_cuda, sizeof(memory[0])) == 0;
}

/* One launch for up to 500 tensors that are not empty. */
static void check_launches(void)
{
    static const unsigned counts[] = {0, 1, 6, 7, 499, 583, 584, 1100};
    static const unsigned wanted[] = {0, 1, 1, 1, 1, 1, 2, 2};
    char stream;

    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_fused_adam_options options = options_for(tensors[0], counts[i]);

        make_lists(counts[i]);
        CHECK(cpu->step(&options, &error) == DS_ACCEL_OK, "%s", error.message);
        options.common.tensors = tensors[1];
        options.stream = &stream;
        driver->launches = driver->pushes = driver->pops = 0;
        CHECK(cuda->step(&options, &error) == DS_ACCEL_OK, "%s", error.message);
        CHECK(driver->launches == wanted[i], "%u tensors: %u launches, wanted %u", counts[i],
              driver->launches, wanted[i]);
        CHECK(driver->pushes == 1 && driver->pops == 1, "%u contexts made current, %u restored",
              driver->pushes, driver->pops);
        CHECK(counts[i] == 0 || driver->last_stream == &stream, "another stream");
        CHECK(same_bits(), "%u tensors: other bits", counts[i]);
    }
    CHECK(driver->loads == 1, "the kernel was loaded %u times", driver->loads);
}

/* A copy in each type, from and to any alignment. */
static void check_copies(void)
{
    for (uint32_t dtype = DS_ACCEL_DTYPE_FLOAT32; dtype <= DS_ACCEL_DTYPE_BFLOAT16; dtype++) {
        for (unsigned from = 0; from < 5; from++) {
            char copies[2][(EACH + 1) * 4];
            struct ds_accel_fused_adam_options options = options_for(tensors[0], 1);
            size_t element = dtype == DS_ACCEL_DTYPE_FLOAT32 ? 4 : 2;

            make_lists(1);
            memset(copies, 0x5A, sizeof(copies));
            for (unsigned list = 0; list < 2; list++) {
                struct ds_accel_optimizer_tensor *tensor = &tensors[list][0];

                tensor->parameter = memory[list][0] + from;
                tensor->gradient = memory[list][1] + from;
                tensor->copy = copies[list] + element;
                tensor->copy_dtype = dtype;
            }
            CHECK(cpu->step(&options, NULL) == DS_ACCEL_OK, "step");
            options.common.tensors = tensors[1];
            CHECK(cuda->step(&options, NULL) == DS_ACCEL_OK, "step");
            CHECK(memcmp(copies[0], copies[1], sizeof(copies[0])) == 0, "type %u: the copy", dtype);
            CHECK(same_bits(), "type %u: bits", dtype);
        }
    }
}

static void check_refusals(void)
{
    struct ds_accel_fused_adam_options options = options_for(tensors[0], 2);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char stream;

    make_lists(2);
    driver->launches = driver->pushes = driver->pops = 0;
    tensors[0][1].parameter = (char *)memory[0][0] + EACH * 4 + 2;
    REFUSED(cuda->step(&options, failed), DS_ACCEL_ERR_INVALID,
            "tensor 1: an array's address is no multiple");
    tensors[0][1].parameter = memory[0][0] + EACH;
    tensors[0][1].copy = (char *)memory[0][0] + 1;
    tensors[0][1].copy_dtype = DS_ACCEL_DTYPE_FLOAT16;
    REFUSED(cuda->step(&options, failed), DS_ACCEL_ERR_INVALID, "tensor 1: an array's address");
    tensors[0][1].copy = NULL;
    tensors[0][1].count = (uint64_t)1 << 50;
    REFUSED(cuda->step(&options, failed), DS_ACCEL_ERR_INVALID, "elements are too many");
    tensors[0][1].count = 1;
    CHECK(driver->launches == 0 && driver->pushes == 0, "a refused step was launched");
    driver->launch_error = 700;
    options.stream = &stream;
    REFUSED(cuda->step(&options, failed), DS_ACCEL_ERR_DRIVER,
            "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): a simulated failure");
    CHECK(driver->pushes == 2 && driver->pops == 2, "the context stays current");
    CHECK(cuda->step(&options, &error) == DS_ACCEL_ERR_DRIVER && error.vendor_code == 700 &&
              strcmp(error.vendor_text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0,
          "the vendor's code is %lld, \"%s\"", (long long)error.vendor_code, error.vendor_text);
    ERROR_SIZES(cuda->step(&options, failed), DS_ACCEL_ERR_DRIVER);
    driver->pushes = 0;
    driver->launch_error = 999;
    REFUSED(cuda->step(&options, failed), DS_ACCEL_ERR_DRIVER, "(999): no description");
    driver->launch_error = 201;
    options.stream = NULL;
    driver->pushes = 0;
    REFUSED(cuda->step(&options, failed), DS_ACCEL_ERR_STATE, "make a device current");
    CHECK(driver->pushes == 0, "a context of the default stream");
    driver->launch_error = 0;
    /* A stream whose context the driver does not report: the caller's is used. */
    driver->context_error = 801;
    options.stream = &stream;
    CHECK(cuda->step(&options, NULL) == DS_ACCEL_OK && driver->pushes == 0, "no context");
    driver->context_error = 0;
}

/* Clip, and compare with the CPU: one launch that adds up, one that finishes, one that updates. */
static void check_clipped(unsigned count, unsigned launches, bool given)
{
    struct ds_accel_gradient_sum sums[2] = {{.nan_count = 0}};
    double norms[2] = {-1, -1};
    const struct ds_accel_fused_adam *ops[2] = {cpu, cuda};
    char stream;

    make_lists(count);
    for (unsigned list = 0; list < 2; list++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_fused_adam_options options = options_for(tensors[list], count);

        options.stream = driver->wanted_stream = list ? &stream : NULL;
        driver->other_streams = 0;
        driver->sums = driver->finishes = driver->launches = driver->pushes = driver->pops = 0;
        if (given)
            CHECK(ops[list]->sum_gradients(&options, &sums[list], &error) == DS_ACCEL_OK, "%s",
                  error.message);
        options.common.max_norm = 0.25;
        options.common.gradient_norm = &norms[list];
        options.common.gradient_sum = given ? &sums[list] : NULL;
        CHECK(ops[list]->step(&options, &error) == DS_ACCEL_OK, "%s", error.message);
    }
    CHECK(driver->sums == launches && driver->finishes == 1 && driver->launches == launches,
          "%u tensors: %u, %u and %u launches", count, driver->sums, driver->finishes,
          driver->launches);
    CHECK(driver->pushes == 1u + given && driver->pops == driver->pushes, "contexts");
    CHECK(driver->other_streams == 0, "%u calls have another stream", driver->other_streams);
    CHECK(driver->allocations == 0, "%d allocations stay", driver->allocations);
    CHECK(norms[0] == norms[1] && (norms[0] > 0.25 || count == 0), "norms %.17g and %.17g",
          norms[0], norms[1]);
    CHECK(memcmp(&sums[0], &sums[1], sizeof(sums[0])) == 0, "%u tensors: other sums", count);
    CHECK(same_bits(), "%u clipped tensors: other bits", count);
}

#define LARGE 700000u

/* Blocks that add up for these multiprocessors; the sum is the CPU's for every number of them. */
static void check_grid(uint64_t count, int processors, unsigned wanted)
{
    static float gradients[LARGE];
    static bool is_made;
    struct ds_accel_gradient_sum sums[2] = {{.nan_count = 0}};
    struct ds_accel_optimizer_tensor tensor = {
        .count = count,
        .parameter = gradients, /* sum_gradients() reads the gradients only */
        .gradient = gradients,
        .state = {gradients, gradients},
        .parameter_dtype = DS_ACCEL_DTYPE_FLOAT32,
        .gradient_dtype = DS_ACCEL_DTYPE_FLOAT32,
        .state_dtype = DS_ACCEL_DTYPE_FLOAT32,
    };
    struct ds_accel_fused_adam_options options = options_for(&tensor, 1);

    for (unsigned i = 0; i < LARGE && !is_made; i++)
        gradients[i] = ldexpf((float)(i * 2654435761u % 4000000000u) - 2e9f, (int)(i % 250) - 160);
    is_made = true;
    driver->wanted_stream = NULL;
    driver->processors = processors;
    CHECK(cpu->sum_gradients(&options, &sums[0], NULL) == DS_ACCEL_OK, "cpu");
    CHECK(cuda->sum_gradients(&options, &sums[1], NULL) == DS_ACCEL_OK, "cuda");
    CHECK(driver->last_sum_grid == wanted, "%d multiprocessors: %u blocks for %llu elements",
          processors, driver->last_sum_grid, (unsigned long long)count);
    CHECK(memcmp(&sums[0], &sums[1], sizeof(sums[0])) == 0 && sums[0].nan_count == 0,
          "%d multiprocessors: another sum", processors);
}

static void check_grids(void)
{
    check_grid(1, 132, 1);
    check_grid(4096, 132, 1);
    check_grid(4097, 132, 2);
    check_grid(LARGE, 132, 171); /* the least for each */
    check_grid(LARGE, 20, 76);   /* 9 * 1024 elements each, for up to 80 blocks at once */
    check_grid(LARGE, 3, 12);
    check_grid(LARGE, 2, 16); /* twice 8 */
    check_grid(LARGE, 1, 12); /* three times 4 */
    check_grid(LARGE, 0, 171);
    check_grid(LARGE, -1, 171);
    driver->device_error = 201;
    check_grid(LARGE, 1, 171);
    driver->device_error = 0;
}

/* Each function of the driver fails: the memory is released, the context restored, and the sum is
 * as it was. */
static void check_failures(void)
{
    const struct {
        int *code;
        const char *function;
        bool in_step;
    } functions[] = {
        {&driver->allocate_error, "cuMemAllocAsync", true},
        {&driver->fill_error, "cuMemsetD8Async", true},
        {&driver->launch_error, "cuLaunchKernel", true},
        {&driver->release_error, "cuMemFreeAsync", true},
        {&driver->read_error, "cuMemcpyDtoHAsync", false},
        {&driver->synchronize_error, "cuStreamSynchronize", false},
    };
    struct ds_accel_fused_adam_options options = options_for(tensors[0], 9);
    const struct ds_accel_gradient_sum before = {.words = {1, 2, 3}};
    char stream;
    double norm;

    options.stream = &stream;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_gradient_sum sum = before;
        char wanted[80];

        make_lists(9);
        driver->pushes = driver->pops = 0;
        snprintf(wanted, sizeof(wanted),
                 "%s: CUDA_ERROR_ILLEGAL_ADDRESS (700): ", functions[i].function);
        *functions[i].code = 700;
        options.common.gradient_norm = &norm;
        CHECK(cuda->step(&options, &error) ==
                  (functions[i].in_step ? DS_ACCEL_ERR_DRIVER : DS_ACCEL_OK),
              "step, %s: %d", functions[i].function, error.code);
        CHECK(!functions[i].in_step || strstr(error.message, wanted), "\"%s\"", error.message);
        options.common.gradient_norm = NULL;
        CHECK(cuda->sum_gradients(&options, &sum, &error) == DS_ACCEL_ERR_DRIVER,
              "sum_gradients, %s: %d", functions[i].function, error.code);
        CHECK(strstr(error.message, "fused_adam: sum_gradients: ") && strstr(error.message, wanted),
              "\"%s\"", error.message);
        CHECK(memcmp(&sum, &before, sizeof(sum)) == 0, "%s: the sum changed",
              functions[i].function);
        *functions[i].code = 0;
        CHECK(driver->allocations == 0, "%s: %d allocations stay", functions[i].function,
              driver->allocations);
        CHECK(driver->pushes == 2 && driver->pops == 2, "%s: the context stays current",
              functions[i].function);
    }
}

/* Each launch of a clipped step fails: the sum, what finishes, the update. */
static void check_failed_launches(void)
{
    struct ds_accel_fused_adam_options options = options_for(tensors[0], 9);

    make_lists(9);
    options.common.max_norm = 1;
    for (unsigned launch = 0; launch < 4; launch++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};

        driver->launch_error = 700;
        driver->good_launches = launch;
        driver->sums = driver->finishes = driver->launches = 0;
        CHECK(cuda->step(&options, &error) == (launch < 3 ? DS_ACCEL_ERR_DRIVER : DS_ACCEL_OK),
              "launch %u: %d", launch, error.code);
        CHECK(driver->sums + driver->finishes + driver->launches == launch,
              "%u, %u and %u launches before the failure of number %u", driver->sums,
              driver->finishes, driver->launches, launch);
        CHECK(driver->allocations == 0, "launch %u: %d allocations stay", launch,
              driver->allocations);
    }
    driver->launch_error = 0;
    driver->good_launches = 0;
}

/* Codes of the driver that callers tell apart. */
static void check_codes(void)
{
    static const struct {
        int code;
        int32_t status;
        const char *text;
    } codes[] = {
        {2, DS_ACCEL_ERR_NO_MEMORY, "cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY (2)"},
        {801, DS_ACCEL_ERR_UNSUPPORTED, "cuMemAllocAsync: CUDA_ERROR_NOT_SUPPORTED (801)"},
        {201, DS_ACCEL_ERR_STATE, "cuMemAllocAsync: CUDA_ERROR_INVALID_CONTEXT (201)"},
    };
    struct ds_accel_fused_adam_options options = options_for(tensors[0], 1);

    make_lists(1);
    options.common.max_norm = 1;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        driver->allocate_error = codes[i].code;
        REFUSED(cuda->step(&options, failed), codes[i].status, codes[i].text);
    }
    driver->allocate_error = 0;
}

/* A driver that is older than the op needs, or than the nvcc that compiled the kernels. */
static void check_old_driver(const struct ds_accel_fused_adam_options *none)
{
    static const int codes[] = {200, 209, 218, 222};

    driver->version = 12000;
    REFUSED(cuda->step(none, failed), DS_ACCEL_ERR_UNSUPPORTED,
            "the driver is of CUDA 12.0; it must be of 12.1 or later");
    driver->version = 12010;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        driver->load_error = codes[i];
        REFUSED(cuda->step(none, failed), DS_ACCEL_ERR_UNSUPPORTED, "; update the driver, or ");
    }
    driver->load_error = 0;
}

int main(int argc, char **argv)
{
    char name[4096];
    void *library;
    struct ds_accel_fused_adam_options none = options_for(NULL, 0);

    if (argc < 3)
        return 2;
    if (argc > 3)
        check_without_driver(argv[3]);
    cpu = (const struct ds_accel_fused_adam *)open_op(argv[2], "fused_adam");
    snprintf(name, sizeof(name), "%s/libcuda.so.1", argv[1]);
    library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    driver = library ? (struct driver *)dlsym(library, DRIVER_SYMBOL) : NULL;
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    snprintf(name, sizeof(name), "%s/fused_adam.so", argv[1]);
    cuda = (const struct ds_accel_fused_adam *)open_op(name, "fused_adam");
    driver->init_error = 100;
    REFUSED(cuda->step(&none, failed), DS_ACCEL_ERR_NO_DEVICE,
            "cuInit: CUDA_ERROR_NO_DEVICE (100)");
    driver->init_error = 0; /* the driver was loaded meanwhile */
    check_old_driver(&none);
    check_launches();
    check_copies();
    check_refusals();
    for (unsigned given = 0; given < 2; given++) {
        check_clipped(0, 0, given);
        check_clipped(7, 1, given);
        check_clipped(1100, 2, given);
    }
    check_grids();
    check_failures();
    check_failed_launches();
    check_codes();
    return finish("fused_adam for CUDA");
}
