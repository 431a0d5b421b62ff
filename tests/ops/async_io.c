/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op async_io: async_io FILE.so
 *
 * Files on a disk and in memory are written and read with many settings, sizes, offsets and
 * alignments, and every byte is compared. Failures are checked by async_io_errors.c and
 * async_io_faults.c.
 */
#include "ops/async_io.h"

#include <pthread.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MIB ((uint64_t)1 << 20)

static char disk[128];
static char memory[] = "/dev/shm/ds-accel-async-io-XXXXXX";
static uint64_t direct_bytes; /* transferred with O_DIRECT so far */

/* ---- round trips ----------------------------------------------------------------------------- */

struct round {
    uint64_t bytes;
    uint64_t offset;
    uint64_t shift; /* of the buffer from a page */
    bool existing;  /* the file is there and longer */
};

/* Write a range of a file and read it back, with all bytes of the file and of memory compared. */
static void check_round(ds_accel_async_io_handle_t *handle, const char *directory,
                        struct round round)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    uint64_t end = round.offset + round.bytes;
    uint64_t size = round.existing ? end + 5000 : (round.bytes > 0 ? end : 0);
    char *buffer = make_buffer(round.bytes, round.shift);
    char *whole = calloc(1, size + 1);
    struct ds_accel_async_io_transfer transfer;
    char path[160];

    snprintf(path, sizeof(path), "%s/round", directory);
    unlink(path);
    if (round.existing) {
        memset(whole, 0xEE, size);
        write_file(path, whole, size);
    }
    fill(buffer, round.bytes, round.bytes + round.offset);
    memcpy(whole + round.offset, buffer, round.existing || round.bytes ? round.bytes : 0);
    transfer = part(path, round.offset, buffer, round.bytes);
    CHECK(io->write(handle, &transfer, &result, &error) == DS_ACCEL_OK, "%s", error.message);
    CHECK(result.status == DS_ACCEL_OK && result.bytes_done == round.bytes &&
              result.failed_offset == UINT64_MAX && result.message[0] == 0,
          "result %d, %llu bytes", result.status, (unsigned long long)result.bytes_done);
    direct_bytes += result.direct_bytes;
    CHECK(memcmp(buffer, whole + round.offset, round.bytes) == 0, "a write changed its buffer");
    check_file(path, whole, size, "written");
    memset(buffer, 0, round.bytes);
    transfer.flags = DS_ACCEL_ASYNC_IO_CHECKSUM;
    CHECK(io->read(handle, &transfer, &result, &error) == DS_ACCEL_OK, "%s", error.message);
    CHECK(memcmp(buffer, whole + round.offset, round.bytes) == 0,
          "%llu bytes at %llu, shift %llu: read wrongly", (unsigned long long)round.bytes,
          (unsigned long long)round.offset, (unsigned long long)round.shift);
    CHECK(result.checksum == XXH3_64bits(whole + round.offset, round.bytes), "the checksum");
    direct_bytes += result.direct_bytes;
    free(whole);
    free_buffer(buffer, round.bytes, round.shift);
}

/* Check the sizes around the borders of blocks and pages. Each combination with offset and shift
 * comes up with some of the settings. */
static void check_sizes(ds_accel_async_io_handle_t *handle, const char *directory, uint64_t block,
                        unsigned turn)
{
    const uint64_t sizes[] = {0,         1,         511,           512,       4095,
                              4096,      4097,      block - 1,     block,     block + 1,
                              8192 + 17, 2 * block, 3 * block + 5, 200 << 10, MIB + 5};
    const uint64_t offsets[] = {0, 1, 512, 4095, 4096, 12288 + 100, MIB};
    const uint64_t shifts[] = {0, 0, 512, 1, 64, 8};

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, turn++) {
        struct round round = {sizes[i], offsets[turn % 7], shifts[turn % 6], turn % 2};

        if (sizes[i] > 4096 * block) /* many tiny blocks take long */
            round.bytes = 4096 * block;
        check_round(handle, directory, round);
    }
}

