/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/**
 * @file plugin-api.h
 * The ABI between the ds-accel host and an accelerator plugin, generation 1.
 *
 * A plugin is one shared object, ds_accel_<name>.so, that defines one symbol with DS_ACCEL_PLUGIN()
 * and fills one table of functions. This header is all that it needs. The rules that both sides
 * keep are numbered in plugin-abi.md (pkg-config --variable=docdir ds-accel): DSA-P for plugins,
 * DSA-H for hosts.
 *
 * How data crosses:
 *  - Every struct begins with struct_size. The side that fills a struct writes no byte past the
 *    other side's struct_size (ds_accel_write() does this); members it does not know stay zero, and
 *    zero means "not known" unless the member says otherwise.
 *  - A function returns 0 (DS_ACCEL_OK), a negative error or a positive "not yet". Outputs are
 *    written only on DS_ACCEL_OK. `error` is never NULL; fill it before returning a negative code.
 *  - An absent function is NULL in the table. The host calls a stub of its own in its place, which
 *    returns DS_ACCEL_ERR_UNSUPPORTED, so neither side tests for NULL.
 *  - Strings are UTF-8. Handles are made and freed by the plugin. No memory allocated by one side
 *    is freed by the other; no exception or longjmp() crosses.
 *
 * C99, C11 and C++11 and later; libc headers only.
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

/** Generation: part of the entry symbol's name and of the ELF note; must equal one of the host's.
 */
#define DS_ACCEL_ABI_MAJOR 1
/** Informative: counts the additions within the generation; never compared. */
#define DS_ACCEL_ABI_MINOR 1

/** Bytes of @p type through its member @p last: the smallest struct_size that has it. */
#define DS_ACCEL_SIZE_THROUGH(type, last) \
    (offsetof(type, last) + sizeof(DS_ACCEL_CAST_(type *, DS_ACCEL_NULL_)->last))
/** One bit of a 64-bit set of flags. */
#define DS_ACCEL_BIT(position) (UINT64_C(1) << (position))
/** Non-zero if the struct at @p ptr, as its owner compiled it, has @p member. */
#define DS_ACCEL_HAS(ptr, type, member) ((ptr)->struct_size >= DS_ACCEL_SIZE_THROUGH(type, member))

#if defined(__GNUC__) || defined(__clang__)
#define DS_ACCEL_EXPORT __attribute__((visibility("default")))
/* The functions of this header are inline. With DS_ACCEL_NO_INLINE defined they are declared only:
 * for tools that read headers; libds_accel exports them. Other linkage than static inline, such as
 * a definition for a plugin in another language to link, comes from an own DS_ACCEL_INLINE. */
#ifdef DS_ACCEL_NO_INLINE
#define DS_ACCEL_INLINE DS_ACCEL_EXPORT
#elif !defined(DS_ACCEL_INLINE)
#define DS_ACCEL_INLINE static inline __attribute__((unused))
#endif
/* Notes lie one behind the other: clang's address sanitizer would add padding to each. */
#if defined(__clang__)
#define DS_ACCEL_NOTE_SECTION \
    __attribute__((used, aligned(4), section(".note.ds_accel"), no_sanitize_address))
#else
#define DS_ACCEL_NOTE_SECTION __attribute__((used, aligned(4), section(".note.ds_accel")))
#endif
#else
#error "ds-accel plugins are built with GCC or Clang"
#endif

/* Casts and null pointers that no language complains of. */
#ifdef __cplusplus
#define DS_ACCEL_CAST_(type, value) static_cast<type>(value)
#define DS_ACCEL_NULL_ nullptr
#else
#define DS_ACCEL_CAST_(type, value) ((type)(value))
#define DS_ACCEL_NULL_ NULL
#endif

/* ---- status codes: 0 ok, negative errors (never renumbered), positive "not yet" ------------- */

/* One signed type for all of them, also for bindgen, which takes a macro of 0 for unsigned. The
 * macros of the same names are for #ifdef, and are int in C++ too. */
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
    DS_ACCEL_ERR_STATE = -12,       /**< not allowed now: capturing, not begun */
    DS_ACCEL_ERR_LIMIT = -13,       /**< a resource limit was met, such as RLIMIT_MEMLOCK */
    DS_ACCEL_ERR_CONFIG = -14,      /**< the configuration is not valid */
    DS_ACCEL_ERR_NOT_USABLE = -15,  /**< the accelerator that was asked for cannot be used */
    DS_ACCEL_ERR_ABI = -16,         /**< the two sides do not fit together */
    DS_ACCEL_ERR_UNTRUSTED = -17,   /**< refused for security */
    DS_ACCEL_ERR_INTERNAL = -18,    /**< a defect on the side that returns it */
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
 * Details of a failure. The caller sets struct_size, zeroes both codes and empties both texts; what
 * lies behind a text's NUL is not defined.
 */
struct ds_accel_error {
    uint32_t struct_size;
    int32_t code;         /**< the status that is returned with it */
    int64_t vendor_code;  /**< the vendor's own code, unchanged; 0 if none */
    char vendor_text[64]; /**< the vendor's name for it: "CUDA_ERROR_OUT_OF_MEMORY"; NUL-terminated
                           */
    char message[256];    /**< call, arguments and cause, one line, NUL-terminated */
};

/* Handles: one opaque type per kind, made and freed by the plugin. */
typedef struct ds_accel_plugin_instance ds_accel_plugin_instance_t;     /**< what init() made */
typedef struct ds_accel_plugin_device ds_accel_plugin_device_t;         /**< an opened device */
typedef struct ds_accel_plugin_stream ds_accel_plugin_stream_t;         /**< an ordered queue */
typedef struct ds_accel_plugin_event ds_accel_plugin_event_t;           /**< a mark in a stream */
typedef struct ds_accel_plugin_graph ds_accel_plugin_graph_t;           /**< captured work */
typedef struct ds_accel_plugin_graph_exec ds_accel_plugin_graph_exec_t; /**< a launchable graph */
typedef struct ds_accel_plugin_vmem
    ds_accel_plugin_vmem_t; /**< physical memory for virtual ranges */

/** Data types; the numbers are stored and sent, never renumbered. */
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
#define DS_ACCEL_DTYPE_FLOAT8_E4M3FN 11u /**< OCP */
#define DS_ACCEL_DTYPE_FLOAT8_E5M2 12u   /**< OCP */
#define DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ 13u
#define DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ 14u
/** Since 1.1: pairs of real and imaginary part, each a float of half the size. */
#define DS_ACCEL_DTYPE_COMPLEX32 15u
#define DS_ACCEL_DTYPE_COMPLEX64 16u
#define DS_ACCEL_DTYPE_COMPLEX128 17u

#define DS_ACCEL_DTYPE_STORES 1u   /**< the device holds and copies it */
#define DS_ACCEL_DTYPE_COMPUTES 2u /**< arithmetic in hardware; set = "supported" */
#define DS_ACCEL_DTYPE_EMULATED 4u /**< arithmetic works, through another type */

/* ---- features: contracts that one side asks of the other ------------------------------------ */

