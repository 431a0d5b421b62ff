/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * An op is used on other machines than the one that compiles it, so a recipe with a flag such as
 * -mavx2 must require what the flag lets the compiler use: "requires": {"cpu": ["avx2"]}. Then a
 * CPU without it is a reason why there is no op, and not a SIGILL.
 *
 * The table has what the common flags need. The name of a CPU, or a flag that is not in the table,
 * needs some requirement, because only the author knows which one.
 */
#include "ops/cpu_flags.h"
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Flags that begin with -m and enable no instructions. */
static const char *const neutral[] = {
    "-m128bit",       "-m16",          "-m32",      "-m64",           "-m96bit",
    "-mabi",          "-maccumulate",  "-maddress", "-malign",        "-masm",
    "-mavx256-split", "-mbig-endian",  "-mbranch",  "-mcet-switch",   "-mcld",
    "-mcmodel",       "-mcode-object", "-mcumode",  "-mdaz-ftz",      "-mfentry",
    "-mfix-",         "-mfloat-abi",   "-mfpmath",  "-mfunction",     "-mgeneral-regs",
    "-mglibc",        "-mharden",      "-mieee-fp", "-mincoming",     "-mindirect",
    "-minline",       "-mkl",          "-mlarge",   "-mlittle",       "-mllvm",
    "-mlong-double",  "-mmanual",      "-mmemcpy",  "-mmemset",       "-mms-bitfields",
    "-mno-",          "-mnop-mcount",  "-momit",    "-moutline",      "-mpc32",
    "-mpc64",         "-mpc80",        "-mprefer",  "-mpush",         "-mrecip",
    "-mrecord",       "-mred-zone",    "-mrelax",   "-mrtd",          "-mshstk",
    "-msign-return",  "-mskip-rax",    "-mstack",   "-mstrict-align", "-mstringop",
    "-mthreads",      "-mtls",         "-mtp=",     "-mtune",         "-mveclibabi",
    "-mvzeroupper",   "-mwavefront",   "-mx32",     "-mtgsplit",      "-munsafe-fp-atomics",
};

/* What flags need: names of "cpu", as requires.c knows them, with blanks between. "": every CPU of
 * the architecture has it. */
static const struct need {
    const char *flag;
    const char *names;
} needs[] = {
    {"-march=x86-64", ""},
    {"-march=x86-64-v2", "sse4.2"},
    {"-march=x86-64-v3", "avx2 fma bmi2"},
    {"-march=x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"},
    {"-march=haswell", "avx2 fma bmi2"},
    {"-march=skylake", "avx2 fma bmi2"},
    {"-march=skylake-avx512", "avx512f avx512bw avx512cd avx512dq avx512vl"},
    {"-march=armv8-a", ""},
    {"-march=rv64gc", ""},
    {"-mcpu=generic", ""},
    {"-mcpu=power8", ""},
    {"-mcpu=powerpc64le", ""},
    {"-mmmx", ""},
    {"-mfxsr", ""},
    {"-msse", ""},
    {"-msse2", ""},
    /* The CPUs with these are those with SSE4.2, AVX2 and BMI2. */
    {"-msse3", "sse4.2"},
    {"-mssse3", "sse4.2"},
    {"-msse4", "sse4.2"},
    {"-msse4.1", "sse4.2"},
    {"-msse4.2", "sse4.2"},
    {"-mcrc32", "sse4.2"},
    {"-mpopcnt", "sse4.2"},
    {"-mavx", "avx"},
    {"-mf16c", "avx2"},
    {"-mavx2", "avx2"},
    {"-mfma", "fma"},
    {"-mbmi", "bmi2"},
    {"-mbmi2", "bmi2"},
    {"-mlzcnt", "bmi2"},
    {"-mmovbe", "bmi2"},
    {"-mavx512f", "avx512f"},
    {"-mavx512bw", "avx512bw"},
    {"-mavx512cd", "avx512cd"},
    {"-mavx512dq", "avx512dq"},
    {"-mavx512vl", "avx512vl"},
    {"-mavx512bf16", "avx512bf16"},
};

