# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The whole build: settings, sources, rules, targets. `make help` lists the targets.

# ---- settings ------------------------------------------------------------------------------------

# RELEASE=1: build without assertions, as for packages, in a separate build directory.
RELEASE ?=
BUILD ?= $(if $(filter 1,$(RELEASE)),build-release,build)
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
LIBEXECDIR ?= $(PREFIX)/libexec
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
DOCDIR ?= $(DATADIR)/doc/ds-accel
SYSCONFDIR ?= /etc
CACHEDIR ?= /var/cache
# Directory for plugins of vendors, independent of PREFIX.
PLUGINDIR ?= /usr/lib/ds-accel
DESTDIR ?=
# These paths are compiled into the library and the command, and are written to the .pc files, so
# they must not depend on the working directory.
DIRECTORIES := BINDIR LIBDIR LIBEXECDIR INCLUDEDIR DATADIR MANDIR DOCDIR SYSCONFDIR CACHEDIR PLUGINDIR
RELATIVE := $(strip $(foreach name,$(DIRECTORIES),$(if $(filter /%,$(firstword $($(name)))),,$(name)=$($(name)))))
$(if $(RELATIVE),$(error not an absolute path: $(RELATIVE)))
$(if $(word 2,$(BUILD)),$(error make takes no space in a path: BUILD=$(BUILD)))
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
CFLAGS ?= -O2 -g
LDFLAGS ?=
PKG_CONFIG ?= pkg-config
# HOSTCC compiles the programs that the build itself runs.
HOSTCC ?= $(CC)
PYTHON ?= /usr/bin/python3
# SAN lists sanitizers, as in SAN=address,undefined; WERROR=-Werror is meant for CI.
SAN ?=
WERROR ?=
# NO_DEPS=1: list the missing packages without installing them.
NO_DEPS ?=

VERSION := $(shell sed -n 's/^\#define DS_ACCEL_VERSION "\(.*\)"/\1/p' core/ds_accel.h)
ABI := $(shell sed -n 's/^\#define DS_ACCEL_ABI_MAJOR \([0-9]*\)/\1/p' plugin-api.h).$(shell sed -n 's/^\#define DS_ACCEL_ABI_MINOR \([0-9]*\)/\1/p' plugin-api.h)
SOVERSION := 0

WARNINGS := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith \
    -Wwrite-strings -Wundef $(WERROR)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
ifneq ($(SAN),)
# libsanitizer takes the thread-local block of a library that was loaded later for one of glibc 2.19
# if the last digits of its address are 010, and crashes when it checks for leaks or races.
export ASAN_OPTIONS := $(ASAN_OPTIONS):intercept_tls_get_addr=0
export TSAN_OPTIONS := $(TSAN_OPTIONS):intercept_tls_get_addr=0
endif
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) $(SANFLAGS) -MMD -MP
# clang links its sanitizer runtimes into the program, so -z defs would reject every shared object.
DEFS := $(if $(SAN),,-Wl,-z,defs)
DEPENDS_CFLAGS = $(shell $(PKG_CONFIG) --cflags jansson libmd)
# libmd, for SHA-256, is linked as an archive if there is one, because each additional shared
# library delays every start. Libraries in separate directories are linked with -l, because an
# archive in the directory of the compiler may have another version.
DEPENDS_DIRS = $(shell $(PKG_CONFIG) --libs-only-L jansson libmd)
archive = $(if $(if $(DEPENDS_DIRS),,$(filter /%,$(shell $(CC) -print-file-name=lib$(1).a))),-l:lib$(1).a,-l$(1))
LIBMD = $(call archive,md)
DEPENDS_LIBS = -lltdl $(shell $(PKG_CONFIG) --libs jansson) $(LIBMD)
# Our own programs start often, so they link more archives.
PROGRAM_LIBS = $(DEPENDS_DIRS) $(call archive,ltdl) $(call archive,jansson) $(LIBMD) -lpthread -ldl

# Each source directory compiles against a staged directory that has only the headers that it may
# include.
STAGE := $(BUILD)/stage
STAGE_PLUGIN := $(STAGE)/plugin
STAGE_PROGRAM := $(STAGE)/program
PATHS := -DDS_ACCEL_DATADIR='"$(DATADIR)"' -DDS_ACCEL_SYSCONFDIR='"$(SYSCONFDIR)"' \
    -DDS_ACCEL_PLUGINDIR='"$(PLUGINDIR)"' -DDS_ACCEL_CACHEDIR='"$(CACHEDIR)"' -DDS_ACCEL_LIBEXECDIR='"$(LIBEXECDIR)"' \
    -DDS_ACCEL_LIBDIR='"$(LIBDIR)"' -DDS_ACCEL_SONAME='"libds_accel.so.$(SOVERSION)"'
ASSERTIONS := $(if $(filter 1,$(RELEASE)),-DNDEBUG)
CORE_CFLAGS = $(BASE_CFLAGS) $(ASSERTIONS) -fno-semantic-interposition -I$(STAGE_PROGRAM) $(DEPENDS_CFLAGS) $(CFLAGS)
# Tests of internal functions may include headers of all rooms.
INSIDE_CFLAGS = $(filter-out -DNDEBUG,$(CORE_CFLAGS)) -Icore
PLUGIN_CFLAGS = $(BASE_CFLAGS) $(ASSERTIONS) -I$(STAGE_PLUGIN) -Iplugins/common $(CFLAGS)
PLUGIN_LDFLAGS = -shared $(DEFS) -Wl,-z,now,-z,nodelete,-z,relro $(SANFLAGS) $(LDFLAGS)
# Every code path of an op computes the same bits, so the compiler must not fuse a product and a sum.
# errno and floating-point exceptions, which no op uses, would only hinder vector instructions. A
# compiler without OpenMP makes ops that use one thread.
OPENMP := $(shell printf '\043include <omp.h>\n' | $(CC) -fopenmp -E - >/dev/null 2>&1 && echo -fopenmp)
# The thread sanitizer runs no op, so ops are built without it, and without optimization.
OP_BASE_CFLAGS = $(if $(filter thread,$(SAN)),$(filter-out $(SANFLAGS),$(BASE_CFLAGS)) -O0,$(BASE_CFLAGS) $(CFLAGS:-O2=-O3))
OP_CFLAGS = $(OP_BASE_CFLAGS) $(ASSERTIONS) -Iops -ffp-contract=off -fno-math-errno -fno-trapping-math $(OPENMP)
# bench io includes the header of an op, which includes op.h beside it.
TOOL_CFLAGS = $(BASE_CFLAGS) $(ASSERTIONS) -fPIE -I$(STAGE_PROGRAM) -I$(STAGE_PROGRAM)/ops -Itools $(CFLAGS)
# Tests run once, so compiling them with -O2 would take longer than it saves.
TEST_CFLAGS = $(BASE_CFLAGS) -I$(STAGE_PROGRAM) -Itests $(shell $(PKG_CONFIG) --cflags criterion) \
    -DTEST_BUILD='"$(abspath $(TESTBED))"' -DTEST_SOURCE='"$(CURDIR)"' -DTEST_CC='"$(CC)"' $(CFLAGS:-O2=-O1)

# ---- sources -------------------------------------------------------------------------------------

