/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Huawei's AscendCL, libascendcl.so, that the plugin uses. Prototypes and numbers:
 * acl_base.h, acl_rt.h and acl_mdl.h of ACL 1.15.0, and the error numbers of rt_error_codes.h.
 * Functions marked (manual) are documented only in the text of the CANN manual, and are optional.
 *
 * Two status values are easily confused: for a stream, 0 means complete; for a recorded event, 1
 * means complete.
 */
#ifndef DS_ACCEL_PLUGINS_NPU_ACL_H
#define DS_ACCEL_PLUGINS_NPU_ACL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ACL_OK 0

#define ACL_PARAM 100000
#define ACL_UNINITIALIZED 100001
#define ACL_REPEAT_INITIALIZE 100002
#define ACL_RT_PARAM 107000
#define ACL_RT_CONTEXT_NULL 107002
#define ACL_RT_CAPTURE_DEPENDENCY 107024
#define ACL_RT_STREAM_UNJOINED 107025
#define ACL_RT_STREAM_NOT_CAPTURED 107029
#define ACL_RT_FEATURE_NOT_SUPPORT 207000
#define ACL_RT_NO_DEVICE 207004
#define ACL_RT_CAPTURE_INVALIDATED 507903

/* aclrtMemcpyKind */
#define ACL_COPY_HOST_TO_HOST 0
#define ACL_COPY_HOST_TO_DEVICE 1
#define ACL_COPY_DEVICE_TO_HOST 2
#define ACL_COPY_DEVICE_TO_DEVICE 3

/* aclrtMemMallocPolicy: huge pages if available. */
#define ACL_MALLOC_HUGE_FIRST 0
/* aclrtMemAttr, the kind of device memory; devices of the 310 class have only DDR. */
#define ACL_DDR 0
#define ACL_HBM 1
#define ACL_DDR_HUGE 2
#define ACL_HBM_HUGE 4
#define ACL_LOCATION_DEVICE 1
#define ACL_GRANULARITY_MINIMUM 0
#define ACL_GRANULARITY_RECOMMENDED 1
#define ACL_RESERVE_HUGE 1u

#define ACL_STREAM_COMPLETE 0
#define ACL_STREAM_NOT_READY 1
#define ACL_STREAM_FAST_LAUNCH 1u
#define ACL_STREAM_FAST_SYNC 2u

#define ACL_EVENT_RECORDED_NOT_READY 0
#define ACL_EVENT_RECORDED_COMPLETE 1
#define ACL_EVENT_SYNC 1u
#define ACL_EVENT_TIME_LINE 8u
#define ACL_EVENT_IPC 64u

#define ACL_CAPTURE_RELAXED 2
#define ACL_HOST_REGISTER_MAPPED 0

/* aclrtDevAttr */
#define ACL_ATTR_AICORE_COUNT 101
#define ACL_ATTR_TOTAL_MEMORY 301
#define ACL_ATTR_L2_CACHE 302

#define ACL_DEVICE_ABNORMAL 1

#define ACL_IPC_KEY_BYTES 65
/*
 * Export flag: any process may import. Without it, the exporter must register each importer's pid
 * first.
 */
#define ACL_IPC_DISABLE_PID_VALIDATION 1u

struct acl_uuid {
    char bytes[16];
};

struct acl_ipc_event {
    char reserved[64]; /* the struct is passed by value */
};

/* aclrtPhysicalMemProp; handle_type and allocation_type have only the value 0 so far. */
struct acl_physical {
    int handle_type;
    int allocation_type;
    int memory_attribute;
    uint32_t location_id;
    int location_type;
    uint64_t reserved;
};

static_assert(sizeof(struct acl_physical) == 32, "acl_rt.h: aclrtPhysicalMemProp");
static_assert(offsetof(struct acl_physical, location_id) == 12, "acl_rt.h: aclrtPhysicalMemProp");
static_assert(sizeof(struct acl_uuid) == 16, "acl_rt.h: aclrtUuid");
static_assert(sizeof(struct acl_ipc_event) == 64, "acl_rt.h: aclrtIpcEventHandle");

typedef int acl_error;

/*
 * Members have the names of the exported functions. Optional functions are NULL if the library is
 * too old.
 */
struct acl_api {
    acl_error (*aclInit)(const char *config_path);
    acl_error (*aclrtGetVersion)(int32_t *major, int32_t *minor, int32_t *patch);
    acl_error (*aclrtGetDeviceCount)(uint32_t *count);
    acl_error (*aclrtSetDevice)(int32_t device);
    acl_error (*aclrtResetDevice)(int32_t device);
    acl_error (*aclrtGetDevice)(int32_t *device);
    acl_error (*aclrtGetCurrentContext)(void **context);
    acl_error (*aclrtSetCurrentContext)(void *context);
    acl_error (*aclrtSynchronizeDevice)(void);
    const char *(*aclrtGetSocName)(void);
    acl_error (*aclrtGetDeviceInfo)(uint32_t device, int attribute, int64_t *value);
    acl_error (*aclrtDeviceGetUuid)(int32_t device, struct acl_uuid *uuid);
    acl_error (*aclrtQueryDeviceStatus)(int32_t device, int *status);
    acl_error (*aclrtGetLogicDevIdByUserDevId)(int32_t user, int32_t *logic);
    acl_error (*aclrtGetPhyDevIdByLogicDevId)(int32_t user, int32_t *physical); /* (manual) */
    acl_error (*aclrtGetPhyDevIdByUserDevId)(int32_t user, int32_t *physical);  /* (manual) */

