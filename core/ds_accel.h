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
 * chosen accelerator. ds_accel_get() gives the process-wide one; ds_accel_create() makes others.
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

/* A struct and the function that fills it may share a name, as stat and stat() do. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

/* Inline even where the compiler would emit a function: a call is one jump, not two. The library
 * exports these functions too. With DS_ACCEL_NO_INLINE defined they are declared only, for tools
 * that read headers and languages that cannot inline them. */
#ifdef DS_ACCEL_NO_INLINE
#define DS_ACCEL_HOT DS_ACCEL_EXPORT
#else
#define DS_ACCEL_HOT DS_ACCEL_EXPORT __attribute__((always_inline)) inline
#endif

#define DS_ACCEL_VERSION "0.1.0"

/** A context. Any thread may use it; its calls lock as they need to. */
typedef struct ds_accel ds_accel_t;

/** An open device: a table of functions and the plugin's handle. Created by
 * ds_accel_device_open(). */
typedef struct ds_accel_device ds_accel_device_t;

/* ---- errors --------------------------------------------------------------------------------- */

/**
 * The cause of this thread's last failed call: one line, or one line per problem of a
 * configuration.
 * @return never NULL; "" before any failure; meaningful only right after a failure
 * @threads any; each thread has its own
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

/** "DS_ACCEL_ERR_NO_MEMORY" for -2; "DS_ACCEL_ERR_INTERNAL" for a number that is no status. */
DS_ACCEL_EXPORT const char *ds_accel_status_name(int32_t status);

/** The running library's version, "0.1.0"; static storage. */
DS_ACCEL_EXPORT const char *ds_accel_version(void);

/* ---- contexts ------------------------------------------------------------------------------- */

/**
 * Receives log lines, without a newline. Called by the thread that logs, possibly with a lock of
 * the library held: the sink must not call the library.
 * @param level one of DS_ACCEL_LOG_*   @param topic "config", "loader", a plugin's name ...
 */
typedef void (*ds_accel_log_sink_t)(void *user_data, uint32_t level, const char *topic,
                                    const char *message);

#define DS_ACCEL_OPTION_NO_ENVIRONMENT 1u /**< ignore every DS_* variable */
#define DS_ACCEL_OPTION_NO_USER_CONFIG 2u /**< skip $XDG_CONFIG_HOME/ds-accel */
#define DS_ACCEL_OPTION_NO_CACHE 4u       /**< store no verdicts and use none */

/** How to make a context. Zero the struct, set struct_size, then set the members needed. All
 * pointers are borrowed. */
