/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/**
 * @file plugin-api.h
 * The ABI between the ds-accel host and an accelerator plugin, generation 1.
 *
 * A plugin is one shared object, ds_accel_<name>.so, that defines one symbol with DS_ACCEL_PLUGIN()
 * and fills one table of functions. A plugin needs no other header. The rules that both sides keep
 * are numbered in plugin-abi.md (pkg-config --variable=docdir ds-accel): DSA-P for plugins, DSA-H
 * for hosts.
 *
 * How data crosses the boundary:
 *  - Every struct begins with struct_size. The side that fills a struct writes no byte past the
 *    other side's struct_size (ds_accel_write() does this); members that the filling side does not
 *    know stay zero, and zero means "not known" unless the comment on the member says otherwise.
 *  - A function returns 0 (DS_ACCEL_OK), a negative error or a positive "not yet". A function
 *    writes its outputs only when it returns DS_ACCEL_OK; only needed_out is also written with
 *    ERR_LIMIT. `error` is never NULL; fill it before returning a negative code.
 *  - A function that the plugin lacks is NULL in the table. The host calls its own stub instead,
 *    which returns DS_ACCEL_ERR_UNSUPPORTED, so neither side tests for NULL.
 *  - Strings are UTF-8. The plugin creates and frees handles. Neither side frees memory that the
 *    other allocated; no exception or longjmp() crosses the boundary.
 *
 * The header compiles as C99, C11 and C++11 and later, and includes libc headers only.
 */
#ifndef DS_ACCEL_PLUGIN_API_H
#define DS_ACCEL_PLUGIN_API_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions ------------------------------------------------------------------------------- */

/**
 * ABI generation: part of the entry symbol's name and of the ELF note. The host must support it.
 */
#define DS_ACCEL_ABI_MAJOR 1
/** Informative: counts the additions within the generation. No host accepts or rejects a plugin by
 * it; doctor reports a difference, and conformance checks allow a newer plugin what this header
 * does not have. */
#define DS_ACCEL_ABI_MINOR 1

/** Bytes of @p type through its member @p last: the smallest struct_size that includes @p last. */
#define DS_ACCEL_SIZE_THROUGH(type, last) \
    (offsetof(type, last) + sizeof(DS_ACCEL_CAST_(type *, DS_ACCEL_NULL_)->last))
/** One bit of a 64-bit set of flags. */
#define DS_ACCEL_BIT(position) (UINT64_C(1) << (position))
/** Non-zero if the struct at @p ptr has @p member, according to its struct_size. */
#define DS_ACCEL_HAS(ptr, type, member) ((ptr)->struct_size >= DS_ACCEL_SIZE_THROUGH(type, member))

#if defined(__GNUC__) || defined(__clang__)
#define DS_ACCEL_EXPORT __attribute__((visibility("default")))
/* The functions of this header are static inline. DS_ACCEL_NO_INLINE leaves only their
 * declarations, for tools that read headers; libds_accel exports the functions. To give them
 * another linkage, such as a definition that a plugin in another language links, define
 * DS_ACCEL_INLINE before including this header. */
#ifdef DS_ACCEL_NO_INLINE
#define DS_ACCEL_INLINE DS_ACCEL_EXPORT
#elif !defined(DS_ACCEL_INLINE)
#define DS_ACCEL_INLINE static inline __attribute__((unused))
#endif
/* The linker joins notes without a gap: exclude them from padding by clang's address sanitizer. */
#if defined(__clang__)
#define DS_ACCEL_NOTE_SECTION \
    __attribute__((used, aligned(4), section(".note.ds_accel"), no_sanitize_address))
#else
#define DS_ACCEL_NOTE_SECTION __attribute__((used, aligned(4), section(".note.ds_accel")))
#endif
#else
#error "ds-accel plugins are built with GCC or Clang"
#endif

/* Casts and null pointers without warnings in C and in C++. */
#ifdef __cplusplus
#define DS_ACCEL_CAST_(type, value) static_cast<type>(value)
#define DS_ACCEL_NULL_ nullptr
#else
#define DS_ACCEL_CAST_(type, value) ((type)(value))
#define DS_ACCEL_NULL_ NULL
#endif

/* ---- status codes: 0 ok, negative errors (never renumbered), positive "not yet" ------------- */

/* The enum gives all codes one signed type, also in bindgen, for which a macro of 0 is unsigned.
 * The macros of the same names are for #ifdef, and are int in C++ too. */
enum {
    DS_ACCEL_OK = 0,
    DS_ACCEL_NOT_READY = 1,         /**< an event or stream still has work to do */
    DS_ACCEL_ERR_INVALID = -1,      /**< an argument is out of its range */
    DS_ACCEL_ERR_NO_MEMORY = -2,    /**< host or device memory is exhausted */
    DS_ACCEL_ERR_UNSUPPORTED = -3,  /**< this plugin, host or device has no such function */
    DS_ACCEL_ERR_DRIVER = -4,       /**< the vendor's runtime failed: see vendor_code */
    DS_ACCEL_ERR_NOT_FOUND = -5,    /**< no such name, key, file or extension */
    DS_ACCEL_ERR_NO_DEVICE = -6,    /**< no such device, or none at all */
    DS_ACCEL_ERR_PERMISSION = -7,   /**< the operating system refused access */
    DS_ACCEL_ERR_BUSY = -8,         /**< in use by another process, or still has users */
    DS_ACCEL_ERR_TIMEOUT = -9,      /**< the deadline passed */
    DS_ACCEL_ERR_DEVICE_LOST = -10, /**< the device fell off the bus or was reset */
    DS_ACCEL_ERR_IO = -11,          /**< reading or writing a file failed */
    DS_ACCEL_ERR_STATE = -12,  /**< not allowed in the current state, such as during a capture */
    DS_ACCEL_ERR_LIMIT = -13,  /**< a resource limit was met, such as RLIMIT_MEMLOCK */
    DS_ACCEL_ERR_CONFIG = -14, /**< the configuration is not valid */
    DS_ACCEL_ERR_NOT_USABLE = -15, /**< the requested accelerator cannot be used */
    DS_ACCEL_ERR_ABI = -16,        /**< host and plugin are not compatible */
    DS_ACCEL_ERR_UNTRUSTED = -17,  /**< rejected by a security check */
    DS_ACCEL_ERR_INTERNAL = -18,   /**< a defect on the side that returns it */
};
#define DS_ACCEL_OK (+DS_ACCEL_OK)
#define DS_ACCEL_NOT_READY (+DS_ACCEL_NOT_READY)
#define DS_ACCEL_ERR_INVALID (+DS_ACCEL_ERR_INVALID)
#define DS_ACCEL_ERR_NO_MEMORY (+DS_ACCEL_ERR_NO_MEMORY)
#define DS_ACCEL_ERR_UNSUPPORTED (+DS_ACCEL_ERR_UNSUPPORTED)
#define DS_ACCEL_ERR_DRIVER (+DS_ACCEL_ERR_DRIVER)
#define DS_ACCEL_ERR_NOT_FOUND (+DS_ACCEL_ERR_NOT_FOUND)
#define DS_ACCEL_ERR_NO_DEVICE (+DS_ACCEL_ERR_NO_DEVICE)
#define DS_ACCEL_ERR_PERMISSION (+DS_ACCEL_ERR_PERMISSION)
#define DS_ACCEL_ERR_BUSY (+DS_ACCEL_ERR_BUSY)
#define DS_ACCEL_ERR_TIMEOUT (+DS_ACCEL_ERR_TIMEOUT)
#define DS_ACCEL_ERR_DEVICE_LOST (+DS_ACCEL_ERR_DEVICE_LOST)
#define DS_ACCEL_ERR_IO (+DS_ACCEL_ERR_IO)
#define DS_ACCEL_ERR_STATE (+DS_ACCEL_ERR_STATE)
#define DS_ACCEL_ERR_LIMIT (+DS_ACCEL_ERR_LIMIT)
#define DS_ACCEL_ERR_CONFIG (+DS_ACCEL_ERR_CONFIG)
#define DS_ACCEL_ERR_NOT_USABLE (+DS_ACCEL_ERR_NOT_USABLE)
#define DS_ACCEL_ERR_ABI (+DS_ACCEL_ERR_ABI)
#define DS_ACCEL_ERR_UNTRUSTED (+DS_ACCEL_ERR_UNTRUSTED)
#define DS_ACCEL_ERR_INTERNAL (+DS_ACCEL_ERR_INTERNAL)

/* ---- small shared types --------------------------------------------------------------------- */

/**
 * Details of a failure. The caller sets struct_size, zeroes both codes and empties both texts; the
 * bytes after a text's NUL are undefined.
 */
struct ds_accel_error {
    uint32_t struct_size;
    int32_t code;         /**< the status that the function returns */
    int64_t vendor_code;  /**< the vendor's own code, unchanged; 0 if none */
    char vendor_text[64]; /**< the code's name: "CUDA_ERROR_OUT_OF_MEMORY"; NUL-terminated */
    char message[256];    /**< call, arguments and cause, one line, NUL-terminated */
};

/* Handles: one opaque type per kind, made and freed by the plugin. */
typedef struct ds_accel_plugin_instance ds_accel_plugin_instance_t;     /**< created by init() */
typedef struct ds_accel_plugin_device ds_accel_plugin_device_t;         /**< an opened device */
typedef struct ds_accel_plugin_stream ds_accel_plugin_stream_t;         /**< an ordered queue */
typedef struct ds_accel_plugin_event ds_accel_plugin_event_t;           /**< a point in a stream */
typedef struct ds_accel_plugin_graph ds_accel_plugin_graph_t;           /**< captured work */
typedef struct ds_accel_plugin_graph_exec ds_accel_plugin_graph_exec_t; /**< a launchable graph */
typedef struct ds_accel_plugin_vmem
    ds_accel_plugin_vmem_t; /**< physical memory for virtual ranges */

