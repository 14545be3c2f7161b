/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/functions.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "describe/runtime/description.h"

#define STATUSES_MAX 4096

static void runtime_free(struct runtime *runtime)
{
	size_t i;

	if (!runtime)
		return;
	for (i = 0; i < runtime->status_count; i++)
		free(runtime->statuses[i].name);
	free(runtime->statuses);
	free(runtime->streams_of);
	free(runtime->name);
	free(runtime);
}

static void function_free(struct function *function)
{
	if (!function)
		return;
	free((char *)function->view.name);
	free(function->runs);
	free(function);
}

void functions_free(struct functions *functions)
{
	unsigned int i;

	for (i = 0; i < XPT_SPEC_MAX; i++)
		function_free(functions->functions[i]);
	for (i = 0; i < XPT_RUNTIME_MAX; i++)
		runtime_free(functions->runtimes[i]);
}

static int status_compare(const void *left, const void *right)
{
	const struct runtime_status *a = left, *b = right;

	return a->value < b->value ? -1 : a->value > b->value;
}

static int status_parse(const cJSON *item, struct runtime_status *status)
{
	const __s64 limit = 1LL << 53; /* integers that a double holds */
	const char *class = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "class"));
	int error = json_integer_get(item, "value", -limit, limit, &status->value);

	if (error || !class)
		return -EBADMSG;
	if (!strcmp(class, "ok"))
		status->outcome = OUTCOME_OK;
	else if (!strcmp(class, "pending"))
		status->outcome = OUTCOME_PENDING;
	else if (!strcmp(class, "error"))
		status->outcome = OUTCOME_FAILED;
	else
		return -EBADMSG;
	error = json_string_get(item, "name", &status->name);
	return error == -EBADMSG ? 0 : error; /* a value need not have a name */
}

static int statuses_parse(const cJSON *array, struct runtime *runtime)
{
	const cJSON *item;
	int size, error;

	if (!array)
		return 0;
	if (!cJSON_IsArray(array))
		return -EBADMSG;
	size = cJSON_GetArraySize(array);
	if (size > STATUSES_MAX)
		return -EBADMSG;
	runtime->statuses = calloc((size_t)size + 1, sizeof(*runtime->statuses));
	if (!runtime->statuses)
		return -ENOMEM;
	cJSON_ArrayForEach(item, array) {
		error = status_parse(item, &runtime->statuses[runtime->status_count]);
		if (error)
			return error;
		runtime->status_count++;
	}
	qsort(runtime->statuses, runtime->status_count, sizeof(*runtime->statuses), status_compare);
	return 0;
}

static void streams_find(const struct functions *functions, struct function *function)
{
	const char *name = function->runtime->streams_of;

	function->view.streams = function->runtime->index;
	function->view.shares_streams = name;
	for (unsigned int i = 0; i < XPT_RUNTIME_MAX && name; i++)
		if (functions->runtimes[i] && !strcmp(functions->runtimes[i]->name, name))
			function->view.streams = i;
}

int functions_add_runtime(struct functions *functions, __u64 index, const cJSON *object)
{
	struct runtime *runtime;
	int error;

	if (index >= XPT_RUNTIME_MAX)
		return -EBADMSG;
	runtime = calloc(1, sizeof(*runtime));
	if (!runtime)
		return -ENOMEM;
	runtime->index = (unsigned int)index;
	runtime->in_order = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "in_order"));
	error = json_string_get(object, "name", &runtime->name) ?:
			statuses_parse(cJSON_GetObjectItemCaseSensitive(object, "statuses"), runtime);
	if (!error && cJSON_GetObjectItemCaseSensitive(object, "streams_of"))
		error = json_string_get(object, "streams_of", &runtime->streams_of);
	if (!error && !functions->runtimes[index]) {
		functions->runtimes[index] = runtime;
		/* Functions may come before the runtime that their streams are of. */
		for (size_t i = 0; i < XPT_SPEC_MAX; i++)
			if (functions->functions[i])
				streams_find(functions, functions->functions[i]);
		return 0;
	}
	if (!error && strcmp(functions->runtimes[index]->name, runtime->name))
		error = -EBADMSG;
	runtime_free(runtime);
	return error;
}

