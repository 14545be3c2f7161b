/* SPDX-License-Identifier: BSD-2-Clause */
/* A second source of the executable that includes the header. */
#include "shared.h"

void other_start(struct xpt_region *region)
{
	xpt_region_start(region);
}

void other_stop(struct xpt_region *region)
{
	xpt_region_stop(region);
}
