/* SPDX-License-Identifier: BSD-2-Clause */
/* NVIDIA's management library, by a stand-in that is built beside the tests. */
#include <errno.h>

#include "counter/polled.h"
#include "tests/unit/counter_fixture.h"
#include "tests/unit/standin/nvml.h"

#define ALL                            \
	"nvml/energy J 0.001 grows\n"  \
	"nvml/power W 0.001 level\n"   \
	"nvml/busy % 1 level\n"        \
	"nvml/memory-busy % 1 level\n" \
	"nvml/memory-used B 1 level\n" \
	"nvml/frequency MHz 1 level\n"

static struct standin_nvml *standin;
static void *library;
static struct counter_place place;
static char said[1024];
static struct node gpus[] = {
	{ "0000:17:00.0", "nvidia", "/dev/dri/renderD128", "/nowhere", "10de:2335" },
	{ "0000:65:00.0", "nvidia", "/dev/dri/renderD129", "/nowhere", "10de:2335" },
	{ "0000:99:00.0", "nvidia", "/dev/dri/renderD130", "/nowhere", "10de:2335" },
	{ "0000:ca:00.0", "vfio-pci", "/dev/dri/renderD131", "/nowhere", "10de:2335" },
};
static const struct nodes nodes = { gpus, 4 };

static void keep(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", text);
}

static const struct log log_kept = { keep, NULL, XPT_LOG_DEBUG };

static void prepare(void)
{
	fixture_open();
	standin = fixture_nvml(&library);
	for (int i = 0; i < STANDIN_GPUS; i++)
		standin->gpus[i] = (struct standin_gpu){ .energy = 1000000ull * (i + 1),
							 .power = 70000 + i,
							 .busy = 10 + i,
							 .memory_busy = 20 + i,
							 .memory_used = (1ull << 33) + i,
							 .frequency = 1980 - i };
	place = (struct counter_place){ .sysfs = "/nowhere", .proc = "/nowhere", .nodes = nodes, .log = &log_kept };
}

static void finish(void)
{
	dlclose(library);
	fixture_close();
}

TestSuite(counter_polled_nvml, .init = prepare, .fini = finish);

static void expect_list(const char *wanted)
{
	struct listed listed = { "", 0 };

	cr_expect_eq(polled_list(&place, listed_add, &listed), 0);
	cr_expect_str_eq(listed.text, wanted);
}

static unsigned long long value(const char *event)
{
	struct polled *polled = must_open(&place, "nvml", event);
	unsigned long long raw = must_read(polled);

	polled_close(polled);
	return raw;
}

Test(counter_polled_nvml, one_device)
{
	expect_list(ALL);
	place.node = &gpus[1];
	expect_list(ALL);
	cr_expect_eq(value("energy"), 2000000);
	cr_expect_eq(value("power"), 70001);
	cr_expect_eq(value("busy"), 11);
	cr_expect_eq(value("memory-busy"), 21);
	cr_expect_eq(value("memory-used"), (1ull << 33) + 1);
	cr_expect_eq(value("frequency"), 1979);
	cr_expect_eq(standin->gpus[0].calls[STANDIN_POWER], 1, "only by the first list");
	cr_expect_str_eq(said, "");
}

Test(counter_polled_nvml, shut_down_as_often_as_initialized)
{
	struct polled *power, *busy;

	expect_list(ALL);
	cr_expect_eq(standin->initialized, 0);
	power = must_open(&place, "nvml", "power");
	busy = must_open(&place, "nvml", "busy");
	cr_expect_gt(standin->initialized, 0);
	polled_close(power);
	cr_expect_eq(must_read(busy), 33);
	polled_close(busy);
	standin->gpus[0].results[STANDIN_ENERGY] = 15;
	place.node = &gpus[0];
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENODEV);
	cr_expect_eq(standin->initialized, 0);
}

/* Every GPU that the library has, also the one without a node. */
Test(counter_polled_nvml, all_devices)
{
	cr_expect_eq(value("energy"), 6000000);
	cr_expect_eq(value("memory-used"), 3 * (1ull << 33) + 3);
	standin->gpus[1].handle_result = 4;
	cr_expect_eq(value("energy"), 4000000);
}

Test(counter_polled_nvml, follows_the_library)
{
	struct polled *energy, *power;

	place.node = &gpus[0];
	energy = must_open(&place, "nvml", "energy");
	power = must_open(&place, "nvml", "power");
	cr_expect_eq(must_read(energy), 1000000);
	standin->gpus[0].energy = 0x123456789abcdef0;
	standin->gpus[0].power = 4000000000u;
	cr_expect_eq(must_read(energy), 0x123456789abcdef0);
	cr_expect_eq(must_read(power), 4000000000u);
	/* The driver was loaded anew. */
	standin->gpus[0].energy = 5;
	standin->gpus[0].power = 5;
	cr_expect_eq(must_read(energy), 0x123456789abcdef0);
	cr_expect_eq(must_read(power), 5);
	polled_close(energy);
	polled_close(power);
}

