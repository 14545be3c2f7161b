/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/control_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "session/control_message.h"
#include "session/control_socket.h"

#define REQUEST_ID 1   /* there is one request a connection */
#define ERRNO_END 4096 /* no error is numbered from here on */
#define READ_SIZE 4096
#define NS_IN_S 1000000000ull

struct call {
	const char *path;
	const struct log *log;
	int descriptor;
	pid_t server;
	__u64 due; /* ns of CLOCK_MONOTONIC */
};

static __u64 remaining(const struct call *call)
{
	__u64 now = clock_monotonic();

	return now < call->due ? call->due - now : 0;
}

static int say_timeout(const struct call *call)
{
	log_error(call->log, "%s: process %d has not answered in time: whether it does as asked is not known",
		  call->path, call->server);
	return -ETIMEDOUT;
}

static int say_failed(const struct call *call, int error)
{
	log_error(call->log, "%s: cannot be asked: %s", call->path, strerror(-error));
	return error;
}

static int wait_for(const struct call *call, short events)
{
	struct pollfd ready = { .fd = call->descriptor, .events = events };
	__u64 left = remaining(call);
	struct timespec most = { .tv_sec = (time_t)(left / NS_IN_S), .tv_nsec = (long)(left % NS_IN_S) };

	if (!left)
		return say_timeout(call);
	if (ppoll(&ready, 1, &most, NULL) < 0 && errno != EINTR)
		return say_failed(call, -errno);
	return 0;
}

static int say_unconnected(const struct call *call, int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		log_error(call->log,
			  "%s: there is no such socket: no collector runs under this name; start one with "
			  "`xputrace continuous start`",
			  call->path);
		return -ENOENT;
	case -ECONNREFUSED:
		log_error(call->log,
			  "%s: nobody listens there any more: the collector was killed; start it again with "
			  "`xputrace continuous start`",
			  call->path);
		return error;
	case -EACCES:
	case -EPERM:
		log_error(call->log, "%s: belongs to another user: ask as that user or as root", call->path);
		return -EACCES;
	case -EAGAIN:
		log_error(call->log, "%s: who listens there has taken no connection in time: is it stopped?",
			  call->path);
		return -ETIMEDOUT;
	default:
		return say_failed(call, error);
	}
}

/* A queue that is full can only be waited for inside of connect(). */
static int connect_once(const struct call *call, const struct sockaddr_un *address)
{
	__u64 left = remaining(call);
	struct timeval most = { .tv_sec = (time_t)(left / NS_IN_S), .tv_usec = (suseconds_t)(left % NS_IN_S / 1000) };

	if (!most.tv_sec && !most.tv_usec)
		return -EAGAIN;
	if (setsockopt(call->descriptor, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ||
	    connect(call->descriptor, (const struct sockaddr *)address, sizeof(*address)))
		return -errno;
	return 0;
}

/* Nobody else is told what is asked for, nor believed. */
static int check_server(struct call *call)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	if (getsockopt(call->descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return say_failed(call, -errno);
	call->server = peer.pid;
	if (!peer.uid || peer.uid == geteuid())
		return 0;
	log_error(call->log, "%s: process %d of user %u listens there: neither root nor you, so it is not asked",
		  call->path, peer.pid, peer.uid);
	return -EACCES;
}

static int call_connect(struct call *call)
{
	struct sockaddr_un address;
	int error = control_socket_address(call->path, &address);

	if (error) {
		log_error(call->log, "'%s': the path of a control socket has 1 to %zu bytes", call->path,
			  sizeof(address.sun_path) - 1);
		return error;
	}
	call->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (call->descriptor < 0)
		return say_failed(call, -errno);
	do {
		error = connect_once(call, &address);
	} while (error == -EINTR);
	return error ? say_unconnected(call, error) : check_server(call);
}

/* A server that has closed may have said why before: that is read then. */
static int call_send(const struct call *call, const struct text *line)
{
	for (size_t done = 0; done < line->length;) {
		ssize_t sent = send(call->descriptor, line->data + done, line->length - done,
				    MSG_NOSIGNAL | MSG_DONTWAIT);
		int error;

		if (sent > 0) {
			done += (size_t)sent;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return say_failed(call, -errno);
		error = wait_for(call, POLLOUT);
		if (error)
			return error;
	}
	return 0;
}

static int say_no_answer(const struct call *call, int error, const char *reason)
{
	log_error(call->log, "%s: process %d gave no answer that can be used: %s", call->path, call->server, reason);
	return error;
}

static int call_receive(const struct call *call, struct text *line)
{
	enum control_line state = CONTROL_LINE_OPEN;
	char bytes[READ_SIZE];

	while (state == CONTROL_LINE_OPEN) {
		ssize_t got = recv(call->descriptor, bytes, sizeof(bytes), MSG_DONTWAIT);
		int error;

		if (got > 0) {
			control_line_take(line, bytes, (size_t)got, &state);
			continue;
		}
		if (!got || errno == ECONNRESET || errno == EPIPE)
			return say_no_answer(call, -ECONNRESET, "it closed the connection, or has ended");
		if (errno != EAGAIN && errno != EINTR)
			return say_failed(call, -errno);
		error = wait_for(call, POLLIN);
		if (error)
			return error;
	}
	if (state == CONTROL_LINE_TOO_LONG)
		return say_no_answer(call, -EPROTO, "it is too long");
	return state == CONTROL_LINE_NO_MEMORY ? say_failed(call, -ENOMEM) : 0;
}

static int call_talk(struct call *call, struct text *line, cJSON **answer)
{
	char reason[CONTROL_REASON_MAX];
	int error = call_connect(call);

	if (!error)
		error = call_send(call, line);
	if (error)
		return error;
	text_clear(line, CONTROL_LINE_MAX);
	error = call_receive(call, line);
	if (error)
		return error;
	error = control_read_answer(line->data, line->length, REQUEST_ID, answer, reason);
	return error ? say_no_answer(call, error, reason) : 0;
}

int control_call(const char *path, const cJSON *request, __u64 timeout, cJSON **answer, const struct log *log)
{
	__u64 now = clock_monotonic();
	struct call call = {
		.path = path,
		.log = log,
		.descriptor = -1,
		.due = timeout < ~0ull - now ? now + timeout : ~0ull,
	};
	struct text line = { 0 };
	int error;

	*answer = NULL;
	error = control_write_request(&line, REQUEST_ID, request);
	if (error)
		log_error(log, "a request may not be longer than %d bytes, nor nested deeper than %d", CONTROL_LINE_MAX,
			  JSON_DEPTH_MAX);
	else if (line.error)
		error = say_failed(&call, line.error);
	if (!error)
		error = call_talk(&call, &line, answer);
	if (call.descriptor >= 0)
		close(call.descriptor);
	text_free(&line);
	return error;
}

int control_answer_error(const cJSON *answer, const char **reason)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "error"));
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "reason"));

	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "ok")))
		return 0;
	if (reason)
		*reason = text ? text : "";
	for (int error = 1; name && error < ERRNO_END; error++) {
		const char *known = strerrorname_np(error);

		if (known && !strcmp(known, name))
			return -error;
	}
	return -EREMOTEIO;
}
