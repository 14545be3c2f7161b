/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/tracepoint/uevents.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KERNEL_GROUP 1 /* the kernel's own messages; 2 has those of udev */

int uevents_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	int error;

	if (descriptor < 0)
		return -errno;
	if (!bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		return descriptor;
	error = -errno;
	close(descriptor);
	return error;
}

/* A message is "add@/module/xe" and then KEY=VALUE strings, all ended by a 0 byte. */
static bool adds(const char *message, size_t length)
{
	const char *end = message + length, *field = message;

	if (strncmp(message, "add@", 4))
		return false;
	if (!strncmp(message, "add@/module/", 12))
		return true;
	for (; field < end; field += strlen(field) + 1)
		if (!strncmp(field, "DEVNAME=", 8))
			return true;
	return false;
}

bool uevents_read(int descriptor)
{
	bool added = false;
	char message[8192];

	for (;;) {
		ssize_t length = recv(descriptor, message, sizeof(message) - 1, MSG_TRUNC);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == ENOBUFS) {
			added = true;
			continue;
		}
		if (length <= 0)
			return added;
		if ((size_t)length > sizeof(message) - 1)
			length = sizeof(message) - 1;
		message[length] = '\0';
		added |= adds(message, length);
	}
}
