/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Counted checks, and the opening of an op, for tests of ops that are no optimizers. */
#ifndef TESTS_OPS_CHECKS_H
#define TESTS_OPS_CHECKS_H

#include "ds-accel/ops/op.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weak: a program of several files has one of each. */
__attribute__((weak)) atomic_uint checks;
__attribute__((weak)) atomic_uint failures;

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

/* Sizes of struct ds_accel_error as callers may have it: the whole, of a later version, up to a
 * member, in the middle of a text, not set. */
static const uint32_t error_sizes[] = {
    sizeof(struct ds_accel_error),
    sizeof(struct ds_accel_error) + 40,
    DS_ACCEL_SIZE_THROUGH(struct ds_accel_error, code),
    DS_ACCEL_SIZE_THROUGH(struct ds_accel_error, vendor_code),
    DS_ACCEL_SIZE_THROUGH(struct ds_accel_error, vendor_code) + 8,
    DS_ACCEL_SIZE_THROUGH(struct ds_accel_error, vendor_text),
    DS_ACCEL_SIZE_THROUGH(struct ds_accel_error, vendor_text) + 20,
    4,
    0,
};

/* Check what was written to an error of this size, whose memory was full of 0x5A. */
static inline void check_error(const unsigned char *memory, uint32_t size, int32_t wanted)
{
    const size_t vendor = offsetof(struct ds_accel_error, vendor_text);
    const size_t message = offsetof(struct ds_accel_error, message);
    size_t known = size < sizeof(struct ds_accel_error) ? size : sizeof(struct ds_accel_error);
    uint32_t kept;
    int32_t code;

    memcpy(&kept, memory, sizeof(kept));
    CHECK(kept == size, "struct_size %u became %u", size, kept);
    for (size_t i = known > 4 ? known : 4; i < sizeof(struct ds_accel_error) + 40; i++)
        CHECK(memory[i] == 0x5A, "struct_size %u: byte %zu was written", size, i);
    memcpy(&code, memory + 4, sizeof(code));
    CHECK(size < 8 || code == wanted, "struct_size %u: code %d", size, code);
    CHECK(known <= vendor || memchr(memory + vendor, 0, known - vendor),
          "struct_size %u: vendor_text has no end", size);
    CHECK(known <= message || memchr(memory + message, 0, known - message),
          "struct_size %u: message has no end", size);
    CHECK(known <= message || memory[message] != 0, "struct_size %u: no message", size);
}

/* Check that a failing call writes no byte behind the end of its error. */
#define ERROR_SIZES(call, wanted) \
    for (size_t i_ = 0; i_ < sizeof(error_sizes) / sizeof(error_sizes[0]); i_++) { \
        union { \
            struct ds_accel_error error; \
            unsigned char bytes[sizeof(struct ds_accel_error) + 40]; \
        } memory_; \
        struct ds_accel_error *failed = &memory_.error; \
        memset(&memory_, 0x5A, sizeof(memory_)); \
        memory_.error.struct_size = error_sizes[i_]; \
        CHECK((call) == (wanted), "another status"); \
        check_error(memory_.bytes, error_sizes[i_], wanted); \
    }

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
