# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The benchmark: tests/bench/bench.c describes what it measures. Included by the top Makefile, after
# fixtures.mk, which has the flags and objects for a plugin under another name.

BENCH_SOURCE := tests/bench
BENCH_DIR := $(BUILD)/bench
BENCH := $(BENCH_DIR)/bench
BENCH_OBJECTS := $(foreach f,bench process plugins launch report,$(BUILD)/obj/$(BENCH_SOURCE)/$(f).o)
BENCH_NEEDS := $(BENCH_DIR)/bare $(BENCH_DIR)/dispatch $(BENCH_DIR)/pinned $(BENCH_DIR)/allocate \
    $(BENCH_DIR)/beside_cuda $(BENCH_DIR)/spawn $(BENCH_DIR)/placeholder.so
# The placeholder is as long as the names that replace it: p000 and so on.
BENCH_PLACEHOLDER := pxxx

# The flags of a program that uses the library. The baseline of a call is a call through the plain
# PLT.
BENCH_CFLAGS = $(BASE_CFLAGS) -fPIE -fplt -I$(STAGE_PROGRAM) -I$(BENCH_SOURCE) -Itests \
    -DBENCH_PLACEHOLDER='"$(BENCH_PLACEHOLDER)"' $(CFLAGS)

$(BUILD)/obj/$(BENCH_SOURCE)/%.o: $(BENCH_SOURCE)/%.c $(BENCH_SOURCE)/bench.mk Makefile \
    $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -c -o $@ $<

$(BENCH): $(BENCH_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/bare: $(BUILD)/obj/$(BENCH_SOURCE)/bare.o
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ -ldl $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/spawn: $(BUILD)/obj/$(BENCH_SOURCE)/spawn.o
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/libtrivial.so: $(BENCH_SOURCE)/trivial.c $(BENCH_SOURCE)/trivial.h \
    $(BENCH_SOURCE)/bench.mk $(SETTINGS) $(STAGE_PLUGIN)/plugin-api.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(BASE_CFLAGS)) -I$(STAGE_PLUGIN) $(CFLAGS) -shared \
	    -Wl,-soname,libtrivial.so -o $@ $< $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/dispatch: $(BUILD)/obj/$(BENCH_SOURCE)/dispatch.o $(BENCH_DIR)/libtrivial.so $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $< -L$(BENCH_DIR) -ltrivial -L$(BUILD)/lib -lds_accel \
	    -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib' $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/pinned: $(BUILD)/obj/$(BENCH_SOURCE)/pinned.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $< -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/allocate: $(BUILD)/obj/$(BENCH_SOURCE)/allocate.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $< -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' -lpthread -ldl \
	    $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/beside_cuda: $(BUILD)/obj/$(BENCH_SOURCE)/beside_cuda.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $< -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' -ldl $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/captures: tests/sim/cuda/captures.c plugins/cuda/cuda_api.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra $(WERROR) -o $@ $< $(SANFLAGS) $(LDFLAGS) -lpthread -ldl

# The placeholder has no symbols and no debugging information, as plugins are shipped: the benchmark
# makes hundreds of copies. It has no device, so that detection probes all of them.
$(BENCH_DIR)/placeholder.so: $(sort $(wildcard plugins/mock/*.c)) plugins/mock/mock.h \
    plugins/common/plugin_util.h $(STAGE_PLUGIN)/plugin-api.h $(BENCH_SOURCE)/bench.mk
	@mkdir -p $(@D)
	$(CC) $(FIXTURE_CFLAGS) -DMOCK_NAME='"$(BENCH_PLACEHOLDER)"' -DMOCK_AVAILABLE='"false"' \
	    $(filter %.c,$^) $(PLUGIN_LDFLAGS) -s -lpthread -o $@

-include $(wildcard $(BUILD)/obj/$(BENCH_SOURCE)/*.d)

# Also compiled by lint, since the benchmark itself runs rarely.
bench-programs: $(BENCH) $(BENCH_NEEDS)

# The benchmark measures the release build, as it is installed, without assertions.
ifneq ($(RELEASE),1)
bench:  ## measure a release build, beside a bare baseline in the same run
	@$(MAKE) --no-print-directory bench RELEASE=1 BUILD=$(BUILD)-release
else
bench: build $(BENCH) $(BENCH_NEEDS) $(COMPARE) $(FIXTURE_DIR)/faults/probe_segv/ds_accel_faulty.so
	@tools/deps.sh bench
	@$(BENCH) $(abspath $(BUILD))
	@$(COMPARE) --seeds 100 --draw $(COMPARE_TRACES)
endif

ACCELERATOR ?= cuda
hardware: build $(BENCH_DIR)/beside_cuda $(BENCH_DIR)/captures $(SIM_DRIVE) $(THREADS)  ## on a machine with an accelerator: a section for docs/hardware.md (ACCELERATOR=cuda)
	@tests/bench/hardware.sh $(abspath $(BUILD)) $(ACCELERATOR)
.PHONY: hardware
