# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
$(eval $(call sim_library,cuda,libcuda.so.1,$(addprefix tests/sim/cuda/,driver.c errors.c memory.c stream.c share.c)))
$(eval $(call sim_library,cuda,libnvidia-ml.so.1,tests/sim/cuda/nvml.c))
# A library with the exports of early R535 drivers.
$(eval $(call sim_library,cuda,nvml-535/libnvidia-ml.so.1,tests/sim/cuda/nvml.c))
$(SIM_DIR)/nvml-535/libnvidia-ml.so.1: SIM_LDFLAGS += -Wl,-rpath,'$$ORIGIN/..' -Wl,--version-script=tests/sim/cuda/nvml-535.map
$(SIM_DIR)/nvml-535/libnvidia-ml.so.1: tests/sim/cuda/nvml-535.map
$(eval $(call sim_library,cuda,libnvtx3interop.so.1,tests/sim/cuda/nvtx.c))
