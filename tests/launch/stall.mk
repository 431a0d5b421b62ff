# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Linked with the objects of core/, because the tested functions are not exported. Its functions
# are the frames that the test expects, so calls stay calls. Samples get a longer limit.

STALL := $(BUILD)/tests/stall
STALL_OBJECTS := $(BUILD)/obj/tests/launch/stall.o $(BUILD)/obj/tests/launch/stall_programs.o
$(STALL_OBJECTS): $(BUILD)/obj/tests/launch/%.o: tests/launch/%.c tests/launch/stall_programs.h Makefile tests/launch/stall.mk $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -fno-optimize-sibling-calls -c -o $@ $<
$(STALL): $(STALL_OBJECTS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ -Wl,--wrap=ds_accel__worker_run $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)
-include $(STALL_OBJECTS:.o=.d)

test-stall-built: build $(TESTBED)/complete $(STALL)
test-stall: test-stall-built
	@$(MEASURED_TEST) $(STALL) $(abspath $(TESTBED))/lib/ds-accel $(PYTHON)
