/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Biren's runtime that the plugin uses, in its two generations: SDK 1.x (functions
 * su..., according to the vendor's manual) and SDK 2.x (functions supa..., according to code that
 * calls them, modelled on CUDA's runtime). Neither header was available.
 *
 * Not verified in either generation: the values of copy kinds, of flags, and of capture modes and
 * states. Not verified in 2.x: each function marked "analogy", whose name and arguments are CUDA's
 * with another prefix. The plugin uses these only if an operator has compared them with the SDK's
 * headers and confirms them with the option numbering = cuda. Errors are recognized by their names,
 * so their numbers are not needed, unless a 2.x runtime has no names: the option then confirms the
 * numbers too.
 *
 * Not used: IPC handles, which are passed by value and whose size is not known; attributes, whose
 * numbers are not known; suDeviceProp, which differs from CUDA's struct.
 */
#ifndef DS_ACCEL_PLUGINS_SUPA_SUPA_H
#define DS_ACCEL_PLUGINS_SUPA_SUPA_H

#include "cuda_shaped.h"

typedef int supa_error_t;

/*
 * One table for both generations, here and in struct cuda_shaped_api: the members are named after
 * their effect, and a list of symbols for each generation assigns functions to members. The order
 * of arguments differs only in the asynchronous copy, which has a separate member here for 1.x.
 */
struct supa_api {
    supa_error_t (*get_device_count)(int *count);
    supa_error_t (*get_pci_address)(char *address, int length, int device);
    const char *(*error_name)(supa_error_t code); /* NULL: 2.x may have only texts of errors */
    const char *(*error_text)(supa_error_t code); /* only in 2.x */
    supa_error_t (*copy_stream_kind)(void *destination, const void *source, size_t size,
                                     void *stream, int kind); /* only in 1.x */
    supa_error_t (*profiler_start)(void);
    supa_error_t (*profiler_stop)(void);
};

/* The plugin's runtime, created by supa_open(). */
struct supa {
    struct cuda_shaped shaped;
    struct supa_api api;
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    uint32_t is_vouched; /* option numbering = cuda is set */
    int generation;      /* 1 or 2 */
    struct supa_sensors *sensors;
    atomic_int not_ready; /* number of the error "not ready"; 0 until it is known */
};
_Static_assert(offsetof(struct supa, shaped) == 0, "cuda_shaped.h");

#define SUPA_OF(device) ((struct supa *)(device)->instance->runtime)
#define SUPA_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), cuda_shaped_code(&SUPA_OF(device)->shaped, (code)), \
                 (error), __VA_ARGS__)

/* -- sensors.c: BRML and BRTX, opened at first use -- */

struct supa_sensors *supa_sensors_create(const struct ds_accel_host *host);
void supa_sensors_destroy(struct supa_sensors *sensors);
/* Adds facts from BRML about the device at identity->pci_address. */
void supa_sensors_identify(struct supa_sensors *sensors, struct ds_accel_device_identity *identity);
int32_t supa_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t supa_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error);
int32_t supa_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error);

/* -- verbs.c: calls that differ in SUPA -- */

int32_t supa_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error);
/* Copies bytes to the device and back, to verify the values of the copy kinds. */
int32_t supa_check_copies(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t supa_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error);
int32_t supa_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error);
int32_t supa_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error);

#endif
