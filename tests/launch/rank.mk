# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# One rank: its start, and what it writes. Linked with the objects of core/, because the tested
# functions are not exported. Included by the top Makefile.

RANK_TEST := $(BUILD)/tests/rank
$(BUILD)/obj/tests/launch/rank.o: tests/launch/rank.c tests/launch/rank.mk Makefile $(SETTINGS) \
    | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -c -o $@ $<
$(RANK_TEST): $(BUILD)/obj/tests/launch/rank.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)
-include $(BUILD)/obj/tests/launch/rank.d

test-rank-built: $(RANK_TEST)
test-rank: test-rank-built
	@$(MEASURED_TEST) $(RANK_TEST)
