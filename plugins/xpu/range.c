/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Ranges for VTune, through ITT.
 *
 * Programs link with a static library that passes every call to the collector library in
 * INTEL_LIBITTNOTIFY64, and has no effect without a collector. The plugin calls the collector
 * directly if the collector exports the functions; otherwise ranges are accepted and have no
 * effect, as in any program.
 */
#include "xpu.h"

#define DEFAULT_DOMAIN "ds-accel"

void xpu_itt_find(struct xpu_runtime *runtime)
{
    static const struct vendor_symbol symbols[] = {
        VENDOR_REQUIRED(struct itt_api, __itt_domain_create),
        VENDOR_REQUIRED(struct itt_api, __itt_string_handle_create),
        VENDOR_REQUIRED(struct itt_api, __itt_task_begin),
        VENDOR_REQUIRED(struct itt_api, __itt_task_end),
        VENDOR_OPTIONAL(struct itt_api, __itt_pause, NULL),
        VENDOR_OPTIONAL(struct itt_api, __itt_resume, NULL),
    };
    const char *names[2] = {secure_getenv("INTEL_LIBITTNOTIFY64"), NULL};
    struct vendor_problem problem = {0};
    struct vendor_lib lib;

    if (names[0] == NULL || names[0][0] == '\0') {
        return;
    }
    if (vendor_lib_open(&lib, runtime->host, NULL, names, &problem) != 0 ||
        vendor_lib_bind(&lib, symbols, sizeof(symbols) / sizeof(symbols[0]), &runtime->itt,
                        &problem) != 0) {
        vendor_log(runtime->host, DS_ACCEL_LOG_WARN, "no ranges for INTEL_LIBITTNOTIFY64: %s",
                   problem.detail);
        return;
    }
    runtime->has_itt = 1;
}

/* Returns the domain for a name: the collector returns the same domain for the same name. */
static struct itt_domain *find_domain(const struct xpu_runtime *runtime, const char *name)
{
    return runtime->itt.__itt_domain_create(name != NULL ? name : DEFAULT_DOMAIN);
}

int32_t xpu_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                       const char *domain, const char *category, struct ds_accel_error *error)
{
    const struct xpu_runtime *runtime = instance->runtime;
    const struct itt_id none = {{0, 0, 0}};
    const struct itt_domain *where;
    struct itt_string *name;

    (void)category; /* an ITT task has no category */
    if (!runtime->has_itt) {
        return DS_ACCEL_OK;
    }
    where = find_domain(runtime, domain);
    name = runtime->itt.__itt_string_handle_create(message);
    if (where == NULL || name == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "range_push(\"%.100s\"): the ITT collector returned no %s", message,
                           where == NULL ? "domain" : "string");
    }
    runtime->itt.__itt_task_begin(where, none, none, name);
    return DS_ACCEL_OK;
}

int32_t xpu_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                      struct ds_accel_error *error)
{
    const struct xpu_runtime *runtime = instance->runtime;
    const struct itt_domain *where;

    if (!runtime->has_itt) {
        return DS_ACCEL_OK;
    }
    where = find_domain(runtime, domain);
    if (where == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "range_pop: the ITT collector returned no domain");
    }
    runtime->itt.__itt_task_end(where);
    return DS_ACCEL_OK;
}

int32_t xpu_profiler_start(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error)
{
    const struct xpu_runtime *runtime = instance->runtime;

    (void)error;
    if (runtime->has_itt && runtime->itt.__itt_resume != NULL) {
        runtime->itt.__itt_resume();
    }
    return DS_ACCEL_OK;
}

int32_t xpu_profiler_stop(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error)
{
    const struct xpu_runtime *runtime = instance->runtime;

    (void)error;
    if (runtime->has_itt && runtime->itt.__itt_pause != NULL) {
        runtime->itt.__itt_pause();
    }
    return DS_ACCEL_OK;
}
