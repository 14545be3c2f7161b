/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/handle/choice.h"

static struct identity identity = { .references = 1, .id = 1, .tgid = 100, .handle = 5, .name = "net", .process = "" };

Test(profile_handle_choice, all_that_is_given_must_fit)
{
	static const struct {
		struct xpt_program_choice choice;
		bool fits;
	} table[] = {
		{ { .name = "net" }, true },
		{ { .name = "ne" }, false },
		{ { .name = "nets" }, false },
		{ { .name = "" }, false },
		{ { .handle = 5 }, true },
		{ { .handle = 6 }, false },
		{ { .name = "net", .handle = 5 }, true },
		{ { .name = "net", .handle = 6 }, false },
		{ { .name = "bert", .handle = 5 }, false },
		{ { .name = "net", .pid = 100 }, true },
		{ { .name = "net", .pid = 101 }, false },
		{ { .handle = 5, .pid = 100 }, true },
		{ { .handle = 5, .pid = 99 }, false },
		{ { .handle = 5, .pid = -1 }, false },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		cr_assert_eq(choice_fits(&table[i].choice, &identity), table[i].fits, "%zu", i);
}

Test(profile_handle_choice, the_latest_decides)
{
	const struct xpt_program_choice name = { .name = "net" }, handle = { .handle = 5 }, other = { .name = "bert" };
	struct choices choices = {};

	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_NONE);
	cr_assert_eq(choices_set(&choices, &name, true), 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert_eq(choices_set(&choices, &other, false), 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert_eq(choices_standing(&choices, &name), CHOICE_NONE, "something was removed since");
	cr_assert_eq(choices_set(&choices, &handle, false), 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_REMOVED);
	cr_assert_eq(choices_standing(&choices, &handle), CHOICE_REMOVED);
	cr_assert_eq(choices.added, 1);
	cr_assert_eq(choices_set(&choices, &name, true), 0);
	cr_assert_eq(choices.count, 3);
	cr_assert_eq(choices.added, 1);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert(choices_has(&choices, &name));
	cr_assert_not(choices_has(&choices, &handle));
	choices_forget(&choices, &name);
	cr_assert_eq(choices.added, 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_REMOVED);
	choices_forget(&choices, &handle);
	choices_forget(&choices, &handle);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_NONE);
	choices_free(&choices);
}

Test(profile_handle_choice, the_name_is_copied)
{
	char name[] = "net";
	struct choices choices = {};

	cr_assert_eq(choices_set(&choices, &(struct xpt_program_choice){ .name = name }, true), 0);
	name[0] = 'm';
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert_eq(choices_set(&choices, &(struct xpt_program_choice){ .pid = 5 }, true), -EINVAL);
	choices_free(&choices);
}

/*
 * What RegExp.test() of Node.js 20 answered: with the flag u, or without it where the expression is refused with it.
 */
static const struct {
	const char *expression;
	const char *name;
	int found;
} answers[] = {
	{ "resnet", "resnet50", 1 },
	{ "resnet", "my resnet", 1 },
	{ "resnet", "ResNet", 0 },
	{ "resnet", "", 0 },
	{ "resnet", "resne", 0 },
	{ "^resnet$", "resnet", 1 },
	{ "^resnet$", "resnet\012", 0 },
	{ "^resnet$", "resnet50", 0 },
	{ "^resnet$", "a\012resnet", 0 },
	{ "", "", 1 },
	{ "", "a", 1 },
	{ "^$", "", 1 },
	{ "^$", "\012", 0 },
	{ "a.c", "abc", 1 },
	{ "a.c", "a\012c", 0 },
	{ "a.c", "a\015c", 0 },
	{ "a.c", "ac", 0 },
	{ "a.c", "a\303\251c", 1 },
	{ "a.c", "a\360\237\230\200c", 1 },
	{ "a.c", "a\302\205c", 1 },
	{ "a.c", "a\013c", 1 },
	{ "^...$", "abc", 1 },
	{ "^...$", "\303\251\303\250\303\252", 1 },
	{ "^...$", "\360\237\230\200\360\237\230\200\360\237\230\200", 1 },
	{ "(resnet|bert)-?(\\d+)", "bert-12", 1 },
	{ "(resnet|bert)-?(\\d+)", "resnet50", 1 },
	{ "(resnet|bert)-?(\\d+)", "bert-", 0 },
	{ "(resnet|bert)-?(\\d+)", "gpt2", 0 },
	{ "^(?:a|ab)(?:c|bcd)$", "abcd", 1 },
	{ "^(?:a|ab)(?:c|bcd)$", "abc", 1 },
	{ "^(?:a|ab)(?:c|bcd)$", "ac", 1 },
	{ "^(?:a|ab)(?:c|bcd)$", "abbcd", 1 },
	{ "[]", "", 0 },
	{ "[]", "a", 0 },
	{ "[]", "]", 0 },
	{ "[^]", "", 0 },
	{ "[^]", "a", 1 },
	{ "[^]", "\012", 1 },
	{ "[a-c]+$", "xyzabc", 1 },
	{ "[a-c]+$", "abcx", 0 },
	{ "[a-c]+$", "", 0 },
	{ "[-a]", "-", 1 },
	{ "[-a]", "a", 1 },
	{ "[-a]", "b", 0 },
	{ "[a-]", "-", 1 },
	{ "[a-]", "a", 1 },
	{ "[a-]", "b", 0 },
	{ "[\\w-]x", "-x", 1 },
	{ "[\\w-]x", "wx", 1 },
	{ "[\\w-]x", " x", 0 },
	{ "[\\b]", "\010", 1 },
	{ "[\\b]", "b", 0 },
	{ "[.]", ".", 1 },
	{ "[.]", "a", 0 },
	{ "[\\]x]", "]", 1 },
	{ "[\\]x]", "x", 1 },
	{ "[\\]x]", "\\", 0 },
	{ "[\\u00e0-\\u00ff]", "\303\251", 1 },
	{ "[\\u00e0-\\u00ff]", "e", 0 },
	{ "[\\u00e0-\\u00ff]", "\304\200", 0 },
	{ "[^\\d\\s]", "1 ", 0 },
	{ "[^\\d\\s]", "1a", 1 },
	{ "[^\\d\\s]", " ", 0 },
	{ "[\\s]", "x", 0 },
	{ "[\\s]", "\011", 1 },
	{ "[\\S]", "x", 1 },
	{ "[^\\S]", "x", 0 },
	{ "[^\\S]", " ", 1 },
	{ "[^\\s]", "x", 1 },
	{ "\\s", " ", 1 },
	{ "\\s", "\013", 1 },
	{ "\\s", "\014", 1 },
	{ "\\s", "a", 0 },
	{ "\\S", " ", 0 },
	{ "\\S", "\013", 0 },
	{ "\\S", "a", 1 },
	{ "\\d", "5", 1 },
	{ "\\d", "\331\245", 0 },
	{ "\\d", "a", 0 },
	{ "\\w", "_", 1 },
	{ "\\w", "\303\251", 0 },
	{ "\\w", "-", 0 },
	{ "\\w", "9", 1 },
	{ "\\W", "_", 0 },
	{ "\\W", "\303\251", 1 },
	{ "\\W", "-", 1 },
	{ "\\W", "9", 0 },
	{ "\\bnet", "net", 1 },
	{ "\\bnet", "resnet", 0 },
	{ "\\bnet", "res net", 1 },
	{ "\\bnet", "\303\251net", 1 },
	{ "\\Bnet", "net", 0 },
	{ "\\Bnet", "resnet", 1 },
	{ "\\Bnet", "\303\251net", 0 },
	{ "\\t\\n\\r\\f", "\011\012\015\014", 1 },
	{ "\\t\\n\\r\\f", "tnrf", 0 },
	{ "\\x41", "A", 1 },
	{ "\\x41", "x41", 0 },
	{ "\\u0041", "A", 1 },
	{ "\\u0041", "u0041", 0 },
	{ "\\u{1F600}", "\360\237\230\200", 1 },
	{ "\\u{1F600}", "u", 0 },
	{ "\\cJ", "\012", 1 },
	{ "\\cJ", "cJ", 0 },
	{ "\\cJ", "J", 0 },
	{ "[\\cJ]", "\012", 1 },
	{ "[\\cJ]", "c", 0 },
	{ "[\\cJ]", "J", 0 },
	{ "\\/", "/", 1 },
	{ "\\/", "\\", 0 },
	{ "\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\^\\$\\\\", ".*+?()[]{}|^$\\", 1 },
	{ "\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\^\\$\\\\", "a", 0 },
	{ "\\-\\_\\:\\ \\\"", "-_: \"", 1 },
	{ "\\-\\_\\:\\ \\\"", "-", 0 },
	{ "a{2}", "aa", 1 },
	{ "a{2}", "a", 0 },
	{ "a{2}", "a{2}", 0 },
	{ "^a{2,}$", "aa", 1 },
	{ "^a{2,}$", "aaaa", 1 },
	{ "^a{2,}$", "a", 0 },
	{ "^a{2,3}$", "aa", 1 },
	{ "^a{2,3}$", "aaaa", 0 },
	{ "^a{2,3}$", "aaa", 1 },
	{ "a{,3}", "a{,3}", 1 },
	{ "a{,3}", "aa", 0 },
	{ "a{,3}", "a", 0 },
	{ "a{", "a{", 1 },
	{ "a{", "a", 0 },
	{ "a{x}", "a{x}", 1 },
	{ "a{x}", "a", 0 },
	{ "}", "}", 1 },
	{ "}", "a", 0 },
	{ "]", "]", 1 },
	{ "]", "a", 0 },
	{ "{", "{", 1 },
	{ "a*?b", "aab", 1 },
	{ "a*?b", "b", 1 },
	{ "a*?b", "a", 0 },
	{ "^a??$", "", 1 },
	{ "^a??$", "a", 1 },
	{ "^a??$", "aa", 0 },
	{ "^(?:a+?)b", "aaab", 1 },
	{ "^(?:a+?)b", "b", 0 },
	{ "(?=.*b)(?!.*c)a", "ab", 1 },
	{ "(?=.*b)(?!.*c)a", "abc", 0 },
	{ "(?=.*b)(?!.*c)a", "a", 0 },
	{ "(?<=res)net", "resnet", 1 },
	{ "(?<=res)net", "net", 0 },
	{ "(?<!res)net", "resnet", 0 },
	{ "(?<!res)net", "net", 1 },
	{ "(a)(b)?\\2c", "ac", 1 },
	{ "(a)(b)?\\2c", "abbc", 1 },
	{ "(a)(b)?\\2c", "abc", 0 },
	{ "\\1(a)$", "a", 1 },
	{ "\\1(a)$", "aa", 1 },
	{ "\\1(a)$", "b", 0 },
	{ "(a\\1)b", "ab", 1 },
	{ "(a\\1)b", "aab", 1 },
	{ "(a\\1)b", "b", 0 },
	{ "(?<kind>res|bert)_\\k<kind>", "res_res", 1 },
	{ "(?<kind>res|bert)_\\k<kind>", "res_bert", 0 },
	{ "(x)(x)(x)(x)(x)(x)(x)(x)(x)(y)\\10", "xxxxxxxxxyy", 1 },
	{ "(x)(x)(x)(x)(x)(x)(x)(x)(x)(y)\\10", "xxxxxxxxxyx", 0 },
	{ "\\0", "a", 0 },
	{ "\\0", "0", 0 },
	{ "a|", "", 1 },
	{ "a|", "b", 1 },
	{ "|", "q", 1 },
	{ "(|a)b", "b", 1 },
	{ "(|a)b", "ab", 1 },
	{ "()", "x", 1 },
	{ "(?:)", "x", 1 },
	{ "(?=a)*b", "b", 1 },
	{ "(?=a)*b", "ab", 1 },
	{ "x*", "", 1 },
	{ "x*", "y", 1 },
	{ "^\\p{L}+$", "abc\303\251\316\261", 1 },
	{ "^\\p{L}+$", "a1", 0 },
	{ "\\p{Lu}", "abc", 0 },
	{ "\\p{Lu}", "aBc", 1 },
	{ "\\p{Lu}", "\303\211", 1 },
	{ "^\\P{L}+$", "123", 1 },
	{ "^\\P{L}+$", "1a", 0 },
	{ "\\p{Script=Greek}", "\316\261", 1 },
	{ "\\p{Script=Greek}", "a", 0 },
	{ "#", "#", 1 },
	{ "#", "a", 0 },
	{ "a b", "a b", 1 },
	{ "a b", "ab", 0 },
	{ "a#b", "a#b", 1 },
	{ "a#b", "a", 0 },
	{ "-", "-", 1 },
	{ "<>", "<>", 1 },
	{ "\303\251+$", "\303\251\303\251", 1 },
	{ "\303\251+$", "e", 0 },
	{ "[\303\251\360\237\230\200]", "\303\251", 1 },
	{ "[\303\251\360\237\230\200]", "\360\237\230\200", 1 },
	{ "[\303\251\360\237\230\200]", "e", 0 },
	{ "[\316\261-\317\211]", "\316\262", 1 },
	{ "[\316\261-\317\211]", "b", 0 },
	{ "^(?:(?:a|b)+,)*c$", "ab,b,c", 1 },
	{ "^(?:(?:a|b)+,)*c$", "c", 1 },
	{ "^(?:(?:a|b)+,)*c$", "ab,bc", 0 },
	{ "^\\d+(?:\\.\\d+){2}$", "1.2.3", 1 },
	{ "^\\d+(?:\\.\\d+){2}$", "1.2", 0 },
	{ "^\\d+(?:\\.\\d+){2}$", "1.2.3.4", 0 },
	{ "$", "", 1 },
	{ "$", "x", 1 },
	{ "a$b", "a$b", 0 },
	{ "a$b", "ab", 0 },
	{ "a^b", "a^b", 0 },
	{ "a^b", "ab", 0 },
	{ "(^a)", "a", 1 },
	{ "(^a)", "ba", 0 },
	{ "(?:^|/)model\\.onnx$", "/opt/x/model.onnx", 1 },
	{ "(?:^|/)model\\.onnx$", "model.onnx", 1 },
	{ "(?:^|/)model\\.onnx$", "mymodel.onnx", 0 },
	{ "(?:^|/)model\\.onnx$", "model.onnx.bak", 0 },
};

/* What Node.js 20 refuses with the flag and without, less what PCRE2 takes. */
static const char *const refused[] = {
	"(",	  ")",	   "a)",	"(a",	 "[",	    "[a",   "[b-a]",   "*",	    "+a",
	"?",	  "a**",   "a{2}{3}",	"a???",	 "|*",	    "(*)",  "(*UTF)a", "(*ACCEPT)", "(?:*a)",
	"(?=*a)", "{1}",   "a{3,2}",	"\\",	 "(?",	    "(?<",  "(?<a",    "(?<a>",	    "(?<a>x)(?<a>y)",
	"(?1)",	  "(?&a)", "(?(1)a|b)", "(?+1)", "(?<1>x)", "\\b+", "^*",      "$+",	    "a(?=b",
};

static struct expression *create(const char *text)
{
	struct expression *expression = NULL;
	struct expression_error error;

	cr_assert_eq(expression_create(text, &expression, &error), 0, "%s: %s", text, error.reason);
	return expression;
}

static int matches(const char *text, const char *name)
{
	struct expression *expression = create(text);
	int found = expression_matches(expression, name);

	expression_free(expression);
	return found;
}

static void expect_refused(const char *text, size_t position, const char *reason)
{
	struct expression *expression = NULL;
	struct expression_error error;

	cr_expect_eq(expression_create(text, &expression, &error), -EINVAL, "%s", text);
	cr_expect_null(expression);
	cr_expect_eq(error.position, position, "%s: at %zu", text, error.position);
	cr_expect_not_null(strstr(error.reason, reason), "%s: %s", text, error.reason);
}

Test(profile_handle_choice, answers_as_ecmascript)
{
	size_t i;
	int found;

	for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		found = matches(answers[i].expression, answers[i].name);
		cr_expect_eq(found, answers[i].found, "%s in \"%s\": %d", answers[i].expression, answers[i].name,
			     found);
	}
}

