/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Start, driver, devices, contexts.
 *
 * Facts of the vendor: "order" (default pci), "hierarchy" (COMPOSITE, FLAT; default COMPOSITE),
 * "api_minor" (17), "has_init_drivers" (1), "has_graphs" (1), "loader_code" (the code of zeInit).
 * Of a device: "type" (1: GPU), "tick_hz", "tick_bits", "tick_start", "max_alloc_bytes", "parts"
 * (tiles), "peer_access" (1).
 */
#include "shim.h"

#include <pthread.h>
#include <stdio.h>

#define DEVICE_MAGIC 0x6465765au
#define CONTEXT_MAGIC 0x6374785au
#define LIMIT 64u

static struct {
    pthread_mutex_t lock;
    bool is_initialized, has_legacy_sysman;
    struct device *cards[LIMIT]; /* cards in the driver's order */
    uint32_t card_count;
    struct device *visible[LIMIT];
    uint32_t visible_count;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

void check_base(const void *descriptor, uint32_t stype, const char *call)
{
    const struct base *base = descriptor;

    if (base->stype != stype) {
        sim_misuse("%s: a descriptor of type 0x%x where 0x%x belongs", call, base->stype, stype);
    }
    if (base->pNext != NULL) {
        sim_misuse("%s: the descriptor of type 0x%x has a pNext", call, stype);
    }
}

struct device *check_device(struct device *device, const char *call)
{
    if (device == NULL || device->magic != DEVICE_MAGIC) {
        sim_misuse("%s: %p is no device", call, (void *)device);
    }
    return device;
}

void check_context(struct context *context, const char *call)
{
    sim_handle_check(context, "context", call);
}

bool device_is_lost(const struct device *device)
{
    return sim_is_lost(device->part->physical) || sim_is_lost(device->card->physical);
}

uint64_t device_memory_bytes(const struct device *device)
{
    return device->part->memory_bytes;
}

uint32_t api_version(void)
{
    return 1u << 16 | (uint32_t)sim_vendor_number("api_minor", 17);
}

bool is_initialized(void)
{
    return driver.is_initialized;
}

bool has_legacy_sysman(void)
{
    return driver.has_legacy_sysman;
}

uint32_t all_cards(struct device ***cards_out)
{
    *cards_out = driver.cards;
    return driver.card_count;
}

/* ---- visible devices ------------------------------------------------------------------------ */

static struct device *make_device(const struct sim_device *card, const struct sim_device *part)
{
    struct device *device = calloc(1, sizeof(*device));

    if (device == NULL) {
        sim_misuse("the simulator itself has no memory for a device");
    }
    device->magic = DEVICE_MAGIC;
    device->card = card;
    device->part = part;
    return device;
}

static struct device *tile_of(struct device *card, uint32_t wanted)
{
    uint32_t seen = 0;
    uint32_t count = sim_device_count("xpu");

