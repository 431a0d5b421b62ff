/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Device, managed, pinned and registered memory.
 *
 * For an alignment that the backend's allocator does not provide, the frame allocates a larger
 * range and returns an aligned address inside; the block stores the start of the allocation. Memory
 * whose address the runtime chose is removed from the register before it is freed, so that the
 * register never contains memory that the runtime has already freed. Registered memory and mappings
 * stay in the register until the runtime has released them. If the runtime fails to free the
 * memory, the block is put back.
 */
#include "vendor_frame.h"

#include <sys/resource.h>
#include <unistd.h>

#define MAX_ALIGN_BYTES (UINT64_C(1) << 30)
#define PINNED_FLAGS \
    (DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED | DS_ACCEL_PINNED_WRITE_COMBINED | \
     DS_ACCEL_PINNED_HUGE_PAGES)
#define SOURCE(name) (1u << VENDOR_SOURCE_##name)

static uintptr_t round_up(uintptr_t address, uint64_t align_bytes)
{
    return (address + align_bytes - 1) & ~(uintptr_t)(align_bytes - 1);
}

/* ---- device memory -------------------------------------------------------------------------- */

/* The arguments of alloc_block(). stream and kind select the backend's allocator. */
struct request {
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_stream_t *stream; /* stream of mem_alloc_async(); NULL in other slots */
    uint64_t size_bytes;
    uint64_t align_bytes; /* 0: the runtime's own alignment */
    uint32_t kind;
    const char *slot;
};

static int32_t ask_runtime(const struct request *request, uint64_t *size_bytes, void **start_out,
                           struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = request->device;
    int32_t status;

    if (request->stream != NULL) {
        VENDOR_WORK(device, error, status,
                    vendor_backend.alloc_async(device, request->stream->native, *size_bytes,
                                               start_out, error));
    } else if (request->kind == DS_ACCEL_POINTER_MANAGED) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.alloc_managed(device, *size_bytes, start_out, error));
    } else if (vendor_backend.alloc_aligned != NULL) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.alloc_aligned(device, size_bytes, request->align_bytes,
                                                 start_out, error));
    } else {
        VENDOR_CALL(device, error, status,
                    vendor_backend.alloc(device, *size_bytes, start_out, error));
    }
    return status;
}

/* Call the runtime's function that frees device memory, with the size if the function needs it. The
   next two functions do this for pinned and registered memory. */
static int32_t call_free(const struct vendor_block *block, struct ds_accel_error *error)
{
    return vendor_backend.free_sized != NULL
               ? vendor_backend.free_sized(block->device, block->start, block->start_size_bytes,
                                           error)
               : vendor_backend.free(block->device, block->start, error);
}

static int32_t call_free_pinned(const struct vendor_block *block, struct ds_accel_error *error)
{
    return vendor_backend.free_pinned_sized != NULL
               ? vendor_backend.free_pinned_sized(block->device, block->start,
                                                  block->start_size_bytes, error)
               : vendor_backend.free_pinned(block->device, block->start, error);
}

static int32_t call_unregister(const struct vendor_block *block, struct ds_accel_error *error)
{
    return vendor_backend.host_unregister_sized != NULL
               ? vendor_backend.host_unregister_sized(block->device, block->start,
                                                      block->start_size_bytes, error)
               : vendor_backend.host_unregister(block->device, block->start, error);
}

static int32_t give_to_runtime(const struct vendor_block *block, struct ds_accel_error *error)
{
    int32_t status;

    VENDOR_CALL(block->device, error, status, call_free(block, error));
    return status;
}

/* Allocate the memory of a block that is not in the register yet. The caller has reserved its bytes
   in the device's usage. */
static int32_t fill_block(const struct request *request, struct vendor_block *block,
                          struct ds_accel_error *error)
{
    uint64_t have = vendor_backend.alloc_aligned != NULL ? request->align_bytes
                                                         : vendor_backend.allocation_align_bytes;
    uint64_t extra = request->align_bytes > have ? request->align_bytes - (have > 0 ? have : 1) : 0;
    int32_t status;

