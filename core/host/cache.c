/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The file of verdicts: one per user and machine, in a folder that nobody else may write to and
 * that no other machine sees: the session's, for root /var/cache, else a private one in the
 * temporary folder, where anybody may have made that name before. It is read whole, believed only
 * if it is whole (checksum) and of this boot, machine, user and version, and written anew beside
 * itself and renamed, so that a reader sees the old one or the new one. What cannot be read is as
 * if it were not there: the answer takes longer.
 *
 * Stamps are of CLOCK_BOOTTIME, so that a wall clock that jumps changes nothing; a stamp from the
 * future has expired.
 *
 *     verdict.c -> cache_open -> find: key -> record                 nothing found, or expired
 *                                   |            |                        |
 *                                   |         verdict           cache_lock, read again, probe
 *                                   +-- cache_add, cache_store: temp + fsync + rename -+
 */
#include "host/cache.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "config/prefix.h"
#include "host/context.h"
#include "host/registry.h"
#include "host/verdict.h"
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME DS_ACCEL__CACHE_FILE
#define LOCK_NAME "lock"
#define SIGNATURE_BYTES 16
#define PRIVATE_NAME "/ds-accel-" /* and the user's number */
#define FILE_LIMIT_BYTES (4 * 1024 * 1024u)
#define RECORD_LIMIT 1024u
#define FORMAT 1u
static const char magic[8] = "DSACCEL";

struct file_head {
    char magic[8];
    uint32_t format;
    uint32_t record_count;
    uint64_t machine;  /* boot, machine, user, version */
    uint64_t checksum; /* of all that follows */
};

struct record_head {
    uint32_t size_bytes; /* of the record, texts and padding included */
    uint32_t text_bytes;
    struct ds_accel__record_data data;
};

/* ---- the table ------------------------------------------------------------------------------ */

static bool reserve(struct ds_accel__cache_table *table, size_t capacity)
{
    struct ds_accel__record *larger = realloc(table->records, capacity * sizeof(*table->records));

    if (larger == NULL) {
        return false;
    }
    table->records = larger;
    table->capacity = capacity;
    return true;
}

static struct ds_accel__record *add_record(struct ds_accel__cache_table *table)
{
    if (table->count == table->capacity &&
        !reserve(table, table->capacity != 0 ? 2 * table->capacity : 32)) {
        return NULL;
    }
    memset(&table->records[table->count], 0, sizeof(table->records[0]));
    return &table->records[table->count++];
}

void ds_accel__cache_table_clear(struct ds_accel__cache_table *table)
{
    free(table->records);
    memset(table, 0, sizeof(*table));
}

/* The texts of a record: exactly as many as there are, each ended within its bytes. */
static bool take_texts(struct ds_accel__record *record, const char *at, size_t left)
{
    for (size_t i = 0; i < DS_ACCEL__RECORD_TEXTS; i++) {
        const char *end = left > 0 ? memchr(at, '\0', left) : NULL;

        if (end == NULL) {
            return false;
        }
        record->texts[i] = at;
        left -= (size_t)(end - at) + 1;
        at = end + 1;
    }
    return left == 0;
}

static bool is_sound(const struct ds_accel__record *record)
{
    const char *reason = record->texts[DS_ACCEL__RECORD_REASON];
    const char *strike = record->texts[DS_ACCEL__RECORD_STRIKE];

    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        if (record->data.gates[gate] > DS_ACCEL__GATE_FAILED) {
            return false;
        }
    }
    /* NOT_PROBED with strikes alone; the others are not what a plugin's asking ends with. */
    return (record->data.state == DS_ACCEL_STATE_NOT_PROBED ||
            (record->data.state >= DS_ACCEL_STATE_AVAILABLE &&
             record->data.state <= DS_ACCEL_STATE_TIMED_OUT)) &&
           record->data.stage < DS_ACCEL__GATE_COUNT &&
           record->data.device_count <= DS_ACCEL__DEVICE_LIMIT &&
           ds_accel__is_backend_name(record->texts[DS_ACCEL__RECORD_NAME]) &&
           ds_accel__reason_is_code(reason) && ds_accel__reason_is_code(strike) &&
           memchr(record->data.variant, '\0', sizeof(record->data.variant)) != NULL;
}

const char *ds_accel__cache_parse(const void *data, size_t size_bytes, uint64_t machine,
                                  struct ds_accel__cache_table *table)
{
    const char *at = data;
    struct file_head head;