/** Data types; the numbers are stored in files and sent, and never renumbered. */
#define DS_ACCEL_DTYPE_FLOAT32 1u
#define DS_ACCEL_DTYPE_FLOAT16 2u
#define DS_ACCEL_DTYPE_BFLOAT16 3u
#define DS_ACCEL_DTYPE_FLOAT64 4u
#define DS_ACCEL_DTYPE_INT8 5u
#define DS_ACCEL_DTYPE_UINT8 6u
#define DS_ACCEL_DTYPE_INT16 7u
#define DS_ACCEL_DTYPE_INT32 8u
#define DS_ACCEL_DTYPE_INT64 9u
#define DS_ACCEL_DTYPE_BOOL 10u          /**< one byte, 0 or 1 */
#define DS_ACCEL_DTYPE_FLOAT8_E4M3FN 11u /**< OCP format */
#define DS_ACCEL_DTYPE_FLOAT8_E5M2 12u   /**< OCP format */
#define DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ 13u
#define DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ 14u
/** Since 1.1: pairs of real and imaginary part, each a float of half the size. */
#define DS_ACCEL_DTYPE_COMPLEX32 15u
#define DS_ACCEL_DTYPE_COMPLEX64 16u
#define DS_ACCEL_DTYPE_COMPLEX128 17u

#define DS_ACCEL_DTYPE_STORES 1u   /**< the device stores and copies this type */
#define DS_ACCEL_DTYPE_COMPUTES 2u /**< arithmetic in hardware: the type is "supported" */
#define DS_ACCEL_DTYPE_EMULATED 4u /**< arithmetic works by way of another type */

/* ---- features: contracts that one side requires of the other -------------------------------- */

#define DS_ACCEL_FEATURE_CONFIG 0x1ull   /**< host provides config_get */
#define DS_ACCEL_FEATURE_MACHINE 0x2ull  /**< host provides machine_root */
#define DS_ACCEL_FEATURE_TOPOLOGY 0x4ull /**< extension DS_ACCEL_EXT_TOPOLOGY */
#define DS_ACCEL_FEATURE_TRACE 0x8ull    /**< extension DS_ACCEL_EXT_TRACE */
/** Host selects this plugin only by name, never by itself; the configuration can override this. */
#define DS_ACCEL_FEATURE_DEMAND_ONLY 0x10ull
/** A child of fork() may call init after its parent did; without this bit the host refuses. */
#define DS_ACCEL_FEATURE_SURVIVES_FORK 0x20ull

/* ---- the host's services -------------------------------------------------------------------- */

#define DS_ACCEL_LOG_ERROR 1u
#define DS_ACCEL_LOG_WARN 2u
#define DS_ACCEL_LOG_INFO 3u
#define DS_ACCEL_LOG_DEBUG 4u
#define DS_ACCEL_LOG_TRACE 5u

/**
 * The services of the host for a plugin. The pointer that entry, probe and init receive stays valid
 * until shutdown returns (for entry and probe: until they return). Every function may be called
 * from any thread; its first argument is this pointer. Test DS_ACCEL_HAS() before using a member
 * added later.
 */
struct ds_accel_host {
    uint32_t struct_size;
    uint16_t abi_major; /**< ABI generation of the plugin's entry function that the host called */
    uint16_t abi_minor;
    uint64_t features;        /**< DS_ACCEL_FEATURE_* that this host supports */
    const char *host_version; /**< "0.1.0" */
    void *host_data;          /**< data of the host; plugins do not use it */

    /**
     * Log one line, given without a newline, under the plugin's name as the topic. In C code that
     * includes <tgmath.h>, whose log() is a macro, write (host->log)(...).
     */
    void (*log)(const struct ds_accel_host *host, uint32_t level, const char *message);
    /** DS_ACCEL_OK, with *enabled_out 1 if the host would show a line of @p level, else 0. */
    int32_t (*log_enabled)(const struct ds_accel_host *host, uint32_t level, uint32_t *enabled_out);
    /**
     * Look up an option of this plugin: the environment's DS_ACCEL_<NAME>_<KEY> (upper case, dots
     * as underscores), then the configuration's backends.<name>.options.<key>, as text.
     * @param[in]  key           "device_count"
     * @param[out] value         NUL-terminated UTF-8; NULL with value_size 0 only queries the size
     * and returns ERR_LIMIT
     * @param[in]  value_size    bytes at value
     * @param[out] needed_out    bytes that the value needs, its NUL included; written on OK and
     * ERR_LIMIT; may be NULL
     * @return DS_ACCEL_OK; ERR_NOT_FOUND: the option is not set; ERR_LIMIT: the value does not fit,
     * @p value is unchanged; ERR_INVALID
     */
    int32_t (*config_get)(const struct ds_accel_host *host, const char *key, char *value,
                          uint32_t value_size, uint32_t *needed_out);
    /** Monotonic clock in nanoseconds. */
    uint64_t (*clock_ns)(const struct ds_accel_host *host);
    /** Prefix of every path in /sys, /proc and /dev: "" for this machine, a directory for a
     * recorded machine. */
    const char *machine_root;
    /**
     * Return a group of further functions by string id; NULL if the host has no group with that id.
     */
    const void *(*extension)(const struct ds_accel_host *host, const char *id);
};

/** Host extension: the machine's NUMA nodes and memory, read under machine_root. */
#define DS_ACCEL_EXT_TOPOLOGY "ds_accel.topology.1"

/** A NUMA node of the machine. */
struct ds_accel_numa_node {
    uint32_t struct_size;
    uint32_t id;        /**< the kernel's number; numbers may have gaps */
    uint32_t cpu_count; /**< 0: memory only, such as HBM in flat mode */
    uint32_t reserved;
    uint64_t total_memory_bytes;
    uint64_t available_memory_bytes;
    char cpus[256]; /**< the kernel's list format, "0-3,8-11"; shortened with "..." if longer */
};

/** The memory that this process can use. */
struct ds_accel_host_memory {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t total_bytes;     /**< the smaller of the machine's memory and the limit */
    uint64_t available_bytes; /**< the smaller of the kernel's value and the rest of the limit */
    uint64_t limit_bytes;     /**< 0: no limit below the machine's memory */
    /** the file that sets the limit, "/sys/fs/cgroup/x/memory.max"; "" if none */
    char limit_source[512];
};

/** The struct that extension() returns for DS_ACCEL_EXT_TOPOLOGY. */
struct ds_accel_ext_topology {
    uint32_t struct_size;
    uint32_t reserved;
    /** Number of nodes of the machine, 0 if the machine does not report them. */
    int32_t (*node_count)(const struct ds_accel_host *host, uint32_t *count_out);
    /** @p position counts from 0 in order of node id. ERR_INVALID past the last node. */
    int32_t (*node_get)(const struct ds_accel_host *host, uint32_t position,
                        struct ds_accel_numa_node *node_out);
    /** The machine's memory, or less where a control group limits this process. */
    int32_t (*memory_get)(const struct ds_accel_host *host,
                          struct ds_accel_host_memory *memory_out);
};

/** Host extension: begin and end of a span on the calling thread; names have static storage. */
#define DS_ACCEL_EXT_TRACE "ds_accel.trace.1"

/** The struct that extension() returns for DS_ACCEL_EXT_TRACE. */
struct ds_accel_ext_trace {
    uint32_t struct_size;
    uint32_t reserved;
    /** Begin a span of @p category on the calling thread. */
    void (*begin)(const struct ds_accel_host *host, const char *category, const char *name);
    /** End the calling thread's innermost span. */
    void (*end)(const struct ds_accel_host *host);
};

/**
 * Host extension: the process that the plugin is probed for. Probe may run in a helper process of
 * the host. A device that the program holds then appears to be held by another process, although no
 * other program holds it.
 */
#define DS_ACCEL_EXT_ASKER "ds_accel.asker.1"

/** The struct that extension() returns for DS_ACCEL_EXT_ASKER. */
struct ds_accel_ext_asker {
    uint32_t struct_size;
    uint32_t reserved;
    /** The program's process id; this process's own id if no helper process is involved. */
    int64_t (*process_id)(const struct ds_accel_host *host);
};

/* ---- probe: is this accelerator usable here? ------------------------------------------------ */

#define DS_ACCEL_PROBE_AVAILABLE 1u   /**< device_count devices can be used now */
#define DS_ACCEL_PROBE_UNAVAILABLE 2u /**< no device can be used: the machine is the cause */
#define DS_ACCEL_PROBE_ERROR 3u       /**< the probe failed: driver or plugin is the cause */

/** Why the accelerator is not available. One number per cause that an operator can act on. */
#define DS_ACCEL_REASON_NONE 0u
#define DS_ACCEL_REASON_NO_DEVICE 1u       /**< no hardware of this kind in the machine */
#define DS_ACCEL_REASON_NO_DRIVER 2u       /**< hardware, but its kernel driver is not loaded */
#define DS_ACCEL_REASON_NO_PERMISSION 3u   /**< detail contains the device node */
#define DS_ACCEL_REASON_LIBRARY_MISSING 4u /**< detail contains the library's name */
/** the runtime library is too old: detail contains the symbol */
#define DS_ACCEL_REASON_SYMBOL_MISSING 5u
#define DS_ACCEL_REASON_DRIVER_MISMATCH 6u /**< kernel driver and runtime library disagree */
#define DS_ACCEL_REASON_DEVICE_BUSY 7u     /**< in use exclusively by another process */
#define DS_ACCEL_REASON_HIDDEN 8u          /**< a visible-devices variable hides every device */
#define DS_ACCEL_REASON_DEVICE_TOO_OLD 9u  /**< present, but its generation is not supported */
#define DS_ACCEL_REASON_DEVICE_ASLEEP 10u  /**< suspended; the probe does not wake it */
#define DS_ACCEL_REASON_DRIVER_FAILED 11u  /**< the runtime returned an error: see vendor_code */
#define DS_ACCEL_REASON_BAD_OPTION 12u     /**< an option or variable of this plugin is not valid */

