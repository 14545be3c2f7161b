/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process uses of the machine, at one moment: read in target/, written in report/. */
#ifndef XPT_BASE_CORE_USAGE_H
#define XPT_BASE_CORE_USAGE_H

#include <linux/types.h>

#define USAGE_CPU (1u << 0)
#define USAGE_MEMORY (1u << 1)

struct process_usage {
	__u64 time;	   /* CLOCK_MONOTONIC in ns */
	unsigned int have; /* USAGE_*: the others are not known */
	unsigned int threads;
	/*
	 * USAGE_CPU: ns since the process began, of all its threads, also those that have ended, but not of its
	 * children. cpu is exact; what of it was in user space and in the kernel is in whole clock ticks each, of
	 * 10 ms as a rule.
	 */
	__u64 cpu;
	__u64 user, system;
	/*
	 * USAGE_MEMORY: bytes, as the kernel keeps them for each CPU apart: newer ones are up to some hundred KiB
	 * behind, of large machines more. Pages of hugetlbfs are in none of them.
	 */
	__u64 resident;	 /* in memory now */
	__u64 peak;	 /* the most that it had */
	__u64 anonymous; /* of resident: what belongs to no file and is not shared */
	__u64 swap;
};

#endif
