/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op async_io: async_io_errors FILE.so
 *
 * Arguments that are refused, files that cannot be opened, end early or take no more bytes, system
 * calls and allocations that fail, io_uring forbidden by a seccomp filter, and fork(). This program
 * defines some functions of libc that fail on demand, also for the op.
 */
#include "ops/async_io.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define KIB ((uint64_t)1 << 10)

static char directory[128];
static char path[160];

/* ---- functions that fail on demand ----------------------------------------------------------- */

static atomic_int thread_failure; /* threads that are still started; -1: all */
static atomic_bool map_failure;
static atomic_int allocation_failure; /* allocations that still succeed; -1: all */

#pragma GCC visibility push(default)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (thread_failure == 0)
        return EAGAIN;
    if (thread_failure > 0)
        thread_failure--;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, argument);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (map_failure) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

/* The sanitizers have their own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_calloc(size_t count, size_t bytes);
void *calloc(size_t count, size_t bytes)
{
    if (allocation_failure == 0) {
        errno = ENOMEM;
        return NULL;
    }
    if (allocation_failure > 0)
        allocation_failure--;
    return __libc_calloc(count, bytes);
}
#define FAILS_CALLOC true
#else
#define FAILS_CALLOC false
#endif

#pragma GCC visibility pop

static unsigned descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 200; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void refuse_option(struct ds_accel_async_io_options options, const char *text)
{
    ds_accel_async_io_handle_t *handle = NULL;

    options.struct_size = sizeof(options);
    REFUSED(io->create(&options, &handle, failed), DS_ACCEL_ERR_INVALID, text);
    CHECK(!handle, "an output was written");
}

#define OPTION(...) ((struct ds_accel_async_io_options){__VA_ARGS__})

static void check_options(void)
{
    struct ds_accel_async_io_options small = {.struct_size = sizeof(small) - 8};
    ds_accel_async_io_handle_t *handle = NULL;
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};

    refuse_option(OPTION(.block_bytes = 1000), "block_bytes is 1000; wanted a multiple of 512");
    refuse_option(OPTION(.block_bytes = KIB << 21), "block_bytes is 2147483648");
    refuse_option(OPTION(.queue_depth = 4097), "queue_depth is 4097; wanted at most 4096");
    refuse_option(OPTION(.parallelism = 65), "parallelism is 65; wanted at most 64");
    refuse_option(OPTION(.single_submit = 3), "single_submit is 3; wanted 0 (unset), 1 (on)");
    refuse_option(OPTION(.overlap_events = 3), "overlap_events is 3");
    refuse_option(OPTION(.engine = 3), "engine is 3");
    refuse_option(OPTION(.flags = 8), "flags is 8");
    refuse_option(OPTION(.reserved = 1), "reserved is 1");
    refuse_option(OPTION(.staging = (void *)100), "staging is 100; wanted a multiple of 4096");
    refuse_option(OPTION(.staging = (void *)4096, .staging_bytes = 4096),
                  "staging_bytes is 4096; wanted ");
    REFUSED(io->create(&small, &handle, failed), DS_ACCEL_ERR_INVALID, "struct_size of options");
    REFUSED(io->create(NULL, NULL, failed), DS_ACCEL_ERR_INVALID, "handle_out is NULL");
    ERROR_SIZES(io->create(NULL, NULL, failed), DS_ACCEL_ERR_INVALID);
    CHECK(io->create(NULL, &handle, NULL) == DS_ACCEL_OK, "the defaults");
    CHECK(io->info(handle, &info, NULL) == DS_ACCEL_OK, "info");
    CHECK(info.block_bytes == KIB << 10 && info.queue_depth == 128 && info.parallelism == 1 &&
              info.single_submit == 0 && info.overlap_events == 0 && info.pending == 0,
          "the defaults of DeepSpeed");
    CHECK(info.reason[0] != 0 && info.threads > 0, "reason \"%s\"", info.reason);
    REFUSED(io->info(handle, NULL, failed), DS_ACCEL_ERR_INVALID, "info_out is NULL");
    info.struct_size = 8;
    REFUSED(io->info(handle, &info, failed), DS_ACCEL_ERR_INVALID, "struct_size of info_out is 8");
    REFUSED(io->info(NULL, &info, failed), DS_ACCEL_ERR_INVALID, "handle is NULL");
    io->destroy(handle);
    io->destroy(NULL);
}

static void check_transfers(void)
{
    ds_accel_async_io_handle_t *handle = make(OPTION(0));
    ds_accel_async_io_handle_t *reader =
        make(OPTION(.from_host = (ds_accel_async_io_copy_fn)(void (*)(void))abort));
    char buffer[512] = {0};
    struct ds_accel_async_io_result result = {.struct_size = 100};
    struct ds_accel_async_io_transfer good = part(path, 0, buffer, 10);
    struct ds_accel_async_io_transfer bad = good;
    uint64_t number = 77;

    bad.flags = 16;
    REFUSED(io->read(handle, &bad, NULL, failed), DS_ACCEL_ERR_INVALID,
            "async_io: read: flags is 0x10");
    bad.flags = DS_ACCEL_ASYNC_IO_TRUNCATE;
    REFUSED(io->read(handle, &bad, NULL, failed), DS_ACCEL_ERR_INVALID, "are for writing");
    bad.flags = DS_ACCEL_ASYNC_IO_DEVICE;
    REFUSED(io->write(handle, &bad, NULL, failed), DS_ACCEL_ERR_INVALID, "no function to_host");
    bad.flags |= DS_ACCEL_ASYNC_IO_CHECKSUM;
    REFUSED(io->read(reader, &bad, NULL, failed), DS_ACCEL_ERR_INVALID,
            "no function to_host for the CHECKSUM of DEVICE memory");
    io->destroy(reader);
    bad = good;
    bad.buffer = NULL;
    REFUSED(io->submit_write(handle, &bad, &number, failed), DS_ACCEL_ERR_INVALID,
            "async_io: submit_write: buffer is NULL, bytes is 10");
    bad = good;
    bad.offset = INT64_MAX - 5;
    REFUSED(io->submit_read(handle, &bad, &number, failed), DS_ACCEL_ERR_INVALID,
            "beyond the largest file");
    bad.struct_size = 8;
    REFUSED(io->submit_read(handle, &bad, &number, failed), DS_ACCEL_ERR_INVALID,
            "struct_size of transfer is 8");
    REFUSED(io->submit_read(handle, NULL, &number, failed), DS_ACCEL_ERR_INVALID, "is NULL");
    REFUSED(io->read(handle, &good, &result, failed), DS_ACCEL_ERR_INVALID,
            "struct_size of result_out is 100");
    REFUSED(io->wait(handle, &result, 1, 100, NULL, failed), DS_ACCEL_ERR_INVALID,
            "result_bytes is 100");
    REFUSED(io->register_buffer(handle, buffer, 0, failed), DS_ACCEL_ERR_INVALID, "bytes is 0");
    CHECK(number == 77, "an output was written");
    CHECK(access(path, F_OK) != 0, "a refused call created the file");
    io->destroy(handle);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void refuse_file(ds_accel_async_io_handle_t *handle, const char *file, int fd, bool write,
                        int32_t status, const char *text)
{
    char buffer[512] = {0};
    struct ds_accel_async_io_transfer transfer = part(file, 0, buffer, sizeof(buffer));

    transfer.fd = fd;
    REFUSED((write ? io->write : io->read)(handle, &transfer, NULL, failed), status, text);
}

static void check_files(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 4096, 8, 2);
    unsigned before;
    char other[200];
    int ends[2];
    int fd;

    if (!handle)
        return;
    before = descriptors();
    refuse_file(handle, path, 0, false, DS_ACCEL_ERR_NOT_FOUND,
                "async_io: read: cannot open: No such file or directory: ");
    snprintf(other, sizeof(other), "%s/missing/file", directory);
    refuse_file(handle, other, 0, true, DS_ACCEL_ERR_NOT_FOUND, "No such file");
    refuse_file(handle, directory, 0, false, DS_ACCEL_ERR_INVALID, "Is a directory: ");
    refuse_file(handle, directory, 0, true, DS_ACCEL_ERR_INVALID, "Is a directory: ");
    snprintf(other, sizeof(other), "%s/fifo", directory);
    CHECK(mkfifo(other, 0600) == 0, "%s", strerror(errno));
    refuse_file(handle, other, 0, false, DS_ACCEL_ERR_INVALID, "Illegal seek");
    unlink(other);
    refuse_file(handle, NULL, 199, false, DS_ACCEL_ERR_INVALID, "fd is 199: Bad file descriptor");
    CHECK(pipe(ends) == 0, "pipe");
    refuse_file(handle, NULL, ends[0], false, DS_ACCEL_ERR_INVALID, "Illegal seek: file desc");
    close(ends[0]);
    close(ends[1]);
    fd = open("/dev/null", O_RDONLY);
    refuse_file(handle, NULL, fd, true, DS_ACCEL_ERR_INVALID, "is not open for writing");
    close(fd);
    fd = open("/dev/null", O_WRONLY | O_APPEND);
    refuse_file(handle, NULL, fd, true, DS_ACCEL_ERR_INVALID, "has O_APPEND");
    close(fd);
    CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
    io->destroy(handle);
}

/* Read more than a file has: the bytes that it has arrive, and the result is exact. */
static void check_short_files(uint32_t engine)
{
    const uint64_t sizes[] = {0, 1, 4095, 4096, 4097, 20000, 65536};
    ds_accel_async_io_handle_t *handle = make_simple(engine, 4096, 8, 3);
    const uint64_t bytes = 70000;
    char *wanted = make_buffer(bytes, 0);

    fill(wanted, bytes, 1);
    for (size_t i = 0; handle && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t offset = 0; offset <= 4100; offset += 4100) {
            struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
            uint64_t there = sizes[i] > offset ? sizes[i] - offset : 0;
            char *buffer = make_buffer(bytes, 0);
            struct ds_accel_async_io_transfer transfer = part(path, offset, buffer, bytes);
            char text[80];

            write_file(path, wanted, sizes[i]);
            snprintf(text, sizeof(text),
                     "async_io: read: the file ends at offset %llu; %llu of 70000 bytes",
                     (unsigned long long)(offset + there), (unsigned long long)there);
            REFUSED(io->read(handle, &transfer, &result, failed), DS_ACCEL_ERR_IO, text);
            CHECK(result.system_error == 0 && result.bytes_done == there &&
                      result.failed_offset == offset + there && result.bytes == bytes,
                  "%d, %llu bytes, failed at %llu", result.system_error,
                  (unsigned long long)result.bytes_done, (unsigned long long)result.failed_offset);
            CHECK(memcmp(buffer, wanted + offset, there) == 0, "the bytes that arrived");
            free_buffer(buffer, bytes, 0);
        }
    }
    io->destroy(handle);
    unlink(path);
    free_buffer(wanted, bytes, 0);
}

