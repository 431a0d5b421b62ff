/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Devices, in the order of zeDeviceGet().
 *
 * ZE_FLAT_DEVICE_HIERARCHY decides what a device is: a card (COMPOSITE) or a tile (FLAT, COMBINED).
 * A device is recognized as a tile by its flag, by the root device that the driver reports for it,
 * or by another device at the same PCI address.
 *
 * ZE_AFFINITY_MASK hides devices and renumbers the remaining devices, but never changes their
 * order: the visible devices correspond to the mask's numbers in ascending order. Numbers of
 * devices that do not exist are the largest and match no visible device. An entry such as "1.0",
 * which selects a tile of a card, selects no device if the tiles themselves are the devices.
 */
#include "xpu.h"

#include <inttypes.h>

#define MASK_ENTRIES 512u

static int is_same_address(const struct xpu_unit *a, const struct xpu_unit *b)
{
    return a->has_address && b->has_address &&
           memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

/* ---- ZE_AFFINITY_MASK ----------------------------------------------------------------------- */

struct mask_entry {
    uint32_t root;
    int64_t tile; /* -1: the entry selects the whole device */
};

struct mask {
    struct mask_entry entries[MASK_ENTRIES];
    uint32_t count;
};

/* Parses a number as the driver does: also 0x1 and 010; characters after a number are ignored. */
static int parse_number(const char *text, uint32_t *number_out)
{
    char *end;
    unsigned long number = strtoul(text, &end, 0);

    if (end == text || number > UINT32_MAX) {
        return -1;
    }
    *number_out = (uint32_t)number;
    return 0;
}

static int take_token(void *user_data, const char *token)
{
    struct mask *mask = user_data;
    uint32_t root;
    uint32_t tile = 0;
    const char *dot = strchr(token, '.');

    if (mask->count == MASK_ENTRIES || parse_number(token, &root) != 0 ||
        (dot != NULL && parse_number(dot + 1, &tile) != 0)) {
        return 0;
    }
    mask->entries[mask->count].root = root;
    mask->entries[mask->count++].tile = dot != NULL ? (int64_t)tile : -1;
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct mask_entry *left = a;
    const struct mask_entry *right = b;

    if (left->root != right->root) {
        return left->root < right->root ? -1 : 1;
    }
    return left->tile < right->tile ? -1 : left->tile > right->tile;
}

/*
 * Finds the device at this position among the devices that the mask selects. Returns its number in
 * *root_out, and its entries of the mask, such as "0.0,0.1", in token. -1: the mask selects fewer
 * devices, or token is too small.
 */
static int mask_at(const struct mask *mask, uint32_t position, uint32_t *root_out, char *token,
                   size_t token_size)
{
    uint32_t i = 0;
    size_t length = 0;

    for (uint32_t seen = 0; i < mask->count; seen++) {
        uint32_t root = mask->entries[i].root;
        uint32_t first = i;

        while (i < mask->count && mask->entries[i].root == root) {
            i++;
        }
        if (seen < position) {
            continue;
        }
        *root_out = root;
        token[0] = '\0';
        for (uint32_t k = first; k < i && length < token_size; k++) {
            if (mask->entries[k].tile < 0) {
                snprintf(token, token_size, "%" PRIu32, root);
                return 0;
            }
            if (k == first || mask->entries[k].tile != mask->entries[k - 1].tile) {
                length += (size_t)snprintf(token + length, token_size - length, "%s%" PRIu32 ".%d",
                                           length > 0 ? "," : "", root, (int)mask->entries[k].tile);
            }
        }
        return length < token_size ? 0 : -1;
    }
    return -1;
}

static uint32_t count_names(const struct mask *mask)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < mask->count; i++) {
        count += i == 0 || mask->entries[i].root != mask->entries[i - 1].root;
    }
    return count;
}

static void drop_tiles(struct mask *mask)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < mask->count; i++) {
        if (mask->entries[i].tile < 0) {
            mask->entries[kept++] = mask->entries[i];
        }
    }
    mask->count = kept;
}

