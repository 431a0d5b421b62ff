# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The tests of the op builder's parts, linked with the core's objects because the tested functions
# are not exported. Included by the top Makefile.

OPBUILD := $(BUILD)/tests/opbuild
OPBUILD_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/opbuild/*.c)))
OPBUILD_FLAGS ?=

$(BUILD)/obj/tests/opbuild/%.o: tests/opbuild/%.c tests/opbuild/opbuild.mk Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) -Icore $(TEST_CFLAGS) $(DEPENDS_CFLAGS) -fno-builtin -c -o $@ $<
$(OPBUILD): $(OPBUILD_OBJECTS) $(BUILD)/obj/tests/fixture.o $(ALLOCATIONS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(shell $(PKG_CONFIG) --libs criterion) $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

-include $(OPBUILD_OBJECTS:.o=.d)

test-opbuild-built: $(OPBUILD)
test-opbuild: test-opbuild-built
	@$(MEASURED_TEST) $(OPBUILD) --jobs 2 $(OPBUILD_FLAGS)

# What a mutation of this test is built with.
.PHONY: mutant-opbuild
mutant-opbuild: test-opbuild-built