    block->size_bytes = request->size_bytes;
    block->start_size_bytes = request->size_bytes + extra;
    status = ask_runtime(request, &block->start_size_bytes, &block->start, error);
    if (status < 0) {
        return status;
    }
    block->base = extra > 0 ? round_up((uintptr_t)block->start, request->align_bytes)
                            : (uintptr_t)block->start;
    if (block->start == NULL || (uint64_t)(block->base - (uintptr_t)block->start) > extra) {
        give_to_runtime(block, error);
        return plugin_fail(error, DS_ACCEL_ERR_INTERNAL,
                           "%s: the runtime returned %p, which is not aligned to %llu bytes",
                           request->slot, block->start, (unsigned long long)have);
    }
    return DS_ACCEL_OK;
}

static int32_t alloc_block(const struct request *request, void **pointer_out,
                           struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = request->device;
    struct vendor_block *block;
    struct vendor_block made;
    int32_t status;

    if (vendor_backend.check_size != NULL) {
        status = vendor_backend.check_size(device, request->size_bytes, request->slot, error);
        if (status < 0) {
            vendor_usage_fail(device->usage, 0, status);
            return status;
        }
    } else if (request->size_bytes > (uint64_t)INT64_MAX - MAX_ALIGN_BYTES) {
        return vendor_usage_refuse(device, request->size_bytes, request->slot, error);
    }
    if (vendor_usage_add(device->usage, request->size_bytes) != 0) {
        return vendor_usage_refuse(device, request->size_bytes, request->slot, error);
    }
    block = vendor_block_create(device, VENDOR_SOURCE_ALLOC, request->kind);
    if (block == NULL) {
        vendor_usage_fail(device->usage, request->size_bytes, DS_ACCEL_OK);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no host memory", request->slot);
    }
    block->is_async = request->stream != NULL;
    status = fill_block(request, block, error);
    if (status < 0) {
        vendor_block_destroy(block);
        vendor_usage_fail(device->usage, request->size_bytes, status);
        return status;
    }
    made = *block; /* copied because vendor_block_enter() or another thread may free the block */
    status = vendor_block_enter(block, request->slot, error);
    if (status < 0) {
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        give_to_runtime(&made, &ignored);
        vendor_usage_fail(device->usage, request->size_bytes, DS_ACCEL_OK);
        return status;
    }
    vendor_usage_succeed(device->usage);
    *pointer_out = (void *)made.base;
    return DS_ACCEL_OK;
}

static uint64_t most_align(enum vendor_source source)
{
    if (vendor_backend.max_align_bytes == 0) {
        return MAX_ALIGN_BYTES;
    }
    return source == VENDOR_SOURCE_PINNED ? UINT64_MAX : vendor_backend.max_align_bytes;
}

static int32_t check_alloc(uint64_t size_bytes, uint64_t align_bytes, uint32_t flags,
                           enum vendor_source source, void *const *pointer_out, const char *slot,
                           struct ds_accel_error *error)
{
    const uint64_t most = most_align(source);
    int32_t status = vendor_check_flags(flags, 0, slot, error);

    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL) {
        return vendor_null(error, slot, "pointer_out");
    }
    if (size_bytes == 0 || (align_bytes & (align_bytes - 1)) != 0 || align_bytes > most) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: size %llu, alignment %llu: expected a size above 0, and 0 or a "
                           "power of two up to %llu",
                           slot, (unsigned long long)size_bytes, (unsigned long long)align_bytes,
                           (unsigned long long)most);
    }
    return DS_ACCEL_OK;
}

static int32_t vendor_mem_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                struct ds_accel_error *error)
{
    const struct request request = {.device = device,
                                    .size_bytes = size_bytes,
                                    .align_bytes = align_bytes,
                                    .kind = DS_ACCEL_POINTER_DEVICE,
                                    .slot = "mem_alloc"};
    int32_t status = vendor_check_device(device, "mem_alloc", error);

    if (status == DS_ACCEL_OK) {
        status = check_alloc(size_bytes, align_bytes, flags, VENDOR_SOURCE_ALLOC, pointer_out,
                             "mem_alloc", error);
    }
    return status < 0 ? status : alloc_block(&request, pointer_out, error);
}

