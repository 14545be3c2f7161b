/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptions that are shipped: that each is sane, and, for the functions that matter most, that they say what the
 * runtimes' own headers say: argument positions, struct offsets and status values are written here a second time, as
 * values.
 */
#include <stdlib.h>

#include "describe/reader/collection.h"
#include "describe_support.h"

#define RETURN XPT_SOURCE_RETURN

Test(describe_runtimes, all_are_there)
{
	static const char *const names[] = {
		"onnxruntime", "opencl",     "cuda", "cudart", "hip",  "hsa",	   "nrt",    "qaic",
		"vaccel",      "level_zero", "ggml", "llama",  "pjrt", "libtorch", "region",
	};
	struct registry *registry = shipped_runtimes();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_not_null(registry_find(registry, names[i]), "%s", names[i]);
	cr_expect_eq(registry->runtime_count, sizeof(names) / sizeof(names[0]));
	registry_free(registry);
}

/* What embed.sh wrote has the bytes of the file, and file and runtime have the same name. */
Test(describe_runtimes, embedded)
{
	for (size_t i = 0; i < builtin_file_count; i++) {
		const struct builtin_file *file = &builtin_files[i];
		struct description *description;
		char name[64];

		cr_assert_eq(description_parse(NULL, file->name, file->text, file->length, &description), 0, "%s",
			     file->name);
		snprintf(name, sizeof(name), "%s.json", description->name);
		cr_expect_str_eq(file->name, name);
		cr_expect_eq(file->text[0], '{');
		cr_expect_eq(file->text[file->length - 1], '\n');
		description_free(description);
	}
}

static bool has(const struct xpt_spec *spec, enum xpt_meaning meaning)
{
	for (unsigned int i = 0; i < spec->fetches; i++)
		if (spec->fetch[i].meaning == meaning)
			return true;
	return false;
}

/* Where a result is returned in memory; on x86-64 that is the first argument. */
#ifdef __x86_64__
#define RESULT_ADDRESS 0
#else
#define RESULT_ADDRESS XPT_SOURCE_RESULT
#endif

static void check_spec(const struct call_spec *call, const char *runtime)
{
	const struct xpt_spec *spec = &call->wire;
	unsigned int meanings = 0;

	cr_expect_neq(call->function[0], '\0');
	if (call->locate == LOCATE_METHOD || call->locate == LOCATE_OPERATORS) {
		cr_expect_eq(spec->role, XPT_ROLE_OPERATOR);
		cr_expect_eq(spec->fetches, 4);
		return;
	}
	cr_expect(spec->role >= XPT_ROLE_PROGRAM_LOAD && spec->role <= XPT_ROLE_FOLLOW);
	cr_expect(spec->role <= XPT_ROLE_RESOLVE || spec->role >= XPT_ROLE_REGION_NAME, "internal");
	cr_assert_leq(spec->fetches, XPT_FETCH_MAX, "%s %s", runtime, call->function);
	for (unsigned int i = 0; i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		cr_expect(fetch->source <= 15 || fetch->source == RETURN || fetch->source == RESULT_ADDRESS ||
			  fetch->source == XPT_SOURCE_CONSTANT);
		cr_expect_leq(fetch->derefs, XPT_DEREF_MAX);
		cr_expect_not(meanings & 1u << fetch->meaning, "%s %s: twice", runtime, call->function);
		meanings |= 1u << fetch->meaning;
		cr_expect_eq(fetch->type == XPT_TYPE_STRING, fetch->meaning == XPT_MEANING_NAME);
		if (fetch->source == RETURN)
			cr_expect(fetch->at_return);
		if (fetch->meaning == XPT_MEANING_PROGRAM)
			cr_expect_eq(i, 0, "%s %s: the program is not first", runtime, call->function);
		/* At the entry a pointer behind an out argument holds anything. */
		if (fetch->at_return && fetch->source != RETURN && fetch->meaning != XPT_MEANING_KEYS)
			cr_expect_geq(fetch->derefs, 1, "%s %s", runtime, call->function);
		if (spec->flags & XPT_SPEC_ENTRY_ONLY)
			cr_expect_not(fetch->at_return);
	}
	cr_expect_eq(call->has_status, has(spec, XPT_MEANING_STATUS));
	if (spec->flags & XPT_SPEC_BY_PROGRAM)
		cr_expect(spec->fetch[0].meaning == XPT_MEANING_PROGRAM && !spec->fetch[0].at_return);
}

