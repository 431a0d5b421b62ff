/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The TCP port of a job's master: port.c; the process that holds a port: port_holder.c. */
#ifndef DS_ACCEL_LAUNCH_PORT_H
#define DS_ACCEL_LAUNCH_PORT_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct ds_accel__text;

/* A port that no other launch takes while the lease exists. It ends with this process. */
struct ds_accel__port_lease {
    uint16_t port; /* 0: no port is leased */
    int fd;        /* a listening socket, closed on execve(); valid only if port is not 0 */
};

/*
 * Lease a TCP port that is free on all addresses of this machine at this moment.
 *
 * low == high: this port. low < high: a port of the range. Both 0: any port above 1024, outside the
 * range from which the kernel chooses ports of connections, and not reserved by the administrator;
 * if that range leaves no port, any other port, with a note. is_default: low == high was not given
 * by the user, so that another port is leased if this one is taken; a note names the holder.
 *
 * ERR_BUSY: the port is taken; the error names its holder. ERR_LIMIT: no port is free, or no
 * descriptor. ERR_PERMISSION: this user may not use the port. ERR_INVALID; ERR_IO; ERR_NO_MEMORY.
 * Each note is a line. The caller releases the lease.
 */
int32_t ds_accel__port_take(uint16_t low, uint16_t high, bool is_default,
                            struct ds_accel__port_lease *lease_out, struct ds_accel__text *notes);
/* End a lease, if there is one. */
void ds_accel__port_release(struct ds_accel__port_lease *lease);

/* What prevents the use of a port. */
enum ds_accel__port_use {
    DS_ACCEL__PORT_LEASED, /* the lease of another launch */
    DS_ACCEL__PORT_BOUND   /* a TCP socket */
};

/*
 * Describe the process that holds a port, such as "process 42 (python3) of user ann". Only the
 * user is known if this user may not see the process; nothing is known of a socket that is bound
 * but neither listens nor is connected.
 */
void ds_accel__port_describe_holder(uint16_t port, enum ds_accel__port_use use, char *text,
                                    size_t text_size);
/* Write the address of a port's lease, and return its size. */
socklen_t ds_accel__port_lease_address(uint16_t port, struct sockaddr_un *address);
/* True if an entry in /proc/net of a TCP socket uses the port. */
bool ds_accel__port_is_listed(uint16_t port);

#endif
