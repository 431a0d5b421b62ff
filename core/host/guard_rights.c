/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of guard.c for the rights of a process: user and group IDs, capabilities, seccomp
 * filters, namespaces, and the attributes of prctl(). Most of them cannot be restored.
 */
#include "base/text.h"
#include "host/guard.h"
#include "machine/machine.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * For pid and time these are the namespaces of future children, because a process never changes its
 * own.
 */
static const char *const namespaces[DS_ACCEL__GUARD_NAMESPACES] = {
    "cgroup", "ipc", "mnt", "net", "pid_for_children", "time_for_children", "user", "uts",
};

static void read_namespaces(uint64_t *inodes)
{
    char path[64];
    struct stat info;

    for (size_t i = 0; i < DS_ACCEL__GUARD_NAMESPACES; i++) {
        snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i]);
        if (stat(path, &info) == 0) { /* otherwise the value stays unchanged */
            inodes[i] = info.st_ino;
        }
    }
}

/* Hash a line of status, the text of /proc/thread-self/status; seed if there is no such line. */
static uint64_t hash_line(const char *status, const char *key, uint64_t seed)
{
    const char *line = strstr(status, key);

    return line != NULL ? ds_accel__hash(line, strcspn(line + 1, "\n") + 1, seed) : seed;
}

/* Read values of /proc/thread-self/status. A value that /proc does not report stays unchanged. */
static void read_status(struct ds_accel__guard_rights *rights)
{
    static const char *const sets[] = {
        "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:", "\nCapAmb:"};
    char *status = NULL;

    if (ds_accel__machine_read(&ds_accel__machine_here, "/proc/thread-self/status", &status) < 0 ||
        status == NULL) {
        return;
    }
    rights->capabilities = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        rights->capabilities = hash_line(status, sets[i], rights->capabilities);
    }
    rights->seccomp_filters = hash_line(status, "\nSeccomp_filters:", 0);
    free(status);
}

static uint64_t hash_groups(void)
{
    gid_t groups[256];
    int count = getgroups((int)ARRAY_SIZE(groups), groups);

    return count >= 0 ? ds_accel__hash(groups, (size_t)count * sizeof(gid_t), 1) : 0;
}

/*
 * Hash the attributes whose changes are reported as one kind, because plugins rarely change them on
 * purpose.
 */
static uint64_t hash_attributes(void)
{
    static const int options[] = {PR_GET_TIMERSLACK, PR_GET_THP_DISABLE, PR_GET_KEEPCAPS,
                                  PR_GET_SECUREBITS};
    int subreaper = 0;
    int mode = 0;
    char name[16] = "";
    uint64_t hash = 0;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        int value = prctl(options[i], 0, 0, 0, 0);

        hash = ds_accel__hash(&value, sizeof(value), hash);
    }
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0);
    hash = ds_accel__hash(&subreaper, sizeof(subreaper), hash);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    hash = ds_accel__hash(name, sizeof(name), hash);
    hash += (uint64_t)personality(0xffffffff);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) == 0) {
        hash = ds_accel__hash(&mode, sizeof(mode), hash);
    }
    return hash;
}

static int seccomp_state(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) << 1 | prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static int death_signal(void)
{
    int signal = 0;

    prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0);
    return signal;
}

void ds_accel__guard_rights_take(struct ds_accel__guard_rights *rights, bool is_alone)
{
    memset(rights, 0, sizeof(*rights));
    rights->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    rights->death_signal = death_signal();
    getresuid(&rights->users[0], &rights->users[1], &rights->users[2]);
    getresgid(&rights->groups[0], &rights->groups[1], &rights->groups[2]);
    if (is_alone) {
        rights->group_list = hash_groups();
        rights->seccomp = seccomp_state();
        rights->attributes = hash_attributes();
        read_status(rights);
        read_namespaces(rights->namespaces);
    }
}

