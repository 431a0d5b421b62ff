/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Counts the captures in progress in this process, of all contexts, and prevents queries that would
 * break a capture.
 *
 * A query whether a device is idle also queries its default stream, which a runtime treats as an
 * error during a capture in mode global. The querying thread therefore takes a read-write lock, the
 * gate, as a reader, and checks the number of captures before the query. A thread that begins a
 * capture first counts it and then takes the gate as the writer. As a result no capture begins
 * between the check and the query, and a thread waits at most for one call of another thread.
 *
 * The gate is the innermost lock: its holder calls the plugin and takes no lock of this library.
 */
#include "host/registry.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <assert.h>

static struct {
    pthread_rwlock_t gate;
    uint32_t running; /* number of captures that are about to begin or are in progress; atomic */
    uint32_t foreign; /* number of open devices on which another library may capture; atomic */
    uint32_t process; /* incremented in each forked child, which invalidates counts of its parent */
} captures = {.gate = PTHREAD_RWLOCK_INITIALIZER, .process = 1};

static uint32_t get(const uint32_t *count)
{
    return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

/* Set *counted to the given process; returns whether the object was counted in this process
 * before. */
static bool mark(uint32_t *counted, uint32_t process)
{
    return __atomic_exchange_n(counted, process, __ATOMIC_SEQ_CST) == captures.process;
}

/* ---- captures ------------------------------------------------------------------------------- */

uint32_t ds_accel__captures_begin(void)
{
    __atomic_add_fetch(&captures.running, 1, __ATOMIC_SEQ_CST);
    pthread_rwlock_wrlock(&captures.gate);
    return captures.process;
}

/* Count the stream's new capture once: if the stream still counts as capturing, because an earlier
 * capture ended without this library's knowledge, the new capture replaces the earlier one. A
 * different process means that the plugin or a log sink has forked since
 * ds_accel__captures_begin(): in the child no capture is counted, and no thread holds the gate. */
void ds_accel__captures_begun(struct ds_accel__stream *stream, uint32_t process, bool has_begun)
{
    if (process != captures.process) {
        return;
    }
    assert(get(&captures.running) > 0);
    pthread_rwlock_unlock(&captures.gate);
    if (!has_begun || mark(&stream->counted, captures.process)) {
        __atomic_sub_fetch(&captures.running, 1, __ATOMIC_SEQ_CST);
    }
}

void ds_accel__captures_end(struct ds_accel__stream *stream)
{
    if (mark(&stream->counted, 0)) {
        assert(get(&captures.running) > 0);
        __atomic_sub_fetch(&captures.running, 1, __ATOMIC_SEQ_CST);
    }
}

void ds_accel__captures_may_be_foreign(struct ds_accel__device *device)
{
    if (!device->candidate->watch.is_forked && !mark(&device->may_capture, captures.process)) {
        __atomic_add_fetch(&captures.foreign, 1, __ATOMIC_SEQ_CST);
    }
}

void ds_accel__captures_forget(struct ds_accel__device *device)
{
    if (mark(&device->may_capture, 0)) {
        assert(get(&captures.foreign) > 0);
        __atomic_sub_fetch(&captures.foreign, 1, __ATOMIC_SEQ_CST);
    }
}

bool ds_accel__captures_are_foreign(void)
{
    return get(&captures.foreign) != 0;
}

/* ---- queries -------------------------------------------------------------------------------- */

bool ds_accel__captures_hold(void)
{
    pthread_rwlock_rdlock(&captures.gate);
    return get(&captures.running) == 0;
}

void ds_accel__captures_release(void)
{
    pthread_rwlock_unlock(&captures.gate);
}

bool ds_accel__captures_try_hold(void)
{
    if (get(&captures.running) != 0 || get(&captures.foreign) != 0) {
        return false;
    }
    if (!ds_accel__captures_hold()) {
        ds_accel__captures_release();
        return false;
    }
    return true;
}

/* In a forked child no capture is in progress, and no thread holds the gate. */
void ds_accel__captures_renew(void)
{
    pthread_rwlock_init(&captures.gate, NULL);
    captures.running = 0;
    captures.foreign = 0;
    captures.process++;
}
