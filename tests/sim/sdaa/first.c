/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * libsdaart.so of the first generation: streams and events are ints, errors have the numbers of
 * early CUDA, and sdaaGetErrorName does not exist. It detects a plugin that calls its functions as
 * if the library were of the current generation.
 */
#include "engine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

SIM_EXPORT int sdaaGetDeviceCount(int *count)
{
    (void)count;
    sim_misuse("sdaaGetDeviceCount: of the first generation, called as if it were the current one");
}

SIM_EXPORT int sdaaSetDevice(int device)
{
    sim_misuse("sdaaSetDevice(%d): of the first generation", device);
}

SIM_EXPORT const char *sdaaGetErrorString(int error)
{
    return error == 38 ? "no device" : "error";
}
