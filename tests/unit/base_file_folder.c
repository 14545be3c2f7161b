/* SPDX-License-Identifier: BSD-2-Clause */
/* Which directories are opened, made and refused. */
#include "base_file_folder.h"

#include <sys/syscall.h>

static void at_tmp(void)
{
	place_make("/tmp");
}

TestSuite(base_file_folder, .init = at_tmp, .fini = place_remove);

/* Whether path was opened as the directory that is expected. */
static void leads_to(const char *path, uid_t uid, const char *expected)
{
	struct folder *folder = opened(path, uid);
	struct stat status, wanted = status_of(expected);

	cr_assert_eq(fstat(folder->descriptor, &status), 0);
	cr_assert_eq(status.st_ino, wanted.st_ino, "%s leads elsewhere", path);
	cr_assert_eq(status.st_dev, wanted.st_dev);
	cr_assert_str_eq(folder_path(folder), path);
	folder_close(folder);
}

Test(base_file_folder, missing_is_made)
{
	struct folder *folder = opened(in("new"), NOBODY);

	cr_assert_eq(status_of(in("new")).st_mode, S_IFDIR | 0700u);
	cr_assert_eq(status_of(in("new")).st_uid, geteuid());
	folder_close(folder);
	leads_to(in("new//"), NOBODY, in("new"));
	leads_to(in("other/"), NOBODY, in("other"));
	cr_assert_eq(entries(in("new")), 0);
	refused(in("none/new"), NOBODY, -ENOENT, "'none' does not exist");
	folder_close(NULL);
}

Test(base_file_folder, made_for_the_owner_and_others_left_as_they_are)
{
	struct folder *folder;

	want_root();
	folder = opened(in("new"), 1234);
	cr_assert_eq(status_of(in("new")).st_mode, S_IFDIR | 0700u);
	cr_assert_eq(status_of(in("new")).st_uid, 1234);
	cr_assert_eq(status_of(in("new")).st_gid, 1234);
	folder_close(folder);
	make_directory(in("old"), 0755);
	folder_close(opened(in("old"), 1234));
	cr_assert_eq(status_of(in("old")).st_uid, 0);
}

Test(base_file_folder, no_directory)
{
	make_file(in("file"), "x");
	refused("", NOBODY, -EINVAL, "name one");
	refused(in("file"), NOBODY, -ENOTDIR, "not a directory");
	refused(in("file/"), NOBODY, -ENOTDIR, "not a directory");
	refused(in("file/new"), NOBODY, -ENOTDIR, "'file' is not a directory");
	cr_assert_eq(mkfifo(in("pipe"), 0600), 0);
	refused(in("pipe"), NOBODY, -ENOTDIR, "not a directory");
	cr_assert_eq(entries(place), 2);
}

Test(base_file_folder, paths_that_are_too_long)
{
	char path[PATH_MAX + 16];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[NAME_MAX + 2] = '\0';
	refused(path, NOBODY, -ENAMETOOLONG, "shorter path");
	memset(path, '/', sizeof(path));
	path[PATH_MAX] = '\0';
	refused(path, NOBODY, -ENAMETOOLONG, "shorter path");
}

