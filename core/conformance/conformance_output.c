/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures the plugin's output in the conformance suite. stdout and stderr of the process that runs
 * the checks are redirected to one in-memory file of limited size, so that a plugin that prints
 * without end cannot fill memory. The process reports the file's length after each check, and the
 * output since the previous check is assigned to that check. A check fails if its output contains a
 * sanitizer's report. The process searches the output after each check, and the suite's caller
 * searches the output printed while the process exits.
 */
#include "base/text.h"
#include "conformance/conformance.h"
#include "conformance/conformance_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUTPUT_BYTES (1024 * 1024) /* size of the file, per process */
/* bytes shown from the start of a check's output; SHOWN_TAIL from its end */
#define SHOWN_HEAD 6144u
#define SHOWN_TAIL 2048u

int ds_accel__suite_open_output(void)
{
    int fd = memfd_create("ds_accel_output", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    /* If sealing fails, the file has no size limit but can still be used. */
    if (fd >= 0 && ftruncate(fd, OUTPUT_BYTES) == 0) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    }
    return fd;
}

/* ---- reports of sanitizers ------------------------------------------------------------------ */

static const struct {
    const char *mark;
    uint32_t rule; /* the broken rule; 0: the check's rule */
} marks[] = {
    {"ERROR: LeakSanitizer: ", 30},   {"WARNING: ThreadSanitizer: ", 27},
    {"ERROR: AddressSanitizer: ", 0}, {"WARNING: MemorySanitizer: ", 0},
    {": runtime error: ", 0}, /* undefined behaviour */
};

bool ds_accel__find_report(const char *text, size_t size, uint32_t *rule_out, char *line,
                           size_t line_size)
{
    const char *first = NULL;
    size_t length = 0;

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        const char *found = memmem(text, size, marks[i].mark, strlen(marks[i].mark));

        if (found != NULL && (first == NULL || found < first)) {
            first = found;
            *rule_out = marks[i].rule;
        }
    }
    while (first != NULL && first > text && first[-1] != '\n') {
        first--;
    }
    while (first != NULL && first + length < text + size && first[length] != '\n') {
        length++;
    }
    if (first != NULL) {
        snprintf(line, line_size, "%.*s", (int)(length < line_size ? length : line_size), first);
    }
    return first != NULL;
}

static void judge_report(struct ds_accel__outcome *outcome, const char *text, size_t size)
{
    char line[400];
    uint32_t rule = 0;

    if (outcome->result == NULL || strcmp(outcome->result, "failed") == 0 ||
        !ds_accel__find_report(text, size, &rule, line, sizeof(line))) {
        return;
    }
    outcome->result = "failed";
    outcome->rule = rule != 0 ? rule : outcome->rule;
    snprintf(outcome->detail, sizeof(outcome->detail), "printed: %s", line);
    ds_accel__sanitize(outcome->detail, sizeof(outcome->detail));
}

/* ---- shown output --------------------------------------------------------------------------- */

/* Add sanitized output line by line, because sanitizing would replace line ends. */
static void add_lines(struct ds_accel__text *to, const char *bytes, size_t size)
{
    char line[1024];

    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end != NULL ? (size_t)(end - bytes) : size;
        size_t shown = length < sizeof(line) - 1 ? length : sizeof(line) - 1;

        memcpy(line, bytes, shown);
        line[shown] = '\0';
        for (size_t i = 0; i < shown; i++) {
            line[i] = line[i] == '\0' || line[i] == '\t' ? ' ' : line[i];
        }
        ds_accel__sanitize(line, sizeof(line));
        ds_accel__text_add(to, "%s%s", line, end != NULL && shown == length ? "\n" : "");
        bytes += shown + (end != NULL && shown == length);
        size -= shown + (end != NULL && shown == length);
    }
}

static char *bounded(const char *bytes, size_t size)
{
    struct ds_accel__text text = {0};

    if (size <= SHOWN_HEAD + SHOWN_TAIL) {
        add_lines(&text, bytes, size);
    } else {
        add_lines(&text, bytes, SHOWN_HEAD);
        ds_accel__text_add(&text, "\n... (%zu bytes more)\n", size - SHOWN_HEAD - SHOWN_TAIL);
        add_lines(&text, bytes + size - SHOWN_TAIL, SHOWN_TAIL);
    }
    return ds_accel__text_take(&text);
}

/* Append output to the outcome's output. If out of memory, the new output is dropped. */
static void add_output(struct ds_accel__outcome *outcome, const char *bytes, size_t size)
{
    char *more = bounded(bytes, size);
    char *both = outcome->output != NULL && more != NULL
                     ? ds_accel__format("%s%s", outcome->output, more)
                     : NULL;

    if (outcome->output == NULL) {
        outcome->output = more;
        return;
    }
    if (both != NULL) {
        free(outcome->output);
        outcome->output = both;
    }
    free(more);
}

void ds_accel__suite_take_output(struct ds_accel__suite *suite, struct ds_accel__outcome *outcome,
                                 off_t end)
{
    off_t start = suite->printed;
    size_t size = end > start && end - start <= OUTPUT_BYTES ? (size_t)(end - start) : 0;
    char *bytes = size > 0 ? malloc(size) : NULL;
    ssize_t count = bytes != NULL ? pread(suite->output, bytes, size, start) : 0;

    if (count > 0) {
        judge_report(outcome, bytes, (size_t)count);
        add_output(outcome, bytes, (size_t)count);
    }
    suite->printed = end > start ? end : start;
    free(bytes);
}

void ds_accel__suite_last_line(const struct ds_accel__suite *suite, char *text, size_t text_size)
{
    char tail[256];
    off_t size = lseek(suite->output, 0, SEEK_CUR);
    off_t start = size - suite->printed > (off_t)sizeof(tail) - 1 ? size - (off_t)sizeof(tail) + 1
                                                                  : suite->printed;
    ssize_t count = size > start ? pread(suite->output, tail, (size_t)(size - start), start) : 0;
    const char *line;

    text[0] = '\0';
    while (count > 0 && tail[count - 1] == '\n') {
        count--;
    }
    if (count > 0) {
        tail[count] = '\0';
        line = strrchr(tail, '\n');
        snprintf(text, text_size, "; printed: %.200s", line != NULL ? line + 1 : tail);
    }
}
