/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reports the results of checks to the suite's caller on the channel, as lines of JSON, and exits
 * if a check cannot continue.
 */
#include "base/json.h"
#include "conformance/conformance.h"
#include "host/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void ds_accel__say(const char *format, ...)
{
    va_list arguments;
    json_t *tree;
    char *line;
    size_t size;
    size_t sent = 0;

    va_start(arguments, format);
    tree = json_vpack_ex(NULL, 0, format, arguments);
    va_end(arguments);
    line = tree != NULL ? ds_accel__json_dump(tree, JSON_COMPACT) : NULL;
    json_decref(tree);
    if (line == NULL) {
        _exit(DS_ACCEL__PROBE_EXIT_FAILED);
    }
    size = strlen(line);
    line[size++] = '\n'; /* replaces the NUL, so that one send() has the whole line */
    while (sent < size) {
        ssize_t count = send(DS_ACCEL__PROBE_CHANNEL, line + sent, size - sent, MSG_NOSIGNAL);

        if (count < 0 && errno != EINTR) {
            _exit(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    free(line);
}

/* The length of the output so far, which is the offset in the output file. stdout and stderr
 * share the file and this offset, so it can be read from either; the plugin may have closed one of
 * them. */
int64_t ds_accel__printed_bytes(void)
{
    off_t place;

    fflush(NULL);
    place = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    return place >= 0 ? place : lseek(STDERR_FILENO, 0, SEEK_CUR);
}

void ds_accel__say_result(const struct ds_accel__run *run, const char *result, uint32_t rule,
                          const char *detail)
{
    ds_accel__say("{s:I, s:s, s:I, s:I, s:o}", "check", (json_int_t)run->position, "result", result,
                  "rule", (json_int_t)rule, "printed", (json_int_t)ds_accel__printed_bytes(),
                  "detail", ds_accel__json_text(detail));
}

_Noreturn void ds_accel__check_fail(const struct ds_accel__run *run, const char *format, ...)
{
    char detail[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    ds_accel__say_result(run, "failed", 0, detail);
    _exit(0);
}

_Noreturn void ds_accel__say_skipped(const struct ds_accel__run *run, const char *format, ...)
{
    char detail[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    ds_accel__say_result(run, "skipped", 0, detail);
    _exit(0);
}

void ds_accel__need(const struct ds_accel__run *run, bool is_there, const char *slot)
{
    if (!is_there) {
        ds_accel__say_skipped(run, "not offered: %s", slot);
    }
}

void ds_accel__need_slot(const struct ds_accel__run *run, size_t offset)
{
    void *function;

    memcpy(&function, (const char *)&run->table + offset, sizeof(function));
    ds_accel__need(run, function != NULL, ds_accel__slot_name(offset));
}

void ds_accel__skip(struct ds_accel__run *run, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(run->reason, sizeof(run->reason), format, arguments);
    va_end(arguments);
    run->is_skipped = true;
}
