/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/csv_text.h"

#include <criterion/criterion.h>

static void expect(void (*add)(struct text *text, const char *string), const char *string, const char *expected)
{
	struct text text = { 0 };

	add(&text, string);
	cr_expect_eq(text.length, strlen(expected), "%.*s is not %s", (int)text.length, text.data, expected);
	cr_expect_arr_eq(text.data ?: "", expected, text.length, "%.*s is not %s", (int)text.length, text.data,
			 expected);
	text_free(&text);
}

Test(report_trace_csv_text, quotes_only_where_needed)
{
	void (*const add[])(struct text *, const char *) = { csv_string, csv_line };

	for (size_t i = 0; i < 2; i++) {
		expect(add[i], "/fc/Gemm", "/fc/Gemm");
		expect(add[i], "", "");
		expect(add[i], NULL, "");
		expect(add[i], "a,b", "\"a,b\"");
		expect(add[i], "say \"x\"", "\"say \"\"x\"\"\"");
		expect(add[i], "=1+1", "'=1+1");
		expect(add[i], "'=1", "''=1");
		expect(add[i], "a=1", "a=1");
		expect(add[i], "a\033[2J\x7f", "a\\x1b[2J\\x7f");
		expect(add[i], "bad\xff\xc3", "bad\\xff\\xc3");
		expect(add[i], "caf\303\251", "caf\303\251");
	}
}

Test(report_trace_csv_text, line_ends)
{
	expect(csv_string, "a\nb\r", "\"a\nb\r\"");
	expect(csv_line, "a\nb\r", "a\\x0ab\\x0d");
	expect(csv_line, "\n,", "\"'\\x0a,\"");
}
