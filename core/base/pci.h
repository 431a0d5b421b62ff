/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* PCI addresses as people and tools write them: pci.c. */
#ifndef DS_ACCEL_BASE_PCI_H
#define DS_ACCEL_BASE_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ds_accel__pci {
    uint32_t domain, bus, device, function;
};

/*
 * Parse an address in any of the usual forms: "0000:65:00.0" of the kernel, "65:00.0" of lspci,
 * "00000000:65:00.0" of nvidia-smi. False: it has none of them.
 */
bool ds_accel__pci_parse(const char *text, size_t length, struct ds_accel__pci *address);
/* Whether two texts are the same address. */
bool ds_accel__pci_is_same(const char *left, const char *right);

#endif
