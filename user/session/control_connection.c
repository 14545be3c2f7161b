/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection of the control socket's server, and its requests. */
#include "session/control_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define KEEP_BYTES 4096 /* of a buffer, between two lines */

static int watch(struct control *control, struct connection *connection, int operation, __u32 events)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = (__u64)connection->serial << 32 | (__u64)(connection - control->connections),
	};

	connection->interest = events;
	return epoll_ctl(control->epoll, operation, connection->descriptor, &event);
}

void connection_open(struct control *control, struct connection *connection, int descriptor, pid_t pid, __u64 now)
{
	*connection = (struct connection){
		.descriptor = descriptor,
		.serial = ++control->serials,
		.pid = pid,
		.active = now,
	};
	if (watch(control, connection, EPOLL_CTL_ADD, EPOLLIN))
		connection_close(control, connection);
}

void connection_close(struct control *control, struct connection *connection)
{
	if (connection->request) {
		log_debug(&control->log, "control: process %d has gone before its answer", connection->pid);
		connection->request->connection = NULL;
	}
	close(connection->descriptor);
	text_free(&connection->input);
	text_free(&connection->output);
	*connection = (struct connection){ .descriptor = -1, .serial = connection->serial };
}

/* Sends what there is to send, then waits for what is next, or ends. */
static void settle(struct control *control, struct connection *connection)
{
	struct text *output = &connection->output;
	__u32 wanted;

	while (connection->sent < output->length && !output->error) {
		ssize_t sent = send(connection->descriptor, output->data + connection->sent,
				    output->length - connection->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0)
			connection->sent += (size_t)sent;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			output->error = -errno;
	}
	if (output->error) {
		connection_close(control, connection);
		return;
	}
	if (connection->sent < output->length) {
		wanted = EPOLLOUT;
	} else {
		if (output->length)
			connection->began = 0;
		text_clear(output, KEEP_BYTES);
		connection->sent = 0;
		if (connection->ending) {
			connection_close(control, connection);
			return;
		}
		wanted = connection->request ? 0 : EPOLLIN;
	}
	if (wanted != connection->interest && watch(control, connection, EPOLL_CTL_MOD, wanted))
		connection_close(control, connection);
}

static void begin_output(struct connection *connection, __u64 now)
{
	text_clear(&connection->input, KEEP_BYTES);
	connection->began = connection->active = now;
}

static void refuse(struct control *control, struct connection *connection, __s64 id, int error, const char *reason,
		   __u64 now)
{
	log_debug(&control->log, "control: process %d is refused: %s", connection->pid, reason);
	begin_output(connection, now);
	control_write_refusal(&connection->output, id, error, reason);
}

static void refuse_last(struct control *control, struct connection *connection, int error, const char *reason,
			__u64 now)
{
	refuse(control, connection, CONTROL_ID_NONE, error, reason, now);
	connection->ending = true;
}

static struct control_request *free_request(struct control *control)
{
	for (size_t i = 0; i < CONTROL_REQUESTS_MAX; i++)
		if (!control->requests[i].control)
			return &control->requests[i];
	return NULL;
}

/* A whole line has come. */
static void line_work(struct control *control, struct connection *connection, __u64 now)
{
	struct control_request *request = free_request(control);
	struct control_asked asked;
	int error;

	error = control_read_request(connection->input.data, connection->input.length, &asked);
	text_clear(&connection->input, KEEP_BYTES);
	connection->began = 0;
	if (error) {
		refuse(control, connection, asked.id, error, asked.reason, now);
		return;
	}
	if (request) {
		*request = (struct control_request){ control, connection, asked.id };
		connection->request = request;
		control->handler(control->context, request, asked.body);
	} else {
		refuse(control, connection, asked.id, -EBUSY, "too many requests wait for their answer: try later",
		       now);
	}
	cJSON_Delete(asked.body);
}

