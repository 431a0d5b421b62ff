/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks which users could have changed a plugin's file, before any of its code runs. The path is
 * resolved from "/" down, one name at a time; each name is looked up once, relative to a directory
 * that was checked, so that its meaning cannot change between the check and the use. Symbolic links
 * are resolved here, so that their targets are checked in the same way. Every directory, link and
 * file must belong to root or to the effective user, and no other user may be able to write to it.
 * A process with more rights than its effective user trusts only root's files: in set-group-ID and
 * file-capability programs the effective user is the unprivileged caller. In a directory with the
 * sticky bit, other users can add names, but cannot replace names of root and the caller, so the
 * directory passes; the owner of every entry that the path uses is checked in any case. Checked
 * directories stay open while a context probes its plugins, so the path of a directory with many
 * plugins is walked only once. docs/decisions/0011 explains the reasons.
 */
#include "base/trust.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define LINK_LIMIT 40u /* the kernel's own limit of followed links */
/* checked directories and links that are kept; one walk may exceed the limit */
#define MEMO_LIMIT 64u
#define FILE_LIMIT_BYTES (UINT64_C(1) << 31) /* also the limit in elf.c */
#define HASH_STEP_BYTES 4096                 /* buffer on the stack, which may be small */
#define EXPECTED_MODE "expected no write permission for group and others"

/* A directory or a symbolic link on the path. */
struct node {
    size_t parent; /* index into nodes: the directory that contains the name */
    char *name;
    char *path;   /* path without symbolic links; "" for the root */
    char *target; /* target of a link; NULL: a directory */
    int fd;       /* open directory, O_PATH; -1: a link */
    struct stat info;
};

struct ds_accel__trust {
    struct node *nodes; /* checked directories and links, kept for later walks; the first is "/" */
    size_t count;
    /* The directory of the last checked file, if its path had no links: most files share it. */
    char *last_dir; /* directory as spelled in the path, with a slash at its end; NULL: none */
    size_t last_directory; /* index into nodes */
};

struct walk {
    struct ds_accel__trust *trust;
    size_t directory; /* index into nodes: the current directory of the walk */
    char *way;        /* the path, with links replaced by targets; owned */
    char *rest;       /* points into way: the part that is still to be walked */
    char *name;       /* points into way: the file's name, after a successful walk */
    char *link;       /* the first link followed; NULL: none */
    uint32_t link_count;
    struct stat info; /* status of the file */
    struct ds_accel__finding *finding;
};

/* ---- owners and modes ----------------------------------------------------------------------- */

/*
 * AT_SECURE stays set for the life of the process, even after the program dropped its rights. User
 * IDs that differ mean that the process dropped its rights only temporarily: loaded code can regain
 * them.
 */
bool ds_accel__has_raised_rights(void)
{
    uid_t real;
    uid_t effective;
    uid_t saved;

    return getauxval(AT_SECURE) != 0 || getresuid(&real, &effective, &saved) != 0 ||
           real != effective || saved != effective;
}

uid_t ds_accel__trusted_user(void)
{
    return ds_accel__has_raised_rights() ? 0 : geteuid();
}

static bool is_own(const struct stat *info)
{
    return info->st_uid == 0 || info->st_uid == ds_accel__trusted_user();
}

/*
 * True if the owner is assumed to be the group's only member: this holds for root's group, and for
 * a group with the same ID as the trusted user, if it is also the process's group.
 */
static bool is_private_group(const struct stat *info)
{
    uid_t user = ds_accel__trusted_user();

    return (info->st_uid == 0 && info->st_gid == 0) ||
           (info->st_uid == user && info->st_gid == user && info->st_gid == getegid());
}

static bool is_writable_by_others(const struct stat *info)
{
    return (info->st_mode & S_IWOTH) != 0 ||
           ((info->st_mode & S_IWGRP) != 0 && !is_private_group(info));
}

/*
 * Set the finding. Its evidence contains the path of the file, directory or link whose owner or
 * mode must be corrected.
 */
static void find_mode(struct ds_accel__finding *finding, enum ds_accel__reason_id reason,
                      const char *dir, const char *name, const struct stat *info,
                      const char *expected)
{
    ds_accel__finding_set(finding, reason, "%.300s%s%.100s has owner %u, group %u, mode %04o%s%s",
                          dir, name[0] != '\0' || dir[0] == '\0' ? "/" : "", name,
                          (unsigned)info->st_uid, (unsigned)info->st_gid,
                          (unsigned)(info->st_mode & 07777), expected[0] != '\0' ? "; " : "",
                          expected);
}

