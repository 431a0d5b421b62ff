/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds out how programs use an Intel GPU on this machine, without running Python.
 *
 * An installed wheel leaves site-packages/NAME-VERSION.dist-info/METADATA; setup.py leaves
 * NAME-VERSION.egg-info, either a directory with the file PKG-INFO or that file itself. The variant
 * is "ipex" if Intel's extension for PyTorch is installed and was built for XPU, otherwise
 * "driver". Versions of the extension before 2.6 require that events are timed with the host's
 * clock. Versions are compared as numbers: 2.10 is later than 2.6.
 *
 * Directories are searched in Python's order: PYTHONPATH, the active environment's directories, the
 * user's, the machine's. The first directory that contains a package is used. The machine's
 * directories are below machine_root, which is normally /.
 */
#include "xpu.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>

#define HOST_TIMERS_BEFORE_MAJOR 2u
#define HOST_TIMERS_BEFORE_MINOR 6u

struct package {
    const char *const *names; /* names as they appear in the directory's name; NULL-terminated */
    char version[64];
    uint32_t is_found;
};

static void read_version(const char *directory, const char *entry, char *version,
                         size_t version_size)
{
    char path[PATH_MAX];
    char line[512];
    FILE *file;

    version[0] = '\0';
    snprintf(path, sizeof(path), "%s/%s/METADATA", directory, entry);
    file = fopen(path, "re");
    if (file == NULL) { /* .egg-info is a directory, or in old installations the file itself */
        snprintf(path, sizeof(path), "%s/%s/PKG-INFO", directory, entry);
        file = fopen(path, "re");
    }
    if (file == NULL) {
        snprintf(path, sizeof(path), "%s/%s", directory, entry);
        file = fopen(path, "re");
    }
    if (file == NULL) {
        return;
    }
    /* An empty line ends the header; the description after it may contain "Version:" too. */
    while (fgets(line, sizeof(line), file) != NULL && line[0] != '\n' && line[0] != '\r') {
        if (strncmp(line, "Version:", 8) == 0) {
            const char *text = line + 8 + strspn(line + 8, " \t");

            snprintf(version, version_size, "%.*s", (int)strcspn(text, "\r\n"), text);
            break;
        }
    }
    fclose(file);
}

static void look_in(const char *directory, struct package *package)
{
    DIR *dir;
    const struct dirent *entry;

    dir = package->is_found ? NULL : opendir(directory);
    while (dir != NULL && !package->is_found && (entry = readdir(dir)) != NULL) {
        for (size_t i = 0; package->names[i] != NULL; i++) {
            char pattern[96];

            char older[96];

            snprintf(pattern, sizeof(pattern), "%s-*.dist-info", package->names[i]);
            snprintf(older, sizeof(older), "%s-*.egg-info", package->names[i]);
            if (fnmatch(pattern, entry->d_name, FNM_CASEFOLD) == 0 ||
                fnmatch(older, entry->d_name, FNM_CASEFOLD) == 0) {
                read_version(directory, entry->d_name, package->version, sizeof(package->version));
                package->is_found = package->version[0] != '\0';
            }
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Searches the directories below prefix that match a pattern, sorted by name. */
static void look_below(const char *prefix, const char *pattern, struct package *package)
{
    char path[PATH_MAX];
    glob_t found;

    if ((size_t)snprintf(path, sizeof(path), "%s%s", prefix, pattern) >= sizeof(path) ||
        glob(path, GLOB_NOCHECK, NULL, &found) != 0) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        look_in(found.gl_pathv[i], package);
    }
    globfree(&found);
}

static void look_in_pythonpath(struct package *package)
{
    const char *rest = getenv("PYTHONPATH");

    while (rest != NULL && *rest != '\0') {
        size_t length = strcspn(rest, ":");
        char directory[PATH_MAX];

        if (length > 0 && length < sizeof(directory)) {
            snprintf(directory, sizeof(directory), "%.*s", (int)length, rest);
            look_in(directory, package);
        }
        rest += length;
        rest += *rest == ':';
    }
}

static void look_everywhere(const struct ds_accel_host *host, struct package *package)
{
    static const char *const machine[] = {
        "/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages",
        "/usr/lib/python3/dist-packages", "/usr/lib/python3*/site-packages",
        "/usr/lib64/python3*/site-packages"};
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const char *prefix;

    look_in_pythonpath(package);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        prefix = getenv(variables[i]);
        if (prefix != NULL && prefix[0] == '/') {
            look_below(prefix, "/lib/python3*/site-packages", package);
        }
    }
    prefix = getenv("HOME");
    if (prefix != NULL && prefix[0] == '/') {
        look_below(prefix, "/.local/lib/python3*/site-packages", package);
    }
    for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
        look_below(host->machine_root, machine[i], package);
    }
}

/* Parses "2.10.20+xpu" as 2, 10, 20. */
static void parse_version(const char *text, uint32_t version[3])
{
    for (int i = 0; i < 3; i++) {
        char *end;

        version[i] = 0;
        if (isdigit((unsigned char)*text)) {
            version[i] = (uint32_t)strtoul(text, &end, 10);
            text = *end == '.' ? end + 1 : "";
        }
    }
}

void xpu_way_find(const struct ds_accel_host *host, struct xpu_way *way_out)
{
    static const char *const extension[] = {"intel_extension_for_pytorch", NULL};
    /* The package of the module oneccl_bindings_for_pytorch has one of these two names. */
    static const char *const oneccl[] = {"oneccl_bindings_for_pytorch", "oneccl_bind_pt", NULL};
    struct package ipex = {extension, "", 0};
    struct package ccl = {oneccl, "", 0};
    const uint32_t *version = way_out->ipex_version;

    memset(way_out, 0, sizeof(*way_out));
    look_everywhere(host, &ipex);
    look_everywhere(host, &ccl);
    way_out->has_oneccl = ccl.is_found;
    /* A version such as "2.6.0+cpu" is that of a build without XPU. */
    if (!ipex.is_found || strstr(ipex.version, "+cpu") != NULL) {
        snprintf(way_out->variant, sizeof(way_out->variant), "driver");
        return;
    }
    snprintf(way_out->variant, sizeof(way_out->variant), "ipex");
    parse_version(ipex.version, way_out->ipex_version);
    way_out->uses_host_timers =
        version[0] < HOST_TIMERS_BEFORE_MAJOR ||
        (version[0] == HOST_TIMERS_BEFORE_MAJOR && version[1] < HOST_TIMERS_BEFORE_MINOR);
}
