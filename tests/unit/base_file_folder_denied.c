/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file system may refuse that those of this machine allow: here the kernel is asked to refuse it. */
#include "base_file_folder.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

static void at_tmp(void)
{
	place_make("/tmp");
}

TestSuite(base_file_folder_denied, .init = at_tmp, .fini = place_remove);

/* From now on this process gets error from the system call, if its argument has all flags. */
static void deny(long call, unsigned int argument, __u32 flags, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + argument * sizeof(__u64)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, flags),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		place_remove();
		cr_skip_test("the kernel has no filters of system calls");
	}
}

static int save(struct folder *folder, char result[FOLDER_RESULT_SIZE])
{
	struct folder_file *file = NULL;

	cr_assert_eq(folder_file_begin(folder, &file), 0);
	cr_assert_eq(write(folder_file_descriptor(file), "whole", 5), 5);
	return folder_file_commit(file, "a", "b", result, FOLDER_RESULT_SIZE);
}

static void saved(struct folder *folder, const char *expected)
{
	char result[FOLDER_RESULT_SIZE];

	cr_assert_eq(save(folder, result), 0, "%s", said.text);
	cr_assert_str_eq(result, expected);
	cr_assert_str_eq(text_of(in(expected)), "whole");
}

static void saves_two(struct folder *folder)
{
	saved(folder, "a.b");
	saved(folder, "a-2.b");
	cr_assert_eq(folder_replace(folder, "index", "old", 3), 0);
	cr_assert_eq(folder_replace(folder, "index", "new", 3), 0);
	cr_assert_str_eq(text_of(in("index")), "new");
	cr_assert_eq(entries(place), 3);
	folder_close(folder);
}

Test(base_file_folder_denied, files_without_a_name)
{
	struct folder *folder;

	deny(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP);
	folder = opened(place, NOBODY);
	cr_assert(folder->named);
	cr_assert_eq(entries(place), 0);
	saves_two(folder);
}

/* As on NFS. */
Test(base_file_folder_denied, files_without_a_name_and_renaming_without_replacing)
{
	deny(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP);
	deny(SYS_renameat2, 4, 1u /* no replacing */, EINVAL);
	saves_two(opened(place, NOBODY));
}

/* As in a container without the capability for it. */
Test(base_file_folder_denied, linking_by_descriptor)
{
	deny(SYS_linkat, 4, AT_EMPTY_PATH, ENOENT);
	saves_two(opened(place, NOBODY));
}

/* Whatever fails: the error is passed on, and there is nothing but what was there before. */
static void fails(long call, int error, uid_t uid)
{
	struct folder *folder = opened(place, uid);
	char result[FOLDER_RESULT_SIZE] = "untouched";

	make_file(in("index"), "old");
	deny(call, 0, 0, error);
	cr_assert_eq(save(folder, result), -error);
	cr_assert(strstr(said.text, strerror(error)), "%s", said.text);
	folder->named = true;
	cr_assert_eq(save(folder, result), -error);
	cr_assert_str_eq(result, "untouched");
	cr_assert_eq(entries(place), 1);
	cr_assert_eq(folder_replace(folder, "index", "new", 3), -error);
	cr_assert_eq(entries(place), 1);
	folder_close(folder);
}

Test(base_file_folder_denied, quota_of_the_owner)
{
	fails(SYS_fchown, EDQUOT, 1234);
	cr_assert_str_eq(text_of(in("index")), "old");
}

Test(base_file_folder_denied, syncing_the_file)
{
	fails(SYS_fdatasync, EIO, NOBODY);
	cr_assert_str_eq(text_of(in("index")), "old");
}

Test(base_file_folder_denied, syncing_the_directory)
{
	fails(SYS_fsync, EIO, NOBODY);
}

Test(base_file_folder_denied, syncing_the_directory_where_there_is_no_such_thing)
{
	deny(SYS_fsync, 0, 0, EINVAL);
	saves_two(opened(place, NOBODY));
}

/* What is saved is worth more than whose it is. */
Test(base_file_folder_denied, owners)
{
	struct folder *folder;

	deny(SYS_fchown, 0, 0, EPERM);
	folder = opened(place, 1234);
	said = (struct said){ 0 };
	saves_two(folder);
	cr_assert_eq(said.count, 1);
	cr_assert(strstr(said.text, "cannot be given to user 1234"));
}
