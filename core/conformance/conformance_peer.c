/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Runs the plugin in a second process, for checks of sharing and of environment variables. The
 * other process is the same program with the same request, but runs no checks
 * (conformance_serve.c).
 */
#include "base/json.h"
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void ds_accel__describe_device(struct ds_accel__run *run, uint32_t device_index, char *text,
                               size_t text_size)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

    WANT(run, DS_ACCEL_OK, device_identity, run->instance, device_index, &identity);
    snprintf(text, text_size, "%.64s %.32s %u", identity.uuid_text, identity.pci_address,
             (identity.valid & DS_ACCEL_IDENTITY_VENDOR_INDEX) != 0 ? identity.vendor_index : 0);
}

/* ---- handles as text ------------------------------------------------------------------------ */

static void write_hex(const unsigned char *bytes, size_t size_bytes, char *text)
{
    for (size_t i = 0; i < size_bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
}

static void read_hex(const char *text, unsigned char *bytes, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++) {
        unsigned byte = 0;

        sscanf(text + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
}

/* ---- the other process ---------------------------------------------------------------------- */

static void use_handle(struct ds_accel__run *run, const char *text)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE];
    unsigned char bytes[DS_ACCEL__PEER_BYTES];
    uint32_t size = (uint32_t)(strlen(text) / 2);
    void *pointer = NULL;

    read_hex(text, handle, size);
    WANT(run, DS_ACCEL_OK, ipc_memory_open, run->device, handle, size, 0, &pointer);
    ds_accel__want_pattern(run, pointer, sizeof(bytes), DS_ACCEL__PEER_SEED,
                           "memory that was shared");
    ds_accel__pattern(bytes, sizeof(bytes), DS_ACCEL__PEER_SEED + 1);
    ds_accel__put(run, pointer, bytes, sizeof(bytes));
    WANT(run, DS_ACCEL_OK, ipc_memory_close, run->device, pointer);
}

/* Open an event that has completed in the process that exported it, and fail unless it is
 * complete in this process, too. */
static void use_event(struct ds_accel__run *run, const char *text)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE];
    uint32_t size = (uint32_t)(strlen(text) / 2);
    ds_accel_plugin_event_t *event = NULL;

    read_hex(text, handle, size);
    WANT(run, DS_ACCEL_OK, ipc_event_open, run->device, handle, size, &event);
    EXPECT(run, event != NULL, "ipc_event_open: DS_ACCEL_OK without an event");
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    WANT(run, DS_ACCEL_OK, event_query, event);
    run->table.event_destroy(event);
}

void ds_accel__serve_peer(struct ds_accel__run *run)
{
    const char *handle = json_string_value(json_object_get(run->request, "handle"));
    const char *event = json_string_value(json_object_get(run->request, "event_handle"));
    char text[160];

    if (event != NULL && strlen(event) / 2 <= DS_ACCEL__PEER_HANDLE) {
        use_event(run, event);
    }

    if (handle != NULL && strlen(handle) / 2 <= DS_ACCEL__PEER_HANDLE) {
        use_handle(run, handle);
    }
    for (uint32_t i = 0; i < run->device_count && i < DS_ACCEL__PEER_DEVICES; i++) {
        if (run->table.device_identity != NULL) {
            ds_accel__describe_device(run, i, text, sizeof(text));
            ds_accel__say("{s:o}", "device", ds_accel__json_text(text));
        }
    }
    ds_accel__say("{s:I}", "count", (json_int_t)run->device_count);
}

/* ---- starting the other process ------------------------------------------------------------- */

/* Make the other process's request: a copy of this process's request with the inputs of peer. NULL:
 * out of memory. */
