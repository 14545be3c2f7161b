/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/session_control.h"

#include "base/json.h"

Test(session_control, request_and_answer)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client,
		  "{\"xputrace\":1,\"id\":7,\"do\":\"echo\",\"text\":\"a \\\"b\\\" \xc3\xa9\",\"more\":[{}]}\n");
	expect(&place, client, "{\"xputrace\":1,\"id\":7,\"ok\":true,\"text\":\"a \\\"b\\\" \xc3\xa9\"}");
	send_text(client, " { \"do\" : \"nothing\", \"id\" : 9007199254740992, \"xputrace\" : 1.0 } \r\n");
	expect(&place, client,
	       "{\"xputrace\":1,\"id\":9007199254740992,\"ok\":false,\"error\":\"EOPNOTSUPP\","
	       "\"reason\":\"nothing of that \\\"name\\\"\"}");
	close(client);
	place_settle(&place);
	cr_assert_eq(control_due(place.control), CONTROL_NEVER);
	place_remove(&place);
}

Test(session_control, answers_can_come_later_and_keep_their_order)
{
	struct place place;
	int client, other;

	place_begin(&place);
	client = path_connect(place.path);
	other = path_connect(place.path);
	send_text(client, KEEP_LINE("1") KEEP_LINE("2") ECHO_LINE("3", "third") "{\"xputrace\":1,\"id\":4");
	place_settle(&place);
	cr_assert_eq(place.handled, 1, "the second comes when the first has been answered");
	send_text(other, ECHO_LINE("1", "other"));
	expect(&place, other, ECHO_ANSWER("1", "other"));
	cr_assert_eq(recv(client, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	control_answer(place.kept[0], NULL);
	expect(&place, client, DONE_ANSWER("1"));
	place_settle(&place);
	cr_assert_eq(place.kept_count, 2);
	control_refuse(place.kept[1], -ENOSPC, "the disk is full");
	expect(&place, client,
	       "{\"xputrace\":1,\"id\":2,\"ok\":false,\"error\":\"ENOSPC\",\"reason\":\"the disk is full\"}");
	expect(&place, client, ECHO_ANSWER("3", "third"));
	send_text(client, ",\"do\":\"echo\"}\n");
	expect(&place, client, DONE_ANSWER("4"));
	close(client);
	close(other);
	place_remove(&place);
}

Test(session_control, lines_that_are_no_requests)
{
	static const struct {
		const char *line, *id, *error;
	} bad[] = {
		{ "\n", "null", "EINVAL" },
		{ "x\n", "null", "EINVAL" },
		{ "GET / HTTP/1.1\r\n", "null", "EINVAL" },
		{ "[]\n", "null", "EINVAL" },
		{ "7\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"echo\"\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"echo\"}}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"ec\xff\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"echo\\u0000x\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"\\ud800\"}\n", "null", "EINVAL" },
		{ "{\"id\":7,\"do\":\"echo\"}\n", "7", "EINVAL" },
		{ "{\"xputrace\":\"1\",\"id\":7,\"do\":\"echo\"}\n", "7", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"echo\"}\n", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":0,\"id\":7,\"do\":\"echo\"}\n", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":1.5,\"id\":7,\"do\":\"echo\"}\n", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":1e999,\"id\":7,\"do\":\"echo\"}\n", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":2}\n", "null", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":1,\"do\":\"echo\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":\"7\",\"do\":\"echo\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":-1,\"do\":\"echo\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":1.5,\"do\":\"echo\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":1e300,\"do\":\"echo\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":1e999,\"do\":\"echo\"}\n", "null", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7}\n", "7", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"\"}\n", "7", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":[\"echo\"]}\n", "7", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"DO\":\"echo\"}\n", "7", "EINVAL" },
	};
	static const char with_null[] = "{\"xputrace\":1,\"id\":7,\"do\":\"echo\0\"}\n";
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		send_text(client, bad[i].line);
		expect_refusal(&place, client, bad[i].id, bad[i].error);
	}
	send_bytes(client, with_null, sizeof(with_null) - 1);
	expect_refusal(&place, client, "null", "EINVAL");
	cr_assert_eq(place.handled, 0);
	send_text(client, ECHO_LINE("1", "\\\\u0000"));
	expect(&place, client, ECHO_ANSWER("1", "\\\\u0000"));
	close(client);
	place_remove(&place);
}

Test(session_control, a_version_that_is_not_known_hears_which_one_is)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, "{\"xputrace\":2,\"id\":1,\"do\":\"echo\"}\n");
	expect(&place, client,
	       "{\"xputrace\":1,\"id\":1,\"ok\":false,\"error\":\"EPROTONOSUPPORT\","
	       "\"reason\":\"version 2 of the protocol is not known here, only version 1\"}");
	close(client);
	place_remove(&place);
}

Test(session_control, nesting_is_bounded)
{
	char line[512];
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	for (int depth = 30; depth < 35; depth++) {
		size_t length = (size_t)sprintf(line, "{\"xputrace\":1,\"id\":1,\"do\":\"echo\",\"text\":");

		memset(line + length, '[', (size_t)depth);
		memset(line + length + depth, ']', (size_t)depth);
		strcpy(line + length + 2 * depth, "}\n");
		send_text(client, line);
		if (depth < 32)
			cr_assert(strstr(hear(&place, client), "\"ok\":true"));
		else
			expect_refusal(&place, client, "null", "EINVAL");
	}
	close(client);
	place_remove(&place);
}

