/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Queues: the streams of option async.
 *
 * A queue consists of a list of work and one thread, the worker, that does the work from front to
 * back. The first work starts the worker, so that an unused stream has no thread. The worker exits
 * when its stream has been destroyed and the remaining work is done; destroying the stream does not
 * wait for that work. A queue can therefore outlive its stream: the device keeps a list of its
 * queues, joins the workers that have exited whenever a stream is destroyed, and joins all workers
 * when the device is closed.
 *
 * Each piece of work has a number, its ticket. Every push increments the runtime's last ticket
 * while it holds the queue's lock, so that tickets increase along each queue. One ticket therefore
 * describes "all work queued before this call" for any number of queues: a queue has passed a
 * ticket when its list is empty or its first work, the oldest that is not done, has a higher
 * ticket. Work stays in the list while it runs.
 *
 * A mark is one recording of an event, made once and reached once. A thread that waits for an event
 * gets a reference to the event's current mark, so that recording the event again or destroying it
 * does not affect the wait. A mark refers to its queue, and waits for the mark use that queue's
 * condition variable. A wait can only be queued for a mark that was queued before, so that workers
 * can't wait for each other in a cycle.
 *
 * Locks: a queue's lock guards its list. It is held for a few instructions, never while work runs
 * and never while another lock is acquired, except that starting the worker may acquire locks of
 * the C library. cpu->lock guards the devices' lists of queues; a thread that holds it may lock a
 * queue.
 *
 * After fork() the child has the queues but no workers, and may not use the plugin. Calls of the
 * child that would wait forever, or acquire a lock that a worker may have held, fail.
 */
#include "cpu.h"

#include <signal.h>
#include <time.h>

struct cpu_item {
    struct cpu_item *next;
    uint64_t ticket;
    struct cpu_work work;
};

struct cpu_mark {
    atomic_uint references;
    struct cpu_queue *queue;         /* a counted reference */
    atomic_uint_fast64_t reached_ns; /* CLOCK_MONOTONIC time; 0 if not reached yet */
};

struct cpu_queue {
    atomic_uint references;    /* one for the stream, one for the device, one for each mark */
    struct cpu_device *device; /* valid until the worker is joined */
    struct cpu_queue *next;    /* in the device's list; guarded by cpu->lock */
    uint32_t number;           /* number of this queue on the device, from 0 */

    pthread_mutex_t lock;    /* guards the following members */
    pthread_cond_t wake;     /* signals the worker: new work, or the stream was destroyed */
    pthread_cond_t progress; /* signals waiting threads; its clock is CLOCK_MONOTONIC */
    struct cpu_item *first;  /* work that is running or will run next */
    struct cpu_item *last;
    uint64_t last_ticket;
    uint64_t wanted; /* the lowest ticket that a thread waits for, or CPU_NEVER */
    uint32_t has_worker;
    uint32_t is_closing;
    uint32_t has_exited; /* the worker accesses nothing any more and can be joined */
    pthread_t worker;
};

/* ---- time ----------------------------------------------------------------------------------- */

uint64_t cpu_deadline_ns(uint64_t timeout_ns)
{
    const uint64_t now = plugin_now_ns();

    return timeout_ns < CPU_NEVER - now ? now + timeout_ns : CPU_NEVER;
}

/* Sleep on a condition until it is signalled or the deadline has passed; 0 or ETIMEDOUT. */
static int sleep_on(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline_ns)
{
    struct timespec when;

    if (deadline_ns == CPU_NEVER) {
        return pthread_cond_wait(condition, lock);
    }
    when.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000));
    when.tv_nsec = (long)(deadline_ns % UINT64_C(1000000000));
    return pthread_cond_timedwait(condition, lock, &when);
}

/* ---- fork() --------------------------------------------------------------------------------- */

/* Number of fork() calls between the process that started the watch and the current process. */
static atomic_uint fork_count;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static int watch_failure;

static void count_fork(void)
{
    atomic_fetch_add(&fork_count, 1);
}

static void start_watch(void)
{
    watch_failure = pthread_atfork(NULL, NULL, count_fork);
}

