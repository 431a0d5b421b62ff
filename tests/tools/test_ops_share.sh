#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Attacks on caches of ops that processes, hosts and users share: many processes at once, full
# disks, directories that cannot be written, export and import.  test_ops_share.sh BUILD
#
# Hosts are namespaces with their own boot ID, process IDs and local directory; file systems are
# mounted in mount namespaces. Both need root: otherwise these parts are skipped with a message.
set -eu
build=$(cd "$1" && pwd)
# With mounts of its own, which end with the test.
if [ -z "${OWN_MOUNTS-}" ] && unshare --mount true 2>/dev/null; then
    OWN_MOUNTS=yes exec unshare --mount sh "$0" "$@"
fi
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/ops_build.sh
. "$(dirname "$0")/ops_build.sh"

skip() {
    echo "ops_share: not tested: $1: $2"
}
can_unshare=
! unshare --mount --uts --pid --fork --mount-proc \
    sh -c "mkdir -p '$dir/mnt' && mount -t tmpfs none '$dir/mnt'" 2>/dev/null || can_unshare=yes
can_switch=
[ "$(id -u)" != 0 ] || ! setpriv --reuid 12345 --regid 12345 --clear-groups true 2>/dev/null || can_switch=yes
can_fuse=
if [ -z "$can_unshare" ] || [ ! -e /dev/fuse ]; then
    skip "quotas and other faults of file systems" "nothing can be mounted here"
elif ! pkg-config --exists fuse3 2>/dev/null; then
    skip "quotas and other faults of file systems" "libfuse3-dev is not installed"
else
    # shellcheck disable=SC2046 # flags
    "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$dir/fault_fs" "$(dirname "$0")/../fixtures/fault_fs.c" \
        $(pkg-config --cflags --libs fuse3)
    can_fuse=yes
fi
chmod 755 "$dir"
[ -n "${FULL-}" ] || is_unknown=yes

# user COMMAND...: run a command as a user without rights.
user() {
    setpriv --reuid 12345 --regid 12345 --clear-groups "$@"
}

# ---- many processes on two hosts -----------------------------------------------------------------

cat >"$dir/host.sh" <<'END'
# host.sh BOOT_ID HOST_NAME COUNT PREFIX_COMMAND... -- LOAD CONFIG
boot=$1 name=$2 count=$3
shift 3
mount --bind "$boot" /proc/sys/kernel/random/boot_id
hostname "$name"
while [ "$count" -gt 0 ]; do
    "$@" 2>&1 &
    count=$((count - 1))
done
wait
END

# hosts NAME COUNT MOST COMMAND...: COUNT processes on each of two hosts load the op, and together
# compile it at most MOST times.
hosts() {
    name=$1 count=$2 most=$3
    shift 3
    for host in 1 2; do
        echo "$host$host$host$host$host$host$host$host-0000-4000-8000-000000000000" >"$dir/boot$host"
        rm -rf "$dir/run$host"
        mkdir -m 700 "$dir/run$host"
        [ -z "$can_switch" ] || chown 12345 "$dir/run$host"
        XDG_RUNTIME_DIR="$dir/run$host" unshare --mount --uts --pid --fork --mount-proc \
            sh "$dir/host.sh" "$dir/boot$host" "host$host" "$count" "$@" "$dir/load" "$config" tiny \
            >"$dir/loaded$host" 2>&1 &
    done
    wait
    is "$name: all load it" "$((2 * count)) tiny 1110" \
        "$(sort "$dir/loaded1" "$dir/loaded2" | uniq -c | sed 's/^ *//')"
    times=$(compiled)
    is "$name: compiled $times times" yes "$([ "$times" -ge 1 ] && [ "$times" -le "$most" ] && echo yes || echo no)"
    is "$name: one file" 1 "$(find "$store" -name '*.so' | wc -l)"
    is "$name: nothing else is left" 1 "$(find "$store" -mindepth 1 ! -name '*.so' | wc -l)"
}

if [ -n "$can_unshare" ]; then
    fresh
    hosts "one directory" 8 1
    if [ -n "$can_switch" ]; then
        fresh
        mkdir "$dir/shared"
        chown 12345 "$dir/shared"
        : >"$log"
        chmod 666 "$log"
        store=$dir/shared/ds-accel/ops
        hosts "a home on two hosts" 32 2 env -u DS_ACCEL_CACHE_DIR XDG_CACHE_HOME="$dir/shared" \
            setpriv --reuid 12345 --regid 12345 --clear-groups
        store=$cache/ops
    fi
