/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What a failed build leaves: for the user the command and its output, and for processes that wait
 * for the build the same in a file. */
#include "base/json.h"
#include "base/text.h"
#include "ops/command.h"
#include "ops/resolution.h"

#include <stdlib.h>
#include <string.h>

/* For those who wait. JSON doubles the quotes and backslashes, and the whole must not exceed
 * DS_ACCEL__STORE_MESSAGE_BYTES. */
#define SHARED_COMMAND_BYTES ((size_t)3 << 20) /* Linux runs no command of 3 MiB, unless asked to */
#define SHARED_OUTPUT_BYTES ((size_t)256 << 10)

int32_t ds_accel__resolution_fail(struct ds_accel__resolution *resolution,
                                  enum ds_accel__origin origin)
{
    resolution->resolved->origin = origin;
    resolution->resolved->reason = strdup(ds_accel_last_error());
    return resolution->resolved->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

bool ds_accel__resolution_is_fatal(int32_t status)
{
    return status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_LIMIT;
}

/* Replace every occurrence of a text by another one. NULL: memory is exhausted. */
static char *replace(const char *text, const char *what, const char *by)
{
    struct ds_accel__text out = {0};
    const char *at;

    while ((at = strstr(text, what)) != NULL) {
        ds_accel__text_add_bytes(&out, text, (size_t)(at - text));
        ds_accel__text_add(&out, "%s", by);
        text = at + strlen(what);
    }
    ds_accel__text_add(&out, "%s", text);
    return ds_accel__text_take(&out);
}

/* What to do about a command that failed, or "": each program has its own words before these. */
static const char *find_remedy(const char *output)
{
    static const char *const causes[][2] = {
        {"No space left on device", ": No space left on device: " DS_ACCEL__STORE_REMEDY},
        {"Disk quota exceeded", ": Disk quota exceeded: " DS_ACCEL__STORE_REMEDY},
    };

    for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
        if (strstr(output, causes[i][0]) != NULL) {
            return causes[i][1];
        }
    }
    return "";
}

/* The line that repeats a command in the directory that was kept. NULL: memory is exhausted. */
static char *repeat_line(const struct ds_accel__compile_failure *failure, const char *before,
                         const char *kept)
{
    struct ds_accel__arguments list = {0};
    char **arguments;
    char *line;

    for (size_t i = 0; failure->arguments[i] != NULL; i++) {
        char *argument = replace(failure->arguments[i], before, kept);

        list.failed = list.failed || argument == NULL;
        ds_accel__arguments_add(&list, "%s", argument != NULL ? argument : "");
        free(argument);
    }
    arguments = ds_accel__arguments_take(&list);
    line = arguments != NULL ? ds_accel__command_line(arguments, failure->directory) : NULL;
    ds_accel__arguments_free(arguments);
    return line;
}

int32_t ds_accel__failure_keep(struct ds_accel__resolution *resolution,
                               struct ds_accel__build_dir *dir,
                               const struct ds_accel__compile_failure *failure)
{
    struct ds_accel__resolved *resolved = resolution->resolved;
    const char *remedy = find_remedy(failure->output);
    char *before = strdup(dir->path);
    char *kept = NULL;
    int32_t status;

    /* A full disk or a killed compiler is no failure of the others that wait for this build. */
    resolution->is_sources_fault = failure->has_exited &&
                                   !ds_accel__command_blames_machine(failure->output);
    status = ds_accel__build_dir_keep(dir, resolution->recipe.name, &kept);
    resolved->origin = DS_ACCEL__ORIGIN_FAILED;
    resolved->reason = ds_accel__format(
        "a command of the build %s%s%s%s", failure->ending, remedy[0] != '\0' ? ": " : "",
        remedy[0] != '\0' ? resolution->stores.writable : "", remedy);
    if (before != NULL && status >= 0) {
        const char *by = kept != NULL ? kept : before;

        resolved->command = repeat_line(failure, before, by);
        resolved->output = replace(failure->output, before, by);
    }
    free(kept);
    free(before);
    return resolved->reason != NULL && resolved->command != NULL && resolved->output != NULL
               ? DS_ACCEL_OK
               : ds_accel__no_memory();
}