static int32_t vendor_mem_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                        uint32_t flags, void **pointer_out,
                                        struct ds_accel_error *error)
{
    const struct request request = {.device = device,
                                    .size_bytes = size_bytes,
                                    .kind = DS_ACCEL_POINTER_MANAGED,
                                    .slot = "mem_alloc_managed"};
    int32_t status = vendor_check_device(device, "mem_alloc_managed", error);

    if (status == DS_ACCEL_OK) {
        status = check_alloc(size_bytes, 0, flags, VENDOR_SOURCE_ALLOC, pointer_out,
                             "mem_alloc_managed", error);
    }
    return status < 0 ? status : alloc_block(&request, pointer_out, error);
}

/* ---- freeing -------------------------------------------------------------------------------- */

static int32_t ask_streams(void *subject, struct ds_accel_error *error)
{
    return vendor_streams_query(subject, error);
}

int32_t vendor_memory_wait(ds_accel_plugin_device_t *device, const char *slot,
                           struct ds_accel_error *error)
{
    return vendor_backend.memory_wait != NULL ? vendor_backend.memory_wait(device, slot, error)
                                              : DS_ACCEL_OK;
}

/* Wait for the device's work if the runtime frees memory without waiting for the work that uses it.
   While a stream captures, or if the backend has no device_synchronize(), query each stream
   instead; a capturing stream has no work. Returns at once for a lost device. */
static void wait_for_users(ds_accel_plugin_device_t *device)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    int is_complete;

    if (vendor_backend.frees_wait || vendor_is_lost(device)) {
        return;
    }
    if (vendor_capture_count() == 0 && vendor_backend.device_synchronize != NULL) {
        vendor_device_wait(device, "mem_free", &is_complete, &ignored);
    } else {
        vendor_poll(ask_streams, device, UINT64_MAX, "mem_free", &ignored);
    }
}

static int is_pinned(const struct vendor_block *block)
{
    return block->source == VENDOR_SOURCE_PINNED || block->source == VENDOR_SOURCE_REGISTERED;
}

/* Free, unregister, unmap or close the block's memory, and destroy the block. If the runtime fails,
   put the block back, unless forgets is set or the device is lost. */
static int32_t free_block(struct vendor_block *block, int forgets, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = block->device;
    int32_t status = DS_ACCEL_OK;

    switch (block->source) {
    case VENDOR_SOURCE_ALLOC:
        if (block->exports != NULL) {
            vendor_share_withdraw(block);
        }
        status = give_to_runtime(block, error);
        break;
    case VENDOR_SOURCE_PINNED:
        VENDOR_CALL(device, error, status, call_free_pinned(block, error));
        break;
    case VENDOR_SOURCE_REGISTERED:
        VENDOR_CALL(device, error, status, call_unregister(block, error));
        break;
    case VENDOR_SOURCE_WRAPPED:
        if (vendor_backend.native_unwrap != NULL) {
            VENDOR_DESTROY(
                device, vendor_backend.native_unwrap(device, DS_ACCEL_NATIVE_MEMORY, block->start));
        }
        break;
    case VENDOR_SOURCE_IMPORT:
        VENDOR_CALL(device, error, status,
                    vendor_backend.ipc_memory_close(device, block->handle, block->start, error));
        break;
    case VENDOR_SOURCE_MAPPED:
        VENDOR_CALL(device, error, status,
                    vendor_backend.vmem_unmap(device, block->start, block->size_bytes, error));
        break;
    }
    /* The block of a lost device is released even if the runtime fails. */
    if (status < 0 && !forgets && !vendor_is_lost(device)) {
        vendor_block_put_back(block);
        return status;
    }
    if (block->source == VENDOR_SOURCE_ALLOC) {
        vendor_usage_subtract(device->usage, block->size_bytes);
    } else if (block->source == VENDOR_SOURCE_MAPPED) {
        vendor_vmem_put(block->vmem);
    }
    vendor_block_end(block);
    return status;
}

int32_t vendor_memory_free(struct vendor_block *block, struct ds_accel_error *error)
{
    return free_block(block, 0, error);
}

