/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op ccl_comm: ccl_comm FILE.so
 *
 * This program starts itself with mpirun of Open MPI and of MPICH, as FILE.so SCENARIO ENGINE
 * RANKS_PER_NODE DIRECTORY. So many ranks count as a node, which makes one machine several nodes.
 * FULL=1 has more ranks and all cases.
 */
#include "ops/ccl_comm_results.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE ((uint64_t)240 * 1000000000) /* of what succeeds */
#define LATE ((uint64_t)20 * 1000000000)      /* of what does not */
#define SMALL_BUFFER 4096

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_full(void)
{
    const char *full = getenv("FULL");

    return full && *full && strcmp(full, "0") != 0;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct job {
    uint32_t engine;
    uint32_t ranks_per_node;
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
    uint32_t group = job->ranks_per_node ? job->ranks_per_node : info->size;

    CHECK(info->engine == job->engine, "engine %u", info->engine);
    CHECK(strstr(info->version, job->engine == DS_ACCEL_CCL_COMM_MPICH ? "MPICH" : "Open MPI"),
          "version \"%s\"", info->version);
    CHECK(info->nodes == (info->size + group - 1) / group, "%u nodes", info->nodes);
    CHECK(info->node == info->rank / group && info->local_rank == info->rank % group,
          "rank %u: node %u, local rank %u", info->rank, info->node, info->local_rank);
}

/* Every kind, type and reduction with counts around limits of messages and pieces. */
static void run_cases(struct job *job, ds_accel_comm_t *comm, const size_t *counts, size_t count)
{
    for (unsigned i = 0; i < KINDS * 5 * 3; i++) {
        struct test_case test = {
            .kind = (enum kind)(i % KINDS),
            .dtype = dtypes[i / KINDS % 5],
            .reduction = i / KINDS / 5 + 1,
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

static void results(struct job *job)
{
    static const size_t small[] = {1, 7, 0, 100, 511, 513, 1024, 4099, 30001};
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
    for (uint32_t culprit = 0; culprit < 2; culprit++) {
        ds_accel_comm_t *comm = create(job, PATIENCE, 0);
        uint32_t other = culprit ? job->info.size - 1 : 1;
        int64_t numbers[3] = {0};
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_comm_call call = {
            .struct_size = sizeof(call),
            .dtype = DS_ACCEL_DTYPE_INT64,
            .reduction = DS_ACCEL_COMM_MAX,
            .in = numbers,
            .out = numbers,
            .count = job->info.rank == other ? 3 : 2,
        };
        char text[64];
        int32_t status = ccl->all_reduce(comm, &call, &error);

        snprintf(text, sizeof(text), "rank %u", other);
        check_failure(comm, status, &error, DS_ACCEL_ERR_INVALID, text);
        CHECK(strstr(error.message, "all_reduce(int64, max, count 2)") &&
                  strstr(error.message, "all_reduce(int64, max, count 3)") &&
                  strstr(error.message, "call number 1"),
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
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s-%u", job->directory, what, job->info.rank);
    file = fopen(path, "we");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

/* Wait until so many ranks have a mark; false: they do not come. */
static bool await_marks(const struct job *job, const char *what, uint32_t wanted)
{
    uint64_t begin = now_ns();
    struct timespec pause = {.tv_nsec = 20000000};

    while (now_ns() - begin < PATIENCE) {
        uint32_t found = 0;

        for (uint32_t rank = 0; rank < job->info.size; rank++) {
            char path[256];

            snprintf(path, sizeof(path), "%s/%s-%u", job->directory, what, rank);
            found += access(path, F_OK) == 0;
        }
        if (found >= wanted)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
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
    uint64_t begin;
    int32_t status;
    char text[64];

    begin = now_ns(); /* before any rank begins the call that fails */
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
    {"results", results}, {"mismatch", mismatch}, {"leave", leave},
    {"stop", stop},       {"options", options},
};

static int run_rank(char **argv)
{
    struct job job = {
        .engine = (uint32_t)strtoul(argv[1], NULL, 10),
        .ranks_per_node = (uint32_t)strtoul(argv[2], NULL, 10),
        .directory = argv[3],
        .is_full = is_full(),
    };
    char result[64];

    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (strcmp(argv[0], scenarios[i].name) == 0)
            scenarios[i].run(&job);
    snprintf(result, sizeof(result), "%u %u", checks - failures, failures);
    write_mark(&job, "result", result);
    /* Where MPI cannot be finalized, mpirun ends the others when one of them ends. */
    return !await_marks(&job, "result", job.info.size);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static const char *program;
static const char *op_file;
static char directory[] = "/tmp/ds-accel-ccl_comm-XXXXXX";

static void clear_directory(void)
{
    DIR *list = opendir(directory);
    struct dirent *entry;

    if (!list)
        return;
    while ((entry = readdir(list)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
}

/* Add the checks of the ranks; return how many have ended. */
static unsigned read_results(unsigned ranks)
{
    unsigned ended = 0;

    for (unsigned rank = 0; rank < ranks; rank++) {
        char path[256];
        unsigned passed;
        unsigned failed;
        FILE *file;

        snprintf(path, sizeof(path), "%s/result-%u", directory, rank);
        file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%u %u", &passed, &failed) == 2) {
            ended++;
            checks += passed;
            failures += failed;
        }
        fclose(file);
    }
    return ended;
}

/* Run a command; check that so many ranks end. Ranks that cannot finalize MPI let mpirun fail. */
static void run_command(char *const *command, const char *scenario, unsigned ranks)
{
    unsigned ended;
    pid_t child = fork();

    if (child == 0) {
        int none = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(none, 1);
        alarm(600); /* mpirun ends its ranks when it ends */
        execvp(command[0], command);
        _exit(127);
    }
    CHECK(child > 0 && waitpid(child, NULL, 0) == child, "waitpid: %s", strerror(errno));
    ended = read_results(ranks);
    CHECK(ended == ranks, "%s, %s: %u of %u ranks have ended", command[0], scenario, ended, ranks);
}

/* Run a scenario with ranks; 0 ranks: without mpirun. */
static void run_job(uint32_t engine, const char *scenario, unsigned ranks, unsigned ranks_per_node)
{
    char *command[20] = {NULL};
    char texts[3][16];
    unsigned end = 0;

    snprintf(texts[0], sizeof(texts[0]), "%u", ranks);
    snprintf(texts[1], sizeof(texts[1]), "%u", engine);
    snprintf(texts[2], sizeof(texts[2]), "%u", ranks_per_node);
    if (ranks && engine == DS_ACCEL_CCL_COMM_OPENMPI) {
        command[end++] = (char *)"mpirun.openmpi";
        command[end++] = (char *)"--allow-run-as-root";
        command[end++] = (char *)"--oversubscribe";
        command[end++] = (char *)"-quiet";
    } else if (ranks) {
        command[end++] = (char *)"mpirun.mpich";
    }
    if (ranks) {
        command[end++] = (char *)"-np";
        command[end++] = texts[0];
    }
    command[end++] = (char *)(uintptr_t)program;
    command[end++] = (char *)(uintptr_t)op_file;
    command[end++] = (char *)(uintptr_t)scenario;
    command[end++] = texts[1];
    command[end++] = texts[2];
    command[end++] = directory;
    if (ranks)
        unsetenv("OPS_ENGINE_BY_NUMBER");
    else
        setenv("OPS_ENGINE_BY_NUMBER", "1", 1);
    run_command(command, scenario, ranks ? ranks : 1);
    clear_directory();
}

static void run_jobs(uint32_t engine)
{
    const char *seed = getenv("SEED");

    run_job(engine, "results", 0, 0);
    run_job(engine, "results", 2, 1);
    run_job(engine, "results", engine == DS_ACCEL_CCL_COMM_OPENMPI ? 3 : 4, 2);
    run_job(engine, "mismatch", 4, 2);
    run_job(engine, "leave", 4, 2);
    run_job(engine, "options", 2, 0);
    if (is_full() || (seed ? strtoul(seed, NULL, 10) : 0) % 2 == engine % 2) /* it takes LATE */
        run_job(engine, "stop", 4, 2);
    if (!is_full())
        return;
    run_job(engine, "results", 3, 2);
    run_job(engine, "results", 4, 2);
    run_job(engine, "leave", 2, 1);
    run_job(engine, "results", 4, 1);
    run_job(engine, "results", 4, 0);
    run_job(engine, "results", 7, 3);
    run_job(engine, "results", 8, 2);
    run_job(engine, "mismatch", 3, 1);
    run_job(engine, "mismatch", 3, 0);
    run_job(engine, "stop", 3, 1);
    run_job(engine, "stop", 3, 0);
    run_job(engine, "leave", 3, 0);
}

/* What needs no MPI. */
static void check_arguments(void)
{
    struct ds_accel_ccl_comm_options options = {.struct_size = sizeof(options)};
    ds_accel_comm_t *comm = NULL;

    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    REFUSED(ccl->create(NULL, &comm, failed), DS_ACCEL_ERR_INVALID, "options is NULL");
    REFUSED(ccl->create(&options, NULL, failed), DS_ACCEL_ERR_INVALID, "comm_out is NULL");
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_UNSUPPORTED,
            "neither Open MPI nor MPICH is loaded");
    ERROR_SIZES(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_UNSUPPORTED);
    options.struct_size = 8;
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "struct_size is 8");
    options.struct_size = sizeof(options);
    options.flags = 4;
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "flags");
    options.flags = 0;
    options.engine = 3;
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "engine is 3");
    options.engine = 0;
    options.library = "libmpi-absent.so.40";
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "library needs engine");
    for (options.engine = 1; options.engine < 3; options.engine++)
        REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_NOT_FOUND,
                "libmpi-absent.so.40");
    options.engine = 1;
    options.library = "libm.so.6";
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_NOT_FOUND, "lacks MPI_Initialized");
    options.buffer_bytes = ((uint64_t)1 << 30) + 1;
    REFUSED(ccl->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "buffer_bytes");
    REFUSED(ccl->barrier(NULL, NULL, failed), DS_ACCEL_ERR_INVALID, "comm is NULL");
    REFUSED(ccl->info(NULL, NULL, failed), DS_ACCEL_ERR_INVALID, "comm is NULL");
    ccl->destroy(NULL);
}

static bool has_program(const char *name)
{
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t length = strcspn(path, ":");
        char file[512];

        snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* MPI has some. */
static void ignore_leaks(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char longer[1024];

    snprintf(longer, sizeof(longer), "%s%sdetect_leaks=0", options ? options : "",
             options ? ":" : "");
    setenv("ASAN_OPTIONS", longer, 1);
}

int main(int argc, char **argv)
{
    ccl = (const struct ds_accel_ccl_comm *)open_op(argc > 1 ? argv[1] : NULL, "ccl_comm");
    if (argc == 6)
        return run_rank(argv + 2);
    program = argv[0];
    op_file = argv[1];
    check_arguments();
    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    ignore_leaks();
    if (has_program("mpirun.openmpi"))
        run_jobs(DS_ACCEL_CCL_COMM_OPENMPI);
    else
        printf("ccl_comm: no Open MPI, not tested with it\n");
    if (has_program("mpirun.mpich"))
        run_jobs(DS_ACCEL_CCL_COMM_MPICH);
    else
        printf("ccl_comm: no MPICH, not tested with it\n");
    rmdir(directory);
    return finish("ccl_comm");
}
