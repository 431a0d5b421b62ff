/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated AscendCL: streams, events, captured work. */
#include "sim_acl.h"

#include <stdlib.h>

enum {
    ACL_STREAM_STATUS_COMPLETE = 0,
    ACL_STREAM_STATUS_NOT_READY = 1,
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
    ACL_EVENT_SYNC = 1,
    ACL_EVENT_TIME_LINE = 8,
    ACL_EVENT_IPC = 64,
    ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0,
    ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2
};

SIM_ASSERT(ACL_STREAM_STATUS_COMPLETE != ACL_EVENT_RECORDED_STATUS_COMPLETE,
           "npu.md: the two numberings are opposite");

static _Thread_local int capture_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

bool acl_is_forbidden(uint32_t physical)
{
    if (capture_mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED || !sim_capture_is_strict()) {
        return false;
    }
    sim_capture_forbid(physical);
    return true;
}

aclError acl_work(int result, uint32_t physical)
{
    if (result >= 0) {
        return ACL_SUCCESS;
    }
    return sim_is_lost(physical) ? ACL_ERROR_RT_LOST_HEARTBEAT
                                 : ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED;
}

/* ---- streams -------------------------------------------------------------------------------- */

static aclError make_stream(struct context *context, uint32_t flags, int32_t priority,
                            struct stream **stream_out)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    stream->context = context;
    stream->is_default = (flags & SIM_STREAM_DEFAULT) != 0;
    stream->sim = sim_stream_create(context->physical, flags, priority);
    if (stream->sim == NULL) {
        free(stream);
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    sim_handle_add(stream, "stream");
    *stream_out = stream;
    return ACL_SUCCESS;
}

aclError acl_stream(aclrtStream handle, const char *call, struct stream **stream_out)
{
    struct context *context;
    aclError code = acl_ready(&context);

    if (code == ACL_ERROR_RT_CONTEXT_NULL) {
        return code;
    }
    if (handle == NULL) {
        if (context->default_stream == NULL) {
            aclError made =
                make_stream(context, SIM_STREAM_NON_BLOCKING, 0, &context->default_stream);

            if (made != ACL_SUCCESS) {
                return made;
            }
            context->default_stream->is_default = true;
        }
        handle = context->default_stream;
    }
    sim_handle_check(handle, "stream", call);
    *stream_out = handle;
    return (*stream_out)->context != context ? ACL_ERROR_RT_STREAM_CONTEXT : code;
}

SIM_EXPORT aclError aclrtCreateStream(aclrtStream *stream)
{
    struct context *context;
    struct stream *made;
    aclError code;

    BEGIN("aclrtCreateStream");
    code = acl_ready(&context);
    if (code == ACL_SUCCESS) {
        code = make_stream(context, SIM_STREAM_NON_BLOCKING, 0, &made);
    }
    if (code == ACL_SUCCESS) {
        *stream = made;
    }
    return code;
}

SIM_EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
                                                uint32_t flag)
{
    struct context *context;
    struct stream *made;
    aclError code;

    BEGIN("aclrtCreateStreamWithConfig");
    if (priority > 7 || (flag & ~3u) != 0) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    code = acl_ready(&context);
    if (code == ACL_SUCCESS) {
        code = make_stream(context, SIM_STREAM_NON_BLOCKING, (int32_t)priority, &made);
    }
    if (code == ACL_SUCCESS) {
        *stream = made;
    }
    return code;
}

SIM_EXPORT aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority,
                                                      int32_t *greatestPriority)
{
    BEGIN("aclrtDeviceGetStreamPriorityRange");
    *leastPriority = 7;
    *greatestPriority = 0;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtDestroyStream(aclrtStream stream)
{
    struct stream *gone;
    aclError code;

    BEGIN("aclrtDestroyStream");
    code = acl_stream(stream, "aclrtDestroyStream", &gone);
    if (code == ACL_ERROR_RT_STREAM_CONTEXT || code == ACL_ERROR_RT_CONTEXT_NULL) {
        return code;
    }
    sim_handle_remove(gone, "stream", "aclrtDestroyStream");
    sim_stream_destroy(gone->sim);
    free(gone);
    return ACL_SUCCESS;
}

/* Returns true if the stream captures, and breaks its capture, because the call is not allowed
 * there. */
static bool breaks_capture(struct stream *stream)
{
    if (sim_capture_status(stream->sim) == SIM_CAPTURE_NONE) {
        return false;
    }
    sim_capture_break(stream->sim);
    return true;
}

SIM_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream)
{
    struct stream *of;
    aclError code;

    BEGIN("aclrtSynchronizeStream");
    code = acl_stream(stream, "aclrtSynchronizeStream", &of);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (breaks_capture(of)) {
        return ACL_ERROR_RT_STREAM_CAPTURED;
    }
    return acl_work(sim_stream_synchronize(of->sim, UINT64_MAX), of->context->physical);
}

