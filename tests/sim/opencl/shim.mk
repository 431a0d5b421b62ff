# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# No simulation: OpenCL has real runtimes that need no device. A loader whose calls can be made to
# fail, a program that lets each fail in turn, and one that
# mixes its own OpenCL with the plugin.

OPENCL_FAILING := $(BUILD)/sim/opencl/libopencl_failing.so
OPENCL_PROGRAMS := $(BUILD)/sim/opencl/exercise $(BUILD)/sim/opencl/native
SIM_FILES += $(OPENCL_FAILING) $(OPENCL_PROGRAMS)

$(OPENCL_FAILING): $(BUILD)/obj/tests/sim/opencl/failing.o
	@mkdir -p $(@D)
	$(CC) $(SIM_LDFLAGS) $(DEFS) -o $@ $^ -ldl

OPENCL_OBJECTS := $(patsubst $(BUILD)/sim/%,$(BUILD)/obj/tests/sim/%.o,$(OPENCL_PROGRAMS))
$(OPENCL_OBJECTS): SIM_CFLAGS += -I$(STAGE_PLUGIN)
$(OPENCL_OBJECTS): | $(STAGED)

$(OPENCL_PROGRAMS): $(BUILD)/sim/%: $(BUILD)/obj/tests/sim/%.o
	@mkdir -p $(@D)
	$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl
