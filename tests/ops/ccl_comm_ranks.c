/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/ccl_comm_ranks.h"

#include "ops/ccl_comm_memory.h"
#include "ops/ccl_comm_nodes.h"
#include "ops/ccl_comm_results.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE CCL_PATIENCE_NS
#define LATE ((uint64_t)20 * 1000000000) /* of what does not */
#define SMALL_BUFFER 4096
#define LARGE_COUNT 100000

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool ccl_is_full(void)
{
    const char *full = getenv("FULL");

    return full && *full && strcmp(full, "0") != 0;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct job {
    uint32_t engine;
    uint32_t ranks_per_node; /* the option */
    uint32_t group;          /* consecutive ranks of a node, or 0 */
    uint32_t rounds;         /* else nodes that take ranks in turns, or 0 */
    uint32_t lost;           /* ranks that do not end */
    const char *directory;
    bool is_full;
    struct ds_accel_ccl_comm_info info;
};

static ds_accel_comm_t *create(struct job *job, uint64_t timeout_ns, uint64_t buffer_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_ccl_comm_options options = {
        .struct_size = sizeof(options),
        .engine = getenv("OPS_ENGINE_BY_NUMBER") ? job->engine : DS_ACCEL_CCL_COMM_AUTO,
        .ranks_per_node = job->ranks_per_node,
        .timeout_ns = timeout_ns,
        .buffer_bytes = buffer_bytes,
    };
    ds_accel_comm_t *comm = NULL;

    job->info = (struct ds_accel_ccl_comm_info){.struct_size = sizeof(job->info)};
    CHECK(ccl->create(&options, &comm, &error) == DS_ACCEL_OK, "%s", error.message);
    if (!comm)
        exit(finish("rank"));
    CHECK(ccl->info(comm, &job->info, &error) == DS_ACCEL_OK, "%s", error.message);
    return comm;
}

static void check_info(const struct job *job)
{
    const struct ds_accel_ccl_comm_info *info = &job->info;
    uint32_t group = job->group ? job->group : info->size;
    uint32_t nodes = job->rounds ? job->rounds : (info->size + group - 1) / group;
    uint32_t node = job->rounds ? info->rank % nodes : info->rank / group;
    uint32_t place = job->rounds ? info->rank / nodes : info->rank % group;

    CHECK(info->engine == job->engine, "engine %u", info->engine);
    CHECK(strstr(info->version, job->engine == DS_ACCEL_CCL_COMM_MPICH ? "MPICH" : "Open MPI"),
          "version \"%s\"", info->version);
    CHECK(info->nodes == nodes, "%u nodes, wanted %u", info->nodes, nodes);
    CHECK(info->node == node && info->local_rank == place, "rank %u: node %u, local rank %u",
          info->rank, info->node, info->local_rank);
}

/* Every kind, type and reduction with counts around limits of messages and pieces. */
static void run_cases(struct job *job, ds_accel_comm_t *comm, const size_t *counts, size_t count)
{
    for (unsigned i = 0; i < KINDS * DTYPES * 3; i++) {
        struct test_case test = {
            .kind = (enum kind)(i % KINDS),
            .dtype = dtypes[i / KINDS % DTYPES],
            .reduction = i / KINDS / DTYPES + 1,
        };

        if ((test.kind == ALL_GATHER || test.kind == BROADCAST) && test.reduction != 1)
            continue;
        for (size_t j = 0; j < count; j++) {
            test.count = counts[j];
            test.seed = mix(i * 131 + counts[j]);
            test.root = (uint32_t)(test.seed % job->info.size);
            if (job->is_full || j < 2 || (i + j) % 4 == 0)
                run_case(comm, &job->info, &test);
        }
    }
}

static const size_t small[] = {1, 7, 0, 100, 511, 513, 1024, 4099, 30001};

static void results(struct job *job)
{
    static const size_t large[] = {16385, 262144};
    ds_accel_comm_t *comm = create(job, PATIENCE, SMALL_BUFFER);
    ds_accel_comm_t *other = create(job, PATIENCE, 0);
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    check_info(job);
    run_cases(job, comm, small, sizeof(small) / sizeof(small[0]));
    for (int i = 0; i < 20; i++)
        CHECK(ccl->barrier(comm, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
    run_cases(job, other, large, sizeof(large) / sizeof(large[0]));
    ccl->destroy(comm);
    CHECK(ccl->barrier(other, NULL, &error) == DS_ACCEL_OK, "after destroy() of another: %s",
          error.message);
    ccl->destroy(other);
}

/* ---- a sample -------------------------------------------------------------------------------- */

#define FACTORS 4 /* kind, type, reduction, count */
#define LEVELS 9  /* at most */
#define COMBINATIONS (KINDS * DTYPES * 3 * LEVELS)

typedef bool pairs[FACTORS][LEVELS][FACTORS][LEVELS];

/* The levels of a combination. */
static void split(unsigned combination, unsigned levels[FACTORS])
{
    static const unsigned radix[FACTORS] = {KINDS, DTYPES, 3, LEVELS};

    for (unsigned i = 0; i < FACTORS; i++) {
        levels[i] = combination % radix[i];
        combination /= radix[i];
    }
}

/* Count the pairs of levels that a combination has and covered has not; add them if wanted. */
static unsigned count_pairs(pairs covered, unsigned combination, bool adds)
{
    unsigned levels[FACTORS];
    unsigned found = 0;

    split(combination, levels);
    for (unsigned i = 0; i < FACTORS; i++)
        for (unsigned j = i + 1; j < FACTORS; j++) {
            bool *pair = &covered[i][levels[i]][j][levels[j]];

            found += !*pair;
            *pair = *pair || adds;
        }
    return found;
}

/* The combination with most pairs that are not covered, or COMBINATIONS. */
static unsigned choose(pairs covered, unsigned begin)
{
    unsigned best = COMBINATIONS;
    unsigned most = 0;

    for (unsigned i = 0; i < COMBINATIONS; i++) {
        unsigned combination = (begin + i) % COMBINATIONS;
        unsigned found = count_pairs(covered, combination, false);

        if (found > most) {
            most = found;
            best = combination;
        }
    }
    return best;
}

/* Every pair of a kind, type, reduction and count. SEED chooses which. */
static void sample(struct job *job)
{
    ds_accel_comm_t *comm = create(job, PATIENCE, SMALL_BUFFER);
    const char *seed = getenv("SEED");
    unsigned begin = (unsigned)(mix(seed ? strtoul(seed, NULL, 10) : 0) % COMBINATIONS);
    pairs covered = {{{{false}}}};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    check_info(job);
    for (;;) {
        unsigned combination = choose(covered, begin);
        unsigned levels[FACTORS];
        struct test_case test;

        if (combination == COMBINATIONS)
            break;
        count_pairs(covered, combination, true);
        split(combination, levels);
        test = (struct test_case){
            .kind = (enum kind)levels[0],
            .dtype = dtypes[levels[1]],
            .reduction = levels[2] + 1,
            .count = small[levels[3]],
            .seed = mix(combination + begin),
        };
        test.root = (uint32_t)(test.seed % job->info.size);
        run_case(comm, &job->info, &test);
    }
    CHECK(ccl->barrier(comm, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
    ccl->destroy(comm);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A call whose arguments are valid on every rank. */
static int32_t reduce_one(ds_accel_comm_t *comm, uint64_t timeout_ns, struct ds_accel_error *error)
{
    float in = 1;
    float out = 0;
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = DS_ACCEL_DTYPE_FLOAT32,
        .reduction = DS_ACCEL_COMM_SUM,
        .in = &in,
        .out = &out,
        .count = 1,
        .timeout_ns = timeout_ns,
    };

    return ccl->all_reduce(comm, &call, error);
}

/* Check that a call fails in this way, and the next one, too. */
static void check_failure(ds_accel_comm_t *comm, int32_t status, const struct ds_accel_error *error,
                          int32_t wanted, const char *text)
{
    struct ds_accel_error again = {.struct_size = sizeof(again)};

    CHECK(status == wanted, "status %d: %s", status, error->message);
    CHECK(strstr(error->message, text), "message \"%s\", wanted \"%s\"", error->message, text);
    CHECK(ccl->barrier(comm, NULL, &again) == wanted && strstr(again.message, text),
          "again: \"%s\", wanted \"%s\"", again.message, text);
}

static void mismatch(struct job *job)
{
    static int64_t numbers[LARGE_COUNT];

    for (uint32_t i = 0; i < 4; i++) {
        ds_accel_comm_t *comm = create(job, PATIENCE, 0);
        uint32_t other = i % 2 ? job->info.size - 1 : 1;
        uint64_t count = i < 2 ? 3 : LARGE_COUNT; /* the message is of another kind */
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_comm_call call = {
            .struct_size = sizeof(call),
            .dtype = DS_ACCEL_DTYPE_INT64,
            .reduction = DS_ACCEL_COMM_MAX,
            .in = numbers,
            .out = numbers,
            .count = job->info.rank == other ? count : 2,
        };
        char text[64];
        char called[64];
        int32_t status = ccl->all_reduce(comm, &call, &error);

        snprintf(text, sizeof(text), "rank %u", other);
        check_failure(comm, status, &error, DS_ACCEL_ERR_INVALID, text);
        snprintf(called, sizeof(called), "all_reduce(int64, max, count %" PRIu64 ")", count);
        CHECK(strstr(error.message, "all_reduce(int64, max, count 2)") &&
                  strstr(error.message, called) && strstr(error.message, "call number 1"),
              "%s", error.message);
        ccl->destroy(comm);
    }
}

static void leave(struct job *job)
{
    ds_accel_comm_t *comm = create(job, PATIENCE, 0);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char text[64];

    CHECK(reduce_one(comm, 0, &error) == DS_ACCEL_OK, "%s", error.message);
    snprintf(text, sizeof(text), "rank %u (process", job->info.size - 1);
    if (job->info.rank != job->info.size - 1) {
        int32_t status = reduce_one(comm, 0, &error);

        check_failure(comm, status, &error, DS_ACCEL_ERR_DEVICE_LOST, text);
        CHECK(strstr(error.message, "has left the communicator"), "%s", error.message);
    }
    ccl->destroy(comm);
}

static void write_mark(const struct job *job, const char *what, const char *text)
{
    ccl_write_mark(job->directory, what, job->info.rank, text);
}

static bool await_marks(const struct job *job, const char *what, uint32_t wanted)
{
    return ccl_await_marks(job->directory, what, job->info.size, wanted);
}

/* A stopped rank is named to all others, and to itself when it continues. */
static void stop(struct job *job)
{
    ds_accel_comm_t *comm = create(job, PATIENCE, 0);
    uint32_t victim = job->info.size - 1;
    int64_t process = getpid();
    int64_t processes[64] = {0};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = DS_ACCEL_DTYPE_INT64,
        .in = &process,
        .out = processes,
        .count = 1,
    };
    uint64_t begin = now_ns(); /* before any rank has ended the first call, and begun the second */
    int32_t status;
    char text[64];

    CHECK(ccl->all_gather(comm, &call, &error) == DS_ACCEL_OK, "%s", error.message);
    snprintf(text, sizeof(text), "rank %u (process %" PRId64, victim, processes[victim]);
    if (job->info.rank == victim)
        raise(SIGSTOP);
    status = reduce_one(comm, LATE, &error);
    CHECK(job->info.rank == victim || now_ns() - begin >= LATE, "the timeout is early");
    check_failure(comm, status, &error, DS_ACCEL_ERR_TIMEOUT, text);
    CHECK(strstr(error.message, "all_reduce number 2"), "%s", error.message);
    if (job->info.rank != victim)
        write_mark(job, "failed", "");
    if (job->info.rank == 0) {
        CHECK(await_marks(job, "failed", job->info.size - 1), "others have no error");
        kill((pid_t)processes[victim], SIGCONT);
    }
    ccl->destroy(comm);
}

/* Read the mark of the parent: "ACTION RANK RANK ...", the ranks that are lost. */
static uint64_t read_lost(const struct job *job, char action[16])
{
    char path[256];
    uint64_t lost = 0;
    unsigned rank;
    FILE *file;

    snprintf(path, sizeof(path), "%s/lost-0", job->directory);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%15s", action) == 1)
        while (fscanf(file, "%u", &rank) == 1)
            lost |= (uint64_t)1 << (rank % 64);
    fclose(file);
    return lost;
}

/* Return whether a text names one of these ranks. */
static bool names_rank(const char *text, uint64_t ranks)
{
    for (unsigned rank = 0; rank < 64; rank++) {
        char name[32];

        snprintf(name, sizeof(name), "rank %u (process", rank);
        if ((ranks >> rank & 1) != 0 && strstr(text, name))
            return true;
    }
    return false;
}

/* Ranks are killed, stopped or cut off by the parent or, alone, by themselves; the others fail with
 * the name of one of them. What is cut off names one of the others. */
static void lost(struct job *job)
{
    /* MPICH's launcher signals other ranks, which would end them. */
    bool ignores = signal(SIGUSR1, SIG_IGN) != SIG_ERR;
    ds_accel_comm_t *comm = create(job, PATIENCE, 0);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_error again = {.struct_size = sizeof(again)};
    char action[16] = "";
    uint64_t others;
    uint64_t own = (uint64_t)1 << job->info.rank;
    int32_t status;

    CHECK(ignores && reduce_one(comm, 0, &error) == DS_ACCEL_OK, "%s", error.message);
    write_mark(job, "ready", "");
    CHECK(await_marks(job, "lost", 1), "nothing is lost");
    others = read_lost(job, action);
    job->lost = (uint32_t)__builtin_popcountll(others);
    if ((others & own) != 0 && strcmp(action, "kill") == 0)
        raise(SIGKILL);
    if ((others & own) != 0 && strcmp(action, "stop") == 0)
        raise(SIGSTOP);
    if (strcmp(action, "cut") == 0)
        job->lost = 0;
    if ((others & own) != 0)
        others = ~others;
    status = reduce_one(comm, LATE, &error);
    CHECK(status == DS_ACCEL_ERR_TIMEOUT || status == DS_ACCEL_ERR_DEVICE_LOST ||
              status == DS_ACCEL_ERR_DRIVER,
          "status %d: %s", status, error.message);
    CHECK(names_rank(error.message, others), "after %s, message \"%s\"", action, error.message);
    CHECK(ccl->barrier(comm, NULL, &again) == status && strstr(error.message, again.message + 19),
          "again: \"%s\", first \"%s\"", again.message, error.message);
    ccl->destroy(comm);
}

static void memory(struct job *job)
{
    ds_accel_comm_t *comm = create(job, PATIENCE, 0);
    struct ds_accel_ccl_comm_options options = {
        .struct_size = sizeof(options),
        .ranks_per_node = job->ranks_per_node,
        .timeout_ns = PATIENCE,
        .buffer_bytes = SMALL_BUFFER,
    };

    ccl_check_memory(comm, &job->info, &options);
    ccl->destroy(comm);
}

static void nodes(struct job *job)
{
    ds_accel_comm_t *comm = create(job, PATIENCE, 0);
    struct ds_accel_ccl_comm_options options = {
        .struct_size = sizeof(options),
        .timeout_ns = PATIENCE,
        .buffer_bytes = SMALL_BUFFER,
    };

    ccl_check_nodes(&job->info, &options);
    ccl->destroy(comm);
}

/* Options that differ among ranks, and fork(). */
static void options(struct job *job)
{
    ds_accel_comm_t *comm = create(job, PATIENCE, 0);
    struct ds_accel_ccl_comm_options other = {
        .struct_size = sizeof(other),
        .ranks_per_node = job->ranks_per_node,
        .timeout_ns = PATIENCE,
        .buffer_bytes = job->info.rank == 1 ? 8192 : 4096,
    };
    pid_t child;
    int ended = 1;

    REFUSED(ccl->create(&other, &comm, failed), DS_ACCEL_ERR_INVALID,
            "buffer_bytes of rank 1 differs");
    child = fork();
    if (child == 0) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        bool refused = ccl->barrier(comm, NULL, &error) == DS_ACCEL_ERR_STATE;

        ccl->destroy(comm);
        _exit(!refused || !strstr(error.message, "forked"));
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child && ended == 0, "in a child: %d", ended);
    CHECK(ccl->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "after the child");
    ccl->destroy(comm);
}

static const struct scenario {
    const char *name;
    void (*run)(struct job *job);
} scenarios[] = {
    {"results", results}, {"sample", sample}, {"mismatch", mismatch},
    {"leave", leave},     {"stop", stop},     {"lost", lost},
    {"options", options}, {"memory", memory}, {"nodes", nodes},
};

/* "2": that many ranks count as a node; "host:2": are on a host; "round:3": 3 hosts take ranks in
 * turns. */
static void read_places(struct job *job, const char *text)
{
    if (strncmp(text, "host:", 5) == 0)
        job->group = (uint32_t)strtoul(text + 5, NULL, 10);
    else if (strncmp(text, "round:", 6) == 0)
        job->rounds = (uint32_t)strtoul(text + 6, NULL, 10);
    else
        job->ranks_per_node = job->group = (uint32_t)strtoul(text, NULL, 10);
}

int ccl_run_rank(char **argv)
{
    struct job job = {
        .engine = (uint32_t)strtoul(argv[1], NULL, 10),
        .directory = argv[3],
        .is_full = ccl_is_full(),
    };
    char result[64];

    read_places(&job, argv[2]);
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (strcmp(argv[0], scenarios[i].name) == 0)
            scenarios[i].run(&job);
    snprintf(result, sizeof(result), "%u %u", checks - failures, failures);
    write_mark(&job, "result", result);
    /* Where MPI cannot be finalized, mpirun ends the others when one of them ends. */
    return !await_marks(&job, "result", job.info.size - job.lost);
}
