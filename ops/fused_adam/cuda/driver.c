/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "fused_adam/cuda/driver.h"

#include "common/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define LEAST_VERSION 12010 /* CUDA 12.1 */

/* The compiled kernels: code for each architecture that nvcc has, and PTX for later ones. */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        "ops__fused_adam_image:\n"
        ".incbin \"" OPS_CUDA_IMAGE "\"\n"
        ".balign 8\n"
        ".popsection\n");
extern const char ops__fused_adam_image[] __attribute__((visibility("hidden")));

/* Guards cuda and opened. A failure is not kept: the driver may be loaded later. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ops__cuda cuda;
static bool opened;

int32_t ops__cuda_failed(const struct ops__cuda *driver, const char *call, const char *function,
                         int code, struct ds_accel_error *error)
{
    static const struct {
        int code;
        int32_t status;
    } statuses[] = {
        {OPS__CUDA_ERROR_OUT_OF_MEMORY, DS_ACCEL_ERR_NO_MEMORY},
        {OPS__CUDA_ERROR_NO_DEVICE, DS_ACCEL_ERR_NO_DEVICE},
        {OPS__CUDA_ERROR_INVALID_CONTEXT, DS_ACCEL_ERR_STATE},
        {OPS__CUDA_ERROR_NOT_SUPPORTED, DS_ACCEL_ERR_UNSUPPORTED},
        {OPS__CUDA_ERROR_INVALID_IMAGE, DS_ACCEL_ERR_UNSUPPORTED},
        {OPS__CUDA_ERROR_NO_BINARY_FOR_GPU, DS_ACCEL_ERR_UNSUPPORTED},
        {OPS__CUDA_ERROR_INVALID_PTX, DS_ACCEL_ERR_UNSUPPORTED},
        {OPS__CUDA_ERROR_UNSUPPORTED_PTX_VERSION, DS_ACCEL_ERR_UNSUPPORTED},
    };
    int32_t status = DS_ACCEL_ERR_DRIVER;
    const char *advice = "";
    const char *name = NULL;
    const char *text = NULL;

    driver->error_name(code, &name);
    driver->error_string(code, &text);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i].code == code)
            status = statuses[i].status;
    if (status == DS_ACCEL_ERR_STATE)
        advice = "; pass a stream, or make a device current: cudaSetDevice()";
    else if (status == DS_ACCEL_ERR_UNSUPPORTED && code != OPS__CUDA_ERROR_NOT_SUPPORTED)
        advice = "; update the driver, or build the op with the CUDA toolkit of the driver's "
                 "version and for this device";
    ops__error(error, status, call, "%s: %s (%d): %s%s", function, name ? name : "unknown error",
               code, text ? text : "no description", advice);
    ops__error_vendor(error, code, name ? name : "");
    return status;
}

static int32_t open_library(const char *call, struct ops__cuda *driver,
                            struct ds_accel_error *error)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
        {"cuInit", offsetof(struct ops__cuda, init)},
        {"cuDriverGetVersion", offsetof(struct ops__cuda, version)},
        {"cuGetErrorName", offsetof(struct ops__cuda, error_name)},
        {"cuGetErrorString", offsetof(struct ops__cuda, error_string)},
        {"cuStreamGetCtx", offsetof(struct ops__cuda, stream_context)},
        {"cuCtxPushCurrent_v2", offsetof(struct ops__cuda, push_context)},
        {"cuCtxPopCurrent_v2", offsetof(struct ops__cuda, pop_context)},
        {"cuCtxGetDevice", offsetof(struct ops__cuda, current_device)},
        {"cuDeviceGetAttribute", offsetof(struct ops__cuda, device_attribute)},
        {"cuLibraryLoadData", offsetof(struct ops__cuda, load_library)},
        {"cuLibraryGetKernel", offsetof(struct ops__cuda, get_kernel)},
        {"cuLaunchKernel", offsetof(struct ops__cuda, launch)},
        {"cuMemAllocAsync", offsetof(struct ops__cuda, allocate)},
        {"cuMemFreeAsync", offsetof(struct ops__cuda, release)},
        {"cuMemsetD8Async", offsetof(struct ops__cuda, fill)},
        {"cuMemcpyDtoHAsync_v2", offsetof(struct ops__cuda, read)},
        {"cuStreamSynchronize", offsetof(struct ops__cuda, synchronize)},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return ops__error(
            error, DS_ACCEL_ERR_NO_DEVICE, call,
            "no driver of CUDA: %s; install NVIDIA's driver, or use ops/cpu/fused_adam.so",
            dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);

        if (!address) {
            dlclose(library);
            return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, call,
                              "libcuda.so.1 has no %s; the driver must be of CUDA 12.1 or later",
                              symbols[i].name);
        }
        *(void **)((char *)driver + symbols[i].offset) = address;
    }
    return DS_ACCEL_OK;
}

/* Parameters of a kernel were limited to 4 KiB before CUDA 12.1. */
static int32_t check_version(const char *call, const struct ops__cuda *driver,
                             struct ds_accel_error *error)
{
    int version = 0;
    int code = driver->version(&version);

    if (code != 0)
        return ops__cuda_failed(driver, call, "cuDriverGetVersion", code, error);
    if (version < LEAST_VERSION)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, call,
                          "the driver is of CUDA %d.%d; it must be of 12.1 or later",
                          version / 1000, version % 1000 / 10);
    return DS_ACCEL_OK;
}

static int32_t load_kernels(const char *call, struct ops__cuda *driver,
                            struct ds_accel_error *error)
{
    const struct {
        void **kernel;
        const char *name;
    } kernels[] = {
        {&driver->update, "ds_accel_fused_adam"},
        {&driver->sum, "ds_accel_fused_adam_sum"},
        {&driver->finish, "ds_accel_fused_adam_finish"},
    };
    void *library;
    int code = driver->init(0);

    if (code != 0)
        return ops__cuda_failed(driver, call, "cuInit", code, error);
    code = driver->load_library(&library, ops__fused_adam_image, NULL, NULL, 0, NULL, NULL, 0);
    if (code != 0)
        return ops__cuda_failed(driver, call, "cuLibraryLoadData", code, error);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]) && code == 0; i++)
        code = driver->get_kernel(kernels[i].kernel, library, kernels[i].name);
    if (code != 0)
        return ops__cuda_failed(driver, call, "cuLibraryGetKernel", code, error);
    return DS_ACCEL_OK;
}

int32_t ops__cuda_open(const char *call, const struct ops__cuda **cuda_out,
                       struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&lock);
    if (!opened) {
        status = open_library(call, &cuda, error);
        if (status == DS_ACCEL_OK)
            status = check_version(call, &cuda, error);
        if (status == DS_ACCEL_OK)
            status = load_kernels(call, &cuda, error);
        opened = status == DS_ACCEL_OK;
    }
    pthread_mutex_unlock(&lock);
    if (status == DS_ACCEL_OK)
        *cuda_out = &cuda;
    return status;
}
