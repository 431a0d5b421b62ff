# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Huawei's runtime, device management library, and library of profiler ranges.

$(eval $(call sim_library,npu,libascendcl.so,tests/sim/npu/acl.c tests/sim/npu/acl_memory.c tests/sim/npu/acl_work.c tests/sim/npu/acl_share.c))
$(eval $(call sim_library,npu,libdcmi.so,tests/sim/npu/dcmi.c))
$(eval $(call sim_library,npu,libms_tools_ext.so,tests/sim/npu/mstx.c))
