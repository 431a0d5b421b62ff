/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/**
 * @file ds_accel.h
 * The program's side: find the machine's accelerator, say why, and open its devices.
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
 * sets. Strings are UTF-8. The library never prints, never exits, and leaves signal handlers, CPU
 * affinity, environment, locale and working directory alone.
 */
#ifndef DS_ACCEL_H
#define DS_ACCEL_H

#include "plugin-api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_VERSION "0.1.0"

/** A context. Any thread may use it; its calls lock as they need to. */
typedef struct ds_accel ds_accel_t;

/** An opened device: a table of functions and the plugin's handle. Made by ds_accel_device_open().
 */
typedef struct ds_accel_device ds_accel_device_t;

/* ---- errors --------------------------------------------------------------------------------- */

/**
 * Why this thread's last failed call failed: one line, or one per problem for a configuration.
 * @return never NULL; "" before any failure; meaningful only right after one
 * @threads any; each thread has its own
 * @owner  borrowed until the thread's next call into the library
 */
DS_ACCEL_EXPORT const char *ds_accel_last_error(void);

/** "DS_ACCEL_ERR_NO_MEMORY" for -2; "DS_ACCEL_ERR_INTERNAL" for a number that is no status. */
DS_ACCEL_EXPORT const char *ds_accel_status_name(int32_t status);

/** The running library's version, "0.1.0"; static storage. */
DS_ACCEL_EXPORT const char *ds_accel_version(void);

/* ---- contexts ------------------------------------------------------------------------------- */

/**
 * Receives log lines, without a newline.
 * Called by the thread that logs, perhaps inside one of the library's locks: it must not call the
 * library.
 * @param level one of DS_ACCEL_LOG_*   @param topic "config", "loader", a plugin's name ...
 */
typedef void (*ds_accel_log_sink_t)(void *user_data, uint32_t level, const char *topic,
                                    const char *message);

#define DS_ACCEL_OPTION_NO_ENVIRONMENT 1u /**< ignore every DS_* variable */
#define DS_ACCEL_OPTION_NO_USER_CONFIG 2u /**< skip $XDG_CONFIG_HOME/ds-accel */
#define DS_ACCEL_OPTION_NO_CACHE 4u       /**< remember nothing, and ask whatever is remembered */

/** How to make a context. Zero everything, set struct_size, fill what matters. All borrowed. */
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
    const char *machine_root;       /**< read /sys, /proc and /dev under this folder */
    const char *log_levels;         /**< "warn,cuda=debug"; NULL: DS_ACCEL_LOG, else "warn" */
    ds_accel_log_sink_t log_sink;   /**< NULL: log lines are dropped */
    void *log_user_data;
    const char *cache_dir; /**< in place of DS_ACCEL_CACHE_DIR; absolute */
};

/**
 * Read the configuration and find the plugins; run no plugin yet.
 *
 * @param[in]  options      NULL for the defaults
 * @param[out] context_out  the context
 * @return DS_ACCEL_OK; ERR_CONFIG with file:line:column of each problem; ERR_INVALID; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_destroy()
 */
DS_ACCEL_EXPORT int32_t ds_accel_create(const struct ds_accel_options *options,
                                        ds_accel_t **context_out);

/** Close a context and its plugins. Its devices were closed before; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_destroy(ds_accel_t *context);

/**
 * Make @p context the one that ds_accel_get() returns, DeepSpeed's set_accelerator().
 *
 * @return DS_ACCEL_OK; ERR_INVALID NULL; ERR_STATE another context is the default already and was
 *         handed out; the status of ds_accel_detect() if the context has not chosen yet
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
 * ds_accel_detect()
 */
DS_ACCEL_EXPORT int32_t ds_accel_register(ds_accel_t *context, ds_accel_entry_v1_t entry);

/* ---- detection ------------------------------------------------------------------------------ */

/**
 * Choose the accelerator (override, configuration, detection order), load it and start it. Later
 * calls return the first call's answer, except that a failure is tried again.
 *
 * @return DS_ACCEL_OK; ERR_NOT_USABLE the forced accelerator can't be used; ERR_NO_DEVICE nothing
 *         can; ERR_UNTRUSTED nothing can, since all were refused for security; ERR_LIMIT no
 *         descriptor or process is left to ask with; ERR_NO_MEMORY
 * @threads any; one thread detects, the others wait for its answer
 * @source DeepSpeed accelerator/real_accelerator.py, get_accelerator()
 */
DS_ACCEL_EXPORT int32_t ds_accel_detect(ds_accel_t *context);

/**
 * Take candidates through every gate up to the probe, without choosing.
 * @param[in] name  one backend, or NULL for all but the demand-only ones
 * @return DS_ACCEL_OK whatever the verdicts are; ERR_NOT_FOUND no such candidate; ERR_NO_MEMORY
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
 * One plugin found, in detection order. Strings are borrowed from the context, which keeps them
 * until it is destroyed, also those of earlier verdicts; none is NULL.
 */
