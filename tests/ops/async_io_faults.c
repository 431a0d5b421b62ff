/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op async_io: async_io_faults FILE.so
 *
 * A child process serves a file system (FUSE) with one file, whose contents are memory that both
 * processes share. The file system fails, shortens or delays the Nth transfer, for every N of a
 * request. Another child is killed during the Nth call of WRITE or FSYNC, for every N of several
 * requests, before and after the call has its effect; what it had reported as synced must be on the
 * disk, which is what the file contained at the last fsync().
 */
#define FUSE_USE_VERSION 31
#include "ops/async_io.h"

#include <fuse.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <time.h>

#define FILE_MOST (512u << 10)
#define SLOTS 16u

enum fault {
    FAULT_NONE,
    FAULT_ERROR,
    FAULT_SHORT,
    FAULT_DELAY
};

struct shared {
    enum fault fault;
    int failure;           /* errno of FAULT_ERROR */
    unsigned at;           /* the transfer that is disturbed, from 1; 0: none */
    bool asynchronous;     /* the kernel sends transfers with O_DIRECT without waiting */
    bool sync_fails;       /* fsync() fails with EIO */
    unsigned transfers;    /* so far */
    uint64_t fault_offset; /* where the disturbed one begins; UINT64_MAX: there was none */
    uint64_t size;
    char contents[FILE_MOST];
    /* Power cuts. */
    uint64_t disk_size;
    char disk[FILE_MOST];      /* the contents at the last fsync() */
    atomic_uint synced[SLOTS]; /* by the writer that is killed: a slot's last synced version */
    unsigned calls;            /* of WRITE and FSYNC so far */
    atomic_uint hold_at;       /* the call that waits, without a reply; 0: none */
    bool hold_done;            /* it waits after its effect */
    atomic_bool held;
    atomic_bool released;
    /* Since the file system was mounted. The kernel does not wait for the reply of RELEASE, and
     * unmounting may discard it. */
    atomic_uint opened;
    atomic_uint closed;
};

static struct shared *shared;
static char mountpoint[128];
static char path[160];

/* ---- the file system ------------------------------------------------------------------------- */

static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *settings)
{
    (void)settings;
    if (!shared->asynchronous)
        connection->want &= ~FUSE_CAP_ASYNC_DIO;
    return NULL;
}

static int fs_getattr(const char *name, struct stat *now, struct fuse_file_info *file)
{
    (void)file;
    memset(now, 0, sizeof(*now));
    if (strcmp(name, "/") == 0) {
        now->st_mode = S_IFDIR | 0755;
        now->st_nlink = 2;
        return 0;
    }
    if (strcmp(name, "/file") != 0)
        return -ENOENT;
    now->st_mode = S_IFREG | 0600;
    now->st_nlink = 1;
    now->st_size = (off_t)shared->size;
    return 0;
}

/* Every transfer of a process reaches the file system. */
static int fs_open(const char *name, struct fuse_file_info *file)
{
    (void)name;
    file->direct_io = 1;
    shared->opened++;
    return 0;
}

static int fs_release(const char *name, struct fuse_file_info *file)
{
    (void)name;
    (void)file;
    shared->closed++;
    return 0;
}

/* Keep the call of a writer from its reply until the writer was killed. */
static void hold(bool done)
{
    const struct timespec pause = {.tv_nsec = 100000};

    shared->calls += !done;
    if (shared->calls != shared->hold_at || shared->hold_done != done)
        return;
    shared->held = true;
    while (!shared->released)
        nanosleep(&pause, NULL);
}

/* Disturb a transfer if it is its turn. Return the bytes to transfer, or a negative errno. */
static int64_t disturb(size_t bytes, off_t offset)
{
    const struct timespec delay = {.tv_nsec = 20000000};

    if (++shared->transfers != shared->at)
        return (int64_t)bytes;
    shared->fault_offset = (uint64_t)offset;
    if (shared->fault == FAULT_ERROR)
        return -shared->failure;
    if (shared->fault == FAULT_DELAY)
        nanosleep(&delay, NULL);
    return shared->fault == FAULT_SHORT && bytes > 1 ? (int64_t)(bytes / 2 + bytes % 7)
                                                     : (int64_t)bytes;
}