/*
 * Returns true if the devices are tiles: ZE_FLAT_DEVICE_HIERARCHY says so, or two devices share a
 * PCI address. If neither shows what the devices are, the product's default applies, which the
 * plugin infers from the mask: the devices are tiles if the mask names more devices than the driver
 * lists, but exactly as many if its entries for tiles, which have no effect on tiles, are ignored.
 */
static int is_flat(const struct xpu_runtime *runtime, const struct mask *all,
                   const struct mask *whole)
{
    const char *hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY");

    if (hierarchy != NULL &&
        (strcmp(hierarchy, "FLAT") == 0 || strcmp(hierarchy, "COMBINED") == 0)) {
        return 1;
    }
    if (hierarchy != NULL && strcmp(hierarchy, "COMPOSITE") == 0) {
        return 0;
    }
    for (uint32_t i = 1; i < runtime->unit_count; i++) {
        if (is_same_address(&runtime->units[i - 1], &runtime->units[i])) {
            return 1;
        }
    }
    return count_names(all) > runtime->unit_count && count_names(whole) == runtime->unit_count;
}

static void find_tokens(struct xpu_runtime *runtime)
{
    struct mask *whole = calloc(1, sizeof(*whole));
    struct mask *mask = calloc(1, sizeof(*mask));
    int is_set;

    /* An empty mask hides nothing. */
    is_set = mask != NULL && whole != NULL &&
             vendor_visible_each("ZE_AFFINITY_MASK", take_token, mask) == 0 && mask->count > 0;
    if (is_set) {
        qsort(mask->entries, mask->count, sizeof(mask->entries[0]), compare_entries);
        *whole = *mask;
        drop_tiles(whole);
        if (is_flat(runtime, mask, whole)) {
            *mask = *whole;
        }
    }
    for (uint32_t i = 0; i < runtime->unit_count; i++) {
        struct xpu_unit *unit = &runtime->units[i];

        if (!is_set || mask_at(mask, i, &unit->number, unit->token, sizeof(unit->token)) != 0) {
            unit->number = i;
            snprintf(unit->token, sizeof(unit->token), "%" PRIu32, i);
        }
    }
    free(whole);
    free(mask);
}

int xpu_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                      size_t token_size)
{
    const struct xpu_unit *unit = &xpu_runtime(device)->units[device->index];

    (void)which;
    return (size_t)snprintf(token, token_size, "%s", unit->token) < token_size ? 0 : -1;
}

/* ---- list of devices ------------------------------------------------------------------------ */

static ze_result describe_unit(const struct xpu_runtime *runtime, struct xpu_unit *unit)
{
    struct ze_pci_properties pci = {.tag = ZE_TAG_PCI};
    ze_result result;

    memset(&unit->properties, 0, sizeof(unit->properties));
    unit->properties.tag = unit->driver->api_version >= ZE_VERSION(1, 2)
                               ? ZE_TAG_DEVICE_PROPERTIES_1_2
                               : ZE_TAG_DEVICE_PROPERTIES;
    result = runtime->ze.zeDeviceGetProperties(unit->handle, &unit->properties);
    if (result != ZE_SUCCESS) {
        return result;
    }
    unit->properties.name[sizeof(unit->properties.name) - 1] = '\0';
    if (runtime->ze.zeDevicePciGetPropertiesExt != NULL &&
        runtime->ze.zeDevicePciGetPropertiesExt(unit->handle, &pci) == ZE_SUCCESS) {
        unit->address = pci.address;
        unit->has_address = 1;
    }
    if (runtime->ze.zeDeviceGetRootDevice != NULL &&
        runtime->ze.zeDeviceGetRootDevice(unit->handle, &unit->root) != ZE_SUCCESS) {
        unit->root = NULL;
    }
    return ZE_SUCCESS;
}

/* Appends the GPUs of one driver to runtime->units. */
static int add_driver(struct xpu_runtime *runtime, struct xpu_driver *driver,
                      struct vendor_problem *problem)
{
    uint32_t count = 0;
    ze_device_t *handles = NULL;
    struct xpu_unit *units;
    ze_result result = runtime->ze.zeDeviceGet(driver->handle, &count, NULL);

