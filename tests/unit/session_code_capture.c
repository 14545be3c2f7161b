/* SPDX-License-Identifier: BSD-2-Clause */
/* Records made by hand, as rings bring them, or would not. */
#include "session/code/capture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOADED_MAX 64
#define NOBODY 0x3ffffff0 /* no process has this number */

#define TOY                                                                                                    \
	"{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"toy_load\"], \"calls\": [" \
	"{\"symbol\": \"toy_load\", \"role\": \"codeobj.load\", \"success\": \"zero\","                        \
	" \"fetch\": {\"program\": \"arg0[0]@return\"}, \"code\": {\"bytes\": \"arg1\", \"size\": \"arg2\"}}," \
	"{\"symbol\": \"toy_unload\", \"role\": \"codeobj.unload\", \"success\": \"zero\","                    \
	" \"fetch\": {\"program\": \"arg0\"}},"                                                                \
	"{\"symbol\": \"toy_file\", \"role\": \"codeobj.load\", \"success\": \"zero\","                        \
	" \"fetch\": {\"program\": \"arg0[0]@return\"}, \"code\": {\"path\": \"arg1:string\"}}]}"

enum { LOAD, UNLOAD, FILE_LOAD };

struct id_set {
	__u64 handle, size, missing, unloaded;
	__s64 status;
	bool incomplete, over_limit, kept;
	char sha256[CODE_HASH_SIZE];
};

struct fixture {
	struct registry *registry;
	struct code_capture *capture;
	unsigned int spec[3];
	struct id_set loaded[LOADED_MAX];
	size_t loaded_count, unloaded_count, answer_count;
	__u64 unloaded_handle, unloaded_time;
	__u64 answered[4]; /* tickets */
};

static void on_loaded(void *context, const struct code_load *load)
{
	struct fixture *fixture = context;
	struct id_set *seen = &fixture->loaded[fixture->loaded_count++];

	cr_assert_leq(fixture->loaded_count, LOADED_MAX);
	*seen = (struct id_set){ load->handle,
				 (load->object ? load->object->size : 0) + load->missing,
				 load->missing,
				 load->unloaded,
				 load->status,
				 load->incomplete,
				 load->over_limit,
				 load->object && load->object->copy.bytes,
				 "" };
	if (load->object)
		memcpy(seen->sha256, load->object->sha256, sizeof(seen->sha256));
}

static void on_unloaded(void *context, const struct code_load *load)
{
	struct fixture *fixture = context;

	fixture->unloaded_count++;
	fixture->unloaded_handle = load->handle;
	fixture->unloaded_time = load->unloaded;
}

static bool on_answer(void *context, pid_t tgid, __u64 ticket)
{
	struct fixture *fixture = context;

	(void)tgid;
	fixture->answered[fixture->answer_count++ % 4] = ticket;
	return true;
}

static void find_specs(struct fixture *fixture)
{
	static const char *const names[] = { "toy_load", "toy_unload", "toy_file" };

	for (unsigned int i = 0; i < fixture->registry->spec_count; i++) {
		for (size_t j = 0; j < 3; j++) {
			if (!strcmp(fixture->registry->specs[i]->function, names[j]))
				fixture->spec[j] = i;
		}
	}
}

static struct fixture *create(bool keep, __u64 object_limit, __u64 process_limit)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char path[] = "/tmp/xputrace-test-XXXXXX";
	int file = mkstemp(path);
	const char *files[] = { path }, *only[] = { "toy" };
	struct code_capture_options options = {
		.worker = { .mode = XPT_CODEOBJ_COPY_MEMORY,
			    .object_limit = object_limit,
			    .process_limit = process_limit,
			    .total_limit = ~0ull },
		.wait_limit = 1000000000,
		.keep = keep,
		.loaded = on_loaded,
		.unloaded = on_unloaded,
		.answer = on_answer,
		.context = fixture,
		.answer_context = fixture,
	};

	cr_assert_eq(write(file, TOY, strlen(TOY)), (ssize_t)strlen(TOY));
	close(file);
	cr_assert_eq(registry_create(NULL, &(struct registry_options){ files, 1, only, 1, NULL, 0 },
				     &fixture->registry),
		     0);
	unlink(path);
	find_specs(fixture);
	options.registry = fixture->registry;
	cr_assert_eq(code_capture_create(&options, &fixture->capture), 0);
	return fixture;
}

static void destroy(struct fixture *fixture)
{
	code_capture_free(fixture->capture);
	registry_free(fixture->registry);
	free(fixture);
}

