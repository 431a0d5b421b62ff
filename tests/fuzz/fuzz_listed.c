/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as what an assembler or a linker says that it read, and arbitrary data as a thin
 * archive that it read. */
#include "fuzz.h"

#include "ops/listed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Names are those of regular files, whatever the text is. */
static void check(const char *text, bool is_link)
{
    struct ds_accel__arguments list = {0};
    char **files;

    ds_accel__listed_add(text, "/etc", is_link, &list);
    files = ds_accel__arguments_take(&list);
    FUZZ_CHECK(files != NULL);
    for (size_t i = 0; files[i] != NULL; i++) {
        FUZZ_CHECK(files[i][0] != '\0' && strchr(files[i], '\n') == NULL);
        FUZZ_CHECK(strlen(files[i]) <= strlen(text) || is_link);
    }
    ds_accel__arguments_free(files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int archive = -1;
    char name[32];
    char *text = malloc(size + 1);

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    check(text, false);
    check(text, true);
    free(text);
    if (archive < 0) {
        archive = memfd_create("archive", MFD_CLOEXEC);
    }
    FUZZ_CHECK(archive >= 0 && ftruncate(archive, 0) == 0 &&
               pwrite(archive, data, size, 0) == (ssize_t)size);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", archive);
    check(name, true);
    return 0;
}
