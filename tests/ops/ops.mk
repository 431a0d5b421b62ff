# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the ops. The optimizers run on every code path that this CPU has, on AVX-512 also emulated
# by SIMDe, and on the paths of AArch64 on an emulated CPU. Included by the top Makefile.

# fork: children of fork(). threads: too few of them. dlpack: the header, also in C++. async_io_*:
# failures of the system, and of a file system by FUSE; what io_uring has registered; settings of the
# configuration; threads that wake in another order. ccl_comm_hosts: several hosts.
OPS_TESTS := $(addprefix $(BUILD)/tests/ops/,$(OPS) fork threads dlpack async_io_errors async_io_faults async_io_ring async_io_settings async_io_wakeups ccl_comm_hosts)
$(BUILD)/obj/tests/ops/async_io_faults.o: TEST_CFLAGS += $(shell $(PKG_CONFIG) --cflags fuse3)
async_io_ring_LIBS = -luring
async_io_faults_LIBS = $(shell $(PKG_CONFIG) --libs fuse3)
OPS_TESTS_CXX := $(if $(HAS_CXX),$(BUILD)/tests/ops/dlpack_cxx)
$(BUILD)/obj/tests/ops/fork.o $(BUILD)/obj/tests/ops/threads.o: TEST_CFLAGS += $(OPENMP)
$(BUILD)/obj/tests/ops/%.o: TEST_CFLAGS += -I$(BUILD)/include
$(patsubst tests/%.c,$(BUILD)/obj/tests/%.o,$(wildcard tests/ops/*.c)): $(OP_HEADERS) $(HEADERS)
$(OPTIMIZERS:%=$(BUILD)/tests/ops/%): $(BUILD)/obj/tests/ops/optimizer.o $(BUILD)/obj/tests/ops/gradients.o
$(addprefix $(BUILD)/obj/tests/ops/,async_io.o async_io_errors.o async_io_faults.o async_io_ring.o async_io_wakeups.o): tests/ops/async_io.h tests/ops/checks.h
CCL_TEST_OBJ := $(patsubst %,$(BUILD)/obj/tests/ops/ccl_comm_%.o,jobs memory nodes ranks results)
$(CCL_TEST_OBJ) $(patsubst %,$(BUILD)/obj/tests/ops/%.o,ccl_comm ccl_comm_hosts hosts relay): $(wildcard tests/ops/ccl_comm_*.h) tests/ops/hosts.h tests/ops/relay.h tests/ops/checks.h
$(BUILD)/obj/tests/ops/ccl_comm_memory.o: TEST_CFLAGS += -fno-builtin
$(BUILD)/tests/ops/ccl_comm: $(CCL_TEST_OBJ)
$(BUILD)/tests/ops/ccl_comm_hosts: $(CCL_TEST_OBJ) $(BUILD)/obj/tests/ops/hosts.o $(BUILD)/obj/tests/ops/relay.o
$(BUILD)/obj/tests/ops/shm_comm.o: $(wildcard tests/ops/shm_comm*.h)
# Some tests replace functions of libc by ones that fail, also for the ops: -rdynamic.
$(OPS_TESTS): $(BUILD)/tests/ops/%: $(BUILD)/obj/tests/ops/%.o
	@mkdir -p $(@D)
	$(CC) -rdynamic -o $@ $^ $($*_LIBS) -lm -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

$(BUILD)/tests/ops/%_cxx: tests/ops/%.c $(OP_HEADERS) $(HEADERS) Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(CXX) -std=c++11 -Wall -Wextra $(WERROR) -I$(BUILD)/include -x c++ $< -o $@ -ldl $(SANFLAGS) $(LDFLAGS)

# Ops whose AVX-512 is emulated: on a CPU that has it, a sample. The emulation takes long to compile
# and is not ours, so no sanitizer runs it.
EMULATED := $(if $(shell grep -m 1 -w avx512f /proc/cpuinfo 2>/dev/null),$(call sample,4,$(OPTIMIZERS)),$(OPTIMIZERS))
OPS_EMULATED := $(if $(SAN)$(filter-out x86_64,$(shell uname -m)),,$(EMULATED:%=$(BUILD)/tests/ops/emulated/%.so))
# Only the files that the emulation changes are compiled again; the others are those of the op.
op_sources = $(sort $(wildcard ops/common/*.c ops/$(1)/*.c))
EMULATED_OBJ := $(BUILD)/tests/ops/emulated/obj
EMULATED_SOURCES := ops/common/isa.c ops/%_avx512.c
$(EMULATED_OBJ)/%.o: ops/%.c $(wildcard ops/*.h ops/*/*.h) tests/ops/avx512_emulated.h Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(OP_CFLAGS)) -O1 -Wno-psabi -Wno-undef -I$(<D) -Itests '-DOPS_VECTOR_EMULATED="ops/avx512_emulated.h"' -c -o $@ $<
define emulated_rule
$(BUILD)/tests/ops/emulated/$(1).so: $(patsubst ops/%.c,$(EMULATED_OBJ)/%.o,$(filter $(EMULATED_SOURCES),$(call op_sources,$(1)))) \
    $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(EMULATED_SOURCES),$(call op_sources,$(1))))
	$$(CC) -shared -Wl,--gc-sections -o $$@ $$^ $$(OPENMP) -lm -lpthread
