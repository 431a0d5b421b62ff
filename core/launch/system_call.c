/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Decides whether ptrace() can stop a thread unnoticed. A stop ends the system call in which the
 * thread is blocked. The kernel repeats most calls by itself when the thread continues; the others
 * return to the program, also if it has no signal handler (signal(7), "Interruption of system calls
 * and library functions by stop signals"):
 *
 *      running, or in a page fault           no call is ended
 *      futex, poll, select, wait, nanosleep  repeated, with the time that is left
 *      read of a pipe                        repeated: nothing has been read
 *      epoll_wait, semop, sigtimedwait       fail with EINTR
 *      reads and writes of sockets           fail with EINTR if the socket has a timeout, and may
 *                                            return after a part of the data
 *      writes                                may return after a part of the data
 *      ioctl, reads of other files           the driver or file system decides
 *
 * A call counts as repeated only if it is in the table as such. A thread that is running may begin
 * another call in the microseconds before it is stopped; nothing prevents that. The numbers are
 * those of this program's own ABI, so a call of a 32-bit program may be taken for another one.
 */
#include "launch/system_call.h"
#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_LIMIT 4096u

enum effect {
    REPEATED,
    REPEATED_FOR_PIPES, /* the first argument is a descriptor */
    RETURNS,
};

static const struct {
    long number;
    const char *name;
    enum effect effect;
} calls[] = {
    {SYS_futex, "futex", REPEATED},
    {SYS_nanosleep, "nanosleep", REPEATED},
    {SYS_clock_nanosleep, "clock_nanosleep", REPEATED},
    {SYS_ppoll, "ppoll", REPEATED},
    {SYS_pselect6, "pselect6", REPEATED},
    {SYS_wait4, "wait4", REPEATED},
    {SYS_waitid, "waitid", REPEATED},
    {SYS_rt_sigsuspend, "rt_sigsuspend", REPEATED},
    {SYS_restart_syscall, "restart_syscall", REPEATED}, /* one of the above after a stop */
#ifdef SYS_poll
    {SYS_poll, "poll", REPEATED},
    {SYS_select, "select", REPEATED},
    {SYS_pause, "pause", REPEATED},
    {SYS_epoll_wait, "epoll_wait", RETURNS},
#endif
    {SYS_read, "read", REPEATED_FOR_PIPES},
    {SYS_readv, "readv", RETURNS},
    {SYS_write, "write", RETURNS},
    {SYS_writev, "writev", RETURNS},
    {SYS_accept, "accept", RETURNS},
    {SYS_accept4, "accept4", RETURNS},
    {SYS_connect, "connect", RETURNS},
    {SYS_recvfrom, "recvfrom", RETURNS},
    {SYS_recvmsg, "recvmsg", RETURNS},
    {SYS_recvmmsg, "recvmmsg", RETURNS},
    {SYS_sendto, "sendto", RETURNS},
    {SYS_sendmsg, "sendmsg", RETURNS},
    {SYS_epoll_pwait, "epoll_pwait", RETURNS},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, "epoll_pwait2", RETURNS},
#endif
#ifdef SYS_io_uring_enter
    {SYS_io_uring_enter, "io_uring_enter", RETURNS},
#endif
    {SYS_io_getevents, "io_getevents", RETURNS},
    {SYS_semop, "semop", RETURNS},
    {SYS_semtimedop, "semtimedop", RETURNS},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", RETURNS},
    {SYS_msgrcv, "msgrcv", RETURNS},
    {SYS_msgsnd, "msgsnd", RETURNS},
    {SYS_ioctl, "ioctl", RETURNS},
    {SYS_flock, "flock", RETURNS},
    {SYS_fcntl, "fcntl", RETURNS},
    {SYS_openat, "openat", RETURNS},
};

static bool is_pipe(pid_t pid, unsigned long long fd)
{
    static const char wanted[] = "pipe:[";
    char path[64], target[sizeof(wanted)] = "";

    snprintf(path, sizeof(path), "/proc/%ld/fd/%llu", (long)pid, fd);
    return readlink(path, target, sizeof(target) - 1) > 0 && strcmp(target, wanted) == 0;
}

/* text: "running", or the number of the call, -1 for none, and its arguments. */
static void parse(pid_t pid, const char *text, struct ds_accel__system_call *call)
{
    char *end;
    long number = strtol(text, &end, 10);

    *call = (struct ds_accel__system_call){.is_restarted = end == text || number < 0};
    if (call->is_restarted) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        if (calls[i].number == number) {
            snprintf(call->name, sizeof(call->name), "%s", calls[i].name);
            call->is_restarted =
                calls[i].effect == REPEATED ||
                (calls[i].effect == REPEATED_FOR_PIPES && is_pipe(pid, strtoull(end, NULL, 16)));
            return;
        }
    }
    snprintf(call->name, sizeof(call->name), "number %ld", number);
}

bool ds_accel__system_call_read(pid_t pid, pid_t tid, struct ds_accel__system_call *call_out)
{
    char path[64], *text;
    const char *cause;
    size_t size;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/syscall", (long)pid, (long)tid);
    if (ds_accel__file_read(path, FILE_LIMIT, &text, &size, &cause) < 0) {
        return false;
    }
    parse(pid, text, call_out);
    free(text);
    return true;
}
