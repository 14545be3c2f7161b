/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe_support.h"

#define CALLS "\"calls\": [{\"symbol\": \"toy_run\", \"role\": \"execute\", \"fetch\": {\"program\": \"arg0\"}}]}"
#define HEAD                                                                                                                  \
	"{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"toy_run\"],\n"                            \
	"\"operators\": {\"base\": \"toy::Kernel\", \"methods\": [{\"name\": \"Run\", \"slot\": 2, \"object\": \"arg0\"}],\n" \
	"\"nodes\": "
#define FIELDS "\"index\": 0, \"name\": 8, \"type\": 40, \"provider\": 65528, \"providers\": \"*Provider\""
#define LAYOUT "{\"through\": [8], " FIELDS "}"

Test(describe_runtime_operators, everything)
{
	struct description *toy = parse(HEAD "[" LAYOUT ",\n{\"note\": \"\", "
					     "\"through\": [8, 0, 16, 65528], " FIELDS "}]},\n" CALLS);
	const struct node_layout *layout = toy->operators.nodes;

	cr_assert_eq(toy->operators.node_count, 2);
	cr_expect_eq(layout->through_count, 1);
	cr_expect_eq(layout->through[0], 8);
	cr_expect_eq(layout->index, 0);
	cr_expect_eq(layout->name, 8);
	cr_expect_eq(layout->type, 40);
	cr_expect_eq(layout->provider, 65528);
	cr_expect_str_eq(layout->providers, "*Provider");
	layout++;
	cr_expect_eq(layout->through_count, 4);
	cr_expect_eq(layout->through[2], 16);
	cr_expect_eq(layout->through[3], 65528);
	description_free(toy);
}

