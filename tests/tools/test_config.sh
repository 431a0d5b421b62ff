#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The commands env and config: the variables that a shell sets, problems in files, values and their
# origins.  test_config.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/cli.sh
. "$(dirname "$0")/cli.sh"

# ---- env -----------------------------------------------------------------------------------------

# shellcheck disable=SC2016 # expanded by the inner shell
answers "0 0 yes" sh -c 'unset PT_HPU_LAZY_ACC_PAR_MODE PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES
    eval "$("$0" env hpu)"
    echo "$PT_HPU_LAZY_ACC_PAR_MODE $PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES $(export -p |
        grep -q PT_HPU_LAZY_ACC_PAR_MODE && echo yes)"' "$program"
# shellcheck disable=SC2016 # expanded by the inner shell
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

# The shell sets every value exactly as it is in the file; the rule of each variable decides whether
# it is set.
cat >"$dir/env.json" <<'END'
{"backends": {"hpu": {"env": [
  {"name": "ODD", "value": "it's \"$HOME\" `id` $(id) \\ *;\nnext  ", "rule": "always"},
  {"name": "GONE", "rule": "unset"},
  {"name": "KEPT", "value": "new", "rule": "if-unset"},
  {"name": "TAKEN", "value": "new", "rule": "always"}
]}}}
END
# shellcheck disable=SC2016 # expanded by the inner shell
answers "it's \"\$HOME\" \`id\` \$(id) \\ *;
next  |unset|old|new" sh -c 'export GONE=old KEPT=old TAKEN=old
    eval "$("$0" --config "$1" env hpu)"
    printf "%s\n" "$ODD|${GONE-unset}|$KEPT|$TAKEN"' "$program" "$dir/env.json"
report env 0 env KEPT=old TAKEN=old "$program" --config "$dir/env.json" env hpu --json
is "which are applied" "true false false true" "$(at 'variables/*/applied')"
is "where from" "$dir/env.json:2 $dir/env.json:5" "$(at variables/0/origin variables/3/origin)"

# ---- config --------------------------------------------------------------------------------------

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

# Files can be named by relative and absolute paths.
good=$dir/good.json
printf '{"deny": ["x"]}\n' >"$good"
mkdir -p "$dir/directory" "$dir/empty" "$dir/closed"
cp "$good" "$dir/directory/a.json"
cp "$dir/three.json" "$dir/directory/b.json"
cp "$dir/three.json" "$dir/directory/not-one.txt"
# checks CODE PROBLEMS FILES ARGUMENTS...: check that the command exits with CODE and reports the
# same number of problems and files in text and in JSON.
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
checks 5 6 2 "$dir/three.json" "$dir/directory/b.json"
checks 5 3 2 "$dir/directory"
has "a directory: which file" "$out" "$dir/directory/b.json:2:"
checks 0 0 0 "$dir/empty"
checks 5 1 1 "$dir/none.json"
has "a missing file" "$out" "$dir/none.json:1:1: cannot read it: No such file or directory"
checks 0 0 1 "$build/share/ds-accel/ds-accel.json" "$good"
run "$program" config check -- "$good"
is "behind --" "0 1 configuration file, no problem" "$code $out"
checks 0 0 2 --config "$dir/mock.json" "$good"
checks 5 3 2 --config "$dir/three.json" "$good"
checks 5 3 1 -v "$dir/three.json"
(cd "$dir" && run "$program" config check good.json directory/b.json ./none.json && printf '%s\n' "$code" "$out" >relative) || true
is "relative paths" "5
directory/b.json:2:21: directory/b.json:2:44: directory/b.json:3:12: ./none.json:1:1: " \
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

# The configuration directory of the user is read; a file given with --config replaces it; a
# relative XDG_CONFIG_HOME counts as unset.
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
plugins "$dir/fourth" cuda
echo "{\"plugin_dirs\": [\"$dir/fourth\"]}" >"$dir/dirs.json"
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
is "variables" "$names DS_ACCEL_CACHE_DIR DS_ACCEL_ALLOCATOR DS_ACCEL_DECISION DS_ACCEL_RESERVED_CPUS DS_ACCEL_LAYERS DS_ACCEL_TRACE_FILE DS_ACCEL_RACE_FILE DS_ACCEL_OPS_ISA DS_ACCEL_ROOT" "$(at 'variables/*/name')"
is "one that is set" "mock environment null" "$(at variables/0/value variables/0/origin variables/0/default)"
is "one that is not" "null default" "$(at variables/1/value variables/1/origin)"
is "one that is empty is as if not set" "warn default warn" \
    "$(at variables/3/value variables/3/origin variables/3/default)"
run "$program" config --env show
is "config show --env" "0 NAME VALUE ORIGIN MEANING 1" \
    "$code $(printf '%s\n' "$out" | sed -n '1s/  */ /gp') $(count "$out" '^DS_ACCEL_LOG  *warn  *default ')"

finish
