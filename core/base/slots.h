/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Macros for code generated from slots.def: functions of a slot's type, and lists of its arguments.
 */
#ifndef DS_ACCEL_BASE_SLOTS_H
#define DS_ACCEL_BASE_SLOTS_H

/* Apply a macro to each of the n arguments that a row of slots.def lists, and separate the
 * results by commas. */
#define DS_ACCEL__EACH_1(apply, a) apply(a)
#define DS_ACCEL__EACH_2(apply, a, b) apply(a), apply(b)
#define DS_ACCEL__EACH_3(apply, a, b, c) DS_ACCEL__EACH_2(apply, a, b), apply(c)
#define DS_ACCEL__EACH_4(apply, a, b, c, d) DS_ACCEL__EACH_3(apply, a, b, c), apply(d)
#define DS_ACCEL__EACH_5(apply, a, b, c, d, e) DS_ACCEL__EACH_4(apply, a, b, c, d), apply(e)
#define DS_ACCEL__EACH_6(apply, a, b, c, d, e, f) DS_ACCEL__EACH_5(apply, a, b, c, d, e), apply(f)
#define DS_ACCEL__EACH_7(apply, a, b, c, d, e, f, g) \
    DS_ACCEL__EACH_6(apply, a, b, c, d, e, f), apply(g)

#define DS_ACCEL__PARAMETER_(storage, meaning, type, name) type name
#define DS_ACCEL__NAME_(storage, meaning, type, name) name
/* The declaration, and the name, of one argument of a row. */
#define DS_ACCEL__PARAMETER(argument) DS_ACCEL__PARAMETER_ argument
#define DS_ACCEL__NAME(argument) DS_ACCEL__NAME_ argument
/* The parameters of a row's function; excludes the final error parameter of a CALL row. */
#define DS_ACCEL__PARAMETERS(n, ...) DS_ACCEL__EACH_##n(DS_ACCEL__PARAMETER, __VA_ARGS__)
/* The names of these parameters, as the arguments of a call. */
#define DS_ACCEL__NAMES(n, ...) DS_ACCEL__EACH_##n(DS_ACCEL__NAME, __VA_ARGS__)

#endif
