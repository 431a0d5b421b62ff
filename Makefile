# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The whole build: settings, sources, rules, targets. `make help` lists the targets.

# ---- settings -----------------------------------------------------------------------------------

BUILD ?= build
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
LIBEXECDIR ?= $(PREFIX)/libexec
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
SYSCONFDIR ?= /etc
# Where vendors put plugins, whatever our own prefix is.
PLUGINDIR ?= /usr/lib/ds-accel
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
CFLAGS ?= -O2 -g
LDFLAGS ?=
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3
# Sanitizers, as in SAN=address,undefined, and WERROR=-Werror for CI.
SAN ?=
WERROR ?=
# NO_DEPS=1: only list the packages that are missing.
NO_DEPS ?=

VERSION := $(shell sed -n 's/^\#define DS_ACCEL_VERSION "\(.*\)"/\1/p' core/ds_accel.h)
ABI := $(shell sed -n 's/^\#define DS_ACCEL_ABI_MAJOR \([0-9]*\)/\1/p' plugin-api.h).$(shell sed -n 's/^\#define DS_ACCEL_ABI_MINOR \([0-9]*\)/\1/p' plugin-api.h)
SOVERSION := 0

WARNINGS := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith \
    -Wwrite-strings -Wundef $(WERROR)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) $(SANFLAGS) -MMD -MP
# clang's sanitizer runtimes are in the program, so -z defs would refuse every shared object.
DEFS := $(if $(SAN),,-Wl,-z,defs)
DEPENDS_CFLAGS = $(shell $(PKG_CONFIG) --cflags jansson numa)
DEPENDS_LIBS = -lltdl $(shell $(PKG_CONFIG) --libs jansson numa)

# Who may know whom: each folder compiles against a staged folder with the headers it may use.
STAGE := $(BUILD)/stage
STAGE_PLUGIN := $(STAGE)/plugin
STAGE_PROGRAM := $(STAGE)/program
PATHS := -DDS_ACCEL_DATADIR='"$(DATADIR)"' -DDS_ACCEL_SYSCONFDIR='"$(SYSCONFDIR)"' \
    -DDS_ACCEL_PLUGINDIR='"$(PLUGINDIR)"'
CORE_CFLAGS = $(BASE_CFLAGS) $(PATHS) -I$(STAGE_PROGRAM) -Icore $(DEPENDS_CFLAGS) $(CFLAGS)
PLUGIN_CFLAGS = $(BASE_CFLAGS) -I$(STAGE_PLUGIN) -Iplugins/common $(CFLAGS)
PLUGIN_LDFLAGS = -shared $(DEFS) -Wl,-z,now,-z,nodelete,-z,relro $(SANFLAGS) $(LDFLAGS)
TOOL_CFLAGS = $(BASE_CFLAGS) -fPIE -I$(STAGE_PROGRAM) -Itools $(CFLAGS)
PROGRAM_LDFLAGS = -L$(BUILD)/lib -lds_accel -Wl,-rpath,'$$ORIGIN/../lib' $(SANFLAGS) $(LDFLAGS)
TEST_CFLAGS = $(BASE_CFLAGS) -I$(STAGE_PROGRAM) -Itests $(shell $(PKG_CONFIG) --cflags criterion) \
    -DTEST_BUILD='"$(abspath $(BUILD))"' -DTEST_SOURCE='"$(CURDIR)"' -DTEST_CC='"$(CC)"' $(CFLAGS)

# ---- sources ------------------------------------------------------------------------------------

PLUGINS := cpu mock
cpu_LIBS := -lnuma

