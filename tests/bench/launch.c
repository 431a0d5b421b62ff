/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The time of ds-accel run with ranks that end at once, beside bare C, and beside other launchers
 * where they are installed; the plan of a large job; and the cost of much output. The ranks are on
 * cpu, whose verdict is stored, as after the first job of a user.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 101u
#define MPI_ROUNDS 15u
#define TORCH_ROUNDS 3u
#define MANY_ROUNDS 11u
#define PLAN_ROUNDS 5u
#define MANY "256"
#define HOSTS 10000u
#define FLOW_MEGABYTES "4000"

/*
 * The time of DeepSpeed 0.19.6's launcher for two processes that end at once. Recorded in November
 * 2026 on a virtual machine with two AMD EPYC processors.
 */
#define DEEPSPEED_MS 6900.0

struct launchers {
    const char *program;
    char spawn[BENCH_PATH_SIZE];
    char hostfile[BENCH_PATH_SIZE];
    char logs[BENCH_PATH_SIZE]; /* of torchrun */
    const char *env[16];
    struct bench_report *report;
};

/* Measure two programs in turn; the samples of ours and theirs become medians. */
static void sample(const struct launchers *launchers, const char *const *ours,
                   const char *const *theirs, unsigned rounds, struct bench_row *row)
{
    double our_ms[ROUNDS];
    double their_ms[ROUNDS];

    bench_run(ours, launchers->env);
    bench_run(theirs, launchers->env);
    for (unsigned i = 0; i < rounds; i++) {
        our_ms[i] = bench_run(ours, launchers->env).ms;
        their_ms[i] = bench_run(theirs, launchers->env).ms;
    }
    row->ours = bench_median(our_ms, rounds);
    row->baseline = bench_median(their_ms, rounds);
}

static struct bench_row *add_row(const struct launchers *launchers, const char *name,
                                 const char *baseline_name, double goal)
{
    struct bench_row *row = bench_add(launchers->report);

    row->name = name;
    row->unit = "ms";
    row->baseline_name = baseline_name;
    row->goal = goal;
    row->goal_is_ratio = true;
    return row;
}

/* ---- two ranks ------------------------------------------------------------------------------ */

/* Add a row beside another launcher, if it is installed; argv[file] is its file. */
static void add_peer(const struct launchers *launchers, const char *const *ours,
                     const char *const *theirs, unsigned file, unsigned rounds, const char *name,
                     const char *baseline_name, double goal)
{
    if (access(theirs[file], R_OK) == 0) {
        sample(launchers, ours, theirs, rounds, add_row(launchers, name, baseline_name, goal));
    }
}

static void measure_two(const struct launchers *launchers)
{
    const char *binding = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "core" : "none";
    const char *const ours[] = {launchers->program, "run",
                                "--master_port",    "auto",
                                "--num_gpus",       "2",
                                "--bind-to",        binding,
                                "--no_python",      "--no_local_rank",
                                "/bin/true",        NULL};
    const char *const bare[] = {launchers->spawn, "2", "/bin/true", NULL};
    const char *const mpich[] = {"/usr/bin/mpirun.mpich", "-n", "2", "/bin/true", NULL};
    const char *const open_mpi[] = {
        "/usr/bin/mpirun.openmpi", "--oversubscribe", "-n", "2", "/bin/true", NULL};
    const char *const torchrun[] = {"/usr/bin/python3",
                                    "-m",
                                    "torch.distributed.run",
                                    "--redirects=1", /* 0, the default, fails in Debian 12 */
                                    "--tee=1",
                                    "--log_dir",
                                    launchers->logs,
                                    "--nproc_per_node=2",
                                    "--no_python",
                                    "/bin/true",
                                    "/usr/lib/python3/dist-packages/torch/distributed/run.py",
                                    NULL};
    struct bench_row *row = add_row(launchers, "run, 2 ranks", "bare C", 2);
    double ours_ms;

    sample(launchers, ours, bare, ROUNDS, row);
    ours_ms = row->ours;
    snprintf(row->note, sizeof(row->note),
             "bound and supervised ranks; bare C forks, binds and waits");
    add_peer(launchers, ours, mpich, 0, MPI_ROUNDS, "run, beside MPICH", "mpirun", 1.0 / 2);
    add_peer(launchers, ours, open_mpi, 0, MPI_ROUNDS, "run, beside Open MPI", "mpirun", 1.0 / 20);
    add_peer(launchers, ours, torchrun, 10, TORCH_ROUNDS, "run, beside torchrun", "torchrun",
             1.0 / 100);
    row = add_row(launchers, "run, beside DeepSpeed", "deepspeed", 1.0 / 1000);
    row->ours = ours_ms;
    row->baseline = DEEPSPEED_MS;
    snprintf(row->note, sizeof(row->note), "recorded on another machine, not measured here");
}

