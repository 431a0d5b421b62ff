/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/**
 * @file ds_accel.h
 * The program's API: find the machine's accelerator, report why it was chosen, and open its
 * devices.
 *
 *     ds_accel_t *accelerator = ds_accel_get();
 *     puts(accelerator != NULL ? ds_accel_name(accelerator) : ds_accel_last_error());
 *
 * A *context* (ds_accel_t) holds one configuration, the plugins found, their verdicts and the
 * chosen accelerator. ds_accel_get() returns the process-wide context; ds_accel_create() makes
 * other contexts.
 *
 * Functions return DS_ACCEL_OK or a negative DS_ACCEL_ERR_* (plugin-api.h lists them); the exact
 * cause is then in ds_accel_last_error(). Outputs come last, end in _out and are written only on
 * DS_ACCEL_OK, unless the function says otherwise. Structs begin with struct_size, which the caller
 * sets. Strings are UTF-8. The library never prints, never exits, and does not change signal
 * handlers, CPU affinity, environment, locale and working directory. A thread that calls it needs
 * 64 KiB of stack, plus what the chosen plugin and its vendor's runtime need.
 */
#ifndef DS_ACCEL_H
#define DS_ACCEL_H

#include "plugin-api.h"

/* A struct and the function that fills it may have the same name, like stat and stat(). */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

/* Functions that are always inlined, so that a call is one jump instead of two. The library also
 * exports them. If DS_ACCEL_NO_INLINE is defined, they are only declared, for tools that read
 * headers and for languages that cannot inline them. */
#ifdef DS_ACCEL_NO_INLINE
#define DS_ACCEL_HOT DS_ACCEL_EXPORT
#else
#define DS_ACCEL_HOT DS_ACCEL_EXPORT __attribute__((always_inline)) inline
#endif

#define DS_ACCEL_VERSION "0.1.0"

/** A context. All threads may use it at the same time. */
typedef struct ds_accel ds_accel_t;

/** An open device: a table of functions and the plugin's handle. Created by
 * ds_accel_device_open(). */
typedef struct ds_accel_device ds_accel_device_t;

/* ---- errors --------------------------------------------------------------------------------- */

/**
 * Return the cause of the calling thread's last failed call: one line, or, for a configuration, one
 * line for each problem.
 * @return never NULL; "" before any failure; meaningful only right after a failure
 * @threads any; each thread has its own error
 * @owner  borrowed until the thread's next call into the library
 */
DS_ACCEL_EXPORT const char *ds_accel_last_error(void);

/**
 * Make a text safe for a terminal, in place: one line of UTF-8 without control sequences or
 * invisible characters. A control character or a line's end becomes a blank; an invisible
 * character, such as one that changes the direction of writing, and a byte that is not UTF-8 become
 * "?". The library's own texts, errors and log lines are already safe; this function is for other
 * text that a program prints.
 *
 * @param[in,out] text       the text, which does not grow; NULL is ignored
 * @param[in]     text_size  size of the array in bytes; the last byte becomes NUL
 * @threads any
 */
DS_ACCEL_EXPORT void ds_accel_sanitize_text(char *text, size_t text_size);

/** Return the name of a status: "DS_ACCEL_ERR_NO_MEMORY" for -2; "DS_ACCEL_ERR_INTERNAL" for a
 * number that is not a status. */
DS_ACCEL_EXPORT const char *ds_accel_status_name(int32_t status);

/** Return the version of the loaded library, such as "0.1.0"; static storage. */
DS_ACCEL_EXPORT const char *ds_accel_version(void);

/* ---- contexts ------------------------------------------------------------------------------- */

/**
 * A function that receives log lines, without a newline. The thread that logs calls it, and may
 * hold a lock of the library meanwhile: the function must not call the library.
 * @param level one of DS_ACCEL_LOG_*   @param topic "config", "loader", a plugin's name ...
 */
typedef void (*ds_accel_log_sink_t)(void *user_data, uint32_t level, const char *topic,
                                    const char *message);

#define DS_ACCEL_OPTION_NO_ENVIRONMENT 1u /**< ignore every DS_* environment variable */
#define DS_ACCEL_OPTION_NO_USER_CONFIG 2u /**< skip $XDG_CONFIG_HOME/ds-accel */
#define DS_ACCEL_OPTION_NO_CACHE 4u       /**< without the cache of verdicts and configuration */

/** Options of a context. Zero the struct, set struct_size, then set the members needed. All
 * pointers are borrowed until the call that receives the options returns; log_user_data is passed
 * to log_sink as long as the context exists. */
struct ds_accel_options {
    uint32_t struct_size;
    uint32_t flags; /**< DS_ACCEL_OPTION_* */
    /** name of the accelerator to use; NULL: environment, configuration or detection chooses it */
    const char *accelerator;
    const char *const *plugin_dirs; /**< searched before all others; NULL with count 0 */
    uint32_t plugin_dir_count;
    uint32_t reserved;
    /** used instead of the user's configuration files; NULL: DS_ACCEL_CONFIG, else those files */
    const char *config_file;
    const char *package_config_dir; /**< used instead of PREFIX/share/ds-accel */
    const char *system_config_dir;  /**< used instead of /etc/ds-accel */
    /** directory in which /sys, /proc and /dev are read; NULL: DS_ACCEL_ROOT, else this machine's
     * root */
    const char *machine_root;
    const char *log_levels;       /**< "warn,cuda=debug"; NULL: DS_ACCEL_LOG, else "warn" */
    ds_accel_log_sink_t log_sink; /**< NULL: log lines are dropped */
    void *log_user_data;
    const char *cache_dir; /**< used instead of DS_ACCEL_CACHE_DIR; absolute */
    /** file of a recorded machine, used instead of this machine: no plugin is run, and no device
     * can be opened; needs libds_accel_tools.so */
    const char *machine_file;
};

/**
 * Read the configuration and find the plugins, without running any plugin.
 *
 * @param[in]  options      NULL for the defaults
 * @param[out] context_out  the context
 * @return DS_ACCEL_OK; ERR_CONFIG with file:line:column of each problem; ERR_INVALID;
 *         ERR_UNSUPPORTED machine_file without libds_accel_tools.so; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_destroy()
 */
DS_ACCEL_EXPORT int32_t ds_accel_create(const struct ds_accel_options *options,
                                        ds_accel_t **context_out);

/** Destroy a context and unload its plugins, as soon as no tensor uses memory of its devices. The
 * caller closes the devices first. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_destroy(ds_accel_t *context);

/**
 * Make ds_accel_get() return @p context, like DeepSpeed's set_accelerator().
 *
 * @return DS_ACCEL_OK; ERR_INVALID NULL; ERR_STATE another context already is the default, set by
 *         this function or made by ds_accel_get(); the status of ds_accel_detect(), which this
 *         function calls first
 * @threads any
 * @owner  the library keeps it for the life of the process; do not destroy it
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_default(ds_accel_t *context);

/**
 * Add a backend that is linked into the program instead of loaded from a file. The detection treats
 * it like a plugin found first on the search path.
 *
 * @param[in] entry  as DS_ACCEL_PLUGIN() defines it; called now
 * @return DS_ACCEL_OK; ERR_ABI with the rule that the backend's table breaks; ERR_STATE after a
 *         successful ds_accel_detect(), for a context of a recorded machine, or as
 *         ds_accel_detect() returns it after fork(); ERR_INVALID NULL; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_register(ds_accel_t *context, ds_accel_entry_v1_t entry);

/* ---- detection ------------------------------------------------------------------------------ */

/**
 * Choose the accelerator (override, configuration, detection order), load it and start it. Later
 * calls return the first call's result; after a failure they try again.
 *
 * @return DS_ACCEL_OK; ERR_NOT_USABLE the forced accelerator can't be used; ERR_NO_DEVICE no
 *         accelerator can be used; ERR_UNTRUSTED no accelerator can be used, because all were
 *         rejected for security; ERR_LIMIT no descriptor or process is left for a probe;
 *         ERR_NO_MEMORY; ERR_STATE the parent process started the accelerator before fork(), after
 *         which a child cannot use it, or a thread of the parent was changing this context during
 *         fork(): destroy the context with ds_accel_destroy()
 * @threads any; one thread detects, the others wait for its result
 * @source DeepSpeed accelerator/real_accelerator.py, get_accelerator()
 */
DS_ACCEL_EXPORT int32_t ds_accel_detect(ds_accel_t *context);

/**
 * Check candidates by every gate up to the probe, without choosing one.
 * @param[in] name  one backend; NULL: all backends except those that are used only on demand
 * @return DS_ACCEL_OK for any verdict; ERR_NOT_FOUND no such candidate; ERR_NO_MEMORY; ERR_STATE as
 *         ds_accel_detect() returns it after fork()
 */
DS_ACCEL_EXPORT int32_t ds_accel_check(ds_accel_t *context, const char *name);

/** Return the name of the chosen accelerator, such as "cuda"; NULL for a NULL context or before a
 * successful ds_accel_detect(). */
DS_ACCEL_EXPORT const char *ds_accel_name(const ds_accel_t *context);

/** Return how the accelerator was chosen: "override", "config" or "auto detect"; NULL as for
 * ds_accel_name(). */
DS_ACCEL_EXPORT const char *ds_accel_set_method(const ds_accel_t *context);

/** States of a candidate; numbers are stable. */
#define DS_ACCEL_STATE_NOT_PROBED 0u
#define DS_ACCEL_STATE_SELECTED 1u
#define DS_ACCEL_STATE_AVAILABLE 2u
#define DS_ACCEL_STATE_UNAVAILABLE 3u
#define DS_ACCEL_STATE_ERROR 4u
#define DS_ACCEL_STATE_REJECTED 5u
#define DS_ACCEL_STATE_CRASHED 6u
#define DS_ACCEL_STATE_TIMED_OUT 7u
#define DS_ACCEL_STATE_DISABLED 8u
#define DS_ACCEL_STATE_SHADOWED 9u
#define DS_ACCEL_STATE_QUARANTINED 10u

/**
 * One plugin found, in detection order. Strings are borrowed from the context, which keeps all
 * strings, including those of earlier verdicts, until it is destroyed. No string is NULL.
 */
struct ds_accel_candidate {
    uint32_t struct_size;
    uint32_t state;        /**< DS_ACCEL_STATE_* */
    uint32_t device_count; /**< valid in the states AVAILABLE and SELECTED */
    uint32_t reserved;
    uint64_t elapsed_us; /**< time spent on the candidate's gates and probe */
    const char *name;
    const char *path;   /**< "" for a registered backend */
    const char *vendor; /**< "" if the plugin file has no vendor */
    const char *version;
    const char *abi;        /**< ABI version of the plugin, such as "1.1" */
    const char *state_name; /**< name of the state, such as "unavailable" */
    const char
        *reason; /**< stable code, such as "no_device"; "" if SELECTED or if no gate rejected it */
    const char *detail; /**< evidence for the reason, one line */
    const char *remedy; /**< remedy for the user, one line */
    const char *stage;  /**< the last gate reached, such as "probe" */
};

/** Return the number of candidates; 0 for NULL. */
DS_ACCEL_EXPORT uint32_t ds_accel_candidate_count(ds_accel_t *context);

/** Return the candidate at a position of the detection order, from 0.
 * @return DS_ACCEL_OK; ERR_INVALID NULL, or @p position is not below ds_accel_candidate_count();
 * ERR_STATE a thread of the parent process was changing the context during fork(); ERR_NO_MEMORY */
DS_ACCEL_EXPORT int32_t ds_accel_candidate_get(ds_accel_t *context, uint32_t position,
                                               struct ds_accel_candidate *candidate_out);

/* ---- ops ------------------------------------------------------------------------------------ */

struct ds_accel_op; /* ds-accel/ops/op.h */

/**
 * Load a native op for the chosen accelerator; detects the accelerator if that was not done yet.
 *
 * The file is searched in "ds-accel/ops" beside the library, then in "ops" of the directory of
 * vendors' plugins: first <backend>/<op>.so, an op for this backend only, then <op>.so, whose code
 * runs on the host for any backend. It must pass the checks of a plugin's file (owners and modes of
 * the path, ELF header) and have the note of its op.
 *
 * If there is none, but the configuration has a recipe of it ("kernels"), the file is searched in
 * the caches of built ops, the system's first, and else built, which takes seconds to minutes. One
 * process of a host builds, the others wait. DS_ACCEL_CACHE=ro or off prevents building.
 *
 * At level info, the file, where it was found and the op's code path are logged. The op itself
 * reads DS_ACCEL_OPS_ISA, so DS_ACCEL_OPTION_NO_ENVIRONMENT does not concern this variable.
 *
 * @param[in]  name    a builder of the accelerator's table, "CPUAdamBuilder", or an op, "cpu_adam"
 * @param[out] op_out  the op's table; cast it to the type of ds-accel/ops/<op>.h. Stays loaded
 * @return DS_ACCEL_OK; ERR_NOT_FOUND the accelerator has no such builder or op; ERR_UNSUPPORTED
 *         there is no kernel for it, and it cannot be built; ERR_NOT_USABLE the file is rejected or
 *         cannot be loaded, or the build failed, of which `ds-accel ops build` shows more;
 *         ERR_CONFIG; ERR_ABI it is built for another generation of ops; ERR_INVALID NULL; the
 *         status of ds_accel_detect(); ERR_LIMIT; ERR_NO_MEMORY
 * @threads any
 * @source DeepSpeed op_builder/builder.py, OpBuilder.load()
 */
