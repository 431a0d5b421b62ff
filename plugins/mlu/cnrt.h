/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Cambricon's runtime, libcnrt.so, that the plugin uses: cnrt.h 6.14 and an older one
 * of 6.x. A queue is a stream, a notifier an event, a task topo a graph, and a topo's entity an
 * executable graph. Functions marked (caller) are known only from code of other projects that calls
 * them, and are optional.
 *
 * Differences from CUDA that are easily overlooked: copy directions have other numbers; the queue
 * argument precedes the direction, the notifier precedes the queue, and the elapsed time is the
 * last argument.
 */
#ifndef DS_ACCEL_PLUGINS_MLU_CNRT_H
#define DS_ACCEL_PLUGINS_MLU_CNRT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define CNRT_OK 0
#define CNRT_NOT_READY 1
#define CNRT_NO_DEVICE 100004
#define CNRT_BUSY 632014 /* the code for "not ready" before 6.14 */

/* cnrtMemTransDir_t */
#define CNRT_HOST_TO_DEVICE 0
#define CNRT_DEVICE_TO_DEVICE 1
#define CNRT_DEVICE_TO_HOST 2
#define CNRT_HOST_TO_HOST 3
#define CNRT_INFER 5

#define CNRT_NOTIFIER_DEFAULT 0x0u
#define CNRT_NOTIFIER_DISABLE_TIMING_ALL 0x4u
#define CNRT_NOTIFIER_INTERPROCESS 0x8u

#define CNRT_CAPTURE_RELAXED 2

/* cnrtDeviceAttr_t */
#define CNRT_ATTR_COMPUTE_MAJOR 0x01
#define CNRT_ATTR_COMPUTE_MINOR 0x02
#define CNRT_ATTR_FP16 0x04
#define CNRT_ATTR_INT8 0x06
#define CNRT_ATTR_BF16 0x07
#define CNRT_ATTR_CLUSTERS 0x205
#define CNRT_ATTR_CORES_PER_CLUSTER 0x206
#define CNRT_ATTR_L2_BYTES 0x301
#define CNRT_ATTR_CLOCK_KHZ 0x402
#define CNRT_ATTR_BUS_BITS 0x404
#define CNRT_ATTR_MEMORY_MB 0x405
#define CNRT_ATTR_PCI_BUS 0x406
#define CNRT_ATTR_PCI_DEVICE 0x407
#define CNRT_ATTR_PCI_DOMAIN 0x408

/* The first members of cnrtDeviceProp_t, of which only the third version has the UUID and what
 * follows it. */
struct cnrt_properties {
    char name[256];
    int middle[46];
    uint8_t uuid[16];      /* _V3 only */
    uint64_t memory_bytes; /* _V3 only */
    int reserved[30];
    char room[4096 - 584]; /* space for versions that are larger than the third */
};

struct cnrt_ipc_notifier {
    uint64_t reserved[8]; /* the struct is passed by value */
};

static_assert(offsetof(struct cnrt_properties, uuid) == 440, "cnrt.h: cnrtDeviceProp_V3");
static_assert(offsetof(struct cnrt_properties, memory_bytes) == 456, "cnrt.h: cnrtDeviceProp_V3");
static_assert(offsetof(struct cnrt_properties, room) == 584, "cnrt.h: cnrtDeviceProp_V3");
static_assert(sizeof(struct cnrt_properties) == 4096, "room for other forms");
static_assert(sizeof(struct cnrt_ipc_notifier) == 64, "cnrt.h: cnrtIpcNotifierHandle");

typedef int cnrt_code;
typedef cnrt_code (*cnrt_copy_async)(void *destination, void *source, size_t bytes, void *queue,
                                     int direction);

/*
 * Members have the names of the exported functions. Optional functions are NULL if the library is
 * too old.
 */
struct cnrt_api {
    cnrt_code (*cnrtGetDeviceCount)(unsigned int *count);
    cnrt_code (*cnrtSetDevice)(int device);
    cnrt_code (*cnrtGetDevice)(int *device);
    cnrt_code (*cnrtDeviceGetAttribute)(int *value, int attribute, int device);
    /* In the header, the name without suffix is a macro for this third version. */
    cnrt_code (*cnrtGetDeviceProperties_V3)(struct cnrt_properties *properties, int device);
    cnrt_code (*cnrtSyncDevice)(void);
    cnrt_code (*cnrtDeviceGetQueuePriorityRange)(int *least, int *greatest);
    const char *(*cnrtGetErrorStr)(cnrt_code code);

