/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Every reason why a candidate was not chosen: one table for code, meaning and remedy. Codes are
 * part of the JSON that people script against: never renamed, never given a second meaning.
 */
#include "internal.h"

static const struct ds_accel__reason reasons[] = {
    /* The name gate. */
    {"bad_name", "the file name is not that of a plugin",
     "rename the file to ds_accel_<name>.so with a name of [a-z][a-z0-9_.]{0,30}"},
    {"shadowed", "a plugin of the same name comes earlier on the search path",
     "remove one of the two files, or put this one's folder first with --plugin-dir"},
    /* The ELF gate. */
    {"not_readable", "the file cannot be read",
     "give the user read permission on the file and search permission on its folders"},
    {"not_regular_file", "it is a folder, pipe, socket or dangling link, not a file",
     "put the plugin's .so file itself there"},
    {"not_elf", "it is not an ELF file", "reinstall the plugin: this is not a shared object"},
    {"elf_truncated", "the file ends in the middle of what its headers announce",
     "copy or install the file again; it is incomplete"},
    {"elf_wrong_class", "it is built for another word size or byte order",
     "install the vendor's build for this machine's architecture"},
    {"elf_wrong_machine", "it is built for another processor architecture",
     "install the vendor's build for this machine's architecture"},
    {"elf_not_shared_object", "it is a program or object file, not a shared object",
     "build the plugin with -shared -fPIC"},
    /* The note gate. */
    {"no_note", "it has no ds-accel note, so it is not a ds-accel plugin",
     "build the plugin with DS_ACCEL_PLUGIN() of plugin-api.h"},
    {"duplicate_note", "it has more than one ds-accel note",
     "use DS_ACCEL_PLUGIN() once in the plugin"},
    {"bad_note", "its ds-accel note is not well-formed",
     "build the plugin with DS_ACCEL_PLUGIN() of plugin-api.h"},
    {"abi_unsupported", "it is built for an ABI generation this host does not have",
     "install a ds-accel that has this generation, or the vendor's plugin for generation 1"},
    {"feature_unknown", "it requires a feature this host does not know",
     "install a newer ds-accel, or an older version of the plugin"},
    {"name_mismatch", "file name, note and table do not say the same name",
     "give the file the name that its note says: ds_accel_<name>.so"},
    /* The allow gate. */
    {"denied", "the configuration's deny list names it",
     "remove the pattern from \"deny\" (ds-accel config show tells the file)"},
    {"not_allowed", "the configuration's allow list does not name it",
     "add its name to \"allow\" (ds-accel config show tells the file)"},
    /* The load gate. */
    {"load_failed", "the dynamic linker refused it", "the detail is the linker's own message"},
    {"symbol_undefined", "it needs a symbol that nothing provides",
     "install the plugin's matching dependencies, or have it rebuilt with -Wl,-z,defs"},
    {"dependency_missing", "a shared library that it links is not installed",
     "install the library that the detail names"},
    /* The entry gate. */
    {"no_entry", "it does not export ds_accel_entry_v1",
     "build the plugin with DS_ACCEL_PLUGIN() of plugin-api.h"},
    {"entry_refused", "its entry returned NULL: it does not accept this host",
     "ask the plugin's vendor which ds-accel it needs"},
    {"table_short", "its table ends before a function that is required",
     "have the plugin rebuilt with a published plugin-api.h"},
    {"table_absurd", "its table claims a size no ABI version has",
     "reinstall the plugin; its table is damaged"},
    {"table_abi", "its table says another ABI generation than its entry",
     "build the plugin with DS_ACCEL_PLUGIN() of plugin-api.h"},
    {"table_no_name", "its table has no name", "build the plugin with DS_ACCEL_PLUGIN()"},
    {"table_features", "its table requires other features than its note",
     "build the plugin with DS_ACCEL_PLUGIN() of plugin-api.h"},
    {"slot_missing", "a required function of its table is NULL",
     "have the plugin define the function that the detail names"},
    /* The probe gate: the plugin's own answers. */
    {"no_device", "the machine has no device of this kind",
     "install one, or choose another accelerator"},
    {"no_driver", "the device is there, its kernel driver is not",
     "install and load the vendor's kernel driver"},
    {"no_permission", "the device node refuses access",
     "add the user to the group of the node that the detail names"},
    {"library_missing", "the vendor's runtime library is not installed",
     "install the library that the detail names"},
    {"symbol_missing", "the vendor's runtime library is too old",
     "update the vendor's runtime to one that has the symbol"},
    {"driver_mismatch", "kernel driver and runtime library disagree",
     "bring both to the same version, then reboot or reload the driver"},
    {"device_busy", "another process uses the device exclusively",
     "wait for that process, end it, or change the device's compute mode"},
    {"hidden", "a visible-devices variable hides every device",
     "unset or correct the variable that the detail names"},
    {"device_too_old", "the device is of a generation that is not supported",
     "use a newer device, or another accelerator"},
    {"device_asleep", "the device is suspended and was not woken",
     "ask for it by name, or wake it"},
    {"driver_failed", "the vendor's runtime returned an error",
     "the detail has the vendor's own code: see the vendor's manual"},
    {"bad_option", "an option or variable of the plugin is not valid",
     "correct the option that the detail names"},
    {"newer_reason", "the plugin gives a reason that this version has no name for",
     "the detail has the plugin's own words; a newer ds-accel knows the reason"},
    {"bad_verdict", "its probe gave an answer that breaks the plugin ABI",
     "report it to the plugin's vendor; ds-accel lint names the rule"},
    /* After the gates. */
    {"demand_only", "it is chosen only by name",
     "set DS_ACCELERATOR or \"accelerator\" to its name"},
    {"deferred", "another accelerator goes first by configuration",
     "force it by name, or change \"defers_to\""},
    {"not_needed", "an accelerator before it was chosen",
     "force it by name, or change \"detection_order\""},
    {"not_chosen", "another one was asked for by name", "change DS_ACCELERATOR or \"accelerator\""},
    {"no_plugin", "no plugin file of that name is on the search path",
     "install the vendor's plugin into one of the folders searched, or name its folder with "
     "--plugin-dir"},
    {"start_failed", "it passed its probe, then failed to start",
     "the detail has the cause; ds-accel explain shows every step"},
};

