# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# No simulation: OpenCL has real runtimes that need no device. A loader whose calls can be made to
# fail, and a program that lets each fail in turn.

OPENCL_FAILING := $(BUILD)/sim/opencl/libopencl_failing.so
OPENCL_EXERCISE := $(BUILD)/sim/opencl/exercise
SIM_FILES += $(OPENCL_FAILING) $(OPENCL_EXERCISE)

$(OPENCL_FAILING): $(BUILD)/obj/tests/sim/opencl/failing.o
	@mkdir -p $(@D)
	$(CC) $(SIM_LDFLAGS) $(DEFS) -o $@ $^ -ldl

$(BUILD)/obj/tests/sim/opencl/exercise.o: SIM_CFLAGS += -I$(STAGE_PLUGIN)
$(BUILD)/obj/tests/sim/opencl/exercise.o: | $(STAGED)

$(OPENCL_EXERCISE): $(BUILD)/obj/tests/sim/opencl/exercise.o
	@mkdir -p $(@D)
	$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl
