/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Configuration that is well-formed but wrong: every rule, and `config check`, which lists all. */
#include "config.h"

/* ---- well-formed but wrong ------------------------------------------------------------------ */

Test(core_config, rejects_unknown_key_with_suggestion)
{
    static const struct bad rows[] = {
        {"{\"acelerator\": \"cpu\"}", "1:2",
         "unknown key \"acelerator\"; did you mean \"accelerator\"?"},
        {"{\"probe\":\n  {\"mode\": \"in-process\", \"timout_ms\": 5}}", "2:26",
         "unknown key \"timout_ms\"; did you mean \"timeout_ms\"?"},
        {"{\"trust\": {\"sha265\": {}}}", "1:12", "did you mean \"sha256\"?"},
        {"{\"backends\": {\"cuda\": {\n    \"communication_backnd\": \"nccl\"}}}", "2:5",
         "did you mean \"communication_backend\"?"},
        {"{\"backends\": {\"cuda\": {\"env\": [{\"name\": \"A\", \"rule\": \"unset\"},\n"
         "{\"name\": \"B\", \"valeu\": \"1\"}]}}}",
         "2:15", "did you mean \"value\"?"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"XBuilder\": {\"op\": \"x\",\n"
         " \"source\": []}}}}}",
         "2:2", "did you mean \"sources\"?"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"XBuilder\": {\"op\": \"x\",\n"
         " \"requires\": {\"librarys\": []}}}}}}",
         "2:15", "did you mean \"libraries\"?"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, rejects_unknown_key_with_all_that_are_known)
{
    expect_refused("{\"colour\": \"blue\"}", "1:2",
                   "unknown key \"colour\"; expected one of accelerator, detection_order, "
                   "plugin_dirs, allow, deny, probe, trust, layers, validate, trace, "
                   "communication_backends, compile_backends, allocator, op_settings, kernels, "
                   "backends");
    expect_refused("{\"probe\": {\"colour\": 1}}", "1:12",
                   "expected one of mode, containment, timeout_ms");
}

Test(core_config, rejects_kernels_whose_names_do_not_fit)
{
    static const struct bad rows[] = {
        {"{\"kernels\": {\"Adam\": {}}}", "1:14", "expected an op's name"},
        {"{\"kernels\": {\"/adam\": {}}}", "1:14", "expected an op's name"},
        {"{\"kernels\": {\"Cuda/adam\": {}}}", "1:14", "expected an op's name"},
        {"{\"kernels\": {\"cuda/adam/x\": {}}}", "1:14", "expected an op's name"},
        {"{\"kernels\": {\"adam\": {\"sources\": [\"../a.c\"]}}}", "1:35",
         "expected a path below source_dir"},
        {"{\"kernels\": {\"adam\": {\"sources\": [\"/a.c\"]}}}", "1:35",
         "expected a path below source_dir"},
        {"{\"kernels\": {\"adam\": {\"sources\": [\"-a.c\"]}}}", "1:35",
         "expected a path below source_dir"},
        {"{\"kernels\": {\"adam\": {\"sources\": [\"a*/b.c\"]}}}", "1:35",
         "expected a path below source_dir"},
        {"{\"kernels\": {\"adam\": {\"images\": {\"x y\": \"a.cu\"}}}}", "1:34",
         "expected a variable's name"},
        {"{\"kernels\": {\"adam\": {\"source_dir\": null}}}", "1:37", "expected a text"},
        {"{\"kernels\": {\"adam\": {\"flags\": []}}}", "1:23", "unknown key \"flags\""},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, rejects_settings_of_ops_that_are_no_scalars)
{
    static const struct bad rows[] = {
        {"{\"op_settings\": []}", "1:17",
         "\"op_settings\" is an array; expected an object or null"},
        {"{\"op_settings\": {\"Async\": {}}}", "1:18", "\"Async\": expected an op's name"},
        {"{\"op_settings\": {\"async_io\":\n 1}}", "2:2",
         "\"async_io\" is a whole number; expected an object or null"},
        {"{\"op_settings\": {\"async_io\": {\"a\":\n {}}}}", "2:2", "\"a\" is an object"},
        {"{\"op_settings\": {\"async_io\": {\"a\": [1]}}}", "1:36", "\"a\" is an array"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, rejects_a_value_of_another_type)
{
    static const struct bad rows[] = {
        {"{\"accelerator\": 1}", "1:17",
         "\"accelerator\" is a whole number; expected a text or null"},
        {"{\"allow\": \"*\"}", "1:11", "\"allow\" is a text; expected an array or null"},
        {"{\"allow\":\n[\"a\",\n  7]}", "3:3", "\"allow\" is a whole number; expected a text"},
        {"{\"probe\": []}", "1:11", "\"probe\" is an array; expected an object or null"},
        {"{\"probe\": {\"timeout_ms\": 1.5}}", "1:26",
         "\"timeout_ms\" is a number; expected a whole number or null"},
        {"{\"probe\": {\"timeout_ms\": \"5\"}}", "1:26", "\"timeout_ms\" is a text"},
        {"{\"backends\": {\"cuda\": true}}", "1:23",
         "\"cuda\" is true or false; expected an object or null"},
        {"{\"backends\": {\"cuda\": {\"graph_supported\": \"yes\"}}}", "1:43",
         "\"graph_supported\" is a text; expected true or false or null"},
        {"{\"backends\": {\"cuda\": {\"options\": {\"a\": [1]}}}}", "1:41", "\"a\" is an array"},
        {"{\"backends\": {\"cuda\": {\"env\": [{\"name\": null}]}}}", "1:41",
         "\"name\" is null; expected a text"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"X\": {\"cflags\": [\"-O2\", {}]}}}}}",
         "1:64", "\"cflags\" is an object; expected a text"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, rejects_an_op_of_a_name_that_no_file_can_have)
{
    static const struct bad rows[] = {
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"X\": {\"op\": \"\"}}}}}", "1:52",
         "\"op\" is \"\": expected an op's name, [a-z][a-z0-9_]{0,30}"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"X\": {\"op\": \"../x\"}}}}}", "1:52",
         "\"op\" is \"../x\": expected an op's name"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"X\": {\"op\":\n"
         "\"a123456789012345678901234567890x\"}}}}}",
         "2:1", "expected an op's name"},
        {"{\"kernels\": {\"x\": {\"requires\": {\"ops\": [\"Utils\"]}}}}", "1:41",
         "\"ops\" is \"Utils\": expected an op's name"},
        {"{\"kernels\": {\"x\": {\"sources\": [\"a/..\"]}}}", "1:32",
         "\"sources\" is \"a/..\": expected a path below source_dir"},
    };

    EXPECT_ALL_REFUSED(rows);
}

static void expect_check(int32_t wanted, const char *words)
{
    struct ds_accel_options options = test_options();
    char *text = NULL;

    EXPECT_STATUS(ds_accel_config_check(&options, 0, &text), wanted);
    EXPECT_HAS(text, words);
    ds_accel_free_text(text);
}

/* A member may be in another file, so the check of one file cannot miss it. */
Test(core_config, a_row_that_no_file_completes_is_a_problem)
{
    char words[500];

    test_write("share/a.json", "{\"kernels\": {\"x\": {\"source_dir\": \"/x\", \"sources\": []}},\n"
                               " \"backends\": {\"cuda\": {\"op_builders\": {\n"
                               "   \"XBuilder\": {\"kind\": \"compiled\"}, \"Y\": null}}}}");
    snprintf(words, sizeof(words),
             "%s:3:4: \"XBuilder\" has no \"op\", the name of the op that it builds: add it, or "
             "remove the row with \"XBuilder\": null",
             test_path("share/a.json"));
    expect_check(DS_ACCEL_ERR_CONFIG, words);
    snprintf(words, sizeof(words), "%s:1:14: \"x\" has no \"sources\", the paths of its sources",
             test_path("share/a.json"));
    expect_check(DS_ACCEL_ERR_CONFIG, words);
    /* Programs run: the row is incomplete, and the others are not. */
    ds_accel_destroy(test_create());

    test_write("etc/ds-accel.json", "{\"kernels\": {\"x\": {\"sources\": [\"x.c\"]}},\n"
                                    " \"backends\": {\"cuda\": {\"op_builders\": {\n"
                                    "   \"XBuilder\": {\"op\": \"x\"}}}}}");
    expect_check(DS_ACCEL_OK, "no problem");
    test_write("share/b.json", "{\"kernels\": {\"x\": {\"source_dir\": \"\"}}}");
    snprintf(words, sizeof(words), "%s:1:14: \"x\" has no \"source_dir\"",
             test_path("etc/ds-accel.json"));
    expect_check(DS_ACCEL_ERR_CONFIG, words);
}

Test(core_config, rejects_a_number_out_of_its_range)
{
    static const struct bad rows[] = {
        {"{\"probe\": {\"timeout_ms\": 0}}", "1:26",
         "\"timeout_ms\" is 0; expected a whole number from 1 to 3600000"},
        {"{\"probe\": {\"timeout_ms\": 3600001}}", "1:26", "is 3600001; expected a whole number"},
        {"{\"probe\": {\"timeout_ms\": -1}}", "1:26", "is -1; expected a whole number"},
        {"{\"probe\": {\"timeout_ms\": 99999999999999999999}}", "1:45", "too big integer"},
    };

    EXPECT_ALL_REFUSED(rows);
    expect_merged("probe.timeout_ms", "1",
                  test_write("etc/ds-accel.json", "{\"probe\": {\"timeout_ms\": 1}}"), 1);
    expect_merged("probe.timeout_ms", "3600000",
                  test_write("etc/ds-accel.json", "{\"probe\": {\"timeout_ms\": 3600000}}"), 1);
}

Test(core_config, rejects_a_fraction_out_of_its_range)
{
    static const struct bad rows[] = {
        {"{\"allocator\": {\"fraction\": 1.01}}", "1:28", "is 1.01; expected a number from 0 to 1"},
        {"{\"allocator\": {\"fraction\": -0.01}}", "1:28", "is -0.01; expected a number"},
        {"{\"allocator\": {\"fraction\": 2}}", "1:28", "is 2; expected a whole number"},
    };

    EXPECT_ALL_REFUSED(rows);
    expect_merged("allocator.fraction", "1.0",
                  test_write("etc/ds-accel.json", "{\"allocator\": {\"fraction\": 1.0}}"), 1);
}

/* The key has arbitrary bytes, so its JSON pointer must be escaped. */
Test(core_config, a_key_has_at_most_255_bytes)
{
    struct ds_accel_options options = test_options();
    char text[512];
    char key[257];

    memset(key, 'k', sizeof(key));
    snprintf(text, sizeof(text), "{\"backends\": {\"x\": {\"options\": {\"%.255s\": 1}}}}", key);
    test_write("etc/ds-accel.json", text);
    ds_accel_destroy(test_create_with(&options));
    snprintf(text, sizeof(text), "{\"backends\": {\"x\": {\"options\": {\"%.256s\": 1}}}}", key);
    expect_refused(text, "1:32", "a key has 256 bytes");
}

Test(core_config, rejects_a_word_that_is_not_among_the_known)
{
    static const struct bad rows[] = {
        {"{\"probe\": {\"mode\": \"outside\"}}", "1:20",
         "\"mode\" is \"outside\"; expected one of \"isolated\", \"in-process\""},
        {"{\"probe\": {\"mode\": \"in-proces\"}}", "1:20", "did you mean \"in-process\"?"},
        {"{\"trust\": {\"mode\": \"enforced\"}}", "1:20",
         "expected one of \"off\", \"warn\", \"enforce\"; did you mean \"enforce\"?"},
        {"{\"backends\": {\"x\": {\"env\": [{\"name\": \"A\", \"rule\": \"alway\"}]}}}", "1:51",
         "expected one of \"if-unset\", \"always\", \"unset\"; did you mean \"always\"?"},
        {"{\"backends\": {\"x\": {\"supported_dtypes\": [\"float32\", \"half\"]}}}", "1:53",
         "expected one of \"float32\", \"float16\", \"bfloat16\""},
    };

    EXPECT_ALL_REFUSED(rows);
}

#define FACT(key, value) "{\"backends\": {\"x\": {\"" key "\": [" value "]}}}"

Test(core_config, rejects_facts_of_hardware_that_cannot_be_looked_for)
{
    static const char node[] = "expected a pattern below /dev with wildcards in its last part only";
    static const char pci[] = "expected a PCI vendor, optionally with a class, in lower-case "
                              "hexadecimal: \"10de\", \"10de:03\" or \"10de:0302\"";
    static const char library[] =
        "expected a library's soname, as in libcuda.so.1, or its absolute path";
    static const struct bad rows[] = {
        {FACT("device_nodes", "\"nvidia0\""), "1:38", node},
        {FACT("device_nodes", "\"/sys/x\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/*/card0\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/../etc/passwd\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/..\""), "1:38", node},
        {FACT("device_nodes", "\"/dev//x\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/nvidia[0-9\""), "1:38", "a [ is not closed"},
        {FACT("device_nodes", "\"/dev/a\", 7"), "1:48", "a whole number; expected a text"},
        {FACT("pci", "\"10DE\""), "1:29", pci},
        {FACT("pci", "\"0x10de\""), "1:29", pci},
        {FACT("pci", "\"10d\""), "1:29", pci},
        {FACT("pci", "\"10de:\""), "1:29", pci},
        {FACT("pci", "\"10de:030\""), "1:29", pci},
        {FACT("pci", "\"10de:030200\""), "1:29", pci},
        {FACT("pci", "\"10de 03\""), "1:29", pci},
        {FACT("libraries", "\"lib/libcuda.so\""), "1:35", library},
        {FACT("libraries", "\"cuda\""), "1:35", library},
        {FACT("libraries", "\"/usr/lib/libcuda.so/\""), "1:35", library},
        {FACT("tolerate", "\"nothing\""), "1:34",
         "\"tolerate\" is \"nothing\"; expected one of \"prints_stdout\", "},
        {FACT("tolerate", "\"leaves_threads\""), "1:34", "did you mean \"leaves_thread\"?"},
        {FACT("tolerate", "\"result_forged\""), "1:34", "\"changes_environment\""},
        {FACT("tolerate", "\"probe_segv\""), "1:34", "expected one of"},
        {"{\"probe\": {\"parallel\": 0}}", "1:24", "expected a whole number from 1 to 64"},
        {"{\"probe\": {\"parallel\": 65}}", "1:24", "is 65; expected a whole number"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, takes_facts_of_hardware)
{
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"x\": {\n\"device_nodes\": [\"/dev/a/b[0-9]*\", \"/dev/c.d\"],\n"
               "\"pci\": [\"10de\", \"10de:03\", \"10de:0302\"],\n"
               "\"libraries\": [\"liba.so.1\", \"/opt/b/liba.so\"], \"tolerate\": null}},\n"
               "\"probe\": {\"parallel\": 64}}");
    expect_merged("backends.x.device_nodes", "[\"/dev/a/b[0-9]*\",\"/dev/c.d\"]",
                  test_path("etc/ds-accel.json"), 2);
    expect_merged("backends.x.pci", "[\"10de\",\"10de:03\",\"10de:0302\"]",
                  test_path("etc/ds-accel.json"), 3);
    expect_merged("backends.x.libraries", "[\"liba.so.1\",\"/opt/b/liba.so\"]",
                  test_path("etc/ds-accel.json"), 4);
    expect_merged("probe.parallel", "64", test_path("etc/ds-accel.json"), 5);
}

Test(core_config, takes_remedies_for_reasons_that_there_are)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;

    test_write("etc/ds-accel.json",
               "{\"backends\": {\"alpha\": {\"remedies\": {\"no_device\": \"buy one\", "
               "\"hidden\": null}}}}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"alpha\": {\"remedies\": {\"no_devices\": \"buy one\"}}}}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    cr_expect_not_null(strstr(ds_accel_last_error(), "1:38: \"no_devices\": expected the code"),
                       "%s", ds_accel_last_error());
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"alpha\": {\"remedies\": {\"no_device\": \"\"}}}}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    cr_expect_not_null(strstr(ds_accel_last_error(), "one line of 1 to 400 bytes"), "%s",
                       ds_accel_last_error());
    expect_refused("{\"backends\": {\"alpha\": {\"remedies\": {\"no_device\": \"buy\\none\"}}}}",
                   "1:51", "one line of 1 to 400 bytes");
}

/* A configuration may tolerate only some codes of misconduct, never one that falsifies a result.
   reasons.def lists the codes. */
Test(core_config, tolerates_every_code_of_conduct_and_no_other)
{
    static const struct {
        const char *gate; /* name of the gate that this entry starts, or NULL */
        const char *code;
    } reasons[] = {
#define GATE(name, what) {name, NULL},
#define REASON(id, code, meaning, remedy) {NULL, code},
#include "../../core/reasons.def"
#undef REASON
#undef GATE
    };
    const char *gate = "";
    unsigned accepted = 0;

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        struct ds_accel_options options = test_options();
        ds_accel_t *context = NULL;
        char text[160];
        bool may = strcmp(gate, "conduct") == 0 && reasons[i].code != NULL &&
                   strncmp(reasons[i].code, "result_", 7) != 0;

        if (reasons[i].gate != NULL) {
            gate = reasons[i].gate;
            continue;
        }
        snprintf(text, sizeof(text), FACT("tolerate", "\"%s\""), reasons[i].code);
        test_write("etc/ds-accel.json", text);
        cr_expect_eq(ds_accel_create(&options, &context), may ? DS_ACCEL_OK : DS_ACCEL_ERR_CONFIG,
                     "%s: %s", reasons[i].code, ds_accel_last_error());
        accepted += context != NULL;
        ds_accel_destroy(context);
    }
    cr_expect_eq(accepted, 26);
}

#define ENV_NAMED(name) \
    "{\"backends\": {\"x\": {\"env\": [{\"name\": \"" name "\", \"rule\": \"unset\"}]}}}"

Test(core_config, rejects_variables_that_must_not_be_set)
{
    static const struct bad rows[] = {
        {ENV_NAMED("path"), "1:38", "expected a variable's name, [A-Z_][A-Z0-9_]*"},
        {ENV_NAMED("1A"), "1:38", "expected a variable's name"},
        {ENV_NAMED("A-B"), "1:38", "expected a variable's name"},
        {ENV_NAMED("A=B"), "1:38", "expected a variable's name"},
        {ENV_NAMED("A;B"), "1:38", "expected a variable's name"},
        {ENV_NAMED(""), "1:38", "expected a variable's name"},
        {ENV_NAMED("LD_PRELOAD"), "1:38", "LD_* and DS_ACCEL* cannot be set from configuration"},
        {ENV_NAMED("LD_LIBRARY_PATH"), "1:38", "cannot be set from configuration"},
        {ENV_NAMED("DS_ACCEL_X"), "1:38", "cannot be set from configuration"},
        {ENV_NAMED("DS_ACCELERATOR"), "1:38", "cannot be set from configuration"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", ENV_NAMED("_LD_PRELOAD9"));
    ds_accel_destroy(test_create());
}

Test(core_config, rejects_an_env_rule_that_lacks_name_or_value)
{
    static const struct bad rows[] = {
        {"{\"backends\": {\"x\": {\"env\": [\n{\"rule\": \"unset\"}]}}}", "2:1",
         "expected a \"name\" in each element"},
        {"{\"backends\": {\"x\": {\"env\": [\n {\"name\": \"A\", \"rule\": \"always\"}]}}}", "2:2",
         "expected a \"value\""},
        {"{\"backends\": {\"x\": {\"env\": [\n {\"name\": \"A\"}]}}}", "2:2",
         "expected a \"value\""},
    };

    EXPECT_ALL_REFUSED(rows);
}

/* Values that ds_accel_communication_backend() and similar functions would truncate or return as
   empty. */
Test(core_config, rejects_names_that_do_not_fit_the_interface)
{
    static const struct bad rows[] = {
        {"{\"backends\": {\"x\": {\"communication_backend\": "
         "\"n2345678901234567890123456789012\"}}}",
         "1:46", "expected a name of 1 to 31 bytes"},
        {"{\"backends\": {\"x\": {\"compile_backend\": \"\"}}}", "1:40",
         "expected a name of 1 to 31 bytes"},
        {"{\"compile_backends\": [\"inductor\", \"n2345678901234567890123456789012\"]}", "1:35",
         "expected a name of 1 to 31 bytes"},
        {"{\"backends\": {\"x\": {\"op_builder_dir\": "
         "\"op_builder.n2345678901234567890123456789012345678901234567890123\"}}}",
         "1:39", "expected a name of 1 to 63 bytes"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", "{\"backends\": {\"x\": {\"compile_backend\": "
                                    "\"n234567890123456789012345678901\"}}}");
    ds_accel_destroy(test_create());
}

Test(core_config, rejects_names_that_no_backend_can_have)
{
    static const struct bad rows[] = {
        {"{\"accelerator\": \"CUDA\"}", "1:17",
         "\"accelerator\" is \"CUDA\": expected a backend's name, [a-z][a-z0-9_.]{0,30}"},
        {"{\"backends\": {\"x\": {}, \"../x\": {}}}", "1:24",
         "\"../x\": expected a backend's name"},
        {"{\"detection_order\": [\"cpu\", \"\"]}", "1:29", "expected a backend's name"},
        {"{\"accelerator\": \"a2345678901234567890123456789012\"}", "1:17",
         "expected a backend's name"},
        {"{\"backends\": {\"xpu\": {\"defers_to\": {\"driver\": [\"CUDA\"]}}}}", "1:48",
         "expected a backend's name"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", "{\"accelerator\": \"a234567890123456789012345678901\"}");
    ds_accel_destroy(test_create());
}

Test(core_config, rejects_relative_plugin_directories)
{
    expect_refused("{\"plugin_dirs\": [\"/abs\", \"rel/dir\"]}", "1:26",
                   "\"plugin_dirs\" is \"rel/dir\": expected an absolute path");
}

#define HEX31 "0123456789abcdef0123456789abcde"

Test(core_config, rejects_a_sha256_that_is_none)
{
    static const struct bad rows[] = {
        {"{\"trust\": {\"sha256\": {\"a/~b\": \"" HEX31 HEX31 "fg\"}}}", "1:31",
         "expected 64 lower-case hexadecimal digits"},
        {"{\"trust\": {\"sha256\": {\"x\": \"" HEX31 HEX31 "F0\"}}}", "1:28",
         "expected 64 lower-case"},
        {"{\"trust\": {\"sha256\": {\"x\": \"" HEX31 "\"}}}", "1:28", "expected 64 lower-case"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", "{\"trust\": {\"sha256\": {\"x\": \"" HEX31 HEX31 "ff\"}}}");
    ds_accel_destroy(test_create());
}

/* ---- options of backends -------------------------------------------------------------------- */

Test(core_config, rejects_an_option_that_the_package_does_not_declare)
{
    test_write("share/a.json", "{\"backends\": {\"mine\": {\"options\": {\"device_count\": 1}}}}");
    expect_refused("{\"backends\": {\"mine\": {\"options\": {\n  \"device_cuont\": 2}}}}", "2:3",
                   "unknown option \"device_cuont\" of mine; did you mean \"device_count\"?");
    expect_refused("{\"backends\": {\"mine\": {\"options\": {\n\n \"a/b\": 2}}}}", "3:2",
                   "unknown option \"a/b\" of mine");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"mine\": {\"options\": {\"device_count\": 2}},\n"
               " \"other\": {\"options\": {\"anything\": \"goes\"}}}}");
    ds_accel_destroy(test_create());
}

Test(core_config, options_may_be_declared_by_several_packages)
{
    test_write("share/a.json", "{\"backends\": {\"mine\": {\"options\": {\"first\": 1}}}}");
    test_write("share/b.json", "{\"backends\": {\"mine\": {\"options\": {\"second\": 1}}}}");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"mine\": {\"options\": {\"first\": 2, \"second\": 2}}}}");
    ds_accel_destroy(test_create());
}

/* ---- several problems, and nothing half-applied --------------------------------------------- */

Test(core_config, all_problems_of_all_files_are_listed_at_once)
{
    const char *first = test_write("share/a.json", "{\"allow\": 1,\n\"deny\": 2}");
    const char *second = test_write("etc/ds-accel.json", "{");
    const char *third = test_write("etc/conf.d/a.json", "{\"probe\": {\"timeout_ms\": 0}}");
    struct ds_accel_options options = test_options();

    test_write("etc/conf.d/b.json", "{\"accelerator\": \"cpu\"}");
    expect_refused_with(&options, first, "1:11", "\"allow\" is a whole number");
    expect_refused_with(&options, first, "2:9", "\"deny\" is a whole number");
    expect_refused_with(&options, second, "1:1", "expected one JSON object");
    expect_refused_with(&options, third, "1:26", "\"timeout_ms\" is 0");
}

Test(core_config, a_failed_default_context_reads_the_configuration_again)
{
    test_write("mine.json", "{\"accelerator\": 1}");
    setenv("DS_ACCEL_CONFIG", test_path("mine.json"), 1);
    cr_expect_null(ds_accel_get());
    EXPECT_HAS(ds_accel_last_error(), "mine.json:1:17: ");
    test_write("mine.json", "{\"accelerator\": \"cpu\"}");
    cr_assert_not_null(ds_accel_get(), "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(ds_accel_get()), "config");
}

/* ---- config check --------------------------------------------------------------------------- */

Test(core_config, check_lists_problems_in_both_formats)
{
    const char *file =
        test_write("etc/ds-accel.json", "{\"allow\": 1,\n\"probe\": {\"mode\": \"x\"}}");
    struct ds_accel_options options = test_options();
    char wanted[512];
    char *text = NULL;

    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_ERR_CONFIG);
    snprintf(wanted, sizeof(wanted),
             "%s:1:11: \"allow\" is a whole number; expected an array or null\n"
             "%s:2:19: \"mode\" is \"x\"; expected one of \"isolated\", \"in-process\"\n",
             file, file);
    cr_expect_str_eq(text, wanted);
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(test_compact(text), "\"schema_version\":1,\"valid\":false,");
    snprintf(wanted, sizeof(wanted), "\"problems\":[{\"file\":\"%s\",\"line\":1,\"column\":11,",
             file);
    EXPECT_HAS(text, wanted);
    EXPECT_HAS(text, "\"line\":2,\"column\":19,\"message\":\"\\\"mode\\\" is \\\"x\\\"; expected");
    ds_accel_free_text(text);
}

Test(core_config, check_of_good_files_says_so)
{
    struct ds_accel_options options = test_options();
    char *text = NULL;

    test_write("share/a.json", "{}");
    test_write("etc/ds-accel.json", "{}");
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_OK);
    cr_expect_str_eq(text, "2 configuration files, no problem\n");
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_OK);
    EXPECT_HAS(test_compact(text), "\"valid\":true");
    EXPECT_HAS(text, "\"problems\":[]}");
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, 0, NULL), DS_ACCEL_ERR_INVALID);
}

Test(core_config, the_shipped_files_pass)
{
    struct ds_accel_options options = test_options();
    char *report;
    char *text = NULL;

    options.package_config_dir = TEST_SOURCE "/conf";
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_OK, "%s",
                 text);
    EXPECT_HAS(test_compact(text), "/conf/ds-accel.json\"");
    EXPECT_HAS(text, "/conf/ops.json\"");
    EXPECT_HAS_NOT(text, "/conf/schema");
    ds_accel_free_text(text);
    report = merged_with(&options);
    EXPECT_HAS(report, "\"key\":\"backends.hpu.communication_backend\",\"value\":\"hccl\"");
    EXPECT_HAS(report, "\"key\":\"backends.cpu.op_builders.CPUAdamBuilder.op\"");
    ds_accel_free_text(report);
}

Test(core_config, without_any_file_a_warning_says_so)
{
    ds_accel_destroy(test_create());
    EXPECT_HAS(test_log, "2 config: no configuration file was found");
}
