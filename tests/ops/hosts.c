/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/hosts.h"

#include "ops/relay.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_NAMESPACES (CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWIPC)
#define VARIABLE "OPS_TEST_HOSTS"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static const char *directory;
static unsigned count;
static pid_t hosts[HOSTS_MOST]; /* their first processes; hosts[0]: the relay */
static _Atomic uint32_t *cut;   /* bits of hosts, shared with the relay */
static char failure[256];

__attribute__((format(printf, 1, 2))) static const char *fail(const char *format, ...)
{
    int code = errno;
    size_t length;
    va_list values;

    va_start(values, format);
    vsnprintf(failure, sizeof(failure), format, values);
    va_end(values);
    length = strlen(failure);
    snprintf(failure + length, sizeof(failure) - length, ": %s", strerror(code));
    return failure;
}

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

    if (file >= 0)
        close(file);
    return is_written;
}

/* ---- in a new host --------------------------------------------------------------------------- */

/* Give this host a boot id of its own. */
static bool bind_boot_id(unsigned host)
{
    char path[256];
    char text[64];

    snprintf(path, sizeof(path), "%s/boot-id-%u", directory, host);
    snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012u\n", host);
    return write_text(path, text) && mount(path, BOOT_ID, NULL, MS_BIND, NULL) == 0;
}

static bool bind_names(void)
{
    char path[256];
    char text[256] = "127.0.0.1 localhost\n10.77.0.1 head\n";

    for (unsigned host = 1; host < HOSTS_MOST; host++) {
        size_t length = strlen(text);

        snprintf(text + length, sizeof(text) - length, "10.77.0.%u h%u\n", host + 1, host);
    }
    snprintf(path, sizeof(path), "%s/names", directory);
    return write_text(path, text) && mount(path, "/etc/hosts", NULL, MS_BIND, NULL) == 0;
}

