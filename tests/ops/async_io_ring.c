/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op async_io: async_io_ring FILE.so
 *
 * io_uring uses registered buffers and files. This program defines the functions of liburing that
 * submit, also for the op, and counts the entries of the queue by kind. The tables of the kernel
 * are read from /proc/self/fdinfo: they have a file only while its request is pending.
 */
#include "ops/async_io.h"

#include <liburing.h>

#define BLOCK 4096u
#define BLOCKS 128u
#define BYTES (BLOCKS * (uint64_t)BLOCK)

static char path[160];
static unsigned places; /* of a file in a ring: one, and one with O_DIRECT where the disk has it */

/* ---- the entries that are submitted ---------------------------------------------------------- */

static struct {
    atomic_uint fixed_buffer; /* READ_FIXED and WRITE_FIXED */
    atomic_uint usual_buffer;
    atomic_uint fixed_file;
    atomic_uint usual_file;
} seen;

static void count_entries(const struct io_uring *ring)
{
    for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++) {
        const struct io_uring_sqe *entry = &ring->sq.sqes[i & *ring->sq.kring_mask];

        if (entry->opcode == IORING_OP_READ_FIXED || entry->opcode == IORING_OP_WRITE_FIXED)
            seen.fixed_buffer++;
        else
            seen.usual_buffer++;
        if (entry->flags & IOSQE_FIXED_FILE)
            seen.fixed_file++;
        else
            seen.usual_file++;
    }
}

static void *liburing(const char *name)
{
    void *function = dlsym(dlopen("liburing.so.2", RTLD_LAZY), name);

    if (!function)
        abort();
    return function;
}

#pragma GCC visibility push(default)