else
    skip "two hosts" "nothing can be mounted here"
fi

# ---- full disks ----------------------------------------------------------------------------------

# full NAME CAUSE: check that the build fails with a message that names the directory and what to do,
# and that nothing is published.
full() {
    why="$store: $2: make room, or name another directory in DS_ACCEL_CACHE_DIR"
    load tiny
    has "$1: load" "$code $out" "1 -15 the op tiny could not be built: "
    has "$1: load: why, and what to do" "$out" "$why"
    ops build tiny
    has "$1: build" "$code $out" "1 tiny: failed: "
    has "$1: build: why, and what to do" "$out" "$why"
    [ ! -e "$store" ] ||
        is "$1: nothing is published" "" "$(find "$store" -maxdepth 1 -name '.*-*' -o -maxdepth 1 -name '*.json')"
    compiled >/dev/null
}

# filled: a file that takes all space.
filled() {
    dd if=/dev/zero of="$cache/filler" bs=4k 2>/dev/null || true
}

if [ -n "$can_unshare" ]; then
    full="No space left on device"
    fresh
    mkdir "$cache"
    mount -t tmpfs -o size=16k,mode=755 none "$cache"
    full "a full disk while it is compiled" "$full"
    filled
    full "a full disk from the start" "$full"
    TMPDIR=$cache full "a full disk from the start, with the temporary directory" "$full"
    rm "$cache/filler"
    mount -o remount,size=8m "$cache"
    loads "room was made" 1110 1
    rm -rf "${cache:?}"/*
    mount -o remount,nr_inodes=3 "$cache"
    : >"$cache/filler1"
    : >"$cache/filler2"
    full "no inodes" "$full"
    umount "$cache"
    # The object fits, the linked file does not.
    fresh
    mkdir "$cache"
    # shellcheck disable=SC2016 # variables of that script
    printf '#!/bin/sh\n[ "$1" != link ] || dd if=/dev/zero of="%s/filler" bs=4k 2>/dev/null || true\n' "$cache" >"$dir/before"
    chmod +x "$dir/before"
    mount -t tmpfs -o size=1m,mode=755 none "$cache"
    full "a full disk while it is linked" "$full"
    umount "$cache"
else
    skip "full disks" "nothing can be mounted here"
fi

# ---- file systems of networks --------------------------------------------------------------------

# on_network [VARIABLE=VALUE]: mount a file system with these faults as the cache. Another directory
# is that of the host, as for a user with a session, because DS_ACCEL_CACHE_DIR names both.
on_network() {
    fresh
    rm -rf "$dir/behind"
    mkdir -m 755 "$cache" "$dir/behind"
    env "$@" "$dir/fault_fs" "$dir/behind" "$cache" >"$dir/fault_fs.out" 2>&1 &
    network=$!
    wait_for mountpoint -q "$cache"
}
off_network() {
    umount "$cache"
    wait "$network" || fail "the file system" "$(cat "$dir/fault_fs.out")"
}
# nothing_left NAME FILES: check what is in the store, with no hidden files.
nothing_left() {
    is "$1: nothing else is left" "$2" "$(find "$dir/behind/ops" -mindepth 1 -maxdepth 1 -printf '%f\n' | sed 's/^.*\.\([a-z]*\)$/\1/' | sort | paste -sd ' ' -)"
}

if [ -n "$can_fuse" ]; then
    on_network A=
    loads "a file system of a network" 1110 1
    loads "a file system of a network: cached" 1110 0
    nothing_left "a file system of a network" "json so"
    sed -i 's/VENDOR 1/VENDOR 2/' "$vendor/vendor.h"
    start_gated first
    kill -9 "$pid"
    ends "a file system of a network: a build that is killed" 137 "$pid"
    wait_for is_gone "$(cat "$dir/entered")"
    compiled >/dev/null
    loads "a file system of a network: the next build" 1120 1
    nothing_left "a file system of a network: the next build" "json so so"
    printf '#!/bin/sh\nexit 3\n' >"$dir/before"
    chmod +x "$dir/before"
    sed -i 's/VENDOR 2/VENDOR 3/' "$vendor/vendor.h"
    load tiny
    is "a file system of a network: a build that fails" 1 "$code"
    load tiny
    nothing_left "a file system of a network: a build that fails" "failed json so so"
    rm "$dir/before"
    ops clean
    is "a file system of a network: clean" "0 ds-accel: 3 files removed" "$code $err"
    nothing_left "a file system of a network: clean" ""
    off_network

    # Builds of an earlier boot, a day ago, left directories; another host may be building in a later
    # one. A build of this boot lives, another one was killed.
    on_network FAULT_AGE='*/.build-*[!3]:90000'
    start_gated living
    this=$(find "$store" -maxdepth 1 -name '.build-*' -printf '%f')
    for left in .build-00000000-0000-4000-8000-000000000000-1-1 .build-00000000-0000-4000-8000-000000000000-1-2 \
        .build-00000000-0000-4000-8000-000000000000-1-3 "${this%-*-*}-0-1" "${this%-*-*}-0-3"; do
        mkdir "$store/$left"
        : >"$store/$left/0.o"
        : >"$store/$left/lock"
    done
    rm "$store/.build-00000000-0000-4000-8000-000000000000-1-2/lock"
    ops clean
    is "clean after a reboot" "0 ds-accel: 0 files removed" "$code $err"
    is "clean after a reboot: what another host may use, and what this one uses" \
        "$(printf '%s\n' "$this" .build-00000000-0000-4000-8000-000000000000-1-3 | sort)" \
        "$(find "$dir/behind/ops" -maxdepth 1 -name '.build-*' -printf '%f\n' | sort)"
    echo >"$dir/gate.held"
    ends "clean after a reboot: the build that lives" 0 "$pid"
    is "clean after a reboot: its op" "tiny 1110" "$(cat "$dir/living")"
    off_network

    on_network FAULT_WRITE_BYTES=1000
    full "a quota" "Disk quota exceeded"
    off_network
    on_network FAULT_WRITE_BYTES=12000
    full "a quota that is exceeded later" "Disk quota exceeded"
    off_network

    # EBUSY and ESTALE pass: the rename is tried three times.
    for fault in FAULT_RENAME=*/tiny.*.so:16:2 FAULT_RENAME=*/tiny.*.json:116:4; do
        on_network "$fault"
        loads "$fault" 1110 1
        nothing_left "$fault" "json so"
        off_network
    done
    # EIO 5, EBUSY 16, ESTALE 116, after which the kernel tries a second time, EDQUOT 122
    while read -r fault cause; do
        on_network "$fault"
        load tiny
        has "$fault" "$code $out" "1 -15 the op tiny could not be built: $store: $cause"
        nothing_left "$fault" "$([ "${fault#*:116:}" = "$fault" ] || echo so)"
        compiled >/dev/null
        case $fault in
        FAULT_RENAME*)
            loads "$fault: again" 1110 1
            nothing_left "$fault: again" "json so"
            ;;
        esac
        off_network
    done <<'END'
