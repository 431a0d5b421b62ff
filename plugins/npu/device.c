/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Devices and the contexts of threads.
 *
 * aclrtSetDevice() creates the device's primary context, or increments the context's user count,
 * and makes it the calling thread's context; aclrtResetDevice() decrements the count, and destroys
 * the context with the last count. No call removes a thread's context. While the plugin has
 * a device open, it holds one count of the device's context, so the context exists until the device
 * is closed. A call of the plugin
 *
 *  - on a thread with the device's context changes nothing;
 *  - on a thread with another context sets the device's context with aclrtSetCurrentContext(), and
 *    afterwards restores the other context;
 *  - on a thread without a context, or with a context that an earlier call of the plugin left
 *    there, calls aclrtSetDevice(), and afterwards aclrtResetDevice(). The thread keeps the
 *    context; left_behind, a variable of the thread, records that the program did not choose it, so
 *    that device_get_current still reports "none".
 */
#include "npu.h"

#define SAVED_NOTHING 0u /* the thread had no context, or only one that left_behind describes */
#define SAVED_OURS 1u

/* Returns the thread's context; NULL: none. */
static void *current_context(const struct acl_api *acl)
{
    void *context = NULL;

    return acl->aclrtGetCurrentContext(&context) == ACL_OK ? context : NULL;
}

/* The context that a call of the plugin left on this thread, which had no context before. */
static _Thread_local void *left_behind;

/* Returns the thread's context, or NULL if there is none or a call of the plugin left it there. */
static void *own_context(const struct acl_api *acl)
{
    void *context = current_context(acl);

    return context == left_behind ? NULL : context;
}

int32_t npu_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                  struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    const struct npu_device *state = NPU_STATE(device);
    void *current = current_context(acl);
    int32_t status;

    if (current == state->context) {
        *saved_out = SAVED_OURS;
        return DS_ACCEL_OK;
    }
    if (current == left_behind) {
        current = NULL;
    }
    if (current == NULL) {
        status = NPU_CHECK(device, acl->aclrtSetDevice(state->user), error, "aclrtSetDevice(%d)",
                           state->user);
        if (status != DS_ACCEL_OK) {
            return status;
        }
    }
    *saved_out = (uint64_t)(uintptr_t)current; /* if current is NULL, this is SAVED_NOTHING */
    if (current == NULL && state->context == state->primary) {
        return DS_ACCEL_OK;
    }
    status = NPU_CHECK(device, acl->aclrtSetCurrentContext(state->context), error,
                       "aclrtSetCurrentContext(device %d)", state->user);
    if (status != DS_ACCEL_OK && current == NULL) {
        acl->aclrtResetDevice(state->user);
        left_behind = current_context(acl);
    }
    return status;
}

void npu_leave(ds_accel_plugin_device_t *device, uint64_t saved)
{
    const struct acl_api *acl = NPU_ACL(device);
    const struct npu_device *state = NPU_STATE(device);

    if (saved == SAVED_OURS) {
        return;
    }
    if (saved != SAVED_NOTHING) {
        acl->aclrtSetCurrentContext((void *)(uintptr_t)saved);
        return;
    }
    if (state->context != state->primary) {
        acl->aclrtSetCurrentContext(state->primary);
    }
    acl->aclrtResetDevice(state->user);
    left_behind = current_context(acl);
}

int32_t npu_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                        struct ds_accel_error *error)
{
    const struct acl_api *acl = &NPU(instance)->acl;
    int32_t index = -1;
    acl_error code = acl->aclrtGetDevice(&index);

    if (code == ACL_RT_CONTEXT_NULL || (code == ACL_OK && own_context(acl) == NULL)) {
        *index_out = UINT32_MAX;
        return DS_ACCEL_OK;
    }
    if (code == ACL_OK) {
        *index_out = (uint32_t)index;
    }
    return vendor_check(instance, NULL, code, error, "aclrtGetDevice()");
}

int32_t npu_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    int32_t status = NPU_CHECK(device,
                               NPU_ACL(device)->aclrtSetCurrentContext(NPU_STATE(device)->context),
                               error, "aclrtSetCurrentContext(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        left_behind = NULL;
    }
    return status;
}

/* ---- identity ------------------------------------------------------------------------------- */

/*
 * Returns ACL's number of a visible device before ASCEND_RT_VISIBLE_DEVICES is applied; if it
 * cannot be determined, the device's index.
 */