endef
$(foreach op,$(OPTIMIZERS),$(eval $(call emulated_rule,$(op))))

# The ops and their tests for AArch64: a sample, because the emulated CPU is slow.
ARM_CC ?= aarch64-linux-gnu-gcc
ARM := $(BUILD)/tests/ops/aarch64
OPS_ARM := $(if $(SAN),,$(foreach op,$(call sample,2,$(OPTIMIZERS)),$(ARM)/$(op).so $(ARM)/$(op)))
ARM_CFLAGS = -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) -O2
$(ARM)/obj/%.o: ops/%.c $(wildcard ops/*.h ops/*/*.h) Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(ARM_CC) $(ARM_CFLAGS) -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -Iops -I$(<D) -c -o $@ $<
define arm_rule
$(ARM)/$(1).so: $(patsubst ops/%.c,$(ARM)/obj/%.o,$(call op_sources,$(1)))
	$$(ARM_CC) -shared -o $$@ $$^ -fopenmp -lm -lpthread
endef
$(foreach op,$(OPTIMIZERS),$(eval $(call arm_rule,$(op))))
$(OPTIMIZERS:%=$(ARM)/%): $(ARM)/%: $(wildcard tests/ops/*.[ch]) $(OP_HEADERS) $(HEADERS) Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(ARM_CC) $(ARM_CFLAGS) -I$(BUILD)/include -Itests -o $@ tests/ops/$*.c tests/ops/optimizer.c tests/ops/gradients.c -lm -ldl

# fused_adam for CUDA without a device: its calls of the driver, and a driver that runs the kernel on
# the CPU. Both are built without nvcc too; then the kernel's image is any file.
CUDA_TESTS := $(BUILD)/tests/ops/cuda
CUDA_TEST_FILES := $(addprefix $(CUDA_TESTS)/,fused_adam.so libcuda.so.1 fused_adam)
$(CUDA_TESTS)/fused_adam.so: $(wildcard ops/fused_adam/cuda/*.[ch]) $(wildcard ops/*.h ops/*/*.h) $(OP_COMMON)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(OP_CFLAGS)) -DOPS_CUDA_IMAGE='"ops/fused_adam/cuda/kernel.cu"' -shared -Wl,--gc-sections \
	    -o $@ $(filter %.c %.o,$^) -lm -lpthread -ldl
$(CUDA_TESTS)/libcuda.so.1: tests/ops/cuda/driver.c $(wildcard ops/*.h ops/*/*.h ops/*/*/*.h)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(OP_CFLAGS)) -Itests -shared -Wl,-soname,libcuda.so.1 -o $@ $< -lm
$(CUDA_TESTS)/fused_adam: $(BUILD)/obj/tests/ops/cuda/fused_adam.o
	@mkdir -p $(@D)
	$(CC) -o $@ $^ -lm -ldl $(SANFLAGS) $(LDFLAGS)
$(BUILD)/obj/tests/ops/cuda/fused_adam.o: $(OP_HEADERS) $(HEADERS)

# The declarations of MPI that ccl_comm has of its own, against mpi.h of each engine.
MPI_CHECKED := $(foreach engine,openmpi mpich,$(if $(shell command -v mpicc.$(engine)),$(BUILD)/tests/ops/ccl_comm_abi.$(engine)))
$(MPI_CHECKED): $(BUILD)/tests/ops/ccl_comm_abi.%: tests/ops/ccl_comm_abi.h $(wildcard ops/ccl_comm/engine*.h) Makefile
	@mkdir -p $(@D)
	mpicc.$* -std=c11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -Iops -I. -x c -fsyntax-only $<
	@touch $@

test-ops-built: $(MPI_CHECKED) $(OP_FILES) $(CUDA_OP_FILES) $(OPS_TESTS) $(OPS_TESTS_CXX) $(OPS_EMULATED) $(OPS_ARM) $(CUDA_TEST_FILES)
test-ops: test-ops-built
	@$(MEASURED_TEST) tests/ops/test_ops.sh $(BUILD) "$(OPTIMIZERS)" "$(filter-out $(OPTIMIZERS),$(OPS))" "$(CUDA_ARCHS)" \
	    "$(notdir $(OPS_EMULATED:.so=))" "$(notdir $(filter-out %.so,$(OPS_ARM)))"

# What a mutation of this test is built with.
.PHONY: mutant-ops
mutant-ops: test-ops-built
