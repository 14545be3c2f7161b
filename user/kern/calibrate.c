/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What probes take on this machine, measured on functions of our own in a process of our own: no other one has a probe for
 * it, and what ends that process (a sandbox that does not know how a probe returns) leaves the collector alone.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/core/clock.h"
#include "base/core/process.h"
#include "kern/private.h"

#define BATCH_MAX 8	/* calls between two readings of the clock */
#define ROUNDS_MAX 15	/* of each kind; the median counts */
#define TIME_LIMIT 500	/* ms for everything; it takes a few, under a budget 100 */
#define SAMPLES_MAX 256 /* records of a kind that are used */
/* Bytes of data, and lines of code, between two calls: as a program's own, they displace the first caches; or all but the last. */
#define DISPLACED 65536
#define DISPLACED_COLD (2u << 20)
#define DISPLACED_LINES "512"

/* In assembler, so that it is known which instruction the probe sits on. */
#define FUNCTION(name, body)                                                                                         \
	__asm__(".text\n.p2align 6\n.type " name ", %function\n" name ":\n" LANDING body ".size " name ", . - " name \
		"\n")
#define TWICE(name, body)     \
	FUNCTION(name, body); \
	FUNCTION(name "_bare", body)

#if defined(__x86_64__)
#define SAVE "push %rbp\nmov %rsp, %rbp\n"
#define LEAVE "pop %rbp\nret\n"
#define CALL_INNER "test %rsi, %rsi\njz 1f\ncall *%rsi\n1:\n"
#define LANDING ""
#define LANDING_BYTES 0
#define EMULATED "" /* what saves the frame pointer is */
#define STEPPED "lea 8(%rdi), %rax\n"
#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#define CALL "call "
#define JUMP "jmp "
#elif defined(__aarch64__)
#define SAVE "stp x29, x30, [sp, #-16]!\nmov x29, sp\n"
#define LEAVE "ldp x29, x30, [sp], #16\nret\n"
#define CALL_INNER "cbz x1, 1f\nblr x1\n1:\n"
#define LANDING "hint #34\n" /* bti c: no probe may be there */
#define LANDING_BYTES 4
#define EMULATED "nop\n"
#define STEPPED "add x2, x0, #8\n"
#define NOP5 "nop\n"
#define CALL "bl "
#define JUMP "b "
#else
#error "unknown architecture"
#endif

FUNCTION("xpt_calibrate_walk", ".rept " DISPLACED_LINES "\n" JUMP "2f\n.p2align 6\n2:\n.endr\nret\n");
/* Each is there with a probe and without. The first calls what is given as its second argument, if anything. */
TWICE("xpt_calibrate_emulated", EMULATED SAVE CALL_INNER LEAVE);
TWICE("xpt_calibrate_stepped", STEPPED SAVE LEAVE);
TWICE("xpt_calibrate_optimised", NOP5 SAVE LEAVE);
TWICE("xpt_calibrate_operator", EMULATED SAVE LEAVE);
FUNCTION("xpt_calibrate_step", SAVE CALL "xpt_calibrate_operator\nxpt_calibrate_behind:\nnop\n" LEAVE);
FUNCTION("xpt_calibrate_step_bare", SAVE CALL "xpt_calibrate_operator_bare\nnop\n" LEAVE);

void xpt_calibrate_walk(void);
typedef void (*calibrate_fn)(void *object, void (*inner)(void));
void xpt_calibrate_emulated(void *object, void (*inner)(void));
void xpt_calibrate_emulated_bare(void *object, void (*inner)(void));
void xpt_calibrate_stepped(void *object, void (*inner)(void));
void xpt_calibrate_stepped_bare(void *object, void (*inner)(void));
void xpt_calibrate_optimised(void *object, void (*inner)(void));
void xpt_calibrate_optimised_bare(void *object, void (*inner)(void));
void xpt_calibrate_operator(void *object, void (*inner)(void));
void xpt_calibrate_behind(void *object, void (*inner)(void));
void xpt_calibrate_step(void *object, void (*inner)(void));
void xpt_calibrate_step_bare(void *object, void (*inner)(void));

