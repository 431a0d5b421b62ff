/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as each kind of list: CPU numbers, levels of DS_ACCEL_LOG, directories of a search
 * path. */
#include "fuzz.h"

#include "base/text.h"

#define LINE_LIMIT 1024 /* length of a line in the log */

/* ---- numbers -------------------------------------------------------------------------------- */

struct set {
    bool has[DS_ACCEL__LIST_LIMIT];
};

static bool add_range(void *user_data, uint32_t first, uint32_t last)
{
    struct set *set = user_data;

    FUZZ_CHECK(first <= last && last < DS_ACCEL__LIST_LIMIT);
    memset(&set->has[first], true, last - first + 1);
    return true;
}

static bool refuse(void *user_data, uint32_t first, uint32_t last)
{
    (void)first;
    (void)last;
    ++*(unsigned *)user_data;
    return false;
}

static void print_set(const struct set *set, struct ds_accel__text *text)
{
    for (uint32_t first = 0; first < DS_ACCEL__LIST_LIMIT; first++) {
        uint32_t last = first;

        if (!set->has[first]) {
            continue;
        }
        while (last + 1 < DS_ACCEL__LIST_LIMIT && set->has[last + 1]) {
            last++;
        }
        ds_accel__text_add(text, last > first ? "%s%u-%u" : "%s%u", text->size_bytes > 0 ? "," : "",
                           first, last);
        first = last;
    }
}

/* Check that a list that is parsed, written and parsed again has the same numbers. */
static void check_numbers(const char *list)
{
    static struct set set;
    static struct set again;
    struct ds_accel__text text = {0};
    unsigned refused = 0;
    bool stopped;

    memset(&set, 0, sizeof(set));
    memset(&again, 0, sizeof(again));
    stopped = !ds_accel__list_parse(list, refuse, &refused);
    FUZZ_CHECK(refused <= 1);
    FUZZ_CHECK(stopped || *list == '\0' || *list == '\n');
    if (!ds_accel__list_parse(list, add_range, &set)) {
        return;
    }
    print_set(&set, &text);
    if (text.size_bytes > 0) {
        FUZZ_CHECK(refused == 1);
        FUZZ_CHECK(ds_accel__list_parse(text.data, add_range, &again));
    }
    FUZZ_CHECK(memcmp(&set, &again, sizeof(set)) == 0);
    ds_accel__text_clear(&text);
}

/* ---- levels --------------------------------------------------------------------------------- */

/* Use jansson's definition of UTF-8, since jansson must accept the text in a report; also reject
 * the control characters of two bytes. */
static bool is_printable(const char *line)
{
    json_t *value = json_string(line);
    bool is = value != NULL;

    json_decref(value);
    for (const unsigned char *c = (const unsigned char *)line; *c != '\0' && is; c++) {
        is = !(c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) && *c >= 0x20 && *c != 0x7f;
    }
    return is;
}

static void count_warning(void *user_data, uint32_t level, const char *topic, const char *line)
{
    FUZZ_CHECK(level == DS_ACCEL_LOG_WARN);
    FUZZ_CHECK(strcmp(topic, "log") == 0);
    FUZZ_CHECK(strlen(line) > 0 && strlen(line) < LINE_LIMIT);
    FUZZ_CHECK(is_printable(line)); /* any setting makes one line */
    ++*(unsigned *)user_data;
}

static const char *level_name(uint32_t level)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug", "trace"};

    FUZZ_CHECK(level < ARRAY_SIZE(names));
    return names[level];
}

/* Check that the valid items, written again, are all valid and configure the same log. */
static void check_levels(const char *levels)
{
    unsigned warned = 0;
    struct ds_accel__log log = {.sink = count_warning, .user_data = &warned, .level = 2};
    struct ds_accel__log again = log;
    struct ds_accel__text text = {0};

    ds_accel__log_set_levels(&log, levels);
    FUZZ_CHECK(log.topic_count <= DS_ACCEL__LOG_TOPIC_MAX);
    FUZZ_CHECK(warned <= 8);
    ds_accel__text_add(&text, "%s", level_name(log.level));
    for (uint32_t i = 0; i < log.topic_count; i++) {
        const char *name = log.topics[i].name;
        size_t length = strnlen(name, sizeof(log.topics[i].name));

        FUZZ_CHECK(length > 0 && length < sizeof(log.topics[i].name));
        FUZZ_CHECK(strcspn(name, ",=") == length);
        FUZZ_CHECK(strstr(levels, name) != NULL);
        ds_accel__text_add(&text, ",%s=%s", name, level_name(log.topics[i].level));
    }
    warned = 0;
    ds_accel__log_set_levels(&again, text.data);
    FUZZ_CHECK(warned == 0);
    FUZZ_CHECK(memcmp(&log, &again, sizeof(log)) == 0);
    for (uint32_t i = 0; i < log.topic_count; i++) {
        bool enabled = false;

        for (uint32_t j = 0; j < log.topic_count; j++) { /* the last item with a name counts */
            if (strcmp(log.topics[i].name, log.topics[j].name) == 0) {
                enabled = log.topics[j].level >= DS_ACCEL_LOG_INFO;
            }
        }
        FUZZ_CHECK(ds_accel__log_enabled(&log, log.topics[i].name, DS_ACCEL_LOG_INFO) == enabled);
    }
    ds_accel__text_clear(&text);
}

/* ---- directories ----------------------------------------------------------------------------- */

/* Check that no item is empty or missing, and that only separators are between the items. */
static void check_items(const char *list, char separator)
{
    const char *rest = list;
    const char *before = list;
    const char *item;
    size_t length;

    while ((item = ds_accel__list_next(&rest, separator, &length)) != NULL) {
        FUZZ_CHECK(length > 0 && memchr(item, separator, length) == NULL);
        FUZZ_CHECK(item[length] == separator || item[length] == '\0');
        FUZZ_CHECK(rest == item + length);
        for (; before < item; before++) {
            FUZZ_CHECK(*before == separator);
        }
        before = rest;
    }
    for (; *before != '\0'; before++) {
        FUZZ_CHECK(*before == separator);
    }
    FUZZ_CHECK(*rest == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup(size > 0 ? (const char *)data : "", size);

    if (text == NULL) {
        return 0;
    }
    check_numbers(text);
    check_levels(text);
    check_items(text, ':');
    check_items(text, ',');
    free(text);
    return 0;
}