static void find_owner(struct ds_accel__finding *finding, enum ds_accel__reason_id reason,
                       const char *dir, const char *name, const struct stat *info)
{
    char expected[96] = "expected owner 0";
    uid_t user = ds_accel__trusted_user();

    if (user != 0) {
        snprintf(expected, sizeof(expected), "expected owner 0 or %u", (unsigned)user);
    } else if (geteuid() != 0) {
        snprintf(expected, sizeof(expected), "expected owner 0: the program has raised rights");
    }
    find_mode(finding, reason, dir, name, info, expected);
}

static void check_directory(const struct node *node, bool is_plugins,
                            struct ds_accel__finding *finding)
{
    if (!is_own(&node->info)) {
        find_owner(finding, DS_ACCEL__REASON_DIR_OWNER, node->path, "", &node->info);
    } else if ((node->info.st_mode & S_ISVTX) == 0 && is_writable_by_others(&node->info)) {
        find_mode(finding,
                  is_plugins ? DS_ACCEL__REASON_DIR_WRITABLE : DS_ACCEL__REASON_PARENT_WRITABLE,
                  node->path, "", &node->info, EXPECTED_MODE);
    }
}

static void check_file(const struct walk *walk, const struct stat *info)
{
    const char *dir = walk->trust->nodes[walk->directory].path;

    if (!is_own(info)) {
        find_owner(walk->finding, DS_ACCEL__REASON_FILE_OWNER, dir, walk->name, info);
    } else if (is_writable_by_others(info)) {
        find_mode(walk->finding, DS_ACCEL__REASON_FILE_WRITABLE, dir, walk->name, info,
                  EXPECTED_MODE);
    }
}

/* ---- looking up names ----------------------------------------------------------------------- */

/* Record that a system call failed on a name in the walk's current directory. */
static int32_t fail_lookup(const struct walk *walk, const char *name, int error)
{
    const struct node *directory = &walk->trust->nodes[walk->directory];

    switch (error) {
    case ENOMEM:
        return ds_accel__no_memory();
    case EMFILE:
    case ENFILE:
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "%s/%s: %s", directory->path, name,
                               strerror(error));
    case ENOENT:
    case ENOTDIR:
        if (walk->link != NULL) {
            ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_DANGLING_LINK,
                                  "%.200s leads to %.150s/%.100s: %s", walk->link, directory->path,
                                  name, strerror(error));
        } else {
            ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_FILE_CHANGED, "%.300s/%.100s: %s",
                                  directory->path, name, strerror(error));
        }
        break;
    case EACCES:
        find_mode(walk->finding, DS_ACCEL__REASON_NOT_READABLE, directory->path, "",
                  &directory->info, "the user may not search it");
        break;
    default:
        ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_NOT_READABLE, "%.300s/%.100s: %s",
                              directory->path, name, strerror(error));
    }
    return DS_ACCEL_OK;
}