    if (size_bytes < sizeof(head)) {
        return "it is cut off";
    }
    memcpy(&head, at, sizeof(head));
    if (memcmp(head.magic, magic, sizeof(magic)) != 0) {
        return "it is not a file of verdicts";
    }
    if (head.format != FORMAT || head.machine != machine) {
        return ""; /* of another version, boot or machine: not worth a word */
    }
    at += sizeof(head);
    size_bytes -= sizeof(head);
    if (ds_accel__hash(at, size_bytes, FORMAT) != head.checksum) {
        return "its checksum is wrong";
    }
    if (head.record_count > 0 && head.record_count <= size_bytes / sizeof(struct record_head) &&
        !reserve(table, head.record_count)) {
        return ds_accel__cache_no_memory;
    }
    for (uint32_t i = 0; i < head.record_count; i++) {
        struct record_head record_head;
        struct ds_accel__record *record;

        if (size_bytes < sizeof(record_head)) {
            return "it ends within a record";
        }
        memcpy(&record_head, at, sizeof(record_head));
        if (record_head.size_bytes > size_bytes || record_head.size_bytes % 8 != 0 ||
            record_head.size_bytes < sizeof(record_head) ||
            record_head.text_bytes > record_head.size_bytes - sizeof(record_head)) {
            return "a record has no sensible size";
        }
        record = add_record(table);
        if (record == NULL) {
            return ds_accel__cache_no_memory;
        }
        record->data = record_head.data;
        if (!take_texts(record, at + sizeof(record_head), record_head.text_bytes) ||
            !is_sound(record)) {
            return "a record does not make sense";
        }
        at += record_head.size_bytes;
        size_bytes -= record_head.size_bytes;
    }
    return size_bytes == 0 ? NULL : "it has bytes behind its records";
}

const char ds_accel__cache_no_memory[] = "host memory is exhausted";

static size_t record_bytes(const struct ds_accel__record *record)
{
    size_t bytes = sizeof(struct record_head);

    for (size_t i = 0; i < DS_ACCEL__RECORD_TEXTS; i++) {
        bytes += record->texts[i] != NULL ? strlen(record->texts[i]) + 1 : 1;
    }
    return (bytes + 7) / 8 * 8;
}

int32_t ds_accel__cache_format(const struct ds_accel__cache_table *table, uint64_t machine,
                               struct ds_accel__text *text)
{
    struct file_head head = {.format = FORMAT, .machine = machine};

    memcpy(head.magic, magic, sizeof(magic));
    ds_accel__text_add_bytes(text, &head, sizeof(head));
    for (size_t i = 0; i < table->count; i++) {
        const struct ds_accel__record *record = &table->records[i];
        struct record_head record_head = {.data = record->data};

        for (size_t t = 0; t < DS_ACCEL__RECORD_TEXTS; t++) {
            record_head.text_bytes +=
                record->texts[t] != NULL ? (uint32_t)strlen(record->texts[t]) + 1 : 1;
        }
        record_head.size_bytes = (uint32_t)record_bytes(record);
        ds_accel__text_add_bytes(text, &record_head, sizeof(record_head));
        for (size_t t = 0; t < DS_ACCEL__RECORD_TEXTS; t++) {
            const char *value = record->texts[t] != NULL ? record->texts[t] : "";

            ds_accel__text_add_bytes(text, value, strlen(value) + 1);
        }
        ds_accel__text_add_bytes(text, "\0\0\0\0\0\0\0",
                                 record_head.size_bytes - sizeof(record_head) -
                                     record_head.text_bytes);
        head.record_count++;
    }
    if (text->failed) {
        return ds_accel__no_memory();
    }
    head.checksum =
        ds_accel__hash(text->data + sizeof(head), text->size_bytes - sizeof(head), FORMAT);
    memcpy(text->data, &head, sizeof(head));
    return DS_ACCEL_OK;
}

/* ---- the folder ----------------------------------------------------------------------------- */

/*
 * Only if it is this user's own, as the XDG specification has it: su and sudo may leave another
 * user's in place, who would find a folder of ours in it that is closed to him.
 */
static char *find_runtime_dir(void)
{
    char *runtime = ds_accel__env_runtime_dir();
    struct stat info;

    if (runtime != NULL && (stat(runtime, &info) != 0 || info.st_uid != ds_accel__trusted_user())) {
        free(runtime);
        runtime = NULL;
    }
    return runtime;
}

