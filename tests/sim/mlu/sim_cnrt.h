/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations that the files of the simulated libcnrt.so share. Prototypes and numbers are written
 * from cnrt.h 6.14, independently of the plugin's, so that a mistake in either of them is detected.
 */
#ifndef DS_ACCEL_TESTS_SIM_MLU_SIM_CNRT_H
#define DS_ACCEL_TESTS_SIM_MLU_SIM_CNRT_H

#include "engine.h"

/* No header declares these exports: programs that open the library declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int cnrtRet_t;
typedef struct queue *cnrtQueue_t;
typedef struct notifier *cnrtNotifier_t;

enum {
    cnrtSuccess = 0,
    cnrtErrorNotReady = 1,
    cnrtErrorInit = 100002,
    cnrtErrorNoDevice = 100004,
    cnrtErrorDeviceInvalid = 100005,
    cnrtErrorArgsInvalid = 100006,
    cnrtErrorSysNoMem = 100010,
    cnrtErrorInvalidResourceHandle = 100014,
    cnrtErrorIllegalState = 100015,
    cnrtErrorNoMem = 100100,
    cnrtErrorQueueCaptureUnsupported = 100360,
    cnrtErrorQueueCaptureInvalidated = 100361,
    cnrtErrorQueueCaptureUnmatched = 100366,
    cnrtErrorDevice = 632006, /* a resource of a device other than the thread's device */
    cnrtErrorMemcpyDirectionInvalid = 632013,
    cnrtErrorBusy = 632014,
    cnrtErrorCndrvFuncCall = 632015
};

typedef enum {
    cnrtMemcpyHostToDev = 0,
    cnrtMemcpyDevToDev,
    cnrtMemcpyDevToHost,
    cnrtMemcpyHostToHost,
    cnrtMemcpyPeerToPeer,
    cnrtMemcpyNoDirection
} cnrtMemTransDir_t;

SIM_ASSERT(cnrtMemcpyDevToHost == 2 && cnrtMemcpyHostToHost == 3, "mlu.md: cnrtMemTransDir_t");
SIM_ASSERT(cnrtMemcpyNoDirection == 5, "mlu.md: cnrtMemTransDir_t");
SIM_ASSERT(sizeof(cnrtMemTransDir_t) == 4, "mlu.md: enums are ints");

struct queue {
    struct sim_stream *sim;
    int device; /* the caller's number of the device */
    bool is_default;
};

struct notifier {
    struct sim_event *sim;
    unsigned int flags;
    uint32_t physical;
};

/* The first statement of an exported function: returns a scripted failure. */
#define BEGIN(call) \
    do { \
        int64_t scripted_ = sim_enter(call); \
        if (scripted_ != 0) { \
            return (cnrtRet_t)scripted_; \
        } \
    } while (0)

int cnrt_device_count(void);
/* Returns the physical number of a device; -1: no such device. */
int32_t cnrt_physical(int device);
/* Stores the thread's device, or returns the code if the device cannot accept work. */
cnrtRet_t cnrt_ready(int *device_out, uint32_t *physical_out);
/* Stores the queue, which must belong to the thread's device; NULL is that device's default
 * queue. */
cnrtRet_t cnrt_queue(cnrtQueue_t handle, const char *call, struct queue **queue_out);
/* Returns true, and breaks the capture, if a strict capture of this thread forbids the call. */
bool cnrt_is_forbidden(uint32_t physical);
/*
 * The code of calls on a lost device. CNRT has no specific code for it, only "a call of the driver
 * failed".
 */
#define CNRT_LOST cnrtErrorCndrvFuncCall
/* Returns the code for the result of a work. */
cnrtRet_t cnrt_work(int result, uint32_t physical);

#endif
