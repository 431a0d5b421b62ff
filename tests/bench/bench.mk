# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The benchmarks: tests/bench/bench.c, ops.c and comm.c describe what they measure. Included by the
# top Makefile, after fixtures.mk, which has the flags and objects for a plugin under another name.

BENCH_SOURCE := tests/bench
BENCH_DIR := $(BUILD)/bench
BENCH := $(BENCH_DIR)/bench
BENCH_OBJECTS := $(foreach f,bench process plugins launch op_build output report,$(BUILD)/obj/$(BENCH_SOURCE)/$(f).o)
BENCH_NEEDS := $(BENCH_DIR)/bare $(BENCH_DIR)/dispatch $(BENCH_DIR)/pinned $(BENCH_DIR)/allocate \
    $(BENCH_DIR)/beside_cuda $(BENCH_DIR)/spawn $(BENCH_DIR)/op_load $(BENCH_DIR)/placeholder.so
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

$(BUILD)/obj/$(BENCH_SOURCE)/op_load.o: $(OP_HEADERS) $(HEADERS)
$(BUILD)/obj/$(BENCH_SOURCE)/op_load.o: BENCH_CFLAGS += -I$(BUILD)/include
$(BENCH_DIR)/op_load: $(BUILD)/obj/$(BENCH_SOURCE)/op_load.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $< -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' -ldl $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/beside_cuda: $(BUILD)/obj/$(BENCH_SOURCE)/beside_cuda.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $< -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' -ldl $(SANFLAGS) $(LDFLAGS)

$(BENCH_DIR)/captures: tests/sim/cuda/captures.c plugins/cuda/cuda_api.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra $(WERROR) -o $@ $< $(SANFLAGS) $(LDFLAGS) -lpthread -ldl

