/* SPDX-License-Identifier: BSD-2-Clause */
/* How a function is found, its role, how it tells success. */
#include "describe_support.h"

#define RUN "\"role\": \"execute\", \"fetch\": {\"program\": \"arg0\"}"

#define TABLE_HEAD \
	"{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"Toy\", \"table\": {\"accessor\": \"toy_api\"}, \"calls\": [\n"

Test(describe_runtime_call, symbols)
{
	struct description *toy = parse(TOY("{\"symbol\": \"toy_run\", " RUN "},\n"
					    "{\"symbols\": [\"toy_go\", \"toy_go_v2\", \"_ZN3toy2goE*\"], " RUN "},\n"
					    "{\"symbol\": \"toy_z*\", \"name\": \"toy_z\", " RUN "}"));

	cr_assert_eq(toy->call_count, 3);
	cr_expect_eq(toy->calls[0].locate, LOCATE_SYMBOL);
	cr_expect_eq(toy->calls[0].symbol_count, 1);
	cr_expect_str_eq(toy->calls[0].symbols[0], "toy_run");
	cr_expect_str_eq(toy->calls[0].function, "toy_run");
	cr_expect_eq(toy->calls[1].symbol_count, 3);
	cr_expect_str_eq(toy->calls[1].symbols[2], "_ZN3toy2goE*");
	cr_expect_str_eq(toy->calls[1].function, "toy_go");
	cr_expect_str_eq(toy->calls[2].function, "toy_z");
	description_free(toy);
}

Test(describe_runtime_call, references)
{
	struct description *toy = parse(
		TOY("{\"refers_to\": \"Running with tag: \", \"file\": \"libtoy*\", \"name\": \"Toy::run\", " RUN "}"));

	cr_expect_eq(toy->calls[0].locate, LOCATE_REFERENCE);
	cr_expect_str_eq(toy->calls[0].refers_to, "Running with tag: ");
	cr_expect_str_eq(toy->calls[0].file, "libtoy*");
	cr_expect_str_eq(toy->calls[0].function, "Toy::run");
	description_free(toy);
}

Test(describe_runtime_call, methods)
{
	struct description *toy = parse(
		TOY("{\"method_of\": \"toy::Toy\", \"slot\": 1, \"file\": \"libtoy*\", \"name\": \"Toy::~Toy\","
		    " \"role\": \"program.unload\", \"entry_only\": true, \"fetch\": {\"program\": \"arg0\"}}"));
	static const struct refused cases[] = {
		{ TOY("{\"method_of\": \"toy::Toy\", \"file\": \"libtoy*\", \"name\": \"t\", " RUN "}"),
		  "toy.json:7: calls[0].method_of: needs the slot of its virtual table" },
		{ TOY("{\"method_of\": \"toy::Toy\", \"slot\": 1, \"name\": \"t\", " RUN "}"),
		  "toy.json:7: calls[0].method_of: is looked for in few files: 'file' must say what they are called" },
		{ TOY("{\"method_of\": \"toy::Toy\", \"slot\": 1, \"file\": \"libtoy*\", " RUN "}"),
		  "toy.json:7: calls[0]: a function that is not found by its symbol needs a name" },
	};

	cr_expect_eq(toy->calls[0].locate, LOCATE_VIRTUAL);
	cr_expect_str_eq(toy->calls[0].method_of, "toy::Toy");
	cr_expect_eq(toy->calls[0].slot, 1);
	description_free(toy);
	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_call, slots)
{
	struct description *toy = parse(TABLE_HEAD "{\"slot\": 0, \"name\": \"Open\", " RUN "},"
						   "{\"slot\": 4095, \"name\": \"Close\", " RUN "},"
						   "{\"symbol\": \"toy_run\", " RUN "}]}");

	cr_assert_eq(toy->call_count, 3);
	cr_expect_eq(toy->calls[0].locate, LOCATE_SLOT);
	cr_expect_eq(toy->calls[0].slot, 0);
	cr_expect_eq(toy->calls[0].symbol_count, 0);
	cr_expect_str_eq(toy->calls[0].function, "Open");
	cr_expect_eq(toy->calls[1].slot, 4095);
	cr_expect_eq(toy->calls[2].locate, LOCATE_SYMBOL);
	description_free(toy);
}

