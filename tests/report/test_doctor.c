/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * doctor: a test causes each finding on a fake machine in test_dir()/machine, applies the finding's
 * remedy, and expects that the finding disappears.
 */
#include "fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#define OPTION(name, key, value) setenv("DS_ACCEL_" name "_" key, value, 1)

static void put(const char *path, const char *text)
{
    char full[512];

    snprintf(full, sizeof(full), "machine/%s", path);
    test_write(full, text);
}

static ds_accel_t *create(void)
{
    struct ds_accel_options options = test_options();

    options.machine_root = test_path("machine");
    return test_create_with(&options);
}

static char *report_of(ds_accel_t *context, uint32_t format)
{
    char *text = NULL;
    int32_t status = ds_accel_report(context, DS_ACCEL_REPORT_DOCTOR, NULL, format, &text);

    cr_assert_not_null(text, "%s", ds_accel_last_error());
    if (format == DS_ACCEL_FORMAT_JSON) {
        test_compact(text);
        cr_expect_eq(status, strstr(text, "\"severity\":\"problem\"") != NULL ? DS_ACCEL_ERR_STATE
                                                                              : DS_ACCEL_OK);
        EXPECT_HAS(text, status == DS_ACCEL_OK ? "\"ok\":true" : "\"ok\":false");
    }
    return text;
}

static char *report(void)
{
    ds_accel_t *context = create();
    char *text = report_of(context, DS_ACCEL_FORMAT_JSON);

    ds_accel_destroy(context);
    return text;
}

static void expect_in(const char *text, const char *check, const char *severity,
                      const char *subject, const char *detail, const char *remedy)
{
    char head[600];
    const char *at;
    const char *end;
    char finding[2048];

    snprintf(head, sizeof(head), "{\"check\":\"%s\",\"severity\":\"%s\",\"subject\":\"%s\",", check,
             severity, subject);
    at = strstr(text, head);
    cr_assert_not_null(at, "no %s in:\n%s", head, text);
    end = strchr(at, '}');
    snprintf(finding, sizeof(finding), "%.*s", (int)(end - at), at);
    EXPECT_HAS(strstr(finding, "\"detail\""), detail);
    EXPECT_HAS(strstr(finding, "\"remedy\""), remedy);
}

static void expect(const char *check, const char *severity, const char *subject, const char *detail,
                   const char *remedy)
{
    char *text = report();

    expect_in(text, check, severity, subject, detail, remedy);
    ds_accel_free_text(text);
}

/* Expect that no finding of a check is worse than info. */
static void expect_fine(const char *check)
{
    char *text = report();
    char bad[96];

    snprintf(bad, sizeof(bad), "{\"check\":\"%s\",\"severity\":\"problem\"", check);
    EXPECT_HAS_NOT(text, bad);
    snprintf(bad, sizeof(bad), "{\"check\":\"%s\",\"severity\":\"warning\"", check);
    EXPECT_HAS_NOT(text, bad);
    ds_accel_free_text(text);
}

