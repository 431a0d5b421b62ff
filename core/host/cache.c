/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The store of records (verdicts and strikes of plugins), which are found by key, in one file per
 * user and machine. The file is read as a whole, and replaced by a new file on every write (on a
 * full disk, records may be removed in place). An unreadable or invalid file is treated as absent,
 * which only costs time. The store interprets only the key of a record; the caller that opens the
 * store decides which records are useful, and specifies the file to remove first when the disk is
 * full.
 *
 * Time stamps are of CLOCK_BOOTTIME, so that a jump of the wall clock changes nothing. A verdict
 * with a stamp in the future counts as expired.
 *
 *     verdict.c -> cache_open -> find: key -> record                 nothing found, or expired
 *                                   |            |                        |
 *                                   |         verdict           cache_lock, read again, probe
 *                                   +-- cache_add, cache_store: temp + fsync + rename -+
 */
#include "host/cache.h"
#include "base/clock.h"
#include "base/text.h"
#include "host/cache_disk.h"
#include "host/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME DS_ACCEL__CACHE_FILE
#define LOCK_NAME "lock"
#define FILE_LIMIT_BYTES (4 * 1024 * 1024u)
#define RECORD_LIMIT 1024u

/* ---- machine and user ----------------------------------------------------------------------- */

/*
 * Compute the hash of boot, machine, user and version, which marks the files of the store.
 * *known_out is true if the boot ID could be read; without the boot ID, no store is used.
 */
static int32_t identify(uint64_t *machine_out, bool *known_out)
{
    uid_t uid = geteuid();
    uint64_t seed = ds_accel__hash(&uid, sizeof(uid), ds_accel__record_layout());

    return ds_accel__key_machine(seed, machine_out, known_out);
}

/* ---- reading and writing -------------------------------------------------------------------- */

/*
 * Keep the data of a file until the store is closed, because records borrow its texts. Takes
 * ownership of data.
 */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data)
{
    struct ds_accel__cache_file *file = malloc(sizeof(*file));

    assert(data != NULL);
    if (file == NULL) {
        free(data);
        return ds_accel__no_memory();
    }
    file->data = data;
    file->next = cache->files;
    cache->files = file;
    return DS_ACCEL_OK;
}

/*
 * Log that the file of records is invalid and ignored. Only once per evaluation, which may read the
 * file twice: without the lock and again after locking.
 */
static void leave_out(struct ds_accel__cache *cache, const char *problem)
{
    if (!cache->has_warned) {
        cache->has_warned = true;
        ds_accel__log(cache->log, "cache", DS_ACCEL_LOG_WARN, "%s/" FILE_NAME " is ignored%s: %s",
                      cache->directory, cache->is_writable ? " and rebuilt" : "", problem);
    }
}

static int32_t parse_file(struct ds_accel__cache *cache, char *data, size_t size)
{
    const char *problem = ds_accel__cache_parse(data, size, cache->machine, &cache->table);

    if (problem == ds_accel__cache_no_memory) {
        return ds_accel__no_memory();
    }
    if (problem != NULL) {
        ds_accel__cache_table_clear(&cache->table);
    }
    if (problem != NULL && problem[0] != '\0') {
        leave_out(cache, problem);
    }
    return DS_ACCEL_OK;
}

static int32_t read_table(struct ds_accel__cache *cache)
{
    const char *problem;
    size_t size;
    char *data;
    int32_t status;

    assert(cache->is_open && cache->directory_fd >= 0);
    status = ds_accel__cache_file_read(cache->directory_fd, FILE_NAME, FILE_LIMIT_BYTES, &data,
                                       &size, &problem);
    ds_accel__cache_table_clear(&cache->table);
    if (problem != NULL) {
        leave_out(cache, problem);
    }
    if (status >= 0 && data != NULL) {
        status = ds_accel__cache_keep(cache, data);
        status = status < 0 ? status : parse_file(cache, data, size);
    }
    return status;
}

static bool is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/*
 * Write the records. If the disk is full, remove the spare file (the stored configuration, which
 * can be read from its original files again) and retry. If the disk is still full and records are
 * only removed, overwrite the file in place.
 */