#define DS_ACCEL_FEATURE_CONFIG 0x1ull   /**< host answers config_get */
#define DS_ACCEL_FEATURE_MACHINE 0x2ull  /**< host gives machine_root */
#define DS_ACCEL_FEATURE_TOPOLOGY 0x4ull /**< extension DS_ACCEL_EXT_TOPOLOGY */
#define DS_ACCEL_FEATURE_TRACE 0x8ull    /**< extension DS_ACCEL_EXT_TRACE */
/** Host never chooses this plugin by itself, only by name; the configuration can say otherwise. */
#define DS_ACCEL_FEATURE_DEMAND_ONLY 0x10ull
/** A child of fork() may init the plugin anew after the parent did; without it the host refuses. */
#define DS_ACCEL_FEATURE_SURVIVES_FORK 0x20ull

/* ---- the host's services -------------------------------------------------------------------- */

#define DS_ACCEL_LOG_ERROR 1u
#define DS_ACCEL_LOG_WARN 2u
#define DS_ACCEL_LOG_INFO 3u
#define DS_ACCEL_LOG_DEBUG 4u
#define DS_ACCEL_LOG_TRACE 5u

/**
 * What the host offers a plugin. The pointer that entry, probe and init receive stays valid until
 * shutdown returns (for entry and probe: until they return). All functions may be called from any
 * thread and take this same pointer first. Test DS_ACCEL_HAS() before using a member added later.
 */
struct ds_accel_host {
    uint32_t struct_size;
    uint16_t abi_major; /**< the generation this entry was called for */
    uint16_t abi_minor;
    uint64_t features;        /**< DS_ACCEL_FEATURE_* this host keeps */
    const char *host_version; /**< "0.1.0" */
    void *host_data;          /**< the host's own */

