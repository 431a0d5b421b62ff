# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The tests of the launcher's plan, linked with the core's objects because the tested functions are
# not exported. Included by the top Makefile.

LAUNCH := $(BUILD)/tests/plan
LAUNCH_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/launch/plan/*.c)))

# Under sanitizers, a program needs more memory than the tests allow.
$(BUILD)/obj/tests/launch/plan/%.o: tests/launch/plan/%.c tests/launch/plan.mk Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -Itests -fno-builtin $(if $(SAN),-DHAS_SANITIZER) -c -o $@ $<
$(LAUNCH): $(LAUNCH_OBJECTS) $(ALLOCATIONS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

-include $(LAUNCH_OBJECTS:.o=.d)

test-launch-built: build $(LAUNCH)
test-launch: test-launch-built
	@$(MEASURED_TEST) $(LAUNCH) tests/launch/plan
