/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures and graphs.
 *
 * The plugin does not use OpenCL's cl_khr_command_buffer: it is provisional, with signatures that
 * change between revisions under the same name; it cannot record copies from or to host memory,
 * callbacks or events; and it saves the cost of launching many kernels, but this plugin launches no
 * kernels. A capture is therefore a list of calls that queue work on its streams, and a launch
 * makes the calls again: copies, fills and host tasks can be captured, with every runtime since
 * OpenCL 1.2.
 *
 * A capture begins on one stream. Another stream joins when it waits for an event that was recorded
 * in the capture. All work of these streams goes into one list in the order of the calls, which is
 * a valid order: no call precedes a call that it waits for. A launch executes the list in one
 * stream; work of two streams that could run concurrently runs sequentially.
 *
 * Each stream and each mark of a capture has a row. For every stream of the capture, the row
 * contains the number of that stream's works that precede the row's stream or mark. A stream that
 * waits for a mark merges the mark's row into its own row. When the capture ends, the row of the
 * capture's first stream must include all works, because work that no stream waited for would not
 * be ordered before the work after the graph.
 *
 * Addresses are looked up at the launch, not at the capture.
 */
#include "opencl.h"

/* The data that a graph shares with its executable graphs; it never changes after the capture. */
struct list {
    atomic_uint references;
    struct opencl_node *nodes;
    size_t count;
    size_t capacity;
};

struct row {
    uint64_t *works; /* number of works, indexed by the stream's row; missing entries count as 0 */
    size_t count;
};

struct opencl_capture {
    atomic_uint references;             /* one reference for each stream and event in the capture */
    const struct opencl_stream *origin; /* the stream that began the capture; compared, never
                                         * dereferenced */

    pthread_mutex_t lock;  /* guards the members below; acquired after a stream's lock */
    uint32_t state;        /* DS_ACCEL_CAPTURING_*; NO: the capture has ended */
    const char *broken_by; /* the cause, such as "stream_synchronize"; NULL: not broken */
    struct list *list;
    struct row *rows; /* the first row is origin's */
    size_t row_count;
};

struct exec {
    pthread_mutex_t lock; /* guards the members below; held during a launch */
    struct list *list;
    cl_event last; /* a mark after the latest launch outside captures; NULL: none */
};

/* ---- lists ---------------------------------------------------------------------------------- */

static struct list *make_list(void)
{
    struct list *list = calloc(1, sizeof(*list));

    if (list != NULL) {
        atomic_init(&list->references, 1);
    }
    return list;
}

static struct list *get_list(struct list *list)
{
    atomic_fetch_add(&list->references, 1);
    return list;
}

static void put_list(struct list *list)
{
    if (list != NULL && atomic_fetch_sub(&list->references, 1) == 1) {
        free(list->nodes);
        free(list);
    }
}

static int append(struct list *list, const struct opencl_node *node)
{
    size_t wanted = list->capacity == 0 ? 16 : list->capacity * 2;
    struct opencl_node *grown;

    if (list->count == list->capacity) {
        grown = realloc(list->nodes, wanted * sizeof(*grown));
        if (grown == NULL) {
            return -1;
        }
        list->nodes = grown;
        list->capacity = wanted;
    }
    list->nodes[list->count++] = *node;
    return 0;
}

/* ---- order of works (the caller holds the capture's lock) ----------------------------------- */

static int learn(struct opencl_capture *capture, size_t row, size_t from, size_t count)
{
    struct row *known = &capture->rows[row];
    uint64_t *works;

    if (count < capture->rows[from].count) {
        count = capture->rows[from].count;
    }
    if (known->count < count) {
        works = realloc(known->works, count * sizeof(*works));
        if (works == NULL) {
            return -1;
        }
        memset(works + known->count, 0, (count - known->count) * sizeof(*works));
        known->works = works;
        known->count = count;
    }
    for (size_t i = 0; i < capture->rows[from].count; i++) {
        if (known->works[i] < capture->rows[from].works[i]) {
            known->works[i] = capture->rows[from].works[i];
        }
    }
    return 0;
}

/*
 * Adds a row that begins with the counts of row number from; the first row begins with zeros.
 * Returns 0, or -1 if there is no memory.
 */
