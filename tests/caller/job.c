/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks that ds_accel_launch_run() leaves its caller's process as it was, whether the job
 * succeeds, fails or is refused, for callers with signal handlers, limits and descriptors of their
 * own; and that a job runs once. Each part runs in a separate process.
 * Usage: job
 */
#include "alloc/allocations.h"
#include "ds_accel_tools.h"
#include "state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PART_LIMIT_S 120
#define DEFAULT_PORT 29500

static char dir[64];
static volatile sig_atomic_t child_signals; /* SIGCHLD that the caller's handler has received */
static bool is_log_written;                 /* messages are written to stderr */

static bool fail(const char *what, const char *detail)
{
    printf("    %s: %s\n", what, detail);
    return false;
}

/* ---- what stands in a job's way ------------------------------------------------------------- */

static int held_fd = -1;
static char held_path[128]; /* borrowed by the job's arguments */
static bool has_path;

/* Listens on a port of this machine; 0: any port. Returns the port; 0: it is taken. */
static unsigned hold_port(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof(address);

    held_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(held_fd, (const struct sockaddr *)&address, size) != 0 || listen(held_fd, 1) != 0 ||
        getsockname(held_fd, (struct sockaddr *)&address, &size) != 0) {
        return 0;
    }
    return ntohs(address.sin_port);
}

static const char *take_port(void)
{
    static char port[16];

    snprintf(port, sizeof(port), "%u", hold_port(0));
    return port;
}

/* The directory of the ranks' logs cannot be made. */
static const char *put_file(void)
{
    snprintf(held_path, sizeof(held_path), "%s/logs.%d", dir, (int)getpid());
    has_path = true;
    held_fd = open(held_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return held_path;
}

/* The file of --save_pid cannot be made. */
static const char *put_directory(void)
{
    snprintf(held_path, sizeof(held_path), "/tmp/%d.deepspeed", (int)getpid());
    has_path = mkdir(held_path, 0700) == 0;
    return has_path ? "--save_pid" : "";
}

static const char *put_hostfile(void)
{
    snprintf(held_path, sizeof(held_path), "%s/hostfile", dir);
    has_path = true;
    held_fd = open(held_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return dprintf(held_fd, "nowhere.invalid slots=2\nelsewhere.invalid slots=2\n") > 0 ? held_path
                                                                                        : "";
}

static void give_way(void)
{
    if (held_fd >= 0) {
        close(held_fd);
        held_fd = -1;
    }
    if (has_path) {
        remove(held_path);
        has_path = false;
    }
}

/* ---- jobs ----------------------------------------------------------------------------------- */

enum {
    PORT_TAKEN = 6
};

static const struct scenario {
    const char *name;
    const char *script;            /* each of the two ranks is sh -c with it */
    const char *option;            /* an option of the launcher; NULL: none */
    const char *(*obstruct)(void); /* what prevents the start; returns the option's value */
    int32_t status;
    int32_t code;
    bool is_lasting; /* the job is refused, whatever the caller does */
} scenarios[] = {
    {.name = "a job that succeeds", .script = "exit 0"},
    {.name = "a job that fails", .script = "exit 3", .code = 3},
    {.name = "a rank that is killed", .script = "kill -9 $$", .code = 137},
    {.name = "a job with a terminal", .script = "exit 4", .option = "--pty", .code = 4},
    {.name = "a supervisor that is killed", .script = "kill -9 $PPID; sleep 1000", .code = 137},
    {.name = "a program that does not exist", .code = 127},
    [PORT_TAKEN] = {.name = "a port that is taken",
                    .script = "exit 5",
                    .option = "--master_port",
                    .obstruct = take_port,
                    .status = DS_ACCEL_ERR_BUSY,
                    .code = 5},
    {.name = "logs that cannot be made",
     .script = "exit 6",
     .option = "--enable_each_rank_log",
     .obstruct = put_file,
     .status = DS_ACCEL_ERR_INVALID,
     .code = 6},
    {.name = "a file of --save_pid that cannot be made",
     .script = "exit 7",
     .obstruct = put_directory,
     .status = DS_ACCEL_ERR_IO,
     .code = 7},
    {.name = "ranks on other hosts",
     .script = "exit 8",
     .option = "--hostfile",
     .obstruct = put_hostfile,
     .status = DS_ACCEL_ERR_UNSUPPORTED,
     .is_lasting = true},
};

#define SCENARIO_COUNT (sizeof(scenarios) / sizeof(scenarios[0]))

static void log_message(void *user_data, uint32_t level, const char *topic, const char *message)
{
    (void)user_data;
    (void)level;
    (void)topic;
    if (is_log_written) {
        dprintf(STDERR_FILENO, "%s\n", message);
    }
}

static ds_accel_launch_t *create(const struct scenario *scenario)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    const char *arguments[16] = {"-a", "mock", "--num_gpus", "2", "--no_python", "--no_local_rank"};
    const char *value = scenario->obstruct != NULL ? scenario->obstruct() : NULL;
    ds_accel_launch_t *launch = NULL;
    uint32_t count = 6;

    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_CACHE;
    options.log_sink = log_message;
    if (scenario->option != NULL) {
        arguments[count++] = scenario->option;
    }
    if (value != NULL) {
        arguments[count++] = value;
    }
    if (scenario->script != NULL) {
        arguments[count++] = "sh";
        arguments[count++] = "-c";
        arguments[count++] = scenario->script;
    } else {
        arguments[count++] = "/nowhere/program";
    }
    if (ds_accel_launch_create(&options, count, arguments, &launch) < 0) {
        fail("launch_create", ds_accel_last_error());
    }
    return launch;
}

/* Runs a job, and checks how that ends. */
static bool run(ds_accel_launch_t *launch, int32_t wanted, int32_t wanted_code)
{
    char *result = NULL;
    int32_t code = -1;
    int32_t status = ds_accel_launch_run(launch, &code, &result);
    bool right = status == wanted && (status < 0 || (code == wanted_code && result != NULL));

    if (!right) {
        printf("    %s, exit code %d: %s\n", ds_accel_status_name(status), (int)code,
               status < 0 ? ds_accel_last_error() : "");
    }
    ds_accel_free_text(result);
    return right;
}

/* A job that has run does not run again. */
static bool runs_once(ds_accel_launch_t *launch)
{
    return run(launch, DS_ACCEL_ERR_STATE, 0) &&
           (strstr(ds_accel_last_error(), "has run already") != NULL ||
            fail("message", ds_accel_last_error()));
}

/* ds_accel_launch_create() starts processes, too. */
static void discard_child_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigtimedwait(&set, NULL, &(struct timespec){0});
    child_signals = 0;
}

