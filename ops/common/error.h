/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* How ops report a failure. */
#ifndef OPS_ERROR_H
#define OPS_ERROR_H

#include "op.h"

#include <stdarg.h>

/* Set *error, if it is not NULL, to the code and the message "CALL: ...", as far as its struct_size
 * reaches; return the code. */
__attribute__((format(printf, 4, 5))) int32_t ops__error(struct ds_accel_error *error, int32_t code,
                                                         const char *call, const char *format, ...);
__attribute__((format(printf, 4, 0))) int32_t ops__error_list(struct ds_accel_error *error,
                                                              int32_t code, const char *call,
                                                              const char *format, va_list values);
/* Add the vendor's code and its name to *error, if it is not NULL. */
void ops__error_vendor(struct ds_accel_error *error, int64_t code, const char *text);

#endif
