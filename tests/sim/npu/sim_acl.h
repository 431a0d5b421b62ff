/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations that the files of the simulated libascendcl.so share. Prototypes and numbers are
 * written from AscendCL's headers (ACL 1.15.0) and manual, independently of the plugin's, so that a
 * mistake in either of them is detected.
 */
#ifndef DS_ACCEL_TESTS_SIM_NPU_SIM_ACL_H
#define DS_ACCEL_TESTS_SIM_NPU_SIM_ACL_H

#include "engine.h"

/* No header declares these exports: programs that open the library declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int aclError;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef void *aclmdlRI;

enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
    ACL_ERROR_API_NOT_SUPPORT = 200001,
    ACL_ERROR_RT_PARAM_INVALID = 107000,
    ACL_ERROR_RT_INVALID_DEVICEID = 107001,
    ACL_ERROR_RT_CONTEXT_NULL = 107002,
    ACL_ERROR_RT_STREAM_CONTEXT = 107003,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006,
    ACL_ERROR_RT_STREAM_CAPTURED = 107027,
    ACL_ERROR_RT_EVENT_CAPTURED = 107028,
    ACL_ERROR_RT_STREAM_NOT_CAPTURED = 107029,
    ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT = 107030,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT = 107031,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
    ACL_ERROR_RT_NO_DEVICE = 207004,
    ACL_ERROR_RT_LOST_HEARTBEAT = 507010,
    ACL_ERROR_RT_DEV_SETUP_ERROR = 507033,
    ACL_ERROR_RT_DRV_INTERNAL_ERROR = 507899,
    ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED = 507903
};

typedef enum {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE,
    ACL_MEMCPY_DEFAULT
} aclrtMemcpyKind;

SIM_ASSERT(ACL_MEMCPY_DEVICE_TO_DEVICE == 3, "npu.md: aclrtMemcpyKind");
SIM_ASSERT(ACL_MEMCPY_DEFAULT == 4, "npu.md: aclrtMemcpyKind");
SIM_ASSERT(sizeof(aclrtMemcpyKind) == 4 && sizeof(aclError) == 4, "npu.md: enums are ints");

/*
 * A thread's context: the primary context of a device, with a count of users, or a context that the
 * program created.
 */
struct context {
    int32_t user; /* the caller's number of the device */
    uint32_t physical;
    bool is_primary;
    uint32_t count; /* calls of aclrtSetDevice() */
    struct stream *default_stream;
};

struct stream {
    struct sim_stream *sim;
    struct context *context;
    bool is_default;
};

struct event {
    struct sim_event *sim;
    uint32_t flags;
    uint32_t physical;
};

/* The first statement of an exported function: returns a scripted failure, or the code of a call
 * before aclInit(). */
#define BEGIN(call) \
    do { \
        int64_t scripted_ = acl_begin(call); \
        if (scripted_ != 0) { \
            return (aclError)scripted_; \
        } \
    } while (0)

int64_t acl_begin(const char *call);
/* Returns the calling thread's context; NULL: it has none, or its context was destroyed. */
struct context *acl_context(void);
/* Returns 0, or the code if the thread's device cannot accept work: no context, or a lost
 * device. */
aclError acl_ready(struct context **context_out);
/* Stores the stream, which must belong to the thread's context; NULL is that context's default
 * stream. */
aclError acl_stream(aclrtStream handle, const char *call, struct stream **stream_out);
/* Returns true, and breaks the capture, if a strict capture of this thread forbids the call. */
bool acl_is_forbidden(uint32_t physical);
/* Returns the code for the result of a work. */
aclError acl_work(int result, uint32_t physical);
int32_t acl_device_count(void);
/* Returns the physical number of the caller's number; -1: no such device. */
int32_t acl_physical(int32_t user);
/* Returns true if access from one device to the other's memory is enabled. */
bool acl_peers(uint32_t from, uint32_t to);

#endif
