/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The decision that a launcher hands down to its ranks. Each check is a launcher's context, whose
 * decision is put into the environment, and then a rank's context that detects. Helper processes
 * are counted by SIGCHLD, and nothing is stored (DS_ACCEL_CACHE=off), so a rank that probes starts
 * one. The functions of the launcher are internal, so this program is linked with the core's own
 * objects.
 *
 *     decision PLUGINS DIRECTORY MACHINE
 *
 * DIRECTORY is emptied and used for copies of plugins and for configurations; MACHINE is the file
 * of a recorded machine.
 */
#include "host/decision.h"
#include "base/text.h"
#include "config/env.h"
#include "host/context.h"
#include "host/detect.h"
#include "host/evaluate.h"
#include "host/strike.h"
#include "host/verdict.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "DS_ACCEL_DECISION"

static unsigned passed;
static unsigned failed;
static const char *directory;
static volatile sig_atomic_t child_count;

/* What a rank's detection did. */
static struct {
    int32_t status;
    char name[32];
    char method[32];
    uint32_t device_count;
    bool has_helper;  /* a process was started */
    bool is_complete; /* no allocation failed */
    char log[8192];
    char error[2048];
} rank;

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s: %d %s (%s), %u devices, helper %d\n  error: %s\n  log: %s\n", name,
               rank.status, rank.name, rank.method, rank.device_count, rank.has_helper, rank.error,
               rank.log);
    }
}

static void need(bool right, const char *what)
{
    if (!right) {
        printf("FAILED: %s: %s: %s\n", what, strerror(errno), ds_accel_last_error());
        exit(1);
    }
}

static void count_child(int number)
{
    (void)number;
    child_count++;
}

static void add_line(void *user_data, uint32_t level, const char *topic, const char *message)
{
    size_t used = strlen(rank.log);

    (void)user_data;
    (void)topic;
    snprintf(rank.log + used, sizeof(rank.log) - used, "%u %s\n", level, message);
}

/* ---- allocations that fail ------------------------------------------------------------------ */

static unsigned long fail_at; /* the next allocation that fails is the N-th from now; 0: none */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return fails() ? NULL : __real_realloc(pointer, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* ---- files ---------------------------------------------------------------------------------- */

static const char *in_directory(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_directory(name), "w");

    need(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, name);
}

static void shell(const char *command)
{
    int status = system(command);

    need(status == 0, command);
}

static void prepare(const char *plugins)
{
    char command[16384];

    snprintf(command, sizeof(command),
             "rm -rf '%s' && mkdir -p '%s/one' '%s/two' && cp '%s'/ds_accel_mock.so "
             "'%s'/ds_accel_cpu.so '%s/one' && cp '%s/one/'*.so '%s/two'",
             directory, directory, directory, plugins, plugins, directory, directory, directory);
    shell(command);
    write_file("auto.json", "{\"detection_order\": [\"mock\", \"cpu\"],\n"
                            " \"backends\": {\"mock\": {\"demand_only\": false}}}\n");
    write_file("same.json", "{\"backends\": {\"mock\": {\"demand_only\": false}},\n"
                            " \"detection_order\": [\"mock\", \"cpu\"]}\n");
    write_file("other.json", "{\"detection_order\": [\"cpu\", \"mock\"],\n"
                             " \"backends\": {\"mock\": {\"demand_only\": false}}}\n");
    write_file("demand.json", "{\"detection_order\": [\"mock\", \"cpu\"]}\n");
    write_file("fixed.json", "{\"accelerator\": \"mock\"}\n");
    write_file("fixed-cpu.json", "{\"accelerator\": \"cpu\"}\n");
}

/* ---- launcher and rank ---------------------------------------------------------------------- */

