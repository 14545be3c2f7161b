/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/continuous/private.h"

static char folder[] = "/tmp/xputrace-claims-XXXXXX", path[64];
static struct log silent;

static void begin(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/targets", folder);
}

static void end(void)
{
	unlink(path);
	rmdir(folder);
}

TestSuite(session_continuous_claims, .init = begin, .fini = end);

static struct target_claims claims_open(void)
{
	struct target_claims claims;

	cr_assert_eq(target_claims_open(&silent, path, &claims), 0);
	return claims;
}

Test(session_continuous_claims, a_process_is_claimed_once)
{
	struct target_claims one = claims_open(), other = claims_open();

	cr_assert_eq(target_claim(&one, 5), 0);
	cr_assert_eq(target_claim(&one, 5), 0, "its own does not stand in its way");
	cr_assert_eq(target_claim(&other, 5), -EBUSY);
	cr_assert_eq(target_claim(&other, 4), 0);
	cr_assert_eq(target_claim(&other, 6), 0);
	cr_assert_eq(target_claim(&one, 4), -EBUSY);
	target_claims_close(&one);
	cr_assert_eq(target_claim(&other, 5), 0);
	target_claims_close(&other);
}

Test(session_continuous_claims, all_of_them_and_one_exclude_each_other)
{
	struct target_claims one = claims_open(), all = claims_open();

	cr_assert_eq(target_claim(&one, 4194303), 0);
	cr_assert_eq(target_claim_all(&all), -EBUSY);
	target_unclaim(&one, 4194303);
	cr_assert_eq(target_claim_all(&all), 0);
	cr_assert_eq(target_claim(&one, 1), -EBUSY);
	cr_assert_eq(target_claim_all(&one), -EBUSY);
	cr_assert_eq(target_claim(&all, 77), 0, "what it has already");
	target_claims_close(&all);
	cr_assert_eq(target_claim_all(&one), 0);
	target_claims_close(&one);
}

Test(session_continuous_claims, one_that_is_given_up_leaves_the_others)
{
	struct target_claims one = claims_open(), other = claims_open();

	for (pid_t pid = 10; pid < 20; pid++)
		cr_assert_eq(target_claim(&one, pid), 0);
	target_unclaim(&one, 15);
	target_unclaim(&one, 15);
	target_unclaim(&other, 16);
	for (pid_t pid = 10; pid < 20; pid++)
		cr_assert_eq(target_claim(&other, pid), pid == 15 ? 0 : -EBUSY, "process %d", pid);
	target_claims_close(&one);
	target_claims_close(&other);
}

Test(session_continuous_claims, claims_end_with_whoever_is_killed)
{
	struct target_claims claims;
	int ready[2], status;
	pid_t child;
	char letter;

	cr_assert_eq(pipe(ready), 0);
	child = fork();
	if (!child) {
		claims = claims_open();
		if (!target_claim(&claims, 9) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &letter, 1), 1);
	claims = claims_open();
	cr_assert_eq(target_claim(&claims, 9), -EBUSY);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(target_claim(&claims, 9), 0);
	target_claims_close(&claims);
}

Test(session_continuous_claims, a_file_that_is_none_is_refused)
{
	struct target_claims claims;
	struct stat status;

	cr_assert_eq(target_claims_open(&silent, "/nonexistent/targets", &claims), -ENOENT);
	cr_assert_eq(claims.file, -1);
	target_claims_close(&claims);
	cr_assert_eq(symlink("elsewhere", path), 0);
	cr_assert_eq(target_claims_open(&silent, path, &claims), -ELOOP, "no link is followed");
	cr_assert_eq(unlink(path), 0);
	claims = claims_open();
	cr_assert_eq(fstat(claims.file, &status), 0);
	cr_assert_eq(status.st_mode & 07777, 0600);
	target_claims_close(&claims);
	target_claims_close(&claims);
}
