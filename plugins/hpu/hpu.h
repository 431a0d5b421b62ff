/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The hpu backend: Intel Gaudi through SynapseAI, telemetry through HLML.
 *
 *      hpu.c       opening, device count, verdicts, error names, the table of vendor.h
 *      modules.c   the machine's modules, the visible modules; sysfs; which processes use them
 *      card.c      the process's one Synapse and the cards that it acquired
 *      maps.c      host memory that a card can access
 *      device.c    identity, opening, facts, telemetry
 *      memory.c    memory, copies and fills
 *      stream.c    streams and events
 */
#ifndef DS_ACCEL_PLUGINS_HPU_HPU_H
#define DS_ACCEL_PLUGINS_HPU_HPU_H

#include "hlml.h"
#include "synapse.h"
#include "vendor.h"

#define HPU_MODULES 64 /* modules of one machine; existing machines have 8 */
#define HPU_VISIBLE "HABANA_VISIBLE_MODULES"
#define HPU_MODULE "HLS_MODULE_ID"

/* The facts about a module that can be read without acquiring it. */
struct hpu_module {
    uint32_t id;
    hlml_card hlml;       /* NULL: HLML is absent, or does not list the module */
    char pci_address[32]; /* "" not known */
    char node[64];        /* "/dev/accel/accel0"; "" not known */
};

/* The plugin's runtime, created by open(). */
struct hpu_runtime {
    const struct ds_accel_host *host;
    struct vendor_lib library;
    struct synapse syn;
    struct hlml hlml;
    uint32_t has_hlml;      /* 0: HLML is unusable; 1: usable, initialized by other code of the
                               process; 2: usable, and close() must call hlml_shutdown() */
    uint32_t has_no_device; /* synInitialize() reported no device */
    uint32_t module_count;  /* number of visible modules, in the order of the instance's devices */
    struct hpu_module modules[HPU_MODULES];
};

/* ---- the process's use of Synapse (card.c) -------------------------------------------------- */

/* Host memory that a card can access. */
#define HPU_MAP_PINNED 1u     /* synHostMalloc() */
#define HPU_MAP_REGISTERED 2u /* synHostMap() for mem_register */
#define HPU_MAP_TEMPORARY 3u  /* synHostMap() for copies in flight */
#define HPU_MAP_STAGING 4u    /* synHostMalloc() for one copy in flight */
#define HPU_MAP_STUCK 5u      /* synHostUnmap() failed: the map is unusable and blocks its range */

struct hpu_map {
    struct hpu_map *next;
    uintptr_t base;
    uint64_t size_bytes;
    uint32_t kind;
    uint32_t hold_count; /* copies in flight that use the map; only if temporary or staging */
};

/* A copy in flight. The map must stay until the event, recorded after the copy, is reached. */
struct hpu_hold {
    struct hpu_hold *next;
    struct hpu_map *map;
    syn_event event;
};

/* A module that this process has acquired; shared by all instances. */
struct hpu_card {
    syn_device id;
    uint32_t module;
    uint32_t user_count;
    pthread_mutex_t lock;    /* guards all members below; held during submissions */
    struct hpu_map *maps;    /* maps do not overlap */
    struct hpu_hold *holds;  /* newest first */
    struct hpu_hold *spares; /* unused holds with their events, for reuse */
    atomic_uint hold_count;
};

/*
 * Describes why a call of open() or count() failed; a module that another process uses is
 * DEVICE_BUSY. Always returns -1.
 */
int hpu_problem(struct hpu_runtime *runtime, syn_status code, const char *call,
                struct vendor_problem *problem);
/*
 * Starts Synapse for this process unless it is already started. Returns 0, also if Synapse finds no
 * device (runtime->has_no_device is 1 then), or -1 with *problem set on failure.
 */
int hpu_process_begin(struct hpu_runtime *runtime, struct vendor_problem *problem);
void hpu_process_end(struct hpu_runtime *runtime);
/*
 * Acquires a module, or adds a user if this process has acquired it already. Returns Synapse's
 * status; sets *card_out only if the status is SYN_SUCCESS.
 */
syn_status hpu_card_get(struct hpu_runtime *runtime, uint32_t module, struct hpu_card **card_out);
void hpu_card_put(struct hpu_runtime *runtime, struct hpu_card *card);

/* ---- modules (modules.c) -------------------------------------------------------------------- */

/* Fills runtime->modules with the visible modules. Returns -1 with *problem set on failure. */
int hpu_modules_list(struct hpu_runtime *runtime, uint32_t count, struct vendor_problem *problem);
/*
 * Returns the number of processes that have the module's node open, as far as /proc shows. Writes
 * the pids of up to capacity such processes to pids, and the first one's name to first_name. If
 * only_others is true, the calling program (vendor_is_asking()) is not counted.
 */
