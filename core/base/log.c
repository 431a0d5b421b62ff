/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Log topics and levels. The caller supplies the sink; the library itself never prints. */
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};

static bool parse_level(const char *text, size_t length, uint32_t *level_out)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(level_names); i++) {
        if (strlen(level_names[i]) == length && strncmp(level_names[i], text, length) == 0) {
            *level_out = i;
            return true;
        }
    }
    return false;
}

/*
 * Parse one item, "debug" or "cuda=debug", into its level and the length of its topic (0: no
 * topic).
 */
static bool parse_item(const char *item, size_t length, uint32_t *level_out, size_t *topic_out)
{
    const char *equals = memchr(item, '=', length);

    *topic_out = equals != NULL ? (size_t)(equals - item) : 0;
    if (equals == NULL) {
        return parse_level(item, length, level_out);
    }
    return *topic_out > 0 && *topic_out < DS_ACCEL__NAME_SIZE &&
           parse_level(equals + 1, length - *topic_out - 1, level_out);
}

static bool set_item(struct ds_accel__log *log, const char *item, size_t length)
{
    uint32_t level;
    size_t topic;

    if (!parse_item(item, length, &level, &topic)) {
        return false;
    }
    if (topic == 0) {
        log->level = level;
    } else if (log->topic_count < DS_ACCEL__LOG_TOPIC_MAX) {
        assert(topic < sizeof(log->topics[0].name));
        memcpy(log->topics[log->topic_count].name, item, topic);
        log->topics[log->topic_count].name[topic] = '\0';
        log->topics[log->topic_count++].level = level;
    } else {
        return false;
    }
    return true;
}

void ds_accel__log_set_levels(struct ds_accel__log *log, const char *levels)
{
    struct {
        const char *item;
        size_t length;
    } bad[8];
    size_t bad_count = 0;
    const char *item;
    size_t length;

    while ((item = ds_accel__list_next(&levels, ',', &length)) != NULL) {
        if (!set_item(log, item, length) && bad_count < 8) {
            bad[bad_count].item = item;
            bad[bad_count++].length = length < 64 ? length : 64;
        }
    }
    /* Warn after the loop, because only then all levels are set, which determine whether
     * warnings are logged. */
    for (size_t i = 0; i < bad_count; i++) {
        ds_accel__log(log, "log", DS_ACCEL_LOG_WARN,
                      "log level \"%.*s\" is not understood: expected LEVEL or TOPIC=LEVEL, with "
                      "off, error, warn, info, debug or trace",
                      (int)bad[i].length, bad[i].item);
    }
}

bool ds_accel__log_enabled(const struct ds_accel__log *log, const char *topic, uint32_t level)
{
    uint32_t limit = log->level;

    if (log->sink == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < log->topic_count; i++) {
        if (strcmp(log->topics[i].name, topic) == 0) {
            limit = log->topics[i].level;
        }
    }
    return level <= limit;
}

void ds_accel__log(const struct ds_accel__log *log, const char *topic, uint32_t level,
                   const char *format, ...)
{
    char clean_topic[64];
    char buffer[1024]; /* a longer line is allocated */
    char *line;
    va_list arguments;

    if (!ds_accel__log_enabled(log, topic, level)) {
        return;
    }
    va_start(arguments, format);
    line = ds_accel__format_line(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    ds_accel__copy(clean_topic, sizeof(clean_topic), topic);
    ds_accel__sanitize(clean_topic, sizeof(clean_topic));
    log->sink(log->user_data, level, clean_topic, line);
    if (line != buffer) {
        free(line);
    }
}