Test(profile_handle_choice, refuses_as_ecmascript)
{
	struct expression *expression;
	struct expression_error error;
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		expression = NULL;
		error.reason[0] = 0;
		cr_expect_eq(expression_create(refused[i], &expression, &error), -EINVAL, "%s", refused[i]);
		cr_expect_null(expression);
		cr_expect(error.reason[0], "%s: no reason", refused[i]);
		cr_expect_leq(error.position, strlen(refused[i]), "%s: %zu", refused[i], error.position);
	}
}

/* ECMAScript 2025, which that version of Node.js does not know yet. */
Test(profile_handle_choice, letter_case_can_be_disregarded)
{
	cr_expect_eq(matches("(?i:resnet)50", "ResNet50"), 1);
	cr_expect_eq(matches("(?i:resnet)-v", "RESNET-V"), 0);
	cr_expect_eq(matches("(?i:\\u00e9)", "\303\211"), 1);
	cr_expect_eq(matches("(?i:a(?-i:b))", "Ab"), 1);
	cr_expect_eq(matches("(?i:a(?-i:b))", "AB"), 0);
}

Test(profile_handle_choice, position_and_reason)
{
	expect_refused("resnet(", 7, "missing closing parenthesis");
	expect_refused("a)", 1, "unmatched closing parenthesis");
	expect_refused("ab[c", 4, "missing terminating ]");
	expect_refused("ab[d-c]", 5, "out of order");
	expect_refused("a\\", 2, "\\ at end of pattern");
	expect_refused("(*UTF8)a", 1, "quantifier");
	expect_refused("(a", 2, "missing closing parenthesis");
	expect_refused("a\377b", 1, "UTF-8");
}

