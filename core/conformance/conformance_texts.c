/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: texts that a plugin writes into a caller's fields or returns as pointers. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#define GROUP "texts"
#define FEW 64u
#define CANARY 0x5a

static void want_clean(struct ds_accel__run *run, const char *what, const char *text, size_t size)
{
    EXPECT(run, ds_accel__is_clean_text(text, size), "%s is not a NUL-terminated line of UTF-8",
           what);
}

#define WANT_CLEAN(run, what, field) want_clean(run, what, field, sizeof(field))

/* Fail unless a pointer to text in the plugin's memory is NULL or refers to a NUL-terminated
 * line of UTF-8. */
static void want_clean_lent(struct ds_accel__run *run, const char *what, const char *text)
{
    EXPECT(run, text == NULL || ds_accel__is_clean_text(text, strnlen(text, 65536) + 1),
           "%s is not a NUL-terminated line of UTF-8", what);
}

/* ---- structs -------------------------------------------------------------------------------- */

static void check_identities(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

        WANT(run, DS_ACCEL_OK, device_identity, run->instance, i, &identity);
        WANT_CLEAN(run, "device_identity's uuid_text", identity.uuid_text);
        WANT_CLEAN(run, "device_identity's parent_uuid_text", identity.parent_uuid_text);
        WANT_CLEAN(run, "device_identity's pci_address", identity.pci_address);
        WANT_CLEAN(run, "device_identity's node_path", identity.node_path);
        WANT_CLEAN(run, "device_identity's architecture", identity.architecture);
        WANT_CLEAN(run, "device_identity's name", identity.name);
    }
}

static void check_links(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_link links[FEW] = {{.struct_size = 0}};
        uint32_t count = 0;

        WANT(run, DS_ACCEL_OK, links_get, run->instance, i, links, sizeof(links[0]), FEW, &count);
        for (uint32_t k = 0; k < count && k < FEW; k++) {
            WANT_CLEAN(run, "links_get's peer_pci_address", links[k].peer_pci_address);
        }
    }
}

static void check_infos(struct ds_accel__run *run)
{
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    struct ds_accel_device_info device = {.struct_size = sizeof(device)};

    WANT_CLEAN(run, "backend_info's communication_backend", run->info.communication_backend);
    WANT_CLEAN(run, "backend_info's compile_backend", run->info.compile_backend);
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &device);
        WANT_CLEAN(run, "device_info's name", device.name);
    }
    if (run->table.mem_info != NULL) {
        WANT(run, DS_ACCEL_OK, mem_info, run->device, &memory);
        WANT_CLEAN(run, "mem_info's limit_source", memory.limit_source);
    }
}

/* Check the text of the limit's source while a memory limit is set. */
static void check_limit_source(struct ds_accel__run *run)
{
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};

    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, UINT64_C(1) << 24);
    WANT(run, DS_ACCEL_OK, mem_info, run->device, &memory);
    WANT_CLEAN(run, "mem_info's limit_source", memory.limit_source);
    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 0);
}

/* ---- texts of calls ------------------------------------------------------------------------- */

/* Check that a name is valid, and that env_name_get fails and writes nothing if the buffer is
 * one byte too small for the name. */
static void check_name(struct ds_accel__run *run, uint32_t list, uint32_t position, char *name,
                       uint32_t name_size)
{
    uint32_t length;
    char small[256];

    want_clean(run, "a name of env_name_get", name, name_size);
    length = (uint32_t)strlen(name);
    memset(small, CANARY, sizeof(small));
    if (length > 0 && length < sizeof(small)) {
        WANT_ERROR(run, env_name_get, run->instance, list, position, small, length);
        EXPECT(run, small[0] == CANARY && small[length] == CANARY,
               "env_name_get: a name that does not fit was written");
    }
}

static void check_names(struct ds_accel__run *run)
{
    static const uint32_t lists[] = {DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, DS_ACCEL_ENV_LIST_EXPORT};

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        for (uint32_t position = 0; position < 1000; position++) {
            char name[256];

            memset(name, CANARY, sizeof(name));
            if (CALL(run, env_name_get, run->instance, lists[i], position, name,
                     (uint32_t)sizeof(name)) != DS_ACCEL_OK) {
                break;
            }
            check_name(run, lists[i], position, name, sizeof(name));
        }
    }
}

/* Check that a reason that does not fit is truncated and ends with a NUL. */
static void check_reason(struct ds_accel__run *run)
{
    for (uint32_t size = 1; size <= 256; size = size < 8 ? size + 1 : 2 * size) {
        char reason[257];
        uint32_t is_compatible = 0;

        memset(reason, CANARY, sizeof(reason));
        reason[0] = '\0';
        WANT(run, DS_ACCEL_OK, op_compatible, run->instance, "nobody_knows_this_op", &is_compatible,
             reason, size);
        want_clean(run, "the reason of op_compatible", reason, size);
        EXPECT(run, reason[size] == CANARY,
               "op_compatible: a byte after a reason of %u bytes was written", size);
    }
}

static void check_builders(struct ds_accel__run *run)
{
    struct ds_accel_op_builder builders[FEW] = {{.struct_size = 0}};
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, op_builders_get, run->instance, builders, sizeof(builders[0]), FEW,
         &count);
    for (uint32_t i = 0; i < count && i < FEW; i++) {
        want_clean_lent(run, "an op builder's name", builders[i].builder);
        want_clean_lent(run, "an op builder's op", builders[i].op);
    }
}

static void check_rules(struct ds_accel__run *run)
{
    struct ds_accel_env_rule rules[FEW] = {{.struct_size = 0}};
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, env_rules_get, run->instance, rules, sizeof(rules[0]), FEW, &count);
    for (uint32_t i = 0; i < count && i < FEW; i++) {
        want_clean_lent(run, "the value of a rule of the environment", rules[i].value);
        want_clean_lent(run, "the why of a rule of the environment", rules[i].why);
    }
}

#define DEVICE DS_ACCEL__STAGE_DEVICE

static const struct ds_accel__check checks[] = {
    {25, GROUP, "identities of all devices", DEVICE, 0, check_identities, {SLOT(device_identity)}},
    {25, GROUP, "links", DEVICE, 0, check_links, {SLOT(links_get)}},
    {25, GROUP, "infos", DEVICE, 0, check_infos, {0}},
    {25,
     GROUP,
     "the source of a limit",
     DEVICE,
     0,
     check_limit_source,
     {SLOT(mem_info), SLOT(mem_set_limit)}},
    {25, GROUP, "names of variables", DEVICE, 0, check_names, {SLOT(env_name_get)}},
    {25, GROUP, "the reason against an op", DEVICE, 0, check_reason, {SLOT(op_compatible)}},
    {25, GROUP, "op builders", DEVICE, 0, check_builders, {SLOT(op_builders_get)}},
    {25, GROUP, "rules of the environment", DEVICE, 0, check_rules, {SLOT(env_rules_get)}},
};

const struct ds_accel__check_list ds_accel__checks_texts = {checks, ARRAY_SIZE(checks)};
