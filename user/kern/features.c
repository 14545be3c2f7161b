/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kern/perf.h"
#include "kern/private.h"
#include "target/process/process.h"
#include "target/tracepoint/tracefs.h"

#define INITIAL_PID_NAMESPACE "pid:[4026531836]" /* fixed by the kernel (PROC_PID_INIT_INO) */

static int try_kernel(char *detail, size_t size)
{
	struct utsname name;

	if (uname(&name))
		return -errno;
	snprintf(detail, size, "Linux %s %s", name.release, name.machine);
	return 0;
}

static int try_root(char *detail, size_t size)
{
	snprintf(detail, size, "user id %u", geteuid());
	return geteuid() ? -EPERM : 0;
}

static int try_sysfs(char *detail, size_t size)
{
	(void)detail;
	(void)size;
	return access("/sys/kernel", F_OK) ? -errno : 0;
}

static int try_btf(char *detail, size_t size)
{
	struct btf *btf;

	(void)detail;
	(void)size;
	libbpf_log_to(NULL);
	btf = btf__load_vmlinux_btf();
	/* That error only means that none was found; this one is why the usual one cannot be read. */
	if (!btf)
		btf = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	if (!btf)
		return -errno;
	btf__free(btf);
	return 0;
}

static int try_ring(char *detail, size_t size)
{
	int map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "feature", 0, 0, 4096, NULL);

	(void)detail;
	(void)size;
	if (map < 0)
		return map;
	close(map);
	return 0;
}

static int try_lockdown(char *detail, size_t size)
{
	char text[128] = "", *chosen, *end;
	int file = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (file < 0)
		return 0; /* the kernel has no lockdown */
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length <= 0)
		return 0;
	chosen = strchr(text, '[');
	end = chosen ? strchr(chosen, ']') : NULL;
	if (!chosen || !end)
		return 0;
	*end = '\0';
	snprintf(detail, size, "%s", chosen + 1);
	return strcmp(chosen + 1, "confidentiality") ? 0 : -EPERM;
}

static int try_namespace(char *detail, size_t size)
{
	/* The link is read, not followed: profiles of AppArmor refuse what is on no file system. */
	char name[32];
	ssize_t length = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (length < 0)
		return -errno;
	name[length] = '\0';
	if (!strcmp(name, INITIAL_PID_NAMESPACE))
		return 0;
	snprintf(detail, size, "in a PID namespace of its own");
	return -EXDEV;
}

/* In a time namespace of their own clocks may have an offset, which those of BPF programs do not have. */
static int try_clocks(char *detail, size_t size)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	long long seconds, nanoseconds;
	char clock[32];
	int error = 0;

	if (!file)
		return errno == ENOENT ? 0 : -errno; /* the kernel has no time namespaces */
	while (!error && fscanf(file, "%31s %lld %lld", clock, &seconds, &nanoseconds) == 3)
		if (seconds || nanoseconds) {
			snprintf(detail, size, "the clock %s has an offset of %lld s", clock, seconds);
			error = -EXDEV;
		}
	fclose(file);
	return error;
}

static int try_map_files(char *detail, size_t size)
{
	struct mapped_files mapped;
	int error = process_mapped_files(getpid(), &mapped), file;

	(void)detail;
	(void)size;
	if (error)
		return error;
	file = mapped.count ? open(mapped.files[0].open_path, O_RDONLY | O_CLOEXEC) : -1;
	error = file < 0 ? -errno : 0;
	if (file >= 0)
		close(file);
	mapped_files_free(&mapped);
	return error;
}

static int try_link(enum link_kind kind)
{
	struct kern_options options = { .spec_count = 1, .buffer_bytes = 1, .link = kind };
	struct kern *kern;
	int error = kern_open(NULL, &options, &kern);

	if (!error)
		kern_close(kern);
	return error;
}

/* They cannot leave out a return that would make the kernel drop another one. */
#define NOT_STACKS "not for targets that switch stacks (coroutines)"

