/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "opbuild.h"
#include "alloc/allocations.h"

#include <sys/stat.h>
#include <unistd.h>

unsigned long fail_each(int32_t (*attempt)(void))
{
    if (!allocations_can_fail()) {
        MUST(attempt());
        return 0;
    }
    for (unsigned long failing = 1;; failing++) {
        unsigned long calls;
        long left;
        int32_t status;

        allocations_count(failing);
        status = attempt();
        calls = allocations_stop(&left);
        cr_assert_eq(left, 0, "allocation %lu: %ld blocks are left", failing, left);
        if (calls < failing) {
            cr_assert_eq(status, DS_ACCEL_OK, "without a failure: %d: %s", status,
                         ds_accel_last_error());
            return failing - 1;
        }
        cr_assert(status <= 0 && failing < 100000, "allocation %lu: %d", failing, status);
    }
}

const char *write_script(const char *path, const char *text)
{
    const char *file = test_write(path, text);

    cr_assert_eq(chmod(file, 0755), 0);
    return file;
}

bool wait_until(bool (*holds)(void *data), void *data)
{
    for (int i = 0; i < 4000; i++) {
        if (holds(data)) {
            return true;
        }
        usleep(5000);
    }
    return false;
}

bool file_is_written(void *path)
{
    struct stat info;

    return stat(path, &info) == 0 && info.st_size > 0;
}

bool process_is_gone(void *path)
{
    char name[64];
    char state = 'Z';
    int pid = 0;
    FILE *file = fopen(path, "r");

    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    snprintf(name, sizeof(name), "/proc/%d/stat", pid);
    file = fopen(name, "r");
    if (file != NULL) {
        if (fscanf(file, "%*d %*s %c", &state) != 1) {
            state = 'Z';
        }
        fclose(file);
    }
    return state == 'Z' || state == 'X';
}

void clear_variables(void)
{
    static const char *const names[] = {"CC",        "CXX",         "NVCC",      "HIPCC",
                                        "ICPX",      "CUDA_HOME",   "CUDA_PATH", "ROCM_PATH",
                                        "ROCM_HOME", "ONEAPI_ROOT", "NVCC_CCBIN"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        unsetenv(names[i]);
    }
}
