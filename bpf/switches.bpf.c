// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Why a thread did not run, for --why: each time that it left the CPU while a call that is recorded was open, from the
 * scheduler's events. Both programs run with the lock of a run queue held. Maps are those of the main
 * object.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define XPT_ATOMIC
#include "stacks.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TASK_STOPPED_BIT 4 /* of a task's state */
#define TASK_TRACED_BIT 8

#ifdef __TARGET_ARCH_arm64
#define CALL_RESTART 128 /* restart_syscall */
#else
#define CALL_RESTART 219
#endif

/* By the number of the system call that the thread blocked in. */
static __always_inline __u8 reason_of_call(__s32 number)
{
	switch (number) {
	case 449: /* futex_waitv: this one, and the next two, on all architectures */
		return XPT_OFF_CPU_FUTEX;
	case 441: /* epoll_pwait2 */
		return XPT_OFF_CPU_POLL;
	case 426: /* io_uring_enter */
		return XPT_OFF_CPU_IO;
#ifdef __TARGET_ARCH_arm64
	case 98: /* futex */
		return XPT_OFF_CPU_FUTEX;
	case 22: /* epoll_pwait */
	case 72: /* pselect6 */
	case 73: /* ppoll */
		return XPT_OFF_CPU_POLL;
	case 101: /* nanosleep */
	case 115: /* clock_nanosleep */
		return XPT_OFF_CPU_SLEEP;
	case 29: /* ioctl */
		return XPT_OFF_CPU_IOCTL;
	case 4:		  /* io_getevents */
	case 63 ... 71:	  /* read, write and the like, sendfile */
	case 76:	  /* splice */
	case 81 ... 84:	  /* sync, fsync, fdatasync, sync_file_range */
	case 227:	  /* msync */
	case 285 ... 287: /* copy_file_range, preadv2, pwritev2 */
	case 292:	  /* io_pgetevents */
		return XPT_OFF_CPU_IO;
#else
	case 202: /* futex */
		return XPT_OFF_CPU_FUTEX;
	case 7:	  /* poll */
	case 23:  /* select */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
		return XPT_OFF_CPU_POLL;
	case 35:  /* nanosleep */
	case 230: /* clock_nanosleep */
		return XPT_OFF_CPU_SLEEP;
	case 16: /* ioctl */
		return XPT_OFF_CPU_IOCTL;
	case 0 ... 1:	  /* read, write */
	case 17 ... 20:	  /* pread64, pwrite64, readv, writev */
	case 26:	  /* msync */
	case 40:	  /* sendfile */
	case 74 ... 75:	  /* fsync, fdatasync */
	case 162:	  /* sync */
	case 208:	  /* io_getevents */
	case 275:	  /* splice */
	case 277:	  /* sync_file_range */
	case 295 ... 296: /* preadv, pwritev */
	case 326 ... 328: /* copy_file_range, preadv2, pwritev2 */
	case 333:	  /* io_pgetevents */
		return XPT_OFF_CPU_IO;
#endif
	default:
		return XPT_OFF_CPU_OTHER;
	}
}

/* Number of the system call that the task is in; -1: none. */
static __always_inline __s32 call_number(struct task_struct *task)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);

#ifdef __TARGET_ARCH_arm64
	return registers->syscallno;
#else
	return registers->orig_ax;
#endif
}

/* Whether the kernel goes on with a call of this kind by restart_syscall, after a signal that stopped the thread, for example. */
static __always_inline bool is_restarted(__s32 call)
{
	__u8 reason = reason_of_call(call);

	return reason == XPT_OFF_CPU_FUTEX || reason == XPT_OFF_CPU_POLL || reason == XPT_OFF_CPU_SLEEP;
}

/* It is in no system call when it meets a page that is not there. A thread that is stopped, or traced, is so in any call. */
static __always_inline __u8 reason_of(struct task_struct *task, __s32 call, unsigned int state)
{
	__u8 reason;

	if (state & (TASK_STOPPED_BIT | TASK_TRACED_BIT))
		return XPT_OFF_CPU_OTHER;
	if (call < 0)
		return XPT_OFF_CPU_FAULT;
	reason = reason_of_call(call);
	if (reason == XPT_OFF_CPU_OTHER && BPF_CORE_READ_BITFIELD(task, in_iowait))
		return XPT_OFF_CPU_IO;
	return reason;
}