static void add_gpu(const char *vendor)
{
    char text[16];

    snprintf(text, sizeof(text), "%s\n", vendor);
    put("sys/bus/pci/devices/0000:01:00.0/vendor", text);
    put("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    put("sys/bus/pci/devices/0000:01:00.0/power/runtime_status", "active\n");
}

static void add_nodes(void)
{
    put("dev/nvidiactl", "");
    put("dev/nvidia-uvm", "");
    put("dev/nvidia0", "");
}

static void prepare(void)
{
    test_copy(TEST_SOURCE "/conf/ds-accel.json", "share/ds-accel.json");
    put("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
    unsetenv("DS_ACCELERATOR");
    unsetenv("LD_LIBRARY_PATH");
}

TestSuite(core_doctor, .init = prepare);

/* ---- choice, configuration and plugins ------------------------------------------------------- */

Test(core_doctor, a_machine_without_hardware_has_no_problem)
{
    ds_accel_t *context;
    char *text;

    test_add_mock("cuda");
    /* The mock does not accept the options that the shipped cuda backend declares. */
    test_write("etc/ds-accel.json", "{\"backends\": {\"cuda\": {\"options\": null}}}");
    OPTION("CUDA", "AVAILABLE", "false");
    OPTION("CUDA", "REASON", "library_missing");
    context = create();
    text = report_of(context, DS_ACCEL_FORMAT_JSON);
    expect_in(text, "choice", "ok", "cpu", "chosen by auto detect", "\"\"");
    expect_in(text, "plugin", "info", "cuda", "library_missing: ", "libcuda1");
    EXPECT_HAS_NOT(text, "\"problem\"");
    EXPECT_HAS_NOT(text, "\"warning\"");
    ds_accel_free_text(text);
    text = report_of(context, 0);
    EXPECT_HAS(text, "0 problems, 0 warnings\n");
    EXPECT_HAS_NOT(text, "ok ");
    ds_accel_free_text(text);
    text = report_of(context, DS_ACCEL_FORMAT_VERBOSE);
    EXPECT_HAS(text, "ok       choice");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_doctor, that_nothing_can_be_chosen_is_a_problem)
{
    setenv("DS_ACCELERATOR", "cuda", 1);
    expect("choice", "problem", "", "which has no plugin here", "force another");
    test_add_mock("cuda");
    expect("choice", "ok", "cuda", "chosen by override", "");
}

Test(core_doctor, a_plugin_that_says_no_is_a_problem_where_its_hardware_is)
{
    test_add_mock("cuda");
    OPTION("CUDA", "AVAILABLE", "false");
    OPTION("CUDA", "REASON", "no_driver");
    OPTION("CUDA", "DETAIL", "libcuda.so.1");
    expect("plugin", "info", "cuda", "no_driver: libcuda.so.1", "kernel driver");
    add_gpu("0x10de");
    expect("plugin", "problem", "cuda", "no_driver: libcuda.so.1", "kernel driver");
    OPTION("CUDA", "REASON", "device_busy");
    expect("plugin", "warning", "cuda", "device_busy", "wait");
    OPTION("CUDA", "AVAILABLE", "true");
    unsetenv("DS_ACCEL_CUDA_REASON");
    expect("plugin", "ok", "cuda", "selected: ", "");
}

Test(core_doctor, a_plugin_without_facts_that_says_no_is_a_warning)
{
    test_add_mock("alpha");
    OPTION("ALPHA", "AVAILABLE", "false");
    OPTION("ALPHA", "REASON", "library_missing");
    expect("plugin", "warning", "alpha", "library_missing", "runtime");
    OPTION("ALPHA", "REASON", "bad_option");
    expect("plugin", "problem", "alpha", "bad_option", "correct the option");
}

Test(core_doctor, a_rejected_plugin_is_a_problem)
{
    const char *path = test_write("plugins/ds_accel_zeta.so", "text");

    expect("plugin", "problem", path, "not_elf: ", "reinstall the plugin");
    cr_assert_eq(remove(path), 0);
    expect_fine("plugin");
}

Test(core_doctor, a_denied_plugin_is_no_problem)
{
    test_add_mock("cuda");
    test_write("etc/ds-accel.json", "{\"deny\": [\"cuda\"]}");
    expect("plugin", "info", "cuda", "denied: ", "remove the pattern");
}

Test(core_doctor, a_shadowed_plugin_is_a_warning)
{
    test_copy(TEST_MOCKS "/ds_accel_cuda.so", "plugins/ds_accel_cpu.so");
    expect("plugin", "warning", TEST_PLUGINS "/ds_accel_cpu.so", "shadowed: by ", "remove one");
    cr_assert_eq(remove(test_path("plugins/ds_accel_cpu.so")), 0);
    expect_fine("plugin");
}

/* Replace these bytes everywhere in a file; asserts that they occur. */
static void patch(const char *path, const void *old, const void *new, size_t size)
{
    FILE *file = fopen(path, "r+b");
    unsigned changed = 0;
    char *data;
    long length;

    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    length = ftell(file);
    data = malloc((size_t)length);
    cr_assert_not_null(data);
    rewind(file);
    cr_assert_eq(fread(data, 1, (size_t)length, file), (size_t)length);
    for (size_t i = 0; i + size <= (size_t)length; i++) {
        if (memcmp(data + i, old, size) == 0) {
            memcpy(data + i, new, size);
            changed++;
        }
    }
    cr_assert_geq(changed, 1);
    rewind(file);
    cr_assert_eq(fwrite(data, 1, (size_t)length, file), (size_t)length);
    cr_assert_eq(fclose(file), 0);
    free(data);
}

Test(core_doctor, a_plugin_of_another_ds_accel_is_a_warning)
{
    char other[sizeof(DS_ACCEL_VERSION)];

    test_add_mock("cuda");
    expect_fine("plugin");
    snprintf(other, sizeof(other), "9%s", DS_ACCEL_VERSION + 1);
    patch(test_path("plugins/ds_accel_cuda.so"), DS_ACCEL_VERSION, other, sizeof(other));
    expect("plugin", "warning", "cuda", "is of ds-accel 9", "came with this ds-accel");
}

Test(core_doctor, a_plugin_of_another_minor_version_is_worth_a_line)
{
    struct ds_accel_note_desc ours = {.struct_size = sizeof(ours),
                                      .abi_major = DS_ACCEL_ABI_MAJOR,
                                      .abi_minor = DS_ACCEL_ABI_MINOR};
    struct ds_accel_note_desc other = ours;
    char detail[64];

    test_add_mock("cuda");
    other.abi_minor++;
    patch(test_path("plugins/ds_accel_cuda.so"), &ours, &other,
          offsetof(struct ds_accel_note_desc, required_features));
    snprintf(detail, sizeof(detail), "built for ABI %d.%d; this host has %d.%d", DS_ACCEL_ABI_MAJOR,
             DS_ACCEL_ABI_MINOR + 1, DS_ACCEL_ABI_MAJOR, DS_ACCEL_ABI_MINOR);
    expect("plugin", "info", "cuda", detail, "what this host does not know is not used");
}

Test(core_doctor, an_unknown_variable_is_a_warning)
{
    setenv("DS_ACCEL_PLUGIN_PAHT", "/x", 1);
    expect("config", "warning", "DS_ACCEL_PLUGIN_PAHT", "did you mean DS_ACCEL_PLUGIN_PATH?",
           "unset it");
    unsetenv("DS_ACCEL_PLUGIN_PAHT");
    expect_fine("config");
}

Test(core_doctor, without_any_configuration_it_is_a_problem)
{
    cr_assert_eq(remove(test_path("share/ds-accel.json")), 0);
    expect("config", "problem", "", "not even the shipped defaults", "reinstall ds-accel");
}

/* ---- device nodes --------------------------------------------------------------------------- */

/* Report as a user other than root. Plugins are probed before the change of user, because their
   files may be owned by root. */
static char *report_as_user(void)
{
    ds_accel_t *context = create();
    bool is_root = geteuid() == 0;
    char *text;

    cr_assert_eq(chmod(test_dir(), 0755), 0);
    ds_accel_detect(context);
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK);
    cr_assert(!is_root || seteuid(65534) == 0);
    text = report_of(context, DS_ACCEL_FORMAT_JSON);
    cr_assert(!is_root || seteuid(0) == 0);
    ds_accel_destroy(context);
    return text;
}

Test(core_doctor, a_node_without_permission_is_a_problem)
{
    char owner[64];
    char *text;

    test_add_mock("cuda");
    add_gpu("0x10de");
    add_nodes();
    snprintf(owner, sizeof(owner), "gpuowner:x:%u:0::/:/bin/sh\n", (unsigned)geteuid());
    put("etc/passwd", owner);
    snprintf(owner, sizeof(owner), "other:x:77777:\ngpugroup:x:%u:\n", (unsigned)getegid());
    put("etc/group", owner);
    cr_assert_eq(chmod(test_path("machine/dev/nvidia0"), 0), 0);
    text = report_as_user();
    expect_in(text, "device_node", "problem", "/dev/nvidia0",
              "may not read and write it: mode 0000, owner gpuowner, group gpugroup, for cuda",
              "give a group of users read and write permission");
    ds_accel_free_text(text);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const nodes[] = {"nvidia0", "nvidiactl", "nvidia-uvm"};
        char path[64];

        snprintf(path, sizeof(path), "machine/dev/%s", nodes[i]);
        cr_assert_eq(chmod(test_path(path), 0666), 0);
    }
    text = report_as_user();
    expect_in(text, "device_node", "ok", "/dev/nvidia0", "mode 0666", "\"\"");
    EXPECT_HAS_NOT(text, "\"check\":\"device_node\",\"severity\":\"problem\"");
    ds_accel_free_text(text);
}

