/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that come into a folder whole or not at all. */
#include "base_file_folder.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

static void at_tmp(void)
{
	place_make("/tmp");
}

TestSuite(base_file_folder_file, .init = at_tmp, .fini = place_remove);

/* Opened in both ways: named is what it would be on a file system without O_TMPFILE. */
static struct folder *opened_as(const char *path, uid_t uid, bool named)
{
	struct folder *folder = opened(path, uid);

	cr_assert_not(folder->named, "%s has no O_TMPFILE", path);
	folder->named = named;
	return folder;
}

static struct folder_file *begun(struct folder *folder, const char *text)
{
	struct folder_file *file = NULL;

	cr_assert_eq(folder_file_begin(folder, &file), 0);
	cr_assert_eq(write(folder_file_descriptor(file), text, strlen(text)), (ssize_t)strlen(text));
	return file;
}

static void saved(struct folder *folder, const char *name, const char *extension, const char *expected)
{
	char result[FOLDER_RESULT_SIZE];

	cr_assert_eq(folder_file_commit(begun(folder, expected), name, extension, result, sizeof(result)), 0);
	cr_assert_str_eq(result, expected);
	cr_assert_str_eq(text_of(in(expected)), expected);
}

static void names_and_numbers(bool named)
{
	struct folder *folder = opened_as(place, NOBODY, named);
	struct folder_file *file = begun(folder, "x");

	cr_assert_eq(entries(place), named ? 1 : 0);
	cr_assert_eq(status_of(place).st_nlink, 2);
	folder_file_abandon(file);
	cr_assert_eq(entries(place), 0);
	saved(folder, "trace", "json", "trace.json");
	cr_assert_eq(status_of(in("trace.json")).st_mode, S_IFREG | 0600u);
	saved(folder, "trace", "json", "trace-2.json");
	saved(folder, "trace", "json", "trace-3.json");
	saved(folder, "trace", "xpt", "trace.xpt");
	saved(folder, "trace", "", "trace");
	saved(folder, "trace", "", "trace-2");
	saved(folder, "../trace", "json.gz", "_._trace.json.gz");
	/* Whatever it is that has the name, it is left alone. */
	make_directory(in("a.json"), 0755);
	make_link("nowhere", in("a-2.json"), geteuid());
	make_link("trace.json", in("a-3.json"), geteuid());
	saved(folder, "a", "json", "a-4.json");
	cr_assert_not(there(in("nowhere")));
	cr_assert_str_eq(text_of(in("trace.json")), "trace.json");
	cr_assert_eq(entries(place), 11);
	cr_assert_eq(folder_file_commit(begun(folder, "x"), "b", "json", NULL, 0), 0);
	folder_file_abandon(NULL);
	folder_close(folder);
}

Test(base_file_folder_file, names_and_numbers)
{
	names_and_numbers(false);
}

Test(base_file_folder_file, names_and_numbers_without_tmpfile)
{
	names_and_numbers(true);
}

Test(base_file_folder_file, names_that_are_long_or_wrong)
{
	struct folder *folder = opened(place, NOBODY);
	char name[300], extension[FOLDER_EXTENSION_MAX + 2], result[FOLDER_RESULT_SIZE];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	memset(extension, 'e', sizeof(extension));
	extension[FOLDER_EXTENSION_MAX] = '\0';
	cr_assert_eq(folder_file_commit(begun(folder, "1"), name, extension, result, sizeof(result)), 0);
	cr_assert_eq(strlen(result), FOLDER_NAME_MAX + 1 + FOLDER_EXTENSION_MAX);
	cr_assert_eq(folder_file_commit(begun(folder, "2"), name, extension, result, sizeof(result)), 0);
	cr_assert_str_eq(text_of(in(result)), "2");
	extension[FOLDER_EXTENSION_MAX] = 'e';
	extension[FOLDER_EXTENSION_MAX + 1] = '\0';
	cr_assert_eq(folder_file_commit(begun(folder, "x"), "a", extension, NULL, 0), -EINVAL);
	cr_assert_eq(folder_file_commit(begun(folder, "x"), "a", "x/../../b", NULL, 0), -EINVAL);
	cr_assert_eq(folder_file_commit(begun(folder, "x"), "a", ".json", NULL, 0), -EINVAL);
	cr_assert_eq(entries(place), 2);
	folder_close(folder);
}

