/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The race detector: which two accesses to the same bytes does nothing order?
 *
 * Every stream and every thread of the host is a *component* that counts its accesses. A *clock*
 * says, per component, up to which access everything has happened before a point. An access has
 * the time of its own component and the clock of the place where it was made:
 *
 *     a is before b   iff   time(a) <= clock(b)[component(a)]
 *
 * Two accesses that overlap, one of them a write, and of which neither is before the other, are a
 * race, whatever came of it this time: no clock on a wall is asked. Clocks are joined where the
 * interface promises an order:
 *
 *   a thread queues work            the stream's clock takes in the thread's
 *   event_record                    the event keeps the stream's clock
 *   stream_wait_event, waits        the stream takes in the event's
 *   event_synchronize, or a query that says OK          the thread takes in the event's
 *   stream_synchronize, or a query that says OK         the thread takes in the stream's
 *   device_synchronize              the thread takes in those of all streams of the device
 *   DS_ACCEL_FLAG_SYNCHRONIZED      the thread takes in the stream's with every call
 *   DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS  default stream and blocking streams take in each other's
 *   launches of one executable graph    each takes in the clock of the one before
 *
 * A capture has clocks of its own, since calls made while capturing order nothing when the graph
 * runs; its accesses are kept with the graph and made, one after the other, by each launch.
 *
 * Threads of the host order each other in ways that are not seen here, by locks and joins. By
 * default the order in which they call is believed ("joined"): that hides races between threads,
 * and finds every wait that is missing between streams. With validate.threads "separate" only what
 * is seen counts.
 *
 * What is kept is a list of stretches of memory, each with the accesses that a later one could
 * still race with: one that is before a new one, and no stronger, goes; with "joined" threads
 * also one that the host knows to be done, for whatever is queued later comes after it.
 */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>

#define COMPONENT_LIMIT 4096u
#define STRETCH_LIMIT 65536u
#define FINDING_LIMIT 1000u

/* Never changed once it is made, and shared by reference. */
struct ds_accel__clock {
    uint32_t references;
    uint32_t count;
    uint64_t times[];
};
typedef struct ds_accel__clock race_clock_t;

struct component {
    uint64_t time;
    bool is_retired;
};

struct access {
    uint32_t references;
    uint32_t component;
    uint64_t time;
    race_clock_t *clock;
    struct ds_accel__stack *stack;
    uint64_t space;
    uint64_t begin;
    uint64_t size_bytes;
    uint64_t stream; /* number of the object; 0: the host */
    uint32_t slot;   /* SLOT_COUNT: told by the program; SLOT_COUNT + 1: a block given out again */
    bool is_write;
    bool is_on_stream;
    const void *site;
    const void *captured_at; /* of a launch */
};

struct stretch {
    uint64_t space;
    uint64_t begin;
    uint64_t end;
    struct access **accesses;
    uint32_t count;
    uint32_t capacity;
};

/* What a capture recorded: accesses, and records of events, in order. */
struct item {
    struct access *access; /* NULL: a record */
    const void *event;
    uint64_t event_number;
};

struct capture {
    uint32_t references;
    uint64_t id;
    struct item *items;
    size_t count;
    size_t capacity;
};

struct ds_accel__race_object {
    uint32_t component;       /* of a stream */
    race_clock_t *clock;      /* stream, event, executable graph; device: of its ended streams */
    struct capture *capture;  /* stream: that it is in; graph: what it holds */
    race_clock_t *in_capture; /* stream: its clock there; event: as it was recorded there */
    uint64_t recorded_in;     /* event: id of the capture; 0: outside of any */
};

struct side {
    const void *site;
    const void *captured_at;
    uint64_t stream;
    uint64_t begin;
    uint64_t size_bytes;
    uint32_t slot;
    bool is_write;
};

struct finding {
    struct side first;
    struct side second;
    uint64_t begin; /* of the overlap */
    uint64_t size_bytes;
};

struct ds_accel__race_findings {
    struct ds_accel__race_findings *next;
    struct ds_accel__stack *stack;
    struct finding *items;
    size_t count;
    size_t told; /* were logged */
    uint64_t total;
};

struct thread {
    struct thread *next;
    uint32_t component;
    race_clock_t *clock;
};

/* A host task on its way, with the clock of its place in the stream. */
struct task {
    ds_accel_host_task_t run;
    void *user_data;
    struct access place; /* all but the range */
};

/* All of these are guarded by the layers' lock. */
static struct component components[COMPONENT_LIMIT];
static uint32_t component_count;
static struct thread *threads;
static race_clock_t *host_clock;   /* of all threads together */
static struct stretch **stretches; /* by space, then address; they do not overlap */
static size_t stretch_count;
static size_t stretch_capacity;
static struct ds_accel__race_findings *all_findings;
static uint64_t next_capture = 1;
static bool is_blind; /* memory or components ran out: nothing is looked for any more */
static bool is_blind_told;
static uint32_t user_count; /* stacks with this layer */

static pthread_key_t thread_key;
static uint64_t generation = 1; /* of threads: those of an earlier one are freed */
static _Thread_local struct thread *this_thread;
static _Thread_local uint64_t this_generation;
static _Thread_local const struct task *this_task;

/* ---- clocks --------------------------------------------------------------------------------- */

static race_clock_t *clock_get(race_clock_t *clock)
{
    if (clock != NULL) {
        clock->references++;
    }
    return clock;
}

static void clock_put(race_clock_t *clock)
{
    if (clock != NULL && --clock->references == 0) {
        free(clock);
    }
}

static uint64_t clock_at(const race_clock_t *clock, uint32_t component)
{
    return clock != NULL && component < clock->count ? clock->times[component] : 0;
}

static race_clock_t *clock_make(uint32_t count)
{
    race_clock_t *clock = calloc(1, sizeof(*clock) + count * sizeof(clock->times[0]));

    if (clock == NULL) {
        is_blind = true;
        return NULL;
    }
    clock->references = 1;
    clock->count = count;
    return clock;
}

static bool clock_holds(const race_clock_t *clock, const race_clock_t *other)
{
    for (uint32_t i = 0; other != NULL && i < other->count; i++) {
        if (other->times[i] > clock_at(clock, i)) {
            return false;
        }
    }
    return true;
}

