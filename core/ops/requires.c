/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The requirements of an op: each kind, and what to install if one is not met. */
#include "ops/requires.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "ops/command.h"
#include "ops/requires_probe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#define EXTERN_C "#ifdef __cplusplus\nextern \"C\"\n#endif\n"

/* A check that is in progress. */
struct check {
    const json_t *requires;
    struct ds_accel__requires_prober prober;
    json_t *result;
    bool failed; /* memory is exhausted */
};

/* ---- remedies -------------------------------------------------------------------------------- */

/* What to do for a kind and a name. */
static const struct remedy {
    const char *kind;
    const char *what;
    const char *text;
} remedies[] = {
    {"library", "aio", "install the package libaio-dev"},
    {"library", "numa", "install the package libnuma-dev"},
    {"library", "uring", "install the package liburing-dev"},
    {"library", "ibverbs", "install the package libibverbs-dev"},
    {"library", "fabric", "install the package libfabric-dev"},
    {"library", "z", "install the package zlib1g-dev"},
    {"library", "cufile", "install libcufile of the CUDA toolkit (package libcufile-dev)"},
    {"library", "cudart", "install the CUDA toolkit (package nvidia-cuda-toolkit)"},
    {"library", "ccl", "install oneCCL (package intel-oneapi-ccl-devel of Intel)"},
    {"header", "libaio.h", "install the package libaio-dev"},
    {"header", "numa.h", "install the package libnuma-dev"},
    {"header", "liburing.h", "install the package liburing-dev"},
    {"header", "infiniband/verbs.h", "install the package libibverbs-dev"},
    {"header", "cufile.h", "install libcufile of the CUDA toolkit (package libcufile-dev)"},
    {"header", "cutlass/cutlass.h", "set CUTLASS_PATH to the sources of CUTLASS"},
    {"function", "io_pgetevents", "install libaio 0.3.112 or later (package libaio-dev)"},
    {"function", "cuFileDriverOpen", "install libcufile of the CUDA toolkit"},
    {"env", "CUTLASS_PATH", "set it to the directory of CUTLASS's sources"},
    {"env", "ASCEND_HOME_PATH", "source set_env.sh of the CANN toolkit"},
    {"env", "CCL_ROOT", "source setvars.sh of oneAPI"},
    {"command", "nvcc", "install the CUDA toolkit (package nvidia-cuda-toolkit), or set NVCC"},
    {"command", "hipcc", "install ROCm (package hipcc), or set HIPCC"},
    {"command", "icpx", "install oneAPI (package intel-oneapi-compiler-dpcpp-cpp), or set ICPX"},
    {"python", "dskernels", "install the Python package deepspeed-kernels"},
    {"python", "habana_frameworks", "install the Python package habana-torch-plugin"},
};

static const char *find_remedy(const char *kind, const char *what)
{
    for (size_t i = 0; i < ARRAY_SIZE(remedies); i++) {
        if (strcmp(remedies[i].kind, kind) == 0 && strcmp(remedies[i].what, what) == 0) {
            return remedies[i].text;
        }
    }
    return NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Add an entry. reason NULL: it is met. remedy NULL: that of the table. */
static void put(struct check *check, const char *kind, const char *what, const char *reason,
                const char *remedy)
{
    json_t *entry = json_object();

    if (reason != NULL && remedy == NULL) {
        remedy = find_remedy(kind, what);
    }
    ds_accel__json_set(entry, "kind", ds_accel__json_text(kind), &check->failed);
    ds_accel__json_set(entry, "what", ds_accel__json_text(what), &check->failed);
    ds_accel__json_set(entry, "ok", json_boolean(reason == NULL), &check->failed);
    ds_accel__json_set(entry, "reason", reason != NULL ? ds_accel__json_text(reason) : json_null(),
                       &check->failed);
    ds_accel__json_set(entry, "remedy",
                       reason != NULL && remedy != NULL ? ds_accel__json_text(remedy) : json_null(),
                       &check->failed);
    check->failed = json_array_append_new(check->result, entry) != 0 || check->failed;
}

/* Add an entry whose reason was made with ds_accel__format(), or could not be. Frees reason. */
static void put_made(struct check *check, const char *kind, const char *what, char *reason,
                     const char *remedy)
{
    if (reason == NULL) {
        check->failed = true;
        return;
    }
    put(check, kind, what, reason, remedy);
    free(reason);
}

/* ---- libraries, headers, functions ----------------------------------------------------------- */

static bool is_name(const char *name, const char *further)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr(further, *c) == NULL) {
            return false;
        }
    }
    return name[0] != '\0' && name[0] != '-';
}

