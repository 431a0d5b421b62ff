/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "launch/pieces.h"

#define PIECE_BYTES 65536u

int32_t ds_accel__pieces_flush(struct ds_accel__pieces *pieces, bool is_end)
{
    struct ds_accel__text *text = &pieces->text;

    if (text->failed) {
        return ds_accel__no_memory();
    }
    if (text->size_bytes == 0 || (!is_end && text->size_bytes < PIECE_BYTES)) {
        return DS_ACCEL_OK;
    }
    if (!pieces->write(pieces->user_data, text->data, text->size_bytes)) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "the plan could not be written");
    }
    text->size_bytes = 0;
    text->data[0] = '\0';
    return DS_ACCEL_OK;
}

void ds_accel__pieces_clear(struct ds_accel__pieces *pieces)
{
    ds_accel__text_clear(&pieces->text);
}
