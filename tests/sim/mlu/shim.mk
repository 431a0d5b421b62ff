# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Cambricon's runtime and device library, and a CNPX library for CNPX_LIB_PATH.

MLU_RUNTIME := tests/sim/mlu/cnrt.c tests/sim/mlu/cnrt_memory.c tests/sim/mlu/cnrt_work.c
$(eval $(call sim_library,mlu,libcnrt.so,$(MLU_RUNTIME)))
# Libraries that have only one of the three asynchronous copies, under the newest, the middle or the
# oldest name.
$(eval $(call sim_library,mlu,libcnrt_v3.so,$(MLU_RUNTIME)))
$(eval $(call sim_library,mlu,libcnrt_v2.so,$(MLU_RUNTIME)))
$(eval $(call sim_library,mlu,libcnrt_v1.so,$(MLU_RUNTIME)))
$(SIM_DIR)/libcnrt_v3.so: SIM_LDFLAGS += -Wl,--version-script=tests/sim/mlu/v3.map
$(SIM_DIR)/libcnrt_v2.so: SIM_LDFLAGS += -Wl,--version-script=tests/sim/mlu/v2.map
$(SIM_DIR)/libcnrt_v1.so: SIM_LDFLAGS += -Wl,--version-script=tests/sim/mlu/v1.map
$(SIM_DIR)/libcnrt_v3.so: tests/sim/mlu/v3.map
$(SIM_DIR)/libcnrt_v2.so: tests/sim/mlu/v2.map
$(SIM_DIR)/libcnrt_v1.so: tests/sim/mlu/v1.map
$(eval $(call sim_library,mlu,libcndev.so,tests/sim/mlu/cndev.c))
$(eval $(call sim_library,mlu,libcnpx.so,tests/sim/mlu/cnpx.c))