struct ds_accel_options {
    uint32_t struct_size;
    uint32_t flags;          /**< DS_ACCEL_OPTION_* */
    const char *accelerator; /**< force this one; NULL: environment, configuration, detection */
    const char *const *plugin_dirs; /**< searched before all others; NULL with count 0 */
    uint32_t plugin_dir_count;
    uint32_t reserved;
    const char *config_file;        /**< replaces the user's layer, as DS_ACCEL_CONFIG does */
    const char *package_config_dir; /**< in place of PREFIX/share/ds-accel */
    const char *system_config_dir;  /**< in place of /etc/ds-accel */
    const char *machine_root;       /**< read /sys, /proc and /dev under this directory; NULL:
                                       DS_ACCEL_ROOT, else this machine */
    const char *log_levels;         /**< "warn,cuda=debug"; NULL: DS_ACCEL_LOG, else "warn" */
    ds_accel_log_sink_t log_sink;   /**< NULL: log lines are dropped */
    void *log_user_data;
    const char *cache_dir; /**< in place of DS_ACCEL_CACHE_DIR; absolute */
    /** a recorded machine in place of this one: no plugin is run, and no device can be opened;
     * needs libds_accel_tools.so */
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

/** Close a context and its plugins as soon as no tensor holds memory of its devices. The caller
 * closes the devices first; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_destroy(ds_accel_t *context);

/**
 * Make @p context the one that ds_accel_get() returns, DeepSpeed's set_accelerator().
 *
 * @return DS_ACCEL_OK; ERR_INVALID NULL; ERR_STATE another context already is the default and was
 *         returned to a caller; the status of ds_accel_detect() if the context has not chosen yet
 * @threads any
 * @owner  the library keeps it for the life of the process; do not destroy it
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_default(ds_accel_t *context);

/**
 * Add a backend that is linked into the program instead of shipped as a file. It takes part in the
 * detection like a plugin found first on the search path.
 *
 * @param[in] entry  as DS_ACCEL_PLUGIN() defines it; called now
 * @return DS_ACCEL_OK; ERR_ABI with the rule that its table breaks; ERR_STATE after
 *         ds_accel_detect(), or as that returns it after fork()
 */
DS_ACCEL_EXPORT int32_t ds_accel_register(ds_accel_t *context, ds_accel_entry_v1_t entry);

/* ---- detection ------------------------------------------------------------------------------ */

/**
 * Choose the accelerator (override, configuration, detection order), load it and start it. Later
 * calls return the first call's result; after a failure they try again.
 *
 * @return DS_ACCEL_OK; ERR_NOT_USABLE the forced accelerator can't be used; ERR_NO_DEVICE no
 *         accelerator can be used; ERR_UNTRUSTED no accelerator can be used, since all were
 *         rejected for security; ERR_LIMIT no descriptor or process is left for a probe;
 *         ERR_NO_MEMORY; ERR_STATE the parent process started the accelerator before fork() and the
 *         accelerator does not survive that, or a thread of the parent was changing this context
 *         during fork(): destroy it with ds_accel_destroy()
 * @threads any; one thread detects, the others wait for its result
 * @source DeepSpeed accelerator/real_accelerator.py, get_accelerator()
 */
DS_ACCEL_EXPORT int32_t ds_accel_detect(ds_accel_t *context);

/**
 * Take candidates through every gate up to the probe, without choosing.
 * @param[in] name  one backend, or NULL for all but the demand-only ones
 * @return DS_ACCEL_OK for any verdict; ERR_NOT_FOUND no such candidate; ERR_NO_MEMORY; ERR_STATE as
 *         ds_accel_detect() returns it after fork()
 */
DS_ACCEL_EXPORT int32_t ds_accel_check(ds_accel_t *context, const char *name);

/** The chosen accelerator's name, "cuda"; NULL for a NULL context or before ds_accel_detect(). */
DS_ACCEL_EXPORT const char *ds_accel_name(const ds_accel_t *context);

/** "override", "config" or "auto detect"; NULL as for ds_accel_name(). */
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
 * One plugin found, in detection order. Strings are borrowed from the context, which keeps all of
 * them, including those of earlier verdicts, until it is destroyed; no string is NULL.
 */
struct ds_accel_candidate {
    uint32_t struct_size;
    uint32_t state;        /**< DS_ACCEL_STATE_* */
    uint32_t device_count; /**< when AVAILABLE or SELECTED */
    uint32_t reserved;
    uint64_t elapsed_us; /**< spent on its gates and probe */
    const char *name;
    const char *path;   /**< "" for a registered backend */
    const char *vendor; /**< "" if the file does not name it */
    const char *version;
    const char *abi;        /**< "1.1" */
    const char *state_name; /**< "unavailable" */
    const char
        *reason; /**< stable code, "no_device"; "" when SELECTED, or if no gate rejected it */
    const char *detail; /**< evidence, one line */
    const char *remedy; /**< what to do, one line */
    const char *stage;  /**< the last gate reached: "probe" */
};

/** How many candidates there are; 0 for NULL. */
DS_ACCEL_EXPORT uint32_t ds_accel_candidate_count(ds_accel_t *context);

/** @return DS_ACCEL_OK; ERR_INVALID @p position is not below ds_accel_candidate_count(); ERR_STATE
 * a thread of the parent process was changing the context during fork() */
DS_ACCEL_EXPORT int32_t ds_accel_candidate_get(ds_accel_t *context, uint32_t position,
                                               struct ds_accel_candidate *candidate_out);

/* ---- reports: what the command line prints -------------------------------------------------- */

/* libds_accel_tools.so makes the reports from DOCTOR on, and every text and picture:
 * ds_accel_tools.h explains how a program links it beside this library. */
#define DS_ACCEL_REPORT_DETECT 1u     /**< the choice and every candidate */
#define DS_ACCEL_REPORT_LIST 2u       /**< every plugin found */
#define DS_ACCEL_REPORT_INFO 3u       /**< all that is known of an accelerator */
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
#define DS_ACCEL_REPORT_BUNDLE 12u /**< the other reports in one, for support: JSON only */
/** the machine for ds_accel_options.machine_file: JSON only; no other thread may use the context
 * while the report is made */
#define DS_ACCEL_REPORT_RECORDING 13u
#define DS_ACCEL_REPORT_MEMORY 16u /**< memory of an accelerator's devices now: JSON or SVG */

#define DS_ACCEL_FORMAT_JSON 1u
#define DS_ACCEL_FORMAT_COLOUR 2u  /**< text with ANSI colours */
#define DS_ACCEL_FORMAT_VERBOSE 4u /**< text with details otherwise left out: skipped gates */
#define DS_ACCEL_FORMAT_UNREDACTED \
    16u /**< with names of host and user, home directory and addresses; BUNDLE only */
#define DS_ACCEL_FORMAT_SVG 8u /**< a picture; MEMORY and TOPO only */

/**
 * Write a report.
 *
 * @param[in]  report    DS_ACCEL_REPORT_*
 * @param[in]  name      a backend, or NULL: all of them, or for INFO, ENV and MEMORY the chosen
 *                        one. TOPO: backends, separated by commas; NULL: the forced backend, or
 *                        without one the usable backends
 * @param[in]  format    DS_ACCEL_FORMAT_* bits; 0 is plain text
 * @param[out] text_out  ends in a newline unless empty
 * @return DS_ACCEL_OK; ERR_NOT_FOUND @p name is not known; the status of ds_accel_detect() when the
 *         report needs the choice; ERR_NO_MEMORY. DETECT is written even if detection fails.
 *         ERR_STATE DOCTOR found a problem; the report is written too. ERR_STATE with nothing
 *         written: as ds_accel_detect() returns it after fork(). ERR_UNSUPPORTED the report or its
 *         text needs libds_accel_tools.so, which is not loaded; nothing was detected
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
 *         libds_accel_tools.so; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_config_check(const struct ds_accel_options *options,
                                              uint32_t format, char **text_out);

/**
 * Validate these files instead of those that a context would read; options declared by packages
 * come from the packages' files.
 *
 * @param[in]  paths     files, and directories whose .json files are validated
 * @param[in]  texts     texts[count], or NULL: an element that is not NULL is the contents of the
 *                       file, and its path is only a name
 * @param[out] text_out  the verdict; written for ERR_CONFIG too
 * @return as ds_accel_config_check(); a file that cannot be read is a problem; ERR_INVALID
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
/** the list of segments alone, for torch's memory viewer before 2.0 */
#define DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS 5u

/** Release data that this library made; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_free_data(void *data);

/* ---- devices -------------------------------------------------------------------------------- */

/** An ordered queue of a device's work: copies, fills, host tasks, graphs, a program's kernels. */
typedef struct ds_accel_stream ds_accel_stream_t;
/** A mark in a stream: other streams wait for it, and two events measure time. */
typedef struct ds_accel_event ds_accel_event_t;
/** Work that was captured once and is replayed as a whole. */
typedef struct ds_accel_graph ds_accel_graph_t;
/** Separate memory: no other pool reuses what one pool allocates. */
typedef struct ds_accel_pool ds_accel_pool_t;

/*
 * Handles of all kinds: a call with a destroyed handle returns DS_ACCEL_ERR_INVALID until the
 * handle's memory has been reused many times; a call with NULL returns DS_ACCEL_ERR_INVALID. In a
 * child forked after ds_accel_detect() every call on a device, or on an object of a device, returns
 * DS_ACCEL_ERR_STATE at once, except calls that only read a handle: a tensor's properties, and
 * views of it.
 */

/** @return DS_ACCEL_OK; ERR_STATE before ds_accel_detect(); what the plugin returns */
DS_ACCEL_EXPORT int32_t ds_accel_device_count(ds_accel_t *context, uint32_t *count_out);

/**
 * The name that frameworks use: "cuda", or with an index "cuda:1". A backend whose devices
 * frameworks do not number (cpu) has one name for all devices.
 *
 * @param[in]  device_index  an index, or -1 for the name without an index
 * @param[out] name          NUL-terminated, at least name_size bytes
 * @return DS_ACCEL_OK; ERR_INVALID index out of range or the name does not fit; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_name(ds_accel_t *context, int32_t device_index, char *name,
                                             size_t name_size);

/**
 * The device that a name means: "cuda:1", "1", a UUID, or a PCI address ("0000:65:00.0",
 * "65:00.0"). The backend's bare name is the calling thread's current device.
 *
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no device has that name; ERR_INVALID NULL, or two devices have
 *         that name; ERR_STATE before ds_accel_detect()
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_find(ds_accel_t *context, const char *name,
                                             uint32_t *device_index_out);

/**
 * The index of the calling thread's current device; cpu: from LOCAL_RANK until a device is set.
 * @source DeepSpeed current_device()
 */
DS_ACCEL_EXPORT int32_t ds_accel_current_device(ds_accel_t *context, uint32_t *device_index_out);

/**
 * Make a device the calling thread's current device, for this library and for the vendor's runtime.
 *
 * @return DS_ACCEL_OK; ERR_INVALID index out of range; ERR_STATE; the status of
 *         ds_accel_device_open()
 * @threads any; each has its own
 * @source DeepSpeed set_device()
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_device(ds_accel_t *context, uint32_t device_index);

/** ds_accel_device_name() of the current device: "cuda:1". @source DeepSpeed current_device_name()
 */
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

/** End one opening. The last close destroys the device's remaining streams, events, graphs and
 * memory; as long as tensors hold memory of the device, it stays open. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_device_close(ds_accel_device_t *device);

/** The handle of a device that the first call opens and that stays open as long as the context. */
DS_ACCEL_EXPORT int32_t ds_accel_device_get(ds_accel_t *context, uint32_t device_index,
                                            ds_accel_device_t **device_out);

/** The index that the device was opened with; UINT32_MAX for NULL and for a closed device. */
DS_ACCEL_EXPORT uint32_t ds_accel_device_index(const ds_accel_device_t *device);

/** The device's identity, without opening or waking the device. @param[out] identity_out
 * struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_device_identity(ds_accel_t *context, uint32_t device_index,
                                                 struct ds_accel_device_identity *identity_out);

/**
 * The plugin's functions and instance, for calls without a device: identity, telemetry, links,
 * pointer attributes. Every slot can be called.
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
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_UNSUPPORTED the backend has no streams; ERR_NO_MEMORY
 * @threads any   @owner caller; release with ds_accel_stream_destroy()
 * @source DeepSpeed Stream
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_create(ds_accel_device_t *device, uint32_t flags,
                                               int32_t priority, ds_accel_stream_t **stream_out);

/** Queued work still completes. NULL and the default stream are ignored. */
DS_ACCEL_EXPORT void ds_accel_stream_destroy(ds_accel_stream_t *stream);

/** @param[out] least_out the lowest urgency   @param[out] greatest_out the highest: <= *least_out
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_priority_range(ds_accel_device_t *device,
                                                       int32_t *least_out, int32_t *greatest_out);

/** The device's default stream. @owner borrowed; lives as long as the device
 * @source DeepSpeed default_stream() */
DS_ACCEL_EXPORT int32_t ds_accel_default_stream(ds_accel_device_t *device,
                                                ds_accel_stream_t **stream_out);

/**
 * The calling thread's current stream of the device: the default stream until another stream is
 * set, and again after that stream was destroyed.
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

/** Later work of @p stream waits on the device for all work now queued on @p other. */
DS_ACCEL_EXPORT int32_t ds_accel_stream_wait_stream(ds_accel_stream_t *stream,
                                                    ds_accel_stream_t *other);

/**
 * Wrap a stream of the vendor's own runtime (cudaStream_t, hipStream_t ...) in a handle of this
 * library.
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED; ERR_INVALID
 * @owner  @p native stays the caller's; ds_accel_stream_destroy() destroys the handle only
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_wrap(ds_accel_device_t *device, uint64_t native,
                                             ds_accel_stream_t **stream_out);

/** The vendor's handle behind a stream. @owner borrowed */
DS_ACCEL_EXPORT int32_t ds_accel_stream_native(ds_accel_stream_t *stream, uint64_t *native_out);

/** The device that a stream belongs to; NULL for NULL and for a destroyed stream. */
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
/** Streams and threads that wait for the event keep waiting for the recorded work. NULL is
 * ignored. */
DS_ACCEL_EXPORT void ds_accel_event_destroy(ds_accel_event_t *event);

/**
 * Milliseconds on the device from one event to another of the same device.
 * @return DS_ACCEL_OK; ERR_STATE an event was created without timing, or is not reached yet;
 *         ERR_INVALID
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
 * Memory used only by this graph is freed in stream order on the capture stream. If the graph was
 * replayed on other streams, this call waits for the latest of these replays; where it cannot wait,
 * the memory is kept until the device is closed, and the library logs a warning. Some backends
 * (xpu) also wait for a replay on the capture stream. NULL is ignored.
 *
 * If the graph is being captured, the capture ends. In a mode other than RELAXED only the thread
 * that began the capture can end it; if another thread destroys the graph, the capture continues
 * until its stream is destroyed, its memory is kept until the device is closed, and the library
 * logs a warning.
 */
DS_ACCEL_EXPORT void ds_accel_graph_destroy(ds_accel_graph_t *graph);

/**
 * From now on work queued on @p stream is recorded instead of executed. The graph's earlier
 * contents are dropped.
 *
 * @param[in] pool  source of memory allocated during the capture; NULL: a private pool of the
 *                  graph. This memory is not used for anything else while the graph exists.
 * @param[in] mode  DS_ACCEL_CAPTURE_*
 * @return DS_ACCEL_OK; ERR_STATE the stream already captures, or the graph is being captured
 * @source DeepSpeed capture_to_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_capture_begin(ds_accel_graph_t *graph,
                                                     ds_accel_stream_t *stream,
                                                     ds_accel_pool_t *pool, uint32_t mode);

/** End the capture. @return DS_ACCEL_OK; ERR_STATE the capture was broken, or no capture was begun:
 * the graph is then empty; or another thread began the capture in a mode other than RELAXED: the
 * capture may then continue, as ds_accel_stream_is_capturing() reports, and that thread can end
 * it */
DS_ACCEL_EXPORT int32_t ds_accel_graph_capture_end(ds_accel_graph_t *graph);

/** Make the graph ready for replay; the first replay does so too. */
DS_ACCEL_EXPORT int32_t ds_accel_graph_instantiate(ds_accel_graph_t *graph);

/**
 * Queue the whole graph on a stream.
 * @return DS_ACCEL_OK; ERR_STATE nothing was captured
 * @source DeepSpeed replay_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_replay(ds_accel_graph_t *graph, ds_accel_stream_t *stream);

/**
 * Is work now queued on a stream captured: because a capture began on the stream, or because the
 * stream waited for an event of a capture?
 *
 * @param[out] capturing_out  DS_ACCEL_CAPTURING_NO, _YES, or _BROKEN: the end of the capture will
 *                            return no graph
 * @return DS_ACCEL_OK, also for a backend without graphs; ERR_INVALID; ERR_STATE in a forked child
 * @threads any
 * @source torch.cuda.is_current_stream_capturing()
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_is_capturing(ds_accel_stream_t *stream,
                                                     uint32_t *capturing_out);

/** @return DS_ACCEL_OK; ERR_STATE nothing was captured; ERR_UNSUPPORTED */
DS_ACCEL_EXPORT int32_t ds_accel_graph_node_count(ds_accel_graph_t *graph, uint64_t *count_out);

/** A readable description of the graph, Graphviz where the vendor supports it. @owner caller;
 * ds_accel_free_text() */
DS_ACCEL_EXPORT int32_t ds_accel_graph_dump(ds_accel_graph_t *graph, char **text_out);

/* ---- memory --------------------------------------------------------------------------------- */

/**
 * Allocate device memory from the caching allocator, for use in the order of @p stream.
 *
 * @param[in]  stream       stream of first use; NULL: the calling thread's current stream
 * @param[in]  size_bytes   > 0; rounded up to 512 bytes
 * @param[out] pointer_out  512-byte aligned device address; contents undefined
 * @return DS_ACCEL_OK; ERR_INVALID size 0, or a stream of another device; ERR_NO_MEMORY after one
 *         retry with an empty cache, with the figures in ds_accel_last_error(); ERR_DRIVER
 * @threads any; takes the lock of the stream's arena in the allocator
 * @owner  caller; release with ds_accel_mem_free()
 * @source DeepSpeed accelerator/abstract_accelerator.py, memory API
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                           uint64_t size_bytes, void **pointer_out);

/** As ds_accel_mem_alloc(), aligned to @p align_bytes, a power of two up to 1 GiB. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc_aligned(ds_accel_device_t *device,
                                                   ds_accel_stream_t *stream, uint64_t size_bytes,
                                                   uint64_t align_bytes, void **pointer_out);

/**
 * Free memory in stream order: after the work now queued on the streams that use it. The call
 * returns at once. The allocator may reuse the memory at once: on the same stream without a wait,
 * on any other stream after a wait on the device.
 *
 * @param[in] stream  the stream of the last work that uses the memory; NULL: the stream it was
 *                    allocated on
 * @return DS_ACCEL_OK, also for NULL; ERR_INVALID not the start of live memory of this device:
 *         freed before, inside an allocation, of another device; or, with the allocator's mode
 *         "debug", this memory was written past its end, or other memory was written after it was
 *         freed. ERR_DRIVER the allocator can't wait for a stream that used the memory, and never
 *         reuses the memory
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_free(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                          void *pointer);

/**
 * Record that another stream also uses the memory: the allocator reuses it only after the work
 * queued on that stream when the memory is freed.
 * @source torch.Tensor.record_stream
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_record_stream(ds_accel_device_t *device, void *pointer,
                                                   ds_accel_stream_t *stream);

/**
 * Allocate page-locked host memory, from a pool of freed blocks.
 *
 * @param[in] align_bytes  1: the runtime's own alignment; 0: the page size, for direct I/O; else a
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
 * Return pinned memory to the pool, at once. The pool reuses the memory, or returns it to the
 * runtime, only after all work that the streams of this context have queued by now on any open
 * device: the caller need not wait for copies from and to the memory. Streams without a handle of
 * this library are not included: ds_accel_stream_wrap() makes a handle. Memory that a graph uses
 * must outlive the graph's replays.
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

/** *is_pinned_out: 1 if the host address is in page-locked memory. @source DeepSpeed is_pinned() */
DS_ACCEL_EXPORT int32_t ds_accel_is_pinned(ds_accel_t *context, const void *pointer,
                                           uint32_t *is_pinned_out);

/**
 * Copy; the copy is complete on return. It is not ordered after the work of any stream: synchronize
 * first.
 *
 * @param[in] kind  DS_ACCEL_COPY_*
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_copy(ds_accel_device_t *device, void *destination,
                                          const void *source, uint64_t size_bytes, uint32_t kind);

/** Set memory to a byte and wait for completion. */
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
 * Called when memory is exhausted, after the cache was emptied: the callback frees memory (spills
 * it to the host) and requests a retry of the allocation. It runs on the allocating thread, with no
 * lock held, and may call this library, also to free memory of this device. An allocation inside
 * the callback fails without a nested call of the callback.
 *
 * @param size_bytes  size of the request
 * @param attempt     from 1; at most 16 calls
 * @return > 0: try again; otherwise the allocation fails
 */
typedef int32_t (*ds_accel_memory_failure_t)(void *user_data, ds_accel_device_t *device,
                                             uint64_t size_bytes, uint32_t attempt);

/** Bytes in this process's live allocations on this device, each counted with its rounded size.
 * @source DeepSpeed memory_allocated() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_allocated(ds_accel_device_t *device, uint64_t *bytes_out);
/** The exact peak of ds_accel_memory_allocated() since the last reset. */
DS_ACCEL_EXPORT int32_t ds_accel_max_memory_allocated(ds_accel_device_t *device,
                                                      uint64_t *bytes_out);
/** Bytes held from the driver, in allocations or cached. @source DeepSpeed memory_cached(),
 * memory_reserved() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_reserved(ds_accel_device_t *device, uint64_t *bytes_out);
DS_ACCEL_EXPORT int32_t ds_accel_max_memory_reserved(ds_accel_device_t *device,
                                                     uint64_t *bytes_out);

/** Set all peaks to the current values. */
DS_ACCEL_EXPORT int32_t ds_accel_reset_peak_memory_stats(ds_accel_device_t *device);
/** Set the peaks of allocations to the current values. */
DS_ACCEL_EXPORT int32_t ds_accel_reset_max_memory_allocated(ds_accel_device_t *device);
/** Set the peaks of memory held from the driver to the current values. @source DeepSpeed
 * reset_max_memory_cached() */
DS_ACCEL_EXPORT int32_t ds_accel_reset_max_memory_reserved(ds_accel_device_t *device);

/** The most memory of the device that this process can get: the device's memory, or a lower limit
 * of the machine. */
DS_ACCEL_EXPORT int32_t ds_accel_total_memory(ds_accel_device_t *device, uint64_t *bytes_out);
/** Bytes that can be allocated now: the driver's free memory, up to the allocator's limit, plus the
 * cached segments that are free as a whole; at most ds_accel_total_memory(). A single allocation
 * may get less, since it needs one piece. */
DS_ACCEL_EXPORT int32_t ds_accel_available_memory(ds_accel_device_t *device, uint64_t *bytes_out);

/**
 * One statistic by its name in torch.cuda.memory_stats().
 *
 * @param[in]  key        "allocated_bytes.all.current"
 * @param[out] value_out  bytes or a count
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no such name, the error has the nearest one; ERR_INVALID
 * @threads any; a consistent snapshot of the figures, without operations that have not returned
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_stat(ds_accel_device_t *device, const char *key,
                                             int64_t *value_out);

/** All statistics, as one JSON object. @owner caller; ds_accel_free_text() @source DeepSpeed
 * memory_stats() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_stats(ds_accel_device_t *device, char **json_text_out);

/**
 * Share of the cached memory outside its largest piece: 0 if the memory is one piece, towards 1
 * with more and smaller pieces.
 *
 * @param[out] fragmentation_out  1 - largest / cached; 0 if nothing is cached
 * @param[out] largest_bytes_out  the largest piece, with free neighbours counted as one piece: a
 *             larger request goes to the driver
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_fragmentation(ds_accel_device_t *device,
                                                      double *fragmentation_out,
                                                      uint64_t *largest_bytes_out);

/**
 * Return cached memory to the driver, after the work that used it is done. Memory of private pools
 * stays cached; while a stream captures, all memory stays cached.
 * @source DeepSpeed empty_cache()
 */
DS_ACCEL_EXPORT int32_t ds_accel_empty_cache(ds_accel_device_t *device);
/** The same until at most keep_bytes are held; the longest unused memory goes first. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_trim(ds_accel_device_t *device, uint64_t keep_bytes);

/** Hold at most limit_bytes from the driver; 0: no limit. Memory already held stays. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_limit(ds_accel_device_t *device, uint64_t limit_bytes);
/** The same limit as a fraction of the device's memory. @return also ERR_INVALID unless 0 <
 * fraction <= 1 @source torch.cuda.set_per_process_memory_fraction */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_fraction(ds_accel_device_t *device, double fraction);

/** Set the callback to call before an allocation fails; NULL: none. Another thread may still run
 * the previous callback when this call returns: keep the previous user_data valid until then. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_failure_callback(ds_accel_device_t *device,
                                                             ds_accel_memory_failure_t callback,
                                                             void *user_data);

#define DS_ACCEL_HISTORY_OFF 0u
#define DS_ACCEL_HISTORY_ON 1u
#define DS_ACCEL_HISTORY_STACKS 2u /**< with call stacks: slower */

/**
 * Keep the latest allocations and frees of the device, for snapshots.
 *
 * @param[in] flags        DS_ACCEL_HISTORY_*; OFF drops the recorded entries
 * @param[in] max_entries  older ones are dropped
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_record_history(ds_accel_device_t *device, uint32_t flags,
                                                       uint64_t max_entries);

/**
 * A snapshot of the memory: segments, blocks, statistics, and the recorded history.
 *
 * @param[in]  context         all its open devices; ignored if @p device is set
 * @param[in]  device          this device alone, or NULL
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
/** Memory allocated from the pool stays valid. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_pool_destroy(ds_accel_pool_t *pool);
/** From now on this thread's allocations on the pool's device come from the pool.
 * @return DS_ACCEL_OK; ERR_STATE the thread already allocates from a pool */
DS_ACCEL_EXPORT int32_t ds_accel_pool_begin(ds_accel_pool_t *pool);
DS_ACCEL_EXPORT int32_t ds_accel_pool_end(ds_accel_pool_t *pool);

/* ---- layers --------------------------------------------------------------------------------- */

/*
 * Layers stand between program and plugin when DS_ACCEL_LAYERS or the configuration's "layers"
 * names them, and cost nothing when none is named: "validate" checks both sides of every call,
 * "race" (a part of it) looks for unordered accesses, "leak" reports objects still live at the end,
 * "trace" writes a file for browsers' trace viewers.
 */

#define DS_ACCEL_ACCESS_READ 1u
#define DS_ACCEL_ACCESS_WRITE 2u

/**
 * The number of races found: pairs of call sites with unordered accesses.
 * @return DS_ACCEL_OK; ERR_STATE layer race is not on; ERR_INVALID NULL
 * @threads any
 */
DS_ACCEL_EXPORT int32_t ds_accel_race_count(ds_accel_t *context, uint64_t *count_out);

/**
 * A layer's findings: one line per race, or per kind of live object.
 *
 * @param[in]  layer     "race" or "leak"
 * @param[out] text_out  "" if there are no findings
 * @return DS_ACCEL_OK; ERR_STATE the layer is not on; ERR_NOT_FOUND no such layer reports;
 *         ERR_INVALID NULL; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_layer_report(ds_accel_t *context, const char *layer,
                                              char **text_out);

/* Internal; public only because the inline function below uses them. */
DS_ACCEL_EXPORT extern uint32_t ds_accel__layers_on; /* accelerators that have layers */
DS_ACCEL_EXPORT int32_t ds_accel__layer_note_access(ds_accel_device_t *device,
                                                    ds_accel_stream_t *stream, const void *pointer,
                                                    uint64_t size_bytes, uint32_t access);

/**
 * Report an access that the race detector cannot see: by a kernel of the program just queued on
 * @p stream, or by host code. One load and one branch when no layer is on.
 *
 * @param[in] device   the device of the memory; for host memory, any device
 * @param[in] stream   NULL: the calling thread accesses the memory now, or inside a host task the
 *                     task does
 * @param[in] pointer  start of the @p size_bytes accessed; 0 bytes are no access
 * @param[in] access   DS_ACCEL_ACCESS_READ or DS_ACCEL_ACCESS_WRITE
 * @return DS_ACCEL_OK, without any check, when no layer is on; ERR_INVALID not a live handle, range
 * or kind of access, or a stream of another context; with layer validate, also memory that was
 * freed, or that no allocator has allocated; ERR_STATE in a forked child, or, where validate.races
 * is "fail", an access that races: the access is then not recorded
 * @threads any; the one call of this library that a host task may make
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
 * Use the device's own generator (the plugin's rng functions) instead of Philox. The vendor defines
 * its numbers, and a device has only one: two generators with this flag share it.
 */
#define DS_ACCEL_RNG_VENDOR 1u

/** A position in the sequence of a seed: 2^64 subsequences of 2^64 blocks of 4 words of 32 bits. */
struct ds_accel_rng_position {
    uint32_t struct_size;
    uint32_t word; /**< word of the block, 0 to 3; 4 in block UINT64_MAX: all words are used */
    uint64_t block;
    uint64_t subsequence; /**< ranks with different subsequences share no number */
};

/**
 * Make a generator.
 *
 * @param[in] flags  0 or DS_ACCEL_RNG_VENDOR
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED the device has no generator of its own; ERR_INVALID;
 *         ERR_NO_MEMORY
 * @threads any; several threads may use one generator at once, each call is atomic
 * @owner  caller; release with ds_accel_rng_destroy()
 */
DS_ACCEL_EXPORT int32_t ds_accel_rng_create(ds_accel_device_t *device, uint64_t seed,
                                            uint32_t flags, ds_accel_rng_t **rng_out);

/** Numbers already queued are still made. NULL and default generators are ignored. */
DS_ACCEL_EXPORT void ds_accel_rng_destroy(ds_accel_rng_t *rng);

/**
 * The device's default generator. Its seed is that of the last ds_accel_manual_seed_all(), else
 * 67280421310721, torch's. A device that is closed and opened again gets a new generator.
 * @owner borrowed; lives as long as the device is open   @source DeepSpeed default_generator()
 */
DS_ACCEL_EXPORT int32_t ds_accel_default_rng(ds_accel_device_t *device, ds_accel_rng_t **rng_out);

/** Go to the beginning of a seed's sequence: subsequence 0, block 0. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_manual_seed(ds_accel_rng_t *rng, uint64_t seed);

/** The same with a seed from the kernel's random source. @return also ERR_IO */
DS_ACCEL_EXPORT int32_t ds_accel_rng_seed(ds_accel_rng_t *rng, uint64_t *seed_out);

/** The seed that was last set. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_initial_seed(ds_accel_rng_t *rng, uint64_t *seed_out);

/** @param[out] position_out  struct_size set   @return also ERR_UNSUPPORTED a vendor's generator */
DS_ACCEL_EXPORT int32_t ds_accel_rng_position(ds_accel_rng_t *rng,
                                              struct ds_accel_rng_position *position_out);
/** Move to a position in the seed's sequence, forwards or backwards, in constant time. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_set_position(ds_accel_rng_t *rng,
                                                  const struct ds_accel_rng_position *position);

/**
 * The seed and position as bytes for ds_accel_rng_set_state(), equal on every machine.
 *
 * @param[out] state       NULL: only get the size
 * @param[out] needed_out  bytes of the state; written on OK and ERR_LIMIT; may be NULL
 * @return DS_ACCEL_OK; ERR_LIMIT size_bytes is too small, state is unchanged
 */
DS_ACCEL_EXPORT int32_t ds_accel_rng_get_state(ds_accel_rng_t *rng, void *state,
                                               uint64_t size_bytes, uint64_t *needed_out);
/** @return DS_ACCEL_OK; ERR_INVALID not a state, or damaged, or of another kind of generator: the
 * generator is unchanged */
DS_ACCEL_EXPORT int32_t ds_accel_rng_set_state(ds_accel_rng_t *rng, const void *state,
                                               uint64_t size_bytes);

/**
 * Fill device memory with numbers uniformly distributed in [low, high), queued on @p stream.
 *
 * An element depends only on seed and position: filling two halves one after the other gives the
 * same as filling the whole. The position advances by one word per element, for float64 and int64
 * by two words from the next even word. Decision 0017 of the sources defines how bits become
 * numbers.
 *
 * @param[in] stream   NULL: the calling thread's current one
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

/** The same, normally distributed. @p standard_deviation >= 0; a value too large for the type
 * becomes infinity. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_normal(ds_accel_rng_t *rng, ds_accel_stream_t *stream,
                                            void *pointer, uint64_t count, uint32_t dtype,
                                            double mean, double standard_deviation);

/** The same with bits: INT32 takes one word per element, INT64 two words, INT16, INT8 and UINT8 the
 * lowest bits of a word, BOOL its highest bit. */
DS_ACCEL_EXPORT int32_t ds_accel_rng_bits(ds_accel_rng_t *rng, ds_accel_stream_t *stream,
                                          void *pointer, uint64_t count, uint32_t dtype);

/** Seed the default generator of the calling thread's current device.
 * @source DeepSpeed manual_seed() */
DS_ACCEL_EXPORT int32_t ds_accel_manual_seed(ds_accel_t *context, uint64_t seed);

/** Seed the default generators of all devices, including devices opened later, without opening any
 * device. @source DeepSpeed manual_seed_all() */
DS_ACCEL_EXPORT int32_t ds_accel_manual_seed_all(ds_accel_t *context, uint64_t seed);

/** ds_accel_rng_seed() of the current device's default generator. @source torch.cuda.seed() */
DS_ACCEL_EXPORT int32_t ds_accel_seed(ds_accel_t *context, uint64_t *seed_out);

/** ds_accel_rng_initial_seed() of the current device's default generator. @source DeepSpeed
 * initial_seed() */
DS_ACCEL_EXPORT int32_t ds_accel_initial_seed(ds_accel_t *context, uint64_t *seed_out);

/** ds_accel_rng_get_state() of a device's default generator. @param[in] device_index -1: the
 * current device's   @source DeepSpeed get_rng_state() */
DS_ACCEL_EXPORT int32_t ds_accel_get_rng_state(ds_accel_t *context, int32_t device_index,
                                               void *state, uint64_t size_bytes,
                                               uint64_t *needed_out);
/** @source DeepSpeed set_rng_state() */
DS_ACCEL_EXPORT int32_t ds_accel_set_rng_state(ds_accel_t *context, int32_t device_index,
                                               const void *state, uint64_t size_bytes);

/* ---- tensors -------------------------------------------------------------------------------- */

/**
 * A typed, shaped view of memory: element (i, j ...) is at data + (i * strides[0] + j * strides[1]
 * ...) elements. A tensor never changes; all views of a memory share it, and the last view releases
 * it. Tensors are counted: each tensor_out is one reference for the caller, released with
 * ds_accel_tensor_put().
 *
 * While tensors hold memory of a device, the device stays open even after its last close, and
 * ds_accel_destroy() of its context takes effect when the last of this memory is released.
 */
typedef struct ds_accel_tensor ds_accel_tensor_t;

#define DS_ACCEL_TENSOR_DIMS_MAX 32

#define DS_ACCEL_PLACE_HOST 1u   /**< ordinary memory of the host */
#define DS_ACCEL_PLACE_PINNED 2u /**< page-locked memory of the host */
#define DS_ACCEL_PLACE_DEVICE 3u

#define DS_ACCEL_TENSOR_READ_ONLY 1u  /**< not writable: calls of this library refuse */
#define DS_ACCEL_TENSOR_CONTIGUOUS 2u /**< elements in row-major order, without gaps */
#define DS_ACCEL_TENSOR_COPIED 4u     /**< imported, a copy made by the exporting library */

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
    ds_accel_device_t *device; /**< borrowed; NULL with device_index -1 */
    void *storage;             /**< the whole memory that its views share */
    uint64_t storage_bytes;
    int64_t shape[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX]; /**< in elements; any sign */
};

