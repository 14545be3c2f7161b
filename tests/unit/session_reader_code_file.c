/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that a program gives to a runtime: opened with its rights, never with ours. */
#include "session/reader/readers.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define GROUP 4242
#define SECRET "secret"

static char folder[64], path[128];

static void set_up(void)
{
	if (geteuid())
		cr_skip_test("only root can be somebody else");
	strcpy(folder, "/tmp/xputrace-code-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/file", folder);
}

static void tear_down(void)
{
	char command[128];

	if (geteuid())
		return;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(session_reader_code_file, .init = set_up, .fini = tear_down);

static void make_file(uid_t user, gid_t group, mode_t mode)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(file, 0);
	cr_assert_eq(write(file, SECRET, sizeof(SECRET)), sizeof(SECRET));
	cr_assert_eq(fchown(file, user, group), 0);
	cr_assert_eq(fchmod(file, mode), 0);
	close(file);
}

/* A process that has the descriptor, if flags are not negative, and waits; as nobody, in one more group, or as root. */
static pid_t start(bool root, int flags, int *descriptor)
{
	const gid_t group = GROUP;
	int pipes[2];
	char ready;
	pid_t child;

	*descriptor = flags < 0 ? -1 : open(path, flags | O_CLOEXEC);
	cr_assert(flags < 0 || *descriptor >= 0);
	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		if (!root &&
		    (setgroups(1, &group) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(1);
		if (write(pipes[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(pipes[0], &ready, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int opened(pid_t child, struct code_rights rights)
{
	char *absolute, text[sizeof(SECRET)];
	int file = code_file_open(child, &rights, path, &absolute);

	cr_expect_str_eq(absolute, path);
	free(absolute);
	if (file < 0)
		return file;
	cr_expect_eq(read(file, text, sizeof(text)), sizeof(text));
	close(file);
	return 0;
}

static int taken(pid_t child, int descriptor)
{
	char *absolute, text[sizeof(SECRET)];
	int file = code_file_take(child, descriptor, &absolute);

	free(absolute);
	if (file >= 0)
		file = code_file_check(file);
	if (file < 0)
		return file;
	cr_expect_eq(pread(file, text, sizeof(text), 0), sizeof(text));
	close(file);
	return 0;
}

static const struct code_rights nobody = { NOBODY, NOBODY, false }, root = { 0, 0, true }, weak_root = { 0, 0, false };

Test(session_reader_code_file, what_the_thread_may_read)
{
	static const struct {
		uid_t user;
		gid_t group;
		mode_t mode;
		int as_nobody, as_weak_root;
	} files[] = {
		{ 0, 0, 0600, -EACCES, 0 },
		{ 0, 0, 0644, 0, 0 },
		{ NOBODY, 0, 0600, 0, -EACCES },
		{ 0, NOBODY, 0640, 0, 0 },
		{ 0, GROUP, 0640, 0, 0 },
		{ 1, GROUP, 0640, 0, -EACCES },
		{ 1, GROUP + 1, 0640, -EACCES, -EACCES },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int none, own;
		pid_t child;

		make_file(files[i].user, files[i].group, files[i].mode);
		child = start(false, -1, &none);
		cr_expect_eq(opened(child, nobody), files[i].as_nobody, "%zu", i);
		end(child);
		child = start(true, -1, &none);
		cr_expect_eq(opened(child, weak_root), files[i].as_weak_root, "%zu", i);
		cr_expect_eq(opened(child, root), 0, "%zu", i);
		end(child);
		/* What was taken on is given back. */
		own = open(path, O_RDONLY | O_CLOEXEC);
		cr_expect_geq(own, 0);
		close(own);
		cr_expect_eq(geteuid(), 0);
	}
}

/* A call of nobody's, which executed a program of root's before the file was opened. */
Test(session_reader_code_file, rights_of_the_call)
{
	int none;
	pid_t child = start(true, -1, &none);

	make_file(0, 0, 0600);
	cr_expect_eq(opened(child, nobody), -EACCES);
	end(child);
	/* Its groups are not another user's. */
	make_file(1, GROUP, 0640);
	child = start(false, -1, &none);
	cr_expect_eq(opened(child, (struct code_rights){ NOBODY - 1, NOBODY, false }), -EACCES);
	cr_expect_eq(opened(child, nobody), 0);
	end(child);
}

Test(session_reader_code_file, descriptors)
{
	static const struct {
		int flags, error;
	} ways[] = { { O_RDONLY, 0 }, { O_RDWR, 0 }, { O_WRONLY, -EBADF }, { O_PATH, -EBADF } };

	make_file(0, 0, 0600);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int descriptor;
		pid_t child = start(false, ways[i].flags, &descriptor);

		cr_expect_eq(taken(child, descriptor), ways[i].error, "%zu", i);
		end(child);
		cr_expect_eq(taken(child, descriptor), -EBADF, "it has ended");
		close(descriptor);
	}
}
