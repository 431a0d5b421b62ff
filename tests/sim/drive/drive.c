/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls a plugin through its table, as a host would, and says on stdout what came of it.
 *
 *     drive PLUGIN.so CASE
 *
 *     work       everything that moves data, its result checked; a failure is told and ends it
 *     pageable   copies in flight from and to memory that nobody pinned, at the same addresses
 *     facts      identity and telemetry, without opening a device
 *     busy       opens device 0 twice in this process, then waits for a line on stdin
 *     every      everything once, whatever fails: each failure has to be complete
 *
 * Conformance asks whether rules are kept; this asks what only this vendor's way of doing it can
 * get wrong, and is small enough to be run once per call that can fail.
 */
#include "plugin-api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct ds_accel_plugin *plugin;
static int failures;
static int is_tolerant;

/* ---- a host --------------------------------------------------------------------------------- */

static void host_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    if (level <= DS_ACCEL_LOG_WARN && !is_tolerant) {
        fprintf(stderr, "log: %s\n", message);
    }
}

static int32_t host_log_enabled(const struct ds_accel_host *host, uint32_t level,
                                uint32_t *enabled_out)
{
    (void)host;
    *enabled_out = level <= DS_ACCEL_LOG_WARN;
    return DS_ACCEL_OK;
}

/* Options: DRIVE_LIBRARY is "library", DRIVE_OBJC is "objc_library". */
static int32_t host_config_get(const struct ds_accel_host *host, const char *key, char *value,
                               uint32_t value_size, uint32_t *needed_out)
{
    const char *text = strcmp(key, "library") == 0        ? getenv("DRIVE_LIBRARY")
                       : strcmp(key, "objc_library") == 0 ? getenv("DRIVE_OBJC")
                                                          : NULL;

    (void)host;
    if (text == NULL) {
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    if (needed_out != NULL) {
        *needed_out = (uint32_t)strlen(text) + 1;
    }
    if (value_size <= strlen(text)) {
        return DS_ACCEL_ERR_LIMIT;
    }
    memcpy(value, text, strlen(text) + 1);
    return DS_ACCEL_OK;
}

static uint64_t host_clock(const struct ds_accel_host *host)
{
    struct timespec now;

    (void)host;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const void *host_extension(const struct ds_accel_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

static struct ds_accel_host host = {.struct_size = sizeof(host),
                                    .abi_major = DS_ACCEL_ABI_MAJOR,
                                    .abi_minor = DS_ACCEL_ABI_MINOR,
                                    .features = DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE,
                                    .host_version = "drive",
                                    .log = host_log,
                                    .log_enabled = host_log_enabled,
                                    .config_get = host_config_get,
                                    .clock_ns = host_clock,
                                    .extension = host_extension};

/* ---- calls ---------------------------------------------------------------------------------- */

static struct ds_accel_error error;

static int is_complete(int32_t status)
{
    return error.code == status && error.message[0] != '\0' &&
           memchr(error.message, '\0', sizeof(error.message)) != NULL;
}

/* Non-zero: it failed. A failure is told; where failures are expected, only a bad one is. */
static int check(const char *call, int32_t status)
{
    if (status < 0 && !is_complete(status)) {
        printf("%s: %d with an incomplete error %d \"%s\"\n", call, status, error.code,
               error.message);
        failures++;
    } else if (status < 0 && !is_tolerant) {
        printf("%s: %d, vendor %lld %s: %s\n", call, status, (long long)error.vendor_code,
               error.vendor_text, error.message);
        failures++;
    }
    return status < 0;
}

#define CALL(slot, ...) \
    check(#slot, (error = (struct ds_accel_error){.struct_size = sizeof(error)}, \
                  plugin->slot(__VA_ARGS__, &error)))

/* Without is_tolerant, a wrong result is told. */
static void want(int is_so, const char *what)
{
    if (!is_so && !is_tolerant) {
        printf("wrong: %s\n", what);
        failures++;
    }
}

static unsigned char *make_bytes(size_t size, unsigned seed)
{
    unsigned char *bytes = malloc(size);

    for (size_t i = 0; bytes != NULL && i < size; i++) {
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) * 13 + seed * 31);
    }
    return bytes;
}

static int is_bytes(const unsigned char *bytes, size_t size, unsigned seed)
{
    unsigned char *wanted = make_bytes(size, seed);
    int is_same = wanted != NULL && memcmp(bytes, wanted, size) == 0;

    free(wanted);
    return is_same;
}

