/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated AscendCL: memory and events of other processes. A key of memory has 65 bytes: the
 * engine's 64, and a last byte that is set if only processes whose ids the owner has listed may
 * open the key.
 */
#include "sim_acl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 65
#define DISABLE_PID_VALIDATION 1u

typedef struct aclrtIpcEventHandle {
    char reserved[64];
} aclrtIpcEventHandle;

SIM_ASSERT(sizeof(aclrtIpcEventHandle) == 64, "npu.md: passed by value");

/* A key that this process has exported, or has opened, and the number of times it was opened. */
struct key {
    struct key *next;
    char text[KEY_BYTES];
    void *imported;
    uint32_t open_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct key *keys;

static struct key **find_key(const char *text, bool is_import)
{
    struct key **at = &keys;

    while (*at != NULL &&
           (memcmp((*at)->text, text, KEY_BYTES) != 0 || ((*at)->imported != NULL) != is_import)) {
        at = &(*at)->next;
    }
    return at;
}

static bool add_key(const char *text, void *imported)
{
    struct key *key = calloc(1, sizeof(*key));

    if (key == NULL) {
        return false;
    }
    memcpy(key->text, text, KEY_BYTES);
    key->imported = imported;
    key->open_count = 1;
    key->next = keys;
    keys = key;
    return true;
}

SIM_EXPORT aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len,
                                            uint64_t flags)
{
    struct context *context;
    struct sim_block block;
    char text[KEY_BYTES] = {0};
    aclError code;

    BEGIN("aclrtIpcMemGetExportKey");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (len != KEY_BYTES || (flags & ~(uint64_t)DISABLE_PID_VALIDATION) != 0 ||
        /* Sharing works on pages, so that only whole pages can be exported. */
        (uintptr_t)devPtr % 4096 != 0 || size % 4096 != 0 || !sim_find(devPtr, &block) ||
        block.address != devPtr || size > block.size_bytes || !sim_export(devPtr, text)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    text[KEY_BYTES - 1] = (flags & DISABLE_PID_VALIDATION) != 0 ? '\0' : 'P';
    pthread_mutex_lock(&lock);
    if (*find_key(text, false) == NULL && !add_key(text, NULL)) {
        code = ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    pthread_mutex_unlock(&lock);
    if (code == ACL_SUCCESS) {
        memcpy(key, text, KEY_BYTES);
    }
    return code;
}

SIM_EXPORT aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
    struct context *context;
    struct key *found;
    void *address;
    uint64_t size;
    aclError code;

    BEGIN("aclrtIpcMemImportByKey");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if ((flags & ~UINT64_C(1)) != 0 || key[KEY_BYTES - 1] != '\0') {
        return ACL_ERROR_RT_PARAM_INVALID; /* this process is not listed */
    }
    pthread_mutex_lock(&lock);
    found = *find_key(key, true);
    if (found != NULL) {
        found->open_count++;
        *devPtr = found->imported;
    } else {
        address = sim_import(context->physical, key, &size);
        if (address == NULL) {
            code = ACL_ERROR_RT_PARAM_INVALID;
        } else if (!add_key(key, address)) {
            sim_import_close(address);
            code = ACL_ERROR_RT_MEMORY_ALLOCATION;
        } else {
            *devPtr = address;
        }
    }
    pthread_mutex_unlock(&lock);
    return code;
}

SIM_EXPORT aclError aclrtIpcMemClose(const char *key)
{
    struct key **at;
    struct key *gone = NULL;

    BEGIN("aclrtIpcMemClose");
    pthread_mutex_lock(&lock);
    at = find_key(key, true);
    if (*at == NULL) {
        at = find_key(key, false);
    }
    if (*at != NULL && --(*at)->open_count == 0) {
        gone = *at;
        *at = gone->next;
    } else if (*at == NULL) {
        pthread_mutex_unlock(&lock);
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    pthread_mutex_unlock(&lock);
    if (gone != NULL && gone->imported != NULL) {
        sim_import_close(gone->imported);
    }
    free(gone);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle)
{
    struct event *of = event;

    BEGIN("aclrtIpcGetEventHandle");
    sim_handle_check(event, "event", "aclrtIpcGetEventHandle");
    if ((of->flags & 64u) == 0 || !sim_event_export(of->sim, handle)) { /* ACL_EVENT_IPC */
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event)
{
    struct context *context;
    struct event *made;
    aclError code;

    BEGIN("aclrtIpcOpenEventHandle");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    made->flags = 64;
    made->physical = context->physical;
    made->sim = sim_event_import(context->physical, &handle);
    if (made->sim == NULL) {
        free(made);
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    sim_handle_add(made, "event");
    *event = made;
    return ACL_SUCCESS;
}
