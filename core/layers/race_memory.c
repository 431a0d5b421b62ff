/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The accesses that the race detector keeps, by address, and the races found among them.
 * layer_race.c defines a race, and explains how long accesses are kept; if there are too many
 * nevertheless, all are forgotten. The layers' lock guards all data.
 */
#include "base/text.h"
#include "host/context.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STRETCH_LIMIT 65536u
#define FINDING_LIMIT 1000u

struct stretch {
    uint64_t space;
    uint64_t begin;
    uint64_t end;
    struct ds_accel__access **accesses;
    uint32_t count;
    uint32_t capacity;
};

struct side {
    const void *site;
    const void *captured_at;
    uint64_t stream;
    uint64_t begin;
    uint64_t size_bytes;
    uint32_t slot;
    const char *call;
    bool is_write;
};

struct finding {
    struct side first;
    struct side second;
    uint64_t begin; /* start of the overlap */
    uint64_t size_bytes;
};

struct ds_accel__race_findings {
    struct ds_accel__race_findings *next;
    struct finding *items;
    size_t count;
    size_t told; /* number of items already logged */
    uint64_t total;
    int fd; /* descriptor of the file of races; -1: none */
};

static struct stretch **stretches; /* sorted by space, then by address; stretches do not overlap */
static size_t stretch_count;
static size_t stretch_capacity;
static struct ds_accel__race_findings *all_findings;

/* ---- findings ------------------------------------------------------------------------------- */

static struct side side_of(const struct ds_accel__access *access)
{
    return (struct side){
        .site = access->site,
        .captured_at = access->captured_at,
        .stream = access->stream,
        .begin = access->begin,
        .size_bytes = access->size_bytes,
        .slot = access->slot,
        .call = access->call,
        .is_write = access->is_write,
    };
}

static bool is_same_pair(const struct finding *finding, const struct ds_accel__access *first,
                         const struct ds_accel__access *second)
{
    return (finding->first.site == first->site && finding->second.site == second->site) ||
           (finding->first.site == second->site && finding->second.site == first->site);
}

/* Record a race as a finding, once for each pair of call sites. After FINDING_LIMIT findings, or if
 * memory is exhausted, races are only counted. */
void ds_accel__race_find(const struct ds_accel__access *first,
                         const struct ds_accel__access *second)
{
    struct ds_accel__race_findings *findings = second->stack->races;
    struct finding *items;
    uint64_t end = first->begin + first->size_bytes;

    if (findings == NULL) {
        return;
    }
    for (size_t i = 0; i < findings->count; i++) {
        if (is_same_pair(&findings->items[i], first, second)) {
            return;
        }
    }
    findings->total++;
    if (findings->count == FINDING_LIMIT) {
        return;
    }
    items = realloc(findings->items, (findings->count + 1) * sizeof(*items));
    if (items == NULL) {
        return; /* out of memory: the race is counted, but not listed */
    }
    findings->items = items;
    items += findings->count++;
    items->first = side_of(first);
    items->second = side_of(second);
    items->begin = first->begin > second->begin ? first->begin : second->begin;
    end = end < second->begin + second->size_bytes ? end : second->begin + second->size_bytes;
    items->size_bytes = end - items->begin;
}

static void describe_side(const struct side *side, struct ds_accel__text *text)
{
    char site[256];
    char stream[32];

    ds_accel__layer_site(side->site, site, sizeof(site));
    snprintf(stream, sizeof(stream), "stream %llu", (unsigned long long)side->stream);
    ds_accel__text_add(text, "%s on %s %ss %llu bytes at 0x%llx, called at %s",
                       side->call != NULL                   ? side->call
                       : side->slot < DS_ACCEL__SLOT_COUNT  ? ds_accel__slots[side->slot].name
                       : side->slot == DS_ACCEL__SLOT_COUNT ? "noted access"
                                                            : "allocation of a freed block",
                       side->stream != 0 ? stream : "the host", side->is_write ? "write" : "read",
                       (unsigned long long)side->size_bytes, (unsigned long long)side->begin, site);
    if (side->captured_at != NULL) {
        ds_accel__layer_site(side->captured_at, site, sizeof(site));
        ds_accel__text_add(text, ", captured at %s", site);
    }
}

static void describe(const struct finding *finding, struct ds_accel__text *text)
{
    ds_accel__text_add(text, "race: ");
    describe_side(&finding->first, text);
    ds_accel__text_add(text, "; ");
    describe_side(&finding->second, text);
    ds_accel__text_add(text,
                       "; %llu bytes at 0x%llx are common to both, and they are not ordered: a "
                       "wait is missing between the two",
                       (unsigned long long)finding->size_bytes, (unsigned long long)finding->begin);
}