CORE_SOURCES := $(sort $(wildcard core/*.c))
TOOL_SOURCES := $(sort $(wildcard tools/*.c))
UNIT_SOURCES := $(sort $(wildcard tests/core/*.c tests/plugins/*.c))
CONF_FILES := $(sort $(wildcard conf/*.json))
SCHEMA_FILES := $(sort $(wildcard conf/schema/*.json))

CORE_OBJECTS := $(CORE_SOURCES:%.c=$(BUILD)/obj/%.o)
TOOL_OBJECTS := $(TOOL_SOURCES:%.c=$(BUILD)/obj/%.o)
UNIT_OBJECTS := $(UNIT_SOURCES:%.c=$(BUILD)/obj/%.o)
PLUGIN_FILES := $(PLUGINS:%=$(BUILD)/lib/ds-accel/ds_accel_%.so)
LIBRARY := $(BUILD)/lib/libds_accel.so
LIBRARY_FILE := $(LIBRARY).$(VERSION)
PROGRAM := $(BUILD)/bin/ds-accel
HEADERS := $(BUILD)/include/ds-accel/plugin-api.h $(BUILD)/include/ds-accel/ds_accel.h
SHARE := $(CONF_FILES:conf/%=$(BUILD)/share/ds-accel/%) \
    $(SCHEMA_FILES:conf/%=$(BUILD)/share/ds-accel/%)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

# ---- rules --------------------------------------------------------------------------------------

$(STAGE_PLUGIN)/plugin-api.h $(STAGE_PROGRAM)/plugin-api.h $(BUILD)/include/ds-accel/plugin-api.h: plugin-api.h
	@mkdir -p $(@D)
	cp $< $@

$(STAGE_PROGRAM)/ds_accel.h $(BUILD)/include/ds-accel/ds_accel.h: core/ds_accel.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/share/ds-accel/%: conf/%
	@mkdir -p $(@D)
	cp $< $@

STAGED := $(STAGE_PLUGIN)/plugin-api.h $(STAGE_PROGRAM)/plugin-api.h $(STAGE_PROGRAM)/ds_accel.h

$(BUILD)/obj/core/%.o: core/%.c Makefile | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(CORE_CFLAGS) -c -o $@ $<

$(BUILD)/obj/tools/%.o: tools/%.c Makefile | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(TOOL_CFLAGS) -c -o $@ $<

$(BUILD)/obj/plugins/%.o: plugins/%.c Makefile | $(STAGED)
	@mkdir -p $(@D)
	$(CC) $(PLUGIN_CFLAGS) -c -o $@ $<

$(LIBRARY_FILE): $(CORE_OBJECTS) core/ds_accel.map
	@mkdir -p $(@D)
	$(CC) -shared $(DEFS) -Wl,-z,now,-z,relro -Wl,-soname,libds_accel.so.$(SOVERSION) \
	    -Wl,--version-script=core/ds_accel.map $(SANFLAGS) $(LDFLAGS) -o $@ $(CORE_OBJECTS) \
	    -Wl,--as-needed $(DEPENDS_LIBS) -lpthread -ldl

$(LIBRARY): $(LIBRARY_FILE)
	ln -sf $(notdir $(LIBRARY_FILE)) $(LIBRARY).$(SOVERSION)
	ln -sf libds_accel.so.$(SOVERSION) $@

$(PROGRAM): $(TOOL_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) -pie -o $@ $(TOOL_OBJECTS) $(PROGRAM_LDFLAGS) -Wl,-z,now,-z,relro

define plugin_rule
$(BUILD)/lib/ds-accel/ds_accel_$(1).so: $$(patsubst %.c,$$(BUILD)/obj/%.o,$$(sort $$(wildcard plugins/$(1)/*.c)))
	@mkdir -p $$(@D)
	$$(CC) $$(PLUGIN_LDFLAGS) -o $$@ $$^ $$($(1)_LIBS) -lpthread -ldl
endef
$(foreach plugin,$(PLUGINS),$(eval $(call plugin_rule,$(plugin))))

-include $(CORE_OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d) $(UNIT_OBJECTS:.o=.d)
-include $(wildcard $(BUILD)/obj/plugins/*/*.d)

# ---- targets ------------------------------------------------------------------------------------

.PHONY: all build run check unit test-shell asan tsan valgrind lint format bench install uninstall \
    clean help deps deps-check abi-check

all: deps  ## build everything (the build folder is a usable prefix)
	@$(MAKE) --no-print-directory build

build: $(LIBRARY) $(PROGRAM) $(PLUGIN_FILES) $(HEADERS) $(SHARE)

deps:
	@NO_DEPS=$(NO_DEPS) tools/deps.sh build

deps-check:
	@NO_DEPS=$(NO_DEPS) tools/deps.sh build check

run: all  ## build, then say which accelerator this machine has
	$(PROGRAM) detect -v
	$(PROGRAM) info

clean:  ## remove the build folders
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' Makefile
