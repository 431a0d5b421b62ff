/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What goes wrong among ranks of shm_comm: each rank must get an error that names the cause.
 */
#ifndef TESTS_OPS_SHM_COMM_FAILURES_H
#define TESTS_OPS_SHM_COMM_FAILURES_H

#include "ops/shm_comm_libc.h"
#include "ops/shm_comm_ranks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/un.h>

/* ---- what the kernel has --------------------------------------------------------------------- */

static unsigned count_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

/* Return whether there is a Unix socket whose name has this part. */
static bool has_socket(const char *part)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char line[512];
    bool found = false;

    while (file && fgets(line, sizeof(line), file))
        found = found || strstr(line, part);
    if (file)
        fclose(file);
    return found;
}

/* No socket, process or mapping of this process's ranks is left in the system. A segment without a
 * name exists as long as a process has it open or mapped. */
static void check_nothing_left(void)
{
    char name[64];
    char line[512];
    FILE *file;

    snprintf(name, sizeof(name), "-test-%d-", (int)getpid());
    CHECK(!has_socket(name), "a socket is left");
    file = fopen("/proc/self/maps", "re");
    while (file && fgets(line, sizeof(line), file))
        CHECK(!strstr(line, "ds-accel-shm-comm"), "a mapping is left: %s", line);
    if (file)
        fclose(file);
    errno = 0;
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

/* ---- calls that end in an error -------------------------------------------------------------- */

/* Make small and large calls until one fails; check that a second one fails alike. */
static void run_until_failure(ds_accel_comm_t *comm, uint32_t rank, size_t count)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_error second = {.struct_size = sizeof(second)};
    float *data = (float *)calloc(count, sizeof(*data));
    struct ds_accel_comm_call call =
        make_call(DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_COMM_SUM, data, data, count);
    int32_t status;

    while ((status = shm->all_reduce(comm, &call, &error)) == DS_ACCEL_OK)
        continue;
    CHECK(error.code == status, "code %d", error.code);
    CHECK(shm->all_reduce(comm, &call, &second) == status &&
              strcmp(second.message, error.message) == 0,
          "\"%s\", then \"%s\"", error.message, second.message);
    keep_result(rank, status, &error);
    free(data);
    shm->destroy(comm);
}

static void check_result(uint32_t rank, int32_t status, const char *text)
{
    CHECK(shared->results[rank].status == status, "rank %u: status %d, \"%s\"", rank,
          shared->results[rank].status, shared->results[rank].message);
    CHECK(strstr(shared->results[rank].message, text), "rank %u: message \"%s\", wanted \"%s\"",
          rank, shared->results[rank].message, text);
}

static void small_calls(uint32_t rank, uint32_t size)
{
    run_until_failure(create(rank, size, PATIENCE, 0), rank, 1);
}

static void large_calls(uint32_t rank, uint32_t size)
{
    run_until_failure(create(rank, size, PATIENCE, 0), rank, 500000);
}

/* A rank is killed while the others call: each of them names it. */
static void check_killed(rank_fn *function, uint32_t size, uint32_t victim, long ms)
{
    pid_t children[MOST_RANKS];
    char text[64];

    start_ranks(size, function, children);
    while (shared->created < size && shared->failures == 0)
        nap(1);
    nap(ms);
    kill(children[victim], SIGKILL);
    snprintf(text, sizeof(text), "rank %u (process %d) has ended", victim, (int)children[victim]);
    for (uint32_t rank = 0; rank < size; rank++) {
        int status = reap(children[rank]);

        if (rank == victim)
            continue;
        CHECK(status == 0, "rank %u: status 0x%x", rank, status);
        check_result(rank, DS_ACCEL_ERR_DEVICE_LOST, text);
    }
    take_counts();
}

#define SHORT (2 * SECOND)

/* Return the rank that the results name as late. */
static uint32_t late_rank(void)
{
    unsigned rank = MOST_RANKS;
    const char *name = strstr(shared->results[0].message, ": rank ");

    return name && sscanf(name, ": rank %u (process ", &rank) == 1 ? rank : MOST_RANKS;
}

