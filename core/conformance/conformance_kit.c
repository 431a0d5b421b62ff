/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Helper functions for the checks of the conformance suite; conformance.h describes them. */
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/probe.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- calls ---------------------------------------------------------------------------------- */

bool ds_accel__lacks(struct ds_accel__run *run, int32_t status, uint64_t flag)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    const struct ds_accel_error error = run->error;

    if (status != DS_ACCEL_ERR_UNSUPPORTED) {
        return false;
    }
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    } else {
        info.flags = run->info.flags;
    }
    run->error = error;
    if ((info.flags & flag) != 0) {
        return false;
    }
    ds_accel__skip(run, "%.200s", error.message);
    return true;
}

struct ds_accel_error *ds_accel__fresh_error(struct ds_accel__run *run)
{
    run->error.struct_size = (uint32_t)sizeof(run->error) + run->error_tail_bytes;
    run->error.code = 0;
    run->error.vendor_code = 0;
    run->error.vendor_text[0] = '\0';
    run->error.message[0] = '\0';
    return &run->error;
}

const char *ds_accel__status_text(int32_t status)
{
    bool is_listed = status <= DS_ACCEL_NOT_READY && status >= DS_ACCEL_ERR_INTERNAL;

    return is_listed ? ds_accel_status_name(status) : "a status that is not listed";
}

/* Fail with DSA-P15, whatever the check's rule, if a call failed without filling the error. */
static void want_filled(const struct ds_accel__run *run, const char *slot, int32_t status)
{
    char detail[128];

    if (status < 0 && (run->error.code != status || run->error.message[0] == '\0')) {
        snprintf(detail, sizeof(detail), "%s: %s without filling the error", slot,
                 ds_accel__status_text(status));
        ds_accel__say_result(run, "failed", 15, detail);
        _exit(0);
    }
}

void ds_accel__want(struct ds_accel__run *run, int32_t wanted, const char *slot, int32_t status)
{
    if (status != wanted) {
        run->error.message[sizeof(run->error.message) - 1] = '\0';
        ds_accel__check_fail(run, "%s: expected %s, got %s (%d)%s%s", slot,
                             ds_accel__status_text(wanted), ds_accel__status_text(status), status,
                             status < 0 ? ": " : "", status < 0 ? run->error.message : "");
    }
    want_filled(run, slot, status);
}

void ds_accel__want_error(struct ds_accel__run *run, const char *slot, int32_t status)
{
    EXPECT(run, status < 0, "%s: expected an error, got %s", slot, ds_accel__status_text(status));
    want_filled(run, slot, status);
}

/* Ranges of slots for which a flag states whether the installed runtime supports them. */
static const struct {
    uint64_t flag;
    size_t first, last;
} flagged[] = {
    {DS_ACCEL_FLAG_GRAPHS, SLOT(graph_capture_begin), SLOT(graph_dump)},
    {DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY, SLOT(mem_alloc_async), SLOT(mem_free_async)},
    {DS_ACCEL_FLAG_VIRTUAL_MEMORY, SLOT(vmem_granularity), SLOT(vmem_set_access)},
    {DS_ACCEL_FLAG_MEMORY_IPC, SLOT(ipc_memory_export), SLOT(ipc_memory_close)},
    {DS_ACCEL_FLAG_EVENT_IPC, SLOT(ipc_event_export), SLOT(ipc_event_open)},
    {DS_ACCEL_FLAG_DMABUF, SLOT(dmabuf_export), SLOT(dmabuf_release)},
};

/* True if the plugin does not report whether the installed runtime supports the slot. A plugin
 * has the same table with all versions of a runtime; with an older runtime, it omits the slot's
 * flag from info.flags_known. */
static bool is_left_open(const struct ds_accel__run *run, size_t offset)
{
    for (size_t i = 0; i < ARRAY_SIZE(flagged); i++) {
        if (offset >= flagged[i].first && offset <= flagged[i].last) {
            return run->info.flags_known != 0 && (run->info.flags_known & flagged[i].flag) == 0;
        }
    }
    return false;
}

bool ds_accel__has_slot(const struct ds_accel__run *run, size_t offset)
{
    return ds_accel__witness_has(offset) && !is_left_open(run, offset);
}

ds_accel_plugin_instance_t *ds_accel__run_init(struct ds_accel__run *run,
                                               const struct ds_accel_host *host)
{
    ds_accel_plugin_instance_t *instance = NULL;

    WANT(run, DS_ACCEL_OK, init, host, &instance);
    EXPECT(run, instance != NULL, "init: DS_ACCEL_OK without an instance");
    return instance;
}

ds_accel_plugin_device_t *ds_accel__run_open(struct ds_accel__run *run,
                                             ds_accel_plugin_instance_t *instance,
                                             uint32_t device_index)
{
    ds_accel_plugin_device_t *device = NULL;

    WANT(run, DS_ACCEL_OK, device_open, instance, device_index, &device);
    EXPECT(run, device != NULL, "device_open: DS_ACCEL_OK without a device");
    return device;
}

/* ---- memory --------------------------------------------------------------------------------- */