/* *clock becomes the later of both in each component. */
static void clock_join(race_clock_t **clock, race_clock_t *other)
{
    race_clock_t *joined;
    uint32_t count;

    if (other == NULL || *clock == other || clock_holds(*clock, other)) {
        return;
    }
    if (*clock == NULL || clock_holds(other, *clock)) {
        joined = clock_get(other);
    } else {
        count = (*clock)->count > other->count ? (*clock)->count : other->count;
        joined = clock_make(count);
        for (uint32_t i = 0; joined != NULL && i < count; i++) {
            uint64_t mine = clock_at(*clock, i);
            uint64_t theirs = clock_at(other, i);

            joined->times[i] = mine > theirs ? mine : theirs;
        }
    }
    if (joined != NULL) {
        clock_put(*clock);
        *clock = joined;
    }
}

/* The next time of a component, in its own clock. */
static uint64_t clock_tick(race_clock_t **clock, uint32_t component)
{
    uint32_t old_count = *clock != NULL ? (*clock)->count : 0;
    uint32_t count = old_count > component ? old_count : component + 1;
    race_clock_t *ticked = clock_make(count);

    if (ticked == NULL) {
        return 0;
    }
    if (*clock != NULL) {
        memcpy(ticked->times, (*clock)->times, old_count * sizeof(ticked->times[0]));
    }
    ticked->times[component] = ++components[component].time;
    clock_put(*clock);
    *clock = ticked;
    return ticked->times[component];
}

/* ---- components ----------------------------------------------------------------------------- */

/*
 * A new component, or a retired one all of whose accesses are before whoever makes the new one: it
 * goes on counting where that one ended, so that who has seen the new one's accesses has seen
 * those too.
 */
static uint32_t take_component(const race_clock_t *maker)
{
    for (uint32_t i = 0; i < component_count; i++) {
        if (components[i].is_retired && components[i].time <= clock_at(maker, i)) {
            components[i].is_retired = false;
            return i;
        }
    }
    if (component_count == COMPONENT_LIMIT) {
        is_blind = true;
        return 0;
    }
    components[component_count] = (struct component){0};
    return component_count++;
}

static void free_thread(struct thread *thread)
{
    clock_put(thread->clock);
    free(thread);
}

/* The calling thread ends. */
static void end_thread(void *data)
{
    struct thread **place = &threads;

    (void)data;
    ds_accel__layer_lock();
    while (this_generation == generation && *place != NULL && *place != this_thread) {
        place = &(*place)->next;
    }
    if (this_generation == generation && *place != NULL) {
        struct thread *thread = *place;

        *place = thread->next;
        components[thread->component].is_retired = true;
        free_thread(thread);
    }
    ds_accel__layer_unlock();
    this_thread = NULL;
}

static void make_key(void)
{
    pthread_key_create(&thread_key, end_thread);
}

/* The calling thread, up to date with the others if they are joined. NULL: blind. */
static struct thread *enter_thread(const struct ds_accel__stack *stack)
{
    struct thread *thread = this_generation == generation ? this_thread : NULL;

    if (is_blind) {
        return NULL;
    }
    if (thread == NULL) {
        thread = calloc(1, sizeof(*thread));
        if (thread == NULL) {
            is_blind = true;
            return NULL;
        }
        thread->clock = clock_get(host_clock); /* it was made by a thread, after all that */
        thread->component = take_component(host_clock);
        thread->next = threads;
        threads = thread;
        this_thread = thread;
        this_generation = generation;
        pthread_setspecific(thread_key, thread);
    }
    if (!stack->separates_threads) {
        clock_join(&thread->clock, host_clock);
    }
    return thread;
}

static void leave_thread(const struct thread *thread)
{
    clock_join(&host_clock, thread->clock);
}

/* ---- findings ------------------------------------------------------------------------------- */

static struct side side_of(const struct access *access)
{
    return (struct side){
        .site = access->site,
        .captured_at = access->captured_at,
        .stream = access->stream,
        .begin = access->begin,
        .size_bytes = access->size_bytes,
        .slot = access->slot,
        .is_write = access->is_write,
    };
}

static bool is_same_pair(const struct finding *finding, const struct access *first,
                         const struct access *second)
{
    return (finding->first.site == first->site && finding->second.site == second->site) ||
           (finding->first.site == second->site && finding->second.site == first->site);
}

/* One for each pair of call sites. */
static void find_race(const struct access *first, const struct access *second)
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
        return; /* it is counted */
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
                       side->slot < DS_ACCEL__SLOT_COUNT    ? ds_accel__slots[side->slot].name
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
                       "; %llu bytes at 0x%llx are common to both, and nothing orders them: a wait "
                       "is missing between the two",
                       (unsigned long long)finding->size_bytes, (unsigned long long)finding->begin);
}

static void log_finding(const ds_accel_t *context, const struct finding *finding)
{
    struct ds_accel__text text = {0};

    describe(finding, &text);
    ds_accel__log(&context->log, "race", DS_ACCEL_LOG_ERROR, "%s",
                  text.failed ? "race: no memory is left to say where" : text.data);
    ds_accel__text_clear(&text);
}

/* The next one that nobody was told of; false: there is none. */
static bool take_untold(struct finding *finding_out, const ds_accel_t **context_out)
{
    bool is_found = false;

    ds_accel__layer_lock();
    for (struct ds_accel__race_findings *set = all_findings; set != NULL; set = set->next) {
        if (set->told < set->count) {
            *finding_out = set->items[set->told++];
            *context_out = set->stack->context;
            is_found = true;
            break;
        }
    }
    ds_accel__layer_unlock();
    return is_found;
}

void ds_accel__race_tell(void)
{
    struct finding finding;
    const ds_accel_t *context;

    while (take_untold(&finding, &context)) {
        log_finding(context, &finding);
    }
}

/* ---- stretches ------------------------------------------------------------------------------ */

static bool is_before(const struct access *a, const struct access *b)
{
    return a->time <= clock_at(b->clock, a->component);
}

static void access_put(struct access *access)
{
    if (--access->references == 0) {
        clock_put(access->clock);
        free(access);
    }
}

