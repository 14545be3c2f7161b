/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/core/json.h"
#include "page/names.h"

Test(page_names, each_is_there_once)
{
	struct page_names names;
	struct text text = {};

	page_names_init(&names);
	cr_expect_eq(page_name(&names, NULL), 0);
	cr_expect_eq(page_name(&names, ""), 0);
	cr_expect_eq(page_name(&names, "b"), page_name(&names, "b"));
	cr_expect_neq(page_name(&names, "b"), page_name(&names, "c"));
	cr_expect_eq(page_thread(&names, 7, 70), page_thread(&names, 7, 70));
	cr_expect_neq(page_thread(&names, 7, 70), page_thread(&names, 8, 70));
	page_thread_named(&names, 7, 0, "server");
	page_thread_named(&names, 7, 70, "wor\"ker\xff</script>");
	text_literal(&text, "{");
	page_names_add(&text, &names);
	text_literal(&text, "}");
	cr_assert_eq(text.error, 0);
	cr_expect(json_is_object(text.data, text.length), "%.*s", (int)text.length, text.data);
	text_bytes(&text, "", 1);
	cr_expect(strstr(text.data,
			 "\"pid\":7,\"tid\":70,\"name\":\"wor\\\"ker\xef\xbf\xbd</script>\",\"process\":\"server\""),
		  "%s", text.data);
	text_free(&text);
	page_names_free(&names);
}

Test(page_names, what_is_too_much_is_nameless)
{
	struct page_names names;
	char name[32];

	page_names_init(&names);
	for (unsigned int i = 0; i < PAGE_NAMES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "%u", i);
		page_name(&names, name);
	}
	cr_expect_eq(names.name_count, PAGE_NAMES_MAX);
	cr_expect_eq(page_name(&names, "beyond"), 0);
	cr_expect_neq(page_name(&names, "17"), 0);
	for (unsigned int i = 0; i < PAGE_THREADS_MAX + 5; i++)
		page_thread(&names, 1, i + 1);
	cr_expect_eq(page_thread(&names, 2, 1), 0);
	cr_expect_eq(names.error, 0);
	page_names_free(&names);
}