/* A full device, and a limit for the size of files, whose signal must not end the process. */
static void check_full(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 4096, 8, 2);
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    char *buffer = make_buffer(100000, 0);
    struct ds_accel_async_io_transfer transfer = part("/dev/full", 0, buffer, 100000);
    struct rlimit limit = {.rlim_cur = 50001, .rlim_max = 50001};

    if (!handle)
        goto out;
    REFUSED(io->write(handle, &transfer, &result, failed), DS_ACCEL_ERR_LIMIT,
            "async_io: write: No space left on device at offset 0; 0 of 100000 bytes transferred: "
            "/dev/full");
    CHECK(result.system_error == ENOSPC && result.bytes_done == 0, "%d", result.system_error);
    fill(buffer, 100000, 5);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    transfer.path = path;
    REFUSED(io->write(handle, &transfer, &result, failed), DS_ACCEL_ERR_LIMIT,
            "File too large at offset 50001; 50001 of 100000 bytes transferred");
    CHECK(result.system_error == EFBIG && result.bytes_done == 50001 &&
              result.failed_offset == 50001,
          "%d, %llu bytes", result.system_error, (unsigned long long)result.bytes_done);
    check_file(path, buffer, 50001, "up to the limit");
    unlink(path);
out:
    io->destroy(handle);
    free_buffer(buffer, 100000, 0);
}

