/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The helper process in which plugins are asked. All of it is in the library, so that both ends are
 * always of one build; core/probe_serve.c explains. */
#include "ds_accel.h"

int main(int argc, char **argv)
{
    return ds_accel__probe_main(argc, argv);
}
