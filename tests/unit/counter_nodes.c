/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/nodes.h"

#include <xputrace/device.h>

#include "tests/unit/counter_fixture.h"

TestSuite(counter_nodes, .init = fixture_open, .fini = fixture_close);

static void find(struct nodes *nodes)
{
	cr_assert_eq(nodes_find(in_fixture("sys"), nodes), 0);
}

Test(counter_nodes, one_device)
{
	struct nodes nodes;

	fixture_device("pci0000:00/0000:00:01.0/0000:03:00.0", "drm", "renderD128", "i915");
	fixture_file("sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/vendor", "0x8086\n");
	fixture_file("sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/device", "0x56a0\n");
	find(&nodes);
	cr_assert_eq(nodes.count, 1);
	cr_expect_str_eq(nodes.items[0].address, "0000:03:00.0");
	cr_expect_str_eq(nodes.items[0].driver, "i915");
	cr_expect_str_eq(nodes.items[0].path, "/dev/dri/renderD128");
	cr_expect_str_eq(nodes.items[0].sysfs, in_fixture("sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0"));
	cr_expect_str_eq(nodes.items[0].title, "8086:56a0");
	nodes_free(&nodes);
	cr_expect_eq(nodes.count, 0);
}

/* Numbers are compared as numbers, and what is not on PCI stands behind. */
Test(counter_nodes, order)
{
	static const char *const wanted[] = { "0000:02:00.0",  "0000:03:00.0", "0000:03:00.1",
					      "0000:03:0a.0",  "0000:e1:00.0", "ffff:01:00.0",
					      "10000:01:00.0", "1-2:1.0",      "fdab0000.npu" };
	struct nodes nodes;

	fixture_device("platform/fdab0000.npu", "accel", "accel0", "rocket");
	fixture_device("usb1/1-2:1.0", "drm", "renderD140", "udl");
	fixture_device("pci10000:00/10000:01:00.0", "drm", "renderD128", "xe");
	fixture_device("pciffff:00/ffff:01:00.0", "drm", "renderD129", "xe");
	fixture_device("pci0000:00/0000:e1:00.0", "accel", "accel1", "qaic");
	fixture_device("pci0000:00/0000:03:0a.0", "accel", "accel2", "qaic");
	fixture_device("pci0000:00/0000:03:00.1", "accel", "accel10", "qaic");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD131", "amdgpu");
	fixture_device("pci0000:00/0000:02:00.0", "drm", "renderD132", "amdgpu");
	find(&nodes);
	cr_assert_eq(nodes.count, 9);
	for (size_t i = 0; i < 9; i++)
		cr_expect_str_eq(nodes.items[i].address, wanted[i]);
	cr_expect_str_eq(nodes.items[2].path, "/dev/accel/accel10");
	cr_expect_str_eq(nodes.items[8].path, "/dev/accel/accel0");
	cr_expect_str_eq(nodes.items[8].driver, "rocket");
	nodes_free(&nodes);
}

/* One entry a device: its render node with the lowest number, the accel node only when it has no other. */
Test(counter_nodes, once_a_device)
{
	struct nodes nodes;

	fixture_device("pci0000:00/0000:03:00.0", "accel", "accel0", "both");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD1000", "both");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD130", "both");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD129", "both");
	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD131", "both");
	fixture_device("pci0000:00/0000:04:00.0", "accel", "accel1", "intel_vpu");
	find(&nodes);
	cr_assert_eq(nodes.count, 2);
	cr_expect_str_eq(nodes.items[0].path, "/dev/dri/renderD129");
	cr_expect_str_eq(nodes.items[1].path, "/dev/accel/accel1");
	nodes_free(&nodes);
}

