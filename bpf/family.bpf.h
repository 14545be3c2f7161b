/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The family: processes that are traced through probes which are in every process of a file, as a link for each of them
 * would make every call of all slower. One bit a process, by its PID.
 */
#ifndef XPT_FAMILY_BPF_H
#define XPT_FAMILY_BPF_H

#include "emit.bpf.h"

static __always_inline __u64 *family_word(__u32 tgid)
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
	const __u64 *word = family_word(tgid);

	return word && (*word & family_bit(tgid));
}

static __always_inline void family_add(__u32 tgid)
{
	struct xpt_shared *shared = shared_get();
	__u64 *word = family_word(tgid);

	if (word && shared && !(__sync_fetch_and_or(word, family_bit(tgid)) & family_bit(tgid)))
		__sync_fetch_and_add(&shared->members, 1);
}

static __always_inline bool is_target(__u32 tgid)
{
	return family_has(tgid) || bpf_map_lookup_elem(&processes, &tgid);
}

/* False: it was not a member. */
static __always_inline bool family_remove(__u32 tgid)
{
	struct xpt_shared *shared = shared_get();
	__u64 *word = family_word(tgid);

	if (!word || !shared || !(*word & family_bit(tgid)) ||
	    !(__sync_fetch_and_and(word, ~family_bit(tgid)) & family_bit(tgid)))
		return false;
	__sync_fetch_and_add(&shared->members, -1);
	return true;
}

#endif