Test(base_file_folder_file, files_belong_to_the_owner)
{
	struct folder *folder;
	bool named;

	want_root();
	for (named = false;; named = true) {
		folder = opened_as(place, 1234, named);
		saved(folder, "a", "", named ? "a-2" : "a");
		cr_assert_eq(status_of(in(named ? "a-2" : "a")).st_uid, 1234);
		cr_assert_eq(status_of(in(named ? "a-2" : "a")).st_gid, 1234);
		cr_assert_eq(folder_replace(folder, "index", "i", 1), 0);
		cr_assert_eq(status_of(in("index")).st_uid, 1234);
		folder_close(folder);
		if (named)
			break;
	}
	/* One who may not give away saves all the same, and says so once. */
	cr_assert_eq(chown(place, STRANGER, STRANGER), 0);
	cr_assert_eq(seteuid(STRANGER), 0);
	said = (struct said){ 0 };
	folder = opened_as(place, 1234, false);
	saved(folder, "b", "", "b");
	saved(folder, "c", "", "c");
	cr_assert_eq(said.count, 1);
	cr_assert(strstr(said.text, "cannot be given to user 1234"));
	folder_close(folder);
	cr_assert_eq(seteuid(0), 0);
}

/* ---- many at once ---- */

#define RUNS 1000
#define TEXT_LENGTH 120

/* As many files as RUNS under one name; what is in them tells who wrote which, twice. */
static int save_many(struct folder *folder, int process)
{
	char text[TEXT_LENGTH + 1], name[FOLDER_RESULT_SIZE];
	int i;

	for (i = 0; i < RUNS; i++) {
		struct folder_file *file;

		snprintf(text, sizeof(text), "%d %d%*s%d %d\n", process, i, 80, "", process, i);
		if (folder_file_begin(folder, &file) || write(folder_file_descriptor(file), text, strlen(text)) < 0 ||
		    folder_file_commit(file, "same", "txt", name, sizeof(name)))
			return 1;
		if (strcmp(text_of(in(name)), text) != 0)
			return 2;
	}
	return 0;
}

static void two_processes(bool named)
{
	bool found[2][RUNS] = { { false } };
	struct folder *folder = opened_as(place, NOBODY, named);
	int process, status, i;

	for (process = 0; process < 2; process++) {
		if (!fork())
			_exit(save_many(folder, process));
	}
	for (process = 0; process < 2; process++) {
		cr_assert_gt(wait(&status), 0);
		cr_assert_eq(status, 0);
	}
	cr_assert_eq(entries(place), 2 * RUNS);
	for (i = 1; i <= 2 * RUNS; i++) {
		int number, again, process_again;
		char name[64];

		snprintf(name, sizeof(name), i == 1 ? "same.txt" : "same-%d.txt", i);
		cr_assert_eq(sscanf(text_of(in(name)), "%d %d %d %d", &process, &number, &process_again, &again), 4);
		cr_assert(process == process_again && number == again);
		cr_assert_not(found[process][number]);
		found[process][number] = true;
	}
	folder_close(folder);
}

Test(base_file_folder_file, two_processes_under_one_name)
{
	two_processes(false);
}

Test(base_file_folder_file, two_processes_under_one_name_without_tmpfile)
{
	two_processes(true);
}

/* ---- killed ---- */

