/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The reasons of reasons.def, and lookup by id, by code and by a plugin's DS_ACCEL_REASON_* number.
 */
#include "base/reason.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

static const struct ds_accel__reason reasons[DS_ACCEL__REASON_COUNT + 1] = {
    [DS_ACCEL__REASON_NONE] = {"", "", ""},
#define GATE(name, what)
#define REASON(id, code, meaning, remedy) [DS_ACCEL__REASON_##id] = {code, meaning, remedy},
#include "reasons.def"
#undef REASON
#undef GATE
    [DS_ACCEL__REASON_BROKEN_RULE] = {"", "", ""},
};

const struct ds_accel__reason *ds_accel__reason(enum ds_accel__reason_id id)
{
    assert((size_t)id < ARRAY_SIZE(reasons));
    return &reasons[id];
}

const char *ds_accel__reason_code(enum ds_accel__reason_id id)
{
    assert((size_t)id < ARRAY_SIZE(reasons));
    return reasons[id].code;
}

enum ds_accel__reason_id ds_accel__reason_find(const char *code)
{
    for (size_t i = 0; code[0] != '\0' && i < DS_ACCEL__REASON_COUNT; i++) {
        /* Compare two letters first: most codes already differ there. */
        if (reasons[i].code[0] == code[0] && reasons[i].code[1] == code[1] &&
            strcmp(reasons[i].code, code) == 0) {
            return (enum ds_accel__reason_id)i;
        }
    }
    return DS_ACCEL__REASON_NONE;
}

bool ds_accel__reason_is_code(const char *code)
{
    return code[0] == '\0' || ds_accel__reason_find(code) != DS_ACCEL__REASON_NONE;
}

enum ds_accel__reason_id ds_accel__reason_of_verdict(uint32_t reason)
{
    static const enum ds_accel__reason_id ids[] = {
        [DS_ACCEL_REASON_NO_DEVICE] = DS_ACCEL__REASON_NO_DEVICE,
        [DS_ACCEL_REASON_NO_DRIVER] = DS_ACCEL__REASON_NO_DRIVER,
        [DS_ACCEL_REASON_NO_PERMISSION] = DS_ACCEL__REASON_NO_PERMISSION,
        [DS_ACCEL_REASON_LIBRARY_MISSING] = DS_ACCEL__REASON_LIBRARY_MISSING,
        [DS_ACCEL_REASON_SYMBOL_MISSING] = DS_ACCEL__REASON_SYMBOL_MISSING,
        [DS_ACCEL_REASON_DRIVER_MISMATCH] = DS_ACCEL__REASON_DRIVER_MISMATCH,
        [DS_ACCEL_REASON_DEVICE_BUSY] = DS_ACCEL__REASON_DEVICE_BUSY,
        [DS_ACCEL_REASON_HIDDEN] = DS_ACCEL__REASON_HIDDEN,
        [DS_ACCEL_REASON_DEVICE_TOO_OLD] = DS_ACCEL__REASON_DEVICE_TOO_OLD,
        [DS_ACCEL_REASON_DEVICE_ASLEEP] = DS_ACCEL__REASON_DEVICE_ASLEEP,
        [DS_ACCEL_REASON_DRIVER_FAILED] = DS_ACCEL__REASON_DRIVER_FAILED,
        [DS_ACCEL_REASON_BAD_OPTION] = DS_ACCEL__REASON_BAD_OPTION,
    };

    return reason < ARRAY_SIZE(ids) ? ids[reason] : DS_ACCEL__REASON_NONE;
}

bool ds_accel__reason_is_of_helper(enum ds_accel__reason_id id)
{
    return id == DS_ACCEL__REASON_HELPER_MISSING || id == DS_ACCEL__REASON_HELPER_REFUSED ||
           id == DS_ACCEL__REASON_HELPER_FAILED;
}

bool ds_accel__reason_is_of_result(enum ds_accel__reason_id id)
{
    return id == DS_ACCEL__REASON_RESULT_CLOSED || id == DS_ACCEL__REASON_RESULT_GARBLED ||
           id == DS_ACCEL__REASON_RESULT_FORGED;
}
