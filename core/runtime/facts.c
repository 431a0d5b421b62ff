/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Facts about the chosen accelerator, for programs: flags, capabilities, data types, versions.
 *
 * The facts come from the tree that the info report prints, so that both always agree. They are
 * cached, because programs read flags in their inner loops.
 */
#include "runtime/facts.h"
#include "base/fork.h"
#include "base/text.h"
#include "config/config.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- reading the facts ---------------------------------------------------------------------- */

static const struct {
    const char *key;
    uint64_t flag;
} flag_keys[] = {
    {"is_synchronized_device", DS_ACCEL_FLAG_SYNCHRONIZED},
    {"use_host_timers", DS_ACCEL_FLAG_HOST_TIMERS},
    {"resolves_data_dependency", DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES},
    {"handles_memory_backpressure", DS_ACCEL_FLAG_HANDLES_BACKPRESSURE},
    {"supports_range_domains", DS_ACCEL_FLAG_RANGE_DOMAINS},
    {"is_triton_supported", DS_ACCEL_FLAG_TRITON},
    {"prefer_triton_grouped_mm", DS_ACCEL_FLAG_TRITON_GROUPED_MM},
    {"graph_supported", DS_ACCEL_FLAG_GRAPHS},
};

#define SLOT(name) offsetof(struct ds_accel_plugin, name)
static const struct {
    uint64_t capability;
    size_t slots[2]; /* the backend has the capability if both functions exist */
} capability_slots[] = {
    {DS_ACCEL_CAPABILITY_STREAMS, {SLOT(stream_create), SLOT(stream_destroy)}},
    {DS_ACCEL_CAPABILITY_EVENTS, {SLOT(event_create), SLOT(event_record)}},
    {DS_ACCEL_CAPABILITY_EVENT_TIMING, {SLOT(event_create), SLOT(event_elapsed_ms)}},
    {DS_ACCEL_CAPABILITY_GRAPHS, {SLOT(graph_capture_begin), SLOT(graph_launch)}},
    {DS_ACCEL_CAPABILITY_PINNED, {SLOT(mem_alloc_pinned), SLOT(mem_free_pinned)}},
    {DS_ACCEL_CAPABILITY_REGISTER, {SLOT(mem_register), SLOT(mem_unregister)}},
    {DS_ACCEL_CAPABILITY_POINTER_INFO, {SLOT(mem_pointer_info), SLOT(mem_pointer_info)}},
    {DS_ACCEL_CAPABILITY_STREAM_ORDERED, {SLOT(mem_alloc_async), SLOT(mem_free_async)}},
    {DS_ACCEL_CAPABILITY_VIRTUAL_MEMORY, {SLOT(vmem_reserve), SLOT(vmem_map)}},
    {DS_ACCEL_CAPABILITY_TELEMETRY, {SLOT(telemetry_get), SLOT(telemetry_get)}},
    {DS_ACCEL_CAPABILITY_PROCESSES, {SLOT(telemetry_processes), SLOT(telemetry_processes)}},
    {DS_ACCEL_CAPABILITY_RANGES, {SLOT(range_push), SLOT(range_pop)}},
    {DS_ACCEL_CAPABILITY_PROFILER, {SLOT(profiler_start), SLOT(profiler_stop)}},
    {DS_ACCEL_CAPABILITY_PEERS, {SLOT(peer_can_access), SLOT(peer_enable)}},
    {DS_ACCEL_CAPABILITY_LINKS, {SLOT(links_get), SLOT(links_get)}},
    {DS_ACCEL_CAPABILITY_MEMORY_IPC, {SLOT(ipc_memory_export), SLOT(ipc_memory_open)}},
    {DS_ACCEL_CAPABILITY_EVENT_IPC, {SLOT(ipc_event_export), SLOT(ipc_event_open)}},
    {DS_ACCEL_CAPABILITY_DMABUF, {SLOT(dmabuf_export), SLOT(dmabuf_export)}},
    {DS_ACCEL_CAPABILITY_RNG, {SLOT(rng_seed), SLOT(rng_uniform)}},
    {DS_ACCEL_CAPABILITY_NATIVE_HANDLES, {SLOT(native_get), SLOT(native_get)}},
};