DS_ACCEL_EXPORT int32_t ds_accel_op_load(ds_accel_t *context, const char *name,
                                         const struct ds_accel_op **op_out);

/* ---- reports of the command line ------------------------------------------------------------ */

/* libds_accel_tools.so makes the reports from DOCTOR on, and every text and picture:
 * ds_accel_tools.h explains how a program links it beside this library. */
#define DS_ACCEL_REPORT_DETECT 1u     /**< the choice and every candidate */
#define DS_ACCEL_REPORT_LIST 2u       /**< every plugin found */
#define DS_ACCEL_REPORT_INFO 3u       /**< all known properties of an accelerator */
#define DS_ACCEL_REPORT_EXPLAIN 4u    /**< each candidate, gate by gate */
#define DS_ACCEL_REPORT_ENV 5u        /**< env workarounds: JSON, or shell lines for eval */
#define DS_ACCEL_REPORT_CONFIG 6u     /**< the merged configuration with origins */
#define DS_ACCEL_REPORT_CONFIG_ENV 7u /**< every DS_* variable: value, origin, meaning */
#define DS_ACCEL_REPORT_DOCTOR 8u     /**< problems on this machine, and their remedies */
#define DS_ACCEL_REPORT_CACHE 9u      /**< stored verdicts */
#define DS_ACCEL_REPORT_QUARANTINE \
    10u /**< plugins that crashed or hung, and until when each is skipped */
#define DS_ACCEL_REPORT_TOPO \
    11u /**< devices, network interfaces and NUMA nodes, and their distances: also SVG */
#define DS_ACCEL_REPORT_BUNDLE 12u /**< all other reports together, for support: JSON only */
/** a record of this machine for ds_accel_options.machine_file: JSON only; no other thread may use
 * the context while the report is made */
#define DS_ACCEL_REPORT_RECORDING 13u
#define DS_ACCEL_REPORT_MEMORY 16u /**< current memory of an accelerator's devices: JSON or SVG */

#define DS_ACCEL_FORMAT_JSON 1u
#define DS_ACCEL_FORMAT_COLOUR 2u /**< text with ANSI colours */
/** text with details that are otherwise left out, such as skipped gates */
#define DS_ACCEL_FORMAT_VERBOSE 4u
#define DS_ACCEL_FORMAT_UNREDACTED \
    16u /**< with the names of host and user, the home directory and addresses; BUNDLE only */
#define DS_ACCEL_FORMAT_SVG 8u /**< a picture; MEMORY and TOPO only */

/**
 * Write a report.
 *
 * @param[in]  report    DS_ACCEL_REPORT_*
 * @param[in]  name      a backend; NULL: all backends, or for INFO, ENV and MEMORY the chosen
 *                        backend. TOPO: backends, separated by commas; NULL: the forced backend,
 *                        or, if none is forced, the usable backends
 * @param[in]  format    DS_ACCEL_FORMAT_* bits; 0 is plain text
 * @param[out] text_out  ends in a newline unless empty
 * @return DS_ACCEL_OK; ERR_NOT_FOUND @p name is not known; the status of ds_accel_detect() when the
 *         report needs the choice; ERR_NO_MEMORY. DETECT, EXPLAIN, DOCTOR and BUNDLE are written
 *         even if detection fails; only DETECT then returns the status of ds_accel_detect().
 *         ERR_STATE DOCTOR found a problem; the report is written too. ERR_STATE with nothing
 *         written: as ds_accel_detect() returns it after fork(). ERR_INVALID NULL, or MEMORY as
 *         text. ERR_NOT_USABLE MEMORY of a recorded machine. ERR_UNSUPPORTED the report or its text
 *         needs libds_accel_tools.so, which is not loaded; nothing was detected
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_report(ds_accel_t *context, uint32_t report, const char *name,
                                        uint32_t format, char **text_out);

/**
 * Validate every configuration file that a context with these options would read.
 *
 * @param[in]  format    DS_ACCEL_FORMAT_*
 * @param[out] text_out  the verdict; written for ERR_CONFIG too
 * @return DS_ACCEL_OK; ERR_CONFIG problems were found; ERR_UNSUPPORTED text without
 *         libds_accel_tools.so; ERR_INVALID NULL, or invalid options; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_config_check(const struct ds_accel_options *options,
                                              uint32_t format, char **text_out);

/**
 * Validate these files instead of the files that a context would read. The files of packages are
 * read, too, because they declare options.
 *
 * @param[in]  paths     files, and directories whose .json files are validated
 * @param[in]  texts     texts[count], or NULL; an element that is not NULL is used as the contents
 *                       of the file, and the element of @p paths is only a name
 * @param[out] text_out  the verdict; written for ERR_CONFIG too
 * @return as ds_accel_config_check(); a file that cannot be read is a problem; ERR_INVALID also if
 *         an element of @p paths is NULL
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_config_check_files(const struct ds_accel_options *options,
                                                    const char *const *paths,
                                                    const char *const *texts, uint32_t count,
                                                    uint32_t format, char **text_out);

/** Release a text that this library made; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_free_text(char *text);

/* ---- memory snapshots ----------------------------------------------------------------------- */

#define DS_ACCEL_SNAPSHOT_JSON 1u   /**< conf/schema/memory-snapshot.json */
#define DS_ACCEL_SNAPSHOT_SVG 2u    /**< a picture of segments, blocks and the recorded history */
#define DS_ACCEL_SNAPSHOT_PICKLE 3u /**< for torch's memory viewer, torch 2.0 and newer */
#define DS_ACCEL_SNAPSHOT_TEXT 4u   /**< a table for terminals */
/** only the list of segments, for torch's memory viewer before torch 2.0 */
#define DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS 5u

/** Release data that this library made; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_free_data(void *data);

/* ---- devices -------------------------------------------------------------------------------- */

/** An ordered queue of a device's work: copies, fills, host tasks, graphs, a program's kernels. */
typedef struct ds_accel_stream ds_accel_stream_t;
/**
 * A mark in a stream, reached when all work queued before it is complete. Other streams and the
 * host can wait for it, and two events measure time.
 */
typedef struct ds_accel_event ds_accel_event_t;
/** Work that was captured once and is replayed as a whole. */
typedef struct ds_accel_graph ds_accel_graph_t;
/** A private pool of memory: memory that this pool allocated is reused only for this pool. */
typedef struct ds_accel_pool ds_accel_pool_t;

/*
 * For handles of all kinds: a call with a destroyed handle returns DS_ACCEL_ERR_INVALID until the
 * handle's memory has been reused many times; a call with NULL returns DS_ACCEL_ERR_INVALID. In a
 * child forked after ds_accel_detect() every call on a device, or on an object of a device, returns
 * DS_ACCEL_ERR_STATE at once, except calls that only read a handle: reading a tensor's properties,
 * and making views of a tensor.
 */

/** Return the number of devices of the chosen accelerator.
 * @return DS_ACCEL_OK; ERR_STATE before ds_accel_detect(); what the plugin returns */
DS_ACCEL_EXPORT int32_t ds_accel_device_count(ds_accel_t *context, uint32_t *count_out);

/**
 * Return the name that frameworks use: "cuda", or with an index "cuda:1". A backend whose devices
 * frameworks do not number (cpu) has one name for all devices.
 *
 * @param[in]  device_index  an index, or -1 for the name without an index
 * @param[out] name          NUL-terminated, at least name_size bytes
 * @return DS_ACCEL_OK; ERR_INVALID index out of range or the name does not fit; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_name(ds_accel_t *context, int32_t device_index, char *name,
                                             size_t name_size);

/**
 * Find a device by name: "cuda:1", "1", a UUID, or a PCI address ("0000:65:00.0", "65:00.0"). The
 * backend's name without an index is the calling thread's current device.
 *
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no device has that name; ERR_INVALID NULL, or two devices have
 *         that name; ERR_STATE before ds_accel_detect()
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_find(ds_accel_t *context, const char *name,
                                             uint32_t *device_index_out);

/**
 * Return the index of the calling thread's current device. For cpu it is LOCAL_RANK until a device
 * is set.
 * @source DeepSpeed current_device()
 */
DS_ACCEL_EXPORT int32_t ds_accel_current_device(ds_accel_t *context, uint32_t *device_index_out);

/**
 * Make a device the calling thread's current device, for this library and for the vendor's runtime.
 * The call opens the device like ds_accel_device_get().
 *
 * @return DS_ACCEL_OK; ERR_INVALID index out of range; ERR_STATE; the status of
 *         ds_accel_device_open()
 * @threads any; each thread has its own current device
 * @source DeepSpeed set_device()
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_device(ds_accel_t *context, uint32_t device_index);

/** Return the name of the current device, like ds_accel_device_name(): "cuda:1".
 * @source DeepSpeed current_device_name() */
DS_ACCEL_EXPORT int32_t ds_accel_current_device_name(ds_accel_t *context, char *name,
                                                     size_t name_size);

/**
 * Open a device. Opening it again returns the same handle; each opening is closed once.
 * @return DS_ACCEL_OK; ERR_INVALID index out of range; ERR_STATE before ds_accel_detect(); what the
 *         plugin returns
 * @threads any
 * @owner  caller; release with ds_accel_device_close() before the context
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_open(ds_accel_t *context, uint32_t device_index,
                                             ds_accel_device_t **device_out);

/** Close a device; each opening needs one close. The last close destroys the device's remaining
 * streams, events, graphs and memory. While tensors use memory of the device, it stays open. NULL
 * is ignored. */
DS_ACCEL_EXPORT void ds_accel_device_close(ds_accel_device_t *device);

/** Return the handle of a device. The first call opens the device, which then stays open until the
 * context is destroyed. */
DS_ACCEL_EXPORT int32_t ds_accel_device_get(ds_accel_t *context, uint32_t device_index,
                                            ds_accel_device_t **device_out);

/** Return the index with which the device was opened; UINT32_MAX for NULL and for a closed
 * device. */
DS_ACCEL_EXPORT uint32_t ds_accel_device_index(const ds_accel_device_t *device);

/** Return the device's identity, without opening or waking the device.
 * @param[out] identity_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_device_identity(ds_accel_t *context, uint32_t device_index,
                                                 struct ds_accel_device_identity *identity_out);

/**
 * Return the plugin's table of functions and its instance, for calls without a device: identity,
 * telemetry, links, pointer attributes. Every function of the table can be called.
 * @return DS_ACCEL_OK; ERR_STATE before ds_accel_detect()
 * @owner  borrowed; valid as long as the context
 */
DS_ACCEL_EXPORT int32_t ds_accel_instance(ds_accel_t *context,
                                          const struct ds_accel_plugin **table_out,
                                          ds_accel_plugin_instance_t **instance_out);

/* ---- streams -------------------------------------------------------------------------------- */

/**
 * Make a stream.
 *
 * @param[in] flags     DS_ACCEL_STREAM_*
 * @param[in] priority  within ds_accel_stream_priority_range(); lower numbers run first
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_UNSUPPORTED the backend has no streams; ERR_NO_MEMORY; what
 *         the plugin returns
 * @threads any   @owner caller; release with ds_accel_stream_destroy()
 * @source DeepSpeed Stream
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_create(ds_accel_device_t *device, uint32_t flags,
                                               int32_t priority, ds_accel_stream_t **stream_out);

/** Destroy a stream; its queued work still completes. NULL is ignored, as are streams that
 * ds_accel_default_stream() and ds_accel_current_stream() returned but the program neither created
 * nor wrapped. */
DS_ACCEL_EXPORT void ds_accel_stream_destroy(ds_accel_stream_t *stream);

/** Return the range of priorities.
 * @param[out] least_out the lowest priority
 * @param[out] greatest_out the highest priority, a number <= *least_out */
DS_ACCEL_EXPORT int32_t ds_accel_stream_priority_range(ds_accel_device_t *device,
                                                       int32_t *least_out, int32_t *greatest_out);

/** Return the device's default stream.
 * @owner borrowed; valid until the device is closed
 * @source DeepSpeed default_stream() */
DS_ACCEL_EXPORT int32_t ds_accel_default_stream(ds_accel_device_t *device,
                                                ds_accel_stream_t **stream_out);

/**
 * Return the calling thread's current stream of the device. It is the default stream until another
 * stream is set, and again after that stream is destroyed.
 * @owner borrowed   @source DeepSpeed current_stream()
 */
DS_ACCEL_EXPORT int32_t ds_accel_current_stream(ds_accel_device_t *device,
                                                ds_accel_stream_t **stream_out);

/**
 * Make a stream its device's current stream for the calling thread. To restore the previous stream,
 * set the stream that ds_accel_current_stream() returned before.
 * @source DeepSpeed stream(), set_stream()
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_current_stream(ds_accel_stream_t *stream);

/** Make later work of @p stream wait, on the device, for all work now queued on @p other. */
DS_ACCEL_EXPORT int32_t ds_accel_stream_wait_stream(ds_accel_stream_t *stream,
                                                    ds_accel_stream_t *other);