struct ds_accel_candidate {
    uint32_t struct_size;
    uint32_t state;        /**< DS_ACCEL_STATE_* */
    uint32_t device_count; /**< when AVAILABLE or SELECTED */
    uint32_t reserved;
    uint64_t elapsed_us; /**< spent on its gates and probe */
    const char *name;
    const char *path;   /**< "" for a registered backend */
    const char *vendor; /**< "" where the file did not say */
    const char *version;
    const char *abi;        /**< "1.0" */
    const char *state_name; /**< "unavailable" */
    const char
        *reason; /**< stable code, "no_device"; "" when SELECTED, or nothing speaks against it */
    const char *detail; /**< evidence, one line */
    const char *remedy; /**< what to do, one line */
    const char *stage;  /**< the last gate reached: "probe" */
};

/** How many candidates there are; 0 for NULL. */
DS_ACCEL_EXPORT uint32_t ds_accel_candidate_count(ds_accel_t *context);

/** @return DS_ACCEL_OK; ERR_INVALID @p position is not below ds_accel_candidate_count() */
DS_ACCEL_EXPORT int32_t ds_accel_candidate_get(ds_accel_t *context, uint32_t position,
                                               struct ds_accel_candidate *candidate_out);

/* ---- reports: what the command line prints -------------------------------------------------- */

#define DS_ACCEL_REPORT_DETECT 1u     /**< the choice and every candidate */
#define DS_ACCEL_REPORT_LIST 2u       /**< every plugin found */
#define DS_ACCEL_REPORT_INFO 3u       /**< all that is known of an accelerator */
#define DS_ACCEL_REPORT_EXPLAIN 4u    /**< each candidate, gate by gate */
#define DS_ACCEL_REPORT_ENV 5u        /**< env workarounds: JSON, or shell lines for eval */
#define DS_ACCEL_REPORT_CONFIG 6u     /**< the merged configuration with origins */
#define DS_ACCEL_REPORT_CONFIG_ENV 7u /**< every DS_* variable: value, origin, meaning */
#define DS_ACCEL_REPORT_DOCTOR 8u     /**< what stands in the way here, and its remedies */
#define DS_ACCEL_REPORT_CACHE 9u      /**< verdicts that are remembered */
#define DS_ACCEL_REPORT_QUARANTINE \
    10u /**< plugins that crashed or hung, and till when each is left alone */
#define DS_ACCEL_REPORT_MEMORY 16u /**< memory of an accelerator's devices now: JSON or SVG */

#define DS_ACCEL_FORMAT_JSON 1u
#define DS_ACCEL_FORMAT_COLOUR 2u  /**< text with ANSI colours */
#define DS_ACCEL_FORMAT_VERBOSE 4u /**< text with what is left out otherwise: skipped gates */
#define DS_ACCEL_FORMAT_SVG 8u     /**< a picture; MEMORY only */

/**
 * Write a report.
 *
 * @param[in]  report    DS_ACCEL_REPORT_*
 * @param[in]  name      a backend, or NULL: all of them, or for INFO, ENV and MEMORY the
 *                        chosen one
 * @param[in]  format    DS_ACCEL_FORMAT_* bits; 0 is plain text
 * @param[out] text_out  ends in a newline unless empty
 * @return DS_ACCEL_OK; ERR_NOT_FOUND nobody knows @p name; what ds_accel_detect() returns when the
 *         report needs the choice; ERR_NO_MEMORY. DETECT is written even if detection fails.
 *         ERR_STATE DOCTOR found a problem; it is written then too.
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_report(ds_accel_t *context, uint32_t report, const char *name,
                                        uint32_t format, char **text_out);

/**
 * Forget the verdicts that this user's processes remember; strikes stay. What a context has found
 * out already, it keeps.
 *
 * @return DS_ACCEL_OK, also if there is no folder and so nothing to forget; ERR_IO the folder or
 * its file can't be written; ERR_BUSY another process has been asking plugins for too long;
 *         ERR_STATE the context uses no cache, or only reads it; ERR_INVALID NULL; ERR_NO_MEMORY
 * @threads any; waits for others who are asking plugins
 */
DS_ACCEL_EXPORT int32_t ds_accel_cache_clear(ds_accel_t *context);

/**
 * Forget strikes: the plugins are asked again.
 *
 * @param[in] name  a backend, whichever of its plugins have strikes; NULL for all
 * @return as ds_accel_cache_clear(); ERR_NOT_FOUND no plugin of that name has strikes
 * @threads any; waits for others who are asking plugins
 */
DS_ACCEL_EXPORT int32_t ds_accel_quarantine_clear(ds_accel_t *context, const char *name);

/**
 * Validate every configuration file that a context with these options would read.
 *
 * @param[out] text_out  the verdict; written for ERR_CONFIG too
 * @return DS_ACCEL_OK; ERR_CONFIG problems were found; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_config_check(const struct ds_accel_options *options,
                                              uint32_t format, char **text_out);

/**
 * Check a plugin file against the numbered rules of docs/plugin-abi.md. Runs the plugin's code, in
 * a helper process unless the configuration says "in-process".
 *
 * @param[in]  options   of the context that the plugin is probed in; NULL for the defaults
 * @param[in]  path      the .so
 * @param[out] text_out  rule by rule; written for ERR_ABI too
 * @return DS_ACCEL_OK; ERR_ABI a rule is broken; ERR_IO the file can't be read, or no
 *         helper can be had; ERR_LIMIT; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_lint(const struct ds_accel_options *options, const char *path,
                                      uint32_t format, char **text_out);

/** Release a text that this library made; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_free_text(char *text);

/* ---- memory snapshots ----------------------------------------------------------------------- */

