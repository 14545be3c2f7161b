/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver descriptions: the parser, those that are shipped, and how they are put together. */
#include "describe/driver/driver.h"

#include <stdlib.h>
#include <unistd.h>

#include "describe/reader/collection.h"
#include "describe_support.h"

#define HEAD "{\"schema\": 1, \"driver\": \"toy\", \"title\": \"Toy\",\n"
#define EVENT(more) HEAD "\"sets\": [{\"events\": [{\"event\": \"toy:job\"" more "}]}]}"
#define IOCTLS(text) HEAD "\"ioctls\": {" text "}}"
#define NUMBERS "\"numbers\": [{\"number\": \"0x6444\", \"name\": \"GO\", \"role\": \"submit\"}]"

static int parse_driver_bytes(const char *text, size_t length, struct said *said, struct driver **result)
{
	struct log log = { said_write, said, XPT_LOG_DEBUG };
	char *copy = malloc(length ? length : 1);
	int error;

	memset(said, 0, sizeof(*said));
	memcpy(copy, text, length);
	error = driver_parse(&log, "toy.json", copy, length, result);
	free(copy);
	return error;
}

static struct driver *parse_driver(const char *text)
{
	struct driver *driver;
	struct said said;
	int error = parse_driver_bytes(text, strlen(text), &said, &driver);

	cr_assert_eq(error, 0, "%s\ngave %d: %s", text, error, said.text);
	return driver;
}

static void expect_all_drivers_refused(const struct refused *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct driver *driver;
		struct said said;
		int error = parse_driver_bytes(cases[i].text, strlen(cases[i].text), &said, &driver);

		cr_expect_eq(error, -EINVAL, "%s\ngave %d", cases[i].text, error);
		cr_expect_null(driver);
		cr_expect_str_eq(said.text, cases[i].message, "%s\nsaid:   %s\nwanted: %s", cases[i].text, said.text,
				 cases[i].message);
		cr_expect_eq(said.count, 1);
		driver_free(driver);
	}
}
#define EXPECT_ALL_DRIVERS_REFUSED(cases) expect_all_drivers_refused(cases, sizeof(cases) / sizeof((cases)[0]))

static void expect_field(const struct driver_field *field, const char *name, int meaning, int types, bool optional)
{
	cr_expect_str_eq(field->name, name);
	cr_expect_eq(field->meaning, meaning, "%s: meaning %d", name, field->meaning);
	cr_expect_eq(field->types, types, "%s: types 0x%x", name, field->types);
	cr_expect_eq(field->optional, optional, "%s", name);
}

