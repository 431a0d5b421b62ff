/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the plugin logs while it is checked, or judged by lint: lines that break DSA-P25 are noted
 * here, whichever call and thread they come from, and two checks tell of the first.
 */
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/probe_child.h"

#include <stdio.h>

#define GROUP "texts"
#define LINE_LIMIT 65536u

static void (*true_log)(const struct ds_accel_host *host, uint32_t level, const char *message);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char offence[160];

static const char *fault_of(uint32_t level, const char *message)
{
    if (message == NULL) {
        return "is NULL";
    }
    if (level < DS_ACCEL_LOG_ERROR || level > DS_ACCEL_LOG_TRACE) {
        return "has a level that the header does not have";
    }
    return ds_accel__is_clean_text(message, strnlen(message, LINE_LIMIT) + 1)
               ? NULL
               : "is not one line of UTF-8 with an end";
}

static void watch(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    const char *fault = fault_of(level, message);

    if (fault != NULL) {
        pthread_mutex_lock(&lock);
        if (offence[0] == '\0') {
            snprintf(offence, sizeof(offence), "a line of level %u %s: %.60s", level, fault,
                     message != NULL ? message : "");
            ds_accel__sanitize(offence, sizeof(offence));
        }
        pthread_mutex_unlock(&lock);
    }
    true_log(host, level, message);
}

void ds_accel__log_watch(struct ds_accel_host *host)
{
    true_log = host->log;
    host->log = watch;
}

bool ds_accel__log_offence(char *text, size_t text_size)
{
    pthread_mutex_lock(&lock);
    snprintf(text, text_size, "%s", offence);
    pthread_mutex_unlock(&lock);
    return text[0] != '\0';
}

static void want_clean_log(struct ds_accel__run *run)
{
    char text[sizeof(offence)];

    EXPECT(run, !ds_accel__log_offence(text, sizeof(text)), "log: %s", text);
}

/* From probe to shutdown, in a process that did nothing else. */
static void check_life(struct ds_accel__run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    ds_accel_plugin_instance_t *instance;
    uint32_t count = 0;

    CALL(run, probe, run->host, &verdict);
    if (verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        ds_accel__skip(run, "it is not available");
        return;
    }
    instance = ds_accel__run_init(run, run->host);
    WANT(run, DS_ACCEL_OK, device_count, instance, &count);
    if (run->device_index < count) {
        run->table.device_close(ds_accel__run_open(run, instance, run->device_index));
    }
    run->table.shutdown(instance);
    want_clean_log(run);
}

/* What all checks before it called in this process, refusals among them. */
static void check_calls(struct ds_accel__run *run)
{
    want_clean_log(run);
}

static const struct ds_accel__check checks[] = {
    {25, GROUP, "lines that all other checks logged", DS_ACCEL__STAGE_DEVICE, 0, check_calls, {0}},
    {25,
     GROUP,
     "lines that a life logs",
     DS_ACCEL__STAGE_TABLE,
     DS_ACCEL__CHECK_ALONE,
     check_life,
     {SLOT(probe), SLOT(init), SLOT(shutdown), SLOT(device_count), SLOT(device_open),
      SLOT(device_close)}},
};

const struct ds_accel__check_list ds_accel__checks_log = {checks, DS_ACCEL__ARRAY_SIZE(checks)};
