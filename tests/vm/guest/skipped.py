# SPDX-License-Identifier: BSD-2-Clause
"""Events that a kernel has skipped, as they came in an interrupt of the program that takes another one."""

UNCOUNTED = "6.1"  # from 6.7 on kernels count them
SKIPPED = 0.1


def skipped_at_most(kernel, trace, jobs):
    """How many of the jobs may be without an end: as many as are counted."""
    return SKIPPED * len(jobs) if kernel == UNCOUNTED else trace.losses().get("nested", 0)
