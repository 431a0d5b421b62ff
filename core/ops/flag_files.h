/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Files that arguments of compilers name: flag_files.c. */
#ifndef DS_ACCEL_OPS_FLAG_FILES_H
#define DS_ACCEL_OPS_FLAG_FILES_H

#include "ops/arguments.h"

/*
 * Add each flag, and behind one that names a response file (@FILE, -Wl,@FILE, nvcc's -optf FILE,
 * Clang's --config FILE) the words of this file, and of the response files that it names. Relative
 * names are those below directory; NULL: these files are not read. After a failed allocation,
 * words->failed is set.
 */
void ds_accel__flag_words(char *const *flags, const char *directory,
                          struct ds_accel__arguments *words);
/*
 * Add the absolute path of each regular file that a flag names: -Wl,--version-script=FILE, -TFILE,
 * @FILE, -fplugin=FILE, or FILE itself; also of those that response files name. Relative names are
 * those below directory; NULL: they are not looked for. Files that options name to write them
 * (-Map) are not added. After a failed allocation, files->failed is set.
 */
void ds_accel__flag_files(char *const *flags, const char *directory,
                          struct ds_accel__arguments *files);

#endif
