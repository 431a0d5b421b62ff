/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op ccl_comm: ccl_comm FILE.so
 *
 * This program starts itself with mpirun of Open MPI and of MPICH. So many ranks count as a node,
 * which makes one machine several nodes. FULL=1 has more ranks and all cases.
 */
#include "ops/ccl_comm_ranks.h"
#include "ops/ccl_comm_results.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;
static const char *op_file;
static char directory[] = "/tmp/ds-accel-ccl_comm-XXXXXX";

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
    ended = ccl_read_results(directory, ranks);
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
    ccl_clear(directory);
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
    run_job(engine, "memory", 3, 1);
    run_job(engine, "nodes", 3, 0);
    if (ccl_is_full() || (seed ? strtoul(seed, NULL, 10) : 0) % 2 == engine % 2) /* it takes LATE */
        run_job(engine, "stop", 4, 2);
    if (!ccl_is_full())
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

int main(int argc, char **argv)
{
    ccl = (const struct ds_accel_ccl_comm *)open_op(argc > 1 ? argv[1] : NULL, "ccl_comm");
    if (argc == CCL_RANK_ARGUMENTS)
        return ccl_run_rank(argv + 2);
    program = argv[0];
    op_file = argv[1];
    check_arguments();
    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    ccl_ignore_leaks();
    if (ccl_has_program("mpirun.openmpi"))
        run_jobs(DS_ACCEL_CCL_COMM_OPENMPI);
    else
        printf("ccl_comm: no Open MPI, not tested with it\n");
    if (ccl_has_program("mpirun.mpich"))
        run_jobs(DS_ACCEL_CCL_COMM_MPICH);
    else
        printf("ccl_comm: no MPICH, not tested with it\n");
    rmdir(directory);
    return finish("ccl_comm");
}
