/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

#define IOCTLS_MAX 0x10000 /* numbers have 16 bits */

static void driver_free(struct traced_driver *driver)
{
	size_t i;

	if (!driver)
		return;
	for (i = 0; i < driver->ioctl_count; i++)
		free(driver->ioctls[i].name);
	free(driver->ioctls);
	free(driver->name);
	free(driver);
}

static void event_free(struct traced_event *event)
{
	if (!event)
		return;
	free(event->name);
	free(event);
}

void traced_drivers_free(struct traced_drivers *drivers)
{
	unsigned int i;

	for (i = 0; i < XPT_NODE_MAX; i++)
		free(drivers->nodes[i].path);
	for (i = 0; i < XPT_EVENT_MAX; i++)
		event_free(drivers->events[i]);
	for (i = 0; i < XPT_DRIVER_MAX; i++)
		driver_free(drivers->drivers[i]);
}

/* How many entries an array has; 0 when it is missing. -EBADMSG: it is none, or has more than most. */
static int array_size(const cJSON *array, int most)
{
	int size;

	if (!array)
		return 0;
	size = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : most + 1;
	return size <= most ? size : -EBADMSG;
}

static int bits_get(const cJSON *object, unsigned int *result)
{
	__s64 bits;
	int error = json_integer_get(object, "bits", 32, 64, &bits);

	if (error)
		return error;
	*result = (unsigned int)bits;
	return bits == 32 || bits == 64 ? 0 : -EBADMSG;
}

static int joins_parse(const cJSON *array, struct traced_driver *driver)
{
	struct traced_join *join;
	unsigned int bits = 0;
	const cJSON *item;
	__s64 other = 0;
	int error = array_size(array, XPT_DRIVER_MAX);

	if (error < 0)
		return error;
	cJSON_ArrayForEach(item, array) {
		error = json_integer_get(item, "driver", 0, XPT_DRIVER_MAX - 1, &other);
		if (!error)
			error = bits_get(item, &bits);
		if (error || other == driver->index)
			return -EBADMSG;
		join = &driver->joins[driver->join_count++];
		join->driver = (__u8)other;
		join->bits = (__u8)bits;
	}
	return 0;
}

static int ioctl_parse(const cJSON *item, struct traced_ioctl *ioctl)
{
	const cJSON *role_item = cJSON_GetObjectItemCaseSensitive(item, "role");
	__s64 number = 0, role = 0;

	if (json_integer_get(item, "number", 0, 0xffff, &number))
		return -EBADMSG;
	if (role_item && json_integer_get(item, "role", 0, XPT_EVENT_WAIT, &role))
		return -EBADMSG;
	ioctl->number = (__u16)number;
	ioctl->role = (__u8)role;
	return json_string_get(item, "name", &ioctl->name);
}

static int ioctl_compare(const void *left, const void *right)
{
	const struct traced_ioctl *a = left, *b = right;

	return (int)a->number - (int)b->number;
}

static int ioctls_parse(const cJSON *array, struct traced_driver *driver)
{
	int size = array_size(array, IOCTLS_MAX), error;
	const cJSON *item;

	if (size <= 0)
		return size;
	driver->ioctls = calloc((size_t)size, sizeof(*driver->ioctls));
	if (!driver->ioctls)
		return -ENOMEM;
	cJSON_ArrayForEach(item, array) {
		error = ioctl_parse(item, &driver->ioctls[driver->ioctl_count]);
		if (error)
			return error;
		driver->ioctl_count++;
	}
	qsort(driver->ioctls, driver->ioctl_count, sizeof(*driver->ioctls), ioctl_compare);
	return 0;
}

const struct traced_ioctl *traced_ioctl_find(const struct traced_driver *driver, __u32 command)
{
	const struct traced_ioctl wanted = { .number = (__u16)command };

	if (!driver->ioctl_count)
		return NULL;
	return bsearch(&wanted, driver->ioctls, driver->ioctl_count, sizeof(wanted), ioctl_compare);
}

static int driver_parse(const cJSON *object, struct traced_driver *driver)
{
	__s64 pairing = 0;
	int error = json_integer_get(object, "pairing", XPT_PAIRING_UNIQUE, XPT_PAIRING_ORDER, &pairing) ?:
			    bits_get(object, &driver->bits)						 ?:
			    joins_parse(cJSON_GetObjectItemCaseSensitive(object, "joins"), driver)	 ?:
			    ioctls_parse(cJSON_GetObjectItemCaseSensitive(object, "ioctls"), driver);

	driver->pairing = (enum xpt_pairing)pairing;
	return error ?: json_string_get(object, "name", &driver->name);
}

