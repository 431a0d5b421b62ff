/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The keys of stored records: key.c. */
#ifndef DS_ACCEL_HOST_KEY_H
#define DS_ACCEL_HOST_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A key: copied, and compared word by word. All words zero: no key. */
struct ds_accel__key {
    uint64_t words[2];
};

/* The inputs of a plugin's key. The pointers are borrowed. */
struct ds_accel__key_subject {
    uint64_t base; /* from ds_accel__key_base() */
    const char *name;
    const char *path;
    const struct stat *file;
    uint64_t hardware; /* fingerprint of the plugin's devices */
    json_t *facts;     /* the configuration's facts of the backend; NULL: none */
};

/*
 * Add the boot and the identity of this machine to a hash. *is_known_out is false if the boot ID
 * cannot be read. ERR_NO_MEMORY.
 */
int32_t ds_accel__key_machine(uint64_t seed, uint64_t *machine_out, bool *is_known_out);
/*
 * Compute the base common to the keys of all plugins. machine is a hash that includes boot, user
 * and version; configuration is the identity of the configuration's files; has_options is true if
 * plugins' options DS_ACCEL_<NAME>_<KEY> are not ignored. ERR_NO_MEMORY.
 */
int32_t ds_accel__key_base(uint64_t machine, uint64_t configuration, bool has_options,
                           uint64_t *base_out);
struct ds_accel__key ds_accel__key_of(const struct ds_accel__key_subject *subject);

static inline bool ds_accel__key_is_none(struct ds_accel__key key)
{
    return (key.words[0] | key.words[1]) == 0;
}

static inline bool ds_accel__key_is_same(struct ds_accel__key one, struct ds_accel__key other)
{
    return one.words[0] == other.words[0] && one.words[1] == other.words[1];
}

#endif
