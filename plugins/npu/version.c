/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads the versions of CANN and of the driver from the files that their installers leave, because
 * ACL itself reports only the version of its own interface. All paths are below machine_root, the
 * context's root directory of the machine (normally /).
 */
#include "npu.h"

/*
 * Reads the value of the first line "KEY=VALUE" in a file. Returns 0, or -1 if the file cannot be
 * opened or has no such line.
 */
static int read_value(const char *path, const char *key, char *value, size_t value_size)
{
    FILE *file = fopen(path, "re");
    size_t key_length = strlen(key);
    char line[256];
    int result = -1;

    if (file == NULL) {
        return -1;
    }
    while (result != 0 && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, key_length) == 0 && line[key_length] == '=') {
            line[strcspn(line, "\r\n")] = '\0';
            snprintf(value, value_size, "%s", line + key_length + 1);
            result = 0;
        }
    }
    fclose(file);
    return result;
}

/*
 * Parses at most three parts, and stops at the first part that is not a number: "8.0.RC1" is 8.0.0.
 * The other parts of version remain unchanged.
 */
static void parse(const char *text, uint32_t version[4])
{
    for (uint32_t i = 0; i < 3 && isdigit((unsigned char)*text); i++) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);

        version[i] = number > UINT32_MAX ? 0 : (uint32_t)number;
        if (*end != '.') {
            return;
        }
        text = end + 1;
    }
}

static int read_install_info(const struct ds_accel_host *host, const char *install,
                             uint32_t version[4])
{
    static const char *const machines[] = {"x86_64", "aarch64"};
    static const char *const packages[] = {"toolkit", "nnrt", "ops"};
    char path[512];
    char value[64];

    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 3; j++) {
            snprintf(path, sizeof(path), "%s%s/%s-linux/ascend_%s_install.info", host->machine_root,
                     install, machines[i], packages[j]);
            if (read_value(path, "version", value, sizeof(value)) == 0) {
                parse(value, version);
                return 0;
            }
        }
    }
    return -1;
}

void npu_runtime_version(const struct ds_accel_host *host, uint32_t version[4])
{
    const char *installs[] = {getenv("ASCEND_HOME_PATH"), getenv("ASCEND_TOOLKIT_HOME"),
                              "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann",
                              "/usr/local/Ascend/nnrt/latest"};

    for (size_t i = 0; i < sizeof(installs) / sizeof(installs[0]); i++) {
        if (installs[i] != NULL && installs[i][0] == '/' &&
            read_install_info(host, installs[i], version) == 0) {
            return;
        }
    }
}

void npu_driver_version(const struct ds_accel_host *host, uint32_t version[4])
{
    char path[512];
    char value[64];

    snprintf(path, sizeof(path), "%s/usr/local/Ascend/driver/version.info", host->machine_root);
    if (read_value(path, "Version", value, sizeof(value)) == 0) {
        parse(value, version);
    }
}