FAULT_RENAME=*/tiny.*.so:16:3 Device or resource busy
FAULT_RENAME=*/tiny.*.json:116:6 Stale file handle
FAULT_FSYNC=*.so:5 Input/output error
FAULT_FSYNC=*.so:122 Disk quota exceeded: make room, or name another directory in DS_ACCEL_CACHE_DIR
END
fi

# ---- directories that cannot be written ----------------------------------------------------------

# as COMMAND...: run a command as the user, with the caches below $dir/theirs.
as() {
    run env -u DS_ACCEL_CACHE_DIR HOME="$dir/theirs/home" XDG_RUNTIME_DIR="$dir/theirs/run" \
        setpriv --reuid 12345 --regid 12345 --clear-groups "$@"
}
theirs() {
    fresh
    rm -rf "$dir/theirs"
    mkdir -p "$dir/theirs/home" "$dir/theirs/run"
    chown -R 12345:12345 "$dir/theirs"
    chmod 700 "$dir/theirs/run"
    : >"$log"
    chmod 666 "$log"
}
if [ -n "$can_switch" ] && [ -n "$can_unshare" ]; then
    theirs
    as "$dir/load" "$config" tiny
    is "a home: loads" "0 tiny 1110" "$code $out"
    is "a home: where" 1 "$(find "$dir/theirs/home/.cache/ds-accel/ops" -name 'tiny.*.so' | wc -l)"
    is "a home: modes" "755 644 644" "$(stat -c %a "$dir/theirs/home/.cache/ds-accel/ops" "$dir/theirs/home/.cache/ds-accel/ops"/* | paste -sd ' ' -)"
    # What was built there is still used when it cannot be written any more.
    mount --bind "$dir/theirs/home" "$dir/theirs/home"
    mount -o remount,bind,ro "$dir/theirs/home"
    : >"$log"
    as "$dir/load" "$config" tiny
    is "a home that is read-only: what was built is used" "0 tiny 1110 0" "$code $out $(wc -l <"$log")"
    sed -i 's/TINY 1/TINY 2/' "$src/tiny.c"
    as "$dir/load" "$config" tiny
    is "a home that is read-only: loads what was not built" "0 tiny 2110" "$code $out"
    is "a home that is read-only: where" 1 "$(find "$dir/theirs/run/ds-accel/ops" -name 'tiny.*.so' | wc -l)"
    umount "$dir/theirs/home"

    theirs
    for mask in 002 077; do
        rm -rf "$dir/theirs/home/.cache"
        # shellcheck disable=SC2016 # variables of that shell
        as sh -c 'umask "$1" && shift && exec "$@"' sh "$mask" "$dir/load" "$config" tiny
        is "umask $mask" "0 tiny 1110" "$code $out"
    done

    theirs
    mkdir -p "$dir/theirs/home/.cache/ds-accel/ops"
    chown -R 12345:12345 "$dir/theirs/home"
    chmod 777 "$dir/theirs/home/.cache/ds-accel/ops"
    as "$dir/load" "$config" tiny
    has "a cache that others may write to" "$code $out" "1 -15 the op tiny could not be built: $dir/theirs/home/.cache/ds-accel/ops: it has owner 12345, mode 0777; expected a directory that this user owns and no other may write to"

    as "$program" --config "$config" -a cpu ops show tiny
    has "a cache that others may write to: nothing is promised" "$out" "mode 0777"

    # Nothing can be loaded from a file system without execution.
    theirs
    mkdir -p "$dir/theirs/home/.cache"
    mount -t tmpfs -o noexec,mode=755,uid=12345,gid=12345 none "$dir/theirs/home/.cache"
    : >"$log"
    as "$dir/load" "$config" tiny
    has "a cache without execution" "$code $out" "/.cache/ds-accel/ops: its file system is mounted with noexec, so no op can be loaded from it: name another directory in DS_ACCEL_CACHE_DIR"
    is "a cache without execution: nothing is compiled" 0 "$(wc -l <"$log")"
    as "$program" --config "$config" -a cpu ops show tiny
    has "a cache without execution: the reason" "$out" "is mounted with noexec"
    umount "$dir/theirs/home/.cache"

    # A directory that is named is not replaced by another one.
    theirs
    mkdir -m 755 "$cache"
    run env DS_ACCEL_CACHE_DIR="$cache" setpriv --reuid 12345 --regid 12345 --clear-groups "$dir/load" "$config" tiny
    has "a named directory of another user" "$code $out" "1 -15 the op tiny could not be built: $store: Permission denied: name another directory in DS_ACCEL_CACHE_DIR"

    # Root builds for all users, also behind a cache of its own and with a umask that closes files.
    theirs
    mount -t tmpfs -o mode=755 none /var/cache
    mkdir -m 700 /var/cache/ds-accel
    (umask 077 && env -u DS_ACCEL_CACHE_DIR -u XDG_RUNTIME_DIR "$program" --config "$config" -a cpu ops build tiny) >"$dir/out" 2>&1
    has "root builds for the system" "$(cat "$dir/out")" "tiny: built, /var/cache/ds-accel/ops/tiny."
    compiled >/dev/null
    as env -u CC -u CXX PATH=/nonexistent "$dir/load" "$config" tiny
    is "a user without compiler loads what root built" "0 tiny 1110" "$code $out"
    umount /var/cache
    # Sources.
    theirs
    chmod o+w "$src/tiny.c"
    as "$dir/load" "$config" tiny
    has "a source that others may write to" "$code $out" "$src/tiny.c: file_writable: $src/tiny.c has owner 0"
    chmod o-w "$src/tiny.c"
    chmod o+w "$src/include/tiny.h"
    as "$dir/load" "$config" tiny
    has "a header that others may write to" "$code $out" "1 -15 the op tiny could not be built: $src/include/tiny.h: file_writable: "
    chmod o-w "$src/include/tiny.h"
