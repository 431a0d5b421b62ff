/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated machine for ranks of shm_comm: a directory DS_ACCEL_ROOT with files of /proc and
 * /sys; and what its memory cgroups leave. */
#ifndef TESTS_OPS_SHM_COMM_MACHINE_H
#define TESTS_OPS_SHM_COMM_MACHINE_H

#include "ops/shm_comm_failures.h"

#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>

static char machine_root[64];

static void write_file(const char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void write_file(const char *text, const char *format, ...)
{
    char path[256];
    int end = snprintf(path, sizeof(path), "%s", machine_root);
    va_list arguments;
    FILE *file;

    va_start(arguments, format);
    vsnprintf(path + end, sizeof(path) - (size_t)end, format, arguments);
    va_end(arguments);
    for (char *slash = strchr(path + end + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "we");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s: %s", path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *facts, int type, struct FTW *walk)
{
    (void)facts;
    (void)type;
    (void)walk;
    return remove(path);
}

static void begin_machine(void)
{
    snprintf(machine_root, sizeof(machine_root), "/tmp/ds-accel-test-XXXXXX");
    CHECK(mkdtemp(machine_root), "mkdtemp: %s", strerror(errno));
    setenv("DS_ACCEL_ROOT", machine_root, 1);
}

static void end_machine(void)
{
    unsetenv("DS_ACCEL_ROOT");
    CHECK(nftw(machine_root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0, "nftw: %s",
          strerror(errno));
}

/* ---- limits of memory ------------------------------------------------------------------------ */

#define MOUNT_2 "30 22 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_1 \
    "29 22 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" \
    "31 22 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"

struct memory_file {
    const char *path;
    const char *text;
};

/* Files of a machine, and the one that leaves too little for 40 MiB; NULL: it has enough. */
struct memory_case {
    struct memory_file files[8]; /* up to an empty one */
    const char *limit;
};

static const struct memory_case memory_cases[] = {
    {{{"/proc/meminfo", "MemTotal: 900000 kB\nMemAvailable: 102400 kB\nSwapFree: 0 kB\n"}},
     "/proc/meminfo leaves 104857600"},
    {{{"/proc/meminfo", "MemTotal: 900000 kB\nMemAvailable: 102400 kB\nSwapFree: 102400 kB\n"}},
     NULL},
    /* version 2: a parent's limit, used by others; the group itself has none */
    {{{"/proc/self/cgroup", "0::/job/rank\n"},
      {"/proc/self/mountinfo", MOUNT_2},
      {"/sys/fs/cgroup/job/rank/memory.max", "max\n"},
      {"/sys/fs/cgroup/job/rank/memory.current", "1000\n"},
      {"/sys/fs/cgroup/job/memory.max", "314572800\n"},
      {"/sys/fs/cgroup/job/memory.current", "209715200\n"}},
     "/sys/fs/cgroup/job/memory.max leaves 104857600"},
    /* of which the kernel can reclaim 100 MiB */
    {{{"/proc/self/cgroup", "0::/job/rank\n"},
      {"/proc/self/mountinfo", MOUNT_2},
      {"/sys/fs/cgroup/job/memory.max", "314572800\n"},
      {"/sys/fs/cgroup/job/memory.current", "209715200\n"},
      {"/sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 104857600\n"}},
     NULL},
    /* a container, which sees its group at the mount */
    {{{"/proc/self/cgroup", "0::/not/seen/here\n"},
      {"/proc/self/mountinfo", MOUNT_2},
      {"/sys/fs/cgroup/memory.max", "104857601\n"},
      {"/sys/fs/cgroup/memory.current", "1\n"}},
     "/sys/fs/cgroup/memory.max leaves 104857600"},
    /* version 1, beside other controllers */
    {{{"/proc/self/cgroup", "5:cpu:/other\n4:hugetlb,memory:/job\n0::/\n"},
      {"/proc/self/mountinfo", MOUNT_1 MOUNT_2},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n"},
      {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "8192\n"},
      {"/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 9999\n"}},
     "/sys/fs/cgroup/memory/job/memory.limit_in_bytes leaves 104857600"},
    {{{"/proc/self/cgroup", "4:memory:/job\n"},
      {"/proc/self/mountinfo", MOUNT_1},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576000\n"},
      {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "8192\n"}},
     NULL},
};

static const struct memory_case *memory_case;

static void reserve_40_mib(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    void *pointer = NULL;
    int32_t status = shm->alloc(comm, (uint64_t)40 << 20, &pointer, &error);

    if (memory_case->limit)
        CHECK(status == DS_ACCEL_ERR_NO_MEMORY && strstr(error.message, memory_case->limit),
              "wanted \"%s\", got %d, \"%s\"", memory_case->limit, status, error.message);
    else
        CHECK(status == DS_ACCEL_OK, "\"%s\"", error.message);
    shm->destroy(comm);
}

static void check_memory_limits(void)
{
    for (size_t i = 0; i < sizeof(memory_cases) / sizeof(memory_cases[0]); i++) {
        memory_case = &memory_cases[i];
        begin_machine();
        for (const struct memory_file *file = memory_case->files; file->path; file++)
            write_file(file->text, "%s", file->path);
        run_ranks(2, reserve_40_mib);
        end_machine();
    }
}

#endif
