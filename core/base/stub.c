/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Stubs for table slots through which no plugin function may be called: a slot that the plugin does
 * not implement, every slot of a plugin that a forked child inherited, every slot of a destroyed
 * handle.
 *
 * For each slot, slots.def generates three stubs with the slot's function type, one for each of
 * these cases. The stubs of one case form a table. A stub fills the caller's error as a plugin's
 * function does.
 */
#include "base/fork.h"
#include "base/slots.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST_SLOT offsetof(struct ds_accel_plugin, probe)
#define SLOT_COUNT ((sizeof(struct ds_accel_plugin) - FIRST_SLOT) / sizeof(void *))
typedef void (*slot_t)(void); /* converted to the slot's type before it is called */
DS_ACCEL_STATIC_ASSERT(sizeof(slot_t) == sizeof(void *), "slots are pointers");
DS_ACCEL_STATIC_ASSERT(FIRST_SLOT + SLOT_COUNT * sizeof(void *) == sizeof(struct ds_accel_plugin),
                       "nothing but slots from probe on");

/* One member for each row of slots.def, to check the order of the rows. */
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

/* The process that started the plugins of the FORKED stubs; set before any such stub is called. */
static pid_t parent;

void ds_accel__stub_set_parent(pid_t pid)
{
    parent = pid;
}

/* ---- what the stubs return ------------------------------------------------------------------ */

/* One shared function for all slots: inlining would create a hundred copies. */
#define SHARED __attribute__((noinline)) static

/* error may be NULL: programs also call slots directly, and some pass no error. */
static int32_t fail(struct ds_accel_error *error, const struct ds_accel_error *cause)
{
    if (error != NULL) {
        ds_accel_write(error, cause, sizeof(*cause));
    }
    return cause->code;
}

SHARED int32_t unsupported(struct ds_accel_error *error)
{
    static const struct ds_accel_error cause = {.code = DS_ACCEL_ERR_UNSUPPORTED,
                                                .message = "this accelerator has no such function"};

    return fail(error, &cause);
}

SHARED int32_t forked(struct ds_accel_error *error)
{
    struct ds_accel_error cause = {.code = DS_ACCEL_ERR_STATE};
    char text[300];

    snprintf(text, sizeof(text),
             "this accelerator was started by process %ld before fork(), and cannot be used in "
             "a child of it: start the child by posix_spawn() or exec(), or fork before the "
             "accelerator is started; a backend that survives it, such as cpu, can be started in a "
             "new context",
             (long)parent);
    ds_accel__copy(cause.message, sizeof(cause.message), text);
    return fail(error, &cause);
}

SHARED int32_t destroyed(struct ds_accel_error *error)
{
    static const struct ds_accel_error cause = {.code = DS_ACCEL_ERR_INVALID,
                                                .message = "this handle was destroyed"};

    return fail(error, &cause);
}

/* ---- one stub per slot and kind ------------------------------------------------------------- */

#define IGNORE(argument) (void)DS_ACCEL__NAME(argument)
#define CALL_STUB(kind, name, n, ...) \
    static int32_t kind##_##name(DS_ACCEL__PARAMETERS(n, __VA_ARGS__), \
                                 struct ds_accel_error *error) \
    { \
        DS_ACCEL__EACH_##n(IGNORE, __VA_ARGS__); \
        return kind(error); \
    }
#define DROP_STUB(kind, name, n, ...) \
    static void kind##_##name(DS_ACCEL__PARAMETERS(n, __VA_ARGS__)) \
    { \
        DS_ACCEL__EACH_##n(IGNORE, __VA_ARGS__); \
    }

#define CALL(name, ...) \
    CALL_STUB(unsupported, name, __VA_ARGS__) \
    CALL_STUB(forked, name, __VA_ARGS__) \
    CALL_STUB(destroyed, name, __VA_ARGS__)
#define DROP(name, ...) \
    DROP_STUB(unsupported, name, __VA_ARGS__) \
    DROP_STUB(forked, name, __VA_ARGS__) \
    DROP_STUB(destroyed, name, __VA_ARGS__)
#include "slots.def"

/* A stub whose type differs from its slot's causes a compiler warning here, an error in CI. */
#define HEAD \
    .struct_size = sizeof(struct ds_accel_plugin), .abi_major = DS_ACCEL_ABI_MAJOR, \
    .abi_minor = DS_ACCEL_ABI_MINOR, .name = "", .vendor = "", .version = ""

static const struct ds_accel_plugin tables[] = {
    [DS_ACCEL__STUB_UNSUPPORTED] =
        {
            HEAD,
#define CALL(slot, ...) .slot = unsupported_##slot,
#define DROP(slot, ...) .slot = unsupported_##slot,
#include "slots.def"
        },
    [DS_ACCEL__STUB_FORKED] =
        {
            HEAD,
#define CALL(slot, ...) .slot = forked_##slot,
#define DROP(slot, ...) .slot = forked_##slot,
#include "slots.def"
        },
    [DS_ACCEL__STUB_DESTROYED] =
        {
            HEAD,
#define CALL(slot, ...) .slot = destroyed_##slot,
#define DROP(slot, ...) .slot = destroyed_##slot,
#include "slots.def"
        },
};

/* ---- tables --------------------------------------------------------------------------------- */

static slot_t slot_at(const struct ds_accel_plugin *table, size_t offset)
{
    slot_t slot;

    assert(offset >= FIRST_SLOT && offset + sizeof(slot) <= sizeof(*table));
    assert((offset - FIRST_SLOT) % sizeof(slot) == 0);
    memcpy(&slot, (const char *)table + offset, sizeof(slot));
    return slot;
}

void ds_accel__table_fill(struct ds_accel_plugin *table, enum ds_accel__stub kind)
{
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        size_t offset = FIRST_SLOT + i * sizeof(slot_t);

        if (kind != DS_ACCEL__STUB_UNSUPPORTED || slot_at(table, offset) == NULL) {
            memcpy((char *)table + offset, (const char *)&tables[kind] + offset, sizeof(slot_t));
        }
    }
}

bool ds_accel__slot_is_absent(const struct ds_accel_plugin *table, size_t offset)
{
    return slot_at(table, offset) == slot_at(&tables[DS_ACCEL__STUB_UNSUPPORTED], offset);
}

const struct ds_accel_plugin *ds_accel__table_destroyed(void)
{
    return &tables[DS_ACCEL__STUB_DESTROYED];
}
