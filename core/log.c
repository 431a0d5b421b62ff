/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Topics and levels. The sink is the caller's; the library itself never prints. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};

static bool parse_level(const char *text, size_t length, uint32_t *level_out)
{
    for (uint32_t i = 0; i < DS_ACCEL__ARRAY_SIZE(level_names); i++) {
        if (strlen(level_names[i]) == length && strncmp(level_names[i], text, length) == 0) {
            *level_out = i;
            return true;
        }
    }
    return false;
}

/* One item, "debug" or "cuda=debug"; false if it is neither. */
static bool set_item(struct ds_accel__log *log, const char *item, size_t length)
{
    const char *equals = memchr(item, '=', length);
    uint32_t level;
    size_t name_length;

    if (equals == NULL) {
        return parse_level(item, length, &log->level);
    }
    name_length = (size_t)(equals - item);
    if (name_length == 0 || name_length >= sizeof(log->topics[0].name) ||
        log->topic_count == DS_ACCEL__LOG_TOPIC_MAX ||
        !parse_level(equals + 1, length - name_length - 1, &level)) {
        return false;
    }
    memcpy(log->topics[log->topic_count].name, item, name_length);
    log->topics[log->topic_count].name[name_length] = '\0';
    log->topics[log->topic_count++].level = level;
    return true;
}

void ds_accel__log_set_levels(struct ds_accel__log *log, const char *levels, char *problem,
                              size_t problem_size)
{
    problem[0] = '\0';
    while (*levels != '\0') {
        size_t length = strcspn(levels, ",");

        if (length > 0 && !set_item(log, levels, length)) {
            snprintf(problem, problem_size,
                     "log level \"%.*s\" is not understood: expected LEVEL or TOPIC=LEVEL, with "
                     "off, error, warn, info, debug or trace",
                     (int)(length < 64 ? length : 64), levels);
        }
        levels += length + (levels[length] == ',');
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
    char line[1024];
    va_list arguments;

    if (!ds_accel__log_enabled(log, topic, level)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log->sink(log->user_data, level, topic, line);
}
