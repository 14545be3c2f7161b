/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for a socket, a server whose handler does what the tests want, and what was logged. */
#ifndef TESTS_CONTROL_SUPPORT_H
#define TESTS_CONTROL_SUPPORT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "control/control.h"

#define MS 1000000ull
#define PATIENCE (10000 * MS) /* ns after which a test gives up */
#define OTHER_USER 65534
#define KEPT_MAX 256

struct place {
	char folder[64], directory[80], path[96];
	struct control *control;
	struct control_request *kept[KEPT_MAX];
	size_t kept_count, handled;
	struct log log;
	char said[1024]; /* the last error */
};

static inline void place_log(void *context, enum xpt_log_level level, const char *text)
{
	struct place *place = context;

	if (level == XPT_LOG_ERROR)
		snprintf(place->said, sizeof(place->said), "%s", text);
}

static inline void place_make(struct place *place)
{
	memset(place, 0, sizeof(*place));
	strcpy(place->folder, "/tmp/xputrace-control-XXXXXX");
	cr_assert_not_null(mkdtemp(place->folder));
	snprintf(place->directory, sizeof(place->directory), "%s/run", place->folder);
	snprintf(place->path, sizeof(place->path), "%s/a.sock", place->directory);
	place->log = (struct log){ place_log, place, XPT_LOG_DEBUG };
}

static inline void place_remove(struct place *place)
{
	char command[128];

	control_close(place->control);
	snprintf(command, sizeof(command), "rm -rf %s", place->folder);
	cr_assert_eq(system(command), 0);
}

/* "echo": its "text" comes back. "keep": is kept. "long": so many "bytes" come back. Else it is refused. */
static inline void place_handle(void *context, struct control_request *request, const cJSON *body)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "do"));
	const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(body, "bytes");
	struct place *place = context;
	struct text *answer;

	place->handled++;
	if (!strcmp(name, "echo")) {
		json_add_text(control_answer_begin(request), "text",
			      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "text")));
		control_answer_end(request);
	} else if (!strcmp(name, "long")) {
		answer = control_answer_begin(request);
		json_add_text(answer, "text", "");
		answer->length--;
		for (int i = 0; i < bytes->valueint; i++)
			text_literal(answer, "x");
		text_literal(answer, "\"");
		control_answer_end(request);
	} else if (!strcmp(name, "keep")) {
		cr_assert_lt(place->kept_count, KEPT_MAX);
		place->kept[place->kept_count++] = request;
	} else {
		control_refuse(request, -EOPNOTSUPP, "nothing of that \"name\"");
	}
}

/* An answer without members. */
static inline void answer_done(struct control_request *request)
{
	control_answer_begin(request);
	control_answer_end(request);
}

static inline int place_open(struct place *place)
{
	const struct control_options options = {
		.directory = place->directory,
		.name = strrchr(place->path, '/') + 1,
		.handler = place_handle,
		.context = place,
	};

	return control_open(&place->log, &options, &place->control);
}

static inline void place_begin(struct place *place)
{
	place_make(place);
	cr_assert_eq(place_open(place), 0, "%s", place->said);
}

/* Waits for the server's next work, but no longer than until the time, and has it done. */
static inline void place_work(struct place *place, __u64 until)
{
	struct pollfd ready = { .fd = control_descriptor(place->control), .events = POLLIN };
	__u64 now = clock_monotonic();

	cr_assert_geq(poll(&ready, 1, until <= now ? 0 : (int)((until - now) / MS) + 1), 0);
	control_work(place->control);
}

/* Has all work done that there is at the moment. */
static inline void place_settle(struct place *place)
{
	struct pollfd ready = { .fd = control_descriptor(place->control), .events = POLLIN };

	for (int i = 0; poll(&ready, 1, 0) == 1; i++) {
		cr_assert_lt(i, 100000, "the server always has something to do");
		control_work(place->control);
	}
}