/* A recording with every device node closed: the user who recorded may have wider access than
   another. */
static char *close_nodes(const char *recording)
{
    static const char key[] = "\"is_usable\":";
    char *closed = calloc(2, strlen(recording) + 1);
    char *to = closed;

    cr_assert_not_null(closed);
    while (*recording != '\0') {
        if (strncmp(recording, key, strlen(key)) == 0) {
            to += sprintf(to, "%sfalse", key);
            recording += strlen(key);
            recording += strcspn(recording, ",}");
        } else {
            *to++ = *recording++;
        }
    }
    return closed;
}

/* A recorded machine reports its nodes as recorded, and contains no user names. */
Test(core_doctor, a_recorded_machine_has_its_nodes_and_no_names)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char owner[64];
    char *recording;
    char *closed;
    char *text;

    test_add_mock("cuda");
    add_gpu("0x10de");
    add_nodes();
    snprintf(owner, sizeof(owner), "gpuowner:x:%u:0::/:/bin/sh\n", (unsigned)geteuid());
    put("etc/passwd", owner);
    context = create();
    recording =
        test_compact(test_report(context, DS_ACCEL_REPORT_RECORDING, NULL, DS_ACCEL_FORMAT_JSON));
    ds_accel_destroy(context);
    EXPECT_HAS(recording, "\"/dev/nvidia0\"");
    EXPECT_HAS_NOT(recording, "gpuowner");
    closed = close_nodes(recording);
    ds_accel_free_text(recording);
    options.machine_file = test_write("closed.json", closed);
    options.plugin_dir_count = 0;
    free(closed);
    context = test_create_with(&options);
    text = report_of(context, DS_ACCEL_FORMAT_JSON);
    expect_in(text, "device_node", "problem", "/dev/nvidia0", "may not read and write it", "");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_doctor, a_node_of_a_group_is_had_by_joining_it)
{
    char *text;

    if (geteuid() != 0) {
        cr_skip("only root can give a file to another group");
    }
    test_add_mock("cuda");
    add_nodes();
    put("etc/group", "root:x:0:\nrender:x:4711:\n");
    cr_assert_eq(chown(test_path("machine/dev/nvidia0"), 0, 4711), 0);
    cr_assert_eq(chmod(test_path("machine/dev/nvidia0"), 0660), 0);
    text = report_as_user();
    expect_in(text, "device_node", "problem", "/dev/nvidia0",
              "mode 0660, owner 0, group render, for cuda",
              "add the user to the group render, and log in again");
    ds_accel_free_text(text);
}

