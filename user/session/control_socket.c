/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 64
#define LOCK_ATTEMPTS 16 /* each that is in vain means that another server has just ended */

int control_socket_address(const char *path, struct sockaddr_un *address)
{
	size_t length = strlen(path);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!length)
		return -EINVAL;
	if (length >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path, path, length);
	return 0;
}

/* Splits the path, which fits in a socket's address, in two. */
static int split(const char *path, char *folder, char *name)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (!*last || !strcmp(last, ".") || !strcmp(last, ".."))
		return -EINVAL;
	strcpy(name, last);
	/* A slash at the end would follow a symbolic link. */
	while (length > 1 && path[length - 1] == '/')
		length--;
	if (slash)
		snprintf(folder, sizeof(((struct sockaddr_un *)NULL)->sun_path), "%.*s", length ? (int)length : 1,
			 path);
	else
		strcpy(folder, ".");
	return 0;
}

static int folder_check(const struct log *log, const char *path, int folder)
{
	struct stat status;

	if (fstat(folder, &status))
		return -errno;
	if (status.st_uid && status.st_uid != geteuid()) {
		log_error(log, "%s: belongs to user %u: a control socket wants a directory of root or of its own user",
			  path, status.st_uid);
		return -EPERM;
	}
	if (status.st_mode & (S_IWGRP | S_IWOTH)) {
		log_error(log,
			  "%s: others may write to it (mode %04o): take that from them with `chmod go-w`, or choose "
			  "another directory for the control socket",
			  path, status.st_mode & 07777);
		return -EPERM;
	}
	return 0;
}

static int folder_open(const struct log *log, const char *path, int *result)
{
	int error = 0, descriptor;

	if (mkdir(path, 0700) && errno != EEXIST) {
		error = -errno;
		log_error(log, "%s: cannot be made: %s", path, strerror(-error));
		return error;
	}
	descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0) {
		error = -errno;
		log_error(log, "%s: cannot be opened: %s%s", path, strerror(-error),
			  error == -ENOTDIR || error == -ELOOP ? " (symbolic links are not followed here)" : "");
		return error;
	}
	error = folder_check(log, path, descriptor);
	if (error) {
		close(descriptor);
		return error;
	}
	*result = descriptor;
	return 0;
}

/* Whether somebody listens at the path: 0 and who it is (0: cannot be told), or why not. */
static int listener_pid(const char *path, pid_t *pid)
{
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);
	struct sockaddr_un address;

	*pid = 0;
	if (descriptor < 0)
		return -errno;
	control_socket_address(path, &address);
	if (connect(descriptor, (struct sockaddr *)&address, sizeof(address)))
		error = -errno;
	else if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		peer.pid = 0;
	close(descriptor);
	*pid = peer.pid;
	/* It has not yet taken those that wait. */
	return error == -EAGAIN ? 0 : error;
}

static int say_taken(const struct log *log, const char *path)
{
	pid_t pid;

	if (listener_pid(path, &pid))
		log_error(log, "%s: another process is just starting or ending to listen there: try again", path);
	else if (pid)
		log_error(log, "%s: process %d listens there already: stop it, or choose another name", path, pid);
	else
		log_error(log, "%s: a process that cannot be seen from here listens there already: choose another name",
			  path);
	return -EADDRINUSE;
}

/* 0: the lock is held, or -EAGAIN: its file has been removed by its last holder meanwhile. */
static int lock_try(const struct log *log, const char *path, const char *name, int folder, int *result)
{
	struct stat mine, there;
	int error = 0, lock;

	lock = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (lock < 0 || fstat(lock, &mine)) {
		error = -errno;
		log_error(log, "%s%s: cannot be opened: %s", path, CONTROL_LOCK_SUFFIX, strerror(-error));
	} else if (!S_ISREG(mine.st_mode)) {
		error = -EEXIST;
		log_error(log, "%s%s: is no regular file: remove it", path, CONTROL_LOCK_SUFFIX);
	} else if (flock(lock, LOCK_EX | LOCK_NB)) {
		error = -errno;
		if (error == -EWOULDBLOCK)
			error = say_taken(log, path);
		else
			log_error(log, "%s%s: cannot be locked: %s", path, CONTROL_LOCK_SUFFIX, strerror(-error));
	} else if (fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) || there.st_dev != mine.st_dev ||
		   there.st_ino != mine.st_ino) {
		error = -EAGAIN;
	}
	if (error && lock >= 0)
		close(lock);
	else
		*result = lock;
	return error;
}

