/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Breadcrumbs: while a plugin is loaded and started in the caller's process, a locked file next to
 * the verdicts contains the plugin's name and path. If the process dies during the load or start,
 * the file stays, unlocked; the next process that evaluates plugins counts a strike and removes the
 * file (docs/decisions/0014).
 */
#include "host/crumb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cache.h"
#include "host/context.h"
#include "host/key.h"
#include "host/registry.h"
#include "host/strike.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define CRUMB_PREFIX "loading."
#define CRUMB_NEW "starting." /* prefix of an incomplete file */

struct crumb {
    char magic[8];
    uint64_t machine;
    struct ds_accel__key key;
    uint64_t begin_ms;
    char name[DS_ACCEL__NAME_SIZE];
    char path[1024];
};
static const char crumb_magic[8] = "DSLOADS";

/*
 * Write and lock the file, then rename it to the name that other processes search for, so that they
 * never see an incomplete file.
 */
static bool write_crumb(int directory, int fd, const struct crumb *content, const char *from,
                        const char *to)
{
    return ds_accel__file_may_have(sizeof(*content)) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           write(fd, content, sizeof(*content)) == (ssize_t)sizeof(*content) &&
           renameat(directory, from, directory, to) == 0;
}

void ds_accel__crumb_drop(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb)
{
    static unsigned counter;
    const ds_accel_t *context = candidate->host.context;
    struct crumb content = {.machine = context->cache.machine, .begin_ms = ds_accel__boot_ms()};
    int directory = context->cache.directory_fd;
    unsigned number = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    char name[sizeof(crumb->name)];
    bool done = false;

    crumb->fd = -1;
    if (!context->cache.is_open || !context->cache.is_writable ||
        ds_accel__key_is_none(candidate->key)) {
        return;
    }
    assert(context->cache.lock_fd < 0); /* the store is not locked during the load */
    memcpy(content.magic, crumb_magic, sizeof(crumb_magic));
    content.key = candidate->key;
    memcpy(content.name, candidate->name, sizeof(content.name));
    snprintf(content.path, sizeof(content.path), "%s", candidate->path);
    snprintf(name, sizeof(name), CRUMB_NEW "%d.%u", (int)getpid(), number);
    /*
     * The time makes the name unique: an earlier process with the same ID may have left a
     * breadcrumb that no process has counted yet.
     */
    snprintf(crumb->name, sizeof(crumb->name), CRUMB_PREFIX "%d.%u.%llu", (int)getpid(), number,
             (unsigned long long)content.begin_ms);
    unlinkat(directory, name, 0); /* file of an earlier process with the same ID */
    crumb->fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (crumb->fd >= 0) {
        done = write_crumb(directory, crumb->fd, &content, name, crumb->name);
    }
    if (!done && crumb->fd >= 0) { /* for example on a full disk: no breadcrumb */
        unlinkat(directory, name, 0);
        ds_accel__crumb_pick(candidate, crumb);
    }
}

void ds_accel__crumb_pick(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb)
{
    const ds_accel_t *context = candidate->host.context;

    if (crumb->fd >= 0) {
        assert(context->cache.is_open); /* still open since ds_accel__crumb_drop() */
        unlinkat(context->cache.directory_fd, crumb->name, 0);
        close(crumb->fd);
    }
    crumb->fd = -1;
}

static bool is_crumb(const char *name)
{
    return strncmp(name, CRUMB_PREFIX, strlen(CRUMB_PREFIX)) == 0;
}

/*
 * Read a breadcrumb. True if the file is unlocked, because its process died while it loaded a
 * plugin; false if the process is alive, or if the file cannot be opened.
 */
