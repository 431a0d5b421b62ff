/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The port of a job's master. The launcher chooses it, but a rank binds it later, so the port must
 * stay free in between. Against other programs there is only prudence: a port that the launcher
 * chooses lies outside the ranges from which the kernel takes ports for connections. Against other
 * launches there is a lease: a listening UNIX socket with an abstract name that contains the port.
 * The kernel lets only one process bind such a name, removes it when the last descriptor is closed,
 * in whatever way the process ends, and keeps the names of each network namespace apart, as it does
 * with ports. A launch first takes the lease of a port and then checks by bind() that the port is
 * free, so two launches never check the same port at a time, and a lease that was released at once
 * is always that of a port that is not free.
 */
#include "launch/port.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/machine.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PORT_COUNT 65536u
#define WORD_BITS 64u
#define FIRST_PORT 1025u
#define FIRST_UNPOPULAR_PORT 10000u /* many services have a usual port below */
#define DRAWS 16u
/* The kernel's default range for connections. */
#define EPHEMERAL_LOW 32768u
#define EPHEMERAL_HIGH 60999u

/* A set of ports, with a bit for each. */
struct ports {
    uint64_t words[PORT_COUNT / WORD_BITS];
};

/* ---- one port ------------------------------------------------------------------------------- */

/* Fail because a system call did not work, which does not mean that the port is taken. */
static int32_t fail_call(const char *call, uint16_t port)
{
    int error = errno;
    bool is_limit = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;

    return ds_accel__error(is_limit ? DS_ACCEL_ERR_LIMIT : DS_ACCEL_ERR_IO, "port %u: %s: %s", port,
                           call, strerror(error));
}

/* ERR_BUSY without an error text: another process has the lease. */
static int32_t take_lease(uint16_t port, struct ds_accel__port_lease *lease_out)
{
    struct sockaddr_un address;
    socklen_t size = ds_accel__port_lease_address(port, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int32_t status = DS_ACCEL_OK;

    if (fd < 0) {
        return fail_call("socket", port);
    }
    if (bind(fd, (const struct sockaddr *)&address, size) != 0) {
        status = errno == EADDRINUSE ? DS_ACCEL_ERR_BUSY : fail_call("bind of its lease", port);
    } else if (listen(fd, SOMAXCONN) != 0) {
        status = fail_call("listen", port);
    }
    if (status < 0) {
        close(fd);
        return status;
    }
    lease_out->port = port;
    lease_out->fd = fd;
    return DS_ACCEL_OK;
}

/*
 * Bind the port on all addresses of a family for a moment. is_reused: ignore sockets that do not
 * listen, as most servers do (SO_REUSEADDR). ERR_BUSY and ERR_PERMISSION without an error text.
 */
static int32_t try_bind(int family, uint16_t port, bool is_reused)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 address6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const void *bound = family == AF_INET ? (const void *)&address : (const void *)&address6;
    socklen_t size = family == AF_INET ? sizeof(address) : sizeof(address6);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    int32_t status = DS_ACCEL_OK;

    if (fd < 0) {
        return errno == EAFNOSUPPORT ? DS_ACCEL_OK : fail_call("socket", port);
    }
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    }
    if (is_reused) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    }
    if (bind(fd, bound, size) != 0) {
        status = errno == EADDRINUSE      ? DS_ACCEL_ERR_BUSY
                 : errno == EACCES        ? DS_ACCEL_ERR_PERMISSION
                 : errno == EADDRNOTAVAIL ? DS_ACCEL_OK /* the family is switched off */
                                          : fail_call("bind", port);
    }
    close(fd);
    return status;
}

static int32_t try_families(uint16_t port, bool is_reused)
{
    int32_t status = try_bind(AF_INET, port, is_reused);

    return status < 0 ? status : try_bind(AF_INET6, port, is_reused);
}

/*
 * Lease a port if it is free. may_linger: also accept a port of which only ended connections are
 * left, as after an earlier job: /proc/net lists them, and servers set SO_REUSEADDR for that case.
 * ERR_BUSY with *use_out, and ERR_PERMISSION, without an error text.
 */
