/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Facts that need no open device (sensors, processes, links, environment rules), and profiler
 * ranges. */
#include "vendor_frame.h"

#include <assert.h>

#define ELEMENT_LIMIT 65536u /* most elements requested in one call of the backend */

static int32_t vendor_telemetry_get(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                    struct ds_accel_telemetry *telemetry_out,
                                    struct ds_accel_error *error)
{
    struct ds_accel_telemetry telemetry;
    int32_t status = vendor_check_index(instance, device_index, "telemetry_get", error);

    if (status < 0) {
        return status;
    }
    if (telemetry_out == NULL) {
        return vendor_null(error, "telemetry_get", "telemetry_out");
    }
    memset(&telemetry, 0, sizeof(telemetry));
    telemetry.struct_size = sizeof(telemetry);
    status = vendor_backend.telemetry(instance, device_index, &telemetry, error);
    if (status == DS_ACCEL_OK) {
        telemetry.reserved = 0;
        ds_accel_write(telemetry_out, &telemetry, sizeof(telemetry));
    }
    return status;
}

/* ---- arrays --------------------------------------------------------------------------------- */

/* The backend's function that fills an array, with the type of the elements erased. */
struct array_source {
    int32_t (*fill)(ds_accel_plugin_instance_t *instance, uint32_t device_index, void *elements,
                    uint32_t capacity, uint32_t *count_out, struct ds_accel_error *error);
    uint32_t element_bytes;
    const char *slot;
};

/* Fill the caller's array. The backend's elements have the size in this build's header, and the
   caller's elements have stride_bytes. At most ELEMENT_LIMIT elements are filled. */
static int32_t fill_array(const struct array_source *source, ds_accel_plugin_instance_t *instance,
                          uint32_t device_index, void *elements, uint32_t stride_bytes,
                          uint32_t capacity, uint32_t *count_out, struct ds_accel_error *error)
{
    unsigned char *own = NULL;
    uint32_t room = capacity < ELEMENT_LIMIT ? capacity : ELEMENT_LIMIT;
    uint32_t count = 0;
    int32_t status = vendor_check_index(instance, device_index, source->slot, error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_array(elements, capacity, count_out, source->slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (room > 0) {
        own = calloc(room, source->element_bytes);
        if (own == NULL) {
            return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", source->slot);
        }
    }
    status = source->fill(instance, device_index, own, room, &count, error);
    for (uint32_t i = 0; status == DS_ACCEL_OK && i < count && i < room; i++) {
        ds_accel_write_element(elements, stride_bytes, i, own + (size_t)i * source->element_bytes,
                               source->element_bytes);
    }
    if (status == DS_ACCEL_OK) {
        *count_out = count;
    }
    free(own);
    return status;
}

static int32_t fill_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                              void *elements, uint32_t capacity, uint32_t *count_out,
                              struct ds_accel_error *error)
{
    return vendor_backend.processes(instance, device_index, elements, capacity, count_out, error);
}

static int32_t vendor_telemetry_processes(ds_accel_plugin_instance_t *instance,
                                          uint32_t device_index, struct ds_accel_process *processes,
                                          uint32_t stride_bytes, uint32_t capacity,
                                          uint32_t *count_out, struct ds_accel_error *error)
{
    static const struct array_source source = {fill_processes, sizeof(struct ds_accel_process),
                                               "telemetry_processes"};

    return fill_array(&source, instance, device_index, processes, stride_bytes, capacity, count_out,
                      error);
}

static int32_t fill_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                          void *elements, uint32_t capacity, uint32_t *count_out,
                          struct ds_accel_error *error)
{
    return vendor_backend.links(instance, device_index, elements, capacity, count_out, error);
}

static int32_t vendor_links_get(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                struct ds_accel_link *links, uint32_t stride_bytes,
                                uint32_t capacity, uint32_t *count_out,
                                struct ds_accel_error *error)
{
    static const struct array_source source = {fill_links, sizeof(struct ds_accel_link),
                                               "links_get"};

    return fill_array(&source, instance, device_index, links, stride_bytes, capacity, count_out,
                      error);
}

/* ---- environment ---------------------------------------------------------------------------- */

