/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/study.h"

#include <errno.h>

int study_create(const struct study_options *options, struct study **study)
{
	(void)options;
	(void)study;
	return -ENOSYS;
}

void study_free(struct study *study)
{
	(void)study;
}
