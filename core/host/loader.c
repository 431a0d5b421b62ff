/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Opens the files of plugins and ops; no other file does. libltdl manages the handles, but ds-
 * accel adds its own loader before libltdl's. libltdl's loader reports "file not found" for every
 * bad file, binds lazily, so that a missing symbol kills the process at the first call, and
 * follows a stray .la file (measured on 2.4.7). ds-accel's loader opens by absolute path, binds
 * at once, makes symbols local, never unmaps a file (GPU runtimes leave threads running) and
 * preserves the dynamic linker's error text.
 *
 * libltdl's loader stays installed: the state of libltdl is shared by the whole process, and a
 * program may use libltdl for modules of its own. ds-accel's loader therefore never fails, since
 * libltdl would then try the next loader: it returns a module that contains the error. It also acts
 * only for the thread that is in ds_accel__module_open(). docs/decisions/0003 explains the reasons.
 */
#include "host/loader.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <libltdl/lt_dlloader.h>
#include <ltdl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Guards libltdl, whose state is shared by the whole process, and has_loader. The entry of a plugin
 * is called under plugin_lock.
 */
static pthread_mutex_t ltdl_lock = PTHREAD_MUTEX_INITIALIZER;
static bool has_loader; /* libltdl was started and has the loader, for the life of the process */

/*
 * Guards calls of any plugin's entry (including the copying of its table), probe, init and
 * shutdown: one thread at a time (DSA-H8).
 */
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

struct ds_accel__module {
    lt_dlhandle handle;
};

/* The module that libltdl stores for this loader. */
struct opened {
    void *library; /* NULL: the file could not be opened */
    char error[512];
};

/*
 * The request of this thread's ds_accel__module_open(); the loader sets it to NULL when it serves
 * the request.
 */
static _Thread_local struct opened *wanted;

static lt_module module_open(lt_user_data data, const char *filename, lt_dladvise advise)
{
    struct opened *opened = wanted;
    const char *error;

    (void)data;
    (void)advise;
    if (opened == NULL || filename == NULL || filename[0] != '/') {
        return NULL;
    }
    wanted = NULL;
    opened->library = dlopen(filename, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (opened->library == NULL) {
        error = dlerror();
        snprintf(opened->error, sizeof(opened->error), "%s",
                 error != NULL ? error : "dlopen failed");
    }
    return opened;
}

static int module_close(lt_user_data data, lt_module module)
{
    struct opened *opened = module;
    int failed = opened->library != NULL ? dlclose(opened->library) : 0;

    (void)data;
    free(opened);
    return failed;
}

static void *find_symbol(lt_user_data data, lt_module module, const char *name)
{
    struct opened *opened = module;

    (void)data;
    return opened->library != NULL ? dlsym(opened->library, name) : NULL;
}

static const char loader_name[] = "ds-accel";

/*
 * Start libltdl and add the loader. libltdl is never shut down, because lt_dlexit() leaves freed
 * loaders in its list if memory is exhausted. Caller holds ltdl_lock.
 */
static int32_t start_ltdl(void)
{
    lt_dlvtable *vtable;

    if (has_loader) {
        return DS_ACCEL_OK;
    }
    ds_accel__fork_renew(&ltdl_lock);
    ds_accel__fork_renew(&plugin_lock);
    if (lt_dlinit() != 0) {
        return ds_accel__no_memory();
    }
    vtable = calloc(1, sizeof(*vtable)); /* lt_dlloader_add() takes ownership */
    if (vtable == NULL) {
        return ds_accel__no_memory();
    }
    vtable->name = loader_name;
    vtable->module_open = module_open;
    vtable->module_close = module_close;
    vtable->find_sym = find_symbol;
    vtable->priority = LT_DLLOADER_PREPEND;
    if (lt_dlloader_add(vtable) != 0) {
        free(vtable);
        return ds_accel__no_memory();
    }
    has_loader = true;
    return DS_ACCEL_OK;
}

/*
 * Set finding to the cause of a failed dlopen(), which is searched for in the text of dlerror(); if
 * the cause is exhausted memory, return ERR_NO_MEMORY instead. glibc does not translate the parts
 * of the text that are searched for.
 */
static int32_t explain(const char *error, struct ds_accel__finding *finding)
{
    const char *missing = strstr(error, ": cannot open shared object file");

    /*
     * Test this case first: the text also contains "cannot allocate memory", but the cause is the
     * plugin's TLS size.
     */
    if (strstr(error, "static TLS block") != NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_TLS_EXHAUSTED, "%s", error);
        return DS_ACCEL_OK;
    }
    if (strstr(error, "annot allocate memory") != NULL || strstr(error, "out of memory") != NULL) {
        return ds_accel__no_memory();
    }
    if (strstr(error, "undefined symbol") != NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_SYMBOL_UNDEFINED, "%s", error);
    } else if (strstr(error, strerror(EMFILE)) != NULL || strstr(error, strerror(ENFILE)) != NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_REFUSED, "%s", error);
    } else if (missing != NULL && strstr(missing, strerror(ENOENT)) != NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_DEPENDENCY_MISSING, "%.*s is not installed",
                              (int)(missing - error), error);
    } else {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_LOAD_FAILED, "%s", error);
    }
    return DS_ACCEL_OK;
}

