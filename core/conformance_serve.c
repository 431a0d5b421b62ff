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
#include "conformance.h"

#include <errno.h>
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
        context->config.merged = json_pack("{s:{s:{s:O}}}", "backends", name, "options",
                                           json_object_get(request, "options"));
    }
    return context;
}

/* ---- bringing the plugin up ----------------------------------------------------------------- */

static bool load(struct ds_accel__run *run, char *why, size_t why_size)
{
    struct ds_accel__finding finding = {0};
    uint32_t size;

    if (run->has_table) {
        return true;
    }
    if (ds_accel__module_open(run->path, &run->module, &finding) < 0 || run->module == NULL) {
        snprintf(why, why_size, "%s does not load: %s", run->path, finding.detail);
        return false;
    }
    ds_accel__module_entry(run->module, run->host, &run->theirs, &finding);
    if (run->theirs == NULL) {
        snprintf(why, why_size, "%s: its entry gives no table: %s", run->path, finding.detail);
        return false;
    }
    /* The size first, which every table has, then whole slots of it. */
    memcpy(&size, run->theirs, sizeof(size));
    size = size < sizeof(run->table) ? size : (uint32_t)sizeof(run->table);
    memcpy(&run->table, run->theirs, size - size % sizeof(void *));
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
        const char *code = ds_accel__reason_of_verdict(verdict->reason);

        verdict->detail[sizeof(verdict->detail) - 1] = '\0';
        snprintf(text, sizeof(text), "%s is not available: %s: %s", run->name,
                 code != NULL ? code : "newer_reason", verdict->detail);
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

static bool start(struct ds_accel__run *run, char *why, size_t why_size)
{
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
    if (table->backend_info != NULL) {
        CALL(run, backend_info, run->instance, &run->info);
    }
    return true;
}

static bool open_device(struct ds_accel__run *run, char *why, size_t why_size)
{
    int32_t status;

    if (run->device != NULL) {
        return true;
    }
    if (run->device_index >= run->device_count) {
        snprintf(why, why_size, "there is no device %u", run->device_index);
        return false;
    }
    status = CALL(run, device_open, run->instance, run->device_index, &run->device);
    if (status != DS_ACCEL_OK || run->device == NULL) {
        snprintf(why, why_size, "device %u cannot be opened: %s: %.150s", run->device_index,
                 ds_accel__status_text(status), run->error.message);
        run->device = NULL;
        return false;
    }
    if (run->table.stream_create != NULL &&
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

static void run_check(struct ds_accel__run *run, const struct ds_accel__check *check)
{
    char why[sizeof(run->reason)] = "";
    const char *missing;

    run->is_skipped = false;
    run->reason[0] = '\0';
    /* Whoever ends this process before the check itself begins, ended every check of the stage. */
    ds_accel__say("{s:I, s:i}", "begin", (json_int_t)run->position, "starts", (int)check->stage);
    if (!bring_up(run, check->stage, why, sizeof(why))) {
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

static void run_from(struct ds_accel__run *run, size_t first, const char *only)
{
    const struct ds_accel__check *check;
    bool is_first = true;

    for (run->position = first; (check = ds_accel__check_at(run->position)) != NULL;
         run->position++) {
        bool is_alone = (check->flags & DS_ACCEL__CHECK_ALONE) != 0;

        if (!ds_accel__check_is_chosen(check, only)) {
            continue;
        }
        if (is_alone && !is_first) {
            return;
        }
        is_first = false;
        run_check(run, check);
        ds_accel__say("{s:I, s:s, s:o}", "check", (json_int_t)run->position, "result",
                      run->is_skipped ? "skipped" : "passed", "detail",
                      ds_accel__json_text(run->reason));
        if (is_alone) {
            return;
        }
    }
}

/* The process that ds_accel__run_peer() started. */
static _Noreturn void run_as_peer(struct ds_accel__run *run)
{
    char why[256];

    if (!bring_up(run, DS_ACCEL__STAGE_DEVICE, why, sizeof(why))) {
        give_up(why);
    }
    ds_accel__serve_peer(run);
    _exit(0);
}

int ds_accel__conformance_main(void)
{
    struct ds_accel__run run = {.error.struct_size = sizeof(run.error)};
    char *text;
    char *line;
    json_t *request;
    ds_accel_t *context;
    const char *only;

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
    run.host = &run.candidate->host.abi;
    run.request = request;
    ds_accel__guard_take_alone(&guard);
    if (json_is_true(json_object_get(request, "is_peer"))) {
        run_as_peer(&run);
    }
    run_from(&run, (size_t)json_integer_value(json_object_get(request, "first")),
             only[0] != '\0' ? only : NULL);
    _exit(0); /* no destructor of a plugin's library runs: some hang */
}
