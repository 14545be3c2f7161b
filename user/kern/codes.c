/* SPDX-License-Identifier: BSD-2-Clause */
/* What captures code objects, on the kernel's side. */
#include <errno.h>

#include <bpf/bpf.h>

#include "kern/private.h"

int codes_load(struct kern *kern, size_t spec_count)
{
	int error;

	kern->codes = code_bpf__open();
	if (!kern->codes)
		return -errno;
	if (kern->link != LINK_PERF)
		bpf_program__set_expected_attach_type(kern->codes->progs.code_entry, ATTACH_UPROBE_MULTI);
	error = bpf_map__set_max_entries(kern->codes->maps.code_specs, spec_count ?: 1);
	if (!error)
		error = maps_share(kern, kern->codes->obj);
	return error ?: code_bpf__load(kern->codes);
}

int kern_set_code(struct kern *kern, const struct xpt_code_spec *spec)
{
	__u32 index = spec->index;

	if (!kern->codes)
		return -EPERM;
	return bpf_map_update_elem(bpf_map__fd(kern->codes->maps.code_specs), &index, spec, BPF_ANY);
}