static bool play(const struct scenario *scenario)
{
    ds_accel_launch_t *launch = create(scenario);
    char *before;
    bool right;

    discard_child_signal();
    before = state_take();
    right = launch != NULL && run(launch, scenario->status, scenario->code);
    right = state_is_as_before(before, "") && right;
    free(before);
    give_way();
    if (right && scenario->status < 0) { /* nothing was started, so it may be tried again */
        before = state_take();
        right = run(launch, scenario->is_lasting ? scenario->status : DS_ACCEL_OK, scenario->code);
        right = state_is_as_before(before, "") && right;
        free(before);
    }
    if (right && !scenario->is_lasting) {
        before = state_take();
        right = runs_once(launch);
        right = state_is_as_before(before, "") && right;
        free(before);
    }
    ds_accel_launch_destroy(launch);
    if (child_signals > 0) {
        right = fail("SIGCHLD", "reached the caller's handler");
    }
    return right || fail("with", scenario->name);
}

static bool play_all(void)
{
    bool right = true;

    for (size_t i = 0; i < SCENARIO_COUNT; i++) {
        right = play(&scenarios[i]) && right;
    }
    return right;
}

/* ---- callers -------------------------------------------------------------------------------- */

static bool plain(void)
{
    return play_all();
}

static void on_child(int number)
{
    (void)number;
    child_signals++;
}

static void handle_children(int flags)
{
    struct sigaction action = {.sa_handler = on_child, .sa_flags = flags};

    sigaction(SIGCHLD, &action, NULL);
}

/* Each part of the state has a value of its own. */
static bool special(void)
{
    sigset_t mask;

    state_make_special();
    handle_children(SA_RESTART | SA_NOCLDSTOP);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGPIPE);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    return play_all();
}

static bool handler(void)
{
    handle_children(0);
    return play_all();
}

static bool children_ignored(void)
{
    signal(SIGCHLD, SIG_IGN);
    return play_all();
}

static bool children_not_waited_for(void)
{
    handle_children(SA_NOCLDWAIT);
    return play_all();
}

static bool no_streams(void)
{
    fflush(stdout);
    stdout = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10), "w"); /* for this test's messages */
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        close(fd);
    }
    return play_all();
}

static bool few_descriptors(void)
{
    const struct scenario refused = {
        .name = "few descriptors", .script = "exit 0", .status = DS_ACCEL_ERR_LIMIT};
    struct rlimit limit = {16, 32};
    ds_accel_launch_t *launch = create(&refused);
    char *before;
    bool right;

    setrlimit(RLIMIT_NOFILE, &limit);
    before = state_take();
    right = launch != NULL && run(launch, DS_ACCEL_ERR_LIMIT, 0);
    right = state_is_as_before(before, "") && right;
    free(before);
    ds_accel_launch_destroy(launch);
    return right;
}

