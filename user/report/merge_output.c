/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gzip.h"
#include "base/output.h"
#include "report/report_names.h"

#define TEXT_KEPT (4u << 20)

int merge_output_open(struct merge_output *output, const char *path)
{
	struct stat status;
	int error = 0;
	bool there;

	*output = (struct merge_output){ .descriptor = -1 };
	if (!strcmp(path, "-")) {
		output->descriptor = file_standard_output();
		return output->descriptor < 0 ? output->descriptor : 0;
	}
	output->gzip = gzip_is_name(path) ? gzip_create() : NULL;
	if (gzip_is_name(path) && !output->gzip)
		return -ENOMEM;
	there = !stat(path, &status);
	if (there && !S_ISREG(status.st_mode)) {
		output->descriptor = open(path, O_WRONLY | O_CLOEXEC);
		return output->descriptor < 0 ? merge_output_close(output, -errno) : 0;
	}
	/* What is replaced must not be somebody else's. */
	if (there) {
		output->descriptor = output_open(path, 0);
		if (output->descriptor < 0)
			return merge_output_close(output, output->descriptor);
		close(output->descriptor);
		output->descriptor = -1;
	}
	output->path = there ? realpath(path, NULL) : strdup(path);
	if (!output->path)
		return merge_output_close(output, -errno);
	output->descriptor = report_name_temporary(output->path, &output->temporary);
	if (output->descriptor < 0)
		error = output->descriptor;
	else if (there && fchmod(output->descriptor, status.st_mode & 07777))
		error = -errno;
	return error ? merge_output_close(output, error) : 0;
}

int merge_output_write(struct merge_output *output, struct text *text)
{
	int error = text->error ?: gzip_write(output->gzip, output->descriptor, text->data, text->length);

	text_clear(text, TEXT_KEPT);
	return error;
}

int merge_output_close(struct merge_output *output, int error)
{
	if (!error && output->gzip)
		error = gzip_finish(output->gzip, output->descriptor);
	gzip_free(output->gzip);
	if (!error && output->temporary && fsync(output->descriptor))
		error = -errno;
	if (output->descriptor >= 0 && close(output->descriptor) && errno != EINTR && !error)
		error = -errno;
	if (!error && output->temporary)
		error = output_replace(output->temporary, output->path);
	if (error && output->temporary)
		unlink(output->temporary);
	free(output->temporary);
	free(output->path);
	*output = (struct merge_output){ .descriptor = -1 };
	return error;
}