static int add_row(struct opencl_capture *capture, size_t from, size_t *row_out)
{
    size_t row = capture->row_count;
    struct row *grown = realloc(capture->rows, (row + 1) * sizeof(*grown));

    if (grown == NULL) {
        return -1;
    }
    capture->rows = grown;
    memset(&grown[row], 0, sizeof(*grown));
    if (learn(capture, row, row > 0 ? from : row, row + 1) != 0) {
        return -1;
    }
    capture->row_count++;
    *row_out = row;
    return 0;
}

static int is_joined(const struct opencl_capture *capture)
{
    const struct row *origin = &capture->rows[0];

    for (size_t i = 0; i < capture->row_count; i++) {
        uint64_t own = capture->rows[i].count > i ? capture->rows[i].works[i] : 0;

        if (own > (origin->count > i ? origin->works[i] : 0)) {
            return 0;
        }
    }
    return 1;
}

/* ---- captures ------------------------------------------------------------------------------- */

struct opencl_capture *opencl_capture_get(struct opencl_capture *capture)
{
    if (capture != NULL) {
        atomic_fetch_add(&capture->references, 1);
    }
    return capture;
}

void opencl_capture_put(struct opencl_capture *capture)
{
    if (capture != NULL && atomic_fetch_sub(&capture->references, 1) == 1) {
        put_list(capture->list);
        for (size_t i = 0; i < capture->row_count; i++) {
            free(capture->rows[i].works);
        }
        free(capture->rows);
        pthread_mutex_destroy(&capture->lock);
        free(capture);
    }
}

static uint32_t state_of(struct opencl_capture *capture)
{
    uint32_t state;

    pthread_mutex_lock(&capture->lock);
    state = capture->state;
    pthread_mutex_unlock(&capture->lock);
    return state;
}

static int is_open(struct opencl_capture *capture)
{
    return state_of(capture) != DS_ACCEL_CAPTURING_NO;
}

struct opencl_capture *opencl_capture_of(struct opencl_stream *stream)
{
    if (stream->capture != NULL && !is_open(stream->capture)) {
        opencl_capture_put(stream->capture);
        stream->capture = NULL;
    }
    return stream->capture;
}

/* Records why the capture is broken; only the first cause is kept. */
static void break_capture(struct opencl_capture *capture, const char *why)
{
    pthread_mutex_lock(&capture->lock);
    if (capture->state == DS_ACCEL_CAPTURING_YES) {
        capture->state = DS_ACCEL_CAPTURING_BROKEN;
        capture->broken_by = why;
    }
    pthread_mutex_unlock(&capture->lock);
}

/*
 * Ends the capture. Returns its list, which the caller releases with put_list(); or NULL, with the
 * cause in *broken_by_out, if the capture was broken or its first stream has not waited for all
 * work.
 */
static struct list *end_capture(struct opencl_capture *capture, const char **broken_by_out)
{
    struct list *list;

    pthread_mutex_lock(&capture->lock);
    list = capture->list;
    *broken_by_out = capture->broken_by;
    capture->list = NULL;
    if (*broken_by_out == NULL && !is_joined(capture)) {
        *broken_by_out = "work of a stream that was drawn in and not waited for";
    }
    capture->state = DS_ACCEL_CAPTURING_NO;
    pthread_mutex_unlock(&capture->lock);
    if (*broken_by_out != NULL) {
        put_list(list);
        list = NULL;
    }
    return list;
}

void opencl_capture_leave(struct opencl_stream *stream)
{
    const char *broken_by = NULL;
    struct opencl_capture *capture;

    pthread_mutex_lock(&stream->lock);
    capture = stream->capture;
    stream->capture = NULL;
    pthread_mutex_unlock(&stream->lock);
    if (capture == NULL) {
        return;
    }
    if (capture->origin == stream) {
        put_list(end_capture(capture, &broken_by));
    }
    opencl_capture_put(capture);
}

int32_t opencl_capture_refuse(struct opencl_stream *stream, const char *call,
                              struct ds_accel_error *error)
{
    if (opencl_capture_of(stream) == NULL) {
        return DS_ACCEL_OK;
    }
    break_capture(stream->capture, call);
    return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: the stream is capturing; this breaks it",
                       call);
}

/*
 * Adds a row for a new mark of an event at the stream's current position in its capture, and
 * returns the row's index in *row_out.
 */
