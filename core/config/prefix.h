/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The paths of this installation: prefix.c. */
#ifndef DS_ACCEL_CONFIG_PREFIX_H
#define DS_ACCEL_CONFIG_PREFIX_H

/*
 * The directory of the library. In a program that contains the library's objects, the directory of
 * the library beside the program, if there is one, else the directory set at build time (prefix.c).
 * A new string, freed by the caller; NULL if memory is exhausted or the dynamic linker does not
 * know the library's file.
 */
char *ds_accel__library_dir(void);
/*
 * PREFIX/share/ds-accel of the running library if it exists, else the directory set at build time.
 * A new string; NULL if memory is exhausted or the library's file is not known.
 */
char *ds_accel__data_dir(void);
/* The paths set at build time, used if nothing is found relative to the library's directory. */
struct ds_accel__built_for {
    const char *plugin_dir;
    const char *data_dir;
    const char *config_dir;
    const char *cache_dir;
    const char *helper;
};
extern const struct ds_accel__built_for ds_accel__built_for;

#endif
