/* SPDX-License-Identifier: BSD-2-Clause */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "code/store/store.h"
#include "code/store/index.h"

#define LOADS 1000

static char said[1100];

static void say(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	snprintf(said, sizeof(said), "%s", text);
}

static const struct log log = { .write = say, .level = XPT_LOG_WARN };

/* Of "abc" and of nothing. */
#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA_NONE "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct xpt_codeobj_function functions[] = {
	{ .name = "vector_add", .offset = 4096, .size = 256, .address = 0x1900, .kernel = 1 },
	{ .name = "helper" },
};
static const struct xpt_codeobj_part parts[] = {
	{ .name = "hipv4-amdgcn-amd-amdhsa--gfx90a", .kind = "hsaco", .offset = 4096, .length = 8192 },
	{ .name = "/models/weights.bin", .kind = "unknown", .external = 1 },
};

/* Nothing is left at its default. */
static const struct xpt_codeobj full = {
	.size = sizeof(full),
	.uri = "memory://12#offset=0x7f00&size=8192",
	.kind = "hsaco",
	.machine = "gfx90a",
	.name = "kernels",
	.runtime = "hip",
	.function = "hipModuleLoadData",
	.pid = 12,
	.tid = 13,
	.handle = ~0ull,
	.device = 3,
	.load_address = 0x7f00,
	.load_size = 8192,
	.data_size = 8192,
	.sha256 = SHA_ABC,
	.loaded = 9007199254740993, /* no double holds it */
	.unloaded = ~0ull,
	.status = -9223372036854775807 - 1,
	.waited = 1500000,
	.error = "section 3 lies behind the end",
	.functions = functions,
	.function_count = 2,
	.functions_left_out = 7,
	.parts = parts,
	.part_count = 2,
	.file = SHA_ABC ".hsaco",
};

static struct text written(const struct xpt_codeobj *const *objects, size_t count, const char *mode)
{
	const struct xpt_codeobj_list list = { .size = sizeof(list),
					       .objects = objects,
					       .count = count,
					       .userdata = ~0ull,
					       .over_limit = 1,
					       .incomplete = 2,
					       .lost = 3 };
	struct text text = { 0 };

	code_index_write(&text, &list, mode);
	cr_assert_eq(text.error, 0);
	cr_assert(json_is_object(text.data, text.length), "%.*s", (int)text.length, text.data);
	return text;
}

static struct code_list *read_back(const struct text *text, code_index_check_fn check)
{
	struct code_list *list = NULL;

	cr_assert_eq(code_index_read(&log, "x", text->data, text->length, check, NULL, &list), 0, "%s", said);
	return list;
}

static void expect_text(const char *found, const char *wanted)
{
	cr_assert(found == wanted || (found && wanted && !strcmp(found, wanted)), "%s and not %s", found, wanted);
}

static void expect_same(const struct xpt_codeobj *found, const struct xpt_codeobj *wanted)
{
	expect_text(found->uri, wanted->uri);
	expect_text(found->kind, wanted->kind);
	expect_text(found->machine, wanted->machine);
	expect_text(found->name, wanted->name);
	expect_text(found->runtime, wanted->runtime);
	expect_text(found->function, wanted->function);
	cr_assert(found->pid == wanted->pid && found->tid == wanted->tid && found->handle == wanted->handle);
	cr_assert(found->device == wanted->device && found->load_address == wanted->load_address);
	cr_assert(found->load_size == wanted->load_size && found->data_size == wanted->data_size);
	cr_assert(found->missing == wanted->missing && found->loaded == wanted->loaded);
	cr_assert(found->unloaded == wanted->unloaded && found->status == wanted->status);
	cr_assert(found->waited == wanted->waited && !found->data);
	expect_text(found->sha256, wanted->sha256);
	expect_text(found->error, wanted->error);
	expect_text(found->file, wanted->file);
	cr_assert(found->function_count == wanted->function_count && found->part_count == wanted->part_count);
	cr_assert_eq(found->functions_left_out, wanted->functions_left_out);
	cr_assert(found->function_size == sizeof(functions[0]) && found->part_size == sizeof(parts[0]));
	for (size_t i = 0; i < found->function_count; i++) {
		expect_text(found->functions[i].name, wanted->functions[i].name);
		cr_assert(found->functions[i].offset == wanted->functions[i].offset &&
			  found->functions[i].size == wanted->functions[i].size &&
			  found->functions[i].address == wanted->functions[i].address &&
			  found->functions[i].kernel == wanted->functions[i].kernel);
	}
	for (size_t i = 0; i < found->part_count; i++) {
		expect_text(found->parts[i].name, wanted->parts[i].name);
		expect_text(found->parts[i].kind, wanted->parts[i].kind);
		cr_assert(found->parts[i].external == wanted->parts[i].external &&
			  found->parts[i].offset == wanted->parts[i].offset &&
			  found->parts[i].length == wanted->parts[i].length);
	}
}