/* Saves files of TEXT_LENGTH times 'x', in two halves, until it is killed; says so after each. */
static pid_t save_until_killed(struct folder *folder, int say)
{
	char half[TEXT_LENGTH / 2];
	pid_t pid = fork_endless();

	if (pid)
		return pid;
	memset(half, 'x', sizeof(half));
	for (;;) {
		struct folder_file *file;

		if (folder_file_begin(folder, &file) ||
		    write(folder_file_descriptor(file), half, sizeof(half)) != sizeof(half) ||
		    write(folder_file_descriptor(file), half, sizeof(half)) != sizeof(half) ||
		    folder_file_commit(file, "same", "txt", NULL, 0) || write(say, "s", 1) != 1)
			_exit(1);
	}
}

/* How many hidden files there are. The others are whole, and are removed. */
static size_t take_whole(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	size_t hidden = 0;

	while ((entry = readdir(directory))) {
		if (entry->d_name[0] != '.') {
			cr_assert_eq(strlen(text_of(in(entry->d_name))), TEXT_LENGTH);
			cr_assert_eq(unlink(in(entry->d_name)), 0);
		} else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			hidden++;
		}
	}
	closedir(directory);
	return hidden;
}

/* Returns how often a hidden file was left until the folder was opened again. */
static unsigned int kill_many(bool named)
{
	unsigned int left = 0, i;

	for (i = 0; i < 60; i++) {
		struct folder *folder = opened_as(place, NOBODY, named);
		int says[2];
		char said_once;
		pid_t pid;

		cr_assert_eq(pipe(says), 0);
		pid = save_until_killed(folder, says[1]);
		/* Not before it has saved something; then at any moment. */
		cr_assert_eq(read(says[0], &said_once, 1), 1);
		usleep(i * 37 % 400);
		end_process(pid);
		left += take_whole(place) > 0;
		folder_close(folder);
		folder_close(opened(place, NOBODY));
		cr_assert_eq(entries(place), 0);
		close(says[0]);
		close(says[1]);
	}
	return left;
}

Test(base_file_folder_file, killed_leaves_nothing)
{
	cr_assert_eq(kill_many(false), 0);
}

Test(base_file_folder_file, killed_leaves_nothing_without_tmpfile)
{
	cr_assert_gt(kill_many(true), 0, "never killed in the middle: this has shown nothing");
}

static void write_hidden(char *name, pid_t pid, unsigned long long start_time)
{
	snprintf(name, 64, ".xputrace-%d-%llu-0.part", pid, start_time);
	make_file(in(name), "x");
}

/* A number that nobody has, and the number of a process that began at another time. */
Test(base_file_folder_file, only_own_files_of_the_dead_are_removed)
{
	char dead[64], reused[64], locked[64], linked[64], theirs[64];
	struct folder *folder = opened_as(place, NOBODY, true);
	struct folder_file *file = begun(folder, "mine");
	pid_t pid = fork();
	int descriptor;

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	write_hidden(dead, pid, 7);
	write_hidden(reused, getpid(), 7);
	write_hidden(locked, pid, 8);
	write_hidden(linked, pid, 9);
	write_hidden(theirs, pid, 10);
	descriptor = open(in(locked), O_RDWR | O_CLOEXEC);
	cr_assert_eq(flock(descriptor, LOCK_EX), 0);
	cr_assert_eq(link(in(linked), in("linked")), 0);
	if (!geteuid())
		cr_assert_eq(chown(in(theirs), STRANGER, STRANGER), 0);
	else
		unlink(in(theirs));
	make_file(in(".xputrace-notes"), "x");
	make_file(in(".xputrace-1-1-01.part"), "x");
	make_file(in(".xputrace-1-1-1.part~"), "x");
	make_directory(in(".xputrace-1-1-2.part"), 0755);
	make_link(".xputrace-notes", in(".xputrace-1-1-3.part"), geteuid());
	cr_assert_eq(mkfifo(in(".xputrace-1-1-4.part"), 0600), 0);
	folder_close(opened(place, NOBODY));
	cr_assert_not(there(in(dead)));
	cr_assert_not(there(in(reused)));
	cr_assert(there(in(locked)));
	cr_assert(there(in(linked)));
	cr_assert(geteuid() || there(in(theirs)));
	/* Those six, that of the living, three that are not removed, and the second name of one of them. */
	cr_assert_eq(entries(place), geteuid() ? 10 : 11);
	cr_assert_eq(folder_file_commit(file, "a", "", NULL, 0), 0);
	cr_assert_str_eq(text_of(in("a")), "mine");
	close(descriptor);
	folder_close(folder);
}