Test(describe_driver_driver, everything)
{
	struct driver *toy = parse_driver(
		HEAD "\"note\": \"for readers\", \"modules\": [\"toy\", \"toy_core\"],\n"
		     "\"sets\": [\n"
		     "{\"name\": \"new\", \"pairing\": \"order\", \"bits\": 32, \"joins\": [{\"driver\": \"a\"},\n"
		     "	{\"driver\": \"b_2\", \"bits\": 32}], \"events\": [\n"
		     "	{\"event\": \"toy:job_1\", \"role\": \"queue\", \"key\": [\"id:64\", \"ring:8|16\"],\n"
		     "	 \"fields\": {\"size\": \"bytes:32?\", \"name\": \"text:string|kernel_string?\"},\n"
		     "	 \"when\": {\"field\": \"step:string\", \"is\": \"started\"}, \"optional\": true},\n"
		     "	{\"event\": \"toy:hang\", \"role\": \"error\",\n"
		     "	 \"when\": {\"field\": \"code:32\", \"is_not\": -5}}]},\n"
		     "{\"name\": \"old\", \"events\": [{\"event\": \"toy:old\", \"role\": \"reset\"}]}],\n"
		     "\"ioctls\": {\"devices\": [\"/dev/toy*\"], \"bound\": \"toy-pci\", \"numbers\": [\n"
		     "	{\"number\": \"0x6444\", \"name\": \"GO\", \"role\": \"submit\"},\n"
		     "	{\"number\": \"0xfFfF\", \"name\": \"ASK\"}]}}\n");
	const struct driver_set *set = &toy->sets[0];

	cr_expect_str_eq(toy->name, "toy");
	cr_expect_str_eq(toy->file, "toy.json");
	cr_expect_eq(toy->module_count, 2);
	cr_expect_eq(toy->set_count, 2);
	cr_expect_str_eq(set->name, "new");
	cr_expect_eq(set->pairing, XPT_PAIRING_ORDER);
	cr_expect_eq(set->bits, 32);
	cr_expect_eq(set->join_count, 2);
	cr_expect_str_eq(set->joins[0].driver, "a");
	cr_expect_eq(set->joins[0].bits, 64);
	cr_expect_eq(set->joins[1].bits, 32);
	cr_expect_eq(set->joins[1].line, 5);
	cr_expect_eq(set->key_count, 2);
	cr_expect_eq(set->event_count, 2);
	cr_expect_str_eq(set->events[0].system, "toy");
	cr_expect_str_eq(set->events[0].name, "job_1");
	cr_expect_eq(set->events[0].role, XPT_EVENT_QUEUE);
	cr_expect(set->events[0].optional);
	cr_expect_eq(set->events[0].key_count, 2);
	cr_expect_eq(set->events[0].field_count, 4);
	expect_field(&set->events[0].fields[0], "id", XPT_FIELD_KEY, DRIVER_BITS_64, false);
	expect_field(&set->events[0].fields[1], "ring", XPT_FIELD_KEY, DRIVER_BITS_8 | DRIVER_BITS_16, false);
	expect_field(&set->events[0].fields[2], "bytes", XPT_FIELD_SIZE, DRIVER_BITS_32, true);
	expect_field(&set->events[0].fields[3], "text", XPT_FIELD_NAME, DRIVER_STRING | DRIVER_KERNEL_STRING, true);
	cr_expect_str_eq(set->events[0].condition.field.name, "step");
	cr_expect_str_eq(set->events[0].condition.text, "started");
	cr_expect_not(set->events[0].condition.differs);
	cr_expect_not(set->events[1].optional);
	cr_expect_eq(set->events[1].key_count, 0);
	cr_expect_null(set->events[1].condition.text);
	cr_expect_eq(set->events[1].condition.number, -5);
	cr_expect(set->events[1].condition.differs);
	cr_expect_eq(toy->sets[1].pairing, XPT_PAIRING_UNIQUE);
	cr_expect_eq(toy->sets[1].bits, 64);
	cr_expect_eq(toy->sets[1].key_count, 0);
	cr_expect_str_eq(toy->ioctls.devices[0], "/dev/toy*");
	cr_expect_str_eq(toy->ioctls.bound, "toy-pci");
	cr_expect_eq(toy->ioctls.number_count, 2);
	cr_expect_eq(toy->ioctls.numbers[0].number, 0x6444);
	cr_expect_eq(toy->ioctls.numbers[0].role, XPT_EVENT_SUBMIT);
	cr_expect_eq(toy->ioctls.numbers[1].number, 0xffff);
	cr_expect_eq(toy->ioctls.numbers[1].role, 0);
	driver_free(toy);
	driver_free(NULL);
}