static bool ioctls_same(const struct traced_driver *a, const struct traced_driver *b)
{
	size_t i;

	if (a->ioctl_count != b->ioctl_count)
		return false;
	for (i = 0; i < a->ioctl_count; i++)
		if (a->ioctls[i].number != b->ioctls[i].number || a->ioctls[i].role != b->ioctls[i].role ||
		    strcmp(a->ioctls[i].name, b->ioctls[i].name))
			return false;
	return true;
}

static bool driver_same(const struct traced_driver *a, const struct traced_driver *b)
{
	return !strcmp(a->name, b->name) && a->pairing == b->pairing && a->bits == b->bits &&
	       a->join_count == b->join_count && !memcmp(a->joins, b->joins, sizeof(a->joins)) && ioctls_same(a, b);
}

static int node_add(struct traced_drivers *drivers, const struct traced_driver *driver, const cJSON *item)
{
	struct traced_node *node;
	__s64 index = 0;
	char *path;
	int error = json_integer_get(item, "index", 0, XPT_NODE_MAX - 1, &index) ?:
										   json_string_get(item, "path", &path);

	if (error)
		return error;
	node = &drivers->nodes[index];
	free(node->path);
	node->path = path;
	node->driver = driver;
	return 0;
}

static int nodes_add(struct traced_drivers *drivers, const struct traced_driver *driver, const cJSON *array)
{
	const cJSON *item;
	int error = array_size(array, XPT_NODE_MAX);

	if (error < 0)
		return error;
	cJSON_ArrayForEach(item, array) {
		error = node_add(drivers, driver, item);
		if (error)
			return error;
	}
	return 0;
}

static void bits_join(struct traced_drivers *drivers, unsigned int a, unsigned int b, __u8 bits)
{
	if (drivers->bits[a][b] && drivers->bits[a][b] < bits)
		bits = drivers->bits[a][b];
	drivers->bits[a][b] = drivers->bits[b][a] = bits;
}

static void driver_join(struct traced_drivers *drivers, const struct traced_driver *driver)
{
	bits_join(drivers, driver->index, driver->index, (__u8)driver->bits);
	for (size_t i = 0; i < driver->join_count; i++)
		bits_join(drivers, driver->index, driver->joins[i].driver, driver->joins[i].bits);
}

int traced_drivers_add(struct traced_drivers *drivers, __u64 index, const cJSON *object)
{
	struct traced_driver *driver;
	int error;

	if (index >= XPT_DRIVER_MAX)
		return -EBADMSG;
	driver = calloc(1, sizeof(*driver));
	if (!driver)
		return -ENOMEM;
	driver->index = (unsigned int)index;
	error = driver_parse(object, driver);
	if (!error && !drivers->drivers[index]) {
		drivers->drivers[index] = driver;
		driver_join(drivers, driver);
		driver = NULL;
	} else if (!error && !driver_same(drivers->drivers[index], driver)) {
		error = -EBADMSG;
	}
	driver_free(driver);
	return error ?: nodes_add(drivers, drivers->drivers[index], cJSON_GetObjectItemCaseSensitive(object, "nodes"));
}

static int field_parse(const cJSON *item, struct traced_event *event)
{
	struct traced_field *field = &event->fields[event->field_count];
	__s64 meaning = 0;
	int error = json_integer_get(item, "meaning", XPT_FIELD_KEY, XPT_FIELD_TIMELINE, &meaning);

	if (error)
		return error;
	field->meaning = (__u8)meaning;
	field->text = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "text"));
	field->is_signed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "signed"));
	field->offset = (__u16)(event->size - sizeof(struct xpt_record_event));
	event->size += field->text ? XPT_EVENT_TEXT : sizeof(__u64);
	event->field_count++;
	return 0;
}

