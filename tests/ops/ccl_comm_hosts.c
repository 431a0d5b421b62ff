/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op ccl_comm on several hosts (hosts.h): ccl_comm_hosts FILE.so
 *
 * Results across two and three hosts whose packets are delayed, and hosts and ranks that are lost.
 * By default, a pairwise sample of cases, and one loss for each engine; FULL=1 has all.
 */
#include "ops/ccl_comm_ranks.h"
#include "ops/ccl_comm_results.h"
#include "ops/hosts.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DELAY_US 1000
#define PAUSE_NS 20000000
#define AT_ONCE 4 /* jobs, which mostly wait */
#define OPENMPI DS_ACCEL_CCL_COMM_OPENMPI
#define MPICH DS_ACCEL_CCL_COMM_MPICH

static const char *program;
static const char *op_file;
static char root[128];      /* directory of a job's hosts */
static char shell[160];     /* the remote shell */
static char directory[160]; /* of a job */

enum action {
    NOTHING,
    KILL, /* a rank */
    STOP, /* a rank */
    ALL,  /* all ranks of a host are killed */
    HOST, /* a host ends, with the launcher's daemon */
    CUT,  /* a host is cut off */
};

struct job {
    const char *scenario;
    uint32_t engine;
    unsigned ranks;
    unsigned hosts;
    enum action action;
    unsigned rank; /* of the action */
    bool in_turns; /* hosts take ranks in turns */
    bool is_quick; /* not only with FULL=1 */
};

/* MPICH's launcher kills the other ranks of a host when one of them ends. Where a rank is killed
 * whose node has others, nobody waits for the deadline. */
static const struct job jobs[] = {
    {"sample", OPENMPI, 4, 2, NOTHING, 0, true, true},
    {"sample", OPENMPI, 3, 3, NOTHING, 0, false, true},
    {"sample", MPICH, 4, 2, NOTHING, 0, true, true},
    {"sample", MPICH, 3, 3, NOTHING, 0, false, true},
    {"lost", OPENMPI, 4, 2, KILL, 3, false, true},
    {"lost", OPENMPI, 4, 2, KILL, 2, false, false},
    {"lost", OPENMPI, 6, 3, KILL, 0, false, false},
    {"lost", OPENMPI, 4, 2, ALL, 1, false, false},
    {"lost", OPENMPI, 6, 3, STOP, 2, false, false},
    {"lost", OPENMPI, 6, 3, HOST, 3, false, false},
    {"lost", OPENMPI, 4, 2, CUT, 3, false, false},
    {"lost", OPENMPI, 6, 3, CUT, 1, false, false},
    {"lost", MPICH, 4, 2, ALL, 1, false, false},
    {"lost", MPICH, 6, 3, ALL, 5, false, false},
    {"lost", MPICH, 4, 2, STOP, 1, false, false},
    {"lost", MPICH, 6, 3, STOP, 2, false, true},
    {"lost", MPICH, 4, 2, HOST, 3, false, false},
    {"lost", MPICH, 4, 2, CUT, 3, false, false},
    {"lost", MPICH, 6, 3, CUT, 1, false, false},
    {"results", OPENMPI, 4, 2, NOTHING, 0, true, false},
    {"results", OPENMPI, 6, 3, NOTHING, 0, false, false},
    {"mismatch", OPENMPI, 6, 3, NOTHING, 0, true, false},
    {"leave", OPENMPI, 6, 3, NOTHING, 0, true, false},
    {"results", MPICH, 2, 2, NOTHING, 0, false, false},
    {"results", MPICH, 6, 3, NOTHING, 0, true, false},
    {"mismatch", MPICH, 6, 3, NOTHING, 0, true, false},
    {"leave", MPICH, 6, 3, NOTHING, 0, true, false},
};

/* Of all jobs, which run in processes of their own. */
static struct totals {
    atomic_uint passed;
    atomic_uint failed;
    atomic_bool is_refused;
} * totals;

/* ---- mpirun ---------------------------------------------------------------------------------- */

/* A command of words. */
struct command {
    char *words[48];
    unsigned count;
};

static void add(struct command *command, const char *word)
{
    command->words[command->count++] = (char *)(uintptr_t)word;
}

static void add_all(struct command *command, const char *const *words)
{
    while (*words)
        add(command, *words++);
}

/* Daemons of Open MPI find the head, and ranks each other, by the addresses of the devices. Both
 * engines let the ranks go on without one that has ended. */
