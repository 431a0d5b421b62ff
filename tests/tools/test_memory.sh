#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The command memory: snapshots as table, JSON, SVG and pickle, read back by Python, an XML parser
# and the viewer of torch; errors and their positions.  test_memory.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
python=${PYTHON:-/usr/bin/python3}
snapshots=$source/tests/fixtures/memory

validate() {
    "$python" "$source/tests/tools/validate.py" "$@"
}

# ---- every format of every snapshot --------------------------------------------------------------

"$python" "$snapshots/make.py" "$dir"
for file in "$snapshots"/*.json; do
    is "$(basename "$file") is what make.py writes" "" "$(cmp "$file" "$dir/$(basename "$file")" 2>&1 || true)"
done
"$python" "$snapshots/make.py" "$dir" large
# Include a snapshot of the allocator of a running program, in every format that the library writes.
mkdir "$dir/live"
run "$python" "$source/tests/tools/snapshot.py" "$build/lib/libds_accel.so" "$dir/live"
is "a program writes its snapshot" "0 " "$code $err"
cp "$dir/live/live.json" "$dir/live.json"
names=
for file in "$dir"/*.json; do
    name=$(basename "$file" .json)
    names="$names $name"
    run "$program" memory show "$file" --json --output "$dir/$name.out.json"
    is "$name: JSON into a file" "0  " "$code $out $err"
    if [ "$name" != large ]; then # validation by jsonschema would take half a minute
        run validate "$source/conf/schema/memory-snapshot.json" <"$dir/$name.out.json"
        is "$name: is of its schema" "0 " "$code $err"
    fi
    run "$program" memory show --json "$dir/$name.out.json"
    is "$name: read again is the same" "$(cksum <"$dir/$name.out.json")" "$(printf '%s\n' "$out" | cksum)"
    "$program" memory show --svg "$file" >"$dir/$name.svg"
    "$program" memory show --pickle "$file" -o "$dir/$name.pickle"
    "$program" memory show "$file" --pickle-segments >"$dir/$name.segments.pickle"
done
has "large is among them" "$names" " large"
has "the program's is among them" "$names" " live"
# A snapshot adds itself to the history as an event, so only the other parts are equal in all
# formats.
is "live: the segments alone" "$(cksum <"$dir/live.segments.pickle")" "$(cksum <"$dir/live/live.segments")"
run "$program" memory show "$dir/live.json"
is "live: the table" "0 $(printf '%s\n' "$out" | sed 3d)" "$code $(sed 3d "$dir/live/live.text")"
run "$python" -c 'import json, pickle, sys
print(pickle.load(open(sys.argv[1], "rb"))["segments"] == json.load(open(sys.argv[2]))["segments"])' \
    "$dir/live/live.pickle" "$dir/live.json"
is "live: the pickle that the library writes" "0 True" "$code $out"
has "live: the picture that it writes" "$(cat "$dir/live/live.svg")" "</svg>"
run "$program" memory replay "$dir/live.json"
is "live: its trace is replayed" "0 " "$code $err"
# shellcheck disable=SC2086 # a list of words
run "$python" "$source/tests/tools/memory.py" "$dir" $names
printf '%s\n' "$out" | sed '/^PASSED/d'
is "memory.py ends" "0 " "$code $err"
failed=$((failed + $(printf '%s\n' "$out" | grep -c '^FAILED') )) || true
count=$(printf '%s\n' "$out" | sed -n 's/^PASSED //p')
passed=$((passed + ${count:-0}))
[ "${count:-0}" -gt 0 ] || fail "memory.py checks something"

# ---- the text table ------------------------------------------------------------------------------

run "$program" memory show "$snapshots/small.json"
cat >"$dir/table" <<'END'
3 segments, 7 blocks: 42 MiB reserved, 32.5 MiB allocated (32.5 MiB requested), 256 KiB pending, 9.2 MiB free
largest free block 8 MiB, fragmentation 14 %
0 recorded events

device  address                  size  allocated largest free  blocks  stream  type   # allocated  + in part  ~ pending  . free
     0  0x7f0000000000          2 MiB  512.5 KiB      1.2 MiB       4       0  small  ########~~~~+...................
     0  0x7f0010000000         20 MiB     12 MiB        8 MiB       2      94  large  ###################+............
     1  0x7f0020000000         20 MiB     20 MiB          0 B       1       0  large  ################################
END
is "table" "0 $(cat "$dir/table")" "$code $out"
run "$program" memory show "$dir/large.json"
has "a long table ends" "$out" "and 1000 more segments"
run "$program" memory show "$snapshots/empty.json"
has "an empty snapshot" "$out" "0 segments, 0 blocks: 0 B reserved"

# ---- the current devices -------------------------------------------------------------------------

run "$program" info mock --memory-map --json
is "info --memory-map --json" "0 " "$code $err"
printf '%s\n' "$out" >"$dir/devices"
run validate "$source/conf/schema/memory-map.json" name available "devices/#" <"$dir/devices"
has "is of its schema" "$code $err $(printf '%s' "$out" | tr '\n' ' ')" "0  mock true "
run validate - "devices/0/total_memory_bytes" <"$dir/devices"
mock_total=$out
run "$program" info mock --memory-map
printf '%s\n' "$out" >"$dir/devices.svg"
run "$python" - "$dir/devices" "$dir/devices.svg" <<'END'
import json, sys, xml.etree.ElementTree
tree = json.load(open(sys.argv[1], encoding="utf-8"))
root = xml.etree.ElementTree.parse(sys.argv[2]).getroot()
svg = "{http://www.w3.org/2000/svg}"
bars = root.findall(svg + "g")
assert len(bars) == len(tree["devices"]) > 0
for bar, device in zip(bars, tree["devices"]):
    scale = device["total_memory_bytes"] / 960
    parts = {r.get("class"): float(r.get("width")) * scale for r in bar.findall(svg + "rect")}
    whole = parts.pop("o")
    assert abs(whole - sum(parts.values())) < scale / 100, parts
    assert abs(parts.get("f", 0) - device["available_memory_bytes"]) < scale / 100, parts
    assert f"device {device['index']}" in bar.find(svg + "text").text
END
is "the picture has these figures" "0 " "$code $err"
[ "$mock_total" -gt 0 ] || fail "the mock has memory"
run "$program" -a mock info --memory-map --json
is "the chosen one" "$(cat "$dir/devices")" "$out"
run "$program" info hpu --memory-map --json
printf '%s\n' "$out" >"$dir/devices"
run validate "$source/conf/schema/memory-map.json" available reason "devices/#" <"$dir/devices"
is "one that is not here" "0 false no_plugin 0 " "$code $(printf '%s\n' "$out" | tr '\n' ' ')"
run "$program" info hpu --memory-map
has "and its picture" "$code $out" "no device is available: no_plugin</text>"
run "$program" info --memory-map="$snapshots/small.json"
is "a snapshot's map" "0 $(cat "$dir/small.svg")" "$code $out"
run "$program" info --memory-map="$snapshots/small.json" --json
is "and the snapshot" "0 $(cat "$dir/small.out.json")" "$code $out"
run "$program" info --memory-map="$dir/nosuch.json"
is "a snapshot that is not there" "1  ds-accel: $dir/nosuch.json: No such file or directory" "$code $out $err"

event='{"action": "alloc", "addr": 4096, "size": 4000000000000000000}'
printf '{"segments": [], "device_traces": [[%s, %s, %s]]}' "$event" "$event" "$event" >"$dir/huge.json"
run "$program" memory show --svg "$dir/huge.json"
has "a history whose sizes add up to more than a number" "$code $out" ">device 0 over 3 events: at most 8 EiB allocated"

# ---- replay --------------------------------------------------------------------------------------

# replay NAME ARGUMENTS...: run memory replay, check the JSON, and store it in $dir/replay.
replay() {
    name=$1
    shift
    run "$program" memory replay --json "$@"
    is "$name: replay" "0 " "$code $err"
    printf '%s\n' "$out" >"$dir/replay"
    run validate "$source/conf/schema/memory-replay.json" events "results/#" <"$dir/replay"
    has "$name: is of its schema" "$code" 0
}
# result POSITION KEY: print a value of one result of the last replay.
result() {
    validate - "results/$1/$2" <"$dir/replay"
}

replay "traces" "$snapshots/traces.json"
# At the recorded failure, 40 MiB are reserved and 24 MiB are free.
is "the device's memory" "67108864 45 0" "$(validate - capacity_bytes events blocks_before <"$dir/replay" | xargs)"
is "the first is the recorded one" "as recorded" "$(result 0 settings)"
is "20 layers of 1 MiB at most" 20971520 "$(result 0 peak_allocated_bytes)"
is "the failure is seen again" "1 67108864" "$(result 0 failures) $(result 0 failed_bytes)"
is "one is the best" 1 "$(validate - 'results/*/best' <"$dir/replay" | grep -c true)"
replay "tries" "$snapshots/traces.json" --try capacity_bytes=1G --try growable_segments=true,capacity_bytes=512M
is "as many as asked for, and the recorded" 3 "$(validate - "results/#" <"$dir/replay")"
is "with more memory nothing fails" "0 0" "$(result 1 failures) $(result 2 failures)"
is "the recorded one is not the best" false "$(result 0 best)"
replay "torch's own" "$snapshots/torch_2.json"
is "the same figures" "20971520 1" "$(result 0 peak_allocated_bytes) $(result 0 failures)"
replay "large" "$dir/large.json" --try capacity_bytes=64M
is "no recorded failure: memory without end" null "$(validate - capacity_bytes <"$dir/replay")"
is "no failure either" 0 "$(result 0 failures)"
[ "$(result 1 failures)" -gt 0 ] || fail "a small device runs out"
sed 's/"max_split_bytes": 0/"max_split_bytes": 1e300, "large_step_bytes": 0, "limit_bytes": -1/' \
    "$snapshots/traces.json" >"$dir/impossible.json"
