/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reads snapshot files of the caching allocator, and converts them to other formats. */
#include "memtools/memory_read.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/snapshot/memory_snapshot.h"

#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_BYTES ((size_t)256 * 1024 * 1024)

static int32_t fail_nul(const char *name, const char *text, const char *nul)
{
    const char *line = text;
    size_t number = 1;

    for (const char *c = text; c < nul; c++) {
        if (*c == '\n') {
            line = c + 1;
            number++;
        }
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s:%zu:%zu: a NUL byte; expected JSON", name,
                           number, (size_t)(nul - line) + 1);
}

int32_t ds_accel__memory_snapshot_parse(const char *name, const char *text, size_t size_bytes,
                                        json_t **tree_out)
{
    struct ds_accel__snapshot_text from = {.name = name, .text = text, .size_bytes = size_bytes};
    const char *nul = memchr(text, '\0', size_bytes);
    json_error_t error;
    json_t *tree;
    int32_t status;

    if (nul != NULL) { /* jansson would accept a NUL byte */
        return fail_nul(name, text, nul);
    }
    tree = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &error);
    if (tree == NULL && json_error_code(&error) == json_error_out_of_memory) {
        return ds_accel__no_memory();
    }
    if (tree == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s:%d:%d: %s", name, error.line, error.column,
                               error.text);
    }
    status = ds_accel__memory_snapshot_complete(tree, &from, tree_out);
    json_decref(tree);
    return status;
}

int32_t ds_accel__memory_snapshot_read(const char *path, json_t **tree_out)
{
    const char *cause;
    char *text;
    size_t size;
    int32_t status = ds_accel__file_read(path, FILE_LIMIT_BYTES, &text, &size, &cause);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    if (status < 0) {
        return ds_accel__error(status, "%s: %s", path, cause);
    }
    status = ds_accel__memory_snapshot_parse(path, text, size, tree_out);
    free(text);
    return status;
}

int32_t ds_accel_memory_snapshot_convert(const char *path, uint32_t format, void **data_out,
                                         size_t *size_bytes_out)
{
    json_t *tree = NULL;
    int32_t status;

    if (path == NULL || data_out == NULL || size_bytes_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "path, data_out or size_bytes_out is NULL");
    }
    status = ds_accel__memory_snapshot_read(path, &tree);
    if (status < 0) {
        return status;
    }
    status = ds_accel__memory_snapshot_write(tree, format, data_out, size_bytes_out);
    json_decref(tree);
    return status;
}