struct session {
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_stream_t *streams[2];
    ds_accel_plugin_event_t *events[2];
    unsigned char *memory; /* of the device, 4 * SIZE */
};

#define SIZE ((size_t)256 << 10)
#define UP DS_ACCEL_COPY_HOST_TO_DEVICE
#define DOWN DS_ACCEL_COPY_DEVICE_TO_HOST
#define WITHIN DS_ACCEL_COPY_DEVICE_TO_DEVICE

static int begin(struct session *session)
{
    memset(session, 0, sizeof(*session));
    if (CALL(init, &host, &session->instance) ||
        CALL(device_open, session->instance, 0, &session->device)) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (CALL(stream_create, session->device, 0, 0, &session->streams[i]) ||
            CALL(event_create, session->device, DS_ACCEL_EVENT_TIMING, &session->events[i])) {
            return -1;
        }
    }
    return CALL(mem_alloc, session->device, 4 * SIZE, 0, 0, (void **)&session->memory) ? -1 : 0;
}

static void end(struct session *session)
{
    if (session->memory != NULL) {
        CALL(mem_free, session->device, session->memory);
    }
    for (int i = 0; i < 2; i++) {
        plugin->event_destroy(session->events[i]);
        plugin->stream_destroy(session->streams[i]);
    }
    plugin->device_close(session->device);
    plugin->shutdown(session->instance);
}

/* Memory is not given back before nothing uses it, even if waiting fails once. */
static int finish(struct session *session, ds_accel_plugin_stream_t *stream)
{
    if (!CALL(stream_synchronize, stream, UINT64_MAX)) {
        return 0;
    }
    CALL(device_synchronize, session->device, UINT64_MAX);
    return -1;
}

/* ---- work ----------------------------------------------------------------------------------- */

/* Up, within, down, each with its own place and size. */
static void move(struct session *session, ds_accel_plugin_stream_t *stream, unsigned char *source,
                 unsigned char *sink, unsigned seed)
{
    int is_given;

    memset(sink, 0, SIZE);
    is_given =
        !CALL(mem_copy_async, stream, session->memory, source, SIZE, UP) &&
        !CALL(mem_copy_async, stream, session->memory + 2 * SIZE, session->memory, SIZE, WITHIN) &&
        !CALL(mem_copy_async, stream, sink, session->memory + 2 * SIZE, SIZE - 3, DOWN);
    if (finish(session, stream) == 0 && is_given) {
        want(is_bytes(sink, SIZE - 3, seed), "what came down is not what went up");
        want(sink[SIZE - 1] == 0 && sink[SIZE - 3] == 0, "more came down than was asked for");
    }
}

static void fill(struct session *session, ds_accel_plugin_stream_t *stream, unsigned char *sink)
{
    static const unsigned char pattern[4] = {0x12, 0x34, 0x56, 0x78};

    for (uint32_t width = 1; width <= 4; width *= 2) {
        int is_right = 1;

        if (CALL(mem_fill_async, stream, session->memory, pattern, width, 400) ||
            CALL(mem_copy_async, stream, sink, session->memory, 400, DOWN) ||
            finish(session, stream) != 0) {
            continue;
        }
        for (size_t i = 0; i < 400; i++) {
            is_right = is_right && sink[i] == pattern[i % width];
        }
        want(is_right, "a fill's pattern");
    }
}

/* A waits for B's event; the time between two events is at least that of the copy between them. */
static void order(struct session *session, unsigned char *source, unsigned char *sink)
{
    ds_accel_plugin_stream_t *first = session->streams[0];
    ds_accel_plugin_stream_t *second = session->streams[1];
    const char *latency = getenv("DRIVE_COPY_MS");
    double least = latency != NULL ? atof(latency) : 0;
    double elapsed = -1;

    memset(sink, 0, SIZE);
    if (CALL(event_record, session->events[0], first) ||
        CALL(mem_copy_async, first, session->memory, source, SIZE, UP) ||
        CALL(event_record, session->events[1], first) ||
        CALL(stream_wait_event, second, session->events[1]) ||
        CALL(mem_copy_async, second, sink, session->memory, SIZE, DOWN)) {
        return;
    }
    if (least > 0) {
        want(plugin->event_query(session->events[1], &error) == DS_ACCEL_NOT_READY,
             "an event behind a slow copy is not ready");
        want(plugin->stream_query(first, &error) == DS_ACCEL_NOT_READY,
             "a stream with a slow copy is not ready");
    }
    if (finish(session, second) != 0 ||
        CALL(event_elapsed_ms, session->events[0], session->events[1], &elapsed)) {
        return;
    }
    want(is_bytes(sink, SIZE, 1), "the copy ran before the event that it waits for");
    want(elapsed >= least && elapsed < 500 * (least + 1), "the time between two events");
}