/** The result of probe. */
struct ds_accel_verdict {
    uint32_t struct_size;
    uint32_t state;        /**< DS_ACCEL_PROBE_*; the host refuses 0 */
    uint32_t device_count; /**< > 0 when AVAILABLE */
    uint32_t reason;       /**< DS_ACCEL_REASON_*; NONE when AVAILABLE */
    int64_t vendor_code;   /**< the vendor's code; set with DRIVER_FAILED */
    char variant[32]; /**< the access path, if there are several: xpu "driver"; rules can name it */
    char detail[256]; /**< evidence, one line: the file, library, symbol or variable */
};

/* ---- facts about the backend and its devices ------------------------------------------------ */

#define DS_ACCEL_FLAG_SYNCHRONIZED 0x1ull /**< there is no asynchronous queue */
#define DS_ACCEL_FLAG_HOST_TIMERS 0x2ull  /**< time with the host's clock */
/** the runtime orders dependent work by itself */
#define DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES 0x4ull
#define DS_ACCEL_FLAG_HANDLES_BACKPRESSURE 0x8ull /**< the runtime bounds work in flight */
#define DS_ACCEL_FLAG_RANGE_DOMAINS 0x10ull       /**< range_push uses domain, category */
#define DS_ACCEL_FLAG_TRITON 0x20ull
#define DS_ACCEL_FLAG_TRITON_GROUPED_MM 0x40ull /**< prefer triton's grouped matmul */
#define DS_ACCEL_FLAG_GRAPHS 0x80ull            /**< the graph group works */
/** the default stream waits for all other streams */
#define DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS 0x100ull
#define DS_ACCEL_FLAG_HOST_ACCESSIBLE 0x200ull /**< host code may access device memory */
/** one address space: the copy kind can be inferred */
#define DS_ACCEL_FLAG_UNIFIED_ADDRESSES 0x400ull
#define DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY 0x800ull
#define DS_ACCEL_FLAG_VIRTUAL_MEMORY 0x1000ull
#define DS_ACCEL_FLAG_MEMORY_IPC 0x2000ull
#define DS_ACCEL_FLAG_EVENT_IPC 0x4000ull
#define DS_ACCEL_FLAG_DMABUF 0x8000ull

/** Every DS_ACCEL_FLAG_* of this header. */
#define DS_ACCEL_FLAGS_ALL 0xffffull

/** Facts that hold for all devices of an instance. */
struct ds_accel_backend_info {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t flags;       /**< DS_ACCEL_FLAG_* */
    uint64_t flags_known; /**< the flags whose value is known: DS_ACCEL_FLAGS_ALL, or fewer */
    char communication_backend[32];    /**< "nccl"; "": not known to the plugin */
    char compile_backend[32];          /**< "inductor"; "": not known to the plugin */
    uint32_t communication_version[4]; /**< major, minor, patch, 0; all 0: not known */
    uint32_t driver_version[4];        /**< the kernel driver's version, in the same form */
    uint32_t runtime_version[4];       /**< the vendor library's version, in the same form */
    uint32_t memory_handle_bytes;      /**< size of an IPC memory handle; 0: none */
    uint32_t event_handle_bytes;       /**< size of an IPC event handle; 0: none */
};

#define DS_ACCEL_PARTITION_NONE 0u /**< a whole device */
#define DS_ACCEL_PARTITION_MIG 1u
#define DS_ACCEL_PARTITION_TILE 2u
#define DS_ACCEL_PARTITION_OTHER 3u

#define DS_ACCEL_POWER_UNKNOWN 0u
#define DS_ACCEL_POWER_ACTIVE 1u
#define DS_ACCEL_POWER_SUSPENDED 2u
#define DS_ACCEL_POWER_OFF 3u

#define DS_ACCEL_IDENTITY_VENDOR_INDEX 1u
#define DS_ACCEL_IDENTITY_NUMA_NODE 2u
#define DS_ACCEL_IDENTITY_PARENT_INDEX 4u
#define DS_ACCEL_IDENTITY_UUID 8u
#define DS_ACCEL_IDENTITY_PARTITION 16u

/**
 * The identity of a device, read without opening or waking the device. vendor_index, numa_node,
 * parent_index, uuid and the numbers of a partition hold a value only if their bit in `valid` is
 * set; zero is a value of these members.
 */
struct ds_accel_device_identity {
    uint32_t struct_size;
    uint32_t device_index;   /**< the index that the caller passed */
    uint32_t valid;          /**< DS_ACCEL_IDENTITY_* */
    uint32_t partition_kind; /**< DS_ACCEL_PARTITION_* */
    uint32_t power_state;    /**< DS_ACCEL_POWER_* */
    uint32_t vendor_index;   /**< index in the vendor's numbering, in which no device is hidden */
    uint32_t numa_node;      /**< the kernel's number */
    uint32_t parent_index;   /**< device_index of the whole device, if it has one here */
    uint32_t partition_instance;    /**< MIG GPU instance, tile: with IDENTITY_PARTITION */
    uint32_t partition_subinstance; /**< MIG compute instance: with IDENTITY_PARTITION */
    uint64_t total_memory_bytes;    /**< 0: known only once the device is open */
    uint8_t uuid[16];
    char uuid_text[64];        /**< as the vendor writes it: "GPU-..." */
    char parent_uuid_text[64]; /**< UUID of the whole device, even if it has no index here */
    char pci_address[32];  /**< "0000:65:00.0", for a partition its parent's; "" if not on PCI */
    char node_path[64];    /**< "/dev/nvidia0", without machine_root; "" if none */
    char architecture[64]; /**< "sm_90", "gfx942:sramecc+:xnack-"; "": not known */
    char name[128];        /**< the marketing name; "" if known only once the device is open */
};

/** The properties of an opened device. */
struct ds_accel_device_info {
    uint32_t struct_size;
    uint32_t device_index;
    char name[128];
    uint64_t total_memory_bytes;
    uint32_t compute_major; /**< compute capability, ISA generation; 0.0 if the vendor has none */
    uint32_t compute_minor;
    uint32_t compute_unit_count; /**< multiprocessors, compute units, cores */
    uint32_t warp_size;          /**< lanes that run together; 1 on a CPU */
    uint32_t max_threads_per_block;
    uint32_t max_core_clock_khz;
    uint64_t memory_bus_bits;
    uint64_t l2_cache_bytes;
    uint64_t allocation_align_bytes; /**< alignment of every mem_alloc() result */
    uint64_t flags;                /**< DS_ACCEL_FLAG_* of this device; a subset of the backend's */
    uint64_t flags_known;          /**< the flags whose value is known */
    uint64_t max_allocation_bytes; /**< largest size of one mem_alloc(); 0: not known */
};

#define DS_ACCEL_MEMORY_TOTAL 1u
#define DS_ACCEL_MEMORY_AVAILABLE 2u
#define DS_ACCEL_MEMORY_PROCESS 4u

/** Memory sizes: of the device, of this process, and the limit on both. */
struct ds_accel_memory_info {
    uint32_t struct_size;
    uint32_t valid;       /**< DS_ACCEL_MEMORY_*: the members that are known; zero is a value */
    uint64_t total_bytes; /**< the largest size that this process could allocate */
    /** the size that this process could allocate now, with other processes' memory in use */
    uint64_t available_bytes;
    uint64_t process_bytes; /**< the size that this process uses */
    uint64_t limit_bytes;   /**< a limit below the device's memory, 0 if none */
    char limit_source[512]; /**< the source of the limit: a file, variable or call */
};

#define DS_ACCEL_STATS_ALLOCATED 1u /**< allocated_bytes and its peak */
#define DS_ACCEL_STATS_RESERVED 2u  /**< reserved_bytes and its peak */
#define DS_ACCEL_STATS_COUNTS 4u    /**< alloc_count, free_count, out_of_memory_count */
#define DS_ACCEL_STATS_RETRIES 8u   /**< alloc_retry_count */

/**
 * Bytes at the time of the call, their peaks since the last reset, and counts since the device was
 * opened.
 */
struct ds_accel_memory_stats {
    uint32_t struct_size;
    uint32_t valid;           /**< DS_ACCEL_STATS_*: the members that are known; zero is a value */
    uint64_t allocated_bytes; /**< in live allocations (cpu: the process's resident set) */
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes; /**< obtained from the driver and not yet released */
    uint64_t reserved_peak_bytes;
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t alloc_retry_count; /**< allocations that succeeded after emptying a cache */
    uint64_t out_of_memory_count;
};

#define DS_ACCEL_PEAK_ALLOCATED 1u
#define DS_ACCEL_PEAK_RESERVED 2u

/* ---- flags of calls ------------------------------------------------------------------------- */

#define DS_ACCEL_STREAM_DEFAULT 0u
#define DS_ACCEL_STREAM_NON_BLOCKING 1u /**< no implicit order with the default stream */

#define DS_ACCEL_EVENT_TIMING 1u        /**< elapsed time can be queried */
#define DS_ACCEL_EVENT_BLOCKING_SYNC 2u /**< waiting sleeps rather than spins */
#define DS_ACCEL_EVENT_INTERPROCESS 4u

#define DS_ACCEL_PINNED_PORTABLE 1u /**< pinned for every device of the backend */
#define DS_ACCEL_PINNED_MAPPED 2u   /**< has a device address too */
#define DS_ACCEL_PINNED_WRITE_COMBINED 4u
#define DS_ACCEL_PINNED_HUGE_PAGES 8u /**< prefer 2 MiB pages */

#define DS_ACCEL_COPY_HOST_TO_HOST 1u
#define DS_ACCEL_COPY_HOST_TO_DEVICE 2u
#define DS_ACCEL_COPY_DEVICE_TO_HOST 3u
#define DS_ACCEL_COPY_DEVICE_TO_DEVICE 4u
#define DS_ACCEL_COPY_INFER 5u /**< only with DS_ACCEL_FLAG_UNIFIED_ADDRESSES */

#define DS_ACCEL_CAPTURE_GLOBAL 0u /**< unsafe calls of any thread break the capture */
#define DS_ACCEL_CAPTURE_THREAD_LOCAL 1u
#define DS_ACCEL_CAPTURE_RELAXED 2u

#define DS_ACCEL_CAPTURING_NO 0u
#define DS_ACCEL_CAPTURING_YES 1u
#define DS_ACCEL_CAPTURING_BROKEN 2u