struct kind {
	calibrate_fn probed, bare;
};

static const struct kind kinds[KERN_COSTS] = {
	[KERN_COST_OPTIMISED] = { xpt_calibrate_optimised, xpt_calibrate_optimised_bare },
	[KERN_COST_EMULATED] = { xpt_calibrate_emulated, xpt_calibrate_emulated_bare },
	[KERN_COST_STEPPED] = { xpt_calibrate_stepped, xpt_calibrate_stepped_bare },
	[KERN_COST_OPERATOR] = { xpt_calibrate_step, xpt_calibrate_step_bare },
};

/* What the process of our own is to measure; the answer is one number of ns. */
struct request {
	__u32 kind;
	__u32 displaced; /* bytes between two calls; 0: none */
	__u32 batch, rounds;
};

/* ---- in the process of our own ---- */

static __u64 object[2]; /* an operator: its class is the first word */
static char displaced[DISPLACED_COLD];
static struct request request;
static __u64 measured; /* ns */

static int compare(const void *a, const void *b)
{
	__s64 first = *(const __s64 *)a, second = *(const __s64 *)b;

	return first < second ? -1 : first > second;
}

static __s64 median(__s64 *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return count ? values[count / 2] : 0;
}

static void displace(void)
{
	if (request.displaced)
		xpt_calibrate_walk();
	for (size_t at = 0; at < request.displaced; at += 64)
		((volatile char *)displaced)[at]++;
}

static __s64 time_batch(calibrate_fn call)
{
	__u64 start;

	/* What a large one takes varies by more than a call does. */
	if (request.batch == 1)
		displace();
	start = clock_monotonic();
	for (unsigned int i = 0; i < request.batch; i++) {
		if (request.batch > 1)
			displace();
		call(object, NULL);
	}
	return (__s64)(clock_monotonic() - start);
}

static void measure(void)
{
	const struct kind *kind = &kinds[request.kind];
	__s64 took[ROUNDS_MAX], middle;

	for (unsigned int i = 0; i < request.rounds; i++)
		took[i] = time_batch(kind->probed) - time_batch(kind->bare);
	middle = median(took, request.rounds);
	measured = middle > 0 ? (__u64)middle / request.batch : 0;
}

static void run(void *context)
{
	int socket = *(const int *)context;
	pid_t pid = getpid();

	if (send(socket, &pid, sizeof(pid), MSG_NOSIGNAL) < 0)
		return;
	while (recv(socket, &request, sizeof(request), 0) == sizeof(request)) {
		/* Operators are in an inference. */
		if (request.kind == KERN_COST_OPERATOR)
			xpt_calibrate_emulated(object, measure);
		else
			measure();
		if (send(socket, &measured, sizeof(measured), MSG_NOSIGNAL) < 0)
			return;
	}
}

/* ---- in the collector ---- */

/* Times between begin and end as they are recorded: of a function that does nothing, that is what the probes take of them. */
struct inside {
	__u32 first; /* spec of the first kind */
	size_t count[KERN_COSTS];
	__s64 took[KERN_COSTS][SAMPLES_MAX];
};

static int note_inside(void *context, const struct xpt_record_header *record)
{
	const struct xpt_record_call *call = (const void *)record;
	struct inside *inside = context;
	size_t kind;

	if (record->kind != XPT_RECORD_CALL || !inside)
		return 0;
	kind = call->spec - inside->first;
	if (kind < KERN_COSTS && inside->count[kind] < SAMPLES_MAX)
		inside->took[kind][inside->count[kind]++] = (__s64)(record->time - call->start);
	return 0;
}

static int receive(int socket, void *message, size_t size, __u64 deadline)
{
	struct pollfd polled = { .fd = socket, .events = POLLIN };
	__u64 now = clock_monotonic();

	if (now >= deadline || poll(&polled, 1, (int)((deadline - now) / 1000000) + 1) != 1)
		return -ETIMEDOUT;
	return recv(socket, message, size, MSG_DONTWAIT) == (ssize_t)size ? 0 : -EPIPE;
}

