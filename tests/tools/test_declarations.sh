#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# compare.py finds each kind of difference between a declaration of ours and the header of a vendor
# (an invented header here), and each vendor declaration in the plugins is in a table.
# test_declarations.sh BUILD
# shellcheck disable=SC2016 # the $ belongs to sed
set -eu
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}
compare=$(dirname "$0")/../headers/compare.py

cat >"$dir/ours.h" <<'END_OF_OURS'
#include <stdint.h>
#define ACME_OK 0
#define ACME_WIDE 0x8000000000u
enum { ACME_MODE_FAST = 2, ACME_LIMIT = 7 };
typedef struct acme_stream_object *acme_stream;
struct acme_id {
    unsigned char bytes[16];
};
struct acme_info {
    uint64_t total, free;
    char name[32];
    int grid[3];
    struct acme_id id;
};
struct acme_api {
    int (*acmeOpen)(acme_stream *stream, uint32_t flags);
    const char *(*acmeText)(int code);
    int (*acmeInfo)(void *device, struct acme_info *info);
    int (*acmeCopy)(void *to, const void *from, uint64_t bytes, int mode, acme_stream stream);
    int (*acmeCall)(acme_stream stream, void (*call)(void *argument), void *argument);
    int (*acmeShare)(struct acme_id id, float *ms);
    int (*acmeLate)(void);
};
END_OF_OURS
cat >"$dir/names.c" <<'END_OF_NAMES'
static const struct name names[] = {
    {1, ERR_INVALID, "ACME_ERROR_VALUE"},
    {2, ERR_MEMORY, "ACME_ERROR_MEMORY"},
};
END_OF_NAMES
cat >"$dir/true.h" <<'END_OF_TRUE'
#include <stddef.h>
#include <stdint.h>
typedef enum { ACME_SUCCESS, ACME_ERROR_VALUE, ACME_ERROR_MEMORY } acmeResult;
typedef enum { ACME_COPY_SLOW = 1, ACME_COPY_FAST } acmeMode;
#define ACME_BIT_WIDE (1ull << 39)
typedef struct acmeStream_st *acmeStream;
typedef struct acmeDevice_st *acmeDevice;
typedef struct { uint8_t uuid[16]; } acmeId;
typedef struct {
    unsigned long totalMemory;
    size_t freeMemory;
    char text[32];
    int gridX, gridY, gridZ;
    acmeId id;
} acmeInfo_t;
typedef void (*acmeCallback)(void *);
acmeResult acmeOpen(acmeStream *stream, unsigned int flags);
const char *acmeText(acmeResult code);
acmeResult acmeInfo(acmeDevice device, acmeInfo_t *info);
acmeResult acmeCopy(void *to, const void *from, size_t bytes, acmeMode mode, acmeStream stream);
acmeResult acmeCall(acmeStream stream, acmeCallback call, void *argument);
acmeResult acmeShare(acmeId id, float *ms);
END_OF_TRUE
cat >"$dir/acme.table" <<END_OF_TABLE
ours $dir/ours.h
theirs acme.h
variable ACME_HEADERS
functions acme_api
maybe acmeLate
struct acme_id acmeId uuid
struct acme_info acmeInfo_t totalMemory freeMemory text \\
    gridX+gridY+gridZ id
value ACME_OK ACME_SUCCESS
value ACME_WIDE ACME_BIT_WIDE
values ACME_MODE_ ACME_COPY_ FAST
names $dir/names.c - ACME_ERROR_*
unnamed ACME_SUCCESS
own ACME_LIMIT
when ACME_VERSION >= 2
value ACME_LIMIT ACME_LIMIT_OF_2
END_OF_TABLE
mkdir "$dir/include"
header=$dir/include/acme.h

# compared: print the result of compare.py for the header, without the directory in its last line.
compared() {
    run "$python" "$compare" --in "ACME_HEADERS=$dir/none $dir/include" "$dir/acme.table"
}
# differs WHAT SED TEXT: check that the script SED causes the difference TEXT, and no other.
differs() {
    sed "$2" "$dir/true.h" >"$header"
    if cmp -s "$dir/true.h" "$header"; then
        fail "$1: the header is as it was"
    fi
    compared
    is "$1" "1 acme: $3" "$code $(printf '%s\n' "$out" | sed '$d')"
}

cp "$dir/true.h" "$header"
compared
is "no difference" "0 acme: 6 functions, 2 structs, 5 numbers; 1 not in this header; 0 differences ($header)" "$code $out$err"

# -- functions --
differs "an argument's size" 's/size_t bytes, acmeMode/uint32_t bytes, acmeMode/' \
    "acmeCopy: argument 3: unsigned integer of 8 bytes, theirs unsigned integer of 4 bytes"
differs "an argument's sign" 's/unsigned int flags/int flags/' \
    "acmeOpen: argument 2: unsigned integer of 4 bytes, theirs integer of 4 bytes"
differs "an argument that is a pointer" 's/acmeMode mode, /acmeMode *mode, /' \
    "acmeCopy: argument 4: integer of 4 bytes, theirs acmeMode *"
differs "what a pointer points to" 's/float \*ms/double *ms/' \
    "acmeShare: argument 2: pointer: float, theirs double"
differs "a handle that is a number" 's/typedef struct acmeDevice_st \*acmeDevice/typedef uint64_t acmeDevice/' \
    "acmeInfo: argument 1: void *, theirs unsigned integer of 8 bytes"