static void check_settings(const char *directory)
{
    const uint64_t blocks[] = {512, 4096, 65536, MIB, 12288};
    const uint32_t depths[] = {1, 2, 7, 128};
    unsigned turn = 0;

    for (size_t engine = 0; engine < ENGINES; engine++) {
        for (size_t block = 0; block < sizeof(blocks) / sizeof(blocks[0]); block++) {
            for (unsigned depth = 0; depth < 4; depth++, turn++) {
                ds_accel_async_io_handle_t *handle =
                    make((struct ds_accel_async_io_options){.engine = engines[engine],
                                                            .block_bytes = blocks[block],
                                                            .queue_depth = depths[depth],
                                                            .parallelism = 1 + turn % 4,
                                                            .single_submit = turn / 2 % 2,
                                                            .overlap_events = turn / 3 % 2,
                                                            .flags = turn % 5 == 4});

                if (handle)
                    check_sizes(handle, directory, blocks[block], turn);
                io->destroy(handle);
            }
        }
    }
}

static void check_large(const char *directory, uint64_t block)
{
    for (size_t engine = 0; engine < ENGINES; engine++) {
        ds_accel_async_io_handle_t *handle = make_simple(engines[engine], block, 16, 2);

        if (!handle)
            continue;
        check_round(handle, directory, (struct round){16 * MIB, 0, 0, false});
        check_round(handle, directory, (struct round){16 * MIB + 123, 777, 33, true});
        io->destroy(handle);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

#define REQUESTS 24u

/* Many requests at once, waited for in several ways. */
static void check_requests(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 8192, 4, 3);
    struct ds_accel_async_io_result results[REQUESTS];
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};
    const uint64_t bytes = 100000;
    char *buffers[REQUESTS];
    char path[160];
    uint64_t numbers[REQUESTS];
    uint64_t completed = 77;

    if (!handle)
        return;
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct ds_accel_async_io_transfer transfer;

        snprintf(path, sizeof(path), "%s/request-%u", disk, i);
        buffers[i] = make_buffer(bytes, i % 3 * 512);
        fill(buffers[i], bytes, i);
        transfer = part(path, 0, buffers[i], bytes);
        CHECK(io->submit_write(handle, &transfer, &numbers[i], NULL) == DS_ACCEL_OK, "submit");
        CHECK(numbers[i] == i + 1, "number %llu", (unsigned long long)numbers[i]);
    }
    CHECK(io->info(handle, &info, NULL) == DS_ACCEL_OK && info.pending == REQUESTS, "%u pending",
          info.pending);
    CHECK(io->wait_one(handle, numbers[5], &(struct ds_accel_async_io_result){.struct_size = 400},
                       NULL) == DS_ACCEL_OK,
          "wait for one");
    REFUSED(io->wait_one(handle, numbers[5], NULL, failed), DS_ACCEL_ERR_NOT_FOUND,
            "no request 6 is pending");
    CHECK(io->wait(handle, results, 3, sizeof(results[0]), &completed, NULL) == DS_ACCEL_OK &&
              completed == 3,
          "%llu completed", (unsigned long long)completed);
    for (unsigned i = 0; i < 3; i++)
        CHECK(results[i].request == i + 1 && results[i].bytes_done == bytes &&
                  results[i].struct_size == sizeof(results[0]),
              "request %llu", (unsigned long long)results[i].request);
    CHECK(io->wait(handle, NULL, 0, 0, &completed, NULL) == DS_ACCEL_OK &&
              completed == REQUESTS - 4,
          "%llu completed", (unsigned long long)completed);
    CHECK(io->wait(handle, NULL, 0, 0, &completed, NULL) == DS_ACCEL_OK && completed == 0,
          "nothing is pending");
    for (unsigned i = 0; i < REQUESTS; i++) {
        snprintf(path, sizeof(path), "%s/request-%u", disk, i);
        check_file(path, buffers[i], bytes, "request");
        unlink(path);
        free_buffer(buffers[i], bytes, i % 3 * 512);
    }
    io->destroy(handle);
}

