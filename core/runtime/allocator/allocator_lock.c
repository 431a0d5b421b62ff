/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The lock of an arena. A pair of an allocation and a free takes and releases the lock twice, and a
 * mutex's two atomic operations each time are more than half of the cost allowed for such a pair.
 * This lock needs one atomic operation to take, and a plain store to release. After the store, the
 * releasing thread checks for sleeping threads. Because the processor may execute this check before
 * the store is visible, a wakeup can be lost: no thread sleeps for more than a millisecond without
 * checking the lock again. Nearly always a single thread uses an arena.
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
