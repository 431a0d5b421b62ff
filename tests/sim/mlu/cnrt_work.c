/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated CNRT: queues, notifiers, task topos. */
#include "sim_cnrt.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_DEVICES 64

enum {
    CNRT_NOTIFIER_DISABLE_TIMING_SW = 2,
    CNRT_NOTIFIER_DISABLE_TIMING_ALL = 4,
    CNRT_NOTIFIER_INTERPROCESS = 8
};

typedef struct cnrtIpcNotifierHandle_st {
    uint64_t res[8];
} cnrtIpcNotifierHandle;

SIM_ASSERT(sizeof(cnrtIpcNotifierHandle) == 64, "mlu.md: passed by value");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue *defaults[MAX_DEVICES];

bool cnrt_is_forbidden(uint32_t physical)
{
    if (!sim_capture_is_strict()) {
        return false;
    }
    sim_capture_forbid(physical);
    return true;
}

cnrtRet_t cnrt_work(int result, uint32_t physical)
{
    if (result >= 0) {
        return cnrtSuccess;
    }
    return sim_is_lost(physical) ? CNRT_LOST : cnrtErrorQueueCaptureInvalidated;
}

/* Returns the code of a result. "Not ready" is 1, or 632014 with the machine's "not_ready":
 * 632014. */
static cnrtRet_t answer(int result, uint32_t physical)
{
    return result == 1 ? (cnrtRet_t)sim_vendor_number("not_ready", cnrtErrorNotReady)
                       : cnrt_work(result, physical);
}

/* ---- queues --------------------------------------------------------------------------------- */

static cnrtRet_t make_queue(int device, uint32_t flags, int32_t priority, struct queue **queue_out)
{
    struct queue *queue = calloc(1, sizeof(*queue));

    if (queue == NULL) {
        return cnrtErrorSysNoMem;
    }
    queue->device = device;
    queue->is_default = (flags & SIM_STREAM_DEFAULT) != 0;
    queue->sim = sim_stream_create((uint32_t)cnrt_physical(device), flags, priority);
    if (queue->sim == NULL) {
        free(queue);
        return cnrtErrorSysNoMem;
    }
    sim_handle_add(queue, "queue");
    *queue_out = queue;
    return cnrtSuccess;
}

static cnrtRet_t default_queue(int device, struct queue **queue_out)
{
    cnrtRet_t code = cnrtSuccess;

    pthread_mutex_lock(&lock);
    if (defaults[device] == NULL) {
        code = make_queue(device, SIM_STREAM_DEFAULT, 0, &defaults[device]);
    }
    *queue_out = defaults[device];
    pthread_mutex_unlock(&lock);
    return code;
}

cnrtRet_t cnrt_queue(cnrtQueue_t handle, const char *call, struct queue **queue_out)
{
    int device;
    uint32_t physical;
    cnrtRet_t code = cnrt_ready(&device, &physical);

    if (code == cnrtErrorNoDevice) {
        return code;
    }
    if (handle == NULL) {
        cnrtRet_t made = default_queue(device, queue_out);

        return made != cnrtSuccess ? made : code;
    }
    sim_handle_check(handle, "queue", call);
    *queue_out = handle;
    return handle->device != device ? cnrtErrorDevice : code;
}

SIM_EXPORT cnrtRet_t cnrtQueueCreateWithPriority(cnrtQueue_t *pQueue, unsigned int flags,
                                                 int priority)
{
    int device;
    uint32_t physical;
    cnrtRet_t code;

    BEGIN("cnrtQueueCreateWithPriority");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    if (flags != 0 || priority > 0 || priority < -3) {
        return cnrtErrorArgsInvalid;
    }
    return make_queue(device, 0, priority, pQueue);
}

SIM_EXPORT cnrtRet_t cnrtQueueCreate(cnrtQueue_t *pQueue)
{
    int device;
    uint32_t physical;
    cnrtRet_t code;

    BEGIN("cnrtQueueCreate");
    code = cnrt_ready(&device, &physical);
    return code != cnrtSuccess ? code : make_queue(device, 0, 0, pQueue);
}