static void end_stretch(size_t position)
{
    struct stretch *stretch = stretches[position];

    for (uint32_t i = 0; i < stretch->count; i++) {
        access_put(stretch->accesses[i]);
    }
    free(stretch->accesses);
    free(stretch);
    stretch_count--;
    memmove(&stretches[position], &stretches[position + 1],
            (stretch_count - position) * sizeof(struct stretch *));
}

/* The first one that ends behind an address. */
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
        is_blind = true;
        return NULL;
    }
    stretch->space = space;
    stretch->begin = begin;
    stretch->end = end;
    memmove(&stretches[position + 1], &stretches[position],
            (stretch_count - position) * sizeof(struct stretch *));
    stretches[position] = stretch;
    stretch_count++;
    return stretch;
}

static void stretch_add(struct stretch *stretch, struct access *access)
{
    if (stretch->count == stretch->capacity) {
        uint32_t capacity = stretch->capacity > 0 ? 2 * stretch->capacity : 4;
        struct access **larger = realloc(stretch->accesses, capacity * sizeof(struct access *));

        if (larger == NULL) {
            is_blind = true;
            return;
        }
        stretch->accesses = larger;
        stretch->capacity = capacity;
    }
    access->references++;
    stretch->accesses[stretch->count++] = access;
}

/* Cut the stretch at a position in two; the second half holds what the first does. */
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

/* Forget what no later access can race with. */
static void prune(struct stretch *stretch, const struct access *by)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < stretch->count; i++) {
        struct access *access = stretch->accesses[i];
        bool is_over = (!access->stack->separates_threads &&
                        access->time <= clock_at(host_clock, access->component)) ||
                       (by != NULL && is_before(access, by) && (by->is_write || !access->is_write));

        if (is_over) {
            access_put(access);
        } else {
            stretch->accesses[kept++] = access;
        }
    }
    stretch->count = kept;
}

static void prune_all(void)
{
    for (size_t i = stretch_count; i > 0; i--) {
        prune(stretches[i - 1], NULL);
        if (stretches[i - 1]->count == 0) {
            end_stretch(i - 1);
        }
    }
}

static void forget_range(uint64_t space, uint64_t begin, uint64_t end)
{
    size_t position = first_stretch(space, begin);

    if (position < stretch_count && stretches[position]->space == space &&
        stretches[position]->begin < begin) {
        split_stretch(position, begin);
        position++;
    }
    while (position < stretch_count && stretches[position]->space == space &&
           stretches[position]->begin < end) {
        if (stretches[position]->end > end) {
            split_stretch(position, end);
        }
        end_stretch(position);
    }
}

static bool is_resolved(const struct access *a, const struct access *b)
{
    return a->is_on_stream && b->is_on_stream && a->stack == b->stack &&
           (a->stack->flags & DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES) != 0;
}

/* The access that a new one races with, or NULL. Every race is kept as a finding. */
static const struct access *check_range(const struct access *by)
{
    const struct access *raced = NULL;
    uint64_t end = by->begin + by->size_bytes;

    for (size_t i = first_stretch(by->space, by->begin);
         i < stretch_count && stretches[i]->space == by->space && stretches[i]->begin < end; i++) {
        for (uint32_t j = 0; j < stretches[i]->count; j++) {
            const struct access *access = stretches[i]->accesses[j];

            if ((access->is_write || by->is_write) && !is_before(access, by) &&
                !is_before(by, access) && !is_resolved(access, by)) {
                find_race(access, by);
                raced = access;
            }
        }
    }
    return raced;
}

static void keep_access(struct access *access)
{
    uint64_t at = access->begin;
    uint64_t end = access->begin + access->size_bytes;
    size_t position = first_stretch(access->space, at);

    if (stretch_count > STRETCH_LIMIT) {
        prune_all();
        if (stretch_count > STRETCH_LIMIT / 2) {
            while (stretch_count > 0) {
                end_stretch(stretch_count - 1); /* start anew: memory is bounded */
            }
        }
        position = first_stretch(access->space, at);
    }
    if (position < stretch_count && stretches[position]->space == access->space &&
        stretches[position]->begin < at) {
        split_stretch(position, at);
        position++;
    }
    while (at < end && !is_blind) {
        struct stretch *stretch = position < stretch_count ? stretches[position] : NULL;

        if (stretch == NULL || stretch->space != access->space || stretch->begin > at) {
            bool is_near = stretch != NULL && stretch->space == access->space;
            uint64_t until = is_near && stretch->begin < end ? stretch->begin : end;

            stretch = insert_stretch(position, access->space, at, until);
        } else if (stretch->end > end) {
            split_stretch(position, end);
        }
        if (stretch != NULL && !is_blind) {
            prune(stretch, access);
            stretch_add(stretch, access);
            at = stretch->end;
            position++;
        }
    }
}

/* ---- objects -------------------------------------------------------------------------------- */

static struct ds_accel__race_object *race_of(struct ds_accel__object *object)
{
    if (object != NULL && object->race == NULL) {
        object->race = calloc(1, sizeof(*object->race));
        if (object->race == NULL) {
            is_blind = true;
        } else if (object->kind == DS_ACCEL__STREAM) {
            object->race->component = take_component(host_clock);
        }
    }
    return object != NULL ? object->race : NULL;
}

static struct ds_accel__race_object *find_race_object(uint32_t kind, const void *handle)
{
    return race_of(ds_accel__object_find(kind, handle));
}

static void capture_put(struct capture *capture)
{
    if (capture == NULL || --capture->references > 0) {
        return;
    }
    for (size_t i = 0; i < capture->count; i++) {
        if (capture->items[i].access != NULL) {
            access_put(capture->items[i].access);
        }
    }
    free(capture->items);
    free(capture);
}

void ds_accel__race_object_end(struct ds_accel__object *object)
{
    struct ds_accel__race_object *race = object->race;

    if (race == NULL) {
        return;
    }
    if (object->kind == DS_ACCEL__STREAM) {
        struct ds_accel__race_object *device = find_race_object(DS_ACCEL__DEVICE, object->device);

        if (device != NULL) {
            clock_join(&device->clock, race->clock); /* its work goes on */
        }
        components[race->component].is_retired = true;
    }
    clock_put(race->clock);
    clock_put(race->in_capture);
    capture_put(race->capture);
    free(race);
    object->race = NULL;
}

/* ---- making accesses ------------------------------------------------------------------------ */

