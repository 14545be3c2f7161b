/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include "code/format/object.h"

/* As they stand in codeobj.h. */
static const char *const names[] = {
	"unknown", "elf",    "hsaco", "cubin", "fatbin", "bundle", "ptx", "spirv",
	"bitcode", "opencl", "neff",  "qpc",   "onnx",	 "gguf",   "hlo", "mlir",
};

Test(code_format_kind, both_ways)
{
	cr_assert_eq(sizeof(names) / sizeof(names[0]), CODE_KINDS);
	for (unsigned int i = 0; i < CODE_KINDS; i++) {
		cr_expect_str_eq(code_kind_name((enum code_kind)i), names[i]);
		cr_expect_eq(code_kind_from_name(names[i]), i);
	}
	cr_expect_str_eq(code_kind_name(CODE_KINDS), "unknown");
	cr_expect_eq(code_kind_from_name("ELF"), CODE_UNKNOWN);
	cr_expect_eq(code_kind_from_name(""), CODE_UNKNOWN);
}
