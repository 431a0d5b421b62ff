/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * op_load [FILE]: print the microseconds of the first load of the op cpu_adam, those of a second
 * one, and the file that was loaded. By the library, or with FILE by dlopen() and the call of its
 * entry.
 */
#include "clock.h"
#include "ds-accel/ops/op.h"
#include "ds_accel.h"

#include <dlfcn.h>
#include <stdio.h>

static const struct ds_accel_op *load_bare(const char *path)
{
    union {
        void *address;
        const struct ds_accel_op *(*call)(void);
    } entry = {NULL};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (library != NULL) {
        entry.address = dlsym(library, "ds_accel_op_entry_v1");
    }
    return entry.address != NULL ? entry.call() : NULL;
}

static const struct ds_accel_op *load(ds_accel_t *context, const char *path)
{
    const struct ds_accel_op *op = NULL;

    if (path != NULL) {
        return load_bare(path);
    }
    if (ds_accel_op_load(context, "cpu_adam", &op) < 0) {
        fprintf(stderr, "op_load: %s\n", ds_accel_last_error());
    }
    return op;
}

int main(int argc, char **argv)
{
    ds_accel_t *context = NULL;
    const struct ds_accel_op *op = NULL;
    const char *path = argc > 1 ? argv[1] : NULL;
    Dl_info info;

    if (path == NULL && (ds_accel_create(NULL, &context) < 0 || ds_accel_detect(context) < 0)) {
        fprintf(stderr, "op_load: %s\n", ds_accel_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        uint64_t start_ns = now_ns();

        op = load(context, path);
        if (op == NULL) {
            return 1;
        }
        printf("%.3f\n", elapsed_ns(start_ns) / 1e3);
    }
    if (dladdr(op, &info) == 0) {
        return 1;
    }
    puts(info.dli_fname);
    ds_accel_destroy(context);
    return 0;
}