/*
 * For a user whose session has no folder: one of this user's in the temporary one, which all users
 * share. NULL: no memory; "": none.
 */
static char *find_private_dir(void)
{
    char *temporary = ds_accel__env_temporary_dir();
    char *folder = temporary;

    if (temporary != NULL && temporary[0] != '\0') {
        folder = ds_accel__format("%s" PRIVATE_NAME "%u", temporary, (unsigned)geteuid());
        free(temporary);
    }
    return folder;
}

/* *is_private_out: it is one in a folder that other users share. */
static char *find_folder(const ds_accel_t *context, bool *is_private_out)
{
    const char *given = context->env.values[DS_ACCEL__VARIABLE_CACHE_DIR];
    char *runtime;
    char *folder;

    *is_private_out = false;
    if (context->cache_dir != NULL) {
        return strdup(context->cache_dir);
    }
    if (given != NULL) {
        return strdup(given);
    }
    runtime = find_runtime_dir();
    if (runtime != NULL) {
        folder = ds_accel__format("%s/ds-accel", runtime);
        free(runtime);
        return folder;
    }
    *is_private_out = geteuid() != 0;
    return geteuid() == 0 ? strdup(ds_accel__built_for.cache_dir) : find_private_dir();
}

/* Of f_type in statfs(2): file systems that several machines may have at once. */
static bool is_shared(int fd)
{
    static const uint32_t types[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x73757245, /* Coda */
        0x5346414f, /* AFS */
        0x6b414653, /* AFS of the kernel */
        0x00c36400, /* Ceph */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x7461636f, /* OCFS2 */
        0x01161970, /* GFS2 */
    };
    struct statfs info;

    if (fstatfs(fd, &info) != 0) {
        return true;
    }
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(types); i++) {
        if ((uint32_t)info.f_type == types[i]) {
            return true;
        }
    }
    return false;
}

/*
 * Of the temporary folder and those on the way to it: nobody but root and this user may put
 * another in its place. Others may add names where the sticky bit keeps them from taking away
 * what is not theirs.
 */
static bool is_kept(const struct stat *info)
{
    return (info->st_uid == 0 || info->st_uid == ds_accel__trusted_user()) &&
           ((info->st_mode & 022) == 0 || (info->st_mode & S_ISVTX) != 0);
}

/* A path that ends here. */
static bool is_kept_path(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && is_kept(&info);
}

/* The folder itself, and each on the way to it, which has no links. */
static bool is_kept_way(char *path)
{
    bool passed = is_kept_path("/") && is_kept_path(path);

    for (char *slash = strchr(path + 1, '/'); slash != NULL && passed;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        passed = is_kept_path(path);
        *slash = '/';
    }
    return passed;
}

/* NULL: it is of this machine alone. */
static const char *check_shared(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const char *wrong = fd < 0 ? strerror(errno) : NULL;

    if (fd >= 0) {
        wrong = is_shared(fd) ? "other machines may share it" : NULL;
        close(fd);
    }
    return wrong;
}

/*
 * The folder that the private one is in: *path becomes its way without links. *wrong_out NULL: it
 * is one to use.
 */