Test(core_doctor, hardware_without_a_node_is_a_problem)
{
    test_add_mock("cuda");
    add_gpu("0x10de");
    expect("device_node", "problem", "0000:01:00.0", "no device node for cuda",
           "install and load NVIDIA's kernel driver");
    add_nodes();
    expect_fine("device_node");
}

Test(core_doctor, hardware_without_a_plugin_is_worth_a_line)
{
    add_gpu("0x10de");
    expect("device_node", "info", "0000:01:00.0", "no device node for cuda", "driver");
    expect("plugin", "info", "cuda",
           "0000:01:00.0 is present, but ds_accel_cuda.so is not installed",
           "install the vendor's plugin");
    expect_fine("device_node");
}

Test(core_doctor, one_node_of_several_that_is_missing_is_a_warning)
{
    test_add_mock("cuda");
    put("dev/nvidia0", "");
    put("dev/nvidia-uvm", "");
    expect("device_node", "warning", "/dev/nvidiactl", "cuda has /dev/nvidia-uvm, but not this one",
           "if this is a container, pass it in");
    put("dev/nvidiactl", "");
    expect_fine("device_node");
}

Test(core_doctor, a_shared_directory_has_nodes_of_others)
{
    char *text;

    test_add_mock("rocm");
    put("dev/kfd", "");
    put("dev/dri/renderD128", "");
    put("dev/dri/renderD129", "");
    put("dev/dri/card0", "");
    put("sys/class/drm/renderD128/device/vendor", "0x10de\n");
    put("sys/class/drm/renderD129/device/vendor", "0x1002\n");
    text = report();
    expect_in(text, "device_node", "ok", "/dev/dri/renderD129", "for rocm", "\"\"");
    EXPECT_HAS_NOT(text, "renderD128");
    EXPECT_HAS_NOT(text, "card0");
    ds_accel_free_text(text);
}

