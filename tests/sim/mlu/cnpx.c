/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated CNPX library: fills the caller's table, up to the version that the caller passes. */
#include "engine.h"

/* No header declares these exports: programs that open the library declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef struct cnpxApi {
    volatile uint32_t init;
    uint32_t version;
    struct {
        void (*f_cnpxInit)(const void *reserved);
        void (*f_cnpxMark)(const char *message);
        int (*f_cnpxRangePush)(const char *message);
        int (*f_cnpxRangePop)(void);
        void (*others[24])(void);
    } f;
} cnpxApi_t;

SIM_ASSERT(offsetof(cnpxApi_t, f.f_cnpxRangePop) == 32, "cnpx of version 5");
SIM_ASSERT(sizeof(cnpxApi_t) == 232, "cnpx of version 5");

static int range_push(const char *message)
{
    sim_enter("cnpxRangePush");
    return sim_range_push(message);
}

static int range_pop(void)
{
    sim_enter("cnpxRangePop");
    return sim_range_pop();
}

SIM_EXPORT void cnpxInitInternal(cnpxApi_t *apis)
{
    sim_enter("cnpxInitInternal");
    if (apis->init == 0 || apis->version == 0 || apis->version > 5) {
        sim_misuse("cnpxInitInternal: state %u, version %u", apis->init, apis->version);
    }
    apis->f.f_cnpxRangePush = range_push;
    apis->f.f_cnpxRangePop = range_pop;
    apis->init = 2;
}
