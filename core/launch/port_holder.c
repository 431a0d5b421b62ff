/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds the process that holds a port, for an error text. The kernel reports the process of a lease
 * to a socket that connects to it (SO_PEERCRED). For a TCP socket it lists port, user and inode in
 * /proc/net/tcp and tcp6, and the inode is that of a link in /proc/PID/fd of the process, which
 * only the same user and root may read.
 */
#include "base/text.h"
#include "launch/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_USER ((uid_t)-1)

/* A socket that uses a port. */
struct use {
    bool is_found;
    uid_t user;
    unsigned long inode; /* 0: no process has it, because the connection is ending */
};

/* ---- sockets -------------------------------------------------------------------------------- */

/*
 * Read a line of /proc/net/tcp or tcp6. The first socket that a process has is kept: sockets that
 * listen are listed before those that are connected.
 */
static void read_line(const char *line, uint16_t port, struct use *use)
{
    unsigned local;
    unsigned user;
    unsigned long inode;

    if (sscanf(line, "%*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*s %*s %*s %u %*u %lu", &local,
               &user, &inode) == 3 &&
        local == port && use->inode == 0) {
        use->is_found = true;
        use->user = user;
        use->inode = inode;
    }
}

static void read_file(const char *path, uint16_t port, struct use *use)
{
    FILE *file = fopen(path, "re");
    char line[512];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        read_line(line, port, use);
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void find_use(uint16_t port, struct use *use)
{
    *use = (struct use){.user = NO_USER};
    read_file("/proc/self/net/tcp", port, use);
    read_file("/proc/self/net/tcp6", port, use);
}

bool ds_accel__port_is_listed(uint16_t port)
{
    struct use use;

    find_use(port, &use);
    return use.is_found;
}

/* ---- processes ------------------------------------------------------------------------------ */

static bool has_socket(const char *process, unsigned long inode)
{
    char path[64];
    char wanted[64];
    DIR *directory;
    struct dirent *entry;
    bool is_found = false;

    snprintf(path, sizeof(path), "/proc/%.20s/fd", process);
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    directory = opendir(path);
    while (directory != NULL && !is_found && (entry = readdir(directory)) != NULL) {
        char target[64];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target));

        is_found = length == (ssize_t)strlen(wanted) && memcmp(target, wanted, (size_t)length) == 0;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return is_found;
}

/* Return the first process that has the socket open; 0: none that this user may see. */
static pid_t find_process(unsigned long inode)
{
    DIR *directory = inode != 0 ? opendir("/proc") : NULL;
    struct dirent *entry;
    pid_t pid = 0;

    while (directory != NULL && pid == 0 && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            has_socket(entry->d_name, inode)) {
            pid = (pid_t)strtol(entry->d_name, NULL, 10);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return pid;
}

socklen_t ds_accel__port_lease_address(uint16_t port, struct sockaddr_un *address)
{
    int length;

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    /* The name begins with NUL, and is not terminated by one. */
    length =
        snprintf(&address->sun_path[1], sizeof(address->sun_path) - 1, "ds-accel/port/%u", port);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Return the process and the user that have the lease of a port; 0 and NO_USER: unknown. */
static pid_t find_leaser(uint16_t port, uid_t *user_out)
{
    struct ucred peer = {.uid = NO_USER};
    socklen_t size = sizeof(peer);
    struct sockaddr_un address;
    socklen_t address_size = ds_accel__port_lease_address(port, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, address_size) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        peer = (struct ucred){.uid = NO_USER};
    }
    if (fd >= 0) {
        close(fd);
    }
    *user_out = peer.uid;
    return peer.pid;
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Write the name of a process, or "?" if it cannot be read. */
static void read_name(pid_t pid, char *name, size_t size)
{
    char path[64];
    ssize_t length = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, name, size - 1);
        close(fd);
    }
    name[length > 0 ? length : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    ds_accel__sanitize(name, size);
    if (name[0] == '\0') {
        ds_accel__copy(name, size, "?");
    }
}

/* Write "user NAME", or the number of a user without a name. */
static void name_user(uid_t user, char *text, size_t size)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char buffer[4096];

    if (getpwuid_r(user, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL) {
        snprintf(text, size, "user %s", found->pw_name);
    } else {
        snprintf(text, size, "user %u", (unsigned)user);
    }
}

static void describe(pid_t pid, uid_t user, const char *prefix, char *text, size_t size)
{
    char name[64];
    char owner[128] = "";

    if (user != NO_USER) {
        name_user(user, owner, sizeof(owner));
    }
    if (pid > 0) {
        read_name(pid, name, sizeof(name));
        snprintf(text, size, "%sprocess %ld (%s)%s%s", prefix, (long)pid, name,
                 owner[0] != '\0' ? " of " : "", owner);
    } else if (user != NO_USER && user != geteuid()) {
        snprintf(text, size, "%sanother user's process, of %s", prefix, owner);
    } else {
        snprintf(text, size, "%sa process that is not visible here%s%s", prefix,
                 owner[0] != '\0' ? ", of " : "", owner);
    }
}

void ds_accel__port_describe_holder(uint16_t port, enum ds_accel__port_use use, char *text,
                                    size_t text_size)
{
    struct use socket_use;
    uid_t user;
    pid_t pid;

    if (use == DS_ACCEL__PORT_LEASED) {
        pid = find_leaser(port, &user);
        describe(pid, user, "another launch, ", text, text_size);
        return;
    }
    find_use(port, &socket_use);
    if (!socket_use.is_found) {
        snprintf(text, text_size, "%s", "a socket that is bound, but does not listen");
    } else if (socket_use.inode == 0) {
        snprintf(text, text_size, "%s", "a connection that is ending, which takes up to a minute");
    } else {
        describe(find_process(socket_use.inode), socket_use.user, "", text, text_size);
    }
}