Test(base_file_folder, all_ways_to_write_a_path)
{
	char path[128];
	int directory;

	make_directory(in("a"), 0755);
	make_directory(in("a/b"), 0755);
	cr_assert_eq(chdir(in("a")), 0);
	leads_to("b", NOBODY, in("a/b"));
	leads_to("./b/.", NOBODY, in("a/b"));
	leads_to(".", NOBODY, in("a"));
	leads_to("b/..", NOBODY, in("a"));
	leads_to("..", NOBODY, place);
	leads_to("..//a///b/", NOBODY, in("a/b"));
	leads_to("/proc/self/cwd", NOBODY, in("a"));
	leads_to("/proc/thread-self/cwd/b", NOBODY, in("a/b"));
	directory = open(in("a"), O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/b", directory);
	leads_to(path, NOBODY, in("a/b"));
	close(directory);
}

/* What the link says is another directory by now; where it leads is what was opened. */
Test(base_file_folder, links_of_the_kernel)
{
	char path[64];
	int directory;

	want_root();
	make_directory(in("mounted"), 0755);
	directory = open(in("mounted"), O_RDONLY | O_DIRECTORY);
	mount_own(in("mounted"), "size=1m,mode=755");
	snprintf(path, sizeof(path), "/proc/self/fd/%d/new", directory);
	folder_close(opened(path, NOBODY));
	cr_assert_eq(entries(in("mounted")), 0);
	umount(in("mounted"));
	cr_assert(there(in("mounted/new")));
	close(directory);
}

/* ---- symbolic links ---- */

Test(base_file_folder, own_links_are_followed)
{
	char text[128];

	make_directory(in("a"), 0755);
	make_link("a", in("relative"), geteuid());
	make_link("relative/", in("chain"), geteuid());
	snprintf(text, sizeof(text), "%s/a/../a", place);
	make_link(text, in("absolute"), geteuid());
	make_link("a/made", in("dangling"), geteuid());
	make_link("loop", in("loop"), geteuid());
	leads_to(in("relative"), NOBODY, in("a"));
	leads_to(in("chain"), NOBODY, in("a"));
	leads_to(in("absolute"), NOBODY, in("a"));
	leads_to(in("chain/b"), NOBODY, in("a/b"));
	leads_to(in("dangling"), NOBODY, in("a/made"));
	refused(in("loop"), NOBODY, -ELOOP, "too many");
	refused(in("loop/new"), NOBODY, -ELOOP, "too many");
}

/* Anybody may put a link into a sticky directory; one in a directory of their own, they may change at any time. */
Test(base_file_folder, links_of_strangers_are_refused)
{
	static const char *const directories[] = { "sticky", "own" };
	char text[128], name[32];
	size_t i;

	want_root();
	make_directory(in("secret"), 0755);
	make_directory(in("secret/below"), 0755);
	make_directory(in("sticky"), 01777);
	make_directory(in("own"), 0755);
	cr_assert_eq(chown(in("own"), STRANGER, STRANGER), 0);
	snprintf(text, sizeof(text), "%s/secret", place);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/link", directories[i]);
		make_link(text, in(name), STRANGER);
		refused(in(name), NOBODY, -ELOOP, "another user (65534)");
		refused(in(name), 1234, -ELOOP, "another user (65534)");
		snprintf(name, sizeof(name), "%s/link/", directories[i]);
		refused(in(name), NOBODY, -ELOOP, "another user (65534)");
		snprintf(name, sizeof(name), "%s/link/new", directories[i]);
		refused(in(name), NOBODY, -ELOOP, "another user (65534)");
		snprintf(name, sizeof(name), "%s/link/below/new", directories[i]);
		refused(in(name), NOBODY, -ELOOP, "another user (65534)");
		snprintf(name, sizeof(name), "%s/link", directories[i]);
		make_link(in(name), in(i ? "trusted_1" : "trusted_0"), 0);
		refused(in(i ? "trusted_1" : "trusted_0"), NOBODY, -ELOOP, "another user (65534)");
	}
	cr_assert_eq(entries(in("secret")), 1);
	cr_assert_eq(entries(in("secret/below")), 0);
}

Test(base_file_folder, links_of_the_owner_are_followed)
{
	want_root();
	make_directory(in("a"), 0755);
	make_directory(in("sticky"), 01777);
	make_link("../a", in("sticky/link"), 1234);
	leads_to(in("sticky/link"), 1234, in("a"));
	leads_to(in("sticky/link/new"), 1234, in("a/new"));
	refused(in("sticky/link"), NOBODY, -ELOOP, "another user (1234)");
	refused(in("sticky/link"), 1235, -ELOOP, "another user (1234)");
}

static int exchange(const char *one, const char *other)
{
	return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u /* exchange */);
}

/* Exchanges a directory and a link of a stranger, again and again, until it is killed. */
static pid_t exchange_always(const char *one, const char *other)
{
	pid_t pid = fork_endless();

	while (!pid)
		exchange(one, other);
	return pid;
}

/* However often what is looked at changes between the look and the step: nobody is led into a link. */
Test(base_file_folder, links_that_come_and_go, .timeout = 120)
{
	unsigned int good = 0, bad = 0;
	struct stat wanted;
	pid_t pid;

	want_root();
	make_directory(in("secret"), 0755);
	make_directory(in("directory"), 0755);
	make_link("secret", in("link"), STRANGER);
	wanted = status_of(in("directory"));
	if (exchange(in("directory"), in("link")) || exchange(in("directory"), in("link"))) {
		place_remove();
		cr_skip_test("this file system cannot exchange a directory and a link");
	}
	pid = exchange_always(in("directory"), in("link"));
	while (good + bad < 4000 || !good || !bad) {
		bool last = (good + bad) % 2;
		struct folder *folder;
		struct stat status;
		int error = folder_open(NULL, in(last ? "directory" : "directory/."), NOBODY, NOBODY, &folder);

		if (!error) {
			cr_assert_eq(fstat(folder->descriptor, &status), 0);
			cr_assert_eq(status.st_ino, wanted.st_ino);
			folder_close(folder);
			good++;
		} else {
			/* -ENOTDIR: it had become a directory by the second look. */
			cr_assert(error == -ELOOP || error == -ENOTDIR, "%d", error);
			bad++;
		}
	}
	end_process(pid);
	cr_assert_eq(entries(in("secret")), 0);
}

