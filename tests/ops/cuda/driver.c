/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A driver of CUDA that runs the kernels of fused_adam on the CPU, thread by thread. Signatures are
 * those of "CUDA Driver API", with pointers to void for handles. */
#include "fused_adam/cuda/kernel.h"

#include "ops/cuda/driver.h"

#include <stdlib.h>

#pragma GCC visibility push(default)

extern struct driver simulated_driver;
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version_out);
int cuGetErrorName(int error, const char **name_out);
int cuGetErrorString(int error, const char **text_out);
int cuStreamGetCtx(void *stream, void **context_out);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context_out);
int cuCtxGetDevice(int *device_out);
int cuDeviceGetAttribute(int *value_out, int attribute, int device);
int cuLibraryLoadData(void **library_out, const void *code, int *jit_options,
                      void **jit_option_values, unsigned jit_option_count, int *library_options,
                      void **library_option_values, unsigned library_option_count);
int cuLibraryGetKernel(void **kernel_out, void *library, const char *name);
int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void *stream, void **parameters, void **extra);
int cuMemAllocAsync(unsigned long long *memory_out, size_t bytes, void *stream);
int cuMemFreeAsync(unsigned long long memory, void *stream);
int cuMemsetD8Async(unsigned long long memory, unsigned char byte, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream);
int cuStreamSynchronize(void *stream);

struct driver simulated_driver = {.version = 12010, .processors = 2};
static char context;
static char library;
static const char *const kernels[] = {"ds_accel_fused_adam", "ds_accel_fused_adam_sum",
                                      "ds_accel_fused_adam_finish"};

static void check_stream(const void *stream)
{
    simulated_driver.other_streams += stream != simulated_driver.wanted_stream;
}

int cuInit(unsigned flags)
{
    return flags == 0 ? simulated_driver.init_error : 1;
}

int cuDriverGetVersion(int *version_out)
{
    *version_out = simulated_driver.version;
    return 0;
}

int cuGetErrorName(int error, const char **name_out)
{
    *name_out = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
                : error == 100 ? "CUDA_ERROR_NO_DEVICE"
                : error == 201 ? "CUDA_ERROR_INVALID_CONTEXT"
                : error == 801 ? "CUDA_ERROR_NOT_SUPPORTED"
                               : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
}

int cuGetErrorString(int error, const char **text_out)
{
    if (error == 999) /* unknown to the driver: it writes nothing */
        return 1;
    *text_out = "a simulated failure";
    return 0;
}

int cuStreamGetCtx(void *stream, void **context_out)
{
    (void)stream;
    *context_out = &context;
    return simulated_driver.context_error;
}

int cuCtxPushCurrent_v2(void *pushed)
{
    simulated_driver.pushes++;
    return pushed == &context ? 0 : 1;
}

int cuCtxPopCurrent_v2(void **context_out)
{
    simulated_driver.pops++;
    *context_out = &context;
    return 0;
}

int cuCtxGetDevice(int *device_out)
{
    *device_out = 7;
    return simulated_driver.device_error;
}

int cuDeviceGetAttribute(int *value_out, int attribute, int device)
{
    *value_out = simulated_driver.processors;
    return attribute == 16 && device == 7 ? 0 : 1;
}

int cuLibraryLoadData(void **library_out, const void *code, int *jit_options,
                      void **jit_option_values, unsigned jit_option_count, int *library_options,
                      void **library_option_values, unsigned library_option_count)
{
    if (simulated_driver.load_error)
        return simulated_driver.load_error;
    simulated_driver.loads++;
    *library_out = &library;
    return code && !jit_options && !jit_option_values && jit_option_count == 0 &&
                   !library_options && !library_option_values && library_option_count == 0
               ? 0
               : 1;
}

/* A kernel is a pointer to its name. */
int cuLibraryGetKernel(void **kernel_out, void *of, const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (of == &library && strcmp(name, kernels[i]) == 0) {
            *kernel_out = (void *)&kernels[i];
            return 0;
        }
    }
    return 500;
}

/* Backwards: no thread may need what another one wrote. */
static void run_threads(bool adds_up, const struct ops__fused_launch *launch, unsigned blocks)
{
    for (unsigned block = blocks; block-- > 0;)
        for (unsigned thread = OPS__FUSED_THREADS; thread-- > 0;)
            if (adds_up)
                ops__fused_sum_thread(launch, block, thread);
            else
                ops__fused_adam_thread(launch, block, thread);
}

int cuLaunchKernel(void *launched, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void *stream, void **parameters, void **extra)
{
    bool finishes = launched == (const void *)&kernels[2];
    bool adds_up = launched == (const void *)&kernels[1];

    check_stream(stream);
    if (simulated_driver.launch_error && simulated_driver.good_launches == 0)
        return simulated_driver.launch_error;
    simulated_driver.good_launches -= simulated_driver.launch_error != 0;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 ||
        shared_bytes != 0 || extra || block_x != (finishes ? 1 : OPS__FUSED_THREADS))
        return 1;
    simulated_driver.last_stream = stream;
    /* A driver has copied the parameters when this function returns. */
    if (finishes) {
        simulated_driver.finishes++;
        ops__fused_finish_thread((const struct ops__fused_finish *)parameters[0]);
        return grid_x == 1 ? 0 : 1;
    }
    if (adds_up) {
        simulated_driver.sums++;
        simulated_driver.last_sum_grid = grid_x;
    } else {
        simulated_driver.launches++;
        simulated_driver.last_grid = grid_x;
    }
    run_threads(adds_up, (const struct ops__fused_launch *)parameters[0], grid_x);
    return 0;
}

/* Memory of the device is that of the CPU. Nobody may rely on its contents. */
int cuMemAllocAsync(unsigned long long *memory_out, size_t bytes, void *stream)
{
    void *memory = malloc(bytes);

    check_stream(stream);
    if (simulated_driver.allocate_error || !memory) {
        free(memory);
        return simulated_driver.allocate_error ? simulated_driver.allocate_error : 2;
    }
    memset(memory, 0xA5, bytes);
    *memory_out = (uintptr_t)memory;
    simulated_driver.allocations++;
    return 0;
}

int cuMemFreeAsync(unsigned long long memory, void *stream)
{
    check_stream(stream);
    free((void *)(uintptr_t)memory);
    simulated_driver.allocations--;
    return simulated_driver.release_error;
}

int cuMemsetD8Async(unsigned long long memory, unsigned char byte, size_t bytes, void *stream)
{
    check_stream(stream);
    memset((void *)(uintptr_t)memory, byte, bytes);
    return simulated_driver.fill_error;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
    check_stream(stream);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return simulated_driver.read_error;
}

int cuStreamSynchronize(void *stream)
{
    check_stream(stream);
    return simulated_driver.synchronize_error;
}

#pragma GCC visibility pop
