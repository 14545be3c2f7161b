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
static bool map_call(int command, int map, const __u32 *key, void *other)
{
	union bpf_attr attributes = { .map_fd = map };

	attributes.key = pointer(key);
	attributes.value = pointer(other);
	return !syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}

/*
 * Who takes it off lets it go. A stop of somebody else's meanwhile was sent to the process, not to a thread, and is left
 * to that one.
 */
static bool take(int map, __u32 tgid, const struct xpt_hold *hold)
{
	if (!map_call(BPF_MAP_DELETE_ELEM, map, &tgid, NULL))
		return false;
	if (!process_stop_pending(tgid))
		guard_let_go(tgid, hold->started / NS_PER_TICK);
	return true;
}

/* Lets those go that are there since a time or longer. When the oldest of the others came; ~0: there is none. */
static __u64 let_go_since(int map, __u64 since, bool *any)
{
	__u32 tgid, following;
	bool more = map_call(BPF_MAP_GET_NEXT_KEY, map, NULL, &tgid);
	__u64 oldest = ~0ull;
	struct xpt_hold hold;

	for (size_t i = 0; more && i < ENTRIES_MAX; i++) {
		more = map_call(BPF_MAP_GET_NEXT_KEY, map, &tgid, &following);
		if (tgid != XPT_HOLD_UNATTENDED && map_call(BPF_MAP_LOOKUP_ELEM, map, &tgid, &hold)) {
			if (hold.time <= since)
				*any |= take(map, tgid, &hold);
			else if (hold.time < oldest)
				oldest = hold.time;
		}
		tgid = following;
	}
	return oldest;
}

void guard_let_go_all(int map)
{
	bool any = false;

	if (map >= 0)
		let_go_since(map, ~0ull, &any);
}

int guard_let_go_overdue(int map, __u64 limit)
{
	static const struct xpt_hold mark;
	const __u32 unattended = XPT_HOLD_UNATTENDED;
	__u64 now, oldest;
	bool any = false;

	if (map < 0)
		return -1;
	now = clock_monotonic();
	oldest = let_go_since(map, now > limit ? now - limit : 0, &any);
	if (any)
		map_call(BPF_MAP_UPDATE_ELEM, map, &unattended, (void *)&mark);
	if (oldest == ~0ull)
		return LOOK_MS;
	/* It came less than the limit before now. */
	oldest = (oldest + limit - now) / 1000000 + 1;
	return oldest < LOOK_MS ? oldest : LOOK_MS;
}
