// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Events of drivers: one program for all tracepoints, with the attach cookie to find the record layout of each; and the
 * ioctls on device nodes. These programs are not preempted and do not nest on a CPU: the kernel skips an event that
 * comes in an interrupt of one of them. Jobs end in interrupts, so these are held off for the 200 ns, where the kernel
 * can.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "family.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define XPT_DEVICES_MAX 1024
#define XPT_CONTEXTS_MAX 65536
#define XPT_CLIENTS_MAX 16384
#define LOOK_EVERY 8		 /* records: how full the ring is costs time to find out */
#define CHARACTER_DEVICE 0020000 /* S_IFCHR */
#define FILE_TYPE 0170000	 /* S_IFMT */

/* What to do at an event; the attach cookie is the index of the first one of a tracepoint. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, XPT_EVENT_MAX);
	__type(key, __u32);
	__type(value, struct xpt_event_spec);
} event_specs __weak SEC(".maps");

/* A device as the events of a driver name it: a number, or the sum over a text. */
struct device_key {
	__u64 group;
	__u64 device;
};

/* Devices that a target has queued something on. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XPT_DEVICES_MAX);
	__type(key, struct device_key);
	__type(value, __u8);
} devices __weak SEC(".maps");

/* Contexts of those devices: group in the high half, low 32 bits of the first part of a key in the other. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XPT_CONTEXTS_MAX);
	__type(key, __u64);
	__type(value, __u8);
} contexts __weak SEC(".maps");

/* Processes that have queued jobs: drivers do not report the end of a job that is dropped because its process has ended. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XPT_CLIENTS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} clients __weak SEC(".maps");

/* Device numbers of followed nodes, as the kernel has them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XPT_NODE_MAX);
	__type(key, __u32);
	__type(value, struct xpt_node);
} nodes __weak SEC(".maps");

#define TEXT_WORDS (XPT_EVENT_TEXT / 8)
#define VALUE_WORDS (XPT_EVENT_VALUES_MAX * TEXT_WORDS)

/* What an event is worked on in. */
struct event_room {
	__u64 context; /* as a key of the map */
	struct device_key device;
	/* What was met last and is known: most events are of the same as the one before. */
	__u64 last_context;
	struct device_key last_device;
	__u64 last_target_start, last_client_start; /* when it was started: detects a reused PID */
	__u32 last_target, last_client;
	__u32 emitted;		/* records */
	__u32 words;		/* of the values in the record */
	__u32 span;		/* bytes of the record that were read at once */
	__u64 text[TEXT_WORDS]; /* that was read last */
	__u64 base;		/* of the tracepoint's record */
	__u8 raw[XPT_EVENT_SPAN_MAX + XPT_EVENT_TEXT];
	__u64 built[sizeof(struct xpt_record_event) / 8 + VALUE_WORDS + TEXT_WORDS]; /* the record */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_room);
} event_rooms __weak SEC(".maps");

/* An ioctl that has not returned. */
struct open_ioctl {
	__u64 start;
	__u32 command;
	__u16 node;
	__u16 open;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct open_ioctl);
} ioctls __weak SEC(".maps");

static __always_inline struct xpt_record_event *record_of(struct event_room *room)
{
	return (void *)room->built;
}

/* A function of its own: else older kernels verify all that follows once for each way through it. */
__noinline int is_target_now(__u32 tgid)
{
	return is_target(tgid);
}

static __always_inline bool is_of_target(struct event_room *room, struct task_struct *task)
{
	__u64 start = task->group_leader->start_time;
	__u32 tgid = task->tgid;

	if (room->last_target == tgid && room->last_target_start == start)
		return true;
	if (!is_target_now(tgid))
		return false;
	room->last_target = tgid;
	room->last_target_start = start;
	return true;
}

/* Whether a call will be recorded around what the thread does. As above. */
__noinline int is_in_call(void)
{
	const struct xpt_thread *thread = thread_get(bpf_get_current_task_btf());

	for (__u32 i = 0; thread && i < XPT_DEPTH_MAX && i < thread->depth; i++)
		if (!(thread->frame[i].flags & FRAME_LEFT_OUT))
			return true;
	return false;
}

/* False where the kernel takes no address for one of a type that is not known (before 6.17). */
const volatile bool read_in_place = true;

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak;

static __always_inline bool is_read_in_place(void)
{
	return read_in_place && bpf_rdonly_cast;
}

/* 8 bytes of the tracepoint's record: where it is, or of the copy. */
static __always_inline __u64 raw_word(const struct event_room *room, __u32 offset)
{
	if (is_read_in_place())
		return *(const __u64 *)bpf_rdonly_cast((const void *)(room->base + offset), 0);
	return *(const __u64 *)(room->raw + (offset & (XPT_EVENT_SPAN_MAX - 1)));
}

