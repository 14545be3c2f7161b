/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the difference between slow and typical inferences consists of. By what the thread did first: each of these parts is a
 * cause, but CPU time, which is of the operators in which it was spent, and of page faults as far as it follows them, and what was
 * neither blocked for a known reason nor on a CPU, which is of the device as far as its jobs took longer.
 */
#include "analysis/explain_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "report/table/columns.h"

#define FIT_LEAST 0.5 /* r^2, from which on CPU time follows page faults */
#define FAULT_COST_MOST \
	20000 /* ns, of a page fault without I/O with the first use of its page: what is more is something else */

struct causes {
	const struct xpt_explain *explain;
	const struct study_program *program;
	struct explained *explained;
	struct text text; /* evidence of the cause that is made */
	size_t count;
	int error;
};

const char *explain_component_title(enum study_component component)
{
	static const char *const titles[STUDY_COMPONENTS] = {
		[COMPONENT_CPU] = "on a CPU",
		[COMPONENT_WAITED] = "waiting for a CPU",
		[COMPONENT_FUTEX] = "blocked: futex",
		[COMPONENT_POLL] = "blocked: poll",
		[COMPONENT_IO] = "blocked: I/O",
		[COMPONENT_IOCTL] = "blocked: ioctl",
		[COMPONENT_FAULT] = "blocked: page fault",
		[COMPONENT_SLEEP] = "blocked: sleep",
		[COMPONENT_OTHER] = "blocked: another reason",
		[COMPONENT_BLOCKED] = "blocked, reason not recorded",
		[COMPONENT_UNKNOWN] = "in flight, or not recorded",
	};

	return titles[component];
}

const char *explained_keep(struct explained *explained, struct text *text)
{
	char *copy = text->error ? NULL : strndup(text->data ?: "", text->length);

	if (!copy || vec_push(explained->texts, explained->text_count, copy)) {
		free(copy);
		text_fail(text);
		return "";
	}
	text_clear(text, SIZE_MAX);
	return copy;
}

static const struct study_measures *typical(const struct causes *causes)
{
	return &causes->program->typical.mean;
}

static const struct study_measures *slow(const struct causes *causes)
{
	return &causes->program->slow.mean;
}

static double more(const struct causes *causes, enum study_component component)
{
	return slow(causes)->component[component] - typical(causes)->component[component];
}

/* ---- texts ---- */

static void add_time(struct text *text, double nanoseconds)
{
	if (nanoseconds < 0)
		text_literal(text, "-");
	columns_format_time(text, fabs(nanoseconds), false);
}

/* A mean of a count: 81, 0.3, 0. */
static void add_count(struct text *text, double count)
{
	text_real(text, count >= 10 ? round(count) : round(count * 10) / 10);
}

static void add_times(struct text *text, double count)
{
	add_count(text, count);
	text_string(text, count > 0.95 && count < 1.05 ? " time" : " times");
}

static void add_name(struct text *text, const char *name)
{
	text_literal(text, "`");
	text_terminal(text, name, strlen(name), 0);
	text_literal(text, "`");
}

/* For a shell. False: it has characters that cannot be typed. */
static bool add_quoted(struct text *text, const char *word)
{
	const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";

	if (!*word || !text_is_plain(word, strlen(word)))
		return false;
	if (word[strspn(word, plain)] == '\0' && *word != '-') {
		text_string(text, word);
		return true;
	}
	text_literal(text, "'");
	for (; *word; word++) {
		if (*word == '\'')
			text_literal(text, "'\\''");
		else
			text_bytes(text, word, 1);
	}
	text_literal(text, "'");
	return true;
}

/* Names that could be a handle are not. */
static void add_program_choice(struct text *text, const struct study_program *program)
{
	const size_t before = text->length;

	text_literal(text, " --program ");
	if (!program->others && strncmp(program->name, "0x", 2) && add_quoted(text, program->name))
		return;
	text->length = before;
	if (program->process_count == 1) {
		text_literal(text, " --pid ");
		text_unsigned(text, program->processes[0].tgid);
	}
}

static const char *report_command(struct causes *causes, const char *more_options)
{
	struct text text = {};
	const char *command;

	text_literal(&text, "report ");
	if (!strcmp(causes->explain->input, "-") || !add_quoted(&text, causes->explain->input))
		text_literal(&text, "FILE.xpt");
	add_program_choice(&text, causes->program);
	text_literal(&text, " --slowest 1%");
	text_string(&text, more_options);
	command = explained_keep(causes->explained, &text);
	if (text.error)
		causes->error = -ENOMEM;
	text_free(&text);
	return command;
}

static const char *off_cpu_command(struct causes *causes)
{
	if (causes->explain->study->has_off_cpu_stacks)
		return report_command(causes, " --flame offcpu -o slow.svg");
	return causes->program->has_reasons ? report_command(causes, " -o slow.json") : "record --why ...";
}