static int place(struct kern *kern, pid_t pid, __u32 first)
{
	static const struct {
		calibrate_fn function;
		unsigned int spec;
		bool entry_only;
	} places[] = {
		{ xpt_calibrate_optimised, KERN_COST_OPTIMISED, false },
		{ xpt_calibrate_emulated, KERN_COST_EMULATED, false },
		{ xpt_calibrate_stepped, KERN_COST_STEPPED, false },
		{ xpt_calibrate_operator, KERN_COST_OPERATOR, true },
		{ xpt_calibrate_behind, KERN_COSTS, true },
	};
	const size_t count = sizeof(places) / sizeof(places[0]);
	struct kern_site sites[sizeof(places) / sizeof(places[0])];

	for (size_t i = 0; i < count; i++)
		sites[i] = (struct kern_site){
			.offset = (__u64)(unsigned long)places[i].function +
				  LANDING_BYTES * (places[i].function != xpt_calibrate_behind),
			.spec = first + places[i].spec,
			.hits = XPT_HITS_TIMED,
			.entry_only = places[i].entry_only,
		};
	return links_attach_own(kern, pid, sites, count, &kern->calibration);
}

static int set_specs(struct kern *kern, __u32 first)
{
	struct xpt_spec call = {
		.role = XPT_ROLE_EXECUTE,
		.fetches = 2,
		.flags = XPT_SPEC_SAMPLED | XPT_SPEC_BY_PROGRAM,
		.fetch = { { .meaning = XPT_MEANING_PROGRAM },
			   { .meaning = XPT_MEANING_STATUS,
			     .source = XPT_SOURCE_RETURN,
			     .type = XPT_TYPE_S32,
			     .at_return = 1 } },
	};
	struct xpt_spec operator= { .role = XPT_ROLE_OPERATOR,
				    .fetches = 1,
				    .fetch = { { .meaning = XPT_MEANING_OBJECT } } };
	struct xpt_spec end = { .role = XPT_ROLE_OPERATOR_END, .index = first + KERN_COSTS };
	int error = 0;

	for (__u32 i = 0; i < KERN_COST_OPERATOR && !error; i++) {
		call.index = first + i;
		error = kern_set_spec(kern, &call);
	}
	operator.index = first + KERN_COST_OPERATOR;
	error = error ?: kern_set_spec(kern, &operator);
	return error ?: kern_set_spec(kern, &end);
}

static int ignore_count(void *context, const struct xpt_program_entry *entry)
{
	(void)context;
	(void)entry;
	return 0;
}

/* Nothing of the process is left in the kernel's tables. */
static void forget(struct kern *kern, pid_t pid)
{
	__u32 key = pid;

	kern_take_counts(kern, pid, ignore_count, NULL);
	kern_forget_callers(kern, pid);
	kern_family_remove(kern, pid);
	bpf_map_delete_elem(bpf_map__fd(kern->main->maps.runnings), &key);
}

