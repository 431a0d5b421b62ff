/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * How ranks of shm_comm meet. Rank 0 listens at an abstract socket; the others connect:
 *
 *     other rank                          rank 0
 *     hello, its pidfd           ->       waits until all ranks said hello
 *                                <-       segment: the memfd and the pidfds of all ranks
 *     maps and reserves memory
 *     report                     ->       waits for all reports
 *                                <-       report: all ranks succeed, or all fail
 *
 * If anything fails, rank 0 sends a report of it in place of the next message. Rank 0 stops
 * listening before it sends the segment, so a rank that is through with this communicator cannot
 * meet its socket when it creates the next one of the same name.
 */
#include "rendezvous.h"
#include "common/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((uint64_t)1000000000)
/* What the others wait longer than rank 0, which knows the names of missing ranks. */
#define GRACE_NS (2 * SECOND_NS)
#define RETRY_NS ((uint64_t)5000000)

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t ops__meeting_deadline(uint64_t timeout_ns)
{
    uint64_t now = now_ns();

    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

uint64_t ops__meeting_left(uint64_t deadline)
{
    uint64_t now = now_ns();

    return deadline == UINT64_MAX ? UINT64_MAX : now < deadline ? deadline - now : 0;
}

/* Return poll()'s milliseconds until a deadline, at most a minute. */
int ops__meeting_poll_ms(uint64_t deadline)
{
    uint64_t left = ops__meeting_left(deadline);

    return left > 60 * SECOND_NS ? 60000 : (int)((left + 999999) / 1000000);
}

/* ---- messages -------------------------------------------------------------------------------- */

int32_t ops__meeting_limit(const char *call, const char *function, int cause,
                           struct ds_accel_error *error)
{
    int32_t status = cause == EMFILE || cause == ENFILE || cause == ETOOMANYREFS
                         ? DS_ACCEL_ERR_LIMIT
                     : cause == ENOSYS ? DS_ACCEL_ERR_UNSUPPORTED
                                       : DS_ACCEL_ERR_NO_MEMORY;

    return ops__error(error, status, call, "%s: %s%s", function, strerror(cause),
                      cause == EMFILE ? " (RLIMIT_NOFILE)" : "");
}

bool ops__meeting_send(int socket, const void *message, size_t bytes, const int *files,
                       size_t file_count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * MOST_FILES)];
    } control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1};

    if (file_count != 0) {
        memset(&control, 0, sizeof(control));
        whole.msg_control = &control;
        whole.msg_controllen = CMSG_SPACE(sizeof(int) * file_count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * file_count);
        memcpy(CMSG_DATA(&control.header), files, sizeof(int) * file_count);
    }
    return sendmsg(socket, &whole, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static size_t take_files(struct msghdr *whole, int *files, size_t most)
{
    size_t count = 0;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(whole); header;
         header = CMSG_NXTHDR(whole, header)) {
        size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < here; i++) {
            int file;

            memcpy(&file, CMSG_DATA(header) + i * sizeof(int), sizeof(file));
            if (count < most)
                files[count++] = file;
            else
                close(file);
        }
    }
    return count;
}

ssize_t ops__meeting_receive(int socket, void *message, size_t bytes, int *files,
                             size_t *file_count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * MOST_FILES)];
    } control;
    struct iovec part = {.iov_base = message, .iov_len = bytes};
    struct msghdr whole = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    size_t most = *file_count;
    ssize_t received = -1;

    /* After the peer closed its socket with messages unread, the first call fails with ECONNRESET,
     * and the next one returns what the peer had sent before. */
    for (int resets = 0; resets < 2; resets += errno == ECONNRESET) {
        received = recvmsg(socket, &whole, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (received >= 0 || (errno != EINTR && errno != ECONNRESET))
            break;
    }
    *file_count = received < 0 ? 0 : take_files(&whole, files, most);
    return received;
}

bool ops__meeting_send_report(int socket, int32_t status, const char *text)
{
    struct report report = {.magic = REPORT_MAGIC, .status = status};

    snprintf(report.text, sizeof(report.text), "%s", text);
    return ops__meeting_send(socket, &report, sizeof(report), NULL, 0);
}

