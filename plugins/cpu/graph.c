/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Graphs. The list of a capture becomes a program, which is immutable. A graph, its executable
 * instances (execs) and its queued launches hold counted references to the program. A graph or an
 * exec may therefore be destroyed, or an exec be updated to another program, while a launch is
 * still queued.
 *
 * A launch runs the program from front to back: on the calling thread without option async,
 * otherwise as one piece of work in the queue of the stream on which it is launched. The streams on
 * which the work was captured play no part: the order of the calls satisfies all edges. A queued
 * launch has one mark for each event that the program records; the mark becomes the event's latest
 * recording when the launch is queued. One more mark is for the completion of the launch; the next
 * launch of the same exec waits for it.
 */
#include "cpu.h"

struct cpu_program {
    atomic_uint references;
    struct cpu_work_list list;
};

/* exec->native */
struct cpu_exec {
    struct cpu_program *program;
    struct cpu_mark *latest; /* completion of the exec's latest queued launch, or NULL */
};

struct cpu_launch {
    struct cpu_program *program;
    size_t mark_count;
    struct cpu_mark *marks[]; /* one for each event recording, in list order; last: completion */
};

static struct cpu_program *get_program(struct cpu_program *program)
{
    atomic_fetch_add(&program->references, 1);
    return program;
}

static void put_program(struct cpu_program *program)
{
    if (atomic_fetch_sub(&program->references, 1) == 1) {
        cpu_work_list_release(&program->list);
        free(program);
    }
}

/* ---- launches ------------------------------------------------------------------------------- */

void cpu_launch_release(struct cpu_launch *launch)
{
    for (size_t i = 0; i < launch->mark_count; i++) {
        cpu_mark_put(launch->marks[i]);
    }
    put_program(launch->program);
    free(launch);
}

static struct cpu_launch *create_launch(struct cpu_program *program, struct cpu_queue *queue)
{
    const size_t mark_count = program->list.record_count + 1;
    struct cpu_launch *launch = calloc(1, sizeof(*launch) + mark_count * sizeof(launch->marks[0]));

    if (launch == NULL) {
        return NULL;
    }
    launch->program = get_program(program);
    for (size_t i = 0; i < mark_count; i++) {
        launch->marks[i] = cpu_mark_create(queue);
        if (launch->marks[i] == NULL) {
            cpu_launch_release(launch);
            return NULL;
        }
        launch->mark_count++;
    }
    return launch;
}

void cpu_launch_run(struct cpu_launch *launch)
{
    const struct cpu_work_list *list = &launch->program->list;
    size_t record = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].kind == CPU_WORK_RECORD) {
            cpu_mark_reach(launch->marks[record++]);
        } else {
            cpu_work_run(&list->items[i]);
        }
    }
    cpu_mark_reach(launch->marks[record]);
}

/* Make the marks of a launch the latest recordings of the program's events. */
static void set_marks(const struct cpu_work_list *list, struct cpu_mark *const *marks)
{
    size_t record = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].kind == CPU_WORK_RECORD) {
            cpu_event_set_mark(list->items[i].event, marks[record++]);
        }
    }
}

static int32_t queue_launch(struct cpu_exec *exec, struct cpu_queue *queue,
                            struct ds_accel_error *error)
{
    struct ds_accel_error cause = {.struct_size = sizeof(cause)};
    struct cpu_launch *launch = create_launch(exec->program, queue);
    struct cpu_work work;
    struct cpu_item *item;

    if (launch == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_launch: no memory for a launch");
    }
    item = cpu_item_create(queue, "graph_launch", &cause);
    if (item == NULL) {
        cpu_launch_release(launch);
        ds_accel_write(error, &cause, sizeof(cause));
        return cause.code;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_LAUNCH;
    work.launch = launch;
    /* Before the push, since the worker may complete the launch before cpu_queue_push() returns. */
    set_marks(&exec->program->list, launch->marks);
    cpu_mark_put(exec->latest);
    exec->latest = launch->marks[launch->mark_count - 1];
    cpu_mark_get(exec->latest);
    cpu_queue_push(queue, item, &work);
    return DS_ACCEL_OK;
}

int32_t cpu_graph_launch(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error)
{
    struct cpu_stream *stream = native_stream;
    struct cpu_exec *exec = native;
    int32_t status = DS_ACCEL_OK;

    (void)device;
    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_launch: the stream is capturing; a graph can't hold a graph");
    }
    if (stream->queue == NULL) {
        for (size_t i = 0; i < exec->program->list.count; i++) {
            cpu_work_run(&exec->program->list.items[i]);
        }
        return DS_ACCEL_OK;
    }
    if (exec->latest != NULL) {
        status = cpu_stream_wait_mark(stream, exec->latest, "graph_launch", error);
    }
    return status < 0 ? status : queue_launch(exec, stream->queue, error);
}

/* ---- graphs and execs ----------------------------------------------------------------------- */