/* Whoever moves a directory of root with something in it to where a new one is made does not get it. */
Test(base_file_folder, only_what_was_made_is_given_away, .timeout = 120)
{
	unsigned int i;
	pid_t pid;

	want_root();
	make_directory(in("roots"), 0755);
	make_file(in("roots/file"), "x");
	pid = exchange_always(in("roots"), in("new"));
	for (i = 0; i < 400; i++) {
		struct folder *folder;

		if (!folder_open(NULL, in("new"), 1234, 1234, &folder))
			folder_close(folder);
		/* Of both, the empty one goes, whatever it is called now. */
		while (there(in("new")) && there(in("roots")))
			rmdir(in(i % 2 ? "new" : "roots"));
		if (there(in("new")))
			rename(in("new"), in("roots"));
		cr_assert_eq(status_of(in("roots")).st_uid, 0, "given away in round %u", i);
	}
	end_process(pid);
}

/* ---- who may write ---- */

Test(base_file_folder, directories_that_others_may_write_into)
{
	make_directory(in("all"), 0777);
	make_directory(in("group"), 0775);
	make_directory(in("sticky"), 01777);
	refused(in("all"), NOBODY, -EPERM, "chmod go-w");
	refused(in("group"), NOBODY, -EPERM, "chmod go-w");
	leads_to(in("sticky"), NOBODY, in("sticky"));
	/* What lies above is its owner's business. */
	leads_to(in("all/new"), NOBODY, in("all/new"));
}

Test(base_file_folder, no_permission)
{
	want_root();
	make_directory(in("closed"), 0700);
	make_directory(in("readable"), 0755);
	cr_assert_eq(seteuid(STRANGER), 0);
	refused(in("readable"), NOBODY, -EACCES, "no permission to write");
	refused(in("readable/new"), NOBODY, -EACCES, "cannot create");
	refused(in("closed"), NOBODY, -EACCES, "cannot be opened");
	refused(in("closed/a/b"), NOBODY, -EACCES, "no permission to search");
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(entries(in("readable")), 0);
}

