#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# ds-accel as its users run it: the answers, the exit codes, which of the two outputs, the shapes of the
# JSON, the order of precedence.  test_cli.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
unset NO_COLOR TERM
program=$build/bin/ds-accel
schemas=$source/conf/schema
mocks=$build/tests/fixtures/mocks
broken=$build/tests/fixtures
here=$(cd "$dir" && pwd -P)

validate() {
    "${PYTHON:-/usr/bin/python3}" "$source/tests/tools/validate.py" "$@"
}

# lacks NAME TEXT PART: a text does not hold a part.
lacks() {
    case $2 in
    *"$3"*) fail "$1" "wanted a text without: $3
given: $2" ;;
    *) pass ;;
    esac
}

# answers OUT COMMAND...: exit code 0, that on stdout, nothing on stderr.
answers() {
    wanted=$1
    shift
    run "$@"
    is "$*" "0 $wanted " "$code $out $err"
}

# refuses CODE PART COMMAND...: that exit code, nothing on stdout, a message with PART on stderr.
refuses() {
    wanted=$1
    part=$2
    shift 2
    run "$@"
    is "$*" "$wanted " "$code $out"
    has "message of $*" "$err" "ds-accel: "
    has "message of $*" "$err" "$part"
}

# report SCHEMA CODE COMMAND...: that exit code, and JSON of that shape on stdout, kept for `at`.
report() {
    shape=$1
    wanted=$2
    shift 2
    run "$@"
    is "exit code of $*" "$wanted" "$code"
    printf '%s\n' "$out" >"$dir/json"
    if message=$(validate "$schemas/$shape.json" <"$dir/json" 2>&1); then
        pass
    else
        fail "$* has the shape of $shape.json" "$message"
    fi
}

# at PATH...: values of the last report, with blanks between them.
at() {
    validate - "$@" <"$dir/json" 2>&1 | paste -sd ' ' -
}

# plugins FOLDER NAME...: a folder with the mock under other names.
plugins() {
    folder=$1
    shift
    mkdir -p "$folder"
    for plugin; do
        cp "$mocks/ds_accel_$plugin.so" "$folder/"
    done
}

# count TEXT PATTERN: lines of a text that match.
count() {
    printf '%s\n' "$1" | grep -c -- "$2" || true
}

escape=$(printf '\033')
plugins "$dir/cuda" cuda
plugins "$dir/two" npu cuda
echo '{"deny": ["*"]}' >"$dir/deny.json"
echo '{"accelerator": "mock"}' >"$dir/mock.json"
printf '{\n  "deny": [],\n  "acelerator": "cpu"\n}\n' >"$dir/bad.json"

# ---- the validator itself -----------------------------------------------------------------------

# invalid PART JSON: it is no `list --json`, and the message says why.
invalid() {
    code=0
    # shellcheck disable=SC2059 # with escapes
    out=$(printf "$2" | validate "$schemas/list.json" 2>&1) || code=$?
    has "the validator refuses $2" "$code $out" "1 $schemas/list.json: "
    has "the validator refuses $2" "$out" "$1"
}

invalid "in one object twice" '{"schema_version": 1, "schema_version": 1, "plugins": []}'
invalid "schema's order" '{"plugins": [], "schema_version": 1}'
invalid 'no key "more"' '{"schema_version": 1, "plugins": [], "more": 1}'
invalid "is a required property" '{"schema_version": 1}'
invalid "1 was expected" '{"schema_version": 2, "plugins": []}'
invalid "codec" '"\377"'
invalid "not JSON" 'NaN'
invalid "Extra data" '{} {}'
for file in "$source"/conf/*.json; do
    is "$file has the shape of config.json" "" "$(validate "$schemas/config.json" <"$file" 2>&1)"
done

# ---- detect -------------------------------------------------------------------------------------

answers mock "$program" -a mock detect
is "the answer is a line" "mock
." "$("$program" -a mock detect && echo .)"
answers cpu "$program" -q detect
answers npu "$program" --plugin-dir "$dir/two" detect
answers cuda env DS_ACCEL_NPU_AVAILABLE=false "$program" -q --plugin-dir "$dir/two" detect

report detect 0 "$program" --plugin-dir "$dir/two" detect --json
keys="schema_version accelerator set_method device_count communication_backend compile_backend"
is "keys of detect" "$keys plugin failure candidates" "$(at '*')"
is "keys of its plugin" "path version vendor abi" "$(at 'plugin/*')"
is "keys of a candidate" "name state reason detail stage elapsed_us" "$(at 'candidates/0/*')"
is "detected" "1 npu auto detect 2" "$(at schema_version accelerator set_method device_count)"
is "the plugin" "$here/two/ds_accel_npu.so 1.1" "$(at plugin/path plugin/abi)"
is "candidates in detection order" "npu cuda mock cpu" "$(at 'candidates/*/name')"
is "their states" "selected not_probed not_probed not_probed" "$(at 'candidates/*/state')"
is "why not" "not_needed demand_only not_needed" \
    "$(at candidates/1/reason candidates/2/reason candidates/3/reason)"
report detect 0 env DS_ACCEL_NPU_AVAILABLE=false DS_ACCEL_NPU_REASON=no_permission \
    DS_ACCEL_NPU_DETAIL="/dev/npu0 refuses" DS_ACCEL_CUDA_AVAILABLE=error \
    "$program" --plugin-dir "$dir/two" detect --json
is "fallen back" "cpu auto detect" "$(at accelerator set_method)"
is "npu is unavailable" "npu unavailable no_permission /dev/npu0 refuses probe" \
    "$(at candidates/0/name candidates/0/state candidates/0/reason candidates/0/detail candidates/0/stage)"
is "cuda is in error" "cuda error driver_failed" \
    "$(at candidates/1/name candidates/1/state candidates/1/reason)"
report detect 0 env DS_ACCELERATOR=mock "$program" detect --json
is "by the environment" "mock override" "$(at accelerator set_method)"
is "the others were not asked" "not_probed not_chosen" \
    "$(at candidates/name=cpu/state candidates/name=cpu/reason)"
report detect 0 "$program" --accelerator mock detect --json
is "by the option" "mock override" "$(at accelerator set_method)"
report detect 0 "$program" --config "$dir/mock.json" detect --json
is "by the configuration" "mock config" "$(at accelerator set_method)"

# Option, environment, configuration, detection: each beats the next.
set -- "$program" --plugin-dir "$dir/two" --config "$dir/mock.json"
answers cuda env DS_ACCELERATOR=cpu "$@" -a cuda detect
answers cpu env DS_ACCELERATOR=cpu "$@" detect
answers mock "$@" detect
answers npu "$program" --plugin-dir "$dir/two" detect

# A plugin that fails to start is passed over, and that is said.
run env DS_ACCEL_NPU_FAIL=init=driver "$program" --plugin-dir "$dir/two" detect
is "the next is taken" "0 cuda" "$code $out"
has "and that is said" "$err" "ds-accel: warning: detect: npu passed its probe but failed to start"
report detect 0 env DS_ACCEL_NPU_FAIL=init=driver "$program" -q --plugin-dir "$dir/two" detect --json
is "its state" "error start_failed start" \
    "$(at candidates/0/state candidates/0/reason candidates/0/stage)"

# xpu through the plain driver lets a present cuda go first.
plugins "$dir/defer" xpu cuda
report detect 0 env DS_ACCEL_XPU_VARIANT=driver "$program" --plugin-dir "$dir/defer" detect --json
is "xpu defers" "cuda available deferred" \
    "$(at accelerator candidates/name=xpu/state candidates/name=xpu/reason)"
run env DS_ACCEL_XPU_VARIANT=driver "$program" --plugin-dir "$dir/defer" explain
has "explain says so" "$out" "reason deferred: another accelerator goes first"
answers xpu env DS_ACCEL_XPU_VARIANT=driver DS_ACCEL_CUDA_AVAILABLE=false \
    "$program" -q --plugin-dir "$dir/defer" detect