Test(code_store_index, everything_comes_back)
{
	const struct xpt_codeobj least = { .size = sizeof(least), .uri = "file:///a", .kind = "unknown", .device = -1 };
	const struct xpt_codeobj part = { .size = sizeof(part),
					  .uri = "file:///b",
					  .kind = "elf",
					  .device = -1,
					  .data_size = 100,
					  .missing = 60,
					  .error = "not resident" };
	const struct xpt_codeobj *const objects[] = { &full, &least, &part };
	struct text text = written(objects, 3, "memory");
	struct code_list *list = read_back(&text, NULL);

	cr_assert_eq(list->list.size, sizeof(list->list));
	cr_assert(list->list.count == 3 && list->list.userdata == ~0ull);
	cr_assert(list->list.over_limit == 1 && list->list.incomplete == 2 && list->list.lost == 3);
	for (size_t i = 0; i < 3; i++)
		expect_same(list->list.objects[i], objects[i]);
	code_list_free(list);
	text_free(&text);
}

/* By a reader of somebody else. */
static cJSON *parsed(const struct text *text)
{
	cJSON *index = cJSON_ParseWithLength(text->data, text->length);

	cr_assert_not_null(index);
	return index;
}

static const char *string_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
}

Test(code_store_index, one_object_of_many_loads)
{
	static struct xpt_codeobj loads[LOADS];
	const struct xpt_codeobj *pointers[LOADS];
	const cJSON *objects, *list;
	struct text text;
	struct code_list *back;
	cJSON *index;

	for (size_t i = 0; i < LOADS; i++) {
		loads[i] = full;
		loads[i].loaded = i + 1;
		if (i % 10 == 9)
			strcpy(loads[i].sha256, SHA_NONE);
		if (i % 10 == 8)
			loads[i].sha256[0] = '\0';
		loads[i].file = i == 500 ? full.file : NULL; /* it was kept for one of them */
		pointers[i] = &loads[i];
	}
	text = written(pointers, LOADS, NULL);
	index = parsed(&text);
	objects = cJSON_GetObjectItem(index, "objects");
	list = cJSON_GetObjectItem(index, "loads");
	cr_assert_eq(cJSON_GetArraySize(objects), LOADS / 10 + 2);
	cr_assert_eq(cJSON_GetArraySize(list), LOADS);
	expect_text(string_of(cJSON_GetArrayItem(objects, 0), "id"), SHA_ABC);
	expect_text(string_of(cJSON_GetArrayItem(objects, 0), "file"), full.file);
	expect_text(string_of(cJSON_GetArrayItem(objects, 1), "id"), "incomplete-1");
	expect_text(string_of(cJSON_GetArrayItem(objects, 1), "sha256"), NULL);
	expect_text(string_of(cJSON_GetArrayItem(objects, 2), "id"), SHA_NONE);
	expect_text(string_of(cJSON_GetArrayItem(list, 998), "object"), "incomplete-100");
	expect_text(string_of(cJSON_GetArrayItem(list, 7), "object"), SHA_ABC);
	cr_assert_null(cJSON_GetObjectItem(index, "mode"));
	expect_text(string_of(index, "tool"), "xputrace " XPT_VERSION);
	back = read_back(&text, NULL);
	cr_assert_eq(back->list.count, LOADS);
	for (size_t i = 0; i < LOADS; i++) {
		cr_assert_eq(back->list.objects[i]->loaded, i + 1);
		expect_text(back->list.objects[i]->sha256, loads[i].sha256);
	}
	cr_assert_eq(back->list.objects[0]->functions, back->list.objects[1]->functions);
	cJSON_Delete(index);
	code_list_free(back);
	text_free(&text);
}

