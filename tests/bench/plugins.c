/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Fills directories with plugins. Linking hundreds would take a minute, so that one is linked under
 * a name of fixed width, and every copy gets another name of that width wherever the first name
 * occurs in the file. They are copies instead of hard links, because the host recognizes hard links
 * as one file.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_SIZE 5 /* size of "p000" */

struct image {
    unsigned char *bytes;
    size_t size;
    size_t *names; /* offsets of the placeholder's name in the file */
    size_t name_count;
};

static void read_image(const char *path, struct image *image)
{
    FILE *file = fopen(path, "rb");
    struct stat info;

    if (file == NULL || fstat(fileno(file), &info) != 0) {
        bench_die("%s: %s", path, strerror(errno));
    }
    image->size = (size_t)info.st_size;
    image->bytes = malloc(image->size);
    if (image->bytes == NULL) {
        bench_die("no memory");
    }
    if (fread(image->bytes, 1, image->size, file) != image->size) {
        bench_die("%s: it could not be read", path);
    }
    fclose(file);
}

static void find_names(struct image *image, const char *path)
{
    const unsigned char *end = image->bytes + image->size;
    const unsigned char *at = image->bytes;

    image->names = NULL;
    image->name_count = 0;
    while ((at = memmem(at, (size_t)(end - at), BENCH_PLACEHOLDER, NAME_SIZE - 1)) != NULL) {
        image->names = realloc(image->names, (image->name_count + 1) * sizeof(*image->names));
        if (image->names == NULL) {
            bench_die("no memory");
        }
        image->names[image->name_count++] = (size_t)(at - image->bytes);
        at += NAME_SIZE - 1;
    }
    if (image->name_count < 2) {
        bench_die("%s: \"%s\" is not in its note and table", path, BENCH_PLACEHOLDER);
    }
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        bench_die("%s: %s", path, strerror(errno));
    }
}

void bench_make_plugins(const char *placeholder, const char *dir, unsigned count)
{
    struct image image;
    char path[BENCH_PATH_SIZE];

    if (count > 1000) {
        bench_die("%u plugins: their names have three digits", count);
    }
    if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
        bench_die("%s: %s", dir, strerror(errno));
    }
    read_image(placeholder, &image);
    find_names(&image, placeholder);
    for (unsigned i = 0; i < count; i++) {
        char name[NAME_SIZE];

        snprintf(name, sizeof(name), "p%03u", i % 1000);
        for (size_t j = 0; j < image.name_count; j++) {
            memcpy(image.bytes + image.names[j], name, NAME_SIZE - 1);
        }
        if (snprintf(path, sizeof(path), "%s/ds_accel_%s.so", dir, name) >= (int)sizeof(path)) {
            bench_die("%s: the path is too long", dir);
        }
        write_file(path, image.bytes, image.size);
    }
    free(image.names);
    free(image.bytes);
}
