/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints for each program of a recording how much slower its slowest inferences are, and the largest cause, as CSV: explain FILE */
#include <stdio.h>
#include <xputrace/explain.h>

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static void print_program(const struct xpt_explain_program *program)
{
	const struct xpt_explain_cause *first = program->cause_count ? &program->causes[0] : NULL;

	printf("\"%s\",%llu,%.0f,%.0f,%s,%.3f\n", program->name, (unsigned long long)program->recorded,
	       XPT_AT(program->cohorts, program->cohort_size, XPT_COHORT_TYPICAL)->mean, program->difference,
	       first ? first->kind : "", program->explained);
}

int main(int argc, char **argv)
{
	XPT_OPTS(xpt_explain_options, options, .input = argv[1], .log = on_message, .log_level = XPT_LOG_WARN);
	struct xpt_explain *explain;
	size_t i;

	if (argc != 2 || xpt_explain_create(&options, &explain))
		return 1;
	printf("program,recorded,typical_ns,more_ns,cause,explained\n");
	for (i = 0; i < xpt_explain_program_count(explain); i++)
		print_program(xpt_explain_program(explain, i));
	xpt_explain_destroy(explain);
	return 0;
}