differs "one argument more" 's/float \*ms/float *ms, int flags/' "acmeShare: 2 arguments, theirs 3"
differs "the order of arguments" 's/acmeMode mode, acmeStream stream/acmeStream stream, acmeMode mode/' \
    "acmeCopy: argument 4: integer of 4 bytes, theirs struct acmeStream_st *"
differs "the result" 's/^acmeResult acmeShare/void acmeShare/' "acmeShare: return: integer of 4 bytes, theirs void"
differs "a callback's argument" 's/(\*acmeCallback)(void \*)/(*acmeCallback)(int)/' \
    "acmeCall: argument 2: pointer: argument 1: void *, theirs integer of 4 bytes"
differs "no such function" '/^acmeResult acmeCall/d' "acmeCall: not in the header"
differs "a function that came later" '$a int acmeLate(int);' "acmeLate: 0 arguments, theirs 1"

# -- structs --
differs "a struct's size" 's/acmeId id;/acmeId id; int more[2];/' "acmeInfo_t: 80 bytes, theirs 88"
differs "a struct that goes by value" 's/uuid\[16\]/uuid[24]/' "acmeId: 16 bytes, theirs 24
acme: acmeId.uuid: 16 bytes, theirs 24
acme: acmeInfo_t: 80 bytes, theirs 88"
differs "two members that changed places" \
    's/unsigned long totalMemory/size_t freeMemory/; t; s/size_t freeMemory/unsigned long totalMemory/' \
    "acmeInfo_t.totalMemory: at 0, theirs at 8
acme: acmeInfo_t.freeMemory: at 8, theirs at 0"
differs "a member's offset" 's/char text\[32\]/int pad[2]; char text[24]/' \
    "acmeInfo_t.text: at 16, theirs at 24"
differs "a member's type" 's/unsigned long totalMemory/double totalMemory/' \
    "acmeInfo_t.totalMemory: unsigned integer of 8 bytes, theirs double"
differs "a member of the same size and another sign" 's/size_t freeMemory/long freeMemory/' \
    "acmeInfo_t.freeMemory: unsigned integer of 8 bytes, theirs integer of 8 bytes"
differs "an array's members" 's/gridX, gridY/gridY, gridX/' "acmeInfo_t.gridX: at 48, theirs at 52
acme: acmeInfo_t.gridY: at 52, theirs at 48"
differs "no such member" 's/gridZ/depth/' "acmeInfo_t.gridZ: not in the header"
differs "no such struct" 's/} acmeId;/} acmeUuid; typedef acmeUuid acmeId2;/; s/acmeId id/acmeId2 id/' "acmeId: not in the header"

# -- numbers --
differs "an enumerator" 's/ACME_COPY_SLOW = 1/ACME_COPY_SLOW = 2/' "ACME_COPY_FAST: 2, theirs 3"
differs "a bit beyond 32" 's/1ull << 39/1ull << 7/' "ACME_BIT_WIDE: 549755813888, theirs 128"
differs "no such number" 's/ACME_COPY_FAST/ACME_COPY_QUICK/' "ACME_COPY_FAST: not in the header"
differs "a number of a later release" '$a #define ACME_VERSION 2\n#define ACME_LIMIT_OF_2 8' "ACME_LIMIT_OF_2: 7, theirs 8"
differs "the number of a name" 's/ACME_ERROR_VALUE, /ACME_ERROR_VALUE = 5, /; s/ACME_ERROR_MEMORY }/ACME_ERROR_MEMORY = 2 }/' \
    "ACME_ERROR_VALUE: 1 in $dir/names.c, theirs 5
acme: ACME_ERROR_VALUE: 5 has no name in $dir/names.c"
differs "an error without a name" 's/ACME_ERROR_MEMORY }/ACME_ERROR_MEMORY, ACME_ERROR_NEW }/' \
    "ACME_ERROR_NEW: 3 has no name in $dir/names.c"

# -- absent files --
echo '#include "absent.h"' >"$header"
compared
is "a header that does not compile" "2 compare.py: acme: $header:1: 'absent.h' file not found" "$code $err"
rm "$header"
compared
is "no header" "0 acme: skipped: no acme.h in $dir/none or $dir/include (ACME_HEADERS=DIRECTORY)" "$code $out"
run "$python" "$compare" --need acme "$dir/acme.table"
is "no header where one is needed" "1 acme: FAILED: no acme.h in any directory given (ACME_HEADERS=DIRECTORY)" "$code $out"
run "$python" "$compare" --cover "$dir/acme.table"
is "all declarations are in the table" "0 0 declarations that no table mentions" "$code $out"
cat >>"$dir/ours.h" <<'END_OF_OURS'
#define ACME_EXTRA 4
struct acme_more {
    int member;
};
END_OF_OURS
run "$python" "$compare" --cover "$dir/acme.table"
is "declarations that no table mentions" "1 $dir/ours.h: acme_more: no table mentions it
$dir/ours.h: ACME_EXTRA: no table mentions it
2 declarations that no table mentions" "$code $out"
echo "values" >>"$dir/acme.table"
run "$python" "$compare" "$dir/acme.table"
is "a line that is no row" "2 compare.py: $dir/acme.table:17: no row: values" "$code $err"

# -- the plugins' tables --
run "$python" "$compare" --cover "$(dirname "$compare")"/*.table
is "each declaration of the plugins is in a table" "0 0 declarations that no table mentions" "$code $out$err"

finish
