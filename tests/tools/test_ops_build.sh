#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Attacks on the op builder of one machine: what makes it build again, builds that are killed,
# stopped or fail, damaged caches, other places.  test_ops_build.sh BUILD
set -eu
build=$(cd "$1" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/ops_build.sh
. "$(dirname "$0")/ops_build.sh"

skip() {
    echo "ops_build: not tested: $1: $2"
}

# ---- what makes it build again -------------------------------------------------------------------

fresh
DS_ACCEL_LOG=info loads "nothing is built" 1110 1
has "nothing is built: the log" "$err" "ops: tiny loaded from $store/tiny."
has "nothing is built: where the op was found" "$err" "(built now), code path tiny.c"
DS_ACCEL_LOG=info loads "cached" 1110 0
has "cached: where the op was found" "$err" "(cached), code path tiny.c"
builds "cached: the command" cached 0
is "nothing is left" "" "$(leftovers)"
touch -d '1 hour ago' "$src/tiny.c" "$src/include/tiny.h" "$vendor/vendor.h"
builds "times of the past" cached 0
touch -d 'next year' "$src/tiny.c" "$src/include/tiny.h" "$vendor/vendor.h"
builds "times of the future" cached 0
# Other contents of the same size with the old time.
touch -r "$src/tiny.c" "$dir/time"
sed -i 's/TINY 1/TINY 2/' "$src/tiny.c"
touch -r "$dir/time" "$src/tiny.c"
loads "a source" 2110 1
sed -i 's/HEADER 1/HEADER 2/' "$src/include/tiny.h"
touch -r "$dir/time" "$src/include/tiny.h"
loads "a header beside it" 2210 1
sed -i 's/VENDOR 1/VENDOR 2/' "$vendor/vendor.h"
touch -r "$dir/time" "$vendor/vendor.h"
loads "a header elsewhere" 2220 1
echo '#define VENDOR 1' >"$vendor/vendor.h"
loads "a header as it was" 2210 0
recipe '"cflags": ["-std=c11", "-DFLAG=1"]'
loads "flags" 2211 1
recipe '"cflags": ["-std=c11", "-DFLAG=1"], "requires": {"cpu": []}'
loads "requirements" 2211 1
mv "$vendor" "$vendor.moved"
load tiny
is "a header that is no longer there" "1 -15 the op tiny could not be built: a command of the build exited with status 1; \`ds-accel ops build tiny\` shows more, 1" "$code $out, $(compiled)"
mv "$vendor.moved" "$vendor"
recipe
loads "the recipe as it was" 2210 0
compiler "$dir/cc" -DFLAG=3
loads "a compiler with other contents" 2213 1
CC="$dir/cc -DFLAG=4" loads "arguments of the compiler" 2214 1
compiler "$dir/cc"
loads "the compiler as it was" 2210 0
if command -v clang >/dev/null; then
    CC=clang builds "another compiler" built 0
    CC=clang builds "another compiler: cached" cached 0
else
    skip "another compiler" "there is no clang"
fi

# A header that changes after it was read must not be taken for the one that was compiled.
fresh
cat >"$dir/after" <<END
#!/bin/sh
[ "\$1" != link ] || exit 0
rm "$dir/after"
echo '#define HEADER 5' >"$src/include/tiny.h"
END
chmod +x "$dir/after"
loads "a header that changes while it is compiled" 1510 2
loads "a header that changed while the op was compiled" 1510 0
cat >"$dir/after" <<END
#!/bin/sh
[ "\$1" = link ] || date +'#define HEADER 5 // %N' >"$src/include/tiny.h"
END
chmod +x "$dir/after"
rm -rf "$cache"
load tiny
is "a header that changes all the time" "1 -15 the op tiny could not be built: a source or header of tiny was changed while it was compiled: build it again; \`ds-accel ops build tiny\` shows more, 3" "$code $out, $(compiled)"
cat >"$dir/after" <<END
#!/bin/sh
[ "\$1" != link ] || exit 0
rm "$dir/after"
sed -i 's/TINY 1/TINY 3/' "$src/tiny.c"
END
chmod +x "$dir/after"
rm -rf "$cache"
loads "a source that changes while it is compiled" 3510 2
loads "a source that changed while the op was compiled" 3510 0
cat >"$dir/after" <<END
#!/bin/sh
[ "\$1" = link ] || echo >>"$src/tiny.c"
END
chmod +x "$dir/after"
rm -rf "$cache"
load tiny
is "a source that changes all the time" "1 -15 the op tiny could not be built: a source in $src was changed while it was compiled: build it again; \`ds-accel ops build tiny\` shows more, 3" "$code $out, $(compiled)"
rm "$dir/after"

[ -n "${FULL-}" ] || is_unknown=yes

# ---- builds that are killed or stopped -----------------------------------------------------------

# A process that waits builds the op when the one that builds is killed. A program that the compiler
# runs ends as well.
fresh
cat >"$dir/before" <<END
#!/bin/sh
echo \$PPID >>"$dir/entered"
echo \$\$ >>"$dir/entered"
read -r line <"$dir/gate"
END
chmod +x "$dir/before"
start_gated first
first=$pid
rm "$dir/before"
start second
second=$pid
wait_for waits_for_lock "$second"
is "a build that is killed: its directory" 1 "$(leftovers | wc -w)"
kill -9 "$first"
ends "a build that is killed" 137 "$first"
while read -r process; do
    wait_for is_gone "$process"
done <"$dir/entered"
ends "the one that waited" 0 "$second"
is "the one that waited: its op" "tiny 1110, 2" "$(cat "$dir/second"), $(compiled)"
is "the one that waited: nothing is left" "" "$(leftovers)"

# Nobody waits: the next build removes what is left.
fresh
start_gated first
kill -9 "$pid"
ends "a build that is killed alone" 137 "$pid"
while read -r process; do
    wait_for is_gone "$process"
done <"$dir/entered"
is "a build that is killed alone: its directory" 1 "$(leftovers | wc -w)"
loads "after a build that was killed" 1110 2
is "after a build that was killed: nothing is left" "" "$(leftovers)"

# Nobody waits for a process that is stopped, and nobody removes its directory.
fresh
start_gated first
first=$pid
kill -STOP "$first"
loads "a build that is stopped: another process builds" 1110 2
has "a build that is stopped: a warning" "$err" "ops: process $first, which builds the op, is stopped: this process builds it, too"
is "a build that is stopped: its directory" 1 "$(leftovers | wc -w)"
kill -CONT "$first"
echo >"$dir/gate.held"
ends "a build that goes on" 0 "$first"
is "a build that goes on: its op" "tiny 1110" "$(cat "$dir/first")"
is "a build that goes on: nothing is left" "" "$(leftovers)"
builds "a build that went on: the op is cached" cached 0

# ---- builds that fail ----------------------------------------------------------------------------

# fails NAME REASON COMPILATIONS: check the command and a program, and that the command to repeat
# does what was reported.
fails() {
    load tiny
    is "$1: load" "1 -15 the op tiny could not be built: $2; \`ds-accel ops build tiny\` shows more, $3" "$code $out, $(compiled)"
    ops build tiny
    is "$1: build" "1 tiny: failed: $2, $3" "$code $(echo "$out" | head -n 1), $(compiled)"
    repeat=$(echo "$out" | sed -n 's/^  to repeat: //p')
    printed=$(echo "$out" | sed -n 's/^    //p')
    [ -n "$repeat" ] || { fail "$1: a command to repeat" "$out"; return; }
    run env LC_ALL=C sh -c "$repeat"
    is "$1: repeated" "a command of the build exited with status $code" "$2"
    is "$1: the output when it is repeated" "$printed" "$out$err"
    rm -f "$log"
}

fresh
echo '#error "broken on purpose"' >>"$src/tiny.c"
fails "a broken source" "a command of the build exited with status 1" 1
has "a broken source: the compiler's words" "$printed" "tiny.c:14:2: error: #error \"broken on purpose\""
is "a broken source: nothing is left but what failed" "tiny.failed" "$(ls -A "$store")"
fresh
recipe '"libs": ["does-not-exist"]'
fails "a link that fails" "a command of the build exited with status 1" 1
has "a link that fails: the linker's words" "$printed" "cannot find -ldoes-not-exist"
recipe
loads "corrected" 1110 1
is "corrected: what failed is gone" "" "$(find "$store" -name '*.failed')"
recipe '"libs": ["does-not-exist"]'
ops build tiny
is "broken again: what failed is kept" "1 tiny.failed" "$code $(find "$store" -name '*.failed' -printf '%f')"
recipe
ops clean tiny
is "clean removes what failed" "0  " "$code $(ls -A "$store") $(leftovers)"

# Those who wait for a build get its failure, and do not repeat it.
fresh
# shellcheck disable=SC2016 # variables of that script
printf '#!/bin/sh\n[ "$1" = link ] || kill -9 $PPID\n' >"$dir/before"
chmod +x "$dir/before"
load tiny
is "a compiler that is killed" "1 -15 the op tiny could not be built: a command of the build was ended by signal 9 (SIGKILL), perhaps because memory was exhausted; \`ds-accel ops build tiny\` shows more" "$code $out"
printf '#!/bin/sh\nexit 3\n' >"$dir/before"
start_gated first
first=$pid
others=
for number in 1 2 3 4 5 6 7 8; do
    start "other$number"
    others="$others $pid"
done
for process in $others; do
    wait_for waits_for_lock "$process"
done
compiled >"$dir/count"
echo >"$dir/gate.held"
ends "eight wait for a build that fails: itself" 1 "$first"
number=1
for process in $others; do
    ends "eight wait for a build that fails: number $number" 1 "$process"
    is "eight wait for a build that fails: the words of number $number" "$(cat "$dir/first")" "$(cat "$dir/other$number")"
    number=$((number + 1))
done
has "eight wait for a build that fails: the words" "$(cat "$dir/first")" "could not be built: a command of the build exited with status 3; "
is "eight wait for a build that fails: nobody repeats it" 0 "$(compiled)"
rm "$dir/before"
loads "the cause is gone" 1110 1

# A compiler that is killed is the failure of one process: the driver exits with 1 then.
fresh
cat >"$dir/before" <<END
#!/bin/sh
mkdir "$dir/killed" 2>/dev/null || exit 0
echo "gcc: fatal error: Killed signal terminated program cc1" >&2
exit 1
END
chmod +x "$dir/before"
start_gated first
first=$pid
start other
wait_for waits_for_lock "$pid"
echo >"$dir/gate.held"
ends "a compiler that was killed" 1 "$first"
ends "a compiler that was killed: who waited builds" 0 "$pid"
is "a compiler that was killed: its op" "tiny 1110" "$(cat "$dir/other")"
rm -r "$dir/before" "$dir/killed"
if unshare --time --boottime 100000 true 2>/dev/null && unshare --mount true 2>/dev/null; then
    fresh
    printf '#!/bin/sh\nexit 3\n' >"$dir/before"
    chmod +x "$dir/before"
    run unshare --time --boottime 100000 "$dir/load" "$config" tiny
    is "a failure before a reboot" "1, 1" "$code, $(compiled)"
    rm "$dir/before"
    echo 00000000-0000-4000-8000-000000000000 >"$dir/boot"
    # shellcheck disable=SC2016 # variables of that shell
    run unshare --mount sh -c 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"' \
        sh "$dir/boot" "$dir/load" "$config" tiny
    is "a failure before a reboot is not one of this boot" "0 tiny 1110, 1" "$code $out, $(compiled)"
else
    skip "a failure before a reboot" "there are no time or mount namespaces here"
fi

# ---- damaged caches ------------------------------------------------------------------------------

# damaged NAME FILE WARNING: check that the op is built again and that a warning names the file.
damaged() {
    loads "$1" 1110 1
    has "$1: a warning" "$err" "ops: $2 is not used: $3"
    loads "$1: again" 1110 0
    is "$1: again without a warning" "" "$err"
}

fresh
builds "before damage" built 1
so=$file
json=$(echo "$store"/tiny.*.json)
cp "$so" "$dir/good.so"
cp "$json" "$dir/good.json"
recipe '"cflags": ["-DFLAG=7"]'
ops build tiny
cp "${out#*, }" "$dir/other.so"
recipe
compiled >/dev/null
head -c 2000 "$dir/good.so" >"$so"
damaged "half of the file" "$so" ""
: >"$so"
damaged "an empty file" "$so" ""
cp "$dir/other.so" "$so"
damaged "the file of another build" "$so" "its contents are not those that were built"
cp "$(find "$build/lib/ds-accel/ops" -name cpu_adam.so)" "$so"
damaged "the file of another op" "$so" "the file name has \"tiny\", the note \"cpu_adam\""
python3 - "$so" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    data = bytearray(file.read())
    data[len(data) // 2] ^= 1
    file.seek(0)
    file.write(data)
END
damaged "a byte in its middle" "$so" "its contents are not those that were built"
rm "$so"
damaged "no file" "$so" ""
rm "$so"
ln -s "$dir/other.so" "$so"
damaged "a link to another file" "$so" "its contents are not those that were built"
rm "$so"
mkfifo "$so"
damaged "a pipe" "$so" ""
chmod o+w "$so"
damaged "a file that others may write to" "$so" "$so has owner"
: >"$json"
damaged "an empty manifest" "$json" "it is damaged"
head -c 300 "$dir/good.json" >"$json"
damaged "half a manifest" "$json" "it is damaged"
head -c 9000000 /dev/zero | tr '\0' ' ' >>"$json"
damaged "a huge manifest" "$json" "it is damaged"
chmod o+w "$json"
damaged "a manifest that others may write to" "$json" "it is damaged, or another user could have changed it"
# manifest NAME PYTHON: change the manifest, whose first entry is e.
manifest() {
    python3 - "$dir/good.json" "$json" "$2" <<'END'
import json, sys
m = json.load(open(sys.argv[1]))
e = m["entries"][0]
exec(sys.argv[3])
json.dump(m, open(sys.argv[2], "w"))
END
    damaged "a manifest with $1" "$json" "it is damaged"
}
manifest "another version" 'm["version"] = 2'
manifest "the recipe of another one" 'm["recipe"] = 64 * "0"'
manifest "an object of entries" 'm["entries"] = {"a": e}'
manifest "a number as entry" 'm["entries"].append(3)'
manifest "a path as key" 'e["key"] = "../../../../../../../../tmp/xxxxx"'
manifest "a number as digest" 'e["sha256"] = 5'
manifest "a header without digest" 'e["headers"][0] = ["tiny.h"]'
manifest "headers that are none" 'e["headers"] = {}'
python3 -c 'print(100000 * "[" + 100000 * "]")' >"$json"
damaged "a deep manifest" "$json" "it is damaged"
rm "$json"
mkdir "$json"
damaged "a directory in place of the manifest" "$json" "it is damaged"
rm "$so"
mkdir "$so"
touch "$so/data"
damaged "a directory in place of the file" "$so" ""
is "directories in place of files: nothing is left" "" "$(leftovers)"
is "directories in place of files are renamed" "$so.directory/data" "$(echo "$so.directory"/*)"
is "directories in place of files are renamed: the manifest" yes "$([ -d "$json.directory" ] && echo yes)"
rm "$so"
mkdir "$so"
ops clean
is "clean and a directory in place of a file" "0 ds-accel: warning: ops: $so is not removed: it is a directory, in place of a file
ds-accel: 3 files removed" "$code $err"
rm -rf "$so" "$so.directory" "$json.directory"

# ---- built although there is one -----------------------------------------------------------------

fresh
builds "before --force" built 1
ops build --force tiny
is "--force: built again" "0 tiny: built, $file" "$code $out"
is "--force: no warning" "" "$err"
mkdir "$prefix/lib/ds-accel/ops"
cp "$file" "$prefix/lib/ds-accel/ops/tiny.so"
ops build tiny
is "an installed op" "0 tiny: installed, $prefix/lib/ds-accel/ops/tiny.so" "$code $out"
ops build --force tiny
is "--force beside an installed op" "0 tiny: built, $file" "$code $out"
is "--force beside an installed op: a warning" "ds-accel: warning: ops: $prefix/lib/ds-accel/ops/tiny.so is used all the same: it precedes $file" "$err"
head -c 2000 "$file" >"$prefix/lib/ds-accel/ops/tiny.so"
ops build --force tiny
has "--force beside a damaged op" "$code $out" "0 tiny: built, $file"
has "--force beside a damaged op: a warning" "$err" "ds-accel: warning: ops: $prefix/lib/ds-accel/ops/tiny.so precedes $file, but is rejected: "
has "--force beside a damaged op: the remedy" "$err" ": remove it"
rm -r "$prefix/lib/ds-accel/ops"
sed -i 's/TINY 1/TINY 2/' "$src/tiny.c"
ops build --force tiny
is "--force of another source: no warning" "0 " "$code $err"
compiled >/dev/null

# ---- the same file everywhere --------------------------------------------------------------------

# Sources, prefix and cache at other places, with names that are awkward for compilers and make.
fresh
cat >>"$src/tiny.c" <<'END'
#include <assert.h>
const char *tiny_where(int line);
const char *tiny_where(int line) { assert(line > 0); return __FILE__; }
END
flags='"cflags": ["-g", "-O1", "-std=c11"]'
recipe "$flags"
builds "one place" built 1
one=$(sha256sum <"$file")
first_src=$src
src="$dir/other place/a=b's \$c#d:e"
mkdir -p "$src"
cp -R "$first_src/." "$src/"
recipe "$flags"
builds "sources at another place" cached 0
DS_ACCEL_CACHE_DIR="$dir/cache of sources=x's"
store=$DS_ACCEL_CACHE_DIR/ops
builds "sources and a cache at other places" built 1
is "sources and a cache at other places: the same file" "$one" "$(sha256sum <"$file")"
loads "sources and a cache at other places: it can be loaded" 1110 0
sed -i 's/HEADER 1/HEADER 4/' "$src/include/tiny.h"
loads "sources at another place: a header" 1410 1
is "its path is not in the file" 0 "$(grep -c -e "other place" -e "cache of" "$file" || true)"
src=$first_src
export DS_ACCEL_CACHE_DIR="$cache"
store=$cache/ops

# Macros of dates, with each compiler: the time of the source and that of the build do not count.
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || {
        skip "dates with $compiler" "there is no $compiler"
        continue
    }
    fresh
    echo 'const char *tiny_date(void); const char *tiny_date(void) { return __DATE__ __TIME__ __TIMESTAMP__; }' >>"$src/tiny.c"
    recipe '"cflags": ["-std=c11", "-pedantic-errors", "-Wall", "-Werror"]'
    CC=$compiler builds "dates with $compiler" built 0
    one=$(sha256sum <"$file")
    touch -d '1 hour ago' "$src/tiny.c"
    rm -rf "$cache"
    CC=$compiler builds "dates with $compiler, again" built 0
    is "dates with $compiler: the same file" "$one" "$(sha256sum <"$file")"
    is "dates with $compiler: none is that of today" 0 "$(grep -c "$(date +%Y)" "$file" || true)"
done

# The project's own op, from two prefixes.
if taken 3; then
    mkdir "$dir/prefix2"
    cp -a "$prefix/." "$dir/prefix2/"
    printf '{}' >"$dir/empty.json"
    for place in "$prefix" "$dir/prefix2"; do
        run env -u CC DS_ACCEL_CACHE_DIR="$dir/cache.${place##*/}" "$place/bin/ds-accel" --config "$dir/empty.json" -a cpu ops build cpu_adam
        has "cpu_adam of $place" "$code $out" "0 cpu_adam: built, "
    done
    is "cpu_adam of two prefixes: the same file" 1 "$(sha256sum "$dir"/cache.*/ops/cpu_adam.*.so | cut -d ' ' -f 1 | sort -u | wc -l)"
fi

# C++ and, where there is nvcc, an image.
if command -v c++ >/dev/null; then
    fresh
    cat >"$src/more.cpp" <<'END'
#include <string>
#include <vector>
namespace { struct counter { std::vector<std::string> names; ~counter() { names.clear(); } } counter; }
extern "C" const char *tiny_more(void);
extern "C" const char *tiny_more(void) { counter.names.push_back(__FILE__); return counter.names.back().c_str(); }
END
    more='"sources": ["*.c", "*.cpp"], "cflags": ["-g", "-O1"]'
    recipe "$more"
    CXX=c++ ops build tiny
    has "C++" "$code $out" "0 tiny: built, "
    one=$(sha256sum <"${out#*, }")
    cp -R "$src" "$dir/moved"
    src=$dir/moved recipe "$more"
    CXX=c++ DS_ACCEL_CACHE_DIR="$dir/cache.cpp" ops build tiny
    has "C++ at another place" "$code $out" "0 tiny: built, $dir/cache.cpp"
    is "C++ at another place: the same file" "$one" "$(sha256sum <"${out#*, }")"
fi
if command -v nvcc >/dev/null && taken 3; then
    fresh
    echo 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }' >"$src/twice.cu"
    cat >"$src/image.c" <<'END'
__asm__(".section .rodata\ntiny_image: .incbin " TINY_IMAGE "\n.byte 0\n.previous");
END
    sed -i 's/TINY_IMAGE/"\\"" TINY_IMAGE "\\""/' "$src/image.c"
    more='"sources": ["*.c"], "images": {"TINY_IMAGE": "twice.cu"}'
    for place in 1 2; do
        rm -rf "$dir/cuda$place"
        cp -R "$src" "$dir/cuda$place"
        src=$dir/cuda$place recipe "$more"
        TORCH_CUDA_ARCH_LIST=9.0 DS_ACCEL_CACHE_DIR="$dir/cache.cuda$place" ops build tiny
        has "an image at place $place" "$code $out" "0 tiny: built, "
    done
    is "an image at two places: the same file" 1 "$(sha256sum "$dir"/cache.cuda*/ops/tiny.*.so | cut -d ' ' -f 1 | sort -u | wc -l)"
fi

# ---- no compiler ---------------------------------------------------------------------------------

# refused NAME REASON: check that there is no kernel, and why, without a compilation.
refused() {
    load tiny
    is "$1: load" "1 -3 there is no kernel of \"tiny\" for cpu: $2" "$code $out"
    ops build tiny
    is "$1: build" "1 tiny: unsupported: $2" "$code $out"
    is "$1: nothing is compiled" 0 "$(compiled)"
}

fresh
CC=/nonexistent refused "CC is no program" 'the variable CC is "/nonexistent", but /nonexistent is no program: correct or unset it'
none="no compiler for C: CC is not set, and there is no cc, gcc or clang in PATH; install the package gcc"
no_compiler=yes refused "no compiler in PATH" "$none"
CC="$dir/cc -march=native" refused "code for this CPU only" "the compiler for cc has the argument -march=native, which is the CPU that compiles, and others share the result: remove it from the variable"
builds "with a compiler" built 1
mv "$vendor" "$vendor.moved"
no_compiler=yes loads "what was built is found without compiler and headers" 1110 0
mv "$vendor.moved" "$vendor"
CC=/nonexistent refused "CC is no program, and it was built" 'the variable CC is "/nonexistent", but /nonexistent is no program: correct or unset it'
CC="$dir/cc -march=native" refused "code for this CPU only, and it was built" "the compiler for cc has the argument -march=native, which is the CPU that compiles, and others share the result: remove it from the variable"
sed -i 's/HEADER 1/HEADER 2/' "$src/include/tiny.h"
no_compiler=yes refused "another header, and no compiler" "$none"

# Without a compiler, every entry is tried, except those that are for CPUs that CC named.
fresh
CC="$dir/cc -DFLAG=5" loads "one compiler" 1115 1
CC="$dir/cc -DFLAG=6" loads "another compiler" 1116 1
last=$(find "$store" -name "tiny.*.so" -printf "%T@ %p\n" | sort -n | sed -n "\$s/^[^ ]* //p")
no_compiler=yes loads "no compiler: the last build" 1116 0
mv "$last" "$dir/last.so"
no_compiler=yes loads "no compiler: the build before" 1115 0
head -c 3000 "$dir/last.so" >"$last"
no_compiler=yes loads "no compiler: the build before, behind a damaged one" 1115 0
fresh
CC="$dir/cc -march=$(uname -m | sed 's/x86_64/x86-64/; s/aarch64/armv8-a/')" loads "CC names the CPU" 1110 1
no_compiler=yes refused "no compiler, and CC named the CPU" "$none"

# ---- libraries and requirements ------------------------------------------------------------------

# A library of the op is replaced by a later generation.
fresh
mkdir -p "$dir/foo"
echo 'int foo(void); int foo(void) { return 1; }' >"$dir/foo.c"
library() {
    rm -f "$dir/foo"/*
    "$cc" -shared -fPIC -Wl,-soname,libfoo.so."$1" -o "$dir/foo/libfoo.so.$1" "$dir/foo.c"
    ln -s "libfoo.so.$1" "$dir/foo/libfoo.so"
}
library 1
printf 'int foo(void);\nint tiny_foo(void);\nint tiny_foo(void) { return foo(); }\n' >>"$src/tiny.c"
recipe '"libs": ["foo"], "ldflags": ["-L'"$dir"'/foo", "-Wl,-rpath,'"$dir"'/foo"]'
loads "with a library" 1110 1
loads "with a library: cached" 1110 0
library 2
loads "its library has another name now" 1110 1
has "its library has another name now: a warning" "$err" "libfoo.so.1 is not installed; it is built again"
loads "its library has another name now: cached" 1110 0
is "its library has another name now: no warning" "" "$err"
rm "$dir/foo"/*
load tiny
has "its library is gone" "$code $out" "1 -15 the op tiny could not be built: a command of the build exited with status 1"
# A static library is a part of the op.
archive() {
    echo "int foo(void); int foo(void) { return $1; }" >"$dir/foo.c"
    "$cc" -fPIC -c -o "$dir/foo.o" "$dir/foo.c"
    rm -rf "$src/sub"
    mkdir "$src/sub"
    ar rc "$src/sub/libfoo.a" "$dir/foo.o"
}
rm -rf "$cache"
sources
cat >>"$src/tiny.c" <<'END'
int foo(void);
int tiny_foo(void);
int tiny_foo(void) { return foo(); }
END
archive 1
recipe '"libs": ["foo"], "ldflags": ["-Lsub"]'
compiled >/dev/null
builds "a static library" built 1
one=$(sha256sum <"$file")
builds "a static library: cached" cached 0
loads "a static library: loaded" 1110 0
archive 5
loads "another static library" 1110 1
builds "another static library: cached" cached 0
is "another static library: another file" no "$([ "$one" = "$(sha256sum <"$file")" ] && echo yes || echo no)"
archive 1
builds "the static library as it was" cached 0
is "the static library as it was: the file" "$one" "$(sha256sum <"$file")"
# Each linker lists what it reads in its own way, also the members of a thin archive, what a linker
# script names, and what is in a response file.
# holds KIND NUMBER: write the library of this kind, which returns the number.
holds() {
    archive "$2"
    case $1 in
    thin)
        cp "$dir/foo.o" "$src/sub/foo.o"
        rm "$src/sub/libfoo.a"
        (cd "$src/sub" && ar rcT libfoo.a foo.o)
        ;;
    script)
        mv "$src/sub/libfoo.a" "$src/sub/libreal.a"
        echo 'INPUT(libreal.a)' >"$src/sub/libfoo.a"
        ;;
    response) echo '-Lsub -lfoo' >"$src/sub/flags" ;;
    esac
}
default_cc=$cc
for linker in bfd gold lld mold; do
    for driver in gcc clang; do
        if ! command -v "ld.$linker" >/dev/null || ! command -v "$driver" >/dev/null; then
            skip "ld.$linker behind $driver" "one of them is not installed"
            continue
        fi
        cc=$(command -v "$driver")
        compiler "$dir/cc"
        for kind in whole thin script response; do
            taken 4 || [ "$driver$linker" = clanglld ] || continue
            rm -rf "$cache"
            flags="\"-fuse-ld=$linker\", $([ $kind = response ] && echo '"@sub/flags"' || echo '"-Lsub", "-lfoo"')"
            recipe "\"ldflags\": [$flags]"
            holds $kind 1
            compiled >/dev/null
            builds "ld.$linker behind $driver: $kind" built 1
            builds "ld.$linker behind $driver: $kind: cached" cached 0
            holds $kind 5
            builds "ld.$linker behind $driver: $kind: another library" built 1
            holds $kind 1
            builds "ld.$linker behind $driver: $kind: as it was" cached 0
        done
    done
done
cc=$default_cc
compiler "$dir/cc"
rm -r "$src/sub"
sources
rm -rf "$cache"
recipe '"libs": ["foo"], "requires": {"libraries": ["foo"]}'
compiled >/dev/null
refused "a required library is missing" "a program with the library foo does not link: cannot find -lfoo: No such file or directory"

fresh
while IFS='|' read -r requires reason; do
    recipe "\"requires\": {$requires}"
    refused "$requires" "$reason"
done <<'END'
"cpu": ["bogus"]|bogus is no feature of CPUs that this version knows
"headers": ["no-such.h"]|a program with the header no-such.h does not compile: no-such.h: No such file or directory
"commands": ["no-such-command"]|there is no command no-such-command in PATH
"env": ["NO_SUCH_VARIABLE"]|the variable NO_SUCH_VARIABLE is not set
"ops": ["no_such_op"]|the op no_such_op cannot be loaded: it is not installed and has no recipe
"ops": ["tiny"]|the op tiny requires itself
"functions": ["no_such"]|a program with the function no_such does not link: undefined reference to `no_such'
END
for missing in cufile.h:libcufile-dev libaio.h:libaio-dev liburing.h:liburing-dev infiniband/verbs.h:libibverbs-dev; do
    echo "#include <${missing%:*}>" >"$dir/has.c"
    ! "$cc" -E "$dir/has.c" >"$dir/out" 2>&1 || continue
    recipe '"requires": {"headers": ["'"${missing%:*}"'"]}'
    ops build tiny
    has "what to install" "$code $out" "${missing%:*}: No such file or directory: install "
    has "what to install: the package" "$out" "${missing#*:}"
    break
done

# ---- hostile configurations ----------------------------------------------------------------------

path="expected a path below source_dir, with wildcards in its last part only"
while IFS='|' read -r members reason; do
    recipe "$members"
    ops build tiny
    has "$members" "$code $err" "5 ds-accel: $config:1:"
    has "$members: the reason" "$err" "$reason"
done <<END
"sources": ["../x.c"]|"sources" is "../x.c": $path
"sources": ["a/../x.c"]|"sources" is "a/../x.c": $path
"sources": ["/etc/x.c"]|"sources" is "/etc/x.c": $path
"sources": ["-x.c"]|"sources" is "-x.c": $path
"sources": [""]|"sources" is "": $path
"sources": ["*/tiny.c"]|"sources" is "*/tiny.c": $path
"sources": null|"sources" is null; expected an array
"sources": [5]|"sources" is a whole number; expected a text
"source_dir": 5|"source_dir" is a whole number; expected a text
"cflags": {"a": 1}|"cflags" is an object; expected an array or null
"images": {"a b": "x.cu"}|"a b": expected a variable's name
"images": {"A": "../x.cu"}|"A" is "../x.cu": $path
"requires": {"cpu": "avx2"}|"cpu" is a text; expected an array or null
"surprise": 1|unknown key "surprise"; expected one of source_dir,
END
while IFS='|' read -r members reason; do
    recipe "$members"
    refused "$members" "$(echo "$reason" | sed "s#SRC#$src#g; s#CONFIG#$config#")"
done <<'END'
"sources": []|kernels: tiny: it has no sources
"sources": ["tiny.f90"]|kernels: tiny: tiny.f90: its suffix is that of no language: .c, .cpp, .cc, .cxx, .cu, .hip, .sycl, .dp.cpp
"sources": ["no*.c"]|kernels: tiny: there is no source SRC/no*.c
"sources": ["absent.c"]|kernels: tiny (CONFIG:1): the source SRC/absent.c does not exist
"source_dir": ""|kernels: tiny: it has no source_dir
"source_dir": "/no/such"|kernels: tiny: source_dir: /no/such: No such file or directory
"cflags": ["-march=native"]|kernels: tiny: -march=native is the CPU that compiles, and others share the result: name the instruction sets, here and in "requires": {"cpu": [...]}
"cflags": ["-g", "-gsplit-dwarf"]|kernels: tiny: -gsplit-dwarf puts the debug information into files of the directory of the build, which is removed: use -g alone
"cflags": ["--coverage"]|kernels: tiny: --coverage lets the op count into files of the directory of the build, which is removed, and puts its path into the op
"cflags": ["-march=x86-64-v4"], "requires": {"cpu": ["avx512f"]}|kernels: tiny: -march=x86-64-v4 uses instructions that not every CPU has: add "avx512bw", "avx512cd", "avx512dq", "avx512vl" to "cpu" of "requires"
"include_dirs": ["/a\nb"]|kernels: tiny: include_dirs: /a?b: compilers cannot list headers of a directory whose name has a backslash, a line break or another control character (shown as ?): rename it, or use a link to it
"images": {"A": "x.c"}|kernels: tiny: images: x.c: only nvcc makes images, of a .cu
END
for key in Tiny ti-ny tiny/ /tiny cpu/../tiny "" CPU/tiny; do
    printf '{"kernels": {"%s": {"source_dir": "/", "sources": ["x.c"]}}}' "$key" >"$config"
    ops build tiny
    has "the key \"$key\"" "$code $err" "5 ds-accel: $config:1:14: \"$key\": expected an op's name"
done

# One incomplete row is no reason against the other ops, but config check reports it.
recipe
sed -i 's/"op": "tiny", //' "$config"
run "$program" --config "$config" config check "$config"
has "a builder without op: config check" "$code $out" "5 $config:1:"
has "a builder without op: the remedy" "$out" '"TinyBuilder" has no "op", the name of the op that it builds: add it, or remove the row'
ops build TinyBuilder
is "a builder without op: build" "1 TinyBuilder: unsupported: the builder names no op" "$code $out"
ops show TinyBuilder
has "a builder without op: show" "$code $out" "0 TinyBuilder, op : unsupported"
has "a builder without op: the reason" "$out" "the builder names no op; \`ds-accel config check\` shows"
builds "a builder without op: the recipe itself" built 1

# ---- an op that no builder names -----------------------------------------------------------------

# only KEY: a recipe of the key, without a builder.
only() {
    printf '{"kernels": {"%s": {"source_dir": "%s", "sources": ["tiny.c"], "include_dirs": ["include", "%s", "%s"]}}}' \
        "$1" "$src" "$dir/include" "$vendor" >"$config"
}
fresh
only tiny
builds "without a builder" built 1
loads "without a builder" 1110 0
run "$program" --config "$config" -a cpu ops list
has "without a builder: it is listed" "$out" "tiny .................. [BUILT] ... [OKAY]"
only cpu/tiny
ops show tiny
has "for this backend" "$code $out" "0 tiny, op tiny: buildable"
only cuda/tiny
ops show tiny
has "for another backend" "$code $err" 'no backend has an op builder or an op "tiny"'
finish
