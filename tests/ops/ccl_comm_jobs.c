/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/ccl_comm_ranks.h"
#include "ops/checks.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 20000000

bool ccl_await_marks(const char *directory, const char *what, unsigned ranks, unsigned wanted)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};

    for (uint64_t waited = 0; waited < CCL_PATIENCE_NS; waited += PAUSE_NS) {
        unsigned found = 0;

        for (unsigned rank = 0; rank < ranks; rank++) {
            char path[256];

            snprintf(path, sizeof(path), "%s/%s-%u", directory, what, rank);
            found += access(path, F_OK) == 0;
        }
        if (found >= wanted)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

void ccl_write_mark(const char *directory, const char *what, unsigned rank, const char *text)
{
    char draft[256];
    char path[256];
    FILE *file;

    snprintf(draft, sizeof(draft), "%s/draft-%s-%u", directory, what, rank);
    snprintf(path, sizeof(path), "%s/%s-%u", directory, what, rank);
    file = fopen(draft, "we");
    if (!file)
        return;
    fputs(text, file);
    fclose(file);
    rename(draft, path);
}

void ccl_clear(const char *directory)
{
    DIR *list = opendir(directory);
    struct dirent *entry;

    if (!list)
        return;
    while ((entry = readdir(list)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
}

unsigned ccl_read_results(const char *directory, unsigned ranks)
{
    unsigned ended = 0;

    for (unsigned rank = 0; rank < ranks; rank++) {
        char path[256];
        unsigned passed;
        unsigned failed;
        FILE *file;

        snprintf(path, sizeof(path), "%s/result-%u", directory, rank);
        file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%u %u", &passed, &failed) == 2) {
            ended++;
            checks += passed;
            failures += failed;
        }
        fclose(file);
    }
    return ended;
}

bool ccl_has_program(const char *name)
{
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t length = strcspn(path, ":");
        char file[512];

        snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

void ccl_ignore_leaks(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char longer[1024];

    snprintf(longer, sizeof(longer), "%s%sdetect_leaks=0", options ? options : "",
             options ? ":" : "");
    setenv("ASAN_OPTIONS", longer, 1);
}
