/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/classes.h"

#include "target_support.h"

/*
 * Type information and tables as the ABI lays them out, written by hand: what compilers make is looked at by the
 * end-to-end tests, here are what they do not make.
 */
#define HEAD                                                                                 \
	"typedef const void *p;\n"                                                           \
	"int f0(void) { return 0; } int f1(void) { return 1; } int f2(void) { return 2; }\n" \
	"int f3(void) { return 3; }\n"                                                       \
	"extern p const base[], one[], two[], three[];\n"                                    \
	"p const base[2] = { 0, \"N2rt6KernelE\" };\n"
#define TABLE(name, offset, type, method) \
	"p const " name "[] = { (p)" offset ", " type ", (p)f0, (p)f0, (p)" method " };\n"

static struct classes find(const char *source, int expected)
{
	static const unsigned int slots[] = { 2 };
	const char *path = support_library("classes.c", source, "-O1 -w");
	struct classes classes;
	struct elf_file *file;

	cr_assert_eq(elf_file_open(NULL, path, path, &file), 0);
	cr_assert_eq(classes_find(file, "rt::Kernel", slots, 1, &classes), expected);
	elf_file_close(file);
	return classes;
}

static void expect(const struct classes *classes, size_t index, const char *name)
{
	cr_assert_lt(index, classes->method_count);
	cr_assert_str_eq(classes->methods[index].class_name, name);
	cr_assert_eq(classes->methods[index].slot, 2);
}

Test(target_probe_classes, one_base, .fini = support_cleanup)
{
	struct classes classes = find(HEAD "p const one[] = { 0, \"3One\", base };\n"
					   "p const two[] = { 0, \"3Two\", one };\n" TABLE("t1", "0", "one", "f1")
						   TABLE("t2", "0", "two", "f2") TABLE("tb", "0", "base", "f3"),
				      0);

	cr_assert_eq(classes.class_count, 2);
	cr_assert_eq(classes.method_count, 2, "that of the base itself is none");
	cr_assert_gt(classes.own[0], classes.methods[1].method, "f3 lies behind f2");
	cr_assert_eq(classes.tables, 2);
	expect(&classes, 0, "3One");
	expect(&classes, 1, "3Two");
	cr_assert_neq(classes.methods[0].method, classes.methods[1].method);
	classes_free(&classes);
}

Test(target_probe_classes, what_the_base_has_itself, .fini = support_cleanup)
{
	struct classes classes = find(HEAD "p const one[] = { 0, \"3One\", base };\n"
					   "p const two[] = { 0, \"3Two\", base };\n" TABLE("t1", "0", "one", "f1")
						   TABLE("t2", "0", "two", "f3") TABLE("tb", "0", "base", "f3"),
				      0);

	cr_assert_eq(classes.class_count, 2);
	cr_assert_eq(classes.inherited, 1);
	cr_assert_eq(classes.method_count, 1);
	expect(&classes, 0, "3One");
	classes_free(&classes);
}

/* Seen in ONNX Runtime 1.23 for AArch64: what follows such a class reads as a number of bases. */
Test(target_probe_classes, no_base_but_as_if_many, .fini = support_cleanup)
{
	struct classes classes =
		find(HEAD
		     "struct { p v, n; int flags, count; p w[4]; p b; long o; } const none ="
		     " { 0, \"3One\", 32, 56, { 0 }, base, 2 }, many = { 0, \"3Two\", 3, 56, { 0 }, base, 2 };\n" TABLE(
			     "t1", "0", "&none", "f1") TABLE("t2", "0", "&many", "f2"),
		     0);

	cr_assert_eq(classes.class_count, 1);
	cr_assert_eq(classes.method_count, 1);
	expect(&classes, 0, "3Two");
	classes_free(&classes);
}

Test(target_probe_classes, bases_in_a_circle, .fini = support_cleanup)
{
	struct classes classes = find(HEAD
				      "p const one[] = { 0, \"3One\", two };\n"
				      "struct { p v, n; int flags, count; p b0; long o0; p b1; long o1; } const both ="
				      " { 0, \"3Two\", 0, 2, one, 2, base, 0x1002 };\n"
				      "extern p const two[] __attribute__((alias(\"both\")));\n"
				      "p const three[] = { 0, \"5Three\", three };\n" TABLE("t1", "-16", "one", "f1"),
				      0);

	cr_assert_eq(classes.class_count, 2);
	expect(&classes, 0, "3One");
	classes_free(&classes);
}

