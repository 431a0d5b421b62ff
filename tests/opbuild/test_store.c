/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Caches of ops: where they are, build directories, what is published, cleaning, and the lock. */
#include "base/clock.h"
#include "config/prefix.h"
#include "host/cache_disk.h"
#include "host/context.h"
#include "opbuild.h"
#include "ops/manifest.h"
#include "ops/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_DIGEST "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define KEY "0123456789abcdef0123456789abcdef"

static char store[300];
static char local[300]; /* set before a fork, because a child's test_path() is another one */

static void begin(void)
{
    umask(002); /* as on Debian, where every user has a group */
    unsetenv("DS_ACCEL_CACHE");
    unsetenv("DS_ACCEL_CACHE_DIR");
    snprintf(store, sizeof(store), "%s", test_path("cache/below/ops"));
    snprintf(local, sizeof(local), "%s", test_path("local"));
}

TestSuite(opbuild_store, .init = begin);

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static mode_t mode_of(const char *path)
{
    struct stat info;

    cr_assert_eq(stat(path, &info), 0, "%s", path);
    return info.st_mode & 07777;
}

static off_t size_of(const char *path)
{
    struct stat info;

    cr_assert_eq(stat(path, &info), 0, "%s", path);
    return info.st_size;
}

/* The number of names in the store that begin with a prefix. */
static int count_names(const char *prefix)
{
    DIR *directory = opendir(store);
    const struct dirent *entry;
    int count = 0;

    cr_assert_not_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
                 strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(directory);
    return count;
}

/* A path in the store; "below/ops" is that of begin(). */
static const char *in_store(const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "cache/below/ops/%s", name);
    return test_path(path);
}

static const char *write_in_store(const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "cache/below/ops/%s", name);
    return test_write(path, "x");
}

static void open_dir(struct ds_accel__build_dir *dir)
{
    MUST(ds_accel__build_dir_open(store, dir));
}

static void write_below(const struct ds_accel__build_dir *dir, const char *name, const char *text)
{
    int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* ---- where they are -------------------------------------------------------------------------- */

static ds_accel_t *create(const char *cache_dir)
{
    struct ds_accel_options options = test_options();

    options.flags &= ~(uint32_t)DS_ACCEL_OPTION_NO_CACHE;
    options.cache_dir = cache_dir;
    return test_create_with(&options);
}

static char *system_store(void)
{
    return ds_accel__format("%s/ops", ds_accel__built_for.cache_dir);
}

Test(opbuild_store, the_systems_cache_is_before_the_users)
{
    char given[300];
    ds_accel_t *context;
    struct ds_accel__stores stores;
    char *system = system_store();

    snprintf(given, sizeof(given), "%s", test_path("given"));
    context = create(given);
    MUST(ds_accel__stores_locate(context, &stores));
    cr_assert_eq(stores.count, 2);
    cr_expect_str_eq(stores.paths[0], system);
    cr_expect_str_eq(stores.paths[1], test_path("given/ops"));
    cr_expect_str_eq(stores.writable, test_path("given/ops"));
    cr_expect_str_eq(stores.local, given);
    cr_expect(!exists(stores.writable));
    ds_accel__stores_clear(&stores);
    cr_expect_null(stores.writable);
    ds_accel_destroy(context);

    setenv("DS_ACCEL_CACHE_DIR", test_path("variable"), 1);
    context = create(NULL);
    MUST(ds_accel__stores_locate(context, &stores));
    cr_expect_str_eq(stores.paths[1], test_path("variable/ops"));
    ds_accel__stores_clear(&stores);
    ds_accel_destroy(context);
    free(system);
}

Test(opbuild_store, a_cache_can_be_off_or_only_read)
{
    static const char *const modes[] = {"off", "ro"};
    struct ds_accel__stores stores;
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        setenv("DS_ACCEL_CACHE", modes[i], 1);
        context = create(test_path("given"));
        MUST(ds_accel__stores_locate(context, &stores));
        cr_expect_eq(stores.count, 2 * i, "%s", modes[i]);
        cr_expect_null(stores.writable);
        ds_accel__stores_clear(&stores);
        ds_accel_destroy(context);
    }
    unsetenv("DS_ACCEL_CACHE");
    options.cache_dir = test_path("given"); /* but DS_ACCEL_OPTION_NO_CACHE */
    context = test_create_with(&options);
    MUST(ds_accel__stores_locate(context, &stores));
    cr_expect_eq(stores.count, 0);
    cr_expect_null(stores.writable);
    ds_accel__stores_clear(&stores);
    ds_accel_destroy(context);
}

