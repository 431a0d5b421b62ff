/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures that go on in this process, of all contexts, and questions that would break one.
 *
 * Whether a device is idle is asked of its default stream, too, which a capture in mode global
 * takes for a mistake. So who asks holds the gate, and looks first at how many captures there are;
 * a capture is counted and then begins with the gate to itself. None can begin between the look and
 * the question, therefore, and nobody waits longer than for the other's call.
 *
 * The gate is the innermost lock: its holder calls the plugin and takes none of ours.
 */
#include "host/registry.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <assert.h>

static struct {
    pthread_rwlock_t gate;
    uint32_t running; /* begin, or have begun and not ended; atomic */
    uint32_t foreign; /* open devices on which another library may capture; atomic */
    uint32_t process; /* one more in each child: what was counted before is counted no more */
} captures = {.gate = PTHREAD_RWLOCK_INITIALIZER, .process = 1};

static uint32_t get(const uint32_t *count)
{
    return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

/* Is it counted in this process? It is so no longer, or from now on. */
static bool mark(uint32_t *counted, uint32_t process)
{
    return __atomic_exchange_n(counted, process, __ATOMIC_SEQ_CST) == captures.process;
}

/* ---- who captures --------------------------------------------------------------------------- */

uint32_t ds_accel__captures_begin(void)
{
    __atomic_add_fetch(&captures.running, 1, __ATOMIC_SEQ_CST);
    pthread_rwlock_wrlock(&captures.gate);
    return captures.process;
}

/* One of the stream that was never seen to end does so now. In a child that was forked meanwhile,
 * by the plugin or who reads what it logs, nothing is counted and the gate is free. */
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

/* ---- who asks ------------------------------------------------------------------------------- */

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

/* None of them goes on in the child, nor does anybody hold the gate there. */
void ds_accel__captures_renew(void)
{
    pthread_rwlock_init(&captures.gate, NULL);
    captures.running = 0;
    captures.foreign = 0;
    captures.process++;
}