/* The text of an error without the name of the call, which the receiver adds anew. */
const char *ops__meeting_text(const char *call, const struct ds_accel_error *error)
{
    size_t length = strlen(call);

    return strncmp(error->message, call, length) == 0 && strlen(error->message) > length + 2
               ? error->message + length + 2
               : error->message;
}

socklen_t ops__meeting_address(const char *name, struct sockaddr_un *address)
{
    int length;

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                      "ds-accel-shm-comm-%u-%s", (unsigned)geteuid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int32_t ops__meeting_check_user(const char *call, int socket, struct ds_accel_error *error)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof(peer);

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid())
        return DS_ACCEL_OK;
    return ops__error(error, DS_ACCEL_ERR_PERMISSION, call,
                      "process %d of user %u uses the name; this is user %u", (int)peer.pid,
                      (unsigned)peer.uid, (unsigned)geteuid());
}

/* ---- what a rank says of itself -------------------------------------------------------------- */

static void read_boot_id(char *boot_id, size_t size)
{
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, boot_id, size - 1) : 0;

    if (file >= 0)
        close(file);
    boot_id[length > 0 ? length : 0] = '\0';
    boot_id[strcspn(boot_id, "\n")] = '\0';
}

/* Describe this rank; open its pidfd. */
static int32_t introduce(const char *call, const struct ds_accel_comm *comm, uint64_t deadline,
                         struct hello *hello, int *process_out, struct ds_accel_error *error)
{
    *hello = (struct hello){
        .magic = HELLO_MAGIC,
        .version = OPS__SHM_VERSION,
        .rank = comm->rank,
        .size = comm->size,
        .slot_bytes = comm->slot_bytes,
        .left_ns = ops__meeting_left(deadline),
        .process = getpid(),
    };
    read_boot_id(hello->boot_id, sizeof(hello->boot_id));
    if (sched_getaffinity(0, sizeof(hello->cpus), (cpu_set_t *)(void *)hello->cpus) != 0)
        memset(hello->cpus, 0, sizeof(hello->cpus)); /* not counted */
    hello->location = ops__shm_locate(hello->cpus);
    *process_out = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (*process_out < 0)
        return ops__meeting_limit(call, "pidfd_open", errno, error);
    return DS_ACCEL_OK;
}

/* ---- ranks above 0 --------------------------------------------------------------------------- */

static void close_files(const int *files, size_t *file_count)
{
    for (size_t i = 0; i < *file_count; i++)
        close(files[i]);
    *file_count = 0;
}

/* Wait for a message of rank 0; a report of a failure becomes the error. */
static int32_t hear(const char *call, int socket, uint64_t deadline, void *message, size_t bytes,
                    int *files, size_t *file_count, struct ds_accel_error *error)
{
    struct pollfd poll_file = {.fd = socket, .events = POLLIN};
    size_t most = *file_count;
    union {
        struct report report;
        struct segment segment;
    } heard;
    ssize_t received;

    *file_count = 0;
    while (poll(&poll_file, 1, ops__meeting_poll_ms(deadline)) <= 0)
        if (ops__meeting_left(deadline) == 0)
            return ops__error(error, DS_ACCEL_ERR_TIMEOUT, call,
                              "rank 0 arrived, but did not answer in time");
    *file_count = most;
    received = ops__meeting_receive(socket, &heard, sizeof(heard), files, file_count);
    if (received == (ssize_t)bytes && (bytes != sizeof(heard.report) || heard.report.status == 0)) {
        memcpy(message, &heard, bytes);
        return DS_ACCEL_OK;
    }
    close_files(files, file_count);
    if (received <= 0)
        return ops__error(error, DS_ACCEL_ERR_DEVICE_LOST, call,
                          "rank 0 has ended before all ranks were connected");
    if (received == (ssize_t)sizeof(heard.report) && heard.report.magic == REPORT_MAGIC) {
        heard.report.text[sizeof(heard.report.text) - 1] = '\0';
        return ops__error(error, heard.report.status, call, "%s", heard.report.text);
    }
    return ops__error(error, DS_ACCEL_ERR_ABI, call,
                      "rank 0 has another version of the op: a message of %zd bytes, wanted %zu",
                      received, bytes);
}

