/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard_holds.h"

#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_state.h"

#include "bpf/wire.h"

#define LOOK_MS 100	  /* between two looks at the map: there is nothing to wait for */
#define ENTRIES_MAX 65536 /* of one look: processes may come and go meanwhile */
#define NS_PER_TICK 10000000ull

/* The pidfd is opened first: then the start time is of the very process that the signal goes to. */
void guard_let_go(pid_t pid, __u64 start_time)
{
	int descriptor = syscall(SYS_pidfd_open, pid, 0);
	bool no_pidfd = descriptor < 0 && errno == ENOSYS;
	struct process_state state;

	if (descriptor < 0 && !no_pidfd)
		return;
	if (process_state_read(pid, &state) && state.start_time == start_time) {
		if (no_pidfd)
			kill(pid, SIGCONT);
		else
			syscall(SYS_pidfd_send_signal, descriptor, SIGCONT, NULL, 0);
	}
	if (descriptor >= 0)
		close(descriptor);
}

/* ---- the map ---- */

static __u64 pointer(const void *address)
{
	return (__u64)(unsigned long)address;
}

/* One of the commands with a key, and a value or the key behind it. */
static bool map_call(int command, int map, const __u32 *key, void *other, __u64 flags)
{
	union bpf_attr attributes = { .map_fd = map };

	attributes.key = pointer(key);
	attributes.value = pointer(other);
	attributes.flags = flags;
	return !syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}

/* A stop of somebody else's meanwhile was sent to the process, not to a thread, and is left to that one. */
static void let_go(__u32 tgid, const struct xpt_hold *hold)
{
	if (!process_stop_pending(tgid))
		guard_let_go(tgid, hold->started / NS_PER_TICK);
}

/* Calls visit for each entry of the map. */
static void each(int map, void (*visit)(void *context, int map, __u32 tgid, struct xpt_hold *hold), void *context)
{
	__u32 tgid = 0, following = 0;
	bool more = map_call(BPF_MAP_GET_NEXT_KEY, map, NULL, &tgid, 0);
	struct xpt_hold hold = {};

	for (size_t i = 0; more && i < ENTRIES_MAX; i++) {
		more = map_call(BPF_MAP_GET_NEXT_KEY, map, &tgid, &following, 0);
		if (map_call(BPF_MAP_LOOKUP_ELEM, map, &tgid, &hold, 0))
			visit(context, map, tgid, &hold);
		tgid = following;
	}
}

static void take(void *context, int map, __u32 tgid, struct xpt_hold *hold)
{
	(void)context;
	if (map_call(BPF_MAP_DELETE_ELEM, map, &tgid, NULL, 0))
		let_go(tgid, hold);
}

void guard_let_go_all(int map)
{
	if (map >= 0)
		each(map, take, NULL);
}

struct look {
	__u64 since;  /* who is there for longer is let go */
	__u64 oldest; /* of the others; ~0: there is none */
};

/* The entry stays: the collector takes it off when it has looked, and only then may the process be stopped again. */
static void let_go_if_overdue(void *context, int map, __u32 tgid, struct xpt_hold *hold)
{
	struct look *look = context;

	if (hold->unattended)
		return;
	if (hold->time > look->since) {
		look->oldest = hold->time < look->oldest ? hold->time : look->oldest;
		return;
	}
	hold->unattended = 1;
	if (map_call(BPF_MAP_UPDATE_ELEM, map, &tgid, hold, BPF_EXIST))
		let_go(tgid, hold);
}

int guard_let_go_overdue(int map, __u64 limit)
{
	struct look look = { .oldest = ~0ull };
	__u64 now, left;

	if (map < 0)
		return -1;
	now = clock_monotonic();
	look.since = now > limit ? now - limit : 0;
	each(map, let_go_if_overdue, &look);
	if (look.oldest == ~0ull)
		return LOOK_MS;
	/* It came less than the limit before now. */
	left = (look.oldest + limit - now) / 1000000 + 1;
	return left < LOOK_MS ? left : LOOK_MS;
}
