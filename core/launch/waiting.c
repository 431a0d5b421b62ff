/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Decides from the names of functions and libraries whether a thread waits. A thread that spins in
 * an all-reduce uses as much CPU time as one that computes, and stacks alone do not distinguish
 * them:
 *
 *      main -> train -> MPI_Allreduce -> (many functions, changing)     waits
 *      main -> train -> solve -> (many functions, changing)             computes
 *
 * Therefore a wait is a known library of communication or of a device's runtime, or a function with
 * the name of a collective operation or of waiting. The outermost such frame is the wait, because
 * frames inside it change while it spins. A function of the program whose name is not known as one
 * of waiting computes, so a stall in it is not found; the opposite error would end healthy jobs.
 */
#include "base/text.h"
#include "launch/stack.h"

#include <ctype.h>
#include <string.h>

#define NAME_SIZE 256

/* Beginnings of the file names of libraries in which a thread only waits or communicates. */
static const char *const libraries[] = {
    "libmpi",   "libopen-pal", "libnccl",        "librccl",     "libhccl",     "libcnccl",
    "libccl.",  "libgloo",     "libucp.",        "libuct.",     "libfabric",   "libpsm2",
    "libcuda.", "libcudart",   "libhsa-runtime", "libamdhip64", "libze_loader"};

/* Parts of the names of collective and point-to-point operations, without '_', in lower case. */
static const char *const operations[] = {"allreduce", "allgather", "reducescatter", "alltoall",
                                         "broadcast", "bcast",     "barrier",       "gatherv",
                                         "scatterv",  "sendrecv",  "waitall",       "waitany"};

/* Ends of the names of functions that wait, in lower case. */
static const char *const endings[] = {"wait", "synchronize", "progress", "poll", "_yield", "_spin"};

#define ANONYMOUS "(anonymous namespace)"

size_t ds_accel__waiting_name_length(const char *function)
{
    bool is_anonymous = strncmp(function, ANONYMOUS, strlen(ANONYMOUS)) == 0;
    size_t length = is_anonymous ? strlen(ANONYMOUS) : 0;

    while (function[length] != '\0' && function[length] != '(') {
        length++;
        if (strncmp(function + length, ANONYMOUS, strlen(ANONYMOUS)) == 0) {
            length += strlen(ANONYMOUS);
        }
    }
    return length;
}

/* Copy the name without arguments, in lower case, and without '_' if skip is '_'. */
static void plain_name(const char *function, char skip, char *name)
{
    size_t used = 0, length = ds_accel__waiting_name_length(function);

    for (size_t i = 0; i < length && used < NAME_SIZE - 1; i++) {
        if (function[i] != skip) {
            name[used++] = (char)tolower((unsigned char)function[i]);
        }
    }
    name[used] = '\0';
}

bool ds_accel__waiting_is_communication(const char *function)
{
    char name[NAME_SIZE];

    if (strncmp(function, "MPI_", 4) == 0 || strncmp(function, "PMPI_", 5) == 0 ||
        strncmp(function, "nccl", 4) == 0) {
        return true;
    }
    plain_name(function, '_', name);
    for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
        if (strstr(name, operations[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_waiting(const struct ds_accel__frame *frame)
{
    char name[NAME_SIZE];
    size_t length;

    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
        if (strncmp(frame->module, libraries[i], strlen(libraries[i])) == 0) {
            return true;
        }
    }
    if (ds_accel__waiting_is_communication(frame->function)) {
        return true;
    }
    plain_name(frame->function, '\0', name);
    length = strlen(name);
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        size_t size = strlen(endings[i]);

        if (length >= size && strcmp(name + length - size, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

size_t ds_accel__waiting_frame(const struct ds_accel__frame *frames, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        if (is_waiting(&frames[i])) {
            return i;
        }
    }
    return count;
}