int cpu_fork_watch(uint32_t *fork_count_out)
{
    pthread_once(&watch_once, start_watch);
    *fork_count_out = atomic_load(&fork_count);
    return watch_failure;
}

static int is_forked(const struct cpu_runtime *cpu)
{
    return cpu->is_async && atomic_load(&fork_count) != cpu->fork_count;
}

int32_t cpu_fork_check(const struct cpu_runtime *cpu, const char *call,
                       struct ds_accel_error *error)
{
    if (!is_forked(cpu)) {
        return DS_ACCEL_OK;
    }
    return plugin_fail(error, DS_ACCEL_ERR_STATE,
                       "%s: this process was forked after the cpu backend was started; its workers "
                       "are not here",
                       call);
}

static int is_worker(const struct cpu_runtime *cpu)
{
    const uintptr_t current = (uintptr_t)pthread_getspecific(cpu->current_key);

    return cpu->is_async && (current & CPU_CURRENT_WORKER) != 0;
}

int cpu_runs_tasks(ds_accel_plugin_instance_t *instance)
{
    return is_worker(cpu_runtime(instance));
}

int32_t cpu_check_not_worker(const struct cpu_runtime *cpu, const char *call,
                             struct ds_accel_error *error)
{
    if (is_worker(cpu)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: a host task can't wait for streams; it is work of one", call);
    }
    return DS_ACCEL_OK;
}

/* ---- creation and release of queues --------------------------------------------------------- */

static void put_references(struct cpu_queue *queue, unsigned count)
{
    if (atomic_fetch_sub(&queue->references, count) == count) {
        pthread_cond_destroy(&queue->progress);
        pthread_cond_destroy(&queue->wake);
        pthread_mutex_destroy(&queue->lock);
        free(queue);
    }
}

static void put_queue(struct cpu_queue *queue)
{
    put_references(queue, 1);
}

static void get_queue(struct cpu_queue *queue)
{
    atomic_fetch_add(&queue->references, 1);
}

struct cpu_queue *cpu_queue_create(struct cpu_device *device)
{
    struct cpu_queue *queue = calloc(1, sizeof(*queue));
    pthread_condattr_t monotonic;

    if (queue == NULL) {
        return NULL;
    }
    atomic_init(&queue->references, 2);
    queue->device = device;
    queue->wanted = CPU_NEVER;
    /* None of these calls can fail on the C libraries of Linux. */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->wake, NULL);
    pthread_cond_init(&queue->progress, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return queue;
}

void cpu_queue_enter(struct cpu_queue *queue)
{
    struct cpu_device *device = queue->device;

    queue->number = device->queue_count++;
    queue->next = device->queues;
    device->queues = queue;
}

/* Remove a queue from its device's list; return 0 if another thread has removed it. The caller
   holds cpu->lock. */
static int unlink_queue(struct cpu_queue *queue)
{
    struct cpu_queue **link = &queue->device->queues;

    while (*link != NULL && *link != queue) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return 0;
    }
    *link = queue->next;
    return 1;
}

/* Make the worker exit when its work is done. Return non-zero if the queue is empty, so that the
   worker exits at once. */
static int close_queue(struct cpu_queue *queue)
{
    int is_idle;

    pthread_mutex_lock(&queue->lock);
    queue->is_closing = 1;
    is_idle = queue->first == NULL;
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
    return is_idle;
}

/* Join the worker of a queue that was removed from the device's list, and release the device's
   reference and other_references more. */
static void join_queue(struct cpu_queue *queue, unsigned other_references)
{
    if (queue->has_worker) {
        pthread_join(queue->worker, NULL);
    }
    put_references(queue, 1 + other_references);
}

/* Join those workers of destroyed streams that have exited. */
static void reap_queues(struct cpu_device *device)
{
    pthread_mutex_t *lock = &device->cpu->lock;
    struct cpu_queue **link = &device->queues;
    struct cpu_queue *ended = NULL;

    pthread_mutex_lock(lock);
    while (*link != NULL) {
        struct cpu_queue *queue = *link;
        int has_exited;

        pthread_mutex_lock(&queue->lock);
        has_exited = queue->has_exited;
        pthread_mutex_unlock(&queue->lock);
        if (!has_exited) {
            link = &queue->next;
            continue;
        }
        *link = queue->next;
        queue->next = ended;
        ended = queue;
    }
    pthread_mutex_unlock(lock);
    while (ended != NULL) {
        struct cpu_queue *queue = ended;

        ended = queue->next;
        join_queue(queue, 0);
    }
}

