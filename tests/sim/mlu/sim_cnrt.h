/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of the simulated libcnrt.so share. Its prototypes and numbers are written from
 * cnrt.h 6.14, apart from the plugin's, so that a mistake in one of the two is seen.
 */
#ifndef DS_ACCEL_SIM_CNRT_H
#define DS_ACCEL_SIM_CNRT_H

#include "engine.h"

/* What is exported is declared by who opens the library. */
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
    cnrtErrorDevice = 632006, /* a resource of another device than the thread's */
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
    int device; /* the number that the caller counts by */
    bool is_default;
};

struct notifier {
    struct sim_event *sim;
    unsigned int flags;
    uint32_t physical;
};

/* Begin an exported function: a scripted failure. */
#define BEGIN(call) \
    do { \
        int64_t scripted_ = sim_enter(call); \
        if (scripted_ != 0) { \
            return (cnrtRet_t)scripted_; \
        } \
    } while (0)

int cnrt_device_count(void);
/* -1: no such device. */
int32_t cnrt_physical(int device);
/* The thread's device; its code if work on it cannot be. */
cnrtRet_t cnrt_ready(int *device_out, uint32_t *physical_out);
/* The queue, which must be of the thread's device; NULL is that device's default queue. */
cnrtRet_t cnrt_queue(cnrtQueue_t handle, const char *call, struct queue **queue_out);
/* A call that a strict capture of this thread forbids: break the capture, true. */
bool cnrt_is_forbidden(uint32_t physical);
/* What calls answer on a lost device: CNRT has no code of its own for that, only "a call of the
   driver failed". */
#define CNRT_LOST cnrtErrorCndrvFuncCall
/* The code of a work that failed. */
cnrtRet_t cnrt_work(int result, uint32_t physical);

#endif
