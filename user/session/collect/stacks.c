/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of stacks on their way to the process that unwinds them, and what it makes of them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "model/stream/records.h"
#include "session/collect/collector.h"
#include "session/reader/stack_process.h"

#define OFF_CPU_MAX 8192	  /* threads that do not run, and whose stack is known */
#define PROGRAMS_MAX 16384	  /* whose calls are counted */
#define FINISH_WAIT 2000000000ull /* ns: for what is being unwound when tracing ends */
#define OUTSTANDING_MAX 128	  /* copies that are sent before the first of them is answered */
#define SECOND 1000000000ull
#define TURN 10			  /* ms */
#define PREPARE_WAIT 100000000ull /* ns: the longest time that a process waits until it is prepared */

/* The latest call of a program with a stack. */
struct stacked {
	struct keyed keyed; /* by key of the program */
	__u64 number;
};

/* A stack of a thread that left the CPU: what has come of it so far. */
struct off_cpu {
	struct keyed keyed;		       /* by thread and time */
	__u64 time;			       /* ns that it did not run; 0: that is not known */
	struct xpt_record_stack_sample sample; /* its kind is 0 as long as there is none */
};

struct stack_tracer {
	struct collector *collector;
	int socket;	   /* -1: the process has ended */
	__u64 outstanding; /* copies without an answer */
	__u64 most;	   /* of them, while copies are sent */
	__u64 preparing;   /* processes that it has been asked to prepare */
	__u64 lost;
	struct keyed_table programs;
	struct keyed_table off_cpu; /* struct off_cpu: stacks of threads that left the CPU, oldest first */
	union {
		struct xpt_record_header header;
		char bytes[1 << 16];
	} answer;
};

static void release_off_cpu(void *context, struct keyed *entry)
{
	(void)context;
	free(container_of(entry, struct off_cpu, keyed));
}

int stack_tracer_create(struct collector *collector, struct stack_tracer **result)
{
	struct stack_tracer *tracer;
	int error;

	if (!collector->needs.stacks && !collector->needs.samples)
		return 0;
	tracer = calloc(1, sizeof(*tracer));
	if (!tracer)
		return -ENOMEM;
	tracer->collector = collector;
	keyed_init(&tracer->programs, PROGRAMS_MAX, NULL, NULL);
	keyed_init(&tracer->off_cpu, OFF_CPU_MAX, release_off_cpu, NULL);
	error = stack_process_start(&tracer->socket);
	if (error) {
		log_error(&collector->log, "cannot start a process: %s", strerror(-error));
		tracer->socket = -1;
		stack_tracer_free(tracer);
		return error;
	}
	*result = tracer;
	return 0;
}

void stack_tracer_free(struct stack_tracer *tracer)
{
	if (!tracer)
		return;
	if (tracer->socket >= 0)
		close(tracer->socket);
	keyed_free(&tracer->programs);
	keyed_free(&tracer->off_cpu);
	free(tracer);
}

int stack_tracer_descriptor(const struct stack_tracer *tracer)
{
	return tracer->socket;
}

/* ---- to the process ---- */