/**
 * Wrap a stream of the vendor's own runtime (cudaStream_t, hipStream_t ...) in a handle of this
 * library.
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED; ERR_INVALID; ERR_NO_MEMORY; what the plugin returns
 * @owner  @p native still belongs to the caller; ds_accel_stream_destroy() destroys only the handle
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_wrap(ds_accel_device_t *device, uint64_t native,
                                             ds_accel_stream_t **stream_out);

/** Return the vendor's handle of a stream. @owner borrowed */
DS_ACCEL_EXPORT int32_t ds_accel_stream_native(ds_accel_stream_t *stream, uint64_t *native_out);

/** Return the device that a stream belongs to; NULL for NULL and for a destroyed stream. */
DS_ACCEL_EXPORT ds_accel_device_t *ds_accel_stream_device(const ds_accel_stream_t *stream);

/* ---- events --------------------------------------------------------------------------------- */

/**
 * Make an event.
 *
 * @param[in] flags  DS_ACCEL_EVENT_*: without TIMING the event measures no time, and recording is
 *                   cheaper
 * @threads any   @owner caller; release with ds_accel_event_destroy()
 * @source DeepSpeed Event
 */
DS_ACCEL_EXPORT int32_t ds_accel_event_create(ds_accel_device_t *device, uint32_t flags,
                                              ds_accel_event_t **event_out);
/** Destroy an event. Streams and threads that already wait for it continue to wait for the recorded
 * work. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_event_destroy(ds_accel_event_t *event);

/**
 * Return the milliseconds between two events of one device, measured on the device.
 * @return DS_ACCEL_OK; ERR_STATE an event was created without timing, was never recorded, is not
 *         reached yet, or was recorded in a capture; ERR_INVALID
 */
DS_ACCEL_EXPORT int32_t ds_accel_event_elapsed_ms(ds_accel_event_t *start, ds_accel_event_t *end,
                                                  double *elapsed_ms_out);

/* ---- graphs --------------------------------------------------------------------------------- */

/**
 * Create an empty graph of the device, to capture into.
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED the backend has no graphs; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_graph_destroy()
 * @source DeepSpeed create_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_create(ds_accel_device_t *device,
                                              ds_accel_graph_t **graph_out);
/**
 * Destroy a graph. Memory used only by this graph is freed in stream order on the capture stream.
 * If the graph was replayed on other streams, this call waits for the latest of these replays;
 * where it cannot wait, the memory is kept until the device is closed, and the library logs a
 * warning. Some backends (xpu) also wait for a replay on the capture stream. NULL is ignored.
 *
 * If the graph is being captured, the capture ends. In a mode other than RELAXED only the thread
 * that began the capture can end it; if another thread destroys the graph, the capture continues
 * until its stream is destroyed, its memory is kept until the device is closed, and the library
 * logs a warning.
 */
DS_ACCEL_EXPORT void ds_accel_graph_destroy(ds_accel_graph_t *graph);

/**
 * Begin a capture: from now on work queued on @p stream is recorded in the graph instead of
 * executed. The graph's earlier contents are dropped.
 *
 * @param[in] pool  source of memory allocated during the capture; NULL: a private pool of the
 *                  graph. This memory is not used for anything else while the graph exists.
 * @param[in] mode  DS_ACCEL_CAPTURE_*
 * @return DS_ACCEL_OK; ERR_STATE the stream already captures or is the default stream, or the graph
 *         is being captured; ERR_INVALID; what the plugin returns, such as ERR_UNSUPPORTED for a
 *         mode
 * @source DeepSpeed capture_to_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_capture_begin(ds_accel_graph_t *graph,
                                                     ds_accel_stream_t *stream,
                                                     ds_accel_pool_t *pool, uint32_t mode);

/** End the capture.
 * @return DS_ACCEL_OK; ERR_STATE in three cases: no capture was begun, or the capture was broken,
 * perhaps by destroying its stream (the graph is then empty), or another thread began the capture
 * in a mode other than RELAXED. In the last case the capture may continue, as
 * ds_accel_stream_is_capturing() reports, and the thread that began it can end it */
DS_ACCEL_EXPORT int32_t ds_accel_graph_capture_end(ds_accel_graph_t *graph);

/** Make the graph ready for replay; the first replay does so too. */
DS_ACCEL_EXPORT int32_t ds_accel_graph_instantiate(ds_accel_graph_t *graph);

/**
 * Queue the whole graph on a stream.
 * @param[in] stream  NULL: the calling thread's current stream
 * @return DS_ACCEL_OK; ERR_STATE nothing was captured; what the plugin returns
 * @source DeepSpeed replay_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_replay(ds_accel_graph_t *graph, ds_accel_stream_t *stream);

/**
 * Return whether work queued on a stream is captured now, because a capture began on the stream, or
 * because the stream waited for an event of a capture.
 *
 * @param[out] capturing_out  DS_ACCEL_CAPTURING_NO, _YES, or _BROKEN: the end of the capture will
 *                            return no graph
 * @return DS_ACCEL_OK, also for a backend without graphs; ERR_INVALID; ERR_STATE in a forked child
 * @threads any
 * @source torch.cuda.is_current_stream_capturing()
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_is_capturing(ds_accel_stream_t *stream,
                                                     uint32_t *capturing_out);

/** Return the number of nodes of the captured graph.
 * @return DS_ACCEL_OK; ERR_STATE nothing was captured; ERR_UNSUPPORTED */
DS_ACCEL_EXPORT int32_t ds_accel_graph_node_count(ds_accel_graph_t *graph, uint64_t *count_out);

/** Return a description of the graph as text, in Graphviz format if the vendor supports it.
 * @return DS_ACCEL_OK; ERR_STATE nothing was captured; ERR_UNSUPPORTED; ERR_NO_MEMORY
 * @owner caller; ds_accel_free_text() */
DS_ACCEL_EXPORT int32_t ds_accel_graph_dump(ds_accel_graph_t *graph, char **text_out);

/* ---- memory --------------------------------------------------------------------------------- */

/**
 * Allocate device memory from the caching allocator, for use in the order of @p stream.
 *
 * @param[in]  stream       stream of first use; NULL: the calling thread's current stream
 * @param[in]  size_bytes   > 0; rounded up to 512 bytes
 * @param[out] pointer_out  512-byte aligned device address; contents undefined
 * @return DS_ACCEL_OK; ERR_INVALID size 0, or a stream of another device; ERR_NO_MEMORY after one
 *         retry with an empty cache, and the retries that a ds_accel_memory_failure_t requests,
 *         with the sizes in ds_accel_last_error(); ERR_DRIVER
 * @threads any; takes the lock of the stream's arena in the allocator
 * @owner  caller; release with ds_accel_mem_free()
 * @source DeepSpeed accelerator/abstract_accelerator.py, memory API
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                           uint64_t size_bytes, void **pointer_out);

/** Allocate memory like ds_accel_mem_alloc(), aligned to @p align_bytes, a power of two up to 1
 * GiB. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc_aligned(ds_accel_device_t *device,
                                                   ds_accel_stream_t *stream, uint64_t size_bytes,
                                                   uint64_t align_bytes, void **pointer_out);

/**
 * Free memory in stream order: after the work now queued on the streams that use the memory. The
 * call returns at once, and the allocator may reuse the memory at once. On the same stream no wait
 * is needed; another stream first waits, on the device, for that work.
 *
 * @param[in] stream  the stream of the last work that uses the memory; NULL: the stream that the
 *                    memory was allocated on
 * @return DS_ACCEL_OK, also for NULL; ERR_INVALID @p pointer is not the start of live memory of
 *         this device: it was freed before, is inside an allocation or is of another device; with
 *         the allocator's mode "debug", also if the program wrote past the end of this memory, or
 *         wrote to other memory after it was freed. ERR_DRIVER the allocator can't wait for a
 *         stream that used the memory, and therefore never reuses the memory
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_free(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                          void *pointer);

/**
 * Record that another stream also uses memory of ds_accel_mem_alloc() or
 * ds_accel_mem_alloc_pinned(): the memory is reused only after the work queued on that stream when
 * the memory is freed.
 * @param[in] stream  NULL: the calling thread's current stream
 * @source torch.Tensor.record_stream
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_record_stream(ds_accel_device_t *device, void *pointer,
                                                   ds_accel_stream_t *stream);

/**
 * Allocate page-locked host memory, from a pool of freed blocks.
 *
 * @param[in] align_bytes  0: the page size, for direct I/O; 1: the runtime's own alignment; else a
 *                         power of 2
 * @param[in] flags        DS_ACCEL_PINNED_*
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_LIMIT with the limit's name and size, after one retry with
 *         an empty pool; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_mem_free_pinned()
 * @source DeepSpeed pin_memory(align_bytes)
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc_pinned(ds_accel_device_t *device, uint64_t size_bytes,
                                                  uint64_t align_bytes, uint32_t flags,
                                                  void **pointer_out);

/**
 * Return pinned memory to the pool, without waiting. The pool reuses the memory, or returns it to
 * the runtime, only after all work that the streams of this context have queued so far on any open
 * device, so that the caller need not wait for copies from and to the memory. Streams without a
 * handle of this library are not included; ds_accel_stream_wrap() makes a handle. Memory that a
 * graph uses must outlive the graph's replays.
 * @return DS_ACCEL_OK, also for NULL; ERR_INVALID not the start of live pinned memory of this
 * device
 * @threads any
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_free_pinned(ds_accel_device_t *device, void *pointer);

/** Page-lock and unlock memory of the caller. Unlocking does not wait: the caller first waits for
 * the work queued on the memory, as before freeing the memory itself. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_register(ds_accel_device_t *device, void *pointer,
                                              uint64_t size_bytes, uint32_t flags);
DS_ACCEL_EXPORT int32_t ds_accel_mem_unregister(ds_accel_device_t *device, void *pointer);

/** Describe an address: device, pinned, managed or unknown memory; its device; and the allocation
 * around it. @param[out] info_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_mem_pointer_info(ds_accel_t *context, const void *pointer,
                                                  struct ds_accel_pointer_info *info_out);

/** Set *is_pinned_out to 1 if the host address is in page-locked memory, else to 0; also to 0 if
 * the memory was returned to the pool by ds_accel_mem_free_pinned().
 * @source DeepSpeed is_pinned() */
DS_ACCEL_EXPORT int32_t ds_accel_is_pinned(ds_accel_t *context, const void *pointer,
                                           uint32_t *is_pinned_out);

/**
 * Copy memory; the copy is complete on return. The copy is not ordered after the work of any
 * stream: the caller synchronizes first.
 *
 * @param[in] kind  DS_ACCEL_COPY_*
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_copy(ds_accel_device_t *device, void *destination,
                                          const void *source, uint64_t size_bytes, uint32_t kind);

/** Set every byte of memory to @p value, after the work queued on the calling thread's current
 * stream of the device, and wait for completion. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_set(ds_accel_device_t *device, void *destination,
                                         uint8_t value, uint64_t size_bytes);

/** Copy between two devices of the backend, queued on @p stream. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_copy_peer_async(ds_accel_stream_t *stream,
                                                     ds_accel_device_t *destination_device,
                                                     void *destination,
                                                     ds_accel_device_t *source_device,
                                                     const void *source, uint64_t size_bytes);

/* ---- memory: the caching allocator ---------------------------------------------------------- */

/**
 * A callback for exhausted memory, called after the cache was emptied: it frees memory, for example
 * by moving data to the host, and requests a retry of the allocation. It runs on the allocating
 * thread, without a lock of this library, and may call this library, also to free memory of this
 * device. An allocation inside the callback fails without a nested call of the callback.
 *
 * @param size_bytes  size of the request
 * @param attempt     from 1; at most 16 calls
 * @return > 0: try the allocation again; otherwise the allocation fails
 */
typedef int32_t (*ds_accel_memory_failure_t)(void *user_data, ds_accel_device_t *device,
                                             uint64_t size_bytes, uint32_t attempt);

/** Return the bytes in this process's live allocations on this device, each counted with its
 * rounded size.
 * @source DeepSpeed memory_allocated() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_allocated(ds_accel_device_t *device, uint64_t *bytes_out);
/** Return the exact peak of ds_accel_memory_allocated() since the last reset. */
DS_ACCEL_EXPORT int32_t ds_accel_max_memory_allocated(ds_accel_device_t *device,
                                                      uint64_t *bytes_out);
/** Return the bytes obtained from the driver, whether allocated or cached.
 * @source DeepSpeed memory_cached(), memory_reserved() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_reserved(ds_accel_device_t *device, uint64_t *bytes_out);
DS_ACCEL_EXPORT int32_t ds_accel_max_memory_reserved(ds_accel_device_t *device,
                                                     uint64_t *bytes_out);

/** Set all peaks of the device's memory statistics to the current values. */
DS_ACCEL_EXPORT int32_t ds_accel_reset_peak_memory_stats(ds_accel_device_t *device);
/** Set the peaks of allocations to the current values. */
DS_ACCEL_EXPORT int32_t ds_accel_reset_max_memory_allocated(ds_accel_device_t *device);
/** Set the peaks of memory obtained from the driver to the current values.
 * @source DeepSpeed reset_max_memory_cached() */
