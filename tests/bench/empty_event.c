/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program on a tracepoint that does nothing: what no tracer can be cheaper than.
 *
 *	empty_event SYSTEM NAME
 *
 * Says "attached" on standard error and stays until standard input ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static int program_load(void)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_TRACEPOINT, "empty", "GPL", instructions, 2, NULL);
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

int main(int argc, char **argv)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_TRACEPOINT,
					      .size = sizeof(attributes),
					      .sample_period = 1 };
	int program = program_load(), event;
	char byte;

	if (argc != 3) {
		fprintf(stderr, "usage: empty_event SYSTEM NAME\n");
		return 2;
	}
	attributes.config = tracepoint_id(argv[1], argv[2]);
	event = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (program < 0 || event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ||
	    ioctl(event, PERF_EVENT_IOC_ENABLE)) {
		perror("empty_event");
		return 1;
	}
	fprintf(stderr, "attached\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