else
    skip "other users" "this needs root, and mounts"
fi
fresh
DS_ACCEL_CACHE=off load tiny
is "DS_ACCEL_CACHE=off" "1 -3 there is no kernel of \"tiny\" for cpu: it is not built, because DS_ACCEL_CACHE does not let it be stored" "$code $out"
DS_ACCEL_CACHE=ro load tiny
is "DS_ACCEL_CACHE=ro" "1 -3 there is no kernel of \"tiny\" for cpu: it is not built, because DS_ACCEL_CACHE does not let it be stored" "$code $out"
is "DS_ACCEL_CACHE=ro, off: nothing is compiled" 0 "$(compiled)"
loads "DS_ACCEL_CACHE unset" 1110 1
DS_ACCEL_CACHE=ro loads "DS_ACCEL_CACHE=ro: what was built is used" 1110 0
DS_ACCEL_CACHE=ro ops clean
has "DS_ACCEL_CACHE=ro: clean" "$code $err" "1 ds-accel: DS_ACCEL_CACHE does not let this process write to the cache of ops"
DS_ACCEL_CACHE=off load tiny
is "DS_ACCEL_CACHE=off: what was built is not used" 1 "$code"
DS_ACCEL_CACHE=off ops export "$dir/export"
has "DS_ACCEL_CACHE=off: export" "$code $err" "1 ds-accel: DS_ACCEL_CACHE does not let this process read caches of ops"

