/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Answers of compilers: which programs they run, which architectures they know. Asking starts
 * several processes, which takes longer than loading an op. An answer holds as long as each file on
 * which it depends has the same device, inode, size and times (digest.c says why these suffice).
 */
#include "ops/answers.h"
#include "base/fork.h"
#include "base/json.h"
#include "base/text.h"
#include "ops/digest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t
    *answers; /* guarded by lock; an array of {"question", "answer", "files": {PATH: KEY}} */
static size_t remembered; /* guarded by lock */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void renew_in_children(void)
{
    ds_accel__fork_renew(&lock);
}

static void take_lock(void)
{
    pthread_once(&once, renew_in_children);
    pthread_mutex_lock(&lock);
}

/* Where the answer to a question is in the array; its size: nowhere. */
static size_t find(const char *question)
{
    size_t i = 0;

    while (i < json_array_size(answers) &&
           strcmp(ds_accel__json_string(json_array_get(answers, i), "question"), question) != 0) {
        i++;
    }
    return i;
}

/* Take ownership of an answer and put it in place of the one to the same question. */
static void put(json_t *answer)
{
    if (answers == NULL) {
        answers = json_array();
    }
    json_array_remove(answers, find(ds_accel__json_string(answer, "question")));
    if (json_array_size(answers) >= LIMIT) {
        json_array_remove(answers, 0);
    }
    json_array_append_new(answers, answer);
}

void ds_accel__answer_remember(const char *question, char *const *files, const char *text)
{
    json_t *answer = json_object();
    json_t *keys = json_object();
    bool failed = files[0] == NULL; /* it would hold forever */

    for (size_t i = 0; files[i] != NULL && !failed; i++) {
        char key[DS_ACCEL__FILE_KEY_SIZE];

        failed = !ds_accel__file_key(files[i], key);
        ds_accel__json_set(keys, files[i], failed ? NULL : json_string(key), &failed);
    }
    ds_accel__json_set(answer, "question", ds_accel__json_text(question), &failed);
    ds_accel__json_set(answer, "answer", ds_accel__json_text(text), &failed);
    ds_accel__json_set(answer, "files", keys, &failed);
    if (failed) {
        json_decref(answer);
        return;
    }
    take_lock();
    put(answer);
    remembered++;
    pthread_mutex_unlock(&lock);
}

/* Whether all files are what they were. */
static bool holds(const json_t *answer)
{
    const char *path;
    json_t *value;

    json_object_foreach(json_object_get(answer, "files"), path, value)
    {
        char key[DS_ACCEL__FILE_KEY_SIZE];

        if (!ds_accel__file_key(path, key) || strcmp(key, json_string_value(value)) != 0) {
            return false;
        }
    }
    return true;
}

char *ds_accel__answer_recall(const char *question)
{
    char *text = NULL;
    size_t at;

    take_lock();
    at = find(question);
    if (at < json_array_size(answers) && holds(json_array_get(answers, at))) {
        text = strdup(ds_accel__json_string(json_array_get(answers, at), "answer"));
    }
    pthread_mutex_unlock(&lock);
    return text;
}

bool ds_accel__answer_add_files(const char *question, struct ds_accel__arguments *list)
{
    const json_t *answer;
    json_t *key;
    const char *path;
    bool found;

    take_lock();
    answer = json_array_get(answers, find(question));
    found = answer != NULL && holds(answer);
    if (found) {
        json_object_foreach(json_object_get(answer, "files"), path, key)
        {
            ds_accel__arguments_add(list, "%s", path);
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

size_t ds_accel__answers_count(void)
{
    size_t count;

    take_lock();
    count = remembered;
    pthread_mutex_unlock(&lock);
    return count;
}

json_t *ds_accel__answers_save(void)
{
    json_t *copy;

    take_lock();
    copy = answers != NULL ? json_deep_copy(answers) : json_array();
    pthread_mutex_unlock(&lock);
    return copy;
}

static bool is_answer(const json_t *answer)
{
    json_t *files = json_object_get(answer, "files");
    const char *path;
    json_t *value;

    json_object_foreach(files, path, value)
    {
        if (path[0] != '/' || !json_is_string(value)) {
            return false;
        }
    }
    return json_object_size(files) > 0 && json_is_string(json_object_get(answer, "question")) &&
           json_is_string(json_object_get(answer, "answer"));
}

void ds_accel__answers_restore(const json_t *saved)
{
    take_lock();
    for (size_t i = 0; i < json_array_size(saved); i++) {
        json_t *answer = json_array_get(saved, i);

        if (is_answer(answer) &&
            find(ds_accel__json_string(answer, "question")) == json_array_size(answers)) {
            put(json_deep_copy(answer));
        }
    }
    pthread_mutex_unlock(&lock);
}

void ds_accel__answers_forget(void)
{
    take_lock();
    json_decref(answers);
    answers = NULL;
    pthread_mutex_unlock(&lock);
}