# ---- exit codes ---------------------------------------------------------------------------------

# 3: nothing is available.
refuses 3 "no accelerator can be used" "$program" --config "$dir/deny.json" detect
has "who was refused" "$err" "denied"
refuses 3 "no accelerator can be used" "$program" --config "$dir/deny.json" info
refuses 3 "no accelerator can be used" "$program" --config "$dir/deny.json" env
refuses 3 "no accelerator can be used" env DS_ACCEL_CONFIG="$dir/deny.json" "$program" detect
report detect 3 "$program" --config "$dir/deny.json" detect --json
is "nothing was chosen" "null null null null" "$(at accelerator set_method device_count plugin)"
is "everything is disabled" "disabled denied allow" \
    "$(at candidates/name=cpu/state candidates/name=cpu/reason candidates/name=cpu/stage)"
has "also said on stderr" "$err" "no accelerator can be used"

# 6: nothing is available, since all of it was refused for security.
printf '{"trust": {"mode": "enforce"}}\n' >"$dir/enforce.json"
refuses 6 "hash_unlisted" "$program" --config "$dir/enforce.json" detect
refuses 4 "hash_unlisted" "$program" --config "$dir/enforce.json" -a cpu detect

# 4: the forced accelerator cannot be used.
refuses 4 'did you mean "cuda"?' env DS_ACCELERATOR=cuda2 "$program" detect
has "what there is" "$err" "plugins found: mock, cpu"
refuses 4 "DS_ACCELERATOR" env DS_ACCELERATOR=frobnicate "$program" detect
lacks "no far-fetched suggestion" "$err" "did you mean"
refuses 4 "no_plugin" env DS_ACCELERATOR=hpu "$program" detect
has "which file" "$err" "ds_accel_hpu.so"
has "remedy" "$err" "Remedy: install the vendor's plugin"
refuses 4 "no_permission: /dev/nvidia0 refuses" env DS_ACCELERATOR=cuda DS_ACCEL_CUDA_AVAILABLE=false \
    DS_ACCEL_CUDA_REASON=no_permission DS_ACCEL_CUDA_DETAIL="/dev/nvidia0 refuses" \
    "$program" --plugin-dir "$dir/cuda" detect
has "remedy, of this backend" "$err" "Remedy: give the user read and write permission on the node that the detail"
run env DS_ACCELERATOR=mps "$program" detect
has "a backend that cannot have a plugin here" "$code $err" "Remedy: run it on a Mac"
printf '{"backends": {"cuda": {"remedies": {"no_permission": "ask Ann", "no_plugin": null}}}}\n' >"$dir/remedies.json"
run env DS_ACCELERATOR=cuda DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_permission \
    "$program" --config "$dir/remedies.json" --plugin-dir "$dir/cuda" detect
has "the operator's remedy" "$code $err" "Remedy: ask Ann"
for command in "explain cuda" "info cuda" doctor; do
    # shellcheck disable=SC2086 # two words
    run env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_permission \
        "$program" --config "$dir/remedies.json" --plugin-dir "$dir/cuda" $command --json
    has "the same in $command" "$out" '"remedy": "ask Ann"'
done
run env DS_ACCELERATOR=cuda "$program" --config "$dir/remedies.json" detect
has "a remedy that is masked" "$err" "Remedy: install the vendor's plugin"
# What the shipped configuration says of each.
run "$program" config show --json
for name in cuda rocm xpu npu hpu mlu sdaa supa opencl; do
    for reason in no_device no_driver no_permission library_missing; do
        has "$name has a remedy for $reason" "$out" "\"backends.$name.remedies.$reason\""
    done
done
refuses 4 "device_busy" env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=device_busy \
    "$program" --plugin-dir "$dir/cuda" -q --accelerator cuda detect
refuses 4 "start_failed" env DS_ACCEL_CUDA_FAIL=init=driver \
    "$program" --plugin-dir "$dir/cuda" -a cuda detect
refuses 4 "the option accelerator is set but empty" "$program" --accelerator "" detect
refuses 4 "DS_ACCELERATOR is set but empty" env DS_ACCELERATOR= "$program" detect
refuses 4 "\"accelerator\" is \"mock\"" env DS_ACCEL_MOCK_DEVICE_COUNT=0 \
    "$program" --config "$dir/mock.json" detect
refuses 4 "no_plugin" "$program" -a hpu info
refuses 4 "no_plugin" "$program" -a hpu env
report detect 4 env DS_ACCELERATOR=hpu "$program" detect --json
is "nothing was chosen" "null null" "$(at accelerator set_method)"
has "also said on stderr" "$err" "no_plugin"

# 5: the configuration is bad.
problem="$dir/bad.json:3:3: unknown key \"acelerator\"; did you mean \"accelerator\"?"
for command in detect list info explain env "config show"; do
    # shellcheck disable=SC2086 # a list of words
    refuses 5 "$problem" "$program" --config "$dir/bad.json" $command
done
refuses 5 "$problem" env DS_ACCEL_CONFIG="$dir/bad.json" "$program" detect
refuses 5 "$problem" env DS_ACCEL_CONFIG="$dir/bad.json" "$program" detect --json
refuses 5 "$dir/none.json:1:1: cannot read it: No such file" "$program" --config "$dir/none.json" detect
refuses 5 "$dir:1:1: cannot read it" "$program" --config "$dir" detect
refuses 5 "DS_ACCEL_PROBE" env DS_ACCEL_PROBE=somewhere "$program" detect
answers cpu env DS_ACCEL_CONFIG="$dir/bad.json" "$program" -q --config "$dir/mock.json" -a cpu detect

# 2: usage. Each says where help is.
refuses 2 "no command" "$program"
refuses 2 'unknown command "frob"' "$program" frob
refuses 2 "unknown option --frob" "$program" --frob detect
refuses 2 "unknown option --frob" "$program" detect --frob
refuses 2 "unknown option --ver" "$program" --ver detect # --verbose or --version?
refuses 2 "option -a needs an argument" "$program" detect -a
refuses 2 "option --config needs an argument" "$program" detect --config
refuses 2 "option --plugin-dir needs an argument" "$program" --plugin-dir
refuses 2 "--json" "$program" detect --json=yes
refuses 2 "--quiet=yes" "$program" --quiet=yes detect
refuses 2 "detect takes" "$program" detect cpu
refuses 2 "list takes" "$program" list cpu
refuses 2 "info takes" "$program" info cpu mock
refuses 2 "explain takes" "$program" explain cpu mock
refuses 2 "env takes" "$program" env cpu mock
refuses 2 "config takes" "$program" config
refuses 2 '"frob"' "$program" config frob
refuses 2 "config takes" "$program" config show check
refuses 2 "--env" "$program" config check --env
refuses 2 "--env is an option of config" "$program" detect --env
refuses 2 "lint takes" "$program" lint
refuses 2 "lint takes" "$program" lint a b
has "where help is" "$err" "see ds-accel lint --help"
refuses 2 "-x" "$program" -xq detect
lacks "an option is named, not the program" "$err" "unknown option $program"
refuses 2 "-x" "$program" detect -xq
lacks "an option is named, not the command" "$err" "unknown option detect"
refuses 2 'unknown command "frob"' "$program" help frob

# 1: problems, or failed.
refuses 1 'did you mean "cuda"?' "$program" info cudaa
has "what is known" "$err" "known: cuda, rocm"
refuses 1 "frobnicate" "$program" env frobnicate
refuses 1 "frobnicate" "$program" info frobnicate --json
refuses 1 "ds_accel_frobnicate.so" "$program" explain frobnicate
has "where it was looked for" "$err" "$(cd "$build" && pwd -P)/lib/ds-accel"
refuses 1 "No such file" "$program" lint "$dir/none.so"