static int32_t check_temporary(char **path, const char **wrong_out)
{
    char *name = strrchr(*path, '/');
    char *resolved;
    char *whole;

    *name = '\0';
    resolved = realpath((*path)[0] != '\0' ? *path : "/", NULL);
    *name = '/';
    if (resolved == NULL) {
        *wrong_out = strerror(errno);
        return errno == ENOMEM ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    *wrong_out = is_kept_way(resolved) ? check_shared(resolved)
                                       : "another user could put another folder in its place";
    whole = ds_accel__format("%s%s", resolved[1] != '\0' ? resolved : "", name);
    free(resolved);
    if (whole == NULL) {
        return ds_accel__no_memory();
    }
    free(*path);
    *path = whole;
    return DS_ACCEL_OK;
}

static void say_owner(const char *path, const struct stat *info, bool is_private, char *problem,
                      size_t problem_size)
{
    snprintf(problem, problem_size,
             "%s: it has owner %u, mode %04o; expected a folder of this user that nobody else may "
             "%s",
             path, (unsigned)info->st_uid, (unsigned)(info->st_mode & 07777),
             is_private ? "open" : "write to");
}

/* Why open() failed, which follows no link. Returns errno's number, EPERM for another user's. */
static int explain_open(const char *path, bool is_private, int error, char *problem,
                        size_t problem_size)
{
    struct stat info;

    if (lstat(path, &info) != 0 || (S_ISDIR(info.st_mode) && error != EACCES)) {
        snprintf(problem, problem_size, "%s: %s", path, strerror(error));
        return error;
    }
    if (S_ISDIR(info.st_mode)) {
        say_owner(path, &info, is_private, problem, problem_size);
        return EPERM;
    }
    snprintf(problem, problem_size, "%s: %s", path,
             S_ISLNK(info.st_mode) ? "it is a link" : "it is no folder");
    return error;
}

/*
 * Open it, made if need be; only if it is this user's (root's if the process has raised rights:
 * what the caller writes must not count as found) and nobody else may write to it, or, if it is
 * private, not even read it. -1: *error_out is ENOENT if there is none, and problem says why.
 */
static int open_folder(const char *path, bool is_private, bool can_make, int *error_out,
                       char *problem, size_t problem_size)
{
    mode_t closed = is_private ? 077 : 022;
    struct stat info;
    int fd;

    *error_out = 0;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && can_make) { /* it is there at most starts */
        *error_out = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0) {
        *error_out = explain_open(path, is_private, *error_out != 0 ? *error_out : errno, problem,
                                  problem_size);
        return -1;
    }
    if (fstat(fd, &info) != 0 || info.st_uid != ds_accel__trusted_user() ||
        (info.st_mode & closed) != 0) {
        *error_out = EPERM;
        say_owner(path, &info, is_private, problem, problem_size);
        close(fd);
        return -1;
    }
    return fd;
}

/* Could it be made? */
static bool has_parent(const char *path)
{
    size_t length = strlen(path);
    char *parent;
    bool done;

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 1 && path[length - 1] != '/') {
        length--;
    }
    parent = strndup(path, length);
    done = parent != NULL && access(parent, W_OK | X_OK) == 0;
    free(parent);
    return done;
}

/* problem says why it is none to use, or is empty. A relative path would be another folder in each
 * process's directory. */
static int32_t check_folder(char **folder, bool is_private, char *problem, size_t problem_size)
{
    const char *wrong = NULL;
    int32_t status = DS_ACCEL_OK;

    problem[0] = '\0';
    if ((*folder)[0] == '\0') {
        snprintf(problem, problem_size,
                 "a program with more rights than its caller remembers nothing, unless it is "
                 "root's");
    } else if ((*folder)[0] != '/') {
        snprintf(problem, problem_size, "%s is no absolute path", *folder);
    } else if (is_private) {
        status = check_temporary(folder, &wrong);
    }
    if (wrong != NULL) {
        snprintf(problem, problem_size, "%s: the folder that it would be in: %s", *folder, wrong);
    }
    return status;
}

/* ---- who and where this is ------------------------------------------------------------------ */

/* Hash of a small file; *found_out stays as it is if it cannot be read. */
static int32_t hash_file(const char *path, uint64_t *hash, bool *found_out)
{
    char *text;
    int32_t status = ds_accel__machine_read(&ds_accel__machine_here, path, &text);

    if (status >= 0 && text != NULL) {
        *hash = ds_accel__hash_text(text, *hash);
        *found_out = true;
    }
    free(text);
    return status;
}

/* Boot, machine, user and version. *known_out: there is a boot to speak of. */
static int32_t identify(uint64_t *machine_out, bool *known_out)
{
    /* Builds of one version may still differ in what they store. */
    const size_t sizes[] = {sizeof(struct record_head), DS_ACCEL__RECORD_TEXTS};
    uid_t uid = geteuid();
    uint64_t machine = ds_accel__hash_text(DS_ACCEL_VERSION, FORMAT);
    bool ignored;
    int32_t status;

    *known_out = false;
    machine = ds_accel__hash(sizes, sizeof(sizes), machine);
    machine = ds_accel__hash(&uid, sizeof(uid), machine);
    status = hash_file("/proc/sys/kernel/random/boot_id", &machine, known_out);
    if (status >= 0) {
        status = hash_file("/etc/machine-id", &machine, &ignored);
    }
    *machine_out = machine;
    return status;
}

/* ---- reading and writing -------------------------------------------------------------------- */