Test(profile_handle_choice, expression_is_bounded)
{
	char text[EXPRESSION_MAX + 2];

	memset(text, 'a', sizeof(text));
	text[EXPRESSION_MAX + 1] = 0;
	expect_refused(text, EXPRESSION_MAX, "too long");
	text[EXPRESSION_MAX] = 0;
	cr_expect_eq(matches(text, "aaa"), 0);
	expect_refused("(?:(?:a{1,999}){1,999}){1,999}", 30, "too large");
	memset(text, '(', 2000);
	memset(text + 2000, ')', 2000);
	text[4000] = 0;
	expect_refused(text, 65, "deeply nested");
}

/* Shown as U+FFFD in reports, and that is what they are here. */
Test(profile_handle_choice, name_is_not_utf8)
{
	cr_expect_eq(matches("^resnet.$", "resnet\303"), 1, "cut within a character");
	cr_expect_eq(matches("^resnet..$", "resnet\303"), 0);
	cr_expect_eq(matches("^..$", "\377\376"), 1);
	cr_expect_eq(matches("\\ufffd", "a\200b"), 1);
	cr_expect_eq(matches("b$", "\360\237\230b"), 1);
	cr_expect_eq(matches("^a$", "a\377"), 0);
	cr_expect_eq(matches("[^\\x00-\\x7f]", "a\355\240\200b"), 1);
}