#define DS_ACCEL_SNAPSHOT_JSON 1u   /**< conf/schema/memory-snapshot.json */
#define DS_ACCEL_SNAPSHOT_SVG 2u    /**< a picture of segments, blocks and the recorded history */
#define DS_ACCEL_SNAPSHOT_PICKLE 3u /**< what torch's memory viewer opens, torch 2.0 and newer */
#define DS_ACCEL_SNAPSHOT_TEXT 4u   /**< a table for terminals */
/** the list of segments alone, which torch's memory viewer wants before 2.0 */
#define DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS 5u

/**
 * Write a snapshot file of a caching allocator in another format. Reads JSON: this library's, and
 * torch's own snapshots dumped as JSON.
 *
 * @param[in]  path            the file, at most 256 MiB
 * @param[in]  format          DS_ACCEL_SNAPSHOT_*
 * @param[out] data_out        bytes, and a NUL behind them that does not count
 * @param[out] size_bytes_out  how many
 * @return DS_ACCEL_OK; ERR_INVALID the file is no snapshot, with file:line:column and what was
 *         expected, or there is no such format; ERR_NOT_FOUND; ERR_IO; ERR_LIMIT its settings are
 *         nested too deep for a pickle; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_data()
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_snapshot_convert(const char *path, uint32_t format,
                                                         void **data_out, size_t *size_bytes_out);

/** Release data that this library made; NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_free_data(void *data);

/* ---- devices -------------------------------------------------------------------------------- */

/** An ordered queue of a device's work: copies, fills, host tasks, graphs, a program's kernels. */
typedef struct ds_accel_stream ds_accel_stream_t;
/** A mark in a stream: others wait for it, and two of them measure time. */
typedef struct ds_accel_event ds_accel_event_t;
/** Work that was captured once and is replayed as a whole. */
typedef struct ds_accel_graph ds_accel_graph_t;
/** Memory set apart: what one pool allocates, no other uses again. */
typedef struct ds_accel_pool ds_accel_pool_t;

/*
 * Handles of all kinds: a destroyed one answers DS_ACCEL_ERR_INVALID for as long as its memory has
 * not been given to many later ones; NULL answers DS_ACCEL_ERR_INVALID. In a child forked after
 * ds_accel_detect() every call on a device answers DS_ACCEL_ERR_STATE at once.
 */

/** @return DS_ACCEL_OK; ERR_STATE before ds_accel_detect(); what the plugin returns */
DS_ACCEL_EXPORT int32_t ds_accel_device_count(ds_accel_t *context, uint32_t *count_out);

/**
 * The name that frameworks use: "cuda", with an index "cuda:1". A backend whose devices frameworks
 * do not number (cpu) has one name for all.
 *
 * @param[in]  device_index  an index, or -1 for the name without one
 * @param[out] name          NUL-terminated, at least name_size bytes
 * @return DS_ACCEL_OK; ERR_INVALID index out of range or the name does not fit; ERR_STATE
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_name(ds_accel_t *context, int32_t device_index, char *name,
                                             size_t name_size);

/**
 * The device that a name means: "cuda:1", "1", a UUID, or a PCI address ("0000:65:00.0",
 * "65:00.0"). The backend's bare name is the calling thread's current device.
 *
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no device has that name; ERR_INVALID NULL, or two have it;
 *         ERR_STATE before ds_accel_detect()
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_find(ds_accel_t *context, const char *name,
                                             uint32_t *device_index_out);

/**
 * The index of the calling thread's current device; cpu: from LOCAL_RANK until it is set.
 * @source DeepSpeed current_device()
 */
DS_ACCEL_EXPORT int32_t ds_accel_current_device(ds_accel_t *context, uint32_t *device_index_out);

/**
 * Make a device the calling thread's current one, for us and for the vendor's runtime.
 *
 * @return DS_ACCEL_OK; ERR_INVALID index out of range; ERR_STATE; what opening it returns
 * @threads any; each has its own
 * @source DeepSpeed set_device()
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_device(ds_accel_t *context, uint32_t device_index);

/** ds_accel_device_name() of the current device: "cuda:1". @source DeepSpeed current_device_name()
 */
DS_ACCEL_EXPORT int32_t ds_accel_current_device_name(ds_accel_t *context, char *name,
                                                     size_t name_size);

/**
 * Open a device. Opening it again gives the same handle; each opening is closed once.
 * @return DS_ACCEL_OK; ERR_INVALID index out of range; ERR_STATE before ds_accel_detect(); what the
 *         plugin returns
 * @threads any
 * @owner  caller; release with ds_accel_device_close() before the context
 */
DS_ACCEL_EXPORT int32_t ds_accel_device_open(ds_accel_t *context, uint32_t device_index,
                                             ds_accel_device_t **device_out);

/** Close one opening. The last one destroys what is left of it: streams, events, graphs, memory.
 * NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_device_close(ds_accel_device_t *device);

/** The handle of a device that is open for as long as the context is: opened by the first call. */
DS_ACCEL_EXPORT int32_t ds_accel_device_get(ds_accel_t *context, uint32_t device_index,
                                            ds_accel_device_t **device_out);