/** Memory of the caller, to make a tensor of. Zero the struct, then set struct_size. */
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
 * Make a contiguous tensor in device memory, on the calling thread's current stream. Contents
 * undefined.
 *
 * @param[in] ndim   0 (one element) to DS_ACCEL_TENSOR_DIMS_MAX
 * @param[in] shape  shape[ndim]; 0 is a valid size
 * @return DS_ACCEL_OK; ERR_INVALID a dtype, a negative size, or a product past 2^63; as
 *         ds_accel_mem_alloc()
 * @threads any, for all tensor calls; several threads may use one tensor at once
 * @owner  caller; release with ds_accel_tensor_put()
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_create(ds_accel_device_t *device, uint32_t dtype,
                                               uint32_t ndim, const int64_t *shape,
                                               ds_accel_tensor_t **tensor_out);

/** The same in page-locked host memory. @param[in] align_bytes as ds_accel_mem_alloc_pinned() */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_create_pinned(ds_accel_device_t *device, uint32_t dtype,
                                                      uint32_t ndim, const int64_t *shape,
                                                      uint64_t align_bytes,
                                                      ds_accel_tensor_t **tensor_out);

/** The same in ordinary host memory, 64-byte aligned; needs no device. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_create_host(uint32_t dtype, uint32_t ndim,
                                                    const int64_t *shape,
                                                    ds_accel_tensor_t **tensor_out);

/**
 * Make a tensor of existing memory. The deleter is called when the last tensor of the memory is
 * released: the caller first waits for the work queued on the memory.
 *
 * @param[in] device  NULL: host memory; else memory of the device or pinned memory, as its runtime
 *                    reports
 * @return DS_ACCEL_OK; ERR_INVALID, also for memory of another device. After a failure the caller
 *         keeps the memory, and the deleter is not called.
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_from_memory(ds_accel_device_t *device,
                                                    const struct ds_accel_tensor_memory *memory,
                                                    ds_accel_tensor_t **tensor_out);

/** Add a reference. @return the same tensor; NULL for NULL and for a destroyed tensor */
DS_ACCEL_EXPORT ds_accel_tensor_t *ds_accel_tensor_get(ds_accel_tensor_t *tensor);