void vendor_memory_forget(struct vendor_block *block)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    free_block(block, 1, &ignored);
}

/* The name of the slot that releases the memory, for messages. */
static const char *release_of(const struct vendor_block *block)
{
    switch (block->source) {
    case VENDOR_SOURCE_PINNED:
        return "mem_free_pinned";
    case VENDOR_SOURCE_REGISTERED:
        return "mem_unregister";
    case VENDOR_SOURCE_MAPPED:
        return "vmem_unmap";
    case VENDOR_SOURCE_IMPORT:
        return "ipc_memory_close";
    default:
        return "mem_free";
    }
}

static int32_t fail_unknown(const ds_accel_plugin_device_t *device, const void *pointer,
                            const char *slot, struct ds_accel_error *error)
{
    struct vendor_register *blocks = device->instance->blocks;
    char found[128] = "no live memory of this backend is there";
    const struct vendor_block *block;

    vendor_register_lock(blocks);
    block = vendor_block_look_up(blocks, device, pointer);
    if (block != NULL) {
        snprintf(found, sizeof(found), "%s() releases the %llu bytes at %p of device %u",
                 release_of(block), (unsigned long long)block->size_bytes, (void *)block->base,
                 block->device->index);
    }
    vendor_register_unlock(blocks);
    return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                       "%s: %p is not the start of a live allocation of device %u: %s", slot,
                       pointer, device->index, found);
}

/* Call the backend's memory_wait(), if there is one, after checking that the memory exists. */
static int32_t wait_to_release(ds_accel_plugin_device_t *device, const void *pointer,
                               uint32_t sources, const char *slot, struct ds_accel_error *error)
{
    if (vendor_backend.memory_wait != NULL && !vendor_block_exists(device, pointer, sources)) {
        return fail_unknown(device, pointer, slot, error);
    }
    return vendor_memory_wait(device, slot, error);
}

static int32_t vendor_mem_free(ds_accel_plugin_device_t *device, void *pointer,
                               struct ds_accel_error *error)
{
    struct vendor_block *block;
    int32_t status;

    if (pointer == NULL && (device != NULL || vendor_backend.ignores_null_first)) {
        return DS_ACCEL_OK;
    }
    if (device == NULL) {
        return vendor_null(error, "mem_free", "the device");
    }
    status = wait_to_release(device, pointer, SOURCE(ALLOC) | SOURCE(WRAPPED), "mem_free", error);
    if (status < 0) {
        return status;
    }
    block = vendor_block_take(device, pointer, SOURCE(ALLOC) | SOURCE(WRAPPED));
    if (block == NULL) {
        return fail_unknown(device, pointer, "mem_free", error);
    }
    wait_for_users(device);
    return vendor_memory_free(block, error);
}

/* Close all openings of an import but the last. The caller closes the last, which releases the
   import. */
static void close_openings(struct vendor_block *block)
{
    ds_accel_plugin_device_t *device = block->device;
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    for (; block->open_count > 1; block->open_count--) {
        VENDOR_DESTROY(
            device, vendor_backend.ipc_memory_close(device, block->handle, block->start, &ignored));
    }
}

/* Free the blocks that remain when the device is closed, in any order: a mapping holds a reference
   to its memory, and address reservations are released later. Returns the number of blocks, and
   adds their bytes to *bytes_out, except those of pinned and registered memory. */
uint32_t vendor_memory_free_all(ds_accel_plugin_device_t *device, uint64_t *bytes_out)
{
    struct vendor_register *blocks = device->instance->blocks;
    uint32_t count = 0;

    for (;;) {
        struct vendor_block *block;

        vendor_register_lock(blocks);
        block = vendor_block_any(blocks, device);
        if (block != NULL) {
            vendor_block_take_found(blocks, block);
        }
        vendor_register_unlock(blocks);
        if (block == NULL) {
            return count;
        }
        count++;
        *bytes_out += is_pinned(block) ? 0 : block->size_bytes;
        close_openings(block);
        vendor_memory_forget(block);
    }
}

/* ---- stream-ordered memory ------------------------------------------------------------------ */