Test(opbuild_store, root_builds_for_the_system)
{
    struct ds_accel__stores stores;
    ds_accel_t *context;
    char *system = system_store();

    if (getuid() != 0) {
        cr_skip_test("needs root");
    }
    setenv("XDG_CACHE_HOME", test_path("home"), 1);
    context = create(NULL);
    MUST(ds_accel__stores_locate(context, &stores));
    cr_expect_eq(stores.count, 1);
    cr_expect_str_eq(stores.writable, system);
    ds_accel__stores_clear(&stores);
    ds_accel_destroy(context);

    /* Raised rights: the caller's directory is not used, nor written. */
    context = create(test_path("given"));
    cr_assert_eq(setresuid(0, 65534, 0), 0);
    MUST(ds_accel__stores_locate(context, &stores));
    cr_assert_eq(setresuid(0, 0, 0), 0);
    cr_expect_eq(stores.count, 1);
    cr_expect_str_eq(stores.paths[0], system);
    cr_expect_null(stores.writable);
    ds_accel__stores_clear(&stores);
    ds_accel_destroy(context);
    free(system);
}

static ds_accel_t *located;

static int32_t attempt_locate(void)
{
    struct ds_accel__stores stores;
    int32_t status = ds_accel__stores_locate(located, &stores);

    if (status >= 0) { /* never another directory */
        cr_expect_eq(stores.count, 2);
        cr_expect_not_null(stores.local);
        cr_expect(stores.writable != NULL && strcmp(stores.writable, stores.paths[1]) == 0);
    }
    ds_accel__stores_clear(&stores);
    return status;
}

Test(opbuild_store, every_allocation_of_locate_can_fail)
{
    located = create(test_path("given"));
    fail_each(attempt_locate);
    ds_accel_destroy(located);
}

/* ---- names ----------------------------------------------------------------------------------- */

Test(opbuild_store, files_have_the_kernels_name)
{
    char *path = ds_accel__store_file("/cache/ops", "cuda/fused_adam", DIGEST);

    cr_expect_str_eq(path, "/cache/ops/cuda-fused_adam." KEY ".so");
    free(path);
    path = ds_accel__store_file("/cache/ops", "cpu_adam", KEY);
    cr_expect_str_eq(path, "/cache/ops/cpu_adam." KEY ".so");
    free(path);
}

/* ---- build directories ----------------------------------------------------------------------- */

