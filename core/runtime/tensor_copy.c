/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Copying tensors, also to a device or to the host, and filling tensors.
 *
 * A plan turns shapes and strides into runs of bytes that are contiguous on both sides: dimensions
 * of size 1 are dropped, the others are sorted by the destination's strides, and adjacent
 * contiguous dimensions are merged. As a result most copies are a single run. If neither side is
 * device memory, the calling thread processes the runs at once. Several runs in host-accessible
 * memory become one host task; otherwise each run is a queued copy or fill.
 *
 * A host task and its plan can be used only once, while a captured copy may be replayed; in a
 * capture every run is therefore queued separately. A copy from or to ordinary host memory waits
 * for completion, because nothing else prevents the release of that memory before the stream has
 * used it. The allocators prevent it for device and pinned memory.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/handle.h"
#include "runtime/tensor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* size of the memory of struct row; a multiple of every element size */
#define ROW_BYTES (UINT64_C(1) << 20)

struct plan {
    void *destination;
    const void *source;        /* NULL: fill with the pattern */
    unsigned char pattern[16]; /* the largest element */
    uint32_t pattern_bytes;
    uint32_t ndim; /* number of loops around the runs */
    int64_t sizes[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t destination_strides[DS_ACCEL_TENSOR_DIMS_MAX]; /* strides in bytes */
    int64_t source_strides[DS_ACCEL_TENSOR_DIMS_MAX];
    uint64_t run_bytes;
    uint64_t run_count;
};

static bool is_on_device(const struct ds_accel__tensor *tensor)
{
    return tensor->storage->place == DS_ACCEL_PLACE_DEVICE;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static void add_dim(struct plan *plan, int64_t size, int64_t destination_stride,
                    int64_t source_stride)
{
    uint32_t place = plan->ndim++;

    assert(place < DS_ACCEL_TENSOR_DIMS_MAX);
    /* The dimension with the largest stride is outermost. */
    while (place > 0 && llabs(plan->destination_strides[place - 1]) < llabs(destination_stride)) {
        plan->sizes[place] = plan->sizes[place - 1];
        plan->destination_strides[place] = plan->destination_strides[place - 1];
        plan->source_strides[place] = plan->source_strides[place - 1];
        place--;
    }
    plan->sizes[place] = size;
    plan->destination_strides[place] = destination_stride;
    plan->source_strides[place] = source_stride;
}

/* Add the innermost dimension to the run, as long as its elements directly follow the run. */
static void grow_run(struct plan *plan)
{
    while (plan->ndim > 0 &&
           plan->destination_strides[plan->ndim - 1] == (int64_t)plan->run_bytes &&
           (plan->source == NULL ||
            plan->source_strides[plan->ndim - 1] == (int64_t)plan->run_bytes)) {
        plan->run_bytes *= (uint64_t)plan->sizes[--plan->ndim];
    }
}

/* Make the plan for tensors with at least one element; source NULL: a fill. */
static void make_plan(struct plan *plan, const struct ds_accel__tensor *destination,
                      const struct ds_accel__tensor *source)
{
    const int64_t element_bytes = (int64_t)ds_accel__dtype_bytes(destination->dtype);

    memset(plan, 0, sizeof(*plan));
    plan->destination = ds_accel__tensor_data(destination);
    plan->source = source != NULL ? ds_accel__tensor_data(source) : NULL;
    plan->run_bytes = (uint64_t)element_bytes;
    for (uint32_t i = 0; i < destination->ndim; i++) {
        if (destination->shape[i] > 1) {
            add_dim(plan, destination->shape[i], destination->strides[i] * element_bytes,
                    source != NULL ? source->strides[i] * element_bytes : 0);
        }
    }
    grow_run(plan);
    assert(plan->run_bytes > 0);
    plan->run_count = 1;
    for (uint32_t i = 0; i < plan->ndim; i++) {
        plan->run_count *= (uint64_t)plan->sizes[i];
    }
}

/* A function that processes one run. */
typedef int32_t (*run_t)(void *user_data, void *destination, const void *source);

static int32_t for_each_run(const struct plan *plan, run_t run, void *user_data)
{
    int64_t index[DS_ACCEL_TENSOR_DIMS_MAX] = {0};
    char *destination = plan->destination;
    const char *source = plan->source;

    for (;;) {
        int32_t status = run(user_data, destination, source);
        uint32_t i = plan->ndim;

        while (i > 0 && index[i - 1] == plan->sizes[i - 1] - 1) {
            i--;
            destination -= index[i] * plan->destination_strides[i];
            source = source != NULL ? source - index[i] * plan->source_strides[i] : NULL;
            index[i] = 0;
        }
        if (status < 0 || i == 0) {
            return status;
        }
        index[i - 1]++;
        destination += plan->destination_strides[i - 1];
        source = source != NULL ? source + plan->source_strides[i - 1] : NULL;
    }
}

/* ---- work of the host ----------------------------------------------------------------------- */

static int32_t run_on_host(void *user_data, void *destination, const void *source)
{
    const struct plan *plan = user_data;

    if (source != NULL) {
        memcpy(destination, source, plan->run_bytes);
    } else if (plan->pattern_bytes == 1) {
        memset(destination, plan->pattern[0], plan->run_bytes);
    } else {
        assert(plan->pattern_bytes > 0 && plan->run_bytes % plan->pattern_bytes == 0);
        for (uint64_t i = 0; i < plan->run_bytes; i += plan->pattern_bytes) {
            memcpy((char *)destination + i, plan->pattern, plan->pattern_bytes);
        }
    }
    return DS_ACCEL_OK;
}

static void run_task(void *user_data, int32_t status)
{
    /* If the stream failed, nothing is copied or filled. The error is reported to callers that wait
     * for the stream. */
    if (status == DS_ACCEL_OK) {
        for_each_run(user_data, run_on_host, user_data);
    }
    free(user_data);
}

/* Return the extent of a tensor's memory that host work accesses; device NULL: host memory. */
static struct ds_accel__extent extent_of(const struct plan *plan,
                                         const struct ds_accel__device *device, bool is_write)
{
    struct ds_accel__extent extent = {
        .device = device != NULL ? device->abi.handle : NULL,
        .begin = is_write ? plan->destination : plan->source,
        .run_bytes = plan->run_bytes,
        .is_write = is_write,
        .ndim = plan->ndim,
    };

    memcpy(extent.sizes, plan->sizes, sizeof(extent.sizes));
    memcpy(extent.strides, is_write ? plan->destination_strides : plan->source_strides,
           sizeof(extent.strides));
    return extent;
}

/* Return the accesses of a plan, for the race detector. source NULL: a fill. */
static struct ds_accel__work work_of(const struct plan *plan,
                                     const struct ds_accel__tensor *destination,
                                     const struct ds_accel__tensor *source)
{
    struct ds_accel__work work = {.call = source != NULL ? "tensor_copy" : "tensor_fill"};

    work.extents[work.count++] =
        extent_of(plan, is_on_device(destination) ? destination->storage->device : NULL, true);
    if (source != NULL) {
        work.extents[work.count++] =
            extent_of(plan, is_on_device(source) ? source->storage->device : NULL, false);
    }
    return work;
}

/* Queue all runs as one host task. If the backend has no host tasks, wait for the stream and
 * process the runs on this thread. */
static int32_t queue_task(struct ds_accel__stream *stream, const struct plan *plan,
                          const struct ds_accel__work *work)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct plan *task = malloc(sizeof(*task));
    int32_t status;

    if (task == NULL) {
        return ds_accel__no_memory();
    }
    *task = *plan;
    status = ds_accel__layer_host_task(stream, run_task, task, work, &error);
    if (status >= 0) {
        return DS_ACCEL_OK;
    }
    if (status != DS_ACCEL_ERR_UNSUPPORTED) {
        free(task);
        return ds_accel__fail(status, &error);
    }
    status = ds_accel__stream_wait(stream);
    if (status >= 0) {
        status = ds_accel__layer_host_work(stream->child.device, work);
    }
    run_task(task, status);
    return status;
}

/* ---- work of the device --------------------------------------------------------------------- */

/* How runs are queued. The members to and from are NULL unless the copy is from one device to
 * another. */
struct route {
    struct ds_accel__stream *stream;
    const struct plan *plan;
    uint32_t kind; /* DS_ACCEL_COPY_* */
    struct ds_accel__device *to;
    struct ds_accel__device *from;
};

static int32_t queue_copy(void *user_data, void *destination, const void *source)
{
    const struct route *route = user_data;

    if (route->to != NULL) {
        return ds_accel_mem_copy_peer_async(&route->stream->abi, &route->to->abi, destination,
                                            &route->from->abi, source, route->plan->run_bytes);
    }
    return ds_accel_mem_copy_async(&route->stream->abi, destination, source, route->plan->run_bytes,
                                   route->kind);
}

static int32_t queue_fill(void *user_data, void *destination, const void *source)
{
    const struct route *route = user_data;

    (void)source;
    return ds_accel_mem_fill_async(&route->stream->abi, destination, route->plan->pattern,
                                   route->plan->pattern_bytes, route->plan->run_bytes);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Whether several elements share one address because a stride is 0. Such a tensor cannot be the
 * destination of a copy or fill. Elements that overlap because of other strides are not
 * detected. */
static bool repeats_elements(const struct ds_accel__tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] > 1 && tensor->strides[i] == 0) {
            return true;
        }
    }
    return false;
}