/* Parts of one file in any order, by descriptor, and destroy() as the only wait. */
static void check_descriptors(uint32_t engine, int flags)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 4096, 8, 2);
    const uint64_t bytes = 64 << 10;
    char *buffer = make_buffer(8 * bytes, 0);
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "%s/descriptor", disk);
    unlink(path);
    fd = open(path, O_RDWR | O_CREAT | flags, 0600);
    CHECK(fd >= 0, "%s: %s", path, strerror(errno));
    fill(buffer, 8 * bytes, 3);
    for (unsigned i = 0; handle && i < 8; i++) {
        unsigned piece = i * 5 % 8;
        struct ds_accel_async_io_transfer transfer =
            part(NULL, piece * bytes, buffer + piece * bytes, bytes);

        transfer.fd = fd;
        CHECK(io->submit_write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "submit");
    }
    io->destroy(handle);
    CHECK(fcntl(fd, F_GETFD) >= 0, "the caller's descriptor was closed");
    if (handle)
        check_file(path, buffer, 8 * bytes, "by descriptor");
    close(fd);
    unlink(path);
    free_buffer(buffer, 8 * bytes, 0);
}

static void check_truncate_and_sync(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 4096, 8, 2);
    char *old = make_buffer(50000, 0);
    char *buffer = make_buffer(20000, 0);
    char path[160];
    struct ds_accel_async_io_transfer transfer;
    struct stat now;

    if (!handle)
        goto out;
    snprintf(path, sizeof(path), "%s/truncated", disk);
    fill(old, 50000, 1);
    fill(buffer, 20000, 2);
    write_file(path, old, 50000);
    transfer = part(path, 10000, buffer, 20000);
    transfer.flags = DS_ACCEL_ASYNC_IO_TRUNCATE | DS_ACCEL_ASYNC_IO_SYNC;
    CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "write");
    memcpy(old + 10000, buffer, 20000);
    check_file(path, old, 30000, "truncated");
    transfer.bytes = 0;
    CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "no bytes");
    check_file(path, old, 10000, "truncated by no bytes");
    unlink(path);
    transfer.mode = 0640;
    umask(0);
    CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "a new file");
    CHECK(stat(path, &now) == 0 && (now.st_mode & 07777) == 0640, "mode %o", now.st_mode);
    unlink(path);
    transfer.mode = 0;
    CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "a new file");
    CHECK(stat(path, &now) == 0 && (now.st_mode & 07777) == 0600, "mode %o", now.st_mode);
    unlink(path);
out:
    io->destroy(handle);
    free_buffer(old, 50000, 0);
    free_buffer(buffer, 20000, 0);
}

/* A sparse file, and one that grows between requests. */
static void check_sparse(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 65536, 8, 2);
    const uint64_t bytes = 3 * MIB;
    char *buffer = make_buffer(bytes, 0);
    char *wanted = calloc(1, bytes);
    char path[160];
    struct ds_accel_async_io_transfer transfer;

    snprintf(path, sizeof(path), "%s/sparse", disk);
    unlink(path);
    if (handle) {
        fill(wanted + 2 * MIB, 1000, 4);
        transfer = part(path, 2 * MIB, wanted + 2 * MIB, 1000);
        CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "behind a hole");
        check_file(path, wanted, 2 * MIB + 1000, "sparse");
        CHECK(truncate(path, (off_t)bytes) == 0, "truncate");
        transfer = part(path, 0, buffer, bytes);
        CHECK(io->read(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "read holes");
        CHECK(memcmp(buffer, wanted, bytes) == 0, "holes");
    }
    unlink(path);
    io->destroy(handle);
    free(wanted);
    free_buffer(buffer, bytes, 0);
}

