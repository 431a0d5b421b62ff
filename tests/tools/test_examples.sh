#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The programs of docs/programming.md: compiled as C and C++ by each installed compiler, run on
# every backend that needs no hardware, and their output compared.  test_examples.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
guide=$source/docs/programming.md
cd "$dir"

# fence LANGUAGE NUMBER: print fenced block NUMBER of this language, counted from 1.
fence() {
    awk -v open="\`\`\`$1" -v wanted="$2" \
        '/^```/ { inside = $0 == open && ++count == wanted; next } inside' "$guide"
}

fence c 1 >move.c
fence c 2 >overlap.c
fence c 3 >replay.c
fence c 4 >step.c
fence c 5 >describe.c
fence c 6 >more.c
is "the guide has these programs only" "" "$(cat more.c)"

cat >move.out <<'END'
hello
END
cat >overlap.out <<'END'
chunk 0: 8386560
chunk 1: 25163776
chunk 2: 41940992
chunk 3: 58718208
chunk 4: 75495424
chunk 5: 92272640
chunk 6: 109049856
chunk 7: 125827072
END
cat >replay.out <<'END'
after 4 replays: 10
END
cat >step.out <<'END'
0.699 1.695 -2.692 3.689
END

# ds-accel.pc as it would be installed, for this build directory.
cat >ds-accel.pc <<END
Name: ds-accel
Description: accelerators found through plugins
Version: 0
Libs: -L$build/lib -lds_accel
Cflags: -I$build/include
END
has "the guide's command asks pkg-config" "$(fence sh 1)" "\$(pkg-config --cflags --libs ds-accel)"
has "the guide's command has the flags used here" "$(fence sh 1)" " -std=c11 -Wall -Wextra -pedantic "
flags=$(PKG_CONFIG_PATH=. pkg-config --cflags --libs ds-accel)
export LD_LIBRARY_PATH="$build/lib" DS_ACCEL_TRACE_FILE="$dir/trace.json"

sanitize=${SAN:+-fsanitize=$SAN}
# compile PROGRAM COMPILER STANDARD LANGUAGE: compile the program.
compile() {
    rm -f "$1"
    # shellcheck disable=SC2086 # lists of words
    run $2 "-std=$3" -x "$4" -Wall -Wextra -pedantic -Werror $sanitize -o "$1" "$1.c" $flags
    is "$2 -std=$3 $1.c" "0 " "$code $err"
}

# try PROGRAM WHAT VARIABLE=VALUE...: run the program with the variables and check its output.
try() {
    program=$1
    what=$2
    shift 2
    run env "$@" "./$program"
    is "$program, $what" "0 " "$code $err"
    is "what $program prints, $what" "$(cat "$program.out")" "$out"
}

compilers="gcc:g++"
if command -v clang >/dev/null 2>&1 && [ -z "$sanitize" ]; then
    compilers="$compilers clang:clang++"
fi
for program in move overlap replay; do
    for pair in $compilers; do
        for way in "${pair#*:} c++11 c++" "${pair#*:} c++20 c++" "${pair%:*} c11 c"; do
            # shellcheck disable=SC2086 # a list of words
            compile "$program" $way
        done
        for layers in "" validate,leak leak,trace trace,validate; do
            try "$program" "on mock, layers $layers" DS_ACCELERATOR=mock DS_ACCEL_LAYERS=$layers
            try "$program" "on cpu, layers $layers" DS_ACCELERATOR=cpu DS_ACCEL_LAYERS=$layers
            try "$program" "on cpu with queues, layers $layers" DS_ACCELERATOR=cpu \
                DS_ACCEL_CPU_ASYNC=true DS_ACCEL_LAYERS=$layers
        done
        # The context of ds_accel_get() is never destroyed: the exit of the process closes the JSON
        # array.
        run "${PYTHON:-/usr/bin/python3}" -c 'import json, sys; print(len(json.load(open(sys.argv[1]))) > 3)' trace.json
        is "the trace of $program is whole" "0 True" "$code $out"
        try "$program" "on a slow mock" DS_ACCELERATOR=mock DS_ACCEL_MOCK_COPY_LATENCY_NS=300000 \
            DS_ACCEL_MOCK_LAUNCH_LATENCY_NS=500000
    done
    run env DS_ACCELERATOR=nosuch "./$program"
    is "$program without an accelerator" "1 " "$code $out"
    has "$program says why" "$err" 'DS_ACCELERATOR is "nosuch"'
    run env DS_ACCELERATOR=mock \
        DS_ACCEL_MOCK_FAIL=mem_alloc=no_memory,vmem_create=no_memory "./$program"
    is "$program without memory" "1 " "$code $out"
    run env DS_ACCELERATOR=mock DS_ACCEL_MOCK_FAIL=device_open=busy "./$program"
    is "$program without a device" "1 " "$code $out"
    has "$program says what failed" "$err" "MOCK_ERROR_BUSY"
done

# ---- ops -----------------------------------------------------------------------------------------

for pair in $compilers; do
    for way in "${pair#*:} c++11 c++" "${pair#*:} c++20 c++" "${pair%:*} c11 c"; do
        # shellcheck disable=SC2086 # a list of words
        compile step $way
        try step "on mock" DS_ACCELERATOR=mock
        try step "on cpu" DS_ACCELERATOR=cpu
        # shellcheck disable=SC2086 # a list of words
        set -- $way
        run "$1" "-std=$2" -x "$3" -Wall -Wextra -pedantic -Werror -c -o describe.o describe.c \
            "-I$build/include"
        is "$1 -std=$2 describe.c" "0 " "$code $err"
    done
done
run env DS_ACCELERATOR=nosuch ./step
has "step without an accelerator" "$code $err" '1 DS_ACCELERATOR is "nosuch"'

# ---- Python --------------------------------------------------------------------------------------

fence python 1 >step.py
fence python 2 >name.py
if [ -z "$sanitize" ]; then # otherwise Python would have to load the sanitizer too
    run env DS_ACCELERATOR=mock "${PYTHON:-/usr/bin/python3}" step.py
    is "an op from Python" "0 $(cat step.out) " "$code $out $err"
    run env DS_ACCELERATOR=nosuch "${PYTHON:-/usr/bin/python3}" step.py
    has "an op from Python without an accelerator" "$code $err" '1 DS_ACCELERATOR is "nosuch"'
    run env DS_ACCELERATOR=mock "${PYTHON:-/usr/bin/python3}" name.py
    is "Python" "0 mock:0 " "$code $out $err"
    run env DS_ACCELERATOR=nosuch "${PYTHON:-/usr/bin/python3}" name.py
    is "Python without an accelerator" "1 " "$code $out"
    has "Python says why" "$err" 'DS_ACCELERATOR is "nosuch"'
fi

finish
