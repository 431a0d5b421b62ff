/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Processes that detect at the same time: one process probes, the others wait for its verdicts. */
#include "cache.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RACE_ROUNDS 600 /* of all children together */

/* ---- inheritance of the lock ----------------------------------------------------------------- */

static pid_t left_child;

static int32_t forking_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                             struct ds_accel_error *error)
{
    left_child = fork();
    if (left_child == 0) {
        for (;;) {
            pause();
        }
    }
    return no_device_probe(host, verdict, error);
}

static const struct ds_accel_plugin *forking_entry(const struct ds_accel_host *host)
{
    static struct ds_accel_plugin table;

    memcpy(&table, no_device_entry(host), sizeof(table));
    table.probe = forking_probe;
    return &table;
}

/* A child forked by the program during a probe inherits the lock's file descriptor. */
Test(core_cache, the_lock_is_not_inherited, .timeout = 60)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context;

    test_write("etc/ds-accel.json", "{\"detection_order\": [\"faulty\", \"absent\", \"counted\"]}");
    put("probe_no_state", "faulty"); /* storing its verdict takes the lock, which is then held */
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, forking_entry), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    cr_assert_gt(left_child, 0);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    kill(left_child, SIGKILL);
    waitpid(left_child, NULL, 0);
}

/* ---- which process waits for which ----------------------------------------------------------- */

#define LONG_TIMEOUT "{\"probe\": {\"timeout_ms\": 3600000}, \"detection_order\": [\"faulty\"]}"

static pid_t left_asking;

static void end_asking(void)
{
    if (left_asking > 0) {
        kill(left_asking, SIGCONT);
        kill(left_asking, SIGKILL);
        waitpid(left_asking, NULL, 0);
        left_asking = 0;
    }
}

/* Start a process that holds the lock while its probe of a plugin takes an hour. */
static void start_asking(void)
{
    char path[160];
    struct stat info = {.st_size = 0};

    test_write("etc/ds-accel.json", LONG_TIMEOUT);
    put("probe_hang", "faulty");
    fflush(NULL);
    left_asking = fork();
    cr_assert_geq(left_asking, 0);
    if (left_asking == 0) {
        struct ds_accel_options options = options_with_cache();
        char name[64];

        setpgid(0, 0);
        try_detect(&options, name, sizeof(name));
        _exit(0);
    }
    atexit(end_asking);
    snprintf(path, sizeof(path), "%s/lock", cache_dir);
    while (info.st_size == 0) { /* the holder writes its process id into the lock file */
        usleep(1000);
        if (stat(path, &info) != 0) {
            info.st_size = 0;
        }
    }
}

/* A stopped process finishes no probe, so no other process waits for it, however long its deadline;
   a regression would wait for an hour. */
Test(core_cache, a_stopped_process_is_not_waited_for, .timeout = 60)
{
    struct ds_accel_options options;

    start_asking();
    cr_assert_eq(kill(left_asking, SIGSTOP), 0);
    cr_assert_eq(waitpid(left_asking, NULL, WUNTRACED), left_asking);
    test_write("etc/ds-accel.json", "{\"deny\": [\"faulty\"], \"detection_order\": [\"counted\"], "
                                    "\"probe\": {\"timeout_ms\": 3600000}}");
    options = options_with_cache();
    options.log_levels = "info";
    expect_chosen_with(&options, "counted");
    EXPECT_HAS(test_log, "is stopped while it probes plugins; not waiting for it");
    cr_expect_eq(probes(), 1);
    expect_chosen("counted");
    cr_expect_eq(probes(), 1, "what it found out is remembered");
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_BUSY);
    EXPECT_HAS(ds_accel_last_error(), "is stopped while it probes plugins, and holds ");
    end_asking();
}

/* A running process may produce a verdict for other processes: they wait for at most a plugin's
   time limit, and then probe the plugin themselves. */
Test(core_cache, a_running_process_is_waited_for, .timeout = 60)
{
    struct ds_accel_options options;

    start_asking();
    test_write("etc/ds-accel.json", "{\"deny\": [\"faulty\"], \"detection_order\": [\"counted\"], "
                                    "\"probe\": {\"timeout_ms\": 2000}}");
    options = options_with_cache();
    options.log_levels = "info";
    expect_chosen_with(&options, "counted");
    EXPECT_HAS(test_log, "not waiting for it any longer");
    end_asking();
}

