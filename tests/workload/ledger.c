/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger.h"

#include "accelerator.h"
#include "xptaccel_uapi.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 1024

struct entry {
	struct entry *next;
	struct call call;
	uint64_t count;
	uint64_t total_ns;
};

/* A call that has handed jobs to the accelerator. */
struct submission {
	struct call call;
	uint64_t number;
	uint64_t end;
};

struct ledger {
	struct entry *buckets[BUCKETS];
	struct submission *submissions;
	size_t submission_count, submission_limit;
};

uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory) {
		perror("workload");
		exit(1);
	}
	return memory;
}

struct ledger *ledger_new(void)
{
	return allocate(sizeof(struct ledger));
}

void ledger_free(struct ledger *ledger)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		while (ledger->buckets[i]) {
			struct entry *entry = ledger->buckets[i];

			ledger->buckets[i] = entry->next;
			free(entry);
		}
	}
	free(ledger->submissions);
	free(ledger);
}

static bool same_value(struct value a, struct value b)
{
	return a.known == b.known && (!a.known || a.number == b.number);
}

static bool same(const struct call *a, const struct call *b)
{
	if (strcmp(a->function, b->function) != 0 || a->inference != b->inference)
		return false;
	if (!a->program != !b->program || (a->program && strcmp(a->program, b->program) != 0))
		return false;
	return same_value(a->handle, b->handle) && same_value(a->size, b->size) && same_value(a->core, b->core) &&
	       same_value(a->stream, b->stream) && same_value(a->status, b->status);
}

static size_t hash(const struct call *call)
{
	uint64_t sum = call->inference;

	for (const char *c = call->function; *c; c++)
		sum = sum * 31 + (unsigned char)*c;
	sum = sum * 31 + call->handle.number;
	sum = sum * 31 + call->size.number;
	sum = sum * 31 + call->stream.number;
	sum *= 0x9e3779b97f4a7c15ull;
	return sum >> 54;
}

static struct entry *entry_for(struct ledger *ledger, const struct call *call)
{
	struct entry **slot = &ledger->buckets[hash(call) % BUCKETS];

	for (; *slot; slot = &(*slot)->next)
		if (same(&(*slot)->call, call))
			return *slot;
	*slot = allocate(sizeof(**slot));
	(*slot)->call = *call;
	return *slot;
}

void ledger_add(struct ledger *ledger, const struct call *call)
{
	struct entry *entry = entry_for(ledger, call);

	entry->count++;
	entry->total_ns += call->nanoseconds;
}

static void submission_add(struct ledger *ledger, const struct submission *submission)
{
	if (ledger->submission_count == ledger->submission_limit) {
		ledger->submission_limit = ledger->submission_limit ? ledger->submission_limit * 2 : 256;
		ledger->submissions = realloc(ledger->submissions,
					      ledger->submission_limit * sizeof(*ledger->submissions));
		if (!ledger->submissions) {
			perror("workload");
			exit(1);
		}
	}
	ledger->submissions[ledger->submission_count++] = *submission;
}

void ledger_submission(struct ledger *ledger, const struct call *call, uint64_t submission)
{
	submission_add(ledger, &(struct submission){ *call, submission, call->start + call->nanoseconds });
}

void ledger_merge(struct ledger *into, const struct ledger *from)
{
	for (size_t i = 0; i < from->submission_count; i++)
		submission_add(into, &from->submissions[i]);
	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct entry *entry = from->buckets[i]; entry; entry = entry->next) {
			struct entry *target = entry_for(into, &entry->call);

			target->count += entry->count;
			target->total_ns += entry->total_ns;
		}
	}
}

void json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", *text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

static void print_hex(FILE *out, const char *name, struct value value)
{
	if (value.known)
		fprintf(out, ",\"%s\":\"0x%" PRIx64 "\"", name, value.number);
}

static void print_number(FILE *out, const char *name, struct value value)
{
	if (value.known)
		fprintf(out, ",\"%s\":%" PRId64, name, (int64_t)value.number);
}