static int ask(int socket, const struct request *request, __u64 *answer, __u64 deadline)
{
	if (send(socket, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
		return -errno;
	return receive(socket, answer, sizeof(*answer), deadline);
}

/* As far as the summary and the page need it. */
static int measure_costs(int socket, __u64 cost[KERN_COSTS], __u64 deadline)
{
	struct request request = { .displaced = DISPLACED, .batch = BATCH_MAX, .rounds = 9 };
	int error = 0;

	for (request.kind = 0; request.kind < KERN_COSTS && !error; request.kind++)
		error = ask(socket, &request, &cost[request.kind], deadline);
	return error;
}

/* The same, and how long the BPF programs ran. */
static int measure_hit(struct kern *kern, int socket, const struct request *request, struct kern_hit_time *time,
		       __u64 deadline)
{
	struct kern_run before = kern_run_time(kern), after;
	int error = ask(socket, request, &time->cost, deadline);

	after = kern_run_time(kern);
	if (after.runs > before.runs)
		time->run = (after.time - before.time) / (after.runs - before.runs);
	kern_drain_control(kern, note_inside, NULL);
	kern_drain_data(kern, note_inside, NULL);
	return error;
}

/* Warm and cold, left out and recorded. */
static int measure_hits(struct kern *kern, int socket, struct xpt_config *settings, __u64 deadline)
{
	int error = 0;

	for (unsigned int i = 0; i < KERN_COSTS * 4 && !error; i++) {
		bool cold = i % 2, recorded = i / 2 % 2;
		struct request request = {
			.kind = i / 4,
			.displaced = cold ? DISPLACED_COLD : 0,
			.batch = cold ? 1 : BATCH_MAX,
			.rounds = cold ? ROUNDS_MAX : 9,
		};
		struct kern_hit_cost *cost = &kern->hit_costs[request.kind][cold];

		settings->sample_every = recorded ? 1 : XPT_SAMPLE_NONE;
		error = settings_write(kern, settings);
		if (!error)
			error = measure_hit(kern, socket, &request, recorded ? &cost->recorded : &cost->left_out,
					    deadline);
	}
	return error;
}

static int calibrate(struct kern *kern, int socket, struct inside *inside, __u64 cost[KERN_COSTS], __u64 deadline)
{
	struct xpt_config settings = kern->settings;
	pid_t pid;
	int error = receive(socket, &pid, sizeof(pid), deadline), restored;

	if (error)
		return error;
	settings.capture = XPT_CAPTURE_ON;
	settings.sample_every = 1;
	settings.chosen_only = settings.slots = settings.wait_probes = 0;
	error = set_specs(kern, inside->first);
	error = error ?: place(kern, pid, inside->first);
	error = error ?: settings_write(kern, &settings);
	error = error ?: measure_costs(socket, cost, deadline);
	kern_drain_control(kern, note_inside, inside);
	kern_drain_data(kern, note_inside, inside);
	if (!error && kern->hit_shards)
		error = measure_hits(kern, socket, &settings, deadline);
	restored = settings_write(kern, &kern->settings);
	forget(kern, pid);
	return restored ?: error;
}

void kern_calibrate(struct kern *kern, __u32 first_spec)
{
	__u64 start = clock_monotonic(), cost[KERN_COSTS];
	struct inside *inside = calloc(1, sizeof(*inside));
	int sockets[2] = { -1, -1 };
	int error = inside ? 0 : -ENOMEM;

	if (!error && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		error = -errno;
	error = error ?: detached_start("xputrace-cost", &sockets[1], 1, run, &sockets[1]);
	if (sockets[1] >= 0)
		close(sockets[1]);
	if (!error) {
		inside->first = first_spec;
		error = calibrate(kern, sockets[0], inside, cost, start + TIME_LIMIT * 1000000ull);
	}
	if (sockets[0] >= 0)
		close(sockets[0]);
	for (unsigned int i = 0; i < KERN_COSTS && !error; i++) {
		__s64 between = median(inside->took[i], inside->count[i]);

		if (!cost[i] || between <= 0)
			error = -ENODATA;
		kern->costs[i].cost = cost[i];
		kern->costs[i].inside = (__u64)between < cost[i] ? (__u64)between : cost[i];
	}
	kern->calibrated = !error;
	free(inside);
	if (error)
		log_debug(kern->log, "what probes take here is unknown: %s", strerror(-error));
	else
		log_debug(kern->log, "found what probes take in %.1f ms: a call %llu ns, an operator %llu ns",
			  (double)(clock_monotonic() - start) / 1e6, cost[KERN_COST_EMULATED],
			  cost[KERN_COST_OPERATOR]);
}

const struct kern_cost *kern_costs(const struct kern *kern)
{
	return kern->calibrated ? kern->costs : NULL;
}

const struct kern_hit_cost *kern_hit_costs(const struct kern *kern, enum kern_cost_kind kind)
{
	return kern->calibrated && kern->hit_shards ? kern->hit_costs[kind] : NULL;
}

struct kern_run kern_run_time(const struct kern *kern)
{
	return (struct kern_run){
		.time = __atomic_load_n(&kern->shared->timed_ns, __ATOMIC_RELAXED),
		.runs = __atomic_load_n(&kern->shared->timed_runs, __ATOMIC_RELAXED),
		.stepped = __atomic_load_n(&kern->shared->stepped, __ATOMIC_RELAXED),
	};
}
