#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Completion in bash and zsh: it offers the words that ds-accel --help lists, names of backends, and
# files for an argument that is a file.  test_completion.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
program=$build/bin/ds-accel
bash_file=$build/share/bash-completion/completions/ds-accel
zsh_folder=$build/share/zsh/site-functions
export HOME="$dir/home" PATH="$build/bin:$PATH"

# ---- expected candidates -------------------------------------------------------------------------

help=$("$program" --help)
commands=$(printf '%s\n' "$help" | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }
END { print "help" }')
has "the help lists commands" "$commands" "detect"
long=$(printf '%s\n' "$help" | sed -n 's/^  .*\(--[a-z-]*\) .*/\1/p; s/^.*\(--version\).*/\1/p' | sort -u)
short=$(printf '%s\n' "$help" | sed -n 's/^  \(-[a-z]\), --.*/\1/p')
has "the help lists options" "$long" "--json"
options="$long
$short"

# Names of backends come from the configuration and from the files in the plugin directories.
names() {
    {
        "$program" config show --json | "${PYTHON:-/usr/bin/python3}" -c '
import json, re, sys
for value in json.load(sys.stdin)["values"]:
    if value["key"] == "detection_order":
        print("\n".join(value["value"]))
    match = re.match(r"backends\.(?:\"(.*?)\"|([^.]*))(\.|$)", value["key"])
    if match:
        print(match[1] or match[2])'
        for folder in "$@" /usr/lib/ds-accel; do
            find -L "$folder" -maxdepth 1 -name 'ds_accel_*.so' 2>/dev/null |
                sed 's/.*ds_accel_//; s/\.so$//'
        done
    } | sort -u
}

mkdir -p "$HOME" "$dir/path" "$dir/vendor" "$dir/work/folder" "$dir/work/full.json"
touch "$dir/path/ds_accel_onpath.so" "$dir/vendor/ds_accel_vendor.so"
mkdir "$dir/bin"
printf '#!/bin/sh\n' >"$dir/bin/xyz-tool"
chmod 755 "$dir/bin/xyz-tool"
PATH="$dir/bin:$PATH"
touch "$dir/work/train.py" "$dir/work/ds_accel_x.so" "$dir/work/text.txt" "$dir/work/mine.json" "$dir/work/my own.json"
export DS_ACCEL_PLUGIN_PATH="$dir/path"
on_path=$(names "$dir/path")
with_vendor=$(names "$dir/path" "$dir/vendor")
has "the shipped backends have names" "$on_path" "xpu.external"
has "so have plugins on the path" "$on_path" "onpath"

# ---- command lines to complete -------------------------------------------------------------------

count=0
lines=$dir/lines
: >"$lines"

# offers LINE WORDS: expect these candidates at the end of LINE; WORDS has one candidate per line.
offers() {
    count=$((count + 1))
    printf '%s\n' "$1" >>"$lines"
    printf '%s\n' "$2" | sed '/^$/d' | sort -u >"$dir/wanted.$count"
}

offers "ds-accel " "$commands"
offers "ds-accel help " "$commands"
offers "ds-accel con" "config
conformance"
offers "ds-accel --" "$long"
offers "ds-accel -" "$options"
offers "ds-accel --plu" --plugin-dir
offers "ds-accel detect --" "$long"
offers "ds-accel config show --" "$long
--env"
offers "ds-accel bench --" "$long
--device
--force
--only
--output
--size
--time
--tune"
offers "ds-accel bench io " "folder
full.json"
offers "ds-accel bench --size 4K --o" "--only
--output"
offers "ds-accel bench --device 1 onp" onpath
offers "ds-accel bench --only s" stream
offers "ds-accel bench --only=f" fill
offers "ds-accel bench --time " ""
offers "ds-accel bench -o te" text.txt
offers "ds-accel detect --si" ""
offers "ds-accel --json --root / -q confi" config
offers "ds-accel -- confi" config
offers "ds-accel nosuch " "$options"

printf '%s\n' "$help" | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 }
on { print $1, $2 }' >"$dir/arguments"
while read -r command argument; do
    case $argument in
    PROGRAM) offers "ds-accel $command " "folder
full.json
train.py" ;;
    FILE.so) offers "ds-accel $command " "ds_accel_x.so
folder
full.json" ;;
    "show|replay") offers "ds-accel $command " "show