static const char *cpu_command(const struct causes *causes)
{
	if (causes->explain->study->has_cpu_stacks)
		return report_command((struct causes *)causes, " --flame cpu -o slow.svg");
	return causes->program->has_operators || causes->program->role != XPT_ROLE_EXECUTE ?
		       "record --samples ..." :
		       "record --ops --samples ...";
}

/* ---- causes ---- */

/* Slow inferences that are slower for more than half because of this. */
static __u64 count_inferences(const struct causes *causes, enum study_component component)
{
	const struct study_program *program = causes->program;
	double count = 0;

	for (size_t i = 0; i < program->sample_count; i++) {
		const struct study_sample *sample = &program->samples[i];
		const double whole = (double)sample->duration - typical(causes)->duration;
		const double part = (double)sample->component[component] - typical(causes)->component[component];

		if (study_has(sample, STUDY_SLOW) && part > whole / 2)
			count += sample->weight;
	}
	return (__u64)(count + 0.5);
}

/* Takes the evidence in causes->text. */
static void add_cause(struct causes *causes, const struct xpt_explain_cause *cause)
{
	struct xpt_explain_cause made = *cause;

	made.evidence = explained_keep(causes->explained, &causes->text);
	made.share = causes->explained->view.difference > 0 ? made.difference / causes->explained->view.difference : 0;
	if (causes->text.error || vec_push(causes->explained->causes, causes->count, made))
		causes->error = -ENOMEM;
}

static void add_line(struct text *text)
{
	if (text->length)
		text_literal(text, "\n");
}

/* Of these parties, the first and how much all are. NULL: there are none. */
static const struct study_party *find_parties(const struct study_cohort *cohort, enum xpt_off_cpu reason, double *times,
					      double *time)
{
	const struct study_party *first = NULL;

	*times = *time = 0;
	for (size_t i = 0; i < cohort->party_count; i++) {
		const struct study_party *party = &cohort->parties[i];

		if (party->reason != reason)
			continue;
		first = first ?: party;
		*times += (double)party->times / (double)cohort->count;
		*time += (double)party->time / (double)cohort->count;
	}
	return first;
}

static void describe_waited(struct causes *causes)
{
	const struct study_cohort *cohort = &causes->program->slow;
	struct text *text = &causes->text;
	double times, time;
	const struct study_party *first = find_parties(cohort, XPT_OFF_CPU_PREEMPTED, &times, &time);

	text_literal(text, "preempted ");
	add_times(text, slow(causes)->involuntary);
	text_literal(text, " (typical: ");
	add_count(text, typical(causes)->involuntary);
	text_literal(text, ")");
	if (first) {
		text_literal(text, ", mostly by ");
		add_name(text, first->name);
		text_literal(text, ": ");
		add_time(text, (double)first->time / (double)cohort->count);
	}
	if (causes->program->has_reasons && time < slow(causes)->component[COMPONENT_WAITED] / 2) {
		add_line(text);
		text_literal(text, "most of it after it was woken: other threads had the CPUs");
	}
	if (!causes->program->has_reasons) {
		add_line(text);
		text_literal(text, "who ran instead was not recorded");
	}
}

static void add_waited(struct causes *causes)
{
	const double difference = more(causes, COMPONENT_WAITED);
	const char *command;

	if (difference == 0)
		return;
	describe_waited(causes);
	command = causes->program->has_reasons ? report_command(causes, " -o slow.json") : "record --why ...";
	add_cause(causes, &(struct xpt_explain_cause){ .kind = "waited",
						       .name = "",
						       .title = explain_component_title(COMPONENT_WAITED),
						       .explained = 1,
						       .difference = difference,
						       .inferences = count_inferences(causes, COMPONENT_WAITED),
						       .command = command });
}

static void describe_jobs(struct causes *causes)
{
	struct text *text = &causes->text;

	if (!causes->program->has_jobs)
		return;
	add_line(text);
	text_literal(text, "device: its jobs waited ");
	add_time(text, slow(causes)->queue);
	text_literal(text, " in queues (typical: ");
	add_time(text, typical(causes)->queue);
	text_literal(text, ") and ran ");
	add_time(text, slow(causes)->device);
	text_literal(text, " (typical: ");
	add_time(text, typical(causes)->device);
	text_literal(text, ")");
}

