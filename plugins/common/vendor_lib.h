/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The steps of probe and init: search for the vendor's hardware, open its library, bind the
 * library's functions to a table. A step that fails fills a struct vendor_problem, from which probe
 * makes its verdict and init makes its error.
 */
#ifndef DS_ACCEL_PLUGINS_COMMON_VENDOR_LIB_H
#define DS_ACCEL_PLUGINS_COMMON_VENDOR_LIB_H

#include "plugin_util.h"

/*
 * Attribute of the functions in files that not every plugin links. The cpu plugin omits the search
 * for hardware, native objects, visible devices and shared memory. The frame calls these functions
 * only for backends that use them.
 */
#define VENDOR_IF_LINKED __attribute__((weak))

/* Why a backend cannot be used, in words for an operator. No problem: reason is
 * DS_ACCEL_REASON_NONE. */
struct vendor_problem {
    uint32_t reason;      /* DS_ACCEL_REASON_* */
    uint32_t is_error;    /* the verdict's state is ERROR: the check itself failed, and the machine
                             may be fine */
    int32_t status;       /* below 0: the status that probe and init return; no verdict */
    uint32_t is_complete; /* init's message is the detail without the name of the call */
    int64_t vendor_code;  /* the runtime's code; 0 if the runtime was not called */
    char vendor_text[64]; /* the runtime's name for vendor_code */
    char detail[256];     /* one line: which file, library, symbol, variable, call */
};

/* Fill *problem with the reason and the detail: is_error is set for DRIVER_FAILED and BAD_OPTION,
 * the other members are 0. Returns -1, for `return vendor_problem_set(...)`. */
__attribute__((format(printf, 3, 4))) int
vendor_problem_set(struct vendor_problem *problem, uint32_t reason, const char *format, ...);
/* Fill *error from the problem and return the status that init returns: problem->status, or if that
 * is 0 the status that corresponds to the reason. */
int32_t vendor_problem_fail(const struct vendor_problem *problem, const char *call,
                            struct ds_accel_error *error);

/* ---- search for hardware, without a library (vendor_presence.c) ----------------------------- */

/*
 * The PCI ids and device nodes by which a vendor's hardware is found. Lists end with NULL; a list
 * may also be NULL. A test compares this with pci, device_nodes and
 * other_device_nodes in conf/ds-accel.json.
 */
struct vendor_pattern {
    const char *hardware; /* the text of DS_ACCEL_PLUGIN_HARDWARE(). A node in a directory that
                             vendors share (/dev/dri, /dev/accel) counts only if sysfs lists it
                             with a vendor of the pci lines */
    const char *const
        *needed_nodes;             /* required nodes: this process must be able to use each node */
    const char *const *other_ways; /* nodes of which one usable node replaces needed_nodes */
    const char *driver;            /* name of the kernel driver: "nvidia" */
};

#define VENDOR_FACTS_MAX 8

/* The text of a pattern's hardware, split into lists that end with NULL. */
struct vendor_facts {
    const char *pci[VENDOR_FACTS_MAX + 1];
    const char *nodes[VENDOR_FACTS_MAX + 1];
    char text[512];
};

void vendor_pattern_split(const struct vendor_pattern *pattern, struct vendor_facts *facts);

/* The hardware found. */
struct vendor_hardware {
    uint32_t pci_count;         /* 0 if the nodes alone decided, and PCI devices were not counted */
    uint32_t node_count;        /* nodes that exist */
    uint32_t usable_node_count; /* nodes that this process can read and write */
    char first_pci[32];         /* "0000:65:00.0" */
    char refused_node[64];      /* the first unusable node of a required pattern, else of a pattern
                                   without a usable node */
    char first_node[64];        /* a node of the first pattern that matches: "/dev/nvidiactl" */
};