static char *peer_request(const struct ds_accel__run *run, const struct ds_accel__peer *peer)
{
    json_t *tree = json_deep_copy(run->request);
    char hex[2 * DS_ACCEL__PEER_HANDLE + 1] = "";
    bool failed = false;
    char *line = NULL;
    char *text = NULL;

    if (tree == NULL) {
        return NULL;
    }
    ds_accel__json_set(tree, "is_peer", json_true(), &failed);
    /* the peer uses its first device, because the variable may hide the run's device */
    if (peer->variable != NULL) {
        ds_accel__json_set(tree, "device", json_integer(0), &failed);
    }
    if (peer->handle != NULL) {
        write_hex(peer->handle, run->info.memory_handle_bytes, hex);
        ds_accel__json_set(tree, "handle", json_string(hex), &failed);
    }
    if (peer->event_handle != NULL) {
        write_hex(peer->event_handle, run->info.event_handle_bytes, hex);
        ds_accel__json_set(tree, "event_handle", json_string(hex), &failed);
    }
    line = failed ? NULL : ds_accel__json_dump(tree, JSON_COMPACT);
    if (line != NULL) {
        text = ds_accel__format("%s\n%s\n", run->path, line);
    }
    free(line);
    json_decref(tree);
    return text;
}

static int spawn_peer(int channel, pid_t *pid_out)
{
    char *argv[] = {(char[]){"ds-accel-probe"}, (char[]){"--peer"}, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_adddup2(&actions, channel, DS_ACCEL__PROBE_CHANNEL);
    if (error == 0) {
        error = posix_spawn_file_actions_addclosefrom_np(&actions, DS_ACCEL__PROBE_CHANNEL + 1);
    }
    if (error == 0) {
        error = posix_spawn(pid_out, "/proc/self/exe", &actions, NULL, argv, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Spawn the other process. If variable is not NULL, set it for that process, then restore this
 * process's value. Returns 0 or an error number. */
static int spawn_with(const char *variable, const char *value, int channel, pid_t *pid_out)
{
    const char *before = variable != NULL ? getenv(variable) : NULL;
    char *kept = before != NULL ? strdup(before) : NULL;
    int error;

    if (variable == NULL) {
        return spawn_peer(channel, pid_out);
    }
    if ((before != NULL && kept == NULL) || setenv(variable, value, 1) != 0) {
        free(kept);
        return ENOMEM;
    }
    error = spawn_peer(channel, pid_out);
    if (kept != NULL) {
        setenv(variable, kept, 1);
    } else {
        unsetenv(variable);
    }
    free(kept);
    return error;
}

/* Read the other process's lines of JSON into *peer until that process closes the channel. False
 * if the result is incomplete. */
static bool read_answers(int channel, struct ds_accel__peer *peer)
{
    FILE *file = fdopen(channel, "r");
    char line[1024];
    uint32_t told = 0;
    bool is_whole = false;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        json_t *tree = json_loads(line, 0, NULL);
        const char *device = json_string_value(json_object_get(tree, "device"));
        const char *unusable = json_string_value(json_object_get(tree, "unusable"));
        const char *detail = json_string_value(json_object_get(tree, "detail"));

        if (device != NULL && told < DS_ACCEL__PEER_DEVICES) {
            snprintf(peer->devices[told++], sizeof(peer->devices[0]), "%s", device);
        } else if (json_is_integer(json_object_get(tree, "count"))) {
            peer->count = (uint32_t)json_integer_value(json_object_get(tree, "count"));
            is_whole = true;
        } else if (unusable != NULL || detail != NULL) {
            ds_accel__copy(peer->problem, sizeof(peer->problem),
                           unusable != NULL ? unusable : detail);
        }
        json_decref(tree);
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_whole;
}

bool ds_accel__run_peer(struct ds_accel__run *run, struct ds_accel__peer *peer)
{
    char *text = peer_request(run, peer);
    int ends[2];
    pid_t pid = 0;
    bool is_whole;

    EXPECT(run, text != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
           "host memory is exhausted");
    EXPECT(run, spawn_with(peer->variable, peer->value, ends[1], &pid) == 0,
           "no other process can be started");
    close(ends[1]);
    EXPECT(run, send(ends[0], text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text),
           "the other process does not listen");
    free(text);
    is_whole = read_answers(ends[0], peer);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return is_whole;
}
