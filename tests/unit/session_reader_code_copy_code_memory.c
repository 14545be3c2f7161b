/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/code_copy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"

#define PAGE 4096u
#define PAGES 64u

/* A forked child has the same memory at the same place, and stands still. */
static pid_t stopped_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static unsigned char *pages(void)
{
	unsigned char *bytes = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(bytes, MAP_FAILED);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		bytes[i] = (unsigned char)(i % 251 + 1);
	return bytes;
}

static struct code_memory memory_of(pid_t pid)
{
	return (struct code_memory){ .tgid = pid, .deadline = clock_monotonic() + 10000000000ull, .limit = 1 << 20 };
}

/* In memory of its own. */
static int copy_of(const struct code_memory *memory, const void *address, size_t size, struct code_copy *copy)
{
	int error = code_copy_make(size, copy);

	if (!error)
		code_memory_copy(memory, (unsigned long)address, copy);
	return error;
}

/* In the spare memory; its process may be another one, which shares it. */
static int share_of(struct code_spare *spare, const struct code_memory *memory, const void *address, size_t size,
		    struct code_copy *copy)
{
	struct code_shared shared;
	int error = code_copy_share(spare, size, copy, &shared);

	if (!error)
		code_memory_copy(memory, (unsigned long)address, copy);
	if (!error && shared.memory >= 0)
		close(shared.memory);
	return error;
}

static int parts_of(const struct code_memory *memory, const void *addresses, const void *sizes, __u64 count,
		    struct code_copy *copy)
{
	__u64 at = (unsigned long)addresses, size;
	int error = code_memory_parts_size(memory, at, (unsigned long)sizes, count, &size) ?:
											     code_copy_make(size, copy);

	return error ?: code_memory_parts(memory, at, (unsigned long)sizes, count, copy);
}

Test(session_reader_code_copy_code_memory, bytes_are_those_of_the_process)
{
	unsigned char *bytes = pages();
	pid_t pid = stopped_child();
	const struct code_memory memory = memory_of(pid);
	struct code_copy copy;

	cr_assert_eq(copy_of(&memory, bytes + 123, 10 * PAGE + 1, &copy), 0);
	cr_expect_eq(copy.size, 10 * PAGE + 1);
	cr_expect_eq(copy.missing, 0);
	cr_expect_eq(memcmp(copy.bytes, bytes + 123, copy.size), 0);
	code_copy_free(&copy);
	cr_expect_null(copy.bytes);
	end_child(pid);
}

Test(session_reader_code_copy_code_memory, holes_are_reported_and_zero)
{
	unsigned char *bytes = pages(), zeros[2 * PAGE] = {};
	struct code_copy copy;
	struct code_memory memory;
	pid_t pid;

	munmap(bytes + 3 * PAGE, 2 * PAGE);
	mprotect(bytes + 9 * PAGE, PAGE, PROT_NONE);
	pid = stopped_child();
	memory = memory_of(pid);
	cr_assert_eq(copy_of(&memory, bytes + 100, 12 * PAGE, &copy), 0);
	cr_expect_eq(copy.missing, 3 * PAGE);
	cr_expect_eq(copy.first_missing, 3 * PAGE - 100);
	cr_expect_eq(memcmp(copy.bytes, bytes + 100, 3 * PAGE - 100), 0);
	cr_expect_eq(memcmp(copy.bytes + 3 * PAGE - 100, zeros, 2 * PAGE), 0);
	cr_expect_eq(memcmp(copy.bytes + 5 * PAGE - 100, bytes + 5 * PAGE, 4 * PAGE), 0);
	cr_expect_eq(memcmp(copy.bytes + 10 * PAGE - 100, bytes + 10 * PAGE, 2 * PAGE + 100), 0);
	code_copy_free(&copy);
	end_child(pid);
}

