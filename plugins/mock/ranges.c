/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Profiler ranges: the number of open ranges, for each thread and domain.
 *
 * The count detects a pop without a push: an error that real profilers do not report, but that
 * makes their output wrong. A thread has one entry for each domain in which it has an open range,
 * usually none or one.
 */
#include "mock.h"

struct mock_range {
    struct mock_range *next;
    pthread_t thread;
    uint64_t depth;
    char domain[64]; /* "" for NULL; a longer name is identified by its first 63 bytes */
};

/*
 * Returns the address of the link that points to the calling thread's entry for the domain; if
 * there is no entry, returns the address of the list's last link, which is NULL. Caller holds
 * instance->lock.
 */
static struct mock_range **find_range(ds_accel_plugin_instance_t *instance, const char *domain)
{
    struct mock_range **link = &instance->ranges;
    pthread_t self = pthread_self();
    const char *name = domain != NULL ? domain : "";

    while (*link != NULL && !(pthread_equal((*link)->thread, self) &&
                              strncmp((*link)->domain, name, sizeof((*link)->domain) - 1) == 0)) {
        link = &(*link)->next;
    }
    return link;
}

static int32_t mock_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                               const char *domain, const char *category,
                               struct ds_accel_error *error)
{
    struct mock_range **link;
    int32_t status = mock_enter(instance, "range_push", error);

    (void)category;
    if (status < 0) {
        return status;
    }
    if (message == NULL) {
        return mock_null(error, "range_push", "message");
    }
    pthread_mutex_lock(&instance->lock);
    link = find_range(instance, domain);
    if (*link == NULL) {
        *link = calloc(1, sizeof(**link));
        if (*link != NULL) {
            (*link)->thread = pthread_self();
            snprintf((*link)->domain, sizeof((*link)->domain), "%s", domain != NULL ? domain : "");
        }
    }
    if (*link != NULL) {
        (*link)->depth++;
    } else {
        status = DS_ACCEL_ERR_NO_MEMORY;
    }
    pthread_mutex_unlock(&instance->lock);
    return status < 0 ? plugin_fail(error, status, "range_push: no memory") : DS_ACCEL_OK;
}

static int32_t mock_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                              struct ds_accel_error *error)
{
    struct mock_range **link;
    int32_t status = mock_enter(instance, "range_pop", error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&instance->lock);
    link = find_range(instance, domain);
    if (*link == NULL) {
        status = DS_ACCEL_ERR_STATE;
    } else {
        struct mock_range *range = *link;

        range->depth--;
        if (range->depth == 0) {
            *link = range->next;
            free(range);
        }
    }
    pthread_mutex_unlock(&instance->lock);
    if (status < 0) {
        return plugin_fail(error, status, "range_pop: no range of domain \"%s\" is open here",
                           domain != NULL ? domain : "");
    }
    return DS_ACCEL_OK;
}

void mock_ranges_release(ds_accel_plugin_instance_t *instance)
{
    while (instance->ranges != NULL) {
        struct mock_range *next = instance->ranges->next;

        free(instance->ranges);
        instance->ranges = next;
    }
}

static int32_t mock_profiler_start(ds_accel_plugin_instance_t *instance,
                                   struct ds_accel_error *error)
{
    return mock_enter(instance, "profiler_start", error);
}

static int32_t mock_profiler_stop(ds_accel_plugin_instance_t *instance,
                                  struct ds_accel_error *error)
{
    return mock_enter(instance, "profiler_stop", error);
}

void mock_ranges_fill(struct ds_accel_plugin *table)
{
    table->range_push = mock_range_push;
    table->range_pop = mock_range_pop;
    table->profiler_start = mock_profiler_start;
    table->profiler_stop = mock_profiler_stop;
}