    for (uint32_t i = 0; i < count; i++) {
        const struct sim_device *part = sim_device_at(i);

        if (part->parent == (int32_t)card->card->physical && seen++ == wanted) {
            struct device *tile = make_device(card->card, part);

            tile->is_tile = true;
            tile->tile = wanted;
            tile->root = card;
            return tile;
        }
    }
    return NULL;
}

static bool is_flat(void)
{
    const char *hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY");

    if (hierarchy == NULL || hierarchy[0] == '\0') {
        hierarchy = sim_vendor_text("hierarchy", "COMPOSITE");
    }
    return strcmp(hierarchy, "COMPOSITE") != 0;
}

static uint32_t tile_count(const struct device *card)
{
    uint32_t count = sim_device_count("xpu");
    uint32_t tiles = 0;

    for (uint32_t i = 0; i < count; i++) {
        tiles += sim_device_at(i)->parent == (int32_t)card->card->physical;
    }
    return tiles > 0 ? tiles : 1;
}

/*
 * Returns true if the mask contains the number, and stores the tile if the mask contains only one
 * of the card. The order of the mask has no effect. A tile number from limit on is ignored; limit
 * is 0 where tiles are the devices.
 */
static bool is_in_mask(uint32_t number, uint32_t limit, int *tile_out)
{
    const char *mask = getenv("ZE_AFFINITY_MASK");
    bool is_in = false;
    uint32_t tiles = 0;

    *tile_out = -1;
    if (mask == NULL || mask[0] == '\0') {
        return true;
    }
    for (const char *at = mask; at != NULL; at = strchr(at, ',')) {
        unsigned long root, tile = 0;
        const char *begin = at + (*at == ',');
        bool has_tile;
        char *end;

        at = begin;
        root = strtoul(begin, &end, 0);
        has_tile = *end == '.';
        if (has_tile) {
            tile = strtoul(end + 1, NULL, 0);
        }
        if (end == begin || root != number || (has_tile && tile >= limit)) {
            continue;
        }
        is_in = true;
        if (!has_tile) {
            tiles = 2;
        } else if (tiles++ == 0) {
            *tile_out = (int)tile;
        }
    }
    if (tiles != 1) {
        *tile_out = -1;
    }
    return is_in;
}

static void show(struct device *device)
{
    driver.visible[driver.visible_count++] = device;
}

static void find_devices(void)
{
    uint32_t order[LIMIT];
    uint32_t number = 0;

    sim_device_count("xpu");
    driver.card_count = sim_order(NULL, "pci", order, LIMIT);
    for (uint32_t i = 0; i < driver.card_count; i++) {
        struct device *card = make_device(sim_device_at(order[i]), sim_device_at(order[i]));
        struct device *tile = NULL;
        int only = -1;

        driver.cards[i] = card;
        if (is_flat() && card->card->is_partitioned) {
            for (uint32_t t = 0; (tile = tile_of(card, t)) != NULL; t++) {
                if (is_in_mask(number++, 0, &only)) {
                    show(tile);
                }
            }
        } else if (is_in_mask(number++, is_flat() ? 0 : tile_count(card), &only)) {
            tile = only >= 0 ? tile_of(card, (uint32_t)only) : NULL;
            show(tile != NULL ? tile : card);
        }
    }
}

static ze_result_t initialize(void)
{
    const char *variable = getenv("ZES_ENABLE_SYSMAN");
    ze_result_t result;

    pthread_mutex_lock(&driver.lock);
    if (!driver.is_initialized) {
        driver.visible_count = 0;
        find_devices();
        driver.has_legacy_sysman = variable != NULL && strcmp(variable, "1") == 0;
        driver.is_initialized = driver.visible_count > 0;
    }
    result = (ze_result_t)sim_vendor_number(
        "loader_code", driver.is_initialized ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNINITIALIZED);
    pthread_mutex_unlock(&driver.lock);
    return result;
}

/*
 * Begins a call. "Each forked process must call zeInit": a child may start the library again as
 * long as there is no context. It must call zeInit, regardless of its parent.
 */
int64_t enter(const char *call)
{
    int64_t code = sim_enter(call);

    if (sim_handle_count("context") == 0) {
        sim_shut_down();
    }
    return code;
}

static void begin_child(void)
{
    driver.is_initialized = false;
}

__attribute__((constructor)) static void load(void)
{
    sim_failure = ZE_RESULT_ERROR_UNKNOWN;
    pthread_atfork(NULL, NULL, begin_child);
}

/* ---- driver --------------------------------------------------------------------------------- */

SIM_EXPORT ze_result_t zeInit(uint32_t flags);
SIM_EXPORT ze_result_t zeInit(uint32_t flags)
{
    ENTER();
    if (flags > 3) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    return initialize();
}

/* If *count is 0, stores the count; otherwise stores the one handle. */
static ze_result_t give_driver(uint32_t *count, void **drivers)
{
    if (*count == 0) {
        *count = 1;
        return ZE_RESULT_SUCCESS;
    }
    NEED_POINTER(drivers);
    *count = 1;
    drivers[0] = &driver;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t flags;
} ze_init_driver_type_desc_t;
SIM_ASSERT(sizeof(ze_init_driver_type_desc_t) == 24, "by ze_api.h");

SIM_EXPORT ze_result_t zeInitDrivers(uint32_t *count, void **drivers,
                                     ze_init_driver_type_desc_t *desc);
SIM_EXPORT ze_result_t zeInitDrivers(uint32_t *count, void **drivers,
                                     ze_init_driver_type_desc_t *desc)
{
    ze_result_t result;

    ENTER();
    NEED_POINTER(count);
    NEED_POINTER(desc);
    check_base(desc, 0x00020021, __func__);
    /* The loader returns this code if the driver's table has no pfnInitDrivers. */
    if (sim_device_count("xpu") > 0 && sim_vendor_number("has_init_drivers", 1) == 0) {
        return ZE_RESULT_ERROR_UNINITIALIZED;
    }
    if ((desc->flags & 1) == 0) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    result = initialize();
    return result == ZE_RESULT_SUCCESS ? give_driver(count, drivers) : result;
}

SIM_EXPORT ze_result_t zeDriverGet(uint32_t *count, void **drivers);
SIM_EXPORT ze_result_t zeDriverGet(uint32_t *count, void **drivers)
{
    ENTER();
    NEED_POINTER(count);
    return driver.is_initialized ? give_driver(count, drivers) : ZE_RESULT_ERROR_UNINITIALIZED;
}

static void check_driver(const void *handle, const char *call)
{
    if (handle != &driver) {
        sim_misuse("%s: %p is no driver", call, handle);
    }
}

SIM_EXPORT ze_result_t zeDriverGetApiVersion(void *handle, uint32_t *version);
SIM_EXPORT ze_result_t zeDriverGetApiVersion(void *handle, uint32_t *version)
{
    ENTER();
    check_driver(handle, __func__);
    NEED_POINTER(version);
    *version = api_version();
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint8_t uuid[16];
    uint32_t driverVersion;
} ze_driver_properties_t;
SIM_ASSERT(sizeof(ze_driver_properties_t) == 40, "by ze_api.h");

SIM_EXPORT ze_result_t zeDriverGetProperties(void *handle, ze_driver_properties_t *properties);
SIM_EXPORT ze_result_t zeDriverGetProperties(void *handle, ze_driver_properties_t *properties)
{
    ENTER();
    check_driver(handle, __func__);
    check_base(properties, 0x1, __func__);
    properties->driverVersion = 1u << 24 | 6u << 16 | 33578u;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    char name[256];
    uint32_t version;
} ze_driver_extension_properties_t;
SIM_ASSERT(sizeof(ze_driver_extension_properties_t) == 260, "by ze_api.h");

SIM_EXPORT ze_result_t zeDriverGetExtensionProperties(void *handle, uint32_t *count,
                                                      ze_driver_extension_properties_t *list);
SIM_EXPORT ze_result_t zeDriverGetExtensionProperties(void *handle, uint32_t *count,
                                                      ze_driver_extension_properties_t *list)
{
    static const char *const names[] = {"ZE_extension_float_atomics",
                                        "ZE_extension_bfloat16_conversions"};

    ENTER();
    check_driver(handle, __func__);
    NEED_POINTER(count);
    for (uint32_t i = 0; list != NULL && i < *count && i < 2; i++) {
        memset(&list[i], 0, sizeof(list[i]));
        snprintf(list[i].name, sizeof(list[i].name), "%s", names[i]);
        list[i].version = 0x10000;
    }
    *count = *count == 0 || *count > 2 ? 2 : *count;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeDriverGetExtensionFunctionAddress(void *handle, const char *name,
                                                           void **function);
SIM_EXPORT ze_result_t zeDriverGetExtensionFunctionAddress(void *handle, const char *name,
                                                           void **function)
{
    ENTER();
    check_driver(handle, __func__);
    NEED_POINTER(name);
    NEED_POINTER(function);
    /* Like the null driver, returns SUCCESS and no function. */
    *function = sim_vendor_number("has_graphs", 1) != 0 ? graph_function(name) : NULL;
    return ZE_RESULT_SUCCESS;
}

/* ---- devices -------------------------------------------------------------------------------- */

SIM_EXPORT ze_result_t zeDeviceGet(void *handle, uint32_t *count, struct device **devices);
SIM_EXPORT ze_result_t zeDeviceGet(void *handle, uint32_t *count, struct device **devices)
{
    ENTER();
    check_driver(handle, __func__);
    NEED_POINTER(count);
    if (*count != 0) {
        NEED_POINTER(devices);
        for (uint32_t i = 0; i < *count && i < driver.visible_count; i++) {
            devices[i] = driver.visible[i];
        }
    }
    if (*count == 0 || *count > driver.visible_count) {
        *count = driver.visible_count;
    }
    return ZE_RESULT_SUCCESS;
}

/* With the hierarchy FLAT a tile has no root device; with COMBINED it would have one. */
SIM_EXPORT ze_result_t zeDeviceGetRootDevice(struct device *device, struct device **root);
SIM_EXPORT ze_result_t zeDeviceGetRootDevice(struct device *device, struct device **root)
{
    const char *hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY");

    ENTER();
    check_device(device, __func__);
    NEED_POINTER(root);
    *root = hierarchy != NULL && strcmp(hierarchy, "COMBINED") == 0 ? device->root : NULL;
    return ZE_RESULT_SUCCESS;
}

void fill_properties(const struct device *device, ze_device_properties_t *properties)
{
    const struct sim_device *card = device->card;
    const uint64_t hz = (uint64_t)sim_number(card, "tick_hz", 12500000);

    properties->type = (uint32_t)sim_number(card, "type", 1);
    properties->vendorId = 0x8086;
    properties->deviceId = 0x0bd5;
    properties->flags = device->is_subdevice ? 2 : 0;
    properties->subdeviceId = device->is_tile ? device->tile : 0;
    properties->coreClockRate = 1600;
    properties->maxMemAllocSize =
        (uint64_t)sim_number(card, "max_alloc_bytes", (int64_t)device_memory_bytes(device));
    properties->physicalEUSimdWidth = 16;
    properties->numEUsPerSubslice = 8;
    properties->numSubslicesPerSlice = 16;
    properties->numSlices = device->is_tile || !card->is_partitioned ? 4 : 8;
    /* The tag selects one of two units of the clock: ticks per second, or nanoseconds per tick. */
    properties->timerResolution = properties->stype == 0x00020006 ? hz : 1000000000 / hz;
    properties->timestampValidBits = 64;
    properties->kernelTimestampValidBits = (uint32_t)sim_number(card, "tick_bits", 32);
    memcpy(properties->uuid, device->part->uuid, sizeof(properties->uuid));
    snprintf(properties->name, sizeof(properties->name), "%s", device->part->name);
}

SIM_EXPORT ze_result_t zeDeviceGetProperties(struct device *device,
                                             ze_device_properties_t *properties);
SIM_EXPORT ze_result_t zeDeviceGetProperties(struct device *device,
                                             ze_device_properties_t *properties)
{
    ENTER();
    check_device(device, __func__);
    NEED_POINTER(properties);
    if (properties->stype != 0x00020006 || (api_version() & 0xffff) < 2) {
        check_base(properties, 0x3, __func__);
    }
    fill_properties(device, properties);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t maxTotalGroupSize, maxGroupSizeX, maxGroupSizeY, maxGroupSizeZ, maxGroupCountX,
        maxGroupCountY, maxGroupCountZ, maxSharedLocalMemory, numSubGroupSizes, subGroupSizes[8];
} ze_device_compute_properties_t;
SIM_ASSERT(sizeof(ze_device_compute_properties_t) == 88, "by ze_api.h");

SIM_EXPORT ze_result_t zeDeviceGetComputeProperties(struct device *device,
                                                    ze_device_compute_properties_t *properties);
SIM_EXPORT ze_result_t zeDeviceGetComputeProperties(struct device *device,
                                                    ze_device_compute_properties_t *properties)
{
    ENTER();
    check_device(device, __func__);
    check_base(properties, 0x4, __func__);
    properties->maxTotalGroupSize = 1024;
    properties->maxSharedLocalMemory = 131072;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t spirvVersionSupported, flags, fp16flags, fp32flags, fp64flags, maxArgumentsSize,
        printfBufferSize;
    uint8_t nativeKernelSupported[16];
} ze_device_module_properties_t;
SIM_ASSERT(sizeof(ze_device_module_properties_t) == 64, "by ze_api.h");
SIM_ASSERT(offsetof(ze_device_module_properties_t, flags) == 20, "by ze_api.h");

SIM_EXPORT ze_result_t zeDeviceGetModuleProperties(struct device *device,
                                                   ze_device_module_properties_t *properties);
SIM_EXPORT ze_result_t zeDeviceGetModuleProperties(struct device *device,
                                                   ze_device_module_properties_t *properties)
{
    ENTER();
    check_device(device, __func__);
    check_base(properties, 0x5, __func__);
    properties->spirvVersionSupported = 0x10004;
    properties->flags = (uint32_t)sim_number(device->card, "module_flags", 15);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t flags;
    size_t maxMemoryFillPatternSize;
    uint32_t numQueues;
} ze_command_queue_group_properties_t;
SIM_ASSERT(sizeof(ze_command_queue_group_properties_t) == 40, "by ze_api.h");

/*
 * The copy engine's group comes first: a plugin that uses ordinal 0 unchecked gets lists that
 * cannot compute.
 */
SIM_EXPORT ze_result_t zeDeviceGetCommandQueueGroupProperties(
    struct device *device, uint32_t *count, ze_command_queue_group_properties_t *groups);
SIM_EXPORT ze_result_t zeDeviceGetCommandQueueGroupProperties(
    struct device *device, uint32_t *count, ze_command_queue_group_properties_t *groups)
{
    ENTER();
    check_device(device, __func__);
    NEED_POINTER(count);
    for (uint32_t i = 0; groups != NULL && i < *count && i < 2; i++) {
        check_base(&groups[i], 0x6, __func__);
        groups[i].flags = i == 0 ? 2 : 3;
        groups[i].maxMemoryFillPatternSize =
            (size_t)sim_number(device->card, "max_pattern_bytes", i == 0 ? 1 : 128);
        groups[i].numQueues = i == 0 ? 1 : 4;
    }
    *count = *count == 0 || *count > 2 ? 2 : *count;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t flags, maxClockRate, maxBusWidth;
    uint64_t totalSize;
    char name[256];
} ze_device_memory_properties_t;
SIM_ASSERT(sizeof(ze_device_memory_properties_t) == 296, "by ze_api.h");
SIM_ASSERT(offsetof(ze_device_memory_properties_t, totalSize) == 32, "by ze_api.h");

/* A device has two memories, each of half the size. */
SIM_EXPORT ze_result_t zeDeviceGetMemoryProperties(struct device *device, uint32_t *count,
                                                   ze_device_memory_properties_t *memories);
SIM_EXPORT ze_result_t zeDeviceGetMemoryProperties(struct device *device, uint32_t *count,
                                                   ze_device_memory_properties_t *memories)
{
    ENTER();
    check_device(device, __func__);
    NEED_POINTER(count);
    for (uint32_t i = 0; memories != NULL && i < *count && i < 2; i++) {
        check_base(&memories[i], 0x7, __func__);
        memories[i].maxBusWidth = 8192;
        memories[i].totalSize = device_memory_bytes(device) / 2;
    }
    *count = *count == 0 || *count > 2 ? 2 : *count;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t flags;
    size_t cacheSize;
} ze_device_cache_properties_t;
SIM_ASSERT(sizeof(ze_device_cache_properties_t) == 32, "by ze_api.h");

SIM_EXPORT ze_result_t zeDeviceGetCacheProperties(struct device *device, uint32_t *count,
                                                  ze_device_cache_properties_t *caches);
SIM_EXPORT ze_result_t zeDeviceGetCacheProperties(struct device *device, uint32_t *count,
                                                  ze_device_cache_properties_t *caches)
{
    ENTER();
    check_device(device, __func__);
    NEED_POINTER(count);
    if (caches != NULL && *count > 0) {
        check_base(&caches[0], 0x9, __func__);
        caches[0].cacheSize = (size_t)204 << 20;
    }
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    ze_pci_address_t address;
    struct {
        int32_t genVersion, width;
        int64_t maxBandwidth;
    } maxSpeed;
} ze_pci_ext_properties_t;
SIM_ASSERT(sizeof(ze_pci_ext_properties_t) == 48, "by ze_api.h");

void fill_address(const struct device *device, ze_pci_address_t *address)
{
    address->domain = device->card->pci_domain;
    address->bus = device->card->pci_bus;
    address->device = device->card->pci_slot;
    address->function = device->card->pci_function;
}

SIM_EXPORT ze_result_t zeDevicePciGetPropertiesExt(struct device *device,
                                                   ze_pci_ext_properties_t *properties);
SIM_EXPORT ze_result_t zeDevicePciGetPropertiesExt(struct device *device,
                                                   ze_pci_ext_properties_t *properties)
{
    ENTER();
    check_device(device, __func__);
    check_base(properties, 0x10008, __func__);
    fill_address(device, &properties->address);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeDeviceCanAccessPeer(struct device *device, struct device *peer,
                                             ze_bool_t *value);
SIM_EXPORT ze_result_t zeDeviceCanAccessPeer(struct device *device, struct device *peer,
                                             ze_bool_t *value)
{
    ENTER();
    check_device(device, __func__);
    check_device(peer, __func__);
    NEED_POINTER(value);
    *value = sim_number(device->card, "peer_access", 1) != 0 &&
             sim_number(peer->card, "peer_access", 1) != 0;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeDeviceGetStatus(struct device *device);
SIM_EXPORT ze_result_t zeDeviceGetStatus(struct device *device)
{
    ENTER();
    check_device(device, __func__);
    return device_is_lost(device) ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_SUCCESS;
}

/* ---- contexts ------------------------------------------------------------------------------- */

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t flags;
} ze_context_desc_t;
SIM_ASSERT(sizeof(ze_context_desc_t) == 24, "by ze_api.h");

SIM_EXPORT ze_result_t zeContextCreate(void *handle, const ze_context_desc_t *desc,
                                       struct context **context);
SIM_EXPORT ze_result_t zeContextCreate(void *handle, const ze_context_desc_t *desc,
                                       struct context **context)
{
    ENTER();
    check_driver(handle, __func__);
    NEED_POINTER(desc);
    NEED_POINTER(context);
    check_base(desc, 0xd, __func__);
    *context = calloc(1, sizeof(**context));
    if (*context == NULL) {
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    (*context)->magic = CONTEXT_MAGIC;
    sim_handle_add(*context, "context");
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeContextDestroy(struct context *context);
SIM_EXPORT ze_result_t zeContextDestroy(struct context *context)
{
    ENTER_RELEASE();
    NEED_HANDLE(context);
    sim_handle_remove(context, "context", __func__);
    free(context);
    return (ze_result_t)scripted;
}