/* A server in a process of its own, which is killed in the end. */
static inline pid_t place_serve(struct place *place)
{
	int ready[2];
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		char failed = (char)place_open(place);

		if (write(ready[1], &failed, 1) != 1 || failed)
			_exit(1);
		for (;;)
			place_work(place, clock_monotonic() + PATIENCE);
	}
	cr_assert_eq(read(ready[0], &(char){ 1 }, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static inline void child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

static inline struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	cr_assert_lt(strlen(path), sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	return address;
}

static inline int path_connect(const char *path)
{
	int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
	struct sockaddr_un address = address_of(path);

	if (!connect(descriptor, (struct sockaddr *)&address, sizeof(address)))
		return descriptor;
	error = errno;
	close(descriptor);
	errno = error;
	return -1;
}

static inline void send_bytes(int descriptor, const void *bytes, size_t length)
{
	cr_assert_eq(send(descriptor, bytes, length, MSG_NOSIGNAL), (ssize_t)length, "%s", strerror(errno));
}

static inline void send_text(int descriptor, const char *text)
{
	send_bytes(descriptor, text, strlen(text));
}

/* The next packet, or NULL at the connection's end; the server works meanwhile. Valid until the next call. */
static inline const char *receive(struct place *place, int descriptor)
{
	static char packet[2 * CONTROL_PACKET_MAX];
	__u64 until = clock_monotonic() + PATIENCE;

	while (clock_monotonic() < until) {
		ssize_t got = recv(descriptor, packet, sizeof(packet) - 1, MSG_DONTWAIT | MSG_TRUNC);

		if (got < 0 && errno == EAGAIN) {
			place_work(place, clock_monotonic() + 5 * MS);
			continue;
		}
		if (got <= 0)
			return NULL;
		cr_assert_leq(got, CONTROL_PACKET_MAX);
		packet[got] = '\0';
		return packet;
	}
	cr_assert_fail("neither a packet nor the end came");
	return NULL;
}

static inline void expect(struct place *place, int descriptor, const char *wanted)
{
	const char *packet = receive(place, descriptor);

	cr_assert_not_null(packet, "the end came in place of %s", wanted);
	cr_assert_str_eq(packet, wanted);
}

/* A refusal with that error; id as it stands in the text. */
static inline void expect_refusal(struct place *place, int descriptor, const char *id, const char *error)
{
	const char *packet = receive(place, descriptor);
	char begin[128];

	snprintf(begin, sizeof(begin), "{\"xputrace\":2,\"id\":%s,\"ok\":false,\"error\":\"%s\",\"reason\":\"", id,
		 error);
	cr_assert_not_null(packet, "the end came in place of %s", begin);
	cr_assert(!strncmp(packet, begin, strlen(begin)), "%s\nin place of\n%s", packet, begin);
	cr_assert_gt(strlen(packet), strlen(begin) + 2, "no reason: %s", packet);
}

static inline void expect_end(struct place *place, int descriptor)
{
	const char *packet = receive(place, descriptor);

	cr_assert_null(packet, "%s", packet);
	close(descriptor);
}

#define ECHO_REQUEST(id, text) "{\"xputrace\":2,\"id\":" id ",\"do\":\"echo\",\"text\":\"" text "\"}"
#define ECHO_ANSWER(id, text) "{\"xputrace\":2,\"id\":" id ",\"ok\":true,\"text\":\"" text "\"}"
#define KEEP_REQUEST(id) "{\"xputrace\":2,\"id\":" id ",\"do\":\"keep\"}"
#define DONE_ANSWER(id) "{\"xputrace\":2,\"id\":" id ",\"ok\":true}"

/* It serves: a request on a new connection is answered. */
static inline void expect_service(struct place *place)
{
	int descriptor = path_connect(place->path);

	cr_assert_geq(descriptor, 0);
	send_text(descriptor, ECHO_REQUEST("77", "still there"));
	expect(place, descriptor, ECHO_ANSWER("77", "still there"));
	close(descriptor);
	place_settle(place);
}

#endif
