/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The functions have external linkage or noinline, because their names are expected in stacks. */
#include "stall_programs.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile sig_atomic_t phase; /* counts SIGUSR2 */
static volatile uint64_t sink;

static void say(void)
{
    if (write(STDOUT_FILENO, ".", 1) != 1) {
        _exit(1);
    }
}

static NOINLINE void check_left(uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++) {
        sink += i;
    }
}

static NOINLINE void check_right(uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++) {
        sink ^= i;
    }
}

/* Spins, in changing functions, until the phase changes. */
static NOINLINE void all_reduce(int during)
{
    while (phase == during) {
        check_left(1000);
        check_right(3000);
        sink++;
    }
}

/* The same in a wait that names no operation. */
static NOINLINE void busy_wait(int during)
{
    while (phase == during) {
        check_right(1000);
        check_left(3000);
        sink += 5;
    }
}

static NOINLINE void solve(int during)
{
    while (phase == during) {
        check_right(2000);
        check_left(2000);
        sink *= 3; /* the compiler would merge equal functions */
    }
}

static NOINLINE void load_data(void)
{
    for (;;) {
        pause();
    }
}

static NOINLINE void read_message(void)
{
    int fds[2];
    char byte;

    if (pipe(fds) == 0) {
        say();
        while (read(fds[0], &byte, 1) != 1) {
        }
    }
}

static void next_phase(int number)
{
    (void)number;
    phase++;
    say();
}

/* Alternates with each SIGUSR2 between an all-reduce and other functions. */
static NOINLINE void train(void)
{
    for (;;) {
        all_reduce(phase);
        solve(phase);
    }
}

/* Alternates with each SIGUSR2 between two calls of an all-reduce. */
static NOINLINE void reduce_twice(void)
{
    for (;;) {
        all_reduce(phase);
        sink++;
        all_reduce(phase);
        sink += 2;
    }
}

/* Alternates with each SIGUSR2 between a sleep and work. */
static NOINLINE void rest_and_solve(void)
{
    for (;;) {
        for (int during = phase; phase == during;) {
            usleep(10000); /* a signal that comes before it is not missed */
        }
        solve(phase);
    }
}

static void *sleep_thread(void *argument)
{
    load_data();
    return argument;
}

static void *spin_thread(void *argument)
{
    pthread_setname_np(pthread_self(), "spinner");
    say();
    all_reduce(0);
    return argument;
}

static NOINLINE void run_threads(unsigned sleeping, void *(*last)(void *))
{
    pthread_t thread;

    for (unsigned i = 0; i < sleeping; i++) {
        pthread_create(&thread, NULL, sleep_thread, NULL);
    }
    pthread_create(&thread, NULL, last, NULL);
    pthread_join(thread, NULL);
}

/* Start a child that does something forever. */
static pid_t run_child(void (*work)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test may kill only the parent */
        work();
        _exit(1);
    }
    return pid;
}

static void say_and_reduce(void)
{
    say();
    all_reduce(0);
}

static void say_and_linger(void)
{
    say();
    busy_wait(phase);
}

static void say_and_solve(void)
{
    say();
    solve(0);
}

/* A shell-like process that waits for its children. */
static void run_wrapped(void (*first)(void), void (*second)(void))
{
    run_child(first);
    if (second != NULL) {
        run_child(second);
    }
    while (waitpid(-1, NULL, 0) >= 0) {
    }
}

/* A process that looks now and then whether its child has ended. */
static void run_polling(void (*work)(void))
{
    pid_t pid = run_child(work);

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        usleep(50000);
    }
}

static long long used_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000000000ll + used.tv_nsec;
}

/* Use CPU time. */
static void burn(long long ns)
{
    long long end_ns = used_ns() + ns;

    while (used_ns() < end_ns) {
        check_left(1000);
    }
}

/* Waits in epoll_wait(), and works after each SIGUSR2. Writes a byte more if the call fails without
 * a signal. */
static NOINLINE void serve_events(void)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;

    say();
    for (;;) {
        int during = phase;

        if (epoll_wait(epoll, &event, 1, -1) < 0) {
            burn(phase != during ? 30000000 : 0);
            say();
        }
    }
}

