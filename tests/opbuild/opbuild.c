/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Failing allocations: this program's malloc() and its relatives stand before glibc's. */
#include "opbuild.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HAS_SANITIZER
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

static atomic_bool counting;
static atomic_ulong calls;
static atomic_ulong fail_at;
static atomic_long live;

static bool must_fail(void)
{
    if (!counting) {
        return false;
    }
    if (atomic_fetch_add(&calls, 1) + 1 == fail_at) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

static void *made(void *pointer)
{
    live += counting && pointer != NULL;
    return pointer;
}

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
    live += counting && pointer == NULL && moved != NULL;
    return moved;
}

void free(void *pointer)
{
    live -= counting && pointer != NULL;
    __libc_free(pointer);
}

/* jansson's lexer does not survive a failed allocation: a whole parse is one that can fail. */
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

unsigned long fail_each(int32_t (*attempt)(void))
{
    for (unsigned long failing = 1;; failing++) {
        int32_t status;

        calls = 0;
        live = 0;
        fail_at = failing;
        counting = true;
        status = attempt();
        counting = false;
        cr_assert_eq(live, 0, "allocation %lu: %ld blocks are left", failing, (long)live);
        if (calls < failing) {
            cr_assert_eq(status, DS_ACCEL_OK, "without a failure: %d: %s", status,
                         ds_accel_last_error());
            return failing - 1;
        }
        cr_assert(status <= 0 && failing < 100000, "allocation %lu: %d", failing, status);
    }
}
#else
unsigned long fail_each(int32_t (*attempt)(void))
{
    MUST(attempt());
    return 0;
}
#endif

const char *write_script(const char *path, const char *text)
{
    const char *file = test_write(path, text);

    cr_assert_eq(chmod(file, 0755), 0);
    return file;
}

bool wait_until(bool (*holds)(void *data), void *data)
{
    for (int i = 0; i < 4000; i++) {
        if (holds(data)) {
            return true;
        }
        usleep(5000);
    }
    return false;
}

bool file_is_written(void *path)
{
    struct stat info;

    return stat(path, &info) == 0 && info.st_size > 0;
}

bool process_is_gone(void *path)
{
    char name[64];
    char state = 'Z';
    int pid = 0;
    FILE *file = fopen(path, "r");

    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    snprintf(name, sizeof(name), "/proc/%d/stat", pid);
    file = fopen(name, "r");
    if (file != NULL) {
        if (fscanf(file, "%*d %*s %c", &state) != 1) {
            state = 'Z';
        }
        fclose(file);
    }
    return state == 'Z' || state == 'X';
}

void clear_variables(void)
{
    static const char *const names[] = {"CC",        "CXX",         "NVCC",      "HIPCC",
                                        "ICPX",      "CUDA_HOME",   "CUDA_PATH", "ROCM_PATH",
                                        "ROCM_HOME", "ONEAPI_ROOT", "NVCC_CCBIN"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        unsetenv(names[i]);
    }
}
