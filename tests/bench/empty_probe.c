/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes that do nothing: what no tracer can be cheaper than.
 *
 *	empty_probe entry|both PID FILE OFFSET...
 *
 * entry: probes on the instructions at these offsets of the file. both: also on the returns of these calls. Says
 * "attached" on standard error and stays until standard input ends. Exit status 3: the kernel has no such links.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#define OFFSETS_MAX 4096
#define ATTACH_MULTI 48	  /* BPF_TRACE_UPROBE_MULTI */
#define ATTACH_SESSION 57 /* BPF_TRACE_UPROBE_SESSION */
#define EXIT_UNSUPPORTED 3

/* What BPF_LINK_CREATE reads for such a link; older headers lack it. */
struct link_create {
	__u32 program, target, attach_type, flags;
	__u64 path, offsets, reference_counters, cookies;
	__u32 count, multi_flags, pid, padding;
};

static int program_load(__u32 attach_type)
{
	/* return 0: in a session, that asks for the return. */
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "GPL", instructions, 2, &options);
}

static int attach(__u32 attach_type, pid_t pid, const char *file, const __u64 *offsets, __u32 count)
{
	struct link_create attributes = {
		.program = program_load(attach_type),
		.attach_type = attach_type,
		.path = (__u64)(unsigned long)file,
		.offsets = (__u64)(unsigned long)offsets,
		.count = count,
		.pid = pid,
	};

	if ((int)attributes.program < 0)
		return -1;
	return syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
}

int main(int argc, char **argv)
{
	__u64 offsets[OFFSETS_MAX];
	__u32 count = 0, type;
	char byte;

	if (argc < 5 || argc - 4 > OFFSETS_MAX) {
		fprintf(stderr, "usage: empty_probe entry|both PID FILE OFFSET...\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		offsets[count++] = strtoull(argv[i], NULL, 0);
	type = strcmp(argv[1], "both") ? ATTACH_MULTI : ATTACH_SESSION;
	if (attach(type, atoi(argv[2]), argv[3], offsets, count) < 0) {
		fprintf(stderr, "empty_probe: %s\n", strerror(errno));
		return EXIT_UNSUPPORTED;
	}
	fprintf(stderr, "attached\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
