/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/devices.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "model/core/model.h"

Test(report_chrome_devices, numbers)
{
	struct chrome_devices *devices = chrome_devices_create();

	cr_assert_eq(chrome_devices_find(devices, "amdgpu", "0000:03:00.0"), 0);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", "0000:03:00.0"), 1);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", "0000:04:00.0"), 2);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", ""), 3);
	cr_assert_eq(chrome_devices_number(devices, "xe", "0000:03:00.0"), 4, "another driver");
	cr_assert_eq(chrome_devices_number(devices, "amdgpu", "0000:03:00.0"), 1);
	cr_assert_eq(chrome_devices_number(devices, "amdgpu0000:03:00.0", ""), 5, "where the two meet counts");
	cr_assert_eq(chrome_devices_find(devices, "xe", "0000:03:00.0"), 4);
	chrome_devices_free(devices);
	chrome_devices_free(NULL);
}

Test(report_chrome_devices, too_many_are_one)
{
	struct chrome_devices *devices = chrome_devices_create();
	char name[16];
	unsigned int i;

	for (i = 0; i < CHROME_DEVICES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		cr_assert_eq(chrome_devices_number(devices, "toy", name), i + 1);
	}
	cr_assert_eq(chrome_devices_number(devices, "toy", "x"), CHROME_DEVICES_OTHERS);
	cr_assert_eq(chrome_devices_number(devices, "toy", "y"), CHROME_DEVICES_OTHERS);
	cr_assert_eq(chrome_devices_number(devices, "toy", "7"), 8);
	chrome_devices_free(devices);
}

/* Of all that there can be: apart from real processes and threads, from each other, and within 31 bits. */
Test(report_chrome_devices, ranges)
{
	__u32 last_pid = chrome_device_pid(CHROME_DEVICES_OTHERS), first_tid = chrome_queue_tid(0, 0);
	__u32 last_tid = chrome_queue_tid(MODEL_QUEUES_MAX + 1, CHROME_LANES_MAX - 1);

	cr_assert_gt(chrome_device_pid(1), 1u << 22);
	cr_assert_lt(last_pid, first_tid);
	cr_assert_lt(last_tid, 1u << 31);
	cr_assert_eq(chrome_queue_tid(1, CHROME_LANES_MAX - 1) + 1, chrome_queue_tid(2, 0));
}