static int32_t check_destination(const struct ds_accel__tensor *tensor, const char *call)
{
    if ((tensor->storage->flags & DS_ACCEL_TENSOR_READ_ONLY) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: the tensor is read-only", call);
    }
    if (tensor->element_count > 0 && repeats_elements(tensor)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: the tensor has one element in several places", call);
    }
    return DS_ACCEL_OK;
}

static bool is_same_layout(const struct ds_accel__tensor *left,
                           const struct ds_accel__tensor *right)
{
    for (uint32_t i = 0; i < left->ndim; i++) {
        if (left->shape[i] > 1 && left->strides[i] != right->strides[i]) {
            return false;
        }
    }
    return ds_accel__tensor_data(left) == ds_accel__tensor_data(right);
}

static bool overlaps(const struct ds_accel__tensor *left, const struct ds_accel__tensor *right)
{
    const char *first = ds_accel__tensor_data(left);
    const char *second = ds_accel__tensor_data(right);
    int64_t lows[2];
    int64_t highs[2];

    /* Addresses of different devices, or of a device and the host, are not comparable. */
    if (is_on_device(left) != is_on_device(right) ||
        (is_on_device(left) && left->storage->device != right->storage->device) ||
        !ds_accel__tensor_extent(left, &lows[0], &highs[0]) ||
        !ds_accel__tensor_extent(right, &lows[1], &highs[1])) {
        return false;
    }
    return (uintptr_t)(first + lows[0]) < (uintptr_t)(second + highs[1]) &&
           (uintptr_t)(second + lows[1]) < (uintptr_t)(first + highs[0]);
}

