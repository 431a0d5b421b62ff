/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Directories with ops that were built: store.c, store_build.c, store_locate.c, store_lock.c. */
#ifndef DS_ACCEL_OPS_STORE_H
#define DS_ACCEL_OPS_STORE_H

#include "base/private.h"
#include "base/reason.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__log;

#define DS_ACCEL__STORE_LIMIT 3
#define DS_ACCEL__STORE_ATTEMPTS 3 /* to read or rename what another host may replace */
#define DS_ACCEL__BUILD_PREFIX ".build-"
/* What to do about a directory that cannot be written, and about one without space. */
#define DS_ACCEL__STORE_OTHER "name another directory in DS_ACCEL_CACHE_DIR"
#define DS_ACCEL__STORE_REMEDY "make room, or " DS_ACCEL__STORE_OTHER

/* The caches of ops, in the order in which they are searched. */
struct ds_accel__stores {
    char *paths[DS_ACCEL__STORE_LIMIT]; /* absolute; the directories need not exist */
    size_t count;
    char *writable; /* where this user's builds go; NULL: nowhere */
    char *local; /* of this host only, for locks and what holds until the next boot; NULL: none */
    bool is_local_private; /* no other user may open local */
};

/*
 * Where the caches are: the system's, which root writes; then the user's, in $XDG_CACHE_HOME or
 * where the variable DS_ACCEL_CACHE_DIR says; if that is read-only, then one of this host, which is
 * written instead. A process with raised rights has the system's only.
 * ERR_NO_MEMORY. For ds_accel__stores_clear().
 */
DS_ACCEL__PRIVATE int32_t ds_accel__stores_locate(const ds_accel_t *context,
                                                  struct ds_accel__stores *stores);
DS_ACCEL__PRIVATE void ds_accel__stores_clear(struct ds_accel__stores *stores);

/*
 * kernel is the name of a recipe, such as "cuda/fused_adam".
 *
 * Read the manifest of a recipe. *manifest_out is NULL if there is no valid one, or if another user
 * could have changed it. ERR_NO_MEMORY; ERR_LIMIT.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__store_read(const char *store, const char *kernel,
                                               const char *recipe_digest, json_t **manifest_out);
/* The status for a directory that ds_accel__cache_directory_open() refuses with this error. */
int32_t ds_accel__store_status(const char *store, int error);
/* Whether a reason is that another user could have changed a file. */
DS_ACCEL__PRIVATE bool ds_accel__store_is_refusal(enum ds_accel__reason_id reason);
/*
 * Fail with the reason: ERR_UNTRUSTED if another user could have changed the file; ERR_INVALID if
 * it cannot be read or is no file. ERR_NO_MEMORY; ERR_LIMIT.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__store_trust(const char *path);
/*
 * Fail with the reason if what is built into this directory could not be loaded, or not be written:
 * another user could change it, it is mounted with noexec, or it is not there and cannot be made.
 * ERR_UNTRUSTED, ERR_PERMISSION or ERR_IO; ERR_NO_MEMORY; ERR_LIMIT.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__store_check(const char *store);
/* The path of a recipe's manifest. A new string; NULL if memory is exhausted. */
char *ds_accel__store_manifest(const char *store, const char *kernel, const char *recipe_digest);
/* The path of the file of a key. A new string; NULL if memory is exhausted. */
DS_ACCEL__PRIVATE char *ds_accel__store_file(const char *store, const char *kernel,
                                             const char *key);

/*
 * The begin of the names of this boot's build directories. A new string; NULL if memory is
 * exhausted.
 */
char *ds_accel__store_boot(void);

/* A directory below the store for one build, which this process holds locked. */
struct ds_accel__build_dir {
    char *store;
    char *path;
    char *name; /* the last part of path */
    int store_fd;
    int fd;
    int lock_fd;
};

/*
 * Create the store if it does not exist, and a directory for a build in it. What builds of
 * processes that have ended left there is removed. ERR_IO, ERR_PERMISSION or
 * ERR_UNTRUSTED with the cause; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__build_dir_open(const char *store,
                                                   struct ds_accel__build_dir *dir);
/* Create a directory for all users to read, and its missing parents. Returns 0 or an errno. */
DS_ACCEL__PRIVATE int ds_accel__make_directories(const char *path, unsigned parents_mode);
/* Close the directory and remove it. */
DS_ACCEL__PRIVATE void ds_accel__build_dir_close(struct ds_accel__build_dir *dir);
/*
 * Close the directory, and keep it as NAME.failed, in place of the one of the failure before.
 * *path_out is its new path as a new string, NULL if it could not be kept, which is an error only
 * if memory is exhausted.
 */
int32_t ds_accel__build_dir_keep(struct ds_accel__build_dir *dir, const char *name,
                                 char **path_out);
/* Remove NAME.failed, if there is one: a later build succeeded. */
void ds_accel__build_dir_forget(const struct ds_accel__build_dir *dir, const char *name);
/*
 * Make a file of the directory permanent and move it into the store, over one that is there; or, if
 * exists_out is not NULL, only if none is there: *exists_out. A directory of its name is renamed to
 * NAME.directory. ERR_IO with the cause; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__build_dir_publish(const struct ds_accel__build_dir *dir,
                                                      const char *file, const char *name,
                                                      bool *exists_out);
/* Write a manifest into the directory and publish it. As ds_accel__build_dir_publish(). */
DS_ACCEL__PRIVATE int32_t ds_accel__store_write(const struct ds_accel__build_dir *dir,
                                                const char *kernel, const char *recipe_digest,
                                                const json_t *manifest);
/*
 * Remove the files of an op, or all if op is NULL, and what ended builds left. A directory in place
 * of a file stays, with a warning. *files_out: how many files. DS_ACCEL_OK, also if there is no
 * store; ERR_IO, ERR_PERMISSION; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__store_clean(const char *store, const char *op,
                                                const struct ds_accel__log *log,
                                                uint64_t *files_out);

/*
 * Wait until no other process of this host builds the recipe, and hold that. Returns a descriptor
 * to close; -1: without a lock, because there is no directory for it, or because the process that
 * holds it is stopped or takes too long; builds at the same time do no harm.
 */
int ds_accel__store_lock(const struct ds_accel__stores *stores, const char *recipe_digest,
                         const struct ds_accel__log *log);
#define DS_ACCEL__STORE_MESSAGE_BYTES ((size_t)8 << 20)
/*
 * Leave a message for those who wait for the lock: the build failed, and theirs would fail, too, if
 * it has the same compilers. Without disk space, or if the message has more than
 * DS_ACCEL__STORE_MESSAGE_BYTES, they build themselves.
 */
void ds_accel__store_lock_fail(int lock_fd, const char *toolchain_digest, const char *message);
/*
 * The message that was left after a time of ds_accel__boot_ms(), as a new string; NULL: there is
 * none. It is from a file of this user, but not checked further. ERR_NO_MEMORY.
 */
int32_t ds_accel__store_lock_failure(int lock_fd, const char *toolchain_digest, uint64_t since_ms,
                                     char **message_out);
/* Release the lock, also if a child that was forked meanwhile has the descriptor; -1: nothing. */
void ds_accel__store_unlock(int lock_fd);

#endif
