/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The hosts of a job and their slots: the hostfile (hostfile.c), the filters (filter.c). */
#ifndef DS_ACCEL_LAUNCH_HOSTS_H
#define DS_ACCEL_LAUNCH_HOSTS_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

/* Most hosts of a job, slots of a host, and ranks of a job. */
#define DS_ACCEL__HOST_LIMIT 1000000u
#define DS_ACCEL__SLOT_LIMIT 65536u
#define DS_ACCEL__RANK_LIMIT 1000000u

#define DS_ACCEL__NO_INDEX UINT32_MAX
#define DS_ACCEL__LAST_INDEX (UINT32_MAX - 1) /* also stands for every larger number */

/* A device of a host, for one rank. */
struct ds_accel__slot {
    uint32_t index;  /* device index; NO_INDEX: only the token is known */
    uint32_t device; /* position of the device among those of this machine; NO_INDEX: unknown */
    char *token;     /* UUID or PCI address, as it was given; NULL: the index was given */
};

struct ds_accel__job_host {
    char *name;
    struct ds_accel__slot *slots; /* [slot_count], sorted */
    uint32_t slot_count;
    uint32_t slot_capacity;
};

/* {0} is an empty list. Release it with ds_accel__hosts_clear(). */
struct ds_accel__hosts {
    struct ds_accel__job_host *items;
    size_t count;
    size_t capacity;
};

/* Add a host with the slots 0 to slot_count - 1; name is copied. ERR_NO_MEMORY. */
int32_t ds_accel__hosts_add(struct ds_accel__hosts *hosts, const char *name, size_t name_length,
                            uint32_t slot_count);
void ds_accel__hosts_clear(struct ds_accel__hosts *hosts);
/* Remove the hosts without slots. */
void ds_accel__hosts_compact(struct ds_accel__hosts *hosts);
/* Replace a host's slots by 0 to slot_count - 1. ERR_NO_MEMORY. */
int32_t ds_accel__host_set_slots(struct ds_accel__job_host *host, uint32_t slot_count);
/* slot.c: read a slot from an index, a UUID or a PCI address. False: the text is none of them. The
 * token points into the text. */
bool ds_accel__slot_parse(const char *text, size_t length, struct ds_accel__slot *slot);
/* True if both are the same device. */
bool ds_accel__slot_is_same(const struct ds_accel__slot *left, const struct ds_accel__slot *right);
/* Find a slot of the host, whose slots are sorted; NULL: there is none. */
const struct ds_accel__slot *ds_accel__host_find(const struct ds_accel__job_host *host,
                                                 const struct ds_accel__slot *slot);
/*
 * Sort the slots by index, and remove each slot that the host has already; slots without an index
 * keep their order behind the others. ERR_NO_MEMORY.
 */
int32_t ds_accel__host_sort_slots(struct ds_accel__job_host *host);
/* Add a slot behind the others, which ds_accel__host_sort_slots() must sort then; the token is
 * copied. ERR_NO_MEMORY. */
int32_t ds_accel__host_add_slot(struct ds_accel__job_host *host, const struct ds_accel__slot *slot,
                                size_t token_length);
/* Remove all slots, and free them. */
void ds_accel__host_clear_slots(struct ds_accel__job_host *host);

/* Finds hosts by name in constant time. {0} has no hosts. */
struct ds_accel__host_index {
    const struct ds_accel__hosts *hosts; /* borrowed */
    uint32_t *buckets;                   /* positions + 1; 0: free */
    size_t bucket_count;                 /* a power of two */
};
/* Index the hosts; capacity is the number of hosts that the list will have. ERR_NO_MEMORY. */
int32_t ds_accel__host_index_create(struct ds_accel__host_index *index,
                                    const struct ds_accel__hosts *hosts, size_t capacity);
void ds_accel__host_index_clear(struct ds_accel__host_index *index);
/* The position of a host; SIZE_MAX: there is none. */
size_t ds_accel__host_index_find(const struct ds_accel__host_index *index, const char *name,
                                 size_t name_length);
/* Add the host at a position, which is not in the index yet. */
void ds_accel__host_index_add(struct ds_accel__host_index *index, size_t position);

/*
 * Read a hostfile's text: lines "HOST slots=N"; text after the number, empty lines and lines that
 * begin with # are ignored. ERR_CONFIG names the path and each wrong line, at most eight.
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__hostfile_parse(const char *path, const char *text, size_t size_bytes,
                                 struct ds_accel__hosts *hosts);
/* Read a hostfile. ERR_NOT_FOUND: there is no such file; ERR_IO; otherwise as above. */
int32_t ds_accel__hostfile_read(const char *path, struct ds_accel__hosts *hosts);

/*
 * Keep the hosts and slots that the option --include names, or remove those that --exclude names:
 * HOST[:SLOT,...], separated by @. One of the texts is NULL or empty. A slot is an index, or the
 * UUID or PCI address of a device. The hosts keep their order; the slots of a host are sorted by
 * index, and slots whose index is not known keep their order and follow the others. ERR_INVALID
 * names the option and the wrong part. ERR_NO_MEMORY.
 */
int32_t
ds_accel__hosts_filter(struct ds_accel__hosts *hosts, const char *include, const char *exclude,
                       int32_t (*find_slot)(void *user_data, const struct ds_accel__job_host *host,
                                            const char *token, uint32_t *index_out),
                       void *user_data);

#endif