/** The index that it was opened by; UINT32_MAX for NULL and for one that is closed. */
DS_ACCEL_EXPORT uint32_t ds_accel_device_index(const ds_accel_device_t *device);

/** Who the device is, without opening or waking it. @param[out] identity_out struct_size set */
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

/** Work that is queued is done all the same. NULL and the default stream are ignored. */
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
 * The calling thread's current stream of the device: the default one until another is set, and
 * again after that one was destroyed.
 * @owner borrowed   @source DeepSpeed current_stream()
 */
DS_ACCEL_EXPORT int32_t ds_accel_current_stream(ds_accel_device_t *device,
                                                ds_accel_stream_t **stream_out);

/**
 * Make a stream its device's current one for the calling thread. To leave it again, set the one
 * that ds_accel_current_stream() gave before.
 * @source DeepSpeed stream(), set_stream()
 */
DS_ACCEL_EXPORT int32_t ds_accel_set_current_stream(ds_accel_stream_t *stream);

/** Later work of @p stream waits on the device for all work that @p other has now. */
DS_ACCEL_EXPORT int32_t ds_accel_stream_wait_stream(ds_accel_stream_t *stream,
                                                    ds_accel_stream_t *other);

/**
 * A stream of the vendor's own runtime (cudaStream_t, hipStream_t ...) as one of ours.
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED; ERR_INVALID
 * @owner  @p native stays the caller's; ds_accel_stream_destroy() ends ours only
 */
DS_ACCEL_EXPORT int32_t ds_accel_stream_wrap(ds_accel_device_t *device, uint64_t native,
                                             ds_accel_stream_t **stream_out);

/** The vendor's handle behind a stream. @owner borrowed */
DS_ACCEL_EXPORT int32_t ds_accel_stream_native(ds_accel_stream_t *stream, uint64_t *native_out);

/** The device that a stream belongs to; NULL for NULL and for one that was destroyed. */
DS_ACCEL_EXPORT ds_accel_device_t *ds_accel_stream_device(const ds_accel_stream_t *stream);

/* ---- events --------------------------------------------------------------------------------- */

/**
 * Make an event.
 *
 * @param[in] flags  DS_ACCEL_EVENT_*: without TIMING no time can be asked, and recording is cheaper
 * @threads any   @owner caller; release with ds_accel_event_destroy()
 * @source DeepSpeed Event
 */
DS_ACCEL_EXPORT int32_t ds_accel_event_create(ds_accel_device_t *device, uint32_t flags,
                                              ds_accel_event_t **event_out);
/** Whoever waits for it goes on waiting for what was recorded. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_event_destroy(ds_accel_event_t *event);

/**
 * Milliseconds on the device from one event to another of the same device.
 * @return DS_ACCEL_OK; ERR_STATE one was made without timing, or was not reached yet; ERR_INVALID
 */
DS_ACCEL_EXPORT int32_t ds_accel_event_elapsed_ms(ds_accel_event_t *start, ds_accel_event_t *end,
                                                  double *elapsed_ms_out);

/* ---- graphs --------------------------------------------------------------------------------- */

/**
 * An empty graph of the device, to capture into.
 * @return DS_ACCEL_OK; ERR_UNSUPPORTED the backend has no graphs; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_graph_destroy()
 * @source DeepSpeed create_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_create(ds_accel_device_t *device,
                                              ds_accel_graph_t **graph_out);
DS_ACCEL_EXPORT void ds_accel_graph_destroy(ds_accel_graph_t *graph);

/**
 * From now on work queued on @p stream is recorded instead of done. What the graph held is dropped.
 *
 * @param[in] pool  where memory allocated during the capture comes from; NULL: a private one of the
 *                  graph's. It is not used for anything else while the graph lives.
 * @param[in] mode  DS_ACCEL_CAPTURE_*
 * @return DS_ACCEL_OK; ERR_STATE the stream captures already, or the graph is being captured
 * @source DeepSpeed capture_to_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_capture_begin(ds_accel_graph_t *graph,
                                                     ds_accel_stream_t *stream,
                                                     ds_accel_pool_t *pool, uint32_t mode);

/** End the capture. @return DS_ACCEL_OK; ERR_STATE it was broken, or none was begun: the graph is
 * empty then */
DS_ACCEL_EXPORT int32_t ds_accel_graph_capture_end(ds_accel_graph_t *graph);

/** Make it ready to be replayed; the first replay does it too. */
DS_ACCEL_EXPORT int32_t ds_accel_graph_instantiate(ds_accel_graph_t *graph);

/**
 * Queue the whole graph on a stream.
 * @return DS_ACCEL_OK; ERR_STATE nothing was captured
 * @source DeepSpeed replay_graph()
 */
DS_ACCEL_EXPORT int32_t ds_accel_graph_replay(ds_accel_graph_t *graph, ds_accel_stream_t *stream);

/** @return DS_ACCEL_OK; ERR_STATE nothing was captured; ERR_UNSUPPORTED */
DS_ACCEL_EXPORT int32_t ds_accel_graph_node_count(ds_accel_graph_t *graph, uint64_t *count_out);

