# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh disable=SC2154
#
# Functions shared by most vendors' tests; sourced after tests/tools/lib.sh: verdicts, variants of a
# machine, scenarios, every call that can fail, and wrong plugins. $build, $here and $vendor are
# set.

# shellcheck source=tests/sim/drive.sh
. "$here/drive.sh"
sim=$here/ds-accel-sim
machine=$here/machines/$vendor.json
plugin=$build/lib/ds-accel/ds_accel_$vendor.so

# variant NAME PYTHON: writes the machine, changed by a statement about m (the machine) and v (the
# vendor), to $dir/NAME.json.
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

# verdict COMMAND...: prints the vendor's entry of `list`, run by COMMAND: "STATE REASON DETAIL".
verdict() {
    "$@" "${reached:-$build}/bin/ds-accel" -q list --json 2>/dev/null | python3 -c '
import json
import sys

for plugin in json.load(sys.stdin)["plugins"]:
    if plugin["name"] == sys.argv[1]:
        print(plugin["state"], plugin["reason"] or "-", plugin["detail"])' "$vendor"
}

# drive MACHINE SCENARIO...: runs the scenario on the machine, like driven; writes a new
# $dir/report.
drive() {
    where=$1
    shift
    rm -f "$dir/report"
    SIM_REPORT="$dir/report" driven "$sim" "$where" "$drive" "$plugin" "$@"
}

# bare COMMAND...: runs COMMAND with the machine's files ($dir/root), and without the simulator's
# libraries.
bare() {
    [ -d "$dir/root" ] || { mkdir "$dir/root" && "$here/machine.py" "$machine" "$dir/root"; }
    env DS_ACCEL_ROOT="$dir/root" "$@"
}

# as_plain_user COMMAND...: like verdict COMMAND..., as a user without the right to open every file.
as_plain_user() {
    # shellcheck disable=SC2086 # words
    XDG_RUNTIME_DIR='' verdict $as_user "$@"
}

# refused NODE: checks the verdict while no user may open the nodes: it contains NODE, and it
# changes after permission is granted.
refused() {
    variant refused 'v["permission"] = False
for d in v["devices"]: d["permission"] = False'
    mkdir "$dir/refused" && "$here/machine.py" "$dir/refused.json" "$dir/refused"
    chmod 755 "$dir" "$dir/refused"
    unprivileged "no permission" || return 0
    is "no permission" "unavailable no_permission $1: no permission to read and write for user $user" \
        "$(as_plain_user env DS_ACCEL_ROOT="$dir/refused")"
    chmod -R a+rwX "$dir/refused/dev"
    granted=$(as_plain_user env DS_ACCEL_ROOT="$dir/refused" \
        "DS_ACCEL_$(echo "$vendor" | tr '[:lower:]' '[:upper:]')_LIBRARY=/nowhere/lib.so")
    has "no permission, before it is granted" "$granted" "unavailable library_missing /nowhere/lib.so"
    reached=
}

# conforms NAME MACHINE PASSED: runs the conformance suite; checks its counts.
conforms() {
    run "$sim" "$2" "$build/bin/ds-accel" conformance "$vendor" -v
    figures=$(printf '%s\n' "$out" | sed -n '$s/.* device.*: //p')
    is "$1: what fails" "" "$(printf '%s\n' "$out" | grep '^DSA-P[0-9]* *failed' || true)"
    is "$1" "0 $3" "$code $figures"
}

# every_call SCENARIO ALIVE CODE: let the Nth call of the vendor's libraries fail, for every N of
# the sample. The scenario must not crash; it must report a failure with the vendor's code (a
# telemetry or range library that fails counts as absent); the only objects left may be those that a
# failing destructor, whose name matches ALIVE, should have destroyed.
every_call() {
    drive "$machine" "$1"
    is "$1: no failure" "0 " "$code $out"
    total=$(sed -n 's/^calls //p' "$dir/report")
    bare true # makes the machine's files, once for all runs
    n=0
    runs=0
    while [ "$n" -lt "$total" ]; do
        n=$((n + 1))
        # The sample contains at least one call of each scenario: the last one, if no other.
        taken 10 || { [ "$n" -eq "$total" ] && [ "$runs" -eq 0 ]; } || continue
        runs=$((runs + 1))
        DS_ACCEL_ROOT=$dir/root SIM_FAIL="*:$n" drive "$machine" "$1"
        failed_call=$(sed -n 's/^failed //p' "$dir/report" | head -1)
        case $code in
        0) pass ;;
        1) has "failing call $n, $failed_call, is told with the vendor's code" "$out" "$3" ;;
        *) fail "failing call $n, $failed_call: exit $code" "$out
$err" ;;
        esac
        if grep -q '^alive' "$dir/report"; then
            printf '%s\n' "$failed_call" | grep -Eq "$2" ||
                fail "failing call $n, $failed_call: something is left" "$(cat "$dir/report")"
        else
            pass
        fi
    done
}

# wrong NAME SED FILE TEST...: builds the plugin with one mistake, made by sed in one of its files
# or in a source of the frame, common/NAME.c, and checks that the plugin fails the test (a command,
# which finds the plugin in $wrong). A sample of the mistakes is tested.
wrong() {
    name=$1
    edit=$2
    file=$3
    shift 3
    [ -z "${SAN:-}" ] || return 0
    rm -rf "$dir/wrong"
    mkdir "$dir/wrong"
    cp "$here/../../plugins/$vendor"/*.[ch] "$dir/wrong"
    right=$here/../../plugins/$vendor/$file
    frame=$(ls "$build"/obj/plugins/common/*.o)
    case $file in
    common/*.c)
        right=$here/../../plugins/$file
        file=${file#common/}
        cp "$right" "$dir/wrong"
        frame=$(printf '%s\n' "$frame" | grep -v "/${file%.c}[.]o\$")
        ;;
    esac
    sed -i "$edit" "$dir/wrong/$file"
    if cmp -s "$dir/wrong/$file" "$right"; then
        fail "$name: the edit changes nothing"
        return 0
    fi
    taken 5 || return 0
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
    # shellcheck disable=SC2086 # lists
    "$CC" -shared -Wl,-z,now,-z,nodelete -o "$wrong" $objects $frame -lpthread -ldl
    if "$@" >"$dir/wrong.out" 2>&1; then
        fail "$name is not noticed" "$(cat "$dir/wrong.out")"
    else
        pass
    fi
}

# wrong_works, wrong_conforms and wrong_says are tests for `wrong`.
wrong_works() {
    rm -f "$dir/report"
    SIM_REPORT="$dir/report" timeout 60 "$sim" "${1:-$machine}" "$drive" "$wrong" work &&
        ! grep '^alive' "$dir/report"
}

wrong_conforms() {
    timeout 60 "$sim" "${2:-$machine}" "$build/bin/ds-accel" conformance "$wrong" --rule "$1"
}

# says PLUGIN SCENARIO TEXT: succeeds if the plugin's scenario succeeds and prints TEXT.
says() {
    # shellcheck disable=SC2086 # a scenario with its argument
    "$sim" "$machine" "$drive" "$1" $2 >"$dir/said" && grep -Fq -- "$3" "$dir/said"
}

# The right plugin must print the text: otherwise every wrong plugin would count as detected.
wrong_says() {
    says "$plugin" "$1" "$2" || { echo "the right plugin does not say: $2" && return 0; }
    says "$wrong" "$1" "$2"
}
