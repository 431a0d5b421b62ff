/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The hostfile: a line "HOST slots=N" for each host, in the order of node ranks. As in DeepSpeed,
 * only the beginning of a line counts: "w0 slots=4 max_slots=8" is a host with 4 slots.
 */
#include "base/file.h"
#include "base/text.h"
#include "launch/hosts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT (256u << 20)
#define PROBLEM_LIMIT 8u

/* ---- lists of hosts ------------------------------------------------------------------------- */

static void host_clear(struct ds_accel__job_host *host)
{
    ds_accel__host_clear_slots(host);
    free(host->name);
}

int32_t ds_accel__host_set_slots(struct ds_accel__job_host *host, uint32_t slot_count)
{
    uint32_t capacity = slot_count > 0 ? slot_count : 1;
    struct ds_accel__slot *slots = calloc(capacity, sizeof(*slots));

    if (slots == NULL) {
        return ds_accel__no_memory();
    }
    for (uint32_t i = 0; i < slot_count; i++) {
        slots[i].index = slots[i].device = i;
    }
    ds_accel__host_clear_slots(host);
    host->slots = slots;
    host->slot_count = slot_count;
    host->slot_capacity = capacity;
    return DS_ACCEL_OK;
}

int32_t ds_accel__hosts_add(struct ds_accel__hosts *hosts, const char *name, size_t name_length,
                            uint32_t slot_count)
{
    struct ds_accel__job_host host = {.name = strndup(name, name_length)};

    if (host.name == NULL) {
        return ds_accel__no_memory();
    }
    if (hosts->count == hosts->capacity) {
        size_t capacity = hosts->capacity > 0 ? 2 * hosts->capacity : 8;
        struct ds_accel__job_host *items = realloc(hosts->items, capacity * sizeof(*items));

        if (items == NULL) {
            free(host.name);
            return ds_accel__no_memory();
        }
        hosts->items = items;
        hosts->capacity = capacity;
    }
    if (ds_accel__host_set_slots(&host, slot_count) < 0) {
        free(host.name);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    hosts->items[hosts->count++] = host;
    return DS_ACCEL_OK;
}

void ds_accel__hosts_compact(struct ds_accel__hosts *hosts)
{
    size_t count = 0;

    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts->items[i].slot_count > 0) {
            hosts->items[count++] = hosts->items[i];
        } else {
            host_clear(&hosts->items[i]);
        }
    }
    hosts->count = count;
}

void ds_accel__hosts_clear(struct ds_accel__hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        host_clear(&hosts->items[i]);
    }
    free(hosts->items);
    memset(hosts, 0, sizeof(*hosts));
}

/* ---- finding hosts -------------------------------------------------------------------------- */

int32_t ds_accel__host_index_create(struct ds_accel__host_index *index,
                                    const struct ds_accel__hosts *hosts, size_t capacity)
{
    size_t count = 16;

    while (count < 2 * capacity) {
        count *= 2;
    }
    index->hosts = hosts;
    index->bucket_count = count;
    index->buckets = calloc(count, sizeof(*index->buckets));
    if (index->buckets == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < hosts->count; i++) {
        ds_accel__host_index_add(index, i);
    }
    return DS_ACCEL_OK;
}

void ds_accel__host_index_clear(struct ds_accel__host_index *index)
{
    free(index->buckets);
    memset(index, 0, sizeof(*index));
}

/* The bucket of the name, or the free bucket where it belongs. */
static size_t find_bucket(const struct ds_accel__host_index *index, const char *name,
                          size_t name_length)
{
    size_t at = ds_accel__hash(name, name_length, 0) & (index->bucket_count - 1);

    while (index->buckets[at] != 0) {
        const char *other = index->hosts->items[index->buckets[at] - 1].name;

        if (strncmp(other, name, name_length) == 0 && other[name_length] == '\0') {
            break;
        }
        at = (at + 1) & (index->bucket_count - 1);
    }
    return at;
}

size_t ds_accel__host_index_find(const struct ds_accel__host_index *index, const char *name,
                                 size_t name_length)
{
    uint32_t found = index->buckets[find_bucket(index, name, name_length)];

    return found != 0 ? found - 1 : SIZE_MAX;
}

