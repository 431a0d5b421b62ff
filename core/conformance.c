/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The conformance suite, seen from the caller: the processes that the checks run in, and the
 * report.
 *
 *     ds_accel_conformance() -> spawn ds-accel-probe --conformance     {"begin": 7}
 *              ^                   | request: one line of JSON   -->   {"check": 7, "result": ...}
 *              |                   | answers: a line each        <--   ... end of file
 *              +-- next process, from the check behind the last one, until all were made
 *
 * A process ends with the first check that fails, before and behind a check that wants to be alone,
 * and wherever the plugin ends it: what became of it is judged here. The process is not forked: the
 * runtimes of vendors do not survive that.
 */
#include "conformance.h"
#include "prober.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_LIMIT_BYTES 65536u
#define CHECK_LIMIT_NS 30000000000ull /* where the configuration says nothing */
#define FRUITLESS_LIMIT 3             /* processes in a row that began no check */
#define TERM_GRACE_MS 200             /* from SIGTERM to SIGKILL */
#define LATE_LIMIT 3                  /* checks without an end; then no more are made */

/* ---- a process ------------------------------------------------------------------------------ */

struct outcome {
    const char *result; /* NULL: not made */
    uint32_t rule;      /* that it passed or broke */
    uint64_t elapsed_us;
    char detail[512];
};

struct suite {
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
    const char *only; /* borrowed; NULL: all */
    uint32_t device_index;
    uint64_t limit_ns; /* of a check */
    char *program;
    struct outcome *outcomes; /* of every check, by position */
    size_t check_count;
    char unusable[512]; /* why the plugin cannot be checked; "" if it can */
    int broken_stage;   /* the plugin ends whoever brings it up that far; -1: none */
    int late_count;     /* checks without an end */

    /* Of the process that runs now. */
    pid_t pid;
    int channel;
    int output; /* what the plugin prints */
    size_t next;
    bool is_inside; /* of the check next, which has begun */
    int starting;   /* stage to which the plugin is being brought up for it; -1: none */
    uint64_t begin_ns;
};

/* What it prints goes into a file without a name. */
static int spawn_helper(struct suite *suite, int channel)
{
    const int descriptors[] = {suite->output, suite->output, channel};
    const char *containment = ds_accel__probe_containment(suite->context);

    /* Two processes that share memory find each other by their numbers in /proc. */
    if (strcmp(containment, "auto") == 0) {
        containment = "outside";
    }
    return ds_accel__helper_spawn(&suite->pid, suite->program, containment, "--conformance",
                                  descriptors, (int)DS_ACCEL__ARRAY_SIZE(descriptors));
}

static int32_t start(struct suite *suite)
{
    int ends[2] = {-1, -1};
    int error = 0;

    suite->output = memfd_create("ds_accel_output", MFD_CLOEXEC);
    if (suite->output < 0 || !ds_accel__helper_raise(&suite->output) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
        !ds_accel__helper_raise(&ends[0]) || !ds_accel__helper_raise(&ends[1])) {
        error = errno;
    } else {
        error = spawn_helper(suite, ends[1]);
    }
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    suite->channel = ends[0];
    if (error != 0) {
        return ds_accel__error(error == ENOMEM   ? DS_ACCEL_ERR_NO_MEMORY
                               : error == ENOENT ? DS_ACCEL_ERR_IO
                                                 : DS_ACCEL_ERR_LIMIT,
                               "%s cannot be started: %s", suite->program, strerror(error));
    }
    return DS_ACCEL_OK;
}