Test(describe_runtimes, every_spec_is_sane)
{
	struct registry *registry = shipped_runtimes();

	for (size_t i = 0; i < registry->spec_count; i++)
		check_spec(registry->specs[i], registry->spec_runtime[i]->name);
	for (size_t i = 0; i < registry->runtime_count; i++) {
		const struct description *runtime = registry->runtimes[i];

		if (runtime->call_count && runtime->calls[0].locate == LOCATE_PROBE)
			continue; /* of no library: its notes tell it */
		cr_expect_geq(runtime->library_count, 1, "%s", runtime->name);
		cr_expect(runtime->identify_count || runtime->table.accessor);
	}
	registry_free(registry);
}

/* One value as the runtime's interface has it. */
struct wanted_fetch {
	enum xpt_meaning meaning;
	int source;
	enum xpt_fetch_type type;
	bool at_return;
	int derefs;
	int offset[2], last;
};

/* Values: an argument, the return, what an out argument points to, a field of a struct that an argument points to. */
#define ARGUMENT(meaning, n)                                                  \
	{                                                                     \
		XPT_MEANING_##meaning, n, XPT_TYPE_U64, false, 0, { 0, 0 }, 0 \
	}
#define NARROW(meaning, n, type)                                                 \
	{                                                                        \
		XPT_MEANING_##meaning, n, XPT_TYPE_##type, false, 0, { 0, 0 }, 0 \
	}
#define RESULT(meaning)                                                           \
	{                                                                         \
		XPT_MEANING_##meaning, RETURN, XPT_TYPE_U64, true, 0, { 0, 0 }, 0 \
	}
#define OUT(meaning, n)                                                      \
	{                                                                    \
		XPT_MEANING_##meaning, n, XPT_TYPE_U64, true, 1, { 0, 0 }, 0 \
	}
#define FIELD(meaning, n, at)                                                  \
	{                                                                      \
		XPT_MEANING_##meaning, n, XPT_TYPE_U64, false, 1, { at, 0 }, 0 \
	}
#define OUT_FIELD(meaning, n, at)                                             \
	{                                                                     \
		XPT_MEANING_##meaning, n, XPT_TYPE_U64, true, 1, { at, 0 }, 0 \
	}
#define NAME(n)                                                             \
	{                                                                   \
		XPT_MEANING_NAME, n, XPT_TYPE_STRING, false, 0, { 0, 0 }, 0 \
	}
#define STATUS32                                                               \
	{                                                                      \
		XPT_MEANING_STATUS, RETURN, XPT_TYPE_S32, true, 0, { 0, 0 }, 0 \
	}
#define STATUS64                                                               \
	{                                                                      \
		XPT_MEANING_STATUS, RETURN, XPT_TYPE_U64, true, 0, { 0, 0 }, 0 \
	}