/*
 * Search for the hardware below host->machine_root. Returns 0 if this process may use a device, or
 * -1 with the reason NO_DEVICE, NO_DRIVER (a PCI device without its node, or a needed node is
 * missing), NO_PERMISSION or BAD_OPTION. With the option presence = off it returns 0 without a
 * search, because some runtimes need no local device; so it does for a pattern without hardware.
 */
VENDOR_IF_LINKED int vendor_presence_check(const struct ds_accel_host *host,
                                           const struct vendor_pattern *pattern,
                                           struct vendor_hardware *hardware_out,
                                           struct vendor_problem *problem);
/* Read the first line of a file below machine_root, without its newline and shortened to line_size.
 * Returns -1 if the file is empty or cannot be read. */
int vendor_read_line(const struct ds_accel_host *host, const char *path, char *line,
                     size_t line_size);
/* NUMA node (-1: unknown) and power state of a PCI device ("0000:65:00.0"), from sysfs. */
VENDOR_IF_LINKED int32_t vendor_pci_numa_node(const struct ds_accel_host *host,
                                              const char *pci_address);
VENDOR_IF_LINKED uint32_t vendor_pci_power_state(const struct ds_accel_host *host,
                                                 const char *pci_address);
/* Bandwidth of a PCI Express lane in one direction, without the encoding overhead; 0 for an unknown
 * generation. */
uint64_t vendor_pci_lane_bytes_per_s(uint32_t generation);

/* ---- the library (vendor_lib.c) ------------------------------------------------------------- */

/* One function of a vendor's library and its place in the backend's table of pointers. */
struct vendor_symbol {
    const char *name; /* the exported name, with its suffix: "cuMemAlloc_v2" */
    size_t offset;    /* offset of the pointer in the table */
    uint32_t is_required;
    const char *since; /* the version that introduced the function, for messages: "CUDA 11.2"; or
                          NULL */
};
#define VENDOR_REQUIRED(table, symbol) \
    { \
#symbol, offsetof(table, symbol), 1, NULL \
    }
#define VENDOR_OPTIONAL(table, symbol, since) \
    { \
#symbol, offsetof(table, symbol), 0, since \
    }

struct vendor_lib {
    void *handle;   /* never closed: runtimes leave threads running */
    char path[256]; /* path from the dynamic linker */
    char name[128]; /* the name that vendor_lib_open() found it by: a soname or a path */
};

/*
 * Open the first of names (NULL-terminated; sonames, then absolute paths) that can be opened, with
 * RTLD_NOW, RTLD_LOCAL, RTLD_NODELETE. The plugin's option option_key ("library"; NULL: no option)
 * replaces all names. Returns 0, or -1 with the reason BAD_OPTION (the option's text is too long)
 * or LIBRARY_MISSING; the detail then lists the names and quotes the dynamic linker's first message
 * that reports more than a missing file, such as a missing dependency. The main library is the
 * library with an option_key: on success its name is stored in problem->detail, for the verdict.
 * The caller opens optional libraries with a separate problem.
 */
int vendor_lib_open(struct vendor_lib *lib, const struct ds_accel_host *host,
                    const char *option_key, const char *const *names,
                    struct vendor_problem *problem);
/*
 * Write the detail of the verdict AVAILABLE, such as "libcuda.so.1, driver 580.65.06, 2 devices".
 * which is "driver" or "runtime", version a text; "" as version: unknown.
 */
void vendor_write_evidence(char *text, size_t text_size, const char *library, const char *which,
                           const char *version, uint32_t device_count);
/* The library's file name, without the directory. */
const char *vendor_lib_name(const struct vendor_lib *lib);
/*
 * Look up symbols[count] and store their addresses in *table; the address of a missing symbol is
 * NULL. Returns 0, or -1 with the reason SYMBOL_MISSING if a required symbol is missing: the detail
 * contains the library's path and every missing required name.
 */
int vendor_lib_bind(const struct vendor_lib *lib, const struct vendor_symbol *symbols, size_t count,
                    void *table, struct vendor_problem *problem);

#endif
