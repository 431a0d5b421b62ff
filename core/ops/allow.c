/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gate hash of ops. The allow-list has plugins and ops:
 *
 *     "trust": {"mode": "enforce", "sha256": {
 *         "cuda": "...",                   the plugin of a backend
 *         "ops/cpu_adam": "...",           an op that works on the host's memory
 *         "ops/cuda/fused_adam": "..."}}   an op that works on a backend's memory
 *
 * The file that is loaded is compared, no matter whether it is installed or in a cache.
 */
#include "ops/allow.h"
#include "base/text.h"
#include "host/context.h"
#include "ops/recipe.h"

#include <stdlib.h>
#include <string.h>

enum mode {
    MODE_OFF,
    MODE_WARN,
    MODE_ENFORCE
};

/* The caller holds context->config_lock. */
static enum mode read_mode(const ds_accel_t *context)
{
    const char *mode =
        json_string_value(ds_accel__config_get(&context->config, "trust", "mode", NULL));

    if (mode == NULL || strcmp(mode, "off") == 0) {
        return MODE_OFF;
    }
    return strcmp(mode, "warn") == 0 ? MODE_WARN : MODE_ENFORCE;
}

static enum mode get_mode(ds_accel_t *context)
{
    enum mode mode;

    pthread_mutex_lock(&context->config_lock);
    mode = read_mode(context);
    pthread_mutex_unlock(&context->config_lock);
    return mode;
}

bool ds_accel__allow_is_on(ds_accel_t *context)
{
    return get_mode(context) != MODE_OFF;
}

/* The name of an op in the list, as a new string; NULL: memory is exhausted. */
static char *list_name(const char *backend, const char *op)
{
    return backend != NULL ? ds_accel__format("ops/%s/%s", backend, op)
                           : ds_accel__format("ops/%s", op);
}

/* Copy the digest that the list has for a name; "": it has none. */
static void read_allowed(ds_accel_t *context, const char *name, char digest_out[65])
{
    const char *allowed;

    pthread_mutex_lock(&context->config_lock);
    allowed =
        json_string_value(ds_accel__config_get(&context->config, "trust", "sha256", name, NULL));
    ds_accel__copy(digest_out, 65, allowed != NULL ? allowed : "");
    pthread_mutex_unlock(&context->config_lock);
}

static void compare(const char *digest, const char *allowed, const char *name,
                    struct ds_accel__finding *finding)
{
    if (allowed[0] == '\0') {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HASH_UNLISTED,
                              "its SHA-256 is %s, and trust.sha256 has no \"%.200s\"", digest,
                              name);
    } else if (strcmp(digest, allowed) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HASH_MISMATCH,
                              "its SHA-256 is %s; trust.sha256 has %s for \"%.200s\"", digest,
                              allowed, name);
    }
}

/* Set *digest_out, or the finding if the file cannot be read. */
static int32_t read_digest(struct ds_accel__kernel *kernel, char digest_out[65])
{
    int32_t status = ds_accel__source_digest(kernel->path, digest_out);

    if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
        ds_accel__finding_set(&kernel->finding, DS_ACCEL__REASON_NOT_READABLE, "%s",
                              ds_accel_last_error());
        status = DS_ACCEL_OK;
    }
    return status;
}

int32_t ds_accel__allow_check(ds_accel_t *context, const char *backend, const char *op,
                              const char *digest, struct ds_accel__kernel *kernel)
{
    enum mode mode = get_mode(context);
    char allowed[65];
    char own[65];
    char *name;
    int32_t status = DS_ACCEL_OK;

    if (mode == MODE_OFF || kernel->path == NULL ||
        kernel->finding.reason != DS_ACCEL__REASON_NONE) {
        return DS_ACCEL_OK;
    }
    name = list_name(backend, op);
    if (name == NULL) {
        return ds_accel__no_memory();
    }
    if (digest == NULL) {
        status = read_digest(kernel, own);
        digest = own;
    }
    if (status >= 0 && kernel->finding.reason == DS_ACCEL__REASON_NONE) {
        read_allowed(context, name, allowed);
        compare(digest, allowed, name, &kernel->finding);
    }
    free(name);
    if (mode == MODE_WARN && kernel->finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__log(&context->log, "trust", DS_ACCEL_LOG_WARN, "%s: %s: %s", kernel->path,
                      ds_accel__reason_code(kernel->finding.reason), kernel->finding.detail);
        kernel->finding = (struct ds_accel__finding){.reason = DS_ACCEL__REASON_NONE};
    }
    return status;
}

int32_t ds_accel__allow_expect(ds_accel_t *context, const char *backend, const char *op,
                               char **why_out)
{
    char *name = get_mode(context) == MODE_ENFORCE ? list_name(backend, op) : NULL;
    char allowed[65] = "";

    *why_out = NULL;
    if (name == NULL) {
        return get_mode(context) == MODE_ENFORCE ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    read_allowed(context, name, allowed);
    if (allowed[0] == '\0') {
        *why_out = ds_accel__format("trust.mode is enforce, and trust.sha256 has no \"%s\": "
                                    "`ds-accel ops build %s` builds it and reports its SHA-256",
                                    name, op);
    }
    free(name);
    return allowed[0] != '\0' || *why_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}