static const struct {
	const char *runtime, *function;
	enum xpt_role role;
	enum xpt_success success;
	struct wanted_fetch fetch[XPT_FETCH_MAX]; /* in any order; the first without a meaning ends them */
} wanted[] = {
	{ "nrt",
	  "nrt_load",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 4),
	    ARGUMENT(SIZE, 1),
	    NARROW(CORE, 2, S32),
	    STATUS32,
	    { XPT_MEANING_NAME, 0, XPT_TYPE_STRING, false, 0, { 0, 0 }, 220 } } },
	{ "nrt",
	  "nrt_load_collectives",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 6),
	    ARGUMENT(SIZE, 1),
	    NARROW(CORE, 2, S32),
	    STATUS32,
	    { XPT_MEANING_NAME, 0, XPT_TYPE_STRING, false, 0, { 0, 0 }, 220 } } },
	{ "nrt", "nrt_execute", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO32, { ARGUMENT(PROGRAM, 0), STATUS32 } },
	{ "nrt", "nrt_unload", XPT_ROLE_PROGRAM_UNLOAD, XPT_SUCCESS_ZERO32, { ARGUMENT(PROGRAM, 0), STATUS32 } },
	{ "nrt",
	  "nrta_execute_schedule",
	  XPT_ROLE_ENQUEUE,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0), OUT(KEY, 5), NARROW(STREAM, 3, S32), STATUS32 } },
	{ "nrt",
	  "nrta_is_completed",
	  XPT_ROLE_WAIT,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(KEY, 0), STATUS32, { XPT_MEANING_COUNT, 1, XPT_TYPE_U8, true, 1, { 0, 0 }, 0 } } },
	{ "nrt",
	  "nrt_tensor_allocate",
	  XPT_ROLE_ALLOC,
	  XPT_SUCCESS_ZERO32,
	  { OUT(ADDRESS, 4), ARGUMENT(SIZE, 2), NARROW(CORE, 1, S32), NAME(3), STATUS32 } },
	{ "nrt", "nrt_tensor_free", XPT_ROLE_FREE, XPT_SUCCESS_ALWAYS, { FIELD(ADDRESS, 0, 0) } },
	{ "nrt",
	  "nrta_tensor_copy",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 4), NARROW(STREAM, 5, S32), OUT(KEY, 7), STATUS32 } },

	{ "qaic",
	  "qaicCreateProgram",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 1), NARROW(CORE, 3, S32), NAME(4), ARGUMENT(PARENT, 5), STATUS32 } },
	{ "qaic",
	  "qaicCreateExecObj",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 1), ARGUMENT(PARENT, 3), STATUS32 } },
	{ "qaic",
	  "qaicEnqueueExecObj",
	  XPT_ROLE_ENQUEUE,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 1), ARGUMENT(KEY, 1), ARGUMENT(STREAM, 0), STATUS32 } },
	{ "qaic", "qaicExecObjWaitForCompletion", XPT_ROLE_WAIT, XPT_SUCCESS_ZERO32, { ARGUMENT(KEY, 0), STATUS32 } },
	{ "qaic",
	  "qaicOpenQpc",
	  XPT_ROLE_CODEOBJ_LOAD,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 0), ARGUMENT(ADDRESS, 1), ARGUMENT(SIZE, 2), STATUS32 } },

	{ "onnxruntime",
	  "CreateSession",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO64,
	  { OUT(PROGRAM, 3), NAME(1), STATUS64 } },
	{ "onnxruntime",
	  "CreateSessionFromArray",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO64,
	  { OUT(PROGRAM, 4), ARGUMENT(SIZE, 2), STATUS64 } },
	{ "onnxruntime", "Run", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO64, { ARGUMENT(PROGRAM, 0), STATUS64 } },
	{ "onnxruntime", "RunWithBinding", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO64, { ARGUMENT(PROGRAM, 0), STATUS64 } },
	{ "onnxruntime",
	  "RunAsync",
	  XPT_ROLE_ENQUEUE,
	  XPT_SUCCESS_ZERO64,
	  { ARGUMENT(PROGRAM, 0), ARGUMENT(KEY, 7), ARGUMENT(CALLBACK, 8), STATUS64 } },
	{ "onnxruntime",
	  "RunAsyncCallback",
	  XPT_ROLE_WAIT,
	  XPT_SUCCESS_ZERO64,
	  { ARGUMENT(KEY, 1), ARGUMENT(STATUS, 3) } },
	{ "onnxruntime", "ReleaseSession", XPT_ROLE_PROGRAM_UNLOAD, XPT_SUCCESS_ALWAYS, { ARGUMENT(PROGRAM, 0) } },

	{ "opencl",
	  "clCreateKernel",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_NONZERO,
	  { RESULT(PROGRAM), NAME(1), ARGUMENT(PARENT, 0) } },
	{ "opencl",
	  "clEnqueueNDRangeKernel",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 1), ARGUMENT(STREAM, 0), OUT(KEY, 8), STATUS32 } },
	{ "opencl",
	  "clEnqueueReadBuffer",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 4),
	    ARGUMENT(STREAM, 0),
	    { XPT_MEANING_BLOCKING, 2, XPT_TYPE_U32, false, 0, { 0, 0 }, 0 },
	    OUT(KEY, 8),
	    STATUS32 } },
	{ "opencl",
	  "clEnqueueCopyBuffer",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 5), ARGUMENT(STREAM, 0), OUT(KEY, 8), STATUS32 } },
	{ "opencl",
	  "clWaitForEvents",
	  XPT_ROLE_WAIT,
	  XPT_SUCCESS_ZERO32,
	  { { XPT_MEANING_KEYS, 1, XPT_TYPE_U64, true, 0, { 0, 0 }, 0 },
	    { XPT_MEANING_COUNT, 0, XPT_TYPE_U32, false, 0, { 0, 0 }, 0 },
	    STATUS32 } },
	{ "opencl", "clSetEventCallback", XPT_ROLE_CALLBACK, XPT_SUCCESS_ZERO32, { ARGUMENT(CALLBACK, 2), STATUS32 } },
	{ "opencl", "event callback", XPT_ROLE_WAIT, XPT_SUCCESS_ZERO32, { ARGUMENT(KEY, 0), NARROW(STATUS, 1, S32) } },
	{ "opencl", "clFinish", XPT_ROLE_WAIT, XPT_SUCCESS_ZERO32, { ARGUMENT(STREAM, 0), STATUS32 } },
	{ "opencl", "clCreateBuffer", XPT_ROLE_ALLOC, XPT_SUCCESS_NONZERO, { RESULT(ADDRESS), ARGUMENT(SIZE, 2) } },

	{ "cuda",
	  "cuModuleGetFunction",
	  XPT_ROLE_PROGRAM_NAME,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 0), NAME(2), ARGUMENT(PARENT, 1), STATUS32 } },
	{ "cuda",
	  "cuLaunchKernel",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0), ARGUMENT(STREAM, 8), STATUS32 } },
	{ "cuda",
	  "cuLaunchKernelEx",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 1), FIELD(STREAM, 0, 32), STATUS32 } },
	{ "cuda",
	  "cuMemAlloc_v2",
	  XPT_ROLE_ALLOC,
	  XPT_SUCCESS_ZERO32,
	  { OUT(ADDRESS, 0), ARGUMENT(SIZE, 1), STATUS32 } },
	{ "cuda",
	  "cuMemcpyHtoDAsync_v2",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 2), ARGUMENT(STREAM, 3), STATUS32 } },
	{ "cuda",
	  "cuStreamWaitEvent",
	  XPT_ROLE_FOLLOW,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(KEY, 1), ARGUMENT(STREAM, 0), STATUS32 } },
	{ "cuda", "cuCtxSynchronize", XPT_ROLE_WAIT, XPT_SUCCESS_ZERO32, { STATUS32 } },
	{ "cuda", "cuGetProcAddress_v2", XPT_ROLE_RESOLVE, XPT_SUCCESS_ZERO32, { NAME(0), OUT(ADDRESS, 1), STATUS32 } },

	{ "cudart",
	  "cudaLaunchKernel",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0), ARGUMENT(STREAM, 7), STATUS32 } },
	{ "cudart",
	  "__cudaRegisterFunction",
	  XPT_ROLE_PROGRAM_NAME,
	  XPT_SUCCESS_ALWAYS,
	  { ARGUMENT(PROGRAM, 1), NAME(3), ARGUMENT(PARENT, 0) } },
	{ "cudart",
	  "cudaMemcpyAsync",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 2), ARGUMENT(STREAM, 4), STATUS32 } },
	{ "cudart", "cudaSetDevice", XPT_ROLE_SELECT, XPT_SUCCESS_ZERO32, { NARROW(CORE, 0, S32), STATUS32 } },

	{ "hip",
	  "hipModuleLaunchKernel",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0), ARGUMENT(STREAM, 8), STATUS32 } },
	{ "hip",
	  "hipLaunchKernel",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0), ARGUMENT(STREAM, 7), STATUS32 } },
	{ "hip",
	  "hipMemcpyHtoDAsync",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 2), ARGUMENT(STREAM, 3), STATUS32 } },
	{ "hip", "hipStreamSynchronize", XPT_ROLE_WAIT, XPT_SUCCESS_ZERO32, { ARGUMENT(STREAM, 0), STATUS32 } },

	{ "hsa", "hsa_signal_store_screlease", XPT_ROLE_LAUNCH, XPT_SUCCESS_ALWAYS, { ARGUMENT(ADDRESS, 0) } },
	{ "hsa",
	  "hsa_amd_memory_pool_allocate",
	  XPT_ROLE_ALLOC,
	  XPT_SUCCESS_ZERO32,
	  { OUT(ADDRESS, 3), ARGUMENT(SIZE, 1), STATUS32 } },
	{ "hsa",
	  "hsa_amd_memory_async_copy",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(SIZE, 4), ARGUMENT(KEY, 7), STATUS32 } },
	{ "hsa",
	  "hsa_executable_get_symbol_by_name",
	  XPT_ROLE_PROGRAM_NAME,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 3), NAME(1), ARGUMENT(PARENT, 0), STATUS32 } },

	{ "vaccel", "vaccel_tf_model_run", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO32, { ARGUMENT(PROGRAM, 1), STATUS32 } },
	{ "vaccel",
	  "vaccel_resource_new",
	  XPT_ROLE_PROGRAM_NAME,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 0), NAME(1), STATUS32 } },
	{ "vaccel", "vaccel_torch_sgemm", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO32, { ARGUMENT(PROGRAM, 0), STATUS32 } },
	{ "vaccel", "vaccel_opencv", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO32, { ARGUMENT(PROGRAM, 0), STATUS32 } },
	{ "vaccel", "vaccel_exec", XPT_ROLE_EXECUTE, XPT_SUCCESS_ZERO32, { ARGUMENT(PROGRAM, 0), NAME(2), STATUS32 } },
	{ "vaccel",
	  "vaccel_prof_region_start",
	  XPT_ROLE_REGION_BEGIN,
	  XPT_SUCCESS_ALWAYS,
	  { ARGUMENT(PROGRAM, 0), { XPT_MEANING_NAME, 0, XPT_TYPE_STRING, false, 1, { 0, 0 }, 0 } } },

	{ "level_zero",
	  "zeKernelCreate",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO32,
	  { OUT(PROGRAM, 2),
	    ARGUMENT(PARENT, 0),
	    STATUS32,
	    { XPT_MEANING_NAME, 1, XPT_TYPE_STRING, false, 1, { 24, 0 }, 0 } } },
	{ "level_zero",
	  "zeCommandListAppendLaunchKernel",
	  XPT_ROLE_LAUNCH,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 1), ARGUMENT(STREAM, 0), ARGUMENT(KEY, 3), STATUS32 } },
	{ "level_zero",
	  "zeMemAllocShared",
	  XPT_ROLE_ALLOC,
	  XPT_SUCCESS_ZERO32,
	  { OUT(ADDRESS, 6), ARGUMENT(SIZE, 3), STATUS32 } },
	{ "level_zero",
	  "zeMemAllocDevice",
	  XPT_ROLE_ALLOC,
	  XPT_SUCCESS_ZERO32,
	  { OUT(ADDRESS, 5), ARGUMENT(SIZE, 2), STATUS32 } },

	{ "ggml",
	  "ggml_backend_sched_graph_compute_async",
	  XPT_ROLE_EXECUTE,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0), STATUS32 } },
	{ "ggml",
	  "ggml_backend_tensor_set_async",
	  XPT_ROLE_COPY,
	  XPT_SUCCESS_ALWAYS,
	  { ARGUMENT(SIZE, 4), ARGUMENT(STREAM, 0) } },
	{ "llama",
	  "llama_model_load_from_file",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_NONZERO,
	  { RESULT(PROGRAM), NAME(0) } },
	{ "llama",
	  "llama_init_from_model",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_NONZERO,
	  { RESULT(PROGRAM), ARGUMENT(PARENT, 0) } },
