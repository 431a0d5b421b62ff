/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: entry, table, probe, init and shutdown, and the resources that they leave in
 * the process. */
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "conformance/conformance.h"
#include "host/context.h"
#include "host/guard.h"
#include "host/loader.h"
#include "host/probe_child.h"
#include "host/registry.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROUP "life"
#define OPEN_LIMIT 16u /* most devices that are open at the same time */

/* ---- the table ------------------------------------------------------------------------------ */

static void check_same_table(struct ds_accel__run *run)
{
    struct ds_accel__finding finding = {0};
    const struct ds_accel_plugin *table = NULL;

    for (int i = 0; i < 3; i++) {
        ds_accel__module_entry(run->module, run->host, &table, &finding);
        EXPECT(run, table == run->theirs, "call %d of the entry returned another table", i + 2);
    }
}

static void check_table(struct ds_accel__run *run)
{
    const struct ds_accel_plugin *table = run->theirs;

    EXPECT(run, table->struct_size >= DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, device_close),
           "struct_size is %u, and does not reach device_close", table->struct_size);
    EXPECT(run, table->struct_size <= 65536, "struct_size is %u", table->struct_size);
    EXPECT(run, table->abi_major == DS_ACCEL_ABI_MAJOR, "abi_major is %u, expected %u",
           table->abi_major, DS_ACCEL_ABI_MAJOR);
    EXPECT(run, table->name != NULL && strcmp(table->name, run->name) == 0,
           "name is \"%.40s\", expected \"%s\"", table->name != NULL ? table->name : "", run->name);
    EXPECT(run, table->vendor != NULL && table->vendor[0] != '\0', "vendor is empty");
    EXPECT(run, table->version != NULL && table->version[0] != '\0', "version is empty");
}

static void check_required(struct ds_accel__run *run)
{
    static const size_t required[] = {SLOT(probe),        SLOT(init),        SLOT(shutdown),
                                      SLOT(device_count), SLOT(device_open), SLOT(device_close)};

    for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
        EXPECT(run, ds_accel__has_slot(run, required[i]), "%s is NULL",
               ds_accel__slot_name(required[i]));
    }
}

/* Check that loading the plugin and calling its entry leaves no threads, open descriptors or child
 * processes. The process has not loaded the plugin before. */
static void check_entry_is_pure(struct ds_accel__run *run)
{
    size_t threads = ds_accel__count_threads();
    size_t descriptors = ds_accel__count_descriptors();
    char why[256];

    if (!ds_accel__run_load(run, why, sizeof(why))) {
        ds_accel__skip(run, "%s", why);
        return;
    }
    EXPECT(run, ds_accel__count_threads() == threads, "%zu threads before, %zu after", threads,
           ds_accel__count_threads());
    EXPECT(run, ds_accel__count_descriptors() == descriptors, "%zu descriptors before, %zu after",
           descriptors, ds_accel__count_descriptors());
    EXPECT(run, waitpid(-1, NULL, WNOHANG) < 0, "a child process was started");
}

/* ---- host tables at the end of a page, and host tables that are withdrawn ------------------- */

/* Map one page of memory, followed by a page that cannot be accessed. */
static char *take_page(struct ds_accel__run *run, size_t *page_bytes_out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EXPECT(run, pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0,
           "host memory is exhausted");
    *page_bytes_out = page;
    return pages;
}

/* Return a copy of the data that ends at the end of readable memory, so that a read past it
 * crashes. */
static void *copy_to_edge(struct ds_accel__run *run, const void *data, size_t size_bytes)
{
    size_t page;
    char *start = take_page(run, &page);

    return memcpy(start + page - size_bytes, data, size_bytes);
}

/* Return a copy of the host's table. take_away() later makes the copy inaccessible, so that a
 * plugin that still uses it crashes. */
static const struct ds_accel_host *lend_host(struct ds_accel__run *run)
{
    size_t page;
    char *start = take_page(run, &page);

    return memcpy(start, run->host, sizeof(*run->host));
}

static void take_away(struct ds_accel__run *run, const struct ds_accel_host *lent)
{
    EXPECT(run, mprotect((void *)lent, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) == 0,
           "mprotect() failed");
}

/* Use the plugin as a program does: start an instance, count devices, open a device and close
 * it. Returns the instance. */
