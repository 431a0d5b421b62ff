# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The parts for tests/tools/test_abi.sh: hosts, plugins and programs of three ages. The older ones
# are built from the commits listed in tests/abi/VERSION/commit, the future ones from headers that
# tests/abi/future.sh writes. Included by the top Makefile. In $(ABI_DIR):
#
#   frozen-VERSION/  today's plugins, compiled with the frozen header alone
#   VERSION/         the tree of that commit; its host, plugins and `calls` in build/
#   future/          today's tree with future headers; likewise
#   calls            tests/abi/calls.c of today

ABI_SOURCE := tests/abi
ABI_DIR := $(BUILD)/tests/abi
ABI_VERSIONS := $(patsubst $(ABI_SOURCE)/%/commit,%,$(wildcard $(ABI_SOURCE)/*/commit))
# The versions whose header suffices for the current plugins.
ABI_COMPILED := $(ABI_VERSIONS)
# These two plugins use the same parts of the header as the vendors' plugins; cpu uses their frame.
ABI_PLUGINS := cpu mock
ABI_FUTURE := $(ABI_DIR)/future
ABI_FROZEN := $(foreach v,$(ABI_COMPILED),$(ABI_PLUGINS:%=$(ABI_DIR)/frozen-$(v)/ds_accel_%.so))
ABI_HOSTS := $(ABI_VERSIONS:%=$(ABI_DIR)/%/built)
ABI_FILES := $(ABI_FROZEN) $(ABI_HOSTS) $(ABI_DIR)/calls abi-future

# Build in a separate directory. Only settings that must match, such as sanitizers, are passed on.
# The ABI does not depend on optimization; without it, compiling takes half the time. Neither calls
# nor plugins use ops.
ABI_MAKE = MAKEFLAGS= MAKELEVEL= $(MAKE) -s -j2 BUILD=build CC='$(CC)' CFLAGS='$(CFLAGS:-O2=-O0)' SAN='$(SAN)' \
    LDFLAGS='$(LDFLAGS)' VENDOR_PLUGINS= OPS= CUDA_OPS= build
ABI_CALLS_CFLAGS = $(filter-out -MMD -MP,$(BASE_CFLAGS)) -fPIE $(CFLAGS)
# abi_calls BUILD: `calls` for the host in that directory. It finds its library through
# LD_LIBRARY_PATH.
abi_calls = $(CC) -pie $(ABI_CALLS_CFLAGS) -I$(1)/stage/program $(ABI_SOURCE)/calls.c -L$(1)/lib \
    -lds_accel $(SANFLAGS) $(LDFLAGS)

$(ABI_DIR)/frozen-%/plugin-api.h: $(ABI_SOURCE)/%/plugin-api.h
	@mkdir -p $(@D)
	cp $< $@

# abi_frozen_rule VERSION PLUGIN
define abi_frozen_rule
$(ABI_DIR)/frozen-$(1)/ds_accel_$(2).so: $(ABI_DIR)/frozen-$(1)/plugin-api.h \
    $(wildcard plugins/$(2)/*.[ch] plugins/common/*.h) $(patsubst $(BUILD)/obj/%.o,%.c,$($(2)_FRAME)) $(ABI_SOURCE)/abi.mk $(SETTINGS)
	$$(CC) $$(filter-out -MMD -MP,$$(BASE_CFLAGS)) -I$$(@D) -Iplugins/common $$(CFLAGS) \
	    $$(filter %.c,$$^) $$(PLUGIN_LDFLAGS) $$($(2)_LIBS) -lpthread -ldl -o $$@
endef
$(foreach v,$(ABI_COMPILED),$(foreach p,$(ABI_PLUGINS),$(eval $(call abi_frozen_rule,$(v),$(p)))))

# An older tree is built once and kept. Without git's history there is no older host; the test
# reports that.
$(ABI_DIR)/%/built: $(ABI_SOURCE)/%/commit $(ABI_SOURCE)/calls.c $(ABI_SOURCE)/abi.mk $(SETTINGS)
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@set -e; commit=$$(cat $<); \
	if git cat-file -e "$$commit^{commit}" 2>/dev/null; then \
	    echo "abi: building the host of ABI $*, commit $$commit"; \
	    git archive -o $(@D).tar "$$commit"; tar -x -f $(@D).tar -C $(@D); rm $(@D).tar; \
	    (cd $(@D) && $(ABI_MAKE)); $(call abi_calls,$(@D)/build) -o $(@D)/build/calls; touch $@; fi

# The current tree with other headers and another list of slots. All other files are symbolic links,
# so that later changes take effect.
.PHONY: abi-future
abi-future:
	@mkdir -p $(ABI_FUTURE)/core
	@find $(ABI_FUTURE) -maxdepth 2 -type l -delete
	@ln -s $(addprefix $(CURDIR)/,$(filter-out core plugin-api.h build%,$(wildcard *))) \
	    $(ABI_FUTURE)/
	@ln -s $(addprefix $(CURDIR)/,$(filter-out core/ds_accel.h core/slots.def,$(wildcard core/*))) \
	    $(ABI_FUTURE)/core/
	@for file in plugin-api.h core/ds_accel.h core/slots.def; do \
	    $(ABI_SOURCE)/future.sh $$file >$(ABI_FUTURE)/new.h || exit; \
	    cmp -s $(ABI_FUTURE)/new.h $(ABI_FUTURE)/$$file || \
	        cp $(ABI_FUTURE)/new.h $(ABI_FUTURE)/$$file; done
	@cd $(ABI_FUTURE) && $(ABI_MAKE)
	@$(call abi_calls,$(ABI_FUTURE)/build) -o $(ABI_FUTURE)/build/calls

$(ABI_DIR)/calls: $(ABI_SOURCE)/calls.c $(ABI_SOURCE)/abi.mk $(LIBRARY) $(STAGED) $(SETTINGS)
	@mkdir -p $(@D)
	$(call abi_calls,$(BUILD)) -o $@