int32_t opencl_capture_mark(const struct opencl_stream *stream, size_t *row_out,
                            struct ds_accel_error *error)
{
    struct opencl_capture *capture = stream->capture;
    int32_t status = opencl_capture_check(capture, error);
    int failed;

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&capture->lock);
    failed = add_row(capture, stream->row, row_out) != 0;
    pthread_mutex_unlock(&capture->lock);
    return failed ? plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a mark in a capture")
                  : DS_ACCEL_OK;
}

int32_t opencl_capture_join(struct opencl_stream *stream, struct opencl_capture *capture,
                            size_t row, struct ds_accel_error *error)
{
    struct opencl_capture *current = opencl_capture_of(stream);
    size_t own = stream->row;
    int failed;

    if (current != NULL && current != capture) {
        break_capture(current, "stream_wait_event for an event of another capture");
        break_capture(capture, "stream_wait_event of another capture for an event of this one");
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "stream_wait_event: the event is of another capture");
    }
    if (!is_open(capture)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "stream_wait_event: the event was recorded in a capture that was not "
                           "launched");
    }
    pthread_mutex_lock(&capture->lock);
    failed = current == capture ? learn(capture, own, row, 0) != 0
                                : add_row(capture, row, &own) != 0;
    pthread_mutex_unlock(&capture->lock);
    if (failed) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a wait in a capture");
    }
    if (current == NULL) {
        stream->capture = opencl_capture_get(capture);
        stream->row = own;
    }
    return DS_ACCEL_OK;
}

static int32_t fail_broken(const char *why, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_STATE, "the stream's capture was broken by %s", why);
}

int32_t opencl_capture_check(struct opencl_capture *capture, struct ds_accel_error *error)
{
    const char *why;

    pthread_mutex_lock(&capture->lock);
    why = capture->broken_by;
    pthread_mutex_unlock(&capture->lock);
    return why == NULL ? DS_ACCEL_OK : fail_broken(why, error);
}

static int32_t keep(const struct opencl_stream *stream, const struct opencl_node *nodes,
                    size_t count, struct ds_accel_error *error)
{
    struct opencl_capture *capture = stream->capture;
    const char *why;
    int failed = 0;

    pthread_mutex_lock(&capture->lock);
    why = capture->list != NULL ? capture->broken_by : "its end";
    for (size_t i = 0; i < count && why == NULL && !failed; i++) {
        failed = append(capture->list, &nodes[i]) != 0;
    }
    if (why == NULL && !failed) {
        capture->rows[stream->row].works[stream->row] += count;
    }
    if (failed) {
        capture->state = DS_ACCEL_CAPTURING_BROKEN;
        capture->broken_by = "memory that ran out";
    }
    pthread_mutex_unlock(&capture->lock);
    if (why != NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "the stream's capture was broken by %s", why);
    }
    return failed
               ? plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a capture; it is broken")
               : DS_ACCEL_OK;
}

/* ---- executing a node ----------------------------------------------------------------------- */

/* Caller holds stream->lock. */
static int32_t perform(struct opencl_stream *stream, const struct opencl_node *node,
                       struct ds_accel_error *error)
{
    return node->kind == OPENCL_NODE_TASK
               ? opencl_task_queue(stream, node->call, node->argument, error)
               : opencl_copy_queue(stream, node, error);
}

int32_t opencl_submit(struct opencl_stream *stream, const struct opencl_node *node,
                      struct ds_accel_error *error)
{
    struct opencl_capture *capture;
    int32_t status;

    pthread_mutex_lock(&stream->lock);
    capture = opencl_capture_of(stream);
    status = capture == NULL ? perform(stream, node, error) : keep(stream, node, 1, error);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

int32_t opencl_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                                void (*call)(void *argument), void *argument,
                                struct ds_accel_error *error)
{
    const struct opencl_node node = {.kind = OPENCL_NODE_TASK, .call = call, .argument = argument};

    (void)device;
    return opencl_submit(native, &node, error);
}

/* ---- the capture of a stream ---------------------------------------------------------------- */

/*
 * The capture modes determine which calls of other threads break a capture. Here only calls on
 * streams and events of the capture, such as a wait for one of its streams, break it. All modes
 * therefore have the same effect, and mode is ignored.
 */
