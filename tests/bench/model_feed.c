/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the model takes calls: N records (default 4 million) of threads on CPUS processors (default 4), as the rings that these
 * write into would give them, with a PASS every so often, into a sink that only counts. Which processor is next is random. Prints
 * one JSON object; seconds are of processor time, so that what else runs on the machine matters little.
 *
 *	model_feed [N [CPUS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/core/model.h"

#define CPUS 4
#define CPUS_MAX 1024
#define PROGRAMS 64
#define PASS_CALLS 65536 /* between two of the reader's rounds */
#define LATE 8		 /* where processors share a ring, one call in LATE comes in behind the next one */

/* Of a round, as its rings are emptied: ring by ring. */
static struct {
	__u32 number, cpu;
} order[PASS_CALLS];

static void order_make(unsigned int cpus)
{
	const unsigned int rings = cpus < XPT_RINGS_MAX ? cpus : XPT_RINGS_MAX;
	static __u32 cpu[PASS_CALLS];
	unsigned int ring, number, at = 0, first;

	for (number = 0; number < PASS_CALLS; number++)
		cpu[number] = (unsigned int)random() % cpus;
	for (ring = 0; ring < rings; ring++) {
		for (number = 0, first = at; number < PASS_CALLS; number++) {
			if (cpu[number] % rings != ring)
				continue;
			order[at].number = number;
			order[at++].cpu = cpu[number];
			if (at - first < 2 || order[at - 2].cpu == order[at - 1].cpu || random() % LATE)
				continue;
			order[at - 1] = order[at - 2];
			order[at - 2].number = number;
			order[at - 2].cpu = cpu[number];
		}
	}
}

static int count_write(void *context, const struct event *event)
{
	*(__u64 *)context += event->kind == EVENT_CALL;
	return 0;
}

static int text_feed(struct model *model, unsigned int kind, __u64 id, const char *text)
{
	char bytes[1024] __attribute__((aligned(8))) = {};
	struct xpt_record_text *record = (void *)bytes;

	record->header.kind = (__u16)kind;
	record->header.size = (__u16)XPT_ALIGN8(sizeof(*record) + strlen(text));
	record->id = id;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	return model_feed(model, &record->header);
}

static int call_feed(struct model *model, __u64 number, unsigned int cpu)
{
	struct {
		struct xpt_record_call call;
		__u64 values[3];
	} record = {};

	record.call.header.kind = XPT_RECORD_CALL;
	record.call.header.size = sizeof(record);
	record.call.header.tgid = 1000;
	record.call.header.time = 1000000 + number * 1000 + 500 + number % 7 * 10;
	record.call.start = 1000000 + number * 1000;
	record.call.tid = 1000 + cpu;
	record.call.valid = 7;
	record.call.values = 3;
	record.call.sample = 1;
	record.values[0] = 0x7f0000000000ULL + number % PROGRAMS * 4096;
	record.values[1] = number;
	return model_feed(model, &record.call.header);
}

static int pass_feed(struct model *model, __u64 number)
{
	struct xpt_record_header pass = { .kind = XPT_RECORD_PASS, .size = sizeof(pass) };

	pass.time = 1000000 + number * 1000;
	return model_feed(model, &pass);
}

static int calls_feed(struct model *model, __u64 calls)
{
	unsigned int i;
	__u64 from;
	int error = 0;

	for (from = 0; from < calls && !error; from += PASS_CALLS) {
		error = pass_feed(model, from);
		for (i = 0; i < PASS_CALLS && !error; i++)
			error = call_feed(model, from + order[i].number, order[i].cpu);
	}
	return error ? error : model_flush(model);
}

int main(int count, char **arguments)
{
	__u64 calls = count > 1 ? strtoull(arguments[1], NULL, 0) : 4000000, delivered = 0;
	unsigned long cpus = count > 2 ? strtoul(arguments[2], NULL, 0) : CPUS;
	struct timespec start, end;
	struct model *model;
	double seconds;
	int error;

	if (!cpus || cpus > CPUS_MAX)
		return 2;
	order_make((unsigned int)cpus);
	error = model_create(NULL, &model);
	if (error)
		return 1;
	error = model_add_sink(model, (struct event_sink){ .write = count_write, .context = &delivered });
	if (!error)
		error = text_feed(model, XPT_RECORD_RUNTIME, 0, "{\"name\":\"nrt\",\"statuses\":[]}");
	if (!error)
		error = text_feed(model, XPT_RECORD_SPEC, 0,
				  "{\"runtime\":0,\"function\":\"nrt_execute\",\"role\":\"execute\",\"success\":1,"
				  "\"fetches\":[{\"meaning\":\"program\",\"type\":\"u64\"},"
				  "{\"meaning\":\"size\",\"type\":\"u64\"},{\"meaning\":\"status\",\"type\":\"s32\"}]}");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	if (!error)
		error = calls_feed(model, calls);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	printf("{\"bench\":\"model_feed\",\"calls\":%llu,\"seconds\":%.3f,\"calls_per_second\":%.0f,\"ns_per_call\":%.1f}\n",
	       delivered, seconds, (double)delivered / seconds, seconds * 1e9 / (double)delivered);
	model_free(model);
	return error || delivered < calls;
}
