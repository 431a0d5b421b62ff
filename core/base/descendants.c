/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds the descendants of a process in /proc. A process whose parent has exited is found only if
 * an ancestor is a subreaper, which has become its parent. Nothing is found if /proc is not
 * mounted, or is that of another pid namespace, in which the IDs would be those of other processes.
 */
#include "base/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESS_LIMIT 4194304u /* maximum number of processes read from /proc */
#define STOP_PASSES 64         /* maximum number of passes over processes that keep forking */

struct process {
    pid_t pid;
    pid_t parent;
    bool is_ours; /* is a descendant of the root */
    pid_t branch; /* if it is ours, the child of the root from which it descends */
};

struct processes {
    struct process *list;
    size_t count;
    pid_t root;
    bool is_partial; /* processes are missing */
};

/* Return the parent's process ID from the text of /proc/PID/stat; 0 if the text is malformed. */
static pid_t parent_of(const char *stat)
{
    const char *end = strrchr(stat, ')');

    /* the text at end is ") S 123 ...": state, and process ID of the parent */
    return end != NULL && strlen(end) >= 5 ? (pid_t)atoi(end + 4) : 0;
}

static pid_t read_parent(const char *pid)
{
    char path[64];
    char stat[512];
    ssize_t size;
    int fd;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    size = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    stat[size > 0 ? size : 0] = '\0';
    return parent_of(stat);
}

static bool add_process(struct processes *processes, pid_t pid, pid_t parent)
{
    size_t count = processes->count;

    if (count == PROCESS_LIMIT) {
        return false;
    }
    if ((count & (count - 1)) == 0) { /* 0 or a power of two: resize the list */
        struct process *larger =
            realloc(processes->list, (count > 0 ? 2 * count : 64) * sizeof(*larger));

        if (larger == NULL) {
            return false;
        }
        processes->list = larger;
    }
    processes->list[processes->count++] = (struct process){.pid = pid, .parent = parent};
    return true;
}

static int compare_pids(const void *left, const void *right)
{
    pid_t a = ((const struct process *)left)->pid;
    pid_t b = ((const struct process *)right)->pid;

    return (a > b) - (a < b);
}

bool ds_accel__descendants_are_visible(void)
{
    char link[32];
    ssize_t length = readlink("/proc/self", link, sizeof(link) - 1);

    link[length > 0 ? length : 0] = '\0';
    return atoi(link) == getpid();
}

static void list_processes(struct processes *processes)
{
    DIR *dir = ds_accel__descendants_are_visible() ? opendir("/proc") : NULL;
    const struct dirent *entry;

    processes->count = 0;
    processes->is_partial = dir == NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        pid_t parent =
            entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? read_parent(entry->d_name) : 0;

        if (parent > 0 && !add_process(processes, (pid_t)atoi(entry->d_name), parent)) {
            processes->is_partial = true;
            break;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (processes->count > 0) {
        qsort(processes->list, processes->count, sizeof(*processes->list), compare_pids);
    }
}

/* The child of the root from which a child of the parent descends; 0: it is not known to. */
static pid_t branch_of(const struct processes *processes, pid_t pid, pid_t parent)
{
    struct process key = {.pid = parent};
    const struct process *found;

    if (parent == processes->root) {
        return pid;
    }
    found = bsearch(&key, processes->list, processes->count, sizeof(key), compare_pids);
    return found != NULL && found->is_ours ? found->branch : 0;
}

/*
 * Mark every descendant of the root: repeat passes over the list, each of which marks children of
 * marked processes, until a pass marks none.
 */
static void mark_ours(struct processes *processes)
{
    bool found = true;

    while (found) {
        found = false;
        for (size_t i = 0; i < processes->count; i++) {
            struct process *process = &processes->list[i];

            if (!process->is_ours && process->pid != processes->root) {
                process->branch = branch_of(processes, process->pid, process->parent);
                process->is_ours = process->branch != 0;
                found = found || process->is_ours;
            }
        }
    }
}

static size_t signal_ours(const struct processes *processes, int signal)
{
    size_t count = 0;

    for (size_t i = 0; i < processes->count; i++) {
        count += processes->list[i].is_ours && kill(processes->list[i].pid, signal) == 0;
    }
    return count;
}

size_t ds_accel__descendants_signal(pid_t root, int signal)
{
    struct processes processes = {.root = root};
    size_t count;

    list_processes(&processes);
    mark_ours(&processes);
    count = signal_ours(&processes, signal);
    free(processes.list);
    return count;
}

void ds_accel__descendants_kill(pid_t root)
{
    struct processes processes = {.root = root};
    size_t before = 0;

    for (int pass = 0; pass < STOP_PASSES; pass++) {
        size_t count;

        list_processes(&processes);
        mark_ours(&processes);
        count = signal_ours(&processes, SIGSTOP);
        if (count == before) {
            break;
        }
        before = count;
    }
    signal_ours(&processes, SIGKILL);
    free(processes.list);
}

bool ds_accel__descendants_visit(pid_t root, ds_accel__descendant_visit_t visit, void *user_data)
{
    struct processes processes = {.root = root};

    list_processes(&processes);
    mark_ours(&processes);
    for (size_t i = 0; i < processes.count; i++) {
        if (processes.list[i].is_ours) {
            visit(user_data, processes.list[i].pid, processes.list[i].branch);
        }
    }
    free(processes.list);
    return !processes.is_partial;
}