Test(opbuild_store, a_build_directory_is_locked_and_removed)
{
    struct ds_accel__build_dir dir;
    struct ds_accel__build_dir second;
    char path[400];
    int fd;

    open_dir(&dir);
    cr_expect_eq(strncmp(dir.name, ".build-", 7), 0);
    cr_expect_str_eq(dir.store, store);
    snprintf(path, sizeof(path), "%s/%s", store, dir.name);
    cr_expect_str_eq(dir.path, path);
    cr_expect_eq(mode_of(dir.path), 0700);
    cr_expect_eq(mode_of(store) & 022, 0);
    fd = openat(dir.fd, "lock", O_RDWR | O_CLOEXEC);
    cr_assert(fd >= 0);
    cr_expect_neq(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    write_below(&dir, "0.o", "x");
    cr_assert_eq(mkdirat(dir.fd, "a", 0755), 0);
    cr_assert_eq(mkdirat(dir.fd, "a/b", 0755), 0);
    cr_assert_eq(symlinkat("/", dir.fd, "a/b/root"), 0);
    write_below(&dir, "a/b/0.o", "x");

    open_dir(&second);
    cr_expect_str_neq(second.name, dir.name);
    cr_expect(exists(dir.path));
    ds_accel__build_dir_close(&second);
    ds_accel__build_dir_close(&dir);
    cr_expect_eq(dir.fd, -1);
    cr_expect_null(dir.path);
    cr_expect_eq(count_names(""), 0);
}

Test(opbuild_store, a_store_that_cannot_be_made_is_an_error)
{
    struct ds_accel__build_dir dir;

    test_write("file", "");
    EXPECT_STATUS(ds_accel__build_dir_open(test_path("file"), &dir), DS_ACCEL_ERR_IO);
    cr_expect_null(dir.path);
    cr_expect(ds_accel__build_dir_open(test_path("file") /* no directory */, &dir) < 0);
    snprintf(store, sizeof(store), "%s/below", test_path("file"));
    EXPECT_REFUSED(ds_accel__build_dir_open(store, &dir), DS_ACCEL_ERR_IO, "file");
    EXPECT_REFUSED(ds_accel__build_dir_open("/proc/nowhere/ops", &dir), DS_ACCEL_ERR_IO, "/proc");
    cr_expect_eq(dir.fd, -1);
}

Test(opbuild_store, a_store_that_others_can_write_is_refused)
{
    struct ds_accel__build_dir dir;

    open_dir(&dir);
    ds_accel__build_dir_close(&dir);
    cr_assert_eq(chmod(store, 0777), 0);
    EXPECT_REFUSED(ds_accel__build_dir_open(store, &dir), DS_ACCEL_ERR_UNTRUSTED, store);
    cr_expect_null(dir.path);
}

/* Make a directory as a build of this boot leaves one; is_locked: and hold its lock. */
static int make_left(const struct ds_accel__build_dir *like, const char *end, bool has_lock,
                     bool is_locked)
{
    char name[300];
    char file[320];
    char *cut;
    int lock = -1;

    snprintf(name, sizeof(name), "%s", like->name);
    for (int i = 0; i < 2; i++) { /* the process ID and the number */
        cut = strrchr(name, '-');
        cr_assert_not_null(cut);
        *cut = '\0';
    }
    strcat(name, end);
    snprintf(file, sizeof(file), "%s/0.o", name);
    write_in_store(file);
    if (has_lock) {
        snprintf(file, sizeof(file), "%s/lock", name);
        lock = open(write_in_store(file), O_RDWR | O_CLOEXEC);
        cr_assert(lock >= 0);
        cr_assert(!is_locked || flock(lock, LOCK_EX | LOCK_NB) == 0);
    }
    return lock;
}

Test(opbuild_store, what_dead_builds_left_is_removed)
{
    struct ds_accel__build_dir dir;
    int locks[3];

    open_dir(&dir);
    locks[0] = make_left(&dir, "-1-1", true, false);
    locks[1] = make_left(&dir, "-1-2", true, true);
    locks[2] = make_left(&dir, "-1-3", false, false);
    write_in_store(".build-other-1-4/lock"); /* of another boot, or of another host */
    write_in_store(".build-file");
    write_in_store("tiny." KEY ".so");
    write_in_store("tiny.failed/lock");
    write_in_store(".hidden/lock");
    cr_assert_eq(symlink(test_dir(), in_store(".build-link")), 0);
    ds_accel__build_dir_close(&dir);
    cr_expect_eq(count_names(""), 9);

    open_dir(&dir);
    ds_accel__build_dir_close(&dir);
    cr_expect_eq(count_names(""), 8);
    cr_expect_eq(count_names(".build-"), 5);
    close(locks[1]);
    open_dir(&dir);
    ds_accel__build_dir_close(&dir);
    cr_expect_eq(count_names(""), 7);
    cr_expect(exists(in_store(".build-other-1-4/lock")));
    cr_expect(exists(in_store("tiny.failed/lock")));
    close(locks[0]);
}

static int32_t attempt_open(void)
{
    struct ds_accel__build_dir dir;
    int32_t status = ds_accel__build_dir_open(store, &dir);

    if (status >= 0) {
        cr_expect(exists(dir.path));
        ds_accel__build_dir_close(&dir);
    }
    cr_expect_eq(dir.fd, -1);
    return status;
}

Test(opbuild_store, every_allocation_of_a_directory_can_fail)
{
    struct ds_accel__build_dir dir;

    attempt_open();
    fail_each(attempt_open);
    open_dir(&dir); /* removes what could not be removed */
    cr_expect_eq(count_names(""), 1);
    ds_accel__build_dir_close(&dir);
}

/* ---- publishing ------------------------------------------------------------------------------ */

Test(opbuild_store, what_is_published_is_for_all_to_read)
{
    static const mode_t modes[] = {0664, 0600, 0777};
    struct ds_accel__build_dir dir;

    open_dir(&dir);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        write_below(&dir, "op.so", "contents");
        cr_assert_eq(fchmodat(dir.fd, "op.so", modes[i], 0), 0);
        MUST(ds_accel__build_dir_publish(&dir, "op.so", "tiny.so", NULL));
        cr_expect_eq(mode_of(in_store("tiny.so")), 0644);
        cr_expect_neq(faccessat(dir.fd, "op.so", F_OK, 0), 0);
    }
    EXPECT_REFUSED(ds_accel__build_dir_publish(&dir, "op.so", "tiny.so", NULL), DS_ACCEL_ERR_IO,
                   store);
    cr_assert_eq(symlinkat(in_store("tiny.so"), dir.fd, "op.so"), 0);
    EXPECT_STATUS(ds_accel__build_dir_publish(&dir, "op.so", "link.so", NULL), DS_ACCEL_ERR_IO);
    cr_expect(!exists(in_store("link.so")));
    ds_accel__build_dir_close(&dir);
    cr_expect_eq(count_names(""), 1);
}