    if (result == ZE_SUCCESS && count > 0) {
        handles = calloc(count, sizeof(ze_device_t));
        units = realloc(runtime->units, (runtime->unit_count + count) * sizeof(*units));
        runtime->units = units != NULL ? units : runtime->units;
        result = handles != NULL && units != NULL
                     ? runtime->ze.zeDeviceGet(driver->handle, &count, handles)
                     : ZE_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (uint32_t i = 0; result == ZE_SUCCESS && i < count; i++) {
        struct xpu_unit *unit = &runtime->units[runtime->unit_count];

        memset(unit, 0, sizeof(*unit));
        unit->driver = driver;
        unit->handle = handles[i];
        result = describe_unit(runtime, unit);
        runtime->unit_count += result == ZE_SUCCESS && unit->properties.type == ZE_TYPE_GPU;
    }
    free(handles);
    if (result != ZE_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, result, 1,
                                   "zeDeviceGet or zeDeviceGetProperties");
    }
    return 0;
}

/*
 * Marks the tiles. A tile's number is the driver's number of the subdevice, or else its position
 * among the devices at the same PCI address.
 */
static void find_tiles(struct xpu_runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->unit_count; i++) {
        struct xpu_unit *unit = &runtime->units[i];
        uint32_t before = 0;
        uint32_t others = 0;

        for (uint32_t k = 0; k < runtime->unit_count; k++) {
            if (k != i && is_same_address(unit, &runtime->units[k])) {
                others++;
                before += k < i;
            }
        }
        if ((unit->properties.flags & ZE_DEVICE_SUBDEVICE) != 0 || unit->root != NULL) {
            unit->is_tile = 1;
            unit->tile = unit->properties.subdevice_id;
        } else if (others > 0) {
            unit->is_tile = 1;
            unit->tile = before;
        }
    }
}

static void read_extensions(struct xpu_runtime *runtime, struct xpu_driver *driver)
{
    struct ze_extension *extensions;
    uint32_t count = 0;

    if (runtime->ze.zeDriverGetExtensionProperties(driver->handle, &count, NULL) != ZE_SUCCESS ||
        count == 0) {
        return;
    }
    extensions = calloc(count, sizeof(*extensions));
    if (extensions != NULL && runtime->ze.zeDriverGetExtensionProperties(
                                  driver->handle, &count, extensions) == ZE_SUCCESS) {
        for (uint32_t i = 0; i < count; i++) {
            extensions[i].name[sizeof(extensions[i].name) - 1] = '\0';
            driver->has_bfloat16 |=
                strcmp(extensions[i].name, "ZE_extension_bfloat16_conversions") == 0;
        }
    }
    free(extensions);
}

int xpu_units_find(struct xpu_runtime *runtime, struct vendor_problem *problem)
{
    for (uint32_t i = 0; i < runtime->driver_count; i++) {
        struct xpu_driver *driver = &runtime->drivers[i];
        struct ze_driver_properties properties = {.tag = ZE_TAG_DRIVER_PROPERTIES};
        ze_result result = runtime->ze.zeDriverGetApiVersion(driver->handle, &driver->api_version);

        if (result == ZE_SUCCESS) {
            result = runtime->ze.zeDriverGetProperties(driver->handle, &properties);
        }
        if (result != ZE_SUCCESS) {
            return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, result, 1,
                                       "zeDriverGetApiVersion or zeDriverGetProperties");
        }
        driver->version = properties.version;
        if (add_driver(runtime, driver, problem) != 0) {
            return -1;
        }
        read_extensions(runtime, driver);
        xpu_graphs_bind(runtime, driver);
    }
    find_tiles(runtime);
    find_tokens(runtime);
    return 0;
}

int xpu_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem)
{
    (void)problem;
    *count_out = ((const struct xpu_runtime *)runtime)->unit_count;
    return 0;
}

/* ---- identity ------------------------------------------------------------------------------- */

static void write_uuid(const uint8_t *id, char *text, size_t text_size)
{
    snprintf(text, text_size,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1],
             id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13],
             id[14], id[15]);
}