int32_t opencl_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                             struct ds_accel_error *error)
{
    struct opencl_stream *stream = native_stream;
    struct opencl_capture *capture = calloc(1, sizeof(*capture));
    struct list *list = make_list();
    int32_t status = DS_ACCEL_OK;
    size_t row;

    (void)device;
    (void)mode;
    if (capture == NULL || list == NULL || add_row(capture, 0, &row) != 0 ||
        pthread_mutex_init(&capture->lock, NULL) != 0) {
        put_list(list);
        if (capture != NULL) {
            free(capture->row_count > 0 ? capture->rows[0].works : NULL);
            free(capture->rows);
        }
        free(capture);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a capture");
    }
    atomic_init(&capture->references, 1);
    capture->origin = stream;
    capture->state = DS_ACCEL_CAPTURING_YES;
    capture->list = list;
    pthread_mutex_lock(&stream->lock);
    if (opencl_capture_of(stream) != NULL) {
        status =
            plugin_fail(error, DS_ACCEL_ERR_STATE, "graph_capture_begin: the stream is capturing");
    } else {
        stream->capture = opencl_capture_get(capture);
        stream->row = row;
    }
    pthread_mutex_unlock(&stream->lock);
    opencl_capture_put(capture);
    return status;
}

int32_t opencl_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                           struct ds_accel_error *error)
{
    struct opencl_stream *stream = native_stream;
    const char *broken_by = NULL;
    struct list *list = NULL;
    int32_t status = DS_ACCEL_OK;

    (void)device;
    pthread_mutex_lock(&stream->lock);
    if (opencl_capture_of(stream) == NULL || stream->capture->origin != stream) {
        if (stream->capture != NULL) {
            break_capture(stream->capture, "graph_capture_end on a stream that was drawn in");
        }
        status = plugin_fail(error, DS_ACCEL_ERR_STATE,
                             "graph_capture_end: no capture began on this stream");
    } else {
        list = end_capture(stream->capture, &broken_by);
        opencl_capture_put(stream->capture);
        stream->capture = NULL;
    }
    pthread_mutex_unlock(&stream->lock);
    if (broken_by != NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_end: the capture was broken by %s", broken_by);
    }
    if (status == DS_ACCEL_OK) {
        *native_out = list;
    }
    return status;
}

int32_t opencl_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                              uint32_t *status_out, struct ds_accel_error *error)
{
    struct opencl_stream *stream = native_stream;
    struct opencl_capture *capture;

    (void)device;
    (void)error;
    pthread_mutex_lock(&stream->lock);
    capture = opencl_capture_of(stream);
    *status_out = capture == NULL ? DS_ACCEL_CAPTURING_NO : state_of(capture);
    pthread_mutex_unlock(&stream->lock);
    return DS_ACCEL_OK;
}

/* ---- graphs --------------------------------------------------------------------------------- */

void opencl_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)device;
    put_list(native);
}

int32_t opencl_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                                 struct ds_accel_error *error)
{
    struct exec *exec = calloc(1, sizeof(*exec));

    (void)device;
    if (exec == NULL || pthread_mutex_init(&exec->lock, NULL) != 0) {
        free(exec);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory to instantiate a graph");
    }
    exec->list = get_list(native);
    *exec_out = exec;
    return DS_ACCEL_OK;
}

void opencl_graph_exec_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct exec *exec = native;

    if (exec->last != NULL) {
        OPENCL_CALL(device, clReleaseEvent)(exec->last);
    }
    put_list(exec->list);
    pthread_mutex_destroy(&exec->lock);
    free(exec);
}

/*
 * Queues the launch after the previous launch, which may be on any stream. Caller holds
 * stream->lock and exec->lock.
 */
static int32_t launch(struct opencl_stream *stream, struct exec *exec, struct ds_accel_error *error)
{
    cl_event mark = NULL;
    int32_t status = exec->last == NULL ? DS_ACCEL_OK : opencl_wait_for(stream, exec->last, error);

    for (size_t i = 0; i < exec->list->count && status == DS_ACCEL_OK; i++) {
        status = perform(stream, &exec->list->nodes[i], error);
    }
    if (status == DS_ACCEL_OK) {
        status = opencl_mark(stream, &mark, error);
    }
    /*
     * After a failure, the caller may destroy objects that the already queued part of the graph
     * uses, so this part is completed first.
     */
    if (status < 0) {
        opencl_worker_drain(stream->worker,
                            OPENCL_CALL(stream->device, clFinish)(stream->queue) == CL_SUCCESS);
    }
    if (status == DS_ACCEL_OK) {
        if (exec->last != NULL) {
            OPENCL_CALL(stream->device, clReleaseEvent)(exec->last);
        }
        exec->last = mark;
    }
    return status;
}