replay "settings that cannot be" "$dir/impossible.json" --try capacity_bytes=1G
is "are as by default" "20971520 1" "$(result 0 peak_allocated_bytes) $(result 0 failures)"
run "$program" memory replay "$snapshots/traces.json"
has "the table marks one" "$out" "
* "
has "the table has the failure" "$out" "1 times, first 64 MiB"
run "$program" memory replay "$snapshots/small.json"
is "nothing recorded" "1  ds-accel: the snapshot has no recorded events" "$code $out $err"
for try in "max_split_bites=3,is \"max_split_bytes\" meant?" "gc_threshold=2,cannot be" "frob,is not key=value" \
    "large_step_bytes=0,cannot be" "roundup_power2_divisions=65,cannot be" "limit_bytes=-1,cannot be" "growable_segments=perhaps,cannot be" "limit_bytes=4X,cannot be"; do
    run "$program" memory replay "$snapshots/traces.json" --try "${try%%,*}"
    is "--try ${try%%,*}" "1 " "$code $out"
    has "--try ${try%%,*}: what" "$err" "${try#*,}"
done

# ---- invalid files -------------------------------------------------------------------------------

# refuses NAME POSITION TEXT JSON: check that JSON is rejected with a message that contains
# "line:column" and TEXT.
refuses() {
    printf '%s' "$4" >"$dir/bad.snapshot"
    run "$program" memory show "$dir/bad.snapshot"
    is "$1: refused" "1 " "$code $out"
    has "$1: where" "$err" "bad.snapshot:$2: "
    has "$1: what" "$err" "$3"
}

