/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The control groups of a job serve two purposes: the kernel counts in them the processes that it
 * kills because memory is exhausted, and all processes of a group can be killed at once, also those
 * that left the process tree.
 *
 * The kernel counts a kill in the memory group of the killed process, before it sends SIGKILL. So a
 * counter that is read after a rank has ended includes that rank. If the rank has a group of its
 * own, the counter proves the cause of its death. Otherwise the counter of a shared group makes the
 * cause likely: the group of this process, or in cgroup v2 its nearest parent with the memory
 * controller, or as the last resort the whole machine.
 *
 * Up to two groups "ds-accel.PID" are made. One is for killing, in the cgroup v2 hierarchy or else
 * in the freezer of v1. The other one has the groups of ranks, in the memory hierarchy of v1. Where
 * cgroup v2 controls memory, one group serves both purposes. There a group with processes cannot
 * pass controllers on, except the root. So if this process is alone in its group, as in a scope
 * that systemd delegated, it moves to a group of its own beside that of the job, and at the end it
 * moves back. Otherwise the ranks get no group of their own.
 *
 * A launcher holds a lock on each directory that it makes. If a launcher is killed, its directories
 * stay, and the next launcher recognizes them because nothing holds their locks.
 */
#include "launch/groups.h"
#include "base/text.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "ds-accel."
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)
#define DEPTH_LIMIT 16u      /* of groups that ranks made in theirs */
#define NAME_ATTEMPTS 16u    /* names that may be in use */
#define FREEZE_ATTEMPTS 100u /* waits of WAIT_NS */
#define KILL_ATTEMPTS 100u
#define CLOSE_ATTEMPTS 250u
#define WAIT_NS 2000000l

/* A number in a file of the kernel. */
struct counter {
    char *path;      /* below the machine's root; NULL: there is no counter */
    const char *key; /* word in front of the number; "": the file has only the number */
    uint64_t before;
};

/* A group that this process made. */
struct job {
    char *path; /* full path; NULL: none */
    int lock;   /* locked descriptor of the directory */
};

struct ds_accel__groups {
    const struct ds_accel__machine *machine;
    struct ds_accel__cgroups cgroups; /* of this process before any group is made */
    struct counter shared;
    bool is_machine_wide; /* of shared */
    struct ds_accel__cgroup_limit limit;
    struct counter limit_hits;

    struct job kill; /* for killing: cgroup v2, or the freezer of v1 */
    bool is_v2;      /* of kill */
    struct job memory;
    struct job aside; /* where this process is meanwhile, so that its group may pass memory on */
    const char *ranks_path;  /* directory of the groups of ranks: kill's or memory's; NULL: none */
    const char *events_file; /* of a rank's group */
    uint32_t rank_count;
    bool *forgotten;    /* of each rank */
    int descriptor;     /* of the last rank; -1: none */
    int job_descriptor; /* -1: none */
};

static void wait_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
}

/* ---- counters ------------------------------------------------------------------------------- */

/* Find the number behind a key at the beginning of a line, or at the beginning of the text. */
static bool find_number(const char *text, const char *key, uint64_t *number_out)
{
    size_t length = strlen(key);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        const char *number;

        line += *line == '\n';
        number = line + length + (length > 0);
        if (strncmp(line, key, length) == 0 && (length == 0 || line[length] == ' ') &&
            *number >= '0' && *number <= '9') {
            *number_out = strtoull(number, NULL, 10);
            return true;
        }
    }
    return false;
}

/* *found_out is false if the file cannot be read or does not contain the key. */
static int32_t read_number(const struct ds_accel__machine *machine, const char *path,
                           const char *key, uint64_t *number_out, bool *found_out)
{
    char *text;
    int32_t status = ds_accel__machine_read(machine, path, &text);

    *found_out = status >= 0 && text != NULL && find_number(text, key, number_out);
    free(text);
    return status;
}

/* Note a counter and its value. counter->path stays NULL if there is no such number. */
static int32_t note_counter(const struct ds_accel__machine *machine, const char *directory,
                            const char *file, const char *key, struct counter *counter)
{
    char *path = ds_accel__format("%s/%s", directory, file);
    bool found = false;
    int32_t status = path != NULL ? read_number(machine, path, key, &counter->before, &found)
                                  : ds_accel__no_memory();

    if (status < 0 || !found) {
        free(path);
        return status;
    }
    counter->path = path;
    counter->key = key;
    return DS_ACCEL_OK;
}