# The answer cannot be written.
if [ -c /dev/full ]; then
    for command in detect list info explain "env hpu" "config show" "config check" "list --json" --help \
        --version "help list" "lint $mocks/ds_accel_cuda.so"; do
        code=0
        # shellcheck disable=SC2086 # a list of words
        "$program" $command >/dev/full 2>"$dir/stderr" || code=$?
        is "$command >/dev/full" "1" "$code"
        has "$command >/dev/full says so" "$(cat "$dir/stderr")" "ds-accel: writing the answer failed: "
    done
fi
for command in detect "list --json" --help; do
    code=0
    # shellcheck disable=SC2086 # a list of words
    "$program" $command >&- 2>"$dir/stderr" || code=$?
    is "$command >&-" "1" "$code"
    has "$command >&- says so" "$(cat "$dir/stderr")" "ds-accel: writing the answer failed: "
done
is "stderr closed" "cpu" "$(env DS_ACCEL_CUDA_AVAILABLE=false "$program" --plugin-dir "$dir/cuda" detect 2>&-)"
is "stdin closed" "cpu" "$("$program" detect <&-)"

# ---- list ---------------------------------------------------------------------------------------

run "$program" list
is "list" "0 NAME STATE VERSION VENDOR ABI PATH, REASON" \
    "$code $(printf '%s\n' "$out" | sed -n '1s/  */ /gp')"
is "the cpu's state" "available" "$(printf '%s\n' "$out" | awk '$1 == "cpu" { print $2 }')"
has "why mock was not probed" "$out" "demand_only"
report list 0 "$program" list --json
is "keys of a plugin" "name path vendor version abi state reason detail" "$(at 'plugins/0/*')"
is "names" "mock cpu" "$(at 'plugins/*/name')"
report list 0 "$program" --config "$dir/deny.json" list --json
is "all are disabled" "disabled disabled" "$(at 'plugins/*/state')"

# The operator's story: a plugin is dropped into a folder, then a file that is none.
mkdir "$dir/drop"
set -- "$program" --plugin-dir "$dir/drop"
answers cpu "$@" -q detect
cp "$mocks/ds_accel_cuda.so" "$dir/drop/"
answers cuda "$@" detect
report list 0 "$@" list --json
is "it is listed" "cuda mock cpu" "$(at 'plugins/*/name')"
echo "not a plugin" >"$dir/drop/ds_accel_x.so"
echo "no plugin's name" >"$dir/drop/libx.so"
: >"$dir/drop/ds_accel_Bad.so"
answers cuda "$@" detect
report list 0 "$@" list --json
is "listed" "cuda Bad mock x cpu" "$(at 'plugins/*/name')"
is "the text file" "rejected not_elf" "$(at plugins/name=x/state plugins/name=x/reason)"
is "the bad name" "rejected bad_name" "$(at plugins/name=Bad/state plugins/name=Bad/reason)"
mkdir "$dir/drop/ds_accel_folder.so"
ln -s nowhere "$dir/drop/ds_accel_link.so"
mkfifo "$dir/drop/ds_accel_pipe.so"
: >"$dir/drop/ds_accel_empty.so"
head -c 4096 "$mocks/ds_accel_npu.so" >"$dir/drop/ds_accel_npu.so"
answers cuda "$@" detect
report list 0 "$@" list --json
is "none of these is used" \
    "is_directory dangling_link is_fifo rejected rejected elf_truncated" \
    "$(at plugins/name=folder/reason plugins/name=link/reason plugins/name=pipe/reason \
        plugins/name=empty/state plugins/name=npu/state plugins/name=npu/reason)"
rm "$dir/drop/ds_accel_cuda.so"
answers cpu "$@" -q detect

# --plugin-dir, DS_ACCEL_PLUGIN_PATH, plugin_dirs, then the folder of the library.
for folder in first second third fourth; do
    plugins "$dir/$folder" cuda
done
ln -s second "$dir/again"
echo "{\"plugin_dirs\": [\"$dir/fourth\"]}" >"$dir/dirs.json"
set -- env "DS_ACCEL_PLUGIN_PATH=$dir/third::$dir/none" "$program" --config "$dir/dirs.json" \
    --plugin-dir "$dir/first" --plugin-dir "$dir/second" --plugin-dir "$dir/again"
report list 0 "$@" list --json
file=ds_accel_cuda.so
library=$(cd "$build/lib/ds-accel" && pwd -P)
ours="$library/ds_accel_mock.so $library/ds_accel_cpu.so"
is "order of the folders" \
    "$here/first/$file $here/second/$file $here/third/$file $here/fourth/$file $ours" \
    "$(at 'plugins/*/path')"
is "the first one counts" "available shadowed shadowed shadowed not_probed available" \
    "$(at 'plugins/*/state')"
is "by whom" "shadowed by $here/first/$file" "$(at plugins/1/reason plugins/1/detail)"
report explain 0 "$@" explain --json
has "folders searched" "$(at 'searched/*')" "$here/first $here/second $here/third $dir/none $here/fourth $library"
report detect 0 "$@" detect --json
is "which file is used" "$here/first/$file" "$(at plugin/path)"
answers cuda "$@" -q --plugin-dir "$dir/none" detect
run "$@" --plugin-dir "$dir/none" detect
has "a folder that is not there" "$err" "scan: $dir/none is not a folder"

# ---- explain ------------------------------------------------------------------------------------

set -- "$program" --plugin-dir "$dir/cuda"
run env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_driver DS_ACCEL_CUDA_DETAIL="no module" \
    "$@" explain
is "explain" "0" "$code"
has "the choice" "$out" "chosen: cpu (auto detect)"
has "the failed gate" "$out" "  probe  failed  no module"
has "the reason" "$out" "  reason no_driver: the device is there, its kernel driver is not"
has "the remedy" "$out" "  remedy install and load NVIDIA's kernel driver (Debian, non-free: nvidia-driver"
has "what has no plugin" "$out" "without a plugin file: xpu.external, xpu, npu"
lacks "cuda has one" "$(printf '%s\n' "$out" | grep '^without')" "cuda"
has "mock" "$out" "mock: not_probed (by name only)"
has "why" "$out" "reason demand_only: it is chosen only by name"
is "nothing is skipped in it" "0" "$(count "$out" skipped)"
run "$@" explain -v
is "-v shows what was not reached" "17" "$(count "$out" ' skipped ')"
# What a plugin prints while it is asked, line by line and without what steers a terminal.
faults=$build/tests/fixtures/faults
run "$program" -q --plugin-dir "$faults/print_stderr" explain faulty
has "its output is shown" "$out" "  output "
has "and shortened" "$out" "lines more; -v shows them"
is "no line of it is raw" "0" "$(printf '%s' "$out" | grep -c "$escape")"
run "$@" explain mock
is "one alone" "0 chosen: cuda (auto detect) mock: available (by name only)" \
    "$code $(printf '%s\n' "$out" | grep '^[a-z.]*: ' | paste -sd ' ' -)"
run env DS_ACCEL_CUDA_AVAILABLE=maybe "$@" explain cuda
has "a bad option is named" "$out" "option available: \"maybe\""

report explain 0 "$@" explain --json cuda
is "only cuda" "cuda" "$(at 'candidates/*/name')"
is "gates in order" \
    "name trust elf note hash allow power quarantine hardware load entry probe start conduct" \
    "$(at 'candidates/0/gates/*/gate')"
is "none failed" "passed passed passed passed skipped passed skipped skipped skipped passed passed \
passed passed passed" "$(at 'candidates/0/gates/*/result')"
report explain 0 "$program" --config "$dir/deny.json" explain --json
is "nothing was chosen" "null null" "$(at accelerator set_method)"

# The one not chosen although available: why?
report explain 0 "$program" --plugin-dir "$dir/two" explain --json
is "cuda comes after npu" "available not_needed" \
    "$(at candidates/name=cuda/state candidates/name=cuda/reason)"
