/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op async_io: async_io_wakeups FILE.so
 *
 * No request waits for ever, whichever threads a condition variable wakes. POSIX lets
 * pthread_cond_signal() wake any thread that waits; glibc nearly always wakes the one that has
 * waited longest. This program defines condition variables, also for the op, whose signal is slow
 * and wakes the thread that began to wait last. A thread that goes to sleep between the submission
 * of a request and its signals then takes the place of another one.
 */
#include "ops/async_io.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define BLOCK 4096u
#define BLOCKS 24u
#define BYTES (BLOCKS * BLOCK)

/* ---- condition variables --------------------------------------------------------------------- */

struct waiter {
    struct waiter *older;
    pthread_cond_t *condition;
    sem_t woken;
};

static pthread_mutex_t waiters_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *newest; /* of all condition variables */

/* Wake the newest waiters of a condition variable, at most so many. */
static void wake(const pthread_cond_t *condition, unsigned most)
{
    pthread_mutex_lock(&waiters_lock);
    for (struct waiter **link = &newest; *link && most > 0;) {
        struct waiter *waiter = *link;

        if (waiter->condition == condition) {
            *link = waiter->older;
            most--;
            sem_post(&waiter->woken);
        } else {
            link = &waiter->older;
        }
    }
    pthread_mutex_unlock(&waiters_lock);
}

#pragma GCC visibility push(default)

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    struct waiter self = {.condition = condition};

    sem_init(&self.woken, 0, 0);
    pthread_mutex_lock(&waiters_lock);
    self.older = newest;
    newest = &self;
    pthread_mutex_unlock(&waiters_lock);
    pthread_mutex_unlock(lock);
    while (sem_wait(&self.woken) != 0)
        ;
    /* sem_post() may still use the semaphore. */
    pthread_mutex_lock(&waiters_lock);
    pthread_mutex_unlock(&waiters_lock);
    sem_destroy(&self.woken);
    pthread_mutex_lock(lock);
    return 0;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    const struct timespec delay = {.tv_nsec = 200000};

    nanosleep(&delay, NULL);
    wake(condition, 1);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    wake(condition, UINT32_MAX);
    return 0;
}

#pragma GCC visibility pop

/* ---- requests -------------------------------------------------------------------------------- */

static char path[160];
static struct ds_accel_async_io_options options; /* of the handle that is checked */

static int32_t copy(void *user_data, void *destination, const void *source, uint64_t bytes)
{
    (void)user_data;
    memcpy(destination, source, bytes);
    return DS_ACCEL_OK;
}

/* Write a file by several requests that are pending together, and read it by one. */
static void check_once(ds_accel_async_io_handle_t *handle, unsigned turn)
{
    uint32_t memory = options.to_host ? DS_ACCEL_ASYNC_IO_DEVICE : 0;
    uint64_t shift = turn % 3 * 100; /* requests without edges, and with them */
    uint64_t first = turn % BLOCKS * BLOCK;
    char *buffer = make_buffer(BYTES, 0);
    char *found = make_buffer(BYTES, 0);
    struct ds_accel_async_io_transfer parts[] = {
        part(path, shift, buffer, first),
        part(path, shift + first, buffer + first, BYTES - first),
        part(path, shift, found, BYTES),
    };
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};

    fill(buffer, BYTES, turn);
    for (unsigned i = 0; i < 3; i++)
        parts[i].flags = memory;
    for (unsigned i = 0; i < 2; i++)
        CHECK(io->submit_write(handle, &parts[i], NULL, NULL) == DS_ACCEL_OK, "submit_write");
    CHECK(io->wait(handle, NULL, 0, 0, NULL, NULL) == DS_ACCEL_OK, "wait");
    CHECK(io->read(handle, &parts[2], &result, NULL) == DS_ACCEL_OK && result.bytes_done == BYTES,
          "read: %s", result.message);
    CHECK(memcmp(buffer, found, BYTES) == 0, "turn %u: another contents", turn);
    free_buffer(buffer, BYTES, 0);
    free_buffer(found, BYTES, 0);
}

static void run_requests(void)
{
    ds_accel_async_io_handle_t *handle;

    alarm(60); /* ends a child whose request waits for ever */
    handle = make(options);
    for (unsigned turn = 0; handle && turn < 24; turn++)
        check_once(handle, turn);
    if (handle)
        io->destroy(handle);
}

/* After a failure, other children would only take time. */
static void check_requests(void)
{
    if (failures == 0)
        in_child(run_requests);
}

int main(int argc, char **argv)
{
    static char staging[8 * BLOCK] __attribute__((aligned(BLOCK)));
    const char *temporary = getenv("TMPDIR");

    (void)argc;
    io = (const struct ds_accel_async_io *)open_op(argv[1], "async_io");
    snprintf(path, sizeof(path), "%s/ds-accel-async-io-wakeups.%ld", temporary ? temporary : "/tmp",
             (long)getpid());
    for (size_t engine = 0; engine < ENGINES; engine++) {
        for (uint32_t parallelism = 1; parallelism <= 8; parallelism *= 2) {
            options = (struct ds_accel_async_io_options){.engine = engines[engine],
                                                         .block_bytes = BLOCK,
                                                         .queue_depth = 4,
                                                         .parallelism = parallelism};
            check_requests();
            options.to_host = options.from_host = copy;
            check_requests();
            /* Not every thread of an engine without rings has staging memory. */
            options.staging = staging;
            options.staging_bytes = parallelism * (uint64_t)BLOCK;
            check_requests();
        }
    }
    unlink(path);
    return finish("async_io_wakeups");
}