Test(describe_runtime_operators, mistakes)
{
	static const struct refused cases[] = {
		{ HEAD "{}}}", "toy.json:3: operators.nodes: must be an array of 1 to 16 layouts" },
		{ HEAD "[]}}", "toy.json:3: operators.nodes: must be an array of 1 to 16 layouts" },
		{ HEAD "[1]}}", "toy.json:3: operators.nodes[0]: must be an object" },
		{ HEAD "[\n{}]}}", "toy.json:4: operators.nodes[0]: through is missing" },
		{ HEAD "[{\"through\": [8], \"index\": 0, \"name\": 8, \"type\": 40,"
		       " \"provider\": 80}]}}",
		  "toy.json:3: operators.nodes[0]: providers is missing" },
		{ HEAD "[{\"through\": 8, " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through: must be an array of 1 to 4 offsets" },
		{ HEAD "[{\"through\": [], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through: must be an array of 1 to 4 offsets" },
		{ HEAD "[{\"through\": [0, 0, 0, 0, 0], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through: must be an array of 1 to 4 offsets" },
		{ HEAD "[{\"through\": [0,\n4], " FIELDS "}]}}",
		  "toy.json:4: operators.nodes[0].through[1]: must be a multiple of 8" },
		{ HEAD "[{\"through\": [-8], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through[0]: is out of range (0 to 65528)" },
		{ HEAD "[{\"through\": [8], \"index\": 4, \"name\": 8, \"type\": 40, "
		       "\"provider\": 80, \"providers\": \"*\"}]}}",
		  "toy.json:3: operators.nodes[0].index: must be a multiple of 8" },
		{ HEAD "[{\"through\": [8], \"index\": 0, \"name\": 8, \"type\": 65536, "
		       "\"provider\": 80, \"providers\": \"*\"}]}}",
		  "toy.json:3: operators.nodes[0].type: is out of range (0 to 65528)" },
		{ HEAD "[{\"through\": [8], \"index\": 0, \"name\": 8, \"type\": 40, "
		       "\"provider\": 80, \"providers\": \"\"}]}}",
		  "toy.json:3: operators.nodes[0].providers: must not be empty" },
		{ HEAD "[{\"through\": [8], \"note\": 1, " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].note: must be a string, or an array of strings" },
	};

	EXPECT_ALL_REFUSED(cases);
}

#define NAMES "{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"toy_run\"],\n\"names\": "

Test(describe_runtime_operators, names)
{
	struct description *toy = parse(
		NAMES "[{\"fits\": [\"*.onnx\", \"*.ort\"], \"within\": 4096}, {\"row\": [5, 4], \"within\": 8},\n"
		      "{\"string\": 16, \"note\": \"\"}, {\"pointer\": 96, \"library\": \"libtoy.so.2*\"},\n"
		      "{\"mapped\": [\"*.gguf\"]}],\n" CALLS);
	const struct name_way *way = toy->names;

	cr_assert_eq(toy->name_count, 5);
	cr_expect_eq(way->kind, NAME_FITS);
	cr_expect_eq(way->within, 4096);
	cr_expect_eq(way->pattern_count, 2);
	cr_expect_str_eq(way->patterns[1], "*.ort");
	way++;
	cr_expect_eq(way->kind, NAME_ROW);
	cr_expect_eq(way->within, 8);
	cr_expect_eq(way->rows[0].count, 5);
	cr_expect_eq(way->rows[0].number, 4);
	cr_expect_eq(way->row_count, 1);
	way++;
	cr_expect_eq(way->kind, NAME_STRING);
	cr_expect_eq(way->at, 16);
	cr_expect_null(way->library);
	way++;
	cr_expect_eq(way->kind, NAME_POINTER);
	cr_expect_eq(way->at, 96);
	cr_expect_str_eq(way->library, "libtoy.so.2*");
	way++;
	cr_expect_eq(way->kind, NAME_MAPPED);
	cr_expect_str_eq(way->patterns[0], "*.gguf");
	description_free(toy);
}

Test(describe_runtime_operators, mistakes_in_names)
{
	static const struct refused cases[] = {
		{ NAMES "{}}", "toy.json:2: names: must be an array of 1 to 8 ways to a name" },
		{ NAMES "[]}", "toy.json:2: names: must be an array of 1 to 8 ways to a name" },
		{ NAMES "[{}]}", "toy.json:2: names[0]: must have one of fits, row, string, pointer and mapped" },
		{ NAMES "[{\"string\": 8, \"pointer\": 8}]}",
		  "toy.json:2: names[0]: must have one of fits, row, string, pointer and mapped" },
		{ NAMES "[{\"fits\": [\"*\"]}]}",
		  "toy.json:2: names[0]: fits and row need within, and others take none" },
		{ NAMES "[{\"string\": 8, \"within\": 8}]}",
		  "toy.json:2: names[0]: fits and row need within, and others take none" },
		{ NAMES "[{\"fits\": [\"*\"], \"within\": 16385}]}",
		  "toy.json:2: names[0].within: is out of range (8 to 16384)" },
		{ NAMES "[{\"fits\": [], \"within\": 8}]}", "toy.json:2: names[0].fits: must have a pattern" },
		{ NAMES "[{\"mapped\": []}]}", "toy.json:2: names[0].mapped: must have a pattern" },
		{ NAMES "[{\"row\": [5], \"within\": 8}]}",
		  "toy.json:2: names[0].row: must be an array of two numbers" },
		{ NAMES "[{\"row\": [[5, 1], [5]], \"within\": 8}]}",
		  "toy.json:2: names[0].row[1]: must be an array of two numbers" },
		{ NAMES "[{\"row\": [[2, 0], [3, 0], [4, 0], [5, 0], [6, 0]], \"within\": 8}]}",
		  "toy.json:2: names[0].row: has more than 4 rows" },
		{ NAMES "[{\"row\": [17, 0], \"within\": 8}]}",
		  "toy.json:2: names[0].row[0]: is out of range (2 to 16)" },
		{ NAMES "[{\"row\": [2, 2], \"within\": 8}]}",
		  "toy.json:2: names[0].row[1]: is out of range (0 to 1)" },
		{ NAMES "[{\"string\": 12}]}", "toy.json:2: names[0].string: must be a multiple of 8" },
		{ NAMES "[{\"string\": 8, \"library\": 1}]}", "toy.json:2: names[0].library: must be a string" },
	};

	EXPECT_ALL_REFUSED(cases);
}