/** Release a reference; releasing the last reference of all tensors of a memory frees the memory in
 * the order of the streams that use it. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_tensor_put(ds_accel_tensor_t *tensor);

/** @param[out] info_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_info(const ds_accel_tensor_t *tensor,
                                             struct ds_accel_tensor_info *info_out);

/** Address of the first element; NULL if there is no element, and for NULL. @owner borrowed */
DS_ACCEL_EXPORT void *ds_accel_tensor_data(const ds_accel_tensor_t *tensor);

/**
 * Make a view of the tensor's memory.
 *
 * @param[in] offset   of the first element from @p tensor's first, in elements; may be negative
 * @param[in] strides  strides[ndim] in elements; NULL: contiguous
 * @return DS_ACCEL_OK; ERR_INVALID part of the view would be outside the memory
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_view(ds_accel_tensor_t *tensor, int64_t offset,
                                             uint32_t ndim, const int64_t *shape,
                                             const int64_t *strides,
                                             ds_accel_tensor_t **tensor_out);

/** The same elements in the same order under another shape, of which one size may be -1, to be
 * computed. @return ERR_INVALID also if the view would need a copy: ds_accel_tensor_contiguous()
 * makes a copy */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_reshape(ds_accel_tensor_t *tensor, uint32_t ndim,
                                                const int64_t *shape,
                                                ds_accel_tensor_t **tensor_out);