/* ---- device memory and registered buffers ---------------------------------------------------- */

static char *device; /* an address that only the copy functions use */
static atomic_uint copies;
static unsigned good_copies = 2; /* before copies fail */
static atomic_int copy_failure;  /* 0: they do not */

static int32_t copy_bytes(void *user_data, void *destination, const void *source, uint64_t bytes)
{
    bool to_host = (uintptr_t)source >= (uintptr_t)user_data &&
                   (uintptr_t)source < (uintptr_t)user_data + 64 * MIB;
    char *to = to_host ? destination : device + ((char *)destination - (char *)user_data);
    const char *from = to_host ? device + ((const char *)source - (char *)user_data) : source;

    if (copies++ >= good_copies && copy_failure)
        return copy_failure;
    memcpy(to, from, bytes);
    return DS_ACCEL_OK;
}

/* All bytes are transferred, and then the first or the last copy for the checksum fails. */
static void check_failed_checksum(ds_accel_async_io_handle_t *handle,
                                  const struct ds_accel_async_io_transfer *transfer)
{
    const unsigned of_checksum = (unsigned)((transfer->bytes + 65535) / 65536);
    unsigned all;

    copies = 0;
    CHECK(io->write(handle, transfer, NULL, NULL) == DS_ACCEL_OK, "without a failure");
    all = copies;
    for (int last = 0; last < 2; last++) {
        struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};

        copies = 0;
        good_copies = last ? all - 1 : all - of_checksum;
        copy_failure = DS_ACCEL_ERR_DEVICE_LOST;
        CHECK(io->write(handle, transfer, &result, NULL) == DS_ACCEL_ERR_DEVICE_LOST, "%u copies",
              good_copies);
        CHECK(result.bytes_done == transfer->bytes && result.failed_offset == UINT64_MAX &&
                  result.checksum == 0 &&
                  strstr(result.message, "write: checksum: the copy function returned -10; "),
              "%s", result.message);
        copy_failure = 0;
    }
    good_copies = 2;
}

static void check_device(uint32_t engine, bool own_staging)
{
    void *const base = (void *)(uintptr_t)(UINT64_C(1) << 40);
    const uint64_t bytes = 5 * MIB + 77;
    const uint64_t staging_bytes = 16 * 65536;
    char *staging = own_staging ? aligned_alloc(4096, staging_bytes) : NULL;
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    struct ds_accel_async_io_transfer transfer;
    ds_accel_async_io_handle_t *handle =
        make((struct ds_accel_async_io_options){.engine = engine,
                                                .block_bytes = 65536,
                                                .queue_depth = 16,
                                                .parallelism = 2,
                                                .overlap_events = 1,
                                                .to_host = copy_bytes,
                                                .from_host = copy_bytes,
                                                .user_data = base,
                                                .staging = staging,
                                                .staging_bytes = own_staging ? staging_bytes : 0});
    char *wanted = malloc(bytes);
    uint64_t checksum;
    char path[160];

    snprintf(path, sizeof(path), "%s/device", disk);
    unlink(path);
    device = malloc(bytes);
    fill(device, bytes, 9);
    memcpy(wanted, device, bytes);
    checksum = XXH3_64bits(wanted, bytes);
    transfer = part(path, 100, base, bytes);
    transfer.flags = DS_ACCEL_ASYNC_IO_DEVICE | DS_ACCEL_ASYNC_IO_CHECKSUM;
    copy_failure = 0;
    if (handle) {
        CHECK(io->write(handle, &transfer, &result, NULL) == DS_ACCEL_OK, "from a device");
        CHECK(result.checksum == checksum, "the checksum of what was written");
        memset(device, 0, bytes);
        CHECK(io->read(handle, &transfer, &result, NULL) == DS_ACCEL_OK, "to a device");
        CHECK(memcmp(device, wanted, bytes) == 0, "the device's bytes");
        CHECK(result.checksum == checksum, "the checksum of what was read");
        check_failed_checksum(handle, &transfer);
        transfer.flags = DS_ACCEL_ASYNC_IO_DEVICE;
        for (int write = 0; write < 2; write++) {
            copies = 0;
            copy_failure = DS_ACCEL_ERR_DEVICE_LOST;
            CHECK((write ? io->write : io->read)(handle, &transfer, &result, NULL) ==
                      DS_ACCEL_ERR_DEVICE_LOST,
                  "a failed copy");
            CHECK(result.bytes_done < bytes && result.system_error == 0 &&
                      result.failed_offset == 100 + result.bytes_done &&
                      strstr(result.message, "the copy function returned -10"),
                  "%s", result.message);
        }
    }
    io->destroy(handle);
    unlink(path);
    free(device);
    free(wanted);
    free(staging);
}

