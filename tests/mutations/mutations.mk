# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Deliberate defects, each with the test that must fail: tests/mutations/run.sh. Included by the top
# Makefile. The gate runs a sample; `make soak` runs all of them, and the other tests at full count.

MUTATIONS := tests/mutations/run.sh --jobs $(TEST_JOBS)
MUTATIONS_ONLY ?= *
MUTATIONS_SAMPLE ?= 12
# The sample begins no mutation after this many seconds.
MUTATIONS_SECONDS ?= 60
MUTATIONS_SEED ?= $(SEED)
SOAK_FUZZ_SECONDS ?= 300
SOAK_OPERATIONS ?= 100000000

.PHONY: mutations mutations-sample soak mutant-host mutant-unit mutant-shell mutant-abi mutant-fuzz mutant-alloc \
    mutant-allocator mutant-threads mutant-threads-sim mutant-caller mutant-layer mutant-launch

mutations: build $(TESTBED)/complete $(FIXTURES) $(SIM_FILES)  ## every deliberate defect must fail the test it names
	$(MUTATIONS) --only '$(MUTATIONS_ONLY)' $(BUILD)

mutations-sample: build $(TESTBED)/complete $(FIXTURES)  ## a few of them: MUTATIONS_SEED repeats a sample
	$(MUTATIONS) --sample $(MUTATIONS_SAMPLE) --seconds $(MUTATIONS_SECONDS) \
	    --seed $(MUTATIONS_SEED) $(BUILD)

soak: deps-check  ## everything at full count, and the figures for notes: all that the gate samples, mutations, long fuzzing
	@tests/tools/soak.sh $(BUILD)/soak.log $(SEED) \
	    "$(MAKE) check-all FULL=1" "$(MAKE) lint" "$(MAKE) asan FULL=1" "$(MAKE) tsan FULL=1" "$(MAKE) valgrind FULL=1" \
	    "$(MAKE) mutations" "$(MAKE) test-allocator MODEL_OPERATIONS=$(SOAK_OPERATIONS)" "$(MAKE) fuzz FUZZ_SECONDS=$(SOAK_FUZZ_SECONDS)"

# The links to the headers of rooms are absolute: run.sh deletes those of a copied build directory,
# which lead to the original headers, and makes the copy's own.
.PHONY: mutant-rooms
mutant-rooms: $(foreach room,$(ROOMS) $(TOOLS_ROOMS),$(STAGE)/rooms/$(room)/complete)
# run.sh builds these targets for a test, so that it can then run the test alone.
mutant-host: build $(TESTBED)/complete $(FIXTURES)
mutant-unit: mutant-host $(UNIT)
# The tests of each copy are compiled and then run only a few times: optimizing them costs more time
# than it saves.
mutant-unit: TEST_CFLAGS += -O0 -g0
mutant-shell: mutant-host $(SIM_FILES)
mutant-abi: mutant-shell $(ABI_FILES)
mutant-fuzz: $(REPLAYS)
mutant-alloc: mutant-host $(ALLOC)
mutant-allocator: $(MODEL)
mutant-threads: mutant-host $(THREADS)
mutant-threads-sim: mutant-shell $(THREADS)
mutant-caller: mutant-host $(CALLER) $(CALLER_JOB)
mutant-layer: mutant-host $(BLOCKS)
mutant-launch: $(LAUNCH)
