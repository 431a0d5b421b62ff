# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The test of the master's port. Linked with the objects of core/, because the tested functions are
# not exported. The test makes allocations of these objects fail. Included by the top Makefile.

PORT := $(BUILD)/tests/port
$(BUILD)/obj/tests/launch/port.o: tests/launch/port.c tests/launch/port.mk Makefile $(SETTINGS) \
    | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -c -o $@ $<
$(PORT): $(BUILD)/obj/tests/launch/port.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc strdup) $(DEPENDS_LIBS) \
	    -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

test-port-built: $(PORT)
test-port: test-port-built
	@$(MEASURED_TEST) $(PORT)
