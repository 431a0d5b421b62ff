/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The options --include and --exclude: "w0@w1:0,2" means all slots of w0 and two slots of w1. A
 * name contains no @. An IPv6 address contains colons, and so does the PCI address of a slot; the
 * longest text in front of a colon that is a host is the host.
 *
 * Two results differ from DeepSpeed's, whose filter checks a pool that it has rewritten already:
 * --include of a host without slots selects all its slots, not none, and --include of a slot that
 * the host lacks is an error.
 */
#include "base/text.h"
#include "launch/hosts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct filter {
    struct ds_accel__hosts *hosts;
    struct ds_accel__host_index index;
    struct mark *marks; /* for each host */
    const char *option; /* "--include" */
    bool is_include;
    int32_t (*find_slot)(void *user_data, const struct ds_accel__job_host *host, const char *token,
                         uint32_t *index_out);
    void *user_data;
};

/* What a filter says of a host. */
struct mark {
    bool is_named;
    bool has_all;                    /* the host was named without slots */
    struct ds_accel__job_host named; /* its slots are those that were named */
};

static int32_t add_slot(const struct filter *filter, size_t position, const char *text,
                        size_t length)
{
    const struct ds_accel__job_host *host = &filter->hosts->items[position];
    struct ds_accel__slot slot;
    int32_t status = DS_ACCEL_OK;

    if (!ds_accel__slot_parse(text, length, &slot)) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID,
            "%s: \"%.*s\" is not a slot of host %s: expected an index, a UUID or "
            "a PCI address",
            filter->option, (int)(length < 80 ? length : 80), text, host->name);
    }
    if (slot.token != NULL) {
        char *token = strndup(text, length);

        status = token != NULL ? filter->find_slot(filter->user_data, host, token, &slot.index)
                               : ds_accel__no_memory();
        slot.device = slot.index;
        free(token);
    }
    if (status >= 0 && slot.index == DS_ACCEL__NO_INDEX && !filter->is_include) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: the devices of host %s are not known here: name the slot by "
                               "its index, not by \"%.*s\"",
                               filter->option, host->name, (int)(length < 80 ? length : 80), text);
    }
    if (status >= 0 && slot.index != DS_ACCEL__NO_INDEX &&
        ds_accel__host_find(host, &slot) == NULL) {
        status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: host %s has no slot %.*s, only %u %s",
                                 filter->option, host->name, (int)(length < 80 ? length : 80), text,
                                 host->slot_count, host->slot_count == 1 ? "slot" : "slots");
    }
    return status < 0 ? status
                      : ds_accel__host_add_slot(&filter->marks[position].named, &slot, length);
}

/* ---- the option ----------------------------------------------------------------------------- */

/*
 * Find the host of HOST[:SLOT,...]: the longest name that is one, because an IPv6 address has
 * colons, as the PCI address of a slot has. Returns its position, or SIZE_MAX. *length_out: of its
 * name, or of the text before the first colon.
 */
static size_t find_host(const struct filter *filter, const char *text, size_t length,
                        size_t *length_out)
{
    const char *colon = memchr(text, ':', length);
    size_t position = ds_accel__host_index_find(&filter->index, text, length);

    *length_out = length;
    for (size_t i = length; i-- > 0 && position == SIZE_MAX;) {
        if (text[i] == ':') {
            position = ds_accel__host_index_find(&filter->index, text, i);
            *length_out = i;
        }
    }
    if (position == SIZE_MAX && colon != NULL) {
        *length_out = (size_t)(colon - text);
    }
    return position;
}