    /**
     * Log one line without a newline under the topic of the plugin's name. In C behind <tgmath.h>,
     * whose log() is a macro: (host->log)(...).
     */
    void (*log)(const struct ds_accel_host *host, uint32_t level, const char *message);
    /** DS_ACCEL_OK: whether a line of @p level would be shown, in *enabled_out as 0 or 1. */
    int32_t (*log_enabled)(const struct ds_accel_host *host, uint32_t level, uint32_t *enabled_out);
    /**
     * Look up an option of this plugin: the environment's DS_ACCEL_<NAME>_<KEY> (upper case, dots
     * as underscores), then the configuration's backends.<name>.options.<key>, as text.
     * @param[in]  key           "device_count"
     * @param[out] value         NUL-terminated UTF-8; may be NULL with value_size 0, to ask for the
     * size: that is ERR_LIMIT
     * @param[in]  value_size    bytes at value
     * @param[out] needed_out    bytes that the value needs, with its NUL; written on OK and
     * ERR_LIMIT; may be NULL
     * @return DS_ACCEL_OK; ERR_NOT_FOUND unset; ERR_LIMIT does not fit, value is as it was;
     * ERR_INVALID
     */
    int32_t (*config_get)(const struct ds_accel_host *host, const char *key, char *value,
                          uint32_t value_size, uint32_t *needed_out);
    /** Monotonic clock in nanoseconds. */
    uint64_t (*clock_ns)(const struct ds_accel_host *host);
    /** Put in front of every path in /sys, /proc and /dev: "" here, a folder for a recorded
     * machine. */
    const char *machine_root;
    /** A group of further functions by string id; NULL if this host has none of that id. */
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

/** The memory that this process can have. */
struct ds_accel_host_memory {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t total_bytes;     /**< smaller of the machine's memory and the limit */
    uint64_t available_bytes; /**< smaller of what the kernel and the limit leave */
    uint64_t limit_bytes;     /**< 0: no limit below the machine's memory */
    char limit_source[512]; /**< the file that set it, "/sys/fs/cgroup/x/memory.max"; "" if none */
};

/** What extension() gives for DS_ACCEL_EXT_TOPOLOGY. */
struct ds_accel_ext_topology {
    uint32_t struct_size;
    uint32_t reserved;
    /** How many nodes the machine has, 0 if it does not say. */
    int32_t (*node_count)(const struct ds_accel_host *host, uint32_t *count_out);
    /** @p position counts from 0 in order of node id. ERR_INVALID past the last. */
    int32_t (*node_get)(const struct ds_accel_host *host, uint32_t position,
                        struct ds_accel_numa_node *node_out);
    /** The machine's memory, or less where a control group limits this process. */
    int32_t (*memory_get)(const struct ds_accel_host *host,
                          struct ds_accel_host_memory *memory_out);
};

/** Host extension: begin and end of a span on the calling thread; names have static storage. */
#define DS_ACCEL_EXT_TRACE "ds_accel.trace.1"

/** What extension() gives for DS_ACCEL_EXT_TRACE. */
struct ds_accel_ext_trace {
    uint32_t struct_size;
    uint32_t reserved;
    /** A span of @p category begins. */
    void (*begin)(const struct ds_accel_host *host, const char *category, const char *name);
    /** The thread's innermost span ends. */
    void (*end)(const struct ds_accel_host *host);
};

/**
 * Host extension: on whose behalf the plugin is asked. Probe may run in a process of the host's,
 * and what the program that asks holds already is then another process's, but nobody else's.
 */
#define DS_ACCEL_EXT_ASKER "ds_accel.asker.1"

/** What extension() gives for DS_ACCEL_EXT_ASKER. */
struct ds_accel_ext_asker {
    uint32_t struct_size;
    uint32_t reserved;
    /** The program's process id; this process's own where nothing stands between. */
    int64_t (*process_id)(const struct ds_accel_host *host);
};

/* ---- probe: is this accelerator usable here? ------------------------------------------------ */

#define DS_ACCEL_PROBE_AVAILABLE 1u   /**< device_count devices can be used now */
#define DS_ACCEL_PROBE_UNAVAILABLE 2u /**< they cannot: the machine is the cause */
#define DS_ACCEL_PROBE_ERROR 3u       /**< asking failed: driver or plugin is the cause */

/** Why not. One number per cause that an operator can act on. */
#define DS_ACCEL_REASON_NONE 0u
#define DS_ACCEL_REASON_NO_DEVICE 1u       /**< no hardware of this kind in the machine */
#define DS_ACCEL_REASON_NO_DRIVER 2u       /**< hardware, but its kernel driver is not loaded */
#define DS_ACCEL_REASON_NO_PERMISSION 3u   /**< detail names the device node */
#define DS_ACCEL_REASON_LIBRARY_MISSING 4u /**< detail names the runtime library */
/** the runtime library is too old: detail names the symbol */
#define DS_ACCEL_REASON_SYMBOL_MISSING 5u
#define DS_ACCEL_REASON_DRIVER_MISMATCH 6u /**< kernel driver and runtime library disagree */
#define DS_ACCEL_REASON_DEVICE_BUSY 7u     /**< in use exclusively by another process */
#define DS_ACCEL_REASON_HIDDEN 8u          /**< a visible-devices variable hides every device */
#define DS_ACCEL_REASON_DEVICE_TOO_OLD 9u  /**< present, but its generation is not supported */
#define DS_ACCEL_REASON_DEVICE_ASLEEP 10u  /**< suspended; not woken by asking */
#define DS_ACCEL_REASON_DRIVER_FAILED 11u  /**< the runtime returned an error: see vendor_code */
#define DS_ACCEL_REASON_BAD_OPTION 12u     /**< an option or variable of this plugin is not valid */

/** What probe answers. */
struct ds_accel_verdict {
    uint32_t struct_size;
    uint32_t state;        /**< DS_ACCEL_PROBE_*; 0 is refused */
    uint32_t device_count; /**< > 0 when AVAILABLE */
    uint32_t reason;       /**< DS_ACCEL_REASON_*; NONE when AVAILABLE */
    int64_t vendor_code;   /**< with DRIVER_FAILED */
    char variant[32];      /**< the way in, if there are several: xpu "driver"; rules can name it */
    char detail[256];      /**< evidence, one line: which file, library, symbol, variable */
};

/* ---- facts about the backend and its devices ------------------------------------------------ */

#define DS_ACCEL_FLAG_SYNCHRONIZED 0x1ull /**< no asynchronous queue */
#define DS_ACCEL_FLAG_HOST_TIMERS 0x2ull  /**< time with the host's clock */
/** orders dependent work by itself */
#define DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES 0x4ull
#define DS_ACCEL_FLAG_HANDLES_BACKPRESSURE 0x8ull /**< bounds work in flight by itself */
#define DS_ACCEL_FLAG_RANGE_DOMAINS 0x10ull       /**< range_push heeds domain, category */
#define DS_ACCEL_FLAG_TRITON 0x20ull
#define DS_ACCEL_FLAG_TRITON_GROUPED_MM 0x40ull /**< prefer triton's grouped matmul */
#define DS_ACCEL_FLAG_GRAPHS 0x80ull            /**< the graph group works */
/** default stream waits for the others */
#define DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS 0x100ull
#define DS_ACCEL_FLAG_HOST_ACCESSIBLE 0x200ull /**< host code may touch device memory */
/** one address space: copy kind can be inferred */
#define DS_ACCEL_FLAG_UNIFIED_ADDRESSES 0x400ull
#define DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY 0x800ull
#define DS_ACCEL_FLAG_VIRTUAL_MEMORY 0x1000ull
#define DS_ACCEL_FLAG_MEMORY_IPC 0x2000ull
#define DS_ACCEL_FLAG_EVENT_IPC 0x4000ull
#define DS_ACCEL_FLAG_DMABUF 0x8000ull

/** Every DS_ACCEL_FLAG_* of this header. */
#define DS_ACCEL_FLAGS_ALL 0xffffull

/** Answers that hold for all devices of an instance. */
struct ds_accel_backend_info {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t flags;                    /**< DS_ACCEL_FLAG_* */
    uint64_t flags_known;              /**< the flags answered: DS_ACCEL_FLAGS_ALL, or fewer */
    char communication_backend[32];    /**< "nccl"; "": not known to the plugin */
    char compile_backend[32];          /**< "inductor"; "": not known to the plugin */
    uint32_t communication_version[4]; /**< major, minor, patch, 0; all 0: not known */
    uint32_t driver_version[4];        /**< likewise, the kernel driver's */
    uint32_t runtime_version[4];       /**< likewise, the vendor library's */
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
 * Who a device is. Answered without opening, and without waking, the device. Integers and uuid hold
 * a value only where valid says so; zero is a value.
 */
struct ds_accel_device_identity {
    uint32_t struct_size;
    uint32_t device_index;          /**< the index it was asked by */
    uint32_t valid;                 /**< DS_ACCEL_IDENTITY_* */
    uint32_t partition_kind;        /**< DS_ACCEL_PARTITION_* */
    uint32_t power_state;           /**< DS_ACCEL_POWER_* */
    uint32_t vendor_index;          /**< the vendor's own numbering, before visibility */
    uint32_t numa_node;             /**< the kernel's number */
    uint32_t parent_index;          /**< device_index of the whole device, if it has one here */
    uint32_t partition_instance;    /**< MIG GPU instance, tile: with IDENTITY_PARTITION */
    uint32_t partition_subinstance; /**< MIG compute instance: likewise */
    uint64_t total_memory_bytes;    /**< 0: only an open device tells */
    uint8_t uuid[16];
    char uuid_text[64];        /**< as the vendor writes it: "GPU-..." */
    char parent_uuid_text[64]; /**< of the whole device, also when it has no index here */
    char pci_address[32];      /**< "0000:65:00.0", a partition's its parent's; "" if not on PCI */
    char node_path[64];        /**< "/dev/nvidia0", without machine_root; "" if none */
    char architecture[64];     /**< "sm_90", "gfx942:sramecc+:xnack-"; "" not known */
    char name[128];            /**< the marketing name; "" if only an open device tells */
};

/** What an opened device can do. */
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
    uint64_t flags_known;          /**< the flags answered; others are not known */
    uint64_t max_allocation_bytes; /**< of one mem_alloc(); 0 not known */
};

#define DS_ACCEL_MEMORY_TOTAL 1u
#define DS_ACCEL_MEMORY_AVAILABLE 2u
#define DS_ACCEL_MEMORY_PROCESS 4u

/** Memory as three separate figures: of the device, of this process, and the limit on both. */
struct ds_accel_memory_info {
    uint32_t struct_size;
    uint32_t valid;           /**< DS_ACCEL_MEMORY_*: the figures that are known; zero is a value */
    uint64_t total_bytes;     /**< what this process could ever get */
    uint64_t available_bytes; /**< what it could get now, other processes considered */
    uint64_t process_bytes;   /**< in use by this process */
    uint64_t limit_bytes;     /**< a limit below the device's memory, 0 if none */
    char limit_source[512];   /**< who set the limit: a file, variable or call */
};

#define DS_ACCEL_STATS_ALLOCATED 1u /**< allocated_bytes and its peak */
#define DS_ACCEL_STATS_RESERVED 2u  /**< reserved_bytes and its peak */
#define DS_ACCEL_STATS_COUNTS 4u    /**< alloc_count, free_count, out_of_memory_count */
#define DS_ACCEL_STATS_RETRIES 8u   /**< alloc_retry_count */

/** Running totals since the device was opened; peaks since the last reset. */
struct ds_accel_memory_stats {
    uint32_t struct_size;
    uint32_t valid;           /**< DS_ACCEL_STATS_*: what is known; zero is a value */
    uint64_t allocated_bytes; /**< held by live allocations (cpu: the process's resident set) */
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes; /**< held from the driver */
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

#define DS_ACCEL_EVENT_TIMING 1u        /**< elapsed time can be asked */
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

#define DS_ACCEL_GRAPH_UPDATED 1u /**< graph_exec_update took the new graph */
#define DS_ACCEL_GRAPH_REBUILD_NEEDED 2u

#define DS_ACCEL_POINTER_UNKNOWN 0u /**< not this plugin's */
#define DS_ACCEL_POINTER_DEVICE 1u
#define DS_ACCEL_POINTER_PINNED 2u
#define DS_ACCEL_POINTER_MANAGED 3u
#define DS_ACCEL_POINTER_HOST 4u /**< ordinary host memory, seen by the runtime */

/** What mem_pointer_info knows of an address. */
struct ds_accel_pointer_info {
    uint32_t struct_size;
    uint32_t kind;        /**< DS_ACCEL_POINTER_* */
    int32_t device_index; /**< owner; always written: -1 none or not known */
    uint32_t reserved;
    uint64_t base_address;  /**< start of the allocation that holds the pointer */
    uint64_t size_bytes;    /**< of that allocation */
    uint64_t allocation_id; /**< unique in the plugin, never reused; 0 unknown */
};

#define DS_ACCEL_NATIVE_DEVICE 1u /**< CUdevice, hipDevice_t, ze_device_handle_t ... */
/** of an opened device: CUcontext, ze_context_handle_t, cl_context */
#define DS_ACCEL_NATIVE_CONTEXT 2u
#define DS_ACCEL_NATIVE_STREAM 3u
#define DS_ACCEL_NATIVE_EVENT 4u
#define DS_ACCEL_NATIVE_MEMORY 5u /**< for backends whose memory is an object: cl_mem */
#define DS_ACCEL_NATIVE_GRAPH 6u
#define DS_ACCEL_NATIVE_GRAPH_EXEC 7u

#define DS_ACCEL_VMEM_EXPORTABLE 1u /**< can be given to dmabuf_export and ipc_memory_export */

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
    uint32_t kind; /**< DS_ACCEL_LINK_* */
    int32_t
        peer_index; /**< device_index at the other end; always written: -1 if it is none of ours */
    uint32_t width; /**< lanes */
    uint32_t generation;
    uint32_t is_up;                 /**< 1 or 0 */
    uint64_t bandwidth_bytes_per_s; /**< one direction */
    char peer_pci_address[32];      /**< when the other end is known by address only */
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

/** Sensors. Only the members named in valid hold a value; zero is a value. */
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
    uint64_t memory_used_bytes; /**< by all processes */
    uint64_t sampled_over_ns;   /**< the period behind the percentages; 0 not known */
};

/** One process that uses a device, an element of an array. */
struct ds_accel_process {
    uint32_t struct_size;
    int32_t pid; /**< as this process's PID namespace sees it; 0 if it does not */
    uint64_t memory_bytes;
    uint32_t utilization_percent;
    /** DS_ACCEL_TELEMETRY_MEMORY, DS_ACCEL_TELEMETRY_UTILIZATION. Bits from 32 on never come here:
     * a figure that has such a bit comes with a 64-bit set of its own, appended to this struct. */
    uint32_t valid;
};

#define DS_ACCEL_ENV_IF_UNSET 1u /**< the job's own value stays */
#define DS_ACCEL_ENV_ALWAYS 2u   /**< in place of the job's own value */
#define DS_ACCEL_ENV_UNSET 3u    /**< the job does not have the variable */

/** A variable this backend wants in a job's environment, an element of an array. */
struct ds_accel_env_rule {
    uint32_t struct_size;
    uint32_t rule;     /**< DS_ACCEL_ENV_* */
    const char *name;  /**< this and the next two: static storage */
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

/** Receives pieces of a text that a plugin writes; returns DS_ACCEL_OK to go on. */
typedef int32_t (*ds_accel_text_sink_t)(void *user_data, const char *text, uint64_t text_bytes);
/**
 * Runs once for each stream_host_task that returned DS_ACCEL_OK (captured: once a launch): @p
 * status is DS_ACCEL_OK, or why the stream did not get there. On any thread; must not call into the
 * plugin, the vendor's runtime or, but for ds_accel_note_access(), the program's library.
 */
typedef void (*ds_accel_host_task_t)(void *user_data, int32_t status);

/*
 * What native_get and native_wrap take and give, as their kind says. It is void, so that every
 * handle converts. With DS_ACCEL_TYPED_HANDLES defined it is a type of its own, and a handle
 * becomes one, and one a handle, only by name: ds_accel_object_of_stream(),
 * ds_accel_object_as_stream(), and likewise device, event, graph, graph_exec and memory. The
 * compiled ABI is the same.
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
 * All that a plugin does, generation 1. Append only. Required: name, probe, init, shutdown,
 * device_count, device_open and device_close; everything else may be NULL.
 *
 * Threads: entry, probe, init and shutdown are called by one thread at a time. Everything else may
 * be called from any thread; calls on the same stream, event or graph are not made at the same time
 * unless the slot says so. Device addresses are `void *`; sizes are bytes.
 *
 * Statuses that mean the same in every slot:
 *  - ERR_INVALID: a device_index from device_count on, also one of a list; a flag, kind, mode or
 *    list that this plugin does not know; a size, alignment or handle that cannot be.
 *  - ERR_UNSUPPORTED: a flag, kind or mode of this header that the plugin knows, where it, the
 *    runtime or this device does not offer it. Every plugin accepts DS_ACCEL_STREAM_NON_BLOCKING,
 *    DS_ACCEL_EVENT_BLOCKING_SYNC, the copy kinds other than INFER and, if it has event_elapsed_ms,
 *    DS_ACCEL_EVENT_TIMING.
 *  - ERR_LIMIT: a text does not fit (a name of env_name_get: ERR_INVALID). Where there is
 *    needed_out, value NULL with value_size 0 asks for the size: ERR_LIMIT, and the bytes with the
 *    NUL. An array is asked for its number with NULL and capacity 0: DS_ACCEL_OK.
 *
 * Owners: what is made with a device handle (streams, events, graphs, memory) belongs to it and is
 * released before it is closed, memory through it, even if another handle is of the same device.
 */
struct ds_accel_plugin {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    uint64_t required_features; /**< bits the host must know; same as in the note */
    uint64_t optional_features; /**< bits the plugin uses where they exist */
    const char *name;           /**< equals the file's and the note's */
    const char *vendor;
    const char *version; /**< the plugin's own */

