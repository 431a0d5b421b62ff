/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * calls PLUGIN_DIR NAME: choose a plugin, start it, call the functions that fill structs and move
 * data, and print the results.
 *
 * The program is compiled against headers of several ABI versions, and runs with hosts and plugins
 * of other versions: its output must not depend on the versions. Guard bytes follow each struct
 * that the plugin or the library fills: a plugin compiled with a longer struct must not write them.
 */
#include "ds_accel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 512u
#define GUARD 0xa5
#define ELEMENT_COUNT 2u
#define BUFFER_BYTES 256u

/* A struct that a call fills, followed by guard bytes. */
static union {
    uint64_t align;
    unsigned char bytes[8192];
} room, error_room;

static ds_accel_t *context;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_device_t *device;
static ds_accel_plugin_device_t *handle;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fflush(stdout);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Exit if a call failed. A slot stores the cause in its error argument; a function of the library
 * stores it in the library's own error. */
static void must(const char *call, int32_t status)
{
    const struct ds_accel_error *error = (const struct ds_accel_error *)error_room.bytes;

    if (status < 0) {
        die("%s: %s: %s", call, ds_accel_status_name(status),
            error->code == status ? error->message : ds_accel_last_error());
    }
}

/* Return an empty struct or array of SIZE, followed by guard bytes. */
static void *prepare(uint32_t size, uint32_t struct_size)
{
    memset(room.bytes, 0, size);
    memset(room.bytes + size, GUARD, GUARD_BYTES);
    memcpy(room.bytes, &struct_size, sizeof(struct_size));
    return room.bytes;
}

static struct ds_accel_error *empty_error(void)
{
    struct ds_accel_error *error = (struct ds_accel_error *)error_room.bytes;

    memset(error, 0, sizeof(*error));
    memset(error_room.bytes + sizeof(*error), GUARD, GUARD_BYTES);
    error->struct_size = sizeof(*error);
    return error;
}

static void check_guard(const char *call, const unsigned char *guard)
{
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (guard[i] != GUARD) {
            die("%s: byte %u behind the struct was written", call, i);
        }
    }
}

/* Return whether the call succeeded. Exit if the call wrote past its struct or its error. */
static int answered(const char *call, int32_t status, uint32_t size, uint32_t struct_size)
{
    uint32_t said;

    check_guard(call, room.bytes + size);
    check_guard(call, error_room.bytes + sizeof(struct ds_accel_error));
    memcpy(&said, room.bytes, sizeof(said));
    if (said != struct_size) {
        die("%s: struct_size was %u and is %u", call, struct_size, said);
    }
    if (status < 0) {
        printf("%s: %s\n", call, ds_accel_status_name(status));
    }
    return status >= 0;
}

/* ASK(type, call): let the call fill *it, a struct of that type; the block that follows the macro
 * prints *it. */
#if DS_ACCEL_ABI_MINOR >= 99
#define UNKNOWN_IS_ZERO(call) \
    if (it->future_number != 0 || it->future_text[0] != '\0') \
        die("%s: a member that nobody filled holds something", call);