static int lock_take(const struct log *log, const char *path, struct control_socket *control_socket)
{
	char name[sizeof(control_socket->name) + sizeof(CONTROL_LOCK_SUFFIX)];
	int error = -EAGAIN;

	snprintf(name, sizeof(name), "%s%s", control_socket->name, CONTROL_LOCK_SUFFIX);
	for (int i = 0; error == -EAGAIN && i < LOCK_ATTEMPTS; i++)
		error = lock_try(log, path, name, control_socket->folder, &control_socket->lock);
	return error == -EAGAIN ? say_taken(log, path) : error;
}

/*
 * With the lock held, makes room at the path: only a socket without a listener, left by a server that was killed,
 * goes.
 */
static int clear_path(const struct log *log, const char *path, const struct control_socket *control_socket)
{
	struct stat status;
	pid_t pid;
	int error;

	if (fstatat(control_socket->folder, control_socket->name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	error = S_ISSOCK(status.st_mode) ? listener_pid(path, &pid) : -EPROTOTYPE;
	if (!error)
		return say_taken(log, path);
	if (error != -ECONNREFUSED) {
		log_error(log,
			  "%s: is there, and no control socket that was left behind: remove it, or choose another name",
			  path);
		return -EEXIST;
	}
	log_debug(log, "%s: is replaced, nobody listens there any more", path);
	return unlinkat(control_socket->folder, control_socket->name, 0) ? -errno : 0;
}

static int listener_bind(struct control_socket *control_socket, const struct sockaddr_un *address)
{
	struct stat status;

	control_socket->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* What bind() makes gets the mode of the socket itself: there is no moment at which others could connect. */
	if (control_socket->listener < 0 || fchmod(control_socket->listener, 0600) ||
	    bind(control_socket->listener, (const struct sockaddr *)address, sizeof(*address)))
		return -errno;
	if (fstatat(control_socket->folder, control_socket->name, &status, AT_SYMLINK_NOFOLLOW))
		return -errno;
	control_socket->device = status.st_dev;
	control_socket->inode = status.st_ino;
	return listen(control_socket->listener, BACKLOG) ? -errno : 0;
}

int control_socket_open(const struct log *log, const char *path, struct control_socket *result)
{
	struct control_socket made = { .listener = -1, .folder = -1, .lock = -1 };
	char folder[sizeof(made.name)];
	struct sockaddr_un address;
	int error;

	error = control_socket_address(path, &address);
	if (!error)
		error = split(path, folder, made.name);
	if (error) {
		log_error(log, "'%s': a control socket wants a path of at most %zu bytes that ends in a name", path,
			  sizeof(address.sun_path) - 1);
		return error;
	}
	error = folder_open(log, folder, &made.folder);
	if (!error)
		error = lock_take(log, path, &made);
	if (!error)
		error = clear_path(log, path, &made);
	if (!error) {
		error = listener_bind(&made, &address);
		if (error)
			log_error(log, "%s: cannot be listened at: %s", path, strerror(-error));
	}
	if (error) {
		control_socket_close(&made);
		return error;
	}
	*result = made;
	return 0;
}

/* Removes what has that name only if it is this file. */
static void remove_own(int folder, const char *name, dev_t device, ino_t inode)
{
	struct stat status;

	if (!fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) && status.st_dev == device && status.st_ino == inode)
		unlinkat(folder, name, 0);
}

/*
 * The order matters: as long as the listener is open, no other file gets the socket's inode number; and who finds the
 * lock's file removed knows that it was not the lock any more.
 */
void control_socket_close(struct control_socket *control_socket)
{
	char lock_name[sizeof(control_socket->name) + sizeof(CONTROL_LOCK_SUFFIX)];
	struct stat status;

	if (control_socket->inode)
		remove_own(control_socket->folder, control_socket->name, control_socket->device, control_socket->inode);
	if (control_socket->listener >= 0)
		close(control_socket->listener);
	if (control_socket->lock >= 0) {
		snprintf(lock_name, sizeof(lock_name), "%s%s", control_socket->name, CONTROL_LOCK_SUFFIX);
		if (!fstat(control_socket->lock, &status))
			remove_own(control_socket->folder, lock_name, status.st_dev, status.st_ino);
		close(control_socket->lock);
	}
	if (control_socket->folder >= 0)
		close(control_socket->folder);
	*control_socket = (struct control_socket){ .listener = -1, .folder = -1, .lock = -1 };
}
