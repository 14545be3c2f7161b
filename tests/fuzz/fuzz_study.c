/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings that are explained and compared are anybody's: whatever is in them is refused or studied, what is written of it is a
 * JSON document and printable text, and parts add up to what they are parts of.
 *
 * Of the first byte of an input (recordings.h) bits 2-3 choose what follows:
 *	0  the recording is explained
 *	1  the same with one program and a time
 *	2  it is compared with itself, in which each call took twice as long
 *	3  the same the other way round, each side twice
 * With bit 4 it becomes a page.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xputrace/diff.h>
#include <xputrace/explain.h>
#include <xputrace/report.h>

#include "base/core/text.h"
#include "base/file/file.h"
#include "tests/fuzz/recordings.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char file[RECORDING_INPUT_MAX] __attribute__((aligned(8)));
static int files[2];
static char paths[2][32];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const int output = memfd_create("page", MFD_CLOEXEC);

	(void)argc;
	(void)argv;
	require(output >= 0 && dup2(output, STDOUT_FILENO) == STDOUT_FILENO); /* the fuzzer uses the other one */
	close(output);
	for (int i = 0; i < 2; i++) {
		files[i] = memfd_create("recording", MFD_CLOEXEC);
		require(files[i] >= 0);
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", files[i]);
	}
	return 0;
}

static void put(int number, size_t size, unsigned int repair)
{
	file_repair(file, size, repair);
	require(!ftruncate(files[number], 0) && !file_write_at(files[number], file, size, 0));
}

/* Each call has begun earlier. */
static void make_slower(size_t size)
{
	size_t at = chunks_begin(file, size), length;

	while (at && at < size) {
		at += chunk_at(file, at, size) ? sizeof(struct recording_chunk) : 0;
		length = record_at(file, at, size);
		if (!length)
			return;
		if (((struct xpt_record_header *)(file + at))->kind == XPT_RECORD_CALL) {
			struct xpt_record_call *call = (void *)(file + at);

			call->start -= call->header.time - call->start;
		}
		at += length;
	}
}

/* Frees it. */
static void check_text(char *text)
{
	for (const char *line = text; *line; line++)
		require((unsigned char)*line >= ' ' || *line == '\n');
	require(text_valid(text, strlen(text)) == strlen(text));
	free(text);
}

static void check_json(char *text)
{
	cJSON *document = cJSON_Parse(text);

	require(cJSON_IsObject(document));
	cJSON_Delete(document);
	free(text);
}

/* But for what is lost in doubles. */
static bool is_sum(double sum, double whole, double largest)
{
	return isfinite(sum) && isfinite(whole) && fabs(sum - whole) <= 1 + 1e-6 * (fabs(whole) + largest);
}

static void check_program(const struct xpt_explain_program *program)
{
	double typical = 0, slow = 0, causes = 0, largest = 0;

	require(program->name && program->runtime && program->process && program->missing);
	if (!program->count)
		return;
	require(program->min <= program->p50 && program->p50 <= program->p99 && program->p99 <= program->max);
	require(program->cohort_count == 2);
	for (size_t i = 0; i < program->state_count; i++) {
		const struct xpt_explain_part *part = XPT_AT(program->states, program->part_size, i);

		require(part->typical >= 0 && part->slow >= 0);
		typical += part->typical;
		slow += part->slow;
	}
	require(is_sum(typical, program->cohorts[XPT_COHORT_TYPICAL].mean, 0));
	require(is_sum(slow, program->cohorts[XPT_COHORT_SLOW].mean, 0));
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_explain_cause *cause = XPT_AT(program->causes, program->cause_size, i);

		causes += cause->difference;
		largest += fabs(cause->difference);
		require(cause->kind && cause->name && cause->title && cause->evidence);
	}
	require(!program->cause_count || is_sum(causes, program->difference, largest));
	require(program->explained >= 0 && program->explained <= 1);
}

