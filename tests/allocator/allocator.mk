# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The caching allocator against a model (tests/allocator/model.c), and its use of memory compared
# with torch's rules (compare.c). Both programs are linked with the library's objects, because the
# tested interface is not exported. Included by the top Makefile.

MODEL := $(BUILD)/tests/model
MODEL_OBJECTS := $(BUILD)/obj/tests/allocator/model.o $(BUILD)/obj/tests/allocator/synthetic.o
# Under the thread sanitizer every step is slow.
MODEL_OPERATIONS ?= $(if $(SAN),500000,10000000)

# Directories of tests/ have the same names as directories of core/: these sources are compiled with
# core/ alone in the include path.
$(BUILD)/obj/tests/allocator/%.o: tests/allocator/%.c Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -c -o $@ $<

$(MODEL): $(MODEL_OBJECTS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(SANFLAGS) $(LDFLAGS) -Wl,--as-needed $(DEPENDS_LIBS) -lpthread -ldl

-include $(MODEL_OBJECTS:.o=.d)


# The allocator's use of memory compared with torch's rules, on generated and recorded sequences.
# `make bench` runs all seeds.
COMPARE := $(BUILD)/tests/compare
COMPARE_OBJECTS := $(foreach f,compare rules traces synthetic,$(BUILD)/obj/tests/allocator/$(f).o)
COMPARE_SEEDS ?= $(if $(SAN),2,10)
COMPARE_TRACES := $(sort $(wildcard tests/allocator/recorded/*.txt))

$(COMPARE): $(COMPARE_OBJECTS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(SANFLAGS) $(LDFLAGS) -Wl,--as-needed $(DEPENDS_LIBS) -lpthread -ldl

-include $(COMPARE_OBJECTS:.o=.d)

test-allocator-built: $(MODEL) $(COMPARE)
test-allocator: test-allocator-built
	@$(MEASURED_TEST) $(MODEL) $(MODEL_OPERATIONS)
	@$(MEASURED_TEST)-compare $(COMPARE) --seeds $(COMPARE_SEEDS) $(COMPARE_TRACES)
