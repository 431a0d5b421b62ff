#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The commands cache and quarantine; and the cache when time passes, when the disk is full, and when
# a plugin kills or exits the process that uses it.  test_cache.sh BUILD
#
# Time passes in time namespaces, which shift CLOCK_BOOTTIME; file systems are mounted in mount
# namespaces. Both need root: otherwise these parts are skipped with a message. No time stamp
# depends on the wall clock, which affects only the times printed for people.
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
umask 022
faults=$build/tests/fixtures/faults
program=$build/bin/ds-accel
python=${PYTHON:-/usr/bin/python3}
plugins=$dir/plugins
config=$dir/config.json
cache=$dir/cache
count=$dir/count
unset DS_ACCEL_CACHE
export DS_ACCEL_CACHE_DIR="$cache" DS_TEST_COUNT_FILE="$count"

validate() {
    "$python" "$source/tests/tools/validate.py" "$@"
}

# fresh: start with one good plugin, an empty cache and no time shift.
fresh() {
    rm -rf "$plugins" "$cache" "$count"
    mkdir -p "$plugins"
    cp "$faults/neighbour/ds_accel_neighbour.so" "$plugins/"
    printf '{"detection_order": ["faulty", "counted", "neighbour"]}\n' >"$config"
    after=
}

# put FAULT [NAME]: install one more plugin, replacing an earlier one of the same name.
put() {
    rm -f "$plugins/ds_accel_${2:-faulty}.so"
    cp "$faults/$1/ds_accel_${2:-faulty}.so" "$plugins/"
}

# ds_accel ARGUMENTS...: run the command in a time namespace that is $after seconds ahead, if $after
# is set.
after=
ds_accel() {
    # shellcheck disable=SC2086 # a list of words
    run ${after:+unshare --time --boottime $after} "$program" --config "$config" \
        --plugin-dir "$plugins" "$@"
}

# chooses NAME WANTED: check that detect prints WANTED and succeeds.
chooses() {
    ds_accel detect
    is "$1" "0 $2" "$code $out"
}

# probed NAME TIMES: check that the plugin "counted" was probed TIMES times in total.
probed() {
    is "$1: times that it was asked" "$2" "$([ ! -f "$count" ] || wc -c <"$count" | tr -d ' ')"
}

# from_json NAME SCHEMA WANTED PATH...: check that the last output is JSON of SCHEMA and that its
# values at the paths, joined on one line, equal WANTED.
from_json() {
    name=$1
    schema=$2
    wanted=$3
    shift 3
    is "$name" "$wanted" "$(printf '%s\n' "$out" |
        validate "$source/conf/schema/$schema.json" "$@" 2>&1 | paste -sd ' ' -)"
}

# strikes NAME WANTED: check that the plugin faulty has WANTED, "strikes reason quarantined"; if
# WANTED is empty, that no plugin has a strike.
strikes() {
    ds_accel quarantine list --json
    if [ -n "$2" ]; then
        from_json "$1" quarantine "$2" 'entries/*/strikes' 'entries/*/reason' 'entries/*/quarantined'
    else
        from_json "$1" quarantine 0 'entries/#'
    fi
}

skip() {
    echo "cache: not tested: $1: $2"
}

can_shift=
! unshare --time --boottime 5 true 2>/dev/null || can_shift=yes
[ -n "$can_shift" ] || skip "what happens when time passes" "there are no time namespaces here"
can_mount=
! unshare --mount sh -c "mkdir -p '$dir/mnt' && mount -t tmpfs none '$dir/mnt'" 2>/dev/null ||
    can_mount=yes
[ -n "$can_mount" ] || skip "a full disk, a read-only one" "nothing can be mounted here"

# ---- the commands --------------------------------------------------------------------------------

