/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * XGMI, as both sensor libraries report it. A device's fact "xgmi" is its position in the ring of
 * the vendor's "xgmi_ring" (2) devices, where each has "xgmi_links" (1) links to both neighbours;
 * without that fact a device has no links. Each link has the vendor's bandwidth "xgmi_mb_per_s" and
 * weight "xgmi_weight" (15).
 */
#ifndef DS_ACCEL_TESTS_SIM_ROCM_LINKS_H
#define DS_ACCEL_TESTS_SIM_ROCM_LINKS_H

#include "engine.h"

#define SIM_PCIE_WEIGHT 40u /* weight of a link to or from a processor */

/* Returns the bandwidth of one link. */
static inline uint64_t sim_xgmi_mb_per_s(void)
{
    return (uint64_t)sim_vendor_number("xgmi_mb_per_s", 50000);
}

/* Returns the number of links on the path between two devices; 0: there is no XGMI path. */
static inline uint64_t sim_xgmi_distance(const struct sim_device *from, const struct sim_device *to)
{
    int64_t size = sim_vendor_number("xgmi_ring", 2);
    int64_t here = sim_number(from, "xgmi", -1);
    int64_t there = sim_number(to, "xgmi", -1);
    int64_t distance = here > there ? here - there : there - here;

    if (here < 0 || there < 0) {
        return 0;
    }
    return (uint64_t)(distance > size - distance ? size - distance : distance);
}

static inline uint64_t sim_link_weight(const struct sim_device *from, const struct sim_device *to)
{
    uint64_t distance = sim_xgmi_distance(from, to);

    return distance > 0 ? distance * (uint64_t)sim_vendor_number("xgmi_weight", 15)
                        : SIM_PCIE_WEIGHT;
}

#endif
