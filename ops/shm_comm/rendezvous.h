/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The messages by which ranks of shm_comm meet, for rank 0 (rendezvous_host.c) and the others. */
#ifndef OPS_SHM_COMM_RENDEZVOUS_H
#define OPS_SHM_COMM_RENDEZVOUS_H

#include "shm.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define HELLO_MAGIC 0x6473616363656c31u
#define SEGMENT_MAGIC 0x6473616363656c32u
#define REPORT_MAGIC 0x6473616363656c33u
#define MOST_FILES (DS_ACCEL_SHM_COMM_MAX_RANKS + 1)

/* The beginning stays the same in all versions. */
struct hello {
    uint64_t magic;
    uint32_t version;
    uint32_t rank;
    uint32_t size;
    uint32_t reserved;
    int64_t process;
    uint64_t slot_bytes;
    uint64_t left_ns; /* until this rank stops waiting */
    char boot_id[40];
    uint64_t cpus[OPS__SHM_CPU_WORDS]; /* affinity mask */
    struct ops__shm_location location;
};

struct segment {
    uint64_t magic;
    uint64_t nonce; /* in the header of the memory */
    uint64_t capacity;
    uint32_t cpus;
    uint32_t group_count;
    uint8_t group_sizes[OPS__SHM_MOST_GROUPS];
};

struct report {
    uint64_t magic;
    int32_t status;
    char text[228];
};

/* Deadlines are of CLOCK_MONOTONIC; UINT64_MAX: none. */
uint64_t ops__meeting_deadline(uint64_t timeout_ns);
uint64_t ops__meeting_left(uint64_t deadline);
int ops__meeting_poll_ms(uint64_t deadline);

int32_t ops__meeting_limit(const char *call, const char *function, int cause,
                           struct ds_accel_error *error);
bool ops__meeting_send(int socket, const void *message, size_t bytes, const int *files,
                       size_t file_count);
bool ops__meeting_send_report(int socket, int32_t status, const char *text);
/* Receive without waiting; file_count: how many fit, and how many came. */
ssize_t ops__meeting_receive(int socket, void *message, size_t bytes, int *files,
                             size_t *file_count);
const char *ops__meeting_text(const char *call, const struct ds_accel_error *error);
socklen_t ops__meeting_address(const char *name, struct sockaddr_un *address);
int32_t ops__meeting_check_user(const char *call, int socket, struct ds_accel_error *error);

/* Rank 0: create the memory and hand it to all ranks. own: its hello, whose pidfd comm has. */
int32_t ops__meeting_host(const char *call, struct ds_accel_comm *comm, const char *name,
                          const struct hello *own, uint64_t deadline, struct ds_accel_error *error);

#endif