uint32_t hpu_module_holders(const struct ds_accel_host *host, const struct hpu_module *module,
                            int only_others, int32_t *pids, uint32_t capacity, char *first_name,
                            size_t name_size);

/* ---- helpers of several files --------------------------------------------------------------- */

static inline struct hpu_runtime *hpu_runtime(const ds_accel_plugin_device_t *device)
{
    return device->instance->runtime;
}

static inline struct hpu_card *hpu_card(const ds_accel_plugin_device_t *device)
{
    return device->state;
}

/* Calls vendor_check() for a call on an opened device. */
#define HPU_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), (code), (error), __VA_ARGS__)

/* Converts a device address to the ABI's pointer, and back. */
static inline void *hpu_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t hpu_address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/*
 * A stream of the plugin. A stream of newer Synapse releases does all kinds of work: the stream has
 * one lane. A stream of older releases does one kind of work: the stream has three lanes, and an
 * event orders work in a lane after work in the lane that was used before.
 */
#define HPU_LANE_DOWN 0   /* device to host */
#define HPU_LANE_UP 1     /* host to device */
#define HPU_LANE_WITHIN 2 /* device to device, fills */
#define HPU_LANES 3

struct hpu_stream {
    syn_stream lanes[HPU_LANES]; /* one stream in all entries, or three streams */
    uint32_t lane_count;         /* 1 or 3 */
    uint32_t last;  /* the lane used last: when its work is done, all work of the stream is done */
    syn_event turn; /* the event that orders lanes; used with three lanes */
};

/*
 * Writes the Synapse stream of a lane to *native_out, after making it wait for the earlier work of
 * the other lanes. Caller holds card->lock.
 */
syn_status hpu_stream_turn(struct hpu_runtime *runtime, struct hpu_stream *stream, uint32_t lane,
                           syn_stream *native_out);
int32_t hpu_stream_wait(ds_accel_plugin_device_t *device, struct hpu_stream *stream,
                        struct ds_accel_error *error);

/* ---- host memory that a card can access (maps.c); the caller holds the card's lock ---------- */

struct hpu_map *hpu_map_find(struct hpu_card *card, uintptr_t address);
/* Returns how many of the size_bytes from address on are in no map, up to the next map. The caller
 * knows that address itself is in no map. */
uint64_t hpu_map_gap(struct hpu_card *card, uintptr_t address, uint64_t size_bytes);
/* Adds only the record of a map: the caller maps the memory. Returns NULL when out of memory. */
struct hpu_map *hpu_map_add(struct hpu_card *card, const void *base, uint64_t size_bytes,
                            uint32_t kind);
void hpu_map_remove(struct hpu_card *card, struct hpu_map *map);
/*
 * Unmaps the memory, or frees staging memory, and removes the record. If unmapping fails on a
 * device that is not lost, the record stays as HPU_MAP_STUCK, and the function returns Synapse's
 * status.
 */
syn_status hpu_map_drop(struct hpu_runtime *runtime, struct hpu_card *card, struct hpu_map *map);
/* Keeps the map until the work currently queued on the stream is done. */
void hpu_map_hold(struct hpu_runtime *runtime, struct hpu_card *card, struct hpu_map *map,
                  syn_stream stream);
/* Drops the temporary maps of the range, after waiting for their copies, and tries to drop stuck
   maps. Returns the first map that remains in the range, or NULL. */
struct hpu_map *hpu_maps_clear(struct hpu_runtime *runtime, struct hpu_card *card,
                               uintptr_t address, uint64_t size_bytes);
/* Drops the maps of finished copies; if is_all is true, waits for all copies first. */
void hpu_card_reap(struct hpu_runtime *runtime, struct hpu_card *card, int is_all);
void hpu_card_forget(struct hpu_runtime *runtime, struct hpu_card *card);
/* Takes the card's lock itself, and drops the maps of finished copies. Must be called before the
 * plugin reports work as done. */
void hpu_maps_reap(ds_accel_plugin_device_t *device);

/* ---- functions of the table ----------------------------------------------------------------- */

int32_t hpu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error);
int32_t hpu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error);
void hpu_device_close(ds_accel_plugin_device_t *device);
int32_t hpu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t hpu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t hpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error);
int32_t hpu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t hpu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error);

int32_t hpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error);
void hpu_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t hpu_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error);
int32_t hpu_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t hpu_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error);
int32_t hpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error);
void hpu_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t hpu_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error);
int32_t hpu_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error);
int32_t hpu_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                              struct ds_accel_error *error);
int32_t hpu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error);
uint64_t hpu_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native);
int32_t hpu_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                        void **native_out, struct ds_accel_error *error);
void hpu_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native);

int32_t hpu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error);
int32_t hpu_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t hpu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error);
int32_t hpu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error);
int32_t hpu_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error);
int32_t hpu_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error);
int32_t hpu_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error);
int32_t hpu_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error);
int32_t hpu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error);

#define HPU_ALIGN_BYTES 128u

#endif