/* Stop a rank; all ranks get a timeout that names it. They name another one only if that one was
 * ready to run, and had no CPU, for most of the time. */
static void stop_one(uint32_t size, uint32_t victim, const pid_t *children)
{
    uint32_t late;
    char text[64];

    kill(children[victim], SIGSTOP);
    for (uint32_t rank = 0; rank < size; rank++)
        if (rank != victim)
            CHECK(reap(children[rank]) == 0, "rank %u", rank);
    kill(children[victim], SIGCONT);
    CHECK(reap(children[victim]) == 0, "rank %u", victim);
    late = late_rank();
    CHECK(late == victim || (late < size && shared->results[late].delay_ns > SHORT / 2),
          "rank %u was stopped: \"%s\"", victim, shared->results[0].message);
    if (late >= size)
        return;
    snprintf(text, sizeof(text), "rank %u (process %d) has not arrived at ", late,
             (int)children[late]);
    for (uint32_t rank = 0; rank < size; rank++)
        check_result(rank, DS_ACCEL_ERR_TIMEOUT, text);
}

static void calls_with_short_timeout(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    struct ds_accel_comm_call call = make_call(0, 0, NULL, NULL, 0);
    int32_t status;
    uint64_t begin;

    do {
        begin = clock_ns();
        call.timeout_ns = SHORT;
        status = shm->barrier(comm, &call, &error);
    } while (status == DS_ACCEL_OK);
    if (status == DS_ACCEL_ERR_TIMEOUT && rank == 0)
        CHECK(clock_ns() - begin >= SHORT, "the timeout came early");
    keep_result(rank, status, &error);
    shm->destroy(comm);
}

/* A stopped rank is named at the deadline; when it continues, it gets the same error. */
static void check_stopped(void)
{
    pid_t children[2];
    char text[64];

    start_ranks(2, calls_with_short_timeout, children);
    while (shared->created < 2 && shared->failures == 0)
        nap(1);
    nap(5);
    kill(children[1], SIGSTOP);
    CHECK(reap(children[0]) == 0, "rank 0");
    kill(children[1], SIGCONT);
    CHECK(reap(children[1]) == 0, "rank 1");
    snprintf(text, sizeof(text), "rank 1 (process %d) has not arrived at barrier number",
             (int)children[1]);
    check_result(0, DS_ACCEL_ERR_TIMEOUT, text);
    check_result(0, DS_ACCEL_ERR_TIMEOUT, "within 2.0 s");
    check_result(1, DS_ACCEL_ERR_TIMEOUT, text);
    take_counts();
}

static void leave_early(uint32_t rank, uint32_t size)
{
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);

    CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "barrier");
    if (rank == 1)
        shm->destroy(comm);
    else
        run_until_failure(comm, rank, 10);
}

/* Rank 2 makes another call than the others. */
static void differ(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    int32_t data[8] = {0};
    struct ds_accel_comm_call call =
        make_call(DS_ACCEL_DTYPE_INT32, DS_ACCEL_COMM_MAX, data, data, 8);
    int32_t status;

    call.root = 1;
    status = rank == 2 ? shm->broadcast(comm, &call, &error) : shm->all_reduce(comm, &call, &error);
    keep_result(rank, status, &error);
    run_until_failure(comm, rank, 8);
}

static void check_differences(void)
{
    run_ranks(3, leave_early);
    check_result(0, DS_ACCEL_ERR_DEVICE_LOST, "rank 1 (process ");
    check_result(2, DS_ACCEL_ERR_DEVICE_LOST, "has left the communicator");
    run_ranks(3, differ);
    for (uint32_t rank = 0; rank < 3; rank++) {
        check_result(rank, DS_ACCEL_ERR_INVALID, "in call number 1, rank ");
        check_result(rank, DS_ACCEL_ERR_INVALID, "all_reduce(int32, max, count 8)");
        check_result(rank, DS_ACCEL_ERR_INVALID, "rank 2");
        check_result(rank, DS_ACCEL_ERR_INVALID, "broadcast(int32, count 8, root 1)");
    }
}