struct default_stream {
    const struct ds_accel__object *of;
    race_clock_t **clock;
};

static void join_if_ordered(void *user_data, struct ds_accel__object *object)
{
    struct default_stream *seek = user_data;
    const struct ds_accel__object *of = seek->of;

    if (object->kind == DS_ACCEL__STREAM && object != of && object->race != NULL &&
        object->stack == of->stack && object->device_index == of->device_index &&
        (of->is_default || object->is_default) &&
        ((of->flags | object->flags) & DS_ACCEL_STREAM_NON_BLOCKING) == 0) {
        clock_join(seek->clock, object->race->clock);
    }
}

/* The stream's clock takes in all that comes before what the thread queues now. */
static void reach_stream(const struct ds_accel__object *stream, struct ds_accel__race_object *race,
                         const struct thread *thread)
{
    struct default_stream seek = {stream, &race->clock};

    clock_join(&race->clock, thread->clock);
    if ((ds_accel__device_flags(stream) & DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS) != 0) {
        ds_accel__objects_visit(join_if_ordered, &seek);
    }
}

/* What a thread gets to know by the return of a call that queued something. */
static void return_from(const struct ds_accel__object *stream,
                        const struct ds_accel__race_object *race, struct thread *thread)
{
    if ((ds_accel__device_flags(stream) & DS_ACCEL_FLAG_SYNCHRONIZED) != 0) {
        /* Whatever holds a clock counts: this one is held by the stream. */
        clock_join(&thread->clock, race->clock); // NOLINT(clang-analyzer-unix.Malloc)
    }
    leave_thread(thread);
}

/* A copy on the heap; NULL: blind from now on. */
static struct access *access_make(const struct access *pattern)
{
    struct access *access = malloc(sizeof(*access));

    if (access == NULL) {
        is_blind = true;
        return NULL;
    }
    *access = *pattern;
    access->references = 1;
    clock_get(access->clock);
    return access;
}

static void make_access(const struct access *pattern)
{
    struct access *access = is_blind ? NULL : access_make(pattern);

    if (access != NULL) {
        check_range(access);
        keep_access(access);
        access_put(access);
    }
}

/* Takes the item's access. */
static void capture_item(struct capture *capture, const struct item *item)
{
    if (capture->count == capture->capacity) {
        size_t capacity = capture->capacity > 0 ? 2 * capture->capacity : 16;
        struct item *larger = realloc(capture->items, capacity * sizeof(*larger));

        if (larger == NULL) {
            is_blind = true;
            if (item->access != NULL) {
                access_put(item->access);
            }
            return;
        }
        capture->items = larger;
        capture->capacity = capacity;
    }
    capture->items[capture->count++] = *item;
}

/* Accesses within one graph: only other streams of the capture can race. */
static void capture_access(struct ds_accel__race_object *race, const struct access *pattern)
{
    struct item item = {.access = access_make(pattern)};

    if (item.access == NULL) {
        return;
    }
    for (size_t i = 0; i < race->capture->count; i++) {
        const struct access *other = race->capture->items[i].access;

        if (other != NULL && other->space == pattern->space &&
            other->begin < pattern->begin + pattern->size_bytes &&
            pattern->begin < other->begin + other->size_bytes &&
            (other->is_write || pattern->is_write) && !is_before(other, pattern)) {
            find_race(other, item.access);
        }
    }
    capture_item(race->capture, &item);
}

/* Fill component, time, clock and stream of accesses by a thread of the host. Borrowed clock. */
static bool place_on_host(struct ds_accel__stack *stack, struct access *access)
{
    struct thread *thread;

    if (this_task != NULL) {
        access->component = this_task->place.component;
        access->time = this_task->place.time;
        access->clock = this_task->place.clock;
        access->stream = this_task->place.stream;
        access->is_on_stream = true;
        return true;
    }
    thread = enter_thread(stack);
    if (thread == NULL) {
        return false;
    }
    access->component = thread->component;
    access->time = clock_tick(&thread->clock, thread->component);
    access->clock = thread->clock;
    return !is_blind;
}

/* The same on a stream, outside of captures, or (true in *captured_out) inside of one. */
static bool place_on_stream(struct ds_accel__object *stream, struct thread *thread,
                            struct access *access, bool *captured_out)
{
    struct ds_accel__race_object *race = race_of(stream);

    if (race == NULL || is_blind) {
        return false;
    }
    access->component = race->component;
    access->stream = stream->number;
    access->is_on_stream = true;
    *captured_out = race->capture != NULL;
    if (race->capture != NULL) {
        access->time = clock_tick(&race->in_capture, race->component);
        access->clock = race->in_capture;
    } else {
        reach_stream(stream, race, thread);
        access->time = clock_tick(&race->clock, race->component);
        access->clock = race->clock;
    }
    return !is_blind;
}

#define RANGE_LIMIT 2

/* The ranges that a call touches, and on what. */
struct touch {
    const void *stream; /* NULL: the host */
    struct {
        uint64_t space;
        uint64_t begin;
        uint64_t size_bytes;
        bool is_write;
    } ranges[RANGE_LIMIT];
    uint32_t count;
};

/* Where an address of a device's call lies: host memory is not the device's own. */
static uint64_t resolve_space(const struct ds_accel__object *device, uint64_t address)
{
    if (device == NULL || ds_accel__space_of(device) == 0 ||
        ds_accel__range_find(DS_ACCEL__ALLOCATIONS, 0, address) != NULL) {
        return 0;
    }
    return ds_accel__space_of(device);
}

static void add_touch(struct touch *touch, const struct ds_accel__object *device, uint64_t address,
                      uint64_t size_bytes, bool is_write)
{
    if (size_bytes == 0 || address > UINT64_MAX - size_bytes) {
        return;
    }
    touch->ranges[touch->count].space = resolve_space(device, address);
    touch->ranges[touch->count].begin = address;
    touch->ranges[touch->count].size_bytes = size_bytes;
    touch->ranges[touch->count].is_write = is_write;
    touch->count++;
}

static uint64_t dtype_bytes(uint64_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT64:
    case DS_ACCEL_DTYPE_INT64:
        return 8;
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_INT32:
        return 4;
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_BFLOAT16:
    case DS_ACCEL_DTYPE_INT16:
        return 2;
    default:
        return 1;
    }
}

