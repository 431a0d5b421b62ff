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
#include <string.h>
static void log_line(void *unused, unsigned level, const char *topic, const char *message)
{
    (void)unused;
    if (strcmp(topic, "ops") == 0)
        fprintf(stderr, "%s %s\n", level == DS_ACCEL_LOG_INFO ? "info" : "warn", message);
}
int main(int argument_count, char **arguments)
{
    const struct ds_accel_options options = {
        .struct_size = sizeof(options), .accelerator = "cpu", .log_sink = log_line};
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
#ifndef PATHS
#define PATHS "scalar"
#endif
static const char *const names[] = {PATHS, NULL};
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
# A builder whose op has no kernel and no recipe.
echo '{"backends": {"cpu": {"op_builders": {"SparseBuilder": {"op": "sparse_product"}}}}}' >"$dir/sparse.json"
export DS_ACCEL_CONFIG="$dir/sparse.json"
no_recipe="no kernel: neither cpu/sparse_product.so nor sparse_product.so is installed, and there is no recipe of it"
is "no recipe" "unsupported False False False $no_recipe" "$(state sparse_product)"
load SparseBuilder
is "no recipe: load" "1 -3 there is no kernel of \"sparse_product\" for cpu: \`ds-accel ops show sparse_product\` has the reason" "$code $out"
unset DS_ACCEL_CONFIG
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

# ---- a kernel with another name than DeepSpeed's op ----
cat >"$dir/kernel.json" <<END
{"backends": {"cpu": {"op_builders": {"CPULionBuilder": {"op": "deepspeed_lion", "kernel": "cpu_lion"}}}}}
END
export DS_ACCEL_CONFIG="$dir/kernel.json"
for name in CPULionBuilder deepspeed_lion cpu_lion; do
    load $name
    is "the kernel by the name $name" "0 cpu_lion 0" "$code $out"
    is "the kernel by the name $name: its report" "installed True True False " "$(state $name)"
done
list show CPULionBuilder cpu --json
is "the names of the op and of its kernel" "deepspeed_lion cpu_lion" \
    "$(printf '%s' "$out" | python3 -c 'import json, sys
op = json.load(sys.stdin)["ops"][0]
print(op["op"], op["kernel"])')"
sed -i 's/"cpu_lion"/"lion"/' "$dir/kernel.json"
load CPULionBuilder
has "no file of that name" "$code $out" 'there is no kernel of "lion" for cpu'
sed -i 's/"lion"/"Lion"/' "$dir/kernel.json"
load CPULionBuilder
has "no name of an op" "$code $out" "expected an op's name"
unset DS_ACCEL_CONFIG

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

# ---- what is logged ----
op "$ops/cpu_adam.so" cpu_adam cpu_adam '-DPATHS="avx2","scalar"'
loaded="info cpu_adam loaded from $ops/cpu_adam.so (installed), code path avx2"
DS_ACCEL_LOG=info load CPUAdamBuilder
is "a loaded op" "$loaded" "$err"
load CPUAdamBuilder
is "a loaded op, at level warn" "" "$err"
for value in sse AVX2 "avx2 " avx512 scalar; do
    DS_ACCEL_OPS_ISA=$value load cpu_adam
    is "DS_ACCEL_OPS_ISA=$value: another path" \
        "warn DS_ACCEL_OPS_ISA=$value: on this CPU, cpu_adam has avx2, scalar; it uses avx2" "$err"
done
DS_ACCEL_OPS_ISA=avx2 DS_ACCEL_LOG=ops=info load cpu_adam
is "DS_ACCEL_OPS_ISA: the path that is used" "$loaded" "$err"
op "$ops/cpu_adam.so" cpu_adam cpu_adam
DS_ACCEL_OPS_ISA=avx2 load cpu_adam
is "DS_ACCEL_OPS_ISA: an op with one path" "" "$err"

# ---- the table of ds_report ----
rm -f "$ops/whole.so"
op "$ops/cpu_adam.so" cpu_adam cpu_adam
DS_ACCEL_CONFIG=$dir/sparse.json list list cpu
is "the list's exit code" 0 "$code"
has "a usable op" "$out" "
cpu_adam .............. [YES] ..... [OKAY]
"
has "an op without kernel" "$out" "
sparse_product ........ [NO] ...... [NO]    $no_recipe
"
has "an op that is not built" "$out" "
fused_adam ............ [NO] ...... [NO]    $no_cache
"
has "others are counted" "$out" "builders of other backends are not shown: -v shows them"
list list -v cpu
has "-v shows them" "$out" "
sparse_attn ........... [NO] ...... [NO]    cpu has no such builder
"
mkdir -p "$ops/cuda"
op "$ops/cuda/fused_adam.so" fused_adam fused_adam
list list cuda
has "an op of the host for a GPU" "$out" "
cpu_adam .............. [YES] ..... [OKAY]    on host memory only
"
# The file is there, but what it works on is not. No plugin or driver of this machine is looked for.
mkdir -p "$dir/empty/sys" "$dir/empty/proc" "$dir/empty/dev"
list list cuda --root "$dir/empty"
has "an op for the memory of a GPU that is not here" "$out" "
fused_adam ............ [YES] ..... [NO]    it works on devices of cuda, which cannot be used here: "
has "an op for a GPU that is not here: others are usable" "$out" "
cpu_adam .............. [YES] ..... [OKAY]    on host memory only
"
list show fused_adam cuda --root "$dir/empty" --json
is "an op for a GPU that is not here: JSON" "installed False True device" \
    "$(printf '%s' "$out" | python3 -c 'import json, sys
op = json.load(sys.stdin)["ops"][0]
print(op["state"], op["compatible"], op["installed"], op["memory"])')"
mkdir -p "$ops/mock"
op "$ops/mock/cpu_lion.so" cpu_lion cpu_lion
list list mock
has "an op for memory of a device that is here" "$out" "
cpu_lion .............. [YES] ..... [OKAY]
"
rm -r "$ops/mock"
list show cpu_adam cuda
has "a builder of the host for a GPU" "$out" "
  works on host memory only"
list show fused_adam cuda
is "a builder for the GPU's memory" "0 0" "$code $(echo "$out" | grep -c 'works on host' || true)"
list show cpu_adam cpu
is "a builder of the host for cpu" "0 0" "$code $(echo "$out" | grep -c works || true)"
# memory OP BACKEND: whose memory the op works on.
memory() {
    list show "$1" "$2" --json
    printf '%s' "$out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["ops"][0]["memory"])'
}
is "whose memory" "host device host None" \
    "$(memory cpu_adam cuda) $(memory fused_adam cuda) $(memory cpu_adam cpu) $(memory fused_adam npu)"
rm -r "$ops/cuda"
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
    is "$backend: every builder of the tables is known" "0 29" \
        "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(len({op["builder"] for op in json.load(sys.stdin)["ops"]} - {"MockAddBuilder"}))')"
done
placeholder="no kernel: DeepSpeed returns this builder in place of one that a backend lacks; it builds nothing"
for backend in cuda cpu supa mps; do
    run "$prefix/bin/ds-accel" ops show NotImplementedBuilder "$backend" --json
    is "$backend: the placeholder" "0 unsupported False $placeholder" \
        "$code $(printf '%s' "$out" | python3 -c 'import json, sys
op = json.load(sys.stdin)["ops"][0]
print(op["state"], op["compatible"], op["reason"])')"
done

# ---- settings of the configuration ----
cat >"$dir/settings.c" <<'END'
#include <ds-accel/ops/op.h>
#include <stdio.h>
#include <string.h>
static const char *const names[] = {"scalar", NULL};
static const char *const *paths(void) { return names; }
static const char *path(void) { return names[0]; }
static const struct ds_accel_op table = {sizeof(table), DS_ACCEL_OP_ABI_MAJOR, 0, "cpu_adam", paths, path};
DS_ACCEL_OP("cpu_adam", &table);
DS_ACCEL_OP_CONFIGURE_FUNCTION;
int32_t ds_accel_op_configure_v1(const struct ds_accel_op_setting *settings, uint32_t count,
                                 struct ds_accel_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(settings[i].name, "bad") == 0) {
            error->code = DS_ACCEL_ERR_INVALID;
            snprintf(error->vendor_text, sizeof(error->vendor_text), "bad");
            snprintf(error->message, sizeof(error->message), "bad is \"%s\"", settings[i].value);
            return DS_ACCEL_ERR_INVALID;
        }
        printf("%s=%s\n", settings[i].name, settings[i].value);
    }
    return DS_ACCEL_OK;
}
END
rm "$ops/cpu_adam.so"
# shellcheck disable=SC2086 # flags
$cc -std=c11 -Wall -Wextra -Werror -fPIC -shared -I"$build/include" -o "$ops/cpu_adam.so" "$dir/settings.c" $sanitize
export DS_ACCEL_CONFIG="$dir/settings.json"
cat >"$DS_ACCEL_CONFIG" <<'END'
{"op_settings": {"cpu_adam": {"text": "a b", "on": true, "off": false, "none": null,
 "whole": -8388608, "real": 0.5}, "cpu_lion": {"x": 1}}}