static uint64_t capabilities_of(const struct ds_accel_plugin *table)
{
    uint64_t capabilities = 0;

    for (size_t i = 0; i < ARRAY_SIZE(capability_slots); i++) {
        if (!ds_accel__slot_is_absent(table, capability_slots[i].slots[0]) &&
            !ds_accel__slot_is_absent(table, capability_slots[i].slots[1])) {
            capabilities |= capability_slots[i].capability;
        }
    }
    return capabilities;
}

/* Copy the merged facts from the tree to known->info. */
static void merge(struct ds_accel__known *known)
{
    struct ds_accel_backend_info *info = &known->info;

    for (size_t i = 0; i < ARRAY_SIZE(flag_keys); i++) {
        const json_t *value = json_object_get(known->tree, flag_keys[i].key);

        info->flags &= ~flag_keys[i].flag;
        info->flags_known &= ~flag_keys[i].flag;
        info->flags |= json_is_true(value) ? flag_keys[i].flag : 0;
        info->flags_known |= json_is_boolean(value) ? flag_keys[i].flag : 0;
    }
    info->flags &= info->flags_known;
    ds_accel__copy(info->communication_backend, sizeof(info->communication_backend),
                   json_string_value(json_object_get(known->tree, "communication_backend")));
    ds_accel__copy(info->compile_backend, sizeof(info->compile_backend),
                   json_string_value(json_object_get(known->tree, "compile_backend")));
}

static void destroy(struct ds_accel__known *known)
{
    if (known != NULL) {
        json_decref(known->tree);
        free(known);
    }
}

/* Read the facts. The caller holds context->lock. NULL: out of memory. */
static struct ds_accel__known *find_out(ds_accel_t *context,
                                        const struct ds_accel__candidate *candidate)
{
    struct ds_accel__known *known = calloc(1, sizeof(*known));
    struct ds_accel__facts facts;
    bool failed = false;

    if (known == NULL) {
        return NULL;
    }
    ds_accel__facts_read(&facts, context, candidate->name, candidate, candidate->instance);
    known->tree = json_object();
    ds_accel__facts_set(known->tree, &facts, &failed);
    if (failed || known->tree == NULL) {
        destroy(known);
        return NULL;
    }
    known->info = facts.info;
    known->info.struct_size = sizeof(known->info);
    merge(known);
    known->capabilities = capabilities_of(&candidate->table);
    ds_accel__copy(known->op_builder_dir, sizeof(known->op_builder_dir),
                   json_string_value(ds_accel__config_backend(&context->config, candidate->name,
                                                              "op_builder_dir")));
    return known;
}

static int32_t load(ds_accel_t *context, const struct ds_accel__candidate *candidate)
{
    int32_t status = ds_accel__context_check(context);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    if (context->known == NULL) {
        struct ds_accel__known *known = NULL;

        status = ds_accel__context_load_origins(context);
        if (status >= 0) {
            known = find_out(context, candidate);
            status = known != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
        }
        __atomic_store_n(&context->known, known, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&context->lock);
    return status;
}

const struct ds_accel__known *ds_accel__known_get(ds_accel_t *context, const void *out,
                                                  int32_t *status_out)
{
    const struct ds_accel__candidate *candidate;
    const struct ds_accel__known *known;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t count;

    *status_out = DS_ACCEL_OK;
    if (context == NULL || out == NULL) {
        *status_out = ds_accel__error(DS_ACCEL_ERR_INVALID, "the %s is NULL",
                                      context == NULL ? "context" : "output");
        return NULL;
    }
    known = __atomic_load_n(&context->known, __ATOMIC_ACQUIRE);
    if (known != NULL) {
        return known;
    }
    candidate = __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    if (candidate == NULL) {
        *status_out = ds_accel__error(DS_ACCEL_ERR_STATE,
                                      "no accelerator is chosen yet: call ds_accel_detect() first");
    } else if (candidate->watch.is_forked) {
        *status_out = ds_accel__fail(
            candidate->table.device_count(candidate->instance, &count, &error), &error);
    } else {
        *status_out = load(context, candidate);
    }
    return *status_out < 0 ? NULL : __atomic_load_n(&context->known, __ATOMIC_ACQUIRE);
}

void ds_accel__known_clear(ds_accel_t *context)
{
    destroy(context->known);
    context->known = NULL;
}

int32_t ds_accel__name_write(const char *text, char *name, size_t name_size, const char *call)
{
    size_t length = strlen(text);

    if (length >= name_size) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: the name needs %zu bytes, the buffer has %zu", call, length + 1,
                               name_size);
    }
    memcpy(name, text, length + 1);
    return DS_ACCEL_OK;
}

