/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of SynapseAI's C API that the plugin uses (synapse_api.h, synapse_api_types.h and
 * synapse_common_types.h of Intel_Gaudi3_Software e6cef1c, 2024-11), and the stream functions of
 * the earlier SynapseAI_Core d4d7f5c.
 *
 * The order of arguments differs from CUDA's: a copy has the stream first, followed by source, size
 * and destination. Device addresses are integers, and elapsed time is in nanoseconds. There is no
 * current device, so calls have a device, a stream or an event as argument.
 */
#ifndef DS_ACCEL_PLUGINS_HPU_SYNAPSE_H
#define DS_ACCEL_PLUGINS_HPU_SYNAPSE_H

#include <stdint.h>

typedef int32_t syn_status;
typedef uint32_t syn_device;
typedef void *syn_stream;
typedef void *syn_event;

_Static_assert(sizeof(int) == sizeof(syn_status), "synStatus is an enum");

/* synStatus: the codes that the plugin uses; the table in hpu.c has the names of all codes. */
#define SYN_SUCCESS 0
#define SYN_OBJECT_ALREADY_INITIALIZED 5
#define SYN_NO_DEVICE_FOUND 8
#define SYN_DEVICE_RESET 17
#define SYN_DEVICE_ALREADY_ACQUIRED 20
#define SYN_BUSY 22
#define SYN_ALREADY_INITIALIZED 29

/* synDmaDir; it has no value for host to host. */
#define SYN_HOST_TO_DRAM 0
#define SYN_DRAM_TO_HOST 1
#define SYN_DRAM_TO_DRAM 2

/* synDeviceType */
#define SYN_GAUDI 2u
#define SYN_GAUDI2 4u
#define SYN_GAUDI3 5u

/* synDeviceAttribute */
#define SYN_ATTRIBUTE_DRAM_SIZE 3
#define SYN_ATTRIBUTE_TPC_ENABLED_MASK 5
#define SYN_ATTRIBUTE_DEVICE_TYPE 7

#define SYN_EVENT_COLLECT_TIME 1u

/*
 * synStreamType of the older generation; the numbers are inferred from callers: an enum that starts
 * at 0.
 */
#define SYN_STREAM_COPY_DEVICE_TO_HOST 0
#define SYN_STREAM_COPY_HOST_TO_DEVICE 1
#define SYN_STREAM_COPY_DEVICE_TO_DEVICE 2
#define SYN_STREAM_COMPUTE 3

/* The functions; members have the exported names. */
struct synapse {
    syn_status (*synInitialize)(void);
    syn_status (*synDestroy)(void);
    syn_status (*synDeviceGetCount)(uint32_t *count);
    syn_status (*synDeviceGetModuleIDs)(uint32_t *module_ids, uint32_t *size);
    syn_status (*synDeviceAcquireByModuleId)(syn_device *device, uint32_t module_id);
    syn_status (*synDeviceRelease)(syn_device device);
    syn_status (*synDeviceGetAttributeByModuleId)(uint64_t *values, const int32_t *attributes,
                                                  unsigned count, uint32_t module_id);
    syn_status (*synDeviceGetAttribute)(uint64_t *values, const int32_t *attributes, unsigned count,
                                        syn_device device);
    syn_status (*synDeviceGetName)(char *name, int length, syn_device device);
    syn_status (*synDeviceGetMemoryInfo)(syn_device device, uint64_t *free_bytes,
                                         uint64_t *total_bytes);
    syn_status (*synDeviceSynchronize)(syn_device device);
    syn_status (*synDeviceMalloc)(syn_device device, uint64_t size, uint64_t wanted_address,
                                  uint32_t flags, uint64_t *address);
    syn_status (*synDeviceFree)(syn_device device, uint64_t address, uint32_t flags);
    syn_status (*synHostMalloc)(syn_device device, uint64_t size, uint32_t flags, void **buffer);
    syn_status (*synHostFree)(syn_device device, const void *buffer, uint32_t flags);
    syn_status (*synHostMap)(syn_device device, uint64_t size, const void *buffer);
    syn_status (*synHostUnmap)(syn_device device, const void *buffer);
    syn_status (*synMemCopyAsync)(syn_stream stream, uint64_t source, uint64_t size,
                                  uint64_t destination, int32_t direction);
    syn_status (*synMemsetD8Async)(uint64_t destination, unsigned char value, uint64_t count,
                                   syn_stream stream);
    syn_status (*synMemsetD16Async)(uint64_t destination, uint16_t value, uint64_t count,
                                    syn_stream stream);
    syn_status (*synMemsetD32Async)(uint64_t destination, uint32_t value, uint64_t count,
                                    syn_stream stream);
    syn_status (*synStreamCreateGeneric)(syn_stream *stream, syn_device device, uint32_t flags);
    syn_status (*synStreamCreate)(syn_stream *stream, syn_device device, int32_t type,
                                  uint32_t flags);
    syn_status (*synStreamDestroy)(syn_stream stream);
    syn_status (*synStreamSynchronize)(syn_stream stream);
    syn_status (*synStreamQuery)(syn_stream stream);
    syn_status (*synStreamWaitEvent)(syn_stream stream, syn_event event, uint32_t flags);
    syn_status (*synEventCreate)(syn_event *event, syn_device device, uint32_t flags);
    syn_status (*synEventDestroy)(syn_event event);
    syn_status (*synEventRecord)(syn_event event, syn_stream stream);
    syn_status (*synEventSynchronize)(syn_event event);
    syn_status (*synEventQuery)(syn_event event);
    syn_status (*synEventElapsedTime)(uint64_t *nanoseconds, syn_event start, syn_event end);
    syn_status (*synDriverGetVersion)(char *version, int length);
};

#endif
