/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The generation of SynapseAI_Core d4d7f5c: a stream has a type, and does only that kind of work.
 */
#define SYNAPSE_TYPED 1
#include "synapse.c"