static int32_t check_pair(const struct ds_accel__tensor *destination,
                          const struct ds_accel__tensor *source)
{
    if (destination->dtype != source->dtype || destination->ndim != source->ndim ||
        memcmp(destination->shape, source->shape, source->ndim * sizeof(source->shape[0])) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_copy: dtype %u and %u, %u and %u dimensions: dtypes and "
                               "shapes must be equal",
                               destination->dtype, source->dtype, destination->ndim, source->ndim);
    }
    if (is_on_device(destination) && is_on_device(source) &&
        destination->storage->device->context != source->storage->device->context) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_copy: devices of two contexts: copy through the host");
    }
    return check_destination(destination, "tensor_copy");
}

/* Find the stream for a transfer between two tensors, at least one of which is on a device; other
 * may be NULL. */
static int32_t find_stream(const struct ds_accel__tensor *tensor,
                           const struct ds_accel__tensor *other, ds_accel_stream_t *stream,
                           const char *call, struct ds_accel__stream **stream_out)
{
    struct ds_accel__device *first = is_on_device(tensor) ? tensor->storage->device : NULL;
    struct ds_accel__device *second = other != NULL && is_on_device(other) ? other->storage->device
                                                                           : NULL;
    struct ds_accel__device *device = first != NULL ? first : second;
    int32_t status = ds_accel__device_fork_check(device);

    if (status < 0) {
        return status;
    }
    if (stream != NULL && second != NULL && ds_accel_stream_device(stream) == &second->abi) {
        device = second;
    }
    *stream_out = ds_accel__stream_of(device, stream, call);
    return *stream_out != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_INVALID;
}

