/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated Metal: the default device, queues, command buffers, blits, shared buffers and shared
 * events. Each method is a function with its own type: an argument of another type or in another
 * position has a wrong value, and is misuse. The simulator enforces macOS's rules: offsets and
 * sizes of blits are multiples of four, wrapped memory is whole pages, an encoder is ended before
 * its buffer is committed, a buffer is committed once.
 *
 * Fact of the device: "max_buffer_bytes".
 */
#include "clock.h"
#include "object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long NSUInteger;
typedef struct {
    NSUInteger location;
    NSUInteger length;
} NSRange;

SIM_ASSERT(sizeof(NSUInteger) == 8 && sizeof(NSRange) == 16, "words of a 64-bit machine");

enum {
    STATUS_NOT_ENQUEUED = 0,
    STATUS_COMMITTED = 2,
    STATUS_COMPLETED = 4,
    STATUS_ERROR = 5
};
#define ERROR_INTERNAL 1
#define ERROR_DEVICE_REMOVED 11

SIM_EXPORT void *MTLCreateSystemDefaultDevice(void);

#define IMP(function) ((sim_imp)(function))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards states and values */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

__attribute__((constructor)) static void name_failure(void)
{
    sim_failure = ERROR_INTERNAL;
}

/* Waits until the next change, or for a short time, because the loss of a device signals no
 * change. */
static void wait_a_moment(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&changed, &lock, &until);
}

/* ---- texts and errors ----------------------------------------------------------------------- */

struct string {
    struct sim_object object;
    const char *text;
};

static const char *string_utf8(struct string *self, const char *selector)
{
    (void)selector;
    return self->text;
}

static const struct sim_class string_class = {
    "NSString", (const struct sim_method[]){{"UTF8String", IMP(string_utf8)}, {NULL, NULL}}, NULL};

struct error {
    struct sim_object object;
    long code;
};

static long error_code(struct error *self, const char *selector)
{
    (void)selector;
    return self->code;
}

static const struct sim_class error_class = {
    "NSError", (const struct sim_method[]){{"code", IMP(error_code)}, {NULL, NULL}}, NULL};

/* ---- shared events -------------------------------------------------------------------------- */

struct event {
    struct sim_object object;
    uint64_t value;
};

static uint64_t event_value(struct event *self, const char *selector)
{
    uint64_t value;

    (void)selector;
    pthread_mutex_lock(&lock);
    value = self->value;
    pthread_mutex_unlock(&lock);
    return value;
}

