/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer leak: live objects, and where they were created. */
#include "layer.h"

/* ---- leaks ---------------------------------------------------------------------------------- */

Test(core_layer, leak_tells_what_is_live_and_where_it_was_made)
{
    char *text;

    start_layers("leak");
    for (int i = 0; i < 3; i++) {
        allocate(1000);
        make_event();
    }
    text = report("leak");
    EXPECT_HAS(text, "device 0: 3 x memory, 3000 bytes, made at ");
    EXPECT_HAS(text, "device 0: 3 x event, made at ");
    ds_accel_free_text(text);
    test_log[0] = '\0';
    ds_accel_device_close(device);
    EXPECT_HAS(test_log, "leak: mock is live at device_close: device 0: 3 x memory, 3000 bytes");
    EXPECT_HAS(test_log, "3 x event");
    test_log[0] = '\0';
    ds_accel_destroy(context);
    EXPECT_HAS_NOT(test_log, "leak");
}
