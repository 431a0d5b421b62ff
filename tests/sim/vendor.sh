# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh
#
# What the tests of npu and mlu share, behind tests/tools/lib.sh: verdicts, variants of a machine,
# the calling program, every call that can fail, and wrong plugins. $build, $here and $vendor are set.

unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT SIM_RANGES DS_ACCEL_ROOT 2>/dev/null || true
: "${CC:=gcc}"
export SIM_BUILD="$build"
sim=$here/ds-accel-sim
machine=$here/machines/$vendor.json
plugin=$build/lib/ds-accel/ds_accel_$vendor.so

# The calling program; a sanitizer's runtime must be the program's too.
# shellcheck disable=SC2086 # no flag is no word
"$CC" -std=c11 -D_GNU_SOURCE -g ${SAN:+-fsanitize=$SAN} -I"$build/include/ds-accel" "$here/calls/calls.c" \
    -o "$dir/calls" -ldl

# variant NAME PYTHON: the machine, changed by a statement about m (the machine) and v (the vendor's).
variant() {
    python3 - "$machine" "$vendor" "$2" >"$dir/$1.json" <<'PYTHON'
import json
import sys

m = json.load(open(sys.argv[1]))
v = m["vendors"][sys.argv[2]]
exec(sys.argv[3])
print(json.dumps(m))
PYTHON
}

# verdict COMMAND...: what `list` says of the vendor, run by the command: "STATE REASON DETAIL".
verdict() {
    "$@" "$build/bin/ds-accel" -q list --json 2>/dev/null | python3 -c '
import json
import sys

for plugin in json.load(sys.stdin)["plugins"]:
    if plugin["name"] == sys.argv[1]:
        print(plugin["state"], plugin["reason"] or "-", plugin["detail"])' "$vendor"
}

# calls MACHINE COMMAND...: sets $out and $code; $dir/report is new.
calls() {
    where=$1
    shift
    rm -f "$dir/report"
    SIM_REPORT="$dir/report" run "$sim" "$where" "$dir/calls" "$plugin" "$@"
}

# bare DIR: the machine's files, and no library of the simulator.
bare() {
    [ -d "$dir/root" ] || { mkdir "$dir/root" && "$here/machine.py" "$machine" "$dir/root"; }
    env DS_ACCEL_ROOT="$dir/root" "$@"
}

# refused: $refused is the verdict of one who may not open the nodes (the superuser may open all).
refused() {
    variant refused 'v["permission"] = False'
    mkdir "$dir/refused" && "$here/machine.py" "$dir/refused.json" "$dir/refused"
    chmod 755 "$dir" "$dir/refused"
    if [ "$(id -u)" != 0 ]; then
        refused=$(verdict env DS_ACCEL_ROOT="$dir/refused")
    elif setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$build/bin/ds-accel"; then
        refused=$(XDG_RUNTIME_DIR='' verdict setpriv --reuid=65534 --regid=65534 --clear-groups \
            env DS_ACCEL_ROOT="$dir/refused")
    else
        echo "no permission: not run, another user cannot reach $build"
        refused="unavailable no_permission /dev/davinci_manager /dev/cambricon_ctl"
    fi
    has "no permission" "$refused" "unavailable no_permission"
}

# conforms NAME MACHINE PASSED: the suite; prints its figures.
conforms() {
    run "$sim" "$2" "$build/bin/ds-accel" conformance "$vendor" -v
    figures=$(printf '%s\n' "$out" | sed -n '$s/.*device 0: //p')
    is "$1: what fails" "" "$(printf '%s\n' "$out" | grep '^DSA-P[0-9]* *failed' || true)"
    is "$1" "0 $3" "$code $figures"
}

# every_call ALIVE CODE: the Nth call of the vendor's libraries fails, for every N. Nothing crashes, a
# failure is told with the vendor's code (a telemetry or range library that fails is just not
# there), and nothing stays alive but what a failing destructor, whose name matches ALIVE, was asked for.
every_call() {
    calls "$machine" work
    is "work: no failure" "0 " "$code $out"
    total=$(sed -n 's/^calls //p' "$dir/report")
    n=1
    while [ "$n" -le "$total" ]; do
        SIM_FAIL="*:$n" calls "$machine" work
        failed_call=$(sed -n 's/^failed //p' "$dir/report" | head -1)
        case $code in
        0) pass ;;
        1) has "failing call $n, $failed_call, is told with the vendor's code" "$out" "$2" ;;
        *) fail "failing call $n, $failed_call: exit $code" "$out
$err" ;;
        esac
        if grep -q '^alive' "$dir/report"; then
            printf '%s\n' "$failed_call" | grep -Eq "$1" ||
                fail "failing call $n, $failed_call: something is left" "$(cat "$dir/report")"
        else
            pass
        fi
        n=$((n + 1))
    done
}

# wrong NAME SED FILE TEST...: the plugin with one mistake, made by sed in one of its files, does not
# pass the test (a command, which finds the plugin in $wrong).
wrong() {
    name=$1
    edit=$2
    file=$3
    shift 3
    [ -z "${SAN:-}" ] || return 0
    rm -rf "$dir/wrong"
    mkdir "$dir/wrong"
    cp "$here/../../plugins/$vendor"/*.[ch] "$dir/wrong"
    sed -i "$edit" "$dir/wrong/$file"
    if cmp -s "$dir/wrong/$file" "$here/../../plugins/$vendor/$file"; then
        fail "$name: the edit changes nothing"
        return 0
    fi
    case $file in
    *.h) sources=$(cd "$dir/wrong" && ls ./*.c) ;;
    *) sources=$file ;;
    esac
    objects=
    for source in "$dir/wrong"/*.c; do
        object=$build/obj/plugins/$vendor/$(basename "$source" .c).o
        case " $(echo "$sources" | tr '\n' ' ') " in
        *"$(basename "$source") "*)
            object=$dir/wrong/$(basename "$source" .c).o
            "$CC" -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -w -O1 -I"$build/include/ds-accel" \
                -I"$here/../../plugins/common" -c -o "$object" "$source"
            ;;
        esac
        objects="$objects $object"
    done
    wrong=$dir/wrong/ds_accel_$vendor.so
    # shellcheck disable=SC2086 # a list
    "$CC" -shared -Wl,-z,now,-z,nodelete -o "$wrong" $objects "$build"/obj/plugins/common/*.o -lpthread -ldl
    if "$@" >"$dir/wrong.out" 2>&1; then
        fail "$name is not noticed" "$(cat "$dir/wrong.out")"
    else
        pass
    fi
}

# Tests for `wrong`.
wrong_works() {
    rm -f "$dir/report"
    SIM_REPORT="$dir/report" timeout 60 "$sim" "${1:-$machine}" "$dir/calls" "$wrong" work &&
        ! grep '^alive' "$dir/report"
}

wrong_conforms() {
    timeout 60 "$sim" "${2:-$machine}" "$build/bin/ds-accel" conformance "$wrong" --rule "$1"
}

wrong_says() {
    # shellcheck disable=SC2086 # a command with its argument
    "$sim" "$machine" "$dir/calls" "$wrong" $1 >"$dir/said" && grep -Fq "$2" "$dir/said"
}
