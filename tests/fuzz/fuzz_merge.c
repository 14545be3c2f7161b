/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces to merge are anybody's. Whatever is in them, they are refused with one message, or what is written is one
 * document, or packets that are whole. The input is up to three traces with a record separator between; the first ones are given an offset when
 * they begin with a space.
 */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xputrace/merge.h>

#include "base/format/protobuf.h"
#include "base/file/file.h"
#include "tests/fuzz/require.h"

#define TRACES_MAX 3
#define SEPARATOR 0x1e

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char paths[TRACES_MAX][32];
static int files[TRACES_MAX];

/* What is merged goes to standard output; the fuzzer uses the other one. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int output = memfd_create("merged", MFD_CLOEXEC);

	(void)argc;
	(void)argv;
	require(output >= 0 && dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
	close(output);
	for (int i = 0; i < TRACES_MAX; i++) {
		files[i] = memfd_create("trace", MFD_CLOEXEC);
		require(files[i] >= 0);
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", files[i]);
	}
	return 0;
}

static void fill(int file, const uint8_t *data, size_t size)
{
	require(!ftruncate(file, 0) && !file_write_at(file, data, size, 0));
}

static void check_output(void)
{
	off_t length = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	char *text = malloc(length + 1);
	cJSON *document;

	require(text && pread(STDOUT_FILENO, text, length, 0) == length);
	if (length > 1 && text[0] == '\n' && text[1] != '{' && text[1] != '[') {
		struct pb_reader trace = pb_reader(text, length);
		struct pb_field field;
		int more;

		while ((more = pb_next(&trace, &field)) == 1)
			require(field.number == 1 && field.type == PB_BYTES);
		require(!more);
		free(text);
		return;
	}
	document = cJSON_ParseWithLength(text, length);
	require(document && cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(document, "traceEvents")));
	cJSON_Delete(document);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xpt_merge_input inputs[TRACES_MAX] = { 0 };
	struct said said = { 0 };
	struct xpt_merge_options options = {
		.size = sizeof(options),
		.inputs = inputs,
		.output = "-",
		.log = said_write,
		.log_context = &said,
	};
	int error;

	while (options.input_count < TRACES_MAX) {
		const uint8_t *end = options.input_count + 1 < TRACES_MAX ? memchr(data, SEPARATOR, size) : NULL;
		size_t length = end ? (size_t)(end - data) : size;

		fill(files[options.input_count], data, length);
		inputs[options.input_count].path = paths[options.input_count];
		inputs[options.input_count].has_offset = length && *data == ' ';
		inputs[options.input_count++].offset = -1234567;
		if (!end)
			break;
		data = end + 1;
		size -= length + 1;
	}
	require(!ftruncate(STDOUT_FILENO, 0) && !lseek(STDOUT_FILENO, 0, SEEK_SET));
	error = xpt_merge_traces(&options);
	require(said.errors == !!error);
	if (!error)
		check_output();
	return 0;
}
