/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds a library as the dynamic linker would, without loading it: loading a vendor's runtime only
 * to check that it is installed would start its threads and wake its devices. The search order is
 * that of ld.so(8): the run path of the object that needs the library, LD_LIBRARY_PATH, the cache,
 * the standard directories. Every path is below a root, as for all access to the machine.
 */
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "machine/elf_file.h"
#include "machine/machine.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_LIMIT_BYTES (64 * 1024 * 1024)

static const char *const standard_directories[] = {
#if defined(__x86_64__)
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
#endif
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
};

/* The format of the file that ldconfig writes since glibc 2.2: a header, the entries, the texts. */
static const char cache_magic[] = "glibc-ld.so.cache1.1";

struct cache_header {
    char magic[20];
    uint32_t entry_count;
    uint32_t text_bytes;
    uint32_t more[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t name; /* offsets of texts from the start of the header */
    uint32_t path;
    uint32_t os_version;
    uint64_t hardware;
};

struct search {
    const struct ds_accel__linker *linker;
    const char *name;
    char *found;
    int32_t status;
};

int32_t ds_accel__library_open(const char *path, struct ds_accel__elf *elf, bool *is_library_out)
{
    struct ds_accel__finding finding = {0};
    int32_t status = DS_ACCEL_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    memset(elf, 0, sizeof(*elf));
    if (fd < 0) {
        *is_library_out = false;
        return DS_ACCEL_OK;
    }
    status = ds_accel__elf_open(fd, elf, &finding);
    close(fd);
    *is_library_out = status >= 0 && finding.reason == DS_ACCEL__REASON_NONE;
    return status;
}

static bool is_done(const struct search *search)
{
    return search->found != NULL || search->status < 0;
}

/*
 * Accept the file at a path that includes the root if it is a library for this kind of machine.
 * Takes ownership of full, which may be NULL after a failed allocation.
 */
static void try_path(struct search *search, char *full)
{
    struct ds_accel__elf elf;
    bool is_library;

    assert(!is_done(search)); /* otherwise the path found before would be lost */
    if (full == NULL) {
        search->status = ds_accel__no_memory();
        return;
    }
    search->status = ds_accel__library_open(full, &elf, &is_library);
    if (is_library) {
        ds_accel__elf_close(&elf);
        search->found = full;
        return;
    }
    free(full);
}

static void try_directory(struct search *search, const char *directory, size_t length)
{
    if (length > 0) {
        try_path(search, ds_accel__format("%s%.*s/%s", search->linker->root, (int)length, directory,
                                          search->name));
    }
}

/*
 * Search LD_LIBRARY_PATH. ld.so treats an empty item as the current directory; here it is skipped,
 * because no library should be found there. Below a root, relative items are skipped too.
 */
static void try_list(struct search *search, const char *list)
{
    while (list != NULL && *list != '\0' && !is_done(search)) {
        size_t length = strcspn(list, ":;");

        if (list[0] == '/' || search->linker->root[0] == '\0') {
            try_directory(search, list, length);
        }
        list += length + (list[length] != '\0');
    }
}

/*
 * Search the object's run path: lists of directories, in which $ORIGIN is the object's directory.
 */
static void try_own_path(struct search *search, const struct ds_accel__elf_dynamic *dynamic,
                         const char *object)
{
    const char *at = dynamic->run_path.data;
    size_t origin = (size_t)(strrchr(object, '/') - object);

    while (at != NULL && *at != '\0' && !is_done(search)) {
        size_t length = strcspn(at, ":\n");
        size_t skip = strncmp(at, "$ORIGIN", 7) == 0 ? 7 : strncmp(at, "${ORIGIN}", 9) == 0 ? 9 : 0;

        if (skip != 0) {
            /* The object's path already includes the root. */
            try_path(search, ds_accel__format("%.*s%.*s/%s", (int)origin, object,
                                              (int)(length - skip), at + skip, search->name));
        } else {
            try_directory(search, at, length);
        }
        at += length + (at[length] != '\0');
    }
}

/* Return a text of the cache. The copy of the file is terminated by NUL. */
static const char *cache_text(const struct ds_accel__linker *linker, size_t base, uint32_t offset)
{
    assert(base <= linker->cache_bytes);
    return offset < linker->cache_bytes - base ? linker->cache + base + offset : "";
}

/* Search the cache of ldconfig. Its header may follow a header of the older format. */
static void try_cache(struct search *search)
{
    const struct ds_accel__linker *linker = search->linker;
    struct cache_header header;
    const char *start = linker->cache != NULL ? memmem(linker->cache, linker->cache_bytes,
                                                       cache_magic, sizeof(header.magic))
                                              : NULL;
    size_t base;
    size_t left;

    if (start == NULL || linker->cache_bytes - (size_t)(start - linker->cache) < sizeof(header)) {
        return;
    }
    base = (size_t)(start - linker->cache);
    left = linker->cache_bytes - base - sizeof(header);
    memcpy(&header, start, sizeof(header));
    for (uint32_t i = 0;
         i < header.entry_count && left >= sizeof(struct cache_entry) && !is_done(search);
         i++, left -= sizeof(struct cache_entry)) {
        struct cache_entry entry;

        memcpy(&entry, start + sizeof(header) + i * sizeof(entry), sizeof(entry));
        if (strcmp(cache_text(linker, base, entry.name), search->name) == 0) {
            try_path(search,
                     ds_accel__format("%s%s", linker->root, cache_text(linker, base, entry.path)));
        }
    }
}

static bool is_directory(const char *root, const char *directory)
{
    char full[4096]; /* size PATH_MAX: stat() fails for longer paths, too */
    struct stat info;
    int length = snprintf(full, sizeof(full), "%s%s", root, directory);

    return length >= 0 && (size_t)length < sizeof(full) && stat(full, &info) == 0 &&
           S_ISDIR(info.st_mode);
}

int32_t ds_accel__linker_open(const struct ds_accel__machine *machine,
                              struct ds_accel__linker *linker)
{
    char *path = ds_accel__format("%s/etc/ld.so.cache", machine->root);
    const char *cause;
    int32_t status;

