# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Simulated vendor runtimes: $(BUILD)/sim/lib is a directory for LD_LIBRARY_PATH. Each vendor's
# shims share one copy of the engine, libsim_<vendor>.so, so that its telemetry sees what its
# runtime does. tests/sim/<vendor>/shim.mk lists the libraries:
#
#     $(eval $(call sim_library,cuda,libcuda.so.1,tests/sim/cuda/driver.c tests/sim/cuda/graph.c))
#
# SIM_FILES lists all libraries; $(BUILD)/sim/sonames lists them with their vendors.
# $(BUILD)/sim/drive is the program that calls a plugin's table directly (tests/sim/drive).

SIM_DIR := $(BUILD)/sim/lib
SIM_CFLAGS = -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) $(SANFLAGS) -MMD -MP -Itests/sim -Itests \
    $(shell $(PKG_CONFIG) --cflags jansson) $(CFLAGS)
SIM_LDFLAGS = -shared -Wl,-z,now -Wl,-rpath,'$$ORIGIN' $(SANFLAGS) $(LDFLAGS)
SIM_ENGINE := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/sim/*.c)))
SIM_FILES :=

$(BUILD)/obj/tests/sim/%.o: tests/sim/%.c Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -c -o $@ $<

# Shims link with the engine's functions, so that these are visible here, and nowhere else.
$(SIM_ENGINE): SIM_CFLAGS += -fvisibility=default

$(SIM_DIR)/libsim_%.so: $(SIM_ENGINE)
	@mkdir -p $(@D)
	$(CC) $(SIM_LDFLAGS) -Wl,-Bsymbolic -Wl,-soname,libsim_$*.so -o $@ $^ $(shell $(PKG_CONFIG) --libs jansson) -lpthread -ldl

# sim_library VENDOR SONAME SOURCES
define sim_library
SIM_FILES += $(SIM_DIR)/$(2)
SIM_SONAMES += $(1):$(2)
$(SIM_DIR)/$(2): $(patsubst %.c,$(BUILD)/obj/%.o,$(3)) $(SIM_DIR)/libsim_$(1).so
	@mkdir -p $$(@D)
	$$(CC) $$(SIM_LDFLAGS) $$(DEFS) -Wl,-soname,$(2) -o $$@ $$(filter %.o,$$^) -L$(SIM_DIR) -lsim_$(1) -lpthread -ldl
endef

include $(wildcard tests/sim/*/shim.mk)

$(BUILD)/sim/sonames: $(wildcard tests/sim/*/shim.mk) tests/sim/sim.mk
	@mkdir -p $(@D)
	printf '%s\n' $(foreach pair,$(SIM_SONAMES),'$(subst :, ,$(pair))') >$@
SIM_FILES += $(BUILD)/sim/sonames

SIM_DRIVE := $(BUILD)/sim/drive
SIM_DRIVE_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/sim/drive/*.c)))
$(SIM_DRIVE_OBJECTS): SIM_CFLAGS += -I$(STAGE_PLUGIN)
$(SIM_DRIVE_OBJECTS): | $(STAGED)
$(SIM_DRIVE): $(SIM_DRIVE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl
SIM_FILES += $(SIM_DRIVE)

sim: build $(SIM_FILES)  ## simulated vendor runtimes, to try a machine that you don't have
.PHONY: sim

-include $(wildcard $(BUILD)/obj/tests/sim/*.d $(BUILD)/obj/tests/sim/*/*.d)
