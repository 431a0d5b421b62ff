/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The paths of this installation. Plugins, helper and configuration are found relative to the
 * directory of the library. The command ds-accel is linked with the library's objects, so the
 * command, not the library, is the file that contains this function; the command then uses the
 * library at $ORIGIN/../lib, relative to its own file. Only this file contains the paths set at
 * build time.
 */
#include "config/prefix.h"
#include "base/text.h"
#include "base/trust.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef DS_ACCEL_LIBDIR
#define DS_ACCEL_LIBDIR "/usr/lib"
#endif
#ifndef DS_ACCEL_LIBEXECDIR
#define DS_ACCEL_LIBEXECDIR "/usr/libexec"
#endif
#ifndef DS_ACCEL_PLUGINDIR
#define DS_ACCEL_PLUGINDIR "/usr/lib/ds-accel"
#endif
#ifndef DS_ACCEL_DATADIR
#define DS_ACCEL_DATADIR "/usr/share"
#endif
#ifndef DS_ACCEL_SYSCONFDIR
#define DS_ACCEL_SYSCONFDIR "/etc"
#endif
#ifndef DS_ACCEL_CACHEDIR
#define DS_ACCEL_CACHEDIR "/var/cache"
#endif
#ifndef DS_ACCEL_SONAME
#define DS_ACCEL_SONAME "libds_accel.so.0"
#endif

const struct ds_accel__built_for ds_accel__built_for = {
    .plugin_dir = DS_ACCEL_PLUGINDIR,
    .data_dir = DS_ACCEL_DATADIR "/ds-accel",
    .config_dir = DS_ACCEL_SYSCONFDIR "/ds-accel",
    .cache_dir = DS_ACCEL_CACHEDIR "/ds-accel",
    .helper = DS_ACCEL_LIBEXECDIR "/ds-accel/ds-accel-probe",
};

/* Remove the last count names from a path; false if it has fewer. */
static bool cut_names(char *path, int count)
{
    char *slash = path;

    for (; count > 0 && slash != NULL; count--) {
        slash = strrchr(path, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    return slash != NULL;
}

/* Return the file's path without symbolic links, as a new string; NULL if memory is exhausted. */
static char *resolve(const char *path)
{
    char *resolved = realpath(path, NULL);

    /*
     * Use the path as given if realpath() fails, for example because this user may not search a
     * directory on the path.
     */
    return resolved == NULL && errno != ENOMEM ? strdup(path) : resolved;
}

/*
 * True if the object is the program, which is the first of the loaded objects and has no soname. A
 * library is the first object only in a namespace created by dlmopen().
 */
static bool is_program(const struct link_map *map)
{
    const ElfW(Dyn) *entry = map->l_ld;

    while (entry->d_tag != DT_NULL && entry->d_tag != DT_SONAME) {
        entry++;
    }
    return map->l_prev == NULL && entry->d_tag == DT_NULL;
}

/*
 * Find the program's own file: /proc/self/exe, or name if the program was started as an argument of
 * the dynamic linker. name: as returned by dladdr().
 */
static char *find_program(const char *name)
{
    char path[PATH_MAX];
    ssize_t length;

    if (getauxval(AT_BASE) == 0) {
        return resolve(name);
    }
    length = readlink("/proc/self/exe", path, sizeof(path));
    return strndup(path, length > 0 && length < (ssize_t)sizeof(path) ? (size_t)length : 0);
}

/*
 * False if a user other than root could have changed the file and the process has raised rights: a
 * hard link to such a program, in a directory of the caller, must not use files that the caller put
 * beside it.
 */
static bool is_beyond_doubt(const char *path)
{
    struct ds_accel__finding finding = {0};

    return ds_accel__trust_if_raised(path, &finding) >= 0 &&
           finding.reason == DS_ACCEL__REASON_NONE;
}

/* The directory of the library beside the program, else the directory set at build time. */
static char *find_beside(const char *name)
{
    char *program = find_program(name);
    char *library = NULL;
    char *resolved;
    struct stat info;

    if (program == NULL) {
        return NULL;
    }
    if (cut_names(program, 2)) {
        library = ds_accel__format("%s/lib/" DS_ACCEL_SONAME, program);
    } else {
        library = strdup("");
    }
    free(program);
    if (library != NULL && stat(library, &info) == 0 && is_beyond_doubt(library)) {
        resolved = resolve(library); /* programs linked with the library find this path, too */
        free(library);
        cut_names(resolved, 1);
        return resolved;
    }
    if (library != NULL) {
        free(library);
        library = strdup(DS_ACCEL_LIBDIR);
    }
    return library;
}

static char *find_library_dir(void)
{
    struct link_map *map = NULL;
    Dl_info info;
    char *path;

    if (dladdr1((void *)(uintptr_t)&ds_accel__library_dir, &info, (void **)&map, RTLD_DL_LINKMAP) ==
            0 ||
        map == NULL) {
        return NULL;
    }
    if (is_program(map)) {
        return find_beside(info.dli_fname);
    }
    path = resolve(map->l_name);
    cut_names(path, 1);
    return path;
}

char *ds_accel__library_dir(void)
{
    static char *found; /* allocated once; the directory never changes */
    char *dir = __atomic_load_n(&found, __ATOMIC_ACQUIRE);

    if (dir == NULL) {
        char *other = NULL;

        dir = find_library_dir();
        if (dir != NULL && !__atomic_compare_exchange_n(&found, &other, dir, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            free(dir);
            dir = other;
        }
    }
    return dir != NULL ? strdup(dir) : NULL;
}

char *ds_accel__data_dir(void)
{
    char *library = ds_accel__library_dir();
    char *beside = library != NULL ? ds_accel__format("%s/../share/ds-accel", library) : NULL;
    char *dir = NULL;

    if (beside != NULL) {
        dir = realpath(beside, NULL);
        if (dir == NULL && errno != ENOMEM) {
            dir = strdup(ds_accel__built_for.data_dir);
        }
    }
    free(beside);
    free(library);
    return dir;
}