static int32_t try_record(struct ds_accel__tensor *tensor, struct ds_accel__stream *stream)
{
    struct ds_accel__device *owner = tensor != NULL ? tensor->storage->device : NULL;
    struct ds_accel__stream *other;

    if (owner == NULL || tensor->storage->is_foreign) {
        return DS_ACCEL_OK;
    }
    if (owner == stream->child.device) {
        return ds_accel_tensor_record_stream((ds_accel_tensor_t *)tensor, &stream->abi);
    }
    /* An allocator accepts only streams of its own device: the current stream of that device waits
     * for the given stream, and is recorded instead. */
    other = ds_accel__stream_of(owner, NULL, "tensor_copy");
    if (other == NULL || ds_accel_stream_wait_stream(&other->abi, &stream->abi) < 0) {
        return ds_accel__stream_wait(stream);
    }
    return ds_accel_tensor_record_stream((ds_accel_tensor_t *)tensor, &other->abi);
}

/* Record that the stream uses the tensor's memory: the memory is not reused before the stream has
 * finished its work, even if the tensor is released. If the use cannot be recorded, wait for the
 * stream, because the work is already queued. Nothing is recorded for NULL, for ordinary host
 * memory, and for memory that this library did not allocate. */
static int32_t record(struct ds_accel__tensor *tensor, struct ds_accel__stream *stream)
{
    return try_record(tensor, stream) < 0 ? ds_accel__stream_wait(stream) : DS_ACCEL_OK;
}

static bool is_unpinned(const struct ds_accel__tensor *tensor)
{
    return tensor != NULL && tensor->storage->place == DS_ACCEL_PLACE_HOST;
}

/* Queue the plan; at least one side is device memory. source NULL: a fill. If a side is ordinary
 * host memory, wait for completion, and fail with ERR_STATE if the stream captures. */
static int32_t queue_plan(struct ds_accel__tensor *destination, struct ds_accel__tensor *source,
                          struct ds_accel__stream *stream, const struct plan *plan)
{
    struct route route = {.stream = stream, .plan = plan};
    bool must_wait = is_unpinned(destination) || is_unpinned(source);
    bool is_reachable = destination->storage->is_host_accessible &&
                        (source == NULL || source->storage->is_host_accessible);
    bool is_capturing = false;
    int32_t recorded[2];
    int32_t status = ds_accel__stream_is_capturing(stream, &is_capturing);

    if (status >= 0 && is_capturing && must_wait) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "tensor_copy: the stream captures, and pageable host memory may be "
                               "freed before a replay: pin it");
    }
    if (status < 0) {
        return status;
    }
    if (source != NULL && is_on_device(destination) && is_on_device(source) &&
        destination->storage->device != source->storage->device) {
        route.to = destination->storage->device;
        route.from = source->storage->device;
    } else if (source != NULL) {
        route.kind = !is_on_device(source)        ? DS_ACCEL_COPY_HOST_TO_DEVICE
                     : !is_on_device(destination) ? DS_ACCEL_COPY_DEVICE_TO_HOST
                                                  : DS_ACCEL_COPY_DEVICE_TO_DEVICE;
    }
    if (is_reachable && !is_capturing && (plan->run_count > 1 || plan->pattern_bytes > 4)) {
        const struct ds_accel__work work = work_of(plan, destination, source);

        status = queue_task(stream, plan, &work);
    } else {
        status = for_each_run(plan, source != NULL ? queue_copy : queue_fill, &route);
    }
    if (must_wait) {
        int32_t waited =
            ds_accel__stream_wait(stream); /* also after a failure: some runs may be queued */

        return status < 0 ? status : waited;
    }
    /* Record the uses also after a failure, because some runs may be queued when the caller
     * releases the memory. */
    recorded[0] = record(destination, stream);
    recorded[1] = record(source, stream);
    return status < 0 ? status : recorded[0] < 0 ? recorded[0] : recorded[1];
}

/* Return the device to which the race detector assigns a host access: the device that pinned the
 * destination or the source, else the stream's device. NULL: there is none. */