void ds_accel__host_index_add(struct ds_accel__host_index *index, size_t position)
{
    const char *name = index->hosts->items[position].name;
    size_t at = find_bucket(index, name, strlen(name));

    assert(index->buckets[at] == 0 && 2 * position < index->bucket_count);
    index->buckets[at] = (uint32_t)position + 1;
}

/* ---- the file ------------------------------------------------------------------------------- */

struct line {
    const char *text; /* without blanks at both ends */
    size_t length;
    unsigned number;
};

/* The problems of a file, one per line of the message. */
struct problems {
    struct ds_accel__text text;
    const char *path;
    unsigned count;
};

__attribute__((format(printf, 3, 4))) static void
add_problem(struct problems *problems, const struct line *line, const char *format, ...)
{
    char message[256];
    char *text;
    va_list arguments;

    if (problems->count++ >= PROBLEM_LIMIT) {
        return;
    }
    va_start(arguments, format);
    text = ds_accel__format_line(message, sizeof(message), format, arguments);
    va_end(arguments);
    ds_accel__text_add(&problems->text, "%s%s:%u: %s", problems->count > 1 ? "\n" : "",
                       problems->path, line->number, text);
    if (text != message) {
        free(text);
    }
}

/* Find "HOST slots=N" at the start of a line. False: the line begins otherwise. */
static bool split(const struct line *line, size_t *name_length, uint64_t *slots)
{
    static const char key[] = "slots=";
    const char *end = line->text + line->length;
    const char *at = line->text + strcspn(line->text, " \t\v\f\r\n");
    uint64_t number = 0;

    *name_length = (size_t)(at - line->text);
    at += strspn(at, " \t\v\f\r");
    if (at >= end || (size_t)(end - at) <= sizeof(key) - 1 ||
        strncmp(at, key, sizeof(key) - 1) != 0) {
        return false;
    }
    at += sizeof(key) - 1;
    if (*at < '0' || *at > '9') {
        return false;
    }
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number < UINT32_MAX ? 10 * number + (uint64_t)(*at - '0') : number;
    }
    *slots = number;
    return true;
}

struct parsing {
    struct ds_accel__hosts *hosts;
    struct ds_accel__host_index *index;
    struct problems problems;
    unsigned *lines;      /* of each host */
    uint64_t total_slots; /* of all hosts */
};

static int32_t add_line(struct parsing *parsing, const struct line *line)
{
    size_t position = parsing->hosts->count;
    size_t length;
    uint64_t slots;
    size_t known;
    int32_t status;

    if (!split(line, &length, &slots)) {
        add_problem(&parsing->problems, line, "\"%.*s\": expected \"HOST slots=N\"",
                    (int)(line->length < 80 ? line->length : 80), line->text);
        return DS_ACCEL_OK;
    }
    if (slots > DS_ACCEL__SLOT_LIMIT) {
        add_problem(&parsing->problems, line, "%.*s has more than %u slots",
                    (int)(length < 80 ? length : 80), line->text, DS_ACCEL__SLOT_LIMIT);
        return DS_ACCEL_OK;
    }
    if (parsing->total_slots + slots > DS_ACCEL__RANK_LIMIT) {
        add_problem(&parsing->problems, line, "the hosts have more than %u slots together",
                    DS_ACCEL__RANK_LIMIT);
        return DS_ACCEL_OK;
    }
    if (position == DS_ACCEL__HOST_LIMIT) {
        add_problem(&parsing->problems, line, "more than %u hosts", DS_ACCEL__HOST_LIMIT);
        return DS_ACCEL_OK;
    }
    known = ds_accel__host_index_find(parsing->index, line->text, length);
    if (known != SIZE_MAX) {
        add_problem(&parsing->problems, line, "host %s is in line %u already",
                    parsing->hosts->items[known].name, parsing->lines[known]);
        return DS_ACCEL_OK;
    }
    status = ds_accel__hosts_add(parsing->hosts, line->text, length, (uint32_t)slots);
    if (status >= 0) {
        parsing->total_slots += slots;
        parsing->lines[position] = line->number;
        ds_accel__host_index_add(parsing->index, position);
    }
    return status;
}

