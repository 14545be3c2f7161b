/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <cjson/cJSON.h>

#include "base/core/json.h"
#include "model_driver_records.h"

static int add(struct fixture *f, __u64 index, const char *text)
{
	return feed_text(f, XPT_RECORD_DRIVER, 0, 0, index, text);
}

static int add_event(struct fixture *f, __u64 index, const char *text)
{
	return feed_text(f, XPT_RECORD_DRIVER_EVENT, 0, 0, index, text);
}

#define DRIVER(more) "{\"name\":\"d\",\"pairing\":0,\"bits\":64" more "}"

Test(model_device_traced_drivers, damaged_drivers)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"{}",
		"{\"pairing\":0,\"bits\":64}",
		"{\"name\":\"\",\"pairing\":0,\"bits\":64}",
		"{\"name\":7,\"pairing\":0,\"bits\":64}",
		"{\"name\":\"d\",\"bits\":64}",
		"{\"name\":\"d\",\"pairing\":3,\"bits\":64}",
		"{\"name\":\"d\",\"pairing\":-1,\"bits\":64}",
		"{\"name\":\"d\",\"pairing\":1e99,\"bits\":64}",
		"{\"name\":\"d\",\"pairing\":0}",
		"{\"name\":\"d\",\"pairing\":0,\"bits\":48}",
		"{\"name\":\"d\",\"pairing\":0,\"bits\":0}",
		DRIVER(",\"joins\":7"),
		DRIVER(",\"joins\":[7]"),
		DRIVER(",\"joins\":[{\"driver\":1}]"),
		DRIVER(",\"joins\":[{\"driver\":64,\"bits\":64}]"),
		DRIVER(",\"joins\":[{\"driver\":-1,\"bits\":64}]"),
		DRIVER(",\"joins\":[{\"driver\":0,\"bits\":64}]"),
		DRIVER(",\"joins\":[{\"driver\":1,\"bits\":16}]"),
		DRIVER(",\"ioctls\":{}"),
		DRIVER(",\"ioctls\":[{\"number\":1}]"),
		DRIVER(",\"ioctls\":[{\"number\":65536,\"name\":\"A\"}]"),
		DRIVER(",\"ioctls\":[{\"number\":1,\"name\":\"A\",\"role\":99}]"),
		DRIVER(",\"ioctls\":[{\"number\":1,\"name\":\"A\"},{\"number\":2}]"),
		DRIVER(",\"nodes\":[{\"index\":256,\"path\":\"/dev/x\"}]"),
		DRIVER(",\"nodes\":[{\"index\":1}]"),
		DRIVER(",\"nodes\":7"),
	};
	struct fixture *f;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		f = fixture_toy();
		cr_assert_eq(add(f, 0, texts[i]), -EBADMSG, "%s", texts[i]);
		fixture_free(f);
	}
	f = fixture_toy();
	cr_assert_eq(add(f, XPT_DRIVER_MAX, DRIVER("")), -EBADMSG);
	cr_assert_eq(add(f, ~U(0), DRIVER("")), -EBADMSG);
	cr_assert_eq(add(f, XPT_DRIVER_MAX - 1, DRIVER("")), 0);
	fixture_free(f);
}

#define EVENT(role, key, fields) \
	"{\"driver\":0,\"event\":\"s:e\",\"role\":" role ",\"key\":" key ",\"fields\":[" fields "]}"
#define KEY "{\"meaning\":1,\"name\":\"a\",\"text\":false,\"signed\":false}"
#define TEXT_KEY "{\"meaning\":1,\"name\":\"a\",\"text\":true,\"signed\":false}"
#define NAME "{\"meaning\":6,\"name\":\"b\",\"text\":true,\"signed\":false}"