/* Return the target of the link that fd refers to, as a new string; NULL with errno. */
static char *read_target(int fd)
{
    char text[PATH_MAX];
    ssize_t length = readlinkat(fd, "", text, sizeof(text));

    if (length == (ssize_t)sizeof(text)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return length < 0 ? NULL : strndup(text, (size_t)length);
}

static void clear_node(struct node *node)
{
    if (node->fd >= 0) {
        close(node->fd);
    }
    free(node->name);
    free(node->path);
    free(node->target);
}

/*
 * Look up a name in the walk's current directory. *node_out is set to an open directory, or to a
 * link with its target; the caller owns it. If the lookup fails, the status is still DS_ACCEL_OK,
 * walk->finding contains the reason and *node_out is unchanged. ERR_NO_MEMORY; ERR_LIMIT: out of
 * descriptors.
 */
static int32_t look_up(const struct walk *walk, const char *name, struct node *node_out)
{
    const struct node *directory = &walk->trust->nodes[walk->directory];
    struct node node = {.parent = walk->directory};
    int error = 0;

    node.fd = openat(directory->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (node.fd < 0 || fstat(node.fd, &node.info) != 0) {
        error = errno;
    } else if (S_ISLNK(node.info.st_mode)) {
        node.target = read_target(node.fd);
        error = node.target == NULL ? errno : 0;
        close(node.fd);
        node.fd = -1;
    } else if (!S_ISDIR(node.info.st_mode)) {
        error = ENOTDIR;
    }
    if (error != 0) {
        clear_node(&node);
        return fail_lookup(walk, name, error);
    }
    node.name = strdup(name);
    node.path = ds_accel__format("%s/%s", directory->path, name);
    if (node.name == NULL || node.path == NULL) {
        clear_node(&node);
        return ds_accel__no_memory();
    }
    *node_out = node;
    return DS_ACCEL_OK;
}

/*
 * The index in trust->nodes of the entry `name` of the directory `parent`; trust->count: not
 * checked yet.
 */
static size_t find_node(const struct ds_accel__trust *trust, size_t parent, const char *name)
{
    size_t i = 1;

    while (i < trust->count &&
           (trust->nodes[i].parent != parent || strcmp(trust->nodes[i].name, name) != 0)) {
        i++;
    }
    return i;
}

/* Append the node to trust->nodes, which takes ownership of it. */
static int32_t keep_node(struct ds_accel__trust *trust, struct node *node)
{
    struct node *larger = realloc(trust->nodes, (trust->count + 1) * sizeof(*larger));

    if (larger == NULL) {
        clear_node(node);
        return ds_accel__no_memory();
    }
    trust->nodes = larger;
    larger[trust->count++] = *node;
    return DS_ACCEL_OK;
}

/* ---- the walk ------------------------------------------------------------------------------- */

/* True if only the file's name is left, so the current directory is the plugin directory. */
static bool is_last_directory(const char *rest)
{
    return strchr(rest, '/') == NULL;
}

/* Continue at a link's target. rest is the part of the path after the link's name. */
static int32_t follow(struct walk *walk, const struct node *link, const char *rest)
{
    char *way;

    if (!is_own(&link->info)) {
        find_owner(walk->finding, DS_ACCEL__REASON_LINK_OWNER, link->path, "", &link->info);
        return DS_ACCEL_OK;
    }
    if (walk->link == NULL && (walk->link = strdup(link->path)) == NULL) {
        return ds_accel__no_memory();
    }
    if (++walk->link_count > LINK_LIMIT) {
        ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_LINK_LOOP,
                              "%.300s: over %u symbolic links in a row", walk->link, LINK_LIMIT);
        return DS_ACCEL_OK;
    }
    way = ds_accel__format("%s%s%s", link->target, rest[0] != '\0' ? "/" : "", rest);
    if (way == NULL) {
        return ds_accel__no_memory();
    }
    free(walk->way);
    walk->way = way;
    walk->rest = way;
    if (way[0] == '/') {
        walk->directory = 0;
        check_directory(&walk->trust->nodes[0], is_last_directory(way + strspn(way, "/")),
                        walk->finding);
    }
    return DS_ACCEL_OK;
}

/* Walk a name in the middle of the path: a directory or a link to one. */
static int32_t enter(struct walk *walk, const char *name, char *rest)
{
    struct ds_accel__trust *trust = walk->trust;
    struct node node;
    size_t i = find_node(trust, walk->directory, name);
    int32_t status;

    if (i == trust->count) {
        status = look_up(walk, name, &node);
        if (status < 0 || walk->finding->reason != DS_ACCEL__REASON_NONE) {
            return status;
        }
        status = keep_node(trust, &node);
        if (status < 0) {
            return status;
        }
    }
    if (trust->nodes[i].target != NULL) {
        return follow(walk, &trust->nodes[i], rest);
    }
    check_directory(&trust->nodes[i], is_last_directory(rest), walk->finding);
    walk->directory = i;
    walk->rest = rest;
    return DS_ACCEL_OK;
}

static enum ds_accel__reason_id kind_reason(mode_t mode)
{
    return S_ISDIR(mode)    ? DS_ACCEL__REASON_IS_DIRECTORY
           : S_ISFIFO(mode) ? DS_ACCEL__REASON_IS_FIFO
           : S_ISSOCK(mode) ? DS_ACCEL__REASON_IS_SOCKET
                            : DS_ACCEL__REASON_NOT_REGULAR_FILE;
}

/* Walk the last name: the file or a link to it. Set walk->name when the file is reached. */
static int32_t reach(struct walk *walk, char *name)
{
    const struct node *directory = &walk->trust->nodes[walk->directory];
    struct stat info;
    struct node link = {.fd = -1};
    int32_t status;

    if (fstatat(directory->fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return fail_lookup(walk, name, errno);
    }
    if (S_ISLNK(info.st_mode)) {
        status = look_up(walk, name, &link);
        if (status >= 0 && walk->finding->reason == DS_ACCEL__REASON_NONE) {
            if (link.target != NULL) {
                status = follow(walk, &link, "");
            } else {
                ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_FILE_CHANGED,
                                      "%.400s was a symbolic link before", link.path);
            }
            clear_node(&link);
        }
        return status;
    }
    if (!S_ISREG(info.st_mode)) {
        ds_accel__finding_set(walk->finding, kind_reason(info.st_mode), "%.300s/%.100s",
                              directory->path, name);
        return DS_ACCEL_OK;
    }
    walk->name = name;
    walk->info = info;
    check_file(walk, &info);
    return DS_ACCEL_OK;
}

/* Walk one name of the path. Set walk->name when the file is reached. */
static int32_t step(struct walk *walk)
{
    char *name = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(name, "/");
    char *rest = name + length + strspn(name + length, "/");
    bool is_last = name[length] == '\0';

    if (length == 0 || (is_last && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0))) {
        ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_IS_DIRECTORY, "%.400s/%s",
                              walk->trust->nodes[walk->directory].path, name);
        return DS_ACCEL_OK;
    }
    if (is_last) {
        return reach(walk, name);
    }
    name[length] = '\0';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        walk->directory = name[1] == '.' ? walk->trust->nodes[walk->directory].parent
                                         : walk->directory;
        check_directory(&walk->trust->nodes[walk->directory], is_last_directory(rest),
                        walk->finding);
        walk->rest = rest;
        return DS_ACCEL_OK;
    }
    return enter(walk, name, rest);
}

