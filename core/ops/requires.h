/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What an op needs and whether this machine has it: requires.c, requires_probe.c. */
#ifndef DS_ACCEL_OPS_REQUIRES_H
#define DS_ACCEL_OPS_REQUIRES_H

#include "ops/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DS_ACCEL__REQUIRES_COMPUTE "compute_major_min"

struct ds_accel__requires_options {
    char *const *link_flags; /* appended when a probe is linked, ends with NULL; NULL: none */
    const char *temporary;   /* directory for probes; NULL: ds_accel__env_temporary_dir() */
    /*
     * Whether another op can be loaded: 1 yes, 0 no, with a sentence in why; a negative status is
     * returned. NULL: ops are not checked and have no entries.
     */
    int32_t (*has_op)(void *user_data, const char *op, char *why, size_t why_size);
    void *user_data;
    /* The device's compute capability, its major number; 0: there is no device to ask, and
     * compute_major_min has no entry. */
    uint32_t compute_major;
};

/*
 * Check the object "requires" of an op's row of the configuration. *result_out is a new array with
 * an object for each requirement, in the order of the table in requires.c:
 *
 *     {"kind": "library", "what": "aio", "ok": false, "reason": "...", "remedy": "..."}
 *
 * kind: library, header, function, command, python, env, op, cpu or compute_major_min. reason: one
 * sentence if ok is false, else null. remedy: what to do, or null. Members that are null are
 * skipped; requires may be NULL. Kinds that this version does not know are not ok.
 *
 * Libraries, headers and functions are compiled and linked as small C programs with the compiler
 * and flags (end with NULL; NULL: none) of the build. compiler NULL: there is none, and these
 * requirements are not ok for that reason. Python is asked without importing the modules. Results
 * of programs that were run are remembered for the process.
 *
 * ERR_PERMISSION: the process has raised rights, so that nothing is run, but there is a compiler or
 * Python is required; ERR_NO_MEMORY; ERR_IO: the
 * directory for probes cannot be written; a status of has_op. Any thread may call this.
 */
int32_t ds_accel__requires_check(const json_t *requires, const struct ds_accel__compiler *compiler,
                                 char *const *flags,
                                 const struct ds_accel__requires_options *options,
                                 json_t **result_out);
/* True if every entry of such an array is ok. */
bool ds_accel__requires_are_met(const json_t *result);
/* Forget the remembered results of probes. */
void ds_accel__requires_forget(void);

#endif
