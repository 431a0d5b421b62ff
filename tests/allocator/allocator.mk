# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The caching allocator against a model: tests/allocator/model.c. It is linked with the library's
# objects, since the interface that it tests is not exported. Included by the top Makefile.

MODEL := $(BUILD)/tests/model
MODEL_OBJECTS := $(BUILD)/obj/tests/allocator/model.o $(BUILD)/obj/tests/allocator/synthetic.o
# The thread sanitizer makes every step dear.
MODEL_OPERATIONS ?= $(if $(SAN),500000,10000000)

$(MODEL_OBJECTS): TEST_CFLAGS += -Icore $(DEPENDS_CFLAGS)

$(MODEL): $(MODEL_OBJECTS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(SANFLAGS) $(LDFLAGS) -Wl,--as-needed $(DEPENDS_LIBS) -lpthread -ldl

-include $(MODEL_OBJECTS:.o=.d)

test-allocator: $(MODEL)
	$(MODEL) $(MODEL_OPERATIONS)
