/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of the socket, and on it xpt_remote_*(): a collector of another process. */
#include "control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/options.h"

#define NS_IN_S 1000000000ull
#define REMOTE_TIMEOUT (60 * NS_IN_S)

struct call {
	const char *path;
	const struct log *log;
	int descriptor;
	pid_t server;
	__u64 due; /* ns of CLOCK_MONOTONIC */
};

/* Limits the next operation to the time that is left. */
static int call_limit(const struct call *call, int option)
{
	__u64 now = clock_monotonic(), left = now < call->due ? call->due - now : 0;
	struct timeval time = { .tv_sec = (time_t)(left / NS_IN_S), .tv_usec = (suseconds_t)(left % NS_IN_S / 1000) };

	if (!time.tv_sec && !time.tv_usec)
		return -EAGAIN; /* 0 would be no limit */
	return setsockopt(call->descriptor, SOL_SOCKET, option, &time, sizeof(time)) ? -errno : 0;
}

static int fail(const struct call *call, int error)
{
	log_error(call->log, "%s: request failed: %s", call->path, strerror(-error));
	return error;
}

static int fail_answer(const struct call *call, int error, const char *reason)
{
	log_error(call->log, "%s: invalid answer from process %d: %s", call->path, call->server, reason);
	return error;
}

static int fail_connect(const struct call *call, int error)
{
	const char *reason;

	error = error == -ENOTDIR ? -ENOENT : error == -EPERM ? -EACCES : error == -EAGAIN ? -ETIMEDOUT : error;
	if (error == -ENOENT)
		reason = "no such socket: no collector runs under this name; start one with `xputrace continuous start`";
	else if (error == -ECONNREFUSED)
		reason =
			"nobody listens there any more: the collector was killed; start it again with `xputrace continuous start`";
	else if (error == -EPROTOTYPE)
		reason = "an older xputrace listens there: stop it with that version, or by a signal";
	else if (error == -EACCES)
		reason = "belongs to another user: run this as that user or as root";
	else if (error == -ETIMEDOUT)
		reason = "the collector has accepted no connection in time: is it stopped?";
	else
		return fail(call, error);
	log_error(call->log, "%s: %s", call->path, reason);
	return error;
}

/* Nobody else gets the request, nor is believed. */
static int check_server(struct call *call)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	if (getsockopt(call->descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return fail(call, -errno);
	call->server = peer.pid;
	if (!peer.uid || peer.uid == geteuid())
		return 0;
	log_error(call->log, "%s: process %d of user %u listens there: neither root nor you, so nothing is sent",
		  call->path, peer.pid, peer.uid);
	return -EACCES;
}

static int call_connect(struct call *call)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(call->path);
	int error;

	if (!length || length >= sizeof(address.sun_path)) {
		log_error(call->log, "'%s': the path of a control socket has 1 to %zu bytes", call->path,
			  sizeof(address.sun_path) - 1);
		return length ? -ENAMETOOLONG : -EINVAL;
	}
	memcpy(address.sun_path, call->path, length);
	call->descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (call->descriptor < 0)
		return fail(call, -errno);
	do {
		error = call_limit(call, SO_SNDTIMEO);
		if (!error && connect(call->descriptor, (const struct sockaddr *)&address, sizeof(address)))
			error = -errno;
	} while (error == -EINTR);
	return error ? fail_connect(call, error) : check_server(call);
}

/*
 * A server that has closed may have sent a refusal before: that is the answer then. If it has not read all of the
 * request, ECONNRESET comes first, once.
 */
static int call_exchange(const struct call *call, const struct text *request, char *packet, size_t *length)
{
	ssize_t got = 0;
	int error;

	do {
		error = call_limit(call, SO_SNDTIMEO);
		if (!error && send(call->descriptor, request->data, request->length, MSG_NOSIGNAL) < 0)
			error = -errno;
	} while (error == -EINTR || error == -ECONNRESET);
	while (!error || error == -EPIPE || error == -EINTR || error == -ECONNRESET) {
		error = call_limit(call, SO_RCVTIMEO);
		if (!error && (got = recv(call->descriptor, packet, CONTROL_PACKET_MAX, MSG_TRUNC)) < 0)
			error = -errno;
		else if (!error)
			break;
	}
	*length = (size_t)got;
	if (error == -EAGAIN) {
		log_error(call->log,
			  "%s: process %d has not answered in time: whether the request is carried out is unknown",
			  call->path, call->server);
		return -ETIMEDOUT;
	}
	if (!error && !got)
		return fail_answer(call, -ECONNRESET, "it closed the connection, or has ended");
	return error ? fail(call, error) : 0;
}

