/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A job that is planned and can be started: launch.c. */
#ifndef DS_ACCEL_LAUNCH_LAUNCH_H
#define DS_ACCEL_LAUNCH_LAUNCH_H

#include "base/text.h"
#include "launch/facts.h"
#include "launch/options.h"
#include "launch/plan.h"

struct ds_accel_launch {
    struct ds_accel__launch_options options;
    struct ds_accel_options context_options; /* borrow from texts */
    /* The command line's memory is overwritten in the supervisor (title.h), which reads these. */
    char **texts;
    size_t text_count;
    const char **plugin_dirs; /* of context_options; in texts, too */
    struct ds_accel__known_facts known;
    struct ds_accel__plan plan;
    struct ds_accel__log log; /* for messages to the user, topic "run" */
    bool has_run;             /* its supervisor was started, and known.context is destroyed */
};

#endif