/* Errors of a load are not those of the object, nor of the other loads. */
Test(code_store_index, errors_of_one_load)
{
	struct xpt_codeobj first = full, second = full;
	const struct xpt_codeobj *const objects[] = { &first, &second };
	struct text text;
	struct code_list *list;

	first.error = "no room";
	second.error = NULL;
	text = written(objects, 2, NULL);
	list = read_back(&text, NULL);
	expect_text(list->list.objects[0]->error, "no room");
	expect_text(list->list.objects[1]->error, NULL);
	code_list_free(list);
	text_free(&text);
}

Test(code_store_index, names_of_any_bytes)
{
	static const char name[] = "\"\\\n\x01\xff\xc0\x80</script>\xf0\x9f\x98\x80";
	const struct xpt_codeobj_function function = { .name = name };
	const struct xpt_codeobj_part part = { .name = name, .kind = "unknown" };
	struct xpt_codeobj object = full;
	const struct xpt_codeobj *const objects[] = { &object };
	const char *wanted = "\"\\\n\x01\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd</script>\xf0\x9f\x98\x80";
	struct text text;
	struct code_list *list;
	cJSON *index;

	object.name = object.machine = object.uri = object.runtime = object.function = object.error = name;
	object.functions = &function;
	object.function_count = 1;
	object.parts = &part;
	object.part_count = 1;
	text = written(objects, 1, name);
	index = parsed(&text);
	expect_text(string_of(index, "mode"), wanted);
	list = read_back(&text, NULL);
	expect_text(list->list.objects[0]->name, wanted);
	expect_text(list->list.objects[0]->uri, wanted);
	expect_text(list->list.objects[0]->error, wanted);
	expect_text(list->list.objects[0]->functions[0].name, wanted);
	expect_text(list->list.objects[0]->parts[0].name, wanted);
	cJSON_Delete(index);
	code_list_free(list);
	text_free(&text);
}

/* ---- of anybody ---- */

#define OBJECT(more) "{\"id\":\"" SHA_ABC "\",\"sha256\":\"" SHA_ABC "\",\"kind\":\"ptx\",\"size\":3" more "}"
#define LOAD "{\"object\":\"" SHA_ABC "\",\"uri\":\"file:///a\"}"
#define INDEX(objects, loads) "{\"schema\":1,\"objects\":[" objects "],\"loads\":[" loads "]}"

static struct code_list *list_of(const char *text, code_index_check_fn check)
{
	const struct text whole = { .data = (char *)text, .length = strlen(text) };

	return read_back(&whole, check);
}

/* What has no file that may be opened, and says why. */
static void expect_blamed(const char *text, size_t index, const char *words)
{
	struct code_list *list = list_of(text, NULL);

	cr_assert_lt(index, list->list.count, "%s", text);
	cr_assert_null(list->list.objects[index]->file);
	cr_assert_not_null(list->list.objects[index]->error, "%s", text);
	cr_assert(strstr(list->list.objects[index]->error, words), "%s: %s", text, list->list.objects[index]->error);
	code_list_free(list);
}

Test(code_store_index, files_that_are_not_its_own)
{
	static const char *const names[] = { "../x",
					     "/etc/shadow",
					     "",
					     ".",
					     "..",
					     "index.json",
					     "./" SHA_ABC ".ptx",
					     SHA_ABC,
					     SHA_ABC ".",
					     SHA_ABC ".ptx/",
					     SHA_ABC ".exe",
					     SHA_NONE ".ptx",
					     "\\u002e\\u002e/x" };
	char text[600];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), INDEX(OBJECT(",\"file\":\"%s\""), LOAD), names[i]);
		expect_blamed(text, 0, "not its own");
	}
	expect_blamed(INDEX("{\"id\":\"a\",\"file\":\"a.ptx\"}", "{\"object\":\"a\"}"), 0, "not its own");
	expect_blamed(INDEX("{\"id\":\"../x\",\"sha256\":\"../x\",\"file\":\"../x.bin\"}", "{\"object\":\"../x\"}"), 0,
		      "its hash is not");
	expect_blamed(INDEX("{\"id\":\"" SHA_NONE "\",\"sha256\":\"" SHA_ABC "\",\"file\":\"" SHA_ABC ".ptx\"}",
			    "{\"object\":\"" SHA_NONE "\"}"),
		      0, "its hash is not");
}

