/* SPDX-License-Identifier: BSD-2-Clause */
/* The fetches of a call, and what its role asks of them. */
#include "describe_support.h"

#define RETURN XPT_SOURCE_RETURN

/* A call of one role with the fetches of a JSON object and more members. */
static struct description *call(const char *role, const char *fetch, const char *more)
{
	char text[1024];

	snprintf(text, sizeof(text), TOY_HEAD "{\"symbol\": \"toy_run\", \"role\": \"%s\", \"fetch\": {%s}%s}]}", role,
		 fetch, more);
	return parse(text);
}

Test(describe_runtime_fetches, program_first_status_added)
{
	struct description *toy = call("program.load",
				       "\"name\": \"arg0+0xDC:string\", \"core\": \"arg2:s32\", \"size\": \"arg1\", "
				       "\"program\": \"arg4[0]@return\"",
				       ", \"success\": \"zero\"");
	const struct xpt_spec *spec = &toy->calls[0].wire;

	cr_assert_eq(spec->fetches, 5);
	expect_fetch(&spec->fetch[0],
		     (struct xpt_fetch){ .meaning = XPT_MEANING_PROGRAM, .source = 4, .at_return = 1, .derefs = 1 },
		     "0");
	expect_fetch(&spec->fetch[1],
		     (struct xpt_fetch){ .meaning = XPT_MEANING_NAME, .type = XPT_TYPE_STRING, .last = 220 }, "1");
	expect_fetch(&spec->fetch[2], (struct xpt_fetch){ .meaning = XPT_MEANING_SIZE, .source = 1 }, "2");
	expect_fetch(&spec->fetch[3],
		     (struct xpt_fetch){ .meaning = XPT_MEANING_CORE, .source = 2, .type = XPT_TYPE_S32 }, "3");
	expect_fetch(&spec->fetch[4],
		     (struct xpt_fetch){
			     .meaning = XPT_MEANING_STATUS, .source = RETURN, .type = XPT_TYPE_S32, .at_return = 1 },
		     "4");
	cr_expect_eq(spec->role, XPT_ROLE_PROGRAM_LOAD);
	description_free(toy);
}

Test(describe_runtime_fetches, status)
{
	struct description *toy = call("execute", "\"program\": \"arg0\"", ", \"success\": \"null\"");

	cr_assert_eq(toy->calls[0].wire.fetches, 2);
	expect_fetch(&toy->calls[0].wire.fetch[1],
		     (struct xpt_fetch){ .meaning = XPT_MEANING_STATUS, .source = RETURN, .at_return = 1 }, "null");
	description_free(toy);

	toy = call("execute", "\"status\": \"return[8]:u32\", \"program\": \"arg0\"", ", \"success\": \"null\"");
	cr_assert_eq(toy->calls[0].wire.fetches, 2);
	expect_fetch(&toy->calls[0].wire.fetch[1],
		     (struct xpt_fetch){ .meaning = XPT_MEANING_STATUS,
					 .source = RETURN,
					 .type = XPT_TYPE_U32,
					 .at_return = 1,
					 .derefs = 1,
					 .offset = { 8 } },
		     "given");
	description_free(toy);
}