fresh
put count counted
ds_accel cache show
is "show: nothing yet" "0 $cache/verdicts (rw)
no verdict is remembered " "$code $out $err"
ds_accel quarantine list
is "list: nothing yet" "0 no plugin has crashed or hung recently " "$code $out $err"
ds_accel quarantine list --json
from_json "list --json: nothing yet" quarantine 0 'entries/#'
ds_accel cache clear
is "clear: nothing yet" "0  " "$code $out $err"
is "to look at it makes no directory" no "$([ -e "$cache" ] && echo yes || echo no)"
(cd "$dir" && DS_ACCEL_CACHE_DIR=relative "$program" cache show >"$dir/shown" 2>&1)
is "a relative path" "ds-accel: warning: cache: not used: relative is not an absolute path
not used: relative is not an absolute path no" \
    "$(cat "$dir/shown") $([ -e "$dir/relative" ] && echo yes || echo no)"
chooses "cold" counted
chooses "warm" counted
probed "warm" 1
ds_accel cache show
is "show" "0 $cache/verdicts (rw)
NAME     STATE      DEVICES  AGE      EXPIRES  PATH, REASON
counted  available  1        0 s      59 min   $plugins/ds_accel_counted.so" \
    "$code $(printf '%s\n' "$out" | sed 's/[12] s  /0 s  /')"
ds_accel cache show --json
from_json "show --json" cache "$cache $cache/verdicts rw counted available 1" \
    directory file mode 'entries/*/name' 'entries/*/state' 'entries/*/device_count'
ds_accel cache clear
is "clear" "0  " "$code $out $err"
ds_accel cache show --json
from_json "show --json: cleared" cache 0 'entries/#'
chooses "cleared" counted
probed "cleared" 2

for arguments in "" "shows" "show x" "clear x"; do
    # shellcheck disable=SC2086 # a list of words
    ds_accel cache $arguments
    is "usage: cache $arguments" "2 " "$code $out"
done
for arguments in "" "lists" "list x" "clear x y" "clear x"; do
    # shellcheck disable=SC2086 # a list of words
    ds_accel quarantine $arguments
    [ "$arguments" = "clear x" ] || is "usage: quarantine $arguments" "2 " "$code $out"
done
is "clear of one that has no strikes" \
    "1 ds-accel: no plugin named \"x\" has crashed or hung recently" "$code $err"

DS_ACCEL_CACHE=off ds_accel cache show
is "show: off" "0 not used: DS_ACCEL_CACHE is off" "$code $out"
DS_ACCEL_CACHE=off ds_accel cache show --json
from_json "show --json: off" cache "null null DS_ACCEL_CACHE is off off" directory file unused mode
DS_ACCEL_CACHE=ro ds_accel cache clear
is "clear: ro" "1 ds-accel: nothing was cleared: DS_ACCEL_CACHE is ro" "$code $err"
ds_accel --root / cache show --json
from_json "show --json: a recorded machine" cache "null a recorded machine has no cache" directory unused
DS_ACCEL_CACHE_DIR='' XDG_RUNTIME_DIR="$dir" ds_accel cache show --json
from_json "the directory of the session" cache "$dir/ds-accel" directory
rm -rf "$dir/ds-accel"
if [ "$(id -u)" = 0 ]; then
    # Another user's directory, as su leaves it.
    mkdir -m 700 "$dir/theirs"
    chown 12345 "$dir/theirs"
    DS_ACCEL_CACHE_DIR='' XDG_RUNTIME_DIR="$dir/theirs" ds_accel cache show --json
    is "nothing is made in another user's directory" "0 0" "$code $(find "$dir/theirs" -mindepth 1 | wc -l)"
    chmod 777 "$cache"
    ds_accel cache clear
    is "clear: fails" 1 "$code"
    has "clear: which directory, and why" "$err" "
ds-accel: nothing was cleared: $cache: it has owner 0, mode 0777; expected a directory that this user owns"
    DS_ACCEL_LOG=error ds_accel cache show
    has "show: which directory, and why, said once" "0 $out" "0 not used: $cache: it has owner 0, mode 0777; expected"
    chmod 700 "$cache"
fi

# ---- time ----------------------------------------------------------------------------------------

