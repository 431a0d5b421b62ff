/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sharing between processes.
 *
 * A vendor's handle identifies a whole allocation. A handle of this project consists of this header
 * and, after it, the vendor's handle:
 *
 *      "dsah" | length of vendor's handle | size of the allocation | offset of the pointer | pid
 *
 * If the vendor's runtime requires that handles are withdrawn, the block stores its handles, so
 * that freeing the memory withdraws them.
 */
#include "vendor_frame.h"

#include <assert.h>
#include <unistd.h>

struct handle_head {
    char magic[4];
    uint32_t vendor_bytes;
    uint64_t size_bytes;
    uint64_t offset_bytes;
    uint32_t pid;
    uint32_t reserved;
};

struct vendor_export {
    struct vendor_export *next;
    unsigned char handle[]; /* the vendor's bytes */
};

static const char magic[4] = {'d', 's', 'a', 'h'};

uint32_t vendor_handle_bytes(void)
{
    return vendor_backend.memory_handle_bytes > 0
               ? vendor_backend.memory_handle_bytes + (uint32_t)sizeof(struct handle_head)
               : 0;
}

static int32_t check_handle(const void *handle, uint32_t handle_bytes, uint32_t wanted,
                            const char *slot, struct ds_accel_error *error)
{
    if (handle == NULL || handle_bytes != wanted) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: handle is NULL or has %u bytes; expected %u", slot, handle_bytes,
                           wanted);
    }
    return DS_ACCEL_OK;
}

/* Read the header of a handle. Fails with ERR_INVALID if the length or the header is not that of a
   handle of this backend. */
static int32_t read_head(const void *handle, uint32_t handle_bytes, const char *slot,
                         struct handle_head *head_out, struct ds_accel_error *error)
{
    int32_t status = check_handle(handle, handle_bytes, vendor_handle_bytes(), slot, error);

    if (status < 0) {
        return status;
    }
    memcpy(head_out, handle, sizeof(*head_out));
    if (memcmp(head_out->magic, magic, sizeof(magic)) != 0 ||
        head_out->vendor_bytes != vendor_backend.memory_handle_bytes ||
        head_out->offset_bytes >= head_out->size_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: the bytes are no such handle", slot);
    }
    return DS_ACCEL_OK;
}

static const unsigned char *vendors_part(const void *handle)
{
    return (const unsigned char *)handle + sizeof(struct handle_head);
}

/* ---- export --------------------------------------------------------------------------------- */

void vendor_share_withdraw(struct vendor_block *block)
{
    while (block->exports != NULL) {
        struct vendor_export *entry = block->exports;
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        block->exports = entry->next;
        VENDOR_DESTROY(block->device,
                       vendor_backend.ipc_memory_unexport(block->device, entry->handle, &ignored));
        free(entry);
    }
}

/* Copy the block that contains the whole range, has one of the sources (a set of 1 << source) and
   is device memory, not managed memory, of this device. Returns 1, or 0 if there is no such
   block. */
static int find_own(ds_accel_plugin_device_t *device, const void *pointer, uint64_t size_bytes,
                    uint32_t sources, struct vendor_block *block_out)
{
    struct vendor_register *blocks = device->instance->blocks;
    const struct vendor_block *block;
    int is_own;

    vendor_register_lock(blocks);
    block = vendor_block_look_up(blocks, device, pointer);
    is_own = block != NULL && block->device == device && (sources & (1u << block->source)) != 0 &&
             block->kind == DS_ACCEL_POINTER_DEVICE &&
             size_bytes <= block->size_bytes - ((uintptr_t)pointer - block->base);
    if (is_own) {
        *block_out = *block;
    }
    vendor_register_unlock(blocks);
    return is_own;
}

static int32_t fail_foreign(const char *slot, const void *pointer, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                       "%s: %p is not in live memory of mem_alloc() of this device", slot, pointer);
}

/* Store a handle in its block if handles must be withdrawn. Returns 0, or -1 if the block was freed
   meanwhile or the host is out of memory. */