report explain 0 env DS_ACCELERATOR=cuda "$program" --plugin-dir "$dir/two" explain --json
is "npu was not asked for" "available not_chosen" \
    "$(at candidates/name=npu/state candidates/name=npu/reason)"
run env DS_ACCELERATOR=rocm "$program" explain
has "why nothing was chosen" "$out$err" 'DS_ACCELERATOR is "rocm"'

# The first gate that fails, for each kind of broken plugin; what comes after is not reached.
while read -r defect gate reason; do
    report explain 0 "$program" -q --plugin-dir "$broken/$defect" explain "$defect" --json
    is "$defect" "$gate $gate $reason" \
        "$(at candidates/0/stage candidates/0/gates/result=failed/gate candidates/0/reason)"
    is "$defect: one gate fails, later ones are skipped" "" "$(at 'candidates/0/gates/*/result' |
        sed 's/^\(passed \|skipped \)*failed\( skipped\)*$//')"
    lacks "$defect: the remedy" "|$(at candidates/0/remedy)|" "||"
    lacks "$defect: the meaning" "|$(at candidates/0/meaning)|" "||"
    answers cpu "$program" -q --plugin-dir "$broken/$defect" detect
done <<'END'
no_note note no_note
two_notes note duplicate_note
abi_2 note abi_unsupported
unknown_required_bit note feature_unknown
wrong_name note name_mismatch
undefined_symbol load symbol_undefined
missing_library load dependency_missing
no_entry entry no_entry
short_table entry table_short
missing_required_slot entry slot_missing
probe_zero_devices probe bad_verdict
probe_bad_reason probe newer_reason
END

# ---- info ---------------------------------------------------------------------------------------

for backend in cuda rocm xpu xpu.external npu hpu mlu sdaa supa mps opencl; do
    report info 0 "$program" info "$backend" --json
    is "info $backend" "$backend false no_plugin ${backend%.external} null null null" \
        "$(at name available reason device_name current_device_name device_count devices)"
    is "op builders of $backend" \
        "$(validate - "backends/$backend/op_builders/#" <"$source/conf/ops.json")" "$(at 'op_builders/#')"
done
report info 0 "$program" info cuda --json
is "what the configuration knows" "nccl inductor true null CUDA_VISIBLE_DEVICES NCCL" \
    "$(at communication_backend compile_backend graph_supported is_bf16_supported \
        'visible_devices_envs/*' 'export_envs/*')"
has "its op builders" "$(at 'op_builders/*')" "FusedAdamBuilder"
# What holds of a backend wherever it is, and null for what only its device knows: neither is guessed.
while read -r backend facts; do
    report info 0 "$program" info "$backend" --json
    is "facts of $backend, which is not here" "$facts" \
        "$(at is_synchronized_device use_host_timers resolves_data_dependency handles_memory_backpressure \
            graph_supported is_triton_supported is_bf16_supported is_fp16_supported prefer_triton_grouped_mm \
            supports_range_domains memory_limit)"
done <<'END'
cuda false false false false true null null null null true null
rocm false false false false true null null null false false null
xpu false false false false null false true true false false null
npu false false false false null false null true false false null
sdaa false false false false false false null true false false null
mlu false false false false true true null true false false null
supa false false false false true true true true false false null
hpu false false true true false false true null false false null
mps false true false false false false false false false false null
opencl false false false false null false null null false false null
END
report info 0 env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=hidden DS_ACCEL_CUDA_DETAIL=d \
    "$program" --plugin-dir "$dir/cuda" info cuda --json
is "there, and not available" "false hidden d null" "$(at available reason detail devices)"
# DeepSpeed's launcher takes the first of these, and fails without one; ours may stand behind it.
while read -r backend wanted; do
    "$program" info "$backend" --json >"$dir/json" 2>/dev/null
    is "visible devices of $backend begin as in DeepSpeed" "$wanted" "$(at visible_devices_envs/0)"
    is "the configuration says so" "$wanted" \
        "$(validate - "backends/$backend/visible_devices_envs/0" <"$source/conf/ds-accel.json")"
done <<END
cuda CUDA_VISIBLE_DEVICES
cpu CUDA_VISIBLE_DEVICES
xpu ZE_AFFINITY_MASK
xpu.external ZE_AFFINITY_MASK
npu ASCEND_RT_VISIBLE_DEVICES
mps CUDA_VISIBLE_DEVICES
hpu CUDA_VISIBLE_DEVICES
mlu MLU_VISIBLE_DEVICES
sdaa SDAA_VISIBLE_DEVICES
supa SUPA_VISIBLE_DEVICES
END
"$program" info hpu --json >"$dir/json" 2>/dev/null
is "ours in addition" "CUDA_VISIBLE_DEVICES HABANA_VISIBLE_MODULES" "$(at 'visible_devices_envs/*')"
run "$program" info hpu
is "info hpu" "0 hpu: not available: no_plugin" "$code $(printf '%s\n' "$out" | head -n 1)"
has "unknown" "$out" "device_count                 unknown"

report info 0 "$program" info mock --json
is "info mock" "mock true  mock:0 2" "$(at name available reason current_device_name device_count)"
is "its devices" "0 1 1073741824 1073741824 Mock Device" \
    "$(at 'devices/*/index' 'devices/*/total_memory_bytes' devices/0/name)"
is "its data types" "float32 float16 bfloat16 true true" \
    "$(at 'supported_dtypes/*' is_fp16_supported is_bf16_supported)"
report info 0 env DS_ACCEL_MOCK_DEVICE_COUNT=3 DS_ACCEL_MOCK_MEMORY_BYTES=4096 DS_ACCEL_MOCK_FP16=false \
    DS_ACCEL_MOCK_DEVICE_NAME="A  name" "$program" -a mock info --json
is "as its options say" "3 4096 A  name float32 bfloat16 false" \
    "$(at device_count devices/2/total_memory_bytes devices/2/name 'supported_dtypes/*' is_fp16_supported)"

# What an operator configures goes before what the plugin says.
echo '{"backends": {"mock": {"communication_backend": "mpi", "options": {"device_count": 5}}}}' \
    >"$dir/facts.json"
report info 0 "$program" --config "$dir/facts.json" info mock --json
is "by the configuration" "mpi 5" "$(at communication_backend device_count)"
report info 0 env DS_ACCEL_MOCK_DEVICE_COUNT=1 "$program" --config "$dir/facts.json" info mock --json
is "by the environment" "1" "$(at device_count)"

report info 0 "$program" info cpu --json
is "info cpu" "cpu true cpu cpu" "$(at name available device_name current_device_name)"
is "as many devices as it says" "$(at device_count)" "$(at 'devices/#')"
is "its op builders" "$(validate - backends/cpu/op_builders/# <"$source/conf/ops.json")" \
    "$(at 'op_builders/#')"