/* Read HOST[:SLOT,...]. */
static int32_t add_node(const struct filter *filter, const char *text, size_t length)
{
    size_t name_length;
    size_t position = find_host(filter, text, length, &name_length);
    const char *end = text + length;
    const char *colon = name_length < length ? text + name_length : NULL;
    int32_t status = DS_ACCEL_OK;

    if (position == SIZE_MAX) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: host \"%.*s\" is not in the hostfile",
                               filter->option, (int)(name_length < 255 ? name_length : 255), text);
    }
    filter->marks[position].is_named = true;
    filter->marks[position].has_all |= colon == NULL;
    for (const char *slot = colon; slot != NULL && status >= 0;) {
        const char *comma;

        slot++;
        comma = memchr(slot, ',', (size_t)(end - slot));
        status = add_slot(filter, position, slot, (size_t)((comma != NULL ? comma : end) - slot));
        slot = comma;
    }
    return status;
}

static int32_t read_option(const struct filter *filter, const char *text)
{
    int32_t status = DS_ACCEL_OK;

    for (const char *node = text; node != NULL && status >= 0;) {
        size_t length = strcspn(node, "@");

        status = add_node(filter, node, length);
        node = node[length] == '@' ? node + length + 1 : NULL;
    }
    for (size_t i = 0; i < filter->hosts->count && status >= 0; i++) {
        status = ds_accel__host_sort_slots(&filter->marks[i].named);
    }
    return status;
}

/* Move the named slots to the host. */
static void take_slots(struct ds_accel__job_host *host, struct mark *mark)
{
    ds_accel__host_clear_slots(host);
    host->slots = mark->named.slots;
    host->slot_count = mark->named.slot_count;
    host->slot_capacity = mark->named.slot_capacity;
    mark->named = (struct ds_accel__job_host){0};
}

static void remove_slots(struct ds_accel__job_host *host, const struct mark *mark)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < host->slot_count; i++) {
        if (mark->has_all || ds_accel__host_find(&mark->named, &host->slots[i]) != NULL) {
            free(host->slots[i].token);
        } else {
            host->slots[count++] = host->slots[i];
        }
    }
    host->slot_count = count;
}

static void apply(const struct filter *filter)
{
    for (size_t i = 0; i < filter->hosts->count; i++) {
        struct ds_accel__job_host *host = &filter->hosts->items[i];
        struct mark *mark = &filter->marks[i];

        if (!filter->is_include) {
            if (mark->is_named) {
                remove_slots(host, mark);
            }
        } else if (!mark->is_named) {
            ds_accel__host_clear_slots(host);
        } else if (!mark->has_all) {
            take_slots(host, mark);
        }
    }
    ds_accel__hosts_compact(filter->hosts);
}

static void clear(struct filter *filter, size_t host_count)
{
    for (size_t i = 0; i < host_count; i++) {
        ds_accel__host_clear_slots(&filter->marks[i].named);
    }
    free(filter->marks);
    ds_accel__host_index_clear(&filter->index);
}

int32_t
ds_accel__hosts_filter(struct ds_accel__hosts *hosts, const char *include, const char *exclude,
                       int32_t (*find_slot)(void *user_data, const struct ds_accel__job_host *host,
                                            const char *token, uint32_t *index_out),
                       void *user_data)
{
    bool is_include = include != NULL && include[0] != '\0';
    bool is_exclude = exclude != NULL && exclude[0] != '\0';
    size_t host_count = hosts->count;
    struct filter filter = {.hosts = hosts,
                            .option = is_include ? "--include" : "--exclude",
                            .is_include = is_include,
                            .find_slot = find_slot,
                            .user_data = user_data};
    int32_t status;

    if (is_include && is_exclude) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "--include and --exclude exclude each other");
    }
    if (!is_include && !is_exclude) {
        return DS_ACCEL_OK;
    }
    filter.marks = calloc(host_count > 0 ? host_count : 1, sizeof(*filter.marks));
    if (filter.marks == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__host_index_create(&filter.index, hosts, host_count);
    if (status >= 0) {
        status = read_option(&filter, is_include ? include : exclude);
    }
    if (status >= 0) {
        apply(&filter);
        if (hosts->count == 0) {
            status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s leaves no slot", filter.option);
        }
    }
    clear(&filter, host_count);
    return status;
}