/* A thread with an open call that is recorded; its record, in which the rest is 0. NULL: it is none. */
static __always_inline struct xpt_record_off_cpu *off_cpu_of(struct task_struct *task)
{
	struct xpt_thread *thread = task->pid ? thread_get(task) : NULL;

	if (!thread || !thread->depth ||
	    (thread->frame[(thread->depth - 1) & (XPT_DEPTH_MAX - 1)].flags & FRAME_LEFT_OUT))
		return NULL;
	return &thread->off_cpu;
}

/* Copies the stack of the thread that leaves the CPU, at most stacks_second times a second. */
static __always_inline bool stack_is_due_now(struct task_struct *task, bool preempted, __u64 now)
{
	struct xpt_shared *shared = shared_get();
	struct xpt_thread *thread = thread_get(task);

	return shared && thread && stack_takes(&shared->off_cpu_due[preempted]) &&
	       stack_copy_now(thread, XPT_STACK_OFF_CPU, now);
}

/* Its name: as words, which takes less than a copy. */
static __always_inline void name_read(char *name, const struct task_struct *task)
{
	_Static_assert(sizeof(task->comm) == 2 * sizeof(__u64), "a name is two words");
	((__u64 *)name)[0] = ((const volatile __u64 *)task->comm)[0];
	((__u64 *)name)[1] = ((const volatile __u64 *)task->comm)[1];
}

static __always_inline void leave(struct xpt_record_off_cpu *record, struct task_struct *task, struct task_struct *next,
				  bool preempted, unsigned int state, __u64 now)
{
	__s32 call = call_number(task);

	record->start = now;
	record->woken = preempted ? now : 0;
	/* The call that is restarted has been seen before, unless the thread had not left the CPU in it. */
	if (call != CALL_RESTART || !is_restarted(record->syscall))
		record->syscall = call;
	record->reason = preempted ? XPT_OFF_CPU_PREEMPTED : reason_of(task, record->syscall, state);
	record->interrupt = 0;
	record->waker_tgid = record->waker_tid = 0;
	record->stacked = stacks_second && stack_is_due_now(task, preempted, now);
	record->next_tid = next->pid;
	record->next_tgid = next->tgid;
	name_read(record->next, next);
}

static __always_inline void resume(struct xpt_record_off_cpu *record, struct task_struct *task, __u64 now)
{
	const struct xpt_config *config = config_get();

	header_fill(&record->header, XPT_RECORD_OFF_CPU, sizeof(*record), task->tgid, now);
	record->tid = task->pid;
	/* Not woken from here: that takes locks, one of which may be held. */
	if (config && config->capture != XPT_CAPTURE_OFF)
		emit_data(config, record, sizeof(*record), 0);
	record->start = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(task_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct xpt_record_off_cpu *record = off_cpu_of(prev);
	__u64 now = 0; /* not known: most threads are not traced */

	if (record) {
		now = bpf_ktime_get_ns();
		leave(record, prev, next, preempt || !prev_state, prev_state, now);
	}
	record = off_cpu_of(next);
	if (record && record->start)
		resume(record, next, now ?: bpf_ktime_get_ns());
	return 0;
}

#define KERNEL_STACK 16384 /* bytes of a task's, at least */

/*
 * Whether the current task was interrupted, and is not what runs: interrupts have a stack of their own, unless they come while the
 * task is in user space, where it is in no system call. Where kernels keep what else shows that differs between them, and cannot be
 * read everywhere. place: any where this program may write.
 */
static __always_inline bool in_interrupt(struct task_struct *current, volatile __u64 *place)
{
	__u64 here = 0;

	if (!current->pid || (current->mm && call_number(current) < 0))
		return true;
	*place = (__u64)&here; /* no number may be made of an address otherwise */
	return *place - (__u64)current->stack >= KERNEL_STACK;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(task_waking, struct task_struct *task)
{
	struct xpt_record_off_cpu *record = off_cpu_of(task);
	struct task_struct *waker;

	if (!record || !record->start || record->woken)
		return 0;
	waker = bpf_get_current_task_btf();
	if (in_interrupt(waker, &record->woken)) {
		record->interrupt = 1;
		record->woken = bpf_ktime_get_ns();
		return 0;
	}
	record->woken = bpf_ktime_get_ns();
	record->waker_tid = waker->pid;
	record->waker_tgid = waker->tgid;
	name_read(record->waker, waker);
	return 0;
}
