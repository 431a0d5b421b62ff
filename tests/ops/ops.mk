# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the optimizers: every code path that this CPU has, AVX-512 also emulated by SIMDe, and the
# paths of AArch64 on an emulated CPU. Included by the top Makefile.

OPS_TESTS := $(OPS:%=$(BUILD)/tests/ops/%)
$(BUILD)/obj/tests/ops/%.o: TEST_CFLAGS += -I$(BUILD)/include
$(patsubst tests/%.c,$(BUILD)/obj/tests/%.o,$(wildcard tests/ops/*.c)): $(OP_HEADERS) $(HEADERS)
$(OPS_TESTS): $(BUILD)/tests/ops/%: $(BUILD)/obj/tests/ops/%.o $(BUILD)/obj/tests/ops/optimizer.o
	@mkdir -p $(@D)
	$(CC) -o $@ $^ -lm -ldl $(SANFLAGS) $(LDFLAGS)

# Ops whose AVX-512 is emulated. The emulation is slow and not ours, so no sanitizer runs it.
OPS_EMULATED := $(if $(SAN)$(filter-out x86_64,$(shell uname -m)),,$(OPS:%=$(BUILD)/tests/ops/emulated/%.so))
op_sources = $(sort $(wildcard ops/common/*.c ops/$(1)/*.c))
$(OPS_EMULATED): $(BUILD)/tests/ops/emulated/%.so: $(wildcard ops/*.h ops/*/*.[ch]) tests/ops/avx512_emulated.h Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(OP_CFLAGS)) -O1 -Wno-psabi -Wno-undef -Iops/$* -Itests '-DOPS_VECTOR_EMULATED="ops/avx512_emulated.h"' \
	    -shared -o $@ $(call op_sources,$*) -lm -lpthread

# The ops and their tests for AArch64.
ARM_CC ?= aarch64-linux-gnu-gcc
ARM := $(BUILD)/tests/ops/aarch64
OPS_ARM := $(if $(SAN),,$(foreach op,$(OPS),$(ARM)/$(op).so $(ARM)/$(op)))
ARM_CFLAGS = -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) -O2
$(filter %.so,$(OPS_ARM)): $(ARM)/%.so: $(wildcard ops/*.h ops/*/*.[ch]) Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(ARM_CC) $(ARM_CFLAGS) -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -Iops -Iops/$* \
	    -shared -o $@ $(call op_sources,$*) -lm -lpthread
$(filter-out %.so,$(OPS_ARM)): $(ARM)/%: $(wildcard tests/ops/*.[ch]) $(OP_HEADERS) $(HEADERS) Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(ARM_CC) $(ARM_CFLAGS) -I$(BUILD)/include -Itests -o $@ tests/ops/$*.c tests/ops/optimizer.c -lm -ldl

test-ops-built: $(OP_FILES) $(OPS_TESTS) $(OPS_EMULATED) $(OPS_ARM)
test-ops: test-ops-built
	@$(MEASURED_TEST) tests/ops/test_ops.sh $(BUILD) $(OPS)

# What a mutation of this test is built with.
.PHONY: mutant-ops
mutant-ops: test-ops-built
