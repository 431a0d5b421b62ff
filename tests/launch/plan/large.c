/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The plan of 10,000 hosts with 8 slots each, and a plan with too many ranks, each in a process of
 * its own. */
#include "launch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOSTS 10000u
#define SLOTS 8u
#define MEMORY_LIMIT_KIB (100 * 1024)

static bool count_ranks(void *user_data, const char *text, size_t length)
{
    static const char key[] = "{\"rank\":";
    const char *end = text + length;

    for (const char *at = text; (at = memmem(at, (size_t)(end - at), key, strlen(key))) != NULL;
         at++) {
        ++*(uint32_t *)user_data;
    }
    return true;
}

/* Make the plan of many hosts and write it. Return the number of ranks in the JSON; 0: there is no
 * plan. */
static uint32_t plan_many(const char *accelerator, const char *args)
{
    json_t *description = json_pack("{s:s, s:s}", "accelerator", accelerator, "args", args);
    struct ds_accel__text hostfile = {0};
    struct ds_accel__text notes = {0};
    struct ds_accel__plan plan = {0};
    uint32_t count = 0;
    struct job job;

    for (unsigned i = 0; i < HOSTS; i++) {
        ds_accel__text_add(&hostfile, "worker-%u.cluster.example slots=%u\n", i, SLOTS);
    }
    make_job(description, &job);
    job.hostfile = hostfile.data;
    if (plan_job(&job, &notes, &plan) >= 0) {
        ds_accel__plan_write_json(&plan, count_ranks, &count);
    }
    ds_accel__text_clear(&hostfile);
    ds_accel__text_clear(&notes);
    ds_accel__plan_clear(&plan);
    clear_job(&job);
    json_decref(description);
    return count;
}

static double elapsed_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Plan in a child process, which must make so many ranks. */
static struct rusage plan_in_child(const char *name, const char *accelerator, const char *args,
                                   uint32_t expected)
{
    struct rusage usage = {0};
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        _exit(plan_many(accelerator, args) == expected ? 0 : 1);
    }
    check(name, child > 0 && wait4(child, &status, 0, &usage) == child && status == 0, "status %d",
          status);
    return usage;
}

void test_large(void)
{
    double start = elapsed_s();
    struct rusage usage;

    find_machine("eight-cores");
    usage = plan_in_child("a plan of 10,000 hosts has all ranks", "cuda",
                          "--bind_cores_to_rank train.py --lr 0.1", HOSTS * SLOTS);
    printf("launch: 10,000 hosts x 8 slots: %.2f s, %ld MiB\n", elapsed_s() - start,
           usage.ru_maxrss / 1024);
#ifndef HAS_SANITIZER
    check("a plan of 10,000 hosts needs at most 100 MiB", usage.ru_maxrss <= MEMORY_LIMIT_KIB,
          "%ld KiB", usage.ru_maxrss);
#endif
    usage = plan_in_child("too many ranks are refused", "cpu", "--num_gpus 1000 train.py", 0);
#ifndef HAS_SANITIZER
    check("too many ranks are refused before they need memory", usage.ru_maxrss <= MEMORY_LIMIT_KIB,
          "%ld KiB", usage.ru_maxrss);
#endif
}
