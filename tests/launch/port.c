/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The port of a job's master and its lease. Other processes hold ports: each is a child that does
 * one thing, reports that it is done, and waits until it is killed. As root, the test runs in a
 * network namespace of its own, and also changes the kernel's settings there. The functions are
 * internal, so this program is linked with the core's own objects.
 */
#include "launch/port.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAUNCHES 200
#define NOBODY 65534

static unsigned passed;
static unsigned failed;
static struct ds_accel__text notes;

static const char *noted(void)
{
    return notes.data != NULL ? notes.data : "";
}

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s: \"%s\", notes \"%s\"\n", name, ds_accel_last_error(), noted());
    }
}

static void need(bool right, const char *what)
{
    if (!right) {
        printf("FAILED: %s: %s: %s\n", what, strerror(errno), ds_accel_last_error());
        exit(1);
    }
}

/* ---- allocations that fail ------------------------------------------------------------------ */

static unsigned long fail_at; /* the next allocation that fails is the N-th from now; 0: none */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return fails() ? NULL : __real_realloc(pointer, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* ---- ports and processes -------------------------------------------------------------------- */

static int32_t take(uint16_t low, uint16_t high, bool is_default,
                    struct ds_accel__port_lease *lease)
{
    ds_accel__text_clear(&notes);
    return ds_accel__port_take(low, high, is_default, lease, &notes);
}

/* Return a port that is free. */
static uint16_t free_port(void)
{
    struct ds_accel__port_lease lease;
    uint16_t port;

    need(take(0, 0, false, &lease) >= 0, "take");
    port = lease.port;
    ds_accel__port_release(&lease);
    return port;
}

/* A child, which reports a number by a pipe when it is ready. */
struct child {
    pid_t pid;
    int pipe;
};

static struct child begin(int (*work)(uint16_t port), uint16_t port)
{
    struct child child;
    int ends[2];

    need(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    fflush(stdout);
    child.pid = fork();
    need(child.pid >= 0, "fork");
    if (child.pid == 0) {
        int number;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "holder");
        number = work(port);
        if (write(ends[1], &number, sizeof(number)) != (ssize_t)sizeof(number)) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(ends[1]);
    child.pipe = ends[0];
    return child;
}

static int result_of(const struct child *child)
{
    int number = -1;

    need(read(child->pipe, &number, sizeof(number)) == (ssize_t)sizeof(number), "a child's result");
    return number;
}

static void end(const struct child *child)
{
    close(child->pipe);
    kill(child->pid, SIGKILL);
    need(waitpid(child->pid, NULL, 0) == child->pid, "waitpid");
}

static int bind_to(int family, const char *address, uint16_t port)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const void *bound = family == AF_INET ? (const void *)&ipv4 : (const void *)&ipv6;
    socklen_t size = family == AF_INET ? sizeof(ipv4) : sizeof(ipv6);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, address, &ipv4.sin_addr);
    inet_pton(AF_INET6, address, &ipv6.sin6_addr);
    if (fd >= 0 && bind(fd, bound, size) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

static int listen_ipv4(uint16_t port)
{
    int fd = bind_to(AF_INET, "127.0.0.1", port);

    return fd >= 0 && listen(fd, 1) == 0;
}

static int listen_ipv6(uint16_t port)
{
    int fd = bind_to(AF_INET6, "::1", port);

    return fd >= 0 && listen(fd, 1) == 0;
}

static int only_bind(uint16_t port)
{
    return bind_to(AF_INET, "127.0.0.1", port) >= 0;
}

static struct ds_accel__port_lease held; /* by a child */

static int lease_port(uint16_t port)
{
    return take(port, port, false, &held) >= 0 ? held.port : 0;
}

static int lease_default(uint16_t port)
{
    return take(port, port, true, &held) >= 0 ? held.port : 0;
}

static int lease_any(uint16_t port)
{
    (void)port;
    return take(0, 0, false, &held) >= 0 ? held.port : 0;
}

static int lease_of_range(uint16_t port)
{
    return take(port, (uint16_t)(port + LAUNCHES - 1), false, &held) >= 0 ? held.port : 0;
}

/* ---- one port ------------------------------------------------------------------------------- */

static void test_lease(void)
{
    struct ds_accel__port_lease lease;
    struct ds_accel__port_lease other;
    uint16_t port = free_port();
    char holder[128];

    check("a free port is leased", take(port, port, false, &lease) >= 0 && lease.port == port);
    check("without a note", noted()[0] == '\0');
    check("the lease ends with execve()", (fcntl(lease.fd, F_GETFD) & FD_CLOEXEC) != 0);
    check("a leased port is taken", take(port, port, false, &other) == DS_ACCEL_ERR_BUSY);
    snprintf(holder, sizeof(holder), "port %u is taken by another launch, process %ld (port", port,
             (long)getpid());
    check("by the process that has the lease", strstr(ds_accel_last_error(), holder) != NULL);
    ds_accel__port_release(&lease);
    check("the lease is gone", lease.port == 0);
    ds_accel__port_release(&lease);
    check("a released port is free", take(port, port, false, &lease) >= 0);
    ds_accel__port_release(&lease);
    check("a range goes upwards", take(20, 10, false, &lease) == DS_ACCEL_ERR_INVALID);
    check("from 1 at least", take(0, 10, false, &lease) == DS_ACCEL_ERR_INVALID);
}

static void test_taken(const char *name, int (*work)(uint16_t port), bool is_seen)
{
    struct ds_accel__port_lease lease = {.fd = -1};
    uint16_t port = free_port();
    struct child child = begin(work, port);
    char holder[128];

    need(result_of(&child) == 1, name);
    check(name, take(port, port, false, &lease) == DS_ACCEL_ERR_BUSY && lease.port == 0);
    snprintf(holder, sizeof(holder), "port %u is taken by process %ld (holder) of user ", port,
             (long)child.pid);
    check("its holder", strstr(ds_accel_last_error(), is_seen ? holder
                                                              : "is taken by a socket that is "
                                                                "bound, but does not listen"));
    check("the default port is replaced",
          take(port, port, true, &lease) >= 0 && lease.port != port);
    snprintf(holder, sizeof(holder), ": port %u is used\n", lease.port);
    check("with a note", strstr(noted(), ", the default, is taken by ") != NULL &&
                             strstr(noted(), holder) != NULL);
    ds_accel__port_release(&lease);
    end(&child);
    check("afterwards it is free", take(port, port, false, &lease) >= 0);
    ds_accel__port_release(&lease);
}

static void test_killed(void)
{
    struct ds_accel__port_lease lease;
    uint16_t port = free_port();
    struct child child = begin(lease_port, port);
    char holder[128];

    need(result_of(&child) == port, "lease");
    check("a lease of another process", take(port, port, false, &lease) == DS_ACCEL_ERR_BUSY);
    snprintf(holder, sizeof(holder), "another launch, process %ld (holder)", (long)child.pid);
    check("is that of its process", strstr(ds_accel_last_error(), holder) != NULL);
    end(&child);
    check("a lease ends with its process", take(port, port, false, &lease) >= 0);
    ds_accel__port_release(&lease);
}

/*
 * Leave a connection behind: the server closes it first, so that its end remains in the kernel.
 * is_reused: the server sets SO_REUSEADDR, as most do.
 */
static void test_lingering(bool is_reused)
{
    struct ds_accel__port_lease lease;
    uint16_t port = free_port();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int reuse = is_reused;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted;
    char byte;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    need(bind(server, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    need(listen(server, 1) == 0, "listen");
    need(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
    accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    need(accepted >= 0, "accept");
    check("a server", take(port, port, false, &lease) == DS_ACCEL_ERR_BUSY);
    close(server);
    close(accepted);
    need(read(client, &byte, 1) == 0, "read");
    close(client);
    if (is_reused) {
        check("what is left of its connections does no harm", take(port, port, false, &lease) >= 0);
        ds_accel__port_release(&lease);
    } else {
        check("without SO_REUSEADDR, its connections hold the port",
              take(port, port, false, &lease) == DS_ACCEL_ERR_BUSY &&
                  strstr(ds_accel_last_error(), "taken by a connection that is ending") != NULL);
    }
}

/* ---- many launches -------------------------------------------------------------------------- */

/* Let many processes lease ports at once; true if each has its own. */
static bool launch_all(struct child *children, int (*work)(uint16_t port), uint16_t port,
                       unsigned *given_count_out)
{
    static uint8_t uses[65536];
    bool is_right = true;

    memset(uses, 0, sizeof(uses));
    *given_count_out = 0;
    for (size_t i = 0; i < LAUNCHES; i++) {
        children[i] = begin(work, port);
    }
    for (size_t i = 0; i < LAUNCHES; i++) {
        int number = result_of(&children[i]);

        is_right = is_right && number > 1024 && number < 65536 && ++uses[number & 0xffff] == 1;
        *given_count_out += number == port;
    }
    return is_right;
}

static void end_all(const struct child *children)
{
    for (size_t i = 0; i < LAUNCHES; i++) {
        end(&children[i]);
    }
}

/* Can the port be bound on all addresses of the family? A family that is switched off is no
 * obstacle. */
static bool is_bindable(int family, const char *address, uint16_t port)
{
    int fd = bind_to(family, address, port);

    if (fd < 0) {
        return errno != EADDRINUSE;
    }
    close(fd);
    return true;
}

/*
 * Return the first of as many free ports as there are launches. Connections of the tests before may
 * still hold ports, which are passed over.
 */
static uint16_t free_range(void)
{
    uint16_t port = (uint16_t)(12000 + getpid() % 90 * LAUNCHES);
    unsigned count = 0;

    while (count < LAUNCHES && port < UINT16_MAX) {
        bool is_free = is_bindable(AF_INET, "0.0.0.0", port) && is_bindable(AF_INET6, "::", port);

        count = is_free ? count + 1 : 0;
        port++;
    }
    need(count == LAUNCHES, "a range of free ports");
    return (uint16_t)(port - LAUNCHES);
}

static void test_many(void)
{
    struct child children[LAUNCHES];
    struct ds_accel__port_lease lease;
    uint16_t low = free_range();
    char error[128];
    unsigned given_count;

    check("200 launches lease 200 ports", launch_all(children, lease_any, 0, &given_count));
    end_all(children);
    check("one of 200 gets the default port",
          launch_all(children, lease_default, free_port(), &given_count) && given_count == 1);
    end_all(children);
    check("a range has a port for each", launch_all(children, lease_of_range, low, &given_count));
    check("and no more",
          take(low, (uint16_t)(low + LAUNCHES - 1), false, &lease) == DS_ACCEL_ERR_LIMIT);
    snprintf(error, sizeof(error),
             "no port from %d to %d is free: port %d is taken by another launch, process ", low,
             low + LAUNCHES - 1, low);
    check("says the error", strstr(ds_accel_last_error(), error) != NULL);
    end_all(children);
}

/* ---- limits --------------------------------------------------------------------------------- */

static unsigned count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    need(directory != NULL, "opendir");
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void test_memory(void)
{
    unsigned count = count_descriptors();
    uint16_t port = free_port();
    struct child child = begin(listen_ipv4, port);
    struct ds_accel__port_lease lease = {.fd = -1};
    unsigned long number = 1;
    bool is_complete = false;
    bool is_right = result_of(&child) == 1;

    while (!is_complete && is_right) {
        int32_t status;

        ds_accel__text_clear(&notes);
        fail_at = number++;
        status = ds_accel__port_take(port, port, true, &lease, &notes);
        is_complete = fail_at > 0;
        fail_at = 0;
        is_right = status >= 0 ? lease.port != 0 && !notes.failed
                               : status == DS_ACCEL_ERR_NO_MEMORY && lease.port == 0;
        is_right = is_right && (status >= 0) == is_complete;
        ds_accel__port_release(&lease);
    }
    check("each failed allocation is an error", is_right && number > 3);
    end(&child);
    check("and leaves no descriptor", count_descriptors() == count);
}

static int lease_without_descriptors(uint16_t port)
{
    const struct rlimit none = {0, 0};
    struct ds_accel__port_lease lease;

    need(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
    return take(port, port, false, &lease) == DS_ACCEL_ERR_LIMIT &&
           strstr(ds_accel_last_error(), "Too many open files") != NULL;
}

static void check_child(const char *name, int (*work)(uint16_t port), uint16_t port)
{
    struct child child = begin(work, port);

    check(name, result_of(&child) == 1);
    end(&child);
}

/* ---- as root -------------------------------------------------------------------------------- */

static void set(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    need(fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value), path);
    close(fd);
}

/* Lease a port that a process of another network namespace has leased. */
static int lease_elsewhere(uint16_t port)
{
    struct ds_accel__port_lease lease;

    return unshare(CLONE_NEWNET) == 0 && take(port, port, false, &lease) >= 0;
}

static int lease_outside(uint16_t port)
{
    struct ds_accel__port_lease lease;
    bool is_right;

    (void)port;
    need(unshare(CLONE_NEWNET) == 0, "unshare");
    set("/proc/sys/net/ipv4/ip_local_port_range", "10001 65535");
    set("/proc/sys/net/ipv4/ip_local_reserved_ports", "1025-9000,9002-10000");
    is_right = take(0, 0, false, &lease) >= 0 && lease.port == 9001 && noted()[0] == '\0';
    is_right = is_right && take(0, 0, false, &lease) >= 0 && lease.port > 10000 &&
               strstr(noted(), "no port outside 10001 to 65535 is free") != NULL;
    set("/proc/sys/net/ipv4/ip_local_reserved_ports", "1025-65535");
    return is_right && take(0, 0, false, &lease) == DS_ACCEL_ERR_LIMIT &&
           strstr(ds_accel_last_error(), "no port from 1025 to 65535 is free") != NULL;
}

static int lease_without_ipv6(uint16_t port)
{
    struct ds_accel__port_lease lease;

    need(unshare(CLONE_NEWNET) == 0, "unshare");
    set("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    return take(port, port, false, &lease) >= 0;
}

static int lease_as_nobody(uint16_t port)
{
    struct ds_accel__port_lease lease;

    need(unshare(CLONE_NEWNET) == 0, "unshare");
    set("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024");
    need(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "setuid");
    return take(port, port, false, &lease) == DS_ACCEL_ERR_PERMISSION &&
           take(port, (uint16_t)(port + 1), false, &lease) == DS_ACCEL_ERR_LIMIT;
}

static int see_as_nobody(uint16_t port)
{
    struct ds_accel__port_lease lease;

    need(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "setuid");
    return take(port, port, false, &lease) == DS_ACCEL_ERR_BUSY &&
           strstr(ds_accel_last_error(), "is taken by another user's process, of user root") !=
               NULL;
}

/* Enter a network namespace in which no other program uses a port. */
static void isolate(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd;

    need(unshare(CLONE_NEWNET) == 0, "unshare");
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    need(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0, "lo");
    close(fd);
}

static void test_as_root(void)
{
    struct ds_accel__port_lease lease;
    uint16_t port = free_port();
    struct child child;

    need(take(port, port, false, &lease) >= 0, "take");
    check_child("each network namespace has its ports", lease_elsewhere, port);
    ds_accel__port_release(&lease);
    check_child("ports of connections and reserved ports are avoided", lease_outside, 0);
    check_child("IPv6 may be off", lease_without_ipv6, port);
    check_child("a port may be forbidden", lease_as_nobody, 80);
    child = begin(listen_ipv4, port);
    need(result_of(&child) == 1, "listen");
    check_child("another user's process", see_as_nobody, port);
    end(&child);
}

int main(void)
{
    if (geteuid() == 0) {
        isolate();
    }
    test_lease();
    test_taken("a port on which a process listens", listen_ipv4, true);
    test_taken("by IPv6", listen_ipv6, true);
    test_taken("a port that is only bound", only_bind, false);
    test_killed();
    test_lingering(true);
    test_lingering(false);
    test_many();
    test_memory();
    check_child("without descriptors, no port is taken", lease_without_descriptors, free_port());
    if (geteuid() == 0) {
        test_as_root();
    }
    ds_accel__text_clear(&notes);
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