Test(describe_driver_driver, mistakes)
{
	static const struct refused cases[] = {
		{ "{}", "toy.json:1: schema is missing" },
		{ "{\"schema\": 2}", "toy.json:1: schema: schema 2 is not known, only 1 is" },
		{ "{\"schema\": 1}", "toy.json:1: driver is missing" },
		{ "{\"schema\": 1, \"driver\": \"../toy\"}", "toy.json:1: driver: may only hold a to z, 0 to 9 and _" },
		{ "{\"schema\": 1, \"driver\": \"toy\"}", "toy.json:1: title is missing" },
		{ "{\"schema\": 1, \"driver\": \"toy\", \"title\": \"Toy\"}", "toy.json:1: must have sets or ioctls" },
		{ HEAD "\"modules\": [\"../x\"]}", "toy.json:2: modules[0]: is no module: only letters, digits and _" },
		{ HEAD "\"sets\": []}", "toy.json:2: sets: must be an array of 1 to 8 sets of events" },
		{ HEAD "\"sets\": [{}]}", "toy.json:2: sets[0]: events is missing" },
		{ HEAD "\"sets\": [{\"events\": []}]}",
		  "toy.json:2: sets[0].events: must be an array of 1 to 64 events" },
		{ HEAD "\"sets\": [{\"events\": [{}]}]}", "toy.json:2: sets[0].events[0]: event is missing" },
		{ HEAD "\"sets\": [{\"bits\": 16}]}", "toy.json:2: sets[0].bits: must be 32 or 64" },
		{ HEAD "\"sets\": [{\"pairing\": \"first\"}]}",
		  "toy.json:2: sets[0].pairing: unknown pairing 'first' (known: unique latest order)" },
		{ HEAD "\"sets\": [{\"pairing\": 1}]}", "toy.json:2: sets[0].pairing: must be a string" },
		{ HEAD "\"sets\": [{\"joins\": [{\"driver\": \"a\"}], \"events\": [{\"event\": \"a:b\", \"role\": "
		       "\"reset\"}]}]}",
		  "toy.json:2: sets[0].joins: no event has a key to join by" },
		{ HEAD "\"sets\": [{\"events\": [{\"event\": \"a:b\", \"role\": \"reset\"}]},\n{\"events\": []}]}",
		  "toy.json:2: sets[0]: name is missing: there are several sets" },
		{ HEAD "\"sets\": [{\"events\": [{\"event\": \"a:b\", \"role\": \"run\", \"key\": [\"a:8\"]},\n"
		       "{\"event\": \"a:b\", \"role\": \"run\", \"key\": [\"a:8\", \"b:8\"]}]}]}",
		  "toy.json:3: sets[0].events[1]: its key has 2 fields, that of events before 1" },
	};

	EXPECT_ALL_DRIVERS_REFUSED(cases);
}

#define AT "toy.json:2: sets[0].events[0]"

