/* SPDX-License-Identifier: BSD-2-Clause */
/* A place for the tests of folders, and what lies in it. */
#ifndef TEST_BASE_FILE_FOLDER_H
#define TEST_BASE_FILE_FOLDER_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/folder_private.h"

#define MAYBE_UNUSED __attribute__((unused))
#define STRANGER 65534 /* a user who is neither root nor the owner */
#define NOBODY ((uid_t)-1)

/* The test's own directory, and a path in it. */
static char place[64];

static MAYBE_UNUSED const char *in(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 8];

	snprintf(path, PATH_MAX, "%s/%s", place, name);
	return path;
}

static MAYBE_UNUSED void place_make(const char *above)
{
	signal(SIGXFSZ, SIG_IGN);
	umask(022);
	snprintf(place, sizeof(place), "%s/base_folder.XXXXXX", above);
	cr_assert_not_null(mkdtemp(place));
	chmod(place, 0755);
}

static MAYBE_UNUSED int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static MAYBE_UNUSED void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static MAYBE_UNUSED void place_remove(void)
{
	remove_tree(place);
}

static MAYBE_UNUSED void want_root(void)
{
	if (!geteuid())
		return;
	place_remove();
	cr_skip_test("root is wanted, to act for others");
}

/* A file system of the test's own, which nobody else sees. */
static MAYBE_UNUSED void mount_own(const char *path, const char *options)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", path, "tmpfs", 0, options)) {
		int error = errno;

		place_remove();
		cr_skip_test("a tmpfs with %s cannot be mounted in a namespace of its own: %s", options,
			     strerror(error));
	}
}

/* A process that goes on until it is killed, or the test has ended. 0: this is it. */
static MAYBE_UNUSED pid_t fork_endless(void)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static MAYBE_UNUSED void end_process(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "ended by itself, with %x", status);
}

/* How many entries a directory has; those that begin with a dot count too. */
static MAYBE_UNUSED size_t entries(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	cr_assert_not_null(directory, "%s: %s", path, strerror(errno));
	while ((entry = readdir(directory)))
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(directory);
	return count;
}

static MAYBE_UNUSED bool there(const char *path)
{
	struct stat status;

	return !lstat(path, &status);
}

static MAYBE_UNUSED struct stat status_of(const char *path)
{
	struct stat status;

	cr_assert_eq(lstat(path, &status), 0, "%s: %s", path, strerror(errno));
	return status;
}

static MAYBE_UNUSED void make_file(const char *path, const char *text)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	cr_assert_geq(descriptor, 0);
	cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
	close(descriptor);
}

static MAYBE_UNUSED void make_directory(const char *path, mode_t mode)
{
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(chmod(path, mode), 0);
}

static MAYBE_UNUSED void make_link(const char *text, const char *path, uid_t uid)
{
	cr_assert_eq(symlink(text, path), 0);
	cr_assert_eq(lchown(path, uid, uid), 0);
}

/* What stands in a file of at most 255 bytes. */
static MAYBE_UNUSED const char *text_of(const char *path)
{
	static char text[256];
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(descriptor, text, sizeof(text) - 1);

	close(descriptor);
	cr_assert_geq(length, 0, "%s cannot be read", path);
	text[length] = '\0';
	return text;
}

/* ---- what the log has got ---- */

struct said {
	char text[1100]; /* the last message */
	unsigned int count;
};

static struct said said;

static MAYBE_UNUSED void said_write(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	snprintf(said.text, sizeof(said.text), "%s", text);
	said.count++;
}

static const struct log said_log MAYBE_UNUSED = { .write = said_write, .level = XPT_LOG_WARN };

/* Opens what must be all right. */
static MAYBE_UNUSED struct folder *opened(const char *path, uid_t uid)
{
	struct folder *folder = NULL;

	cr_assert_eq(folder_open(&said_log, path, uid, uid, &folder), 0, "%s", said.text);
	return folder;
}

/* Opens what must be refused, with one message that has these words. */
static MAYBE_UNUSED void refused(const char *path, uid_t uid, int error, const char *words)
{
	struct folder *folder = NULL;
	int result;

	said = (struct said){ 0 };
	result = folder_open(&said_log, path, uid, uid, &folder);
	cr_assert_eq(result, error, "%s gives %d and not %d; said: %s", path, result, error, said.text);
	cr_assert_null(folder);
	cr_assert_eq(said.count, 1, "%s: %u messages", path, said.count);
	cr_assert(strstr(said.text, words), "'%s' has nothing of '%s'", said.text, words);
}

#endif
