/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "comm_limit.h"

#include <stdalign.h>

#define INLINE 48
#define PIECE ((size_t)128 << 10) /* fits into the second cache with those of input and output */
#define SLOTS 4                   /* a rank may be so many pieces ahead */

struct line {
    alignas(64) _Atomic uint64_t number;
    char message[INLINE];
};

/* The words of a rank: what it has written, read, and begun. */
struct words {
    struct line lines[2];
    alignas(64) _Atomic uint64_t written;
    alignas(64) _Atomic uint64_t read;
};

struct shared {
    struct words words[2];
    alignas(4096) float pieces[2][SLOTS][PIECE / sizeof(float)];
};

struct limit {
    const struct comm_loop *loop;
    unsigned rank;
    uint64_t call;
    uint64_t pieces; /* before this call */
    size_t used;     /* bytes of the registered memory of each rank */
};

static struct shared *shared;
static char *registered[2];
static size_t registered_bytes;

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        comm_fail("mmap");
    }
    return memory;
}

void comm_limit_prepare(const struct comm_loop *loop)
{
    for (unsigned i = 0; i < loop->count; i++) {
        registered_bytes += 2 * ((loop->bytes[i] + 4095) & ~(size_t)4095);
    }
    shared = (struct shared *)map(sizeof(*shared));
    registered[0] = (char *)map(registered_bytes + 4096);
    registered[1] = (char *)map(registered_bytes + 4096);
}

static void wait_for(const _Atomic uint64_t *word, uint64_t number)
{
    while (atomic_load_explicit(word, memory_order_acquire) < number) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static void add(float *out, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
}

/* A message in the line: one number per call is all that the ranks exchange. */
static void reduce_inline(struct limit *limit, const float *in, float *out, size_t count)
{
    struct line *own = &shared->words[limit->rank].lines[limit->call % 2];
    const struct line *other = &shared->words[1 - limit->rank].lines[limit->call % 2];

    memcpy(own->message, in, count * sizeof(*in));
    atomic_store_explicit(&own->number, limit->call, memory_order_release);
    wait_for(&other->number, limit->call);
    add(out, in, (const float *)(const void *)other->message, count);
}

static void reduce_private(void *data, const float *in, float *out, size_t count)
{
    struct limit *limit = (struct limit *)data;
    unsigned rank = limit->rank;
    struct words *own = &shared->words[rank];
    const struct words *other = &shared->words[1 - rank];
    size_t piece = PIECE / sizeof(float);
    size_t pieces = (count + piece - 1) / piece;

    limit->call++;
    if (count * sizeof(*in) <= INLINE) {
        reduce_inline(limit, in, out, count);
        return;
    }
    for (size_t i = 0; i <= pieces; i++) {
        if (i < pieces) { /* one piece ahead of the sums */
            uint64_t number = limit->pieces + i;
            size_t length = count - i * piece < piece ? count - i * piece : piece;

            wait_for(&other->read, number < SLOTS ? 0 : number - SLOTS + 1);
            memcpy(shared->pieces[rank][number % SLOTS], in + i * piece, length * sizeof(*in));
            atomic_store_explicit(&own->written, number + 1, memory_order_release);
        }
        if (i > 0) {
            uint64_t number = limit->pieces + i - 1;
            size_t first = (i - 1) * piece;
            size_t length = count - first < piece ? count - first : piece;

            wait_for(&other->written, number + 1);
            add(out + first, in + first, shared->pieces[1 - rank][number % SLOTS], length);
            atomic_store_explicit(&own->read, number + 1, memory_order_release);
        }
    }
    limit->pieces += pieces;
}

static float *allocate_registered(void *data, size_t bytes)
{
    struct limit *limit = (struct limit *)data;
    char *memory = registered[limit->rank] + limit->used;

    limit->used += (bytes + 4095) & ~(size_t)4095;
    memset(memory, 0, bytes);
    return (float *)(void *)memory;
}

/* Where an array of this rank lies in the memory of the other one. */
static float *there(const struct limit *limit, const float *array)
{
    const char *own = (const char *)array;

    return (float *)(void *)(registered[1 - limit->rank] + (own - registered[limit->rank]));
}

static void reduce_registered(void *data, const float *in, float *out, size_t count)
{
    struct limit *limit = (struct limit *)data;
    struct words *own = &shared->words[limit->rank];
    const struct words *other = &shared->words[1 - limit->rank];
    const float *inputs[2];
    float *other_out = there(limit, out);
    size_t half = count / 2;
    size_t first = limit->rank == 0 ? 0 : half;
    size_t end = limit->rank == 0 ? half : count;

    limit->call++;
    if (count * sizeof(*in) <= INLINE) {
        reduce_inline(limit, in, out, count);
        return;
    }
    inputs[0] = in;
    inputs[1] = there(limit, in);
    atomic_store_explicit(&own->written, limit->call, memory_order_release);
    wait_for(&other->written, limit->call);
    for (size_t i = first; i < end; i++) {
        float sum = inputs[0][i] + inputs[1][i];

        out[i] = sum;
        other_out[i] = sum;
    }
    atomic_store_explicit(&own->read, limit->call, memory_order_release);
    wait_for(&other->read, limit->call);
}

void comm_limit_run(struct comm_loop *loop, bool is_registered)
{
    struct limit limit = {.loop = loop, .rank = loop->rank};
    const struct comm_contender contender = {&limit,
                                             is_registered ? allocate_registered : comm_private,
                                             is_registered ? reduce_registered : reduce_private};

    if (loop->size != 2) {
        fprintf(stderr, "the limits are for 2 ranks\n");
        exit(2);
    }
    comm_loop(loop, &contender);
}
