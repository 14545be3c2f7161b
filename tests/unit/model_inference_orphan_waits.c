/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/inference/async_inflight.h"

#include <criterion/criterion.h>

static int add(struct keyed_table *early, unsigned int queue, __u64 key, __u64 time)
{
	const struct wait_end end = {
		.time = time, .tid = 9, .outcome = OUTCOME_FAILED, .has_status = true, .status = -5
	};

	return orphan_wait_add(early, queue, key, &end);
}

static __u64 take(struct keyed_table *early, unsigned int queue, __u64 key)
{
	struct wait_end end;

	if (!orphan_wait_take(early, queue, key, &end))
		return 0;
	cr_assert_eq(end.tid, 9);
	cr_assert_eq(end.outcome, OUTCOME_FAILED);
	cr_assert(end.has_status);
	cr_assert_eq(end.status, -5);
	return end.time;
}

Test(model_inference_orphan_waits, each_is_taken_once_by_its_queue_and_key)
{
	struct keyed_table early;

	keyed_init(&early, 100, NULL, NULL);
	cr_assert_eq(add(&early, 1, 7, 100), 0);
	cr_assert_eq(add(&early, 2, 7, 200), 0);
	cr_assert_eq(add(&early, 1, 8, 300), 0);
	cr_assert_eq(add(&early, 1, 8, 400), 0, "again");
	cr_assert_eq(take(&early, 3, 7), 0);
	cr_assert_eq(take(&early, 1, 9), 0);
	cr_assert_eq(take(&early, 1, 7), 100);
	cr_assert_eq(take(&early, 1, 7), 0);
	cr_assert_eq(take(&early, 1, 8), 400);
	cr_assert_eq(take(&early, 1, 8), 0);
	cr_assert_eq(take(&early, 2, 7), 200);
	cr_assert_eq(early.map.count, 0);
	keyed_free(&early);
}

Test(model_inference_orphan_waits, the_oldest_makes_room)
{
	struct keyed_table early;
	__u64 key;

	keyed_init(&early, 10, NULL, NULL);
	for (key = 0; key < 10; key++)
		cr_assert_eq(add(&early, 1, key, 100 + key), 0);
	cr_assert_eq(add(&early, 1, 0, 500), 0, "now the newest");
	cr_assert_eq(add(&early, 1, 10, 110), 0);
	cr_assert_eq(early.map.count, 10);
	cr_assert_eq(take(&early, 1, 1), 0);
	cr_assert_eq(take(&early, 1, 0), 500);
	cr_assert_eq(take(&early, 1, 2), 102);
	keyed_free(&early);
}

Test(model_inference_orphan_waits, a_queue_takes_its_own_along)
{
	struct keyed_table early;

	keyed_init(&early, 10, NULL, NULL);
	cr_assert_eq(add(&early, 1, 7, 100), 0);
	cr_assert_eq(add(&early, 2, 7, 200), 0);
	keyed_drop_owner(&early, 1);
	cr_assert_eq(take(&early, 1, 7), 0);
	cr_assert_eq(take(&early, 2, 7), 200);
	keyed_free(&early);
}