physical=$(awk '/^MemTotal:/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
all=0
for bytes in $(at 'devices/*/total_memory_bytes'); do
    all=$((all + bytes))
done
index=0
while [ "$index" -lt "$(at device_count)" ]; do
    bytes=$(at "devices/$index/total_memory_bytes")
    free=$(at "devices/$index/available_memory_bytes")
    used=$(at "devices/$index/process_memory_bytes")
    if [ "$free" -gt 0 ] && [ "$free" -le "$bytes" ] && [ "$used" -gt 0 ] && [ "$used" -le "$bytes" ]; then
        pass
    else
        fail "memory of cpu device $index" "total $bytes, available $free, process $used"
    fi
    index=$((index + 1))
done
if [ "$all" -gt 0 ] && [ "$all" -le "$physical" ]; then
    pass
else
    fail "memory of all cpu devices" "$all of $physical"
fi

# A recorded machine: two nodes of 1 and 2 GiB, a limit of 1.5 GiB on the whole.
machine=$dir/machine
for node in 0 1; do
    folder=$machine/sys/devices/system/node/node$node
    mkdir -p "$folder"
    echo "$((4 * node))-$((4 * node + 3))" >"$folder/cpulist"
    printf 'Node %d MemTotal: %d kB\nNode %d MemFree: 524288 kB\n' \
        $node $((1048576 * (node + 1))) $node >"$folder/meminfo"
done
echo 0-1 >"$machine/sys/devices/system/node/online"
mkdir -p "$machine/sys/devices/system/cpu" "$machine/proc/self" "$machine/sys/fs/cgroup/job"
echo 0-7 >"$machine/sys/devices/system/cpu/online"
printf 'MemTotal: 3145728 kB\nMemFree: 1048576 kB\nMemAvailable: 1048576 kB\n' >"$machine/proc/meminfo"
printf 'processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: Recorded CPU 9000\nflags\t\t: fpu sse2 avx2\n' \
    >"$machine/proc/cpuinfo"
printf 'Name:\tds-accel\nVmHWM:\t3648 kB\nVmRSS:\t3584 kB\n' >"$machine/proc/self/status"
echo 0::/job >"$machine/proc/self/cgroup"
echo "29 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw" >"$machine/proc/self/mountinfo"
echo max >"$machine/sys/fs/cgroup/job/memory.max"
report info 0 "$program" --root "$machine" info cpu --json
is "two nodes, two devices" "2 0 1 1073741824 2147483648" \
    "$(at device_count 'devices/*/numa_node' 'devices/*/total_memory_bytes')"
is "of that machine" "Recorded CPU 9000 4 3670016 null" \
    "$(at devices/0/name devices/0/compute_units devices/0/process_memory_bytes memory_limit)"
run "$program" --root "$machine" info cpu
has "as text" "$out" "  device 1: Recorded CPU 9000, "
has "as text" "$out" " of 2.0 GiB available, NUMA node 1"
echo 536870912 >"$machine/sys/fs/cgroup/job/memory.max"
report info 0 "$program" --root "$machine" info cpu --json
is "its limit" "536870912 /sys/fs/cgroup/job/memory.max" "$(at memory_limit/bytes memory_limit/source)"
report info 0 env LOCAL_SIZE=4 LOCAL_RANK=3 "$program" --root "$machine" info cpu --json
is "a launcher's ranks" "4 0 0 1 1" "$(at device_count 'devices/*/numa_node')"
report detect 0 "$program" --root "$machine" -a cpu detect --json
is "device count" "2" "$(at device_count)"
report info 0 env MOCK_VISIBLE_DEVICES=1 "$program" info mock --json
is "every name of a device that is the vendor's second" \
    "0 1 MOCK-00000000-0000-0000-0000-000000000001 0000:e1:00.0 active null" \
    "$(at devices/0/index devices/0/vendor_index devices/0/uuid devices/0/pci_address \
        devices/0/power_state devices/0/partition)"
run env MOCK_VISIBLE_DEVICES=1 "$program" info mock
has "its names, as text" "$out" "    MOCK-00000000-0000-0000-0000-000000000001, 0000:e1:00.0, vendor's index 1"
refuses 1 "No such file" "$program" --root "$dir/none" detect
report detect 0 env DS_ACCEL_ROOT="$machine" "$program" -a cpu detect --json
is "the root by the environment" "2" "$(at device_count)"
report detect 0 env DS_ACCEL_ROOT="$dir/none" "$program" --root "$machine" -a cpu detect --json
is "the option goes before it" "2" "$(at device_count)"
refuses 1 "No such file" env DS_ACCEL_ROOT="$dir/none" "$program" detect

# ---- env ----------------------------------------------------------------------------------------

# shellcheck disable=SC2016 # for the inner shell
answers "0 0 yes" sh -c 'unset PT_HPU_LAZY_ACC_PAR_MODE PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES
    eval "$("$0" env hpu)"
    echo "$PT_HPU_LAZY_ACC_PAR_MODE $PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES $(export -p |
        grep -q PT_HPU_LAZY_ACC_PAR_MODE && echo yes)"' "$program"
# shellcheck disable=SC2016 # for the inner shell
answers "1 0" sh -c 'export PT_HPU_LAZY_ACC_PAR_MODE=1; unset PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES
    eval "$("$0" env hpu)"
    echo "$PT_HPU_LAZY_ACC_PAR_MODE $PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES"' "$program"
report env 0 env PT_HPU_LAZY_ACC_PAR_MODE= "$program" env hpu --json
is "keys of env" "schema_version accelerator variables" "$(at '*')"
is "keys of a variable" "name value rule applied origin" "$(at 'variables/0/*')"
is "its first" "hpu PT_HPU_LAZY_ACC_PAR_MODE 0 if-unset false" \
    "$(at accelerator variables/0/name variables/0/value variables/0/rule variables/0/applied)"
is "its second" "PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES true" "$(at variables/1/name variables/1/applied)"
has "where from" "$(at variables/0/origin)" "/share/ds-accel/ds-accel.json:"
answers "" "$program" env rocm
answers "export MOCK_RUNTIME='1'" "$program" -a mock env
report env 0 "$program" env mock --json
has "the plugin's own" "$(at variables/0/origin)" "ds_accel_mock.so"

# Any value comes out of the shell as it went into the file; rules decide.
cat >"$dir/env.json" <<'END'
{"backends": {"hpu": {"env": [
  {"name": "ODD", "value": "it's \"$HOME\" `id` $(id) \\ *;\nnext  ", "rule": "always"},
  {"name": "GONE", "rule": "unset"},
  {"name": "KEPT", "value": "new", "rule": "if-unset"},
  {"name": "TAKEN", "value": "new", "rule": "always"}
]}}}
END
# shellcheck disable=SC2016 # for the inner shell
answers "it's \"\$HOME\" \`id\` \$(id) \\ *;
next  |unset|old|new" sh -c 'export GONE=old KEPT=old TAKEN=old
    eval "$("$0" --config "$1" env hpu)"
    printf "%s\n" "$ODD|${GONE-unset}|$KEPT|$TAKEN"' "$program" "$dir/env.json"
report env 0 env KEPT=old TAKEN=old "$program" --config "$dir/env.json" env hpu --json
is "which are applied" "true false false true" "$(at 'variables/*/applied')"
is "where from" "$dir/env.json:2 $dir/env.json:5" "$(at variables/0/origin variables/3/origin)"

# ---- config -------------------------------------------------------------------------------------

run "$program" config check
is "config check" "0 " "$code $err"
has "the files are counted" "$out" "configuration files, no problem"
report config-check 0 "$program" config check --json
is "valid" "true 0" "$(at valid 'problems/#')"
printf '{\n  "probe": {"mode": "never", "timeout_ms": 0},\n  "allow": "x"\n}\n' >"$dir/three.json"
run "$program" --config "$dir/three.json" config check
is "config check" "5 3 " "$code $(count "$out" "^$dir/three.json:[23]:[0-9]*: ") $err"
report config-check 5 "$program" --config "$dir/three.json" config check --json
is "three problems" "false 3 2 2 3" "$(at valid 'problems/#' 'problems/*/line')"
is "of that file" "$dir/three.json" "$(at problems/0/file)"
answers cpu env DS_ACCEL_CONFIG= DS_ACCEL_PROBE= DS_ACCEL_CACHE= DS_ACCEL_PLUGIN_PATH= "$program" -q detect
report config-check 5 env DS_ACCEL_CONFIG="$dir/bad.json" "$program" config check --json
is "one problem" "3 3" "$(at problems/0/line problems/0/column)"
printf '{"deny": [],\n "deny": []}\n' >"$dir/twice.json"
report config-check 5 "$program" --config "$dir/twice.json" config check --json
is "a key twice" "$dir/twice.json 2" "$(at problems/0/file problems/0/line)"
printf '{"deny": [}' >"$dir/syntax.json"
refuses 5 "$dir/syntax.json:1:11: " "$program" --config "$dir/syntax.json" detect

