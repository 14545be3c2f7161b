/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes that do nothing: what no tracer can be cheaper than.
 *
 *	empty_probe entry|both|states|floor PID FILE OFFSET...
 *
 * entry: probes on the instructions at these offsets of the file. both: also on the returns of these calls. states: the same, with
 * all that thread states are made of read from the task at each end and kept in a map. floor: both, with what a tracer cannot do
 * without: a reading of the clock at each end, the thread, the site, room to remember the begin in, and a record of 64 bytes, which
 * is read by this process. Says "attached" on standard error and stays until standard input ends. Exit status 3: the kernel has no
 * such links.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
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

/* ---- what thread states need ---- */

/* Bytes from the begin of the structure to a member: names with points between them. -1: it has none. */
static int member_offset(const struct btf *types, const char *structure, const char *path)
{
	int type = btf__find_by_name_kind(types, structure, BTF_KIND_STRUCT), bits = 0;
	size_t length;

	while (type > 0 && *path) {
		const struct btf_type *holder = btf__type_by_id(types, type);
		const struct btf_member *member = btf_members(holder);
		__u32 i = 0, count = btf_vlen(holder);

		length = strcspn(path, ".");
		while (i < count && (strncmp(btf__name_by_offset(types, member[i].name_off), path, length) ||
				     btf__name_by_offset(types, member[i].name_off)[length]))
			i++;
		if (i == count)
			return -1;
		bits += btf_member_bit_offset(holder, i);
		type = btf__resolve_type(types, member[i].type);
		path += length + (path[length] == '.');
	}
	return type > 0 ? bits / 8 : -1;
}

/* The same reads as bpf/states.bpf.h makes. */
static int states_load(int state)
{
	static const char *const direct[] = { "se.sum_exec_runtime",
					      "se.exec_start",
					      "se.sum_exec_runtime",
					      "sched_info.run_delay",
					      "nvcsw",
					      "nivcsw",
					      "min_flt",
					      "maj_flt" };
	enum { DIRECT = sizeof(direct) / sizeof(direct[0]) };
	struct btf *types = btf__load_vmlinux_btf();
	int queue = member_offset(types, "task_struct", "se.cfs_rq"), of_cpu = member_offset(types, "cfs_rq", "rq");
	int clock = member_offset(types, "rq", "clock"), clock_task = member_offset(types, "rq", "clock_task");
	struct bpf_insn instructions[32 + 2 * DIRECT] = {
		STORE_NUMBER(BPF_REG_10, KEY, 0),
		MAP(BPF_REG_1, state),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD_NUMBER(BPF_REG_2, KEY),
		CALL_OF(BPF_FUNC_map_lookup_elem),
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 9 + 2 * DIRECT },
		MOVE(BPF_REG_6, BPF_REG_0),
		CALL_OF(BPF_FUNC_get_current_task_btf),
		LOAD(BPF_REG_1, BPF_REG_0, queue),
		LOAD(BPF_REG_1, BPF_REG_1, of_cpu),
		LOAD(BPF_REG_2, BPF_REG_1, clock),
		STORE(BPF_REG_6, 8 * DIRECT, BPF_REG_2),
		LOAD(BPF_REG_2, BPF_REG_1, clock_task),
		STORE(BPF_REG_6, 8 * DIRECT + 8, BPF_REG_2),
	};
	const struct bpf_insn end[] = { MOVE_NUMBER(BPF_REG_0, 0), { .code = BPF_JMP | BPF_EXIT } };
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = ATTACH_SESSION);
	unsigned int used = 15; /* with both halves of the map's */

	if (queue < 0 || of_cpu < 0 || clock < 0 || clock_task < 0)
		return -1;
	for (int i = 0; i < DIRECT; i++) {
		int at = member_offset(types, "task_struct", direct[i]);

		if (at < 0)
			return -1;
		instructions[used++] = (struct bpf_insn)LOAD(BPF_REG_1, BPF_REG_0, at);
		instructions[used++] = (struct bpf_insn)STORE(BPF_REG_6, 8 * i, BPF_REG_1);
	}
	instructions[used++] = end[0];
	instructions[used++] = end[1];
	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "states", "GPL", instructions, used, &options);
}

static int states_program(void)
{
	int state = bpf_map_create(BPF_MAP_TYPE_ARRAY, "state", 4, 128, 1, NULL);

	return state < 0 ? -1 : states_load(state);
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

static int kind_load(const char *kind, __u32 attach_type)
{
	if (!strcmp(kind, "floor"))
		return floor_program();
	return strcmp(kind, "states") ? program_load(attach_type) : states_program();
}

static int attach(const char *kind, pid_t pid, const char *file, const __u64 *offsets, __u32 count)
{
	__u32 attach_type = strcmp(kind, "entry") ? ATTACH_SESSION : ATTACH_MULTI;
	struct link_create attributes = {
		.program = kind_load(kind, attach_type),
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
	__u32 count = 0;
	char byte;

	if (argc < 5 || argc - 4 > OFFSETS_MAX) {
		fprintf(stderr, "usage: empty_probe entry|both|states|floor PID FILE OFFSET...\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		offsets[count++] = strtoull(argv[i], NULL, 0);
	if (attach(argv[1], atoi(argv[2]), argv[3], offsets, count) < 0) {
		fprintf(stderr, "empty_probe: %s\n", strerror(errno));
		return EXIT_UNSUPPORTED;
	}
	fprintf(stderr, "attached\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
