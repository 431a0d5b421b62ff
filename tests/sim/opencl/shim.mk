# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# OpenCL is not simulated, because it has real runtimes that need no device. The library is a loader
# whose calls can fail on demand.

OPENCL_FAILING := $(BUILD)/sim/opencl/libopencl_failing.so
SIM_FILES += $(OPENCL_FAILING)

$(OPENCL_FAILING): $(BUILD)/obj/tests/sim/opencl/failing.o
	@mkdir -p $(@D)
	$(CC) $(SIM_LDFLAGS) $(DEFS) -o $@ $^ -ldl
