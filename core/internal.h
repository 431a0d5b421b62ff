/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Private declarations, a header per subject, in layers: a file uses only what stands above its own
 * layer's header.
 * Ownership words: create/destroy objects, open/close files and modules, borrow, take.
 */
#ifndef DS_ACCEL_INTERNAL_H
#define DS_ACCEL_INTERNAL_H

/* clang-format off */
/* layer 0 */
#include "clock.h"
#include "text.h"
#include "fork.h"

/* layer 1 */
#include "env.h"
#include "machine.h"
#include "config.h"
#include "topology.h"

/* layer 2 */
#include "trust.h"
#include "elf_file.h"
#include "presence.h"
#include "loader.h"
#include "registry.h"

/* layer 3 */
#include "cache.h"
#include "verdict.h"
#include "frame.h"
#include "guard.h"
#include "contain.h"
#include "layers.h"
#include "probe.h"
#include "detect.h"

/* layer 4 */
#include "context.h"

/* layer 5 */
#include "handle.h"
#include "rng.h"
#include "tensor.h"
#include "caching.h"

/* layer 6 */
#include "report.h"

/* layer 7 */
#include "facts.h"

/* clang-format on */

#endif
