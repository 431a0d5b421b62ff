/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

FILE *ops__machine_open(const char *path)
{
    const char *root = secure_getenv("DS_ACCEL_ROOT"); /* NULL under AT_SECURE */
    char name[4096];
    int length = snprintf(name, sizeof(name), "%s%s", root ? root : "", path);

    return length > 0 && (size_t)length < sizeof(name) ? fopen(name, "re") : NULL;
}

bool ops__machine_line(const char *path, char *text, size_t size)
{
    FILE *file = ops__machine_open(path);
    bool found = file && fgets(text, (int)size, file);

    if (file)
        fclose(file);
    if (!found)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}
