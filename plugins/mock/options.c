/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The options, read once by probe and once by each init.
 *
 * The error for a malformed option contains the option, its value and the expected values. Using
 * the default instead would mislead an operator who expects the setting to have an effect.
 */
#include "mock.h"

#define MAX_LATENCY_NS UINT64_C(3600000000000) /* one hour */
#define MAX_LATENCY_MS UINT64_C(3600000)
#define SCRIPT_BYTES 1024u

struct number_option {
    const char *key;
    size_t offset; /* offset of a uint64_t in struct mock_options */
    uint64_t initial;
    uint64_t largest;
};

#define NUMBER(key_, initial_, largest_) \
    { \
#key_, offsetof(struct mock_options, key_), initial_, largest_ \
    }

static const struct number_option number_options[] = {
    NUMBER(device_count, 2, MOCK_MAX_DEVICES),
    NUMBER(memory_bytes, UINT64_C(1) << 30, UINT64_MAX),
    NUMBER(alloc_latency_ns, 0, MAX_LATENCY_NS),
    NUMBER(copy_latency_ns, 0, MAX_LATENCY_NS),
    NUMBER(launch_latency_ns, 0, MAX_LATENCY_NS),
    NUMBER(sync_latency_ns, 0, MAX_LATENCY_NS),
    NUMBER(probe_latency_ms, 0, MAX_LATENCY_MS),
    NUMBER(copy_bytes_per_s, 0, UINT64_MAX),
    NUMBER(pinned_limit_bytes, 0, UINT64_MAX),
    NUMBER(max_allocation_bytes, 0, UINT64_MAX),
};

struct reason_name {
    const char *name;
    uint32_t reason;
    int32_t init_status; /* status that init returns for this reason */
};

static const struct reason_name reason_names[] = {
    {"no_device", DS_ACCEL_REASON_NO_DEVICE, DS_ACCEL_ERR_NO_DEVICE},
    {"no_driver", DS_ACCEL_REASON_NO_DRIVER, DS_ACCEL_ERR_NO_DEVICE},
    {"no_permission", DS_ACCEL_REASON_NO_PERMISSION, DS_ACCEL_ERR_PERMISSION},
    {"library_missing", DS_ACCEL_REASON_LIBRARY_MISSING, DS_ACCEL_ERR_NOT_FOUND},
    {"symbol_missing", DS_ACCEL_REASON_SYMBOL_MISSING, DS_ACCEL_ERR_NOT_FOUND},
    {"driver_mismatch", DS_ACCEL_REASON_DRIVER_MISMATCH, DS_ACCEL_ERR_DRIVER},
    {"device_busy", DS_ACCEL_REASON_DEVICE_BUSY, DS_ACCEL_ERR_BUSY},
    {"hidden", DS_ACCEL_REASON_HIDDEN, DS_ACCEL_ERR_NO_DEVICE},
    {"device_too_old", DS_ACCEL_REASON_DEVICE_TOO_OLD, DS_ACCEL_ERR_NO_DEVICE},
    {"device_asleep", DS_ACCEL_REASON_DEVICE_ASLEEP, DS_ACCEL_ERR_NO_DEVICE},
    {"driver_failed", DS_ACCEL_REASON_DRIVER_FAILED, DS_ACCEL_ERR_DRIVER},
    {"bad_option", DS_ACCEL_REASON_BAD_OPTION, DS_ACCEL_ERR_INVALID},
};

static const struct reason_name *find_reason(const char *name)
{
    for (size_t i = 0; i < sizeof(reason_names) / sizeof(reason_names[0]); i++) {
        if (strcmp(reason_names[i].name, name) == 0) {
            return &reason_names[i];
        }
    }
    return NULL;
}

/* Reads an option's text, or the default if the option is unset. */
static int32_t read_text(const struct ds_accel_host *host, const char *key, const char *initial,
                         char *value, uint32_t value_size, struct ds_accel_error *error)
{
    int32_t status = host->config_get(host, key, value, value_size, NULL);

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        snprintf(value, value_size, "%s", initial);
        return DS_ACCEL_OK;
    }
    if (status < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option %s: the value is not a text of up to %u bytes", key,
                           value_size - 1);
    }
    return DS_ACCEL_OK;
}

static int32_t read_numbers(const struct ds_accel_host *host, struct mock_options *options,
                            struct ds_accel_error *error)
{
    for (size_t i = 0; i < sizeof(number_options) / sizeof(number_options[0]); i++) {
        const struct number_option *option = &number_options[i];
        uint64_t value;
        char usual[24];
        char text[64];
        int32_t status;

        snprintf(usual, sizeof(usual), "%llu", (unsigned long long)option->initial);
        status = read_text(host, option->key, usual, text, sizeof(text), error);
        if (status < 0) {
            return status;
        }
        if (plugin_parse_u64(text, &value) != 0 || value > option->largest) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                               "option %s: \"%s\" is not a whole number from 0 to %llu",
                               option->key, text, (unsigned long long)option->largest);
        }
        memcpy((char *)options + option->offset, &value, sizeof(value));
    }
    return DS_ACCEL_OK;
}

/*
 * Reads the devices that a launcher made visible, as the vendor's numbers in the order of the
 * plugin's indices.
 */
