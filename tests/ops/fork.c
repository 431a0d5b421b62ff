/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls of ops in children of fork(): fork UTILS.so CPU_ADAM.so, with OMP_NUM_THREADS=3 or more.
 *
 * The parent has threads of OpenMP, which a child does not inherit. A call that waits for them
 * never returns, so each child has an alarm.
 */
#include "ds-accel/ops/cpu_adam.h"
#include "ds-accel/ops/utils.h"
#include "ops/checks.h"

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)8 << 20)
#define THREADS 3u
#define HANGS_S 60u

static const struct ds_accel_utils *utils;
static const struct ds_accel_cpu_adam *adam;
static char *tensor;
static char *flat;
static float *numbers; /* parameters, gradients and both states */

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

static void flatten(void)
{
    struct ds_accel_utils_tensor whole = {.data = tensor, .bytes = BYTES};
    struct ds_accel_utils_options options = {
        .struct_size = sizeof(options),
        .threads = THREADS,
        .tensors = &whole,
        .tensor_count = 1,
        .tensor_bytes = sizeof(whole),
        .flat = flat,
        .flat_bytes = BYTES,
    };

    memset(flat, 0, BYTES);
    CHECK(utils->flatten(&options, NULL) == DS_ACCEL_OK, "flatten");
    CHECK(memcmp(flat, tensor, BYTES) == 0, "flatten copied something else");
}

static void take_step(void)
{
    size_t count = BYTES / sizeof(float) / 4;
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
                .threads = THREADS,
                .step = 1,
                .learning_rate = 0.5,
                .gradient_scale = 1,
            },
        .beta1 = 0.9,
        .beta2 = 0.999,
    };
    size_t right = 0;

    memset(numbers, 0, BYTES);
    for (size_t i = 0; i < count; i++)
        numbers[count + i] = 1;
    CHECK(adam->step(&options, NULL) == DS_ACCEL_OK, "step");
    for (size_t i = 0; i < count; i++)
        right += numbers[i] < -0.49f && numbers[i] > -0.51f;
    CHECK(right == count, "%zu of %zu parameters have the first step's change", right, count);
}

/* Run the function in a child; its failed checks fail here too. */
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
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0,
          "%s: the child ended with status 0x%x", name, (unsigned)status);
}

/* The thread that fork() gave to the child works alone. */
static void alone(void)
{
    flatten();
    take_step();
    CHECK(threads_of_process() == 1, "%u threads", threads_of_process());
}

static void *together(void *unused)
{
    (void)unused;
    flatten();
    take_step();
#ifdef _OPENMP
    CHECK(threads_of_process() > 2, "%u threads", threads_of_process());
#endif
    in_child("child of a child", alone);
    return NULL;
}

/* A thread that the child creates has no threads of its parent, so it uses several, and a child of
 * this thread is in turn alone. */
static void in_thread(void)
{
    pthread_t thread;
    bool created = pthread_create(&thread, NULL, together, NULL) == 0;

    CHECK(created && pthread_join(thread, NULL) == 0, "a thread");
    flatten(); /* and its first thread stays alone */
}

int main(int argc, char **argv)
{
    utils = (const struct ds_accel_utils *)open_op(argc > 1 ? argv[1] : NULL, "utils");
    adam = (const struct ds_accel_cpu_adam *)open_op(argc > 2 ? argv[2] : NULL, "cpu_adam");
    tensor = malloc(BYTES);
    flat = malloc(BYTES);
    numbers = malloc(BYTES);
    if (!tensor || !flat || !numbers)
        abort();
    memset(tensor, 0x5A, BYTES);
    /* Only one op has used several threads: both share those of the process. */
    flatten();
#ifdef _OPENMP
    CHECK(threads_of_process() > 1, "%u threads", threads_of_process());
#endif
    in_child("child", alone);
    in_child("thread of a child", in_thread);
    /* The parent still uses several. */
    take_step();
    free(numbers);
    free(flat);
    free(tensor);
    return finish("fork");
}
