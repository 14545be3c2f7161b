/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <errno.h>

void job_keys_init(struct job_keys *keys, const struct traced_drivers *drivers)
{
	*keys = (struct job_keys){ .drivers = drivers };
	link_init(&keys->all);
	pool_init(&keys->pool, sizeof(struct job_key));
}

void job_keys_free(struct job_keys *keys)
{
	map_free(&keys->map);
	pool_free(&keys->pool);
}

/* The same for all keys that may be equal: by family, and by the parts that every comparison in the family uses. */
static __u64 family_place(const struct traced_driver *driver, unsigned int parts)
{
	return (__u64)driver->family << 8 | parts;
}

static __u64 parts_place(const struct traced_driver *driver, unsigned int parts, const __u64 *part)
{
	const __u64 mask = driver->narrow ? 0xffffffff : ~(__u64)0;
	__u64 place = 0;
	unsigned int i;

	for (i = 0; i < parts; i++) {
		place = (place ^ (part[i] & mask)) * 0x9e3779b97f4a7c15ULL;
		place ^= place >> 29;
	}
	return place;
}

static int key_place(struct job_keys *keys, struct job_key *key)
{
	return map_add(&keys->map, &key->node, family_place(key->driver, key->parts),
		       parts_place(key->driver, key->parts, key->part));
}

/* Drivers that can meet now could not before. Oldest first, so that the newest of equal ones is still found first. */
static void keys_replace(struct job_keys *keys)
{
	struct link *link, *following;
	struct job_key *key;

	link_each(link, following, &keys->all)
	{
		key = container_of(link, struct job_key, link);
		map_remove(&keys->map, &key->node);
		key_place(keys, key); /* there are buckets: it cannot fail */
	}
	keys->families = keys->drivers->families;
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
	const struct traced_driver *driver = values->event->driver;
	const unsigned int parts = values->event->key;
	struct map_node *node;

	if (keys->families != keys->drivers->families)
		keys_replace(keys);
	node = map_find(&keys->map, family_place(driver, parts), parts_place(driver, parts, values->key));
	for (; node; node = map_next(node))
		if (key_equals(keys, container_of(node, struct job_key, node), values))
			return container_of(node, struct job_key, node);
	return NULL;
}

static struct job_key *key_create(struct job_keys *keys, const struct driver_event_values *values)
{
	struct job_key *key = pool_take(&keys->pool);
	unsigned int i;

	if (!key)
		return NULL;
	link_init(&key->jobs);
	key->driver = values->event->driver;
	key->parts = values->event->key;
	for (i = 0; i < key->parts; i++)
		key->part[i] = values->key[i];
	if (key_place(keys, key)) {
		pool_give(&keys->pool, key);
		return NULL;
	}
	link_append(&keys->all, &key->link);
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
	link_remove(&key->link);
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