/** A readable picture, Graphviz where the vendor has it. @owner caller; ds_accel_free_text() */
DS_ACCEL_EXPORT int32_t ds_accel_graph_dump(ds_accel_graph_t *graph, char **text_out);

/* ---- memory --------------------------------------------------------------------------------- */

/**
 * Allocate device memory from the caching allocator, for use in the order of @p stream.
 *
 * @param[in]  stream       stream of first use; NULL: the calling thread's current one
 * @param[in]  size_bytes   > 0; rounded up to 512 bytes
 * @param[out] pointer_out  512-byte aligned device address; contents undefined
 * @return DS_ACCEL_OK; ERR_INVALID size 0, or a stream of another device; ERR_NO_MEMORY after one
 *         retry with an empty cache, with the figures in ds_accel_last_error(); ERR_DRIVER
 * @threads any; takes the lock of the stream's part of the allocator
 * @owner  caller; release with ds_accel_mem_free()
 * @source DeepSpeed accelerator/abstract_accelerator.py, memory API
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                           uint64_t size_bytes, void **pointer_out);

/** The same, aligned to @p align_bytes, a power of two up to 1 GiB. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc_aligned(ds_accel_device_t *device,
                                                   ds_accel_stream_t *stream, uint64_t size_bytes,
                                                   uint64_t align_bytes, void **pointer_out);

/**
 * Give memory back once the work that its streams have now is done. It returns at once, and the
 * memory may be given out again at once: on the same stream as it is, on any other after a wait on
 * the device.
 *
 * @param[in] stream  where the last work was queued that uses it; NULL: where it was allocated
 * @return DS_ACCEL_OK, also for NULL; ERR_INVALID not the start of live memory of this device:
 * freed before, inside an allocation, of another device; or, with the allocator's mode "debug", it
 *         was written past its end, or other memory after it was freed. ERR_DRIVER a stream that
 *         used it can't be waited for: it is never used again
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_free(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                          void *pointer);

/**
 * Say that another stream uses memory too: it is given out again only after the work that this
 * stream has when it is freed.
 * @source torch.Tensor.record_stream
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_record_stream(ds_accel_device_t *device, void *pointer,
                                                   ds_accel_stream_t *stream);

/**
 * Page-locked host memory, from a pool of what was freed.
 *
 * @param[in] align_bytes  1: the runtime's own; 0: the page size, for direct I/O; else a power of 2
 * @param[in] flags        DS_ACCEL_PINNED_*
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_LIMIT with the limit's name and size; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_mem_free_pinned()
 * @source DeepSpeed pin_memory(align_bytes)
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_alloc_pinned(ds_accel_device_t *device, uint64_t size_bytes,
                                                  uint64_t align_bytes, uint32_t flags,
                                                  void **pointer_out);

/** Streams that copy from or to it were told by ds_accel_mem_record_stream(): it is given out again
 * when they are done. NULL is ignored. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_free_pinned(ds_accel_device_t *device, void *pointer);

/** Lock and unlock memory of the caller's. */
DS_ACCEL_EXPORT int32_t ds_accel_mem_register(ds_accel_device_t *device, void *pointer,
                                              uint64_t size_bytes, uint32_t flags);
DS_ACCEL_EXPORT int32_t ds_accel_mem_unregister(ds_accel_device_t *device, void *pointer);

/** What an address is: device, pinned, managed or unknown; whose; and the allocation around it.
 * @param[out] info_out struct_size set */
DS_ACCEL_EXPORT int32_t ds_accel_mem_pointer_info(ds_accel_t *context, const void *pointer,
                                                  struct ds_accel_pointer_info *info_out);

/** *is_pinned_out: 1 if the host address lies in page-locked memory. @source DeepSpeed is_pinned()
 */
DS_ACCEL_EXPORT int32_t ds_accel_is_pinned(ds_accel_t *context, const void *pointer,
                                           uint32_t *is_pinned_out);

/**
 * Copy; done when it returns. It is not ordered behind any stream's work: synchronize first.
 *
 * @param[in] kind  DS_ACCEL_COPY_*
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_DRIVER
 */
DS_ACCEL_EXPORT int32_t ds_accel_mem_copy(ds_accel_device_t *device, void *destination,
                                          const void *source, uint64_t size_bytes, uint32_t kind);

/** Set memory to a byte and wait for it. */
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
 * Called when memory is exhausted, after the cache was emptied: free something (spill it to the
 * host) and have the allocation tried again. It runs on the thread that allocates, outside of all
 * locks, and may call this library, also to free on this device.
 *
 * @param size_bytes  what is asked for
 * @param attempt     from 1; it is asked at most 16 times
 * @return > 0: try again; else the allocation fails
 */
typedef int32_t (*ds_accel_memory_failure_t)(void *user_data, ds_accel_device_t *device,
                                             uint64_t size_bytes, uint32_t attempt);

/** Bytes in live allocations of this device, made here; each as large as it was rounded to.
 * @source DeepSpeed memory_allocated() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_allocated(ds_accel_device_t *device, uint64_t *bytes_out);
/** The most that ds_accel_memory_allocated() ever was, exactly, since the last reset. */
DS_ACCEL_EXPORT int32_t ds_accel_max_memory_allocated(ds_accel_device_t *device,
                                                      uint64_t *bytes_out);
