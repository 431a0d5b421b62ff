/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations that the two simulated generations share: the names of errors, whose numbers are
 * invented (they differ from CUDA's, so that only a caller that compares names understands them),
 * and the numbers of copy kinds: CUDA's, or others with the vendor's fact "numbering": "other".
 */
#ifndef DS_ACCEL_TESTS_SIM_SUPA_COMMON_H
#define DS_ACCEL_TESTS_SIM_SUPA_COMMON_H

#include "../runtime/runtime.h"

#include <stdio.h>
#include <string.h>

#ifdef SUPA_UNNAMED
/* In a library without error names, errors have CUDA's numbers. */
enum {
    INVALID_VALUE = 1,
    MEMORY_ALLOCATION = 2,
    INVALID_DIRECTION = 21,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    PEER_UNSUPPORTED = 217,
    PEER_ENABLED = 704,
    PEER_NOT_ENABLED = 705,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_READY = 600,
    LAUNCH_FAILURE = 719,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
    UPDATE_FAILURE = 910,
    OTHER = 999,
    INSUFFICIENT_DRIVER = 35
};
#else
enum {
    INVALID_VALUE = 1001,
    MEMORY_ALLOCATION,
    INVALID_DIRECTION,
    NO_DEVICE,
    INVALID_DEVICE,
    PEER_UNSUPPORTED,
    PEER_ENABLED,
    PEER_NOT_ENABLED,
    INVALID_HANDLE,
    ILLEGAL_STATE,
    NOT_READY,
    LAUNCH_FAILURE,
    ALREADY_REGISTERED,
    NOT_REGISTERED,
    NOT_SUPPORTED,
    CAPTURE_UNSUPPORTED,
    CAPTURE_INVALIDATED,
    CAPTURE_IMPLICIT,
    CAPTURED_EVENT,
    CAPTURE_WRONG_THREAD,
    UPDATE_FAILURE,
    OTHER,
    INSUFFICIENT_DRIVER
};
#endif

/* The names of errors, indexed by code - INVALID_VALUE; prefix is "suError" or "supaError". */
#define SUPA_NAMES(prefix) \
    { \
        prefix "InvalidValue", prefix "MemoryAllocation", prefix "InvalidMemcpyDirection", \
            prefix "NoDevice", prefix "InvalidDevice", prefix "PeerAccessUnsupported", \
            prefix "PeerAccessAlreadyEnabled", prefix "PeerAccessNotEnabled", \
            prefix "InvalidResourceHandle", prefix "IllegalState", prefix "NotReady", \
            prefix "LaunchFailure", prefix "HostMemoryAlreadyRegistered", \
            prefix "HostMemoryNotRegistered", prefix "NotSupported", \
            prefix "StreamCaptureUnsupported", prefix "StreamCaptureInvalidated", \
            prefix "StreamCaptureImplicit", prefix "CapturedEvent", \
            prefix "StreamCaptureWrongThread", prefix "GraphExecUpdateFailure", prefix "Other", \
            prefix "InsufficientDriver" \
    }

static const char *const supa_visible[] = {"SUPA_VISIBLE_DEVICES", NULL};

#define SUPA_VENDOR \
    { \
        .name = "supa", .order = "pci", .visible = supa_visible, .invalid_value = INVALID_VALUE, \
        .out_of_memory = MEMORY_ALLOCATION, .invalid_direction = INVALID_DIRECTION, \
        .no_device = NO_DEVICE, .invalid_device = INVALID_DEVICE, \
        .peer_unsupported = PEER_UNSUPPORTED, .peer_enabled = PEER_ENABLED, \
        .peer_not_enabled = PEER_NOT_ENABLED, .invalid_handle = INVALID_HANDLE, \
        .illegal_state = ILLEGAL_STATE, .not_ready = NOT_READY, .lost = LAUNCH_FAILURE, \
        .already_registered = ALREADY_REGISTERED, .not_registered = NOT_REGISTERED, \
        .not_supported = NOT_SUPPORTED, .capture_unsupported = CAPTURE_UNSUPPORTED, \
        .capture_invalidated = CAPTURE_INVALIDATED, .capture_implicit = CAPTURE_IMPLICIT, \
        .captured_event = CAPTURED_EVENT, .capture_wrong_thread = CAPTURE_WRONG_THREAD, \
        .update_failure = UPDATE_FAILURE, \
    }

/* Converts the runtime's number of a copy kind to one of enum rt_kind. */
static inline int supa_kind(int kind)
{
    static const int others[] = {RT_DEVICE_TO_DEVICE, RT_DEVICE_TO_HOST, RT_HOST_TO_DEVICE,
                                 RT_HOST_TO_HOST, RT_DEFAULT};

    if (strcmp(sim_vendor_text("numbering", "cuda"), "cuda") == 0) {
        return kind;
    }
    return kind >= 0 && kind <= 4 ? others[kind] : -1;
}

#endif