DS_ACCEL_EXPORT int32_t ds_accel_reset_max_memory_reserved(ds_accel_device_t *device);

/** Return how much memory of the device this process can use at most: the device's memory, or a
 * lower limit that the machine sets. */
DS_ACCEL_EXPORT int32_t ds_accel_total_memory(ds_accel_device_t *device, uint64_t *bytes_out);
/** Return the bytes that can be allocated now: the driver's free memory, up to the allocator's
 * limit, plus the cached segments that are free as a whole; at most ds_accel_total_memory(). A
 * single allocation may have to be smaller, because it needs one contiguous piece. */
DS_ACCEL_EXPORT int32_t ds_accel_available_memory(ds_accel_device_t *device, uint64_t *bytes_out);

/**
 * Return one statistic by its name in torch.cuda.memory_stats().
 *
 * @param[in]  key        "allocated_bytes.all.current"
 * @param[out] value_out  bytes or a count
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no such name; the error contains the nearest name; ERR_INVALID
 * @threads any; the statistics are consistent, and do not include operations that have not returned
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_stat(ds_accel_device_t *device, const char *key,
                                             int64_t *value_out);

/** Return all statistics as one JSON object.
 * @owner caller; ds_accel_free_text()
 * @source DeepSpeed memory_stats() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_stats(ds_accel_device_t *device, char **json_text_out);

/**
 * Return the fraction of the cached memory that is outside its largest piece: 0 if the memory is
 * one piece; nearer to 1 with more and smaller pieces.
 *
 * @param[out] fragmentation_out  1 - largest / cached; 0 if nothing is cached
 * @param[out] largest_bytes_out  the largest piece, with adjacent free pieces counted as one; a
 *             larger request is passed to the driver
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_fragmentation(ds_accel_device_t *device,
                                                      double *fragmentation_out,
                                                      uint64_t *largest_bytes_out);

/**
 * Return cached memory to the driver, after the work that used the memory is done. Memory of
 * private pools stays cached; while a stream captures, all memory stays cached.
 * @source DeepSpeed empty_cache()
 */
DS_ACCEL_EXPORT int32_t ds_accel_empty_cache(ds_accel_device_t *device);
/** Return cached memory to the driver until at most keep_bytes are held from it; the memory that
 * has been unused the longest is returned first. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_trim(ds_accel_device_t *device, uint64_t keep_bytes);

/** Limit the memory that the allocator obtains from the driver to limit_bytes; 0: no limit. Memory
 * that it already has is not returned. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_limit(ds_accel_device_t *device, uint64_t limit_bytes);
/** Set the limit as a fraction of the device's memory.
 * @return also ERR_INVALID unless 0 < fraction <= 1
 * @source torch.cuda.set_per_process_memory_fraction */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_fraction(ds_accel_device_t *device, double fraction);

/** Set the callback to call before an allocation fails; NULL: none. When this call returns, another
 * thread may still run the previous callback: keep the previous user_data valid until the previous
 * callback has returned. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_failure_callback(ds_accel_device_t *device,
                                                             ds_accel_memory_failure_t callback,
                                                             void *user_data);

#define DS_ACCEL_HISTORY_OFF 0u
#define DS_ACCEL_HISTORY_ON 1u
#define DS_ACCEL_HISTORY_STACKS 2u /**< record call stacks too, which is slower */

/**
 * Record the latest allocations and frees of the device, for ds_accel_memory_snapshot().
 *
 * @param[in] flags        DS_ACCEL_HISTORY_*; OFF ends the recording. Every call drops the
 *                         entries recorded so far
 * @param[in] max_entries  maximum number of entries; older entries are dropped
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_record_history(ds_accel_device_t *device, uint32_t flags,
                                                       uint64_t max_entries);

/**
 * Make a snapshot of the memory: segments, blocks, statistics, and the recorded history.
 *
 * @param[in]  context         the snapshot covers all its open devices; ignored if @p device is not
 *                             NULL
 * @param[in]  device          the snapshot covers only this device; or NULL
 * @param[in]  format          DS_ACCEL_SNAPSHOT_*
 * @param[out] data_out        the data, followed by a NUL that is not counted
 * @param[out] size_bytes_out  size of the data without the NUL
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_STATE in a forked child; ERR_NO_MEMORY
 * @threads any; holds the allocator's locks during the call
 * @owner  caller; release with ds_accel_free_data()
 * @source torch.cuda.memory_snapshot
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_snapshot(ds_accel_t *context, ds_accel_device_t *device,
                                                 uint32_t format, void **data_out,
                                                 size_t *size_bytes_out);

/**
 * Create a private pool: memory allocated from the pool shares no segment with other memory, and
 * stays held until the pool and every graph captured with it are destroyed.
 * @return DS_ACCEL_OK; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_pool_destroy()
 * @source torch.cuda.graph_pool_handle, MemPool
 */
DS_ACCEL_EXPORT int32_t ds_accel_pool_create(ds_accel_device_t *device, ds_accel_pool_t **pool_out);
/** Destroy a pool; memory allocated from it stays valid. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_pool_destroy(ds_accel_pool_t *pool);
/** Make this thread's allocations on the pool's device come from the pool, until
 * ds_accel_pool_end().
 * @return DS_ACCEL_OK; ERR_STATE the thread already allocates from a pool */
DS_ACCEL_EXPORT int32_t ds_accel_pool_begin(ds_accel_pool_t *pool);
DS_ACCEL_EXPORT int32_t ds_accel_pool_end(ds_accel_pool_t *pool);

/* ---- layers --------------------------------------------------------------------------------- */

/*
 * Layers are functions between the program and the plugin. DS_ACCEL_LAYERS, or "layers" in the
 * configuration, turns them on; while no layer is on, they have no cost. Layer "validate" checks
 * program and plugin at every call; "race", which "validate" includes, looks for unordered
 * accesses; "leak" reports objects that are still live at the end; "trace" writes a file for
 * browsers' trace viewers.
 */

#define DS_ACCEL_ACCESS_READ 1u
#define DS_ACCEL_ACCESS_WRITE 2u

/**
 * Return the number of races found, that is, of pairs of call sites with unordered accesses.
 * @return DS_ACCEL_OK; ERR_STATE layer race is not on; ERR_INVALID NULL
 * @threads any
 */
DS_ACCEL_EXPORT int32_t ds_accel_race_count(ds_accel_t *context, uint64_t *count_out);

/**
 * Return the findings of a layer as text: one line per race, or per kind of live object.
 *
 * @param[in]  layer     "race" or "leak"
 * @param[out] text_out  "" if there are no findings
 * @return DS_ACCEL_OK; ERR_STATE the layer is not on; ERR_NOT_FOUND there is no such layer, or it
 *         has no report; ERR_INVALID NULL; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_layer_report(ds_accel_t *context, const char *layer,
                                              char **text_out);

/* Internal; public only because the inline function below uses them. */
DS_ACCEL_EXPORT extern uint32_t ds_accel__layers_on; /* number of accelerators that have layers */
DS_ACCEL_EXPORT int32_t ds_accel__layer_note_access(ds_accel_device_t *device,
                                                    ds_accel_stream_t *stream, const void *pointer,
                                                    uint64_t size_bytes, uint32_t access);

/**
 * Report an access that the race detector cannot see: by a kernel that the program has just queued
 * on @p stream, or by host code. If no layer is on, the call is one load and one branch.
 *
 * @param[in] device   the device of the memory; for host memory, any device
 * @param[in] stream   the stream of the kernel; NULL: the calling thread, or the host task that
 *                     makes this call, accesses the memory now
 * @param[in] pointer  start of the @p size_bytes bytes accessed; if @p size_bytes is 0, there is no
 *                     access
 * @param[in] access   DS_ACCEL_ACCESS_READ or DS_ACCEL_ACCESS_WRITE
 * @return DS_ACCEL_OK, without any check, when no layer is on; ERR_INVALID @p device or @p stream
 *         is not a live handle, the range or @p access is invalid, or the stream is of another
 *         context; with layer validate, also if the memory was freed, or no allocator allocated it;
 *         ERR_STATE in a forked child, or, if the configuration sets validate.races to "fail", if
 *         the access races: the access is then not recorded
 * @threads any; the only call of this library that a host task may make
 */
DS_ACCEL_HOT int32_t ds_accel_note_access(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                          const void *pointer, uint64_t size_bytes,
                                          uint32_t access);
#ifndef DS_ACCEL_NO_INLINE
DS_ACCEL_HOT int32_t ds_accel_note_access(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                          const void *pointer, uint64_t size_bytes, uint32_t access)
{
    return __builtin_expect(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) == 0, 1)
               ? DS_ACCEL_OK
               : ds_accel__layer_note_access(device, stream, pointer, size_bytes, access);
}
#endif

/* ---- random numbers ------------------------------------------------------------------------- */

/** A sequence of random numbers on a device: Philox4x32-10, the same on every backend. */
typedef struct ds_accel_rng ds_accel_rng_t;

/**
 * Use the vendor's generator of the device (the plugin's rng functions) instead of Philox. The
 * vendor defines its numbers. A device has only one vendor's generator: two generators with this
 * flag share it.
 */
#define DS_ACCEL_RNG_VENDOR 1u

/** A position in the sequence of a seed: 2^64 subsequences of 2^64 blocks of 4 words of 32 bits. */
struct ds_accel_rng_position {
    uint32_t struct_size;
    uint32_t word; /**< word of the block, 0 to 3; 4, in block UINT64_MAX, if all words are used */
    uint64_t block;
    uint64_t subsequence; /**< ranks with different subsequences share no number */
};

/**
 * Make a generator.
 *
 * @param[in] flags  0 or DS_ACCEL_RNG_VENDOR
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED the device has no vendor's generator; ERR_INVALID;
 *         ERR_NO_MEMORY
 * @threads any; several threads may use one generator at once, each call is atomic
 * @owner  caller; release with ds_accel_rng_destroy()
 */
DS_ACCEL_EXPORT int32_t ds_accel_rng_create(ds_accel_device_t *device, uint64_t seed,
                                            uint32_t flags, ds_accel_rng_t **rng_out);

/** Destroy a generator; fills that are already queued still complete. NULL and default generators
 * are ignored. */
DS_ACCEL_EXPORT void ds_accel_rng_destroy(ds_accel_rng_t *rng);

/**
 * Return the device's default generator. Its seed is the seed of the last
 * ds_accel_manual_seed_all(), else 67280421310721, the default seed of torch. A device that is
 * closed and opened again gets a new generator.
 * @owner borrowed; valid while the device is open @source DeepSpeed default_generator()
 */
DS_ACCEL_EXPORT int32_t ds_accel_default_rng(ds_accel_device_t *device, ds_accel_rng_t **rng_out);

/** Set the seed, and the position to the beginning of its sequence: subsequence 0, block 0. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_manual_seed(ds_accel_rng_t *rng, uint64_t seed);

/** Set a seed from the kernel's random source, like ds_accel_rng_manual_seed(), and return it.
 * @return also ERR_IO */
DS_ACCEL_EXPORT int32_t ds_accel_rng_seed(ds_accel_rng_t *rng, uint64_t *seed_out);

/** Return the seed that was last set. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_initial_seed(ds_accel_rng_t *rng, uint64_t *seed_out);

/** Return the position in the seed's sequence.
 * @param[out] position_out struct_size set
 * @return also ERR_UNSUPPORTED a vendor's generator */
DS_ACCEL_EXPORT int32_t ds_accel_rng_position(ds_accel_rng_t *rng,
                                              struct ds_accel_rng_position *position_out);
/** Move to a position in the seed's sequence, forwards or backwards, in constant time.
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_UNSUPPORTED a vendor's generator */
DS_ACCEL_EXPORT int32_t ds_accel_rng_set_position(ds_accel_rng_t *rng,
                                                  const struct ds_accel_rng_position *position);

/**
 * Write seed and position as bytes for ds_accel_rng_set_state(). The bytes are equal on every
 * machine.
 *
 * @param[out] state       NULL: only get the size
 * @param[out] needed_out  bytes of the state; written on OK and ERR_LIMIT; may be NULL
 * @return DS_ACCEL_OK; ERR_LIMIT size_bytes is too small, state is unchanged
 */
DS_ACCEL_EXPORT int32_t ds_accel_rng_get_state(ds_accel_rng_t *rng, void *state,
                                               uint64_t size_bytes, uint64_t *needed_out);
/** Set seed and position from a state.
 * @return DS_ACCEL_OK; ERR_INVALID not a state, or damaged, or of another kind of generator: the
 * generator is unchanged */
DS_ACCEL_EXPORT int32_t ds_accel_rng_set_state(ds_accel_rng_t *rng, const void *state,
                                               uint64_t size_bytes);

/**
 * Fill device memory with numbers uniformly distributed in [low, high), queued on @p stream.
 *
 * An element depends only on seed and position, so that filling two halves one after the other has
 * the same result as filling the whole. The position advances by one word per element; for float64
 * and int64, by two words per element, beginning at an even word. Decision 0017 of the sources
 * defines how bits become numbers.
 *
 * @param[in] stream   NULL: the calling thread's current stream
 * @param[in] pointer  count elements, aligned to their size
 * @param[in] dtype    DS_ACCEL_DTYPE_FLOAT64, FLOAT32, FLOAT16 or BFLOAT16
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_STATE the stream captures: a replay would repeat the same
 *         numbers; ERR_LIMIT the subsequence is used up; ERR_NO_MEMORY; ERR_DRIVER. After a failure
 *         the position is unchanged, and the contents of the memory are undefined.
 * @threads any
 */
