/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Defines malloc() and its relatives, which the dynamic linker finds before glibc's. Compile it and
 * all that calls these functions with -fno-builtin. */
#include "alloc/allocations.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER
#endif

#ifdef HAS_SANITIZER

bool allocations_can_fail(void)
{
    return false;
}

void allocations_count(unsigned long failing)
{
    (void)failing;
}

unsigned long allocations_stop(long *left_out)
{
    *left_out = 0;
    return 0;
}

unsigned long allocations_counted(void)
{
    return 0;
}

void allocations_spare_children(void)
{
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *pointer);

/* Atomic, because a process can have threads of its own, such as the workers of the cpu plugin. */
static atomic_bool counting;
static atomic_ulong calls;   /* allocations since counting began */
static atomic_ulong fail_at; /* number of the allocation that fails; 0: none */
static atomic_long live;     /* blocks allocated minus blocks freed while counting */
static pid_t counting_pid;   /* the only process that counts; 0: children too */
static bool spares_children;

static bool is_counting(void)
{
    return counting && (counting_pid == 0 || counting_pid == getpid());
}

static bool must_fail(void)
{
    if (!is_counting() || atomic_fetch_add(&calls, 1) + 1 != fail_at) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

static void *made(void *pointer)
{
    live += is_counting() && pointer != NULL;
    return pointer;
}

/* Exported to every library of the process, whatever visibility the tests are compiled with. */
#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return must_fail() ? NULL : made(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : made(__libc_calloc(count, size));
}

void *realloc(void *pointer, size_t size)
{
    void *moved;

    if (must_fail()) {
        return NULL;
    }
    moved = __libc_realloc(pointer, size);
    return pointer == NULL ? made(moved) : moved;
}

int posix_memalign(void **pointer_out, size_t align, size_t size)
{
    if (must_fail()) {
        return ENOMEM;
    }
    *pointer_out = made(__libc_memalign(align, size));
    return *pointer_out != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size)
{
    return must_fail() ? NULL : made(__libc_memalign(align, size));
}

void free(void *pointer)
{
    live -= pointer != NULL && is_counting();
    __libc_free(pointer);
}

/*
 * Make jansson's parser a single allocation that can fail. jansson 2.14's lexer does not survive a
 * failed allocation (it truncates strings or fails an assertion); the library avoids this by
 * checking for enough free memory first.
 */
json_t *json_loadb(const char *buffer, size_t size, size_t flags, json_error_t *error)
{
    static json_t *(*real)(const char *, size_t, size_t, json_error_t *);
    unsigned long kept;
    unsigned long before;
    json_t *value;

    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "json_loadb");
    }
    if (must_fail()) {
        if (error != NULL) {
            memset(error, 0, sizeof(*error));
            error->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory;
        }
        return NULL;
    }
    kept = fail_at;
    before = calls;
    fail_at = 0;
    value = real(buffer, size, flags, error);
    fail_at = kept;
    calls = before;
    return value;
}

#pragma GCC visibility pop

bool allocations_can_fail(void)
{
    return true;
}

void allocations_count(unsigned long failing)
{
    calls = 0;
    live = 0;
    fail_at = failing;
    counting_pid = spares_children ? getpid() : 0;
    counting = true;
}

unsigned long allocations_stop(long *left_out)
{
    counting = false;
    *left_out = live;
    return calls;
}

unsigned long allocations_counted(void)
{
    return calls;
}

void allocations_spare_children(void)
{
    spares_children = true;
}

#endif