static void check_full_files(void)
{
    for (size_t engine = 0; engine < ENGINES; engine++)
        check_full(engines[engine]);
}

/* A failed request among others: wait() reports it, and the results say which. */
static void check_mixed(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 4096, 8, 2);
    struct ds_accel_async_io_result results[4];
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char *buffer = make_buffer(4 * 10000, 0);
    uint64_t completed = 0;

    write_file(path, buffer, 10000);
    for (unsigned i = 0; handle && i < 4; i++) {
        struct ds_accel_async_io_transfer transfer =
            part(path, i == 2 ? 5000 : 0, buffer + i * 10000, 10000);

        CHECK(io->submit_read(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "submit");
    }
    if (handle) {
        CHECK(io->wait(handle, results, 4, sizeof(results[0]), &completed, &error) ==
                      DS_ACCEL_ERR_IO &&
                  completed == 4 && error.code == DS_ACCEL_ERR_IO &&
                  strstr(error.message, "the file ends at offset 10000; 5000 of 10000 bytes"),
              "%llu completed: %s", (unsigned long long)completed, error.message);
        for (unsigned i = 0; i < 4; i++)
            CHECK((results[i].status == DS_ACCEL_OK) == (i != 2), "request %u: %d", i,
                  results[i].status);
    }
    io->destroy(handle);
    unlink(path);
    free_buffer(buffer, 4 * 10000, 0);
}