/* What the process is to do, as one line. */
static char *request(const struct suite *suite)
{
    const ds_accel_t *context = suite->context;
    json_t *options = ds_accel__config_backend(&context->config, suite->candidate->name, "options");
    bool failed = false;
    json_t *tree = json_object();
    char *line;

    ds_accel__json_set(tree, "version", json_string(DS_ACCEL_VERSION), &failed);
    ds_accel__json_set(tree, "name", json_string(suite->candidate->name), &failed);
    /* Byte by byte: a path need not be UTF-8. */
    ds_accel__json_set(tree, "device", json_integer(suite->device_index), &failed);
    ds_accel__json_set(tree, "first", json_integer((json_int_t)suite->next), &failed);
    ds_accel__json_set(tree, "root", ds_accel__json_text(context->machine_root), &failed);
    ds_accel__json_set(tree, "only", ds_accel__json_text(suite->only), &failed);
    ds_accel__json_set(tree, "ignores_env", json_boolean(context->env.ignored), &failed);
    ds_accel__json_set(tree, "options", options != NULL ? json_deep_copy(options) : json_object(),
                       &failed);
    line = failed ? NULL : ds_accel__json_dump(tree, JSON_COMPACT);
    json_decref(tree);
    return line;
}

static int32_t send_request(struct suite *suite)
{
    char *line = request(suite);
    char *message = line != NULL ? ds_accel__format("%s\n%s\n", suite->candidate->path, line)
                                 : NULL;
    size_t size = message != NULL ? strlen(message) : 0;
    size_t sent = 0;

    free(line);
    if (message == NULL) {
        return ds_accel__no_memory();
    }
    while (sent < size) {
        ssize_t count = send(suite->channel, message + sent, size - sent, MSG_NOSIGNAL);

        if (count < 0 && errno != EINTR) {
            break; /* it has ended: seen by whoever waits for its answer */
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    free(message);
    return DS_ACCEL_OK;
}

__attribute__((format(printf, 4, 5))) static void
set_outcome(struct suite *suite, const char *result, uint32_t rule, const char *format, ...)
{
    struct outcome *outcome = &suite->outcomes[suite->next];
    va_list arguments;

    outcome->result = result;
    outcome->rule = rule;
    outcome->elapsed_us = (ds_accel__now_ns() - suite->begin_ns) / 1000;
    va_start(arguments, format);
    vsnprintf(outcome->detail, sizeof(outcome->detail), format, arguments);
    va_end(arguments);
    ds_accel__sanitize(outcome->detail, sizeof(outcome->detail));
    suite->is_inside = false;
    suite->next++;
}

/* {"begin": 7}, {"check": 7, "result": "failed", "detail": "..."} or {"unusable": "..."} */
static bool take_line(struct suite *suite, const char *line)
{
    static const char *const results[] = {"passed", "failed", "skipped"};
    json_t *tree = json_loads(line, 0, NULL);
    json_t *begin = json_object_get(tree, "begin");
    json_t *check = json_object_get(tree, "check");
    const char *unusable = json_string_value(json_object_get(tree, "unusable"));
    bool is_valid = true;

    if (unusable != NULL) {
        ds_accel__copy(suite->unusable, sizeof(suite->unusable), unusable);
        ds_accel__sanitize(suite->unusable, sizeof(suite->unusable));
    } else if (json_is_integer(begin) && (size_t)json_integer_value(begin) < suite->check_count) {
        json_t *stage = json_object_get(tree, "starts");

        suite->next = (size_t)json_integer_value(begin);
        suite->is_inside = true;
        suite->starting = json_is_integer(stage) ? (int)json_integer_value(stage) : -1;
        suite->begin_ns = ds_accel__now_ns();
    } else if (suite->is_inside && (size_t)json_integer_value(check) == suite->next) {
        const char *result = json_string_value(json_object_get(tree, "result"));
        const char *detail = json_string_value(json_object_get(tree, "detail"));

        is_valid = false;
        for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(results) && result != NULL; i++) {
            if (strcmp(results[i], result) == 0) {
                set_outcome(suite, results[i], ds_accel__check_at(suite->next)->rule, "%s",
                            detail != NULL ? detail : "");
                is_valid = true;
                break;
            }
        }
    } else {
        is_valid = false;
    }
    json_decref(tree);
    return is_valid;
}

enum ended {
    ENDED_ITSELF,
    ENDED_LATE,
    ENDED_GARBLED
};

/* Take lines until the process closes its end, or a check lasts too long. */
static enum ended listen_to(struct suite *suite)
{
    char buffer[LINE_LIMIT_BYTES];
    size_t size = 0;

    suite->begin_ns = ds_accel__now_ns();
    for (;;) {
        struct pollfd wait = {.fd = suite->channel, .events = POLLIN};
        uint64_t now = ds_accel__now_ns();
        uint64_t end = suite->begin_ns + suite->limit_ns;
        int ready = poll(&wait, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0);
        ssize_t count;
        char *newline;

        if (ready == 0) {
            return ENDED_LATE;
        }
        count = recv(suite->channel, buffer + size, sizeof(buffer) - 1 - size, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (count <= 0) {
            return size > 0 ? ENDED_GARBLED : ENDED_ITSELF;
        }
        size += (size_t)count;
        buffer[size] = '\0';
        while ((newline = memchr(buffer, '\n', size)) != NULL) {
            size_t length = (size_t)(newline - buffer) + 1;

            *newline = '\0';
            if (!take_line(suite, buffer)) {
                return ENDED_GARBLED;
            }
            size -= length;
            memmove(buffer, buffer + length, size);
        }
        if (size == sizeof(buffer) - 1) {
            return ENDED_GARBLED;
        }
    }
}

/* End the process with all that it started; how it ended by itself, for people. */
static void reap(struct suite *suite, bool is_killed, char *text, size_t text_size)
{
    int status = 0;
    pid_t pid;

    if (is_killed) { /* asked first, so that it can end what it started, wherever that is */
        struct pollfd end = {.fd = suite->channel, .events = 0};

        kill(suite->pid, SIGTERM);
        poll(&end, 1, TERM_GRACE_MS);
        kill(suite->pid, SIGKILL);
    }
    do {
        pid = waitpid(suite->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    kill(-suite->pid, SIGKILL);
    close(suite->channel);
    if (pid != suite->pid) {
        snprintf(text, text_size, "its process ended");
    } else if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        snprintf(text, text_size, "SIG%s ended the process", name != NULL ? name : "?");
    } else {
        snprintf(text, text_size, "exit code %d ended the process", WEXITSTATUS(status));
    }
}

/* The last line that was printed: what a failed assert() or a sanitizer has to say. */
static void read_output(struct suite *suite, char *text, size_t text_size)
{
    char tail[256];
    off_t size = lseek(suite->output, 0, SEEK_END);
    off_t start = size > (off_t)sizeof(tail) - 1 ? size - (off_t)sizeof(tail) + 1 : 0;
    ssize_t count = size > 0 ? pread(suite->output, tail, sizeof(tail) - 1, start) : 0;
    char *line;

    text[0] = '\0';
    close(suite->output);
    while (count > 0 && tail[count - 1] == '\n') {
        count--;
    }
    if (count > 0) {
        tail[count] = '\0';
        line = strrchr(tail, '\n');
        snprintf(text, text_size, "; printed: %.200s", line != NULL ? line + 1 : tail);
    }
}

/* The check that the process was in when it ended is broken, whatever it was about. */
static void judge_end(struct suite *suite, enum ended ended, const char *how, const char *printed)
{
    const struct ds_accel__check *check = ds_accel__check_at(suite->next);
    bool is_own = (check->flags & DS_ACCEL__CHECK_TRAP) != 0 && suite->starting < 0;
    uint32_t rule = is_own ? check->rule : 26;

    suite->late_count += ended == ENDED_LATE;
    if (suite->starting >= 0) {
        suite->broken_stage = suite->starting;
    }
    if (ended == ENDED_LATE) {
        set_outcome(suite, "failed", check->rule, "no answer within %llu ms%s",
                    (unsigned long long)(suite->limit_ns / 1000000), printed);
    } else if (ended == ENDED_GARBLED) {
        set_outcome(suite, "failed", 28, "something else wrote to the suite's channel%s", printed);
    } else {
        set_outcome(suite, "failed", rule, "%s%s", how, printed);
    }
}

/* NULL, or why it makes no sense to begin a check. */
static const char *cannot_begin(const struct suite *suite, const struct ds_accel__check *check)
{
    if (suite->late_count >= LATE_LIMIT) {
        return "too many checks did not end";
    }
    return suite->broken_stage >= 0 && (int)check->stage >= suite->broken_stage
               ? "the plugin ends, or holds up, the process that starts it"
               : NULL;
}

/* To the first check from here that is to be made, or behind the last. */
static void find_next(struct suite *suite)
{
    while (suite->next < suite->check_count) {
        const struct ds_accel__check *check = ds_accel__check_at(suite->next);
        const char *why = cannot_begin(suite, check);

        if (!ds_accel__check_is_chosen(check, suite->only)) {
            suite->next++;
        } else if (why != NULL) {
            suite->begin_ns = ds_accel__now_ns();
            set_outcome(suite, "skipped", check->rule, "%s", why);
        } else {
            return;
        }
    }
}

static int32_t run_process(struct suite *suite)
{
    char how[128];
    char printed[256];
    enum ended ended;
    int32_t status = start(suite);

    if (status >= 0) {
        status = send_request(suite);
        ended = status >= 0 ? listen_to(suite) : ENDED_LATE;
        reap(suite, ended != ENDED_ITSELF, how, sizeof(how));
        read_output(suite, printed, sizeof(printed));
        if (status >= 0 && suite->is_inside) {
            judge_end(suite, ended, how, printed);
        }
        return status;
    }
    if (suite->channel >= 0) {
        close(suite->channel);
    }
    if (suite->output >= 0) {
        close(suite->output);
    }
    return status;
}

static int32_t run_all(struct suite *suite)
{
    int fruitless = 0;

    find_next(suite);
    while (suite->next < suite->check_count && suite->unusable[0] == '\0') {
        size_t before = suite->next;
        int32_t status = run_process(suite);

        if (status < 0) {
            return status;
        }
        find_next(suite);
        fruitless = suite->next == before ? fruitless + 1 : 0;
        if (fruitless == FRUITLESS_LIMIT) {
            return ds_accel__error(DS_ACCEL_ERR_IO, "%s begins no check: is it of this library?",
                                   suite->program);
        }
    }
    if (suite->unusable[0] != '\0') {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s", suite->unusable);
    }
    return DS_ACCEL_OK;
}

/* ---- the report ----------------------------------------------------------------------------- */

static json_t *check_tree(const struct ds_accel__check *check, const struct outcome *outcome,
                          bool *failed)
{
    bool is_made = outcome != NULL && outcome->result != NULL;
    uint32_t rule = is_made ? outcome->rule : check->rule;
    const char *title = ds_accel__rule_title(rule);
    json_t *tree = json_object();
    char text[16];

    snprintf(text, sizeof(text), "DSA-P%u", rule);
    ds_accel__json_set(tree, "rule", json_string(text), failed);
    ds_accel__json_set(tree, "title", ds_accel__json_text(title), failed);
    ds_accel__json_set(tree, "group", json_string(check->group), failed);
    ds_accel__json_set(tree, "name", json_string(check->name), failed);
    ds_accel__json_set(tree, "result", json_string(is_made ? outcome->result : "listed"), failed);
    ds_accel__json_set(tree, "detail", ds_accel__json_text(is_made ? outcome->detail : ""), failed);
    ds_accel__json_set(tree, "elapsed_us",
                       json_integer(is_made ? (json_int_t)outcome->elapsed_us : 0), failed);
    return tree;
}

/* outcomes NULL: only what there is to check. */
static json_t *suite_tree(const char *only, const struct suite *suite, size_t *failed_count_out)
{
    size_t counts[3] = {0, 0, 0};
    bool failed = false;
    json_t *tree = json_object();
    json_t *checks = json_array();
    json_t *summary = json_object();
    const struct ds_accel__check *check;

    for (size_t i = 0; (check = ds_accel__check_at(i)) != NULL; i++) {
        const struct outcome *outcome = suite != NULL ? &suite->outcomes[i] : NULL;

        if (!ds_accel__check_is_chosen(check, only)) {
            continue;
        }
        if (outcome != NULL && outcome->result != NULL) {
            counts[outcome->result[0] == 'p' ? 0 : outcome->result[0] == 'f' ? 1 : 2]++;
        }
        if (json_array_append_new(checks, check_tree(check, outcome, &failed)) != 0) {
            failed = true;
        }
    }
    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "path",
                       ds_accel__json_text(suite != NULL ? suite->candidate->path : ""), &failed);
    ds_accel__json_set(tree, "name",
                       ds_accel__json_text(suite != NULL ? suite->candidate->name : ""), &failed);
    ds_accel__json_set(tree, "device",
                       suite != NULL ? json_integer(suite->device_index) : json_null(), &failed);
    ds_accel__json_set(tree, "ok", json_boolean(counts[1] == 0), &failed);
    ds_accel__json_set(summary, "passed", json_integer((json_int_t)counts[0]), &failed);
    ds_accel__json_set(summary, "failed", json_integer((json_int_t)counts[1]), &failed);
    ds_accel__json_set(summary, "skipped", json_integer((json_int_t)counts[2]), &failed);
    ds_accel__json_set(tree, "summary", summary, &failed);
    ds_accel__json_set(tree, "checks", checks, &failed);
    *failed_count_out = counts[1];
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* ---- the plugin ----------------------------------------------------------------------------- */

static bool is_file(const char *name_or_path)
{
    size_t length = strlen(name_or_path);

    return strchr(name_or_path, '/') != NULL ||
           (length > 3 && strcmp(name_or_path + length - 3, ".so") == 0);
}

/* A file that this host would not load, or without a note that it can go by, is not run. */
static int32_t check_content(const char *path, const char *name)
{
    struct ds_accel__elf elf = {0};
    struct ds_accel__finding finding = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int32_t status;

    if (fd < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, strerror(errno));
    }
    status = ds_accel__elf_open(fd, &elf, &finding);
    close(fd);
    if (status >= 0 && finding.reason == NULL) {
        ds_accel__elf_check_harm(&elf, &finding);
        if (finding.reason == NULL) {
            ds_accel__elf_check_note(&elf, name, &finding);
        }
        status = elf.is_short_of_memory ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    ds_accel__elf_close(&elf);
    if (status >= 0 && finding.reason != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s: %s", path, finding.reason,
                               finding.detail);
    }
    return status;
}

/* A vendor's build tree need not be trusted: whoever names a file knows it. */
static int32_t take_file(struct suite *suite, const char *path)
{
    const char *base = strrchr(path, '/');
    char name[DS_ACCEL__NAME_SIZE] = "";
    char *real;
    size_t length;
    int32_t status;

    base = base != NULL ? base + 1 : path;
    length = strlen(base);
    if (length > 12 && length - 12 < sizeof(name) && strncmp(base, "ds_accel_", 9) == 0) {
        snprintf(name, sizeof(name), "%.*s", (int)length - 12, base + 9);
    }
    if (!ds_accel__is_backend_name(name)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: expected ds_accel_<name>.so", path);
    }
    status = check_content(path, name);
    if (status < 0) {
        return status;
    }
    real = realpath(path, NULL);
    path = real != NULL ? real : path;
    status = ds_accel__trust_named_file(path);
    if (status >= 0) {
        suite->candidate = ds_accel__candidate_create(suite->context, name, path);
        status = suite->candidate != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    free(real);
    return status;
}

static int32_t take_name(struct suite *suite, const char *name)
{
    struct ds_accel__candidate *found = ds_accel__registry_find(&suite->context->registry, name);
    bool passed;
    int32_t status;

    if (found == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "there is no plugin of the name \"%s\"; see ds-accel list", name);
    }
    if (found->is_registered) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                               "\"%s\" is part of the program and has no file to check", name);
    }
    status = ds_accel__asking_begin(suite->context);
    if (status >= 0) {
        status = ds_accel__candidate_check_file(found, &passed);
    }
    ds_accel__asking_end(suite->context);
    if (status >= 0 && !passed) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s is not used: %s: %s", name,
                               found->reason, found->detail != NULL ? found->detail : "");
    }
    if (status >= 0) {
        suite->candidate = ds_accel__candidate_create(suite->context, name, found->path);
        status = suite->candidate != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    return status;
}