/* ---- flags ---------------------------------------------------------------------------------- */

int32_t ds_accel_flags(ds_accel_t *context, uint64_t *flags_out, uint64_t *known_out)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, flags_out, &status);

    if (known != NULL) {
        *flags_out = known->info.flags;
        if (known_out != NULL) {
            *known_out = known->info.flags_known;
        }
    }
    return status;
}

static const char *flag_name(uint64_t flag)
{
    static const char *const others[] = {
        "default_stream_syncs", "host_accessible", "unified_addresses", "stream_ordered_memory",
        "virtual_memory",       "memory_ipc",      "event_ipc",         "dmabuf"};

    for (size_t i = 0; i < ARRAY_SIZE(flag_keys); i++) {
        if (flag_keys[i].flag == flag) {
            return flag_keys[i].key;
        }
    }
    return others[__builtin_ctzll(flag) - ARRAY_SIZE(flag_keys)];
}

int32_t ds_accel_flag(ds_accel_t *context, uint64_t flag, uint32_t *is_set_out)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, is_set_out, &status);

    if (known == NULL) {
        return status;
    }
    if (flag == 0 || (flag & (flag - 1)) != 0 || (flag & ~DS_ACCEL_FLAGS_ALL) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "flag: %#llx is not one DS_ACCEL_FLAG_*",
                               (unsigned long long)flag);
    }
    if ((known->info.flags_known & flag) == 0) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                               "%s of %s is not known: neither plugin nor configuration defines it",
                               flag_name(flag), ds_accel_name(context));
    }
    *is_set_out = (known->info.flags & flag) != 0;
    return DS_ACCEL_OK;
}

int32_t ds_accel_capabilities(ds_accel_t *context, uint64_t *capabilities_out)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, capabilities_out, &status);

    if (known != NULL) {
        *capabilities_out = known->capabilities;
    }
    return status;
}

int32_t ds_accel_op_builder_dir(ds_accel_t *context, char *dir, size_t dir_size)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, dir, &status);

    if (known == NULL) {
        return status;
    }
    if (known->op_builder_dir[0] == '\0') {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                               "no configuration has the directory of %s's op builders",
                               ds_accel_name(context));
    }
    return ds_accel__name_write(known->op_builder_dir, dir, dir_size, "op_builder_dir");
}

/* Find whether the backend of that name, which is not the chosen one, is available: *available_out
 * is 1 or 0. Fails if the name is not known. */
static int32_t find_state(ds_accel_t *context, const char *name, uint32_t *available_out)
{
    const struct ds_accel__candidate *candidate;
    int32_t status = ds_accel_check(context, name);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    candidate = ds_accel__registry_find(&context->registry, name);
    *available_out = candidate != NULL && (candidate->state == DS_ACCEL_STATE_AVAILABLE ||
                                           candidate->state == DS_ACCEL_STATE_SELECTED);
    pthread_mutex_unlock(&context->lock);
    return DS_ACCEL_OK;
}

