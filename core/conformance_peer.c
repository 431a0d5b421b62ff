/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The plugin in another process, for checks of what a process does to one that it starts. It is the
 * same program with the same request, and told not to check anything (conformance_serve.c).
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
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

/* The request of this process with one member more; NULL: no memory. */
static char *peer_request(const struct ds_accel__run *run)
{
    json_t *tree = json_deep_copy(run->request);
    char *line = NULL;
    char *text = NULL;

    if (tree != NULL && json_object_set_new(tree, "is_peer", json_true()) == 0) {
        line = json_dumps(tree, JSON_COMPACT);
    }
    if (line != NULL) {
        text = ds_accel__format("%s\n%s\n", run->path, line);
    }
    free(line);
    json_decref(tree);
    return text;
}

static int spawn_peer(int channel, pid_t *pid_out)
{
    char *argv[] = {(char[]){"ds-accel-probe"}, (char[]){"--conformance"}, NULL};
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

/* With the variable set, which is as before when this returns. */
static int spawn_with(const char *variable, const char *value, int channel, pid_t *pid_out)
{
    const char *before = getenv(variable);
    char *kept = before != NULL ? strdup(before) : NULL;
    int error;

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

/* Lines of JSON until the other end closes. */
static bool read_answers(int channel, struct ds_accel__peer *peer)
{
    FILE *file = fdopen(channel, "r");
    char line[1024];
    uint32_t told = 0;
    bool is_whole = false;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        json_t *tree = json_loads(line, 0, NULL);
        const char *device = json_string_value(json_object_get(tree, "device"));

        if (device != NULL && told < DS_ACCEL__PEER_DEVICES) {
            snprintf(peer->devices[told++], sizeof(peer->devices[0]), "%s", device);
        } else if (json_is_integer(json_object_get(tree, "count"))) {
            peer->count = (uint32_t)json_integer_value(json_object_get(tree, "count"));
            is_whole = true;
        }
        json_decref(tree);
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_whole;
}

bool ds_accel__run_peer(struct ds_accel__run *run, const char *variable, const char *value,
                        struct ds_accel__peer *peer_out)
{
    char *text = peer_request(run);
    int ends[2];
    pid_t pid = 0;
    bool is_whole;

    memset(peer_out, 0, sizeof(*peer_out));
    EXPECT(run, text != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
           "host memory is exhausted");
    EXPECT(run, spawn_with(variable, value, ends[1], &pid) == 0, "another process can't be had");
    close(ends[1]);
    EXPECT(run, send(ends[0], text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text),
           "the other process does not listen");
    free(text);
    is_whole = read_answers(ends[0], peer_out);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return is_whole;
}