refuses "no JSON" 1:1 "expected" 'x'
refuses "cut" 1:12 "near end of file" '{"segments":'
refuses "a key twice" 1:27 "duplicate" '{"segments": [], "segments": []}'
refuses "a text" 1:10 "'[' or '{' expected" '"segments"'
refuses "no segments" 1:1 '"segments" is missing; expected a list' '{}'
refuses "segments that are none" 2:14 '"segments" is not a list' '{
 "segments": 3}'
refuses "a newer one" 1:20 '"schema_version" is not 1' '{"schema_version": 2, "segments": []}'
refuses "a segment that is none" 1:15 "expected an object, a segment" '{"segments": [3]}'
refuses "a segment without address" 1:2 '"address" is missing; expected a whole number' '[{"total_size": 4, "blocks": []}]'
refuses "an address below 0" 1:14 '"address" is -1; expected at least 0' '[{"address": -1, "total_size": 4, "blocks": []}]'
refuses "a size that is a text" 1:31 '"total_size" is not a whole number' '[{"address": 1, "total_size": "4", "blocks": []}]'
refuses "a size past all memory" 1:31 "larger than any device" '[{"address": 1, "total_size": 9000000000000000000, "blocks": []}]'
refuses "segments past all memory" 2:31 "add up to more than any machine's memory" \
    '[{"address": 0, "total_size": 4000000000000000000, "blocks": [{"size": 4000000000000000000, "state": "inactive"}]},
 {"address": 0, "total_size": 4000000000000000000, "device": 1, "blocks": [{"size": 4000000000000000000, "state": "inactive"}]}]'