/* Takes data. Records of the table borrow its texts. */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data)
{
    struct ds_accel__cache_file *file = malloc(sizeof(*file));

    if (file == NULL) {
        free(data);
        ds_accel__no_memory();
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    file->data = data;
    file->next = cache->files;
    cache->files = file;
    return DS_ACCEL_OK;
}

/* Said once each time that plugins are asked: the file is read again under the lock. */
static void leave_out(const ds_accel_t *context, struct ds_accel__cache *cache, const char *problem)
{
    if (!cache->has_warned) {
        cache->has_warned = true;
        ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_WARN,
                      "%s/" FILE_NAME " is left out%s: %s", cache->folder,
                      cache->is_writable ? " and made anew" : "", problem);
    }
}

static int32_t parse_file(const ds_accel_t *context, struct ds_accel__cache *cache, char *data,
                          size_t size)
{
    const char *problem = ds_accel__cache_parse(data, size, cache->machine, &cache->table);

    if (problem == ds_accel__cache_no_memory) {
        return ds_accel__no_memory();
    }
    if (problem != NULL) {
        ds_accel__cache_table_clear(&cache->table);
    }
    if (problem != NULL && problem[0] != '\0') {
        leave_out(context, cache, problem);
    }
    return DS_ACCEL_OK;
}

/* *size: as the file said; less if it has become shorter, as the parser will see. */
static int32_t read_data(int fd, size_t *size, char **data_out)
{
    char *data = malloc(*size + 1);
    size_t at = 0;

    if (data == NULL) {
        return ds_accel__no_memory();
    }
    while (at < *size) {
        ssize_t count = read(fd, data + at, *size - at);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        at += (size_t)count;
    }
    *size = at;
    *data_out = data;
    return DS_ACCEL_OK;
}

/* A regular file of this user that nobody else may write to. */
static bool is_own_file(int fd, struct stat *info)
{
    return fstat(fd, info) == 0 && S_ISREG(info->st_mode) &&
           info->st_uid == ds_accel__trusted_user() && (info->st_mode & 022) == 0;
}

/* *data_out NULL: there is none, or *problem_out says why not to believe it. */
static int32_t read_own_file(int folder_fd, const char *name, size_t limit_bytes, char **data_out,
                             size_t *size_out, const char **problem_out)
{
    struct stat info;
    int32_t status = DS_ACCEL_OK;
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    *data_out = NULL;
    *problem_out = NULL;
    if (fd < 0 && errno == ENOENT) {
        return DS_ACCEL_OK;
    }
    if (fd < 0 || !is_own_file(fd, &info)) {
        *problem_out = "it is not a file of this user alone";
    } else if (info.st_size > (off_t)limit_bytes) {
        *problem_out = "it is larger than it can be";
    } else {
        *size_out = (size_t)info.st_size;
        status = read_data(fd, size_out, data_out);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

static int32_t read_table(const ds_accel_t *context, struct ds_accel__cache *cache)
{
    const char *problem;
    size_t size;
    char *data;
    int32_t status =
        read_own_file(cache->folder_fd, FILE_NAME, FILE_LIMIT_BYTES, &data, &size, &problem);

    ds_accel__cache_table_clear(&cache->table);
    if (problem != NULL) {
        leave_out(context, cache, problem);
    }
    if (status >= 0 && data != NULL) {
        status = ds_accel__cache_keep(cache, data);
        status = status < 0 ? status : parse_file(context, cache, data, size);
    }
    return status;
}

static bool write_data(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, data, size);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        data += count;
        size -= (size_t)count;
    }
    return fsync(fd) == 0;
}

/* Put it in the file's place, also in that of a folder, if that is empty. */
static bool put_in_place(int folder, const char *from, const char *to)
{
    if (renameat(folder, from, folder, to) == 0) {
        return true;
    }
    return errno == EISDIR && unlinkat(folder, to, AT_REMOVEDIR) == 0 &&
           renameat(folder, from, folder, to) == 0;
}

/* Errno says what went wrong. */
static bool write_file(int folder, const char *fresh, const char *name,
                       const struct ds_accel__text *text)
{
    bool done;
    int error;
    int fd;

    if (!ds_accel__file_may_have(text->size_bytes)) {
        errno = EFBIG;
        return false;
    }
    fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    done = write_data(fd, text->data, text->size_bytes);
    done = close(fd) == 0 && done && put_in_place(folder, fresh, name);
    if (!done) {
        error = errno;
        unlinkat(folder, fresh, 0);
        errno = error;
    }
    return done;
}

static bool write_beside(const struct ds_accel__cache *cache, const char *name,
                         const struct ds_accel__text *text)
{
    char fresh[64];

    snprintf(fresh, sizeof(fresh), "%s.%d.%d", name, (int)getpid(), (int)gettid());
    return write_file(cache->folder_fd, fresh, name, text);
}