static void add_openmpi(struct command *command, const struct job *job, const char *hosts)
{
    const char *const words[] = {
        "mpirun.openmpi",
        "--allow-run-as-root",
        "--oversubscribe",
        "-quiet",
        "--enable-recovery",
        "--mca",
        "plm_rsh_agent",
        shell,
        "--mca",
        "btl",
        "self,vader,tcp",
        "--mca",
        "btl_tcp_if_include",
        HOSTS_SUBNET,
        "--mca",
        "oob_tcp_if_include",
        HOSTS_SUBNET,
        "--map-by",
        job->in_turns ? "node" : "slot",
        "--host",
        hosts,
        NULL,
    };

    add_all(command, words);
}

static void add_mpich(struct command *command, const char *per_host, const char *hosts)
{
    const char *const words[] = {
        "mpirun.mpich",
        "-disable-auto-cleanup",
        "-launcher",
        "rsh",
        "-launcher-exec",
        shell,
        "-iface",
        HOSTS_DEVICE,
        "-genv",
        "UCX_NET_DEVICES",
        HOSTS_DEVICE,
        "-ppn",
        per_host,
        "-hosts",
        hosts,
        NULL,
    };

    add_all(command, words);
}

/* Start mpirun; its output goes to a file. */
static pid_t start(const struct job *job)
{
    struct command command = {.count = 0};
    char hosts[64] = "";
    char texts[4][16];
    unsigned per_host = job->ranks / job->hosts;
    pid_t child;

    snprintf(texts[0], sizeof(texts[0]), "%u", job->in_turns ? 1 : per_host);
    snprintf(texts[1], sizeof(texts[1]), "%u", job->ranks);
    snprintf(texts[2], sizeof(texts[2]), "%u", job->engine);
    snprintf(texts[3], sizeof(texts[3]), job->in_turns ? "round:%u" : "host:%u",
             job->in_turns ? job->hosts : per_host);
    for (unsigned host = 1; host <= job->hosts; host++) {
        size_t length = strlen(hosts);
        const char *comma = length ? "," : "";

        if (job->engine == DS_ACCEL_CCL_COMM_OPENMPI)
            snprintf(hosts + length, sizeof(hosts) - length, "%sh%u:%u", comma, host, per_host);
        else
            snprintf(hosts + length, sizeof(hosts) - length, "%sh%u", comma, host);
    }
    if (job->engine == DS_ACCEL_CCL_COMM_OPENMPI)
        add_openmpi(&command, job, hosts);
    else
        add_mpich(&command, texts[0], hosts);
    add(&command, "-np");
    add(&command, texts[1]);
    add(&command, program);
    add(&command, op_file);
    add(&command, job->scenario);
    add(&command, texts[2]);
    add(&command, texts[3]);
    add(&command, directory);
    child = fork();
    if (child == 0) {
        char path[160];
        int output;

        snprintf(path, sizeof(path), "%s/output", root);
        output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        dup2(output, 1);
        dup2(output, 2);
        execvp(command.words[0], command.words);
        _exit(127);
    }
    return child;
}