# Files named, as people type it.
good=$dir/good.json
printf '{"deny": ["x"]}\n' >"$good"
mkdir -p "$dir/folder" "$dir/empty" "$dir/closed"
cp "$good" "$dir/folder/a.json"
cp "$dir/three.json" "$dir/folder/b.json"
cp "$dir/three.json" "$dir/folder/not-one.txt"
# checks CODE PROBLEMS FILES ARGUMENTS...: text and JSON say the same.
checks() {
    wanted="$1 $2 $3"
    shift 3
    run "$program" config check "$@" --json
    printf '%s\n' "$out" >"$dir/json"
    is "config check $*" "$wanted " "$code $(at 'problems/#' 'files/#') $err"
    run "$program" config check "$@"
    is "config check $*: text" "${wanted%% *} $(at 'problems/#')" "$code $(count "$out" '^[^ ]*:[0-9]*:[0-9]*: ')"
}
checks 0 0 1 "$good"
is "one file" "1 configuration file, no problem" "$out"
checks 5 3 1 "$dir/three.json"
checks 5 3 2 "$good" "$dir/three.json"
checks 5 3 2 "$dir/three.json" "$good"
checks 5 6 2 "$dir/three.json" "$dir/folder/b.json"
checks 5 3 2 "$dir/folder"
has "a folder: which file" "$out" "$dir/folder/b.json:2:"
checks 0 0 0 "$dir/empty"
checks 5 1 1 "$dir/none.json"
has "a missing file" "$out" "$dir/none.json:1:1: cannot read it: No such file or directory"
checks 0 0 1 "$build/share/ds-accel/ds-accel.json" "$good"
run "$program" config check -- "$good"
is "behind --" "0 1 configuration file, no problem" "$code $out"
checks 0 0 2 --config "$dir/mock.json" "$good"
checks 5 3 2 --config "$dir/three.json" "$good"
checks 5 3 1 -v "$dir/three.json"
(cd "$dir" && run "$program" config check good.json folder/b.json ./none.json && printf '%s\n' "$code" "$out" >relative) || true
is "relative paths" "5
folder/b.json:2:21: folder/b.json:2:44: folder/b.json:3:12: ./none.json:1:1: " \
    "$(sed '1n; s/^\([^ ]* \).*/\1/' "$dir/relative" | sed '1!{:a;N;$!ba;s/\n//g}')"
run "$program" config --json check "$good"
is "an option between" 0 "$code"
run "$program" --json config check "$good"
is "an option before" 0 "$code"
run sh -c "cat '$dir/three.json' | '$program' config check -"
is "standard input" "5 3 " "$code $(count "$out" '^<stdin>:[23]:[0-9]*: ') $err"
run sh -c "printf '' | '$program' config check -"
is "standard input, empty" "5 1" "$code $(count "$out" '^<stdin>:1:')"
run sh -c "printf '{}\\0{' | '$program' config check -"
is "standard input, a NUL byte" "5 ds-accel: -: cannot read it: a NUL byte is in it" "$code $err"
run sh -c "head -c 2000000 /dev/zero | tr '\\0' ' ' | '$program' config check -"
is "standard input, too much" "5 ds-accel: -: cannot read it: more than 1 MiB" "$code $err"
mkfifo "$dir/pipe"
cat "$dir/three.json" >"$dir/pipe" &
run "$program" config check "$dir/pipe"
is "a pipe, as of <(command)" "5 3" "$code $(count "$out" "^$dir/pipe:[23]:")"
printf '{"accelerater": "cpu"}\n' >"$dir/user.json"
run env DS_ACCEL_CONFIG="$dir/user.json" "$program" config check "$good"
is "the user's own is not asked for" "0 1 configuration file, no problem" "$code $out"
printf '{"backends": {"cpu": {"options": {"nonsense": 1}}}}\n' >"$dir/option.json"
run "$program" config check "$dir/option.json"
has "packages say which options there are" "$code $out" "5 $dir/option.json:1:35: unknown option \"nonsense\" of cpu"
refuses 2 "show x" "$program" config show x
refuses 2 "takes" "$program" config "$good"

report config-show 0 "$program" --config "$dir/mock.json" config show --json
is "files" "package package explicit" "$(at 'files/*/layer')"
is "a value and its origin" "mock $dir/mock.json:1" \
    "$(at values/key=accelerator/value values/key=accelerator/origin)"
has "a shipped one" "$(at values/key=deny/origin)" "/share/ds-accel/ds-accel.json:"
is "a name with a dot is quoted" "ccl" "$(at 'values/key=backends."xpu.external".communication_backend/value')"
is "op builders too" "cpu_adam" "$(at values/key=backends.cpu.op_builders.CPUAdamBuilder.op/value)"
run "$program" --config "$dir/mock.json" config show
has "as text" "$out" "# explicit $dir/mock.json"
has "as text" "$out" "accelerator = \"mock\"  # $dir/mock.json:1"

# The user's folder; a file given by name replaces it; a relative folder is as if not set.
mkdir -p "$XDG_CONFIG_HOME/ds-accel"
cp "$dir/mock.json" "$XDG_CONFIG_HOME/ds-accel/10.json"
echo '{"accelerator": "cpu"}' >"$XDG_CONFIG_HOME/ds-accel/20.json"
answers cpu "$program" -q detect
report config-show 0 "$program" config show --json
is "files" "package package user user" "$(at 'files/*/layer')"
is "the later one wins" "cpu $XDG_CONFIG_HOME/ds-accel/20.json:1" \
    "$(at values/key=accelerator/value values/key=accelerator/origin)"
rm "$XDG_CONFIG_HOME/ds-accel/20.json"
answers mock "$program" detect
answers cpu "$program" -q --config "$dir/dirs.json" -a cpu detect
answers cuda "$program" --config "$dir/dirs.json" detect
mkdir "$dir/home" "$dir/home/.config"
cp -R "$XDG_CONFIG_HOME/ds-accel" "$dir/home/.config/"
answers mock env -u XDG_CONFIG_HOME HOME="$dir/home" "$program" detect
answers cpu env -u XDG_CONFIG_HOME -u HOME "$program" -q detect
answers cpu env -u HOME -C "$dir" XDG_CONFIG_HOME=config "$program" -q detect
answers cpu env -i "$program" -q detect
rm -r "$XDG_CONFIG_HOME"

report config-env 0 env DS_ACCELERATOR=mock DS_ACCEL_LOG= "$program" config show --env --json
names="DS_ACCELERATOR DS_ACCEL_PLUGIN_PATH DS_ACCEL_CONFIG DS_ACCEL_LOG DS_ACCEL_PROBE DS_ACCEL_CACHE"
is "variables" "$names DS_ACCEL_CACHE_DIR DS_ACCEL_ALLOCATOR DS_ACCEL_DECISION DS_ACCEL_LAYERS DS_ACCEL_TRACE_FILE DS_ACCEL_RACE_FILE DS_ACCEL_ROOT" "$(at 'variables/*/name')"
is "one that is set" "mock environment null" "$(at variables/0/value variables/0/origin variables/0/default)"
is "one that is not" "null default" "$(at variables/1/value variables/1/origin)"
is "one that is empty is as if not set" "warn default warn" \
    "$(at variables/3/value variables/3/origin variables/3/default)"
run "$program" config --env show
is "config show --env" "0 NAME VALUE ORIGIN MEANING 1" \
    "$code $(printf '%s\n' "$out" | sed -n '1s/  */ /gp') $(count "$out" '^DS_ACCEL_LOG  *warn  *default ')"

# ---- lint ---------------------------------------------------------------------------------------