static ds_accel_plugin_instance_t *use(struct ds_accel__run *run, const struct ds_accel_host *host)
{
    ds_accel_plugin_instance_t *instance = ds_accel__run_init(run, host);
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, device_count, instance, &count);
    if (run->device_index < count) {
        run->table.device_close(ds_accel__run_open(run, instance, run->device_index));
    }
    return instance;
}

static void check_sizes_are_read(struct ds_accel__run *run)
{
    const struct ds_accel_host *host = copy_to_edge(run, run->host, sizeof(*run->host));
    struct ds_accel_error zero = {.struct_size = sizeof(zero)};
    struct ds_accel_verdict none = {.struct_size = sizeof(none)};
    struct ds_accel_error *error = copy_to_edge(run, &zero, sizeof(zero));
    struct ds_accel_verdict *verdict = copy_to_edge(run, &none, sizeof(none));

    run->table.probe(host, verdict, error);
    run->table.shutdown(use(run, host));
}

static void check_host_is_let_go(struct ds_accel__run *run)
{
    const struct ds_accel_host *hosts[3] = {lend_host(run), lend_host(run), lend_host(run)};
    const struct ds_accel_plugin *table = NULL;
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    struct ds_accel__finding finding = {0};

    ds_accel__module_entry(run->module, hosts[0], &table, &finding);
    take_away(run, hosts[0]);
    CALL(run, probe, hosts[1], &verdict);
    take_away(run, hosts[1]);
    run->table.shutdown(use(run, hosts[2]));
    take_away(run, hosts[2]);
    run->table.shutdown(use(run, run->host));
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void check_verdict(struct ds_accel__run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    bool is_available;

    WANT(run, DS_ACCEL_OK, probe, run->host, &verdict);
    is_available = verdict.state == DS_ACCEL_PROBE_AVAILABLE;
    EXPECT(run, verdict.state >= DS_ACCEL_PROBE_AVAILABLE && verdict.state <= DS_ACCEL_PROBE_ERROR,
           "state is %u, expected 1, 2 or 3", verdict.state);
    EXPECT(run, !is_available || verdict.device_count > 0, "available with no device");
    EXPECT(run, is_available == (verdict.reason == DS_ACCEL_REASON_NONE), "state %u with reason %u",
           verdict.state, verdict.reason);
    EXPECT(run, memchr(verdict.detail, '\0', sizeof(verdict.detail)) != NULL, "detail has no end");
    EXPECT(run, memchr(verdict.variant, '\0', sizeof(verdict.variant)) != NULL,
           "variant has no end");
}

/* Start the plugin in a child that was forked after probe. Returns the child's exit code: 0, or
 * the number of the step that failed. */
static int start_in_child(struct ds_accel__run *run)
{
    ds_accel_plugin_instance_t *instance = NULL;
    ds_accel_plugin_device_t *device = NULL;

    alarm(20); /* a runtime that does not survive a fork usually hangs */
    if (CALL(run, init, run->host, &instance) != DS_ACCEL_OK || instance == NULL) {
        return 1;
    }
    if (CALL(run, device_open, instance, run->device_index, &device) != DS_ACCEL_OK) {
        return 2;
    }
    run->table.device_close(device);
    run->table.shutdown(instance);
    return 0;
}

static void check_probe_leaves_nothing(struct ds_accel__run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    struct ds_accel__left left;
    int status = -1;
    pid_t pid;

    ds_accel__left_take(&left);
    CALL(run, probe, run->host, &verdict);
    ds_accel__left_compare(&left, ds_accel__want_no_conduct, run);
    if (verdict.state != DS_ACCEL_PROBE_AVAILABLE || run->device_index >= verdict.device_count) {
        return;
    }
    pid = fork();
    EXPECT(run, pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        _exit(start_in_child(run));
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    EXPECT(run, status == 0, "a child that was forked after probe cannot %s%s",
           WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "start the plugin"
                                                         : "open the device, or does not survive",
           ds_accel__witness_peer(pid));
}

/* Make the calls that lint makes: probe the plugin, and start it without opening a device
 * (probe_child.c, rehearse()). Call look() after the probe and after shutdown, and store the state
 * before init in *left. Skip the check after the probe if the plugin is not available. */
static void rehearse(struct ds_accel__run *run, struct ds_accel__left *left,
                     void (*look)(struct ds_accel__run *run))
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_instance_t *instance;
    uint32_t count = 0;

    CALL(run, probe, run->host, &verdict);
    look(run);
    if (verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        ds_accel__skip(run, "it is not available");
        return;
    }
    ds_accel__left_take(left);
    instance = ds_accel__run_init(run, run->host);
    CALL(run, device_count, instance, &count);
    if (run->table.backend_info != NULL) {
        CALL(run, backend_info, instance, &info);
    }
    run->table.shutdown(instance);
    look(run);
}

static void look_at_process(struct ds_accel__run *run)
{
    ds_accel__guard_compare(run->guard, ds_accel__want_no_conduct, run);
    ds_accel__want_silence(run);
}

static void look_away(struct ds_accel__run *run)
{
    (void)run;
}

static void check_life_is_silent(struct ds_accel__run *run)
{
    struct ds_accel__left left;

    rehearse(run, &left, look_at_process);
}

static void check_shutdown_leaves_nothing(struct ds_accel__run *run)
{
    struct ds_accel__left left;

    rehearse(run, &left, look_away);
    if (!run->is_skipped) {
        ds_accel__left_compare(&left, ds_accel__want_no_conduct, run);
    }
}

/* ---- options -------------------------------------------------------------------------------- */

#define BAD_VALUE "=not a value="

/* A host that returns an invalid value for one key. Static variables suffice, because one check
 * runs at a time. */
static const struct ds_accel_host *true_host;
static const char *bad_key;

static int32_t answer_badly(const struct ds_accel_host *host, const char *key, char *value,
                            uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    if (key == NULL || strcmp(key, bad_key) != 0) {
        return true_host->config_get(true_host, key, value, value_size, needed_out);
    }
    if (needed_out != NULL) {
        *needed_out = sizeof(BAD_VALUE);
    }
    if (value_size < sizeof(BAD_VALUE)) {
        return DS_ACCEL_ERR_LIMIT;
    }
    memcpy(value, BAD_VALUE, sizeof(BAD_VALUE));
    return DS_ACCEL_OK;
}

/*
 * For each option whose configured value is a number or a boolean, probe with an invalid text as
 * its value, and call visit with the verdict. Returns the number of options.
 */
static size_t with_bad_options(struct ds_accel__run *run,
                               void (*visit)(struct ds_accel__run *run, const char *key,
                                             const struct ds_accel_verdict *verdict))
{
    /* Static, because a plugin that keeps the pointer too long breaks DSA-P31, not this check's
     * rule. */
    static struct ds_accel_host host;
    json_t *options =
        ds_accel__config_backend(&run->candidate->host.context->config, run->name, "options");
    size_t count = 0;
    const char *key;
    json_t *value;

    true_host = run->host;
    host = *run->host;
    host.config_get = answer_badly;
    json_object_foreach(options, key, value)
    {
        struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

        if (!json_is_number(value) && !json_is_boolean(value)) {
            continue;
        }
        bad_key = key;
        WANT(run, DS_ACCEL_OK, probe, &host, &verdict);
        visit(run, key, &verdict);
        count++;
    }
    return count;
}

static void want_bad_option(struct ds_accel__run *run, const char *key,
                            const struct ds_accel_verdict *verdict)
{
    EXPECT(run,
           verdict->state != DS_ACCEL_PROBE_AVAILABLE &&
               verdict->reason == DS_ACCEL_REASON_BAD_OPTION,
           "option %s = \"%s\": expected the reason BAD_OPTION, got state %u, reason %u", key,
           BAD_VALUE, verdict->state, verdict->reason);
}

static void check_bad_options(struct ds_accel__run *run)
{
    if (with_bad_options(run, want_bad_option) == 0) {
        ds_accel__skip(run, "the configuration declares no option that is a number or truth value");
    }
}

static void want_evidence(struct ds_accel__run *run, const char *key,
                          const struct ds_accel_verdict *verdict)
{
    if (verdict->state != DS_ACCEL_PROBE_AVAILABLE) {
        EXPECT(run, verdict->reason <= DS_ACCEL_REASON_BAD_OPTION, "reason %u is not listed",
               verdict->reason);
        EXPECT(run, strnlen(verdict->detail, sizeof(verdict->detail)) > 0,
               "option %s = \"%s\": reason %u comes without evidence in detail", key, BAD_VALUE,
               verdict->reason);
    }
}

static void check_reasons(struct ds_accel__run *run)
{
    if (with_bad_options(run, want_evidence) == 0) {
        ds_accel__skip(run, "the configuration declares no option to be refused");
    }
}

/* ---- instances ------------------------------------------------------------------------------ */

static void check_start(struct ds_accel__run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    ds_accel_plugin_instance_t *instance;
    uint32_t count = 0;

    CALL(run, probe, run->host, &verdict);
    if (verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        ds_accel__skip(run, "it is not available");
        return;
    }
    instance = ds_accel__run_init(run, run->host);
    WANT(run, DS_ACCEL_OK, device_count, instance, &count);
    EXPECT(run, count > 0 && count <= DS_ACCEL__DEVICE_LIMIT, "device_count is %u", count);
    EXPECT(run, verdict.device_count == 0 || count == verdict.device_count,
           "probe reports %u devices, device_count %u", verdict.device_count, count);
    for (uint32_t i = 0; i < count && i < OPEN_LIMIT; i++) {
        run->table.device_close(ds_accel__run_open(run, instance, i));
    }
    run->table.shutdown(instance);
}

static void check_instances(struct ds_accel__run *run)
{
    ds_accel_plugin_instance_t *first = use(run, run->host);
    ds_accel_plugin_instance_t *second = use(run, run->host);
    ds_accel_plugin_device_t *device;
    uint32_t count = 0;

    run->table.shutdown(first);
    WANT(run, DS_ACCEL_OK, device_count, second, &count);
    if (run->device_index < count) {
        device = ds_accel__run_open(run, second, run->device_index);
        run->table.shutdown(use(run, run->host));
        run->table.device_close(device);
    }
    run->table.shutdown(second);
    run->table.shutdown(use(run, run->host));
}

static void check_static_storage(struct ds_accel__run *run)
{
    const struct ds_accel_plugin *theirs = run->theirs;
    struct ds_accel_plugin before = *theirs;
    char texts[3][128];
    struct ds_accel_op_builder builder = {.struct_size = sizeof(builder)};
    char builder_text[128] = "";
    uint32_t builder_count = 0;
    ds_accel_plugin_instance_t *instance = use(run, run->host);

    snprintf(texts[0], sizeof(texts[0]), "%s", theirs->name != NULL ? theirs->name : "");
    snprintf(texts[1], sizeof(texts[1]), "%s", theirs->vendor != NULL ? theirs->vendor : "");
    snprintf(texts[2], sizeof(texts[2]), "%s", theirs->version != NULL ? theirs->version : "");
    if (run->table.op_builders_get != NULL &&
        CALL(run, op_builders_get, instance, &builder, sizeof(builder), 1, &builder_count) ==
            DS_ACCEL_OK &&
        builder_count > 0) {
        snprintf(builder_text, sizeof(builder_text), "%s", builder.builder);
    }
    run->table.shutdown(instance);
    EXPECT(run,
           theirs->name == before.name && theirs->vendor == before.vendor &&
               theirs->version == before.version,
           "the table's texts moved with shutdown");
    EXPECT(run,
           strncmp(theirs->name != NULL ? theirs->name : "", texts[0], 127) == 0 &&
               strncmp(theirs->vendor != NULL ? theirs->vendor : "", texts[1], 127) == 0 &&
               strncmp(theirs->version != NULL ? theirs->version : "", texts[2], 127) == 0,
           "the table's texts changed with shutdown");
    EXPECT(run, builder_text[0] == '\0' || strncmp(builder.builder, builder_text, 127) == 0,
           "the name of an op builder changed with shutdown");
}

static void check_without_device(struct ds_accel__run *run)
{
    ds_accel_plugin_instance_t *instance = ds_accel__run_init(run, run->host);
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    uint32_t device_count = 0;
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, device_count, instance, &device_count);
    ds_accel__run_check_device(run, device_count);
    if (device_count == 0) {
        run->table.shutdown(instance);
        ds_accel__skip(run, "there is no device");
        return;
    }
    if (run->table.device_identity != NULL) {
        WANT(run, DS_ACCEL_OK, device_identity, instance, run->device_index, &identity);
    }
    if (run->table.telemetry_get != NULL) {
        WANT(run, DS_ACCEL_OK, telemetry_get, instance, run->device_index, &telemetry);
    }
    if (run->table.links_get != NULL) {
        WANT(run, DS_ACCEL_OK, links_get, instance, run->device_index, NULL,
             (uint32_t)sizeof(struct ds_accel_link), 0, &count);
    }
    run->table.shutdown(instance);
}

