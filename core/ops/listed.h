/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What an assembler or a linker read, as it reports: listed.c. */
#ifndef DS_ACCEL_OPS_LISTED_H
#define DS_ACCEL_OPS_LISTED_H

#include "ops/arguments.h"

#include <stdbool.h>

/*
 * Add the regular files that a text names, with the names that it has for them: a rule for make, or
 * what linkers print for -t. Relative names are those below directory. is_link: leave out shared
 * libraries, and add the members of thin archives. After a failed allocation, files->failed is set.
 */
void ds_accel__listed_add(const char *text, const char *directory, bool is_link,
                          struct ds_accel__arguments *files);

#endif