Test(describe_runtime_call, locate_mistakes)
{
	static const struct refused cases[] = {
		{ TOY("{}"),
		  "toy.json:7: calls[0]: must have one of symbol, symbols, slot, probe, refers_to, callback_of and method_of" },
		{ TOY("{\n\"symbol\": \"a\", \"symbols\": [\"b\"], " RUN "}"),
		  "toy.json:7: calls[0]: must have one of symbol, symbols, slot, probe, refers_to, callback_of and method_of" },
		{ TOY("{\n\"symbol\": 3, " RUN "}"), "toy.json:8: calls[0].symbol: must be a string" },
		{ TOY("{\n\"symbol\": \"a b\", " RUN "}"),
		  "toy.json:8: calls[0].symbol: is no symbol: only printable ASCII without blanks" },
		{ TOY("{\n\"symbol\": \"\xc3\xa9\", " RUN "}"),
		  "toy.json:8: calls[0].symbol: is no symbol: only printable ASCII without blanks" },
		{ TOY("{\n\"symbol\": \"a@@V_2\", " RUN "}"),
		  "toy.json:8: calls[0].symbol: give the symbol without its version" },
		{ TOY("{\n\"symbols\": [], " RUN "}"), "toy.json:8: calls[0].symbols: must name at least one symbol" },
		{ TOY("{\n\"symbols\": \"a\", " RUN "}"), "toy.json:8: calls[0].symbols: must be an array of strings" },
		{ TOY("{\"symbols\": [\"a\",\n\"b\",\n\"a\"], " RUN "}"),
		  "toy.json:9: calls[0].symbols[2]: 'a' is described twice" },
		{ TOY("{\"symbols\": [\"a\", \"b\"], " RUN "},\n{\"symbol\": \"c\", " RUN "},\n{\"symbol\": \"b\", " RUN
		      "}"),
		  "toy.json:9: calls[2].symbol: 'b' is described twice" },
		{ TOY("{\n\"slot\": 1, \"name\": \"a\", " RUN "}"),
		  "toy.json:8: calls[0].slot: the runtime has no table" },
		{ TABLE_HEAD "{\"slot\": 4096, \"name\": \"a\", " RUN "}]}",
		  "toy.json:2: calls[0].slot: is out of range (0 to 4095)" },
		{ TABLE_HEAD "{\"slot\": \"1\", \"name\": \"a\", " RUN "}]}",
		  "toy.json:2: calls[0].slot: must be a number" },
		{ TABLE_HEAD "{\"slot\": 1, " RUN "}]}",
		  "toy.json:2: calls[0]: a function that is not found by its symbol needs a name" },
		{ TABLE_HEAD "{\"slot\": 9, \"name\": \"a\", " RUN "},\n{\"slot\": 9, \"name\": \"b\", " RUN "}]}",
		  "toy.json:3: calls[1].slot: slot 9 is described twice" },
		{ TOY("{\"symbol\": \"a\", \"name\": \"\", " RUN "}"), "toy.json:7: calls[0].name: must not be empty" },
		{ TOY("{\"refers_to\": \"a string\", \"name\": \"a\", " RUN "}"),
		  "toy.json:7: calls[0].refers_to: is looked for in few files: 'file' must say what they are called" },
		{ TOY("{\"refers_to\": \"a short\", \"file\": \"liba*\", \"name\": \"a\", " RUN "}"),
		  "toy.json:7: calls[0].refers_to: must have 8 to 255 bytes" },
		{ TOY("{\"refers_to\": \"a string\", \"file\": \"liba*\", " RUN "}"),
		  "toy.json:7: calls[0]: a function that is not found by its symbol needs a name" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_call, too_many_symbols)
{
	char text[2048];
	size_t used = snprintf(text, sizeof(text), TOY_HEAD "{\"symbols\": [\"s\"");

	for (int i = 1; i < 65; i++)
		used += snprintf(text + used, sizeof(text) - used, ", \"s%d\"", i);
	snprintf(text + used, sizeof(text) - used, "], " RUN "}]}");
	expect_refused(text, "toy.json:7: calls[0].symbols: more than 64 symbols");
}

Test(describe_runtime_call, role_mistakes)
{
#define KNOWN                                                                                                  \
	"(known: program.load program.name program.unload execute enqueue wait launch copy alloc free select " \
	"region.begin region.end codeobj.load codeobj.unload resolve region.name region.release region.print region mark stream callback program.ready follow)"
	static const struct refused cases[] = {
		{ TOY("{\"symbol\": \"a\"}"), "toy.json:7: calls[0]: role is missing" },
		{ TOY("{\"symbol\": \"a\", \"role\": 4}"), "toy.json:7: calls[0].role: must be a string" },
		{ TOY("{\"symbol\": \"a\",\n\"role\": \"run\"}"),
		  "toy.json:8: calls[0].role: unknown role 'run' " KNOWN },
		{ TOY("{\"symbol\": \"a\",\n\"role\": \"\"}"), "toy.json:8: calls[0].role: unknown role '' " KNOWN },
		{ TOY("{\"symbol\": \"a\", \"role\": \"table\"}"),
		  "toy.json:7: calls[0].role: role 'table' is internal" },
		{ TOY("{\"symbol\": \"a\", \"role\": \"loader\"}"),
		  "toy.json:7: calls[0].role: role 'loader' is internal" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_call, success)
{
	static const struct {
		const char *success;
		enum xpt_success value;
		bool has_status;
	} cases[] = {
		{ "", XPT_SUCCESS_ALWAYS, false },
		{ ", \"success\": \"always\"", XPT_SUCCESS_ALWAYS, false },
		{ ", \"success\": \"zero\"", XPT_SUCCESS_ZERO32, true },
		{ ", \"success\": \"null\"", XPT_SUCCESS_ZERO64, true },
		{ ", \"success\": \"nonzero\", \"fetch\": {\"address\": \"return\"}", XPT_SUCCESS_NONZERO, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct description *toy;

		snprintf(text, sizeof(text), TOY_HEAD "{\"symbol\": \"a\", \"role\": \"copy\"%s}]}", cases[i].success);
		toy = parse(text);
		cr_expect_eq(toy->calls[0].wire.success, cases[i].value, "%s", cases[i].success);
		cr_expect_eq(toy->calls[0].has_status, cases[i].has_status, "%s", cases[i].success);
		description_free(toy);
	}
	expect_refused(TOY("{\"symbol\": \"a\", \"role\": \"copy\",\n\"success\": \"positive\"}"),
		       "toy.json:8: calls[0].success: unknown 'positive' (known: always zero null nonzero)");
	expect_refused(TOY("{\"symbol\": \"a\", \"role\": \"copy\",\n\"success\": true}"),
		       "toy.json:8: calls[0].success: must be a string");
}

Test(describe_runtime_call, entry_only)
{
	struct description *toy = parse(TOY(
		"{\"symbol\": \"a\", \"role\": \"free\", \"entry_only\": true, \"fetch\": {\"address\": \"arg0\"}},"
		"{\"symbol\": \"b\", \"role\": \"free\", \"entry_only\": false, \"fetch\": {\"address\": \"arg0\"}},"
		"{\"symbol\": \"c\", \"role\": \"program.unload\", \"entry_only\": true, \"success\": \"always\","
		" \"fetch\": {\"program\": \"arg0\"}}"));
	static const struct refused cases[] = {
		{ TOY("{\"symbol\": \"a\", \"entry_only\": true, " RUN "}"),
		  "toy.json:7: calls[0].entry_only: when a call of role execute returns is what it is for" },
		{ TOY("{\"symbol\": \"a\", \"entry_only\": true, \"role\": \"copy\",\n\"success\": \"zero\"}"),
		  "toy.json:8: calls[0].success: is not known at the entry, and the call is entry_only" },
		{ TOY("{\"symbol\": \"a\", \"entry_only\": 1, \"role\": \"copy\"}"),
		  "toy.json:7: calls[0].entry_only: must be true or false" },
		{ TOY("{\"symbol\": \"a\", \"entry_only\": true, \"role\": \"copy\",\n"
		      "\"fetch\": {\"size\": \"arg0[0]@return\"}}"),
		  "toy.json:8: calls[0].fetch.size: is read at the return, and the call is entry_only" },
	};

	cr_expect_eq(toy->calls[0].wire.flags, XPT_SPEC_ENTRY_ONLY);
	cr_expect_eq(toy->calls[1].wire.flags, 0);
	cr_expect_eq(toy->calls[2].wire.flags, XPT_SPEC_ENTRY_ONLY | XPT_SPEC_CONTROL);
	description_free(toy);
	EXPECT_ALL_REFUSED(cases);
}

#define HANDS_OVER "{\"symbol\": \"a\", \"role\": \"callback\", \"fetch\": {\"callback\": \"arg2\"}}"

Test(describe_runtime_call, callbacks)
{
	struct description *toy = parse(TOY(
		"{\"symbol\": \"a\", \"role\": \"enqueue\", \"fetch\": {\"program\": \"arg0\", \"key\": \"arg1\", \"callback\": \"arg2\"}},"
		"{\"callback_of\": \"a\", \"name\": \"a's callback\", \"role\": \"wait\", \"success\": \"null\","
		" \"fetch\": {\"key\": \"arg0\", \"status\": \"arg1\"}}"));
	const struct call_spec *call = &toy->calls[1];
	static const struct refused cases[] = {
		{ TOY(HANDS_OVER),
		  "toy.json:7: calls[0]: fetches a callback, and none is described as callback_of 'a'" },
		{ TOY("{\"symbol\": \"a\", \"role\": \"callback\"}"),
		  "toy.json:7: calls[0]: role callback needs a fetch of callback" },
		{ TOY("{\"symbol\": \"a\", \"role\": \"callback\", \"success\": \"zero\",\n"
		      "\"fetch\": {\"callback\": \"arg2@return\"}}"),
		  "toy.json:8: calls[0].fetch.callback: must be an address that is known when the call begins: \"arg2\"" },
		{ TOY(HANDS_OVER ",\n{\"callback_of\": \"b\", \"name\": \"c\", \"role\": \"wait\"}"),
		  "toy.json:7: calls[0]: fetches a callback, and none is described as callback_of 'a'" },
		{ TOY("{\"symbol\": \"a\", \"role\": \"free\", \"fetch\": {\"address\": \"arg0\"}},\n"
		      "{\"callback_of\": \"a\", \"name\": \"c\", \"role\": \"wait\"}"),
		  "toy.json:8: calls[1]: no call 'a' fetches a callback" },
		{ TOY(HANDS_OVER ",\n{\"callback_of\": \"a\", \"role\": \"wait\"}"),
		  "toy.json:8: calls[1]: a function that is not found by its symbol needs a name" },
		{ TOY(HANDS_OVER ",\n{\"callback_of\": \"a\", \"name\": \"c\", \"role\": \"copy\"}"),
		  "toy.json:8: calls[1].role: must be wait: that is what a callback ends" },
		{ TOY(HANDS_OVER
		      ",\n{\"callback_of\": \"a\", \"name\": \"c\", \"role\": \"wait\", \"success\": \"zero\"}"),
		  "toy.json:8: calls[1]: a callback is given its status: success needs a fetch of it" },
		{ TOY(HANDS_OVER ",\n{\"callback_of\": \"a\", \"file\": \"b\", \"name\": \"c\", \"role\": \"wait\"}"),
		  "toy.json:8: calls[1].file: is for functions that are found by their symbols, or by what they refer to" },
	};

	cr_expect_eq(toy->calls[0].wire.flags, XPT_SPEC_SAMPLED | XPT_SPEC_BY_PROGRAM | XPT_SPEC_CALLBACK);
	cr_expect_eq(call->locate, LOCATE_CALLBACK);
	cr_expect_str_eq(call->callback_of, "a");
	cr_expect_eq(call->wire.flags, XPT_SPEC_ENTRY_ONLY);
	cr_expect_eq(call->wire.success, XPT_SUCCESS_ZERO64);
	cr_expect_eq(call->wire.fetches, 2);
	cr_expect_eq(call->wire.fetch[1].meaning, XPT_MEANING_STATUS);
	cr_expect_not(call->wire.fetch[1].at_return);
	description_free(toy);
	EXPECT_ALL_REFUSED(cases);
}

/* Where a call says that its code object is. */

#define RETURN XPT_SOURCE_RETURN

#define CALL(role, code)                                                                                             \
	TOY("{\"symbol\": \"toy_run\", \"role\": \"" role "\", \"fetch\": {\"program\": \"arg9\"},\n\"code\": " code \
	    "}")

static struct description *code(const char *member)
{
	char text[1024];

	snprintf(text, sizeof(text), CALL("codeobj.load", "%s"), member);
	return parse(text);
}

static const struct xpt_fetch nothing;

static void expect_code(const struct call_spec *call, enum xpt_code_source source, unsigned int given,
			enum code_kind kind)
{
	cr_expect(call_spec_has_code(call));
	cr_expect_eq(call->code.source, source, "source %u", call->code.source);
	cr_expect_eq(call->code.given, given, "given %x", call->code.given);
	cr_expect_eq(call->code_kind, kind, "kind %u", call->code_kind);
	for (unsigned int i = 0; i < 3; i++)
		if (!(given & 1u << i))
			expect_fetch(&call->code.fetch[i], nothing, "not given");
}

Test(describe_runtime_call, none)
{
	struct description *toy = parse(
		TOY("{\"symbol\": \"a\", \"role\": \"codeobj.load\", \"fetch\": {\"program\": \"arg0\"}}"));

	cr_expect_not(call_spec_has_code(&toy->calls[0]));
	cr_expect_eq(toy->calls[0].code.given, 0);
	cr_expect_eq(toy->calls[0].code_kind, CODE_UNKNOWN);
	description_free(toy);
}

Test(describe_runtime_call, bytes)
{
	struct description *toy = code("{\"bytes\": \"arg0[8]\"}");

	expect_code(&toy->calls[0], XPT_CODE_MEMORY, 1, CODE_UNKNOWN);
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_BYTES],
		     (struct xpt_fetch){ .source = 0, .derefs = 1, .offset = { 8 } }, "bytes");
	description_free(toy);

	toy = code("{\"size\": \"arg2:u32@entry\", \"note\": [\"a\", \"b\"], \"kind\": \"neff\", "
		   "\"bytes\": \"arg12[24][16]+4\"}");
	expect_code(&toy->calls[0], XPT_CODE_MEMORY, 3, CODE_NEFF);
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_BYTES],
		     (struct xpt_fetch){ .source = 12, .derefs = 2, .offset = { 24, 16 }, .last = 4 }, "bytes");
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_SIZE], (struct xpt_fetch){ .source = 2, .type = XPT_TYPE_U32 },
		     "size");
	/* What the call fetches besides is as without it. */
	cr_expect_eq(toy->calls[0].wire.fetches, 1);
	cr_expect_eq(toy->calls[0].wire.fetch[0].source, 9);
	description_free(toy);
}

