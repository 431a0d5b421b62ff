# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# rocm-5 is a separate directory, so that the plugin does not find the newer runtime in it first.

$(eval $(call sim_library,rocm,libamdhip64.so.6,tests/sim/rocm/hip.c tests/sim/runtime/runtime.c))
$(eval $(call sim_library,rocm,rocm-5/libamdhip64.so.5,tests/sim/rocm/hip5.c tests/sim/runtime/runtime.c))
$(eval $(call sim_library,rocm,librocm_smi64.so.7,tests/sim/rocm/smi.c))
$(eval $(call sim_library,rocm,libamd_smi.so.26,tests/sim/rocm/amdsmi.c))
$(eval $(call sim_library,rocm,libroctx64.so.4,tests/sim/rocm/roctx.c))