#if defined(__x86_64__)
	{ "llama",
	  "llama_decode",
	  XPT_ROLE_EXECUTE,
	  XPT_SUCCESS_ZERO32,
	  { ARGUMENT(PROGRAM, 0),
	    STATUS32,
	    NARROW(TOKENS, 6, S32),
	    { XPT_MEANING_POSITION, 9, XPT_TYPE_S32, false, 1, { 0, 0 }, 0 },
	    { XPT_MEANING_SEQUENCE, 11, XPT_TYPE_S32, false, 2, { 0, 0 }, 0 },
	    { XPT_MEANING_NEXT_SEQUENCE, 11, XPT_TYPE_S32, false, 2, { 8, 0 }, 0 } } },
#endif

	{ "pjrt",
	  "PJRT_Client_Compile",
	  XPT_ROLE_PROGRAM_LOAD,
	  XPT_SUCCESS_ZERO64,
	  { OUT_FIELD(PROGRAM, 0, 48), STATUS64, { XPT_MEANING_SIZE, 0, XPT_TYPE_U64, false, 2, { 24, 24 }, 0 } } },
	{ "pjrt",
	  "PJRT_LoadedExecutable_Execute",
	  XPT_ROLE_ENQUEUE,
	  XPT_SUCCESS_ZERO64,
	  { FIELD(PROGRAM, 0, 16),
	    FIELD(COUNT, 0, 40),
	    STATUS64,
	    { XPT_MEANING_KEY, 0, XPT_TYPE_U64, true, 2, { 64, 0 }, 0 } } },
	{ "pjrt",
	  "PJRT_Executable_Name",
	  XPT_ROLE_PROGRAM_NAME,
	  XPT_SUCCESS_ZERO64,
	  { FIELD(PROGRAM, 0, 16),
	    OUT_FIELD(LENGTH, 0, 32),
	    STATUS64,
	    { XPT_MEANING_NAME, 0, XPT_TYPE_STRING, true, 1, { 24, 0 }, 0 } } },
	{ "pjrt", "PJRT_Event_Await", XPT_ROLE_WAIT, XPT_SUCCESS_ZERO64, { FIELD(KEY, 0, 16), STATUS64 } },
};

