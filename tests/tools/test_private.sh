#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# A user without a runtime directory, as in a container, in a batch job or after su. Verdicts and
# the quarantine are then in a private directory below the temporary directory, where every user may
# write and may have created the same name before.  test_private.sh BUILD
set -eu
build=$(cd "$1" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

skip() {
    echo "$(basename "$0" .sh): skipped: $1"
    exit 0
}

[ "$(id -u)" = 0 ] || skip "needs root, to be two users"
command -v setpriv >/dev/null || skip "needs setpriv of util-linux"
user=12345
other=12346

# Other users must be able to enter the directory.
chmod 755 "$dir"
prefix=$dir/prefix
mkdir -p "$prefix"
cp -R -P "$build/bin" "$build/lib" "$build/libexec" "$build/share" "$prefix"
program=$prefix/bin/ds-accel
tmp=$dir/tmp
private=$tmp/ds-accel-$user
mkdir "$dir/faulty" "$dir/home"
cp "$build/tests/fixtures/faults/probe_segv/ds_accel_faulty.so" "$dir/faulty/"
chown "$user" "$dir/home"

# as USER [SETTING...] COMMAND...: run the command as USER, with only these environment settings.
as() {
    as=$1
    shift
    run setpriv --reuid "$as" --regid "$as" --clear-groups env -i PATH="$PATH" LC_ALL=C \
        HOME="$dir/home" TMPDIR="$tmp" "$@"
}

# place [SETTING...]: print the cache directory, or why it is unused, as `cache show` reports it.
place() {
    as "$user" "$@" "$program" cache show --json
    printf '%s' "$out" | python3 -c '
import json, sys
tree = json.load(sys.stdin)
print(tree["directory"] or "unused: " + tree["unused"])'
}

fresh() {
    rm -rf "$tmp"
    mkdir "$tmp"
    chmod 1777 "$tmp"
}

# ---- created, used and found again ---------------------------------------------------------------

fresh
is "show: where it will be" "$private" "$(place)"
is "to look at it makes no directory" "" "$(ls -A "$tmp")"
as "$user" "$program" detect
is "detect" "0 cpu " "$code $out $err"
is "the directory: owner and mode" "$user $user 700" "$(stat -c '%u %g %a' "$private")"
is "a file of verdicts" "$user 600" "$(stat -c '%u %a' "$private/verdicts")"
as "$user" "$program" cache show
has "show" "$out" "$private/verdicts (rw)"
has "show: a verdict" "$out" "cpu"
as "$user" "$program" doctor -v
has "doctor" "$out" "$private: verdicts and the quarantine are stored here"
for round in 1 2; do
    as "$user" "$program" --plugin-dir "$dir/faulty" -a faulty detect
    is "it crashes, round $round" 4 "$code"
    as "$user" "$program" --plugin-dir "$dir/faulty" detect
done
as "$user" "$program" quarantine list
has "quarantine" "$out" "$dir/faulty/ds_accel_faulty.so"
as "$user" "$program" quarantine clear
is "quarantine clear" "0 " "$code $err"
as "$user" "$program" cache clear
is "cache clear" "0 " "$code $err"
as "$other" "$program" detect
is "each user has one" "0 cpu $other 700" "$code $out $(stat -c '%u %a' "$tmp/ds-accel-$other")"

fresh
mkdir "$dir/session"
chown "$user" "$dir/session"
is "a session's directory goes first" "$dir/session/ds-accel" "$(place XDG_RUNTIME_DIR="$dir/session")"
is "but not another user's" "$private" "$(place XDG_RUNTIME_DIR="$dir")"
is "DS_ACCEL_CACHE_DIR goes first" "$dir/session" "$(place DS_ACCEL_CACHE_DIR="$dir/session")"
for value in "" relative "$dir/home" "$dir/home/tmp" "$dir/home//"; do
    is "TMPDIR=$value is left out" "/tmp/ds-accel-$user" "$(place TMPDIR="$value")"
done
mkdir "$dir/homely"
chmod 1777 "$dir/homely"
is "beside the home is not below it" "$dir/homely/ds-accel-$user" "$(place TMPDIR="$dir/homely/")"

# Several processes that start at the same time create a single directory.
fresh
for i in 1 2 3 4 5 6 7 8; do
    setpriv --reuid "$user" --regid "$user" --clear-groups env -i LC_ALL=C TMPDIR="$tmp" \
        "$program" detect >"$dir/answer.$i" 2>&1 &
done
wait
is "eight at once" "$(printf 'cpu\n%.0s' 1 2 3 4 5 6 7 8)" "$(cat "$dir"/answer.*)"
is "eight at once: one directory" "ds-accel-$user" "$(ls -A "$tmp")"

# ---- another user created it first ---------------------------------------------------------------

# refused NAME REASON: check that the program reads, writes and changes nothing in the directory,
# and that the result of detect is still right.
refused() {
    before=$(find "$tmp" -printf '%p %m %U %s\n' | sort)
    as "$user" "$program" detect
    is "$1: detect" "0 cpu" "$code $out"
    has "$1: said" "$err" "$2"
    is "$1: nothing is made there" "$before" "$(find "$tmp" -printf '%p %m %U %s\n' | sort)"
    has "$1: show" "$(place)" "$2"
    as "$user" "$program" doctor
    has "$1: doctor" "$out" "$2"
    as "$user" "$program" cache clear
    is "$1: clear" 1 "$code"
}

fresh
as "$user" "$program" detect
chown -R "$other" "$private"
refused "another user's" "it has owner $other, mode 0700; expected a directory that this user owns"
chown -R 0 "$private"
refused "root's" "it has owner 0, mode 0700"
chown -R "$user" "$private"
chmod 755 "$private"
refused "one that others may read" "mode 0755; expected a directory that this user owns and no other may open"
chmod 710 "$private"
refused "one that the group may pass" "mode 0710"
fresh
mkdir "$dir/target"
chown "$user" "$dir/target"
chmod 700 "$dir/target"
ln -s "$dir/target" "$private"
refused "a link" "$private: it is a link"
is "a link: nothing behind it" "" "$(ls -A "$dir/target")"
fresh
ln -s "$dir/nowhere" "$private"
refused "a link to nothing" "$private: it is a link"
is "a link to nothing: stays so" no "$([ -e "$dir/nowhere" ] && echo yes || echo no)"
fresh
echo "not a directory" >"$private"
refused "a file" "$private: it is not a directory"
fresh
mkfifo "$private"
refused "a pipe" "$private: it is not a directory"

# ---- the parent directory ------------------------------------------------------------------------

# unfit NAME REASON [SETTING...]: check that the directory is not used. There is no warning, because
# the cause is not a sign of an attack.
unfit() {
    name=$1
    reason=$2
    shift 2
    as "$user" "$@" "$program" detect
    is "$name: detect" "0 cpu" "$code $out"
    has "$name: show" "$(place "$@")" "$reason"
    is "$name: nothing is made" no "$([ -e "$private" ] && echo yes || echo no)"
}

fresh
chmod 777 "$tmp"
unfit "without the sticky bit" "unused: $private: its parent directory: another user could"
fresh
chown "$other" "$tmp"
unfit "another user's own" "another user could replace it"
fresh
chmod 755 "$tmp"
unfit "closed" ""
mkdir -p "$dir/open/inner"
chmod 777 "$dir/open"
chmod 1777 "$dir/open/inner"
unfit "below one that is not kept" "another user could" TMPDIR="$dir/open/inner"
ln -s "$dir/open/inner" "$dir/way"
unfit "a link to such a one" "another user could" TMPDIR="$dir/way"
unfit "one that is not there" "No such file" TMPDIR="$dir/none"
rm "$dir/way"
fresh
ln -s "$tmp" "$dir/way"
is "a link of root's to a good one" "$private" "$(place TMPDIR="$dir/way")"

# ---- more rights than the caller -----------------------------------------------------------------

fresh
objects=$(find "$build/obj/tools" -name '*.o' ! -name ds-accel-probe.o ! -name reasons.o)
if [ -z "${SAN:-}" ]; then
    # This copy is linked again: in a set-uid program the dynamic linker resolves no $ORIGIN outside
    # its own directories.
    # shellcheck disable=SC2086 # a list of files
    "${CC:-gcc}" -pie -o "$prefix/bin/secure" $objects -L"$prefix/lib" -lds_accel_tools -lds_accel -Wl,-rpath,"$prefix/lib"
    cp "$(command -v id)" "$dir/id"
    chown "$other" "$prefix/bin/secure" "$dir/id"
    chmod 4755 "$prefix/bin/secure" "$dir/id"
    as "$user" "$dir/id" -u
fi
if [ -z "${SAN:-}" ] && [ "$out" = "$other" ]; then
    rm -rf "/tmp/ds-accel-$other"
    as "$user" "$prefix/bin/secure" detect
    is "set-uid: detect" "0 cpu" "$code $out"
    is "set-uid: nothing is made" " no" "$(ls -A "$tmp") $([ -e "/tmp/ds-accel-$other" ] && echo yes || echo no)"
    as "$user" "$prefix/bin/secure" cache show
    has "set-uid: show" "$out" "not used: a program with raised rights caches nothing"
else
    echo "set-uid: not tested: this machine or directory runs no such programs"
fi

finish
