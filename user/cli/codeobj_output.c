/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/codeobj_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

#define WORD_COLUMNS 12 /* of kinds, machines and runtimes, at most */
#define SHA_SHOWN 12	/* digits */

/* An object with the number of its loads. */
struct row {
	const struct xpt_codeobj *object; /* the first load of it */
	size_t index;			  /* of that */
	size_t loads;
};

/* What has a hash is the same object where that is the same. */
static int compare_hashes(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int order = strcmp(a->object->sha256, b->object->sha256);

	return order ?: a->index < b->index ? -1 : 1;
}

static int compare_places(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return a->index < b->index ? -1 : 1;
}

/* A program's own code for the host, that no runtime was given: there are dozens, and few want to see them. */
static bool is_library(const struct xpt_codeobj *object)
{
	return object->pid && !object->runtime && !strcmp(object->kind, "elf");
}

/* In the order of the first loads. The number of rows. */
static size_t make_rows(const struct xpt_codeobj_list *list, struct row *rows)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		rows[i] = (struct row){ list->objects[i], i, 1 };
	qsort(rows, list->count, sizeof(*rows), compare_hashes);
	for (size_t i = 0; i < list->count; i++) {
		const char *sha256 = rows[i].object->sha256;

		if (count && *sha256 && !strcmp(sha256, rows[count - 1].object->sha256))
			rows[count - 1].loads++;
		else
			rows[count++] = rows[i];
	}
	qsort(rows, count, sizeof(*rows), compare_places);
	return count;
}

/* Columns of words: no wider than what is in them. */
struct columns {
	size_t kind, machine, runtime;
};

static void widen(size_t *columns, const char *word)
{
	size_t length = word ? strlen(word) : 1;

	length = length < WORD_COLUMNS ? length : WORD_COLUMNS;
	*columns = length > *columns ? length : *columns;
}

static struct columns measure(const struct row *rows, size_t count)
{
	struct columns columns = { strlen("KIND"), strlen("MACHINE"), strlen("RUNTIME") };

	for (size_t i = 0; i < count; i++) {
		widen(&columns.kind, rows[i].object->kind);
		widen(&columns.machine, rows[i].object->machine);
		widen(&columns.runtime, rows[i].object->runtime);
	}
	return columns;
}

static uint64_t first_load(const struct xpt_codeobj_list *list)
{
	uint64_t first = ~0ull;

	for (size_t i = 0; i < list->count; i++) {
		uint64_t loaded = list->objects[i]->loaded;

		first = loaded && loaded < first ? loaded : first;
	}
	return first;
}

static size_t count_kernels(const struct xpt_codeobj *object)
{
	size_t count = 0;

	for (size_t i = 0; i < object->function_count; i++)
		count += object->functions[i].kernel != 0;
	return count;
}

static void print_row(FILE *out, const struct row *row, const struct columns *columns, uint64_t since)
{
	const struct xpt_codeobj *object = row->object;

	if (object->loaded)
		fprintf(out, "%11.6f", (double)(object->loaded - since) / 1e9);
	else
		fprintf(out, "%11s", object->pid ? "before" : "-");
	fprintf(out, " %5zu  ", row->loads);
	print_name(out, object->kind, columns->kind);
	fprintf(out, " ");
	print_name(out, object->machine ?: "-", columns->machine);
	fprintf(out, " %10" PRIu64 " %7zu  %-*.*s  ", object->data_size, count_kernels(object), SHA_SHOWN, SHA_SHOWN,
		*object->sha256 ? object->sha256 : "-");
	print_name(out, object->runtime ?: "-", columns->runtime);
	fprintf(out, " ");
	print_name(out, *object->uri ? object->uri : "-", 0);
	fprintf(out, "\n");
	if (object->missing)
		fprintf(out, "%18s  %" PRIu64 " bytes are missing\n", "", object->missing);
	if (object->error) {
		fprintf(out, "%18s  ", "");
		print_name(out, object->error, 0);
		fprintf(out, "\n");
	}
}

static void print_functions(FILE *out, const struct xpt_codeobj *object)
{
	for (size_t i = 0; i < object->part_count; i++) {
		const struct xpt_codeobj_part *part = &object->parts[i];

		fprintf(out, "%18s  %#12" PRIx64 " %10" PRIu64 "  %-8s  ", "", part->offset, part->length,
			part->external ? "file" : part->kind);
		print_name(out, part->name, 0);
		fprintf(out, "\n");
	}
	for (size_t i = 0; i < object->function_count; i++) {
		const struct xpt_codeobj_function *function = &object->functions[i];

		fprintf(out, "%18s  %#12" PRIx64 " %10" PRIu64 "  %-8s  ", "", function->offset, function->size,
			function->kernel ? "kernel" : "function");
		print_name(out, function->name, 0);
		fprintf(out, "\n");
	}
	if (object->functions_left_out)
		fprintf(out, "%18s  and %" PRIu64 " more\n", "", object->functions_left_out);
}