static __always_inline __u64 raw_number(const struct event_room *room, const struct xpt_event_field *field)
{
	__u64 value = raw_word(room, field->offset);
	__u32 unused = (64 - 8 * field->size) & 63;

	return field->is_signed ? (__u64)((__s64)(value << unused) >> unused) : value << unused >> unused;
}

/* Copies a text that is length bytes long, with zeros behind it. */
static __always_inline void copy_text(struct event_room *room, __u32 offset, __u32 length)
{
	for (__u32 i = 0; i < TEXT_WORDS; i++) {
		__u32 before = 8 * i;

		if (length >= before + 8)
			room->text[i] = raw_word(room, offset + before);
		else if (length > before)
			room->text[i] = raw_word(room, offset + before) & ((1ull << (8 * (length - before) & 63)) - 1);
		else
			room->text[i] = 0;
	}
}

/* Reads the text of a field into room->text. 0, or negative: it cannot be read. */
__noinline int read_text(struct event_room *room, const struct xpt_event_field *field)
{
	__u32 size, offset;
	__u64 from;

	if (!room || !field)
		return -1;
	size = field->size;
	offset = field->offset;
	if (field->access == XPT_ACCESS_DATA_LOC || field->access == XPT_ACCESS_RELATIVE) {
		__u32 place = raw_number(room, field);

		offset = (place & 0xffff) + (field->access == XPT_ACCESS_RELATIVE ? offset + 4 : 0);
		size = place >> 16;
		/* Its length counts the 0 byte. */
		if (size && size <= XPT_EVENT_TEXT && (is_read_in_place() || offset + size <= room->span)) {
			copy_text(room, offset, size - 1);
			return 0;
		}
	}
	from = field->access == XPT_ACCESS_KERNEL_STRING ? raw_number(room, field) : room->base + offset;
	if (field->access != XPT_ACCESS_TEXT || size > XPT_EVENT_TEXT)
		size = XPT_EVENT_TEXT;
	for (int i = 0; i < TEXT_WORDS; i++)
		room->text[i] = 0;
	return bpf_probe_read_kernel_str(room->text, size, (void *)from) < 0 ? -1 : 0;
}

static __always_inline bool text_is(const __u64 text[TEXT_WORDS], const char *wanted)
{
	const __u64 *words = (const void *)wanted;

	return text[0] == words[0] && text[1] == words[1] && text[2] == words[2] && text[3] == words[3];
}

/* Whether the event is what the spec is about. */
static __always_inline bool counts(struct event_room *room, const struct xpt_event_spec *spec)
{
	bool same;

	if (!(spec->flags & XPT_EVENT_CONDITION))
		return true;
	if (spec->condition.access == XPT_ACCESS_NUMBER)
		same = raw_number(room, &spec->condition) == (__u64)spec->number;
	else
		same = !read_text(room, &spec->condition) && text_is(room->text, spec->text);
	return same != !!(spec->flags & XPT_EVENT_DIFFERS);
}

/* Reads a field into the record, behind those before it. Keeps the value of the device for the filter. As is_target_now. */
__noinline int field_append(struct event_room *room, const struct xpt_event_spec *spec, __u32 index)
{
	const struct xpt_event_field *field;
	struct xpt_record_event *record;
	__u64 *value;

	if (!room || !spec || index >= XPT_EVENT_VALUES_MAX)
		return -1;
	field = &spec->field[index];
	record = record_of(room);
	value = &record->value[room->words & (VALUE_WORDS - 1)];
	if (field->access == XPT_ACCESS_NUMBER) {
		*value = raw_number(room, field);
		record->valid |= 1 << index;
		room->words++;
		if (index == spec->device)
			room->device.device = *value;
		return 0;
	}
	if (!read_text(room, field))
		record->valid |= 1 << index;
	for (__u32 i = 0; i < TEXT_WORDS; i++)
		value[i] = room->text[i];
	room->words += TEXT_WORDS;
	/* Not the same text, though it may be: a stranger's device is then shown, nothing is missing. */
	if (index == spec->device)
		room->device.device = value[0] + 3 * value[1] + 5 * value[2] + 7 * value[3];
	return 0;
}

/* Whether the event's device is one that a target has used; it is from now on, if this is by a target. */
static __always_inline bool device_is_known(struct event_room *room, __u64 group)
{
	__u8 known = 1;

	room->device.group = group;
	if (room->device.device == room->last_device.device && group == room->last_device.group)
		return true;
	if (!bpf_map_lookup_elem(&devices, &room->device)) {
		if (!record_of(room)->thread)
			return false;
		bpf_map_update_elem(&devices, &room->device, &known, BPF_ANY);
	}
	room->last_device = room->device;
	return true;
}