static int operand_parse(const cJSON *item, const char *key, __u8 test, struct function_fetch *fetch, __u32 *operand)
{
	__s64 number = 0;

	if (!cJSON_GetObjectItemCaseSensitive(item, key))
		return 0;
	fetch->tests |= test;
	if (json_integer_get(item, key, 0, ~0u, &number))
		return -EBADMSG;
	*operand = (__u32)number;
	return 0;
}

static int fetch_parse(const cJSON *item, struct function_fetch *fetch)
{
	const char *meaning = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "meaning"));
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "type"));
	int number = meaning ? meaning_from_name(meaning) : -1;

	if (number < 0 || !type)
		return -EBADMSG;
	fetch->meaning = (__u8)number;
	fetch->string = !strcmp(type, "string");
	fetch->at_return = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "at_return"));
	return operand_parse(item, "mask", XPT_TEST_MASK, fetch, &fetch->mask) ?:
		       operand_parse(item, "equal", XPT_TEST_EQUAL, fetch, &fetch->equal);
}

static int fetches_parse(const cJSON *array, struct function *function)
{
	struct function_fetch *fetch;
	const cJSON *item;
	int error;

	function->name_fetch = function->keys_fetch = -1;
	if (!array)
		return 0;
	if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > XPT_FETCH_MAX)
		return -EBADMSG;
	cJSON_ArrayForEach(item, array) {
		fetch = &function->fetches[function->fetch_count];
		error = fetch_parse(item, fetch);
		if (error)
			return error;
		if (!fetch->string)
			function->value_count++;
		else if (fetch->meaning == XPT_MEANING_NAME)
			function->name_fetch = (int)function->fetch_count;
		if (fetch->meaning == XPT_MEANING_KEYS)
			function->keys_fetch = (int)function->fetch_count;
		if (fetch->at_return && fetch->meaning != XPT_MEANING_STATUS)
			function->returned |= (__u8)(1u << function->fetch_count);
		function->fetch_count++;
	}
	return 0;
}

static int function_parse(const struct functions *functions, const cJSON *object, struct function *function)
{
	const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "role"));
	int role_number = role ? role_from_name(role) : -1;
	__s64 number = 0;
	int error;

	if (role_number < 0)
		return -EBADMSG;
	function->view.role = (enum xpt_role)role_number;
	error = json_integer_get(object, "runtime", 0, XPT_RUNTIME_MAX - 1, &number);
	if (error)
		return error;
	function->runtime = functions->runtimes[number];
	if (!function->runtime)
		return -EBADMSG;
	function->view.runtime = function->runtime->name;
	function->view.runtime_index = function->runtime->index;
	function->view.in_order = function->runtime->in_order;
	streams_find(functions, function);
	error = json_integer_get(object, "success", XPT_SUCCESS_ALWAYS, XPT_SUCCESS_NONZERO, &number);
	if (error)
		return error;
	function->success = (enum xpt_success)number;
	error = cJSON_GetObjectItemCaseSensitive(object, "runs") ? json_string_get(object, "runs", &function->runs) : 0;
	error = error ?: fetches_parse(cJSON_GetObjectItemCaseSensitive(object, "fetches"), function);
	if (error)
		return error;
	return json_string_get(object, "function", (char **)&function->view.name);
}

static bool function_same(const struct function *a, const struct function *b)
{
	return !strcmp(a->view.name, b->view.name) && a->view.role == b->view.role && a->runtime == b->runtime &&
	       a->success == b->success && a->fetch_count == b->fetch_count &&
	       !memcmp(a->fetches, b->fetches, sizeof(a->fetches));
}

