/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A profiler for NVIDIA's own NVTX library: that library loads it by NVTX_INJECTION64_PATH and
 * requests its functions. It prints calls in the simulator's format: "push NAME", "push DOMAIN
 * [CATEGORY]: NAME", "pop". Built only if the toolkit is installed, whose headers define how a
 * profiler attaches.
 */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

#define NAMES 16

struct domain {
    char name[64];
    char categories[NAMES][64];
};

static struct domain domains[NAMES]; /* the first is the default domain */
static int domain_count = 1;

static void *create_domain(const char *name)
{
    struct domain *made = &domains[domain_count++ % NAMES];

    snprintf(made->name, sizeof(made->name), "%s", name);
    return made;
}

static struct domain *domain_of(void *handle)
{
    return handle != NULL ? handle : &domains[0];
}

static void name_category(void *handle, uint32_t category, const char *name)
{
    char *place = domain_of(handle)->categories[category % NAMES];

    snprintf(place, sizeof(domains[0].categories[0]), "%s", name);
}

static int push(const char *message)
{
    printf("push %s\n", message);
    return 0;
}

static int push_in(void *handle, const nvtxEventAttributes_t *attributes)
{
    const struct domain *it = domain_of(handle);
    uint32_t category = attributes->category;

    if (attributes->size != sizeof(*attributes) ||
        attributes->messageType != NVTX_MESSAGE_TYPE_ASCII) {
        printf("attributes of size %u with a message of type %d\n", attributes->size,
               attributes->messageType);
        return -1;
    }
    printf("push %s", it->name);
    if (category != 0) {
        printf("%s[%s]", it->name[0] != '\0' ? " " : "", it->categories[category % NAMES]);
    }
    printf("%s%s\n", it->name[0] != '\0' || category != 0 ? ": " : "", attributes->message.ascii);
    return 0;
}

static int pop(void)
{
    printf("pop\n");
    return 0;
}

static int pop_in(void *handle)
{
    (void)handle;
    return pop();
}

/* NVTX calls this at its start; 1: the profiler is attached. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find)
{
    const NvtxExportTableCallbacks *callbacks = find(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core;
    NvtxFunctionTable core2;
    unsigned int count;

    if (callbacks == NULL ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &count) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &count)) {
        return 0;
    }
    *core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *core[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    *core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *core2[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
    *core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push_in;
    *core2[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop_in;
    return 1;
}