static void explain(bool limited)
{
	struct said said = { 0 };
	struct xpt_program_choice choice = { .size = sizeof(choice), .name = "sleep" };
	XPT_OPTS(xpt_explain_options, options, .input = paths[0], .log = said_write, .log_context = &said,
		 .log_level = XPT_LOG_DEBUG);
	struct xpt_explain *explain = NULL;
	char *text;
	int error;

	if (limited) {
		options.programs = &choice;
		options.program_count = 1;
		options.program_size = sizeof(choice);
		options.from = 1000000;
		options.to = 40000000;
		options.most = 1;
	}
	error = xpt_explain_create(&options, &explain);
	require(!error || error == -EBADMSG || error == -EPROTO || error == -ENOENT || error == -ENOTSUP);
	require(!said.errors == !error);
	if (error)
		return;
	for (size_t i = 0; i < xpt_explain_program_count(explain); i++)
		check_program(xpt_explain_program(explain, i));
	require(!xpt_explain_text(explain, limited ? 40 : 0, &text));
	check_text(text);
	require(!xpt_explain_json(explain, &text));
	check_json(text);
	xpt_explain_destroy(explain);
}

static void compare(bool reverse)
{
	static const char *const conditions[] = { "p99 > +10%", "waited > +2ms", "throughput < -5%" };
	const char *before[] = { paths[reverse], paths[reverse] }, *after[] = { paths[!reverse], paths[!reverse] };
	struct said said = { 0 };
	XPT_OPTS(xpt_diff_options, options, .before = before, .before_count = 1 + reverse, .after = after,
		 .after_count = 1 + reverse, .conditions = conditions, .condition_count = 3, .log = said_write,
		 .log_context = &said, .log_level = XPT_LOG_DEBUG);
	struct xpt_diff *diff = NULL;
	char *text;
	int error = xpt_diff_create(&options, &diff);

	require(!error || error == -EBADMSG || error == -EPROTO || error == -ENOENT || error == -ENOTSUP);
	require(!said.errors == !error);
	if (error)
		return;
	for (size_t i = 0; i < diff->program_count; i++) {
		const struct xpt_diff_program *program = XPT_AT(diff->programs, diff->program_size, i);

		for (size_t each = 0; each < program->row_count; each++) {
			const struct xpt_diff_row *row = XPT_AT(program->rows, program->row_size, each);

			require(isnan(row->p) || (row->p >= 0 && row->p <= 1));
			require(isnan(row->adjusted) || (row->adjusted >= row->p && row->adjusted <= 1));
		}
	}
	require(!xpt_diff_text(diff, reverse ? 60 : 0, reverse, &text));
	check_text(text);
	require(!xpt_diff_json(diff, &text));
	check_json(text);
	xpt_diff_destroy(diff);
}

static void check_page(void)
{
	const off_t length = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	char *text = malloc(length + 1);

	require(text && pread(STDOUT_FILENO, text, length, 0) == length);
	text[length] = '\0';
	require(text_valid(text, length) == (size_t)length && strlen(text) == (size_t)length);
	require(strstr(text, "</html>"));
	free(text);
}

static void make_page(void)
{
	struct said said = { 0 };
	XPT_OPTS(xpt_report_options, options, .input = paths[0], .output = "-", .format = XPT_OUTPUT_HTML,
		 .summary_descriptor = -1, .log = said_write, .log_context = &said, .log_level = XPT_LOG_DEBUG);
	int error;

	require(!ftruncate(STDOUT_FILENO, 0) && !lseek(STDOUT_FILENO, 0, SEEK_SET));
	error = xpt_report_create(&options);
	require(!error || error == -ENODATA || error == -EBADMSG || error == -EPROTO || error == -ENOTSUP);
	require(!said.errors == (!error || error == -ENODATA));
	if (!error || error == -ENODATA)
		check_page();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int choice;

	if (size < 1 || size - 1 > sizeof(file))
		return 0;
	choice = *data++;
	size--;
	memcpy(file, data, size);
	put(0, size, choice & 3);
	if (choice & 16) {
		make_page();
		return 0;
	}
	if (!(choice & 8)) {
		explain(choice & 4);
		return 0;
	}
	make_slower(size);
	put(1, size, choice & 3);
	compare(choice & 4);
	return 0;
}
