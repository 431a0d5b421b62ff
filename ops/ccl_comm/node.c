/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which ranks of ccl_comm share a node: those that can map the same memory. A boot id is not
 * enough: containers have it in common but not their networks, and machines that were started from
 * one snapshot have the same one.
 *
 * Each rank listens at an abstract socket, whose name the others know from its card:
 *
 *     rank                                 lower ranks with the same boot id and user
 *     connects to one after the other  ->  the first one that is there
 *     tells all ranks which one it is, by MPI
 *                                      <-  a memfd with its number
 *     maps it, and compares the number; tells all ranks whether they are equal
 *
 * A rank that finds nobody, or cannot map the memory, is a node with those that find it.
 */
#include "ccl.h"
#include "common/error.h"
#include "shm_comm/rendezvous.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NODE_BYTES 4096

/* Return whether a call failed for want of something that more ranks would want, too. Other causes
 * forbid to share memory: ranks can do without. */
static bool is_shortage(int cause)
{
    return cause == EMFILE || cause == ENFILE || cause == ENOMEM || cause == ENOBUFS;
}

static int32_t refuse(const char *call, const char *function, struct ds_accel_error *error)
{
    return is_shortage(errno) ? ops__meeting_limit(call, function, errno, error) : DS_ACCEL_OK;
}

static socklen_t address_of(const struct ops__ccl *ccl, uint32_t rank, struct sockaddr_un *address)
{
    int length;

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                      "ds-accel-ccl-comm-%016" PRIx64 "-%u", ccl->cards[rank].nonce, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void close_file(int *file)
{
    if (*file >= 0)
        close(*file);
    *file = -1;
}

/* ---- to be found ----------------------------------------------------------------------------- */

int32_t ops__ccl_node_open(const char *call, const struct ops__ccl *ccl, struct ops__ccl_door *door,
                           struct ds_accel_error *error)
{
    struct sockaddr_un address;
    socklen_t length = address_of(ccl, ccl->rank, &address);
    int32_t status;

    *door = (struct ops__ccl_door){.listener = make_socket(), .first = ccl->rank, .connection = -1};
    if (door->listener < 0)
        return refuse(call, "socket", error);
    if (bind(door->listener, (const struct sockaddr *)&address, length) == 0 &&
        listen(door->listener, (int)ccl->size) == 0)
        return DS_ACCEL_OK;
    status = refuse(call, "bind", error);
    close_file(&door->listener);
    return status;
}

void ops__ccl_node_close(struct ops__ccl_door *door)
{
    close_file(&door->listener);
    close_file(&door->connection);
}

static int make_memory(uint64_t number)
{
    int memory = memfd_create("ds-accel-ccl-comm", MFD_CLOEXEC);

    if (memory >= 0 && (ftruncate(memory, NODE_BYTES) != 0 ||
                        pwrite(memory, &number, sizeof(number), 0) != (ssize_t)sizeof(number)))
        close_file(&memory);
    return memory;
}

int32_t ops__ccl_node_serve(const char *call, const struct ops__ccl *ccl,
                            struct ops__ccl_door *door, struct ds_accel_error *error)
{
    uint64_t number = ccl->cards[ccl->rank].nonce;
    int32_t status = DS_ACCEL_OK;
    int memory = -1;

    while (door->listener >= 0 && status == DS_ACCEL_OK) {
        int connection = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC);

        if (connection < 0) {
            status = refuse(call, "accept", error);
            break;
        }
        if (memory < 0)
            memory = make_memory(number);
        if (memory < 0)
            status = refuse(call, "memfd_create", error);
        else if (ops__meeting_check_user(call, connection, NULL) == DS_ACCEL_OK)
            ops__meeting_send(connection, &number, sizeof(number), &memory, 1);
        close(connection);
    }
    close_file(&memory);
    close_file(&door->listener); /* who has no answer yet need not wait */
    return status;
}

/* ---- to find --------------------------------------------------------------------------------- */

static bool may_share_node(const struct ops__ccl_card *a, uint32_t a_rank,
                           const struct ops__ccl_card *b, uint32_t b_rank)
{
    uint32_t group = a->ranks_per_node;

    if (group && a_rank / group != b_rank / group)
        return false;
    return a->boot[0] && memcmp(a->boot, b->boot, sizeof(a->boot)) == 0 && a->user == b->user;
}

int32_t ops__ccl_node_find(const char *call, const struct ops__ccl *ccl, struct ops__ccl_door *door,
                           struct ds_accel_error *error)
{
    const struct ops__ccl_card *cards = ccl->cards;
    int32_t status = DS_ACCEL_OK;

    for (uint32_t rank = 0; rank < ccl->rank && status == DS_ACCEL_OK; rank++) {
        struct sockaddr_un address;
        socklen_t length = address_of(ccl, rank, &address);

        if (!may_share_node(&cards[rank], rank, &cards[ccl->rank], ccl->rank))
            continue;
        door->connection = make_socket();
        if (door->connection < 0)
            return refuse(call, "socket", error);
        if (connect(door->connection, (const struct sockaddr *)&address, length) == 0 &&
            ops__meeting_check_user(call, door->connection, NULL) == DS_ACCEL_OK) {
            door->first = rank;
            return DS_ACCEL_OK;
        }
        status = errno == EAGAIN ? ops__error(error, DS_ACCEL_ERR_LIMIT, call,
                                              "rank %u has too many connections waiting "
                                              "(sysctl net.core.somaxconn)",
                                              rank)
                                 : refuse(call, "connect", error);
        close_file(&door->connection);
    }
    return status;
}

/* Return whether memory can be mapped, and has the number. */
static bool has_number(int memory, uint64_t number)
{
    void *page = mmap(NULL, NODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    bool is_equal;

    if (page == MAP_FAILED)
        return false;
    is_equal = memcmp(page, &number, sizeof(number)) == 0;
    munmap(page, NODE_BYTES);
    return is_equal;
}

/* Wait for the answer. */
static bool is_answered(const struct ops__ccl *ccl, int connection)
{
    struct pollfd answer = {.fd = connection, .events = POLLIN};
    uint64_t deadline = ops__meeting_deadline(ops__ccl_left_ns(ccl, 0));

    while (poll(&answer, 1, ops__meeting_poll_ms(deadline)) <= 0)
        if (ops__meeting_left(deadline) == 0)
            return false;
    return true;
}

int32_t ops__ccl_node_map(const char *call, const struct ops__ccl *ccl, struct ops__ccl_door *door,
                          struct ds_accel_error *error)
{
    uint64_t number;
    int memory = -1;
    size_t count = 1;
    bool is_mapped;
    int32_t status;

    if (door->first == ccl->rank)
        return DS_ACCEL_OK;
    if (!is_answered(ccl, door->connection))
        return ops__error(error, DS_ACCEL_ERR_TIMEOUT, call,
                          "rank %u has not shown its memory within %.1f s", door->first,
                          (double)ccl->timeout_ns / 1e9);
    errno = 0;
    is_mapped = ops__meeting_receive(door->connection, &number, sizeof(number), &memory, &count) ==
                    (ssize_t)sizeof(number) &&
                count == 1 && has_number(memory, ccl->cards[door->first].nonce);
    status = is_mapped ? DS_ACCEL_OK : refuse(call, "mmap", error);
    if (!is_mapped)
        door->first = ccl->rank;
    close_file(&memory);
    return status;
}