/* Set up the file systems and the name of the calling process's namespaces. */
static const char *furnish(unsigned host)
{
    char name[16] = "head";

    if (host)
        snprintf(name, sizeof(name), "h%u", host);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return fail("private mounts");
    if (mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
        return fail("a mount of /proc or /sys");
    if (mount("shm", "/dev/shm", "tmpfs", 0, NULL))
        return fail("a mount of /dev/shm");
    if (host % 2 == 0 && !bind_boot_id(host))
        return fail("a mount over %s", BOOT_ID);
    if (!bind_names())
        return fail("a mount over /etc/hosts");
    return sethostname(name, strlen(name)) ? fail("sethostname") : NULL;
}

/* Run a host until it is killed: nothing but its processes, which it takes over. */
__attribute__((noreturn)) static void run_host(unsigned host, int ready)
{
    const char *failed = furnish(host);
    bool is_ready = failed == NULL;

    if (failed)
        fprintf(stderr, "host %u: %s\n", host, failed);
    signal(SIGCHLD, SIG_IGN);
    if (write(ready, &is_ready, sizeof(is_ready)) != sizeof(is_ready) || !is_ready)
        _exit(1);
    close(ready);
    for (;;)
        pause();
}

/* ---- network --------------------------------------------------------------------------------- */

static bool set_flags(int socket, const char *device, short flags)
{
    struct ifreq request = {.ifr_flags = 0};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
    if (ioctl(socket, SIOCGIFFLAGS, &request))
        return false;
    request.ifr_flags = (short)(request.ifr_flags | flags);
    return ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

static bool set_address(int socket, unsigned long what, uint32_t address)
{
    struct ifreq request = {.ifr_name = HOSTS_DEVICE};
    struct sockaddr_in internet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};

    memcpy(&request.ifr_addr, &internet, sizeof(internet));
    return ioctl(socket, what, &request) == 0;
}

/* Make a TUN device in the calling thread's network; return its file, or -1. */
static int make_device(unsigned host)
{
    struct ifreq request = {.ifr_name = HOSTS_DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI};
    struct ifreq size = {.ifr_name = HOSTS_DEVICE, .ifr_mtu = RELAY_MTU};
    int file = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    int connection = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_made = file >= 0 && connection >= 0 && ioctl(file, TUNSETIFF, &request) == 0 &&
                   ioctl(connection, SIOCSIFMTU, &size) == 0 &&
                   set_address(connection, SIOCSIFADDR, 0x0A4D0001 + host) &&
                   set_address(connection, SIOCSIFNETMASK, 0xFFFFFF00) &&
                   set_flags(connection, HOSTS_DEVICE, IFF_UP | IFF_RUNNING) &&
                   set_flags(connection, "lo", IFF_UP);

    if (connection >= 0)
        close(connection);
    if (is_made)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

static bool enter_namespace(pid_t process, const char *name, int kind)
{
    char path[64];
    int file;
    bool has_entered;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)process, name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    has_entered = file >= 0 && setns(file, kind) == 0;
    if (file >= 0)
        close(file);
    return has_entered;
}

/* Make the devices of all hosts, then forward until the end. */
__attribute__((noreturn)) static void run_relay(unsigned delay_us, int ready)
{
    int files[HOSTS_MOST];
    bool is_ready = true;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned host = 0; host < count && is_ready; host++) {
        if (host)
            is_ready = enter_namespace(hosts[host], "net", CLONE_NEWNET);
        files[host] = is_ready ? make_device(host) : -1;
        is_ready = files[host] >= 0;
        if (!is_ready)
            fprintf(stderr, "%s\n", fail("a TUN device for host %u", host));
    }
    if (write(ready, &is_ready, sizeof(is_ready)) != sizeof(is_ready) || !is_ready)
        _exit(1);
    close(ready);
    relay(files, count, delay_us, cut);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* fork() into new namespaces, or into the same ones. */
static pid_t fork_into(int namespaces)
{
    return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
}

/* Start a host, or the relay for 0, and wait until it is ready. */
static const char *start(unsigned host, unsigned delay_us)
{
    int ends[2];
    bool is_ready = false;

    if (pipe2(ends, O_CLOEXEC))
        return fail("pipe");
    fflush(NULL);
    hosts[host] = fork_into(host ? HOST_NAMESPACES : 0);
    if (hosts[host] == 0 && host)
        run_host(host, ends[1]);
    if (hosts[host] == 0)
        run_relay(delay_us, ends[1]);
    close(ends[1]);
    if (hosts[host] < 0 || read(ends[0], &is_ready, sizeof(is_ready)) != sizeof(is_ready))
        is_ready = false;
    close(ends[0]);
    return is_ready ? NULL : fail("host %u does not start", host);
}

/* Name the hosts' processes to the remote shell: "h1=17 h2=19 ". */
static bool publish(void)
{
    char text[HOSTS_MOST * 16] = "";

    for (unsigned host = 1; host < count; host++) {
        size_t length = strlen(text);

        snprintf(text + length, sizeof(text) - length, "h%u=%d ", host, (int)hosts[host]);
    }
    return setenv(VARIABLE, text, 1) == 0;
}

const char *hosts_start(unsigned wanted, unsigned delay_us)
{
    const char *failed = NULL;

    atomic_store(cut, 0);
    count = wanted;
    for (unsigned host = 1; host < count && !failed; host++)
        failed = start(host, 0);
    if (!failed && !publish())
        failed = fail("setenv");
    return failed ? failed : start(0, delay_us);
}

void hosts_stop(void)
{
    for (unsigned host = 0; host < count; host++)
        hosts_kill(host);
}

void hosts_cut(unsigned host)
{
    atomic_fetch_or(cut, (uint32_t)1 << host);
}

void hosts_kill(unsigned host)
{
    if (hosts[host] <= 0)
        return;
    kill(hosts[host], SIGKILL);
    waitpid(hosts[host], NULL, 0);
    hosts[host] = 0;
}

static bool is_of_this_file(pid_t process)
{
    for (unsigned host = 0; host < HOSTS_MOST; host++)
        if (process == hosts[host])
            return true;
    return process == getpid();
}

/* Return whether a process with this name, if not NULL, has not ended. */
static bool is_alive(pid_t process, const char *name)
{
    char path[64];
    char text[512] = "";
    FILE *file;
    char *begin;
    char *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    begin = strchr(text, '(');
    end = strrchr(text, ')');
    if (!begin || !end || !end[1] || end[2] == 'Z' || end[2] == 'X')
        return false;
    *end = '\0';
    return !name || strcmp(begin + 1, name) == 0;
}

unsigned hosts_count_processes(const char *name)
{
    DIR *list = opendir("/proc");
    const struct dirent *entry;
    unsigned found = 0;

    while (list && (entry = readdir(list))) {
        pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);

        found += process > 0 && !is_of_this_file(process) && is_alive(process, name);
    }
    if (list)
        closedir(list);
    return found;
}