/* If the stream is capturing, the launch adds the graph's works to the capture. */
int32_t opencl_graph_launch(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                            struct ds_accel_error *error)
{
    struct opencl_stream *stream = native_stream;
    struct opencl_capture *capture;
    struct exec *exec = native;
    int32_t status;

    (void)device;
    pthread_mutex_lock(&exec->lock);
    pthread_mutex_lock(&stream->lock);
    capture = opencl_capture_of(stream);
    status = capture == NULL ? launch(stream, exec, error)
                             : keep(stream, exec->list->nodes, exec->list->count, error);
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&exec->lock);
    return status;
}

/* Returns true if the lists have the same works in the same order; parameters may differ. */
static int is_alike(const struct list *one, const struct list *other)
{
    if (one->count != other->count) {
        return 0;
    }
    for (size_t i = 0; i < one->count; i++) {
        if (one->nodes[i].kind != other->nodes[i].kind) {
            return 0;
        }
    }
    return 1;
}

int32_t opencl_graph_exec_update(ds_accel_plugin_device_t *device, void *native, void *graph,
                                 uint32_t *result_out, struct ds_accel_error *error)
{
    struct exec *exec = native;
    struct list *replaced = NULL;

    (void)device;
    (void)error;
    pthread_mutex_lock(&exec->lock);
    if (is_alike(exec->list, graph)) {
        replaced = exec->list;
        exec->list = get_list(graph);
    }
    pthread_mutex_unlock(&exec->lock);
    *result_out = replaced != NULL ? DS_ACCEL_GRAPH_UPDATED : DS_ACCEL_GRAPH_REBUILD_NEEDED;
    put_list(replaced);
    return DS_ACCEL_OK;
}

int32_t opencl_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                                struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *count_out = ((const struct list *)native)->count;
    return DS_ACCEL_OK;
}

static int write_node(char *text, size_t text_size, size_t i, const struct opencl_node *node)
{
    static const char *const names[] = {"?", "copy", "peer copy", "fill", "host task"};
    int length;

    if (node->kind == OPENCL_NODE_COPY || node->kind == OPENCL_NODE_PEER) {
        length = snprintf(text, text_size, "  n%zu [label=\"%s %llu bytes\\n%p from %p\"]", i,
                          names[node->kind], (unsigned long long)node->size_bytes,
                          node->destination, node->source);
    } else if (node->kind == OPENCL_NODE_FILL) {
        length = snprintf(text, text_size, "  n%zu [label=\"fill %llu bytes\\n%p with 0x%0*x\"]", i,
                          (unsigned long long)node->size_bytes, node->destination,
                          (int)node->pattern_bytes * 2, node->pattern);
    } else {
        length = snprintf(text, text_size, "  n%zu [label=\"%s\"]", i, names[node->kind]);
    }
    if (length < 0 || (size_t)length >= text_size) {
        return length;
    }
    return length + (i == 0 ? snprintf(text + length, text_size - (size_t)length, "\n")
                            : snprintf(text + length, text_size - (size_t)length,
                                       "\n  n%zu -> n%zu\n", i - 1, i));
}

int32_t opencl_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                          void *user_data, struct ds_accel_error *error)
{
    static const char head[] = "digraph graph {\n";
    static const char tail[] = "}\n";
    const struct list *list = native;
    int32_t answer = sink(user_data, head, sizeof(head) - 1);
    char text[OPENCL_TEXT_SIZE];

    (void)device;
    for (size_t i = 0; i < list->count && answer == DS_ACCEL_OK; i++) {
        int length = write_node(text, sizeof(text), i, &list->nodes[i]);

        answer = sink(user_data, text, (uint64_t)length);
    }
    if (answer == DS_ACCEL_OK) {
        answer = sink(user_data, tail, sizeof(tail) - 1);
    }
    return answer == DS_ACCEL_OK ? DS_ACCEL_OK
                                 : plugin_fail(error, answer < 0 ? answer : DS_ACCEL_ERR_IO,
                                               "graph_dump: the sink refused the text");
}
