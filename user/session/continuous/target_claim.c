/* SPDX-License-Identifier: BSD-2-Clause */
/* The byte of the file at offset PID is locked. */
#include "session/continuous/target_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int target_claims_open(const struct log *log, const char *path, struct target_claims *claims)
{
	int error;

	claims->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (claims->file >= 0)
		return 0;
	error = -errno;
	log_error(log, "%s: cannot be opened: %s", path, strerror(-error));
	return error;
}

static int lock(int file, short type, off_t start, off_t length)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };

	if (!fcntl(file, F_OFD_SETLK, &range))
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

int target_claim(const struct target_claims *claims, pid_t pid)
{
	return lock(claims->file, F_WRLCK, pid, 1);
}

void target_unclaim(const struct target_claims *claims, pid_t pid)
{
	lock(claims->file, F_UNLCK, pid, 1);
}

int target_claim_all(const struct target_claims *claims)
{
	return lock(claims->file, F_WRLCK, 0, 0);
}

void target_claims_close(struct target_claims *claims)
{
	if (claims->file >= 0)
		close(claims->file);
	claims->file = -1;
}
