/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * From "is there such hardware?" to a bound table of a vendor's functions: each step reports a
 * failure as a struct vendor_problem, from which probe makes its verdict and init its error.
 */
#ifndef DS_ACCEL_PLUGINS_COMMON_VENDOR_LIB_H
#define DS_ACCEL_PLUGINS_COMMON_VENDOR_LIB_H

#include "plugin_util.h"

/*
 * Functions of files that not every plugin links. The cpu plugin needs neither the search for
 * hardware, nor native objects, visible devices and shared memory; the frame calls these functions
 * only for backends that use them.
 */
#define VENDOR_IF_LINKED __attribute__((weak))

/* Why a backend cannot be used, in the words of an operator. reason NONE: no problem. */
struct vendor_problem {
    uint32_t reason;      /* DS_ACCEL_REASON_* */
    uint32_t is_error;    /* the verdict's state is ERROR: the check failed, the machine may be
                             fine */
    int32_t status;       /* below 0: probe and init return it instead of a verdict */
    uint32_t is_complete; /* init's message is the detail alone */
    int64_t vendor_code;  /* the runtime's code; 0 if the runtime was not called */
    char vendor_text[64]; /* its name for the code */
    char detail[256];     /* one line: which file, library, symbol, variable, call */
};

/* Fill *problem; returns -1, for `return vendor_problem_set(...)`. */
__attribute__((format(printf, 3, 4))) int
vendor_problem_set(struct vendor_problem *problem, uint32_t reason, const char *format, ...);
/* The status that init returns for it, with *error filled. */
int32_t vendor_problem_fail(const struct vendor_problem *problem, const char *call,
                            struct ds_accel_error *error);

/* ---- the hardware, before any library (vendor_presence.c) ----------------------------------- */

/*
 * The traces that a vendor's hardware leaves in sysfs and /dev; lists end with NULL and may be NULL
 * themselves. Kept equal to conf/ds-accel.json's pci and device_nodes by a test.
 */
struct vendor_pattern {
    const char *hardware; /* as DS_ACCEL_PLUGIN_HARDWARE() has it. A node of a class that
                             vendors share (/dev/dri, /dev/accel) counts if its vendor in
                             sysfs is one of those of the pci lines */
    const char *const
        *needed_nodes;             /* of its nodes: without access to all of these nothing works */
    const char *const *other_ways; /* of its nodes: one of these is enough */
    const char *driver;            /* name of the kernel driver: "nvidia" */
};

#define VENDOR_FACTS_MAX 8

/* The text of a pattern's hardware, split; lists end with NULL. */
struct vendor_facts {
    const char *pci[VENDOR_FACTS_MAX + 1];
    const char *nodes[VENDOR_FACTS_MAX + 1];
    char text[512];
};

void vendor_pattern_split(const struct vendor_pattern *pattern, struct vendor_facts *facts);

/* The hardware found. */
struct vendor_hardware {
    uint32_t pci_count;         /* counted only if nodes alone do not decide */
    uint32_t node_count;        /* there */
    uint32_t usable_node_count; /* and readable and writable by this process */
    char first_pci[32];         /* "0000:65:00.0" */
    char refused_node[64];      /* the first unusable node, required nodes before others */
    char first_node[64];        /* of the first pattern that matches a node: "/dev/nvidiactl" */
};

/*
 * Look for the hardware below host->machine_root: 0 if this process may use any of it; -1 with the
 * reason NO_DEVICE, NO_DRIVER (on the PCI bus, but no node) or NO_PERMISSION. The option presence =
 * off makes it return 0 without a check, for runtimes that reach their devices in another way.
 */
VENDOR_IF_LINKED int vendor_presence_check(const struct ds_accel_host *host,
                                           const struct vendor_pattern *pattern,
                                           struct vendor_hardware *hardware_out,
                                           struct vendor_problem *problem);
/* The first line of a file below machine_root, without its newline; -1 if there is none. */
int vendor_read_line(const struct ds_accel_host *host, const char *path, char *line,
                     size_t line_size);
/* NUMA node (-1: not known) and power state of a PCI device ("0000:65:00.0"), from sysfs. */
VENDOR_IF_LINKED int32_t vendor_pci_numa_node(const struct ds_accel_host *host,
                                              const char *pci_address);
VENDOR_IF_LINKED uint32_t vendor_pci_power_state(const struct ds_accel_host *host,
                                                 const char *pci_address);
/* Bandwidth of a PCI Express lane in one direction, without the encoding overhead; 0: no such
 * generation. */
uint64_t vendor_pci_lane_bytes_per_s(uint32_t generation);

/* ---- the library (vendor_lib.c) ------------------------------------------------------------- */

/* One function of a vendor's library and its place in the backend's table of pointers. */
struct vendor_symbol {
    const char *name; /* the exported name, with its suffix: "cuMemAlloc_v2" */
    size_t offset;    /* of the pointer in the table */
    uint32_t is_required;
    const char *since; /* the version that introduced it, for messages: "CUDA 11.2"; NULL */
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
    char path[256]; /* as the linker found it */
};

/*
 * Open the first of names (NULL-terminated; sonames, then absolute paths) that can be opened, with
 * RTLD_NOW, RTLD_LOCAL, RTLD_NODELETE. The plugin's option option_key ("library"; NULL: none)
 * replaces all names. -1: LIBRARY_MISSING, with every name and the linker's own text of the most
 * telling failure: a library that exists and lacks a dependency tells more than a missing one. With
 * an option_key, the library is the main library: problem->detail then holds its name on success,
 * for the verdict. Optional libraries are opened with a problem of their own.
 */
int vendor_lib_open(struct vendor_lib *lib, const struct ds_accel_host *host,
                    const char *option_key, const char *const *names,
                    struct vendor_problem *problem);
/* Its file's name, without the directory. */
const char *vendor_lib_name(const struct vendor_lib *lib);
/*
 * Look up symbols[count] and store them in *table, absent optional ones as NULL. -1:
 * SYMBOL_MISSING, with the library's path and every required name that it lacks.
 */
int vendor_lib_bind(const struct vendor_lib *lib, const struct vendor_symbol *symbols, size_t count,
                    void *table, struct vendor_problem *problem);

#endif
