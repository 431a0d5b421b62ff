/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/ccl_comm_nodes.h"

#include "ops/ccl_comm_results.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- functions of libc that fail ------------------------------------------------------------- */

enum function {
    SOCKET,
    BIND,
    LISTEN,
    CONNECT,
    ACCEPT,
    MEMFD,
    SENDMSG,
    MAP, /* the memory cannot be mapped */
    FUNCTIONS
};

static const char *const names[FUNCTIONS] = {"socket", "bind",         "listen",  "connect",
                                             "accept", "memfd_create", "sendmsg", "mmap"};

static struct {
    enum function function;
    unsigned number; /* of the call that fails; 0: none */
    unsigned calls;  /* so far, by the op */
    int cause;
} fault;

static bool is_of_op(const void *caller)
{
    Dl_info own;
    Dl_info other;

    return dladdr((const void *)ccl, &own) && dladdr(caller, &other) &&
           own.dli_fbase == other.dli_fbase;
}

static bool must_fail(enum function function, const void *caller)
{
    if (fault.number == 0 || fault.function != function || !is_of_op(caller))
        return false;
    if (++fault.calls != fault.number)
        return false;
    errno = fault.cause;
    return true;
}

/* Let no one map a memfd for writing any more that a message has. */
static void forbid_to_map(const struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int file;

    if (!header)
        return;
    memcpy(&file, CMSG_DATA(header), sizeof(file));
    CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0, "a seal: %s", strerror(errno));
}

#define CALLER __builtin_return_address(0)
#define REAL(function) \
    __typeof__(&(function)) real; \
    *(void **)&real = dlsym(RTLD_NEXT, #function)

#pragma GCC visibility push(default)

int socket(int domain, int type, int protocol)
{
    REAL(socket);
    return must_fail(SOCKET, CALLER) ? -1 : real(domain, type, protocol);
}

int bind(int file, const struct sockaddr *address, socklen_t length)
{
    REAL(bind);
    return must_fail(BIND, CALLER) ? -1 : real(file, address, length);
}

int listen(int file, int backlog)
{
    REAL(listen);
    return must_fail(LISTEN, CALLER) ? -1 : real(file, backlog);
}

int connect(int file, const struct sockaddr *address, socklen_t length)
{
    REAL(connect);
    return must_fail(CONNECT, CALLER) ? -1 : real(file, address, length);
}

int accept4(int file, struct sockaddr *address, socklen_t *length, int flags)
{
    REAL(accept4);
    return must_fail(ACCEPT, CALLER) ? -1 : real(file, address, length, flags);
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags)
{
    REAL(sendmsg);
    if (must_fail(MAP, CALLER))
        forbid_to_map(message);
    return must_fail(SENDMSG, CALLER) ? -1 : real(file, message, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    REAL(memfd_create);
    return must_fail(MEMFD, CALLER) ? -1 : real(name, flags | MFD_ALLOW_SEALING);
}

#pragma GCC visibility pop

/* ---- checks ---------------------------------------------------------------------------------- */

/* What happens if a call of a rank in create() fails, when three ranks could share a node. */
static const struct fault_case {
    uint32_t victim;
    enum function function;
    unsigned number;
    int cause;
    uint32_t nodes; /* 0: create() fails, and names the victim */
} cases[] = {
    {0, SOCKET, 1, EACCES, 2},  {0, SOCKET, 1, EMFILE, 0},  {0, BIND, 1, EACCES, 2},
    {0, BIND, 1, ENOMEM, 0},    {0, LISTEN, 1, EACCES, 2},  {0, LISTEN, 1, ENOBUFS, 0},
    {0, ACCEPT, 1, EACCES, 3},  {0, ACCEPT, 1, EMFILE, 0},  {0, ACCEPT, 2, EACCES, 2},
    {0, MEMFD, 1, EACCES, 2},   {0, MEMFD, 1, ENFILE, 0},   {0, SENDMSG, 1, EACCES, 2},
    {0, SENDMSG, 2, EACCES, 2}, {0, MAP, 1, 0, 3},          {1, SOCKET, 1, EACCES, 1},
    {1, SOCKET, 1, EMFILE, 0},  {1, BIND, 1, EACCES, 1},    {1, SOCKET, 2, EACCES, 2},
    {1, SOCKET, 2, ENFILE, 0},  {1, CONNECT, 1, EACCES, 2}, {1, CONNECT, 1, ECONNREFUSED, 2},
    {1, CONNECT, 1, EAGAIN, 0}, {2, CONNECT, 1, ENOMEM, 0}, {2, CONNECT, 1, EACCES, 2},
};

/* Add one per rank, to the sum of all. */
static int32_t count_ranks(ds_accel_comm_t *comm, int32_t *sum, struct ds_accel_error *error)
{
    int32_t one = 1;
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = DS_ACCEL_DTYPE_INT32,
        .reduction = DS_ACCEL_COMM_SUM,
        .in = &one,
        .out = sum,
        .count = 1,
    };

    return ccl->all_reduce(comm, &call, error);
}

static void check_nodes(ds_accel_comm_t *comm, const struct fault_case *now, uint32_t size)
{
    struct ds_accel_ccl_comm_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t sum = 0;

    CHECK(ccl->info(comm, &info, NULL) == DS_ACCEL_OK && info.nodes == now->nodes,
          "%s %u of rank %u: %u nodes, wanted %u", names[now->function], now->number, now->victim,
          info.nodes, now->nodes);
    CHECK(count_ranks(comm, &sum, &error) == DS_ACCEL_OK && sum == (int32_t)size,
          "%s %u of rank %u: %d ranks, %s", names[now->function], now->number, now->victim, sum,
          error.message);
}

static void check_case(const struct fault_case *now, uint32_t own, uint32_t size,
                       const struct ds_accel_ccl_comm_options *options)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = NULL;
    char name[32];
    int32_t status;

    fault.function = now->function;
    fault.number = now->victim == own ? now->number : 0;
    fault.cause = now->cause;
    fault.calls = 0;
    status = ccl->create(options, &comm, &error);
    CHECK(now->victim != own || fault.calls >= now->number, "%s: only %u calls",
          names[now->function], fault.calls);
    fault.number = 0;
    snprintf(name, sizeof(name), "rank %u: ", now->victim);
    if (now->nodes)
        CHECK(status == DS_ACCEL_OK, "%s %u of rank %u: %s", names[now->function], now->number,
              now->victim, error.message);
    else
        CHECK((status == DS_ACCEL_ERR_LIMIT || status == DS_ACCEL_ERR_NO_MEMORY) &&
                  strstr(error.message, name),
              "%s %u of rank %u: status %d, \"%s\"", names[now->function], now->number, now->victim,
              status, error.message);
    if (status == DS_ACCEL_OK)
        check_nodes(comm, now, size);
    ccl->destroy(comm);
}

void ccl_check_nodes(const struct ds_accel_ccl_comm_info *info,
                     const struct ds_accel_ccl_comm_options *options)
{
    CHECK(info->size == 3 && info->nodes == 1, "%u ranks on %u nodes", info->size, info->nodes);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_case(&cases[i], info->rank, info->size, options);
}
