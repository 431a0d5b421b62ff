/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Rank 0 of shm_comm, which all other ranks connect to: see rendezvous.c. */
#include "common/error.h"
#include "rendezvous.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NO_RANK UINT32_MAX
#define REPORT_NS \
    ((uint64_t)1000000000) /* in which a rank maps the memory; the others wait longer */

/* A connection: of a rank, or of one that did not say hello yet. */
struct guest {
    int socket;
    uint32_t rank;
    int64_t process;
};

struct host {
    const char *call;
    struct ds_accel_comm *comm;
    const struct hello *own;
    uint64_t deadline; /* the earliest of all ranks */
    uint64_t timeout_ns;
    int listener;
    size_t guest_count;
    uint32_t arrived; /* ranks, itself included */
    int64_t processes[DS_ACCEL_SHM_COMM_MAX_RANKS];
    uint64_t cpus[OPS__SHM_CPU_WORDS];
    struct ops__shm_location locations[DS_ACCEL_SHM_COMM_MAX_RANKS];
    /* Twice as many as ranks, for those that come by mistake. */
    struct guest guests[2 * DS_ACCEL_SHM_COMM_MAX_RANKS];
};

static int32_t listen_at(struct host *host, const char *name, struct ds_accel_error *error)
{
    struct sockaddr_un address;
    socklen_t length = ops__meeting_address(name, &address);

    host->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (host->listener < 0)
        return ops__meeting_limit(host->call, "socket", errno, error);
    if (bind(host->listener, (const struct sockaddr *)&address, length) != 0) {
        if (errno == EADDRINUSE)
            return ops__error(
                error, DS_ACCEL_ERR_BUSY, host->call,
                "the name %s is in use: was rank 0 started twice, or does another job "
                "have the same name?",
                name);
        return ops__meeting_limit(host->call, "bind", errno, error);
    }
    if (listen(host->listener, DS_ACCEL_SHM_COMM_MAX_RANKS) != 0)
        return ops__meeting_limit(host->call, "listen", errno, error);
    return DS_ACCEL_OK;
}

/* "ranks 3, 7": those that did not arrive, or the first of them. */
static void list_missing(const struct host *host, char *text, size_t size)
{
    size_t missing = host->comm->size - host->arrived;
    size_t end = (size_t)snprintf(text, size, missing > 1 ? "ranks" : "rank");
    size_t listed = 0;

    for (uint32_t rank = 0; rank < host->comm->size; rank++) {
        if (host->processes[rank] != 0)
            continue;
        if (listed == 16) {
            snprintf(text + end, size - end, " and %zu more", missing - listed);
            return;
        }
        end += (size_t)snprintf(text + end, size - end, "%s %u", listed ? "," : "", rank);
        listed++;
    }
}

static int32_t missing(const struct host *host, struct ds_accel_error *error)
{
    char ranks[128];

    list_missing(host, ranks, sizeof(ranks));
    return ops__error(error, DS_ACCEL_ERR_TIMEOUT, host->call, "%s did not arrive within %.1f s",
                      ranks, (double)host->timeout_ns / 1e9);
}

static int32_t accept_guest(struct host *host, struct ds_accel_error *error)
{
    struct guest *guest = &host->guests[host->guest_count];
    int socket = accept4(host->listener, NULL, NULL, SOCK_CLOEXEC);

    if (socket < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
        return DS_ACCEL_OK;
    if (socket < 0)
        return ops__meeting_limit(host->call, "accept4", errno, error);
    if (ops__meeting_check_user(host->call, socket, NULL) ||
        host->guest_count == sizeof(host->guests) / sizeof(host->guests[0])) {
        close(socket);
        return DS_ACCEL_OK;
    }
    *guest = (struct guest){.socket = socket, .rank = NO_RANK};
    host->guest_count++;
    return DS_ACCEL_OK;
}

static int32_t check_hello(const struct host *host, const struct hello *hello, ssize_t bytes,
                           struct ds_accel_error *error)
{
    const struct hello *own = host->own;

    if (bytes < (ssize_t)offsetof(struct hello, rank) || hello->magic != HELLO_MAGIC)
        return ops__error(error, DS_ACCEL_ERR_ABI, host->call,
                          "a process that is not a rank has connected");
    if (hello->version != OPS__SHM_VERSION || bytes != (ssize_t)sizeof(*hello))
        return ops__error(error, DS_ACCEL_ERR_ABI, host->call,
                          "a rank has version %u of the op's shared memory, rank 0 version %u",
                          hello->version, OPS__SHM_VERSION);
    if (hello->size != own->size)
        return ops__error(error, DS_ACCEL_ERR_INVALID, host->call,
                          "size is %u at rank %u (process %" PRId64 ") and %u at rank 0 (process "
                          "%" PRId64 "); is the name that of two jobs?",
                          hello->size, hello->rank, hello->process, own->size, own->process);
    if (hello->rank == 0 || hello->rank >= own->size)
        return ops__error(error, DS_ACCEL_ERR_INVALID, host->call, "there is no rank %u of %u",
                          hello->rank, own->size);
    if (host->processes[hello->rank] != 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, host->call,
                          "rank %u was started twice: processes %" PRId64 " and %" PRId64,
                          hello->rank, host->processes[hello->rank], hello->process);
    if (hello->slot_bytes != own->slot_bytes)
        return ops__error(error, DS_ACCEL_ERR_INVALID, host->call,
                          "buffer_bytes of rank %u and of rank 0 differ: pieces of %" PRIu64
                          " and %" PRIu64 " bytes",
                          hello->rank, hello->slot_bytes, own->slot_bytes);
    if (strncmp(hello->boot_id, own->boot_id, sizeof(own->boot_id)) != 0)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, host->call,
                          "rank %u is on another node: its boot id is %.36s, that of rank 0 %.36s",
                          hello->rank, hello->boot_id, own->boot_id);
    return DS_ACCEL_OK;
}

