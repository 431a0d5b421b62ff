/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Stores the merged configuration in the format of config/snapshot.c, in a file next to the
 * verdicts, so that the configuration files need not be read again.
 */
#include "base/text.h"
#include "config/config.h"
#include "config/snapshot.h"
#include "host/cache.h"
#include "host/context.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_LIMIT_BYTES (8 * 1024 * 1024u)

int32_t ds_accel__snapshot_take(ds_accel_t *context)
{
    const struct ds_accel__cache_place place = ds_accel__cache_place(context);
    struct ds_accel__config *config = &context->config;
    struct ds_accel__config_later *later;
    char *data;
    size_t size;
    int32_t status;

    assert(config->merged == NULL && config->later == NULL);
    config->identity = ds_accel__snapshot_identify(config, &config->is_settled);
    if (config->identity == 0) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__cache_read_file(&place, DS_ACCEL__CONFIG_CACHE_FILE, FILE_LIMIT_BYTES, &data,
                                       &size);
    if (status < 0 || data == NULL) {
        return status;
    }
    later = calloc(1, sizeof(*later));
    config->merged = later != NULL ? ds_accel__snapshot_parse(data, size, config->identity, true)
                                   : NULL;
    config->is_snapshot = config->merged != NULL;
    if (!config->is_snapshot) {
        /* Fall back to the files; if memory is exhausted, reading them reports that. */
        free(data);
        free(later);
        return DS_ACCEL_OK;
    }
    later->data = data;
    later->size_bytes = size;
    config->later = later;
    return DS_ACCEL_OK;
}

void ds_accel__snapshot_forget(const ds_accel_t *context)
{
    unlinkat(context->cache.directory_fd, DS_ACCEL__CONFIG_CACHE_FILE, 0);
}

int32_t ds_accel__snapshot_keep(ds_accel_t *context)
{
    struct ds_accel__config *config = &context->config;
    struct ds_accel__text text = {0};
    bool settled;
    int32_t status;

    if (config->is_snapshot || config->is_kept || config->identity == 0 || !config->is_settled ||
        config->has_ops || config->problem_count > 0 || !context->cache.is_open ||
        !context->cache.is_writable ||
        ds_accel__snapshot_identify(config, &settled) != config->identity) {
        return DS_ACCEL_OK;
    }
    assert(config->merged != NULL);
    config->is_kept = true;
    status = ds_accel__snapshot_format(config->merged, config->identity, &text);
    if (status >= 0) {
        ds_accel__cache_write_file(&context->cache, DS_ACCEL__CONFIG_CACHE_FILE, &text);
    }
    ds_accel__text_clear(&text);
    return status;
}
