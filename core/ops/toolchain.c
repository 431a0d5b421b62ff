/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Finds the compilers of a recipe, and remembers digests of their programs between processes. */
#include "ops/toolchain.h"
#include "base/json.h"
#include "base/text.h"
#include "config/env.h"
#include "ops/answers.h"
#include "ops/cpu_flags.h"
#include "ops/digest.h"
#include "ops/flag_files.h"
#include "ops/local.h"
#include "ops/recipe.h"
#include "ops/refused_flags.h"

#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGESTS "ops-digests.json"
#define ARCHS_VARIABLE "TORCH_CUDA_ARCH_LIST"

/* ---- remembered digests ---------------------------------------------------------------------- */

/* Without memory, or with a damaged file, the programs are read again. */
static void restore_digests(const struct ds_accel__stores *stores)
{
    json_t *tree = ds_accel__local_read(stores, DIGESTS);

    if (tree != NULL) {
        ds_accel__digests_restore(json_object_get(tree, "digests"));
        ds_accel__answers_restore(json_object_get(tree, "answers"));
    }
    json_decref(tree);
}

static void save_digests(const struct ds_accel__stores *stores)
{
    json_t *tree = json_object();
    bool failed = tree == NULL;

    ds_accel__json_set(tree, "digests", ds_accel__digests_save(), &failed);
    ds_accel__json_set(tree, "answers", ds_accel__answers_save(), &failed);
    if (!failed) {
        ds_accel__local_write(stores, DIGESTS, tree);
    }
    json_decref(tree);
}

/* ---- compilers ------------------------------------------------------------------------------- */

enum ds_accel__language ds_accel__toolchain_linker(const struct ds_accel__recipe *recipe)
{
    enum ds_accel__language linker = DS_ACCEL__LANGUAGE_C;

    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        enum ds_accel__language language = ds_accel__recipe_language(recipe->sources[i]);

        if (language == DS_ACCEL__LANGUAGE_CUDA) {
            language = DS_ACCEL__LANGUAGE_CXX; /* nvcc generates C++ */
        }
        linker = language > linker ? language : linker;
    }
    return linker;
}

static void check_arguments(struct ds_accel__toolchain *toolchain,
                            const struct ds_accel__compiler *compiler, char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *why = ds_accel__flag_refuse(words[i], i > 0 ? words[i - 1] : NULL,
                                                DS_ACCEL__FLAG_OF_VARIABLE);

        if (why != NULL) {
            snprintf(toolchain->missing, sizeof(toolchain->missing),
                     "the compiler for %s has the argument %.200s, which %s: remove it from the "
                     "variable",
                     ds_accel__language_compiler(compiler->language), words[i], why);
            return;
        }
    }
}

/* Whether a part of an argument says which CPUs or devices to compile for. */
static bool is_specific(const char *part)
{
    static const char *const options[] = {
        "-arch", "--gpu-architecture", "-gencode",       "--generate-code",
        "-code", "--gpu-code",         "--offload-arch", "-fsycl-targets",
        "-ax"};

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (strncmp(part, options[i], strlen(options[i])) == 0) {
            return true;
        }
    }
    return ds_accel__flag_selects_cpu(part);
}

static bool has_specific(char *const *words)
{
    for (; *words != NULL; words++) {
        /* What nvcc passes on: -Xcompiler=-fPIC,-mavx2 */
        for (const char *part = *words; part != NULL; part = strpbrk(part, "=,")) {
            part += part[0] == '=' || part[0] == ',';
            if (is_specific(part)) {
                return true;
            }
        }
    }
    return false;
}

/* Examine the arguments that a variable gave a compiler, with those in response files. */
static int32_t examine_arguments(struct ds_accel__toolchain *toolchain,
                                 const struct ds_accel__compiler *compiler)
{
    struct ds_accel__arguments list = {0};
    char **words;

    ds_accel__flag_words(compiler->arguments + 1, NULL, &list);
    words = ds_accel__arguments_take(&list);
    if (words == NULL) {
        return ds_accel__no_memory();
    }
    check_arguments(toolchain, compiler, words);
    toolchain->is_specific = toolchain->is_specific || has_specific(words);
    ds_accel__arguments_free(words);
    return DS_ACCEL_OK;
}