static double milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static char *repeated(const char *part, size_t length)
{
	char *name = malloc(length + 1);
	size_t i;

	cr_assert_not_null(name);
	for (i = 0; i < length; i++)
		name[i] = part[i % strlen(part)];
	name[length] = 0;
	return name;
}

/*
 * Each would take from seconds to the age of the universe. A few milliseconds are what is wanted; the bound here is for
 * sanitizers and busy machines.
 */
Test(profile_handle_choice, time_is_bounded)
{
	static const struct {
		const char *expression, *part;
	} hostile[] = {
		{ "(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" },
		{ "(a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" },
		{ "(?:(?:(?:a*)*)*)*$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" },
		{ "(?!(a+)+b)c", "ac" },
		{ "(a+).*\\1c|d", "a" },
		{ "(?i:(a+).*\\1\\u{e9})|d", "aA" },
		{ "(?:[ab]*c|[ab]*d|[ab]*e|[ab]*f|[ab]*g)", "ab" },
		{ "([a-z]+)+[0-9]", "abcdefghijklmnopqrstuvwxyz" },
		{ "(?:a?){60}a{60}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" },
		{ "(?:.*,){11}P", "1,2,3,4,5,6,7,8,9,10,11,12,13,Q" },
	};
	static const size_t lengths[] = { 250, 4096, 65536 };
	size_t i, k, given_up = 0;
	const char *slow = getenv(
		"XPUTRACE_E2E_SLOW"); /* how many times longer an emulated processor takes, whose host may be busy */
	double begin, most = 0, limit = slow ? 400 * atof(slow) : 200;
	char *name;

	for (i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		for (k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			name = repeated(hostile[i].part, lengths[k]);
			begin = milliseconds();
			given_up += matches(hostile[i].expression, name) == -E2BIG;
			if (milliseconds() - begin > most)
				most = milliseconds() - begin;
			free(name);
		}
	}
	cr_expect_geq(given_up, 15, "%zu", given_up);
	cr_expect_lt(most, limit, "%f ms", most);
	name = repeated("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 65536);
	cr_expect_eq(matches("(a+)+$", name), -E2BIG);
	free(name);
}

/* What is honest is not given up: the longest names that the kernel side sends, and longer ones. */
Test(profile_handle_choice, honest_ones_are_answered)
{
	char text[EXPRESSION_MAX], *name;
	size_t length = 0;
	unsigned int i;

	name = repeated("model-7/", 255);
	for (i = 0; i < 400; i++)
		length += (size_t)sprintf(text + length, "%smodel%u", i ? "|" : "", i);
	cr_expect_eq(matches(text, name), 0);
	cr_expect_eq(matches(".*foo.*", name), 0);
	cr_expect_eq(matches("^(?:[a-z]+-\\d+/)*[a-z]*-?\\d*$", name), 1);
	cr_expect_eq(matches("\\w+\\s+\\d", name), 0);
	free(name);
	name = repeated("model-7/", 65536);
	cr_expect_eq(matches("model-8", name), 0);
	cr_expect_eq(matches(".*model-8.*", name), 0);
	cr_expect_eq(matches("^.*7/$", name), 1);
	free(name);
}

Test(profile_handle_choice, can_be_used_again_after_giving_up)
{
	struct expression *expression = create("(a+)+$");
	char *name = repeated("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 1000);

	cr_expect_eq(expression_matches(expression, name), -E2BIG);
	cr_expect_eq(expression_matches(expression, "aaa"), 1);
	cr_expect_eq(expression_matches(expression, "b"), 0);
	expression_free(expression);
	expression_free(NULL);
	free(name);
}
