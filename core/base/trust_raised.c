/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of files that the caller chose, in a process with raised rights: only root may own such a
 * file or write to it.
 */
#include "base/text.h"
#include "base/trust.h"

int32_t ds_accel__trust_if_raised(const char *path, struct ds_accel__finding *finding)
{
    struct ds_accel__trust *trust;
    struct stat info;
    int32_t status;

    if (!ds_accel__has_raised_rights()) {
        return DS_ACCEL_OK;
    }
    trust = ds_accel__trust_create();
    if (trust == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__trust_stat(trust, path, &info, finding);
    ds_accel__trust_destroy(trust);
    return status;
}

int32_t ds_accel__trust_named_file(const char *path)
{
    struct ds_accel__finding finding = {0};
    int32_t status = ds_accel__trust_if_raised(path, &finding);

    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s: %s", path,
                                 ds_accel__reason_code(finding.reason), finding.detail);
    }
    return status;
}
