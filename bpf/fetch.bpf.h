/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Values from the target's registers and memory, by a spec's fetches. Reads try without faulting first: that is nearly
 * always enough, and cheaper; a page that is not resident is then faulted in, which is why the programs sleep.
 */
#ifndef XPT_FETCH_BPF_H
#define XPT_FETCH_BPF_H

#include "arguments.bpf.h"
#include "emit.bpf.h"
#include "memory.bpf.h"

#define PAGE 4096

static __always_inline long argument_read(const struct registers *registers, __u32 number, __u64 *value)
{
	if (number < REGISTER_COUNT) {
		*value = registers->argument[number & (ARGUMENT_REGISTERS - 1)];
		return 0;
	}
#if defined(__TARGET_ARCH_arm64)
	if (number == XPT_SOURCE_RESULT) {
		*value = registers->result;
		return 0;
	}
#endif
	return read_user(value, sizeof(*value),
			 registers->stack + STACK_ARGUMENTS + 8 * (__u64)(number - REGISTER_COUNT));
}

/* What stands at the stack pointer of a function that is entered, or in the link register. */
static __always_inline void return_address_read(struct xpt_thread *thread)
{
	thread->return_address = thread->registers.link;
	if (!thread->return_address)
		read_user(&thread->return_address, sizeof(thread->return_address), thread->registers.stack);
}

static __always_inline __u64 narrow(__u64 value, __u8 type)
{
	switch (type) {
	case XPT_TYPE_U32:
		return (__u32)value;
	case XPT_TYPE_S32:
		return (__s64)(__s32)value;
	case XPT_TYPE_U16:
		return (__u16)value;
	case XPT_TYPE_U8:
		return (__u8)value;
	default:
		return value;
	}
}

static __always_inline __u32 width(__u8 type)
{
	switch (type) {
	case XPT_TYPE_U32:
	case XPT_TYPE_S32:
		return 4;
	case XPT_TYPE_U16:
		return 2;
	case XPT_TYPE_U8:
		return 1;
	default:
		return 8;
	}
}

/*
 * Functions that are not static are verified by themselves, once, and not again for every path that leads to them. That
 * is why the larger parts are such functions, and why they check their pointers again: loading takes milliseconds
 * instead of seconds.
 */

/* Follows the dereferences from *value; the last one reads only as many bytes as the type has. */
__noinline int fetch_follow(const struct xpt_fetch *fetch, __u64 *value)
{
	__u64 at, address;

	if (!fetch || !value)
		return -1;
	at = *value;
	for (__u32 i = 0; i < XPT_DEREF_MAX; i++) {
		bool last = i + 1 == fetch->derefs;

		if (i >= fetch->derefs)
			break;
		address = at + (__s64)fetch->offset[i];
		at = 0;
		/* Sizes must be constants to the verifier of older kernels. */
		if (last && width(fetch->type) == 4) {
			if (read_user(&at, 4, address))
				return -1;
		} else if (last && width(fetch->type) == 2) {
			if (read_user(&at, 2, address))
				return -1;
		} else if (last && width(fetch->type) == 1) {
			if (read_user(&at, 1, address))
				return -1;
		} else if (read_user(&at, 8, address)) {
			return -1;
		}
	}
	at += (__s64)fetch->last;
	*value = narrow(at, fetch->type);
	return 0;
}

/* A number that is there already: no memory to read, no function to call. */
static __always_inline bool is_plain(const struct xpt_fetch *fetch)
{
	return !fetch->derefs && fetch->type != XPT_TYPE_STRING;
}

static __always_inline __u64 plain_value(const struct xpt_fetch *fetch, __u64 value)
{
	return narrow(value + (__s64)fetch->last, fetch->type);
}

static __always_inline long follow(const struct xpt_fetch *fetch, __u64 *value)
{
	if (fetch->derefs)
		return fetch_follow(fetch, value);
	*value = plain_value(fetch, *value);
	return 0;
}

/* Bytes read into text; -1 when not even the first could be read. The text may lack a terminator. */
static __always_inline long read_text(char *text, __u64 address, bool *truncated)
{
	__u64 to_page_end = PAGE - (address & (PAGE - 1));
	long length = bpf_probe_read_user_str(text, XPT_STRING_MAX, (const void *)address);
	char byte;

	if (length < 0) {
		if (read_user(&byte, 1, address))
			return -1;
		if (to_page_end < XPT_STRING_MAX)
			read_user(&byte, 1, address + to_page_end);
		length = bpf_probe_read_user_str(text, XPT_STRING_MAX, (const void *)address);
	}
	/* For an empty one older kernels return 0, newer ones 1: with the terminator. */
	if (length >= 0) {
		*truncated = length == XPT_STRING_MAX;
		return length ? length - 1 : 0;
	}
	/* No terminator before memory that cannot be read: what there is. */
	*truncated = true;
	to_page_end &= XPT_STRING_MAX - 1;
	if (bpf_probe_read_user(text, to_page_end, (const void *)address))
		return -1;
	return to_page_end;
}