/** Bytes held from the driver, in allocations or cached. @source DeepSpeed memory_cached(),
 * memory_reserved() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_reserved(ds_accel_device_t *device, uint64_t *bytes_out);
DS_ACCEL_EXPORT int32_t ds_accel_max_memory_reserved(ds_accel_device_t *device,
                                                     uint64_t *bytes_out);

/** All peaks become what is current. */
DS_ACCEL_EXPORT int32_t ds_accel_reset_peak_memory_stats(ds_accel_device_t *device);
/** Those of allocations. */
DS_ACCEL_EXPORT int32_t ds_accel_reset_max_memory_allocated(ds_accel_device_t *device);
/** Those of memory held from the driver. @source DeepSpeed reset_max_memory_cached() */
DS_ACCEL_EXPORT int32_t ds_accel_reset_max_memory_reserved(ds_accel_device_t *device);

/** What this process could ever get of the device: its memory, or a lower limit of the machine's.
 */
DS_ACCEL_EXPORT int32_t ds_accel_total_memory(ds_accel_device_t *device, uint64_t *bytes_out);
/** What can be allocated now: what the driver has, up to our limit, and what the cache holds in
 * segments that are free as a whole. One allocation may find less, in one piece. */
DS_ACCEL_EXPORT int32_t ds_accel_available_memory(ds_accel_device_t *device, uint64_t *bytes_out);

/**
 * One statistic by the name that torch.cuda.memory_stats() gives it.
 *
 * @param[in]  key        "allocated_bytes.all.current"
 * @param[out] value_out  bytes or a count
 * @return DS_ACCEL_OK; ERR_NOT_FOUND there is none of that name, with the nearest; ERR_INVALID
 * @threads any; the figures of one moment, without operations that have not returned
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_stat(ds_accel_device_t *device, const char *key,
                                             int64_t *value_out);

/** All of them, as one JSON object. @owner caller; ds_accel_free_text() @source DeepSpeed
 * memory_stats() */
DS_ACCEL_EXPORT int32_t ds_accel_memory_stats(ds_accel_device_t *device, char **json_text_out);

/**
 * How much of the cached memory is not in its largest piece: 0 all of it is, towards 1 in ever more
 * and smaller pieces.
 *
 * @param[out] fragmentation_out  1 - largest / cached; 0 if nothing is cached
 * @param[out] largest_bytes_out  the largest piece: a request for more asks the driver
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_fragmentation(ds_accel_device_t *device,
                                                      double *fragmentation_out,
                                                      uint64_t *largest_bytes_out);

/**
 * Give cached memory back to the driver, once the work that used it is done. What private pools
 * hold stays; while a stream captures, everything does.
 * @source DeepSpeed empty_cache()
 */
DS_ACCEL_EXPORT int32_t ds_accel_empty_cache(ds_accel_device_t *device);
/** The same until at most keep_bytes are held, what was unused the longest first. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_trim(ds_accel_device_t *device, uint64_t keep_bytes);

/** Hold at most so much from the driver; 0: no limit. What is held already stays. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_limit(ds_accel_device_t *device, uint64_t limit_bytes);
/** The same as a part of the device's memory. @return also ERR_INVALID unless 0 < fraction <= 1
 * @source torch.cuda.set_per_process_memory_fraction */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_fraction(ds_accel_device_t *device, double fraction);

/** What is asked before an allocation fails; NULL: nothing. */
DS_ACCEL_EXPORT int32_t ds_accel_memory_set_failure_callback(ds_accel_device_t *device,
                                                             ds_accel_memory_failure_t callback,
                                                             void *user_data);

#define DS_ACCEL_HISTORY_OFF 0u
#define DS_ACCEL_HISTORY_ON 1u
#define DS_ACCEL_HISTORY_STACKS 2u /**< with call stacks: slower */

/**
 * Keep the latest allocations and frees of the device, for snapshots.
 *
 * @param[in] flags        DS_ACCEL_HISTORY_*; OFF forgets what was kept
 * @param[in] max_entries  older ones are dropped
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_record_history(ds_accel_device_t *device, uint32_t flags,
                                                       uint64_t max_entries);

/**
 * A picture of the memory as it is: segments, blocks, statistics, and the history that was kept.
 *
 * @param[in]  context         all its open devices; not looked at if there is a device
 * @param[in]  device          this one alone, or NULL
 * @param[in]  format          DS_ACCEL_SNAPSHOT_*
 * @param[out] data_out        bytes, and a NUL behind them that does not count
 * @param[out] size_bytes_out  how many
 * @return DS_ACCEL_OK; ERR_INVALID; ERR_STATE in a forked child; ERR_NO_MEMORY
 * @threads any; holds the device's allocator meanwhile
 * @owner  caller; release with ds_accel_free_data()
 * @source torch.cuda.memory_snapshot
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_snapshot(ds_accel_t *context, ds_accel_device_t *device,
                                                 uint32_t format, void **data_out,
                                                 size_t *size_bytes_out);

/**
 * A private pool: what is allocated from it shares no segment with anything else, and stays held
 * until the pool is destroyed and so is every graph that was captured with it.
 * @return DS_ACCEL_OK; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_pool_destroy()
 * @source torch.cuda.graph_pool_handle, MemPool
 */
