#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The command ds-accel: the chosen accelerator, exit codes, stdout and stderr, options, and the
# directory that it runs from. Reports are tested by test_reports.sh, configuration by
# test_config.sh.  test_cli.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/cli.sh
. "$(dirname "$0")/cli.sh"

# ---- the validator itself ------------------------------------------------------------------------

# invalid PART JSON: check that the validator rejects JSON as output of `list --json`, with a
# message that contains PART.
invalid() {
    code=0
    # shellcheck disable=SC2059 # the argument has escapes
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

# ---- detect --------------------------------------------------------------------------------------

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

# An option overrides the environment, which overrides the configuration, which overrides detection.
set -- "$program" --plugin-dir "$dir/two" --config "$dir/mock.json"
answers cuda env DS_ACCELERATOR=cpu "$@" -a cuda detect
answers cpu env DS_ACCELERATOR=cpu "$@" detect
answers mock "$@" detect
answers npu "$program" --plugin-dir "$dir/two" detect

# A plugin that fails to start is skipped, with a report.
run env DS_ACCEL_NPU_FAIL=init=driver "$program" --plugin-dir "$dir/two" detect
is "the next is taken" "0 cuda" "$code $out"
has "and that is said" "$err" "ds-accel: warning: detect: npu passed its probe but failed to start"
report detect 0 env DS_ACCEL_NPU_FAIL=init=driver "$program" -q --plugin-dir "$dir/two" detect --json
is "its state" "error start_failed start" \
    "$(at candidates/0/state candidates/0/reason candidates/0/stage)"

# xpu with the plain driver defers to an available cuda.
plugins "$dir/defer" xpu cuda
report detect 0 env DS_ACCEL_XPU_VARIANT=driver "$program" --plugin-dir "$dir/defer" detect --json
is "xpu defers" "cuda available deferred" \
    "$(at accelerator candidates/name=xpu/state candidates/name=xpu/reason)"
run env DS_ACCEL_XPU_VARIANT=driver "$program" --plugin-dir "$dir/defer" explain
has "explain says so" "$out" "reason deferred: the configuration prefers another accelerator"
answers xpu env DS_ACCEL_XPU_VARIANT=driver DS_ACCEL_CUDA_AVAILABLE=false \
    "$program" -q --plugin-dir "$dir/defer" detect

# ---- exit codes ----------------------------------------------------------------------------------

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

# 6: nothing is available, because every plugin was rejected for security.
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
# Each command works with the shipped configuration.
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

# 2: usage. Each message mentions --help.
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

# 1: a problem or a failure.
refuses 1 'did you mean "cuda"?' "$program" info cudaa
has "what is known" "$err" "known: cuda, rocm"
refuses 1 "frobnicate" "$program" env frobnicate
refuses 1 "frobnicate" "$program" info frobnicate --json
refuses 1 "ds_accel_frobnicate.so" "$program" explain frobnicate
has "where it was looked for" "$err" "$(cd "$build" && pwd -P)/lib/ds-accel"
refuses 1 "No such file" "$program" lint "$dir/none.so"

# Output that cannot be written is a failure.
if [ -c /dev/full ]; then
    for command in detect list info explain "env hpu" "config show" "config check" "list --json" --help \
        --version "help list" "lint $mocks/ds_accel_cuda.so"; do
        code=0
        # shellcheck disable=SC2086 # a list of words
        "$program" $command >/dev/full 2>"$dir/stderr" || code=$?
        is "$command >/dev/full" "1" "$code"
        has "$command >/dev/full says so" "$(cat "$dir/stderr")" "ds-accel: writing the output failed: "
    done
fi
for command in detect "list --json" --help; do
    code=0
    # shellcheck disable=SC2086 # a list of words
    "$program" $command >&- 2>"$dir/stderr" || code=$?
    is "$command >&-" "1" "$code"
    has "$command >&- says so" "$(cat "$dir/stderr")" "ds-accel: writing the output failed: "
done
is "stderr closed" "cpu" "$(env DS_ACCEL_CUDA_AVAILABLE=false "$program" --plugin-dir "$dir/cuda" detect 2>&-)"
is "stdin closed" "cpu" "$("$program" detect <&-)"
# A pipe that takes the number of stderr gets what is logged: it must not be the one with the exit code.
for closed in "<&- 2>&-" "<&- 2>&- 3>&-" "2>&-"; do
    code=0
    eval "env DS_ACCEL_CUDA_AVAILABLE=false \"\$program\" --plugin-dir \"\$dir/cuda\" ops show cpu_adam $closed" >"$dir/out" || code=$?
    is "ops show $closed" "0 " "$code $([ -s "$dir/out" ] || echo nothing)"
done

# ---- the same output twice -----------------------------------------------------------------------

# steady: mask the values that depend on time and load.
steady() {
    "$program" --plugin-dir "$dir/two" "$@" --json |
        sed -E 's/"(elapsed_us|available_memory_bytes|process_memory_bytes)": [0-9]+/"\1": 0/'
}

for command in detect list explain "info cpu" "info mock" "env hpu" "config show" "config check" \
    "config show --env"; do
    # shellcheck disable=SC2086 # a list of words
    is "$command --json twice" "$(steady $command)" "$(steady $command)"
done

# ---- messages on stderr --------------------------------------------------------------------------

# Drop the options that the configuration declares for cuda, because the mock has other options.
echo '{"backends": {"cuda": {"options": null}}}' >"$dir/undeclared.json"
set -- "$program" --plugin-dir "$dir/cuda" --config "$dir/undeclared.json"
warning="ds-accel: warning: detect: falling back to cpu: cuda is unavailable: no_driver: no module"
warning="$warning (see ds-accel explain cuda)"
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
answers cpu "$program" detect # no other plugin is installed: no warning
run env DS_ACCEL_PLUGINPATH=/x "$program" detect
is "an unknown variable" \
    "0 ds-accel: warning: env: unknown variable DS_ACCEL_PLUGINPATH; did you mean DS_ACCEL_PLUGIN_PATH?" \
    "$code $err"
run env DS_ACCEL_ZZZZZZZZZZZZ=/x "$program" detect
has "one that is like none" "$err" "unknown variable DS_ACCEL_ZZZZZZZZZZZZ (ds-accel config show --env lists them)"
answers cpu env DS_ACCEL_MOCK_DEVICE_COUNT=1 DS_ACCEL_XPU_EXTERNAL_X=1 "$program" detect

# A plugin's text cannot control a terminal or forge a line.
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

# ---- colours -------------------------------------------------------------------------------------

for command in list explain info "lint $mocks/ds_accel_cuda.so" "config show --env"; do
    # shellcheck disable=SC2086 # a list of words
    run env TERM=xterm "$program" $command
    lacks "no colours in a pipe: $command" "$out$err" "$escape"
done

# terminal ASSIGNMENT: print the output of `list` on a terminal, run with this environment setting.
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

# ---- help ----------------------------------------------------------------------------------------

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

# ---- positions of options ------------------------------------------------------------------------

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
answers mock "$program" -a cpu detect -a mock # the last option counts

# ---- working directory and locale ----------------------------------------------------------------

plugins "$dir/here/plugins" cuda
ln -s "$(realpath --relative-to="$dir/here" "$program")" "$dir/here/accel"
report detect 0 env -C "$dir/here" ./accel --plugin-dir plugins detect --json
is "a link and a relative directory" "$here/here/plugins/ds_accel_cuda.so" "$(at plugin/path)"
report detect 0 env -C "$dir/here" PATH="$dir/here:$PATH" DS_ACCEL_PLUGIN_PATH=plugins accel detect --json
is "found on PATH" "$here/here/plugins/ds_accel_cuda.so" "$(at plugin/path)"
answers cpu env -C / "$program" detect
mkdir "$dir/odd name"
cp "$mocks/ds_accel_cuda.so" "$dir/odd name/"
report list 0 "$program" --plugin-dir "$dir/odd name" list --json
is "a directory with a blank" "$here/odd name/ds_accel_cuda.so" "$(at plugins/0/path)"
plugins "$dir/directory-é" cuda
report list 0 "$program" --plugin-dir "$dir/directory-é" list --json
is "a directory with a letter of two bytes" "$here/directory-é/ds_accel_cuda.so" "$(at plugins/0/path)"
bytes=$dir/$(printf 'bytes-\377')
plugins "$bytes" cuda
report list 0 "$program" --plugin-dir "$bytes" list --json # the path is not UTF-8
answers cuda "$program" --plugin-dir "$bytes" detect
for locale in tr_TR.UTF-8 C.UTF-8 de_DE.UTF-8 nonsense; do
    is "list, LC_ALL=$locale" "$(LC_ALL=C "$program" list)" "$(LC_ALL=$locale "$program" list)"
    is "config show, LC_ALL=$locale" "$(LC_ALL=C "$program" config show)" \
        "$(LC_ALL=$locale "$program" config show)"
done

# ---- a moved prefix ------------------------------------------------------------------------------

# Plugins, helper and configuration are found beside the program, wherever it is and however it is
# called.
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

# A library in its own linker namespace finds its files too.
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

# ---- raised rights -------------------------------------------------------------------------------

mkdir -p "$dir/home/.config/ds-accel"
cp "$dir/mock.json" "$dir/home/.config/ds-accel/10.json"
# Real and effective user differ, as in a set-user-ID program.
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
    # Files beside the program are trusted if no other user can have put them there.
    secured=$dir/moved/bin/ds-accel
    report list 0 secure list --json
    has "an own directory beside it" "$(at 'plugins/*/path')" "$here/moved/lib/ds-accel/ds_accel_mock.so"
    chmod 777 "$dir/moved"
    report list 0 secure list --json
    lacks "a directory that all write to" "$(at 'plugins/*/path')" "$here/moved"
    report list 0 "$secured" list --json
    has "without raised rights the trust gate tells" "$(at 'plugins/*/reason')" "parent_writable"
fi

# ---- internal errors -----------------------------------------------------------------------------

# Parsing this file takes 16 MiB, more than the memory limits below allow. Whenever the program
# reports exhausted memory, the exit code must be 7, and at one limit at least it must report it.
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
