/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The lock of an arena. A pair of calls on memory takes and releases it twice, and a mutex's two
 * atomic operations each time are more than half of what such a pair may cost. This one needs one:
 * releasing is a plain store. Whoever releases then looks whether anyone sleeps; the look may be
 * earlier than the store for the sleeper's processor, so nobody sleeps for longer than a
 * millisecond without looking again. Arenas are one thread's nearly always.
 */
#include "runtime/allocator/allocator.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 100

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

void ds_accel__latch_wait(struct ds_accel__latch *latch)
{
    const struct timespec longest = {.tv_nsec = 1000000};

    for (int i = 0; i < SPINS; i++) {
        relax();
        if (__atomic_load_n(&latch->is_taken, __ATOMIC_RELAXED) == 0 &&
            __atomic_exchange_n(&latch->is_taken, 1, __ATOMIC_ACQUIRE) == 0) {
            return;
        }
    }
    __atomic_fetch_add(&latch->waiter_count, 1, __ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&latch->is_taken, 1, __ATOMIC_ACQUIRE) != 0) {
        syscall(SYS_futex, &latch->is_taken, FUTEX_WAIT_PRIVATE, 1, &longest, NULL, 0);
    }
    __atomic_fetch_sub(&latch->waiter_count, 1, __ATOMIC_SEQ_CST);
}

void ds_accel__latch_wake(struct ds_accel__latch *latch)
{
    syscall(SYS_futex, &latch->is_taken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