static uint32_t logic_of(const ds_accel_plugin_device_t *device)
{
    const struct npu_runtime *runtime = NPU(device->instance);
    char name[64];
    uint64_t number = 0;
    int32_t logic = -1;

    if (runtime->acl.aclrtGetLogicDevIdByUserDevId != NULL &&
        runtime->acl.aclrtGetLogicDevIdByUserDevId((int32_t)device->index, &logic) == ACL_OK &&
        logic >= 0) {
        return (uint32_t)logic;
    }
    return vendor_visible_name(device, NPU_VISIBLE, name, sizeof(name)) == 0 &&
                   plugin_parse_u64(name, &number) == 0 && number < UINT32_MAX
               ? (uint32_t)number
               : device->index;
}

static void identify_uuid(const struct acl_api *acl, int32_t user,
                          struct ds_accel_device_identity *identity)
{
    struct acl_uuid uuid;
    uint32_t is_set = 0;
    const uint8_t *bytes = identity->uuid;

    memset(&uuid, 0, sizeof(uuid));
    if (acl->aclrtDeviceGetUuid == NULL || acl->aclrtDeviceGetUuid(user, &uuid) != ACL_OK) {
        return;
    }
    for (size_t i = 0; i < sizeof(uuid.bytes); i++) {
        is_set |= (uint8_t)uuid.bytes[i];
    }
    if (is_set == 0) {
        return;
    }
    memcpy(identity->uuid, uuid.bytes, sizeof(uuid.bytes));
    identity->valid |= DS_ACCEL_IDENTITY_UUID;
    snprintf(identity->uuid_text, sizeof(identity->uuid_text),
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", bytes[0],
             bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8],
             bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]);
}

static void identify_pci(const struct npu_runtime *runtime,
                         struct ds_accel_device_identity *identity)
{
    const struct npu_chip *chip = npu_chip_of(runtime, identity->vendor_index);
    struct dcmi_pcie pcie;

    memset(&pcie, 0, sizeof(pcie));
    if (chip != NULL && runtime->dcmi.dcmi_get_device_pcie_info_v2 != NULL &&
        runtime->dcmi.dcmi_get_device_pcie_info_v2(chip->card, chip->device, &pcie) == 0) {
        snprintf(identity->pci_address, sizeof(identity->pci_address), "%04x:%02x:%02x.%x",
                 (unsigned)pcie.domain & 0xffffu, pcie.bus & 0xffu, pcie.slot & 0x1fu,
                 pcie.function & 7u);
    }
}

/*
 * Returns the driver's number of a device, which is also in the name of its node. Despite its name,
 * aclrtGetPhyDevIdByLogicDevId() expects user, the number after ASCEND_RT_VISIBLE_DEVICES is
 * applied; newer CANN has the same function under a better name. If both functions are missing or
 * fail, the result is logic, which differs from the driver's number in containers.
 */
static int32_t physical_of(const struct acl_api *acl, int32_t user, uint32_t logic)
{
    int32_t physical = -1;

    if (acl->aclrtGetPhyDevIdByUserDevId != NULL &&
        acl->aclrtGetPhyDevIdByUserDevId(user, &physical) == ACL_OK && physical >= 0) {
        return physical;
    }
    if (acl->aclrtGetPhyDevIdByLogicDevId != NULL &&
        acl->aclrtGetPhyDevIdByLogicDevId(user, &physical) == ACL_OK && physical >= 0) {
        return physical;
    }
    return (int32_t)logic;
}

int32_t npu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error)
{
    const struct npu_runtime *runtime = NPU(device->instance);
    const struct acl_api *acl = &runtime->acl;
    int32_t user = (int32_t)device->index;
    const char *name = acl->aclrtGetSocName();
    int64_t bytes = 0;

    (void)error;
    device->native_device = device->index;
    identity->vendor_index = logic_of(device);
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    if (name != NULL) {
        snprintf(identity->name, sizeof(identity->name), "%s", name);
        snprintf(identity->architecture, sizeof(identity->architecture), "%s", name);
    }
    identify_uuid(acl, user, identity);
    identify_pci(runtime, identity);
    if (acl->aclrtGetDeviceInfo != NULL &&
        acl->aclrtGetDeviceInfo(device->index, ACL_ATTR_TOTAL_MEMORY, &bytes) == ACL_OK &&
        bytes > 0) {
        identity->total_memory_bytes = (uint64_t)bytes;
    }
    snprintf(identity->node_path, sizeof(identity->node_path), "/dev/davinci%d",
             physical_of(acl, user, identity->vendor_index));
    return DS_ACCEL_OK;
}