    /* -- life -- */

    /**
     * Can this accelerator be used here? The interface's is_available. Leaves nothing behind.
     * @return DS_ACCEL_OK with *verdict filled; a negative code means the same as state ERROR
     */
    int32_t (*probe)(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                     struct ds_accel_error *error);
    /** Start the vendor's runtime. May be called again, also while other instances live. */
    int32_t (*init)(const struct ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
                    struct ds_accel_error *error);
    /** Every device was closed before. NULL is ignored. */
    void (*shutdown)(ds_accel_plugin_instance_t *instance);
    /** Further functions by string id, static storage; ERR_NOT_FOUND. */
    int32_t (*extension)(ds_accel_plugin_instance_t *instance, const char *id,
                         const void **extension_out, struct ds_accel_error *error);
    /** What holds for all devices; the answer does not change while the instance lives. */
    int32_t (*backend_info)(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info_out, struct ds_accel_error *error);

    /* -- device -- */

    /** How many devices this process may use; the same as long as the instance lives. */
    int32_t (*device_count)(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                            struct ds_accel_error *error);
    /**
     * Without opening or waking the device.
     * @return ERR_INVALID @p device_index is not below device_count
     */
    int32_t (*device_identity)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                               struct ds_accel_device_identity *identity_out,
                               struct ds_accel_error *error);
    /**
     * Opening a device again gives the same or another handle; each is closed separately.
     * @return ERR_INVALID @p device_index is not below device_count
     */
    int32_t (*device_open)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error);
    /** As device_open, in the program's own context (DS_ACCEL_NATIVE_CONTEXT), which stays its own.
     */
    int32_t (*device_open_native)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                  uint64_t native_context, ds_accel_plugin_device_t **device_out,
                                  struct ds_accel_error *error);
    /** Its streams, events, graphs and memory were released before. NULL is ignored. */
    void (*device_close)(ds_accel_plugin_device_t *device);
    /** Answers that need the device to be open; they do not change until it is closed. */
    int32_t (*device_info)(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info_out,
                           struct ds_accel_error *error);
    /** The calling thread's current device, as the vendor's runtime keeps it. */
    int32_t (*device_get_current)(ds_accel_plugin_instance_t *instance, uint32_t *device_index_out,
                                  struct ds_accel_error *error);
    /** Make it the calling thread's current device, as the vendor's runtime keeps it. */
    int32_t (*device_set_current)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
    /**
     * Wait for all work of all streams of the device. @p timeout_ns, here and below: UINT64_MAX
     * waits for ever, 0 only asks; ERR_TIMEOUT when it has passed.
     */
    int32_t (*device_synchronize)(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                  struct ds_accel_error *error);
    /** DS_ACCEL_OK while the device works; ERR_DEVICE_LOST after it was lost. */
    int32_t (*device_health)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);

    /* -- stream -- */

    /**
     * @p flags: DS_ACCEL_STREAM_*. @p priority lies in the device's range; lower numbers run first.
     */
    int32_t (*stream_create)(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                             ds_accel_plugin_stream_t **stream_out, struct ds_accel_error *error);
    /** Pending work is completed first or goes on; never lost. NULL is ignored. */
    void (*stream_destroy)(ds_accel_plugin_stream_t *stream);
    /**
     * Borrowed; lives as long as the device handle, and is the same for it at each call. Two
     * handles of a device may have two of them, or one.
     */
    int32_t (*stream_get_default)(ds_accel_plugin_device_t *device,
                                  ds_accel_plugin_stream_t **stream_out,
                                  struct ds_accel_error *error);
    /**
     * For runtimes that keep a current stream per thread; otherwise NULL, and the host keeps it.
     * The same handle for the same vendor stream, borrowed until the device is closed.
     */
    int32_t (*stream_get_current)(ds_accel_plugin_device_t *device,
                                  ds_accel_plugin_stream_t **stream_out,
                                  struct ds_accel_error *error);
    /** Make it the calling thread's current stream, for runtimes that keep one. */
    int32_t (*stream_set_current)(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error);
    /** The numbers that stream_create accepts: from *greatest_out, which runs first, to *least_out.
     */
    int32_t (*stream_priority_range)(ds_accel_plugin_device_t *device, int32_t *least_out,
                                     int32_t *greatest_out, struct ds_accel_error *error);
    /** Wait for all work that was queued before; ERR_STATE while the stream captures. */
    int32_t (*stream_synchronize)(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                  struct ds_accel_error *error);
    /** DS_ACCEL_OK: idle; DS_ACCEL_NOT_READY: busy. */
    int32_t (*stream_query)(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error);
    /**
     * Work queued on @p stream after this call waits on the device for @p event. Also while another
     * thread uses the stream.
     */
    int32_t (*stream_wait_event)(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                                 struct ds_accel_error *error);
    /**
     * Run @p task on the host when the stream gets there. The task calls neither this plugin nor
     * the vendor's runtime, and waits for no work of the device; it may lock, signal a thread and
     * call the C library. Work queued behind it waits until it returns.
     */
    int32_t (*stream_host_task)(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                                void *user_data, struct ds_accel_error *error);

    /* -- event -- */

    /**
     * @p flags: DS_ACCEL_EVENT_*. ERR_UNSUPPORTED for INTERPROCESS where events are not shared.
     */
    int32_t (*event_create)(ds_accel_plugin_device_t *device, uint32_t flags,
                            ds_accel_plugin_event_t **event_out, struct ds_accel_error *error);
    /**
     * Also while its mark is pending: what waits for the mark goes on waiting for it, and none of
     * the work is lost. May block until it is reached. NULL is ignored.
     */
    void (*event_destroy)(ds_accel_plugin_event_t *event);
    /** Recording again replaces the earlier mark. Also while another thread uses the stream. */
    int32_t (*event_record)(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *error);
    /**
     * DS_ACCEL_OK: reached, or never recorded; DS_ACCEL_NOT_READY; ERR_STATE, as for
     * event_synchronize: recorded in a capture that was not launched, until it is recorded again.
     * From any thread. Breaks no capture, as event_synchronize does not: the library asks events
     * while anything captures.
     */
    int32_t (*event_query)(ds_accel_plugin_event_t *event, struct ds_accel_error *error);
    /**
     * Wait until the event is reached; DS_ACCEL_OK at once if it was never recorded. From any
     * thread.
     */
    int32_t (*event_synchronize)(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                 struct ds_accel_error *error);
    /** Milliseconds from @p start to @p end; ERR_STATE without timing or before both were reached.
     */
    int32_t (*event_elapsed_ms)(ds_accel_plugin_event_t *start, ds_accel_plugin_event_t *end,
                                double *elapsed_ms_out, struct ds_accel_error *error);

    /* -- memory -- */

    /**
     * @p size_bytes > 0. @p align_bytes 0: device_info's allocation_align_bytes; else a power of
     * two.
     * @p flags: none so far, 0. Contents undefined. Never a part of a capture, and breaks none.
     */
    int32_t (*mem_alloc)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, uint32_t flags, void **pointer_out,
                         struct ds_accel_error *error);
    /**
     * Memory of mem_alloc, mem_alloc_managed or native_wrap, through the handle that it belongs to.
     * Waits for work that uses it, as far as the runtime knows of any. NULL is ignored.
     */
    int32_t (*mem_free)(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error);
    /**
     * Page-locked host memory. @p align_bytes: 1 = the runtime's own, 0 = the page size (for direct
     * I/O), else a power of two. ERR_LIMIT with the limit's name and size when the kernel refuses.
     */
    int32_t (*mem_alloc_pinned)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                struct ds_accel_error *error);
    /** Of mem_alloc_pinned, through the handle that allocated it. */
    int32_t (*mem_free_pinned)(ds_accel_plugin_device_t *device, void *pointer,
                               struct ds_accel_error *error);
    /**
     * Lock memory that the caller owns, until mem_unregister: to mem_pointer_info it is
     * DS_ACCEL_POINTER_PINNED until then. @p flags: DS_ACCEL_PINNED_*.
     */
    int32_t (*mem_register)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                            uint32_t flags, struct ds_accel_error *error);
    /**
     * Unlock it: the pointer that mem_register took. The caller has waited for work that uses it.
     */
    int32_t (*mem_unregister)(ds_accel_plugin_device_t *device, void *pointer,
                              struct ds_accel_error *error);
    /** Migrating memory that host and device both address. */
    int32_t (*mem_alloc_managed)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                 uint32_t flags, void **pointer_out, struct ds_accel_error *error);
    /** The device's address of mapped pinned memory. */
    int32_t (*mem_device_pointer)(ds_accel_plugin_device_t *device, void *host_pointer,
                                  void **device_pointer_out, struct ds_accel_error *error);
    /**
     * Done when it returns. Ranges do not overlap. @p kind is DS_ACCEL_COPY_*. In no order with
     * work that is queued: the caller waits for what writes the source or uses the destination
     * first. A copy of 0 bytes, here and below, and a fill of 0 bytes are DS_ACCEL_OK.
     */
    int32_t (*mem_copy)(ds_accel_plugin_device_t *device, void *destination, const void *source,
                        uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
    /** Queued; host memory stays as it is until the stream has passed. */
    int32_t (*mem_copy_async)(ds_accel_plugin_stream_t *stream, void *destination,
                              const void *source, uint64_t size_bytes, uint32_t kind,
                              struct ds_accel_error *error);
    /** Between two devices of this backend, queued on @p stream. */
    int32_t (*mem_copy_peer_async)(ds_accel_plugin_stream_t *stream,
                                   ds_accel_plugin_device_t *destination_device, void *destination,
                                   ds_accel_plugin_device_t *source_device, const void *source,
                                   uint64_t size_bytes, struct ds_accel_error *error);
    /** Repeat @p pattern, 1, 2 or 4 bytes long, over size_bytes, a multiple of it; queued. */
    int32_t (*mem_fill_async)(ds_accel_plugin_stream_t *stream, void *destination,
                              const void *pattern, uint32_t pattern_bytes, uint64_t size_bytes,
                              struct ds_accel_error *error);
    /** The device's memory now, other processes considered. */
    int32_t (*mem_info)(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info_out,
                        struct ds_accel_error *error);
    /** What this plugin allocated on the device; `valid` says which figures it keeps. */
    int32_t (*mem_stats)(ds_accel_plugin_device_t *device, struct ds_accel_memory_stats *stats_out,
                         struct ds_accel_error *error);
    /** Peaks named in @p which (DS_ACCEL_PEAK_*) become the current values. */
    int32_t (*mem_reset_peaks)(ds_accel_plugin_device_t *device, uint32_t which,
                               struct ds_accel_error *error);
    /** Give unused memory that the runtime keeps, all but @p keep_bytes, back to the driver. */
    int32_t (*mem_trim)(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                        struct ds_accel_error *error);
    /** Refuse allocations of this process beyond @p limit_bytes; 0 lifts the limit. */
    int32_t (*mem_set_limit)(ds_accel_plugin_device_t *device, uint64_t limit_bytes,
                             struct ds_accel_error *error);
    /**
     * @p device: where @p pointer is valid; NULL: any, with DS_ACCEL_FLAG_UNIFIED_ADDRESSES. An
     * unknown address is DS_ACCEL_OK with DS_ACCEL_POINTER_UNKNOWN.
     */
    int32_t (*mem_pointer_info)(ds_accel_plugin_instance_t *instance,
                                ds_accel_plugin_device_t *device, const void *pointer,
                                struct ds_accel_pointer_info *info_out,
                                struct ds_accel_error *error);
    /** Stream-ordered: usable by work after all of @p waits and after this point of @p stream. */
    int32_t (*mem_alloc_async)(ds_accel_plugin_stream_t *stream, uint64_t size_bytes,
                               uint32_t flags, ds_accel_plugin_event_t *const *waits,
                               uint32_t wait_count, void **pointer_out,
                               struct ds_accel_error *error);
    /** Stream-ordered: given back after all of @p waits and after this point of @p stream. */
    int32_t (*mem_free_async)(ds_accel_plugin_stream_t *stream, void *pointer,
                              ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                              struct ds_accel_error *error);

    /* -- virtual memory: reserve addresses, map physical memory under them, allow access -- */

    /**
     * Sizes and addresses of the vmem slots are multiples of *minimum_bytes_out, a power of two.
     */
    int32_t (*vmem_granularity)(ds_accel_plugin_device_t *device, uint32_t flags,
                                uint64_t *minimum_bytes_out, uint64_t *recommended_bytes_out,
                                struct ds_accel_error *error);
    /** @p hint: a wanted address or NULL; only a wish. @p flags: none so far, 0. */
    int32_t (*vmem_reserve)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                            uint64_t align_bytes, void *hint, uint32_t flags, void **address_out,
                            struct ds_accel_error *error);
    /** Exactly a range that was reserved, with nothing mapped in it. */
    int32_t (*vmem_release)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                            struct ds_accel_error *error);
    /** @p flags: DS_ACCEL_VMEM_EXPORTABLE or 0. */
    int32_t (*vmem_create)(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                           ds_accel_plugin_vmem_t **vmem_out, struct ds_accel_error *error);
    /** What is still mapped keeps the memory until it is unmapped. */
    void (*vmem_destroy)(ds_accel_plugin_vmem_t *vmem);
    /** Put memory under addresses that were reserved and have none; access is set separately. */
    int32_t (*vmem_map)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        ds_accel_plugin_vmem_t *vmem, uint64_t vmem_offset_bytes,
                        struct ds_accel_error *error);
    /** Exactly a range that was mapped. */
    int32_t (*vmem_unmap)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error);
    /** @p access is DS_ACCEL_VMEM_ACCESS_*, for @p accessor where the vendor tells devices apart.
     */
    int32_t (*vmem_set_access)(ds_accel_plugin_device_t *accessor, void *address,
                               uint64_t size_bytes, uint32_t access, struct ds_accel_error *error);

    /* -- graph -- */

    /**
     * Work queued on @p stream from now on is recorded instead of run. ERR_STATE while it captures.
     */
    int32_t (*graph_capture_begin)(ds_accel_plugin_stream_t *stream, uint32_t mode,
                                   struct ds_accel_error *error);
    /** Ends the capture in any case; ERR_STATE and no graph if it was broken, or there is none. */
    int32_t (*graph_capture_end)(ds_accel_plugin_stream_t *stream,
                                 ds_accel_plugin_graph_t **graph_out, struct ds_accel_error *error);
    /** DS_ACCEL_CAPTURING_* */
    int32_t (*graph_capture_status)(ds_accel_plugin_stream_t *stream, uint32_t *status_out,
                                    struct ds_accel_error *error);
    /** Graphs instantiated from it go on. NULL is ignored. */
    void (*graph_destroy)(ds_accel_plugin_graph_t *graph);
    /**
     * @p flags: none so far, 0. The graph may be destroyed afterwards; a second instance of it may
     * be ERR_STATE where the runtime has one object for both.
     */
    int32_t (*graph_instantiate)(ds_accel_plugin_graph_t *graph, uint32_t flags,
                                 ds_accel_plugin_graph_exec_t **exec_out,
                                 struct ds_accel_error *error);
    /** Launches that are queued are completed first or go on. NULL is ignored. */
    void (*graph_exec_destroy)(ds_accel_plugin_graph_exec_t *exec);
    /** Queue the whole graph on @p stream; the plugin orders the launches of one exec. */
    int32_t (*graph_launch)(ds_accel_plugin_graph_exec_t *exec, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *error);
    /** Take @p graph's parameters without a new instance; *result_out is DS_ACCEL_GRAPH_*. */
    int32_t (*graph_exec_update)(ds_accel_plugin_graph_exec_t *exec, ds_accel_plugin_graph_t *graph,
                                 uint32_t *result_out, struct ds_accel_error *error);
    /** How many pieces of work were captured. */
    int32_t (*graph_node_count)(ds_accel_plugin_graph_t *graph, uint64_t *count_out,
                                struct ds_accel_error *error);
    /**
     * A readable picture, Graphviz where the vendor has it; a negative answer of the sink ends it,
     * and this with a negative status.
     */
    int32_t (*graph_dump)(ds_accel_plugin_graph_t *graph, ds_accel_text_sink_t sink,
                          void *user_data, struct ds_accel_error *error);

    /* -- data types -- */

    /** *support_out: DS_ACCEL_DTYPE_STORES | COMPUTES | EMULATED; 0 for a dtype it does not know.
     */
    int32_t (*dtype_support)(ds_accel_plugin_device_t *device, uint32_t dtype,
                             uint32_t *support_out, struct ds_accel_error *error);

    /* -- telemetry: needs no open device and makes no context -- */

    /**
     * Only what `valid` names is known; a sleeping device stays asleep.
     * @return ERR_INVALID @p device_index is not below device_count
     */
    int32_t (*telemetry_get)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                             struct ds_accel_telemetry *telemetry_out,
                             struct ds_accel_error *error);
    /**
     * Write up to @p capacity elements, @p stride_bytes apart, and always the full number to
     * *count_out; capacity 0 only counts. ERR_UNSUPPORTED, with its name, where a library that this
     * needs is not installed.
     */
    int32_t (*telemetry_processes)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                   struct ds_accel_process *processes, uint32_t stride_bytes,
                                   uint32_t capacity, uint32_t *count_out,
                                   struct ds_accel_error *error);

    /* -- profiler ranges: nested per thread -- */

    /** @p domain and @p category may be NULL. */
    int32_t (*range_push)(ds_accel_plugin_instance_t *instance, const char *message,
                          const char *domain, const char *category, struct ds_accel_error *error);
    /** End the calling thread's innermost range of @p domain; ERR_STATE if none is open. */
    int32_t (*range_pop)(ds_accel_plugin_instance_t *instance, const char *domain,
                         struct ds_accel_error *error);
    /** Ask the vendor's profiler, where one watches this process, to collect. */
    int32_t (*profiler_start)(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);
    /** Ask it to stop collecting. */
    int32_t (*profiler_stop)(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);

    /* -- peers and links -- */

    /** *can_out: 1 if @p device can address @p peer's memory, else 0. */
    int32_t (*peer_can_access)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                               uint32_t *can_out, struct ds_accel_error *error);
    /** Already enabled is DS_ACCEL_OK. */
    int32_t (*peer_enable)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                           struct ds_accel_error *error);
    /** Not enabled is DS_ACCEL_OK. */
    int32_t (*peer_disable)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            struct ds_accel_error *error);
    /** As telemetry_processes, without opening the device. */
    int32_t (*links_get)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         struct ds_accel_link *links, uint32_t stride_bytes, uint32_t capacity,
                         uint32_t *count_out, struct ds_accel_error *error);

    /* -- sharing between processes -- */

    /**
     * @p handle has backend_info's memory_handle_bytes: plain bytes, usable by any process of the
     * same user on this machine until ipc_memory_unexport(), mem_free() or the end of this process.
     * @p pointer may lie inside an allocation: opening gives the same place.
     */
    int32_t (*ipc_memory_export)(ds_accel_plugin_device_t *device, void *pointer, void *handle,
                                 uint32_t handle_bytes, struct ds_accel_error *error);
    /** The exporter has done with it; importers that have it open keep it. */
    int32_t (*ipc_memory_unexport)(ds_accel_plugin_device_t *device, const void *handle,
                                   uint32_t handle_bytes, struct ds_accel_error *error);
    /** Each opening is closed once, with the pointer it gave. @p flags: none so far, 0. */
    int32_t (*ipc_memory_open)(ds_accel_plugin_device_t *device, const void *handle,
                               uint32_t handle_bytes, uint32_t flags, void **pointer_out,
                               struct ds_accel_error *error);
    /** The pointer that ipc_memory_open gave; the caller has waited for work that uses it. */
    int32_t (*ipc_memory_close)(ds_accel_plugin_device_t *device, void *pointer,
                                struct ds_accel_error *error);
    /**
     * @p handle has backend_info's event_handle_bytes. The event was made with
     * DS_ACCEL_EVENT_INTERPROCESS.
     */
    int32_t (*ipc_event_export)(ds_accel_plugin_event_t *event, void *handle, uint32_t handle_bytes,
                                struct ds_accel_error *error);
    /** An event of another process; event_destroy ends this handle alone. */
    int32_t (*ipc_event_open)(ds_accel_plugin_device_t *device, const void *handle,
                              uint32_t handle_bytes, ds_accel_plugin_event_t **event_out,
                              struct ds_accel_error *error);
    /** *fd_out is the caller's to close. */
    int32_t (*dmabuf_export)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                             uint32_t flags, int32_t *fd_out, uint64_t *offset_bytes_out,
                             struct ds_accel_error *error);
    /** @p fd stays the caller's. */
    int32_t (*dmabuf_import)(ds_accel_plugin_device_t *device, int32_t fd, uint64_t offset_bytes,
                             uint64_t size_bytes, void **pointer_out, struct ds_accel_error *error);
    /** The pointer that dmabuf_import gave; the caller has waited for work that uses it. */
    int32_t (*dmabuf_release)(ds_accel_plugin_device_t *device, void *pointer,
                              struct ds_accel_error *error);

    /* -- random numbers: hooks for a vendor's own generator; NULL = the host's Philox -- */

    /** Begin the sequence of @p seed. */
    int32_t (*rng_seed)(ds_accel_plugin_device_t *device, uint64_t seed,
                        struct ds_accel_error *error);
    /** The seed of the latest rng_seed, or the one that the generator began with. */
    int32_t (*rng_initial_seed)(ds_accel_plugin_device_t *device, uint64_t *seed_out,
                                struct ds_accel_error *error);
    /** Bytes of rng_get_state and rng_set_state. */
    int32_t (*rng_state_size)(ds_accel_plugin_device_t *device, uint64_t *size_bytes_out,
                              struct ds_accel_error *error);
    /** Exactly rng_state_size bytes, plain. */
    int32_t (*rng_get_state)(ds_accel_plugin_device_t *device, void *state, uint64_t size_bytes,
                             struct ds_accel_error *error);
    /** Go on from a state that rng_get_state wrote. */
    int32_t (*rng_set_state)(ds_accel_plugin_device_t *device, const void *state,
                             uint64_t size_bytes, struct ds_accel_error *error);
    /** @p count elements of @p dtype in [low, high), contiguous, queued. */
    int32_t (*rng_uniform)(ds_accel_plugin_stream_t *stream, void *destination, uint64_t count,
                           uint32_t dtype, double low, double high, struct ds_accel_error *error);
    /** @p count elements of @p dtype, contiguous, queued. */
    int32_t (*rng_normal)(ds_accel_plugin_stream_t *stream, void *destination, uint64_t count,
                          uint32_t dtype, double mean, double standard_deviation,
                          struct ds_accel_error *error);

    /* -- op builders -- */

    /** Builders beyond the configuration's. As telemetry_processes. */
    int32_t (*op_builders_get)(ds_accel_plugin_instance_t *instance,
                               struct ds_accel_op_builder *builders, uint32_t stride_bytes,
                               uint32_t capacity, uint32_t *count_out,
                               struct ds_accel_error *error);
    /** *compatible_out: 1 or 0, with the reason as one line in @p reason, shortened to fit. */
    int32_t (*op_compatible)(ds_accel_plugin_instance_t *instance, const char *op,
                             uint32_t *compatible_out, char *reason, uint32_t reason_size,
                             struct ds_accel_error *error);

    /* -- environment
     * --------------------------------------------------------------------------------------------
     */

    /** Rules beyond the configuration's. As telemetry_processes. */
    int32_t (*env_rules_get)(ds_accel_plugin_instance_t *instance, struct ds_accel_env_rule *rules,
                             uint32_t stride_bytes, uint32_t capacity, uint32_t *count_out,
                             struct ds_accel_error *error);
    /**
     * Name number @p position of the list @p which (DS_ACCEL_ENV_LIST_*).
     * @return ERR_NOT_FOUND past the list's end; ERR_INVALID no such list, or too little room
     */
    int32_t (*env_name_get)(ds_accel_plugin_instance_t *instance, uint32_t which, uint32_t position,
                            char *name, uint32_t name_size, struct ds_accel_error *error);
    /**
     * The value with which @p variable shows exactly these devices of the instance, in this order,
     * to a child that is started with the current environment. Sizes as in config_get.
     * @return ERR_LIMIT does not fit, also for NULL and 0; ERR_INVALID no such device;
     * ERR_NOT_FOUND no variable of this backend; ERR_UNSUPPORTED one that cannot show the devices
     * in this order
     */
    int32_t (*visible_devices_value)(ds_accel_plugin_instance_t *instance, const char *variable,
                                     const uint32_t *device_indices, uint32_t device_index_count,
                                     char *value, uint32_t value_size, uint32_t *needed_out,
                                     struct ds_accel_error *error);

    /* -- native handles: mix with the vendor's own library -- */

    /**
     * The vendor's handle, borrowed, as an integer wide enough for a pointer. @p object is what
     * @p kind (DS_ACCEL_NATIVE_*) says: ds_accel_plugin_device_t * (also for CONTEXT), stream,
     * event or a device address; *offset_bytes_out is where that lies in a MEMORY object, else 0.
     */
    int32_t (*native_get)(ds_accel_plugin_device_t *device, uint32_t kind,
                          const DS_ACCEL_OBJECT_ *object, uint64_t *native_out,
                          uint64_t *offset_bytes_out, struct ds_accel_error *error);
    /**
     * Our handle around a vendor's STREAM, EVENT or MEMORY, which stays the caller's:
     * stream_destroy, event_destroy or mem_free end ours and leave it alone.
     */
    int32_t (*native_wrap)(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t native,
                           DS_ACCEL_OBJECT_ **object_out, struct ds_accel_error *error);
};

