/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op shm_comm: shm_comm FILE.so [soak ROUNDS]
 *
 * Ranks are children of this program, or its threads. SEED selects the cases; FULL=1 has all of
 * them for up to 8 ranks, and more for 17 and 64. shm_comm_results.h has the results,
 * shm_comm_groups.h ranks that share caches, shm_comm_failures.h what goes wrong.
 */
#include "ops/shm_comm_failures.h"
#include "ops/shm_comm_groups.h"
#include "ops/shm_comm_results.h"
#include "ops/shm_comm_soak.h"

#include <pthread.h>
#include <sched.h>

#define SMALL_BUFFER 49152 /* three pieces of 16 KiB */

static bool is_full;
static uint64_t base_seed;
static size_t largest_count; /* of a case, for this communicator */
static uint64_t buffer_bytes;

static void make_arrays(struct arrays *arrays, uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *registered[2] = {NULL, NULL};

    arrays->rank = rank;
    arrays->size = size;
    arrays->comm = create(rank, size, PATIENCE, buffer_bytes);
    if (is_simulated)
        check_groups(arrays->comm);
    arrays->bytes = largest_count * 8 + 4 * GUARD;
    arrays->private_in = (char *)calloc(1, arrays->bytes);
    arrays->private_out = (char *)calloc(1, arrays->bytes);
    for (int i = 0; i < 2; i++)
        CHECK(shm->alloc(arrays->comm, arrays->bytes, &registered[i], &error) == DS_ACCEL_OK, "%s",
              error.message);
    arrays->registered_in = (char *)registered[0];
    arrays->registered_out = (char *)registered[1];
}

static void free_arrays(struct arrays *arrays)
{
    struct ds_accel_shm_comm_info info = {.struct_size = sizeof(info)};

    CHECK(shm->info(arrays->comm, &info, NULL) == DS_ACCEL_OK && info.rank == arrays->rank &&
              info.size == arrays->size && info.registered_bytes == 2 * arrays->bytes,
          "info: rank %u of %u", info.rank, info.size);
    CHECK(shm->free(arrays->comm, arrays->registered_in, NULL) == DS_ACCEL_OK, "free");
    CHECK(shm->free(arrays->comm, arrays->registered_out, NULL) == DS_ACCEL_OK, "free");
    free(arrays->private_in);
    free(arrays->private_out);
    shm->destroy(arrays->comm);
}

/* A case in two variants, or all; every variant has the same bits. */
static void run_variants(struct test_case *test, const struct arrays *arrays)
{
    uint64_t bits = run_case(test, arrays, PRIVATE);
    uint64_t chosen = mix(test->seed) % (VARIANTS - 1) + 1;

    for (unsigned variant = PRIVATE + 1; variant < VARIANTS; variant++)
        if (is_full || variant == chosen)
            CHECK(run_case(test, arrays, (enum variant)variant) == bits,
                  "variant %u has other bits: kind %d, dtype %u, reduction %u, count %zu", variant,
                  (int)test->kind, test->dtype, test->reduction, test->count);
    shared->bits += mix(bits ^ mix(test->seed + arrays->rank));
}

/* All kinds, types and reductions with a number of bytes per rank, more or less some elements. */
static void run_size(const struct arrays *arrays, size_t bytes, int difference, unsigned sample)
{
    for (unsigned i = 0; i < KINDS * 5 * 3; i++) {
        struct test_case test = {
            .kind = (enum kind)(i % KINDS),
            .dtype = dtypes[i / KINDS % 5],
            .reduction = i / KINDS / 5 + 1,
            .seed = mix(base_seed + i * 131 + bytes * 7 + (unsigned)(difference + 8)),
        };
        size_t count = bytes / element_bytes(test.dtype);

        if ((test.kind == ALL_GATHER || test.kind == BROADCAST) && test.reduction != 1)
            continue;
        if (sample != 0 && test.seed / 5 % sample != 0)
            continue;
        if (test.kind == REDUCE_SCATTER)
            count /= arrays->size;
        if (difference < 0 && count < (size_t)-difference)
            continue;
        test.count = count + (size_t)difference;
        if (test.count * arrays->size > largest_count)
            continue;
        test.root = (uint32_t)(test.seed / 3 % arrays->size);
        run_variants(&test, arrays);
    }
}