static int keep_export(ds_accel_plugin_device_t *device, const void *pointer, uint64_t block_id,
                       const unsigned char *handle)
{
    struct vendor_register *blocks = device->instance->blocks;
    struct vendor_export *entry;
    struct vendor_block *block;

    if (vendor_backend.ipc_memory_unexport == NULL) {
        return 0;
    }
    entry = malloc(sizeof(*entry) + vendor_backend.memory_handle_bytes);
    if (entry == NULL) {
        return -1;
    }
    memcpy(entry->handle, handle, vendor_backend.memory_handle_bytes);
    vendor_register_lock(blocks);
    block = vendor_block_look_up(blocks, device, pointer);
    if (block != NULL && block->id == block_id) {
        entry->next = block->exports;
        block->exports = entry;
        entry = NULL;
    }
    vendor_register_unlock(blocks);
    free(entry);
    return entry == NULL ? 0 : -1;
}

static int32_t export_block(ds_accel_plugin_device_t *device, const struct vendor_block *block,
                            const void *pointer, unsigned char *made, struct ds_accel_error *error)
{
    struct handle_head head = {.vendor_bytes = vendor_backend.memory_handle_bytes,
                               .size_bytes = block->start_size_bytes,
                               .offset_bytes = (uintptr_t)pointer - (uintptr_t)block->start,
                               .pid = (uint32_t)getpid()};
    unsigned char *bytes = made + sizeof(head);
    int32_t status;

    memcpy(head.magic, magic, sizeof(magic));
    memcpy(made, &head, sizeof(head));
    VENDOR_CALL(device, error, status,
                vendor_backend.ipc_memory_export(device, block->start, block->start_size_bytes,
                                                 bytes, error));
    if (status == DS_ACCEL_OK && keep_export(device, pointer, block->id, bytes) != 0) {
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        VENDOR_DESTROY(device, vendor_backend.ipc_memory_unexport(device, bytes, &ignored));
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "ipc_memory_export: no memory");
    }
    return status;
}

static int32_t vendor_ipc_memory_export(ds_accel_plugin_device_t *device, void *pointer,
                                        void *handle, uint32_t handle_bytes,
                                        struct ds_accel_error *error)
{
    const char *slot = "ipc_memory_export";
    struct vendor_block block;
    unsigned char *made;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_handle(handle, handle_bytes, vendor_handle_bytes(), slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (!find_own(device, pointer, 1, 1u << VENDOR_SOURCE_ALLOC, &block)) {
        return fail_foreign(slot, pointer, error);
    }
    made = calloc(1, handle_bytes);
    if (made == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", slot);
    }
    status = export_block(device, &block, pointer, made, error);
    if (status == DS_ACCEL_OK) {
        memcpy(handle, made, handle_bytes);
    }
    free(made);
    return status;
}

/* Remove the handle's entry from its block and return it, or NULL if no block of the device has it.
   The caller holds the register's lock. */
static struct vendor_export *take_export(ds_accel_plugin_device_t *device, const void *handle)
{
    for (struct vendor_block *block = vendor_block_any(device->instance->blocks, device);
         block != NULL; block = block->next) {
        for (struct vendor_export **link = &block->exports; *link != NULL; link = &(*link)->next) {
            struct vendor_export *entry = *link;

            if (block->device == device && memcmp(entry->handle, vendors_part(handle),
                                                  vendor_backend.memory_handle_bytes) == 0) {
                *link = entry->next;
                return entry;
            }
        }
    }
    return NULL;
}

static int32_t vendor_ipc_memory_unexport(ds_accel_plugin_device_t *device, const void *handle,
                                          uint32_t handle_bytes, struct ds_accel_error *error)
{
    const char *slot = "ipc_memory_unexport";
    struct vendor_export *entry;
    struct handle_head head;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = read_head(handle, handle_bytes, slot, &head, error);
    }
    if (status < 0 || vendor_backend.ipc_memory_unexport == NULL) {
        return status;
    }
    vendor_register_lock(device->instance->blocks);
    entry = take_export(device, handle);
    vendor_register_unlock(device->instance->blocks);
    if (entry == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: this device has no such export, or withdrew it before", slot);
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.ipc_memory_unexport(device, entry->handle, error));
    free(entry);
    return status;
}

/* ---- import --------------------------------------------------------------------------------- */

/* If the memory is open already, count another opening of its block and return 1. The block is
   closed as often as it was opened. The caller holds the register's lock. */
static int is_open_already(struct vendor_register *blocks, const struct vendor_block *made)
{
    struct vendor_block *block = vendor_block_find(blocks, made->space, (const void *)made->base);

    if (block == NULL || block->source != VENDOR_SOURCE_IMPORT || block->base != made->base ||
        block->device != made->device) {
        return 0;
    }
    assert(block->open_count > 0);
    block->open_count++;
    return 1;
}

