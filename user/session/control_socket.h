/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a control socket in the file system: made so that only its owner reaches it, never taken from a server
 * that lives, taken over from one that was killed.
 */
#ifndef XPT_SESSION_CONTROL_SOCKET_H
#define XPT_SESSION_CONTROL_SOCKET_H

#include <sys/types.h>
#include <sys/un.h>

#include "base/log.h"

#define CONTROL_LOCK_SUFFIX ".lock"

struct control_socket {
	int listener; /* does not block; listens */
	int folder;   /* of the path */
	int lock; /* a file beside the socket, locked as long as the server lives: of two starters only one goes on */
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* in the folder */
	dev_t device;						   /* of what was made at the path */
	ino_t inode;
};

/*
 * Makes the folder (0700) when there is none, but nothing above it, and listens at the path (0600). Errors are logged
 * with what to do about them:
 * -EADDRINUSE    a server listens there (its pid is named), or is just being started or ended by another process
 * -EEXIST        something else is there, which is left alone
 * -EPERM         others than root and the caller's effective user own the folder or may write to it
 * -EINVAL, -ENAMETOOLONG  of the path; and what the system says otherwise: -EACCES, -ENOENT, -ENOTDIR, -EROFS...
 */
int control_socket_open(const struct log *log, const char *path, struct control_socket *result);
/* Removes the socket if it is still this one, and the lock. */
void control_socket_close(struct control_socket *control_socket);

/* The address of a path: -EINVAL for an empty one, -ENAMETOOLONG. */
int control_socket_address(const char *path, struct sockaddr_un *address);

#endif
