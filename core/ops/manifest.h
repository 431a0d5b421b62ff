/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files in a cache of ops were built from: manifest.c. */
#ifndef DS_ACCEL_OPS_MANIFEST_H
#define DS_ACCEL_OPS_MANIFEST_H

#include "base/private.h"
#include "ops/recipe.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DS_ACCEL__KEY_DIGITS 32 /* of the hexadecimal digests in names of files */

/*
 * Parse a manifest. *manifest_out is NULL if the text is none, if an entry of it is
 * malformed, or if it belongs to another recipe than recipe_digest (NULL: any). ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__manifest_parse(const char *text, size_t size_bytes,
                                                   const char *recipe_digest,
                                                   json_t **manifest_out);
/* A manifest without entries. NULL if memory is exhausted. */
DS_ACCEL__PRIVATE json_t *ds_accel__manifest_create(const char *kernel, const char *recipe_digest);
/*
 * Find the next entry whose headers have the same contents here. toolchain_digest NULL: there is
 * no compiler; entries of any one match then, except those marked as specific, and headers that
 * are not here are not compared. *entry is the one behind which to begin, NULL: none, and becomes
 * the one that was found, borrowed from the manifest; NULL: none matches. ERR_NO_MEMORY.
 */
int32_t ds_accel__manifest_match(const json_t *manifest, const struct ds_accel__recipe *recipe,
                                 const char *toolchain_digest, const json_t **entry);
/* Mark an entry: variables named the CPUs or devices that it is for. False if memory is exhausted.
 */
bool ds_accel__manifest_mark_specific(json_t *entry);
/*
 * Make the entry of a file that was built: its key follows from the digests of recipe, toolchain
 * and headers. headers: paths as the compilers reported them, ends with NULL. ERR_NOT_FOUND,
 * ERR_IO: a header cannot be read. ERR_NO_MEMORY.
 */
int32_t ds_accel__manifest_entry(const struct ds_accel__recipe *recipe, const char *recipe_digest,
                                 const char *toolchain_digest, char *const *headers,
                                 json_t **entry_out);
/* Put an entry first and drop one with the same key, and the last ones beyond the limit. Takes
 * ownership of the entry. False if memory is exhausted. */
DS_ACCEL__PRIVATE bool ds_accel__manifest_add(json_t *manifest, json_t *entry);

#endif
