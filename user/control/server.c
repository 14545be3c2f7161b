/* SPDX-License-Identifier: BSD-2-Clause */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64
#define ACCEPTED_AT_ONCE (2 * BACKLOG)
#define LOCK_ATTEMPTS 200
#define LOCK_PAUSE 5000 /* us */
#define KEEP_BYTES 4096 /* of the buffer for answers, between two */

/* A connection. It has at most one pending request; until that is answered nothing more is read from it. */
struct control_request {
	struct control *control;
	int descriptor; /* -1: the slot is free */
	pid_t pid;
	bool pending; /* the request is with the handler */
	__s64 id;
	__u64 used; /* control->uses when it was last used */
};

struct control {
	struct log log;
	control_handler handler;
	void *context;
	uid_t user;
	int epoll;
	struct sockaddr_un address;
	const char *name; /* in address */
	int directory, listener;
	dev_t device; /* of the socket's file; inode 0: there is none */
	ino_t inode;
	__u64 uses;
	struct text answer;
	struct control_request connections[CONTROL_CONNECTIONS_MAX];
	char packet[CONTROL_PACKET_MAX];
};

/* ---- the socket's file ---- */

static int directory_open(const struct log *log, const char *path)
{
	struct stat status;
	int error = 0, descriptor;

	if (mkdir(path, 0700) && errno != EEXIST) {
		error = -errno;
		log_error(log, "%s: cannot create the directory: %s", path, strerror(-error));
		return error;
	}
	descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0 || fstat(descriptor, &status)) {
		error = -errno;
		log_error(log, "%s: cannot open: %s%s", path, strerror(-error),
			  error == -ENOTDIR || error == -ELOOP ? " (symbolic links are not followed here)" : "");
	} else if (status.st_uid && status.st_uid != geteuid()) {
		error = -EPERM;
		log_error(log,
			  "%s: belongs to user %u: a control socket requires a directory of root or of its own user",
			  path, status.st_uid);
	} else if (status.st_mode & (S_IWGRP | S_IWOTH)) {
		error = -EPERM;
		log_error(log,
			  "%s: others may write to it (mode %04o): remove that permission with `chmod go-w`, or choose "
			  "another directory for the control socket",
			  path, status.st_mode & 07777);
	}
	if (error && descriptor >= 0)
		close(descriptor);
	return error ?: descriptor;
}

