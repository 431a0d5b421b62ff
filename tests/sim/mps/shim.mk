# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The Objective-C runtime and Metal as shared objects of this machine, and the mps plugin with them:
# outside Darwin it is only for tests, not part of the product.

$(eval $(call sim_library,mps,libobjc.A.dylib,tests/sim/mps/objc.c))
$(eval $(call sim_library,mps,Metal,tests/sim/mps/metal.c))
$(SIM_DIR)/Metal: $(SIM_DIR)/libobjc.A.dylib
$(SIM_DIR)/Metal: private SIM_LDFLAGS += -Wl,--no-as-needed $(SIM_DIR)/libobjc.A.dylib

ifeq ($(filter mps,$(PLUGINS)),)
SIM_MPS := $(BUILD)/sim/plugins/ds_accel_mps.so
SIM_FILES += $(SIM_MPS)
$(SIM_MPS): $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard plugins/mps/*.c))) $(VENDOR_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(PLUGIN_LDFLAGS) -o $@ $^ -lpthread -ldl
endif
