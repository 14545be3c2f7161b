/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and answers; what clients can do to a server: nothing of it harms the others, and memory and connections are bounded. */
#include "tests/unit/control_support.h"

#include <fcntl.h>
#include <malloc.h>

static int open_descriptors(void)
{
	int count = 0;

	for (int i = 0; i < 256; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

/* ---- requests and answers ---- */

Test(control_server, request_and_answer)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, "{\"xputrace\":2,\"id\":7,\"do\":\"echo\",\"text\":\"a \\\"b\\\" \xc3\xa9\",\"more\":[{}]}");
	expect(&place, client, "{\"xputrace\":2,\"id\":7,\"ok\":true,\"text\":\"a \\\"b\\\" \xc3\xa9\"}");
	send_text(client, " { \"do\" : \"nothing\", \"id\" : 9007199254740992, \"xputrace\" : 2.0 } \r\n");
	expect(&place, client,
	       "{\"xputrace\":2,\"id\":9007199254740992,\"ok\":false,\"error\":\"EOPNOTSUPP\","
	       "\"reason\":\"nothing of that \\\"name\\\"\"}");
	close(client);
	place_settle(&place);
	place_remove(&place);
}

/* Those that are sent before stay where they are until the one before was answered. */
Test(control_server, answers_can_come_later_and_keep_their_order)
{
	struct place place;
	int client, other;

	place_begin(&place);
	client = path_connect(place.path);
	other = path_connect(place.path);
	send_text(client, KEEP_REQUEST("1"));
	send_text(client, KEEP_REQUEST("2"));
	send_text(client, ECHO_REQUEST("3", "third"));
	place_settle(&place);
	cr_assert_eq(place.handled, 1, "the second comes when the first has been answered");
	send_text(other, ECHO_REQUEST("1", "other"));
	expect(&place, other, ECHO_ANSWER("1", "other"));
	cr_assert_eq(recv(client, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	answer_done(place.kept[0]);
	expect(&place, client, DONE_ANSWER("1"));
	place_settle(&place);
	cr_assert_eq(place.kept_count, 2);
	control_refuse(place.kept[1], -ENOSPC, "the disk is full");
	expect(&place, client,
	       "{\"xputrace\":2,\"id\":2,\"ok\":false,\"error\":\"ENOSPC\",\"reason\":\"the disk is full\"}");
	expect(&place, client, ECHO_ANSWER("3", "third"));
	close(client);
	close(other);
	place_remove(&place);
}

Test(control_server, packets_that_are_no_requests)
{
	static const struct {
		const char *packet, *id, *error;
	} bad[] = {
		{ "\n", "null", "EINVAL" },
		{ "x", "null", "EINVAL" },
		{ "GET / HTTP/1.1\r\n", "null", "EINVAL" },
		{ "[]", "null", "EINVAL" },
		{ "7", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"echo\"", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"echo\"}}", "null", "EINVAL" },
		{ ECHO_REQUEST("7", "one") "\n" ECHO_REQUEST("8", "two"), "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"ec\xff\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"echo\\u0000x\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"\\ud800\"}", "null", "EINVAL" },
		{ "{\"id\":7,\"do\":\"echo\"}", "7", "EINVAL" },
		{ "{\"xputrace\":\"2\",\"id\":7,\"do\":\"echo\"}", "7", "EINVAL" },
		{ "{\"xputrace\":1,\"id\":7,\"do\":\"echo\"}", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":0,\"id\":7,\"do\":\"echo\"}", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":1.5,\"id\":7,\"do\":\"echo\"}", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":1e999,\"id\":7,\"do\":\"echo\"}", "7", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":3}", "null", "EPROTONOSUPPORT" },
		{ "{\"xputrace\":2,\"do\":\"echo\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":\"7\",\"do\":\"echo\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":-1,\"do\":\"echo\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":1.5,\"do\":\"echo\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":1e300,\"do\":\"echo\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":1e999,\"do\":\"echo\"}", "null", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7}", "7", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":\"\"}", "7", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"do\":[\"echo\"]}", "7", "EINVAL" },
		{ "{\"xputrace\":2,\"id\":7,\"DO\":\"echo\"}", "7", "EINVAL" },
	};
	static const char with_null[] = "{\"xputrace\":2,\"id\":7,\"do\":\"echo\0\"}";
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		send_text(client, bad[i].packet);
		expect_refusal(&place, client, bad[i].id, bad[i].error);
	}
	send_bytes(client, with_null, sizeof(with_null) - 1);
	expect_refusal(&place, client, "null", "EINVAL");
	cr_assert_eq(place.handled, 0);
	send_text(client, ECHO_REQUEST("1", "\\\\u0000"));
	expect(&place, client, ECHO_ANSWER("1", "\\\\u0000"));
	/* An empty one is the end. */
	send_bytes(client, "", 0);
	expect_end(&place, client);
	place_remove(&place);
}

