/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The process that the checks run in, ds-accel-probe --conformance: reads what to do from the
 * channel, brings the plugin up as far as each check needs, runs them one after another and says
 * on the channel which begins and how it went. conformance.c is the other end.
 *
 * Load, probe, init and device_open happen once, for the first check that needs them, as in a
 * program. So what a check does to the plugin is there for the next one: nothing, unless one of
 * them failed, and then this process ends.
 */
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "conformance/conformance.h"
#include "host/context.h"
#include "host/guard.h"
#include "host/loader.h"
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

/* The path, a line end, and the rest as one line of JSON; NULL if the other end is not there. */
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

/* A context that knows of the configuration what one plugin may ask for. */
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

/* ---- bringing the plugin up ----------------------------------------------------------------- */

static bool load(struct ds_accel__run *run, char *why, size_t why_size)
{
    struct ds_accel__finding finding = {0};
    unsigned call;
    uint32_t size;

    if (run->has_table) {
        return true;
    }
    call = ds_accel__witness_enter(DS_ACCEL__WITNESS_LOAD);
    if (ds_accel__module_open(run->path, &run->module, &finding) < 0 || run->module == NULL) {
        snprintf(why, why_size, "%s does not load: %s", run->path, finding.detail);
        ds_accel__witness_leave(call, DS_ACCEL__WITNESS_LOAD);
        return false;
    }
    ds_accel__witness_leave(call, DS_ACCEL__WITNESS_LOAD);
    call = ds_accel__witness_enter(DS_ACCEL__WITNESS_ENTRY);
    ds_accel__module_entry(run->module, run->host, &run->theirs, &finding);
    ds_accel__witness_leave(call, DS_ACCEL__WITNESS_ENTRY);
    if (run->theirs == NULL) {
        snprintf(why, why_size, "%s: its entry gives no table: %s", run->path, finding.detail);
        return false;
    }
    /* The size first, which every table has, then whole slots of it. */
    memcpy(&size, run->theirs, sizeof(size));
    size = size < sizeof(run->table) ? size : (uint32_t)sizeof(run->table);
    memcpy(&run->table, run->theirs, size - size % sizeof(void *));
    ds_accel__witness_table(run, &run->table);
    run->has_table = true;
    return true;
}

bool ds_accel__run_load(struct ds_accel__run *run, char *why, size_t why_size)
{
    return load(run, why, why_size);
}

/* There is nothing to check: the caller is told, and this process ends. */
static _Noreturn void give_up(const char *why)
{
    ds_accel__say("{s:o}", "unusable", ds_accel__json_text(why));
    _exit(0);
}

/* Not on a machine without the accelerator. */
static void probe(struct ds_accel__run *run)
{
    struct ds_accel_error *error = ds_accel__fresh_error(run);
    struct ds_accel_verdict *verdict = &run->verdict;
    char text[400];
    int32_t status;

    memset(verdict, 0, sizeof(*verdict));
    verdict->struct_size = sizeof(*verdict);
    status = run->table.probe(run->host, verdict, error);
    if (status < 0) {
        ds_accel__describe(status, error, text, sizeof(text));
        give_up(text);
    }
    if (status == DS_ACCEL_OK && verdict->reason != DS_ACCEL_REASON_NONE &&
        (verdict->state == DS_ACCEL_PROBE_UNAVAILABLE || verdict->state == DS_ACCEL_PROBE_ERROR)) {
        enum ds_accel__reason_id reason = ds_accel__reason_of_verdict(verdict->reason);

        verdict->detail[sizeof(verdict->detail) - 1] = '\0';
        snprintf(text, sizeof(text), "%s is not available: %s: %s", run->name,
                 ds_accel__reason_code(
                     reason != DS_ACCEL__REASON_NONE ? reason : DS_ACCEL__REASON_NEWER_REASON),
                 verdict->detail);
        give_up(text);
    }
}

void ds_accel__run_check_device(const struct ds_accel__run *run, uint32_t device_count)
{
    char text[128];

    if (device_count > 0 && run->device_index >= device_count) {
        snprintf(text, sizeof(text), "there is no device %u: %s has %u", run->device_index,
                 run->name, device_count);
        give_up(text);
    }
}

static bool is_any_refused(const size_t *slots, size_t count, char *why, size_t why_size)
{
    for (size_t i = 0; i < count; i++) {
        if (ds_accel__witness_is_refused(slots[i])) {
            ds_accel__witness_explain(slots[i], why, why_size);
            return true;
        }
    }
    return false;
}

static bool start(struct ds_accel__run *run, char *why, size_t why_size)
{
    static const size_t needed[] = {SLOT(probe), SLOT(init), SLOT(device_count)};
    const struct ds_accel_plugin *table = &run->table;
    int32_t status;

    if (run->instance != NULL) {
        return true;
    }
    if (table->probe == NULL || table->init == NULL || table->shutdown == NULL ||
        table->device_count == NULL || table->device_open == NULL || table->device_close == NULL) {
        snprintf(why, why_size, "it has not the functions to be started");
        return false;
    }
    if (is_any_refused(needed, DS_ACCEL__ARRAY_SIZE(needed), why, why_size)) {
        return false;
    }
    probe(run);
    status = CALL(run, init, run->host, &run->instance);
    if (status == DS_ACCEL_OK) {
        status = CALL(run, device_count, run->instance, &run->device_count);
    }
    if (status != DS_ACCEL_OK || run->instance == NULL) {
        snprintf(why, why_size, "it does not start: %s: %.150s", ds_accel__status_text(status),
                 run->error.message);
        run->instance = NULL;
        return false;
    }
    ds_accel__run_check_device(run, run->device_count);
    run->info.struct_size = sizeof(run->info);
    if (table->backend_info != NULL && !ds_accel__witness_is_refused(SLOT(backend_info))) {
        CALL(run, backend_info, run->instance, &run->info);
    }
    return true;
}

