/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: devices and their documented properties. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <string.h>

#define GROUP "device"

/* ---- flags ---------------------------------------------------------------------------------- */

static const struct {
    uint64_t flag;
    const char *name;
    size_t slots[9];
} promises[] = {
    {DS_ACCEL_FLAG_GRAPHS,
     "DS_ACCEL_FLAG_GRAPHS",
     {SLOT(graph_capture_begin), SLOT(graph_capture_end), SLOT(graph_destroy),
      SLOT(graph_instantiate), SLOT(graph_exec_destroy), SLOT(graph_launch)}},
    {DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY,
     "DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY",
     {SLOT(mem_alloc_async), SLOT(mem_free_async)}},
    {DS_ACCEL_FLAG_VIRTUAL_MEMORY,
     "DS_ACCEL_FLAG_VIRTUAL_MEMORY",
     {SLOT(vmem_granularity), SLOT(vmem_reserve), SLOT(vmem_release), SLOT(vmem_create),
      SLOT(vmem_destroy), SLOT(vmem_map), SLOT(vmem_unmap), SLOT(vmem_set_access)}},
    {DS_ACCEL_FLAG_MEMORY_IPC,
     "DS_ACCEL_FLAG_MEMORY_IPC",
     {SLOT(ipc_memory_export), SLOT(ipc_memory_open), SLOT(ipc_memory_close)}},
    {DS_ACCEL_FLAG_EVENT_IPC,
     "DS_ACCEL_FLAG_EVENT_IPC",
     {SLOT(ipc_event_export), SLOT(ipc_event_open)}},
    {DS_ACCEL_FLAG_DMABUF, "DS_ACCEL_FLAG_DMABUF", {SLOT(dmabuf_export)}},
};

static void check_flags(struct ds_accel__run *run)
{
    for (size_t i = 0; i < ARRAY_SIZE(promises); i++) {
        bool is_promised = (run->info.flags & promises[i].flag) != 0;
        bool is_denied = !is_promised && (run->info.flags_known & promises[i].flag) != 0;

        for (size_t k = 0; promises[i].slots[k] != 0; k++) {
            bool is_there = ds_accel__has_slot(run, promises[i].slots[k]);

            EXPECT(run, is_there || !is_promised, "%s is set, but %s is NULL", promises[i].name,
                   ds_accel__slot_name(promises[i].slots[k]));
            EXPECT(run, !is_there || !is_denied, "%s is not set, but %s is not NULL",
                   promises[i].name, ds_accel__slot_name(promises[i].slots[k]));
        }
    }
}

/* Check that of two slots that belong together, such as stream_create and stream_destroy, the
 * plugin has both or neither. */
static void check_pairs(struct ds_accel__run *run)
{
    static const size_t pairs[][2] = {
        {SLOT(stream_create), SLOT(stream_destroy)},
        {SLOT(event_create), SLOT(event_destroy)},
        {SLOT(mem_alloc), SLOT(mem_free)},
        {SLOT(mem_alloc_pinned), SLOT(mem_free_pinned)},
        {SLOT(mem_register), SLOT(mem_unregister)},
        {SLOT(graph_capture_begin), SLOT(graph_capture_end)},
        {SLOT(range_push), SLOT(range_pop)},
        {SLOT(rng_get_state), SLOT(rng_set_state)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        EXPECT(run, ds_accel__has_slot(run, pairs[i][0]) == ds_accel__has_slot(run, pairs[i][1]),
               "only one of %s and %s is not NULL", ds_accel__slot_name(pairs[i][0]),
               ds_accel__slot_name(pairs[i][1]));
    }
}

/* ---- devices -------------------------------------------------------------------------------- */

/* Check that functions that need no open device fail for a device that does not exist. */
static void check_facts_of(struct ds_accel__run *run, uint32_t index)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    uint32_t count = 0;

    if (run->table.device_identity != NULL) {
        WANT_ERROR(run, device_identity, run->instance, index, &identity);
    }
    if (run->table.telemetry_get != NULL) {
        WANT_ERROR(run, telemetry_get, run->instance, index, &telemetry);
    }
    if (run->table.telemetry_processes != NULL) {
        WANT_ERROR(run, telemetry_processes, run->instance, index, NULL,
                   (uint32_t)sizeof(struct ds_accel_process), 0, &count);
    }
    if (run->table.links_get != NULL) {
        WANT_ERROR(run, links_get, run->instance, index, NULL,
                   (uint32_t)sizeof(struct ds_accel_link), 0, &count);
    }
}

