/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the shipped descriptions say that code objects are: for every function that takes one, what the headers of the runtimes
 * say, written here a second time, as values.
 */
#include "describe_support.h"

/* One value: an argument, or a field of a struct that an argument points to, perhaps behind another pointer. */
struct wanted_value {
	int source;
	enum xpt_fetch_type type;
	int derefs;
	int offset, behind;
};

/* Argument n of a method, counted from the object, that returns its result in memory: on x86-64 an argument says where. */
#ifdef __x86_64__
#define METHOD(n) (1 + (n))
#else
#define METHOD(n) (n)
#endif

#define ARGUMENT(n)         \
	{                   \
		.source = n \
	}
#define NARROW(n, width)                              \
	{                                             \
		.source = n, .type = XPT_TYPE_##width \
	}
#define FIELD(n, at)                                   \
	{                                              \
		.source = n, .derefs = 1, .offset = at \
	}
#define FIELD_BEHIND(n, pointer, at)                                      \
	{                                                                 \
		.source = n, .derefs = 2, .offset = pointer, .behind = at \
	}
#define FIRST_OF(n)                                               \
	{                                                         \
		.source = n, .type = XPT_TYPE_STRING, .derefs = 1 \
	}

static const struct {
	const char *runtime, *function;
	enum xpt_code_source source;
	enum code_kind kind;
	unsigned int values;
	struct wanted_value value[3]; /* bytes, size, count */
} wanted[] = {
#define PATH(runtime, function, n, kind)                          \
	{                                                         \
		runtime, function, XPT_CODE_PATH, CODE_##kind, 1, \
		{                                                 \
			NARROW(n, STRING)                         \
		}                                                 \
	}
#define SIZED(runtime, function, n, size, kind)                     \
	{                                                           \
		runtime, function, XPT_CODE_MEMORY, CODE_##kind, 2, \
		{                                                   \
			ARGUMENT(n), ARGUMENT(size)                 \
		}                                                   \
	}
#define UNSIZED(runtime, function, n)                                \
	{                                                            \
		runtime, function, XPT_CODE_MEMORY, CODE_UNKNOWN, 1, \
		{                                                    \
			ARGUMENT(n)                                  \
		}                                                    \
	}
	PATH("hip", "hipModuleLoad", 1, UNKNOWN),
	UNSIZED("hip", "hipModuleLoadData", 1),
	UNSIZED("hip", "hipModuleLoadDataEx", 1),
	UNSIZED("hip", "hipModuleLoadFatBinary", 1),
	{ "hip", "__hipRegisterFatBinary", XPT_CODE_MEMORY, CODE_UNKNOWN, 1, { FIELD(0, 8) } },

	PATH("cuda", "cuModuleLoad", 1, UNKNOWN),
	UNSIZED("cuda", "cuModuleLoadData", 1),
	UNSIZED("cuda", "cuModuleLoadDataEx", 1),
	UNSIZED("cuda", "cuModuleLoadFatBinary", 1),
	UNSIZED("cuda", "cuLibraryLoadData", 1),
	PATH("cuda", "cuLibraryLoadFromFile", 1, UNKNOWN),
	{ "cudart", "__cudaRegisterFatBinary", XPT_CODE_MEMORY, CODE_UNKNOWN, 1, { FIELD(0, 8) } },

	SIZED("hsa", "hsa_code_object_reader_create_from_memory", 0, 1, UNKNOWN),
	{ "hsa", "hsa_code_object_reader_create_from_file", XPT_CODE_DESCRIPTOR, CODE_UNKNOWN, 1, { NARROW(0, S32) } },

	{ "opencl",
	  "clCreateProgramWithSource",
	  XPT_CODE_PARTS,
	  CODE_OPENCL,
	  3,
	  { ARGUMENT(2), ARGUMENT(3), NARROW(1, U32) } },
	{ "opencl",
	  "clCreateProgramWithBinary",
	  XPT_CODE_PARTS,
	  CODE_UNKNOWN,
	  3,
	  { ARGUMENT(4), ARGUMENT(3), NARROW(1, U32) } },
	SIZED("opencl", "clCreateProgramWithIL", 1, 2, UNKNOWN),

	{ "level_zero", "zeModuleCreate", XPT_CODE_MEMORY, CODE_UNKNOWN, 2, { FIELD(2, 32), FIELD(2, 24) } },

	SIZED("nrt", "nrt_load", 0, 1, NEFF),
	SIZED("nrt", "nrt_load_collectives", 0, 1, NEFF),

	SIZED("qaic", "qaicOpenQpc", 1, 2, QPC),
	PATH("qaic", "qaicOpenQpcFile", 1, QPC),

	PATH("onnxruntime", "CreateSession", 1, ONNX),
	SIZED("onnxruntime", "CreateSessionFromArray", 1, 2, ONNX),
	PATH("onnxruntime", "CreateSessionWithPrepackedWeightsContainer", 1, ONNX),
	SIZED("onnxruntime", "CreateSessionFromArrayWithPrepackedWeightsContainer", 1, 2, ONNX),
	{ "onnxruntime", "InferenceSession::Load", XPT_CODE_PATH, CODE_ONNX, 1, { FIRST_OF(METHOD(1)) } },
	{ "onnxruntime",
	  "InferenceSession::Load(bytes)",
	  XPT_CODE_MEMORY,
	  CODE_ONNX,
	  2,
	  { ARGUMENT(METHOD(1)), NARROW(METHOD(2), S32) } },

	{ "pjrt",
	  "PJRT_Client_Compile",
	  XPT_CODE_MEMORY,
	  CODE_HLO,
	  2,
	  { FIELD_BEHIND(0, 24, 16), FIELD_BEHIND(0, 24, 24) } },
	{ "pjrt",
	  "PJRT_Executable_DeserializeAndLoad",
	  XPT_CODE_MEMORY,
	  CODE_UNKNOWN,
	  2,
	  { FIELD(0, 24), FIELD(0, 32) } },

	PATH("ggml", "gguf_init_from_file", 0, GGUF),
	PATH("llama", "llama_model_load_from_file", 0, GGUF),
	{ "llama", "llama_model_load_from_splits", XPT_CODE_PATH, CODE_GGUF, 1, { FIRST_OF(0) } },

	{ "vaccel", "vaccel_resource_init_multi", XPT_CODE_PATH, CODE_UNKNOWN, 1, { FIRST_OF(1) } },
	SIZED("vaccel", "vaccel_resource_init_from_buf", 1, 2, UNKNOWN),
};
#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

