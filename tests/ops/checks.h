/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Counted checks, and the opening of an op, for tests of ops that are no optimizers. */
#ifndef TESTS_OPS_CHECKS_H
#define TESTS_OPS_CHECKS_H

#include "ds-accel/ops/op.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint checks;
static atomic_uint failures;

#define CHECK(condition, ...) \
    do { \
        checks++; \
        if (!(condition) && failures++ < 20) { \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr); \
        } \
    } while (0)

/* Check that a call fails with a code, and with a message that contains a text. */
#define REFUSED(call, wanted, text) \
    do { \
        struct ds_accel_error error_ = {.struct_size = sizeof(error_)}; \
        struct ds_accel_error *failed = &error_; \
        int32_t status_ = call; \
        CHECK(status_ == (wanted) && error_.code == (wanted), "status %d, error's code %d", \
              status_, error_.code); \
        CHECK(strstr(error_.message, text), "message \"%s\", wanted \"%s\"", error_.message, \
              text); \
        failed = NULL; \
        CHECK((call) == (wanted), "without an error"); \
    } while (0)

static inline const struct ds_accel_op *open_op(const char *file, const char *name)
{
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    ds_accel_op_entry_v1_fn entry = NULL;
    const struct ds_accel_op *op;

    if (library)
        entry = (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY);
    if (!entry) {
        fprintf(stderr, "%s: %s\n", name, file ? dlerror() : "no file");
        exit(1);
    }
    op = entry();
    CHECK(strcmp(op->name, name) == 0, "the op is called %s", op->name);
    CHECK(op->abi_major == DS_ACCEL_OP_ABI_MAJOR, "ABI %u", op->abi_major);
    return op;
}

/* Print the number of checks; return the exit status. */
static inline int finish(const char *name)
{
    unsigned failed = failures;

    printf("%s: %u passed, %u failed\n", name, checks - failed, failed);
    return failed > 0;
}

#endif
