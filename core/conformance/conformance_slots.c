/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The names of the slots of a plugin's table, by offset, generated from slots.def. */
#include "base/text.h"
#include "conformance/conformance.h"

#undef CALL /* defined in conformance.h; in this file CALL is a row of slots.def */

/* The names in the order of the table's slots. */
static const char *const slot_names[] = {
#define CALL(name, ...) #name,
#define DROP(name, ...) #name,
#include "slots.def"
};

const char *ds_accel__slot_name(size_t offset)
{
    size_t position = (offset - SLOT(probe)) / sizeof(void *);

    return offset >= SLOT(probe) && position < ARRAY_SIZE(slot_names) ? slot_names[position] : "?";
}