/** The generation's one exported function: pure, returns static storage; NULL refuses this host. */
typedef const struct ds_accel_plugin *(*ds_accel_entry_v1_t)(const struct ds_accel_host *host);
#define DS_ACCEL_ENTRY_V1_SYMBOL "ds_accel_entry_v1"

/* ---- the ELF note: what the host reads before it runs any code of the plugin ---------------- */

#define DS_ACCEL_NOTE_NAME "ds-accel"  /**< the note's owner */
#define DS_ACCEL_NOTE_TYPE 0x44530001u /**< layout below, in the note's descriptor */

/** The descriptor: little- or big-endian like the object; append only. */
struct ds_accel_note_desc {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    uint32_t required_features[2]; /**< low word, high word */
    uint32_t optional_features[2];
    uint32_t table_size; /**< struct_size of the table behind the entry */
    uint32_t reserved;
    char name[32];
    char version[32];
    char vendor[64];
};

/**
 * A second note, which a plugin may have: the hardware that it is for, so that a machine without it
 * never loads the plugin. DS_ACCEL_PLUGIN_HARDWARE() writes it; see there.
 */
#define DS_ACCEL_HARDWARE_NOTE_TYPE 0x44530002u /**< a NUL-terminated text */

/** The whole note as the linker wants it: header, owner, descriptor, four-byte aligned. */
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

