/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The reasons why a plugin was not chosen: an enum inside the library, a text code in results and
 * reports (reason.c).
 */
#ifndef DS_ACCEL_BASE_REASON_H
#define DS_ACCEL_BASE_REASON_H

#include "base/private.h"
#include <stdbool.h>
#include <stdint.h>

enum ds_accel__reason_id {
    DS_ACCEL__REASON_NONE, /* its code is "" */
#define GATE(name, what)
#define REASON(id, code, meaning, remedy) DS_ACCEL__REASON_##id,
#include "reasons.def"
#undef REASON
#undef GATE
    DS_ACCEL__REASON_COUNT,
    DS_ACCEL__REASON_BROKEN_RULE = DS_ACCEL__REASON_COUNT /* used only by lint */
};

struct ds_accel__reason {
    const char *code;
    const char *meaning;
    const char *remedy;
};

/* The texts of a reason; all three are "" for NONE and BROKEN_RULE. */
DS_ACCEL__PRIVATE const struct ds_accel__reason *ds_accel__reason(enum ds_accel__reason_id id);
/* The code of a reason, such as "no_device". */
DS_ACCEL__PRIVATE const char *ds_accel__reason_code(enum ds_accel__reason_id id);
/* The reason with that code; NONE for "" and for an unknown code. */
DS_ACCEL__PRIVATE enum ds_accel__reason_id ds_accel__reason_find(const char *code);
/* True if the code is "" or the code of a reason. */
DS_ACCEL__PRIVATE bool ds_accel__reason_is_code(const char *code);
/* The reason for a plugin's DS_ACCEL_REASON_*; NONE for an unknown number. */
DS_ACCEL__PRIVATE enum ds_accel__reason_id ds_accel__reason_of_verdict(uint32_t reason);
/* True if the code is helper_*: the program ds-accel-probe failed, not the plugin. */
bool ds_accel__reason_is_of_helper(enum ds_accel__reason_id id);
/* True if the code is result_*: the plugin closed, or wrote to, the descriptor that carries its
 * result. */
DS_ACCEL__PRIVATE bool ds_accel__reason_is_of_result(enum ds_accel__reason_id id);

#endif