static int try_session(char *detail, size_t size)
{
	(void)detail;
	(void)size;
	return try_link(LINK_SESSION);
}

static int try_multi(char *detail, size_t size)
{
	snprintf(detail, size, NOT_STACKS);
	return try_link(LINK_MULTI);
}

static int try_perf(char *detail, size_t size)
{
	snprintf(detail, size, NOT_STACKS);
	return try_link(LINK_PERF);
}

/* A member of struct sched_info that not every configuration of a kernel has. */
static int try_states(char *detail, size_t size)
{
	const struct btf_type *type;
	struct btf *btf;
	int index, error = -EOPNOTSUPP;

	(void)detail;
	(void)size;
	libbpf_log_to(NULL);
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return -errno;
	index = btf__find_by_name_kind(btf, "sched_info", BTF_KIND_STRUCT);
	type = index > 0 ? btf__type_by_id(btf, (__u32)index) : NULL;
	for (int i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), "run_delay"))
			error = 0;
	btf__free(btf);
	return error;
}

static int try_switches(char *detail, size_t size)
{
	struct kern_options options = { .spec_count = 1, .buffer_bytes = 1, .link = LINK_AUTO, .switches = true };
	struct kern *kern;
	int error = kern_open(NULL, &options, &kern);

	(void)detail;
	(void)size;
	if (!error)
		kern_close(kern);
	return error;
}

static int try_tracefs(char *detail, size_t size)
{
	struct tracefs tracefs;
	int error = tracefs_open(NULL, &tracefs);

	if (!error && tracefs.mounted)
		snprintf(detail, size, "mounted on %s", tracefs.mounted);
	else if (!error)
		snprintf(detail, size, "a mount of its own");
	tracefs_close(&tracefs);
	return error;
}

static int try_mappings(char *detail, size_t size)
{
	struct mappings *mappings;
	int error = mappings_open(NULL, &mappings);

	(void)detail;
	(void)size;
	if (!error)
		mappings_close(mappings);
	return error;
}

const struct feature features[] = {
	{ "kernel", FEATURE_REQUIRED, try_kernel, "", "", 0 },
	{ "root", FEATURE_REQUIRED, try_root, "loading BPF programs, placing probes", "start xputrace with sudo", 0 },
	{ "lockdown", FEATURE_REQUIRED, try_lockdown, "BPF programs that read memory",
	  "the kernel is locked down for confidentiality (often by Secure Boot): boot with lockdown=integrity or none",
	  0 },
	{ "sysfs", FEATURE_REQUIRED, try_sysfs, "kernel types, tracepoints, the number of CPUs",
	  "/sys is not mounted: mount -t sysfs sysfs /sys", 0 },
	{ "btf", FEATURE_REQUIRED, try_btf, "one binary for every kernel",
	  "use a kernel with CONFIG_DEBUG_INFO_BTF=y (all current distribution kernels have it)", 0 },
	{ "ring buffer", FEATURE_REQUIRED, try_ring, "getting records out of the kernel", "use Linux 6.1 or later",
	  1ull << CAP_BPF },
	{ "map_files", FEATURE_REQUIRED, try_map_files, "opening libraries in other mount namespaces, and deleted ones",
	  "run with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", 1ull << CAP_CHECKPOINT_RESTORE },
	{ "pid namespace", FEATURE_REQUIRED, try_namespace, "process numbers that agree with the kernel's",
	  "run xputrace on the host, or in a container that shares the host's PID namespace (docker run --pid=host)",
	  0 },
	{ "time namespace", FEATURE_REQUIRED, try_clocks, "clocks that agree with the kernel's",
	  "run xputrace on the host (nsenter --time=/proc/PID/ns/time, of a process there)", 0 },
	{ "session link", FEATURE_ONE_OF, try_session, "cheapest probes; targets that switch stacks (coroutines)",
	  "comes with Linux 6.13", CAPABILITIES_TRACING },
	{ "multi link", FEATURE_ONE_OF, try_multi, "quick attach and detach", "comes with Linux 6.6",
	  CAPABILITIES_TRACING },
	{ "perf uprobes", FEATURE_ONE_OF, try_perf, "probes on older kernels", "use Linux 6.1 or later",
	  CAPABILITIES_TRACING | 1ull << CAP_SYS_ADMIN },
	{ "thread states", FEATURE_OPTIONAL, try_states, "how long threads wait for a CPU during inferences",
	  "needs a kernel with CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT", 0 },
	{ "scheduler events", FEATURE_OPTIONAL, try_switches,
	  "--why: what threads wait for, and who runs in their place", "use Linux 6.1 or later", CAPABILITIES_TRACING },
	{ "tracefs", FEATURE_OPTIONAL, try_tracefs, "jobs of devices, counters of tracepoints",
	  "run as root, or mount -t tracefs tracefs /sys/kernel/tracing", 0 },
	{ "mapping events", FEATURE_OPTIONAL, try_mappings, "libraries that a running process opens later",
	  "run as root, or lower /proc/sys/kernel/perf_event_paranoid to 0", 1ull << CAP_PERFMON },
};