/* Compile a program, and link it with libraries; add the entry. */
static int32_t probe(struct check *check, const char *kind, const char *what, const char *source,
                     const json_t *libraries, bool links)
{
    struct ds_accel__requires_found result;
    int32_t status;

    if (check->prober.compiler == NULL) {
        put(check, kind, what, "it cannot be checked, because there is no compiler",
            "install a compiler");
        return DS_ACCEL_OK;
    }
    status = ds_accel__requires_link(&check->prober, source, libraries, links, &result);
    if (status < 0) {
        return status;
    }
    if (result.reason == NULL) {
        put(check, kind, what, NULL, NULL);
    } else {
        put_made(check, kind, what,
                 ds_accel__format("a program with the %s %s does not %s: %s", kind, what,
                                  links ? "link" : "compile", result.reason),
                 NULL);
        free(result.reason);
    }
    return DS_ACCEL_OK;
}

static int32_t check_library(struct check *check, const char *name)
{
    json_t *libraries;
    int32_t status;

    if (!is_name(name, "_.+-")) {
        put(check, "library", name, "it is no name of a library", NULL);
        return DS_ACCEL_OK;
    }
    libraries = json_pack("[s]", name);
    if (libraries == NULL) {
        return ds_accel__no_memory();
    }
    status = probe(check, "library", name, "int main(void) { return 0; }\n", libraries, true);
    json_decref(libraries);
    return status;
}

static int32_t check_header(struct check *check, const char *name)
{
    char *source;
    int32_t status;

    if (!is_name(name, "_.+-/")) {
        put(check, "header", name, "it is no name of a header", NULL);
        return DS_ACCEL_OK;
    }
    source = ds_accel__format("#include <%s>\nint main(void) { return 0; }\n", name);
    if (source == NULL) {
        return ds_accel__no_memory();
    }
    status = probe(check, "header", name, source, NULL, false);
    free(source);
    return status;
}

static int32_t check_function(struct check *check, const char *name)
{
    char *source;
    int32_t status;

    if (!is_name(name, "_") || isdigit((unsigned char)name[0])) {
        put(check, "function", name, "it is no name of a function", NULL);
        return DS_ACCEL_OK;
    }
    source = ds_accel__format(EXTERN_C "void %s(void);\nint main(void) { %s(); return 0; }\n", name,
                              name);
    if (source == NULL) {
        return ds_accel__no_memory();
    }
    status =
        probe(check, "function", name, source, json_object_get(check->requires, "libraries"), true);
    free(source);
    return status;
}

/* ---- commands, variables, ops, features ------------------------------------------------------ */

/* "a|b": one of these. */
static int32_t check_command(struct check *check, const char *names)
{
    const char *rest = names;
    const char *name;
    size_t length;
    char *found = NULL;
    int32_t status = DS_ACCEL_OK;

    while (status >= 0 && found == NULL &&
           (name = ds_accel__list_next(&rest, '|', &length)) != NULL) {
        char *one = strndup(name, length);

        if (one == NULL) {
            return ds_accel__no_memory();
        }
        /* A compiler is also found by its variable and at its standard place. */
        status = ds_accel__compiler_locate(one, &found);
        free(one);
    }
    if (status >= 0) {
        if (found != NULL) {
            put(check, "command", names, NULL, NULL);
        } else {
            put_made(check, "command", names,
                     ds_accel__format("there is no command %s in PATH", names), NULL);
        }
    }
    free(found);
    return status;
}

static int32_t check_variable(struct check *check, const char *name)
{
    const char *value = ds_accel__env_job(name);

    if (value != NULL && value[0] != '\0') {
        put(check, "env", name, NULL, NULL);
    } else {
        put_made(
            check, "env", name,
            ds_accel__format("the variable %s is %s", name, value != NULL ? "empty" : "not set"),
            NULL);
    }
    return DS_ACCEL_OK;
}

static int32_t check_op(struct check *check, const char *name)
{
    const struct ds_accel__requires_options *options = check->prober.options;
    char why[512] = "it cannot be loaded";
    int32_t has;

    if (options->has_op == NULL) {
        return DS_ACCEL_OK;
    }
    has = options->has_op(options->user_data, name, why, sizeof(why));
    if (has < 0) {
        return has;
    }
    put(check, "op", name, has > 0 ? NULL : why, NULL);
    return DS_ACCEL_OK;
}