static int call_complete(struct call *call, const struct text *request, cJSON **answer)
{
	char reason[CONTROL_REASON_MAX], *packet = malloc(CONTROL_PACKET_MAX);
	size_t length;
	int error;

	if (!packet)
		return fail(call, -ENOMEM);
	error = call_connect(call);
	if (!error)
		error = call_exchange(call, request, packet, &length);
	if (!error && control_read_answer(packet, length, CONTROL_REQUEST_ID, answer, reason))
		error = fail_answer(call, -EPROTO, reason);
	free(packet);
	return error;
}

int control_call(const char *path, struct text *request, __u64 timeout, cJSON **answer, const struct log *log)
{
	__u64 now = clock_monotonic();
	struct call call = {
		.path = path,
		.log = log,
		.descriptor = -1,
		.due = timeout < ~0ull - now ? now + timeout : ~0ull,
	};
	int error = control_end(request);

	*answer = NULL;
	if (error == -EMSGSIZE)
		log_error(log, "a request has at most %d bytes", CONTROL_PACKET_MAX);
	else if (error)
		fail(&call, error);
	else
		error = call_complete(&call, request, answer);
	if (call.descriptor >= 0)
		close(call.descriptor);
	return error;
}

/* ---- xpt_remote_*() ---- */

/* options: of a save. The caller deletes the answer. */
static int remote_call(const struct xpt_remote *given, const char *what, const struct xpt_save_options *options,
		       cJSON **answer)
{
	struct xpt_remote remote = {};
	const char *reason = NULL;
	struct text request = {};
	struct log log;
	char path[128];
	int error = options_copy(&remote, sizeof(remote), given);

	if (error)
		return error;
	log = (struct log){ remote.log, remote.log_context, remote.log_level };
	control_begin_request(&request, CONTROL_REQUEST_ID, what);
	if (options)
		control_add_save(&request, options);
	/* What is no name is no file there either, and what does not fit here is too long for a socket. */
	snprintf(path, sizeof(path), "%s/%s.sock", XPT_CONTROL_DIR, remote.name ?: XPT_CONTINUOUS_NAME);
	error = control_call(path, &request, remote.timeout ?: REMOTE_TIMEOUT, answer, &log);
	text_free(&request);
	if (error)
		return error;
	error = control_answer_error(*answer, &reason);
	if (error) {
		log_error(&log, "%s", reason);
		cJSON_Delete(*answer);
	}
	return error;
}

int xpt_remote_save(const struct xpt_remote *remote, const struct xpt_save_options *given, struct xpt_saved *saved)
{
	struct xpt_save_options options = { .size = sizeof(options) };
	struct xpt_saved read = { .size = sizeof(read) };
	cJSON *answer;
	int error = given ? options_copy(&options, sizeof(options), given) : 0;

	if (!error)
		error = remote_call(remote, "save", &options, &answer);
	if (error)
		return error;
	error = control_read_saved(answer, &read) ? -EPROTO : 0;
	cJSON_Delete(answer);
	return error || !saved ? error : options_give(saved, &read, sizeof(read));
}

int xpt_remote_status(const struct xpt_remote *remote, struct xpt_continuous_status *status)
{
	struct xpt_continuous_status read = { .size = sizeof(read) };
	cJSON *answer;
	int error = remote_call(remote, "status", NULL, &answer);

	if (error)
		return error;
	error = control_read_status(answer, &read) ? -EPROTO : options_give(status, &read, sizeof(read));
	cJSON_Delete(answer);
	return error;
}

int xpt_remote_stop(const struct xpt_remote *remote)
{
	cJSON *answer;
	int error = remote_call(remote, "stop", NULL, &answer);

	if (!error)
		cJSON_Delete(answer);
	return error;
}