static int32_t prepare(struct suite *suite, const struct ds_accel_options *options,
                       const char *name_or_path)
{
    json_t *limit;
    int32_t status = ds_accel_create(options, &suite->context);

    if (status < 0) {
        return status;
    }
    if (suite->context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: no plugin is run on it");
    }
    status = is_file(name_or_path) ? take_file(suite, name_or_path)
                                   : take_name(suite, name_or_path);
    if (status < 0) {
        return status;
    }
    if (strchr(suite->candidate->path, '\n') != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the path of the plugin has a line end");
    }
    limit = ds_accel__config_get(&suite->context->config, "probe", "timeout_ms", NULL);
    suite->limit_ns = json_is_integer(limit) && json_integer_value(limit) > 0
                          ? (uint64_t)json_integer_value(limit) * 1000000u
                          : CHECK_LIMIT_NS;
    suite->program = ds_accel__probe_program();
    suite->outcomes = calloc(suite->check_count, sizeof(*suite->outcomes));
    return suite->program != NULL && suite->outcomes != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

static int32_t check_only(const char *only)
{
    const struct ds_accel__check *check;

    for (size_t i = 0; (check = ds_accel__check_at(i)) != NULL; i++) {
        if (ds_accel__check_is_chosen(check, only)) {
            return DS_ACCEL_OK;
        }
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "no check is of the rule or group \"%s\"", only);
}

int32_t ds_accel_conformance(const struct ds_accel_options *options, const char *name_or_path,
                             uint32_t device_index, const char *only, uint32_t format,
                             char **text_out)
{
    struct suite suite = {.only = only,
                          .device_index = device_index,
                          .channel = -1,
                          .output = -1,
                          .broken_stage = -1};
    size_t failed_count = 0;
    int32_t status;

    if (text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "text_out is NULL");
    }
    status = check_only(only);
    if (status >= 0 && name_or_path == NULL) {
        return ds_accel__report_write(DS_ACCEL__REPORT_CONFORMANCE,
                                      suite_tree(only, NULL, &failed_count), format, text_out);
    }
    while (ds_accel__check_at(suite.check_count) != NULL) {
        suite.check_count++;
    }
    if (status >= 0) {
        status = prepare(&suite, options, name_or_path);
    }
    if (status >= 0) {
        status = run_all(&suite);
    }
    if (status >= 0) {
        status = ds_accel__report_write(DS_ACCEL__REPORT_CONFORMANCE,
                                        suite_tree(only, &suite, &failed_count), format, text_out);
    }
    if (status >= 0 && failed_count > 0) {
        status = ds_accel__error(DS_ACCEL_ERR_ABI, "%s breaks rules of the plugin ABI",
                                 suite.candidate->path);
    }
    free(suite.outcomes);
    free(suite.program);
    ds_accel__candidate_destroy(suite.candidate);
    ds_accel_destroy(suite.context);
    return status;
}