/* ---- many ranks, a large plan, much output -------------------------------------------------- */

static void measure_many(const struct launchers *launchers)
{
    const char *const ours[] = {launchers->program, "run", "--master_port", "auto",
                                "--num_gpus",       MANY,  "--no_python",   "--no_local_rank",
                                "/bin/true",        NULL};
    const char *const bare[] = {launchers->spawn, MANY, "/bin/true", NULL};
    struct bench_row *row = add_row(launchers, "run, " MANY " ranks", "bare C", 2);

    sample(launchers, ours, bare, MANY_ROUNDS, row);
    snprintf(row->note, sizeof(row->note), "ranks write to pipes");
}

static void measure_plan(const struct launchers *launchers)
{
    const char *const plan[] = {launchers->program, "run",    "--hostfile", launchers->hostfile,
                                "--dry-run",        "--json", "/bin/true",  NULL};
    FILE *file = fopen(launchers->hostfile, "w");
    double ms[PLAN_ROUNDS];
    double mib[PLAN_ROUNDS];
    struct bench_row *row;

    for (unsigned i = 0; file != NULL && i < HOSTS; i++) {
        fprintf(file, "worker-%u slots=8\n", i);
    }
    if (file == NULL || fclose(file) != 0) {
        bench_die("%s cannot be written", launchers->hostfile);
    }
    for (unsigned i = 0; i < PLAN_ROUNDS; i++) {
        struct bench_cost cost = bench_run(plan, launchers->env);

        ms[i] = cost.ms;
        mib[i] = (double)cost.rss_kib / 1024;
    }
    unlink(launchers->hostfile);
    row = add_row(launchers, "plan, 10,000 hosts x 8", NULL, 1000);
    row->ours = bench_median(ms, PLAN_ROUNDS);
    row->goal_is_ratio = false;
    row = add_row(launchers, "plan, peak memory", NULL, 100);
    row->ours = bench_median(mib, PLAN_ROUNDS);
    row->unit = "MiB";
    row->goal_is_ratio = false;
}

/* The program launch.py prints the processor times of the supervisor and of cat. */
static void measure_flow(const struct launchers *launchers)
{
    const char *const flow[] = {"tests/tools/launch.py", "figures", launchers->program,
                                FLOW_MEGABYTES, NULL};
    struct bench_row *row = add_row(launchers, "output of 4 ranks", "cat", 1.2);
    char text[1024];

    bench_capture(flow, launchers->env, text, sizeof(text));
    if (sscanf(text, "supervisor %lf\ncat %lf", &row->ours, &row->baseline) != 2) {
        bench_die("launch.py printed no figures");
    }
    row->ours *= 1000;
    row->baseline *= 1000;
    snprintf(row->note, sizeof(row->note), "processor time for " FLOW_MEGABYTES " MB of lines");
}

void bench_launch(const char *program, const char *dir, const char *const *env,
                  struct bench_report *report)
{
    static struct launchers launchers;
    static const char *const more[] = {
        "PATH=/usr/bin:/bin",       "HOME=/tmp",
        "DS_ACCELERATOR=cpu",       "DS_ACCEL_LOG=error",
        "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "PYTHONWARNINGS=ignore"};
    size_t count = 0;

    for (; env[count] != NULL; count++) {
        launchers.env[count] = env[count];
    }
    memcpy(launchers.env + count, more, sizeof(more));
    launchers.program = program;
    launchers.report = report;
    snprintf(launchers.spawn, sizeof(launchers.spawn), "%s/spawn", dir);
    snprintf(launchers.hostfile, sizeof(launchers.hostfile), "%s/hostfile", dir);
    snprintf(launchers.logs, sizeof(launchers.logs), "%s/torchrun", dir);
    measure_two(&launchers);
    measure_plan(&launchers);
    measure_many(&launchers);
    measure_flow(&launchers);
}
