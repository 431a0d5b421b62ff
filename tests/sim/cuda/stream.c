/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* libcuda.so.1, simulated: streams, events, capture and graphs. */
#include "cuda_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- streams -------------------------------------------------------------------------------- */

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct sim_stream *stream;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(phStream != NULL && flags <= 1, INVALID_VALUE);
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    stream =
        sim_stream_create(context->physical, flags == 1 ? SIM_STREAM_NON_BLOCKING : 0, priority);
    sim_handle_add(stream, "stream");
    *phStream = (CUstream)stream;
    return OK;
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct sim_stream *stream;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(phStream != NULL && Flags <= 1, INVALID_VALUE);
    stream = sim_stream_create(context->physical, Flags == 1 ? SIM_STREAM_NON_BLOCKING : 0, 0);
    sim_handle_add(stream, "stream");
    *phStream = (CUstream)stream;
    return OK;
}

/* Does not wait; a lost device's stream is destroyed as well. */
SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream)
{
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(hStream != NULL && hStream != STREAM_LEGACY && hStream != STREAM_PER_THREAD,
            INVALID_HANDLE);
    sim_handle_remove(hStream, "stream", __func__);
    sim_capture_part((struct sim_stream *)hStream);
    sim_stream_destroy((struct sim_stream *)hStream);
    return code;
}

/* Checks that a stream may be waited for. A capturing stream cannot be queried: a query breaks the
 * capture. So does the query of another stream, unless the thread's mode or the capture's allows
 * it. */
static CUresult check_waitable(CUcontext context, CUstream handle, struct sim_stream *stream)
{
    enum sim_capture status = sim_capture_status(stream);

    if (status != SIM_CAPTURE_NONE) {
        sim_capture_break(stream);
        return status == SIM_CAPTURE_BROKEN ? STREAM_CAPTURE_INVALIDATED
                                            : STREAM_CAPTURE_UNSUPPORTED;
    }
    return cuda_is_implicit(context, handle) ? cuda_implicit(context, handle)
                                             : cuda_forbidden(context);
}

SIM_EXPORT CUresult cuStreamSynchronize(CUstream hStream)
{
    struct sim_stream *stream;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    stream = cuda_stream(hStream, context, __func__);
    code = check_waitable(context, hStream, stream);
    REQUIRE(code == OK, code);
    return sim_stream_synchronize(stream, UINT64_MAX) == 0 ? OK : cuda_lost_code();
}

SIM_EXPORT CUresult cuStreamQuery(CUstream hStream)
{
    struct sim_stream *stream;
    CUcontext context;
    CUresult code;
    int state;

    ENTER_CONTEXT(context);
    stream = cuda_stream(hStream, context, __func__);
    code = check_waitable(context, hStream, stream);
    REQUIRE(code == OK, code);
    state = sim_stream_query(stream);
    return state == 0 ? OK : state > 0 ? NOT_READY : cuda_lost_code();
}

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct sim_stream *stream;
    struct sim_event *event = (struct sim_event *)hEvent;
    bool captures;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    stream = cuda_stream(hStream, context, __func__);
    sim_handle_check(hEvent, "event", __func__);
    REQUIRE(Flags <= 1, INVALID_VALUE);
    code = cuda_implicit(context, hStream);
    REQUIRE(code == OK, code);
    captures = sim_capture_status(stream) != SIM_CAPTURE_NONE;
    if (captures && (sim_event_flags(event) & EVENT_INTERPROCESS) != 0) {
        sim_capture_break(stream);
        return STREAM_CAPTURE_UNSUPPORTED;
    }
    if (sim_stream_wait_event(stream, event) == 0) {
        return OK;
    }
    if (sim_is_lost(sim_stream_physical(stream))) {
        return cuda_lost_code();
    }
    return !sim_event_is_captured(event)       ? STREAM_CAPTURE_ISOLATION
           : !sim_event_is_in_a_capture(event) ? INVALID_VALUE /* its capture has ended */
           : captures                          ? STREAM_CAPTURE_MERGE
                                               : CAPTURED_EVENT;
}

SIM_EXPORT CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(priority != NULL, INVALID_VALUE);
    *priority = sim_stream_priority(cuda_stream(hStream, context, __func__));
    return OK;
}

SIM_EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(pctx != NULL, INVALID_VALUE);
    *pctx = cuda_context_of(sim_stream_physical(cuda_stream(hStream, context, __func__)));
    return OK;
}

