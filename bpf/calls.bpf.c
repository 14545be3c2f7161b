// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Calls, for links that have one program at the entry and another at the return: multi links and perf uprobes. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "calls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe.s")
int call_entry(struct pt_regs *context)
{
	call_begin(context, bpf_get_attach_cookie(context));
	return 0;
}

SEC("uretprobe.s")
int call_return(struct pt_regs *context)
{
	call_end(context, bpf_get_attach_cookie(context));
	return 0;
}
