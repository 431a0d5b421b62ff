/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The main function of the process in which the checks run, ds-accel-probe --conformance: reads its
 * task from the channel, brings the plugin up as far as each check needs (conformance_start.c),
 * runs the checks in order and reports the start and result of each on the channel to
 * conformance.c.
 *
 * As in a program, the plugin is loaded, probed, started and its device opened only once, when the
 * first check needs it. Later checks use the plugin in the state that earlier checks left. The
 * process exits after a failed check.
 */
#include "base/json.h"
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/context.h"
#include "host/guard.h"
#include "host/probe.h"
#include "host/probe_child.h"
#include "host/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_LIMIT_BYTES (2 * 1024 * 1024u)

static struct ds_accel__guard guard;

/* ---- reading the request -------------------------------------------------------------------- */

/* Read the request: a line with the path and a line of JSON. NULL if the channel is closed or
 * fails, or if out of memory. */
static char *read_request(void)
{
    char *text = malloc(REQUEST_LIMIT_BYTES);
    size_t size = 0;
    int lines = 0;

    while (text != NULL && lines < 2 && size < REQUEST_LIMIT_BYTES - 1) {
        ssize_t count = recv(DS_ACCEL__PROBE_CHANNEL, text + size, 1, 0);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            free(text);
            return NULL;
        }
        lines += text[size] == '\n';
        size++;
    }
    if (text != NULL) {
        text[size] = '\0';
    }
    return text;
}

/* Make a context whose configuration has only the settings of one plugin, from the request. NULL:
 * out of memory. */
static ds_accel_t *make_context(json_t *request, const char *name)
{
    const char *root = json_string_value(json_object_get(request, "root"));
    ds_accel_t *context = ds_accel__context_bare(
        root != NULL ? root : "", json_is_true(json_object_get(request, "ignores_env")));

    if (context != NULL) {
        context->config.merged = json_pack("{s:{s:{s:O, s:O}}}", "backends", name, "options",
                                           json_object_get(request, "options"), "tolerate",
                                           json_object_get(request, "tolerate"));
    }
    return context;
}

/* ---- running -------------------------------------------------------------------------------- */

/* The first slot that the check needs and the plugin lacks; NULL if there is none. */
static const char *missing_slot(const struct ds_accel__run *run,
                                const struct ds_accel__check *check)
{
    for (size_t i = 0; i < DS_ACCEL__CHECK_SLOTS && check->slots[i] != 0; i++) {
        if (!ds_accel__has_slot(run, check->slots[i])) {
            return ds_accel__slot_name(check->slots[i]);
        }
    }
    return NULL;
}

/* True if the check needs a slot that the suite no longer calls; then why contains the reason. */
static bool is_refused(const struct ds_accel__check *check, char *why, size_t why_size)
{
    size_t count = 0;

    while (count < DS_ACCEL__CHECK_SLOTS && check->slots[count] != 0) {
        count++;
    }
    return ds_accel__slots_are_refused(check->slots, count, why, why_size);
}

static void run_check(struct ds_accel__run *run, const struct ds_accel__check *check)
{
    char why[sizeof(run->reason)] = "";
    const char *missing;

    run->is_skipped = false;
    run->reason[0] = '\0';
    /* "starts" shows that the plugin is being brought up: if the process terminates now, the
     * caller attributes this to the stage, not only to this check. */
    ds_accel__say("{s:I, s:i}", "begin", (json_int_t)run->position, "starts", (int)check->stage);
    if (is_refused(check, why, sizeof(why)) ||
        !ds_accel__run_bring_up(run, check->stage, why, sizeof(why))) {
        ds_accel__skip(run, "%s", why);
        return;
    }
    ds_accel__say("{s:I}", "begin", (json_int_t)run->position);
    missing = missing_slot(run, check);
    if (missing != NULL) {
        ds_accel__skip(run, "not offered: %s", missing);
        return;
    }
    check->run(run);
}

/* In a process with LeakSanitizer: if the check leaked memory, report a failure of DSA-P30 and
 * exit. */
static void look_for_leaks(const struct ds_accel__run *run)
{
    int (*check_leaks)(void);

    *(void **)&check_leaks = dlsym(RTLD_DEFAULT, "__lsan_do_recoverable_leak_check");
    if (check_leaks != NULL && check_leaks() != 0) {
        ds_accel__say_result(run, "failed", 30, "LeakSanitizer found memory that was lost");
        _exit(0);
    }
}

/* Fail the check if a sanitizer printed a report during it. The process then exits, because a
 * sanitizer may print a report only once per process. */
static void look_for_reports(const struct ds_accel__run *run, int64_t before)
{
    int64_t printed = ds_accel__printed_bytes() - before;
    char *text = printed > 0 ? malloc((size_t)printed) : NULL;
    ssize_t size = text != NULL ? pread(STDOUT_FILENO, text, (size_t)printed, before) : 0;
    char detail[480] = "printed: ";
    uint32_t rule = 0;

    if (size > 0 &&
        ds_accel__find_report(text, (size_t)size, &rule, detail + 9, sizeof(detail) - 9)) {
        ds_accel__say_result(run, "failed", rule, detail);
        _exit(0);
    }
    free(text);
}

