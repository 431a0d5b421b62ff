/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The memory limit and CPU set of this process's control group, v1 and v2. The group's path in
 * /proc/self/cgroup is relative to a mount listed in /proc/self/mountinfo; in a container that path
 * may not exist below the mount, and then the mount's own root is the group. Limits of parent
 * groups apply, too, so every level up to the mount is read and the smallest limit is used.
 */
#include "base/file.h"
#include "base/text.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct group {
    char mount[256]; /* mount point, such as "/sys/fs/cgroup/memory" */
    char path[512];  /* such as "/system.slice/job"; "" at the root */
    bool is_v2;
};

/* True if a comma-separated list contains the word. */
static bool has_word(const char *list, size_t length, const char *word)
{
    size_t word_length = strlen(word);

    for (size_t i = 0; i + word_length <= length; i++) {
        bool starts = i == 0 || list[i - 1] == ',';
        bool ends = i + word_length == length || list[i + word_length] == ',';

        if (starts && ends && strncmp(list + i, word, word_length) == 0) {
            return true;
        }
    }
    return false;
}

/* Find the group's path in a line such as "4:memory:/job" (v1) or "0::/job" (v2). */
static bool find_path(const char *cgroup, bool is_v2, const char *controller, char *path,
                      size_t path_size)
{
    for (const char *line = cgroup; *line != '\0'; line += strcspn(line, "\n")) {
        const char *controllers;
        const char *group;

        line += *line == '\n';
        controllers = strchr(line, ':');
        group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL || group > line + strcspn(line, "\n")) {
            continue;
        }
        controllers++;
        if (is_v2 ? group == controllers
                  : has_word(controllers, (size_t)(group - controllers), controller)) {
            int length = (int)strcspn(group + 1, "\n");

            snprintf(path, path_size, "%.*s", length, group + 1);
            if (strcmp(path, "/") == 0) {
                path[0] = '\0';
            }
            return true;
        }
    }
    return false;
}

/* Skip fields of a line, each of which is followed by a blank. */
static const char *skip_fields(const char *at, unsigned count)
{
    for (; count > 0; count--) {
        at += strcspn(at, " \n");
        at += *at == ' ';
    }
    return at;
}

/*
 * Find the mount point in a line of mountinfo such as "36 25 0:31 / /sys/fs/cgroup/memory rw -
 * cgroup cgroup rw,memory".
 */
static bool find_mount(const char *mountinfo, bool is_v2, const char *controller, char *mount,
                       size_t mount_size)
{
    const char *type = is_v2 ? " - cgroup2 " : " - cgroup ";

    for (const char *line = mountinfo; *line != '\0'; line += strcspn(line, "\n")) {
        const char *dash;
        const char *options;
        const char *point;
        size_t length;

        line += *line == '\n';
        length = strcspn(line, "\n");
        dash = memmem(line, length, type, strlen(type));
        if (dash == NULL) {
            continue;
        }
        options = skip_fields(dash + strlen(type), 1);
        if (is_v2 || has_word(options, strcspn(options, " \n"), controller)) {
            point = skip_fields(line, 4);
            snprintf(mount, mount_size, "%.*s", (int)strcspn(point, " \n"), point);
            return true;
        }
    }
    return false;
}

/* Find the group of this process for a controller of cgroup v1 or v2. */
static bool find_group(const struct ds_accel__cgroups *cgroups, bool is_v2, const char *controller,
                       struct group *group)
{
    *group = (struct group){.is_v2 = is_v2};
    return cgroups->paths != NULL && cgroups->mounts != NULL &&
           find_path(cgroups->paths, is_v2, controller, group->path, sizeof(group->path)) &&
           (group->path[0] == '/' || group->path[0] == '\0') &&
           find_mount(cgroups->mounts, is_v2, controller, group->mount, sizeof(group->mount));
}

/*
 * Read a number from a group's file. *found_out is false if the file is absent or contains no
 * limit, which is "max" in cgroup v2 and a number near 2^63 in cgroup v1.
 */
