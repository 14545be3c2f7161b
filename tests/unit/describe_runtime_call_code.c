/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a call says that its code object is. */
#include "describe_support.h"

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

Test(describe_runtime_call_code, none)
{
	struct description *toy = parse(
		TOY("{\"symbol\": \"a\", \"role\": \"codeobj.load\", \"fetch\": {\"program\": \"arg0\"}}"));

	cr_expect_not(call_spec_has_code(&toy->calls[0]));
	cr_expect_eq(toy->calls[0].code.given, 0);
	cr_expect_eq(toy->calls[0].code_kind, CODE_UNKNOWN);
	description_free(toy);
}

Test(describe_runtime_call_code, bytes)
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

Test(describe_runtime_call_code, parts)
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

Test(describe_runtime_call_code, files)
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

Test(describe_runtime_call_code, roles)
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

Test(describe_runtime_call_code, mistakes)
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

Test(describe_runtime_call_code, kinds)
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

Test(describe_runtime_call_code, architectures)
{
	struct description *toy = code("{\"bytes\": {\"" ELSEWHERE "\": \"arg1\", \"" HERE "\": \"arg6\"}, "
				       "\"size\": {\"" ELSEWHERE "\": \"arg2\"}}");

	expect_code(&toy->calls[0], XPT_CODE_MEMORY, 1, CODE_UNKNOWN);
	expect_fetch(&toy->calls[0].code.fetch[XPT_CODE_BYTES], (struct xpt_fetch){ .source = 6 }, "bytes");
	description_free(toy);

	/* Where what it needs is not told for this one, there is no code. */
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