static void print_entry(FILE *out, const struct entry *entry)
{
	const struct call *call = &entry->call;

	fputs("{\"function\":", out);
	json_string(out, call->function);
	if (call->program) {
		fputs(",\"program\":", out);
		json_string(out, call->program);
	}
	print_hex(out, "handle", call->handle);
	print_hex(out, "stream", call->stream);
	print_number(out, "size", call->size);
	print_number(out, "core", call->core);
	print_number(out, "status", call->status);
	fprintf(out, ",\"count\":%" PRIu64 ",\"total_ns\":%" PRIu64 "}", entry->count, entry->total_ns);
}

static void print_entries(const struct ledger *ledger, FILE *out, bool inference)
{
	const char *separator = "";

	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct entry *entry = ledger->buckets[i]; entry; entry = entry->next) {
			if (entry->call.inference != inference)
				continue;
			fputs(separator, out);
			print_entry(out, entry);
			separator = ",";
		}
	}
}

void ledger_print(const struct ledger *ledger, FILE *out)
{
	fputs("\"calls\":[", out);
	print_entries(ledger, out, false);
	fputs("],\"inferences\":[", out);
	print_entries(ledger, out, true);
	fputs("]", out);
}

static void print_job(const struct accelerator_job *job, FILE *out)
{
	const char *asked = job->flags & XPTACCEL_HANG ? "hang" : job->flags & XPTACCEL_FAIL ? "fail" : "run";

	fprintf(out, "{\"engine\":%" PRIu32 ",\"number\":%" PRIu64 ",\"cookie\":%" PRIu64, job->engine, job->number,
		job->cookie);
	fprintf(out, ",\"fence\":[%" PRIu64 ",%" PRIu64 "],\"asked\":\"%s\",\"asked_ns\":%" PRIu64, job->fence_context,
		job->fence_seqno, asked, job->asked_ns);
	fprintf(out, ",\"submit_ns\":%" PRIu64 ",\"submitted_ns\":%" PRIu64 ",\"queued_ns\":%" PRIu64, job->submit_ns,
		job->submitted_ns, job->queued_ns);
	fprintf(out, ",\"waited\":%s,\"started_ns\":%" PRIu64 ",\"finished_ns\":%" PRIu64 ",\"error\":%" PRId32 "}",
		job->waited ? "true" : "false", job->started_ns, job->finished_ns, job->error);
}

/* Returns how many there are. */
static size_t print_jobs(uint64_t submission, const struct accelerator_job *jobs, size_t count, FILE *out)
{
	size_t printed = 0;

	for (size_t i = 0; i < count; i++) {
		if (jobs[i].submission != submission)
			continue;
		if (!printed)
			fprintf(out, ",\"tid\":%d,\"jobs\":[", jobs[i].tid);
		else
			fputs(",", out);
		print_job(&jobs[i], out);
		printed++;
	}
	fputs(printed ? "]" : "", out);
	return printed;
}

void ledger_print_executions(const struct ledger *ledger, const struct accelerator_job *jobs, size_t count, FILE *out)
{
	size_t printed = 0;

	fputs("\"executions\":[", out);
	for (size_t i = 0; i < ledger->submission_count; i++) {
		const struct submission *submission = &ledger->submissions[i];

		fputs(i ? ",{\"function\":" : "{\"function\":", out);
		json_string(out, submission->call.function);
		fputs(",\"program\":", out);
		json_string(out, submission->call.program);
		print_hex(out, "handle", submission->call.handle);
		print_number(out, "status", submission->call.status);
		fprintf(out, ",\"start\":%" PRIu64 ",\"end\":%" PRIu64, submission->call.start, submission->end);
		printed += print_jobs(submission->number, jobs, count, out);
		fputs("}", out);
	}
	fputs("]", out);
	if (printed != count) {
		fprintf(stderr, "workload: %zu jobs were submitted, %zu of them by known calls\n", count, printed);
		exit(1);
	}
}
