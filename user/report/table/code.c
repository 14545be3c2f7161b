/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/code.h"

#include "report/latency/columns.h"

#define ROWS_MAX 20

static void fill(struct columns *columns, const struct model_code_object *object)
{
	columns_name(columns, object->name ? object->name : object->uri ? object->uri : "-");
	columns_name(columns, object->kind);
	columns_name(columns, object->machine ? object->machine : "-");
	columns_bytes(columns, object->size);
	columns_count(columns, object->loads);
	columns_count(columns, object->kernels);
}

int summary_code(const struct model *model, FILE *out, size_t width)
{
	size_t count = model_code_object_count(model), i;
	struct columns columns = { 0 };
	int error;

	if (!count)
		return 0;
	columns_define(&columns, "CODE OBJECT", true);
	columns_define(&columns, "KIND", true);
	columns_define(&columns, "MACHINE", true);
	columns_define(&columns, "SIZE", false);
	columns_define(&columns, "LOADS", false);
	columns_define(&columns, "KERNELS", false);
	for (i = 0; i < count && i < ROWS_MAX; i++)
		fill(&columns, model_code_object(model, i));
	columns.narrow = width && columns_least_width(&columns) > width;
	error = columns_print(&columns, out, width);
	if (count > ROWS_MAX)
		fprintf(out, "(%zu more; see the trace's metadata)\n", count - ROWS_MAX);
	putc('\n', out);
	columns_free(&columns);
	return error;
}