/* Held while a socket is made or removed: of two servers that start with one name, the second sees the first. */
static int lock_acquire(const struct control *control)
{
	const struct sockaddr_un *address = &control->address;
	int error = 0, lock = openat(control->directory, CONTROL_LOCK,
				     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (lock < 0) {
		error = -errno;
		log_error(&control->log, "%s: cannot open '%s' beside it: %s", address->sun_path, CONTROL_LOCK,
			  strerror(-error));
		return error;
	}
	for (int i = 0; flock(lock, LOCK_EX | LOCK_NB); i++) {
		if (i == LOCK_ATTEMPTS || errno != EWOULDBLOCK) {
			log_error(&control->log,
				  "%s: cannot lock '%s' beside it (%s): another process is starting or ending a server "
				  "there: try again",
				  address->sun_path, CONTROL_LOCK, strerror(errno));
			close(lock);
			return -EADDRINUSE;
		}
		usleep(LOCK_PAUSE);
	}
	return lock;
}

/* Whether a process listens there: 0 and its PID (0: unknown), or -errno. */
static int listener_pid(const struct sockaddr_un *address, pid_t *pid)
{
	int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	if (descriptor < 0)
		return -errno;
	if (connect(descriptor, (const struct sockaddr *)address, sizeof(*address)))
		error = -errno;
	else if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		peer.pid = 0;
	close(descriptor);
	*pid = peer.pid;
	return error == -EAGAIN ? 0 : error; /* its queue is full */
}

/* Only a socket without a listener, left by a server that was killed, is removed. */
static int path_clear(const struct control *control)
{
	const char *path = control->address.sun_path;
	struct stat status;
	pid_t pid = 0;
	int error;

	if (fstatat(control->directory, control->name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	error = S_ISSOCK(status.st_mode) ? listener_pid(&control->address, &pid) : -EPROTOTYPE;
	if (!error && pid)
		log_error(&control->log, "%s: process %d listens there already: stop it, or choose another name", path,
			  pid);
	else if (!error)
		log_error(&control->log,
			  "%s: a process that is not visible here listens there already: choose another name", path);
	if (!error)
		return -EADDRINUSE;
	if (error != -ECONNREFUSED) {
		log_error(&control->log, "%s: exists and is not a control socket: remove it, or choose another name",
			  path);
		return -EEXIST;
	}
	log_debug(&control->log, "%s: replaced: nothing listens on it", path);
	return unlinkat(control->directory, control->name, 0) ? -errno : 0;
}

static int listener_bind(struct control *control)
{
	const struct sockaddr_un *address = &control->address;
	struct stat status;

	control->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* What bind() makes gets the mode of the socket itself: there is no moment at which others could connect. */
	if (control->listener < 0 || fchmod(control->listener, 0600) ||
	    bind(control->listener, (const struct sockaddr *)address, sizeof(*address)) ||
	    fstatat(control->directory, control->name, &status, AT_SYMLINK_NOFOLLOW))
		return -errno;
	control->device = status.st_dev;
	control->inode = status.st_ino;
	return listen(control->listener, BACKLOG) ? -errno : 0;
}

static int listener_open(struct control *control)
{
	/* Edges: where no connection can be accepted, it would be reported again and again. */
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int lock = lock_acquire(control), error;

	if (lock < 0)
		return lock;
	error = path_clear(control);
	if (!error) {
		error = listener_bind(control);
		if (!error && epoll_ctl(control->epoll, EPOLL_CTL_ADD, control->listener, &event))
			error = -errno;
		if (error)
			log_error(&control->log, "%s: cannot listen: %s", control->address.sun_path, strerror(-error));
	}
	close(lock);
	return error;
}

/* As long as the listener is open, no other file gets the socket's inode number. */
static void listener_close(const struct control *control)
{
	int lock = control->inode ? lock_acquire(control) : -1;
	struct stat status;

	if (lock >= 0 && !fstatat(control->directory, control->name, &status, AT_SYMLINK_NOFOLLOW) &&
	    status.st_dev == control->device && status.st_ino == control->inode)
		unlinkat(control->directory, control->name, 0);
	if (control->listener >= 0)
		close(control->listener);
	if (lock >= 0)
		close(lock);
}

/* ---- connections ---- */

/* What was not read yet would hide from the client what was sent to it last. */
static void disconnect(int descriptor)
{
	char byte;

	shutdown(descriptor, SHUT_RD);
	while (recv(descriptor, &byte, 1, MSG_DONTWAIT) > 0)
		;
	close(descriptor);
}

/* A refusal without a request. */
static void dismiss(struct control *control, int descriptor, int error, const char *reason)
{
	control_write_refusal(&control->answer, CONTROL_ID_NONE, error, reason);
	if (!control->answer.error)
		(void)!send(descriptor, control->answer.data, control->answer.length, MSG_NOSIGNAL | MSG_DONTWAIT);
	text_clear(&control->answer, KEEP_BYTES);
	disconnect(descriptor);
}

static void connection_close(struct control_request *connection)
{
	disconnect(connection->descriptor);
	connection->descriptor = -1;
	connection->pending = false;
}

/* That the client has gone, or does not read, is no news. */
static void connection_fail(struct control_request *connection, int error)
{
	const struct log *log = &connection->control->log;

	if (error == EPIPE || error == ECONNRESET || error == ENOTCONN || error == EAGAIN)
		log_debug(log, "control: process %d has lost its answer: %s", connection->pid, strerror(error));
	else
		log_warn(log, "control: the connection of process %d is closed: %s", connection->pid, strerror(error));
	connection_close(connection);
}

/* Its next packet, or its end, is reported once. */
static void connection_await(struct control_request *connection, int operation)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = connection };

	if (epoll_ctl(connection->control->epoll, operation, connection->descriptor, &event))
		connection_fail(connection, errno);
}

/* Sends what has been written, and reads on. */
static void connection_reply(struct control_request *connection)
{
	struct text *answer = &connection->control->answer;

	connection->pending = false;
	connection->used = ++connection->control->uses;
	if (answer->error ||
	    send(connection->descriptor, answer->data, answer->length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		connection_fail(connection, answer->error ? -answer->error : errno);
	else
		connection_await(connection, EPOLL_CTL_MOD);
	text_clear(answer, KEEP_BYTES);
}

static void connection_work(struct control_request *connection)
{
	struct control *control = connection->control;
	ssize_t length = recv(connection->descriptor, control->packet, CONTROL_PACKET_MAX, MSG_DONTWAIT | MSG_TRUNC);
	char reason[CONTROL_REASON_MAX];
	cJSON *body;
	int error;

	if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
		connection_await(connection, EPOLL_CTL_MOD);
		return;
	}
	if (length < 0) {
		connection_fail(connection, errno);
		return;
	}
	if (!length) {
		connection_close(connection);
		return;
	}
	connection->pending = true;
	connection->used = ++control->uses;
	error = control_read_request(control->packet, (size_t)length, &connection->id, &body, reason);
	if (length > CONTROL_PACKET_MAX)
		error = -EMSGSIZE;
	if (error)
		control_refuse(connection, error, reason);
	else
		control->handler(control->context, connection, body);
	cJSON_Delete(body);
}

/* A free slot, or that of the connection that has been unused for longest; NULL: all wait for their answers. */
static struct control_request *make_room(struct control *control)
{
	struct control_request *oldest = NULL;

	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		struct control_request *connection = &control->connections[i];

		if (connection->descriptor < 0)
			return connection;
		if (!connection->pending && (!oldest || connection->used < oldest->used))
			oldest = connection;
	}
	if (oldest)
		dismiss(control, oldest->descriptor, -EBUSY,
			"too many connections: the one unused for longest is closed");
	return oldest;
}

static void connection_admit(struct control *control, int descriptor)
{
	struct control_request *connection;
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);

	if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	    (peer.uid && peer.uid != control->user)) {
		log_debug(&control->log, "control: process %d of user %u is not answered", peer.pid, peer.uid);
		dismiss(control, descriptor, -EACCES, "only root and the user of the collector are answered");
		return;
	}
	connection = make_room(control);
	if (!connection) {
		dismiss(control, descriptor, -EBUSY, "too many connections wait for their answer: try again later");
		return;
	}
	*connection = (struct control_request){
		.control = control,
		.descriptor = descriptor,
		.pid = peer.pid,
		.used = ++control->uses,
	};
	connection_await(connection, EPOLL_CTL_ADD);
}