/* cpu, and plugins whose hardware is absent, have no verdict that another process could produce
   first, so no process waits. */
Test(core_cache, nobody_waits_where_only_cpu_is_asked, .timeout = 60)
{
    struct ds_accel_options options;

    start_asking();
    test_write("etc/ds-accel.json", "{\"deny\": [\"faulty\", \"counted\"], "
                                    "\"probe\": {\"timeout_ms\": 3600000}}");
    options = options_with_cache();
    options.log_levels = "info";
    expect_chosen_with(&options, "cpu");
    EXPECT_HAS(test_log, "another process is still probing plugins; not waiting for it\n");
    cr_expect_neq(access(file, F_OK), 0, "what was found out beside the lock is not stored");
    end_asking();
    expect_chosen("cpu");
    cr_expect_eq(access(file, F_OK), 0, "with the lock it is");
}

/* ---- many processes at once ------------------------------------------------------------------ */

/* Run `count` children, each calling act() with its index; returns the number that failed. */
static int run_children(int count, bool (*act)(int child))
{
    pid_t children[64];
    int wrong = 0;

    for (int i = 0; i < count; i++) {
        children[i] = fork();
        cr_assert_geq(children[i], 0);
        if (children[i] == 0) {
            test_log[0] = '\0';
            _exit(act(i) ? 0 : 1);
        }
    }
    for (int i = 0; i < count; i++) {
        int status = 0;

        waitpid(children[i], &status, 0);
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return wrong;
}

static bool detect_right(void)
{
    struct ds_accel_options options = options_with_cache();
    char name[64];

    return try_detect(&options, name, sizeof(name)) >= 0 && strcmp(name, "counted") == 0;
}

static bool detect_once(int child)
{
    (void)child;
    return detect_right() && test_log[0] == '\0';
}

Test(core_cache, many_processes_ask_once, .timeout = 120)
{
    cr_expect_eq(run_children(64, detect_once), 0);
    cr_expect_leq(probes(), 3, "%d probes", probes());
    cr_expect_geq(probes(), 1);
    cr_expect_eq(run_children(64, detect_once), 0);
    cr_expect_leq(probes(), 3, "%d probes", probes());
}

static bool is_valid_report(char *text)
{
    bool valid = strstr(text, "\"unused\":\"\"") != NULL;

    ds_accel_free_text(text);
    return valid;
}

static atomic_long *race_rounds; /* shared by the children */

/* Children 0 and 1 write in different ways, the others read; none of them may see a wrong
   result. */
static bool race(int child)
{
    struct ds_accel_options options = options_with_cache();
    bool right = true;
    long rounds = 0;

    while (right && (rounds < 10 || atomic_load(race_rounds) < RACE_ROUNDS)) {
        if (child == 0) {
            right = clear_cache(&options) >= 0;
        } else if (child == 1) {
            setenv("DS_ACCEL_COUNTED_ROUND", rounds % 2 == 0 ? "1" : "2", 1);
            right = detect_right();
        } else {
            right = detect_right() && is_valid_report(report(DS_ACCEL_REPORT_CACHE));
        }
        right = right && strstr(test_log, "left out") == NULL && strstr(test_log, "cannot") == NULL;
        test_log[0] = '\0';
        rounds++;
        atomic_fetch_add(race_rounds, 1);
    }
    return right;
}

/* The rounds are counted because their number per second depends on the machine. */
Test(core_cache, writers_and_readers_agree, .timeout = 600)
{
    char shared[] = "/dev/shm/ds-accel-test-XXXXXX";

    race_rounds =
        mmap(NULL, sizeof(*race_rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(race_rounds, MAP_FAILED);
    /* use a memory file system because fsync() is slow on a disk */
    if (mkdtemp(shared) != NULL) {
        snprintf(cache_dir, sizeof(cache_dir), "%s", shared);
        snprintf(file, sizeof(file), "%s/verdicts", cache_dir);
    }
    cr_expect_eq(run_children(5, race), 0);
    expect_chosen("counted");
    if (strncmp(cache_dir, "/dev/shm/", 9) == 0) {
        char path[160];

        unlink(file);
        snprintf(path, sizeof(path), "%s/lock", cache_dir);
        unlink(path);
        snprintf(path, sizeof(path), "%s/config", cache_dir);
        unlink(path);
        cr_expect_eq(rmdir(cache_dir), 0, "something is left in %s", cache_dir);
    }
}