#define DS_ACCEL_GRAPH_UPDATED 1u /**< graph_exec_update applied the new graph */
#define DS_ACCEL_GRAPH_REBUILD_NEEDED 2u

#define DS_ACCEL_POINTER_UNKNOWN 0u /**< not an address of this plugin */
#define DS_ACCEL_POINTER_DEVICE 1u
#define DS_ACCEL_POINTER_PINNED 2u
#define DS_ACCEL_POINTER_MANAGED 3u
#define DS_ACCEL_POINTER_HOST 4u /**< ordinary host memory that the runtime recognizes */

/** The facts that mem_pointer_info reports about an address. */
struct ds_accel_pointer_info {
    uint32_t struct_size;
    uint32_t kind;        /**< DS_ACCEL_POINTER_* */
    int32_t device_index; /**< the owning device; always written: -1 if none or not known */
    uint32_t reserved;
    uint64_t base_address;  /**< start of the allocation that contains the pointer */
    uint64_t size_bytes;    /**< size of that allocation */
    uint64_t allocation_id; /**< unique in the plugin, never reused; 0 unknown */
};

#define DS_ACCEL_NATIVE_DEVICE 1u /**< CUdevice, hipDevice_t, ze_device_handle_t ... */
/** context of an opened device: CUcontext, ze_context_handle_t, cl_context */
#define DS_ACCEL_NATIVE_CONTEXT 2u
#define DS_ACCEL_NATIVE_STREAM 3u
#define DS_ACCEL_NATIVE_EVENT 4u
#define DS_ACCEL_NATIVE_MEMORY 5u /**< for backends whose memory is an object: cl_mem */
#define DS_ACCEL_NATIVE_GRAPH 6u
#define DS_ACCEL_NATIVE_GRAPH_EXEC 7u

#define DS_ACCEL_VMEM_EXPORTABLE 1u /**< can be passed to dmabuf_export and ipc_memory_export */

#define DS_ACCEL_VMEM_ACCESS_NONE 0u
#define DS_ACCEL_VMEM_ACCESS_READ 1u
#define DS_ACCEL_VMEM_ACCESS_READ_WRITE 3u

#define DS_ACCEL_LINK_UNKNOWN 0u
#define DS_ACCEL_LINK_PCI 1u
#define DS_ACCEL_LINK_NVLINK 2u
#define DS_ACCEL_LINK_XGMI 3u
#define DS_ACCEL_LINK_XE 4u
#define DS_ACCEL_LINK_HCCS 5u
#define DS_ACCEL_LINK_ETHERNET 6u /**< on-chip network ports, as on Gaudi */
#define DS_ACCEL_LINK_OTHER 7u

/** One link of a device, an element of an array. */
struct ds_accel_link {
    uint32_t struct_size;
    uint32_t kind;      /**< DS_ACCEL_LINK_* */
    int32_t peer_index; /**< device_index at the other end; always written: -1 if not a device of
                           this plugin */
    uint32_t width;     /**< lanes */
    uint32_t generation;
    uint32_t is_up;                 /**< 1 or 0 */
    uint64_t bandwidth_bytes_per_s; /**< one direction */
    char peer_pci_address[32];      /**< set when only the address of the other end is known */
};

#define DS_ACCEL_TELEMETRY_UTILIZATION 0x1ull
#define DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION 0x2ull
#define DS_ACCEL_TELEMETRY_TEMPERATURE 0x4ull
#define DS_ACCEL_TELEMETRY_POWER 0x8ull
#define DS_ACCEL_TELEMETRY_POWER_LIMIT 0x10ull
#define DS_ACCEL_TELEMETRY_ENERGY 0x20ull
#define DS_ACCEL_TELEMETRY_CORE_CLOCK 0x40ull
#define DS_ACCEL_TELEMETRY_MEMORY_CLOCK 0x80ull
#define DS_ACCEL_TELEMETRY_FAN 0x100ull
#define DS_ACCEL_TELEMETRY_PCIE 0x200ull
#define DS_ACCEL_TELEMETRY_THROTTLE 0x400ull
#define DS_ACCEL_TELEMETRY_ECC 0x800ull
#define DS_ACCEL_TELEMETRY_MEMORY 0x1000ull

#define DS_ACCEL_THROTTLE_IDLE 0x1ull
#define DS_ACCEL_THROTTLE_POWER 0x2ull
#define DS_ACCEL_THROTTLE_THERMAL 0x4ull
#define DS_ACCEL_THROTTLE_HARDWARE 0x8ull
#define DS_ACCEL_THROTTLE_SETTING 0x10ull /**< clocks set by an application or operator */

/** Sensors. Only the members whose bits are set in valid have a value; zero is a value. */
struct ds_accel_telemetry {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t valid; /**< DS_ACCEL_TELEMETRY_* */
    uint32_t utilization_percent;
    uint32_t memory_utilization_percent;
    int32_t temperature_millidegrees_c;
    uint32_t fan_percent;
    uint64_t power_milliwatts;
    uint64_t power_limit_milliwatts;
    uint64_t energy_millijoules; /**< since the driver was loaded */
    uint32_t core_clock_khz;
    uint32_t memory_clock_khz;
    uint64_t pcie_rx_bytes_per_s;
    uint64_t pcie_tx_bytes_per_s;
    uint64_t throttle_reasons; /**< DS_ACCEL_THROTTLE_* */
    uint64_t ecc_corrected_count;
    uint64_t ecc_uncorrected_count;
    uint64_t memory_total_bytes;
    uint64_t memory_used_bytes; /**< memory in use by all processes */
    uint64_t sampled_over_ns;   /**< the period of the percentages; 0: not known */
};

/** One process that uses a device, an element of an array. */
struct ds_accel_process {
    uint32_t struct_size;
    int32_t pid; /**< the pid in this process's PID namespace; 0 if it has none there */
    uint64_t memory_bytes;
    uint32_t utilization_percent;
    /**
     * The members that are known: DS_ACCEL_TELEMETRY_MEMORY, DS_ACCEL_TELEMETRY_UTILIZATION. Bits
     * from 32 on are never set here: a later member with such a bit has a separate 64-bit set,
     * appended to this struct.
     */
    uint32_t valid;
};

#define DS_ACCEL_ENV_IF_UNSET 1u /**< the job keeps its own value */
#define DS_ACCEL_ENV_ALWAYS 2u   /**< the value replaces the job's own */
#define DS_ACCEL_ENV_UNSET 3u    /**< the variable is removed from the job */

/** A variable this backend wants in a job's environment, an element of an array. */
struct ds_accel_env_rule {
    uint32_t struct_size;
    uint32_t rule;     /**< DS_ACCEL_ENV_* */
    const char *name;  /**< name, value and why: static storage */
    const char *value; /**< NULL with UNSET */
    const char *why;   /**< one line, or NULL */
};

#define DS_ACCEL_ENV_LIST_VISIBLE_DEVICES 1u /**< names of variables that choose devices */
#define DS_ACCEL_ENV_LIST_EXPORT 2u          /**< prefixes of variables that a job must inherit */

/** One op builder, an element of an array; all strings are borrowed, static storage. */
struct ds_accel_op_builder {
    uint32_t struct_size;
    uint32_t reserved;
    const char *builder; /**< "CPUAdamBuilder" */
    const char *op;      /**< "cpu_adam" */
    const char *json;    /**< the recipe in the form of the configuration's op_builders, or NULL */
};

/** Receives pieces of a text that a plugin writes; returns DS_ACCEL_OK to continue. */
typedef int32_t (*ds_accel_text_sink_t)(void *user_data, const char *text, uint64_t text_bytes);
/**
 * Runs once for each stream_host_task that returned DS_ACCEL_OK (when captured: once per launch).
 * @p status is DS_ACCEL_OK, or the reason why the stream did not reach the task. Runs on any
 * thread; must not call the plugin, the vendor's runtime or the program's library, except
 * ds_accel_note_access().
 */
typedef void (*ds_accel_host_task_t)(void *user_data, int32_t status);

/*
 * The object type of native_get and native_wrap; the kind argument of these functions selects which
 * handle the pointer is. The type is void, so that every handle converts to it. If
 * DS_ACCEL_TYPED_HANDLES is defined, it is a separate type, and only named functions convert:
 * ds_accel_object_of_stream() from a handle, ds_accel_object_as_stream() to a handle, and likewise
 * for device, event, graph, graph_exec and memory. The compiled ABI is the same.
 */
