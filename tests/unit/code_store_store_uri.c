/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code/store/store.h"

static const char *terminated(struct text *text)
{
	static char copy[4096];

	cr_assert(!text->error && text->length < sizeof(copy));
	memcpy(copy, text->data, text->length);
	copy[text->length] = '\0';
	text_free(text);
	return copy;
}

static const char *of_file(const char *path, __u64 offset, __u64 size)
{
	struct text text = { 0 };

	code_uri_file(&text, path, offset, size);
	return terminated(&text);
}

static const char *of_memory(__u32 pid, __u64 address, __u64 size)
{
	struct text text = { 0 };

	code_uri_memory(&text, pid, address, size);
	return terminated(&text);
}

Test(code_store_store_uri, as_rocm_writes_them)
{
	cr_assert_str_eq(of_file("/opt/kernels.hsaco", 0, 0), "file:///opt/kernels.hsaco");
	cr_assert_str_eq(of_file("/opt/kernels.hsaco", 4096, 8192), "file:///opt/kernels.hsaco#offset=4096&size=8192");
	cr_assert_str_eq(of_file("/opt/k", 0, 8192), "file:///opt/k#offset=0&size=8192");
	cr_assert_str_eq(of_file("/opt/k", 7, 0), "file:///opt/k#offset=7");
	cr_assert_str_eq(of_file("/a b/#1&%\xc3\xa9~x-y_z.q", 0, 0), "file:///a%20b/%231%26%25%C3%A9~x-y_z.q");
	cr_assert_str_eq(of_memory(123, 0x7f00, 8192), "memory://123#offset=0x7f00&size=8192");
	cr_assert_str_eq(of_memory(0x7fffffff, ~0ull, ~0ull),
			 "memory://2147483647#offset=0xffffffffffffffff&size=18446744073709551615");
}

Test(code_store_store_uri, every_byte_comes_back)
{
	struct code_uri uri;
	char path[256];

	path[0] = '/';
	for (int i = 1; i < 255; i++)
		path[i] = (char)(i + 1);
	path[255] = '\0';
	cr_assert_eq(code_uri_parse(of_file(path, 12, 34), &uri), 0);
	cr_assert_str_eq(uri.path, path);
	cr_assert(uri.offset == 12 && uri.size == 34 && !uri.pid);
	code_uri_free(&uri);
	cr_assert_null(uri.path);
	cr_assert_eq(code_uri_parse(of_memory(77, 0xfffff000, 5), &uri), 0);
	cr_assert(!uri.path && uri.pid == 77 && uri.offset == 0xfffff000 && uri.size == 5);
	cr_assert_eq(code_uri_parse("memory://77", &uri), 0);
	cr_assert_eq(code_uri_parse("memory://77#offset=16", &uri), 0);
	cr_assert_eq(uri.offset, 16);
}

Test(code_store_store_uri, what_is_none)
{
	static const char *const wrong[] = {
		"",
		"file:/a",
		"file://",
		"file://#offset=1",
		"http://a",
		"file:///a%",
		"file:///a%2",
		"file:///a%zz",
		"file:///a%00b",
		"file:///a#",
		"file:///a#size=1",
		"file:///a#offset=",
		"file:///a#offset=-1",
		"file:///a#offset= 1",
		"file:///a#offset=0x",
		"file:///a#offset=1&size=",
		"file:///a#offset=1&size=1x",
		"file:///a#offset=18446744073709551616",
		"memory://",
		"memory://0#offset=1",
		"memory://-1",
		"memory://2147483648",
		"memory://1/2",
	};
	struct code_uri uri;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert_eq(code_uri_parse(wrong[i], &uri), -EINVAL, "%s", wrong[i]);
}
