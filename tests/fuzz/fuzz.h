/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Shared by the fuzzers. A fuzzer is one file: LLVMFuzzerTestOneInput() passes arbitrary bytes to
 * the library and checks properties of the result. Its callers are libFuzzer, and fuzz_main.c with
 * the inputs in corpus/.
 */
#ifndef DS_ACCEL_TESTS_FUZZ_FUZZ_H
#define DS_ACCEL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Abort if the condition is false; both callers report an abort as a failure of the input. */
#define FUZZ_CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

#endif
