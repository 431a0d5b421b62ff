#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Ops as a vendor or an operator installs them: which file is found, what is rejected and why, and
# that the report and ds_accel_op_load() agree.  test_ops_load.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
cc=${CC:-gcc}
sanitize=${SAN:+-fsanitize=$SAN}

# A prefix of our own, because files of ops come and go below.
prefix=$dir/prefix
ops=$prefix/lib/ds-accel/ops
mkdir -p "$prefix/bin" "$ops/cpu" "$prefix/libexec/ds-accel"
cp "$build/bin/ds-accel" "$prefix/bin/"
cp -a "$build"/lib/libds_accel* "$prefix/lib/"
cp "$build"/lib/ds-accel/*.so "$prefix/lib/ds-accel/"
cp "$build/libexec/ds-accel/ds-accel-probe" "$prefix/libexec/ds-accel/"
cp -R "$build/share" "$prefix/share"
chmod go-w "$prefix" "$prefix/lib" "$prefix/lib/ds-accel" "$ops" "$ops/cpu"

cat >"$dir/load.c" <<'END'
#include <ds-accel/ds_accel.h>
#include <ds-accel/ops/op.h>
#include <stdio.h>
int main(int argument_count, char **arguments)
{
    const struct ds_accel_options options = {.struct_size = sizeof(options), .accelerator = "cpu"};
    ds_accel_t *context;
    int status = ds_accel_create(&options, &context);

    for (int i = 1; i < argument_count && status >= 0; i++) {
        const struct ds_accel_op *op;
        const struct ds_accel_op *again;

        status = ds_accel_op_load(context, arguments[i], &op);
        if (status >= 0 && (ds_accel_op_load(context, arguments[i], &again) < 0 || again != op))
            puts("the second call has another table");
        if (status >= 0)
            printf("%s %u\n", op->name, (unsigned)op->abi_minor);
    }
    if (status < 0)
        printf("%d %s\n", status, ds_accel_last_error());
    if (ds_accel_op_load(NULL, "cpu_adam", NULL) != DS_ACCEL_ERR_INVALID)
        puts("NULL is accepted");
    ds_accel_destroy(context);
    return status < 0;
}
END
# shellcheck disable=SC2086 # flags
$cc -std=c11 -Wall -Wextra -Werror -I"$build/include" -o "$dir/load" "$dir/load.c" \
    -L"$prefix/lib" -lds_accel -Wl,-rpath,"$prefix/lib" $sanitize

load() {
    run "$dir/load" "$@"
}

# op FILE NOTE_NAME TABLE_NAME [FLAGS...]: compile an op.
op() {
    file=$1 note=$2 table=$3
    shift 3
    rm -f "$file"
    cat >"$dir/op.c" <<END
#include <ds-accel/ops/op.h>
static const char *const names[] = {"scalar", NULL};
static const char *const *paths(void) { return names; }
static const char *path(void) { return names[0]; }
#ifndef MAJOR
#define MAJOR DS_ACCEL_OP_ABI_MAJOR
#endif
static const struct ds_accel_op table = {sizeof(table), MAJOR, MINOR, "$table", paths, path};
#ifdef NO_NOTE
DS_ACCEL_EXPORT const struct ds_accel_op *ds_accel_op_entry_v1(void);
const struct ds_accel_op *ds_accel_op_entry_v1(void) { return &table; }
#else
DS_ACCEL_OP("$note", &table);
#endif
END
    # shellcheck disable=SC2086 # flags
    $cc -std=c11 -Wall -Wextra -Werror -fPIC -shared -DMINOR="${MINOR:-0}" "$@" -I"${HEADERS:-$build/include}" \
        -o "$file" "$dir/op.c"
}

list() {
    run "$prefix/bin/ds-accel" -a cpu ops "$@"
}

# state OP: the state and reason that the report has for it.
state() {
    list show "$1" cpu --json
    printf '%s' "$out" | python3 -c 'import json, sys
op = json.load(sys.stdin)["ops"][0]
print(op["state"], op["compatible"], op["installed"], op["cached"], op["reason"])'
}

# ---- which file is found ----
no_cache="it is not built, because DS_ACCEL_CACHE does not let it be stored"
is "no file" "unsupported False False False $no_cache" "$(state cpu_adam)"
load cpu_adam
is "no file: load" "1 -3 there is no kernel of \"cpu_adam\" for cpu: $no_cache" "$code $out"
no_recipe="no kernel: neither cpu/deepspeed_shm_comm.so nor deepspeed_shm_comm.so is installed, and there is no recipe of it"
is "no recipe" "unsupported False False False $no_recipe" "$(state deepspeed_shm_comm)"
load ShareMemCommBuilder
is "no recipe: load" "1 -3 there is no kernel of \"deepspeed_shm_comm\" for cpu: \`ds-accel ops show deepspeed_shm_comm\` has the reason" "$code $out"
MINOR=1 op "$ops/cpu_adam.so" cpu_adam cpu_adam
is "the host's file" "installed True True False " "$(state cpu_adam)"
load cpu_adam CPUAdamBuilder
is "it is loaded by both names" "0 cpu_adam 1
cpu_adam 1" "$code $out"
MINOR=2 op "$ops/cpu/cpu_adam.so" cpu_adam cpu_adam
load CPUAdamBuilder
is "the backend's file goes before the host's" "0 cpu_adam 2" "$code $out"
rm "$ops/cpu/cpu_adam.so"
op "$ops/cpu_lion.so" cpu_lion cpu_lion
load CPULionBuilder
is "a host's op whose builder only other backends have" "0 cpu_lion 0" "$code $out"
is "its report" "installed True True False " "$(state cpu_lion)"

# ---- names ----
load cpu_adm
has "a wrong name" "$code $out" "no backend has an op builder or an op \"cpu_adm\"; did you mean \"cpu_adam\"?"
list show CPUAdmBuilder
has "a wrong builder" "$code $err" "did you mean \"CPUAdamBuilder\"?"
list list nothing
has "a wrong backend" "$code $err" "no configuration knows \"nothing\""
list remove
is "a wrong command" 2 "$code"

# ---- what is rejected ----
rejected() { # WHAT REASON
    case $(state cpu_adam) in
    "rejected False True False $2"*) pass ;;
    *) fail "$1: report" "$(state cpu_adam)" ;;
    esac
    load cpu_adam
    has "$1: load" "$code $out" "$2"
}
op "$ops/cpu_adam.so" cpu_adagrad cpu_adam
rejected "the note of another op" 'name_mismatch: the file name has "cpu_adam", the note "cpu_adagrad"'
op "$ops/cpu_adam.so" cpu_adam cpu_adam -DNO_NOTE
rejected "no note" no_note
cp "$prefix/lib/ds-accel/ds_accel_cpu.so" "$ops/cpu_adam.so"
rejected "a plugin" no_note
echo text >"$ops/cpu_adam.so"
rejected "no ELF file" not_elf
op "$ops/whole.so" cpu_adam cpu_adam
head -c 2000 "$ops/whole.so" >"$ops/cpu_adam.so"
rejected "half a file" elf_truncated
cp "$ops/whole.so" "$ops/cpu_adam.so"
chmod o+w "$ops/cpu_adam.so"
rejected "a file that others may write to" file_writable
rm "$ops/cpu_adam.so"
ln -s nowhere "$ops/cpu_adam.so"
rejected "a broken link" dangling_link
rm "$ops/cpu_adam.so"
mkdir "$ops/cpu_adam.so"
rejected "a directory" is_directory
rmdir "$ops/cpu_adam.so"
sed 's/DS_ACCEL_OP_ABI_MAJOR 1u/DS_ACCEL_OP_ABI_MAJOR 2u/' "$build/include/ds-accel/ops/op.h" >"$dir/op.h"
mkdir -p "$dir/later/ds-accel/ops"
cp "$dir/op.h" "$dir/later/ds-accel/ops/op.h"
cp "$build/include/ds-accel/plugin-api.h" "$dir/later/ds-accel/"
HEADERS=$dir/later op "$ops/cpu_adam.so" cpu_adam cpu_adam
rejected "a later generation" "abi_unsupported: the op has generation 2, this host 1"
is "a later generation has its own status" -16 "${out%% *}"
# What only its table shows, the report cannot know: it runs no code.
op "$ops/cpu_adam.so" cpu_adam other
load cpu_adam
has "the table of another op" "$code $out" "its table is that of \"other\""
op "$ops/cpu_adam.so" cpu_adam cpu_adam -DMAJOR=2
load cpu_adam
has "a table of a later generation" "$code $out" "its table has generation 2, this host 1"
op "$ops/cpu_adam.so" cpu_adam cpu_adam -Dds_accel_op_entry_v1=other_entry
load cpu_adam
has "no entry" "$code $out" "it has no symbol ds_accel_op_entry_v1"

# ---- the table of ds_report ----
rm -f "$ops/whole.so"
op "$ops/cpu_adam.so" cpu_adam cpu_adam
list list cpu
is "the list's exit code" 0 "$code"
has "a usable op" "$out" "
cpu_adam .............. [YES] ..... [OKAY]
"
has "an op without kernel" "$out" "
deepspeed_shm_comm .... [NO] ...... [NO]    $no_recipe
"
has "an op that is not built" "$out" "
fused_adam ............ [NO] ...... [NO]    $no_cache
"
has "others are counted" "$out" "builders of other backends are not shown: -v shows them"
list list -v cpu
has "-v shows them" "$out" "
sparse_attn ........... [NO] ...... [NO]    cpu has no such builder
"
list list npu
has "a backend without devices here" "$out" "
fused_adam ............ [NO] ...... [NO]    no kernel: DeepSpeed uses its framework (calls npu_apply_adam_w"
list list cpu --json
printf '%s' "$out" >"$dir/list.json"
run python3 "$source/tests/tools/validate.py" "$prefix/share/ds-accel/schema/ops-list.json" <"$dir/list.json"
is "the list's schema" "0" "$code$out$err"
list show cpu_adam cpu --json
printf '%s' "$out" >"$dir/list.json"
run python3 "$source/tests/tools/validate.py" "$prefix/share/ds-accel/schema/ops-list.json" <"$dir/list.json"
is "a builder's schema" "0" "$code$out$err"
for backend in cuda rocm xpu xpu.external npu hpu mlu sdaa supa mps opencl cpu mock; do
    list list --json "$backend"
    is "$backend: every builder of the tables is known" "0 28" \
        "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(len({op["builder"] for op in json.load(sys.stdin)["ops"]} - {"MockAddBuilder"}))')"
done
finish