/* ---- libraries ------------------------------------------------------------------------------ */

#define LIBRARY TEST_FIXTURES "/absent/libds_accel_absent.so" /* a library without dependencies */

/* Build a library that links libneeded.so.1 and nothing else, with or without sanitizers. */
static void build_library(const char *path)
{
    char command[1024];

    snprintf(
        command, sizeof(command),
        "cd '%s' && echo 'int needed;' | %s -shared -fPIC -nostdlib -Wl,-soname,libneeded.so.1 "
        "-x c - -o needed.so && echo 'extern int needed; int *user = &needed;' | %s -shared "
        "-fPIC -nostdlib -x c - -x none needed.so -o '%s'",
        test_dir(), TEST_CC, TEST_CC, test_path(path));
    cr_assert_eq(system(command), 0);
}

Test(core_doctor, a_missing_runtime_is_a_problem_where_its_hardware_is)
{
    test_add_mock("cuda");
    add_gpu("0x10de");
    add_nodes();
    expect_fine("library"); /* a recorded machine without libraries reports nothing about them */
    test_copy(LIBRARY, "machine/usr/lib/libunrelated.so");
    expect("library", "problem", "libcuda.so.1",
           "the runtime of cuda is in none of the directories", "(Debian, non-free: libcuda1)");
    test_copy(LIBRARY, "machine/usr/lib/libcuda.so");
    expect("library", "ok", "libcuda.so.1", "/usr/lib/libcuda.so, for cuda", "\"\"");
}

Test(core_doctor, a_runtime_in_a_directory_of_the_environment_is_found)
{
    test_add_mock("cuda");
    add_gpu("0x10de");
    test_copy(LIBRARY, "machine/usr/lib/libunrelated.so");
    test_write("machine/opt/bad/libcuda.so.1", "not a library");
    test_copy(LIBRARY, "machine/opt/good/libcuda.so.1");
    setenv("LD_LIBRARY_PATH", "::/opt/bad:/opt/none:", 1);
    expect("library", "problem", "libcuda.so.1", "none of the directories", "LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", "/opt/bad:/opt/good", 1);
    expect("library", "ok", "libcuda.so.1", "/opt/good/libcuda.so.1, for cuda", "\"\"");
}