static struct ds_accel__device *find_device(const struct ds_accel__tensor *destination,
                                            const struct ds_accel__tensor *source,
                                            const struct ds_accel__stream *stream)
{
    struct ds_accel__device *device = destination->storage->device;

    if (device == NULL && source != NULL) {
        device = source->storage->device;
    }
    return device == NULL && stream != NULL ? stream->child.device : device;
}

/* Run a plan without device memory on this thread, after all work of the stream if one is given.
 * source NULL: a fill. */
static int32_t run_at_once(ds_accel_stream_t *stream, struct plan *plan,
                           const struct ds_accel__tensor *destination,
                           const struct ds_accel__tensor *source)
{
    const struct ds_accel__work work = work_of(plan, destination, source);
    struct ds_accel__stream *ours = stream != NULL ? ds_accel__stream_check(stream, work.call)
                                                   : NULL;
    int32_t status = DS_ACCEL_OK;

    if (stream != NULL) {
        status = ours == NULL ? DS_ACCEL_ERR_INVALID : ds_accel__stream_wait(ours);
    }
    if (status >= 0) {
        status = ds_accel__layer_host_work(find_device(destination, source, ours), &work);
    }
    return status < 0 ? status : for_each_run(plan, run_on_host, plan);
}

static int32_t copy(struct ds_accel__tensor *destination, struct ds_accel__tensor *source,
                    ds_accel_stream_t *stream)
{
    struct ds_accel__stream *queue = NULL;
    struct plan plan;
    int32_t status;

    make_plan(&plan, destination, source);
    if (!is_on_device(destination) && !is_on_device(source)) {
        return run_at_once(stream, &plan, destination, source);
    }
    status = find_stream(destination, source, stream, "tensor_copy", &queue);
    return status < 0 ? status : queue_plan(destination, source, queue, &plan);
}

/* Fail if a device owns or pinned the tensor's memory, and ds_accel__device_fork_check() fails for
 * that device. */
static int32_t fork_check(const struct ds_accel__tensor *tensor)
{
    const struct ds_accel__device *device = tensor->storage->device;

    return device != NULL ? ds_accel__device_fork_check(device) : DS_ACCEL_OK;
}

int32_t ds_accel_tensor_copy(ds_accel_tensor_t *destination, ds_accel_tensor_t *source,
                             ds_accel_stream_t *stream)
{
    struct ds_accel__tensor *to = ds_accel__tensor_check(destination, "tensor_copy");
    struct ds_accel__tensor *from = ds_accel__tensor_check(source, "tensor_copy");
    int32_t status;

    if (to == NULL || from == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = fork_check(to);
    status = status < 0 ? status : fork_check(from);
    status = status < 0 ? status : check_pair(to, from);
    if (status < 0 || to->element_count == 0 || is_same_layout(to, from)) {
        return status;
    }
    if (overlaps(to, from)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "tensor_copy: source and destination overlap");
    }
    return copy(to, from, stream);
}

/* If the stream is not a stream of the given device, make its later work wait for the device's
 * current stream, on which the new tensor was allocated. */
static int32_t follow_allocation(struct ds_accel__device *device, ds_accel_stream_t *stream)
{
    struct ds_accel__stream *current;

    if (device == NULL || stream == NULL || ds_accel_stream_device(stream) == &device->abi) {
        return DS_ACCEL_OK;
    }
    current = ds_accel__stream_of(device, NULL, "tensor_copy");
    return current == NULL ? DS_ACCEL_ERR_STATE
                           : ds_accel_stream_wait_stream(stream, &current->abi);
}

int32_t ds_accel__tensor_copy_to(struct ds_accel__tensor *tensor, uint32_t place,
                                 struct ds_accel__device *device, uint64_t align_bytes,
                                 ds_accel_stream_t *stream, ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor *made = NULL;
    ds_accel_stream_t *first = NULL;
    int32_t status;

    if (device != NULL && stream != NULL && ds_accel_stream_device(stream) == &device->abi) {
        first = stream;
    }
    status = ds_accel__tensor_create(place, device, first, tensor->dtype, tensor->ndim,
                                     tensor->shape, align_bytes, &made);
    if (status < 0) {
        return status;
    }
    /* This call comes after the allocation, because the allocation may queue waits on the stream
     * that it uses, and the given stream must wait for them too. */
    status = follow_allocation(place == DS_ACCEL_PLACE_DEVICE ? device : NULL, stream);
    if (status >= 0) {
        status =
            ds_accel_tensor_copy((ds_accel_tensor_t *)made, (ds_accel_tensor_t *)tensor, stream);
    }
    if (status < 0) {
        ds_accel_tensor_put((ds_accel_tensor_t *)made);
        return status;
    }
    *tensor_out = (ds_accel_tensor_t *)made;
    return DS_ACCEL_OK;
}