static void tell(const struct ds_accel__stack *stack, const struct finding *finding)
{
    static const char no_memory[] = "race: memory is exhausted, so its places are missing\n";
    struct ds_accel__text text = {0};

    describe(finding, &text);
    ds_accel__log(&stack->context->log, "race", DS_ACCEL_LOG_ERROR, "%s",
                  text.failed ? no_memory : text.data);
    if (stack->races->fd >= 0) {
        ds_accel__text_add(&text, "\n");
        ds_accel__race_file_add(stack->races->fd, text.failed ? no_memory : text.data,
                                text.failed ? sizeof(no_memory) - 1 : text.size_bytes);
    }
    ds_accel__text_clear(&text);
}

/* Take the next finding that has not been logged; false: there is none. */
static bool take_untold(struct ds_accel__race_findings *findings, struct finding *finding_out)
{
    bool is_found;

    ds_accel__layer_lock();
    assert(findings->told <= findings->count);
    is_found = findings->told < findings->count;
    if (is_found) {
        *finding_out = findings->items[findings->told++];
    }
    ds_accel__layer_unlock();
    return is_found;
}

/* Only findings of the current call's stack are logged: the call keeps this stack alive, but
 * another thread may be removing other stacks. */
void ds_accel__race_tell(struct ds_accel__stack *stack)
{
    struct finding finding;

    while (stack != NULL && stack->races != NULL && take_untold(stack->races, &finding)) {
        tell(stack, &finding);
    }
}

/* ---- stretches ------------------------------------------------------------------------------ */

bool ds_accel__access_is_before(const struct ds_accel__access *a, const struct ds_accel__access *b)
{
    return a->time <= ds_accel__clock_at(b->clock, a->component);
}

void ds_accel__access_put(struct ds_accel__access *access)
{
    assert(access->references > 0);
    if (--access->references == 0) {
        ds_accel__clock_put(access->clock);
        free(access);
    }
}

static void end_stretch(size_t position)
{
    struct stretch *stretch = stretches[position];

    assert(position < stretch_count);

    for (uint32_t i = 0; i < stretch->count; i++) {
        ds_accel__access_put(stretch->accesses[i]);
    }
    free(stretch->accesses);
    free(stretch);
    stretch_count--;
    memmove(&stretches[position], &stretches[position + 1],
            (stretch_count - position) * sizeof(struct stretch *));
}

