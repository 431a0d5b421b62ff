/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: memory exported as a dma-buf, whose descriptor the caller owns. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <fcntl.h>
#include <unistd.h>

#define GROUP "dmabuf"
#define BYTES (UINT64_C(2) << 20) /* some runtimes export only whole pages of this size */
#define INSIDE (BYTES / 2)
#define LOOKED_AT 5000u
/* dma-bufs consist of whole pages; no runtime uses larger pages for all memory */
#define PAGE 65536u

static char *take_pages(struct ds_accel__run *run)
{
    void *memory = NULL;

    WANT(run, DS_ACCEL_OK, mem_alloc, run->device, BYTES, PAGE, 0, &memory);
    EXPECT(run, memory != NULL, "mem_alloc: DS_ACCEL_OK without memory");
    return memory;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Export memory and return the descriptor; -1 if the device does not support dma-bufs and the check
 * is skipped. */
static int32_t export_memory(struct ds_accel__run *run, char *pointer, uint64_t size,
                             uint64_t *offset_out)
{
    int32_t fd = -1;
    int32_t status = CALL(run, dmabuf_export, run->device, pointer, size, 0, &fd, offset_out);

    if (ds_accel__lacks(run, status, DS_ACCEL_FLAG_DMABUF)) {
        return -1;
    }
    ds_accel__want(run, DS_ACCEL_OK, "dmabuf_export", status);
    EXPECT(run, fd >= 0 && is_open(fd), "dmabuf_export: %d is not an open descriptor", fd);
    return fd;
}

static void check_export(struct ds_accel__run *run)
{
    char *memory = take_pages(run);
    uint64_t offset = UINT64_MAX;
    int32_t fd = export_memory(run, memory, BYTES, &offset);
    int32_t other = -1;

    if (fd >= 0) {
        EXPECT(run, (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0,
               "dmabuf_export: programs that are started inherit the descriptor");
        WANT_ERROR(run, dmabuf_export, run->device, memory, 0, 0, &other, &offset);
        WANT_ERROR(run, dmabuf_export, run->device, memory, UINT64_C(1) << 50, 0, &other, &offset);
        WANT_ERROR(run, dmabuf_export, run->device, memory + INSIDE, BYTES * 4, 0, &other, &offset);
        close(fd);
    }
    ds_accel__give(run, memory);
}

/* Check that imported memory has the contents of the exported memory, and that a write to it
 * changes the exported memory, also after the import was released. */
static void check_import(struct ds_accel__run *run)
{
    char *memory = take_pages(run);
    unsigned char bytes[LOOKED_AT];
    void *imported = NULL;
    uint64_t offset = 0;
    int32_t fd;

    ds_accel__pattern(bytes, sizeof(bytes), 70);
    ds_accel__put(run, memory + INSIDE, bytes, sizeof(bytes));
    fd = export_memory(run, memory + INSIDE, BYTES - INSIDE, &offset);
    if (fd < 0) {
        ds_accel__give(run, memory);
        return;
    }
    WANT(run, DS_ACCEL_OK, dmabuf_import, run->device, fd, offset, BYTES - INSIDE, &imported);
    EXPECT(run, imported != NULL, "dmabuf_import: DS_ACCEL_OK without memory");
    EXPECT(run, is_open(fd), "dmabuf_import closed the caller's descriptor");
    close(fd); /* imported memory does not need the descriptor */
    ds_accel__want_pattern(run, imported, sizeof(bytes), 70, "imported memory");
    ds_accel__pattern(bytes, sizeof(bytes), 71);
    ds_accel__put(run, imported, bytes, sizeof(bytes));
    ds_accel__want_pattern(run, memory + INSIDE, sizeof(bytes), 71,
                           "exported memory that was written where it was imported");
    WANT(run, DS_ACCEL_OK, dmabuf_release, run->device, imported);
    ds_accel__want_pattern(run, memory + INSIDE, sizeof(bytes), 71,
                           "exported memory whose import was released");
    ds_accel__give(run, memory);
}

/* Check that releasing imported memory does not close the descriptor from which it was imported,
 * which the caller owns. */
static void check_release(struct ds_accel__run *run)
{
    char *memory = take_pages(run);
    void *imported = NULL;
    uint64_t offset = 0;
    int32_t fd = export_memory(run, memory, BYTES, &offset);

    if (fd >= 0) {
        WANT(run, DS_ACCEL_OK, dmabuf_import, run->device, fd, offset, BYTES, &imported);
        WANT(run, DS_ACCEL_OK, dmabuf_release, run->device, imported);
        EXPECT(run, is_open(fd), "the caller's descriptor is closed with dmabuf_release");
        close(fd);
    }
    ds_accel__give(run, memory);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define EXPORTS SLOT(dmabuf_export), SLOT(mem_alloc), SLOT(mem_copy)

static const struct ds_accel__check checks[] = {
    {122, GROUP, "exports", DEVICE, 0, check_export, {EXPORTS}},
    {122,
     GROUP,
     "memory is exported and imported",
     DEVICE,
     DS_ACCEL__CHECK_TRAP,
     check_import,
     {EXPORTS, SLOT(dmabuf_import), SLOT(dmabuf_release)}},
    {122,
     GROUP,
     "the descriptor stays the caller's",
     DEVICE,
     0,
     check_release,
     {EXPORTS, SLOT(dmabuf_import), SLOT(dmabuf_release)}},
};

const struct ds_accel__check_list ds_accel__checks_dmabuf = {checks, ARRAY_SIZE(checks)};
