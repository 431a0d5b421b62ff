# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Cambricon's runtime and device library, and a CNPX library for CNPX_LIB_PATH.

$(eval $(call sim_library,mlu,libcnrt.so,tests/sim/mlu/cnrt.c tests/sim/mlu/cnrt_memory.c tests/sim/mlu/cnrt_work.c))
$(eval $(call sim_library,mlu,libcndev.so,tests/sim/mlu/cndev.c))
$(eval $(call sim_library,mlu,libcnpx.so,tests/sim/mlu/cnpx.c))