static __always_inline bool context_is_known(struct event_room *room, const struct xpt_event_spec *spec)
{
	__u8 known = 1;

	room->context = (__u64)(spec->group + 1) << 32 | (__u32)record_of(room)->value[0];
	if (room->context == room->last_context)
		return true;
	if (!bpf_map_lookup_elem(&contexts, &room->context)) {
		if ((spec->flags & XPT_EVENT_OF_CONTEXT) && !record_of(room)->thread)
			return false;
		if (!(spec->flags & XPT_EVENT_GIVES_CONTEXT))
			return true;
		bpf_map_update_elem(&contexts, &room->context, &known, BPF_ANY);
	}
	room->last_context = room->context;
	return true;
}

/* Whether the event is one of a device or context that is of interest; learns them. */
static __always_inline bool is_wanted(struct event_room *room, const struct xpt_event_spec *spec)
{
	if ((spec->flags & XPT_EVENT_OF_DEVICE) && !device_is_known(room, spec->group + 1))
		return false;
	if (!(spec->flags & (XPT_EVENT_OF_CONTEXT | XPT_EVENT_GIVES_CONTEXT)))
		return true;
	return context_is_known(room, spec);
}

/* As is_target_now. */
__noinline int client_note(struct event_room *room)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 start = task->group_leader->start_time;
	__u32 tgid = task->tgid;
	__u8 known = 1;

	if (!room || (room->last_client == tgid && room->last_client_start == start))
		return 0;
	bpf_map_update_elem(&clients, &tgid, &known, BPF_ANY);
	room->last_client = tgid;
	room->last_client_start = start;
	return 0;
}

static __always_inline void event_emit(const struct xpt_config *config, struct event_room *room,
				       const struct xpt_event_spec *spec)
{
	struct xpt_record_event *record = record_of(room);
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 words, size;

	record->thread = 0;
	if ((spec->flags & XPT_EVENT_BY_THREAD) && is_of_target(room, task))
		record->thread = XPT_THREAD_TARGET | (is_in_call() ? XPT_THREAD_IN_CALL : 0);
	record->valid = 0;
	room->words = 0;
	for (__u32 i = 0; i < XPT_EVENT_VALUES_MAX && i < spec->fields; i++)
		field_append(room, spec, i);
	words = room->words;
	if (words > VALUE_WORDS || !is_wanted(room, spec))
		return;
	if (spec->role == XPT_EVENT_QUEUE)
		client_note(room);
	record->tid = task->pid;
	record->event = spec->index;
	size = sizeof(*record) + 8 * words;
	header_fill(&record->header, XPT_RECORD_EVENT, size, task->tgid, bpf_ktime_get_ns());
	emit_data(config, record, size, ++room->emitted % LOOK_EVERY ? 0 : LOOK_EVERY * WAKEUP_WINDOW);
}

/*
 * Takes the event for one more spec. A function of its own for the verifier's sake: what it has verified for one is not
 * verified again for the next. It looks up its buffer itself, as older kernels take a map's key from a map, but not
 * from an argument.
 */
__noinline int event_emit_again(const struct xpt_event_spec *spec)
{
	const struct xpt_config *config = config_get();
	__u32 zero = 0;
	struct event_room *room = bpf_map_lookup_elem(&event_rooms, &zero);

	if (room && spec && config)
		event_emit(config, room, spec);
	return 0;
}

/* False where the kernel refuses what is done while they are held off. */
const volatile bool hold_interrupts = true;

extern void bpf_local_irq_save(unsigned long *flags__irq_flag) __ksym __weak;
extern void bpf_local_irq_restore(unsigned long *flags__irq_flag) __ksym __weak;

#define UNINTERRUPTED(work)                                                           \
	do {                                                                          \
		unsigned long flags;                                                  \
                                                                                      \
		if (hold_interrupts && bpf_local_irq_save && bpf_local_irq_restore) { \
			bpf_local_irq_save(&flags);                                   \
			work;                                                         \
			bpf_local_irq_restore(&flags);                                \
		} else {                                                              \
			work;                                                         \
		}                                                                     \
	} while (0)

/* The first spec from index on that the event counts for. */
static __always_inline const struct xpt_event_spec *first_spec(struct event_room *room, __u32 index)
{
	for (__u32 i = 0; i < XPT_EVENT_CHAIN_MAX; i++) {
		const struct xpt_event_spec *spec = bpf_map_lookup_elem(&event_specs, &index);

		if (!spec || counts(room, spec))
			return spec;
		if (!spec->next)
			break;
		index = spec->next - 1;
	}
	return NULL;
}

