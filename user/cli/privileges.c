/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands.h"

#define MULTI_LINKS_SINCE 606 /* 6.6; from then on CAP_SYS_ADMIN is not needed */
#define PARANOID_MAX \
	2 /* kernel.perf_event_paranoid: beyond, distributions' kernels want CAP_SYS_ADMIN for perf events */

static const struct {
	unsigned int capability;
	const char *name;
	const char *purpose;
} kept[] = {
	{ CAP_BPF, "bpf", "BPF programs and maps" },
	{ CAP_PERFMON, "perfmon", "probes, tracepoints and counters" },
	{ CAP_SYS_PTRACE, "sys_ptrace", "mappings and memory of other users' processes" },
	{ CAP_CHECKPOINT_RESTORE, "checkpoint_restore", "libraries in other mount namespaces, and deleted ones" },
	{ CAP_DAC_READ_SEARCH, "dac_read_search", "libraries in directories of others" },
	{ CAP_DAC_OVERRIDE, "dac_override", "output in directories of the user who called sudo" },
	{ CAP_CHOWN, "chown", "output that belongs to that user" },
	{ CAP_FOWNER, "fowner", "the same" },
	{ CAP_SETUID, "setuid", "code objects, read with the rights of their process; readers without rights" },
	{ CAP_SETGID, "setgid", "the same" },
	{ CAP_KILL, "kill", "ending such a reader" },
	{ CAP_SYS_NICE, "sys_nice", "placing probes at once while threads wait for them" },
	{ CAP_SYS_RESOURCE, "sys_resource", "more open files" },
	{ CAP_IPC_LOCK, "ipc_lock", "buffers of counters" },
	{ CAP_SYS_ADMIN, "sys_admin",
	  "perf links (before Linux 6.6, or with --link perf); where kernel.perf_event_paranoid is above 2, and where bpf, perfmon or "
	  "checkpoint_restore is missing" },
};

#define KEPT (sizeof(kept) / sizeof(kept[0]))

static bool has_multi_links(void)
{
	struct utsname name;
	char *end;
	unsigned long major, minor;

	if (uname(&name))
		return false;
	major = strtoul(name.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major * 100 + minor >= MULTI_LINKS_SINCE;
}

static bool perf_is_restricted(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int paranoid = 0;
	bool known = file && fscanf(file, "%d", &paranoid) == 1;

	if (file)
		fclose(file);
	return !known || paranoid > PARANOID_MAX;
}

static void keep(__u64 mask)
{
	const __u64 split = 1ull << CAP_BPF | 1ull << CAP_PERFMON | 1ull << CAP_CHECKPOINT_RESTORE;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	char text[128];

	if (!syscall(SYS_capget, &header, data)) {
		/* It stands for those that a container may not have been given. */
		if (mask & split & ~(data[0].permitted | (__u64)data[1].permitted << 32))
			mask |= 1ull << CAP_SYS_ADMIN;
		for (int i = 0; i < 2; i++) {
			data[i].effective &= (__u32)(mask >> 32 * i);
			data[i].permitted &= (__u32)(mask >> 32 * i);
		}
		if (!syscall(SYS_capset, &header, data))
			return;
	}
	snprintf(text, sizeof(text), "no capability is given up: %s", strerror(errno));
	print_message(NULL, XPT_LOG_WARN, text);
}

void privileges_reduce(enum xpt_link link)
{
	__u64 mask = 0;

	if (geteuid())
		return;
	for (size_t i = 0; i < KEPT; i++)
		if (kept[i].capability != CAP_SYS_ADMIN || link == XPT_LINK_PERF || !has_multi_links() ||
		    perf_is_restricted())
			mask |= 1ull << kept[i].capability;
	keep(mask);
}

void privileges_reduce_to_counting(void)
{
	if (!geteuid())
		keep(1ull << CAP_SYS_PTRACE | 1ull << CAP_DAC_READ_SEARCH);
}

void privileges_print(FILE *out)
{
	fprintf(out, "While it traces, xputrace keeps these capabilities and gives up all others:\n");
	for (size_t i = 0; i < KEPT; i++)
		fprintf(out, "  %-19s %s\n", kept[i].name, kept[i].purpose);
	fprintf(out,
		"While it counts, xputrace counters keeps sys_ptrace and dac_read_search, for what drivers tell of each process.\n");
}