/** A view of the elements start, start + step, ... of one dimension, up to but excluding stop.
 * @return ERR_INVALID unless 0 <= start <= stop <= size and step > 0 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_slice(ds_accel_tensor_t *tensor, uint32_t dim,
                                              int64_t start, int64_t stop, int64_t step,
                                              ds_accel_tensor_t **tensor_out);

/** Two dimensions swapped. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_transpose(ds_accel_tensor_t *tensor, uint32_t dim,
                                                  uint32_t other, ds_accel_tensor_t **tensor_out);

/**
 * Copy the elements of one tensor to another of the same shape and dtype.
 *
 * Queued on @p stream; with ordinary host memory on one side the copy is complete on return. Where
 * the host can't access the memory, each contiguous run of elements is a copy of its own.
 *
 * @param[in] stream  of the device, or of one of the two devices; NULL: the current stream of the
 *                    destination's device, or of the source's. If both tensors are on the host, the
 *                    call first waits for the stream, if given.
 * @return DS_ACCEL_OK; ERR_INVALID shapes, dtypes or contexts differ, the destination is read-only,
 *         or several of its elements share one address, or the memory ranges of the two overlap;
 *         ERR_STATE a stream that captures and ordinary host memory; ERR_NO_MEMORY; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_copy(ds_accel_tensor_t *destination,
                                             ds_accel_tensor_t *source, ds_accel_stream_t *stream);

/**
 * The tensor on a device, or on the host: a new reference if it is already there, else a contiguous
 * copy.
 * @param[in] device  NULL: the host
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_to(ds_accel_tensor_t *tensor, ds_accel_device_t *device,
                                           ds_accel_stream_t *stream,
                                           ds_accel_tensor_t **tensor_out);

/** A new reference if the tensor is contiguous, else a contiguous copy in the same place. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_contiguous(ds_accel_tensor_t *tensor,
                                                   ds_accel_stream_t *stream,
                                                   ds_accel_tensor_t **tensor_out);

/**
 * Set every element, queued on @p stream.
 * @param[in] value  one element of the tensor's dtype; for a complex dtype, both parts
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_fill(ds_accel_tensor_t *tensor, const void *value,
                                             ds_accel_stream_t *stream);
DS_ACCEL_EXPORT int32_t ds_accel_tensor_zero(ds_accel_tensor_t *tensor, ds_accel_stream_t *stream);

/** Record that a stream uses the memory, as ds_accel_mem_record_stream() does. Calls of this
 * library with a stream argument record it themselves. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_record_stream(ds_accel_tensor_t *tensor,
                                                      ds_accel_stream_t *stream);

/** *is_on_out: 1 if the tensor is on a device, else 0. @source DeepSpeed on_accelerator() */
DS_ACCEL_EXPORT int32_t ds_accel_on_accelerator(const ds_accel_tensor_t *tensor,
                                                uint32_t *is_on_out);

/**
 * The tensor in page-locked memory: a new reference if its memory is already page-locked and has
 * this alignment, else a contiguous copy.
 * @param[in] align_bytes as ds_accel_mem_alloc_pinned()
 * @return also ERR_INVALID the tensor is on a device
 * @source DeepSpeed pin_memory(tensor, align_bytes)
 */
