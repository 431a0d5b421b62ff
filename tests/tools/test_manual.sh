#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The manual pages agree with the programs. The code uses exactly the reasons of core/reasons.def,
# and the pages list them. ds-accel(1) has every command, option, variable and exit code,
# ds-accel-run(1) every option with its values, every variable of a rank and every schema,
# ds-accel.json(5) every key with its range and default, ds-accel-plugin(7) the interface for
# vendors.  test_manual.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
python=${PYTHON:-/usr/bin/python3}
manual=$build/share/man/man1/ds-accel.1
run_page=$build/share/man/man1/ds-accel-run.1
keys_page=$build/share/man/man5/ds-accel.json.5
plugin_page=$build/share/man/man7/ds-accel-plugin.7
reasons_page=$build/share/man/man7/ds-accel-reasons.7
tab=$(printf '\t')

# section NAME FILE: print one section of a page.
section() {
    awk -v name="$1" '/^\.Sh / { inside = $0 == ".Sh " name; next } inside' "$2"
}

# lines NAME TEXT COUNT PATTERN: check that COUNT lines of TEXT match PATTERN.
lines() {
    count=$(printf '%s\n' "$2" | grep -c -- "$4") || true
    is "$1" "$3" "$count"
}

# empty NAME TEXT: check that a list of problems, one per line, is empty.
empty() {
    is "$1" "" "$(printf '%s' "$2" | tr '\n' ' ')"
}

# without TEXT WORDS: print the lines of TEXT that are not in WORDS.
without() {
    printf '%s\n' "$2" | tr ' ' '\n' | sed '/^$/d' >"$dir/words"
    printf '%s\n' "$1" | sed '/^$/d' | grep -vxFf "$dir/words" || true
}

if command -v mandoc >/dev/null 2>&1; then
    for page in "$manual" "$run_page" "$keys_page" "$plugin_page" "$reasons_page"; do
        run mandoc -T lint -W warning "$page"
        # Ignore messages about the index of manual pages on this machine.
        is "mandoc -T lint $(basename "$page")" "0 " "$code $out"
    done
fi

# ---- the table of reasons ------------------------------------------------------------------------

cat >"$dir/table.c" <<'END'
#include <stdio.h>
#define GATE(name, what) printf("gate\t%s\t%s\n", name, what);
#define REASON(id, code, meaning, remedy) printf("reason\t%s\t%s\t%s\t%s\n", code, meaning, remedy, #id);
int main(void)
{
#include "reasons.def"
    return 0;
}
END
run "${CC:-gcc}" -o "$dir/table" -I "$source/core" "$dir/table.c"
is "reasons.def compiles" "0 " "$code $err"
table=$("$dir/table")
codes=$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" { print $2 }')
has "there are reasons" "$codes" "no_device"

empty "no code is there twice" "$(printf '%s\n' "$codes" | sort | uniq -d)"
empty "no two reasons have one meaning" \
    "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" { print $3 }' | sort | uniq -d)"
empty "no two reasons have one remedy" \
    "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" { print $4 }' | sort | uniq -d)"
empty "no reason lacks a meaning or a remedy" \
    "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" && ($3 == "" || $4 == "") { print $2 }')"
empty "no code is of other letters" "$(printf '%s\n' "$codes" | grep -vE '^[a-z][a-z0-9_]*$' || true)"
empty "no reason says that it is not known" "$(printf '%s\n' "$table" |
    awk -F '\t' '$2 == "unknown" || tolower($3 $4) ~ /unknown/ { print $2 }')"
empty "no remedy repeats its meaning" "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" && $3 == $4')"
empty "an id is its code in capitals" \
    "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" && toupper($2) != $5 { print $2, $5 }')"

# ---- reasons: used by the code -------------------------------------------------------------------

