// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Calls, for uprobe session links: one program for entry and return, and a call without need for its return never arms
 * it. Compiled twice, because the kernel's helper changed its prototype: without argument from 6.13 on, with the
 * context (XPT_SESSION_CONTEXT) later. Maps are those of the main object.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define XPT_DECLINES_RETURNS /* frames.bpf.h */
#include "calls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#ifdef XPT_SESSION_CONTEXT
extern bool bpf_session_is_return(void *context) __ksym;
#define IS_RETURN(context) bpf_session_is_return(context)
#else
extern bool bpf_session_is_return(void) __ksym;
#define IS_RETURN(context) bpf_session_is_return()
#endif

SEC("uprobe.s")
int call_session(struct pt_regs *context)
{
	__u64 cookie = bpf_get_attach_cookie(context);
	int answer;

	if (!IS_RETURN(context)) {
		answer = call_begin(context, cookie);
		/* The verifier does not analyse a separate function for what it returns, as the compiler does. */
		barrier_var(answer);
		return answer & RETURN_NOT_WANTED;
	}
	call_end(context, cookie);
	return 0;
}

/*
 * For what has no return to watch: the begin of a C++ function that may throw, a place within a function. A session link with a
 * filter arms the return in all other processes that have a probe at the same place, where its program is not run, whatever lies
 * on the stack there; so these have multi links.
 */
SEC("uprobe.s")
int call_place(struct pt_regs *context)
{
	call_begin(context, bpf_get_attach_cookie(context));
	return 0;
}