# clean removes what was built, by the name of the op or of its builder, and nothing else.
ops clean nothing
has "clean: an unknown name" "$code $err" "1 ds-accel: there is no op and no builder \"nothing\", and nothing was built of it"
ops clean CPUAdamBuilder
is "clean: a builder" "0 ds-accel: 0 files removed" "$code $err"
mkdir -p "$store/mine.failed"
touch "$store/mine.so" "$store/mine.json" "$store/mine.failed/data"
ops clean
is "clean: files of others stay" "0 ds-accel: 2 files removed, mine.failed mine.json mine.so" "$code $err, $(cd "$store" && echo *)"

# ---- export and import ---------------------------------------------------------------------------

# refuses NAME REASON [CODE]: check that an import of $dir/export is refused as a whole.
refuses() {
    rm -rf "$dir/cache2"
    DS_ACCEL_CACHE_DIR="$dir/cache2" ops import "$dir/export"
    has "$1" "$code $err" "${3:-1} ds-accel: $2"
    is "$1: nothing is imported" "" "$(find "$dir/cache2" -name '*.so' -o -name '*.json' 2>/dev/null)"
}

fresh
ops export "$dir/export"
is "nothing to export" "1 ds-accel: nothing was built that could be exported: \`ds-accel ops build\`" "$code $err"
is "nothing to export: no directory is made" no "$([ -e "$dir/export" ] && echo yes || echo no)"
refuses "no directory to import" "$dir/export: No such file or directory"
echo text >"$dir/export"
refuses "a file to import" "$dir/export: Not a directory"
rm "$dir/export"
mkdir "$dir/export"
refuses "an empty directory to import" "$dir/export has no exported ops"
rmdir "$dir/export"
ops build tiny
recipe '"cflags": ["-DFLAG=1"]'
ops build tiny
ops export "$dir/export"
is "two files are exported" "0 ds-accel: 2 files exported" "$code $err"
ops export "$dir/export"
is "again" "0 ds-accel: 2 files exported" "$code $err"
ops export ""
is "export: no name" 2 "$code"
ops export "$dir/far/export/"
is "export: for other users" "2 755 755" \
    "$(find "$dir/far/export" -name '*.so' | wc -l) $(stat -c %a "$dir/far") $(stat -c %a "$dir/far/export")"