#ifdef DS_ACCEL_TYPED_HANDLES
typedef struct ds_accel_plugin_object ds_accel_plugin_object_t;
#define DS_ACCEL_OBJECT_ ds_accel_plugin_object_t
#define DS_ACCEL_OBJECT_FUNCTIONS_(kind) \
    DS_ACCEL_INLINE ds_accel_plugin_object_t *ds_accel_object_of_##kind( \
        ds_accel_plugin_##kind##_t *handle) \
    { \
        void *object = handle; \
        return DS_ACCEL_CAST_(ds_accel_plugin_object_t *, object); \
    } \
    DS_ACCEL_INLINE const ds_accel_plugin_##kind##_t *ds_accel_object_as_##kind( \
        const ds_accel_plugin_object_t *object) \
    { \
        const void *handle = object; \
        return DS_ACCEL_CAST_(const ds_accel_plugin_##kind##_t *, handle); \
    }
#ifndef DS_ACCEL_NO_INLINE
DS_ACCEL_OBJECT_FUNCTIONS_(device)
DS_ACCEL_OBJECT_FUNCTIONS_(stream)
DS_ACCEL_OBJECT_FUNCTIONS_(event)
DS_ACCEL_OBJECT_FUNCTIONS_(graph)
DS_ACCEL_OBJECT_FUNCTIONS_(graph_exec)
DS_ACCEL_INLINE ds_accel_plugin_object_t *ds_accel_object_of_memory(void *pointer)
{
    return DS_ACCEL_CAST_(ds_accel_plugin_object_t *, pointer);
}
DS_ACCEL_INLINE const void *ds_accel_object_as_memory(const ds_accel_plugin_object_t *object)
{
    return object;
}
#endif
#else
#define DS_ACCEL_OBJECT_ void
#endif

/* ---- the table ------------------------------------------------------------------------------ */

/**
 * The functions of a plugin, generation 1. Append only. Required: name, probe, init, shutdown,
 * device_count, device_open and device_close; everything else may be NULL.
 *
 * Threads: entry, probe, init and shutdown are called by one thread at a time. Everything else may
 * be called from any thread; calls on the same stream, event or graph are not concurrent unless the
 * slot says so. Device addresses are `void *`; sizes are bytes.
 *
 * Statuses that mean the same in every slot:
 *  - ERR_INVALID: a device_index of device_count or above, also as an element of a list; a flag,
 *    kind, mode or list that this plugin does not know; an impossible size, alignment or handle.
 *  - ERR_UNSUPPORTED: a flag, kind or mode of this header that the plugin knows, but that the
 *    plugin, the runtime or this device does not offer. Every plugin accepts
 *    DS_ACCEL_STREAM_NON_BLOCKING, DS_ACCEL_EVENT_BLOCKING_SYNC, the copy kinds other than INFER
 *    and, if it has event_elapsed_ms, DS_ACCEL_EVENT_TIMING.
 *  - ERR_LIMIT: a text does not fit (a name of env_name_get: ERR_INVALID). Where there is
 *    needed_out, value NULL with value_size 0 queries the size: the call returns ERR_LIMIT and
 *    writes the number of bytes, the NUL included. For an array, NULL with capacity 0 queries the
 *    number of elements: the call returns DS_ACCEL_OK.
 *
 * Owners: streams, events, graphs and memory made with a device handle belong to that handle and
 * are released before it is closed. Memory is released through that handle, even if another handle
 * is open on the same device.
 */
struct ds_accel_plugin {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    uint64_t required_features; /**< bits that the host must support; equal to those in the note */
    uint64_t optional_features; /**< bits that the plugin uses if the host has them */
    const char *name;           /**< the plugin's name, as in its file name and in the note */
    const char *vendor;
    const char *version; /**< version of the plugin */

    /* -- life -- */

    /**
     * Report whether this accelerator can be used here: is_available of DeepSpeed's interface.
     * Leaves nothing behind in the process.
     * @return DS_ACCEL_OK with *verdict filled; a negative code means the same as state ERROR
     */
    int32_t (*probe)(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                     struct ds_accel_error *error);
    /** Start the vendor's runtime. May be called again, also while other instances exist. */
    int32_t (*init)(const struct ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
                    struct ds_accel_error *error);
    /** Shut down an instance. The caller has closed every device. NULL is ignored. */
    void (*shutdown)(ds_accel_plugin_instance_t *instance);
    /**
     * Return further functions by string id, in static storage; ERR_NOT_FOUND if there are none
     * with that id.
     */
    int32_t (*extension)(ds_accel_plugin_instance_t *instance, const char *id,
                         const void **extension_out, struct ds_accel_error *error);
    /** Facts that hold for all devices; they do not change while the instance exists. */
    int32_t (*backend_info)(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info_out, struct ds_accel_error *error);

    /* -- device -- */

    /** Number of devices that this process may use; constant while the instance exists. */
    int32_t (*device_count)(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                            struct ds_accel_error *error);
    /**
     * Identify a device without opening or waking it.
     * @return ERR_INVALID @p device_index is not below device_count
     */
    int32_t (*device_identity)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                               struct ds_accel_device_identity *identity_out,
                               struct ds_accel_error *error);
    /**
     * Open a device. Opening it again returns the same or another handle; each opening is closed
     * separately.
     * @return ERR_INVALID @p device_index is not below device_count
     */
    int32_t (*device_open)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error);
    /**
     * Open a device as device_open does, but in the program's own context
     * (DS_ACCEL_NATIVE_CONTEXT), which the program keeps and destroys.
     */
    int32_t (*device_open_native)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                  uint64_t native_context, ds_accel_plugin_device_t **device_out,
                                  struct ds_accel_error *error);
    /**
     * Close a device. The caller has released the handle's streams, events, graphs and memory. NULL
     * is ignored.
     */
    void (*device_close)(ds_accel_plugin_device_t *device);
    /** Facts that need the device to be open; they do not change until it is closed. */
    int32_t (*device_info)(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info_out,
                           struct ds_accel_error *error);
    /** Report the calling thread's current device in the vendor's runtime. */
    int32_t (*device_get_current)(ds_accel_plugin_instance_t *instance, uint32_t *device_index_out,
                                  struct ds_accel_error *error);
    /** Make @p device the calling thread's current device in the vendor's runtime. */
    int32_t (*device_set_current)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
    /**
     * Wait for all work of all streams of the device; beside a capture of the process, if waiting
     * for the others would break the capture, only for the streams that the plugin knows. @p
     * timeout_ns, here and below: UINT64_MAX waits without limit, 0 only checks; ERR_TIMEOUT when
     * the time has passed.
     */
    int32_t (*device_synchronize)(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                  struct ds_accel_error *error);
    /** DS_ACCEL_OK while the device works; ERR_DEVICE_LOST after it was lost. */
    int32_t (*device_health)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);

    /* -- stream -- */

    /**
     * Create a stream. @p flags: DS_ACCEL_STREAM_*. @p priority is within the device's range; lower
     * numbers run first.
     */
    int32_t (*stream_create)(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                             ds_accel_plugin_stream_t **stream_out, struct ds_accel_error *error);
    /**
     * Destroy a stream. Pending work completes before the call returns or continues after it; no
     * work is lost. NULL is ignored.
     */
    void (*stream_destroy)(ds_accel_plugin_stream_t *stream);
    /**
     * Return the default stream, borrowed: valid as long as the device handle, and the same at each
     * call. Two handles of one device may have two default streams, or share one.
     */
    int32_t (*stream_get_default)(ds_accel_plugin_device_t *device,
                                  ds_accel_plugin_stream_t **stream_out,
                                  struct ds_accel_error *error);
    /**
     * Return the calling thread's current stream, for runtimes that keep one; in other plugins the
     * slot is NULL, and the host keeps the current stream. Returns the same handle for the same
     * vendor stream, borrowed until the device is closed.
     */
    int32_t (*stream_get_current)(ds_accel_plugin_device_t *device,
                                  ds_accel_plugin_stream_t **stream_out,
                                  struct ds_accel_error *error);
    /** Make @p stream the calling thread's current stream, for runtimes that keep one. */
    int32_t (*stream_set_current)(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error);
    /**
     * Report the priorities that stream_create accepts: from *greatest_out, which runs first, to
     * *least_out.
     */
    int32_t (*stream_priority_range)(ds_accel_plugin_device_t *device, int32_t *least_out,
                                     int32_t *greatest_out, struct ds_accel_error *error);
    /** Wait for all work queued before this call; ERR_STATE while the stream captures. */
    int32_t (*stream_synchronize)(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                  struct ds_accel_error *error);
    /** Query a stream. DS_ACCEL_OK: idle; DS_ACCEL_NOT_READY: busy. */
    int32_t (*stream_query)(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error);
    /**
     * Work queued on @p stream after this call waits on the device for @p event. May be called
     * while another thread uses the stream.
     */
    int32_t (*stream_wait_event)(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                                 struct ds_accel_error *error);
    /**
     * Run @p task on the host when the stream reaches it. The task calls neither this plugin nor
     * the vendor's runtime, and waits for no work of the device, not even for another task, since
     * the runtime may run the tasks of all streams one after another; it may lock, signal a thread
     * and call the C library. Work queued after the task waits until the task returns.
     */
    int32_t (*stream_host_task)(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                                void *user_data, struct ds_accel_error *error);

    /* -- event -- */

    /**
     * Create an event. @p flags: DS_ACCEL_EVENT_*. ERR_UNSUPPORTED for INTERPROCESS if the plugin
     * cannot share events.
     */
    int32_t (*event_create)(ds_accel_plugin_device_t *device, uint32_t flags,
                            ds_accel_plugin_event_t **event_out, struct ds_accel_error *error);
    /**
     * Destroy an event. May be called while the recorded point is pending: streams that wait for
     * this point continue to wait for it, and no work is lost. May block until the point is
     * reached. NULL is ignored.
     */
    void (*event_destroy)(ds_accel_plugin_event_t *event);
    /**
     * Record the current end of the stream's work as the event's point. Recording again replaces
     * the earlier point. May be called while another thread uses the stream.
     */
    int32_t (*event_record)(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *error);
    /**
     * Query an event. DS_ACCEL_OK: the event was reached, or never recorded; DS_ACCEL_NOT_READY:
     * not yet reached; ERR_STATE, as in event_synchronize: the event was recorded in a capture that
     * was not launched, and not recorded again since. May be called from any thread. Like
     * event_synchronize it breaks no capture: the library queries events while streams capture.
     */
    int32_t (*event_query)(ds_accel_plugin_event_t *event, struct ds_accel_error *error);
    /**
     * Wait until the event is reached; DS_ACCEL_OK at once if it was never recorded. May be called
     * from any thread.
     */
    int32_t (*event_synchronize)(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                 struct ds_accel_error *error);
    /**
     * Milliseconds from @p start to @p end, negative if @p end was reached first; ERR_STATE if an
     * event has no timing, was never recorded, is not reached yet, or was recorded in a capture as
     * in event_query.
     */
    int32_t (*event_elapsed_ms)(ds_accel_plugin_event_t *start, ds_accel_plugin_event_t *end,
                                double *elapsed_ms_out, struct ds_accel_error *error);

    /* -- memory -- */

    /**
     * Allocate device memory. @p size_bytes > 0. @p align_bytes 0: device_info's
     * allocation_align_bytes; else a power of two. @p flags: none defined, pass 0. The contents are
     * undefined. The call is never part of a capture and breaks none.
     */
    int32_t (*mem_alloc)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, uint32_t flags, void **pointer_out,
                         struct ds_accel_error *error);
    /**
     * Free memory of mem_alloc, mem_alloc_managed or native_wrap, through the device handle that it
     * belongs to. Waits for work that uses the memory, as far as the runtime knows of such work.
     * NULL is ignored.
     */
    int32_t (*mem_free)(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error);
    /**
     * Allocate page-locked host memory. @p align_bytes: 1 = the runtime's own, 0 = the page size
     * (for direct I/O), else a power of two. ERR_LIMIT with the limit's name and size when the
     * kernel refuses.
     */
    int32_t (*mem_alloc_pinned)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                struct ds_accel_error *error);
    /** Free memory of mem_alloc_pinned, through the handle that allocated it. */
    int32_t (*mem_free_pinned)(ds_accel_plugin_device_t *device, void *pointer,
                               struct ds_accel_error *error);
    /**
     * Lock memory that the caller owns, until mem_unregister; mem_pointer_info reports it as
     * DS_ACCEL_POINTER_PINNED meanwhile. @p flags: DS_ACCEL_PINNED_*.
     */
    int32_t (*mem_register)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                            uint32_t flags, struct ds_accel_error *error);
    /**
     * Unlock memory; @p pointer is the pointer that was passed to mem_register. The caller has
     * waited for work that uses the memory.
     */
    int32_t (*mem_unregister)(ds_accel_plugin_device_t *device, void *pointer,
                              struct ds_accel_error *error);
    /** Allocate managed memory, which migrates and which host and device both can address. */
    int32_t (*mem_alloc_managed)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                 uint32_t flags, void **pointer_out, struct ds_accel_error *error);
    /** Return the device's address of mapped pinned memory. */
    int32_t (*mem_device_pointer)(ds_accel_plugin_device_t *device, void *host_pointer,
                                  void **device_pointer_out, struct ds_accel_error *error);
    /**
     * Copy; the copy is complete when the call returns. Ranges do not overlap. @p kind is
     * DS_ACCEL_COPY_*. The copy is not ordered with queued work: the caller first waits for work
     * that writes the source or uses the destination. A copy of 0 bytes, here and below, and a fill
     * of 0 bytes return DS_ACCEL_OK.
     */
    int32_t (*mem_copy)(ds_accel_plugin_device_t *device, void *destination, const void *source,
                        uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
    /**
     * Queue a copy; the caller leaves host memory unchanged until the stream has executed the copy.
     */
    int32_t (*mem_copy_async)(ds_accel_plugin_stream_t *stream, void *destination,
                              const void *source, uint64_t size_bytes, uint32_t kind,
                              struct ds_accel_error *error);
    /** Queue a copy between two devices of this backend on @p stream. */
    int32_t (*mem_copy_peer_async)(ds_accel_plugin_stream_t *stream,
                                   ds_accel_plugin_device_t *destination_device, void *destination,
                                   ds_accel_plugin_device_t *source_device, const void *source,
                                   uint64_t size_bytes, struct ds_accel_error *error);
    /** Queue a fill: repeat @p pattern, 1, 2 or 4 bytes long, over size_bytes, a multiple of its
     * length. */
    int32_t (*mem_fill_async)(ds_accel_plugin_stream_t *stream, void *destination,
                              const void *pattern, uint32_t pattern_bytes, uint64_t size_bytes,
                              struct ds_accel_error *error);
    /** Report the device's memory now, with other processes taken into account. */
    int32_t (*mem_info)(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info_out,
                        struct ds_accel_error *error);
    /**
     * Report what this plugin allocated on the device; `valid` has the bits of the known members.
     */
    int32_t (*mem_stats)(ds_accel_plugin_device_t *device, struct ds_accel_memory_stats *stats_out,
                         struct ds_accel_error *error);
    /** Reset the peaks selected by @p which (DS_ACCEL_PEAK_*) to the current values. */
    int32_t (*mem_reset_peaks)(ds_accel_plugin_device_t *device, uint32_t which,
                               struct ds_accel_error *error);
    /** Release unused memory that the runtime keeps, all but @p keep_bytes, to the driver. */
    int32_t (*mem_trim)(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                        struct ds_accel_error *error);
    /** Refuse allocations of this process beyond @p limit_bytes; 0 lifts the limit. */
    int32_t (*mem_set_limit)(ds_accel_plugin_device_t *device, uint64_t limit_bytes,
                             struct ds_accel_error *error);
    /**
     * Describe an address. @p device: the device on which @p pointer is valid; with
     * DS_ACCEL_FLAG_UNIFIED_ADDRESSES, NULL means any device. For an unknown address the call
     * returns DS_ACCEL_OK and DS_ACCEL_POINTER_UNKNOWN.
     */
    int32_t (*mem_pointer_info)(ds_accel_plugin_instance_t *instance,
                                ds_accel_plugin_device_t *device, const void *pointer,
                                struct ds_accel_pointer_info *info_out,
                                struct ds_accel_error *error);
    /** Allocate in stream order: work may use the memory after all of @p waits and after this point
     * of @p stream. */
    int32_t (*mem_alloc_async)(ds_accel_plugin_stream_t *stream, uint64_t size_bytes,
                               uint32_t flags, ds_accel_plugin_event_t *const *waits,
                               uint32_t wait_count, void **pointer_out,
                               struct ds_accel_error *error);
    /** Free in stream order: the memory is released after all of @p waits and after this point of
     * @p stream. */
    int32_t (*mem_free_async)(ds_accel_plugin_stream_t *stream, void *pointer,
                              ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                              struct ds_accel_error *error);

    /* -- virtual memory: reserve addresses, map physical memory to them, allow access -- */

    /**
     * Report the granularity of virtual memory: sizes and addresses of the vmem slots are multiples
     * of *minimum_bytes_out, a power of two.
     */
    int32_t (*vmem_granularity)(ds_accel_plugin_device_t *device, uint32_t flags,
                                uint64_t *minimum_bytes_out, uint64_t *recommended_bytes_out,
                                struct ds_accel_error *error);
    /**
     * Reserve a range of addresses. @p hint: a preferred address or NULL; the plugin may ignore it.
     * @p flags: none defined, pass 0.
     */
    int32_t (*vmem_reserve)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                            uint64_t align_bytes, void *hint, uint32_t flags, void **address_out,
                            struct ds_accel_error *error);
    /** Release exactly a range that was reserved, with nothing mapped in it. */
    int32_t (*vmem_release)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                            struct ds_accel_error *error);
    /** Create physical memory. @p flags: DS_ACCEL_VMEM_EXPORTABLE or 0. */
    int32_t (*vmem_create)(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                           ds_accel_plugin_vmem_t **vmem_out, struct ds_accel_error *error);
    /**
     * Destroy physical memory. Ranges that are still mapped keep the memory until they are
     * unmapped.
     */
    void (*vmem_destroy)(ds_accel_plugin_vmem_t *vmem);
    /** Map memory to reserved addresses that have no memory; access is set separately. */
    int32_t (*vmem_map)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        ds_accel_plugin_vmem_t *vmem, uint64_t vmem_offset_bytes,
                        struct ds_accel_error *error);
    /** Unmap exactly a range that was mapped. */
    int32_t (*vmem_unmap)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error);
    /**
     * Set access to a mapped range. @p access: DS_ACCEL_VMEM_ACCESS_*, for @p accessor if the
     * vendor distinguishes devices.
     */
    int32_t (*vmem_set_access)(ds_accel_plugin_device_t *accessor, void *address,
                               uint64_t size_bytes, uint32_t access, struct ds_accel_error *error);

    /* -- graph -- */

    /**
     * Record work queued on @p stream from now on instead of running it. ERR_STATE while the stream
     * captures, and for the default stream.
     */
    int32_t (*graph_capture_begin)(ds_accel_plugin_stream_t *stream, uint32_t mode,
                                   struct ds_accel_error *error);
    /**
     * End the capture in every case; ERR_STATE and no graph if it was broken, or there is no
     * capture.
     */
    int32_t (*graph_capture_end)(ds_accel_plugin_stream_t *stream,
                                 ds_accel_plugin_graph_t **graph_out, struct ds_accel_error *error);
    /** Report whether the stream captures: DS_ACCEL_CAPTURING_*. */
    int32_t (*graph_capture_status)(ds_accel_plugin_stream_t *stream, uint32_t *status_out,
                                    struct ds_accel_error *error);
    /**
     * Destroy a graph. Executable graphs instantiated from @p graph stay valid. NULL is ignored.
     */
    void (*graph_destroy)(ds_accel_plugin_graph_t *graph);
    /**
     * Create an executable graph. @p flags: none defined, pass 0. The graph may be destroyed
     * afterwards. A second instantiation of a graph may fail with ERR_STATE if the runtime uses one
     * object for graph and instance.
     */
    int32_t (*graph_instantiate)(ds_accel_plugin_graph_t *graph, uint32_t flags,
                                 ds_accel_plugin_graph_exec_t **exec_out,
                                 struct ds_accel_error *error);
    /**
     * Destroy an executable graph. Queued launches complete before the call returns or continue
     * after it. NULL is ignored.
     */
    void (*graph_exec_destroy)(ds_accel_plugin_graph_exec_t *exec);
    /** Queue the whole graph on @p stream; the plugin orders the launches of one exec. */
    int32_t (*graph_launch)(ds_accel_plugin_graph_exec_t *exec, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *error);
    /**
     * Replace the parameters of @p exec by those of @p graph, without a new instance; *result_out:
     * DS_ACCEL_GRAPH_*.
     */
    int32_t (*graph_exec_update)(ds_accel_plugin_graph_exec_t *exec, ds_accel_plugin_graph_t *graph,
                                 uint32_t *result_out, struct ds_accel_error *error);
    /** Report the number of pieces of work that were captured. */
    int32_t (*graph_node_count)(ds_accel_plugin_graph_t *graph, uint64_t *count_out,
                                struct ds_accel_error *error);
    /**
     * Write a readable picture, as Graphviz if the vendor supports it. If the sink returns a
     * negative status, the call stops and returns a negative status.
     */
    int32_t (*graph_dump)(ds_accel_plugin_graph_t *graph, ds_accel_text_sink_t sink,
                          void *user_data, struct ds_accel_error *error);

    /* -- data types -- */

    /**
     * Report the support of a data type: *support_out is a combination of DS_ACCEL_DTYPE_STORES,
     * COMPUTES and EMULATED; 0 if the device does not support the type or the type is unknown.
     */
    int32_t (*dtype_support)(ds_accel_plugin_device_t *device, uint32_t dtype,
                             uint32_t *support_out, struct ds_accel_error *error);

    /* -- telemetry: needs no open device and makes no context -- */

    /**
     * Read sensors; only members whose bits are set in `valid` have a value. A sleeping device
     * stays asleep.
     * @return ERR_INVALID @p device_index is not below device_count
     */
    int32_t (*telemetry_get)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                             struct ds_accel_telemetry *telemetry_out,
                             struct ds_accel_error *error);
    /**
     * List the processes that use the device: write up to @p capacity elements, @p stride_bytes
     * apart, and always the full number to *count_out; capacity 0 only counts. ERR_UNSUPPORTED if a
     * library that this call needs is not installed; the error contains the library's name.
     */
    int32_t (*telemetry_processes)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                   struct ds_accel_process *processes, uint32_t stride_bytes,
                                   uint32_t capacity, uint32_t *count_out,
                                   struct ds_accel_error *error);

    /* -- profiler ranges: nested per thread -- */

    /** Begin a range on the calling thread. @p domain and @p category may be NULL. */
    int32_t (*range_push)(ds_accel_plugin_instance_t *instance, const char *message,
                          const char *domain, const char *category, struct ds_accel_error *error);
    /** End the calling thread's innermost range of @p domain; ERR_STATE if none is open. */
    int32_t (*range_pop)(ds_accel_plugin_instance_t *instance, const char *domain,
                         struct ds_accel_error *error);
    /** If a vendor's profiler is attached to this process, start its collection. */
    int32_t (*profiler_start)(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);
    /** Stop the profiler's collection. */
    int32_t (*profiler_stop)(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);

    /* -- peers and links -- */

    /** Report if @p device can address @p peer's memory: *can_out is 1 or 0. */
    int32_t (*peer_can_access)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                               uint32_t *can_out, struct ds_accel_error *error);
    /** Let @p device access @p peer's memory. DS_ACCEL_OK if access is already enabled. */
    int32_t (*peer_enable)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                           struct ds_accel_error *error);
    /** Disable access of @p device to @p peer's memory. DS_ACCEL_OK if it is not enabled. */
    int32_t (*peer_disable)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            struct ds_accel_error *error);
    /**
     * List the device's links. Array and count as in telemetry_processes; does not open the device.
     */
    int32_t (*links_get)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         struct ds_accel_link *links, uint32_t stride_bytes, uint32_t capacity,
                         uint32_t *count_out, struct ds_accel_error *error);

    /* -- sharing between processes -- */

    /**
     * Write a handle of device memory for other processes. @p handle has backend_info's
     * memory_handle_bytes: plain bytes, usable by any process of the same user on this machine
     * until ipc_memory_unexport(), mem_free() or the end of this process. @p pointer may be inside
     * an allocation: opening the handle returns the address of the same byte.
     */
    int32_t (*ipc_memory_export)(ds_accel_plugin_device_t *device, void *pointer, void *handle,
                                 uint32_t handle_bytes, struct ds_accel_error *error);
    /**
     * Invalidate a handle that its exporter no longer needs; importers that have opened it keep
     * their mapping.
     */
    int32_t (*ipc_memory_unexport)(ds_accel_plugin_device_t *device, const void *handle,
                                   uint32_t handle_bytes, struct ds_accel_error *error);
    /**
     * Open a handle of another process. Each opening is closed once, with the pointer that it
     * returned. @p flags: none defined, pass 0.
     */
    int32_t (*ipc_memory_open)(ds_accel_plugin_device_t *device, const void *handle,
                               uint32_t handle_bytes, uint32_t flags, void **pointer_out,
                               struct ds_accel_error *error);
    /** Close the pointer that ipc_memory_open returned; the caller has waited for work that uses
     * it. */
    int32_t (*ipc_memory_close)(ds_accel_plugin_device_t *device, void *pointer,
                                struct ds_accel_error *error);
    /**
     * Write a handle of an event for other processes. @p handle has backend_info's
     * event_handle_bytes. The event was created with DS_ACCEL_EVENT_INTERPROCESS.
     */
    int32_t (*ipc_event_export)(ds_accel_plugin_event_t *event, void *handle, uint32_t handle_bytes,
                                struct ds_accel_error *error);
    /** Open an event of another process; event_destroy destroys only this handle. */
    int32_t (*ipc_event_open)(ds_accel_plugin_device_t *device, const void *handle,
                              uint32_t handle_bytes, ds_accel_plugin_event_t **event_out,
                              struct ds_accel_error *error);
    /**
     * Export device memory as a dma-buf. The caller closes *fd_out. *offset_bytes_out is the offset
     * of @p pointer in the dma-buf.
     */
    int32_t (*dmabuf_export)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                             uint32_t flags, int32_t *fd_out, uint64_t *offset_bytes_out,
                             struct ds_accel_error *error);
    /** Import a dma-buf. The caller keeps ownership of @p fd. */
    int32_t (*dmabuf_import)(ds_accel_plugin_device_t *device, int32_t fd, uint64_t offset_bytes,
                             uint64_t size_bytes, void **pointer_out, struct ds_accel_error *error);
    /** Release the pointer that dmabuf_import returned; the caller has waited for work that uses
     * it. */
    int32_t (*dmabuf_release)(ds_accel_plugin_device_t *device, void *pointer,
                              struct ds_accel_error *error);

    /* -- random numbers: hooks for a vendor's own generator; NULL = the host's Philox -- */

    /** Begin the sequence of @p seed. */
    int32_t (*rng_seed)(ds_accel_plugin_device_t *device, uint64_t seed,
                        struct ds_accel_error *error);
    /** Report the seed of the latest rng_seed, or the seed that the generator started with. */
    int32_t (*rng_initial_seed)(ds_accel_plugin_device_t *device, uint64_t *seed_out,
                                struct ds_accel_error *error);
    /** Size of the state that rng_get_state and rng_set_state exchange, in bytes. */
    int32_t (*rng_state_size)(ds_accel_plugin_device_t *device, uint64_t *size_bytes_out,
                              struct ds_accel_error *error);
    /** Write the state: exactly rng_state_size bytes of plain data. */
    int32_t (*rng_get_state)(ds_accel_plugin_device_t *device, void *state, uint64_t size_bytes,
                             struct ds_accel_error *error);
    /** Continue from a state that rng_get_state wrote. */
    int32_t (*rng_set_state)(ds_accel_plugin_device_t *device, const void *state,
                             uint64_t size_bytes, struct ds_accel_error *error);
    /** Queue a fill with @p count contiguous elements of @p dtype, uniform in [low, high). */
    int32_t (*rng_uniform)(ds_accel_plugin_stream_t *stream, void *destination, uint64_t count,
                           uint32_t dtype, double low, double high, struct ds_accel_error *error);
    /** Queue a fill with @p count contiguous elements of @p dtype, normally distributed. */
    int32_t (*rng_normal)(ds_accel_plugin_stream_t *stream, void *destination, uint64_t count,
                          uint32_t dtype, double mean, double standard_deviation,
                          struct ds_accel_error *error);

    /* -- op builders -- */

    /**
     * List builders in addition to the configuration's. Array and count as in telemetry_processes.
     */
    int32_t (*op_builders_get)(ds_accel_plugin_instance_t *instance,
                               struct ds_accel_op_builder *builders, uint32_t stride_bytes,
                               uint32_t capacity, uint32_t *count_out,
                               struct ds_accel_error *error);
    /**
     * Report whether an op can be used: *compatible_out is 1, or 0 with the reason as one line in
     * @p reason, shortened to fit.
     */
    int32_t (*op_compatible)(ds_accel_plugin_instance_t *instance, const char *op,
                             uint32_t *compatible_out, char *reason, uint32_t reason_size,
                             struct ds_accel_error *error);

    /* -- environment --------------------------------------------------------------------------- */

    /** List rules in addition to the configuration's. Array and count as in telemetry_processes. */
    int32_t (*env_rules_get)(ds_accel_plugin_instance_t *instance, struct ds_accel_env_rule *rules,
                             uint32_t stride_bytes, uint32_t capacity, uint32_t *count_out,
                             struct ds_accel_error *error);
    /**
     * Write the name at @p position of the list @p which (DS_ACCEL_ENV_LIST_*).
     * @return ERR_NOT_FOUND past the list's end; ERR_INVALID: no such list, or the name does not
     * fit
     */
    int32_t (*env_name_get)(ds_accel_plugin_instance_t *instance, uint32_t which, uint32_t position,
                            char *name, uint32_t name_size, struct ds_accel_error *error);
    /**
     * Write the value that @p variable needs so that a child started with the current environment
     * sees exactly these devices of the instance, in this order. Sizes as in config_get.
     * @return ERR_LIMIT: the value does not fit, or @p value is NULL and @p value_size 0;
     * ERR_INVALID: no such device; ERR_NOT_FOUND: not a variable of this backend; ERR_UNSUPPORTED:
     * the variable cannot show the devices in this order
     */
    int32_t (*visible_devices_value)(ds_accel_plugin_instance_t *instance, const char *variable,
                                     const uint32_t *device_indices, uint32_t device_index_count,
                                     char *value, uint32_t value_size, uint32_t *needed_out,
                                     struct ds_accel_error *error);

    /* -- native handles: for use with the vendor's own library -- */

    /**
     * Return the vendor's handle, borrowed, as an integer wide enough for a pointer. @p kind
     * (DS_ACCEL_NATIVE_*) selects the type of @p object: ds_accel_plugin_device_t * (also for
     * CONTEXT), a stream, event, graph or executable graph of this plugin, or, for MEMORY, a device
     * address. *offset_bytes_out is the address's offset in a MEMORY object, else 0.
     */
    int32_t (*native_get)(ds_accel_plugin_device_t *device, uint32_t kind,
                          const DS_ACCEL_OBJECT_ *object, uint64_t *native_out,
                          uint64_t *offset_bytes_out, struct ds_accel_error *error);
    /**
     * Wrap a vendor's STREAM, EVENT or MEMORY in a handle of this plugin. The vendor's object stays
     * the caller's: stream_destroy, event_destroy or mem_free destroy the wrapper only.
     */
    int32_t (*native_wrap)(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t native,
                           DS_ACCEL_OBJECT_ **object_out, struct ds_accel_error *error);
};