void cpu_queue_close(struct cpu_queue *queue)
{
    struct cpu_device *device = queue->device;
    int is_last = 0;

    if (is_forked(device->cpu)) {
        return;
    }
    if (close_queue(queue)) {
        pthread_mutex_lock(&device->cpu->lock);
        is_last = unlink_queue(queue);
        pthread_mutex_unlock(&device->cpu->lock);
    }
    if (is_last) {
        join_queue(queue, 1);
    } else {
        put_queue(queue);
    }
    reap_queues(device);
}

void cpu_queues_end(struct cpu_device *device)
{
    struct cpu_queue *queue;

    if (is_forked(device->cpu)) {
        return;
    }
    pthread_mutex_lock(&device->cpu->lock);
    for (queue = device->queues; queue != NULL; queue = queue->next) {
        close_queue(queue);
    }
    while ((queue = device->queues) != NULL) {
        device->queues = queue->next;
        pthread_mutex_unlock(&device->cpu->lock);
        join_queue(queue, 0);
        pthread_mutex_lock(&device->cpu->lock);
    }
    pthread_mutex_unlock(&device->cpu->lock);
}

/* ---- marks ---------------------------------------------------------------------------------- */

struct cpu_mark *cpu_mark_create(struct cpu_queue *queue)
{
    struct cpu_mark *mark = malloc(sizeof(*mark));

    if (mark != NULL) {
        atomic_init(&mark->references, 1);
        atomic_init(&mark->reached_ns, 0);
        mark->queue = queue;
        get_queue(queue);
    }
    return mark;
}

void cpu_mark_get(struct cpu_mark *mark)
{
    atomic_fetch_add(&mark->references, 1);
}

void cpu_mark_put(struct cpu_mark *mark)
{
    if (mark != NULL && atomic_fetch_sub(&mark->references, 1) == 1) {
        put_queue(mark->queue);
        free(mark);
    }
}

uint64_t cpu_mark_reached_ns(struct cpu_mark *mark)
{
    return atomic_load(&mark->reached_ns);
}

int cpu_mark_is_of(const struct cpu_mark *mark, const struct cpu_queue *queue)
{
    return mark->queue == queue;
}

void cpu_mark_reach(struct cpu_mark *mark)
{
    atomic_store(&mark->reached_ns, plugin_now_ns());
    pthread_mutex_lock(&mark->queue->lock);
    pthread_cond_broadcast(&mark->queue->progress);
    pthread_mutex_unlock(&mark->queue->lock);
}

int cpu_mark_wait(struct cpu_mark *mark, uint64_t deadline_ns)
{
    struct cpu_queue *queue = mark->queue;
    int failure = 0;

    if (atomic_load(&mark->reached_ns) != 0) {
        return 0;
    }
    pthread_mutex_lock(&queue->lock);
    while (atomic_load(&mark->reached_ns) == 0 && failure == 0) {
        failure = sleep_on(&queue->progress, &queue->lock, deadline_ns);
    }
    pthread_mutex_unlock(&queue->lock);
    return atomic_load(&mark->reached_ns) != 0 ? 0 : failure;
}

/* ---- the worker ----------------------------------------------------------------------------- */

/* Remove the finished work from the list, and wake the threads that wait for it. The caller holds
   queue->lock. */
static struct cpu_item *pop(struct cpu_queue *queue)
{
    struct cpu_item *item = queue->first;

    queue->first = item->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    if (queue->wanted != CPU_NEVER &&
        (queue->first == NULL || queue->first->ticket > queue->wanted)) {
        queue->wanted = CPU_NEVER;
        pthread_cond_broadcast(&queue->progress);
    }
    return item;
}

/* Mark the calling thread as a worker, make the queue's device its current device, and set its
   name. */