static int32_t find_compilers(struct ds_accel__toolchain *toolchain)
{
    for (size_t i = 0; i < DS_ACCEL__LANGUAGE_COUNT; i++) {
        int32_t status;

        if (!toolchain->is_used[i]) {
            continue;
        }
        status = ds_accel__compiler_find((enum ds_accel__language)i, &toolchain->compilers[i],
                                         toolchain->missing, sizeof(toolchain->missing));
        if (status == DS_ACCEL_ERR_NO_MEMORY) {
            return status;
        }
        if (status < 0) {
            /* missing says what is wrong */
            toolchain->is_absent = status == DS_ACCEL_ERR_PERMISSION ||
                                   (status == DS_ACCEL_ERR_NOT_FOUND &&
                                    !ds_accel__compiler_is_named((enum ds_accel__language)i));
            return DS_ACCEL_OK;
        }
        toolchain->missing[0] = '\0';
        status = examine_arguments(toolchain, &toolchain->compilers[i]);
        if (status < 0 || toolchain->missing[0] != '\0') {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

static int32_t choose_archs(struct ds_accel__toolchain *toolchain)
{
    const char *list = ds_accel__env_job(ARCHS_VARIABLE);
    struct ds_accel__cuda_archs accepted = {0};
    int32_t status =
        ds_accel__nvcc_archs(&toolchain->compilers[DS_ACCEL__LANGUAGE_CUDA], &accepted);

    toolchain->is_specific = toolchain->is_specific || (list != NULL && list[0] != '\0');
    if (status >= 0) {
        status = ds_accel__nvcc_choose(&accepted, list, &toolchain->archs);
    }
    free(accepted.items);
    return status;
}

static void write_digest(struct ds_accel__toolchain *toolchain)
{
    char line[160];
    SHA2_CTX hash;

    SHA256Init(&hash);
    for (size_t i = 0; i < DS_ACCEL__LANGUAGE_COUNT; i++) {
        if (toolchain->is_used[i]) {
            snprintf(line, sizeof(line), "%s %s\n",
                     ds_accel__language_compiler((enum ds_accel__language)i),
                     toolchain->compilers[i].digest);
            SHA256Update(&hash, (const uint8_t *)line, strlen(line));
        }
    }
    for (size_t i = 0; i < toolchain->archs.count; i++) {
        const struct ds_accel__cuda_arch *arch = &toolchain->archs.items[i];

        snprintf(line, sizeof(line), "arch %u %d %d\n", arch->number, arch->suffix, arch->has_ptx);
        SHA256Update(&hash, (const uint8_t *)line, strlen(line));
    }
    if (toolchain->linker.digest[0] != '\0') {
        snprintf(line, sizeof(line), "linker %s\n", toolchain->linker.digest);
        SHA256Update(&hash, (const uint8_t *)line, strlen(line));
    }
    SHA256End(&hash, toolchain->digest);
}

int32_t ds_accel__toolchain_find(const struct ds_accel__recipe *recipe,
                                 const struct ds_accel__stores *stores,
                                 struct ds_accel__toolchain *toolchain)
{
    int32_t status;

    *toolchain = (struct ds_accel__toolchain){.missing = ""};
    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        toolchain->is_used[ds_accel__recipe_language(recipe->sources[i])] = true;
    }
    toolchain->is_used[ds_accel__toolchain_linker(recipe)] = true;
    if (recipe->image_count > 0) {
        toolchain->is_used[DS_ACCEL__LANGUAGE_CUDA] = true;
    }
    restore_digests(stores);
    toolchain->known = ds_accel__digests_count() + ds_accel__answers_count();
    status = find_compilers(toolchain);
    if (status >= 0 && toolchain->missing[0] == '\0' &&
        toolchain->is_used[DS_ACCEL__LANGUAGE_CUDA]) {
        status = choose_archs(toolchain);
    }
    if (status >= 0 && toolchain->missing[0] == '\0') {
        status = ds_accel__op_linker_find(&toolchain->compilers[ds_accel__toolchain_linker(recipe)],
                                          recipe, &toolchain->linker);
    }
    if (status >= 0 && toolchain->missing[0] == '\0') {
        write_digest(toolchain);
    }
    return status;
}

void ds_accel__toolchain_add_variables(struct ds_accel__text *text)
{
    const char *archs = ds_accel__env_job(ARCHS_VARIABLE);

    ds_accel__compiler_add_variables(text);
    ds_accel__text_add(text, "\n" ARCHS_VARIABLE "=%s", archs != NULL ? archs : "");
}

void ds_accel__toolchain_keep(const struct ds_accel__toolchain *toolchain,
                              const struct ds_accel__stores *stores)
{
    if (stores->writable != NULL &&
        ds_accel__digests_count() + ds_accel__answers_count() > toolchain->known) {
        save_digests(stores);
    }
}

void ds_accel__toolchain_clear(struct ds_accel__toolchain *toolchain)
{
    for (size_t i = 0; i < DS_ACCEL__LANGUAGE_COUNT; i++) {
        ds_accel__compiler_clear(&toolchain->compilers[i]);
    }
    ds_accel__op_linker_clear(&toolchain->linker);
    free(toolchain->archs.items);
    *toolchain = (struct ds_accel__toolchain){.missing = ""};
}
