/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the library reports of memory that the program allocated from the driver itself: a line for
 * each address. Run by test_cuda.sh.
 */
#include <dlfcn.h>
#include <ds-accel/ds_accel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long address_t;

static ds_accel_t *accelerator;

static void must(int is_good, const char *what)
{
    if (!is_good) {
        printf("%s: %s\n", what, ds_accel_last_error());
        exit(1);
    }
}

static void describe(const char *what, const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    uint32_t is_pinned = 9;

    must(ds_accel_mem_pointer_info(accelerator, pointer, &info) == DS_ACCEL_OK, what);
    must(ds_accel_is_pinned(accelerator, pointer, &is_pinned) == DS_ACCEL_OK, what);
    printf("%s: kind %u, device %d, offset %llu, %llu bytes, pinned %u\n", what, info.kind,
           info.device_index,
           info.base_address != 0
               ? (unsigned long long)((uint64_t)(uintptr_t)pointer - info.base_address)
               : 0,
           (unsigned long long)info.size_bytes, is_pinned);
}

/* Calls a function of the driver by its name. */
#define DRIVER(library, type, name, ...) \
    must(((int(*) type)(uintptr_t)dlsym(library, name))(__VA_ARGS__) == 0, name)

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    ds_accel_device_t *device = NULL;
    void *context = NULL;
    void *pinned = NULL;
    address_t memory = 0;
    address_t managed = 0;
    int on_stack = 0;

    accelerator = ds_accel_get();
    must(library != NULL && accelerator != NULL, "an accelerator");
    must(ds_accel_device_open(accelerator, 1, &device) == DS_ACCEL_OK, "device 1");
    DRIVER(library, (void **, int), "cuDevicePrimaryCtxRetain", &context, 1);
    DRIVER(library, (void *), "cuCtxSetCurrent", context);
    DRIVER(library, (address_t *, size_t), "cuMemAlloc_v2", &memory, 8192);
    DRIVER(library, (address_t *, size_t, unsigned), "cuMemAllocManaged", &managed, 8192, 1);
    DRIVER(library, (void **, size_t, unsigned), "cuMemHostAlloc", &pinned, 8192, 0);
    describe("device memory", (void *)(uintptr_t)memory);
    describe("inside it", (void *)(uintptr_t)(memory + 100));
    describe("managed memory", (void *)(uintptr_t)managed);
    describe("pinned memory", pinned);
    describe("inside pinned memory", (char *)pinned + 100);
    describe("the stack", &on_stack);
    DRIVER(library, (void *), "cuCtxSetCurrent", NULL);
    describe("pinned memory, without a current context", pinned);
    DRIVER(library, (void *), "cuCtxSetCurrent", context);
    DRIVER(library, (void *), "cuMemFreeHost", pinned);
    DRIVER(library, (address_t), "cuMemFree_v2", memory);
    DRIVER(library, (address_t), "cuMemFree_v2", managed);
    describe("freed memory", (void *)(uintptr_t)memory);
    ds_accel_device_close(device);
    DRIVER(library, (int), "cuDevicePrimaryCtxRelease_v2", 1);
    return 0;
}