static const struct ds_accel__object *device_of_stream(const void *handle)
{
    const struct ds_accel__object *stream = ds_accel__object_find(DS_ACCEL__STREAM, handle);

    return stream != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, stream->device) : NULL;
}

static void touch_copy(const struct ds_accel__call *call, const struct ds_accel__object *device,
                       struct touch *touch)
{
    uint64_t kind = call->arguments[4].number;
    uint64_t size_bytes = call->arguments[3].number;
    bool to_host = kind == DS_ACCEL_COPY_HOST_TO_HOST || kind == DS_ACCEL_COPY_DEVICE_TO_HOST;
    bool from_host = kind == DS_ACCEL_COPY_HOST_TO_HOST || kind == DS_ACCEL_COPY_HOST_TO_DEVICE;

    add_touch(touch, to_host ? NULL : device, call->arguments[1].pointer, size_bytes, true);
    add_touch(touch, from_host ? NULL : device, call->arguments[2].pointer, size_bytes, false);
}

/* What a call reads and writes; none for most. */
static void touched_by(const struct ds_accel__call *call, struct touch *touch)
{
    const union ds_accel__argument *arguments = call->arguments;
    const void *first = DS_ACCEL__POINTER(call, 0);

    memset(touch, 0, sizeof(*touch));
    switch (call->slot) {
    case DS_ACCEL__SLOT_mem_copy:
        touch_copy(call, ds_accel__object_find(DS_ACCEL__DEVICE, first), touch);
        break;
    case DS_ACCEL__SLOT_mem_copy_async:
        touch->stream = first;
        touch_copy(call, device_of_stream(first), touch);
        break;
    case DS_ACCEL__SLOT_mem_copy_peer_async:
        touch->stream = first;
        add_touch(touch, ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 1)),
                  arguments[2].pointer, arguments[5].number, true);
        add_touch(touch, ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 3)),
                  arguments[4].pointer, arguments[5].number, false);
        break;
    case DS_ACCEL__SLOT_mem_fill_async:
        touch->stream = first;
        add_touch(touch, device_of_stream(first), arguments[1].pointer, arguments[4].number, true);
        break;
    case DS_ACCEL__SLOT_rng_uniform:
    case DS_ACCEL__SLOT_rng_normal:
        touch->stream = first;
        if (arguments[2].number < UINT64_MAX / 8) {
            add_touch(touch, device_of_stream(first), arguments[1].pointer,
                      arguments[2].number * dtype_bytes(arguments[3].number), true);
        }
        break;
    case DS_ACCEL__SLOT_mem_alloc_async:
        touch->stream = first;
        add_touch(touch, device_of_stream(first), (uintptr_t)ds_accel__layer_output(call, 5),
                  arguments[1].number, true);
        break;
    default:
        break;
    }
}

static void join_waits(const struct ds_accel__call *call, struct ds_accel__race_object *race,
                       uint32_t position)
{
    ds_accel_plugin_event_t *const *waits = DS_ACCEL__POINTER(call, position);
    uint64_t count = call->arguments[position + 1].number;

    for (uint64_t i = 0; waits != NULL && race != NULL && i < count; i++) {
        const struct ds_accel__object *event = ds_accel__object_find(DS_ACCEL__EVENT, waits[i]);

        if (event != NULL && event->race != NULL && event->race->recorded_in == 0) {
            clock_join(&race->clock, event->race->clock);
        }
    }
}

static void touch_memory(const struct ds_accel__call *call)
{
    struct access access = {.stack = call->stack, .slot = call->slot, .site = call->site};
    struct ds_accel__object *stream = NULL;
    struct thread *thread;
    struct touch touch;
    bool is_captured = false;
    bool is_placed;

    touched_by(call, &touch);
    if (touch.count == 0 || (thread = enter_thread(call->stack)) == NULL) {
        return;
    }
    if (touch.stream != NULL) {
        stream = ds_accel__object_find(DS_ACCEL__STREAM, touch.stream);
        if (stream == NULL) {
            return;
        }
        if (call->slot == DS_ACCEL__SLOT_mem_alloc_async) {
            join_waits(call, race_of(stream), 3);
        }
        is_placed = place_on_stream(stream, thread, &access, &is_captured);
    } else {
        is_placed = place_on_host(call->stack, &access);
    }
    for (uint32_t i = 0; i < touch.count && is_placed; i++) {
        access.space = touch.ranges[i].space;
        access.begin = touch.ranges[i].begin;
        access.size_bytes = touch.ranges[i].size_bytes;
        access.is_write = touch.ranges[i].is_write;
        if (is_captured) {
            capture_access(stream->race, &access);
        } else {
            make_access(&access);
        }
    }
    if (stream != NULL && is_placed && !is_captured) {
        return_from(stream, stream->race, thread);
    } else {
        leave_thread(thread);
    }
}

/*
 * With validate.races "fail": would the call race? The clock it would have is joined for the
 * question only; a time that nobody has seen stands for the one it would get.
 */
static bool would_race(const struct ds_accel__call *call)
{
    struct access access = {
        .stack = call->stack, .slot = call->slot, .site = call->site, .time = UINT64_MAX};
    const struct thread *thread;
    struct touch touch;
    bool is_raced = false;

    touched_by(call, &touch);
    if (touch.count == 0 || call->slot == DS_ACCEL__SLOT_mem_alloc_async ||
        (thread = enter_thread(call->stack)) == NULL) {
        return false;
    }
    access.component = thread->component;
    access.clock = clock_get(thread->clock);
    if (touch.stream != NULL) {
        struct ds_accel__object *stream = ds_accel__object_find(DS_ACCEL__STREAM, touch.stream);
        struct ds_accel__race_object *race = race_of(stream);

        if (race == NULL || race->capture != NULL) {
            clock_put(access.clock);
            return false;
        }
        reach_stream(stream, race, thread); /* queueing comes before the work in any case */
        access.component = race->component;
        access.stream = stream->number;
        access.is_on_stream = true;
        clock_join(&access.clock, race->clock);
    }
    for (uint32_t i = 0; i < touch.count; i++) {
        access.space = touch.ranges[i].space;
        access.begin = touch.ranges[i].begin;
        access.size_bytes = touch.ranges[i].size_bytes;
        access.is_write = touch.ranges[i].is_write;
        is_raced = check_range(&access) != NULL || is_raced;
    }
    clock_put(access.clock);
    return is_raced;
}