struct setting {
    const char *config;      /* NULL: auto.json */
    const char *accelerator; /* option */
    const char *plugins;     /* NULL: "one" */
    uint32_t flags;
    bool chooses;        /* the rank is the command detect */
    const char *machine; /* file of a recorded machine; NULL: this machine */
    int32_t (*change)(ds_accel_t *context);
    unsigned long fail_at; /* number of the allocation that fails during the detection; 0: none */
};

static ds_accel_t *create(const struct setting *setting)
{
    const char *plugin_dir = in_directory(setting->plugins != NULL ? setting->plugins : "one");
    const char *config = in_directory(setting->config != NULL ? setting->config : "auto.json");
    struct ds_accel_options options = {
        .struct_size = sizeof(options),
        .flags = setting->flags | DS_ACCEL_OPTION_NO_USER_CONFIG,
        .accelerator = setting->accelerator,
        .plugin_dirs = &plugin_dir,
        .plugin_dir_count = setting->machine == NULL,
        .config_file = setting->machine == NULL ? config : NULL,
        .log_levels = "info",
        .log_sink = add_line,
        .machine_file = setting->machine,
    };
    ds_accel_t *context;

    need(ds_accel_create(&options, &context) >= 0, "create");
    return context;
}

/* Decide as a launcher, and put the decision into the environment. */
static void launch(const struct setting *setting)
{
    ds_accel_t *context;
    struct ds_accel__text text = {0};

    unsetenv(VARIABLE);
    context = create(setting);
    need(ds_accel__choose(context) >= 0, "choose");
    need(ds_accel__decision_write(context, &text) >= 0 && text.size_bytes > 0, "write");
    need(setenv(VARIABLE, text.data, 1) == 0, "setenv");
    ds_accel__text_clear(&text);
    ds_accel_destroy(context);
}

static void detect(const struct setting *setting)
{
    ds_accel_t *context;

    memset(&rank, 0, sizeof(rank));
    context = create(setting);
    child_count = 0;
    rank.status = setting->change != NULL ? setting->change(context) : DS_ACCEL_OK;
    if (rank.status >= 0) {
        fail_at = setting->fail_at;
        rank.status = setting->chooses ? ds_accel__choose(context) : ds_accel_detect(context);
    }
    rank.is_complete = fail_at > 0 || setting->fail_at == 0;
    fail_at = 0;
    if (rank.status >= 0) {
        ds_accel__copy(rank.name, sizeof(rank.name), context->chosen->name);
        ds_accel__copy(rank.method, sizeof(rank.method), context->set_method);
        rank.device_count = context->device_count;
    } else {
        ds_accel__copy(rank.error, sizeof(rank.error), ds_accel_last_error());
    }
    ds_accel_destroy(context);
    rank.has_helper = child_count > 0;
}

static bool is_decided(const char *name, const char *method)
{
    return rank.status >= 0 && strcmp(rank.name, name) == 0 && strcmp(rank.method, method) == 0 &&
           !rank.has_helper && strstr(rank.log, "ignored") == NULL;
}

/* The decision was ignored for this reason, and the rank probed. */
static bool is_ignored(const char *why, const char *name)
{
    char line[256];

    snprintf(line, sizeof(line), "the launcher's decision is ignored: %s", why);
    return rank.status >= 0 && rank.has_helper && strcmp(rank.name, name) == 0 &&
           strstr(rank.log, line) != NULL;
}

static const struct setting plain = {0};

/* ---- use ------------------------------------------------------------------------------------ */