/* Check that visible_devices_value fails for a device that does not exist, alone and after an
 * existing device. */
static void check_value_of(struct ds_accel__run *run, uint32_t index)
{
    const uint32_t indices[2] = {0, index};
    char variable[128] = "";
    char value[1024] = "";

    if (run->table.visible_devices_value == NULL || run->table.env_name_get == NULL) {
        return;
    }
    for (uint32_t i = 0;
         i < 100 && CALL(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, i,
                         variable, (uint32_t)sizeof(variable)) == DS_ACCEL_OK;
         i++) {
        WANT_ERROR(run, visible_devices_value, run->instance, variable, indices + 1, 1, value,
                   (uint32_t)sizeof(value), NULL);
        WANT_ERROR(run, visible_devices_value, run->instance, variable, indices, 2, value,
                   (uint32_t)sizeof(value), NULL);
    }
}

/* Check that device_open_native() fails for a device that does not exist. */
static void check_native_open_of(struct ds_accel__run *run, uint32_t index)
{
    ds_accel_plugin_device_t *device = NULL;
    uint64_t context = 0;
    uint64_t offset = 0;

    if (run->table.device_open_native != NULL && run->table.native_get != NULL &&
        CALL(run, native_get, run->device, DS_ACCEL_NATIVE_CONTEXT, run->device, &context,
             &offset) == DS_ACCEL_OK) {
        WANT_ERROR(run, device_open_native, run->instance, index, context, &device);
    }
}

static void check_index(struct ds_accel__run *run)
{
    static const uint32_t past[] = {0, 1, UINT32_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(past); i++) {
        uint32_t index = past[i] == UINT32_MAX ? UINT32_MAX : run->device_count + past[i];
        ds_accel_plugin_device_t *device = NULL;

        WANT_ERROR(run, device_open, run->instance, index, &device);
        check_facts_of(run, index);
        check_value_of(run, index);
        check_native_open_of(run, index);
    }
}

static void check_index_status(struct ds_accel__run *run)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    ds_accel_plugin_device_t *device = NULL;

    WANT(run, DS_ACCEL_ERR_INVALID, device_open, run->instance, run->device_count, &device);
    if (run->table.device_identity != NULL) {
        WANT(run, DS_ACCEL_ERR_INVALID, device_identity, run->instance, run->device_count,
             &identity);
    }
}

#define NODES_LIMIT 4096u /* more NUMA nodes than the kernel supports */

/* Fail if a member of the identity has a value that the ABI does not define or that no device can
 * have. The NUMA node, the UUID and the parent are checked only if identity->valid has their
 * bits. */
static void want_plausible(struct ds_accel__run *run,
                           const struct ds_accel_device_identity *identity)
{
    static const uint8_t no_uuid[sizeof(identity->uuid)];
    const uint32_t known = 2 * DS_ACCEL_IDENTITY_PARTITION - 1;
    const uint32_t index = identity->device_index;
    const bool is_newer = run->theirs->abi_minor > 1;

    EXPECT(run, (identity->valid & ~known) == 0 || is_newer, "valid of device %u is 0x%x", index,
           identity->valid);
    EXPECT(run, identity->partition_kind <= DS_ACCEL_PARTITION_OTHER || is_newer,
           "device %u has the partition_kind %u", index, identity->partition_kind);
    EXPECT(run, identity->power_state <= DS_ACCEL_POWER_OFF || is_newer,
           "device %u has the power_state %u", index, identity->power_state);
    EXPECT(run,
           (identity->valid & DS_ACCEL_IDENTITY_NUMA_NODE) == 0 ||
               identity->numa_node < NODES_LIMIT,
           "device %u is at the NUMA node %u", index, identity->numa_node);
    EXPECT(run,
           (identity->valid & DS_ACCEL_IDENTITY_UUID) == 0 ||
               memcmp(identity->uuid, no_uuid, sizeof(no_uuid)) != 0,
           "device %u has a uuid of zeros", index);
    EXPECT(run,
           (identity->valid & DS_ACCEL_IDENTITY_PARENT_INDEX) == 0 ||
               identity->parent_index != index,
           "device %u is a part of itself", index);
    EXPECT(run, identity->node_path[0] == '\0' || identity->node_path[0] == '/',
           "device %u has the node_path \"%.60s\"", index, identity->node_path);
}