    memset(linker, 0, sizeof(*linker));
    linker->root = machine->root;
    linker->library_path = ds_accel__env_job("LD_LIBRARY_PATH");
    if (path == NULL) {
        return ds_accel__no_memory();
    }
    if (machine->files != NULL) { /* a recording has no libraries */
        free(path);
        return DS_ACCEL_OK;
    }
    status =
        ds_accel__file_read(path, CACHE_LIMIT_BYTES, &linker->cache, &linker->cache_bytes, &cause);
    free(path);
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    linker->has_directories = linker->cache != NULL;
    for (size_t i = 0; i < ARRAY_SIZE(standard_directories); i++) {
        linker->has_directories = linker->has_directories ||
                                  is_directory(machine->root, standard_directories[i]);
    }
    return DS_ACCEL_OK;
}

void ds_accel__linker_close(struct ds_accel__linker *linker)
{
    free(linker->cache);
    memset(linker, 0, sizeof(*linker));
}

int32_t ds_accel__linker_find(const struct ds_accel__linker *linker, const char *name,
                              const struct ds_accel__elf_dynamic *dynamic, const char *object,
                              char **path_out)
{
    struct search search = {.linker = linker, .name = name, .status = DS_ACCEL_OK};

    if (name[0] == '/') {
        try_path(&search, ds_accel__format("%s%s", linker->root, name));
    } else {
        if (dynamic != NULL) {
            try_own_path(&search, dynamic, object);
        }
        if (!is_done(&search)) {
            try_list(&search, linker->library_path);
        }
        if (!is_done(&search)) {
            try_cache(&search);
        }
        for (size_t i = 0; i < ARRAY_SIZE(standard_directories) && !is_done(&search); i++) {
            try_directory(&search, standard_directories[i], strlen(standard_directories[i]));
        }
    }
    *path_out = search.found;
    return search.status;
}