Test(control_server, a_refusal_of_a_version_names_the_one_that_is_supported)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, "{\"xputrace\":1,\"id\":1,\"do\":\"echo\"}");
	expect(&place, client,
	       "{\"xputrace\":2,\"id\":1,\"ok\":false,\"error\":\"EPROTONOSUPPORT\","
	       "\"reason\":\"version 1 of the protocol is not supported, only version 2\"}");
	close(client);
	place_remove(&place);
}

Test(control_server, nesting_is_bounded)
{
	char packet[512];
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	for (int depth = 30; depth < 35; depth++) {
		size_t length = (size_t)sprintf(packet, "{\"xputrace\":2,\"id\":1,\"do\":\"echo\",\"text\":");

		memset(packet + length, '[', (size_t)depth);
		memset(packet + length + depth, ']', (size_t)depth);
		strcpy(packet + length + 2 * depth, "}");
		send_text(client, packet);
		if (depth < 32)
			cr_assert(strstr(receive(&place, client), "\"ok\":true"));
		else
			expect_refusal(&place, client, "null", "EINVAL");
	}
	close(client);
	place_remove(&place);
}

Test(control_server, the_side_that_sends_may_end_first)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, KEEP_REQUEST("1"));
	send_text(client, ECHO_REQUEST("2", "x"));
	shutdown(client, SHUT_WR);
	place_settle(&place);
	answer_done(place.kept[0]);
	expect(&place, client, DONE_ANSWER("1"));
	expect(&place, client, ECHO_ANSWER("2", "x"));
	expect_end(&place, client);

	/* One that sends a request and goes at once is served all the same. */
	client = path_connect(place.path);
	send_text(client, KEEP_REQUEST("1"));
	close(client);
	place_settle(&place);
	cr_assert_eq(place.kept_count, 2);
	answer_done(place.kept[1]);
	expect_service(&place);
	place_remove(&place);
}

Test(control_server, answers_are_bounded_and_valid)
{
	struct place place;
	struct text *answer;
	const char *packet;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, "{\"xputrace\":2,\"id\":1,\"do\":\"long\",\"bytes\":70000}");
	expect_refusal(&place, client, "1", "EMSGSIZE");
	send_text(client, "{\"xputrace\":2,\"id\":1,\"do\":\"long\",\"bytes\":65490}");
	packet = receive(&place, client);
	cr_assert(strstr(packet, "\"ok\":true"));
	cr_assert_gt(strlen(packet), 65490);
	cr_assert(json_is_object(packet, strlen(packet)));

	send_text(client, KEEP_REQUEST("2"));
	place_settle(&place);
	answer = control_answer_begin(place.kept[0]);
	json_add_text(answer, "text", "x\xff\x01\xe2\x80y");
	json_add_unsigned(answer, "ns", 18446744073709551615u);
	control_answer_end(place.kept[0]);
	expect(&place, client,
	       "{\"xputrace\":2,\"id\":2,\"ok\":true,\"text\":\"x\xef\xbf\xbd\\u0001\xef\xbf\xbd\xef\xbf\xbdy\","
	       "\"ns\":18446744073709551615}");

	/* So are reasons. */
	send_text(client, KEEP_REQUEST("3"));
	place_settle(&place);
	{
		static char reason[CONTROL_PACKET_MAX];

		memset(reason, '\xc3', sizeof(reason) - 1);
		control_refuse(place.kept[1], -EIO, reason);
	}
	packet = receive(&place, client);
	cr_assert_lt(strlen(packet), 4 * CONTROL_REASON_MAX);
	cr_assert(json_is_object(packet, strlen(packet)));
	close(client);
	place_remove(&place);
}

Test(control_server, what_is_open_at_the_end_is_refused)
{
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	send_text(client, KEEP_REQUEST("1"));
	place_settle(&place);
	control_close(place.control);
	place.control = NULL;
	cr_assert_neq(access(place.path, F_OK), 0);
	expect(&place, client,
	       "{\"xputrace\":2,\"id\":1,\"ok\":false,\"error\":\"ESHUTDOWN\",\"reason\":\"the collector ends\"}");
	expect_end(&place, client);
	place_remove(&place);
}

/* ---- limits ---- */

