/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe_support.h"

/* As they stand in the comments of wire.h and in FORMAT.md. */
static const char *const roles[] = {
	[1] = "program.load",	 [2] = "program.name",	[3] = "program.unload",	 [4] = "execute",
	[5] = "enqueue",	 [6] = "wait",		[7] = "launch",		 [8] = "copy",
	[9] = "alloc",		 [10] = "free",		[11] = "select",	 [12] = "region.begin",
	[13] = "region.end",	 [14] = "codeobj.load", [15] = "codeobj.unload", [16] = "resolve",
	[17] = "table",		 [18] = "loader",	[19] = "operator",	 [21] = "region.name",
	[22] = "region.release", [23] = "region.print", [24] = "region",
};

static const char *const meanings[] = {
	[1] = "program",   [2] = "key",	      [3] = "name",	      [4] = "size",	  [5] = "core",
	[6] = "stream",	   [7] = "status",    [8] = "parent",	      [9] = "address",	  [10] = "count",
	[11] = "length",   [12] = "object",   [13] = "class",	      [14] = "inference", [15] = "tokens",
	[16] = "position", [17] = "sequence", [18] = "next_sequence",
};

Test(describe_runtime_names, both_ways)
{
	for (int i = 1; i <= 24; i++) {
		if (!roles[i])
			continue; /* has no name */
		cr_expect_str_eq(role_name(i), roles[i]);
		cr_expect_eq(role_from_name(roles[i]), i);
	}
	for (int i = 1; i <= 14; i++) {
		cr_expect_str_eq(meaning_name(i), meanings[i]);
		cr_expect_eq(meaning_from_name(meanings[i]), i);
	}
}

Test(describe_runtime_names, code_sources)
{
	cr_expect_str_eq(code_source_name(XPT_CODE_MEMORY), "bytes");
	cr_expect_str_eq(code_source_name(XPT_CODE_PARTS), "parts");
	cr_expect_str_eq(code_source_name(XPT_CODE_PATH), "path");
	cr_expect_str_eq(code_source_name(XPT_CODE_DESCRIPTOR), "descriptor");
}

Test(describe_runtime_names, unknown)
{
	cr_expect_str_eq(code_source_name(XPT_CODE_NONE), "unknown");
	cr_expect_str_eq(code_source_name(5), "unknown");
	cr_expect_str_eq(role_name(0), "unknown");
	cr_expect_str_eq(role_name(29), "unknown");
	cr_expect_str_eq(role_name(-1), "unknown");
	cr_expect_str_eq(meaning_name(0), "unknown");
	cr_expect_str_eq(meaning_name(24), "unknown");
	cr_expect_eq(role_from_name("Execute"), -ENOENT);
	cr_expect_eq(role_from_name(""), -ENOENT);
	cr_expect_eq(role_from_name("unknown"), -ENOENT);
	cr_expect_eq(meaning_from_name("programs"), -ENOENT);
}
