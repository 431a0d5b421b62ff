/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks that detection does not affect its caller, with every faulty plugin of the fixtures, and
 * that it works in callers of all kinds: with threads, children and signal handlers of their own,
 * with closed descriptors, at their limits, and when they are killed. This is a plain program,
 * because Criterion has threads and handlers of its own. Each part runs in a separate process.
 * Usage: caller BUILD [PART]
 */
#include "clock.h"
#include "ds_accel.h"
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PART_LIMIT_S 120
#define LONG_MS 20000 /* longer than any probe that returns takes */
#define SHORT_MS 400  /* timeout for probes that never return */
/* Upper bound for the time that a call takes after its deadline; not a tight bound. */
#define GRACE_S 15

static char build[512];
static char dir[64];
static const char *const passed_by = "neighbour";

static bool fail(const char *what, const char *detail)
{
    printf("    %s: %s\n", what, detail);
    return false;
}

/* ---- detection ------------------------------------------------------------------------------ */

struct setting {
    const char *fault; /* directory of one fault among the fixtures; NULL: all faults together */
    const char *directory; /* another directory of plugins, instead of fault */
    const char *more;      /* members of the configuration, beginning with a comma */
    /* Order of detection; NULL: all plugins of the directory, followed by the neighbour */
    const char *order;
    const char *accelerator;
    bool is_in_process;
    int timeout_ms;
    int parallel;
};

static char warnings[8192];
static size_t warned_bytes;     /* bytes of all warnings, including those that are not stored */
static unsigned left_out;       /* number of warnings which say that more warnings are left out */
static atomic_bool is_log_slow; /* the log function is slower than a plugin that logs */
static atomic_bool is_asking;   /* true while ds_accel_detect() runs */
static atomic_bool is_over;     /* tells the threads of a part to exit */

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void keep_warning(void *user_data, uint32_t level, const char *topic, const char *message)
{
    size_t length = strlen(warnings);

    (void)user_data;
    (void)level;
    snprintf(warnings + length, sizeof(warnings) - length, "%s: %s\n", topic, message);
    warned_bytes += strlen(message);
    left_out += strstr(message, "the rest is dropped") != NULL;
    if (is_log_slow) {
        wait_ms(1);
    }
}

/*
 * Writes the order of detection: all plugins of a directory before the neighbour, except plugins
 * that do nothing wrong.
 */
static void write_order(FILE *file, const char *directory)
{
    DIR *plugins = opendir(directory);
    const struct dirent *entry;

    while (plugins != NULL && (entry = readdir(plugins)) != NULL) {
        int length = (int)strlen(entry->d_name);

        if (length > 12 && strncmp(entry->d_name, "ds_accel_", 9) == 0 &&
            strncmp(entry->d_name, "ds_accel_slow", 13) != 0) {
            fprintf(file, "\"%.*s\", ", length - 12, entry->d_name + 9);
        }
    }
    if (plugins != NULL) {
        closedir(plugins);
    }
    fprintf(file, "\"%s\"", passed_by);
}

static bool write_config(const char *path, const struct setting *setting, const char *directory)
{
    FILE *file = fopen(path, "we");

    if (file == NULL) {
        return fail(path, strerror(errno));
    }
    fprintf(file, "{\"detection_order\": [");
    if (setting->order != NULL) {
        fprintf(file, "%s", setting->order);
    } else {
        write_order(file, directory);
    }
    fprintf(file,
            "], \"deny\": [\"cpu\", \"mock\"], "
            "\"probe\": {\"mode\": \"%s\", \"timeout_ms\": %d, \"parallel\": %d}%s}\n",
            setting->is_in_process ? "in-process" : "isolated", setting->timeout_ms,
            setting->parallel > 0 ? setting->parallel : 1,
            setting->more != NULL ? setting->more : "");
    return fclose(file) == 0;
}

static ds_accel_t *create(const struct setting *setting)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    char directories[2][600];
    char config[128];
    const char *dirs[] = {directories[0], directories[1]};
    ds_accel_t *context = NULL;

    if (setting->directory != NULL) {
        snprintf(directories[0], sizeof(directories[0]), "%s/tests/fixtures/%s", build,
                 setting->directory);
    } else {
        snprintf(directories[0], sizeof(directories[0]), "%s/tests/fixtures/%s%s", build,
                 setting->fault != NULL ? "faults/" : "crowd",
                 setting->fault != NULL ? setting->fault : "");
    }
    snprintf(directories[1], sizeof(directories[1]), "%s/tests/fixtures/faults/neighbour", build);
    snprintf(config, sizeof(config), "%s/config-%d-%lx.json", dir, (int)getpid(),
             (unsigned long)pthread_self());
    if (!write_config(config, setting, directories[0])) {
        return NULL;
    }
    options.flags = DS_ACCEL_OPTION_NO_ENVIRONMENT | DS_ACCEL_OPTION_NO_USER_CONFIG |
                    DS_ACCEL_OPTION_NO_CACHE;
    options.accelerator = setting->accelerator;
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 2;
    options.config_file = config;
    options.log_sink = keep_warning;
    options.log_levels = "warn";
    if (ds_accel_create(&options, &context) < 0) {
        fail("create", ds_accel_last_error());
    }
    unlink(config);
    return context;
}