Test(describe_driver_driver, event_mistakes)
{
	static const char *const names[] = { "job", ":job", "toy:", "toy:a/../b", "../toy:job", "toy:job:x", "t y:job" };
	static const struct refused cases[] = {
		{ EVENT(""), AT ": role is missing" },
		{ EVENT(", \"role\": \"enter\""),
		  AT ".role: unknown role 'enter' (known: queue run done error reset memory submit wait)" },
		{ EVENT(", \"role\": \"done\""), AT ": an event of role done needs a key" },
		{ EVENT(", \"role\": \"done\", \"key\": []"), AT ".key: must be an array of fields, at least one" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a\"]"),
		  AT ".key[0]: must be a field's name, a colon and its type, such as \"name:64\"" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:12\"]"),
		  AT ".key[0]: unknown type '12' (known: 8 16 32 64 string kernel_string)" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:8|\"]"),
		  AT ".key[0]: unknown type '' (known: 8 16 32 64 string kernel_string)" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:8:16\"]"),
		  AT ".key[0]: has two colons: other types follow '|'" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:8??\"]"), AT ".key[0]: ends with '?' after its types" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:8?\"]"),
		  AT ".key[0]: a key is made of numbers that are always there" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:string\"]"),
		  AT ".key[0]: a key is made of numbers that are always there" },
		{ EVENT(", \"role\": \"done\", \"key\": [\"a:8\", \"b:8\", \"c:8\", \"d:8\"]"),
		  AT ".key[3]: more than 3 fields in a key" },
		{ EVENT(", \"role\": \"reset\", \"fields\": {\"key\": \"a:8\"}"),
		  AT ".fields.key: unknown meaning (known: device engine context client name size address count depth "
		     "status value timeline)" },
		{ EVENT(", \"role\": \"reset\", \"fields\": {\"size\": \"a:8\", \"size\": \"b:8\"}"),
		  AT ".fields.size: is there twice" },
		{ EVENT(", \"role\": \"reset\", \"fields\": {\"size\": 8}"),
		  AT ".fields.size: must be a string such as \"name:64\"" },
		{ EVENT(", \"role\": \"run\", \"key\": [\"a:8\", \"b:8\"], \"fields\": {\"size\": \"c:8\", \"name\": "
			"\"d:8\", \"count\": \"e:8\", \"depth\": \"f:8\", \"value\": \"g:8\", \"status\": \"h:8\", "
			"\"client\": \"i:8\"}"),
		  AT ".fields.client: more than 8 values in an event" },
		{ EVENT(", \"role\": \"reset\", \"when\": {\"field\": \"a:8\"}"),
		  AT ".when: must have field, and one of is and is_not" },
		{ EVENT(", \"role\": \"reset\", \"when\": {\"field\": \"a:8\", \"is\": 1, \"is_not\": 2}"),
		  AT ".when: must have field, and one of is and is_not" },
		{ EVENT(", \"role\": \"reset\", \"when\": {\"field\": \"a:8\", \"is\": \"x\"}"),
		  AT ".when.is: must be a number, as the field is" },
		{ EVENT(", \"role\": \"reset\", \"when\": {\"field\": \"a:string\", \"is_not\": 1}"),
		  AT ".when.is_not: must be a string, as the field is" },
		{ EVENT(", \"role\": \"reset\", \"when\": {\"field\": \"a:8?\", \"is\": 1}"),
		  AT ".when.field: must always be there" },
		{ EVENT(", \"role\": \"reset\", \"when\": {\"field\": \"a:string\", \"is\": "
			"\"12345678901234567890123456789012\"}"),
		  AT ".when.is: is longer than 31 bytes" },
	};

	EXPECT_ALL_DRIVERS_REFUSED(cases);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[256];
		struct refused one = { text, AT ".event: must be SYSTEM:NAME of a tracepoint" };

		snprintf(text, sizeof(text), HEAD "\"sets\": [{\"events\": [{\"event\": \"%s\"}]}]}", names[i]);
		expect_all_drivers_refused(&one, 1);
	}
}

Test(describe_driver_driver, ioctl_mistakes)
{
	static const char *const numbers[] = { "6444", "0x", "0x12345", "0x-1", "0x+1", "0x 1", "0xg", "0x0x1", "0X12" };
	static const struct refused cases[] = {
		{ IOCTLS(""), "toy.json:2: ioctls: must have devices and numbers" },
		{ IOCTLS("\"devices\": [], " NUMBERS),
		  "toy.json:2: ioctls.devices: must name at least one device node" },
		{ IOCTLS("\"devices\": [\"/dev/a\", \"/etc/b\"], " NUMBERS),
		  "toy.json:2: ioctls.devices[1]: must begin with /dev/" },
		{ IOCTLS("\"devices\": [\"/dev/a\"], \"numbers\": []"),
		  "toy.json:2: ioctls.numbers: must be an array of 1 to 64 ioctls" },
		{ IOCTLS("\"devices\": [\"/dev/a\"], \"numbers\": [{\"name\": \"GO\"}]"),
		  "toy.json:2: ioctls.numbers[0]: number is missing" },
		{ IOCTLS("\"devices\": [\"/dev/a\"], \"numbers\": [{\"number\": \"0x1\"}]"),
		  "toy.json:2: ioctls.numbers[0]: name is missing" },
		{ IOCTLS("\"devices\": [\"/dev/a\"], \"numbers\": [{\"number\": \"0x1\", \"name\": \"GO\", \"role\": "
			 "\"queue\"}]"),
		  "toy.json:2: ioctls.numbers[0].role: unknown role 'queue' (known: reset memory submit wait)" },
		{ IOCTLS("\"devices\": [\"/dev/a\"], \"numbers\": [{\"number\": \"0x1\", \"name\": \"GO\"},\n"
			 "{\"number\": \"0x01\", \"name\": \"GO\"}]"),
		  "toy.json:3: ioctls.numbers[1]: number 0x1 is there twice" },
	};

	EXPECT_ALL_DRIVERS_REFUSED(cases);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char text[256];
		struct refused one = { text, "toy.json:2: ioctls.numbers[0].number: must be a string of 0x and up to 4 "
					     "hexadecimal digits" };

		snprintf(text, sizeof(text),
			 IOCTLS("\"devices\": [\"/dev/a\"], \"numbers\": [{\"number\": \"%s\", \"name\": \"GO\"}]"),
			 numbers[i]);
		expect_all_drivers_refused(&one, 1);
	}
}