if [ -n "$can_shift" ]; then
    fresh
    put count counted
    chooses "good: cold" counted
    after=3500
    chooses "good: within the hour" counted
    probed "good: within the hour" 1
    ds_accel cache show --json
    from_json "good: within the hour" cache available 'entries/*/state'
    after=3700
    chooses "good: after an hour" counted
    probed "good: after an hour" 2
    # The cache was written one hour ahead, so its time stamp is now in the future.
    after=
    chooses "a stamp from the future" counted
    probed "a stamp from the future" 3

    fresh
    put probe_segv
    chooses "bad: cold" neighbour
    strikes "one strike" "1 probe_segv false"
    after=50
    chooses "bad: within the minute" neighbour
    strikes "its verdict still holds" "1 probe_segv false"
    after=70
    chooses "bad: after a minute" neighbour
    strikes "two strikes" "2 probe_segv true"

    fresh
    put probe_segv
    ds_accel list
    ds_accel explain
    strikes "two reports within the minute" "1 probe_segv false"
    after=50
    ds_accel explain
    strikes "a third within the minute" "1 probe_segv false"
    after=70
    ds_accel explain
    strikes "a report after a minute" "2 probe_segv true"
fi

# ---- quarantine ----------------------------------------------------------------------------------

# crash_again AFTER STRIKES SECONDS: probe AFTER seconds later; the plugin must then have STRIKES
# and be quarantined for SECONDS.
crash_again() {
    after=$1
    chooses "asked after $1 s" neighbour
    strikes "asked after $1 s" "$2 probe_segv true"
    ds_accel quarantine list --json
    left=$(printf '%s\n' "$out" | validate - entries/0/remaining_s)
    is "strike $2: left alone for $3 s, not $left" yes \
        "$([ "$left" -le "$3" ] && [ "$left" -gt $(($3 - 20)) ] && echo yes || echo no)"
}

fresh
put probe_segv
DS_ACCELERATOR=faulty ds_accel detect
is "forced: it crashes" "4 " "$code $out"
DS_ACCELERATOR=faulty ds_accel detect
strikes "forced twice" "2 probe_segv true"
chooses "left alone" neighbour
ds_accel detect --json
from_json "left alone: detect" detect "quarantined quarantined" \
    candidates/name=faulty/state candidates/name=faulty/reason
has "left alone: how long" "$out" "2 strikes, the last: probe_segv: SIGSEGV"
ds_accel list --json
from_json "left alone: list" list quarantined plugins/name=faulty/state
ds_accel explain --json faulty
from_json "left alone: explain" explain "quarantined 2 quarantine" \
    candidates/0/state candidates/0/strikes candidates/0/stage
ds_accel doctor
has "left alone: doctor" "$out" "quarantine"
ds_accel quarantine list
has "left alone: list" "$out" "faulty  2        20"
has "left alone: list, why" "$out" "        probe_segv: SIGSEGV"

ds_accel quarantine clear neighbour
is "clear another" 1 "$code"
strikes "not cleared" "2 probe_segv true"
ds_accel quarantine clear faulty
is "clear" "0 " "$code $err"
strikes "cleared" ""
chooses "cleared" neighbour
strikes "cleared, and asked at once" "1 probe_segv false"
DS_ACCELERATOR=faulty ds_accel detect

if [ -n "$can_shift" ]; then
    crash_again 1 2 600
    crash_again 700 3 3600
    crash_again 4000 3 300
    crash_again 4500 4 86400
    crash_again 90000 4 900
    crash_again 91000 5 86400
    after=270000
    strikes "forgotten after two days" ""
    after=
fi

fresh
put sometimes
touch "$dir/crash"
export DS_TEST_CRASH_FILE="$dir/crash"
chooses "a driver that crashes" neighbour
strikes "a driver that crashes" "1 probe_segv false"
rm "$dir/crash"
ds_accel list
strikes "asked anew, and well again" ""
chooses "well again" faulty

# ---- a plugin that kills or exits the process that uses it ---------------------------------------