void control_work(struct control *control)
{
	struct epoll_event events[CONTROL_CONNECTIONS_MAX + 1];
	int count = epoll_wait(control->epoll, events, CONTROL_CONNECTIONS_MAX + 1, 0), descriptor;

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			connection_work(events[i].data.ptr);
	}
	/* Behind those, of which some may end here. */
	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		descriptor = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (descriptor >= 0)
			connection_admit(control, descriptor);
		else if (errno != EINTR && errno != ECONNABORTED)
			break;
	}
}

struct text *control_answer_begin(struct control_request *request)
{
	control_begin_answer(&request->control->answer, request->id);
	return &request->control->answer;
}

void control_answer_end(struct control_request *request)
{
	int error = control_end(&request->control->answer);

	if (!error) {
		connection_reply(request);
		return;
	}
	text_clear(&request->control->answer, KEEP_BYTES);
	control_refuse(request, error,
		       error == -EMSGSIZE ? "the answer does not fit into one packet" : strerror(-error));
}

void control_refuse(struct control_request *request, int error, const char *reason)
{
	log_debug(&request->control->log, "control: process %d is refused: %s", request->pid, reason);
	control_write_refusal(&request->control->answer, request->id, error, reason);
	connection_reply(request);
}

/* ---- the whole ---- */

int control_open(const struct log *log, const struct control_options *options, struct control **result)
{
	struct control *control = calloc(1, sizeof(*control));
	struct sockaddr_un *address;
	int error = 0, length;

	if (!control)
		return -ENOMEM;
	if (log)
		control->log = *log;
	control->handler = options->handler;
	control->context = options->context;
	control->user = geteuid();
	control->listener = control->directory = -1;
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		control->connections[i].descriptor = -1;
	address = &control->address;
	address->sun_family = AF_UNIX;
	length = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", options->directory, options->name);
	control->name = address->sun_path + strlen(options->directory) + 1;
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (control->epoll < 0) {
		error = -errno;
		log_error(log, "%s: cannot create the socket: %s", address->sun_path, strerror(-error));
	} else if (length >= (int)sizeof(address->sun_path)) {
		error = -ENAMETOOLONG;
		log_error(log, "%s/%s: the path of a control socket has at most %zu bytes", options->directory,
			  options->name, sizeof(address->sun_path) - 1);
	} else {
		control->directory = directory_open(log, options->directory);
		error = control->directory < 0 ? control->directory : listener_open(control);
	}
	if (error) {
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
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		struct control_request *connection = &control->connections[i];

		if (connection->pending)
			control_refuse(connection, -ESHUTDOWN, "the collector ends");
		if (connection->descriptor >= 0)
			connection_close(connection);
	}
	listener_close(control);
	if (control->directory >= 0)
		close(control->directory);
	if (control->epoll >= 0)
		close(control->epoll);
	text_free(&control->answer);
	free(control);
}

int control_descriptor(const struct control *control)
{
	return control->epoll;
}