static int32_t lost(const struct host *host, const struct guest *guest,
                    struct ds_accel_error *error)
{
    return ops__error(error, DS_ACCEL_ERR_DEVICE_LOST, host->call,
                      "rank %u (process %" PRId64 ") has ended before all ranks were connected",
                      guest->rank, guest->process);
}

/* Read from a connection that is readable before all have arrived. */
static int32_t greet(struct host *host, struct guest *guest, struct ds_accel_error *error)
{
    struct hello hello;
    size_t file_count = 1;
    int process = -1;
    ssize_t bytes;
    int32_t status;

    memset(&hello, 0, sizeof(hello));
    bytes = ops__meeting_receive(guest->socket, &hello, sizeof(hello), &process, &file_count);
    if (bytes < 0 && errno == EAGAIN)
        return DS_ACCEL_OK;
    if (bytes <= 0 && guest->rank != NO_RANK)
        return lost(host, guest, error);
    if (bytes <= 0) { /* it ended before it said hello */
        close(guest->socket);
        guest->socket = -1;
        return DS_ACCEL_OK;
    }
    status = check_hello(host, &hello, bytes, error);
    if (status == DS_ACCEL_OK && file_count == 0)
        status = ops__meeting_limit(host->call, "recvmsg", EMFILE, error);
    if (status) {
        if (file_count != 0)
            close(process);
        return status;
    }
    guest->rank = hello.rank;
    guest->process = hello.process;
    host->processes[hello.rank] = hello.process;
    host->comm->processes[hello.rank] = process;
    host->locations[hello.rank] = hello.location;
    host->arrived++;
    for (size_t i = 0; i < OPS__SHM_CPU_WORDS; i++)
        host->cpus[i] |= hello.cpus[i];
    if (hello.left_ns < ops__meeting_left(host->deadline)) {
        host->deadline = ops__meeting_deadline(hello.left_ns);
        host->timeout_ns = host->timeout_ns < hello.left_ns ? host->timeout_ns : hello.left_ns;
    }
    return DS_ACCEL_OK;
}

/* Wait for connections and their messages; files has room for the listener behind the guests. */
static int32_t gather(struct host *host, struct pollfd *files, struct ds_accel_error *error)
{
    while (host->arrived < host->comm->size) {
        size_t count = host->guest_count;
        int32_t status = DS_ACCEL_OK;

        for (size_t i = 0; i < count; i++)
            files[i] = (struct pollfd){.fd = host->guests[i].socket, .events = POLLIN};
        files[count] = (struct pollfd){.fd = host->listener, .events = POLLIN};
        if (poll(files, count + 1, ops__meeting_poll_ms(host->deadline)) <= 0) {
            if (ops__meeting_left(host->deadline) == 0)
                return missing(host, error);
            continue;
        }
        for (size_t i = 0; i < count && status == DS_ACCEL_OK; i++)
            if (files[i].revents != 0)
                status = greet(host, &host->guests[i], error);
        if (status == DS_ACCEL_OK && files[count].revents != 0)
            status = accept_guest(host, error);
        if (status)
            return status;
    }
    return DS_ACCEL_OK;
}

static int32_t create_segment(struct host *host, struct segment *segment,
                              struct ds_accel_error *error)
{
    struct ds_accel_comm *comm = host->comm;
    int32_t status;

    *segment = (struct segment){.magic = SEGMENT_MAGIC};
    if (getrandom(&segment->nonce, sizeof(segment->nonce), 0) != sizeof(segment->nonce))
        segment->nonce = ops__meeting_deadline(0);
    for (size_t i = 0; i < OPS__SHM_CPU_WORDS; i++)
        comm->cpus += (uint32_t)__builtin_popcountll(host->cpus[i]);
    segment->cpus = comm->cpus;
    ops__shm_form_groups(comm, host->locations);
    ops__shm_layout(comm);
    segment->group_count = comm->group_count;
    for (uint32_t i = 0; i < comm->group_count; i++)
        segment->group_sizes[i] = (uint8_t)comm->groups[i].size;
    status = ops__shm_create_file(host->call, comm, segment->nonce, error);
    segment->capacity = comm->capacity;
    return status;
}