is "the directory" "2 2 4" "$(find "$dir/export" -name 'tiny.*.so' | wc -l) $(find "$dir/export" -name 'tiny.*.json' | wc -l) $(find "$dir/export" -mindepth 1 | wc -l)"
DS_ACCEL_CACHE_DIR=$dir/cache1
no_compiler=yes load tiny
is "before the import" 1 "$code"
no_compiler=yes ops import "$dir/export"
is "the import" "0 ds-accel: 2 files imported" "$code $err"
compiled >/dev/null
no_compiler=yes loads "another cache, without compiler" 1111 0
recipe
no_compiler=yes loads "another cache, without compiler: the other one" 1110 0
loads "another cache, with the compiler" 1110 0
export DS_ACCEL_CACHE_DIR="$cache"
cp -R "$dir/export" "$dir/exported"
# one KIND: one of the exported files.
one() {
    find "$dir/export" -name "tiny.*.$1" | sort | tail -n 1
}
again() {
    rm -rf "$dir/export"
    cp -R "$dir/exported" "$dir/export"
}
file=$(one so)
printf x | dd of="$file" bs=1 seek=5000 conv=notrunc 2>/dev/null
refuses "a changed byte" "$file is damaged: its contents are not those of the manifest"
again
: >"$(one so)"
refuses "an empty file" "$(one so): "
again
rm "$(one so)"
refuses "a missing file" "$file: No such file or directory, but the manifest names it"
again
echo text >"$(one json)"
refuses "a damaged manifest" "$(one json) is no manifest of ops"
again
sed -i 's/"kernel": "tiny"/"kernel": "..\/..\/tiny"/' "$(one json)"
refuses "a kernel that is a path" "$(one json) names no kernel"
again
sed -i 's/"kernel": "tiny"/"kernel": 5/' "$(one json)"
refuses "a kernel that is a number" "$(one json) names no kernel"
again
sed -i 's/"sha256": "[0-9a-f]*"/"sha256": ""/' "$(one json)"
refuses "an entry without digest" "$(one json) is no manifest of ops"
again
chmod o+w "$(one so)"
refuses "a file that others may write to" "$(one so): file_writable: " 6
again
if [ -n "$can_unshare" ]; then
    mkdir "$dir/cache2"
    mount -t tmpfs -o size=24k,mode=755 none "$dir/cache2"
    DS_ACCEL_CACHE_DIR="$dir/cache2" ops import "$dir/export"
    has "a full disk" "$code $err" "1 ds-accel: "
    has "a full disk: the cause" "$err" "$dir/cache2/ops: No space left on device"
    is "a full disk: no manifest without its file" 0 "$(find "$dir/cache2" -name '.build-*' | wc -l)"
    DS_ACCEL_CACHE_DIR="$dir/cache2" no_compiler=yes load tiny
    is "a full disk: what was imported can be loaded, or is not there" 1 "$(echo "$out" | grep -c -e '^tiny 1110$' -e '^-3 ')"
    umount "$dir/cache2"
    mount -t tmpfs -o mode=755 none /var/cache
    env -u DS_ACCEL_CACHE_DIR -u XDG_RUNTIME_DIR "$program" --config "$config" -a cpu ops import "$dir/export" >"$dir/out" 2>&1
    is "into the cache of the system" "ds-accel: 2 files imported" "$(cat "$dir/out")"
    if [ -n "$can_switch" ]; then
        theirs
        as env -u CC -u CXX PATH=/nonexistent "$dir/load" "$config" tiny
        is "into the cache of the system: a user loads it" "0 tiny 1110" "$code $out"
    fi
    umount /var/cache
fi
chmod o+w "$(one json)"
refuses "a manifest that others may write to" "$(one json): file_writable: " 6
again
fresh
ops build tiny
mkdir "$dir/open"
chmod 777 "$dir/open"
ops export "$dir/open"
has "export to a directory of others" "$code $err" "6 ds-accel: $dir/open: it has owner"
chmod 777 "$dir/export"
refuses "import from a directory of others" "$dir/export/" 6
chmod 755 "$dir/export"
mkdir -p "$dir/cache2/ops"
chmod 777 "$dir/cache2/ops"
DS_ACCEL_CACHE_DIR="$dir/cache2" ops import "$dir/export"
has "import to a cache that others may write to" "$code $err" "6 ds-accel: $dir/cache2/ops: it has owner"
DS_ACCEL_CACHE_DIR="$dir/cache2" ops clean
has "clean: a cache that others may write to" "$code $err" "6 ds-accel: $dir/cache2/ops: it has owner"
if [ -n "$can_switch" ]; then
    theirs
    mkdir -m 700 "$dir/closed"
    as "$program" --config "$config" ops import "$dir/closed"
    has "a directory that may not be read" "$code $err" "1 ds-accel: $dir/closed: Permission denied"
