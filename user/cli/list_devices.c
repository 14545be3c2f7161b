/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include <xputrace/counters.h>
#include <xputrace/device.h>

#include "cli/commands.h"
#include "cli/list_output.h"

#define NAME_COLUMNS 36

static const char *const kinds[] = {
	[XPT_COUNTER_SUM] = "sum",
	[XPT_COUNTER_MEAN] = "mean",
	[XPT_COUNTER_LEVEL] = "level",
};

static int on_device(void *context, const struct xpt_device_info *device)
{
	struct list_output *output = context;

	if (output->json) {
		list_row(output);
		printf("{\"gpu\":%d,", device->index);
		list_string("address", device->address, ",");
		list_string("driver", device->driver, ",");
		list_string("node", device->node, ",");
		list_string("title", device->title, "}");
		return 0;
	}
	if (!output->rows++)
		printf("%-4s %-16s %-12s %-24s %s\n", "GPU", "ADDRESS", "DRIVER", "NODE", "VENDOR:DEVICE");
	printf("%-4d ", device->index);
	print_name(stdout, device->address, 16);
	printf(" ");
	print_name(stdout, device->driver, 12);
	printf(" ");
	print_name(stdout, device->node, 24);
	printf(" ");
	print_name(stdout, device->title, 0);
	printf("\n");
	return 0;
}

int list_devices(struct list_output *output)
{
	return xpt_device_list(on_device, output);
}

static int on_counter(void *context, const struct xpt_counter_info *counter)
{
	struct list_output *output = context;

	if (output->json) {
		list_row(output);
		printf("{");
		list_string("counter", counter->name, ",");
		list_string("unit", counter->unit, ",");
		printf("\"scale\":%.17g,", counter->scale);
		list_string("kind", kinds[counter->kind], ",");
		list_string("source", counter->source, ",");
		list_string("description", counter->description, "}");
		return 0;
	}
	if (!output->rows++)
		printf("%-*s %-8s %-5s  %s\n", NAME_COLUMNS, "COUNTER", "UNIT", "KIND", "DESCRIPTION");
	print_name(stdout, counter->name, NAME_COLUMNS);
	printf(" ");
	print_name(stdout, counter->unit, 8);
	printf(" %-5s  ", kinds[counter->kind]);
	print_name(stdout, counter->description, 0);
	printf("\n");
	return 0;
}

int list_counters(struct list_output *output, int gpu)
{
	int result = xpt_counters_list(gpu, on_counter, output);

	if (result == -ENODEV)
		fprintf(stderr, "xputrace: there is no device %d (see xputrace list devices)\n", gpu);
	return result;
}