static int32_t wait_for_events(ds_accel_plugin_stream_t *stream,
                               ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                               const char *slot, struct ds_accel_error *error)
{
    if (waits == NULL && wait_count > 0) {
        return vendor_null(error, slot, "waits");
    }
    for (uint32_t i = 0; i < wait_count; i++) {
        int32_t status = waits[i] == NULL ? vendor_null(error, slot, "an event")
                                          : vendor_stream_wait_for(stream, waits[i], slot, error);

        if (status < 0) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

/* Fail while the stream captures, because a graph would own the memory, and each launch would use
   another address. */
static int32_t check_not_capturing(ds_accel_plugin_stream_t *stream, const char *slot,
                                   struct ds_accel_error *error)
{
    uint32_t is_capturing = 0;
    int32_t status;

    if (vendor_backend.capture_check != NULL) {
        return vendor_backend.capture_check(stream->device, stream->native, slot, error);
    }
    status = vendor_stream_is_capturing(stream, &is_capturing, error);
    if (status == DS_ACCEL_OK && is_capturing) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: not while the stream captures", slot);
    }
    return status;
}

static int32_t vendor_mem_alloc_async(ds_accel_plugin_stream_t *stream, uint64_t size_bytes,
                                      uint32_t flags, ds_accel_plugin_event_t *const *waits,
                                      uint32_t wait_count, void **pointer_out,
                                      struct ds_accel_error *error)
{
    const char *slot = "mem_alloc_async";
    struct request request = {
        .stream = stream, .size_bytes = size_bytes, .kind = DS_ACCEL_POINTER_DEVICE, .slot = slot};
    int32_t status = vendor_check_stream(stream, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_not_capturing(stream, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = check_alloc(size_bytes, 0, flags, VENDOR_SOURCE_ALLOC, pointer_out, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = wait_for_events(stream, waits, wait_count, slot, error);
    }
    if (status < 0) {
        return status;
    }
    request.device = stream->device;
    return alloc_block(&request, pointer_out, error);
}

/* Remove the block from the register and the usage. The backend's free_in_order() calls this just
   before it frees the memory. */
static void count_freed(void *argument)
{
    struct vendor_block *block = argument;

    vendor_usage_subtract(block->device->usage, block->size_bytes);
    vendor_block_end(block);
}

static int32_t free_in_order(ds_accel_plugin_stream_t *stream, struct vendor_block *block,
                             struct ds_accel_error *error)
{
    int32_t status;

    VENDOR_WORK(stream->device, error, status,
                vendor_backend.free_in_order(stream->device, stream->native, block->start,
                                             block->start_size_bytes, count_freed, block, error));
    if (status < 0) {
        vendor_block_put_back(block);
    }
    return status;
}

/* Free memory after the stream's work. Memory of mem_alloc() is freed on the host after a wait for
   the stream. */
static int32_t free_behind(ds_accel_plugin_stream_t *stream, struct vendor_block *block,
                           struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    int32_t status;

    if (!block->is_async) {
        status = vendor_stream_wait(stream, UINT64_MAX, "mem_free_async", error);
        if (status < 0) {
            vendor_block_put_back(block);
            return status;
        }
        return vendor_memory_free(block, error);
    }
    VENDOR_WORK(device, error, status,
                vendor_backend.free_async(device, stream->native, block->start, error));
    if (status < 0 && !vendor_is_lost(device)) {
        vendor_block_put_back(block);
        return status;
    }
    vendor_usage_subtract(device->usage, block->size_bytes);
    vendor_block_destroy(block);
    return status;
}

static int32_t vendor_mem_free_async(ds_accel_plugin_stream_t *stream, void *pointer,
                                     ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                                     struct ds_accel_error *error)
{
    const char *slot = "mem_free_async";
    struct vendor_block *block;
    int32_t status = vendor_check_stream(stream, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_not_capturing(stream, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = wait_for_events(stream, waits, wait_count, slot, error);
    }
    if (status < 0 || pointer == NULL) {
        return status;
    }
    block = vendor_backend.free_in_order != NULL
                ? vendor_block_take_in_order(stream->device, pointer, SOURCE(ALLOC))
                : vendor_block_take(stream->device, pointer, SOURCE(ALLOC));
    if (block == NULL) {
        return fail_unknown(stream->device, pointer, slot, error);
    }
    return vendor_backend.free_in_order != NULL ? free_in_order(stream, block, error)
                                                : free_behind(stream, block, error);
}

/* ---- pinned memory -------------------------------------------------------------------------- */

/* If status is ERR_LIMIT and the process has a limit for locked memory, write the limit to the
   error's message; vendor_code and vendor_text stay. Returns status. */
static int32_t tell_limit(int32_t status, uint64_t size_bytes, const char *slot,
                          struct ds_accel_error *error)
{
    struct ds_accel_error details;
    char code[96] = "";
    char hard[24] = "unlimited";
    struct rlimit limit;

    if (status != DS_ACCEL_ERR_LIMIT || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY) {
        return status;
    }
    if (limit.rlim_max != RLIM_INFINITY) {
        snprintf(hard, sizeof(hard), "%llu", (unsigned long long)limit.rlim_max);
    }
    if (error->vendor_text[0] != '\0') {
        snprintf(code, sizeof(code), "; %.64s (%lld)", error->vendor_text,
                 (long long)error->vendor_code);
    }
    memset(&details, 0, sizeof(details));
    details.code = status;
    details.vendor_code = error->vendor_code;
    memcpy(details.vendor_text, error->vendor_text, sizeof(details.vendor_text));
    snprintf(details.message, sizeof(details.message),
             "%s: %llu bytes cannot be locked: RLIMIT_MEMLOCK is %llu bytes (soft), %s (hard): "
             "raise it with \"ulimit -l\" or LimitMEMLOCK= of the service%s",
             slot, (unsigned long long)size_bytes, (unsigned long long)limit.rlim_cur, hard, code);
    ds_accel_write(error, &details, sizeof(details));
    return status;
}

/* Check the flags. WRITE_COMBINED and HUGE_PAGES are only hints: they are dropped if the runtime
   does not support them. Any other unsupported flag fails with UNSUPPORTED, an unknown flag with
   INVALID. */
static int32_t check_pinned_flags(uint32_t *flags, const char *slot, struct ds_accel_error *error)
{
    const uint32_t hints = DS_ACCEL_PINNED_WRITE_COMBINED | DS_ACCEL_PINNED_HUGE_PAGES;
    int32_t status = vendor_check_flags(*flags, PINNED_FLAGS, slot, error);

    if (status < 0) {
        return status;
    }
    *flags &= vendor_backend.pinned_flags | ~hints;
    if ((*flags & ~vendor_backend.pinned_flags) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "%s: this runtime has no pinned memory with flags 0x%x", slot,
                           *flags & ~vendor_backend.pinned_flags);
    }
    return DS_ACCEL_OK;
}

static int32_t ask_pinned(const struct vendor_block *block, uint64_t size_bytes,
                          uint64_t align_bytes, void **start_out, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = block->device;
    int32_t status;

    if (vendor_backend.alloc_pinned_aligned != NULL) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.alloc_pinned_aligned(device, size_bytes, align_bytes,
                                                        block->flags, start_out, error));
    } else {
        VENDOR_CALL(
            device, error, status,
            vendor_backend.alloc_pinned(device, size_bytes, block->flags, start_out, error));
    }
    return tell_limit(status, size_bytes, "mem_alloc_pinned", error);
}

/* Allocate the memory of a pinned block. Most runtimes allocate whole pages, so a larger size is
   requested only if the first result is not aligned. */
static int32_t fill_pinned(struct vendor_block *block, uint64_t align_bytes,
                           struct ds_accel_error *error)
{
    int32_t status = ask_pinned(block, block->size_bytes, align_bytes, &block->start, error);

    block->start_size_bytes = block->size_bytes;
    if (status == DS_ACCEL_OK && ((uintptr_t)block->start & (align_bytes - 1)) != 0) {
        VENDOR_CALL(block->device, error, status, call_free_pinned(block, error));
        block->start_size_bytes = block->size_bytes + align_bytes - 1;
        if (status == DS_ACCEL_OK) {
            status = ask_pinned(block, block->start_size_bytes, align_bytes, &block->start, error);
        }
    }
    block->base = round_up((uintptr_t)block->start, align_bytes);
    return status;
}

static int32_t vendor_mem_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                       uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                       struct ds_accel_error *error)
{
    const char *slot = "mem_alloc_pinned";
    uint64_t align = align_bytes == 0 ? (uint64_t)sysconf(_SC_PAGESIZE) : align_bytes;
    struct vendor_block *block;
    struct vendor_block made;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_pinned_flags(&flags, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = check_alloc(size_bytes, align, 0, VENDOR_SOURCE_PINNED, pointer_out, slot, error);
    }
    if (status == DS_ACCEL_OK && vendor_backend.check_size != NULL) {
        status = vendor_backend.check_size(device, size_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    block = size_bytes <= (uint64_t)INT64_MAX - MAX_ALIGN_BYTES
                ? vendor_block_create(device, VENDOR_SOURCE_PINNED, DS_ACCEL_POINTER_PINNED)
                : NULL;
    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: the host has no %llu bytes", slot,
                           (unsigned long long)size_bytes);
    }
    block->flags = flags;
    block->size_bytes = size_bytes;
    status = fill_pinned(block, align, error);
    if (status < 0) {
        vendor_block_destroy(block);
        return status;
    }
    made = *block;
    status = vendor_block_enter(block, slot, error);
    if (status < 0) {
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        VENDOR_DESTROY(device, call_free_pinned(&made, &ignored));
        return status;
    }
    *pointer_out = (void *)made.base;
    return DS_ACCEL_OK;
}

