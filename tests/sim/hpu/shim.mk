# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Synapse, in its two generations, and HLML. The older generation has its own soname so that both
# can be in one directory: the plugin's option "library" selects one.

$(eval $(call sim_library,hpu,libSynapse.so,tests/sim/hpu/synapse.c))
$(eval $(call sim_library,hpu,libSynapse-typed.so,tests/sim/hpu/synapse_typed.c))
$(eval $(call sim_library,hpu,libhlml.so,tests/sim/hpu/hlml.c))
