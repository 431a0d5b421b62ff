#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The documents say what the programs do: the plugin of docs/plugin-abi.md compiles and works, its rules
# are those that lint checks and the sources cite, its configuration is valid; docs/ds-accel.1 has every
# command, option, key, variable, reason and exit code.  test_docs.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
abi=$source/docs/plugin-abi.md
manual=$source/docs/ds-accel.1

# fence LANGUAGE NUMBER: the text of a fenced block, counted from 1.
fence() {
    awk -v open="\`\`\`$1" -v wanted="$2" \
        '/^```/ { inside = $0 == open && ++count == wanted; next } inside' "$abi"
}

# section NAME: one section of the manual.
section() {
    awk -v name="$1" '/^\.Sh / { inside = $0 == ".Sh " name; next } inside' "$manual"
}

# lines NAME TEXT COUNT PATTERN: so many lines of a text match.
lines() {
    count=$(printf '%s\n' "$2" | grep -c -- "$4") || true
    is "$1" "$3" "$count"
}

# ---- the plugin ---------------------------------------------------------------------------------

link="-shared -fPIC -fvisibility=hidden -Wl,-z,defs,-z,now,-z,nodelete"
has "the document's command has the flags used here" "$(fence sh 1)" "cc $link"

# compile COMPILER STANDARD LANGUAGE
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

# ---- the rules ----------------------------------------------------------------------------------

# A rule is one item, "- **DSA-P1** title."; marks of code are left out of what is compared.
rules=$(sed -n 's/^- \*\*\(DSA-[PH][0-9]*\)\*\* /\1 /p' "$abi" | tr -d '`')
is "no rule has two items" "" "$(printf '%s\n' "$rules" | awk '{ print $1 }' | sort | uniq -d)"
cited=$(cd "$source" && grep -rhoE 'DSA-[PH][0-9]+' core plugins tools plugin-api.h "$abi" | sort -u)
for rule in $cited; do
    lines "$rule is cited and is a rule" "$rules" 1 "^$rule "
done

run "$program" lint --json "$plugin"
checked=$(printf '%s\n' "$out" |
    sed -n 's/^ *"rule": "\(.*\)",$/\1/p; s/^ *"title": "\(.*\)",$/\1/p' | paste -d ' ' - -)
lines "lint checks thirteen rules" "$checked" 13 '^DSA-P[0-9]* [^ ]'
printf '%s\n' "$checked" >"$dir/checked"
while read -r rule title; do
    is "title of $rule" "$rule $title." "$(printf '%s\n' "$rules" | grep "^$rule ")"
done <"$dir/checked"

# ---- configuration that ships with a plugin -----------------------------------------------------

fence json 1 >"$dir/example.json"
fence json 2 >"$dir/example.ops.json"
for file in example.json example.ops.json; do
    has "$file is not empty" "$(cat "$dir/$file")" '"backends"'
    run "$program" --config "$dir/$file" config check
    is "config check of $file" "0 " "$code $err"
done

# ---- the manual ---------------------------------------------------------------------------------

if command -v mandoc >/dev/null 2>&1; then
    # Its index of the other pages is the machine's affair.
    run mandoc -T lint -W warning "$manual"
    is "mandoc -T lint" "0 " "$code $out"
fi

run "$program" --help
help=$out
text=$(section COMMANDS)
commands=$(printf '%s\n' "$help" | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
has "the help lists commands" "$commands" "detect"
for command in $commands; do
    if printf '%s\n' "$text" | grep -q "^\.It Cm $command\b"; then
        pass
    else
        fail "command $command is not in the manual"
    fi
done

text=$(section OPTIONS)
options=$(printf '%s\n' "$help" | sed -n 's/^  *\(-[a-z], \)\{0,1\}--\([a-z-]*\).*/-\2/p
s/^  -\([a-z]\), --.*/\1/p'; printf '%s\n' "$help" | sed -n 's/^  -\([a-z]\), --.*/\1/p')
has "the help lists options" "$options" "-json"
for option in $options; do
    lines "option $option is in the manual" "$text" 1 "^\\.It.* Fl $option\\( \\|\$\\)"
done

text=$(section ENVIRONMENT)
run "$program" config show --env --json
variables=$(printf '%s\n' "$out" | sed -n 's/^ *"name": "\(.*\)",$/\1/p')
has "config show --env lists variables" "$variables" "DS_ACCELERATOR"
for variable in $variables; do
    lines "variable $variable is in the manual" "$text" 1 "^\\.It Ev $variable\$"
done

text=$(section CONFIGURATION)
keys=$(grep -o '\.key = "[a-z0-9_]*"' "$source/core/config_rules.c" | cut -d '"' -f 2 | sort -u)
has "there are keys" "$keys" "detection_order"
for key in $keys; do
    if printf '%s\n' "$text" | grep -q "^\\..*\\b$key\\b"; then
        pass
    else
        fail "key $key is not in the manual"
    fi
done

text=$(section "EXIT STATUS")
codes=$(sed -n 's/^ *EXIT_[A-Z_]* = \([0-9]*\),*$/\1/p' "$source/tools/tool.h" | sort)
is "the exit codes documented are those of tool.h" "$codes" \
    "$(printf '%s\n' "$text" | sed -n 's/^\.It \([0-9]*\)$/\1/p' | sort)"

# "code: meaning" of each, from the table in the sources and from the manual.
reasons=$(tr '\n' ' ' <"$source/core/reason.c" | grep -oE '\{"[a-z_]+", *"[^"]*"' |
    sed 's/{"\([a-z_]*\)", *"\(.*\)"/\1: \2/' | sort)
lines "there are reasons" "$reasons" 1 "^no_device: "
is "no reason has two meanings" "" "$(printf '%s\n' "$reasons" | cut -d : -f 1 | uniq -d)"
is "the reasons documented are those of reason.c" "$reasons" \
    "$(section REASONS | awk '/^\.It Cm / { code = $3; getline; print code ": " $0 }' | sort)"

finish