int32_t ds_accel_is_available(ds_accel_t *context, const char *name, uint32_t *available_out)
{
    const struct ds_accel__candidate *candidate;

    if (context == NULL || available_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "is_available: the %s is NULL",
                               context == NULL ? "context" : "output");
    }
    candidate = __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    if (name != NULL && (candidate == NULL || strcmp(candidate->name, name) != 0)) {
        return find_state(context, name, available_out);
    }
    if (candidate == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "no accelerator is chosen yet: call ds_accel_detect() first");
    }
    *available_out = !candidate->watch.is_forked && context->device_count > 0;
    return DS_ACCEL_OK;
}

/* ---- data types ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t dtype;
    uint32_t size_bits;
} dtypes[] = {
    /* The canonical name of a dtype comes first, other spellings after it. */
    {"float32", DS_ACCEL_DTYPE_FLOAT32, 32},
    {"float16", DS_ACCEL_DTYPE_FLOAT16, 16},
    {"bfloat16", DS_ACCEL_DTYPE_BFLOAT16, 16},
    {"float64", DS_ACCEL_DTYPE_FLOAT64, 64},
    {"int8", DS_ACCEL_DTYPE_INT8, 8},
    {"uint8", DS_ACCEL_DTYPE_UINT8, 8},
    {"int16", DS_ACCEL_DTYPE_INT16, 16},
    {"int32", DS_ACCEL_DTYPE_INT32, 32},
    {"int64", DS_ACCEL_DTYPE_INT64, 64},
    {"bool", DS_ACCEL_DTYPE_BOOL, 8},
    {"float8_e4m3fn", DS_ACCEL_DTYPE_FLOAT8_E4M3FN, 8},
    {"float8_e5m2", DS_ACCEL_DTYPE_FLOAT8_E5M2, 8},
    {"float8_e4m3fnuz", DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ, 8},
    {"float8_e5m2fnuz", DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ, 8},
    {"complex32", DS_ACCEL_DTYPE_COMPLEX32, 32},
    {"complex64", DS_ACCEL_DTYPE_COMPLEX64, 64},
    {"complex128", DS_ACCEL_DTYPE_COMPLEX128, 128},
    {"float", DS_ACCEL_DTYPE_FLOAT32, 32},
    {"fp32", DS_ACCEL_DTYPE_FLOAT32, 32},
    {"half", DS_ACCEL_DTYPE_FLOAT16, 16},
    {"fp16", DS_ACCEL_DTYPE_FLOAT16, 16},
    {"bf16", DS_ACCEL_DTYPE_BFLOAT16, 16},
    {"double", DS_ACCEL_DTYPE_FLOAT64, 64},
    {"fp64", DS_ACCEL_DTYPE_FLOAT64, 64},
    {"char", DS_ACCEL_DTYPE_INT8, 8},
    {"byte", DS_ACCEL_DTYPE_UINT8, 8},
    {"short", DS_ACCEL_DTYPE_INT16, 16},
    {"int", DS_ACCEL_DTYPE_INT32, 32},
    {"long", DS_ACCEL_DTYPE_INT64, 64},
    {"chalf", DS_ACCEL_DTYPE_COMPLEX32, 32},
    {"cfloat", DS_ACCEL_DTYPE_COMPLEX64, 64},
    {"cdouble", DS_ACCEL_DTYPE_COMPLEX128, 128},
};

const char *ds_accel_dtype_name(uint32_t dtype)
{
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
        if (dtypes[i].dtype == dtype) {
            return dtypes[i].name;
        }
    }
    return NULL;
}

uint32_t ds_accel_dtype_size_bits(uint32_t dtype)
{
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
        if (dtypes[i].dtype == dtype) {
            return dtypes[i].size_bits;
        }
    }
    return 0;
}