static int32_t take_free(uint16_t port, bool may_linger, struct ds_accel__port_lease *lease_out,
                         enum ds_accel__port_use *use_out)
{
    int32_t status = take_lease(port, lease_out);

    *use_out = DS_ACCEL__PORT_LEASED;
    if (status < 0) {
        return status;
    }
    *use_out = DS_ACCEL__PORT_BOUND;
    status = try_families(port, false);
    if (status == DS_ACCEL_ERR_BUSY && may_linger && ds_accel__port_is_listed(port)) {
        status = try_families(port, true);
    }
    if (status < 0) {
        ds_accel__port_release(lease_out);
    }
    return status;
}

/* ---- several ports -------------------------------------------------------------------------- */

static uint32_t draw(uint32_t limit)
{
    uint32_t number;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number)) {
        number = (uint32_t)(ds_accel__now_ns() / 64) ^ (uint32_t)getpid() * 2654435761u;
    }
    return number % limit;
}

/* excluded: NULL excludes no port. */
static bool is_excluded(const struct ports *excluded, uint32_t port)
{
    return excluded != NULL && (excluded->words[port / WORD_BITS] >> port % WORD_BITS & 1) != 0;
}

/*
 * Lease the first free port of a range. excluded: ports that are not used, and the search begins at
 * a random one; NULL: none. ERR_BUSY without an error text: none is free.
 */
static int32_t take_of_range(uint32_t low, uint32_t high, const struct ports *excluded,
                             struct ds_accel__port_lease *lease_out)
{
    uint32_t count = high - low + 1;
    uint32_t start = excluded != NULL ? draw(count) : 0;

    /* If half of the ports are excluded, the port behind them must not be drawn half of the time.
     * */
    for (unsigned i = 0; i < DRAWS && is_excluded(excluded, low + start); i++) {
        start = draw(count);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t port = low + (start + i) % count;
        enum ds_accel__port_use use;
        int32_t status;

        if (is_excluded(excluded, port)) {
            continue;
        }
        status = take_free((uint16_t)port, false, lease_out, &use);
        if (status != DS_ACCEL_ERR_BUSY && status != DS_ACCEL_ERR_PERMISSION) {
            return status;
        }
    }
    return DS_ACCEL_ERR_BUSY;
}

static bool exclude(void *user_data, uint32_t first, uint32_t last)
{
    struct ports *excluded = user_data;
    uint32_t port = first;

    while (port <= last && port < PORT_COUNT) {
        bool is_word = port % WORD_BITS == 0 && last - port >= WORD_BITS - 1;

        excluded->words[port / WORD_BITS] |= is_word ? UINT64_MAX : UINT64_C(1) << port % WORD_BITS;
        port += is_word ? WORD_BITS : 1;
    }
    return true;
}

static int32_t exclude_reserved(struct ports *excluded)
{
    char *reserved;
    int32_t status = ds_accel__machine_read(
        &ds_accel__machine_here, "/proc/sys/net/ipv4/ip_local_reserved_ports", &reserved);

    if (status >= 0 && reserved != NULL) {
        ds_accel__list_parse(reserved, exclude, excluded);
    }
    free(reserved);
    return status;
}

static int32_t read_ephemeral(uint32_t *low_out, uint32_t *high_out)
{
    char line[64];
    int32_t status = ds_accel__machine_line(
        &ds_accel__machine_here, "/proc/sys/net/ipv4/ip_local_port_range", line, sizeof(line));

    if (sscanf(line, "%u %u", low_out, high_out) != 2 || *low_out > *high_out ||
        *high_out >= PORT_COUNT) {
        *low_out = EPHEMERAL_LOW;
        *high_out = EPHEMERAL_HIGH;
    }
    return status;
}