static int32_t vendor_env_rules_get(ds_accel_plugin_instance_t *instance,
                                    struct ds_accel_env_rule *rules, uint32_t stride_bytes,
                                    uint32_t capacity, uint32_t *count_out,
                                    struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "env_rules_get", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_array(rules, capacity, count_out, "env_rules_get", error);
    }
    if (status < 0) {
        return status;
    }
    for (uint32_t i = 0; i < vendor_backend.env_rule_count && i < capacity; i++) {
        ds_accel_write_element(rules, stride_bytes, i, &vendor_backend.env_rules[i],
                               sizeof(vendor_backend.env_rules[i]));
    }
    *count_out = vendor_backend.env_rule_count;
    return DS_ACCEL_OK;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/*
 * Ranges that this thread has open, by instance and domain. Most vendors' libraries do not report
 * that no range is open, or report it only to an attached tool. Ranges for which this table has no
 * free entry are counted in uncounted, for all instances and domains together.
 */
static _Thread_local struct {
    const ds_accel_plugin_instance_t *instance; /* NULL: a free entry */
    uint64_t domain;
    uint64_t depth;
} open_ranges[16];
static _Thread_local uint64_t uncounted;

static uint64_t hash_domain(const char *domain)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *at = domain != NULL ? domain : ""; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* The index of the domain's entry, else of a free entry, else the number of entries. */
static size_t find_ranges(const ds_accel_plugin_instance_t *instance, uint64_t domain)
{
    const size_t count = sizeof(open_ranges) / sizeof(open_ranges[0]);
    size_t place = count;

    for (size_t i = 0; i < count; i++) {
        if (open_ranges[i].instance == instance && open_ranges[i].domain == domain) {
            return i;
        }
        place = open_ranges[i].instance == NULL && place == count ? i : place;
    }
    return place;
}

static void count_push(const ds_accel_plugin_instance_t *instance, const char *domain)
{
    uint64_t hash = hash_domain(domain);
    size_t place = find_ranges(instance, hash);

    if (place == sizeof(open_ranges) / sizeof(open_ranges[0])) {
        uncounted++;
        return;
    }
    open_ranges[place].instance = instance;
    open_ranges[place].domain = hash;
    open_ranges[place].depth++;
}

/* Count the end of a range: of the domain, or else of the ranges in uncounted. Returns 0 if both
   have no open range. */
static int count_pop(const ds_accel_plugin_instance_t *instance, const char *domain)
{
    size_t place = find_ranges(instance, hash_domain(domain));

    if (place == sizeof(open_ranges) / sizeof(open_ranges[0]) ||
        open_ranges[place].instance == NULL) {
        if (uncounted == 0) {
            return 0;
        }
        uncounted--;
        return 1;
    }
    assert(open_ranges[place].depth > 0);
    open_ranges[place].depth--;
    if (open_ranges[place].depth == 0) {
        open_ranges[place].instance = NULL;
    }
    return 1;
}

static int32_t vendor_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                                 const char *domain, const char *category,
                                 struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "range_push", error);

    if (status < 0) {
        return status;
    }
    if (message == NULL) {
        return vendor_null(error, "range_push", "message");
    }
    status = vendor_backend.range_push(instance, message, domain, category, error);
    if (status == DS_ACCEL_OK) {
        count_push(instance, domain);
    }
    return status;
}

static int32_t vendor_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                                struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "range_pop", error);

    if (status < 0) {
        return status;
    }
    if (!count_pop(instance, domain)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "range_pop: no range of domain \"%.100s\" is open on this thread",
                           domain != NULL ? domain : "");
    }
    return vendor_backend.range_pop(instance, domain, error);
}

static int32_t vendor_profiler_start(ds_accel_plugin_instance_t *instance,
                                     struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "profiler_start", error);

    return status < 0 ? status : vendor_backend.profiler_start(instance, error);
}

static int32_t vendor_profiler_stop(ds_accel_plugin_instance_t *instance,
                                    struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "profiler_stop", error);

    return status < 0 ? status : vendor_backend.profiler_stop(instance, error);
}

void vendor_facts_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    table->telemetry_get = backend->telemetry != NULL ? vendor_telemetry_get : NULL;
    table->telemetry_processes = backend->processes != NULL ? vendor_telemetry_processes : NULL;
    table->links_get = backend->links != NULL ? vendor_links_get : NULL;
    table->env_rules_get = backend->env_rule_count > 0 ? vendor_env_rules_get : NULL;
    if (backend->range_push != NULL && backend->range_pop != NULL) {
        table->range_push = vendor_range_push;
        table->range_pop = vendor_range_pop;
    }
    table->profiler_start = backend->profiler_start != NULL ? vendor_profiler_start : NULL;
    table->profiler_stop = backend->profiler_stop != NULL ? vendor_profiler_stop : NULL;
}