/* Nothing of a device that the library does not know, or that another driver has. */
Test(counter_polled_nvml, other_devices)
{
	place.node = &gpus[2];
	expect_list("");
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENOENT);
	place.node = &gpus[3];
	expect_list("");
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENOENT);
	cr_expect_str_eq(said, "");
}

/* Not supported: that event is not there, and of several devices those count that have it. */
Test(counter_polled_nvml, not_supported)
{
	for (int i = 0; i < STANDIN_GPUS; i++)
		standin->gpus[i].results[STANDIN_UTILIZATION] = 3;
	standin->gpus[0].results[STANDIN_ENERGY] = 3;
	expect_list("nvml/energy J 0.001 grows\n"
		    "nvml/power W 0.001 level\n"
		    "nvml/memory-used B 1 level\n"
		    "nvml/frequency MHz 1 level\n");
	cr_expect_eq(open_error(&place, "nvml", "busy"), -ENOENT);
	cr_expect_eq(open_error(&place, "nvml", "memory-busy"), -ENOENT);
	cr_expect_eq(open_error(&place, "nvml", "temperature"), -ENOENT);
	cr_expect_eq(value("energy"), 5000000);
	place.node = &gpus[0];
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENOENT);
	cr_expect_str_eq(said, "");
}

Test(counter_polled_nvml, without_a_function)
{
	static char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	struct listed listed = { "", 0 };

	path[length] = '\0';
	strcpy(strrchr(path, '/'), "/standin/nvml_without_clock.so");
	nvml_use(path);
	cr_expect_eq(polled_list(&place, listed_add, &listed), 0);
	cr_expect_eq(listed.calls, 5);
	cr_expect_null(strstr(listed.text, "frequency"));
	cr_expect_eq(open_error(&place, "nvml", "frequency"), -ENOENT);
}

/* Which of the functions there is decides whether what the driver reserves counts as used. */
Test(counter_polled_nvml, memory_of_an_older_library)
{
	static char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	struct standin_nvml *older;
	void *library;

	path[length] = '\0';
	strcpy(strrchr(path, '/'), "/standin/nvml_without_clock.so");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	older = library ? dlsym(library, "nvml_standin") : NULL;
	cr_assert_not_null(older);
	*older = *standin;
	nvml_use(path);
	place.node = &gpus[1];
	cr_expect_eq(value("memory-used"), (1ull << 33) + 1 + STANDIN_RESERVED);
	dlclose(library);
}

Test(counter_polled_nvml, errors_when_opened)
{
	place.node = &gpus[0];
	standin->gpus[0].results[STANDIN_ENERGY] = 4;
	cr_expect_eq(open_error(&place, "nvml", "energy"), -EACCES);
	cr_expect(strstr(said, "nvml/energy/: may not be read: try sudo"), "%s", said);
	standin->gpus[0].results[STANDIN_ENERGY] = 15;
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENODEV);
	cr_expect(strstr(said, "nvml/energy/: the GPU is gone"), "%s", said);
	standin->init_result = 4;
	said[0] = '\0';
	cr_expect_eq(open_error(&place, "nvml", "power"), -EACCES);
	cr_expect(strstr(said, "try sudo"), "%s", said);
	expect_list("");
	/* The driver is not loaded. */
	standin->init_result = 9;
	said[0] = '\0';
	cr_expect_eq(open_error(&place, "nvml", "power"), -ENOENT);
	cr_expect_str_eq(said, "");
	expect_list("");
}

Test(counter_polled_nvml, errors_when_read)
{
	struct polled *power;
	__u64 raw;

	power = must_open(&place, "nvml", "power");
	cr_expect_eq(must_read(power), 210003);
	standin->gpus[2].results[STANDIN_POWER] = 999;
	cr_expect_eq(polled_read(power, &raw), -EIO);
	standin->gpus[2].results[STANDIN_POWER] = 15;
	cr_expect_eq(polled_read(power, &raw), -ENODEV);
	standin->gpus[2].results[STANDIN_POWER] = 0;
	cr_expect_eq(must_read(power), 210003);
	polled_close(power);
}

/* No library, or one with other functions: the source is not there, and nothing is said. */
Test(counter_polled_nvml, without_a_library)
{
	nvml_use(in_fixture("libnvidia-ml.so.1"));
	expect_list("");
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENOENT);
	nvml_use("libm.so.6");
	expect_list("");
	cr_expect_eq(open_error(&place, "nvml", "energy"), -ENOENT);
	cr_expect_str_eq(said, "");
}