int32_t ds_accel_dtype_parse(const char *name, uint32_t *dtype_out)
{
    const char *names[ARRAY_SIZE(dtypes)];
    const char *plain;
    const char *nearest;

    if (name == NULL || dtype_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "dtype_parse: the %s is NULL",
                               name == NULL ? "name" : "output");
    }
    plain = strncmp(name, "torch.", 6) == 0 ? name + 6 : name;
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
        if (strcasecmp(dtypes[i].name, plain) == 0) {
            *dtype_out = dtypes[i].dtype;
            return DS_ACCEL_OK;
        }
        names[i] = dtypes[i].name;
    }
    nearest = ds_accel__nearest(plain, names, ARRAY_SIZE(names));
    return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "there is no data type \"%.64s\"%s%s%s", name,
                           nearest != NULL ? "; did you mean \"" : "",
                           nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

/* Look up a fact of the accelerator, such as "is_bf16_supported". The operator's configuration is
 * already merged into the facts. 1: supported; 0: not supported; -1: not known. */
static int supports(const struct ds_accel__known *known, const char *key)
{
    const json_t *value = json_object_get(known->tree, key);

    return json_is_boolean(value) ? json_is_true(value) : -1;
}

int32_t ds_accel_dtype_support(ds_accel_device_t *device, uint32_t dtype, uint32_t *support_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "dtype_support");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel__known *known;
    uint32_t support = 0;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    known = ds_accel__known_get(ours->context, support_out, &status);
    if (known == NULL) {
        return status;
    }
    if (ds_accel_dtype_name(dtype) == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "dtype_support: %u is not a data type", dtype);
    }
    status = device->table->dtype_support(device->handle, dtype, &support, &error);
    if (status < 0) {
        return ds_accel__fail(status, &error);
    }
    if ((dtype == DS_ACCEL_DTYPE_BFLOAT16 && supports(known, "is_bf16_supported") == 0) ||
        (dtype == DS_ACCEL_DTYPE_FLOAT16 && supports(known, "is_fp16_supported") == 0)) {
        support &= ~(DS_ACCEL_DTYPE_COMPUTES | DS_ACCEL_DTYPE_EMULATED);
    }
    *support_out = support;
    return DS_ACCEL_OK;
}

static int32_t fail_unknown(const ds_accel_t *context, const char *key)
{
    return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                           "%s of %s is not known: neither plugin nor configuration defines it",
                           key, ds_accel_name(context));
}

int32_t ds_accel_supported_dtypes(ds_accel_t *context, uint32_t *list, uint32_t capacity,
                                  uint32_t *count_out)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, count_out, &status);
    const json_t *names;
    uint32_t count = 0;

    if (known == NULL) {
        return status;
    }
    if (list == NULL && capacity > 0) {
        return ds_accel__refuse("supported_dtypes", "output", NULL);
    }
    names = json_object_get(known->tree, "supported_dtypes");
    if (!json_is_array(names)) {
        return fail_unknown(context, "supported_dtypes");
    }
    /* only float32, float16 and bfloat16 can be listed: the first three elements of dtypes, in the
     * order of DeepSpeed's interface */
    for (size_t i = 0; i < 3; i++) {
        bool is_listed = false;

        for (size_t j = 0; j < json_array_size(names) && !is_listed; j++) {
            is_listed = strcmp(json_string_value(json_array_get(names, j)), dtypes[i].name) == 0;
        }
        if (is_listed && count < capacity) {
            list[count] = dtypes[i].dtype;
        }
        count += is_listed;
    }
    *count_out = count;
    return count <= capacity || capacity == 0
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_LIMIT,
                                 "supported_dtypes: there are %u, and room for %u", count,
                                 capacity);
}

static int32_t answer(ds_accel_t *context, const char *key, uint32_t *supported_out)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, supported_out, &status);
    int supported;

    if (known == NULL) {
        return status;
    }
    supported = supports(known, key);
    if (supported < 0) {
        return fail_unknown(context, key);
    }
    *supported_out = (uint32_t)supported;
    return DS_ACCEL_OK;
}

int32_t ds_accel_is_bf16_supported(ds_accel_t *context, uint32_t *supported_out)
{
    return answer(context, "is_bf16_supported", supported_out);
}

int32_t ds_accel_is_fp16_supported(ds_accel_t *context, uint32_t *supported_out)
{
    return answer(context, "is_fp16_supported", supported_out);
}