/* Over the bytes that are there, which takes no room. Should it stop half-way, it is made anew. */
static bool overwrite_file(int folder, const char *name, const struct ds_accel__text *text)
{
    int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    bool done;

    if (fd < 0) {
        return false;
    }
    done = is_own_file(fd, &info) && (off_t)text->size_bytes <= info.st_size &&
           write_data(fd, text->data, text->size_bytes) &&
           ftruncate(fd, (off_t)text->size_bytes) == 0;
    return close(fd) == 0 && done;
}

static bool is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* On a full disk in the room of the configuration, which can be read from its files; or, to forget,
 * in its own. */
static bool write_table(const ds_accel_t *context, const struct ds_accel__cache *cache,
                        const struct ds_accel__text *text)
{
    bool done = write_beside(cache, FILE_NAME, text);
    int error = errno;

    if (!done && is_full(error)) {
        ds_accel__snapshot_forget(context);
        done = write_beside(cache, FILE_NAME, text);
        error = errno;
    }
    if (!done && is_full(error) && cache->is_forgetting) {
        done = overwrite_file(cache->folder_fd, FILE_NAME, text);
    }
    errno = error;
    return done;
}

/* Nothing is left to keep; a full disk does not hinder that. */
static bool remove_table(const struct ds_accel__cache *cache)
{
    int folder = cache->folder_fd;

    return unlinkat(folder, FILE_NAME, 0) == 0 || errno == ENOENT ||
           (errno == EISDIR && unlinkat(folder, FILE_NAME, AT_REMOVEDIR) == 0);
}

/* A full disk, a folder that became read-only: said once, and nothing else. */
static void give_up(const ds_accel_t *context, struct ds_accel__cache *cache, const char *name)
{
    snprintf(cache->problem, sizeof(cache->problem), "cannot write %s/%s: %s", cache->folder, name,
             strerror(errno));
    ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_WARN, "%s", cache->problem);
    cache->is_writable = false;
}

void ds_accel__cache_write_file(const ds_accel_t *context, struct ds_accel__cache *cache,
                                const char *name, const struct ds_accel__text *text)
{
    if (!write_beside(cache, name, text)) {
        give_up(context, cache, name);
    }
}

/* Records that say nothing any more, and the oldest of too many. */
static void prune(struct ds_accel__cache *cache)
{
    uint64_t now = ds_accel__boot_ms();
    struct ds_accel__cache_table *table = &cache->table;
    size_t bytes = sizeof(struct file_head);
    size_t kept = 0;
    size_t first;

    for (size_t i = 0; i < table->count; i++) {
        if (ds_accel__record_is_useful(&table->records[i], now)) {
            table->records[kept++] = table->records[i];
        }
    }
    /* In the order in which they were made, from the newest on. */
    for (first = kept; first > 0 && kept - first < RECORD_LIMIT; first--) {
        bytes += record_bytes(&table->records[first - 1]);
        if (bytes > FILE_LIMIT_BYTES) {
            break;
        }
    }
    if (first > 0) {
        memmove(table->records, table->records + first, (kept - first) * sizeof(table->records[0]));
    }
    table->count = kept - first;
}

int32_t ds_accel__cache_store(const ds_accel_t *context, struct ds_accel__cache *cache)
{
    struct ds_accel__text text = {0};
    int32_t status = DS_ACCEL_OK;

    if (!cache->is_dirty || !cache->is_writable) {
        return DS_ACCEL_OK;
    }
    if (cache->is_passed_by) { /* what the other one finds out must not be lost for it */
        cache->is_dirty = false;
        return DS_ACCEL_OK;
    }
    prune(cache);
    if (cache->table.count > 0) {
        status = ds_accel__cache_format(&cache->table, cache->machine, &text);
    }
    if (status >= 0) {
        if (cache->table.count > 0 ? !write_table(context, cache, &text) : !remove_table(cache)) {
            give_up(context, cache, FILE_NAME);
        }
        cache->is_dirty = false;
    }
    ds_accel__text_clear(&text);
    return status;
}

/* ---- opening, locking ----------------------------------------------------------------------- */

