/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "limit.h"

#include <string.h>

static const struct limit_set *const sets[] = {
    &limit_scalar,
#if defined(__x86_64__)
    &limit_avx2,
    &limit_avx512,
#elif defined(__aarch64__)
    &limit_neon,
#endif
};

const struct limit_set *limit_find(const char *name)
{
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        if (strcmp(sets[i]->name, name) == 0) {
            return sets[i];
        }
    }
    return NULL;
}
