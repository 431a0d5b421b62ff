# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The test of the decision that a launcher hands down to its ranks. Linked with the objects of
# core/, because the launcher's functions are not exported. The test makes allocations of these
# objects fail. Included by the top Makefile.

DECISION := $(BUILD)/tests/decision
$(BUILD)/obj/tests/host/decision.o: tests/host/decision.c tests/host/decision.mk Makefile \
    $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -c -o $@ $<
$(DECISION): $(BUILD)/obj/tests/host/decision.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc strdup) $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

test-decision-built: build $(TESTBED)/complete $(DECISION)
test-decision: test-decision-built
	@$(MEASURED_TEST) $(DECISION) $(abspath $(TESTBED))/lib/ds-accel $(abspath $(BUILD))/tests/decision.d tests/machines/h200.json