/* Cut the next line out of *text, without blanks at both ends. False: there are no more lines. */
static bool next_line(char **text, const char *end, struct line *line)
{
    char *start = *text;
    char *stop;

    if (start >= end) {
        return false;
    }
    stop = memchr(start, '\n', (size_t)(end - start));
    stop = stop != NULL ? stop : (char *)end;
    *text = stop + 1;
    while (start < stop && ds_accel__is_blank(*start)) {
        start++;
    }
    while (stop > start && ds_accel__is_blank(stop[-1])) {
        stop--;
    }
    *stop = '\0';
    line->text = start;
    line->length = (size_t)(stop - start);
    line->number++;
    return true;
}

static int32_t parse_lines(struct parsing *parsing, char *text, const char *end)
{
    struct line line = {0};
    int32_t status = DS_ACCEL_OK;

    while (status >= 0 && next_line(&text, end, &line)) {
        if (memchr(line.text, '\0', line.length) != NULL) {
            add_problem(&parsing->problems, &line, "a NUL character");
        } else if (line.length > 0 && line.text[0] != '#') {
            status = add_line(parsing, &line);
        }
    }
    if (status >= 0 && parsing->problems.count == 0 && parsing->hosts->count == 0) {
        line.number = line.number > 0 ? line.number : 1;
        add_problem(&parsing->problems, &line, "no host: expected lines \"HOST slots=N\"");
    }
    if (status >= 0 && parsing->problems.count > PROBLEM_LIMIT) {
        ds_accel__text_add(&parsing->problems.text, "\n%s: %u more problems",
                           parsing->problems.path, parsing->problems.count - PROBLEM_LIMIT);
    }
    return status;
}

/* The number of lines, at most that of hosts. */
static size_t count_lines(const char *text, size_t size_bytes)
{
    const char *end = text + size_bytes;
    size_t count = 1;

    while (count < DS_ACCEL__HOST_LIMIT &&
           (text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
        text++;
        count++;
    }
    return count;
}

/* Parse a copy of the text, which is changed. */
static int32_t parse_copy(struct parsing *parsing, char *copy, size_t size_bytes)
{
    struct problems *problems = &parsing->problems;
    int32_t status = parse_lines(parsing, copy, copy + size_bytes);

    if (status >= 0 && problems->count > 0) {
        status = problems->text.failed
                     ? ds_accel__no_memory()
                     : ds_accel__error_lines(DS_ACCEL_ERR_CONFIG, problems->text.data);
    }
    ds_accel__text_clear(&problems->text);
    return status;
}

int32_t ds_accel__hostfile_parse(const char *path, const char *text, size_t size_bytes,
                                 struct ds_accel__hosts *hosts)
{
    size_t line_count = count_lines(text, size_bytes);
    struct ds_accel__host_index index = {0};
    char shown[512]; /* the path in messages */
    struct parsing parsing = {.hosts = hosts, .index = &index, .problems.path = shown};
    char *copy = malloc(size_bytes + 1);
    int32_t status = ds_accel__host_index_create(&index, hosts, line_count);

    assert(hosts->count == 0);
    ds_accel__copy(shown, sizeof(shown), path);
    ds_accel__sanitize(shown, sizeof(shown));
    parsing.lines = calloc(line_count, sizeof(*parsing.lines));
    if (status >= 0 && copy != NULL && parsing.lines != NULL) {
        memcpy(copy, text, size_bytes);
        copy[size_bytes] = '\0';
        status = parse_copy(&parsing, copy, size_bytes);
    } else {
        status = ds_accel__no_memory();
    }
    if (status < 0) {
        ds_accel__hosts_clear(hosts);
    }
    ds_accel__host_index_clear(&index);
    free(parsing.lines);
    free(copy);
    return status;
}

int32_t ds_accel__hostfile_read(const char *path, struct ds_accel__hosts *hosts)
{
    const char *cause = NULL;
    char *text = NULL;
    size_t size_bytes = 0;
    int32_t status = ds_accel__file_read(path, FILE_LIMIT, &text, &size_bytes, &cause);

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return ds_accel__error(status, "hostfile %s: no such file", path);
    }
    if (status == DS_ACCEL_ERR_IO) {
        return ds_accel__error(status, "hostfile %s: %s", path, cause);
    }
    if (status >= 0) {
        status = ds_accel__hostfile_parse(path, text, size_bytes, hosts);
    }
    free(text);
    return status;
}