# A program that uses the detected plugin, because the command `detect` starts no plugin in its own
# process.
cat >"$dir/user.py" <<'END'
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.ds_accel_get.restype = ctypes.c_void_p
library.ds_accel_name.restype = ctypes.c_char_p
library.ds_accel_name.argtypes = [ctypes.c_void_p]
print(library.ds_accel_name(library.ds_accel_get()).decode())
END

# dies: run the program in a shell, which keeps the message about the signal off the terminal.
dies() {
    # shellcheck disable=SC2086 # a list of words
    run ${after:+unshare --time --boottime $after} sh -c '"$@"; exit $?' - env DS_ACCEL_CONFIG="$config" \
        DS_ACCEL_PLUGIN_PATH="$plugins" "$python" "$dir/user.py" "$build/lib/libds_accel.so"
}

# ends_its_user FAULT CODE: check that a plugin that kills or exits the process gets a strike.
ends_its_user() {
    fresh
    put "$1"
    dies
    is "$1: the first run" "$2 " "$code $out"
    is "$1: a trail is left" 1 "$(find "$cache" -name 'loading.*' | wc -l)"
    ds_accel quarantine list --json
    from_json "$1: known at the next start" quarantine "1 start_failed false" \
        'entries/*/strikes' 'entries/*/reason' 'entries/*/quarantined'
    has "$1: and said" "$err" "faulty: an earlier process ended while it loaded and started $plugins/ds_accel_faulty.so \
(strike 1)"
    is "$1: the trail is gone" 0 "$(find "$cache" -name 'loading.*' | wc -l)"
    ds_accel list
    strikes "$1: asking is not using" "1 start_failed false"
    dies
    is "$1: the second run" "$2 " "$code $out"
    for finder in 1 2 3 4 5 6 7 8; do
        "$program" --config "$config" --plugin-dir "$plugins" detect >"$dir/found.$finder" 2>&1 &
    done
    wait
    is "$1: of eight that find the trail, one counts it" "1 8" \
        "$(cat "$dir"/found.* | grep -c "strike 2") $(cat "$dir"/found.* | grep -cx neighbour)"
    chooses "$1: the third run" neighbour
    strikes "$1: left alone" "2 start_failed true"
    chooses "$1: the fourth run" neighbour
    is "$1: and nothing is said" "" "$err"
    DS_ACCELERATOR=faulty dies
    is "$1: forced, it is used" "$2 " "$code $out"
    strikes "$1: forced, it starts anew" "1 start_failed false"
    put none
    chooses "$1: the repaired one" faulty
}

# In this program all plugins were evaluated before the start, so the evaluation that leads to the
# start checks no file.
cat >"$dir/later.py" <<'END'
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
library.ds_accel_create(None, ctypes.byref(context))
library.ds_accel_check(context, None)
library.ds_accel_detect(context)
END
fresh
put use_segv
run sh -c '"$@"; exit $?' - env DS_ACCEL_CONFIG="$config" DS_ACCEL_PLUGIN_PATH="$plugins" \
    "$python" "$dir/later.py" "$build/lib/libds_accel.so"
is "evaluated before: it ends" 139 "$code"
is "evaluated before: a trail is left" 1 "$(find "$cache" -name 'loading.*' | wc -l)"

ends_its_user use_segv 139
ends_its_user use_exit 0

if [ -n "$can_shift" ]; then
    # The cause of the death of the process is unknown, so only two deaths within ten minutes count
    # against the plugin.
    fresh
    put use_segv
    dies
    # A death may be noticed late: the time of the death counts, not of its discovery.
    after=700
    dies
    strikes "ended twice, ten minutes apart" "1 start_failed false"
    has "it says that it may have been ended" "$out" "something else may have ended it"
    after=1200
    dies
    strikes "ended twice within ten minutes" "2 start_failed true"
    after=1900
    dies
    strikes "and again when it was asked again" "3 start_failed true"
    # A strike of another kind is not added to the old strike either.
    fresh
    cp "$faults/../start/sometimes/ds_accel_faulty.so" "$plugins/"
    chooses "well at first" faulty
    touch "$dir/crash"
    dies
    strikes "ended once" "1 start_failed false"
    after=700
    ds_accel list
    strikes "then it crashed by itself" "1 probe_segv false"
    rm "$dir/crash"
    after=