DS_ACCEL_EXPORT int32_t ds_accel_rng_uniform(ds_accel_rng_t *rng, ds_accel_stream_t *stream,
                                             void *pointer, uint64_t count, uint32_t dtype,
                                             double low, double high);

/** Fill device memory like ds_accel_rng_uniform(), with normally distributed numbers. @p
 * standard_deviation >= 0; a value too large for the type becomes infinity. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_normal(ds_accel_rng_t *rng, ds_accel_stream_t *stream,
                                            void *pointer, uint64_t count, uint32_t dtype,
                                            double mean, double standard_deviation);

/** Fill device memory like ds_accel_rng_uniform(), with random bits: INT32 uses one word per
 * element, INT64 two words, INT16, INT8 and UINT8 the lowest bits of a word, BOOL the highest bit
 * of a word.
 * @return also ERR_UNSUPPORTED a vendor's generator */
DS_ACCEL_EXPORT int32_t ds_accel_rng_bits(ds_accel_rng_t *rng, ds_accel_stream_t *stream,
                                          void *pointer, uint64_t count, uint32_t dtype);

/** Seed the default generator of the calling thread's current device.
 * @source DeepSpeed manual_seed() */
DS_ACCEL_EXPORT int32_t ds_accel_manual_seed(ds_accel_t *context, uint64_t seed);

/** Seed the default generators of all devices, including devices opened later, without opening any
 * device. @source DeepSpeed manual_seed_all() */
DS_ACCEL_EXPORT int32_t ds_accel_manual_seed_all(ds_accel_t *context, uint64_t seed);

/** Call ds_accel_rng_seed() for the current device's default generator.
 * @source torch.cuda.seed() */
DS_ACCEL_EXPORT int32_t ds_accel_seed(ds_accel_t *context, uint64_t *seed_out);

/** Call ds_accel_rng_initial_seed() for the current device's default generator.
 * @source DeepSpeed initial_seed() */
DS_ACCEL_EXPORT int32_t ds_accel_initial_seed(ds_accel_t *context, uint64_t *seed_out);

/** Call ds_accel_rng_get_state() for a device's default generator.
 * @param[in] device_index -1: the current device
 * @source DeepSpeed get_rng_state() */
DS_ACCEL_EXPORT int32_t ds_accel_get_rng_state(ds_accel_t *context, int32_t device_index,
                                               void *state, uint64_t size_bytes,
                                               uint64_t *needed_out);
/** Call ds_accel_rng_set_state() for a device's default generator; parameters as for
 * ds_accel_get_rng_state().
 * @source DeepSpeed set_rng_state() */
DS_ACCEL_EXPORT int32_t ds_accel_set_rng_state(ds_accel_t *context, int32_t device_index,
                                               const void *state, uint64_t size_bytes);

/* ---- tensors -------------------------------------------------------------------------------- */

/**
 * A typed, shaped view of memory: element (i, j ...) is at data + (i * strides[0] + j * strides[1]
 * ...) elements. A tensor never changes. All views of one piece of memory share it, and releasing
 * the last view releases the memory. Tensors are reference-counted: each tensor_out is one
 * reference of the caller, who releases it with ds_accel_tensor_put().
 *
 * While tensors use memory of a device, the device stays open even after its last close, and
 * ds_accel_destroy() of its context takes effect when the last of this memory is released.
 */
typedef struct ds_accel_tensor ds_accel_tensor_t;

#define DS_ACCEL_TENSOR_DIMS_MAX 32

#define DS_ACCEL_PLACE_HOST 1u   /**< ordinary memory of the host */
#define DS_ACCEL_PLACE_PINNED 2u /**< page-locked memory of the host */
#define DS_ACCEL_PLACE_DEVICE 3u

#define DS_ACCEL_TENSOR_READ_ONLY 1u  /**< calls of this library refuse to write to the tensor */
#define DS_ACCEL_TENSOR_CONTIGUOUS 2u /**< elements in row-major order, without gaps */
/** imported; the exporting library reported that the memory is a copy */
#define DS_ACCEL_TENSOR_COPIED 4u

struct ds_accel_tensor_info {
    uint32_t struct_size;
    uint32_t dtype; /**< DS_ACCEL_DTYPE_* */
    uint32_t place; /**< DS_ACCEL_PLACE_* */
    uint32_t flags; /**< DS_ACCEL_TENSOR_* */
    uint32_t ndim;
    int32_t device_index; /**< -1 if the memory belongs to no device */
    uint64_t element_bytes;
    uint64_t element_count;
    void *data;                /**< the first element; NULL if there is none */
    ds_accel_device_t *device; /**< borrowed; NULL if device_index is -1 */
    void *storage;             /**< start of the whole memory that the views share */
    uint64_t storage_bytes;
    int64_t shape[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX]; /**< in elements; any sign */
};

/** Memory of the caller of which ds_accel_tensor_from_memory() makes a tensor. Zero the struct,
 * then set struct_size. */
struct ds_accel_tensor_memory {
    uint32_t struct_size;
    uint32_t dtype;
    uint32_t ndim;
    uint32_t flags; /**< DS_ACCEL_TENSOR_READ_ONLY or 0 */
    void *data;     /**< the first element */
    const int64_t *shape;
    const int64_t *strides; /**< NULL: contiguous */
    /** Called once, on any thread, when no tensor needs the memory any more; may be NULL */
    void (*deleter)(void *user_data);
    void *user_data;
};

/**
 * Make a contiguous tensor in device memory, allocated on the calling thread's current stream. Its
 * contents are undefined.
 *
 * @param[in] ndim   0 (one element) to DS_ACCEL_TENSOR_DIMS_MAX
 * @param[in] shape  shape[ndim]; 0 is a valid size
 * @return DS_ACCEL_OK; ERR_INVALID an invalid dtype, a negative size, or more than 2^63 - 1
 *         bytes in total; the errors of ds_accel_mem_alloc()
 * @threads any, for all tensor calls; several threads may use one tensor at once
 * @owner  caller; release with ds_accel_tensor_put()
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_create(ds_accel_device_t *device, uint32_t dtype,
                                               uint32_t ndim, const int64_t *shape,
                                               ds_accel_tensor_t **tensor_out);

/** Make a contiguous tensor in page-locked host memory.
 * @param[in] align_bytes as ds_accel_mem_alloc_pinned() */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_create_pinned(ds_accel_device_t *device, uint32_t dtype,
                                                      uint32_t ndim, const int64_t *shape,
                                                      uint64_t align_bytes,
                                                      ds_accel_tensor_t **tensor_out);

/** Make a contiguous tensor in ordinary host memory, 64-byte aligned; needs no device. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_create_host(uint32_t dtype, uint32_t ndim,
                                                    const int64_t *shape,
                                                    ds_accel_tensor_t **tensor_out);

/**
 * Make a tensor of existing memory. The deleter is called when the last tensor of the memory is
 * released: the caller first waits for the work queued on the memory.
 *
 * @param[in] device  NULL: the memory is host memory; else the runtime of this device reports
 *                    whether the memory is device memory or pinned memory
 * @return DS_ACCEL_OK; ERR_INVALID, also for memory of another device. After a failure the caller
 *         keeps the memory, and the deleter is not called.
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_from_memory(ds_accel_device_t *device,
                                                    const struct ds_accel_tensor_memory *memory,
                                                    ds_accel_tensor_t **tensor_out);

/** Add a reference. @return the same tensor; NULL for NULL and for a destroyed tensor */
DS_ACCEL_EXPORT ds_accel_tensor_t *ds_accel_tensor_get(ds_accel_tensor_t *tensor);

/** Release a reference. When the last reference to the last tensor of some memory is released, the
 * memory is freed in the order of the streams that use it. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_tensor_put(ds_accel_tensor_t *tensor);

/** Describe a tensor. @param[out] info_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_info(const ds_accel_tensor_t *tensor,
                                             struct ds_accel_tensor_info *info_out);

/** Return the address of the first element; NULL if there is no element, and for NULL.
 * @owner borrowed */
DS_ACCEL_EXPORT void *ds_accel_tensor_data(const ds_accel_tensor_t *tensor);

/**
 * Make a view of the tensor's memory.
 *
 * @param[in] offset   distance of the view's first element from the first element of @p tensor, in
 *                     elements; may be negative
 * @param[in] strides  strides[ndim] in elements; NULL: contiguous
 * @return DS_ACCEL_OK; ERR_INVALID part of the view would be outside the memory, or the shape is
 *         invalid; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_view(ds_accel_tensor_t *tensor, int64_t offset,
                                             uint32_t ndim, const int64_t *shape,
                                             const int64_t *strides,
                                             ds_accel_tensor_t **tensor_out);

/** Make a view of the same elements in the same order with another shape. One size may be -1: it is
 * computed from the others.
 * @return ERR_INVALID also if the view would need a copy: ds_accel_tensor_contiguous() makes a
 * copy */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_reshape(ds_accel_tensor_t *tensor, uint32_t ndim,
                                                const int64_t *shape,
                                                ds_accel_tensor_t **tensor_out);

/** Make a view of the elements start, start + step, ... of one dimension, up to but excluding stop.
 * @return ERR_INVALID unless @p dim is a dimension, 0 <= start <= stop <= size and step > 0 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_slice(ds_accel_tensor_t *tensor, uint32_t dim,
                                              int64_t start, int64_t stop, int64_t step,
                                              ds_accel_tensor_t **tensor_out);

/** Make a view with two dimensions swapped. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_transpose(ds_accel_tensor_t *tensor, uint32_t dim,
                                                  uint32_t other, ds_accel_tensor_t **tensor_out);

/**
 * Copy the elements of one tensor to another of the same shape and dtype.
 *
 * The copy is queued on @p stream. If ordinary host memory is on one side, the copy is complete on
 * return. Where the host can't access the memory, each contiguous run of elements is copied
 * separately.
 *
 * @param[in] stream  a stream of the device, or of one of the two devices; NULL: the current stream
 *                    of the destination's device, or, if the destination is on the host, of the
 *                    source's device. If both tensors are on the host, the call first waits for the
 *                    stream, unless it is NULL.
 * @return DS_ACCEL_OK; ERR_INVALID shapes, dtypes or contexts differ, the destination is read-only,
 *         or several of its elements share one address, or the memory ranges of the two tensors
 *         overlap (if all their elements are at the same addresses, the call does nothing and
 *         returns DS_ACCEL_OK); ERR_STATE the stream captures and one side is ordinary host
 *         memory; ERR_NO_MEMORY; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_copy(ds_accel_tensor_t *destination,
                                             ds_accel_tensor_t *source, ds_accel_stream_t *stream);

/**
 * Return the tensor on a device, or on the host: a new reference if the tensor is already there,
 * else a contiguous copy.
 * @param[in] device  NULL: the host
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_to(ds_accel_tensor_t *tensor, ds_accel_device_t *device,
                                           ds_accel_stream_t *stream,
                                           ds_accel_tensor_t **tensor_out);

/** Return a new reference if the tensor is contiguous, else a contiguous copy of it, on the same
 * device or in the same kind of host memory. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_contiguous(ds_accel_tensor_t *tensor,
                                                   ds_accel_stream_t *stream,
                                                   ds_accel_tensor_t **tensor_out);

/**
 * Set every element, queued on @p stream. For a tensor on the host, the call first waits for the
 * stream, unless it is NULL, and the elements are set on return.
 * @param[in] value  one element of the tensor's dtype; for a complex dtype, both parts
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_fill(ds_accel_tensor_t *tensor, const void *value,
                                             ds_accel_stream_t *stream);
DS_ACCEL_EXPORT int32_t ds_accel_tensor_zero(ds_accel_tensor_t *tensor, ds_accel_stream_t *stream);

/** Record that a stream uses the tensor's memory, like ds_accel_mem_record_stream(). Calls of this
 * library with a stream argument record that stream themselves. For memory that this library did
 * not allocate and for ordinary host memory the call does nothing. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_record_stream(ds_accel_tensor_t *tensor,
                                                      ds_accel_stream_t *stream);

/** Set *is_on_out to 1 if the tensor is on a device, else to 0.
 * @source DeepSpeed on_accelerator() */
DS_ACCEL_EXPORT int32_t ds_accel_on_accelerator(const ds_accel_tensor_t *tensor,
                                                uint32_t *is_on_out);

/**
 * Return the tensor in page-locked memory of @p device: a new reference if its memory already is
 * such memory and has this alignment, else a contiguous copy.
 * @param[in] align_bytes as ds_accel_mem_alloc_pinned()
 * @return also ERR_INVALID the tensor is on a device, or the alignment is invalid
 * @source DeepSpeed pin_memory(tensor, align_bytes)
 */
DS_ACCEL_EXPORT int32_t ds_accel_pin_memory(ds_accel_tensor_t *tensor, ds_accel_device_t *device,
                                            uint64_t align_bytes, ds_accel_tensor_t **tensor_out);

