/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/process.h"

#include <criterion/criterion.h>
#include <unistd.h>

static struct inspect_process *make(__u32 tgid, unsigned int wanted)
{
	const struct model_process view = { .tgid = tgid, .name = "name", .command = "command" };

	return inspect_process_create(&view, wanted, 1000);
}

Test(session_inspect_process, is_read_when_it_is_due)
{
	struct inspect_process *process = make(getpid(), USAGE_CPU | USAGE_MEMORY);

	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 999);
	cr_assert_eq(process->count, 0);
	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 1000);
	cr_assert_eq(process->count, 1);
	cr_assert(process->rows[0].have == (USAGE_CPU | USAGE_MEMORY) && process->rows[0].resident > 0);
	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 1001);
	cr_assert_eq(process->count, 1);
	cr_assert_eq(process->due, 1000 + INSPECT_READ_EVERY);
	inspect_process_read(process, USAGE_CPU | USAGE_MEMORY, 1000 + 5 * INSPECT_READ_EVERY);
	cr_assert_eq(process->due, 1000 + 6 * INSPECT_READ_EVERY, "what was missed is not made up for");
	inspect_process_free(process);
}

/* However long it takes, there are only so many rows, and they cover all of the time. */
Test(session_inspect_process, rows_are_bounded)
{
	struct inspect_process *process = make(getpid(), USAGE_CPU);
	__u64 first = 0;

	for (__u64 reading = 0; reading < 2 * INSPECT_ROWS_MAX; reading++) {
		inspect_process_read(process, USAGE_CPU, process->due);
		if (!reading)
			first = process->rows[0].time;
		cr_assert(process->count <= INSPECT_ROWS_MAX);
	}
	cr_assert_eq(process->rows[0].time, first);
	cr_assert_eq(process->every, 4 * INSPECT_READ_EVERY);
	cr_assert(process->count >= INSPECT_ROWS_MAX / 2);
	for (size_t i = 1; i < process->count; i++)
		cr_assert(process->rows[i].time > process->rows[i - 1].time);
	inspect_process_free(process);
}

Test(session_inspect_process, one_that_is_gone_has_no_rows)
{
	struct inspect_process *process = make(0x3fffff, USAGE_CPU);

	inspect_process_read(process, USAGE_CPU, 1000);
	cr_assert(process->count == 0 && !process->open);
	inspect_process_free(process);
}