/* SIGCHLD of a child of the caller, pending before the job is refused, still reaches it. */
static bool pending_child_signal_of(bool is_handled)
{
    ds_accel_launch_t *launch = create(&scenarios[PORT_TAKEN]);
    sigset_t mask;
    sigset_t pending;
    pid_t child;
    char *before;
    bool right;

    if (is_handled) {
        handle_children(0);
    }
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    discard_child_signal();
    child = fork();
    if (child == 0) {
        _exit(9);
    }
    waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    before = state_take();
    right = launch != NULL && run(launch, DS_ACCEL_ERR_BUSY, 0);
    if (waitpid(child, NULL, WNOHANG) != child) {
        right = fail("the caller's child", "was reaped by a job that was not started");
    }
    sigpending(&pending);
    if (sigismember(&pending, SIGCHLD) != 1) {
        right = fail("SIGCHLD", "is not pending any more");
    }
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    if (is_handled && child_signals != 1) {
        right = fail("SIGCHLD", "did not reach the caller");
    }
    free(before);
    give_way();
    ds_accel_launch_destroy(launch);
    return right;
}

static bool pending_child_signal(void)
{
    return pending_child_signal_of(true);
}

static bool pending_default_signal(void)
{
    return pending_child_signal_of(false);
}

/* A message to a stderr without a reader does not kill the caller. */
static bool closed_stderr(void)
{
    const struct scenario scenario = {.name = "a message", .script = "exit 0"};
    int ends[2];
    ds_accel_launch_t *launch = create(&scenario);
    char *before;
    bool right;

    hold_port(DEFAULT_PORT); /* or another process holds it already */
    if (launch == NULL || pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) {
        return fail("pipe", strerror(errno));
    }
    close(ends[0]);
    signal(SIGPIPE, SIG_DFL);
    is_log_written = true;
    before = state_take();
    right = run(launch, DS_ACCEL_OK, 0);
    right = state_is_as_before(before, "") && right;
    free(before);
    give_way();
    ds_accel_launch_destroy(launch);
    return right;
}

/* Fails each allocation that the caller's process makes. */
static bool no_memory(void)
{
    const struct scenario scenario = {.name = "no memory", .script = "exit 9", .code = 9};
    unsigned refused = 0;
    bool right = true;
    bool is_complete = false;

    if (!allocations_can_fail()) {
        puts("job: not tested: allocations that fail: the sanitizer owns malloc()");
        return true;
    }
    allocations_spare_children();
    for (unsigned long at = 1; right && !is_complete; at++) {
        ds_accel_launch_t *launch = create(&scenario);
        char *before = state_take();
        char *result = NULL;
        int32_t code = -1;
        int32_t status;
        long left;

        allocations_count(at);
        status = ds_accel_launch_run(launch, &code, &result);
        is_complete = allocations_stop(&left) < at;
        refused += status == DS_ACCEL_ERR_NO_MEMORY;
        right = state_is_as_before(before, "");
        if (status < 0 ? status != DS_ACCEL_ERR_NO_MEMORY : code != 9) {
            right = fail(ds_accel_status_name(status), ds_accel_last_error());
        }
        if (!right) {
            printf("    allocation %lu fails\n", at);
        }
        ds_accel_free_text(result);
        ds_accel_launch_destroy(launch);
        free(before);
    }
    return right && (refused > 5 || fail("allocations", "did not fail"));
}

/* ---- running the parts ---------------------------------------------------------------------- */

static const struct part {
    const char *name;
    bool (*run)(void);
} parts[] = {
    {"a plain caller", plain},
    {"a caller with a state of its own", special},
    {"a handler of SIGCHLD", handler},
    {"SIGCHLD is ignored", children_ignored},
    {"SA_NOCLDWAIT", children_not_waited_for},
    {"no standard streams", no_streams},
    {"few descriptors", few_descriptors},
    {"SIGCHLD is pending", pending_child_signal},
    {"SIGCHLD is pending, without a handler", pending_default_signal},
    {"stderr without a reader", closed_stderr},
    {"allocations that fail", no_memory},
};

static bool wait_for(pid_t pid)
{
    int status;

    for (int i = 0; i < PART_LIMIT_S * 100; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return fail("it took", "too long");
}

static bool run_apart(bool (*part)(void))
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        ds_accel_launch_t *launch = create(&scenarios[0]); /* loads what stays loaded */
        bool right;

        ds_accel_launch_destroy(launch);
        right = part();
        fflush(stdout);
        _exit(right ? 0 : 1);
    }
    return pid > 0 && wait_for(pid);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(void)
{
    unsigned failed = 0;
    unsigned passed = 0;

    snprintf(dir, sizeof(dir), "/tmp/ds-accel-job-XXXXXX");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    setenv("DS_ACCEL_MOCK_DEVICE_COUNT", "2", 1);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        bool right = run_apart(parts[i].run);

        passed += right;
        failed += !right;
        if (!right) {
            printf("FAILED: %s\n", parts[i].name);
        }
        fflush(stdout);
    }
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    printf("job: %u passed, %u failed\n", passed, failed);
    return failed != 0;
}