/** Set *is_pinned_out to 1 if the tensor is in page-locked memory, else to 0. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_is_pinned(const ds_accel_tensor_t *tensor,
                                                  uint32_t *is_pinned_out);

#define DS_ACCEL_DLPACK_VERSIONED 1u /**< DLManagedTensorVersioned, 1.x; else DLManagedTensor */
#define DS_ACCEL_DLPACK_COPY 2u      /**< export a contiguous copy, and flag it as a copy */

enum {
    DS_ACCEL_DLPACK_NO_STREAM = -1, /**< no ordering: the consumer orders its accesses itself */
    DS_ACCEL_DLPACK_DEFAULT_STREAM = 0,
};
#define DS_ACCEL_DLPACK_NO_STREAM (+DS_ACCEL_DLPACK_NO_STREAM)
#define DS_ACCEL_DLPACK_DEFAULT_STREAM (+DS_ACCEL_DLPACK_DEFAULT_STREAM)

/**
 * Export the tensor to another library as a DLPack structure: its own memory, or with
 * DS_ACCEL_DLPACK_COPY a copy.
 *
 * Device types: kDLCUDA, kDLROCM, kDLOneAPI, kDLOpenCL and kDLMetal for the corresponding backends;
 * kDLCUDAHost and kDLROCMHost for pinned memory of the first two; kDLCPU for host memory and for
 * devices with host-accessible memory (cpu, mock); kDLExtDev for all others.
 *
 * @param[in]  flags        DS_ACCEL_DLPACK_*
 * @param[in]  consumer     the consumer's stream, as in __dlpack__(stream): a vendor's handle, or
 *                          DS_ACCEL_DLPACK_*_STREAM. Its later work is ordered after the work
 *                          queued on the calling thread's current stream. If the consumer is the
 *                          host, this call waits for that work.
 * @param[out] managed_out  DLManagedTensor * or DLManagedTensorVersioned *; holds a reference until
 *                          its deleter is called, once, on any thread
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED DLPack has no such dtype, or, without
 *         DS_ACCEL_DLPACK_VERSIONED, no read-only tensors; ERR_STATE the device may not be used
 *         after fork(); ERR_INVALID; ERR_NO_MEMORY; the status of the wait for the queued work
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_to_dlpack(ds_accel_tensor_t *tensor, uint32_t flags,
                                                  int64_t consumer, void **managed_out);

/**
 * Import a tensor of another library, without a copy. The memory is released when its last tensor
 * is released: the caller first waits for the work queued on the memory.
 *
 * @param[in] context       the context of the tensor's device; NULL: host memory only
 * @param[in] managed       DLPack structure; on success the library owns it, and calls its deleter
 *                          when the memory is no longer needed; after a failure the caller keeps it
 * @param[in] is_versioned  1: DLManagedTensorVersioned; 0: DLManagedTensor
 * @return DS_ACCEL_OK; ERR_INVALID an invalid shape, or a device of a backend that the context does
 *         not use; ERR_UNSUPPORTED an unsupported dtype; ERR_ABI an unknown version of DLPack;
 *         ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_from_dlpack(ds_accel_t *context, void *managed,
                                                    uint32_t is_versioned,
                                                    ds_accel_tensor_t **tensor_out);

/* ---- facts and settings --------------------------------------------------------------------- */

/*
 * Facts are true for all devices of the chosen accelerator. A fact comes from the first of three
 * sources that has it: the operator's configuration (any layer above the packages' layer), the
 * plugin, the package's configuration. `ds-accel info` prints the same facts. The first call reads
 * all facts, and they do not change afterwards. Before ds_accel_detect() all these calls return
 * ERR_STATE.
 */

/**
 * Return the known properties of the accelerator as flags.
 *
 * @param[out] flags_out  DS_ACCEL_FLAG_*
 * @param[out] known_out  the flags whose value is known; a flag not in this set is 0 in flags_out.
 *                        May be NULL
 * @return DS_ACCEL_OK; ERR_STATE; ERR_INVALID NULL; ERR_NO_MEMORY
 * @threads any; without a lock after the first call
 * @source DeepSpeed is_synchronized_device() ... is_triton_supported()
 */
DS_ACCEL_EXPORT int32_t ds_accel_flags(ds_accel_t *context, uint64_t *flags_out,
                                       uint64_t *known_out);

/**
 * Return the value of one flag.
 * @param[in]  flag        one of DS_ACCEL_FLAG_*
 * @param[out] is_set_out  1 or 0
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED not known; ERR_INVALID not a single flag; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_flag(ds_accel_t *context, uint64_t flag, uint32_t *is_set_out);

/** Return flags, names of backends and versions in one struct, with the operator's configuration
 * merged in.
 * @param[out] info_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_backend_info(ds_accel_t *context,
                                              struct ds_accel_backend_info *info_out);

/* Groups of functions that a backend may have. A function that the backend lacks returns
 * ERR_UNSUPPORTED, or does nothing if its documentation says so. */
#define DS_ACCEL_CAPABILITY_STREAMS 0x1ull /**< a program can create streams */
#define DS_ACCEL_CAPABILITY_EVENTS 0x2ull
#define DS_ACCEL_CAPABILITY_EVENT_TIMING 0x4ull
#define DS_ACCEL_CAPABILITY_GRAPHS 0x8ull
#define DS_ACCEL_CAPABILITY_PINNED 0x10ull
#define DS_ACCEL_CAPABILITY_REGISTER 0x20ull /**< page-locking memory of the caller */
#define DS_ACCEL_CAPABILITY_POINTER_INFO 0x40ull
#define DS_ACCEL_CAPABILITY_STREAM_ORDERED 0x80ull
#define DS_ACCEL_CAPABILITY_VIRTUAL_MEMORY 0x100ull
#define DS_ACCEL_CAPABILITY_TELEMETRY 0x200ull
#define DS_ACCEL_CAPABILITY_PROCESSES 0x400ull
/** the vendor's profiler shows the ranges of ds_accel_range_push() */
#define DS_ACCEL_CAPABILITY_RANGES 0x800ull
#define DS_ACCEL_CAPABILITY_PROFILER 0x1000ull
#define DS_ACCEL_CAPABILITY_PEERS 0x2000ull
#define DS_ACCEL_CAPABILITY_LINKS 0x4000ull
#define DS_ACCEL_CAPABILITY_MEMORY_IPC 0x8000ull
#define DS_ACCEL_CAPABILITY_EVENT_IPC 0x10000ull
#define DS_ACCEL_CAPABILITY_DMABUF 0x20000ull
#define DS_ACCEL_CAPABILITY_RNG 0x40000ull /**< the vendor's generator */
#define DS_ACCEL_CAPABILITY_NATIVE_HANDLES 0x80000ull

/** Return the capabilities of the accelerator.
 * @param[out] capabilities_out DS_ACCEL_CAPABILITY_* */
DS_ACCEL_EXPORT int32_t ds_accel_capabilities(ds_accel_t *context, uint64_t *capabilities_out);

/**
 * Return whether a backend can be used on this machine.
 *
 * @param[in]  name           a backend, which is probed now if it was not probed before; NULL: the
 *                            chosen backend
 * @param[out] available_out  1 or 0; 0 in a forked child that inherited the chosen accelerator
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no plugin of that name; ERR_STATE; ERR_NO_MEMORY
 * @source DeepSpeed is_available()
 */
DS_ACCEL_EXPORT int32_t ds_accel_is_available(ds_accel_t *context, const char *name,
                                              uint32_t *available_out);

/** Return the backend's op builder directory in DeepSpeed, such as "op_builder.cpu".
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED not known; ERR_INVALID; ERR_STATE
 * @source DeepSpeed op_builder_dir() */
DS_ACCEL_EXPORT int32_t ds_accel_op_builder_dir(ds_accel_t *context, char *dir, size_t dir_size);

/* -- data types -- */

/** Return the name of a dtype, such as "float32"; NULL for a number that is not a DS_ACCEL_DTYPE_*.
 * @owner static storage */
DS_ACCEL_EXPORT const char *ds_accel_dtype_name(uint32_t dtype);
/** Return the bits of one element; 0 for a number that is not a dtype. */
DS_ACCEL_EXPORT uint32_t ds_accel_dtype_size_bits(uint32_t dtype);
/**
 * Return the dtype with a name, in any spelling of the frameworks: "float32", "float", "fp32",
 * "torch.half", "bf16" ...
 * @return DS_ACCEL_OK; ERR_NOT_FOUND with the nearest name; ERR_INVALID NULL
 */
DS_ACCEL_EXPORT int32_t ds_accel_dtype_parse(const char *name, uint32_t *dtype_out);

/**
 * Return a device's support for a dtype.
 * @param[out] support_out  DS_ACCEL_DTYPE_STORES | COMPUTES | EMULATED; 0: no support
 * @return DS_ACCEL_OK; ERR_INVALID not a dtype; ERR_UNSUPPORTED the plugin does not report it
 */
DS_ACCEL_EXPORT int32_t ds_accel_dtype_support(ds_accel_device_t *device, uint32_t dtype,
                                               uint32_t *support_out);

/**
 * Return which of float32, float16 and bfloat16, in this order, the accelerator computes with.
 *
 * @param[out] dtypes     dtypes[capacity]; may be NULL with capacity 0
 * @param[out] count_out  total number, also if the array is too small
 * @return DS_ACCEL_OK; ERR_LIMIT they do not fit; ERR_UNSUPPORTED not known; ERR_STATE
 * @source DeepSpeed supported_dtypes()
 */
DS_ACCEL_EXPORT int32_t ds_accel_supported_dtypes(ds_accel_t *context, uint32_t *dtypes,
                                                  uint32_t capacity, uint32_t *count_out);
/** Return whether the accelerator computes with bfloat16, or float16: *supported_out is 1 or 0.
 * @return also ERR_UNSUPPORTED: not known */
DS_ACCEL_EXPORT int32_t ds_accel_is_bf16_supported(ds_accel_t *context, uint32_t *supported_out);
DS_ACCEL_EXPORT int32_t ds_accel_is_fp16_supported(ds_accel_t *context, uint32_t *supported_out);

/* -- communication and compile backend -- */

/**
 * Return the name of the accelerator's collectives library, such as "nccl".
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED it has none; ERR_INVALID name_size is too small; ERR_STATE
 * @source DeepSpeed communication_backend_name()
 */
DS_ACCEL_EXPORT int32_t ds_accel_communication_backend(ds_accel_t *context, char *name,
                                                       size_t name_size);
/**
 * Choose another collectives library.
 *
 * @param[in] name  the accelerator's own library, or a name in the configuration's list
 *                  "communication_backends"; NULL: the accelerator's own library again
 * @return DS_ACCEL_OK; ERR_INVALID not in the list, which the error contains; ERR_STATE
 * @threads any; the choice applies to the whole context
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_communication_backend(ds_accel_t *context, const char *name);
/** Return the version of the collectives library: major, minor, patch, 0.
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED not known; ERR_STATE */
DS_ACCEL_EXPORT int32_t ds_accel_communication_backend_version(ds_accel_t *context,
                                                               uint32_t version_out[4]);
/** Return the name of the graph compiler, such as "inductor"; like
 * ds_accel_communication_backend().
 * @source DeepSpeed get_compile_backend() */
DS_ACCEL_EXPORT int32_t ds_accel_compile_backend(ds_accel_t *context, char *name, size_t name_size);
/** Choose another graph compiler, like ds_accel_set_communication_backend(); the configuration's
 * list is "compile_backends".
 * @source DeepSpeed set_compile_backend() */
DS_ACCEL_EXPORT int32_t ds_accel_set_compile_backend(ds_accel_t *context, const char *name);

/* -- calls that wait for the accelerator -- */

/**
 * A deferred call. status: DS_ACCEL_OK once the accelerator is started; ERR_STATE if the context is
 * destroyed before that, so that the function can release user_data.
 */
typedef void (*ds_accel_lazy_call_t)(void *user_data, int32_t status);

/**
 * Call a function now if the accelerator is started, else as soon as it is started.
 *
 * Each function is called once, in registration order, with no lock held: by the thread whose
 * ds_accel_detect() succeeds, before ds_accel_detect() returns, or, if the accelerator is started
 * during the registration, by either thread. A function registered during these calls comes after
 * them. After a failed detection the functions stay registered.
 *
 * @return DS_ACCEL_OK called, or registered; ERR_INVALID NULL; ERR_STATE this process inherited the
 *         accelerator by fork(), or a thread of its parent was changing the context during fork();
 *         ERR_NO_MEMORY. After a failure the function is never called
 * @threads any
 * @source DeepSpeed lazy_call()
 */
DS_ACCEL_EXPORT int32_t ds_accel_lazy_call(ds_accel_t *context, ds_accel_lazy_call_t call,
                                           void *user_data);

/* -- profilers -- */

/**
 * Begin a range that the vendor's profiler shows; ranges nest, per thread and domain. Without a
 * vendor's profiler the call does nothing and returns DS_ACCEL_OK: see DS_ACCEL_CAPABILITY_RANGES.
 *
 * @param[in] domain    or NULL; used only with DS_ACCEL_FLAG_RANGE_DOMAINS
 * @param[in] category  or NULL; used only with DS_ACCEL_FLAG_RANGE_DOMAINS
 * @return DS_ACCEL_OK; ERR_INVALID NULL; ERR_STATE before ds_accel_detect(); ERR_DRIVER
 * @source DeepSpeed range_push()
 */
