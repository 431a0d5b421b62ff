/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The vectors of original.json: inputs, the results of DeepSpeed's launcher, and where the results
 * differ deliberately, ours and the reason. An original error has DeepSpeed's text; the text of our
 * error must contain "says".
 */
#include "launch.h"

static json_t *answer_ranges(const json_t *vector)
{
    struct ds_accel__set set = {0};
    struct ds_accel__text text = {0};
    json_t *answer;

    if (ds_accel__ranges_parse(member(vector, "text"), &set) < 0) {
        check("a list that is refused adds no number", set.count == 0, "%u numbers", set.count);
        return json_pack("{s:s}", "error", ds_accel_last_error());
    }
    ds_accel__set_write(&set, &text);
    answer = json_pack("{s:s}", "numbers", text.data);
    ds_accel__text_clear(&text);
    ds_accel__set_clear(&set);
    return answer;
}

/* Check that a vector has all its parts, and that a difference is one. */
static void check_vector(const json_t *vector, const char *name)
{
    const json_t *original = json_object_get(vector, "original");
    const json_t *ours = json_object_get(vector, "ours");
    const char *why = member(vector, "why");

    check("a vector has a name and the original's result", name != NULL && original != NULL, "%s",
          name != NULL ? name : "no name");
    check("a difference has a reason, and only a difference", (ours != NULL) == (why != NULL), "%s",
          name);
    check("a difference is one", ours == NULL || !json_equal(ours, original), "%s", name);
}

static void check_vectors(const json_t *vectors, json_t *(*answer_vector)(const json_t *vector))
{
    size_t i;
    json_t *vector;

    json_array_foreach(vectors, i, vector)
    {
        json_t *ours = json_object_get(vector, "ours");
        json_t *expected = json_copy(ours != NULL ? ours : json_object_get(vector, "original"));
        json_t *answer = answer_vector(vector);
        const char *name = member(vector, "name");

        check_vector(vector, name);
        if (json_object_get(expected, "error") != NULL) {
            json_object_set(expected, "error", json_object_get(vector, "says"));
        }
        check_answer(name, answer, expected);
        json_decref(answer);
        json_decref(expected);
    }
}

void test_vectors(void)
{
    json_t *table = read_data("original.json");

    check_vectors(json_object_get(table, "ranges"), answer_ranges);
    check_vectors(json_object_get(table, "jobs"), answer_job);
    json_decref(table);
}