static bool write_table(const struct ds_accel__cache *cache, const struct ds_accel__text *text)
{
    bool done = ds_accel__cache_file_write(cache->directory_fd, FILE_NAME, text);
    int error = errno;

    if (!done && is_full(error)) {
        unlinkat(cache->directory_fd, cache->spare, 0);
        done = ds_accel__cache_file_write(cache->directory_fd, FILE_NAME, text);
        error = errno;
    }
    if (!done && is_full(error) && cache->is_forgetting) {
        done = ds_accel__cache_file_overwrite(cache->directory_fd, FILE_NAME, text);
    }
    errno = error;
    return done;
}

/*
 * Remove the file of records, or an empty directory in its place, because no record is left. Works
 * on a full disk. True if there is no file any more.
 */
static bool remove_table(const struct ds_accel__cache *cache)
{
    int directory = cache->directory_fd;

    return unlinkat(directory, FILE_NAME, 0) == 0 || errno == ENOENT ||
           (errno == EISDIR && unlinkat(directory, FILE_NAME, AT_REMOVEDIR) == 0);
}

/*
 * Log that a file cannot be written, for example to a full or read-only file system, and stop
 * writing until the store is opened again, so that this is logged only once.
 */
static void give_up(struct ds_accel__cache *cache, const char *name)
{
    snprintf(cache->problem, sizeof(cache->problem), "cannot write %s/%s: %s", cache->directory,
             name, strerror(errno));
    ds_accel__log(cache->log, "cache", DS_ACCEL_LOG_WARN, "%s", cache->problem);
    cache->is_writable = false;
}

void ds_accel__cache_write_file(struct ds_accel__cache *cache, const char *name,
                                const struct ds_accel__text *text)
{
    assert(cache->is_open && cache->is_writable && !text->failed);
    if (!ds_accel__cache_file_write(cache->directory_fd, name, text)) {
        give_up(cache, name);
    }
}

/* Remove records that are no longer useful, and the oldest records beyond the limits. */
static void prune(struct ds_accel__cache *cache)
{
    uint64_t now = ds_accel__boot_ms();
    struct ds_accel__cache_table *table = &cache->table;
    size_t bytes = DS_ACCEL__RECORD_FILE_HEAD_BYTES;
    size_t kept = 0;
    size_t first;

    assert(cache->is_useful != NULL);
    for (size_t i = 0; i < table->count; i++) {
        if (cache->is_useful(&table->records[i], now)) {
            table->records[kept++] = table->records[i];
        }
    }
    /* Find the newest records that fit into the limits. The records are in order of creation. */
    for (first = kept; first > 0 && kept - first < RECORD_LIMIT; first--) {
        bytes += ds_accel__record_bytes(&table->records[first - 1]);
        if (bytes > FILE_LIMIT_BYTES) {
            break;
        }
    }
    if (first > 0) {
        memmove(table->records, table->records + first, (kept - first) * sizeof(table->records[0]));
    }
    table->count = kept - first;
    assert(table->count <= RECORD_LIMIT && table->count <= table->capacity);
}

int32_t ds_accel__cache_store(struct ds_accel__cache *cache)
{
    struct ds_accel__text text = {0};
    int32_t status = DS_ACCEL_OK;

    if (!cache->is_dirty || !cache->is_writable) {
        return DS_ACCEL_OK;
    }
    /*
     * ds_accel__cache_lock() was called before the table was changed, so the table contains the
     * records of other processes.
     */
    assert(cache->is_open && cache->lock_fd >= 0);
    assert(!(cache->is_locked && cache->is_passed_by));
    if (cache->is_passed_by) { /* do not overwrite the results of the lock's holder */
        cache->is_dirty = false;
        return DS_ACCEL_OK;
    }
    prune(cache);
    if (cache->table.count > 0) {
        status = ds_accel__cache_format(&cache->table, cache->machine, &text);
    }
    if (status >= 0) {
        if (cache->table.count > 0 ? !write_table(cache, &text) : !remove_table(cache)) {
            give_up(cache, FILE_NAME);
        }
        cache->is_dirty = false;
    }
    ds_accel__text_clear(&text);
    return status;
}