int32_t ds_accel__cache_open(const ds_accel_t *context, struct ds_accel__cache *cache)
{
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_CACHE];
    bool is_private;
    bool known = false;
    bool can_make;
    int error;
    int32_t status;

    ds_accel__cache_close(cache);
    cache->problem[0] = '\0';
    cache->has_no_folder = cache->is_refused = false;
    if (mode != NULL && strcmp(mode, "off") == 0) {
        snprintf(cache->problem, sizeof(cache->problem), "DS_ACCEL_CACHE is off");
        return DS_ACCEL_OK;
    }
    cache->is_writable = mode == NULL || strcmp(mode, "rw") == 0;
    can_make = cache->is_writable && !cache->is_looked_at;
    free(cache->folder);
    cache->folder = find_folder(context, &is_private);
    if (cache->folder == NULL) {
        return ds_accel__no_memory();
    }
    status = check_folder(&cache->folder, is_private, cache->problem, sizeof(cache->problem));
    if (status < 0) {
        return status;
    }
    if (cache->problem[0] != '\0') {
        cache->has_no_folder = cache->folder[0] == '\0';
        cache->is_refused = !cache->has_no_folder;
        if (cache->is_refused) {
            ds_accel__log(&context->log, "cache",
                          is_private ? DS_ACCEL_LOG_INFO : DS_ACCEL_LOG_WARN, "not used: %s",
                          cache->problem);
        }
        return DS_ACCEL_OK;
    }
    status = identify(&cache->machine, &known);
    if (status >= 0 && !known) {
        snprintf(cache->problem, sizeof(cache->problem),
                 "/proc does not tell when this machine was started");
    }
    if (status < 0 || !known) {
        return status;
    }
    cache->folder_fd = open_folder(cache->folder, is_private, can_make, &error, cache->problem,
                                   sizeof(cache->problem));
    if (cache->folder_fd < 0 && error == ENOENT && !can_make && cache->is_writable &&
        has_parent(cache->folder)) {
        cache->problem[0] = '\0'; /* it will be made when there is something to remember */
        cache->has_no_folder = true;
        return DS_ACCEL_OK;
    }
    if (cache->folder_fd < 0) {
        cache->has_no_folder = error == ENOENT && !can_make;
        cache->is_refused = !cache->has_no_folder;
        ds_accel__log(&context->log, "cache",
                      error == ENOENT || error == EROFS || (is_private && error == EACCES)
                          ? DS_ACCEL_LOG_INFO
                          : DS_ACCEL_LOG_WARN,
                      "not used: %s", cache->problem);
        return DS_ACCEL_OK;
    }
    cache->is_open = true;
    cache->begin_ms = ds_accel__boot_ms();
    return DS_ACCEL_OK;
}

int32_t ds_accel__cache_read(const ds_accel_t *context, struct ds_accel__cache *cache)
{
    return read_table(context, cache);
}

int32_t ds_accel__cache_read_file(const ds_accel_t *context, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out)
{
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_CACHE];
    bool is_private = false;
    char *folder = mode == NULL || strcmp(mode, "off") != 0 ? find_folder(context, &is_private)
                                                            : strdup("");
    int32_t status = DS_ACCEL_OK;
    const char *wrong;
    char problem[512];
    int error;
    int fd = -1;

    *data_out = NULL;
    if (folder == NULL) {
        return ds_accel__no_memory();
    }
    /* What is wrong with it is said by whoever asks plugins. */
    status = check_folder(&folder, is_private, problem, sizeof(problem));
    if (status >= 0 && problem[0] == '\0') {
        fd = open_folder(folder, is_private, false, &error, problem, sizeof(problem));
    }
    if (fd >= 0) {
        status = read_own_file(fd, name, limit_bytes, data_out, size_out, &wrong);
        if (wrong != NULL) {
            ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_WARN, "%s/%s is left out: %s",
                          folder, name, wrong);
        }
        close(fd);
    }
    free(folder);
    return status;
}

void ds_accel__cache_unlock(struct ds_accel__cache *cache)
{
    if (cache->is_open && cache->lock_fd >= 0) {
        if (cache->is_locked) {
            flock(cache->lock_fd, LOCK_UN); /* a child that the program forked may have it too */
        }
        close(cache->lock_fd);
        cache->lock_fd = -1;
        cache->is_locked = cache->is_passed_by = false;
    }
}

void ds_accel__cache_close(struct ds_accel__cache *cache)
{
    if (cache->is_open) {
        ds_accel__cache_unlock(cache);
        close(cache->folder_fd);
    }
    cache->folder_fd = cache->lock_fd = -1;
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
    free(cache->folder);
    cache->folder = NULL;
}

