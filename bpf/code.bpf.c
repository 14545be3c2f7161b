// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Code objects on their way into a runtime: a program of its own at the entry of the calls that load them, beside the one
 * that records the call. What is small is copied in pieces; for what is not, or has no known size, the thread waits here
 * until user space has read its memory.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "family.bpf.h"
#include "fetch.bpf.h"
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PIECES_MAX 96 /* of one object; a page each */
#define SMALL (PIECES_MAX * XPT_CODE_PIECE_MAX)
#define PARTS_COPIED 16

#define ELF_MAGIC 0x464c457f	  /* "\x7f" "ELF" */
#define FATBIN_MAGIC 0xba55ed50	  /* of CUDA */
#define FATBIN_WRAPPER 0x466243b1 /* {magic, version, address of the object, ...} */
#define BUNDLE_WORD 0x414c435f5f  /* "__CLA" of "__CLANG_OFFLOAD_BUNDLE__" */
#define BUNDLE_BITS 40
#define CCOB_MAGIC 0x424f4343 /* "CCOB": a compressed one */

/* Contents of the first bytes of an object. */
struct head {
	union {
		__u64 word[8];
		struct {
			__u32 magic;
			__u16 version;
			__u16 header_size;
			__u64 size;
		} fatbin;
		struct {
			__u32 magic;
			__u8 class, order;
			__u16 ident[5];
			__u16 type, machine;
			__u32 version;
			__u64 entry, program_headers, section_headers;
			__u32 flags;
			__u16 size, program_size, program_count, section_size, section_count, names;
		} elf;
		__u8 byte[64];
	};
};

#define PIECE_WORDS (sizeof(struct xpt_record_code_piece) / 8)

/* As in ELF files of 64 bits. */
struct elf_section {
	__u32 name, type;
	__u64 flags, address, offset, size;
	__u32 link, info;
	__u64 alignment, entry_size;
};
_Static_assert(sizeof(struct elf_section) == 64, "as in the file");
#define SECTION_EMPTY 0
#define SECTION_NO_BITS 8
#define SECTIONS_MAX 128 /* that are read here; files with more are left to user space */

/* What a thread works on while it gives an object; not on the stack, for the reason that thread.bpf.h has. */
struct code_thread {
	struct registers registers;
	struct xpt_record_code record;
	struct head head;
	struct elf_section section;
	__u64 from; /* address of what is copied, and how much of it there is */
	__u64 left;
	__u64 piece[PIECE_WORDS + XPT_CODE_PIECE_MAX / 8]; /* a struct xpt_record_code_piece, and its bytes */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct code_thread);
} code_threads SEC(".maps");

/* By index of the call's spec. Sized when loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xpt_code_spec);
} code_specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 * 1024 * 1024);
} code_ring SEC(".maps");

/* Sends the piece that has been read. */
__noinline int piece_send(struct code_thread *thread, __u32 length)
{
	struct xpt_record_code_piece *piece;
	__u32 size;

	if (!thread || length > XPT_CODE_PIECE_MAX)
		return -1;
	piece = (void *)thread->piece;
	size = XPT_ALIGN8(sizeof(*piece) + length);
	header_fill(&piece->header, XPT_RECORD_CODE_PIECE, size, thread->record.header.tgid,
		    thread->record.header.time);
	piece->tid = thread->record.tid;
	piece->length = length;
	piece->offset = thread->record.copied;
	if (size > sizeof(thread->piece))
		return -1;
	if (bpf_ringbuf_output(&code_ring, piece, size, BPF_RB_NO_WAKEUP)) {
		thread->record.flags |= XPT_CODE_CROWDED;
		return -1;
	}
	thread->record.copied += length;
	return 0;
}