static bool find(ds_accel_t *context, const char *name, struct ds_accel_candidate *candidate)
{
    candidate->struct_size = sizeof(*candidate);
    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        if (ds_accel_candidate_get(context, i, candidate) >= 0 &&
            strcmp(candidate->name, name) == 0) {
            return true;
        }
    }
    return fail("no such candidate", name);
}

/* Whether a plugin that does not hang reached its deadline, as it may on a busy machine. */
static bool was_late(ds_accel_t *context, const char *name)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        if (ds_accel_candidate_get(context, i, &candidate) >= 0 &&
            strcmp(candidate.name, name) == 0) {
            return strstr(candidate.reason, "_hung") != NULL;
        }
    }
    return false;
}

/* Creates a context and detects; NULL: that failed. If the wanted one, which does not hang, was
 * late, detects again with more time. */
static ds_accel_t *ask(const struct setting *setting, const char *wanted)
{
    struct setting patient = *setting;

    for (;; patient.timeout_ms *= 4) {
        ds_accel_t *context = create(&patient);
        int32_t status;

        if (context == NULL) {
            return NULL;
        }
        is_asking = true;
        status = ds_accel_detect(context);
        is_asking = false;
        if (patient.timeout_ms >= LONG_MS || !was_late(context, wanted)) {
            if (status < 0) {
                fail("detect", ds_accel_last_error());
            }
            return context;
        }
        ds_accel_destroy(context);
    }
}

/*
 * Detects, and checks that the selected accelerator is wanted. Destroys the context unless
 * context_out is set.
 */
static bool detect(const struct setting *setting, const char *wanted, ds_accel_t **context_out)
{
    ds_accel_t *context = ask(setting, wanted);
    const char *name;
    bool right;

    if (context == NULL) {
        return false;
    }
    name = ds_accel_name(context);
    right = name != NULL && strcmp(name, wanted) == 0;
    if (!right) {
        fail("chosen", name != NULL ? name : "nothing");
    }
    if (context_out != NULL) {
        *context_out = context;
    } else {
        ds_accel_destroy(context);
    }
    return right;
}

/* Checks that one fault gets the expected verdict, and that the neighbour is selected. */
static bool judged(const char *fault, const char *reason, int timeout_ms)
{
    struct setting setting = {.fault = fault, .timeout_ms = timeout_ms};
    struct ds_accel_candidate candidate = {0};
    ds_accel_t *context = NULL;
    bool right = detect(&setting, passed_by, &context);

    if (right && (!find(context, "faulty", &candidate) || strcmp(candidate.reason, reason) != 0)) {
        right = fail(fault, candidate.reason);
        fail("its detail", candidate.detail);
    }
    ds_accel_destroy(context);
    return right;
}

/* ---- comparison of the caller's state ------------------------------------------------------- */

/* Loads everything that stays in the process and is not a change: libltdl, the locale's files. */
static void warm_up(void)
{
    struct setting setting = {.fault = "none", .timeout_ms = LONG_MS, .accelerator = passed_by};

    detect(&setting, passed_by, NULL);
}

static bool all_at_once(void)
{
    struct setting setting = {.timeout_ms = SHORT_MS, .parallel = 8};
    ds_accel_t *context = NULL;
    char *before;
    bool right;

    state_make_special();
    before = state_take();
    right = detect(&setting, passed_by, &context);
    right = state_is_as_before(before, passed_by) && right;
    if (ds_accel_candidate_count(context) < 40) {
        right = fail("the crowd", "is smaller than it was");
    }
    ds_accel_destroy(context);
    free(before);
    return right;
}

/*
 * Detects with each fault in turn, including those whose file or table is broken and which
 * therefore have no name of their own.
 */
