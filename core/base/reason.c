/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reason codes: the table of reasons.def, looked up by code and by a plugin's number. */
#include "base/text.h"

#include <string.h>

static const struct ds_accel__reason reasons[] = {
#define GATE(name, what)
#define REASON(code, meaning, remedy) {code, meaning, remedy},
#include "reasons.def"
#undef REASON
#undef GATE
};

const struct ds_accel__reason *ds_accel__reason(const char *code)
{
    for (size_t i = 0; code[0] != '\0' && i < DS_ACCEL__ARRAY_SIZE(reasons); i++) {
        /* Most differ in the first two letters. */
        if (reasons[i].code[0] == code[0] && reasons[i].code[1] == code[1] &&
            strcmp(reasons[i].code, code) == 0) {
            return &reasons[i];
        }
    }
    return NULL;
}

const char *ds_accel__reason_of_verdict(uint32_t reason)
{
    static const char *const codes[] = {
        [DS_ACCEL_REASON_NO_DEVICE] = "no_device",
        [DS_ACCEL_REASON_NO_DRIVER] = "no_driver",
        [DS_ACCEL_REASON_NO_PERMISSION] = "no_permission",
        [DS_ACCEL_REASON_LIBRARY_MISSING] = "library_missing",
        [DS_ACCEL_REASON_SYMBOL_MISSING] = "symbol_missing",
        [DS_ACCEL_REASON_DRIVER_MISMATCH] = "driver_mismatch",
        [DS_ACCEL_REASON_DEVICE_BUSY] = "device_busy",
        [DS_ACCEL_REASON_HIDDEN] = "hidden",
        [DS_ACCEL_REASON_DEVICE_TOO_OLD] = "device_too_old",
        [DS_ACCEL_REASON_DEVICE_ASLEEP] = "device_asleep",
        [DS_ACCEL_REASON_DRIVER_FAILED] = "driver_failed",
        [DS_ACCEL_REASON_BAD_OPTION] = "bad_option",
    };

    return reason < DS_ACCEL__ARRAY_SIZE(codes) ? codes[reason] : NULL;
}