static int32_t enter_import(struct vendor_block *block, const char *slot,
                            struct ds_accel_error *error)
{
    struct vendor_register *blocks = block->device->instance->blocks;
    int is_known;
    int result = 0;

    /* Both steps are made under one lock because two threads may open the same memory. */
    vendor_register_lock(blocks);
    is_known = is_open_already(blocks, block);
    if (!is_known) {
        result = vendor_block_insert(blocks, block);
    }
    vendor_register_unlock(blocks);
    if (is_known || result != 0) {
        vendor_block_destroy(block);
    }
    if (result == -2) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory for the register", slot);
    }
    return result == 0 ? DS_ACCEL_OK
                       : plugin_fail(error, DS_ACCEL_ERR_INVALID,
                                     "%s: the memory lies where something else is known", slot);
}

static struct vendor_block *make_import(ds_accel_plugin_device_t *device, const void *handle,
                                        const struct handle_head *head)
{
    struct vendor_block *block =
        vendor_block_create(device, VENDOR_SOURCE_IMPORT, DS_ACCEL_POINTER_DEVICE);

    if (block != NULL) {
        block->size_bytes = head->size_bytes;
        block->start_size_bytes = head->size_bytes;
        block->open_count = 1;
        block->handle = malloc(head->vendor_bytes);
        if (block->handle == NULL) {
            vendor_block_destroy(block);
            return NULL;
        }
        memcpy(block->handle, vendors_part(handle), head->vendor_bytes);
    }
    return block;
}

static int32_t open_memory(ds_accel_plugin_device_t *device, const void *handle,
                           const struct handle_head *head, void **pointer_out,
                           struct ds_accel_error *error)
{
    struct vendor_block *block = make_import(device, handle, head);
    char *base;
    int32_t status;

    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "ipc_memory_open: no memory");
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.ipc_memory_open(device, block->handle, head->size_bytes,
                                               &block->start, error));
    if (status < 0) {
        vendor_block_destroy(block);
        return status;
    }
    base = block->start;
    block->base = (uintptr_t)base;
    status = enter_import(block, "ipc_memory_open", error);
    if (status < 0) {
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        VENDOR_DESTROY(
            device, vendor_backend.ipc_memory_close(device, vendors_part(handle), base, &ignored));
        return status;
    }
    *pointer_out = base + head->offset_bytes;
    return DS_ACCEL_OK;
}

static int32_t vendor_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                                      uint32_t handle_bytes, uint32_t flags, void **pointer_out,
                                      struct ds_accel_error *error)
{
    const char *slot = "ipc_memory_open";
    struct handle_head head;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, 0, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL) {
        return vendor_null(error, slot, "pointer_out");
    }
    status = read_head(handle, handle_bytes, slot, &head, error);
    return status < 0 ? status : open_memory(device, handle, &head, pointer_out, error);
}

/* One opening of an import: a copy of the arguments of the runtime's close, because the block may
   be freed meanwhile. */
struct opening {
    void *start;
    unsigned char *handle;     /* buffer for the vendor's bytes */
    struct vendor_block *last; /* the block if this is the last opening and the block was removed
                                  from the register; else NULL */
};

/* Remove one opening of the import at the pointer and copy it to *opening. Returns 0, or -1 if the
   device has no import there. */
static int close_import(ds_accel_plugin_device_t *device, const void *pointer,
                        struct opening *opening)
{
    struct vendor_register *blocks = device->instance->blocks;
    struct vendor_block *block;
    int result = -1;

    vendor_register_lock(blocks);
    block = vendor_block_look_up(blocks, device, pointer);
    if (block != NULL && block->source == VENDOR_SOURCE_IMPORT && block->device == device) {
        opening->start = block->start;
        memcpy(opening->handle, block->handle, vendor_backend.memory_handle_bytes);
        if (block->open_count == 1) {
            opening->last = block;
            vendor_block_remove(blocks, block);
        } else {
            block->open_count--;
        }
        result = 0;
    }
    vendor_register_unlock(blocks);
    return result;
}

static int32_t close_memory(ds_accel_plugin_device_t *device, const struct opening *opening,
                            struct ds_accel_error *error)
{
    int32_t status;

    if (opening->last == NULL) {
        VENDOR_CALL(
            device, error, status,
            vendor_backend.ipc_memory_close(device, opening->handle, opening->start, error));
        return status;
    }
    return vendor_memory_free(opening->last, error);
}

