/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe_support.h"

#define CALLS "\"calls\": [{\"symbol\": \"toy_run\", \"role\": \"execute\", \"fetch\": {\"program\": \"arg0\"}}]}"
#define HEAD                                                                                                                  \
	"{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"identify\": [\"toy_run\"],\n"                            \
	"\"operators\": {\"base\": \"toy::Kernel\", \"methods\": [{\"name\": \"Run\", \"slot\": 2, \"object\": \"arg0\"}],\n" \
	"\"nodes\": "
#define FIELDS "\"index\": 0, \"name\": 8, \"type\": 40, \"provider\": 65528, \"providers\": \"*Provider\""
#define LAYOUT "{\"versions\": [\"V_1.*\"], \"through\": [8], " FIELDS "}"

Test(describe_operator_nodes, everything)
{
	struct description *toy = parse(HEAD "[" LAYOUT ",\n{\"note\": \"\", \"versions\": [\"V_2.*\", \"V_3\"], "
					     "\"through\": [8, 0, 16, 65528], " FIELDS "}]},\n" CALLS);
	const struct node_layout *layout = toy->operators.nodes;

	cr_assert_eq(toy->operators.node_count, 2);
	cr_expect_eq(layout->version_count, 1);
	cr_expect_str_eq(layout->versions[0], "V_1.*");
	cr_expect_eq(layout->through_count, 1);
	cr_expect_eq(layout->through[0], 8);
	cr_expect_eq(layout->index, 0);
	cr_expect_eq(layout->name, 8);
	cr_expect_eq(layout->type, 40);
	cr_expect_eq(layout->provider, 65528);
	cr_expect_str_eq(layout->providers, "*Provider");
	layout++;
	cr_expect_eq(layout->version_count, 2);
	cr_expect_str_eq(layout->versions[1], "V_3");
	cr_expect_eq(layout->through_count, 4);
	cr_expect_eq(layout->through[2], 16);
	cr_expect_eq(layout->through[3], 65528);
	description_free(toy);
}

Test(describe_operator_nodes, mistakes)
{
	static const struct refused cases[] = {
		{ HEAD "{}}}", "toy.json:3: operators.nodes: must be an array of 1 to 16 layouts" },
		{ HEAD "[]}}", "toy.json:3: operators.nodes: must be an array of 1 to 16 layouts" },
		{ HEAD "[1]}}", "toy.json:3: operators.nodes[0]: must be an object" },
		{ HEAD "[\n{}]}}", "toy.json:4: operators.nodes[0]: versions is missing" },
		{ HEAD "[{\"versions\": [\"V\"]}]}}", "toy.json:3: operators.nodes[0]: through is missing" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [8], \"index\": 0, \"name\": 8, \"type\": 40,"
		       " \"provider\": 80}]}}",
		  "toy.json:3: operators.nodes[0]: providers is missing" },
		{ HEAD "[" LAYOUT ",\n{\"versions\": [], \"through\": [8], " FIELDS "}]}}",
		  "toy.json:4: operators.nodes[1].versions: must name the versions that it is known for" },
		{ HEAD "[{\"versions\": \"V\", \"through\": [8], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].versions: must be an array of strings" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": 8, " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through: must be an array of 1 to 4 offsets" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through: must be an array of 1 to 4 offsets" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [0, 0, 0, 0, 0], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through: must be an array of 1 to 4 offsets" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [0,\n4], " FIELDS "}]}}",
		  "toy.json:4: operators.nodes[0].through[1]: must be a multiple of 8" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [-8], " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].through[0]: is out of range (0 to 65528)" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [8], \"index\": 4, \"name\": 8, \"type\": 40, "
		       "\"provider\": 80, \"providers\": \"*\"}]}}",
		  "toy.json:3: operators.nodes[0].index: must be a multiple of 8" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [8], \"index\": 0, \"name\": 8, \"type\": 65536, "
		       "\"provider\": 80, \"providers\": \"*\"}]}}",
		  "toy.json:3: operators.nodes[0].type: is out of range (0 to 65528)" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [8], \"index\": 0, \"name\": 8, \"type\": 40, "
		       "\"provider\": 80, \"providers\": \"\"}]}}",
		  "toy.json:3: operators.nodes[0].providers: must not be empty" },
		{ HEAD "[{\"versions\": [\"V\"], \"through\": [8], \"note\": 1, " FIELDS "}]}}",
		  "toy.json:3: operators.nodes[0].note: must be a string, or an array of strings" },
	};

	EXPECT_ALL_REFUSED(cases);
}
