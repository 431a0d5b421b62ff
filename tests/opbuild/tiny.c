/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "tiny.h"
#include "host/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char counted[300]; /* a line for each compilation and link */
char tiny_cache[300];
ds_accel_t *tiny_context;

const char *tiny_compiler(const char *before)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "#!/bin/sh\ncase \" $* \" in\n*' -MD '*|*' -shared '*) echo x >>%s; %s;;\nesac\n"
             "exec gcc \"$@\"\n",
             counted, before);
    return write_script("bin/cc", text);
}

int tiny_compilations(void)
{
    FILE *file = fopen(counted, "r");
    int count = 0;

    if (file != NULL) {
        for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
            count += c == '\n';
        }
        fclose(file);
    }
    return count;
}

static void configure(const char *source_dir, const char *members)
{
    char text[1024];
    struct ds_accel_options create = test_options();

    snprintf(text, sizeof(text),
             "{\"kernels\": {\"tiny\": {\"source_dir\": \"%s\", \"sources\": [\"*.c\"], "
             "\"include_dirs\": [\".\"], \"cflags\": [\"-fvisibility=hidden\"]%s}}}",
             source_dir, members);
    test_write("share/tiny.ops.json", text);
    ds_accel_destroy(tiny_context);
    create.flags &= ~(uint32_t)DS_ACCEL_OPTION_NO_CACHE;
    create.cache_dir = tiny_cache;
    tiny_context = test_create_with(&create);
    MUST(ds_accel__context_load_ops(tiny_context));
}

void tiny_configure(const char *members)
{
    configure(test_path("source"), members);
}

void tiny_configure_at(const char *source_dir)
{
    configure(source_dir, "");
}

void tiny_begin(void)
{
    clear_variables();
    unsetenv("DS_ACCEL_CACHE");
    unsetenv("TORCH_CUDA_ARCH_LIST");
    umask(002);
    snprintf(counted, sizeof(counted), "%s", test_path("counted"));
    snprintf(tiny_cache, sizeof(tiny_cache), "%s", test_path("cache"));
    test_copy(TEST_SOURCE "/ops/op.h", "source/ops/op.h");
    test_copy(TEST_SOURCE "/plugin-api.h", "source/plugin-api.h");
    for (int i = 0; i < 2; i++) { /* whatever the umask was when they were made */
        cr_assert_eq(chmod(test_path(i == 0 ? "source/ops/op.h" : "source/plugin-api.h"), 0644), 0);
    }
    test_write("source/tiny.h", "#define NAME \"tiny\"\n");
    test_write("source/tiny.c", TINY_SOURCE);
    setenv("CC", tiny_compiler(":"), 1);
    tiny_configure("");
}

void tiny_end(void)
{
    ds_accel_destroy(tiny_context);
}