replay" ;;
    "list|show|"*)
        offers "ds-accel $command " "$(printf '%s\n' "$argument" | tr '|' '\n')"
        offers "ds-accel $command list --" "$long
--force
--jobs"
        ;;
    "[NAME|FILE.so]") offers "ds-accel $command " "$on_path
ds_accel_x.so
folder
full.json" ;;
    "[NAME|io") offers "ds-accel $command " "io
$on_path" ;;
    NAME | "[NAME]" | "[NAME...]") offers "ds-accel $command " "$on_path" ;;
    *"|"*)
        offers "ds-accel $command " "$(printf '%s\n' "$argument" | tr '|' '\n')"
        offers "ds-accel --json $command " "$(printf '%s\n' "$argument" | tr '|' '\n')"
        # Only options remain; --env belongs to config alone.
        offers "ds-accel $command ${argument%%|*} --" "$long$([ "$command" != config ] || echo '
--env')"
        offers "ds-accel $command ${argument%%|*} " "$options$([ "$command" != config ] || echo '
--env')"
        ;;
    *)
        case $command in
        report) offers "ds-accel $command " "$options
--no-redact
-o
--output
--record" ;;
        *) offers "ds-accel $command " "$options" ;;
        esac
        ;;
    esac
done <"$dir/arguments"
has "one command takes a file" "$(cat "$lines")" "ds-accel lint "

memory_options="-o
--output
--pickle
--pickle-segments
--svg
--try"
offers "ds-accel info --mem" --memory-map
offers "ds-accel info -" "$options
--memory-map"
offers "ds-accel info --memory-map=m" "mine.json
my own.json"
offers "ds-accel info --memory-map " "$on_path"
offers "ds-accel info --memory-map=mine.json xpu.e" xpu.external
offers "ds-accel memory show " "folder
full.json
mine.json
my own.json"
offers "ds-accel memory show -" "$options
$memory_options"
offers "ds-accel memory show mine.json " "$options
$memory_options"
offers "ds-accel memory replay te" text.txt
offers "ds-accel memory --try x=1 replay m" "mine.json
my own.json"
offers "ds-accel memory -o te" text.txt
offers "ds-accel memory --output=te" text.txt
offers "ds-accel memory --output x show m" "mine.json
my own.json"
offers "ds-accel explain xpu.e" xpu.external
offers "ds-accel topo mock xpu.e" xpu.external
offers "ds-accel topo --s" --svg
offers "ds-accel topo --pla" --plan
offers "ds-accel topo --plan m" "mine.json
my own.json"
offers "ds-accel report --re" --record
offers "ds-accel report --record m" "mine.json
my own.json"
offers "ds-accel --machine mi" mine.json
offers "ds-accel quarantine clear xpu.e" xpu.external
offers "ds-accel ops list xpu.e" xpu.external
offers "ds-accel ops show cpu_adam xpu.e" xpu.external
offers "ds-accel ops show cpu" ""
offers "ds-accel ops build cpu_adam xpu.e" xpu.external
offers "ds-accel ops build --f" --force
offers "ds-accel quarantine clear " "$on_path"
offers "ds-accel conformance mo" mock
offers "ds-accel conformance ds" ds_accel_x.so
offers "ds-accel conformance --" "$long
--device
--group
--list
--rule"
offers "ds-accel conformance --group str" "stream
structs"
offers "ds-accel conformance --rule DSA-P1" "$("$program" conformance --list | awk '{ print $1 }' |
    grep '^DSA-P1' | sort -u)"
offers "ds-accel conformance --device 1 mo" mock

# The options of run are those of core/launch/options.c: DeepSpeed's are written with "_", ours
# with "-". --autotuning is refused, and not offered.
run_options=$(awk '/^static const struct option \{/ { on = 1 } /^\};/ { on = 0 } /define THEIRS/ { ours = 1 }
on && /^    \{"/ { split($0, part, "\""); name = part[2]; if (ours) gsub("_", "-", name)
    if (name != "autotuning") print "--" name }