Test(session_control, where_a_line_ends)
{
	char *bytes = malloc(CONTROL_LINE_MAX + 1);
	struct text line = { 0 };
	enum control_line state;

	memset(bytes, 'x', CONTROL_LINE_MAX + 1);
	cr_assert_eq(control_line_take(&line, bytes, CONTROL_LINE_MAX + 1, &state), CONTROL_LINE_MAX);
	cr_assert_eq(state, CONTROL_LINE_TOO_LONG);
	text_clear(&line, 0);
	bytes[CONTROL_LINE_MAX - 1] = '\n';
	cr_assert_eq(control_line_take(&line, bytes, 1, &state), 1);
	cr_assert_eq(state, CONTROL_LINE_OPEN);
	cr_assert_eq(control_line_take(&line, bytes + 1, CONTROL_LINE_MAX, &state), CONTROL_LINE_MAX - 1);
	cr_assert_eq(state, CONTROL_LINE_COMPLETE);
	cr_assert_eq(line.length, CONTROL_LINE_MAX - 1);
	cr_assert_eq(line.data[line.length], '\0');
	text_free(&line);
	free(bytes);
}

/* Answers nest no deeper than lines may: what is written can be read. */
Test(session_control, how_deep_answers_nest)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	for (int depth = JSON_DEPTH_MAX - 2; depth <= JSON_DEPTH_MAX + 1; depth++) {
		cJSON *more = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(more, "list");

		for (int i = 1; i < depth - 1; i++) {
			cJSON *inner = cJSON_CreateArray();

			cJSON_AddItemToArray(list, inner);
			list = inner;
		}
		send_text(client, KEEP_LINE("1"));
		place_settle(&place);
		control_answer(place.kept[place.kept_count - 1], more);
		if (depth <= JSON_DEPTH_MAX) {
			const char *line = hear(&place, client);

			cr_assert(strstr(line, "\"ok\":true") && json_is_object(line, strlen(line)), "%s", line);
		} else {
			expect_refusal(&place, client, "1", "EMSGSIZE");
		}
	}
	close(client);
	place_remove(&place);
}

Test(session_control, byte_by_byte)
{
	static const char lines[] = ECHO_LINE("1", "one") ECHO_LINE("2", "two");
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	for (size_t i = 0; i < sizeof(lines) - 1; i++) {
		send_bytes(client, lines + i, 1);
		place_settle(&place);
	}
	expect(&place, client, ECHO_ANSWER("1", "one"));
	expect(&place, client, ECHO_ANSWER("2", "two"));
	close(client);
	place_remove(&place);
}

Test(session_control, the_side_that_sends_may_end_first)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, KEEP_LINE("1") ECHO_LINE("2", "x"));
	shutdown(client, SHUT_WR);
	place_settle(&place);
	control_answer(place.kept[0], NULL);
	expect(&place, client, DONE_ANSWER("1"));
	expect(&place, client, ECHO_ANSWER("2", "x"));
	expect_end(&place, client);

	client = path_connect(place.path);
	send_text(client, ECHO_LINE("1", "x") "{\"xputrace\":1");
	shutdown(client, SHUT_WR);
	expect(&place, client, ECHO_ANSWER("1", "x"));
	expect_refusal(&place, client, "null", "EINVAL");
	expect_end(&place, client);

	/* One that asks and goes at once is served all the same. */
	client = path_connect(place.path);
	send_text(client, KEEP_LINE("1"));
	close(client);
	place_settle(&place);
	cr_assert_eq(place.kept_count, 2);
	control_answer(place.kept[1], NULL);
	cr_assert_eq(control_due(place.control), CONTROL_NEVER);
	place_remove(&place);
}

Test(session_control, answers_are_bounded_and_valid)
{
	struct place place;
	const char *line;
	cJSON *more;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, "{\"xputrace\":1,\"id\":1,\"do\":\"long\",\"bytes\":70000}\n");
	expect_refusal(&place, client, "1", "EMSGSIZE");
	send_text(client, "{\"xputrace\":1,\"id\":1,\"do\":\"long\",\"bytes\":65490}\n");
	line = hear(&place, client);
	cr_assert(strstr(line, "\"ok\":true"));
	cr_assert_leq(strlen(line), CONTROL_LINE_MAX - 1);

	send_text(client, KEEP_LINE("2"));
	place_settle(&place);
	more = cJSON_CreateObject();
	cJSON_AddStringToObject(more, "na\nme", "x\xff\x01\xe2\x80y");
	cJSON_AddNumberToObject(more, "id", 99);
	cJSON_AddFalseToObject(more, "ok");
	cJSON_AddNumberToObject(more, "time", 1234567890123456789.0);
	cJSON_AddNumberToObject(more, "ns", 9007199254740991.0);
	cJSON_AddNumberToObject(more, "ratio", -0.25);
	cJSON_AddNullToObject(more, "none");
	cJSON_AddItemToObject(more, "list", cJSON_CreateIntArray((const int[]){ 1, -2 }, 2));
	control_answer(place.kept[0], more);
	expect(&place, client,
	       "{\"xputrace\":1,\"id\":2,\"ok\":true,\"na\\u000ame\":\"x\xef\xbf\xbd\\u0001\xef\xbf\xbd\xef\xbf\xbdy\","
	       "\"time\":1.23456789012e+18,\"ns\":9007199254740991,\"ratio\":-0.25,\"none\":null,\"list\":[1,-2]}");
	close(client);
	place_remove(&place);
}

Test(session_control, what_is_open_at_the_end_is_refused)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, KEEP_LINE("1"));
	place_settle(&place);
	control_close(place.control);
	place.control = NULL;
	cr_assert_neq(access(place.path, F_OK), 0);
	expect(&place, client,
	       "{\"xputrace\":1,\"id\":1,\"ok\":false,\"error\":\"ESHUTDOWN\",\"reason\":\"the collector ends\"}");
	expect_end(&place, client);
	place_remove(&place);
}