END
load cpu_adam CPUAdamBuilder
is "settings, once per context" "0 text=a b
on=true
off=false
whole=-8388608
real=0.5
cpu_adam 0
cpu_adam 0" "$code $out"
is "settings: no warning" "" "$(printf '%s' "$err" | grep warn)"
run "$prefix/bin/ds-accel" config show
has "settings: config show" "$out" "settings.json:2"
cat >"$DS_ACCEL_CONFIG" <<'END'
{"op_settings": {"cpu_adam": {"whole": 1,
 "bad": 2}}}
END
load cpu_adam
is "a setting that the op rejects" "0 whole=1
cpu_adam 0" "$code $out"
has "a setting that the op rejects: the warning" "$err" \
    "warn $dir/settings.json:2: bad is \"2\"; the op_settings of cpu_adam are not used"
for attempt in first snapshot; do
    load cpu_adam
    has "a setting that the op rejects, again: $attempt" "$err" "warn $dir/settings.json:2: bad"
done
echo '{"op_settings": {"cpu_adam": {"none": null}, "async_io": null}}' >"$DS_ACCEL_CONFIG"
load cpu_adam
is "no setting but null" "0 cpu_adam 0" "$code $out"
echo '{"op_settings": {"cpu_adam": {"x": 1}}}' >"$DS_ACCEL_CONFIG"
op "$ops/cpu_adam.so" cpu_adam cpu_adam
load cpu_adam
is "settings of an op that takes none" "0 cpu_adam 0" "$code $out"
has "settings of an op that takes none: the warning" "$err" \
    "warn $dir/settings.json:1: $ops/cpu_adam.so takes no settings: it has no symbol ds_accel_op_configure_v1; the op_settings of cpu_adam are not used"
