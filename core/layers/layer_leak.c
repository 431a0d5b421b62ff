/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reports objects that are still live when their device is closed or the accelerator is shut down.
 * The report has one line for each device, kind of object (or memory) and call site that made such
 * objects, with their number and total size.
 */
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "layers/layer.h"

#include <stdlib.h>

struct group {
    const char *what;
    const void *site;
    uint32_t device_index;
    uint64_t count;
    uint64_t size_bytes; /* total size; 0 for kinds without a size, such as streams */
};

struct collection {
    const struct ds_accel__stack *stack;
    const void *instance; /* NULL: objects of all instances */
    const void *device;   /* NULL: objects of all devices */
    struct group *groups;
    size_t count;
    bool failed;
};

static void collect(struct collection *all, const char *what, uint32_t device_index,
                    const void *site, uint64_t size_bytes)
{
    struct group *group = NULL;

    for (size_t i = 0; i < all->count && group == NULL; i++) {
        if (all->groups[i].site == site && all->groups[i].device_index == device_index &&
            strcmp(all->groups[i].what, what) == 0) {
            group = &all->groups[i];
        }
    }
    if (group == NULL) {
        struct group *larger = realloc(all->groups, (all->count + 1) * sizeof(*larger));

        if (larger == NULL) {
            all->failed = true;
            return;
        }
        all->groups = larger;
        group = &larger[all->count++];
        *group = (struct group){.what = what, .site = site, .device_index = device_index};
    }
    group->count++;
    group->size_bytes += size_bytes;
}

static void collect_object(void *user_data, struct ds_accel__object *object)
{
    struct collection *all = user_data;

    if (object->stack == all->stack &&
        (all->instance == NULL || object->instance == all->instance) &&
        object->kind != DS_ACCEL__INSTANCE && !object->is_lent &&
        (all->device == NULL ||
         (object->device == all->device && object->kind != DS_ACCEL__DEVICE))) {
        collect(all, ds_accel__kind_name(object->kind), object->device_index, object->site, 0);
    }
}

static void collect_range(void *user_data, const struct ds_accel__range *range)
{
    struct collection *all = user_data;
    const char *what = "memory";

    if (range->slot == DS_ACCEL__SLOT_COUNT) {
        what = "block";
    } else if (range->slot == DS_ACCEL__SLOT_vmem_reserve) {
        what = "address range";
    } else if (range->slot == DS_ACCEL__SLOT_vmem_map) {
        what = "mapping";
    } else if (range->slot == DS_ACCEL__SLOT_mem_alloc_pinned) {
        what = "pinned memory";
    } else if (range->slot == DS_ACCEL__SLOT_mem_register) {
        what = "registered memory";
    } else if (range->slot == DS_ACCEL__SLOT_mem_alloc_managed) {
        what = "managed memory";
    }
    if (range->stack == all->stack && (all->instance == NULL || range->instance == all->instance) &&
        (all->device == NULL || range->device == all->device)) {
        collect(all, what, range->device_index, range->site,
                range->is_unsized ? 0 : range->size_bytes);
    }
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a;
    const struct group *right = b;
    int order;

    if (left->size_bytes != right->size_bytes) {
        return left->size_bytes < right->size_bytes ? 1 : -1;
    }
    order = strcmp(left->what, right->what);
    return order != 0 ? order : (left->site > right->site) - (left->site < right->site);
}

char *ds_accel__leak_text(const struct ds_accel__stack *stack, const void *instance,
                          const void *device)
{
    struct collection all = {.stack = stack, .instance = instance, .device = device};
    struct ds_accel__text text = {0};

    ds_accel__layer_lock();
    ds_accel__objects_visit(collect_object, &all);
    for (int in = 0; in < DS_ACCEL__REGISTER_COUNT; in++) {
        ds_accel__ranges_visit((enum ds_accel__register)in, collect_range, &all);
    }
    ds_accel__layer_unlock();
    if (all.count > 1) {
        qsort(all.groups, all.count, sizeof(*all.groups), compare_groups);
    }
    ds_accel__text_add(&text, "%s", "");
    for (size_t i = 0; i < all.count; i++) {
        const struct group *group = &all.groups[i];
        char site[256];

        ds_accel__layer_site(group->site, site, sizeof(site));
        ds_accel__text_add(&text, "device %u: %llu x %s", group->device_index,
                           (unsigned long long)group->count, group->what);
        if (group->size_bytes > 0) {
            ds_accel__text_add(&text, ", %llu bytes", (unsigned long long)group->size_bytes);
        }
        ds_accel__text_add(&text, ", made at %s\n", site);
    }
    if (all.failed) {
        ds_accel__text_add(&text, "memory is exhausted, so the rest is missing\n");
    }
    free(all.groups);
    return ds_accel__text_take(&text);
}

static void tell(const struct ds_accel__call *call, const void *device)
{
    char *text = ds_accel__leak_text(call->stack, call->instance, device);
    char *rest = text;
    char *line;

    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
        if (line[0] != '\0') {
            ds_accel__log(&call->stack->context->log, "leak", DS_ACCEL_LOG_WARN,
                          "%s is live at %s: %s", call->stack->candidate->name,
                          ds_accel__slots[call->slot].name, line);
        }
    }
    free(text);
}

static bool is_last_close(const void *device)
{
    const struct ds_accel__object *object;
    bool is_last;

    ds_accel__layer_lock();
    object = ds_accel__object_find(DS_ACCEL__DEVICE, device);
    is_last = object != NULL && object->opens == 1;
    ds_accel__layer_unlock();
    return is_last;
}

static void leak_before(struct ds_accel__call *call)
{
    const void *handle = DS_ACCEL__POINTER(call, 0);

    if (call->slot == DS_ACCEL__SLOT_shutdown && handle != NULL) {
        tell(call, NULL);
    } else if (call->slot == DS_ACCEL__SLOT_device_close && is_last_close(handle)) {
        tell(call, handle);
    }
}

const struct ds_accel__layer_ops ds_accel__layer_leak = {
    .name = "leak",
    .before = leak_before,
};
