/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/columns.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void expect_time(double nanoseconds, bool precise, const char *expected)
{
	struct text text = { 0 };

	columns_format_time(&text, nanoseconds, precise);
	text_literal(&text, "\0");
	cr_assert_str_eq(text.data, expected);
	text_free(&text);
}

Test(report_table_columns, times)
{
	expect_time(0, true, "0ns");
	expect_time(-1, true, "0ns");
	expect_time(0.0 / 0.0, true, "0ns");
	expect_time(1, true, "1ns");
	expect_time(999, true, "999ns");
	expect_time(999.6, true, "1.000us");
	expect_time(1234, true, "1.234us");
	expect_time(1234, false, "1.23us");
	expect_time(9996, false, "10.0us");
	expect_time(9994, false, "9.99us");
	expect_time(12345, true, "12.35us");
	expect_time(99999, true, "100.0us");
	expect_time(1000000, true, "1.000ms");
	expect_time(1050000, false, "1.05ms");
	expect_time(999949000, false, "1.00s");
	expect_time(1.5e9, true, "1.500s");
	expect_time(123456e9, true, "123456s");
}

static void expect_bytes(__u64 bytes, const char *expected)
{
	struct text text = { 0 };

	columns_format_bytes(&text, bytes);
	text_literal(&text, "\0");
	cr_assert_str_eq(text.data, expected);
	text_free(&text);
}

Test(report_table_columns, bytes)
{
	expect_bytes(0, "0B");
	expect_bytes(1023, "1023B");
	expect_bytes(1024, "1.00KiB");
	expect_bytes(1536, "1.50KiB");
	expect_bytes(12582912, "12.0MiB");
	expect_bytes(~0ull, "16384PiB");
}

static void expect_table(struct columns *columns, size_t width, const char *expected)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	cr_assert_eq(columns_print(columns, out, width), 0);
	fclose(out);
	cr_assert_str_eq(printed, expected);
	free(printed);
}

Test(report_table_columns, alignment_cutting_hiding)
{
	struct columns columns = { .precise = true };

	columns_define(&columns, "NAME", true);
	columns_define(&columns, "WHERE", true);
	columns_define(&columns, "COUNT", false);
	columns_name(&columns, "squeezenet1.1\n");
	columns_name(&columns, "x");
	columns_count(&columns, 7);
	columns_name(&columns, "a");
	columns_name(&columns, "longer");
	columns_count(&columns, 123456);
	expect_table(&columns, 0,
		     "NAME               WHERE    COUNT\n"
		     "squeezenet1.1\\x0a  x            7\n"
		     "a                  longer  123456\n");
	cr_assert_eq(columns_least_width(&columns), 10 + 2 + 6 + 2 + 6);
	expect_table(&columns, 30,
		     "NAME            WHERE    COUNT\n"
		     "squeezenet1.1\xe2\x80\xa6  x            7\n"
		     "a               longer  123456\n");
	columns.column[1].hidden = true;
	expect_table(&columns, 1,
		     "NAME         COUNT\n"
		     "squeezene\xe2\x80\xa6       7\n"
		     "a           123456\n");
	columns_clear(&columns);
	expect_table(&columns, 0, "NAME  COUNT\n");
	columns_free(&columns);
}