/* ---- slots ---------------------------------------------------------------------------------- */

struct all_streams {
    const struct ds_accel__object *device;
    race_clock_t **clock;
};

static void join_stream_of(void *user_data, struct ds_accel__object *object)
{
    struct all_streams *seek = user_data;
    bool is_of = object->kind == DS_ACCEL__STREAM || object->kind == DS_ACCEL__DEVICE;

    if (is_of && object->race != NULL && object->stack == seek->device->stack &&
        object->device_index == seek->device->device_index) {
        clock_join(seek->clock, object->race->clock);
    }
}

/* The clock that a call which waits will have waited for: as it is when the call begins. */
static race_clock_t *awaited(const struct ds_accel__call *call)
{
    const void *handle = DS_ACCEL__POINTER(call, 0);
    const struct ds_accel__object *object;
    race_clock_t *clock = NULL;

    switch (call->slot) {
    case DS_ACCEL__SLOT_stream_synchronize:
    case DS_ACCEL__SLOT_stream_query:
        object = ds_accel__object_find(DS_ACCEL__STREAM, handle);
        return object != NULL && object->race != NULL ? clock_get(object->race->clock) : NULL;
    case DS_ACCEL__SLOT_event_synchronize:
    case DS_ACCEL__SLOT_event_query:
        object = ds_accel__object_find(DS_ACCEL__EVENT, handle);
        return object != NULL && object->race != NULL && object->race->recorded_in == 0
                   ? clock_get(object->race->clock)
                   : NULL;
    case DS_ACCEL__SLOT_device_synchronize:
        object = ds_accel__object_find(DS_ACCEL__DEVICE, handle);
        if (object != NULL) {
            struct all_streams seek = {object, &clock};

            ds_accel__objects_visit(join_stream_of, &seek);
        }
        return clock;
    default:
        return NULL;
    }
}

/* Freeing is a write by who frees; nothing is known of the addresses after it. */
static void free_memory(const struct ds_accel__call *call)
{
    struct access access = {.stack = call->stack, .slot = call->slot, .site = call->site};
    uint64_t address = call->arguments[1].pointer;
    const struct ds_accel__object *device =
        call->slot == DS_ACCEL__SLOT_mem_free_async
            ? device_of_stream(DS_ACCEL__POINTER(call, 0))
            : ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 0));
    uint64_t space = resolve_space(device, address);
    const struct ds_accel__range *range =
        ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, address);
    struct thread *thread = enter_thread(call->stack);
    bool is_captured = false;
    bool is_placed;

    if (range == NULL || range->begin != address || thread == NULL) {
        return;
    }
    if (call->slot == DS_ACCEL__SLOT_mem_free_async) {
        struct ds_accel__object *stream =
            ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));

        join_waits(call, race_of(stream), 2);
        is_placed = stream != NULL && place_on_stream(stream, thread, &access, &is_captured);
    } else {
        is_placed = place_on_host(call->stack, &access);
    }
    if (is_placed && !is_captured) {
        access.space = space;
        access.begin = range->begin;
        access.size_bytes = range->size_bytes;
        access.is_write = true;
        check_range(&access);
        forget_range(space, range->begin, range->begin + range->size_bytes);
    }
    leave_thread(thread);
}

static void run_task(void *user_data, int32_t status)
{
    struct task *task = user_data;
    const struct task *outer = this_task;

    this_task = task;
    task->run(task->user_data, status);
    this_task = outer;
    ds_accel__layer_lock();
    clock_put(task->place.clock);
    ds_accel__layer_unlock();
    free(task);
}

/* Not in a capture, where it would run once for each launch, and nobody tells when it ends. */
static void wrap_task(struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    const struct ds_accel__race_object *race = race_of(stream);
    struct thread *thread = enter_thread(call->stack);
    struct task *task;
    bool is_captured = false;

    if (race == NULL || race->capture != NULL || thread == NULL ||
        call->arguments[1].pointer == 0 || (task = calloc(1, sizeof(*task))) == NULL) {
        return;
    }
    task->place.stack = call->stack;
    if (!place_on_stream(stream, thread, &task->place, &is_captured)) {
        free(task);
        return;
    }
    clock_get(task->place.clock);
    leave_thread(thread);
    task->run = (ds_accel_host_task_t)call->arguments[1].pointer;
    task->user_data = DS_ACCEL__POINTER(call, 2);
    call->race.task = task;
    call->arguments[1].pointer = (uintptr_t)run_task;
    call->arguments[2].pointer = (uintptr_t)task;
}

