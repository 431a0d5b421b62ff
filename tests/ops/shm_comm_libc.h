/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The functions of libc that shm_comm calls, which the test program defines so that each of them
 * can fail, and the CPUs of a rank can be simulated. */
#ifndef TESTS_OPS_SHM_COMM_LIBC_H
#define TESTS_OPS_SHM_COMM_LIBC_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int calls_until_failure; /* 0: no failure; 1: the next call fails */
static int failure = ENOMEM;
static bool only_fallocate;
static bool ends_after_hello;

static bool must_fail(void)
{
    if (calls_until_failure == 0 || --calls_until_failure != 0)
        return false;
    errno = failure;
    return true;
}

static bool is_simulated; /* sched_getaffinity() returns simulated_cpus */
static cpu_set_t simulated_cpus;

#define REAL(function) \
    __typeof__(&(function)) real; \
    *(void **)&real = dlsym(RTLD_NEXT, #function)

#pragma GCC visibility push(default)

int memfd_create(const char *name, unsigned flags)
{
    REAL(memfd_create);
    return must_fail() ? -1 : real(name, flags);
}

int ftruncate(int file, off_t bytes)
{
    REAL(ftruncate);
    return must_fail() ? -1 : real(file, bytes);
}

int fallocate(int file, int mode, off_t offset, off_t bytes)
{
    REAL(fallocate);
    if (only_fallocate && mode == 0) {
        errno = failure;
        return -1;
    }
    return mode == 0 && must_fail() ? -1 : real(file, mode, offset, bytes);
}

int madvise(void *address, size_t bytes, int advice)
{
    REAL(madvise);
    return must_fail() ? -1 : real(address, bytes, advice);
}

int socket(int domain, int type, int protocol)
{
    REAL(socket);
    return must_fail() ? -1 : real(domain, type, protocol);
}

int listen(int file, int backlog)
{
    REAL(listen);
    return must_fail() ? -1 : real(file, backlog);
}

int accept4(int file, struct sockaddr *address, socklen_t *length, int flags)
{
    REAL(accept4);
    return must_fail() ? -1 : real(file, address, length, flags);
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags)
{
    REAL(sendmsg);
    ssize_t sent;

    if (must_fail())
        return -1;
    sent = real(file, message, flags);
    if (ends_after_hello)
        raise(SIGKILL);
    return sent;
}

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *cpus)
{
    REAL(sched_getaffinity);

    if (!is_simulated)
        return real(process, bytes, cpus);
    memset(cpus, 0, bytes);
    memcpy(cpus, &simulated_cpus, bytes < sizeof(simulated_cpus) ? bytes : sizeof(simulated_cpus));
    return 0;
}

#pragma GCC visibility pop

#endif