/* ---- ranks that do not meet ------------------------------------------------------------------ */

static uint64_t meeting_ns;
static uint64_t other_buffer; /* of rank 1 */

static void try_to_create(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = NULL;
    int32_t status =
        create_sized(rank, size, meeting_ns, rank == 1 ? other_buffer : 0, &comm, &error);
    unsigned files = count_files();

    if (status == DS_ACCEL_OK)
        CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK || rank < MOST_RANKS, "barrier");
    else
        CHECK(!comm, "an output was written");
    keep_result(rank, status, &error);
    if (status == DS_ACCEL_OK)
        shm->destroy(comm);
    else
        CHECK(count_files() == files, "files");
}

static void with_size_3(uint32_t rank, uint32_t size)
{
    (void)size;
    try_to_create(rank, 3);
}

static void end_after_hello(uint32_t rank, uint32_t size)
{
    ends_after_hello = true;
    try_to_create(rank, size);
}

/* Start some ranks of `size`, each with a function; all of them must end. */
static void meet(uint32_t size, const uint32_t *ranks, rank_fn *const *functions, size_t count)
{
    pid_t children[8];

    new_job();
    for (size_t i = 0; i < count; i++)
        children[i] = start_rank(ranks[i], size, functions[i]);
    for (size_t i = 0; i < count; i++)
        reap(children[i]);
    take_counts();
}

static void check_missing(void)
{
    static rank_fn *const both[] = {try_to_create, try_to_create};
    static const uint32_t without_1_and_3[] = {0, 2};
    static const uint32_t without_0[] = {1};

    meeting_ns = SECOND;
    meet(4, without_1_and_3, both, 2);
    check_result(0, DS_ACCEL_ERR_TIMEOUT, "ranks 1, 3 did not arrive within 1.0 s");
    check_result(2, DS_ACCEL_ERR_TIMEOUT, "ranks 1, 3 did not arrive within ");
    meet(2, without_0, both, 1);
    check_result(1, DS_ACCEL_ERR_TIMEOUT, "rank 0 did not arrive within 1.0 s");
    meeting_ns = PATIENCE;
}

static void check_strangers(void)
{
    static rank_fn *const usual[] = {try_to_create, try_to_create, try_to_create};
    static rank_fn *const one_ends[] = {try_to_create, end_after_hello};
    static rank_fn *const one_has_3[] = {try_to_create, with_size_3};
    static const uint32_t twice[] = {0, 1, 1};
    static const uint32_t pair[] = {0, 1};

    meet(3, twice, usual, 3);
    check_result(0, DS_ACCEL_ERR_INVALID, "rank 1 was started twice: processes ");
    check_result(1, DS_ACCEL_ERR_INVALID, "rank 1 was started twice: processes ");
    meet(3, pair, one_ends, 2);
    check_result(0, DS_ACCEL_ERR_DEVICE_LOST, "rank 1 (process ");
    meet(2, pair, one_has_3, 2);
    check_result(0, DS_ACCEL_ERR_INVALID, "size is 3 at rank 1 (process ");
    check_result(1, DS_ACCEL_ERR_INVALID, "and 2 at rank 0 (process ");
    other_buffer = 1 << 20;
    meet(2, pair, usual, 2);
    check_result(0, DS_ACCEL_ERR_INVALID, "buffer_bytes of rank 1 and of rank 0 differ");
    check_result(1, DS_ACCEL_ERR_INVALID, "buffer_bytes of rank 1 and of rank 0 differ");
    other_buffer = 0;
}