Test(core_doctor, what_a_runtime_needs_is_named_with_who_needs_it)
{
    test_add_mock("rocm");
    put("dev/kfd", "");
    build_library("machine/opt/rocm/lib/libamdhip64.so");
    expect_fine("library");
    test_copy(LIBRARY, "machine/lib/libunrelated.so");
    expect("library", "problem", "libneeded.so.1", "needed by /opt/rocm/lib/libamdhip64.so",
           "install the package");
    test_copy(LIBRARY, "machine/lib/libneeded.so.1");
    expect("library", "ok", "libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so, for rocm", "\"\"");
}

struct cache {
    char magic[20];
    uint32_t entry_count;
    uint32_t text_bytes;
    uint32_t more[5];
    struct {
        int32_t flags;
        uint32_t name;
        uint32_t path;
        uint32_t os_version;
        uint64_t hardware;
    } entries[2];
    char texts[128];
};

Test(core_doctor, the_linkers_cache_is_read_and_a_damaged_one_is_not_believed)
{
    struct cache cache = {.entry_count = 2};
    static const char texts[] = "libcuda.so.1\0/opt/cached/libcuda.so.1\0/opt/none/libcuda.so.1";

    memcpy(cache.magic, "glibc-ld.so.cache1.1", 20);
    memcpy(cache.texts, texts, sizeof(texts));
    for (int i = 0; i < 2; i++) {
        cache.entries[i].name = offsetof(struct cache, texts);
        cache.entries[i].path = (uint32_t)offsetof(struct cache, texts) + (i == 0 ? 38 : 13);
    }
    test_add_mock("cuda");
    add_gpu("0x10de");
    test_copy(LIBRARY, "machine/usr/lib/libunrelated.so");
    test_copy(LIBRARY, "machine/opt/cached/libcuda.so.1");
    test_write_bytes("machine/etc/ld.so.cache", &cache, sizeof(cache));
    expect("library", "ok", "libcuda.so.1", "/opt/cached/libcuda.so.1, for cuda", "\"\"");
    for (size_t size = 0; size < offsetof(struct cache, texts) + 37; size += 7) {
        test_write_bytes("machine/etc/ld.so.cache", &cache, size);
        expect("library", "problem", "libcuda.so.1", "none of the directories", "");
    }
    cache.entry_count = UINT32_MAX;
    cache.entries[1].name = UINT32_MAX;
    cache.entries[0].path = UINT32_MAX - 1;
    test_write_bytes("machine/etc/ld.so.cache", &cache, sizeof(cache));
    expect("library", "problem", "libcuda.so.1", "none of the directories", "");
}

Test(core_doctor, a_library_that_a_plugin_links_is_named_with_the_plugin)
{
    char needed[300];

    test_copy(TEST_FIXTURES "/missing_library/ds_accel_missing_library.so",
              "plugins/ds_accel_missing_library.so");
    snprintf(needed, sizeof(needed), "needed by %s",
             test_path("plugins/ds_accel_missing_library.so"));
    expect("plugin_dependency", "problem", "libds_accel_absent.so.1", needed,
           "install the package that has it");
    test_copy(LIBRARY, "lib/libds_accel_absent.so.1");
    setenv("LD_LIBRARY_PATH", test_path("lib"), 1);
    expect("plugin_dependency", "ok", "missing_library", "every library that it links is installed",
           "");
}

/* ---- limits --------------------------------------------------------------------------------- */

#define MEMLOCK(soft) \
    "Limit  Soft  Hard  Units\nMax locked memory         " soft "  unlimited  bytes\n"

Test(core_doctor, little_locked_memory_is_a_warning)
{
    put("proc/self/status", "CapEff:\t0000000000000000\n");
    put("proc/self/limits", MEMLOCK("8388608"));
    expect("memlock", "warning", "RLIMIT_MEMLOCK", "8192 KiB of 16384 MiB of memory may be locked",
           "ulimit -l unlimited");
    put("proc/self/limits", MEMLOCK("2147483647"));
    expect("memlock", "warning", "RLIMIT_MEMLOCK", "2097151 KiB of", "");
    put("proc/self/limits", MEMLOCK("2147483648"));
    expect("memlock", "ok", "RLIMIT_MEMLOCK", "2147483648 bytes", "");
    put("proc/self/limits", MEMLOCK("unlimited"));
    expect("memlock", "ok", "RLIMIT_MEMLOCK", "unlimited", "");
    put("proc/self/limits", MEMLOCK("8388608"));
    put("proc/self/status", "CapInh:\t0\nCapEff:\t0000000000004000\n");
    expect("memlock", "ok", "RLIMIT_MEMLOCK", "it has CAP_IPC_LOCK", "");
}

