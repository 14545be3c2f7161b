/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/attach/launch_symbols.h"

struct call {
	struct xpt_record_call record;
	__u64 value[XPT_FETCH_MAX];
};

static struct registry *registry;
static struct launch_symbols *symbols;
static struct elf_cache files;

static void setup(void)
{
	const char *only[] = { "cudart", "hip" };

	cr_assert_eq(registry_create(NULL, &(struct registry_options){ .only = only, .only_count = 2 }, &registry), 0);
	cr_assert_eq(file_readers_start(NULL, &(struct file_search){ .registry = registry }, &files.readers), 0);
	symbols = launch_symbols_create(registry);
	cr_assert_not_null(symbols);
}

static void teardown(void)
{
	launch_symbols_free(symbols);
	file_readers_stop(files.readers);
	elf_cache_free(&files);
	registry_free(registry);
}

TestSuite(session_attach_launch_symbols, .init = setup, .fini = teardown);

/* A function, and a variable, that stand for kernels as compilers have them. */
extern void _Z24__device_stub__vectoraddPfS_(void);
void _Z24__device_stub__vectoraddPfS_(void)
{
	__asm__ volatile("nop\n\tnop"); /* the next function does not begin one byte behind */
}
extern void *_Z5scalePf;
void *_Z5scalePf = &_Z5scalePf;

static const struct xpt_spec *spec_of(const char *function)
{
	for (size_t i = 0; i < registry->spec_count; i++)
		if (!strcmp(registry->specs[i]->function, function))
			return &registry->specs[i]->wire;
	cr_assert_fail("no spec of %s", function);
	return NULL;
}

static struct xpt_record_text *look_at(pid_t tgid, const char *function, __u64 handle)
{
	const struct xpt_spec *spec = spec_of(function);
	struct call call = {
		.record = { .header = { XPT_RECORD_CALL, sizeof(call), (__u32)tgid, 2000 }, .spec = spec->index },
	};

	for (unsigned int i = 0; i < spec->fetches; i++) {
		if (spec->fetch[i].type == XPT_TYPE_STRING)
			continue;
		call.record.valid |= 1u << i;
		call.value[call.record.values++] = spec->fetch[i].meaning == XPT_MEANING_PROGRAM ? handle : 0x1111;
	}
	return launch_symbols_is_new(symbols, &call.record) ? launch_symbols_name(symbols, &files, 1234, &call.record) :
							      NULL;
}

static struct xpt_record_text *look(const char *function, const void *handle)
{
	return look_at(getpid(), function, (__u64)(uintptr_t)handle);
}

static void expect_name(const char *function, const void *handle, const char *name)
{
	struct xpt_record_text *record = look(function, handle);

	cr_assert_not_null(record, "%s", name);
	cr_expect_eq(record->header.kind, XPT_RECORD_SYMBOL);
	cr_expect_eq(record->header.tgid, (__u32)getpid());
	cr_expect_eq(record->header.time, 1234);
	cr_expect_eq(record->id, (__u64)(uintptr_t)handle);
	cr_expect_eq(record->length, strlen(name));
	cr_expect_eq(memcmp(record->text, name, strlen(name)), 0);
	free(record);
}

Test(session_attach_launch_symbols, named_once)
{
	const void *stub = (const void *)_Z24__device_stub__vectoraddPfS_;

	expect_name("cudaLaunchKernel", stub, "_Z9vectoraddPfS_");
	cr_expect_null(look("cudaLaunchKernel", stub));
	expect_name("hipLaunchKernel", &_Z5scalePf, "_Z5scalePf");
	launch_symbols_drop(symbols, getpid() + 1);
	cr_expect_null(look("cudaLaunchKernel", stub), "of another process");
	launch_symbols_drop(symbols, getpid());
	expect_name("cudaLaunchKernelExC", stub, "_Z9vectoraddPfS_");
}

Test(session_attach_launch_symbols, what_has_no_name)
{
	const char *stub = (const char *)_Z24__device_stub__vectoraddPfS_;
	char *heap = calloc(1, 100);

	cr_expect_null(look("cudaGraphLaunch", heap), "made by the runtime");
	cr_expect_null(look("cudaLaunchKernel", NULL));
	cr_expect_null(look("hipLaunchKernel", stub + 1), "within");
	cr_expect_null(look("cudaGraphExecDestroy", stub), "no launch");
	expect_name("cudaLaunchKernel", stub, "_Z9vectoraddPfS_");
	free(heap);
}

Test(session_attach_launch_symbols, no_more_than_the_limit)
{
	const void *stub = (const void *)_Z24__device_stub__vectoraddPfS_;
	pid_t nobody = 1 << 30;

	for (__u64 i = 1; i <= LAUNCH_SYMBOLS_MAX; i++)
		cr_assert_null(look_at(nobody, "hipLaunchKernel", i));
	cr_expect_null(look("cudaLaunchKernel", stub));
	launch_symbols_drop(symbols, nobody);
	expect_name("cudaLaunchKernel", stub, "_Z9vectoraddPfS_");
}