struct cpu_program *cpu_program_create(struct cpu_work_list *list)
{
    struct cpu_program *program = calloc(1, sizeof(*program));

    if (program != NULL) {
        atomic_init(&program->references, 1);
        program->list = *list;
    }
    return program;
}

void cpu_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)device;
    put_program(native);
}

int32_t cpu_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                              struct ds_accel_error *error)
{
    struct cpu_exec *exec = calloc(1, sizeof(*exec));

    (void)device;
    if (exec == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "graph_instantiate: no memory for an instance");
    }
    exec->program = get_program(native);
    *exec_out = exec;
    return DS_ACCEL_OK;
}

void cpu_graph_exec_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct cpu_exec *exec = native;

    (void)device;
    cpu_mark_put(exec->latest);
    put_program(exec->program);
    free(exec);
}

/* Return non-zero if both lists have the same kinds of work, in the same order, with the same
   dependencies. */
static int is_same_shape(const struct cpu_work_list *first, const struct cpu_work_list *second)
{
    if (first->count != second->count || first->edge_count != second->edge_count) {
        return 0;
    }
    for (size_t i = 0; i < first->count; i++) {
        if (first->items[i].kind != second->items[i].kind ||
            first->items[i].edge_count != second->items[i].edge_count) {
            return 0;
        }
    }
    for (size_t i = 0; i < first->edge_count; i++) {
        if (first->edges[i] != second->edges[i]) {
            return 0;
        }
    }
    return 1;
}

int32_t cpu_graph_exec_update(ds_accel_plugin_device_t *device, void *native, void *graph,
                              uint32_t *result_out, struct ds_accel_error *error)
{
    struct cpu_exec *exec = native;
    struct cpu_program *program = graph;
    struct cpu_program *before = exec->program;

    (void)device;
    (void)error;
    if (!is_same_shape(&before->list, &program->list)) {
        *result_out = DS_ACCEL_GRAPH_REBUILD_NEEDED;
        return DS_ACCEL_OK;
    }
    exec->program = get_program(program);
    put_program(before);
    *result_out = DS_ACCEL_GRAPH_UPDATED;
    return DS_ACCEL_OK;
}

int32_t cpu_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                             struct ds_accel_error *error)
{
    const struct cpu_program *program = native;

    (void)device;
    (void)error;
    *count_out = program->list.count;
    return DS_ACCEL_OK;
}

/* ---- output as a Graphviz file -------------------------------------------------------------- */

static void describe(const struct cpu_work *work, char *text, size_t text_size)
{
    const unsigned long long size = work->size_bytes;

    switch (work->kind) {
    case CPU_WORK_COPY:
        snprintf(text, text_size, "copy %llu bytes\\n%p to %p", size, (const void *)work->source,
                 work->destination);
        break;
    case CPU_WORK_FILL:
        snprintf(text, text_size, "fill %llu bytes\\npattern of %u at %p", size,
                 work->pattern_bytes, work->destination);
        break;
    case CPU_WORK_TASK:
        snprintf(text, text_size, "host task\\ndata %p", work->user_data);
        break;
    default:
        snprintf(text, text_size, "record event\\n%p", (void *)work->event);
        break;
    }
}

/* Write one node and the edges to that node. */
static int32_t dump_node(const struct cpu_work_list *list, size_t position,
                         ds_accel_text_sink_t sink, void *user_data)
{
    const struct cpu_work *work = &list->items[position];
    char label[128];
    char line[256];
    int32_t status;
    int length;

    describe(work, label, sizeof(label));
    length = snprintf(line, sizeof(line), "    n%zu [label=\"%s\"];\n", position, label);
    status = sink(user_data, line, (size_t)length);
    for (size_t i = 0; i < work->edge_count && status == DS_ACCEL_OK; i++) {
        length = snprintf(line, sizeof(line), "    n%zu -> n%zu;\n",
                          list->edges[work->edge_start + i], position);
        status = sink(user_data, line, (size_t)length);
    }
    return status;
}

int32_t cpu_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                       void *user_data, struct ds_accel_error *error)
{
    static const char head[] = "digraph ds_accel_graph {\n    node [shape=box];\n";
    static const char tail[] = "}\n";
    const struct cpu_work_list *list = &((const struct cpu_program *)native)->list;
    int32_t status = sink(user_data, head, sizeof(head) - 1);

    (void)device;
    for (size_t i = 0; i < list->count && status == DS_ACCEL_OK; i++) {
        status = dump_node(list, i, sink, user_data);
    }
    if (status == DS_ACCEL_OK) {
        status = sink(user_data, tail, sizeof(tail) - 1);
    }
    if (status < 0) {
        return plugin_fail(error, status, "graph_dump: the receiver stopped with status %d",
                           status);
    }
    /* A positive return value means that the receiver wants no more text. */
    return DS_ACCEL_OK;
}