DS_ACCEL_EXPORT int32_t ds_accel_range_push(ds_accel_t *context, const char *message,
                                            const char *domain, const char *category);
/** End the calling thread's innermost range of the domain. @return also ERR_STATE no range is
 * open */
DS_ACCEL_EXPORT int32_t ds_accel_range_pop(ds_accel_t *context, const char *domain);
/** Start and stop recording by the vendor's profiler; without a profiler the calls do nothing and
 * return DS_ACCEL_OK. */
DS_ACCEL_EXPORT int32_t ds_accel_profiler_start(ds_accel_t *context);
DS_ACCEL_EXPORT int32_t ds_accel_profiler_stop(ds_accel_t *context);

/* -- timers -- */

/** Two marks in a stream and the time between them. */
typedef struct ds_accel_timer ds_accel_timer_t;

/**
 * Create a timer. It uses events of the device, or the host's clock if DS_ACCEL_FLAG_HOST_TIMERS is
 * set or the backend has no events that measure time. With the host's clock each mark waits for the
 * stream's work, unless the device is synchronous.
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_NO_MEMORY; ERR_DRIVER
 * @owner  caller; release with ds_accel_timer_destroy()
 */
DS_ACCEL_EXPORT int32_t ds_accel_timer_create(ds_accel_device_t *device,
                                              ds_accel_timer_t **timer_out);
DS_ACCEL_EXPORT void ds_accel_timer_destroy(ds_accel_timer_t *timer);
/** Start the timer; an earlier measurement is dropped.
 * @param[in] stream NULL: the current stream */
DS_ACCEL_EXPORT int32_t ds_accel_timer_start(ds_accel_timer_t *timer, ds_accel_stream_t *stream);
/** Stop the timer.
 * @param[in] stream NULL: the current stream
 * @return DS_ACCEL_OK; ERR_STATE the timer was not started; ERR_INVALID; ERR_DRIVER */
DS_ACCEL_EXPORT int32_t ds_accel_timer_stop(ds_accel_timer_t *timer, ds_accel_stream_t *stream);
/**
 * Return the milliseconds between start and stop; waits until the second mark is reached.
 * @return DS_ACCEL_OK; ERR_STATE the timer was not stopped; ERR_DRIVER
 * @source DeepSpeed utils/timer.py
 */
DS_ACCEL_EXPORT int32_t ds_accel_timer_elapsed_ms(ds_accel_timer_t *timer, double *elapsed_ms_out);

/* -- environment -- */

/**
 * Return the name of one variable that chooses a process's visible devices, by its position in the
 * list of these variables, from 0. The first variable is the one to set.
 * @param[out] name  NUL-terminated
 * @return DS_ACCEL_OK; ERR_NOT_FOUND past the last; ERR_INVALID it does not fit; ERR_STATE
 * @source DeepSpeed visible_devices_envs()
 */
DS_ACCEL_EXPORT int32_t ds_accel_visible_devices_envs(ds_accel_t *context, uint32_t position,
                                                      char *name, size_t name_size);
/** Return one name prefix of the variables that a job's processes must inherit, like
 * ds_accel_visible_devices_envs().
 * @source DeepSpeed export_envs() */
DS_ACCEL_EXPORT int32_t ds_accel_export_envs(ds_accel_t *context, uint32_t position, char *name,
                                             size_t name_size);

/**
 * Return the value of a variable with which a program that is started in the current environment
 * sees exactly these devices, in this order.
 *
 * @param[in]  variable    one of ds_accel_visible_devices_envs(); NULL: the first variable that the
 *                         plugin lists, or, if it lists none, the first variable
 * @param[in]  indices     indices[count], each below ds_accel_device_count(), none twice
 * @param[out] value       NUL-terminated; may be NULL with value_size 0, to get the size
 * @param[out] needed_out  bytes that the value needs, with its NUL; written on OK and ERR_LIMIT;
 *                         may be NULL
 * @return DS_ACCEL_OK; ERR_LIMIT it does not fit; ERR_NOT_FOUND not a variable of this accelerator;
 *         ERR_UNSUPPORTED it has none; ERR_INVALID; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_visible_devices_value(ds_accel_t *context, const char *variable,
                                                       const uint32_t *indices, uint32_t count,
                                                       char *value, uint32_t value_size,
                                                       uint32_t *needed_out);
/**
 * Set the value of ds_accel_visible_devices_value() in this process's environment, for programs
 * that the process starts later. The process's own visible devices do not change, because the
 * runtime has already started.
 * @threads not while another thread uses the environment: it is setenv()
 * @source DeepSpeed set_visible_devices_envs()
 */
DS_ACCEL_EXPORT int32_t ds_accel_apply_visible_devices(ds_accel_t *context, const uint32_t *indices,
                                                       uint32_t count);

/**
 * Change this process's environment as `ds-accel env` prints: apply the variables that the
 * configuration and the plugin list for the backend. Rule if-unset keeps a variable that is set,
 * always replaces it, unset removes it. Call it before ds_accel_detect(), so that the runtime
 * starts with the changes. If it fails, some variables may have changed.
 *
 * @param[in]  name         a backend; NULL: the chosen one
 * @param[out] applied_out  number of variables that were set or removed; may be NULL
 * @return DS_ACCEL_OK; ERR_NOT_FOUND @p name is not known; ERR_STATE NULL before ds_accel_detect(),
 *         or as ds_accel_detect() returns it after fork(); ERR_NO_MEMORY
 * @threads not while another thread uses the environment: it is setenv()
 */
DS_ACCEL_EXPORT int32_t ds_accel_apply_env(ds_accel_t *context, const char *name,
                                           uint32_t *applied_out);

/* -- telemetry and links: no device is opened or woken -- */

/** Read the device's sensors.
 * @param[out] telemetry_out struct_size set; its member valid lists the valid members */
DS_ACCEL_EXPORT int32_t ds_accel_telemetry(ds_accel_t *context, uint32_t device_index,
                                           struct ds_accel_telemetry *telemetry_out);
/**
 * Return the processes that use a device.
 *
 * @param[out] processes     up to @p capacity elements
 * @param[in]  stride_bytes  size of the caller's element: sizeof(*processes)
 * @param[out] count_out     total number, also if the array is too small
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED; ERR_INVALID; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_telemetry_processes(ds_accel_t *context, uint32_t device_index,
                                                     struct ds_accel_process *processes,
                                                     uint32_t stride_bytes, uint32_t capacity,
                                                     uint32_t *count_out);
/** Return a device's links to other devices, with the parameters of
 * ds_accel_telemetry_processes(). */
DS_ACCEL_EXPORT int32_t ds_accel_device_links(ds_accel_t *context, uint32_t device_index,
                                              struct ds_accel_link *links, uint32_t stride_bytes,
                                              uint32_t capacity, uint32_t *count_out);

/* -- peers -- */

/** Set *can_out to 1 if @p device can address the memory of @p peer, else to 0. Both devices belong
 * to one context. */
DS_ACCEL_EXPORT int32_t ds_accel_peer_can_access(ds_accel_device_t *device, ds_accel_device_t *peer,
                                                 uint32_t *can_out);
/** Enable access of @p device to the memory of @p peer. Returns DS_ACCEL_OK if access is already
 * enabled. */
DS_ACCEL_EXPORT int32_t ds_accel_peer_enable(ds_accel_device_t *device, ds_accel_device_t *peer);
/** Disable access of @p device to the memory of @p peer. Returns DS_ACCEL_OK if access is not
 * enabled. */
DS_ACCEL_EXPORT int32_t ds_accel_peer_disable(ds_accel_device_t *device, ds_accel_device_t *peer);

/* -- sharing between processes -- */

/**
 * Write a handle with which another process of the same user can open the memory. The size of the
 * handle in bytes is memory_handle_bytes of ds_accel_backend_info().
 * @param[in] pointer  may be inside an allocation; opening the handle returns the address of the
 *                     same byte
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_UNSUPPORTED; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_export(ds_accel_device_t *device, void *pointer,
                                                   void *handle, uint32_t handle_bytes);
/** End the export; in processes that have opened the memory, it stays open. */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_unexport(ds_accel_device_t *device, const void *handle,
                                                     uint32_t handle_bytes);
/** Open memory that another process exported.
 * @owner caller; each opening is closed once, with the pointer that it returned */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_open(ds_accel_device_t *device, const void *handle,
                                                 uint32_t handle_bytes, void **pointer_out);
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_close(ds_accel_device_t *device, void *pointer);
/** Export an event created with DS_ACCEL_EVENT_INTERPROCESS; the handle has event_handle_bytes
 * bytes. */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_event_export(ds_accel_event_t *event, void *handle,
                                                  uint32_t handle_bytes);
/** Open an event that another process exported.
 * @owner caller; release with ds_accel_event_destroy() */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_event_open(ds_accel_device_t *device, const void *handle,
                                                uint32_t handle_bytes,
                                                ds_accel_event_t **event_out);
/** Export device memory as a dma-buf; *offset_bytes_out is the offset of @p pointer in it.
 * @owner the caller closes *fd_out */
DS_ACCEL_EXPORT int32_t ds_accel_dmabuf_export(ds_accel_device_t *device, void *pointer,
                                               uint64_t size_bytes, int32_t *fd_out,
                                               uint64_t *offset_bytes_out);
/** Import a dma-buf as device memory.
 * @owner caller; release the pointer with ds_accel_dmabuf_release(); @p fd still belongs to the
 * caller */
DS_ACCEL_EXPORT int32_t ds_accel_dmabuf_import(ds_accel_device_t *device, int32_t fd,
                                               uint64_t offset_bytes, uint64_t size_bytes,
                                               void **pointer_out);
DS_ACCEL_EXPORT int32_t ds_accel_dmabuf_release(ds_accel_device_t *device, void *pointer);

/* -- the pool of pinned memory -- */

/** Statistics of a device's pinned memory. All sizes except allocated_bytes, allocated_peak_bytes
 * and requested_bytes are rounded to the pool's size classes. */
struct ds_accel_pinned_stats {
    uint32_t struct_size;
    uint32_t block_count;     /**< blocks obtained from the runtime, in use or cached */
    uint64_t allocated_bytes; /**< bytes in use, as requested */
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes; /**< bytes obtained from the runtime */
    uint64_t reserved_peak_bytes;
    uint64_t cached_bytes;  /**< bytes freed and kept for reuse, including waiting_bytes */
    uint64_t waiting_bytes; /**< bytes freed, but still used by streams */
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t requested_bytes;   /**< total of all requests, including memory freed since */
    uint64_t hit_count;         /**< allocations served from the pool */
    uint64_t alloc_retry_count; /**< allocations that succeeded after the pool was emptied */
    /** limit for freed memory in the pool; UINT64_MAX: no limit */
    uint64_t limit_bytes;
};

/** Return the statistics of the device's pinned memory. @param[out] stats_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_stats(ds_accel_device_t *device,
                                              struct ds_accel_pinned_stats *stats_out);
/**
 * Return one statistic of the device's pinned memory by its name in torch.cuda.host_memory_stats():
 * active_bytes, active_requests (allocated, or freed while streams still use it), allocated_bytes
 * and allocations (obtained from the runtime, active or cached), each with .current, .peak,
 * .allocated and .freed; num_host_alloc and num_host_free, calls of the runtime; host_alloc_time
 * and host_free_time, the duration of these calls in microseconds, with .total, .max, .min, .count
 * and .avg. The names reserved_bytes and segment of earlier torch versions mean allocated_bytes and
 * allocations.
 *
 * @param[in]  key        "active_bytes.current"
 * @param[out] value_out  bytes, a count or microseconds
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no such name; the error contains the nearest name; ERR_INVALID
 * @threads any; all values are of the same moment
 */
DS_ACCEL_EXPORT int32_t ds_accel_host_memory_stat(ds_accel_device_t *device, const char *key,
                                                  int64_t *value_out);
/** Return all statistics of the device's pinned memory as one JSON object.
 * @owner caller; ds_accel_free_text() */
DS_ACCEL_EXPORT int32_t ds_accel_host_memory_stats(ds_accel_device_t *device, char **json_text_out);
/** Set the peaks of the pinned memory's statistics to the current values. */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_reset_peaks(ds_accel_device_t *device);
/** Return the pool's unused memory to the runtime, except memory that streams still use. */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_empty_cache(ds_accel_device_t *device);
/** Let the pool keep at most limit_bytes of freed memory. 0: the pool keeps no freed memory;
 * UINT64_MAX, the default: the pool keeps all freed memory. */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_set_limit(ds_accel_device_t *device, uint64_t limit_bytes);

/* ---- inline functions ----------------------------------------------------------------------- */

/*
 * Internal; public only because the inline functions below read these structs. Each is the
 * beginning of a larger struct. The functions in the table of a destroyed handle return an error.
 */
