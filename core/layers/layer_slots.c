/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Descriptions of the slots of a plugin's table, generated from slots.def. */
#include "base/slots.h"
#include "layers/layer.h"

#include <assert.h>

#define MEANING_(storage, meaning, type, name) DS_ACCEL__##meaning
#define MEANING(argument) MEANING_ argument
#define TEXT_(storage, meaning, type, name) #name
#define TEXT(argument) TEXT_ argument
#define ROW(name, n, is_void, ...) \
    { \
        #name, \
        offsetof(struct ds_accel_plugin, name), \
        n, \
        is_void, \
        {DS_ACCEL__EACH_##n(MEANING, __VA_ARGS__)}, \
        {DS_ACCEL__EACH_##n(TEXT, __VA_ARGS__)}},

const struct ds_accel__slot_info ds_accel__slots[DS_ACCEL__SLOT_COUNT] = {
#define PROBE(...)
#define CALL(name, n, ...) ROW(name, n, false, __VA_ARGS__)
#define DROP(name, n, ...) ROW(name, n, true, __VA_ARGS__)
#include "slots.def"
};

bool ds_accel__may_free(uint32_t slot, uint32_t made_by)
{
    switch (slot) {
    case DS_ACCEL__SLOT_mem_free:
    case DS_ACCEL__SLOT_mem_free_async:
        return made_by == DS_ACCEL__SLOT_mem_alloc || made_by == DS_ACCEL__SLOT_mem_alloc_managed ||
               made_by == DS_ACCEL__SLOT_mem_alloc_async || made_by == DS_ACCEL__SLOT_native_wrap;
    case DS_ACCEL__SLOT_mem_free_pinned:
        return made_by == DS_ACCEL__SLOT_mem_alloc_pinned;
    case DS_ACCEL__SLOT_mem_unregister:
        return made_by == DS_ACCEL__SLOT_mem_register;
    case DS_ACCEL__SLOT_ipc_memory_close:
        return made_by == DS_ACCEL__SLOT_ipc_memory_open;
    case DS_ACCEL__SLOT_dmabuf_release:
        return made_by == DS_ACCEL__SLOT_dmabuf_import;
    case DS_ACCEL__SLOT_vmem_unmap:
        return made_by == DS_ACCEL__SLOT_vmem_map;
    default:
        assert(slot == DS_ACCEL__SLOT_vmem_release);
        return made_by == DS_ACCEL__SLOT_vmem_reserve;
    }
}
