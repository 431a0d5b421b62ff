/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A long text that is written in pieces, so that it need not fit into memory: pieces.c. */
#ifndef DS_ACCEL_LAUNCH_PIECES_H
#define DS_ACCEL_LAUNCH_PIECES_H

#include "base/text.h"
#include "ds_accel_tools.h"

struct ds_accel__pieces {
    struct ds_accel__text text; /* not yet written */
    ds_accel_write_t write;
    void *user_data;
};

/* Write the text so far, if it is long enough, or at the end of all. ERR_IO: write returned false;
 * ERR_NO_MEMORY. */
int32_t ds_accel__pieces_flush(struct ds_accel__pieces *pieces, bool is_end);
void ds_accel__pieces_clear(struct ds_accel__pieces *pieces);

#endif
