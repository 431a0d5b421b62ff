/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary sequences of memory calls on the replay device, which only counts memory; each result
 * is compared with a plain list. */
#include "fuzz.h"

#include "memtools/memory_replay.h"

#define LIVE_LIMIT 64
#define GRANULE DS_ACCEL__REPLAY_GRANULE_BYTES
#define CAPACITY (40 * GRANULE)

struct live {
    void *address;
    uint64_t size;
    bool is_mapped;
};

struct model {
    struct ds_accel__replay_device *device;
    ds_accel_plugin_device_t *handle;
    struct live live[LIVE_LIMIT];
    size_t count;
    uint64_t used;
};

static void check(const struct model *model)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    FUZZ_CHECK(model->device->table.mem_info(model->handle, &info, &error) == DS_ACCEL_OK);
    FUZZ_CHECK(info.process_bytes == model->used);
    FUZZ_CHECK(info.available_bytes == CAPACITY - model->used);
    FUZZ_CHECK(model->device->peak_bytes >= model->used);
}

static void add(struct model *model, uint64_t size, uint64_t align, bool is_mapped)
{
    const struct ds_accel_plugin *table = &model->device->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_vmem_t *vmem = NULL;
    bool fits = size <= CAPACITY - model->used;
    void *address = NULL;
    int32_t status;

    if (is_mapped) {
        status = table->vmem_create(model->handle, size, 0, &vmem, &error);
        if (status >= 0) {
            FUZZ_CHECK(table->vmem_reserve(model->handle, size, align, NULL, 0, &address, &error) ==
                       DS_ACCEL_OK);
            FUZZ_CHECK(table->vmem_map(model->handle, address, size, vmem, 0, &error) ==
                       DS_ACCEL_OK);
            FUZZ_CHECK(table->vmem_map(model->handle, address, size, vmem, 0, &error) ==
                       DS_ACCEL_ERR_INVALID);
            table->vmem_destroy(vmem); /* the mappings keep the memory alive */
        }
    } else {
        status = table->mem_alloc(model->handle, size, align, 0, &address, &error);
    }
    FUZZ_CHECK(status == (size == 0 ? DS_ACCEL_ERR_INVALID
                          : fits    ? DS_ACCEL_OK
                                    : DS_ACCEL_ERR_NO_MEMORY));
    if (status < 0) {
        FUZZ_CHECK(error.message[0] != '\0');
        return;
    }
    FUZZ_CHECK(align == 0 || (uintptr_t)address % align == 0);
    for (size_t i = 0; i < model->count; i++) {
        uintptr_t a = (uintptr_t)address;
        uintptr_t b = (uintptr_t)model->live[i].address;

        FUZZ_CHECK(a + size <= b || b + model->live[i].size <= a);
    }
    model->live[model->count++] = (struct live){address, size, is_mapped};
    model->used += size;
}

static void drop(struct model *model, size_t position)
{
    const struct ds_accel_plugin *table = &model->device->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct live live = model->live[position];
    int32_t status;
    int32_t again;

    model->live[position] = model->live[--model->count];
    model->used -= live.size;
    if (live.is_mapped) {
        status = table->vmem_unmap(model->handle, live.address, live.size, &error);
        again = table->vmem_unmap(model->handle, live.address, live.size, &error);
    } else {
        status = table->mem_free(model->handle, live.address, &error);
        again = table->mem_free(model->handle, live.address, &error);
    }
    FUZZ_CHECK(status == DS_ACCEL_OK && again == DS_ACCEL_ERR_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model model = {0};

    FUZZ_CHECK(ds_accel__replay_device_create(CAPACITY, true, &model.device) == DS_ACCEL_OK);
    model.handle = ds_accel__replay_device_handle(model.device);
    for (; size >= 2; data += 2, size -= 2) {
        bool is_mapped = (data[0] & 1) != 0;
        uint64_t bytes = is_mapped ? (data[1] & 15) * GRANULE : (uint64_t)data[1] << 14;

        if ((data[0] & 2) != 0 && model.count > 0) {
            drop(&model, data[1] % model.count);
        } else if (model.count < LIVE_LIMIT) {
            add(&model, bytes, (data[0] & 4) != 0 ? UINT64_C(1) << (data[0] >> 3) % 24 : 0,
                is_mapped);
        }
        check(&model);
    }
    ds_accel__replay_device_destroy(model.device); /* also frees the blocks that are left */
    return 0;
}
