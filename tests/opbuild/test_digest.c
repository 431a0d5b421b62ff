/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Which files are remembered by their times. */
#include "opbuild.h"
#include "ops/digest.h"
#include "ops/timed.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#define MEMORY "/dev/shm/ds-accel-test-XXXXXX"

static char memory[] = MEMORY; /* a directory of a file system in memory; "": there is none */

static void begin(void)
{
    if (mkdtemp(memory) == NULL) {
        memory[0] = '\0';
    }
}

static void end(void)
{
    char command[200];

    snprintf(command, sizeof(command), "rm -rf '%s'", memory);
    cr_assert(memory[0] == '\0' || system(command) == 0);
}

TestSuite(opbuild_digest, .init = begin, .fini = end);

/* A file that is mapped changes with the same times, two seconds after them, too. */
Test(opbuild_digest, files_in_memory_are_not_remembered)
{
    char path[100];
    char key[DS_ACCEL__FILE_KEY_SIZE];
    char first[65];
    char second[65];
    char *data;
    int fd;

    if (memory[0] == '\0') {
        cr_skip("there is no /dev/shm");
    }
    snprintf(path, sizeof(path), "%s/x.h", memory);
    fd = open(path, O_RDWR | O_CREAT, 0644);
    cr_assert_eq(write(fd, "1", 1), 1);
    data = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(data != MAP_FAILED);
    data[0] = '2';
    usleep(3100000);
    MUST(ds_accel__digest_file(path, first));
    data[0] = '3';
    MUST(ds_accel__digest_file(path, second));
    cr_expect_str_neq(second, first);
    cr_expect(!ds_accel__file_key(path, key));
    cr_expect(ds_accel__file_key("/bin/sh", key) == ds_accel__is_timed_path("/bin/sh"));
    munmap(data, 1);
    close(fd);
}

Test(opbuild_digest, file_systems_with_times)
{
    cr_expect(ds_accel__is_timed_path("/proc/self/mountinfo"));
    cr_expect(!ds_accel__is_timed_path("/no/such/file"));
    if (memory[0] != '\0') {
        cr_expect(!ds_accel__is_timed_path(memory));
    }
}

/* Also behind an overlayfs, which has the type of none of its layers. */
Test(opbuild_digest, an_overlay_of_files_in_memory_is_in_memory)
{
    char command[600];
    char options[400];

    if (memory[0] == '\0') {
        cr_skip("there is no /dev/shm");
    }
    snprintf(command, sizeof(command),
             "cd '%s' && mkdir lower upper work merged && echo >lower/x.h", memory);
    cr_assert_eq(system(command), 0);
    snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work",
             memory, memory, memory);
    snprintf(command, sizeof(command), "%s/merged", memory);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("overlay", command, "overlay", 0, options) != 0) {
        cr_skip("no overlayfs can be mounted");
    }
    snprintf(command, sizeof(command), "%s/merged/x.h", memory);
    cr_expect(!ds_accel__is_timed_path(command));
    snprintf(command, sizeof(command), "%s/merged", memory);
    umount2(command, MNT_DETACH);
    /* On a disk it is timed, if that is one. */
    snprintf(options, sizeof(options), "cd '%s' && mkdir upper work", test_dir());
    cr_assert_eq(system(options), 0);
    snprintf(options, sizeof(options),
             "lowerdir=%s/lower,upperdir=%.100s/upper,workdir=%.100s/work", memory, test_dir(),
             test_dir());
    if (mount("overlay", command, "overlay", 0, options) == 0) {
        snprintf(command, sizeof(command), "%s/merged/x.h", memory);
        cr_expect(ds_accel__is_timed_path(command) == ds_accel__is_timed_path(test_dir()));
        snprintf(command, sizeof(command), "%s/merged", memory);
        umount2(command, MNT_DETACH);
    }
}