unset DS_ACCEL_CONFIG

# ---- the allow-list ----
op "$ops/cpu_adam.so" cpu_adam cpu_adam
digest=$(sha256sum "$ops/cpu_adam.so")
digest=${digest%% *}
other=0000000000000000000000000000000000000000000000000000000000000000
# trust MODE [NAME DIGEST]: write the configuration.
trust() {
    echo "{\"trust\": {\"mode\": \"$1\", \"sha256\": {${2:+\"$2\": \"$3\"}}}}" >"$dir/trust.json"
}
export DS_ACCEL_CONFIG="$dir/trust.json"
cpu=$(sha256sum "$prefix/lib/ds-accel/ds_accel_cpu.so")
trust enforce cpu "${cpu%% *}"
rejected "an op that is not listed" "hash_unlisted: its SHA-256 is $digest, and trust.sha256 has no \"ops/cpu_adam\""
# allows NAME DIGEST: list the plugin and one more file.
allows() {
    echo "{\"trust\": {\"mode\": \"enforce\", \"sha256\": {\"cpu\": \"${cpu%% *}\", \"$1\": \"$2\"}}}" >"$dir/trust.json"
}
allows ops/cpu_adam "$other"
rejected "an op with another digest" "hash_mismatch: its SHA-256 is $digest; trust.sha256 has $other for \"ops/cpu_adam\""
allows ops/cpu/cpu_adam "$digest"
rejected "the digest of the op for another memory" hash_unlisted
allows ops/cpu_adam "$digest"
load CPUAdamBuilder
is "an op that is listed" "0 cpu_adam 0" "$code $out"
is "an op that is listed: its report" "installed True True False " "$(state cpu_adam)"
MINOR=3 op "$ops/cpu_adam.so" cpu_adam cpu_adam
rejected "an op that was replaced" hash_mismatch
trust warn
DS_ACCEL_LOG=warn load cpu_adam
is "warn: an op that is not listed" "0 cpu_adam 3" "$code $out"
DS_ACCEL_LOG=warn list show cpu_adam
has "warn: an op that is not listed: the warning" "$err" "$ops/cpu_adam.so: hash_unlisted: its SHA-256 is "
trust off ops/cpu_adam "$other"
load cpu_adam
is "off: nothing is compared" "0 cpu_adam 3" "$code $out"
unset DS_ACCEL_CONFIG
finish