# In the library a reason is its id: an id that reasons.def lacks does not compile. The search
# leaves out NONE, the ids that the table itself adds, and findings of lint, which no code uses.
used=$(cd "$source" && for file in core/*/*.c core/*/*/*.c; do
    case $file in core/lint/lint.c | core/host/probe_lint.c) continue ;; esac; cat "$file"
done | grep -oE 'DS_ACCEL__REASON_[A-Z0-9_]+' | sed 's/^DS_ACCEL__REASON_//' | tr '[:upper:]' '[:lower:]' |
    grep -vx -e none -e count -e broken_rule -e '' | sort -u)
has "the code gives reasons" "$used" "elf_truncated"
empty "every reason that the code gives is in reasons.def" "$(without "$used" "$codes")"
empty "the code gives every reason of reasons.def" "$(without "$codes" "$used")"

# Gates are listed in the order in which a candidate passes them.
gates=$(printf '%s\n' "$table" | awk -F '\t' '$1 == "gate" && $2 != "" { print $2 }')
run "$program" explain --json cpu
is "the gates of the code are those of reasons.def" "$gates" \
    "$(printf '%s\n' "$out" | "$python" -c '
import json, sys
for gate in json.load(sys.stdin)["candidates"][0]["gates"]:
    print(gate["gate"])')"

# ---- reasons: listed in the pages ----------------------------------------------------------------

# Convert the page back to the table: both texts are equal except for dashes and sentence ends.
is "ds-accel-reasons(7) has every code, meaning and remedy" \
    "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "reason" { print $2 "\t" $3 "\t" $4 }')" \
    "$(section REASONS "$reasons_page" | sed 's/\\-/-/g; s/\\e/\\/g; s/^\\&//' | awk '
/^\.It Cm / { code = $3; getline; meaning = $0; getline
    if ($0 != ".Em Remedy :") print "no remedy: " code
    getline; sub(/\.$/, "", meaning); sub(/\.$/, ""); print code "\t" meaning "\t" $0 }')"
is "ds-accel-reasons(7) has every gate" "$(printf '%s\n' "$gates" | sed 's/^/The gate /'
echo "Outside the gates")" "$(section REASONS "$reasons_page" | sed -n 's/^\.Ss //p')"
states=$(sed -n 's/^#define DS_ACCEL_STATE_\([A-Z_]*\) .*/\1/p' "$source/core/ds_accel.h" |
    tr '[:upper:]' '[:lower:]' | sort)
is "ds-accel-reasons(7) has every state" "$states" \
    "$(section STATES "$reasons_page" | sed -n 's/^\.It Cm //p' | sort)"

# Reasons that a plugin may report: number, code, and the table of plugin-abi.md.
probe_codes=$(sed -n 's/^#define DS_ACCEL_REASON_\([A-Z_]*\) .*/\1/p' "$source/plugin-api.h" | grep -vx NONE)
is "plugin-abi.md has the reasons of plugin-api.h" \
    "$(printf '%s\n' "$probe_codes" | while read -r name; do
        printf '%s %s\n' "$name" "$name" | tr '[:upper:]' '[:lower:]'
    done | sort)" \
    "$(sed -n 's/^| .\([A-Z_][A-Z_]*\). | .\([a-z_][a-z_]*\). | [^ ].* |$/\1 \2/p' "$source/docs/plugin-abi.md" |
        tr '[:upper:]' '[:lower:]' | sort)"
empty "reasons.def has the reasons of plugin-api.h" \
    "$(without "$(printf '%s\n' "$probe_codes" | tr '[:upper:]' '[:lower:]')" "$codes")"
is "ds-accel-plugin(7) has the reasons of plugin-api.h" "$probe_codes" \
    "$(sed -n 's/^\.It Dv DS_ACCEL_REASON_//p' "$plugin_page")"
is "ds-accel-plugin(7) has the codes of conduct" \
    "$(printf '%s\n' "$table" | awk -F '\t' '$1 == "gate" { gate = $2; next } gate == "conduct" { print $2 }')" \
    "$(section CONDUCT "$plugin_page" | sed -n 's/^\.It Cm //p')"

# ---- ds-accel(1) ---------------------------------------------------------------------------------

run "$program" --help
help=$out
text=$(section COMMANDS "$manual")
commands=$(printf '%s\n' "$help" | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
has "the help lists commands" "$commands" "detect"
printf '%s\n' "$help" | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 }
on { print $1, $2 }' >"$dir/commands"
while read -r command argument; do
    case $argument in
    *FILE.so*) lines "$command is in the manual" "$text" 1 "^\\.It Cm $command\\b" ;;
    "[NAME|io")
        lines "$command NAME is in the manual" "$text" 1 "^\\.It Cm $command Op Ar NAME"
        lines "$command io is in the manual" "$text" 1 "^\\.It Cm $command io\\b"
        ;;
    *"|"*) # an item for each alternative word
        for word in $(printf '%s\n' "$argument" | tr '|' ' '); do
            lines "$command $word is in the manual" "$text" 1 "^\\.It Cm $command $word\\b"
        done
        ;;
    *) lines "$command is in the manual" "$text" 1 "^\\.It Cm $command\\b" ;;
    esac
done <"$dir/commands"