/* ---- no room ---- */

/* Writes until that fails, and returns how. */
static int fill(int descriptor)
{
	static char bytes[65536];
	ssize_t written;

	do
		written = write(descriptor, bytes, sizeof(bytes));
	while (written > 0);
	return -errno;
}

static void no_room(const char *path, bool named, int error)
{
	static char bytes[2 << 20];
	struct folder *folder = opened_as(path, NOBODY, named);
	struct folder_file *file;
	struct statvfs before, after;
	char index[PATH_MAX];

	snprintf(index, sizeof(index), "%s/index", path);
	cr_assert_eq(folder_replace(folder, "index", "old", 3), 0);
	cr_assert_eq(statvfs(path, &before), 0);
	cr_assert_eq(folder_file_begin(folder, &file), 0);
	cr_assert_eq(fill(folder_file_descriptor(file)), error);
	folder_file_abandon(file);
	cr_assert_eq(folder_replace(folder, "index", bytes, sizeof(bytes)), error);
	cr_assert_str_eq(text_of(index), "old");
	cr_assert_eq(entries(path), 1);
	folder_close(folder);
	if (error != -ENOSPC)
		return;
	cr_assert_eq(statvfs(path, &after), 0);
	cr_assert_eq(after.f_bfree, before.f_bfree, "%lu blocks are not free again",
		     (unsigned long)(before.f_bfree - after.f_bfree));
	cr_assert_eq(after.f_ffree, before.f_ffree);
}

Test(base_file_folder_file, full_file_system)
{
	want_root();
	make_directory(in("mounted"), 0755);
	mount_own(in("mounted"), "size=1m,mode=755");
	no_room(in("mounted"), false, -ENOSPC);
	no_room(in("mounted"), true, -ENOSPC);
	umount(in("mounted"));
}

Test(base_file_folder_file, file_size_limit)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };

	make_directory(in("limited"), 0755);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	no_room(in("limited"), false, -EFBIG);
	no_room(in("limited"), true, -EFBIG);
}

/* The owner's share is used up, not root's: that shows when the file is given to the owner. */
Test(base_file_folder_file, quota_of_the_owner)
{
	struct folder *folder;
	struct folder_file *file;
	static char bytes[1 << 20];
	bool named;

	want_root();
	make_directory(in("mounted"), 0755);
	mount_own(in("mounted"), "size=4m,mode=755,usrquota_block_hardlimit=256k");
	folder = opened_as(in("mounted"), 1234, false);
	cr_assert_eq(folder_replace(folder, "index", "old", 3), 0);
	for (named = false;; named = true) {
		folder->named = named;
		cr_assert_eq(folder_file_begin(folder, &file), 0);
		cr_assert_eq(write(folder_file_descriptor(file), bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
		cr_assert_eq(folder_file_commit(file, "a", "", NULL, 0), -EDQUOT);
		cr_assert_eq(entries(in("mounted")), 1);
		if (named)
			break;
	}
	cr_assert_eq(folder_replace(folder, "index", bytes, sizeof(bytes)), -EDQUOT);
	cr_assert_str_eq(text_of(in("mounted/index")), "old");
	cr_assert_eq(entries(in("mounted")), 1);
	folder_close(folder);
	umount(in("mounted"));
}