/* A process may be about to load the file that is there. */
Test(opbuild_store, what_is_there_stays_if_the_caller_says_so)
{
    struct ds_accel__build_dir dir;
    bool is_there = true;

    open_dir(&dir);
    write_below(&dir, "op.so", "contents");
    MUST(ds_accel__build_dir_publish(&dir, "op.so", "tiny.so", &is_there));
    cr_expect(!is_there);
    write_below(&dir, "op.so", "more contents");
    MUST(ds_accel__build_dir_publish(&dir, "op.so", "tiny.so", &is_there));
    cr_expect(is_there);
    cr_expect_eq(size_of(in_store("tiny.so")), 8);
    MUST(ds_accel__build_dir_publish(&dir, "op.so", "tiny.so", NULL));
    cr_expect_eq(size_of(in_store("tiny.so")), 13);
    EXPECT_STATUS(ds_accel__build_dir_publish(&dir, "op.so", "tiny.so", &is_there),
                  DS_ACCEL_ERR_IO);
    cr_expect(!is_there);
    ds_accel__build_dir_close(&dir);
}

static json_t *make_manifest(void)
{
    json_t *manifest = ds_accel__manifest_create("cuda/tiny", DIGEST);
    json_t *entry = json_pack("{s:s, s:s, s:s, s:[]}", "key", KEY, "toolchain", DIGEST, "sha256",
                              DIGEST, "headers");

    cr_assert(ds_accel__manifest_add(manifest, entry));
    return manifest;
}

static json_t *read_manifest(const char *digest)
{
    json_t *manifest;

    MUST(ds_accel__store_read(store, "cuda/tiny", digest, &manifest));
    return manifest;
}