/* ---- opening and locking -------------------------------------------------------------------- */

int32_t ds_accel__cache_open(struct ds_accel__cache *cache,
                             const struct ds_accel__cache_place *place)
{
    const char *mode = place->mode;
    bool is_private;
    bool known = false;
    bool can_make;
    int error;
    int32_t status;

    ds_accel__cache_close(cache);
    assert(cache->table.count == 0 && cache->files == NULL);
    cache->log = place->log;
    cache->is_useful = place->is_useful;
    cache->spare = place->spare;
    cache->problem[0] = '\0';
    cache->has_no_directory = cache->is_refused = false;
    if (mode != NULL && strcmp(mode, "off") == 0) {
        snprintf(cache->problem, sizeof(cache->problem), "DS_ACCEL_CACHE is off");
        return DS_ACCEL_OK;
    }
    cache->is_writable = mode == NULL || strcmp(mode, "rw") == 0;
    can_make = cache->is_writable && !cache->is_looked_at;
    free(cache->directory);
    status = ds_accel__cache_directory_find(place->directory, &cache->directory, &is_private,
                                            cache->problem, sizeof(cache->problem));
    if (status < 0) {
        return status;
    }
    if (cache->problem[0] != '\0') {
        cache->has_no_directory = cache->directory[0] == '\0';
        cache->is_refused = !cache->has_no_directory;
        if (cache->is_refused) {
            ds_accel__log(cache->log, "cache", is_private ? DS_ACCEL_LOG_INFO : DS_ACCEL_LOG_WARN,
                          "not used: %s", cache->problem);
        }
        return DS_ACCEL_OK;
    }
    status = identify(&cache->machine, &known);
    if (status >= 0 && !known) {
        snprintf(cache->problem, sizeof(cache->problem),
                 "/proc does not report when this machine was started");
    }
    if (status < 0 || !known) {
        return status;
    }
    cache->directory_fd = ds_accel__cache_directory_open(
        cache->directory, is_private, can_make, &error, cache->problem, sizeof(cache->problem));
    if (cache->directory_fd < 0 && error == ENOENT && !can_make && cache->is_writable &&
        ds_accel__cache_directory_has_parent(cache->directory)) {
        cache->problem[0] = '\0'; /* not a problem: the directory is created for the first record */
        cache->has_no_directory = true;
        return DS_ACCEL_OK;
    }
    if (cache->directory_fd < 0) {
        cache->has_no_directory = error == ENOENT && !can_make;
        cache->is_refused = !cache->has_no_directory;
        ds_accel__log(cache->log, "cache",
                      error == ENOENT || error == EROFS || (is_private && error == EACCES)
                          ? DS_ACCEL_LOG_INFO
                          : DS_ACCEL_LOG_WARN,
                      "not used: %s", cache->problem);
        return DS_ACCEL_OK;
    }
    assert(cache->directory_fd >= 0 && cache->lock_fd < 0);
    cache->is_open = true;
    cache->begin_ms = ds_accel__boot_ms();
    return DS_ACCEL_OK;
}

int32_t ds_accel__cache_read(struct ds_accel__cache *cache)
{
    return read_table(cache);
}

int32_t ds_accel__cache_read_file(const struct ds_accel__cache_place *place, const char *name,
                                  size_t limit_bytes, char **data_out, size_t *size_out)
{
    const char *mode = place->mode;
    bool is_private;
    char *directory;
    const char *wrong;
    char problem[512];
    int32_t status;
    int error;
    int fd = -1;

    *data_out = NULL;
    if (mode != NULL && strcmp(mode, "off") == 0) {
        return DS_ACCEL_OK;
    }
    /* An evaluation logs problems of the directory, so they are not logged here. */
    status = ds_accel__cache_directory_find(place->directory, &directory, &is_private, problem,
                                            sizeof(problem));
    if (status >= 0 && problem[0] == '\0') {
        fd = ds_accel__cache_directory_open(directory, is_private, false, &error, problem,
                                            sizeof(problem));
    }
    if (fd >= 0) {
        status = ds_accel__cache_file_read(fd, name, limit_bytes, data_out, size_out, &wrong);
        if (wrong != NULL) {
            ds_accel__log(place->log, "cache", DS_ACCEL_LOG_WARN, "%s/%s is ignored: %s", directory,
                          name, wrong);
        }
        close(fd);
    }
    free(directory);
    return status;
}

