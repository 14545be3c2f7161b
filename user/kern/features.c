/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kern/kern.h"
#include "kern/mappings.h"
#include "target/process.h"
#include "target/tracefs.h"

#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu /* inode of /proc/self/ns/pid; fixed by the kernel (PROC_PID_INIT_INO) */

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

static int try_btf(char *detail, size_t size)
{
	struct btf *btf = btf__load_vmlinux_btf();

	(void)detail;
	(void)size;
	/* That says only that none was found; this one, why the usual one cannot be read. */
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
	struct stat status;

	if (stat("/proc/self/ns/pid", &status))
		return -errno;
	if (status.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	snprintf(detail, size, "in a PID namespace of its own");
	return -EXDEV;
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
	{ "kernel", FEATURE_REQUIRED, try_kernel, "", "" },
	{ "root", FEATURE_REQUIRED, try_root, "loading BPF programs, placing probes", "start xputrace with sudo" },
	{ "lockdown", FEATURE_REQUIRED, try_lockdown, "BPF programs that read memory",
	  "the kernel is locked down for confidentiality (often by Secure Boot): boot with lockdown=integrity or none" },
	{ "btf", FEATURE_REQUIRED, try_btf, "one binary for every kernel",
	  "use a kernel with CONFIG_DEBUG_INFO_BTF=y (all current distribution kernels have it)" },
	{ "ring buffer", FEATURE_REQUIRED, try_ring, "getting records out of the kernel", "use Linux 6.1 or later" },
	{ "map_files", FEATURE_REQUIRED, try_map_files, "opening libraries in other mount namespaces, and deleted ones",
	  "run with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE" },
	{ FEATURE_NAMESPACE, FEATURE_REQUIRED, try_namespace, "process numbers that agree with the kernel's",
	  "run xputrace on the host, or in a container that shares the host's PID namespace (docker run --pid=host)" },
	{ "session link", FEATURE_ONE_OF, try_session, "cheapest probes; targets that switch stacks (coroutines)",
	  "comes with Linux 6.13" },
	{ "multi link", FEATURE_ONE_OF, try_multi, "quick attach and detach", "comes with Linux 6.6" },
	{ "perf uprobes", FEATURE_ONE_OF, try_perf, "probes on older kernels", "use Linux 6.1 or later" },
	{ "tracefs", FEATURE_OPTIONAL, try_tracefs, "jobs of devices, counters of tracepoints",
	  "run as root, or mount -t tracefs tracefs /sys/kernel/tracing" },
	{ "mapping events", FEATURE_OPTIONAL, try_mappings, "libraries that a running process opens later",
	  "run as root, or lower /proc/sys/kernel/perf_event_paranoid to 0" },
};

const size_t feature_count = sizeof(features) / sizeof(features[0]);
