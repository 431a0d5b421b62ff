/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks the lines that a plugin logs while the conformance suite or lint checks it. The first line
 * that breaks DSA-P25 is stored, regardless of the call and thread that logged it.
 */
#include "base/text.h"
#include "host/probe_child.h"

#include <pthread.h>
#include <stdio.h>

#define LINE_LIMIT 65536u

static void (*true_log)(const struct ds_accel_host *host, uint32_t level, const char *message);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char offence[DS_ACCEL__LOG_OFFENCE_SIZE];

static const char *fault_of(uint32_t level, const char *message)
{
    if (message == NULL) {
        return "is NULL";
    }
    if (level < DS_ACCEL_LOG_ERROR || level > DS_ACCEL_LOG_TRACE) {
        return "has an unknown level";
    }
    return ds_accel__is_clean_text(message, strnlen(message, LINE_LIMIT) + 1)
               ? NULL
               : "is not a NUL-terminated line of UTF-8";
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