static __always_inline void chain_emit(void *context)
{
	__u32 zero = 0, index = bpf_get_attach_cookie(context);
	struct event_room *room = bpf_map_lookup_elem(&event_rooms, &zero);
	const struct xpt_event_spec *spec = bpf_map_lookup_elem(&event_specs, &index);
	const struct xpt_config *config = config_get();

	if (!room || !spec || !config || config->capture == XPT_CAPTURE_OFF)
		return;
	room->base = (__u64)context;
	/* Those of one tracepoint all have the span of the widest. */
	room->span = spec->span;
	if (!is_read_in_place() &&
	    (spec->span > XPT_EVENT_SPAN_MAX || bpf_probe_read_kernel(room->raw, spec->span, context)))
		return;
	spec = first_spec(room, index);
	if (!spec)
		return;
	/* Not by event_emit_again: the call of a function takes as long as all that it does. */
	event_emit(config, room, spec);
	for (__u32 i = 1; i < XPT_EVENT_CHAIN_MAX && spec->next; i++) {
		index = spec->next - 1;
		spec = bpf_map_lookup_elem(&event_specs, &index);
		if (!spec)
			return;
		if (counts(room, spec))
			event_emit_again(spec);
	}
}

SEC("tracepoint")
int driver_event(void *context)
{
	UNINTERRUPTED(chain_emit(context));
	return 0;
}

/* Jobs that it has queued may be dropped from here on: its files are still open. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(client_exit, struct task_struct *task)
{
	struct xpt_record_header record = {};
	__u32 tgid = task->tgid;

	if (task->signal->live.counter || bpf_map_delete_elem(&clients, &tgid))
		return 0;
	header_fill(&record, XPT_RECORD_CLIENT_EXIT, sizeof(record), tgid, bpf_ktime_get_ns());
	if (bpf_ringbuf_output(&control_ring, &record, sizeof(record), BPF_RB_NO_WAKEUP))
		count_loss(XPT_LOSS_RING_FULL);
	return 0;
}

/* The record of syscalls:sys_enter_ioctl; its layout is part of the kernel's interface. */
struct enter_record {
	__u64 common;
	__s64 number;
	__u64 argument[3]; /* descriptor, command, argument */
};

struct leave_record {
	__u64 common;
	__s64 number;
	__s64 result;
};

/* The followed node behind a descriptor of the current process; NULL: none. */
static __always_inline const struct xpt_node *node_of(struct task_struct *task, __u32 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;
	struct inode *inode;
	__u32 device;

	if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
		return NULL;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &files[descriptor]);
	if (!file)
		return NULL;
	inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & FILE_TYPE) != CHARACTER_DEVICE)
		return NULL;
	device = BPF_CORE_READ(inode, i_rdev);
	return bpf_map_lookup_elem(&nodes, &device);
}

static __always_inline void ioctl_open(const struct enter_record *context)
{
	const struct xpt_config *config = config_get();
	struct task_struct *task = bpf_get_current_task_btf();
	const struct xpt_node *node;
	struct open_ioctl *open;
	__u32 tgid = task->tgid;

	if (!config || config->capture == XPT_CAPTURE_OFF || !is_target(tgid))
		return;
	node = node_of(task, context->argument[0]);
	if (!node)
		return;
	open = bpf_task_storage_get(&ioctls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!open) {
		count_loss(XPT_LOSS_THREAD);
		return;
	}
	open->command = context->argument[1];
	open->node = node->index;
	open->open = 1;
	open->start = bpf_ktime_get_ns();
}

static __always_inline void ioctl_close(const struct leave_record *context)
{
	const struct xpt_config *config = config_get();
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_ioctl *open = bpf_task_storage_get(&ioctls, task, 0, 0);
	struct xpt_record_ioctl record = {};

	if (!config || !open || !open->open)
		return;
	open->open = 0;
	header_fill(&record.header, XPT_RECORD_IOCTL, sizeof(record), task->tgid, bpf_ktime_get_ns());
	record.start = open->start;
	record.tid = task->pid;
	record.command = open->command;
	record.node = open->node;
	record.result = context->result;
	emit_data(config, &record, sizeof(record), WAKEUP_WINDOW);
}

SEC("tracepoint")
int ioctl_enter(struct enter_record *context)
{
	UNINTERRUPTED(ioctl_open(context));
	return 0;
}

SEC("tracepoint")
int ioctl_leave(struct leave_record *context)
{
	UNINTERRUPTED(ioctl_close(context));
	return 0;
}