static int fields_parse(const cJSON *array, struct traced_event *event)
{
	const cJSON *item;
	unsigned int i;
	int error = array_size(array, XPT_EVENT_VALUES_MAX);

	if (error < 0)
		return error;
	event->size = sizeof(struct xpt_record_event);
	cJSON_ArrayForEach(item, array) {
		error = field_parse(item, event);
		if (error)
			return error;
	}
	if (event->key > event->field_count)
		return -EBADMSG;
	for (i = 0; i < event->key; i++)
		if (event->fields[i].meaning != XPT_FIELD_KEY || event->fields[i].text)
			return -EBADMSG;
	return 0;
}

static bool role_needs_key(enum xpt_event_role role)
{
	return role == XPT_EVENT_QUEUE || role == XPT_EVENT_RUN || role == XPT_EVENT_DONE;
}

static int event_parse(const struct traced_drivers *drivers, const cJSON *object, struct traced_event *event)
{
	__s64 number = 0, role = 0, key = 0;
	int error = json_integer_get(object, "driver", 0, XPT_DRIVER_MAX - 1, &number);

	if (error || !drivers->drivers[number])
		return -EBADMSG;
	event->driver = drivers->drivers[number];
	error = json_integer_get(object, "role", XPT_EVENT_QUEUE, XPT_EVENT_WAIT, &role) ?:
			json_integer_get(object, "key", 0, XPT_EVENT_KEY_MAX, &key);
	event->role = (enum xpt_event_role)role;
	event->key = (unsigned int)key;
	if (error || (role_needs_key(event->role) && !key))
		return -EBADMSG;
	event->by_thread = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "by_thread"));
	error = fields_parse(cJSON_GetObjectItemCaseSensitive(object, "fields"), event);
	return error ? error : json_string_get(object, "event", &event->name);
}

static bool fields_same(const struct traced_event *a, const struct traced_event *b)
{
	unsigned int i;

	if (a->field_count != b->field_count)
		return false;
	for (i = 0; i < a->field_count; i++)
		if (a->fields[i].meaning != b->fields[i].meaning || a->fields[i].text != b->fields[i].text ||
		    a->fields[i].is_signed != b->fields[i].is_signed)
			return false;
	return true;
}

static bool event_same(const struct traced_event *a, const struct traced_event *b)
{
	return !strcmp(a->name, b->name) && a->driver == b->driver && a->role == b->role && a->key == b->key &&
	       a->by_thread == b->by_thread && fields_same(a, b);
}

int traced_drivers_add_event(struct traced_drivers *drivers, __u64 index, const cJSON *object)
{
	struct traced_event *event;
	int error;

	if (index >= XPT_EVENT_MAX)
		return -EBADMSG;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	event->index = (unsigned int)index;
	error = event_parse(drivers, object, event);
	if (!error && !drivers->events[index]) {
		drivers->events[index] = event;
		return 0;
	}
	if (!error && !event_same(drivers->events[index], event))
		error = -EBADMSG;
	event_free(event);
	return error;
}

/* ---- open jobs by key ---- */

void job_keys_init(struct job_keys *keys, const struct traced_drivers *drivers)
{
	*keys = (struct job_keys){ .drivers = drivers };
	pool_init(&keys->pool, sizeof(struct job_key));
}

void job_keys_free(struct job_keys *keys)
{
	map_free(&keys->map);
	pool_free(&keys->pool);
}

/* The same for all keys that may be equal: of what every comparison uses. */
static __u64 key_place(const struct driver_event_values *values)
{
	__u64 place = 0;

	for (unsigned int i = 0; i < values->event->key; i++) {
		place = (place ^ (values->key[i] & 0xffffffff)) * 0x9e3779b97f4a7c15ULL;
		place ^= place >> 29;
	}
	return place;
}

static bool key_equals(const struct job_keys *keys, const struct job_key *key, const struct driver_event_values *values)
{
	const struct traced_driver *driver = values->event->driver;
	const unsigned int bits = keys->drivers->bits[driver->index][key->driver->index];
	const __u64 mask = bits == 32 ? 0xffffffff : ~(__u64)0;
	unsigned int i;

	if (!bits || key->parts != values->event->key)
		return false;
	for (i = 0; i < key->parts; i++)
		if ((key->part[i] ^ values->key[i]) & mask)
			return false;
	return true;
}

struct job_key *job_keys_find(struct job_keys *keys, const struct driver_event_values *values)
{
	struct map_node *node = map_find(&keys->map, key_place(values), values->event->key);

	for (; node; node = map_next(node))
		if (key_equals(keys, container_of(node, struct job_key, node), values))
			return container_of(node, struct job_key, node);
	return NULL;
}

