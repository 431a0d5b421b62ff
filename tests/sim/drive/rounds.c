/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Runs the walk over a real library, again and again in one process: in round N call number N of
 * the library fails with a code (opencl/failing.c). After each round none of the library's objects
 * may be left. In the first round no call of the library fails, and calls of the plugin may fail
 * only for functions that it lacks. With STEP and FIRST only every STEPth call fails, from call
 * FIRST on.
 *
 * Stops at the first failed round; otherwise prints the number of rounds.
 */
#include "drive.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUND_LIMIT 5000

static struct failing {
    void (*fail)(long call, int32_t code);
    long (*calls)(void);
    int (*has_failed)(void);
    const char *(*name)(void);
    const char *(*left)(void);
} failing;

static int find_one(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof(address));
    return address != NULL;
}

static int find_failing(const char *path)
{
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    return library != NULL && find_one(library, "failing_opencl_fail", &failing.fail) &&
           find_one(library, "failing_opencl_calls", &failing.calls) &&
           find_one(library, "failing_opencl_has_failed", &failing.has_failed) &&
           find_one(library, "failing_opencl_name", &failing.name) &&
           find_one(library, "failing_opencl_left", &failing.left);
}

/* Returns the objects that are left, after a wait because a callback may still be pending. */
static const char *settle(void)
{
    const char *left = failing.left();

    for (int i = 0; i < 2000 && left != NULL; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        left = failing.left();
    }
    return left;
}

/* Plays one round. Returns true if the plugin did not report the failure. */
static int play_round(struct run *run, long number, int32_t code)
{
    struct run round = {.table = run->table, .arguments = run->arguments, .awaited_code = code};
    const char *left;

    alarm(60); /* SIGALRM kills a process that hangs */
    failing.fail(number, code);
    printf("round %ld\n", number);
    drive_walk(&round);
    drive_want(&round, number > 0 || round.refused == round.missing,
               "nothing fails where no call does");
    left = settle();
    if (left != NULL) {
        printf("left %s\n", left);
        drive_wrong(&round, "something is left of the library's objects");
    }
    if (round.code != DRIVE_FINE) {
        printf("call %ld, %s, failed\n", number, failing.name());
    }
    drive_add(run, &round);
    return round.refused == round.missing;
}

/* Returns argument INDEX as a number, or otherwise if there are fewer arguments. */
static long number_of(char *const *arguments, int index, long otherwise)
{
    for (int i = 0; i <= index; i++) {
        if (arguments[i] == NULL) {
            return otherwise;
        }
    }
    return strtol(arguments[index], NULL, 10);
}

void drive_rounds(struct run *run)
{
    int32_t code = (int32_t)number_of(run->arguments, 1, 0);
    long step = number_of(run->arguments, 2, 1);
    long number = number_of(run->arguments, 3, 1) - step;
    long rounds = 0;
    int silent = 0;

    if (code == 0 || step <= 0 || number + step <= 0 || !find_failing(run->arguments[0])) {
        drive_wrong(run, "no LIBRARY and CODE for calls to fail, or no right STEP and FIRST");
        return;
    }
    play_round(run, 0, code);
    printf("%ld calls\n", failing.calls());
    do {
        number += step;
        rounds++;
        silent += play_round(run, number, code);
    } while (number < ROUND_LIMIT && run->code == DRIVE_FINE && failing.has_failed());
    printf("%ld failed in turn, %d of them in silence, %u told by their code\n", rounds - 1,
           silent - 1, run->awaited);
    drive_want(run, rounds > 1 && number < ROUND_LIMIT && run->awaited > 0,
               "calls fail, and are told by their code");
}
