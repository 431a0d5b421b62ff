/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * libnvtx3interop.so.1, simulated with a profiler attached: ranges have a separate depth in each
 * domain. (Without a profiler, the real library returns -2 and does nothing.) The file SIM_RANGES
 * gets a range of the default domain as "push NAME", of another domain as "push DOMAIN: NAME"; a
 * category follows the domain, "push DOMAIN [CATEGORY]: NAME".
 */
#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef union {
    const char *ascii;
    const void *registered;
} nvtxMessageValue_t;
typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union {
        uint64_t ullValue;
        double dValue;
    } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;

SIM_ASSERT(sizeof(nvtxEventAttributes_t) == 48 && offsetof(nvtxEventAttributes_t, category) == 4 &&
               offsetof(nvtxEventAttributes_t, payload) == 24 &&
               offsetof(nvtxEventAttributes_t, messageType) == 32 &&
               offsetof(nvtxEventAttributes_t, message) == 40,
           "nvtxEventAttributes_t, by nvToolsExt.h");

int nvtxRangePushA(const char *message);
int nvtxRangePushEx(const nvtxEventAttributes_t *eventAttrib);
int nvtxRangePop(void);
void nvtxMarkA(const char *message);
uint64_t nvtxRangeStartA(const char *message);
void nvtxRangeEnd(uint64_t id);
nvtxDomainHandle_t nvtxDomainCreateA(const char *name);
void nvtxDomainDestroy(nvtxDomainHandle_t domain);
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *eventAttrib);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);
void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char *name);

/* ---- domains -------------------------------------------------------------------------------- */

#define DOMAINS 16
#define CATEGORIES 16

struct nvtxDomainRegistration_st {
    char name[64]; /* the first is the default domain, whose handle is NULL */
    bool is_live;
    char categories[CATEGORIES][64]; /* names of the categories by number; "": not named */
};

static struct {
    pthread_mutex_t lock; /* guards the names */
    struct nvtxDomainRegistration_st domains[DOMAINS];
} nvtx = {.lock = PTHREAD_MUTEX_INITIALIZER, .domains = {{.is_live = true}}};

static _Thread_local int depths[DOMAINS];

static struct nvtxDomainRegistration_st *domain_of(nvtxDomainHandle_t handle, const char *call)
{
    if (handle == NULL) {
        return &nvtx.domains[0];
    }
    if (handle <= nvtx.domains || handle >= nvtx.domains + DOMAINS || !handle->is_live) {
        sim_misuse("%s: %p is no domain", call, (void *)handle);
    }
    return handle;
}

/*
 * Each call makes a new domain: the manual does not say that the same name returns the same domain.
 */
SIM_EXPORT nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
    nvtxDomainHandle_t made = NULL;

    if (sim_enter(__func__) != 0) {
        return NULL;
    }
    if (name == NULL) {
        sim_misuse("nvtxDomainCreateA: no name");
    }
    pthread_mutex_lock(&nvtx.lock);
    for (int i = 1; i < DOMAINS && made == NULL; i++) {
        made = nvtx.domains[i].is_live ? NULL : &nvtx.domains[i];
    }
    if (made != NULL) {
        memset(made, 0, sizeof(*made));
        made->is_live = true;
        snprintf(made->name, sizeof(made->name), "%s", name);
    }
    pthread_mutex_unlock(&nvtx.lock);
    return made;
}

SIM_EXPORT void nvtxDomainDestroy(nvtxDomainHandle_t domain)
{
    if (sim_enter(__func__) == 0 && domain != NULL) {
        domain_of(domain, __func__)->is_live = false;
    }
}

SIM_EXPORT void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category,
                                        const char *name)
{
    struct nvtxDomainRegistration_st *it = domain_of(domain, __func__);

    if (sim_enter(__func__) != 0) {
        return;
    }
    if (category == 0 || category >= CATEGORIES || name == NULL) {
        sim_misuse("nvtxDomainNameCategoryA: category %u, name %p", category, (const void *)name);
    }
    pthread_mutex_lock(&nvtx.lock);
    snprintf(it->categories[category], sizeof(it->categories[category]), "%s", name);
    pthread_mutex_unlock(&nvtx.lock);
}

/* ---- ranges --------------------------------------------------------------------------------- */

static int push(const struct nvtxDomainRegistration_st *it, uint32_t category, const char *message)
{
    char text[400];
    char group[80] = "";

    if (message == NULL) {
        sim_misuse("a range of NVTX without a message");
    }
    if (category >= CATEGORIES) {
        sim_misuse("category %u was never named", category);
    }
    if (category != 0) {
        snprintf(group, sizeof(group), "%s[%.60s]", it->name[0] != '\0' ? " " : "",
                 it->categories[category]);
    }
    snprintf(text, sizeof(text), "%s%s%s%.200s", it->name, group,
             it->name[0] != '\0' || category != 0 ? ": " : "", message);
    sim_range_push(text);
    return depths[it - nvtx.domains]++;
}

/* Returns the depth afterwards, as the manual says; negative if the domain has no open range. */
static int pop(const struct nvtxDomainRegistration_st *it)
{
    int *depth = &depths[it - nvtx.domains];

    if (*depth == 0) {
        return -1;
    }
    sim_range_pop();
    return --*depth;
}

SIM_EXPORT int nvtxRangePushA(const char *message)
{
    return sim_enter(__func__) != 0 ? -1 : push(&nvtx.domains[0], 0, message);
}

/* Accepts text (type 1) in version 2 or 3 of the struct, which have the same members. */
SIM_EXPORT int nvtxDomainRangePushEx(nvtxDomainHandle_t domain,
                                     const nvtxEventAttributes_t *eventAttrib)
{
    const struct nvtxDomainRegistration_st *it = domain_of(domain, __func__);

    if (sim_enter(__func__) != 0) {
        return -1;
    }
    if (eventAttrib == NULL || eventAttrib->version < 2 || eventAttrib->version > 3 ||
        eventAttrib->size != sizeof(*eventAttrib) || eventAttrib->messageType != 1 ||
        eventAttrib->colorType != 0 || eventAttrib->payloadType != 0) {
        sim_misuse("nvtxDomainRangePushEx: attributes of another version, size or kind");
    }
    return push(it, eventAttrib->category, eventAttrib->message.ascii);
}

SIM_EXPORT int nvtxRangePushEx(const nvtxEventAttributes_t *eventAttrib)
{
    return nvtxDomainRangePushEx(NULL, eventAttrib);
}

SIM_EXPORT int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
    const struct nvtxDomainRegistration_st *it = domain_of(domain, __func__);

    return sim_enter(__func__) != 0 ? -1 : pop(it);
}

SIM_EXPORT int nvtxRangePop(void)
{
    return sim_enter(__func__) != 0 ? -1 : pop(&nvtx.domains[0]);
}

SIM_EXPORT void nvtxMarkA(const char *message)
{
    (void)message;
    sim_enter(__func__);
}

SIM_EXPORT uint64_t nvtxRangeStartA(const char *message)
{
    static _Atomic uint64_t last;

    (void)message;
    return sim_enter(__func__) != 0 ? 0 : atomic_fetch_add(&last, 1) + 1;
}

SIM_EXPORT void nvtxRangeEnd(uint64_t id)
{
    (void)id;
    sim_enter(__func__);
}