Test(base_file_folder, read_only_file_system)
{
	want_root();
	make_directory(in("mounted"), 0755);
	mount_own(in("mounted"), "size=1m,mode=755");
	make_directory(in("mounted/old"), 0755);
	cr_assert_eq(mount(NULL, in("mounted"), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	refused(in("mounted"), NOBODY, -EROFS, "read-only");
	refused(in("mounted/old"), NOBODY, -EROFS, "read-only");
	refused(in("mounted/new"), NOBODY, -EROFS, "Read-only");
	umount(in("mounted"));
}

/* The last inode goes to the directory, so that no file can be made in it. */
Test(base_file_folder, refused_directory_that_was_made_goes_again)
{
	want_root();
	make_directory(in("mounted"), 0755);
	mount_own(in("mounted"), "size=1m,mode=755,nr_inodes=2");
	refused(in("mounted/new"), NOBODY, -ENOSPC, "make room");
	cr_assert_eq(entries(in("mounted")), 0);
	umount(in("mounted"));
}

/* ---- folders within ---- */

Test(base_file_folder, sub_folders)
{
	struct folder *folder = opened(place, NOBODY), *sub, *below;
	char path[256];

	cr_assert_eq(folder_sub(folder, "one", &sub), 0);
	cr_assert_eq(status_of(in("one")).st_mode, S_IFDIR | 0700u);
	cr_assert_eq(folder_sub(sub, "two", &below), 0);
	snprintf(path, sizeof(path), "%s/one/two", place);
	cr_assert_str_eq(folder_path(below), path);
	cr_assert(there(path));
	folder_close(below);
	folder_close(sub);
	cr_assert_eq(folder_sub(folder, "../one", &sub), 0);
	cr_assert(there(in("_._one")));
	folder_close(sub);
	cr_assert_eq(folder_sub(folder, "/", &sub), 0);
	cr_assert(there(in("_")));
	folder_close(sub);
	cr_assert_eq(entries(place), 3);
	folder_close(folder);
}

static void sub_refused(struct folder *folder, const char *name, int error, const char *words)
{
	struct folder *sub = NULL;

	said = (struct said){ 0 };
	cr_assert_eq(folder_sub(folder, name, &sub), error, "%s: %s", name, said.text);
	cr_assert_null(sub);
	cr_assert_eq(said.count, 1);
	cr_assert(strstr(said.text, words), "%s", said.text);
}

Test(base_file_folder, sub_folders_that_are_refused)
{
	struct folder *folder = opened(place, NOBODY);

	make_directory(in("there"), 0755);
	make_link("there", in("link"), geteuid());
	make_link("nowhere", in("dangling"), geteuid());
	make_file(in("file"), "x");
	make_directory(in("all"), 0777);
	sub_refused(folder, "link", -ELOOP, "not followed");
	sub_refused(folder, "dangling", -ELOOP, "not followed");
	sub_refused(folder, "file", -ENOTDIR, "not a directory");
	sub_refused(folder, "all", -EPERM, "chmod go-w");
	cr_assert_eq(entries(in("there")), 0);
	cr_assert_not(there(in("nowhere")));
	folder_close(folder);
}

Test(base_file_folder, sub_folders_belong_to_the_owner_or_the_folders_owner)
{
	struct folder *folder, *sub;

	want_root();
	make_directory(in("sticky"), 01777);
	make_directory(in("sticky/theirs"), 0755);
	cr_assert_eq(chown(in("sticky/theirs"), STRANGER, STRANGER), 0);
	folder = opened(in("sticky"), 1234);
	sub_refused(folder, "theirs", -EPERM, "belongs to another user (65534)");
	cr_assert_eq(folder_sub(folder, "new", &sub), 0);
	cr_assert_eq(status_of(in("sticky/new")).st_uid, 1234);
	folder_close(sub);
	cr_assert_eq(chown(in("sticky"), STRANGER, STRANGER), 0);
	cr_assert_eq(folder_sub(folder, "theirs", &sub), 0);
	folder_close(sub);
	folder_close(folder);
}

/* ---- names ---- */

Test(base_file_folder, hostile_names)
{
	static const struct {
		const char *name, *clean;
	} cases[] = {
		{ "resnet50", "resnet50" },
		{ "a b~c:d\\e", "a b~c:d\\e" },
		{ "a.b.", "a.b." },
		{ "", "_" },
		{ ".", "_" },
		{ "..", "_." },
		{ "/", "_" },
		{ "../../etc/passwd", "_._.._etc_passwd" },
		{ ".hidden", "_hidden" },
		{ "-rf", "_rf" },
		{ "a\nb\tc\033[2Jd\177", "a_b_c_[2Jd_" },
		{ "netz-\xc3\xa4\xe6\xa8\xa1\xf0\x9f\x98\x80", "netz-\xc3\xa4\xe6\xa8\xa1\xf0\x9f\x98\x80" },
		{ "\xc2\x85next\xe2\x80\xaeltr\xe2\x80\x8b", "_next_ltr_" },
		{ "\xff\xc3(\xe6\xa8", "__(__" },
		{ "\xc0\xaf\xed\xa0\x80", "_____" },
	};
	char clean[FOLDER_NAME_MAX + 1], again[FOLDER_NAME_MAX + 1];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(folder_clean_name(cases[i].name, clean, sizeof(clean)), strlen(cases[i].clean));
		cr_assert_str_eq(clean, cases[i].clean);
		folder_clean_name(clean, again, sizeof(again));
		cr_assert_str_eq(again, clean);
	}
}

Test(base_file_folder, long_names_are_cut_between_characters)
{
	char name[1024], clean[1024];
	size_t i;

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	cr_assert_eq(folder_clean_name(name, clean, sizeof(clean)), FOLDER_NAME_MAX);
	for (i = 0; i + 3 < sizeof(name); i += 3)
		memcpy(name + i, "\xe6\xa8\xa1", 3);
	name[i] = '\0';
	cr_assert_eq(folder_clean_name(name, clean, sizeof(clean)), FOLDER_NAME_MAX / 3 * 3);
	cr_assert(!memcmp(name, clean, FOLDER_NAME_MAX / 3 * 3));
	cr_assert_eq(folder_clean_name(name, clean, 6), 3);
	cr_assert_eq(folder_clean_name(name, clean, 2), 1);
	cr_assert_str_eq(clean, "_");
}