static void show_output(void)
{
    char path[160];
    char line[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/output", root);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        fputs(line, stderr);
    if (file)
        fclose(file);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void wait_a_little(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

/* Wait for the end of mpirun, at most for the time that ranks have. */
static bool await_end(pid_t mpirun)
{
    for (uint64_t waited = 0; waited < CCL_PATIENCE_NS; waited += PAUSE_NS) {
        if (waitpid(mpirun, NULL, WNOHANG) == mpirun)
            return true;
        wait_a_little();
    }
    kill(mpirun, SIGKILL);
    waitpid(mpirun, NULL, 0);
    return false;
}

static bool begin(const struct job *job)
{
    const char *failed;

    snprintf(directory, sizeof(directory), "%s/job", root);
    mkdir(directory, 0755);
    failed = hosts_start(job->hosts + 1, DELAY_US);
    CHECK(!failed, "%s", failed ? failed : "");
    return failed == NULL;
}

static void end(const struct job *job, unsigned wanted)
{
    unsigned before = failures;
    unsigned ended = ccl_read_results(directory, job->ranks);

    CHECK(ended == wanted, "engine %u, %s, %u ranks, %u hosts: %u of %u ranks have ended",
          job->engine, job->scenario, job->ranks, job->hosts, ended, wanted);
    if (failures != before)
        show_output();
    hosts_stop();
    ccl_clear(directory);
}

static void run_job(const struct job *job)
{
    if (!begin(job))
        return;
    CHECK(await_end(start(job)), "mpirun does not end");
    end(job, job->ranks);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* What the ranks read about the loss, by enum action. */
static const char *const actions[] = {"", "kill", "stop", "kill", "host", "cut"};

/* Lose a rank, or the ranks of its host; return how many will not end. */
static unsigned lose(const struct job *job)
{
    enum action action = job->action;
    unsigned rank = job->rank;
    unsigned per_host = job->ranks / job->hosts;
    unsigned host = rank / per_host;
    bool is_whole = action >= ALL;
    char text[128];

    snprintf(text, sizeof(text), "%s %u", actions[action], rank);
    for (unsigned i = host * per_host; i < (host + 1) * per_host && is_whole; i++) {
        size_t length = strlen(text);

        if (i != rank)
            snprintf(text + length, sizeof(text) - length, " %u", i);
    }
    if (action == HOST)
        hosts_kill(host + 1);
    if (action == CUT)
        hosts_cut(host + 1);
    ccl_write_mark(directory, "lost", 0, text);
    if (action == CUT)
        return 0;
    return is_whole ? per_host : 1;
}

/* Processes of ranks end soon after their results. */
static bool ranks_end(unsigned stopped)
{
    for (uint64_t waited = 0; waited < CCL_PATIENCE_NS; waited += PAUSE_NS) {
        if (hosts_count_processes("ccl_comm_hosts") <= stopped)
            return true;
        wait_a_little();
    }
    return false;
}

static void run_loss(const struct job *job)
{
    unsigned survivors = job->ranks;
    pid_t mpirun;

    if (!begin(job))
        return;
    mpirun = start(job);
    CHECK(ccl_await_marks(directory, "ready", job->ranks, job->ranks), "the ranks do not start");
    survivors -= lose(job);
    if (job->action == HOST) { /* mpirun ends a job that has lost a daemon */
        survivors = 0;
        CHECK(await_end(mpirun), "mpirun does not end");
    }
    CHECK(ccl_await_marks(directory, "result", job->ranks, survivors),
          "engine %u, %s, rank %u of %u", job->engine, actions[job->action], job->rank, job->ranks);
    CHECK(ranks_end(job->action == STOP), "%u processes of ranks are left",
          hosts_count_processes("ccl_comm_hosts"));
    if (job->action != HOST) { /* it may wait for what is lost */
        kill(mpirun, SIGKILL);
        waitpid(mpirun, NULL, 0);
    }
    end(job, survivors);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Run a job on hosts of its own; return the exit status. */
static int run_alone(const struct job *job, const char *parent)
{
    const char *refused;

    snprintf(root, sizeof(root), "%s/%zu", parent, (size_t)(job - jobs));
    snprintf(shell, sizeof(shell), "%s/enter", root);
    if (mkdir(root, 0755)) {
        perror(root);
        return 1;
    }
    refused = hosts_enter(root);
    if (refused && !atomic_exchange(&totals->is_refused, true))
        printf("ccl_comm_hosts: hosts are not permitted here, not tested: %s\n", refused);
    if (refused)
        return 0;
    setenv("TMPDIR", root, 1);
    checks = failures = 0;
    if (job->action == NOTHING)
        run_job(job);
    else
        run_loss(job);
    totals->passed += checks - failures;
    totals->failed += failures;
    return 0;
}

/* Start a job if it belongs to this run. */
static bool start_job(const struct job *job, const char *parent)
{
    pid_t child;

    if ((!job->is_quick && !ccl_is_full()) || totals->is_refused ||
        !ccl_has_program(job->engine == OPENMPI ? "mpirun.openmpi" : "mpirun.mpich"))
        return false;
    fflush(NULL);
    child = fork();
    if (child == 0)
        exit(run_alone(job, parent));
    CHECK(child > 0, "fork");
    return child > 0;
}

static void await_job(void)
{
    int status = 0;

    CHECK(wait(&status) > 0 && status == 0, "a job has ended with status %d", status);
}

static void run_all(const char *parent)
{
    unsigned running = 0;

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        if (running == AT_ONCE) {
            await_job();
            running--;
        }
        running += start_job(&jobs[i], parent);
    }
    while (running--)
        await_job();
    checks += totals->passed + totals->failed;
    failures += totals->failed;
}

int main(int argc, char **argv)
{
    char parent[] = "/tmp/ds-accel-hosts-XXXXXX";

    if (hosts_is_shell(argv[0]))
        return hosts_shell(argc, argv);
    ccl = (const struct ds_accel_ccl_comm *)open_op(argc > 1 ? argv[1] : NULL, "ccl_comm");
    if (argc == CCL_RANK_ARGUMENTS)
        return ccl_run_rank(argv + 2);
    program = realpath(argv[0], NULL);
    op_file = realpath(argv[1], NULL);
    totals = (struct totals *)mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!program || !op_file || totals == MAP_FAILED || !mkdtemp(parent)) {
        perror(argv[0]);
        return 1;
    }
    ccl_ignore_leaks();
    if (!ccl_has_program("mpirun.openmpi") || !ccl_has_program("mpirun.mpich"))
        printf("ccl_comm_hosts: Open MPI or MPICH is missing, not tested with it\n");
    run_all(parent);
    nftw(parent, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return finish("ccl_comm_hosts");
}