static const struct xpt_fetch *find_fetch(const struct xpt_spec *spec, enum xpt_meaning meaning)
{
	for (unsigned int i = 0; i < spec->fetches; i++)
		if (spec->fetch[i].meaning == meaning)
			return &spec->fetch[i];
	return NULL;
}

Test(describe_runtimes, functions_are_as_their_headers_say)
{
	struct registry *registry = shipped_runtimes();

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct call_spec *call = find_call(registry, wanted[i].runtime, wanted[i].function);
		unsigned int count = 0;

		cr_expect_eq(call->wire.role, wanted[i].role, "%s", wanted[i].function);
		cr_expect_eq(call->wire.success, wanted[i].success, "%s", wanted[i].function);
		for (; count < XPT_FETCH_MAX && wanted[i].fetch[count].meaning; count++) {
			const struct wanted_fetch *value = &wanted[i].fetch[count];
			const struct xpt_fetch *fetch = find_fetch(&call->wire, value->meaning);

			cr_assert_not_null(fetch, "%s: no %s", wanted[i].function, meaning_name(value->meaning));
			expect_fetch(fetch,
				     (struct xpt_fetch){ .meaning = value->meaning,
							 .source = value->source,
							 .type = value->type,
							 .at_return = value->at_return,
							 .derefs = value->derefs,
							 .offset = { value->offset[0], value->offset[1] },
							 .last = value->last },
				     wanted[i].function);
		}
		cr_expect_eq(call->wire.fetches, count, "%s: %u fetches", wanted[i].function, call->wire.fetches);
	}
	registry_free(registry);
}

