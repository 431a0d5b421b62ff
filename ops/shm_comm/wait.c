/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * How ranks of shm_comm wait for each other, and what becomes of a rank for which others wait in
 * vain.
 *
 * A rank that sleeps writes for whom it waits, counts itself as a sleeper and looks at the word
 * once more before it sleeps; a rank that publishes a word looks for sleepers afterwards. All of
 * these are sequentially consistent, so one of the two sees the other. Sleeps are short: between
 * them, the rank looks whether the other one has ended, and at the clock.
 *
 * At the deadline, the other rank may be waiting itself. The rank that is late is the one at the
 * end of that chain: it does not wait, or has what it waits for.
 */
#include "common/error.h"
#include "shm.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS ((uint64_t)50000000)
#define YIELDS 16 /* before a rank sleeps */
#define SECOND_NS ((uint64_t)1000000000)
/* Parts of waits_for: the rank + 1, and above it the offset of the word. */
#define WAITS_BITS 16
#define WAITS_RANK 0xFFFFu

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- futexes --------------------------------------------------------------------------------- */

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec most = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};

    syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

static void ring(struct ops__shm_rank *rank)
{
    atomic_fetch_add(&rank->bell, 1);
    syscall(SYS_futex, &rank->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Wake the ranks that wait for this one. */
static void ring_waiting(struct ds_accel_comm *comm)
{
    for (uint32_t rank = 0; rank < comm->size; rank++)
        if ((atomic_load(&comm->ranks[rank]->waits_for) & WAITS_RANK) == comm->rank + 1)
            ring(comm->ranks[rank]);
}

void ops__shm_publish(struct ds_accel_comm *comm, _Atomic uint64_t *word, uint64_t number)
{
    atomic_store(word, number);
    if (atomic_load(&ops__shm_header(comm)->sleepers) == 0)
        return;
    ring_waiting(comm);
}

static bool is_there(_Atomic uint64_t *word, uint64_t number)
{
    return atomic_load(word) >= number;
}

static void sleep_for(struct ds_accel_comm *comm, uint32_t rank, _Atomic uint64_t *word,
                      uint64_t number, uint64_t ns)
{
    struct ops__shm_header *header = ops__shm_header(comm);
    struct ops__shm_rank *own = comm->ranks[comm->rank];
    uint32_t bell;

    atomic_fetch_add(&header->sleepers, 1);
    bell = atomic_load(&own->bell);
    if (!is_there(word, number) && atomic_load(&header->failure) == 0 &&
        atomic_load(&comm->ranks[rank]->left) == 0)
        futex_wait(&own->bell, bell, ns);
    atomic_fetch_sub(&header->sleepers, 1);
}

/* ---- failures -------------------------------------------------------------------------------- */

#define REASON_BITS 8
#define RANK_BITS 12

void ops__shm_fail(struct ds_accel_comm *comm, enum ops__shm_reason reason, uint32_t rank,
                   uint64_t other_signature)
{
    struct ops__shm_header *header = ops__shm_header(comm);
    uint64_t failure = (uint64_t)reason | (uint64_t)rank << REASON_BITS |
                       (uint64_t)comm->rank << (REASON_BITS + RANK_BITS) | comm->call << 32;
    uint64_t none = 0;

    if (atomic_load(&header->failure) != 0)
        return;
    comm->ranks[comm->rank]->detail = (struct ops__shm_detail){
        .timeout_ns = comm->timeout_ns,
        .signature = comm->signature,
        .other_signature = other_signature,
    };
    if (!atomic_compare_exchange_strong(&header->failure, &none, failure))
        return;
    for (uint32_t other = 0; other < comm->size; other++)
        if (other != comm->rank)
            ring(comm->ranks[other]);
}

void ops__shm_leave(struct ds_accel_comm *comm)
{
    atomic_store(&comm->ranks[comm->rank]->left, 1);
    ring_waiting(comm);
}

/* A pidfd is readable when its process has ended. */
static bool has_ended(int process)
{
    struct pollfd file = {.fd = process, .events = POLLIN};

    return poll(&file, 1, 0) == 1 && (file.revents & POLLIN);
}

/* Return the rank for which a rank waits in vain; if there is none, the rank itself. */
static uint32_t next_in_chain(const struct ds_accel_comm *comm, uint32_t rank)
{
    struct ops__shm_rank *waiting = comm->ranks[rank];
    uint32_t waits_for = atomic_load(&waiting->waits_for);
    uint64_t number = atomic_load(&waiting->waits_until);
    uint32_t other = (waits_for & WAITS_RANK) - 1;
    char *word;

    if (waits_for == 0 || other >= comm->size || atomic_load(&waiting->waits_for) != waits_for)
        return rank;
    word = (char *)comm->ranks[other] + (waits_for >> WAITS_BITS);
    return is_there((_Atomic uint64_t *)(void *)word, number) ? rank : other;
}

/* Return the rank that is late, if a rank does not come. */
static uint32_t find_late(const struct ds_accel_comm *comm, uint32_t rank)
{
    for (uint32_t i = 0; i < comm->size; i++) {
        uint32_t next = next_in_chain(comm, rank);

        if (next == rank || next == comm->rank)
            break;
        rank = next;
    }
    return rank;
}

/* Return why a rank will not come; 0: it may. */
static enum ops__shm_reason reason_of(const struct ds_accel_comm *comm, uint32_t rank)
{
    if (atomic_load(&comm->ranks[rank]->left) != 0)
        return OPS__SHM_LEFT;
    if (has_ended(comm->processes[rank]))
        return OPS__SHM_ENDED;
    return now_ns() >= comm->deadline_ns ? OPS__SHM_LATE : OPS__SHM_NONE;
}

/* Record why a word that is not there will not come; return whether that is so. */
static bool is_hopeless(struct ds_accel_comm *comm, uint32_t rank, _Atomic uint64_t *word,
                        uint64_t number)
{
    enum ops__shm_reason reason = reason_of(comm, rank);

    if (reason == OPS__SHM_LATE) {
        rank = find_late(comm, rank);
        reason = reason_of(comm, rank);
    }
    if (reason == OPS__SHM_NONE || is_there(word, number)) /* it came before that */
        return false;
    ops__shm_fail(comm, reason, rank, 0);
    return true;
}

int32_t ops__shm_wait_slowly(struct ds_accel_comm *comm, uint32_t rank, _Atomic uint64_t *word,
                             uint64_t number)
{
    struct ops__shm_header *header = ops__shm_header(comm);
    struct ops__shm_rank *own = comm->ranks[comm->rank];
    int32_t status = 0;

    for (unsigned i = 0; i < YIELDS; i++) {
        sched_yield();
        if (is_there(word, number))
            return 0;
    }
    if (comm->deadline_ns == 0) {
        uint64_t now = now_ns();

        comm->deadline_ns = comm->timeout_ns > UINT64_MAX - now ? UINT64_MAX
                                                                : now + comm->timeout_ns;
    }
    atomic_store(&own->waits_until, number);
    atomic_store(&own->waits_for, (rank + 1) | (uint32_t)((char *)word - (char *)comm->ranks[rank])
                                                   << WAITS_BITS);
    while (status == 0 && !is_there(word, number)) {
        uint64_t now = now_ns();
        uint64_t left = now < comm->deadline_ns ? comm->deadline_ns - now : 0;

        if (atomic_load(&header->failure) != 0 || is_hopeless(comm, rank, word, number))
            status = OPS__SHM_FAILED;
        else
            sleep_for(comm, rank, word, number, left < SLICE_NS ? left : SLICE_NS);
    }
    atomic_store(&own->waits_for, 0);
    return status;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

#define COUNT_BITS 40
#define ROOT_BITS 8
#define DTYPE_BITS 6
#define REDUCTION_BITS 3

uint64_t ops__shm_sign(enum ops__shm_kind kind, uint32_t dtype, uint32_t reduction, uint32_t root,
                       uint64_t count)
{
    uint64_t sign = (uint64_t)kind + 1;

    sign = sign << REDUCTION_BITS | reduction;
    sign = sign << DTYPE_BITS | dtype;
    sign = sign << ROOT_BITS | root;
    return sign << COUNT_BITS | count;
}

static uint64_t take(uint64_t *sign, unsigned bits)
{
    uint64_t part = *sign & (((uint64_t)1 << bits) - 1);

    *sign >>= bits;
    return part;
}

static const char *kind_name(uint64_t kind)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                        "barrier",    "alloc",          "free"};

    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

static const char *dtype_name(uint64_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
        return "float32";
    case DS_ACCEL_DTYPE_FLOAT16:
        return "float16";
    case DS_ACCEL_DTYPE_BFLOAT16:
        return "bfloat16";
    case DS_ACCEL_DTYPE_INT32:
        return "int32";
    default:
        return "int64";
    }
}

struct text {
    char chars[96];
};

static const char *call_name(uint64_t sign)
{
    return kind_name((sign >> (COUNT_BITS + ROOT_BITS + DTYPE_BITS + REDUCTION_BITS)) - 1);
}

/* "all_reduce(float32, sum, count 100)" */
static struct text describe(uint64_t sign)
{
    static const char *const reductions[] = {"", ", sum", ", min", ", max"};
    const char *name = call_name(sign);
    uint64_t count = take(&sign, COUNT_BITS);
    uint64_t root = take(&sign, ROOT_BITS);
    uint64_t dtype = take(&sign, DTYPE_BITS);
    uint64_t reduction = take(&sign, REDUCTION_BITS);
    struct text text;
    int end = snprintf(text.chars, sizeof(text.chars), "%s(", name);

    if (dtype != 0)
        end += snprintf(text.chars + end, sizeof(text.chars) - (size_t)end, "%s%s, count %" PRIu64,
                        dtype_name(dtype), reductions[reduction & 3], count);
    else if (count != 0)
        end += snprintf(text.chars + end, sizeof(text.chars) - (size_t)end, "%s %" PRIu64,
                        sign - 1 == OPS__SHM_ALLOC ? "bytes" : "buffer", count);
    if (sign - 1 == OPS__SHM_BROADCAST)
        end +=
            snprintf(text.chars + end, sizeof(text.chars) - (size_t)end, ", root %" PRIu64, root);
    snprintf(text.chars + end, sizeof(text.chars) - (size_t)end, ")");
    return text;
}

bool ops__shm_cause(const struct ds_accel_comm *comm, struct ops__shm_cause *cause_out)
{
    uint64_t failure = atomic_load(&ops__shm_header(comm)->failure);

    if (failure == 0)
        return false;
    cause_out->reason = (enum ops__shm_reason)take(&failure, REASON_BITS);
    cause_out->rank = (uint32_t)take(&failure, RANK_BITS);
    cause_out->process = comm->ranks[cause_out->rank]->process;
    return true;
}

int32_t ops__shm_failure(const struct ds_accel_comm *comm, const char *call,
                         struct ds_accel_error *error)
{
    uint64_t failure = atomic_load(&ops__shm_header(comm)->failure);
    uint64_t number = failure >> 32;
    enum ops__shm_reason reason = (enum ops__shm_reason)take(&failure, REASON_BITS);
    uint32_t rank = (uint32_t)take(&failure, RANK_BITS);
    uint32_t recorder = (uint32_t)take(&failure, RANK_BITS);
    const struct ops__shm_detail *detail = &comm->ranks[recorder]->detail;
    const char *name = call_name(detail->signature);
    long long process = (long long)comm->ranks[rank]->process;

    switch (reason) {
    case OPS__SHM_ENDED:
        return ops__error(error, DS_ACCEL_ERR_DEVICE_LOST, call,
                          "rank %u (process %lld) has ended; rank %u waited for it in %s number "
                          "%" PRIu64,
                          rank, process, recorder, name, number);
    case OPS__SHM_LEFT:
        return ops__error(error, DS_ACCEL_ERR_DEVICE_LOST, call,
                          "rank %u (process %lld) has left the communicator; rank %u waited for it "
                          "in %s number %" PRIu64,
                          rank, process, recorder, name, number);
    case OPS__SHM_LATE:
        return ops__error(error, DS_ACCEL_ERR_TIMEOUT, call,
                          "rank %u (process %lld) has not arrived at %s number %" PRIu64
                          ", or not finished it, within %.1f s",
                          rank, process, name, number, (double)detail->timeout_ns / 1e9);
    default:
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "in call number %" PRIu64 ", rank %u called %s and rank %u %s", number,
                          recorder, describe(detail->signature).chars, rank,
                          describe(detail->other_signature).chars);
    }
}