static int fs_read(const char *name, char *buffer, size_t bytes, off_t offset,
                   struct fuse_file_info *file)
{
    int64_t moved;

    (void)name;
    (void)file;
    if ((uint64_t)offset >= shared->size)
        return 0;
    if (bytes > shared->size - (uint64_t)offset)
        bytes = shared->size - (uint64_t)offset;
    moved = disturb(bytes, offset);
    if (moved > 0)
        memcpy(buffer, shared->contents + offset, (size_t)moved);
    return (int)moved;
}

static int fs_write(const char *name, const char *buffer, size_t bytes, off_t offset,
                    struct fuse_file_info *file)
{
    int64_t moved;

    (void)name;
    (void)file;
    if ((uint64_t)offset + bytes > FILE_MOST)
        return -EFBIG;
    moved = disturb(bytes, offset);
    if (moved <= 0)
        return (int)moved;
    hold(false);
    memcpy(shared->contents + offset, buffer, (size_t)moved);
    if (shared->size < (uint64_t)(offset + moved))
        shared->size = (uint64_t)(offset + moved);
    hold(true);
    return (int)moved;
}

static int fs_truncate(const char *name, off_t bytes, struct fuse_file_info *file)
{
    (void)name;
    (void)file;
    shared->size = (uint64_t)bytes;
    return 0;
}

static int fs_fsync(const char *name, int data_only, struct fuse_file_info *file)
{
    (void)name;
    (void)data_only;
    (void)file;
    if (shared->sync_fails)
        return -EIO;
    hold(false);
    memcpy(shared->disk, shared->contents, FILE_MOST);
    shared->disk_size = shared->size;
    hold(true);
    return 0;
}

static const struct fuse_operations operations = {
    .init = fs_init,
    .getattr = fs_getattr,
    .open = fs_open,
    .release = fs_release,
    .read = fs_read,
    .write = fs_write,
    .truncate = fs_truncate,
    .fsync = fs_fsync,
};

/* Serve the file system until it is unmounted. */
static void serve(pid_t parent)
{
    char name[] = "async_io_faults";
    char option[] = "-oattr_timeout=0,entry_timeout=0";
    char *arguments[] = {name, option, NULL};
    struct fuse_args fuse_arguments = FUSE_ARGS_INIT(2, arguments);
    struct fuse *fuse;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    fuse = fuse_new(&fuse_arguments, &operations, sizeof(operations), NULL);
    if (!fuse || fuse_mount(fuse, mountpoint) != 0)
        _exit(2);
    fuse_loop(fuse);
    fuse_destroy(fuse);
    _exit(0);
}

static bool is_mounted(void)
{
    struct stat inside;
    struct stat outside;

    return stat(mountpoint, &inside) == 0 && stat(path, &outside) == 0 &&
           inside.st_dev == outside.st_dev;
}

/* Start the file system's process. Return 0 if none can be mounted here. */
static pid_t start_server(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    pid_t parent = getpid();
    pid_t server;
    int status;

    shared->opened = shared->closed = 0;
    server = fork();
    if (server == 0)
        serve(parent);
    for (unsigned i = 0; server > 0 && i < 12000 && !is_mounted(); i++) {
        if (waitpid(server, &status, WNOHANG) == server)
            return 0;
        nanosleep(&pause, NULL);
    }
    CHECK(server > 0 && is_mounted(), "the file system is not there after 120 s");
    return server;
}

static void stop_server(pid_t server)
{
    int status = -1;

    if (umount2(mountpoint, MNT_DETACH) != 0)
        kill(server, SIGKILL);
    CHECK(waitpid(server, &status, 0) == server && status == 0, "the file system: 0x%x", status);
}

/* ---- faults ---------------------------------------------------------------------------------- */

struct fault_case {
    uint32_t engine;
    bool write;
    enum fault fault;
    int failure;
};

static void set_fault(const struct fault_case *now, unsigned at)
{
    shared->fault = now->fault;
    shared->failure = now->failure;
    shared->at = at;
    shared->transfers = 0;
    shared->fault_offset = UINT64_MAX;
}