static void test_use(void)
{
    const struct setting forced = {.accelerator = "mock"};
    const struct setting fixed = {.config = "fixed.json"};
    const struct setting same = {.config = "same.json"};
    const struct setting copy = {.accelerator = "mock", .flags = DS_ACCEL_OPTION_NO_CACHE};
    const struct setting command = {.chooses = true};

    unsetenv(VARIABLE);
    detect(&plain);
    check("without a decision, a rank starts a helper",
          rank.status >= 0 && strcmp(rank.name, "mock") == 0 && rank.has_helper);
    launch(&plain);
    detect(&plain);
    check("with one, it starts none", is_decided("mock", "auto detect") && rank.device_count == 2);
    detect(&command);
    check("nor does the command detect", is_decided("mock", "auto detect"));
    detect(&same);
    check("another file with the same values is the same configuration",
          is_decided("mock", "auto detect"));
    detect(&copy);
    check("the decided accelerator may be forced, too", is_decided("mock", "auto detect"));
    launch(&forced);
    detect(&plain);
    check("the method of an option is the launcher's", is_decided("mock", "override"));
    launch(&fixed);
    detect(&fixed);
    check("that of the configuration, too", is_decided("mock", "config"));
    setenv("DS_ACCEL_MOCK_AVAILABLE", "false", 1);
    launch(&plain);
    unsetenv("DS_ACCEL_MOCK_AVAILABLE");
    detect(&plain);
    check("cpu is decided without a warning",
          is_decided("cpu", "auto detect") && strstr(rank.log, "falling back") == NULL);
}

static void test_devices(void)
{
    launch(&plain);
    setenv("DS_ACCEL_MOCK_DEVICE_COUNT", "5", 1);
    setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    setenv("LOCAL_SIZE", "4", 1);
    detect(&plain);
    check("the rank counts its own devices",
          is_decided("mock", "auto detect") && rank.device_count == 5);
    unsetenv("DS_ACCEL_MOCK_DEVICE_COUNT");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("LOCAL_SIZE");
}

/* ---- reasons to ignore a decision ----------------------------------------------------------- */

/* Put a decision of this machine with one change into the environment. */
static void forge(void (*change)(struct ds_accel__decision *decision))
{
    struct ds_accel__decision decision;
    struct ds_accel__text text = {0};

    launch(&plain);
    need(ds_accel__decision_parse(getenv(VARIABLE), &decision) == NULL, "parse");
    change(&decision);
    ds_accel__decision_format(&decision, &text);
    need(!text.failed && setenv(VARIABLE, text.data, 1) == 0, "setenv");
    ds_accel__text_clear(&text);
}

static void change_version(struct ds_accel__decision *decision)
{
    strcpy(decision->version, "0.0.9");
}

static void change_host(struct ds_accel__decision *decision)
{
    decision->host ^= 1;
}

static void change_user(struct ds_accel__decision *decision)
{
    decision->user++;
}

static void change_name(struct ds_accel__decision *decision)
{
    strcpy(decision->accelerator, "acme");
}

static void change_file(struct ds_accel__decision *decision)
{
    decision->file.changed_ns ^= 1;
}

