/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What stands in a table's slot where no function of a plugin may be called: one that the plugin
 * does not have, any of a plugin that a forked child has inherited, any of a destroyed handle.
 *
 * A stub is called through pointers of other types: all slots return int32_t or nothing, and on
 * every ABI we build for the caller removes the arguments, so one function without parameters
 * serves them all. For the same reason it cannot fill the caller's error, so it leaves a note for
 * this thread, from which ds_accel__describe() makes the words of a failure that has none.
 */
#include "base/fork.h"

#include <stdio.h>
#include <string.h>

#define FIRST_SLOT offsetof(struct ds_accel_plugin, probe)
#define SLOT_COUNT ((sizeof(struct ds_accel_plugin) - FIRST_SLOT) / sizeof(void *))
typedef int32_t (*slot_t)(void);
DS_ACCEL_STATIC_ASSERT(sizeof(slot_t) == sizeof(void *), "slots are pointers");
DS_ACCEL_STATIC_ASSERT(FIRST_SLOT + SLOT_COUNT * sizeof(void *) == sizeof(struct ds_accel_plugin),
                       "nothing but slots from probe on");

/* A member for each row of slots.def. */
struct rows {
#define CALL(name, ...) slot_t name;
#define DROP(name, ...) slot_t name;
#include "slots.def"
};
#define CALL(name, ...) \
    DS_ACCEL_STATIC_ASSERT(FIRST_SLOT + offsetof(struct rows, name) == \
                               offsetof(struct ds_accel_plugin, name), \
                           "slots.def has " #name " where the table has it");
#define DROP(name, ...) CALL(name)
#include "slots.def"
DS_ACCEL_STATIC_ASSERT(sizeof(struct rows) == SLOT_COUNT * sizeof(slot_t),
                       "slots.def has every slot of the table");

/* The status that a stub of this thread returned last, and nobody has put into words; 0: none. */
static _Thread_local int32_t noted;

static int32_t unsupported(void)
{
    return DS_ACCEL_ERR_UNSUPPORTED;
}

static int32_t forked(void)
{
    return noted = DS_ACCEL_ERR_STATE;
}

static int32_t destroyed(void)
{
    return noted = DS_ACCEL_ERR_INVALID;
}

bool ds_accel__stub_describe(int32_t status, char *text, size_t text_size)
{
    int32_t last = noted;

    noted = 0;
    if (last != status || status == 0) {
        return false;
    }
    if (status == DS_ACCEL_ERR_STATE) {
        snprintf(text, text_size,
                 "this accelerator was started by process %ld before fork(), and cannot be used in "
                 "a child of it: start the child by posix_spawn() or exec(), or fork before the "
                 "accelerator is started; a backend that survives it, as cpu, starts anew in a "
                 "context of the child's own",
                 (long)ds_accel__fork_parent());
    } else {
        snprintf(text, text_size, "this handle was destroyed");
    }
    return true;
}

void ds_accel__table_fill(struct ds_accel_plugin *table, enum ds_accel__stub kind)
{
    static const slot_t stubs[] = {
        [DS_ACCEL__STUB_UNSUPPORTED] = unsupported,
        [DS_ACCEL__STUB_FORKED] = forked,
        [DS_ACCEL__STUB_DESTROYED] = destroyed,
    };

    for (size_t i = 0; i < SLOT_COUNT; i++) {
        char *place = (char *)table + FIRST_SLOT + i * sizeof(slot_t);
        slot_t slot;

        memcpy(&slot, place, sizeof(slot));
        if (slot == NULL || kind != DS_ACCEL__STUB_UNSUPPORTED) {
            memcpy(place, &stubs[kind], sizeof(slot));
        }
    }
}

bool ds_accel__slot_is_absent(const struct ds_accel_plugin *table, size_t offset)
{
    slot_t slot;

    memcpy(&slot, (const char *)table + offset, sizeof(slot));
    return slot == unsupported;
}

static struct ds_accel_plugin dead_table;

static void make_dead_table(void)
{
    dead_table.struct_size = sizeof(dead_table);
    dead_table.abi_major = DS_ACCEL_ABI_MAJOR;
    dead_table.abi_minor = DS_ACCEL_ABI_MINOR;
    dead_table.name = "";
    dead_table.vendor = "";
    dead_table.version = "";
    ds_accel__table_fill(&dead_table, DS_ACCEL__STUB_DESTROYED);
}

const struct ds_accel_plugin *ds_accel__table_destroyed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_dead_table);
    return &dead_table;
}