static int32_t end_host_memory(ds_accel_plugin_device_t *device, const void *pointer,
                               uint32_t sources, const char *slot, struct ds_accel_error *error)
{
    struct vendor_block *block;
    int32_t status = DS_ACCEL_OK;

    if (device == NULL) {
        return vendor_null(error, slot, "the device");
    }
    if ((sources & SOURCE(PINNED)) != 0) {
        status = wait_to_release(device, pointer, sources, slot, error);
    }
    if (status < 0) {
        return status;
    }
    block = vendor_block_take(device, pointer, sources);
    if (block == NULL) {
        return fail_unknown(device, pointer, slot, error);
    }
    wait_for_users(device); /* queued copies may use the memory */
    return vendor_memory_free(block, error);
}

static int32_t vendor_mem_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                                      struct ds_accel_error *error)
{
    if (pointer == NULL && (device != NULL || vendor_backend.ignores_null_first)) {
        return DS_ACCEL_OK;
    }
    return end_host_memory(device, pointer, SOURCE(PINNED), "mem_free_pinned", error);
}

/* The block enters the register before the runtime is called, so that two threads cannot both
   register the range. */
static int32_t vendor_mem_register(ds_accel_plugin_device_t *device, void *pointer,
                                   uint64_t size_bytes, uint32_t flags,
                                   struct ds_accel_error *error)
{
    struct vendor_block *block;
    int32_t status = vendor_check_device(device, "mem_register", error);