static void want_plausible_version(struct ds_accel__run *run, const char *name,
                                   const uint32_t *version)
{
    EXPECT(run, version[3] == 0, "%s is %u.%u.%u, and its last member is %u", name, version[0],
           version[1], version[2], version[3]);
}

static void check_versions(struct ds_accel__run *run)
{
    want_plausible_version(run, "communication_version", run->info.communication_version);
    want_plausible_version(run, "driver_version", run->info.driver_version);
    want_plausible_version(run, "runtime_version", run->info.runtime_version);
}

static void check_identity(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

        WANT(run, DS_ACCEL_OK, device_identity, run->instance, i, &identity);
        EXPECT(run, identity.device_index == i, "device_identity of %u reports index %u", i,
               identity.device_index);
        EXPECT(run,
               (identity.valid & DS_ACCEL_IDENTITY_PARENT_INDEX) == 0 ||
                   identity.parent_index < run->device_count,
               "device %u has the parent %u of %u", i, identity.parent_index, run->device_count);
        want_plausible(run, &identity);
    }
}

/* ---- relations between devices -------------------------------------------------------------- */

/* True if the text is empty, or an address as the kernel writes it: "0000:65:00.0". */
static bool is_pci_address(const char *text)
{
    size_t domain = strspn(text, "0123456789abcdef");
    const char *rest = text + domain;

    return text[0] == '\0' || (domain >= 4 && domain <= 8 && strlen(rest) == 8 && rest[0] == ':' &&
                               strspn(rest + 1, "0123456789abcdef") == 2 && rest[3] == ':' &&
                               strspn(rest + 4, "0123456789abcdef") == 2 && rest[6] == '.' &&
                               rest[7] >= '0' && rest[7] <= '7');
}

static struct ds_accel_device_identity identify(struct ds_accel__run *run, uint32_t index)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

    WANT(run, DS_ACCEL_OK, device_identity, run->instance, index, &identity);
    identity.pci_address[sizeof(identity.pci_address) - 1] = '\0';
    identity.uuid_text[sizeof(identity.uuid_text) - 1] = '\0';
    return identity;
}

static void compare_identities(struct ds_accel__run *run,
                               const struct ds_accel_device_identity *one,
                               const struct ds_accel_device_identity *other)
{
    const uint32_t both = one->valid & other->valid;
    const bool are_whole = one->partition_kind == DS_ACCEL_PARTITION_NONE &&
                           other->partition_kind == DS_ACCEL_PARTITION_NONE;

    EXPECT(run,
           (both & DS_ACCEL_IDENTITY_UUID) == 0 ||
               memcmp(one->uuid, other->uuid, sizeof(one->uuid)) != 0,
           "devices %u and %u have one uuid", one->device_index, other->device_index);
    EXPECT(run, one->uuid_text[0] == '\0' || strcmp(one->uuid_text, other->uuid_text) != 0,
           "devices %u and %u have one uuid_text, %s", one->device_index, other->device_index,
           one->uuid_text);
    EXPECT(run,
           !are_whole || (both & DS_ACCEL_IDENTITY_VENDOR_INDEX) == 0 ||
               one->vendor_index != other->vendor_index,
           "devices %u and %u, of which neither is a part, have the vendor_index %u",
           one->device_index, other->device_index, one->vendor_index);
}