static void test_identity(void)
{
    static const struct {
        void (*change)(struct ds_accel__decision *decision);
        const char *why;
    } cases[] = {
        {change_version, "it was made by another version of ds-accel"},
        {change_host, "it was made on another machine, or before this machine was restarted"},
        {change_user, "it was made by another user"},
        {change_name, "its plugin is in none of the directories searched"},
        {change_file, "its plugin is another file, or was changed since"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        forge(cases[i].change);
        detect(&plain);
        check(cases[i].why, is_ignored(cases[i].why, "mock"));
    }
    launch(&plain);
    setenv("DS_ACCEL_ROOT", "/", 1);
    detect(&plain);
    check("another root is another machine", is_ignored("it was made on another machine", "mock"));
    unsetenv("DS_ACCEL_ROOT");
}

static void test_text(void)
{
    char *text;

    setenv(VARIABLE, "mock", 1);
    detect(&plain);
    check("another format", is_ignored("it is not in the format of this version", "mock"));
    launch(&plain);
    text = strdup(getenv(VARIABLE));
    need(text != NULL, "strdup");
    text[strlen(text) - 1] = '\0';
    setenv(VARIABLE, text, 1);
    detect(&plain);
    check("a truncated value", is_ignored("its checksum is wrong", "mock"));
    text[strlen(text) / 2] ^= 1;
    setenv(VARIABLE, text, 1);
    detect(&plain);
    check("a changed value", is_ignored("its checksum is wrong", "mock"));
    setenv(VARIABLE, "", 1);
    detect(&plain);
    check("an empty value is none",
          rank.status >= 0 && rank.has_helper && strstr(rank.log, "ignored") == NULL);
    free(text);
}

static void test_files(void)
{
    const struct setting other = {.plugins = "two"};

    launch(&plain);
    detect(&other);
    check("a copy of the plugin", is_ignored("its plugin is another file", "mock"));
    need(utimensat(AT_FDCWD, in_directory("one/ds_accel_mock.so"), NULL, 0) == 0, "utimensat");
    detect(&plain);
    check("a changed plugin", is_ignored("its plugin is another file", "mock"));
    launch(&other);
    need(chmod(in_directory("two"), 0777) == 0, "chmod");
    detect(&other);
    check("a directory that others may write to",
          strcmp(rank.name, "mock") != 0 &&
              strstr(rank.log, "the launcher's decision is ignored: ") != NULL);
    need(chmod(in_directory("two"), 0755) == 0, "chmod");
    detect(&other);
    check("the check is repeated", is_decided("mock", "auto detect"));
    need(unlink(in_directory("two/ds_accel_mock.so")) == 0, "unlink");
    detect(&other);
    check("a plugin that was removed", rank.status >= 0 && strstr(rank.log, "is ignored") != NULL);
}

static void test_settings(void)
{
    const struct setting forced = {.accelerator = "cpu"};
    const struct setting other = {.config = "other.json"};
    const struct setting demand = {.config = "demand.json"};
    const struct setting fixed = {.config = "fixed-cpu.json"};
    const struct setting closed = {.flags = DS_ACCEL_OPTION_NO_ENVIRONMENT};

    launch(&plain);
    detect(&forced);
    check("another accelerator is forced by the program",
          is_ignored("another accelerator is forced in this process", "cpu"));
    setenv("DS_ACCELERATOR", "cpu", 1);
    detect(&plain);
    check("or by the user", is_ignored("another accelerator is forced in this process", "cpu") &&
                                strcmp(rank.method, "override") == 0);
    setenv("DS_ACCELERATOR", "mock", 1);
    detect(&plain);
    check("the same accelerator is not another", is_decided("mock", "auto detect"));
    unsetenv("DS_ACCELERATOR");
    detect(&other);
    check("another order", is_ignored("it was made with another configuration", "cpu"));
    detect(&demand);
    check("another kind of candidate", is_ignored("it was made with another configuration", "cpu"));
    detect(&fixed);
    check("another configured accelerator",
          is_ignored("it was made with another configuration", "cpu") &&
              strcmp(rank.method, "config") == 0);
    detect(&closed);
    check("without environment there is no decision",
          rank.status >= 0 && rank.has_helper && strstr(rank.log, "ignored") == NULL);
}

/* ---- start ---------------------------------------------------------------------------------- */

static void test_start(void)
{
    const struct setting forced = {.accelerator = "mock"};

    launch(&plain);
    setenv("DS_ACCEL_MOCK_FAIL", "init=driver", 1);
    detect(&plain);
    check("a failed start is reported, and detection goes on",
          rank.status >= 0 && strcmp(rank.name, "cpu") == 0 && rank.has_helper &&
              strstr(rank.log, "2 mock was chosen by the launcher but fails to start here "
                               "(start_failed: init: ") != NULL);
    detect(&forced);
    check("unless it is forced by the program",
          rank.status == DS_ACCEL_ERR_NOT_USABLE && !rank.has_helper &&
              strstr(rank.error, "the option accelerator is \"mock\", which cannot be used: "
                                 "start_failed: ") != NULL);
    unsetenv("DS_ACCEL_MOCK_FAIL");
    launch(&forced);
    setenv("DS_ACCEL_MOCK_FAIL", "init=driver", 1);
    detect(&plain);
    check("or by the launcher",
          rank.status == DS_ACCEL_ERR_NOT_USABLE && !rank.has_helper &&
              strstr(rank.error, "the launcher's decision is \"mock\", which") != NULL);
    unsetenv("DS_ACCEL_MOCK_FAIL");
}

static int32_t ask_anew(ds_accel_t *context)
{
    char *text;
    int32_t status =
        ds_accel_report(context, DS_ACCEL_REPORT_LIST, NULL, DS_ACCEL_FORMAT_JSON, &text);

    if (status >= 0) {
        ds_accel_free_text(text);
    }
    return status;
}

static int32_t check_first(ds_accel_t *context)
{
    return ds_accel_check(context, "mock");
}

static void test_reports(void)
{
    const struct setting list = {.change = ask_anew};
    const struct setting checked = {.change = check_first};

    launch(&plain);
    detect(&list);
    check("a report probes", is_ignored("a report probes all plugins again", "mock"));
    detect(&checked);
    check("an earlier check does no harm", rank.status >= 0 && strcmp(rank.name, "mock") == 0);
}

static void test_write(void)
{
    ds_accel_t *context = create(&plain);
    struct ds_accel__text text = {0};

    check("without a choice there is no decision",
          ds_accel__decision_write(context, &text) >= 0 && text.size_bytes == 0);
    ds_accel_destroy(context);
    ds_accel__text_clear(&text);
}

/* ---- quarantine, registered backends, recordings, fork --------------------------------------- */

/* Store two crashes of the mock, as a process would that probes it. */
static int32_t strike_twice(ds_accel_t *context)
{
    struct ds_accel__candidate *mock = ds_accel__registry_find(&context->registry, "mock");
    struct ds_accel__record *record;
    bool is_passed;

    pthread_mutex_lock(&context->lock);
    ds_accel__evaluation_begin(context);
    need(ds_accel__candidate_check_file(mock, &is_passed) >= 0 && is_passed, "check_file");
    need(ds_accel__verdicts_lock(context) >= 0, "lock");
    record = ds_accel__cache_add(&context->cache, mock->key);
    need(record != NULL, "cache_add");
    record->texts[DS_ACCEL__RECORD_NAME] = mock->name;
    ds_accel__strike_add(record, DS_ACCEL__REASON_PROBE_SIGNAL, "", 0);
    ds_accel__strike_add(record, DS_ACCEL__REASON_PROBE_SIGNAL, "", 0);
    context->cache.is_dirty = true;
    ds_accel__evaluation_end(context);
    pthread_mutex_unlock(&context->lock);
    return DS_ACCEL_ERR_STATE; /* no detection in this context */
}

static void test_quarantine(void)
{
    const struct setting strikes = {.change = strike_twice};
    const struct setting forced = {.accelerator = "mock"};

    setenv("DS_ACCEL_CACHE", "rw", 1);
    setenv("DS_ACCEL_CACHE_DIR", in_directory("cache"), 1);
    launch(&plain);
    detect(&plain);
    check("with a cache, too", is_decided("mock", "auto detect"));
    detect(&strikes);
    detect(&plain);
    check("a quarantined plugin is not started",
          strcmp(rank.name, "cpu") == 0 && strstr(rank.log, "ignored: quarantined") != NULL);
    detect(&forced);
    check("unless it is forced", strcmp(rank.name, "mock") == 0);
    unsetenv("DS_ACCEL_CACHE_DIR");
    setenv("DS_ACCEL_CACHE", "off", 1);
}

static int32_t register_mock(ds_accel_t *context)
{
    void *module = dlopen(in_directory("one/ds_accel_mock.so"), RTLD_NOW | RTLD_LOCAL);
    ds_accel_entry_v1_t entry;
    void *symbol;

    need(module != NULL, "dlopen");
    symbol = dlsym(module, "ds_accel_entry_v1");
    memcpy(&entry, &symbol, sizeof(entry));
    return ds_accel_register(context, entry);
}

static void test_registered(void)
{
    const struct setting registers = {.change = register_mock};

    launch(&plain);
    detect(&registers);
    check("a registered backend replaces the plugin",
          rank.status >= 0 && strcmp(rank.name, "mock") == 0 &&
              strstr(rank.log, "ignored: the program registered its own backend") != NULL);
    setenv("DS_ACCEL_MOCK_AVAILABLE", "false", 1);
    launch(&plain);
    unsetenv("DS_ACCEL_MOCK_AVAILABLE");
    detect(&registers);
    check("a registered backend has its turn before the decided one",
          rank.status >= 0 && strcmp(rank.name, "mock") == 0 &&
              strstr(rank.log, "ignored: the program registered a backend that comes") != NULL);
}

static void test_recording(const char *machine)
{
    const struct setting recorded = {.machine = machine};
    struct ds_accel__text text = {0};
    ds_accel_t *context;

    launch(&plain);
    detect(&recorded);
    check("a recorded machine", strstr(rank.log, "ignored: the machine is a recorded one") != NULL);
    context = create(&recorded);
    check("has no decision for others", ds_accel__choose(context) >= 0 &&
                                            ds_accel__decision_write(context, &text) >= 0 &&
                                            text.size_bytes == 0);
    ds_accel_destroy(context);
}

static void test_fork(void)
{
    ds_accel_t *context;
    int status;
    pid_t child;

    launch(&plain);
    context = create(&plain);
    need(ds_accel_detect(context) >= 0, "detect");
    child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        detect(&plain); /* the mock survives fork() */
        _exit(is_decided("mock", "auto detect") ? 0 : 1);
    }
    need(waitpid(child, &status, 0) == child, "waitpid");
    check("a forked child uses the decision", status == 0);
    ds_accel_destroy(context);
}
static void test_memory(void)
{
    struct setting setting = {.fail_at = 1};
    bool is_right = true;

    launch(&plain);
    do {
        detect(&setting);
        is_right = is_right &&
                   (is_decided("mock", "auto detect") || rank.status == DS_ACCEL_ERR_NO_MEMORY);
        setting.fail_at++;
    } while (!rank.is_complete && is_right);
    check("a failed allocation is an error, or does no harm", is_right && setting.fail_at > 10);
}