/* ---- records ---- */

static void give_piece(struct fixture *fixture, pid_t tgid, __u64 time, __u64 offset, const char *bytes)
{
	_Alignas(8) char room[256] = {};
	struct xpt_record_code_piece *piece = (void *)room;

	piece->length = strlen(bytes);
	piece->header.kind = XPT_RECORD_CODE_PIECE;
	piece->header.size = XPT_ALIGN8(sizeof(*piece) + piece->length);
	piece->header.tgid = tgid;
	piece->header.time = time;
	piece->tid = tgid;
	piece->offset = offset;
	memcpy(piece->bytes, bytes, piece->length);
	code_capture_record(fixture->capture, &piece->header);
}

static void give_code(struct fixture *fixture, unsigned int spec, pid_t tgid, __u64 time, __u64 copied, __u64 size,
		      __u32 flags)
{
	const struct xpt_record_code code = {
		.header = { XPT_RECORD_CODE, sizeof(code), tgid, time },
		.tid = tgid,
		.spec = spec,
		.source = spec == fixture->spec[FILE_LOAD] ? XPT_CODE_PATH : XPT_CODE_MEMORY,
		.address = 0x1000,
		.size = size,
		.copied = copied,
		.flags = flags,
	};

	code_capture_record(fixture->capture, &code.header);
}

/* The whole object in one piece. */
static void give(struct fixture *fixture, pid_t tgid, __u64 time, const char *bytes)
{
	give_piece(fixture, tgid, time, 0, bytes);
	give_code(fixture, fixture->spec[LOAD], tgid, time, strlen(bytes), strlen(bytes), XPT_CODE_WHOLE);
}

static void give_call(struct fixture *fixture, unsigned int spec, pid_t tgid, __u64 start, __u64 end, __u64 handle,
		      __s64 status)
{
	const struct xpt_spec *wire = &fixture->registry->specs[spec]->wire;
	_Alignas(8) char room[128] = {};
	struct xpt_record_call *call = (void *)room;

	call->header = (struct xpt_record_header){ XPT_RECORD_CALL, sizeof(*call) + 8 * wire->fetches, tgid, end };
	call->start = start;
	call->tid = tgid;
	call->spec = spec;
	call->values = wire->fetches;
	for (unsigned int i = 0; i < wire->fetches; i++) {
		bool is_status = wire->fetch[i].meaning == XPT_MEANING_STATUS;

		call->value[i] = is_status ? (__u64)status : handle;
		if (is_status || !status || !wire->fetch[i].at_return)
			call->valid |= 1u << i;
	}
	code_capture_record(fixture->capture, &call->header);
}

static void give_task(struct fixture *fixture, pid_t tgid, __u64 time, enum xpt_task_event event)
{
	const struct xpt_record_task task = { .header = { XPT_RECORD_TASK, sizeof(task), tgid, time }, .event = event };

	code_capture_record(fixture->capture, &task.header);
}

/* ---- tests ---- */

Test(session_code_capture, pieces_become_an_object_and_its_call_tells_the_handle)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);
	char sha256[CODE_HASH_SIZE];

	code_hash_bytes("hello world", 11, sha256);
	give_piece(fixture, NOBODY, 100, 0, "hello ");
	give_piece(fixture, NOBODY, 100, 6, "world");
	give_code(fixture, fixture->spec[LOAD], NOBODY, 100, 11, 11, XPT_CODE_WHOLE);
	code_capture_work(fixture->capture);
	cr_expect_eq(fixture->loaded_count, 0, "its call has not ended");
	give_call(fixture, fixture->spec[LOAD], NOBODY, 99, 200, 0xabc, 0);
	give_call(fixture, fixture->spec[UNLOAD], NOBODY, 300, 310, 0xabc, 0);
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 1);
	cr_expect_str_eq(fixture->loaded[0].sha256, sha256);
	cr_expect_eq(fixture->loaded[0].handle, 0xabc);
	cr_expect_not(fixture->loaded[0].incomplete);
	cr_expect(fixture->loaded[0].kept);
	cr_expect_eq(fixture->unloaded_count, 1);
	cr_expect_eq(fixture->unloaded_time, 310);
	destroy(fixture);
}

