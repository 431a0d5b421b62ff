/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The allocator's settings. One table serves the configuration's object "allocator" and the
 * variable DS_ACCEL_ALLOCATOR, which overrides the object. A new setting needs a row in this table,
 * and an entry in the configuration's table of keys, in its schema and in its manual.
 */
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type {
    BYTES,
    COUNT,
    REAL,
    FLAG,
    MODE
};

static const struct setting {
    const char *key;
    enum type type;
    size_t offset;
    uint64_t minimum;
    uint64_t maximum;
} settings[] = {
#define SETTING(name, type, minimum, maximum) \
    { \
#name, type, offsetof(struct ds_accel__allocator_options, name), minimum, maximum \
    }
    SETTING(mode, MODE, 0, 0),
    SETTING(max_split_bytes, BYTES, 0, INT64_MAX),
    SETTING(roundup_power2_divisions, COUNT, 0, 64),
    SETTING(gc_threshold, REAL, 0, 1),
    SETTING(growable_segments, FLAG, 0, 1),
    SETTING(small_limit_bytes, BYTES, 512, UINT64_C(1) << 40),
    SETTING(small_segment_bytes, BYTES, 512, UINT64_C(1) << 40),
    SETTING(medium_limit_bytes, BYTES, 0, UINT64_C(1) << 40),
    SETTING(medium_segment_bytes, BYTES, 512, UINT64_C(1) << 40),
    SETTING(large_step_bytes, BYTES, 512, UINT64_C(1) << 40),
    SETTING(limit_bytes, BYTES, 0, INT64_MAX),
    SETTING(fraction, REAL, 0, 1),
    SETTING(history_entries, BYTES, 0, UINT64_C(1) << 26),
    SETTING(quarantine_bytes, BYTES, 0, INT64_MAX),
};

static const char *const modes[] = {"caching", "off", "debug"};

const char *ds_accel__allocator_mode_name(enum ds_accel__allocator_mode mode)
{
    return modes[mode];
}

void ds_accel__allocator_defaults(struct ds_accel__allocator_options *options)
{
    *options = (struct ds_accel__allocator_options){
        .mode = DS_ACCEL__ALLOCATOR_CACHING,
        .small_limit_bytes = UINT64_C(1) << 20,
        .small_segment_bytes = UINT64_C(2) << 20,
        .medium_limit_bytes = UINT64_C(10) << 20,
        .medium_segment_bytes = UINT64_C(20) << 20,
        .large_step_bytes = UINT64_C(2) << 20,
        .quarantine_bytes = UINT64_C(64) << 20,
    };
}

/* ---- one setting ---------------------------------------------------------------------------- */

static void store(struct ds_accel__allocator_options *options, const struct setting *setting,
                  uint64_t number, double real)
{
    char *place = (char *)options + setting->offset;

    switch (setting->type) {
    case BYTES:
        memcpy(place, &number, sizeof(number));
        break;
    case COUNT: {
        uint32_t count = (uint32_t)number;

        memcpy(place, &count, sizeof(count));
        break;
    }
    case REAL:
        memcpy(place, &real, sizeof(real));
        break;
    case FLAG:
        options->growable_segments = number != 0;
        break;
    default:
        options->mode = (enum ds_accel__allocator_mode)number;
    }
}

/* Parse a whole number with an optional unit KiB, MiB or GiB. */
static bool parse_number(const char *text, uint64_t *number_out)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    char *end;
    uint64_t number;

    if (!isdigit((unsigned char)text[0]) || strlen(text) > 24) {
        return false;
    }
    number = strtoull(text, &end, 10);
    for (unsigned i = 0; i < ARRAY_SIZE(units); i++) {
        if (strcmp(end, units[i]) == 0) {
            *number_out = number << (10 * i);
            return number <= UINT64_MAX >> (10 * i);
        }
    }
    return false;
}

static bool parse_mode(const char *text, uint64_t *number_out)
{
    for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
        if (strcmp(text, modes[i]) == 0) {
            *number_out = i;
            return true;
        }
    }
    return false;
}

static bool parse_real(const char *text, double *real_out)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) || strspn(text, "0123456789.") != strlen(text)) {
        return false;
    }
    *real_out = strtod(text, &end);
    return *end == '\0' && *real_out <= 1;
}

static bool parse_value(const struct setting *setting, const char *text, uint64_t *number_out,
                        double *real_out)
{
    switch (setting->type) {
    case REAL:
        return parse_real(text, real_out);
    case FLAG:
        *number_out = strcmp(text, "true") == 0;
        return *number_out != 0 || strcmp(text, "false") == 0;
    case MODE:
        return parse_mode(text, number_out);
    default:
        return parse_number(text, number_out) && *number_out >= setting->minimum &&
               *number_out <= setting->maximum;
    }
}