static void record_event(const struct ds_accel__call *call)
{
    struct ds_accel__object *event =
        ds_accel__object_find(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_object *mark = race_of(event);
    struct ds_accel__race_object *race = race_of(stream);
    struct thread *thread = enter_thread(call->stack);

    if (mark == NULL || race == NULL || thread == NULL) {
        return;
    }
    clock_put(mark->clock);
    clock_put(mark->in_capture);
    mark->clock = NULL;
    mark->in_capture = NULL;
    if (race->capture != NULL) {
        struct item item = {.event = event->handle, .event_number = event->number};

        mark->recorded_in = race->capture->id;
        mark->in_capture = clock_get(race->in_capture);
        capture_item(race->capture, &item);
        return;
    }
    reach_stream(stream, race, thread);
    mark->recorded_in = 0;
    mark->clock = clock_get(race->clock);
    return_from(stream, race, thread);
}

static void wait_event(const struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    const struct ds_accel__object *event =
        ds_accel__object_find(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_object *race = race_of(stream);
    const struct ds_accel__race_object *mark = event != NULL ? event->race : NULL;
    struct thread *thread = enter_thread(call->stack);

    if (race == NULL || thread == NULL || mark == NULL) {
        return;
    }
    if (race->capture != NULL) {
        if (mark->recorded_in == race->capture->id) {
            clock_join(&race->in_capture, mark->in_capture);
        }
    } else if (mark->recorded_in == 0) {
        reach_stream(stream, race, thread);
        clock_join(&race->clock, mark->clock);
        return_from(stream, race, thread);
    }
}

static void begin_capture(const struct ds_accel__call *call)
{
    struct ds_accel__race_object *race =
        find_race_object(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    struct capture *capture = race != NULL ? calloc(1, sizeof(*capture)) : NULL;

    if (capture == NULL) {
        is_blind = true;
        return;
    }
    capture->references = 1;
    capture->id = next_capture++;
    capture_put(race->capture);
    clock_put(race->in_capture);
    race->capture = capture;
    race->in_capture = NULL;
}

static void end_capture(const struct ds_accel__call *call)
{
    struct ds_accel__race_object *race =
        find_race_object(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__race_object *graph = NULL;

    if (race == NULL || race->capture == NULL) {
        return;
    }
    if (call->status == DS_ACCEL_OK) {
        graph = find_race_object(DS_ACCEL__GRAPH, ds_accel__layer_output(call, 1));
    }
    if (graph != NULL) {
        capture_put(graph->capture);
        graph->capture = race->capture;
        graph->capture->references++;
    }
    capture_put(race->capture);
    clock_put(race->in_capture);
    race->capture = NULL;
    race->in_capture = NULL;
}

static void take_graph(const void *exec_handle, const void *graph_handle)
{
    struct ds_accel__race_object *exec = find_race_object(DS_ACCEL__EXEC, exec_handle);
    const struct ds_accel__race_object *graph = find_race_object(DS_ACCEL__GRAPH, graph_handle);

    if (exec != NULL && graph != NULL && graph->capture != NULL) {
        graph->capture->references++;
        capture_put(exec->capture);
        exec->capture = graph->capture;
    }
}

static void launch(const struct ds_accel__call *call)
{
    struct ds_accel__race_object *exec =
        find_race_object(DS_ACCEL__EXEC, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_object *race = race_of(stream);
    struct thread *thread = enter_thread(call->stack);
    bool is_captured = false;

    if (exec == NULL || race == NULL || thread == NULL || race->capture != NULL ||
        exec->capture == NULL) {
        return;
    }
    clock_join(&race->clock, exec->clock);
    for (size_t i = 0; i < exec->capture->count && !is_blind; i++) {
        const struct item *item = &exec->capture->items[i];

        if (item->access != NULL) {
            struct access access = *item->access;

            access.site = call->site;
            access.captured_at = item->access->site;
            if (place_on_stream(stream, thread, &access, &is_captured)) {
                make_access(&access);
            }
        } else {
            struct ds_accel__object *event = ds_accel__object_find(DS_ACCEL__EVENT, item->event);

            if (event != NULL && event->number == item->event_number && event->race != NULL) {
                reach_stream(stream, race, thread);
                clock_put(event->race->clock);
                event->race->clock = clock_get(race->clock);
                event->race->recorded_in = 0;
            }
        }
    }
    clock_join(&exec->clock, race->clock);
    return_from(stream, race, thread);
}

static void return_from_wait(struct ds_accel__call *call)
{
    struct thread *thread = enter_thread(call->stack);

    if (thread != NULL) {
        clock_join(&thread->clock, call->race.clock);
        leave_thread(thread);
        if (call->slot == DS_ACCEL__SLOT_device_synchronize) {
            prune_all();
        }
    }
}

static void new_memory(const struct ds_accel__call *call)
{
    static const struct {
        uint32_t slot;
        uint32_t output;
    } slots[] = {
        {DS_ACCEL__SLOT_mem_alloc, 4},
        {DS_ACCEL__SLOT_mem_alloc_pinned, 4},
        {DS_ACCEL__SLOT_mem_alloc_managed, 3},
        {DS_ACCEL__SLOT_mem_alloc_async, 5},
    };

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(slots); i++) {
        if (slots[i].slot == call->slot) {
            uint64_t begin = (uintptr_t)ds_accel__layer_output(call, slots[i].output);
            const struct ds_accel__object *device =
                call->slot == DS_ACCEL__SLOT_mem_alloc_async
                    ? device_of_stream(DS_ACCEL__POINTER(call, 0))
                    : ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 0));
            uint64_t space = resolve_space(device, begin);

            forget_range(space, begin, begin + call->arguments[1].number);
        }
    }
}

/* ---- the layer ------------------------------------------------------------------------------ */

static bool frees(uint32_t slot)
{
    return slot == DS_ACCEL__SLOT_mem_free || slot == DS_ACCEL__SLOT_mem_free_async ||
           slot == DS_ACCEL__SLOT_mem_free_pinned || slot == DS_ACCEL__SLOT_vmem_unmap;
}

static void refuse_race(struct ds_accel__call *call)
{
    char site[256];

    ds_accel__layer_site(call->site, site, sizeof(site));
    ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE,
                           "at %s it would race with earlier work; the log and "
                           "ds_accel_layer_report(\"race\") tell with which",
                           site);
}

static void race_before(struct ds_accel__call *call)
{
    bool is_refused = false;

    ds_accel__layer_lock();
    if (!is_blind) {
        call->race.clock = awaited(call);
        if (call->stack->fails_on_races) {
            is_refused = would_race(call);
        }
        if (frees(call->slot)) {
            free_memory(call);
        } else if (call->slot == DS_ACCEL__SLOT_stream_host_task) {
            wrap_task(call);
        }
    }
    ds_accel__layer_unlock();
    if (is_refused) {
        refuse_race(call);
    }
}

/* A call that the plugin has done. Lock held. */
static void follow(struct ds_accel__call *call)
{
    switch (call->slot) {
    case DS_ACCEL__SLOT_event_record:
        record_event(call);
        break;
    case DS_ACCEL__SLOT_stream_wait_event:
        wait_event(call);
        break;
    case DS_ACCEL__SLOT_graph_capture_begin:
        begin_capture(call);
        break;
    case DS_ACCEL__SLOT_graph_instantiate:
        take_graph(ds_accel__layer_output(call, 2), DS_ACCEL__POINTER(call, 0));
        break;
    case DS_ACCEL__SLOT_graph_exec_update:
        if (call->arguments[2].pointer != 0 &&
            *(const uint32_t *)call->arguments[2].pointer == DS_ACCEL_GRAPH_UPDATED) {
            take_graph(DS_ACCEL__POINTER(call, 0), DS_ACCEL__POINTER(call, 1));
        }
        break;
    case DS_ACCEL__SLOT_graph_launch:
        launch(call);
        break;
    case DS_ACCEL__SLOT_stream_synchronize:
    case DS_ACCEL__SLOT_stream_query:
    case DS_ACCEL__SLOT_event_synchronize:
    case DS_ACCEL__SLOT_event_query:
    case DS_ACCEL__SLOT_device_synchronize:
        return_from_wait(call);
        break;
    default:
        new_memory(call);
        touch_memory(call);
        break;
    }
}

/* A task that the plugin did not take, or that another layer kept from it. */
static void drop_task(struct ds_accel__call *call)
{
    struct task *task = call->race.task;

    if (task != NULL && call->status != DS_ACCEL_OK) {
        clock_put(task->place.clock);
        free(task);
    }
}

static void race_after(struct ds_accel__call *call)
{
    bool warns;

    ds_accel__layer_lock();
    if (call->slot == DS_ACCEL__SLOT_graph_capture_end && !call->is_refused) {
        end_capture(call); /* it ends in any case */
    } else if (call->status == DS_ACCEL_OK && !call->is_refused && !is_blind) {
        follow(call);
    }
    drop_task(call);
    clock_put(call->race.clock);
    warns = is_blind && !is_blind_told;
    is_blind_told = is_blind_told || is_blind;
    ds_accel__layer_unlock();
    ds_accel__race_tell();
    if (warns) {
        ds_accel__log(&call->stack->context->log, "race", DS_ACCEL_LOG_WARN,
                      "no race is looked for any more: memory is exhausted, or more than %u "
                      "streams and threads have unfinished work",
                      COMPONENT_LIMIT);
    }
}

static int32_t race_start(struct ds_accel__stack *stack)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct ds_accel__race_findings *findings = calloc(1, sizeof(*findings));

    if (findings == NULL) {
        return ds_accel__no_memory();
    }
    pthread_once(&once, make_key);
    findings->stack = stack;
    ds_accel__layer_lock();
    findings->next = all_findings;
    all_findings = findings;
    user_count++;
    ds_accel__layer_unlock();
    stack->races = findings;
    return DS_ACCEL_OK;
}