fi

# A directory with the files of two kinds of machines: a file for another processor is undamaged by
# its own manifest.
again
# foreign MANIFEST [ONLY]: add, or with ONLY put in place of the others, an entry for another processor.
foreign() {
    python3 - "$1" "${2-}" <<'END'
import hashlib, json, os, sys
path, only = sys.argv[1:]
with open(path) as file:
    manifest = json.load(file)
entry = dict(manifest["entries"][0])
start = path.rsplit(".", 2)[0]
with open(f"{start}.{entry['key'][:32]}.so", "rb") as file:
    data = bytearray(file.read())
data[18:20] = (183 if data[18] != 183 else 62).to_bytes(2, "little")
entry["key"] = "0" * 16 + entry["key"][16:]
entry["sha256"] = hashlib.sha256(data).hexdigest()
manifest["entries"] = [entry] + ([] if only else manifest["entries"])
with open(f"{start}.{entry['key'][:32]}.so", "wb") as file:
    file.write(data)
os.chmod(file.name, 0o644)
with open(path, "w") as file:
    json.dump(manifest, file)
END
}
foreign "$(one json)"
DS_ACCEL_CACHE_DIR="$dir/cache3" ops import "$dir/export"
has "two kinds of machines" "$code $err" "0 ds-accel: warning: ops: $dir/export/tiny.0000000000000000"
has "two kinds of machines: why" "$err" ".so is skipped: it is for machines with another kind of processor"
has "two kinds of machines: the count" "$err" "ds-accel: 2 files imported, 1 skipped"
is "two kinds of machines: what is imported" 2 "$(find "$dir/cache3/ops" -name '*.so' | wc -l)"
DS_ACCEL_CACHE_DIR="$dir/cache3" ops import --json "$dir/export"
is "two kinds of machines: JSON" '{"schema_version": 1, "files": 2, "skipped": 1}' \
    "$(printf '%s' "$out" | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)))')"
