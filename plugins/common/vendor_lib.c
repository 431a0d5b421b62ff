/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Opens a vendor's library by one of its names, and binds its functions to a table of pointers. */
#include "vendor_lib.h"

#include <dlfcn.h>
#include <link.h>

int vendor_problem_set(struct vendor_problem *problem, uint32_t reason, const char *format, ...)
{
    va_list arguments;

    memset(problem, 0, sizeof(*problem));
    problem->reason = reason;
    problem->is_error = reason == DS_ACCEL_REASON_DRIVER_FAILED ||
                        reason == DS_ACCEL_REASON_BAD_OPTION;
    va_start(arguments, format);
    vsnprintf(problem->detail, sizeof(problem->detail), format, arguments);
    va_end(arguments);
    return -1;
}

static int32_t status_of(uint32_t reason)
{
    switch (reason) {
    case DS_ACCEL_REASON_NO_PERMISSION:
        return DS_ACCEL_ERR_PERMISSION;
    case DS_ACCEL_REASON_LIBRARY_MISSING:
    case DS_ACCEL_REASON_SYMBOL_MISSING:
        return DS_ACCEL_ERR_NOT_FOUND;
    case DS_ACCEL_REASON_DRIVER_MISMATCH:
    case DS_ACCEL_REASON_DRIVER_FAILED:
        return DS_ACCEL_ERR_DRIVER;
    case DS_ACCEL_REASON_DEVICE_BUSY:
        return DS_ACCEL_ERR_BUSY;
    case DS_ACCEL_REASON_BAD_OPTION:
        return DS_ACCEL_ERR_INVALID;
    default:
        return DS_ACCEL_ERR_NO_DEVICE;
    }
}

int32_t vendor_problem_fail(const struct vendor_problem *problem, const char *call,
                            struct ds_accel_error *error)
{
    struct ds_accel_error details;

    memset(&details, 0, sizeof(details));
    details.code = problem->status < 0 ? problem->status : status_of(problem->reason);
    details.vendor_code = problem->vendor_code;
    memcpy(details.vendor_text, problem->vendor_text, sizeof(details.vendor_text));
    if (problem->is_complete) {
        snprintf(details.message, sizeof(details.message), "%s", problem->detail);
    } else {
        snprintf(details.message, sizeof(details.message), "%s: %.200s", call, problem->detail);
    }
    ds_accel_write(error, &details, sizeof(details));
    return details.code;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Store the option's text in *name. Returns 1; 0: key is NULL, or the option is unset or empty; -1:
   the text is too long, and *problem is filled. */
static int read_option(const struct ds_accel_host *host, const char *key, char *name,
                       size_t name_size, struct vendor_problem *problem)
{
    int32_t status;

    if (key == NULL) {
        return 0;
    }
    status = host->config_get(host, key, name, (uint32_t)name_size, NULL);
    if (status == DS_ACCEL_ERR_NOT_FOUND || (status == DS_ACCEL_OK && name[0] == '\0')) {
        return 0;
    }
    if (status != DS_ACCEL_OK) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                                  "option %s: expected the path of a library, of up to %zu bytes",
                                  key, name_size - 1);
    }
    return 1;
}

static void *open_one(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Does the dynamic linker's message report only that the file does not exist? */
static int is_plain_absence(const char *text, const char *name)
{
    size_t length = strlen(name);

    return strncmp(text, name, length) == 0 && text[length] == ':' &&
           strstr(text, "No such file or directory") != NULL;
}

static void note_path(struct vendor_lib *lib, const char *name)
{
    struct link_map *map = NULL;

    if (dlinfo(lib->handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name != NULL &&
        map->l_name[0] != '\0') {
        name = map->l_name;
    }
    snprintf(lib->path, sizeof(lib->path), "%s", name);
}

/* Write the names as "a, b, c". */
static void list_names(const char *const *names, char *text, size_t text_size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; names[i] != NULL && used < text_size; i++) {
        used +=
            (size_t)snprintf(text + used, text_size - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
}

int vendor_lib_open(struct vendor_lib *lib, const struct ds_accel_host *host,
                    const char *option_key, const char *const *names,
                    struct vendor_problem *problem)
{
    char chosen[256] = "";
    const char *const only[] = {chosen, NULL};
    char telling[192] = "";
    char list[128];
    int option = read_option(host, option_key, chosen, sizeof(chosen), problem);

    memset(lib, 0, sizeof(*lib));
    if (option < 0) {
        return -1;
    }
    names = option > 0 ? only : names;
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *text;

        lib->handle = open_one(names[i]);
        if (lib->handle != NULL) {
            note_path(lib, names[i]);
            snprintf(lib->name, sizeof(lib->name), "%s", names[i]);
            if (option_key != NULL) {
                memset(problem, 0, sizeof(*problem));
                snprintf(problem->detail, sizeof(problem->detail), "%s", names[i]);
            }
            return 0;
        }
        text = dlerror();
        text = text != NULL ? text : "no reason given";
        if (telling[0] == '\0' && !is_plain_absence(text, names[i])) {
            snprintf(telling, sizeof(telling), "%s", text);
        }
    }
    list_names(names, list, sizeof(list));
    if (telling[0] != '\0') {
        return vendor_problem_set(problem, DS_ACCEL_REASON_LIBRARY_MISSING,
                                  "%.100s cannot be opened: %.140s", list, telling);
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_LIBRARY_MISSING,
                              "%s: no such library is installed", list);
}

void vendor_write_evidence(char *text, size_t text_size, const char *library, const char *which,
                           const char *version, uint32_t device_count)
{
    snprintf(text, text_size, "%.128s%s%s%s%.40s, %u device%s", library,
             version[0] != '\0' ? ", " : "", version[0] != '\0' ? which : "",
             version[0] != '\0' ? " " : "", version, device_count, device_count == 1 ? "" : "s");
}

const char *vendor_lib_name(const struct vendor_lib *lib)
{
    const char *slash = strrchr(lib->path, '/');

    return slash != NULL ? slash + 1 : lib->path;
}

/* ---- binding -------------------------------------------------------------------------------- */

static void add_missing(const struct vendor_symbol *symbol, char *text, size_t text_size)
{
    size_t used = strlen(text);
    const char *since = symbol->since;

    snprintf(text + used, text_size - used, "%s%s%s%s%s", used > 0 ? ", " : "", symbol->name,
             since != NULL ? " (" : "", since != NULL ? since : "", since != NULL ? ")" : "");
}

int vendor_lib_bind(const struct vendor_lib *lib, const struct vendor_symbol *symbols, size_t count,
                    void *table, struct vendor_problem *problem)
{
    char missing[160] = "";

    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(lib->handle, symbols[i].name);

        /* Every system with dlsym() has function pointers of the size of data pointers. */
        memcpy((char *)table + symbols[i].offset, &address, sizeof(address));
        if (address == NULL && symbols[i].is_required) {
            add_missing(&symbols[i], missing, sizeof(missing));
        }
    }
    if (missing[0] != '\0') {
        return vendor_problem_set(problem, DS_ACCEL_REASON_SYMBOL_MISSING, "%.80s has no %s",
                                  lib->path, missing);
    }
    return 0;
}
