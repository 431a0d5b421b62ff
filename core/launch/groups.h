/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The control groups of a job: groups.c. */
#ifndef DS_ACCEL_LAUNCH_GROUPS_H
#define DS_ACCEL_LAUNCH_GROUPS_H

#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__machine;
struct ds_accel__groups;

enum ds_accel__oom_verdict {
    DS_ACCEL__OOM_NONE,
    DS_ACCEL__OOM_LIKELY, /* the kernel killed processes of a group that other processes share */
    DS_ACCEL__OOM_PROVED  /* the kernel killed processes of the rank's own group */
};

/* What the kernel killed because memory was exhausted, since ds_accel__groups_open(). */
struct ds_accel__oom {
    enum ds_accel__oom_verdict verdict;
    uint64_t kills;         /* number of killed processes; 0: none */
    char counter_file[512]; /* the file that counts them; "" without a verdict */
    bool is_machine_wide;   /* the counter is that of the whole machine */
    uint64_t limit_bytes;   /* smallest memory limit of all groups at the start; 0: no limit */
    bool limit_was_reached; /* since the start */
    char limit_file[512];   /* the file that sets limit_bytes */
};

/*
 * Read the counters and the limit that ds_accel__groups_oom() compares, before any rank starts. The
 * machine is borrowed. ERR_NO_MEMORY.
 */
int32_t ds_accel__groups_open(const struct ds_accel__machine *machine, uint32_t rank_count,
                              struct ds_accel__groups **groups_out);
/* The smallest memory limit of all groups of this process; 0: there is none. */
uint64_t ds_accel__groups_limit_bytes(const struct ds_accel__groups *groups);
/*
 * Make one group for the job below the group of this process, and in it one memory group for each
 * rank, as far as the kernel, permissions and mounts allow; whatever is not possible is left out.
 * In cgroup v2 this process may move to a group below its own until ds_accel__groups_close(). No
 * group is made below a recording. Called once, before any rank starts. ERR_NO_MEMORY.
 *
 * Groups delay a start: the kernel waits for all its processors when the first process joins a
 * group after a while without any that did (12 to 20 ms on two processors); each further rank costs
 * about 0.2 ms.
 */
int32_t ds_accel__groups_make(struct ds_accel__groups *groups);
/*
 * The file to which the process of a rank writes "0" to join the rank's group; -1: there is none,
 * or it cannot be opened, and the rank's group is forgotten. The descriptor is valid until the next
 * call, and closes on exec.
 */
int ds_accel__groups_descriptor(struct ds_accel__groups *groups, uint32_t rank);
/*
 * A second file that the process of every rank must write to, if the group of the job is in another
 * hierarchy than the groups of ranks; otherwise -1. The descriptor is valid until
 * ds_accel__groups_close().
 */
int ds_accel__groups_job_descriptor(const struct ds_accel__groups *groups);
/* The rank could not join its group, so the group's counter proves nothing about the rank. */
void ds_accel__groups_forget(struct ds_accel__groups *groups, uint32_t rank);
/* Send SIGKILL to every process of the job's group. False: there is no group, or it failed. */
bool ds_accel__groups_kill(struct ds_accel__groups *groups);
/* Compare the counters with those at the start, after the rank has ended. */
void ds_accel__groups_oom(const struct ds_accel__groups *groups, uint32_t rank,
                          struct ds_accel__oom *oom);
/*
 * Remove the groups. Waits at most half a second until their processes have ended; a group whose
 * processes run longer stays, and a later ds_accel__groups_open() removes it. NULL does nothing.
 */
void ds_accel__groups_close(struct ds_accel__groups *groups);

#endif