/* The place of the first 0 byte among those that were read, or length. */
__noinline int find_end(struct code_thread *thread, __u32 length)
{
	__u64 word = 0;
	__u32 i;

	if (!thread)
		return length;
	for (i = 0; i < XPT_CODE_PIECE_MAX / 8; i++) {
		if (i * 8 >= length)
			return length;
		word = thread->piece[PIECE_WORDS + i];
		if ((word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull)
			break;
	}
	i *= 8;
	for (__u32 n = 0; n < 8 && (word & 0xff); n++) {
		word >>= 8;
		i++;
	}
	return i < length ? i : length;
}

/* Copies the next piece of what is left: 1: there is more, 0: that was all, negative: it cannot be. Of text, left is what may be read. */
__noinline int copy_piece(struct code_thread *thread, __u32 text)
{
	__u32 length, end;

	if (!thread)
		return -1;
	/* A page at a time: text may end before one that cannot be read. */
	length = PAGE - (thread->from & (PAGE - 1));
	if (length > thread->left)
		length = thread->left;
	if (!length)
		return -1;
	/* It is in range: the verifier of older kernels forgets what was compared. */
	length = ((length - 1) & (XPT_CODE_PIECE_MAX - 1)) + 1;
	if (read_user(thread->piece + PIECE_WORDS, length, thread->from)) {
		thread->record.flags |= XPT_CODE_UNREADABLE;
		return -1;
	}
	end = text ? find_end(thread, length) : length;
	if (end && piece_send(thread, end))
		return -1;
	thread->from += length;
	thread->left -= length;
	if (end < length)
		return 0;
	return thread->left ? 1 : text ? -1 : 0;
}

/* Copies size bytes from an address, or where that is 0 text; 0: all of it. What is sent is behind what was before. */
__noinline int copy_bytes(struct code_thread *thread, __u64 address, __u64 size)
{
	__u64 room;
	int more = 1;

	if (!thread)
		return -1;
	room = thread->record.copied < SMALL ? SMALL - thread->record.copied : 0;
	if (size > room || !room)
		return -1;
	thread->from = address;
	thread->left = size ?: room;
	for (__u32 i = 0; i < 2 * PIECES_MAX && more > 0; i++)
		more = copy_piece(thread, !size);
	return more;
}

/* The end of section number i of an object that begins at the record's address, if it is behind *end. */
__noinline int section_end(struct code_thread *thread, __u32 number, __u64 *end)
{
	struct elf_section *section;
	__u64 at;

	if (!thread || !end)
		return -1;
	section = &thread->section;
	at = thread->record.address + thread->head.elf.section_headers + number * sizeof(*section);
	if (read_user(section, sizeof(*section), at))
		return -1;
	if (section->type != SECTION_EMPTY && section->type != SECTION_NO_BITS &&
	    section->offset + section->size > *end)
		*end = section->offset + section->size;
	return 0;
}

/* An ELF file ends with its headers or with a section that lies behind them. 0: there are too many, or they are invalid. */
__noinline int size_of_elf(struct code_thread *thread, __u64 *size)
{
	const struct head *head;
	__u64 end, other;
	__u32 count;

	if (!thread || !size)
		return -1;
	head = &thread->head;
	count = head->elf.section_count;
	*size = 0;
	end = head->elf.section_headers + (__u64)head->elf.section_size * count;
	other = head->elf.program_headers + (__u64)head->elf.program_size * head->elf.program_count;
	if (other > end)
		end = other;
	if (count > SECTIONS_MAX || (count && head->elf.section_size != sizeof(thread->section)))
		return 0;
	*size = end;
	for (__u32 i = 0; i < SECTIONS_MAX; i++) {
		if (i >= count)
			return 0;
		if (section_end(thread, i, size)) {
			*size = 0;
			return 0;
		}
	}
	return 0;
}

/* Size of an object that begins with the thread's head; 0: not in the head. */
static __always_inline int size_of_head(struct code_thread *thread, __u64 *size)
{
	const struct head *head;

	if (!thread || !size)
		return -1;
	head = &thread->head;
	*size = 0;
	if (head->fatbin.magic == FATBIN_MAGIC)
		*size = head->fatbin.size + head->fatbin.header_size;
	else if (head->elf.magic == ELF_MAGIC && head->elf.class == 2 && head->elf.order == 1)
		size_of_elf(thread, size);
	return 0;
}

static __always_inline bool is_text(const struct head *head)
{
	__u8 first = head->byte[0];

	if (head->fatbin.magic == CCOB_MAGIC || (head->word[0] & ((1ull << BUNDLE_BITS) - 1)) == BUNDLE_WORD)
		return false;
	return (first >= ' ' && first < 0x7f) || first == '\n' || first == '\t' || first == '\r';
}

/* The first bytes of what is at the record's address. */
__noinline int head_read(struct code_thread *thread)
{
	__u64 address;

	if (!thread)
		return -1;
	address = thread->record.address;
	if (!read_user(&thread->head, sizeof(thread->head), address))
		return 0;
	/* Short, before a page that cannot be read. */
	__builtin_memset(&thread->head, 0, sizeof(thread->head));
	if (!read_user(&thread->head, 1, address))
		return 0;
	thread->record.flags |= XPT_CODE_UNREADABLE;
	return -1;
}

/*
 * An object of which only the address is known: how large is it? Sets the record's size, or that it is text. CUDA takes the wrapper
 * that its compiler puts around an object as well as the object.
 */
__noinline int head_inspect(struct code_thread *thread)
{
	if (!thread || head_read(thread))
		return -1;
	if (thread->head.fatbin.magic == FATBIN_WRAPPER) {
		thread->record.address = thread->head.fatbin.size;
		if (head_read(thread))
			return -1;
	}
	/* The magic number of a fat binary begins with a letter. */
	size_of_head(thread, &thread->record.size);
	if (!thread->record.size && is_text(&thread->head))
		thread->record.flags |= XPT_CODE_TEXT;
	return 0;
}

/* Sends the record; the thread waits until its memory has been read, if that is needed. */
__noinline int record_send(struct code_thread *thread, __u32 wait)
{
	const struct xpt_config *config = config_get();
	__u64 deadline;

	if (!thread || !config)
		return 0;
	deadline = thread->record.header.time + config->wait_codes;
	/* Its memory may have taken long to read. */
	if (wait && bpf_ktime_get_ns() < deadline)
		thread->record.ticket = wait_ticket(config->wait_codes);
	if (wait && !thread->record.ticket)
		thread->record.flags |= XPT_CODE_NO_WAIT;
	if (bpf_ringbuf_output(&code_ring, &thread->record, sizeof(thread->record), BPF_RB_FORCE_WAKEUP))
		count_loss(XPT_LOSS_RING_FULL);
	else
		wait_for(thread->record.ticket, deadline, thread->registers.stack, XPT_LOSS_LATE_CODES);
	return 0;
}

/* Fetch number of the code's spec. False: it is not there, or cannot be read. */
__noinline int code_fetch(struct code_thread *thread, const struct xpt_code_spec *spec, __u32 number, __u64 *value)
{
	const struct xpt_fetch *fetch;

	if (!thread || !spec || !value || !(spec->given >> (number & 3) & 1) || number > XPT_CODE_COUNT)
		return 0;
	fetch = &spec->fetch[number];
	if (argument_read(&thread->registers, fetch->source, value) || follow(fetch, value)) {
		thread->record.flags |= XPT_CODE_UNREADABLE;
		return 0;
	}
	return 1;
}

/* Address and size of a part, from the arrays that the record has. */
__noinline int part_read(struct code_thread *thread, __u32 number, __u64 *address, __u64 *size)
{
	if (!thread || !address || !size)
		return -1;
	*size = 0;
	if (read_user(address, sizeof(*address), thread->record.address + 8 * (__u64)number) ||
	    (thread->record.size && read_user(size, sizeof(*size), thread->record.size + 8 * (__u64)number))) {
		thread->record.flags |= XPT_CODE_UNREADABLE;
		return -1;
	}
	return 0;
}

/* Several objects, or one in several parts: copied one behind the other. 0: all of them. */
static __always_inline int copy_parts(struct code_thread *thread)
{
	__u64 address = 0, size = 0;

	if (!thread || thread->record.count > PARTS_COPIED)
		return -1;
	for (__u32 i = 0; i < PARTS_COPIED; i++) {
		if (i >= thread->record.count)
			break;
		if (part_read(thread, i, &address, &size) || copy_bytes(thread, address, size))
			return -1;
	}
	return 0;
}

/* Of one part the address and size are as those of any object. */
__noinline int take_parts(struct code_thread *thread, __u64 count)
{
	__u64 address = 0, size = 0;

	if (!thread)
		return -1;
	if (count != 1) {
		thread->record.count = count > 0xffffffff ? 0xffffffff : count;
		return copy_parts(thread);
	}
	if (part_read(thread, 0, &address, &size))
		return -1;
	thread->record.address = address;
	thread->record.size = size;
	if (!size)
		thread->record.flags |= XPT_CODE_TEXT;
	return copy_bytes(thread, address, size);
}

/* Copies by the record's source; 0: all of it, else the thread has to wait. */
__noinline int code_copy(struct code_thread *thread, const struct xpt_code_spec *spec)
{
	__u64 count = 0;

	if (!thread || !spec)
		return 0;
	if (spec->source == XPT_CODE_PARTS) {
		code_fetch(thread, spec, XPT_CODE_COUNT, &count);
		return take_parts(thread, count);
	}
	if (!thread->record.size && head_inspect(thread))
		return -1;
	if (!thread->record.size && !(thread->record.flags & XPT_CODE_TEXT))
		return -1;
	return copy_bytes(thread, thread->record.address, thread->record.size);
}

#define CAPABILITIES_READ_ALL (1 << 1 | 1 << 2) /* CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH */

/* The thread may execute another program, with other rights, before its file is opened. */
static __always_inline void rights_read(struct xpt_record_code *record)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct cred *cred = task->cred;
	__u32 effective = 0;

	record->uid = cred->fsuid.val;
	record->gid = cred->fsgid.val;
	/* The low half, in every kernel's layout; in a namespace of its own it is about its own files only. */
	bpf_core_read(&effective, sizeof(effective), &cred->cap_effective);
	record->reads_all = !cred->user_ns->level && (effective & CAPABILITIES_READ_ALL);
}