static int32_t send_segment(struct host *host, const struct segment *segment,
                            struct ds_accel_error *error)
{
    int files[MOST_FILES];

    files[0] = host->comm->file;
    memcpy(files + 1, host->comm->processes, sizeof(int) * host->comm->size);
    for (size_t i = 0; i < host->guest_count; i++) {
        struct guest *guest = &host->guests[i];

        if (guest->rank == NO_RANK)
            continue;
        if (!ops__meeting_send(guest->socket, segment, sizeof(*segment), files,
                               (size_t)host->comm->size + 1)) {
            if (errno == EPIPE || errno == ECONNRESET)
                return lost(host, guest, error);
            return ops__meeting_limit(host->call, "sendmsg", errno, error);
        }
    }
    return DS_ACCEL_OK;
}

/* Wait for the report of each rank. */
static int32_t collect_reports(const struct host *host, struct ds_accel_error *error)
{
    for (size_t i = 0; i < host->guest_count; i++) {
        const struct guest *guest = &host->guests[i];
        struct pollfd file = {.fd = guest->socket, .events = POLLIN};
        struct report report;
        size_t no_files = 0;
        ssize_t bytes;

        if (guest->rank == NO_RANK)
            continue;
        while (poll(&file, 1, ops__meeting_poll_ms(host->deadline)) <= 0)
            if (ops__meeting_left(host->deadline) == 0)
                return ops__error(error, DS_ACCEL_ERR_TIMEOUT, host->call,
                                  "rank %u (process %" PRId64 ") arrived, but did not map the "
                                  "shared memory in time",
                                  guest->rank, guest->process);
        bytes = ops__meeting_receive(guest->socket, &report, sizeof(report), NULL, &no_files);
        if (bytes != (ssize_t)sizeof(report))
            return lost(host, guest, error);
        report.text[sizeof(report.text) - 1] = '\0';
        if (report.status != DS_ACCEL_OK)
            return ops__error(error, report.status, host->call, "rank %u (process %" PRId64 "): %s",
                              guest->rank, guest->process, report.text);
    }
    return DS_ACCEL_OK;
}

/* Report to all connections, and close them; return a rank that the report did not reach, or
 * NULL. */
static const struct guest *end(struct host *host, int32_t status, const char *text)
{
    const struct guest *unreached = NULL;

    if (host->listener >= 0)
        close(host->listener);
    for (size_t i = 0; i < host->guest_count; i++) {
        const struct guest *guest = &host->guests[i];

        if (guest->socket < 0)
            continue;
        if (!ops__meeting_send_report(guest->socket, status, text) && guest->rank != NO_RANK)
            unreached = guest;
        close(guest->socket);
    }
    return unreached;
}

static int32_t host_ranks(struct host *host, const char *name, struct pollfd *files,
                          struct ds_accel_error *error)
{
    struct segment segment;
    int32_t status = DS_ACCEL_OK;

    if (host->comm->size > 1)
        status = listen_at(host, name, error);
    if (status == DS_ACCEL_OK)
        status = gather(host, files, error);
    if (status)
        return status;
    if (host->listener >= 0)
        close(host->listener);
    host->listener = -1;
    if (host->deadline < UINT64_MAX - REPORT_NS)
        host->deadline += REPORT_NS;
    status = create_segment(host, &segment, error);
    if (status == DS_ACCEL_OK)
        status = ops__shm_map(host->call, host->comm, segment.nonce, error);
    if (status == DS_ACCEL_OK)
        status = send_segment(host, &segment, error);
    if (status == DS_ACCEL_OK)
        status = collect_reports(host, error);
    return status;
}

int32_t ops__meeting_host(const char *call, struct ds_accel_comm *comm, const char *name,
                          const struct hello *own, uint64_t deadline, struct ds_accel_error *error)
{
    struct host *host = (struct host *)calloc(1, sizeof(*host));
    struct pollfd *files =
        (struct pollfd *)calloc(2 * DS_ACCEL_SHM_COMM_MAX_RANKS + 1, sizeof(*files));
    const struct guest *unreached;
    int32_t status;

    if (!host || !files) {
        free(host);
        free(files);
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call, "out of memory for connections");
    }
    host->call = call;
    host->comm = comm;
    host->own = own;
    host->deadline = deadline;
    host->timeout_ns = comm->usual_timeout_ns;
    host->listener = -1;
    host->arrived = 1;
    host->processes[0] = own->process;
    memcpy(host->cpus, own->cpus, sizeof(host->cpus));
    host->locations[0] = own->location;
    status = host_ranks(host, name, files, error);
    unreached = end(host, status, status ? ops__meeting_text(call, error) : "");
    if (status == DS_ACCEL_OK && unreached) {
        ops__shm_leave(comm); /* other ranks have succeeded */
        status = lost(host, unreached, error);
    }
    free(host);
    free(files);
    return status;
}