Test(model_device_traced_drivers, damaged_events)
{
	static const char *const texts[] = {
		"",
		"{}",
		"{\"driver\":1,\"event\":\"s:e\",\"role\":1,\"key\":1,\"fields\":[" KEY "]}",
		"{\"driver\":64,\"event\":\"s:e\",\"role\":1,\"key\":1,\"fields\":[" KEY "]}",
		"{\"driver\":0,\"role\":1,\"key\":1,\"fields\":[" KEY "]}",
		"{\"driver\":0,\"event\":\"s:e\",\"role\":1,\"fields\":[" KEY "]}",
		"{\"driver\":0,\"event\":\"s:e\",\"role\":1,\"key\":1,\"fields\":{}}",
		EVENT("0", "1", KEY),
		EVENT("9", "1", KEY),
		EVENT("10", "1", KEY),
		EVENT("1", "0", KEY),
		EVENT("2", "0", ""),
		EVENT("3", "0", NAME),
		EVENT("1", "2", KEY),
		EVENT("1", "1", ""),
		EVENT("1", "1", NAME),
		EVENT("1", "2", KEY "," NAME),
		EVENT("1", "1", TEXT_KEY),
		EVENT("1", "4", KEY "," KEY "," KEY "," KEY),
		EVENT("1", "1", KEY ",7"),
		EVENT("1", "1", KEY ",{\"meaning\":0}"),
		EVENT("1", "1", KEY ",{\"meaning\":17}"),
		EVENT("5", "0", NAME "," NAME "," NAME "," NAME "," NAME "," NAME "," NAME "," NAME "," NAME),
	};
	struct fixture *f = fixture_toy();
	size_t i;

	cr_assert_eq(add(f, 0, DRIVER("")), 0);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert_eq(add_event(f, 0, texts[i]), -EBADMSG, "%s", texts[i]);
	cr_assert_eq(add_event(f, XPT_EVENT_MAX, EVENT("1", "1", KEY)), -EBADMSG);
	cr_assert_eq(add_event(f, XPT_EVENT_MAX - 1, EVENT("1", "1", KEY)), 0);
	fixture_free(f);
}

Test(model_device_traced_drivers, reported_again)
{
	const char *text = DRIVER(",\"joins\":[{\"driver\":4,\"bits\":32}],\"ioctls\":[{\"number\":1,\"name\":\"A\"}]");
	struct fixture *f = fixture_toy();

	cr_assert_eq(add(f, 0, text), 0);
	cr_assert_eq(add(f, 0, text), 0);
	cr_assert_eq(add(f, 0, DRIVER("")), -EBADMSG, "without its joins and ioctls it is another one");
	cr_assert_eq(add(f, 0,
			 DRIVER(",\"joins\":[{\"driver\":4,\"bits\":64}],"
				"\"ioctls\":[{\"number\":1,\"name\":\"A\"}]")),
		     -EBADMSG);
	cr_assert_eq(add(f, 0,
			 DRIVER(",\"joins\":[{\"driver\":4,\"bits\":32}],"
				"\"ioctls\":[{\"number\":1,\"name\":\"B\"}]")),
		     -EBADMSG);
	cr_assert_eq(add_event(f, 0, EVENT("1", "1", KEY "," NAME)), 0);
	cr_assert_eq(add_event(f, 0, EVENT("1", "1", KEY "," NAME)), 0);
	cr_assert_eq(add_event(f, 0, EVENT("1", "1", KEY)), -EBADMSG, "records held back rely on the size");
	cr_assert_eq(add_event(f, 0, EVENT("2", "1", KEY "," NAME)), -EBADMSG);
	fixture_free(f);
}

static const char *node_of(const struct fixture *f, size_t nth)
{
	static char node[64];

	snprintf(node, sizeof(node), "%s", seen_nth(f, EVENT_IOCTL, nth)->event.ioctl.node);
	return node;
}