/* Check a request whose transfer at fault_offset failed: what is before it was transferred. */
static void check_failed(const struct fault_case *now, uint64_t offset,
                         const struct ds_accel_async_io_result *result,
                         const struct ds_accel_error *error)
{
    char text[160];

    CHECK(result->system_error == now->failure, "errno %d, wanted %d", result->system_error,
          now->failure);
    CHECK(result->failed_offset == shared->fault_offset &&
              result->bytes_done == shared->fault_offset - offset,
          "failed at %llu after %llu bytes; the file system failed at %llu",
          (unsigned long long)result->failed_offset, (unsigned long long)result->bytes_done,
          (unsigned long long)shared->fault_offset);
    snprintf(text, sizeof(text), "async_io: %s: %s at offset %llu; %llu of ",
             now->write ? "write" : "read", strerror(now->failure),
             (unsigned long long)shared->fault_offset, (unsigned long long)result->bytes_done);
    CHECK(strstr(error->message, text) && strcmp(error->message, result->message) == 0,
          "\"%s\", wanted \"%s\"", error->message, text);
}

/* Transfer a range while the Nth transfer is disturbed. Return whether it was reached. */
static bool check_one(ds_accel_async_io_handle_t *handle, const struct fault_case *now, unsigned at,
                      uint64_t offset, uint64_t bytes)
{
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char *buffer = make_buffer(bytes, offset % 4096);
    struct ds_accel_async_io_transfer transfer = part(path, offset, buffer, bytes);
    int32_t status;
    bool failed;

    shared->size = now->write ? 0 : offset + bytes + 100;
    memset(shared->contents, 0, FILE_MOST);
    fill(now->write ? buffer : shared->contents + offset, bytes, at);
    set_fault(now, at);
    status = (now->write ? io->write : io->read)(handle, &transfer, &result, &error);
    failed = now->failure != 0 && shared->fault_offset != UINT64_MAX;
    CHECK(status == result.status && (status == DS_ACCEL_OK) == !failed,
          "transfer %u at %llu: status %d: %s", at, (unsigned long long)shared->fault_offset,
          status, error.message);
    if (failed)
        check_failed(now, offset, &result, &error);
    else
        CHECK(result.bytes_done == bytes, "%llu bytes", (unsigned long long)result.bytes_done);
    CHECK(memcmp(buffer, shared->contents + offset, result.bytes_done) == 0,
          "transfer %u: the %llu bytes that arrived", at, (unsigned long long)result.bytes_done);
    CHECK(!now->write || failed || shared->size == offset + bytes, "the file has %llu bytes",
          (unsigned long long)shared->size);
    free_buffer(buffer, bytes, offset % 4096);
    return shared->fault_offset != UINT64_MAX;
}

static uint32_t flags; /* of all handles */

static ds_accel_async_io_handle_t *make_flagged(uint32_t engine, uint64_t block, uint32_t depth,
                                                uint32_t parallelism)
{
    return make((struct ds_accel_async_io_options){.engine = engine,
                                                   .block_bytes = block,
                                                   .queue_depth = depth,
                                                   .parallelism = parallelism,
                                                   .overlap_events = 1,
                                                   .flags = flags});
}

static void check_case(const struct fault_case *now, uint32_t parallelism, uint64_t offset,
                       uint64_t bytes)
{
    ds_accel_async_io_handle_t *handle = make_flagged(now->engine, 8192, 4, parallelism);
    unsigned at = 1;

    if (!handle)
        return;
    while (at < 100 && check_one(handle, now, at, offset, bytes))
        at++;
    CHECK(at > bytes / 8192 && at < 100, "%u transfers were disturbed", at - 1);
    io->destroy(handle);
}

static void check_faults(void)
{
    const struct {
        enum fault fault;
        int failure;
    } faults[] = {{FAULT_ERROR, EIO},   {FAULT_ERROR, ENOSPC}, {FAULT_ERROR, EDQUOT},
                  {FAULT_ERROR, ENXIO}, {FAULT_SHORT, 0},      {FAULT_DELAY, 0}};

    for (size_t engine = 0; engine < ENGINES; engine++) {
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
            for (int write = 0; write < 2; write++) {
                struct fault_case now = {engines[engine], write, faults[i].fault,
                                         faults[i].failure};

                /* The kernel makes an EIO of a short write for which it does not wait. */
                if (flags && engine == 0 && write && now.fault == FAULT_SHORT)
                    now.failure = EIO;
                check_case(&now, 1, 0, 65536);
                check_case(&now, 3, 1000, 90001); /* with edges */
            }
        }
    }
    shared->at = 0;
}