/* ---- the remote shell ------------------------------------------------------------------------ */

bool hosts_is_shell(const char *program)
{
    size_t length = strlen(program);

    return length >= 6 && strcmp(program + length - 6, "/enter") == 0;
}

/* Like ssh: the words of the command, with spaces between, are one for the shell. */
static char *join(int argc, char **argv)
{
    size_t bytes = 1;
    char *text;

    for (int i = 0; i < argc; i++)
        bytes += strlen(argv[i]) + 1;
    text = (char *)calloc(1, bytes);
    for (int i = 0; text && i < argc; i++) {
        strcat(text, argv[i]);
        strcat(text, " ");
    }
    return text;
}

static bool enter_host(const char *name)
{
    const char *variable = getenv(VARIABLE);
    const char *place = variable ? strstr(variable, name) : NULL;
    pid_t process;

    if (!place || strlen(name) != 2)
        return false;
    process = (pid_t)strtol(place + 3, NULL, 10);
    return enter_namespace(process, "uts", CLONE_NEWUTS) &&
           enter_namespace(process, "ipc", CLONE_NEWIPC) &&
           enter_namespace(process, "net", CLONE_NEWNET) &&
           enter_namespace(process, "pid", CLONE_NEWPID) &&
           enter_namespace(process, "mnt", CLONE_NEWNS);
}

int hosts_shell(int argc, char **argv)
{
    char here[4096];
    char *command;
    int status = 0;
    pid_t child;

    if (argc < 3)
        return 255;
    command = join(argc - 2, argv + 2);
    if (!command || !getcwd(here, sizeof(here)) || !enter_host(argv[1]) || chdir(here)) {
        fprintf(stderr, "enter %s: %s\n", argv[1], strerror(errno));
        free(command);
        return 255;
    }
    child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    free(command);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 255;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static bool link_shell(void)
{
    char own[4096];
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

    if (length <= 0)
        return false;
    own[length] = '\0';
    snprintf(path, sizeof(path), "%s/enter", directory);
    return symlink(own, path) == 0;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Be root of the new user namespace. */
static bool map_user(uid_t user, gid_t group)
{
    char users[32];
    char groups[32];

    snprintf(users, sizeof(users), "0 %u 1", (unsigned)user);
    snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)group);
    return write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", groups) &&
           write_text("/proc/self/uid_map", users);
}

/* Set up the head; return what is not permitted. */
static const char *be_head(uid_t user, gid_t group)
{
    const char *failed;
    int file;

    if (user != 0 && !map_user(user, group))
        return fail("a user namespace");
    failed = furnish(0);
    if (failed)
        return failed;
    file = make_device(0);
    if (file < 0)
        return fail("a TUN device");
    close(file);
    return link_shell() ? NULL : fail("a link in %s", directory);
}

const char *hosts_enter(const char *own_directory)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    int ends[2];
    ssize_t bytes;
    int status = 0;
    pid_t head;

    directory = own_directory;
    cut = (_Atomic uint32_t *)mmap(NULL, sizeof(*cut), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cut == MAP_FAILED || pipe2(ends, O_CLOEXEC))
        return fail("memory or a pipe");
    fflush(NULL);
    head = fork_into(HOST_NAMESPACES | (user ? CLONE_NEWUSER : 0));
    if (head < 0)
        return fail("new namespaces");
    if (head == 0) {
        const char *failed;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        failed = be_head(user, group);
        if (!failed) {
            close(ends[1]);
            return NULL;
        }
        if (write(ends[1], failed, strlen(failed)) < 0)
            _exit(2);
        _exit(1);
    }
    close(ends[1]);
    bytes = read(ends[0], failure, sizeof(failure) - 1);
    failure[bytes > 0 ? bytes : 0] = '\0';
    waitpid(head, &status, 0);
    if (bytes > 0)
        return failure;
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
