#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# docs/porting.md and the programs' headers have the same functions, except those without a
# counterpart elsewhere; the table has every method of DeepSpeed's accelerator interface; every
# function that docs/programming.md names exists.  test_porting.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
table=$source/docs/porting.md

# Functions without a counterpart elsewhere: contexts, candidates and verdicts, reports, checks of
# plugins, the caches, layers, other settings for a recorded trace, and releases that
# Python makes implicitly.
cat >"$dir/ours" <<'END'
ds_accel_cache_clear
ds_accel_candidate_count
ds_accel_candidate_get
ds_accel_check
ds_accel_config_check
ds_accel_config_check_files
ds_accel_conformance
ds_accel_create
ds_accel_destroy
ds_accel_detect
ds_accel_free_data
ds_accel_free_text
ds_accel_launch_create
ds_accel_launch_destroy
ds_accel_launch_result_file
ds_accel_launch_run
ds_accel_launch_wish
ds_accel_launch_write
ds_accel_layer_report
ds_accel_lint
ds_accel_memory_replay
ds_accel_note_access
ds_accel_op_settings_edit
ds_accel_ops_clean
ds_accel_ops_export
ds_accel_ops_import
ds_accel_quarantine_clear
ds_accel_race_count
ds_accel_register
ds_accel_report
ds_accel_sanitize_text
ds_accel_set_method
ds_accel_topo_plan
ds_accel_version
END

# Functions of the headers: names that are declared or defined; names in comments and function
# bodies are left out.
"${PYTHON:-/usr/bin/python3}" - "$build"/include/ds-accel/ds_accel*.h >"$dir/declared" <<'END'
import re, sys
text = re.sub(r"/\*.*?\*/", "", "".join(open(name, encoding="utf-8").read() for name in sys.argv[1:]), flags=re.S)
names = re.findall(r"^(?:DS_ACCEL_(?:EXPORT|HOT|INLINE)\b[^;{(]*?)\b(ds_accel_[a-z0-9]\w*)\s*\(", text, flags=re.M)
print("\n".join(sorted(set(names))))
END
grep -o '\bds_accel_[a-z0-9][a-z0-9_]*()' "$table" | tr -d '()' | sort -u >"$dir/named"
has "the header has functions" "$(cat "$dir/declared")" "ds_accel_mem_copy_async"
has "inline ones too" "$(cat "$dir/declared")" "ds_accel_get
"
has "the table has functions" "$(cat "$dir/named")" "ds_accel_mem_copy_async"

is "every function of the table is declared" "" "$(comm -13 "$dir/declared" "$dir/named" | paste -sd ' ' -)"
is "every function with a counterpart is in the table" "" \
    "$(comm -23 "$dir/declared" "$dir/named" | comm -23 - "$dir/ours" | paste -sd ' ' -)"
is "none of those without is" "" "$(comm -12 "$dir/ours" "$dir/named" | paste -sd ' ' -)"

grep -o '\bds_accel_[a-z0-9][a-z0-9_]*()' "$source/docs/programming.md" | tr -d '()' | sort -u >"$dir/guide"
has "the guide has functions" "$(cat "$dir/guide")" "ds_accel_graph_replay"
is "every function of the guide is declared" "" "$(comm -13 "$dir/declared" "$dir/guide" | paste -sd ' ' -)"

# Methods of the accelerator interface in DeepSpeed 0.19, and methods that only 0.18 has.
methods="is_synchronized_device use_host_timers resolves_data_dependency handles_memory_backpressure
supports_nvtx_domain communication_backend_name communication_backend_version device_name device
set_device current_device current_device_name device_count synchronize is_available random
set_rng_state get_rng_state manual_seed manual_seed_all initial_seed default_generator seed Stream
Event stream current_stream default_stream empty_cache memory_allocated max_memory_allocated
reset_max_memory_allocated memory_cached max_memory_cached reset_max_memory_cached memory_stats
reset_peak_memory_stats memory_reserved max_memory_reserved total_memory available_memory
is_bf16_supported is_fp16_supported supported_dtypes range_push range_pop lazy_call
is_triton_supported prefer_triton_grouped_mm create_graph capture_to_graph replay_graph
BFloat16Tensor ByteTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor on_accelerator
pin_memory is_pinned unpin_memory op_builder_dir create_op_builder get_op_builder build_extension
visible_devices_envs set_visible_devices_envs export_envs get_compile_backend set_compile_backend
amp"
# The second column of the table, and the lines after the table.
awk -F '|' '/^\|/ { print $3 }' "$table" >"$dir/theirs"
sed -n '/^|/,$p' "$table" | grep -v '^|' >>"$dir/theirs"
for method in $methods; do
    if grep -q "[\`. ]${method}[(\`,]" "$dir/theirs"; then
        pass
    else
        fail "$method is in the table"
    fi
done

# A row has five cells; the fourth has a function of this library.
is "every row has five cells" "" "$(awk -F '|' '/^\|/ && NF != 7' "$table")"
is "every row is about a function of ours" "" "$(awk -F '|' '
/^\|/ && $2 !~ /\*\*/ && $5 !~ /^ `ds_accel_[a-z0-9_]*\(\)` $/ && !/^\|---/ && !/^\| torch/' "$table")"
is "and no function has two" "" "$(awk -F '|' '/^\|/ { print $5 }' "$table" | grep ds_accel | sort | uniq -d)"

finish