static void check_apart(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_device_identity one = identify(run, i);

        EXPECT(run, is_pci_address(one.pci_address),
               "device %u has the pci_address \"%s\", which is not like \"0000:65:00.0\"", i,
               one.pci_address);
        for (uint32_t k = 0; k < i; k++) {
            struct ds_accel_device_identity other = identify(run, k);

            compare_identities(run, &one, &other);
        }
    }
}

#define LINKS 64u

static void check_link(struct ds_accel__run *run, uint32_t index, const struct ds_accel_link *link)
{
    const char *address = link->peer_pci_address;
    /* DSA-P25 requires the NUL, so a missing NUL does not fail this check. */
    const bool has_end = memchr(address, '\0', sizeof(link->peer_pci_address)) != NULL;

    EXPECT(run, link->kind <= DS_ACCEL_LINK_OTHER, "a link of device %u has the kind %u", index,
           link->kind);
    EXPECT(run, link->is_up <= 1, "a link of device %u has is_up %u", index, link->is_up);
    EXPECT(run,
           link->peer_index >= -1 && link->peer_index != (int32_t)index &&
               (link->peer_index < 0 || (uint32_t)link->peer_index < run->device_count),
           "a link of device %u goes to device %d of %u", index, link->peer_index,
           run->device_count);
    EXPECT(run, !has_end || is_pci_address(address),
           "a link of device %u has the peer_pci_address \"%s\", which is not like "
           "\"0000:65:00.0\"",
           index, address);
}

static void check_links(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_link links[LINKS] = {{.struct_size = 0}};
        uint32_t count = 0;

        WANT(run, DS_ACCEL_OK, links_get, run->instance, i, links, sizeof(links[0]), LINKS, &count);
        for (uint32_t k = 0; k < count && k < LINKS; k++) {
            check_link(run, i, &links[k]);
        }
    }
}

/* Count the links of one kind from one device to another. */
static uint32_t count_links(struct ds_accel__run *run, uint32_t from, uint32_t to, uint32_t kind)
{
    struct ds_accel_link links[LINKS] = {{.struct_size = 0}};
    uint32_t count = 0;
    uint32_t found = 0;

    WANT(run, DS_ACCEL_OK, links_get, run->instance, from, links, sizeof(links[0]), LINKS, &count);
    for (uint32_t i = 0; i < count && i < LINKS; i++) {
        found += links[i].peer_index == (int32_t)to && links[i].kind == kind;
    }
    return found;
}

/* Check that for each pair of devices, both report the same number of links of each kind to each
 * other. */
static void check_both_ends(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            for (uint32_t kind = 0; kind <= DS_ACCEL_LINK_OTHER; kind++) {
                uint32_t there = count_links(run, i, k, kind);
                uint32_t back = count_links(run, k, i, kind);

                EXPECT(run, there == back,
                       "device %u has %u links of kind %u to device %u, which has %u of them", i,
                       there, kind, k, back);
            }
        }
    }
}

/* Check that all functions that report the device's total memory agree within a factor of 128. A
 * total of 0 means "not reported" and is ignored, as is mem_info's total with a limit. */
static void check_totals(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_telemetry now = {.struct_size = sizeof(now)};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    uint64_t totals[4];
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    if (run->table.device_identity != NULL) {
        WANT(run, DS_ACCEL_OK, device_identity, run->instance, run->device_index, &identity);
    }
    if (run->table.telemetry_get != NULL) {
        WANT(run, DS_ACCEL_OK, telemetry_get, run->instance, run->device_index, &now);
    }
    if (run->table.mem_info != NULL) {
        WANT(run, DS_ACCEL_OK, mem_info, run->device, &memory);
    }
    totals[0] = info.total_memory_bytes;
    totals[1] = identity.total_memory_bytes;
    totals[2] = (now.valid & DS_ACCEL_TELEMETRY_MEMORY) != 0 ? now.memory_total_bytes : 0;
    totals[3] = (memory.valid & DS_ACCEL_MEMORY_TOTAL) != 0 && memory.limit_bytes == 0
                    ? memory.total_bytes
                    : 0;
    for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
        least = totals[i] != 0 && totals[i] < least ? totals[i] : least;
        most = totals[i] > most ? totals[i] : most;
    }
    /* The runtime may reserve part of the memory. A wrong unit changes the value by a factor of
     * 1000 or more. */
    EXPECT(run, most == 0 || most / 128 < least,
           "the device has %llu bytes by one function and %llu by another",
           (unsigned long long)least, (unsigned long long)most);
}