/* A request is not synced if fsync() fails, whatever was written. */
static void check_failed_sync(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_flagged(engine, 8192, 4, 2);
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    char *buffer = make_buffer(30000, 0);
    struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, 30000);

    shared->sync_fails = true;
    transfer.flags = DS_ACCEL_ASYNC_IO_SYNC;
    if (handle) {
        REFUSED(io->write(handle, &transfer, &result, failed), DS_ACCEL_ERR_IO,
                "async_io: write: fsync: Input/output error; 0 of 30000 bytes transferred");
        CHECK(result.system_error == EIO && result.bytes_done == 0 &&
                  result.failed_offset == UINT64_MAX,
              "%llu bytes", (unsigned long long)result.bytes_done);
    }
    shared->sync_fails = false;
    io->destroy(handle);
    free_buffer(buffer, 30000, 0);
}

/* The file becomes shorter while it is read. */
static void check_shrinking(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_flagged(engine, 4096, 2, 2);
    struct ds_accel_async_io_result result = {.struct_size = sizeof(result)};
    char *buffer = make_buffer(200000, 0);
    struct ds_accel_async_io_transfer transfer = part(path, 0, buffer, 200000);
    const struct fault_case delay = {engine, false, FAULT_DELAY, 0};
    uint64_t number = 0;

    shared->size = 200000;
    fill(shared->contents, 200000, 6);
    set_fault(&delay, 3);
    if (handle) {
        CHECK(io->submit_read(handle, &transfer, &number, NULL) == DS_ACCEL_OK, "submit");
        CHECK(truncate(path, 50000) == 0, "truncate");
        if (io->wait_one(handle, number, &result, NULL) != DS_ACCEL_OK)
            CHECK(result.status == DS_ACCEL_ERR_IO && result.system_error == 0 &&
                      result.bytes_done >= 50000 && result.failed_offset == result.bytes_done &&
                      strstr(result.message, "the file ends at offset "),
                  "%llu bytes: %s", (unsigned long long)result.bytes_done, result.message);
        CHECK(memcmp(buffer, shared->contents, result.bytes_done) == 0, "what arrived");
    }
    io->destroy(handle);
    free_buffer(buffer, 200000, 0);
}

/* ---- the order of writing and fsync() -------------------------------------------------------- */

#define SLOT_BYTES 20480u
#define CALLS 30u /* each is the last one of a writer in turn */

/* Write versions of the slots of the file, and publish each version after it was synced. */
static void write_versions(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_flagged(engine, 4096, 4, 2);
    char *buffers[4];

    for (unsigned i = 0; i < 4; i++)
        buffers[i] = make_buffer(SLOT_BYTES, 0);
    for (uint32_t version = 1;; version++) {
        for (unsigned i = 0; i < 4; i++) {
            struct ds_accel_async_io_transfer transfer =
                part(path, (version + i) % SLOTS * SLOT_BYTES, buffers[i], SLOT_BYTES);

            transfer.flags = DS_ACCEL_ASYNC_IO_SYNC;
            for (unsigned byte = 0; byte < SLOT_BYTES; byte += 4)
                memcpy(buffers[i] + byte, &version, 4);
            if (io->submit_write(handle, &transfer, NULL, NULL) != DS_ACCEL_OK)
                _exit(3);
        }
        for (unsigned i = 0; i < 4; i++) {
            uint64_t done;
            struct ds_accel_async_io_result result;

            if (io->wait(handle, &result, 1, sizeof(result), &done, NULL) != DS_ACCEL_OK)
                _exit(4);
            shared->synced[(version + i) % SLOTS] = version;
        }
    }
}

/* The power fails: all that is left is what the file had at the last fsync(). Return the number of
 * slots with a version that was reported. */
