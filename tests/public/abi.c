/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What works with headers of other versions than the library's, too: abi.py compiles this once more with one field more (ABI_NEWER:
 * later) and once with one less at the end of some structs. With "sizes" as argument it prints how large they are.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <xputrace/recording.h>
#include <xputrace/session.h>
#include <xputrace/target.h>

#include "check.h"
#include "target.h"

/* Whether a call refuses the field that the library does not know, as long as it is set. */
#ifdef ABI_NEWER
#define CHECK_LATER(options, call)      \
	do {                            \
		(options).later = 1;    \
		CHECK_IS(call, -E2BIG); \
		(options).later = 0;    \
	} while (0)
#else
#define CHECK_LATER(options, call) ((void)(options))
#endif

static void test_session(void)
{
	struct target target = target_start("1", "1", "1");
	XPT_OPTS(xpt_session_options, options, .pids = &target.pid, .pid_count = 1);
	XPT_OPTS(xpt_session_status, status);
	struct xpt_session *session = NULL;

	CHECK_LATER(options, xpt_session_create(&options, &session));
	CHECK_IS(xpt_session_create(&options, &session), 0);
	if (session) {
		CHECK_IS(xpt_session_start(session), 0);
#ifdef ABI_NEWER
		status.later = 4711;
#endif
		CHECK_IS(xpt_session_status(session, &status), 0);
		CHECK(status.elapsed && status.processes == 1, "%llu ns, %u processes",
		      (unsigned long long)status.elapsed, status.processes);
#ifdef ABI_NEWER
		CHECK_IS(status.size, offsetof(struct xpt_session_status, later));
		CHECK_IS(status.later, 4711);
#else
		CHECK_IS(status.size, sizeof(status));
#endif
	}
	xpt_session_destroy(session);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

static void test_recording(void)
{
	struct target target = target_start("1", "1", "1");
	XPT_OPTS(xpt_recording_options, options, .pids = &target.pid, .pid_count = 1);
	struct xpt_recording *recording = NULL;

	CHECK_LATER(options, xpt_recording_create(&options, &recording));
	CHECK_IS(xpt_recording_create(&options, &recording), 0);
	if (recording) {
		CHECK_IS(xpt_recording_start(recording), 0);
		target_go(&target);
		CHECK_IS(xpt_recording_run(recording), XPT_END_TARGETS);
		CHECK_IS(xpt_recording_finish(recording), 0);
		CHECK(xpt_recording_runs(recording) > 0, "no inferences");
		xpt_recording_destroy(recording);
	} else {
		target_go(&target);
	}
	target_end(&target);
	target_free(&target);
}

static int on_site(void *context, const struct xpt_site_info *site)
{
	int *found = context;

	*found += site->size == sizeof(*site) && !strcmp(site->function, "nrt_execute");
	return 0;
}

static void test_target(void)
{
	struct target target = target_start("1", "1", "1");
	XPT_OPTS(xpt_target_options, options, .pid = target.pid);
	int found = 0;

	CHECK_LATER(options, xpt_target_sites(&options, on_site, &found));
	CHECK_IS(found, 0);
	CHECK_IS(xpt_target_sites(&options, on_site, &found), 0);
	CHECK_IS(found, 1);
	options.size = 0;
	CHECK_IS(xpt_target_sites(&options, on_site, &found), -EINVAL);
	target_go(&target);
	target_end(&target);
	target_free(&target);
}

static const struct test tests[] = {
	{ "session", test_session, 1 },
	{ "recording", test_recording, 1 },
	{ "target", test_target, 1 },
};

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "sizes")) {
		printf("%zu %zu %zu %zu\n", sizeof(struct xpt_session_options), sizeof(struct xpt_recording_options),
		       sizeof(struct xpt_target_options), sizeof(struct xpt_session_status));
		return 0;
	}
	return run_tests("abi", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
