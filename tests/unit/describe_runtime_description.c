/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe_support.h"

#define CALLS "\"calls\": [{\"symbol\": \"toy_run\", \"role\": \"execute\", \"fetch\": {\"program\": \"arg0\"}}]}"
#define HEAD "{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"toy_run\"],\n"

Test(describe_runtime_description, everything)
{
	const struct xpt_spec *spec;
	struct description *toy = parse(
		"{\n"
		"\"schema\": 1,\n"
		"\"runtime\": \"toy_2\",\n"
		"\"title\": \"Toy \\u00e9 \\\"2\\\"\",\n"
		"\"note\": [\"For\", \"readers\"],\n"
		"\"libraries\": [\"libtoy.so*\", \"toy*.node\"],\n"
		"\"identify\": [\"toy_a\", \"toy_b\"],\n"
		"\"over\": [\"nrt\", \"toy_2\"],\n"
		"\"table\": {\"accessor\": \"toy_api\", \"through\": [3, 4095],\n"
		"	\"slots_offset\": 40, \"size_offset\": 8, \"note\": \"\"},\n"
		"\"operators\": {\"base\": \"toy::Kernel\", \"note\": \"\", \"methods\": [\n"
		"	{\"name\": \"Run\", \"slot\": 2, \"object\": \"arg3\"},\n"
		"	{\"slot\": 255, \"name\": \"Later\", \"object\": {\"x86_64\": \"arg1\", \"aarch64\": \"arg1\"}}]},\n"
		"\"statuses\": {},\n" CALLS);

	cr_expect_str_eq(toy->name, "toy_2");
	cr_expect_str_eq(toy->title, "Toy \xc3\xa9 \"2\"");
	cr_expect_str_eq(toy->file, "toy.json");
	cr_expect_eq(toy->library_count, 2);
	cr_expect_str_eq(toy->libraries[1], "toy*.node");
	cr_expect_eq(toy->identify_count, 2);
	cr_expect_str_eq(toy->identify[0], "toy_a");
	cr_expect_eq(toy->over_count, 2);
	cr_expect_str_eq(toy->over[0], "nrt");
	cr_expect_eq(toy->over_line, 8);
	cr_expect_str_eq(toy->table.accessor, "toy_api");
	cr_expect_eq(toy->table.through_count, 2);
	cr_expect_eq(toy->table.through[0], 3);
	cr_expect_eq(toy->table.through[1], 4095);
	cr_expect_eq(toy->table.slots_offset, 40);
	cr_expect_eq(toy->table.size_offset, 8);
	cr_expect_str_eq(toy->operators.base, "toy::Kernel");
	cr_assert_eq(toy->operators.method_count, 2);
	cr_expect_str_eq(toy->operators.methods[0].call.function, "Run");
	cr_expect_eq(toy->operators.methods[0].slot, 2);
	spec = &toy->operators.methods[0].call.wire;
	cr_expect_eq(spec->role, XPT_ROLE_OPERATOR);
	cr_assert_eq(spec->fetches, 4);
	cr_expect_eq(spec->fetch[0].meaning, XPT_MEANING_OBJECT);
	cr_expect_eq(spec->fetch[0].source, 3);
	cr_expect_eq(spec->fetch[1].meaning, XPT_MEANING_CLASS);
	cr_expect_eq(spec->fetch[1].source, 3);
	cr_expect_eq(spec->fetch[1].derefs, 1);
	cr_expect_eq(spec->fetch[2].source, XPT_SOURCE_PROGRAM);
	cr_expect_eq(spec->fetch[3].source, XPT_SOURCE_INFERENCE);
	cr_expect_eq(toy->operators.methods[1].call.wire.fetch[0].source, 1);
	cr_expect_str_eq(toy->operators.methods[1].call.function, "Later");
	cr_expect_eq(toy->operators.methods[1].slot, 255);
	cr_expect_eq(toy->status_count, 0);
	cr_expect_eq(toy->call_count, 1);
	description_free(toy);
}

