# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Compares the plugins' declarations of vendors' APIs with the vendors' headers (README.md).

# Directories with the headers of each vendor, separated by spaces. A table whose header is in none
# of its directories is skipped.
CUDA_HEADERS ?= $(wildcard /usr/local/cuda/include)
ROCM_HEADERS ?= $(wildcard /opt/rocm/include) /usr/include
LEVEL_ZERO_HEADERS ?= /usr/include
OPENCL_HEADERS ?= /usr/include
DLPACK_HEADERS ?= /usr/include
ITT_HEADERS ?=
CANN_HEADERS ?= $(wildcard /usr/local/Ascend/ascend-toolkit/latest/include /usr/local/dcmi)
GAUDI_HEADERS ?= $(wildcard /usr/include/habanalabs)
NEUWARE_HEADERS ?= $(wildcard /usr/local/neuware/include)
SDAA_HEADERS ?= $(wildcard /opt/tecoai/include)
SUPA_HEADERS ?=

HEADER_DIRECTORIES := CUDA_HEADERS ROCM_HEADERS LEVEL_ZERO_HEADERS OPENCL_HEADERS DLPACK_HEADERS ITT_HEADERS CANN_HEADERS GAUDI_HEADERS \
    NEUWARE_HEADERS SDAA_HEADERS SUPA_HEADERS
HEADER_TABLES := $(sort $(wildcard tests/headers/*.table))
# Debian has packages of these headers, so they must be present.
HEADERS_NEEDED := hip rocm_smi level_zero opencl dlpack

.PHONY: headers
headers:  ## compare what plugins declare with vendors' headers (tests/headers/README.md)
	@tools/deps.sh headers
	$(PYTHON) tests/headers/compare.py --cover $(HEADER_TABLES)
	$(PYTHON) tests/headers/compare.py $(HEADERS_NEEDED:%=--need %) \
	    $(foreach name,$(HEADER_DIRECTORIES),--in '$(name)=$(strip $($(name)))') $(HEADER_TABLES)