static bool one_by_one(void)
{
    char path[600];
    char *before = NULL;
    unsigned count = 0;
    bool right = true;
    const struct dirent *entry;
    DIR *faults;

    state_make_special();
    warm_up();
    snprintf(path, sizeof(path), "%s/tests/fixtures/faults", build);
    faults = opendir(path);
    before = state_take();
    while (faults != NULL && (entry = readdir(faults)) != NULL) {
        struct setting setting = {.fault = entry->d_name, .timeout_ms = SHORT_MS};

        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "none") == 0 ||
            strcmp(entry->d_name, "slow") == 0 || strcmp(entry->d_name, "count") == 0 ||
            strcmp(entry->d_name, "pocl") == 0 || strcmp(entry->d_name, "sometimes") == 0 ||
            strcmp(entry->d_name, "demand") == 0 || strcmp(entry->d_name, "asker") == 0) {
            continue;
        }
        if (strncmp(entry->d_name, "init_", 5) == 0) {
            /* This plugin is loaded in the caller, because it does nothing wrong before init(). */
            continue;
        }
        count++;
        if (!detect(&setting, passed_by, NULL) || !state_is_as_before(before, "")) {
            right = fail("with", entry->d_name);
        }
    }
    if (faults != NULL) {
        closedir(faults);
    }
    free(before);
    return count >= 50 ? right : fail("faults", "fewer than there were");
}

/* A tolerated plugin changes the state of the caller as well; the library restores it. */
static bool tolerated(void)
{
    static const char *const faults[][2] = {
        {"change_signal_mask", "changes_signal_mask"},
        {"change_signal_handler", "changes_signal_handler"},
        {"change_affinity", "changes_affinity"},
        {"change_directory", "changes_directory"},
        {"change_locale", "changes_locale"},
        {"change_umask", "changes_umask"},
        {"change_limit", "changes_limit"},
        {"change_environment", "changes_environment"},
        {"change_timer", "changes_timer"},
        {"change_priority", "changes_priority"},
        {"change_scheduling", "changes_scheduling"},
        {"change_floating_point", "changes_floating_point"},
        {"change_dumpable", "changes_dumpable"},
        {"change_death_signal", "changes_death_signal"},
    };
    const size_t count = sizeof(faults) / sizeof(faults[0]);
    bool right = true;

    state_make_special();
    for (size_t at = 0; at < 2 * count; at++) { /* first in probe and init, then in init only */
        const size_t i = at % count;
        struct setting setting = {.timeout_ms = LONG_MS};
        char more[128];
        char directory[64];
        char *before;

        if (getuid() != 0 && strcmp(faults[i][0], "change_priority") == 0) {
            continue; /* only root can restore the priority */
        }
        snprintf(directory, sizeof(directory), "%s/%s", at < count ? "start" : "start-only",
                 faults[i][0]);
        snprintf(more, sizeof(more), ", \"backends\": {\"%s\": {\"tolerate\": [\"%s\"]}}", "faulty",
                 faults[i][1]);
        setting.directory = directory;
        setting.more = more;
        before = state_take();
        if (!detect(&setting, "faulty", NULL) ||
            !state_is_as_before(before, at == 0 ? "faulty" : "")) {
            right = fail("tolerated", faults[i][0]);
        }
        free(before);
    }
    return right;
}

