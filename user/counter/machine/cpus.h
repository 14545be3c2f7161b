/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of CPUs as the kernel writes them: "0-3,8". */
#ifndef XPT_COUNTER_MACHINE_CPUS_H
#define XPT_COUNTER_MACHINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

#define CPUS_MAX 8192 /* numbers of CPUs are below it */

struct cpus {
	int *items; /* rising, each once */
	size_t count;
};

/* -EINVAL: that is no such list; -ENOMEM. An empty text is an empty list. */
int cpus_parse(const char *text, struct cpus *cpus);
/* Those that are online. -EIO. */
int cpus_online(const char *sysfs, struct cpus *cpus);
int cpus_copy(const struct cpus *from, struct cpus *to);
bool cpus_have(const struct cpus *cpus, int cpu);
void cpus_free(struct cpus *cpus);

#endif
