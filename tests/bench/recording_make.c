/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a recording of N inferences (default 1 million) of PROGRAMS programs (default 4), each with three operators, with what its
 * thread did, and one in 64 blocked by a lock: what `record --why --ops` would have written.
 *
 *	recording_make FILE [N [PROGRAMS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/recording.h"

#define PASS_INFERENCES 4096
#define OPERATORS 3
#define TGID 1000

static struct recording_writer *writer;

static void add(void *record, size_t size)
{
	struct xpt_record_header *header = record;

	header->size = (__u16)size;
	if (recording_writer_add(writer, header)) {
		fprintf(stderr, "recording_make: cannot be written\n");
		exit(1);
	}
}

static void add_text(unsigned int kind, __u64 id, __u64 time, const char *text)
{
	char bytes[1024] __attribute__((aligned(8))) = {};
	struct xpt_record_text *record = (void *)bytes;

	record->header = (struct xpt_record_header){ .kind = (__u16)kind, .time = time };
	record->id = id;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	add(record, XPT_ALIGN8(sizeof(*record) + strlen(text)));
}

static void describe(void)
{
	add_text(XPT_RECORD_RUNTIME, 0, 0, "{\"name\":\"toy\",\"statuses\":[]}");
	add_text(XPT_RECORD_SPEC, 0, 0,
		 "{\"runtime\":0,\"function\":\"toy_run\",\"role\":\"execute\",\"success\":0,\"fetches\":["
		 "{\"meaning\":\"program\",\"type\":\"u64\"}]}");
	add_text(XPT_RECORD_SPEC, 1, 0,
		 "{\"runtime\":0,\"function\":\"toy_compute\",\"role\":\"operator\",\"success\":0,\"fetches\":["
		 "{\"meaning\":\"object\",\"type\":\"u64\"},{\"meaning\":\"class\",\"type\":\"u64\"},"
		 "{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"inference\",\"type\":\"u64\"}]}");
}

/* values: of the spec. */
static void add_call(unsigned int spec, __u64 start, __u64 duration, unsigned int depth, const __u64 *values,
		     unsigned int count, __u64 blocked)
{
	struct {
		struct xpt_record_call call;
		__u64 values[4 + sizeof(struct xpt_task_state) / 8];
	} record = { .call = { .header = { XPT_RECORD_CALL, 0, TGID, start + duration },
			       .start = start,
			       .tid = TGID,
			       .spec = (__u16)spec,
			       .depth = (__u8)(depth | XPT_CALL_STATES | (blocked ? XPT_CALL_STATES_FOLLOW : 0)),
			       .valid = 0xff,
			       .values = (__u8)count,
			       .sample = 1 } };
	const struct xpt_task_state state = { .off_cpu = blocked, .voluntary = 1 };
	size_t size = sizeof(record.call) + count * 8;

	memcpy(record.values, values, count * 8);
	if (blocked) {
		memcpy((char *)&record + size, &state, sizeof(state));
		size += sizeof(state);
	}
	add(&record, size);
}

/* Returns when the next one begins. */
static __u64 add_inference(__u64 number, __u64 program, __u64 at)
{
	struct xpt_record_off_cpu off = { .header = { XPT_RECORD_OFF_CPU, 0, TGID, 0 },
					  .tid = TGID,
					  .syscall = -1,
					  .waker_tgid = TGID,
					  .waker_tid = TGID + 1,
					  .waker = "holder",
					  .reason = XPT_OFF_CPU_FUTEX };
	const __u64 blocked = number % 64 ? 0 : 20000 + (__u64)random() % 400000;
	__u64 time = at + 100;

	for (__u64 i = 0; i < OPERATORS; i++) {
		const __u64 values[] = { program * 256 + i * 16, 0, program, at },
			    length = 2000 + (__u64)random() % 2000;

		add_call(1, time, length, 1, values, 4, 0);
		time += length + 50;
	}
	if (blocked) {
		off.start = time;
		off.woken = off.header.time = time + blocked;
		add(&off, sizeof(off));
	}
	add_call(0, at, time + blocked + 100 - at, 0, &program, 1, blocked);
	return time + blocked + 200;
}

int main(int count, char **arguments)
{
	const __u64 inferences = count > 2 ? strtoull(arguments[2], NULL, 0) : 1000000;
	const __u64 programs = count > 3 ? strtoull(arguments[3], NULL, 0) : 4;
	const struct recording_info info = { .monotonic_time = 1,
					     .realtime = 1,
					     .host = "h",
					     .kernel = "k",
					     .machine = "m",
					     .version = "v",
					     .command = "c",
					     .boot_id = "b" };
	struct xpt_record_header pass = { .kind = XPT_RECORD_PASS };
	__u64 at = 1000;

	if (count < 2 || recording_writer_create(NULL, arguments[1], -1, &info, &writer)) {
		fprintf(stderr, "usage: recording_make FILE [N [PROGRAMS]]\n");
		return 1;
	}
	describe();
	for (__u64 i = 0; i < inferences; i++) {
		at = add_inference(i, 1 + i % programs, at);
		if (i % PASS_INFERENCES == PASS_INFERENCES - 1) {
			pass.time = at - 50;
			add(&pass, sizeof(pass));
		}
	}
	add_text(XPT_RECORD_END, 0, at, "{}");
	return recording_writer_close(writer) ? 1 : 0;
}