/**
 * The exported function of the generation. It has no side effects and returns static storage; NULL:
 * the plugin rejects this host.
 */
typedef const struct ds_accel_plugin *(*ds_accel_entry_v1_t)(const struct ds_accel_host *host);
#define DS_ACCEL_ENTRY_V1_SYMBOL "ds_accel_entry_v1"

/* ---- the ELF note: the host reads it before it runs any code of the plugin ------------------ */

#define DS_ACCEL_NOTE_NAME "ds-accel"  /**< the note's owner */
#define DS_ACCEL_NOTE_TYPE 0x44530001u /**< the descriptor's layout is below */

/** The descriptor: byte order as in the object file; append only. */
struct ds_accel_note_desc {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    uint32_t required_features[2]; /**< low word, high word */
    uint32_t optional_features[2];
    uint32_t table_size; /**< struct_size of the table that the entry returns */
    uint32_t reserved;
    char name[32];
    char version[32];
    char vendor[64];
};

/**
 * A second, optional note lists the hardware that the plugin supports, so that a machine without
 * this hardware never loads the plugin. DS_ACCEL_PLUGIN_HARDWARE() writes the note and describes
 * its text.
 */
#define DS_ACCEL_HARDWARE_NOTE_TYPE 0x44530002u /**< a NUL-terminated text */

