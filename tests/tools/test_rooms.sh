#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The rooms of core/ keep their order: no object calls a function or reads a variable of a later
# room, and no object of libds_accel.so uses libds_accel_tools.so. Prints how many symbols each room
# uses of each earlier room. An include of a later room does not compile, and the files of a room do
# not call each other in a cycle.  test_rooms.sh BUILD
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

library=$(sed -n 's/^ROOMS := //p' "$source/Makefile")
tools=$(sed -n 's/^TOOLS_ROOMS := //p' "$source/Makefile")
rooms="$library $tools"
(cd "$source" && find core -name '*.c') | sort >"$dir/sources"

# Write "SYMBOL ROOM FILE" for each defined symbol to one file, and for each used symbol to another.
while read -r file; do
    rest=${file#core/}
    nm "$build/obj/${file%.c}.o" | awk -v room="${rest%%/*}" -v file="$rest" -v defined="$dir/defined" -v used="$dir/used" '
        NF == 3 && $2 ~ /[TDBRVWC]/ { print $3, room, file >>defined }
        NF == 2 { print $2, room, file >>used }'
done <"$dir/sources"

uses=$(awk -v rooms="$rooms" '
    BEGIN { count = split(rooms, name, " "); for (i = 1; i <= count; i++) place[name[i]] = i }
    FILENAME ~ /defined$/ { room[$1] = $2; file[$1] = $3; next }
    !($2 in place) { print "no room of ROOMS", $3; next }
    !($1 in room) || room[$1] == $2 { next }
    place[room[$1]] > place[$2] { print "upward", $3, "uses", $1, "of", file[$1]; next }
    { print "use", $2, room[$1] }' "$dir/defined" "$dir/used")
is "each file is in a room" "" "$(printf '%s\n' "$uses" | grep '^no room' || true)"
is "no room uses a later one" "" "$(printf '%s\n' "$uses" | grep '^upward' | sort -u || true)"
# In the order of both libraries, the first room of the tools library follows the last room of
# libds_accel.so.
is "both libraries have rooms" "base ops report launch" "${library%% *} ${library##* } ${tools%% *} ${tools##* }"
is "libds_accel.so uses nothing of libds_accel_tools.so" "" "$(awk -v tools=" $tools " '
    FILENAME ~ /defined$/ { if (index(tools, " " $2 " ")) below[$1] = $3; next }
    ($1 in below) && !index(tools, " " $2 " ") { print $3, "uses", $1, "of", below[$1] }' "$dir/defined" "$dir/used")"
for room in $rooms; do
    has "the graph has every room but the first" "base $(printf '%s\n' "$uses" | awk '{ print $2 }' | sort -u)" "$room"
done
# The files of a room must not call each other in a cycle. A file that is part of a cycle says so at
# its top, in a line " * Cycle: OTHER.c, ... WHY".
awk '
    FILENAME ~ /defined$/ { file[$1] = $3; room[$1] = $2; next }
    ($1 in file) && room[$1] == $2 && file[$1] != $3 { print $3, file[$1] }' "$dir/defined" "$dir/used" | sort -u |
    while read -r from to; do
        grep "^ \* Cycle: " "$source/core/$from" | grep -qwF "${to##*/}" || echo "$from $to"
    done >"$dir/calls"
is "files of a room call each other in one direction" "" "$(tsort "$dir/calls" 2>&1 >/dev/null)"
has "there are such calls" "$(cat "$dir/calls")" "host/detect.c host/evaluate.c"
compiles() { # ROOM HEADER CODE
    echo "#include \"$2\"" >"$dir/include.c"
    # shellcheck disable=SC2046 # flags
    run "${CC:-cc}" -std=c11 -D_GNU_SOURCE -fsyntax-only -I"$build/stage/program" -I"$build/stage/rooms/$1" \
        $(pkg-config --cflags jansson) "$dir/include.c"
    is "$1 includes $2" "$3" "$code"
}
compiles host host/registry.h 0
compiles host machine/elf_file.h 0
compiles host runtime/handle.h 1
compiles machine host/registry.h 1
compiles report runtime/report.h 0
compiles layers report/report.h 1
compiles runtime memtools/memory_read.h 1
printf '%s\n' "$uses" | grep '^use' | sort | uniq -c | awk '{ printf "  %-12s %-12s %d\n", $3, $4, $1 }'

finish
