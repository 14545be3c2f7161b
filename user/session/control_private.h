/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's server inside: between control.c and control_connection.c only. */
#ifndef XPT_SESSION_CONTROL_PRIVATE_H
#define XPT_SESSION_CONTROL_PRIVATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "session/control.h"
#include "session/control_message.h"
#include "session/control_socket.h"

/*
 * It reads a line, has it answered, writes the answer, and only then reads on: what else the client has sent stays in
 * the kernel's buffer. So input and output hold one line at most.
 */
struct connection {
	int descriptor; /* -1: the slot is free */
	__u32 serial;	/* changes when the slot is taken: events of the one before are told by it */
	pid_t pid;
	struct text input;		 /* of a line whose end has not come yet */
	struct text output;		 /* of a line that has not been taken whole by the client */
	size_t sent;			 /* of output */
	__u64 began;			 /* when input or output was begun; 0: both are empty */
	__u64 active;			 /* when the last line was begun or answered */
	__u32 interest;			 /* events that are waited for */
	struct control_request *request; /* with the handler */
	bool ending;			 /* nothing is read any more; ends when output is sent */
};

struct control_request {
	struct control *control;       /* NULL: the slot is free */
	struct connection *connection; /* NULL: it has ended */
	__s64 id;
};

struct control {
	struct log log;
	control_handler handler;
	void *context;
	__u64 line_timeout, idle_timeout;
	struct control_socket socket;
	int epoll;
	uid_t user;
	__u64 accept_due; /* there was no descriptor left: when it is tried again; 0: the listener is waited for */
	__u32 serials;
	struct connection connections[CONTROL_CONNECTIONS_MAX];
	struct control_request requests[CONTROL_REQUESTS_MAX];
	char scratch[CONTROL_LINE_MAX];
};

/* Takes the descriptor over into a free slot. */
void connection_open(struct control *control, struct connection *connection, int descriptor, pid_t pid, __u64 now);
void connection_close(struct control *control, struct connection *connection);
/* Does what the events tell of. The connection may have ended then. */
void connection_work(struct control *control, struct connection *connection, __u32 events, __u64 now);
__u64 connection_due(const struct control *control, const struct connection *connection);
/* Its time is over. */
void connection_expire(struct control *control, struct connection *connection, __u64 now);
/* Another one takes its slot. */
void connection_evict(struct control *control, struct connection *connection, __u64 now);

#endif