/* Whether the CPU has a feature; -1: this version does not know its name on this architecture. */
static int has_feature(const char *name)
{
#if defined(__x86_64__) || defined(__i386__)
#define ROW(feature) \
    { \
        feature, __builtin_cpu_supports(feature) != 0 \
    }
    const struct {
        const char *name;
        bool has;
    } rows[] = {ROW("sse4.2"),   ROW("avx"),      ROW("avx2"),      ROW("fma"),
                ROW("bmi2"),     ROW("avx512f"),  ROW("avx512bw"),  ROW("avx512dq"),
                ROW("avx512vl"), ROW("avx512cd"), ROW("avx512bf16")};

#undef ROW
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].has;
        }
    }
#elif defined(__aarch64__)
    if (strcmp(name, "neon") == 0 || strcmp(name, "asimd") == 0) {
        return (getauxval(AT_HWCAP) & (1ul << 1)) != 0;
    }
    if (strcmp(name, "sve") == 0) {
        return (getauxval(AT_HWCAP) & (1ul << 22)) != 0;
    }
#endif
    return -1;
}

static int32_t check_cpu(struct check *check, const char *name)
{
    int has = has_feature(name);

    if (has > 0) {
        put(check, "cpu", name, NULL, NULL);
    } else {
        put_made(check, "cpu", name,
                 ds_accel__format(has == 0 ? "this CPU has no %s"
                                           : "%s is no feature of CPUs that this version knows",
                                  name),
                 NULL);
    }
    return DS_ACCEL_OK;
}

/* ---- Python ---------------------------------------------------------------------------------- */

/*
 * Compare versions by their numbers: "2.0" equals "2.0.0". A version with letters behind its
 * numbers, such as 2.0rc1, is before 2.0; a local part (+cu121) and a post part do not count.
 */
static int compare_versions(const char *left, const char *right)
{
    for (;;) {
        char *left_end;
        char *right_end;
        unsigned long left_number = strtoul(left, &left_end, 10);
        unsigned long right_number = strtoul(right, &right_end, 10);

        if (left_number != right_number) {
            return left_number < right_number ? -1 : 1;
        }
        left = left_end + (*left_end == '.' && isdigit((unsigned char)left_end[1]));
        right = right_end + (*right_end == '.' && isdigit((unsigned char)right_end[1]));
        if (!isdigit((unsigned char)*left) && !isdigit((unsigned char)*right)) {
            bool left_is_before =
                (isalpha((unsigned char)*left) || strncmp(left, ".dev", 4) == 0) && *left != 'p';
            bool right_is_before =
                (isalpha((unsigned char)*right) || strncmp(right, ".dev", 4) == 0) && *right != 'p';

            return (int)right_is_before - (int)left_is_before;
        }
    }
}

/* Whether a version meets ">=2.3"; -1: that is no condition. */
static int meets(const char *version, const char *condition, size_t length)
{
    static const struct {
        const char *sign;
        bool less, equal, greater;
    } signs[] = {{"==", false, true, false}, {"!=", true, false, true}, {">=", false, true, true},
                 {"<=", true, true, false},  {">", false, false, true}, {"<", true, false, false}};
    char wanted[64];

    for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
        size_t sign_length = strlen(signs[i].sign);

        if (strncmp(condition, signs[i].sign, sign_length) == 0) {
            int order;

            snprintf(wanted, sizeof(wanted), "%.*s", (int)(length - sign_length),
                     condition + sign_length);
            if (!isdigit((unsigned char)wanted[0]) || length - sign_length >= sizeof(wanted) ||
                strchr(wanted, '*') != NULL) {
                return -1;
            }
            order = compare_versions(version, wanted);
            return order < 0 ? signs[i].less : order > 0 ? signs[i].greater : signs[i].equal;
        }
    }
    return -1;
}

/* The reason why the version of a module is not right; NULL: it is, or memory is exhausted. */
static char *judge_version(struct check *check, const char *module, const char *version,
                           const char *conditions)
{
    const char *rest = conditions;
    const char *condition;
    size_t length;

    while ((condition = ds_accel__list_next(&rest, ',', &length)) != NULL) {
        int result;
        char *reason = NULL;

        if (version[0] == '\0') {
            reason = ds_accel__format(
                "the version of the Python module %s is unknown; needed is %s", module, conditions);
        } else if ((result = meets(version, condition, length)) > 0) {
            continue;
        } else if (result == 0) {
            reason = ds_accel__format("the Python module %s has version %s; needed is %s", module,
                                      version, conditions);
        } else {
            reason = ds_accel__format("%.*s is no condition for a version", (int)length, condition);
        }
        check->failed = check->failed || reason == NULL;
        return reason;
    }
    return NULL;
}

