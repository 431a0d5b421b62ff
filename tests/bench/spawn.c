/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* spawn COUNT PROGRAM: the baseline of a job: starts processes, each bound to a CPU, and waits. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bind this process to one of the allowed CPUs, in turn. */
static void bind(int number, const cpu_set_t *allowed)
{
    int skip = number % CPU_COUNT(allowed);
    cpu_set_t one;

    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && skip-- == 0) {
            CPU_SET(cpu, &one);
        }
    }
    sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
    int count = argc == 3 ? atoi(argv[1]) : 0;
    int failed = count == 0;
    cpu_set_t allowed;
    int state;

    if (failed || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        fputs("usage: spawn COUNT PROGRAM\n", stderr);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            bind(i, &allowed);
            execv(argv[2], argv + 2);
            _exit(127);
        }
        failed |= pid < 0;
    }
    while (wait(&state) > 0) {
        failed |= state != 0;
    }
    return failed;
}