SIM_EXPORT aclError aclrtStreamQuery(aclrtStream stream, int *status)
{
    struct stream *of;
    aclError code;
    int result;

    BEGIN("aclrtStreamQuery");
    code = acl_stream(stream, "aclrtStreamQuery", &of);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (breaks_capture(of)) {
        return ACL_ERROR_RT_STREAM_CAPTURED;
    }
    result = sim_stream_query(of->sim);
    if (result >= 0) {
        *status = result == 0 ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    }
    return acl_work(result, of->context->physical);
}

SIM_EXPORT aclError aclrtLaunchHostFunc(aclrtStream stream, void (*func)(void *), void *args)
{
    struct stream *to;
    aclError code;

    BEGIN("aclrtLaunchHostFunc");
    code = acl_stream(stream, "aclrtLaunchHostFunc", &to);
    if (code != ACL_SUCCESS) {
        return code;
    }
    return acl_work(sim_submit_task(to->sim, func, args), to->context->physical);
}

/* ---- events --------------------------------------------------------------------------------- */

static struct event *event_of(aclrtEvent handle, const char *call)
{
    sim_handle_check(handle, "event", call);
    return handle;
}

SIM_EXPORT aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
    struct context *context;
    struct event *made;
    aclError code;

    BEGIN("aclrtCreateEventExWithFlag");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (flag == 0 || (flag & ~(1u | 2u | 8u | 32u | 64u)) != 0 ||
        ((flag & ACL_EVENT_IPC) != 0 && flag != ACL_EVENT_IPC)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    made->flags = flag;
    made->physical = context->physical;
    made->sim = sim_event_create(context->physical, flag);
    if (made->sim == NULL) {
        free(made);
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    sim_handle_add(made, "event");
    *event = made;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtDestroyEvent(aclrtEvent event)
{
    struct event *gone;

    BEGIN("aclrtDestroyEvent");
    gone = event_of(event, "aclrtDestroyEvent");
    sim_handle_remove(gone, "event", "aclrtDestroyEvent");
    sim_event_destroy(gone->sim);
    free(gone);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    struct event *of;
    struct stream *in;
    aclError code;

    BEGIN("aclrtRecordEvent");
    of = event_of(event, "aclrtRecordEvent");
    code = acl_stream(stream, "aclrtRecordEvent", &in);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if ((of->flags & ACL_EVENT_IPC) != 0 && sim_capture_status(in->sim) != SIM_CAPTURE_NONE) {
        return ACL_ERROR_RT_FEATURE_NOT_SUPPORT; /* by the manual, not in a capture */
    }
    return acl_work(sim_event_record(of->sim, in->sim), in->context->physical);
}

SIM_EXPORT aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    struct event *of;
    struct stream *in;
    aclError code;

    BEGIN("aclrtStreamWaitEvent");
    of = event_of(event, "aclrtStreamWaitEvent");
    code = acl_stream(stream, "aclrtStreamWaitEvent", &in);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if ((of->flags & (ACL_EVENT_SYNC | ACL_EVENT_IPC)) == 0) {
        return ACL_ERROR_RT_PARAM_INVALID; /* such an event cannot order streams */
    }
    if ((of->flags & ACL_EVENT_IPC) != 0 && sim_capture_status(in->sim) != SIM_CAPTURE_NONE) {
        return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    }
    return acl_work(sim_stream_wait_event(in->sim, of->sim), in->context->physical);
}

SIM_EXPORT aclError aclrtQueryEventStatus(aclrtEvent event, int *status)
{
    struct event *of;
    int result;

    BEGIN("aclrtQueryEventStatus");
    of = event_of(event, "aclrtQueryEventStatus");
    if (sim_event_is_captured(of->sim)) {
        return ACL_ERROR_RT_EVENT_CAPTURED;
    }
    if (acl_is_forbidden(of->physical)) {
        return ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT;
    }
    result = sim_event_query(of->sim);
    if (result >= 0) {
        *status = result == 0 ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                              : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    }
    return acl_work(result, of->physical);
}

SIM_EXPORT aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    struct event *of;

    BEGIN("aclrtSynchronizeEvent");
    of = event_of(event, "aclrtSynchronizeEvent");
    if (sim_event_is_captured(of->sim)) {
        return ACL_ERROR_RT_EVENT_CAPTURED;
    }
    if (acl_is_forbidden(of->physical)) {
        return ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT;
    }
    return acl_work(sim_event_synchronize(of->sim, UINT64_MAX), of->physical);
}