/* Return a new reference to the same tensor. */
static int32_t share(ds_accel_tensor_t *tensor, ds_accel_tensor_t **tensor_out)
{
    *tensor_out = ds_accel_tensor_get(tensor);
    return DS_ACCEL_OK;
}

int32_t ds_accel_tensor_to(ds_accel_tensor_t *tensor, ds_accel_device_t *device,
                           ds_accel_stream_t *stream, ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_to");
    struct ds_accel__device *to = device != NULL ? ds_accel__device_check(device, "tensor_to")
                                                 : NULL;
    int32_t status;

    if (ours == NULL || (device != NULL && to == NULL)) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (tensor_out == NULL) {
        return ds_accel__refuse("tensor_to", "output", NULL);
    }
    status = to != NULL ? ds_accel__device_fork_check(to) : fork_check(ours);
    if (status < 0) {
        return status;
    }
    if (device == NULL ? !is_on_device(ours) : is_on_device(ours) && ours->storage->device == to) {
        return share(tensor, tensor_out);
    }
    return ds_accel__tensor_copy_to(ours,
                                    device != NULL ? DS_ACCEL_PLACE_DEVICE : DS_ACCEL_PLACE_HOST,
                                    to, 0, stream, tensor_out);
}

int32_t ds_accel_tensor_contiguous(ds_accel_tensor_t *tensor, ds_accel_stream_t *stream,
                                   ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_contiguous");
    int32_t status;

    if (ours == NULL || tensor_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("tensor_contiguous", "output", NULL);
    }
    status = fork_check(ours);
    if (status < 0) {
        return status;
    }
    if (ds_accel__tensor_is_contiguous(ours)) {
        return share(tensor, tensor_out);
    }
    return ds_accel__tensor_copy_to(ours, ours->storage->place, ours->storage->device, 1, stream,
                                    tensor_out);
}

int32_t ds_accel_pin_memory(ds_accel_tensor_t *tensor, ds_accel_device_t *device,
                            uint64_t align_bytes, ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "pin_memory");
    struct ds_accel__device *by = ds_accel__device_check(device, "pin_memory");
    /* align_bytes 1: any alignment; 0: page alignment */
    const uint64_t align = align_bytes == 0 ? (uint64_t)sysconf(_SC_PAGESIZE) : align_bytes;

    int32_t status;

    if (ours == NULL || by == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__device_fork_check(by);
    if (status < 0) {
        return status;
    }
    if (tensor_out == NULL || is_on_device(ours)) {
        return tensor_out == NULL
                   ? ds_accel__refuse("pin_memory", "output", NULL)
                   : ds_accel__error(DS_ACCEL_ERR_INVALID, "pin_memory: the tensor is on a device");
    }
    if ((align & (align - 1)) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "pin_memory: alignment %llu is neither 0, 1 nor a power of two",
                               (unsigned long long)align_bytes);
    }
    if (ours->storage->place == DS_ACCEL_PLACE_PINNED && ours->storage->device == by &&
        (uintptr_t)ds_accel__tensor_data(ours) % align == 0) {
        return share(tensor, tensor_out);
    }
    return ds_accel__tensor_copy_to(ours, DS_ACCEL_PLACE_PINNED, by, align_bytes, NULL, tensor_out);
}

/* ---- filling -------------------------------------------------------------------------------- */

/* Set the shortest equivalent pattern: for example, 8 equal bytes become one byte. */
static void set_pattern(struct plan *plan, const void *value, uint32_t element_bytes)
{
    memcpy(plan->pattern, value, element_bytes);
    plan->pattern_bytes = element_bytes;
    while (plan->pattern_bytes > 1 && memcmp(plan->pattern, plan->pattern + plan->pattern_bytes / 2,
                                             plan->pattern_bytes / 2) == 0) {
        plan->pattern_bytes /= 2;
    }
}