report lint 0 "$program" lint "$mocks/ds_accel_cuda.so" --json
is "a good one" "true 20" "$(at ok 'rules/#')"
is "all rules passed" "" "$(at 'rules/*/result' | sed 's/\(passed *\)*//')"
run "$program" lint "$mocks/ds_accel_cuda.so"
has "as text" "$out" "keeps every rule that a file can be checked for"
while read -r defect rule; do
    report lint 1 "$program" lint --json "$broken/$defect/ds_accel_$defect.so"
    is "lint of $defect" "false $rule" "$(at ok rules/result=failed/rule)"
    is "lint of $defect: one mistake, one rule" "1" "$(at 'rules/*/result' | tr ' ' '\n' | grep -c failed)"
    run "$program" lint "$broken/$defect/ds_accel_$defect.so"
    is "lint of $defect" "1 $rule 1" "$code $(printf '%s\n' "$out" |
        awk '$2 == "failed" { print $1 }') $(count "$out" ' breaks 1 rule of docs/plugin-abi.md$')"
done <<'END'
no_note DSA-P3
wrong_name DSA-P4
extra_export DSA-P5
undefined_symbol DSA-P6
no_entry DSA-P9
short_table DSA-P10
missing_required_slot DSA-P11
unknown_required_bit DSA-P12
probe_unterminated DSA-P13
END
report lint 1 "$program" lint --json "$dir/drop/ds_accel_x.so"
is "lint of a text" "DSA-P2" "$(at rules/result=failed/rule)"

# ---- the same twice -----------------------------------------------------------------------------

# Figures that time and load change are left out.
steady() {
    "$program" --plugin-dir "$dir/two" "$@" --json |
        sed -E 's/"(elapsed_us|available_memory_bytes|process_memory_bytes)": [0-9]+/"\1": 0/'
}

for command in detect list explain "info cpu" "info mock" "env hpu" "config show" "config check" \
    "config show --env"; do
    # shellcheck disable=SC2086 # a list of words
    is "$command --json twice" "$(steady $command)" "$(steady $command)"
done

# ---- talk on stderr -----------------------------------------------------------------------------

# The mock's options are not those that cuda's declares.
echo '{"backends": {"cuda": {"options": null}}}' >"$dir/undeclared.json"
set -- "$program" --plugin-dir "$dir/cuda" --config "$dir/undeclared.json"
warning="ds-accel: warning: detect: falling back to cpu: cuda is unavailable: no_driver: no module"
warning="$warning (ds-accel explain cuda tells more)"
export DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_driver DS_ACCEL_CUDA_DETAIL="no module"
for command in detect info env; do
    run "$@" $command
    is "$command falls back" "0 $warning" "$code $err"
done
run "$@" -q detect
is "-q" "" "$err"
run env DS_ACCEL_LOG=debug "$@" -q detect
is "-q beats DS_ACCEL_LOG" "" "$err"
run env DS_ACCEL_LOG=error "$@" detect
is "error alone" "" "$err"
run env DS_ACCEL_LOG=off,detect=warn "$@" detect
is "a topic's level" "$warning" "$err"
run env DS_ACCEL_LOG=debug,detect=off "$@" detect
lacks "a topic is off" "$err" "detect:"
has "the others are not" "$err" "ds-accel: debug: "
run env DS_ACCEL_LOG=loud "$@" -a cpu detect
has "a bad level" "$err" "ds-accel: warning: log: log level \"loud\" is not understood"
run "$@" -v detect
is "-v" "0 cpu" "$code $out"
has "-v" "$err" "ds-accel: info: detect: cpu chosen (auto detect), "
has "-v" "$err" "$warning"
lacks "-v" "$err" "debug:"
run env DS_ACCEL_LOG=error "$@" -vv detect
has "-vv beats DS_ACCEL_LOG" "$err" "ds-accel: debug: "
run "$@" detect --verbose --verbose
has "--verbose twice" "$err" "ds-accel: debug: "
unset DS_ACCEL_CUDA_AVAILABLE DS_ACCEL_CUDA_REASON DS_ACCEL_CUDA_DETAIL
answers cuda "$@" detect
answers cpu "$program" detect # no other has a plugin: nothing to warn of
run env DS_ACCEL_PLUGINPATH=/x "$program" detect
is "an unknown variable" \
    "0 ds-accel: warning: env: unknown variable DS_ACCEL_PLUGINPATH; did you mean DS_ACCEL_PLUGIN_PATH?" \
    "$code $err"
run env DS_ACCEL_ZZZZZZZZZZZZ=/x "$program" detect
has "one that is like none" "$err" "unknown variable DS_ACCEL_ZZZZZZZZZZZZ (ds-accel config show --env lists them)"
answers cpu env DS_ACCEL_MOCK_DEVICE_COUNT=1 DS_ACCEL_XPU_EXTERNAL_X=1 "$program" detect

# What a plugin says cannot steer a terminal or forge a line.
odd="one${escape}[31m
ds-accel: two"
for command in detect list explain "info cuda"; do
    # shellcheck disable=SC2086 # a list of words
    run env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_DETAIL="$odd" "$@" $command
    lacks "no escapes of a plugin: $command" "$out$err" "$escape"
    is "no lines of a plugin: $command" "0" "$(count "$out
$err" '^ds-accel: two')"
done
run env DS_ACCEL_CUDA_DEVICE_NAME="$odd" "$@" info
lacks "no escapes in a device's name" "$out" "$escape"

# ---- colours ------------------------------------------------------------------------------------

for command in list explain info "lint $mocks/ds_accel_cuda.so" "config show --env"; do
    # shellcheck disable=SC2086 # a list of words
    run env TERM=xterm "$program" $command
    lacks "no colours in a pipe: $command" "$out$err" "$escape"
done

# terminal ASSIGNMENT: what `list` writes to a terminal.
terminal() {
    script -qec "env $1 '$program' list" /dev/null </dev/null
}

if command -v script >/dev/null 2>&1 && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    has "colours on a terminal" "$(terminal TERM=xterm)" "${escape}[32mavailable${escape}[0m"
    has "NO_COLOR empty is not set" "$(terminal 'TERM=xterm NO_COLOR=')" "$escape"
    lacks "NO_COLOR" "$(terminal 'TERM=xterm NO_COLOR=1')" "$escape"
    lacks "TERM=dumb" "$(terminal TERM=dumb)" "$escape"
    lacks "no TERM" "$(terminal '-u TERM')" "$escape"
    is "the text is the same" "$("$program" list)" "$(terminal TERM=xterm |
        sed "s/$escape\\[[0-9;]*m//g" | tr -d '\r')"
fi

# ---- help ---------------------------------------------------------------------------------------

run "$program" --help
is "--help" "0 usage: ds-accel [options] COMMAND [ARGUMENTS] " "$code $(printf '%s\n' "$out" | head -n 1) $err"
is "-h" "$out" "$("$program" -h)"
is "help" "$out" "$("$program" help)"
while read -r command arguments; do
    has "--help lists $command" "$out" "  $command "
    usage="usage: ds-accel $command [options]${arguments:+ $arguments}"
    is "$command --help" "$usage" "$("$program" "$command" --help | head -n 1)"
    is "$command -h" "$("$program" "$command" --help)" "$("$program" "$command" -h)"
    is "help $command" "$("$program" "$command" --help)" "$("$program" help "$command")"
    has "$command --help has the options" "$("$program" "$command" --help)" "--plugin-dir DIR"
done <<'END'
detect
list
info [NAME]
explain [NAME]
env [NAME]
config check|show
lint FILE.so
memory show|replay FILE
END
has "config --help" "$("$program" config --help)" "show --env"
version=$(sed -n 's/^#define DS_ACCEL_VERSION "\(.*\)"/\1/p' "$source/core/ds_accel.h")
run "$program" --version
has "--version" "$code $out$err" "0 ds-accel $version, plugin ABI "
is "one line" "1" "$(count "$out" '')"

# ---- places of options --------------------------------------------------------------------------