const size_t feature_count = sizeof(features) / sizeof(features[0]);

bool feature_is_silent(const struct feature *feature)
{
	return feature->try == try_namespace || feature->try == try_clocks;
}

void feature_advice(const struct feature *feature, int error, char *text, size_t size)
{
	if (error && (error == -EPERM || error == -EACCES || capabilities_missing(feature->capabilities)) &&
	    (feature->capabilities || feature_is_silent(feature)))
		capabilities_explain(feature->capabilities, text, size);
	else if (error == -ESRCH && feature->need == FEATURE_ONE_OF) /* of libbpf, when it has found no kernel types */
		snprintf(text, size, "see btf");
	else if (feature->try == try_namespace && error == -ENOENT)
		snprintf(text, size, "/proc is not mounted: mount -t proc proc /proc");
	else if (feature->try == try_btf && try_sysfs(text, size))
		snprintf(text, size, "see sysfs");
	else
		snprintf(text, size, "%s", feature->advice);
}

/* ---- capabilities ---- */

static const struct {
	unsigned int capability;
	const char *name;
} capability_names[] = {
	{ CAP_BPF, "CAP_BPF" },
	{ CAP_PERFMON, "CAP_PERFMON" },
	{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
};

__u64 capabilities_missing(__u64 wanted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	__u64 held;

	if (syscall(SYS_capget, &header, data))
		return 0; /* not known to be */
	held = data[0].effective | (__u64)data[1].effective << 32;
	if (held >> CAP_SYS_ADMIN & 1)
		held |= CAPABILITIES_TRACING | 1ull << CAP_CHECKPOINT_RESTORE;
	return wanted & ~held;
}

/* Capabilities there are good for what belongs to the namespace only. */
static bool in_user_namespace(void)
{
	unsigned long long first = 0, outside = 0, count = 0;
	FILE *file = fopen("/proc/self/uid_map", "re");
	int fields;

	if (!file)
		return false;
	fields = fscanf(file, "%llu %llu %llu", &first, &outside, &count);
	fclose(file);
	return fields == 3 && (first || outside || count != 0xFFFFFFFFu);
}

void capabilities_explain(__u64 wanted, char *text, size_t size)
{
	__u64 missing = capabilities_missing(wanted);
	const char *separator = "missing ";
	size_t used = 0;

	if (!missing && in_user_namespace())
		snprintf(text, size, "not permitted in a user namespace: run xputrace outside of it");
	else if (!missing)
		snprintf(text, size, "not permitted by a security module or a seccomp filter");
	for (size_t i = 0; missing && i < sizeof(capability_names) / sizeof(capability_names[0]); i++) {
		if (!(missing >> capability_names[i].capability & 1) || used >= size)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s", separator, capability_names[i].name);
		separator = ", ";
	}
	if (missing && used < size)
		snprintf(text + used, size - used,
			 ": start xputrace with sudo, or add what is missing to its container or service");
}
