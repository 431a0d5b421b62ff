/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The architectures that nvcc generates code for.
 *
 * By default an op gets code for the lowest architecture of each major number from 7 on that this
 * nvcc accepts, and PTX of the highest one. Code of 8.0 runs on 8.6 and 8.9 as well, and PTX on
 * devices that are newer than nvcc. Code for each architecture would compile twice as long. A list
 * names others: 9.0a is only for 9.0 itself, and 12.0f only for devices of its family.
 */
#include "base/text.h"
#include "ops/answers.h"
#include "ops/compiler.h"
#include "ops/identity.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LOWEST_DEFAULT 70u
#define NUMBER_LIMIT 10000u

static int compare(const struct ds_accel__cuda_arch *left, const struct ds_accel__cuda_arch *right)
{
    if (left->number != right->number) {
        return left->number < right->number ? -1 : 1;
    }
    return left->suffix - right->suffix;
}

/* Add to a sorted list. An architecture that is there gains PTX if the new one has it. */
static int32_t add(struct ds_accel__cuda_archs *archs, struct ds_accel__cuda_arch arch)
{
    struct ds_accel__cuda_arch *items;
    size_t at = 0;

    while (at < archs->count && compare(&archs->items[at], &arch) < 0) {
        at++;
    }
    if (at < archs->count && compare(&archs->items[at], &arch) == 0) {
        archs->items[at].has_ptx = archs->items[at].has_ptx || arch.has_ptx;
        return DS_ACCEL_OK;
    }
    items = realloc(archs->items, (archs->count + 1) * sizeof(*items));
    if (items == NULL) {
        return ds_accel__no_memory();
    }
    memmove(&items[at + 1], &items[at], (archs->count - at) * sizeof(*items));
    items[at] = arch;
    archs->items = items;
    archs->count++;
    return DS_ACCEL_OK;
}

static void clear(struct ds_accel__cuda_archs *archs)
{
    free(archs->items);
    *archs = (struct ds_accel__cuda_archs){0};
}

/* ---- what nvcc accepts ----------------------------------------------------------------------- */

/* Add all names such as sm_90a of a text. */
static int32_t add_names(const char *text, struct ds_accel__cuda_archs *archs)
{
    int32_t status = DS_ACCEL_OK;

    for (const char *at = text; (at = strstr(at, "sm_")) != NULL && status >= 0;) {
        struct ds_accel__cuda_arch arch = {0};

        at += 3;
        while (isdigit((unsigned char)*at) && arch.number < NUMBER_LIMIT) {
            arch.number = arch.number * 10 + (uint32_t)(*at++ - '0');
        }
        if (*at == 'a' || *at == 'f') {
            arch.suffix = *at++;
        }
        if (arch.number >= 10 && arch.number < NUMBER_LIMIT && !isalnum((unsigned char)*at)) {
            status = add(archs, arch);
        }
    }
    return status;
}

/* The help about --gpu-code, where all accepted names are in quotes. */
static int32_t add_help(const char *help, struct ds_accel__cuda_archs *archs)
{
    const char *option = strstr(help, "\n--gpu-code ");
    const char *values = option != NULL ? strstr(option, "Allowed values") : NULL;
    const char *stop = values != NULL ? strstr(values, "\n\n") : NULL;
    char *part;
    int32_t status;

    if (values == NULL) {
        return DS_ACCEL_OK;
    }
    part = stop != NULL ? strndup(values, (size_t)(stop - values)) : strdup(values);
    status = part != NULL ? add_names(part, archs) : ds_accel__no_memory();
    free(part);
    return status;
}

/* Ask nvcc, unless the answer of this file is remembered. */
static int32_t ask(const struct ds_accel__compiler *nvcc, const char *option, char **output_out)
{
    char *question = ds_accel__format("%s\n%s\n%s", option, nvcc->path, nvcc->digest);
    char *files[] = {nvcc->path, NULL};
    int32_t status = DS_ACCEL_OK;

    if (question == NULL) {
        return ds_accel__no_memory();
    }
    *output_out = ds_accel__answer_recall(question);
    if (*output_out == NULL) {
        status = ds_accel__compiler_ask(nvcc->arguments, option, NULL, output_out);
        if (status >= 0) {
            ds_accel__answer_remember(question, files, *output_out);
        }
    }
    free(question);
    return status;
}

int32_t ds_accel__nvcc_archs(const struct ds_accel__compiler *nvcc,
                             struct ds_accel__cuda_archs *archs)
{
    static const char *const questions[] = {"--help", "--list-gpu-code"};
    int32_t status = DS_ACCEL_OK;