int npu_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                      size_t token_size)
{
    (void)which;
    return snprintf(token, token_size, "%u", device->identity.vendor_index) < (int)token_size ? 0
                                                                                              : -1;
}

/* ---- peer access ---------------------------------------------------------------------------- */

/*
 * ACL stores peer access for a device, regardless of which code opened the device, and does not
 * document what it returns when access is enabled or disabled twice, nor how aclrtResetDevice()
 * affects access. The plugin therefore records access for the process, by device index: it never
 * enables access twice, and disables a device's access when the device is closed for the last time.
 */
static struct {
    pthread_mutex_t lock; /* guards the members below; held also during calls of ACL that change
                           * access */
    uint32_t open_count[NPU_MAX_DEVICES];
    uint64_t reached[NPU_MAX_DEVICES]; /* one bit for each peer whose memory is accessible */
} access = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void access_begin(const ds_accel_plugin_device_t *device)
{
    if (device->index < NPU_MAX_DEVICES) {
        pthread_mutex_lock(&access.lock);
        access.open_count[device->index]++;
        pthread_mutex_unlock(&access.lock);
    }
}

static void disable_all(const struct acl_api *acl, uint32_t index)
{
    for (uint32_t peer = 0; peer < NPU_MAX_DEVICES; peer++) {
        uint64_t bit = UINT64_C(1) << peer;

        if ((access.reached[index] & bit) != 0 &&
            acl->aclrtDeviceDisablePeerAccess((int32_t)peer) == ACL_OK) {
            access.reached[index] &= ~bit;
        }
    }
}

static void access_end(ds_accel_plugin_device_t *device)
{
    const struct acl_api *acl = NPU_ACL(device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t saved = 0;

    if (device->index >= NPU_MAX_DEVICES) {
        return;
    }
    pthread_mutex_lock(&access.lock);
    if (--access.open_count[device->index] == 0 && access.reached[device->index] != 0 &&
        acl->aclrtDeviceDisablePeerAccess != NULL &&
        npu_enter(device, &saved, &error) == DS_ACCEL_OK) {
        disable_all(acl, device->index);
        npu_leave(device, saved);
    }
    pthread_mutex_unlock(&access.lock);
}

/* ---- opening -------------------------------------------------------------------------------- */

/*
 * Returns true if the chip computes bf16, according to the list of chip names in the vendor's
 * PyTorch extension. "Ascend910B" without a digit is an early 910, which does not compute bf16.
 */
static uint32_t has_bf16(const char *soc)
{
    static const struct {
        const char *name;
        uint32_t needs_digit;
    } generations[] = {{"Ascend910B", 1},   {"Ascend910C", 0}, {"Ascend910_93", 0},
                       {"Ascend910_95", 0}, {"Ascend310B", 1}, {"Ascend950", 0}};

    for (size_t i = 0; soc != NULL && i < sizeof(generations) / sizeof(generations[0]); i++) {
        size_t length = strlen(generations[i].name);

        if (strncmp(soc, generations[i].name, length) == 0 &&
            (!generations[i].needs_digit || isdigit((unsigned char)soc[length]))) {
            return 1;
        }
    }
    return 0;
}

static uint64_t attribute_of(const struct acl_api *acl, uint32_t user, int attribute)
{
    int64_t value = 0;

    if (acl->aclrtGetDeviceInfo == NULL ||
        acl->aclrtGetDeviceInfo(user, attribute, &value) != ACL_OK || value < 0) {
        return 0;
    }
    return (uint64_t)value;
}

/*
 * Finds out whether the device has HBM or, if not, DDR, and stores the kind and its total size. The
 * device's context is current in this thread.
 */
static int32_t find_memory(ds_accel_plugin_device_t *device, struct npu_device *state,
                           struct ds_accel_error *error)
{
    static const int attributes[] = {ACL_HBM, ACL_DDR};
    acl_error first = ACL_OK;

    for (size_t i = 0; i < 2; i++) {
        size_t free_bytes = 0;
        size_t total = 0;
        acl_error code = NPU_ACL(device)->aclrtGetMemInfo(attributes[i], &free_bytes, &total);

        if (code == ACL_OK && total > 0) {
            state->memory_attribute = attributes[i];
            device->info.total_memory_bytes = total;
            return DS_ACCEL_OK;
        }
        first = first == ACL_OK ? code : first;
    }
    if (first != ACL_OK) {
        return NPU_CHECK(device, first, error, "aclrtGetMemInfo(device %d)", state->user);
    }
    return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                       "aclrtGetMemInfo(device %d): neither HBM nor DDR", state->user);
}