/* Who holds the lock, so that a waiter can see whether there is anything to wait for. Over the
 * bytes that are there, which takes no room; without room for the first ones nobody knows. */
static void sign_lock(int fd)
{
    char text[SIGNATURE_BYTES + 1];

    snprintf(text, sizeof(text), "%-*d\n", SIGNATURE_BYTES - 1, (int)getpid());
    if (!ds_accel__file_may_have(SIGNATURE_BYTES) ||
        pwrite(fd, text, SIGNATURE_BYTES, 0) != SIGNATURE_BYTES) {
        return; /* then its waiters wait for as long as they have to */
    }
}

/* The process that signed it last; 0: none. */
static pid_t read_signature(int fd)
{
    char text[SIGNATURE_BYTES + 1] = "";
    long pid = pread(fd, text, SIGNATURE_BYTES, 0) == SIGNATURE_BYTES ? strtol(text, NULL, 10) : 0;

    return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* Stopped by a signal (Ctrl-Z) or by a debugger. */
static bool is_stopped(pid_t pid)
{
    char path[32];
    char text[512] = ""; /* the name in it has at most 64 bytes */
    const char *state;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    if (read(fd, text, sizeof(text) - 1) <= 0) {
        text[0] = '\0';
    }
    close(fd);
    state = strrchr(text, ')');
    return state != NULL && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

/*
 * Wait for others who are asking plugins, but not for ever: one of them may hang. One that is
 * stopped finds nothing out until somebody lets it go on: *stopped_out is that process. It has to
 * be seen so twice, because the one that signed before may not have written its name yet.
 */
static bool lock_within(int fd, uint64_t limit_ms, pid_t *stopped_out)
{
    uint64_t deadline = ds_accel__boot_ms() + limit_ms;
    long pause_ns = 500000;
    pid_t stopped = 0;

    *stopped_out = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        pid_t holder;

        if ((errno != EWOULDBLOCK && errno != EINTR) || ds_accel__boot_ms() >= deadline) {
            return false;
        }
        holder = read_signature(fd);
        if (!is_stopped(holder)) {
            stopped = 0;
        } else if (stopped == holder) {
            *stopped_out = holder;
            return false;
        } else {
            stopped = holder;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < 20000000 ? 2 * pause_ns : pause_ns;
    }
    sign_lock(fd);
    return true;
}

static void say_unlocked(const ds_accel_t *context, const struct ds_accel__cache *cache)
{
    if (cache->stopped_pid != 0) {
        ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_INFO,
                      "process %d is stopped while it asks plugins; not waiting for it",
                      cache->stopped_pid);
    } else {
        ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_INFO,
                      "another process is still asking plugins; not waiting for it%s",
                      cache->is_passed_by ? "" : " any longer");
    }
}

int32_t ds_accel__cache_lock(const ds_accel_t *context, struct ds_accel__cache *cache,
                             uint64_t limit_ms)
{
    if (!cache->is_open || !cache->is_writable || cache->lock_fd >= 0) {
        return DS_ACCEL_OK;
    }
    cache->lock_fd = openat(cache->folder_fd, LOCK_NAME,
                            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (cache->lock_fd < 0) {
        snprintf(cache->problem, sizeof(cache->problem), "cannot write in %s: %s", cache->folder,
                 strerror(errno));
        ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_WARN, "%s", cache->problem);
        cache->is_writable = false;
        return DS_ACCEL_OK;
    }
    cache->is_locked = lock_within(cache->lock_fd, limit_ms, &cache->stopped_pid);
    cache->is_passed_by = !cache->is_locked && limit_ms == 0;
    if (!cache->is_locked) {
        say_unlocked(context, cache);
    }
    return read_table(context, cache);
}

struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache, const uint64_t *key)
{
    size_t count = cache->is_open ? cache->table.count : 0;

    for (size_t step = 0; step < count; step++) {
        size_t i = (cache->next + step) % count;
        struct ds_accel__record *record = &cache->table.records[i];

        if (record->data.key[0] == key[0] && record->data.key[1] == key[1]) {
            cache->next = i;
            return record;
        }
    }
    return NULL;
}

struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache, const uint64_t *key)
{
    struct ds_accel__record *record = ds_accel__cache_find(cache, key);

    if (record == NULL) {
        record = add_record(&cache->table);
    }
    if (record != NULL) {
        memcpy(record->data.key, key, sizeof(record->data.key));
    }
    return record;
}
