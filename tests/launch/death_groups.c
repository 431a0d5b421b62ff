/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Control groups: trees of files for each hierarchy, and the real groups of this machine. */
#include "death.h"

#include "base/clock.h"
#include "base/text.h"
#include "launch/death.h"
#include "launch/groups.h"
#include "launch/spawn.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define V2 "sys/fs/cgroup/job"
#define V2_MOUNT "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define V1_MOUNTS \
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" \
    "36 31 0:33 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
#define EAT_BYTES (256u << 20)
#define LIMIT_BYTES "67108864"

static char root[280];
static struct ds_accel__machine machine = {.root = root};
static struct ds_accel__groups *groups;

/* ---- trees of files ------------------------------------------------------------------------- */

static void begin(const char *cgroup, const char *mounts)
{
    remove_all(root);
    put(root, "proc/self/cgroup", cgroup);
    put(root, "proc/self/mountinfo", mounts);
    put(root, "proc/meminfo", "MemTotal:       16777216 kB\n");
    put(root, "proc/vmstat", "nr_free 1\noom_kill 5\n");
    kernel_refuses = 0;
    kernel_made = 0;
    kernel_has_kill = true;
    kernel_passes_memory = true;
}

static void begin_v2(void)
{
    begin("0::/job\n", V2_MOUNT);
    put(root, V2 "/cgroup.procs", "");
    put(root, V2 "/cgroup.subtree_control", "cpu memory pids\n");
    put(root, V2 "/memory.events", "low 0\nmax 3\noom 1\noom_kill 1\n");
    put(root, V2 "/memory.max", "1073741824\n");
    put(root, V2 "/memory.current", "4096\n");
}