/* Sleeps and works in a function that waits. */
static NOINLINE void nap_and_wait(void)
{
    say();
    for (;;) {
        burn(1000000);
        usleep(2000);
    }
}

static NOINLINE void take_nap(void)
{
    struct timespec nap = {.tv_sec = 1000};

    say();
    while (nanosleep(&nap, NULL) != 0) {
    }
}

static void burn_and_sleep(void)
{
    burn(30000000);
    say();
    load_data();
}

/* Many children that have worked, and one that begins with SIGUSR2. */
static void run_herd(void)
{
    int fds[2];
    char byte;

    for (unsigned i = 0; i < STALL_HERD; i++) {
        run_child(burn_and_sleep);
    }
    if (pipe(fds) != 0) {
        return;
    }
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(fds[0], &byte, 1) == 1) {
            solve(0);
        }
    }
    while (phase == 0) {
        usleep(10000);
    }
    if (write(fds[1], ".", 1) == 1) {
        load_data();
    }
}

/* A process whose short children do all the work. */
static void run_spawner(void)
{
    pid_t pid;

    say();
    for (;;) {
        pid = fork();
        if (pid == 0) {
            burn(8000000);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

/* Leaves a process behind that works, and is not its descendant any more. */
static void run_orphan(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (fork() == 0) {
            alarm(600); /* if the test has failed to end it */
            say_and_solve();
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    load_data();
}

/* Also announces a handler that it does not have. */
static void run_unarmed(void)
{
    const char *fd = getenv("DS_ACCEL_FAULTHANDLER_FD");

    if (fd != NULL) {
        dprintf(atoi(fd), "armed %d %ld\n", SIGUSR1, (long)getpid());
    }
    say();
    load_data();
}

void stall_program_run(const char *name)
{
    signal(SIGUSR2, next_phase);
    if (strcmp(name, "threads") == 0) {
        run_threads(3, spin_thread);
    } else if (strcmp(name, "pipe") == 0) {
        read_message();
    } else if (strcmp(name, "events") == 0) {
        serve_events();
    } else if (strcmp(name, "naps") == 0) {
        nap_and_wait();
    } else if (strcmp(name, "nap") == 0) {
        take_nap();
    } else if (strcmp(name, "wrapped") == 0) {
        run_wrapped(say_and_reduce, NULL);
    } else if (strcmp(name, "pipeline") == 0) {
        run_wrapped(say_and_solve, load_data);
    } else if (strcmp(name, "idle pipeline") == 0) {
        run_wrapped(read_message, load_data);
    } else if (strcmp(name, "polling") == 0) {
        run_polling(say_and_solve);
    } else if (strcmp(name, "polling a spin") == 0) {
        run_polling(say_and_reduce);
    } else if (strcmp(name, "polling a wait") == 0) {
        run_polling(say_and_linger);
    } else if (strcmp(name, "herd") == 0) {
        run_herd();
    } else if (strcmp(name, "spawner") == 0) {
        run_spawner();
    } else if (strcmp(name, "orphan") == 0) {
        run_orphan();
    } else if (strcmp(name, "unarmed") == 0) {
        run_unarmed();
    } else if (strcmp(name, "secret") == 0) {
        prctl(PR_SET_DUMPABLE, 0);
    } else if (strcmp(name, "handler") == 0) {
        signal(SIGUSR1, next_phase);
    }
    say();
    if (strcmp(name, "spin") == 0) {
        all_reduce(0);
    } else if (strcmp(name, "compute") == 0) {
        solve(0);
    } else if (strcmp(name, "train") == 0) {
        train();
    } else if (strcmp(name, "places") == 0) {
        reduce_twice();
    } else if (strcmp(name, "rest") == 0) {
        rest_and_solve();
    } else if (strcmp(name, "many") == 0) {
        run_threads(48, sleep_thread);
    } else if (strcmp(name, "crowd") == 0) {
        run_threads(99, sleep_thread);
    }
    load_data();
}