void *ds_accel__take(struct ds_accel__run *run, uint64_t size_bytes)
{
    void *pointer = NULL;

    WANT(run, DS_ACCEL_OK, mem_alloc, run->device, size_bytes, 0, 0, &pointer);
    EXPECT(run, pointer != NULL, "mem_alloc: DS_ACCEL_OK without memory");
    return pointer;
}

void ds_accel__give(struct ds_accel__run *run, void *pointer)
{
    WANT(run, DS_ACCEL_OK, mem_free, run->device, pointer);
}

void ds_accel__put(struct ds_accel__run *run, void *device, const void *host, size_t size_bytes)
{
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, device, host, size_bytes,
         DS_ACCEL_COPY_HOST_TO_DEVICE);
}

void ds_accel__get(struct ds_accel__run *run, void *host, const void *device, size_t size_bytes)
{
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, host, device, size_bytes,
         DS_ACCEL_COPY_DEVICE_TO_HOST);
}

void ds_accel__pattern(unsigned char *bytes, size_t size_bytes, unsigned seed)
{
    for (size_t i = 0; i < size_bytes; i++) {
        bytes[i] = (unsigned char)(i * 37 + i / 251 + seed * 101 + 1);
    }
}

void ds_accel__want_pattern(struct ds_accel__run *run, const void *device, size_t size_bytes,
                            unsigned seed, const char *what)
{
    unsigned char *wanted = malloc(size_bytes);
    unsigned char *given = calloc(1, size_bytes);

    EXPECT(run, wanted != NULL && given != NULL, "host memory is exhausted");
    ds_accel__pattern(wanted, size_bytes, seed);
    ds_accel__get(run, given, device, size_bytes);
    for (size_t i = 0; i < size_bytes; i++) {
        EXPECT(run, given[i] == wanted[i], "%s: byte %zu of %zu is 0x%02x, expected 0x%02x", what,
               i, size_bytes, given[i], wanted[i]);
    }
    free(wanted);
    free(given);
}

/* ---- streams and events --------------------------------------------------------------------- */

ds_accel_plugin_stream_t *ds_accel__stream(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = NULL;

    WANT(run, DS_ACCEL_OK, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream);
    EXPECT(run, stream != NULL, "stream_create: DS_ACCEL_OK without a stream");
    return stream;
}

ds_accel_plugin_event_t *ds_accel__event(struct ds_accel__run *run, uint32_t flags)
{
    ds_accel_plugin_event_t *event = NULL;

    WANT(run, DS_ACCEL_OK, event_create, run->device, flags, &event);
    EXPECT(run, event != NULL, "event_create: DS_ACCEL_OK without an event");
    return event;
}

void ds_accel__wait(struct ds_accel__run *run, ds_accel_plugin_stream_t *stream)
{
    WANT(run, DS_ACCEL_OK, stream_synchronize, stream, UINT64_MAX);
}

static void slow_task(void *user_data, int32_t status)
{
    struct ds_accel__slow *slow = user_data;

    atomic_fetch_add(&slow->runs, 1);
    slow->status = status;
    nanosleep(&(struct timespec){.tv_nsec = DS_ACCEL__SLOW_NS}, NULL);
    atomic_store(&slow->is_done, 1);
}

void ds_accel__slow_start(struct ds_accel__run *run, struct ds_accel__slow *slow,
                          ds_accel_plugin_stream_t *stream)
{
    atomic_init(&slow->runs, 0);
    atomic_init(&slow->is_done, 0);
    slow->status = DS_ACCEL_ERR_INTERNAL;
    WANT(run, DS_ACCEL_OK, stream_host_task, stream, slow_task, slow);
}

/* ---- the process ---------------------------------------------------------------------------- */

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

size_t ds_accel__count_threads(void)
{
    return count_entries("/proc/self/task");
}

size_t ds_accel__count_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

void ds_accel__want_no_conduct(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    struct ds_accel__run *run = user_data;

    if (!ds_accel__conduct_is_tolerated(run->candidate, reason)) {
        ds_accel__check_fail(run, "%s: %s", ds_accel__reason_code(reason), detail);
    }
}

static struct stat stdin_file;
static bool has_stdin;

void ds_accel__note_stdin(void)
{
    has_stdin = fstat(STDIN_FILENO, &stdin_file) == 0;
}

void ds_accel__want_silence(const struct ds_accel__run *run)
{
    int64_t printed = ds_accel__printed_bytes();
    struct stat now;

    EXPECT(run,
           !has_stdin || (fstat(STDIN_FILENO, &now) == 0 && now.st_dev == stdin_file.st_dev &&
                          now.st_ino == stdin_file.st_ino),
           "stdin was closed, or is another file");

    EXPECT(run, lseek(STDOUT_FILENO, 0, SEEK_CUR) >= 0, "stdout was closed");
    EXPECT(run, lseek(STDERR_FILENO, 0, SEEK_CUR) >= 0, "stderr was closed");
    EXPECT(run, printed == 0, "%lld bytes were written to stdout or stderr", (long long)printed);
}
