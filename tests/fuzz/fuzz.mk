# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The fuzzers: one file each, linked with the core's objects, since the shared library does not
# export the functions that they call. Included by the top Makefile. `make check` runs each once
# with every input in corpus/; `make fuzz` searches for new inputs, with libFuzzer.

FUZZ_SOURCE := tests/fuzz
FUZZ_DIR := $(BUILD)/fuzz
FUZZERS ?= config elf frames cache decision snapshot list memory oom recording replay_device hostfile \
    launch_filter launch_options ranges depend listed manifest load_cache
FUZZ_SECONDS ?= 30
# Few inputs need to be longer, and the fuzzer finds short inputs sooner.
FUZZ_MAX_LEN ?= 2048

REPLAYS := $(FUZZERS:%=$(FUZZ_DIR)/replay/fuzz_%)
LIBFUZZERS := $(FUZZERS:%=$(FUZZ_DIR)/fuzz_%)

$(BUILD)/obj/$(FUZZ_SOURCE)/%.o: $(FUZZ_SOURCE)/%.c $(FUZZ_SOURCE)/fuzz.mk Makefile $(SETTINGS) \
    | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -I$(FUZZ_SOURCE) -c -o $@ $<

$(REPLAYS): $(FUZZ_DIR)/replay/%: $(BUILD)/obj/$(FUZZ_SOURCE)/%.o \
    $(BUILD)/obj/$(FUZZ_SOURCE)/fuzz_main.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

$(LIBFUZZERS): $(FUZZ_DIR)/%: $(BUILD)/obj/$(FUZZ_SOURCE)/%.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) -fsanitize=fuzzer $(LDFLAGS)

-include $(wildcard $(BUILD)/obj/$(FUZZ_SOURCE)/*.d)

test-fuzz-built: $(REPLAYS)
test-fuzz: test-fuzz-built
	@$(MEASURED_TEST) $(MAKE) --no-print-directory fuzz-replay
fuzz-replay:
	@set -e; for name in $(FUZZERS); do \
	    $(FUZZ_DIR)/replay/fuzz_$$name $(FUZZ_SOURCE)/corpus/$$name; done

libfuzzers: $(LIBFUZZERS)

# The check uses a separate build directory, compiled with coverage counters.
fuzz-reach:  ## does each fuzzer get where reach.txt says, with what is in its corpus?
	@$(MAKE) --no-print-directory reach-replays BUILD=$(BUILD)-reach CFLAGS='-O0 --coverage' LDFLAGS=--coverage SAN=
	@$(FUZZ_SOURCE)/reach.sh $(BUILD)-reach $(FUZZERS)
reach-replays: $(REPLAYS)
.PHONY: fuzz-replay fuzz-reach reach-replays

# New inputs stay in the build directory; the last line contains the path of a failing input.
fuzz:  ## look for inputs that break a parser: FUZZ_SECONDS each, FUZZERS="config elf ..."
	@tools/deps.sh build fuzz
	@tests/tools/measured.sh fuzz-reach $(MAKE) --no-print-directory fuzz-reach
	@tests/tools/measured.sh fuzz-build $(MAKE) --no-print-directory libfuzzers BUILD=$(BUILD)-fuzz CC=clang \
	    SAN=fuzzer-no-link,address,undefined CFLAGS='$(SAN_CFLAGS)'
	@echo "fuzz: $(FUZZ_SECONDS) s each, SEED=$(SEED)"
	@mkdir -p $(FUZZERS:%=$(BUILD)-fuzz/corpus/%)
	@printf '%s\n' $(FUZZERS) | UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 tests/tools/measured.sh fuzz-search \
	    xargs -n 1 -P $(TEST_JOBS) sh -c 'name=$$1; output=$(BUILD)-fuzz/fuzz_$$name.out; code=0; \
	    $(BUILD)-fuzz/fuzz/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -seed=$(SEED) \
	        -max_len=$(FUZZ_MAX_LEN) -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 \
	        -artifact_prefix=$(BUILD)-fuzz/fuzz_$$name- \
	        $$(test ! -f $(FUZZ_SOURCE)/$$name.dict || echo -dict=$(FUZZ_SOURCE)/$$name.dict) \
	        $(BUILD)-fuzz/corpus/$$name $(FUZZ_SOURCE)/corpus/$$name >$$output 2>&1 || code=1; \
	    sed "s/^/fuzz_$$name: /" $$output; exit $$code' sh

# Inputs are compared by the code they reach, without the number of times: counts would keep
# hundreds of inputs.
fuzz-keep:  ## of what make fuzz added, keep in corpus/ the few inputs that reach new code
	@set -e; for name in $(FUZZERS); do \
	    $(BUILD)-fuzz/fuzz/fuzz_$$name -set_cover_merge=1 -use_counters=0 -verbosity=0 \
	        $(FUZZ_SOURCE)/corpus/$$name $(BUILD)-fuzz/corpus/$$name; done