static void fill_info(ds_accel_plugin_device_t *device, struct npu_device *state)
{
    const struct npu_runtime *runtime = NPU(device->instance);
    const struct npu_chip *chip = npu_chip_of(runtime, device->identity.vendor_index);
    const char *name = runtime->acl.aclrtGetSocName();
    unsigned int mhz = 0;

    state->has_bf16 = has_bf16(name);
    snprintf(device->info.name, sizeof(device->info.name), "%s", name != NULL ? name : "Ascend");
    device->info.compute_unit_count =
        (uint32_t)attribute_of(&runtime->acl, device->index, ACL_ATTR_AICORE_COUNT);
    device->info.l2_cache_bytes = attribute_of(&runtime->acl, device->index, ACL_ATTR_L2_CACHE);
    if (chip != NULL && runtime->dcmi.dcmi_get_device_frequency != NULL &&
        runtime->dcmi.dcmi_get_device_frequency(chip->card, chip->device, DCMI_FREQUENCY_AICORE_MAX,
                                                &mhz) == 0) {
        device->info.max_core_clock_khz = mhz * 1000;
    }
}

/*
 * Finds the device's contexts and its memory. The caller has called aclrtSetDevice() on this
 * thread.
 */
static int32_t open_contexts(ds_accel_plugin_device_t *device, struct npu_device *state,
                             uint64_t native_context, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int32_t status = NPU_CHECK(device, acl->aclrtGetCurrentContext(&state->primary), error,
                               "aclrtGetCurrentContext(device %d)", state->user);

    if (status != DS_ACCEL_OK) {
        return status;
    }
    state->context = state->primary;
    if (native_context != 0) {
        state->context = (void *)(uintptr_t)native_context;
        status = NPU_CHECK(device, acl->aclrtSetCurrentContext(state->context), error,
                           "aclrtSetCurrentContext(0x%llx)", (unsigned long long)native_context);
    }
    return status != DS_ACCEL_OK ? status : find_memory(device, state, error);
}

/* Releases the count of the device's context, and restores the thread's earlier context. */
static void give_up(const struct acl_api *acl, const struct npu_device *state, void *before)
{
    if (state->context != state->primary && current_context(acl) == state->context) {
        acl->aclrtSetCurrentContext(state->primary);
    }
    acl->aclrtResetDevice(state->user);
    if (before != NULL) { /* the call fails if the context was destroyed with the last count */
        acl->aclrtSetCurrentContext(before);
    } else {
        left_behind = current_context(acl);
    }
}

int32_t npu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    struct npu_device *state = calloc(1, sizeof(*state));
    void *before = own_context(acl);
    int32_t status;

    if (state == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory");
    }
    state->user = (int32_t)device->index;
    status = NPU_CHECK(device, acl->aclrtSetDevice(state->user), error, "aclrtSetDevice(%d)",
                       state->user);
    if (status != DS_ACCEL_OK) {
        free(state);
        return status;
    }
    status = open_contexts(device, state, native_context, error);
    if (status != DS_ACCEL_OK) {
        give_up(acl, state, before);
        free(state);
        return status;
    }
    fill_info(device, state);
    access_begin(device);
    device->native_context = (uint64_t)(uintptr_t)state->context;
    device->state = state;
    if (before != NULL) {
        acl->aclrtSetCurrentContext(before);
    } else {
        left_behind = current_context(acl);
    }
    return DS_ACCEL_OK;
}

void npu_device_close(ds_accel_plugin_device_t *device)
{
    const struct acl_api *acl = NPU_ACL(device);
    struct npu_device *state = device->state;

    access_end(device);
    give_up(acl, state, own_context(acl));
    npu_vmem_forget(state);
    device->state = NULL;
    device->native_context = 0;
    free(state);
}

int32_t npu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclrtSynchronizeDevice(), error,
                     "aclrtSynchronizeDevice(device %u)", device->index);
}

int32_t npu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int state = 0;
    int32_t status;

    if (acl->aclrtQueryDeviceStatus == NULL) {
        return DS_ACCEL_OK;
    }
    status = NPU_CHECK(device, acl->aclrtQueryDeviceStatus((int32_t)device->index, &state), error,
                       "aclrtQueryDeviceStatus(%u)", device->index);
    if (status == DS_ACCEL_OK && state == ACL_DEVICE_ABNORMAL) {
        atomic_store(&device->is_lost, 1);
        return plugin_fail(error, DS_ACCEL_ERR_DEVICE_LOST,
                           "aclrtQueryDeviceStatus(%u): the device is abnormal", device->index);
    }
    return status;
}