Test(describe_runtime_call, parts)
{
	struct description *toy = code(
		"{\"count\": \"arg1:u32\", \"parts\": \"arg2\", \"sizes\": \"arg3\", \"kind\": \"opencl\"}");
	const struct xpt_code_spec *spec = &toy->calls[0].code;

	expect_code(&toy->calls[0], XPT_CODE_PARTS, 7, CODE_OPENCL);
	expect_fetch(&spec->fetch[XPT_CODE_BYTES], (struct xpt_fetch){ .source = 2 }, "parts");
	expect_fetch(&spec->fetch[XPT_CODE_SIZE], (struct xpt_fetch){ .source = 3 }, "sizes");
	expect_fetch(&spec->fetch[XPT_CODE_COUNT], (struct xpt_fetch){ .source = 1, .type = XPT_TYPE_U32 }, "count");
	description_free(toy);
}

Test(describe_runtime_call, files)
{
	struct description *toy = code("{\"path\": \"arg1[0]+3:string\", \"kind\": \"onnx\"}");

	expect_code(&toy->calls[0], XPT_CODE_PATH, 1, CODE_ONNX);
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_BYTES],
		     (struct xpt_fetch){
			     .source = 1, .type = XPT_TYPE_STRING, .derefs = 1, .offset = { 0 }, .last = 3 },
		     "path");
	description_free(toy);

	toy = code("{\"descriptor\": \"arg0:s32\"}");
	expect_code(&toy->calls[0], XPT_CODE_DESCRIPTOR, 1, CODE_UNKNOWN);
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_BYTES], (struct xpt_fetch){ .source = 0, .type = XPT_TYPE_S32 },
		     "descriptor");
	description_free(toy);
}

