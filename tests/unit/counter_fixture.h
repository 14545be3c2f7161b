/* SPDX-License-Identifier: BSD-2-Clause */
/* Folders that look like parts of sysfs and procfs, and the visits that tests of counters make. */
#ifndef XPT_TEST_COUNTER_FIXTURE_H
#define XPT_TEST_COUNTER_FIXTURE_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counter/counter.h"
#include "counter/polled.h"

/* Folder of the test, without links in its path; in memory, where thousands of files are soon made. */
static char fixture[PATH_MAX];

static inline void fixture_open(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/xputrace-test-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	cr_assert_not_null(mkdtemp(path));
	cr_assert_not_null(realpath(path, fixture));
}

static inline void fixture_close(void)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf %s", fixture);
	cr_expect_eq(system(command), 0);
}

/* The path of something in the folder. Each call's result is good until the fourth one after it. */
static inline const char *in_fixture(const char *path)
{
	static char paths[4][PATH_MAX * 2];
	static unsigned int next;
	char *whole = paths[next++ % 4];

	snprintf(whole, sizeof(paths[0]), "%s/%s", fixture, path);
	return whole;
}

/* Makes the folders above the path. */
static inline void fixture_parents(const char *path)
{
	char whole[PATH_MAX * 2];

	strcpy(whole, in_fixture(path));
	for (char *slash = whole + strlen(fixture) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
}

static inline void fixture_file(const char *path, const char *text)
{
	FILE *file;

	fixture_parents(path);
	file = fopen(in_fixture(path), "w");
	cr_assert_not_null(file, "%s", path);
	fputs(text, file);
	fclose(file);
}

/* to as it stands when it begins with a slash, else a path in the folder. */
static inline void fixture_link(const char *path, const char *to)
{
	fixture_parents(path);
	cr_assert_eq(symlink(to[0] == '/' ? to : in_fixture(to), in_fixture(path)), 0, "%s", path);
}

static inline void fixture_remove(const char *path)
{
	char command[PATH_MAX * 2 + 16];

	snprintf(command, sizeof(command), "rm -r %s", in_fixture(path));
	cr_assert_eq(system(command), 0);
}

/*
 * A device as the kernel shows it: its folder, its node's folder below it, links to both. folder: below sys/devices, the
 * last part is the address. class: "drm" or "accel". driver: NULL: none is bound.
 */
static inline void fixture_device(const char *folder, const char *class, const char *node, const char *driver)
{
	char path[PATH_MAX], to[PATH_MAX];

	snprintf(path, sizeof(path), "sys/devices/%s/%s/%s/device", folder, class, node);
	snprintf(to, sizeof(to), "sys/devices/%s", folder);
	fixture_link(path, to);
	snprintf(to, sizeof(to), "sys/devices/%s/%s/%s", folder, class, node);
	snprintf(path, sizeof(path), "sys/class/%s/%s", class, node);
	fixture_link(path, to);
	if (!driver)
		return;
	snprintf(path, sizeof(path), "sys/devices/%s/driver", folder);
	snprintf(to, sizeof(to), "../../../bus/x/drivers/%s", driver);
	if (access(in_fixture(path), F_OK))
		(void)!symlink(to, in_fixture(path));
}

/* The devices in the folder, of which there must be count, with an empty proc; for the rest of the process. */
static inline struct counter_place fixture_place(struct nodes *nodes, size_t count)
{
	static char sysfs[PATH_MAX * 2], proc[PATH_MAX * 2];

	fixture_file("proc/uptime", "1\n");
	strcpy(sysfs, in_fixture("sys"));
	strcpy(proc, in_fixture("proc"));
	cr_assert_eq(nodes_find(sysfs, nodes), 0);
	cr_assert_eq(nodes->count, count);
	return (struct counter_place){ .sysfs = sysfs, .proc = proc, .nodes = *nodes };
}

/* Loads the stand-in for NVIDIA's library, which lies beside the program of the tests and is used from then on. Close *library. */
static inline void *fixture_nvml(void **library)
{
	static char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	void *standin;

	cr_assert_gt(length, 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/'), "/standin/nvml.so");
	*library = dlopen(path, RTLD_NOW);
	cr_assert_not_null(*library, "%s", dlerror());
	standin = dlsym(*library, "nvml_standin");
	cr_assert_not_null(standin);
	nvml_use(path);
	return standin;
}

/* Everything that a list visits, a line each: SOURCE/EVENT UNIT SCALE level|grows. */
struct listed {
	char text[4096];
	int calls;
};

static inline int listed_add(void *context, const struct polled_info *info)
{
	struct listed *listed = context;
	size_t used = strlen(listed->text);

	cr_expect_gt(strlen(info->description), 5, "%s", info->event);
	snprintf(listed->text + used, sizeof(listed->text) - used, "%s/%s %s %g %s\n", info->source, info->event,
		 info->unit, info->scale, info->level ? "level" : "grows");
	listed->calls++;
	return 0;
}

/* A counter that must be there. */
static inline struct polled *must_open(const struct counter_place *place, const char *source, const char *event)
{
	struct polled_info info;
	struct polled *polled = NULL;

	cr_assert_eq(polled_open(place, source, event, &info, &polled), 0, "%s/%s", source, event);
	cr_expect_str_eq(info.source, source);
	cr_expect_str_eq(info.event, event);
	return polled;
}

static inline unsigned long long must_read(struct polled *polled)
{
	__u64 raw = 0;

	cr_assert_eq(polled_read(polled, &raw), 0);
	return raw;
}

static inline int open_error(const struct counter_place *place, const char *source, const char *event)
{
	struct polled_info info;
	struct polled *polled = NULL;
	int error = polled_open(place, source, event, &info, &polled);

	polled_close(polled);
	return error;
}

#endif