static int32_t vendor_ipc_memory_close(ds_accel_plugin_device_t *device, void *pointer,
                                       struct ds_accel_error *error)
{
    struct opening opening = {NULL, NULL, NULL};
    int32_t status;

    if (device == NULL) {
        return vendor_null(error, "ipc_memory_close", "the device");
    }
    opening.handle = malloc(vendor_backend.memory_handle_bytes);
    if (opening.handle == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "ipc_memory_close: no memory");
    }
    status = close_import(device, pointer, &opening) == 0
                 ? close_memory(device, &opening, error)
                 : plugin_fail(error, DS_ACCEL_ERR_INVALID,
                               "ipc_memory_close: %p was not opened on device %u, or closed before",
                               pointer, device->index);
    free(opening.handle);
    return status;
}

/* ---- events --------------------------------------------------------------------------------- */

/* The largest event_handle_bytes that a backend may have. */
#define EVENT_HANDLE_BYTES 256u

static int32_t vendor_ipc_event_export(ds_accel_plugin_event_t *event, void *handle,
                                       uint32_t handle_bytes, struct ds_accel_error *error)
{
    const char *slot = "ipc_event_export";
    unsigned char made[EVENT_HANDLE_BYTES] = {0};
    int32_t status = vendor_check_event(event, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_handle(handle, handle_bytes, vendor_backend.event_handle_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if ((event->flags & DS_ACCEL_EVENT_INTERPROCESS) == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: the event is not DS_ACCEL_EVENT_INTERPROCESS", slot);
    }
    VENDOR_WORK(event->device, error, status,
                vendor_backend.ipc_event_export(event->device, event->native, made, error));
    if (status == DS_ACCEL_OK) {
        memcpy(handle, made, handle_bytes);
    }
    return status;
}

static int32_t vendor_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle,
                                     uint32_t handle_bytes, ds_accel_plugin_event_t **event_out,
                                     struct ds_accel_error *error)
{
    const char *slot = "ipc_event_open";
    ds_accel_plugin_event_t *event;
    void *native = NULL;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_handle(handle, handle_bytes, vendor_backend.event_handle_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (event_out == NULL) {
        return vendor_null(error, slot, "event_out");
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.ipc_event_open(device, handle, &native, error));
    if (status < 0) {
        return status;
    }
    event = vendor_event_handle_create(device, DS_ACCEL_EVENT_INTERPROCESS, native);
    if (event == NULL) {
        VENDOR_DESTROY(device, vendor_backend.event_destroy(device, native));
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", slot);
    }
    *event_out = event;
    return DS_ACCEL_OK;
}

/* ---- dma-bufs ------------------------------------------------------------------------------- */

static int32_t vendor_dmabuf_export(ds_accel_plugin_device_t *device, void *pointer,
                                    uint64_t size_bytes, uint32_t flags, int32_t *fd_out,
                                    uint64_t *offset_bytes_out, struct ds_accel_error *error)
{
    const char *slot = "dmabuf_export";
    struct vendor_block block;
    uint64_t offset = 0;
    int32_t fd = -1;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, 0, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (fd_out == NULL || offset_bytes_out == NULL || size_bytes == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: fd_out or offset_bytes_out is NULL or the size is 0", slot);
    }
    if (!find_own(device, pointer, size_bytes,
                  1u << VENDOR_SOURCE_ALLOC | 1u << VENDOR_SOURCE_MAPPED, &block)) {
        return fail_foreign(slot, pointer, error);
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.dmabuf_export(device, pointer, size_bytes, &fd, &offset, error));
    if (status == DS_ACCEL_OK) {
        *fd_out = fd;
        *offset_bytes_out = offset;
    }
    return status;
}

void vendor_share_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    if (backend->ipc_memory_export != NULL && backend->ipc_memory_open != NULL) {
        table->ipc_memory_export = vendor_ipc_memory_export;
        table->ipc_memory_unexport = vendor_ipc_memory_unexport;
        table->ipc_memory_open = vendor_ipc_memory_open;
        table->ipc_memory_close = vendor_ipc_memory_close;
    }
    assert(backend->event_handle_bytes <= EVENT_HANDLE_BYTES);
    if (backend->ipc_event_export != NULL && backend->ipc_event_open != NULL) {
        table->ipc_event_export = vendor_ipc_event_export;
        table->ipc_event_open = vendor_ipc_event_open;
    }
    table->dmabuf_export = backend->dmabuf_export != NULL ? vendor_dmabuf_export : NULL;
}
