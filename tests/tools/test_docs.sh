#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# docs/plugin-abi.md agrees with the programs: its plugin compiles and works, its rules are the
# rules that lint checks and that the sources cite, its configuration is valid.  test_docs.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
abi=$source/docs/plugin-abi.md

# fence LANGUAGE NUMBER: print fenced block NUMBER of this language, counted from 1.
fence() {
    awk -v open="\`\`\`$1" -v wanted="$2" \
        '/^```/ { inside = $0 == open && ++count == wanted; next } inside' "$abi"
}

# lines NAME TEXT COUNT PATTERN: check that COUNT lines of TEXT match PATTERN.
lines() {
    count=$(printf '%s\n' "$2" | grep -c -- "$4") || true
    is "$1" "$3" "$count"
}

# ---- the plugin ----------------------------------------------------------------------------------

link="-shared -fPIC -fvisibility=hidden -Wl,-z,defs,-z,now,-z,nodelete"
has "the document's command has the flags used here" "$(fence sh 1)" "cc $link"

# compile COMPILER STANDARD LANGUAGE: compile the plugin of the document.
compile() {
    rm -f "$plugin"
    # shellcheck disable=SC2086 # a list of words
    run "$1" "-std=$2" -x "$3" -Wall -Wextra -pedantic -Werror $link "-I$build/include" -o "$plugin" \
        "$dir/example.c"
    is "$1 -std=$2" "0 " "$code $err"
    run "$program" lint "$plugin"
    is "lint of $1 -std=$2" "0" "$code"
}

fence c 1 >"$dir/example.c"
mkdir "$dir/plugins"
plugin=$dir/plugins/ds_accel_example.so
compilers="gcc:g++"
command -v clang >/dev/null 2>&1 && compilers="$compilers clang:clang++"
for pair in $compilers; do
    compile "${pair#*:}" c++11 c++
    for standard in c99 c11; do
        compile "${pair%:*}" $standard c
    done
done

run "$program" --plugin-dir "$dir/plugins" list
is "list" "0 available" "$code $(printf '%s\n' "$out" | awk '$1 == "example" { print $2 }')"
run env DS_ACCELERATOR=example "$program" --plugin-dir "$dir/plugins" detect
is "detect" "0 example " "$code $out $err"
run "$program" --plugin-dir "$dir/plugins" --json info example
has "info" "$code $out" '"available": true'

# ---- the rules -----------------------------------------------------------------------------------

# A rule is one list item, "- **DSA-P1** title."; the comparison ignores code marks.
rules=$(sed -n 's/^- \*\*\(DSA-[PH][0-9]*\)\*\* /\1 /p' "$abi" | tr -d '`')
is "no rule has two items" "" "$(printf '%s\n' "$rules" | awk '{ print $1 }' | sort | uniq -d)"
cited=$(cd "$source" && grep -rhoE 'DSA-[PH][0-9]+' core plugins tools plugin-api.h "$abi" | sort -u)
for rule in $cited; do
    lines "$rule is cited and is a rule" "$rules" 1 "^$rule "
done

run "$program" lint --json "$plugin"
checked=$(printf '%s\n' "$out" |
    sed -n 's/^ *"rule": "\(.*\)",$/\1/p; s/^ *"title": "\(.*\)",$/\1/p' | paste -d ' ' - -)
lines "lint checks twenty rules" "$checked" 20 '^DSA-P[0-9]* [^ ]'
printf '%s\n' "$checked" >"$dir/checked"
while read -r rule title; do
    is "title of $rule" "$rule $title." "$(printf '%s\n' "$rules" | grep "^$rule ")"
done <"$dir/checked"

# ---- docs/backends.md: the counts of conformance are those that the tests require -----------------

for name in cuda rocm xpu npu hpu mlu sdaa supa mps; do
    counts=$(sed -n "s/^| $name |.*| \([0-9]*\), 0, \([0-9]*\)[ ;].*/\1 passed, 0 failed, \2 skipped/p" \
        "$source/docs/backends.md")
    has "conformance of $name" "$(cat "$source/tests/sim/test_$name.sh")" "${counts:-a row}"
done

# ---- configuration that ships with a plugin ------------------------------------------------------

fence json 1 >"$dir/example.json"
fence json 2 >"$dir/example.ops.json"
for file in example.json example.ops.json; do
    has "$file is not empty" "$(cat "$dir/$file")" '"backends"'
    run "$program" --config "$dir/$file" config check
    is "config check of $file" "0 " "$code $err"
done

finish