Test(describe_runtime_description, least)
{
	struct description *toy = parse(HEAD CALLS);

	cr_expect_eq(toy->library_count, 0);
	cr_expect_eq(toy->over_count, 0);
	cr_expect_null(toy->table.accessor);
	cr_expect_null(toy->operators.base);
	cr_expect_eq(toy->status_count, 0);
	description_free(toy);

	toy = parse(
		"{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"table\": {\"accessor\": \"a\"}, " CALLS);
	cr_expect_eq(toy->identify_count, 0);
	cr_expect_eq(toy->table.through_count, 0);
	cr_expect_eq(toy->table.slots_offset, 0);
	cr_expect_eq(toy->table.size_offset, -1);
	description_free(toy);
	description_free(NULL);
}

Test(describe_runtime_description, mistakes)
{
	static const struct refused cases[] = {
		{ "{}", "toy.json:1: schema is missing" },
		{ "{\"schema\": 1}", "toy.json:1: runtime is missing" },
		{ "{\"schema\": 1, \"runtime\": \"toy\"}", "toy.json:1: title is missing" },
		{ "{\"schema\": 1,\n\"runtime\": \"Toy\"}", "toy.json:2: runtime: may only hold a to z, 0 to 9 and _" },
		{ "{\"schema\": 1,\n\"runtime\": \"toy toy\"}",
		  "toy.json:2: runtime: may only hold a to z, 0 to 9 and _" },
		{ "{\"schema\": 1,\n\"runtime\": \"abcdefghijklmnopqrstuvwxyz012345\"}",
		  "toy.json:2: runtime: is longer than 31 bytes" },
		{ "{\n\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\",\n\"calls\": [{\"symbol\": \"a\", \"role\": \"copy\"}]}",
		  "toy.json:1: a runtime without a table, probes or calls with a file needs identify, symbols that identify its library" },
		{ "{\n\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\",\n\"identify\": [],\n\"calls\": [{\"symbol\": \"a\", \"role\": \"copy\"}]}",
		  "toy.json:3: identify: a runtime without a table, probes or calls with a file needs identify, symbols that identify its library" },
		{ "{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"a\",\n\"toy_*\"]}",
		  "toy.json:2: identify[1]: must be one symbol, not a pattern" },
		{ "{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"a@V_1\"]}",
		  "toy.json:1: identify[0]: give the symbol without its version" },
		{ HEAD "\"over\": \"nrt\"}", "toy.json:2: over: must be an array of strings" },
		{ HEAD "\"statuses\": []}", "toy.json:2: statuses: must be an object" },
		{ HEAD "\"statuses\": {}}", "toy.json:1: calls is missing" },
		{ HEAD "\"calls\": [{\"probe\": \"a\", \"role\": \"copy\", \"entry_only\": true}]}",
		  "toy.json:2: calls[0].probe: must be \"PROVIDER:NAME\"" },
		{ HEAD "\"calls\": [{\"probe\": \"a:b:c\", \"role\": \"copy\", \"entry_only\": true}]}",
		  "toy.json:2: calls[0].probe: must be \"PROVIDER:NAME\"" },
		{ HEAD "\"calls\": [{\"probe\": \":b\", \"role\": \"copy\", \"entry_only\": true}]}",
		  "toy.json:2: calls[0].probe: must be \"PROVIDER:NAME\"" },
		{ HEAD "\"calls\": [{\"probe\": \"a:b*\", \"role\": \"copy\", \"entry_only\": true}]}",
		  "toy.json:2: calls[0].probe: must be one symbol, not a pattern" },
		{ HEAD "\"calls\": [{\"probe\": \"a:b\", \"file\": \"x\", \"role\": \"copy\", \"entry_only\": true}]}",
		  "toy.json:2: calls[0].file: is for functions that are found by their symbols, or by what they refer to" },
		{ HEAD "\"calls\": [{\"symbol\": \"b\", \"file\": \"\", \"role\": \"region\"}]}",
		  "toy.json:2: calls[0].file: must not be empty" },
		{ HEAD "\"calls\": [{\"symbol\": \"b\", \"role\": \"region\", \"fetch\": {\"size\": \"arg0\"}}]}",
		  "toy.json:2: calls[0].fetch: role region takes no fetch" },
		{ HEAD "\"calls\": [{\"probe\": \"a:b\", \"role\": \"copy\"}]}",
		  "toy.json:2: calls[0].probe: is a place, not a function that returns: the call must be entry_only" },
		{ HEAD "\"calls\": [{\"probe\": \"a:b\", \"symbol\": \"c\", \"role\": \"copy\"}]}",
		  "toy.json:2: calls[0]: must have one of symbol, symbols, slot, probe, refers_to, callback_of and method_of" },
		{ HEAD "\"calls\": {}}", "toy.json:2: calls: must be an array of 1 to 4096 calls" },
		{ HEAD "\"calls\": []}", "toy.json:2: calls: must be an array of 1 to 4096 calls" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_description, table_mistakes)
{
	static const struct refused cases[] = {
		{ HEAD "\"table\": \"toy_api\"}", "toy.json:2: table: must be an object" },
		{ HEAD "\"table\": {\"through\": [0]}}", "toy.json:2: table: accessor is missing" },
		{ HEAD "\"table\": {\"accessor\": \"toy api\"}}",
		  "toy.json:2: table.accessor: is no symbol: only printable ASCII without blanks" },
		{ HEAD "\"table\": {\"accessor\": \"a\", \"through\": 0}}",
		  "toy.json:2: table.through: must be an array of slots" },
		{ HEAD "\"table\": {\"accessor\": \"a\", \"through\": [0, 1,\n2]}}",
		  "toy.json:3: table.through[2]: more than 2 accessors on the way" },
		{ HEAD "\"table\": {\"accessor\": \"a\", \"through\": [0, \"1\"]}}",
		  "toy.json:2: table.through[1]: must be a number" },
		{ HEAD "\"table\": {\"accessor\": \"a\", \"slots_offset\": -8}}",
		  "toy.json:2: table.slots_offset: is out of range (0 to 4096)" },
		{ HEAD "\"table\": {\"accessor\": \"a\", \"size_offset\": -2}}",
		  "toy.json:2: table.size_offset: is out of range (-1 to 4096)" },
	};

	EXPECT_ALL_REFUSED(cases);
}

/* Operators without objects, and nothing else: each function is a class of its own. */
Test(describe_runtime_description, operators_by_symbol)
{
	static const char text[] = HEAD "\"operators\": {\"note\": \"\", \"functions\": ["
					"{\"name\": \"call\", \"symbols\": [\"_ZN3toy*4callE*\", \"toy_call\"]}, "
					"{\"symbols\": [\"toy_op_?\"], \"name\": \"op\"}]}}";
	struct description *toy = parse(text);
	const struct method_spec *methods = toy->operators.methods;

	cr_expect_null(toy->operators.base);
	cr_expect_eq(toy->call_count, 0);
	cr_assert_eq(toy->operators.method_count, 2);
	cr_expect_eq(methods[0].call.locate, LOCATE_OPERATORS);
	cr_expect_str_eq(methods[0].call.function, "call");
	cr_assert_eq(methods[0].call.symbol_count, 2);
	cr_expect_str_eq(methods[0].call.symbols[1], "toy_call");
	cr_expect_eq(methods[1].slot, 1);
	cr_expect_str_eq(methods[1].call.symbols[0], "toy_op_?");
	for (size_t i = 0; i < 2; i++) {
		const struct xpt_spec *spec = &methods[i].call.wire;

		cr_expect_eq(spec->role, XPT_ROLE_OPERATOR);
		cr_assert_eq(spec->fetches, 4);
		cr_expect_eq(spec->fetch[0].meaning, XPT_MEANING_OBJECT);
		cr_expect_eq(spec->fetch[0].source, XPT_SOURCE_SITE);
		cr_expect_eq(spec->fetch[1].meaning, XPT_MEANING_CLASS);
		cr_expect_eq(spec->fetch[1].source, XPT_SOURCE_SITE);
		cr_expect_eq(spec->fetch[2].source, XPT_SOURCE_PROGRAM);
		cr_expect_eq(spec->fetch[3].source, XPT_SOURCE_INFERENCE);
	}
	description_free(toy);
}

Test(describe_runtime_description, operators_mistakes)
{
	static const struct refused cases[] = {
		{ HEAD "\"operators\": []}", "toy.json:2: operators: must be an object" },
		{ HEAD "\"operators\": {\"methods\": []}}", "toy.json:2: operators: base is missing" },
		{ HEAD "\"operators\": {\"functions\": []}}",
		  "toy.json:2: operators.functions: must be an array of 1 to 8 functions" },
		{ HEAD "\"operators\": {\"functions\": 1, \"base\": \"a\"}}",
		  "toy.json:2: operators.base: functions are no members of classes with objects" },
		{ HEAD "\"operators\": {\"functions\": [{\"name\": \"a\"}]}}",
		  "toy.json:2: operators.functions[0]: symbols is missing" },
		{ HEAD "\"operators\": {\"functions\": [{\"symbols\": [\"a\"]}]}}",
		  "toy.json:2: operators.functions[0]: name is missing" },
		{ HEAD "\"operators\": {\"functions\": [{\"name\": \"a\", \"symbols\": []}]}}",
		  "toy.json:2: operators.functions[0].symbols: must be an array of 1 to 64 symbols" },
		{ HEAD "\"operators\": {\"functions\": [{\"name\": \"a\", \"symbols\": [\"b\", \"c@V\"]}]}}",
		  "toy.json:2: operators.functions[0].symbols[1]: give the symbol without its version" },
		{ HEAD "\"operators\": {\"base\": \"a\"}}", "toy.json:2: operators: methods is missing" },
		{ HEAD "\"operators\": {\"base\": \"a\", \"methods\": []}}",
		  "toy.json:2: operators.methods: must be an array of 1 to 8 methods" },
		{ HEAD "\"operators\": {\"base\": \"a\", \"methods\": [{\"name\": \"b\"}]}}",
		  "toy.json:2: operators.methods[0]: slot is missing" },
		{ HEAD "\"operators\": {\"base\": \"a\", \"methods\": [{\"name\": \"b\", \"slot\": 1}]}}",
		  "toy.json:2: operators.methods[0]: object is missing" },
		{ HEAD
		  "\"operators\": {\"base\": \"a\", \"methods\": [{\"name\": \"b\", \"slot\": 1, \"object\": \"arg0[8]\"}]}}",
		  "toy.json:2: operators.methods[0].object: must be one of the first 6 arguments as it is, such as \"arg0\"" },
		{ HEAD
		  "\"operators\": {\"base\": \"a\", \"methods\": [{\"name\": \"b\", \"slot\": 256, \"object\": \"arg0\"}]}}",
		  "toy.json:2: operators.methods[0].slot: is out of range (0 to 255)" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_description, statuses)
{
	struct description *toy = parse(HEAD
					"\"statuses\": {\"600\": {\"name\": \"NOT_READY\", \"class\": \"pending\"},"
					"\"0\": {\"name\": \"GOOD\"}, \"-1\": {\"name\": \"BAD\"},"
					"\"0x70000001\": {\"name\": \"LOST\", \"class\": \"error\"},"
					"\"1\": {\"name\": \"BREAK\", \"class\": \"ok\"},"
					"\"0xfffffffe\": {\"name\": \"WORSE\"}},\n" CALLS);
	static const struct {
		__s64 value;
		enum status_class class;
		const char *name;
	} cases[] = {
		{ 0, STATUS_OK, "GOOD" },    { 1, STATUS_OK, "BREAK" },	    { 600, STATUS_PENDING, "NOT_READY" },
		{ -1, STATUS_ERROR, "BAD" }, { -2, STATUS_ERROR, "WORSE" }, { 1879048193, STATUS_ERROR, "LOST" },
		{ 2, STATUS_ERROR, NULL },   { -3, STATUS_ERROR, NULL },    { 0x7ffffffffffffff0, STATUS_ERROR, NULL },
	};

	cr_expect_eq(toy->status_count, 6);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name = "untouched";

		cr_expect_eq(description_status(toy, cases[i].value, &name), cases[i].class, "case %zu", i);
		if (cases[i].name)
			cr_expect_str_eq(name, cases[i].name, "case %zu: %s", i, name);
		else
			cr_expect_null(name, "case %zu: %s", i, name);
	}
	description_free(toy);
}

Test(describe_runtime_description, statuses_that_are_not_described)
{
	struct description *toy = parse(HEAD CALLS);
	const char *name;

	cr_expect_eq(description_status(toy, 0, &name), STATUS_OK);
	cr_expect_null(name);
	cr_expect_eq(description_status(toy, 1, &name), STATUS_ERROR);
	cr_expect_null(name);
	description_free(toy);
}

Test(describe_runtime_description, status_mistakes)
{
	static const struct refused cases[] = {
		{ HEAD "\"statuses\": {\"1\": \"BAD\"}}", "toy.json:2: statuses.1: must be an object" },
		{ HEAD "\"statuses\": {\"1\": {}}}", "toy.json:2: statuses.1: name is missing" },
		{ HEAD "\"statuses\": {\"1\": {\"name\": \"\"}}}", "toy.json:2: statuses.1.name: must not be empty" },
		{ HEAD "\"statuses\": {\"1\": {\"name\": \"A\", \"class\": \"warning\"}}}",
		  "toy.json:2: statuses.1.class: unknown class 'warning' (known: ok pending error)" },
		{ HEAD "\"statuses\": {\"1\": {\"name\": \"A\", \"class\": 0}}}",
		  "toy.json:2: statuses.1.class: must be a string" },
		{ HEAD "\"statuses\": {\"0\": {\"name\": \"A\", \"class\": \"error\"}}}",
		  "toy.json:2: statuses.0.class: status 0 is always ok" },
		{ HEAD "\"statuses\": {\"BAD\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.BAD: a status is a number in quotes, decimal or with 0x" },
		{ HEAD "\"statuses\": {\"\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.: a status is a number in quotes, decimal or with 0x" },
		{ HEAD "\"statuses\": {\" 1\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses. 1: a status is a number in quotes, decimal or with 0x" },
		{ HEAD "\"statuses\": {\"1.5\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.1.5: a status is a number in quotes, decimal or with 0x" },
		{ HEAD "\"statuses\": {\"0x\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.0x: a status is a number in quotes, decimal or with 0x" },
		{ HEAD "\"statuses\": {\"2147483648\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.2147483648: a status has 32 bits" },
		{ HEAD "\"statuses\": {\"0x100000000\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.0x100000000: a status has 32 bits" },
		{ HEAD "\"statuses\": {\"99999999999999999999\": {\"name\": \"A\"}}}",
		  "toy.json:2: statuses.99999999999999999999: a status has 32 bits" },
		{ HEAD "\"statuses\": {\"-1\": {\"name\": \"A\"},\n\"0xffffffff\": {\"name\": \"B\"}}}",
		  "toy.json:2: statuses: status -1 is there twice" },
		{ HEAD "\"statuses\": {\"1\": {\"name\": \"12345678901234567890123456789012345678901234567890"
		       "1234567890123456789012345678901234567890123456\"}}}",
		  "toy.json:2: statuses.1.name: is longer than 95 bytes" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_description, limits)
{
	struct description *description;
	char *text = NULL;
	struct said said;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	fputs(HEAD "\"statuses\": {", file);
	for (int i = 1; i <= 257; i++)
		fprintf(file, "%s\"%d\": {\"name\": \"A\"}", i > 1 ? "," : "", i);
	fputs("}}", file);
	fclose(file);
	cr_expect_eq(parse_bytes(text, length, &said, &description), -EINVAL);
	cr_expect_str_eq(said.text, "toy.json:2: statuses: more than 256 statuses");
	free(text);

	file = open_memstream(&text, &length);
	fputs(HEAD "\"calls\": [", file);
	for (int i = 0; i <= XPT_SPEC_MAX; i++)
		fprintf(file, "%s{\"symbol\": \"toy_%d\", \"role\": \"copy\"}", i ? "," : "", i);
	fputs("]}", file);
	fclose(file);
	cr_expect_eq(parse_bytes(text, length, &said, &description), -EINVAL);
	cr_expect_str_eq(said.text, "toy.json:2: calls: must be an array of 1 to 4096 calls");
	free(text);
}

/* As they stand in the comments of wire.h and in FORMAT.md. */
static const char *const roles[] = {
	[1] = "program.load",	 [2] = "program.name",	[3] = "program.unload",	 [4] = "execute",
	[5] = "enqueue",	 [6] = "wait",		[7] = "launch",		 [8] = "copy",
	[9] = "alloc",		 [10] = "free",		[11] = "select",	 [12] = "region.begin",
	[13] = "region.end",	 [14] = "codeobj.load", [15] = "codeobj.unload", [16] = "resolve",
	[17] = "table",		 [18] = "loader",	[19] = "operator",	 [21] = "region.name",
	[22] = "region.release", [23] = "region.print", [24] = "region",
};

static const char *const meanings[] = {
	[1] = "program",   [2] = "key",	      [3] = "name",	      [4] = "size",	  [5] = "core",
	[6] = "stream",	   [7] = "status",    [8] = "parent",	      [9] = "address",	  [10] = "count",
	[11] = "length",   [12] = "object",   [13] = "class",	      [14] = "inference", [15] = "tokens",
	[16] = "position", [17] = "sequence", [18] = "next_sequence",
};

Test(describe_runtime_description, both_ways)
{
	for (int i = 1; i <= 24; i++) {
		if (!roles[i])
			continue; /* has no name */
		cr_expect_str_eq(role_name(i), roles[i]);
		cr_expect_eq(role_from_name(roles[i]), i);
	}
	for (int i = 1; i <= 14; i++) {
		cr_expect_str_eq(meaning_name(i), meanings[i]);
		cr_expect_eq(meaning_from_name(meanings[i]), i);
	}
}

Test(describe_runtime_description, code_sources)
{
	cr_expect_str_eq(code_source_name(XPT_CODE_MEMORY), "bytes");
	cr_expect_str_eq(code_source_name(XPT_CODE_PARTS), "parts");
	cr_expect_str_eq(code_source_name(XPT_CODE_PATH), "path");
	cr_expect_str_eq(code_source_name(XPT_CODE_DESCRIPTOR), "descriptor");
}

Test(describe_runtime_description, unknown)
{
	cr_expect_str_eq(code_source_name(XPT_CODE_NONE), "unknown");
	cr_expect_str_eq(code_source_name(5), "unknown");
	cr_expect_str_eq(role_name(0), "unknown");
	cr_expect_str_eq(role_name(30), "unknown");
	cr_expect_str_eq(role_name(-1), "unknown");
	cr_expect_str_eq(meaning_name(0), "unknown");
	cr_expect_str_eq(meaning_name(24), "unknown");
	cr_expect_eq(role_from_name("Execute"), -ENOENT);
	cr_expect_eq(role_from_name(""), -ENOENT);
	cr_expect_eq(role_from_name("unknown"), -ENOENT);
	cr_expect_eq(meaning_from_name("programs"), -ENOENT);
}