/* Host memory that contains many copies of a pattern: if the device cannot fill with the pattern,
 * runs are copied from this memory. */
struct row {
    struct ds_accel__stream *stream;
    void *data;
    uint64_t size_bytes;
    uint64_t run_bytes;
};

static int32_t queue_row(void *user_data, void *destination, const void *source)
{
    const struct row *row = user_data;
    int32_t status = DS_ACCEL_OK;

    (void)source;
    for (uint64_t done = 0; done < row->run_bytes && status >= 0; done += row->size_bytes) {
        uint64_t left = row->run_bytes - done;

        status = ds_accel_mem_copy_async(&row->stream->abi, (char *)destination + done, row->data,
                                         left < row->size_bytes ? left : row->size_bytes,
                                         DS_ACCEL_COPY_HOST_TO_DEVICE);
    }
    return status;
}

static int32_t fill_by_copies(struct ds_accel__tensor *tensor, const struct plan *plan,
                              struct ds_accel__stream *stream)
{
    struct row row = {.stream = stream, .run_bytes = plan->run_bytes};
    struct plan fill = *plan;
    int32_t waited;
    int32_t status;

    row.size_bytes = plan->run_bytes < ROW_BYTES ? plan->run_bytes : ROW_BYTES;
    row.data = malloc(ROW_BYTES);
    if (row.data == NULL) {
        return ds_accel__no_memory();
    }
    fill.run_bytes = row.size_bytes;
    run_on_host(&fill, row.data, NULL);
    status = for_each_run(plan, queue_row, &row);
    waited = ds_accel__stream_wait(stream);
    /* if the wait failed, a copy may still read the memory, so the memory is never freed */
    if (waited >= 0) {
        free(row.data);
    }
    status = status < 0 ? status : waited;
    return status < 0 ? status : record(tensor, stream);
}

/* Queue a fill of device memory. Devices repeat patterns of at most 4 bytes: a longer pattern is
 * written by the host, or copied from struct row, which waits for completion, and fails with
 * ERR_STATE if the stream captures. */
static int32_t queue_pattern(struct ds_accel__tensor *tensor, struct ds_accel__stream *stream,
                             const struct plan *plan)
{
    bool is_capturing = false;
    int32_t status = DS_ACCEL_OK;

    if (plan->pattern_bytes <= 4) {
        return queue_plan(tensor, NULL, stream, plan);
    }
    status = ds_accel__stream_is_capturing(stream, &is_capturing);
    if (status >= 0 && is_capturing) {
        status = ds_accel__error(DS_ACCEL_ERR_STATE,
                                 "tensor_fill: the stream captures, and devices repeat patterns of "
                                 "up to 4 bytes only: fill before the capture");
    }
    if (status < 0) {
        return status;
    }
    return tensor->storage->is_host_accessible ? queue_plan(tensor, NULL, stream, plan)
                                               : fill_by_copies(tensor, plan, stream);
}

int32_t ds_accel_tensor_fill(ds_accel_tensor_t *tensor, const void *value,
                             ds_accel_stream_t *stream)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_fill");
    struct ds_accel__stream *queue = NULL;
    struct plan plan;
    int32_t status;

    if (ours == NULL || value == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID : ds_accel__refuse("tensor_fill", "value", NULL);
    }
    status = fork_check(ours);
    status = status < 0 ? status : check_destination(ours, "tensor_fill");
    if (status < 0 || ours->element_count == 0) {
        return status;
    }
    make_plan(&plan, ours, NULL);
    set_pattern(&plan, value, (uint32_t)ds_accel__dtype_bytes(ours->dtype));
    if (!is_on_device(ours)) {
        return run_at_once(stream, &plan, ours, NULL);
    }
    status = find_stream(ours, NULL, stream, "tensor_fill", &queue);
    return status < 0 ? status : queue_pattern(ours, queue, &plan);
}

int32_t ds_accel_tensor_zero(ds_accel_tensor_t *tensor, ds_accel_stream_t *stream)
{
    const uint64_t zero[2] = {0, 0}; /* the largest element */

    return ds_accel_tensor_fill(tensor, zero, stream);
}