Test(control_server, packets_are_bounded)
{
	static const char head[] = "{\"xputrace\":2,\"id\":1,\"do\":\"none\",\"text\":\"";
	static char packet[150000];
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	memset(packet, 'x', sizeof(packet));
	memcpy(packet, head, sizeof(head) - 1);
	memcpy(packet + CONTROL_PACKET_MAX - 2, "\"}", 2);
	send_bytes(client, packet, CONTROL_PACKET_MAX);
	expect_refusal(&place, client, "1", "EOPNOTSUPP");
	/* One byte more: what would fit in is not taken for the whole. */
	packet[CONTROL_PACKET_MAX] = ' ';
	send_bytes(client, packet, CONTROL_PACKET_MAX + 1);
	expect(&place, client,
	       "{\"xputrace\":2,\"id\":null,\"ok\":false,\"error\":\"EMSGSIZE\","
	       "\"reason\":\"the packet has more than 65536 bytes\"}");
	send_bytes(client, packet, sizeof(packet));
	expect_refusal(&place, client, "null", "EMSGSIZE");
	send_text(client, ECHO_REQUEST("2", "next"));
	expect(&place, client, ECHO_ANSWER("2", "next"));
	close(client);
	place_remove(&place);
}

Test(control_server, requests_of_clients_that_have_gone)
{
	struct place place;
	int before, client;

	place_begin(&place);
	before = open_descriptors();
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		client = path_connect(place.path);
		send_text(client, KEEP_REQUEST("1"));
		place_settle(&place);
		close(client);
		place_settle(&place);
	}
	cr_assert_eq(place.kept_count, CONTROL_CONNECTIONS_MAX);
	client = path_connect(place.path);
	expect_refusal(&place, client, "null", "EBUSY");
	expect_end(&place, client);
	answer_done(place.kept[0]);
	control_refuse(place.kept[1], -EIO, "nobody receives it");
	client = path_connect(place.path);
	send_text(client, KEEP_REQUEST("6"));
	place_settle(&place);
	cr_assert_eq(place.kept_count, CONTROL_CONNECTIONS_MAX + 1);
	for (int i = 2; i < CONTROL_CONNECTIONS_MAX; i++)
		answer_done(place.kept[i]);
	answer_done(place.kept[CONTROL_CONNECTIONS_MAX]);
	expect(&place, client, DONE_ANSWER("6"));
	cr_assert_eq(open_descriptors(), before + 2, "its two ends are left");
	close(client);
	place_remove(&place);
}

Test(control_server, a_client_that_does_not_read)
{
	static const char request[] = "{\"xputrace\":2,\"id\":1,\"do\":\"long\",\"bytes\":60000}";
	struct place place;
	int client, before;

	place_begin(&place);
	before = open_descriptors();
	client = path_connect(place.path);
	for (int i = 0; i < 100; i++)
		send_text(client, request);
	place_settle(&place);
	cr_assert_lt(place.handled, 50, "what it does not take is not made");
	cr_assert_eq(open_descriptors(), before + 1, "it is closed");
	expect_service(&place);
	close(client);

	/* One that reads what it asks for gets all. */
	place.handled = 0;
	client = path_connect(place.path);
	for (int i = 0; i < 20; i++) {
		send_text(client, request);
		cr_assert_gt(strlen(receive(&place, client)), 60000);
	}
	cr_assert_eq(place.handled, 20);
	close(client);
	place_remove(&place);
}