# The limits are compiled as ops are: a limit must not be slower because of its flags.
BENCH_OPS_PROGRAM := $(BENCH_DIR)/ops
BENCH_LIMITS := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard $(BENCH_SOURCE)/limit*.c)))
BENCH_OPS_OBJECTS := $(foreach f,process output ops ops_call ops_measure ops_report ops_roofline,$(BUILD)/obj/$(BENCH_SOURCE)/$(f).o)
$(BENCH_LIMITS): BENCH_CFLAGS += $(patsubst -O2,-O3,$(filter -O%,$(CFLAGS))) -ffp-contract=off -fno-math-errno -fno-trapping-math
$(BENCH_OPS_OBJECTS): $(HEADERS) $(OP_HEADERS)
$(filter %/ops.o %/ops_call.o %/ops_measure.o %/ops_report.o %/ops_roofline.o,$(BENCH_OPS_OBJECTS)): BENCH_CFLAGS += -I$(BUILD)/include $(OPENMP)
$(BENCH_OPS_PROGRAM): $(BENCH_OPS_OBJECTS) $(BENCH_LIMITS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ $(OPENMP) -lm -ldl $(SANFLAGS) $(LDFLAGS)

# The benchmark of communication: the driver, and a program for each implementation. Those of MPI are
# left out where an MPI is missing.
BENCH_COMM_PROGRAM := $(BENCH_DIR)/comm
BENCH_COMM_OBJECTS := $(foreach f,process output comm comm_report,$(BUILD)/obj/$(BENCH_SOURCE)/$(f).o)
BENCH_COMM_OURS := $(foreach f,comm_ours comm_limit,$(BUILD)/obj/$(BENCH_SOURCE)/$(f).o)
BENCH_COMM_MPI := $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(BENCH_DIR)/comm_$(mpi)))
$(BENCH_COMM_OURS): $(HEADERS) $(OP_HEADERS)
$(BENCH_COMM_OURS): BENCH_CFLAGS += -I$(BUILD)/include $(patsubst -O2,-O3,$(filter -O%,$(CFLAGS)))
$(BENCH_COMM_PROGRAM): $(BENCH_COMM_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ -lm $(SANFLAGS) $(LDFLAGS)
$(BENCH_DIR)/comm_ours: $(BENCH_COMM_OURS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ -ldl $(SANFLAGS) $(LDFLAGS)
$(BENCH_COMM_MPI): $(BENCH_DIR)/comm_%: $(BENCH_SOURCE)/comm_mpi.c $(BENCH_SOURCE)/comm_loop.h tests/clock.h $(BENCH_SOURCE)/bench.mk
	@mkdir -p $(@D)
	mpicc.$* -std=c11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -O3 -Itests -o $@ $<
BENCH_COMM_FILES := $(BENCH_COMM_PROGRAM) $(BENCH_DIR)/comm_ours $(BENCH_COMM_MPI)

# The benchmark of async_io beside fio.
BENCH_IO_PROGRAM := $(BENCH_DIR)/io
BENCH_IO_OBJECTS := $(foreach f,process output io,$(BUILD)/obj/$(BENCH_SOURCE)/$(f).o)
$(BUILD)/obj/$(BENCH_SOURCE)/io.o: $(HEADERS) $(OP_HEADERS)
$(BUILD)/obj/$(BENCH_SOURCE)/io.o: BENCH_CFLAGS += -I$(BUILD)/include
$(BENCH_IO_PROGRAM): $(BENCH_IO_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ -ldl $(SANFLAGS) $(LDFLAGS)

# What bench io --tune finds beside the best of the whole grid, with the files of the command.
BENCH_IO_TUNE_PROGRAM := $(BENCH_DIR)/io_tune
$(BUILD)/obj/$(BENCH_SOURCE)/io_tune.o: BENCH_CFLAGS += -I$(STAGE_PROGRAM)/ops -Itools
$(BENCH_IO_TUNE_PROGRAM): $(BUILD)/obj/$(BENCH_SOURCE)/io_tune.o \
    $(foreach f,bench_io_measure bench_io_tune bench_io_report bench_progress bench_report,$(BUILD)/obj/tools/$(f).o) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' -ldl $(SANFLAGS) $(LDFLAGS)

# The placeholder has no symbols and no debugging information, as plugins are shipped: the benchmark
# makes hundreds of copies. It has no device, so that detection probes all of them.
$(BENCH_DIR)/placeholder.so: $(sort $(wildcard plugins/mock/*.c)) plugins/mock/mock.h \
    plugins/common/plugin_util.h $(STAGE_PLUGIN)/plugin-api.h $(BENCH_SOURCE)/bench.mk
	@mkdir -p $(@D)
	$(CC) $(FIXTURE_CFLAGS) -DMOCK_NAME='"$(BENCH_PLACEHOLDER)"' -DMOCK_AVAILABLE='"false"' \
	    $(filter %.c,$^) $(PLUGIN_LDFLAGS) -s -lpthread -o $@

-include $(wildcard $(BUILD)/obj/$(BENCH_SOURCE)/*.d)

# Tests run these benchmarks with few elements.
test-shell-built: $(if $(filter %/test_bench_ops.sh,$(SHELL_TESTS)),$(BENCH_OPS_PROGRAM))
test-shell-built: $(if $(filter %/test_bench_fio.sh,$(SHELL_TESTS)),$(BENCH_IO_PROGRAM))
test-shell-built: $(if $(filter %/test_bench_comm.sh,$(SHELL_TESTS)),$(BENCH_COMM_FILES))
# What a mutation of this test is built with.
.PHONY: mutant-bench-ops
mutant-bench-ops: $(OP_FILES) $(BENCH_OPS_PROGRAM)

# Also compiled by lint, since the benchmarks themselves run rarely.
bench-programs: $(BENCH) $(BENCH_NEEDS) $(BENCH_OPS_PROGRAM) $(BENCH_COMM_FILES) $(BENCH_IO_PROGRAM) $(BENCH_IO_TUNE_PROGRAM)

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

# What to measure: names of ops and numbers of elements, or of bytes for shm_comm, separated by spaces;
# empty: all. async_io is measured on a file of BENCH_IO_MIB in BENCH_IO_DIR.
BENCH_OPS ?=
BENCH_SIZES ?=
BENCH_IO_DIR ?= $(BENCH_DIR)
BENCH_IO_MIB ?=
BENCH_OPTIMIZERS = $(filter-out shm_comm async_io,$(BENCH_OPS))
# bench_has OP: whether this op is wanted.
bench_has = $(if $(BENCH_OPS),$(filter $(1),$(BENCH_OPS)),$(1))
ifneq ($(RELEASE),1)
bench-ops:  ## measure the ops of a release build beside their limits and others' (BENCH_OPS="cpu_adam" BENCH_SIZES="1e4 1e7" DEEPSPEED=DIR)
	@$(MAKE) --no-print-directory bench-ops RELEASE=1 BUILD=$(BUILD)-release
else
bench-ops: deps-check $(OP_FILES) $(BENCH_OPS_PROGRAM) $(BENCH_COMM_FILES) $(BENCH_IO_PROGRAM)
	@tools/deps.sh bench $(if $(DEEPSPEED),deepspeed)
	@$(if $(BENCH_OPTIMIZERS)$(if $(BENCH_OPS),,all),$(BENCH_OPS_PROGRAM) $(abspath $(BUILD)) $(PYTHON) '$(BENCH_OPTIMIZERS)' '$(BENCH_SIZES)')
	@$(if $(call bench_has,shm_comm),DEEPSPEED='$(DEEPSPEED)' $(BENCH_COMM_PROGRAM) $(abspath $(BUILD)) $(PYTHON) '$(if $(BENCH_OPS),$(BENCH_SIZES))')
	@$(if $(call bench_has,async_io),DEEPSPEED='$(DEEPSPEED)' $(BENCH_IO_PROGRAM) $(abspath $(BUILD)) $(PYTHON) '$(BENCH_IO_DIR)' '$(BENCH_IO_MIB)')
endif

.PHONY: bench-io-tune
ifneq ($(RELEASE),1)
bench-io-tune:  ## what bench io --tune finds beside the best of the whole grid (BENCH_IO_DIR=DIR BENCH_IO_MIB=512)
	@$(MAKE) --no-print-directory bench-io-tune RELEASE=1 BUILD=$(BUILD)-release
else
bench-io-tune: build $(BENCH_IO_TUNE_PROGRAM)
	@mkdir -p '$(BENCH_IO_DIR)'
	@$(BENCH_IO_TUNE_PROGRAM) $(abspath $(BUILD)) '$(BENCH_IO_DIR)' '$(BENCH_IO_MIB)'
endif

# The optimizers beside those of a DeepSpeed checkout, which are compiled once per build directory.
DEEPSPEED ?=
DEEPSPEED_SIZES ?= 1e7 1e8
DEEPSPEED_THREADS ?= 2
.PHONY: deepspeed deepspeed-named
deepspeed: deepspeed-named
deepspeed-named:
	@[ -n '$(DEEPSPEED)' ] || { echo "make deepspeed: DEEPSPEED=DIR is missing: DIR is a checkout of DeepSpeed" >&2; exit 2; }
ifneq ($(RELEASE),1)
deepspeed:  ## the ops of a release build beside DeepSpeed's (DEEPSPEED=DIR DEEPSPEED_SIZES="1e7 1e8" DEEPSPEED_THREADS=2)
	@$(MAKE) --no-print-directory deepspeed RELEASE=1 BUILD=$(BUILD)-release
else
deepspeed: $(OP_FILES) $(HEADERS) $(OP_HEADERS)
	@tools/deps.sh deepspeed
	@mkdir -p $(BENCH_DIR)
	@tests/ops/layout.sh $(BUILD) $(BENCH_DIR)/deepspeed >$(BENCH_DIR)/deepspeed-layout.txt
	@$(PYTHON) -B $(BENCH_SOURCE)/deepspeed_optimizers.py '$(DEEPSPEED)' $(BUILD)/lib/ds-accel/ops $(BENCH_DIR)/deepspeed-layout.txt \
	    $(abspath $(BENCH_DIR)/deepspeed) $(DEEPSPEED_THREADS) $(DEEPSPEED_SIZES)
endif

ACCELERATOR ?= cuda
hardware: build $(BENCH_DIR)/beside_cuda $(BENCH_DIR)/captures $(SIM_DRIVE) $(THREADS)  ## on a machine with an accelerator: a section for docs/hardware.md (ACCELERATOR=cuda)
	@tests/bench/hardware.sh $(abspath $(BUILD)) $(ACCELERATOR)
.PHONY: hardware
