/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/**
 * @file ds_accel_tools.h
 * What tools do with plugins, machines and snapshots: libds_accel_tools.so, linked beside
 * libds_accel.so of the same release.
 *
 * A program that is linked with it also gets from ds_accel_report() the reports doctor, cache,
 * quarantine, topo, bundle, recording and memory, and the text and the picture of every report; and
 * from ds_accel_create() contexts over a recorded machine (ds_accel_options.machine_file). A linker
 * that drops libraries of which nothing is called is told not to by the flags of
 * `pkg-config --libs ds-accel-tools`. dlopen() works as well, before the calls that need it; the
 * library stays loaded.
 *
 * All that ds_accel.h says of functions, outputs, structs and threads holds here.
 */
#ifndef DS_ACCEL_TOOLS_H
#define DS_ACCEL_TOOLS_H

#include "ds_accel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is remembered --------------------------------------------------------------------- */

/**
 * Forget the verdicts that this user's processes remember; strikes stay. What a context has found
 * out already, it keeps.
 *
 * @return DS_ACCEL_OK, also if there is no folder and so nothing to forget; ERR_IO the folder or
 * its file can't be written; ERR_BUSY another process has been asking plugins for too long;
 *         ERR_STATE the context uses no cache, or only reads it, or as ds_accel_detect() returns it
 *         after fork(); ERR_INVALID NULL; ERR_NO_MEMORY
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

/* ---- plugins -------------------------------------------------------------------------------- */

/**
 * Check a plugin file against the numbered rules of plugin-abi.md. Runs the plugin's code, in
 * a helper process unless the configuration says "in-process".
 *
 * @param[in]  options   of the context that the plugin is probed in; NULL for the defaults
 * @param[in]  path      the .so
 * @param[out] text_out  rule by rule; written for ERR_ABI too
 * @return DS_ACCEL_OK; ERR_ABI a rule is broken; ERR_IO the file can't be read, or no
 *         helper can be had; ERR_NOT_USABLE the program has raised rights and the file is not
 *         root's; ERR_LIMIT; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_lint(const struct ds_accel_options *options, const char *path,
                                      uint32_t format, char **text_out);

/** as the device of ds_accel_conformance(): each device of the plugin, one after another */
#define DS_ACCEL_CONFORMANCE_ALL_DEVICES 0xffffffffu

/**
 * Check a running plugin on its devices against the rules of plugin-abi.md: one suite for
 * every backend. Each check runs in a process of its own making (ds-accel-probe), where it may
 * crash or hang (probe.timeout_ms of the configuration) without ending the others.
 *
 * @param[in]  options       of the context that the plugin is started in; NULL for the defaults
 * @param[in]  name_or_path  a backend, or the .so of one; NULL: only list the checks
 * @param[in]  device_index  the device to work with, or DS_ACCEL_CONFORMANCE_ALL_DEVICES: then with
 *                           several devices also the first of them in reverse order, as the
 *                           backend's variable for visible devices shows them
 * @param[in]  only          "DSA-P19", or a group as "stream": only those checks; NULL: all
 * @param[in]  format        DS_ACCEL_FORMAT_*
 * @param[out] text_out      check by check; written for ERR_ABI too
 * @return DS_ACCEL_OK no check failed; ERR_ABI one did; ERR_NOT_USABLE the accelerator cannot be
 *         had, and why; ERR_NOT_FOUND no plugin of that name; ERR_INVALID only names neither;
 *         ERR_IO the file can't be read, or no helper can be had; ERR_CONFIG; ERR_LIMIT;
 *         ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_conformance(const struct ds_accel_options *options,
                                             const char *name_or_path, uint32_t device_index,
                                             const char *only, uint32_t format, char **text_out);

/* ---- files of memory snapshots -------------------------------------------------------------- */

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

/**
 * Run the allocations that a snapshot recorded again, through the caching allocator over a
 * simulated device, with the recorded settings and with others, and compare what each would have
 * needed.
 *
 * @param[in]  path       as for ds_accel_memory_snapshot_convert()
 * @param[in]  tries      each "key=value,...", put in the place of the recorded settings: the keys
 *                        of the allocator's settings, and capacity_bytes, the device's memory
 * @param[in]  try_count  at most 64; 0: a handful of sensible alternatives
 * @param[in]  format     0: a table; DS_ACCEL_FORMAT_JSON: conf/schema/memory-replay.json
 * @param[out] text_out   written only on DS_ACCEL_OK
 * @return DS_ACCEL_OK; ERR_INVALID a try is none, the snapshot has no events, or as for
 *         ds_accel_memory_snapshot_convert(); ERR_NOT_FOUND; ERR_IO; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_replay(const char *path, const char *const *tries,
                                               uint32_t try_count, uint32_t format,
                                               char **text_out);

#ifdef __cplusplus
}
#endif

#endif