Test(opbuild_store, a_manifest_is_read_as_it_was_written)
{
    struct ds_accel__build_dir dir;
    json_t *manifest = make_manifest();
    json_t *again;
    char path[400];

    open_dir(&dir);
    cr_expect_null(read_manifest(DIGEST));
    MUST(ds_accel__store_write(&dir, "cuda/tiny", DIGEST, manifest));
    MUST(ds_accel__store_write(&dir, "cuda/tiny", DIGEST, manifest));
    snprintf(path, sizeof(path), "%s", in_store("cuda-tiny." KEY ".json"));
    cr_expect_eq(mode_of(path), 0644);
    again = read_manifest(DIGEST);
    cr_expect(json_equal(again, manifest));
    json_decref(again);
    cr_expect_null(read_manifest(OTHER_DIGEST));
    /* Its name is that of a recipe, but it belongs to another one. */
    cr_expect_null(read_manifest(KEY "0123456789abcdef0123456789abcdee"));

    cr_assert_eq(chmod(path, 0666), 0);
    cr_expect_null(read_manifest(DIGEST), "others could have changed it");
    cr_assert_eq(chmod(path, 0644), 0);
    again = read_manifest(DIGEST);
    cr_expect_not_null(again);
    json_decref(again);
    cr_assert_eq(truncate(path, 20), 0);
    cr_expect_null(read_manifest(DIGEST));
    cr_assert_eq(truncate(path, (off_t)9 << 20), 0);
    cr_expect_null(read_manifest(DIGEST));
    cr_assert_eq(truncate(path, 0), 0);
    cr_expect_null(read_manifest(DIGEST));
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0755), 0);
    cr_expect_null(read_manifest(DIGEST));
    MUST(ds_accel__store_write(&dir, "cuda/tiny", DIGEST, manifest));
    again = read_manifest(DIGEST);
    cr_expect_not_null(again, "the directory was renamed");
    json_decref(again);
    json_decref(manifest);
    ds_accel__build_dir_close(&dir);
}

static json_t *written;

static int32_t attempt_write(void)
{
    struct ds_accel__build_dir dir;
    json_t *manifest = NULL;
    int32_t status = ds_accel__build_dir_open(store, &dir);

    if (status < 0) {
        return status;
    }
    status = ds_accel__store_write(&dir, "cuda/tiny", DIGEST, written);
    ds_accel__build_dir_close(&dir);
    if (status >= 0) {
        status = ds_accel__store_read(store, "cuda/tiny", DIGEST, &manifest);
        cr_expect_eq(status >= 0, manifest != NULL);
    }
    json_decref(manifest);
    return status;
}

Test(opbuild_store, every_allocation_of_a_manifest_can_fail)
{
    written = make_manifest();
    attempt_write();
    fail_each(attempt_write);
    json_decref(written);
}

/* ---- failures that are kept ------------------------------------------------------------------ */

Test(opbuild_store, the_directory_of_a_failure_is_kept)
{
    struct ds_accel__build_dir dir;
    char *path;

    for (int i = 0; i < 2; i++) {
        open_dir(&dir);
        write_below(&dir, i == 0 ? "first.o" : "second.o", "x");
        ds_accel__build_dir_keep(&dir, "cuda/tiny", &path);
        cr_assert_not_null(path);
        cr_expect_str_eq(path, in_store("cuda-tiny.failed"));
        cr_expect_eq(dir.fd, -1);
        cr_expect_null(dir.path);
        free(path);
    }
    cr_expect(exists(in_store("cuda-tiny.failed/second.o")));
    cr_expect(!exists(in_store("cuda-tiny.failed/first.o")));
    open_dir(&dir); /* which removes what dead builds left */
    ds_accel__build_dir_close(&dir);
    cr_expect(exists(in_store("cuda-tiny.failed/second.o")));
    cr_expect_eq(count_names(""), 1);
}

/* What has the name and is no directory stays, and the build's directory goes. */
Test(opbuild_store, a_failure_that_cannot_be_kept_is_removed)
{
    struct ds_accel__build_dir dir;
    char *path;

    open_dir(&dir);
    write_in_store("tiny.failed");
    cr_expect_eq(ds_accel__build_dir_keep(&dir, "tiny", &path), DS_ACCEL_OK);
    cr_expect_null(path);
    cr_expect_eq(count_names(""), 1);
}

static int32_t attempt_keep(void)
{
    struct ds_accel__build_dir dir;
    char *path = NULL;
    int32_t status = ds_accel__build_dir_open(store, &dir);

    if (status >= 0) {
        ds_accel__build_dir_keep(&dir, "tiny", &path);
        cr_expect_eq(dir.fd, -1);
    }
    free(path);
    return status;
}