/* Takes so many bytes that have been looked at out of the kernel's buffer. */
static int consume(struct control *control, const struct connection *connection, size_t length)
{
	while (length) {
		ssize_t got = recv(connection->descriptor, control->scratch, length, MSG_DONTWAIT);

		if (got > 0)
			length -= (size_t)got;
		else if (!got || errno != EINTR)
			return -EIO;
	}
	return 0;
}

/* Looks at what has come and takes one line of it at most. -errno: nothing can be done with the connection any more. */
static int read_line(struct control *control, struct connection *connection, __u64 now)
{
	ssize_t got = recv(connection->descriptor, control->scratch, sizeof(control->scratch), MSG_PEEK | MSG_DONTWAIT);
	enum control_line state;
	char reason[64];

	if (got < 0)
		return errno == EINTR ? 0 : -errno;
	if (!got) {
		if (!connection->input.length)
			return -ENOTCONN;
		refuse_last(control, connection, -EINVAL, "the connection ended before the end of the line", now);
		return 0;
	}
	if (!connection->input.length)
		connection->began = connection->active = now;
	if (consume(control, connection, control_line_take(&connection->input, control->scratch, (size_t)got, &state)))
		return -EIO;
	switch (state) {
	case CONTROL_LINE_OPEN:
		break;
	case CONTROL_LINE_COMPLETE:
		line_work(control, connection, now);
		break;
	case CONTROL_LINE_TOO_LONG:
		snprintf(reason, sizeof(reason), "a line must end within %d bytes", CONTROL_LINE_MAX);
		refuse_last(control, connection, -EMSGSIZE, reason, now);
		break;
	case CONTROL_LINE_NO_MEMORY:
		return -ENOMEM;
	}
	return 0;
}

void connection_work(struct control *control, struct connection *connection, __u32 events, __u64 now)
{
	/* With a request at the handler, only the end of both directions is told. */
	int error = connection->request ? -ENOTCONN : 0;

	if (!error && connection->interest & events & EPOLLIN)
		error = read_line(control, connection, now);
	if (connection->descriptor < 0)
		return;
	if (error)
		connection_close(control, connection);
	else
		settle(control, connection);
}

__u64 connection_due(const struct control *control, const struct connection *connection)
{
	if (connection->descriptor < 0 || connection->request)
		return CONTROL_NEVER;
	return connection->began ? connection->began + control->line_timeout :
				   connection->active + control->idle_timeout;
}

void connection_expire(struct control *control, struct connection *connection, __u64 now)
{
	char reason[96];

	if (!connection->input.length) {
		connection_close(control, connection);
		return;
	}
	snprintf(reason, sizeof(reason), "a line that was begun must be complete within %g s",
		 (double)control->line_timeout / 1e9);
	refuse_last(control, connection, -ETIMEDOUT, reason, now);
	settle(control, connection);
}

void connection_evict(struct control *control, struct connection *connection, __u64 now)
{
	if (!connection->output.length) {
		refuse_last(control, connection, -EBUSY, "too many connections: the one unused for longest ends", now);
		settle(control, connection);
	}
	if (connection->descriptor >= 0)
		connection_close(control, connection);
}

/* Sends the answer that has been written, and lets the request's slot go. */
static void request_end(struct control_request *request)
{
	struct connection *connection = request->connection;

	if (connection) {
		connection->request = NULL;
		settle(request->control, connection);
	}
	*request = (struct control_request){ 0 };
}

void control_answer(struct control_request *request, cJSON *more)
{
	struct connection *connection = request->connection;

	if (connection) {
		begin_output(connection, clock_monotonic());
		if (control_write_answer(&connection->output, request->id, more))
			log_warn(&request->control->log, "control: an answer to process %d is too long for one line",
				 connection->pid);
	}
	cJSON_Delete(more);
	request_end(request);
}

void control_refuse(struct control_request *request, int error, const char *reason)
{
	if (request->connection)
		refuse(request->control, request->connection, request->id, error, reason, clock_monotonic());
	request_end(request);
}