/* What is no part of the rows, where there is some. */
static void print_counts(FILE *out, const struct xpt_codeobj_list *list, size_t rows, size_t libraries)
{
	const struct {
		uint64_t count;
		const char *what;
	} counts[] = {
		{ list->over_limit, "not kept for a limit" },
		{ list->incomplete, "incomplete" },
		{ list->lost, "lost" },
	};

	fprintf(out, "%zu objects, %zu loads", rows, list->count);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (counts[i].count)
			fprintf(out, ", %" PRIu64 " %s", counts[i].count, counts[i].what);
	}
	if (libraries)
		fprintf(out, "; %zu objects are shared libraries: --libraries prints them", libraries);
	fprintf(out, "\n");
}

/* Those that are printed come first, in their order. Their number. */
static size_t choose(struct row *rows, size_t count, bool libraries)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (libraries || !is_library(rows[i].object))
			rows[kept++] = rows[i];
	}
	return kept;
}

int codeobj_table(FILE *out, const struct xpt_codeobj_list *list, const struct codeobj_shown *shown)
{
	struct row *rows = calloc(list->count + 1, sizeof(*rows));
	uint64_t since = first_load(list);
	struct columns columns;
	size_t count, all;

	if (!rows)
		return -ENOMEM;
	all = make_rows(list, rows);
	count = choose(rows, all, shown->libraries);
	columns = measure(rows, count);
	if (count)
		fprintf(out, "%11s %5s  %-*s %-*s %10s %7s  %-*s  %-*s %s\n", "LOADED(S)", "LOADS", (int)columns.kind,
			"KIND", (int)columns.machine, "MACHINE", "SIZE", "KERNELS", SHA_SHOWN, "SHA256",
			(int)columns.runtime, "RUNTIME", "WHERE");
	for (size_t i = 0; i < count; i++) {
		print_row(out, &rows[i], &columns, since);
		if (shown->functions)
			print_functions(out, rows[i].object);
	}
	print_counts(out, list, all, all - count);
	free(rows);
	return 0;
}

/* ---- the summary ---- */

static void print_waits(FILE *out, const struct xpt_codeobj_list *list)
{
	uint64_t all = 0, longest = 0;
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		uint64_t waited = list->objects[i]->waited;

		count += waited != 0;
		all += waited;
		longest = waited > longest ? waited : longest;
	}
	if (count)
		fprintf(out, "%zu calls waited: %.1f ms in all, %.1f ms at longest\n", count, (double)all / 1e6,
			(double)longest / 1e6);
}

static int print_written(FILE *out, const struct xpt_codeobj_list *list, const char *folder)
{
	struct row *rows = calloc(list->count + 1, sizeof(*rows));
	size_t count, files = 0;
	uint64_t bytes = 0;

	if (!rows)
		return -ENOMEM;
	count = make_rows(list, rows);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].object->file) {
			files++;
			bytes += rows[i].object->data_size;
		}
	}
	free(rows);
	fprintf(out, "wrote ");
	print_name(out, folder, 0);
	fprintf(out, ": index.json and %zu objects of %" PRIu64 " bytes: `xputrace codeobj show ", files, bytes);
	print_name(out, folder, 0);
	fprintf(out, "` prints them\n");
	return 0;
}

int codeobj_summary(FILE *out, const struct xpt_codeobj_list *list, bool snapshot, const char *folder)
{
	if (!list->count && snapshot)
		fprintf(out, "nothing was found in files: what was given in memory is seen only while it is loaded, "
			     "without --snapshot\n");
	else if (!list->count)
		fprintf(out,
			"nothing was loaded: start this before the program loads its models, or with -- COMMAND\n");
	if (list->lost)
		fprintf(out, "lost: %" PRIu64 " loads of which nothing is known\n", list->lost);
	if (list->over_limit)
		fprintf(out,
			"the bytes of %" PRIu64
			" loads were not kept: see --object-limit, --process-limit, --total-limit\n",
			list->over_limit);
	print_waits(out, list);
	return folder ? print_written(out, list, folder) : 0;
}
