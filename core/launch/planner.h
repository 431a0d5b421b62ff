/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files that make a plan: plan.c, plan_hosts.c. */
#ifndef DS_ACCEL_LAUNCH_PLANNER_H
#define DS_ACCEL_LAUNCH_PLANNER_H

#include "launch/plan.h"

/* A plan in progress. */
struct ds_accel__planner {
    const struct ds_accel__launch_options *options;
    const struct ds_accel__launch_facts *facts;
    struct ds_accel__text *notes;
    struct ds_accel__plan *plan;
    bool has_hostfile;
    bool has_others; /* the job has ranks that are started as those of other hosts */
};

/* planner.c */

/* Is the text neither NULL nor empty? */
bool ds_accel__is_given(const char *text);
/* Do ranks share the devices? */
bool ds_accel__planner_is_cpu(const struct ds_accel__planner *planner);
/* Does an option choose hosts or slots? */
bool ds_accel__has_filter(const struct ds_accel__launch_options *options);

/* ERR_INVALID: that is more ranks than a job may have. */
int32_t ds_accel__planner_check_count(uint64_t count);
/* plan_hosts.c: choose the hosts and their slots; hosts, those of the hostfile, are moved to the
 * plan; NULL: this machine is the only host. ERR_INVALID; ERR_NO_DEVICE; ERR_NO_MEMORY. */
int32_t ds_accel__planner_choose_hosts(struct ds_accel__planner *planner,
                                       struct ds_accel__hosts *hosts);

#endif
