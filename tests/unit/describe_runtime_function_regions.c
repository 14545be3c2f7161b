/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/function_regions.h"
#include "describe_support.h"

Test(describe_runtime_function_regions, calls_of_a_runtime)
{
	static const char *const regions[] = { "libdecode.so*:decode_*", "/opt/a \"b\"/app:ns::Class::run" };
	struct description *function;

	cr_assert_eq(function_regions_describe(NULL, regions, 2, &function), 0);
	cr_expect_str_eq(function->name, "function");
	cr_assert_eq(function->call_count, 2);
	cr_expect_eq(function->calls[0].locate, LOCATE_SYMBOL);
	cr_expect_str_eq(function->calls[0].file, "libdecode.so*");
	cr_expect_str_eq(function->calls[0].symbols[0], "decode_*");
	cr_expect_eq(function->calls[0].wire.role, XPT_ROLE_REGION);
	cr_expect_eq(function->calls[0].wire.fetches, 0);
	cr_expect(function->calls[0].wire.flags & XPT_SPEC_ENTRY_ONLY);
	cr_expect_str_eq(function->calls[1].file, "/opt/a \"b\"/app");
	cr_expect_str_eq(function->calls[1].symbols[0], "ns::Class::run");
	description_free(function);
}

Test(describe_runtime_function_regions, mistakes)
{
	static const char *const mistakes[] = { "", "decode", "decode:", ":decode", "app::run", "app:a b", "app:f@V_1" };

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct description *function = NULL;

		cr_expect_eq(function_regions_describe(NULL, &mistakes[i], 1, &function), -EINVAL, "%s", mistakes[i]);
	}
}