static uint64_t total_memory(const struct xpu_runtime *runtime, ze_device_t device,
                             uint32_t *bus_bits_out)
{
    struct ze_memory_properties memories[XPU_MODULES];
    uint32_t count = XPU_MODULES;
    uint64_t total = 0;

    memset(memories, 0, sizeof(memories));
    for (uint32_t i = 0; i < XPU_MODULES; i++) {
        memories[i].tag = ZE_TAG_MEMORY_PROPERTIES;
    }
    if (runtime->ze.zeDeviceGetMemoryProperties(device, &count, memories) != ZE_SUCCESS) {
        return 0;
    }
    for (uint32_t i = 0; i < count && i < XPU_MODULES; i++) {
        total += memories[i].total_bytes;
        *bus_bits_out = memories[i].max_bus_bits;
    }
    return total;
}

static void identify_parent(const struct xpu_runtime *runtime, const struct xpu_unit *unit,
                            struct ds_accel_device_identity *identity)
{
    struct ze_device_properties root = {.tag = unit->properties.tag};

    identity->partition_kind = DS_ACCEL_PARTITION_TILE;
    identity->partition_instance = unit->tile;
    identity->valid |= DS_ACCEL_IDENTITY_PARTITION;
    if (unit->root != NULL && runtime->ze.zeDeviceGetProperties(unit->root, &root) == ZE_SUCCESS) {
        write_uuid(root.uuid, identity->parent_uuid_text, sizeof(identity->parent_uuid_text));
    }
}

int32_t xpu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error)
{
    const struct xpu_runtime *runtime = xpu_runtime(device);
    const struct xpu_unit *unit = &runtime->units[device->index];
    uint32_t bus_bits = 0;

    (void)error;
    device->native_device = (uint64_t)(uintptr_t)unit->handle;
    identity->vendor_index = unit->number;
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX | DS_ACCEL_IDENTITY_UUID;
    memcpy(identity->uuid, unit->properties.uuid, sizeof(identity->uuid));
    write_uuid(unit->properties.uuid, identity->uuid_text, sizeof(identity->uuid_text));
    snprintf(identity->name, sizeof(identity->name), "%.127s", unit->properties.name);
    if (unit->has_address) {
        snprintf(identity->pci_address, sizeof(identity->pci_address), "%04x:%02x:%02x.%x",
                 unit->address.domain, unit->address.bus, unit->address.device,
                 unit->address.function);
    }
    if (unit->is_tile) {
        identify_parent(runtime, unit, identity);
    }
    identity->total_memory_bytes = total_memory(runtime, unit->handle, &bus_bits);
    return DS_ACCEL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Uses the program's context if there is one, else one context that the driver's open devices
 * share, so that they can access each other's memory. */
static int32_t get_context(ds_accel_plugin_device_t *device, struct xpu_state *state,
                           uint64_t native_context, struct ds_accel_error *error)
{
    const struct ze_context_desc desc = {.tag = ZE_TAG_CONTEXT};
    struct xpu_driver *driver = state->unit->driver;
    ze_result result = ZE_SUCCESS;

    if (native_context != 0) {
        state->context = (ze_context_t)(uintptr_t)native_context;
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&state->runtime->lock);
    if (driver->context_users == 0) {
        result = state->runtime->ze.zeContextCreate(driver->handle, &desc, &driver->context);
    }
    if (result == ZE_SUCCESS) {
        driver->context_users++;
        state->context = driver->context;
        state->owns_context = 1;
    }
    pthread_mutex_unlock(&state->runtime->lock);
    return XPU_CHECK(device, result, error, "zeContextCreate(device %u)", device->index);
}

static void put_context(const struct xpu_state *state)
{
    struct xpu_driver *driver = state->unit->driver;

    if (!state->owns_context) {
        return;
    }
    pthread_mutex_lock(&state->runtime->lock);
    if (--driver->context_users == 0) {
        state->runtime->ze.zeContextDestroy(driver->context);
        driver->context = NULL;
    }
    pthread_mutex_unlock(&state->runtime->lock);
}

/*
 * Finds the first queue group that computes and copies; its number is an ordinal of groups, not an
 * index of queues.
 */
static int32_t find_group(ds_accel_plugin_device_t *device, struct xpu_state *state,
                          struct ds_accel_error *error)
{
    struct ze_group_properties groups[XPU_MODULES];
    uint32_t count = XPU_MODULES;
    ze_result result;

    memset(groups, 0, sizeof(groups));
    for (uint32_t i = 0; i < XPU_MODULES; i++) {
        groups[i].tag = ZE_TAG_GROUP_PROPERTIES;
    }
    result = state->runtime->ze.zeDeviceGetCommandQueueGroupProperties(state->unit->handle, &count,
                                                                       groups);
    if (result != ZE_SUCCESS) {
        return XPU_CHECK(device, result, error, "zeDeviceGetCommandQueueGroupProperties(device %u)",
                         device->index);
    }
    for (uint32_t i = 0; i < count && i < XPU_MODULES; i++) {
        const uint32_t wanted = ZE_GROUP_COMPUTE | ZE_GROUP_COPY;

        if ((groups[i].flags & wanted) == wanted && groups[i].queue_count > 0) {
            state->ordinal = i;
            state->queue_count = groups[i].queue_count;
            state->max_pattern_bytes = groups[i].max_pattern_bytes;
            return DS_ACCEL_OK;
        }
    }
    return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                       "device_open: device %u has no queue that computes and copies",
                       device->index);
}