    if (status == DS_ACCEL_OK) {
        status = check_pinned_flags(&flags, "mem_register", error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer == NULL || size_bytes == 0 || size_bytes > UINTPTR_MAX - (uintptr_t)pointer) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_register: %p with %llu bytes is no range", pointer,
                           (unsigned long long)size_bytes);
    }
    block = vendor_block_create(device, VENDOR_SOURCE_REGISTERED, DS_ACCEL_POINTER_PINNED);
    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_register: no memory");
    }
    block->base = (uintptr_t)pointer;
    block->size_bytes = size_bytes;
    block->start = pointer;
    block->start_size_bytes = size_bytes;
    block->flags = flags;
    status = vendor_block_enter(block, "mem_register", error);
    if (status < 0) {
        return status;
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.host_register(device, pointer, size_bytes, flags, error));
    if (status < 0) {
        vendor_block_end(block);
    } else {
        vendor_block_confirm(block);
    }
    return tell_limit(status, size_bytes, "mem_register", error);
}

static int32_t vendor_mem_unregister(ds_accel_plugin_device_t *device, void *pointer,
                                     struct ds_accel_error *error)
{
    return end_host_memory(device, pointer, SOURCE(REGISTERED), "mem_unregister", error);
}

/* ---- queries -------------------------------------------------------------------------------- */

