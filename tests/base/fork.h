/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of forked children, in which a failed check sets the child's exit code. */
#ifndef DS_ACCEL_TESTS_BASE_FORK_H
#define DS_ACCEL_TESTS_BASE_FORK_H

#include "fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;

static inline void stop(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

/* Check in a child: the child exits at its first failed check. SIGALRM kills a child that hangs. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, ds_accel_last_error()); \
            _exit(1); \
        } \
    } while (0)

static inline void in_child(void (*work)(void))
{
    int status = 0;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        alarm(60);
        work();
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", status);
}

static inline bool says_why(void)
{
    char words[64];

    snprintf(words, sizeof(words), "started by process %ld before fork()", (long)getppid());
    return strstr(ds_accel_last_error(), words) != NULL;
}

static inline void use_device(void)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *stream = NULL;
    uint32_t index = 0;
    char name[32];

    CHECK(ds_accel_device_synchronize(device) == DS_ACCEL_ERR_STATE && says_why());
    CHECK(ds_accel_device_info(device, &info) == DS_ACCEL_ERR_STATE && says_why());
    CHECK(ds_accel_current_device(context, &index) == DS_ACCEL_ERR_STATE && says_why());
    CHECK(table->stream_create(ds_accel_device_handle(device), 0, 0, &stream, &error) ==
          DS_ACCEL_ERR_STATE);
    CHECK(stream == NULL);
    table->stream_destroy(NULL);
    CHECK(ds_accel_device_name(context, 0, name, sizeof(name)) == DS_ACCEL_OK);
    CHECK(strcmp(name, "mock:0") == 0);
}

#endif