Test(opbuild_store, every_allocation_of_a_failure_can_fail)
{
    fail_each(attempt_keep);
}

/* ---- cleaning -------------------------------------------------------------------------------- */

static struct ds_accel__log quiet;

static void expect_cleaned(const char *op, uint64_t wanted)
{
    uint64_t files = 99;

    MUST(ds_accel__store_clean(store, op, &quiet, &files));
    cr_expect_eq(files, wanted, "%s: %lu", op, (unsigned long)files);
}

Test(opbuild_store, cleaning_removes_the_files_of_an_op)
{
    static const char *const files[] = {
        "adam." KEY ".so",
        "adam." KEY ".json",
        "cuda-adam." KEY ".so",
        "adam.failed/lock",
        "cuda-adam.failed/lock",
        "cuda-adam.failed/a/0.o",
        "adam2." KEY ".so",
        "cpu_adam." KEY ".so",
        "cuda-adam2." KEY ".json",
        "adam.txt",
        ".adam.so",
        "adam",
        ".build-other-1-4/lock",
        /* not of the cache: a variable may name any directory */
        "mine.so",
        "settings.json",
        "adam.0123.so",
        "other.failed/data",
    };
    struct ds_accel__build_dir dir;

    expect_cleaned(NULL, 0); /* there is no store */
    cr_expect(!exists(store));
    open_dir(&dir);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        write_in_store(files[i]);
    }
    expect_cleaned("adam", 3);
    cr_expect(!exists(in_store("adam.failed")));
    cr_expect(!exists(in_store("cuda-adam.failed")));
    cr_expect_eq(count_names(""), 12);
    cr_expect(exists(dir.path));
    expect_cleaned("adam", 0);
    expect_cleaned("none", 0);
    expect_cleaned("", 0);
    expect_cleaned(NULL, 3);
    cr_expect_eq(count_names(""), 9);
    cr_expect(exists(in_store("other.failed/data")));
    cr_expect(exists(in_store("adam.txt")));
    cr_expect(exists(in_store("adam")));
    ds_accel__build_dir_close(&dir);
}

Test(opbuild_store, cleaning_goes_on_behind_a_directory_in_place_of_a_file)
{
    write_in_store("adam." KEY ".so/data");
    write_in_store("adam." KEY ".json");
    write_in_store("other." KEY ".json/data");
    expect_cleaned(NULL, 1);
    cr_expect(exists(in_store("adam." KEY ".so/data")));
    cr_expect(exists(in_store("other." KEY ".json/data")));
}

Test(opbuild_store, a_directory_in_place_of_a_file_is_renamed)
{
    struct ds_accel__build_dir dir;
    bool there = false;

    open_dir(&dir);
    write_in_store("adam." KEY ".so/data");
    for (int i = 0; i < 2; i++) { /* only if there is none; over one */
        char *path = ds_accel__join(dir.path, '/', "op.so");
        FILE *file = path != NULL ? fopen(path, "w") : NULL;

        cr_assert_not_null(file);
        fclose(file);
        free(path);
        MUST(ds_accel__build_dir_publish(&dir, "op.so", "adam." KEY ".so", i == 0 ? &there : NULL));
        cr_expect_eq(there, true);
    }
    cr_expect(exists(in_store("adam." KEY ".so.directory/data")));
    cr_expect(exists(in_store("adam." KEY ".so")));
    cr_expect(!exists(in_store("adam." KEY ".so/data")));
    ds_accel__build_dir_close(&dir);
}

