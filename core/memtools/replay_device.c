/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated device that only counts memory, as a plugin's table. The caching allocator runs over
 * it when a recorded trace is replayed with other settings. Addresses are handed out once, in
 * ascending order, so that fragmentation of device memory has no effect, as on devices whose
 * drivers can map any pages at an address. There is no memory at the addresses, and they must not
 * be accessed.
 */
#include "base/text.h"
#include "base/trust.h"
#include "host/registry.h"
#include "memtools/memory_replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAME "replay"
#define FIRST_ADDRESS (UINT64_C(1) << 32)
#define LAST_ADDRESS (UINT64_C(1) << 62)
#define PAGE_BYTES UINT64_C(4096)

/* ---- addresses ------------------------------------------------------------------------------ */

static size_t slot_of(const struct ds_accel__address_map *map, uint64_t address)
{
    uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(hash >> 20) & (map->capacity - 1);
}

/* The slot of an address, or the empty slot where it would be inserted. */
static size_t find_slot(const struct ds_accel__address_map *map, uint64_t address)
{
    size_t slot = slot_of(map, address);

    assert(map->count < map->capacity && (map->capacity & (map->capacity - 1)) == 0);
    while (map->entries[slot].address != 0 && map->entries[slot].address != address) {
        slot = (slot + 1) & (map->capacity - 1);
    }
    return slot;
}

static bool grow(struct ds_accel__address_map *map)
{
    struct ds_accel__address_map larger = {.capacity = map->capacity > 0 ? map->capacity * 2 : 64};

    larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].address != 0) {
            larger.entries[find_slot(&larger, map->entries[i].address)] = map->entries[i];
        }
    }
    larger.count = map->count;
    free(map->entries);
    *map = larger;
    return true;
}

bool ds_accel__address_put(struct ds_accel__address_map *map, uint64_t address, uintptr_t value)
{
    size_t slot;

    assert(address != 0 && value != 0);
    if (map->count * 2 >= map->capacity && !grow(map)) {
        return false;
    }
    slot = find_slot(map, address);
    map->count += map->entries[slot].address == 0;
    map->entries[slot] = (struct ds_accel__address_entry){address, value};
    return true;
}

uintptr_t ds_accel__address_find(const struct ds_accel__address_map *map, uint64_t address)
{
    return map->capacity > 0 && address != 0 ? map->entries[find_slot(map, address)].value : 0;
}

uintptr_t ds_accel__address_take(struct ds_accel__address_map *map, uint64_t address)
{
    uintptr_t value = ds_accel__address_find(map, address);
    size_t hole;

    if (value == 0) {
        return 0;
    }
    hole = find_slot(map, address);
    map->entries[hole] = (struct ds_accel__address_entry){0, 0};
    assert(map->count > 0);
    map->count--;
    /* The removed entry may have displaced later ones: insert them again. */
    for (size_t slot = (hole + 1) & (map->capacity - 1); map->entries[slot].address != 0;
         slot = (slot + 1) & (map->capacity - 1)) {
        struct ds_accel__address_entry entry = map->entries[slot];

        map->entries[slot] = (struct ds_accel__address_entry){0, 0};
        map->entries[find_slot(map, entry.address)] = entry;
    }
    return value;
}

void ds_accel__address_clear(struct ds_accel__address_map *map)
{
    free(map->entries);
    memset(map, 0, sizeof(*map));
}

/* ---- pieces of memory ----------------------------------------------------------------------- */

/* A piece of physical memory, made by vmem_create() or by one mem_alloc(). */
struct piece {
    struct ds_accel__replay_device *device;
    uint64_t size_bytes;
    uint64_t mapped_count;
    bool has_owner; /* neither vmem_destroy() nor mem_free() has been called */
};

static struct ds_accel__replay_device *device_of(ds_accel_plugin_device_t *handle)
{
    return (struct ds_accel__replay_device *)handle;
}

static int32_t fail(struct ds_accel_error *error, int32_t status, const char *message)
{
    error->code = status;
    ds_accel__copy(error->message, sizeof(error->message), message);
    return status;
}

static int32_t probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                     struct ds_accel_error *error)
{
    (void)host;
    (void)verdict;
    return fail(error, DS_ACCEL_ERR_UNSUPPORTED, "it is no backend");
}

static int32_t init(const struct ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
                    struct ds_accel_error *error)
{
    (void)host;
    (void)instance_out;
    return fail(error, DS_ACCEL_ERR_UNSUPPORTED, "it is no backend");
}

