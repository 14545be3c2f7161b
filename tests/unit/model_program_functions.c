/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/functions.h"

#include <cjson/cJSON.h>

#include "base/core/json.h"
#include "model_records.h"

static struct functions *functions_new(void)
{
	return calloc(1, sizeof(struct functions));
}

static void functions_done(struct functions *functions)
{
	functions_free(functions);
	free(functions);
}

/* As the model does it. */
static int add_json(int (*add)(struct functions *functions, __u64 index, const cJSON *object),
		    struct functions *functions, __u64 index, const char *text)
{
	cJSON *object;
	int error = json_parse(text, strlen(text), &object) ?: add(functions, index, object);

	cJSON_Delete(object);
	return error;
}

static int add_runtime(struct functions *functions, __u64 index, const char *text)
{
	return add_json(functions_add_runtime, functions, index, text);
}

static int add(struct functions *functions, __u64 index, const char *text)
{
	return add_json(functions_add, functions, index, text);
}

#define RUNTIME "{\"name\":\"nrt\",\"title\":\"T\",\"statuses\":[{\"value\":1003,\"class\":\"ok\",\"name\":\"DONE\"}]}"
#define SPEC(fetches) \
	"{\"runtime\":3,\"function\":\"nrt_execute\",\"role\":\"execute\",\"success\":1,\"fetches\":[" fetches "]}"

Test(model_program_functions, reads_what_the_wire_format_promises)
{
	struct functions *functions = functions_new();
	const struct function *function;

	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_null(functions_get(functions, 7));
	cr_assert_eq(add(functions, 7, SPEC(F("program", "u64") "," R("name", "string") "," STATUS)), 0);
	function = functions_get(functions, 7);
	cr_assert_str_eq(function->view.name, "nrt_execute");
	cr_assert_str_eq(function->view.runtime, "nrt");
	cr_assert_eq(function->view.runtime_index, 3);
	cr_assert_eq(function->view.index, 7);
	cr_assert_eq(function->view.role, XPT_ROLE_EXECUTE);
	cr_assert_eq(function->success, XPT_SUCCESS_ZERO32);
	cr_assert_eq(function->fetch_count, 3);
	cr_assert_eq(function->value_count, 2);
	cr_assert_eq(function->name_fetch, 1);
	cr_assert_eq(function->returned, 1 << 1, "the status is fetched after failure, too");
	functions_done(functions);
}

