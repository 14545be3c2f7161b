/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/parse.h"

#include "describe_support.h"

#define RETURN XPT_SOURCE_RETURN

Test(describe_runtime_fetch, every_form)
{
	static const struct {
		const char *text;
		struct xpt_fetch fetch;
	} cases[] = {
		{ "arg0", { .source = 0 } },
		{ "arg15", { .source = 15 } },
		{ "arg0x0F", { .source = 15 } },
#ifdef __x86_64__
		{ "result[0]@return", { .source = 0, .at_return = 1, .derefs = 1 } },
#else
		{ "result[0]@return", { .source = XPT_SOURCE_RESULT, .at_return = 1, .derefs = 1 } },
#endif
		{ "return", { .source = RETURN, .at_return = 1 } },
		{ "return@return", { .source = RETURN, .at_return = 1 } },
		{ "return:s32", { .source = RETURN, .at_return = 1, .type = XPT_TYPE_S32 } },
		{ "return:string", { .source = RETURN, .at_return = 1, .type = XPT_TYPE_STRING } },
		{ "return[8]", { .source = RETURN, .at_return = 1, .derefs = 1, .offset = { 8 } } },
		{ "arg2:u64", { .source = 2, .type = XPT_TYPE_U64 } },
		{ "arg2:u32", { .source = 2, .type = XPT_TYPE_U32 } },
		{ "arg2:s32", { .source = 2, .type = XPT_TYPE_S32 } },
		{ "arg2:u16", { .source = 2, .type = XPT_TYPE_U16 } },
		{ "arg2:u8", { .source = 2, .type = XPT_TYPE_U8 } },
		{ "arg1:string", { .source = 1, .type = XPT_TYPE_STRING } },
		{ "arg1+220:string", { .source = 1, .type = XPT_TYPE_STRING, .last = 220 } },
		{ "arg0+0xDC:string", { .source = 0, .type = XPT_TYPE_STRING, .last = 220 } },
		{ "arg1[24]:string", { .source = 1, .type = XPT_TYPE_STRING, .derefs = 1, .offset = { 24 } } },
		{ "arg4[0]@return", { .source = 4, .at_return = 1, .derefs = 1 } },
		{ "arg4[0]@entry", { .source = 4, .derefs = 1 } },
		{ "arg1[-8]", { .source = 1, .derefs = 1, .offset = { -8 } } },
		{ "arg0[16][0x18]", { .source = 0, .derefs = 2, .offset = { 16, 24 } } },
		{ "arg9[1][-2][3]-4:u16@return",
		  { .source = 9,
		    .type = XPT_TYPE_U16,
		    .at_return = 1,
		    .derefs = 3,
		    .offset = { 1, -2, 3 },
		    .last = -4 } },
		{ "arg0[2147483647]", { .source = 0, .derefs = 1, .offset = { 2147483647 } } },
		{ "arg0[-0x7fffffff]", { .source = 0, .derefs = 1, .offset = { -2147483647 } } },
		{ "arg3+0", { .source = 3 } },
		{ "arg3:u32=2", { .source = 3, .type = XPT_TYPE_U32, .tests = XPT_TEST_EQUAL, .equal = 2 } },
		{ "arg2&1=0", { .source = 2, .tests = XPT_TEST_MASK | XPT_TEST_EQUAL, .mask = 1 } },
		{ "arg2[8]:u32&0x10@return",
		  { .source = 2,
		    .type = XPT_TYPE_U32,
		    .at_return = 1,
		    .derefs = 1,
		    .offset = { 8 },
		    .tests = XPT_TEST_MASK,
		    .mask = 16 } },
		{ "1", { .source = XPT_SOURCE_CONSTANT, .last = 1 } },
		{ "0", { .source = XPT_SOURCE_CONSTANT } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char reason[128] = "";
		struct xpt_fetch fetch;
		int error = fetch_expression_parse(cases[i].text, &fetch, reason, sizeof(reason));

		cr_expect_eq(error, 0, "%s: %s", cases[i].text, reason);
		expect_fetch(&fetch, cases[i].fetch, cases[i].text);
	}
}

Test(describe_runtime_fetch, every_mistake)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "", "must begin with 'arg' and a number, with 'return' or 'result', or be a number" },
		{ "Arg1", "must begin with 'arg' and a number, with 'return' or 'result', or be a number" },
		{ " arg1", "must begin with 'arg' and a number, with 'return' or 'result', or be a number" },
		{ "arg", "number expected before ''" },
		{ "arg-1", "number expected before '-1'" },
		{ "arg0x", "number expected before ''" },
		{ "arg0xg", "number expected before 'g'" },
		{ "arg16", "argument 16 is out of range (0 to 15)" },
		{ "arg40", "argument 40 is out of range (0 to 15)" },
		{ "arg99999999999999999999", "number is out of range (-2147483647 to 2147483647)" },
		{ "arg0[2147483648]", "number is out of range (-2147483647 to 2147483647)" },
		{ "arg0[0x80000000]", "number is out of range (-2147483647 to 2147483647)" },
		{ "arg0-2147483648", "number is out of range (-2147483647 to 2147483647)" },
		{ "arg0[]", "number expected before ']'" },
		{ "arg0[+1]", "number expected before '+1]'" },
		{ "arg0[--1]", "number expected before '-1]'" },
		{ "arg0[1", "']' expected before ''" },
		{ "arg0[1}", "']' expected before '}'" },
		{ "arg0[0][0][0][0]", "more than 3 dereferences" },
		{ "arg0+", "number expected before ''" },
		{ "arg0+-1", "number expected before '-1'" },
		{ "arg0:", "unknown type '' (known: u64 u32 s32 u16 u8 string)" },
		{ "arg0:u7", "unknown type 'u7' (known: u64 u32 s32 u16 u8 string)" },
		{ "arg0:u640", "unknown type 'u640' (known: u64 u32 s32 u16 u8 string)" },
		{ "arg0:U64", "unknown type 'U64' (known: u64 u32 s32 u16 u8 string)" },
		{ "arg0:abcdefghijklmnopqrstuvwxyz",
		  "unknown type 'abcdefghijklmnop' (known: u64 u32 s32 u16 u8 string)" },
		{ "arg0@later", "unexpected '@later' at the end" },
		{ "arg0@return ", "unexpected ' ' at the end" },
		{ "arg0@return@entry", "unexpected '@entry' at the end" },
		{ "arg0=", "number expected before ''" },
		{ "arg0=1&1", "unexpected '&1' at the end" },
		{ "arg0&-1", "number expected before '-1'" },
		{ "arg0:string=1", "a string cannot be compared" },
		{ "1@return", "unexpected '@return' at the end" },
		{ "1[0]", "unexpected '[0]' at the end" },
		{ "arg0@return:u8", "unexpected ':u8' at the end" },
		{ "arg0+1[0]", "unexpected '[0]' at the end" },
		{ "return@entry", "the return value is not there at entry" },
		{ "returned", "unexpected 'ed' at the end" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char reason[128] = "";
		struct xpt_fetch fetch;

		cr_expect_eq(fetch_expression_parse(cases[i].text, &fetch, reason, sizeof(reason)), -EINVAL, "%s",
			     cases[i].text);
		cr_expect_str_eq(reason, cases[i].reason, "%s: %s", cases[i].text, reason);
	}
}

Test(describe_runtime_fetch, reason_is_cut_to_its_room)
{
	struct xpt_fetch fetch;
	char reason[8];

	cr_expect_eq(fetch_expression_parse("arg40", &fetch, reason, sizeof(reason)), -EINVAL);
	cr_expect_str_eq(reason, "argumen");
}