static void begin_v1(void)
{
    begin("4:memory:/job\n6:freezer:/\n", V1_MOUNTS);
    put(root, "sys/fs/cgroup/memory/job/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put(root, "sys/fs/cgroup/memory/job/memory.use_hierarchy", "1\n");
    put(root, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
    put(root, "sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4096\n");
    put(root, "sys/fs/cgroup/memory/job/memory.failcnt", "9\n");
    put(root, "sys/fs/cgroup/freezer/cgroup.procs", "");
}

/* Read the counters, and make groups if requested. On failure nothing is left open. */
static int32_t groups_open(const struct ds_accel__machine *on, bool makes_groups,
                           uint32_t rank_count, struct ds_accel__groups **opened)
{
    int32_t status = ds_accel__groups_open(on, rank_count, opened);

    if (status >= 0 && makes_groups) {
        status = ds_accel__groups_make(*opened);
        if (status < 0) {
            ds_accel__groups_close(*opened);
            *opened = NULL;
        }
    }
    return status;
}

static void open_groups(bool makes_groups, uint32_t rank_count)
{
    int32_t status = groups_open(&machine, makes_groups, rank_count, &groups);

    check(status == DS_ACCEL_OK, "open: %d: %s", (int)status, ds_accel_last_error());
    if (status < 0) {
        exit(1);
    }
}

static void check_oom(const char *name, uint32_t rank, enum ds_accel__oom_verdict verdict,
                      uint64_t kills, const char *counter)
{
    struct ds_accel__oom oom;

    ds_accel__groups_oom(groups, rank, &oom);
    check(oom.verdict == verdict && oom.kills == kills && strcmp(oom.counter_file, counter) == 0,
          "%s: verdict %d, %llu kills, counter \"%s\"", name, oom.verdict,
          (unsigned long long)oom.kills, oom.counter_file);
}

static void close_groups(void)
{
    ds_accel__groups_close(groups);
    groups = NULL;
}

/* The path of the group that was made in a directory; "" if there is none. */
static const char *made_group(const char *parent)
{
    static char path[1024];
    char full[1024];
    struct dirent *entry;
    DIR *directory;

    fill(full, sizeof(full), "%s/%s", root, parent);
    directory = opendir(full);
    path[0] = '\0';
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, "ds-accel.", 9) == 0) {
            fill(path, sizeof(path), "%s/%s", parent, entry->d_name);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return path;
}

static void check_limit(const char *name, bool was_reached, uint64_t bytes, const char *file)
{
    struct ds_accel__oom oom;

    ds_accel__groups_oom(groups, 0, &oom);
    check(oom.limit_was_reached == was_reached && oom.limit_bytes == bytes &&
              strcmp(oom.limit_file, file) == 0,
          "%s: reached %d, %llu bytes, \"%s\"", name, oom.limit_was_reached,
          (unsigned long long)oom.limit_bytes, oom.limit_file);
}

/* ---- counters ------------------------------------------------------------------------------- */

static void test_v2_counters(void)
{
    begin_v2();
    open_groups(false, 2);
    check_oom("v2", 0, DS_ACCEL__OOM_NONE, 0, "");
    put(root, "proc/vmstat", "oom_kill 9\n");
    check_oom("killed elsewhere", 0, DS_ACCEL__OOM_NONE, 0, "");
    check_limit("limit", false, 1073741824, "/" V2 "/memory.max");
    put(root, V2 "/memory.events", "low 0\nmax 4\noom 2\noom_kill 3\noom_group_kill 7\n");
    check_oom("v2 rose", 1, DS_ACCEL__OOM_LIKELY, 2, "/" V2 "/memory.events");
    check_limit("limit reached", true, 1073741824, "/" V2 "/memory.max");
    put(root, V2 "/memory.events", "max 3\noom_kill 0\n");
    check_oom("v2 fell", 0, DS_ACCEL__OOM_NONE, 0, "");
    put(root, V2 "/memory.events", "max 3\noom_kill\n");
    check_oom("v2 half written", 0, DS_ACCEL__OOM_NONE, 0, "");
    close_groups();
    put(root, V2 "/memory.events", "max 3\noom_kill 1\n");
    put(root, V2 "/memory.events.local", "max 0\noom_kill 0\n");
    open_groups(false, 2);
    put(root, V2 "/memory.events", "max 9\noom_kill 9\n");
    check_oom("killed in a group below", 0, DS_ACCEL__OOM_NONE, 0, "");
    check_limit("limit of a group below", false, 1073741824, "/" V2 "/memory.max");
    put(root, V2 "/memory.events.local", "max 1\noom_kill 1\n");
    check_oom("v2 local", 0, DS_ACCEL__OOM_LIKELY, 1, "/" V2 "/memory.events.local");
    check_limit("own limit", true, 1073741824, "/" V2 "/memory.max");
    close_groups();
}

/* A limit that the machine's memory, 16 GiB, reaches first is none: no group is made for it. */
static void test_limit_of_the_machine(void)
{
    begin_v2();
    put(root, V2 "/memory.max", "17179869184\n");
    open_groups(false, 1);
    check_limit("limit of all memory", false, 0, "");
    check(ds_accel__groups_limit_bytes(groups) == 0, "a limit of all memory");
    close_groups();
    put(root, V2 "/memory.max", "17179869183\n");
    open_groups(false, 1);
    check_limit("limit of less", false, 17179869183, "/" V2 "/memory.max");
    check(ds_accel__groups_limit_bytes(groups) == 17179869183, "a limit below all memory");
    close_groups();
    begin_v1();
    put(root, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "34359738368\n");
    open_groups(false, 1);
    check_limit("v1 limit above all memory", false, 0, "");
    close_groups();
    begin_v2();
    put(root, "proc/meminfo", "");
    put(root, V2 "/memory.max", "17179869184\n");
    open_groups(false, 1);
    check_limit("memory unknown", false, 17179869184, "/" V2 "/memory.max");
    close_groups();
}

static void test_v1_counters(void)
{
    begin_v1();
    open_groups(false, 2);
    check_oom("v1", 0, DS_ACCEL__OOM_NONE, 0, "");
    put(root, "sys/fs/cgroup/memory/job/memory.oom_control",
        "oom_kill_disable 7\nunder_oom 1\noom_kill 3\n");
    check_oom("v1 rose", 0, DS_ACCEL__OOM_LIKELY, 1,
              "/sys/fs/cgroup/memory/job/memory.oom_control");
    check_limit("v1 limit", false, 1073741824, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
    put(root, "sys/fs/cgroup/memory/job/memory.failcnt", "10\n");
    check_limit("v1 reached", true, 1073741824, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
    close_groups();
}

static void test_last_resorts(void)
{
    struct ds_accel__oom oom;

    begin("0::/job/leaf\n", V2_MOUNT);
    put(root, V2 "/leaf/cgroup.procs", "");
    put(root, V2 "/memory.events", "oom_kill 1\n");
    open_groups(false, 1);
    put(root, V2 "/memory.events", "oom_kill 2\n");
    check_oom("nearest parent", 0, DS_ACCEL__OOM_LIKELY, 1, "/" V2 "/memory.events");
    close_groups();
    begin("0::/host/path/job\n", V2_MOUNT);
    put(root, V2 "/memory.events", "oom_kill 1\n");
    open_groups(false, 1);
    put(root, V2 "/memory.events", "oom_kill 2\n");
    check_oom("mount inside the path", 0, DS_ACCEL__OOM_LIKELY, 1, "/" V2 "/memory.events");
    close_groups();
    begin("0::/\n", V2_MOUNT);
    open_groups(false, 1);
    put(root, "proc/vmstat", "oom_kill 6\n");
    check_oom("the machine", 0, DS_ACCEL__OOM_LIKELY, 1, "/proc/vmstat");
    ds_accel__groups_oom(groups, 0, &oom);
    check(oom.is_machine_wide && oom.limit_bytes == 0, "the machine's counter, no limit");
    close_groups();
    remove_all(root);
    open_groups(true, 2);
    check_oom("no files", 0, DS_ACCEL__OOM_NONE, 0, "");
    check(ds_accel__groups_descriptor(groups, 0) == -1 &&
              ds_accel__groups_job_descriptor(groups) == -1 && !ds_accel__groups_kill(groups),
          "no groups without a hierarchy");
    close_groups();
    ds_accel__groups_close(NULL);
}

/* ---- groups in trees ------------------------------------------------------------------------ */

static void join(int descriptor, const char *expected)
{
    check(descriptor >= 0 && write(descriptor, "0", 1) == 1, "%s: descriptor %d", expected,
          descriptor);
    check(strcmp(get(root, expected), "0") == 0, "%s: the process did not join", expected);
}

static void test_v2_groups(void)
{
    char job[1024];
    char path[1024];

    begin_v2();
    open_groups(true, 3);
    fill(job, sizeof(job), "%s", made_group(V2));
    fill(path, sizeof(path), "%s/2/cgroup.procs", job);
    join(ds_accel__groups_descriptor(groups, 2), path);
    fill(path, sizeof(path), "%s/0/cgroup.procs", job);
    join(ds_accel__groups_descriptor(groups, 0), path);
    check(ds_accel__groups_job_descriptor(groups) == -1, "one hierarchy needs one descriptor");
    check(ds_accel__groups_descriptor(groups, 3) == -1, "there are three ranks");
    check(strcmp(get(root, job), "") == 0 && exists(root, job), "%s", job);
    fill(path, sizeof(path), "%s/cgroup.subtree_control", job);
    check(strcmp(get(root, path), "+memory") == 0, "controllers: %s", get(root, path));
    fill(path, sizeof(path), "%s/1/memory.events", job);
    put(root, path, "low 0\noom_kill 1\n");
    check_oom("another rank", 0, DS_ACCEL__OOM_NONE, 0, "");
    memmove(path + 1, path, strlen(path) + 1);
    path[0] = '/';
    check_oom("own group", 1, DS_ACCEL__OOM_PROVED, 1, path);
    put(root, V2 "/memory.events", "oom_kill 5\n");
    check_oom("only the shared counter rose", 0, DS_ACCEL__OOM_NONE, 0, "");
    ds_accel__groups_forget(groups, 0);
    check_oom("could not join", 0, DS_ACCEL__OOM_LIKELY, 4, "/" V2 "/memory.events");
    fill(path, sizeof(path), "%s/%s/2/cgroup.procs", root, job);
    check(unlink(path) == 0, "%s: %s", path, strerror(errno));
    check(ds_accel__groups_descriptor(groups, 2) == -1, "a group without processes");
    check_oom("its group cannot be opened", 2, DS_ACCEL__OOM_LIKELY, 4, "/" V2 "/memory.events");
    check(ds_accel__groups_kill(groups), "cgroup.kill");
    fill(path, sizeof(path), "%s/cgroup.kill", job);
    check(strcmp(get(root, path), "1") == 0, "cgroup.kill: %s", get(root, path));
    close_groups();
    check(!exists(root, job), "%s was not removed", job);
}

/* This process is alone in its group, or it is not, or the group has no memory controller. */
static void check_aside(const char *processes, const char *controllers, bool moves)
{
    char text[64];
    char path[1024];
    int descriptor;

    begin_v2();
    snprintf(text, sizeof(text), processes, (int)getpid());
    put(root, V2 "/cgroup.procs", text);
    put(root, V2 "/cgroup.controllers", controllers);
    put(root, V2 "/cgroup.subtree_control", "");
    open_groups(true, 2);
    fill(path, sizeof(path), V2 "/ds-accel.%d.1/cgroup.procs", (int)getpid());
    check(exists(root, path) == moves && strcmp(get(root, path), moves ? "0" : "") == 0,
          "%s: this process moved: %s", text, get(root, path));
    check(strcmp(get(root, V2 "/cgroup.subtree_control"), moves ? "+memory" : "") == 0,
          "%s: controllers: %s", text, get(root, V2 "/cgroup.subtree_control"));
    descriptor = ds_accel__groups_descriptor(groups, 1);
    fill(path, sizeof(path), V2 "/ds-accel.%d.0%s/cgroup.procs", (int)getpid(), moves ? "/1" : "");
    join(descriptor, path);
    put(root, V2 "/cgroup.procs", "");
    close_groups();
    check(made_group(V2)[0] == '\0', "%s: a group was not removed", text);
    check(strcmp(get(root, V2 "/cgroup.procs"), moves ? "0" : "") == 0 &&
              strcmp(get(root, V2 "/cgroup.subtree_control"), moves ? "-memory" : "") == 0,
          "%s: this process did not move back", text);
}

static void test_aside(void)
{
    check_aside("%d\n", "cpu memory\n", true);
    check_aside("%d\n1\n", "cpu memory\n", false);
    check_aside("1%d\n", "cpu memory\n", false);
    check_aside("%d\n", "cpu\n", false);
}

static void begin_v2_alone(void)
{
    char text[64];

    begin_v2();
    snprintf(text, sizeof(text), "%d\n", (int)getpid());
    put(root, V2 "/cgroup.procs", text);
    put(root, V2 "/cgroup.controllers", "memory\n");
    put(root, V2 "/cgroup.subtree_control", "");
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        alarm(60); /* if the test fails */
        for (;;) {
            pause();
        }
    }
    return pid;
}

/* Groups without cgroup.kill: the processes of the file are killed while the group is frozen. */
static void check_freezing(const char *name, const char *job, const char *file, const char *thawed)
{
    pid_t pid = start_sleeper();
    char path[1024];
    char text[64];
    siginfo_t info = {0};

    fill(path, sizeof(path), "%s/cgroup.procs", job);
    snprintf(text, sizeof(text), "0\n1\n%d\n%d\n", (int)getpid(), (int)pid);
    put(root, path, text);
    check(ds_accel__groups_kill(groups), "%s: kill", name);
    check(waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 && info.si_status == SIGKILL,
          "%s: the process ended with %d", name, info.si_status);
    fill(path, sizeof(path), "%s/%s", job, file);
    check(strncmp(get(root, path), thawed, strlen(thawed)) == 0, "%s: %s: %s", name, file,
          get(root, path));
}

static void test_less(void)
{
    char job[1024];
    char path[1024];

    begin_v2();
    put(root, V2 "/cgroup.subtree_control", "cpu\n");
    kernel_has_kill = false;
    open_groups(true, 2);
    fill(job, sizeof(job), "%s", made_group(V2));
    fill(path, sizeof(path), "%s/cgroup.procs", job);
    join(ds_accel__groups_descriptor(groups, 1), path);
    check(ds_accel__groups_job_descriptor(groups) == -1, "the job's group, once");
    fill(path, sizeof(path), "%s/0", job);
    check(!exists(root, path), "groups of ranks that count nothing");
    put(root, V2 "/memory.events", "oom_kill 2\n");
    check_oom("no own group", 0, DS_ACCEL__OOM_LIKELY, 1, "/" V2 "/memory.events");
    check_freezing("v2", job, "cgroup.freeze", "0");
    close_groups();
    check(!exists(root, job), "%s was not removed", job);
    begin_v2();
    open_groups(false, 2);
    check(made_group(V2)[0] == '\0' && ds_accel__groups_descriptor(groups, 0) == -1,
          "groups that were not wanted");
    close_groups();
    begin_v2();
    machine.files = json_object();
    open_groups(true, 2);
    check(made_group(V2)[0] == '\0', "groups of a recording");
    close_groups();
    json_decref(machine.files);
    machine.files = NULL;
}

static void test_v1_groups(void)
{
    char memory[1024];
    char freezer[1024];
    char path[1024];

    begin_v1();
    open_groups(true, 2);
    fill(memory, sizeof(memory), "%s", made_group("sys/fs/cgroup/memory/job"));
    fill(freezer, sizeof(freezer), "%s", made_group("sys/fs/cgroup/freezer"));
    fill(path, sizeof(path), "%s/1/cgroup.procs", memory);
    join(ds_accel__groups_descriptor(groups, 1), path);
    fill(path, sizeof(path), "%s/cgroup.procs", freezer);
    join(ds_accel__groups_job_descriptor(groups), path);
    fill(path, sizeof(path), "/%s/1/memory.oom_control", memory);
    put(root, path, "oom_kill_disable 0\noom_kill 1\n");
    check_oom("v1", 1, DS_ACCEL__OOM_PROVED, 1, path);
    check_freezing("v1", freezer, "freezer.state", "THAWED");
    close_groups();
    check(!exists(root, memory) && !exists(root, freezer), "groups were not removed");
    begin_v1();
    put(root, "sys/fs/cgroup/memory/job/memory.use_hierarchy", "0\n");
    open_groups(true, 2);
    check(made_group("sys/fs/cgroup/memory/job")[0] == '\0', "groups outside the limit");
    fill(path, sizeof(path), "%s/cgroup.procs", made_group("sys/fs/cgroup/freezer"));
    join(ds_accel__groups_descriptor(groups, 0), path);
    check(ds_accel__groups_job_descriptor(groups) == -1, "the job's group, once");
    close_groups();
}

/* How many directories a job with three ranks tries to make. */
static unsigned count_made(void (*begin_tree)(void))
{
    begin_tree();
    open_groups(true, 3);
    close_groups();
    return kernel_made;
}

/* Every mkdir() fails in turn: nothing is left, and the rest still works. */
static void check_refusals(const char *name, void (*begin_tree)(void), unsigned expected,
                           bool is_v2)
{
    unsigned made = count_made(begin_tree);
    char path[1024];

    check(made == expected, "%s: %u groups", name, made);
    for (unsigned refused = 1; refused <= made; refused++) {
        begin_tree();
        kernel_refuses = refused;
        open_groups(true, 3);
        check((ds_accel__groups_descriptor(groups, 2) >= 0) == !(is_v2 && refused == 1),
              "%s: refused %u: descriptor", name, refused);
        fill(path, sizeof(path), V2 "/ds-accel.%d.0/cgroup.subtree_control", (int)getpid());
        check(!is_v2 || refused == 1 || strcmp(get(root, path), "+memory") != 0,
              "%s: refused %u: the job's group cannot have processes", name, refused);
        put(root, "proc/vmstat", "oom_kill 9\n");
        check_oom("after a refusal", 0, DS_ACCEL__OOM_NONE, 0, "");
        close_groups();
        check(made_group(V2)[0] == '\0' && made_group("sys/fs/cgroup/memory/job")[0] == '\0' &&
                  made_group("sys/fs/cgroup/freezer")[0] == '\0',
              "%s: refused %u: a group was not removed", name, refused);
    }
}

static void test_refusals(void)
{
    check_refusals("v1", begin_v1, 5, false);
    check_refusals("v2", begin_v2, 4, true);
    check_refusals("v2, alone", begin_v2_alone, 6, true);
}

/* Groups of killed launchers are removed, and those of running launchers stay. */
static void test_leftovers(void)
{
    char path[1024];
    int lock;

    begin_v2();
    put(root, V2 "/ds-accel.1.0/cgroup.procs", "");
    put(root, V2 "/ds-accel.1.0/0/cgroup.procs", "");
    put(root, V2 "/ds-accel.1.0/0/inner/cgroup.procs", "");
    put(root, V2 "/ds-accel.2.0/cgroup.procs", "");
    put(root, V2 "/other/cgroup.procs", "");
    fill(path, sizeof(path), V2 "/ds-accel.%d.0/cgroup.procs", (int)getpid());
    put(root, path, "");
    fill(path, sizeof(path), "%s/" V2 "/ds-accel.2.0", root);
    lock = open(path, O_RDONLY | O_DIRECTORY);
    check(flock(lock, LOCK_EX) == 0, "flock: %s", strerror(errno));
    open_groups(true, 2);
    check(!exists(root, V2 "/ds-accel.1.0"), "a killed launcher's group stays");
    check(exists(root, V2 "/ds-accel.2.0"), "a running launcher's group was removed");
    check(exists(root, V2 "/other"), "another group was removed");
    close_groups();
    close(lock);
    open_groups(true, 2);
    check(!exists(root, V2 "/ds-accel.2.0"), "a group stays after its launcher's end");
    close_groups();
    begin_v2();
    fill(path, sizeof(path), V2 "/ds-accel.%d.0/busy/file", (int)getpid());
    put(root, path, ""); /* rmdir() fails, as for a group with processes */
    open_groups(true, 2);
    fill(path, sizeof(path), V2 "/ds-accel.%d.1", (int)getpid());
    check(exists(root, path), "a name in use");
    close_groups();
    check(!exists(root, path), "%s was not removed", path);
}

static int32_t open_and_close(void)
{
    struct ds_accel__groups *opened = NULL;
    struct ds_accel__oom oom;
    int32_t status = groups_open(&machine, true, 3, &opened);

    if (status >= 0) {
        ds_accel__groups_descriptor(opened, 0);
        ds_accel__groups_oom(opened, 0, &oom);
        ds_accel__groups_kill(opened);
    }
    ds_accel__groups_close(opened);
    return status;
}

static void test_allocations(void)
{
    begin_v2();
    fail_allocations("groups v2", open_and_close);
    check(made_group(V2)[0] == '\0', "a group stays after a failed allocation");
    begin_v2_alone();
    fail_allocations("groups v2, alone", open_and_close);
    check(made_group(V2)[0] == '\0', "a group stays after a failed allocation");
    begin_v1();
    kernel_has_kill = false;
    fail_allocations("groups v1", open_and_close);
    check(made_group("sys/fs/cgroup/memory/job")[0] == '\0' &&
              made_group("sys/fs/cgroup/freezer")[0] == '\0',
          "a group stays after a failed allocation");
}

/* ---- the real kernel ------------------------------------------------------------------------ */

int eat_memory(void)
{
    /* A small piece at a time, so that the limit is reached, not the machine's memory. */
    char *memory =
        mmap(NULL, EAT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; memory != MAP_FAILED && i < EAT_BYTES; i += 4096) {
        ((volatile char *)memory)[i] = 1;
    }
    return 3;
}

static pid_t spawn_eater(int group, int job_group)
{
    char *const arguments[] = {(char *)"death", (char *)"eat", NULL};
    char *const environment[] = {NULL};
    sigset_t none;
    struct ds_accel__spawn spawn = {.path = "/proc/self/exe",
                                    .arguments = arguments,
                                    .environment = environment,
                                    .descriptors = {-1, -1, -1},
                                    .cgroups = {group, job_group},
                                    .signals = &none};
    struct ds_accel__spawned spawned;

    sigemptyset(&none);
    ds_accel__spawn(&spawn, &spawned);
    check(spawned.pid > 0 && spawned.cgroup_errors[0] == 0 && spawned.cgroup_errors[1] == 0,
          "spawn: %s, groups: %s, %s", strerror(spawned.error), strerror(spawned.cgroup_errors[0]),
          strerror(spawned.cgroup_errors[1]));
    return spawned.pid;
}

/* The memory limit of a real group of v1. False if it cannot be set. */
static bool limit_group(const char *directory)
{
    char path[1024];
    bool written;
    int fd;

    fill(path, sizeof(path), "%s/memory.limit_in_bytes", directory);
    fd = open(path, O_WRONLY);
    written = fd >= 0 && write(fd, LIMIT_BYTES, strlen(LIMIT_BYTES)) > 0;
    if (fd >= 0) {
        close(fd);
    }
    return written;
}

/* The directory of this process's real memory group of v1; "" if there is none. */
static const char *real_memory(void)
{
    static char path[1024];
    struct ds_accel__cgroups cgroups;
    int32_t status = ds_accel__cgroups_read(&ds_accel__machine_here, &cgroups);

    if (status >= 0) {
        status = ds_accel__cgroups_directory(&ds_accel__machine_here, &cgroups, "memory", path,
                                             sizeof(path));
    }
    ds_accel__cgroups_clear(&cgroups);
    return status < 0 ? "" : path;
}

static void check_proved(const char *job)
{
    struct ds_accel__ended ended = {.program = "/proc/self/exe", .directory = "/"};
    struct ds_accel__oom oom;
    struct ds_accel__death death;
    siginfo_t info = {0};
    char path[1024];

    fill(path, sizeof(path), "%s/1", job);
    if (!limit_group(path)) {
        skipped("a real out-of-memory kill", "no limit can be set");
        return;
    }
    ended.pid = spawn_eater(ds_accel__groups_descriptor(groups, 1),
                            ds_accel__groups_job_descriptor(groups));
    check(waitid(P_PID, (id_t)ended.pid, &info, WEXITED) == 0, "waitid: %s", strerror(errno));
    ds_accel__groups_oom(groups, 1, &oom);
    ds_accel__death_ended(&ds_accel__machine_here, &info, &ended, &oom, &death);
    check(death.kind == DS_ACCEL__DEATH_OOM_KILLED && death.oom.kills == 1 &&
              death.signal == SIGKILL,
          "a real kill: kind %d, status %d, %llu kills", death.kind, info.si_status,
          (unsigned long long)oom.kills);
    ds_accel__groups_oom(groups, 0, &oom);
    check(oom.verdict == DS_ACCEL__OOM_NONE, "the other rank was not killed");
}

/* A child that leaves the session and the process tree, and reports its PID through a pipe. */
static pid_t start_escaped(int group, int job_group, int *pipe_out)
{
    int ends[2];
    pid_t pid;

    check(pipe(ends) == 0, "pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        if ((group >= 0 && write(group, "0", 1) != 1) ||
            (job_group >= 0 && write(job_group, "0", 1) != 1)) {
            _exit(1);
        }
        close(ends[0]);
        if (fork() == 0) {
            setsid();
            if (fork() != 0) {
                _exit(0);
            }
            close(STDOUT_FILENO);
            close(STDERR_FILENO);
            alarm(120); /* if the test fails */
            for (;;) {  /* holds the pipe until it is killed */
                pause();
            }
        }
        _exit(0);
    }
    close(ends[1]);
    *pipe_out = ends[0];
    return pid;
}

static void test_real_kill(const char *name)
{
    int descriptor = ds_accel__groups_descriptor(groups, 0);
    struct pollfd poll_fd = {.events = POLLIN};
    int status = 0;
    pid_t pid;

    if (descriptor < 0) {
        skipped(name, "no group can be made");
        return;
    }
    pid = start_escaped(descriptor, ds_accel__groups_job_descriptor(groups), &poll_fd.fd);
    check(waitpid(pid, &status, 0) == pid && status == 0, "status %d", status);
    check(poll(&poll_fd, 1, 50) == 0, "the escaped process runs");
    check(ds_accel__groups_kill(groups), "%s", name);
    check(poll(&poll_fd, 1, 30000) == 1, "%s: the escaped process was not killed", name);
    close(poll_fd.fd);
}

static void test_real_groups(void)
{
    char job[1024] = "";
    char memory[1024];
    struct dirent *entry;
    DIR *directory;

    kernel_root = NULL;
    fill(memory, sizeof(memory), "%s", real_memory());
    if (groups_open(&ds_accel__machine_here, true, 2, &groups) < 0) {
        check(false, "real groups: %s", ds_accel_last_error());
        return;
    }
    directory = opendir(memory);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char prefix[32];

        snprintf(prefix, sizeof(prefix), "ds-accel.%d.", (int)getpid());
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
            fill(job, sizeof(job), "%s/%s", memory, entry->d_name);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    if (job[0] != '\0') {
        check_proved(job);
    } else {
        skipped("a real out-of-memory kill", "no memory group of v1 can be made");
    }
    test_real_kill("killing a real group");
    close_groups();
    check(job[0] == '\0' || access(job, F_OK) != 0, "%s was not removed", job);
}

/* The real groups of v1, as if cgroup v2 were not mounted: the freezer is for killing. */
static void test_real_freezer(void)
{
    char path[1024];
    char text[4096];
    char *v2;

    remove_all(root);
    fill(text, sizeof(text), "%s", get("/proc/self", "cgroup"));
    v2 = strstr(text, "0::");
    if (v2 != NULL) {
        *v2 = '\0';
    }
    put(root, "proc/self/cgroup", text);
    put(root, "proc/self/mountinfo", get("/proc/self", "mountinfo"));
    put(root, "sys/fs/other", "");
    fill(path, sizeof(path), "%s/sys/fs/cgroup", root);
    check(symlink("/sys/fs/cgroup", path) == 0, "%s: %s", path, strerror(errno));
    open_groups(true, 1);
    test_real_kill("killing a real group of the freezer");
    close_groups();
    fill(path, sizeof(path), "sys/fs/cgroup/freezer/ds-accel.%d.0", (int)getpid());
    check(!exists(root, path), "a group of the freezer stays");
    remove_all(root);
}

/* In a process of its own, which moves to a group with a limit. Exits with 0 if all is right. */
static int run_limited(int group)
{
    struct ds_accel__oom oom;
    siginfo_t info = {0};
    pid_t pid;

    if (write(group, "0", 1) != 1 || groups_open(&ds_accel__machine_here, false, 1, &groups) < 0) {
        return 1;
    }
    pid = spawn_eater(-1, -1);
    waitid(P_PID, (id_t)pid, &info, WEXITED);
    ds_accel__groups_oom(groups, 0, &oom);
    if (info.si_status != SIGKILL || oom.verdict != DS_ACCEL__OOM_LIKELY || oom.kills != 1 ||
        !oom.limit_was_reached || oom.limit_bytes != 67108864) {
        printf("status %d, verdict %d, %llu kills, limit reached %d, %llu bytes, %s\n",
               info.si_status, oom.verdict, (unsigned long long)oom.kills, oom.limit_was_reached,
               (unsigned long long)oom.limit_bytes, oom.limit_file);
        return 2;
    }
    return 0;
}

static void test_real_shared(void)
{
    char path[1024];
    int status = 0;
    int group;
    pid_t pid;

    fill(path, sizeof(path), "%s/death-test.%d", real_memory(), (int)getpid());
    if (mkdir(path, 0755) != 0 || !limit_group(path)) {
        skipped("a real kill in a shared group", "no limited group of v1 can be made");
        rmdir(path);
        return;
    }
    strcat(path, "/cgroup.procs");
    group = open(path, O_WRONLY | O_CLOEXEC);
    pid = fork();
    if (pid == 0) {
        _exit(run_limited(group));
    }
    close(group);
    check(waitpid(pid, &status, 0) == pid && status == 0, "a shared group: status %d", status);
    *strrchr(path, '/') = '\0';
    check(rmdir(path) == 0, "%s: %s", path, strerror(errno));
}

void print_cost(uint32_t rank_count)
{
    uint64_t start_ns = ds_accel__now_ns();
    uint64_t open_ns;

    if (groups_open(&ds_accel__machine_here, true, rank_count, &groups) < 0) {
        return;
    }
    for (uint32_t i = 0; i < rank_count; i++) {
        ds_accel__groups_descriptor(groups, i);
    }
    open_ns = ds_accel__now_ns();
    ds_accel__groups_close(groups);
    printf("%u ranks: made and opened in %.3f ms, removed in %.3f ms\n", rank_count,
           (double)(open_ns - start_ns) / 1e6, (double)(ds_accel__now_ns() - open_ns) / 1e6);
}

void test_groups(void)
{
    fill(root, sizeof(root), "%s/groups", work);
    kernel_root = root;
    test_v2_counters();
    test_v1_counters();
    test_limit_of_the_machine();
    test_last_resorts();
    test_v2_groups();
    test_aside();
    test_less();
    test_v1_groups();
    test_refusals();
    test_leftovers();
    test_allocations();
    remove_all(root);
    test_real_groups();
    test_real_freezer();
    test_real_shared();
}