static int32_t vendor_mem_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                         void **device_pointer_out, struct ds_accel_error *error)
{
    const struct vendor_block *block;
    char *start = NULL;
    void *address = NULL;
    int32_t status = vendor_check_device(device, "mem_device_pointer", error);

    if (status < 0) {
        return status;
    }
    if (device_pointer_out == NULL) {
        return vendor_null(error, "mem_device_pointer", "device_pointer_out");
    }
    if (vendor_backend.reads_host_memory) {
        *device_pointer_out = host_pointer;
        return host_pointer != NULL ? DS_ACCEL_OK
                                    : vendor_null(error, "mem_device_pointer", "host_pointer");
    }
    vendor_register_lock(device->instance->blocks);
    block = vendor_block_find(device->instance->blocks, 0, host_pointer);
    if (block != NULL && is_pinned(block) && block->phase == VENDOR_PHASE_USABLE &&
        (block->flags & DS_ACCEL_PINNED_MAPPED) != 0) {
        start = block->start;
    }
    vendor_register_unlock(device->instance->blocks);
    if (start == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_device_pointer: %p is not in pinned memory with "
                           "DS_ACCEL_PINNED_MAPPED",
                           host_pointer);
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.host_device_pointer(device, start, &address, error));
    if (status == DS_ACCEL_OK) {
        *device_pointer_out = (char *)address + ((char *)host_pointer - start);
    }
    return status;
}

static int32_t vendor_mem_pointer_info(ds_accel_plugin_instance_t *instance,
                                       ds_accel_plugin_device_t *device, const void *pointer,
                                       struct ds_accel_pointer_info *info_out,
                                       struct ds_accel_error *error)
{
    struct ds_accel_pointer_info info;
    const struct vendor_block *block;
    int32_t status = vendor_check_instance(instance, "mem_pointer_info", error);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return vendor_null(error, "mem_pointer_info", "info_out");
    }
    memset(&info, 0, sizeof(info));
    info.device_index = -1;
    vendor_register_lock(instance->blocks);
    block = vendor_block_look_up(instance->blocks, device, pointer);
    if (block != NULL) {
        info.kind = block->kind;
        info.device_index = (int32_t)block->device->index;
        info.base_address = block->base;
        info.size_bytes = block->size_bytes;
        info.allocation_id = block->id;
    }
    vendor_register_unlock(instance->blocks);
    if (block == NULL && pointer != NULL && vendor_backend.pointer_info != NULL) {
        vendor_backend.pointer_info(instance, pointer, &info);
    }
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

void vendor_memory_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    table->mem_pointer_info = vendor_mem_pointer_info;
    if (backend->alloc != NULL || backend->alloc_aligned != NULL) {
        table->mem_alloc = vendor_mem_alloc;
        table->mem_free = vendor_mem_free;
        table->mem_alloc_managed = backend->alloc_managed != NULL ? vendor_mem_alloc_managed : NULL;
    }
    if (backend->alloc_async != NULL &&
        (backend->free_async != NULL || backend->free_in_order != NULL)) {
        table->mem_alloc_async = vendor_mem_alloc_async;
        table->mem_free_async = vendor_mem_free_async;
    }
    if (backend->alloc_pinned != NULL || backend->alloc_pinned_aligned != NULL) {
        table->mem_alloc_pinned = vendor_mem_alloc_pinned;
        table->mem_free_pinned = vendor_mem_free_pinned;
    }
    if (backend->host_register != NULL) {
        table->mem_register = vendor_mem_register;
        table->mem_unregister = vendor_mem_unregister;
    }
    table->mem_device_pointer = backend->host_device_pointer != NULL || backend->reads_host_memory
                                    ? vendor_mem_device_pointer
                                    : NULL;
}
