/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The names of the slots of a plugin's table, by their offsets: made of slots.def. */
#include "base/text.h"
#include "conformance/conformance.h"

#undef CALL /* conformance.h's: here CALL is a row of slots.def */

/* In the order of the table. */
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