static bool read_crumb(const struct ds_accel__cache *cache, const char *name, struct crumb *crumb)
{
    int fd = openat(cache->directory_fd, name,
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    bool is_left;

    memset(crumb, 0, sizeof(*crumb));
    if (fd < 0) {
        return false;
    }
    /* A shared lock, so that readers do not disturb each other. */
    is_left = flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (is_left && (read(fd, crumb, sizeof(*crumb)) != (ssize_t)sizeof(*crumb) ||
                    memcmp(crumb->magic, crumb_magic, sizeof(crumb_magic)) != 0)) {
        crumb->machine = 0; /* invalid: removed, but no strike is counted */
    }
    close(fd);
    crumb->name[sizeof(crumb->name) - 1] = '\0';
    crumb->path[sizeof(crumb->path) - 1] = '\0';
    return is_left;
}

/*
 * Record a strike for a breadcrumb. The record borrows texts from a copy of the breadcrumb, because
 * there is no candidate. begin_ms is the time at which the caller began to count: all breadcrumbs
 * of a plugin that it counts are one strike, because they may be from processes of one job that
 * died together.
 */
static int32_t strike_by_crumb(struct ds_accel__cache *cache, const struct crumb *crumb,
                               uint64_t begin_ms)
{
    struct ds_accel__record *record;
    struct crumb *kept;
    int32_t status;

    assert(cache->is_locked);
    if (crumb->machine != cache->machine || crumb->begin_ms == 0 ||
        !ds_accel__is_backend_name(crumb->name)) {
        return DS_ACCEL_OK; /* invalid, or from another boot or version */
    }
    kept = malloc(sizeof(*kept));
    if (kept == NULL) {
        return ds_accel__no_memory();
    }
    *kept = *crumb;
    status = ds_accel__cache_keep(cache, (char *)kept);
    record = status >= 0 ? ds_accel__cache_add(cache, crumb->key) : NULL;
    if (record == NULL) {
        return ds_accel__no_memory();
    }
    if (record->data.strike_is_load && record->data.strike_ms >= begin_ms) {
        return DS_ACCEL_OK;
    }
    record->texts[DS_ACCEL__RECORD_NAME] = kept->name;
    record->texts[DS_ACCEL__RECORD_PATH] = kept->path;
    ds_accel__strike_add(record, DS_ACCEL__REASON_START_FAILED,
                         "the process ended while it loaded and started the plugin; something else "
                         "may have ended it",
                         kept->begin_ms);
    record->data.verdict_ms = 0;
    cache->is_dirty = true;
    ds_accel__log(cache->log, "cache", DS_ACCEL_LOG_WARN,
                  "%s: an earlier process ended while it loaded and started %s (strike %u)",
                  crumb->name, crumb->path, record->data.strikes);
    return DS_ACCEL_OK;
}

/*
 * True for the name of a breadcrumb, or of an unfinished file (breadcrumb, verdicts or
 * configuration) that was not renamed yet.
 */
static bool is_left_behind(const char *name)
{
    return is_crumb(name) || strncmp(name, CRUMB_NEW, strlen(CRUMB_NEW)) == 0 ||
           strncmp(name, "verdicts.", 9) == 0 || strncmp(name, "config.", 7) == 0;
}

/* True if the process that created the file no longer exists. */
static bool is_orphan(const char *name)
{
    const char *dot = strchr(name, '.');
    long pid;

    assert(dot != NULL); /* is_left_behind() accepts no other name */
    pid = strtol(dot + 1, NULL, 10);
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/*
 * Record strikes for the breadcrumbs of dead processes, and remove these breadcrumbs. Caller holds
 * the store's lock, so that only one of the processes that see a breadcrumb counts it. The strikes
 * are stored before the breadcrumbs are removed, so that a process that no longer finds a
 * breadcrumb reads its strike. If the strikes cannot be stored, the breadcrumbs stay.
 */
static int32_t count_crumbs(struct ds_accel__cache *cache, char **names, size_t count)
{
    int directory = cache->directory_fd;
    uint64_t begin_ms = ds_accel__boot_ms();
    int32_t status = DS_ACCEL_OK;

    assert(cache->is_locked && directory >= 0);
    for (size_t i = 0; i < count && status >= 0; i++) {
        struct crumb crumb;

        if (is_crumb(names[i]) && read_crumb(cache, names[i], &crumb)) {
            status = strike_by_crumb(cache, &crumb, begin_ms);
        } else {
            names[i][0] = '\0';
        }
    }
    status = status < 0 ? status : ds_accel__cache_store(cache);
    for (size_t i = 0; i < count && status >= 0 && cache->is_writable; i++) {
        if (names[i][0] != '\0') {
            unlinkat(directory, names[i], 0);
        }
    }
    return status;
}

/*
 * True if a breadcrumb was left by a dead process. Also removes the unfinished files of dead
 * processes.
 */
static bool has_crumbs(const struct ds_accel__cache *cache, char **names, size_t count)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        struct crumb crumb;

        if (is_crumb(names[i])) {
            found = found || read_crumb(cache, names[i], &crumb);
        } else if (is_orphan(names[i])) {
            unlinkat(cache->directory_fd, names[i], 0);
        }
    }
    return found;
}

int32_t ds_accel__crumbs_collect(struct ds_accel__cache *cache, uint64_t limit_ms,
                                 bool *is_read_out)
{
    const char *cause;
    char **names;
    size_t count;
    int32_t status = ds_accel__dir_list(cache->directory, is_left_behind, &names, &count, &cause);

    if (status == DS_ACCEL_ERR_IO) {
        return DS_ACCEL_OK;
    }
    if (status >= 0 && has_crumbs(cache, names, count)) {
        status = ds_accel__cache_lock(cache, limit_ms);
        *is_read_out = cache->lock_fd >= 0;
        if (status >= 0 && cache->is_locked) {
            status = count_crumbs(cache, names, count);
        }
        ds_accel__cache_unlock(cache);
    }
    ds_accel__names_free(names, count);
    return status;
}