/* Pages that the process has never touched, of a file. */
Test(session_reader_code_copy_code_memory, pages_that_are_not_resident_are_read)
{
	int descriptor = open("/proc/self/exe", O_RDONLY);
	unsigned char given[8 * PAGE], *bytes;
	struct code_copy copy;
	struct code_memory memory;
	pid_t pid;

	cr_assert_eq(pread(descriptor, given, sizeof(given), 0), (ssize_t)sizeof(given));
	bytes = mmap(NULL, sizeof(given), PROT_READ, MAP_PRIVATE, descriptor, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	madvise(bytes, sizeof(given), MADV_DONTNEED);
	posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
	pid = stopped_child();
	memory = memory_of(pid);
	cr_assert_eq(copy_of(&memory, bytes, sizeof(given), &copy), 0);
	cr_expect_eq(copy.missing, 0);
	cr_expect_eq(memcmp(copy.bytes, given, sizeof(given)), 0);
	code_copy_free(&copy);
	end_child(pid);
	close(descriptor);
}

Test(session_reader_code_copy_code_memory, text_ends_at_its_0_byte_also_before_a_hole)
{
	unsigned char *bytes = pages();
	struct code_memory memory;
	__u64 size = 0;
	pid_t pid;

	munmap(bytes + 8 * PAGE, PAGE);
	munmap(bytes + 30 * PAGE, PAGE);
	memset(bytes + 6 * PAGE, 'x', 2 * PAGE);
	bytes[8 * PAGE - 1] = 0;
	bytes[20 * PAGE] = 0;
	pid = stopped_child();
	memory = memory_of(pid);
	cr_assert_eq(code_memory_size(&memory, (unsigned long)bytes + 6 * PAGE + 5, &size), 0);
	cr_expect_eq(size, 2 * PAGE - 6);
	cr_expect_eq(code_memory_text(&memory, (unsigned long)bytes + 21 * PAGE, &size), -EFAULT,
		     "it does not end before the hole");
	memory.limit = PAGE;
	cr_expect_eq(code_memory_text(&memory, (unsigned long)bytes + 10 * PAGE, &size), -EFBIG);
	end_child(pid);
}

Test(session_reader_code_copy_code_memory, parts_come_one_behind_the_other)
{
	static const char *const texts[] = { "first ", "second ", "third" };
	unsigned long addresses[3];
	__u64 sizes[] = { 0, 3, 0 }, lies[] = { 0, ~0ull, 1 };
	struct code_memory memory;
	struct code_copy copy;
	pid_t pid;

	for (size_t i = 0; i < 3; i++)
		addresses[i] = (unsigned long)texts[i];
	pid = stopped_child();
	memory = memory_of(pid);
	cr_assert_eq(parts_of(&memory, addresses, NULL, 3, &copy), 0);
	cr_expect_eq(copy.size, 18);
	cr_expect_eq(memcmp(copy.bytes, "first second third", 18), 0);
	code_copy_free(&copy);
	cr_assert_eq(parts_of(&memory, addresses, sizes, 3, &copy), 0);
	cr_expect_eq(copy.size, 14);
	cr_expect_eq(memcmp(copy.bytes, "first secthird", 14), 0);
	code_copy_free(&copy);
	cr_expect_eq(parts_of(&memory, (void *)16, NULL, 3, &copy), -EFAULT);
	cr_expect_eq(parts_of(&memory, addresses, NULL, 1u << 30, &copy), -E2BIG);
	cr_expect_eq(parts_of(&memory, addresses, lies, 3, &copy), -EFBIG);
	end_child(pid);
}

Test(session_reader_code_copy_code_memory, nothing_is_read_after_the_deadline)
{
	unsigned char *bytes = pages();
	pid_t pid = stopped_child();
	struct code_memory memory = memory_of(pid);
	struct code_copy copy;
	__u64 size;

	memory.deadline = clock_monotonic();
	cr_assert_eq(copy_of(&memory, bytes, 3 * PAGE, &copy), 0);
	cr_expect_eq(copy.missing, 3 * PAGE);
	cr_expect_eq(copy.first_missing, 0);
	code_copy_free(&copy);
	cr_expect_eq(code_memory_size(&memory, (unsigned long)bytes, &size), -ETIME);
	end_child(pid);
}

Test(session_reader_code_copy_code_memory, spare_memory_is_of_one_copy_and_holes_in_it_are_zero)
{
	struct code_spare spare;
	struct code_memory memory = memory_of(getpid());
	struct code_copy first, second;
	size_t size = 9u << 20;
	unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(bytes, MAP_FAILED);
	memset(bytes, 7, size);
	code_spare_open(&spare, false);
	cr_assert_not_null(spare.bytes);
	memset(spare.bytes, 9, size);
	memory.limit = size;
	mprotect(bytes + PAGE, PAGE, PROT_NONE);
	cr_assert_eq(share_of(&spare, &memory, bytes, size, &first), 0);
	cr_assert_eq(share_of(&spare, &memory, bytes, size, &second), 0);
	cr_expect_eq(first.bytes, spare.bytes);
	cr_expect_neq(second.bytes, spare.bytes);
	cr_expect_eq(first.missing, PAGE);
	cr_expect_eq(first.bytes[PAGE], 0);
	cr_expect_eq(memcmp(first.bytes, second.bytes, size), 0);
	code_copy_free(&second);
	code_copy_free(&first);
	cr_expect_eq(code_spare_take(&spare, size), spare.bytes);
	cr_expect_null(code_spare_take(&spare, size));
	code_spare_close(&spare);
}

Test(session_reader_code_copy_code_memory, resident_memory_is_lent_to_one_copy_until_it_has_its_own)
{
	struct code_memory memory = memory_of(getpid());
	unsigned char *bytes = pages();
	struct code_copy first, second;
	struct code_spare spare;

	code_spare_open(&spare, false);
	cr_assert_not_null(spare.ready);
	memset(spare.ready, 9, CODE_READY_SIZE);
	mprotect(bytes + PAGE, PAGE, PROT_NONE);
	cr_assert_eq(share_of(&spare, &memory, bytes, PAGES * PAGE, &first), 0);
	cr_expect_eq(first.bytes, spare.ready);
	cr_assert_eq(code_copy_own(&first), 0);
	cr_expect_neq(first.bytes, spare.ready);
	cr_expect_eq(first.missing, PAGE);
	cr_expect_eq(first.first_missing, PAGE);
	cr_assert_eq(share_of(&spare, &memory, bytes + PAGE * 2, PAGE, &second), 0);
	cr_expect_eq(memcmp(first.bytes, bytes, PAGE), 0);
	cr_expect_eq(first.bytes[PAGE], 0);
	cr_expect_eq(first.bytes[PAGE * 2 - 1], 0);
	cr_expect_eq(memcmp(first.bytes + PAGE * 2, bytes + PAGE * 2, (PAGES - 2) * PAGE), 0);
	code_copy_free(&second);
	cr_expect_eq(spare.ready[0], bytes[PAGE * 2]);
	code_copy_free(&first);
	code_spare_close(&spare);
}
