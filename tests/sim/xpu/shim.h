/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated Level Zero: the loader's exports, implemented by a simulated driver. Prototypes,
 * sizes and numbers are written here a second time, from ze_api.h and zes_api.h of v1.32, with the
 * manual's names; the plugin's header is not used.
 *
 * Checks in addition to the engine's: every descriptor's stype and pNext, one thread at a time for
 * a list, an event's reset before it is signalled again but not while a list waits for it, and the
 * order of commands in lists without in-order execution.
 */
#ifndef DS_ACCEL_TESTS_SIM_XPU_SHIM_H
#define DS_ACCEL_TESTS_SIM_XPU_SHIM_H

#include "engine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t ze_result_t;
typedef uint8_t ze_bool_t;

#define ZE_RESULT_SUCCESS 0x0u
#define ZE_RESULT_NOT_READY 0x1u
#define ZE_RESULT_ERROR_DEVICE_LOST 0x70000001u
#define ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY 0x70000002u
#define ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY 0x70000003u
#define ZE_RESULT_ERROR_UNINITIALIZED 0x78000001u
#define ZE_RESULT_ERROR_UNSUPPORTED_FEATURE 0x78000003u
#define ZE_RESULT_ERROR_INVALID_ARGUMENT 0x78000004u
#define ZE_RESULT_ERROR_INVALID_NULL_HANDLE 0x78000005u
#define ZE_RESULT_ERROR_INVALID_NULL_POINTER 0x78000007u
#define ZE_RESULT_ERROR_INVALID_SIZE 0x78000008u
#define ZE_RESULT_ERROR_UNSUPPORTED_SIZE 0x78000009u
#define ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT 0x7800000au
#define ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT 0x7800000bu
#define ZE_RESULT_ERROR_INVALID_ENUMERATION 0x7800000cu
#define ZE_RESULT_QUERY_TRUE 0x78000022u
#define ZE_RESULT_QUERY_FALSE 0x78000023u
#define ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED 0x78000025u
#define ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED 0x78000026u
#define ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT 0x78000027u
#define ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING 0x78000028u
#define ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT 0x7800002au
#define ZE_RESULT_ERROR_UNKNOWN 0x7ffffffeu

/* Counts the call; returns the scripted code. */
int64_t enter(const char *call);

/* The first statement of each exported function. */
#define ENTER() \
    do { \
        int64_t scripted_ = enter(__func__); \
        if (scripted_ != 0) { \
            return (ze_result_t)scripted_; \
        } \
    } while (0)
/* For functions that release an object: they release it even if they return a failure. */
#define ENTER_RELEASE() const int64_t scripted = enter(__func__)
#define NEED_HANDLE(handle) \
    do { \
        if ((handle) == NULL) { \
            return ZE_RESULT_ERROR_INVALID_NULL_HANDLE; \
        } \
    } while (0)
#define NEED_POINTER(pointer) \
    do { \
        if ((pointer) == NULL) { \
            return ZE_RESULT_ERROR_INVALID_NULL_POINTER; \
        } \
    } while (0)

/* ---- descriptors ---------------------------------------------------------------------------- */

/* The first members of each descriptor. */
struct base {
    uint32_t stype;
    const void *pNext;
};
/* Aborts unless the descriptor has that tag and no chain. */
void check_base(const void *descriptor, uint32_t stype, const char *call);

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t type, vendorId, deviceId, flags, subdeviceId, coreClockRate;
    uint64_t maxMemAllocSize;
    uint32_t maxHardwareContexts, maxCommandQueuePriority, numThreadsPerEU, physicalEUSimdWidth,
        numEUsPerSubslice, numSubslicesPerSlice, numSlices;
    uint64_t timerResolution;
    uint32_t timestampValidBits, kernelTimestampValidBits;
    uint8_t uuid[16];
    char name[256];
} ze_device_properties_t;
SIM_ASSERT(sizeof(ze_device_properties_t) == 368, "by ze_api.h");
SIM_ASSERT(offsetof(ze_device_properties_t, timerResolution) == 80, "by ze_api.h");
SIM_ASSERT(offsetof(ze_device_properties_t, kernelTimestampValidBits) == 92, "by ze_api.h");
SIM_ASSERT(offsetof(ze_device_properties_t, uuid) == 96, "by ze_api.h");
SIM_ASSERT(offsetof(ze_device_properties_t, name) == 112, "by ze_api.h");

typedef struct {
    uint32_t domain, bus, device, function;
} ze_pci_address_t;

typedef struct {
    char data[64];
} ze_ipc_mem_handle_t;
SIM_ASSERT(sizeof(ze_ipc_mem_handle_t) == 64, "by ze_api.h");

/* ---- objects -------------------------------------------------------------------------------- */

/* A device as callers see it: a card, or a tile of a card. It is never freed. */
struct device {
    uint32_t magic;
    const struct sim_device *card;
    const struct sim_device *part; /* the owner of its memory: the card itself, or a tile */
    uint32_t tile;
    bool is_tile;
    bool is_subdevice; /* a tile, reported as a subdevice */
    struct device *root;
};

struct context {
    uint32_t magic;
};

struct pool {
    struct context *context;
    uint32_t flags, count;
    struct event **events;
};

struct event {
    struct sim_event *event;
    struct pool *pool;
    uint32_t index;
    atomic_bool is_armed;          /* signalled, and not reset since */
    atomic_bool is_timed;          /* signalled by a command with a time */
    atomic_uint wait_count;        /* lists that have not yet passed their wait */
    struct device *_Atomic waiter; /* the device of the last such list */
};

struct list {
    struct sim_stream *stream;
    struct device *device;
    struct context *context;
    bool is_in_order;
    bool has_command;     /* a command was queued after the last barrier */
    atomic_uint captures; /* number of captures that this list began */
    atomic_bool is_in_use;
};

/* Abort unless the handle is of that kind. */
struct device *check_device(struct device *device, const char *call);
void check_context(struct context *context, const char *call);
bool device_is_lost(const struct device *device);
uint64_t device_memory_bytes(const struct device *device);
/* Returns the number of cards, and the cards in Sysman's order. */
uint32_t all_cards(struct device ***cards_out);
bool is_initialized(void);
bool has_legacy_sysman(void);
uint32_t api_version(void);
void fill_properties(const struct device *device, ze_device_properties_t *properties);
void fill_address(const struct device *device, ze_pci_address_t *address);
/* Returns a graph function by its name; NULL: unknown. */
void *graph_function(const char *name);

/* Begin and end a command (list.c); wait for its events, and signal its event. */
ze_result_t begin_command(struct list *list, const char *call);
void end_command(struct list *list);
ze_result_t wait_for(struct list *list, uint32_t count, struct event **events, const char *call);
ze_result_t signal_behind(struct list *list, struct event *event, bool has_time, const char *call);

#endif