static int32_t check_python(struct check *check, const char *text)
{
    size_t length = strcspn(text, "=!<>~");
    char *module = strndup(text, length);
    char *python = NULL;
    char *version = NULL;
    char *remedy;
    int32_t status;

    if (module == NULL) {
        return ds_accel__no_memory();
    }
    if (!is_name(module, "_.")) {
        put(check, "python", text, "it is no name of a Python module", NULL);
        free(module);
        return DS_ACCEL_OK;
    }
    status = ds_accel__requires_python(&check->prober, module, &python, &version);
    if (status >= 0 && python == NULL) {
        put(check, "python", text, "there is no python3 in PATH", "install the package python3");
    } else if (status >= 0) {
        char *reason = version != NULL ? judge_version(check, module, version, text + length)
                                       : ds_accel__format("%s finds no module %s", python, module);

        check->failed = check->failed || (version == NULL && reason == NULL);
        remedy = find_remedy("python", module) != NULL
                     ? strdup(find_remedy("python", module))
                     : ds_accel__format("install the Python package %s for %s", text, python);
        if (remedy == NULL) {
            check->failed = true;
        } else {
            put(check, "python", text, reason, remedy);
        }
        free(remedy);
        free(reason);
    }
    free(version);
    free(python);
    free(module);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The members that are arrays of texts, in the order of the result. */
static const struct member {
    const char *key;
    const char *kind;
    int32_t (*check)(struct check *check, const char *what);
} members[] = {
    {"libraries", "library", check_library},
    {"headers", "header", check_header},
    {"functions", "function", check_function},
    {"commands", "command", check_command},
    {"python", "python", check_python},
    {"env", "env", check_variable},
    {"ops", "op", check_op},
    {"cpu", "cpu", check_cpu},
};

static int32_t check_member(struct check *check, const struct member *member)
{
    const json_t *array = json_object_get(check->requires, member->key);
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(array) && status >= 0; i++) {
        const char *what = json_string_value(json_array_get(array, i));

        if (what != NULL) {
            status = member->check(check, what);
        }
    }
    return status;
}

static void check_compute(struct check *check)
{
    const uint32_t has = check->prober.options->compute_major;
    uint64_t wanted = ds_accel__json_size(check->requires, DS_ACCEL__REQUIRES_COMPUTE);
    char what[24];

    if (wanted == 0 || has == 0) {
        return;
    }
    snprintf(what, sizeof(what), "%llu", (unsigned long long)wanted);
    if (has >= wanted) {
        put(check, DS_ACCEL__REQUIRES_COMPUTE, what, NULL, NULL);
    } else {
        put_made(check, DS_ACCEL__REQUIRES_COMPUTE, what,
                 ds_accel__format("the device has compute capability %u; needed is %s or later",
                                  has, what),
                 NULL);
    }
}

static bool is_known(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (strcmp(members[i].key, key) == 0) {
            return true;
        }
    }
    return strcmp(key, DS_ACCEL__REQUIRES_COMPUTE) == 0;
}

static void check_unknown(struct check *check)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)check->requires, key, value)
    {
        if (!is_known(key) && !json_is_null(value)) {
            put(check, key, "", "this version of ds-accel does not know such a requirement", NULL);
        }
    }
}

int32_t ds_accel__requires_check(const json_t *requires, const struct ds_accel__compiler *compiler,
                                 char *const *flags,
                                 const struct ds_accel__requires_options *options,
                                 json_t **result_out)
{
    struct check check = {.requires = requires,
                          .prober = {.compiler = compiler, .flags = flags, .options = options}};
    int32_t status = DS_ACCEL_OK;

    *result_out = NULL;
    if ((compiler != NULL || json_array_size(json_object_get(requires, "python")) > 0) &&
        ds_accel__has_raised_rights()) {
        return ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                               "a program with raised rights runs no compilers: what an op needs "
                               "cannot be checked");
    }
    check.result = json_array();
    if (check.result == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < ARRAY_SIZE(members) && status >= 0 && !check.failed; i++) {
        status = check_member(&check, &members[i]);
    }
    if (status >= 0) {
        check_compute(&check);
        check_unknown(&check);
    }
    ds_accel__requires_end(&check.prober);
    if (status >= 0 && check.failed) {
        status = ds_accel__no_memory();
    }
    if (status < 0) {
        json_decref(check.result);
        return status;
    }
    *result_out = check.result;
    return DS_ACCEL_OK;
}

bool ds_accel__requires_are_met(const json_t *result)
{
    for (size_t i = 0; i < json_array_size(result); i++) {
        if (!json_is_true(json_object_get(json_array_get(result, i), "ok"))) {
            return false;
        }
    }
    return true;
}