fi

# Files of a process that starts slowly, or at the same time, are not taken for those of a dead
# process.
fresh
put count counted
chooses "a good one" counted
is "a good one leaves no trail" "config lock verdicts" \
    "$({ echo config && find "$cache" -mindepth 1 -printf '%f\n'; } | sort -u | paste -sd ' ' -)"
: >"$cache/loading.1.0.0"
: >"$cache/verdicts.999999999.1"
: >"$cache/starting.999999999.1"
mkdir "$cache/loading.dir"
chooses "what others left" counted
is "what others left is removed" "" \
    "$(find "$cache" -mindepth 1 -printf '%f\n' | grep -e '^loading\.1' -e '\.999' || true)"
strikes "and counts for nothing" ""

# ---- file systems --------------------------------------------------------------------------------

# on FILE_SYSTEM_OPTIONS...: detect twice with the cache on a file system of its own.
on() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    run unshare --mount sh -c 'options=$1; cache=$2; shift 2
        mount -t tmpfs -o "$options" none "$cache" && chmod 700 "$cache" || exit 99
        [ -z "$FILL" ] || head -c 65536 /dev/zero >"$cache/full" 2>/dev/null
        case $options in *inodes*) touch "$cache/1" "$cache/2" "$cache/3" 2>/dev/null;; esac
        [ -z "$READ_ONLY" ] || mount -o remount,ro "$cache"
        "$@" && "$@"' - "$1" "$cache" "$program" --config "$config" --plugin-dir "$plugins" detect
}

if [ -n "$can_mount" ]; then
    fresh
    put count counted
    mkdir -p "$cache"
    export FILL=yes READ_ONLY=
    on size=4k,mode=700
    is "a full disk" "0 counted counted" "$code $(printf '%s' "$out" | paste -sd ' ' -)"
    has "a full disk: said" "$err" "cannot write $cache/verdicts: No space left on device"
    probed "a full disk" 2
    FILL=
    on nr_inodes=2,mode=700
    is "no inode left" "0 counted counted" "$code $(printf '%s' "$out" | paste -sd ' ' -)"
    has "no inode left: said" "$err" "$cache: No space left on device"
    READ_ONLY=yes
    on size=64k,mode=700
    is "read-only" "0 counted counted" "$code $(printf '%s' "$out" | paste -sd ' ' -)"
    has "read-only: said" "$err" "cannot write in $cache: Read-only file system"
    probed "read-only" 6
    READ_ONLY=
    on size=64k,mode=700
    probed "in order" 7

    # Clearing works on a full disk: it removes all files, or removes the file that blocks the
    # others, or rewrites the store in place.
    fresh
    put probe_segv
    put count counted
    mkdir -p "$cache"
    # shellcheck disable=SC2016 # expanded by the inner shell
    run unshare --mount sh -c 'cache=$1; shift
        mount -t tmpfs -o size=64k,mode=700 none "$cache" || exit 99
        fill() { head -c 65536 /dev/zero >"$cache/full" 2>/dev/null; }
        said() { "$@" >/dev/null 2>"$cache.said"; echo "$?"; cat "$cache.said"; }
        crash() { DS_ACCELERATOR=faulty "$@" detect >/dev/null 2>&1; }
        "$@" detect; crash "$@"; crash "$@"
        head -c 4096 /dev/zero >"$cache/config"; fill
        echo "clear $(said "$@" cache clear)"
        [ -e "$cache/config" ] || echo "the configuration gave way"
        rm -f "$cache/full" "$cache/config"
        "$@" detect
        rm -f "$cache/config"; fill
        echo "in place $(said "$@" cache clear)"
        "$@" cache show | tail -1
        "$@" quarantine list | tail -1
        echo "strikes $(said "$@" quarantine clear)"
        "$@" quarantine list
        rm -f "$cache/full"; ls "$cache"' - "$cache" "$program" --config "$config" \
        --plugin-dir "$plugins"
    is "forgetting on a full disk" "0 counted