Test(describe_runtimes, slots)
{
	static const struct {
		const char *runtime, *function;
		unsigned int slot;
	} slots[] = {
		{ "onnxruntime", "CreateSession", 7 },
		{ "onnxruntime", "CreateSessionFromArray", 8 },
		{ "onnxruntime", "Run", 9 },
		{ "onnxruntime", "AllocatorAlloc", 75 },
		{ "onnxruntime", "AllocatorFree", 76 },
		{ "onnxruntime", "ReleaseSession", 95 },
		{ "onnxruntime", "RunWithBinding", 133 },
		{ "onnxruntime", "CreateSessionWithPrepackedWeightsContainer", 168 },
		{ "onnxruntime", "CreateSessionFromArrayWithPrepackedWeightsContainer", 169 },
		{ "onnxruntime", "RunAsync", 260 },
		{ "onnxruntime", "CopyTensors", 386 },
		{ "pjrt", "PJRT_Event_IsReady", 6 },
		{ "pjrt", "PJRT_Event_Await", 8 },
		{ "pjrt", "PJRT_Client_Compile", 20 },
		{ "pjrt", "PJRT_Client_BufferFromHostBuffer", 22 },
		{ "pjrt", "PJRT_Executable_Destroy", 40 },
		{ "pjrt", "PJRT_Executable_Name", 41 },
		{ "pjrt", "PJRT_LoadedExecutable_Destroy", 50 },
		{ "pjrt", "PJRT_LoadedExecutable_GetExecutable", 51 },
		{ "pjrt", "PJRT_LoadedExecutable_Delete", 53 },
		{ "pjrt", "PJRT_LoadedExecutable_Execute", 55 },
		{ "pjrt", "PJRT_Executable_DeserializeAndLoad", 56 },
		{ "pjrt", "PJRT_Buffer_Destroy", 58 },
		{ "pjrt", "PJRT_Buffer_CopyToDevice", 69 },
		{ "pjrt", "PJRT_Buffer_ToHostBuffer", 70 },
		{ "pjrt", "PJRT_Buffer_CopyToMemory", 92 },
	};
	struct registry *registry = shipped_runtimes();
	const struct description *onnxruntime = registry_find(registry, "onnxruntime");
	const struct description *pjrt = registry_find(registry, "pjrt");

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		const struct call_spec *call = find_call(registry, slots[i].runtime, slots[i].function);

		cr_expect_eq(call->locate, LOCATE_SLOT);
		cr_expect_eq(call->slot, slots[i].slot, "%s", slots[i].function);
	}
	/* and five functions of the Python module, and a callback */
	cr_expect_eq(onnxruntime->call_count + pjrt->call_count, sizeof(slots) / sizeof(slots[0]) + 6);
	cr_expect_str_eq(onnxruntime->table.accessor, "OrtGetApiBase");
	cr_assert_eq(onnxruntime->table.through_count, 1);
	cr_expect_eq(onnxruntime->table.through[0], 0);
	cr_expect_eq(onnxruntime->table.slots_offset, 0);
	cr_expect_eq(onnxruntime->table.size_offset, -1);
	cr_expect_str_eq(pjrt->table.accessor, "GetPjrtApi");
	cr_expect_eq(pjrt->table.through_count, 0);
	cr_expect_eq(pjrt->table.slots_offset, 40);
	cr_expect_eq(pjrt->table.size_offset, 0);
	registry_free(registry);
}