static unsigned check_disk(void)
{
    unsigned reported = 0;

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint32_t wanted = shared->synced[slot];
        uint64_t end = (slot + 1) * (uint64_t)SLOT_BYTES;
        unsigned lost = 0;

        reported += wanted > 0;
        for (uint64_t at = end - SLOT_BYTES; at < end; at += 4) {
            uint32_t version;

            memcpy(&version, shared->disk + at, 4);
            lost += version < wanted;
        }
        CHECK(lost == 0 && (wanted == 0 || shared->disk_size >= end),
              "slot %u: version %u was reported, %u bytes of it are lost, %llu on the disk", slot,
              wanted, 4 * lost, (unsigned long long)shared->disk_size);
    }
    return reported;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 100000};

    nanosleep(&pause, NULL);
}

/* Kill a writer during a call, which has its effect or not. Return the versions reported. */
static unsigned check_killed_writer(uint32_t engine, unsigned call, bool done)
{
    pid_t writer;
    int status = 0;

    memset(shared->contents, 0, FILE_MOST);
    memset(shared->disk, 0, FILE_MOST);
    shared->size = shared->disk_size = 0;
    shared->calls = 0;
    shared->held = shared->released = false;
    shared->hold_done = done;
    for (unsigned slot = 0; slot < SLOTS; slot++)
        shared->synced[slot] = 0;
    shared->hold_at = call;
    writer = fork();
    if (writer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_versions(engine);
    }
    while (writer > 0 && !shared->held && waitpid(writer, &status, WNOHANG) == 0)
        pause_shortly();
    CHECK(shared->held, "call %u was not reached: status 0x%x", call, status);
    CHECK(writer > 0 && kill(writer, SIGKILL) == 0, "the writer");
    shared->released = true;
    CHECK(waitpid(writer, &status, 0) == writer && WIFSIGNALED(status), "status 0x%x", status);
    /* What its rings had in flight still reaches the file system. */
    for (unsigned i = 0; i < 1200000 && shared->opened != shared->closed; i++)
        pause_shortly();
    CHECK(shared->opened == shared->closed, "after 120 s %u of %u files are closed", shared->closed,
          shared->opened);
    shared->hold_at = 0;
    return check_disk();
}

static void check_power_cuts(uint32_t engine)
{
    ds_accel_async_io_handle_t *handle = make_flagged(engine, 4096, 1, 1);
    unsigned reported = 0;

    io->destroy(handle);
    for (unsigned call = 1; handle && call <= CALLS; call++) {
        reported += check_killed_writer(engine, call, false);
        reported += check_killed_writer(engine, call, true);
    }
    CHECK(!handle || reported > CALLS, "%u versions were reported", reported);
}

static void check_all(void)
{
    check_faults();
    for (size_t engine = 0; engine < ENGINES; engine++) {
        check_failed_sync(engines[engine]);
        for (unsigned i = 0; i < 5; i++)
            check_shrinking(engines[engine]);
        if (!shared->asynchronous || flags) /* the calls of the other turn are those of the first */
            check_power_cuts(engines[engine]);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    io = (const struct ds_accel_async_io *)open_op(argv[1], "async_io");
    if (access("/dev/fuse", R_OK | W_OK) != 0) {
        printf("async_io_faults: not checked: /dev/fuse: %s\n", strerror(errno));
        return finish("async_io_faults");
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(mountpoint, sizeof(mountpoint), "/tmp/ds-accel-async-io-XXXXXX");
    if (shared == MAP_FAILED || !mkdtemp(mountpoint)) {
        perror("async_io_faults");
        return 1;
    }
    snprintf(path, sizeof(path), "%s/file", mountpoint);
    for (unsigned turn = 0; turn < 3; turn++) {
        pid_t server;

        shared->asynchronous = turn > 0;
        flags = turn == 2 ? DS_ACCEL_ASYNC_IO_FUSE_RING : 0;
        server = start_server();
        if (server == 0) {
            puts("async_io_faults: not checked: this process may not mount a file system");
            break;
        }
        check_all();
        stop_server(server);
    }
    CHECK(rmdir(mountpoint) == 0, "%s: %s", mountpoint, strerror(errno));
    return finish("async_io_faults");
}