text=$(section OPTIONS "$manual")
options=$(printf '%s\n' "$help" | sed -n 's/^  *\(-[a-z], \)\{0,1\}--\([a-z-]*\).*/-\2/p
s/^  -\([a-z]\), --.*/\1/p'; printf '%s\n' "$help" | sed -n 's/^  -\([a-z]\), --.*/\1/p')
has "the help lists options" "$options" "-json"
for option in $options; do
    lines "option $option is in the manual" "$text" 1 "^\\.It.* Fl $option\\( \\|\$\\)"
done

text=$(section ENVIRONMENT "$manual")
run "$program" config show --env --json
variables=$(printf '%s\n' "$out" | sed -n 's/^ *"name": "\(.*\)",$/\1/p')
has "config show --env lists variables" "$variables" "DS_ACCELERATOR"
for variable in $variables; do
    lines "variable $variable is in the manual" "$text" 1 "^\\.It Ev $variable\$"
done

text=$(section "EXIT STATUS" "$manual")
exit_codes=$(sed -n 's/^ *EXIT_[A-Z_]* = \([0-9]*\),*$/\1/p' "$source/tools/tool.h" | sort)
is "the exit codes documented are those of tool.h" "$exit_codes" \
    "$(printf '%s\n' "$text" | sed -n 's/^\.It \([0-9]*\)$/\1/p' | sort)"

# ---- ds-accel-run(1) -----------------------------------------------------------------------------

# options.c has DeepSpeed's options, then ours, which the page and the help write with hyphens.
text=$(section OPTIONS "$run_page")
options=$(awk '/^static const struct option \{/ { on = 1 } /^\};/ { on = 0 } /define THEIRS/ { ours = 1 }
on && /^    \{"/ { split($0, part, "\""); name = part[2]; if (ours) gsub("_", "-", name); print name }' \
    "$source/core/launch/options.c")
has "run has options" "$options" "bind_cores_to_rank"
for option in $options; do
    lines "option --$option is in ds-accel-run(1)" "$text" 1 "^\\.It.* Fl -$option\\( \\|\$\\)"
done
is "ds-accel-run(1) has no other option" "$(printf '%s\n' "$options" | sort)" \
    "$(printf '%s\n' "$text" | grep '^\.It' | grep -oE 'Fl -[a-z][a-z_-]+' | sed 's/^Fl -//' | sort)"
letters=$(awk '/^static const struct option \{/ { on = 1 } /^\};/ { on = 0 }
on && match($0, /\047[A-Za-z]\047/) { print substr($0, RSTART + 1, 1) }' "$source/core/launch/options.c")
for letter in $letters; do
    lines "option -$letter is in ds-accel-run(1)" "$text" 1 "^\\.It Fl $letter , Fl -"
done
run "$program" run --help
for option in $(printf '%s\n' "$out" | grep -oE -e '--[a-z][a-z_-]+' | sed 's/^--//' | sort -u); do
    case $option in local_rank) continue ;; esac # the program's
    has "run --help has options of options.c: $option" " $(printf '%s' "$options" | tr '\n' ' ') " " $option "
done
for value in node socket l3 core exclusive none; do
    run "$program" -a cpu run --dry-run --json --bind-to $value /bin/true
    is "run --bind-to $value" 0 "$code"
    has "ds-accel-run(1) has the value $value of --bind-to" \
        "$(printf '%s\n' "$text" | grep '^\.It Fl -bind-to ')" " $value"
done
for value in debug info warning error critical; do
    run "$program" -a cpu run --dry-run --json --log_level $value /bin/true
    is "run --log_level $value" 0 "$code"
    has "ds-accel-run(1) has the value $value of --log_level" \
        "$(printf '%s\n' "$text" | grep '^\.It Fl -log_level ')" " $value"
done

run "$program" -a cpu run --dry-run --json --num_gpus 1 --bind_cores_to_rank /bin/true
text=$(section ENVIRONMENT "$run_page" | grep '^\.It Ev')
for variable in DS_ACCEL_RESERVED_CPUS $(printf '%s\n' "$out" | "$python" -c '
import json, sys
print(*json.load(sys.stdin)["ranks"][0]["env"])'); do
    has "variable $variable is in ds-accel-run(1)" "$text " " $variable"
done
for file in "$source"/conf/schema/run*.json; do
    [ -e "$file" ] || continue
    has "$(basename "$file") is in ds-accel-run(1)" "$(section FILES "$run_page")" "schema/$(basename "$file")"
done
has "the command line's default hostfile" "$(section FILES "$run_page")" \
    "$(sed -n 's/^#define DEFAULT_HOSTFILE "\(.*\)"/\1/p' "$source/core/launch/launch.c")"

# Each example that plans on any machine is accepted.
mkdir "$dir/run"
touch "$dir/run/train.py"
section EXAMPLES "$run_page" | sed -n 's/^\.Dl \$ ds-accel run //p; s/^\$ ds-accel run //p' |
    grep -v -e '--machine' -e '--include' -e '>plan' -e '--bind_cores' >"$dir/examples"
count=0
while IFS= read -r line; do
    count=$((count + 1))
    run sh -c "cd $dir/run && exec $program -a cpu run --dry-run --json $line"
    is "example: ds-accel run $line: $err" 0 "$code"
done <"$dir/examples"
is "there are examples of run" 1 "$((count >= 6))"

# ---- ds-accel.json(5) ----------------------------------------------------------------------------

# List "subsection: key" for every key of the schema, with what its description must contain:
# limits, values, and the shipped default.
cat >"$dir/keys.py" <<'END'
import json, sys

schema = json.load(open(sys.argv[1]))
shipped = json.load(open(sys.argv[2]))
places = {
    "": "The file",
    "/properties/probe": "The object probe",
    "/properties/trust": "The object trust",
    "/properties/validate": "The object validate",
    "/properties/trace": "The object trace",
    "/properties/allocator": "The object allocator",
    "/$defs/backend": "The objects in backends",
    "/$defs/env_rule": "The objects in env",
    "/$defs/op_builder": "The objects in op_builders",
    "/$defs/kernel": "The objects in kernels",
    "/$defs/requires": "The object requires",
}

def plain(value):
    return isinstance(value, (str, int)) and not isinstance(value, bool)

def walk(node, pointer):
    if not isinstance(node, dict):
        return
    if isinstance(node.get("properties"), dict) and "/if" not in pointer:
        title = places.get(pointer, "no subsection for " + pointer)
        defaults = shipped.get(pointer.rsplit("/", 1)[-1], {}) if pointer else shipped
        for key, rule in node["properties"].items():
            words = [rule[limit] for limit in ("minimum", "maximum") if limit in rule]
            words += [value for value in rule.get("enum", []) if value is not None]
            if title.startswith("The object ") and plain(defaults.get(key)):
                words.append("default " + str(defaults[key]))
            print(title, key, *words, sep="\t")
    for key, child in node.items():
        walk(child, pointer + "/" + key)

walk(schema, "")
END
"$python" "$dir/keys.py" "$source/conf/schema/config.json" "$source/conf/ds-accel.json" >"$dir/keys"
section KEYS "$keys_page" | awk '/^\.Ss / { title = substr($0, 5) } /^\.It Cm / { print title "\t" $3 }' |
    sort >"$dir/documented"
has "the schema has keys" "$(cat "$dir/keys")" "The file${tab}detection_order"
is "ds-accel.json(5) has every key of the schema, and no other" "$(cut -f 1,2 "$dir/keys" | sort)" \
    "$(cat "$dir/documented")"
is "the schema has every key of config_rules.c" \
    "$(grep -o '\.key = "[a-z0-9_]*"' "$source/core/config/config_rules.c" | cut -d '"' -f 2 | sort -u)" \
    "$(cut -f 2 "$dir/keys" | sort -u)"

while IFS="$tab" read -r title key words; do
    [ -n "$words" ] || continue
    text=$(section KEYS "$keys_page" | awk -v title=".Ss $title" -v key="$key" '/^\.Ss / { inside = $0 == title }
/^\.It Cm / { item = $3 == key; started = item } /^\.(El|Ss)/ { item = 0 } inside && item')
    printf '%s\n' "$words" | tr '\t' '\n' >"$dir/needed"
    while read -r word; do
        has "ds-accel.json(5) says of $key" "$text" "$word"
    done <"$dir/needed"
done <"$dir/keys"

# The examples of this page and of ds-accel-plugin(7) are valid configuration.
examples=0
for page in "$keys_page" "$plugin_page"; do
    for number in 1 2 3; do
        awk -v wanted=$number '/^\.Ed/ { inside = 0 } inside
/^\.Bd / { getline; inside = $0 == "{" && ++count == wanted; if (inside) print }' "$page" >"$dir/example.json"
        [ -s "$dir/example.json" ] || continue
        examples=$((examples + 1))
        run "$program" --config "$dir/example.json" config check
        is "example $number of $(basename "$page")" "0 " "$code $err"
    done
done
is "there are examples" 4 "$examples"
printf '{\n  "deny": [],\n  "accelerater": "cuda"\n}\n' >"$dir/bad.json"
run "$program" --config "$dir/bad.json" config check
is "the mistake that the page shows" \
    "$(sed -n 's,^/etc/ds-accel/ds-accel.json:,,p' "$keys_page")" "${out##*bad.json:}"

finish