#define MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void put_machine(void)
{
    put("sys/devices/system/cpu/online", "0-7\n");
    put("sys/devices/system/node/online", "0-1\n");
    put("sys/devices/system/node/node0/cpulist", "0-3\n");
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
    put("sys/devices/system/node/node1/cpulist", "4-7\n");
    put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", MOUNT);
}

Test(core_doctor, fewer_cpus_and_nodes_are_named_with_the_file_that_says_so)
{
    put_machine();
    put("sys/fs/cgroup/a/b/cpuset.cpus", "\n");
    put("sys/fs/cgroup/a/cpuset.cpus", "0-1,4\n");
    put("sys/fs/cgroup/a/cpuset.mems", "1\n");
    put("proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n");
    expect("cpuset", "ok", "", "all 8 CPUs", "");
    expect("numa", "ok", "", "all 2 NUMA nodes", "");
    put("proc/self/status", "Cpus_allowed_list:\t0-1,4\nMems_allowed_list:\t1\n");
    expect("cpuset", "info", "/sys/fs/cgroup/a/cpuset.cpus", "3 of 8 CPUs may be used: 0-1,4",
           "that file's group");
    expect("numa", "info", "/sys/fs/cgroup/a/cpuset.mems", "1 of 2 NUMA nodes with memory", "");
    put("proc/self/status", "Cpus_allowed_list:\t7\n");
    expect("cpuset", "info", "", "1 of 8 CPUs may be used: 7", "taskset, numactl or a launcher");
}

Test(core_doctor, a_cpuset_of_version_1_is_found_too)
{
    put_machine();
    put("proc/self/cgroup", "5:cpuset:/job\n9:memory:/else\n");
    put("proc/self/mountinfo",
        "31 30 0:27 / /sys/fs/cgroup/cpuset rw shared:5 - cgroup cgroup rw,cpuset\n");
    put("sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n");
    put("sys/fs/cgroup/cpuset/job/cpuset.cpus", "2-3\n");
    put("proc/self/status", "Cpus_allowed_list:\t2-3\n");
    expect("cpuset", "info", "/sys/fs/cgroup/cpuset/job/cpuset.cpus", "2 of 8 CPUs", "");
}

Test(core_doctor, a_limit_of_memory_is_told_and_a_tight_one_is_a_warning)
{
    put_machine();
    expect("memory", "ok", "", "16384 MiB, and no control group", "");
    put("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    put("sys/fs/cgroup/a/b/memory.current", "536870912\n");
    expect("memory", "info", "/sys/fs/cgroup/a/b/memory.max",
           "1024 of 16384 MiB may be used, 512 MiB are left", "raise the limit");
    put("sys/fs/cgroup/a/b/memory.current", "1060000000\n");
    expect("memory", "warning", "/sys/fs/cgroup/a/b/memory.max", "13 MiB are left",
           "end processes");
}

/* ---- a complete machine ---------------------------------------------------------------------- */

Test(core_doctor, sleep_is_no_problem)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char *text;

    test_add_mock("cuda");
    options.machine_root = TEST_SOURCE "/tests/machines/suspended-gpu";
    context = test_create_with(&options);
    text = report_of(context, DS_ACCEL_FORMAT_JSON);
    expect_in(text, "plugin", "info", "cuda", "asleep: 0000:01:00.0 suspended", "by name");
    expect_in(text, "cpuset", "ok", "", "all 20 CPUs", "");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}