/* Emits a STRING record for the call of the thread's frame that is being worked on. */
__noinline int fetch_string(struct xpt_thread *thread, const struct xpt_spec *spec, __u32 number, __u64 address)
{
	const struct xpt_config *config = config_get();
	struct xpt_record_string *record;
	__u64 task = bpf_get_current_pid_tgid();
	bool truncated = false;
	__u32 size;
	long length;

	if (!thread || !spec || !config)
		return -1;
	record = (void *)thread->scratch;
	length = read_text((char *)thread->scratch + sizeof(*record), address, &truncated);
	if (length < 0)
		return -1;
	if (length > XPT_STRING_MAX)
		length = XPT_STRING_MAX;
	size = XPT_ALIGN8(sizeof(*record) + (__u32)length);
	record->header.kind = XPT_RECORD_STRING;
	record->header.size = size;
	record->header.tgid = task >> 32;
	record->header.time = thread->now;
	record->call_start = thread->start;
	record->tid = task;
	record->spec = spec->index;
	record->fetch = number;
	record->truncated = truncated;
	record->length = length;
	record->reserved = 0;
	size &= 511;
	if (size > sizeof(thread->scratch))
		return -1;
	if (spec->flags & XPT_SPEC_CONTROL)
		return emit_control(record, size);
	return emit_data(config, record, size, WAKEUP_WINDOW);
}

/* Emits a STRING record with the first of so many keys in an array. How many these are; 0: they cannot be read. */
__noinline int keys_emit(struct xpt_thread *thread, const struct xpt_spec *spec, __u32 number, __u64 address,
			 __u64 count)
{
	const struct xpt_config *config;
	struct xpt_record_string *record;
	__u64 *key;
	__u32 i, size;

	if (!thread || !spec)
		return 0;
	record = (void *)thread->scratch;
	key = thread->scratch + sizeof(*record) / 8;
	/* Sizes of what is read must be constants to the verifier. */
	if (count >= XPT_KEYS_OF_RECORD) {
		i = read_user(key, XPT_STRING_MAX, address) ? 0 : XPT_KEYS_OF_RECORD;
	} else {
		for (i = 0; i < XPT_KEYS_OF_RECORD && i < count; i++)
			if (read_user(&key[i], 8, address + 8 * i))
				break;
	}
	if (!i)
		return 0;
	/* Filled here: the verifier of Linux 6.1 follows each i where the length goes through a function; read back, it is any. */
	*(volatile __u32 *)&record->length = 8 * i;
	size = sizeof(*record) + *(volatile __u32 *)&record->length;
	record->header.kind = XPT_RECORD_STRING;
	record->header.size = size;
	record->header.tgid = bpf_get_current_pid_tgid() >> 32;
	record->header.time = thread->now;
	record->call_start = thread->start;
	record->tid = bpf_get_current_pid_tgid();
	record->spec = spec->index;
	record->fetch = number;
	record->truncated = 0;
	record->reserved = 0;
	size &= 511;
	config = config_get();
	if (config && size <= sizeof(thread->scratch))
		emit_data(config, record, size, WAKEUP_WINDOW);
	return i;
}

/* The keys of a wait for several; their number is another fetch. What is not read is counted. */
__noinline int fetch_keys(struct xpt_thread *thread, const struct xpt_spec *spec, __u32 number, __u64 address)
{
	const struct xpt_frame *frame;
	__u64 count = 0, left;

	if (!thread || !spec)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	for (__u32 i = 0; i < XPT_FETCH_MAX && i < spec->fetches; i++)
		if (spec->fetch[i].meaning == XPT_MEANING_COUNT && (frame->valid & (1 << i)))
			count = frame->value[i];
	left = count;
	for (__u32 i = 0; i < XPT_KEYS_MAX / XPT_KEYS_OF_RECORD && left; i++) {
		int keys = keys_emit(thread, spec, number, address + i * XPT_STRING_MAX, left);

		if (keys <= 0 || (__u64)keys > left)
			break;
		left -= keys;
	}
	if (left)
		count_losses(XPT_LOSS_KEYS, left);
	return 0;
}

/* Fetch i of the spec when the call begins. 0: the frame has it, or it comes at the return. */
__noinline int fetch_at_entry(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 number)
{
	__u64 i = number & (XPT_FETCH_MAX - 1);
	const struct xpt_fetch *fetch;
	struct xpt_frame *frame;
	__u64 value = 0;

	if (!thread || !spec)
		return -1;
	fetch = &spec->fetch[i];
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	if (fetch->source == XPT_SOURCE_RETURN)
		return 0;
	if (fetch->source != XPT_SOURCE_CONSTANT && argument_read(&thread->registers, fetch->source, &value))
		return -1;
	if (!fetch->at_return) {
		if (follow(fetch, &value))
			return -1;
		if (fetch->type == XPT_TYPE_STRING && fetch_string(thread, spec, i, value))
			return -1;
	}
	frame->value[i] = value;
	frame->valid |= 1 << i;
	return 0;
}

/* Fetch i of the spec when the call has returned; the frame is the one at the thread's depth. */
__noinline int fetch_at_return(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 number, __u64 returned)
{
	__u64 i = number & (XPT_FETCH_MAX - 1);
	const struct xpt_fetch *fetch;
	struct xpt_frame *frame;
	__u64 value;

	if (!thread || !spec)
		return -1;
	fetch = &spec->fetch[i];
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	value = frame->value[i];
	if (fetch->source == XPT_SOURCE_RETURN)
		value = returned;
	else if (!(frame->valid & (1 << i)))
		return 0;
	frame->valid &= ~(1 << i);
	if (follow(fetch, &value) || (fetch->type == XPT_TYPE_STRING && fetch_string(thread, spec, i, value)))
		return -1;
	if (fetch->meaning == XPT_MEANING_KEYS)
		fetch_keys(thread, spec, i, value);
	frame->value[i] = value;
	frame->valid |= 1 << i;
	return 0;
}

#endif
