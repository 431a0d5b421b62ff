/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Steps of a process that may have few threads: threads CPU_ADAM.so, with any OMP_NUM_THREADS.
 *
 * Each child is a process of its own user or has little address space. It loads the op, because one
 * that was loaded before does the work of a child alone. A child that OpenMP ends fails the test.
 */
#include "ds-accel/ops/cpu_adam.h"
#include "ops/checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LARGE ((size_t)300000) /* 19 chunks of cpu_adam */
#define SMALL ((size_t)70000)  /* 5 chunks, so at most 5 threads */
#define CALLERS 3
#define HANGS_S 60u
#define STATUS_SKIPPED 77

static const char *file_name;
static const struct ds_accel_cpu_adam *adam;

static unsigned threads_of_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;

    if (!tasks)
        return 0;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void fill(float *numbers, size_t count)
{
    memset(numbers, 0, 4 * count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (float)(i % 1000);
        numbers[count + i] = (float)(i % 77) - 38;
    }
}

/* Take a step over parameters, gradients and two states of so many elements. */
static void take_step(float *numbers, size_t count, uint32_t threads)
{
    struct ds_accel_optimizer_tensor whole = {
        .count = count,
        .parameter = numbers,
        .gradient = numbers + count,
        .state = {numbers + 2 * count, numbers + 3 * count},
        .parameter_dtype = DS_ACCEL_DTYPE_FLOAT32,
        .gradient_dtype = DS_ACCEL_DTYPE_FLOAT32,
        .state_dtype = DS_ACCEL_DTYPE_FLOAT32,
    };
    struct ds_accel_cpu_adam_options options = {
        .common =
            {
                .struct_size = sizeof(options),
                .tensors = &whole,
                .tensor_count = 1,
                .tensor_bytes = sizeof(whole),
                .threads = threads,
                .step = 1,
                .learning_rate = 0.5,
                .gradient_scale = 1,
                .max_norm = 1,
            },
        .beta1 = 0.9,
        .beta2 = 0.999,
    };
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    CHECK(adam->step(&options, &error) == DS_ACCEL_OK, "step: %s", error.message);
}

/* Check that a step has the same bits as a step of one thread. */
static void compare_step(size_t count, uint32_t threads)
{
    size_t bytes = 4 * count * sizeof(float);
    float *numbers = malloc(bytes);
    float *alone = malloc(bytes);

    if (!numbers || !alone)
        abort();
    fill(numbers, count);
    fill(alone, count);
    take_step(alone, count, 1);
    take_step(numbers, count, threads);
    CHECK(memcmp(numbers, alone, bytes) == 0, "%u threads compute other bits", threads);
    free(alone);
    free(numbers);
}

/* A step never has more threads than expected, and soon as many: on a busy machine the kernel
 * counts threads for a while after their end. */
static void check_team(unsigned wanted, unsigned expected)
{
#ifdef _OPENMP
    const struct timespec pause = {.tv_nsec = 120000000};
    unsigned count = 0;

    for (unsigned i = 0; i < 50 && count < expected; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        compare_step(LARGE, wanted);
        count = threads_of_process();
    }
    CHECK(count == expected, "%u threads, expected %u", count, expected);
#else
    (void)expected;
    compare_step(LARGE, wanted);
#endif
}

static void load_op(void)
{
    setenv("OMP_NUM_THREADS", "6", 1);
    adam = (const struct ds_accel_cpu_adam *)open_op(file_name, "cpu_adam");
}

/* Allow so many threads, and 8 later. */
static void allow_threads(unsigned count)
{
    struct rlimit limit = {.rlim_cur = count, .rlim_max = 8};

    CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0, "setrlimit: %s", strerror(errno));
}

/* Become a user of whom this is the only process; root would have no limit. */
static void become_user(void)
{
    uid_t user = 1000000 + (uid_t)getpid();

    if (getuid() != 0 || setresuid(user, user, user) != 0)
        _exit(STATUS_SKIPPED);
}

static void no_other_thread(void)
{
    load_op();
    allow_threads(1);
    become_user();
    check_team(0, 1);
    check_team(2, 1);
}

static void fewer_threads(void)
{
    load_op();
    allow_threads(3);
    become_user();
    for (unsigned i = 0; i < 20; i++) {
        check_team(0, 3);
        check_team(6, 3);
    }
}

/* OpenMP ends threads that a smaller team does not need, and starts them again. */
static void changing_teams(void)
{
    load_op();
    allow_threads(4);
    become_user();
    for (unsigned i = 0; i < 40; i++) {
        compare_step(LARGE, 0);
        compare_step(LARGE, 2 + i % 3);
        compare_step(SMALL, 6);
    }
    CHECK(threads_of_process() <= 4, "%u threads", threads_of_process());
}

static void more_threads_later(void)
{
    const struct timespec pause = {.tv_nsec = 300000000};

    load_op();
    allow_threads(2);
    become_user();
    check_team(5, 2);
    allow_threads(8);
    nanosleep(&pause, NULL);
    check_team(5, 5);
}

static void *call_often(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 30; i++)
        compare_step(LARGE, i % 5 == 0 ? 2 : 0);
    return NULL;
}

/* Several threads of the caller use up the limit. */
static void several_callers(void)
{
    pthread_t callers[CALLERS];

    load_op();
    allow_threads(6);
    become_user();
    for (unsigned i = 0; i < CALLERS; i++)
        if (pthread_create(&callers[i], NULL, call_often, NULL))
            abort();
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    compare_step(LARGE, 0);
}

/* The process cannot have another stack of a size that OpenMP's environment sets. */
static void no_large_stack(const char *variable, const char *size)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)1 << 30, .rlim_max = (rlim_t)1 << 30};

    unsetenv("OMP_STACKSIZE");
    setenv(variable, size, 1);
    load_op();
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(STATUS_SKIPPED);
    check_team(0, 1);
    check_team(2, 1);
}

static void no_stack_of_1g(void)
{
    no_large_stack("OMP_STACKSIZE", " 1 g ");
}

static void no_stack_of_kib(void)
{
    no_large_stack("GOMP_STACKSIZE", "1048576");
}

static void in_child(const char *name, void (*function)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        failures = 0;
        alarm(HANGS_S);
        function();
        fflush(NULL);
        _exit(failures > 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "%s: no child", name);
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIPPED)
        printf("threads: %s: skipped: this needs root or a limit of the address space\n", name);
    else
        CHECK(status == 0, "%s: the child ended with status 0x%x", name, (unsigned)status);
}

int main(int argc, char **argv)
{
    file_name = argc > 1 ? argv[1] : NULL;
    in_child("no other thread", no_other_thread);
    in_child("fewer threads", fewer_threads);
    in_child("changing teams", changing_teams);
    in_child("more threads later", more_threads_later);
    in_child("several callers", several_callers);
#ifndef __SANITIZE_ADDRESS__ /* its shadow is larger than the limit */
    in_child("no stack of 1 GiB", no_stack_of_1g);
    in_child("no stack of 1048576 KiB", no_stack_of_kib);
#endif
    return finish("threads");
}
