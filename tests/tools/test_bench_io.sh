#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The command bench io: its rows have the settings that the op uses, --tune writes settings to the
# right file, from which the op then reads them, changes nothing else there, and follows no link to
# another user's file; each failure has its message and exit code, and no test file is left, also
# after a signal.  test_bench_io.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
unset NO_COLOR TERM
# A prefix with the plugin cpu and the op, which the testbed does not have.
prefix=$dir/prefix
mkdir -p "$prefix/bin" "$prefix/lib/ds-accel/ops" "$prefix/libexec/ds-accel"
cp "$build/bin/ds-accel" "$prefix/bin/"
cp "$build/libexec/ds-accel/ds-accel-probe" "$prefix/libexec/ds-accel/"
cp -a "$build"/lib/libds_accel* "$prefix/lib/"
cp "$build/lib/ds-accel/ds_accel_cpu.so" "$prefix/lib/ds-accel/"
cp "$build/obj/../lib/ds-accel/ops/async_io.so" "$prefix/lib/ds-accel/ops/"
cp -R "$build/share" "$prefix/share"
program=$prefix/bin/ds-accel
data=$dir/data
user=$XDG_CONFIG_HOME/ds-accel
mkdir "$data"

# io CODE ARGUMENT...: check that bench io exits with CODE, prints nothing on stderr and valid JSON
# on stdout. Later calls of `at` read this JSON.
io() {
    wanted=$1
    shift
    run "$program" -q -a cpu bench io "$data" --json --size 1M "$@"
    is "bench io $*" "$wanted " "$code $err"
    printf '%s\n' "$out" >"$dir/json"
    message=$(python3 "$source/tests/tools/validate.py" "$source/conf/schema/bench-io.json" <"$dir/json" 2>&1) || true
    is "bench io $* has the shape of bench-io.json" "" "$message"
    is "bench io $* leaves nothing" "" "$(ls -A "$data")"
}

# at EXPRESSION: the value of a Python expression, in which d is the report and row(NAME) a row.
at() {
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
def row(name):
    return next((row["settings"] for row in d["rows"] if row["name"] == name), None)
print(eval(sys.argv[2]))' "$dir/json" "$1" 2>&1
}

# refuses CODE PART ARGUMENT...: check that the command exits with CODE, prints nothing on stdout,
# and prints a message that contains PART on stderr.
refuses() {
    wanted=$1
    part=$2
    shift 2
    run "$program" -q -a cpu bench io "$@"
    is "$*" "$wanted " "$code $out"
    has "message of $*" "$err" "ds-accel: "
    has "message of $*" "$err" "$part"
}

# ---- measured rows -------------------------------------------------------------------------------

defaults="{'block_bytes': 1048576, 'queue_depth': 128, 'parallelism': 1, 'single_submit': False, 'overlap_events': False}"
io 0 --time 0.05
is "the defaults" "['default'] $defaults None" "$(at '[row["name"] for row in d["rows"]]') $(at 'row("default")') $(at 'd["tune"]')"
is "the size and the directory" "1048576 $data" "$(at 'd["size_bytes"]') $(at 'd["directory"]')"
mkdir -p "$user"
echo '{"op_settings": {"async_io": {"queue_depth": 7, "overlap_events": true, "engine": "threads"}}}' >"$user/mine.json"
io 0 --time 0.05
is "configured settings and the defaults" "['configured', 'default'] 7 True 1048576 $defaults threads" \
    "$(at '[row["name"] for row in d["rows"]]') $(at 'row("configured")["queue_depth"]') $(at 'row("configured")["overlap_events"]') $(at 'row("configured")["block_bytes"]') $(at 'row("default")') $(at 'd["engine"]')"
run "$program" -q -a cpu bench io "$data" --size 2500000 --time 0.05
is "text" "0 " "$code $err"
has "text: the engine" "$out" "engine threads, "
has "text: a row" "$out" "
configured     1 MiB      7            1   false     true "
(cd "$data" && run "$program" -q -a cpu bench io --json --size 1M --time 0.05 -o "$dir/output.json" && [ "$code$out$err" = 0 ]) ||
    fail "the current directory, to a file"