void ds_accel__failure_clear(struct ds_accel__resolved *resolved)
{
    free(resolved->reason);
    free(resolved->command);
    free(resolved->output);
    resolved->reason = NULL;
    resolved->command = NULL;
    resolved->output = NULL;
}

/* The number of bytes at the begin of a text, at most limit, that end between two characters. */
static size_t cut_before(const char *text, size_t limit)
{
    while (limit > 0 && ((unsigned char)text[limit] & 0xc0) == 0x80) {
        limit--;
    }
    return limit;
}

/*
 * A text as a new string. In the middle of one of more than limit bytes, a remark replaces what is
 * beyond them: the begin has a compiler's first error, and the end the linker's errors, or the name
 * of the source. NULL: memory is exhausted.
 */
static char *shorten(const char *text, size_t limit, const char *blank)
{
    size_t size = strlen(text);
    size_t head;
    size_t tail;

    if (size <= limit) {
        return strdup(text);
    }
    head = cut_before(text, limit / 2);
    tail = cut_before(text, size - limit / 2);
    return ds_accel__format("%.*s%s[%zu bytes are left out]%s%s", (int)head, text, blank,
                            tail - head, blank, text + tail);
}

void ds_accel__failure_leave(const struct ds_accel__resolution *resolution, int lock)
{
    const struct ds_accel__resolved *resolved = resolution->resolved;
    char *command =
        shorten(resolved->command != NULL ? resolved->command : "", SHARED_COMMAND_BYTES, " ");
    char *output =
        shorten(resolved->output != NULL ? resolved->output : "", SHARED_OUTPUT_BYTES, "\n");
    json_t *tree = json_object();
    bool failed = command == NULL || output == NULL;
    char *message;

    ds_accel__json_set(tree, "reason", ds_accel__json_text(resolved->reason), &failed);
    ds_accel__json_set(tree, "command", ds_accel__json_text(command != NULL ? command : ""),
                       &failed);
    ds_accel__json_set(tree, "output", ds_accel__json_text(output != NULL ? output : ""), &failed);
    message = !failed ? ds_accel__json_dump(tree, JSON_COMPACT) : NULL;
    if (message != NULL) {
        ds_accel__store_lock_fail(lock, resolution->toolchain.digest, message);
    }
    free(message);
    json_decref(tree);
    free(output);
    free(command);
}

int32_t ds_accel__failure_take(struct ds_accel__resolved *resolved, const char *message)
{
    size_t size = strlen(message);
    bool has_headroom = ds_accel__json_has_headroom(size);
    json_error_t error;
    json_t *tree = has_headroom ? json_loadb(message, size, 0, &error) : NULL;
    bool is_whole = json_is_object(tree);

    if (!has_headroom || (tree == NULL && json_error_code(&error) == json_error_out_of_memory)) {
        return ds_accel__no_memory();
    }
    resolved->origin = DS_ACCEL__ORIGIN_FAILED;
    resolved->reason = strdup(is_whole ? ds_accel__json_string(tree, "reason")
                                       : "another process could not build it");
    resolved->command = is_whole ? strdup(ds_accel__json_string(tree, "command")) : NULL;
    resolved->output = is_whole ? strdup(ds_accel__json_string(tree, "output")) : NULL;
    json_decref(tree);
    if (resolved->reason == NULL ||
        (is_whole && (resolved->command == NULL || resolved->output == NULL))) {
        return ds_accel__no_memory();
    }
    ds_accel__sanitize(resolved->reason, strlen(resolved->reason) + 1);
    if (is_whole) {
        ds_accel__sanitize(resolved->command, strlen(resolved->command) + 1);
        ds_accel__compile_sanitize(resolved->output);
    }
    return DS_ACCEL_OK;
}
