/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/devices.h"

#include <stdlib.h>
#include <string.h>

struct chrome_devices {
	char *name[CHROME_DEVICES_MAX]; /* driver and device, each with its terminator; owned */
	unsigned int count;
};

struct chrome_devices *chrome_devices_create(void)
{
	return calloc(1, sizeof(struct chrome_devices));
}

void chrome_devices_free(struct chrome_devices *devices)
{
	unsigned int i;

	if (!devices)
		return;
	for (i = 0; i < devices->count; i++)
		free(devices->name[i]);
	free(devices);
}

unsigned int chrome_devices_find(const struct chrome_devices *devices, const char *driver, const char *device)
{
	unsigned int i;

	for (i = 0; i < devices->count; i++) {
		const char *name = devices->name[i];

		if (!strcmp(name, driver) && !strcmp(name + strlen(name) + 1, device))
			return i + 1;
	}
	return 0;
}

unsigned int chrome_devices_number(struct chrome_devices *devices, const char *driver, const char *device)
{
	unsigned int known = chrome_devices_find(devices, driver, device);
	size_t first = strlen(driver) + 1, second = strlen(device) + 1;
	char *name;

	if (known)
		return known;
	if (devices->count == CHROME_DEVICES_MAX)
		return CHROME_DEVICES_OTHERS;
	name = malloc(first + second);
	if (!name)
		return CHROME_DEVICES_OTHERS;
	memcpy(name, driver, first);
	memcpy(name + first, device, second);
	devices->name[devices->count++] = name;
	return devices->count;
}