static void check_info(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    uint64_t align;

    WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    align = info.allocation_align_bytes;
    EXPECT(run, info.device_index == run->device_index, "device_info of %u reports index %u",
           run->device_index, info.device_index);
    EXPECT(run, (align & (align - 1)) == 0, "allocation_align_bytes is %llu",
           (unsigned long long)align);
    EXPECT(run, (info.flags & ~run->info.flags) == 0,
           "flags 0x%llx are not a subset of the backend's 0x%llx", (unsigned long long)info.flags,
           (unsigned long long)run->info.flags);
    EXPECT(run, (info.flags & ~info.flags_known) == 0, "flags has bits that flags_known has not");
    EXPECT(run, (run->info.flags & ~run->info.flags_known) == 0,
           "the backend's flags has bits that flags_known has not");
}

static void check_open_again(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *first = ds_accel__run_open(run, run->instance, run->device_index);
    ds_accel_plugin_device_t *second = ds_accel__run_open(run, run->instance, run->device_index);
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    unsigned char bytes[3000];
    void *memory = NULL;

    if (run->table.mem_alloc != NULL && run->table.mem_copy != NULL) {
        memory = ds_accel__take(run, sizeof(bytes));
        ds_accel__pattern(bytes, sizeof(bytes), 27);
        ds_accel__put(run, memory, bytes, sizeof(bytes));
    }
    run->table.device_close(first);
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, second, &info);
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
    run->table.device_close(second);
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
    if (memory != NULL) {
        ds_accel__want_pattern(run, memory, sizeof(bytes), 27,
                               "memory after other handles were closed");
        ds_accel__give(run, memory);
    }
}

static void check_set_current(struct ds_accel__run *run)
{
    uint32_t index = UINT32_MAX;

    WANT(run, DS_ACCEL_OK, device_set_current, run->device);
    WANT(run, DS_ACCEL_OK, device_get_current, run->instance, &index);
    EXPECT(run, index == run->device_index, "device %u was made current, and it is %u",
           run->device_index, index);
}

/* Make a device the current device of the calling thread, which is not the check's thread. */
static int32_t set_in_thread(struct ds_accel__run *run, void *user_data)
{
    return CALL(run, device_set_current, user_data);
}

static void check_current_of_thread(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *other;
    struct ds_accel__caller caller;
    uint32_t index = UINT32_MAX;

    if (run->device_count < 2) {
        ds_accel__skip(run, "there is one device");
        return;
    }
    other = ds_accel__run_open(run, run->instance, (run->device_index + 1) % run->device_count);
    WANT(run, DS_ACCEL_OK, device_set_current, run->device);
    ds_accel__caller_start(run, &caller, set_in_thread, other);
    ds_accel__want(run, DS_ACCEL_OK, "device_set_current", ds_accel__caller_finish(run, &caller));
    WANT(run, DS_ACCEL_OK, device_get_current, run->instance, &index);
    EXPECT(run, index == run->device_index,
           "the thread's current device was %u, and is %u since another thread chose one",
           run->device_index, index);
    run->table.device_close(other);
}

/* Make a stream the current stream of the calling thread, which is not the check's thread. */
static int32_t set_stream_in_thread(struct ds_accel__run *run, void *user_data)
{
    return CALL(run, stream_set_current, user_data);
}

static void check_current_stream(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *streams[2] = {ds_accel__stream(run), ds_accel__stream(run)};
    ds_accel_plugin_stream_t *before = NULL;
    ds_accel_plugin_stream_t *now = NULL;
    struct ds_accel__caller caller;

    WANT(run, DS_ACCEL_OK, stream_get_current, run->device, &before);
    WANT(run, DS_ACCEL_OK, stream_set_current, streams[0]);
    ds_accel__caller_start(run, &caller, set_stream_in_thread, streams[1]);
    ds_accel__want(run, DS_ACCEL_OK, "stream_set_current", ds_accel__caller_finish(run, &caller));
    WANT(run, DS_ACCEL_OK, stream_get_current, run->device, &now);
    EXPECT(run, now == streams[0], "a stream was made current, but another one is current");
    WANT(run, DS_ACCEL_OK, stream_set_current, before);
    run->table.stream_destroy(streams[0]);
    run->table.stream_destroy(streams[1]);
}

