/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * fuzz_NAME DIRECTORY...: run a fuzzer once with each file of the directories, compiled by any
 * compiler, so that every input found by fuzzing remains a test. A child process does the work; if
 * the child crashes or hangs, another child continues after that file.
 */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define INPUT_LIMIT_BYTES (1024 * 1024)
#define INPUT_SECONDS 20

static char **paths;
static size_t path_count;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_dir(const char *dir)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, is_input, alphasort);

    if (count < 0) {
        fail(dir);
    }
    paths = realloc(paths, (path_count + (size_t)count + 1) * sizeof(*paths));
    for (int i = 0; paths != NULL && i < count; i++) {
        if (asprintf(&paths[path_count++], "%s/%s", dir, entries[i]->d_name) < 0) {
            fail(dir);
        }
        free(entries[i]);
    }
    if (paths == NULL) {
        fail(dir);
    }
    free(entries);
}

/* Copy the bytes to a block of exactly their size: a sanitizer then detects reads past them. */
static void run_file(const char *path)
{
    static uint8_t buffer[INPUT_LIMIT_BYTES];
    FILE *file = fopen(path, "rb");
    size_t size;
    uint8_t *data;

    if (file == NULL) {
        fail(path);
    }
    size = fread(buffer, 1, sizeof(buffer), file);
    fclose(file);
    data = malloc(size > 0 ? size : 1);
    if (data == NULL) {
        fail(path);
    }
    memcpy(data, buffer, size);
    alarm(INPUT_SECONDS);
    LLVMFuzzerTestOneInput(data, size);
    alarm(0);
    free(data);
}

/* Run the files from *at on. Return true if the child ran the last file and exited with 0. */
static int run_child(volatile size_t *at)
{
    int status = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        for (; *at < path_count; (*at)++) {
            run_file(paths[*at]);
        }
        exit(0); /* the sanitizer checks for leaks here */
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        fail("fork");
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "signal %d\n", WTERMSIG(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    size_t failed = 0;
    volatile size_t *at =
        mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        fail("mmap");
    }
    for (int i = 1; i < argc; i++) {
        add_dir(argv[i]);
    }
    if (path_count == 0) {
        fprintf(stderr, "usage: %s DIRECTORY...\n", name);
        return 2;
    }
    while (*at < path_count && !run_child(at)) {
        printf("FAILED: %s\n", *at < path_count ? paths[*at] : "the end: memory leaked");
        failed++;
        (*at)++;
    }
    printf("%s: %zu passed, %zu failed\n", name, path_count - failed, failed);
    for (size_t i = 0; i < path_count; i++) {
        free(paths[i]);
    }
    free(paths);
    return failed != 0;
}