/* A device that comes while others are followed; records of the others may still be on their way. */
Test(model_device_traced_drivers, nodes_come_later)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(add(f, 0, DRIVER("")), 0);
	cr_assert_eq(feed_ioctl(f, 0, 7, 8, 1, 100, 110, 0), -EBADMSG);
	cr_assert_eq(add(f, 0, DRIVER(",\"nodes\":[{\"index\":0,\"path\":\"/dev/a\"}]")), 0);
	cr_assert_eq(feed_ioctl(f, 0, 7, 8, 1, 100, 110, 0), 0);
	cr_assert_eq(add(f, 0, DRIVER(",\"nodes\":[{\"index\":1,\"path\":\"/dev/b\"}]")), 0);
	cr_assert_eq(feed_ioctl(f, 0, 7, 8, 1, 200, 210, 0), 0);
	cr_assert_eq(feed_ioctl(f, 1, 7, 8, 1, 300, 310, 0), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(node_of(f, 0), "/dev/a");
	cr_assert_str_eq(node_of(f, 1), "/dev/a");
	cr_assert_str_eq(node_of(f, 2), "/dev/b");
	cr_assert_eq(add(f, 0, DRIVER(",\"nodes\":[{\"index\":1,\"path\":\"/dev/c\"}]")), 0);
	cr_assert_eq(feed_ioctl(f, 1, 7, 8, 1, 400, 410, 0), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(node_of(f, 3), "/dev/c");
	fixture_free(f);
}

static int add_to(struct traced_drivers *drivers, __u64 index, const char *text)
{
	cJSON *object;
	int error = json_parse(text, strlen(text), &object) ?: traced_drivers_add(drivers, index, object);

	cJSON_Delete(object);
	return error;
}

static struct job_key *find(struct job_keys *keys, const struct traced_drivers *drivers, unsigned int driver,
			    __u64 part)
{
	const struct traced_event event = { .driver = drivers->drivers[driver], .key = 1 };
	const struct driver_event_values values = { .event = &event, .key = { part } };

	return job_keys_find(keys, &values);
}

/* Also with a driver that is described after the key was seen. */
Test(model_device_traced_drivers, keys_of_joined_drivers)
{
	struct traced_drivers drivers = {};
	const char *join_4 = DRIVER(",\"joins\":[{\"driver\":4,\"bits\":32}]");
	const __u64 high = 1ull << 32;
	struct driver_event_values values = { .key = { high | 77 } };
	struct traced_event event = { .key = 1 };
	struct job_keys keys;
	struct job job = {};
	unsigned int i;

	job_keys_init(&keys, &drivers);
	for (i = 0; i < 3; i++)
		cr_assert_eq(add_to(&drivers, i, DRIVER("")), 0);
	cr_assert_eq(add_to(&drivers, 7, join_4), 0);
	cr_assert_eq(add_to(&drivers, 5, join_4), 0);
	event.driver = drivers.drivers[7];
	values.event = &event;
	link_init(&job.of_key);
	cr_assert_eq(job_keys_add(&keys, &values, &job), 0);
	cr_assert_eq(find(&keys, &drivers, 7, high | 77), job.key);
	cr_assert_null(find(&keys, &drivers, 7, 77));
	cr_assert_null(find(&keys, &drivers, 5, high | 77));
	cr_assert_eq(add_to(&drivers, 4, DRIVER("")), 0);
	cr_assert_null(find(&keys, &drivers, 5, high | 77), "they have nothing in common but another driver");
	cr_assert_null(find(&keys, &drivers, 0, high | 77));
	cr_assert_eq(find(&keys, &drivers, 4, high | 77), job.key);
	cr_assert_eq(find(&keys, &drivers, 4, 77), job.key);
	cr_assert_null(find(&keys, &drivers, 4, 78));
	cr_assert_eq(drivers.bits[5][7], 0);
	cr_assert_eq(drivers.bits[4][7], 32);
	cr_assert_eq(drivers.bits[7][4], 32);
	cr_assert_eq(drivers.bits[7][7], 64);
	job_keys_remove(&keys, &job);
	cr_assert_null(find(&keys, &drivers, 4, 77));
	job_keys_free(&keys);
	traced_drivers_free(&drivers);
}