    cnrt_code (*cnrtMemGetInfo)(size_t *free_bytes, size_t *total_bytes);
    cnrt_code (*cnrtMalloc)(void **pointer, size_t bytes);
    cnrt_code (*cnrtFree)(void *pointer);
    cnrt_code (*cnrtHostMalloc)(void **pointer, size_t bytes);
    cnrt_code (*cnrtFreeHost)(void *pointer);
    /* Source pointers are not const in CNRT. */
    cnrt_code (*cnrtMemcpy)(void *destination, void *source, size_t bytes, int direction);
    /*
     * These three functions have the same five arguments. Release 6.14 exports all of them, and the
     * last is deprecated there. The plugin needs one of them.
     */
    cnrt_copy_async cnrtMemcpyAsync_V3; /* (caller) */
    cnrt_copy_async cnrtMemcpyAsync_V2; /* (caller) */
    cnrt_copy_async cnrtMemcpyAsync;
    cnrt_code (*cnrtMemcpyPeerAsync)(void *destination, int destination_device, void *source,
                                     int source_device, size_t bytes, void *queue);
    cnrt_code (*cnrtMemsetAsync)(void *pointer, int value, size_t bytes, void *queue);

    cnrt_code (*cnrtQueueCreate)(void **queue);
    cnrt_code (*cnrtQueueCreateWithPriority)(void **queue, unsigned int flags, int priority);
    cnrt_code (*cnrtQueueDestroy)(void *queue);
    cnrt_code (*cnrtQueueSync)(void *queue);
    cnrt_code (*cnrtQueueQuery)(void *queue);
    cnrt_code (*cnrtQueueWaitNotifier)(void *notifier, void *queue, unsigned int flag);
    cnrt_code (*cnrtInvokeHostFunc)(void *queue, void (*call)(void *), void *argument);

    cnrt_code (*cnrtNotifierCreateWithFlags)(void **notifier, unsigned int flags);
    cnrt_code (*cnrtNotifierDestroy)(void *notifier);
    cnrt_code (*cnrtPlaceNotifier)(void *notifier, void *queue);
    cnrt_code (*cnrtQueryNotifier)(void *notifier);
    cnrt_code (*cnrtWaitNotifier)(void *notifier);
    cnrt_code (*cnrtNotifierElapsedTime)(void *start, void *end, float *milliseconds);

    cnrt_code (*cnrtQueueBeginCapture)(void *queue, int mode);
    cnrt_code (*cnrtQueueEndCapture)(void *queue, void **topo);
    cnrt_code (*cnrtQueueIsCapturing)(void *queue, int *status);
    cnrt_code (*cnrtTaskTopoGetNodes)(void *topo, void **nodes, size_t *count); /* (caller) */
    cnrt_code (*cnrtTaskTopoInstantiate)(void **entity, void *topo, void **error_node, char *log,
                                         size_t log_size);
    cnrt_code (*cnrtTaskTopoEntityInvoke)(void *entity, void *queue); /* (caller) */
    cnrt_code (*cnrtTaskTopoEntityDestroy)(void *entity);             /* (caller) */
    cnrt_code (*cnrtTaskTopoDestroy)(void *topo);                     /* (caller) */

    cnrt_code (*cnrtGetPeerAccessibility)(unsigned int *can, int device, int peer);
    /* *handle is the handle itself: the bytes of this pointer are sent to the other process. */
    cnrt_code (*cnrtAcquireMemHandle)(void **handle, void *pointer);
    cnrt_code (*cnrtMapMemHandle)(void **pointer, void *handle, int flags);
    cnrt_code (*cnrtUnMapMemHandle)(void *pointer);
    cnrt_code (*cnrtIpcGetNotifierHandle)(struct cnrt_ipc_notifier *handle, void *notifier);
    cnrt_code (*cnrtIpcOpenNotifierHandle)(void **notifier, struct cnrt_ipc_notifier handle);
};

#endif