static int32_t read_visible(struct mock_options *options, struct ds_accel_error *error)
{
    const char *text = getenv(MOCK_VISIBLE_VARIABLE);
    uint64_t count = 0;

    for (uint32_t i = 0; i < options->device_count; i++) {
        options->visible[i] = i;
    }
    if (text == NULL) {
        return DS_ACCEL_OK;
    }
    while (*text != '\0') {
        char *end;
        unsigned long number = strtoul(text, &end, 10);

        if (!isdigit((unsigned char)text[0]) || number >= options->device_count ||
            count == MOCK_MAX_DEVICES || (*end != ',' && *end != '\0')) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                               MOCK_VISIBLE_VARIABLE ": \"%.64s\" begins with no device of %llu",
                               text, (unsigned long long)options->device_count);
        }
        options->visible[count++] = (uint32_t)number;
        text = *end == ',' ? end + 1 : end;
    }
    options->is_hidden = count == 0 && options->device_count > 0;
    options->device_count = count;
    return DS_ACCEL_OK;
}

static int32_t read_switch(const struct ds_accel_host *host, const char *key, const char *initial,
                           uint32_t *value_out, struct ds_accel_error *error)
{
    char text[32];
    int32_t status = read_text(host, key, initial, text, sizeof(text), error);

    if (status < 0) {
        return status;
    }
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option %s: \"%s\" is neither \"true\" nor \"false\"", key, text);
    }
    *value_out = text[0] == 't';
    return DS_ACCEL_OK;
}

#ifndef MOCK_AVAILABLE
#define MOCK_AVAILABLE "true" /* default of the option available */
#endif

/* Reads the options available and reason, which determine the verdict that probe reports and the
   status with which init fails. */
static int32_t read_state(const struct ds_accel_host *host, struct mock_options *options,
                          struct ds_accel_error *error)
{
    const struct reason_name *reason;
    char available[32];
    char name[32];
    const char *usual = options->device_count > 0 ? MOCK_AVAILABLE : "false";
    int32_t status = read_text(host, "available", usual, available, sizeof(available), error);

    if (status < 0) {
        return status;
    }
    if (strcmp(available, "true") == 0) {
        options->state = DS_ACCEL_PROBE_AVAILABLE;
    } else if (strcmp(available, "false") == 0) {
        options->state = DS_ACCEL_PROBE_UNAVAILABLE;
    } else if (strcmp(available, "error") == 0) {
        options->state = DS_ACCEL_PROBE_ERROR;
    } else {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option available: \"%s\" is not \"true\", \"false\" or \"error\"",
                           available);
    }
    usual = options->state == DS_ACCEL_PROBE_ERROR ? "driver_failed"
            : options->is_hidden                   ? "hidden"
                                                   : "no_device";
    status = read_text(host, "reason", usual, name, sizeof(name), error);
    if (status < 0) {
        return status;
    }
    reason = find_reason(name);
    if (reason == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option reason: \"%s\" is not the name of a DS_ACCEL_REASON in lower "
                           "case, such as \"no_driver\"",
                           name);
    }
    options->init_status = reason->init_status;
    if (options->state != DS_ACCEL_PROBE_AVAILABLE) {
        options->reason = reason->reason;
    } else if (options->device_count == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option available: \"true\" needs a device_count above 0");
    }
    return DS_ACCEL_OK;
}

static int32_t read_texts(const struct ds_accel_host *host, struct mock_options *options,
                          struct ds_accel_error *error)
{
    char usual[64];
    int32_t status;

    if (options->state == DS_ACCEL_PROBE_AVAILABLE) {
        snprintf(usual, sizeof(usual), "option device_count: %llu",
                 (unsigned long long)options->device_count);
    } else if (options->is_hidden) {
        snprintf(usual, sizeof(usual), MOCK_VISIBLE_VARIABLE " is empty");
    } else {
        snprintf(usual, sizeof(usual), "options available, reason or device_count say so");
    }
    status = read_text(host, "detail", usual, options->detail, sizeof(options->detail), error);
    if (status < 0) {
        return status;
    }
    status = read_text(host, "variant", "", options->variant, sizeof(options->variant), error);
    if (status < 0) {
        return status;
    }
    return read_text(host, "device_name", "Mock Device", options->device_name,
                     sizeof(options->device_name), error);
}

int32_t mock_options_read(const struct ds_accel_host *host, struct mock_options *options_out,
                          struct ds_accel_error *error)
{
    struct mock_options options;
    char script[SCRIPT_BYTES];
    int32_t status;

    memset(&options, 0, sizeof(options));
    status = read_numbers(host, &options, error);
    if (status < 0) {
        return status;
    }
    status = read_visible(&options, error);
    if (status < 0) {
        return status;
    }
    status = read_switch(host, "bf16", "true", &options.bf16, error);
    if (status < 0) {
        return status;
    }
    status = read_switch(host, "fp16", "true", &options.fp16, error);
    if (status < 0) {
        return status;
    }
    status = read_switch(host, "ipc", "true", &options.ipc, error);
    if (status < 0) {
        return status;
    }
    status = read_state(host, &options, error);
    if (status < 0) {
        return status;
    }
    status = read_texts(host, &options, error);
    if (status < 0) {
        return status;
    }
    status = read_text(host, "fail", "", script, sizeof(script), error);
    if (status < 0) {
        return status;
    }
    status = mock_script_parse(script, &options.script, error);
    if (status < 0) {
        return status;
    }
    *options_out = options;
    return DS_ACCEL_OK;
}
