/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "synthetic.h"

#include "base/fork.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECES 65536u
#define FIRST_ADDRESS (UINT64_C(1) << 40)
#define GRANULE (UINT64_C(2) << 20)

struct ds_accel_plugin_device {
    int unused;
};
struct ds_accel_plugin_event {
    int is_recorded;
};
struct ds_accel_plugin_vmem {
    uint64_t size_bytes;
};

/* Guards all variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t address;
    uint64_t size_bytes; /* 0: free */
} pieces[PIECES];
static uint64_t next_address = FIRST_ADDRESS;
static uint64_t memory;
static uint64_t used;
static uint64_t peak;
static struct ds_accel_plugin table;
static struct ds_accel_plugin_device device;
static struct ds_accel_plugin_stream streams[SYNTHETIC_STREAMS];

static void die(const char *what)
{
    fprintf(stderr, "synthetic backend: %s\n", what);
    abort();
}

static unsigned place_count; /* number of entries with an address */

static unsigned place_of(uint64_t address)
{
    unsigned i = (unsigned)((address >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % PIECES;

    for (unsigned n = 0; n < PIECES; n++, i = (i + 1) % PIECES) {
        if (pieces[i].address == address || pieces[i].address == 0) {
            return i;
        }
    }
    die("too many pieces");
    return 0;
}

/* Remove the entries of freed memory from the table: addresses are never reused. */
static void sweep(void)
{
    static uint64_t kept[PIECES][2];
    unsigned count = 0;

    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i].size_bytes != 0) {
            kept[count][0] = pieces[i].address;
            kept[count++][1] = pieces[i].size_bytes;
        }
    }
    memset(pieces, 0, sizeof(pieces));
    for (unsigned i = 0; i < count; i++) {
        unsigned place = place_of(kept[i][0]);

        pieces[place].address = kept[i][0];
        pieces[place].size_bytes = kept[i][1];
    }
    place_count = count;
}

static int32_t take(uint64_t size_bytes, uint64_t align_bytes, uint64_t *address_out)
{
    unsigned i;

    if (size_bytes > memory - used) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    used += size_bytes;
    peak = used > peak ? used : peak;
    if (*address_out == 0) {
        /* 512 unused bytes follow each block, so that no address has a larger alignment by
         * accident. */
        next_address = (next_address + align_bytes - 1) / align_bytes * align_bytes;
        *address_out = next_address;
        next_address += size_bytes + 512;
    }
    if (place_count > PIECES / 2) {
        sweep();
    }
    i = place_of(*address_out);
    place_count += pieces[i].address == 0;
    pieces[i].address = *address_out;
    pieces[i].size_bytes = size_bytes;
    return DS_ACCEL_OK;
}

static int32_t mem_alloc(ds_accel_plugin_device_t *given, uint64_t size_bytes, uint64_t align_bytes,
                         uint32_t flags, void **pointer_out, struct ds_accel_error *error)
{
    uint64_t address = 0;
    int32_t status;

    (void)given;
    (void)flags;
    (void)error;
    pthread_mutex_lock(&lock);
    status = take(size_bytes, align_bytes, &address);
    pthread_mutex_unlock(&lock);
    if (status >= 0) {
        *pointer_out = (void *)(uintptr_t)address;
    }
    return status;
}

static int32_t mem_free(ds_accel_plugin_device_t *given, void *pointer,
                        struct ds_accel_error *error)
{
    unsigned i;

    (void)given;
    (void)error;
    pthread_mutex_lock(&lock);
    i = place_of((uint64_t)(uintptr_t)pointer);
    if (pieces[i].size_bytes == 0) {
        die("what is not allocated was freed");
    }
    used -= pieces[i].size_bytes;
    pieces[i].size_bytes = 0;
    pthread_mutex_unlock(&lock);
    return DS_ACCEL_OK;
}

static int32_t mem_info(ds_accel_plugin_device_t *given, struct ds_accel_memory_info *info_out,
                        struct ds_accel_error *error)
{
    (void)given;
    (void)error;
    info_out->total_bytes = memory;
    info_out->available_bytes = memory - used;
    info_out->valid = DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE;
    return DS_ACCEL_OK;
}

static int32_t event_create(ds_accel_plugin_device_t *given, uint32_t flags,
                            ds_accel_plugin_event_t **event_out, struct ds_accel_error *error)
{
    (void)given;
    (void)flags;
    (void)error;
    *event_out = calloc(1, sizeof(**event_out));
    return *event_out != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

static void event_destroy(ds_accel_plugin_event_t *event)
{
    free(event);
}

static int32_t event_record(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *error)
{
    (void)stream;
    (void)error;
    __atomic_store_n(&event->is_recorded, 1, __ATOMIC_RELAXED);
    return DS_ACCEL_OK;
}

static int32_t event_done(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    (void)error;
    return __atomic_load_n(&event->is_recorded, __ATOMIC_RELAXED) ? DS_ACCEL_OK
                                                                  : DS_ACCEL_ERR_STATE;
}

static int32_t event_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                 struct ds_accel_error *error)
{
    (void)timeout_ns;
    return event_done(event, error);
}

static int32_t wait_event(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                          struct ds_accel_error *error)
{
    __atomic_fetch_add(&stream->wait_count, 1, __ATOMIC_RELAXED);
    return event_done(event, error);
}