static void check_count_stays(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *devices[OPEN_LIMIT] = {NULL};
    uint32_t now = 0;

    for (uint32_t i = 0; i < run->device_count && i < OPEN_LIMIT; i++) {
        devices[i] = ds_accel__run_open(run, run->instance, i);
    }
    WANT(run, DS_ACCEL_OK, device_count, run->instance, &now);
    EXPECT(run, now == run->device_count, "%u devices before, %u once they were opened",
           run->device_count, now);
    for (uint32_t i = 0; i < OPEN_LIMIT; i++) {
        run->table.device_close(devices[i]);
    }
    WANT(run, DS_ACCEL_OK, device_count, run->instance, &now);
    EXPECT(run, now == run->device_count, "%u devices before, %u once they were closed",
           run->device_count, now);
}

static void check_extension(struct ds_accel__run *run)
{
    const void *extension = NULL;

    WANT(run, DS_ACCEL_ERR_NOT_FOUND, extension, run->instance, "ds_accel.nobody.knows.9999",
         &extension);
}

#define ALONE DS_ACCEL__CHECK_ALONE
#define TRAP (DS_ACCEL__CHECK_ALONE | DS_ACCEL__CHECK_TRAP)
#define STARTS \
    SLOT(probe), SLOT(init), SLOT(shutdown), SLOT(device_count), SLOT(device_open), \
        SLOT(device_close)