Test(describe_runtimes, statuses)
{
	static const struct {
		const char *runtime;
		__s64 value;
		enum status_class class;
		const char *name;
	} statuses[] = {
		{ "cuda", 600, STATUS_PENDING, "CUDA_ERROR_NOT_READY" },
		{ "cuda", 700, STATUS_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ "cudart", 600, STATUS_PENDING, "cudaErrorNotReady" },
		{ "hip", 600, STATUS_PENDING, "hipErrorNotReady" },
		{ "hip", 719, STATUS_ERROR, "hipErrorLaunchFailure" },
		{ "hsa", 1, STATUS_OK, "HSA_STATUS_INFO_BREAK" },
		{ "hsa", 0x1008, STATUS_ERROR, "HSA_STATUS_ERROR_OUT_OF_RESOURCES" },
		{ "level_zero", 1, STATUS_PENDING, "ZE_RESULT_NOT_READY" },
		{ "level_zero", 0x70000001, STATUS_ERROR, "ZE_RESULT_ERROR_DEVICE_LOST" },
		{ "nrt", 5, STATUS_ERROR, "NRT_TIMEOUT" },
		{ "nrt", 1003, STATUS_ERROR, "NRT_EXEC_COMPLETED_WITH_NUM_ERR" },
		{ "nrt", 1100, STATUS_PENDING, "NRT_COLL_PENDING" },
		{ "qaic", 2, STATUS_PENDING, "QS_AGAIN" },
		{ "qaic", 300, STATUS_ERROR, "QS_DEV_ERROR" },
		{ "opencl", -5, STATUS_ERROR, "CL_OUT_OF_RESOURCES" },
		{ "opencl", -11, STATUS_ERROR, "CL_BUILD_PROGRAM_FAILURE" },
		{ "opencl", -54, STATUS_ERROR, "CL_INVALID_WORK_GROUP_SIZE" },
		{ "ggml", -1, STATUS_ERROR, "GGML_STATUS_FAILED" },
		{ "ggml", 1, STATUS_PENDING, "GGML_STATUS_ABORTED" },
		{ "llama", 1, STATUS_PENDING, "no room in the cache for the batch" },
		{ "llama", -3, STATUS_ERROR, "computation failed" },
		{ "vaccel", 95, STATUS_ERROR, "VACCEL_ENOTSUP" },
	};
	struct registry *registry = shipped_runtimes();

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		const struct description *runtime = registry_find(registry, statuses[i].runtime);
		const char *name = NULL;

		cr_expect_eq(description_status(runtime, statuses[i].value, &name), statuses[i].class, "%s %lld",
			     statuses[i].runtime, (long long)statuses[i].value);
		cr_assert_not_null(name);
		cr_expect_str_eq(name, statuses[i].name);
		cr_expect_eq(description_status(runtime, 0, &name), STATUS_OK, "%s", statuses[i].runtime);
	}
	registry_free(registry);
}

