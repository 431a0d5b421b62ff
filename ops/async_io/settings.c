/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The settings of the configuration: defaults for options that are 0. */
#include "common/error.h"
#include "handle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u

/* All settings in 64 bits, so that they are published by one atomic store, which needs no lock and
 * no memory, also in a child of fork(). 0: not set. */
struct settings {
    uint64_t block_sectors : 22;
    uint64_t queue_depth : 13;
    uint64_t parallelism : 7;
    uint64_t single_submit : 1;
    uint64_t overlap_events : 1;
    uint64_t threads : 1; /* the engine */
};

static _Atomic uint64_t current;

static int32_t refuse(struct ds_accel_error *error, const struct ds_accel_op_setting *setting,
                      const char *wanted)
{
    ops__error(error, DS_ACCEL_ERR_INVALID, "async_io: configure", "%.40s is \"%.40s\"; wanted %s",
               setting->name, setting->value, wanted);
    ops__error_vendor(error, 0, setting->name);
    return DS_ACCEL_ERR_INVALID;
}

/* Read a whole number of decimal digits. Return 0, which no setting can have, if it is none. */
static uint64_t read_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits < 19 && text[digits] == '\0' ? strtoull(text, NULL, 10) : 0;
}

static int32_t set_number(struct settings *settings, const struct ds_accel_op_setting *setting,
                          struct ds_accel_error *error)
{
    uint64_t number = read_number(setting->value);

    if (strcmp(setting->name, "block_bytes") == 0) {
        if (number == 0 || number % SECTOR != 0 || number > (uint64_t)1 << 30)
            return refuse(error, setting, "a multiple of 512, from 512 to 2^30");
        settings->block_sectors = number / SECTOR;
    } else if (strcmp(setting->name, "queue_depth") == 0) {
        if (number == 0 || number > 4096)
            return refuse(error, setting, "a whole number from 1 to 4096");
        settings->queue_depth = number;
    } else {
        if (number == 0 || number > 64)
            return refuse(error, setting, "a whole number from 1 to 64");
        settings->parallelism = number;
    }
    return DS_ACCEL_OK;
}

static int32_t set_switch(struct settings *settings, const struct ds_accel_op_setting *setting,
                          struct ds_accel_error *error)
{
    bool on = strcmp(setting->value, "true") == 0;

    if (!on && strcmp(setting->value, "false") != 0)
        return refuse(error, setting, "true or false");
    if (strcmp(setting->name, "single_submit") == 0)
        settings->single_submit = on;
    else
        settings->overlap_events = on;
    return DS_ACCEL_OK;
}

static int32_t set_engine(struct settings *settings, const struct ds_accel_op_setting *setting,
                          struct ds_accel_error *error)
{
    settings->threads = strcmp(setting->value, "threads") == 0;
    if (!settings->threads && strcmp(setting->value, "auto") != 0 &&
        strcmp(setting->value, "io_uring") != 0)
        return refuse(error, setting, "auto, io_uring or threads");
    return DS_ACCEL_OK;
}

static int32_t set(struct settings *settings, const struct ds_accel_op_setting *setting,
                   struct ds_accel_error *error)
{
    static const struct {
        const char *name;
        int32_t (*set)(struct settings *, const struct ds_accel_op_setting *,
                       struct ds_accel_error *);
    } known[] = {
        {"block_bytes", set_number},   {"queue_depth", set_number},    {"parallelism", set_number},
        {"single_submit", set_switch}, {"overlap_events", set_switch}, {"engine", set_engine},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(setting->name, known[i].name) == 0)
            return known[i].set(settings, setting, error);
    }
    ops__error(error, DS_ACCEL_ERR_INVALID, "async_io: configure",
               "unknown setting \"%.40s\"; wanted block_bytes, queue_depth, parallelism, "
               "single_submit, overlap_events or engine",
               setting->name);
    ops__error_vendor(error, 0, setting->name);
    return DS_ACCEL_ERR_INVALID;
}

DS_ACCEL_OP_CONFIGURE_FUNCTION;

int32_t ds_accel_op_configure_v1(const struct ds_accel_op_setting *settings, uint32_t count,
                                 struct ds_accel_error *error)
{
    struct settings chosen = {0};
    uint64_t packed = 0;

    if (!settings && count > 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, "async_io: configure", "settings is NULL");
    for (uint32_t i = 0; i < count; i++) {
        int32_t status = set(&chosen, &settings[i], error);

        if (status)
            return status;
    }
    memcpy(&packed, &chosen, sizeof(chosen));
    atomic_store_explicit(&current, packed, memory_order_relaxed);
    return DS_ACCEL_OK;
}

void async_io__settings_apply(struct ds_accel_async_io_options *options)
{
    uint64_t packed = atomic_load_explicit(&current, memory_order_relaxed);
    struct settings chosen;

    memcpy(&chosen, &packed, sizeof(chosen));
    if (options->block_bytes == 0)
        options->block_bytes = (uint64_t)chosen.block_sectors * SECTOR;
    if (options->queue_depth == 0)
        options->queue_depth = chosen.queue_depth;
    if (options->parallelism == 0)
        options->parallelism = chosen.parallelism;
    if (options->single_submit == DS_ACCEL_ASYNC_IO_UNSET && chosen.single_submit)
        options->single_submit = DS_ACCEL_ASYNC_IO_ON;
    if (options->overlap_events == DS_ACCEL_ASYNC_IO_UNSET && chosen.overlap_events)
        options->overlap_events = DS_ACCEL_ASYNC_IO_ON;
    if (options->engine == DS_ACCEL_ASYNC_IO_ENGINE_AUTO && chosen.threads)
        options->engine = DS_ACCEL_ASYNC_IO_ENGINE_THREADS;
}