/* An OpenCL runtime hangs in a forked child if the parent has ever used it. */
static bool opencl_after_fork(void)
{
    struct setting setting = {.fault = "pocl", .timeout_ms = 60000};
    struct ds_accel_candidate candidate;
    ds_accel_t *context = NULL;
    char *before;
    bool right;
    int status;
    pid_t pid;

    setenv("POCL_CACHE_DIR", dir, 1);
    before = state_take();
    right =
        detect(&setting, passed_by, &context) && find(context, "pocl", &candidate) &&
        (strcmp(candidate.stage, "conduct") == 0 || fail("pocl in the helper", candidate.detail));
    right = state_is_as_before(before, passed_by) && right;
    free(before);
    ds_accel_destroy(context);
    pid = fork();
    if (pid == 0) {
        ds_accel_t *own;

        alarm(60);
        setting.accelerator = "pocl";
        setting.is_in_process = true;
        own = create(&setting);
        _exit(own != NULL && ds_accel_detect(own) >= 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? right
               : fail("OpenCL in a child", WIFSIGNALED(status) ? "it hung or died" : "it failed");
}

static bool has_opencl(void)
{
    DIR *vendors = opendir("/etc/OpenCL/vendors");
    const struct dirent *entry;
    bool found = false;

    while (vendors != NULL && (entry = readdir(vendors)) != NULL) {
        found = found || strstr(entry->d_name, "pocl") != NULL;
    }
    if (vendors != NULL) {
        closedir(vendors);
    }
    return found && system("ldconfig -p | grep -q libOpenCL.so.1") == 0;
}

/* ---- callers with signal handlers, children and threads of their own ------------------------ */

static void on_child(int number)
{
    int error = errno;

    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = error;
}

/* Checks verdicts that do not need the exit status of the helper, and verdicts that need it. */
static bool verdicts_without_status(void)
{
    return judged("probe_segv", "probe_segv", LONG_MS) &&
           judged("entry_abort", "entry_abort", LONG_MS) &&
           judged("load_exit", "load_exit", LONG_MS) &&
           judged("probe_end", "probe_ended", LONG_MS) &&
           judged("forge", "result_forged", LONG_MS) &&
           judged("leave_process", "leaves_process", LONG_MS) &&
           judged("probe_hang", "probe_hung", SHORT_MS) &&
           judged("ignores_term", "probe_hung", SHORT_MS);
}

static bool with_action(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    char *before;
    bool right;

    sigaction(SIGCHLD, &action, NULL);
    warm_up();
    before = state_take();
    right = verdicts_without_status();
    right = state_is_as_before(before, "") && right;
    free(before);
    return right;
}

static bool reaping_handler(void)
{
    return with_action(on_child, SA_RESTART | SA_NOCLDSTOP);
}

static bool children_ignored(void)
{
    return with_action(SIG_IGN, 0);
}

static bool children_not_waited_for(void)
{
    return with_action(SIG_DFL, SA_NOCLDWAIT);
}

static void *run_children(void *wrong)
{
    while (!is_over) {
        pid_t pid = fork();
        int status = -1;

        if (pid == 0) {
            _exit(7);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 7) {
            atomic_fetch_add((atomic_int *)wrong, 1);
        }
    }
    return NULL;
}

static void *run_detections(void *wrong)
{
    static const char *const faults[][2] = {{"probe_segv", "probe_segv"},
                                            {"leave_daemon", "leaves_process"},
                                            {"probe_hang", "probe_hung"},
                                            {"entry_exit", "entry_exit"}};

    for (int i = 0; i < 8; i++) {
        if (!judged(faults[i % 4][0], faults[i % 4][1], i % 4 == 2 ? 1500 : LONG_MS)) {
            atomic_fetch_add((atomic_int *)wrong, 1);
        }
    }
    return NULL;
}

static bool children_of_other_threads(void)
{
    pthread_t threads[6];
    atomic_int wrong = 0;
    char *before;
    bool right;

    warm_up();
    before = state_take();
    for (int i = 0; i < 6; i++) {
        if (pthread_create(&threads[i], NULL, i < 3 ? run_detections : run_children, &wrong) != 0) {
            return fail("pthread_create", "failed");
        }
    }
    for (int i = 0; i < 6; i++) {
        is_over = i >= 3;
        pthread_join(threads[i], NULL);
    }
    right = wrong == 0 || fail("threads", "an answer or a child was not as it should be");
    right = state_is_as_before(before, "") && right;
    free(before);
    return right;
}

static void *detect_once(void *right)
{
    *(bool *)right = judged("leave_process", "leaves_process", LONG_MS);
    return NULL;
}

static bool thread_ends_afterwards(void)
{
    bool right = false;
    pthread_t thread;
    char *before;

    warm_up();
    before = state_take();
    if (pthread_create(&thread, NULL, detect_once, &right) != 0) {
        return false;
    }
    pthread_join(thread, NULL);
    right = state_is_as_before(before, "") && right;
    free(before);
    return right;
}

/* ---- callers without free descriptors or processes, and with a failing helper --------------- */

/* Prints in a thread while stdout is closed: the text must not get into a file of the library. */
static void *print_on(void *nothing)
{
    while (!is_over) {
        for (int fd = 0; fd < 3 && is_asking; fd++) {
            if (write(fd, "noise", 5) > 0) {
                sched_yield();
            }
        }
    }
    return nothing;
}

static bool standard_streams_closed(void)
{
    pthread_t printer;
    int kept = fcntl(1, F_DUPFD_CLOEXEC, 20);
    char *before;
    char *after;
    bool right;

    warm_up();
    close(0);
    close(1);
    close(2);
    signal(SIGPIPE, SIG_IGN);
    before = state_take();
    right = pthread_create(&printer, NULL, print_on, NULL) == 0 &&
            judged("probe_segv", "probe_segv", LONG_MS) &&
            judged("print_stdout", "prints_stdout", LONG_MS) &&
            judged("probe_hang", "probe_hung", SHORT_MS);
    is_over = true;
    pthread_join(printer, NULL);
    after = state_take_after(before);
    dup2(kept, 1);
    right = (strcmp(before, after) == 0 || fail("the state is another", after)) && right;
    free(before);
    free(after);
    return right;
}

/*
 * With n free descriptors the result is correct, or it is ERR_LIMIT and no accelerator. *least_out
 * is the smallest n that was sufficient.
 */
static bool few_descriptors_for(int parallel, int *least_out)
{
    struct rlimit limit;
    struct rlimit low;
    unsigned answered = 0;
    unsigned failed = 0;
    char *before;
    bool right = true;
    int first;

    warm_up();
    before = state_take();
    getrlimit(RLIMIT_NOFILE, &limit);
    first = dup(0);
    close(first);
    for (int left = 2; left < 40 && right; left++) {
        struct setting setting = {
            .fault = "probe_abort", .timeout_ms = LONG_MS, .parallel = parallel};
        struct ds_accel_candidate candidate;
        ds_accel_t *context = create(&setting);
        int32_t status;

        low = (struct rlimit){.rlim_cur = (rlim_t)(first + left), .rlim_max = limit.rlim_max};
        setrlimit(RLIMIT_NOFILE, &low);
        status = ds_accel_detect(context);
        setrlimit(RLIMIT_NOFILE, &limit);
        if (status == DS_ACCEL_OK) {
            *least_out = answered++ == 0 ? left : *least_out;
            right = find(context, "faulty", &candidate) &&
                    (strcmp(candidate.reason, "probe_abort") == 0 ||
                     fail("a wrong verdict", candidate.detail));
        } else {
            failed++;
            right = status == DS_ACCEL_ERR_LIMIT || fail("not ERR_LIMIT", ds_accel_last_error());
        }
        ds_accel_destroy(context);
        right = state_is_as_before(before, "") && right;
    }
    free(before);
    return right && ((answered > 0 && failed > 0) || fail("descriptors", "no limit was met"));
}

/* The stack size that ds_accel.h documents as sufficient; a sanitizer's frames are larger. */
#define LEAST_STACK_BYTES 65536

static void *use_all(void *right_out)
{
    static const uint32_t reports[] = {
        DS_ACCEL_REPORT_DETECT, DS_ACCEL_REPORT_LIST,       DS_ACCEL_REPORT_INFO,
        DS_ACCEL_REPORT_ENV,    DS_ACCEL_REPORT_EXPLAIN,    DS_ACCEL_REPORT_CONFIG,
        DS_ACCEL_REPORT_DOCTOR, DS_ACCEL_REPORT_CONFIG_ENV, DS_ACCEL_REPORT_TOPO,
        DS_ACCEL_REPORT_BUNDLE, DS_ACCEL_REPORT_CACHE,      DS_ACCEL_REPORT_QUARANTINE,
    };
    struct setting setting = {.fault = "probe_abort", .timeout_ms = LONG_MS};
    ds_accel_t *context = create(&setting);
    bool *right = right_out;

    *right = ds_accel_detect(context) == DS_ACCEL_OK;
    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
        char *text = NULL;

        ds_accel_report(context, reports[i], NULL, DS_ACCEL_FORMAT_JSON, &text);
        *right = *right && text != NULL;
        ds_accel_free_text(text);
    }
    ds_accel_destroy(context);
    return NULL;
}

static bool small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool right = false;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("caller: not run: a small stack: a sanitizer has larger frames");
    return true;
#endif
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, LEAST_STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, use_all, &right) != 0) {
        return fail("pthread_create", strerror(errno));
    }
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return right || fail("a small stack", ds_accel_last_error());
}

