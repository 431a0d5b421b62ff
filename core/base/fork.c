/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Handling of fork(). No vendor's runtime survives fork(), and a call into one may hang forever. In
 * the child, therefore, every slot of every accelerator that was started before fork() fails with
 * an error, and locks held by threads that the child does not have are reinitialized. This costs
 * the parent nothing: in the pthread_atfork() handler, once, the child overwrites the accelerators'
 * tables of functions, which are its own copies of the parent's memory.
 *
 * A lock that was held may have guarded data that was being changed; the child sees that data half
 * written. The child therefore reinitializes only the locks of calls that must return, and never
 * closes a module that was opened before fork(). A held lock does not prove a change, since readers
 * hold locks, too: changes of a context are marked while they are in progress
 * (ds_accel__context_change_begin()). A context that was being changed at fork() is torn: the child
 * neither changes nor destroys it, since the helper processes and the file that a detection uses
 * belong to the parent.
 *
 * Most runtimes cannot be started again in the child either: they abort, hang, or do nothing. The
 * names of started plugins are recorded, so that a new context in the child rejects these plugins
 * before it probes or loads anything; a plugin with DS_ACCEL_FEATURE_SURVIVES_FORK is not recorded.
 */
#include "base/fork.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK_LIMIT 32
#define HOOK_LIMIT 8

/* Guards the variables below; held across fork(), so that the child finds them consistent. */
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ds_accel__fork_watch *watches;
static pthread_mutex_t *locks[LOCK_LIMIT];
static size_t lock_count;
static ds_accel__fork_hook_t hooks[HOOK_LIMIT];
static size_t hook_count;

/*
 * A plugin that was started in this process or in an ancestor and does not survive a fork. Entries
 * are never removed, since no vendor's library is unloaded. Guarded by fork_lock. A child inserts
 * its own entries at the head, before the entries that it inherited.
 */
struct started {
    struct started *next;
    pid_t pid; /* process that started the plugin */
    bool is_inherited;
    char name[DS_ACCEL__NAME_SIZE];
};

static struct started *all_started;

/*
 * ID of the process that started the accelerators that this process inherited; 0: none inherited.
 */
static pid_t parent;

static void before_fork(void)
{
    pthread_mutex_lock(&fork_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&fork_lock);
}

/*
 * Reinitialize the locks of a watch. Its data is marked as torn only if a change was in progress: a
 * lock that was held does not suffice, because the holder may only have read the data.
 */
static void renew(struct ds_accel__fork_watch *watch)
{
    watch->is_torn = watch->is_torn || __atomic_load_n(&watch->changing, __ATOMIC_SEQ_CST) != 0;
    for (size_t i = 0; i < ARRAY_SIZE(watch->locks); i++) {
        if (watch->locks[i] != NULL) {
            pthread_mutex_init(watch->locks[i], NULL);
        }
    }
}

static void in_child(void)
{
    struct ds_accel__fork_watch **place = &watches;

    while (*place != NULL) {
        struct ds_accel__fork_watch *watch = *place;

        renew(watch);
        if (watch->table == NULL) {
            place = &watch->next;
            continue;
        }
        parent = watch->pid;
        ds_accel__stub_set_parent(parent);
        watch->is_forked = true;
        ds_accel__table_fill(watch->table, DS_ACCEL__STUB_FORKED);
        *place = watch->next; /* remove the watch: later children inherit the stubs */
    }
    for (size_t i = 0; i < lock_count; i++) {
        pthread_mutex_init(locks[i], NULL);
    }
    for (size_t i = 0; i < hook_count; i++) {
        hooks[i]();
    }
    for (struct started *entry = all_started; entry != NULL; entry = entry->next) {
        entry->is_inherited = true;
    }
    pthread_mutex_init(&fork_lock, NULL);
}

static void install(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void make_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install);
}

void ds_accel__fork_renew(pthread_mutex_t *lock)
{
    size_t i = 0;

    make_ready();
    pthread_mutex_lock(&fork_lock);
    while (i < lock_count && locks[i] != lock) {
        i++;
    }
    if (i == lock_count && lock_count < LOCK_LIMIT) {
        locks[lock_count++] = lock;
    }
    assert(i < lock_count); /* the lock is registered; if not, LOCK_LIMIT is too small */
    pthread_mutex_unlock(&fork_lock);
}

void ds_accel__fork_hook(ds_accel__fork_hook_t hook)
{
    size_t i = 0;

    make_ready();
    pthread_mutex_lock(&fork_lock);
    while (i < hook_count && hooks[i] != hook) {
        i++;
    }
    if (i == hook_count && hook_count < HOOK_LIMIT) {
        hooks[hook_count++] = hook;
    }
    assert(i < hook_count); /* the hook is registered; if not, HOOK_LIMIT is too small */
    pthread_mutex_unlock(&fork_lock);
}

/*
 * The link that points to the watch; if the watch is not in the list, the last link, which is NULL.
 * Caller holds fork_lock.
 */
static struct ds_accel__fork_watch **find_watch(const struct ds_accel__fork_watch *watch)
{
    struct ds_accel__fork_watch **place = &watches;

    while (*place != NULL && *place != watch) {
        place = &(*place)->next;
    }
    return place;
}

void ds_accel__fork_watch(struct ds_accel__fork_watch *watch)
{
    assert(!watch->is_forked && !watch->is_torn);
    make_ready();
    pthread_mutex_lock(&fork_lock);
    assert(*find_watch(watch) == NULL); /* a second entry would make the list a cycle */
    watch->pid = getpid();
    watch->next = watches;
    watches = watch;
    pthread_mutex_unlock(&fork_lock);
}

void ds_accel__fork_unwatch(struct ds_accel__fork_watch *watch)
{
    struct ds_accel__fork_watch **place;

    pthread_mutex_lock(&fork_lock);
    place = find_watch(watch);
    if (*place != NULL) {
        *place = watch->next;
    }
    pthread_mutex_unlock(&fork_lock);
}

pid_t ds_accel__fork_parent(void)
{
    return parent;
}

/* The newest entry with this name; NULL if there is none. Caller holds fork_lock. */
static struct started *find_started(const char *name)
{
    struct started *entry = all_started;

    while (entry != NULL && strcmp(entry->name, name) != 0) {
        entry = entry->next;
    }
    return entry;
}

int32_t ds_accel__fork_started(const char *name)
{
    int32_t status = DS_ACCEL_OK;

    assert(name[0] != '\0' && strlen(name) < DS_ACCEL__NAME_SIZE);
    make_ready();
    pthread_mutex_lock(&fork_lock);
    if (find_started(name) == NULL) {
        struct started *entry = calloc(1, sizeof(*entry));

        if (entry != NULL) {
            entry->pid = getpid();
            ds_accel__copy(entry->name, sizeof(entry->name), name);
            entry->next = all_started;
            all_started = entry;
        } else {
            status = ds_accel__no_memory();
        }
    }
    pthread_mutex_unlock(&fork_lock);
    return status;
}

pid_t ds_accel__fork_starter(const char *name)
{
    const struct started *entry;
    pid_t pid = 0;

    pthread_mutex_lock(&fork_lock);
    entry = find_started(name);
    /*
     * In a child that was created without the fork handlers (by clone(), for example), is_inherited
     * is not set; only the process ID shows that the parent started the plugin.
     */
    if (entry != NULL && (entry->is_inherited || entry->pid != getpid())) {
        pid = entry->pid;
    }
    pthread_mutex_unlock(&fork_lock);
    return pid;
}