static bool open_device(struct ds_accel__run *run, char *why, size_t why_size)
{
    static const size_t needed[] = {SLOT(device_open)};
    int32_t status;

    if (run->device != NULL) {
        return true;
    }
    if (run->device_index >= run->device_count) {
        snprintf(why, why_size, "there is no device %u", run->device_index);
        return false;
    }
    if (is_any_refused(needed, DS_ACCEL__ARRAY_SIZE(needed), why, why_size)) {
        return false;
    }
    status = CALL(run, device_open, run->instance, run->device_index, &run->device);
    if (status != DS_ACCEL_OK || run->device == NULL) {
        snprintf(why, why_size, "device %u cannot be opened: %s: %.150s", run->device_index,
                 ds_accel__status_text(status), run->error.message);
        run->device = NULL;
        return false;
    }
    if (run->table.stream_create != NULL && !ds_accel__witness_is_refused(SLOT(stream_create)) &&
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, 0, &run->stream) !=
            DS_ACCEL_OK) {
        run->stream = NULL;
    }
    return true;
}

static bool bring_up(struct ds_accel__run *run, enum ds_accel__stage stage, char *why,
                     size_t why_size)
{
    if (stage == DS_ACCEL__STAGE_FILE) {
        return true;
    }
    if (!load(run, why, why_size)) {
        give_up(why);
    }
    return stage == DS_ACCEL__STAGE_TABLE ||
           (start(run, why, why_size) &&
            (stage == DS_ACCEL__STAGE_INSTANCE || open_device(run, why, why_size)));
}

/* ---- running -------------------------------------------------------------------------------- */

/* NULL, or the first slot that is not there. */
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

/* It needs a slot that is not called any more. */
static bool is_refused(const struct ds_accel__check *check, char *why, size_t why_size)
{
    size_t count = 0;

    while (count < DS_ACCEL__CHECK_SLOTS && check->slots[count] != 0) {
        count++;
    }
    return is_any_refused(check->slots, count, why, why_size);
}

static void run_check(struct ds_accel__run *run, const struct ds_accel__check *check)
{
    char why[sizeof(run->reason)] = "";
    const char *missing;

    run->is_skipped = false;
    run->reason[0] = '\0';
    /* Whoever ends this process before the check itself begins, ended every check of the stage. */
    ds_accel__say("{s:I, s:i}", "begin", (json_int_t)run->position, "starts", (int)check->stage);
    if (is_refused(check, why, sizeof(why)) || !bring_up(run, check->stage, why, sizeof(why))) {
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

/* In a process with LeakSanitizer: memory that nothing points to any more was lost by the check. */
static void look_for_leaks(const struct ds_accel__run *run)
{
    int (*check_leaks)(void);

    *(void **)&check_leaks = dlsym(RTLD_DEFAULT, "__lsan_do_recoverable_leak_check");
    if (check_leaks != NULL && check_leaks() != 0) {
        ds_accel__say_result(run, "failed", 30, "LeakSanitizer found memory that was lost");
        _exit(0);
    }
}

/* The check has failed if a sanitizer printed something about it, and nothing else is made here:
 * a report may come once in a process. */
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

/* The process that ds_accel__run_peer() started. */
static _Noreturn void run_as_peer(struct ds_accel__run *run)
{
    /* The device may be one that serves one process, and the suite's own has it. */
    bool needs_device = json_object_get(run->request, "handle") != NULL ||
                        json_object_get(run->request, "event_handle") != NULL;
    char why[256];

    if (!bring_up(run, DS_ACCEL__STAGE_DEVICE, why, sizeof(why)) &&
        (needs_device || run->instance == NULL)) {
        give_up(why);
    }
    ds_accel__serve_peer(run);
    _exit(0);
}

/* What the suite's caller asked for, all of it in a process of its own. */
static _Noreturn void run_task(struct ds_accel__run *run, const char *only)
{
    const char *task = json_string_value(json_object_get(run->request, "task"));
    size_t slot = (size_t)json_integer_value(json_object_get(run->request, "slot"));
    char why[256];

    if (json_is_true(json_object_get(run->request, "is_peer"))) {
        run_as_peer(run);
    }
    if (task != NULL && strcmp(task, "survey") == 0 &&
        bring_up(run, DS_ACCEL__STAGE_INSTANCE, why, sizeof(why))) {
        ds_accel__say_devices(run);
    } else if (task != NULL && strcmp(task, "trial") == 0 &&
               bring_up(run, DS_ACCEL__STAGE_DEVICE, why, sizeof(why))) {
        bool has_trial = ds_accel__tour_stop(run, slot);

        ds_accel__say("{s:b}", "has_trial", (int)has_trial);
    } else if (task != NULL && strcmp(task, "checks") == 0) {
        run_from(run, (size_t)json_integer_value(json_object_get(run->request, "first")),
                 only[0] != '\0' ? only : NULL,
                 !json_is_true(json_object_get(run->request, "is_first")));
    }
    _exit(0); /* no destructor of a plugin's library runs: some hang */
}

/* What was settled before: slots that are not called, and the devices that are to be seen. */
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
    /* A peer has its own, which its check chose. */
    if (variable != NULL && value != NULL && !json_is_true(json_object_get(request, "is_peer"))) {
        setenv(variable, value, 1);
    }
}

/* Each byte as it is printed: what waits in a buffer is lost with the process. */
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
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that a check sees what is left */
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
