/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Cambricon's profiler ranges (CNPX). A library that the process has loaded, or the library in
 * CNPX_LIB_PATH, exports cnpxInitInternal(). The caller passes a table that begins with state and
 * version, and the function writes the addresses of the profiler's functions after these, in the
 * order of version 5 of CNPX's header. Later versions only append functions.
 */
#ifndef DS_ACCEL_PLUGINS_MLU_CNPX_H
#define DS_ACCEL_PLUGINS_MLU_CNPX_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define CNPX_VERSION 5
#define CNPX_BEGUN 1 /* state of a table that the caller passes to cnpxInitInternal() */

struct cnpx_api {
    volatile uint32_t state;
    uint32_t version;
    void (*init)(const void *reserved);
    void (*mark)(const char *message);
    int (*range_push)(const char *message);
    int (*range_pop)(void);
    void (*others[24])(void);
    void (*room[64])(void); /* space for functions of later versions */
};

static_assert(offsetof(struct cnpx_api, range_push) == 8 + 2 * sizeof(void *), "cnpx: cnpxApi_t");
static_assert(offsetof(struct cnpx_api, room) == 8 + 28 * sizeof(void *), "cnpx: cnpxApi_t");

#endif