static void introduce_worker(const struct cpu_queue *queue)
{
    const uintptr_t current = CPU_CURRENT_WORKER | (queue->device->index + 1);
    char name[64];

    /* If this fails for lack of memory, host tasks that wait for their own stream are not
       detected. */
    (void)pthread_setspecific(queue->device->cpu->current_key, (const void *)current);

    snprintf(name, sizeof(name), "ds-accel cpu%u.%u", queue->device->index, queue->number);
    name[15] = '\0'; /* The kernel stores at most 15 characters. */
    pthread_setname_np(pthread_self(), name);
}

static void *work_off(void *data)
{
    struct cpu_queue *queue = data;

    introduce_worker(queue);
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        struct cpu_item *item;

        while (queue->first == NULL && !queue->is_closing) {
            pthread_cond_wait(&queue->wake, &queue->lock);
        }
        item = queue->first;
        if (item == NULL) {
            break;
        }
        pthread_mutex_unlock(&queue->lock);
        cpu_work_run(&item->work);
        cpu_work_release(&item->work);
        pthread_mutex_lock(&queue->lock);
        free(pop(queue));
    }
    queue->has_exited = 1;
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* Start the worker; return 0 or an errno. All signals are blocked in the worker, so that the
   program's own threads handle them. The caller holds queue->lock. */
static int start_worker(struct cpu_queue *queue)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int failure = pthread_attr_init(&attributes);

    if (failure != 0) {
        return failure;
    }
    cpu_place_thread(queue->device, &attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&queue->worker, &attributes, work_off, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    queue->has_worker = failure == 0;
    return failure;
}

/* ---- queueing work -------------------------------------------------------------------------- */

struct cpu_item *cpu_item_create(struct cpu_queue *queue, const char *call,
                                 struct ds_accel_error *error)
{
    struct cpu_item *item;
    int failure = 0;

    if (cpu_fork_check(queue->device->cpu, call, error) < 0) {
        return NULL;
    }
    item = malloc(sizeof(*item));
    if (item == NULL) {
        plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory to queue the work", call);
        return NULL;
    }
    pthread_mutex_lock(&queue->lock);
    if (!queue->has_worker) {
        failure = start_worker(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (failure != 0) {
        free(item);
        errno = failure;
        plugin_fail(error, failure == ENOMEM ? DS_ACCEL_ERR_NO_MEMORY : DS_ACCEL_ERR_LIMIT,
                    "%s: the stream's thread can't be started: %m", call);
        return NULL;
    }
    return item;
}

void cpu_queue_push(struct cpu_queue *queue, struct cpu_item *item, const struct cpu_work *work)
{
    item->next = NULL;
    item->work = *work;
    pthread_mutex_lock(&queue->lock);
    item->ticket = atomic_fetch_add(&queue->device->cpu->last_ticket, 1) + 1;
    queue->last_ticket = item->ticket;
    if (queue->first == NULL) {
        queue->first = item;
        pthread_cond_signal(&queue->wake);
    } else {
        queue->last->next = item;
    }
    queue->last = item;
    pthread_mutex_unlock(&queue->lock);
}

int32_t cpu_queue_submit(struct cpu_queue *queue, const struct cpu_work *work, const char *call,
                         struct ds_accel_error *error)
{
    struct ds_accel_error cause = {.struct_size = sizeof(cause)};
    struct cpu_item *item = cpu_item_create(queue, call, &cause);

    if (item == NULL) {
        ds_accel_write(error, &cause, sizeof(cause));
        return cause.code;
    }
    cpu_queue_push(queue, item, work);
    return DS_ACCEL_OK;
}

/* ---- waiting for queued work ---------------------------------------------------------------- */

int cpu_queue_is_idle(struct cpu_queue *queue)
{
    int is_idle;

    pthread_mutex_lock(&queue->lock);
    is_idle = queue->first == NULL;
    pthread_mutex_unlock(&queue->lock);
    return is_idle;
}

/* Return non-zero if all work up to the ticket is done. The caller holds queue->lock. */
static int has_passed(const struct cpu_queue *queue, uint64_t ticket)
{
    return queue->first == NULL || queue->first->ticket > ticket;
}

/* Wait until the queue has passed the ticket; return 0 or ETIMEDOUT. */
static int wait_for_ticket(struct cpu_queue *queue, uint64_t ticket, uint64_t deadline_ns)
{
    int failure = 0;
    int is_passed;

    pthread_mutex_lock(&queue->lock);
    while (!has_passed(queue, ticket) && failure == 0) {
        queue->wanted = queue->wanted < ticket ? queue->wanted : ticket;
        failure = sleep_on(&queue->progress, &queue->lock, deadline_ns);
    }
    is_passed = has_passed(queue, ticket);
    pthread_mutex_unlock(&queue->lock);
    return is_passed ? 0 : failure;
}

static int32_t fail_timeout(uint64_t timeout_ns, const char *call, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_TIMEOUT, "%s: work is left after %llu ns", call,
                       (unsigned long long)timeout_ns);
}

/* Fail if the calling thread may not wait: in a forked child, and on a worker. */
static int32_t check_waiting(const struct cpu_runtime *cpu, const char *call,
                             struct ds_accel_error *error)
{
    int32_t status = cpu_fork_check(cpu, call, error);