/* ---- what the system refuses ----------------------------------------------------------------- */

static void check_resources(void)
{
    ds_accel_async_io_handle_t *handle = NULL;
    struct ds_accel_async_io_options options =
        OPTION(.struct_size = sizeof(options), .engine = DS_ACCEL_ASYNC_IO_ENGINE_THREADS,
               .parallelism = 2, .to_host = (ds_accel_async_io_copy_fn)(void (*)(void))abort);
    struct ds_accel_async_io_transfer transfer = part(path, 0, &options, 10);
    unsigned before = descriptors();

    for (int threads = 0; threads < 16; threads++) {
        thread_failure = threads;
        CHECK(io->create(&options, &handle, NULL) == DS_ACCEL_ERR_LIMIT && !handle, "%d threads",
              threads);
    }
    thread_failure = 0;
    REFUSED(io->create(&options, &handle, failed), DS_ACCEL_ERR_LIMIT,
            "cannot start thread 1 of 16: Resource temporarily unavailable");
    thread_failure = -1;
    handle = make(options);
    transfer.flags = DS_ACCEL_ASYNC_IO_DEVICE;
    map_failure = true;
    REFUSED(io->submit_write(handle, &transfer, NULL, failed), DS_ACCEL_ERR_NO_MEMORY,
            "cannot map 8 blocks of 1048576 bytes to copy device memory");
    map_failure = false;
    io->destroy(handle);
    unlink(path);
    CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
}

/* Each allocation of a handle and of a request fails in turn. */
static void check_allocations(void)
{
    unsigned before = descriptors();
    int32_t status = DS_ACCEL_ERR_NO_MEMORY;
    char buffer[16] = {0};
    struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, sizeof(buffer));

    for (size_t engine = 0; FAILS_CALLOC && engine < ENGINES; engine++) {
        struct ds_accel_async_io_options options =
            OPTION(.struct_size = sizeof(options), .engine = engines[engine], .parallelism = 2);
        ds_accel_async_io_handle_t *handle = NULL;
        int allowed = 0;

        if (!(handle = make(options)))
            continue;
        allocation_failure = 0;
        status = io->write(handle, &transfer, NULL, NULL);
        allocation_failure = -1;
        CHECK(status == DS_ACCEL_ERR_NO_MEMORY, "status %d", status);
        io->destroy(handle);
        for (handle = NULL; !handle && allowed < 100; allowed++) {
            allocation_failure = allowed;
            status = io->create(&options, &handle, NULL);
            allocation_failure = -1;
            CHECK(status == DS_ACCEL_OK || status == DS_ACCEL_ERR_NO_MEMORY ||
                      status == DS_ACCEL_ERR_UNSUPPORTED || status == DS_ACCEL_ERR_LIMIT,
                  "status %d", status);
        }
        CHECK(handle && allowed > 1, "%d allocations", allowed);
        io->destroy(handle);
    }
    CHECK(descriptors() == before, "%u descriptors, %u before", descriptors(), before);
    CHECK(access(path, F_OK) != 0, "a refused call created the file");
}