/* Return the position of the first stretch that ends after an address. */
static size_t first_stretch(uint64_t space, uint64_t address)
{
    size_t low = 0;
    size_t high = stretch_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stretch *stretch = stretches[middle];

        if (stretch->space < space || (stretch->space == space && stretch->end <= address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct stretch *insert_stretch(size_t position, uint64_t space, uint64_t begin, uint64_t end)
{
    struct stretch *stretch = calloc(1, sizeof(*stretch));

    if (stretch != NULL && stretch_count == stretch_capacity) {
        size_t capacity = stretch_capacity > 0 ? 2 * stretch_capacity : 256;
        struct stretch **larger = realloc(stretches, capacity * sizeof(struct stretch *));

        if (larger == NULL) {
            free(stretch);
            stretch = NULL;
        } else {
            stretches = larger;
            stretch_capacity = capacity;
        }
    }
    if (stretch == NULL) {
        ds_accel__race_is_blind = true;
        return NULL;
    }
    assert(begin < end && position <= stretch_count);
    assert(position == 0 || stretches[position - 1]->space < space ||
           stretches[position - 1]->begin < begin);
    assert(position == stretch_count || stretches[position]->space > space ||
           stretches[position]->begin >= end);
    stretch->space = space;
    stretch->begin = begin;
    stretch->end = end;
    memmove(&stretches[position + 1], &stretches[position],
            (stretch_count - position) * sizeof(struct stretch *));
    stretches[position] = stretch;
    stretch_count++;
    return stretch;
}

static void stretch_add(struct stretch *stretch, struct ds_accel__access *access)
{
    if (stretch->count == stretch->capacity) {
        uint32_t capacity = stretch->capacity > 0 ? 2 * stretch->capacity : 4;
        struct ds_accel__access **larger =
            realloc(stretch->accesses, capacity * sizeof(struct ds_accel__access *));

        if (larger == NULL) {
            ds_accel__race_is_blind = true;
            return;
        }
        stretch->accesses = larger;
        stretch->capacity = capacity;
    }
    assert(access->references > 0);
    access->references++;
    stretch->accesses[stretch->count++] = access;
}

/* Split a stretch at an address; both halves have the same accesses. */
static void split_stretch(size_t position, uint64_t at)
{
    struct stretch *stretch = stretches[position];
    struct stretch *rest = insert_stretch(position + 1, stretch->space, at, stretch->end);

    if (rest != NULL) {
        stretch->end = at;
        for (uint32_t i = 0; i < stretch->count; i++) {
            stretch_add(rest, stretch->accesses[i]);
        }
    }
}

/* Forget accesses that no later access can race with and, if by is not NULL, accesses that the new
 * access by replaces. */
static void prune(struct stretch *stretch, const struct ds_accel__access *by)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < stretch->count; i++) {
        struct ds_accel__access *access = stretch->accesses[i];
        bool is_over =
            (!access->stack->separates_threads &&
             access->time <= ds_accel__clock_at(ds_accel__race_host_clock, access->component)) ||
            (by != NULL && ds_accel__access_is_before(access, by) &&
             (by->is_write || !access->is_write));

        if (is_over) {
            ds_accel__access_put(access);
        } else {
            stretch->accesses[kept++] = access;
        }
    }
    assert(kept <= stretch->count);
    stretch->count = kept;
}

void ds_accel__access_prune(void)
{
    for (size_t i = stretch_count; i > 0; i--) {
        prune(stretches[i - 1], NULL);
        if (stretches[i - 1]->count == 0) {
            end_stretch(i - 1);
        }
    }
}

/* Whether the stream of an access may still use the memory: a stream of a stack other than idle, or
 * a stream that the library has no handle to query. idle: the stack whose known streams no longer
 * use the memory; NULL: no stream uses the memory any more. */
static bool may_go_on(const struct ds_accel__access *access, const struct ds_accel__stack *idle)
{
    return idle != NULL && access->is_on_stream &&
           (access->stack != idle ||
            (access->is_foreign && !ds_accel__race_is_ours(access->component)));
}

static void forget(uint64_t space, uint64_t begin, uint64_t end, const struct ds_accel__stack *idle)
{
    size_t position = first_stretch(space, begin);

    if (position < stretch_count && stretches[position]->space == space &&
        stretches[position]->begin < begin) {
        split_stretch(position, begin);
        position++;
    }
    while (position < stretch_count && stretches[position]->space == space &&
           stretches[position]->begin < end) {
        struct stretch *stretch = stretches[position];
        uint32_t kept = 0;

        if (stretch->end > end) {
            split_stretch(position, end);
        }
        for (uint32_t i = 0; i < stretch->count; i++) {
            if (may_go_on(stretch->accesses[i], idle)) {
                stretch->accesses[kept++] = stretch->accesses[i];
            } else {
                ds_accel__access_put(stretch->accesses[i]);
            }
        }
        stretch->count = kept;
        if (kept == 0) {
            end_stretch(position);
        } else {
            position++;
        }
    }
}

void ds_accel__access_forget(uint64_t space, uint64_t begin, uint64_t end)
{
    forget(space, begin, end, NULL);
}

void ds_accel__access_forget_idle(const struct ds_accel__stack *stack, uint64_t begin, uint64_t end)
{
    forget(0, begin, end, stack);
}

struct ds_accel__stack *ds_accel__access_stack(uint64_t begin, uint64_t end)
{
    for (size_t i = first_stretch(0, begin);
         i < stretch_count && stretches[i]->space == 0 && stretches[i]->begin < end; i++) {
        for (uint32_t j = 0; j < stretches[i]->count; j++) {
            if (stretches[i]->accesses[j]->is_on_stream) {
                return stretches[i]->accesses[j]->stack;
            }
        }
    }
    return NULL;
}

static bool is_resolved(const struct ds_accel__access *a, const struct ds_accel__access *b)
{
    return a->is_on_stream && b->is_on_stream && a->stack == b->stack &&
           (a->stack->flags & DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES) != 0;
}

/* Return an earlier access that the new access races with, or NULL. Every race is recorded as a
 * finding. */
const struct ds_accel__access *ds_accel__access_check(const struct ds_accel__access *by)
{
    const struct ds_accel__access *raced = NULL;
    uint64_t end = by->begin + by->size_bytes;

    for (size_t i = first_stretch(by->space, by->begin);
         i < stretch_count && stretches[i]->space == by->space && stretches[i]->begin < end; i++) {
        for (uint32_t j = 0; j < stretches[i]->count; j++) {
            const struct ds_accel__access *access = stretches[i]->accesses[j];

            if ((access->is_write || by->is_write) && !ds_accel__access_is_before(access, by) &&
                !ds_accel__access_is_before(by, access) && !is_resolved(access, by)) {
                ds_accel__race_find(access, by);
                raced = access;
            }
        }
    }
    return raced;
}

void ds_accel__access_keep(struct ds_accel__access *access)
{
    uint64_t at = access->begin;
    uint64_t end = access->begin + access->size_bytes;
    size_t position = first_stretch(access->space, at);

    if (stretch_count > STRETCH_LIMIT) {
        ds_accel__access_prune();
        if (stretch_count > STRETCH_LIMIT / 2) {
            while (stretch_count > 0) {
                /* forget all stretches, so that memory stays bounded */
                end_stretch(stretch_count - 1);
            }
        }
        position = first_stretch(access->space, at);
    }
    if (position < stretch_count && stretches[position]->space == access->space &&
        stretches[position]->begin < at) {
        split_stretch(position, at);
        position++;
    }
    while (at < end && !ds_accel__race_is_blind) {
        struct stretch *stretch = position < stretch_count ? stretches[position] : NULL;

        if (stretch == NULL || stretch->space != access->space || stretch->begin > at) {
            bool is_near = stretch != NULL && stretch->space == access->space;
            uint64_t until = is_near && stretch->begin < end ? stretch->begin : end;

            stretch = insert_stretch(position, access->space, at, until);
        } else if (stretch->end > end) {
            split_stretch(position, end);
        }
        if (stretch != NULL && !ds_accel__race_is_blind) {
            prune(stretch, access);
            stretch_add(stretch, access);
            at = stretch->end;
            position++;
        }
    }
}

/* Return a copy on the heap; NULL: out of memory, and the detector is blind from now on. */
struct ds_accel__access *ds_accel__access_make(const struct ds_accel__access *pattern)
{
    struct ds_accel__access *access = malloc(sizeof(*access));

    if (access == NULL) {
        ds_accel__race_is_blind = true;
        return NULL;
    }
    *access = *pattern;
    access->references = 1;
    ds_accel__clock_get(access->clock);
    return access;
}

/* ---- findings of a stack -------------------------------------------------------------------- */

/* Remove all accesses of a stack that is being removed. */
static void forget_stack(const struct ds_accel__stack *stack)
{
    for (size_t i = stretch_count; i > 0; i--) {
        struct stretch *stretch = stretches[i - 1];
        uint32_t kept = 0;

        for (uint32_t j = 0; j < stretch->count; j++) {
            if (stretch->accesses[j]->stack == stack) {
                ds_accel__access_put(stretch->accesses[j]);
            } else {
                stretch->accesses[kept++] = stretch->accesses[j];
            }
        }
        stretch->count = kept;
        if (kept == 0) {
            end_stretch(i - 1);
        }
    }
}

int32_t ds_accel__race_findings_open(struct ds_accel__stack *stack)
{
    struct ds_accel__race_findings *findings = calloc(1, sizeof(*findings));

    if (findings == NULL) {
        return ds_accel__no_memory();
    }
    findings->fd = ds_accel__race_file_open(stack->context);
    ds_accel__layer_lock();
    findings->next = all_findings;
    all_findings = findings;
    ds_accel__layer_unlock();
    stack->races = findings;
    return DS_ACCEL_OK;
}

bool ds_accel__race_findings_close(struct ds_accel__stack *stack)
{
    struct ds_accel__race_findings **place = &all_findings;

    while (*place != stack->races) {
        assert(*place != NULL);
        place = &(*place)->next;
    }
    *place = stack->races->next;
    forget_stack(stack);
    if (stack->races->fd >= 0) {
        close(stack->races->fd);
    }
    free(stack->races->items);
    free(stack->races);
    stack->races = NULL;
    if (all_findings == NULL) {
        free(stretches);
        stretches = NULL;
        stretch_capacity = 0;
    }
    return all_findings == NULL;
}

uint64_t ds_accel__race_total(struct ds_accel__stack *stack)
{
    uint64_t total;

    ds_accel__layer_lock();
    total = stack->races->total;
    ds_accel__layer_unlock();
    return total;
}

char *ds_accel__race_text(struct ds_accel__stack *stack)
{
    struct ds_accel__text text = {0};

    ds_accel__text_add(&text, "%s", "");
    for (size_t i = 0;; i++) {
        struct finding finding;
        bool is_there;

        ds_accel__layer_lock();
        is_there = i < stack->races->count;
        if (is_there) {
            finding = stack->races->items[i];
        }
        ds_accel__layer_unlock();
        if (!is_there) {
            return ds_accel__text_take(&text);
        }
        describe(&finding, &text);
        ds_accel__text_add(&text, "\n");
    }
}