DS_ACCEL_EXPORT int32_t ds_accel_pin_memory(ds_accel_tensor_t *tensor, ds_accel_device_t *device,
                                            uint64_t align_bytes, ds_accel_tensor_t **tensor_out);

/** *is_pinned_out: 1 if the tensor is in page-locked memory, else 0. */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_is_pinned(const ds_accel_tensor_t *tensor,
                                                  uint32_t *is_pinned_out);

#define DS_ACCEL_DLPACK_VERSIONED 1u /**< DLManagedTensorVersioned, 1.x; else DLManagedTensor */
#define DS_ACCEL_DLPACK_COPY 2u      /**< a contiguous copy, flagged as a copy */

enum {
    DS_ACCEL_DLPACK_NO_STREAM = -1, /**< the consumer orders its own accesses */
    DS_ACCEL_DLPACK_DEFAULT_STREAM = 0,
};
#define DS_ACCEL_DLPACK_NO_STREAM (+DS_ACCEL_DLPACK_NO_STREAM)
#define DS_ACCEL_DLPACK_DEFAULT_STREAM (+DS_ACCEL_DLPACK_DEFAULT_STREAM)

/**
 * Export the tensor to another library as a DLPack structure, without a copy.
 *
 * Device types: kDLCUDA, kDLROCM, kDLOneAPI, kDLOpenCL and kDLMetal for the backends of that name;
 * kDLCUDAHost and kDLROCMHost for pinned memory of the first two; kDLCPU for host memory and for
 * devices with host-accessible memory (cpu, mock); kDLExtDev for all others.
 *
 * @param[in]  flags        DS_ACCEL_DLPACK_*
 * @param[in]  consumer     the consumer's stream, as in __dlpack__(stream): its later work is
 *                          ordered after the work queued on the calling thread's current stream. A
 *                          vendor's handle, or DS_ACCEL_DLPACK_*_STREAM. If the consumer is the
 *                          host, this call waits for that work.
 * @param[out] managed_out  DLManagedTensor * or DLManagedTensorVersioned *; holds a reference until
 *                          its deleter is called, once, on any thread
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED DLPack has no such dtype, or, without
 *         DS_ACCEL_DLPACK_VERSIONED, no read-only tensors; ERR_INVALID; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_to_dlpack(ds_accel_tensor_t *tensor, uint32_t flags,
                                                  int64_t consumer, void **managed_out);

/**
 * Import a tensor of another library, without a copy. The memory is released when the last tensor
 * of it is released: the caller first waits for the work queued on the memory.
 *
 * @param[in] context       the context of the tensor's device; NULL: host memory only
 * @param[in] managed       taken on success: its deleter is called once the memory is not needed;
 *                          after a failure the caller keeps it
 * @param[in] is_versioned  1: DLManagedTensorVersioned; 0: DLManagedTensor
 * @return DS_ACCEL_OK; ERR_INVALID an invalid shape, or a device of a backend not in use here;
 *         ERR_UNSUPPORTED a dtype; ERR_ABI a version that this library does not know
 */
DS_ACCEL_EXPORT int32_t ds_accel_tensor_from_dlpack(ds_accel_t *context, void *managed,
                                                    uint32_t is_versioned,
                                                    ds_accel_tensor_t **tensor_out);

/* ---- facts and settings --------------------------------------------------------------------- */

/*
 * Facts hold for all devices of the chosen accelerator. A fact comes from the first of three
 * sources: the operator's configuration (any layer above the packages'), the plugin, the package's
 * configuration. `ds-accel info` prints the same facts. The first call reads all facts, and they do
 * not change afterwards. Before ds_accel_detect() all these calls return ERR_STATE.
 */

/**
 * Known properties of the accelerator, as flags.
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
 * One flag.
 * @param[in]  flag        one of DS_ACCEL_FLAG_*
 * @param[out] is_set_out  1 or 0
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED not known; ERR_INVALID not a single flag; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_flag(ds_accel_t *context, uint64_t flag, uint32_t *is_set_out);

/** Flags, names of backends and versions in one struct, with the operator's configuration merged
 * in. @param[out] info_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_backend_info(ds_accel_t *context,
                                              struct ds_accel_backend_info *info_out);

/* Groups of functions that the backend has: a missing function returns ERR_UNSUPPORTED, or does
 * nothing where its documentation allows that. */
#define DS_ACCEL_CAPABILITY_STREAMS 0x1ull /**< streams of a program's own */
#define DS_ACCEL_CAPABILITY_EVENTS 0x2ull
#define DS_ACCEL_CAPABILITY_EVENT_TIMING 0x4ull
#define DS_ACCEL_CAPABILITY_GRAPHS 0x8ull
#define DS_ACCEL_CAPABILITY_PINNED 0x10ull
#define DS_ACCEL_CAPABILITY_REGISTER 0x20ull /**< pinning the caller's memory */
#define DS_ACCEL_CAPABILITY_POINTER_INFO 0x40ull
#define DS_ACCEL_CAPABILITY_STREAM_ORDERED 0x80ull
#define DS_ACCEL_CAPABILITY_VIRTUAL_MEMORY 0x100ull
#define DS_ACCEL_CAPABILITY_TELEMETRY 0x200ull
#define DS_ACCEL_CAPABILITY_PROCESSES 0x400ull
#define DS_ACCEL_CAPABILITY_RANGES 0x800ull /**< a profiler sees ds_accel_range_push() */
#define DS_ACCEL_CAPABILITY_PROFILER 0x1000ull
#define DS_ACCEL_CAPABILITY_PEERS 0x2000ull
#define DS_ACCEL_CAPABILITY_LINKS 0x4000ull
#define DS_ACCEL_CAPABILITY_MEMORY_IPC 0x8000ull
#define DS_ACCEL_CAPABILITY_EVENT_IPC 0x10000ull
#define DS_ACCEL_CAPABILITY_DMABUF 0x20000ull
#define DS_ACCEL_CAPABILITY_RNG 0x40000ull /**< the vendor's generator */
#define DS_ACCEL_CAPABILITY_NATIVE_HANDLES 0x80000ull

/** @param[out] capabilities_out DS_ACCEL_CAPABILITY_* */
DS_ACCEL_EXPORT int32_t ds_accel_capabilities(ds_accel_t *context, uint64_t *capabilities_out);

/**
 * Can a backend be used here?
 *
 * @param[in]  name           a backend, probed now if it was not yet; NULL: the chosen one
 * @param[out] available_out  1 or 0; 0 in a forked child that inherited the chosen accelerator
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no plugin of that name; ERR_STATE; ERR_NO_MEMORY
 * @source DeepSpeed is_available()
 */
DS_ACCEL_EXPORT int32_t ds_accel_is_available(ds_accel_t *context, const char *name,
                                              uint32_t *available_out);

/** The backend's op builder directory in DeepSpeed: "op_builder.cpu". @return DS_ACCEL_OK;
 * ERR_UNSUPPORTED not known; ERR_INVALID; ERR_STATE @source DeepSpeed op_builder_dir() */
DS_ACCEL_EXPORT int32_t ds_accel_op_builder_dir(ds_accel_t *context, char *dir, size_t dir_size);

/* -- data types -- */

/** "float32"; NULL for a number that is no DS_ACCEL_DTYPE_*. @owner static storage */
DS_ACCEL_EXPORT const char *ds_accel_dtype_name(uint32_t dtype);
/** Bits of one element; 0 for a number that is no dtype. */
DS_ACCEL_EXPORT uint32_t ds_accel_dtype_size_bits(uint32_t dtype);
/**
 * The dtype of a name in any spelling of the frameworks: "float32", "float", "fp32", "torch.half",
 * "bf16" ...
 * @return DS_ACCEL_OK; ERR_NOT_FOUND with the nearest name; ERR_INVALID NULL
 */
DS_ACCEL_EXPORT int32_t ds_accel_dtype_parse(const char *name, uint32_t *dtype_out);

/**
 * A device's support for a dtype.
 * @param[out] support_out  DS_ACCEL_DTYPE_STORES | COMPUTES | EMULATED; 0: no support
 * @return DS_ACCEL_OK; ERR_INVALID not a dtype; ERR_UNSUPPORTED the plugin does not report it
 */
DS_ACCEL_EXPORT int32_t ds_accel_dtype_support(ds_accel_device_t *device, uint32_t dtype,
                                               uint32_t *support_out);

/**
 * The dtypes among float32, float16 and bfloat16, in this order, that the accelerator computes
 * with.
 *
 * @param[out] dtypes     dtypes[capacity]; may be NULL with capacity 0
 * @param[out] count_out  how many there are, also if they do not fit
 * @return DS_ACCEL_OK; ERR_LIMIT they do not fit; ERR_UNSUPPORTED not known; ERR_STATE
 * @source DeepSpeed supported_dtypes()
 */
DS_ACCEL_EXPORT int32_t ds_accel_supported_dtypes(ds_accel_t *context, uint32_t *dtypes,
                                                  uint32_t capacity, uint32_t *count_out);
/** *supported_out: 1 or 0. @return also ERR_UNSUPPORTED: not known */
DS_ACCEL_EXPORT int32_t ds_accel_is_bf16_supported(ds_accel_t *context, uint32_t *supported_out);
DS_ACCEL_EXPORT int32_t ds_accel_is_fp16_supported(ds_accel_t *context, uint32_t *supported_out);