# VENDOR_PLUGINS are the plugins of vendors; mps is built on Darwin only. They and cpu use the frame
# of plugins/common, cpu without the files that it does not need (VENDOR_IF_LINKED in vendor_lib.h).
SYSTEM := $(shell uname -s)
VENDOR_PLUGINS := $(filter-out common cpu mock $(if $(filter Darwin,$(SYSTEM)),,mps),$(sort $(patsubst plugins/%/,%,$(wildcard plugins/*/))))
PLUGINS := cpu mock $(VENDOR_PLUGINS)
cpu_LIBS := -lnuma

# Each directory of ops/ but common is an op, a shared object.
OPS := $(filter-out common,$(sort $(patsubst ops/%/,%,$(wildcard ops/*/))))
# An op for the memory of the host serves every backend. fused_adam is called with memory of the
# backend, so this one is for the backend cpu only.
fused_adam_PLACE := cpu/
# The optimizers among them have a kernel for each instruction set.
OPTIMIZERS := $(filter-out async_io ccl_comm pin_memory shm_comm utils,$(OPS))
# Libraries that an op needs.
async_io_OP_LIBS := -luring

# Some ops have a kernel for CUDA besides. nvcc compiles it for all its architectures, with
# sanitizers, which do not reach it, for the newest only; later ones compile the newest one's PTX
# when they load it. Before 12.1, parameters of kernels were smaller.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\),.*/\1 \2/p' | \
    { read -r major minor && [ $$((major * 100 + minor)) -ge 1201 ] && $(NVCC) --list-gpu-arch; } | \
    sed -n 's/^compute_\([0-9]*\)$$/\1/p' | awk '$$1 >= 70' | sort -n $(if $(SAN),| tail -n 1)))
CUDA_OPS := $(if $(CUDA_ARCHS),$(patsubst ops/%/cuda/kernel.cu,%,$(wildcard ops/*/cuda/kernel.cu)))

# The rooms (subdirectories) of core/, in the order of use: each room may include its own headers
# and those of earlier rooms. ROOMS form libds_accel.so, TOOLS_ROOMS libds_accel_tools.so; our own
# programs contain all rooms.
ROOMS := base config machine host runtime layers ops
TOOLS_ROOMS := report record memtools conformance lint launch
room_sources = $(sort $(foreach room,$(1),$(wildcard core/$(room)/*.c core/$(room)/*/*.c)))
CORE_SOURCES := $(call room_sources,$(ROOMS) $(TOOLS_ROOMS))
# Files without variables are linked into both libraries, so that fewer symbols are exported from
# one library to the other.
STATELESS := $(addprefix core/,$(addsuffix .c,$(addprefix base/,clock descendants file hash json list pci set text) config/config_locate \
    $(addprefix machine/,cgroup cpus elf hardware_note library machine presence topology)))
