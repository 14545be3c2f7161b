/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of this folder share, in C and C++: a table of tests, one line of output for each, and the number
 * of those that failed as exit status.
 */
#ifndef PUBLIC_CHECK_H
#define PUBLIC_CHECK_H

#include <stdio.h>
#include <unistd.h>

struct test {
	const char *name;
	void (*run)(void);
	int needs_root;
};

static char check_fault[512]; /* of the test that runs; "": none so far */

/* Notes the first thing that is wrong; the test goes on, to put away what it has made. Not for callbacks. */
#define CHECK(condition, ...)                                                                                         \
	do {                                                                                                          \
		if (!(condition) && !check_fault[0]) {                                                                \
			int head = snprintf(check_fault, sizeof(check_fault), "line %d: %s: ", __LINE__, #condition); \
			if (head > 0 && (size_t)head < sizeof(check_fault))                                           \
				snprintf(check_fault + head, sizeof(check_fault) - (size_t)head, __VA_ARGS__);        \
		}                                                                                                     \
	} while (0)
#define CHECK_IS(value, expected)                                               \
	do {                                                                    \
		long long is_ = (long long)(value);                             \
		CHECK(is_ == (long long)(expected), "%s is %lld", #value, is_); \
	} while (0)

static int run_tests(const char *program, const struct test *tests, size_t count)
{
	int failed = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		check_fault[0] = '\0';
		if (tests[i].needs_root && geteuid() != 0) {
			printf("skipped %s.%s: needs root\n", program, tests[i].name);
			continue;
		}
		tests[i].run();
		printf("%s %s.%s%s%s\n", check_fault[0] ? "failed" : "passed", program, tests[i].name,
		       check_fault[0] ? ": " : "", check_fault);
		fflush(stdout);
		failed += check_fault[0] != '\0';
	}
	return failed;
}

#endif