SIM_EXPORT CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct sim_stream *stream;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    REQUIRE(fn != NULL, INVALID_VALUE);
    stream = cuda_stream(hStream, context, __func__);
    code = cuda_implicit(context, hStream);
    REQUIRE(code == OK, code);
    return cuda_submitted(stream, sim_submit_task(stream, fn, userData));
}

/* ---- events --------------------------------------------------------------------------------- */

SIM_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct sim_event *event;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(phEvent != NULL && Flags <= 7, INVALID_VALUE);
    REQUIRE((Flags & EVENT_INTERPROCESS) == 0 || (Flags & EVENT_DISABLE_TIMING) != 0,
            INVALID_VALUE);
    event = sim_event_create(context->physical, Flags);
    sim_handle_add(event, "event");
    *phEvent = (CUevent)event;
    return OK;
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent)
{
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    sim_handle_remove(hEvent, "event", __func__);
    sim_event_destroy((struct sim_event *)hEvent);
    return code;
}

/* Event and stream must belong to the same context. */
SIM_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    struct sim_event *event = (struct sim_event *)hEvent;
    struct sim_stream *stream;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    sim_handle_check(hEvent, "event", __func__);
    stream = cuda_stream(hStream, context, __func__);
    REQUIRE(sim_event_physical(event) == sim_stream_physical(stream), INVALID_HANDLE);
    code = cuda_implicit(context, hStream);
    REQUIRE(code == OK, code);
    REQUIRE(sim_capture_status(stream) == SIM_CAPTURE_NONE ||
                (sim_event_flags(event) & EVENT_INTERPROCESS) == 0,
            STREAM_CAPTURE_UNSUPPORTED);
    return cuda_submitted(stream, sim_event_record(event, stream));
}

/* Like cuCtxSynchronize(), breaks every capture of the context. */
SIM_EXPORT CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct sim_event *event = (struct sim_event *)hEvent;
    CUcontext context;

    ENTER_CONTEXT(context);
    sim_handle_check(hEvent, "event", __func__);
    REQUIRE(hCtx == NULL || hCtx->physical == sim_event_physical(event), INVALID_HANDLE);
    REQUIRE(!sim_capture_break_all(sim_event_physical(event)), STREAM_CAPTURE_UNSUPPORTED);
    REQUIRE(!sim_is_lost(sim_event_physical(event)), cuda_lost_code());
    sim_event_record_all(event);
    return OK;
}

/* Checks that an event may be queried: an event recorded in a capture may not, and the query breaks
 * the capture; in a capture a query is unsafe. */
static CUresult check_askable(CUcontext context, struct sim_event *event)
{
    REQUIRE(!sim_event_break_capture(event), CAPTURED_EVENT);
    return sim_event_is_captured(event) ? INVALID_VALUE : cuda_forbidden(context);
}

SIM_EXPORT CUresult cuEventQuery(CUevent hEvent)
{
    struct sim_event *event = (struct sim_event *)hEvent;
    CUcontext context;
    CUresult code;
    int state;

    ENTER_CONTEXT(context);
    sim_handle_check(hEvent, "event", __func__);
    code = check_askable(context, event);
    REQUIRE(code == OK, code);
    state = sim_event_query(event);
    return state == 0 ? OK : state > 0 ? NOT_READY : cuda_lost_code();
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent hEvent)
{
    struct sim_event *event = (struct sim_event *)hEvent;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    sim_handle_check(hEvent, "event", __func__);
    code = check_askable(context, event);
    REQUIRE(code == OK, code);
    return sim_event_synchronize(event, UINT64_MAX) == 0 ? OK : cuda_lost_code();
}

static CUresult check_timed(struct sim_event *event, const char *call)
{
    int state;

    sim_handle_check(event, "event", call);
    REQUIRE((sim_event_flags(event) & EVENT_DISABLE_TIMING) == 0 && sim_event_is_recorded(event),
            INVALID_HANDLE);
    REQUIRE(!sim_event_is_captured(event),
            sim_event_is_in_a_capture(event) ? CAPTURED_EVENT : INVALID_VALUE);
    state = sim_event_query(event);
    return state == 0 ? OK : state > 0 ? NOT_READY : cuda_lost_code();
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end, const char *call)
{
    CUresult code;

    REQUIRE(milliseconds != NULL, INVALID_VALUE);
    code = check_timed((struct sim_event *)start, call);
    code = code == OK ? check_timed((struct sim_event *)end, call) : code;
    REQUIRE(code == OK, code);
    *milliseconds = (float)((double)(int64_t)(sim_event_time_ns((struct sim_event *)end) -
                                              sim_event_time_ns((struct sim_event *)start)) /
                            1e6);
    return OK;
}