# ds-accel-probe.c is a separate program; reasons.c runs during the build.
TOOL_SOURCES := $(sort $(filter-out tools/ds-accel-probe.c tools/reasons.c,$(wildcard tools/*.c)))
# Unit tests are tests/ROOM/test_NOUN.c (tests/opbuild is a program of its own), and the files that several of them share are tests/*.c.
UNIT_SOURCES := $(filter-out tests/opbuild/%,$(sort $(wildcard tests/*/test_*.c)))
UNIT_SHARED := $(sort $(wildcard tests/*.c))
CONF_FILES := $(sort $(wildcard conf/*.json))
SCHEMA_FILES := $(sort $(wildcard conf/schema/*.json))

CORE_OBJECTS := $(CORE_SOURCES:%.c=$(BUILD)/obj/%.o)
LIBRARY_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(call room_sources,$(ROOMS)))
TOOLS_LIBRARY_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(call room_sources,$(TOOLS_ROOMS)) $(STATELESS))
TOOL_OBJECTS := $(TOOL_SOURCES:%.c=$(BUILD)/obj/%.o)
UNIT_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(UNIT_SOURCES) $(UNIT_SHARED))
PLUGIN_FILES := $(PLUGINS:%=$(BUILD)/lib/ds-accel/ds_accel_%.so)
HOST_OP_FILES := $(OPS:%=$(BUILD)/lib/ds-accel/ops/%.so)
OP_FILES := $(foreach op,$(OPS),$(BUILD)/lib/ds-accel/ops/$($(op)_PLACE)$(op).so)
CUDA_OP_FILES := $(CUDA_OPS:%=$(BUILD)/lib/ds-accel/ops/cuda/%.so)
LIBRARY := $(BUILD)/lib/libds_accel.so
LIBRARY_FILE := $(LIBRARY).$(VERSION)
TOOLS_LIBRARY := $(BUILD)/lib/libds_accel_tools.so
TOOLS_LIBRARY_FILE := $(TOOLS_LIBRARY).$(VERSION)
LIBRARIES := $(LIBRARY) $(TOOLS_LIBRARY)
# Link flags for tests, as in ds-accel-tools.pc.
LINK_LIBRARIES := -L$(BUILD)/lib -Wl,--no-as-needed -lds_accel_tools -lds_accel
PROGRAM := $(BUILD)/bin/ds-accel
HELPER := $(BUILD)/libexec/ds-accel/ds-accel-probe
HEADERS := $(addprefix $(BUILD)/include/ds-accel/,plugin-api.h ds_accel.h ds_accel_tools.h)
OP_HEADERS := $(addprefix $(BUILD)/include/ds-accel/ops/,op.h comm.h dlpack.h $(OPS:%=%.h))
# The sources of ops are installed, too, so that an op can be built where it is used.
KERNEL_SOURCES := $(sort $(wildcard ops/*.h ops/*/*.c ops/*/*.h ops/*/cuda/*.c ops/*/cuda/*.h ops/*/cuda/*.cu))
KERNEL_DIRS := $(sort $(patsubst %/,%,$(dir $(KERNEL_SOURCES))))
KERNEL_FILES := $(KERNEL_SOURCES:%=$(BUILD)/share/ds-accel/%) $(BUILD)/share/ds-accel/plugin-api.h
SHARE := $(CONF_FILES:conf/%=$(BUILD)/share/ds-accel/%) \
    $(SCHEMA_FILES:conf/%=$(BUILD)/share/ds-accel/%) $(KERNEL_FILES)
MANUALS := $(foreach page,$(sort $(wildcard docs/*.[157])), \
    $(BUILD)/share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
    $(BUILD)/share/man/man7/ds-accel-reasons.7
COMPLETIONS := $(BUILD)/share/bash-completion/completions/ds-accel \
    $(BUILD)/share/zsh/site-functions/_ds-accel
# The kit for vendors: the rules of the ABI, and the example plugin with its Makefile.
KIT := $(addprefix $(BUILD)/share/doc/ds-accel/,plugin-abi.md example/example.c example/Makefile example/plugin.map)
BUILD_PC := $(BUILD)/lib/pkgconfig/ds-accel.pc
BUILD_TOOLS_PC := $(BUILD)/lib/pkgconfig/ds-accel-tools.pc

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

# ---- rules ---------------------------------------------------------------------------------------

$(STAGE_PLUGIN)/plugin-api.h $(STAGE_PROGRAM)/plugin-api.h $(BUILD)/include/ds-accel/plugin-api.h: plugin-api.h
	@mkdir -p $(@D)
	cp $< $@

$(STAGE_PROGRAM)/ops/op.h: ops/op.h
	@mkdir -p $(@D)
	cp $< $@

$(STAGE_PROGRAM)/ops/async_io/async_io.h: ops/async_io/async_io.h
	@mkdir -p $(@D)
	cp $< $@

$(STAGE_PROGRAM)/%.h: core/%.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/include/ds-accel/%.h: core/%.h
	@mkdir -p $(@D)
	cp $< $@

$(addprefix $(BUILD)/include/ds-accel/ops/,op.h comm.h dlpack.h): $(BUILD)/include/ds-accel/ops/%: ops/%
	@mkdir -p $(@D)
	cp $< $@

define op_header_rule
$(BUILD)/include/ds-accel/ops/$(1).h: ops/$(1)/$(1).h
	@mkdir -p $$(@D)
	cp $$< $$@
endef
$(foreach op,$(OPS),$(eval $(call op_header_rule,$(op))))

STALE_KERNEL_FILES := $(filter-out $(KERNEL_FILES),$(wildcard $(foreach suffix,c h cu,$(addprefix $(BUILD)/share/ds-accel/ops/*,.$(suffix) /*.$(suffix) /cuda/*.$(suffix)))))
$(if $(STALE_KERNEL_FILES),$(shell rm -f $(STALE_KERNEL_FILES)))

$(BUILD)/share/ds-accel/ops/%: ops/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/ds-accel/plugin-api.h: plugin-api.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/ds-accel/%: conf/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/obj/reasons: tools/reasons.c core/reasons.def
	@mkdir -p $(@D)
	$(HOSTCC) -std=c11 $(WARNINGS) -Icore -o $@ $<

# The manual page of reasons is generated from the table that is compiled into the library.
$(BUILD)/share/man/man7/ds-accel-reasons.7: $(BUILD)/obj/reasons
	@mkdir -p $(@D)
	$< >$@

$(BUILD)/share/man/man1/%: docs/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/man/man5/%: docs/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/man/man7/%: docs/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/bash-completion/completions/ds-accel: tools/completion/ds-accel.bash
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/zsh/site-functions/_ds-accel: tools/completion/_ds-accel
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/doc/ds-accel/plugin-abi.md: docs/plugin-abi.md
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/doc/ds-accel/example/%: docs/example/%
	@mkdir -p $(@D)
	cp $< $@

# The example is the first C program in docs/plugin-abi.md.
$(BUILD)/share/doc/ds-accel/example/example.c: docs/plugin-abi.md
	@mkdir -p $(@D)
	@{ echo '/* SPDX-License-Identifier: Apache-2.0'; echo ' * Copyright (c) 2026 the ds-accel authors */'; \
	    awk '/^```/ { if (on) exit; on = $$0 == "```c"; next } on' $<; } >$@

# A change of these settings rebuilds the files compiled with them. Paths have their own settings
# file, because they are compiled into prefix.c only.
SETTINGS := $(BUILD)/obj/settings
$(SETTINGS): FORCE
	@$(call write_if_changed,$(CC) $(CFLAGS) $(SAN) $(WERROR)$(ASSERTIONS:%= %))
PATH_SETTINGS := $(BUILD)/obj/paths
$(PATH_SETTINGS): FORCE
	@$(call write_if_changed,$(PATHS))
write_if_changed = mkdir -p $(@D); echo '$(subst ','\'',$(1))' | cmp -s - $@ || echo '$(subst ','\'',$(1))' >$@
FORCE:

STAGED := $(STAGE_PLUGIN)/plugin-api.h $(addprefix $(STAGE_PROGRAM)/,plugin-api.h ds_accel.h ds_accel_tools.h ops/op.h ops/async_io/async_io.h)

# Each room gets a directory with links to the rooms that it may include: an include of a later room
# does not compile.
define room_rule
SEEN := $$(SEEN) $(1)
$(STAGE)/rooms/$(1)/complete: SEEN := $$(SEEN)
$(STAGE)/rooms/$(1)/complete: Makefile
	@rm -rf $$(@D)
	@mkdir -p $$(@D)
	@ln -s $$(addprefix $(CURDIR)/core/,$$(SEEN) reasons.def slots.def) $$(@D)
	@touch $$@

$(BUILD)/obj/core/$(1)/%.o: core/$(1)/%.c Makefile $(SETTINGS) | $(STAGED) $(STAGE)/rooms/$(1)/complete
	@mkdir -p $$(@D)
	$$(CC) $$(CORE_CFLAGS) -I$(STAGE)/rooms/$(1) -c -o $$@ $$<
endef
SEEN :=
$(foreach room,$(ROOMS) $(TOOLS_ROOMS),$(eval $(call room_rule,$(room))))

$(BUILD)/obj/core/config/prefix.o: CORE_CFLAGS += $(PATHS)
$(BUILD)/obj/core/config/prefix.o: $(PATH_SETTINGS)

# The loops of philox.c are vectorized; none of these flags changes a result.
$(BUILD)/obj/core/runtime/philox.o: CORE_CFLAGS += -O3 -fno-math-errno -fno-trapping-math

$(BUILD)/obj/tools/%.o: tools/%.c Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(TOOL_CFLAGS) -c -o $@ $<

$(BUILD)/obj/plugins/%.o: plugins/%.c Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(PLUGIN_CFLAGS) -ffunction-sections -fdata-sections -c -o $@ $<

# Calls within a library are direct. The tools library has -z nodelete, because libds_accel.so calls
# it through tables of function pointers.
LIBRARY_LDFLAGS = -shared $(DEFS) -Wl,-z,now,-z,relro,-Bsymbolic-functions,--exclude-libs,libmd.a $(SANFLAGS) $(LDFLAGS)
$(LIBRARY_FILE): $(LIBRARY_OBJECTS) core/ds_accel.map
	@mkdir -p $(@D)
	$(CC) $(LIBRARY_LDFLAGS) -Wl,-soname,libds_accel.so.$(SOVERSION) -Wl,--version-script=core/ds_accel.map \
	    -o $@ $(LIBRARY_OBJECTS) -Wl,--as-needed $(DEPENDS_LIBS) -lpthread -ldl

$(TOOLS_LIBRARY_FILE): $(TOOLS_LIBRARY_OBJECTS) core/ds_accel_tools.map $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LIBRARY_LDFLAGS) -Wl,-z,nodelete -Wl,-soname,libds_accel_tools.so.$(SOVERSION) \
	    -Wl,--version-script=core/ds_accel_tools.map -o $@ $(TOOLS_LIBRARY_OBJECTS) -L$(BUILD)/lib -lds_accel \
	    -Wl,--as-needed $(DEPENDS_LIBS) -lpthread -ldl

$(LIBRARIES): %.so: %.so.$(VERSION)
	ln -sf $(notdir $<) $@.$(SOVERSION)
	ln -sf $(notdir $@.$(SOVERSION)) $@

# The command and the helper below contain the objects of the libraries and do not load the
# libraries (decision 0024).
$(PROGRAM): $(TOOL_OBJECTS) $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ $(SANFLAGS) $(LDFLAGS) -Wl,-z,now,-z,relro -Wl,--as-needed $(PROGRAM_LIBS)

# The helper uses few of its symbols, so lazy binding makes its start a tenth faster. The writable
# GOT adds no risk, because the probed plugin runs in the same process anyway.
$(HELPER): $(BUILD)/obj/tools/ds-accel-probe.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $^ $(SANFLAGS) $(LDFLAGS) -Wl,-z,lazy,-z,relro \
	    -Wl,--as-needed $(PROGRAM_LIBS)