/*
 * Several helpers at a time need as many descriptors as one helper, except for the files that are
 * examined meanwhile.
 */
static bool few_descriptors(void)
{
    int least[2] = {0, 0};

    return few_descriptors_for(1, &least[0]) && few_descriptors_for(4, &least[1]) &&
           (least[1] <= least[0] + 4 || fail("descriptors", "several at a time need more"));
}

static const char *options_to_send; /* members of the configuration; NULL: none */

static bool fails_clearly(int32_t wanted, const char *part)
{
    struct setting setting = {.fault = "none", .timeout_ms = LONG_MS, .more = options_to_send};
    ds_accel_t *context = create(&setting);
    char *before = state_take();
    int32_t status = ds_accel_detect(context);
    bool right = status == wanted && strstr(ds_accel_last_error(), part) != NULL;

    if (!right) {
        fail("not as wanted", ds_accel_last_error());
    }
    ds_accel_destroy(context);
    right = state_is_as_before(before, "") && right;
    free(before);
    return right;
}

static bool no_processes(void)
{
    struct rlimit before;
    struct rlimit none;
    bool right;

    chmod(dir, 0777);
    if (getuid() == 0 && (setgid(54321) != 0 || setuid(54321) != 0)) {
        return fail("setuid", strerror(errno));
    }
    prctl(PR_SET_DUMPABLE, 1);
    if (access(build, X_OK) != 0) {
        puts("caller: not run: no process can be made: the build directory is closed to other "
             "users");
        return true;
    }
    getrlimit(RLIMIT_NPROC, &before);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NPROC, &none);
    right = fails_clearly(DS_ACCEL_ERR_LIMIT, "cannot be started");
    setrlimit(RLIMIT_NPROC, &before); /* a sanitizer's check at exit needs a process */
    return right;
}

static bool helper_missing(void)
{
    return fails_clearly(DS_ACCEL_ERR_NO_DEVICE, "helper_missing");
}