/* Bound to NVIDIA's driver, of which one has a render node as well. */
Test(counter_nodes, nvidia)
{
	struct nodes nodes;

	fixture_device("pci0000:00/0000:03:00.0", "drm", "renderD128", "nvidia");
	for (unsigned int i = 3; i < 6; i++) {
		fixture_file(i == 5 ? "sys/devices/pci0000:00/0000:05:00.0/vendor" :
			     i == 4 ? "sys/devices/pci0000:00/0000:04:00.0/vendor" :
				      "sys/devices/pci0000:00/0000:03:00.0/vendor",
			     "0x10de\n");
	}
	fixture_file("sys/devices/pci0000:00/0000:04:00.0/device", "0x2335\n");
	fixture_file("sys/bus/pci/drivers/nvidia/module", "");
	for (unsigned int i = 3; i < 6; i++) {
		char from[128], to[160];

		snprintf(from, sizeof(from), "%s/0000:%02x:00.0", in_fixture("sys/bus/pci/drivers/nvidia"), i);
		snprintf(to, sizeof(to), "%s/0000:%02x:00.0", in_fixture("sys/devices/pci0000:00"), i);
		cr_assert_eq(symlink(to, from), 0);
	}
	fixture_file("proc/driver/nvidia/gpus/0000:03:00.0/information", "Model: \t A\nDevice Minor: \t 0\n");
	fixture_file("proc/driver/nvidia/gpus/0000:04:00.0/information", "Model: \t B\nDevice Minor: \t 1\n");
	find(&nodes); /* of the third, the driver has no file yet */
	cr_assert_eq(nodes.count, 2);
	cr_expect_str_eq(nodes.items[0].path, "/dev/dri/renderD128");
	cr_expect_str_eq(nodes.items[1].path, "/dev/nvidia1");
	cr_expect_str_eq(nodes.items[1].address, "0000:04:00.0");
	cr_expect_str_eq(nodes.items[1].title, "10de:2335");
	nodes_free(&nodes);
}

/* Cards that only show pictures, connectors, nodes without a device, files, links to nowhere. */
Test(counter_nodes, others_are_left_out)
{
	struct nodes nodes;

	fixture_device("pci0000:00/0000:05:00.0", "drm", "card0", "ast");
	fixture_device("pci0000:00/0000:05:00.0", "drm", "card0-VGA-1", "ast");
	fixture_device("pci0000:00/0000:06:00.0", "drm", "renderD", "x");
	fixture_device("pci0000:00/0000:07:00.0", "drm", "renderD12x", "x");
	fixture_device("pci0000:00/0000:08:00.0", "accel", "accelerometer", "x");
	fixture_file("sys/class/drm/version", "drm 1.1.0\n");
	fixture_file("sys/class/drm/renderD200/uevent", "");
	fixture_link("sys/class/drm/renderD201", "sys/devices/gone");
	fixture_file("sys/class/accel/accel7", "");
	find(&nodes);
	cr_expect_eq(nodes.count, 0);
	nodes_free(&nodes);
}

Test(counter_nodes, unbound_and_untitled)
{
	struct nodes nodes;

	fixture_device("platform/vgem", "drm", "renderD128", NULL);
	fixture_file("sys/devices/platform/vgem/vendor", "none\n");
	fixture_file("sys/devices/platform/vgem/device", "0x1\n");
	find(&nodes);
	cr_assert_eq(nodes.count, 1);
	cr_expect_str_eq(nodes.items[0].driver, "");
	cr_expect_str_eq(nodes.items[0].title, "");
	cr_expect_str_eq(nodes.items[0].address, "vgem");
	nodes_free(&nodes);
}

Test(counter_nodes, without_classes)
{
	struct nodes nodes;

	cr_expect_eq(nodes_find(in_fixture("nowhere"), &nodes), 0);
	cr_expect_eq(nodes.count, 0);
	nodes_free(&nodes);
}

struct seen {
	int count;
	int stop_with;
};

static int see(void *context, const struct xpt_device_info *device)
{
	struct seen *seen = context;

	cr_expect_eq(device->index, seen->count);
	cr_expect(device->address[0]);
	cr_expect_eq(strncmp(device->node, "/dev/", 5), 0);
	seen->count++;
	return seen->stop_with;
}

/* Of this machine: as many as a shell finds, in order; the walk ends when it is asked to. */
Test(counter_nodes, list_of_this_machine)
{
	struct seen seen = { 0 };
	int wanted = 0;
	FILE *shell;

	shell = popen("for node in /sys/class/drm/renderD*/device /sys/class/accel/accel*/device; do "
		      "[ -e $node ] && readlink -f $node; done | sort -u | wc -l",
		      "r");
	cr_assert_not_null(shell);
	cr_assert_eq(fscanf(shell, "%d", &wanted), 1);
	pclose(shell);
	cr_expect_eq(xpt_device_list(see, &seen), 0);
	cr_expect_eq(seen.count, wanted);
	if (wanted) {
		seen = (struct seen){ 0, 7 };
		cr_expect_eq(xpt_device_list(see, &seen), 7);
		cr_expect_eq(seen.count, 1);
	}
}
