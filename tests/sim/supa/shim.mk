# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The directory supa-2 contains SDK 2.x under the same soname; the plugin finds BRTX by its option
# brtx_library.

$(eval $(call sim_library,supa,libsupa-runtime.so,tests/sim/supa/first.c tests/sim/runtime/runtime.c))
$(eval $(call sim_library,supa,supa-2/libsupa-runtime.so,tests/sim/supa/second.c tests/sim/runtime/runtime.c))
$(eval $(call sim_library,supa,supa-unnamed/libsupa-runtime.so,tests/sim/supa/unnamed.c tests/sim/runtime/runtime.c))
$(eval $(call sim_library,supa,libbiren-ml.so.1,tests/sim/supa/brml.c))
$(eval $(call sim_library,supa,libbrtx.so,tests/sim/supa/brtx.c))
