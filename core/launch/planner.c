/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files that make a plan have in common. */
#include "launch/planner.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool ds_accel__is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

bool ds_accel__planner_is_cpu(const struct ds_accel__planner *planner)
{
    return strcmp(planner->facts->accelerator, "cpu") == 0;
}

bool ds_accel__has_filter(const struct ds_accel__launch_options *options)
{
    return ds_accel__is_given(options->include) || ds_accel__is_given(options->exclude);
}

int32_t ds_accel__planner_check_count(uint64_t count)
{
    return count <= DS_ACCEL__RANK_LIMIT
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_INVALID, "%llu ranks; a job has at most %u",
                                 (unsigned long long)count, DS_ACCEL__RANK_LIMIT);
}

void ds_accel__launch_note(struct ds_accel__text *notes, const char *format, ...)
{
    char buffer[1024];
    char *line;
    va_list arguments;

    va_start(arguments, format);
    line = ds_accel__format_line(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    ds_accel__text_add(notes, "%s\n", line);
    if (line != buffer) {
        free(line);
    }
}
