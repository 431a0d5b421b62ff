/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Cambricon's profiler ranges. CNPX is a header that fills a table of functions:
 * cnpxInitInternal(), exported by the process or by the library in CNPX_LIB_PATH, writes its
 * functions after the version. The order of the table is that of cnpx's header of version 5; later
 * versions only append.
 */
#ifndef DS_ACCEL_PLUGINS_MLU_CNPX_H
#define DS_ACCEL_PLUGINS_MLU_CNPX_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define CNPX_VERSION 5
#define CNPX_BEGUN 1 /* the caller has begun to initialize the table */

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
