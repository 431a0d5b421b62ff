/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Opening plugin files: the only file that does. libltdl keeps the handles, with a loader of ours,
 * since its own says "file not found" for every bad file, binds lazily, so that a missing symbol
 * kills the process at the first call, and follows a stray .la file (measured on libltdl 2.4.7).
 * Ours opens by absolute path, binds at once, keeps symbols local, never unmaps (GPU runtimes leave
 * threads behind) and keeps the dynamic linker's own words.
 */
#include "internal.h"

#include <dlfcn.h>
#include <libltdl/lt_dlloader.h>
#include <ltdl.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Guards everything of libltdl, which has state for the whole process, the two variables below,
 * and entry calls: a plugin's entry is called by one thread at a time (DSA-H8).
 */
static pthread_mutex_t ltdl_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned open_count;
static char open_error[512]; /* why our loader's last open failed */

struct ds_accel__module {
    lt_dlhandle handle;
};

static lt_module module_open(lt_user_data data, const char *filename, lt_dladvise advise)
{
    void *handle;
    const char *error;

    (void)data;
    (void)advise;
    if (filename == NULL || filename[0] != '/') {
        return NULL; /* ltdl tries other spellings of a name; only absolute paths are ours */
    }
    handle = dlopen(filename, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        error = dlerror();
        snprintf(open_error, sizeof(open_error), "%s", error != NULL ? error : "dlopen failed");
    }
    return handle;
}

static int module_close(lt_user_data data, lt_module module)
{
    (void)data;
    return dlclose(module);
}

static void *find_symbol(lt_user_data data, lt_module module, const char *name)
{
    (void)data;
    return dlsym(module, name);
}

/* Start libltdl for the first module, with our loader in place of its own. Lock held. */
static int32_t start_ltdl(void)
{
    lt_dlvtable *vtable;

    if (lt_dlinit() != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INTERNAL, "libltdl: %s", lt_dlerror());
    }
    /* On the heap: lt_dlexit() frees the tables of all loaders. */
    vtable = calloc(1, sizeof(*vtable));
    if (vtable == NULL) {
        lt_dlexit();
        return ds_accel__no_memory();
    }
    vtable->name = "ds-accel";
    vtable->module_open = module_open;
    vtable->module_close = module_close;
    vtable->find_sym = find_symbol;
    vtable->priority = LT_DLLOADER_PREPEND;
    if (lt_dlloader_add(vtable) != 0) {
        free(vtable);
        lt_dlexit();
        return ds_accel__no_memory();
    }
    free(lt_dlloader_remove("lt_dlopen"));
    return DS_ACCEL_OK;
}

/* Name the cause in the dynamic linker's words; they are not translated by glibc for these. */
static void explain(struct ds_accel__finding *finding)
{
    const char *missing = strstr(open_error, ": cannot open shared object file");

    if (strstr(open_error, "undefined symbol") != NULL) {
        ds_accel__find(finding, "symbol_undefined", "%s", open_error);
    } else if (missing != NULL) {
        ds_accel__find(finding, "dependency_missing", "%.*s is not installed",
                       (int)(missing - open_error), open_error);
    } else {
        ds_accel__find(finding, "load_failed", "%s", open_error);
    }
}

int32_t ds_accel__module_open(const char *path, ds_accel__module_t **module_out,
                              struct ds_accel__finding *finding)
{
    ds_accel__module_t *module = calloc(1, sizeof(*module));
    int32_t status = DS_ACCEL_OK;

    *module_out = NULL;
    if (module == NULL) {
        return ds_accel__no_memory();
    }
    pthread_mutex_lock(&ltdl_lock);
    if (open_count == 0) {
        status = start_ltdl();
    }
    if (status >= 0) {
        open_error[0] = '\0';
        module->handle = lt_dlopen(path);
        if (module->handle != NULL) {
            open_count++;
        } else if (open_error[0] == '\0') {
            /* Our loader was not reached: libltdl itself failed. */
            const char *error = lt_dlerror();

            if (error != NULL && strstr(error, "memory") != NULL) {
                status = ds_accel__no_memory();
            } else {
                ds_accel__find(finding, "load_failed", "libltdl: %s", error != NULL ? error : "");
            }
        } else if (strstr(open_error, "annot allocate memory") != NULL) {
            status = ds_accel__no_memory();
        } else {
            explain(finding);
        }
        if (open_count == 0) {
            lt_dlexit();
        }
    }
    pthread_mutex_unlock(&ltdl_lock);
    if (module->handle == NULL) {
        free(module);
    } else {
        *module_out = module;
    }
    return status;
}

void ds_accel__module_entry(ds_accel__module_t *module, const struct ds_accel_host *host,
                            const struct ds_accel_plugin **table_out,
                            struct ds_accel__finding *finding)
{
    union {
        void *address;
        ds_accel_entry_v1_t call;
    } entry;

    *table_out = NULL;
    pthread_mutex_lock(&ltdl_lock);
    /* Newest generation first; there is one so far. */
    entry.address = lt_dlsym(module->handle, DS_ACCEL_ENTRY_V1_SYMBOL);
    if (entry.address == NULL) {
        ds_accel__find(finding, "no_entry", "it has no symbol %s", DS_ACCEL_ENTRY_V1_SYMBOL);
    } else {
        *table_out = entry.call(host);
        if (*table_out == NULL) {
            ds_accel__find(finding, "entry_refused", "%s(host %s) returned NULL",
                           DS_ACCEL_ENTRY_V1_SYMBOL, host->host_version);
        }
    }
    pthread_mutex_unlock(&ltdl_lock);
}

void ds_accel__module_close(ds_accel__module_t *module)
{
    if (module == NULL) {
        return;
    }
    pthread_mutex_lock(&ltdl_lock);
    lt_dlclose(module->handle);
    if (--open_count == 0) {
        lt_dlexit();
    }
    pthread_mutex_unlock(&ltdl_lock);
    free(module);
}
