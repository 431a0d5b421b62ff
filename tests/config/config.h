/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of the configuration: files of each layer, and the merged result. */
#ifndef DS_ACCEL_TESTS_CONFIG_CONFIG_H
#define DS_ACCEL_TESTS_CONFIG_CONFIG_H

#include "fixture.h"

/* The merged configuration of a context with these options, as compact JSON. */
static inline char *merged_with(const struct ds_accel_options *options)
{
    ds_accel_t *context = test_create_with(options);
    char *text = test_report(context, DS_ACCEL_REPORT_CONFIG, NULL, DS_ACCEL_FORMAT_JSON);

    ds_accel_destroy(context);
    return test_compact(text);
}

static inline char *merged(void)
{
    struct ds_accel_options options = test_options();

    return merged_with(&options);
}

/* Expect {"key":...,"value":...,"origin":"FILE:LINE"} in the merged configuration. */
static inline void expect_value(const char *report, const char *key, const char *value,
                                const char *file, int line)
{
    char wanted[1024];

    snprintf(wanted, sizeof(wanted), "{\"key\":\"%s\",\"value\":%s,\"origin\":\"%s:%d\"}", key,
             value, file, line);
    EXPECT_HAS(report, wanted);
}

static inline void expect_merged(const char *key, const char *value, const char *file, int line)
{
    char *report = merged();

    expect_value(report, key, value, file, line);
    ds_accel_free_text(report);
}

/* Expect that creation fails, leaves *context unchanged, and reports "FILE:WHERE: ...SAYS...". */
static inline void expect_refused_with(const struct ds_accel_options *options, const char *file,
                                       const char *where, const char *says)
{
    ds_accel_t *const untouched = (ds_accel_t *)(uintptr_t)&says;
    ds_accel_t *context = untouched;
    const char *line = NULL;
    char prefix[600];

    cr_expect_eq(ds_accel_create(options, &context), DS_ACCEL_ERR_CONFIG, "%s: %s", file, says);
    cr_expect_eq(context, untouched, "%s: a context in spite of %s", file, says);
    snprintf(prefix, sizeof(prefix), "%s:%s: ", file, where);
    line = strstr(ds_accel_last_error(), prefix);
    cr_expect_not_null(line, "no %s in:\n%s", prefix, ds_accel_last_error());
    cr_expect(line != NULL && strstr(line, says) != NULL, "no %s in:\n%s", says,
              ds_accel_last_error());
}

static inline void expect_refused(const char *text, const char *where, const char *says)
{
    struct ds_accel_options options = test_options();

    expect_refused_with(&options, test_write("etc/ds-accel.json", text), where, says);
}

struct bad {
    const char *text;
    const char *where;
    const char *says;
};

#define EXPECT_ALL_REFUSED(rows) \
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) { \
        expect_refused(rows[row].text, rows[row].where, rows[row].says); \
    }

#endif
