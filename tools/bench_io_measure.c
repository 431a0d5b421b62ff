/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The file of ds-accel bench io, and the measurement of one set of settings: two requests of up to
 * 32 MiB are in flight, the next is submitted when the older one has ended, as a program does that
 * swaps tensors. The first and the last word of a request depend on its offset and are compared
 * when it was read.
 */
#include "bench_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define MIB ((uint64_t)1 << 20)
#define MAX_REQUEST_BYTES (32 * MIB)
#define NS_PER_S 1e9
#define STAMP UINT64_C(0x9e3779b97f4a7c15)

const struct bench_io_settings bench_io_defaults = {
    .block_bytes = MIB, .queue_depth = 128, .parallelism = 1};

bool bench_io_equal(const struct bench_io_settings *a, const struct bench_io_settings *b)
{
    return a->block_bytes == b->block_bytes && a->queue_depth == b->queue_depth &&
           a->parallelism == b->parallelism && a->single_submit == b->single_submit &&
           a->overlap_events == b->overlap_events;
}

uint64_t bench_io_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int32_t fail(struct bench_io *io, int32_t status, const char *what, const char *cause)
{
    snprintf(io->failure, sizeof(io->failure), "%s: %s", what, cause);
    return status;
}

/* ---- handles -------------------------------------------------------------------------------- */

static int32_t create(struct bench_io *io, const struct bench_io_settings *settings,
                      ds_accel_async_io_handle_t **handle_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_async_io_options options = {
        .struct_size = sizeof(options),
        .flags = DS_ACCEL_ASYNC_IO_NO_SETTINGS,
        .block_bytes = settings->block_bytes,
        .queue_depth = settings->queue_depth,
        .parallelism = settings->parallelism,
        .single_submit = settings->single_submit ? DS_ACCEL_ASYNC_IO_ON : DS_ACCEL_ASYNC_IO_OFF,
        .overlap_events = settings->overlap_events ? DS_ACCEL_ASYNC_IO_ON : DS_ACCEL_ASYNC_IO_OFF,
        .engine = io->engine};
    int32_t status = io->op->create(&options, handle_out, &error);

    return status < 0 ? fail(io, BENCH_IO_UNUSABLE, "the op async_io", error.message) : status;
}

int32_t bench_io_ask(struct bench_io *io)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};
    ds_accel_async_io_handle_t *handle = NULL;
    int32_t status = io->op->create(NULL, &handle, &error);

    status = status < 0 ? status : io->op->info(handle, &info, &error);
    io->op->destroy(handle);
    if (status < 0) {
        return fail(io, status, "the op async_io", error.message);
    }
    io->engine = info.engine;
    memcpy(io->engine_reason, info.reason, sizeof(io->engine_reason));
    io->configured = (struct bench_io_settings){.block_bytes = info.block_bytes,
                                                .queue_depth = info.queue_depth,
                                                .parallelism = info.parallelism,
                                                .single_submit = info.single_submit != 0,
                                                .overlap_events = info.overlap_events != 0};
    return DS_ACCEL_OK;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The memory of a request in flight, as words. */
static uint64_t *memory_of(const struct bench_io *io, uint64_t number)
{
    return (uint64_t *)(void *)(io->buffer + number % BENCH_IO_REQUESTS * io->request_bytes);
}

static int32_t submit(struct bench_io *io, ds_accel_async_io_handle_t *handle, int way,
                      uint64_t number, uint64_t *request_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t *words = memory_of(io, number);
    uint64_t offset = io->next[way];
    const struct ds_accel_async_io_transfer transfer = {.struct_size = sizeof(transfer),
                                                        .fd = io->fd,
                                                        .offset = offset,
                                                        .buffer = words,
                                                        .bytes = io->request_bytes};
    int32_t status;

    words[0] = way == BENCH_IO_WRITE ? offset ^ STAMP : 0;
    words[io->request_bytes / sizeof(*words) - 1] = words[0];
    status = (way == BENCH_IO_WRITE ? io->op->submit_write
                                    : io->op->submit_read)(handle, &transfer, request_out, &error);
    io->next[way] = (offset + io->request_bytes) % io->size_bytes;
    return status < 0 ? fail(io, status, "the test file", error.message) : status;
}

/* Wait for a request, and compare what was read from an offset. */
static int32_t finish(struct bench_io *io, ds_accel_async_io_handle_t *handle, int way,
                      uint64_t number, uint64_t request, uint64_t offset)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    const uint64_t *words = memory_of(io, number);
    int32_t status = io->op->wait_one(handle, request, &result, &error);

    if (status < 0) {
        return fail(io, status,
                    way == BENCH_IO_WRITE ? "writing the test file" : "reading the test file",
                    result.system_error != 0 ? strerror(result.system_error) : error.message);
    }
    io->bytes += result.bytes;
    io->direct_bytes += result.direct_bytes;
    if (way == BENCH_IO_READ && (words[0] != (offset ^ STAMP) ||
                                 words[io->request_bytes / sizeof(*words) - 1] != words[0])) {
        return fail(io, DS_ACCEL_ERR_IO, "reading the test file",
                    "the bytes are not those that were written");
    }
    return DS_ACCEL_OK;
}