Test(describe_runtime_fetches, flags)
{
	static const struct {
		const char *role, *fetch;
		unsigned int flags;
	} cases[] = {
		{ "program.load", "\"program\": \"arg0\"", XPT_SPEC_CONTROL },
		{ "program.name", "\"program\": \"arg0\", \"parent\": \"arg1\"", XPT_SPEC_CONTROL },
		{ "program.name", "\"program\": \"arg0\", \"name\": \"arg1:string\"", XPT_SPEC_CONTROL },
		{ "program.unload", "\"program\": \"arg0\"", XPT_SPEC_CONTROL },
		{ "execute", "\"program\": \"arg0\"", XPT_SPEC_SAMPLED | XPT_SPEC_BY_PROGRAM },
		{ "enqueue", "\"key\": \"arg1\", \"program\": \"arg0\"", XPT_SPEC_SAMPLED | XPT_SPEC_BY_PROGRAM },
		{ "launch", "\"key\": \"arg1\", \"program\": \"arg0\"", XPT_SPEC_SAMPLED | XPT_SPEC_BY_PROGRAM },
		{ "launch", "\"key\": \"arg1\"", XPT_SPEC_SAMPLED },
		{ "launch", "", XPT_SPEC_SAMPLED },
		{ "wait", "", 0 },
		{ "wait", "\"key\": \"arg1\", \"count\": \"arg0\"", 0 },
		{ "wait", "\"stream\": \"arg1\"", 0 },
		{ "copy", "\"program\": \"arg0\"", 0 },
		{ "alloc", "\"size\": \"arg0\"", 0 },
		{ "alloc", "\"address\": \"arg0\"", 0 },
		{ "free", "\"address\": \"arg0\"", 0 },
		{ "select", "\"core\": \"arg0\"", 0 },
		{ "region.name", "\"program\": \"arg0\", \"name\": \"arg1:string\"", XPT_SPEC_CONTROL },
		{ "region.release", "\"program\": \"arg0\"", XPT_SPEC_CONTROL },
		{ "region.print", "", 0 },
		{ "region", "", XPT_SPEC_ENTRY_ONLY },
		{ "codeobj.load", "\"program\": \"arg0\"", XPT_SPEC_CONTROL },
		{ "codeobj.unload", "\"program\": \"arg0\"", XPT_SPEC_CONTROL },
		{ "resolve", "\"name\": \"arg0:string\", \"address\": \"arg1\"", XPT_SPEC_CONTROL | XPT_SPEC_WAIT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct description *toy = call(cases[i].role, cases[i].fetch, "");
		const struct xpt_spec *spec = &toy->calls[0].wire;

		cr_expect_eq(spec->flags, cases[i].flags, "%s {%s}: %x", cases[i].role, cases[i].fetch, spec->flags);
		cr_expect_str_eq(role_name(spec->role), cases[i].role);
		if (spec->flags & XPT_SPEC_BY_PROGRAM)
			cr_expect_eq(spec->fetch[0].meaning, XPT_MEANING_PROGRAM);
		description_free(toy);
	}
}

#define CASE(role, fetch, message)                                                                   \
	{                                                                                            \
		TOY("{\"symbol\": \"toy_run\", \"role\": \"" role "\",\n\"fetch\": {\n" fetch "}}"), \
			"toy.json:" message                                                          \
	}

Test(describe_runtime_fetches, needs_of_roles)
{
	static const struct refused cases[] = {
		CASE("program.load", "", "8: calls[0].fetch: role program.load needs a fetch of program"),
		CASE("program.name", "\"program\": \"arg0\"",
		     "8: calls[0].fetch: role program.name needs a fetch of name or parent"),
		CASE("program.name", "\"name\": \"arg0:string\"",
		     "8: calls[0].fetch: role program.name needs a fetch of program"),
		CASE("program.unload", "", "8: calls[0].fetch: role program.unload needs a fetch of program"),
		CASE("execute", "\"key\": \"arg0\"", "8: calls[0].fetch: role execute needs a fetch of program"),
		CASE("enqueue", "\"key\": \"arg0\"", "8: calls[0].fetch: role enqueue needs a fetch of program"),
		CASE("alloc", "\"count\": \"arg0\"", "8: calls[0].fetch: role alloc needs a fetch of size or address"),
		CASE("free", "\"size\": \"arg0\"", "8: calls[0].fetch: role free needs a fetch of address"),
		CASE("select", "", "8: calls[0].fetch: role select needs a fetch of core"),
		CASE("region.begin", "", "8: calls[0].fetch: role region.begin needs a fetch of program or name"),
		CASE("region.end", "", "8: calls[0].fetch: role region.end needs a fetch of program or name"),
		CASE("region.begin", "\"program\": \"arg0\"",
		     "8: calls[0].fetch: role region.begin is for calls that are entry_only"),
		CASE("region.name", "\"program\": \"arg0\"",
		     "8: calls[0].fetch: role region.name needs a fetch of name"),
		{ TOY("{\"symbol\": \"a\", \"role\": \"region.end\", \"entry_only\": true,\n"
		      "\"fetch\": {\"program\": \"arg0\", \"size\": \"arg1\"}}"),
		  "toy.json:8: calls[0].fetch: role region.end takes a program and a name, nothing else" },
		CASE("codeobj.load", "", "8: calls[0].fetch: role codeobj.load needs a fetch of program"),
		CASE("codeobj.unload", "", "8: calls[0].fetch: role codeobj.unload needs a fetch of program"),
		CASE("resolve", "\"name\": \"arg0:string\"",
		     "8: calls[0].fetch: role resolve needs a fetch of address"),
		CASE("resolve", "\"address\": \"arg0\"", "8: calls[0].fetch: role resolve needs a fetch of name"),
		CASE("wait", "\"key\": \"arg0\",\n\"stream\": \"arg1\"",
		     "10: calls[0].fetch.stream: a wait is for a key or for a stream, not for both"),
		CASE("wait", "\"keys\": \"arg0@entry\"",
		     "9: calls[0].fetch.keys: must be an address that is read at the return: \"arg1@return\""),
		CASE("copy", "\"blocking\": \"1\"", "9: calls[0].fetch.blocking: needs the stream that it is about"),
		CASE("copy", "\"size\": \"1\"",
		     "9: calls[0].fetch.size: is a number, as only blocking and stream can be"),
		CASE("wait", "\"key\": \"arg0=1\"",
		     "9: calls[0].fetch.key: is a handle, which is compared with nothing"),
		CASE("mark", "\"key\": \"arg0\"", "8: calls[0].fetch: role mark needs a fetch of stream"),
		CASE("stream", "\"stream\": \"arg0\"", "8: calls[0].fetch: role stream needs a fetch of ordered"),
		{ TOY("{\"symbol\": \"toy_run\", \"role\": \"execute\"}"),
		  "toy.json:7: calls[0]: role execute needs a fetch of program" },
		{ TOY("{\"symbol\": \"toy_run\", \"role\": \"wait\", \"success\": \"zero\",\n"
		      " \"fetch\": {\"keys\": \"arg0@return\"}}"),
		  "toy.json:8: calls[0].fetch.keys: is for a wait that has a count of them, and no key" },
	};

	EXPECT_ALL_REFUSED(cases);
}

#define CALLED(role, success, fetch, message)                                                   \
	{                                                                                       \
		TOY("{\"symbol\": \"toy_run\", \"role\": \"" role "\", \"success\": \"" success \
		    "\",\n\"fetch\": {\n" fetch "}}"),                                          \
			"toy.json:" message                                                     \
	}

Test(describe_runtime_fetches, mistakes)
{
	static const struct refused cases[] = {
		CASE("execute", "\"program\": \"arg40\"",
		     "9: calls[0].fetch.program: argument 40 is out of range (0 to 15)"),
		CASE("execute", "\"program\": 3", "9: calls[0].fetch.program: must be a string"),
		CASE("execute", "\"program\": null", "9: calls[0].fetch.program: must be a string"),
		CASE("execute", "\"program\": \"arg0:string\"",
		     "9: calls[0].fetch.program: only a name can be of type string"),
		CASE("copy", "\"size\": \"arg0\",\n\"name\": \"arg0\"",
		     "10: calls[0].fetch.name: must be of type string"),
		CASE("copy", "\"length\": \"arg0\"",
		     "9: calls[0].fetch.length: is the length of a name, and there is none"),
		CASE("program.load", "\"program\": \"arg0[0]@return\"",
		     "9: calls[0].fetch.program: is read at the return, which needs success to say when that is allowed"),
		CASE("copy", "\"status\": \"return\"", "9: calls[0].fetch.status: needs success \"zero\" or \"null\""),
		CALLED("copy", "nonzero", "\"status\": \"return\"",
		       "9: calls[0].fetch.status: needs success \"zero\" or \"null\""),
		CALLED("copy", "zero", "\"status\": \"arg0\"", "9: calls[0].fetch.status: must be read at the return"),
		CALLED("copy", "zero", "\"size\": \"return\"",
		       "9: calls[0].fetch.size: the return value is the status, as success says"),
		CALLED("copy", "null", "\"size\": \"return[8]\"",
		       "9: calls[0].fetch.size: the return value is the status, as success says"),
		CALLED("copy", "nonzero", "\"size\": \"arg0\"",
		       "8: calls[0].fetch: success \"nonzero\" needs a fetch of the return"),
		CALLED("execute", "zero", "\"program\": \"arg0[0]@return\"",
		       "9: calls[0].fetch.program: role execute needs the program when the call begins, without @return"),
		CALLED("enqueue", "zero", "\"program\": \"arg0[0]@return\"",
		       "9: calls[0].fetch.program: role enqueue needs the program when the call begins, without @return"),
		CALLED("launch", "nonzero", "\"program\": \"return\"",
		       "9: calls[0].fetch.program: role launch needs the program when the call begins, without @return"),
		CALLED("program.unload", "zero", "\"program\": \"arg0[0]@return\"",
		       "9: calls[0].fetch.program: role program.unload needs the program when the call begins, without "
		       "@return"),
		CALLED("copy", "zero",
		       "\"program\": \"arg0\", \"key\": \"arg0\", \"size\": \"arg0\", \"core\": \"arg0\", "
		       "\"stream\": \"arg0\",\n\"parent\": \"arg0\", \"address\": \"arg0\", \"count\": \"arg0\"",
		       "8: calls[0].fetch: more than 8 fetches with the status"),
		CALLED("copy", "always",
		       "\"program\": \"arg0\", \"key\": \"arg0\", \"name\": \"arg0:string\", \"size\": \"arg0\", "
		       "\"core\": \"arg0\", \"stream\": \"arg0\", \"parent\": \"arg0\", \"address\": \"arg0\",\n"
		       "\"count\": \"arg0\"",
		       "10: calls[0].fetch.count: more than 8 fetches"),
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_fetches, as_many_as_there_may_be)
{
	struct description *toy =
		call("copy",
		     "\"program\": \"arg0\", \"key\": \"arg1\", \"size\": \"arg2\", \"core\": \"arg3\", "
		     "\"stream\": \"arg4\", \"parent\": \"arg5\", \"address\": \"arg6\"",
		     ", \"success\": \"zero\"");

	cr_expect_eq(toy->calls[0].wire.fetches, 8);
	cr_expect_eq(toy->calls[0].wire.fetch[6].meaning, XPT_MEANING_ADDRESS);
	cr_expect_eq(toy->calls[0].wire.fetch[6].source, 6);
	cr_expect_eq(toy->calls[0].wire.fetch[7].meaning, XPT_MEANING_STATUS);
	description_free(toy);
}

Test(describe_runtime_fetches, architectures)
{
	struct description *toy = call("copy", "\"count\": {\"x86_64\": \"arg6:s32\", \"aarch64\": \"arg1[0]:s32\"}",
				       "");
	const struct xpt_fetch *fetch = &toy->calls[0].wire.fetch[0];

	cr_assert_eq(toy->calls[0].wire.fetches, 1);
#if defined(__x86_64__)
	expect_fetch(fetch, (struct xpt_fetch){ .meaning = XPT_MEANING_COUNT, .source = 6, .type = XPT_TYPE_S32 },
		     "x86_64");
#else
	expect_fetch(fetch,
		     (struct xpt_fetch){ .meaning = XPT_MEANING_COUNT, .source = 1, .type = XPT_TYPE_S32, .derefs = 1 },
		     "aarch64");
#endif
	description_free(toy);

	toy = call("copy", "\"count\": {}", "");
	cr_expect_eq(toy->calls[0].wire.fetches, 0);
	description_free(toy);

	/* What another architecture gets is checked on this one, too. */
	expect_refused(TOY("{\"symbol\": \"a\", \"role\": \"copy\", \"fetch\": {\"count\": {\"x86_64\": \"arg6\",\n"
			   "\"aarch64\": \"arg77\"}}}"),
		       "toy.json:8: calls[0].fetch.count.aarch64: argument 77 is out of range (0 to 15)");
	expect_refused(TOY("{\"symbol\": \"a\", \"role\": \"copy\", \"fetch\": {\"count\": {\"x86_64\": \"arg77\",\n"
			   "\"aarch64\": \"arg7\"}}}"),
		       "toy.json:7: calls[0].fetch.count.x86_64: argument 77 is out of range (0 to 15)");
	expect_refused(TOY("{\"symbol\": \"a\", \"role\": \"copy\", \"fetch\": {\"count\": {\"arm\": \"arg6\"}}}"),
		       "toy.json:7: calls[0].fetch.count.arm: unknown key (known: x86_64 aarch64)");
}