static bool helper_failed(void)
{
    return fails_clearly(DS_ACCEL_ERR_NO_DEVICE, "helper_failed");
}

/* The library sends more requests than the helper's socket can hold, and the helper reads none. */
static bool helper_deaf(void)
{
    static char more[400000];
    uint64_t start_ns = now_ns();
    int length =
        snprintf(more, sizeof(more),
                 ", \"allow\": [\"faulty\"], \"backends\": {\"faulty\": {\"options\": {\"x\": \"");

    memset(more + length, 'x', sizeof(more) - (size_t)length - 8);
    strcpy(more + sizeof(more) - 8, "\"}}}");
    options_to_send = more;
    return fails_clearly(DS_ACCEL_ERR_NO_DEVICE, "does not read") &&
           (elapsed_ns(start_ns) / 1e9 < 2 * GRACE_S || fail("the helper", "was waited for"));
}

/* ---- callers that exit, and helpers that do not --------------------------------------------- */

/* Waits until a plugin has written a pid to a file. */
static pid_t wait_for_pid(const char *path)
{
    for (int i = 0; i < 1000; i++) {
        FILE *file = fopen(path, "re");
        int pid = 0;

        if (file != NULL && fscanf(file, "%d", &pid) != 1) {
            pid = 0;
        }
        if (file != NULL) {
            fclose(file);
        }
        if (pid > 0) {
            return pid;
        }
        wait_ms(10);
    }
    return 0;
}

