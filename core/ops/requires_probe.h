/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Requirements that only running a program shows: requires_probe.c. */
#ifndef DS_ACCEL_OPS_REQUIRES_PROBE_H
#define DS_ACCEL_OPS_REQUIRES_PROBE_H

#include "ops/requires.h"

/* What the probes of one check share. */
struct ds_accel__requires_prober {
    const struct ds_accel__compiler *compiler; /* NULL: there is none */
    char *const *flags;                        /* NULL: none */
    const struct ds_accel__requires_options *options;
    char *directory; /* made for the first probe; NULL: not yet */
    int fd;          /* the directory, open */
};

/* A result: ok if reason is NULL, else a sentence's end such as "cannot find -laio", for free(). */
struct ds_accel__requires_found {
    char *reason;
};

/*
 * Compile and link a program of C, or C++, with further libraries (a JSON array of texts, or NULL).
 * links false: only compile. DS_ACCEL_OK with the result; ERR_IO; ERR_NO_MEMORY.
 */
int32_t ds_accel__requires_link(struct ds_accel__requires_prober *prober, const char *source,
                                const json_t *libraries, bool links,
                                struct ds_accel__requires_found *result);
/*
 * Find a Python module and its version without importing it. *version_out is a new string, ""
 * if the module has no version; NULL: there is no such module. *python_out is the path of python3;
 * NULL: there is none.
 */
int32_t ds_accel__requires_python(const struct ds_accel__requires_prober *prober,
                                  const char *module, char **python_out, char **version_out);
/* Remove the directory of the probes. */
void ds_accel__requires_end(struct ds_accel__requires_prober *prober);

#endif
