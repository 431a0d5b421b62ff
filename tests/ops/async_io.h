/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the tests of the op async_io share: handles, contents of files, children. */
#ifndef TESTS_OPS_ASYNC_IO_H
#define TESTS_OPS_ASYNC_IO_H

#include "ds-accel/ops/async_io.h"
#include "ops/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUARD 4096u
#define GUARD_BYTE 0xA5

static const struct ds_accel_async_io *io;

static const uint32_t engines[] = {DS_ACCEL_ASYNC_IO_ENGINE_IO_URING,
                                   DS_ACCEL_ASYNC_IO_ENGINE_THREADS};
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

/* Return a handle, or NULL where the wanted engine cannot be used. */
static inline ds_accel_async_io_handle_t *make(struct ds_accel_async_io_options options)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_async_io_handle_t *handle = NULL;
    int32_t status;

    options.struct_size = sizeof(options);
    status = io->create(&options, &handle, &error);
    if (options.engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING && status == DS_ACCEL_ERR_UNSUPPORTED) {
        static bool printed;

        if (!printed)
            printf("async_io: io_uring is not checked: %s\n", error.message);
        printed = true;
        return NULL;
    }
    CHECK(status == DS_ACCEL_OK && handle, "%s", error.message);
    return handle;
}

static inline ds_accel_async_io_handle_t *make_simple(uint32_t engine, uint64_t block,
                                                      uint32_t depth, uint32_t parallelism)
{
    return make((struct ds_accel_async_io_options){.engine = engine,
                                                   .block_bytes = block,
                                                   .queue_depth = depth,
                                                   .parallelism = parallelism,
                                                   .overlap_events = 1});
}

static inline struct ds_accel_async_io_transfer part(const char *path, uint64_t offset,
                                                     void *buffer, uint64_t bytes)
{
    return (struct ds_accel_async_io_transfer){
        .struct_size = sizeof(struct ds_accel_async_io_transfer),
        .path = path,
        .offset = offset,
        .buffer = buffer,
        .bytes = bytes};
}

/* Fill memory with bytes that differ by position and seed. */
static inline void fill(char *memory, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = (i + seed * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;

        word ^= word >> 29;
        memcpy(memory + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

/* A buffer with a guard on both sides. */
static inline char *make_buffer(uint64_t bytes, uint64_t shift)
{
    char *base = aligned_alloc(GUARD, (2 * GUARD + bytes + shift + GUARD - 1) / GUARD * GUARD);

    if (!base)
        abort();
    memset(base, GUARD_BYTE, 2 * GUARD + bytes + shift);
    return base + GUARD + shift;
}

static inline void free_buffer(char *buffer, uint64_t bytes, uint64_t shift)
{
    bool whole = true;

    for (uint64_t i = 1; i <= GUARD; i++)
        whole = whole && buffer[-(ptrdiff_t)i] == (char)GUARD_BYTE;
    for (uint64_t i = 0; i < GUARD; i++)
        whole = whole && buffer[bytes + i] == (char)GUARD_BYTE;
    CHECK(whole, "bytes beside a buffer of %llu were written", (unsigned long long)bytes);
    free(buffer - shift - GUARD);
}

static inline void write_file(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0, "%s: %s", path, strerror(errno));
    for (size_t done = 0; fd >= 0 && done < size;) {
        ssize_t wrote = write(fd, bytes + done, size - done);

        CHECK(wrote > 0, "%s: %s", path, strerror(errno));
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    if (fd >= 0)
        close(fd);
}

/* Check the whole contents of a file. */
static inline void check_file(const char *path, const char *bytes, size_t size, const char *what)
{
    int fd = open(path, O_RDONLY);
    char *found = malloc(size + 2);
    size_t done = 0;
    ssize_t got = 1;

    while (fd >= 0 && found && done < size + 1 && got > 0) {
        got = read(fd, found + done, size + 1 - done);
        done += got > 0 ? (size_t)got : 0;
    }
    CHECK(done == size, "%s: %s has %zu bytes or more, not %zu", what, path, done, size);
    CHECK(found && done >= size && memcmp(found, bytes, size) == 0, "%s: contents of %s", what,
          path);
    free(found);
    if (fd >= 0)
        close(fd);
}

/* Run checks in a child, whose result is that of one check. */
static inline void in_child(void (*run)(void))
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(300); /* ends a child that hangs */
        failures = 0;
        run();
        fflush(stdout);
        _exit(failures > 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "status 0x%x", status);
}

#endif