static void run_from(struct ds_accel__run *run, size_t first, const char *only, bool is_each_only)
{
    const struct ds_accel__check *check;
    bool is_first = true;
    int64_t printed;

    for (run->position = first; (check = ds_accel__check_at(run->position)) != NULL;
         run->position++) {
        bool is_alone = (check->flags & DS_ACCEL__CHECK_ALONE) != 0;

        if (!ds_accel__check_is_chosen(check, only) ||
            (is_each_only && !ds_accel__check_is_each(check))) {
            continue;
        }
        if (is_alone && !is_first) {
            return;
        }
        is_first = false;
        printed = ds_accel__printed_bytes();
        run_check(run, check);
        look_for_leaks(run);
        look_for_reports(run, printed);
        ds_accel__say_result(run, run->is_skipped ? "skipped" : "passed", 0, run->reason);
        if (is_alone) {
            return;
        }
    }
}

/* The main function of a process that ds_accel__run_peer() started. */
static _Noreturn void run_as_peer(struct ds_accel__run *run)
{
    /* Without a handle to open, the peer works even if the device cannot be opened: it may serve
     * only one process, and the suite's process has it open. */
    bool needs_device = json_object_get(run->request, "handle") != NULL ||
                        json_object_get(run->request, "event_handle") != NULL;
    char why[256];

    if (!ds_accel__run_bring_up(run, DS_ACCEL__STAGE_DEVICE, why, sizeof(why)) &&
        (needs_device || run->instance == NULL)) {
        ds_accel__run_give_up(why);
    }
    ds_accel__serve_peer(run);
    _exit(0);
}

/* Run the task of the request and exit: serve as a peer, report the devices (survey), make one call
 * of a slot (trial), or run the checks. A survey or trial reports no result if the plugin cannot be
 * brought up for it. */
static _Noreturn void run_task(struct ds_accel__run *run, const char *only)
{
    const char *task = json_string_value(json_object_get(run->request, "task"));
    size_t slot = (size_t)json_integer_value(json_object_get(run->request, "slot"));
    char why[256];

    if (json_is_true(json_object_get(run->request, "is_peer"))) {
        run_as_peer(run);
    }
    if (task != NULL && strcmp(task, "survey") == 0 &&
        ds_accel__run_bring_up(run, DS_ACCEL__STAGE_INSTANCE, why, sizeof(why))) {
        ds_accel__say_devices(run);
    } else if (task != NULL && strcmp(task, "trial") == 0 &&
               ds_accel__run_bring_up(run, DS_ACCEL__STAGE_DEVICE, why, sizeof(why))) {
        bool has_trial = ds_accel__tour_stop(run, slot);

        ds_accel__say("{s:b}", "has_trial", (int)has_trial);
    } else if (task != NULL && strcmp(task, "checks") == 0) {
        run_from(run, (size_t)json_integer_value(json_object_get(run->request, "first")),
                 only[0] != '\0' ? only : NULL,
                 !json_is_true(json_object_get(run->request, "is_first")));
    }
    _exit(0); /* without destructors of the plugin's libraries, some of which hang */
}

/* Apply the caller's decisions: the slots and steps that are not called, and the visible
 * devices. */
static void take_settings(json_t *request)
{
    const char *variable = json_string_value(json_object_get(request, "variable"));
    const char *value = json_string_value(json_object_get(request, "value"));
    json_t *slots = json_object_get(request, "refused");
    json_t *steps = json_object_get(request, "steps");

    for (size_t i = 0; i < json_array_size(slots); i++) {
        json_t *slot = json_array_get(slots, i);

        ds_accel__witness_refuse((size_t)json_integer_value(json_array_get(slot, 0)),
                                 json_string_value(json_array_get(slot, 1)));
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        ds_accel__witness_refuse_step((unsigned)json_integer_value(json_array_get(steps, i)));
    }
    /* In a peer, the check that started it has set the variable. */
    if (variable != NULL && value != NULL && !json_is_true(json_object_get(request, "is_peer"))) {
        setenv(variable, value, 1);
    }
}

/* Set up the inherited descriptors. stdout is unbuffered, because buffered output is lost when the
 * process is killed. */
static void take_descriptors(void)
{
    int fd = fcntl(DS_ACCEL__WITNESS_PAGE, F_DUPFD_CLOEXEC, 10);

    setvbuf(stdout, NULL, _IONBF, 0);
    close(DS_ACCEL__WITNESS_PAGE);
    if (fd >= 0 && !ds_accel__witness_open(fd)) {
        close(fd);
    }
}

int ds_accel__conformance_main(void)
{
    struct ds_accel__run run = {.error.struct_size = sizeof(run.error)};
    char *text;
    char *line;
    json_t *request;
    ds_accel_t *context;
    const char *only;

    take_descriptors();
    ds_accel__note_stdin();
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* lets checks find processes that a plugin left running */
    text = read_request();
    line = text != NULL ? strchr(text, '\n') : NULL;
    request = line != NULL ? json_loads(line + 1, 0, NULL) : NULL;
    run.name = json_string_value(json_object_get(request, "name"));
    only = json_string_value(json_object_get(request, "only"));
    if (run.name == NULL || only == NULL || line == NULL ||
        strcmp(json_string_value(json_object_get(request, "version")), DS_ACCEL_VERSION) != 0) {
        fputs("ds-accel-probe --conformance is started by the ds-accel library\n", stderr);
        return 2;
    }
    *line = '\0';
    run.path = text;
    run.device_index = (uint32_t)json_integer_value(json_object_get(request, "device"));
    run.guard = &guard;
    context = make_context(request, run.name);
    run.candidate = context != NULL ? ds_accel__candidate_create(context, run.name, run.path)
                                    : NULL;
    if (run.candidate == NULL) {
        return DS_ACCEL__PROBE_EXIT_FAILED;
    }
    ds_accel__log_watch(&run.candidate->host.abi);
    run.host = &run.candidate->host.abi;
    run.request = request;
    take_settings(request);
    ds_accel__guard_take_alone(&guard);
    run_task(&run, only);
}
