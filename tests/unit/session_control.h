/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for a socket, a server whose handler does what the tests want, and what was logged. */
#ifndef TESTS_SESSION_CONTROL_H
#define TESTS_SESSION_CONTROL_H

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/control.h"
#include "session/control_message.h"
#include "session/control_socket.h"

#define MS 1000000ull
#define PATIENCE (10000 * MS) /* ns after which a test gives up */
#define OTHER_USER 65534

struct place {
	char folder[64], path[96];
	struct control *control;
	struct control_request *kept[CONTROL_REQUESTS_MAX + 1];
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
	snprintf(place->path, sizeof(place->path), "%s/run/a.sock", place->folder);
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
	struct place *place = context;
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "do"));
	cJSON *more = cJSON_CreateObject();

	place->handled++;
	if (!strcmp(name, "echo")) {
		cJSON_AddItemToObject(more, "text", cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(body, "text"), 1));
		control_answer(request, more);
		return;
	}
	if (!strcmp(name, "long")) {
		int bytes = cJSON_GetObjectItemCaseSensitive(body, "bytes")->valueint;
		char *text = malloc((size_t)bytes + 1);

		memset(text, 'x', (size_t)bytes);
		text[bytes] = '\0';
		cJSON_AddStringToObject(more, "text", text);
		free(text);
		control_answer(request, more);
		return;
	}
	cJSON_Delete(more);
	if (!strcmp(name, "keep")) {
		cr_assert_lt(place->kept_count, CONTROL_REQUESTS_MAX + 1);
		place->kept[place->kept_count++] = request;
	} else {
		control_refuse(request, -EOPNOTSUPP, "nothing of that \"name\"");
	}
}

static inline int place_open_limited(struct place *place, __u64 line_timeout, __u64 idle_timeout)
{
	struct control_options options = {
		.path = place->path,
		.handler = place_handle,
		.context = place,
		.line_timeout = line_timeout,
		.idle_timeout = idle_timeout,
	};

	return control_open(&place->log, &options, &place->control);
}

static inline int place_open(struct place *place)
{
	return place_open_limited(place, 0, 0);
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
	__u64 due = control_due(place->control), now = clock_monotonic();

	due = due < until ? due : until;
	cr_assert_geq(poll(&ready, 1, due <= now ? 0 : (int)((due - now) / MS) + 1), 0);
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

static inline int path_connect(const char *path)
{
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;

	if (!control_socket_address(path, &address) &&
	    !connect(descriptor, (struct sockaddr *)&address, sizeof(address)))
		return descriptor;
	close(descriptor);
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

/*
 * The next line without its newline, or NULL at the connection's end; the server works meanwhile. Valid until the
 * next call.
 */
static inline const char *hear(struct place *place, int descriptor)
{
	static char line[2 * CONTROL_LINE_MAX];
	__u64 until = clock_monotonic() + PATIENCE;
	size_t length = 0;

	while (clock_monotonic() < until) {
		ssize_t got = recv(descriptor, line + length, 1, MSG_DONTWAIT);

		if (got < 0 && errno == EAGAIN) {
			place_work(place, clock_monotonic() + 5 * MS);
			continue;
		}
		if (got <= 0) {
			cr_assert_eq(length, 0, "the end came within a line");
			return NULL;
		}
		if (line[length] == '\n') {
			line[length] = '\0';
			return line;
		}
		cr_assert_lt(++length, sizeof(line));
	}
	cr_assert_fail("neither a line nor the end came");
	return NULL;
}

static inline void expect(struct place *place, int descriptor, const char *wanted)
{
	const char *line = hear(place, descriptor);

	cr_assert_not_null(line, "the end came in place of %s", wanted);
	cr_assert_str_eq(line, wanted);
}

/* A refusal with that error; id as it stands in the text. */
static inline void expect_refusal(struct place *place, int descriptor, const char *id, const char *error)
{
	const char *line = hear(place, descriptor);
	char begin[128];

	snprintf(begin, sizeof(begin), "{\"xputrace\":1,\"id\":%s,\"ok\":false,\"error\":\"%s\",\"reason\":\"", id,
		 error);
	cr_assert_not_null(line, "the end came in place of %s", begin);
	cr_assert(!strncmp(line, begin, strlen(begin)), "%s\nin place of\n%s", line, begin);
	cr_assert_gt(strlen(line), strlen(begin) + 2, "no reason: %s", line);
}

static inline void expect_end(struct place *place, int descriptor)
{
	const char *line = hear(place, descriptor);

	cr_assert_null(line, "%s", line);
	close(descriptor);
}

#define ECHO_LINE(id, text) "{\"xputrace\":1,\"id\":" id ",\"do\":\"echo\",\"text\":\"" text "\"}\n"
#define ECHO_ANSWER(id, text) "{\"xputrace\":1,\"id\":" id ",\"ok\":true,\"text\":\"" text "\"}"
#define KEEP_LINE(id) "{\"xputrace\":1,\"id\":" id ",\"do\":\"keep\"}\n"
#define DONE_ANSWER(id) "{\"xputrace\":1,\"id\":" id ",\"ok\":true}"

/* It serves: a request on a new connection is answered. */
static inline void expect_service(struct place *place)
{
	int descriptor = path_connect(place->path);

	cr_assert_geq(descriptor, 0);
	send_text(descriptor, ECHO_LINE("77", "still there"));
	expect(place, descriptor, ECHO_ANSWER("77", "still there"));
	close(descriptor);
	place_settle(place);
}

#endif
