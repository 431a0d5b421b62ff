# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Why ranks end, and what they leave: control groups, core dumps, signals, shared memory. Linked with the objects of core/, because the
# tested functions are not exported. Included by the top Makefile.

DEATH := $(BUILD)/tests/death
DEATH_OBJECTS := $(patsubst %,$(BUILD)/obj/tests/launch/%.o,death death_cores death_groups death_kernel death_shared)
$(DEATH_OBJECTS): $(BUILD)/obj/tests/launch/%.o: tests/launch/%.c tests/launch/death.mk Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -Itests -fno-builtin -c -o $@ $<
$(DEATH): $(DEATH_OBJECTS) $(ALLOCATIONS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

-include $(DEATH_OBJECTS:.o=.d)

.PHONY: mutant-death
test-death-built: $(DEATH)
mutant-death: $(DEATH)
test-death: test-death-built
	@$(MEASURED_TEST) $(DEATH)
