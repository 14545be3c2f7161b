/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracepoints of drivers, and ioctls on their device nodes. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "kern/private.h"

#define KERNEL_MINOR_BITS 20 /* of a device number inside the kernel */

static int load(struct kern *kern, bool hold_interrupts, bool read_in_place)
{
	int error;

	kern->drivers = drivers_bpf__open();
	if (!kern->drivers)
		return -errno;
	kern->drivers->rodata->hold_interrupts = hold_interrupts;
	kern->drivers->rodata->read_in_place = read_in_place;
	error = maps_share(kern, kern->drivers->obj);
	if (!error)
		error = drivers_bpf__load(kern->drivers);
	if (error) {
		drivers_bpf__destroy(kern->drivers);
		kern->drivers = NULL;
	}
	return error;
}

int kern_open_drivers(struct kern *kern)
{
	/* What kernels can do, from the newest on. */
	static const struct {
		bool hold_interrupts, read_in_place;
	} ways[] = { { true, true }, { true, false }, { false, false } };
	int error = -EINVAL;

	if (kern->drivers)
		return 0;
	libbpf_tells(kern->log);
	for (size_t i = 0; error && error != -EPERM && i < sizeof(ways) / sizeof(ways[0]); i++)
		error = load(kern, ways[i].hold_interrupts, ways[i].read_in_place);
	libbpf_tells(NULL);
	return error;
}

int kern_set_event(struct kern *kern, const struct xpt_event_spec *spec)
{
	__u32 index = spec->index;

	if (!kern->drivers)
		return -EPERM;
	return bpf_map_update_elem(bpf_map__fd(kern->drivers->maps.event_specs), &index, spec, BPF_ANY);
}

int kern_set_node(struct kern *kern, dev_t device, __u16 index)
{
	__u32 key = major(device) << KERNEL_MINOR_BITS | minor(device);
	struct xpt_node node = { .index = index };

	if (!kern->drivers)
		return -EPERM;
	return bpf_map_update_elem(bpf_map__fd(kern->drivers->maps.nodes), &key, &node, BPF_ANY);
}

/* The program sees the event on all CPUs and of all tasks, whichever the perf event is for. */
static int open_tracepoint(__u32 id)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attributes),
		.config = id,
		.sample_period = 1,
	};
	int descriptor = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	return descriptor < 0 ? -errno : descriptor;
}

static int attach(struct bpf_program *program, __u32 tracepoint, __u64 cookie, struct attachment **result)
{
	LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = cookie);
	int descriptor = open_tracepoint(tracepoint), error;
	struct bpf_link *link;

	if (descriptor < 0)
		return descriptor;
	link = bpf_program__attach_perf_event_opts(program, descriptor, &options);
	if (link)
		return attachment_of_link(link, result);
	error = -errno;
	close(descriptor);
	return error;
}

int kern_attach_event(struct kern *kern, __u32 tracepoint, __u16 first, struct attachment **result)
{
	return kern->drivers ? attach(kern->drivers->progs.driver_event, tracepoint, first, result) : -EPERM;
}

/* The return first: an ioctl without its entry makes no record, one without its return would leave an open one. */
int kern_attach_ioctls(struct kern *kern, __u32 enter, __u32 leave, struct attachment *result[2])
{
	int error;

	result[0] = result[1] = NULL;
	if (!kern->drivers)
		return -EPERM;
	error = attach(kern->drivers->progs.ioctl_leave, leave, 0, &result[0]);
	if (!error)
		error = attach(kern->drivers->progs.ioctl_enter, enter, 0, &result[1]);
	if (error) {
		kern_detach(kern, result, 2);
		result[0] = result[1] = NULL;
	}
	return error;
}

/*
 * How often the kernel has not run the program, as it was running already on that CPU: in what an interrupt had taken over, or,
 * since Linux 7.0, what another thread had.
 */
static __u64 runs_missed(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) ? 0 : info.recursion_misses;
}

__u64 events_missed(const struct kern *kern)
{
	__u64 missed = runs_missed(kern->main->progs.process_fork) + runs_missed(kern->main->progs.process_exec);

	return missed + (kern->drivers ? runs_missed(kern->drivers->progs.driver_event) : 0);
}

__u64 kern_tasks_missed(const struct kern *kern)
{
	return runs_missed(kern->main->progs.process_fork) + runs_missed(kern->main->progs.process_exec) +
	       runs_missed(kern->main->progs.process_exit);
}