static const struct ds_accel__check checks[] = {
    {29,
     GROUP,
     "loading and entry start nothing",
     DS_ACCEL__STAGE_FILE,
     ALONE,
     check_entry_is_pure,
     {0}},
    {9,
     GROUP,
     "each call of the entry returns the same table",
     DS_ACCEL__STAGE_TABLE,
     0,
     check_same_table,
     {0}},
    {10, GROUP, "the table's head is complete", DS_ACCEL__STAGE_TABLE, 0, check_table, {0}},
    {11, GROUP, "the required functions are there", DS_ACCEL__STAGE_TABLE, 0, check_required, {0}},
    {13, GROUP, "the verdict is complete", DS_ACCEL__STAGE_TABLE, 0, check_verdict, {SLOT(probe)}},
    {37,
     GROUP,
     "an option that is not valid is refused",
     DS_ACCEL__STAGE_TABLE,
     0,
     check_bad_options,
     {SLOT(probe)}},
    {35,
     GROUP,
     "a refusal has its evidence",
     DS_ACCEL__STAGE_TABLE,
     0,
     check_reasons,
     {SLOT(probe)}},
    {32,
     GROUP,
     "probe leaves nothing, and a fork after it can start",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_probe_leaves_nothing,
     {STARTS}},
    {28,
     GROUP,
     "from loading to shutdown the process is as it was",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_life_is_silent,
     {STARTS}},
    {30,
     GROUP,
     "shutdown leaves nothing behind",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_shutdown_leaves_nothing,
     {STARTS}},
    {40,
     GROUP,
     "what is available starts and opens every device",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_start,
     {STARTS}},
    {20,
     GROUP,
     "host, verdict and error end where their page ends",
     DS_ACCEL__STAGE_TABLE,
     TRAP,
     check_sizes_are_read,
     {STARTS}},
    {31,
     GROUP,
     "hosts of earlier calls are gone",
     DS_ACCEL__STAGE_TABLE,
     TRAP,
     check_host_is_let_go,
     {STARTS}},
    {30,
     GROUP,
     "one instance outlives another",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_instances,
     {STARTS}},
    {24,
     GROUP,
     "texts stay after shutdown",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_static_storage,
     {STARTS}},
    {33,
     GROUP,
     "identity, telemetry and links without a device",
     DS_ACCEL__STAGE_TABLE,
     ALONE,
     check_without_device,
     {STARTS}},
    {39, GROUP, "the device count stays", DS_ACCEL__STAGE_INSTANCE, 0, check_count_stays, {0}},
    {43,
     GROUP,
     "an unknown extension",
     DS_ACCEL__STAGE_INSTANCE,
     0,
     check_extension,
     {SLOT(extension)}},
};

const struct ds_accel__check_list ds_accel__checks_life = {checks, ARRAY_SIZE(checks)};