static void use_host_memory(struct session *session, unsigned char *sink)
{
    unsigned char *own = make_bytes(SIZE, 5);
    void *pinned = NULL;

    if (own == NULL) {
        return;
    }
    if (!CALL(mem_register, session->device, own, SIZE, 0)) {
        move(session, session->streams[0], own, sink, 5);
        CALL(mem_unregister, session->device, own);
    }
    if (!CALL(mem_alloc_pinned, session->device, SIZE, 0, 0, &pinned)) {
        memcpy(pinned, own, SIZE);
        move(session, session->streams[0], pinned, sink, 5);
        CALL(mem_free_pinned, session->device, pinned);
    }
    free(own);
}

/* What is allocated is not free, and the total stays. */
static void ask_memory(struct session *session)
{
    struct ds_accel_memory_info before = {.struct_size = sizeof(before)};
    struct ds_accel_memory_info after = {.struct_size = sizeof(after)};
    void *more = NULL;

    if (CALL(mem_info, session->device, &before) ||
        CALL(mem_alloc, session->device, SIZE, 0, 0, &more)) {
        return;
    }
    if (!CALL(mem_info, session->device, &after)) {
        want(before.available_bytes - after.available_bytes >= SIZE &&
                 before.available_bytes > after.available_bytes,
             "an allocation takes of what is available");
        want(before.total_bytes == after.total_bytes, "the total stays as it is");
    }
    CALL(mem_free, session->device, more);
}

static int do_work(void)
{
    struct session session = {NULL, NULL, {NULL, NULL}, {NULL, NULL}, NULL};
    unsigned char *source = make_bytes(SIZE, 1);
    unsigned char *sink = malloc(SIZE);

    if (source != NULL && sink != NULL && begin(&session) == 0) {
        move(&session, session.streams[0], source, sink, 1);
        move(&session, session.streams[1], source, sink, 1);
        fill(&session, session.streams[0], sink);
        order(&session, source, sink);
        use_host_memory(&session, sink);
        ask_memory(&session);
        CALL(device_synchronize, session.device, UINT64_MAX);
        CALL(device_health, session.device);
    }
    end(&session);
    free(source);
    free(sink);
    return failures != 0;
}

/* ---- memory that nobody pinned -------------------------------------------------------------- */

/* Ranges that touch, overlap and lie in each other, on two streams, all in flight at once. */
static void overlap(struct session *session, unsigned char *source)
{
    static const struct {
        size_t from;
        size_t size;
    } parts[] = {{0, SIZE / 2}, {SIZE / 2, SIZE / 2}, {SIZE / 4, SIZE / 2}, {SIZE / 3, SIZE / 9},
                 {0, SIZE},     {SIZE - 100, 100}};
    unsigned char *sink = malloc(SIZE);

    for (unsigned i = 0; i < 6; i++) {
        CALL(mem_copy_async, session->streams[i % 2],
             session->memory + (i % 2) * SIZE + parts[i].from, source + parts[i].from,
             parts[i].size, UP);
    }
    if (!CALL(device_synchronize, session->device, UINT64_MAX) &&
        !CALL(mem_copy, session->device, sink, session->memory, SIZE, DOWN)) {
        want(is_bytes(sink, SIZE, 1), "overlapping copies");
    }
    free(sink);
}

/*
 * A buffer is freed as soon as its copy is known to be done, by an event, and another one may be
 * where it was: its bytes have to arrive, and no former map may be in the way.
 */
static void reuse(struct session *session)
{
    unsigned char *sink = malloc(SIZE);

    for (unsigned round = 0; round < 20; round++) {
        unsigned char *bytes = make_bytes(SIZE, round);

        if (bytes == NULL ||
            CALL(mem_copy_async, session->streams[0], session->memory, bytes, SIZE - round * 512,
                 UP) ||
            CALL(event_record, session->events[0], session->streams[0]) ||
            CALL(event_synchronize, session->events[0], UINT64_MAX)) {
            free(bytes);
            break;
        }
        free(bytes);
        if (!CALL(mem_copy, session->device, sink, session->memory, SIZE - round * 512, DOWN)) {
            want(is_bytes(sink, SIZE - round * 512, round), "a buffer at a former one's address");
        }
    }
    free(sink);
}