static const struct setting *find_setting(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        if (strcmp(settings[i].key, key) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

/* Set one option from "key=value", or the mode from a mode's name alone. */
static int32_t set_one(struct ds_accel__allocator_options *options, char *item)
{
    char *value = strchr(item, '=');
    const char *key = value != NULL ? item : "mode";
    const struct setting *setting;
    uint64_t number = 0;
    double real = 0;

    if (value != NULL) {
        *value++ = '\0';
    }
    setting = find_setting(key);
    if (setting == NULL) {
        const char *names[ARRAY_SIZE(settings)];
        const char *nearest;

        for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
            names[i] = settings[i].key;
        }
        nearest = ds_accel__nearest(key, names, ARRAY_SIZE(settings));
        return ds_accel__error(DS_ACCEL_ERR_CONFIG, "the allocator has no setting \"%s\"%s%s%s",
                               key, nearest != NULL ? ": did you mean \"" : "",
                               nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
    }
    if (!parse_value(setting, value != NULL ? value : item, &number, &real)) {
        return ds_accel__error(DS_ACCEL_ERR_CONFIG, "the allocator's %s can't be \"%s\"",
                               setting->key, value != NULL ? value : item);
    }
    store(options, setting, number, real);
    return DS_ACCEL_OK;
}

int32_t ds_accel__allocator_parse_options(const char *text,
                                          struct ds_accel__allocator_options *options)
{
    struct ds_accel__allocator_options result = *options;
    const char *list = text;
    const char *item;
    size_t length;
    int32_t status = DS_ACCEL_OK;

    while (status >= 0 && (item = ds_accel__list_next(&list, ',', &length)) != NULL) {
        char copy[128];

        if (length >= sizeof(copy)) {
            return ds_accel__error(DS_ACCEL_ERR_CONFIG, "a setting of the allocator is too long");
        }
        memcpy(copy, item, length);
        copy[length] = '\0';
        status = set_one(&result, copy);
    }
    if (status >= 0) {
        *options = result;
    }
    return status;
}

/* ---- all settings --------------------------------------------------------------------------- */

static void read_value(struct ds_accel__allocator_options *options, const struct setting *setting,
                       json_t *value)
{
    uint64_t number = 0;

    if (json_is_string(value)) {
        parse_mode(json_string_value(value), &number);
    } else if (json_is_boolean(value)) {
        number = json_is_true(value);
    } else if (json_is_integer(value)) {
        number = (uint64_t)json_integer_value(value);
    }
    store(options, setting, number, json_number_value(value));
}

int32_t ds_accel__allocator_read_options(ds_accel_t *context,
                                         struct ds_accel__allocator_options *options)
{
    const char *text = context->env.values[DS_ACCEL__VARIABLE_ALLOCATOR];

    ds_accel__allocator_defaults(options);
    pthread_mutex_lock(&context->config_lock);
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        json_t *value = ds_accel__config_get(&context->config, "allocator", settings[i].key, NULL);

        if (value != NULL && !json_is_null(value)) {
            read_value(options, &settings[i], value);
        }
    }
    pthread_mutex_unlock(&context->config_lock);
    if (text != NULL && ds_accel__allocator_parse_options(text, options) < 0) {
        char *why = ds_accel__format("DS_ACCEL_ALLOCATOR: %s", ds_accel_last_error());

        if (why != NULL) {
            ds_accel__error(DS_ACCEL_ERR_CONFIG, "%s", why);
        }
        free(why);
        return DS_ACCEL_ERR_CONFIG;
    }
    return DS_ACCEL_OK;
}

json_t *ds_accel__allocator_settings(const struct ds_accel__allocator *allocator)
{
    json_t *tree = json_object();
    bool failed = tree == NULL;

    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        const char *place = (const char *)&allocator->options + settings[i].offset;
        uint64_t bytes;
        uint32_t count;
        double real;
        json_t *value;

        switch (settings[i].type) {
        case BYTES:
            memcpy(&bytes, place, sizeof(bytes));
            value = json_integer((json_int_t)bytes);
            break;
        case COUNT:
            memcpy(&count, place, sizeof(count));
            value = json_integer(count);
            break;
        case REAL:
            memcpy(&real, place, sizeof(real));
            value = json_real(real);
            break;
        case FLAG:
            value = json_boolean(allocator->options.growable_segments);
            break;
        default:
            value = json_string(modes[allocator->options.mode]);
        }
        ds_accel__json_set(tree, settings[i].key, value, &failed);
    }
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}
