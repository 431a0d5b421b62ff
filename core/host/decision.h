/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The choice of an accelerator that a launcher hands down to the ranks of its job, in the variable
 * DS_ACCEL_DECISION: decision.c; its text: decision_text.c.
 */
#ifndef DS_ACCEL_HOST_DECISION_H
#define DS_ACCEL_HOST_DECISION_H

#include "base/private.h"
#include "base/text.h"
#include "ds_accel.h"

struct ds_accel__candidate;

struct ds_accel__decision {
    char version[32];       /* of the library that made it */
    uint64_t host;          /* hash of boot, machine and root of the machine's files */
    uint64_t user;          /* effective user ID */
    uint64_t configuration; /* hash of the configuration's values that affect the choice */
    char accelerator[DS_ACCEL__NAME_SIZE];
    char set_method[16]; /* as for ds_accel_set_method() */
    uint64_t device_count;
    char variant[32];
    char detail[256];
    struct {
        uint64_t device, inode, size_bytes;
        uint64_t modified_s, modified_ns, changed_s, changed_ns;
    } file; /* identity of the plugin's file */
    char path[4096];
};

/* Add the text of a decision. */
void ds_accel__decision_format(const struct ds_accel__decision *decision,
                               struct ds_accel__text *text);
/* Parse a text. Returns NULL on success, otherwise what is wrong with the text. */
const char *ds_accel__decision_parse(const char *text, struct ds_accel__decision *decision_out);

/*
 * Add the value of DS_ACCEL_DECISION for the ranks, after ds_accel__choose(). Nothing is added if
 * no accelerator was chosen, or if the choice is valid only in this process: on a recorded machine,
 * or for a backend that the program registered. ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__decision_write(ds_accel_t *context, struct ds_accel__text *out);
/*
 * Take over the decision of the environment, if there is one that is valid in this process: the
 * candidate is then available without a probe. *candidate_out is NULL if detection has to choose;
 * the log then contains the reason. ERR_NO_MEMORY; ERR_LIMIT; ERR_STATE: the decided accelerator
 * was started before fork(). Caller holds context->lock.
 */
int32_t ds_accel__decision_apply(ds_accel_t *context, struct ds_accel__decision *decision_out,
                                 struct ds_accel__candidate **candidate_out);

#endif