Test(code_store_index, what_does_not_belong_together)
{
	expect_blamed(INDEX(OBJECT(",\"file\":\"" SHA_ABC ".ptx\""), ""), 0, "no load is of it");
	expect_blamed(INDEX(OBJECT("") "," OBJECT(""), LOAD), 1, "twice");
	expect_blamed(INDEX("", LOAD), 0, "its object is not in the index");
	expect_blamed(INDEX("", "1,null,\"a\""), 2, "its object is not in the index");
}

static uint64_t checked_size;

static const char *refuse_file(void *context, const char *file, __u64 size)
{
	(void)context;
	cr_assert_str_eq(file, SHA_ABC ".ptx");
	checked_size = size;
	return "it is a link";
}

Test(code_store_index, files_are_looked_at)
{
	struct code_list *list = list_of(INDEX(OBJECT(",\"file\":\"" SHA_ABC ".ptx\",\"error\":\"a\""),
					       "{\"object\":\"" SHA_ABC "\",\"error\":\"b\"}"),
					 refuse_file);

	cr_assert_eq(checked_size, 3);
	cr_assert_null(list->list.objects[0]->file);
	cr_assert_str_eq(list->list.objects[0]->error, SHA_ABC ".ptx: it is a link");
	code_list_free(list);
}

Test(code_store_index, what_is_no_index)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"schema\":1}",
		"{\"schema\":2,\"objects\":[],\"loads\":[]}",
		"{\"schema\":1,\"objects\":{},\"loads\":[]}",
		"{\"schema\":1,\"objects\":[],\"loads\":\"a\"}",
		"{\"schema\":1,\"objects\":[],\"loads\":[],\"lost\":-1}",
		INDEX("", "") "x",
		INDEX("1", ""),
		INDEX("{}", ""),
		INDEX("{\"id\":1}", ""),
		INDEX("{\"id\":\"a\",\"size\":\"3\"}", ""),
		INDEX("{\"id\":\"a\",\"size\":3.5}", ""),
		INDEX("{\"id\":\"a\",\"size\":1e3}", ""),
		INDEX("{\"id\":\"a\",\"size\":18446744073709551616}", ""),
		INDEX("{\"id\":\"a\",\"functions\":1}", ""),
		INDEX("{\"id\":\"a\",\"functions\":[{\"address\":16}]}", ""),
		INDEX("{\"id\":\"a\",\"functions\":[{\"address\":\"0x\"}]}", ""),
		INDEX("{\"id\":\"a\",\"functions\":[{\"address\":\"0x10000000000000000\"}]}", ""),
		INDEX("{\"id\":\"a\",\"parts\":[{\"name\":[]}]}", ""),
		INDEX("", "{\"object\":{}}"),
		INDEX("", "{\"object\":\"a\",\"pid\":2147483648}"),
		INDEX("", "{\"object\":\"a\",\"status\":9223372036854775808}"),
		INDEX("", "{\"object\":\"a\",\"status\":--1}"),
	};
	struct code_list *list;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		said[0] = '\0';
		cr_assert_eq(code_index_read(&log, "x/index.json", wrong[i], strlen(wrong[i]), NULL, NULL, &list),
			     -EBADMSG, "%s", wrong[i]);
		cr_assert(!strncmp(said, "x/index.json: ", 14), "%s", said);
	}
}

/* More functions than are ever written: not a list that grows without bounds. */
Test(code_store_index, arrays_have_limits)
{
	struct text text = { 0 };
	struct code_list *list;

	text_literal(&text, "{\"schema\":1,\"objects\":[{\"id\":\"a\",\"functions\":[0");
	for (size_t i = 1; i < CODE_FUNCTIONS_MAX; i++)
		text_literal(&text, ",0");
	text_literal(&text, "]}],\"loads\":[]}");
	list = read_back(&text, NULL);
	cr_assert_eq(list->list.objects[0]->function_count, CODE_FUNCTIONS_MAX);
	code_list_free(list);
	text.length -= strlen("]}],\"loads\":[]}");
	text_literal(&text, ",0]}],\"loads\":[]}");
	cr_assert_eq(code_index_read(&log, "x", text.data, text.length, NULL, NULL, &list), -EBADMSG);
	text_free(&text);
}
