/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated AscendCL: start, devices, contexts, peers. */
#include "sim_acl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 64

typedef struct aclrtUuid {
    char bytes[16];
} aclrtUuid;

SIM_ASSERT(sizeof(aclrtUuid) == 16, "acl_rt.h: aclrtUuid");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_started;
static bool is_ended;
static struct context *primaries[MAX_DEVICES]; /* indexed by user number */
static int32_t visible[MAX_DEVICES];           /* user number -> logic number */
static int32_t visible_count;
static uint32_t order[MAX_DEVICES]; /* logic number -> physical number */
static uint32_t order_count;
static uint64_t peers[MAX_DEVICES]; /* physical number -> bit set of physical numbers */
static _Thread_local struct context *current;

/*
 * Reads the numbers of ASCEND_RT_VISIBLE_DEVICES, when ACL starts: the first invalid number ends
 * the list. Numbers must ascend, or there is no device at all; the fact "any_order" simulates an
 * older CANN, which accepts any order.
 */
static void read_visible(void)
{
    const char *text = getenv("ASCEND_RT_VISIBLE_DEVICES");

    order_count = sim_order(NULL, "file", order, MAX_DEVICES);
    visible_count = 0;
    if (text == NULL) {
        for (uint32_t i = 0; i < order_count; i++) {
            visible[visible_count++] = (int32_t)i;
        }
        return;
    }
    while (*text != '\0') {
        char *end;
        long value = strtol(text, &end, 10);

        if (end == text || value < 0 || value >= (long)order_count ||
            visible_count == MAX_DEVICES) {
            return;
        }
        if (visible_count > 0 && value <= visible[visible_count - 1] &&
            sim_vendor_number("any_order", 0) == 0) {
            visible_count = 0;
            return;
        }
        visible[visible_count++] = (int32_t)value;
        text = *end == ',' ? end + 1 : end;
        if (*end != ',') {
            return;
        }
    }
}

static void prepare(void)
{
    sim_device_count("npu");
    sim_failure = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
}

__attribute__((constructor)) static void load(void)
{
    prepare();
}

int64_t acl_begin(const char *call)
{
    if (!is_started) {
        sim_misuse("%s: before aclInit()", call);
    }
    return sim_enter(call);
}

int32_t acl_device_count(void)
{
    return visible_count;
}

int32_t acl_physical(int32_t user)
{
    return user >= 0 && user < visible_count ? (int32_t)order[visible[user]] : -1;
}

struct context *acl_context(void)
{
    return current != NULL && sim_handle_is(current, "context") ? current : NULL;
}

aclError acl_ready(struct context **context_out)
{
    struct context *context = acl_context();

    if (context == NULL) {
        return ACL_ERROR_RT_CONTEXT_NULL;
    }
    *context_out = context;
    return sim_is_lost(context->physical) ? ACL_ERROR_RT_LOST_HEARTBEAT : ACL_SUCCESS;
}

/* ---- start ---------------------------------------------------------------------------------- */

