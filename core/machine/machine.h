/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Access to the files of the machine or of a recording: machine.c. */
#ifndef DS_ACCEL_MACHINE_MACHINE_H
#define DS_ACCEL_MACHINE_MACHINE_H

#include "ds_accel.h"

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Collects everything that is read from a machine. */
struct ds_accel__recorder {
    pthread_mutex_t lock;
    json_t *
        files; /* files in /sys, /proc, /dev, by path: objects of "text", "names", "link", "node" */
    bool failed; /* memory was exhausted */
};

struct ds_accel__machine {
    const char *root; /* borrowed; "" is the machine itself */
    /* the files of a recording, in the format of ds_accel__recorder.files; borrowed; NULL: this is
     * not a recorded machine. If it is not NULL, root is "". */
    json_t *files;
    struct ds_accel__recorder *recorder; /* borrowed; NULL: nothing is recorded */
};

extern const struct ds_accel__machine ds_accel__machine_here;

/*
 * Read a file such as /proc/meminfo. *text_out is NULL if the file cannot be read. ERR_NO_MEMORY.
 */
int32_t ds_accel__machine_read(const struct ds_accel__machine *machine, const char *path,
                               char **text_out);
/* Read a file's first line, truncated to fit; "" if the file cannot be read. */
int32_t ds_accel__machine_line(const struct ds_accel__machine *machine, const char *path,
                               char *line, size_t line_size);
/* List the names in a directory, sorted; no names if there is no such directory. */
int32_t ds_accel__machine_list(const struct ds_accel__machine *machine, const char *path,
                               char ***names_out, size_t *count_out);
/* Read the target of a symbolic link; false if there is no such link or the target does not fit. */
bool ds_accel__machine_link(const struct ds_accel__machine *machine, const char *path, char *target,
                            size_t target_size);
/*
 * True if this process is denied access (mode as for access()) to the file or to a directory on its
 * path. False if the file is absent, and always false for a recording.
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

/*
 * Read the metadata of a device node, or of a file in its place; false if it is absent or a
 * directory.
 */
bool ds_accel__machine_node(const struct ds_accel__machine *machine, const char *path,
                            struct ds_accel__machine_node *node);

#endif
