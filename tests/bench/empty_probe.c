/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes that do nothing: what no tracer can be cheaper than.
 *
 *	empty_probe entry|both|floor PID FILE OFFSET...
 *
 * entry: probes on the instructions at these offsets of the file. both: also on the returns of these calls. floor: the same, with
 * what a tracer cannot do without: a reading of the clock at each end, the thread, the site, room to remember the begin in, and a
 * record of 64 bytes, which is read by this process. Says "attached" on standard error and stays until standard input ends. Exit status 3: the kernel has no such links.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

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

/* ---- the least that a tracer does ---- */

#define RING_BYTES (8u << 20)
#define RECORD_BYTES 64
#define RECORD (-(RECORD_BYTES + 8)) /* in the stack: of the record; the key is above it */
#define KEY (-8)

#define CALL_OF(number)                                     \
	{                                                   \
		.code = BPF_JMP | BPF_CALL, .imm = (number) \
	}
#define MOVE(to, from)                                                                  \
	{                                                                               \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) \
	}
#define MOVE_NUMBER(to, number)                                                       \
	{                                                                             \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (number) \
	}
#define ADD_NUMBER(to, number)                                                        \
	{                                                                             \
		.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (number) \
	}
#define LOAD(to, from, at)                                                                          \
	{                                                                                           \
		.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = (to), .src_reg = (from), .off = (at) \
	}
#define STORE(to, at, from)                                                                         \
	{                                                                                           \
		.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = (to), .src_reg = (from), .off = (at) \
	}
#define STORE_NUMBER(to, at, number)                                                             \
	{                                                                                        \
		.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = (to), .off = (at), .imm = (number) \
	}
#define MAP(to, descriptor)                                                                                        \
	{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = (to), .src_reg = BPF_PSEUDO_MAP_FD, .imm = (descriptor) }, \
	{                                                                                                          \
		0                                                                                                  \
	}

/* A call begins and ends by turns: one thread is measured, and its calls are not nested. */
static int floor_load(int state, int ring)
{
	const struct bpf_insn instructions[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		CALL_OF(BPF_FUNC_ktime_get_ns),
		MOVE(BPF_REG_7, BPF_REG_0),
		STORE_NUMBER(BPF_REG_10, KEY, 0),
		MAP(BPF_REG_1, state),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD_NUMBER(BPF_REG_2, KEY),
		CALL_OF(BPF_FUNC_map_lookup_elem),
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 24 },
		MOVE(BPF_REG_8, BPF_REG_0),
		MOVE(BPF_REG_1, BPF_REG_6),
		CALL_OF(BPF_FUNC_get_attach_cookie),
		STORE(BPF_REG_10, RECORD + 16, BPF_REG_0),
		LOAD(BPF_REG_1, BPF_REG_8, 0),
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_1, .off = 2 },
		STORE(BPF_REG_8, 0, BPF_REG_7), /* it begins */
		{ .code = BPF_JMP | BPF_JA, .off = 16 },
		STORE_NUMBER(BPF_REG_8, 0, 0), /* it ends */
		STORE(BPF_REG_10, RECORD, BPF_REG_1),
		STORE(BPF_REG_10, RECORD + 8, BPF_REG_7),
		CALL_OF(BPF_FUNC_get_current_pid_tgid),
		STORE(BPF_REG_10, RECORD + 24, BPF_REG_0),
		STORE(BPF_REG_10, RECORD + 32, BPF_REG_7),
		STORE(BPF_REG_10, RECORD + 40, BPF_REG_7),
		STORE(BPF_REG_10, RECORD + 48, BPF_REG_7),
		STORE(BPF_REG_10, RECORD + 56, BPF_REG_7),
		MAP(BPF_REG_1, ring),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD_NUMBER(BPF_REG_2, RECORD),
		MOVE_NUMBER(BPF_REG_3, RECORD_BYTES),
		MOVE_NUMBER(BPF_REG_4, BPF_RB_NO_WAKEUP),
		CALL_OF(BPF_FUNC_ringbuf_output),
		MOVE_NUMBER(BPF_REG_0, 0),
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = ATTACH_SESSION, .prog_flags = BPF_F_SLEEPABLE);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "floor", "GPL", instructions,
			     sizeof(instructions) / sizeof(instructions[0]), &options);
}

static int ignore(void *context, void *record, size_t size)
{
	(void)context;
	(void)record;
	(void)size;
	return 0;
}

/* Reads what comes every 20 ms, as tracers do; the ring has room for as much. */
static void *read_ring(void *ring)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	for (;;) {
		ring_buffer__consume(ring);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int floor_program(void)
{
	int state = bpf_map_create(BPF_MAP_TYPE_ARRAY, "state", 4, 8, 1, NULL);
	int ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, RING_BYTES, NULL);
	struct ring_buffer *reader = ring < 0 ? NULL : ring_buffer__new(ring, ignore, NULL, NULL);
	pthread_t thread;

	if (state < 0 || !reader || pthread_create(&thread, NULL, read_ring, reader))
		return -1;
	return floor_load(state, ring);
}

static int attach(__u32 attach_type, bool floor, pid_t pid, const char *file, const __u64 *offsets, __u32 count)
{
	struct link_create attributes = {
		.program = floor ? floor_program() : program_load(attach_type),
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
		fprintf(stderr, "usage: empty_probe entry|both|floor PID FILE OFFSET...\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		offsets[count++] = strtoull(argv[i], NULL, 0);
	type = strcmp(argv[1], "entry") ? ATTACH_SESSION : ATTACH_MULTI;
	if (attach(type, !strcmp(argv[1], "floor"), atoi(argv[2]), argv[3], offsets, count) < 0) {
		fprintf(stderr, "empty_probe: %s\n", strerror(errno));
		return EXIT_UNSUPPORTED;
	}
	fprintf(stderr, "attached\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