has "the current directory, to a file" "$(cat "$dir/output.json")" '"directory": "."'
rm -r "$user"

# ---- the settings that are found -----------------------------------------------------------------

# A busy machine decides which settings are the best, so each outcome is valid, but they are written
# in any case.
tuned='row("tuned") or row("default")'
io 0 --tune --force --time 0.3
is "written" "$user/op_settings.json True" "$(at 'd["tune"]["written"]') $(at 'd["tune"]["candidates"] > 3')"
found=$(at "$tuned")
rings=$(at 'd["engine"] == "io_uring"')
io 0 --time 0.05
is "the op uses what was written" "$found" "$(at 'row("configured") or row("default")')"
run "$program" config check
is "the file is valid" 0 "$code"
is "only what matters is written" "$([ "$rings" = True ] && echo 5 || echo 3)" \
    "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["op_settings"]["async_io"]))' "$user/op_settings.json")"

# Everything else stays: the form, the mode, the engine.
printf '{\n "accelerator" : "cpu",\n "op_settings": {\n   "async_io": { "engine": "threads", "queue_depth":1},\n   "cpu_adam": {"x": 1.50}\n }\n}' >"$user/z.json"
chmod 640 "$user/z.json"
ln -s z.json "$user/y.json"
cp "$user/op_settings.json" "$dir/before"
io 0 --tune --force --time 0.3
is "the last file with settings is written, with threads without switches" "$user/z.json {
 \"accelerator\" : \"cpu\",
 \"op_settings\": {
   \"async_io\": { \"engine\": \"threads\", \"queue_depth\":N, \"block_bytes\": N, \"parallelism\": N},
   \"cpu_adam\": {\"x\": 1.50}
 }
}" "$(at 'd["tune"]["written"]') $(sed '/async_io/s/: *[0-9][0-9]*/:N/g; s/"block_bytes":N/"block_bytes": N/; s/"parallelism":N/"parallelism": N/' "$user/z.json")"
is "the mode" 640 "$(stat -c %a "$user/z.json")"
is "the link" z.json "$(readlink "$user/y.json")"
cmp -s "$dir/before" "$user/op_settings.json" || fail "the other file changed"
is "no other file" "op_settings.json
y.json
z.json" "$(ls -A "$user")"
rm "$user/y.json" "$user/z.json"

# Another file than the user's: of the option or of the variable.
echo '{}' >"$dir/mine.json"
ln -s mine.json "$dir/link.json"
DS_ACCEL_CONFIG=$dir/link.json run "$program" -q -a cpu bench io "$data" --size 1M --tune --force --time 0.3
is "to DS_ACCEL_CONFIG" "0 " "$code $err"
has "to DS_ACCEL_CONFIG" "$out" "op_settings.async_io was written to $dir/link.json"
is "through a link of the same user" mine.json "$(readlink "$dir/link.json")"
has "through a link of the same user" "$(cat "$dir/mine.json")" '"async_io": {"block_bytes": '
cmp -s "$dir/before" "$user/op_settings.json" || fail "the user's file changed"
if [ "$(id -u)" = 0 ]; then
    # The owner stays; what another user's link leads to is left alone.
    echo '{}' >"$dir/mine.json"
    chown 12345:12346 "$dir/mine.json"
    run "$program" -q -a cpu --config "$dir/mine.json" bench io "$data" --size 1M --tune --force --time 0.3
    is "root writes another user's file" "0 12345:12346" "$code $(stat -c %u:%g "$dir/mine.json")"
    refuses 6 "$dir/link.json: a symbolic link leads nowhere, or to what another user owns" "$data" \
        --config "$dir/link.json" --size 1M --tune --force --time 0.3
    chown -h 12345 "$user"
    mv "$user" "$dir/elsewhere"
    ln -s "$dir/elsewhere" "$user"
    refuses 6 "symbolic link" "$data" --size 1M --tune --force --time 0.3
    rm "$user"
    mv "$dir/elsewhere" "$user"
    chown 0 "$user"