static void test_memory_of_launcher(void)
{
    bool is_right = true;
    bool is_complete;
    unsigned long number = 1;

    unsetenv(VARIABLE);
    do {
        ds_accel_t *context = create(&plain);
        struct ds_accel__text text = {0};
        struct ds_accel__decision decision;
        int32_t status;

        need(ds_accel__choose(context) >= 0, "choose");
        fail_at = number++;
        status = ds_accel__decision_write(context, &text);
        is_complete = fail_at > 0;
        fail_at = 0;
        is_right = is_right && (status >= 0 ? ds_accel__decision_parse(text.data, &decision) == NULL
                                            : status == DS_ACCEL_ERR_NO_MEMORY && !is_complete);
        ds_accel__text_clear(&text);
        ds_accel_destroy(context);
    } while (!is_complete && is_right);
    check("a failed allocation of the launcher is an error", is_right && number > 5);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = count_child, .sa_flags = SA_RESTART};

    if (argc != 4) {
        fprintf(stderr, "usage: decision PLUGINS DIRECTORY MACHINE\n");
        return 2;
    }
    directory = argv[2];
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        unsetenv(ds_accel__variables[i].name);
    }
    setenv("DS_ACCEL_CACHE", "off", 1);
    prepare(argv[1]);
    sigaction(SIGCHLD, &action, NULL);
    test_use();
    test_devices();
    test_identity();
    test_text();
    test_files();
    test_settings();
    test_start();
    test_reports();
    test_write();
    test_quarantine();
    test_registered();
    test_recording(argv[3]);
    test_fork();
    test_memory();
    test_memory_of_launcher();
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