/* Open "/" as the first of trust->nodes. */
static int32_t open_root(struct ds_accel__trust *trust)
{
    struct node root = {.fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    int32_t status;

    if (root.fd < 0 || fstat(root.fd, &root.info) != 0) {
        status = ds_accel__error(DS_ACCEL_ERR_LIMIT, "/: %s", strerror(errno));
        clear_node(&root);
        return status;
    }
    root.name = strdup("");
    root.path = strdup("");
    if (root.name == NULL || root.path == NULL) {
        clear_node(&root);
        return ds_accel__no_memory();
    }
    return keep_node(trust, &root);
}

/*
 * Walk to the file. On success walk->name in walk->directory is the file; otherwise finding
 * contains the reason.
 */
static int32_t walk_path(struct walk *walk, const char *path)
{
    struct ds_accel__trust *trust = walk->trust;
    int32_t status = DS_ACCEL_OK;

    if (path[0] != '/') {
        return ds_accel__error(DS_ACCEL_ERR_INTERNAL, "trust: \"%s\" is not absolute", path);
    }
    if (trust->count > MEMO_LIMIT) {
        ds_accel__trust_reset(trust);
    }
    if (trust->count == 0) {
        status = open_root(trust);
    }
    if (status < 0) {
        return status;
    }
    walk->way = ds_accel__format("%s", path);
    walk->rest = walk->way;
    if (walk->way == NULL) {
        return ds_accel__no_memory();
    }
    check_directory(&trust->nodes[0], is_last_directory(path + strspn(path, "/")), walk->finding);
    while (status >= 0 && walk->finding->reason == DS_ACCEL__REASON_NONE && walk->name == NULL) {
        status = step(walk);
    }
    return status;
}

static int32_t open_file(const struct walk *walk, int *fd_out, struct stat *info_out)
{
    const struct node *directory = &walk->trust->nodes[walk->directory];
    struct stat info;
    int error;
    int fd = openat(directory->fd, walk->name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        error = errno;
        if (error == EACCES) {
            find_mode(walk->finding, DS_ACCEL__REASON_NOT_READABLE, directory->path, walk->name,
                      &walk->info, "");
            return DS_ACCEL_OK;
        }
        if (error == ELOOP || error == ENXIO || error == ENOENT) {
            ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_FILE_CHANGED, "%.300s/%.100s: %s",
                                  directory->path, walk->name, strerror(error));
            return DS_ACCEL_OK;
        }
        return fail_lookup(walk, walk->name, error);
    }
    if (fstat(fd, &info) != 0) {
        ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_NOT_READABLE, "%.300s/%.100s: %s",
                              directory->path, walk->name, strerror(errno));
    } else if (info.st_dev != walk->info.st_dev || info.st_ino != walk->info.st_ino) {
        ds_accel__finding_set(walk->finding, DS_ACCEL__REASON_FILE_CHANGED,
                              "%.300s/%.100s was replaced meanwhile", directory->path, walk->name);
    } else {
        check_file(walk, &info);
    }
    if (walk->finding->reason != DS_ACCEL__REASON_NONE) {
        close(fd);
        return DS_ACCEL_OK;
    }
    *info_out = info;
    *fd_out = fd;
    return DS_ACCEL_OK;
}

/* ---- interface (trust.h) -------------------------------------------------------------------- */

struct ds_accel__trust *ds_accel__trust_create(void)
{
    return calloc(1, sizeof(struct ds_accel__trust));
}