Test(target_probe_classes, one_of_several_bases, .fini = support_cleanup)
{
	struct classes classes =
		find(HEAD "p const other[2] = { 0, \"5Other\" };\n"
			  "struct { p v, n; int flags, count; p b0; long o0; p b1; long o1; } const one_ ="
			  " { 0, \"3One\", 0, 2, other, 2, base, 0x1802 };\n"
			  "struct { p v, n; int flags, count; p b0; long o0; } const virtual_ ="
			  " { 0, \"7Virtual\", 0, 1, base, -24 << 8 | 3 };\n"
		     /* The first table is that of Other's part of the object, the second one Kernel's. */
		     TABLE("t1", "0", "&one_", "f3") TABLE("t2", "-24", "&one_", "f1")
			     TABLE("t3", "0", "&virtual_", "f2"),
		     0);

	cr_assert_eq(classes.class_count, 1);
	cr_assert_eq(classes.left_out, 1, "the base is virtual");
	cr_assert_eq(classes.method_count, 1);
	expect(&classes, 0, "3One");
	classes_free(&classes);
}

Test(target_probe_classes, data_that_looks_like_several_bases, .fini = support_cleanup)
{
	/* An abstract base's table, whose destructors are missing, at some distance behind a class and numbers. */
	struct classes classes =
		find(HEAD "struct { p v, n; int numbers[2]; p f[5]; p to_top, type, d0, d1, m; } const close ="
			  " { 0, \"9Unrelated\", 0x20, 0x38, f0, f0, f0, f0, f0, 0, base, 0, 0, f3 };\n"
			  "p const one[] = { 0, \"3One\", base };\n" TABLE("t1", "0", "one", "f3")
				  TABLE("tu", "0", "&close", "f1"),
		     0);

	cr_assert_eq(classes.class_count, 1);
	cr_assert_eq(classes.inherited, 1, "the base's own table is known");
	cr_assert_eq(classes.method_count, 0);
	classes_free(&classes);
}

Test(target_probe_classes, pure_slots_are_counted, .fini = support_cleanup)
{
	struct classes classes = find(HEAD
				      "extern void missing(void);\n"
				      "p const one[] = { 0, \"3One\", base };\n" TABLE("t1", "0", "one", "missing"),
				      0);

	cr_assert_eq(classes.class_count, 1);
	cr_assert_eq(classes.tables, 1);
	cr_assert_eq(classes.abstract, 1);
	cr_assert_eq(classes.method_count, 0);
	classes_free(&classes);
}

Test(target_probe_classes, names_that_are_none, .fini = support_cleanup)
{
	static char source[8192];
	struct classes classes;
	char name[2 * CLASS_NAME_LENGTH];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(source, sizeof(source),
		 HEAD "p const one[] = { 0, \"no name\", base };\n"
		      "p const two[] = { 0, \"\\33[31m\", base };\n"
		      "p const three[] = { 0, \"9%s\", base };\n"
		      "p const four[] = { 0, \"*4Four\", base };\n" TABLE("t4", "0", "four", "f2"),
		 name);
	classes = find(source, 0);
	cr_assert_eq(classes.class_count, 1);
	expect(&classes, 0, "*4Four");
	classes_free(&classes);
}

Test(target_probe_classes, no_such_base, .fini = support_cleanup)
{
	/* The name is there as a part of another one, and as a string that nothing refers to. */
	find("const char *f(void) { return \"xN2rt6KernelE\"; } const char s[] = \"N2rt6KernelE\";\n", -ENOENT);
	find("int f(void) { return 0; }\n", -ENOENT);
}

Test(target_probe_classes, names_of_bases, .fini = support_cleanup)
{
	static const char *const wrong[] = { "", "::", "a::", "::a", "a:b", "a:::b" };
	static const unsigned int slots[] = { 0 };
	const char *path = support_library("classes.c", HEAD, "-O1 -w");
	struct classes classes;
	struct elf_file *file;

	cr_assert_eq(elf_file_open(NULL, path, path, &file), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert_eq(classes_find(file, wrong[i], slots, 1, &classes), -EINVAL, "%s", wrong[i]);
	cr_assert_eq(classes_find(file, "rt::Kernel", slots, 1, &classes), 0);
	cr_assert_eq(classes.class_count, 0);
	classes_free(&classes);
	elf_file_close(file);
}

Test(target_probe_classes, a_crowd, .fini = support_cleanup)
{
	static char source[1 << 20];
	size_t length = (size_t)snprintf(source, sizeof(source), HEAD);
	struct classes classes;

	for (int i = 0; i < 5000; i++) {
		char parent[16];

		snprintf(parent, sizeof(parent), i ? "c%d" : "base", i - 1);
		length += (size_t)snprintf(source + length, sizeof(source) - length,
					   "p const c%d[] = { 0, \"5C%04d\", %s };\n"
					   "p const t%d[] = { 0, c%d, (p)f0, (p)f0, (p)f%d };\n",
					   i, i, parent, i, i, i % 4);
	}
	classes = find(source, 0);
	cr_assert_eq(classes.class_count, 5000);
	cr_assert_eq(classes.method_count, 5000);
	expect(&classes, 0, "5C0000");
	classes_free(&classes);
}