    return status < 0 ? status : cpu_check_not_worker(cpu, call, error);
}

int32_t cpu_queue_wait(struct cpu_queue *queue, uint64_t timeout_ns, const char *call,
                       struct ds_accel_error *error)
{
    int32_t status = check_waiting(queue->device->cpu, call, error);
    uint64_t ticket;

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&queue->lock);
    ticket = queue->last_ticket;
    pthread_mutex_unlock(&queue->lock);
    if (wait_for_ticket(queue, ticket, cpu_deadline_ns(timeout_ns)) != 0) {
        return fail_timeout(timeout_ns, call, error);
    }
    return DS_ACCEL_OK;
}

/* Return a queue of the device that has not passed the ticket, or NULL. The caller holds cpu->lock
   and later releases the queue with put_queue(). */
static struct cpu_queue *find_busy(const struct cpu_device *device, uint64_t ticket)
{
    for (struct cpu_queue *queue = device->queues; queue != NULL; queue = queue->next) {
        int is_passed;

        pthread_mutex_lock(&queue->lock);
        is_passed = has_passed(queue, ticket);
        pthread_mutex_unlock(&queue->lock);
        if (!is_passed) {
            get_queue(queue);
            return queue;
        }
    }
    return NULL;
}

static struct cpu_queue *find_busy_anywhere(struct cpu_runtime *cpu,
                                            const struct cpu_device *device, uint64_t ticket)
{
    struct cpu_queue *busy = NULL;

    pthread_mutex_lock(&cpu->lock);
    for (uint32_t i = 0; i < cpu->machine.device_count && busy == NULL; i++) {
        const struct cpu_device *candidate = cpu->devices[i];

        if (candidate != NULL && (device == NULL || candidate == device)) {
            busy = find_busy(candidate, ticket);
        }
    }
    pthread_mutex_unlock(&cpu->lock);
    return busy;
}

int32_t cpu_queues_wait(struct cpu_runtime *cpu, const struct cpu_device *device,
                        uint64_t timeout_ns, const char *call, struct ds_accel_error *error)
{
    struct cpu_queue *busy;
    uint64_t deadline_ns;
    uint64_t ticket;
    int failure = 0;
    int32_t status;

    if (!cpu->is_async) {
        return DS_ACCEL_OK;
    }
    status = check_waiting(cpu, call, error);
    if (status < 0) {
        return status;
    }
    deadline_ns = cpu_deadline_ns(timeout_ns);
    ticket = atomic_load(&cpu->last_ticket);
    /* Later work has higher tickets, so that each queue is waited for at most once. */
    while (failure == 0 && (busy = find_busy_anywhere(cpu, device, ticket)) != NULL) {
        failure = wait_for_ticket(busy, ticket, deadline_ns);
        put_queue(busy);
    }
    return failure == 0 ? DS_ACCEL_OK : fail_timeout(timeout_ns, call, error);
}