    acl_error (*aclrtGetMemInfo)(int attribute, size_t *free_bytes, size_t *total_bytes);
    acl_error (*aclrtMalloc)(void **device_pointer, size_t size, int policy);
    acl_error (*aclrtFree)(void *device_pointer);
    acl_error (*aclrtMallocHost)(void **host_pointer, size_t size);
    acl_error (*aclrtFreeHost)(void *host_pointer);
    acl_error (*aclrtHostRegister)(void *pointer, uint64_t size, int type,
                                   void **device_pointer); /* (manual) */
    acl_error (*aclrtHostUnregister)(void *pointer);       /* (manual) */
    /* The argument after the destination is the destination's capacity. */
    acl_error (*aclrtMemcpy)(void *destination, size_t capacity, const void *source, size_t size,
                             int kind);
    acl_error (*aclrtMemcpyAsync)(void *destination, size_t capacity, const void *source,
                                  size_t size, int kind, void *stream);
    acl_error (*aclrtMemsetAsync)(void *destination, size_t capacity, int32_t value, size_t size,
                                  void *stream);

    acl_error (*aclrtMemGetAllocationGranularity)(struct acl_physical *how, int option,
                                                  size_t *granularity);
    acl_error (*aclrtReserveMemAddress)(void **address, size_t size, size_t alignment, void *wanted,
                                        uint64_t flags);
    acl_error (*aclrtReleaseMemAddress)(void *address);
    acl_error (*aclrtMallocPhysical)(void **handle, size_t size, const struct acl_physical *how,
                                     uint64_t flags);
    acl_error (*aclrtFreePhysical)(void *handle);
    acl_error (*aclrtMapMem)(void *address, size_t size, size_t offset, void *handle,
                             uint64_t flags);
    acl_error (*aclrtUnmapMem)(void *address);

    acl_error (*aclrtCreateStream)(void **stream);
    acl_error (*aclrtCreateStreamWithConfig)(void **stream, uint32_t priority, uint32_t flags);
    acl_error (*aclrtDeviceGetStreamPriorityRange)(int32_t *least,
                                                   int32_t *greatest); /* (manual) */
    acl_error (*aclrtDestroyStream)(void *stream);
    acl_error (*aclrtSynchronizeStream)(void *stream);
    acl_error (*aclrtStreamQuery)(void *stream, int *status);
    acl_error (*aclrtStreamWaitEvent)(void *stream, void *event);
    acl_error (*aclrtLaunchHostFunc)(void *stream, void (*call)(void *), void *argument);
    acl_error (*aclrtCreateEventExWithFlag)(void **event, uint32_t flags);
    acl_error (*aclrtDestroyEvent)(void *event);
    acl_error (*aclrtRecordEvent)(void *event, void *stream);
    acl_error (*aclrtQueryEventStatus)(void *event, int *status);
    acl_error (*aclrtSynchronizeEvent)(void *event);
    acl_error (*aclrtEventElapsedTime)(float *milliseconds, void *start, void *end);

    acl_error (*aclmdlRICaptureBegin)(void *stream, int mode);
    acl_error (*aclmdlRICaptureGetInfo)(void *stream, int *status, void **model);
    acl_error (*aclmdlRICaptureEnd)(void *stream, void **model);
    acl_error (*aclmdlRICaptureThreadExchangeMode)(int *mode);
    acl_error (*aclmdlRIExecuteAsync)(void *model, void *stream);
    acl_error (*aclmdlRIDestroy)(void *model);

    acl_error (*aclrtDeviceCanAccessPeer)(int32_t *can, int32_t device, int32_t peer);
    acl_error (*aclrtDeviceEnablePeerAccess)(int32_t peer, uint32_t flags);
    acl_error (*aclrtDeviceDisablePeerAccess)(int32_t peer);
    /* (manual), also the next two functions */
    acl_error (*aclrtIpcMemGetExportKey)(void *pointer, size_t size, char *key, size_t key_bytes,
                                         uint64_t flags);
    acl_error (*aclrtIpcMemImportByKey)(void **pointer, const char *key, uint64_t flags);
    acl_error (*aclrtIpcMemClose)(const char *key);
    acl_error (*aclrtIpcGetEventHandle)(void *event, struct acl_ipc_event *handle);
    acl_error (*aclrtIpcOpenEventHandle)(struct acl_ipc_event handle, void **event);
};

#endif
