/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of an inspection from environment variables: those of xputrace, and those of the AWS Neuron runtime, of which
 * XPUTRACE_INSPECT_ and NEURON_RT_INSPECT_ are the beginnings:
 *
 *	xputrace		Neuron				value
 *	ENABLE			ENABLE				0 or 1: every inference is recorded
 *	ON_FAIL			ON_FAIL				0 or 1: those that fail are
 *	SYSTEM_PROFILE		SYSTEM_PROFILE			0 or 1: the activity, as those below
 *	DEVICE_PROFILE		DEVICE_PROFILE			0 or 1; of Neuron's also "model" and "session",
 *								which are 1: all executions are recorded anyway
 *	HOST_MEMORY		HOST_MEMORY			0 or 1
 *	CPU_UTIL		CPU_UTIL			0 or 1
 *	EVENT_FILTER_CORE	EVENT_FILTER_NC			as inspect_filter_cores()
 *	EVENT_FILTER_TYPE	EVENT_FILTER_TYPE		as inspect_filter_types()
 *	MAX_EVENTS_PER_CORE	SYS_TRACE_MAX_EVENTS_PER_NC	1 to XPT_INSPECT_EVENTS_MAX
 *	OUTPUT_DIR		OUTPUT_DIR			a path, not empty
 *	SESSION_ID						0 to INT_MAX
 *
 * What is not set leaves the options as they are: with Neuron's newer releases, DEVICE_PROFILE is 0 where it is not
 * set; here it is 1, as documented in its header. An empty value is a bad one. Of two variables of one name, the first
 * counts, as for getenv().
 */
#ifndef XPT_SESSION_INSPECT_ENVIRONMENT_H
#define XPT_SESSION_INSPECT_ENVIRONMENT_H

#include <sys/types.h>

#include "base/core/log.h"
#include "session/inspect/filter.h"

#define INSPECT_VALUE_MAX 4095 /* bytes */

struct inspect_environment {
	enum inspect_dialect dialect;
	const char *const *variables; /* "NAME=value", with NULL behind the last one */
	/*
	 * The process that they were read from; 0: they are the caller's own. A traced process is not trusted: its
	 * OUTPUT_DIR is ignored, with a warning, and its MAX_EVENTS_PER_CORE can only lower the limit of the options.
	 */
	pid_t pid;
};

/*
 * Fills in the options. -EINVAL: a value is bad: the log has the variable and what is allowed, and the options are as
 * before; -ENOMEM. Variables that begin as they should and are unknown are warned of; of Neuron's, which have no
 * counterpart here, only noted.
 */
int inspect_environment_apply(const struct log *log, const struct inspect_environment *environment,
			      struct xpt_inspect_options *options);

#endif