#else
#define UNKNOWN_IS_ZERO(call)
#endif
#define ASK(type, slot, ...) \
    struct type *it = prepare(sizeof(*it), sizeof(*it)); \
    struct ds_accel_error *error = empty_error(); \
    if (!answered(#slot, table->slot(__VA_ARGS__, it, error), sizeof(*it), sizeof(*it))) \
        return; \
    UNKNOWN_IS_ZERO(#slot)

/* ASK_ARRAY: like ASK, for a slot that fills an array. The first call returns the count. */
#define ASK_ARRAY(type, slot, ...) \
    struct type *it = prepare(sizeof(*it) * ELEMENT_COUNT, sizeof(*it)); \
    struct ds_accel_error *error = empty_error(); \
    uint32_t count = 0; \
    if (!answered(#slot, table->slot(__VA_ARGS__, it, sizeof(*it), ELEMENT_COUNT, &count, error), \
                  sizeof(*it) * ELEMENT_COUNT, sizeof(*it))) \
        return; \
    UNKNOWN_IS_ZERO(#slot) \
    printf("%s: %u\n", #slot, count)

/* ---- functions that need no device ---------------------------------------------------------- */

static void candidate(const char *name)
{
    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        struct ds_accel_candidate *it = prepare(sizeof(*it), sizeof(*it));

        must("candidate_get", ds_accel_candidate_get(context, i, it));
        check_guard("candidate_get", room.bytes + sizeof(*it));
        if (strcmp(it->name, name) == 0 && it->state == DS_ACCEL_STATE_SELECTED) {
            printf("candidate: %s %s, %u devices\n", it->name, it->state_name, it->device_count);
        }
    }
}

static void backend_info(void)
{
    ASK(ds_accel_backend_info, backend_info, instance);
    printf("backend_info: flags %llx of %llx, %s, %s, driver %u, handles %u %u\n",
           (unsigned long long)it->flags, (unsigned long long)it->flags_known,
           it->communication_backend, it->compile_backend, it->driver_version[0],
           it->memory_handle_bytes, it->event_handle_bytes);
}

static void device_identity(void)
{
    ASK(ds_accel_device_identity, device_identity, instance, 0);
    printf("device_identity: valid %x, %s, %s, %s\n", it->valid, it->name, it->uuid_text,
           it->pci_address);
}

static void telemetry(void)
{
    ASK(ds_accel_telemetry, telemetry_get, instance, 0);
    printf("telemetry_get: valid %llx, %d, %llu\n", (unsigned long long)it->valid,
           it->temperature_millidegrees_c, (unsigned long long)it->power_milliwatts);
}

static void links(void)
{
    ASK_ARRAY(ds_accel_link, links_get, instance, 0);
    for (uint32_t i = 0; i < count && i < ELEMENT_COUNT; i++) {
        printf("  to %d, %u lanes, %llu bytes/s\n", it[i].peer_index, it[i].width,
               (unsigned long long)it[i].bandwidth_bytes_per_s);
    }
}

static void op_builders(void)
{
    ASK_ARRAY(ds_accel_op_builder, op_builders_get, instance);
    for (uint32_t i = 0; i < count && i < ELEMENT_COUNT; i++) {
        printf("  %s is %s\n", it[i].builder, it[i].op);
    }
}

static void env_rules(void)
{
    ASK_ARRAY(ds_accel_env_rule, env_rules_get, instance);
    for (uint32_t i = 0; i < count && i < ELEMENT_COUNT; i++) {
        printf("  %s %u\n", it[i].name, it[i].rule);
    }
}

/* ---- functions of a device ------------------------------------------------------------------ */

static void device_info(void)
{
    ASK(ds_accel_device_info, device_info, handle);
    printf("device_info: %s, %llu bytes, %u units, aligned to %llu\n", it->name,
           (unsigned long long)it->total_memory_bytes, it->compute_unit_count,
           (unsigned long long)it->allocation_align_bytes);
}

static void memory_info(void)
{
    ASK(ds_accel_memory_info, mem_info, handle);
    printf("mem_info: valid %x, %llu bytes\n", it->valid, (unsigned long long)it->total_bytes);
}

static void memory_stats(void)
{
    ASK(ds_accel_memory_stats, mem_stats, handle);
    printf("mem_stats: valid %x\n", it->valid);
}

static void pointer_info(void *pointer)
{
    ASK(ds_accel_pointer_info, mem_pointer_info, instance, handle, pointer);
    printf("mem_pointer_info: kind %u, device %d, %llu bytes\n", it->kind, it->device_index,
           (unsigned long long)it->size_bytes);
}

static void processes(void)
{
    ASK_ARRAY(ds_accel_process, telemetry_processes, instance, 0);
}

/* Copy data to the device, through a stream with an event, and back. */
static void move_data(void)
{
    struct ds_accel_error *error = empty_error();
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    unsigned char there[BUFFER_BYTES];
    unsigned char back[BUFFER_BYTES] = {0};
    void *memory;

    for (uint32_t i = 0; i < BUFFER_BYTES; i++) {
        there[i] = (unsigned char)(i * 7);
    }
    must("mem_alloc", table->mem_alloc(handle, BUFFER_BYTES, 0, 0, &memory, error));
    pointer_info(memory);
    must("stream_create", table->stream_create(handle, 0, 0, &stream, error));
    must("event_create", table->event_create(handle, 0, &event, error));
    must("mem_copy_async", table->mem_copy_async(stream, memory, there, BUFFER_BYTES,
                                                 DS_ACCEL_COPY_HOST_TO_DEVICE, error));
    must("event_record", table->event_record(event, stream, error));
    must("event_synchronize", table->event_synchronize(event, UINT64_MAX, error));
    must("device_synchronize", ds_accel_device_synchronize(device));
    must("mem_copy",
         table->mem_copy(handle, back, memory, BUFFER_BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST, error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    must("mem_free", table->mem_free(handle, memory, error));
    printf("move_data: %s\n", memcmp(there, back, BUFFER_BYTES) == 0 ? "the same" : "damaged");
}

/* Print the details of a failed call. */
static void failure(void)
{
    struct ds_accel_error *error = empty_error();
    void *memory = NULL;
    int32_t status = table->mem_alloc(handle, 0, 0, 0, &memory, error);

    check_guard("mem_alloc", error_room.bytes + sizeof(*error));
    printf("mem_alloc(0): %s, %d, %s\n", ds_accel_status_name(status), error->code - status,
           error->message);
}

int main(int argc, char **argv)
{
    struct ds_accel_options options;
    const char *plugin_dirs[1];

    if (argc != 3) {
        die("usage: calls PLUGIN_DIR NAME");
    }
    plugin_dirs[0] = argv[1];
    memset(&options, 0, sizeof(options));
    options.struct_size = sizeof(options);
    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG;
    options.accelerator = argv[2];
    options.plugin_dirs = plugin_dirs;
    options.plugin_dir_count = 1;
    must("create", ds_accel_create(&options, &context));
    must("detect", ds_accel_detect(context));
    must("instance", ds_accel_instance(context, &table, &instance));
    must("device_open", ds_accel_device_open(context, 0, &device));
    handle = ds_accel_device_handle(device);

    candidate(argv[2]);
    backend_info();
    device_identity();
    telemetry();
    links();
    op_builders();
    env_rules();
    device_info();
    memory_info();
    memory_stats();
    processes();
    move_data();
    failure();

    ds_accel_device_close(device);
    ds_accel_destroy(context);
    return 0;
}