/* -- communication and compile backend -- */

/**
 * The accelerator's collectives library: "nccl".
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED it has none; ERR_INVALID it does not fit; ERR_STATE
 * @source DeepSpeed communication_backend_name()
 */
DS_ACCEL_EXPORT int32_t ds_accel_communication_backend(ds_accel_t *context, char *name,
                                                       size_t name_size);
/**
 * Choose another collectives library.
 *
 * @param[in] name  the accelerator's own or one of the configuration's "communication_backends";
 *                  NULL: the accelerator's own again
 * @return DS_ACCEL_OK; ERR_INVALID not in the list, which the error contains; ERR_STATE
 * @threads any; holds for the context
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_communication_backend(ds_accel_t *context, const char *name);
/** Major, minor, patch, 0. @return DS_ACCEL_OK; ERR_UNSUPPORTED not known; ERR_STATE */
DS_ACCEL_EXPORT int32_t ds_accel_communication_backend_version(ds_accel_t *context,
                                                               uint32_t version_out[4]);
/** The graph compiler: "inductor". As ds_accel_communication_backend().
 * @source DeepSpeed get_compile_backend() */
DS_ACCEL_EXPORT int32_t ds_accel_compile_backend(ds_accel_t *context, char *name, size_t name_size);
/** As ds_accel_set_communication_backend(); the configuration's list is "compile_backends".
 * @source DeepSpeed set_compile_backend() */
DS_ACCEL_EXPORT int32_t ds_accel_set_compile_backend(ds_accel_t *context, const char *name);

/* -- calls that wait for the accelerator -- */

/**
 * Receives DS_ACCEL_OK once the accelerator is started; or ERR_STATE if the context is destroyed
 * before that, so that the callee can release user_data.
 */
typedef void (*ds_accel_lazy_call_t)(void *user_data, int32_t status);

/**
 * Call a function now if the accelerator is started, else as soon as it starts.
 *
 * Each function is called once, in registration order, with no lock held: by the thread whose
 * ds_accel_detect() succeeds, before ds_accel_detect() returns; a function registered during these
 * calls comes after them. After a failed detection the functions stay registered.
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
 * @param[in] domain    or NULL; used with DS_ACCEL_FLAG_RANGE_DOMAINS
 * @param[in] category  or NULL; likewise
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
 * A timer uses events of the device, or the host's clock where DS_ACCEL_FLAG_HOST_TIMERS is set or
 * the backend has no events. With the host's clock each mark waits for the stream's work, unless
 * the device is synchronous.
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_NO_MEMORY; ERR_DRIVER
 * @owner  caller; release with ds_accel_timer_destroy()
 */
DS_ACCEL_EXPORT int32_t ds_accel_timer_create(ds_accel_device_t *device,
                                              ds_accel_timer_t **timer_out);
DS_ACCEL_EXPORT void ds_accel_timer_destroy(ds_accel_timer_t *timer);
/** Start; an earlier measurement is dropped. @param[in] stream NULL: the current stream */
DS_ACCEL_EXPORT int32_t ds_accel_timer_start(ds_accel_timer_t *timer, ds_accel_stream_t *stream);
/** Stop. @return DS_ACCEL_OK; ERR_STATE the timer was not started; ERR_INVALID */
DS_ACCEL_EXPORT int32_t ds_accel_timer_stop(ds_accel_timer_t *timer, ds_accel_stream_t *stream);
/**
 * Milliseconds between start and stop; waits until the second mark is reached.
 * @return DS_ACCEL_OK; ERR_STATE the timer was not stopped; ERR_DRIVER
 * @source DeepSpeed utils/timer.py
 */
DS_ACCEL_EXPORT int32_t ds_accel_timer_elapsed_ms(ds_accel_timer_t *timer, double *elapsed_ms_out);

/* -- environment -- */

/**
 * Name number @p position of the variables that choose a process's visible devices; the first is
 * the variable to set.
 * @param[out] name  NUL-terminated
 * @return DS_ACCEL_OK; ERR_NOT_FOUND past the last; ERR_INVALID it does not fit; ERR_STATE
 * @source DeepSpeed visible_devices_envs()
 */
DS_ACCEL_EXPORT int32_t ds_accel_visible_devices_envs(ds_accel_t *context, uint32_t position,
                                                      char *name, size_t name_size);
/** The same for the name prefixes of variables that a job's processes must inherit.
 * @source DeepSpeed export_envs() */
DS_ACCEL_EXPORT int32_t ds_accel_export_envs(ds_accel_t *context, uint32_t position, char *name,
                                             size_t name_size);

/**
 * The value that makes a variable show exactly these devices, in this order, to a program started
 * with the current environment.
 *
 * @param[in]  variable    one of ds_accel_visible_devices_envs(); NULL: the first variable that the
 *                         plugin itself names, else the first
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
 * Set that value in this process's environment, for programs that the process starts later. The
 * process's own visible devices do not change: the runtime has started.
 * @threads not while another thread uses the environment: it is setenv()
 * @source DeepSpeed set_visible_devices_envs()
 */
DS_ACCEL_EXPORT int32_t ds_accel_apply_visible_devices(ds_accel_t *context, const uint32_t *indices,
                                                       uint32_t count);

/**
 * Apply the changes that `ds-accel env` prints to this process's environment: the backend's
 * documented work-arounds, by their rules if-unset, always and unset. Call it before
 * ds_accel_detect(), so that the runtime starts with the changes.
 *
 * @param[in]  name         a backend; NULL: the chosen one
 * @param[out] applied_out  how many variables were set or removed; may be NULL
 * @return DS_ACCEL_OK; ERR_NOT_FOUND @p name is not known; ERR_STATE NULL before ds_accel_detect(),
 *         or as ds_accel_detect() returns it after fork(); ERR_NO_MEMORY
 * @threads not while another thread uses the environment: it is setenv()
 */
DS_ACCEL_EXPORT int32_t ds_accel_apply_env(ds_accel_t *context, const char *name,
                                           uint32_t *applied_out);

/* -- telemetry and links: no device is opened or woken -- */

/** Sensors. @param[out] telemetry_out struct_size set; its member valid lists the valid members */
DS_ACCEL_EXPORT int32_t ds_accel_telemetry(ds_accel_t *context, uint32_t device_index,
                                           struct ds_accel_telemetry *telemetry_out);
/**
 * The processes that use a device.
 *
 * @param[out] processes     up to @p capacity elements, @p stride_bytes apart: sizeof(*processes)
 * @param[out] count_out     how many there are, also if they do not fit
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED; ERR_INVALID; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_telemetry_processes(ds_accel_t *context, uint32_t device_index,
                                                     struct ds_accel_process *processes,
                                                     uint32_t stride_bytes, uint32_t capacity,
                                                     uint32_t *count_out);
/** A device's links to others. As ds_accel_telemetry_processes(). */
DS_ACCEL_EXPORT int32_t ds_accel_device_links(ds_accel_t *context, uint32_t device_index,
                                              struct ds_accel_link *links, uint32_t stride_bytes,
                                              uint32_t capacity, uint32_t *count_out);

/* -- peers -- */

/** *can_out: 1 if @p device can address @p peer's memory. Both are of one context. */
DS_ACCEL_EXPORT int32_t ds_accel_peer_can_access(ds_accel_device_t *device, ds_accel_device_t *peer,
                                                 uint32_t *can_out);
/** Returns DS_ACCEL_OK if access is already enabled. */
DS_ACCEL_EXPORT int32_t ds_accel_peer_enable(ds_accel_device_t *device, ds_accel_device_t *peer);
/** Returns DS_ACCEL_OK if access is not enabled. */
DS_ACCEL_EXPORT int32_t ds_accel_peer_disable(ds_accel_device_t *device, ds_accel_device_t *peer);

/* -- sharing between processes -- */

/**
 * Write a handle that another process of the same user opens the memory with. Its size in bytes is
 * memory_handle_bytes of ds_accel_backend_info().
 * @param[in] pointer  may be inside an allocation: opening returns the same place
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_UNSUPPORTED; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_export(ds_accel_device_t *device, void *pointer,
                                                   void *handle, uint32_t handle_bytes);
/** End the export; a process that has the memory open keeps it open. */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_unexport(ds_accel_device_t *device, const void *handle,
                                                     uint32_t handle_bytes);
/** @owner caller; each opening is closed once, with the pointer that it returned */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_open(ds_accel_device_t *device, const void *handle,
                                                 uint32_t handle_bytes, void **pointer_out);
DS_ACCEL_EXPORT int32_t ds_accel_ipc_memory_close(ds_accel_device_t *device, void *pointer);
/** Export an event created with DS_ACCEL_EVENT_INTERPROCESS; the handle has event_handle_bytes
 * bytes. */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_event_export(ds_accel_event_t *event, void *handle,
                                                  uint32_t handle_bytes);
/** @owner caller; release with ds_accel_event_destroy() */
DS_ACCEL_EXPORT int32_t ds_accel_ipc_event_open(ds_accel_device_t *device, const void *handle,
                                                uint32_t handle_bytes,
                                                ds_accel_event_t **event_out);