static void read_clock(struct xpu_state *state)
{
    const struct ze_device_properties *properties = &state->unit->properties;
    const uint32_t bits = properties->kernel_timestamp_bits;
    const double resolution = (double)properties->timer_resolution;

    state->tick_bits = bits == 0 || bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    state->tick_ns = properties->tag == ZE_TAG_DEVICE_PROPERTIES ? resolution
                     : resolution > 0                            ? 1e9 / resolution
                                                                 : 0;
}

static uint64_t largest_cache(const struct xpu_runtime *runtime, ze_device_t device)
{
    struct ze_cache_properties caches[XPU_MODULES];
    uint32_t count = XPU_MODULES;
    uint64_t size = 0;

    memset(caches, 0, sizeof(caches));
    for (uint32_t i = 0; i < XPU_MODULES; i++) {
        caches[i].tag = ZE_TAG_CACHE_PROPERTIES;
    }
    if (runtime->ze.zeDeviceGetCacheProperties(device, &count, caches) != ZE_SUCCESS) {
        return 0;
    }
    for (uint32_t i = 0; i < count && i < XPU_MODULES; i++) {
        size = caches[i].size_bytes > size ? caches[i].size_bytes : size;
    }
    return size;
}

static void fill_info(ds_accel_plugin_device_t *device, struct xpu_state *state)
{
    const struct xpu_runtime *runtime = state->runtime;
    const struct ze_device_properties *properties = &state->unit->properties;
    struct ze_compute_properties compute = {.tag = ZE_TAG_COMPUTE_PROPERTIES};
    struct ds_accel_device_info *info = &device->info;
    uint32_t bus_bits = 0;

    state->total_bytes = total_memory(runtime, state->unit->handle, &bus_bits);
    snprintf(info->name, sizeof(info->name), "%.127s", properties->name);
    info->total_memory_bytes = state->total_bytes;
    info->memory_bus_bits = bus_bits;
    info->compute_unit_count = properties->slices * properties->subslices_per_slice;
    info->warp_size = properties->simd_width;
    info->max_core_clock_khz = properties->core_clock_mhz * 1000;
    info->l2_cache_bytes = largest_cache(runtime, state->unit->handle);
    info->max_allocation_bytes = state->total_bytes;
    if (runtime->ze.zeDeviceGetComputeProperties(state->unit->handle, &compute) == ZE_SUCCESS) {
        info->max_threads_per_block = compute.max_group_size;
    }
    if (!state->unit->driver->has_graphs) {
        info->flags &= ~DS_ACCEL_FLAG_GRAPHS;
    }
}

