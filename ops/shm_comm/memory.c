/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * How much memory can be reserved before the kernel ends processes: what the system has available,
 * and what the memory cgroups of this process and their parents leave, in version 2 and 1. Pages
 * of files that a group has not used lately count as free, since the kernel reclaims them first.
 */
#include "common/machine.h"
#include "shm.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LIMIT ((uint64_t)0x7000000000000000) /* version 1 has a number near 2^63 */
#define PATH_BYTES 1024

/* The files of a version of cgroups. */
struct version {
    const char *type; /* in mountinfo */
    const char *limit;
    const char *used;
    const char *reclaimable; /* in memory.stat */
};

static const struct version versions[] = {
    {" - cgroup2 ", "memory.max", "memory.current", "inactive_file "},
    {" - cgroup ", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};
#define IS_2(version) ((version) == &versions[0])

/* Read the number behind a word at the beginning of a line. */
static bool read_entry(const char *path, const char *word, uint64_t *number_out)
{
    FILE *file = ops__machine_open(path);
    char line[256];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        char *number = line + strlen(word);
        char *end = line;

        if (strncmp(line, word, strlen(word)) != 0)
            continue;
        *number_out = strtoull(number, &end, 10);
        found = end != number; /* not "max" */
    }
    if (file)
        fclose(file);
    return found;
}

/* Return whether a list of words, separated by commas, has "memory". */
static bool has_memory(const char *list)
{
    static const char word[] = "memory";

    for (const char *at = list; (at = strstr(at, word)); at += sizeof(word) - 1)
        if ((at == list || at[-1] == ',') && strchr(", \n:", at[sizeof(word) - 1]))
            return true;
    return false;
}

/* Find the path of this process's group: of "0::/job" or "4:memory:/job". */
static bool find_path(const struct version *version, char *path, size_t size)
{
    FILE *file = ops__machine_open("/proc/self/cgroup");
    char line[PATH_BYTES];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group || group[1] != '/')
            continue;
        *group++ = '\0';
        if (IS_2(version) ? controllers[1] != '\0' : !has_memory(controllers + 1))
            continue;
        group[strcspn(group, "\n")] = '\0';
        found = snprintf(path, size, "%s", strcmp(group, "/") == 0 ? "" : group) < (int)size;
    }
    if (file)
        fclose(file);
    return found;
}

/* Find the mount point, of "34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". */
static bool find_mount(const struct version *version, char *mount, size_t size)
{
    FILE *file = ops__machine_open("/proc/self/mountinfo");
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;

    while (file && !found && getline(&line, &capacity, file) > 0) {
        char *type = strstr(line, version->type);
        const char *options = type ? strchr(type + strlen(version->type), ' ') : NULL;
        int begin = 0;
        int end = 0;

        if (!options || !(IS_2(version) || has_memory(options + 1)))
            continue;
        sscanf(line, "%*s %*s %*s %*s %n%*s%n", &begin, &end);
        found = end > begin && snprintf(mount, size, "%.*s", end - begin, line + begin) < (int)size;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* Lower the room to what a group leaves. */
static void compare(const struct version *version, const char *mount, const char *path,
                    struct ops__shm_room *room)
{
    char name[2 * PATH_BYTES + 64];
    uint64_t limit;
    uint64_t used;
    uint64_t reclaimable = 0;

    snprintf(name, sizeof(name), "%s%s/%s", mount, path, version->used);
    if (!read_entry(name, "", &used))
        return;
    snprintf(name, sizeof(name), "%s%s/memory.stat", mount, path);
    read_entry(name, version->reclaimable, &reclaimable);
    used -= reclaimable < used ? reclaimable : used;
    snprintf(name, sizeof(name), "%s%s/%s", mount, path, version->limit);
    if (!read_entry(name, "", &limit) || limit >= NO_LIMIT)
        return;
    limit = limit > used ? limit - used : 0;
    if (limit >= room->bytes)
        return;
    room->bytes = limit;
    snprintf(room->source, sizeof(room->source), "%.*s", (int)sizeof(room->source) - 1, name);
}

static void compare_groups(const struct version *version, struct ops__shm_room *room)
{
    char mount[PATH_BYTES];
    char path[PATH_BYTES];

    if (!find_path(version, path, sizeof(path)) || !find_mount(version, mount, sizeof(mount)))
        return;
    for (;;) {
        compare(version, mount, path, room);
        if (path[0] == '\0')
            return;
        assert(path[0] == '/');
        *strrchr(path, '/') = '\0';
    }
}

struct ops__shm_room ops__shm_room(void)
{
    static const char meminfo[] = "/proc/meminfo";
    struct ops__shm_room room = {.bytes = UINT64_MAX};
    uint64_t available;
    uint64_t swap;

    snprintf(room.source, sizeof(room.source), "%s", meminfo);
    if (read_entry(meminfo, "MemAvailable:", &available) && read_entry(meminfo, "SwapFree:", &swap))
        room.bytes = (available + swap) << 10;
    compare_groups(&versions[0], &room);
    compare_groups(&versions[1], &room);
    return room;
}