/* One half of a set of features, whatever integer it is. */
#define DS_ACCEL_LOW_WORD_(bits) DS_ACCEL_CAST_(uint32_t, (bits)&0xffffffffull)
#define DS_ACCEL_HIGH_WORD_(bits) DS_ACCEL_CAST_(uint32_t, ((bits) | 0ull) >> 32)

/**
 * Define the plugin: once per shared object, at file scope, followed by a semicolon.
 *
 * @param name_      string literal, [a-z][a-z0-9_.]{0,30}, equal to the file's: "cuda"
 * @param vendor_    string literal, up to 63 bytes: who ships it
 * @param version_   string literal, up to 31 bytes: the plugin's own version
 * @param required_  DS_ACCEL_FEATURE_* bits without which it cannot work, or 0
 * @param optional_  DS_ACCEL_FEATURE_* bits it uses where they exist, or 0
 * @param fill_      void fill(struct ds_accel_plugin *table): sets the function pointers, no more
 *
 * It emits the entry symbol, the table's head with its size and ABI version, and the ELF note.
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
 * Say what hardware the plugin is for: at most once per shared object, at file scope, followed by a
 * semicolon. A host then answers for the plugin, with DS_ACCEL_REASON_NO_DEVICE, where the machine
 * has nothing of all that is named, and neither loads nor asks it; a host that does not know of
 * this note asks the plugin. Without the note the plugin is always asked.
 *
 * @param text_  string literal, up to 4095 bytes, of lines that each end with a newline:
 *               "pci 10de\n", "pci 10de:03\n" or "pci 10de:0302\n": a PCI vendor and the beginning
 *               of a device class, lower-case hexadecimal; "node /dev/nvidia[0-9]*\n": a device
 *               node, up to 127 bytes of printable ASCII, with wildcards of fnmatch() in the last
 *               part of its path only. A host asks the plugin if there is a line of another kind.
 *
 * A user's option "presence" of the value "off" has the plugin asked in any case: for machines that
 * show their devices in another way.
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

/* ---- for whoever fills a struct ------------------------------------------------------------- */

/**
 * Copy *source over *destination, both beginning with struct_size, as far as both go. The
 * destination keeps its own struct_size. Use it for every struct that crosses:
 *
 *     struct ds_accel_device_info info;
 *     memset(&info, 0, sizeof(info));
 *     ... fill info ...
 *     ds_accel_write(info_out, &info, sizeof(info));
 */
DS_ACCEL_INLINE void ds_accel_write(void *destination, const void *source, uint32_t source_size);

/** The same for element @p position of an array whose elements are @p stride_bytes apart. */
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