on && match($0, /\047[A-Za-z]\047/) { print "-" substr($0, RSTART + 1, 1) }' "$source/core/launch/options.c")
has "run has options" "$run_options" "--bind_cores_to_rank"
offers "ds-accel run --" "$(printf '%s\n' "$run_options" | grep '^--')"
offers "ds-accel run -" "$run_options"
offers "ds-accel -q run --num_gpus 2 --bind-" --bind-to
offers "ds-accel run --bind-to e" exclusive
offers "ds-accel run --bind-to=s" socket
offers "ds-accel run --launcher m" "mpich
mvapich"
offers "ds-accel run --log_level " "critical
debug
error
info
warning"
offers "ds-accel run --master_port a" auto
offers "ds-accel run -a onp" onpath
offers "ds-accel run --accelerator=onp" onpath
offers "ds-accel run --plugin-dir $dir/vendor -a vend" vendor
offers "ds-accel run --plugin-dir=$dir/vendor -a vend" vendor
offers "ds-accel run -H te" text.txt
offers "ds-accel run --hostfile=te" text.txt
offers "ds-accel run --machine m" "mine.json
my own.json"
offers "ds-accel run --enable_each_rank_log f" "folder
full.json"
offers "ds-accel run --num_gpus " ""
offers "ds-accel run --num_gpus 2 trai" train.py
offers "ds-accel run -q text" text.txt
offers "ds-accel run xyz" xyz-tool
offers "ds-accel run --module trai" ""
offers "ds-accel run -q --num_gpus=2 trai" train.py
offers "ds-accel run -- trai" train.py
offers "ds-accel run train.py --bind-t" ""
offers "ds-accel run --show-ranks train.py te" text.txt
offers "ds-accel explain cuda " "$options"
offers "ds-accel explain cuda x" ""
offers "ds-accel -- explain cuda -" ""
offers "ds-accel -a " "$on_path"
offers "ds-accel --accelerator onp" onpath
offers "ds-accel --accelerator=onp" onpath
offers "ds-accel --accelerator cuda det" detect
offers "ds-accel --plugin-dir $dir/vendor info " "$with_vendor"
offers "ds-accel --plugin-dir=$dir/vendor info vend" vendor
offers "ds-accel --config m" "mine.json
my own.json"
offers "ds-accel --config=m" "mine.json
my own.json"
offers "ds-accel --config te" text.txt
offers "ds-accel --config f" "folder
full.json"
offers "ds-accel --plugin-dir " "folder
full.json"
offers "ds-accel --root=f" "folder
full.json"
offers "ds-accel detect --root fo" folder
offers "ds-accel --root t" ""

# ---- run both shells -----------------------------------------------------------------------------

cd "$dir/work"

# verdict SHELL NUMBER LINE GIVEN: compare the candidates for one line with the expected ones.
verdict() {
    is "$1 at the end of \"$3\"" "$(cat "$dir/wanted.$2")" "$(printf '%s\n' "$4" | sed '/^$/d' | sort -u)"
}

number=0
while IFS= read -r line; do
    number=$((number + 1))
    run bash --norc "$here/complete.bash" "$bash_file" "$line"
    verdict bash $number "$line" "$out"
    is "bash says nothing at \"$line\"" "" "$err"
done <"$lines"
run bash --norc "$here/complete.bash" "$bash_file" "ds-accel --accelerator=onp" ""
is "bash with words that hold =" "--accelerator=onpath" "$out"
run bash --norc "$here/complete.bash" "$bash_file" "ds-accel --json" ""
is "bash has whole options too" "--json" "$out"
run env PATH=/usr/bin:/bin bash --norc "$here/complete.bash" "$bash_file" "/nonexistent/ds-accel info onp"
is "bash without a program still has the files" "0 onpath " "$code $out $err"
run bash --norc -c '. "$1"; . "$1"; complete -p ds-accel' - "$bash_file"
is "bash loads it, twice too" "0 " "$code $err"

if command -v zsh >/dev/null 2>&1; then
    run zsh -f -n "$zsh_folder/_ds-accel"
    is "zsh can read it" "0 " "$code $err"
    run timeout 120 zsh -f "$here/complete.zsh" "$zsh_folder" "$lines" "$dir/offered"
    is "zsh ends" "0" "$code"
    number=0
    while IFS= read -r line; do
        number=$((number + 1))
        verdict zsh $number "$line" \
            "$(sed -n "s/^$number \(.*\)/\1/p" "$dir/offered" | sed 's/=$//; s/\\//g')"
    done <"$lines"
else
    echo "test_completion: zsh is not installed: its completion is not tested"
fi

finish
