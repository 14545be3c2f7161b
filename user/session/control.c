/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/control_private.h"

#define ACCEPTED_AT_ONCE 32
#define EVENTS_AT_ONCE (CONTROL_CONNECTIONS_MAX + 1)
#define ACCEPT_PAUSE 100000000ull /* ns */
#define LISTENER (~0ull)	  /* among the events */

static int listener_watch(struct control *control, int operation, __u32 events)
{
	struct epoll_event event = { .events = events, .data.u64 = LISTENER };

	return epoll_ctl(control->epoll, operation, control->socket.listener, &event) ? -errno : 0;
}

int control_open(const struct log *log, const struct control_options *options, struct control **result)
{
	struct control *control = calloc(1, sizeof(*control));
	int error;

	if (!control)
		return -ENOMEM;
	if (log)
		control->log = *log;
	control->handler = options->handler;
	control->context = options->context;
	control->line_timeout = options->line_timeout ? options->line_timeout : CONTROL_LINE_TIMEOUT;
	control->idle_timeout = options->idle_timeout ? options->idle_timeout : CONTROL_IDLE_TIMEOUT;
	control->user = geteuid();
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		control->connections[i].descriptor = -1;
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (control->epoll < 0) {
		error = -errno;
		log_error(log, "%s: no socket can be made: %s", options->path, strerror(-error));
		free(control);
		return error;
	}
	error = control_socket_open(log, options->path, &control->socket);
	if (error) {
		close(control->epoll);
		free(control);
		return error;
	}
	error = listener_watch(control, EPOLL_CTL_ADD, EPOLLIN);
	if (error) {
		log_error(log, "%s: cannot be waited for: %s", options->path, strerror(-error));
		control_close(control);
		return error;
	}
	*result = control;
	return 0;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CONTROL_REQUESTS_MAX; i++)
		if (control->requests[i].control)
			control_refuse(&control->requests[i], -ESHUTDOWN, "the collector ends");
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		if (control->connections[i].descriptor >= 0)
			connection_close(control, &control->connections[i]);
	control_socket_close(&control->socket);
	close(control->epoll);
	free(control);
}

int control_descriptor(const struct control *control)
{
	return control->epoll;
}

__u64 control_due(const struct control *control)
{
	__u64 due = control->accept_due ? control->accept_due : CONTROL_NEVER;

	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		__u64 at = connection_due(control, &control->connections[i]);

		if (at < due)
			due = at;
	}
	return due;
}

/* A free slot, or that of the connection which has done nothing for longest; NULL: all wait for their answers. */
static struct connection *make_room(struct control *control, __u64 now)
{
	struct connection *oldest = NULL;

	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		struct connection *connection = &control->connections[i];

		if (connection->descriptor < 0)
			return connection;
		if (!connection->request && (!oldest || connection->active < oldest->active))
			oldest = connection;
	}
	if (oldest)
		connection_evict(control, oldest, now);
	return oldest;
}

static void refuse_at_the_door(int descriptor, int error, const char *reason)
{
	struct text line = { 0 };

	control_write_refusal(&line, CONTROL_ID_NONE, error, reason);
	/* A socket that has just been made takes so little, or its client does without. */
	if (!line.error)
		(void)!send(descriptor, line.data, line.length, MSG_NOSIGNAL | MSG_DONTWAIT);
	text_free(&line);
	close(descriptor);
}

static void admit(struct control *control, int descriptor, __u64 now)
{
	struct connection *connection;
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);

	if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	    (peer.uid && peer.uid != control->user)) {
		log_debug(&control->log, "control: process %d of user %u is not answered", peer.pid, peer.uid);
		refuse_at_the_door(descriptor, -EACCES, "only root and the user of the collector are answered");
		return;
	}
	connection = make_room(control, now);
	if (connection)
		connection_open(control, connection, descriptor, peer.pid, now);
	else
		refuse_at_the_door(descriptor, -EBUSY, "too many connections wait for their answer: try later");
}

static void accept_work(struct control *control, __u64 now)
{
	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		int descriptor = accept4(control->socket.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (descriptor >= 0) {
			admit(control, descriptor, clock_monotonic()); /* of two in one pass, one is older */
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			/* Those that wait would be told of again and again. */
			listener_watch(control, EPOLL_CTL_MOD, 0);
			control->accept_due = now + ACCEPT_PAUSE;
			return;
		}
	}
}

static void expire(struct control *control, __u64 now)
{
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		if (connection_due(control, &control->connections[i]) <= now)
			connection_expire(control, &control->connections[i], now);
	if (control->accept_due && control->accept_due <= now) {
		control->accept_due = 0;
		listener_watch(control, EPOLL_CTL_MOD, EPOLLIN);
	}
}

void control_work(struct control *control)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int count = epoll_wait(control->epoll, events, EVENTS_AT_ONCE, 0);
	__u64 now = clock_monotonic();

	for (int i = 0; i < count; i++) {
		struct connection *connection =
			&control->connections[(__u32)events[i].data.u64 % CONTROL_CONNECTIONS_MAX];

		if (events[i].data.u64 == LISTENER)
			accept_work(control, now);
		else if (connection->descriptor >= 0 && connection->serial == events[i].data.u64 >> 32)
			connection_work(control, connection, events[i].events, now);
	}
	expire(control, now);
}