/* Returns the helper of a process; 0: none. */
static pid_t helper_of(pid_t parent)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    while (proc != NULL && found == 0 && (entry = readdir(proc)) != NULL) {
        char path[64];
        char stat[512];
        const char *end;
        FILE *file;
        int its = 0;

        if (atoi(entry->d_name) <= 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%d/stat", atoi(entry->d_name));
        file = fopen(path, "re");
        if (file != NULL && fgets(stat, sizeof(stat), file) != NULL &&
            strstr(stat, "(ds-accel-probe)") != NULL && (end = strrchr(stat, ')')) != NULL &&
            sscanf(end + 1, " %*c %d", &its) == 1 && its == parent) {
            found = atoi(entry->d_name);
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return found;
}

/*
 * Waits until the process is gone. Reaps the children and orphans of this process, which is a
 * subreaper.
 */
static bool is_gone(pid_t pid)
{
    for (int i = 0; i < GRACE_S * 100; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (kill(pid, 0) != 0 && errno == ESRCH) {
            return true;
        }
        wait_ms(10);
    }
    return false;
}

static const char *use_pid_file(void)
{
    static char path[96];

    snprintf(path, sizeof(path), "%s/pid", dir);
    unlink(path);
    setenv("DS_TEST_PID_FILE", path, 1);
    return path;
}

static bool killed_while_it_asks(void)
{
    const char *path = use_pid_file();
    struct setting setting = {.fault = "leave_hang", .timeout_ms = 60000};
    pid_t caller;
    pid_t helper;
    pid_t left;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    caller = fork();
    if (caller == 0) {
        detect(&setting, passed_by, NULL);
        _exit(1);
    }
    left = wait_for_pid(path);
    helper = helper_of(caller);
    kill(caller, SIGKILL);
    waitpid(caller, NULL, 0);
    return ((helper > 0 && left > 0) || fail("the probe", "did not begin")) &&
           (is_gone(helper) || fail("the helper", "is still there")) &&
           (is_gone(left) || fail("what it started", "is still there"));
}

/*
 * A daemon that has left the helper's group and session is killed together with a hanging helper.
 */
static bool daemon_of_a_hanging_plugin(void)
{
    const char *path = use_pid_file();
    bool right;
    pid_t left;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    right = judged("leave_hang", "probe_hung", 2000);
    left = wait_for_pid(path);
    return right && ((left > 0 && is_gone(left)) || fail("what it started", "is still there"));
}

/* Such a daemon is killed also if the helper's result is invalid. */
static bool daemon_of_a_garbling_plugin(void)
{
    const char *path = use_pid_file();
    bool right;
    pid_t left;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    right = judged("leave_garble", "result_garbled", LONG_MS);
    left = wait_for_pid(path);
    return right && ((left > 0 && is_gone(left)) || fail("what it started", "is still there"));
}

/*
 * Such a daemon is killed also if the helper's probe was speculative and its result is not needed.
 */
static bool daemon_of_one_that_is_dropped(void)
{
    const char *path = use_pid_file();
    struct setting setting = {.timeout_ms = 60000,
                              .parallel = 4,
                              .order = "\"slow1\", \"leave_hang\"",
                              .more = ", \"allow\": [\"slow1\", \"leave_hang\"]"};
    uint64_t start_ns = now_ns();
    bool right;
    pid_t left;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    right = detect(&setting, "slow1", NULL);
    left = wait_for_pid(path);
    return right &&
           (elapsed_ns(start_ns) / 1e9 < GRACE_S || fail("the hanging one", "was waited for")) &&
           ((left > 0 && is_gone(left)) || fail("what it started", "is still there"));
}

static bool endless_log(void)
{
    uint64_t start_ns = now_ns();
    bool right;

    is_log_slow = true;
    right = judged("log_forever", "probe_hung", SHORT_MS);

    return right && (elapsed_ns(start_ns) / 1e9 < SHORT_MS / 1000.0 + GRACE_S ||
                     fail("a log", "put the deadline off"));
}

static bool long_log(void)
{
    return judged("log_forever", "probe_hung", 1500) &&
           (left_out == 1 || fail("it is not said once", "that more is left out")) &&
           ((warned_bytes > 20000 && warned_bytes < 66000) || fail("its log", "has no end"));
}

static bool is_held_dead; /* the helper is held as a zombie, which its tracer does not wait for */

/*
 * Traces the helper from another process and stops it at its exit: to the library the helper looks
 * like a process that SIGKILL does not terminate, as in a driver's call. Exits with 0 after it has
 * released the helper.
 */
static void hold_helper(pid_t caller, int held, int let_go)
{
    pid_t helper = 0;
    char byte = 0;
    int status;

    for (int i = 0; i < 1000 && helper == 0; i++) {
        helper = helper_of(caller);
        wait_ms(5);
    }
    if (helper == 0 || ptrace(PTRACE_SEIZE, helper, NULL,
                              (void *)(long)(is_held_dead ? 0 : PTRACE_O_TRACEEXIT)) != 0) {
        _exit(3);
    }
    if (write(held, &helper, sizeof(helper)) != sizeof(helper)) {
        _exit(4);
    }
    /* The helper stops when it is killed, and remains stopped until it is continued. */
    while (!is_held_dead && waitpid(helper, &status, __WALL) == helper && WIFSTOPPED(status) &&
           status >> 8 != (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
        ptrace(PTRACE_CONT, helper, NULL, (void *)(long)(WSTOPSIG(status) & 0x7f));
    }
    if (read(let_go, &byte, 1) < 0) {
        _exit(5);
    }
    ptrace(PTRACE_CONT, helper, NULL, NULL);
    ptrace(PTRACE_DETACH, helper, NULL, NULL);
    _exit(0);
}

/* The tracer is a grandchild, so that the helper is the only child of the caller. */
static void start_holder(const int *held, const int *let_go)
{
    pid_t caller = getpid();
    pid_t child = fork();

    if (child == 0) {
        if (fork() == 0) {
            close(let_go[1]);
            close(held[0]);
            hold_helper(caller, held[1], let_go[0]);
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static bool unkillable(void)
{
    int held[2];
    int let_go[2];
    uint64_t start_ns;
    double elapsed;
    char text[64];
    char *before;
    pid_t helper = 0;
    bool right;

    warm_up();
    before = state_take();
    if (pipe2(held, O_CLOEXEC) != 0 || pipe2(let_go, O_CLOEXEC) != 0) {
        return fail("pipe", strerror(errno));
    }
    start_holder(held, let_go);
    close(held[1]);
    close(let_go[0]);
    warnings[0] = '\0';
    start_ns = now_ns();
    right = judged("ignores_term", "probe_hung", 1500);
    elapsed = elapsed_ns(start_ns) / 1e9;
    if (read(held[0], &helper, sizeof(helper)) != sizeof(helper)) {
        puts("caller: not tested: an unkillable helper: nothing can be traced here");
        return true;
    }
    snprintf(text, sizeof(text), "process %d does not end", (int)helper);
    right = right && (strstr(warnings, text) != NULL || fail("no such warning", text));
    right = right && (elapsed < 1.5 + GRACE_S || fail("detection", "waits for it"));
    right = right && (kill(helper, 0) == 0 || fail("the helper", "was not held at all"));
    close(let_go[1]);
    close(held[0]);
    /* The helper is not reaped immediately: a later detection reaps it. */
    for (int i = 0; i < 50 && right && kill(helper, 0) == 0; i++) {
        wait_ms(20);
        right = judged("probe_segv", "probe_segv", LONG_MS);
    }
    right = right && (kill(helper, 0) != 0 || fail("the helper", "is not reaped"));
    right = state_is_as_before(before, "") && right;
    free(before);
    return right;
}

static bool traced(void)
{
    is_held_dead = true;
    return unkillable();
}

/* ---- running the parts ---------------------------------------------------------------------- */

static const struct part {
    const char *name;
    bool (*run)(void);
} parts[] = {
    {"all faults at once", all_at_once},
    {"one by one", one_by_one},
    {"tolerated", tolerated},
    {"a reaping SIGCHLD handler", reaping_handler},
    {"SIGCHLD is ignored", children_ignored},
    {"SA_NOCLDWAIT", children_not_waited_for},
    {"children of other threads", children_of_other_threads},
    {"the thread ends", thread_ends_afterwards},
    {"no standard streams", standard_streams_closed},
    {"few descriptors", few_descriptors},
    {"a small stack", small_stack},
    {"killed while it asks", killed_while_it_asks},
    {"a daemon of a hanging plugin", daemon_of_a_hanging_plugin},
    {"a daemon of a garbling plugin", daemon_of_a_garbling_plugin},
    {"a daemon of one that is dropped", daemon_of_one_that_is_dropped},
    {"an endless log", endless_log},
    {"a long log", long_log},
    {"an unkillable helper", unkillable},
    {"a traced helper", traced},
};

/* Parts for which this program is started again, with the library of a damaged prefix. */
static const struct part started_parts[] = {
    {"no-processes", no_processes},
    {"helper-missing", helper_missing},
    {"helper-failed", helper_failed},
    {"helper-deaf", helper_deaf},
};

static unsigned passed;
static unsigned failed;

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s\n", name);
    }
    fflush(stdout);
}

static bool wait_for(pid_t pid)
{
    int status;

    for (int i = 0; i < PART_LIMIT_S * 100; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        wait_ms(10);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return fail("it took", "too long");
}

static bool run_apart(bool (*run)(void))
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        bool right = run();

        fflush(stdout);
        _exit(right ? 0 : 1);
    }
    return pid > 0 && wait_for(pid);
}

/* Runs a shell command in the temporary directory, with the build directory as $1. */
static bool shell(const char *command)
{
    char whole[2048];

    snprintf(whole, sizeof(whole), "cd %s && set -- %s && %s", dir, build, command);
    return system(whole) == 0;
}

static bool run_started(const char *self, const char *name)
{
    char library[128];
    char prefix[96];
    pid_t pid;

    snprintf(prefix, sizeof(prefix), "%s/prefix", dir);
    snprintf(library, sizeof(library), "%s/lib", prefix);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setenv("LD_LIBRARY_PATH", library, 1);
        execl(self, self, build, name, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && wait_for(pid);
}

/* Runs parts with a damaged prefix. The build directory is a prefix, so a copy of it is damaged. */
static void run_damaged(const char *self)
{
    if (access("/usr/local/libexec/ds-accel/ds-accel-probe", X_OK) == 0) {
        puts("caller: not tested: damaged prefixes: another one is installed");
        return;
    }
    if (!shell("mkdir prefix && cp -R $1/lib $1/libexec prefix/ && chmod -R go+rX .")) {
        check("a copy of the prefix", false);
        return;
    }
    check("no process can be made", run_started(self, "no-processes"));
    check("another helper", shell("printf '#!/bin/sh\\necho another version >&2\\nexit 1\\n' "
                                  ">prefix/libexec/ds-accel/ds-accel-probe") &&
                                run_started(self, "helper-failed"));
    check("a helper that does not read", shell("printf '#!/bin/sh\\nexec sleep 60\\n' "
                                               ">prefix/libexec/ds-accel/ds-accel-probe") &&
                                             run_started(self, "helper-deaf"));
    check("a helper that cannot be run", shell("chmod -x prefix/libexec/ds-accel/ds-accel-probe") &&
                                             run_started(self, "helper-missing"));
    check("no helper", shell("rm -r prefix/libexec") && run_started(self, "helper-missing"));
}

static int run_one(const char *name)
{
    for (size_t i = 0; i < sizeof(started_parts) / sizeof(started_parts[0]); i++) {
        if (strcmp(started_parts[i].name, name) == 0) {
            return started_parts[i].run() ? 0 : 1;
        }
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(parts[i].name, name) == 0) {
            return parts[i].run() ? 0 : 1;
        }
    }
    return 2;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    int result;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: caller BUILD [PART]\n");
        return 2;
    }
    snprintf(build, sizeof(build), "%s", argv[1]);
    snprintf(dir, sizeof(dir), "/tmp/ds-accel-caller-XXXXXX");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    if (argc == 3) {
        result = run_one(argv[2]);
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        return result;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        check(parts[i].name, run_apart(parts[i].run));
    }
    if (has_opencl()) {
        check("OpenCL after a fork", run_apart(opencl_after_fork));
    } else {
        puts("caller: not tested: OpenCL after a fork: PoCL is not installed");
    }
    run_damaged(argv[0]);
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    printf("caller: %u passed, %u failed\n", passed, failed);
    return failed != 0;
}
