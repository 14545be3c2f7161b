// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Sets the sampling rate of one program, for user space: an update of the table from there would overwrite counts that
 * change at the same time. A program that has not run yet has no entry and gets none here: its handle may belong to
 * another program by now.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "maps.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("syscall")
int set_sampling(struct xpt_sampling *sampling)
{
	struct xpt_program_key key = sampling->key;
	struct xpt_program_entry *entry = bpf_map_lookup_elem(&programs, &key);

	/* Without a time yet: it is being made at this moment. */
	if (!entry || !entry->since || entry->since > sampling->seen)
		return 1;
	entry->sample_every = sampling->sample_every;
	return 0;
}