int functions_add(struct functions *functions, __u64 index, const cJSON *object)
{
	struct function *function;
	struct runtime *runtime;
	int error;

	if (index >= XPT_SPEC_MAX)
		return -EBADMSG;
	function = calloc(1, sizeof(*function));
	if (!function)
		return -ENOMEM;
	function->view.index = (unsigned int)index;
	error = function_parse(functions, object, function);
	if (!error && !functions->functions[index]) {
		functions->functions[index] = function;
		runtime = functions->runtimes[function->view.runtime_index];
		runtime->models |= function->view.role == XPT_ROLE_EXECUTE || function->view.role == XPT_ROLE_ENQUEUE;
		runtime->unloads |= function->view.role == XPT_ROLE_PROGRAM_UNLOAD;
		return 0;
	}
	if (!error && !function_same(functions->functions[index], function))
		error = -EBADMSG;
	function_free(function);
	return error;
}

#define COST_MAX 1000000000 /* ns */

int functions_add_cost(struct functions *functions, __u64 index, const cJSON *object)
{
	struct function *function = index < XPT_SPEC_MAX ? functions->functions[index] : NULL;
	__s64 cost, inside;
	int error = json_integer_get(object, "cost_ns", 1, COST_MAX, &cost) ?:
			    json_integer_get(object, "inside_ns", 0, cost, &inside);

	if (!error && function) {
		function->cost = (__u64)cost;
		function->cost_inside = (__u64)inside;
	}
	return error;
}

