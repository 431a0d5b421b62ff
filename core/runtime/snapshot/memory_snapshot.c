/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Writing a snapshot in any of the five formats. */
#include "runtime/snapshot/memory_snapshot.h"
#include "base/fork.h"
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <stdlib.h>

static int32_t write_json(json_t *tree, struct ds_accel__text *out)
{
    char *dump = ds_accel__json_dump(tree, JSON_INDENT(2));

    if (dump != NULL) {
        ds_accel__text_add_printable_json(out, dump);
        ds_accel__text_add(out, "\n");
    }
    free(dump);
    return dump != NULL && !out->failed ? DS_ACCEL_OK : ds_accel__no_memory();
}

int32_t ds_accel__memory_snapshot_write(json_t *tree, uint32_t format, void **data_out,
                                        size_t *size_bytes_out)
{
    struct ds_accel__text text = {0};
    size_t size_bytes;
    int32_t status;

    switch (format) {
    case DS_ACCEL_SNAPSHOT_JSON:
        status = write_json(tree, &text);
        break;
    case DS_ACCEL_SNAPSHOT_SVG:
        status = ds_accel__memory_map_svg(tree, &text);
        break;
    case DS_ACCEL_SNAPSHOT_PICKLE:
        status = ds_accel__pickle_write(tree, &text);
        break;
    case DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS:
        status = ds_accel__pickle_write(json_object_get(tree, "segments"), &text);
        break;
    case DS_ACCEL_SNAPSHOT_TEXT:
        status = ds_accel__memory_map_text(tree, &text);
        break;
    default:
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no snapshot format %u", format);
    }
    if (status < 0) {
        ds_accel__text_clear(&text);
        return status;
    }
    size_bytes = text.size_bytes;
    *data_out = ds_accel__text_take(&text);
    if (*data_out == NULL) {
        return ds_accel__no_memory();
    }
    *size_bytes_out = size_bytes;
    return DS_ACCEL_OK;
}

/* Check the arguments context and device of ds_accel_memory_snapshot(). If device is not NULL,
 * *context becomes the context of the device; otherwise the snapshot is of all devices of
 * *context. */
static int32_t find_whole(ds_accel_t **context, ds_accel_device_t *device,
                          struct ds_accel__device **device_out)
{
    if (device != NULL) {
        *device_out = ds_accel__device_check(device, "memory_snapshot");
        if (*device_out == NULL) {
            return DS_ACCEL_ERR_INVALID;
        }
        *context = (*device_out)->context;
        return ds_accel__device_fork_check(*device_out);
    }
    if (*context == NULL) {
        return ds_accel__refuse("memory_snapshot", "context", NULL);
    }
    if (ds_accel__fork_parent() != 0 && (*context)->selected != NULL &&
        (*context)->selected->watch.is_forked) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "memory_snapshot: the accelerator was started before fork()");
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_memory_snapshot(ds_accel_t *context, ds_accel_device_t *device, uint32_t format,
                                 void **data_out, size_t *size_bytes_out)
{
    struct ds_accel__device *ours = NULL;
    json_t *tree = NULL;
    json_t *complete = NULL;
    int32_t status = find_whole(&context, device, &ours);

    if (status < 0) {
        return status;
    }
    if (data_out == NULL || size_bytes_out == NULL) {
        return ds_accel__refuse("memory_snapshot", "output", NULL);
    }
    status = ds_accel__memory_snapshot_tree(context, ours, &tree);
    if (status < 0) {
        return status;
    }
    status = ds_accel__memory_snapshot_complete(tree, NULL, &complete);
    json_decref(tree);
    if (status >= 0) {
        status = ds_accel__memory_snapshot_write(complete, format, data_out, size_bytes_out);
        json_decref(complete);
    }
    return status;
}

void ds_accel_free_data(void *data)
{
    free(data);
}
