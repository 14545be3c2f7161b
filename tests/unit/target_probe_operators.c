/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_support.h"

#include "target/probe/operators.h"

TestSuite(target_probe_operators, .fini = support_cleanup);

static const char source[] =
	"int _ZN2at4_ops2mm4callEi(int a) { return a + 1; }\n"
	"int _ZN2at4_ops10add_Tensor4callEii(int a, int b) { return a * b; }\n"
	"int same(int a) __attribute__((alias(\"_ZN2at4_ops2mm4callEi\"), visibility(\"hidden\")));\n"
	"int _ZN2at4_ops2mm10redispatchEi(int a) { return a - 1; }\n"
	"int odd(int a) __asm__(\"_ZN2at4_ops99x4callE\"); int odd(int a) { return a ^ 9; }\n"
	"int toy_relu(int a) { return a ^ 5; }\n"
	"int _ZN2at4_ops2no4callEi; /* no function */\n"
	"static int real(int a) { return a; } static void *choose(void) { return (void *)real; }\n"
	"int _ZN2at4_ops6chosen4callEi(int a) __attribute__((ifunc(\"choose\")));\n";

static char *torch[] = { "_ZN2at4_ops*4callE*", "same" }, *toy[] = { "toy_*" }, *none[] = { "nowhere*" };

static int find(const char *path, char **symbols, size_t count, struct operators *operators)
{
	struct method_spec methods[] = {
		{ .slot = 0,
		  .call = { .locate = LOCATE_OPERATORS,
			    .function = "call",
			    .symbols = symbols,
			    .symbol_count = count } },
		{ .slot = 1,
		  .call = { .locate = LOCATE_OPERATORS, .function = "relu", .symbols = toy, .symbol_count = 1 } },
	};
	const struct operators_spec spec = { .methods = methods, .method_count = symbols == none ? 1 : 2 };
	struct elf_file *file = support_open(path);
	int error = operators_find(file, &spec, operators);

	elf_file_close(file);
	return error;
}

/* The function that is called so, and its class; NULL: none. */
static const struct class_method *find_class(const struct operators *operators, const char *name)
{
	for (size_t i = 0; i < operators->classes.method_count; i++)
		if (!strcmp(operators->classes.methods[i].class_name, name))
			return &operators->classes.methods[i];
	return NULL;
}

/* By symbol: every function once, with the name of its class; what no probe tells apart has one name. */
Test(target_probe_operators, functions)
{
	static const char *const names[] = { "at::_ops::mm", "at::_ops::add_Tensor", "toy_relu" };
	const char *path = support_library("functions.c", source, "-O1");
	struct operators operators;
	__u64 before = 0;

	cr_assert_eq(find(path, torch, 2, &operators), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_not_null(find_class(&operators, names[i]), "%s", names[i]);
	cr_expect_eq(find_class(&operators, "toy_relu")->slot, 1);
	cr_expect_eq(find_class(&operators, "at::_ops::mm")->slot, 0);
	/* The one that is not understood is called as it is. */
	cr_expect_eq(operators.classes.method_count, 4);
	cr_assert_eq(operators.function_count + operators.unplaced, 4);
	cr_expect_eq(operators.classes.class_count, 4);
	for (size_t i = 0; i < operators.function_count; i++) {
		const struct operator_function *function = &operators.functions[i];
		const struct class_method *method = &operators.classes.methods[function->first];

		/* The library's first segment is mapped as it is in the file, so addresses differ by as much as offsets. */
		cr_expect_eq(function->count, 1);
		cr_expect_eq(method->table - method->method, function->site.offset - function->site.function);
		cr_expect_gt(method->method, before);
		before = method->method;
	}
	operators_free(&operators);
}

Test(target_probe_operators, without_any)
{
	struct operators operators;

	cr_expect_eq(find(support_library("functions.c", source, "-O1"), none, 1, &operators), -ENOENT);
	cr_expect_eq(operators.function_count, 0);
}