const struct ds_accel__reason *ds_accel__reason(const char *code)
{
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(reasons); i++) {
        if (strcmp(reasons[i].code, code) == 0) {
            return &reasons[i];
        }
    }
    return NULL;
}

const char *ds_accel__reason_of_verdict(uint32_t reason)
{
    static const char *const codes[] = {
        [DS_ACCEL_REASON_NO_DEVICE] = "no_device",
        [DS_ACCEL_REASON_NO_DRIVER] = "no_driver",
        [DS_ACCEL_REASON_NO_PERMISSION] = "no_permission",
        [DS_ACCEL_REASON_LIBRARY_MISSING] = "library_missing",
        [DS_ACCEL_REASON_SYMBOL_MISSING] = "symbol_missing",
        [DS_ACCEL_REASON_DRIVER_MISMATCH] = "driver_mismatch",
        [DS_ACCEL_REASON_DEVICE_BUSY] = "device_busy",
        [DS_ACCEL_REASON_HIDDEN] = "hidden",
        [DS_ACCEL_REASON_DEVICE_TOO_OLD] = "device_too_old",
        [DS_ACCEL_REASON_DEVICE_ASLEEP] = "device_asleep",
        [DS_ACCEL_REASON_DRIVER_FAILED] = "driver_failed",
        [DS_ACCEL_REASON_BAD_OPTION] = "bad_option",
    };

    return reason < DS_ACCEL__ARRAY_SIZE(codes) ? codes[reason] : NULL;
}