SIM_EXPORT aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    struct event *start;
    struct event *end;

    BEGIN("aclrtEventElapsedTime");
    start = event_of(startEvent, "aclrtEventElapsedTime");
    end = event_of(endEvent, "aclrtEventElapsedTime");
    if ((start->flags & end->flags & ACL_EVENT_TIME_LINE) == 0) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (sim_event_query(start->sim) != 0 || sim_event_query(end->sim) != 0) {
        return ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
    }
    *ms = (float)((double)(int64_t)(sim_event_time_ns(end->sim) - sim_event_time_ns(start->sim)) /
                  1e6);
    return ACL_SUCCESS;
}

/* ---- captured work -------------------------------------------------------------------------- */

SIM_EXPORT aclError aclmdlRICaptureBegin(aclrtStream stream, int mode)
{
    struct stream *of;
    aclError code;

    BEGIN("aclmdlRICaptureBegin");
    code = acl_stream(stream, "aclmdlRICaptureBegin", &of);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (mode < 0 || mode > 2) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (of->is_default) {
        return ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT;
    }
    return sim_capture_begin(of->sim, (uint32_t)mode) ? ACL_SUCCESS : ACL_ERROR_RT_STREAM_CAPTURED;
}

SIM_EXPORT aclError aclmdlRICaptureGetInfo(aclrtStream stream, int *status, aclmdlRI *modelRI)
{
    struct stream *of;
    aclError code;

    BEGIN("aclmdlRICaptureGetInfo");
    code = acl_stream(stream, "aclmdlRICaptureGetInfo", &of);
    if (code != ACL_SUCCESS) {
        return code;
    }
    *status = (int)sim_capture_status(of->sim); /* none 0, active 1, invalidated 2 */
    *modelRI = NULL;
    return ACL_SUCCESS;
}

SIM_ASSERT(SIM_CAPTURE_NONE == 0 && SIM_CAPTURE_ACTIVE == 1 && SIM_CAPTURE_BROKEN == 2,
           "npu.md: ACL_MODEL_RI_CAPTURE_STATUS_*");

SIM_EXPORT aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI)
{
    struct stream *of;
    struct sim_graph *graph;
    aclError code;

    BEGIN("aclmdlRICaptureEnd");
    code = acl_stream(stream, "aclmdlRICaptureEnd", &of);
    if (code == ACL_ERROR_RT_CONTEXT_NULL || code == ACL_ERROR_RT_STREAM_CONTEXT) {
        return code;
    }
    if (sim_capture_status(of->sim) == SIM_CAPTURE_NONE) {
        return ACL_ERROR_RT_STREAM_NOT_CAPTURED;
    }
    graph = sim_capture_end(of->sim);
    if (graph == NULL) {
        return ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED;
    }
    sim_handle_add(graph, "model");
    *modelRI = graph;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclmdlRICaptureThreadExchangeMode(int *mode)
{
    int before = capture_mode;

    BEGIN("aclmdlRICaptureThreadExchangeMode");
    if (*mode < 0 || *mode > 2) {
        return ACL_ERROR_INVALID_PARAM;
    }
    capture_mode = *mode;
    *mode = before;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream)
{
    struct stream *in;
    aclError code;

    BEGIN("aclmdlRIExecuteAsync");
    sim_handle_check(modelRI, "model", "aclmdlRIExecuteAsync");
    code = acl_stream(stream, "aclmdlRIExecuteAsync", &in);
    if (code != ACL_SUCCESS) {
        return code;
    }
    return acl_work(sim_graph_launch(modelRI, in->sim), in->context->physical);
}

SIM_EXPORT aclError aclmdlRIDestroy(aclmdlRI modelRI)
{
    BEGIN("aclmdlRIDestroy");
    sim_handle_check(modelRI, "model", "aclmdlRIDestroy");
    sim_handle_remove(modelRI, "model", "aclmdlRIDestroy");
    sim_graph_destroy(modelRI);
    return ACL_SUCCESS;
}