/* Every part of a description, cut off anywhere, is refused with one message. */
Test(describe_driver_driver, cut_off)
{
	for (size_t i = 0; i < builtin_driver_count; i++) {
		for (size_t length = 0; length + 2 < builtin_drivers[i].length; length += 7) {
			struct driver *driver;
			struct said said;

			cr_expect_eq(parse_driver_bytes(builtin_drivers[i].text, length, &said, &driver), -EINVAL);
			cr_expect_eq(said.count, 1);
		}
	}
}

static struct drivers *shipped(void)
{
	struct drivers *drivers;

	cr_assert_eq(drivers_create(NULL, NULL, 0, &drivers), 0);
	return drivers;
}

Test(describe_driver_driver, all_are_there)
{
	static const char *const names[] = {
		"gpu_scheduler", "dma_fence", "amdgpu", "i915",	  "xe",	    "virtio_gpu",
		"habanalabs",	 "amdxdna",   "ivpu",	"neuron", "nvidia", "qaic",
	};
	struct drivers *drivers = shipped();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_not_null(drivers_find(drivers, names[i]), "%s", names[i]);
	cr_expect_eq(drivers->count, sizeof(names) / sizeof(names[0]));
	cr_expect_eq(builtin_driver_count, drivers->count);
	cr_expect_null(drivers_find(drivers, "toy"));
	for (size_t i = 0; i < drivers->count; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s.json", drivers->items[i]->name);
		cr_expect_str_eq(drivers->items[i]->file, name);
	}
	drivers_free(drivers);
}

/* dma_fence has the scheduler's key only where the scheduler has it: not before 6.17. */
Test(describe_driver_driver, joins)
{
	struct drivers *drivers = shipped();
	const struct driver *scheduler = drivers_find(drivers, "gpu_scheduler");
	const struct driver *fence = drivers_find(drivers, "dma_fence"), *amdgpu = drivers_find(drivers, "amdgpu");

	cr_expect_eq(fence->sets[0].joins[0].bits, 32);
	cr_expect(driver_joins(&fence->sets[0], &fence->sets[0].joins[0], scheduler, &scheduler->sets[0]));
	cr_expect_not(driver_joins(&fence->sets[0], &fence->sets[0].joins[0], scheduler, &scheduler->sets[1]));
	cr_expect_not(driver_joins(&fence->sets[0], &fence->sets[0].joins[0], amdgpu, &amdgpu->sets[0]));
	cr_expect_eq(amdgpu->sets[0].joins[0].bits, 64);
	cr_expect(driver_joins(&amdgpu->sets[0], &amdgpu->sets[0].joins[0], scheduler, &scheduler->sets[0]));
	drivers_free(drivers);
}

