/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients can do to a server: nothing of it harms the others, and memory, connections and time are bounded. */
#include "tests/unit/session_control.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>

static int open_descriptors(void)
{
	int count = 0;

	for (int i = 0; i < 256; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

Test(session_control_limits, a_request_that_waits_has_no_time_limit)
{
	struct place place;
	int client;

	place_make(&place);
	cr_assert_eq(place_open_limited(&place, 10 * MS, 10 * MS), 0);
	client = path_connect(place.path);
	send_text(client, KEEP_LINE("1"));
	for (__u64 until = clock_monotonic() + 50 * MS; clock_monotonic() < until;)
		place_work(&place, until);
	cr_assert_eq(place.kept_count, 1);
	control_answer(place.kept[0], NULL);
	expect(&place, client, DONE_ANSWER("1"));
	expect_end(&place, client);
	place_remove(&place);
}

/* Sends what the server takes, which works meanwhile. */
static void send_all(struct place *place, int client, const char *bytes, size_t length)
{
	while (length) {
		ssize_t sent = send(client, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0) {
			cr_assert_eq(errno, EAGAIN, "%s", strerror(errno));
			place_work(place, clock_monotonic() + MS);
			continue;
		}
		bytes += sent;
		length -= (size_t)sent;
	}
}

Test(session_control_limits, lines_are_bounded)
{
	static const char head[] = "{\"xputrace\":1,\"id\":1,\"do\":\"none\",\"text\":\"";
	char *line = malloc(CONTROL_LINE_MAX + 1);
	struct place place;
	int client;

	place_begin(&place);
	client = path_connect(place.path);
	memset(line, 'x', CONTROL_LINE_MAX + 1);
	memcpy(line, head, sizeof(head) - 1);
	memcpy(line + CONTROL_LINE_MAX - 3, "\"}\n", 3);
	send_all(&place, client, line, CONTROL_LINE_MAX);
	expect_refusal(&place, client, "1", "EOPNOTSUPP");
	memcpy(line + CONTROL_LINE_MAX - 3, "x\"}\n", 4);
	send_all(&place, client, line, CONTROL_LINE_MAX + 1);
	expect_refusal(&place, client, "null", "EMSGSIZE");
	expect_end(&place, client);
	expect_service(&place);
	free(line);
	place_remove(&place);
}

Test(session_control_limits, a_flood_without_a_newline)
{
	char bytes[4096];
	struct place place;
	int client;
	size_t sent = 0;

	place_begin(&place);
	client = path_connect(place.path);
	memset(bytes, '{', sizeof(bytes));
	for (ssize_t got; sent < 1 << 24; sent += (size_t)got) {
		got = send(client, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (got < 0 && errno != EAGAIN)
			break;
		got = got < 0 ? 0 : got;
		place_work(&place, clock_monotonic() + MS);
	}
	cr_assert_lt(sent, 1 << 20);
	expect_refusal(&place, client, "null", "EMSGSIZE");
	expect_end(&place, client);
	place_remove(&place);
}

Test(session_control_limits, a_line_that_is_begun_must_end_in_time)
{
	struct place place;
	__u64 begun, ended;
	int client;

	place_make(&place);
	cr_assert_eq(place_open_limited(&place, 50 * MS, PATIENCE), 0);
	client = path_connect(place.path);
	place_settle(&place);
	begun = clock_monotonic();
	/* Bytes that come meanwhile prolong nothing. */
	while (recv(client, &(char){ 0 }, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
		cr_assert_lt(clock_monotonic(), begun + PATIENCE);
		(void)!send(client, "{", 1, MSG_NOSIGNAL);
		place_work(&place, clock_monotonic() + 5 * MS);
	}
	ended = clock_monotonic();
	cr_assert_geq(ended, begun + 50 * MS);
	cr_assert_lt(ended, begun + 1000 * MS);
	expect_refusal(&place, client, "null", "ETIMEDOUT");
	expect_end(&place, client);
	place_remove(&place);
}

Test(session_control_limits, idle_connections_end)
{
	struct place place;
	__u64 begun, due;
	int idle, client;

	place_make(&place);
	cr_assert_eq(place_open_limited(&place, PATIENCE, 50 * MS), 0);
	begun = clock_monotonic();
	idle = path_connect(place.path);
	client = path_connect(place.path);
	place_settle(&place);
	due = control_due(place.control);
	cr_assert(due >= begun + 50 * MS && due <= clock_monotonic() + 50 * MS);
	while (clock_monotonic() < begun + 30 * MS)
		place_work(&place, begun + 30 * MS);
	send_text(client, ECHO_LINE("1", "x"));
	expect(&place, client, ECHO_ANSWER("1", "x"));
	expect_end(&place, idle);
	cr_assert_geq(clock_monotonic(), due);
	expect_end(&place, client);
	cr_assert_geq(clock_monotonic(), begun + 80 * MS, "a request prolongs it");
	place_remove(&place);
}

Test(session_control_limits, requests_of_clients_that_have_gone)
{
	struct place place;
	int before, client;

	place_begin(&place);
	before = open_descriptors();
	for (int i = 0; i < CONTROL_REQUESTS_MAX; i++) {
		client = path_connect(place.path);
		send_text(client, KEEP_LINE("1"));
		place_settle(&place);
		close(client);
		place_settle(&place);
	}
	cr_assert_eq(place.kept_count, CONTROL_REQUESTS_MAX);
	cr_assert_eq(open_descriptors(), before);
	client = path_connect(place.path);
	send_text(client, KEEP_LINE("5"));
	expect_refusal(&place, client, "5", "EBUSY");
	control_answer(place.kept[0], cJSON_CreateObject());
	control_refuse(place.kept[1], -EIO, "nobody hears it");
	send_text(client, KEEP_LINE("6"));
	place_settle(&place);
	cr_assert_eq(place.kept_count, CONTROL_REQUESTS_MAX + 1);
	control_answer(place.kept[CONTROL_REQUESTS_MAX], NULL);
	expect(&place, client, DONE_ANSWER("6"));
	close(client);
	place_remove(&place);
}

Test(session_control_limits, a_client_that_does_not_read)
{
	static const char request[] = "{\"xputrace\":1,\"id\":1,\"do\":\"long\",\"bytes\":60000}\n";
	struct place place;
	__u64 begun, due;
	int client, sent = 0, before;

	place_make(&place);
	cr_assert_eq(place_open_limited(&place, 50 * MS, PATIENCE), 0);
	before = open_descriptors();
	client = path_connect(place.path);
	while (sent < 100) {
		send_text(client, request);
		sent++;
	}
	place_settle(&place);
	begun = clock_monotonic();
	cr_assert_lt(place.handled, 50, "what it does not take is not made");
	cr_assert_eq(open_descriptors(), before + 2);
	due = control_due(place.control);
	cr_assert_leq(due, begun + 50 * MS);
	expect_service(&place);
	while (open_descriptors() > before + 1) {
		cr_assert_lt(clock_monotonic(), begun + PATIENCE);
		place_work(&place, clock_monotonic() + 5 * MS);
	}
	cr_assert_geq(clock_monotonic(), due);
	cr_assert_lt(clock_monotonic(), begun + 1000 * MS);
	close(client);

	/* One that reads slowly, but in time, gets all. */
	place.handled = 0;
	client = path_connect(place.path);
	for (int i = 0; i < 20; i++)
		send_text(client, request);
	for (int i = 0; i < 20; i++)
		cr_assert_gt(strlen(hear(&place, client)), 60000);
	cr_assert_eq(place.handled, 20);
	close(client);
	place_remove(&place);
}

Test(session_control_limits, a_thousand_connections)
{
	const struct rlimit many = { 2048, 2048 };
	static int clients[1000];
	struct place place;
	int waiting, served = 0, told = 0;

	if (setrlimit(RLIMIT_NOFILE, &many))
		cr_skip_test("no 2,048 descriptors are allowed");
	place_begin(&place);
	waiting = path_connect(place.path);
	send_text(waiting, KEEP_LINE("1"));
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
			told++;
			continue;
		}
		send_text(clients[i], ECHO_LINE("1", "x"));
		expect(&place, clients[i], ECHO_ANSWER("1", "x"));
		cr_assert_geq(i, 1000 - CONTROL_CONNECTIONS_MAX, "the oldest go");
		served++;
	}
	cr_assert_eq(served, CONTROL_CONNECTIONS_MAX - 1);
	cr_assert_eq(told, 1000 - served);
	control_answer(place.kept[0], NULL);
	expect(&place, waiting, DONE_ANSWER("1"));
	place_remove(&place);
}

#if defined(__SANITIZE_ADDRESS__)
#define MEASURES_MEMORY 0 /* the sanitizer's allocator does not tell */
#else
#define MEASURES_MEMORY 1
#endif

Test(session_control_limits, memory_is_bounded)
{
	const struct rlimit many = { 2048, 2048 };
	static char half[CONTROL_LINE_MAX - 1];
	struct place place;
	size_t before, most = 0;

	if (!MEASURES_MEMORY)
		cr_skip_test("the sanitizer's allocator does not say how much is in use");
	if (setrlimit(RLIMIT_NOFILE, &many))
		cr_skip_test("no 2,048 descriptors are allowed");
	place_begin(&place);
	memset(half, '{', sizeof(half));
	before = mallinfo2().uordblks;
	for (int i = 0; i < 500; i++) {
		int client = path_connect(place.path);
		size_t now;

		send_all(&place, client, half, sizeof(half));
		place_settle(&place);
		now = mallinfo2().uordblks - before;
		most = now > most ? now : most;
	}
	cr_assert_geq(most, CONTROL_CONNECTIONS_MAX * sizeof(half), "%zu bytes: they were not taken", most);
	cr_assert_leq(most, CONTROL_CONNECTIONS_MAX * (CONTROL_LINE_MAX + 4096), "%zu bytes", most);
	expect_service(&place);
	place_remove(&place);
}

Test(session_control_limits, connections_that_wait_are_not_sent_away)
{
	int clients[CONTROL_CONNECTIONS_MAX], late;
	struct place place;

	place_begin(&place);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		clients[i] = path_connect(place.path);
		send_text(clients[i], KEEP_LINE("1"));
		place_settle(&place);
	}
	late = path_connect(place.path);
	expect_refusal(&place, late, "null", "EBUSY");
	expect_end(&place, late);
	control_answer(place.kept[3], NULL);
	expect_service(&place);
	expect(&place, clients[3], DONE_ANSWER("1"));
	expect_refusal(&place, clients[3], "null", "EBUSY");
	expect_end(&place, clients[3]);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		if (i == 3)
			continue;
		control_answer(place.kept[i], NULL);
		expect(&place, clients[i], DONE_ANSWER("1"));
		close(clients[i]);
	}
	place_remove(&place);
}