    *archs = (struct ds_accel__cuda_archs){0};
    for (size_t i = 0; i < ARRAY_SIZE(questions) && archs->count == 0 && status >= 0; i++) {
        char *output = NULL;

        status = ask(nvcc, questions[i], &output);
        if (status >= 0) {
            status = i == 0 ? add_help(output, archs) : add_names(output, archs);
        }
        free(output);
    }
    if (status >= 0 && archs->count == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s lists no architectures", nvcc->arguments[0]);
    }
    if (status < 0) {
        clear(archs);
    }
    return status;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static bool is_accepted(const struct ds_accel__cuda_archs *accepted,
                        const struct ds_accel__cuda_arch *arch)
{
    for (size_t i = 0; i < accepted->count; i++) {
        if (compare(&accepted->items[i], arch) == 0) {
            return true;
        }
    }
    return false;
}

/* Read "9.0a+PTX". */
static bool parse(const char *item, size_t length, struct ds_accel__cuda_arch *arch)
{
    uint32_t major = 0;
    size_t at = 0;

    *arch = (struct ds_accel__cuda_arch){0};
    while (at < length && isdigit((unsigned char)item[at]) && major < NUMBER_LIMIT / 10) {
        major = major * 10 + (uint32_t)(item[at++] - '0');
    }
    if (at == 0 || item[0] == '0' || at + 2 > length || item[at] != '.' ||
        !isdigit((unsigned char)item[at + 1])) {
        return false;
    }
    arch->number = major * 10 + (uint32_t)(item[at + 1] - '0');
    at += 2;
    if (at < length && (item[at] == 'a' || item[at] == 'f')) {
        arch->suffix = item[at++];
    }
    if (length - at == 4 && strncmp(item + at, "+PTX", 4) == 0) {
        arch->has_ptx = true;
        at += 4;
    }
    return at == length;
}

static int32_t refuse(const struct ds_accel__cuda_archs *accepted, const char *item, size_t length,
                      bool is_malformed)
{
    struct ds_accel__text text = {0};
    char *message;
    int32_t status;

    ds_accel__text_add(&text, "\"%.*s\" %s; this nvcc accepts ", (int)(length < 64 ? length : 64),
                       item,
                       is_malformed ? "is no architecture such as 9.0, 9.0a or 12.0+PTX"
                                    : "is no architecture of this nvcc");
    for (size_t i = 0; i < accepted->count; i++) {
        const struct ds_accel__cuda_arch *arch = &accepted->items[i];

        ds_accel__text_add(&text, "%s%u.%u", i > 0 ? ", " : "", arch->number / 10,
                           arch->number % 10);
        if (arch->suffix != 0) {
            ds_accel__text_add_bytes(&text, &arch->suffix, 1);
        }
    }
    message = ds_accel__text_take(&text);
    status = message != NULL ? ds_accel__error(DS_ACCEL_ERR_INVALID, "%s", message)
                             : ds_accel__no_memory();
    free(message);
    return status;
}

static int32_t choose_default(const struct ds_accel__cuda_archs *accepted,
                              struct ds_accel__cuda_archs *chosen)
{
    uint32_t major = 0;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < accepted->count && status >= 0; i++) {
        const struct ds_accel__cuda_arch *arch = &accepted->items[i];

        if (arch->suffix == 0 && arch->number >= LOWEST_DEFAULT && arch->number / 10 != major) {
            major = arch->number / 10;
            status = add(chosen, *arch);
        }
    }
    if (status < 0) {
        return status;
    }
    for (size_t i = accepted->count; i-- > 0;) {
        struct ds_accel__cuda_arch highest = accepted->items[i];

        if (highest.suffix == 0 && highest.number >= LOWEST_DEFAULT) {
            /* PTX of the highest one; its code as well, as nvcc's own "all-major" does. */
            highest.has_ptx = true;
            return add(chosen, highest);
        }
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "this nvcc has no architecture from 7.0 on");
}

static int32_t choose_listed(const struct ds_accel__cuda_archs *accepted, const char *list,
                             struct ds_accel__cuda_archs *chosen)
{
    int32_t status = DS_ACCEL_OK;

    for (const char *at = list; *at != '\0' && status >= 0;) {
        size_t length = strcspn(at, ";, \t\n\v\f\r");
        struct ds_accel__cuda_arch arch;

        if (length == 0) {
            at++;
            continue;
        }
        if (!parse(at, length, &arch)) {
            status = refuse(accepted, at, length, true);
        } else if (!is_accepted(accepted, &arch)) {
            status = refuse(accepted, at, length, false);
        } else {
            status = add(chosen, arch);
        }
        at += length;
    }
    return status;
}

int32_t ds_accel__nvcc_choose(const struct ds_accel__cuda_archs *accepted, const char *list,
                              struct ds_accel__cuda_archs *chosen)
{
    int32_t status = DS_ACCEL_OK;

    *chosen = (struct ds_accel__cuda_archs){0};
    if (list != NULL) {
        status = choose_listed(accepted, list, chosen);
    }
    if (status >= 0 && chosen->count == 0) {
        status = choose_default(accepted, chosen);
    }
    if (status < 0) {
        clear(chosen);
    }
    return status;
}

char **ds_accel__nvcc_arguments(const struct ds_accel__cuda_archs *chosen)
{
    char **arguments = calloc(2 * chosen->count + 1, sizeof(*arguments));
    size_t count = 0;

    for (size_t i = 0; i < chosen->count && arguments != NULL; i++) {
        const struct ds_accel__cuda_arch *arch = &chosen->items[i];
        const char suffix[2] = {arch->suffix, '\0'};

        for (int ptx = 0; ptx <= arch->has_ptx; ptx++) {
            arguments[count] = ds_accel__format("-gencode=arch=compute_%u%s,code=%s_%u%s",
                                                arch->number, suffix, ptx != 0 ? "compute" : "sm",
                                                arch->number, suffix);
            if (arguments[count++] == NULL) {
                ds_accel__arguments_free(arguments);
                return NULL;
            }
        }
    }
    return arguments;
}