/* type << 8 | number, as <drm/qaic_accel.h> makes them: 'd', DRM_COMMAND_BASE of 0x40. */
Test(describe_driver_driver, qaic_numbers)
{
	struct drivers *drivers = shipped();
	const struct driver_ioctls *ioctls = &drivers_find(drivers, "qaic")->ioctls;
	size_t submits = 0, waits = 0;

	for (size_t i = 0; i < ioctls->number_count; i++) {
		const struct driver_ioctl *number = &ioctls->numbers[i];

		cr_expect_eq(number->number >> 8, 'd');
		submits += number->role == XPT_EVENT_SUBMIT;
		waits += number->role == XPT_EVENT_WAIT;
		if (strcmp(number->name, "EXECUTE_BO") == 0)
			cr_expect_eq(number->number, 'd' << 8 | (0x40 + 4));
		if (strcmp(number->name, "WAIT_BO") == 0)
			cr_expect_eq(number->number, 'd' << 8 | (0x40 + 6));
	}
	cr_expect_eq(submits, 2);
	cr_expect_eq(waits, 1);
	drivers_free(drivers);
}

static int create_with(const char *text, unsigned int times, struct said *said, struct drivers **drivers)
{
	struct log log = { said_write, said, XPT_LOG_WARN };
	char path[] = "/tmp/xputrace-test-XXXXXX";
	const char *const files[] = { path, path };
	int descriptor = mkstemp(path), error;

	memset(said, 0, sizeof(*said));
	cr_assert_geq(descriptor, 0);
	cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
	close(descriptor);
	error = drivers_create(&log, files, times, drivers);
	unlink(path);
	return error;
}

Test(describe_driver_driver, files)
{
	const char *missing = "/nonexistent.json";
	struct drivers *drivers;
	struct said said;

	cr_assert_eq(create_with(EVENT(", \"role\": \"reset\""), 1, &said, &drivers), 0);
	cr_expect_eq(drivers->count, builtin_driver_count + 1);
	cr_expect_str_eq(drivers_find(drivers, "toy")->sets[0].events[0].name, "job");
	drivers_free(drivers);

	cr_expect_eq(create_with(EVENT(", \"role\": \"reset\""), 2, &said, &drivers), -EINVAL);
	cr_expect(strstr(said.text, "driver: 'toy' is already described by"), "%s", said.text);
	cr_expect_null(drivers);

	/* The others still join it: a driver that is replaced keeps its name. */
	cr_assert_eq(create_with("{\"schema\": 1, \"driver\": \"dma_fence\", \"title\": \"Mine\", \"sets\": [{\"events\": "
				 "[{\"event\": \"a:b\", \"role\": \"reset\"}]}]}",
				 1, &said, &drivers),
		     0);
	cr_expect_eq(drivers->count, builtin_driver_count);
	cr_expect_str_eq(drivers_find(drivers, "dma_fence")->title, "Mine");
	drivers_free(drivers);

	cr_expect_eq(create_with(HEAD
				 "\"sets\": [{\"joins\":\n[{\"driver\": \"nobody\"}], \"events\": [{\"event\": \"a:b\", "
				 "\"role\": \"run\", \"key\": [\"a:8\"]}]}]}",
				 1, &said, &drivers),
		     -EINVAL);
	cr_expect(strstr(said.text, ":3: sets[0].joins[0].driver: no such driver: 'nobody'"), "%s", said.text);
	cr_expect_eq(drivers_create(NULL, &missing, 1, &drivers), -ENOENT);
	cr_expect_null(drivers);
}

Test(describe_driver_driver, names)
{
	for (int role = XPT_EVENT_QUEUE; role <= XPT_EVENT_WAIT; role++)
		cr_expect_eq(driver_role_from_name(driver_role_name(role)), role);
	for (int meaning = XPT_FIELD_DEVICE; meaning <= XPT_FIELD_VALUE; meaning++)
		cr_expect_eq(driver_meaning_from_name(driver_meaning_name(meaning)), meaning);
	cr_expect_eq(driver_role_from_name("leave"), -ENOENT);
	cr_expect_eq(driver_meaning_from_name("key"), -ENOENT);
	cr_expect_str_eq(driver_role_name(0), "unknown");
	cr_expect_str_eq(driver_role_name(99), "unknown");
	cr_expect_str_eq(driver_meaning_name(99), "unknown");
}
