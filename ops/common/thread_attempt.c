/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/thread_attempt.h"

#ifdef _OPENMP

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* More than libgomp allocates for a team, and for each of its threads. */
#define TEAM_BYTES 8192u
#define THREAD_BYTES 1024u
/* How often, and after how long, to look whether the kernel has removed a thread. */
#define LOOKS 400u
#define LOOK_NS 25000

struct attempt {
    pthread_mutex_t *gate; /* locked until all threads are started */
    pthread_t thread;
    long number; /* the kernel's */
};

/* Of OpenMP's threads; 0: the default of the process. Written when the shared object is loaded. */
static size_t stack_bytes;

/* Set *bytes_out to the size that a variable of libgomp has, if its value is valid: a number with a
 * unit, B, K, M or G; without one it is K. */
static bool read_size(const char *variable, size_t *bytes_out)
{
    static const char units[] = "bkmg";
    const char *text = getenv(variable); // NOLINT(concurrency-mt-unsafe): as libgomp reads it
    const char *unit = units + 1;
    char *end;
    unsigned long value;
    unsigned shift;

    if (!text)
        return false;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || end == text)
        return false;
    end += strspn(end, " \t\n\v\f\r");
    if (*end) {
        unit = strchr(units, tolower((unsigned char)*end++));
        end += strspn(end, " \t\n\v\f\r");
    }
    if (!unit || *end)
        return false;
    shift = 10 * (unsigned)(unit - units);
    if (value > SIZE_MAX >> shift)
        return false;
    *bytes_out = (size_t)value << shift;
    return true;
}

/* libgomp reads its variables when it is loaded, which is at the latest now. */
__attribute__((constructor)) static void read_stack_bytes(void)
{
    if (!read_size("OMP_STACKSIZE", &stack_bytes))
        read_size("GOMP_STACKSIZE", &stack_bytes);
}

static void *wait_at_gate(void *argument)
{
    struct attempt *attempt = (struct attempt *)argument;

    attempt->number = syscall(SYS_gettid);
    pthread_mutex_lock(attempt->gate);
    pthread_mutex_unlock(attempt->gate);
    return NULL;
}

/* Start threads until one fails. Return how many were started; all have ended. */
static uint64_t start_and_join(struct attempt *attempts, uint64_t count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    uint64_t started = 0;

    if (pthread_attr_init(&attributes) != 0)
        return 0;
    /* As libgomp does, keep the default if the size is not allowed. */
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_mutex_lock(&gate);
    while (started < count) {
        attempts[started].gate = &gate;
        if (pthread_create(&attempts[started].thread, &attributes, wait_at_gate,
                           &attempts[started]) != 0)
            break;
        started++;
    }
    pthread_mutex_unlock(&gate);
    for (uint64_t i = 0; i < started; i++)
        pthread_join(attempts[i].thread, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* The kernel counts a thread among those of the user and the control group until it has removed it,
 * which is a little later than pthread_join() returns. */
static uint64_t count_removed(const struct attempt *attempts, uint64_t count)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    unsigned looks = 0;
    uint64_t removed = 0;

    while (removed < count && looks < LOOKS) {
        if (syscall(SYS_tgkill, getpid(), attempts[removed].number, 0) != 0) {
            removed++;
        } else {
            looks++;
            nanosleep(&pause, NULL);
        }
    }
    return removed;
}

uint64_t ops__threads_attempt(uint64_t count)
{
    struct attempt *attempts = (struct attempt *)malloc(TEAM_BYTES + count * THREAD_BYTES);
    uint64_t removed;
    int cancellation;

    if (!attempts)
        return 0;
    /* Of the calling thread: it must not end while others use this function's memory. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    removed = count_removed(attempts, start_and_join(attempts, count));
    pthread_setcancelstate(cancellation, NULL);
    free(attempts);
    return removed;
}

#endif