refuses "a number past all numbers" 1:50 "too big integer" '[{"address": 1, "total_size": 90000000000000000000, "blocks": []}]'
refuses "a gap" 1:44 "the blocks add up to 3 bytes, and the segment has 4" \
    '[{"address": 1, "total_size": 4, "blocks": [{"size": 3, "state": "inactive"}]}]'
refuses "a block past the end" 1:54 "the block ends past the end of its segment" \
    '[{"address": 1, "total_size": 4, "blocks": [{"size": 5, "state": "inactive"}]}]'
refuses "a block elsewhere" 1:68 "does not begin where the one before it ends" \
    '[{"address": 1, "total_size": 4, "blocks": [{"size": 4, "address": 2, "state": "inactive"}]}]'
refuses "a state nobody knows" 1:66 'is "active_allocated" meant?' \
    '[{"address": 1, "total_size": 4, "blocks": [{"size": 4, "state": "active_alocated"}]}]'
refuses "more requested than there is" 1:104 "is more than the block's size" \
    '[{"address": 1, "total_size": 4, "blocks": [{"size": 4, "state": "active_allocated", "requested_size": 5}]}]'
refuses "a sum that is not" 1:52 '"allocated_size" is 3, and the blocks add up to 0' \
    '[{"address": 1, "total_size": 4, "allocated_size": 3, "blocks": [{"size": 4, "state": "inactive"}]}]'
refuses "two in one place" 2:14 "the segment overlaps the one at position 0" \
    '[{"address": 1, "total_size": 4, "blocks": [{"size": 4, "state": "inactive"}]},
 {"address": 4, "total_size": 4, "blocks": [{"size": 4, "state": "inactive"}]}]'
refuses "a trace that is none" 1:36 "the events of one device" '{"segments": [], "device_traces": [3]}'
refuses "an event nobody knows" 1:48 '"action" is unknown' \
    '{"segments": [], "device_traces": [[{"action": "frobnicate"}]]}'
refuses "an event without size" 1:37 '"size" is missing' \
    '{"segments": [], "device_traces": [[{"action": "alloc", "addr": 1}]]}'
refuses "statistics that are texts" 1:34 "expected a number" '{"segments": [], "stats": [{"a": "b"}]}'
refuses "settings that are none" 1:40 '"allocator_settings" is not an object' \
    '{"segments": [], "allocator_settings": 1}'

printf '{"segments":\n [\000]}' >"$dir/nul"
run "$program" memory show "$dir/nul"
is "a NUL byte" "1 ds-accel: $dir/nul:2:3: a NUL byte; expected JSON" "$code $err"
run "$program" memory show "$dir/nosuch.json"
is "a file that is not there" "1  ds-accel: $dir/nosuch.json: No such file or directory" "$code $out $err"
run "$program" memory show "$dir"
has "a directory" "$code $err" "it is a directory"
run "$program" memory show "$snapshots/small.json" -o "$dir/nosuch/file"
is "a file that cannot be written" "1 ds-accel: $dir/nosuch/file: No such file or directory" "$code $err"
if [ -c /dev/full ]; then
    run "$program" memory show "$snapshots/small.json" -o /dev/full
    is "a full disk" "1 ds-accel: /dev/full: No space left on device" "$code $err"
fi

# usage NAME TEXT ARGUMENTS...: check for exit code 2 and TEXT.
usage() {
    name=$1
    part=$2
    shift 2
    run "$program" "$@"
    is "$name: usage" "2 " "$code $out"
    has "$name: says so" "$err" "$part"
}
usage "no file" "memory takes show|replay FILE, and 1 argument was given" memory show
usage "an unknown word" "not \"frob\"" memory frob file
usage "two formats" "exclude each other" memory show file --json --svg
usage "another command's option" "--svg is an option of topo and memory" list --svg
usage "another command's option, before it" "--pickle is an option of memory" --pickle list
usage "a picture of a replay" "writes a table, or JSON" memory replay --svg file
usage "a try to show" "--try is an option of memory replay" memory show --try x=1 file
usage "another command's try" "--try is an option of memory" list --try x=1
usage "a name and a snapshot" "leave out \"mock\"" info mock --memory-map=file
usage "another command's map" "--memory-map is an option of info" detect --memory-map
usage "another command's output" "--output is an option of report, bench, memory and note" -o file list

finish
