/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* bare FILE.so: the baseline of the start: opens the plugin and reads its name, nothing else. */
#include "plugin-api.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct ds_accel_host host = {.struct_size = sizeof(host), .abi_major = DS_ACCEL_ABI_MAJOR};
    const struct ds_accel_plugin *table = NULL;
    union {
        void *address;
        ds_accel_entry_v1_t call;
    } entry = {NULL};
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (library != NULL) {
        entry.address = dlsym(library, DS_ACCEL_ENTRY_V1_SYMBOL);
    }
    if (entry.address != NULL) {
        table = entry.call(&host);
    }
    if (table == NULL) {
        fputs("usage: bare FILE.so, a plugin\n", stderr);
        return 1;
    }
    puts(table->name);
    return 0;
}