Test(model_program_functions, damaged_descriptions)
{
	static const char *const runtimes[] = {
		"",
		"{",
		"[]",
		"7",
		"{}",
		"{\"name\":7}",
		"{\"name\":\"\"}",
		"{\"name\":\"a\",\"statuses\":7}",
		"{\"name\":\"a\",\"statuses\":[7]}",
		"{\"name\":\"a\",\"statuses\":[{\"value\":1}]}",
		"{\"name\":\"a\",\"statuses\":[{\"value\":\"1\",\"class\":\"ok\"}]}",
		"{\"name\":\"a\",\"statuses\":[{\"value\":1,\"class\":\"good\"}]}",
		"{\"name\":\"a\",\"statuses\":[{\"value\":1e300,\"class\":\"ok\"}]}",
	};
	static const char *const specs[] = {
		"",
		"null",
		"{}",
		"{\"runtime\":4,\"function\":\"f\",\"role\":\"execute\",\"success\":1}", /* not described */
		"{\"runtime\":-1,\"function\":\"f\",\"role\":\"execute\",\"success\":1}",
		"{\"runtime\":64,\"function\":\"f\",\"role\":\"execute\",\"success\":1}",
		"{\"runtime\":3,\"role\":\"execute\",\"success\":1}",
		"{\"runtime\":3,\"function\":\"f\",\"role\":\"run\",\"success\":1}",
		"{\"runtime\":3,\"function\":\"f\",\"role\":\"execute\"}",
		"{\"runtime\":3,\"function\":\"f\",\"role\":\"execute\",\"success\":4}",
		"{\"runtime\":3,\"function\":\"f\",\"role\":\"execute\",\"success\":1,\"fetches\":{}}",
		SPEC("7"),
		SPEC("{}"),
		SPEC(F("colour", "u64")),
		SPEC("{\"meaning\":\"size\"}"),
		SPEC(F("size", "u8") "," F("size", "u8") "," F("size", "u8") "," F("size", "u8") "," F(
			"size", "u8") "," F("size", "u8") "," F("size", "u8") "," F("size", "u8") "," F("size", "u8")),
	};
	struct functions *functions = functions_new();
	size_t i;

	for (i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		cr_assert_eq(add_runtime(functions, 3, runtimes[i]), -EBADMSG, "%s", runtimes[i]);
	cr_assert_eq(add_runtime(functions, XPT_RUNTIME_MAX, RUNTIME), -EBADMSG);
	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		cr_assert_eq(add(functions, 7, specs[i]), -EBADMSG, "%s", specs[i]);
	cr_assert_eq(add(functions, XPT_SPEC_MAX, SPEC("")), -EBADMSG);
	cr_assert_eq(add(functions, XPT_SPEC_MAX - 1, SPEC("")), 0);
	functions_done(functions);
}

Test(model_program_functions, telling_again_is_fine_telling_otherwise_is_not)
{
	struct functions *functions = functions_new();
	const struct function *function;

	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_eq(add_runtime(functions, 3, "{\"name\":\"other\"}"), -EBADMSG);
	cr_assert_eq(add(functions, 0, SPEC(F("program", "u64"))), 0);
	function = functions_get(functions, 0);
	cr_assert_eq(add(functions, 0, SPEC(F("program", "u64"))), 0);
	cr_assert_eq(add(functions, 0, SPEC(F("size", "u64"))), -EBADMSG);
	cr_assert_eq(functions_get(functions, 0), function);
	functions_done(functions);
}

struct status_case {
	enum xpt_success success;
	__s64 value;
	enum call_outcome outcome;
	const char *name;
};

Test(model_program_functions, outcome_by_status)
{
	static const struct status_case cases[] = {
		{ XPT_SUCCESS_ZERO32, 0, OUTCOME_OK, NULL },
		{ XPT_SUCCESS_ZERO32, 0x100000000, OUTCOME_OK, NULL }, /* only 32 bits count */
		{ XPT_SUCCESS_ZERO32, 1, OUTCOME_OK, "BREAK" },
		{ XPT_SUCCESS_ZERO32, 600, OUTCOME_PENDING, "NOT_READY" },
		{ XPT_SUCCESS_ZERO32, 601, OUTCOME_FAILED, NULL },
		{ XPT_SUCCESS_ZERO32, -5, OUTCOME_FAILED, "MEMORY" },
		{ XPT_SUCCESS_ZERO32, 0xfffffffb, OUTCOME_FAILED, "MEMORY" },
		{ XPT_SUCCESS_ZERO32, (__s32)0x80000001, OUTCOME_PENDING, "LATER" },
		{ XPT_SUCCESS_ZERO64, 0x100000000, OUTCOME_FAILED, NULL },
		{ XPT_SUCCESS_ZERO64, 0, OUTCOME_OK, NULL },
	};
	struct functions *functions = functions_new();
	struct call_record record;
	struct event_call call;
	char spec[512];
	size_t i;

	cr_assert_eq(add_runtime(functions, 0,
				 "{\"name\":\"r\",\"statuses\":["
				 "{\"value\":600,\"class\":\"pending\",\"name\":\"NOT_READY\"},"
				 "{\"value\":1,\"class\":\"ok\",\"name\":\"BREAK\"},"
				 "{\"value\":2147483649,\"class\":\"pending\",\"name\":\"LATER\"},"
				 "{\"value\":-5,\"class\":\"error\",\"name\":\"MEMORY\"}]}"),
		     0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(spec, sizeof(spec),
			 "{\"runtime\":0,\"function\":\"f\",\"role\":\"copy\",\"success\":%d,"
			 "\"fetches\":[" STATUS "]}",
			 cases[i].success);
		cr_assert_eq(add(functions, i, spec), 0);
		record = call_make((unsigned int)i, 1, 1, 0, 1, 1, (__u64)cases[i].value);
		call = (struct event_call){};
		function_decode(functions_get(functions, (unsigned int)i), &record.call, &call);
		cr_assert_eq(call.outcome, cases[i].outcome, "case %zu", i);
		if (cases[i].name)
			cr_assert_str_eq(call.status_name, cases[i].name, "case %zu", i);
		else
			cr_assert_null(call.status_name, "case %zu", i);
		record.call.flags = XPT_CALL_NO_END;
		call = (struct event_call){};
		function_decode(functions_get(functions, (unsigned int)i), &record.call, &call);
		cr_assert_eq(call.outcome, OUTCOME_NONE, "a call without an end has no outcome");
	}
	functions_done(functions);
}

Test(model_program_functions, outcome_of_what_returns_a_handle)
{
	struct functions *functions = functions_new();
	struct call_record record = call_make(0, 1, 1, 0, 1, 2, U(7), U(0));
	struct event_call call = {};

	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_eq(add(functions, 0,
			 "{\"runtime\":3,\"function\":\"f\",\"role\":\"alloc\",\"success\":3,\"fetches\":[" F(
				 "size", "u64") "," R("address", "u64") "]}"),
		     0);
	record.call.valid = 3;
	function_decode(functions_get(functions, 0), &record.call, &call);
	cr_assert_eq(call.outcome, OUTCOME_OK);
	record.call.valid = 1; /* not fetched, since 0 was returned */
	call = (struct event_call){};
	function_decode(functions_get(functions, 0), &record.call, &call);
	cr_assert_eq(call.outcome, OUTCOME_FAILED);
	cr_assert_eq(call.have, 1u << XPT_MEANING_SIZE);
	functions_done(functions);
}

Test(model_program_functions, values_skip_strings_and_what_could_not_be_read)
{
	struct functions *functions = functions_new();
	struct call_record record = call_make(0, 1, 1, 0, 1, 3, U(0x1234), U(99), (__u64)-1LL);
	struct event_call call = {};

	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_eq(add(functions, 0,
			 SPEC(F("program", "u64") "," F("name", "string") "," F("size", "u64") "," F("core", "s32"))),
		     0);
	record.call.valid = 0x0b; /* not the size */
	function_decode(functions_get(functions, 0), &record.call, &call);
	cr_assert_eq(call.have, 1u << XPT_MEANING_PROGRAM | 1u << XPT_MEANING_CORE);
	cr_assert_eq(call.handle, 0x1234);
	cr_assert_eq(call.size, 0);
	cr_assert_eq(call.core, -1);
	record.call.values = 1; /* fewer than described: what is missing is not made up */
	call = (struct event_call){};
	function_decode(functions_get(functions, 0), &record.call, &call);
	cr_assert_eq(call.have, 1u << XPT_MEANING_PROGRAM);
	functions_done(functions);
}

Test(model_program_functions, cost)
{
	static const char *const damaged[] = { "",
					       "{",
					       "{}",
					       "{\"cost_ns\":5}",
					       "{\"cost_ns\":0,\"inside_ns\":0}",
					       "{\"cost_ns\":5,\"inside_ns\":6}",
					       "{\"cost_ns\":5,\"inside_ns\":-1}",
					       "{\"cost_ns\":2000000000,\"inside_ns\":1}" };
	static const char good[] = "{\"cost_ns\":1457,\"inside_ns\":560,\"more\":1}";
	struct functions *functions = functions_new();

	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_eq(add(functions, 7, SPEC(F("program", "u64"))), 0);
	cr_assert_eq(add_json(functions_add_cost, functions, 7, good), 0);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
		cr_expect_eq(add_json(functions_add_cost, functions, 7, damaged[i]), -EBADMSG, "%s", damaged[i]);
	cr_expect_eq(functions_get(functions, 7)->cost, 1457);
	cr_expect_eq(functions_get(functions, 7)->cost_inside, 560);
	cr_expect_eq(add_json(functions_add_cost, functions, 8, good), 0, "of nothing that is known");
	cr_expect_eq(add_json(functions_add_cost, functions, ~0ull, good), 0);
	functions_done(functions);
}

/* Of a record that has its number and counts before: what the thread did, however little the clocks agree. */
Test(model_program_functions, states)
{
	static const struct {
		struct xpt_task_state state;
		__u64 cpu, waited, blocked;
	} cases[] = {
		{ { 600, 200, 1, 1, 7, 2 }, 400, 200, 400 },
		{ { 600, 200, 0, 3, 0, 0 }, 400, 600, 0 }, /* never blocked */
		{ { (__u64)-5, 0, 1, 0, 0, 0 }, 1000, 0, 0 },
		{ { 5000, 200, 1, 0, 0, 0 }, 0, 200, 800 },
		{ { 5000, 7000, 1, 0, 0, 0 }, 0, 1000, 0 },
		{ { 100, 300, 1, 0, 0, 0 }, 700, 300, 0 },
		{ { ~(__u64)0, ~(__u64)0, ~0u, ~0u, ~0u, ~0u }, 0, 1000, 0 },
	};
	struct {
		struct xpt_record_call call;
		__u64 program, number;
		struct xpt_counts counts[2];
		struct xpt_task_state state;
	} record = { .call = { .header = { XPT_RECORD_CALL, sizeof(record), 1, 5000 },
			       .start = 4000,
			       .valid = 1,
			       .values = 1,
			       .depth = 3 | XPT_CALL_STATES | XPT_CALL_STATES_FOLLOW,
			       .flags = XPT_CALL_NUMBERED | XPT_CALL_COUNTED } };
	struct functions *functions = functions_new();
	struct event_call call;

	cr_assert_eq(add_runtime(functions, 3, RUNTIME), 0);
	cr_assert_eq(add(functions, 0, SPEC(F("program", "u64"))), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		call = (struct event_call){ .start = 4000, .end = 5000 };
		record.state = cases[i].state;
		function_decode(functions_get(functions, 0), &record.call, &call);
		cr_expect_eq(call.states.calls, 1);
		cr_expect_eq(call.states.cpu, cases[i].cpu, "case %zu: %llu", i, call.states.cpu);
		cr_expect_eq(call.states.waited, cases[i].waited, "case %zu: %llu", i, call.states.waited);
		cr_expect_eq(call.states.blocked, cases[i].blocked, "case %zu: %llu", i, call.states.blocked);
		cr_expect_eq(call.states.minor_faults, cases[i].state.minor);
		cr_expect_eq(call.states.involuntary, cases[i].state.involuntary);
	}
	record.call.depth = XPT_CALL_STATES; /* it only ran */
	call = (struct event_call){ .start = 4000, .end = 5000 };
	function_decode(functions_get(functions, 0), &record.call, &call);
	cr_expect(call.states.calls == 1 && call.states.cpu == 1000 && !call.states.minor_faults);
	record.call.depth = 0;
	call = (struct event_call){ .start = 4000, .end = 5000 };
	function_decode(functions_get(functions, 0), &record.call, &call);
	cr_expect_eq(call.states.calls, 0, "an older recording");
	functions_done(functions);
}
