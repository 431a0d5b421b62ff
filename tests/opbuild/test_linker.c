/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The linker that options choose is a part of the toolchain. */
#include "base/text.h"
#include "opbuild.h"
#include "ops/answers.h"
#include "ops/compiler.h"
#include "ops/linker.h"
#include "ops/recipe.h"

#include <string.h>
#include <unistd.h>

/* A compiler that finds its programs beside itself, or below the last -B. */
static void begin(void)
{
    clear_variables();
    write_script("tools/cc", "#!/bin/sh\n"
                             "dir=$(dirname \"$0\")\n"
                             "for word; do\n"
                             "case $word in\n"
                             "--version) echo fake 1.0;;\n"
                             "-B*) dir=${word#-B};;\n"
                             "-print-prog-name=/*) echo \"target-${word#*=}\";;\n"
                             "-print-prog-name=ld.none) echo ld.none;;\n"
                             "-print-prog-name=*) echo \"$dir/${word#*=}\";;\n"
                             "esac\n"
                             "done\n");
    write_script("tools/ld.gold", "gold");
    write_script("tools/ld.lld", "lld");
    write_script("sub/ld.lld", "another lld");
    write_script("sub/ld", "another ld");
}

TestSuite(opbuild_linker, .init = begin);

/* Find the linker for words behind CC and in the recipe, which are separated by blanks. */
static void find(const char *variable, char **ldflags, struct ds_accel__op_linker *linker)
{
    struct ds_accel__compiler compiler;
    struct ds_accel__recipe recipe = {.ldflags = ldflags, .source_dir = strdup(test_dir())};
    char why[512];
    char *value = ds_accel__format("%s %s", test_path("tools/cc"), variable);

    setenv("CC", value, 1);
    MUST(ds_accel__compiler_find(DS_ACCEL__LANGUAGE_C, &compiler, why, sizeof(why)));
    MUST(ds_accel__op_linker_find(&compiler, &recipe, linker));
    ds_accel__compiler_clear(&compiler);
    free(recipe.source_dir);
    free(value);
}

static void expect(const char *variable, char **ldflags, const char *wanted)
{
    struct ds_accel__op_linker linker;

    find(variable, ldflags, &linker);
    cr_expect_str_eq(linker.path != NULL ? linker.path : "none", wanted, "%s: %s", variable,
                     linker.path);
    cr_expect_eq(strlen(linker.digest), linker.path != NULL ? 64 : strlen(linker.digest));
    ds_accel__op_linker_clear(&linker);
}

Test(opbuild_linker, options_choose_it)
{
    char gold[300];
    char lld[300];
    char option[400];
    struct ds_accel__op_linker linker;

    snprintf(gold, sizeof(gold), "%s", test_path("tools/ld.gold"));
    snprintf(lld, sizeof(lld), "%s", test_path("tools/ld.lld"));
    expect("", ARGUMENTS("-fuse-ld=lld"), lld);
    expect("-fuse-ld=gold", ARGUMENTS("-O2"), gold);
    expect("-fuse-ld=gold", ARGUMENTS("-fuse-ld=lld"), lld); /* the last one counts */
    snprintf(option, sizeof(option), "--ld-path=%s", gold);
    expect("", ARGUMENTS(option, "-fuse-ld=lld"), gold);
    snprintf(option, sizeof(option), "-fuse-ld=%s", gold);
    expect("", ARGUMENTS(option), gold);
    test_write("flags", "-Wl,-O1 -fuse-ld=lld");
    expect("", ARGUMENTS("@flags"), lld);
    snprintf(lld, sizeof(lld), "%s", test_path("sub/ld.lld"));
    expect("", ARGUMENTS("-Bsub", "-fuse-ld=lld"), lld);
    expect("", ARGUMENTS("-fuse-ld=lld", "-B", "sub"), lld);
    expect("", ARGUMENTS("-Bsub"), test_path("sub/ld"));
    expect("", ARGUMENTS("--prefix=sub"), test_path("sub/ld"));
    expect("", ARGUMENTS("--prefix", "sub", "-fuse-ld=lld"), test_path("sub/ld.lld"));
    expect("", ARGUMENTS("--ld-path=sub/ld"), test_path("sub/ld"));
    expect("--ld-path=sub/ld", ARGUMENTS("-O2"), test_path("sub/ld"));

    find("", ARGUMENTS("-Wl,-O1", "-Xlinker", "-Bsymbolic"), &linker);
    cr_expect_str_eq(linker.digest, "");
    ds_accel__op_linker_clear(&linker);
    find("", ARGUMENTS("-fuse-ld=none"), &linker);
    cr_expect_str_eq(linker.digest, "absent");
    cr_expect_null(linker.path);
    ds_accel__op_linker_clear(&linker);
}

static char **flags;

static int32_t attempt(void)
{
    struct ds_accel__recipe recipe = {.ldflags = flags, .source_dir = (char *)(uintptr_t) "/"};
    struct ds_accel__compiler compiler = {.arguments = ARGUMENTS("/bin/echo"),
                                          .path = (char *)(uintptr_t) "/bin/echo",
                                          .question = (char *)(uintptr_t) "question"};
    struct ds_accel__op_linker linker;
    int32_t status = ds_accel__op_linker_find(&compiler, &recipe, &linker);

    ds_accel__op_linker_clear(&linker);
    return status;
}

Test(opbuild_linker, every_allocation_can_fail)
{
    flags = ARGUMENTS("-fuse-ld=none", "-B/none");
    attempt();
    fail_each(attempt);
}