/* Connect to rank 0 as something else, and return its report. */
static void be_a_stranger(const void *message, size_t bytes, char *report, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                          "ds-accel-shm-comm-%u-%s", (unsigned)geteuid(), job_name);
    int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    uint64_t deadline = clock_ns() + PATIENCE;

    memset(report, 0, size);
    while (connect(file, (const struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) != 0 &&
           clock_ns() < deadline)
        nap(1);
    CHECK(send(file, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "send: %s", strerror(errno));
    CHECK(recv(file, report, size - 1, 0) > 0, "no report");
    close(file);
}

static void check_other_versions(void)
{
    struct {
        uint64_t magic;
        uint32_t version;
        uint32_t rank;
    } hello = {0x6473616363656c31u, 77, 1};
    char report[512];
    pid_t child;

    for (int round = 0; round < 2; round++) {
        const char *text = round == 0 ? "a rank has version 77 of the op's shared memory"
                                      : "a process that is not a rank has connected";

        new_job();
        child = start_rank(0, 2, try_to_create);
        be_a_stranger(&hello, sizeof(hello), report, sizeof(report));
        CHECK(strstr(report + 12, text), "report \"%s\"", report + 12);
        reap(child);
        take_counts();
        check_result(0, DS_ACCEL_ERR_ABI, text);
        hello.magic++;
    }
}

static void check_two_of_rank_0(void)
{
    uint64_t deadline = clock_ns() + PATIENCE;
    ds_accel_comm_t *comm = NULL;
    pid_t child;

    new_job();
    child = start_rank(0, 2, try_to_create);
    while (!has_socket(job_name) && clock_ns() < deadline)
        nap(1);
    REFUSED(create_sized(0, 2, SECOND, 0, &comm, failed), DS_ACCEL_ERR_BUSY,
            "is in use: was rank 0 started twice");
    kill(child, SIGKILL);
    reap(child);
}

/* ---- too little of something ----------------------------------------------------------------- */

static void with_small_files(uint32_t rank, uint32_t size)
{
    struct rlimit limit = {.rlim_cur = 100000, .rlim_max = 100000};

    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    try_to_create(rank, size);
}

/* Rank 1 can open a socket, and then only two of the files that rank 0 sends. */
static void with_few_files(uint32_t rank, uint32_t size)
{
    int lowest = dup(STDERR_FILENO);
    struct rlimit limit = {.rlim_cur = (rlim_t)lowest + 3, .rlim_max = (rlim_t)lowest + 3};

    close(lowest);
    if (rank == 1)
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    try_to_create(rank, size);
}

/* Rank 1 has no memory left, first for a buffer, then for a communicator. */
static void without_memory(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    void *pointer = NULL;

    failure = ENOSPC;
    only_fallocate = rank == 1;
    CHECK(shm->alloc(comm, 1000000, &pointer, &error) == DS_ACCEL_ERR_NO_MEMORY && !pointer,
          "alloc");
    CHECK(strstr(error.message, rank == 1 ? "cannot reserve 1048576 bytes" : "rank 1 (process "),
          "\"%s\"", error.message);
    CHECK(strstr(error.message, "No space left on device"), "\"%s\"", error.message);
    only_fallocate = false;
    CHECK(shm->alloc(comm, 1000000, &pointer, &error) == DS_ACCEL_OK && pointer, "\"%s\"",
          error.message);
    CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "barrier");
    shm->destroy(comm);
    only_fallocate = rank == 1;
    try_to_create(rank, size);
}

/* More than the machine has is refused; the kernel would end processes. */
static void without_so_much_memory(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    void *pointer = NULL;
    struct sysinfo facts;
    uint64_t bytes;

    CHECK(sysinfo(&facts) == 0, "sysinfo");
    bytes = (facts.totalram + facts.totalswap) * facts.mem_unit;
    if (bytes < (uint64_t)1 << 40) {
        CHECK(shm->alloc(comm, bytes, &pointer, &error) == DS_ACCEL_ERR_NO_MEMORY && !pointer,
              "\"%s\"", error.message);
        CHECK(strstr(error.message, "Cannot allocate memory"), "\"%s\"", error.message);
    }
    CHECK(shm->alloc(comm, 1000000, &pointer, &error) == DS_ACCEL_OK, "\"%s\"", error.message);
    shm->destroy(comm);
}

