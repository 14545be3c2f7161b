/* SPDX-License-Identifier: BSD-2-Clause */
/* A process has one continuous collector: a process is claimed while it is traced, and released when it has ended. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/continuous/private.h"
#include "target/process/process.h"

#define CLAIMS "targets" /* in XPT_CONTROL_DIR */

/* ---- the file: its byte at offset PID is locked ---- */

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

/* ---- targets ---- */

int continuous_admit(void *context, pid_t pid)
{
	struct xpt_continuous *continuous = context;
	const struct log *log = &continuous->collector->log;
	int error = target_claim(&continuous->claims, pid);

	if (error == -EBUSY && continuous->refused != pid)
		log_error(log,
			  "process %d is profiled continuously already: save what it did there, or stop that first "
			  "(xputrace continuous status, save, stop; or an agent with --save-on)",
			  pid);
	else if (error && error != -EBUSY)
		log_error(log, "process %d cannot be claimed: %s", pid, strerror(-error));
	if (error)
		continuous->refused = pid;
	return error;
}

/* The number may be that of a thread. */
static int claim_target(struct xpt_continuous *continuous, pid_t pid)
{
	struct process_info info;
	int error = process_info_read(pid, &info);

	if (error) {
		if (error == -ESRCH)
			log_error(&continuous->collector->log, "process %d has ended already", pid);
		else
			log_error(&continuous->collector->log, "cannot inspect process %d: %s", pid, strerror(-error));
		return error;
	}
	error = continuous_admit(continuous, info.tgid);
	process_info_free(&info);
	return error;
}

void continuous_leave(void *context, pid_t pid)
{
	const struct xpt_continuous *continuous = context;

	target_unclaim(&continuous->claims, pid);
}

int continuous_make_control_dir(const struct log *log)
{
	int error = mkdir(XPT_CONTROL_DIR, 0700) && errno != EEXIST ? -errno : 0;

	if (error)
		log_error(log, "cannot create %s: %s", XPT_CONTROL_DIR, strerror(-error));
	return error;
}

int continuous_claim_targets(struct xpt_continuous *continuous)
{
	const struct collector *collector = continuous->collector;
	const struct log *log = &collector->log;
	int error = target_claims_open(log, XPT_CONTROL_DIR "/" CLAIMS, &continuous->claims);

	if (!error && collector->options.all_processes) {
		error = target_claim_all(&continuous->claims);
		if (error && error != -EBUSY)
			log_error(log, "processes cannot be claimed: %s", strerror(-error));
		else if (error)
			log_error(log,
				  "some processes are profiled continuously already, so all of them cannot be: stop "
				  "that first (xputrace continuous stop, or an agent with --save-on)");
	}
	for (size_t i = 0; i < collector->options.pid_count && !error; i++)
		error = claim_target(continuous, collector->pids[i]);
	return error;
}
