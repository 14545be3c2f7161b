/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * begin(name, request): begins a region and returns its number; end(number). Each environment (worker) has its own regions, and its
 * thread is the only one that uses them. Regions of one name that are open at once are several; those that have ended are begun again.
 */
#define NAPI_VERSION 6
#include <node/node_api.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/region.h>

#define NAME_MAX_BYTES 256 /* as much is read of a name, its end included */

struct entry {
	struct xpt_region region;
	char name[NAME_MAX_BYTES];
	bool open, request;
	size_t next; /* of the same bucket; SIZE_MAX: none */
};

#define BUCKETS 256

struct regions {
	struct entry **all;
	size_t count;
	size_t bucket[BUCKETS]; /* by name */
};

static size_t bucket_of(const char *name)
{
	size_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash % BUCKETS;
}

/* Number of a region with the name that is not open; SIZE_MAX: no memory. */
static size_t entry_get(struct regions *regions, const char *name)
{
	size_t *first = &regions->bucket[bucket_of(name)], at;
	struct entry **all, *entry;

	for (at = *first; at != SIZE_MAX; at = regions->all[at]->next) {
		if (!regions->all[at]->open && !strcmp(regions->all[at]->name, name))
			return at;
	}
	if (!(regions->count & (regions->count - 1))) {
		all = realloc(regions->all, (regions->count ? 2 * regions->count : 1) * sizeof(struct entry *));
		if (!all)
			return SIZE_MAX;
		regions->all = all;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return SIZE_MAX;
	strcpy(entry->name, name);
	xpt_region_init(&entry->region, entry->name);
	entry->next = *first;
	*first = regions->count;
	regions->all[regions->count] = entry;
	return regions->count++;
}

static napi_value fail(napi_env env, const char *reason)
{
	napi_throw_type_error(env, NULL, reason);
	return NULL;
}

static napi_value begin(napi_env env, napi_callback_info info)
{
	char name[NAME_MAX_BYTES], request[NAME_MAX_BYTES];
	napi_value arguments[2], number;
	size_t count = 2, at;
	void *regions;

	if (napi_get_cb_info(env, info, &count, arguments, NULL, &regions) != napi_ok || count < 2 ||
	    napi_get_value_string_utf8(env, arguments[0], name, sizeof(name), NULL) != napi_ok ||
	    napi_get_value_string_utf8(env, arguments[1], request, sizeof(request), NULL) != napi_ok)
		return fail(env, "begin(name, request) takes two strings");
	at = entry_get(regions, name);
	if (at == SIZE_MAX || napi_create_double(env, (double)at, &number) != napi_ok)
		return fail(env, "no memory for a region");
	struct entry *entry = ((struct regions *)regions)->all[at];

	entry->open = true;
	entry->request = *request;
	if (entry->request)
		xpt_region_start_request(&entry->region, request);
	else
		xpt_region_start(&entry->region);
	return number;
}

static napi_value end(napi_env env, napi_callback_info info)
{
	napi_value argument;
	size_t count = 1;
	void *data;
	double number;

	if (napi_get_cb_info(env, info, &count, &argument, NULL, &data) != napi_ok || count < 1 ||
	    napi_get_value_double(env, argument, &number) != napi_ok)
		return fail(env, "end(number) takes a number");
	struct regions *regions = data;

	if (!(number >= 0 && number < (double)regions->count))
		return fail(env, "end(number): there is no such region");
	struct entry *entry = regions->all[(size_t)number];

	if (!entry->open)
		return NULL;
	entry->open = false;
	if (entry->request)
		xpt_region_stop_request(&entry->region);
	else
		xpt_region_stop(&entry->region);
	return NULL;
}

static void release(napi_env env, void *data, void *hint)
{
	struct regions *regions = data;

	(void)env;
	(void)hint;
	for (size_t i = 0; i < regions->count; i++) {
		xpt_region_destroy(&regions->all[i]->region);
		free(regions->all[i]);
	}
	free(regions->all);
	free(regions);
}

NAPI_MODULE_INIT()
{
	struct regions *regions = calloc(1, sizeof(*regions));
	napi_value function;

	if (!regions)
		return fail(env, "no memory");
	for (size_t i = 0; i < BUCKETS; i++)
		regions->bucket[i] = SIZE_MAX;
	if (napi_set_instance_data(env, regions, release, NULL) != napi_ok ||
	    napi_create_function(env, "begin", NAPI_AUTO_LENGTH, begin, regions, &function) != napi_ok ||
	    napi_set_named_property(env, exports, "begin", function) != napi_ok ||
	    napi_create_function(env, "end", NAPI_AUTO_LENGTH, end, regions, &function) != napi_ok ||
	    napi_set_named_property(env, exports, "end", function) != napi_ok)
		return fail(env, "the functions cannot be made");
	return exports;
}
