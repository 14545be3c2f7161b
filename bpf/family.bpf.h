/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The family: processes that are traced through probes which are in every process of a file, as a link for each of them
 * would make every call of all slower. Processes that do nothing traced are known here only.
 */
#ifndef XPT_FAMILY_BPF_H
#define XPT_FAMILY_BPF_H

#include "emit.bpf.h"

static __always_inline struct xpt_family *family_get(__u32 tgid)
{
	__u32 word = tgid / 64;

	return bpf_map_lookup_elem(&family, &word);
}

static __always_inline __u64 family_bit(__u32 tgid)
{
	return 1ull << (tgid % 64);
}

static __always_inline bool family_has(__u32 tgid)
{
	const struct xpt_family *family = family_get(tgid);

	return family && (family->member & family_bit(tgid));
}

/* Of probes: those of the family are for members, those of one process for that one. */
static __always_inline bool is_meant(__u64 cookie, __u32 tgid)
{
	const struct xpt_family *family;

	if (!(cookie & (XPT_COOKIE_FAMILY | XPT_COOKIE_OWN)))
		return true;
	family = family_get(tgid);
	return family && ((cookie & XPT_COOKIE_OWN ? family->own : family->member) & family_bit(tgid));
}

static __always_inline bool family_is_active(__u32 tgid)
{
	const struct xpt_family *family = family_get(tgid);

	return family && (family->active & family_bit(tgid));
}

static __always_inline bool family_is_private(__u32 tgid)
{
	const struct xpt_family *family = family_get(tgid);

	return family && (family->private & family_bit(tgid));
}

/* It has made a traced call. */
static __always_inline void family_activate(__u32 tgid)
{
	struct xpt_family *family = family_get(tgid);

	if (family && !(family->active & family_bit(tgid)))
		__sync_fetch_and_or(&family->active, family_bit(tgid));
}

static __always_inline void family_report(__u32 tgid)
{
	struct xpt_family *family = family_get(tgid);

	if (family)
		__sync_fetch_and_or(&family->reported, family_bit(tgid));
}

static __always_inline void family_add(__u32 tgid)
{
	struct xpt_shared *shared = shared_get();
	struct xpt_family *family = family_get(tgid);

	if (family && shared && !(__sync_fetch_and_or(&family->member, family_bit(tgid)) & family_bit(tgid)))
		__sync_fetch_and_add(&shared->members, 1);
}

#define LEFT_MEMBER 1
#define LEFT_REPORTED 2

/* The process has ended: what it was, bits as above. */
static __always_inline __u32 family_remove(__u32 tgid)
{
	struct xpt_shared *shared = shared_get();
	struct xpt_family *family = family_get(tgid);
	__u64 bit = family_bit(tgid);
	__u32 left = 0;

	if (!family || !shared)
		return 0;
	if (family->own & bit) {
		__sync_fetch_and_and(&family->own, ~bit);
		__sync_fetch_and_and(&family->private, ~bit);
	}
	if ((family->reported | family->active) & bit) {
		__sync_fetch_and_and(&family->reported, ~bit);
		__sync_fetch_and_and(&family->active, ~bit);
		left = LEFT_REPORTED;
	}
	if (!(family->member & bit) || !(__sync_fetch_and_and(&family->member, ~bit) & bit))
		return left;
	__sync_fetch_and_add(&shared->members, -1);
	return left | LEFT_MEMBER;
}

static __always_inline bool is_target(__u32 tgid)
{
	return family_has(tgid) || bpf_map_lookup_elem(&processes, &tgid);
}

#endif
