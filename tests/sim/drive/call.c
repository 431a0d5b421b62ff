/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Opens a plugin, checks the results of its calls, and reports the outcome.
 *
 * Any call may fail if failures are injected, but it must report the failure as docs/plugin-abi.md
 * requires: a listed status, the same status in the error, and a message of one line. This is
 * checked after every call of every scenario, whether the scenario tolerates the failure or not.
 */
#include "drive.h"

#include <dlfcn.h>
#include <string.h>

/* The host exists even before the plugin's name is known: the plugin's entry function may use
 * it. */
const struct ds_accel_plugin *drive_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *symbol = library != NULL ? dlsym(library, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;
    const struct ds_accel_plugin *table;
    ds_accel_entry_v1_t entry;

    if (symbol == NULL) {
        fprintf(stderr, "drive: %s\n", dlerror());
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof(entry));
    table = entry(drive_host(""));
    if (table == NULL) {
        fprintf(stderr, "drive: %s refuses the host\n", path);
    }
    return table;
}

static void worsen(struct run *run, int code)
{
    run->failed++;
    run->code = code > run->code ? code : run->code;
}

void drive_wrong(struct run *run, const char *what)
{
    printf("wrong: %s\n", what);
    worsen(run, DRIVE_WRONG);
}

void drive_want(struct run *run, int is_so, const char *what)
{
    if (is_so) {
        run->passed++;
    } else {
        drive_wrong(run, what);
    }
}

void drive_untold(struct run *run, const char *slot, const char *what)
{
    printf("untold %s: %s (code %d, \"%.*s\")\n", slot, what, run->error.code,
           (int)sizeof(run->error.message), run->error.message);
    worsen(run, DRIVE_UNTOLD);
}

void drive_clear(struct run *run)
{
    memset(&run->error, 0, sizeof(run->error));
    run->error.struct_size = sizeof(run->error);
}

static int is_told(struct run *run, const char *slot, int32_t status)
{
    const struct ds_accel_error *error = &run->error;
    const char *what = NULL;

    if (memchr(error->message, '\0', sizeof(error->message)) == NULL) {
        what = "a message without an end";
    } else if (status < DS_ACCEL_ERR_INTERNAL) {
        what = "a status that is not listed";
    } else if (error->code != status) {
        what = "error.code is not the status";
    } else if (error->message[0] == '\0' || strchr(error->message, '\n') != NULL) {
        what = "no message, or one of several lines";
    } else if (error->vendor_text[0] != '\0' && error->vendor_code == 0) {
        what = "the vendor's text without its code";
    }
    if (what != NULL) {
        drive_untold(run, slot, what);
    }
    return what == NULL;
}

int32_t drive_judge(struct run *run, const char *slot, int32_t status)
{
    const struct ds_accel_error *error = &run->error;

    if (status >= 0) {
        run->passed++;
        return status;
    }
    run->refused++;
    run->missing += status == DS_ACCEL_ERR_UNSUPPORTED;
    run->awaited += run->awaited_code != 0 && error->vendor_code == run->awaited_code;
    if (!is_told(run, slot, status)) {
        return status;
    }
    printf("failed %s: %d %lld %s: %s\n", slot, status, (long long)error->vendor_code,
           error->vendor_text[0] != '\0' ? error->vendor_text : "-", error->message);
    if (run->is_tolerant) {
        run->passed++;
    } else {
        worsen(run, DRIVE_FAILED);
    }
    return status;
}

/* Counts an absent slot as a refused call; returns the status that the library returns for it. */
int32_t drive_absent(struct run *run, const char *slot)
{
    run->refused++;
    run->missing++;
    if (!run->is_tolerant) {
        printf("failed %s: %d 0 -: absent\n", slot, DS_ACCEL_ERR_UNSUPPORTED);
        worsen(run, DRIVE_FAILED);
    }
    return DS_ACCEL_ERR_UNSUPPORTED;
}

void drive_add(struct run *run, const struct run *other)
{
    run->passed += other->passed;
    run->failed += other->failed;
    run->refused += other->refused;
    run->missing += other->missing;
    run->awaited += other->awaited;
    run->code = other->code > run->code ? other->code : run->code;
}

int drive_report(struct run *run, const char *scenario)
{
    if (run->passed == 0 && run->failed == 0) {
        drive_wrong(run, "nothing was called");
    }
    printf("%s: %u passed, %u failed\n", scenario, run->passed, run->failed);
    fflush(stdout);
    return run->code;
}
