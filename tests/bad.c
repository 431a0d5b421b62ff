/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "bad.h"

const char *bad_fault;
const struct ds_accel_host *bad_host;

bool bad_commits(const char *name)
{
    return bad_fault != NULL && strcmp(bad_fault, name) == 0;
}

static int32_t bad_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                         struct ds_accel_error *details)
{
    (void)host;
    (void)details;
    verdict->state = DS_ACCEL_PROBE_AVAILABLE;
    verdict->device_count = 1;
    return DS_ACCEL_OK;
}

static char bad_instance;
static char bad_device;

static int32_t bad_init(const struct ds_accel_host *host, ds_accel_plugin_instance_t **out,
                        struct ds_accel_error *details)
{
    (void)details;
    bad_host = host;
    *out = (ds_accel_plugin_instance_t *)&bad_instance;
    return DS_ACCEL_OK;
}

static void bad_shutdown(ds_accel_plugin_instance_t *it)
{
    (void)it;
}

static int32_t bad_count(ds_accel_plugin_instance_t *it, uint32_t *count_out,
                         struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    if (!bad_commits("silent output")) {
        *count_out = 1;
    }
    return DS_ACCEL_OK;
}

static int32_t bad_open(ds_accel_plugin_instance_t *it, uint32_t index,
                        ds_accel_plugin_device_t **out, struct ds_accel_error *details)
{
    (void)it;
    (void)index;
    (void)details;
    *out = (ds_accel_plugin_device_t *)&bad_device;
    return DS_ACCEL_OK;
}

static void bad_close(ds_accel_plugin_device_t *it)
{
    (void)it;
}

static int32_t bad_alloc(ds_accel_plugin_device_t *it, uint64_t size_bytes, uint64_t align_bytes,
                         uint32_t flags, void **pointer_out, struct ds_accel_error *details)
{
    (void)it;
    (void)size_bytes;
    (void)align_bytes;
    (void)flags;
    if (bad_commits("positive status")) {
        return 7;
    }
    if (bad_commits("null handle")) {
        *pointer_out = NULL;
        return DS_ACCEL_OK;
    }
    *pointer_out = &bad_device;
    if (bad_commits("output on failure") || bad_commits("no message")) {
        details->code = DS_ACCEL_ERR_BUSY;
        snprintf(details->message, sizeof(details->message), "%s",
                 bad_commits("no message") ? "" : "mem_alloc: busy");
    }
    if (bad_commits("wrong code")) {
        snprintf(details->message, sizeof(details->message), "mem_alloc: busy");
    }
    return bad_fault != NULL ? DS_ACCEL_ERR_BUSY : DS_ACCEL_OK;
}

static int32_t bad_info(ds_accel_plugin_device_t *it, struct ds_accel_device_info *info_out,
                        struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    info_out->device_index = 0;
    if (bad_commits("struct overrun")) {
        memset((char *)info_out + info_out->struct_size, 0, 8);
    }
    if (bad_commits("struct size")) {
        info_out->struct_size = 4;
    }
    return DS_ACCEL_OK;
}

static void bad_fill(struct ds_accel_plugin *it)
{
    it->probe = bad_probe;
    it->init = bad_init;
    it->shutdown = bad_shutdown;
    it->device_count = bad_count;
    it->device_open = bad_open;
    it->device_close = bad_close;
    it->device_info = bad_info;
    it->mem_alloc = bad_alloc;
}

DS_ACCEL_PLUGIN("bad", "the tests", "1.0", 0, 0, bad_fill);