SIM_EXPORT cnrtRet_t cnrtQueueDestroy(cnrtQueue_t queue)
{
    BEGIN("cnrtQueueDestroy");
    sim_handle_check(queue, "queue", "cnrtQueueDestroy");
    if (queue->is_default) {
        return cnrtErrorArgsInvalid;
    }
    sim_handle_remove(queue, "queue", "cnrtQueueDestroy");
    sim_stream_destroy(queue->sim);
    free(queue);
    return cnrtSuccess;
}

/* Returns true if the queue captures, and breaks its capture, because the call is not allowed
 * there. */
static bool breaks_capture(const struct queue *queue)
{
    if (sim_capture_status(queue->sim) == SIM_CAPTURE_NONE) {
        return false;
    }
    sim_capture_break(queue->sim);
    return true;
}

SIM_EXPORT cnrtRet_t cnrtQueueSync(cnrtQueue_t queue)
{
    struct queue *of;
    cnrtRet_t code;

    BEGIN("cnrtQueueSync");
    code = cnrt_queue(queue, "cnrtQueueSync", &of);
    if (code != cnrtSuccess) {
        return code;
    }
    if (breaks_capture(of)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    return cnrt_work(sim_stream_synchronize(of->sim, UINT64_MAX), sim_stream_physical(of->sim));
}

SIM_EXPORT cnrtRet_t cnrtQueueQuery(cnrtQueue_t queue)
{
    struct queue *of;
    cnrtRet_t code;

    BEGIN("cnrtQueueQuery");
    code = cnrt_queue(queue, "cnrtQueueQuery", &of);
    if (code != cnrtSuccess) {
        return code;
    }
    if (breaks_capture(of)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    return answer(sim_stream_query(of->sim), sim_stream_physical(of->sim));
}

SIM_EXPORT cnrtRet_t cnrtInvokeHostFunc(cnrtQueue_t queue, void (*fn)(void *), void *userData)
{
    struct queue *in;
    cnrtRet_t code;

    BEGIN("cnrtInvokeHostFunc");
    code = cnrt_queue(queue, "cnrtInvokeHostFunc", &in);
    if (code != cnrtSuccess) {
        return code;
    }
    return cnrt_work(sim_submit_task(in->sim, fn, userData), sim_stream_physical(in->sim));
}

/* ---- notifiers ------------------------------------------------------------------------------ */

static cnrtRet_t add_notifier(struct sim_event *sim, unsigned int flags, uint32_t physical,
                              cnrtNotifier_t *notifier_out)
{
    struct notifier *notifier = sim != NULL ? calloc(1, sizeof(*notifier)) : NULL;

    if (notifier == NULL) {
        if (sim != NULL) {
            sim_event_destroy(sim);
        }
        return cnrtErrorSysNoMem;
    }
    notifier->sim = sim;
    notifier->flags = flags;
    notifier->physical = physical;
    sim_handle_add(notifier, "notifier");
    *notifier_out = notifier;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtNotifierCreateWithFlags(cnrtNotifier_t *pNotifier, unsigned int flags)
{
    int device;
    uint32_t physical;
    cnrtRet_t code;

    BEGIN("cnrtNotifierCreateWithFlags");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    if ((flags & ~(unsigned)(CNRT_NOTIFIER_DISABLE_TIMING_SW | CNRT_NOTIFIER_DISABLE_TIMING_ALL |
                             CNRT_NOTIFIER_INTERPROCESS)) != 0 ||
        ((flags & CNRT_NOTIFIER_INTERPROCESS) != 0 &&
         (flags & CNRT_NOTIFIER_DISABLE_TIMING_ALL) == 0)) {
        return cnrtErrorArgsInvalid;
    }
    return add_notifier(sim_event_create(physical, flags), flags, physical, pNotifier);
}

SIM_EXPORT cnrtRet_t cnrtNotifierDestroy(cnrtNotifier_t notifier)
{
    BEGIN("cnrtNotifierDestroy");
    sim_handle_check(notifier, "notifier", "cnrtNotifierDestroy");
    sim_handle_remove(notifier, "notifier", "cnrtNotifierDestroy");
    sim_event_destroy(notifier->sim);
    free(notifier);
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtPlaceNotifier(cnrtNotifier_t notifier, cnrtQueue_t queue)
{
    struct queue *in;
    cnrtRet_t code;

    BEGIN("cnrtPlaceNotifier");
    sim_handle_check(notifier, "notifier", "cnrtPlaceNotifier");
    code = cnrt_queue(queue, "cnrtPlaceNotifier", &in);
    if (code != cnrtSuccess) {
        return code;
    }
    return cnrt_work(sim_event_record(notifier->sim, in->sim), sim_stream_physical(in->sim));
}

/* The argument notifier comes before queue. */
SIM_EXPORT cnrtRet_t cnrtQueueWaitNotifier(cnrtNotifier_t notifier, cnrtQueue_t queue,
                                           unsigned int flag)
{
    struct queue *in;
    cnrtRet_t code;

    BEGIN("cnrtQueueWaitNotifier");
    sim_handle_check(notifier, "notifier", "cnrtQueueWaitNotifier");
    code = cnrt_queue(queue, "cnrtQueueWaitNotifier", &in);
    if (code != cnrtSuccess) {
        return code;
    }
    if (flag != 0) {
        return cnrtErrorArgsInvalid;
    }
    return cnrt_work(sim_stream_wait_event(in->sim, notifier->sim), sim_stream_physical(in->sim));
}

SIM_EXPORT cnrtRet_t cnrtQueryNotifier(cnrtNotifier_t notifier)
{
    BEGIN("cnrtQueryNotifier");
    sim_handle_check(notifier, "notifier", "cnrtQueryNotifier");
    if (sim_event_is_captured(notifier->sim)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    return answer(sim_event_query(notifier->sim), notifier->physical);
}

SIM_EXPORT cnrtRet_t cnrtWaitNotifier(cnrtNotifier_t notifier)
{
    BEGIN("cnrtWaitNotifier");
    sim_handle_check(notifier, "notifier", "cnrtWaitNotifier");
    if (sim_event_is_captured(notifier->sim)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    return cnrt_work(sim_event_synchronize(notifier->sim, UINT64_MAX), notifier->physical);
}

/* The argument ms comes last. */
SIM_EXPORT cnrtRet_t cnrtNotifierElapsedTime(cnrtNotifier_t start, cnrtNotifier_t end, float *ms)
{
    BEGIN("cnrtNotifierElapsedTime");
    sim_handle_check(start, "notifier", "cnrtNotifierElapsedTime");
    sim_handle_check(end, "notifier", "cnrtNotifierElapsedTime");
    if (((start->flags | end->flags) & CNRT_NOTIFIER_DISABLE_TIMING_ALL) != 0) {
        return cnrtErrorArgsInvalid;
    }
    if (sim_event_query(start->sim) != 0 || sim_event_query(end->sim) != 0) {
        return (cnrtRet_t)sim_vendor_number("not_ready", cnrtErrorNotReady);
    }
    *ms = (float)((double)(int64_t)(sim_event_time_ns(end->sim) - sim_event_time_ns(start->sim)) /
                  1e6);
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtIpcGetNotifierHandle(cnrtIpcNotifierHandle *handle,
                                              cnrtNotifier_t notifier)
{
    BEGIN("cnrtIpcGetNotifierHandle");
    sim_handle_check(notifier, "notifier", "cnrtIpcGetNotifierHandle");
    if ((notifier->flags & CNRT_NOTIFIER_INTERPROCESS) == 0 ||
        !sim_event_export(notifier->sim, handle)) {
        return cnrtErrorArgsInvalid;
    }
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtIpcOpenNotifierHandle(cnrtNotifier_t *notifier,
                                               cnrtIpcNotifierHandle handle)
{
    int device;
    uint32_t physical;
    struct sim_event *event;
    cnrtRet_t code;

    BEGIN("cnrtIpcOpenNotifierHandle");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    event = sim_event_import(physical, &handle);
    if (event == NULL) {
        return cnrtErrorArgsInvalid;
    }
    return add_notifier(event, CNRT_NOTIFIER_INTERPROCESS | CNRT_NOTIFIER_DISABLE_TIMING_ALL,
                        physical, notifier);
}

/* ---- task topos ----------------------------------------------------------------------------- */

SIM_EXPORT cnrtRet_t cnrtQueueBeginCapture(cnrtQueue_t queue, int mode)
{
    struct queue *of;
    cnrtRet_t code;

    BEGIN("cnrtQueueBeginCapture");
    code = cnrt_queue(queue, "cnrtQueueBeginCapture", &of);
    if (code != cnrtSuccess) {
        return code;
    }
    if (mode == 1 || of->is_default) { /* thread-local: not supported */
        return cnrtErrorQueueCaptureUnsupported;
    }
    if (mode != 0 && mode != 2) {
        return cnrtErrorArgsInvalid;
    }
    return sim_capture_begin(of->sim, (uint32_t)mode) ? cnrtSuccess : cnrtErrorIllegalState;
}

SIM_EXPORT cnrtRet_t cnrtQueueEndCapture(cnrtQueue_t queue, void **taskTopo)
{
    struct queue *of;
    struct sim_graph *graph;
    cnrtRet_t code;

    BEGIN("cnrtQueueEndCapture");
    code = cnrt_queue(queue, "cnrtQueueEndCapture", &of);
    if (code != cnrtSuccess && code != CNRT_LOST) {
        return code;
    }
    if (sim_capture_status(of->sim) == SIM_CAPTURE_NONE) {
        return cnrtErrorQueueCaptureUnmatched;
    }
    graph = sim_capture_end(of->sim);
    if (graph == NULL) {
        return cnrtErrorQueueCaptureInvalidated;
    }
    sim_handle_add(graph, "topo");
    *taskTopo = graph;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtQueueIsCapturing(cnrtQueue_t queue, int *pStatus)
{
    struct queue *of;
    cnrtRet_t code;

    BEGIN("cnrtQueueIsCapturing");
    code = cnrt_queue(queue, "cnrtQueueIsCapturing", &of);
    if (code == cnrtSuccess) {
        *pStatus = (int)sim_capture_status(of->sim); /* none 0, active 1, invalidated 2 */
    }
    return code;
}

SIM_ASSERT(SIM_CAPTURE_NONE == 0 && SIM_CAPTURE_ACTIVE == 1 && SIM_CAPTURE_BROKEN == 2,
           "mlu.md: capture status");

SIM_EXPORT cnrtRet_t cnrtTaskTopoGetNodes(void *topo, void **nodes, size_t *numNodes)
{
    BEGIN("cnrtTaskTopoGetNodes");
    sim_handle_check(topo, "topo", "cnrtTaskTopoGetNodes");
    if (nodes != NULL) {
        return cnrtErrorArgsInvalid; /* nodes alone are not simulated */
    }
    *numNodes = sim_graph_node_count(topo);
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtTaskTopoInstantiate(void **entity, void *topo, void **errorNode, char *log,
                                             size_t logSize)
{
    struct sim_graph *instance;

    BEGIN("cnrtTaskTopoInstantiate");
    sim_handle_check(topo, "topo", "cnrtTaskTopoInstantiate");
    if (errorNode != NULL || log != NULL || logSize != 0) {
        return cnrtErrorArgsInvalid; /* no caller uses this form */
    }
    instance = sim_graph_copy(topo);
    if (instance == NULL) {
        return cnrtErrorSysNoMem;
    }
    sim_handle_add(instance, "entity");
    *entity = instance;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtTaskTopoEntityInvoke(void *entity, cnrtQueue_t queue)
{
    struct queue *in;
    cnrtRet_t code;

    BEGIN("cnrtTaskTopoEntityInvoke");
    sim_handle_check(entity, "entity", "cnrtTaskTopoEntityInvoke");
    code = cnrt_queue(queue, "cnrtTaskTopoEntityInvoke", &in);
    if (code != cnrtSuccess) {
        return code;
    }
    return cnrt_work(sim_graph_launch(entity, in->sim), sim_stream_physical(in->sim));
}

SIM_EXPORT cnrtRet_t cnrtTaskTopoEntityDestroy(void *entity)
{
    BEGIN("cnrtTaskTopoEntityDestroy");
    sim_handle_check(entity, "entity", "cnrtTaskTopoEntityDestroy");
    sim_handle_remove(entity, "entity", "cnrtTaskTopoEntityDestroy");
    sim_graph_destroy(entity);
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtTaskTopoDestroy(void *topo)
{
    BEGIN("cnrtTaskTopoDestroy");
    sim_handle_check(topo, "topo", "cnrtTaskTopoDestroy");
    sim_handle_remove(topo, "topo", "cnrtTaskTopoDestroy");
    sim_graph_destroy(topo);
    return cnrtSuccess;
}
