/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The engine of threads: each of them transfers one block at a time. */
#include "handle.h"

void *async_io__pool_run(void *worker)
{
    struct async_io__worker *self = (struct async_io__worker *)worker;
    struct async_io__block block;

    while (async_io__take(self, true, &block)) {
        if (async_io__fill(self, &block))
            async_io__transfer(&block);
        async_io__finish(self, &block);
    }
    return NULL;
}
