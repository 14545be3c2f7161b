/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program loads onto its device, which says itself how many programs it has; needs root. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <xputrace/codeobj.h>

#include "check.h"
#include "target.h"

#define FOREVER_ALMOST 20000000000ull /* ns */

static char folder[64];

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static struct xpt_codeobj_capture *create(const pid_t *pid, enum xpt_codeobj_mode mode, const char *output)
{
	struct xpt_codeobj_capture *record = NULL;
	struct xpt_codeobj_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.pids = pid;
	options.pid_count = 1;
	options.output = output;
	options.log = on_message;
	options.log_level = XPT_LOG_WARN;
	options.user = getuid();
	options.group = getgid();
	CHECK_IS(xpt_codeobj_capture_create(&record, mode, 4711, &options), 0);
	if (!record)
		target_give_up("capture");
	return record;
}

/* The one of this function; NULL: there is none. */
static const struct xpt_codeobj *find(const struct xpt_codeobj_list *list, const char *function)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->objects[i]->function && !strcmp(list->objects[i]->function, function))
			return list->objects[i];
	return NULL;
}

static int contains(const struct xpt_codeobj *object, const char *name)
{
	const char *bytes = (const char *)object->data;
	size_t i, length = strlen(name);

	for (i = 0; bytes && i + length <= object->data_size; i++)
		if (!memcmp(bytes + i, name, length))
			return 1;
	return 0;
}

static void check_object(const struct xpt_codeobj *object, const struct target *target, const char *program,
			 size_t size)
{
	CHECK(object != NULL, "%s", program);
	if (!object)
		return;
	CHECK(!strcmp(object->runtime, "nrt"), "%s", object->runtime);
	CHECK(!strcmp(object->kind, "neff"), "%s", object->kind);
	CHECK(!strncmp(object->uri, "memory://", 9), "%s", object->uri);
	CHECK_IS(strlen(object->sha256), 64);
	CHECK_IS(object->pid, target->pid);
	CHECK_IS(object->data_size, size);
	CHECK_IS(object->missing, 0);
	CHECK_IS(object->status, 0);
	CHECK(object->unloaded > object->loaded && object->loaded, "%s", object->sha256);
}

/* Both programs with their bytes in memory, until the process has ended; the list belongs to the record. */
static void test_memory(void)
{
	struct target target = target_start("5", "0", "1");
	struct xpt_codeobj_capture *record = create(&target.pid, XPT_CODEOBJ_COPY_MEMORY, NULL);
	const struct xpt_codeobj_list *list = NULL;
	const struct xpt_codeobj *first, *second;

	CHECK_IS(xpt_codeobj_capture_wait(record, 0), -EINVAL);
	CHECK_IS(xpt_codeobj_capture_start(record), 0);
	CHECK_IS(xpt_codeobj_capture_start(record), -EBUSY);
	CHECK_IS(xpt_codeobj_capture_wait(record, 1000000), 0);
	target_go(&target);
	target_end(&target);
	CHECK_IS(xpt_codeobj_capture_wait(record, FOREVER_ALMOST), 1);
	CHECK_IS(xpt_codeobj_capture_stop(record), 0);
	CHECK_IS(xpt_codeobj_capture_get(record, &list), 0);
	if (list) {
		first = find(list, "nrt_load");
		second = find(list, "nrt_load_collectives");
		check_object(first, &target, PROGRAM_0, 1024);
		check_object(second, &target, PROGRAM_1, 1025);
		CHECK(first && contains(first, PROGRAM_0), PROGRAM_0);
		CHECK(second && contains(second, PROGRAM_1), PROGRAM_1);
		CHECK_IS(target_count(&target, "nrt_load", PROGRAM_0), 1);
		CHECK_IS(target_count(&target, "nrt_load_collectives", PROGRAM_1), 1);
		CHECK_IS(list->userdata, 4711);
		CHECK_IS(list->incomplete + list->over_limit + list->lost, 0);
	}
	xpt_codeobj_capture_free(record);
	target_free(&target);
}

static int has_size(const char *path, const struct xpt_codeobj *object)
{
	char name[512];
	struct stat file;

	snprintf(name, sizeof(name), "%.100s/%.100s", path, object->file ? object->file : "");
	return !stat(name, &file) && S_ISREG(file.st_mode) && (uint64_t)file.st_size == object->data_size;
}

/* A folder with the objects, read again without any process. */
static void test_folder(void)
{
	struct target target = target_start("5", "0", "1");
	struct xpt_codeobj_list *list = NULL;
	struct xpt_codeobj_capture *record;
	const struct xpt_codeobj *first;
	char output[100];

	snprintf(output, sizeof(output), "%s/objects", folder);
	record = create(&target.pid, XPT_CODEOBJ_COPY_MEMORY, output);
	CHECK_IS(xpt_codeobj_capture_start(record), 0);
	target_go(&target);
	target_end(&target);
	CHECK_IS(xpt_codeobj_capture_wait(record, FOREVER_ALMOST), 1);
	CHECK_IS(xpt_codeobj_capture_stop(record), 0);
	xpt_codeobj_capture_free(record);
	CHECK_IS(xpt_codeobj_read(output, on_message, NULL, &list), 0);
	if (list) {
		first = find(list, "nrt_load");
		check_object(first, &target, PROGRAM_0, 1024);
		CHECK(first && has_size(output, first), "%s", output);
		CHECK(find(list, "nrt_load_collectives") != NULL, "%s", output);
	}
	xpt_codeobj_list_free(list);
	target_free(&target);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *interrupt_later(void *record)
{
	const struct timespec while_it_waits = { 0, 100000000 };

	nanosleep(&while_it_waits, NULL);
	xpt_codeobj_capture_interrupt((struct xpt_codeobj_capture *)record);
	return NULL;
}

/* An interrupt ends the wait that goes on, or the next one, and no other; a capture that is stopped at once is a snapshot. */
static void test_interrupt(void)
{
	struct target target = target_start("1", "0", "1");
	struct xpt_codeobj_capture *record = create(&target.pid, XPT_CODEOBJ_SYMBOLS, NULL);
	const struct xpt_codeobj_list *list = NULL;
	pthread_t thread;
	uint64_t begin;

	CHECK_IS(xpt_codeobj_capture_start(record), 0);
	begin = now();
	if (pthread_create(&thread, NULL, interrupt_later, record))
		target_give_up("thread");
	CHECK_IS(xpt_codeobj_capture_wait(record, FOREVER_ALMOST), -EINTR);
	CHECK(now() - begin < FOREVER_ALMOST / 2, "%llu ns", (unsigned long long)(now() - begin));
	pthread_join(thread, NULL);
	CHECK_IS(xpt_codeobj_capture_wait(record, 1000000), 0);
	xpt_codeobj_capture_interrupt(record);
	CHECK_IS(xpt_codeobj_capture_wait(record, XPT_FOREVER), -EINTR);
	CHECK_IS(xpt_codeobj_capture_stop(record), 0);
	CHECK_IS(xpt_codeobj_capture_stop(record), 0);
	CHECK_IS(xpt_codeobj_capture_get(record, &list), 0);
	CHECK(list && !find(list, "nrt_load"), "%d", (int)target.pid);
	xpt_codeobj_capture_free(record);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

static const struct test tests[] = {
	{ "memory", test_memory, 1 },
	{ "folder", test_folder, 1 },
	{ "interrupt", test_interrupt, 1 },
};

int main(void)
{
	snprintf(folder, sizeof(folder), "codeobj-%d", (int)getpid());
	if (mkdir(folder, 0700))
		target_give_up(folder);
	return run_tests("codeobj", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