/* No access of a stack outlives it. */
static void forget_stack(const struct ds_accel__stack *stack)
{
    for (size_t i = stretch_count; i > 0; i--) {
        struct stretch *stretch = stretches[i - 1];
        uint32_t kept = 0;

        for (uint32_t j = 0; j < stretch->count; j++) {
            if (stretch->accesses[j]->stack == stack) {
                access_put(stretch->accesses[j]);
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

/* After the last stack nothing of what was counted is asked for again. */
static void forget_all(void)
{
    component_count = 0;
    generation++;
    while (threads != NULL) {
        struct thread *next = threads->next;

        free_thread(threads);
        threads = next;
    }
    clock_put(host_clock);
    host_clock = NULL;
    free(stretches);
    stretches = NULL;
    stretch_capacity = 0;
    is_blind = false;
    is_blind_told = false;
}

static void race_stop(struct ds_accel__stack *stack)
{
    struct ds_accel__race_findings **place = &all_findings;

    ds_accel__race_tell();
    ds_accel__layer_lock();
    while (*place != stack->races) {
        place = &(*place)->next;
    }
    *place = stack->races->next;
    forget_stack(stack);
    if (--user_count == 0) {
        forget_all();
    }
    ds_accel__layer_unlock();
    free(stack->races->items);
    free(stack->races);
    stack->races = NULL;
}

const struct ds_accel__layer_ops ds_accel__layer_race = {
    .name = "race",
    .start = race_start,
    .stop = race_stop,
    .before = race_before,
    .after = race_after,
};

/* ---- from outside --------------------------------------------------------------------------- */

void ds_accel__race_note(const struct ds_accel__object *device, struct ds_accel__object *stream,
                         const void *pointer, uint64_t size_bytes, uint32_t access_kind,
                         const void *site)
{
    struct ds_accel__stack *stack = device->stack;
    struct access access = {
        .stack = stack,
        .slot = DS_ACCEL__SLOT_COUNT,
        .site = site,
        .space = resolve_space(device, (uintptr_t)pointer),
        .begin = (uintptr_t)pointer,
        .size_bytes = size_bytes,
        .is_write = access_kind == DS_ACCEL_ACCESS_WRITE,
    };
    struct thread *thread;
    bool is_captured = false;

    if (stack->races == NULL || is_blind) {
        return;
    }
    if (stream == NULL || this_task != NULL) {
        if (place_on_host(stack, &access)) {
            make_access(&access);
        }
        if (this_task == NULL && this_thread != NULL && this_generation == generation) {
            leave_thread(this_thread);
        }
        return;
    }
    thread = enter_thread(stack);
    if (thread != NULL && place_on_stream(stream, thread, &access, &is_captured)) {
        if (is_captured) {
            capture_access(stream->race, &access);
        } else {
            make_access(&access);
            return_from(stream, stream->race, thread);
        }
    }
}

/*
 * A block that an allocator gives out again must come after all that used it before. It is only
 * looked at: what is kept is those uses, with which the new owner's race if they race with this.
 */
void ds_accel__race_block(const struct ds_accel__object *device, struct ds_accel__object *stream,
                          const void *pointer, uint64_t size_bytes, const void *site)
{
    struct access access = {
        .stack = device->stack,
        .slot = DS_ACCEL__SLOT_COUNT + 1,
        .site = site,
        .space = resolve_space(device, (uintptr_t)pointer),
        .begin = (uintptr_t)pointer,
        .size_bytes = size_bytes,
        .is_write = true,
        .time = UINT64_MAX, /* nobody has seen it */
    };
    struct ds_accel__race_object *race;
    const struct thread *thread;

    if (device->stack->races == NULL || (thread = enter_thread(device->stack)) == NULL) {
        return;
    }
    race = race_of(stream);
    access.component = thread->component;
    access.clock = clock_get(thread->clock);
    if (race != NULL && race->capture == NULL) {
        reach_stream(stream, race, thread);
        access.component = race->component;
        access.stream = stream->number;
        access.is_on_stream = true;
        clock_join(&access.clock, race->clock);
    }
    check_range(&access);
    clock_put(access.clock);
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