clear 0
the configuration gave way
counted
in place 0
no verdict is remembered
        probe_segv: SIGSEGV at address 0x10
strikes 0
no plugin has crashed or hung recently
lock" "$code $out"

    # Another /etc/ld.so.cache may select other libraries, so the plugin must be probed again.
    rm -rf "$cache"
    rm -f "$count"
    chooses "before ldconfig" counted
    if [ -f /etc/ld.so.cache ]; then
        cp /etc/ld.so.cache "$dir/ld.so.cache"
        # shellcheck disable=SC2016 # expanded by the inner shell
        run unshare --mount sh -c 'mount --bind "$1" /etc/ld.so.cache && shift && "$@" && "$@"' - \
            "$dir/ld.so.cache" "$program" --config "$config" --plugin-dir "$plugins" detect
        is "after ldconfig" "0 counted counted" "$code $(printf '%s' "$out" | paste -sd ' ' -)"
        probed "after ldconfig" 2
    fi
fi

# ---- hardware that appears -----------------------------------------------------------------------

# Hardware that only the note of a plugin names is looked for in each process: the key of the stored
# configuration covers only hardware that the configuration names.
if [ -w /dev/shm ]; then
    node=$(mktemp -u /dev/shm/XXXXXX)
    fresh
    "$python" - "$build/tests/fixtures/hardware_absent/ds_accel_hardware_absent.so" \
        "$plugins/ds_accel_hardware_absent.so" "$node" <<'END'
import sys
was = b"/dev/none[0-9]*"
text = open(sys.argv[1], "rb").read()
assert text.count(was) == 1 and len(sys.argv[3]) == len(was)
open(sys.argv[2], "wb").write(text.replace(was, sys.argv[3].encode()))
END
    printf '{"detection_order": ["hardware_absent", "neighbour"]}\n' >"$config"
    come() {
        run "$program" -q --config "$config" --plugin-dir "$plugins" "$@"
    }
    remembered() {
        run "$program" cache show --json
        printf '%s\n' "$out" | validate - entries/name=hardware_absent/state entries/name=hardware_absent/reason |
            paste -sd ' ' -
    }
    come detect
    is "no hardware" "0 neighbour" "$code $out"
    is "no hardware, remembered" "unavailable no_device" "$(remembered)"
    : >"$node"
    come detect
    is "it has come" "0 hardware_absent" "$code $out"
    rm "$node"
    is "it has come, and what it said is remembered" "available " "$(remembered)"
else
    echo "test_cache: hardware that comes is not tested: /dev/shm cannot be written"
fi

# ---- the cached configuration --------------------------------------------------------------------

# The cached configuration also contains the parts that detection does not need: here a remedy, and
# a line of doctor.
fresh
printf '%s\n' '{"detection_order": ["neighbour"], "backends": {"mock": {"libraries": ["libmock_absent.so.1"],' \
    '"remedies": {"no_device": "buy one at the corner"}}}}' >"$config"
sleep 3.1 # a file written less than three seconds ago is not cached
forced() {
    run env DS_ACCELERATOR=mock DS_ACCEL_MOCK_AVAILABLE=false "$program" --config "$config" detect
}
ds_accel detect
is "the configuration is remembered" "0 neighbour yes" "$code $out $([ ! -s "$cache/config" ] || echo yes)"
forced
is "a remedy of the remembered configuration" "4" "$code"
has "a remedy of the remembered configuration" "$err" "Remedy: buy one at the corner"
remembered=$err
DS_ACCEL_CACHE=off forced
is "and of the files" "$err" "$remembered"
ds_accel list
remembered=$out
run env DS_ACCEL_CACHE=off "$program" --config "$config" --plugin-dir "$plugins" list
is "list with it and without" "$out" "$remembered"
finish
