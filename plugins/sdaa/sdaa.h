/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of libsdaart (sdaa_runtime.h of the current, HIP-shaped runtime) and of libtcml (tcml.h)
 * that the plugin uses. Only the text of both headers was available; neither library was run.
 *
 * The plugin does not use the following, because they are not fully verified: sdaaMallocAsync
 * (sdaaFreeAsync, which it needs, is in no available source), sdaaIpcGetMemHandle (no function
 * closes an opened handle), the experimental sdaaMemcpyPeer, the versions (the encoding of the
 * number), TCML's power and clocks (their units).
 */
#ifndef DS_ACCEL_PLUGINS_SDAA_SDAA_H
#define DS_ACCEL_PLUGINS_SDAA_SDAA_H

#include "cuda_shaped.h"

typedef int sdaa_error_t;

/* sdaaDeviceProp_t begins with these members; newer runtimes may append members. */
#define SDAA_PROPERTIES_BYTES 4096
struct sdaa_properties {
    char name[256];
    size_t memory_bytes;
    int chipset, pci_device, pci_vendor, pci_bus;
    int clock_khz;
    char others[SDAA_PROPERTIES_BYTES - 284];
};
_Static_assert(offsetof(struct sdaa_properties, memory_bytes) == 256, "totalGlobalMem");
_Static_assert(offsetof(struct sdaa_properties, pci_bus) == 276, "pciBusID");
_Static_assert(offsetof(struct sdaa_properties, clock_khz) == 280, "clockRate");
_Static_assert(sizeof(struct sdaa_properties) == SDAA_PROPERTIES_BYTES, "room to grow");

enum {
    SDAA_SUCCESS = 0,
    SDAA_INVALID_VALUE = 1,
    SDAA_OUT_OF_MEMORY = 2,
    SDAA_INVALID_DEVICE_POINTER = 17,
    SDAA_INVALID_MEMCPY_DIRECTION = 21,
    SDAA_INSUFFICIENT_DRIVER = 35,
    SDAA_NO_DEVICE = 100,
    SDAA_INVALID_DEVICE = 101,
    SDAA_ECC_NOT_CORRECTABLE = 214,
    SDAA_PEER_ACCESS_UNSUPPORTED = 217,
    SDAA_INVALID_HANDLE = 400,
    SDAA_NOT_FOUND = 500,
    SDAA_NOT_READY = 600,
    SDAA_CONTEXT_IS_DESTROYED = 709,
    SDAA_HOST_MEMORY_ALREADY_REGISTERED = 712,
    SDAA_LAUNCH_FAILURE = 719,
    SDAA_NOT_SUPPORTED = 801,
    SDAA_RUNTIME_MEMORY = 1052
};

/* Functions in addition to those of struct cuda_shaped_api. */
struct sdaa_api {
    sdaa_error_t (*sdaaGetDeviceCount)(int *count);
    sdaa_error_t (*sdaaGetDeviceProperties)(struct sdaa_properties *properties, int device);
    const char *(*sdaaGetErrorName)(sdaa_error_t code);
    sdaa_error_t (*sdaaMallocHost)(void **pointer, size_t size); /* has no flags argument */
};

/* The plugin's runtime, created by sdaa_open(). */
struct sdaa {
    struct cuda_shaped shaped;
    struct sdaa_api api;
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    struct sdaa_sensors *sensors;
    uint32_t node_count; /* number of nodes in /dev */
    /* Number of the runtime's devices if no variable hides devices; 0: not known */
    uint32_t all_count;
};
_Static_assert(offsetof(struct sdaa, shaped) == 0, "cuda_shaped.h");

#define SDAA_OF(device) ((struct sdaa *)(device)->instance->runtime)
#define SDAA_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), cuda_shaped_code(&SDAA_OF(device)->shaped, (code)), \
                 (error), __VA_ARGS__)

/* A card contains four devices. */
#define SDAA_DEVICES_PER_CARD 4u

/* -- sensors.c: TCML and TCPX, opened at first use -- */

struct sdaa_sensors *sdaa_sensors_create(const struct ds_accel_host *host);
void sdaa_sensors_destroy(struct sdaa_sensors *sensors);
/*
 * Returns the number of devices of one node of /dev: 1, or SDAA_DEVICES_PER_CARD if the runtime's
 * or TCML's count shows that nodes are cards.
 */
uint32_t sdaa_devices_per_node(const struct sdaa *sdaa);
/* Reads the UUID of a device or, if *is_card_out is set, of its card, from TCML. -1: not known. */
int sdaa_sensors_uuid(const struct sdaa *sdaa, uint32_t vendor_index, char *text, size_t text_size,
                      int *is_card_out);
/* Reads the PCI address of a device, or of its card, from TCML, and its bus. -1: not known. */
int sdaa_sensors_pci(const struct sdaa *sdaa, uint32_t vendor_index, char *address,
                     size_t address_size, uint32_t *bus_out);
int32_t sdaa_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t sdaa_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error);
int32_t sdaa_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error);

#endif