static int32_t read_number(const struct ds_accel__machine *machine, const struct group *group,
                           const char *path, const char *file, uint64_t *value_out, bool *found_out)
{
    char *text;
    char name[1024];
    int32_t status;

    *found_out = false;
    snprintf(name, sizeof(name), "%s%s/%s", group->mount, path, file);
    status = ds_accel__machine_read(machine, name, &text);
    if (status < 0 || text == NULL) {
        return status;
    }
    if (text[0] >= '0' && text[0] <= '9') {
        *value_out = strtoull(text, NULL, 10);
        *found_out = *value_out < UINT64_C(0x7000000000000000);
    }
    free(text);
    return DS_ACCEL_OK;
}

/*
 * Read the part of a group's usage that the kernel can reclaim: file pages not used recently. After
 * a container has read its data set, these pages are most of its usage.
 */
static int32_t read_reclaimable(const struct ds_accel__machine *machine, const struct group *group,
                                const char *path, uint64_t *bytes_out)
{
    const char *key = group->is_v2 ? "inactive_file " : "total_inactive_file ";
    char name[1024];
    char *text;
    const char *line;
    int32_t status;

    *bytes_out = 0;
    snprintf(name, sizeof(name), "%s%s/memory.stat", group->mount, path);
    status = ds_accel__machine_read(machine, name, &text);
    if (status < 0 || text == NULL) {
        return status;
    }
    for (line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0) {
            *bytes_out = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    free(text);
    return DS_ACCEL_OK;
}

/*
 * Write the path of a group's file, such as "/sys/fs/cgroup/a/b/memory.max". If the path does not
 * fit, its beginning is replaced by "...".
 */
static void name_source(char *source, size_t source_size, const struct group *group,
                        const char *path, const char *file)
{
    char full[1024];
    int length = snprintf(full, sizeof(full), "%s%s/%s", group->mount, path, file);

    if (length >= 0 && (size_t)length < source_size) {
        memcpy(source, full, (size_t)length + 1);
    } else {
        assert(source_size > 4 && strlen(full) >= source_size - 4);
        snprintf(source, source_size, "...%s", full + strlen(full) - (source_size - 4));
    }
}

static int32_t take_smallest(const struct ds_accel__machine *machine, struct group *group,
                             uint64_t machine_bytes, struct ds_accel__cgroup_limit *limit)
{
    const char *limit_file = group->is_v2 ? "memory.max" : "memory.limit_in_bytes";
    const char *used_file = group->is_v2 ? "memory.current" : "memory.usage_in_bytes";
    char path[512];

    memcpy(path, group->path, sizeof(path));
    for (;;) {
        uint64_t value = 0;
        uint64_t used = 0;
        uint64_t left;
        uint64_t reclaimable = 0;
        bool found;
        bool has_used = false;
        int32_t status = read_number(machine, group, path, limit_file, &value, &found);

        found = found && value < machine_bytes;
        if (status >= 0 && found) {
            status = read_number(machine, group, path, used_file, &used, &has_used);
        }
        if (status >= 0 && found) {
            status = read_reclaimable(machine, group, path, &reclaimable);
        }
        if (status < 0) {
            return status;
        }
        used -= reclaimable < used ? reclaimable : used;
        left = value > used ? value - used : 0;
        if (found && left < limit->left_bytes) {
            limit->left_bytes = left;
        }
        if (found && (limit->limit_bytes == 0 || value < limit->limit_bytes)) {
            limit->limit_bytes = value;
            name_source(limit->source, sizeof(limit->source), group, path, limit_file);
        }
        if (path[0] == '\0') {
            return DS_ACCEL_OK;
        }
        assert(path[0] == '/'); /* find_group() accepts no other path */
        *strrchr(path, '/') = '\0';
    }
}

int32_t ds_accel__cgroups_read(const struct ds_accel__machine *machine,
                               struct ds_accel__cgroups *cgroups_out)
{
    struct ds_accel__cgroups cgroups = {0};
    int32_t status = ds_accel__machine_read(machine, "/proc/self/cgroup", &cgroups.paths);

    if (status >= 0) {
        status = ds_accel__machine_read(machine, "/proc/self/mountinfo", &cgroups.mounts);
    }
    if (status < 0) {
        ds_accel__cgroups_clear(&cgroups);
    }
    *cgroups_out = cgroups;
    return status;
}

void ds_accel__cgroups_clear(struct ds_accel__cgroups *cgroups)
{
    free(cgroups->paths);
    free(cgroups->mounts);
    *cgroups = (struct ds_accel__cgroups){0};
}

/*
 * Find the group that restricts this process to count CPUs or NUMA nodes: the uppermost group whose
 * list in file has exactly count numbers.
 */
static int32_t find_list(const struct ds_accel__machine *machine, struct group *group,
                         const char *file, uint32_t count, char *source, size_t source_size)
{
    char path[512];

    memcpy(path, group->path, sizeof(path));
    for (;;) {
        char name[1024];
        char *list;
        int32_t status;

        snprintf(name, sizeof(name), "%s%s/%s", group->mount, path, file);
        status = ds_accel__machine_read(machine, name, &list);
        if (status < 0) {
            return status;
        }
        if (list != NULL && ds_accel__list_count(list) == count) {
            name_source(source, source_size, group, path, file);
        }
        free(list);
        if (path[0] == '\0') {
            return DS_ACCEL_OK;
        }
        assert(path[0] == '/'); /* find_group() accepts no other path */
        *strrchr(path, '/') = '\0';
    }
}

int32_t ds_accel__cgroup_cpuset(const struct ds_accel__machine *machine, const char *file,
                                uint32_t count, char *source, size_t source_size)
{
    struct ds_accel__cgroups cgroups;
    int32_t status = ds_accel__cgroups_read(machine, &cgroups);

    source[0] = '\0';
    for (int version = 1; version <= 2 && status >= 0; version++) {
        struct group group;

        if (find_group(&cgroups, version == 2, "cpuset", &group)) {
            status = find_list(machine, &group, file, count, source, source_size);
        }
    }
    ds_accel__cgroups_clear(&cgroups);
    return status;
}

/*
 * Find the group's directory. In a container the mount may begin at a parent of the group, so that
 * only the last parts of the path exist below the mount.
 */
static int32_t find_directory(const struct ds_accel__machine *machine, const struct group *group,
                              char *path, size_t path_size)
{
    const char *part = group->path;

    for (;;) {
        char **names;
        size_t count;
        int length = snprintf(path, path_size, "%s%s", group->mount, part);
        int32_t status;

        if (length < 0 || (size_t)length >= path_size) {
            path[0] = '\0';
            return DS_ACCEL_OK;
        }
        status = ds_accel__machine_list(machine, path, &names, &count);
        if (status < 0) {
            return status;
        }
        ds_accel__names_free(names, count);
        if (count > 0 || part[0] == '\0') {
            return DS_ACCEL_OK;
        }
        part++;
        part += strcspn(part, "/");
    }
}

int32_t ds_accel__cgroups_directory(const struct ds_accel__machine *machine,
                                    const struct ds_accel__cgroups *cgroups, const char *controller,
                                    char *path, size_t path_size)
{
    struct group group;

    path[0] = '\0';
    return find_group(cgroups, controller == NULL, controller, &group)
               ? find_directory(machine, &group, path, path_size)
               : DS_ACCEL_OK;
}

int32_t ds_accel__cgroups_limit(const struct ds_accel__machine *machine,
                                const struct ds_accel__cgroups *cgroups, uint64_t machine_bytes,
                                struct ds_accel__cgroup_limit *limit_out)
{
    struct ds_accel__cgroup_limit limit = {.left_bytes = UINT64_MAX};
    int32_t status = DS_ACCEL_OK;

    for (int version = 1; version <= 2 && status >= 0; version++) {
        struct group group;

        if (find_group(cgroups, version == 2, "memory", &group)) {
            status = take_smallest(machine, &group, machine_bytes, &limit);
        }
    }
    if (status >= 0) {
        *limit_out = limit;
    }
    return status;
}

int32_t ds_accel__cgroup_limit(const struct ds_accel__machine *machine, uint64_t machine_bytes,
                               struct ds_accel__cgroup_limit *limit_out)
{
    struct ds_accel__cgroups cgroups;
    int32_t status = ds_accel__cgroups_read(machine, &cgroups);

    if (status >= 0) {
        status = ds_accel__cgroups_limit(machine, &cgroups, machine_bytes, limit_out);
    }
    ds_accel__cgroups_clear(&cgroups);
    return status;
}
