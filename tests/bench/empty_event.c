/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs on tracepoints that do nothing: what no tracer can be cheaper than.
 *
 *	empty_event SYSTEM NAME
 *	empty_event btf NAME...
 *
 * btf: with the kernel's own arguments instead of an event's fields. Says "attached" on standard error and stays until standard
 * input ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* name: of the tracepoint whose arguments it gets; NULL: none. */
static int program_load(const char *name)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);

	if (!name)
		return bpf_prog_load(BPF_PROG_TYPE_TRACEPOINT, "empty", "GPL", instructions, 2, NULL);
	options.attach_btf_id = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_RAW_TP);
	return bpf_prog_load(BPF_PROG_TYPE_TRACING, "empty", "GPL", instructions, 2, &options);
}

static long tracepoint_id(const char *system, const char *name)
{
	char path[256];
	FILE *file;
	long id = -1;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/%s/id", system, name);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%ld", &id) != 1)
		id = -1;
	if (file)
		fclose(file);
	return id;
}

/* 0, or -1 with errno. */
static int event_attach(const char *system, const char *name)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_TRACEPOINT,
					      .size = sizeof(attributes),
					      .sample_period = 1 };
	int program = program_load(NULL), event;

	attributes.config = tracepoint_id(system, name);
	event = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (program < 0 || event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, program))
		return -1;
	return ioctl(event, PERF_EVENT_IOC_ENABLE);
}

static int btf_attach(const char *name)
{
	int program = program_load(name);

	return program < 0 || bpf_raw_tracepoint_open(NULL, program) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	int error = 0;
	char byte;

	if (argc < 3) {
		fprintf(stderr, "usage: empty_event SYSTEM NAME | btf NAME...\n");
		return 2;
	}
	if (strcmp(argv[1], "btf"))
		error = event_attach(argv[1], argv[2]);
	for (int i = 2; i < argc && !strcmp(argv[1], "btf"); i++)
		error |= btf_attach(argv[i]);
	if (error) {
		perror("empty_event");
		return 1;
	}
	fprintf(stderr, "attached\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
