/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer trace: the file of spans. */
#include "layer.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- the trace file -------------------------------------------------------------------------- */

/* True if Python's JSON reader accepts the file and each event has the members that a viewer
   needs. */
static bool python_reads(const char *path)
{
    char command[1024];

    snprintf(command, sizeof(command),
             "python3 -c 'import json,sys\n"
             "events = json.load(open(sys.argv[1]))\n"
             "assert len(events) > 10\n"
             "for e in events:\n"
             "    assert e[\"ph\"] in \"MXBE\" and \"pid\" in e and \"tid\" in e\n"
             "    assert e[\"ph\"] != \"X\" or (e[\"dur\"] >= 0 and \"status\" in e[\"args\"])\n"
             "spans = [e[\"ph\"] for e in events if e[\"ph\"] in \"BE\"]\n"
             "assert spans.count(\"B\") == spans.count(\"E\")\n' %s",
             path);
    return system(command) == 0;
}

Test(core_layer, trace_is_valid_json_with_a_span_for_each_call)
{
    const char *path = test_path("trace.json");
    char *text;

    setenv("DS_ACCEL_TRACE_FILE", path, 1);
    start_layers("trace");
    use_everything();
    EXPECT_OK(table->range_push(instance, "step \"1\"\n\\ \xff", NULL, "training", &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_OK(table->range_pop(instance, NULL, &error));
    stop();
    text = read_whole(path);
    EXPECT_HAS(text, "\"name\":\"mem_copy_async\",\"cat\":\"mem\"");
    EXPECT_HAS(text, "\"size_bytes\":64,\"kind\":4");
    EXPECT_HAS(text, "\"ph\":\"B\"");
    EXPECT_HAS(text, "\"cat\":\"training\"");
    cr_expect(python_reads(path), "%s", text);
}

/* The host's extension for a plugin's own spans is always present; spans are written if layer trace
   is enabled. */
Test(core_layer, trace_has_the_plugins_own_spans)
{
    const char *path = test_path("trace.json");
    const struct ds_accel_ext_trace *spans;
    char *text;

    setenv("DS_ACCEL_TRACE_FILE", path, 1);
    start_bad("leak");
    spans = bad_host->extension(bad_host, DS_ACCEL_EXT_TRACE);
    cr_assert_not_null(spans);
    cr_expect_neq(bad_host->features & DS_ACCEL_FEATURE_TRACE, 0);
    spans->begin(bad_host, "upload", "nobody sees this");
    spans->end(bad_host);
    stop();
    cr_expect_neq(access(path, F_OK), 0, "no layer writes it");
    start_bad("trace");
    spans = bad_host->extension(bad_host, DS_ACCEL_EXT_TRACE);
    for (int i = 0; i < 10; i++) {
        spans->begin(bad_host, "upload", "chunk");
        spans->end(bad_host);
        spans->end(bad_host); /* one call of end() without a begin() */
    }
    stop();
    text = read_whole(path);
    EXPECT_HAS(text, "\"name\":\"chunk\",\"cat\":\"upload\"");
    cr_expect(python_reads(path), "%s", text);
}

/* A process killed by a signal leaves whole lines, and the array format does not need its closing
   bracket. */
Test(core_layer, trace_of_a_crash_can_be_read)
{
    const char *path = test_path("crash.json");
    char *text;
    int status = 0;
    pid_t child;

    setenv("DS_ACCEL_TRACE_FILE", path, 1);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        start_layers("trace");
        for (int i = 0; i < 1200; i++) {
            (void)table->device_synchronize(handle, UINT64_MAX, &error);
        }
        kill(getpid(), SIGKILL);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    text = read_whole(path);
    cr_expect_gt(strlen(text), 65536);
    cr_expect_eq(text[strlen(text) - 1], '}', "the last line is whole");
    strcat(text, "\n]\n");
    test_write("closed.json", text);
    cr_expect(python_reads(test_path("closed.json")));
}

Test(core_layer, trace_that_cannot_be_written_is_left_out)
{
    setenv("DS_ACCEL_TRACE_FILE", "/nonexistent/trace.json", 1);
    start_layers("trace,leak");
    EXPECT_HAS(test_log, "layer trace is disabled");
    allocate(8);
    test_log[0] = '\0';
    stop();
    EXPECT_HAS(test_log, "1 x memory");
}