/* Requests of host and device memory at once: more threads than staging blocks, and as many
 * blocks in flight as queue_depth allows. */
static void check_mixed_memory(uint32_t engine)
{
    void *const base = (void *)(uintptr_t)(UINT64_C(1) << 40);
    const uint64_t bytes = 256 << 10;
    ds_accel_async_io_handle_t *handle =
        make((struct ds_accel_async_io_options){.engine = engine,
                                                .block_bytes = 4096,
                                                .queue_depth = 8,
                                                .overlap_events = 1,
                                                .to_host = copy_bytes,
                                                .from_host = copy_bytes,
                                                .user_data = base});
    char *buffer = make_buffer(bytes, 0);
    char path[160];
    char device_path[160];

    snprintf(path, sizeof(path), "%s/host", disk);
    snprintf(device_path, sizeof(device_path), "%s/device", disk);
    device = malloc(bytes);
    fill(buffer, bytes, 1);
    fill(device, bytes, 2);
    copy_failure = 0;
    for (unsigned turn = 0; handle && turn < 40; turn++) {
        struct ds_accel_async_io_transfer host = part(path, 0, buffer, bytes);
        struct ds_accel_async_io_transfer transfer = part(device_path, 0, base, bytes);

        transfer.flags = DS_ACCEL_ASYNC_IO_DEVICE;
        CHECK(io->submit_write(handle, &host, NULL, NULL) == DS_ACCEL_OK, "host");
        CHECK(io->submit_write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "device");
        CHECK(io->wait(handle, NULL, 0, 0, NULL, NULL) == DS_ACCEL_OK, "wait");
    }
    if (handle) {
        check_file(path, buffer, bytes, "host");
        check_file(device_path, device, bytes, "device");
    }
    io->destroy(handle);
    unlink(path);
    unlink(device_path);
    free(device);
    free_buffer(buffer, bytes, 0);
}