static int32_t attempt_clean(void)
{
    uint64_t files;
    int32_t status;
    int fd = open(in_store("tiny." KEY ".so"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    cr_assert(fd >= 0);
    close(fd);
    status = ds_accel__store_clean(store, "tiny", &quiet, &files);
    cr_expect(status < 0 || files == 1);
    return status;
}

Test(opbuild_store, every_allocation_of_cleaning_can_fail)
{
    attempt_clean();
    fail_each(attempt_clean);
}

/* ---- the lock -------------------------------------------------------------------------------- */

static int lock_recipe(const char *digest)
{
    const struct ds_accel__stores stores = {.local = local};

    return ds_accel__store_lock(&stores, digest, &quiet);
}

Test(opbuild_store, one_process_at_a_time_holds_the_lock)
{
    char done[300];
    int lock = lock_recipe(DIGEST);
    int other = lock_recipe(OTHER_DIGEST);
    int status;
    pid_t child;

    snprintf(done, sizeof(done), "%s", test_path("done"));
    cr_assert(lock >= 0);
    cr_expect(other >= 0, "another recipe is not locked");
    cr_expect(exists(test_path("local/ops-" KEY ".lock")));
    child = fork();
    if (child == 0) {
        close(lock);
        lock = lock_recipe(DIGEST);
        _exit(lock >= 0 && exists(done) ? 0 : 1);
    }
    usleep(50000); /* for a process that does not wait */
    test_write("done", "");
    close(lock);
    close(other);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
}

/* Start a process that holds the lock of DIGEST, releases it if wanted, and is then stopped; by a
 * tracer, which is this process, if wanted. */
static pid_t start_holder(bool releases, bool is_traced)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        int lock = lock_recipe(DIGEST);

        if (lock >= 0) {
            if (releases) {
                ds_accel__store_unlock(lock);
            }
            if (is_traced) {
                ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            }
            raise(SIGSTOP);
        }
        _exit(1);
    }
    cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
    cr_assert(WIFSTOPPED(status));
    return child;
}