Test(session_code_capture, a_call_may_come_before_its_object_and_an_unload_before_its_load)
{
	struct fixture *fixture = create(false, ~0ull, ~0ull);

	give_call(fixture, fixture->spec[LOAD], NOBODY, 399, 500, 0x2, 0);
	give_call(fixture, fixture->spec[UNLOAD], NOBODY, 300, 310, 0x1, 0);
	give_call(fixture, fixture->spec[LOAD], NOBODY, 99, 200, 0x1, 0);
	give(fixture, NOBODY, 100, "one");
	give(fixture, NOBODY, 400, "two");
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 2);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(fixture->loaded[i].unloaded, fixture->loaded[i].handle == 1 ? 310 : 0);
		cr_expect(fixture->loaded[i].handle == 1 || fixture->loaded[i].handle == 2);
	}
	cr_expect_eq(fixture->unloaded_count, 1);
	cr_expect_eq(fixture->unloaded_handle, 1);
	cr_expect_eq(code_capture_counts(fixture->capture).lost, 0);
	destroy(fixture);
}

/* In two rings, whose records come one ring after the other: each unload is of the load before it. */
Test(session_code_capture, what_ended_first_counts_first)
{
	const struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, 1000 };
	struct fixture *fixture = create(true, ~0ull, ~0ull);

	give(fixture, NOBODY, 100, "one");
	give_call(fixture, fixture->spec[LOAD], NOBODY, 99, 200, 0x1, 0);
	give(fixture, NOBODY, 400, "three");
	give_call(fixture, fixture->spec[UNLOAD], NOBODY, 600, 610, 0x1, 0);
	code_capture_record(fixture->capture, &pass);
	give_call(fixture, fixture->spec[LOAD], NOBODY, 399, 500, 0x1, 0);
	give_call(fixture, fixture->spec[UNLOAD], NOBODY, 300, 310, 0x1, 0);
	cr_expect_eq(fixture->loaded_count, 0, "the other ring has not been looked at again");
	code_capture_record(fixture->capture, &pass);
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 2);
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(fixture->loaded[i].unloaded, fixture->loaded[i].size == 3 ? 310 : 610);
	cr_expect_eq(code_capture_counts(fixture->capture).lost, 0);
	destroy(fixture);
}

Test(session_code_capture, a_handle_that_is_used_again_is_unloaded_once_each)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);

	give(fixture, NOBODY, 100, "one");
	give_call(fixture, fixture->spec[LOAD], NOBODY, 99, 200, 0x1, 0);
	give(fixture, NOBODY, 400, "two");
	give_call(fixture, fixture->spec[LOAD], NOBODY, 399, 500, 0x1, 0);
	give_call(fixture, fixture->spec[UNLOAD], NOBODY, 300, 310, 0x1, 0);
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 2);
	cr_expect_eq(fixture->unloaded_count, 1);
	cr_expect_eq(fixture->unloaded_time, 310);
	give_task(fixture, NOBODY, 900, XPT_TASK_EXIT);
	code_capture_finish(fixture->capture);
	cr_expect_eq(fixture->unloaded_count, 2);
	cr_expect_eq(fixture->unloaded_time, 900);
	destroy(fixture);
}

Test(session_code_capture, what_fails_has_its_status_and_is_not_unloaded)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);

	give(fixture, NOBODY, 100, "bad");
	give_call(fixture, fixture->spec[LOAD], NOBODY, 99, 200, 0, 7);
	code_capture_finish(fixture->capture);
	give_task(fixture, NOBODY, 900, XPT_TASK_EXIT);
	cr_assert_eq(fixture->loaded_count, 1);
	cr_expect_neq(fixture->loaded[0].status, 0);
	cr_expect_eq(fixture->loaded[0].handle, 0);
	cr_expect_eq(fixture->unloaded_count, 0);
	destroy(fixture);
}

Test(session_code_capture, pieces_with_gaps_and_sizes_that_lie)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);

	give_piece(fixture, NOBODY, 100, 6, "world"); /* the first one is lost */
	give_code(fixture, fixture->spec[LOAD], NOBODY, 100, 11, 11, XPT_CODE_WHOLE);
	give_piece(fixture, NOBODY, 200, 0, "hello");
	give_piece(fixture, NOBODY, 200, 9, "gap");
	give_code(fixture, fixture->spec[LOAD], NOBODY, 200, 12, 12, XPT_CODE_WHOLE);
	give_piece(fixture, NOBODY, 300, 0, "short");
	give_code(fixture, fixture->spec[LOAD], NOBODY, 300, 5, ~0ull, XPT_CODE_NO_WAIT);
	give_code(fixture, 0xffff, NOBODY, 400, 0, 0, XPT_CODE_WHOLE); /* no such function */
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 3);
	for (size_t i = 0; i < 3; i++) {
		cr_expect(fixture->loaded[i].incomplete);
		cr_expect_str_eq(fixture->loaded[i].sha256, "");
		cr_expect_gt(fixture->loaded[i].missing, 0);
	}
	cr_expect_eq(code_capture_counts(fixture->capture).incomplete, 3);
	cr_expect_eq(code_capture_counts(fixture->capture).lost, 1);
	destroy(fixture);
}