/* Statuses of 32 bits may be written with or without a sign. */
static const struct runtime_status *status_find(const struct function *function, __s64 value)
{
	const struct runtime *runtime = function->runtime;
	const struct runtime_status *status;
	size_t low = 0, high = runtime->status_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		status = &runtime->statuses[middle];
		if (status->value == value)
			return status;
		if (status->value < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (function->success == XPT_SUCCESS_ZERO32 && value < 0)
		return status_find(function, (__s64)(__u32)value);
	return NULL;
}

static void status_decode(const struct function *function, struct event_call *call)
{
	const struct runtime_status *status;

	if (function->success == XPT_SUCCESS_ZERO32)
		call->status = (__s32)call->status;
	status = status_find(function, call->status);
	if (status)
		call->status_name = status->name;
	if (!call->status)
		call->outcome = OUTCOME_OK;
	else
		call->outcome = status ? status->outcome : OUTCOME_FAILED;
}

/* Where a call has the values of each meaning; 0: it has none. */
static const size_t value_places[] = {
	[XPT_MEANING_PROGRAM] = offsetof(struct event_call, handle),
	[XPT_MEANING_KEY] = offsetof(struct event_call, key),
	[XPT_MEANING_SIZE] = offsetof(struct event_call, size),
	[XPT_MEANING_CORE] = offsetof(struct event_call, core),
	[XPT_MEANING_STREAM] = offsetof(struct event_call, stream),
	[XPT_MEANING_STATUS] = offsetof(struct event_call, status),
	[XPT_MEANING_PARENT] = offsetof(struct event_call, parent),
	[XPT_MEANING_ADDRESS] = offsetof(struct event_call, address),
	[XPT_MEANING_COUNT] = offsetof(struct event_call, count),
	[XPT_MEANING_LENGTH] = offsetof(struct event_call, length),
	[XPT_MEANING_OBJECT] = offsetof(struct event_call, object),
	[XPT_MEANING_CLASS] = offsetof(struct event_call, class),
	[XPT_MEANING_INFERENCE] = offsetof(struct event_call, inference),
	[XPT_MEANING_BLOCKING] = offsetof(struct event_call, blocking),
	[XPT_MEANING_ORDERED] = offsetof(struct event_call, ordered),
	[XPT_MEANING_WHEN] = offsetof(struct event_call, when),
	[XPT_MEANING_TOKENS] = offsetof(struct event_call, tokens),
	[XPT_MEANING_POSITION] = offsetof(struct event_call, position),
	[XPT_MEANING_SEQUENCE] = offsetof(struct event_call, sequence),
	[XPT_MEANING_NEXT_SEQUENCE] = offsetof(struct event_call, next_sequence),
};

#define COUNTS_WORDS (2 * sizeof(struct xpt_counts) / sizeof(__u64))

static void value_decode(struct event_call *call, unsigned int meaning, __u64 value)
{
	size_t place = meaning < sizeof(value_places) / sizeof(value_places[0]) ? value_places[meaning] : 0;

	if (place)
		memcpy((char *)call + place, &value, sizeof(value));
	if (place || meaning == XPT_MEANING_KEYS) /* the address of the keys means nothing to anybody */
		call->have |= 1u << meaning;
}

static __u64 value_tested(const struct function_fetch *fetch, __u64 value)
{
	if (fetch->tests & XPT_TEST_MASK)
		value &= fetch->mask;
	return fetch->tests & XPT_TEST_EQUAL ? value == fetch->equal : value;
}

/*
 * What is read at two moments one after the other need not agree to the nanosecond with the call's times, nor with each other where
 * clocks of CPUs differ. A thread without a voluntary switch was never blocked: what else its CPU did, interrupts or work for a
 * hypervisor, it waited for.
 */
static void states_decode(const struct xpt_task_state *state, struct event_call *call)
{
	const __u64 duration = call->end - call->start;
	__u64 waited = state->waited < duration ? state->waited : duration;
	__u64 off = (__s64)state->off_cpu < 0 ? 0 : state->off_cpu;

	off = off < waited ? waited : off < duration ? off : duration;
	if (!state->voluntary)
		waited = off;
	call->states = (struct model_states){
		.calls = 1,
		.cpu = duration - off,
		.waited = waited,
		.blocked = off - waited,
		.voluntary = state->voluntary,
		.involuntary = state->involuntary,
		.minor_faults = state->minor,
		.major_faults = state->major,
	};
}

void function_decode(const struct function *function, const struct xpt_record_call *record, struct event_call *call)
{
	unsigned int fetch, value = 0;

	for (fetch = 0; fetch < function->fetch_count && value < record->values; fetch++) {
		if (function->fetches[fetch].string)
			continue;
		if (record->valid & (1u << fetch))
			value_decode(call, function->fetches[fetch].meaning,
				     value_tested(&function->fetches[fetch], record->value[value]));
		value++;
	}
	if ((record->flags & (XPT_CALL_NUMBERED | XPT_CALL_LAYER)) == XPT_CALL_NUMBERED &&
	    role_runs(function->view.role)) {
		call->numbered = true;
		call->number = record->value[record->values];
	}
	if (record->flags & XPT_CALL_COUNTED) {
		call->begin_counts =
			(const void *)&record->value[record->values + !!(record->flags & XPT_CALL_NUMBERED)];
		call->end_counts = call->begin_counts + 1;
	}
	if ((record->depth & XPT_CALL_STATES) && call->end >= call->start)
		states_decode(record->depth & XPT_CALL_STATES_FOLLOW ?
				      (const void *)&record
					      ->value[record->values + !!(record->flags & XPT_CALL_NUMBERED) +
						      (record->flags & XPT_CALL_COUNTED ? COUNTS_WORDS : 0)] :
				      &(const struct xpt_task_state){ 0 },
			      call);
	if (record->flags & XPT_CALL_NO_END && function->view.role != XPT_ROLE_WAIT)
		return;
	if (call_has(call, XPT_MEANING_STATUS))
		status_decode(function, call);
	else if (record->flags & XPT_CALL_NO_END) /* where a status is missing, its return was not seen */
		call->outcome = function->success == XPT_SUCCESS_ALWAYS ? OUTCOME_NONE : OUTCOME_PENDING;
	else if (function->success != XPT_SUCCESS_ALWAYS && function->returned)
		call->outcome = record->valid & function->returned ? OUTCOME_OK : OUTCOME_FAILED;
}