/** Export device memory as a dma-buf. @owner the caller closes *fd_out */
DS_ACCEL_EXPORT int32_t ds_accel_dmabuf_export(ds_accel_device_t *device, void *pointer,
                                               uint64_t size_bytes, int32_t *fd_out,
                                               uint64_t *offset_bytes_out);
/** @owner caller; release the pointer with ds_accel_dmabuf_release(); @p fd stays the caller's */
DS_ACCEL_EXPORT int32_t ds_accel_dmabuf_import(ds_accel_device_t *device, int32_t fd,
                                               uint64_t offset_bytes, uint64_t size_bytes,
                                               void **pointer_out);
DS_ACCEL_EXPORT int32_t ds_accel_dmabuf_release(ds_accel_device_t *device, void *pointer);

/* -- the pool of pinned memory -- */

/** A device's pinned memory. All bytes but allocated_bytes are rounded to the pool's classes. */
struct ds_accel_pinned_stats {
    uint32_t struct_size;
    uint32_t block_count;     /**< held from the runtime, in use or kept */
    uint64_t allocated_bytes; /**< in use, as requested */
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes; /**< held from the runtime */
    uint64_t reserved_peak_bytes;
    uint64_t cached_bytes;  /**< freed and kept, waiting_bytes included */
    uint64_t waiting_bytes; /**< freed, while streams still use it */
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t requested_bytes;   /**< requested in total, including memory freed since */
    uint64_t hit_count;         /**< allocations served from the pool */
    uint64_t alloc_retry_count; /**< allocations that succeeded after the pool was emptied */
    uint64_t limit_bytes;       /**< of the memory that the pool keeps; UINT64_MAX: none */
};

/** @param[out] stats_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_stats(ds_accel_device_t *device,
                                              struct ds_accel_pinned_stats *stats_out);
/**
 * One statistic of the device's pinned memory by its name in torch.cuda.host_memory_stats():
 * active_bytes, active_requests (allocated, or freed while streams still use it), allocated_bytes
 * and allocations (held from the runtime, active or kept), each with .current, .peak, .allocated
 * and .freed; num_host_alloc and num_host_free, calls of the runtime; host_alloc_time and
 * host_free_time, the duration of these calls in microseconds, with .total, .max, .min, .count and
 * .avg. The names reserved_bytes and segment of earlier torch versions mean allocated_bytes and
 * allocations.
 *
 * @param[in]  key        "active_bytes.current"
 * @param[out] value_out  bytes, a count or microseconds
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no such name, the error has the nearest one; ERR_INVALID
 * @threads any; the figures of one moment
 */
DS_ACCEL_EXPORT int32_t ds_accel_host_memory_stat(ds_accel_device_t *device, const char *key,
                                                  int64_t *value_out);
/** All statistics, as one JSON object. @owner caller; ds_accel_free_text() */
DS_ACCEL_EXPORT int32_t ds_accel_host_memory_stats(ds_accel_device_t *device, char **json_text_out);
/** Set the peaks to the current values. */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_reset_peaks(ds_accel_device_t *device);
/** Return the pool's unused memory to the runtime; memory that streams still use stays. */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_empty_cache(ds_accel_device_t *device);
/** Keep at most limit_bytes of freed memory from now on: 0 none, UINT64_MAX (the default) all. */
DS_ACCEL_EXPORT int32_t ds_accel_pinned_set_limit(ds_accel_device_t *device, uint64_t limit_bytes);

/* ---- what is inline ------------------------------------------------------------------------- */

/*
 * Internal; public only because the inline functions below read them. Each is the head of a larger
 * struct. The functions in the table of a destroyed handle return an error.
 */
struct ds_accel_device {
    const struct ds_accel_plugin *table; /**< complete: absent functions are stubs */
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
/* Returns ERR_INVALID and names the handle that is NULL, destroyed or of another context. */
DS_ACCEL_EXPORT int32_t ds_accel__refuse(const char *call, const char *what, const void *handle);
DS_ACCEL_EXPORT int32_t ds_accel__refuse_pair(const char *call, const ds_accel_event_t *event,
                                              const ds_accel_stream_t *stream);

/**
 * The process-wide context, its accelerator chosen and started by the first call.
 * @return NULL if nothing can be used: see ds_accel_last_error(); the next call tries again
 * @threads any
 * @owner  borrowed; lives as long as the process
 */
DS_ACCEL_HOT ds_accel_t *ds_accel_get(void);

/**
 * The device's functions and handle, for calls that have no wrapper here. Every slot can be called.
 * @owner borrowed; valid until the device is closed
 */
DS_ACCEL_HOT const struct ds_accel_plugin *ds_accel_device_table(const ds_accel_device_t *device);

DS_ACCEL_HOT ds_accel_plugin_device_t *ds_accel_device_handle(const ds_accel_device_t *device);

/**
 * Wait for all work of all streams of the device.
 * @return DS_ACCEL_OK; ERR_DEVICE_LOST; ERR_DRIVER an earlier piece of work failed
 * @threads any   @source DeepSpeed synchronize()
 */
DS_ACCEL_HOT int32_t ds_accel_device_synchronize(ds_accel_device_t *device);

/** The same with a deadline. @return also ERR_TIMEOUT after @p timeout_ns */
DS_ACCEL_HOT int32_t ds_accel_device_synchronize_for(ds_accel_device_t *device,
                                                     uint64_t timeout_ns);

/** @return DS_ACCEL_OK while the device works; ERR_DEVICE_LOST */
DS_ACCEL_HOT int32_t ds_accel_device_health(ds_accel_device_t *device);

/** @param[out] info_out  struct_size set by the caller, the rest zero */
DS_ACCEL_HOT int32_t ds_accel_device_info(ds_accel_device_t *device,
                                          struct ds_accel_device_info *info_out);

/** Total, available and this process's memory. @param[out] info_out as in ds_accel_device_info() */
DS_ACCEL_HOT int32_t ds_accel_device_memory(ds_accel_device_t *device,
                                            struct ds_accel_memory_info *info_out);

/** Wait for all work queued on the stream. @return DS_ACCEL_OK; ERR_STATE the stream captures;
 * ERR_DRIVER */
DS_ACCEL_HOT int32_t ds_accel_stream_synchronize(ds_accel_stream_t *stream);

/** The same with a deadline. @return also ERR_TIMEOUT */
DS_ACCEL_HOT int32_t ds_accel_stream_synchronize_for(ds_accel_stream_t *stream,
                                                     uint64_t timeout_ns);

/** @return DS_ACCEL_OK idle; DS_ACCEL_NOT_READY busy; ERR_STATE the stream captures */
DS_ACCEL_HOT int32_t ds_accel_stream_query(ds_accel_stream_t *stream);

/** Later work of @p stream waits on the device for the point that @p event marks now; an event that
 * was never recorded delays nothing. */
DS_ACCEL_HOT int32_t ds_accel_stream_wait_event(ds_accel_stream_t *stream, ds_accel_event_t *event);

/**
 * Run a host function when the stream reaches this point. The function runs once, on any thread,
 * and must not call this library, except ds_accel_note_access(), nor wait for work of the device.
 * With layer validate its calls on a device, or on an object of a device, fail with ERR_STATE; a
 * destroying call without a status is skipped and logged, and can be made later. Calls that need no
 * device are allowed: reading a tensor's properties, views of it, work with tensors in host memory
 * alone, and profiler ranges of a backend that has none.
 */
DS_ACCEL_HOT int32_t ds_accel_stream_host_task(ds_accel_stream_t *stream, ds_accel_host_task_t task,
                                               void *user_data);

/** Mark this point of the stream; an earlier mark of the event is replaced. */
DS_ACCEL_HOT int32_t ds_accel_event_record(ds_accel_event_t *event, ds_accel_stream_t *stream);

/** @return DS_ACCEL_OK reached, or never recorded; DS_ACCEL_NOT_READY; ERR_STATE recorded into a
 * capture */
DS_ACCEL_HOT int32_t ds_accel_event_query(ds_accel_event_t *event);

/** Wait until the event is reached. */
DS_ACCEL_HOT int32_t ds_accel_event_synchronize(ds_accel_event_t *event);

/** The same with a deadline. @return also ERR_TIMEOUT */
DS_ACCEL_HOT int32_t ds_accel_event_synchronize_for(ds_accel_event_t *event, uint64_t timeout_ns);

/**
 * Queue a copy. Host memory must not change until the copy is complete; unless the memory is
 * pinned, a runtime may wait for the copy.
 *
 * @param[in] kind  DS_ACCEL_COPY_*; the ranges do not overlap
 */
DS_ACCEL_HOT int32_t ds_accel_mem_copy_async(ds_accel_stream_t *stream, void *destination,
                                             const void *source, uint64_t size_bytes,
                                             uint32_t kind);

/** Queue the repetition of a pattern, 1, 2 or 4 bytes long, over size_bytes, a multiple of it. */
DS_ACCEL_HOT int32_t ds_accel_mem_fill_async(ds_accel_stream_t *stream, void *destination,
                                             const void *pattern, uint32_t pattern_bytes,
                                             uint64_t size_bytes);

/** Queue setting memory to a byte. */
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

/** A failure's details are on the caller's stack: no thread-local access unless a call fails. */
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
