/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* How the kernel of an op is built: recipe.c reads it from the configuration. */
#ifndef DS_ACCEL_OPS_RECIPE_H
#define DS_ACCEL_OPS_RECIPE_H

#include "base/private.h"
#include "ops/compiler.h"

#include <jansson.h>
#include <stdbool.h>

struct ds_accel__config;

/* Source of a device, compiled to an image whose path the sources find in a macro. */
struct ds_accel__image {
    char *macro;
    char *source;
};

/* {0} is empty. All lists of texts end with NULL. */
struct ds_accel__recipe {
    char *name;          /* "cpu_adam", or "cuda/fused_adam" for one backend */
    const char *op;      /* the last part of name */
    char *origin;        /* FILE:LINE of the row that names the sources; NULL: unknown */
    char *given_dir;     /* absolute, as it was given: it may be a link */
    char *source_dir;    /* absolute, without links */
    char **sources;      /* relative to source_dir, sorted, each one once */
    char **include_dirs; /* relative to source_dir, or absolute */
    char **cflags;
    char **device_cflags; /* of images */
    char **ldflags;
    char **libs;
    struct ds_accel__image *images;
    size_t image_count;
    json_t *requires; /* NULL: nothing */
};

/*
 * Read the recipe of an op for a backend: the row BACKEND/OP of "kernels", else the row OP.
 * Patterns among the sources are replaced by the files that match. ERR_NOT_FOUND: there is no
 * recipe. ERR_CONFIG: it cannot be followed, and the message says why. ERR_NO_MEMORY. After an
 * error the recipe is empty, else it is for ds_accel__recipe_clear(). The configuration does not
 * change during the call.
 */
int32_t ds_accel__recipe_read(const struct ds_accel__config *config, const char *backend,
                              const char *op, struct ds_accel__recipe *recipe);
void ds_accel__recipe_clear(struct ds_accel__recipe *recipe);
/* The language of a source, by its suffix; COUNT: none. */
enum ds_accel__language ds_accel__recipe_language(const char *source);
/*
 * The files that the recipe's flags name (flag_files.h), for ds_accel__arguments_free(): those by a
 * path relative to the sources, which belong to the recipe, or the others, which a host has as it
 * has headers. NULL if memory is exhausted.
 */
char **ds_accel__recipe_flag_files(const struct ds_accel__recipe *recipe, bool are_sources);
/*
 * Check that nobody but root and this user can change the sources, and write the SHA-256 over the
 * recipe and the contents of its sources, also of those that its flags name, which is the same on
 * all hosts. ERR_PERMISSION,
 * ERR_NOT_FOUND, ERR_IO with the source in the message; ERR_NO_MEMORY.
 */
int32_t ds_accel__recipe_digest(const struct ds_accel__recipe *recipe, char digest_out[65]);
/* SHA-256 of a file's contents, which are read each time. As ds_accel__recipe_digest(). */
DS_ACCEL__PRIVATE int32_t ds_accel__source_digest(const char *path, char digest_out[65]);

#endif