Test(describe_runtimes_code, as_the_headers_say)
{
	struct registry *registry = shipped_runtimes();

	for (size_t i = 0; i < WANTED; i++) {
		const struct call_spec *call = find_call(registry, wanted[i].runtime, wanted[i].function);

		cr_expect_eq(call->code.source, wanted[i].source, "%s", wanted[i].function);
		cr_expect_eq(call->code.given, (1u << wanted[i].values) - 1, "%s", wanted[i].function);
		cr_expect_eq(call->code_kind, wanted[i].kind, "%s", wanted[i].function);
		cr_expect_eq(call->code.index, call->wire.index, "%s", wanted[i].function);
		for (unsigned int j = 0; j < wanted[i].values; j++) {
			const struct wanted_value *value = &wanted[i].value[j];

			expect_fetch(&call->code.fetch[j],
				     (struct xpt_fetch){ .source = value->source,
							 .type = value->type,
							 .derefs = value->derefs,
							 .offset = { value->offset, value->behind } },
				     wanted[i].function);
		}
	}
	registry_free(registry);
}

static bool fetches(const struct xpt_spec *spec, enum xpt_meaning meaning)
{
	for (unsigned int i = 0; i < spec->fetches; i++)
		if (spec->fetch[i].meaning == meaning)
			return true;
	return false;
}

/* No other function has code; and what loads and fetches the bytes' address or size does. */
Test(describe_runtimes_code, no_more_and_no_less)
{
	struct registry *registry = shipped_runtimes();
	size_t found = 0;

	for (size_t i = 0; i < registry->spec_count; i++) {
		const struct call_spec *call = registry->specs[i];
		const struct xpt_spec *spec = &call->wire;

		found += call_spec_has_code(call);
		if (spec->role == XPT_ROLE_CODEOBJ_LOAD || spec->role == XPT_ROLE_PROGRAM_LOAD)
			cr_expect(call_spec_has_code(call) ||
					  !(fetches(spec, XPT_MEANING_ADDRESS) || fetches(spec, XPT_MEANING_SIZE)),
				  "%s", call->function);
		else
			cr_expect_not(call_spec_has_code(call), "%s", call->function);
	}
	cr_expect_eq(found, WANTED);
	registry_free(registry);
}
