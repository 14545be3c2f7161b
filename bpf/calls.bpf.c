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

/* All mappings of a process: struct xpt_mapping. */
SEC("iter/task_vma")
int process_mappings(struct bpf_iter__task_vma *context)
{
	struct vm_area_struct *vma = context->vma;
	struct xpt_mapping mapping = {};
	struct file *file;

	if (!vma)
		return 0;
	mapping.start = vma->vm_start;
	file = vma->vm_file;
	if (file) {
		mapping.device = file->f_inode->i_sb->s_dev;
		mapping.is_fuse = memory_is_fuse(file);
	}
	bpf_seq_write(context->meta->seq, &mapping, sizeof(mapping));
	return 0;
}
