#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# dump.sh BUILD [FROZEN [NAME]]: print abidw's description of the library in a build directory,
# libNAME.so or libds_accel.so. The description has no source positions, so that it changes only
# with the interface; types that the public headers do not define are only declared in it.
#
# FROZEN is the description of an older version: structs that begin with struct_size are cut to
# their length there, so that abidiff reports no change where members were only appended. abidiff's
# own has_data_member_inserted_at = end is no substitute: it suppresses every other change of such a
# struct, too.
set -eu
name=${3:-ds_accel}

dump() {
    abidw --no-show-locs --no-comp-dir-path --no-corpus-path --no-architecture --no-elf-needed \
        --no-parameter-names --no-write-default-sizes --exported-interfaces-only \
        --headers-dir "$1/stage/program" --drop-private-types "$1/lib/lib$name.so"
}

if [ $# -lt 2 ]; then
    dump "$1"
    exit
fi
dump "$1" | awk -v frozen="$2" '
function attribute(line, key) {
    if (!match(line, " " key "=\x27[^\x27]*\x27")) {
        return ""
    }
    return substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
}
BEGIN {
    while ((getline line < frozen) > 0) {
        if (line ~ /<class-decl /) {
            name = attribute(line, "name")
            bits = attribute(line, "size-in-bits")
        } else if (line ~ /<var-decl name=\x27struct_size\x27/) {
            limits[name] = bits
        }
    }
    name = ""
}
/<class-decl / {
    name = attribute($0, "name")
    if ((name in limits) && attribute($0, "size-in-bits") + 0 > limits[name] + 0) {
        sub(/size-in-bits=\x27[0-9]*\x27/, "size-in-bits=\x27" limits[name] "\x27")
    } else {
        name = ""
    }
}
/<\/class-decl>/ { name = "" }
/<data-member / && name != "" && attribute($0, "layout-offset-in-bits") + 0 >= limits[name] + 0 {
    dropping = 1
}
!dropping { print }
/<\/data-member>/ { dropping = 0 }
'