Test(describe_runtime_call, roles)
{
	static const struct refused cases[] = {
		{ CALL("execute", "{\"bytes\": \"arg0\"}"),
		  "toy.json:8: calls[0].code: is for roles codeobj.load, program.load and program.name" },
		{ CALL("codeobj.unload", "{\"bytes\": \"arg0\"}"),
		  "toy.json:8: calls[0].code: is for roles codeobj.load, program.load and program.name" },
		{ CALL("copy", "{}"),
		  "toy.json:8: calls[0].code: is for roles codeobj.load, program.load and program.name" },
	};
	struct description *toy = parse(CALL("program.load", "{\"bytes\": \"arg0\"}"));

	expect_code(&toy->calls[0], XPT_CODE_MEMORY, 1, CODE_UNKNOWN);
	description_free(toy);
	toy = parse(TOY("{\"symbol\": \"a\", \"role\": \"program.name\", "
			"\"fetch\": {\"program\": \"arg0\", \"name\": \"arg1:string\"}, "
			"\"code\": {\"path\": \"arg1:string\"}}"));
	expect_code(&toy->calls[0], XPT_CODE_PATH, 1, CODE_UNKNOWN);
	description_free(toy);
	EXPECT_ALL_REFUSED(cases);
}

#define CASE(code, message)                                                \
	{                                                                  \
		CALL("codeobj.load", code), "toy.json:8: calls[0]" message \
	}