struct ds_accel_device {
    /** no function is NULL: a function that the plugin lacks is a stub that returns an error */
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *handle;
};
struct ds_accel_stream {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_stream_t *handle;
};
struct ds_accel_event {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_event_t *handle;
};
DS_ACCEL_EXPORT extern ds_accel_t *ds_accel__default;
DS_ACCEL_EXPORT ds_accel_t *ds_accel__get_first(void);
DS_ACCEL_EXPORT int32_t ds_accel__fail(int32_t status, const struct ds_accel_error *error);
/* Return ERR_INVALID; the error says which argument is NULL, or which handle is destroyed or of
 * another context. */
DS_ACCEL_EXPORT int32_t ds_accel__refuse(const char *call, const char *what, const void *handle);
DS_ACCEL_EXPORT int32_t ds_accel__refuse_pair(const char *call, const ds_accel_event_t *event,
                                              const ds_accel_stream_t *stream);

/**
 * Return the process-wide context, whose accelerator the first call chooses and starts.
 * @return NULL if nothing can be used: see ds_accel_last_error(); the next call tries again
 * @threads any
 * @owner  borrowed; valid until the process exits
 */
DS_ACCEL_HOT ds_accel_t *ds_accel_get(void);

/**
 * Return the plugin's table of functions, for calls that have no wrapper in this header. Every
 * function of the table can be called; a function on a device takes the handle that
 * ds_accel_device_handle() returns. @p device must not be NULL.
 * @owner borrowed; valid until the device is closed
 */
DS_ACCEL_HOT const struct ds_accel_plugin *ds_accel_device_table(const ds_accel_device_t *device);

DS_ACCEL_HOT ds_accel_plugin_device_t *ds_accel_device_handle(const ds_accel_device_t *device);

/**
 * Wait for all work of all streams of the device. While a stream of this process captures, backends
 * whose runtime would break the capture wait only for streams of this library.
 * @return DS_ACCEL_OK; ERR_DEVICE_LOST; ERR_DRIVER work queued earlier failed
 * @threads any   @source DeepSpeed synchronize()
 */
DS_ACCEL_HOT int32_t ds_accel_device_synchronize(ds_accel_device_t *device);

/** Wait like ds_accel_device_synchronize(), with a deadline.
 * @return also ERR_TIMEOUT after @p timeout_ns nanoseconds */
DS_ACCEL_HOT int32_t ds_accel_device_synchronize_for(ds_accel_device_t *device,
                                                     uint64_t timeout_ns);

/** Check that the device works. @return DS_ACCEL_OK; ERR_DEVICE_LOST */
DS_ACCEL_HOT int32_t ds_accel_device_health(ds_accel_device_t *device);

/** Describe the device.
 * @param[out] info_out struct_size set by the caller, all other members zero */
DS_ACCEL_HOT int32_t ds_accel_device_info(ds_accel_device_t *device,
                                          struct ds_accel_device_info *info_out);

/** Return the device's total memory, its available memory, the memory that this process uses, and a
 * limit with its source.
 * @param[out] info_out as in ds_accel_device_info() */
DS_ACCEL_HOT int32_t ds_accel_device_memory(ds_accel_device_t *device,
                                            struct ds_accel_memory_info *info_out);

/** Wait for all work queued on the stream. @return DS_ACCEL_OK; ERR_STATE the stream captures;
 * ERR_DRIVER */
DS_ACCEL_HOT int32_t ds_accel_stream_synchronize(ds_accel_stream_t *stream);

/** Wait like ds_accel_stream_synchronize(), for at most @p timeout_ns nanoseconds.
 * @return also ERR_TIMEOUT */
DS_ACCEL_HOT int32_t ds_accel_stream_synchronize_for(ds_accel_stream_t *stream,
                                                     uint64_t timeout_ns);

/** Query whether the stream is idle, without waiting.
 * @return DS_ACCEL_OK idle; DS_ACCEL_NOT_READY busy; ERR_STATE the stream captures */
DS_ACCEL_HOT int32_t ds_accel_stream_query(ds_accel_stream_t *stream);

/** Make later work of @p stream wait, on the device, for the point that @p event marks now. An
 * event that was never recorded causes no wait. */
DS_ACCEL_HOT int32_t ds_accel_stream_wait_event(ds_accel_stream_t *stream, ds_accel_event_t *event);

/**
 * Run a host function when the stream reaches this point. The function runs once, on any thread,
 * and must not call this library, except ds_accel_note_access(), nor wait for work of the device.
 * With layer validate its calls on a device, or on an object of a device, fail with ERR_STATE; a
 * destroying call without a status is skipped and logged, and can be made later. Calls that need no
 * device are allowed: reading a tensor's properties, making views of a tensor, work with tensors in
 * host memory only, and profiler ranges if the backend has none.
 */
DS_ACCEL_HOT int32_t ds_accel_stream_host_task(ds_accel_stream_t *stream, ds_accel_host_task_t task,
                                               void *user_data);

/** Mark this point of the stream; an earlier mark of the event is replaced. */
DS_ACCEL_HOT int32_t ds_accel_event_record(ds_accel_event_t *event, ds_accel_stream_t *stream);

/** Query whether the event is reached, without waiting.
 * @return DS_ACCEL_OK reached, or never recorded; DS_ACCEL_NOT_READY; ERR_STATE recorded in a
 * capture */
DS_ACCEL_HOT int32_t ds_accel_event_query(ds_accel_event_t *event);

/** Wait until the event is reached. */
DS_ACCEL_HOT int32_t ds_accel_event_synchronize(ds_accel_event_t *event);

/** Wait like ds_accel_event_synchronize(), for at most @p timeout_ns nanoseconds.
 * @return also ERR_TIMEOUT */
DS_ACCEL_HOT int32_t ds_accel_event_synchronize_for(ds_accel_event_t *event, uint64_t timeout_ns);

/**
 * Queue a copy. Host memory must not change until the copy is complete. If the host memory is not
 * pinned, the runtime may wait until the copy is complete.
 *
 * @param[in] kind  DS_ACCEL_COPY_*; the two ranges must not overlap
 */
DS_ACCEL_HOT int32_t ds_accel_mem_copy_async(ds_accel_stream_t *stream, void *destination,
                                             const void *source, uint64_t size_bytes,
                                             uint32_t kind);

/** Queue filling memory with a pattern of 1, 2 or 4 bytes. size_bytes is a multiple of the
 * pattern's length. */
DS_ACCEL_HOT int32_t ds_accel_mem_fill_async(ds_accel_stream_t *stream, void *destination,
                                             const void *pattern, uint32_t pattern_bytes,
                                             uint64_t size_bytes);

/** Queue setting every byte of memory to @p value. */
DS_ACCEL_HOT int32_t ds_accel_mem_set_async(ds_accel_stream_t *stream, void *destination,
                                            uint8_t value, uint64_t size_bytes);

#ifndef DS_ACCEL_NO_INLINE

DS_ACCEL_HOT ds_accel_t *ds_accel_get(void)
{
    ds_accel_t *context = __atomic_load_n(&ds_accel__default, __ATOMIC_ACQUIRE);

    return __builtin_expect(context != DS_ACCEL_NULL_, 1) ? context : ds_accel__get_first();
}

DS_ACCEL_HOT const struct ds_accel_plugin *ds_accel_device_table(const ds_accel_device_t *device)
{
    return device->table;
}

DS_ACCEL_HOT ds_accel_plugin_device_t *ds_accel_device_handle(const ds_accel_device_t *device)
{
    return device->handle;
}

/** Call a function of the plugin's table. The plugin writes the details of an error to the caller's
 * stack; only if the call fails, they are copied to the thread's last error. */
#define DS_ACCEL_CALL_(call) \
    do { \
        struct ds_accel_error error; \
        int32_t status; \
        error.struct_size = sizeof(error); \
        error.code = 0; \
        error.vendor_code = 0; \
        error.vendor_text[0] = '\0'; \
        error.message[0] = '\0'; \
        status = (call); \
        return __builtin_expect(status >= 0, 1) ? status : ds_accel__fail(status, &error); \
    } while (0)

#define DS_ACCEL_UNLIKELY_(condition) __builtin_expect(!!(condition), 0)

DS_ACCEL_HOT int32_t ds_accel_device_synchronize(ds_accel_device_t *device)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL)) {
        return ds_accel__refuse("device_synchronize", "device", device);
    }
    DS_ACCEL_CALL_(device->table->device_synchronize(device->handle, UINT64_MAX, &error));
}

DS_ACCEL_HOT int32_t ds_accel_device_synchronize_for(ds_accel_device_t *device, uint64_t timeout_ns)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL)) {
        return ds_accel__refuse("device_synchronize", "device", device);
    }
    DS_ACCEL_CALL_(device->table->device_synchronize(device->handle, timeout_ns, &error));
}

DS_ACCEL_HOT int32_t ds_accel_device_health(ds_accel_device_t *device)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL)) {
        return ds_accel__refuse("device_health", "device", device);
    }
    DS_ACCEL_CALL_(device->table->device_health(device->handle, &error));
}

DS_ACCEL_HOT int32_t ds_accel_device_info(ds_accel_device_t *device,
                                          struct ds_accel_device_info *info_out)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL || info_out == NULL)) {
        return ds_accel__refuse("device_info", device == DS_ACCEL_NULL_ ? "device" : "output",
                                DS_ACCEL_NULL_);
    }
    DS_ACCEL_CALL_(device->table->device_info(device->handle, info_out, &error));
}

DS_ACCEL_HOT int32_t ds_accel_device_memory(ds_accel_device_t *device,
                                            struct ds_accel_memory_info *info_out)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL || info_out == NULL)) {
        return ds_accel__refuse("device_memory", device == DS_ACCEL_NULL_ ? "device" : "output",
                                DS_ACCEL_NULL_);
    }
    DS_ACCEL_CALL_(device->table->mem_info(device->handle, info_out, &error));
}

DS_ACCEL_HOT int32_t ds_accel_stream_synchronize(ds_accel_stream_t *stream)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_synchronize", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_synchronize(stream->handle, UINT64_MAX, &error));
}

DS_ACCEL_HOT int32_t ds_accel_stream_synchronize_for(ds_accel_stream_t *stream, uint64_t timeout_ns)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_synchronize", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_synchronize(stream->handle, timeout_ns, &error));
}

DS_ACCEL_HOT int32_t ds_accel_stream_query(ds_accel_stream_t *stream)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_query", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_query(stream->handle, &error));
}

DS_ACCEL_HOT int32_t ds_accel_stream_wait_event(ds_accel_stream_t *stream, ds_accel_event_t *event)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL || event == NULL || stream->table != event->table)) {
        return ds_accel__refuse_pair("stream_wait_event", event, stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_wait_event(stream->handle, event->handle, &error));
}

DS_ACCEL_HOT int32_t ds_accel_stream_host_task(ds_accel_stream_t *stream, ds_accel_host_task_t task,
                                               void *user_data)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_host_task", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_host_task(stream->handle, task, user_data, &error));
}

DS_ACCEL_HOT int32_t ds_accel_event_record(ds_accel_event_t *event, ds_accel_stream_t *stream)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL || event == NULL || stream->table != event->table)) {
        return ds_accel__refuse_pair("event_record", event, stream);
    }
    DS_ACCEL_CALL_(event->table->event_record(event->handle, stream->handle, &error));
}

DS_ACCEL_HOT int32_t ds_accel_event_query(ds_accel_event_t *event)
{
    if (DS_ACCEL_UNLIKELY_(event == NULL)) {
        return ds_accel__refuse("event_query", "event", event);
    }
    DS_ACCEL_CALL_(event->table->event_query(event->handle, &error));
}

DS_ACCEL_HOT int32_t ds_accel_event_synchronize(ds_accel_event_t *event)
{
    if (DS_ACCEL_UNLIKELY_(event == NULL)) {
        return ds_accel__refuse("event_synchronize", "event", event);
    }
    DS_ACCEL_CALL_(event->table->event_synchronize(event->handle, UINT64_MAX, &error));
}

DS_ACCEL_HOT int32_t ds_accel_event_synchronize_for(ds_accel_event_t *event, uint64_t timeout_ns)
{
    if (DS_ACCEL_UNLIKELY_(event == NULL)) {
        return ds_accel__refuse("event_synchronize", "event", event);
    }
    DS_ACCEL_CALL_(event->table->event_synchronize(event->handle, timeout_ns, &error));
}

DS_ACCEL_HOT int32_t ds_accel_mem_copy_async(ds_accel_stream_t *stream, void *destination,
                                             const void *source, uint64_t size_bytes, uint32_t kind)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("mem_copy_async", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->mem_copy_async(stream->handle, destination, source, size_bytes,
                                                 kind, &error));
}

DS_ACCEL_HOT int32_t ds_accel_mem_fill_async(ds_accel_stream_t *stream, void *destination,
                                             const void *pattern, uint32_t pattern_bytes,
                                             uint64_t size_bytes)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("mem_fill_async", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->mem_fill_async(stream->handle, destination, pattern,
                                                 pattern_bytes, size_bytes, &error));
}

DS_ACCEL_HOT int32_t ds_accel_mem_set_async(ds_accel_stream_t *stream, void *destination,
                                            uint8_t value, uint64_t size_bytes)
{
    return ds_accel_mem_fill_async(stream, destination, &value, 1, size_bytes);
}

#endif

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