fi
DS_ACCEL_CONFIG=/proc/self/mounts
export DS_ACCEL_CONFIG
refuses 5 "/proc/self/mounts:1:" "$data" --size 1M --tune
unset DS_ACCEL_CONFIG

# ---- failures ------------------------------------------------------------------------------------

refuses 1 "$dir/none: cannot create the test file: No such file or directory" "$dir/none"
refuses 1 "$dir/json: cannot create the test file: Not a directory" "$dir/json"
refuses 1 "/proc: cannot create the test file: " /proc
refuses 1 "$data: the test file: it needs 67108864 MiB, and " "$data" --size 64T
refuses 2 "--size takes bytes from 1M to 64T, not \"4K\"" "$data" --size 4K
refuses 2 "one --size" "$data" --size 1M --size 2M
refuses 2 "does not take --only" "$data" --only copy
refuses 2 "does not take --device" "$data" --device 0
refuses 2 "--force with --tune" "$data" --force
refuses 2 "bench takes [NAME|io [DIR]], and 3 arguments were given" "$data" more
run "$program" bench cpu --tune
is "--tune is of io" "2 ds-accel: only bench io takes --tune; see ds-accel bench --help" "$code $err"
run "$program" bench cpu more
has "two names" "$code $err" '2 ds-accel: bench takes [NAME] or io [DIR], not "cpu more"'
# The file cannot grow to its size.
(
    trap '' XFSZ
    ulimit -f 1024
    exec "$program" -q -a cpu bench io "$data" --size 16M
) >"$dir/out" 2>"$dir/err" && code=0 || code=$?
is "a file that cannot grow" 1 "$code"
has "a file that cannot grow" "$(cat "$dir/err")" "ds-accel: $data: writing the test file: File too large"
is "a file that cannot grow leaves nothing" "" "$(ls -A "$data")$(cat "$dir/out")"
# In a mount namespace: a file system that is read-only, and one that is too small.
cat >"$dir/mounted.sh" <<'END'
mount -t tmpfs -o size=2m none "$2" && mkdir "$2/d" || exit 0
"$1" -q -a cpu bench io "$2/d" --size 3M
echo "small $?"
"$1" -q -a cpu bench io "$2/d" --size 1M --time 0.05 | head -n 1
mount -o remount,ro "$2"
"$1" -q -a cpu bench io "$2/d" --size 1M
echo "read-only $?"
END
mkdir "$dir/mounted"
mounted=$(unshare -m sh "$dir/mounted.sh" "$program" "$dir/mounted" 2>&1) || mounted=
case $mounted in
*read-only*)
    has "too small a file system" "$mounted" "it needs 3 MiB, and 2 MiB are free; see --size
small 1
"
    has "tmpfs" "$mounted" "memory and no disk, as the file system is tmpfs; 0.05 s"
    has "a read-only file system" "$mounted" "cannot create the test file: Read-only file system
read-only 1"
    ;;
esac

# A signal ends the command at once, prints nothing and leaves no file. The test waits until it has
# opened its file.
cat >"$dir/interrupt.py" <<'END'
import glob, os, signal, subprocess, sys, time

signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for background commands
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

def has_file():
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link).startswith(sys.argv[1] + "/"):
                return True
        except OSError:
            pass
    return False

while process.poll() is None and not has_file():
    time.sleep(0.01)
process.send_signal(signal.SIGINT)
print(process.communicate()[0].decode(), process.returncode)
END
for options in "" "--tune --force"; do
    # shellcheck disable=SC2086 # a list of words
    run python3 "$dir/interrupt.py" "$data" "$program" -q -a cpu bench io "$data" --size 1M --time 600 $options
    is "SIGINT $options" "0  -2" "$code $out"
    is "SIGINT $options leaves nothing" "" "$(ls -A "$data")"
    cmp -s "$dir/before" "$user/op_settings.json" || fail "SIGINT $options: the user's file changed"
done

finish