void ds_accel__cache_unlock(struct ds_accel__cache *cache)
{
    if (cache->is_open && cache->lock_fd >= 0) {
        if (cache->is_locked) {
            ds_accel__cache_lock_release(cache->lock_fd);
        }
        close(cache->lock_fd);
        cache->lock_fd = -1;
        cache->is_locked = cache->is_passed_by = false;
        cache->is_dirty = false; /* true only after a lack of memory; storing needs the lock */
    }
}

void ds_accel__cache_close(struct ds_accel__cache *cache)
{
    if (cache->is_open) {
        assert(cache->directory_fd >= 0);
        ds_accel__cache_unlock(cache);
        assert(cache->lock_fd < 0 && !cache->is_locked);
        close(cache->directory_fd);
    }
    cache->directory_fd = cache->lock_fd = -1;
    cache->is_open = cache->is_writable = cache->is_dirty = cache->has_warned = false;
    ds_accel__cache_table_clear(&cache->table);
    while (cache->files != NULL) {
        struct ds_accel__cache_file *next = cache->files->next;

        free(cache->files->data);
        free(cache->files);
        cache->files = next;
    }
}

void ds_accel__cache_clear(struct ds_accel__cache *cache)
{
    ds_accel__cache_close(cache);
    free(cache->directory);
    cache->directory = NULL;
}

static void say_unlocked(const struct ds_accel__cache *cache)
{
    if (cache->stopped_pid != 0) {
        ds_accel__log(cache->log, "cache", DS_ACCEL_LOG_INFO,
                      "process %d is stopped while it probes plugins; not waiting for it",
                      cache->stopped_pid);
    } else {
        ds_accel__log(cache->log, "cache", DS_ACCEL_LOG_INFO,
                      "another process is still probing plugins; not waiting for it%s",
                      cache->is_passed_by ? "" : " any longer");
    }
}

int32_t ds_accel__cache_lock(struct ds_accel__cache *cache, uint64_t limit_ms)
{
    if (!cache->is_open || !cache->is_writable || cache->lock_fd >= 0) {
        return DS_ACCEL_OK;
    }
    assert(!cache->is_locked && !cache->is_passed_by);
    cache->lock_fd = openat(cache->directory_fd, LOCK_NAME,
                            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (cache->lock_fd < 0) {
        snprintf(cache->problem, sizeof(cache->problem), "cannot write in %s: %s", cache->directory,
                 strerror(errno));
        ds_accel__log(cache->log, "cache", DS_ACCEL_LOG_WARN, "%s", cache->problem);
        cache->is_writable = false;
        return DS_ACCEL_OK;
    }
    cache->is_locked = ds_accel__cache_lock_within(cache->lock_fd, limit_ms, &cache->stopped_pid);
    cache->is_passed_by = !cache->is_locked && limit_ms == 0;
    if (!cache->is_locked) {
        say_unlocked(cache);
    }
    return read_table(cache);
}

struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache,
                                              struct ds_accel__key key)
{
    size_t count = cache->is_open ? cache->table.count : 0;

    for (size_t step = 0; step < count; step++) {
        size_t i = (cache->next + step) % count;
        struct ds_accel__record *record = &cache->table.records[i];

        if (ds_accel__key_is_same(record->data.key, key)) {
            cache->next = i;
            return record;
        }
    }
    return NULL;
}

struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache,
                                             struct ds_accel__key key)
{
    struct ds_accel__record *record = ds_accel__cache_find(cache, key);

    if (record == NULL) {
        record = ds_accel__cache_table_add(&cache->table);
    }
    if (record != NULL) {
        record->data.key = key;
    }
    return record;
}
