/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared object that includes the header. */
#include "shared.h"

static struct xpt_region region = XPT_REGION_INIT("shared");

void shared_start(struct xpt_region *any)
{
	xpt_region_start(any);
}

void shared_stop(struct xpt_region *any)
{
	xpt_region_stop(any);
}

struct xpt_region *shared_region(void)
{
	return &region;
}