/* Sizes around the limits of messages in a line, of small ones, and of pieces. */
static void results(uint32_t rank, uint32_t size)
{
    static const size_t sizes[] = {0, 8, 48, 1000, 16384, 32768, 3 * 16384, 4 * 16384, 200000};
    unsigned sample = is_full ? (size > 8 ? 8 : 0) : size > 4 ? 6 : 3;
    struct arrays arrays;

    make_arrays(&arrays, rank, size);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int difference = -1; difference <= 1; difference++)
            run_size(&arrays, sizes[i], difference, sample);
    free_arrays(&arrays);
}

/* Each rank has another instruction set, and all have the same bits. The parent has not chosen one
 * yet. */
static void results_of_paths(uint32_t rank, uint32_t size)
{
#if defined(__aarch64__)
    static const char *const paths[] = {"sve", "neon", "scalar"};
#else
    static const char *const paths[] = {"avx512", "avx2", "scalar"};
#endif

    setenv("DS_ACCEL_OPS_ISA", paths[rank % 3], 1);
    if (rank % 3 == 2)
        CHECK(strcmp(shm->op.path(), "scalar") == 0, "path %s", shm->op.path());
    results(rank, size);
}

/* Calls of several pieces; small ones do not regard groups. */
static void piece_results(uint32_t rank, uint32_t size)
{
    struct arrays arrays;

    base_seed += (uint64_t)(grouping - groupings); /* another sample on each machine */
    make_arrays(&arrays, rank, size);
    run_size(&arrays, 3 * 16384, 1, is_full ? 0 : 5);
    run_size(&arrays, 200000, -1, is_full ? 0 : 9);
    free_arrays(&arrays);
}

static void grouped_results(uint32_t rank, uint32_t size)
{
    take_place(rank);
    piece_results(rank, size);
}

static void large_results(uint32_t rank, uint32_t size)
{
    struct arrays arrays;

    make_arrays(&arrays, rank, size);
    run_size(&arrays, largest_count / size * 2 - 10, 1, is_full ? 2 : 8);
    free_arrays(&arrays);
}

static void check_results(void)
{
    const uint32_t sizes[] = {1, 2, 3, 4, 8, 17, 64};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] > 8 && !is_full)
            continue;
        buffer_bytes = SMALL_BUFFER;
        largest_count = 110000 * (size_t)sizes[i];
        run_ranks(sizes[i], results);
    }
    buffer_bytes = SMALL_BUFFER;
    largest_count = 110000 * (size_t)3;
    run_ranks(3, results_of_paths);
    buffer_bytes = 0;
    largest_count = is_full ? (size_t)32 << 20 : (size_t)1 << 20;
    run_ranks(2, large_results);
    run_ranks(3, large_results);
    buffer_bytes = SMALL_BUFFER;
    largest_count = 110000 * (size_t)(is_full ? 8 : 4);
    check_groupings(grouped_results, piece_results);
}

/* ---- ranks that share more than memory ------------------------------------------------------- */

#define THREADS 4

static void *run_thread(void *rank)
{
    uint32_t number = (uint32_t)(uintptr_t)rank;
    ds_accel_comm_t *comm = create(number, THREADS, PATIENCE, SMALL_BUFFER);
    int32_t *data = (int32_t *)malloc(50000 * sizeof(*data));

    for (int round = 0; round < 20; round++) {
        struct ds_accel_comm_call call =
            make_call(DS_ACCEL_DTYPE_INT32, DS_ACCEL_COMM_SUM, data, data, round % 2 ? 50000 : 3);
        bool right = true;

        for (size_t i = 0; i < call.count; i++)
            data[i] = (int32_t)(number + i + (size_t)round);
        CHECK(shm->all_reduce(comm, &call, NULL) == DS_ACCEL_OK, "all_reduce");
        for (size_t i = 0; i < call.count; i++)
            right = right && data[i] == (int32_t)(THREADS * (i + (size_t)round) + 6);
        CHECK(right, "thread %u, round %d", number, round);
    }
    free(data);
    shm->destroy(comm);
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];

    new_job();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run_thread, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Two communicators in other orders of ranks, used in turn. */