static int32_t synchronize(ds_accel_plugin_device_t *given, uint64_t timeout_ns,
                           struct ds_accel_error *error)
{
    (void)given;
    (void)timeout_ns;
    (void)error;
    return DS_ACCEL_OK;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static int32_t vmem_granularity(ds_accel_plugin_device_t *given, uint32_t flags,
                                uint64_t *minimum_out, uint64_t *recommended_out,
                                struct ds_accel_error *error)
{
    (void)given;
    (void)flags;
    (void)error;
    *minimum_out = GRANULE;
    *recommended_out = GRANULE;
    return DS_ACCEL_OK;
}

static int32_t vmem_reserve(ds_accel_plugin_device_t *given, uint64_t size_bytes,
                            uint64_t align_bytes, void *hint, uint32_t flags, void **address_out,
                            struct ds_accel_error *error)
{
    (void)given;
    (void)hint;
    (void)flags;
    (void)error;
    pthread_mutex_lock(&lock);
    next_address = (next_address + align_bytes - 1) / align_bytes * align_bytes;
    *address_out = (void *)(uintptr_t)next_address;
    next_address += size_bytes;
    pthread_mutex_unlock(&lock);
    return DS_ACCEL_OK;
}

static int32_t vmem_release(ds_accel_plugin_device_t *given, void *address, uint64_t size_bytes,
                            struct ds_accel_error *error)
{
    uint64_t start = (uint64_t)(uintptr_t)address;

    (void)given;
    (void)error;
    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i].size_bytes != 0 && pieces[i].address - start < size_bytes) {
            die("a range with memory was released");
        }
    }
    return DS_ACCEL_OK;
}

static int32_t vmem_create(ds_accel_plugin_device_t *given, uint64_t size_bytes, uint32_t flags,
                           ds_accel_plugin_vmem_t **vmem_out, struct ds_accel_error *error)
{
    (void)given;
    (void)flags;
    (void)error;
    if (size_bytes % GRANULE != 0 || size_bytes > memory - used) {
        return size_bytes % GRANULE != 0 ? DS_ACCEL_ERR_INVALID : DS_ACCEL_ERR_NO_MEMORY;
    }
    *vmem_out = malloc(sizeof(**vmem_out));
    if (*vmem_out == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    (*vmem_out)->size_bytes = size_bytes;
    return DS_ACCEL_OK;
}

static void vmem_destroy(ds_accel_plugin_vmem_t *vmem)
{
    free(vmem);
}

static int32_t vmem_map(ds_accel_plugin_device_t *given, void *address, uint64_t size_bytes,
                        ds_accel_plugin_vmem_t *vmem, uint64_t offset_bytes,
                        struct ds_accel_error *error)
{
    uint64_t where = (uint64_t)(uintptr_t)address;
    int32_t status;

    (void)given;
    (void)error;
    if (offset_bytes != 0 || vmem->size_bytes != size_bytes) {
        die("a mapping that is not all of the memory");
    }
    pthread_mutex_lock(&lock);
    status = take(size_bytes, 1, &where);
    pthread_mutex_unlock(&lock);
    return status;
}

static int32_t vmem_unmap(ds_accel_plugin_device_t *given, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    if (pieces[place_of((uint64_t)(uintptr_t)address)].size_bytes != size_bytes) {
        die("unmapped what was not mapped so");
    }
    return mem_free(given, address, error);
}

static int32_t vmem_set_access(ds_accel_plugin_device_t *given, void *address, uint64_t size_bytes,
                               uint32_t access, struct ds_accel_error *error)
{
    (void)given;
    (void)address;
    (void)size_bytes;
    (void)access;
    (void)error;
    return DS_ACCEL_OK;
}

const struct ds_accel_plugin *synthetic_start(uint64_t memory_bytes)
{
    memset(pieces, 0, sizeof(pieces));
    memset(&table, 0, sizeof(table));
    memory = memory_bytes;
    used = 0;
    peak = 0;
    table.mem_alloc = mem_alloc;
    table.mem_free = mem_free;
    table.mem_info = mem_info;
    table.event_create = event_create;
    table.event_destroy = event_destroy;
    table.event_record = event_record;
    table.event_query = event_done;
    table.event_synchronize = event_synchronize;
    table.stream_wait_event = wait_event;
    table.device_synchronize = synchronize;
    table.vmem_granularity = vmem_granularity;
    table.vmem_reserve = vmem_reserve;
    table.vmem_release = vmem_release;
    table.vmem_create = vmem_create;
    table.vmem_destroy = vmem_destroy;
    table.vmem_map = vmem_map;
    table.vmem_unmap = vmem_unmap;
    table.vmem_set_access = vmem_set_access;
    ds_accel__table_fill(&table, DS_ACCEL__STUB_UNSUPPORTED);
    return &table;
}

ds_accel_plugin_device_t *synthetic_device(void)
{
    return &device;
}

ds_accel_plugin_stream_t *synthetic_stream(unsigned index)
{
    return &streams[index];
}

uint64_t synthetic_used(void)
{
    return used;
}

uint64_t synthetic_peak(bool is_reset)
{
    uint64_t was = peak;

    if (is_reset) {
        peak = used;
    }
    return was;
}