SIM_EXPORT CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return elapsed(pMilliseconds, hStart, hEnd, __func__);
}

SIM_EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return elapsed(pMilliseconds, hStart, hEnd, __func__);
}

/* ---- capture -------------------------------------------------------------------------------- */

struct CUgraphNode_st {
    CUgraph graph;
    uint64_t number;
};

struct CUgraph_st {
    struct sim_graph *graph;
    struct CUgraphNode_st *nodes;
};

SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = cuda_capture_mode;

    ENTER();
    REQUIRE(mode != NULL && *mode >= 0 && *mode <= CAPTURE_RELAXED, INVALID_VALUE);
    cuda_capture_mode = *mode;
    *mode = before;
    return OK;
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, int mode)
{
    struct sim_stream *stream;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(mode >= 0 && mode <= CAPTURE_RELAXED, INVALID_VALUE);
    REQUIRE(hStream != NULL && hStream != STREAM_LEGACY, STREAM_CAPTURE_UNSUPPORTED);
    stream = cuda_stream(hStream, context, __func__);
    return sim_capture_begin(stream, (uint32_t)mode) ? OK : ILLEGAL_STATE;
}

/*
 * The legacy stream has no capture status while a stream that waits for it captures. The query
 * leaves the capture intact.
 */
SIM_EXPORT CUresult cuStreamIsCapturing(CUstream hStream, int *captureStatus)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(captureStatus != NULL, INVALID_VALUE);
    REQUIRE(!cuda_is_implicit(context, hStream), STREAM_CAPTURE_IMPLICIT);
    *captureStatus = (int)sim_capture_status(cuda_stream(hStream, context, __func__));
    return OK;
}

static CUgraph make_graph(struct sim_graph *captured)
{
    uint64_t count = sim_graph_node_count(captured);
    CUgraph graph = calloc(1, sizeof(*graph));
    struct CUgraphNode_st *nodes = calloc(count + 1, sizeof(*nodes));

    if (graph == NULL || nodes == NULL) {
        free(graph);
        free(nodes);
        return NULL;
    }
    graph->graph = captured;
    graph->nodes = nodes;
    for (uint64_t i = 0; i < count; i++) {
        nodes[i] = (struct CUgraphNode_st){graph, i};
    }
    sim_handle_add(graph, "graph");
    return graph;
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct sim_stream *stream;
    struct sim_graph *graph;
    enum sim_capture status;
    bool is_mine;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(phGraph != NULL, INVALID_VALUE);
    stream = cuda_stream(hStream, context, __func__);
    status = sim_capture_status(stream);
    REQUIRE(status != SIM_CAPTURE_NONE, ILLEGAL_STATE);
    *phGraph = NULL;
    is_mine = sim_capture_is_mine(stream);
    graph = sim_capture_end(stream);
    if (!is_mine) { /* the capture is over nonetheless */
        if (graph != NULL) {
            sim_graph_destroy(graph);
        }
        return STREAM_CAPTURE_WRONG_THREAD;
    }
    if (graph == NULL) {
        return status == SIM_CAPTURE_BROKEN ? STREAM_CAPTURE_INVALIDATED : STREAM_CAPTURE_UNJOINED;
    }
    *phGraph = code == OK ? make_graph(graph) : NULL;
    if (*phGraph == NULL) {
        sim_graph_destroy(graph);
        return code != OK ? code : OUT_OF_MEMORY;
    }
    return OK;
}

/* ---- graphs --------------------------------------------------------------------------------- */

SIM_EXPORT CUresult cuGraphDestroy(CUgraph hGraph)
{
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, NULL, &code), code);
    sim_handle_remove(hGraph, "graph", __func__);
    sim_graph_destroy(hGraph->graph);
    free(hGraph->nodes);
    free(hGraph);
    return code;
}