int32_t xpu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error)
{
    struct xpu_state *state = calloc(1, sizeof(*state));
    int32_t status;

    if (state == NULL) {
        return xpu_no_host_memory(error, "device_open");
    }
    state->runtime = xpu_runtime(device);
    state->unit = &state->runtime->units[device->index];
    state->retired_end = &state->retired;
    state->is_in_order = state->unit->driver->api_version >= ZE_VERSION(1, 7);
    status = get_context(device, state, native_context, error);
    if (status == DS_ACCEL_OK) {
        status = find_group(device, state, error);
        if (status < 0) {
            put_context(state);
        }
    }
    if (status < 0) {
        free(state);
        return status;
    }
    pthread_mutex_init(&state->lock, NULL);
    read_clock(state);
    fill_info(device, state);
    device->state = state;
    device->native_context = (uint64_t)(uintptr_t)state->context;
    return DS_ACCEL_OK;
}

void xpu_device_close(ds_accel_plugin_device_t *device)
{
    struct xpu_state *state = xpu_state(device);

    xpu_streams_reap(state, 1);
    xpu_marks_end(state);
    put_context(state);
    pthread_mutex_destroy(&state->lock);
    free(state);
    device->state = NULL;
    device->native_context = 0;
}

int32_t xpu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);

    return XPU_CHECK(device, state->runtime->ze.zeDeviceGetStatus(state->unit->handle), error,
                     "zeDeviceGetStatus(device %u)", device->index);
}

/* ---- capabilities --------------------------------------------------------------------------- */

int32_t xpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    struct ze_module_properties module = {.tag = ZE_TAG_MODULE_PROPERTIES};
    uint32_t support = DS_ACCEL_DTYPE_STORES;
    ze_result result = state->runtime->ze.zeDeviceGetModuleProperties(state->unit->handle, &module);

    if (result != ZE_SUCCESS) {
        return XPU_CHECK(device, result, error, "zeDeviceGetModuleProperties(device %u)",
                         device->index);
    }
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT16:
        support |= (module.flags & ZE_MODULE_FP16) != 0 ? DS_ACCEL_DTYPE_COMPUTES
                                                        : DS_ACCEL_DTYPE_EMULATED;
        break;
    case DS_ACCEL_DTYPE_FLOAT64:
        support |= (module.flags & ZE_MODULE_FP64) != 0 ? DS_ACCEL_DTYPE_COMPUTES : 0;
        break;
    case DS_ACCEL_DTYPE_BFLOAT16:
        /*
         * No device flag reports matrix engines. The plugin assumes that a device has them if its
         * driver has the extension for conversions from and to bfloat16.
         */
        support |= state->unit->driver->has_bfloat16 ? DS_ACCEL_DTYPE_COMPUTES
                                                     : DS_ACCEL_DTYPE_EMULATED;
        break;
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FN:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2:
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ:
        break;
    default:
        support = dtype >= DS_ACCEL_DTYPE_FLOAT32 && dtype <= DS_ACCEL_DTYPE_BOOL
                      ? support | DS_ACCEL_DTYPE_COMPUTES
                      : 0;
    }
    *support_out = support;
    return DS_ACCEL_OK;
}

int32_t xpu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    const struct xpu_state *other = xpu_state(peer);
    ze_bool can = 0;
    ze_result result;

    if (state->context != other->context) {
        *can_out = 0; /* memory of one context is not accessible in another context */
        return DS_ACCEL_OK;
    }
    result =
        state->runtime->ze.zeDeviceCanAccessPeer(state->unit->handle, other->unit->handle, &can);
    *can_out = can != 0;
    return XPU_CHECK(device, result, error, "zeDeviceCanAccessPeer(device %u, peer %u)",
                     device->index, peer->index);
}

/*
 * Only checks that access is possible: Level Zero has no call that enables it within one context.
 */
int32_t xpu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error)
{
    uint32_t can = 0;
    int32_t status = xpu_peer_can_access(device, peer, &can, error);

    if (status == DS_ACCEL_OK && !can) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "peer_enable: device %u cannot access device %u", device->index,
                           peer->index);
    }
    return status;
}

int32_t xpu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error)
{
    (void)device;
    (void)peer;
    (void)error;
    return DS_ACCEL_OK;
}
