# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Level Zero's loader with a simulated driver, the same loader with the exports of version 1.8, and
# a collector of ITT.

XPU_SHIM := tests/sim/xpu/core.c tests/sim/xpu/list.c tests/sim/xpu/memory.c tests/sim/xpu/graph.c \
    tests/sim/xpu/sysman.c
$(eval $(call sim_library,xpu,libze_loader.so.1,$(XPU_SHIM)))
$(eval $(call sim_library,xpu,libze_loader_1.8.so,$(XPU_SHIM)))
$(eval $(call sim_library,xpu,libittnotify_sim.so,tests/sim/xpu/itt.c))
$(SIM_DIR)/libze_loader_1.8.so: SIM_LDFLAGS += -Wl,--version-script=tests/sim/xpu/old.map
$(SIM_DIR)/libze_loader_1.8.so: tests/sim/xpu/old.map