static struct job_key *key_create(struct job_keys *keys, const struct driver_event_values *values)
{
	struct job_key *key = pool_take(&keys->pool);

	if (!key)
		return NULL;
	if (map_add(&keys->map, &key->node, key_place(values), values->event->key)) {
		pool_give(&keys->pool, key);
		return NULL;
	}
	link_init(&key->jobs);
	key->driver = values->event->driver;
	key->parts = values->event->key;
	memcpy(key->part, values->key, sizeof(key->part));
	return key;
}

int job_keys_add(struct job_keys *keys, const struct driver_event_values *values, struct job *job)
{
	const bool shared = values->event->driver->pairing == XPT_PAIRING_ORDER;
	struct job_key *key = shared ? job_keys_find(keys, values) : NULL;
	unsigned int i;

	if (!key)
		key = key_create(keys, values);
	if (!key)
		return -ENOMEM;
	job->key = key;
	link_append(&key->jobs, &job->of_key);
	for (i = 0; i < key->source_count; i++)
		if (!key->sources[i].next)
			key->sources[i].next = job;
	job_key_advance(key, values->event, job);
	return 0;
}

static struct job *following_job(const struct job_key *key, const struct job *job)
{
	return job->of_key.next == &key->jobs ? NULL : container_of(job->of_key.next, struct job, of_key);
}

void job_keys_remove(struct job_keys *keys, struct job *job)
{
	struct job_key *key = job->key;
	unsigned int i;

	for (i = 0; i < key->source_count; i++)
		if (key->sources[i].next == job)
			key->sources[i].next = following_job(key, job);
	link_remove(&job->of_key);
	job->key = NULL;
	if (!link_alone(&key->jobs))
		return;
	map_remove(&keys->map, &key->node);
	pool_give(&keys->pool, key);
}

static bool accepts_event(const struct traced_event *event, const struct job *job)
{
	return event->role == XPT_EVENT_RUN || job->queue_seen || event->driver->pairing == XPT_PAIRING_UNIQUE;
}

/* Each job is passed over at most once, so the steps are no more than the jobs. */
struct job *job_key_next(struct job_key *key, const struct traced_event *event)
{
	struct job *first = job_key_first(key), **next = &first;
	unsigned int i;

	for (i = 0; i < key->source_count; i++)
		if (key->sources[i].event == event)
			next = &key->sources[i].next;
	while (*next && !accepts_event(event, *next))
		*next = following_job(key, *next);
	return *next;
}

void job_key_advance(struct job_key *key, const struct traced_event *event, struct job *job)
{
	unsigned int i = 0;

	while (i < key->source_count && key->sources[i].event != event)
		i++;
	if (i == JOB_SOURCES_MAX)
		return;
	key->source_count += i == key->source_count;
	key->sources[i].event = event;
	key->sources[i].next = following_job(key, job);
}

/* ---- open jobs with something in common ---- */

void job_groups_init(struct job_groups *groups)
{
	*groups = (struct job_groups){};
	pool_init(&groups->pool, sizeof(struct job_group));
}

void job_groups_free(struct job_groups *groups)
{
	map_free(&groups->map);
	pool_free(&groups->pool);
}

struct job_group *job_groups_find(const struct job_groups *groups, __u64 kind, __u64 value)
{
	struct map_node *node = map_find(&groups->map, kind, value);

	return node ? container_of(node, struct job_group, node) : NULL;
}

int job_groups_enter(struct job_groups *groups, __u64 kind, __u64 value, struct job_group **group, struct link *link)
{
	struct job_group *entered = job_groups_find(groups, kind, value);

	if (!entered) {
		entered = pool_take(&groups->pool);
		if (!entered)
			return -ENOMEM;
		if (map_add(&groups->map, &entered->node, kind, value)) {
			pool_give(&groups->pool, entered);
			return -ENOMEM;
		}
		link_init(&entered->jobs);
	}
	link_append(&entered->jobs, link);
	*group = entered;
	return 0;
}

void job_groups_leave(struct job_groups *groups, struct job_group **group, struct link *link)
{
	struct job_group *left = *group;

	if (!left)
		return;
	*group = NULL;
	link_remove(link);
	if (!link_alone(&left->jobs))
		return;
	map_remove(&groups->map, &left->node);
	pool_give(&groups->pool, left);
}
