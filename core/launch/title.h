/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The name and the command line of this process, as ps(1) and pkill(1) read them: title.c. */
#ifndef DS_ACCEL_LAUNCH_TITLE_H
#define DS_ACCEL_LAUNCH_TITLE_H

#include <stdint.h>

/*
 * Name this process, and replace its command line by `title` and the arguments, which are cut if
 * they are longer than the present one. The strings of main()'s argv change, so the caller must not
 * need them any more; the arguments may be among them. Without /proc only the name is set.
 */
void ds_accel__title_set(const char *name, const char *title, uint32_t argument_count,
                         const char *const *arguments);

#endif
