/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: pinned, registered and mapped host memory. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUP "pinned"
#define BYTES 10000u

/* Allocate pinned memory. If the kernel's limit forbids that or the plugin does not support the
 * flags, skip the check and return NULL. */
static void *pin(struct ds_accel__run *run, uint64_t align_bytes, uint32_t flags)
{
    void *pointer = NULL;
    int32_t status = CALL(run, mem_alloc_pinned, run->device, BYTES, align_bytes, flags, &pointer);

    if (status == DS_ACCEL_ERR_LIMIT || (flags != 0 && status == DS_ACCEL_ERR_UNSUPPORTED)) {
        ds_accel__skip(run, "%.200s", run->error.message);
        return NULL;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_pinned", status);
    EXPECT(run, pointer != NULL, "mem_alloc_pinned: DS_ACCEL_OK without memory");
    return pointer;
}

/* Invalid alignments, which are not powers of two. */
static const uint64_t odd_aligns[] = {3, 6, 48, 4097, 12288, UINT64_MAX};

static void check_alignment(struct ds_accel__run *run)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t aligns[24] = {0, 1};

    for (int i = 1; i <= 20; i++) {
        aligns[i + 1] = UINT64_C(1) << i;
    }
    for (int i = 0; i <= 21; i++) {
        uint64_t wanted = aligns[i] == 0 ? page : aligns[i];
        void *pointer = pin(run, aligns[i], 0);

        if (pointer == NULL) {
            return;
        }
        EXPECT(run, (uintptr_t)pointer % wanted == 0,
               "align_bytes %llu: %p is not a multiple of %llu", (unsigned long long)aligns[i],
               pointer, (unsigned long long)wanted);
        memset(pointer, 0x42, BYTES); /* the host can access it */
        WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pointer);
    }
    for (size_t i = 0; i < ARRAY_SIZE(odd_aligns); i++) {
        void *pointer = NULL;

        WANT_ERROR(run, mem_alloc_pinned, run->device, BYTES, odd_aligns[i], 0, &pointer);
    }
}

static void check_copies(struct ds_accel__run *run)
{
    unsigned char *pinned = pin(run, 1, 0);
    void *memory;

    if (pinned == NULL) {
        return;
    }
    memory = ds_accel__take(run, BYTES);
    ds_accel__pattern(pinned, BYTES, 20);
    ds_accel__put(run, memory, pinned, BYTES);
    ds_accel__want_pattern(run, memory, BYTES, 20, "what was copied from pinned memory");
    memset(pinned, 0, BYTES);
    ds_accel__get(run, pinned, memory, BYTES);
    ds_accel__put(run, memory, pinned, BYTES);
    ds_accel__want_pattern(run, memory, BYTES, 20, "what was copied to pinned memory and back");
    ds_accel__give(run, memory);
    WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pinned);
}

static uint32_t kind_of(struct ds_accel__run *run, const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};

    WANT(run, DS_ACCEL_OK, mem_pointer_info, run->instance, run->device, pointer, &info);
    return info.kind;
}

static void check_registered(struct ds_accel__run *run)
{
    unsigned char *own =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int32_t status;

    EXPECT(run, own != MAP_FAILED, "host memory is exhausted");
    memset(own, 0x21, BYTES);
    for (int i = 0; i < 2; i++) {
        status = CALL(run, mem_register, run->device, own, BYTES, 0);
        if (status == DS_ACCEL_ERR_LIMIT) {
            ds_accel__skip(run, "%.200s", run->error.message);
            return;
        }
        ds_accel__want(run, DS_ACCEL_OK, "mem_register", status);
        if (run->table.mem_pointer_info != NULL) {
            EXPECT(run, kind_of(run, own) == DS_ACCEL_POINTER_PINNED,
                   "registered memory is reported as kind %u", kind_of(run, own));
        }
        WANT(run, DS_ACCEL_OK, mem_unregister, run->device, own);
        for (size_t k = 0; k < BYTES; k++) {
            EXPECT(run, own[k] == 0x21, "byte %zu of the caller's memory was changed", k);
        }
        own[0] = 0x21; /* the host can still write it */
    }
    if (run->table.mem_pointer_info != NULL) {
        EXPECT(run, kind_of(run, own) != DS_ACCEL_POINTER_PINNED,
               "unregistered memory is reported as pinned");
    }
    munmap(own, BYTES);
}

static void check_mapped(struct ds_accel__run *run)
{
    unsigned char *pinned = pin(run, 1, DS_ACCEL_PINNED_MAPPED);
    unsigned char bytes[BYTES];
    void *address = NULL;

    if (pinned == NULL) {
        return;
    }
    ds_accel__pattern(pinned, BYTES, 21);
    WANT(run, DS_ACCEL_OK, mem_device_pointer, run->device, pinned, &address);
    EXPECT(run, address != NULL, "the device address is NULL");
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, bytes, address, BYTES,
         DS_ACCEL_COPY_DEVICE_TO_HOST);
    EXPECT(run, memcmp(bytes, pinned, BYTES) == 0, "the device does not see what the host wrote");
    ds_accel__pattern(bytes, BYTES, 24);
    ds_accel__put(run, address, bytes, BYTES);
    EXPECT(run, memcmp(bytes, pinned, BYTES) == 0,
           "the host does not see what was copied to the device");
    WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pinned);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define PINNED SLOT(mem_alloc_pinned), SLOT(mem_free_pinned)

static const struct ds_accel__check checks[] = {
    {74, GROUP, "alignments 0, 1 and powers of two", DEVICE, 0, check_alignment, {PINNED}},
    {74,
     GROUP,
     "copies from and to pinned memory",
     DEVICE,
     0,
     check_copies,
     {PINNED, SLOT(mem_alloc), SLOT(mem_copy)}},
    {75,
     GROUP,
     "memory of the caller's",
     DEVICE,
     0,
     check_registered,
     {SLOT(mem_register), SLOT(mem_unregister)}},
    {76,
     GROUP,
     "the device address of mapped memory",
     DEVICE,
     0,
     check_mapped,
     {PINNED, SLOT(mem_device_pointer), SLOT(mem_copy)}},
};

const struct ds_accel__check_list ds_accel__checks_host_memory = {checks, ARRAY_SIZE(checks)};
