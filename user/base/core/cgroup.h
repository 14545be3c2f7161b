/* SPDX-License-Identifier: BSD-2-Clause */
/* Which container and Kubernetes pod a process is in, by the paths of its control groups. */
#ifndef XPT_BASE_CORE_CGROUP_H
#define XPT_BASE_CORE_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#define CONTAINER_ID_DIGITS 64
#define POD_UID_LENGTH 36

struct cgroup_ids {
	char container[CONTAINER_ID_DIGITS + 1]; /* "": none, or not known */
	char pod[POD_UID_LENGTH + 1];		 /* with dashes; a static pod has 32 digits without; "": none */
};

/*
 * From the text of /proc/PID/cgroup, of version 1, 2 or both: as docker, containerd, CRI-O, podman and systemd's slices name groups.
 * The innermost container counts.
 */
void cgroup_parse(struct cgroup_ids *ids, const char *text, size_t length);
/* Of a process; empty where it has ended. */
void cgroup_read(struct cgroup_ids *ids, pid_t pid);

#endif