static void shutdown_instance(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static int32_t device_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                            struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    *count_out = 1;
    return DS_ACCEL_OK;
}

static int32_t device_open(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    (void)instance;
    (void)device_index;
    (void)device_out;
    return fail(error, DS_ACCEL_ERR_UNSUPPORTED, "it is made, not opened");
}

static void device_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static int32_t device_info(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info_out,
                           struct ds_accel_error *error)
{
    (void)error;
    ds_accel__copy(info_out->name, sizeof(info_out->name), NAME);
    info_out->total_memory_bytes = device_of(device)->capacity_bytes;
    info_out->allocation_align_bytes = PAGE_BYTES;
    info_out->flags = device_of(device)->has_vmem ? DS_ACCEL_FLAG_VIRTUAL_MEMORY : 0;
    info_out->flags_known = DS_ACCEL_FLAGS_ALL;
    return DS_ACCEL_OK;
}

/* ---- streams and events: no call ever waits ------------------------------------------------- */

static int32_t device_synchronize(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                  struct ds_accel_error *error)
{
    (void)device;
    (void)timeout_ns;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t stream_synchronize(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                  struct ds_accel_error *error)
{
    (void)stream;
    (void)timeout_ns;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t stream_query(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    (void)stream;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t stream_wait_event(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                                 struct ds_accel_error *error)
{
    (void)stream;
    (void)event;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t event_create(ds_accel_plugin_device_t *device, uint32_t flags,
                            ds_accel_plugin_event_t **event_out, struct ds_accel_error *error)
{
    static char event; /* all events share one handle */

    (void)device;
    (void)flags;
    (void)error;
    *event_out = (ds_accel_plugin_event_t *)&event;
    return DS_ACCEL_OK;
}

static void event_destroy(ds_accel_plugin_event_t *event)
{
    (void)event;
}

static int32_t event_record(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *error)
{
    (void)event;
    (void)stream;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t event_query(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    (void)event;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t event_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                 struct ds_accel_error *error)
{
    (void)event;
    (void)timeout_ns;
    (void)error;
    return DS_ACCEL_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Reserve an aligned range of addresses; 0 if too few are left. */
static uint64_t take_addresses(struct ds_accel__replay_device *device, uint64_t size_bytes,
                               uint64_t align_bytes)
{
    uint64_t align = align_bytes > PAGE_BYTES ? align_bytes : PAGE_BYTES;
    uint64_t address = device->next_address;

    if (align > LAST_ADDRESS / 2 || size_bytes > LAST_ADDRESS / 2) {
        return 0;
    }
    address = (address + align - 1) & ~(align - 1);
    if (address + size_bytes > LAST_ADDRESS) {
        return 0;
    }
    assert(address >= device->next_address && (address & (align - 1)) == 0);
    device->next_address = address + size_bytes;
    return address;
}

static int32_t make_piece(struct ds_accel__replay_device *device, uint64_t size_bytes,
                          struct piece **piece_out, struct ds_accel_error *error)
{
    struct piece *piece;

    if (size_bytes == 0) {
        return fail(error, DS_ACCEL_ERR_INVALID, "the size is 0");
    }
    if (size_bytes > device->capacity_bytes - device->used_bytes) {
        device->failure_count++;
        return fail(error, DS_ACCEL_ERR_NO_MEMORY, "the simulated device is full");
    }
    piece = malloc(sizeof(*piece));
    if (piece == NULL) {
        return fail(error, DS_ACCEL_ERR_NO_MEMORY, "host memory is exhausted");
    }
    *piece = (struct piece){.device = device, .size_bytes = size_bytes, .has_owner = true};
    device->used_bytes += size_bytes;
    assert(device->used_bytes <= device->capacity_bytes);
    device->alloc_count++;
    if (device->used_bytes > device->peak_bytes) {
        device->peak_bytes = device->used_bytes;
    }
    *piece_out = piece;
    return DS_ACCEL_OK;
}

/* Free the piece if it has neither an owner nor a mapping. */
static void drop_piece(struct piece *piece)
{
    if (!piece->has_owner && piece->mapped_count == 0) {
        assert(piece->device->used_bytes >= piece->size_bytes);
        piece->device->used_bytes -= piece->size_bytes;
        free(piece);
    }
}

static int32_t mem_alloc(ds_accel_plugin_device_t *handle, uint64_t size_bytes,
                         uint64_t align_bytes, uint32_t flags, void **pointer_out,
                         struct ds_accel_error *error)
{
    struct ds_accel__replay_device *device = device_of(handle);
    uint64_t address = take_addresses(device, size_bytes, align_bytes);
    struct piece *piece;
    int32_t status;

    (void)flags;
    if (address == 0) {
        return fail(error, DS_ACCEL_ERR_NO_MEMORY, "no addresses are available");
    }
    status = make_piece(device, size_bytes, &piece, error);
    if (status < 0) {
        return status;
    }
    if (!ds_accel__address_put(&device->pieces, address, (uintptr_t)piece)) {
        piece->has_owner = false;
        drop_piece(piece);
        return fail(error, DS_ACCEL_ERR_NO_MEMORY, "host memory is exhausted");
    }
    *pointer_out = (void *)(uintptr_t)address;
    return DS_ACCEL_OK;
}

static int32_t mem_free(ds_accel_plugin_device_t *handle, void *pointer,
                        struct ds_accel_error *error)
{
    struct piece *piece =
        (struct piece *)ds_accel__address_take(&device_of(handle)->pieces, (uintptr_t)pointer);

    if (pointer == NULL) {
        return DS_ACCEL_OK;
    }
    if (piece == NULL) {
        return fail(error, DS_ACCEL_ERR_INVALID, "the pointer is not of mem_alloc()");
    }
    assert(piece->mapped_count == 0);
    piece->has_owner = false;
    drop_piece(piece);
    return DS_ACCEL_OK;
}

static int32_t mem_info(ds_accel_plugin_device_t *handle, struct ds_accel_memory_info *info_out,
                        struct ds_accel_error *error)
{
    const struct ds_accel__replay_device *device = device_of(handle);

    (void)error;
    info_out->valid = DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE | DS_ACCEL_MEMORY_PROCESS;
    info_out->total_bytes = device->capacity_bytes;
    info_out->available_bytes = device->capacity_bytes - device->used_bytes;
    info_out->process_bytes = device->used_bytes;
    info_out->limit_bytes = 0;
    info_out->limit_source[0] = '\0';
    return DS_ACCEL_OK;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static int32_t vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                                uint64_t *minimum_bytes_out, uint64_t *recommended_bytes_out,
                                struct ds_accel_error *error)
{
    (void)device;
    (void)flags;
    (void)error;
    *minimum_bytes_out = DS_ACCEL__REPLAY_GRANULE_BYTES;
    *recommended_bytes_out = DS_ACCEL__REPLAY_GRANULE_BYTES;
    return DS_ACCEL_OK;
}

static int32_t vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                            uint64_t align_bytes, void *hint, uint32_t flags, void **address_out,
                            struct ds_accel_error *error)
{
    uint64_t align = align_bytes > DS_ACCEL__REPLAY_GRANULE_BYTES ? align_bytes
                                                                  : DS_ACCEL__REPLAY_GRANULE_BYTES;
    uint64_t address = take_addresses(device_of(device), size_bytes, align);

    (void)hint;
    (void)flags;
    if (address == 0) {
        return fail(error, DS_ACCEL_ERR_NO_MEMORY, "no addresses are available");
    }
    *address_out = (void *)(uintptr_t)address;
    return DS_ACCEL_OK;
}

static int32_t vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                            struct ds_accel_error *error)
{
    (void)device;
    (void)address;
    (void)size_bytes;
    (void)error;
    return DS_ACCEL_OK;
}

static int32_t vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                           ds_accel_plugin_vmem_t **vmem_out, struct ds_accel_error *error)
{
    struct piece *piece;
    int32_t status;

    (void)flags;
    if (size_bytes % DS_ACCEL__REPLAY_GRANULE_BYTES != 0) {
        return fail(error, DS_ACCEL_ERR_INVALID, "the size is no multiple of the granularity");
    }
    status = make_piece(device_of(device), size_bytes, &piece, error);
    if (status >= 0) {
        *vmem_out = (ds_accel_plugin_vmem_t *)piece;
    }
    return status;
}

static void vmem_destroy(ds_accel_plugin_vmem_t *vmem)
{
    struct piece *piece = (struct piece *)vmem;

    if (piece != NULL) {
        piece->has_owner = false;
        drop_piece(piece);
    }
}

static int32_t vmem_map(ds_accel_plugin_device_t *handle, void *address, uint64_t size_bytes,
                        ds_accel_plugin_vmem_t *vmem, uint64_t vmem_offset_bytes,
                        struct ds_accel_error *error)
{
    struct ds_accel__replay_device *device = device_of(handle);
    struct piece *piece = (struct piece *)vmem;

    if (address == NULL || vmem_offset_bytes > piece->size_bytes ||
        size_bytes > piece->size_bytes - vmem_offset_bytes) {
        return fail(error, DS_ACCEL_ERR_INVALID, "the range is not of this memory");
    }
    if (ds_accel__address_find(&device->pieces, (uintptr_t)address) != 0) {
        return fail(error, DS_ACCEL_ERR_INVALID, "memory is mapped there already");
    }
    if (!ds_accel__address_put(&device->pieces, (uintptr_t)address, (uintptr_t)piece)) {
        return fail(error, DS_ACCEL_ERR_NO_MEMORY, "host memory is exhausted");
    }
    piece->mapped_count++;
    return DS_ACCEL_OK;
}

static int32_t vmem_unmap(ds_accel_plugin_device_t *handle, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    struct piece *piece =
        (struct piece *)ds_accel__address_take(&device_of(handle)->pieces, (uintptr_t)address);

    (void)size_bytes;
    if (piece == NULL) {
        return fail(error, DS_ACCEL_ERR_INVALID, "nothing is mapped there");
    }
    piece->mapped_count--;
    drop_piece(piece);
    return DS_ACCEL_OK;
}

static int32_t vmem_set_access(ds_accel_plugin_device_t *accessor, void *address,
                               uint64_t size_bytes, uint32_t access, struct ds_accel_error *error)
{
    (void)accessor;
    (void)address;
    (void)size_bytes;
    (void)access;
    (void)error;
    return DS_ACCEL_OK;
}

/* ---- the device ----------------------------------------------------------------------------- */

static const struct ds_accel_plugin functions = {
    .struct_size = sizeof(functions),
    .abi_major = DS_ACCEL_ABI_MAJOR,
    .abi_minor = DS_ACCEL_ABI_MINOR,
    .name = NAME,
    .vendor = "ds-accel",
    .version = DS_ACCEL_VERSION,
    .probe = probe,
    .init = init,
    .shutdown = shutdown_instance,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_info = device_info,
    .device_synchronize = device_synchronize,
    .stream_synchronize = stream_synchronize,
    .stream_query = stream_query,
    .stream_wait_event = stream_wait_event,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .mem_info = mem_info,
};

static void add_vmem(struct ds_accel_plugin *table)
{
    table->vmem_granularity = vmem_granularity;
    table->vmem_reserve = vmem_reserve;
    table->vmem_release = vmem_release;
    table->vmem_create = vmem_create;
    table->vmem_destroy = vmem_destroy;
    table->vmem_map = vmem_map;
    table->vmem_unmap = vmem_unmap;
    table->vmem_set_access = vmem_set_access;
}

int32_t ds_accel__replay_device_create(uint64_t capacity_bytes, bool has_vmem,
                                       struct ds_accel__replay_device **device_out)
{
    struct ds_accel__replay_device *device = calloc(1, sizeof(*device));
    struct ds_accel_plugin table = functions;
    struct ds_accel__finding finding = {0};

    if (device == NULL) {
        return ds_accel__no_memory();
    }
    if (has_vmem) {
        add_vmem(&table);
    }
    ds_accel__table_import(&table, NAME, &device->table, &finding);
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        free(device);
        return ds_accel__error(DS_ACCEL_ERR_INTERNAL, "%s", finding.detail);
    }
    device->capacity_bytes = capacity_bytes;
    device->has_vmem = has_vmem;
    device->next_address = FIRST_ADDRESS;
    *device_out = device;
    return DS_ACCEL_OK;
}

void ds_accel__replay_device_destroy(struct ds_accel__replay_device *device)
{
    if (device == NULL) {
        return;
    }
    for (size_t i = 0; i < device->pieces.capacity; i++) {
        struct piece *piece = (struct piece *)device->pieces.entries[i].value;

        if (piece != NULL) {
            piece->mapped_count -= piece->mapped_count > 0;
            piece->has_owner = false;
            drop_piece(piece);
        }
    }
    ds_accel__address_clear(&device->pieces);
    free(device);
}

ds_accel_plugin_device_t *ds_accel__replay_device_handle(struct ds_accel__replay_device *device)
{
    return (ds_accel_plugin_device_t *)device;
}

ds_accel_plugin_stream_t *ds_accel__replay_device_stream(struct ds_accel__replay_device *device,
                                                         uint32_t number)
{
    static char streams[65536]; /* only their addresses are used */

    (void)device;
    return (ds_accel_plugin_stream_t *)&streams[number % sizeof(streams)];
}