/* ---- flags ----------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool ds_accel__flag_selects_cpu(const char *flag)
{
    for (size_t i = 0; i < ARRAY_SIZE(neutral); i++) {
        if (begins(flag, neutral[i])) {
            return false;
        }
    }
    /* -xCORE-AVX512 of icpx, but not -xc; --mcpu is no option for the host's CPU. */
    return begins(flag, "-m") || (begins(flag, "-x") && flag[2] >= 'A' && flag[2] <= 'Z');
}

/* -mcpu=gfx90a is a device. */
static bool is_for_device(const char *flag)
{
    return begins(flag, "-mcpu=gfx") || begins(flag, "-march=gfx") || begins(flag, "-march=sm_");
}

/* What a flag needs; NULL: not known. */
static const char *find_needs(const char *flag)
{
    for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
        if (strcmp(needs[i].flag, flag) == 0) {
            return needs[i].names;
        }
    }
    /* -march=armv8.2-a+sve */
    return strstr(flag, "+sve") != NULL ? "sve" : NULL;
}

/* ---- requirements ---------------------------------------------------------------------------- */

/* Whether every CPU with one instruction set has another one. */
static bool implies(const char *listed, const char *name)
{
    static const char *const order[] = {"avx512", "avx2", "avx", "sse4.2"};
    size_t at;

    if (strcmp(listed, name) == 0) {
        return true;
    }
    if (begins(listed, "avx512") && begins(name, "avx512")) {
        return strcmp(name, "avx512f") == 0;
    }
    if (begins(listed, "avx512") && (strcmp(name, "fma") == 0 || strcmp(name, "bmi2") == 0)) {
        return true;
    }
    if (strcmp(listed, "fma") == 0) {
        listed = "avx";
    }
    for (at = 0; at < ARRAY_SIZE(order) && !begins(listed, order[at]); at++) {
    }
    for (; at < ARRAY_SIZE(order); at++) {
        if (strcmp(order[at], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_required(const json_t *cpu, const char *name)
{
    for (size_t i = 0; i < json_array_size(cpu); i++) {
        const char *listed = json_string_value(json_array_get(cpu, i));

        if (listed != NULL && implies(listed, name)) {
            return true;
        }
    }
    return false;
}

/* The names that are not required, as a list of JSON. */
static void add_missing(struct ds_accel__text *text, const char *names, const json_t *cpu)
{
    const char *name;
    size_t length;

    while ((name = ds_accel__list_next(&names, ' ', &length)) != NULL) {
        char one[32];

        snprintf(one, sizeof(one), "%.*s", (int)length, name);
        if (!is_required(cpu, one)) {
            ds_accel__text_add(text, "%s\"%s\"", text->size_bytes > 0 ? ", " : "", one);
        }
    }
}

static bool exceeds(const char *flag, const json_t *requires, char *why, size_t why_size)
{
    const json_t *cpu = json_object_get(requires, "cpu");
    const char *names = find_needs(flag);
    struct ds_accel__text missing = {0};
    bool result;

    if (!ds_accel__flag_selects_cpu(flag) || is_for_device(flag)) {
        return false;
    }
    if (names != NULL) {
        add_missing(&missing, names, cpu);
    } else if (json_array_size(cpu) == 0) {
        ds_accel__text_add(&missing, "...");
    }
    result = missing.size_bytes > 0 || missing.failed;
    if (result) {
        snprintf(why, why_size,
                 "uses instructions that not every CPU has: add %s to \"cpu\" of \"requires\"",
                 names != NULL && !missing.failed ? missing.data
                                                  : "what it uses, such as \"avx2\",");
    }
    ds_accel__text_clear(&missing);
    return result;
}

bool ds_accel__flag_exceeds(const char *flag, const json_t *requires, char *why, size_t why_size)
{
    char part[128];

    if (begins(flag, "-Xcompiler=") || begins(flag, "--compiler-options=")) {
        flag = strchr(flag, '=') + 1;
    } else if (flag[0] != '-' || flag[1] != 'm' || strchr(flag, ',') == NULL) {
        return exceeds(flag, requires, why, why_size);
    }
    for (;;) { /* also the word behind -Xcompiler: -mavx2,-mfma */
        size_t length = strcspn(flag, ",");

        snprintf(part, sizeof(part), "%.*s", (int)length, flag);
        if (exceeds(part, requires, why, why_size)) {
            return true;
        }
        if (flag[length] == '\0') {
            return false;
        }
        flag += length + 1;
    }
}