int32_t npu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error)
{
    (void)error;
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_INT8:
    case DS_ACCEL_DTYPE_UINT8:
    case DS_ACCEL_DTYPE_INT16:
    case DS_ACCEL_DTYPE_INT32:
    case DS_ACCEL_DTYPE_INT64:
    case DS_ACCEL_DTYPE_BOOL:
        *support_out = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
        break;
    case DS_ACCEL_DTYPE_BFLOAT16:
        *support_out = DS_ACCEL_DTYPE_STORES |
                       (NPU_STATE(device)->has_bf16 ? DS_ACCEL_DTYPE_COMPUTES : 0);
        break;
    case DS_ACCEL_DTYPE_FLOAT64:
        *support_out = DS_ACCEL_DTYPE_STORES;
        break;
    default:
        *support_out = 0;
        break;
    }
    return DS_ACCEL_OK;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static int is_kept(const ds_accel_plugin_device_t *device, const ds_accel_plugin_device_t *peer)
{
    return device->index < NPU_MAX_DEVICES && peer->index < NPU_MAX_DEVICES;
}

int32_t npu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int32_t can = 0;
    int32_t status;

    if (acl->aclrtDeviceCanAccessPeer == NULL || acl->aclrtDeviceEnablePeerAccess == NULL ||
        !is_kept(device, peer)) {
        *can_out = 0;
        return DS_ACCEL_OK;
    }
    status = NPU_CHECK(
        device, acl->aclrtDeviceCanAccessPeer(&can, (int32_t)device->index, (int32_t)peer->index),
        error, "aclrtDeviceCanAccessPeer(%u, %u)", device->index, peer->index);
    if (status == DS_ACCEL_OK) {
        *can_out = can == 1;
    }
    return status;
}

/* Caller holds access.lock. */
static int32_t enable_peer(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                           struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    uint64_t bit;
    int32_t status;

    if (acl->aclrtDeviceEnablePeerAccess == NULL) {
        return NPU_MISSING(error, "peer_enable", "aclrtDeviceEnablePeerAccess", "CANN 6");
    }
    if (!is_kept(device, peer)) {
        return vendor_unsupported(error, "peer_enable", "only of the first 64 devices");
    }
    bit = UINT64_C(1) << peer->index;
    if ((access.reached[device->index] & bit) != 0) {
        return DS_ACCEL_OK;
    }
    status = NPU_CHECK(device, acl->aclrtDeviceEnablePeerAccess((int32_t)peer->index, 0), error,
                       "aclrtDeviceEnablePeerAccess(device %u, peer %u)", device->index,
                       peer->index);
    if (status == DS_ACCEL_OK) {
        access.reached[device->index] |= bit;
    }
    return status;
}

int32_t npu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error)
{
    int32_t status;

    pthread_mutex_lock(&access.lock);
    status = enable_peer(device, peer, error);
    pthread_mutex_unlock(&access.lock);
    return status;
}

int32_t npu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    uint64_t bit;
    int32_t status = DS_ACCEL_OK;

    if (acl->aclrtDeviceDisablePeerAccess == NULL) {
        return NPU_MISSING(error, "peer_disable", "aclrtDeviceDisablePeerAccess", "CANN 6");
    }
    if (!is_kept(device, peer)) {
        return DS_ACCEL_OK;
    }
    bit = UINT64_C(1) << peer->index;
    pthread_mutex_lock(&access.lock);
    if ((access.reached[device->index] & bit) != 0) {
        status = NPU_CHECK(device, acl->aclrtDeviceDisablePeerAccess((int32_t)peer->index), error,
                           "aclrtDeviceDisablePeerAccess(device %u, peer %u)", device->index,
                           peer->index);
    }
    if (status == DS_ACCEL_OK) {
        access.reached[device->index] &= ~bit;
    }
    pthread_mutex_unlock(&access.lock);
    return status;
}

/* Holds access.lock, so that no other thread disables access before the copy is queued. */
int32_t npu_copy_peer_async(ds_accel_plugin_device_t *device, void *stream,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *other = destination_device == device ? source_device
                                                                   : destination_device;
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&access.lock);
    if (other != device) {
        status = enable_peer(device, other, error);
    }
    if (status == DS_ACCEL_OK) {
        status = npu_copy_async(device, stream, destination, source, size_bytes,
                                DS_ACCEL_COPY_DEVICE_TO_DEVICE, error);
    }
    pthread_mutex_unlock(&access.lock);
    return status;
}