static void describe_blocked(struct causes *causes, enum study_component component)
{
	const enum xpt_off_cpu reason = XPT_OFF_CPU_FUTEX + (component - COMPONENT_FUTEX);
	struct text *text = &causes->text;
	double times, time;
	const struct study_party *first = find_parties(&causes->program->slow, reason, &times, &time);

	if (first) {
		add_time(text, slow(causes)->component[component]);
		text_literal(text, " in ");
		add_count(text, times);
		text_string(text, times < 1.05 && times > 0.95 ? " wait" : " waits");
		if (first->interrupt) {
			text_literal(text, ", mostly woken by an interrupt: a timer or a device");
		} else if (*first->name) {
			text_literal(text, ", mostly woken by thread ");
			add_name(text, first->name);
		}
	}
	if (component == COMPONENT_FAULT || slow(causes)->major_faults > typical(causes)->major_faults + 0.5) {
		add_line(text);
		text_literal(text, "page faults with I/O: ");
		add_count(text, slow(causes)->major_faults);
		text_literal(text, " (typical: ");
		add_count(text, typical(causes)->major_faults);
		text_literal(text, ")");
	}
	if (component == COMPONENT_IOCTL || component == COMPONENT_POLL || component == COMPONENT_OTHER)
		describe_jobs(causes);
}

static void add_blocked(struct causes *causes, enum study_component component)
{
	const double difference = more(causes, component);

	if (difference == 0)
		return;
	describe_blocked(causes, component);
	add_cause(causes, &(struct xpt_explain_cause){ .kind = "blocked",
						       .name = study_component_name(component),
						       .title = explain_component_title(component),
						       .explained = component != COMPONENT_OTHER,
						       .difference = difference,
						       .inferences = count_inferences(causes, component),
						       .command = off_cpu_command(causes) });
}

/* ---- CPU time ---- */

static void add_operator(struct causes *causes, const struct study_operator *op, double difference)
{
	struct text *text = &causes->text;

	add_time(text, op->slow.self);
	text_literal(text, " in it (typical: ");
	add_time(text, op->typical.self);
	text_literal(text, "), of that ");
	add_time(text, op->slow.cpu);
	text_literal(text, " on a CPU; it ran ");
	add_times(text, op->slow.times);
	text_literal(text, " (typical: ");
	add_count(text, op->typical.times);
	text_literal(text, ")");
	add_cause(causes, &(struct xpt_explain_cause){ .kind = "operator",
						       .name = op->label,
						       .title = "on a CPU in operator",
						       .explained = 1,
						       .difference = difference,
						       .command = report_command(causes, " -o slow.json") });
}

/* Of CPU time outside of operators, what follows page faults. */
static double faults_part(const struct causes *causes, double outside)
{
	const struct study_program *program = causes->program;
	const double faults = slow(causes)->minor_faults - typical(causes)->minor_faults;
	const double cost = faults * program->faults_cost;

	if (program->faults_fit < FIT_LEAST || program->faults_cost > FAULT_COST_MOST || faults < 1 || outside <= 0)
		return 0;
	return cost < outside ? cost : outside;
}

static void add_faults(struct causes *causes, double difference)
{
	struct text *text = &causes->text;

	add_count(text, slow(causes)->minor_faults);
	text_literal(text, " page faults without I/O (typical: ");
	add_count(text, typical(causes)->minor_faults);
	text_literal(text, "), such as of new memory; over all inferences each goes with ");
	add_time(text, causes->program->faults_cost);
	text_literal(text, " on a CPU, r2 ");
	text_real(text, round(causes->program->faults_fit * 100) / 100);
	add_cause(causes, &(struct xpt_explain_cause){ .kind = "faults",
						       .name = "",
						       .title = "on a CPU with page faults",
						       .explained = 1,
						       .difference = difference,
						       .command = cpu_command(causes) });
}

static void add_cpu(struct causes *causes)
{
	const struct study_program *program = causes->program;
	double outside = more(causes, COMPONENT_CPU), faults;
	bool alone = true;

	for (size_t i = 0; i < program->operator_count; i++) {
		const struct study_operator *op = &program->operators[i];
		const double difference = op->slow.cpu - op->typical.cpu;

		if (op->apart || difference == 0)
			continue;
		alone = false;
		outside -= difference;
		add_operator(causes, op, difference);
	}
	faults = faults_part(causes, outside);
	if (faults > 0)
		add_faults(causes, faults);
	outside -= faults;
	if (outside == 0)
		return;
	text_string(&causes->text, program->has_operators ?
					   "the thread ran longer outside of operators; nothing recorded says why" :
					   "the thread ran longer; operators were not recorded");
	add_cause(causes, &(struct xpt_explain_cause){
				  .kind = "cpu",
				  .name = "",
				  .title = program->has_operators ? "on a CPU outside of operators" : "on a CPU",
				  .difference = outside,
				  .inferences = alone && faults == 0 ? count_inferences(causes, COMPONENT_CPU) : 0,
				  .command = cpu_command(causes) });
}

/* ---- what is not known of the thread ---- */

static double device_part(double difference, double *left)
{
	const double part = difference < *left ? difference : *left;

	if (part <= 0)
		return 0;
	*left -= part;
	return part;
}

