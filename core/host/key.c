/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The key of a plugin's record: a hash of everything on which a verdict can depend. The base is
 * common to all plugins of a process: machine, boot, user and version, configuration, environment,
 * the dynamic linker's cache, and the process's groups. The other inputs are the plugin's: its path
 * and current file, its devices, and the variables that its configuration lists or that begin with
 * its name. When any of these changes, the key changes, so that the old record is not found and the
 * plugin is probed again.
 */
#include "host/key.h"
#include "base/text.h"
#include "config/env.h"
#include "machine/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* True for a variable on which the verdict of any backend can depend. */
static bool is_relevant_to_all(const char *entry, size_t length, bool has_options)
{
    return strncmp(entry, "LD_", 3) == 0 ||
           (has_options && strncmp(entry, "DS_ACCEL_", 9) == 0 &&
            !ds_accel__env_is_ours(entry, length)) ||
           memmem(entry, length, "VISIBLE", 7) != NULL ||
           (length == 10 && strncmp(entry, "LOCAL_SIZE", 10) == 0);
}

/*
 * Hash the variables for which is_relevant_to_all() is true. has_options: include the plugins'
 * options DS_ACCEL_<NAME>_<KEY>.
 */
static uint64_t hash_env_of_all(bool has_options)
{
    uint64_t sum = has_options;

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (is_relevant_to_all(*entry, strcspn(*entry, "="), has_options)) {
            sum += ds_accel__hash_text(*entry, 3); /* a sum, so independent of the order */
        }
    }
    return sum;
}

/*
 * Return the name in an element of a list in the configuration. The element is the name itself, or
 * an object with a member "name". NULL: there is no name.
 */
static const char *name_at(json_t *names, size_t i)
{
    json_t *item = json_array_get(names, i);

    return json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
}

static void mark_letters(json_t *names, bool *letters)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = name_at(names, i);

        if (name != NULL) {
            letters[(unsigned char)name[0]] = true;
        }
    }
}

static bool begins_with_one(const char *entry, json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = name_at(names, i);

        if (name != NULL && strncmp(entry, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Hash the variables that the backend reads or exports according to the configuration, and those
 * that begin with its name in upper case.
 */
static uint64_t hash_env_of_backend(const char *name, json_t *facts)
{
    json_t *visible = json_object_get(facts, "visible_devices_envs");
    json_t *exported = json_object_get(facts, "export_envs");
    json_t *rules = json_object_get(facts, "env");
    char prefix[DS_ACCEL__NAME_SIZE + 1];
    size_t length = strcspn(name, ".");
    bool letters[256] = {false}; /* first letters of the names, a quick filter */
    uint64_t sum = 0;

    for (size_t i = 0; i < length; i++) {
        prefix[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    }
    prefix[length] = '_';
    letters[(unsigned char)prefix[0]] = true;
    mark_letters(visible, letters);
    mark_letters(exported, letters);
    mark_letters(rules, letters);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (letters[(unsigned char)(*entry)[0]] &&
            (strncmp(*entry, prefix, length + 1) == 0 || begins_with_one(*entry, visible) ||
             begins_with_one(*entry, exported) || begins_with_one(*entry, rules))) {
            sum += ds_accel__hash_text(*entry, 5);
        }
    }
    return sum;
}

/*
 * Return a hash of the metadata that changes when a file is replaced or written; seed + 1 if there
 * is no such file.
 */
static uint64_t hash_identity(const char *path, uint64_t seed)
{
    struct stat info;
    uint64_t parts[7];

    if (stat(path, &info) != 0) {
        return seed + 1;
    }
    parts[0] = info.st_dev;
    parts[1] = info.st_ino;
    parts[2] = (uint64_t)info.st_size;
    parts[3] = (uint64_t)info.st_mtim.tv_sec;
    parts[4] = (uint64_t)info.st_mtim.tv_nsec;
    parts[5] = (uint64_t)info.st_ctim.tv_sec;
    parts[6] = (uint64_t)info.st_ctim.tv_nsec;
    return ds_accel__hash(parts, sizeof(parts), seed);
}

/* Hash the process's groups, which can grant access to device nodes. */
static int32_t hash_groups(uint64_t *hash)
{
    int limit = getgroups(0, NULL);
    gid_t gid = getegid();
    gid_t *groups = malloc(((size_t)(limit > 0 ? limit : 0) + 1) * sizeof(*groups));
    int count;

    if (groups == NULL) {
        return ds_accel__no_memory();
    }
    count = getgroups(limit, groups);
    *hash = ds_accel__hash(&gid, sizeof(gid), *hash);
    if (limit > 0 && count > 0) {
        *hash = ds_accel__hash(groups, (size_t)count * sizeof(*groups), *hash);
    }
    free(groups);
    return DS_ACCEL_OK;
}

/*
 * Add the contents of a small file to *hash and set *found_out to true; if the file cannot be read,
 * *found_out is unchanged.
 */
static int32_t hash_file(const char *path, uint64_t *hash, bool *found_out)
{
    char *text;
    int32_t status = ds_accel__machine_read(&ds_accel__machine_here, path, &text);

    if (status >= 0 && text != NULL) {
        *hash = ds_accel__hash_text(text, *hash);
        *found_out = true;
    }
    free(text);
    return status;
}

int32_t ds_accel__key_machine(uint64_t seed, uint64_t *machine_out, bool *is_known_out)
{
    bool ignored;
    int32_t status;

    *is_known_out = false;
    *machine_out = seed;
    status = hash_file("/proc/sys/kernel/random/boot_id", machine_out, is_known_out);
    return status < 0 ? status : hash_file("/etc/machine-id", machine_out, &ignored);
}

int32_t ds_accel__key_base(uint64_t machine, uint64_t configuration, bool has_options,
                           uint64_t *base_out)
{
    uint64_t base = ds_accel__hash(&configuration, sizeof(configuration), machine);
    int32_t status = hash_groups(&base);

    /*
     * These variables are hashed even if ds-accel's own variables are ignored, because the dynamic
     * linker and vendors' libraries read them.
     */
    base += hash_env_of_all(has_options);
    *base_out = hash_identity("/etc/ld.so.cache", base);
    return status;
}

struct ds_accel__key ds_accel__key_of(const struct ds_accel__key_subject *subject)
{
    const struct stat *file = subject->file;
    struct {
        uint64_t base, env, presence, device, inode, size, owner;
        struct timespec modified, changed;
    } parts = {
        .base = subject->base,
        .env = hash_env_of_backend(subject->name, subject->facts),
        .presence = subject->hardware,
        .device = file->st_dev,
        .inode = file->st_ino,
        .size = (uint64_t)file->st_size,
        .owner = (uint64_t)file->st_uid << 32 | file->st_mode,
        .modified = file->st_mtim,
        .changed = file->st_ctim,
    };
    uint64_t path = ds_accel__hash_text(subject->path, 7);

    assert(file->st_mode != 0); /* the file was checked */
    return (struct ds_accel__key){{ds_accel__hash(&parts, sizeof(parts), path),
                                   ds_accel__hash(&parts, sizeof(parts), ~path)}};
}
