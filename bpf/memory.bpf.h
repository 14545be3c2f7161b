/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Memory of the current process that is not resident. A program that sleeps may fault it in, but is inside the kernel's
 * read section for such programs meanwhile: until it is out, no probe of any process can be removed. A page that never
 * comes would keep all collectors of the machine from ending. So nothing is faulted in where user space answers for a
 * page: FUSE, userfaultfd.
 */
#ifndef XPT_MEMORY_BPF_H
#define XPT_MEMORY_BPF_H

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define MEMORY_TRIES 1024    /* while another thread of the process changes its mappings */
#define MEMORY_BUSY (-16)    /* -EBUSY: that thread holds the lock of the mappings */
#define FUSE_WORD 0x65737566 /* "fuse", also of "fuseblk"; "virtiofs" is the host's */

struct memory_question {
	__u64 address;
	bool faultable;
	__u32 size; /* bytes that the mapping has to have from there on */
};

/* Whether a server in user space answers for the pages of a mapped file. Of overlayfs, vm_file is the file below it. */
static __always_inline bool memory_is_fuse(struct file *file)
{
	__u32 word = 0;

	return bpf_probe_read_kernel(&word, sizeof(word), file->f_inode->i_sb->s_type->name) || word == FUSE_WORD;
}

static long memory_look(struct task_struct *task, struct vm_area_struct *vma, struct memory_question *question)
{
	struct file *file = vma->vm_file;

	if (bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) && vma->vm_userfaultfd_ctx.ctx)
		return 0;
	if (file && memory_is_fuse(file))
		return 0;
	question->faultable = question->address + question->size <= vma->vm_end;
	return 0;
}

static __always_inline long memory_ask(struct memory_question *question)
{
	return bpf_find_vma(bpf_get_current_task_btf(), question->address, memory_look, question, 0);
}

static long memory_try(__u32 turn, struct memory_question *question)
{
	return memory_ask(question) != MEMORY_BUSY;
}

/* Whether bytes of the current process lie in one mapping and can be faulted in without waiting for user space. */
__noinline int memory_is_one(__u64 address, __u32 size)
{
	struct memory_question question = { address, false, size };

	bpf_loop(MEMORY_TRIES, memory_try, &question, 0);
	return question.faultable;
}

/* The same of a single page. */
static __always_inline int memory_is_faultable(__u64 address)
{
	return memory_is_one(address, 1);
}

#ifndef XPT_ATOMIC /* in programs that may not sleep, nothing is faulted in */
/* Both ends of a piece that is not longer than a page. Between here and the copy another thread may replace the mapping. */
static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	if (!bpf_probe_read_user(to, size, (const void *)address))
		return 0;
	if (!memory_is_faultable(address) || !memory_is_faultable(address + size - 1))
		return -1;
	return bpf_copy_from_user(to, size, (const void *)address);
}
#else
static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address);
}
#endif

#endif