printf '%s' "$out" >"$dir/files.json"
run python3 "$(dirname "$0")/validate.py" "$prefix/share/ds-accel/schema/ops-files.json" <"$dir/files.json"
is "two kinds of machines: the schema" 0 "$code$out$err"
file=$(find "$dir/export" -name 'tiny.0000000000000000*.so')
printf x | dd of="$file" bs=1 seek=5000 conv=notrunc 2>/dev/null
refuses "a damaged file for another machine" "$file is damaged"
again
for manifest in "$dir/export"/*.json; do
    foreign "$manifest" only
done
refuses "no file for this machine" "warning: ops: $dir/export/tiny.0"
has "no file for this machine: the reason" "$err" "ds-accel: $dir/export has no exported ops for this machine: all are for machines with another kind of processor"
again

# ---- the allow-list ------------------------------------------------------------------------------

# trust MODE [NAME DIGEST]: set it in the configuration.
trust() {
    python3 - "$config" "$(sha256sum "$prefix/lib/ds-accel/ds_accel_cpu.so")" "$@" <<'END'
import json, sys
path, plugin, mode, *listed = sys.argv[1:]
with open(path) as file:
    config = json.load(file)
config["trust"] = {"mode": mode, "sha256": {"cpu": plugin.split()[0]} | dict(zip(listed[::2], listed[1::2]))}
with open(path, "w") as file:
    json.dump(config, file)
END
}
fresh
trust enforce
load tiny
has "allow-list: nothing is compiled that cannot be loaded" "$code $out, $(compiled)" \
    "1 -3 there is no kernel of \"tiny\" for cpu: trust.mode is enforce, and trust.sha256 has no \"ops/tiny\": \`ds-accel ops build tiny\` builds it and reports its SHA-256"
is "allow-list: nothing is compiled" 0 "$(find "$store" -name '*.so' 2>/dev/null | wc -l)"
ops show tiny
has "allow-list: the report" "$out" "tiny: unsupported"
ops build tiny
file=$(find "$store" -name 'tiny.*.so')
digest=$(sha256sum "$file")
digest=${digest%% *}
is "allow-list: build reports the digest" \
    "1 tiny: rejected, $file: its SHA-256 is $digest, and trust.sha256 has no \"ops/tiny\"" "$code $out"
compiled >/dev/null
load tiny
is "allow-list: a file of the cache that is not listed" \
    "1 -15 $file: hash_unlisted: its SHA-256 is $digest, and trust.sha256 has no \"ops/tiny\", 0" "$code $out, $(compiled)"
ops show tiny
has "allow-list: a file of the cache that is not listed: report" "$out" "tiny: rejected"
trust enforce ops/tiny "$digest"
loads "allow-list: a file of the cache that is listed" 1110 0
rm -r "$cache"
loads "allow-list: what is built is listed" 1110 1
sed -i 's/TINY 1/TINY 2/' "$src/tiny.c"
load tiny
has "allow-list: another source" "$code $out" "-15 $store/tiny."
has "allow-list: another source: why" "$out" "hash_mismatch: its SHA-256 is "
trust warn
load tiny
compiled >/dev/null
has "allow-list: warn" "$code $out $err" "0 tiny 2110 trust: $store/tiny."
recipe
loads "allow-list: off" 2110 0

# ---- memory --------------------------------------------------------------------------------------

# Sixteen sources in a control group with 1 GiB, of which a compiler is assumed to need two.
many() {
    fresh
    for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        echo "int tiny_$number;" >"$src/more$number.c"
    done
    recipe '"sources": ["*.c"]'
}
many
mkfifo "$dir/gate"
"$program" --config "$config" -a cpu ops build --jobs 3 tiny >"$dir/out" 2>&1 &
pid=$!
three_wait() {
    [ "$(wc -l <"$dir/entered")" = 3 ]
}
wait_for three_wait
mv "$dir/gate" "$dir/gate.held"
exec 9<>"$dir/gate.held"
printf '\n\n\n' >&9
ends "three compilers at once" 0 "$pid"
exec 9>&-
is "three compilers at once: all sources" 16 "$(compiled)"
group=
for root in /sys/fs/cgroup/memory /sys/fs/cgroup/unified /sys/fs/cgroup; do
    { [ -e "$root/memory.limit_in_bytes" ] || grep -qs memory "$root/cgroup.subtree_control"; } || continue
    mkdir "$root/ds-accel-test.$$" 2>/dev/null || continue
    group=$root/ds-accel-test.$$
    break
done
limit=
if [ -n "$group" ]; then
    for file in memory.limit_in_bytes memory.max; do
        { [ -e "$group/$file" ] && echo 1073741824 >"$group/$file"; } 2>/dev/null && limit=yes
    done
fi
if [ -n "$limit" ]; then
    many
    # shellcheck disable=SC2016 # variables of that script
    printf '#!/bin/sh\nmkdir "%s/alone" || echo together >>"%s/together"\n' "$dir" "$dir" >"$dir/before"
    printf '#!/bin/sh\nrmdir "%s/alone"\n' "$dir" >"$dir/after"
    chmod +x "$dir/before" "$dir/after"
    # shellcheck disable=SC2016 # variables of that shell
    run sh -c 'echo $$ >"$1" && shift && exec "$@"' sh "$group/cgroup.procs" "$program" --config "$config" -a cpu ops build tiny
    has "1 GiB of memory" "$code $out" "0 tiny: built, "
    is "1 GiB of memory: all sources" 16 "$(compiled)"
    is "1 GiB of memory: one compiler at a time" no "$([ -e "$dir/together" ] && echo yes || echo no)"
    is "1 GiB of memory: none was killed" 0 "$(cat "$group/memory.oom_control" "$group/memory.events" 2>/dev/null | awk '$1 == "oom_kill" {print $2}')"
else
    skip "1 GiB of memory" "no control group can be made here"
fi
[ -z "$group" ] || rmdir "$group"
finish
