# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The directory sdaa-first contains the runtime's first generation; the plugin finds TCPX by its
# option tcpx_library.

$(eval $(call sim_library,sdaa,libsdaart.so,tests/sim/sdaa/runtime.c tests/sim/runtime/runtime.c))
$(eval $(call sim_library,sdaa,sdaa-first/libsdaart.so,tests/sim/sdaa/first.c))
$(eval $(call sim_library,sdaa,libtcml.so,tests/sim/sdaa/tcml.c))
$(eval $(call sim_library,sdaa,libtcpx.so,tests/sim/sdaa/tcpx.c))