void ds_accel__guard_rights_follow(struct ds_accel__guard_rights *rights, bool has_new_capabilities)
{
    rights->death_signal = death_signal();
    if (has_new_capabilities) {
        read_status(rights);
    }
}

bool ds_accel__guard_compare_ids(const struct ds_accel__guard *guard, char *text, size_t size)
{
    const struct ds_accel__guard_rights *before = &guard->rights;
    struct ds_accel__guard_rights now = {0};

    getresuid(&now.users[0], &now.users[1], &now.users[2]);
    getresgid(&now.groups[0], &now.groups[1], &now.groups[2]);
    if (memcmp(before->users, now.users, sizeof(now.users)) != 0) {
        snprintf(text, size, "user %u before, %u after", before->users[1], now.users[1]);
        return true;
    }
    if (memcmp(before->groups, now.groups, sizeof(now.groups)) != 0) {
        snprintf(text, size, "group %u before, %u after", before->groups[1], now.groups[1]);
        return true;
    }
    if (!guard->is_alone) {
        return false;
    }
    if (hash_groups() != before->group_list) {
        snprintf(text, size, "the supplementary groups changed");
        return true;
    }
    now.capabilities = before->capabilities;
    read_status(&now);
    if (now.capabilities != before->capabilities) {
        snprintf(text, size, "the capabilities changed");
        return true;
    }
    return false;
}

bool ds_accel__guard_compare_seccomp(const struct ds_accel__guard *guard, char *text, size_t size)
{
    struct ds_accel__guard_rights now = {.seccomp_filters = guard->rights.seccomp_filters};

    if (!guard->is_alone) {
        return false;
    }
    read_status(&now); /* may fail because of a filter: the count is then unchanged */
    if (seccomp_state() == guard->rights.seccomp &&
        now.seccomp_filters == guard->rights.seccomp_filters) {
        return false;
    }
    snprintf(text, size, "a filter of system calls, or no_new_privs, was set");
    return true;
}

bool ds_accel__guard_compare_namespaces(const struct ds_accel__guard *guard, char *text,
                                        size_t size)
{
    uint64_t now[DS_ACCEL__GUARD_NAMESPACES];

    if (!guard->is_alone) {
        return false;
    }
    memcpy(now, guard->rights.namespaces, sizeof(now));
    read_namespaces(now);
    for (size_t i = 0; i < DS_ACCEL__GUARD_NAMESPACES; i++) {
        if (now[i] != guard->rights.namespaces[i]) {
            snprintf(text, size, "it is in another %s namespace", namespaces[i]);
            return true;
        }
    }
    return false;
}

bool ds_accel__guard_compare_dumpable(const struct ds_accel__guard *guard, char *text, size_t size)
{
    int now = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

    if (now == guard->rights.dumpable) {
        return false;
    }
    snprintf(text, size, "%d before, %d after", guard->rights.dumpable, now);
    return true;
}

bool ds_accel__guard_compare_death_signal(const struct ds_accel__guard *guard, char *text,
                                          size_t size)
{
    int now = death_signal();

    if (now == guard->rights.death_signal) {
        return false;
    }
    snprintf(text, size, "%d before, %d after", guard->rights.death_signal, now);
    return true;
}

bool ds_accel__guard_compare_attributes(const struct ds_accel__guard *guard, char *text,
                                        size_t size)
{
    if (!guard->is_alone || hash_attributes() == guard->rights.attributes) {
        return false;
    }
    snprintf(text, size,
             "its name, timer slack, subreaper, personality, memory policy or secure bits");
    return true;
}

bool ds_accel__guard_restore_dumpable(const struct ds_accel__guard *guard)
{
    return prctl(PR_SET_DUMPABLE, guard->rights.dumpable, 0, 0, 0) == 0;
}

bool ds_accel__guard_restore_death_signal(const struct ds_accel__guard *guard)
{
    return prctl(PR_SET_PDEATHSIG, guard->rights.death_signal, 0, 0, 0) == 0;
}