static int32_t take_any(struct ds_accel__port_lease *lease_out, struct ds_accel__text *notes)
{
    struct ports reserved = {0};
    struct ports excluded;
    uint32_t low;
    uint32_t high;
    int32_t status = read_ephemeral(&low, &high);

    status = status < 0 ? status : exclude_reserved(&reserved);
    if (status < 0) {
        return status;
    }
    excluded = reserved;
    exclude(&excluded, low, high);
    status = take_of_range(FIRST_UNPOPULAR_PORT, PORT_COUNT - 1, &excluded, lease_out);
    if (status == DS_ACCEL_ERR_BUSY) {
        status = take_of_range(FIRST_PORT, FIRST_UNPOPULAR_PORT - 1, &excluded, lease_out);
    }
    if (status == DS_ACCEL_ERR_BUSY) {
        status = take_of_range(FIRST_PORT, PORT_COUNT - 1, &reserved, lease_out);
        if (status >= 0) {
            ds_accel__text_add(notes,
                               "no port outside %u to %u is free (net.ipv4.ip_local_port_range): "
                               "a connection may take port %u before the job uses it\n",
                               low, high, lease_out->port);
        }
    }
    return status == DS_ACCEL_ERR_BUSY
               ? ds_accel__error(DS_ACCEL_ERR_LIMIT, "no port from %u to %u is free", FIRST_PORT,
                                 PORT_COUNT - 1)
               : status;
}

/* ---- the master's port ---------------------------------------------------------------------- */

static int32_t take_given(uint16_t port, bool is_default, struct ds_accel__port_lease *lease_out,
                          struct ds_accel__text *notes)
{
    enum ds_accel__port_use use;
    char holder[512];
    int32_t status = take_free(port, true, lease_out, &use);

    if (status == DS_ACCEL_ERR_PERMISSION) {
        return ds_accel__error(status, "port %u: this user may not use it: choose a port above %u",
                               port, FIRST_PORT - 1);
    }
    if (status != DS_ACCEL_ERR_BUSY) {
        return status;
    }
    ds_accel__port_describe_holder(port, use, holder, sizeof(holder));
    if (!is_default) {
        return ds_accel__error(status, "port %u is taken by %s", port, holder);
    }
    status = take_any(lease_out, notes);
    if (status >= 0) {
        ds_accel__text_add(notes, "port %u, the default, is taken by %s: port %u is used\n", port,
                           holder, lease_out->port);
    }
    return status;
}

static int32_t take_within(uint16_t low, uint16_t high, struct ds_accel__port_lease *lease_out)
{
    enum ds_accel__port_use use;
    char holder[512];
    int32_t status = take_of_range(low, high, NULL, lease_out);

    if (status != DS_ACCEL_ERR_BUSY) {
        return status;
    }
    status = take_free(low, false, lease_out, &use); /* to know what holds it; it may be free now */
    if (status == DS_ACCEL_ERR_PERMISSION) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT,
                               "no port from %u to %u is free: this user may not use port %u", low,
                               high, low);
    }
    if (status != DS_ACCEL_ERR_BUSY) {
        return status;
    }
    ds_accel__port_describe_holder(low, use, holder, sizeof(holder));
    return ds_accel__error(DS_ACCEL_ERR_LIMIT,
                           "no port from %u to %u is free: port %u is taken by %s", low, high, low,
                           holder);
}

int32_t ds_accel__port_take(uint16_t low, uint16_t high, bool is_default,
                            struct ds_accel__port_lease *lease_out, struct ds_accel__text *notes)
{
    struct ds_accel__port_lease lease = {.fd = -1};
    int32_t status;

    if (low > high || (low == 0 && high > 0)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%u to %u is no range of ports", low, high);
    }
    status = low == 0      ? take_any(&lease, notes)
             : low == high ? take_given(low, is_default, &lease, notes)
                           : take_within(low, high, &lease);
    if (status >= 0 && notes->failed) {
        ds_accel__port_release(&lease);
        return ds_accel__no_memory();
    }
    if (status >= 0) {
        *lease_out = lease;
    }
    return status;
}

void ds_accel__port_release(struct ds_accel__port_lease *lease)
{
    if (lease->port != 0) {
        close(lease->fd);
    }
    lease->port = 0;
    lease->fd = -1;
}