SIM_EXPORT CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    uint64_t count;

    ENTER();
    sim_handle_check(hGraph, "graph", __func__);
    REQUIRE(numNodes != NULL, INVALID_VALUE);
    count = sim_graph_node_count(hGraph->graph);
    for (size_t i = 0; nodes != NULL && i < *numNodes; i++) {
        nodes[i] = i < count ? &hGraph->nodes[i] : NULL;
    }
    if (nodes == NULL || *numNodes > count) {
        *numNodes = count;
    }
    return OK;
}

SIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode hNode, int *type)
{
    const char *kind;

    ENTER();
    REQUIRE(hNode != NULL && type != NULL, INVALID_VALUE);
    sim_handle_check(hNode->graph, "graph", __func__);
    kind = sim_graph_node_kind(hNode->graph->graph, hNode->number);
    *type = strcmp(kind, "copy") == 0     ? 1
            : strcmp(kind, "fill") == 0   ? 2
            : strcmp(kind, "task") == 0   ? 3
            : strcmp(kind, "wait") == 0   ? 6
            : strcmp(kind, "record") == 0 ? 7
                                          : 5;
    return OK;
}

SIM_EXPORT CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    FILE *file;

    (void)flags;
    ENTER();
    sim_handle_check(hGraph, "graph", __func__);
    REQUIRE(path != NULL, INVALID_VALUE);
    file = fopen(path, "w");
    REQUIRE(file != NULL, OPERATING_SYSTEM);
    fputs("digraph dot {\n", file);
    for (uint64_t i = 0; i < sim_graph_node_count(hGraph->graph); i++) {
        fprintf(file, "\"graph_0_node_%llu\"[label=\"%s\"];\n", (unsigned long long)i,
                sim_graph_node_kind(hGraph->graph, i));
    }
    fputs("}\n", file);
    return fclose(file) == 0 ? OK : OPERATING_SYSTEM;
}

SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                unsigned long long flags)
{
    struct sim_graph *instance;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    sim_handle_check(hGraph, "graph", __func__);
    REQUIRE(phGraphExec != NULL && flags <= 15, INVALID_VALUE);
    code = cuda_forbidden(context);
    REQUIRE(code == OK, code);
    instance = sim_graph_copy(hGraph->graph);
    sim_handle_add(instance, "graph-exec");
    *phGraphExec = (CUgraphExec)instance;
    return OK;
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(cuda_forbidden(context) == OK, STREAM_CAPTURE_UNSUPPORTED);
    sim_handle_remove(hGraphExec, "graph-exec", __func__);
    sim_graph_destroy((struct sim_graph *)hGraphExec);
    return code;
}

SIM_EXPORT CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    sim_handle_check(hGraphExec, "graph-exec", __func__);
    cuda_stream(hStream, context, __func__);
    return OK;
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    struct sim_stream *stream;
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    sim_handle_check(hGraphExec, "graph-exec", __func__);
    stream = cuda_stream(hStream, context, __func__);
    code = cuda_implicit(context, hStream);
    REQUIRE(code == OK, code);
    if (sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        sim_capture_break(stream);
        return STREAM_CAPTURE_UNSUPPORTED;
    }
    return cuda_submitted(stream, sim_graph_launch((struct sim_graph *)hGraphExec, stream));
}

SIM_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                         CUgraphExecUpdateResultInfo *resultInfo)
{
    bool is_same;

    ENTER();
    sim_handle_check(hGraphExec, "graph-exec", __func__);
    sim_handle_check(hGraph, "graph", __func__);
    REQUIRE(resultInfo != NULL, INVALID_VALUE);
    is_same = sim_graph_update((struct sim_graph *)hGraphExec, hGraph->graph);
    *resultInfo = (CUgraphExecUpdateResultInfo){.result = is_same ? 0 : 2};
    return is_same ? OK : GRAPH_EXEC_UPDATE_FAILURE;
}

/* The form of cuGraphExecUpdate before CUDA 12, with two outputs instead of a struct. */
SIM_EXPORT CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphNode *hErrorNode_out, int *updateResult_out)
{
    bool is_same;

    ENTER();
    sim_handle_check(hGraphExec, "graph-exec", __func__);
    sim_handle_check(hGraph, "graph", __func__);
    REQUIRE(updateResult_out != NULL, INVALID_VALUE);
    is_same = sim_graph_update((struct sim_graph *)hGraphExec, hGraph->graph);
    *updateResult_out = is_same ? 0 : 2;
    if (hErrorNode_out != NULL) {
        *hErrorNode_out = NULL;
    }
    return is_same ? OK : GRAPH_EXEC_UPDATE_FAILURE;
}