DS_ACCEL_EXPORT int32_t ds_accel_pool_create(ds_accel_device_t *device, ds_accel_pool_t **pool_out);
/** Memory that is allocated from it stays valid. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_pool_destroy(ds_accel_pool_t *pool);
/** From now on this thread's allocations on the pool's device come from it. @return DS_ACCEL_OK;
 * ERR_STATE they come from a pool already */
DS_ACCEL_EXPORT int32_t ds_accel_pool_begin(ds_accel_pool_t *pool);
DS_ACCEL_EXPORT int32_t ds_accel_pool_end(ds_accel_pool_t *pool);

/* ---- layers --------------------------------------------------------------------------------- */

/* ---- random numbers ------------------------------------------------------------------------- */

/* ---- tensors -------------------------------------------------------------------------------- */

/* ---- facts and settings --------------------------------------------------------------------- */

/* ---- what is inline ------------------------------------------------------------------------- */

/* Inline also where a compiler would make a function of it: a call is one jump, not two. */
#define DS_ACCEL_HOT DS_ACCEL_EXPORT __attribute__((always_inline))

/*
 * The library's own; public only because the inline functions below read them. Each is the head of
 * a larger struct. The table of a destroyed handle answers for it.
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
/* ERR_INVALID: which handle is NULL, destroyed or of another context. */
DS_ACCEL_EXPORT int32_t ds_accel__refuse(const char *call, const char *what, const void *handle);
DS_ACCEL_EXPORT int32_t ds_accel__refuse_pair(const char *call, const ds_accel_event_t *event,
                                              const ds_accel_stream_t *stream);

/**
 * The process-wide context, its accelerator chosen and started by the first call.
 * @return NULL if nothing can be used: see ds_accel_last_error(); the next call tries again
 * @threads any
 * @owner  borrowed; lives as long as the process
 */
DS_ACCEL_HOT inline ds_accel_t *ds_accel_get(void)
{
    ds_accel_t *context = __atomic_load_n(&ds_accel__default, __ATOMIC_ACQUIRE);

    return __builtin_expect(context != NULL, 1) ? context : ds_accel__get_first();
}

/**
 * The device's functions and handle, for calls that have no wrapper here. Every slot can be called.
 * @owner borrowed; valid until the device is closed
 */
DS_ACCEL_HOT inline const struct ds_accel_plugin *
ds_accel_device_table(const ds_accel_device_t *device)
{
    return device->table;
}

DS_ACCEL_HOT inline ds_accel_plugin_device_t *
ds_accel_device_handle(const ds_accel_device_t *device)
{
    return device->handle;
}

/** Room for a failure's details on the caller's stack: no thread-local access until it is needed.
 */
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

/**
 * Wait for all work of all streams of the device.
 * @return DS_ACCEL_OK; ERR_DEVICE_LOST; ERR_DRIVER an earlier piece of work failed
 * @threads any   @source DeepSpeed synchronize()
 */
DS_ACCEL_HOT inline int32_t ds_accel_device_synchronize(ds_accel_device_t *device)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL)) {
        return ds_accel__refuse("device_synchronize", "device", device);
    }
    DS_ACCEL_CALL_(device->table->device_synchronize(device->handle, UINT64_MAX, &error));
}

/** The same with a deadline. @return also ERR_TIMEOUT after @p timeout_ns */
DS_ACCEL_HOT inline int32_t ds_accel_device_synchronize_for(ds_accel_device_t *device,
                                                            uint64_t timeout_ns)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL)) {
        return ds_accel__refuse("device_synchronize", "device", device);
    }
    DS_ACCEL_CALL_(device->table->device_synchronize(device->handle, timeout_ns, &error));
}

/** @return DS_ACCEL_OK while the device works; ERR_DEVICE_LOST */
DS_ACCEL_HOT inline int32_t ds_accel_device_health(ds_accel_device_t *device)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL)) {
        return ds_accel__refuse("device_health", "device", device);
    }
    DS_ACCEL_CALL_(device->table->device_health(device->handle, &error));
}

/** @param[out] info_out  its struct_size set by the caller, the rest zero */
DS_ACCEL_HOT inline int32_t ds_accel_device_info(ds_accel_device_t *device,
                                                 struct ds_accel_device_info *info_out)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL || info_out == NULL)) {
        return ds_accel__refuse("device_info", device == NULL ? "device" : "output", NULL);
    }
    DS_ACCEL_CALL_(device->table->device_info(device->handle, info_out, &error));
}

/** Total, available and this process's memory. @param[out] info_out as in ds_accel_device_info() */
DS_ACCEL_HOT inline int32_t ds_accel_device_memory(ds_accel_device_t *device,
                                                   struct ds_accel_memory_info *info_out)
{
    if (DS_ACCEL_UNLIKELY_(device == NULL || info_out == NULL)) {
        return ds_accel__refuse("device_memory", device == NULL ? "device" : "output", NULL);
    }
    DS_ACCEL_CALL_(device->table->mem_info(device->handle, info_out, &error));
}