static void event_set_value(struct event *self, const char *selector, uint64_t value)
{
    (void)selector;
    pthread_mutex_lock(&lock);
    if (value <= self->value) {
        sim_misuse("MTLSharedEvent: the value %llu is set after %llu", (unsigned long long)value,
                   (unsigned long long)self->value);
    }
    self->value = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static const struct sim_class event_class = {
    "MTLSharedEvent",
    (const struct sim_method[]){{"signaledValue", IMP(event_value)},
                                {"setSignaledValue:", IMP(event_set_value)},
                                {NULL, NULL}},
    NULL};

/* ---- buffers -------------------------------------------------------------------------------- */

struct buffer {
    struct sim_object object;
    unsigned char *contents;
    NSUInteger length;
    bool is_wrapped;
};

static void *buffer_contents(struct buffer *self, const char *selector)
{
    (void)selector;
    return self->contents;
}

static atomic_ullong allocated_bytes;

static void buffer_dealloc(void *object)
{
    struct buffer *self = object;

    if (!self->is_wrapped) {
        atomic_fetch_sub(&allocated_bytes, self->length);
        sim_free(self->contents, SIM_MANAGED, "MTLBuffer dealloc");
    }
}

static const struct sim_class buffer_class = {
    "MTLBuffer", (const struct sim_method[]){{"contents", IMP(buffer_contents)}, {NULL, NULL}},
    buffer_dealloc};

/* ---- command buffers ------------------------------------------------------------------------ */

struct queue {
    struct sim_object object;
    struct sim_stream *stream;
};

struct step {
    struct step *next;
    enum {
        COPY,
        FILL,
        SIGNAL,
        WAIT
    } kind;
    struct buffer *source;
    struct buffer *destination;
    NSUInteger source_offset;
    NSUInteger destination_offset;
    NSUInteger size;
    uint8_t value;
    struct event *event;
    uint64_t event_value;
};

struct commands {
    struct sim_object object;
    struct queue *queue;
    struct step *first;
    struct step **end;
    NSUInteger status;
    long code;
    bool is_encoding;
    double end_time;
};

static struct step *add_step(struct commands *self)
{
    struct step *step = calloc(1, sizeof(*step));

    if (step == NULL) {
        sim_misuse("the simulator itself has no memory");
    }
    if (self->status != STATUS_NOT_ENQUEUED) {
        sim_misuse("MTLCommandBuffer: work is encoded after commit");
    }
    *self->end = step;
    self->end = &step->next;
    return step;
}

static void commands_dealloc(void *object)
{
    struct commands *self = object;

    while (self->first != NULL) {
        struct step *step = self->first;

        self->first = step->next;
        objc_release(step->source);
        objc_release(step->destination);
        objc_release(step->event);
        free(step);
    }
    objc_release(self->queue);
}

/* -- blits -- */

struct blit {
    struct sim_object object;
    struct commands *commands;
};

static void check_range(struct buffer *buffer, NSUInteger offset, NSUInteger size, const char *call)
{
    sim_handle_check(buffer, "object", call);
    if (buffer->object.isa != &buffer_class) {
        sim_misuse("%s: not a buffer", call);
    }
    if (offset % 4 != 0 || size % 4 != 0 || size == 0) {
        sim_misuse("%s: offset %lu and size %lu are not multiples of 4", call, offset, size);
    }
    if (offset > buffer->length || size > buffer->length - offset) {
        sim_misuse("%s: %lu bytes at %lu of a buffer of %lu", call, size, offset, buffer->length);
    }
}

static void blit_copy(struct blit *self, const char *selector, struct buffer *source,
                      NSUInteger source_offset, struct buffer *destination,
                      NSUInteger destination_offset, NSUInteger size)
{
    struct step *step = add_step(self->commands);

    check_range(source, source_offset, size, selector);
    check_range(destination, destination_offset, size, selector);
    step->kind = COPY;
    step->source = objc_retain(source);
    step->destination = objc_retain(destination);
    step->source_offset = source_offset;
    step->destination_offset = destination_offset;
    step->size = size;
}

static void blit_fill(struct blit *self, const char *selector, struct buffer *buffer, NSRange range,
                      uint8_t value)
{
    struct step *step = add_step(self->commands);

    check_range(buffer, range.location, range.length, selector);
    step->kind = FILL;
    step->destination = objc_retain(buffer);
    step->destination_offset = range.location;
    step->size = range.length;
    step->value = value;
}

static void blit_end(struct blit *self, const char *selector)
{
    if (!self->commands->is_encoding) {
        sim_misuse("%s: ended already", selector);
    }
    self->commands->is_encoding = false;
}

static void blit_dealloc(void *object)
{
    objc_release(((struct blit *)object)->commands);
}

static const struct sim_class blit_class = {
    "MTLBlitCommandEncoder",
    (const struct sim_method[]){
        {"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", IMP(blit_copy)},
        {"fillBuffer:range:value:", IMP(blit_fill)},
        {"endEncoding", IMP(blit_end)},
        {NULL, NULL}},
    blit_dealloc};

static void *commands_blit(struct commands *self, const char *selector)
{
    struct blit *blit = sim_object_new(&blit_class, sizeof(*blit));

    if (self->is_encoding) {
        sim_misuse("%s: an encoder is open", selector);
    }
    self->is_encoding = true;
    blit->commands = objc_retain(self);
    return sim_object_autorelease(blit);
}

/* -- events in command buffers -- */

static void add_event(struct commands *self, struct event *event, uint64_t value, bool is_wait,
                      const char *call)
{
    struct step *step;

    sim_handle_check(event, "object", call);
    if (event->object.isa != &event_class || self->is_encoding) {
        sim_misuse("%s: not a shared event, or an encoder is open", call);
    }
    step = add_step(self);
    step->kind = is_wait ? WAIT : SIGNAL;
    step->event = objc_retain(event);
    step->event_value = value;
}

static void commands_signal(struct commands *self, const char *selector, struct event *event,
                            uint64_t value)
{
    add_event(self, event, value, false, selector);
}

static void commands_wait(struct commands *self, const char *selector, struct event *event,
                          uint64_t value)
{
    add_event(self, event, value, true, selector);
}

static void run_signal(void *argument)
{
    struct step *step = argument;

    event_set_value(step->event, "encodeSignalEvent:value:", step->event_value);
}

static void run_wait(void *argument)
{
    struct step *step = argument;

    pthread_mutex_lock(&lock);
    while (step->event->value < step->event_value && !sim_is_lost(0)) {
        wait_a_moment();
    }
    pthread_mutex_unlock(&lock);
}

/* running command buffers */

/* Completes a buffer. A waiter has a reference too; once it sees the completion, no other reference
 * remains. */
static void complete(void *argument)
{
    struct commands *self = argument;
    bool is_held;

    pthread_mutex_lock(&lock);
    self->status = sim_is_lost(0) ? STATUS_ERROR : STATUS_COMPLETED;
    self->code = sim_is_lost(0) ? ERROR_DEVICE_REMOVED : 0;
    self->end_time = (double)now_ns() / 1e9;
    is_held = atomic_load(&self->object.count) > 1;
    if (is_held) {
        objc_release(self);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!is_held) {
        objc_release(self);
    }
}

static int submit(struct sim_stream *stream, struct step *step)
{
    unsigned char *to =
        step->destination == NULL ? NULL : step->destination->contents + step->destination_offset;

    switch (step->kind) {
    case COPY:
        return sim_submit_copy(stream, to, step->source->contents + step->source_offset,
                               step->size);
    case FILL:
        return sim_submit_fill(stream, to, &step->value, 1, step->size);
    case SIGNAL:
        return sim_submit_step(stream, run_signal, step);
    default:
        return sim_submit_step(stream, run_wait, step);
    }
}

static void commands_commit(struct commands *self, const char *selector)
{
    struct sim_stream *stream = self->queue->stream;
    int64_t scripted = sim_enter("commit");
    int result = 0;

    if (self->status != STATUS_NOT_ENQUEUED || self->is_encoding) {
        sim_misuse("%s: committed already, or an encoder is open", selector);
    }
    pthread_mutex_lock(&lock);
    self->status = scripted != 0 ? STATUS_ERROR : STATUS_COMMITTED;
    self->code = (long)scripted;
    pthread_mutex_unlock(&lock);
    if (scripted != 0) {
        return;
    }
    objc_retain(self); /* released at completion; never, if the device is lost */
    for (struct step *step = self->first; result == 0 && step != NULL; step = step->next) {
        result = submit(stream, step);
    }
    if (result == 0) {
        sim_submit_step(stream, complete, self);
    }
}

/* Returns the status. A buffer of a lost device never completes: its status is an error. */
static NSUInteger status_now(struct commands *self)
{
    if (self->status == STATUS_COMMITTED && sim_is_lost(0)) {
        self->status = STATUS_ERROR;
        self->code = ERROR_DEVICE_REMOVED;
    }
    return self->status;
}

static NSUInteger commands_status(struct commands *self, const char *selector)
{
    NSUInteger status;

    (void)selector;
    pthread_mutex_lock(&lock);
    status = status_now(self);
    pthread_mutex_unlock(&lock);
    return status;
}

static void commands_wait_completed(struct commands *self, const char *selector)
{
    pthread_mutex_lock(&lock);
    if (self->status == STATUS_NOT_ENQUEUED) {
        sim_misuse("%s: not committed", selector);
    }
    while (status_now(self) < STATUS_COMPLETED) {
        wait_a_moment();
    }
    pthread_mutex_unlock(&lock);
}

static void *commands_error(struct commands *self, const char *selector)
{
    struct error *error;

    (void)selector;
    if (commands_status(self, selector) != STATUS_ERROR) {
        return NULL;
    }
    error = sim_object_new(&error_class, sizeof(*error));
    error->code = self->code;
    return sim_object_autorelease(error);
}

static double commands_end_time(struct commands *self, const char *selector)
{
    if (commands_status(self, selector) < STATUS_COMPLETED) {
        sim_misuse("%s: before completion", selector);
    }
    return self->end_time;
}

static const struct sim_class commands_class = {
    "MTLCommandBuffer",
    (const struct sim_method[]){{"blitCommandEncoder", IMP(commands_blit)},
                                {"encodeSignalEvent:value:", IMP(commands_signal)},
                                {"encodeWaitForEvent:value:", IMP(commands_wait)},
                                {"commit", IMP(commands_commit)},
                                {"waitUntilCompleted", IMP(commands_wait_completed)},
                                {"status", IMP(commands_status)},
                                {"error", IMP(commands_error)},
                                {"GPUEndTime", IMP(commands_end_time)},
                                {NULL, NULL}},
    commands_dealloc};

/* ---- queues --------------------------------------------------------------------------------- */

static void *queue_commands(struct queue *self, const char *selector)
{
    struct commands *commands;

    (void)selector;
    if (sim_enter("commandBuffer") != 0) {
        return NULL;
    }
    commands = sim_object_new(&commands_class, sizeof(*commands));
    if (commands != NULL) {
        commands->queue = objc_retain(self);
        commands->end = &commands->first;
    }
    return sim_object_autorelease(commands);
}

static void queue_dealloc(void *object)
{
    sim_stream_destroy(((struct queue *)object)->stream);
}

static const struct sim_class queue_class = {
    "MTLCommandQueue",
    (const struct sim_method[]){{"commandBuffer", IMP(queue_commands)}, {NULL, NULL}},
    queue_dealloc};

/* ---- the device ----------------------------------------------------------------------------- */

struct device {
    struct sim_object object;
};

static atomic_uint device_count;

/*
 * Releasing the last device shuts Metal down. Apple does not document that: a child that was forked
 * after use of Metal must call exec(), and it is not known whether the child may start Metal.
 */
static void device_dealloc(void *object)
{
    (void)object;
    if (atomic_fetch_sub(&device_count, 1) == 1) {
        sim_shut_down();
    }
}

static void *device_name(struct device *self, const char *selector)
{
    struct string *name = sim_object_new(&string_class, sizeof(*name));

    (void)self;
    (void)selector;
    if (name != NULL) {
        name->text = sim_device_at(0)->name;
    }
    return sim_object_autorelease(name);
}

static uint64_t device_limit(struct device *self, const char *selector)
{
    (void)self;
    (void)selector;
    return sim_device_at(0)->memory_bytes;
}

static NSUInteger device_allocated(struct device *self, const char *selector)
{
    (void)self;
    (void)selector;
    return atomic_load(&allocated_bytes);
}

static NSUInteger device_max_buffer(struct device *self, const char *selector)
{
    (void)self;
    (void)selector;
    return (NSUInteger)sim_number(sim_device_at(0), "max_buffer_bytes",
                                  (int64_t)sim_device_at(0)->memory_bytes);
}

static void *device_queue(struct device *self, const char *selector)
{
    struct queue *queue;

    (void)self;
    (void)selector;
    if (sim_enter("newCommandQueue") != 0) {
        return NULL;
    }
    queue = sim_object_new(&queue_class, sizeof(*queue));
    if (queue != NULL) {
        queue->stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    }
    return queue;
}

static void *device_event(struct device *self, const char *selector)
{
    (void)self;
    (void)selector;
    return sim_enter("newSharedEvent") != 0 ? NULL
                                            : sim_object_new(&event_class, sizeof(struct event));
}

static void *device_buffer(struct device *self, const char *selector, NSUInteger length,
                           NSUInteger options)
{
    struct buffer *buffer;
    void *contents;

    (void)self;
    if (options != 0 || length == 0) {
        sim_misuse("%s: length %lu, options 0x%lx", selector, length, options);
    }
    if (sim_enter("newBufferWithLength") != 0 ||
        length > sim_device_at(0)->memory_bytes - atomic_load(&allocated_bytes)) {
        return NULL;
    }
    contents = sim_alloc(0, length, 16, SIM_MANAGED, 0);
    buffer = contents == NULL ? NULL : sim_object_new(&buffer_class, sizeof(*buffer));
    if (buffer != NULL) {
        buffer->contents = contents;
        buffer->length = length;
        atomic_fetch_add(&allocated_bytes, length);
    }
    return buffer;
}

static void *device_wrap(struct device *self, const char *selector, void *pointer,
                         NSUInteger length, NSUInteger options, void *deallocator)
{
    NSUInteger page = (NSUInteger)sysconf(_SC_PAGESIZE);
    struct buffer *buffer;

    (void)self;
    if (options != 0 || deallocator != NULL || length == 0) {
        sim_misuse("%s: length %lu, options 0x%lx", selector, length, options);
    }
    if ((uintptr_t)pointer % page != 0 || length % page != 0 ||
        sim_enter("newBufferWithBytesNoCopy") != 0) {
        return NULL;
    }
    buffer = sim_object_new(&buffer_class, sizeof(*buffer));
    if (buffer != NULL) {
        buffer->contents = pointer;
        buffer->length = length;
        buffer->is_wrapped = true;
    }
    return buffer;
}

static const struct sim_class device_class = {
    "MTLDevice",
    (const struct sim_method[]){
        {"name", IMP(device_name)},
        {"recommendedMaxWorkingSetSize", IMP(device_limit)},
        {"currentAllocatedSize", IMP(device_allocated)},
        {"maxBufferLength", IMP(device_max_buffer)},
        {"newCommandQueue", IMP(device_queue)},
        {"newSharedEvent", IMP(device_event)},
        {"newBufferWithLength:options:", IMP(device_buffer)},
        {"newBufferWithBytesNoCopy:length:options:deallocator:", IMP(device_wrap)},
        {NULL, NULL}},
    device_dealloc};

/* Returns the device, retained for the caller. */
void *MTLCreateSystemDefaultDevice(void)
{
    struct device *device;

    if (sim_enter("MTLCreateSystemDefaultDevice") != 0 || sim_device_count("mps") == 0) {
        return NULL;
    }
    device = sim_object_new(&device_class, sizeof(*device));
    device_count += device != NULL;
    return device;
}