static int32_t connect_to_rank_0(const char *call, const char *name, uint64_t timeout_ns,
                                 uint64_t deadline, int *socket_out, struct ds_accel_error *error)
{
    const struct timespec pause = {.tv_nsec = (long)RETRY_NS};
    struct sockaddr_un address;
    socklen_t length = ops__meeting_address(name, &address);

    *socket_out = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (*socket_out < 0)
        return ops__meeting_limit(call, "socket", errno, error);
    while (connect(*socket_out, (const struct sockaddr *)&address, length) != 0) {
        if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
            return ops__meeting_limit(call, "connect", errno, error);
        if (ops__meeting_left(deadline) == 0)
            return ops__error(error, DS_ACCEL_ERR_TIMEOUT, call,
                              "rank 0 did not arrive within %.1f s", (double)timeout_ns / 1e9);
        nanosleep(&pause, NULL);
    }
    return ops__meeting_check_user(call, *socket_out, error);
}

static int32_t take_segment(const char *call, struct ds_accel_comm *comm,
                            const struct segment *segment, const int *files, size_t file_count,
                            struct ds_accel_error *error)
{
    size_t received = file_count;

    if (received != (size_t)comm->size + 1) {
        close_files(files, &file_count);
        return ops__error(error, DS_ACCEL_ERR_LIMIT, call,
                          "rank %u received %zu of %u file descriptors; RLIMIT_NOFILE is too small",
                          comm->rank, received, comm->size + 1);
    }
    comm->file = files[0];
    memcpy(comm->processes, files + 1, sizeof(int) * comm->size);
    comm->cpus = segment->cpus;
    comm->capacity = segment->capacity;
    ops__shm_set_groups(comm, segment->group_sizes, segment->group_count);
    ops__shm_layout(comm);
    return ops__shm_map(call, comm, segment->nonce, error);
}

static int32_t join(const char *call, struct ds_accel_comm *comm, int socket, uint64_t deadline,
                    struct ds_accel_error *error)
{
    uint64_t patience = deadline > UINT64_MAX - GRACE_NS ? UINT64_MAX : deadline + GRACE_NS;
    int files[MOST_FILES] = {0};
    size_t file_count = MOST_FILES;
    size_t no_files = 0;
    struct hello hello;
    struct segment segment = {0};
    struct report report;
    int process;
    bool sent;
    int32_t status = introduce(call, comm, deadline, &hello, &process, error);

    if (status)
        return status;
    sent = ops__meeting_send(socket, &hello, sizeof(hello), &process, 1);
    close(process);
    (void)sent; /* if not, rank 0 has closed the socket, and its report may be there */
    status = hear(call, socket, patience, &segment, sizeof(segment), files, &file_count, error);
    if (status)
        return status;
    status = take_segment(call, comm, &segment, files, file_count, error);
    ops__meeting_send_report(socket, status, status ? ops__meeting_text(call, error) : "");
    if (status)
        return status;
    return hear(call, socket, patience, &report, sizeof(report), files, &no_files, error);
}

static int32_t meet_rank_0(const char *call, struct ds_accel_comm *comm,
                           const struct ds_accel_shm_comm_options *options,
                           struct ds_accel_error *error)
{
    uint64_t deadline = ops__meeting_deadline(comm->usual_timeout_ns);
    int socket = -1;
    int32_t status =
        connect_to_rank_0(call, options->name, comm->usual_timeout_ns, deadline, &socket, error);

    if (status == DS_ACCEL_OK)
        status = join(call, comm, socket, deadline, error);
    if (socket >= 0)
        close(socket);
    return status;
}

int32_t ops__shm_meet(const char *call, struct ds_accel_comm *comm,
                      const struct ds_accel_shm_comm_options *options, struct ds_accel_error *error)
{
    struct ds_accel_error details = {.struct_size = sizeof(details)};
    struct hello hello;
    int process;
    int32_t status;

    if (comm->rank != 0) {
        status = meet_rank_0(call, comm, options, &details);
    } else {
        uint64_t deadline = ops__meeting_deadline(comm->usual_timeout_ns);

        status = introduce(call, comm, deadline, &hello, &process, &details);
        if (status == DS_ACCEL_OK) {
            comm->processes[0] = process;
            status = ops__meeting_host(call, comm, options->name, &hello, deadline, &details);
        }
    }
    if (status)
        return ops__error(error, status, call, "%s", ops__meeting_text(call, &details));
    return DS_ACCEL_OK;
}