static int do_pageable(void)
{
    struct session session = {NULL, NULL, {NULL, NULL}, {NULL, NULL}, NULL};
    unsigned char *source = make_bytes(SIZE, 1);

    if (source != NULL && begin(&session) == 0) {
        overlap(&session, source);
        reuse(&session);
        overlap(&session, source);
    }
    end(&session);
    free(source);
    return failures != 0;
}

/* ---- facts ---------------------------------------------------------------------------------- */

/* Where failures are wanted, facts are only asked for. */
static void tell_device(ds_accel_plugin_instance_t *instance, uint32_t index)
{
    struct ds_accel_device_identity who = {.struct_size = sizeof(who)};
    struct ds_accel_telemetry how = {.struct_size = sizeof(how)};

    if (!CALL(device_identity, instance, index, &who) && !is_tolerant) {
        printf("%u: module %u, %s, %s, %s, %s, %s, node %d, %llu bytes\n", index, who.vendor_index,
               who.name, who.architecture, who.uuid_text, who.pci_address, who.node_path,
               (who.valid & DS_ACCEL_IDENTITY_NUMA_NODE) != 0 ? (int)who.numa_node : -1,
               (unsigned long long)who.total_memory_bytes);
    }
    if (plugin->telemetry_get != NULL && !CALL(telemetry_get, instance, index, &how) &&
        !is_tolerant) {
        printf("%u: valid 0x%llx, %u %%, %d m°C, %llu of %llu mW, %llu mJ, %u kHz, throttle "
               "0x%llx, %llu of %llu bytes\n",
               index, (unsigned long long)how.valid, how.utilization_percent,
               how.temperature_millidegrees_c, (unsigned long long)how.power_milliwatts,
               (unsigned long long)how.power_limit_milliwatts,
               (unsigned long long)how.energy_millijoules, how.core_clock_khz,
               (unsigned long long)how.throttle_reasons, (unsigned long long)how.memory_used_bytes,
               (unsigned long long)how.memory_total_bytes);
    }
}

static int do_facts(void)
{
    ds_accel_plugin_instance_t *instance = NULL;
    uint32_t count = 0;

    if (CALL(init, &host, &instance)) {
        return 1;
    }
    CALL(device_count, instance, &count);
    for (uint32_t i = 0; i < count; i++) {
        tell_device(instance, i);
    }
    plugin->shutdown(instance);
    return failures != 0;
}

/* ---- a device in use ------------------------------------------------------------------------ */

/* Twice here: by two instances. Then somebody else may try, until there is a line to read. */
static int do_busy(void)
{
    ds_accel_plugin_instance_t *instances[2] = {NULL, NULL};
    ds_accel_plugin_device_t *devices[2] = {NULL, NULL};

    for (int i = 0; i < 2; i++) {
        if (CALL(init, &host, &instances[i]) || CALL(device_open, instances[i], 0, &devices[i])) {
            break;
        }
    }
    puts(failures == 0 ? "open" : "not open");
    fflush(stdout);
    getchar();
    for (int i = 0; i < 2; i++) {
        plugin->device_close(devices[i]);
        plugin->shutdown(instances[i]);
    }
    return failures != 0;
}

/* ---- everything, whatever fails ------------------------------------------------------------- */

static int do_every(void)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    is_tolerant = 1;
    CALL(probe, &host, &verdict);
    do_work();
    do_facts();
    return failures != 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {{"work", do_work},
                 {"pageable", do_pageable},
                 {"facts", do_facts},
                 {"busy", do_busy},
                 {"every", do_every}};
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    ds_accel_entry_v1_t entry;

    if (library == NULL) {
        fprintf(stderr, "drive: %s\n", argc == 3 ? dlerror() : "PLUGIN.so CASE");
        return 2;
    }
    *(void **)&entry = dlsym(library, DS_ACCEL_ENTRY_V1_SYMBOL);
    host.machine_root = getenv("DS_ACCEL_ROOT") != NULL ? getenv("DS_ACCEL_ROOT") : "";
    plugin = entry(&host);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[2], cases[i].name) == 0) {
            return cases[i].run();
        }
    }
    return 2;
}