/* On success module->handle is set, or finding contains a reason. Caller holds ltdl_lock. */
static int32_t open_locked(const char *path, ds_accel__module_t *module,
                           struct ds_accel__finding *finding)
{
    struct opened *opened;
    bool is_open_already;
    int32_t status = start_ltdl();

    if (status < 0) {
        return status;
    }
    opened = calloc(1, sizeof(*opened));
    if (opened == NULL) {
        return ds_accel__no_memory();
    }
    assert(wanted == NULL && module->handle == NULL);
    wanted = opened;
    module->handle = lt_dlopen(path);
    is_open_already = wanted != NULL; /* ds-accel's loader was not called */
    wanted = NULL;
    if (is_open_already) {
        free(opened);
        return module->handle != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (module->handle == NULL) {
        return ds_accel__no_memory(); /* libltdl closed the module that the loader had opened */
    }
    if (opened->library == NULL) {
        status = explain(opened->error, finding);
        lt_dlclose(module->handle);
        module->handle = NULL;
    }
    return status;
}

int32_t ds_accel__module_open(const char *path, ds_accel__module_t **module_out,
                              struct ds_accel__finding *finding)
{
    ds_accel__module_t *module = calloc(1, sizeof(*module));
    int32_t status;

    *module_out = NULL;
    if (module == NULL) {
        return ds_accel__no_memory();
    }
    pthread_mutex_lock(&ltdl_lock);
    status = open_locked(path, module, finding);
    pthread_mutex_unlock(&ltdl_lock);
    if (module->handle == NULL) {
        free(module);
    } else {
        assert(status >= 0);
        *module_out = module;
    }
    return status;
}

void ds_accel__plugin_lock(void)
{
    pthread_mutex_lock(&plugin_lock);
}

void ds_accel__plugin_unlock(void)
{
    pthread_mutex_unlock(&plugin_lock);
}

void *ds_accel__module_symbol(ds_accel__module_t *module, const char *name)
{
    void *address;

    assert(module != NULL && module->handle != NULL && has_loader);
    pthread_mutex_lock(&ltdl_lock);
    address = lt_dlsym(module->handle, name);
    pthread_mutex_unlock(&ltdl_lock);
    return address;
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
    /*
     * There is only one generation of the entry so far. A newer generation must be looked up first.
     */
    entry.address = ds_accel__module_symbol(module, DS_ACCEL_ENTRY_V1_SYMBOL);
    if (entry.address == NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NO_ENTRY, "it has no symbol %s",
                              DS_ACCEL_ENTRY_V1_SYMBOL);
    } else {
        *table_out = entry.call(host);
        if (*table_out == NULL) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_ENTRY_REFUSED,
                                  "%s(host %s) returned NULL", DS_ACCEL_ENTRY_V1_SYMBOL,
                                  host->host_version);
        }
    }
}

void ds_accel__module_abandon(ds_accel__module_t *module)
{
    free(module);
}

void ds_accel__module_close(ds_accel__module_t *module)
{
    if (module == NULL) {
        return;
    }
    assert(module->handle != NULL);
    pthread_mutex_lock(&ltdl_lock);
    lt_dlclose(module->handle);
    pthread_mutex_unlock(&ltdl_lock);
    free(module);
}