/* What was told of a connection before another one got its slot does not count for that one. */
Test(session_control_limits, a_slot_that_changes_hands)
{
	int clients[CONTROL_CONNECTIONS_MAX], late;
	struct place place;

	place_begin(&place);
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		clients[i] = path_connect(place.path);
		place_settle(&place);
	}
	late = path_connect(place.path);
	send_text(clients[0], ECHO_LINE("1", "x"));
	control_work(place.control);
	expect_refusal(&place, clients[0], "null", "EBUSY");
	send_text(late, ECHO_LINE("2", "late"));
	expect(&place, late, ECHO_ANSWER("2", "late"));
	for (int i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		close(clients[i]);
	close(late);
	place_remove(&place);
}

Test(session_control_limits, no_descriptor_left)
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
	place_settle(&place);
	cr_assert_leq(control_due(place.control), clock_monotonic() + 100 * MS);
	few.rlim_cur = 1024;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	send_text(clients[0], ECHO_LINE("1", "x"));
	send_text(clients[1], ECHO_LINE("1", "y"));
	expect(&place, clients[0], ECHO_ANSWER("1", "x"));
	expect(&place, clients[1], ECHO_ANSWER("1", "y"));
	place_remove(&place);
}

Test(session_control_limits, descriptors_and_urgent_bytes_that_nobody_wants)
{
	char bytes[] = ECHO_LINE("1", "x");
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
	if (send(client, "!", 1, MSG_OOB) == 1) {
		place_settle(&place);
		expect_service(&place);
	}
	close(client);
	place_remove(&place);
}
