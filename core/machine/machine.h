/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Where the machine is looked at: machine.c. */
#ifndef DS_ACCEL_MACHINE_MACHINE_H
#define DS_ACCEL_MACHINE_MACHINE_H

#include "ds_accel.h"

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Takes what is read of a machine. */
struct ds_accel__recorder {
    pthread_mutex_t lock;
    json_t *
        files; /* below /sys, /proc and /dev, by path: objects of "text", "names", "link", "node" */
    bool failed; /* memory is exhausted */
};

struct ds_accel__machine {
    const char *root; /* borrowed; "" is the machine itself */
    json_t *files;    /* borrowed, as above: of a recorded machine, and root is ""; else NULL */
    struct ds_accel__recorder *recorder; /* borrowed; NULL: nothing is noted */
};

extern const struct ds_accel__machine ds_accel__machine_here;

/* A file of the machine, such as /proc/meminfo; *text_out NULL if it can't be read. ERR_NO_MEMORY.
 */
int32_t ds_accel__machine_read(const struct ds_accel__machine *machine, const char *path,
                               char **text_out);
/* Its first line, cut to what fits; "" if there is none. */
int32_t ds_accel__machine_line(const struct ds_accel__machine *machine, const char *path,
                               char *line, size_t line_size);
/* Names in a directory, sorted; none if there is no such directory. */
int32_t ds_accel__machine_list(const struct ds_accel__machine *machine, const char *path,
                               char ***names_out, size_t *count_out);
/* Where a symbolic link leads; false if there is none. */
bool ds_accel__machine_link(const struct ds_accel__machine *machine, const char *path, char *target,
                            size_t target_size);
/* Is it denied to this process (mode as for access()): it, or the way to it? Not if it is absent.
 */
bool ds_accel__machine_is_closed(const struct ds_accel__machine *machine, const char *path,
                                 int mode);

struct ds_accel__machine_node {
    mode_t mode;
    uid_t uid;
    gid_t gid;
    dev_t rdev;
    uint64_t changed_ns;
    bool is_usable; /* this process may read and write it */
};

/* A device node, or what stands for one; false if it is not there, or a directory. */
bool ds_accel__machine_node(const struct ds_accel__machine *machine, const char *path,
                            struct ds_accel__machine_node *node);

#endif