static void end_holder(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

Test(opbuild_store, a_stopped_process_is_not_waited_for)
{
    pid_t child = start_holder(false, false);
    int lock = lock_recipe(DIGEST);

    end_holder(child);
    cr_assert_eq(lock, -1);
    lock = lock_recipe(DIGEST);
    cr_expect(lock >= 0, "the lock ends with the process");
    close(lock);
}

/* Expect that the lock is not had within the time, and whether its holder counts as stopped. */
static void expect_held(uint64_t limit_ms, pid_t wanted)
{
    int fd = open(test_path("local/ops-" KEY ".lock"), O_RDWR | O_CLOEXEC);
    pid_t stopped = -1;

    cr_assert(fd >= 0);
    cr_expect_not(ds_accel__cache_lock_within(fd, limit_ms, &stopped));
    cr_expect_eq(stopped, wanted, "%d", (int)stopped);
    close(fd);
}

Test(opbuild_store, a_process_of_another_pid_namespace_is_not_mistaken)
{
    pid_t child = start_holder(false, false);
    char signature[32];
    int fd = open(test_path("local/ops-" KEY ".lock"), O_RDWR | O_CLOEXEC);

    cr_assert(fd >= 0);
    expect_held(60000, child);
    snprintf(signature, sizeof(signature), "%-20d 4026531000", (int)child);
    cr_assert_eq(pwrite(fd, signature, 31, 0), 31);
    expect_held(300, 0);
    close(fd);
    end_holder(child);
}

/* The next holder may not have signed yet. */
Test(opbuild_store, the_holder_before_is_not_mistaken)
{
    pid_t child = start_holder(true, false);
    int fd = open(test_path("local/ops-" KEY ".lock"), O_RDWR | O_CLOEXEC);

    cr_assert(fd >= 0);
    cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    expect_held(300, 0);
    close(fd);
    end_holder(child);
}

/* strace and leak checkers stop a process for moments, a debugger for longer. */
Test(opbuild_store, a_traced_process_is_waited_for_some_time)
{
    pid_t child = start_holder(false, true);

    expect_held(300, 0);
    expect_held(60000, child);
    end_holder(child);
}

Test(opbuild_store, without_a_directory_there_is_no_lock)
{
    struct ds_accel__stores stores = {.local = NULL};
    char *message = (char *)"";

    cr_expect_eq(ds_accel__store_lock(&stores, DIGEST, &quiet), -1);
    stores.local = (char *)"/proc/nowhere";
    cr_expect_eq(ds_accel__store_lock(&stores, DIGEST, &quiet), -1);
    ds_accel__store_lock_fail(-1, DIGEST, "no");
    MUST(ds_accel__store_lock_failure(-1, DIGEST, 0, &message));
    cr_expect_null(message);
}

static void expect_message(int lock, uint64_t since_ms, const char *wanted)
{
    char *message = (char *)"";

    MUST(ds_accel__store_lock_failure(lock, DIGEST, since_ms, &message));
    if (wanted != NULL) {
        cr_assert_not_null(message);
        cr_expect_str_eq(message, wanted);
    } else {
        cr_expect_null(message);
    }
    free(message);
}

Test(opbuild_store, a_failure_is_left_for_those_who_wait)
{
    int lock = lock_recipe(DIGEST);
    uint64_t begin_ms = ds_accel__boot_ms() - 1;
    static char large[DS_ACCEL__STORE_MESSAGE_BYTES + 2];

    cr_assert(lock >= 0);
    expect_message(lock, 0, NULL);
    ds_accel__store_lock_fail(lock, DIGEST,
                              "the first message, which is longer\nthan the next one");
    expect_message(lock, begin_ms, "the first message, which is longer\nthan the next one");
    expect_message(lock, ds_accel__boot_ms() + 60000, NULL);
    ds_accel__store_lock_fail(lock, DIGEST, "second");
    expect_message(lock, begin_ms, "second");
    close(lock);
    lock = lock_recipe(DIGEST); /* which writes into the file as well */
    expect_message(lock, begin_ms, "second");
    memset(large, 'x', DS_ACCEL__STORE_MESSAGE_BYTES);
    ds_accel__store_lock_fail(lock, DIGEST, large);
    expect_message(lock, begin_ms, large);
    ds_accel__store_lock_fail(lock, DIGEST, "third");
    expect_message(lock, begin_ms, "third");
    memset(large, 'y', DS_ACCEL__STORE_MESSAGE_BYTES + 1); /* too large */
    ds_accel__store_lock_fail(lock, DIGEST, large);
    expect_message(lock, begin_ms, "third");
    close(lock);
}

/* Damage what is before the text, a character at a time: the boot and the time. */
Test(opbuild_store, a_damaged_message_is_none)
{
    int lock = lock_recipe(DIGEST);
    char data[512];
    char digits[21];
    ssize_t size;

    ds_accel__store_lock_fail(lock, DIGEST, "TEXT");
    size = pread(lock, data, sizeof(data), 64);
    cr_assert(size > 24 && memcmp(data + size - 4, "TEXT", 4) == 0);
    for (ssize_t i = 0; i < size - 4; i++) {
        cr_assert_eq(pwrite(lock, "x", 1, 64 + i), 1);
        expect_message(lock, 0, NULL);
        cr_assert_eq(pwrite(lock, data + i, 1, 64 + i), 1);
    }
    expect_message(lock, 0, "TEXT");
    /* One of the same millisecond may be that of the build before. */
    snprintf(digits, sizeof(digits), "%.20s", data + size - 24);
    expect_message(lock, strtoull(digits, NULL, 10) - 1, "TEXT");
    expect_message(lock, strtoull(digits, NULL, 10), NULL);
    for (ssize_t i = 0; i < size - 4; i++) {
        cr_assert_eq(ftruncate(lock, 64 + i), 0);
        expect_message(lock, 0, NULL);
    }
    close(lock);
}

static int held;

static int32_t attempt_message(void)
{
    char *message = NULL;
    int32_t status;

    ds_accel__store_lock_fail(held, DIGEST, "message");
    status = ds_accel__store_lock_failure(held, DIGEST, 0, &message);
    cr_expect(status < 0 || (message != NULL && strcmp(message, "message") == 0));
    free(message);
    return status;
}

Test(opbuild_store, every_allocation_of_a_message_can_fail)
{
    held = lock_recipe(DIGEST);
    attempt_message();
    fail_each(attempt_message);
    close(held);
}