/* Transfer for a time, but at least so many bytes, and all that is in flight. */
static int32_t pass(struct bench_io *io, ds_accel_async_io_handle_t *handle, int way,
                    uint64_t time_ns, uint64_t least_bytes, struct bench_io_sums *sums)
{
    uint64_t requests[BENCH_IO_REQUESTS];
    uint64_t offsets[BENCH_IO_REQUESTS];
    uint64_t start_ns = bench_io_now_ns();
    uint64_t done = 0;
    uint64_t submitted = 0;
    bool more = true;
    int32_t status = DS_ACCEL_OK;

    while (status == DS_ACCEL_OK && (more || done < submitted)) {
        uint64_t slot = submitted % BENCH_IO_REQUESTS;

        if (submitted - done == BENCH_IO_REQUESTS || !more) {
            slot = done % BENCH_IO_REQUESTS;
            status = finish(io, handle, way, done, requests[slot], offsets[slot]);
            done++;
            more = more && bench_signal() == 0 &&
                   (submitted * io->request_bytes < least_bytes ||
                    bench_io_now_ns() - start_ns < time_ns);
        } else {
            offsets[slot] = io->next[way];
            status = submit(io, handle, way, submitted, &requests[slot]);
            submitted++;
        }
    }
    sums->bytes[way] += done * io->request_bytes;
    sums->ns[way] += bench_io_now_ns() - start_ns;
    return bench_signal() != 0 ? BENCH_INTERRUPTED : status;
}

int32_t bench_io_measure(struct bench_io *io, const struct bench_io_settings *settings,
                         uint64_t time_ns, struct bench_io_sums *sums)
{
    ds_accel_async_io_handle_t *handle = NULL;
    int32_t status = create(io, settings, &handle);

    for (int way = 0; way < BENCH_IO_WAYS && status == DS_ACCEL_OK; way++) {
        status = pass(io, handle, way, time_ns, 0, sums);
    }
    io->op->destroy(handle);
    return status;
}

double bench_io_rate(const struct bench_io_sums *sums, int way)
{
    return sums->ns[way] > 0 ? (double)sums->bytes[way] * NS_PER_S / (double)sums->ns[way] : 0;
}

double bench_io_both(double write_rate, double read_rate)
{
    return write_rate > 0 && read_rate > 0 ? 2 / (1 / write_rate + 1 / read_rate) : 0;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Open a file without a name; where the file system has none, one whose name is removed at once. */
static int open_nameless(const char *directory)
{
    char path[PATH_MAX];
    struct stat info;
    int fd;

    if (stat(directory, &info) != 0) {
        return -1;
    }
    if (!S_ISDIR(info.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) {
        return fd;
    }
    if (snprintf(path, sizeof(path), "%s/.ds-accel-bench-io.XXXXXX", directory) >=
        (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

/* Allocate memory whose bytes differ, so that no layer below stores them in less space. */
static char *make_buffer(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *words = memory;
    uint64_t state = STAMP;

    if (memory == MAP_FAILED) {
        return NULL;
    }
    madvise(memory, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size / sizeof(*words); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
    return memory;
}

static void choose_sizes(struct bench_io *io)
{
    io->request_bytes = io->size_bytes / BENCH_IO_REQUESTS / PAGE * PAGE;
    if (io->request_bytes > MAX_REQUEST_BYTES) {
        io->request_bytes = MAX_REQUEST_BYTES;
    }
    io->size_bytes -= io->size_bytes % io->request_bytes;
}

/* Write the whole file. */
static int32_t fill(struct bench_io *io, struct bench_io_sums *sums)
{
    ds_accel_async_io_handle_t *handle = NULL;
    int32_t status = create(io, &io->configured, &handle);

    status = status == DS_ACCEL_OK ? pass(io, handle, BENCH_IO_WRITE, 0, io->size_bytes, sums)
                                   : status;
    io->op->destroy(handle);
    return status;
}

int32_t bench_io_open(struct bench_io *io, const char *directory, struct bench_io_sums *sums)
{
    struct statvfs space;
    struct statfs kind;
    char cause[128];

    choose_sizes(io);
    io->fd = open_nameless(directory);
    if (io->fd < 0) {
        return fail(io, DS_ACCEL_ERR_IO, "cannot create the test file", strerror(errno));
    }
    io->memory = fstatfs(io->fd, &kind) == 0 &&
                 (kind.f_type == TMPFS_MAGIC || kind.f_type == RAMFS_MAGIC);
    if (fstatvfs(io->fd, &space) == 0 &&
        (uint64_t)space.f_bavail * space.f_frsize < io->size_bytes) {
        snprintf(cause, sizeof(cause),
                 "it needs %" PRIu64 " MiB, and %" PRIu64 " MiB are free; see --size",
                 (io->size_bytes + MIB - 1) / MIB, (uint64_t)space.f_bavail * space.f_frsize / MIB);
        return fail(io, DS_ACCEL_ERR_LIMIT, "the test file", cause);
    }
    io->buffer = make_buffer(BENCH_IO_REQUESTS * io->request_bytes);
    if (io->buffer == NULL) {
        return fail(io, DS_ACCEL_ERR_NO_MEMORY, "the memory of requests", strerror(errno));
    }
    return fill(io, sums);
}

void bench_io_close(struct bench_io *io)
{
    if (io->buffer != NULL) {
        munmap(io->buffer, BENCH_IO_REQUESTS * io->request_bytes);
    }
    if (io->fd >= 0) {
        close(io->fd);
    }
}