SIM_EXPORT aclError aclInit(const char *configPath)
{
    int64_t scripted = sim_enter("aclInit");
    aclError result = ACL_SUCCESS;

    (void)configPath;
    if (scripted != 0) {
        return (aclError)scripted;
    }
    if (strcmp(sim_vendor_text("driver_state", "ok"), "broken") == 0) {
        return ACL_ERROR_RT_DEV_SETUP_ERROR;
    }
    pthread_mutex_lock(&lock);
    if (is_ended) {
        sim_misuse("aclInit: after aclFinalize() it cannot start again");
    }
    if (is_started) {
        result = ACL_ERROR_REPEAT_INITIALIZE;
    } else {
        read_visible();
        is_started = true;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_EXPORT aclError aclFinalize(void)
{
    BEGIN("aclFinalize");
    pthread_mutex_lock(&lock);
    is_started = false;
    is_ended = true;
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
                                    int32_t *patchVersion)
{
    BEGIN("aclrtGetVersion");
    *majorVersion = 1;
    *minorVersion = 15;
    *patchVersion = 0;
    return ACL_SUCCESS;
}

/* ---- devices -------------------------------------------------------------------------------- */

SIM_EXPORT aclError aclrtGetDeviceCount(uint32_t *count)
{
    BEGIN("aclrtGetDeviceCount");
    if (visible_count == 0) {
        return ACL_ERROR_RT_NO_DEVICE; /* *count stays unchanged */
    }
    *count = (uint32_t)visible_count;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtSetDevice(int32_t deviceId)
{
    int32_t physical;
    struct context *context;

    BEGIN("aclrtSetDevice");
    physical = acl_physical(deviceId);
    if (physical < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    pthread_mutex_lock(&lock);
    context = primaries[deviceId];
    if (context == NULL && sim_is_lost((uint32_t)physical)) {
        pthread_mutex_unlock(&lock);
        return ACL_ERROR_RT_LOST_HEARTBEAT;
    }
    if (context == NULL) {
        context = calloc(1, sizeof(*context));
        if (context == NULL) {
            pthread_mutex_unlock(&lock);
            return ACL_ERROR_RT_MEMORY_ALLOCATION;
        }
        context->user = deviceId;
        context->physical = (uint32_t)physical;
        context->is_primary = true;
        primaries[deviceId] = context;
        sim_handle_add(context, "context");
    }
    context->count++;
    pthread_mutex_unlock(&lock);
    current = context;
    return ACL_SUCCESS;
}

static void end_context(struct context *context)
{
    if (context->default_stream != NULL) {
        sim_handle_remove(context->default_stream, "stream", "aclrtResetDevice");
        sim_stream_destroy(context->default_stream->sim);
        free(context->default_stream);
    }
    sim_handle_remove(context, "context", "aclrtResetDevice");
    free(context);
}

SIM_EXPORT aclError aclrtResetDevice(int32_t deviceId)
{
    struct context *context;

    BEGIN("aclrtResetDevice");
    if (acl_physical(deviceId) < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    pthread_mutex_lock(&lock);
    context = primaries[deviceId];
    if (context == NULL) {
        sim_misuse("aclrtResetDevice(%d): it was reset as often as it was set", deviceId);
    }
    /* This call only decrements the count: threads keep the context until the count is zero. */
    if (--context->count == 0) {
        primaries[deviceId] = NULL;
        end_context(context);
    }
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtGetDevice(int32_t *deviceId)
{
    struct context *context;

    BEGIN("aclrtGetDevice");
    context = acl_context();
    if (context == NULL) {
        return ACL_ERROR_RT_CONTEXT_NULL;
    }
    *deviceId = context->user;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    int32_t physical;
    struct context *made;

    BEGIN("aclrtCreateContext");
    physical = acl_physical(deviceId);
    if (physical < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    made->user = deviceId;
    made->physical = (uint32_t)physical;
    sim_handle_add(made, "context");
    current = made;
    *context = made;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtDestroyContext(aclrtContext context)
{
    BEGIN("aclrtDestroyContext");
    sim_handle_check(context, "context", "aclrtDestroyContext");
    if (((struct context *)context)->is_primary) {
        sim_misuse("aclrtDestroyContext: of a primary context");
    }
    end_context(context);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtSetCurrentContext(aclrtContext context)
{
    BEGIN("aclrtSetCurrentContext");
    if (context == NULL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (!sim_handle_is(context, "context")) {
        return ACL_ERROR_RT_CONTEXT_NULL;
    }
    current = context;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtGetCurrentContext(aclrtContext *context)
{
    struct context *found;

    BEGIN("aclrtGetCurrentContext");
    found = acl_context();
    if (found == NULL) {
        return ACL_ERROR_RT_CONTEXT_NULL;
    }
    *context = found;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtSynchronizeDevice(void)
{
    struct context *context;
    aclError code;

    BEGIN("aclrtSynchronizeDevice");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (acl_is_forbidden(context->physical)) {
        return ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT;
    }
    return acl_work(sim_device_synchronize(context->physical), context->physical);
}

/* ---- facts ---------------------------------------------------------------------------------- */

/* All devices of a machine have one name: the first device's. */
SIM_EXPORT const char *aclrtGetSocName(void)
{
    return order_count > 0 ? sim_device_at(order[0])->name : NULL;
}

SIM_EXPORT aclError aclrtGetDeviceInfo(uint32_t deviceId, int attr, int64_t *value)
{
    int32_t physical;
    const struct sim_device *device;

    BEGIN("aclrtGetDeviceInfo");
    physical = acl_physical((int32_t)deviceId);
    if (physical < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    device = sim_device_at((uint32_t)physical);
    switch (attr) {
    case 101: /* ACL_DEV_ATTR_AICORE_CORE_NUM */
        *value = sim_number(device, "aicores", 24);
        return ACL_SUCCESS;
    case 301: /* ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE */
        *value = (int64_t)device->memory_bytes;
        return ACL_SUCCESS;
    case 302: /* ACL_DEV_ATTR_L2_CACHE_SIZE */
        *value = sim_number(device, "l2_bytes", 192 << 20);
        return ACL_SUCCESS;
    default:
        return ACL_ERROR_RT_PARAM_INVALID;
    }
}

SIM_EXPORT aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
    int32_t physical;

    BEGIN("aclrtDeviceGetUuid");
    physical = acl_physical(deviceId);
    if (physical < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    memcpy(uuid->bytes, sim_device_at((uint32_t)physical)->uuid, sizeof(uuid->bytes));
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtQueryDeviceStatus(int32_t deviceId, int *deviceStatus)
{
    int32_t physical;

    BEGIN("aclrtQueryDeviceStatus");
    physical = acl_physical(deviceId);
    if (physical < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    *deviceStatus = sim_is_lost((uint32_t)physical) ? 1 : 0; /* ACL_RT_DEVICE_STATUS_ABNORMAL */
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid,
                                                  int32_t *const logicDevId)
{
    BEGIN("aclrtGetLogicDevIdByUserDevId");
    if (acl_physical(userDevid) < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    *logicDevId = visible[userDevid];
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId)
{
    BEGIN("aclrtGetPhyDevIdByLogicDevId");
    /* The parameter logicDevId is the caller's number in spite of its name. */
    if (acl_physical(logicDevId) < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    *phyDevId = (int32_t)sim_device_at((uint32_t)acl_physical(logicDevId))->minor;
    return ACL_SUCCESS;
}

/* Newer CANN ("has_user_numbers": 1) has this function for the same purpose, with a clearer
 * name. */
SIM_EXPORT aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t *const phyDevId)
{
    BEGIN("aclrtGetPhyDevIdByUserDevId");
    if (sim_vendor_number("has_user_numbers", 0) == 0) {
        return ACL_ERROR_API_NOT_SUPPORT;
    }
    if (acl_physical(userDevId) < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    *phyDevId = (int32_t)sim_device_at((uint32_t)acl_physical(userDevId))->minor;
    return ACL_SUCCESS;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static bool are_peers(uint32_t from, uint32_t to) /* caller holds lock */
{
    return from == to || (from < MAX_DEVICES && to < 64 && (peers[from] >> to & 1) != 0);
}

bool acl_peers(uint32_t from, uint32_t to)
{
    bool answer;

    pthread_mutex_lock(&lock);
    answer = are_peers(from, to);
    pthread_mutex_unlock(&lock);
    return answer;
}

SIM_EXPORT aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId,
                                             int32_t peerDeviceId)
{
    BEGIN("aclrtDeviceCanAccessPeer");
    if (acl_physical(deviceId) < 0 || acl_physical(peerDeviceId) < 0) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    *canAccessPeer = deviceId != peerDeviceId && sim_vendor_number("peer_access", 1) != 0;
    return ACL_SUCCESS;
}

static aclError change_peer(int32_t peer, bool is_enabled, const char *call)
{
    struct context *context;
    aclError code = acl_ready(&context);
    int32_t physical = acl_physical(peer);

    if (code != ACL_SUCCESS) {
        return code;
    }
    if (physical < 0 || physical >= 64 || context->physical >= MAX_DEVICES) {
        return ACL_ERROR_RT_INVALID_DEVICEID;
    }
    pthread_mutex_lock(&lock);
    if (are_peers(context->physical, (uint32_t)physical) == is_enabled) {
        sim_misuse("%s(%d): it is so already", call, peer);
    }
    peers[context->physical] ^= UINT64_C(1) << physical;
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
    BEGIN("aclrtDeviceEnablePeerAccess");
    return flags != 0 ? ACL_ERROR_RT_PARAM_INVALID
                      : change_peer(peerDeviceId, true, "aclrtDeviceEnablePeerAccess");
}

SIM_EXPORT aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
    BEGIN("aclrtDeviceDisablePeerAccess");
    return change_peer(peerDeviceId, false, "aclrtDeviceDisablePeerAccess");
}
