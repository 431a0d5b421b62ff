/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Copies a plugin's table into the host's own table; no other file does. */
#include "base/fork.h"
#include "base/text.h"
#include "host/candidate.h"
#include "machine/elf_file.h"

#include <string.h>

#define FIRST_SLOT offsetof(struct ds_accel_plugin, probe)

static const struct {
    const char *name;
    size_t offset;
} required_slots[] = {
    {"probe", offsetof(struct ds_accel_plugin, probe)},
    {"init", offsetof(struct ds_accel_plugin, init)},
    {"shutdown", offsetof(struct ds_accel_plugin, shutdown)},
    {"device_count", offsetof(struct ds_accel_plugin, device_count)},
    {"device_open", offsetof(struct ds_accel_plugin, device_open)},
    {"device_close", offsetof(struct ds_accel_plugin, device_close)},
};

static bool has_slot(const struct ds_accel_plugin *table, size_t offset)
{
    void *slot;

    memcpy(&slot, (const char *)table + offset, sizeof(slot));
    return slot != NULL;
}

static void check_table(const struct ds_accel_plugin *table, const char *name,
                        struct ds_accel__finding *finding)
{
    int unknown = ds_accel__unknown_feature(table->required_features);

    if (table->abi_major != DS_ACCEL_ABI_MAJOR) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_TABLE_ABI,
                              "the table has generation %u; expected %u", table->abi_major,
                              DS_ACCEL_ABI_MAJOR);
    } else if (unknown >= 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_FEATURE_UNKNOWN,
                              "this host does not know required feature bit %d of its table",
                              unknown);
    } else if (table->name == NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_TABLE_NO_NAME, "the table's name is NULL");
    } else if (strncmp(table->name, name, DS_ACCEL__NAME_SIZE) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NAME_MISMATCH,
                              "the file name has \"%s\", the table \"%.31s\"", name, table->name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(required_slots) && finding->reason == DS_ACCEL__REASON_NONE;
         i++) {
        if (!has_slot(table, required_slots[i].offset)) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_SLOT_MISSING, "%s is NULL",
                                  required_slots[i].name);
        }
    }
}

#define ABSURD_BYTES 65536u

void ds_accel__table_import(const struct ds_accel_plugin *theirs, const char *name,
                            struct ds_accel_plugin *ours, struct ds_accel__finding *finding)
{
    uint32_t size;
    uint32_t needed = DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, device_close);

    memset(ours, 0, sizeof(*ours));
    memcpy(&size, theirs, sizeof(size));
    if (size < needed) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_TABLE_SHORT,
                              "it has %u bytes; expected at least %u", size, needed);
        return;
    }
    if (size > ABSURD_BYTES) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_TABLE_ABSURD,
                              "it claims %u bytes; no table has over %u", size, ABSURD_BYTES);
        return;
    }
    /* Copy only whole slots, no partial pointer. */
    size -= (size - FIRST_SLOT) % sizeof(void *);
    memcpy(ours, theirs, size < sizeof(*ours) ? size : sizeof(*ours));
    ours->struct_size = sizeof(*ours);
    check_table(ours, name, finding);
    ds_accel__table_fill(ours, DS_ACCEL__STUB_UNSUPPORTED);
}
