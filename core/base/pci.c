/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "base/pci.h"

#include <ctype.h>
#include <string.h>

/* Read a hexadecimal number of at most so many digits, which ends at a separator or at the end of
 * the text ('\0'). The text begins behind it then. */
static bool read_part(const char **text, size_t *length, size_t digits, char separator,
                      uint32_t *number)
{
    size_t count = 0;

    *number = 0;
    while (count < *length && isxdigit((unsigned char)(*text)[count])) {
        int c = tolower((unsigned char)(*text)[count]);

        if (++count > digits) {
            return false;
        }
        *number = 16 * *number + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (count == 0 ||
        (separator == '\0' ? count != *length : count == *length || (*text)[count] != separator)) {
        return false;
    }
    count += separator != '\0';
    *text += count;
    *length -= count;
    return true;
}

bool ds_accel__pci_parse(const char *text, size_t length, struct ds_accel__pci *address)
{
    const char *first = memchr(text, ':', length);
    const char *second = first != NULL ? memchr(first + 1, ':', length - (size_t)(first + 1 - text))
                                       : NULL;

    address->domain = 0;
    return (second == NULL || read_part(&text, &length, 8, ':', &address->domain)) &&
           read_part(&text, &length, 2, ':', &address->bus) &&
           read_part(&text, &length, 2, '.', &address->device) && address->device < 32 &&
           read_part(&text, &length, 1, '\0', &address->function) && address->function < 8;
}

bool ds_accel__pci_is_same(const char *left, const char *right)
{
    struct ds_accel__pci one;
    struct ds_accel__pci other;

    return ds_accel__pci_parse(left, strlen(left), &one) &&
           ds_accel__pci_parse(right, strlen(right), &other) && one.domain == other.domain &&
           one.bus == other.bus && one.device == other.device && one.function == other.function;
}