static int send_request(struct stack_tracer *tracer, const struct stack_request *request,
			const struct xpt_record_header *copy)
{
	struct iovec parts[] = { { (void *)request, sizeof(*request) }, { (void *)copy, copy ? copy->size : 0 } };
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = copy ? 2 : 1 };

	if (tracer->socket < 0)
		return -EPIPE;
	return sendmsg(tracer->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Calls of its program that the sample stands for: those since the latest one that has a stack. */
static __u64 weigh(struct stack_tracer *tracer, const struct xpt_record_stack_copy *copy)
{
	const struct xpt_spec *spec = &tracer->collector->registry->specs[copy->spec]->wire;
	const bool by_program = spec->flags & XPT_SPEC_BY_PROGRAM;
	const __u64 key = (__u64)copy->header.tgid << 32 |
			  (by_program ? (__u32)spec->runtime << 16 : (__u32)copy->spec + 1);
	struct keyed *found = keyed_find(&tracer->programs, key, copy->handle);
	struct stacked *stacked = found ? container_of(found, struct stacked, keyed) : calloc(1, sizeof(*stacked));
	__u64 weight;

	if (!stacked)
		return 1;
	/* The handle may be another program's by now, whose calls are counted anew. */
	weight = found && copy->number > stacked->number ? copy->number - stacked->number :
		 found					 ? 1 :
							   copy->number + 1;
	stacked->number = copy->number;
	if (!found && keyed_add(&tracer->programs, &stacked->keyed, copy->header.tgid, key, copy->handle))
		free(stacked);
	return weight;
}

static int on_copy(void *context, const struct xpt_record_header *record)
{
	struct stack_tracer *tracer = context;
	const struct xpt_record_stack_copy *copy = (const void *)record;
	struct stack_request request = { .kind = STACK_REQUEST_COPY, .tgid = record->tgid };

	if (record->kind == XPT_RECORD_PYTHON_COPY) {
		request.kind = STACK_REQUEST_PYTHON;
		send_request(tracer, &request, record);
		return 0;
	}
	if (record->kind != XPT_RECORD_STACK_COPY || copy->spec >= tracer->collector->registry->spec_count)
		return 0;
	if (copy->reason == XPT_STACK_CALL)
		request.weight = weigh(tracer, copy);
	else if (copy->reason == XPT_STACK_ON_CPU)
		request.weight = SECOND / tracer->collector->needs.samples;
	if (send_request(tracer, &request, record))
		tracer->lost++;
	else
		tracer->outstanding++;
	return tracer->outstanding >= tracer->most ? -EAGAIN : 0;
}

/* The rest stays in the ring, when that many are outstanding. */
static void send_copies(struct stack_tracer *tracer, __u64 most)
{
	tracer->most = most;
	if (tracer->outstanding < most)
		kern_drain_stacks(tracer->collector->kern, on_copy, tracer);
}

void stack_tracer_forget(struct stack_tracer *tracer, pid_t tgid)
{
	if (!tracer)
		return;
	send_copies(tracer, ~0ull);
	keyed_drop_owner(&tracer->programs, (__u64)tgid);
	kern_set_python(tracer->collector->kern, tgid, NULL);
	send_request(tracer, &(struct stack_request){ STACK_REQUEST_FORGET, (__u32)tgid, 0 }, NULL);
}

/* ---- from it ---- */

/* It works on what strangers wrote: nothing else comes into the records. */
static bool is_answer(const struct xpt_record_header *record, size_t size)
{
	switch (record->kind) {
	case XPT_RECORD_MODULE:
	case XPT_RECORD_FRAME:
	case XPT_RECORD_STACK:
		return !record->tgid && record->size == size && record_validate(record, size);
	case XPT_RECORD_STACK_SAMPLE:
		return record->size == size && record_validate(record, size);
	default:
		return false;
	}
}

/* NULL: no memory. */
static struct off_cpu *off_cpu_get(struct stack_tracer *tracer, __u32 tid, __u64 time)
{
	struct keyed *found = keyed_find(&tracer->off_cpu, tid, time);
	struct off_cpu *off;

	if (found)
		return container_of(found, struct off_cpu, keyed);
	off = calloc(1, sizeof(*off));
	if (off && keyed_add(&tracer->off_cpu, &off->keyed, 0, tid, time)) {
		free(off);
		return NULL;
	}
	return off;
}

/* The sample has a weight when both are known: it was unwound, and the thread runs again. */
static void off_cpu_pass(struct stack_tracer *tracer, struct off_cpu *off)
{
	if (!off->time || !off->sample.header.kind)
		return;
	off->sample.weight = off->time;
	collector_pass(tracer->collector, &off->sample.header);
	keyed_remove(&tracer->off_cpu, &off->keyed);
	free(off);
}

void stack_tracer_off_cpu(struct stack_tracer *tracer, const struct xpt_record_off_cpu *record)
{
	struct off_cpu *off = tracer && record->stacked ? off_cpu_get(tracer, record->tid, record->start) : NULL;

	if (!off)
		return;
	off->time = record->header.time - record->start;
	off_cpu_pass(tracer, off);
}

static void on_answer(struct stack_tracer *tracer, const struct xpt_record_header *record)
{
	const struct xpt_record_stack_sample *sample = (const void *)record;
	struct off_cpu *off;

	if (record->kind != XPT_RECORD_STACK_SAMPLE || sample->reason != XPT_STACK_OFF_CPU) {
		collector_pass(tracer->collector, record);
		return;
	}
	off = off_cpu_get(tracer, sample->tid, record->time);
	if (!off)
		return;
	off->sample = *sample;
	off_cpu_pass(tracer, off);
}

static void note_end(struct stack_tracer *tracer)
{
	log_warn(&tracer->collector->log, "stacks are not taken any more: the process that unwinds them has ended");
	close(tracer->socket);
	tracer->socket = -1;
	tracer->lost += tracer->outstanding;
	tracer->outstanding = tracer->preparing = 0;
}

static void on_python(struct stack_tracer *tracer, const struct stack_answer_python *answer)
{
	const struct log *log = &tracer->collector->log;

	if (!answer->error)
		kern_set_python(tracer->collector->kern, (pid_t)answer->header.tgid, &answer->python);
	else if (answer->error == -EXDEV)
		log_warn(log, "PID %u: stacks are without Python frames: its interpreter is free-threaded",
			 answer->header.tgid);
	else
		log_warn(log, "PID %u: stacks are without Python frames: this version is not known",
			 answer->header.tgid);
}

static void await_answers(const struct stack_tracer *tracer)
{
	struct pollfd polled = { .fd = tracer->socket, .events = POLLIN };

	poll(&polled, 1, TURN);
}

static void receive(struct stack_tracer *tracer)
{
	const struct xpt_record_header *record = &tracer->answer.header;
	ssize_t got;

	while (tracer->socket >= 0) {
		got = recv(tracer->socket, &tracer->answer, sizeof(tracer->answer), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			note_end(tracer);
			return;
		}
		if ((size_t)got < sizeof(*record))
			continue;
		if (record->kind == STACK_ANSWER_PREPARED)
			tracer->preparing -= tracer->preparing > 0;
		if (record->kind == STACK_ANSWER_NONE || record->kind == XPT_RECORD_STACK_SAMPLE)
			tracer->outstanding -= tracer->outstanding > 0;
		tracer->lost += record->kind == STACK_ANSWER_NONE;
		if (record->kind == STACK_ANSWER_PYTHON && (size_t)got == sizeof(struct stack_answer_python))
			on_python(tracer, (const void *)record);
		else if (is_answer(record, (size_t)got))
			on_answer(tracer, record);
	}
}

/* Its threads wait for their probes meanwhile: it is known when they make their first call. */
void stack_tracer_prepare(struct stack_tracer *tracer, pid_t tgid)
{
	const struct stack_request request = { STACK_REQUEST_PREPARE, (__u32)tgid, 0 };
	__u64 until = clock_monotonic() + PREPARE_WAIT;

	if (!tracer || send_request(tracer, &request, NULL))
		return;
	tracer->preparing++;
	while (!tracer->collector->options.all_processes && tracer->preparing && clock_monotonic() < until) {
		await_answers(tracer);
		receive(tracer);
	}
	tracer->preparing = 0; /* what was asked for before a crash has no answer */
}

void stack_tracer_look(struct stack_tracer *tracer)
{
	__u64 lost;

	if (!tracer)
		return;
	receive(tracer);
	send_copies(tracer, OUTSTANDING_MAX);
	lost = tracer->lost;
	tracer->lost = 0;
	if (lost)
		records_lost(tracer->collector, XPT_LOSS_STACK_COPIES, lost);
}

void stack_tracer_finish(struct stack_tracer *tracer)
{
	__u64 until = clock_monotonic() + FINISH_WAIT;

	stack_tracer_look(tracer);
	while (tracer && tracer->outstanding && clock_monotonic() < until) {
		await_answers(tracer);
		stack_tracer_look(tracer);
	}
	if (tracer && tracer->outstanding)
		records_lost(tracer->collector, XPT_LOSS_STACK_COPIES, tracer->outstanding);
}
