/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/catalogue.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct catalogue catalogue;
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
	struct entry *entry = catalogue_add(&catalogue, &program);

	cr_assert_not_null(entry);
	return entry;
}

static void setup(void)
{
	catalogue_init(&catalogue);
}

static void teardown(void)
{
	catalogue_free(&catalogue);
}

TestSuite(profile_handle_catalogue, .init = setup, .fini = teardown);

Test(profile_handle_catalogue, copies)
{
	char name[] = "net", process[] = "server";
	struct model_process owner = { .tgid = 9, .name = process };
	struct model_program given = { .id = 3, .process = &owner, .runtime = "toy", .handle = 5, .name = name };
	struct entry *entry = add(given);
	struct identity *identity = identity_get(entry->identity);

	name[0] = process[0] = 'x';
	cr_assert_eq(catalogue_find(&catalogue, 3), entry);
	cr_assert_null(catalogue_find(&catalogue, 4));
	cr_assert_str_eq(identity->name, "net");
	cr_assert_str_eq(identity->process, "server");
	cr_assert_eq(catalogue_rename(entry, "net", "server"), 0);
	cr_assert_eq(catalogue_rename(entry, "bert", "server"), 1);
	cr_assert_str_eq(entry->identity->name, "bert");
	cr_assert_eq(entry->identity->handle, 5);
	catalogue_remove(&catalogue, entry);
	cr_assert_str_eq(identity->name, "net", "who refers to it keeps it");
	identity_put(identity);
}

Test(profile_handle_catalogue, a_handle_goes_on_to_the_next_generation)
{
	struct model_program next = program(2, 0, 5, 1), elsewhere = program(3, 1, 5, 1), same = program(4, 0, 5, 0);
	struct entry *one = add(program(1, 0, 5, 0)), *two;

	cr_assert_eq(catalogue_older(&catalogue, &next), one);
	cr_assert_null(catalogue_older(&catalogue, &elsewhere), "another process");
	cr_assert_null(catalogue_older(&catalogue, &same), "not newer");
	catalogue_release(&catalogue, one, 10, 10);
	cr_assert_null(catalogue_older(&catalogue, &next), "released already");
	two = add(next);
	next = program(5, 0, 5, 2);
	cr_assert_eq(catalogue_older(&catalogue, &next), two);
	/* One that comes late does not take the handle back. */
	catalogue_remove(&catalogue, one);
	add(program(6, 0, 5, 0));
	cr_assert_eq(catalogue_older(&catalogue, &next), two);
	catalogue_remove(&catalogue, two);
	cr_assert_null(catalogue_older(&catalogue, &next));
}

Test(profile_handle_catalogue, programs_of_a_process)
{
	struct entry *one = add(program(1, 0, 5, 0)), *two = add(program(2, 0, 6, 0)),
		     *other = add(program(3, 1, 5, 0));

	cr_assert_eq(catalogue_of_process(&catalogue, 1, NULL), one);
	cr_assert_eq(catalogue_of_process(&catalogue, 1, one), two);
	cr_assert_null(catalogue_of_process(&catalogue, 1, two));
	cr_assert_null(catalogue_of_process(&catalogue, 3, NULL));
	catalogue_release(&catalogue, one, 10, 10);
	catalogue_release(&catalogue, two, 10, 10);
	cr_assert_null(catalogue_of_process(&catalogue, 1, NULL));
	cr_assert_eq(catalogue_of_process(&catalogue, 2, NULL), other);
	cr_assert_eq(catalogue.alive_count, 1);
}

Test(profile_handle_catalogue, released_ones_are_kept_for_a_while)
{
	struct entry *one = add(program(1, 0, 5, 0)), *two = add(program(2, 0, 6, 0));

	catalogue_release(&catalogue, one, 100, 50);
	catalogue_release(&catalogue, one, 200, 50);
	catalogue_release(&catalogue, two, 100, 150);
	cr_assert_eq(one->released, 100);
	cr_assert_null(catalogue_forgettable(&catalogue, 99 + CATALOGUE_RELEASED_KEPT));
	cr_assert_eq(catalogue_forgettable(&catalogue, 100 + CATALOGUE_RELEASED_KEPT), one);
	catalogue_remove(&catalogue, one);
	cr_assert_null(catalogue_forgettable(&catalogue, 149 + CATALOGUE_RELEASED_KEPT));
	cr_assert_eq(catalogue_forgettable(&catalogue, 150 + CATALOGUE_RELEASED_KEPT), two);
}

Test(profile_handle_catalogue, not_more_than_so_many)
{
	unsigned int id;

	for (id = 1; id <= CATALOGUE_RELEASED_MAX; id++)
		catalogue_release(&catalogue, add(program(id, 0, id, 0)), 100, 100);
	cr_assert_null(catalogue_forgettable(&catalogue, 100));
	catalogue_release(&catalogue, add(program(id, 0, id, 0)), 100, 100);
	cr_assert_eq(catalogue_forgettable(&catalogue, 100), catalogue_find(&catalogue, 1));
}