Test(session_code_capture, whoever_waits_is_answered_once)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);
	struct xpt_record_code code = {
		.header = { XPT_RECORD_CODE, sizeof(code), NOBODY, 100 },
		.tid = NOBODY,
		.spec = fixture->spec[LOAD],
		.source = XPT_CODE_MEMORY,
		.size = 1 << 20,
		.ticket = 7,
	};

	give_piece(fixture, NOBODY, 100, 0, "begin");
	code.copied = 5;
	code_capture_record(fixture->capture, &code.header);
	cr_expect_eq(fixture->answer_count, 1);
	cr_expect_eq(fixture->answered[0], 7);
	code.spec = 0xffff; /* no such function */
	code.ticket = 8;
	code_capture_record(fixture->capture, &code.header);
	cr_expect_eq(fixture->answer_count, 2);
	cr_expect_eq(fixture->answered[1], 8);
	code.spec = fixture->spec[LOAD];
	code.ticket = 0;
	code_capture_record(fixture->capture, &code.header);
	cr_expect_eq(fixture->answer_count, 2);
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 2);
	cr_expect(fixture->loaded[0].incomplete);
	destroy(fixture);
}

Test(session_code_capture, limits_keep_bytes_away_but_not_hashes)
{
	struct fixture *fixture = create(true, 5, 8);
	size_t kept = 0;

	give(fixture, NOBODY, 100, "longer");
	give(fixture, NOBODY, 200, "12345");
	give(fixture, NOBODY, 300, "67890");
	give(fixture, NOBODY, 400, "12345");
	give(fixture, NOBODY + 1, 500, "abc");
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 5);
	for (size_t i = 0; i < 5; i++) {
		cr_expect_eq(strlen(fixture->loaded[i].sha256), 64);
		kept += fixture->loaded[i].kept;
	}
	cr_expect_eq(kept, 3, "the second object is kept, also as the fourth load, and that of the other process");
	cr_expect_eq(code_capture_counts(fixture->capture).over_limit, 2);
	destroy(fixture);
}

Test(session_code_capture, what_ends_with_its_process_is_handed_out_without_an_answer)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);
	const struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, 1000 };

	give(fixture, NOBODY, 100, "one");
	give_task(fixture, NOBODY, 900, XPT_TASK_EXIT);
	for (int i = 0; i < 1000 && !fixture->loaded_count; i++) {
		code_capture_record(fixture->capture, &pass);
		code_capture_work(fixture->capture);
		usleep(1000);
	}
	cr_assert_eq(fixture->loaded_count, 1);
	cr_expect_eq(fixture->loaded[0].unloaded, 900);
	destroy(fixture);
}

Test(session_code_capture, calls_without_objects_are_counted)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);

	for (__u64 i = 0; i < 1000; i++)
		give_call(fixture, fixture->spec[LOAD], NOBODY, 10 * i, 10 * i + 5, i + 1, 0);
	code_capture_finish(fixture->capture);
	cr_expect_eq(fixture->loaded_count, 0);
	cr_expect_eq(code_capture_counts(fixture->capture).lost, 1000);
	destroy(fixture);
}

Test(session_code_capture, paths_of_devices_are_not_opened)
{
	struct fixture *fixture = create(true, ~0ull, ~0ull);
	static const char *const paths[] = { "/dev/null", "/proc/self/mem", "/", "/nonexistent/file", "../../../.." };

	for (size_t i = 0; i < 5; i++) {
		give_piece(fixture, getpid(), 100 + i, 0, paths[i]);
		give_code(fixture, fixture->spec[FILE_LOAD], getpid(), 100 + i, strlen(paths[i]), 0,
			  XPT_CODE_WHOLE | XPT_CODE_TEXT);
	}
	code_capture_finish(fixture->capture);
	cr_assert_eq(fixture->loaded_count, 5);
	for (size_t i = 0; i < 5; i++)
		cr_expect(fixture->loaded[i].incomplete, "%s", paths[i]);
	destroy(fixture);
}
