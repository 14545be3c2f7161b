/* SPDX-License-Identifier: BSD-2-Clause */
/* Folders that are removed while they are in use, and files that are replaced. */
#include "base_file_folder.h"

static void at_tmp(void)
{
	place_make("/tmp");
}

TestSuite(base_file_folder_again, .init = at_tmp, .fini = place_remove);

/* On a tmpfs too, where files without a name can be made in directories that have none any more. */
static void at_memory(void)
{
	place_make(access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
}

TestSuite(base_folder_memory, .init = at_memory, .fini = place_remove);

static struct folder_file *begun(struct folder *folder)
{
	struct folder_file *file = NULL;

	cr_assert_eq(folder_file_begin(folder, &file), 0, "%s", said.text);
	cr_assert_eq(write(folder_file_descriptor(file), "whole", 5), 5);
	return file;
}

static void commit_into_removed(bool named, bool anew)
{
	struct folder *folder = opened(in("out"), NOBODY);
	struct folder_file *file, *other;
	char result[FOLDER_RESULT_SIZE];

	folder->named = named;
	file = begun(folder);
	other = begun(folder);
	remove_tree(in("out"));
	if (anew)
		make_directory(in("out"), 0755);
	cr_assert_eq(folder_file_commit(file, "a", "", result, sizeof(result)), 0, "%s", said.text);
	cr_assert_str_eq(text_of(in("out/a")), "whole");
	cr_assert_eq(folder_file_commit(other, "a", "", result, sizeof(result)), 0, "%s", said.text);
	cr_assert_str_eq(result, "a-2");
	cr_assert_str_eq(text_of(in("out/a-2")), "whole");
	cr_assert_eq(folder_file_commit(begun(folder), "a", "", NULL, 0), 0);
	cr_assert_eq(entries(in("out")), 3);
	cr_assert_eq(status_of(in("out")).st_mode & 0777, anew ? 0755 : 0700);
	folder_close(folder);
	remove_tree(in("out"));
}

static void commit_into_all_removed(void)
{
	commit_into_removed(false, false);
	commit_into_removed(false, true);
	commit_into_removed(true, false);
	commit_into_removed(true, true);
}

Test(base_file_folder_again, commit_into_a_removed_folder)
{
	commit_into_all_removed();
}

Test(base_folder_memory, commit_into_a_removed_folder)
{
	commit_into_all_removed();
}

/* A file of several blocks is as it was when it has to be copied. */
Test(base_file_folder_again, large_file_into_a_removed_folder)
{
	size_t size = 300001, i;
	char *bytes = malloc(size), *back = malloc(size + 1);
	struct folder *folder = opened(in("out"), NOBODY);
	struct folder_file *file;
	int descriptor;

	for (i = 0; i < size; i++)
		bytes[i] = i * 31 >> 3;
	folder->named = true;
	cr_assert_eq(folder_file_begin(folder, &file), 0);
	cr_assert_eq(write(folder_file_descriptor(file), bytes, size), (ssize_t)size);
	remove_tree(in("out"));
	cr_assert_eq(folder_file_commit(file, "a", "", NULL, 0), 0);
	descriptor = open(in("out/a"), O_RDONLY);
	cr_assert_eq(read(descriptor, back, size + 1), (ssize_t)size);
	cr_assert(!memcmp(bytes, back, size));
	close(descriptor);
	folder_close(folder);
	free(bytes);
	free(back);
}

static void everything_into_removed(void)
{
	struct folder *folder, *sub;

	/* A path that is relative to where the program was. */
	cr_assert_eq(chdir(place), 0);
	folder = opened("out", NOBODY);
	cr_assert_eq(chdir("/"), 0);
	remove_tree(in("out"));
	folder_file_abandon(begun(folder));
	cr_assert(there(in("out")));
	remove_tree(in("out"));
	cr_assert_eq(folder_replace(folder, "index", "i", 1), 0);
	cr_assert_str_eq(text_of(in("out/index")), "i");
	remove_tree(in("out"));
	cr_assert_eq(folder_sub(folder, "sub", &sub), 0);
	cr_assert(there(in("out/sub")));
	remove_tree(in("out"));
	cr_assert_eq(folder_file_commit(begun(sub), "a", "", NULL, 0), 0);
	cr_assert_str_eq(text_of(in("out/sub/a")), "whole");
	remove_tree(in("out/sub"));
	cr_assert_eq(folder_replace(sub, "index", "j", 1), 0);
	cr_assert_str_eq(text_of(in("out/sub/index")), "j");
	cr_assert_eq(entries(in("out")), 1);
	folder_close(sub);
	folder_close(folder);
}

Test(base_file_folder_again, everything_into_a_removed_folder)
{
	everything_into_removed();
}

Test(base_folder_memory, everything_into_a_removed_folder)
{
	everything_into_removed();
}

/* What has come into the place of the directory is looked at as at the beginning. */
static void replaced_by_worse(bool named)
{
	struct folder *folder = opened(in("sticky/out"), NOBODY);
	struct folder_file *file;

	folder->named = named;
	file = begun(folder);
	remove_tree(in("sticky/out"));
	make_link("../secret", in("sticky/out"), STRANGER);
	cr_assert_eq(folder_file_commit(file, "a", "", NULL, 0), -ELOOP);
	cr_assert_eq(folder_file_begin(folder, &file), -ELOOP);
	cr_assert_eq(folder_replace(folder, "index", "i", 1), -ELOOP);
	cr_assert_eq(unlink(in("sticky/out")), 0);
	make_directory(in("sticky/out"), 0777);
	cr_assert_eq(folder_file_begin(folder, &file), -EPERM);
	cr_assert_eq(entries(in("sticky/out")), 0);
	cr_assert_eq(chmod(in("sticky/out"), 0755), 0);
	cr_assert_eq(folder_file_commit(begun(folder), "a", "", NULL, 0), 0);
	cr_assert_eq(entries(in("secret")), 0);
	folder_close(folder);
	remove_tree(in("sticky/out"));
}

Test(base_file_folder_again, removed_folder_with_something_worse_in_its_place)
{
	want_root();
	make_directory(in("secret"), 0755);
	make_directory(in("sticky"), 01777);
	replaced_by_worse(false);
	replaced_by_worse(true);
}

Test(base_file_folder_again, the_directory_above_is_gone)
{
	struct folder *folder;
	struct folder_file *file;

	make_directory(in("above"), 0755);
	folder = opened(in("above/out"), NOBODY);
	file = begun(folder);
	remove_tree(in("above"));
	cr_assert_eq(folder_file_commit(file, "a", "", NULL, 0), -ENOENT);
	cr_assert_eq(folder_reopen(folder), -ENOENT);
	cr_assert(strstr(said.text, "'above' does not exist"), "%s", said.text);
	make_directory(in("above"), 0755);
	cr_assert_eq(folder_reopen(folder), 0);
	cr_assert_eq(folder_file_commit(begun(folder), "a", "", NULL, 0), 0);
	cr_assert_str_eq(text_of(in("above/out/a")), "whole");
	folder_close(folder);
}

/* ---- replacing ---- */

Test(base_file_folder_again, replacing)
{
	struct folder *folder = opened(place, NOBODY);

	cr_assert_eq(folder_replace(folder, "index.json", "old and long", 12), 0);
	cr_assert_eq(status_of(in("index.json")).st_mode, S_IFREG | 0600u);
	cr_assert_eq(folder_replace(folder, "index.json", "new", 3), 0);
	cr_assert_str_eq(text_of(in("index.json")), "new");
	cr_assert_eq(folder_replace(folder, "index.json", NULL, 0), 0);
	cr_assert_str_eq(text_of(in("index.json")), "");
	/* The link goes, what it leads to stays. */
	make_file(in("target"), "t");
	make_link("target", in("link"), geteuid());
	cr_assert_eq(folder_replace(folder, "link", "l", 1), 0);
	cr_assert(S_ISREG(status_of(in("link")).st_mode));
	cr_assert_str_eq(text_of(in("target")), "t");
	make_directory(in("directory"), 0755);
	cr_assert_eq(folder_replace(folder, "directory", "d", 1), -EISDIR);
	cr_assert_eq(folder_replace(folder, "", "d", 1), -EINVAL);
	cr_assert_eq(folder_replace(folder, ".", "d", 1), -EINVAL);
	cr_assert_eq(folder_replace(folder, "../x", "d", 1), -EINVAL);
	cr_assert_eq(folder_replace(folder, "directory/x", "d", 1), -EINVAL);
	cr_assert_eq(entries(place), 4);
	folder_close(folder);
}

Test(base_file_folder_again, files_of_strangers_are_not_replaced)
{
	struct folder *folder;

	want_root();
	make_directory(in("sticky"), 01777);
	folder = opened(in("sticky"), 1234);
	make_file(in("sticky/theirs"), "t");
	cr_assert_eq(chown(in("sticky/theirs"), STRANGER, STRANGER), 0);
	make_file(in("sticky/owners"), "t");
	cr_assert_eq(chown(in("sticky/owners"), 1234, 1234), 0);
	cr_assert_eq(folder_replace(folder, "theirs", "n", 1), -EEXIST);
	cr_assert_str_eq(text_of(in("sticky/theirs")), "t");
	cr_assert_eq(folder_replace(folder, "owners", "n", 1), 0);
	cr_assert_str_eq(text_of(in("sticky/owners")), "n");
	cr_assert_eq(chown(in("sticky"), STRANGER, STRANGER), 0);
	cr_assert_eq(folder_replace(folder, "theirs", "n", 1), 0);
	cr_assert_str_eq(text_of(in("sticky/theirs")), "n");
	cr_assert_eq(entries(in("sticky")), 2);
	folder_close(folder);
}

/* Two processes replace one file by 'a's and by 'b's; a reader never sees both, and never nothing. */
Test(base_file_folder_again, readers_see_the_old_or_the_new, .timeout = 120)
{
	struct folder *folder = opened(place, NOBODY);
	unsigned int seen[2] = { 0 }, looks = 0;
	char bytes[200];
	pid_t pids[2];
	int i;

	memset(bytes, 'a', sizeof(bytes));
	cr_assert_eq(folder_replace(folder, "index", bytes, sizeof(bytes)), 0);
	for (i = 0; i < 2; i++) {
		pids[i] = fork_endless();
		if (pids[i])
			continue;
		memset(bytes, 'a' + i, sizeof(bytes));
		while (!folder_replace(folder, "index", bytes, sizeof(bytes)))
			;
		_exit(1);
	}
	while (looks++ < 5000 || !seen[0] || !seen[1]) {
		const char *text = text_of(in("index"));

		cr_assert(text[0] == 'a' || text[0] == 'b');
		cr_assert_eq(strlen(text), sizeof(bytes));
		cr_assert_eq(strspn(text, (char[]){ text[0], '\0' }), sizeof(bytes));
		seen[text[0] - 'a']++;
	}
	for (i = 0; i < 2; i++)
		end_process(pids[i]);
	folder_close(folder);
	folder_close(opened(place, NOBODY));
	cr_assert_eq(entries(place), 1);
}