void ds_accel__trust_reset(struct ds_accel__trust *trust)
{
    free(trust->last_dir);
    trust->last_dir = NULL;
    for (size_t i = 0; i < trust->count; i++) {
        clear_node(&trust->nodes[i]);
    }
    free(trust->nodes);
    memset(trust, 0, sizeof(*trust));
}

void ds_accel__trust_destroy(struct ds_accel__trust *trust)
{
    if (trust != NULL) {
        ds_accel__trust_reset(trust);
        free(trust);
    }
}

int32_t ds_accel__trust_open(struct ds_accel__trust *trust, const char *path, int *fd_out,
                             struct stat *info_out, struct ds_accel__finding *finding)
{
    struct walk walk = {.trust = trust, .finding = finding};
    int32_t status = walk_path(&walk, path);

    *fd_out = -1;
    if (walk.name != NULL && finding->reason == DS_ACCEL__REASON_NONE) {
        status = open_file(&walk, fd_out, info_out);
    }
    free(walk.way);
    free(walk.link);
    return status;
}

/*
 * Check a file without a walk, if it is in the same directory as the last checked file. True if the
 * file passed; false if a walk is needed, for which this function records no reason.
 */
static bool stat_beside(struct ds_accel__trust *trust, const char *path, struct stat *info_out)
{
    size_t length = trust->last_dir != NULL ? strlen(trust->last_dir) : 0;

    /* The caller walks the path of a file that fails here, and that walk reports the reason. */
    return length > 0 && strncmp(path, trust->last_dir, length) == 0 &&
           strchr(path + length, '/') == NULL &&
           fstatat(trust->nodes[trust->last_directory].fd, path + length, info_out,
                   AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info_out->st_mode) && is_own(info_out) && !is_writable_by_others(info_out);
}

/*
 * Remember the file's directory, if its path had no links. If it had, or if memory is exhausted,
 * the path of the next file is walked again.
 */
static void keep_last(struct ds_accel__trust *trust, const struct walk *walk, const char *path)
{
    const char *slash = strrchr(path, '/');

    free(trust->last_dir);
    trust->last_dir = walk->link_count == 0
                          ? strndup(path, slash != NULL ? (size_t)(slash - path) + 1 : 0)
                          : NULL;
    trust->last_directory = walk->directory;
}

int32_t ds_accel__trust_stat(struct ds_accel__trust *trust, const char *path, struct stat *info_out,
                             struct ds_accel__finding *finding)
{
    struct walk walk = {.trust = trust, .finding = finding};
    int32_t status;

    if (stat_beside(trust, path, info_out)) {
        return DS_ACCEL_OK;
    }
    status = walk_path(&walk, path);
    if (walk.name != NULL && finding->reason == DS_ACCEL__REASON_NONE) {
        *info_out = walk.info;
        keep_last(trust, &walk, path);
    }
    free(walk.way);
    free(walk.link);
    return status;
}

void ds_accel__trust_compare(const char *path, const struct stat *checked,
                             struct ds_accel__finding *finding)
{
    struct stat now;

    if (stat(path, &now) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_FILE_CHANGED, "%.400s: %s", path,
                              strerror(errno));
    } else if (now.st_dev != checked->st_dev || now.st_ino != checked->st_ino) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_FILE_CHANGED,
                              "%.400s is another file than the one checked", path);
    } else if (now.st_size != checked->st_size || now.st_mtim.tv_sec != checked->st_mtim.tv_sec ||
               now.st_mtim.tv_nsec != checked->st_mtim.tv_nsec ||
               now.st_ctim.tv_sec != checked->st_ctim.tv_sec ||
               now.st_ctim.tv_nsec != checked->st_ctim.tv_nsec) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_FILE_CHANGED,
                              "%.400s was written to after it was checked", path);
    }
}

int32_t ds_accel__trust_hash(int fd, char hex_out[65], const char **cause_out)
{
    unsigned char step[HASH_STEP_BYTES];
    uint64_t at = 0;
    SHA2_CTX hash;

    SHA256Init(&hash);
    while (true) {
        ssize_t count = pread(fd, step, sizeof(step), (off_t)at);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            *cause_out = strerror(errno);
            return DS_ACCEL_ERR_IO;
        }
        if (count == 0) {
            break;
        }
        SHA256Update(&hash, step, (size_t)count);
        at += (uint64_t)count;
        if (at > FILE_LIMIT_BYTES) {
            *cause_out = "the file has over 2 GiB";
            return DS_ACCEL_ERR_IO;
        }
    }
    SHA256End(&hash, hex_out);
    return DS_ACCEL_OK;
}