static void add_device(struct causes *causes, const char *kind, const char *title, double difference)
{
	if (difference <= 0)
		return;
	describe_jobs(causes);
	add_cause(causes, &(struct xpt_explain_cause){ .kind = kind,
						       .name = "",
						       .title = title,
						       .explained = 1,
						       .difference = difference,
						       .command = report_command(causes, " -o slow.json") });
}

/* Operators where it is not known whether they ran. */
static double add_unknown_operators(struct causes *causes)
{
	const struct study_program *program = causes->program;
	double sum = 0;

	for (size_t i = 0; i < program->operator_count && !program->has_states; i++) {
		const struct study_operator *op = &program->operators[i];
		const double difference = op->slow.self - op->typical.self;

		if (op->apart || difference == 0)
			continue;
		sum += difference;
		add_operator(causes, op, difference);
	}
	return sum;
}

/* Of slow inferences: mostly the first one, in which operators are found. */
static void describe_probes(struct causes *causes)
{
	struct text *text = &causes->text;

	if (slow(causes)->probes <= 0)
		return;
	text_literal(text, "it waited until probes were placed, ");
	add_time(text, slow(causes)->probes);
	text_literal(text, " (typical: ");
	add_time(text, typical(causes)->probes);
	text_literal(text, "), which only tracing causes");
}

/* Blocked without a reason, or not known at all: while the jobs of the inference were in a queue or ran, that is what it waited for. */
static void add_rest(struct causes *causes)
{
	double blocked = more(causes, COMPONENT_BLOCKED), unknown = more(causes, COMPONENT_UNKNOWN), left, queue,
	       device;
	const double probes = slow(causes)->probes - typical(causes)->probes;
	double of_unknown;

	unknown -= add_unknown_operators(causes);
	left = fmax(blocked, 0) + fmax(unknown, 0);
	queue = device_part(slow(causes)->queue - typical(causes)->queue, &left);
	device = device_part(slow(causes)->device - typical(causes)->device, &left);
	add_device(causes, "queue", "its jobs waited in queues of the device", queue);
	add_device(causes, "device", "its jobs ran longer on the device", device);
	of_unknown = fmin(queue + device, fmax(unknown, 0));
	unknown -= of_unknown;
	blocked -= queue + device - of_unknown;
	if (blocked != 0) {
		text_literal(&causes->text, "what for was not recorded");
		add_cause(causes,
			  &(struct xpt_explain_cause){
				  .kind = "blocked",
				  .name = study_component_name(COMPONENT_BLOCKED),
				  .title = explain_component_title(COMPONENT_BLOCKED),
				  .difference = blocked,
				  .inferences = queue + device > 0 ? 0 : count_inferences(causes, COMPONENT_BLOCKED),
				  .command = "record --why ..." });
	}
	if (unknown != 0) {
		describe_probes(causes);
		add_cause(causes, &(struct xpt_explain_cause){
					  .kind = "unknown",
					  .name = "",
					  .title = causes->program->has_states && probes <= 0 ?
							   "between enqueue and end, when no thread belongs to it" :
							   "what the thread did is not known",
					  .difference = unknown });
	}
}

/* ---- all of them ---- */

static int by_weight(const void *left, const void *right)
{
	const struct xpt_explain_cause *a = left, *b = right;

	if (a->explained != b->explained)
		return a->explained ? -1 : 1;
	return (int)(a->difference < b->difference) - (int)(a->difference > b->difference);
}

static double explained_share(const struct explained *explained, size_t count)
{
	double rest = 0;

	for (size_t i = 0; i < count; i++)
		rest += explained->causes[i].explained ? 0 : explained->causes[i].difference;
	if (explained->view.difference <= 0)
		return 0;
	rest = fmax(rest, 0) / explained->view.difference;
	return rest < 1 ? 1 - rest : 0;
}

int explain_causes(const struct xpt_explain *explain, const struct study_program *program, struct explained *explained)
{
	struct causes causes = { .explain = explain, .program = program, .explained = explained };

	explained->view.command = report_command(&causes, " -o slow.json");
	if (explained->view.difference > 0) {
		add_waited(&causes);
		for (enum study_component i = COMPONENT_FUTEX; i <= COMPONENT_OTHER; i++)
			add_blocked(&causes, i);
		add_cpu(&causes);
		add_rest(&causes);
	}
	if (causes.count)
		qsort(explained->causes, causes.count, sizeof(*explained->causes), by_weight);
	explained->view.causes = explained->causes;
	explained->view.cause_count = causes.count;
	explained->view.cause_size = sizeof(*explained->causes);
	explained->view.explained = explained_share(explained, causes.count);
	text_free(&causes.text);
	return causes.error;
}