/* How much the counter has risen. */
static uint64_t count_rise(const struct ds_accel__machine *machine, const struct counter *counter)
{
    uint64_t now = 0;
    bool found;

    if (counter->path == NULL ||
        read_number(machine, counter->path, counter->key, &now, &found) < 0 || !found) {
        return 0;
    }
    return now > counter->before ? now - counter->before : 0;
}

/* The counter of the group, or of its nearest parent that controls memory, in cgroup v2. */
static int32_t note_events(const struct ds_accel__machine *machine, const char *directory,
                           struct counter *counter)
{
    static const char *const files[] = {"memory.events.local", "memory.events"};
    char path[PATH_MAX];
    int32_t status = DS_ACCEL_OK;

    ds_accel__copy(path, sizeof(path), directory);
    while (status >= 0 && counter->path == NULL && path[0] == '/') {
        for (size_t i = 0; i < ARRAY_SIZE(files) && status >= 0 && counter->path == NULL; i++) {
            status = note_counter(machine, path, files[i], "oom_kill", counter);
        }
        *strrchr(path, '/') = '\0';
    }
    return status;
}

static int32_t note_shared(struct ds_accel__groups *groups, const char *v1, const char *v2)
{
    const struct ds_accel__machine *machine = groups->machine;
    int32_t status = DS_ACCEL_OK;

    if (v1[0] != '\0') {
        status = note_counter(machine, v1, "memory.oom_control", "oom_kill", &groups->shared);
    } else if (v2[0] != '\0') {
        status = note_events(machine, v2, &groups->shared);
    }
    if (status >= 0 && groups->shared.path == NULL) {
        groups->is_machine_wide = true;
        status = note_counter(machine, "/proc", "vmstat", "oom_kill", &groups->shared);
    }
    return status;
}

/* Note the smallest memory limit, and how often it was reached. */
static int32_t note_limit(struct ds_accel__groups *groups)
{
    static const char *const files[] = {"memory.failcnt", "memory.events.local", "memory.events"};
    const struct ds_accel__machine *machine = groups->machine;
    char directory[sizeof(groups->limit.source)];
    char *meminfo;
    uint64_t total_bytes;
    int32_t status = ds_accel__machine_read(machine, "/proc/meminfo", &meminfo);

    if (status < 0) {
        return status;
    }
    total_bytes = meminfo != NULL ? ds_accel__meminfo_value(meminfo, "MemTotal") : 0;
    free(meminfo);
    status = ds_accel__cgroups_limit(machine, &groups->cgroups,
                                     total_bytes > 0 ? total_bytes : UINT64_MAX, &groups->limit);
    if (status < 0 || groups->limit.source[0] != '/') {
        return status; /* no limit, or its path is too long */
    }
    ds_accel__copy(directory, sizeof(directory), groups->limit.source);
    *strrchr(directory, '/') = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(files) && status >= 0 && groups->limit_hits.path == NULL;
         i++) {
        status =
            note_counter(machine, directory, files[i], i == 0 ? "" : "max", &groups->limit_hits);
    }
    return status;
}

/* ---- removing groups ------------------------------------------------------------------------ */

/*
 * Remove a group and the groups in it. False if one has processes. A directory of control files can
 * be removed without them, and rmdir() removes nothing else.
 */
static bool remove_tree(const char *path, unsigned depth)
{
    struct dirent *entry;
    DIR *directory;

    if (rmdir(path) == 0 || errno == ENOENT) {
        return true;
    }
    directory = depth < DEPTH_LIMIT ? opendir(path) : NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char inner[PATH_MAX];
        int length = snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);

        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && length > 0 &&
            (size_t)length < sizeof(inner)) {
            remove_tree(inner, depth + 1);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return rmdir(path) == 0 || errno == ENOENT;
}

