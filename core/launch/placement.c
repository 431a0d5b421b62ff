/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads from the kernel where a rank really runs, and compares it with the plan. A container, a
 * batch system or the program itself may have changed it.
 */

#include "base/text.h"
#include "launch/job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP 4096u

/* Read the beginning of a file of a process; NULL: it cannot be read, or memory is exhausted. */
static char *read_start(pid_t pid, const char *name)
{
    char path[64];
    char *text = malloc(STEP);
    size_t size = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    file = text != NULL ? fopen(path, "re") : NULL;
    if (file != NULL) {
        size = fread(text, 1, STEP - 1, file);
        fclose(file);
    }
    if (size == 0) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

/* Read the CPUs that a process may use; "" if they are not known. */
static void read_cpus(pid_t pid, struct ds_accel__text *out)
{
    static const char key[] = "\nCpus_allowed_list:\t";
    char *text = read_start(pid, "status");
    const char *value = text != NULL ? strstr(text, key) : NULL;

    if (value != NULL) {
        value += sizeof(key) - 1;
        ds_accel__text_add_bytes(out, value, strcspn(value, "\n"));
    }
    free(text);
}

/* Read the memory policy of a process: that of its first mapping; "" if it is not known. */
static void read_policy(pid_t pid, struct ds_accel__text *out)
{
    char *text = read_start(pid, "numa_maps");
    const char *value = text != NULL ? strchr(text, ' ') : NULL;

    if (value != NULL) {
        ds_accel__text_add_bytes(out, value + 1, strcspn(value + 1, " \n"));
    }
    free(text);
}

/* The planned policy, as the kernel writes it in numa_maps. */
static void write_policy(const struct ds_accel__placement *placement, struct ds_accel__text *out)
{
    static const char *const names[] = {[DS_ACCEL__MEMORY_DEFAULT] = "default",
                                        [DS_ACCEL__MEMORY_BIND] = "bind:",
                                        [DS_ACCEL__MEMORY_PREFER] = "prefer:"};

    ds_accel__text_add(out, "%s", names[placement->memory]);
    if (placement->memory != DS_ACCEL__MEMORY_DEFAULT) {
        ds_accel__set_write(&placement->nodes, out);
    }
}

/* Warn if what is, is known and differs from the plan. */
static void compare(struct ds_accel__job *job, const struct ds_accel__job_rank *rank,
                    const char *what, const struct ds_accel__text *planned,
                    const struct ds_accel__text *real)
{
    if (real->size_bytes > 0 && !planned->failed && !real->failed &&
        strcmp(planned->data, real->data) != 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "rank %u: %s %s, planned were %s",
                          rank->rank->rank, what, real->data, planned->data);
    }
}

void ds_accel__job_check_placement(struct ds_accel__job *job, struct ds_accel__job_rank *rank)
{
    const struct ds_accel__placement *placement = rank->rank->placement;
    struct ds_accel__text cpus = {0};
    struct ds_accel__text policy = {0};

    assert(rank->pid > 0);
    if (placement == NULL || placement->cpus.count == 0) {
        return;
    }
    ds_accel__set_write(&placement->cpus, &cpus);
    write_policy(placement, &policy);
    read_cpus(rank->pid, &rank->real_cpus);
    read_policy(rank->pid, &rank->real_policy);
    if (rank->spawned.cpu_error == 0) {
        compare(job, rank, "the kernel allows it the CPUs", &cpus, &rank->real_cpus);
    }
    if (rank->spawned.memory_error == 0) {
        compare(job, rank, "its memory policy is", &policy, &rank->real_policy);
    }
    ds_accel__text_clear(&cpus);
    ds_accel__text_clear(&policy);
}
