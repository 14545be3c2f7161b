/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/program_index.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct program_index index_of_all;
static struct model_process processes[2] = { { .tgid = 1, .name = "one" }, { .tgid = 2, .name = "two" } };

static struct model_program program(unsigned int id, unsigned int process, __u64 handle, unsigned int generation)
{
	return (struct model_program){ .id = id,
				       .process = &processes[process],
				       .runtime = "toy",
				       .handle = handle,
				       .generation = generation,
				       .name = "net" };
}

static struct entry *add(struct model_program program)
{
	struct entry *entry = program_index_add(&index_of_all, &program);

	cr_assert_not_null(entry);
	return entry;
}

static void setup(void)
{
	program_index_init(&index_of_all);
}

static void teardown(void)
{
	program_index_free(&index_of_all);
}

TestSuite(profile_handle_program_index, .init = setup, .fini = teardown);

Test(profile_handle_program_index, copies)
{
	char name[] = "net", process[] = "server";
	struct model_process owner = { .tgid = 9, .name = process };
	struct model_program given = { .id = 3, .process = &owner, .runtime = "toy", .handle = 5, .name = name };
	struct entry *entry = add(given);
	struct identity *identity = identity_get(entry->identity);

	name[0] = process[0] = 'x';
	cr_assert_eq(program_index_find(&index_of_all, 3), entry);
	cr_assert_null(program_index_find(&index_of_all, 4));
	cr_assert_str_eq(identity->name, "net");
	cr_assert_str_eq(identity->process, "server");
	cr_assert_eq(program_index_rename(entry, "net", "server"), 0);
	cr_assert_eq(program_index_rename(entry, "bert", "server"), 1);
	cr_assert_str_eq(entry->identity->name, "bert");
	cr_assert_eq(entry->identity->handle, 5);
	program_index_remove(&index_of_all, entry);
	cr_assert_str_eq(identity->name, "net", "who refers to it keeps it");
	identity_put(identity);
}

Test(profile_handle_program_index, a_handle_goes_on_to_the_next_generation)
{
	struct model_program next = program(2, 0, 5, 1), elsewhere = program(3, 1, 5, 1), same = program(4, 0, 5, 0);
	struct entry *one = add(program(1, 0, 5, 0)), *two;

	cr_assert_eq(program_index_older(&index_of_all, &next), one);
	cr_assert_null(program_index_older(&index_of_all, &elsewhere), "another process");
	cr_assert_null(program_index_older(&index_of_all, &same), "not newer");
	program_index_release(&index_of_all, one, 10, 10);
	cr_assert_null(program_index_older(&index_of_all, &next), "released already");
	two = add(next);
	next = program(5, 0, 5, 2);
	cr_assert_eq(program_index_older(&index_of_all, &next), two);
	/* One that comes late does not take the handle back. */
	program_index_remove(&index_of_all, one);
	add(program(6, 0, 5, 0));
	cr_assert_eq(program_index_older(&index_of_all, &next), two);
	program_index_remove(&index_of_all, two);
	cr_assert_null(program_index_older(&index_of_all, &next));
}

Test(profile_handle_program_index, programs_of_a_process)
{
	struct entry *one = add(program(1, 0, 5, 0)), *two = add(program(2, 0, 6, 0)),
		     *other = add(program(3, 1, 5, 0));

	cr_assert_eq(program_index_of_process(&index_of_all, 1, NULL), one);
	cr_assert_eq(program_index_of_process(&index_of_all, 1, one), two);
	cr_assert_null(program_index_of_process(&index_of_all, 1, two));
	cr_assert_null(program_index_of_process(&index_of_all, 3, NULL));
	program_index_release(&index_of_all, one, 10, 10);
	program_index_release(&index_of_all, two, 10, 10);
	cr_assert_null(program_index_of_process(&index_of_all, 1, NULL));
	cr_assert_eq(program_index_of_process(&index_of_all, 2, NULL), other);
	cr_assert_eq(index_of_all.alive_count, 1);
}

Test(profile_handle_program_index, released_ones_are_kept_for_a_while)
{
	struct entry *one = add(program(1, 0, 5, 0)), *two = add(program(2, 0, 6, 0));

	program_index_release(&index_of_all, one, 100, 50);
	program_index_release(&index_of_all, one, 200, 50);
	program_index_release(&index_of_all, two, 100, 150);
	cr_assert_eq(one->released, 100);
	cr_assert_null(program_index_forgettable(&index_of_all, 99 + PROGRAM_INDEX_RELEASED_KEPT));
	cr_assert_eq(program_index_forgettable(&index_of_all, 100 + PROGRAM_INDEX_RELEASED_KEPT), one);
	program_index_remove(&index_of_all, one);
	cr_assert_null(program_index_forgettable(&index_of_all, 149 + PROGRAM_INDEX_RELEASED_KEPT));
	cr_assert_eq(program_index_forgettable(&index_of_all, 150 + PROGRAM_INDEX_RELEASED_KEPT), two);
}

Test(profile_handle_program_index, not_more_than_so_many)
{
	unsigned int id;

	for (id = 1; id <= PROGRAM_INDEX_RELEASED_MAX; id++)
		program_index_release(&index_of_all, add(program(id, 0, id, 0)), 100, 100);
	cr_assert_null(program_index_forgettable(&index_of_all, 100));
	program_index_release(&index_of_all, add(program(id, 0, id, 0)), 100, 100);
	cr_assert_eq(program_index_forgettable(&index_of_all, 100), program_index_find(&index_of_all, 1));
}