/** The whole note in ELF's layout: header, owner, descriptor, four-byte aligned. */
struct ds_accel_note {
    uint32_t owner_size;
    uint32_t desc_size;
    uint32_t type;
    char owner[12];
    struct ds_accel_note_desc desc;
};

#ifdef __cplusplus
#define DS_ACCEL_STATIC_ASSERT(condition, text) static_assert(condition, text)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DS_ACCEL_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#else
#define DS_ACCEL_JOIN_(a, b) a##b
#define DS_ACCEL_NAME_(a, b) DS_ACCEL_JOIN_(a, b)
#define DS_ACCEL_STATIC_ASSERT(condition, text) \
    typedef char DS_ACCEL_NAME_(ds_accel_static_assert_, __COUNTER__)[(condition) ? 1 : -1] \
        __attribute__((unused))
#endif

/* The low or high half of a set of features, of any integer type. */
#define DS_ACCEL_LOW_WORD_(bits) DS_ACCEL_CAST_(uint32_t, (bits)&0xffffffffull)
#define DS_ACCEL_HIGH_WORD_(bits) DS_ACCEL_CAST_(uint32_t, ((bits) | 0ull) >> 32)

/**
 * Define the plugin: once per shared object, at file scope, followed by a semicolon.
 *
 * @param name_      string literal, [a-z][a-z0-9_.]{0,30}, equal to the file's: "cuda"
 * @param vendor_    string literal, up to 63 bytes: the vendor that ships the plugin
 * @param version_   string literal, up to 31 bytes: the plugin's own version
 * @param required_  DS_ACCEL_FEATURE_* bits that the plugin cannot work without, or 0
 * @param optional_  DS_ACCEL_FEATURE_* bits that the plugin uses if the host has them, or 0
 * @param fill_      void fill(struct ds_accel_plugin *table): sets the function pointers, no more
 *
 * The macro emits the entry symbol, the table's head with its size and ABI version, and the note.
 */