/* Runtimes that are built on each other have the same role for what is one operation. */
Test(describe_runtimes, layers_have_the_role_of_what_is_around)
{
	static const struct {
		const char *outer, *outer_function, *inner, *inner_function;
	} layers[] = {
		{ "hip", "hipMalloc", "hsa", "hsa_amd_memory_pool_allocate" },
		{ "hip", "hipFree", "hsa", "hsa_amd_memory_pool_free" },
		{ "hip", "hipMemcpy", "hsa", "hsa_amd_memory_async_copy" },
		{ "hip", "hipModuleLaunchKernel", "hsa", "hsa_signal_store_screlease" },
		{ "hip", "hipStreamSynchronize", "hsa", "hsa_signal_wait_scacquire" },
		{ "cudart", "cudaMalloc", "cuda", "cuMemAlloc_v2" },
		{ "cudart", "cudaLaunchKernel", "cuda", "cuLaunchKernel" },
		{ "cudart", "cudaMemcpyAsync", "cuda", "cuMemcpyAsync" },
		{ "llama", "llama_decode", "ggml", "ggml_backend_sched_graph_compute_async" },
		{ "ggml", "ggml_backend_sched_graph_compute", "ggml", "ggml_backend_graph_compute_async" },
		{ "vaccel", "vaccel_genop", "vaccel", "vaccel_exec" },
		{ "cuda", "cuLaunchKernel", "cuda", "cuLaunchKernel" }, /* a stub that jumps to what is resolved */
		{ "level_zero", "zeKernelCreate", "level_zero", "zeKernelCreate" }, /* loader and driver */
	};
	struct registry *registry = shipped_runtimes();

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		const struct call_spec *outer = find_call(registry, layers[i].outer, layers[i].outer_function);
		const struct call_spec *inner = find_call(registry, layers[i].inner, layers[i].inner_function);

		cr_expect_eq(outer->wire.role, inner->wire.role, "%s and %s", outer->function, inner->function);
		cr_expect(outer->wire.over & 1ull << inner->wire.runtime, "%s over %s", layers[i].outer,
			  layers[i].inner);
	}
	registry_free(registry);
}