int io_uring_submit(struct io_uring *ring)
{
    int (*real)(struct io_uring *);

    *(void **)&real = liburing("io_uring_submit");
    count_entries(ring);
    return real(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
    int (*real)(struct io_uring *, unsigned);

    *(void **)&real = liburing("io_uring_submit_and_wait");
    count_entries(ring);
    return real(ring, wait);
}

#pragma GCC visibility pop

/* ---- the tables of the kernel ---------------------------------------------------------------- */

struct tables {
    unsigned rings;
    unsigned files;   /* places that have the test's file, in all rings */
    unsigned buffers; /* of BYTES bytes */
    bool unknown;     /* the kernel does not list them */
};

static void read_table(int fd, struct tables *tables)
{
    char name[64];
    char line[256];
    char size[32];
    bool has_tables = false;
    FILE *file;

    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
    snprintf(size, sizeof(size), "/%llu\n", (unsigned long long)BYTES);
    /* A ring whose lock is held is listed without its tables. */
    for (unsigned i = 0; i < 100000 && !has_tables; i++) {
        file = fopen(name, "r");
        while (file && fgets(line, sizeof(line), file)) {
            has_tables = has_tables || strncmp(line, "UserFiles:", 10) == 0;
            tables->files += strstr(line, path) != NULL;
            tables->buffers += strstr(line, size) != NULL;
        }
        if (file)
            fclose(file);
    }
    tables->unknown = tables->unknown || !has_tables;
}

static struct tables read_tables(void)
{
    struct tables tables = {0};

    for (int fd = 0; fd < 64; fd++) {
        char name[64];
        char target[64] = "";

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        if (readlink(name, target, sizeof(target) - 1) < 0 || !strstr(target, "[io_uring]"))
            continue;
        tables.rings++;
        read_table(fd, &tables);
    }
    return tables;
}

static void check_tables(unsigned rings, unsigned files, unsigned buffers, const char *when)
{
    struct tables tables = read_tables();

    CHECK(tables.rings == rings, "%s: %u rings, wanted %u", when, tables.rings, rings);
    if (tables.unknown) {
        printf("async_io_ring: the tables are not checked: fdinfo does not list them\n");
        return;
    }
    CHECK(tables.files == files, "%s: the file is in %u places, wanted %u", when, tables.files,
          files);
    CHECK(tables.buffers == buffers, "%s: %u buffers, wanted %u", when, tables.buffers, buffers);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct usage {
    bool write;
    uint64_t bytes;
    bool fixed_buffer; /* wanted */
    bool fixed_file;
};

/* Transfer the beginning of a buffer, and check how. A short transfer may add entries. */
static void check_request(ds_accel_async_io_handle_t *handle, uint32_t rings, bool registered,
                          char *buffer, struct usage usage)
{
    struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, usage.bytes);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    unsigned blocks = (unsigned)(usage.bytes / BLOCK);
    char *wanted = malloc(usage.bytes);

    seen.fixed_buffer = seen.usual_buffer = seen.fixed_file = seen.usual_file = 0;
    fill(wanted, usage.bytes, 3);
    if (usage.write) {
        unlink(path);
        memcpy(buffer, wanted, usage.bytes);
    }
    CHECK((usage.write ? io->submit_write : io->submit_read)(handle, &transfer, NULL, &error) ==
              DS_ACCEL_OK,
          "%s", error.message);
    check_tables(rings, usage.fixed_file ? places * rings : 0, registered ? rings : 0, "pending");
    CHECK(io->wait(handle, NULL, 0, 0, NULL, &error) == DS_ACCEL_OK, "%s", error.message);
    check_tables(rings, 0, registered ? rings : 0, "waited for");
    CHECK(seen.fixed_buffer + seen.usual_buffer >= blocks, "%u blocks, wanted %u",
          seen.fixed_buffer + seen.usual_buffer, blocks);
    CHECK((usage.fixed_buffer ? seen.usual_buffer : seen.fixed_buffer) == 0,
          "%u blocks of a registered buffer, %u of another one", seen.fixed_buffer,
          seen.usual_buffer);
    CHECK((usage.fixed_file ? seen.usual_file : seen.fixed_file) == 0,
          "%u blocks of a registered file, %u of another one", seen.fixed_file, seen.usual_file);
    CHECK(memcmp(buffer, wanted, usage.bytes) == 0, "the bytes");
    if (usage.write)
        check_file(path, wanted, usage.bytes, "written");
    free(wanted);
}

static void check_usage(uint32_t rings, bool registered)
{
    ds_accel_async_io_handle_t *handle =
        make_simple(DS_ACCEL_ASYNC_IO_ENGINE_IO_URING, BLOCK, 8, rings);
    char *buffer = make_buffer(BYTES, 0);
    char *other = make_buffer(BYTES, 0);

    for (int turn = 0; handle && turn < 2; turn++) {
        if (registered)
            CHECK(io->register_buffer(handle, buffer, BYTES, NULL) == DS_ACCEL_OK, "register");
        check_request(handle, rings, registered, buffer,
                      (struct usage){true, BYTES, registered, true});
        check_request(handle, rings, registered, buffer,
                      (struct usage){false, BYTES, registered, true});
        check_request(handle, rings, registered, other, (struct usage){true, BYTES, false, true});
        check_request(handle, rings, registered, other, (struct usage){false, BYTES, false, true});
        /* Few blocks are not worth the registration of a file. */
        check_request(handle, rings, registered, buffer,
                      (struct usage){true, 2 * BLOCK, registered, false});
        check_request(handle, rings, registered, buffer,
                      (struct usage){false, 2 * BLOCK, registered, false});
        if (registered)
            CHECK(io->unregister_buffer(handle, buffer, NULL) == DS_ACCEL_OK, "unregister");
    }
    io->destroy(handle);
    check_tables(0, 0, 0, "destroyed");
    unlink(path);
    free_buffer(buffer, BYTES, 0);
    free_buffer(other, BYTES, 0);
}

/* More requests than the rings have places for files: the rest are transferred without. */
static void check_many(void)
{
    const unsigned count = 40;
    ds_accel_async_io_handle_t *handle =
        make_simple(DS_ACCEL_ASYNC_IO_ENGINE_IO_URING, BLOCK, 8, 2);
    char *buffer = make_buffer(BYTES, 0);
    char *read_buffer = make_buffer(count * BYTES, 0);
    struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, BYTES);

    fill(buffer, BYTES, 5);
    seen.fixed_file = seen.usual_file = 0;
    if (handle)
        CHECK(io->write(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "write");
    for (unsigned turn = 0; handle && turn < 2; turn++) {
        for (unsigned i = 0; i < count; i++) {
            transfer.buffer = read_buffer + i * BYTES;
            CHECK(io->submit_read(handle, &transfer, NULL, NULL) == DS_ACCEL_OK, "submit %u", i);
        }
        check_tables(2, places * 2 * 32, 0, "many");
        CHECK(io->wait(handle, NULL, 0, 0, NULL, NULL) == DS_ACCEL_OK, "wait");
        check_tables(2, 0, 0, "none");
        for (unsigned i = 0; i < count; i++)
            CHECK(memcmp(read_buffer + i * BYTES, buffer, BYTES) == 0, "request %u", i);
    }
    CHECK(!handle || (seen.fixed_file >= 65 * BLOCKS && seen.usual_file >= 16 * BLOCKS),
          "%u blocks of registered files, %u of others", seen.fixed_file, seen.usual_file);
    io->destroy(handle);
    unlink(path);
    free_buffer(buffer, BYTES, 0);
    free_buffer(read_buffer, count * BYTES, 0);
}

/* Return whether rings can have tables of files here. */
static bool has_tables(void)
{
    struct io_uring ring;
    int failure = -io_uring_queue_init(8, &ring, 0);

    if (failure == 0) {
        failure = -io_uring_register_files_sparse(&ring, 64);
        io_uring_queue_exit(&ring);
    }
    if (failure)
        printf("async_io_ring: registered files are not checked: %s\n", strerror(failure));
    return failure == 0;
}

static unsigned count_places(void)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT, 0600);

    if (fd >= 0)
        close(fd);
    unlink(path);
    return fd >= 0 ? 2 : 1;
}

int main(int argc, char **argv)
{
    const char *temporary = getenv("TMPDIR");

    (void)argc;
    io = (const struct ds_accel_async_io *)open_op(argv[1], "async_io");
    snprintf(path, sizeof(path), "%s/ds-accel-async-io-ring.%ld", temporary ? temporary : "/tmp",
             (long)getpid());
    if (!has_tables())
        return finish("async_io_ring");
    places = count_places();
    for (uint32_t rings = 1; rings <= 3; rings++) {
        check_usage(rings, false);
        check_usage(rings, true);
    }
    check_many();
    return finish("async_io_ring");
}
