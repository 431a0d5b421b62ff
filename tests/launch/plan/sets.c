/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Sets of numbers. */
#include "launch.h"

static struct ds_accel__set make(const char *list)
{
    struct ds_accel__set set = {0};

    ds_accel__set_add_list(&set, list);
    return set;
}

static void check_set(const char *name, const struct ds_accel__set *set, const char *expected)
{
    struct ds_accel__text text = {0};

    ds_accel__set_write(set, &text);
    check(name, strcmp(text.data != NULL ? text.data : "", expected) == 0, "\"%s\", not \"%s\"",
          text.data != NULL ? text.data : "", expected);
    ds_accel__text_clear(&text);
}

static void check_list(const char *name, const char *list, const char *expected)
{
    struct ds_accel__set set = make(list);

    check_set(name, &set, expected);
    ds_accel__set_clear(&set);
}

static void test_lists(void)
{
    check_list("a list is sorted and without repetition", "8,0-3,2,8", "0-3,8");
    check_list("an empty list has no number", "", "");
    check_list("a list ends with its line", "0-1\n7", "0-1");
    check_list("a malformed list adds nothing", "0-3,x", "");
    check_list("a descending range adds nothing", "0,5-4", "");
    check_list("a number above the limit adds nothing", "0,65536", "");
    check_list("adjacent numbers are a range", "1,2,4", "1-2,4");
}

static void test_operations(void)
{
    struct ds_accel__set left = make("0-3,8");
    struct ds_accel__set right = make("2-3,9");
    struct ds_accel__set part = make("2-3");
    struct ds_accel__set empty = {0};

    check("a set has its numbers only",
          ds_accel__set_has(&left, 8) && !ds_accel__set_has(&left, 4) &&
              !ds_accel__set_has(&empty, 0),
          "%s", "wrong");
    check("a set has all numbers of its parts",
          ds_accel__set_has_all(&left, &part) && !ds_accel__set_has_all(&left, &right) &&
              ds_accel__set_has_all(&empty, &empty),
          "%s", "wrong");
    ds_accel__set_keep(&right, &left);
    check_set("the numbers of both are kept", &right, "2-3");
    check("equal sets are equal",
          ds_accel__set_is_equal(&right, &part) && !ds_accel__set_is_equal(&left, &part) &&
              ds_accel__set_is_equal(&empty, &empty),
          "%s", "wrong");
    ds_accel__set_add_all(&part, &left);
    check_set("all numbers are added", &part, "0-3,8");
    for (uint32_t i = 100; i-- > 50;) {
        ds_accel__set_add(&left, i);
    }
    check_set("numbers are added in any order", &left, "0-3,8,50-99");
    ds_accel__set_clear(&left);
    ds_accel__set_clear(&right);
    ds_accel__set_clear(&part);
}

void test_sets(void)
{
    test_lists();
    test_operations();
}