/* Remove the groups of launchers that were killed. A group with processes stays. */
static void sweep(const char *parent)
{
    DIR *directory = opendir(parent);
    struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
        int lock;

        if (strncmp(entry->d_name, PREFIX, PREFIX_LENGTH) != 0 || length < 0 ||
            (size_t)length >= sizeof(path)) {
            continue;
        }
        lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
            remove_tree(path, 0);
        }
        if (lock >= 0) {
            close(lock);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* Remove a job's group, once its processes have ended. */
static void close_job(struct job *job, unsigned attempts)
{
    if (job->path == NULL) {
        return;
    }
    for (unsigned i = 0; !remove_tree(job->path, 0) && i < attempts; i++) {
        wait_shortly();
    }
    close(job->lock);
    free(job->path);
    *job = (struct job){0};
}

/* ---- making groups -------------------------------------------------------------------------- */

static bool full_path(char full[static PATH_MAX], const char *directory, const char *file)
{
    int length = snprintf(full, PATH_MAX, "%s/%s", directory, file);

    return length > 0 && length < PATH_MAX;
}

static bool write_file(const char *directory, const char *file, const char *text)
{
    char path[PATH_MAX];
    bool written;
    int fd;

    if (!full_path(path, directory, file)) {
        return false;
    }
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

static int open_processes(const char *directory)
{
    char path[PATH_MAX];

    return full_path(path, directory, "cgroup.procs") ? open(path, O_WRONLY | O_CLOEXEC) : -1;
}

/* Lock a directory that was just made. False if another launcher has removed it. */
static bool lock_job(struct job *job)
{
    job->lock = open(job->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (job->lock < 0) {
        return false;
    }
    while (flock(job->lock, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (access(job->path, F_OK) != 0) {
        close(job->lock);
        return false;
    }
    return true;
}

/* Make a group below a parent, which is a path below the root. */
static int32_t make_job(const struct ds_accel__groups *groups, const char *parent, struct job *job)
{
    char full[PATH_MAX];

    if (parent[0] != '/' || !full_path(full, groups->machine->root, parent + 1)) {
        return DS_ACCEL_OK;
    }
    sweep(full);
    for (unsigned i = 0; i < NAME_ATTEMPTS; i++) {
        bool is_made;

        job->path = ds_accel__format("%s/" PREFIX "%d.%u", full, (int)getpid(), i);
        if (job->path == NULL) {
            return ds_accel__no_memory();
        }
        is_made = mkdir(job->path, 0755) == 0;
        if (is_made && lock_job(job)) {
            return DS_ACCEL_OK;
        }
        if (!is_made && errno != EEXIST) {
            i = NAME_ATTEMPTS; /* not permitted, read-only, or not supported */
        }
        free(job->path);
        job->path = NULL;
    }
    return DS_ACCEL_OK;
}

/* Make a group for killing in the cgroup v2 hierarchy, or else in the freezer of v1. */
static int32_t make_kill_group(struct ds_accel__groups *groups, const char *v2)
{
    char freezer[PATH_MAX];
    int32_t status = make_job(groups, v2, &groups->kill);

    groups->is_v2 = groups->kill.path != NULL;
    if (status >= 0 && groups->kill.path == NULL) {
        status = ds_accel__cgroups_directory(groups->machine, &groups->cgroups, "freezer", freezer,
                                             sizeof(freezer));
        if (status >= 0) {
            status = make_job(groups, freezer, &groups->kill);
        }
    }
    if (status < 0 || groups->kill.path == NULL) {
        return status;
    }
    groups->job_descriptor = open_processes(groups->kill.path);
    if (groups->job_descriptor < 0) {
        close_job(&groups->kill, 0);
    }
    return DS_ACCEL_OK;
}

/* Make the directory of a job's groups of ranks in the memory hierarchy of v1. Without
 * use_hierarchy, such groups would escape the limits of this process's group. */
static int32_t make_memory_group(struct ds_accel__groups *groups, const char *v1)
{
    char path[PATH_MAX];
    uint64_t use_hierarchy = 1;
    bool found;
    int32_t status;

    if (!full_path(path, v1, "memory.use_hierarchy")) {
        return DS_ACCEL_OK;
    }
    status = read_number(groups->machine, path, "", &use_hierarchy, &found);
    if (status >= 0 && use_hierarchy != 0) {
        status = make_job(groups, v1, &groups->memory);
        groups->ranks_path = groups->memory.path;
        groups->events_file = "memory.oom_control";
    }
    return status;
}

/* True if a group's file has the memory controller. */
static int32_t has_memory(const struct ds_accel__groups *groups, const char *directory,
                          const char *file, bool *found_out)
{
    char path[PATH_MAX];
    char *controllers = NULL;
    int32_t status = DS_ACCEL_OK;

    if (full_path(path, directory, file)) {
        status = ds_accel__machine_read(groups->machine, path, &controllers);
    }
    *found_out = controllers != NULL && strstr(controllers, "memory") != NULL;
    free(controllers);
    return status;
}

static bool is_alone(const char *directory)
{
    char path[PATH_MAX];
    FILE *file = full_path(path, directory, "cgroup.procs") ? fopen(path, "re") : NULL;
    int pid = 0;
    int other;
    bool alone = file != NULL && fscanf(file, "%d", &pid) == 1 && pid == (int)getpid() &&
                 fscanf(file, "%d", &other) != 1;

    if (file != NULL) {
        fclose(file);
    }
    return alone;
}

/* Return to the group in which this process was, and remove the other one. */
static void move_back(struct ds_accel__groups *groups)
{
    char parent[PATH_MAX];

    if (groups->aside.path != NULL) {
        ds_accel__copy(parent, sizeof(parent), groups->aside.path);
        *strrchr(parent, '/') = '\0';
        write_file(parent, "cgroup.subtree_control", "-memory");
        write_file(parent, "cgroup.procs", "0");
        close_job(&groups->aside, 0);
    }
}

/* If this process is alone in its group, leave it, so that the group can pass memory on. */
static int32_t move_aside(struct ds_accel__groups *groups, const char *v2, bool *passes_out)
{
    char full[PATH_MAX];
    int32_t status = has_memory(groups, v2, "cgroup.controllers", passes_out);

    if (status < 0 || !*passes_out) {
        return status;
    }
    *passes_out = false;
    if (!full_path(full, groups->machine->root, v2 + 1) || !is_alone(full)) {
        return DS_ACCEL_OK;
    }
    status = make_job(groups, v2, &groups->aside);
    if (status >= 0 && groups->aside.path != NULL) {
        *passes_out = write_file(groups->aside.path, "cgroup.procs", "0") &&
                      write_file(full, "cgroup.subtree_control", "+memory");
    }
    if (!*passes_out) {
        move_back(groups);
    }
    return status;
}

/* In cgroup v2, let the groups of ranks count, if the parent can pass the memory controller on. */
static int32_t pass_memory_on(struct ds_accel__groups *groups, const char *v2)
{
    bool passes;
    int32_t status;

    if (!groups->is_v2) {
        return DS_ACCEL_OK;
    }
    status = has_memory(groups, v2, "cgroup.subtree_control", &passes);
    if (status >= 0 && !passes) {
        status = move_aside(groups, v2, &passes);
    }
    if (status >= 0 && passes &&
        write_file(groups->kill.path, "cgroup.subtree_control", "+memory")) {
        groups->ranks_path = groups->kill.path;
        groups->events_file = "memory.events";
    }
    return status;
}

static bool rank_path(char path[static PATH_MAX], const char *parent, uint32_t rank,
                      const char *file)
{
    int length = snprintf(path, PATH_MAX, "%s/%u%s", parent, rank, file);

    return length > 0 && length < PATH_MAX;
}

/* Make the groups of ranks, or none if one of them cannot be made or used. */
static void make_ranks(struct ds_accel__groups *groups)
{
    const char *parent = groups->ranks_path;
    char path[PATH_MAX];
    uint32_t count = 0;
    int descriptor;

    if (parent == NULL) {
        return;
    }
    while (count < groups->rank_count && rank_path(path, parent, count, "") &&
           mkdir(path, 0755) == 0) {
        count++;
    }
    descriptor = count > 0 ? ds_accel__groups_descriptor(groups, 0) : -1;
    if (count == groups->rank_count && descriptor >= 0) {
        return;
    }
    while (count > 0 && rank_path(path, parent, --count, "")) {
        rmdir(path);
    }
    groups->ranks_path = NULL;
    if (groups->memory.path == NULL) { /* processes may be in the job's group again */
        write_file(groups->kill.path, "cgroup.subtree_control", "-memory");
    }
    close_job(&groups->memory, 0);
}

static int32_t make_groups(struct ds_accel__groups *groups, const char *v1, const char *v2)
{
    int32_t status = make_kill_group(groups, v2);

    if (status >= 0) {
        status = v1[0] != '\0' ? make_memory_group(groups, v1) : pass_memory_on(groups, v2);
    }
    if (status >= 0) {
        make_ranks(groups);
    }
    return status;
}

/* ---- killing -------------------------------------------------------------------------------- */

/* Send SIGKILL to the processes that are in a group now; return how many there were. */
static unsigned signal_processes(const char *path, unsigned depth)
{
    char inner[PATH_MAX];
    struct dirent *entry;
    DIR *directory;
    FILE *file = full_path(inner, path, "cgroup.procs") ? fopen(inner, "re") : NULL;
    unsigned count = 0;
    int pid;

    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        /* A process outside this process's PID namespace has the number 0. */
        count += pid > 1 && pid != (int)getpid() && kill(pid, SIGKILL) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    directory = depth < DEPTH_LIMIT ? opendir(path) : NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            full_path(inner, path, entry->d_name)) {
            count += signal_processes(inner, depth + 1);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

/* Wait until a file has a line. */
static void wait_for_line(const char *directory, const char *file, const char *line)
{
    char path[PATH_MAX];

    if (!full_path(path, directory, file)) {
        return;
    }
    for (unsigned i = 0; i < FREEZE_ATTEMPTS; i++) {
        FILE *stream = fopen(path, "re");
        char text[64];
        bool found = false;

        while (stream != NULL && !found && fgets(text, sizeof(text), stream) != NULL) {
            found = strcmp(text, line) == 0;
        }
        if (stream != NULL) {
            fclose(stream);
        }
        if (stream == NULL || found) {
            return;
        }
        wait_shortly();
    }
}

/* Stop all processes of the group, so that none can start another one, and kill them. */
static bool freeze_and_kill(const char *path, bool is_v2)
{
    const char *file = is_v2 ? "cgroup.freeze" : "freezer.state";

    if (!write_file(path, file, is_v2 ? "1" : "FROZEN")) {
        return false;
    }
    wait_for_line(path, is_v2 ? "cgroup.events" : file, is_v2 ? "frozen 1\n" : "FROZEN\n");
    signal_processes(path, 0);
    return write_file(path, file, is_v2 ? "0" : "THAWED");
}

/* Kill the processes of the group until none is left. */
static bool kill_repeatedly(const char *path)
{
    for (unsigned i = 0; i < KILL_ATTEMPTS; i++) {
        if (signal_processes(path, 0) == 0) {
            return true;
        }
        wait_shortly();
    }
    return false;
}

bool ds_accel__groups_kill(struct ds_accel__groups *groups)
{
    const char *path = groups->kill.path;

    if (path != NULL && ((groups->is_v2 && write_file(path, "cgroup.kill", "1")) ||
                         freeze_and_kill(path, groups->is_v2))) {
        return true;
    }
    path = path != NULL ? path : groups->memory.path;
    return path != NULL && kill_repeatedly(path);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

int ds_accel__groups_descriptor(struct ds_accel__groups *groups, uint32_t rank)
{
    char path[PATH_MAX];

    if (groups->ranks_path == NULL) {
        return groups->job_descriptor;
    }
    if (groups->descriptor >= 0) {
        close(groups->descriptor);
        groups->descriptor = -1;
    }
    if (rank < groups->rank_count && rank_path(path, groups->ranks_path, rank, "/cgroup.procs")) {
        groups->descriptor = open(path, O_WRONLY | O_CLOEXEC);
        groups->forgotten[rank] = groups->forgotten[rank] || groups->descriptor < 0;
    }
    return groups->descriptor;
}

int ds_accel__groups_job_descriptor(const struct ds_accel__groups *groups)
{
    return groups->memory.path != NULL ? groups->job_descriptor : -1;
}

void ds_accel__groups_forget(struct ds_accel__groups *groups, uint32_t rank)
{
    groups->forgotten[rank] = true;
}

void ds_accel__groups_oom(const struct ds_accel__groups *groups, uint32_t rank,
                          struct ds_accel__oom *oom)
{
    const struct counter *counter = &groups->shared;
    bool is_own = groups->ranks_path != NULL && !groups->forgotten[rank];
    char path[PATH_MAX] = "";
    struct counter own = {.path = path, .key = "oom_kill"};

    *oom = (struct ds_accel__oom){.limit_bytes = groups->limit.limit_bytes};
    ds_accel__copy(oom->limit_file, sizeof(oom->limit_file), groups->limit.source);
    oom->limit_was_reached = count_rise(groups->machine, &groups->limit_hits) > 0;
    if (is_own) {
        /* The path below the root, as for the other counters. */
        size_t root_length = strlen(groups->machine->root);

        snprintf(path, sizeof(path), "%s/%u/%s", groups->ranks_path + root_length, rank,
                 groups->events_file);
        counter = &own;
    }
    oom->kills = count_rise(groups->machine, counter);
    if (oom->kills > 0) {
        oom->verdict = is_own ? DS_ACCEL__OOM_PROVED : DS_ACCEL__OOM_LIKELY;
        oom->is_machine_wide = !is_own && groups->is_machine_wide;
        ds_accel__copy(oom->counter_file, sizeof(oom->counter_file), counter->path);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

void ds_accel__groups_close(struct ds_accel__groups *groups)
{
    if (groups == NULL) {
        return;
    }
    if (groups->descriptor >= 0) {
        close(groups->descriptor);
    }
    if (groups->job_descriptor >= 0) {
        close(groups->job_descriptor);
    }
    close_job(&groups->memory, CLOSE_ATTEMPTS / 2);
    close_job(&groups->kill, CLOSE_ATTEMPTS / 2);
    move_back(groups);
    ds_accel__cgroups_clear(&groups->cgroups);
    free(groups->shared.path);
    free(groups->limit_hits.path);
    free(groups->forgotten);
    free(groups);
}

/* The directories of this process's group in the memory hierarchy of v1 and in v2. */
static int32_t find_directories(const struct ds_accel__groups *groups, char v1[static PATH_MAX],
                                char v2[static PATH_MAX])
{
    const struct ds_accel__machine *machine = groups->machine;
    int32_t status = ds_accel__cgroups_directory(machine, &groups->cgroups, "memory", v1, PATH_MAX);

    return status < 0 ? status
                      : ds_accel__cgroups_directory(machine, &groups->cgroups, NULL, v2, PATH_MAX);
}

int32_t ds_accel__groups_make(struct ds_accel__groups *groups)
{
    char v1[PATH_MAX] = "";
    char v2[PATH_MAX] = "";
    int32_t status;

    if (groups->machine->files != NULL) {
        return DS_ACCEL_OK;
    }
    status = find_directories(groups, v1, v2);
    return status < 0 ? status : make_groups(groups, v1, v2);
}

uint64_t ds_accel__groups_limit_bytes(const struct ds_accel__groups *groups)
{
    return groups->limit.limit_bytes;
}

int32_t ds_accel__groups_open(const struct ds_accel__machine *machine, uint32_t rank_count,
                              struct ds_accel__groups **groups_out)
{
    struct ds_accel__groups *groups = calloc(1, sizeof(*groups));
    char v1[PATH_MAX] = "";
    char v2[PATH_MAX] = "";
    int32_t status;

    if (groups == NULL) {
        return ds_accel__no_memory();
    }
    *groups = (struct ds_accel__groups){.machine = machine,
                                        .rank_count = rank_count,
                                        .descriptor = -1,
                                        .job_descriptor = -1,
                                        .forgotten = calloc(rank_count + 1, sizeof(bool))};
    status = groups->forgotten != NULL ? ds_accel__cgroups_read(machine, &groups->cgroups)
                                       : ds_accel__no_memory();
    if (status >= 0) {
        status = find_directories(groups, v1, v2);
    }
    if (status >= 0) {
        status = note_shared(groups, v1, v2);
    }
    if (status >= 0) {
        status = note_limit(groups);
    }
    if (status < 0) {
        ds_accel__groups_close(groups);
        return status;
    }
    *groups_out = groups;
    return DS_ACCEL_OK;
}