VENDOR_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(filter-out %/cuda_shaped.c,$(wildcard plugins/common/*.c))))
$(foreach plugin,$(VENDOR_PLUGINS),$(eval $(plugin)_FRAME := $(VENDOR_OBJECTS)))
cpu_FRAME := $(filter-out %/vendor_native.o %/vendor_presence.o %/vendor_share.o %/vendor_visible.o,$(VENDOR_OBJECTS))
# Functions of these runtimes have the same arguments as those of CUDA
# (plugins/common/cuda_shaped.h).
$(foreach plugin,rocm sdaa supa,$(eval $(plugin)_FRAME += $(BUILD)/obj/plugins/common/cuda_shaped.o))

# The linker drops the functions of the frame that a plugin does not call.
define plugin_rule
$(BUILD)/lib/ds-accel/ds_accel_$(1).so: $$(patsubst %.c,$$(BUILD)/obj/%.o,$$(sort $$(wildcard plugins/$(1)/*.c))) $$($(1)_FRAME)
	@mkdir -p $$(@D)
	$$(CC) $$(PLUGIN_LDFLAGS) -Wl,--gc-sections -o $$@ $$^ $$($(1)_LIBS) -lpthread -ldl
endef
$(foreach plugin,$(PLUGINS),$(eval $(call plugin_rule,$(plugin))))

$(BUILD)/obj/ops/%.o: ops/%.c Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(CC) $(OP_CFLAGS) -I$(<D) -c -o $@ $<

# ccl_comm has the collectives of shm_comm inside, for the ranks of a node.
ccl_comm_SOURCES := $(filter-out %/op.c,$(wildcard ops/shm_comm/*.c))
OP_COMMON := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard ops/common/*.c)))
define op_rule
$(BUILD)/lib/ds-accel/ops/$($(1)_PLACE)$(1).so: $$(patsubst %.c,$$(BUILD)/obj/%.o,$$(sort $$(wildcard ops/$(1)/*.c) $$($(1)_SOURCES))) $$(OP_COMMON)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(DEFS) -Wl,-z,now,-z,nodelete,-z,relro $$(SANFLAGS) $$(LDFLAGS) -Wl,--gc-sections -o $$@ $$^ $$(OPENMP) $$($(1)_OP_LIBS) -lm -lpthread
endef
$(foreach op,$(OPS),$(eval $(call op_rule,$(op))))

# The compiled kernel is data of the shared object. KERNEL.fatbin.log has what ptxas used.
$(BUILD)/obj/ops/%.fatbin: ops/%.cu $(wildcard ops/*.h ops/*/*.h ops/*/*/*.h) plugin-api.h Makefile $(SETTINGS)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O3 -Iops -fatbin --threads 2 $(foreach arch,$(CUDA_ARCHS),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS)) -Xptxas -v -o $@ $< >$@.log 2>&1 || { cat $@.log >&2; exit 1; }
define cuda_op_rule
$(BUILD)/obj/ops/$(1)/cuda/driver.o: $(BUILD)/obj/ops/$(1)/cuda/kernel.fatbin
$(BUILD)/obj/ops/$(1)/cuda/driver.o: OP_CFLAGS += -DOPS_CUDA_IMAGE='"$(BUILD)/obj/ops/$(1)/cuda/kernel.fatbin"'
$(BUILD)/lib/ds-accel/ops/cuda/$(1).so: $$(patsubst %.c,$$(BUILD)/obj/%.o,$$(sort $$(wildcard ops/$(1)/cuda/*.c))) $$(OP_COMMON)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(DEFS) -Wl,-z,now,-z,nodelete,-z,relro $$(SANFLAGS) $$(LDFLAGS) -Wl,--gc-sections -o $$@ $$^ $$(OPENMP) -lm -lpthread -ldl
endef
$(foreach op,$(CUDA_OPS),$(eval $(call cuda_op_rule,$(op))))

-include $(CORE_OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d) $(UNIT_OBJECTS:.o=.d)
-include $(wildcard $(BUILD)/obj/plugins/*/*.d $(BUILD)/obj/ops/*/*.d $(BUILD)/obj/ops/*/*/*.d)

# ---- targets -------------------------------------------------------------------------------------

TESTS := unit test-alloc test-allocator test-threads test-threads-sim test-caller test-layer test-decision test-launch test-port test-death test-rank test-stall test-ops test-opbuild test-fuzz test-shell
.PHONY: FORCE all build bench-programs run check check-all $(TESTS) $(TESTS:%=%-built) threads-sim fuzz \
    fuzz-keep libfuzzers asan tsan valgrind lint format bench bench-ops install uninstall clean help deps \
    deps-check

all: deps  ## build everything (the build directory is a usable prefix)
	@$(MAKE) --no-print-directory build

# The note that mps is skipped is printed once per build directory.
MPS_SKIPPED := $(if $(filter mps,$(PLUGINS)),,$(BUILD)/obj/mps-skipped)
$(BUILD)/obj/mps-skipped:
	@mkdir -p $(@D)
	@echo "mps: not built: Metal is macOS's, and this is $(SYSTEM)" | tee $@

# So is the note that nvcc is missing.
CUDA_SKIPPED := $(if $(CUDA_ARCHS),,$(BUILD)/obj/cuda-ops-skipped)
$(BUILD)/obj/cuda-ops-skipped:
	@mkdir -p $(@D)
	@echo "ops for cuda: not built: nvcc 12.1 or later was not found (NVCC=FILE names one)" | tee $@

build: $(MPS_SKIPPED) $(CUDA_SKIPPED) $(LIBRARIES) $(PROGRAM) $(HELPER) $(PLUGIN_FILES) $(OP_FILES) $(CUDA_OP_FILES) $(HEADERS) $(OP_HEADERS) $(SHARE) $(MANUALS) $(COMPLETIONS) $(KIT) $(BUILD_PC) $(BUILD_TOOLS_PC)

deps:
	@NO_DEPS=$(NO_DEPS) tools/deps.sh build

deps-check:
	@NO_DEPS=$(NO_DEPS) tools/deps.sh build check

run: all  ## build, then say which accelerator this machine has
	$(PROGRAM) detect -v
	$(PROGRAM) info

# -- tests --

# Tests of the host use a prefix (the testbed) with only two plugins, cpu and mock, whatever else is
# built or installed. Tests of plugins of vendors use the build directory itself.
TESTBED := $(BUILD)/testbed
TESTBED_FILES := bin/ds-accel libexec/ds-accel/ds-accel-probe $(addprefix lib/,$(notdir $(LIBRARY_FILE) $(TOOLS_LIBRARY_FILE))) \
    lib/ds-accel/ds_accel_cpu.so lib/ds-accel/ds_accel_mock.so lib/ds-accel/ops/cpu_adam.so $(addprefix lib/pkgconfig/,ds-accel.pc ds-accel-tools.pc)
TESTBED_LINKS := obj stage tests
$(TESTBED)/complete: $(LIBRARIES) $(PROGRAM) $(HELPER) $(PLUGIN_FILES) $(OP_FILES) $(HEADERS) $(SHARE) $(MANUALS) $(COMPLETIONS) $(KIT) $(BUILD_PC) $(BUILD_TOOLS_PC) Makefile
	rm -rf $(TESTBED)
	mkdir -p $(addprefix $(TESTBED)/,bin lib/ds-accel/ops lib/pkgconfig libexec/ds-accel)
	for file in $(TESTBED_FILES); do ln $(BUILD)/$$file $(TESTBED)/$$file || exit 1; done
	for name in $(notdir $(LIBRARIES)); do ln -s $$name.$(VERSION) $(TESTBED)/lib/$$name.$(SOVERSION) && \
	    ln -s $$name.$(SOVERSION) $(TESTBED)/lib/$$name || exit 1; done
	cp -rl $(BUILD)/include $(BUILD)/share $(TESTBED)
	for name in $(TESTBED_LINKS); do ln -s ../$$name $(TESTBED)/$$name || exit 1; done
	touch $@
# Run path of the test programs: the libraries of the testbed.
TESTBED_RPATH := -Wl,-rpath,'$$ORIGIN/../testbed/lib'

UNIT := $(BUILD)/tests/unit
SIM_TESTS := $(sort $(wildcard tests/sim/test_*.sh))
# Tests that call plugins of vendors directly, without detection.
VENDOR_TESTS := $(filter-out %/test_identity.sh %/test_matrix.sh %/test_opened.sh %/test_remedies.sh %/test_replay.sh,$(SIM_TESTS))
SHELL_TESTS := $(sort $(wildcard tests/tools/test_*.sh)) $(SIM_TESTS) tests/ops/test_torch.sh

$(BUILD)/obj/tests/%.o: tests/%.c Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -c -o $@ $<

# Allocations that fail, for programs that link this file.
ALLOCATIONS := $(BUILD)/obj/tests/alloc/allocations.o

$(UNIT): $(UNIT_OBJECTS) $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) -o $@ $(UNIT_OBJECTS) $(LINK_LIBRARIES) \
	    $(TESTBED_RPATH) $(shell $(PKG_CONFIG) --libs criterion) -lpthread -ldl -lm \
	    $(SANFLAGS) $(LDFLAGS)

# A test with very many cases (allocations to fail, deliberate mistakes, machines) runs a sample of
# them in the gate, and all of them with FULL=1, as in `make soak`. SEED selects the sample. SEED is
# derived from the commit, so a failure persists until it is repaired, and the next commit tests
# other cases. FULL=0 is the same as unset.
ifeq ($(origin SEED),undefined)
SEED := $(shell printf %d 0x$$(git rev-parse HEAD 2>/dev/null | cut -c 1-7 | grep . || echo 1))
endif
override FULL := $(filter-out 0,$(FULL))
export SEED FULL
# sample N, LIST: one in N of a list, all of it with FULL=1.
sample = $(if $(FULL),$(2),$(shell printf '%s\n' $(2) | awk -v seed=$(SEED) '(NR + seed) % $(1) == 0'))

include tests/fixtures/fixtures.mk
include tests/abi/abi.mk
include tests/allocator/allocator.mk
include tests/sim/sim.mk
include tests/host/decision.mk
include tests/launch/plan.mk
include tests/launch/death.mk
include tests/launch/port.mk
include tests/launch/rank.mk
include tests/launch/stall.mk
include tests/ops/ops.mk
include tests/opbuild/opbuild.mk

# QUICK=1, meant for the time between edits: run the unit and shell tests that the changed files can
# affect, and quick checks.
override QUICK := $(filter-out 0,$(QUICK))
CHANGED_SINCE ?= HEAD
ifneq ($(QUICK),)
SHELL_TESTS := $(shell tests/tools/affected.sh shell '$(CHANGED_SINCE)')
$(if $(SHELL_TESTS),,$(error CHANGED_SINCE is no commit))
UNIT_FLAGS ?= --filter '$(shell tests/tools/affected.sh unit '$(CHANGED_SINCE)')'
endif

# TEST_JOBS is the number of processes of a test that uses several; SHELL_JOBS is the number of
# shell tests that run at the same time, which is larger because these tests often wait.
TEST_JOBS ?= 2
SHELL_JOBS ?= 4
# If make runs without -j, builds and tests use every processor.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
IN_PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))
QUICK_CHECKS := unit test-caller test-layer test-decision test-launch test-port test-death test-rank test-stall test-ops test-opbuild test-fuzz test-shell
CHECKS := $(if $(QUICK),$(QUICK_CHECKS),test-shell test-alloc unit test-allocator test-threads-sim test-threads test-caller test-layer test-decision test-launch test-port test-death test-rank test-stall test-ops test-opbuild test-fuzz)
MEASURED_TEST = tests/tools/measured.sh $@
# A test that has not ended after this time is killed, and fails.
TEST_SECONDS ?= $(if $(FULL),,1500)
export TEST_SECONDS

check: deps-check  ## build and run every test, on samples; QUICK=1: what a change needs; FULL=1: without samples
	@$(MAKE) --no-print-directory check-all

# Independent tests run in parallel. All tests run, even after a failure; what failed is repeated at
# the end.
check-all:
	@echo "-- check: $(if $(FULL),everything,samples by SEED=$(SEED))"
	@tests/tools/measured.sh build $(MAKE) --no-print-directory $(IN_PARALLEL) $(CHECKS:%=%-built)
	@FAILURES=$$(mktemp); export FAILURES; code=0; \
	    $(MAKE) --no-print-directory -k $(IN_PARALLEL) $(CHECKS) || code=$$?; \
	    cat "$$FAILURES"; rm -f "$$FAILURES"; exit $$code

unit-built: build $(TESTBED)/complete $(FIXTURES) $(UNIT)
unit: unit-built
	@$(MEASURED_TEST) $(UNIT) --jobs 2 $(UNIT_FLAGS)
	@DS_ACCEL_CPU_ASYNC=true $(MEASURED_TEST)-async $(UNIT) --jobs 2 --filter 'plugin_cpu/*'

# This test replaces the malloc() of glibc, so it does not run under sanitizers, which also replace
# it.
ALLOC := $(BUILD)/tests/alloc
$(ALLOC): $(BUILD)/obj/tests/alloc/alloc.o $(BUILD)/obj/tests/alloc/built.o $(ALLOCATIONS) $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) $(LINK_LIBRARIES) $(TESTBED_RPATH) -ldl $(LDFLAGS)
$(BUILD)/obj/tests/alloc/%.o: TEST_CFLAGS += -fno-builtin $(DEPENDS_CFLAGS)

test-alloc-built: build $(TESTBED)/complete $(FIXTURES) $(if $(SAN),,$(ALLOC))
test-alloc: test-alloc-built
	@$(if $(SAN),echo "alloc: not run: the sanitizer owns malloc()",$(MEASURED_TEST) $(ALLOC) $(TEST_JOBS) $(abspath $(TESTBED)) $(CURDIR))

THREADS := $(BUILD)/tests/threads
$(THREADS): $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/threads/*.c)) $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) $(LINK_LIBRARIES) $(TESTBED_RPATH) \
	    -lpthread $(SANFLAGS) $(LDFLAGS)

test-threads-built: build $(TESTBED)/complete $(FIXTURES) $(THREADS)
test-threads: test-threads-built
	@$(MEASURED_TEST) $(THREADS) $(abspath $(TESTBED))

# The thread tests with plugins of vendors: each plugin on its simulator, and opencl on two devices
# of PoCL; mps is left out because it needs macOS. A sanitizer checks a sample of the vendors.
THREADS_VENDORS := $(if $(SAN),$(call sample,3,$(VENDOR_PLUGINS:mps=)),$(VENDOR_PLUGINS:mps=))
ON_SIMULATOR := ASAN_OPTIONS="$$ASAN_OPTIONS:detect_leaks=0" DS_ACCEL_SUPA_NUMBERING=cuda SIM_BUILD=$(BUILD) tests/sim/ds-accel-sim
# The thread sanitizer kills a forked child that starts threads, which PoCL does when the plugin is
# probed; die_after_fork=0 prevents this.
ON_POCL := TSAN_OPTIONS="$$TSAN_OPTIONS:die_after_fork=0" OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd POCL_DEVICES="pthread pthread" \
    POCL_CACHE_DIR=$(abspath $(BUILD))/sim/pocl DS_ACCEL_OPENCL_DEVICE_TYPE=cpu DS_ACCEL_CACHE=off
test-threads-sim-built: build $(TESTBED)/complete $(SIM_FILES) $(THREADS)
test-threads-sim: test-threads-sim-built
	@$(MEASURED_TEST) $(MAKE) --no-print-directory threads-sim
threads-sim:
	@set -e; for vendor in $(filter-out opencl,$(THREADS_VENDORS)); do \
	    $(ON_SIMULATOR) $$vendor $(THREADS) $(abspath $(BUILD)) $$vendor; \
	    $(ON_SIMULATOR) $$vendor $(THREADS) $(abspath $(BUILD)) $$vendor lost; done
	@$(if $(filter opencl,$(THREADS_VENDORS)),$(ON_POCL) $(THREADS) $(abspath $(BUILD)) opencl)

CALLER := $(BUILD)/tests/caller
$(CALLER): $(BUILD)/obj/tests/caller/caller.o $(BUILD)/obj/tests/caller/state.o $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) $(LINK_LIBRARIES) $(TESTBED_RPATH) \
	    -lpthread $(SANFLAGS) $(LDFLAGS)

CALLER_JOB := $(BUILD)/tests/caller-job
$(CALLER_JOB): $(BUILD)/obj/tests/caller/job.o $(BUILD)/obj/tests/caller/state.o $(ALLOCATIONS) $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) $(LINK_LIBRARIES) $(TESTBED_RPATH) -ldl $(SANFLAGS) $(LDFLAGS)
$(BUILD)/obj/tests/caller/job.o: TEST_CFLAGS += -fno-builtin

test-caller-built: build $(TESTBED)/complete $(FIXTURES) $(CALLER) $(CALLER_JOB)
test-caller: test-caller-built
	@$(MEASURED_TEST) $(CALLER) $(abspath $(TESTBED))
	@$(MEASURED_TEST)-job $(CALLER_JOB)

# Linked with the objects of core/, because the tested functions are not exported.
BLOCKS := $(BUILD)/tests/blocks
$(BUILD)/obj/tests/layers/blocks.o: tests/layers/blocks.c Makefile $(SETTINGS) | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(INSIDE_CFLAGS) -c -o $@ $<
$(BLOCKS): $(BUILD)/obj/tests/layers/blocks.o $(CORE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(DEPENDS_LIBS) -lpthread -ldl $(SANFLAGS) $(LDFLAGS)

test-layer-built: build $(TESTBED)/complete $(BLOCKS)
test-layer: test-layer-built
	@DS_ACCEL_PROBE=in-process $(MEASURED_TEST) $(BLOCKS) $(abspath $(TESTBED))/lib/ds-accel

# The longest tests start first, so that none of them runs alone at the end.
LONG_TESTS := $(addprefix tests/,tools/test_conformance.sh sim/test_opencl.sh tools/test_faults.sh tools/test_isolation.sh \
    tools/test_cli.sh sim/test_xpu.sh sim/test_cuda.sh sim/test_rocm.sh sim/test_npu.sh sim/test_hpu.sh sim/test_fork.sh)
test-shell-built: build $(TESTBED)/complete $(FIXTURES) $(SIM_FILES) $(if $(filter %/test_abi.sh,$(SHELL_TESTS)),$(ABI_FILES))
test-shell: test-shell-built
	@SAN=$(SAN) RUN_TESTS_FAILURES=$$FAILURES FAILURES= $(MEASURED_TEST) tests/tools/run_tests.sh $(SHELL_JOBS) $(abspath $(BUILD)) $(abspath $(TESTBED)) \
	    $(filter $(SHELL_TESTS),$(LONG_TESTS)) $(filter-out $(LONG_TESTS),$(SHELL_TESTS))

# -O1 compiles in half the time of -O2, and the authors of the sanitizers recommend it. Their reports
# need only the line numbers of -g1; all of -g takes a third of the compiler's time.
SAN_CFLAGS ?= -O1 -g1

# ASan makes a process several times as expensive, so the tests of many processes run a sample.
SAN_SAMPLE = test-shell unit test-threads test-ops test-fuzz $(call sample,2,test-allocator test-threads-sim test-caller \
    test-layer test-decision test-launch test-port test-death test-rank test-stall test-opbuild)
SAN_CHECKS = $(if $(filter file,$(origin CHECKS)),$(SAN_SAMPLE),$(CHECKS))
SAN_SHELL_TESTS = tests/tools/test_cli.sh tests/tools/test_faults.sh \
    $(call sample,6,$(patsubst %,tests/tools/test_%.sh,config docs doctor ops_build ops_share record reports run run_result run_signals) $(VENDOR_TESTS))
UNIT_SUITES = $(sort $(shell grep -ho '^Test.[a-z_0-9]*' $(UNIT_SOURCES) | cut -c 6-))
empty :=
SAN_SUITES = @($(subst $(empty) $(empty),|,$(strip $(call sample,3,$(UNIT_SUITES)))))/*

asan: deps-check  ## a sample of the tests under address+undefined sanitizers; FULL=1: all
	rm -rf $(BUILD)-asan/reports
	@mkdir -p $(BUILD)-asan/reports
	@# A list of the leaks of glibc that the leak checker passes over is not the report of an error.
	ASAN_OPTIONS=log_path=$(abspath $(BUILD)-asan)/reports/asan LSAN_OPTIONS="$$LSAN_OPTIONS:print_suppressions=0" \
	    UBSAN_OPTIONS=halt_on_error=1:log_path=$(abspath $(BUILD)-asan)/reports/ubsan \
	    $(MAKE) check-all CHECKS="$(SAN_CHECKS)" BUILD=$(BUILD)-asan SAN=address,undefined CFLAGS='$(SAN_CFLAGS)' \
	    SHELL_TESTS="$(SAN_SHELL_TESTS)" UNIT_FLAGS="--filter '$(SAN_SUITES)'"
	@# A leak found when the process of a test exits does not fail the test, but its report fails this target.
	@# The compilers that the op builder runs have no sanitizer, and nothing is preloaded into them.
	@if cat $(BUILD)-asan/reports/* 2>/dev/null | grep .; then exit 1; fi

tsan: deps-check  ## many threads at once under the thread sanitizer
	$(MAKE) check-all CHECKS="test-threads test-threads-sim test-allocator" BUILD=$(BUILD)-tsan SAN=thread CFLAGS='$(SAN_CFLAGS)'

# valgrind finds reads of uninitialized memory, which ASan does not find. Each line is a command,
# preceded by "on VENDOR" if it needs a simulated machine. Commands that use the device run for a
# sample of one vendor in three.
VALGRIND_COMMANDS := detect list explain 'info mock' 'config show' 'env hpu' 'cache show' 'quarantine list' \
    'lint $(BUILD)/lib/ds-accel/ds_accel_mock.so'
VALGRIND_WORK = $(call sample,3,$(VENDOR_PLUGINS:opencl=))
VALGRIND_VENDORS = $(foreach vendor,$(VALGRIND_WORK),'on $(vendor) bench $(vendor) --only copy$(comma)event$(comma)graph --size 4K --time 0.001') \
    $(foreach vendor,$(VENDOR_PLUGINS:opencl=),'on $(vendor) info $(vendor)')
valgrind: deps-check  ## the command line under valgrind
	@tools/deps.sh valgrind
	$(MAKE) build sim
	@# A command starts plugins in a child process; valgrind writes the errors of the child to a separate file.
	@rm -rf $(BUILD)/valgrind && mkdir -p $(BUILD)/valgrind
	@printf '%s\n' $(VALGRIND_COMMANDS) $(VALGRIND_VENDORS) | BUILD=$(BUILD) PROGRAM=$(PROGRAM) \
	    tests/tools/measured.sh valgrind xargs -d '\n' -n 1 -P $(TEST_JOBS) tests/tools/valgrind.sh
	@# Errors begin with ==; lines with -- are about valgrind itself, such as unknown system calls.
	@if cat $(BUILD)/valgrind/* | grep '^=='; then exit 1; fi; echo "valgrind: no error"

include tests/fuzz/fuzz.mk
include tests/bench/bench.mk
include tests/mutations/mutations.mk
include tests/headers/headers.mk

# The formatter leaves out the frozen headers, which must not change.
C_FILES := $(sort $(shell git ls-files '*.c' '*.h' ':!tests/abi/*/plugin-api.h' 2>/dev/null))
SH_FILES := $(sort $(shell git ls-files '*.sh' '*.bash' .ci/run tests/sim/ds-accel-sim 2>/dev/null))
TIDY_FILES := $(filter core/%.c tools/%.c plugins/%.c ops/%.c,$(C_FILES))

# Build directory in which warnings of gcc are errors.
WERROR_BUILD ?= $(BUILD)-werror

# The lint targets can run alone; `make lint` runs them in parallel, the longest first.
LINTS := lint-tidy lint-clang lint-headers lint-format lint-shell lint-patches lint-manual
.PHONY: $(LINTS)

lint:  ## clang-format, clang with -Werror, clang-tidy, vendors' headers, shellcheck, man pages, mutations
	@tools/deps.sh build check lint
	@tests/tools/measured.sh lint-gcc $(MAKE) --no-print-directory build sim bench-programs BUILD=$(WERROR_BUILD) WERROR=-Werror
	@$(MAKE) --no-print-directory -k $(IN_PARALLEL) $(LINTS)

lint-clang:
	@$(MEASURED_TEST) $(MAKE) --no-print-directory build sim BUILD=$(BUILD)-clang CC=clang WERROR=-Werror CFLAGS=-O0

# A file that passed clang-tidy is checked again only after a change of the file, of a header or of
# the rules. The static analyzer takes nearly all of the time: it runs for the files that the last
# ten commits or the working tree changed, which come first, and for a sample of the others.
TIDY_CHANGED := $(filter $(TIDY_FILES),$(sort $(shell { git log -10 --format= --name-only; git diff --name-only HEAD; } 2>/dev/null)))
TIDY_OTHERS := $(filter-out $(TIDY_CHANGED),$(TIDY_FILES))
TIDY_ANALYZED := $(TIDY_CHANGED) $(call sample,6,$(TIDY_OTHERS))
TIDY_PASSED := $(patsubst %.c,$(BUILD)/tidy/%,$(TIDY_ANALYZED)) $(patsubst %.c,$(BUILD)/tidy/%.checked,$(filter-out $(TIDY_ANALYZED),$(TIDY_OTHERS)))
TIDY_FLAGS = -std=c11 -D_GNU_SOURCE -I$(WERROR_BUILD)/stage/program -Icore -Itools -Iplugins/common -Iops $(OPS:%=-Iops/%) -DOPS_CUDA_IMAGE='"/dev/null"' $(DEPENDS_CFLAGS)
TIDY_RULES := .clang-tidy $(filter core/% tools/% plugins/% ops/% plugin-api.h,$(filter %.h,$(C_FILES))) $(wildcard core/*.def)
# run_tidy OPTIONS
define run_tidy
@mkdir -p $(@D)
@clang-tidy --quiet $(1) $< -- $(TIDY_FLAGS) >$@.out 2>&1 || { cat $@.out; exit 1; }
@rm $@.out
@touch $@
endef
$(BUILD)/tidy/%: %.c $(TIDY_RULES)
	$(run_tidy)
$(BUILD)/tidy/%.checked: %.c $(TIDY_RULES)
	$(call run_tidy,--checks=-clang-analyzer-*)
tidy: $(TIDY_PASSED)
.PHONY: tidy
lint-tidy:
	@$(MEASURED_TEST) $(MAKE) --no-print-directory -k tidy

lint-headers:
	@$(MEASURED_TEST) $(MAKE) --no-print-directory headers
lint-format:
	@$(MEASURED_TEST) clang-format --dry-run -Werror $(C_FILES)
	@# clang-format does not wrap comments, so their width is checked here.
	@awk 'length > 100 { print FILENAME ":" FNR ": more than 100 columns"; bad = 1 } END { exit bad }' $(C_FILES)
lint-shell:
	@$(MEASURED_TEST) shellcheck -x $(SH_FILES)
lint-manual:
	@$(MEASURED_TEST) mandoc -T lint -W warning docs/*.[157] $(WERROR_BUILD)/share/man/man7/ds-accel-reasons.7
lint-patches:
	@for patch in tests/mutations/*/*.patch; do \
	    patch -p1 -s -f -F0 --dry-run <"$$patch" || { echo "$$patch: it no longer applies"; exit 1; }; done

format:  ## lay out the C files as lint wants them
	clang-format -i $(C_FILES)

# -- installing --

# pc_file PREFIX, BINDIR, LIBDIR, INCLUDEDIR, DOCDIR, QUOTE: write ds-accel.pc for a prefix. QUOTE
# is put around directories in flags, because their names may have spaces; it is empty with
# pcfiledir, in which spaces are escaped already.
pc_file = { echo 'prefix=$(1)'; echo 'bindir=$(2)'; echo 'libdir=$(3)'; echo 'includedir=$(4)'; echo 'docdir=$(5)'; \
    echo 'exampledir=$${docdir}/example'; echo 'plugindir=$${libdir}/ds-accel'; echo 'abi=$(ABI)'; echo; \
    echo 'Name: ds-accel'; echo 'Description: accelerators found through plugins'; \
    echo 'Version: $(VERSION)'; echo 'Libs: -L$(6)$${libdir}$(6) -lds_accel'; \
    echo 'Cflags: -I$(6)$${includedir}$(6)'; } >$@
# tools_pc_file PREFIX, LIBDIR, QUOTE: write ds-accel-tools.pc. It has --no-as-needed, because a
# program may need the hooks that the library sets when it is loaded and call none of its functions.
tools_pc_file = { echo 'prefix=$(1)'; echo 'libdir=$(2)'; echo; \
    echo 'Name: ds-accel-tools'; echo 'Description: reports, checks and replays of ds-accel'; \
    echo 'Version: $(VERSION)'; echo 'Requires: ds-accel = $(VERSION)'; \
    echo 'Libs: -L$(3)$${libdir}$(3) -Wl,--push-state,--no-as-needed -lds_accel_tools -Wl,--pop-state'; } >$@

PC := $(BUILD)/obj/ds-accel.pc
$(PC): Makefile FORCE
	@mkdir -p $(@D)
	@$(call pc_file,$(PREFIX),$(BINDIR),$(LIBDIR),$(INCLUDEDIR),$(DOCDIR),")
TOOLS_PC := $(BUILD)/obj/ds-accel-tools.pc
$(TOOLS_PC): Makefile FORCE
	@mkdir -p $(@D)
	@$(call tools_pc_file,$(PREFIX),$(LIBDIR),")

# The .pc files of the build directory have paths relative to their own position, because the build
# directory may be moved.
$(BUILD_PC): Makefile plugin-api.h core/ds_accel.h
	@mkdir -p $(@D)
	@$(call pc_file,$${pcfiledir}/../..,$${prefix}/bin,$${prefix}/lib,$${prefix}/include,$${prefix}/share/doc/ds-accel)
$(BUILD_TOOLS_PC): Makefile core/ds_accel.h
	@mkdir -p $(@D)
	@$(call tools_pc_file,$${pcfiledir}/../..,$${prefix}/lib)

# below DIRECTORY, FILES: the paths of the files in the directory, each in quotes, because names of
# directories may have spaces. Names of our files have none.
below = $(foreach file,$(2),'$(DESTDIR)$(1)/$(file)')
OWN_PLUGINS := $(notdir $(PLUGIN_FILES))
INSTALLED = $(call below,$(BINDIR),ds-accel) $(call below,$(LIBEXECDIR),ds-accel/ds-accel-probe) \
    $(call below,$(LIBDIR),$(foreach name,$(notdir $(LIBRARIES)),$(name).$(VERSION) $(name).$(SOVERSION) $(name)) \
        $(OWN_PLUGINS:%=ds-accel/%) $(OP_FILES:$(BUILD)/lib/%=%) $(CUDA_OPS:%=ds-accel/ops/cuda/%.so) pkgconfig/ds-accel.pc pkgconfig/ds-accel-tools.pc) \
    $(call below,$(INCLUDEDIR),$(patsubst $(BUILD)/include/%,%,$(HEADERS) $(OP_HEADERS))) \
    $(call below,$(DATADIR),$(patsubst $(BUILD)/share/%,%,$(SHARE) $(COMPLETIONS))) \
    $(call below,$(MANDIR),$(MANUALS:$(BUILD)/share/man/%=%)) \
    $(call below,$(DOCDIR),$(KIT:$(BUILD)/share/doc/ds-accel/%=%))
# Uninstalling removes only our own directories, and only if they are empty.
INSTALLED_DIRS = $(call below,$(DATADIR),$(shell printf '%s\n' $(KERNEL_DIRS:%=ds-accel/%) | sort -r) ds-accel/schema ds-accel) $(call below,$(LIBDIR),ds-accel/ops/cpu ds-accel/ops/cuda ds-accel/ops ds-accel) \
    $(call below,$(INCLUDEDIR),ds-accel/ops ds-accel) $(call below,$(LIBEXECDIR),ds-accel) $(call below,$(DOCDIR),example) '$(DESTDIR)$(DOCDIR)'

install: build $(PC) $(TOOLS_PC)  ## install below DESTDIR and PREFIX
	install -d '$(DESTDIR)$(BINDIR)' $(call below,$(LIBDIR),ds-accel/ops/cpu $(if $(CUDA_OPS),ds-accel/ops/cuda) pkgconfig) $(call below,$(INCLUDEDIR),ds-accel/ops) \
	    $(call below,$(DATADIR),ds-accel/schema $(KERNEL_DIRS:%=ds-accel/%) bash-completion/completions zsh/site-functions) \
	    $(call below,$(MANDIR),man1 man5 man7) $(call below,$(LIBEXECDIR),ds-accel) $(call below,$(DOCDIR),example)
	install -m 755 $(HELPER) $(call below,$(LIBEXECDIR),ds-accel/ds-accel-probe)
	install -m 755 $(PROGRAM) $(call below,$(BINDIR),ds-accel)
	install -m 755 $(LIBRARY_FILE) $(TOOLS_LIBRARY_FILE) '$(DESTDIR)$(LIBDIR)'
	$(foreach name,$(notdir $(LIBRARIES)),ln -sf $(name).$(VERSION) $(call below,$(LIBDIR),$(name).$(SOVERSION)) && \
	    ln -sf $(name).$(SOVERSION) $(call below,$(LIBDIR),$(name)) &&) true
	install -m 644 $(PLUGIN_FILES) $(call below,$(LIBDIR),ds-accel/)
	install -m 644 $(HEADERS) $(call below,$(INCLUDEDIR),ds-accel/)
	install -m 644 $(filter $(HOST_OP_FILES),$(OP_FILES)) $(call below,$(LIBDIR),ds-accel/ops/)
	install -m 644 $(filter-out $(HOST_OP_FILES),$(OP_FILES)) $(call below,$(LIBDIR),ds-accel/ops/cpu/)
	$(if $(CUDA_OPS),install -m 644 $(CUDA_OP_FILES) $(call below,$(LIBDIR),ds-accel/ops/cuda/))
	install -m 644 $(OP_HEADERS) $(call below,$(INCLUDEDIR),ds-accel/ops/)
	install -m 644 $(CONF_FILES) $(call below,$(DATADIR),ds-accel/)
	install -m 644 $(SCHEMA_FILES) $(call below,$(DATADIR),ds-accel/schema/)
	install -m 644 plugin-api.h $(call below,$(DATADIR),ds-accel/)
	@# Recipes have patterns: a source of an earlier version must not match.
	$(foreach directory,$(KERNEL_DIRS),rm -f $(call below,$(DATADIR),ds-accel/$(directory))/*.[ch] $(call below,$(DATADIR),ds-accel/$(directory))/*.cu &&) true
	$(foreach directory,$(KERNEL_DIRS),install -m 644 $(filter-out $(KERNEL_DIRS),$(wildcard $(directory)/*.c $(directory)/*.h $(directory)/*.cu)) $(call below,$(DATADIR),ds-accel/$(directory)/) &&) true
	install -m 644 $(filter %.1,$(MANUALS)) $(call below,$(MANDIR),man1/)
	install -m 644 $(filter %.5,$(MANUALS)) $(call below,$(MANDIR),man5/)
	install -m 644 $(filter %.7,$(MANUALS)) $(call below,$(MANDIR),man7/)
	install -m 644 tools/completion/ds-accel.bash $(call below,$(DATADIR),bash-completion/completions/ds-accel)
	install -m 644 tools/completion/_ds-accel $(call below,$(DATADIR),zsh/site-functions/_ds-accel)
	install -m 644 $(filter %.md,$(KIT)) '$(DESTDIR)$(DOCDIR)'
	install -m 644 $(filter-out %.md,$(KIT)) $(call below,$(DOCDIR),example/)
	install -m 644 $(PC) $(TOOLS_PC) $(call below,$(LIBDIR),pkgconfig)

uninstall:  ## remove what install put there
	rm -f $(INSTALLED)
	for dir in $(INSTALLED_DIRS); do \
	    if [ -d "$$dir" ]; then rmdir --ignore-fail-on-non-empty "$$dir"; fi; done

clean:  ## remove the build directories
	rm -rf $(BUILD) $(BUILD)-release $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang $(BUILD)-werror $(BUILD)-fuzz $(BUILD)-reach

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-16s %s\n", $$1, $$2}' $(filter %Makefile %fuzz.mk %bench.mk %mutations.mk %headers.mk,$(MAKEFILE_LIST))