#define DS_ACCEL_PLUGIN(name_, vendor_, version_, required_, optional_, fill_) \
    DS_ACCEL_STATIC_ASSERT(sizeof(name_) <= 32, "plugin name too long"); \
    DS_ACCEL_STATIC_ASSERT(sizeof(vendor_) <= 64, "plugin vendor too long"); \
    DS_ACCEL_STATIC_ASSERT(sizeof(version_) <= 32, "plugin version too long"); \
    static const struct ds_accel_note ds_accel_note_ DS_ACCEL_NOTE_SECTION = { \
        sizeof(DS_ACCEL_NOTE_NAME), \
        sizeof(struct ds_accel_note_desc), \
        DS_ACCEL_NOTE_TYPE, \
        DS_ACCEL_NOTE_NAME, \
        {sizeof(struct ds_accel_note_desc), \
         DS_ACCEL_ABI_MAJOR, \
         DS_ACCEL_ABI_MINOR, \
         {DS_ACCEL_LOW_WORD_(required_), DS_ACCEL_HIGH_WORD_(required_)}, \
         {DS_ACCEL_LOW_WORD_(optional_), DS_ACCEL_HIGH_WORD_(optional_)}, \
         sizeof(struct ds_accel_plugin), \
         0, \
         name_, \
         version_, \
         vendor_}}; \
    DS_ACCEL_ENTRY_LINKAGE DS_ACCEL_EXPORT const struct ds_accel_plugin *ds_accel_entry_v1( \
        const struct ds_accel_host *host); \
    DS_ACCEL_ENTRY_LINKAGE DS_ACCEL_EXPORT const struct ds_accel_plugin *ds_accel_entry_v1( \
        const struct ds_accel_host *host) \
    { \
        static struct ds_accel_plugin ds_accel_table_; \
        (void)host; \
        ds_accel_table_.struct_size = sizeof(ds_accel_table_); \
        ds_accel_table_.abi_major = DS_ACCEL_ABI_MAJOR; \
        ds_accel_table_.abi_minor = DS_ACCEL_ABI_MINOR; \
        ds_accel_table_.required_features = (required_); \
        ds_accel_table_.optional_features = (optional_); \
        ds_accel_table_.name = (name_); \
        ds_accel_table_.vendor = (vendor_); \
        ds_accel_table_.version = (version_); \
        fill_(&ds_accel_table_); \
        return &ds_accel_table_; \
    } \
    DS_ACCEL_STATIC_ASSERT(sizeof(struct ds_accel_note) == 24 + 160, "ABI: note layout")

/**
 * Name the hardware that the plugin supports: at most once per shared object, at file scope,
 * followed by a semicolon. If the machine has none of the named hardware, the host reports
 * DS_ACCEL_REASON_NO_DEVICE for the plugin and neither loads nor probes it. A host that does not
 * know this note probes the plugin. A plugin without the note is always probed.
 *
 * @param text_  string literal, up to 4095 bytes, of lines that each end with a newline:
 *               "pci 10de\n", "pci 10de:03\n" or "pci 10de:0302\n": a PCI vendor and the beginning
 *               of a device class, lower-case hexadecimal; "node /dev/nvidia[0-9]*\n": a device
 *               node, up to 127 bytes of printable ASCII, with wildcards of fnmatch() in the last
 *               part of its path only. If the text has a line of another kind, a host probes the
 *               plugin.
 *
 * A user's option "presence" with the value "off" makes the host probe the plugin in any case, for
 * machines that show their devices in another way.
 */
#define DS_ACCEL_PLUGIN_HARDWARE(text_) \
    DS_ACCEL_STATIC_ASSERT(sizeof(text_) <= 4096, "hardware: text too long"); \
    static const struct { \
        uint32_t owner_size; \
        uint32_t desc_size; \
        uint32_t type; \
        char owner[12]; \
        char text[(sizeof(text_) + 3) / 4 * 4]; \
    } ds_accel_hardware_note_ DS_ACCEL_NOTE_SECTION = { \
        sizeof(DS_ACCEL_NOTE_NAME), (sizeof(text_) + 3) / 4 * 4, DS_ACCEL_HARDWARE_NOTE_TYPE, \
        DS_ACCEL_NOTE_NAME, text_}

#ifdef __cplusplus
#define DS_ACCEL_ENTRY_LINKAGE extern "C"
#else
#define DS_ACCEL_ENTRY_LINKAGE
#endif

/* ---- functions that fill a struct ----------------------------------------------------------- */

/**
 * Copy *source over *destination, up to the smaller size; both begin with struct_size. The
 * destination keeps its own struct_size. Use it for every struct that crosses the boundary:
 *
 *     struct ds_accel_device_info info;
 *     memset(&info, 0, sizeof(info));
 *     ... fill info ...
 *     ds_accel_write(info_out, &info, sizeof(info));
 */
DS_ACCEL_INLINE void ds_accel_write(void *destination, const void *source, uint32_t source_size);

/**
 * Do the same for element @p position of an array whose elements are @p stride_bytes apart. The
 * element's struct_size becomes @p stride_bytes. With a stride below 4 bytes nothing is written.
 */
DS_ACCEL_INLINE void ds_accel_write_element(void *array, uint32_t stride_bytes, uint32_t position,
                                            const void *source, uint32_t source_size);

#ifndef DS_ACCEL_NO_INLINE

DS_ACCEL_INLINE void ds_accel_write(void *destination, const void *source, uint32_t source_size)
{
    uint32_t size;
    const uint32_t head = sizeof(size);

    memcpy(&size, destination, head);
    if (size > source_size) {
        size = source_size;
    }
    if (size > head) {
        memcpy(DS_ACCEL_CAST_(char *, destination) + head,
               DS_ACCEL_CAST_(const char *, source) + head, size - head);
    }
}

DS_ACCEL_INLINE void ds_accel_write_element(void *array, uint32_t stride_bytes, uint32_t position,
                                            const void *source, uint32_t source_size)
{
    size_t offset = stride_bytes;
    char *element;

    offset *= position;
    element = DS_ACCEL_CAST_(char *, array) + offset;
    if (stride_bytes >= sizeof(stride_bytes)) {
        memcpy(element, &stride_bytes, sizeof(stride_bytes));
        ds_accel_write(element, source, source_size);
    }
}

#endif

#ifdef __cplusplus
}
#endif

#endif