Test(describe_runtime_call, mistakes)
{
	static const struct refused cases[] = {
		CASE("null", ".code: must be an object"),
		CASE("\"arg0\"", ".code: must be an object"),
		CASE("{}", ".code: must have one of bytes, parts, path and descriptor"),
		CASE("{\"size\": \"arg0\"}", ".code: must have one of bytes, parts, path and descriptor"),
		CASE("{\"bytes\": \"arg0\", \"path\": \"arg0:string\"}", ".code.path: bytes is there already"),
		CASE("{\"descriptor\": \"arg0\", \"path\": \"arg0:string\"}",
		     ".code.descriptor: path is there already"),
		CASE("{\"bytes\": \"arg0\", \"count\": \"arg1\"}", ".code.count: does not go with bytes"),
		CASE("{\"bytes\": \"arg0\", \"sizes\": \"arg1\"}", ".code.sizes: does not go with bytes"),
		CASE("{\"path\": \"arg0:string\", \"size\": \"arg1\"}", ".code.size: does not go with path"),
		CASE("{\"descriptor\": \"arg0\", \"size\": \"arg1\"}", ".code.size: does not go with descriptor"),
		CASE("{\"parts\": \"arg0\", \"size\": \"arg1\"}", ".code.size: does not go with parts"),
		CASE("{\"parts\": \"arg0\", \"sizes\": \"arg1\"}", ".code: parts needs count"),
		CASE("{\"parts\": \"arg0\", \"count\": \"arg1\"}", ".code: parts needs sizes"),
		CASE("{\"bytes\": \"arg0\", \"length\": \"arg1\"}",
		     ".code.length: unknown key (known: bytes parts path descriptor size sizes count kind note)"),
		CASE("{\"bytes\": \"arg0\", \"bytes\": \"arg0\"}", ".code.bytes: is there twice"),
		CASE("{\"bytes\": 3}", ".code.bytes: must be a string"),
		CASE("{\"bytes\": null}", ".code.bytes: must be a string"),
		CASE("{\"bytes\": [\"arg0\"]}", ".code.bytes: must be a string"),
		CASE("{\"bytes\": \"arg16\"}", ".code.bytes: argument 16 is out of range (0 to 15)"),
		CASE("{\"bytes\": \"arg0[1][2][3][4]\"}", ".code.bytes: more than 3 dereferences"),
		CASE("{\"bytes\": \"arg0:string\"}", ".code.bytes: only a path can be of type string"),
		CASE("{\"bytes\": \"arg0:u32\"}", ".code.bytes: is an address, and must be of type u64"),
		CASE("{\"bytes\": \"arg0\", \"size\": \"arg1:string\"}",
		     ".code.size: only a path can be of type string"),
		CASE("{\"bytes\": \"arg0[0]@return\"}",
		     ".code.bytes: is read when the call begins, never at the return"),
		CASE("{\"bytes\": \"return\"}", ".code.bytes: is read when the call begins, never at the return"),
		CASE("{\"bytes\": \"arg0\", \"size\": \"arg1[0]@return\"}",
		     ".code.size: is read when the call begins, never at the return"),
		CASE("{\"path\": \"arg0\"}", ".code.path: must be of type string"),
		CASE("{\"descriptor\": \"arg0:string\"}", ".code.descriptor: only a path can be of type string"),
		CASE("{\"parts\": \"arg0\", \"sizes\": \"arg1:u32\", \"count\": \"arg2\"}",
		     ".code.sizes: is an address, and must be of type u64"),
		CASE("{\"bytes\": \"arg0\", \"kind\": 3}", ".code.kind: must be a string"),
		CASE("{\"bytes\": \"arg0\", \"kind\": \"unknown\"}",
		     ".code.kind: unknown kind 'unknown' (known: elf hsaco cubin fatbin bundle ptx spirv bitcode opencl neff "
		     "qpc onnx gguf hlo mlir)"),
		CASE("{\"bytes\": \"arg0\", \"kind\": \"\"}",
		     ".code.kind: unknown kind '' (known: elf hsaco cubin fatbin bundle ptx spirv bitcode opencl neff qpc "
		     "onnx gguf hlo mlir)"),
		CASE("{\"bytes\": \"arg0\", \"note\": 3}", ".code.note: must be a string, or an array of strings"),
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_runtime_call, kinds)
{
	for (int kind = CODE_UNKNOWN + 1; kind < CODE_KINDS; kind++) {
		char member[64];
		struct description *toy;

		snprintf(member, sizeof(member), "{\"bytes\": \"arg0\", \"kind\": \"%s\"}", code_kind_name(kind));
		toy = code(member);
		expect_code(&toy->calls[0], XPT_CODE_MEMORY, 1, kind);
		description_free(toy);
	}
	cr_expect_str_eq(code_kind_name(CODE_KINDS), "unknown");
	cr_expect_str_eq(code_kind_name((enum code_kind) - 1), "unknown");
}

#if defined(__x86_64__)
#define HERE "x86_64"
#define ELSEWHERE "aarch64"
#else
#define HERE "aarch64"
#define ELSEWHERE "x86_64"
#endif

Test(describe_runtime_call, architectures)
{
	struct description *toy = code("{\"bytes\": {\"" ELSEWHERE "\": \"arg1\", \"" HERE "\": \"arg6\"}, "
				       "\"size\": {\"" ELSEWHERE "\": \"arg2\"}}");

	expect_code(&toy->calls[0], XPT_CODE_MEMORY, 1, CODE_UNKNOWN);
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_BYTES], (struct xpt_fetch){ .source = 6 }, "bytes");
	description_free(toy);

	/* Where what it needs is not reported for this one, there is no code. */
	toy = code("{\"parts\": \"arg1\", \"sizes\": \"arg2\", \"count\": {\"" ELSEWHERE "\": \"arg0:u32\"}, "
		   "\"kind\": \"opencl\"}");
	cr_expect_not(call_spec_has_code(&toy->calls[0]));
	cr_expect_eq(toy->calls[0].code.given, 0);
	cr_expect_eq(toy->calls[0].code_kind, CODE_UNKNOWN);
	description_free(toy);

	/* What another one gets is checked on this one, too. */
	expect_refused(CALL("codeobj.load", "{\"path\": {\"" ELSEWHERE "\": \"arg1\"}}"),
		       "toy.json:8: calls[0].code.path." ELSEWHERE ": must be of type string");
	expect_refused(CALL("codeobj.load", "{\"path\": {\"mips\": \"arg1:string\"}}"),
		       "toy.json:8: calls[0].code.path.mips: unknown key (known: x86_64 aarch64)");
}
