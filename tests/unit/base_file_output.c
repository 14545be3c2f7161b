/* SPDX-License-Identifier: BSD-2-Clause */
/* Files at a path that somebody has given: what is created, written over, refused. */
#include "base/file/output.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER 65534
#define PATH_SIZE 256

static char folder[64];

static void set_up(void)
{
	strcpy(folder, "/tmp/xputrace-output-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static void tear_down(void)
{
	char command[PATH_SIZE];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(base_file_output, .init = set_up, .fini = tear_down);

static const char *in_folder(const char *name)
{
	static char paths[4][PATH_SIZE];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_SIZE, "%s/%s", folder, name);
	return path;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

static struct stat look(const char *path)
{
	struct stat status;

	cr_assert_eq(stat(path, &status), 0, "%s", path);
	return status;
}

/* What opening gives, closed again. */
static int opened(const char *path)
{
	int descriptor = output_open(path, O_TRUNC);

	if (descriptor < 0)
		return descriptor;
	close(descriptor);
	return 0;
}

/* A file with that text in the place of the path. */
static int replaced(const char *path, const char *text, bool over)
{
	struct output_file file;
	int error = output_temporary(path, &file);

	if (error)
		return error;
	file.over = over;
	cr_expect_eq(write(file.descriptor, text, strlen(text)), (ssize_t)strlen(text));
	return output_end(&file, 0);
}

Test(base_file_output, new_and_old_files)
{
	char path[PATH_SIZE];
	int descriptor;

	strcpy(path, in_folder("new"));
	umask(0);
	cr_expect_eq(opened(path), 0);
	cr_expect_eq(look(path).st_mode & 07777, 0600);
	put(path, "before");
	cr_expect_eq(chmod(path, 0640), 0);
	descriptor = output_open(path, 0);
	cr_assert_geq(descriptor, 0);
	cr_expect_eq(write(descriptor, "BE", 2), 2);
	close(descriptor);
	cr_expect_eq(look(path).st_size, 6, "what is there stays, and is written over");
	cr_expect_eq(opened(path), 0);
	cr_expect_eq(look(path).st_size, 0);
	cr_expect_eq(look(path).st_mode & 07777, 0600, "it is a new one");
	cr_expect_eq(look(in_folder("new.old")).st_size, 6);
	cr_expect_eq(look(in_folder("new.old")).st_mode & 07777, 0640);
	cr_expect_eq(opened(path), 0);
	cr_expect_eq(look(in_folder("new.old")).st_size, 6, "an empty file is not worth it");
	put(path, "later");
	cr_expect_eq(opened(path), 0);
	cr_expect_eq(look(in_folder("new.old")).st_size, 5, "the one before goes");
	put(path, "again");
	cr_expect_eq(unlink(in_folder("new.old")), 0);
	cr_expect_eq(mkdir(in_folder("new.old"), 0700), 0);
	cr_expect_eq(opened(path), 0);
	cr_expect_eq(look(path).st_size, 0, "it cannot be kept: it is written over");
	cr_expect_eq(opened(""), -ENOENT);
	cr_expect_eq(opened(folder), -EISDIR);
	cr_expect_eq(opened(in_folder("none/file")), -ENOENT);
	cr_expect_eq(opened(in_folder("new/file")), -ENOTDIR);
	cr_expect_eq(opened("/dev/null"), 0);
}

Test(base_file_output, relative_paths_and_own_links)
{
	cr_assert_eq(chdir(folder), 0);
	cr_expect_eq(opened("here"), 0);
	cr_expect_eq(symlink("there", "link"), 0);
	cr_expect_eq(opened("link"), 0, "a link that leads nowhere yet");
	cr_expect_eq(look(in_folder("there")).st_mode & 07777, 0600);
	cr_expect_eq(opened("./link"), 0);
	cr_expect_eq(symlink(folder, "again"), 0);
	cr_expect_eq(opened("again/link"), 0);
	cr_expect_eq(symlink("loop", "loop"), 0);
	cr_expect_eq(opened("loop"), -ELOOP);
}

/* As /dev/stdout leads to a pipe. */
Test(base_file_output, links_of_the_kernel)
{
	char path[64], byte;
	int pipes[2], descriptor;

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[1]);
	descriptor = output_open(path, O_TRUNC);
	cr_assert_geq(descriptor, 0, "%s", strerror(-descriptor));
	cr_expect_eq(write(descriptor, "x", 1), 1);
	cr_expect_eq(read(pipes[0], &byte, 1), 1);
	close(descriptor);
}

Test(base_file_output, strangers)
{
	if (geteuid())
		cr_skip_test("only root can make files of others");
	/* A directory into which everybody may write. */
	cr_assert_eq(chmod(folder, 01777), 0);
	put(in_folder("ours"), "secret");
	cr_expect_eq(symlink("ours", in_folder("link")), 0);
	cr_expect_eq(lchown(in_folder("link"), STRANGER, STRANGER), 0);
	cr_expect_eq(opened(in_folder("link")), -ELOOP);
	cr_expect_eq(link(in_folder("ours"), in_folder("second")), 0);
	cr_expect_eq(opened(in_folder("second")), -EPERM, "the name may be a stranger's");
	cr_expect_eq(look(in_folder("ours")).st_size, 6);
	cr_expect_eq(unlink(in_folder("second")), 0);
	cr_expect_eq(opened(in_folder("ours")), 0);
	cr_expect_eq(look(in_folder("ours.old")).st_size, 6);
	put(in_folder("ours"), "kept");
	cr_expect_eq(chown(in_folder("ours.old"), STRANGER, STRANGER), 0);
	cr_expect_eq(opened(in_folder("ours")), -EPERM, "a stranger's is not replaced");
	cr_expect_eq(look(in_folder("ours")).st_size, 4);
	put(in_folder("theirs"), "");
	cr_expect_eq(chown(in_folder("theirs"), STRANGER, STRANGER), 0);
	cr_expect_eq(opened(in_folder("theirs")), -EPERM);
	cr_expect_eq(mkfifo(in_folder("pipe"), 0666), 0);
	cr_expect_eq(chown(in_folder("pipe"), STRANGER, STRANGER), 0);
	cr_expect_eq(opened(in_folder("pipe")), -EPERM, "and nobody has waited for a reader");
	/* In the stranger's own directory, too, in which all may be a stranger's. */
	cr_expect_eq(mkdir(in_folder("home"), 0755), 0);
	put(in_folder("home/file"), "x");
	cr_expect_eq(chown(in_folder("home"), STRANGER, STRANGER), 0);
	cr_expect_eq(chown(in_folder("home/file"), STRANGER, STRANGER), 0);
	cr_expect_eq(opened(in_folder("home/file")), -EPERM);
	cr_expect_eq(opened(in_folder("home/new")), 0);
	cr_expect_eq(look(in_folder("home/new")).st_uid, 0);
}

Test(base_file_output, the_owner)
{
	if (geteuid())
		cr_skip_test("only root can give files away");
	cr_assert_eq(chmod(folder, 01777), 0);
	put(in_folder("theirs"), "before");
	cr_expect_eq(chown(in_folder("theirs"), STRANGER, STRANGER), 0);
	put(in_folder("ours"), "before");
	cr_expect_eq(symlink("theirs", in_folder("link")), 0);
	cr_expect_eq(lchown(in_folder("link"), STRANGER, STRANGER), 0);
	output_set_owner(STRANGER, STRANGER);
	cr_expect_eq(opened(in_folder("new")), 0);
	cr_expect_eq(look(in_folder("new")).st_uid, STRANGER);
	cr_expect_eq(look(in_folder("new")).st_gid, STRANGER);
	cr_expect_eq(opened(in_folder("link")), 0);
	cr_expect_eq(look(in_folder("theirs")).st_size, 0);
	cr_expect_eq(look(in_folder("theirs.old")).st_size, 6);
	cr_expect_eq(opened(in_folder("ours")), 0);
	cr_expect_eq(look(in_folder("ours.old")).st_uid, 0, "only what is created is given away");
	cr_expect_eq(look(in_folder("ours")).st_uid, STRANGER);
	cr_expect_eq(replaced(in_folder("fresh"), "temporary", false), 0);
	cr_expect_eq(replaced(in_folder("fresh"), "again", false), 0);
	cr_expect_eq(look(in_folder("fresh")).st_size, 5);
	cr_expect_eq(look(in_folder("fresh")).st_uid, STRANGER);
	cr_expect_eq(look(in_folder("fresh.old")).st_size, 9);
	cr_expect_eq(replaced(in_folder("fresh"), "over", true), 0);
	cr_expect_eq(look(in_folder("fresh")).st_size, 4);
	cr_expect_eq(look(in_folder("fresh.old")).st_size, 9, "it was not kept");
}

Test(base_file_output, a_temporary_file_is_new_and_private)
{
	struct output_file first, second;
	char name[NAME_MAX + 1];

	cr_assert_eq(output_temporary(in_folder("r.csv"), &first), 0);
	cr_assert_eq(output_temporary(in_folder("r.csv"), &second), 0);
	cr_assert_str_neq(first.temporary, second.temporary);
	cr_assert_eq(strncmp(first.temporary, "r.csv.", 6), 0, "%s", first.temporary);
	cr_assert_eq(look(in_folder(first.temporary)).st_mode & 07777, 0600);
	strcpy(name, first.temporary);
	cr_assert_eq(output_end(&first, -EINTR), -EINTR);
	cr_assert_eq(access(in_folder(name), F_OK), -1);
	cr_assert_eq(access(in_folder("r.csv"), F_OK), -1);
	cr_assert_eq(output_end(&second, 0), 0);
	cr_assert_eq(look(in_folder("r.csv")).st_mode & 07777, 0600);
	cr_assert_eq(output_temporary(in_folder("missing/r.csv"), &first), -ENOENT);
	cr_assert_eq(first.descriptor, -1);
	memset(name, 'a', NAME_MAX);
	name[NAME_MAX] = '\0';
	cr_assert_eq(chdir(folder), 0);
	cr_assert_eq(output_temporary(name, &first), -ENAMETOOLONG);
}

/* In a directory of a stranger, who puts there what would lead elsewhere. */
static void expect_whole_files_refuse(const char *name, int expected)
{
	struct output_file file = { .descriptor = -1 };
	int error = output_begin(in_folder(name), &file);

	cr_expect_eq(error, expected, "%s: %s", name, strerror(-error));
	if (!error)
		output_end(&file, -ECANCELED);
	error = expected == -ELOOP ? output_temporary(in_folder(name), &file) : replaced(in_folder(name), "new", true);
	cr_expect_eq(error, expected, "%s, temporary: %s", name, strerror(-error));
}

Test(base_file_output, strangers_and_whole_files)
{
	struct output_file file;

	if (geteuid())
		cr_skip_test("only root can make files of others");
	cr_assert_eq(mkdir(in_folder("secret"), 0755), 0);
	put(in_folder("secret/file"), "secret");
	cr_assert_eq(mkdir(in_folder("home"), 0755), 0);
	cr_assert_eq(chown(in_folder("home"), STRANGER, STRANGER), 0);
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = { "home/link", "home/directory", "home/device", "home/dangling" };
		static const char *const targets[] = { "../secret/file", "../secret", "/dev/zero", "../secret/new" };

		cr_assert_eq(symlink(targets[i], in_folder(names[i])), 0);
		cr_assert_eq(lchown(in_folder(names[i]), STRANGER, STRANGER), 0);
	}
	cr_assert_eq(mkfifo(in_folder("home/pipe"), 0666), 0);
	cr_assert_eq(chown(in_folder("home/pipe"), STRANGER, STRANGER), 0);
	cr_assert_eq(link(in_folder("secret/file"), in_folder("home/second")), 0);
	expect_whole_files_refuse("home/link", -ELOOP);
	expect_whole_files_refuse("home/directory/new", -ELOOP);
	expect_whole_files_refuse("home/device", -ELOOP);
	expect_whole_files_refuse("home/dangling", -ELOOP);
	expect_whole_files_refuse("home/pipe", -EPERM);
	expect_whole_files_refuse("home/second", -EPERM);
	/* The directory becomes a link while the file is written. */
	cr_assert_eq(output_begin(in_folder("home/new"), &file), 0);
	cr_assert_eq(rename(in_folder("home"), in_folder("moved")), 0);
	cr_assert_eq(symlink("secret", in_folder("home")), 0);
	cr_expect_eq(output_end(&file, 0), 0);
	cr_expect_eq(look(in_folder("moved/new")).st_uid, 0);
	cr_expect_eq(access(in_folder("secret/new"), F_OK), -1);
	cr_expect_eq(look(in_folder("secret/file")).st_size, 6);
	cr_expect_eq(access(in_folder("secret/file.old"), F_OK), -1);
}

Test(base_file_output, who_called_sudo)
{
	static const char *const bad[] = {
		"",	"abc", "-1",  "+5",	    " 5",	  "5 ",		 "5\n",
		"0x10", "1.5", "5,6", "4294967295", "4294967296", "99999999999", "18446744073709551621"
	};
	uid_t user = 7;
	gid_t group = 8;

	if (geteuid())
		cr_skip_test("needs root");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	cr_expect_not(sudo_caller(&user, &group));
	setenv("SUDO_UID", "1000", 1);
	cr_expect_not(sudo_caller(&user, &group), "only a user");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("SUDO_UID", bad[i], 1);
		setenv("SUDO_GID", "100", 1);
		cr_expect_not(sudo_caller(&user, &group), "user '%s'", bad[i]);
		setenv("SUDO_UID", "1000", 1);
		setenv("SUDO_GID", bad[i], 1);
		cr_expect_not(sudo_caller(&user, &group), "group '%s'", bad[i]);
	}
	cr_expect(user == 7 && group == 8, "nothing is set");
	setenv("SUDO_UID", "4294967294", 1);
	setenv("SUDO_GID", "0", 1);
	cr_assert(sudo_caller(&user, &group));
	cr_expect(user == 4294967294u && group == 0);
	cr_assert_eq(seteuid(65534), 0);
	cr_expect_not(sudo_caller(&user, &group), "not root");
	cr_assert_eq(seteuid(0), 0);
}
