/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The library of SynapseAI_Core at commit d4d7f5c: each stream has a type, and accepts only that
 * kind of work.
 */
#define SYNAPSE_TYPED 1
#include "synapse.c"