Test(control_server, a_thousand_connections)
{
	const struct rlimit many = { 2048, 2048 };
	static int clients[1000];
	struct place place;
	int waiting, served = 0, refused = 0;

	if (setrlimit(RLIMIT_NOFILE, &many))
		cr_skip_test("no 2,048 descriptors are allowed");
	place_begin(&place);
	waiting = path_connect(place.path);
	send_text(waiting, KEEP_REQUEST("1"));
	place_settle(&place);
	for (int i = 0; i < 1000; i++) {
		while ((clients[i] = path_connect(place.path)) < 0) {
			cr_assert_eq(errno, EAGAIN);
			control_work(place.control);
		}
	}
	place_settle(&place);
	for (int i = 0; i < 1000; i++) {
		char byte;

		if (recv(clients[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
			expect_refusal(&place, clients[i], "null", "EBUSY");
			expect_end(&place, clients[i]);
			refused++;
			continue;
		}
		send_text(clients[i], ECHO_REQUEST("1", "x"));
		expect(&place, clients[i], ECHO_ANSWER("1", "x"));
		cr_assert_geq(i, 1000 - CONTROL_CONNECTIONS_MAX, "the oldest go");
		served++;
	}
	cr_assert_eq(served, CONTROL_CONNECTIONS_MAX - 1);
	cr_assert_eq(refused, 1000 - served);
	answer_done(place.kept[0]);
	expect(&place, waiting, DONE_ANSWER("1"));
	place_remove(&place);
}

#if defined(__SANITIZE_ADDRESS__)
#define MEASURES_MEMORY 0 /* the sanitizer's allocator does not tell */
#else
#define MEASURES_MEMORY 1
#endif

Test(control_server, memory_is_bounded)
{
	const struct rlimit many = { 2048, 2048 };
	static char packet[CONTROL_PACKET_MAX];
	struct place place;
	size_t before;

	if (!MEASURES_MEMORY)
		cr_skip_test("the sanitizer's allocator does not give how much is in use");
	if (setrlimit(RLIMIT_NOFILE, &many))
		cr_skip_test("no 2,048 descriptors are allowed");
	place_begin(&place);
	memset(packet, ' ', sizeof(packet));
	memcpy(packet, KEEP_REQUEST("1"), strlen(KEEP_REQUEST("1")));
	before = mallinfo2().uordblks;
	for (int i = 0; i < 200; i++) {
		int client = path_connect(place.path);

		send_bytes(client, packet, sizeof(packet));
		place_settle(&place);
		cr_assert_leq(mallinfo2().uordblks - before, 8192, "%d clients: %zu bytes", i,
			      mallinfo2().uordblks - before);
	}
	cr_assert_eq(place.kept_count, CONTROL_CONNECTIONS_MAX);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		answer_done(place.kept[i]);
	expect_service(&place);
	place_remove(&place);
}

Test(control_server, connections_that_wait_are_not_sent_away)
{
	int clients[CONTROL_CONNECTIONS_MAX], late;
	struct place place;

	place_begin(&place);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		clients[i] = path_connect(place.path);
		send_text(clients[i], KEEP_REQUEST("1"));
		place_settle(&place);
	}
	/* What it has sent does not hide why. */
	late = path_connect(place.path);
	send_text(late, KEEP_REQUEST("1"));
	expect_refusal(&place, late, "null", "EBUSY");
	expect_end(&place, late);
	answer_done(place.kept[3]);
	expect_service(&place);
	expect(&place, clients[3], DONE_ANSWER("1"));
	expect_refusal(&place, clients[3], "null", "EBUSY");
	expect_end(&place, clients[3]);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		if (i == 3)
			continue;
		answer_done(place.kept[i]);
		expect(&place, clients[i], DONE_ANSWER("1"));
		close(clients[i]);
	}
	place_remove(&place);
}

/* The one unused for longest goes, not the one that connected first. */
Test(control_server, a_slot_that_changes_hands)
{
	int clients[CONTROL_CONNECTIONS_MAX], late;
	struct place place;

	place_begin(&place);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		clients[i] = path_connect(place.path);
		place_settle(&place);
	}
	send_text(clients[0], ECHO_REQUEST("1", "x"));
	expect(&place, clients[0], ECHO_ANSWER("1", "x"));
	late = path_connect(place.path);
	control_work(place.control);
	expect_refusal(&place, clients[1], "null", "EBUSY");
	send_text(late, ECHO_REQUEST("2", "late"));
	expect(&place, late, ECHO_ANSWER("2", "late"));
	send_text(clients[0], ECHO_REQUEST("3", "y"));
	expect(&place, clients[0], ECHO_ANSWER("3", "y"));
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		close(clients[i]);
	close(late);
	place_remove(&place);
}

Test(control_server, no_descriptor_left)
{
	struct rlimit few = { 0, 1024 };
	struct place place;
	int clients[2];

	place_begin(&place);
	place_settle(&place);
	clients[0] = path_connect(place.path);
	clients[1] = path_connect(place.path);
	few.rlim_cur = (rlim_t)clients[1] + 1;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	place_settle(&place); /* it has not always something to do */
	few.rlim_cur = 1024;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	send_text(clients[0], ECHO_REQUEST("1", "x"));
	send_text(clients[1], ECHO_REQUEST("1", "y"));
	expect(&place, clients[0], ECHO_ANSWER("1", "x"));
	expect(&place, clients[1], ECHO_ANSWER("1", "y"));
	place_remove(&place);
}

Test(control_server, descriptors_that_nobody_wants)
{
	char bytes[] = ECHO_REQUEST("1", "x");
	struct iovec part = { bytes, sizeof(bytes) - 1 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} passed = {
		.header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int)) }
	};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &passed, .msg_controllen = sizeof(passed)
	};
	struct place place;
	int client, before;

	place_begin(&place);
	client = path_connect(place.path);
	place_settle(&place);
	before = open_descriptors();
	memcpy(CMSG_DATA(&passed.header), (const int[]){ 0, 1 }, 2 * sizeof(int));
	cr_assert_eq(sendmsg(client, &message, 0), (ssize_t)part.iov_len);
	expect(&place, client, ECHO_ANSWER("1", "x"));
	cr_assert_eq(open_descriptors(), before);
	close(client);
	place_remove(&place);
}