static void check_shortage(void)
{
    run_ranks(2, without_so_much_memory);
    run_ranks(2, with_small_files);
    check_result(0, DS_ACCEL_ERR_LIMIT, "RLIMIT_FSIZE allows 65536 bytes");
    check_result(1, DS_ACCEL_ERR_LIMIT, "RLIMIT_FSIZE allows 65536 bytes");
    run_ranks(3, with_few_files);
    for (uint32_t rank = 0; rank < 3; rank++)
        check_result(rank, DS_ACCEL_ERR_LIMIT, "RLIMIT_NOFILE");
    run_ranks(3, without_memory);
    for (uint32_t rank = 0; rank < 3; rank++)
        check_result(rank, DS_ACCEL_ERR_NO_MEMORY, "bytes of shared memory: No space left");
    check_result(0, DS_ACCEL_ERR_NO_MEMORY, "rank 1 (process ");
}

static int failing_call;
static uint32_t failing_rank;

static void fail_one_call(uint32_t rank, uint32_t size)
{
    unsigned files = count_files();

    if (rank == failing_rank)
        calls_until_failure = failing_call;
    try_to_create(rank, size);
    CHECK(count_files() == files, "%u files are open, %u were", count_files(), files);
    if (rank == failing_rank && calls_until_failure != 0)
        shared->go = 1;
}

/* Each call of the kernel fails in turn, in one of two ranks: both get an error, or none does. */
static void check_each_failure(void)
{
    meeting_ns = SECOND;
    for (failing_rank = 0; failing_rank < 2; failing_rank++) {
        for (failing_call = 1;; failing_call++) {
            run_ranks(2, fail_one_call);
            if (shared->go)
                break;
            CHECK((shared->results[0].status == DS_ACCEL_OK) ==
                      (shared->results[1].status == DS_ACCEL_OK),
                  "rank %u, call %d: \"%s\" and \"%s\"", failing_rank, failing_call,
                  shared->results[0].message, shared->results[1].message);
            CHECK(failing_call < 50, "no end");
        }
        CHECK(failing_call > 4, "%d calls", failing_call);
    }
    meeting_ns = PATIENCE;
}

/* ---- arguments, fork ------------------------------------------------------------------------- */

static void check_options(void)
{
    struct ds_accel_shm_comm_options options = {
        .struct_size = sizeof(options), .size = 2, .name = "x"};
    char name[66];
    ds_accel_comm_t *comm = NULL;

    memset(name, 'n', 65);
    name[65] = '\0';
    REFUSED(shm->create(NULL, &comm, failed), DS_ACCEL_ERR_INVALID, "options is NULL");
    options.struct_size--;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "struct_size is ");
    options.struct_size++;
    options.flags = 4;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "unknown bits: 0x4");
    options.flags = 0;
    options.rank = 2;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "rank is 2; wanted 0 to 1");
    options.size = 0;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "size is 0");
    options.size = DS_ACCEL_SHM_COMM_MAX_RANKS + 1;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "size is 249");
    options.size = 1;
    options.rank = 0;
    REFUSED(shm->create(&options, NULL, failed), DS_ACCEL_ERR_INVALID, "comm_out is NULL");
    options.name = name;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "name is too long");
    options.name = "";
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "name is empty");
    options.name = NULL;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "name is empty");
    options.name = "x";
    options.buffer_bytes = UINT64_MAX;
    REFUSED(shm->create(&options, &comm, failed), DS_ACCEL_ERR_INVALID, "buffer_bytes is");
    CHECK(!comm, "an output was written");
    ERROR_SIZES(shm->create(NULL, &comm, failed), DS_ACCEL_ERR_INVALID);
}