static void check_registered(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_simple(engine, 16384, 8, 2);
    const uint64_t bytes = MIB;
    char *buffer = make_buffer(bytes, 0);
    char *wanted = malloc(bytes);
    char path[160];

    snprintf(path, sizeof(path), "%s/registered", disk);
    for (int turn = 0; handle && turn < 3; turn++) {
        struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, bytes);

        CHECK(io->register_buffer(handle, buffer, bytes, NULL) == DS_ACCEL_OK, "register");
        REFUSED(io->register_buffer(handle, buffer + bytes - 1, 10, failed), DS_ACCEL_ERR_INVALID,
                "overlaps registered memory");
        fill(buffer, bytes, (uint64_t)turn);
        memcpy(wanted, buffer, bytes);
        CHECK(io->submit_write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "submit");
        REFUSED(io->unregister_buffer(handle, buffer, failed), DS_ACCEL_ERR_BUSY,
                "1 requests are pending");
        CHECK(io->wait(handle, NULL, 0, 0, NULL, NULL) == DS_ACCEL_OK, "wait");
        check_file(path, wanted, bytes, "registered");
        memset(buffer, 0, bytes);
        transfer = part(path, 4096, buffer + 4096, bytes - 5000);
        CHECK(io->read(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "read");
        CHECK(memcmp(buffer + 4096, wanted + 4096, bytes - 5000) == 0, "read wrongly");
        CHECK(io->unregister_buffer(handle, buffer, NULL) == DS_ACCEL_OK, "unregister");
        REFUSED(io->unregister_buffer(handle, buffer, failed), DS_ACCEL_ERR_INVALID,
                "not the beginning of registered memory");
        REFUSED(io->unregister_buffer(handle, NULL, failed), DS_ACCEL_ERR_INVALID, "(nil)");
    }
    for (unsigned i = 0; handle && i < 64; i++)
        CHECK(io->register_buffer(handle, buffer + i * 4096, 4096, NULL) == DS_ACCEL_OK, "%u", i);
    if (handle)
        REFUSED(io->register_buffer(handle, buffer + 64 * 4096, 4096, failed), DS_ACCEL_ERR_LIMIT,
                "64 buffers are registered");
    io->destroy(handle);
    unlink(path);
    free(wanted);
    free_buffer(buffer, bytes, 0);
}

/* ---- several handles ------------------------------------------------------------------------- */

static void *use_handle(void *number)
{
    uintptr_t own = (uintptr_t)number;
    ds_accel_async_io_handle_t *handle = make_simple(engines[own % ENGINES], 4096, 4, 2);
    char directory[160];

    snprintf(directory, sizeof(directory), "%s/%u", disk, (unsigned)own);
    mkdir(directory, 0700);
    for (unsigned turn = 0; handle && turn < 6; turn++) {
        const uint64_t bytes = 50000 + own * 1000 + turn;
        char *buffer = make_buffer(bytes, 0);
        char *wanted = make_buffer(bytes, 0);
        char path[200];
        struct ds_accel_async_io_transfer transfer = part(path, turn, buffer, bytes);

        snprintf(path, sizeof(path), "%s/file", directory);
        fill(buffer, bytes, own + turn);
        memcpy(wanted, buffer, bytes);
        CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "write");
        memset(buffer, 0, bytes);
        CHECK(io->read(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "read");
        CHECK(memcmp(buffer, wanted, bytes) == 0, "handle %u", (unsigned)own);
        free_buffer(buffer, bytes, 0);
        free_buffer(wanted, bytes, 0);
        unlink(path);
    }
    io->destroy(handle);
    rmdir(directory);
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_handle, (void *)i) == 0, "thread");
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void remove_directory(const char *directory)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/round", directory);
    unlink(path);
    CHECK(rmdir(directory) == 0, "%s: %s", directory, strerror(errno));
}

int main(int argc, char **argv)
{
    const char *temporary = getenv("TMPDIR");

    (void)argc;
    io = (const struct ds_accel_async_io *)open_op(argv[1], "async_io");
    snprintf(disk, sizeof(disk), "%s/ds-accel-async-io-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(disk) || !mkdtemp(memory)) {
        perror("async_io: mkdtemp");
        return 1;
    }
    check_settings(disk);
    printf("async_io: %llu bytes with O_DIRECT in %s\n", (unsigned long long)direct_bytes, disk);
    check_settings(memory);
    check_large(disk, MIB);
    check_large(disk, 8 * MIB);
    check_large(memory, 65536);
    for (size_t engine = 0; engine < ENGINES; engine++) {
        check_requests(engines[engine]);
        check_descriptors(engines[engine], 0);
        check_descriptors(engines[engine], O_DIRECT);
        check_truncate_and_sync(engines[engine]);
        check_sparse(engines[engine]);
        check_device(engines[engine], false);
        check_device(engines[engine], true);
        check_mixed_memory(engines[engine]);
        check_registered(engines[engine]);
    }
    check_threads();
    remove_directory(disk);
    remove_directory(memory);
    return finish("async_io");
}
