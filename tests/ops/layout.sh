#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Print the layout of the structures of the optimizers, which Python fills as the C compiler lays
# them out: a line "STRUCT MEMBER OFFSET SIZE" for each member, "STRUCT . 0 SIZE" for the whole.
# layout.sh BUILD SCRATCH: BUILD has the headers; the program is built in SCRATCH.
set -eu
build=$1
mkdir -p "$2"
scratch=$2

structure() { # NAME MEMBER...
    name=$1
    shift
    for member in "$@"; do
        echo "    MEMBER($name, $member);"
    done
    echo "    WHOLE($name);"
}
common="common.struct_size common.flags common.tensors common.tensor_count common.tensor_bytes
    common.threads common.step common.learning_rate common.weight_decay common.gradient_scale"
{
    for op in dlpack cpu_adam cpu_adagrad cpu_lion fused_adam; do
        echo "#include <ds-accel/ops/$op.h>"
    done
    cat <<'END'
#include <stddef.h>
#include <stdio.h>
#define MEMBER(name, member) \
    printf("%s %s %zu %zu\n", #name, #member, offsetof(struct name, member), \
           sizeof(((struct name *)0)->member))
#define WHOLE(name) printf("%s . 0 %zu\n", #name, sizeof(struct name))
int main(void)
{
END
    structure ds_accel_op_dlpack parameter gradient state copy first_element flags
    structure ds_accel_error struct_size code message
    structure ds_accel_optimizer_tensor count parameter gradient state copy parameter_dtype \
        gradient_dtype state_dtype copy_dtype
    for op in cpu_adam fused_adam; do
        # shellcheck disable=SC2086 # a list of words
        structure ds_accel_${op}_options $common beta1 beta2 epsilon
    done
    # shellcheck disable=SC2086
    structure ds_accel_cpu_adagrad_options $common epsilon
    # shellcheck disable=SC2086
    structure ds_accel_cpu_lion_options $common beta1 beta2
    for op in cpu_adam cpu_adagrad cpu_lion fused_adam; do
        structure ds_accel_$op step
    done
    printf '    return 0;\n}\n'
} >"$scratch/layout.c"
"${CC:-gcc}" -std=c11 -Wall -Wextra -Werror -I"$build/include" -o "$scratch/layout" "$scratch/layout.c"
"$scratch/layout"
