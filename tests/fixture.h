/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Shared by the unit tests: a temporary directory for each test, files in it, plugins copied into
 * it, and contexts that see nothing of the machine they run on unless requested.
 */
#ifndef DS_ACCEL_TESTS_FIXTURE_H
#define DS_ACCEL_TESTS_FIXTURE_H

#include "ds_accel_tools.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_FIXTURES TEST_BUILD "/tests/fixtures" /* broken plugins, one directory per defect */
#define TEST_MOCKS TEST_FIXTURES "/mocks"          /* copies of the mock under other names */
#define TEST_PLUGINS TEST_BUILD "/lib/ds-accel"

/* True if case number index of a loop with very many cases is to run: one in one_in of them, which
   $SEED selects, and all with $FULL. */
bool test_is_sampled(size_t index, size_t one_in);

/* A new, empty directory, one per process, removed when the test's process exits. Static
   storage. */
const char *test_dir(void);
/* test_dir()/path in one of a few rotating static buffers. Missing parent directories are
   created. */
const char *test_path(const char *path);
/* Write a text file at test_dir()/path; returns its path. */
const char *test_write(const char *path, const char *text);
/* Write a binary file at test_dir()/path; returns its path. */
const char *test_write_bytes(const char *path, const void *data, size_t size);
/* Copy a file to test_dir()/path; returns its path. */
const char *test_copy(const char *from, const char *path);
/* Copy the plugin TEST_MOCKS/ds_accel_<name>.so into test_dir()/plugins. */
void test_add_mock(const char *name);

/* Log lines of contexts made with test_options(), one line "level topic: message" each. */
extern char test_log[16384];

/*
 * Options for a context with: plugins of test_dir()/plugins (before those beside the library),
 * package configuration test_dir()/share, system configuration test_dir()/etc, no user
 * configuration. The environment is read (tests set and unset variables themselves).
 */
struct ds_accel_options test_options(void);
/* Create a context; asserts success. */
ds_accel_t *test_create_with(const struct ds_accel_options *options);
/* Create a context with test_options(); asserts success. */
ds_accel_t *test_create(void);
/* Create a context with this accelerator forced, detect it, and open its device 0; asserts
   success. */
ds_accel_t *test_start(const char *accelerator, ds_accel_device_t **device_out);
/* Close the device and destroy the context of test_start(). */
void test_finish(ds_accel_t *context, ds_accel_device_t *device);
/* The candidate with this name; asserts that it exists. */
struct ds_accel_candidate test_candidate(ds_accel_t *context, const char *name);
/* A report as text; asserts success. Free it with ds_accel_free_text(). */
char *test_report(ds_accel_t *context, uint32_t report, const char *name, uint32_t format);

/* Remove the blanks between JSON's tokens in place, so that tests can search for text; returns
   json. */
char *test_compact(char *json);

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Assert a call of the library that must succeed for the test to be valid. */
#define MUST(call) cr_assert_eq((call), DS_ACCEL_OK, "%s: %s", #call, ds_accel_last_error())
#define EXPECT_STATUS(call, status) \
    do { \
        int32_t got_ = (call); \
        cr_expect_eq(got_, status, "%s: %d: %s", #call, got_, ds_accel_last_error()); \
    } while (0)
/* Expect that a call fails with this status and with these words in the error. */
#define EXPECT_REFUSED(call, status, words) \
    do { \
        EXPECT_STATUS(call, status); \
        EXPECT_HAS(ds_accel_last_error(), words); \
    } while (0)

#define EXPECT_HAS(text, part) \
    cr_expect_not_null(strstr(text, part), "no %s in:\n%s", part, (const char *)(text))
#define EXPECT_HAS_NOT(text, part) \
    cr_expect_null(strstr(text, part), "%s in:\n%s", part, (const char *)(text))

#endif