/* Check that device_synchronize() waits for the default stream. */
static void check_synchronize_default(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = NULL;
    struct ds_accel__slow slow;

    WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &stream);
    ds_accel__slow_start(run, &slow, stream);
    WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
    EXPECT(run, atomic_load(&slow.is_done),
           "device_synchronize returned before the work of the default stream was done");
}

static void check_synchronize(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *streams[2] = {ds_accel__stream(run), ds_accel__stream(run)};
    struct ds_accel__slow slow[2];

    ds_accel__slow_start(run, &slow[0], streams[0]);
    ds_accel__slow_start(run, &slow[1], streams[1]);
    WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
    EXPECT(run, atomic_load(&slow[0].is_done) && atomic_load(&slow[1].is_done),
           "device_synchronize returned before the work of a stream was done");
    for (int i = 0; i < 2; i++) {
        WANT(run, DS_ACCEL_OK, stream_query, streams[i]);
        run->table.stream_destroy(streams[i]);
    }
}

#define DEVICE DS_ACCEL__STAGE_DEVICE

static const struct ds_accel__check checks[] = {
    {41,
     GROUP,
     "flags and functions",
     DS_ACCEL__STAGE_INSTANCE,
     0,
     check_flags,
     {SLOT(backend_info)}},
    {41, GROUP, "what is made can be destroyed", DS_ACCEL__STAGE_INSTANCE, 0, check_pairs, {0}},
    {42, GROUP, "indices past the last", DS_ACCEL__STAGE_DEVICE, 0, check_index, {0}},
    {42,
     GROUP,
     "the status for an index past the last",
     DS_ACCEL__STAGE_INSTANCE,
     0,
     check_index_status,
     {0}},
    {44, GROUP, "the identity of a device", DEVICE, 0, check_identity, {SLOT(device_identity)}},
    {44,
     GROUP,
     "devices compared with each other",
     DEVICE,
     0,
     check_apart,
     {SLOT(device_identity)}},
    {44, GROUP, "where links go", DEVICE, 0, check_links, {SLOT(links_get)}},
    {44, GROUP, "links have two ends", DEVICE, 0, check_both_ends, {SLOT(links_get)}},
    {44, GROUP, "versions", DEVICE, 0, check_versions, {SLOT(backend_info)}},
    {44,
     GROUP,
     "what a device can do",
     DEVICE,
     0,
     check_info,
     {SLOT(device_info), SLOT(backend_info)}},
    {44, GROUP, "the memory of a device is one size", DEVICE, 0, check_totals, {SLOT(device_info)}},
    {45, GROUP, "a second and a third handle", DEVICE, 0, check_open_again, {0}},
    {38,
     GROUP,
     "the device that was made current is",
     DEVICE,
     0,
     check_set_current,
     {SLOT(device_get_current), SLOT(device_set_current)}},
    {38,
     GROUP,
     "the current device is the thread's",
     DEVICE,
     0,
     check_current_of_thread,
     {SLOT(device_get_current), SLOT(device_set_current)}},
    {38,
     GROUP,
     "the current stream is the thread's",
     DEVICE,
     0,
     check_current_stream,
     {SLOT(stream_get_current), SLOT(stream_set_current), SLOT(stream_create)}},
    {46,
     GROUP,
     "synchronizing waits for the default stream",
     DEVICE,
     0,
     check_synchronize_default,
     {SLOT(device_synchronize), SLOT(stream_get_default), SLOT(stream_host_task)}},
    {46,
     GROUP,
     "synchronizing waits for every stream",
     DEVICE,
     0,
     check_synchronize,
     {SLOT(device_synchronize), SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_query)}},
};

const struct ds_accel__check_list ds_accel__checks_device = {checks, ARRAY_SIZE(checks)};