/* The record of what the call gives, as far as its arguments have it. */
__noinline int code_begin(struct code_thread *thread, const struct xpt_code_spec *spec)
{
	__u64 task = bpf_get_current_pid_tgid();
	struct xpt_record_code *record;

	if (!thread || !spec)
		return 0;
	record = &thread->record;
	header_fill(&record->header, XPT_RECORD_CODE, sizeof(*record), task >> 32, bpf_ktime_get_ns());
	rights_read(record);
	record->tid = task;
	record->spec = spec->index;
	record->source = spec->source;
	record->reserved = 0;
	record->address = record->size = record->copied = 0;
	record->count = record->flags = 0;
	record->ticket = 0;
	code_fetch(thread, spec, XPT_CODE_BYTES, &record->address);
	code_fetch(thread, spec, XPT_CODE_SIZE, &record->size);
	return 0;
}

SEC("uprobe.s")
int code_entry(struct pt_regs *context)
{
	__u64 cookie = bpf_get_attach_cookie(context);
	__u32 index = cookie & 0xffff;
	const struct xpt_code_spec *spec = bpf_map_lookup_elem(&code_specs, &index);
	const struct xpt_config *config = config_get();
	struct task_struct *task = bpf_get_current_task_btf();
	struct code_thread *thread;
	int all;

	if (!spec || !config || config->capture != XPT_CAPTURE_ON || task->tgid == config->self ||
	    !is_meant(cookie, task->tgid))
		return 0;
	thread = bpf_task_storage_get(&code_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		count_loss(XPT_LOSS_THREAD);
		return 0;
	}
	registers_read(context, &thread->registers);
	code_begin(thread, spec);
	/* It may be closed directly after the call. */
	if (spec->source == XPT_CODE_DESCRIPTOR) {
		record_send(thread, 1);
		return 0;
	}
	if (spec->source == XPT_CODE_PATH) {
		thread->record.flags |= XPT_CODE_TEXT;
		all = copy_bytes(thread, thread->record.address, 0);
	} else {
		all = code_copy(thread, spec);
	}
	if (!all)
		thread->record.flags |= XPT_CODE_WHOLE;
	record_send(thread, all && spec->source != XPT_CODE_PATH && thread->record.address &&
				    !(thread->record.flags & XPT_CODE_UNREADABLE));
	return 0;
}
