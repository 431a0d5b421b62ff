/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads the rules that compilers write for make:
 *
 *     adam.o: cpu_adam/adam.c common/adam.h \
 *      /usr/include/a\ name\#1$$.h
 *
 * A backslash quotes a blank and '#', and "$$" is '$'. Other backslashes stand for themselves.
 */
#include "ops/depend.h"
#include "base/text.h"

#include <string.h>

struct reader {
    const char *at;
    const char *end;
};

/* Skip blanks and continued lines. */
static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end) {
        if (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r') {
            reader->at++;
        } else if (*reader->at == '\\' && reader->at + 1 < reader->end && reader->at[1] == '\n') {
            reader->at += 2;
        } else if (*reader->at == '\\' && reader->at + 2 < reader->end && reader->at[1] == '\r' &&
                   reader->at[2] == '\n') {
            reader->at += 3;
        } else {
            return;
        }
    }
}

/* Read a word into word, which is cleared first. False at the end of the rule. */
static bool read_word(struct reader *reader, struct ds_accel__text *word)
{
    const char *begin;

    word->size_bytes = 0;
    if (word->data != NULL) {
        word->data[0] = '\0';
    }
    skip_blanks(reader);
    begin = reader->at;
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) == NULL) {
        char c = *reader->at;
        char next = reader->at + 1 < reader->end ? reader->at[1] : '\n';

        if (c == '\\' && (next == '\n' || (next == '\r' && reader->at + 2 < reader->end &&
                                           reader->at[2] == '\n'))) {
            break;
        }
        if ((c == '\\' && (next == ' ' || next == '\t' || next == '#')) ||
            (c == '$' && next == '$')) {
            reader->at++;
        }
        ds_accel__text_add_bytes(word, reader->at++, 1);
    }
    return reader->at > begin;
}

int32_t ds_accel__depend_read(const char *text, size_t size_bytes,
                              struct ds_accel__arguments *files)
{
    struct reader reader = {text, text + size_bytes};
    struct ds_accel__text word = {0};
    bool is_behind_target = false;

    if (memchr(text, '\0', size_bytes) != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the list of dependencies has a NUL");
    }
    while (read_word(&reader, &word)) {
        if (word.failed) {
            break;
        }
        if (is_behind_target) {
            ds_accel__arguments_add(files, "%s", word.data);
        } else if (word.data[word.size_bytes - 1] == ':') {
            is_behind_target = true;
        }
    }
    files->failed = files->failed || word.failed;
    ds_accel__text_clear(&word);
    return is_behind_target || files->failed
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_INVALID, "the list of dependencies has no target");
}

void ds_accel__depend_words(const char *line, size_t size_bytes, struct ds_accel__arguments *words)
{
    struct reader reader = {line, line + size_bytes};
    struct ds_accel__text word = {0};

    while (!word.failed && read_word(&reader, &word)) {
        if (!word.failed) {
            ds_accel__arguments_add(words, "%s", word.data);
        }
    }
    words->failed = words->failed || word.failed;
    ds_accel__text_clear(&word);
}