static void two_at_once(uint32_t rank, uint32_t size)
{
    ds_accel_comm_t *first = create(rank, size, PATIENCE, 0);
    ds_accel_comm_t *second;

    strcat(job_name, "-second");
    second = create(size - 1 - rank, size, PATIENCE, 0);
    for (int round = 0; round < 100; round++) {
        int64_t values[2] = {rank, size - 1 - rank};
        struct ds_accel_comm_call call =
            make_call(DS_ACCEL_DTYPE_INT64, DS_ACCEL_COMM_MAX, &values[0], &values[0], 1);

        CHECK(shm->all_reduce(first, &call, NULL) == DS_ACCEL_OK && values[0] == size - 1, "first");
        call.in = call.out = &values[1];
        call.root = 0;
        CHECK(shm->broadcast(second, &call, NULL) == DS_ACCEL_OK && values[1] == 0, "second: %lld",
              (long long)values[1]);
    }
    shm->destroy(second);
    shm->destroy(first);
}

/* Many communicators of one name in a row. */
static void one_after_another(uint32_t rank, uint32_t size)
{
    for (int i = 0; i < 30; i++) {
        ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);

        CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "barrier");
        shm->destroy(comm);
    }
}

/* More ranks than CPUs: each rank may run on one CPU only. */
static void on_one_cpu(uint32_t rank, uint32_t size)
{
    struct ds_accel_shm_comm_info info = {.struct_size = sizeof(info)};
    ds_accel_comm_t *comm;
    cpu_set_t cpus;

    sched_getaffinity(0, sizeof(cpus), &cpus);
    for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && kept++ > 0)
            CPU_CLR(cpu, &cpus);
    CHECK(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
    comm = create(rank, size, PATIENCE, 0);
    CHECK(shm->info(comm, &info, NULL) == DS_ACCEL_OK && info.cpus == 1, "%u CPUs", info.cpus);
    for (int round = 0; round < 200; round++)
        CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "barrier");
    CHECK(shm->info(comm, &info, NULL) == DS_ACCEL_OK && info.calls == 200, "info");
    shm->destroy(comm);
}

int main(int argc, char **argv)
{
    const char *full = getenv("FULL");
    const char *seed = getenv("SEED");
    unsigned before;

    is_full = full && *full && strcmp(full, "0") != 0;
    if (is_full)
        child_limit_ns = 3600 * SECOND;
    base_seed = seed ? strtoull(seed, NULL, 10) : 1;
    shared = (struct shared *)mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    shm = (const struct ds_accel_shm_comm *)open_op(argc > 1 ? argv[1] : NULL, "shm_comm");
    CHECK(shm->op.struct_size == sizeof(*shm), "struct_size");
    /* A process that a rank left behind becomes a child, which check_nothing_left() finds. */
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "prctl: %s", strerror(errno));
    before = count_files();
    if (argc > 3 && strcmp(argv[2], "soak") == 0) {
        soak((unsigned)strtoul(argv[3], NULL, 10), base_seed);
    } else {
        check_results();
        check_threads();
        run_ranks(3, two_at_once);
        run_ranks(3, one_after_another);
        run_ranks(4, on_one_cpu);
        check_failures();
        check_memory_limits();
        soak(is_full ? 1000 : 10, base_seed);
    }
    CHECK(count_files() == before, "%u files are open, %u were", count_files(), before);
    check_nothing_left();
    return finish("shm_comm");
}
