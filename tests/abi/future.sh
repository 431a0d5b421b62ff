#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# future.sh FILE: print plugin-api.h, ds_accel.h or slots.def as a later minor version might define
# it, by the rules of "How the ABI grows". Every struct that begins with struct_size gets two
# members at its end, the plugin's table gets two slots that every plugin fills and no caller uses,
# and the minor version is 99.
set -eu

awk '
/^#define DS_ACCEL_ABI_MINOR / {
    $3 = 99
    is_abi = 1
}

/^struct [a-z_]+ \{$/ { name = $2 }
name != "" && /^    uint32_t struct_size;/ { sized = 1 }
/^};$/ && sized {
    if (name == "ds_accel_plugin") {
        print "    int32_t (*future_first)(void *data, struct ds_accel_error *error);"
        print "    int32_t (*future_second)(void *data, struct ds_accel_error *error);"
    } else if (name == "ds_accel_note_desc") {
        # Members of 32 bits keep the alignment of the note.
        print "    uint32_t future_words[4];"
    } else {
        print "    uint64_t future_number;"
        print "    char future_text[40];"
    }
    grown++
    name = ""
    sized = 0
}
/^};$/ { name = "" }

# The additional slots have an effect, so that a test would notice a call of them.
/^#define DS_ACCEL_PLUGIN\(/ {
    slot = "DS_ACCEL_INLINE int32_t ds_accel_future_slot_(void *data, struct ds_accel_error *error)"
    print slot ";"
    print slot
    print "{"
    print "    (void)data, (void)error;"
    print "    __builtin_trap();"
    print "}"
    print ""
}
/^        fill_\(&ds_accel_table_\); \\$/ {
    print "        ds_accel_table_.future_first = ds_accel_future_slot_; \\"
    print "        ds_accel_table_.future_second = ds_accel_future_slot_; \\"
    filled = 1
}
/^#undef PROBE$/ {
    print "CALL(future_first, 1, (P, ANY, void *, data))"
    print "CALL(future_second, 1, (P, ANY, void *, data))"
    grown++
}
{ sub(/^         vendor_\}\}; \\$/, "         vendor_, {0}}}; \\") }
sub(/== 24 \+ 160, "ABI: note layout"/, "== 24 + 176, \"ABI: note layout\"") { noted = 1 }
{ print }

# Fail if this script no longer fits the file, rather than print an unchanged one.
END { exit !(grown > 0 && (!is_abi || (filled && noted))) }
' "$1"