/* Arguments that are refused leave the communicator as it is. */
static void refuse_arguments(uint32_t rank, uint32_t size)
{
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    float data[64] = {0};
    struct ds_accel_shm_comm_info info = {.struct_size = 8};
    struct ds_accel_comm_call call =
        make_call(DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_COMM_SUM, data, data, 4);
    void *pointer = NULL;

    REFUSED(shm->all_reduce(NULL, &call, failed), DS_ACCEL_ERR_INVALID, "comm is NULL");
    REFUSED(shm->all_reduce(comm, NULL, failed), DS_ACCEL_ERR_INVALID, "call is NULL");
    call.dtype = DS_ACCEL_DTYPE_FLOAT64;
    REFUSED(shm->all_reduce(comm, &call, failed), DS_ACCEL_ERR_UNSUPPORTED, "dtype is 4; wanted");
    call.dtype = DS_ACCEL_DTYPE_FLOAT32;
    call.reduction = 4;
    REFUSED(shm->reduce_scatter(comm, &call, failed), DS_ACCEL_ERR_INVALID, "reduction is 4");
    call.reduction = 1;
    call.root = size;
    REFUSED(shm->broadcast(comm, &call, failed), DS_ACCEL_ERR_INVALID, "root is 2; wanted 0 to 1");
    call.count = (uint64_t)1 << 40;
    REFUSED(shm->all_reduce(comm, &call, failed), DS_ACCEL_ERR_INVALID, "less than 2^40");
    call.count = 4;
    call.out = data + 1;
    REFUSED(shm->all_reduce(comm, &call, failed), DS_ACCEL_ERR_INVALID, "in and out overlap");
    call.out = NULL;
    REFUSED(shm->all_gather(comm, &call, failed), DS_ACCEL_ERR_INVALID, "out is NULL");
    call.in = NULL;
    REFUSED(shm->all_gather(comm, &call, failed), DS_ACCEL_ERR_INVALID, "in is NULL");
    call.struct_size = 16;
    REFUSED(shm->all_reduce(comm, &call, failed), DS_ACCEL_ERR_INVALID, "struct_size is 16");
    REFUSED(shm->barrier(comm, &call, failed), DS_ACCEL_ERR_INVALID, "struct_size is 16");
    REFUSED(shm->info(comm, NULL, failed), DS_ACCEL_ERR_INVALID, "info_out is NULL");
    REFUSED(shm->info(comm, &info, failed), DS_ACCEL_ERR_INVALID, "struct_size is 8");
    REFUSED(shm->alloc(comm, 0, &pointer, failed), DS_ACCEL_ERR_INVALID, "bytes is 0");
    REFUSED(shm->alloc(comm, 1, NULL, failed), DS_ACCEL_ERR_INVALID, "pointer_out is NULL");
    REFUSED(shm->free(comm, data, failed), DS_ACCEL_ERR_INVALID, "is not the beginning");
    CHECK(shm->free(comm, NULL, NULL) == DS_ACCEL_OK, "NULL");
    CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "barrier");
    shm->destroy(comm);
    shm->destroy(NULL);
}

static void in_forked_child(ds_accel_comm_t *comm)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        failures = 0;
        REFUSED(shm->barrier(comm, NULL, failed), DS_ACCEL_ERR_STATE, "was forked after");
        REFUSED(shm->free(comm, comm, failed), DS_ACCEL_ERR_STATE, "was forked after");
        shm->destroy(comm);
        _exit(failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "status 0x%x", status);
}

static void fork_within(uint32_t rank, uint32_t size)
{
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);

    in_forked_child(comm);
    CHECK(shm->barrier(comm, NULL, NULL) == DS_ACCEL_OK, "the parent's communicator");
    shm->destroy(comm);
}

static void check_failures(void)
{
    meeting_ns = PATIENCE;
    check_options();
    run_ranks(2, refuse_arguments);
    run_ranks(2, fork_within);
    check_killed(small_calls, 4, 2, 20);
    check_killed(large_calls, 3, 0, 20);
    check_stopped();
    check_differences();
    check_missing();
    check_strangers();
    check_other_versions();
    check_two_of_rank_0();
    check_shortage();
    check_each_failure();
}

#endif