/** Wait for all work that the stream has. @return DS_ACCEL_OK; ERR_STATE it is capturing;
 * ERR_DRIVER
 */
DS_ACCEL_HOT inline int32_t ds_accel_stream_synchronize(ds_accel_stream_t *stream)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_synchronize", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_synchronize(stream->handle, UINT64_MAX, &error));
}

/** The same with a deadline. @return also ERR_TIMEOUT */
DS_ACCEL_HOT inline int32_t ds_accel_stream_synchronize_for(ds_accel_stream_t *stream,
                                                            uint64_t timeout_ns)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_synchronize", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_synchronize(stream->handle, timeout_ns, &error));
}

/** @return DS_ACCEL_OK idle; DS_ACCEL_NOT_READY busy; ERR_STATE it is capturing */
DS_ACCEL_HOT inline int32_t ds_accel_stream_query(ds_accel_stream_t *stream)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_query", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_query(stream->handle, &error));
}

/** Later work of @p stream waits on the device for what @p event marks now; one that was never
 * recorded holds nothing up. */
DS_ACCEL_HOT inline int32_t ds_accel_stream_wait_event(ds_accel_stream_t *stream,
                                                       ds_accel_event_t *event)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL || event == NULL || stream->table != event->table)) {
        return ds_accel__refuse_pair("stream_wait_event", event, stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_wait_event(stream->handle, event->handle, &error));
}

/**
 * Run a function of the host's when the stream gets there. It runs once, on any thread, and must
 * not call this library.
 */
DS_ACCEL_HOT inline int32_t ds_accel_stream_host_task(ds_accel_stream_t *stream,
                                                      ds_accel_host_task_t task, void *user_data)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("stream_host_task", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->stream_host_task(stream->handle, task, user_data, &error));
}

/** Mark this point of the stream; an earlier mark of the event is replaced. */
DS_ACCEL_HOT inline int32_t ds_accel_event_record(ds_accel_event_t *event,
                                                  ds_accel_stream_t *stream)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL || event == NULL || stream->table != event->table)) {
        return ds_accel__refuse_pair("event_record", event, stream);
    }
    DS_ACCEL_CALL_(event->table->event_record(event->handle, stream->handle, &error));
}

/** @return DS_ACCEL_OK reached, or never recorded; DS_ACCEL_NOT_READY; ERR_STATE recorded into a
 * capture */
DS_ACCEL_HOT inline int32_t ds_accel_event_query(ds_accel_event_t *event)
{
    if (DS_ACCEL_UNLIKELY_(event == NULL)) {
        return ds_accel__refuse("event_query", "event", event);
    }
    DS_ACCEL_CALL_(event->table->event_query(event->handle, &error));
}

/** Wait until the event is reached. */
DS_ACCEL_HOT inline int32_t ds_accel_event_synchronize(ds_accel_event_t *event)
{
    if (DS_ACCEL_UNLIKELY_(event == NULL)) {
        return ds_accel__refuse("event_synchronize", "event", event);
    }
    DS_ACCEL_CALL_(event->table->event_synchronize(event->handle, UINT64_MAX, &error));
}

/** The same with a deadline. @return also ERR_TIMEOUT */
DS_ACCEL_HOT inline int32_t ds_accel_event_synchronize_for(ds_accel_event_t *event,
                                                           uint64_t timeout_ns)
{
    if (DS_ACCEL_UNLIKELY_(event == NULL)) {
        return ds_accel__refuse("event_synchronize", "event", event);
    }
    DS_ACCEL_CALL_(event->table->event_synchronize(event->handle, timeout_ns, &error));
}

/**
 * Queue a copy. Host memory must stay as it is until the stream has passed; unless it is pinned, a
 * runtime may wait for it.
 *
 * @param[in] kind  DS_ACCEL_COPY_*; the ranges do not overlap
 */
DS_ACCEL_HOT inline int32_t ds_accel_mem_copy_async(ds_accel_stream_t *stream, void *destination,
                                                    const void *source, uint64_t size_bytes,
                                                    uint32_t kind)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("mem_copy_async", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->mem_copy_async(stream->handle, destination, source, size_bytes,
                                                 kind, &error));
}

/** Queue the repetition of a pattern, 1, 2 or 4 bytes long, over size_bytes, a multiple of it. */
DS_ACCEL_HOT inline int32_t ds_accel_mem_fill_async(ds_accel_stream_t *stream, void *destination,
                                                    const void *pattern, uint32_t pattern_bytes,
                                                    uint64_t size_bytes)
{
    if (DS_ACCEL_UNLIKELY_(stream == NULL)) {
        return ds_accel__refuse("mem_fill_async", "stream", stream);
    }
    DS_ACCEL_CALL_(stream->table->mem_fill_async(stream->handle, destination, pattern,
                                                 pattern_bytes, size_bytes, &error));
}

/** Queue setting memory to a byte. */
DS_ACCEL_HOT inline int32_t ds_accel_mem_set_async(ds_accel_stream_t *stream, void *destination,
                                                   uint8_t value, uint64_t size_bytes)
{
    return ds_accel_mem_fill_async(stream, destination, &value, 1, size_bytes);
}

#ifdef __cplusplus
}
#endif

#endif