set -- "$(steady detect)"
for order in "--json --plugin-dir $dir/two detect" "--plugin-dir=$dir/two detect --json" \
    "--json --plugin-dir $dir/two -- detect" "--plugin-dir $dir/two detect --json --"; do
    # shellcheck disable=SC2086 # a list of words
    is "$order" "$1" "$("$program" $order | sed -E 's/"elapsed_us": [0-9]+/"elapsed_us": 0/')"
done
report info 0 "$program" info --json mock
is "an option before the argument" "mock" "$(at name)"
report info 0 "$program" info --json -- mock
is "-- before the argument" "mock" "$(at name)"
refuses 1 '"--json"' "$program" info -- --json
refuses 2 "detect takes" "$program" detect -- --json
answers mock "$program" -amock detect
answers mock "$program" detect -qa mock
answers mock "$program" -a cpu detect -a mock # the last one counts

# ---- where it is run ----------------------------------------------------------------------------

plugins "$dir/here/plugins" cuda
ln -s "$(realpath --relative-to="$dir/here" "$program")" "$dir/here/accel"
report detect 0 env -C "$dir/here" ./accel --plugin-dir plugins detect --json
is "a link and a relative folder" "$here/here/plugins/ds_accel_cuda.so" "$(at plugin/path)"
report detect 0 env -C "$dir/here" PATH="$dir/here:$PATH" DS_ACCEL_PLUGIN_PATH=plugins accel detect --json
is "found on PATH" "$here/here/plugins/ds_accel_cuda.so" "$(at plugin/path)"
answers cpu env -C / "$program" detect
mkdir "$dir/odd name"
cp "$mocks/ds_accel_cuda.so" "$dir/odd name/"
report list 0 "$program" --plugin-dir "$dir/odd name" list --json
is "a folder with a blank" "$here/odd name/ds_accel_cuda.so" "$(at plugins/0/path)"
plugins "$dir/folder-é" cuda
report list 0 "$program" --plugin-dir "$dir/folder-é" list --json
is "a folder with a letter of two bytes" "$here/folder-é/ds_accel_cuda.so" "$(at plugins/0/path)"
bytes=$dir/$(printf 'bytes-\377')
plugins "$bytes" cuda
report list 0 "$program" --plugin-dir "$bytes" list --json # bytes that are not UTF-8
answers cuda "$program" --plugin-dir "$bytes" detect
for locale in tr_TR.UTF-8 C.UTF-8 de_DE.UTF-8 nonsense; do
    is "list, LC_ALL=$locale" "$(LC_ALL=C "$program" list)" "$(LC_ALL=$locale "$program" list)"
    is "config show, LC_ALL=$locale" "$(LC_ALL=C "$program" config show)" \
        "$(LC_ALL=$locale "$program" config show)"
done

# ---- another place ------------------------------------------------------------------------------

# Plugins, helper and configuration are beside the program, wherever that is, and however called.
mkdir "$dir/moved"
for part in bin lib libexec share; do cp -r "$build/$part" "$dir/moved"; done
answers cpu "$dir/moved/bin/ds-accel" detect
report list 0 "$dir/moved/bin/ds-accel" list --json
has "moved" "$(at 'plugins/*/path')" "$here/moved/lib/ds-accel/ds_accel_mock.so"
ln -s "$dir/moved/bin/ds-accel" "$dir/linked"
report list 0 "$dir/linked" list --json
has "through a link" "$(at 'plugins/*/path')" "$here/moved/lib/ds-accel/ds_accel_mock.so"
report config-show 0 "$dir/linked" config show --json
has "its configuration" "$(at 'files/*/path')" "$here/moved/share/ds-accel/ds-accel.json"

linker=$(readelf -lW "$program" | sed -n 's/.*interpreter: \(.*\)]$/\1/p')
report list 0 "$linker" "$dir/moved/bin/ds-accel" list --json
has "run by the dynamic linker" "$(at 'plugins/*/path')" "$here/moved/lib/ds-accel/ds_accel_mock.so"
mkdir "$dir/apart"
for part in bin libexec share; do cp -r "$build/$part" "$dir/apart"; done
mkdir "$dir/apart/lib"
ln -s "$here/moved/lib/libds_accel.so.0" "$dir/apart/lib/"
report list 0 "$dir/apart/bin/ds-accel" list --json
has "the library beside it is a link" "$(at 'plugins/*/path')" \
    "$here/moved/lib/ds-accel/ds_accel_mock.so"

# A library in a name space of its own is found where it is, too.
cat >"$dir/apart.c" <<'END'
#include <dlfcn.h>
#include <ds_accel.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = dlmopen(LM_ID_NEWLM, argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    int32_t (*create)(const struct ds_accel_options *, ds_accel_t **);
    int32_t (*report)(ds_accel_t *, uint32_t, const char *, uint32_t, char **);
    ds_accel_t *context;
    char *text;

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&create = dlsym(library, "ds_accel_create");
    *(void **)&report = dlsym(library, "ds_accel_report");
    if (create(NULL, &context) < 0 ||
        report(context, DS_ACCEL_REPORT_LIST, NULL, DS_ACCEL_FORMAT_JSON, &text) < 0) {
        return 1;
    }
    puts(text);
    return 0;
}
END
cp -r -P "$build/lib" "$dir/moved/lib64"
if [ -z "${SAN:-}" ]; then
    "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -I"$build/stage/program" -o "$dir/apart.out" "$dir/apart.c" -ldl
    report list 0 "$dir/apart.out" "$dir/moved/lib64/libds_accel.so.0"
    has "by dlmopen()" "$(at 'plugins/*/path')" "$here/moved/lib64/ds-accel/ds_accel_mock.so"
fi

# ---- raised rights ------------------------------------------------------------------------------

# Real and effective user differ, as in a setuid program.
secure() {
    env DS_ACCELERATOR=mock DS_ACCEL_LOG=debug DS_ACCEL_MOCK_DEVICE_COUNT=1 XDG_CONFIG_HOME="$dir/home/.config" \
        setpriv --ruid 65534 --euid 0 "$secured" "$@"
}
if [ "$(id -u)" = 0 ] && setpriv --ruid 65534 --euid 0 true 2>/dev/null; then
    secured=$program
    answers cpu secure detect
    report config-env 0 secure config show --env --json
    is "variables are ignored" "ignored" "$(at 'variables/*/origin' | tr ' ' '\n' | sort -u)"
    is "and have their default" "null" "$(at variables/name=DS_ACCELERATOR/value)"
    report config-show 0 secure config show --json
    is "the user's files too" "package package" "$(at 'files/*/layer')"
    report info 0 secure info mock --json
    is "a plugin's variables too" "2" "$(at device_count)"
    # What lies beside the program is believed as long as nobody else can have put it there.
    secured=$dir/moved/bin/ds-accel
    report list 0 secure list --json
    has "an own folder beside it" "$(at 'plugins/*/path')" "$here/moved/lib/ds-accel/ds_accel_mock.so"
    chmod 777 "$dir/moved"
    report list 0 secure list --json
    lacks "a folder that all write to" "$(at 'plugins/*/path')" "$here/moved"
    report list 0 "$secured" list --json
    has "without raised rights the trust gate tells" "$(at 'plugins/*/reason')" "parent_writable"
fi

# ---- internal errors ----------------------------------------------------------------------------

# A file that takes 16 MiB to parse, and less than that to be had: where the program says that memory is
# exhausted, and it does somewhere on the way, that is 7.
if [ -z "${SAN:-}" ]; then
    { printf '{"deny": ["x"]}' && head -c 1000000 /dev/zero | tr '\0' ' '; } >"$dir/large.json"
    codes=
    for limit in 10000 12000 14000 16000 18000 20000; do
        run sh -c "ulimit -v $limit && exec '$program' config check '$dir/large.json'"
        case $err in *"host memory is exhausted"*) codes="$codes $code" ;; esac
    done
    is "without memory" 7 "$(printf '%s\n' "$codes" | tr ' ' '\n' | grep . | sort -u)"
fi

finish