static bool forbid(unsigned number, unsigned failure)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | failure),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* Write and read a file with this handle. */
static void check_file_works(ds_accel_async_io_handle_t *handle, uint64_t bytes, uint64_t shift)
{
    char *buffer = make_buffer(bytes, shift);
    char *wanted = malloc(bytes);
    struct ds_accel_async_io_transfer transfer = part(path, 5, buffer, bytes);
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    fill(buffer, bytes, bytes);
    memcpy(wanted, buffer, bytes);
    CHECK(io->write(handle, &transfer, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
    memset(buffer, 0, bytes);
    CHECK(io->read(handle, &transfer, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
    CHECK(memcmp(buffer, wanted, bytes) == 0, "read wrongly");
    unlink(path);
    free(wanted);
    free_buffer(buffer, bytes, shift);
}

static void use_without_ring(unsigned failure, const char *text)
{
    struct ds_accel_async_io_options options =
        OPTION(.struct_size = sizeof(options), .engine = DS_ACCEL_ASYNC_IO_ENGINE_IO_URING);
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};
    ds_accel_async_io_handle_t *handle = NULL;

    if (!forbid(SYS_io_uring_setup, failure)) {
        printf("async_io: a seccomp filter is not checked: %s\n", strerror(errno));
        return;
    }
    REFUSED(io->create(&options, &handle, failed), DS_ACCEL_ERR_UNSUPPORTED, text);
    for (unsigned turn = 0; turn < 8; turn++) {
        handle = make(OPTION(.block_bytes = turn % 2 ? 4096 : 512, .queue_depth = 1 + turn * 3,
                             .parallelism = 1 + turn % 4, .single_submit = turn % 2));
        CHECK(io->info(handle, &info, NULL) == DS_ACCEL_OK &&
                  info.engine == DS_ACCEL_ASYNC_IO_ENGINE_THREADS && strstr(info.reason, text),
              "engine %u: %s", info.engine, info.reason);
        check_file_works(handle, 300 * KIB + turn, turn * 100);
        check_file_works(handle, 1 + turn, 0);
        io->destroy(handle);
    }
}

static void use_forbidden(void)
{
    use_without_ring(EPERM, "io_uring cannot be used: io_uring_setup: Operation not permitted "
                            "(forbidden by a seccomp filter or by kernel.io_uring_disabled)");
}

static void use_missing(void)
{
    use_without_ring(ENOSYS, "io_uring_setup: Function not implemented");
}

static void use_few_descriptors(void)
{
    int lowest = dup(0);
    struct rlimit limit = {.rlim_cur = (rlim_t)lowest, .rlim_max = (rlim_t)lowest};
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};
    ds_accel_async_io_handle_t *handle;

    close(lowest);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    handle = make(OPTION(0));
    CHECK(io->info(handle, &info, NULL) == DS_ACCEL_OK &&
              info.engine == DS_ACCEL_ASYNC_IO_ENGINE_THREADS &&
              (strstr(info.reason, "Too many open files") || strstr(info.reason, "forbidden") ||
               strstr(info.reason, "not implemented")),
          "%s", info.reason);
    refuse_file(handle, "/dev/null", 0, false, DS_ACCEL_ERR_LIMIT, "Too many open files");
    io->destroy(handle);
}

/* A filter forbids the use of a ring that exists: what is in flight ends, and files still work. */
static void lose_ring(void)
{
    ds_accel_async_io_handle_t *handle =
        make(OPTION(.engine = DS_ACCEL_ASYNC_IO_ENGINE_IO_URING, .block_bytes = 4096,
                    .queue_depth = 16, .parallelism = 2, .overlap_events = 1));
    const uint64_t bytes = 8 << 20;
    char *buffer = make_buffer(bytes, 0);
    char *wanted;
    struct ds_accel_async_io_transfer transfer = part(path, 100, buffer, bytes);
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (handle) {
        fill(buffer, bytes, 8);
        CHECK(io->submit_write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "submit");
        if (!forbid(SYS_io_uring_enter, EPERM))
            printf("async_io: a seccomp filter is not checked: %s\n", strerror(errno));
        CHECK(io->wait(handle, NULL, 0, 0, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
        memset(buffer, 0, bytes);
        CHECK(io->read(handle, &transfer, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
        wanted = malloc(bytes);
        fill(wanted, bytes, 8);
        CHECK(memcmp(buffer, wanted, bytes) == 0, "read wrongly");
        free(wanted);
        check_file_works(handle, 100000, 7);
    }
    io->destroy(handle);
    unlink(path);
    free_buffer(buffer, bytes, 0);
}

/* Without /proc, a descriptor with O_DIRECT cannot be opened again without it: what the kernel does
 * not accept fails. */
static void use_without_proc(void)
{
    const uint64_t bytes = 65536;
    char *buffer = make_buffer(bytes, 0);
    int fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);

    fill(buffer, bytes, 2);
    if (fd < 0 || chroot(directory) != 0) {
        printf("async_io: a machine without /proc is not checked: %s\n", strerror(errno));
        unlink(path);
        return;
    }
    for (size_t engine = 0; engine < ENGINES; engine++) {
        ds_accel_async_io_handle_t *handle = make_simple(engines[engine], 4096, 8, 2);
        struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_async_io_transfer transfer = part(NULL, 0, buffer, bytes);

        transfer.fd = fd;
        if (handle) {
            CHECK(io->write(handle, &transfer, &result, &error) == DS_ACCEL_OK &&
                      result.direct_bytes == bytes,
                  "%s", error.message);
            transfer.bytes = 5000;
            CHECK(io->write(handle, &transfer, &result, &error) == DS_ACCEL_OK ||
                      (result.system_error == EINVAL && result.bytes_done == 4096),
                  "%s", error.message);
        }
        io->destroy(handle);
    }
    check_file("/file", buffer, bytes, "by O_DIRECT only");
    unlink("/file");
    close(fd);
    free_buffer(buffer, bytes, 0);
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static ds_accel_async_io_handle_t *inherited;

static void use_inherited(void)
{
    char buffer[16];
    struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, sizeof(buffer));
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};
    char text[80];

    snprintf(text, sizeof(text), "the handle belongs to process %d", (int)getppid());
    REFUSED(io->read(inherited, &transfer, NULL, failed), DS_ACCEL_ERR_STATE, text);
    REFUSED(io->wait(inherited, NULL, 0, 0, NULL, failed), DS_ACCEL_ERR_STATE, text);
    REFUSED(io->info(inherited, &info, failed), DS_ACCEL_ERR_STATE, text);
    io->destroy(inherited);
    for (size_t engine = 0; engine < ENGINES; engine++) {
        ds_accel_async_io_handle_t *own = make_simple(engines[engine], 4096, 8, 2);

        if (own)
            check_file_works(own, 50000, 0);
        io->destroy(own);
    }
}

static void check_fork(void)
{
    for (size_t engine = 0; engine < ENGINES; engine++) {
        inherited = make_simple(engines[engine], 4096, 8, 2);
        if (!inherited)
            continue;
        in_child(use_inherited);
        check_file_works(inherited, 50000, 0);
        io->destroy(inherited);
    }
}

int main(int argc, char **argv)
{
    const char *temporary = getenv("TMPDIR");

    (void)argc;
    thread_failure = allocation_failure = -1;
    io = (const struct ds_accel_async_io *)open_op(argv[1], "async_io");
    snprintf(directory, sizeof(directory), "%s/ds-accel-async-io-XXXXXX",
             temporary ? temporary : "/tmp");
    if (!mkdtemp(directory)) {
        perror("async_io_errors: mkdtemp");
        return 1;
    }
    snprintf(path, sizeof(path), "%s/file", directory);
    check_options();
    check_transfers();
    for (size_t engine = 0; engine < ENGINES; engine++) {
        check_files(engines[engine]);
        check_short_files(engines[engine]);
        check_mixed(engines[engine]);
    }
    in_child(check_full_files);
    check_resources();
    check_allocations();
    in_child(use_forbidden);
    in_child(use_missing);
    in_child(use_few_descriptors);
    in_child(lose_ring);
    in_child(use_without_proc);
    check_fork();
    CHECK(rmdir(directory) == 0, "%s: %s", directory, strerror(errno));
    return finish("async_io_errors");
}
